#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --llp sctp -- tests/sctp.sh [REGEX]
#
# Cases with more than 16 MiB, 10000 connects or two minutes are run only if REGEX has these words (with --timeout 20000).
#
# iWARP over SCTP (RFC 5043, RFC 6581 section 7): programs, what is on the wire, hostile peers in both
# roles, loss, and the end of associations. SCT-, SC- and AMB- name rows of the conformance matrix.
#
# Runs as sctp sctp-streams: --llp sctp; 700 s
# Sample sctp: server in namespace b$|accepts on an address|SCT-1[578]|SC-0[56]: (a |the first)|AMB-20
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/assoc.sh
source "${0%/*}/assoc.sh"

# ---- programs

talk() { # NETNS-OF-SERVER PORT [6]
	local to
	to=$(address "$1" "${3:-}")
	capture wire "$1"
	start server "$1" 60 rping -s -a "$to" -p "$2" -C 10 -V
	wait_listener "$to" "$2"
	run_well client "$(other "$1")" 60 rping -c -a "$to" -p "$2" -C 10 -V
	ended_well server 30
	capture_end wire
	on_the_wire wire "$2" default_setup
	wait_for 30 'the end of all associations' no_assocs
}

many() {
	start server b 120 ucmatose -b 10.77.0.2 -p 7470 -c 50 -C 10 -S 1000
	wait_listener 10.77.0.2 7470
	run_well client a 120 ucmatose -s 10.77.0.2 -p 7470 -c 50 -C 10 -S 1000
	ended_well server 30
}

# perftest exchanges its parameters by RDMA connections, too. A kernel with checkers takes half a second for each
# message of 64 KiB.
measure() { # PROGRAM SIZE COUNT
	local count=$3
	[[ $VM_KERNEL == debian ]] || count=$((count / 4))
	perftest_well "$1" 18515 -s "$2" -n "$count"
}

responder_first() {
	start server b 60 "$RDMAFIRST" server 10.77.0.2 7500 --send first
	wait_listener 10.77.0.2 7500
	run_well client a 40 "$RDMAFIRST" client 10.77.0.2 7500 --expect first --timeout 30
	has_line client '^received 5 first$' ||
		fail "the client has not received 'first': $(tail -n 1 "$WORK/client.log")"
	ended_well server 30
}

shows_sctp() {
	start server b 60 rping -s -P -a 10.77.0.2 -p 7501
	wait_listener 10.77.0.2 7501
	start client a 60 rping -c -a 10.77.0.2 -p 7501 -C 1000000
	wait_for 20 'a QP with the protocol' shows_llp
	stop client KILL
	wait_for 10 'the end of the association of a killed program' no_assocs
}

shows_llp() {
	rdma resource show qp -dd >"$WORK/qp.log"
	grep -q 'llp sctp' "$WORK/qp.log" && ! grep -qE 'mpa-rev|crc' "$WORK/qp.log"
}

