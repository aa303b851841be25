#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--stock --allow-splat] -- tests/badreply.sh [REGEX]
#
# A program connects with our initiator to a responder that answers badly, or not at all. The program
# soon gets one event with the failure, and our initiator follows RFC 6581 on the wire. REGEX picks
# the cases.
#
# Unmodified siw does not survive: pick one case at a time to see its effect.
#
# Runs as badreply: 300 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

port=7600

# played SCENARIO [NAME=VALUE…]: plays a scenario; the client's output is in its log, its status in STATUS
played() {
	local scenario=$1 setting
	local -a settings=()
	shift
	for setting in "$@"; do
		settings+=(--set "$setting")
	done
	start peer b 90 "$MPAPEER" run "$SCENARIOS/$scenario.txt" --listen "$(address b):$port" \
		--accept-within 60s "${settings[@]}"
	wait_ready peer '^listening on'
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --pdata hello --timeout 45
	ended peer 40
	[[ $STATUS -eq 0 ]] || fail "the responder: $(grep -A2 FAIL "$WORK/peer.log" | paste -sd' ' || true)"
}

# told EVENTS: the client's program got exactly one such event, and it was the last
told() {
	local events
	events=$(sed -nE 's/^event (RDMA_CM_EVENT_[A-Z_]+) status .*/\1/p' "$WORK/client.log" |
		grep -vE 'ADDR_RESOLVED|ROUTE_RESOLVED' | paste -sd' ') || true
	[[ $events =~ ^RDMA_CM_EVENT_($1)$ ]] || fail "the client's program got '$events', not $1"
	if grep -q 'status 0 ' "$WORK/client.log" && grep -qE "event RDMA_CM_EVENT_($1) status 0( |\$)" "$WORK/client.log"; then
		fail "status 0 with $1"
	fi
}

fails() { # SCENARIO [NAME=VALUE…]
	played "$@"
	told 'CONNECT_ERROR|UNREACHABLE|REJECTED'
}

fails_with() { # EVENTS SCENARIO [NAME=VALUE…]
	played "${@:2}"
	told "$1"
}

# Without a listener, rdma_connect() fails or an event tells the failure
refused() {
	run client a 30 "$RDMAFIRST" client "$(address b)" "$port" --timeout 8
	[[ $STATUS =~ ^[124]$ ]] || fail "the client ended with status $STATUS"
	has_line client 'Connection refused|event RDMA_CM_EVENT_(CONNECT_ERROR|UNREACHABLE|REJECTED) status -' ||
		fail 'the program got no event of the failure'
}

whole_reject() {
	fails_with REJECTED reply 'REPLY=reject rev=1 enhanced=0 pdata="no thanks"' ASKS=$asks
	has_line client 'RDMA_CM_EVENT_REJECTED .* pdata 9 6e6f207468616e6b73$' || fail "$(grep REJECTED "$WORK/client.log")"
}

# rdmafirst asks for depths of 4; the peer would take more reads (I5, S9)
depths_stay() { # IRD
	local -a settings=(--set "REPLY=enhanced ird=$1 ord=4")
	! has_negotiator || settings=(--set "REPLY=p2p rtr=write ird=$1 ord=4" --set 'RTR=expect write-rtr')
	start peer b 60 "$MPAPEER" run "$SCENARIOS/odd-responder.txt" --listen "$(address b):$port" "${settings[@]}" --set 'THEN=wait 20s'
	wait_ready peer '^listening on'
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --no-receive --timeout 20
	has_line client 'RDMA_CM_EVENT_ESTABLISHED status 0 responder_resources 4 initiator_depth 4 ' ||
		fail "$(grep -E 'ESTABLISHED|ERROR|UNREACH' "$WORK/client.log")"
}

# A program that destroys its id does not wait for a peer that does not answer
destroyed_in_time() {
	start peer b 90 "$MPAPEER" run "$SCENARIOS/hold-responders.txt" --listen "$(address b):$port" --accept-within 60s
	wait_ready peer '^listening on'
	start client a 60 "$RDMAFIRST" client "$(address b)" "$port" --side-by-side 1 --leave-qp --timeout 45
	wait_line client '^all have been started' 30
	sleep 0.3
	kill -TERM "${pid_of[client]}"
	wait_for 4 'the program to end' is_gone client
}

# A bad Reply, then a good connection
then_works() {
	fails reply 'REPLY=enhanced no-word pd-length=0'
	start server b 60 "$RDMAFIRST" server "$(address b)" $((port + 100))
	wait_ready server '^listening'
	run_well client a 40 "$RDMAFIRST" client "$(address b)" $((port + 100)) --expect first
	ended_well server 20
}

