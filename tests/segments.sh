#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--stock] -- tests/segments.sh [REGEX]
#
# The sender hands TCP many FPDUs at once. Each segment that TCP makes of them begins with an FPDU
# (RFC 5044 section 5), also in a small window, after a loss and on a path of any MTU. With the setting
# `segment large` FPDUs are longer than segments.
#
# Runs as segments: 420 s
# Sample segments: large writes|MSS|lost|IPv6|share|one FPDU holds|while data flows|fallen
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

# The kernel cuts the packets, so a capture has them as they are on a wire
for netns in a b; do
	within $netns "$TESTS/segments.py" no-offload eth0
done
port=7400

# judged NETNS [LONGEST]: counts segments and FPDUs of the capture that was made in the namespace; with LONGEST, only
# after the last FPDU of more octets
judged() {
	capture_end wire
	run_well judge "$1" 60 "$TESTS/segments.py" judge "$WORK/wire.pcap" "$port" "${@:2}"
	note "$(<"$WORK/judge.log")"
}

# number NAME: one of these numbers
number() {
	sed -nE "s/.*\b$1 ([0-9]+).*/\1/p" "$WORK/judge.log"
}

# aligned NETNS LONGEST: what is true of the capture that was made in the namespace
aligned() {
	local longest=$2
	judged "$1"
	has_line judge ' not at an FPDU 0,' || fail "$(<"$WORK/judge.log")"
	has_line judge " longest $longest\$" || fail "$(<"$WORK/judge.log")"
}

writes() {
	capture wire a
	perftest_well ib_write_bw "$port" -n 20 -s 65536
	aligned a 1448
}

sends_of_odd_length() {
	capture wire a
	perftest_well ib_send_bw "$port" -n 50 -s 5003
	aligned a 1448
}

reads() {
	capture wire b
	perftest_well ib_read_bw "$port" -n 20 -s 65536
	aligned b 1448
}

# TCP makes a packet of each segment
on_a_link_without_offload() {
	within a ip link set eth0 gso_max_segs 1
	capture wire a
	perftest_well ib_write_bw "$port" -n 20 -s 65536
	within a ip link set eth0 gso_max_segs 65535
	aligned a 1448
}

in_a_small_window() {
	sysctl_of b tcp_rmem '4096 9000 9000'
	capture wire a
	perftest_well ib_write_bw "$port" -n 20 -s 65536
	aligned a 1448
}

# Data of rping -V is compared by the program
echo_well() { # TIMES ['' or 6]
	start server b 150 rping -s -a "$(address b "${2:-}")" -p "$port" -C "$1" -S 60000 -V
	wait_listener "$(address b "${2:-}")" "$port"
	run_well client a 150 rping -c -a "$(address b "${2:-}")" -p "$port" -C "$1" -S 60000 -V
	ended server 60
}

# A segment has 20 octets less than one over IPv4
over_ipv6() {
	capture wire a
	echo_well 10 6
	aligned a 1428
}

# rping has one connection. perftest makes a second one, and its server may not listen yet if packets are lost.
# netem drops what TCP hands over at once as a whole. These are some sixty packets, of which it must drop one.
after_loss() {
	within a tc qdisc add dev eth0 root netem loss 10% limit 1000
	capture wire a
	echo_well 30
	within a tc qdisc del dev eth0 root
	aligned a 1448
	has_line judge ', sent again [1-9]' || fail "nothing was lost: $(<"$WORK/judge.log")"
}

sent() {
	within a cat /sys/class/net/eth0/statistics/tx_packets
}

has_sent() { # PACKETS
	(($(sent) >= $1))
}

flows_or_ended() { # PACKETS
	has_sent "$1" || is_gone client
}

# flows PROGRAM OPTION…: as perftest_well, but returns while data flows from a to b
flows() {
	local before try
	before=$(sent)
	for try in 1 2 3; do
		start server b 150 "$1" -d siw1 -R -F -p "$port" "${@:2}"
		wait_listener "$(address b)" "$port"
		start client a 150 "$1" -d siw0 -R -F -p "$port" "${@:2}" "$(address b)"
		wait_for 60 'data to flow' flows_or_ended $((before + 500))
		is_gone client || return 0
		note "client $try ended: $(tail -n 1 "$WORK/client.log")"
		ended client 1
		stop server
	done
	fail 'no data flows'
}