# Everything that speaks of a connection says sctp, and nothing that MPA alone has
says_sctp() {
	local rdma=${TESTS%/*}/build/rdma
	"$rdma" mpa show link siw1/1 >"$WORK/show.log"
	has_line show 'llp sctp' || fail "rdma mpa show does not print 'llp sctp': $(<"$WORK/show.log")"
	! "$rdma" mpa set link siw1/1 crc required 2>"$WORK/set.log" ||
		fail 'rdma mpa set link siw1/1 crc required succeeds, though SCTP has no CRC of MPA'
	# in the devices' namespace
	timeout -k 5 60 "$rdma" mpa monitor >"$WORK/monitor.log" 2>&1 </dev/null &
	pid_of[monitor]=$!
	wait_for 20 'the monitor' monitor_is_on "$rdma"
	if [[ -d $TRACING/events/iw_mpa ]]; then
		echo >$TRACING/trace
		echo 1 >$TRACING/events/iw_mpa/enable
	fi
	start server b 60 rping -s -a 10.77.0.2 -p 7502 -C 2
	wait_listener 10.77.0.2 7502
	run_well client a 60 rping -c -a 10.77.0.2 -p 7502 -C 2
	ended_well server 30
	wait_line monitor 'llp sctp' 10
	stop monitor
	reset_default
	! grep 'llp sctp' "$WORK/monitor.log" | grep -E 'mpa-rev|crc' ||
		fail 'rdma mpa monitor prints mpa-rev or crc of an SCTP connection'
	[[ -d $TRACING/events/iw_mpa ]] || { note 'this kernel has no tracepoints' && return; }
	echo 0 >$TRACING/events/iw_mpa/enable
	grep 'mpa_state: ' $TRACING/trace >"$WORK/trace.log"
	has_line trace 'llp=sctp' || fail "no mpa_state event has llp=sctp: $(head -n 1 "$WORK/trace.log")"
	! has_line trace 'llp=tcp' || fail "an mpa_state event has llp=tcp: $(grep -m 1 llp=tcp "$WORK/trace.log")"
}

monitor_is_on() { # RDMA
	"$1" mpa set default reply-timeout 9000
	[[ -s $WORK/monitor.log ]]
}

# ---- addresses (SC-08)

one_address() {
	within b ip addr add 10.77.1.2/24 dev eth0
	start server b 60 rping -s -P -a 0.0.0.0 -p 7510
	wait_listener 10.77.0.2 7510
	start client a 60 rping -c -a 10.77.0.2 -p 7510 -C 1000000
	wait_for 20 'an association' has_assoc
	# LADDRS <-> *RADDRS
	if assocs a | grep -q '10.77.1.2' || assocs b | grep '10.77.0.1' | grep -q '10.77.1.2'; then
		fail "the association has 10.77.1.2 besides 10.77.0.2: $(assocs a)"
	fi
	stop client
	within b ip addr del 10.77.1.2/24 dev eth0
}

later_address() {
	start server b 60 rping -s -P -a 0.0.0.0 -p 7511
	wait_listener 10.77.0.2 7511
	within b ip addr add 10.77.0.22/24 dev eth0
	wait_for 30 'a socket of the new address' has_socket 7511 10.77.0.22
	run_well client a 30 rping -c -a 10.77.0.22 -p 7511 -C 2
	within b ip addr del 10.77.0.22/24 dev eth0
}

# IPv6 looks for duplicates of an address first
later_address6() {
	start server b 60 rping -s -P -a :: -p 7512
	wait_listener fd77::22 7512
	within b ip addr add fd77::22/64 dev eth0
	wait_for 30 'a socket of the new address' has_socket 7512 fd77:0000:0000:0000:0000:0000:0000:0022
	run_well client a 30 rping -c -a fd77::22 -p 7512 -C 2
	within b ip addr del fd77::22/64 dev eth0
}

# ---- a bad path

lossy() {
	path delay 2ms loss 2% reorder 25%
	start server b 150 rping -s -a 10.77.0.2 -p 7520 -C 40 -S 60000 -V
	wait_listener 10.77.0.2 7520
	run_well client a 150 rping -c -a 10.77.0.2 -p 7520 -C 40 -S 60000 -V
	ended_well server 30
	path
}

# exchange MIB: from a to b and from b to a at once, on a bad path. A MiB is some 740 segments. Both programs have all of it
# in memory. kmemleak follows 16 MiB only: its objects wait for RCU, which is slower than SCTP there (300 MiB filled 3 GiB),
# and without it the rest takes half the time. Give the machine --mem 12288.
exchange() {
	local i netns
	[[ $1 -eq 16 || $VM_KERNEL != debug ]] || echo off >/sys/kernel/debug/kmemleak
	seq 1 200000 >"$WORK/input"
	truncate -s 1M "$WORK/input"
	for ((i = 0; i < $1; i++)); do cat "$WORK/input"; done | sha256sum >"$WORK/wanted"
	path delay 1ms loss 1% reorder 25%
	for netns in a b; do
		# shellcheck disable=SC2016 # for the other shell
		start "server-$netns" $netns 20000 bash -o pipefail -c '"$@" --output /dev/fd/3 3>&1 >&2 | sha256sum >"$0"' "$WORK/digest-$netns" \
			"$BUILD/exs/exs-blast" --listen "$(address $netns)" -p 7530 --protocol rdma --once --small-max 262144 --credits 8
		wait_listener "$(address $netns)" 7530
	done
	for netns in a b; do
		start "client-$netns" $netns 20000 "$BUILD/exs/exs-blast" "$(address "$(other $netns)")" -p 7530 --protocol rdma --json \
			--mode persistent --input "$WORK/input" -s 262144 -n $((4 * $1)) -k 4 --small-max 262144 --credits 8
	done
	for netns in a b; do
		ended_well "client-$netns" 20000
		ended_well "server-$netns" 60
		cmp "$WORK/wanted" "$WORK/digest-$netns" || fail "the data received in $netns differs"
		note "$(grep '^{' "$WORK/client-$netns.log" | jq -r '"\(.receiver.mbit_s | floor) Mbit/s"')"
	done
	path
}

# netem and its options on both interfaces; without options none
path() { # [OPTION…]
	local netns
	for netns in a b; do
		within $netns tc qdisc del dev eth0 root 2>/dev/null || true
		[[ $# -eq 0 ]] || within $netns tc qdisc add dev eth0 root netem "$@"
	done
}

# A kernel with checkers takes ten times as long for each
start_large_pings() { # PORT COUNT
	local count=$2
	[[ $VM_KERNEL == debian ]] || count=$((count / 10))
	start server b 120 rping -s -a 10.77.0.2 -p "$1" -C "$count" -S 60000 -V
	wait_listener 10.77.0.2 "$1"
	start client a 120 rping -c -a 10.77.0.2 -p "$1" -C "$count" -S 60000 -V
	wait_for 20 'an association' has_assoc
}

dead_for_5_s() {
	start_large_pings 7521 300
	pause 0.3
	path loss 100%
	pause 5
	! is_gone client || fail 'the client had ended before the path was repaired'
	path
	ended_well client 100
	ended_well server 30
}

# Trap 1: space in the send buffer is reported by the wait queue alone. The peer reads nothing for 5 s in the middle of an
# RDMA Write, which is larger than what the socket takes.
shut_for_5_s() {
	local default
	default=$(</proc/sys/net/core/wmem_default)
	echo 32768 >/proc/sys/net/core/wmem_default
	start server b 190 rping -s -P -a 10.77.0.2 -p 7526 -S 60000
	wait_listener 10.77.0.2 7526
	echo "$default" >/proc/sys/net/core/wmem_default
	start peer a 180 "$TESTS/sctpwindow.py" 10.77.0.2 7526 120
	wait_line peer '^shut' 40
	pause 5
	wait_for 60 "more than 20000 bytes to wait in the server's socket for the peer, and its send buffer to be full" is_full 7526
	kill -HUP "${pid_of[peer]}"
	ended_well peer 50
	wait_for 30 'the end of all associations' no_assocs
}

is_full() { # PORT
	local much queued most
	read -r much queued most <<<"$(assocs b "$1" | awk '{ print $8, $(NF - 2), $(NF - 1) }')"
	((${much:-0} > 20000 && queued >= most))
}

mtu() { # [BYTES]
	local netns
	for netns in a b; do
		within $netns ip route change 10.77.0.0/24 dev eth0 ${1:+mtu lock "$1"}
	done
}

# Trap 10: what was cut for the larger packets has to be cut again
smaller_path() {
	capture wire a
	start_large_pings 7522 200
	mtu 1000
	ended_well client 100
	ended_well server 30
	mtu
	capture_end wire
	# the form of all chunks is checked as well. 1000 less 20 of IP, 12 of SCTP, 16 of the chunk, 2 of the DDP-SSN and 14 of
	# DDP and RDMAP
	on_the_wire wire 7522 'messages_first, (fpdus | map(.len) | must(max > 936; "no segment is larger than 936 at first"),
		must(.[-200:] | max <= 936; "a segment is larger than 936 at the end"))'
}

# A message of 512 bytes of private data and a segment of 516 bytes do not fit into one packet
small_packets() { # PORT
	mtu 552
	start server b 60 rping -s -a 10.77.0.2 -p "$1" -C 3 -S 10000 -V
	wait_listener 10.77.0.2 "$1"
	run_well client a 60 rping -c -a 10.77.0.2 -p "$1" -C 3 -S 10000 -v -V
	ended_well server 30
	mtu
	# it also ends well if its connection does
	[[ $(grep -c '^ping data: rdma-ping' "$WORK/client.log") -eq 3 ]] ||
		fail "the client received $(grep -c '^ping data: rdma-ping' "$WORK/client.log" || true) messages, not 3"
}

# b forwards to c over a link with an MTU of 1000. It answers a's first larger packet by ICMP, which arrives while a's socket is
# still owned by the thread that sends that packet.
router_with_smaller_mtu() { # PORT
	local before after
	ip netns add c
	ip link add eth1 netns b mtu 1000 type veth peer name eth0 netns c
	within b ip addr add 10.77.2.2/24 dev eth1
	within b ip link set dev eth1 up
	within c ip addr add 10.77.2.3/24 dev eth0
	within c ip link set eth0 mtu 1000 up
	within b sysctl -qw net.ipv4.ip_forward=1
	within a ip route add 10.77.2.0/24 via 10.77.0.2
	within c ip route add 10.77.0.0/24 via 10.77.2.2
	within a ping -q -c 1 -W 5 10.77.2.3 >/dev/null
	add_device c siw2
	before=$(fragmented_in_a)
	start server c 60 rping -s -a 10.77.2.3 -p "$1" -C 3 -S 60000 -V
	wait_listener 10.77.2.3 "$1"
	run_well client a 60 rping -c -a 10.77.2.3 -p "$1" -C 3 -S 60000 -V
	ended_well server 30
	after=$(fragmented_in_a)
	within a ip route get 10.77.2.3 >"$WORK/route.log"
	rdma link del siw2
	within b sysctl -qw net.ipv4.ip_forward=0
	within a ip route del 10.77.2.0/24
	ip netns del c
	has_line route 'mtu 1000' || fail "the path MTU from a to c is not 1000: $(<"$WORK/route.log")"
	is 'the number of fragmented messages of a' "$after" "$before"
}

# shellcheck disable=SC2016 # of awk
fragmented_in_a() {
	within a awk '$1 == "SctpFragUsrMsgs" { print $2 }' /proc/net/sctp/snmp
}

# Pages that SCTP has charged, of the whole machine
sctp_pages() {
	awk '$1 == "SCTP" { print $4 }' /proc/net/protocols
}

# 1500 * 2304 bytes behind a gap are 843 pages, of which each of two processors may keep 256 to itself. The
# chunks that wait in the socket are less than 60 pages.
holds_what_is_charged() { # PORT
	local before
	before=$(sctp_pages)
	start_responder "$1"
	start peer a 90 "$SCTPPEER" call 10.77.0.2 "$1" send=$INITIATE expect=0006 ssn=2 flood=1500 quiet=80 abort
	wait_for 60 'SCTP to have charged 330 pages' has_charged $((before + 330))
	kill -HUP "${pid_of[peer]}"
	ended_well peer 60
	wait_for 30 'the end of all associations' no_assocs
}

has_charged() { # PAGES
	(($(sctp_pages) >= $1))
}

# SCTP sends a chunk again for rto_max times one more than association_max_retrans: 3 s here
gap_ends_with_the_retries() { # PORT
	local name
	local -A before=()
	for name in rto_max association_max_retrans; do
		before[$name]=$(within b sysctl -n net.sctp.$name)
	done
	within b sysctl -qw net.sctp.rto_max=1000 net.sctp.association_max_retrans=2
	start_responder "$1"
	run peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" send=$INITIATE expect=0006 ssn=2 segment=0102 quiet=1 over=12
	for name in "${!before[@]}"; do
		within b sysctl -qw "net.sctp.$name=${before[$name]}"
	done
	[[ $STATUS -eq 0 ]] || fail "the peer ended with status $STATUS: $(<"$WORK/peer.log")"
	wait_for 30 'the end of all associations' no_assocs
}

# The receive side holds 10 MiB at most; a chunk costs it up to 2.3 times what it costs the sender
sends_no_more_than_it_holds() { # PORT
	local default most
	default=$(</proc/sys/net/core/wmem_default)
	echo 33554432 >/proc/sys/net/core/wmem_default
	start server b 60 rping -s -P -a 10.77.0.2 -p "$1"
	wait_listener 10.77.0.2 "$1"
	start client a 60 rping -c -a 10.77.0.2 -p "$1" -C 1000000
	wait_for 20 'an association' has_assoc
	echo "$default" >/proc/sys/net/core/wmem_default
	for netns in a b; do
		most=$(assocs $netns "$1" | awk '{ print $(NF - 1) }')
		((most * 23 / 10 <= 10 << 20)) ||
			fail "in $netns $most bytes may be in flight, which cost the receiver more than 10 MiB"
	done
	stop client
}

# Prints the send buffers of both sides in bytes
# shellcheck disable=SC2016 # of awk
send_buffers() { # PORT
	{ assocs a "$1" && assocs b "$1"; } | awk '{ print $(NF - 1) }' | paste -sd' '
}

# A send has been refused, or the buffers have become smaller instead
feels_the_lack() { # PORT SEND-BUFFERS
	grep -q 'sock_exceed_buf_limit:.*SK_MEM_SEND' "$TRACING/trace" || [[ $(send_buffers "$1") != "$2" ]]
}

# With the smallest limit, the most negative number, each request for memory fails. Linux 7.2 refuses none while SCTP
# has charged nothing: a peer leaves some behind a gap.
survives_a_lack_of_memory() { # PORT GAP-PORT
	local limits before felt=1 event=$TRACING/events/sock/sock_exceed_buf_limit/enable
	limits=$(</proc/sys/net/sctp/sctp_mem)
	start holder b 100 rping -s -P -a 10.77.0.2 -p "$2"
	wait_listener 10.77.0.2 "$2"
	start peer a 90 "$SCTPPEER" call 10.77.0.2 "$2" send=$INITIATE expect=0006 ssn=2 flood=1500 quiet=80 abort
	wait_for 60 'memory that SCTP has charged' has_charged 1
	start server b 100 rping -s -P -a 10.77.0.2 -p "$1" -S 60000
	wait_listener 10.77.0.2 "$1"
	start client a 90 rping -c -a 10.77.0.2 -p "$1" -C 1000000 -S 60000
	wait_for 20 'a connection' has_qps 3
	before=$(send_buffers "$1")
	echo 1 >"$event"
	echo '9223372036854775808 9223372036854775808 9223372036854775808' >/proc/sys/net/sctp/sctp_mem
	(wait_for 20 'a refused send' feels_the_lack "$1" "$before") || felt=0
	echo "$limits" >/proc/sys/net/sctp/sctp_mem
	echo 0 >"$event"
	((felt)) || exit 1
	is 'the size of the send buffers' "$(send_buffers "$1")" "$before"
	stop client
	run_well client a 30 rping -c -a 10.77.0.2 -p "$1" -C 2 -S 60000
}

# The Accept is acknowledged after three seconds; the program dies before
terminate_waits_for_the_accept() { # PORT
	capture wire b
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 50 --silent --delay 2000
	wait_listener 10.77.0.2 "$1"
	start peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" send=$INITIATE expect=0006 expect=0004 over=10
	wait_line server 'conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST' 30
	within a tc qdisc add dev eth0 root netem delay 3000ms
	wait_line server '^conn 1 accepted' 30
	stop server KILL
	ended_well peer 30
	path
	capture_end wire
	on_the_wire wire "$1" ends_with_terminate
}

# So is the Initiate, and the INIT, which is sent once
terminate_waits_for_the_initiate() { # PORT
	local rto
	rto=$(within a sysctl -n net.sctp.rto_initial)
	within a sysctl -qw net.sctp.rto_initial=10000
	capture wire a
	within b tc qdisc add dev eth0 root netem delay 3000ms
	start peer b 60 "$SCTPPEER" hear 10.77.0.2 "$1" expect=0005 expect=0004 over=10
	wait_ready peer listening
	start client a 60 rping -c -a 10.77.0.2 -p "$1" -C 2
	wait_for 20 'the Initiate' has_sent_something
	stop client KILL
	ended_well peer 30
	path
	within a sysctl -qw "net.sctp.rto_initial=$rto"
	capture_end wire
	on_the_wire wire "$1" ends_with_terminate
}

# The send buffer with all that SCTP adds is the third column from the end
has_sent_something() {
	local much
	much=$(assocs a | awk '{ print $(NF - 2) }')
	((${much:-0} > 0))
}

global_address_has_no_scope() { # PORT
	start server b 60 "$RDMAFIRST" server fd77::2 "$1" --timeout 50
	wait_listener fd77::2 "$1"
	run_well client a 40 "$RDMAFIRST" client fd77::2 "$1" --timeout 30
	ended_well server 30
	has_line server '^conn 1 peer scope 0$' ||
		fail "the server does not see a peer of scope 0: $(grep scope "$WORK/server.log")"
}

# Another program has the port of an address that the device gets later
logs_an_address_that_is_in_use() { # PORT
	local count
	start server b 60 rping -s -P -a 0.0.0.0 -p "$1"
	wait_listener 10.77.0.2 "$1"
	within b sysctl -qw net.ipv4.ip_nonlocal_bind=1
	start other b 50 python3 -c "import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
s.bind(('10.77.0.22', $1)); s.listen(1); print('listening', flush=True); time.sleep(45)"
	wait_ready other listening
	within b ip addr add 10.77.0.22/24 dev eth0
	wait_for 30 'the message about the address' log_says "cannot listen on 10.77.0.22:$1: -98"
	# a scan for further addresses may be under way; repeated ones would come after 1, 3 and 7 s at the latest
	pause 8
	count=$(dmesg | grep -cF "cannot listen on 10.77.0.22:$1: -98")
	((count <= 2)) || fail "the failure is logged $count times in 8 s, at most twice was expected"
	within b ip addr del 10.77.0.22/24 dev eth0
	within b sysctl -qw net.ipv4.ip_nonlocal_bind=0
	stop other
	stop server
}

# IPv6 detects duplicates of the address for 50 s, and does not report the end. Scans at 0, 1, 3, 7 and 11 s find it
# unusable; every 0.5 s would be 24.
scans_less_and_less_often() { # PORT
	local count
	start server b 60 rping -s -P -a :: -p "$1"
	wait_listener fd77::2 "$1"
	within b sysctl -qw net.ipv6.conf.eth0.dad_transmits=50
	echo 'p:scan siw:add_new_addrs' >>"$TRACING/kprobe_events"
	echo >"$TRACING/trace"
	echo 1 >"$TRACING/events/kprobes/scan/enable"
	within b ip addr add fd77::23/64 dev eth0
	pause 12
	count=$(grep -c ' scan: ' "$TRACING/trace")
	echo 0 >"$TRACING/events/kprobes/scan/enable"
	echo '-:scan' >>"$TRACING/kprobe_events"
	within b ip -6 addr show dev eth0 tentative >"$WORK/tentative.log"
	within b ip addr del fd77::23/64 dev eth0
	within b sysctl -qw net.ipv6.conf.eth0.dad_transmits=1
	stop server
	has_line tentative 'fd77::23' || fail 'the address has been usable before 12 s were over'
	((count >= 2 && count <= 8)) || fail "siw scanned for addresses $count times in 12 s, 2 to 8 were expected"
}

log_says() { # TEXT
	dmesg | grep -qF "$1"
}

# A peer that does not answer any more holds the association until the deadline only
dead_at_close() {
	start server b 60 rping -s -P -a 10.77.0.2 -p 7523
	wait_listener 10.77.0.2 7523
	start client a 60 rping -c -a 10.77.0.2 -p 7523 -C 1000000
	wait_for 20 'an association' has_assoc
	pause 1
	path loss 100%
	stop client KILL
	wait_for 9 "the end of the killed program's association" no_assoc_of_a
	path
	stop server KILL
	wait_for 9 'the end of the other association' no_assocs
}

no_assoc_of_a() {
	[[ -z $(assocs a) ]]
}

# The program has ended and its namespace has no name any more, but the association is still being shut down for 5 s
namespace_waits_for_the_shutdown() { # PORT
	local before took
	ip netns add c
	ip link add eth1 netns a type veth peer name eth0 netns c
	within a ip addr add 10.77.3.1/24 dev eth1
	within a ip link set eth1 up
	within c ip addr add 10.77.3.3/24 dev eth0
	within c ip link set eth0 up
	add_device a siw2 eth1
	add_device c siw3
	start server c 60 rping -s -P -a 10.77.3.3 -p "$1"
	wait_listener 10.77.3.3 "$1"
	start client a 60 rping -c -a 10.77.3.3 -p "$1" -C 1000000
	wait_for 20 'an association' has_assoc "$1"
	pause 1
	within c tc qdisc add dev eth0 root netem loss 100%
	before=$(now_ms)
	stop server KILL
	rdma link del siw3
	ip netns del c
	wait_for 20 'the end of the namespace' a_lacks_eth1
	took=$(($(now_ms) - before))
	((took >= 4500)) ||
		fail "the namespace was freed $took ms after the kill, before the end of its association (not less than 4500 was expected)"
	stop client KILL
	rdma link show | grep -q '^link siw2/' && rdma link del siw2
	wait_for 30 'the end of all associations' no_assocs
}

a_lacks_eth1() {
	! within a ip link show dev eth1 >"$WORK/link.log" 2>&1
}

# What a killed program has sent is on its way for 15 s, while a dead peer gets 5 s
closes_slowly() {
	start server b 120 rping -s -P -a 10.77.0.2 -p 7525 -S 60000
	wait_listener 10.77.0.2 7525
	capture wire a
	path rate 32kbit
	start client a 120 rping -c -a 10.77.0.2 -p 7525 -C 1000000 -S 60000
	wait_for 60 'the answer to a Read of 60000 bytes' has_much_to_send
	stop client KILL
	# an ABORT would come behind all that waits for the path
	wait_for 90 'the end of the association on both sides' no_assocs
	path
	capture_end wire
	# The first chunk of a packet is an ABORT
	tcpdump -r "$WORK/wire.pcap" 'dst port 7525 and sctp[12] = 6' >"$WORK/aborts.log" 2>/dev/null
	[[ ! -s $WORK/aborts.log ]] || fail 'the killed program has sent an ABORT'
}

# Each packet takes 2 s and is acknowledged, all of them take 3 min. The path is slow before the client starts: it would take
# minutes for an earlier answer, too.
closes_in_two_minutes() {
	local before took rto_min default netns
	start server b 300 rping -s -P -a 10.77.0.2 -p 7532 -S 60000
	wait_listener 10.77.0.2 7532
	mtu 750
	# several packets in one buffer would delay the next acknowledgement
	within a ip link set dev eth0 gso_max_size 750
	# so would packets sent twice, and an answer to ARP behind them
	rto_min=$(within a sysctl -n net.sctp.rto_min)
	for netns in a b; do
		within $netns sysctl -qw net.sctp.rto_min=30000
	done
	within b ip neigh replace 10.77.0.1 lladdr "$(within a cat /sys/class/net/eth0/address)" dev eth0
	within a tc qdisc add dev eth0 root netem rate 3kbit
	# the socket takes the whole answer
	default=$(</proc/sys/net/core/wmem_default)
	echo 1048576 >/proc/sys/net/core/wmem_default
	start client a 300 rping -c -a 10.77.0.2 -p 7532 -C 1000000 -S 60000
	wait_for 60 'the answer to a Read of 60000 bytes' has_much_to_send
	pause 2
	echo "$default" >/proc/sys/net/core/wmem_default
	stop client KILL
	before=$(now_ms)
	wait_for 130 'the end of the association of the killed program' no_assoc_of_a
	took=$(($(now_ms) - before))
	((took > 60000)) ||
		fail "the association ended $took ms after the kill, too early for the deadline of its shutdown (more than 60000)"
	path
	mtu
	within a ip link set dev eth0 gso_max_size 65536
	within b ip neigh del 10.77.0.1 dev eth0
	for netns in a b; do
		within $netns sysctl -qw "net.sctp.rto_min=$rto_min"
	done
	stop server KILL
	wait_for 60 'the end of the other association' no_assocs
}

# A peer that does not answer has 256 associations that are being shut down; others are aborted
closing_is_bounded() { # PORT
	"${TESTS%/*}/build/rdma" mpa set link siw0/1 streams 1
	start server b 330 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 300 --backlog 512
	wait_listener 10.77.0.2 "$1"
	start client a 330 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 300 --timeout 300
	wait_for 240 '300 associations' has_assocs "$1" 300
	pause 1
	path loss 100%
	stop server KILL
	wait_for 4 'at most 256 associations' has_at_most "$1" 256
	stop client KILL
	path
	wait_for 60 'the end of all associations' no_assocs
	"${TESTS%/*}/build/rdma" mpa reset link siw0/1
}

has_rules_for_routes() {
	within a ip rule add ipproto sctp dport 7534 blackhole 2>/dev/null && within a ip rule del ipproto sctp dport 7534 blackhole
}

# The place of an association without progress is for one whose peer takes data
closes_slowly_beside_others() { # PORT
	"${TESTS%/*}/build/rdma" mpa set link siw0/1 streams 1
	start others b 120 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 100 --backlog 512
	wait_listener 10.77.0.2 "$1"
	start crowd a 120 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 260 --timeout 100
	wait_for 60 '260 associations' has_assocs "$1" 260
	start server b 120 rping -s -P -a 10.77.0.2 -p $(($1 + 1)) -S 60000
	wait_listener 10.77.0.2 $(($1 + 1))
	within b tc qdisc add dev eth0 root netem rate 128kbit
	capture wire a
	start client a 120 rping -c -a 10.77.0.2 -p $(($1 + 1)) -C 1000000 -S 60000
	wait_for 60 'something to send' has_much_to_send_in_b $(($1 + 1))
	within a ip rule add ipproto sctp dport "$1" blackhole
	stop others KILL
	wait_for 4 'at most 256 associations' has_at_most "$1" 256
	stop server KILL
	wait_for 90 'the end of the association' has_none_in_b $(($1 + 1))
	path
	capture_end wire
	within a ip rule del ipproto sctp dport "$1" blackhole
	stop crowd KILL
	stop client KILL
	tcpdump -r "$WORK/wire.pcap" "src port $(($1 + 1)) and sctp[12] = 6" >"$WORK/aborts.log" 2>/dev/null
	[[ ! -s $WORK/aborts.log ]] || fail 'the killed server has sent an ABORT'
	wait_for 60 'the end of all associations' no_assocs
	"${TESTS%/*}/build/rdma" mpa reset link siw0/1
}

has_much_to_send_in_b() { # PORT
	local much
	much=$(assocs b "$1" | awk '{ print $(NF - 2) }')
	((${much:-0} > 20000))
}

has_none_in_b() { # PORT
	[[ -z $(assocs b "$1") ]]
}

has_at_most() { # PORT COUNT
	[[ $(assocs b "$1" | wc -l) -le $2 ]]
}

# The send buffer with all that SCTP adds is the third column from the end
has_much_to_send() {
	local much
	much=$(assocs a | awk '{ print $(NF - 2) }')
	((${much:-0} > 90000))
}

# connects COUNT: four at a time
connects() {
	local i
	start server b 15000 "$RDMAFIRST" server 10.77.0.2 7540 --count 0 --timeout 14000
	wait_listener 10.77.0.2 7540
	for i in 1 2 3 4; do
		start "client$i" a 15000 "$RDMAFIRST" client 10.77.0.2 7540 --times $(($1 / 4)) --expect first
	done
	for i in 1 2 3 4; do
		ended_well "client$i" 15000
		[[ $(grep -c '^received 5 first$' "$WORK/client$i.log") -eq $(($1 / 4)) ]] ||
			fail "client $i received $(grep -c '^received 5 first$' "$WORK/client$i.log" || true) messages, not $(($1 / 4))"
	done
	wait_for 30 'the end of all associations' no_assocs
	stop server
}

nobody_listens() {
	local before took
	before=$(now_ms)
	run client a 30 rping -c -a 10.77.0.2 -p 7524 -C 1
	took=$(($(now_ms) - before))
	[[ $STATUS -ne 0 && $STATUS -ne 124 ]] || fail "the client ended with status $STATUS, neither 0 nor 124 (timed out) was expected"
	((took < 10000)) || fail "the client took $took ms to end, not less than 10000"
	wait_for 5 'the end of all associations' no_assocs
}

# ---- a peer of RFC 5043: our responder

start_responder() { # PORT
	start server b 100 rping -s -P -a 10.77.0.2 -p "$1"
	wait_listener 10.77.0.2 "$1"
}

calls() { # PORT STEP…
	local port=$1
	shift
	start_responder "$port"
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$port" "$@"
	run_well client a 30 rping -c -a 10.77.0.2 -p "$port" -C 2
	wait_for 30 'the end of all associations' no_assocs
}

# Of 8 Initiates the program has one, and 2 wait for it
backlog_is_full() { # PORT
	local i terminated=0
	start server b 130 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 120 --backlog 2 --delay 90000
	wait_listener 10.77.0.2 "$1"
	for i in {1..8}; do
		start "peer$i" a 100 "$SCTPPEER" call 10.77.0.2 "$1" send=$INITIATE expect=0004 over=5
	done
	wait_for 60 'the end of 5 sessions' have_ended 5 peer
	start client a 20 "$RDMAFIRST" client 10.77.0.2 "$1" --timeout 15
	wait_line client 'RDMA_CM_EVENT_REJECTED status -104' 10
	stop server
	for i in {1..8}; do
		ended "peer$i" 30
		[[ $STATUS -eq 0 ]] && terminated=$((terminated + 1))
		! has_line "peer$i" 'ppid 17: 000[37]' || fail "Initiate $i was rejected: $(<"$WORK/peer$i.log")"
	done
	((terminated >= 5)) || fail "only $terminated of 8 got a Terminate"
}

have_ended() { # COUNT NAME: of NAME1, NAME2...
	local i count=0
	for i in {1..8}; do
		is_gone "$2$i" && count=$((count + 1))
	done
	((count >= $1))
}

demands_auth() { # PORT
	within b sysctl -qw net.sctp.auth_enable=1
	plays_raw "$1" auth 1 --expose --pages 32
	within b sysctl -qw net.sctp.auth_enable=0
}

a_chunk_is_missing() { # PORT
	plays_raw "$1" missing 1
	wait_line server '^conn 1 received 5 first' 10
	wait_line server '^conn 1 received 5 hello' 10
}

# An address may hold a quarter of a sixteenth of the memory, here some 20 MB
address_is_limited() { # PORT
	local i stay=0
	start server b 110 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 100 --silent
	wait_listener 10.77.0.2 "$1"
	for i in 1 2 3 4; do
		start "peer$i" a 90 "$SCTPPEER" call 10.77.0.2 "$1" send=$INITIATE expect=0006 ssn=2 flood=4000 quiet=5
	done
	for i in 1 2 3 4; do
		ended "peer$i" 100
		[[ $STATUS -ne 0 ]] || stay=$((stay + 1))
	done
	note "$stay of 4 sessions stayed"
	((stay > 0 && stay < 4)) || fail "$stay of 4 sessions stayed"
	stop server
	wait_for 30 'the end of all associations' no_assocs
}

# 28 segments of 1000 bytes are kept, 60 wait in the socket
goes_while_it_stalls() { # PORT
	local rdma=${TESTS%/*}/build/rdma
	timeout -k 5 60 "$rdma" mpa monitor >"$WORK/monitor.log" 2>&1 </dev/null &
	pid_of[monitor]=$!
	wait_for 20 'the monitor' monitor_is_on "$rdma"
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 50 --delay 30000
	wait_listener 10.77.0.2 "$1"
	run_well peer a 40 "$SCTPPEER" call 10.77.0.2 "$1" streams=1 send=$INITIATE quiet=1 flood=60 quiet=1 abort
	wait_line monitor "^failed link siw1/1" 8
	reset_default
	stop monitor
	stop server
}

ends_before_it_answers() { # PORT SIGNAL
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 50 --ignore undecided
	wait_listener 10.77.0.2 "$1"
	start peer a 40 "$SCTPPEER" call 10.77.0.2 "$1" send=${INITIATE}756e64656369646564 expect=0004 over=5
	wait_ready server 'conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST'
	stop server "$2"
	ended_well peer 30
	wait_for 30 'the end of all associations' no_assocs
}

has_requests() { # PORT COUNT
	[[ $(rdma resource show cm_id link siw1/1 | grep -c "src-addr 10\.77\.0\.2:$1 dst-addr 10\.") -ge $2 ]]
}

# The program is still busy with the first request, and never reads the second
dies_with_an_unread_request() { # PORT
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 50 --delay 30000
	wait_listener 10.77.0.2 "$1"
	start first a 40 "$SCTPPEER" call 10.77.0.2 "$1" send=$INITIATE expect=0004 over=5
	wait_ready server 'conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST'
	start second a 40 "$SCTPPEER" call 10.77.0.2 "$1" send=$INITIATE expect=0004 over=5
	wait_for 20 'the second request' has_requests "$1" 2
	stop server KILL
	ended_well first 30
	ended_well second 30
	wait_for 30 'the end of all associations' no_assocs
}

# siw is slow to accept: the association is being shut down by then, or is closed. Its Initiate is reported in either state.
closes_before_accept() { # PORT
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 50
	wait_listener 10.77.0.2 "$1"
	slow_down siw_sctp_accept "$([[ $VM_KERNEL == debian ]] && echo 200 || echo 60)"
	run_well peer a 40 "$SCTPPEER" call 10.77.0.2 "$1" send=$INITIATE
	wait_ready server 'conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST'
	speed_up
	stop server
	wait_for 30 'the end of all associations' no_assocs
}

# The peer shuts the association down while siw still processes what it held behind the gap
shuts_down_early() { # PORT
	start server b 80 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 70
	wait_listener 10.77.0.2 "$1"
	slow_down siw_tcp_rx_data 40
	run_well peer a 60 "$MPAPEER" run "$TESTS/wire/sctp-responder/ssn-filled-shutdown.txt" --llp sctp --stack kernel \
		--bind 10.77.0.1 --connect "10.77.0.2:$1"
	speed_up
	wait_line server '^conn 1 received 4 last' 20
	stop server
	wait_for 30 'the end of all associations' no_assocs
}

# The peer's machine starts anew: its association is another one, and the session was of the first
restarts() { # PORT
	start_responder "$1"
	start first a 60 "$SCTPPEER" call 10.77.0.2 "$1" from=7399 send=$INITIATE expect=0006 quiet=60
	wait_for 20 'an association' has_assoc
	pause 1
	path loss 100%
	stop first KILL
	wait_for 9 'the end of the first association' no_assoc_of_a
	path
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" from=7399 gone=5
	run_well client a 30 rping -c -a 10.77.0.2 -p "$1" -C 2
	wait_for 30 'the end of all associations' no_assocs
}

# The peer has ended the session. siw frees its chunks, slowly here: by then neither callbacks nor the reader see the restart.
restarts_during_close() { # PORT
	slow_down siw_ssn_drop 20
	plays_raw "$1" again 1
	speed_up
	stop server
	wait_for 30 'the end of all associations' no_assocs
}

# The program ends while its Accept is not acknowledged, so its Terminate waits. The peer's machine starts anew: the end must not
# wait for 5 s without progress, nor send the Terminate. An Accept that is sent again would get an ABORT before that.
restart_ends_a_disconnect() { # PORT
	local rto
	rto=$(within b sysctl -n net.sctp.rto_initial)
	within b sysctl -qw net.sctp.rto_initial=30000
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 50 --silent --delay 2000
	wait_listener 10.77.0.2 "$1"
	start first a 60 "$SCTPPEER" call 10.77.0.2 "$1" from=7399 send=$INITIATE expect=0006 quiet=60
	wait_line server '^conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST' 30
	within a tc qdisc add dev eth0 root netem loss 100%
	wait_line server '^conn 1 accepted' 30
	stop first KILL
	stop server KILL
	wait_for 9 'the end of the first association' no_assoc_of_a
	path
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" from=7399 gone=3
	within b sysctl -qw "net.sctp.rto_initial=$rto"
	wait_for 30 'the end of all associations' no_assocs
}

# ---- our initiator

hears() { # PORT STEP…
	local port=$1
	shift
	start peer b 60 "$SCTPPEER" hear 10.77.0.2 "$port" "$@"
	wait_ready peer listening
	run client a 60 rping -c -a 10.77.0.2 -p "$port" -C 2
	[[ $STATUS -ne 0 && $STATUS -ne 124 ]] || fail "the client ended with status $STATUS, neither 0 nor 124 (timed out) was expected"
	ended_well peer 30
	wait_for 30 'the end of all associations' no_assocs
}

port=7400
for netns in b a; do
	check "SC-02 SC-04 SC-07: rping over SCTP and IPv4 completes, server in namespace $netns" talk $netns $((++port))
	check "SC-02 SC-04 SC-07: rping over SCTP and IPv6 completes, server in namespace $netns" talk $netns $((++port)) 6
done
check 'ucmatose establishes 50 connections over SCTP' many
check 'ib_send_bw completes over SCTP' measure ib_send_bw 65536 200
check 'ib_write_bw completes over SCTP' measure ib_write_bw 65536 200
check 'ib_read_bw completes over SCTP' measure ib_read_bw 65536 200
check 'SCT-14: the responder sends the first message over SCTP' responder_first
check 'rdma resource shows llp sctp for a QP; a killed program leaves no association' shows_sctp
check 'rdma mpa show, rdma mpa monitor and tracepoints report llp sctp, and crc cannot be set' says_sctp
check 'SC-08: a wildcard listener announces one address to its peer' one_address
check 'a wildcard SCTP listener accepts on an address that is added later' later_address
check 'a wildcard SCTP listener accepts on an IPv6 address that is added later' later_address6
check 'SC-05: rping verifies its data with 2 % loss and 75 % of packets out of order' lossy
for size in 16 300 1024; do
	[[ $size -ne 16 && $only != *"$size MiB"* ]] ||
		check "SC-05: $size MiB each way arrive unchanged with 1 % loss and packets out of order" exchange $size
done
check 'rping over SCTP completes although the path loses all packets for 5 s' dead_for_5_s
check "an RDMA Write over SCTP completes although the peer's receive window is closed for 5 s" shut_for_5_s
check 'SC-03: DDP segments become smaller when the MTU of the path is lowered' smaller_path
check 'SC-03: DDP segments are not fragmented when a router reports a smaller MTU during a send' router_with_smaller_mtu 7537
check 'F108: rping over SCTP with 10,000 octets completes over a path MTU of 552' small_packets 7527
check 'F107: the SCTP send buffer is limited to the amount that our own receiver accepts' sends_no_more_than_it_holds 7528
check 'F147: an SCTP connection keeps the size of its send buffers when memory is short for a moment' survives_a_lack_of_memory 7541 7542
check "F114: the global IPv6 address of a peer is reported without a scope" global_address_has_no_scope 7529
check 'a wildcard SCTP listener logs a failure to listen on an address that is added later' logs_an_address_that_is_in_use 7531
if [[ -e $TRACING/kprobe_events ]]; then
	check 'a wildcard SCTP listener looks less and less often for the end of duplicate address detection' scans_less_and_less_often 7538
else
	note 'this kernel has no kprobes: the intervals between scans for addresses are not measured'
fi
check 'F111: a network namespace is freed only after the SCTP association of its killed server' namespace_waits_for_the_shutdown 7539
check 'the SCTP association of a program killed on a dead path ends within 9 s' dead_at_close
check 'the SCTP association of a killed program ends without an ABORT, after its data is sent' closes_slowly
[[ $only != *'two minutes'* ]] || check 'F112: an association in shutdown is closed within two minutes although its peer acknowledges data' closes_in_two_minutes
check 'F112: of 300 associations with a silent peer at most 256 remain in shutdown' closing_is_bounded 7533
if has_rules_for_routes; then
	check 'F122: 256 associations in shutdown without progress do not abort an association with progress' closes_slowly_beside_others 7534
else
	note 'this kernel has no rules for routes: F122 is left out'
fi
check 'connecting over SCTP without a listener fails within 10 s' nobody_listens
for count in 200 10000; do
	[[ $count -ne 200 && $only != *"$count connects"* ]] || check "$count connects over SCTP leave no association" connects $count
done

# 40 bytes of a DDP version that does not exist
headers=$(printf "00%.0s" {1..40})
accepted="send=$INITIATE expect=0006"
# A shared association discards a message that belongs to no session
alone=streams=1
# shellcheck disable=SC2086 # words of $accepted are steps
{
	check 'an association that its peer shuts down before siw accepts it leaves no association' closes_before_accept $((++port))
	check 'SC-05: chunks held behind a DDP-SSN gap are processed although the peer has shut the association down' shuts_down_early $((++port))
	check 'a peer restarted with its old port ends the old session, and clients can connect again' restarts $((++port))
	# kernels with checkers are too slow: the association ends after 5 s
	[[ $VM_KERNEL != debian ]] || check 'a peer that restarts while its ended session is closed gets an ABORT' restarts_during_close $((++port))
	[[ $VM_KERNEL != debian ]] ||
		check 'a restarted peer ends the association of a killed program, without a session Terminate' restart_ends_a_disconnect $((++port))
	check 'F105 SC-06: Initiates beyond the backlog get a session Terminate, a client gets -ECONNRESET' backlog_is_full $((++port))
	check 'F105 SC-06: an Initiate gets a session Terminate when the server is killed before it accepts' ends_before_it_answers $((++port)) KILL
	check 'F105 SC-06: an Initiate gets a session Terminate when the program destroys its id before it accepts' ends_before_it_answers $((++port)) TERM
	check 'F105 SC-06: an Initiate whose request no program has read gets a session Terminate when the server is killed' dies_with_an_unread_request $((++port))
	check 'F106: segments held after a DDP-SSN gap are charged to the memory of SCTP' holds_what_is_charged $((++port))
	check 'F121: a DDP segment that SCTP delivers in parts is received' parts_of_a_message $((++port)) 1
	check 'F106: a DDP segment may come 35 s after the next one if SCTP misses it' a_chunk_is_missing $((++port))
	# kernels with checkers are too slow: a gap lasts 30 s
	[[ $VM_KERNEL != debian ]] ||
		check 'F106: of four sessions of one remote address with 9 MB after a gap each, some end and some stay' address_is_limited $((++port))
	check 'SC-03: segments to a peer that requires SCTP AUTH chunks fit into the packets' demands_auth $((++port))
	check 'F123: an ABORT is detected while segments received before rdma_accept() wait in the socket' goes_while_it_stalls $((++port))
	check 'F106: a DDP-SSN gap ends the session after the time of all SCTP retransmissions' gap_ends_with_the_retries $((++port))
	check 'F109: a session Terminate is sent only when the Accept is acknowledged' terminate_waits_for_the_accept $((++port))
	check 'F109: a session Terminate is sent only when the Initiate is acknowledged' terminate_waits_for_the_initiate $((++port))
	check 'SCT-15 SCT-13: a session Terminate ends an accepted session' calls $((++port)) $accepted send=0004 over=5
	check 'SCT-19 S5: a session Terminate ends a session of plain Initiate and Accept' calls $((++port)) send=0001 expect=0002 send=0004 over=5
	check 'AMB-22: an Enhanced Initiate with A=1 gets an Enhanced Accept with A=1' calls $((++port)) send=00058008c008 expect=00068008 send=0004 over=5
	check 'SC-01: a peer without an adaptation indication is disconnected' calls $((++port)) adapt=0 over=5
	check 'SC-01: a peer with another adaptation indication is disconnected' calls $((++port)) adapt=2 over=5
	check 'SC-02: an Initiate in an ordered SCTP chunk gets a session Terminate' calls $((++port)) $alone ordered send=$INITIATE expect=0004 over=5
	check 'SC-02: a segment in an ordered SCTP chunk ends the session' calls $((++port)) $accepted ordered segment=0102 over=5
	check 'F108: a fragmented Initiate is accepted' calls $((++port)) maxseg=480 zeros=1,510 expect=0002 send=0004 over=5
	check 'SCT-03: an Initiate under the PPID of segments gets a session Terminate' calls $((++port)) $alone ppid=16 send=$INITIATE expect=0004 over=5
	check 'SCT-03: an Initiate under an unknown PPID gets a session Terminate' calls $((++port)) $alone ppid=18 send=$INITIATE expect=0004 over=5
	check 'SC-06: a segment before the Initiate gets a session Terminate' calls $((++port)) $alone segment=0102 expect=0004 over=5
	check 'SCT-18: a second Initiate in an accepted session ends the session' calls $((++port)) $accepted send=$INITIATE over=5
	check 'SCT-18: an Accept in place of the Initiate gets a session Terminate' calls $((++port)) $alone send=$ACCEPT expect=0004 over=5
	check 'SCT-06: a plain Initiate with 512 bytes of private data is accepted' calls $((++port)) zeros=1,512 expect=0002 send=0004 over=5
	check 'SCT-06: a plain Initiate with 513 bytes of private data gets a session Terminate' calls $((++port)) zeros=1,513 expect=0004 over=5
	check 'SCT-07: a session Terminate with private data is answered with a session Terminate' calls $((++port)) $accepted send=000400 expect=0004 over=5
	check 'SC-07: our session Terminate is sent although received segments are unread in the socket' calls $((++port)) $accepted send=000400 flood=30 expect=0004 over=5
	check 'SEC-04: an Enhanced Initiate without its IRD/ORD word gets a session Terminate' calls $((++port)) send=0005 expect=0004 over=5
	check 'a session message with an unknown function code gets a session Terminate' calls $((++port)) $alone send=0063 expect=0004 over=5
	check 'a session message with half a function code gets a session Terminate' calls $((++port)) $alone send=00 expect=0004 over=5
	check 'SC-05: the first message, with DDP-SSN 1, is not processed before DDP-SSN 0 arrives' calls $((++port)) ssn=1 send=$INITIATE quiet=2 ssn=0 send=0004 over=5
	check 'SC-05: a DDP-SSN used twice ends the session' calls $((++port)) $accepted ssn=0 segment=0102 over=5
	check 'SC-05: a DDP-SSN more than half the sequence space ahead ends the session' calls $((++port)) $accepted ssn=40000 segment=0102 over=5
	check 'SC-05: a flood of segments after a DDP-SSN gap ends the session' calls $((++port)) $accepted ssn=2 flood=20000 over=20
	check 'SC-05: a flood of segments before the Initiate gets a session Terminate' calls $((++port)) $alone ssn=1 flood=2000 expect=0004 over=20
	check 'a DDP segment shorter than its header ends the session' calls $((++port)) $accepted segment=4043 over=5
	check 'an empty DDP segment ends the session' calls $((++port)) $accepted segment= over=5
	check 'a segment of an unknown DDP version ends the session' calls $((++port)) $accepted segment="$headers" over=5
	check 'an ABORT after the Initiate leaves no association' calls $((++port)) send=$INITIATE abort
	check 'an ABORT after the Accept leaves no association' calls $((++port)) $accepted abort
	check 'SEC-08: an initiator that sends no Initiate is disconnected within 15 s' calls $((++port)) over=15

	check 'SCT-16: an Enhanced Reject to an Enhanced Initiate ends the session' hears $((++port)) expect=0005 send=0007000800086e6f over=5
	check 'AMB-20: an Enhanced Reject without its IRD/ORD word to an Enhanced Initiate ends the session' hears $((++port)) expect=0005 send=0007 over=5
	check 'a plain Reject to an Enhanced Initiate ends the session' hears $((++port)) expect=0005 send=0003 over=5
	check 'SCT-18: a plain Accept to an Enhanced Initiate ends the session' hears $((++port)) expect=0005 send=0002 expect=0004 over=5
	check 'SCT-17: a session Terminate in reply to an Enhanced Initiate ends the session' hears $((++port)) expect=0005 send=0004 over=5
	check 'SC-06: a segment before the Accept ends the session' hears $((++port)) expect=0005 segment=0102 expect=0004 over=5
	check "SCT-20: an Enhanced Accept with an ORD above the device's IRD limit ends the session" hears $((++port)) expect=0005 send=000600083ffe over=5
	check 'SC-01: an INIT-ACK without an adaptation indication ends the session' hears $((++port)) adapt=0 over=5
	check 'an ABORT in reply to the Initiate ends the session' hears $((++port)) expect=0005 abort
	check 'SEC-08: an unanswered Enhanced Initiate is followed by a session Terminate at the deadline' hears $((++port)) expect=0005 expect=0004 over=5
}
finish