# bad CLAIM FUNCTION [ARG…]
bad() {
	port=$((port + 1))
	check "$@"
}

# unmodified siw asks for the client-server model
asks=p2p
has_negotiator || asks=enhanced

# ERR-09, SEC-04: bad frames
for length in 0 1 2 3; do
	bad "S4d: connecting fails on a Reply with S=1 and PD_Length $length" fails reply "REPLY=enhanced no-word pdata-len=$length" ASKS=$asks
done
bad 'S4: connecting fails on a Reply with PD_Length 513' fails reply 'REPLY=p2p rtr=write ird=8 ord=8 pd-length=513'
bad 'connecting fails on a Reply with PD_Length 65535' fails reply 'REPLY=p2p rtr=write ird=8 ord=8 pd-length=65535'
bad 'connecting fails on a Reply with PD_Length 65535 and 65535 bytes of data' fails reply 'REPLY=p2p rtr=write ird=8 ord=8 pdata-len=65531' 'END=close drain'
bad 'connecting fails on a Reply with the key of a Request' fails reply 'REPLY=p2p rtr=write ird=8 ord=8 key=request'
bad 'connecting fails on a Reply of Rev 3' fails reply 'REPLY=p2p rtr=write ird=8 ord=8 rev=3'
bad 'connecting fails on a plain accept of an enhanced Request (AMB-04)' fails reply 'REPLY=rev=1 enhanced=0 pdata=00080004'

bad 'connecting to a port without a listener fails' refused

# The stream ends too early, or not at all
bad 'connecting fails on half the header of a Reply, then FIN' fails reply 'REPLY=p2p rtr=write ird=8 ord=8 first=10' MORE=shutdown
bad 'S4b: connecting fails on 19 bytes of a Reply with a nonzero length, then FIN' fails reply 'REPLY=pd-length=256 first=19' MORE=shutdown
bad 'connecting fails on half the private data of a Reply, then FIN' fails reply 'REPLY=p2p rtr=write pdata-len=100 first=60' MORE=shutdown
bad 'connecting fails on half the header of a Reply, then RST' fails reply-reset 'REPLY=p2p rtr=write ird=8 ord=8 first=10'
bad 'connecting times out on half the header of a Reply' fails_with UNREACHABLE reply 'REPLY=p2p rtr=write ird=8 ord=8 first=10'
bad 'I3: without a Reply, a program that destroys its id (rdma_cm_id) ends within 4 s' destroyed_in_time
bad 'connecting times out without a Reply' fails_with UNREACHABLE no-reply THEN=flush
bad 'connecting fails on FIN instead of a Reply' fails no-reply THEN=shutdown
bad 'connecting fails on an FPDU directly after the Reply (SEC-06)' fails glued-reply

# Good frames with unacceptable terms
bad 'S22: a Reply with A=0 gets TERM 2/0/7 (RTR-12)' fails reply-term 'REPLY=p2p=0 ird=8 ord=8' TERM=2/0/7
bad 'a Reply with A=1 and no RTR type gets TERM 2/0/7 (RTR-11)' fails reply-term 'REPLY=p2p ird=8 ord=8' TERM=2/0/7
bad 'S17: a TERM during connection setup carries the negotiated CRC' fails reply-term 'REPLY=crc p2p=0 ird=8 ord=8' TERM=2/0/7
bad 'I5: a Reply with IRD 300: ESTABLISHED reports the IRD and ORD that the program requested' depths_stay 300
bad 'S9: a Reply with IRD 0x3FFE: ESTABLISHED reports the IRD and ORD that the program requested' depths_stay 0x3ffe
bad "a Reply with an ORD above our device's limit gets TERM 2/0/6 (IRD-15)" fails reply-term 'REPLY=p2p rtr=write ird=8 ord=1000' TERM=2/0/6

# Rejects
bad 'a reject without enhanced data is reported as REJECTED (AMB-03)' fails_with REJECTED reply 'REPLY=enhanced no-word reject'
bad 'S11: REJECTED reports all private data of a reject without enhanced data' whole_reject
bad 'S13: a Rev 1 reject with FIN and no private data is reported as REJECTED' fails_with REJECTED reply 'REPLY=reject rev=1 enhanced=0' MORE=shutdown ASKS=$asks
bad 'a reject with FIN is reported as REJECTED' fails_with REJECTED reply 'REPLY=reject p2p rtr=write ird=8 ord=8' MORE=shutdown
bad 'a connection is established after an earlier connection has failed' then_works
finish
