#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/unload.sh
#
# Devices, interfaces and namespaces go away while there are listeners, connections and peers that are
# half way. None of these may delay the removal.
#
# In some cases the programs are killed during the removal, in others (F67) they stay. scripts/vm checks
# that at the end all modules can be unloaded without a leak.
#
# Runs as unload unload-sctp unload-streams: 200 s
# Sample unload: cxgb4|half-open connections can|unanswered|wildcard|interface|namespace
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/assoc.sh
source "${0%/*}/assoc.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

# Much less than any deadline of iw_mpa that could delay something: these are 60 s here
readonly SOON=20

readonly HALF='MPA ID R'
# vector V08 of the conformance matrix, for printf: peer-to-peer, RTR by Write
readonly V08='MPA ID Req Frame\x50\x02\x00\x04\x80\x08\x80\x08'
# Steps of sctppeer.py: an Initiate behind a gap, and one that is S1 without its private data
readonly GAP="ssn=1 send=$INITIATE" S1="send=00058008c008 expect=0006"

serve() { # PORT [OPTION…]
	start server b 120 "$RDMAFIRST" server "$(address b)" "$1" --count 0 --timeout $((100 * SLOW_HOST)) "${@:2}"
	wait_ready server '^listening'
}

connect() { # NAME PORT
	start "$1" a 100 "$RDMAFIRST" client "$(address b)" "$2" --hold --timeout $((90 * SLOW_HOST))
	wait_line "$1" '^received' 60
}

# peer NAME PORT BYTES: starts a TCP client that sends BYTES (for printf) and then stays silent
peer() {
	# shellcheck disable=SC2016 # for the other shell
	start "$1" a 100 bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "$2" >&3 && echo sent && exec sleep 90' \
		"$(address b)" "$2" "$3"
	wait_ready "$1" '^sent'
}