# All packets carry an option of 4 to 12 octets more
with_accurate_ecn() {
	sysctl_of a tcp_ecn 3
	sysctl_of b tcp_ecn 3
	capture wire a
	perftest_well ib_write_bw "$port" -n 20 -s 65536
	sysctl_of a tcp_ecn 2
	sysctl_of b tcp_ecn 2
	judged a
	has_line judge ' not at an FPDU 0,' || fail "$(<"$WORK/judge.log")"
}

# What TCP has at that time is cut anew, and FPDUs of the new length follow: MTU 1000 as below. Not that of the route: a
# socket that is idle then has a dead route, with an MTU of 68, until it has sent.
mtu_falls() {
	capture wire a
	flows ib_write_bw -s 65536 -n 400
	within a ip link set eth0 mtu 1000
	ended_well client 100
	ended_well server 60
	within a ip link set eth0 mtu 1500
	judged a 948
	has_line judge ' not at an FPDU 0,' || fail "$(<"$WORK/judge.log")"
	(($(number segments) > 500 && $(number longest) == 948)) || fail "$(<"$WORK/judge.log")"
}

# Each octet is a packet, and waits for its acknowledgment
in_a_window_of_one_octet() {
	within b ip route change 10.77.0.0/24 dev eth0 src "$(address b)" window 1
	capture wire a
	start server b 150 rping -s -a "$(address b)" -p "$port" -C 1 -S 40 -V
	wait_listener "$(address b)" "$port"
	run_well client a 150 rping -c -a "$(address b)" -p "$port" -C 1 -S 40 -V
	ended server 60
	within b ip route change 10.77.0.0/24 dev eth0 src "$(address b)"
	judged a
	(($(number segments) > 100)) || fail "the window is larger: $(<"$WORK/judge.log")"
}

# Two seconds: TCP sends again meanwhile, and siw's batches wait
without_acknowledgments() {
	flows ib_write_bw -s 65536 -n 400
	within b tc qdisc add dev eth0 root netem loss 100%
	sleep 2
	within b tc qdisc del dev eth0 root
	ended_well client 100
	ended_well server 60
}

# Nobody waits for the program of the other end: perftest's server would for ever
device_goes() {
	flows ib_write_bw -s 65536 -D 60
	run_well remove a 20 rdma link del siw0
	stop client KILL
	stop server KILL
	add_device a siw0
}

are_disconnected() {
	[[ $(established) -eq 0 ]]
}

killed() { # client|server
	flows ib_write_bw -s 65536 -D 60
	stop "$1" KILL
	wait_for 20 'the end of the connection' are_disconnected
	stop client KILL
	stop server KILL
}

# MTU 1000, less 52 octets for IPv4 and TCP with timestamps, is 948; of MTU 998 it is 946, which is no multiple of 4
on_a_narrow_path() { # MTU LONGEST
	within a ip route change 10.77.0.0/24 dev eth0 src "$(address a)" mtu "$1"
	capture wire a
	perftest_well ib_write_bw "$port" -n 10 -s 65536
	within a ip route change 10.77.0.0/24 dev eth0 src "$(address a)"
	aligned a "$2"
}

# The receiver announces an MSS of 88, which holds timestamps, too
with_a_tiny_mss() {
	within b ip route change 10.77.0.0/24 dev eth0 src "$(address b)" advmss 88
	capture wire a
	perftest_well ib_write_bw "$port" -n 5 -s 16384
	within b ip route change 10.77.0.0/24 dev eth0 src "$(address b)"
	judged a
	has_line judge ' not at an FPDU 0,' || fail "$(<"$WORK/judge.log")"
	(($(number longest) <= 88)) || fail "a segment has $(number longest) octets"
}

# A packet of TCP holds fewer pages than a batch would
with_few_fragments() {
	local before
	before=$(</proc/sys/net/core/max_skb_frags)
	echo 4 >/proc/sys/net/core/max_skb_frags
	capture wire a
	perftest_well ib_write_bw "$port" -n 20 -s 65536
	echo "$before" >/proc/sys/net/core/max_skb_frags
	aligned a 1448
}

# A Write of 64 octets is an FPDU of 84 (RFC 5040 section 4.3), of which a segment of 1448 holds 17
lists_of_small_writes() {
	capture wire a
	perftest_well ib_write_bw "$port" -n 512 -s 64 -l 64
	aligned a $((17 * 84))
	(($(number segments) * 4 < $(number FPDUs))) || fail 'hardly any FPDUs share a segment'
}

