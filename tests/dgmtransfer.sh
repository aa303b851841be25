# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For datagram.sh and dgmbench.sh, which source it behind lib.sh: a transfer by libdgm. Read libdgm/NOTICE first.
readonly DGM=${TESTS%/*}/build/datagram/lib
port=7700

family='' # or 6

serve() { # OPTION…: dgm-recv at b; sets target
	port=$((port + 1))
	start recv b 400 "$DGM/dgm-recv" --bind "$(address b "$family")" --port $port --from "$(address a "$family")" --json "$@"
	wait_line recv / 30
	target=$(head -n 1 "$WORK/recv.log")
}

received() { # JQ-FILTER
	tail -n 1 "$WORK/recv.log" | jq -r "$1"
}

impair() { # OPTION… of netem, at a's end
	modprobe -q sch_netem || true
	within a tc qdisc replace dev eth0 root netem limit 100000 "$@"
}

mend() {
	within a tc qdisc del dev eth0 root 2>/dev/null || true
}

readonly MESSAGE=65536

# DGM-15: a message whose Last is lost is discarded when the next one begins, and what came of it is not recorded
map_is_exact() {
	"$DGM/dgm_pattern" check "$WORK/zone" "$WORK/map" "$(received "(.counters.messages_superseded // 0) * $MESSAGE")" \
		>"$WORK/check.log" || fail "$(<"$WORK/check.log")"
}

send_pattern() { # SIZE [OPTION of dgm-send]…
	within a bash -c "'$DGM/dgm_pattern' write '$1' | '$DGM/dgm-send' '$target' ${*:2} --json" >"$WORK/send.log" ||
		fail "dgm-send: $(tail -n 1 "$WORK/send.log")"
}

