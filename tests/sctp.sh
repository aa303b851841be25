#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --llp sctp -- tests/sctp.sh [REGEX]
#
# iWARP over SCTP (RFC 5043, RFC 6581 section 7): programs, what is on the wire, hostile peers in both
# roles, loss, and the end of associations. SCT-, SC- and AMB- name rows of the conformance matrix.
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

PEER=$TESTS/sctppeer.py

# Messages: a client-server Enhanced Initiate and Accept with depths of 8 (S1 and S2 with A=0)
INITIATE=000500080008
ACCEPT=000600080008

assocs() { # NETNS
	within "$1" cat /proc/net/sctp/assocs | tail -n +2
}

no_assocs() {
	[[ -z $(assocs a)$(assocs b) ]]
}

capture_sctp() { # NAME NETNS
	start "tcpdump-$1" "$2" 300 tcpdump -Z root -U --immediate-mode -s 65535 -B 16384 -i eth0 -w "$WORK/$1.pcap" sctp
	wait_line "tcpdump-$1" 'listening on' 30
}

# ---- programs

talk() { # NETNS-OF-SERVER PORT [6]
	local to
	to=$(address "$1" "${3:-}")
	capture_sctp wire "$1"
	start server "$1" 60 rping -s -a "$to" -p "$2" -C 10 -V
	wait_listener "$to" "$2"
	run_well client "$(other "$1")" 60 rping -c -a "$to" -p "$2" -C 10 -V
	ended_well server 30
	capture_end wire
	"$PEER" judge "$WORK/wire.pcap" >"$WORK/judge.log" || fail "on the wire: $(paste -sd'|' "$WORK/judge.log")"
	wait_for 10 'the end of all associations' no_assocs
}

many() {
	start server b 120 ucmatose -b 10.77.0.2 -p 7470 -c 50 -C 10 -S 1000
	wait_listener 10.77.0.2 7470
	run_well client a 120 ucmatose -s 10.77.0.2 -p 7470 -c 50 -C 10 -S 1000
	ended_well server 30
}

# perftest exchanges its parameters by RDMA connections, too
measure() { # PROGRAM SIZE COUNT
	start server b 120 "$1" -R -d siw1 -s "$2" -n "$3" -F
	wait_listener 0.0.0.0 18515
	run_well client a 120 "$1" -R -d siw0 -s "$2" -n "$3" -F 10.77.0.2
	ended_well server 30
}

