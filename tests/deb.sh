#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: tests/deb.sh installed VERSION [VERSION-OF-B]
#        tests/deb.sh removed
#        tests/deb.sh readme COMMANDS
#        tests/deb.sh conformance COMMANDS
#
# Runs in machines of scripts/vm --root whose system scripts/deb-test has made.
#
# installed  iw-mpa-dkms and rpcrdma2-dkms are installed: their modules load and have version VERSION, rping connects
#            peer-to-peer from a to b, and every other module of the kernel that uses RDMA loads
# removed    they have been removed: the kernel's own modules load
# readme     systemd and udev run. The commands in the file COMMANDS, those of the README behind the boot, lead to
#            a peer-to-peer connection of rping, a line "rping -s" in b, "rping -c" in a; and siw@eth0 starts
# conformance  systemd and udev run. The commands in the file COMMANDS, those of iw_mpa_foreign.rst: conformance-target in
#            b, mpapeer in a
set -euo pipefail

# shellcheck source=tests/until.sh
source "${0%/*}/until.sh"

# Modules of the kernel that depend on one that we replace
dependents() {
	sed -nE 's,^kernel/.*/([^/]*)\.ko[^:]*:.*/(ib_core|iw_cm|rdma_cm)\.ko.*,\1,p' "/lib/modules/$(uname -r)/modules.dep" |
		tr - _ | grep -vxE 'iw_cm|rdma_cm|rdma_ucm|iw_cxgb4'
}

versions_are() {
	local module
	for module in iw_cm rdma_cm rdma_ucm iw_mpa siw rpcrdma; do
		[[ $(cat "/sys/module/$module/version") == "$1" ]] || fail "$module is loaded, but not of version $1"
	done
}

wait_line() { # FILE REGEX
	local i
	for ((i = 0; i < 600; i++)); do
		! grep -qE "$2" "$1" || return 0
		sleep 0.1
	done
	cat "$1" >&2
	fail "no line '$2'"
}

server() { # DEVICE ADDRESS
	local device=$1 address=$2
	rdma-mpa monitor >/tmp/monitor 2>&1 &
	rping -s -a "$address" -C 3 >/tmp/server 2>&1 &
	wait_line /tmp/monitor "^established link $device/1 .* role responder .* peer-revision 2 .* model peer-to-peer .* rtr-seen write"
	grep -m 1 '^established.*responder' /tmp/monitor
}

client() { # ADDRESS
	local address=$1 i
	for ((i = 0; i < 120; i++)); do
		if rping -c -a "$address" -C 3 -v >/tmp/client 2>&1; then
			grep -q 'ping data: rdma-ping-2' /tmp/client || fail 'rping has not pinged three times'
			echo 'rping: ok'
			return
		fi
		sleep 0.5
	done
	cat /tmp/client >&2
	fail 'rping does not connect'
}

