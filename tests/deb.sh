#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: tests/deb.sh installed VERSION [VERSION-OF-B]
#        tests/deb.sh removed
#
# Runs in machines of scripts/vm --root whose system scripts/deb-test has made.
#
# installed  iw-mpa-dkms and rpcrdma2-dkms are installed: their modules load and have version VERSION, rping connects
#            peer-to-peer from a to b, and every other module of the kernel that uses RDMA loads
# removed    they have been removed: the kernel's own modules load
set -euo pipefail

fail() {
	echo "deb.sh: $*" >&2
	exit 1
}

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

case ${1:-} in
installed | removed) "$@" ;;
*) fail "unknown command: '${1:-}'" ;;
esac