responder_first() {
	start server b 60 "$RDMAFIRST" server 10.77.0.2 7500 --send first
	wait_listener 10.77.0.2 7500
	run_well client a 40 "$RDMAFIRST" client 10.77.0.2 7500 --expect first --timeout 30
	has_line client '^received 5 first$' || fail 'the client received something else'
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

# ---- addresses (SC-08)

one_address() {
	within b ip addr add 10.77.1.2/24 dev eth0
	start server b 60 rping -s -P -a 0.0.0.0 -p 7510
	wait_listener 10.77.0.2 7510
	start client a 60 rping -c -a 10.77.0.2 -p 7510 -C 1000000
	wait_for 20 'an association' has_assoc
	# LADDRS <-> *RADDRS
	if assocs a | grep -q '10.77.1.2' || assocs b | grep '10.77.0.1' | grep -q '10.77.1.2'; then
		fail "the peer learns another address: $(assocs a)"
	fi
	stop client
	within b ip addr del 10.77.1.2/24 dev eth0
}

has_assoc() {
	[[ -n $(assocs a) ]]
}

later_address() {
	start server b 60 rping -s -P -a 0.0.0.0 -p 7511
	wait_listener 10.77.0.2 7511
	within b ip addr add 10.77.0.22/24 dev eth0
	wait_for 10 'a socket of the new address' has_socket 7511 10.77.0.22
	run_well client a 30 rping -c -a 10.77.0.22 -p 7511 -C 2
	within b ip addr del 10.77.0.22/24 dev eth0
}

# IPv6 looks for duplicates of an address first
later_address6() {
	start server b 60 rping -s -P -a :: -p 7512
	wait_listener fd77::22 7512
	within b ip addr add fd77::22/64 dev eth0
	wait_for 10 'a socket of the new address' has_socket 7512 fd77:0000:0000:0000:0000:0000:0000:0022
	run_well client a 30 rping -c -a fd77::22 -p 7512 -C 2
	within b ip addr del fd77::22/64 dev eth0
}

has_socket() { # PORT ADDRESS: of a listener in b
	grep -qE " 10 +[0-9]+ +$1 .* $2( |$)" <(within b cat /proc/net/sctp/eps)
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

# Trap 1: space in the send buffer is reported by the wait queue alone
dead_for_5_s() {
	start_large_pings 7521 300
	pause 0.3
	path loss 100%
	pause 5
	path
	ended_well client 100
	ended_well server 30
}

mtu() { # [BYTES]
	local netns
	for netns in a b; do
		within $netns ip route change 10.77.0.0/24 dev eth0 ${1:+mtu lock "$1"}
	done
}

# Trap 10: what was cut for the larger packets has to be cut again
smaller_path() {
	start_large_pings 7522 200
	mtu 1000
	ended_well client 100
	ended_well server 30
	mtu
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

# What a killed program has sent is on its way for 15 s, while a dead peer gets 5 s
closes_slowly() {
	start server b 120 rping -s -P -a 10.77.0.2 -p 7525 -S 60000
	wait_listener 10.77.0.2 7525
	capture_sctp wire a
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
	[[ ! -s $WORK/aborts.log ]] || fail 'the association was aborted'
}

# The send buffer with all that SCTP adds is the third column from the end
has_much_to_send() {
	local much
	much=$(assocs a | awk '{ print $(NF - 2) }')
	((${much:-0} > 90000))
}

nobody_listens() {
	local before
	before=$(now_ms)
	run client a 30 rping -c -a 10.77.0.2 -p 7524 -C 1
	[[ $STATUS -ne 0 && $STATUS -ne 124 ]] || fail "the client ended with status $STATUS"
	(($(now_ms) - before < 10000)) || fail 'it took 10 s and more'
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
	run_well peer a 60 "$PEER" call 10.77.0.2 "$port" "$@"
	run_well client a 30 rping -c -a 10.77.0.2 -p "$port" -C 2
	wait_for 10 'the end of all associations' no_assocs
}

# The peer's machine starts anew: its association is another one, and the session was of the first
restarts() { # PORT
	start_responder "$1"
	start first a 60 "$PEER" call 10.77.0.2 "$1" from=7399 send=$INITIATE expect=0006 quiet=60
	wait_for 20 'an association' has_assoc
	pause 1
	path loss 100%
	stop first KILL
	wait_for 9 'the end of the first association' no_assoc_of_a
	path
	run_well peer a 60 "$PEER" call 10.77.0.2 "$1" from=7399 over=5
	run_well client a 30 rping -c -a 10.77.0.2 -p "$1" -C 2
	wait_for 10 'the end of all associations' no_assocs
}

# ---- our initiator

hears() { # PORT STEP…
	local port=$1
	shift
	start peer b 60 "$PEER" hear 10.77.0.2 "$port" "$@"
	wait_line peer listening 20
	run client a 60 rping -c -a 10.77.0.2 -p "$port" -C 2
	[[ $STATUS -ne 0 && $STATUS -ne 124 ]] || fail "the client ended with status $STATUS"
	ended_well peer 30
	wait_for 10 'the end of all associations' no_assocs
}

port=7400
for netns in b a; do
	check "SC-02: rping, server in $netns" talk $netns $((++port))
	check "SC-02: rping over IPv6, server in $netns" talk $netns $((++port)) 6
done
check 'ucmatose, 50 connections' many
check 'ib_send_bw' measure ib_send_bw 65536 200
check 'ib_write_bw' measure ib_write_bw 65536 200
check 'ib_read_bw' measure ib_read_bw 65536 200
check 'SCT-14: the responder sends first' responder_first
check 'rdma resource says sctp; a killed program leaves no association' shows_sctp
check 'SC-08: a wildcard listener tells one address' one_address
check 'a wildcard listener hears an address that is added later' later_address
check 'a wildcard listener hears an IPv6 address that is added later' later_address6
check 'SC-05: 2 % loss and 75 % of packets out of order' lossy
check 'the path is dead for 5 s in the middle of RDMA Reads and Writes' dead_for_5_s
check 'the path takes only smaller packets from now on' smaller_path
check 'the path is dead when a program is killed' dead_at_close
check 'a program ends before all it has sent arrives' closes_slowly
check 'nobody listens' nobody_listens

# 40 bytes of a DDP version that does not exist
headers=$(printf "00%.0s" {1..40})
accepted="send=$INITIATE expect=0006"
# shellcheck disable=SC2086 # words of $accepted are steps
{
	check 'a peer that starts anew' restarts $((++port))
	check 'SCT-15 SCT-13: 5, 6, 4' calls $((++port)) $accepted send=0004 over=5
	check 'SCT-19 S5: 1, 2, 4' calls $((++port)) send=0001 expect=0002 send=0004 over=5
	check 'AMB-22: A=1, 6 with A=1' calls $((++port)) send=00058008c008 expect=00068008 send=0004 over=5
	check 'SC-01: no adaptation indication' calls $((++port)) adapt=0 over=5
	check 'SC-01: another adaptation indication' calls $((++port)) adapt=2 over=5
	check 'SC-02: an ordered Initiate' calls $((++port)) ordered send=$INITIATE expect=0004 over=5
	check 'SC-02: an ordered segment' calls $((++port)) $accepted ordered segment=0102 over=5
	check 'SC-02: a fragmented Initiate' calls $((++port)) maxseg=480 zeros=1,510 expect=0004 over=5
	check 'SCT-03: an Initiate as a segment' calls $((++port)) ppid=16 send=$INITIATE expect=0004 over=5
	check 'SCT-03: a third PPID' calls $((++port)) ppid=18 send=$INITIATE expect=0004 over=5
	check 'SC-06: a segment before the Initiate' calls $((++port)) segment=0102 expect=0004 over=5
	check 'SCT-18: a second Initiate' calls $((++port)) $accepted send=$INITIATE over=5
	check 'SCT-18: an Accept as Initiate' calls $((++port)) send=$ACCEPT expect=0004 over=5
	check 'SCT-06: 512 bytes of private data' calls $((++port)) zeros=1,512 expect=0002 send=0004 over=5
	check 'SCT-06: 513 bytes of private data' calls $((++port)) zeros=1,513 expect=0004 over=5
	check 'SCT-07: a Terminate with private data' calls $((++port)) $accepted send=000400 expect=0004 over=5
	check 'our Terminate arrives, though we have not read all' calls $((++port)) $accepted send=000400 flood=30 expect=0004 over=5
	check 'SEC-04: an Enhanced Initiate without its word' calls $((++port)) send=0005 expect=0004 over=5
	check 'an unknown function code' calls $((++port)) send=0063 expect=0004 over=5
	check 'half a function code' calls $((++port)) send=00 expect=0004 over=5
	check 'SC-05: the first DDP-SSN is 1' calls $((++port)) ssn=1 send=$INITIATE quiet=2 ssn=0 send=0004 over=5
	check 'SC-05: a DDP-SSN twice' calls $((++port)) $accepted ssn=0 segment=0102 over=5
	check 'SC-05: a DDP-SSN of the other half' calls $((++port)) $accepted ssn=40000 segment=0102 over=5
	check 'SC-05: a flood behind a gap' calls $((++port)) $accepted ssn=2 flood=20000 over=20
	check 'SC-05: a flood behind a gap before the Initiate' calls $((++port)) ssn=1 flood=2000 over=20
	check 'a segment shorter than a header' calls $((++port)) $accepted segment=4043 over=5
	check 'an empty segment' calls $((++port)) $accepted segment= over=5
	check 'a segment of an unknown version' calls $((++port)) $accepted segment="$headers" over=5
	check 'an ABORT after the Initiate' calls $((++port)) send=$INITIATE abort
	check 'an ABORT after the Accept' calls $((++port)) $accepted abort
	check 'SEC-08: a silent initiator' calls $((++port)) over=15

	check 'SCT-16: 7 answers 5' hears $((++port)) expect=0005 send=0007000800086e6f over=5
	check 'AMB-20: 7 without its word answers 5' hears $((++port)) expect=0005 send=0007 over=5
	check '3 answers 5: not in any form' hears $((++port)) expect=0005 send=0003 over=5
	check 'SCT-18: 2 answers 5' hears $((++port)) expect=0005 send=0002 expect=0004 over=5
	check 'SCT-17: 4 answers 5' hears $((++port)) expect=0005 send=0004 over=5
	check 'SC-06: a segment before the Accept' hears $((++port)) expect=0005 segment=0102 expect=0004 over=5
	check 'SCT-20: the IRD is too small' hears $((++port)) expect=0005 send=000600083ffe over=5
	check 'SC-01: no indication in INIT-ACK' hears $((++port)) adapt=0 over=5
	check 'an ABORT as answer' hears $((++port)) expect=0005 abort
	check 'SEC-08: no answer' hears $((++port)) expect=0005 expect=0004 over=5
}
finish
