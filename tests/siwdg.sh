#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--kernel NAME] -- tests/siwdg.sh [REGEX]
#        scripts/vm run --pair --mem 3072 --packages ucx-utils -- tests/siwdg.sh [REGEX]     (tests/run calls it siwdg-pair)
#
# Module siw_dg and its provider (scripts/datagram modules, scripts/siwdg-provider): UD queue pairs between namespaces a (device
# d0) and b (d1), which have links of siw as well; UCX between two machines. Read libdgm/NOTICE first.
#
# Runs as siwdg: 500 s
# Runs as siwdg-pair: --pair --mem 3072 --packages ucx-utils; 400 s
# Sample siwdg: GIDs|pingpong|ib_send_bw runs on|DGM|module unloads
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly PRODUCTS=${TESTS%/*}/build/datagram PROVIDER=${TESTS%/*}/build/siwdg
readonly DGQP=$PRODUCTS/lib/dgqp DGMPEER=$PRODUCTS/lib/dgmpeer
# Of perftest, ibv_ud_pingpong and dgqp
readonly QKEY=0x11111111

load() {
	modprobe -aq libcrc32c crc32c || true
	insmod "$PRODUCTS/$VM_KERNEL/siw_dg.ko"
}

add_links() {
	within a rdma link add d0 type siw_dg netdev eth0
	within b rdma link add d1 type siw_dg netdev eth0
}

counter() { # DEVICE NAME
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}

gid() { # DEVICE INDEX
	cat "/sys/class/infiniband/$1/ports/1/gids/$2"
}

has_gid() { # DEVICE INDEX GID
	[[ $(gid "$1" "$2") == "$3" ]]
}

# ---- devices

gids_follow() {
	is 'GID 0' "$(gid d0 0)" 0000:0000:0000:0000:0000:ffff:0a4d:0001
	within a ip address add 10.9.9.9/24 dev eth0
	wait_for 10 'the new address' has_gid d0 1 0000:0000:0000:0000:0000:ffff:0a09:0909
	within a ip address del 10.9.9.9/24 dev eth0
	wait_for 10 'IPv6 again' has_gid d0 1 fd77:0000:0000:0000:0000:0000:0000:0001
}

second_link() {
	! within a rdma link add d2 type siw_dg netdev eth0 2>"$WORK/add.log" || fail 'a second link was made'
	grep -q 'File exists' "$WORK/add.log"
}

link_is_deleted() {
	within a rdma link del d0
	[[ ! -e /sys/class/infiniband/d0 ]]
	within a rdma link add d0 type siw_dg netdev eth0
}

rping_over_siw() {
	start server b 60 rping -s -a "$(address b)" -p 7600 -C 1
	wait_listener "$(address b)" 7600
	run_well client a 60 rping -c -a "$(address b)" -p 7600 -C 1
	ended_well server 60
}

# ---- programs of others

ud_pingpong() { # GID-INDEX
	start server b 60 ibv_ud_pingpong -d d1 -g "$1" -n 100
	wait_for 30 'a server' socket_listens 18515 tcp
	run_well client a 60 ibv_ud_pingpong -d d0 -g "$1" -n 100 "$(address b)"
	ended_well server 60
	note "$(grep 'usec/iter' "$WORK/client.log")"
}

perftest() { # PROGRAM OPTION…
	start server b 100 "$1" -d d1 -c UD -F "${@:2}"
	wait_for 30 'a server' socket_listens 18515 tcp
	run_well client a 100 "$1" -d d0 -c UD -F "${@:2}" "$(address b)"
	ended_well server 60
	note "$(grep -A 1 '^ #bytes' "$WORK/client.log" | tail -n 1)"
}

# The server takes the name of the device from the client
ucx_perftest_runs() { # TEST OPTION…
	export UCX_IB_GID_INDEX=0
	if [[ $ROLE == b ]]; then
		run_well server b 200 ucx_perftest -d d0:1 -x ud_verbs
	else
		until_served 150 60 ucx_perftest "$(address b)" -d d0:1 -x ud_verbs -n 500 -w 10 -t "$@"
		note "$(grep Final "$WORK/client.log")"
	fi
}

# ---- our program

serve() { # OPTION of dgqp…; sets qpn
	start server b 60 "$DGQP" receive --device d1 "$@"
	wait_line server '^ready' 30
	qpn=$(sed -n 's/^ready //p' "$WORK/server.log")
}

dgm_send() { # FIELD=VALUE | OPTION of dgmpeer…
	run_well peer a 10 "$DGMPEER" send "$(address b)" "$qpn" send "$@"
}

arrives() { # TEXT
	wait_line server "^received .*: $1\$" 10
}

sends_to_itself() {
	start server a 60 "$DGQP" receive --device d0
	wait_line server '^ready' 30
	run_well client a 30 "$DGQP" send --device d0 "$(address a)" "$(sed -n 's/^ready //p' "$WORK/server.log")" --data own
	ended_well server 10
	has_line server '^received 3 from ::ffff:10.77.0.1 port [0-9]+: own$'
}

# DGM-02: the source's address and port; DGM-03: its port is the number of its QP
source_is_reported() { # GID-INDEX FAMILY ADDRESS
	serve --count 2
	run_well client a 30 "$DGQP" send --device d0 --gid "$1" "$(address b "$2")" "$qpn" --count 2 --data here
	ended_well server 10
	is 'completions with this source' "$(grep -cE "^received 4 from $3 port [1-9][0-9]+: here$" "$WORK/server.log")" 2
}

# DGM-06 and section 3.1: longer than the receive is an error of this request alone
too_long() {
	serve --count 2 --size 100
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --size 101
	wait_line server '^status local length error' 10
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --size 100 --data fits
	ended_well server 10
	has_line server '^received 100 .*: fits'
}

too_long_to_send() {
	serve --size 8000
	run client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --size 1500
	is 'the status of the sender' $STATUS 2
	has_line client '^status local length error'
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --data fits
	arrives fits
}

inline_data() {
	serve
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --inline --data inline
	arrives inline
}

# DGM-09: errors are counted, and the QP stays
wrong_datagram() { # COUNTER FIELD=VALUE | OPTION of dgmpeer…
	local before
	serve
	before=$(counter d1 "$1")
	dgm_send qkey=$QKEY --data wrong "${@:2}"
	wait_for 10 "$1" counter_is d1 "$1" $((before + 1))
	dgm_send qkey=$QKEY --data right
	arrives right
	ended_well server 10
	! has_line server wrong || fail 'the program received it'
}

counter_is() { # DEVICE NAME VALUE
	[[ $(counter "$1" "$2") == "$3" ]]
}

no_receive_posted() {
	local before
	serve --depth 1 --count 3
	before=$(counter d1 dropped_no_receive)
	stop_process server
	dgm_send qkey=$QKEY --data first
	dgm_send qkey=$QKEY --data second
	wait_for 10 'a datagram without a receive' counter_is d1 dropped_no_receive $((before + 1))
	kill -CONT "$(pgrep -P "${pid_of[server]}")"
	arrives first
	dgm_send qkey=$QKEY --data third
	arrives third
	! has_line server second || fail 'the dropped message arrived'
}

stop_process() {
	kill -STOP "$(pgrep -P "${pid_of[$1]}")"
}

# DGM-22
error_flushes() {
	run_well client a 30 "$DGQP" flush --device d0
}

solicited() {
	serve --solicited --count 2
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --data first
	pause 1
	! has_line server received || fail 'an event came for a message without the bit'
	run_well client a 30 "$DGQP" send --solicited --device d0 "$(address b)" "$qpn" --data second
	ended_well server 10
}

# DGM-19: three QPs with this port, in two hosts, get each message
multicast() { # GROUP
	start one b 60 "$DGQP" receive --device d1 --port 7701 --group "$1" --provider "$PROVIDER/libsiwdg.so.1"
	wait_line one '^ready' 30
	start two a 60 "$DGQP" receive --device d0 --port 7701 --group "$1" --provider "$PROVIDER/libsiwdg.so.1"
	wait_line two '^ready' 30
	start three b 60 "$DGQP" receive --device d1 --port 7702 --provider "$PROVIDER/libsiwdg.so.1"
	wait_line three '^ready' 30
	run_well client a 30 "$DGQP" send --device d0 --gid "$2" "$1" 7701 --data all
	ended_well one 10
	ended_well two 10
	! has_line three received || fail 'a QP outside of the group received it'
}

fuzzed_queues() {
	serve --count 1000000 --timeout 40
	start flood a 40 "$DGQP" send --device d0 "$(address b)" "$qpn" --count 1000000 --timeout 30
	run_well fuzz b 60 "$DGQP" fuzz --device d1 "$(address a)" --timeout 20 --count 7
	note "$(tail -n 1 "$WORK/fuzz.log")"
	stop flood
	stop server
}

# libibverbs turns some errors of the kernel into others, and some allocations may fail without any
no_memory() {
	echo N | tee /sys/kernel/debug/failslab/{ignore-gfp-wait,cache-filter,task-filter} >/dev/null
	run_well fault a 200 "$DGQP" fault --device d0 "$(address b)"
	note "$(tail -n 1 "$WORK/fault.log")"
	run_well client a 30 "$DGQP" flush --device d0
}

# ---- ends

device_goes() {
	serve
	within b rdma link del d1
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn"
	stop server
	within b rdma link add d1 type siw_dg netdev eth0
}

interface_goes() {
	within a ip link add veth8 type veth peer name veth9
	within a ip address add 10.99.0.1/24 dev veth8
	within a ip link set veth8 up
	within a ip link set veth9 up
	within a rdma link add d8 type siw_dg netdev veth8
	start server a 60 "$DGQP" receive --device d8
	wait_line server '^ready' 30
	within a ip link del veth8
	wait_for 20 'the device to go' test ! -e /sys/class/infiniband/d8
	stop server
}

namespace_goes() {
	ip netns add gone
	ip link add veth8 type veth peer name veth9
	ip link set veth8 netns gone
	ip netns exec gone ip address add 10.99.0.1/24 dev veth8
	ip netns exec gone ip link set veth8 up
	ip netns exec gone rdma link add d8 type siw_dg netdev veth8
	ip netns del gone
	wait_for 20 'the device to go' test ! -e /sys/class/infiniband/d8
}

killed() {
	serve --count 100000
	start flood a 40 "$DGQP" send --device d0 "$(address b)" "$qpn" --count 1000000 --timeout 30
	pause 2
	stop server KILL
	stop flood KILL
}

unloads_under_traffic() {
	serve
	# shellcheck disable=SC2016 # for that shell
	start flood a 60 bash -c 'while :; do "$0" send "$1" "$2" send qkey=1; done' "$DGMPEER" "$(address b)" "$qpn"
	pause 1
	rmmod siw_dg
	stop flood
	stop server
	load
	add_links
}

echo "driver $PROVIDER/libsiwdg" >/etc/libibverbs.d/siwdg.driver
load
if [[ -n ${ROLE:-} ]]; then
	rdma link add d0 type siw_dg netdev eth0
	check 'siw_dg DGM-21: UCX ud_verbs passes short messages between two machines' ucx_perftest_runs am_lat
	check 'siw_dg DGM-21: UCX ud_verbs passes 1,000 octets from user memory between two machines' ucx_perftest_runs am_bw -D zcopy -s 1000
	rmmod siw_dg
	finish
	exit
fi
add_links
check 'siw_dg: GIDs follow the addresses of the interface' gids_follow
check 'siw_dg: rdma link add of a second link on an interface fails with EEXIST' second_link
check 'siw_dg: rdma link del removes a device' link_is_deleted
check 'siw_dg: rping runs over the siw link of an interface with a siw_dg link' rping_over_siw
check 'siw_dg: ibv_ud_pingpong runs over IPv4' ud_pingpong 0
check 'siw_dg: ibv_ud_pingpong runs over IPv6' ud_pingpong 1
check 'siw_dg: ib_send_lat runs on UD queue pairs' perftest ib_send_lat -n 200
check 'siw_dg: ib_send_bw runs on UD queue pairs' perftest ib_send_bw -n 1000 -s 1024
check 'siw_dg: ib_send_bw runs with events on UD queue pairs' perftest ib_send_bw -n 1000 -s 1024 -e
check 'siw_dg DGM-02 DGM-03: a receive reports the IPv4 address and the port of the source' source_is_reported 0 '' ::ffff:10.77.0.1
check 'siw_dg DGM-02 DGM-03: a receive reports the IPv6 address and the port of the source' source_is_reported 1 6 fd77::1
check 'siw_dg: two QPs of one device exchange a message' sends_to_itself
check 'siw_dg DGM-06: a message longer than the receive completes that receive with an error' too_long
check 'siw_dg: a message longer than the path MTU completes its Send with an error' too_long_to_send
check 'siw_dg: a message sent as inline data arrives unchanged' inline_data
check 'siw_dg: only a message with Solicited Event raises a solicited event' solicited
check 'siw_dg DGM-06: a message without a posted receive is dropped and counted' no_receive_posted
check 'siw_dg DGM-22: both queues are flushed when a QP enters ERROR' error_flushes
check 'siw_dg DGM-09: a message with a wrong Q_Key is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_qkey qkey=5
check 'siw_dg DGM-09 DGM-24: a message with a wrong CRC is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_crc --bad-crc
check 'siw_dg DGM-09: a message with a wrong DDP version is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header ddp-version=2
check 'siw_dg DGM-09: a message with a wrong RDMAP version is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header rdmap-version=2
check 'siw_dg DGM-09: a message with a wrong opcode is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header opcode=4
check 'siw_dg DGM-09: a message with a wrong queue number is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header qn=1
check 'siw_dg DGM-09: a message with a wrong message offset is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header mo=4
check 'siw_dg DGM-09: a truncated datagram is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header --cut 10
check 'siw_dg DGM-19: a message to an IPv4 group reaches each QP that joined' multicast 239.7.7.7 0
check 'siw_dg DGM-19: a message to an IPv6 group reaches each QP that joined' multicast ff15::77 1
check 'siw_dg: random numbers that a program writes to the queues it shares with the kernel affect no other program' fuzzed_queues
# Debian's kernel has no fault injection
if [[ -e /sys/kernel/debug/failslab ]]; then
	check 'siw_dg: after each memory allocation in the kernel has failed once, a new QP works' no_memory
fi
check 'siw_dg: a receiver and a sender that are killed under traffic end' killed
check 'siw_dg: rdma link del removes a device that a program uses, and the program can be ended' device_goes
check 'siw_dg: deleting an interface removes the device that a program uses, and the program can be ended' interface_goes
check 'siw_dg: deleting a network namespace removes the device in the namespace' namespace_goes
check 'siw_dg: the module unloads while a program uses a device and a peer sends' unloads_under_traffic
rmmod siw_dg
finish
