#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair [--stock] -- tests/pathpair.sh ROUNDS (called by scripts/bench --pair)
#
# Throughput between two machines: perftest, and iperf3 in its place. Machine b has the servers, which serve once and so
# keep both machines in step. Each line of a's output that begins with { is a value.
# shellcheck disable=SC2031 # WORK is set once
rounds=$1
set -- '^$' # no case of lib.sh
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

readonly SIZE=65536 COUNT=320

# serve_once COMMAND…: for the other machine's client, which comes until it is served
serve_once() {
	timeout 100 "$@" >"$WORK/server.log" 2>&1 || note "a server ended with status $?: $(tail -n 1 "$WORK/server.log")"
}

measure() { # PROGRAM
	local server=(chrt --idle 0 "$1" -R -F -n "$COUNT" -s "$SIZE") client=(nice "$1" -R -F -n "$COUNT" -s "$SIZE" "$(address b)")
	if [[ $variant == tcp* ]]; then
		server=(iperf3 -s -1) client=(iperf3 -J -c "$(address b)" -l "$SIZE" -n "$((COUNT * SIZE))")
		[[ $1 != ib_read_bw ]] || client+=(-R)
	fi
	[[ $ROLE == a ]] || { serve_once "${server[@]}" && return; }
	until_served 90 60 "${client[@]}"
	if [[ $variant == tcp* ]]; then
		jq '.end.sum_received.bits_per_second / 8388608' "$WORK/client.log"
	else
		awk '/^ *[0-9]+ +[0-9]+ +[0-9.]+/ { print $4 }' "$WORK/client.log"
	fi >"$WORK/value"
	jq -c --arg variant "$variant" --arg program "$1" --argjson round "$round" --argjson size $SIZE \
		'{round: $round, variant: $variant, what: "perftest", program: $program, mib_s: ., size: $size}' "$WORK/value"
}

variants=(ours large tcp)
[[ $VM_STOCK == 0 ]] || variants=(stock tcp-of-stock)
for ((round = 1; round <= rounds; round++)); do
	for variant in "${variants[@]}"; do
		[[ $variant != ours ]] || mpa reset default
		[[ $variant != large ]] || mpa set default segment large
		for program in ib_write_bw ib_read_bw; do
			measure $program
		done
	done
done