# sctp_peers PORT NAME STEPS…: starts peers of RFC 5043 that take these steps and then stay silent
sctp_peers() {
	local port=$1 number
	number=$(assocs a "$port" | wc -l)
	shift
	number=$((number + $# / 2))
	while [[ $# -gt 0 ]]; do
		# shellcheck disable=SC2086 # words
		start "$1" a 100 "$SCTPPEER" call "$(address b)" "$port" $2 over=90
		shift 2
	done
	wait_for 60 'their associations' has_assocs "$port" "$number"
}

# Three peers: no Request, half of one (over SCTP: all of it, behind a gap), and no RTR (over SCTP: a
# session that is not used)
half_way() { # PORT
	if [[ $LLP == tcp ]]; then
		peer nothing "$1" ''
		peer half "$1" "$HALF"
		peer silent "$1" "$V08"
	else
		sctp_peers "$1" nothing '' half "$GAP" silent "$S1"
	fi
}

# A listener with a connection in each state
everything() { # PORT
	serve "$1"
	connect client "$1"
	half_way "$1"
	wait_line server '^conn 2 accepted' 30
}

has_no_device() {
	! rdma link show "$1/1" >/dev/null 2>&1
}

works() { # PORT
	start works-server b 60 "$RDMAFIRST" server "$(address b)" "$1"
	wait_ready works-server '^listening'
	run_well works-client a 60 "$RDMAFIRST" client "$(address b)" "$1" --expect first
	ended_well works-server 30
}

# Starts to remove b's device, whose programs then die
remove_device_of_dying() { # PROCESS…
	local name
	start remove b 60 rdma link del siw1
	sleep 1
	for name in "$@"; do
		stop "$name" KILL
	done
	ended_well remove "$SOON"
	add_device b siw1
}

listener_dies() {
	serve 7500
	remove_device_of_dying server
	works 7501
}

connections_die() {
	local i
	serve 7510
	for i in 1 2 3; do
		connect "client$i" 7510
	done
	remove_device_of_dying server
	for i in 1 2 3; do
		wait_line "client$i" 'event RDMA_CM_EVENT_DISCONNECTED' 20
		ended "client$i" 20
	done
	works 7511
}

half_way_dies() {
	serve 7520
	half_way 7520
	wait_line server '^conn 1 accepted' 30
	remove_device_of_dying server
	works 7521
}

# The program has got a request and has not answered
undecided_dies() {
	serve 7530 --delay 60000
	if [[ $LLP == tcp ]]; then
		peer silent 7530 "$V08"
	else
		sctp_peers 7530 silent "$S1"
	fi
	wait_line server '^conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST' 30
	remove_device_of_dying server
	works 7531
}

initiator_dies() {
	everything 7540
	start remove a 60 rdma link del siw0
	sleep 1
	stop client KILL
	ended_well remove "$SOON"
	add_device a siw0
	stop server
	works 7541
}

wildcard_dies() {
	# siw would listen on both devices in one namespace, with the same interface number
	rdma link del siw0
	start server b 120 "$RDMAFIRST" server 0.0.0.0 7550 --count 0 --timeout $((100 * SLOW_HOST))
	wait_ready server '^listening'
	half_way 7550
	run_well remove b "$SOON" rdma link del siw1
	add_device b siw1
	add_device a siw0
	stop server
	works 7551
}

killed() {
	everything 7560
	stop server KILL
	wait_line client 'event RDMA_CM_EVENT_DISCONNECTED' 20
	ended client 20
	works 7561
}

# The FINs of connections whose interface has gone get no answer. On a kernel with lockdep, siw stays
# loaded while there are sockets with its lock classes, so TCP must drop these sockets soon.
forget_orphans_soon() {
	local netns
	for netns in a b; do
		ip netns exec $netns sysctl -qw net.ipv4.tcp_orphan_retries=1
	done
}

interface_dies() {
	forget_orphans_soon
	everything 7570
	start remove b 60 ip link del eth0
	wait_line client 'event RDMA_CM_EVENT_DISCONNECTED' 20
	ended client 20
	stop server KILL
	ended_well remove "$SOON"
	wait_for 10 "the end of b's device" has_no_device siw1
	wait_for 10 "the end of a's device" has_no_device siw0
}

rebuild() {
	local netns
	for netns in a b; do
		[[ ! -e /run/netns/$netns ]] || ip netns del $netns
	done
	ip -batch - <<-END
		netns add a
		netns add b
		link add eth0 netns a mtu 1500 type veth peer name eth0 netns b mtu 1500
	END
	for netns in a b; do
		ip -n $netns link set lo up
		ip -n $netns addr add "$(address $netns)/24" dev eth0
		ip -n $netns link set eth0 up
	done
	add_device a siw0
	add_device b siw1
	ip netns exec a ping -q -c 1 -W 5 "$(address b)" >/dev/null
}

is_without_interface() { # NETNS
	! ip -n "$1" link show eth0 >/dev/null 2>&1
}

# b loses its name, then its processes are killed. The namespace ends when the kernel has no reference
# to it any more; its side of the veth pair ends with it.
namespace_dies() {
	rebuild
	everything 7580
	ip netns del b
	stop server KILL
	stop client KILL
	wait_for "$SOON" "the end of b's network interface" is_without_interface a
	wait_for 10 "the end of b's device" has_no_device siw1
}

# hold NAME [--busy]: a program that has all kinds of objects of b's device. It is in a, which has nothing to do with b
hold() {
	start "$1" a 100 "$RDMAFIRST" holder siw1 "${@:2}"
	wait_line "$1" '^all objects are held' 60
}

hold_everything() { # PORT
	everything "$1"
	hold idle
	hold busy --busy
}

# The programs are told. What they had of the device is gone, and they can do nothing with it any more
holders_are_told() {
	local name
	for name in idle busy; do
		wait_line "$name" '^the device is removed' 30
		wait_line "$name" '^new object: Input/output error' 30
		stop "$name"
		has_line "$name" '^4 receives were flushed' || fail "$name: $(grep flushed "$WORK/$name.log")"
		has_line "$name" '^the queue is unchanged' || fail "$name: $(tail -n 2 "$WORK/$name.log" | paste -sd' ')"
		has_line "$name" '^pinned at the end: 0 kB' || fail "$name: $(grep pinned "$WORK/$name.log")"
	done
}

# The server of everything() ends when it is told
server_is_told() {
	wait_line server 'event RDMA_CM_EVENT_DEVICE_REMOVAL' 30
	ended server 20
	has_line server '^pinned at the end: 0 kB' || fail "the server: $(grep pinned "$WORK/server.log")"
	wait_line client 'event RDMA_CM_EVENT_(DISCONNECTED|DEVICE_REMOVAL)' 20
	ended client 20
}

device_of_holders() {
	hold_everything 7600
	run_well remove b "$SOON" rdma link del siw1
	server_is_told
	holders_are_told
	add_device b siw1
	works 7601
}

# Without connections: on a kernel with lockdep their sockets hold the module
module_of_holders() {
	hold idle
	hold busy --busy
	run_well remove a "$SOON" rmmod siw
	holders_are_told
	modprobe siw
	add_device a siw0
	add_device b siw1
	works 7611
}

# b ends with its last process; it has nothing to do with those that hold its device
namespace_of_holders() {
	rebuild
	hold idle
	hold busy --busy
	ip netns del b
	wait_for "$SOON" "the end of b's network interface" is_without_interface a
	wait_for 10 "the end of b's device" has_no_device siw1
	holders_are_told
	rebuild
	works 7621
}

# There is no adapter: the driver registers with its network driver and waits for one
cxgb4_idles() {
	local parameter
	modprobe iw_cxgb4
	[[ -e /sys/module/cxgb4/holders/iw_cxgb4 ]] || fail 'iw_cxgb4 has not registered with cxgb4'
	[[ -e /sys/module/iw_mpa/holders/iw_cxgb4 ]] || fail 'iw_cxgb4 does not use iw_mpa'
	for parameter in mpa_rev=2 peer2peer=1 p2p_type=1 markers_enabled=0 crc_enabled=1 ep_timeout_secs=60; do
		[[ ${parameter#*=} == "$(</sys/module/iw_cxgb4/parameters/"${parameter%=*}")" ]] ||
			fail "it is not $parameter"
	done
	rmmod iw_cxgb4
	[[ ! -e /sys/module/iw_mpa/holders/iw_cxgb4 ]] || fail 'iw_cxgb4 is still there'
	modprobe iw_cxgb4 mpa_rev=1 peer2peer=0 p2p_type=0
	[[ $(</sys/module/iw_cxgb4/parameters/mpa_rev) == 1 ]] || fail 'mpa_rev cannot be set'
	modprobe -r iw_cxgb4
}

# The netlink family loads iw_mpa
needs_no_rdma_cm() {
	[[ -e /sys/module/ib_core/holders/iw_mpa ]] || fail 'module iw_mpa is not loaded'
	[[ ! -e /sys/module/rdma_cm/holders/iw_mpa ]] || fail 'module iw_mpa needs rdma_cm'
}

mpa set default request-timeout 60000 reply-timeout 60000 rtr-timeout 60000

check_tcp 'F164: module iw_mpa, which any user can have loaded, does not need rdma_cm' needs_no_rdma_cm
check_tcp 'iw_cxgb4 can be loaded and removed on a machine without an adapter' cxgb4_idles
check 'a siw device with a listener can be removed' listener_dies
check 'a siw device with connections can be removed, and the peers of the connections get DISCONNECTED' connections_die
check 'a siw device with half-open connections can be removed' half_way_dies
check 'a siw device with an unanswered connection request can be removed' undecided_dies
check "the siw device of an initiator with a connection can be removed" initiator_dies
check 'a siw device with a wildcard listener and half-open connections can be removed' wildcard_dies
check 'a program with a listener, a connection and half-open peers can be killed, new connections succeed' killed
check 'F67: rdma link del of a siw device does not wait for programs that have the device open' device_of_holders
check 'F67: rmmod siw does not wait for programs that have a siw device open' module_of_holders
check 'a network interface with a listener, a connection and half-open connections can be removed' interface_dies
check 'a namespace with a listener, a connection and half-open connections can be removed' namespace_dies
check 'F67: the end of a namespace does not wait for programs that have the siw device of the namespace open' namespace_of_holders
finish