# A message of 60000 octets fits into one FPDU, which has a header of 14 or 18 octets and a CRC
large_fpdus() {
	mpa set default segment large
	capture wire a
	echo_well 10
	judged a
	mpa reset default
	(($(number largest) > 60000)) || fail 'no FPDU is large'
	(($(number longest) == 1448)) || fail "segments have $(number longest) octets"
}

# 30 messages of 60000 octets are 1243 segments or more each way: some of them are lost. With loss in both directions
# acknowledgments are lost, too, and both ends report what has come by SACK
large_fpdus_after_loss() { # PERCENT NETNS…
	local netns
	mpa set default segment large
	for netns in "${@:2}"; do
		within "$netns" tc qdisc add dev eth0 root netem loss "$1%" limit 1000
	done
	capture wire a
	echo_well 30
	for netns in "${@:2}"; do
		within "$netns" tc qdisc del dev eth0 root
	done
	judged a
	mpa reset default
	(($(number largest) > 60000)) || fail 'no FPDU is large'
	has_line judge ', sent again [1-9]' || fail "nothing was lost: $(<"$WORK/judge.log")"
}

# TCP makes no packet that is longer than half of the window, so FPDUs may be as short as a segment
large_fpdus_in_a_small_window() {
	sysctl_of b tcp_rmem '4096 9000 9000'
	mpa set default segment large
	echo_well 5
	mpa reset default
}

# The setting is of the end that sends
large_one_way() {
	mpa set link siw1/1 segment large
	capture wire a
	perftest_well ib_write_bw "$port" -n 20 -s 65536
	mpa reset link siw1/1
	aligned a 1448
}

seg() { # CLAIM FUNCTION [ARG…]
	port=$((port + 1))
	check "$@"
}

seg 'each TCP segment of large writes begins with an FPDU' writes
seg 'each TCP segment of Sends whose length is no multiple of four begins with an FPDU' sends_of_odd_length
seg 'each TCP segment of Read Responses begins with an FPDU' reads
seg 'each TCP segment begins with an FPDU over IPv6' over_ipv6
seg 'each TCP segment of large writes begins with an FPDU on a link without segmentation offload' on_a_link_without_offload
seg 'each TCP segment begins with an FPDU on a path with an MTU of 1000' on_a_narrow_path 1000 948
seg 'each TCP segment begins with an FPDU if the MSS is no multiple of four' on_a_narrow_path 998 944
seg 'each TCP segment begins with an FPDU although packets are lost' after_loss
seg 'each TCP segment begins with an FPDU with an MSS of 88' with_a_tiny_mss
if sysctl_of a tcp_ecn 3 2>/dev/null; then
	sysctl_of a tcp_ecn 2
	seg 'each TCP segment begins with an FPDU with accurate ECN' with_accurate_ecn
fi
seg 'each TCP segment begins with an FPDU again after the MTU of the path has fallen' mtu_falls
seg '40 octets arrive unchanged in a receive window of one octet' in_a_window_of_one_octet
seg 'data flows again after 2 s without acknowledgments' without_acknowledgments
seg 'rdma link del succeeds while data flows' device_goes
seg 'the connection ends when the program is killed while it sends' killed client
seg 'the connection ends when the program that is written to is killed' killed server
seg 'small RDMA Writes that are posted together share TCP segments' lists_of_small_writes
seg 'setting segment large: one FPDU holds a message of 60000 octets' large_fpdus
seg 'setting segment large: messages of 60000 octets arrive unchanged although packets are lost' large_fpdus_after_loss 10 a
seg 'setting segment large: messages of 60000 octets arrive unchanged although packets are lost in both directions' large_fpdus_after_loss 5 a b
seg "setting segment large at the receiver alone does not change the sender's FPDUs" large_one_way
seg 'F160: each TCP segment begins with an FPDU if net.core.max_skb_frags is 4' with_few_fragments
# The window stays small from here on
seg 'each TCP segment begins with an FPDU in a receive window of 9000 octets' in_a_small_window
seg 'setting segment large: messages of 60000 octets arrive unchanged in a receive window of 9000 octets' large_fpdus_in_a_small_window
finish