load_dependents() {
	local module
	local -a all
	mapfile -t all < <(dependents)
	[[ ${#all[@]} -ge 20 ]] || fail "only ${#all[@]} modules use RDMA"
	for module in "${all[@]}"; do
		modprobe "$module" || fail "$module does not load"
	done
	! dmesg | grep -E 'disagrees about version|Unknown symbol|no symbol version' || fail 'symbols do not fit'
	echo "loaded: ${all[*]}"
}

installed() {
	local device=siw0 version=$1
	[[ $ROLE == a ]] || device=siw1 version=${2:-$1}
	rdma link add "$device" type siw netdev eth0
	modprobe -a rdma_ucm ib_uverbs rpcrdma
	versions_are "$version"
	[[ $(cat /proc/sys/sunrpc/rdma_max_version /proc/sys/sunrpc/svc_rdma/max_version) == $'1\n1' ]] || fail 'rpcrdma uses version two'
	rdma-mpa show link "$device/1"
	if [[ $ROLE == b ]]; then
		server siw1 10.77.0.2
		load_dependents
	else
		client 10.77.0.2
		rdma-mpa stat link siw0/1 >/dev/null
	fi
}

removed() {
	local module
	! modinfo siw 2>/dev/null || fail 'siw is there'
	modprobe -a ib_uverbs rdma_ucm
	for module in iw_cm rdma_cm rdma_ucm; do
		[[ -e /sys/module/$module && ! -e /sys/module/$module/version ]] || fail "$module is not the kernel's"
	done
	load_dependents
}

# ---- as a user, with systemd and udev

boot() {
	# eth0 stays eth0, which the README names
	ln -s /dev/null /etc/udev/rules.d/80-net-setup-link.rules
	printf '[Unit]\nDefaultDependencies=no\nWants=systemd-udevd.service systemd-udev-trigger.service\n' \
		>/etc/systemd/system/boot.target
	unshare --mount --pid --fork --kill-child --mount-proc bash -c 'mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /tmp
		exec /lib/systemd/systemd --system --unit=boot.target --log-target=console --show-status=no' >/tmp/systemd 2>&1 </dev/null &
	until_ok 60 find_init
	until_ok 120 inside udevadm control --ping 2>/dev/null
	until_ok 120 inside udevadm settle
}

find_init() {
	INIT=$(pgrep -f '^/lib/systemd/systemd --system --unit=boot.target' | head -n 1)
	[[ -n $INIT ]]
}

inside() { nsenter --target "$INIT" --mount --pid "$@"; }

# do_line COMMAND: a line of the README
do_line() {
	echo "# $1"
	inside bash -ec "$1"
	inside udevadm settle
}

has_program_option() { [[ -c /dev/infiniband/rdma_cm && -d /sys/module/rdma_ucm ]]; }

server_is_there() { inside rdma resource show cm_id | grep -q 'state LISTEN'; }

# The peer's set-up may take longer than ours
rping_connects() { inside timeout 60 bash -ec "$1" >/tmp/client 2>&1; }

is_established() { inside rdma-mpa stat | grep -qE "mpa_established_$1 [1-9]"; }

readme() {
	local line
	boot
	while IFS= read -r line; do
		case $line in
		'rping -s'*)
			[[ $ROLE == b ]] || continue
			echo "# $line"
			# rdma-core loads it when the device comes
			until_ok 60 has_program_option
			inside timeout 300 bash -ec "$line" >/tmp/server 2>&1 &
			server=$!
			until_ok 60 server_is_there
			;;
		'rping -c'*)
			[[ $ROLE == a ]] || continue
			echo "# $line"
			until_ok 60 has_program_option
			until_ok 300 rping_connects "$line"
			cat /tmp/client
			;;
		*) do_line "$line" ;;
		esac
	done <"$1"
	if [[ $ROLE == b ]]; then
		wait "$server" || fail "rping -s: $(</tmp/server)"
		is_established responder || fail 'no connection is counted'
		inside rdma-mpa stat | grep -o 'mpa_rtr_rcvd_[a-z]* 1' || fail 'no RTR came: it was not peer-to-peer'
	else
		grep -q 'ping data: rdma-ping-2' /tmp/client || fail 'rping has not pinged three times'
		is_established initiator || fail 'no connection is counted'
	fi
	# as iw_mpa_install.rst says
	inside rdma link delete siw0 || fail 'siw0 stays'
	inside systemctl enable -q --now siw@eth0 || fail "siw@eth0: $(inside systemctl status siw@eth0 2>&1) $(tail /tmp/systemd)"
	inside rdma link show siw_eth0/1 || fail 'no siw_eth0'
}

conformance() {
	local line shared=/run/vm/ctl
	boot
	inside rdma link add siw0 type siw netdev eth0
	until_ok 60 has_program_option
	if [[ $ROLE == b ]]; then
		line=$(grep -m 1 conformance-target "$1")
		echo "# $line"
		inside timeout 1000 bash -ec "${line/192.0.2.7/10.77.0.2}" >/tmp/target 2>&1 &
		until_ok 120 all_listen
		: >$shared/target
		# vm-init makes it
		until_ok 1000 test -e $shared/a.ended
	else
		line=$(grep -m 1 'mpapeer conformance' "$1")
		echo "# $line"
		until_ok 300 test -e $shared/target
		inside bash -ec "${line/192.0.2.7/10.77.0.2}" >/tmp/conformance || fail "$(grep -v '^PASS\|^SKIP' /tmp/conformance)"
		tail -n 1 /tmp/conformance
	fi
}

all_listen() { [[ $(inside rdma resource show cm_id | grep -c 'state LISTEN') == $(grep -cv '^#' /usr/share/iw-mpa/wire/programs) ]]; }

case ${1:-} in
installed | removed | readme | conformance) "$@" ;;
*) fail "unknown command: '${1:-}'" ;;
esac
