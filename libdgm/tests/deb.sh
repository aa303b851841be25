#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: libdgm/tests/deb.sh installed|removed
#
# Runs in two machines of scripts/vm --root whose system scripts/deb-test --datagram has made.
#
# installed  the packages are installed: a link of type siw_dg loads the module, ibv_ud_pingpong runs from a to b, and the
#            module unloads in b while a sends
# removed    they have been removed: such a link cannot be made
set -euo pipefail

CTL=/run/vm/ctl

# shellcheck source=tests/until.sh
source "${0%/*}/../../tests/until.sh"

is_active() { ibv_devinfo -d d0 2>/dev/null | grep -q 'state:.*PORT_ACTIVE'; }

add_link() {
	[[ ! -e /sys/module/siw_dg ]] || fail 'siw_dg is loaded before there is a link'
	rdma link add d0 type siw_dg netdev eth0
	# no udev runs here
	modprobe ib_uverbs
	until_ok 60 is_active
	ibv_devinfo -d d0 >/tmp/info 2>/tmp/warnings
	[[ ! -s /tmp/warnings ]] || fail "libibverbs warns: $(</tmp/warnings)"
	grep -x 'hca_id:.*d0' /tmp/info
}

pingpong() { timeout 60 ibv_ud_pingpong -d d0 -g 0 -n 100 "$@" >/tmp/pingpong 2>&1; }

# A server that gets no answer waits, with its queue pair, while datagrams come
serve_and_unload() {
	local pid qpn
	stdbuf -oL ibv_ud_pingpong -d d0 -g 0 -n 1000000 -r 10000 >/tmp/server 2>&1 &
	pid=$!
	until_ok 60 grep -q 'QPN' /tmp/server
	qpn=$((16#$(sed -nE 's/.*QPN 0x([0-9a-f]+).*/\1/p;q' /tmp/server)))
	echo "$qpn" >"$CTL/qpn.new"
	mv "$CTL/qpn.new" "$CTL/qpn"
	until_ok 120 has_sent
	timeout 60 modprobe -r siw_dg || fail 'modprobe -r siw_dg failed'
	[[ ! -e /sys/module/siw_dg ]] || fail 'siw_dg stays'
	echo 'unloaded while a peer sends'
	: >"$CTL/unloaded"
	kill "$pid"
	wait "$pid" || true
	rdma link add d0 type siw_dg netdev eth0 || fail 'the module does not load once more'
}

# The QP is not ready yet: each datagram is counted
has_sent() { grep -qE '^[1-9][0-9]' /sys/class/infiniband/d0/ports/1/hw_counters/dropped_qp_state; }

flood() {
	local qpn
	until_ok 120 test -e "$CTL/qpn"
	qpn=$(<"$CTL/qpn")
	until [[ -e $CTL/unloaded ]]; do
		((SECONDS < 300)) || fail 'b has not unloaded the module'
		dgmpeer send 10.77.0.2 "$qpn" send qkey=0x11111111 --data flood
	done
}

installed() {
	add_link
	if [[ $ROLE == b ]]; then
		until_ok 300 pingpong
		cat /tmp/pingpong
		serve_and_unload
	else
		until_ok 300 pingpong 10.77.0.2
		flood
	fi
}

removed() {
	! modinfo siw_dg 2>/dev/null || fail 'modinfo finds siw_dg'
	! rdma link add d0 type siw_dg netdev eth0 2>/tmp/link || fail 'a link of type siw_dg was made'
	cat /tmp/link
}

case ${1:-} in
installed | removed) "$1" ;;
*) fail "unknown command: '${1:-}'" ;;
esac
