#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--stock --allow-splat] -- tests/badfpdu.sh [REGEX]
#
# Peers and programs that misbehave once they are connected: the kernel does not break, a program's
# work requests complete, and its memory is free at the end. Connections are client-server, so that
# unmodified siw can be compared; it does not survive some cases. REGEX picks the cases.
#
# Runs as badfpdu: 450 s
# Sample debian/badfpdu: F(4|11|14|15|19|20|58|61|66|73|91|115)
# Sample debug/badfpdu: F(1|2|8|12|31|33):|F3:.*opcode|F9|F18.*key
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

# Seconds that an honest initiator may have to wait
PROMPT=8
[[ $VM_KERNEL != debug ]] || PROMPT=20
readonly PROMPT
port=7900

serve() { # [OPTION…]
	start server b 150 "$RDMAFIRST" server "$(address b)" "$port" --count 0 --timeout 120 "$@"
	wait_ready server '^listening'
}

good() {
	run client a 40 "$RDMAFIRST" client "$(address b)" "$port" --expect first --timeout $PROMPT
	[[ $STATUS -eq 0 ]] || fail "an honest client ended with status $STATUS"
}

no_warning() {
	if dmesg | grep -qE 'WARNING:|BUG:|Oops'; then
		fail "the kernel reports: $(dmesg | grep -m 1 -E 'WARNING:|BUG:|Oops')"
	fi
}

# A bad peer against our responder
peer() { # NAME=VALUE…
	peer_of '' "$@"
}

peer_of() { # OPTION-OF-THE-SERVER NAME=VALUE…
	local setting option=$1
	shift
	local -a settings=()
	for setting in "$@"; do
		settings+=(--set "$setting")
	done
	# shellcheck disable=SC2086 # perhaps none
	serve $option
	run peer a 60 "$MPAPEER" run "$SCENARIOS/established.txt" --connect "$(address b):$port" "${settings[@]}"
	[[ $STATUS -eq 0 ]] || fail "the initiator: $(grep -A2 FAIL "$WORK/peer.log" | paste -sd' ' || true)"
	wait_line server '^conn 1 over' 30
	has_line server 'never completed' && fail 'a work request never completed'
	no_warning
	good
	stop server
	has_line server '^pinned at the end: 0 kB' || fail "$(grep pinned "$WORK/server.log")"
}

# odd WHAT: an odd program at a good responder; its log has the status of its work requests
odd() { # WHAT [OPTION-OF-THE-SERVER…]
	capture wire a
	serve --expose "${@:2}"
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --odd "$1" --timeout 20
	[[ $STATUS -eq 0 ]] || fail "the client ended with status $STATUS"
	has_line client "^$1 was posted" || fail 'it was not posted'
	has_line client '^pinned at the end: 0 kB' || fail "the client's memory: $(grep pinned "$WORK/client.log")"
	stop server
	has_line server '^pinned at the end: 0 kB' || fail "the server's memory: $(grep pinned "$WORK/server.log")"
	capture_end wire
	no_warning
}

all_completed() {
	has_line client '^0 work requests have not completed' || fail "$(grep 'not completed' "$WORK/client.log")"
}

# terminated L/T/C [HEX]: our responder sent this TERM; the header in the TERM ends in HEX
terminated() {
	local term
	term=$("$MPAPEER" decode --json --port "$port" "$WORK/wire.pcap" |
		jq -r '.[0].events[] | select(.kind == "term" and .from == "responder") | "\(.layer)/\(.etype)/\(.code) \(.hex)"')
	[[ $term == "$1 "* ]] || fail "TERM '$term', not $1"
	[[ $term =~ ${2:-.} ]] || fail "TERM '$term' without $2"
}

odd_completes() { # WHAT
	odd "$1"
	all_completed
}

# The flush tells of a completion when the program has the entry back already, and before it goes on to the next one
keeps_what_is_refilled() {
	slow_down ib_uverbs_comp_handler 200
	odd refill-one
	speed_up
	has_line client '^the request is kept' || fail "$(tail -n 4 "$WORK/client.log" | paste -sd' ')"
}

# The peer closes when it has the message, before siw hears that it is sent: without the mend, more often than not
is_sent_before_the_end() {
	slow_down kernel_sendmsg%return 400
	for _ in {1..5}; do
		port=$((port + 100))
		odd_and_content send 8 'READS=expect send len=1000' 'THEN=shutdown'
		has_line client '^request completed: success' || fail "$(grep '^request' "$WORK/client.log")"
	done
	speed_up
}

closed_completes() {
	odd_completes close-and-send
	# IBV_QPS_SQD
	has_line client '^state 4 ' || fail "$(grep '^state' "$WORK/client.log")"
	has_line client '^request completed: Work Request Flushed' || fail 'it is not flushed'
}

odd_terminated() { # WHAT L/T/C [HEX]
	odd "$1"
	all_completed
	terminated "${@:2}"
}

many_reads() {
	odd many-reads --restless
	if has_line client 'is not answered|^request completed'; then
		fail "$(grep -E 'not answered|request completed' "$WORK/client.log")"
	fi
}

# The completions that the program had not taken are kept, and the one that found no room is lost
full_cq_ends_connection() {
	local entries
	odd reads-beyond-cq
	entries=$(sed -n 's/^the connection has ended after \([0-9]*\) reads of \([0-9]*\) entries$/\2 \1/p' "$WORK/client.log")
	[[ $entries ]] || fail "$(grep 'goes on' "$WORK/client.log")"
	((${entries#* } == ${entries% *} + 1)) || fail "it ended too early: $(grep 'has ended' "$WORK/client.log")"
	has_line client '^1 work requests have not completed' || fail "$(grep 'not completed' "$WORK/client.log")"
}

# Our initiator's program, and a peer that plays scenario odd-responder.txt
odd_responder() { # PORT IRD NAME=VALUE…
	local setting
	# unmodified siw asks for the client-server model
	local -a settings=(--set "REPLY=enhanced ird=$2 ord=8")
	! has_negotiator || settings=(--set "REPLY=p2p rtr=write ird=$2 ord=8" --set 'RTR=expect write-rtr')
	for setting in "${@:3}"; do
		settings+=(--set "$setting")
	done
	start peer b 60 "$MPAPEER" run "$SCENARIOS/odd-responder.txt" --listen "$(address b):$1" "${settings[@]}"
	wait_ready peer '^listening on'
}

odd_against() { # WHAT IRD NAME=VALUE…
	odd_responder "$port" "${@:2}"
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --no-receive --odd "$1" --timeout 20
	[[ $STATUS -eq 0 ]] || fail "the client ended with status $STATUS"
	after_odd_against
}

after_odd_against() {
	stop peer
	all_completed
	has_line client '^pinned at the end: 0 kB' || fail "the client's memory: $(grep pinned "$WORK/client.log")"
	no_warning
}

# The program asks for ORD 8 and offers IRD 2. The responder raises its IRD to 8
qp_is_told_right() {
	serve
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --ird 2 --ord 8 --odd query --timeout 20
	# IBV_QPS_RTS
	has_line client '^state 3 max_rd_atomic 8 max_dest_rd_atomic 2 sq_sig_all 1$' || fail "$(grep '^state' "$WORK/client.log")"
}

# The QP is created without sq_sig_all
qp_is_not_all_signalled() {
	serve
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --odd query-unsignaled --timeout 20
	has_line client ' sq_sig_all 0$' || fail "$(grep '^state' "$WORK/client.log")"
}

memory_behind_empty_sge() {
	odd empty-sge
	wait_line server '^conn 1 received 8 ' 30
}

short_read() {
	odd_against read 8 'READS=expect read-request' 'MORE=send read-response last=0 len=0' 'THEN=send read-response len=0'
	has_line client '^request completed: success' && fail 'a read without any data has succeeded'
	has_line client '^request completed: ' || fail 'the read has not completed'
}

# The queues are flushed once for ibv_modify_qp(), once for the end of the connection
flushed_once() {
	local count entries
	odd refill
	read -r count entries <<<"$(sed -nE 's/^flushed ([0-9]+) of ([0-9]+) entries$/\1 \2/p' "$WORK/client.log")"
	[[ -n $count ]] || fail 'nothing was flushed'
	((count > 0 && count <= 2 * entries)) || fail "$count entries of $entries were flushed"
}

# rdma_connect() is refused before there is a socket
connect_in_error() {
	serve
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --spoil --timeout 20
	[[ $STATUS -eq 2 ]] || fail "the client ended with status $STATUS"
	has_line client 'rdma_connect: Invalid argument' || fail 'it was not refused'
	has_line client '^pinned at the end: 0 kB' || fail "the client's memory: $(grep pinned "$WORK/client.log")"
	no_warning
	good
}

read_across() {
	odd read-across
	has_line client "^all octets read are the server's\$" || fail "$(grep -E 'not the server|completed:' "$WORK/client.log")"
}

# Five bytes on the first page, the others on the second; each letter depends on its place
send_across() {
	local text='' i
	for ((i = 4091; i < 4091 + 32; i++)); do
		text+=$(printf '%b' "\\x$(printf %x $((97 + i % 26)))")
	done
	odd send-across
	wait_line server "^conn 1 received 32 $text\$" 30
}

# mpapeer reports a failed expectation
peer_is_content() {
	has_line peer '== PASS' || fail "$(grep -A2 FAIL "$WORK/peer.log" | paste -sd' ' || true)"
}

odd_and_content() { # WHAT IRD NAME=VALUE…
	odd_against "$@"
	peer_is_content
}

# A request with an invalid key is in the send queue before the connection is up
posted_too_early() {
	serve
	start early a 60 "$RDMAFIRST" client "$(address b)" "$port" --too-early --timeout 20
	ended early 30
	has_line early 'too early' || fail 'nothing was posted'
	has_line early '^pinned at the end: 0 kB' || fail "the client's memory: $(grep pinned "$WORK/early.log")"
	no_warning
	good
}

# The answer takes some seconds; the program deregisters the memory when it has begun
taken_back() {
	tc -n b qdisc replace dev eth0 root netem rate 40mbit limit 10000
	serve --expose --pages 8192 --take-back "$WORK/now"
	start client a 60 "$RDMAFIRST" client "$(address b)" "$port" --odd long-read --timeout 40
	wait_line client 'the response has started' 30
	touch "$WORK/now"
	wait_line server 'the exposed memory is deregistered' 5
	ended client 40
	tc -n b qdisc del dev eth0 root
	all_completed
	has_line client '^request completed: ' || fail 'the read has succeeded'
	stop server
	no_warning
}

# The program must not block the host's connection management
replaced_page() {
	odd_responder $((port + 50)) 8 'THEN=wait 1500ms'
	start odd a 60 "$RDMAFIRST" client "$(address b)" $((port + 50)) --no-receive --odd replaced-page --timeout 20
	wait_line odd 'the page is replaced' 30
	ended peer 20
	sleep 1
	serve
	good
	stop odd KILL
}

# Registration of unmapped memory, too: it must leave nothing behind
all_is_registered() {
	serve --expose
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --odd register-all --timeout 20
	has_line client ' bytes are registered' && fail "$(grep ' registered' "$WORK/client.log" | paste -sd' ')"
	[[ $STATUS -eq 0 ]] || fail "the client ended with status $STATUS"
	[[ $(grep -c ' bytes are ' "$WORK/client.log") -eq 4 ]] || fail 'it was not tried'
	has_line client '^pinned at the end: 0 kB' || fail "the client's memory: $(grep pinned "$WORK/client.log")"
	no_warning
}

forgotten_sink() {
	odd_responder "$port" 8 'READS=expect read-request' 'MORE=send read-response len=16 first=24' \
		"THEN=wait for $WORK/forgotten" 'NEXT=send read-response len=16 from=24' 'LAST=expect term 1/1/0'
	start client a 60 "$RDMAFIRST" client "$(address b)" "$port" --no-receive --odd read-and-forget --timeout 20
	wait_line client 'is deregistered' 20
	touch "$WORK/forgotten"
	ended_well client 30
	has_line client 'the response has started' || fail 'no response has arrived'
	has_line client '^request completed: success' && fail 'the read has succeeded'
	after_odd_against
	peer_is_content
}

solicited() {
	odd_and_content solicited 8 'READS=expect send-se' 'MORE=send fpdu send pdata="plain"' 'THEN=wait 1500ms' \
		'NEXT=send fpdu send-se pdata="solicited"' 'LAST=expect close drain'
	has_line client '^notified of completions$' || fail "$(grep 'no notification' "$WORK/client.log")"
	has_line client '^2 messages received$' || fail "notified too early: $(grep 'messages received' "$WORK/client.log")"
	has_line client '^not notified of the unsolicited send$' || fail 'also notified of the unsolicited send'
}

solicited_errors() {
	odd_against solicited-errors 8 'READS=expect read-request' 'THEN=send fpdu read-response stag=0xdead to=0 len=16'
	has_line client '^notified of completions$' || fail "$(grep 'no notification' "$WORK/client.log")"
}

other_pd_terminated() { # WHAT L/T/C
	odd "$1" --other-pd
	all_completed
	terminated "$2"
}

denied() { # WHAT L/T/C
	odd "$1" --deny
	all_completed
	# IBV_ACCESS_LOCAL_WRITE
	has_line server '^access 0x1$' || fail "ibv_query_qp() reports $(grep '^access' "$WORK/server.log")"
	terminated "$2"
}

# And the connection that follows is a good one
no_such_change() { # STATE
	serve
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --modify "$1" --send hello --expect first --timeout 20
	has_line client "^modify to $1: Invalid argument\$" || fail "$(grep '^modify' "$WORK/client.log")"
	[[ $STATUS -eq 0 ]] || fail "the client ended with status $STATUS"
	wait_line server '^conn 1 received 5 hello' 30
}

no_reset() { # WHEN
	odd "$1"
	has_line client '^modify to reset: Invalid argument$' || fail "$(grep '^modify' "$WORK/client.log")"
}

# Whatever nlmsg_pid says, the answer goes to the socket that has asked
hello_of_nobody() {
	serve
	# only the initial namespace has a port mapper
	timeout 30 "$TESTS/iwpmhello.py" >"$WORK/hello.log" 2>&1 || fail "$(tail -n 1 "$WORK/hello.log")"
	no_warning
	good
	stop server
}

has_memory_groups() {
	[[ -e /proc/cgroups ]] && grep -q '^memory' /proc/cgroups
}

# It is refused, or the program killed
queue_beyond_group() {
	local group=$WORK/groups/small
	mkdir -p "$WORK/groups"
	mount -t cgroup2 none "$WORK/groups"
	echo +memory >"$WORK/groups/cgroup.subtree_control"
	mkdir -p "$group"
	echo 64M >"$group/memory.max"
	serve
	# shellcheck disable=SC2016 # for the other shell
	run client a 60 bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$group" \
		"$RDMAFIRST" client "$(address b)" "$port" --odd large-cq --timeout 20
	grep -E '^(max|oom) ' "$group/memory.events" | sed 's/^/# memory.events: /'
	rmdir "$group"
	umount "$WORK/groups"
	has_line client '^received' || fail 'no connection was established'
	has_line client 'created$' && fail 'it was created'
	good
}

few_events() {
	odd many-events
	has_line client '^SQ_DRAINED [01] CQ_ERR 1$' || fail "$(grep SQ_DRAINED "$WORK/client.log")"
}

lines_about_listeners() {
	dmesg | grep -c 'cma_listen_on_dev, error' || true
}

# The kernel allows 10 lines in 5 seconds
few_lines() {
	local before after
	echo 'expect no-connection for 60s' >"$WORK/hold.txt"
	start other b 60 "$MPAPEER" run "$WORK/hold.txt" --listen "0.0.0.0:$port"
	wait_ready other '^listening on'
	before=$(lines_about_listeners)
	run server b 60 "$RDMAFIRST" server 0.0.0.0 "$port" --tries 300
	has_line server 'rdma_listen: Address already in use' || fail 'it could listen'
	after=$(lines_about_listeners)
	((after > before && after - before <= 100)) || fail "$((after - before)) lines for 300 attempts"
}

# Addresses and routes are resolved, and events handled, for all programs by the same workers
events_into_nothing() {
	serve
	start stuck a 60 "$RDMAFIRST" stuck "$(address b)" "$port" --timeout 20
	wait_line stuck 'reading an event' 30
	sleep 1
	has_line stuck 'was read' && fail 'the event was read despite missing memory'
	good
	stop stuck KILL
}

# Its packets wait on the way for half a second: by then the memory is not what it was
slow_way() { # NETNS
	tc -n "$1" qdisc replace dev eth0 root netem delay 500ms limit 10000
}

fast_way() { # NETNS
	tc -n "$1" qdisc del dev eth0 root netem
}

changed_while_read() {
	serve --expose --take-back "$WORK/now"
	slow_way b
	start client a 60 "$RDMAFIRST" client "$(address b)" "$port" --odd read-changing --timeout 40
	wait_line client 'the read is posted' 30
	sleep 0.2
	touch "$WORK/now"
	wait_line server 'the exposed memory is deregistered' 5
	ended client 40
	fast_way b
	rm -f "$WORK/now"
	has_line client 'is not the server' && fail "$(grep 'not the server' "$WORK/client.log")"
	has_line client "^all octets read are the server's\$|^request completed: " || fail 'the read has not completed'
}

changed_when_completed() {
	serve --expose
	slow_way a
	start client a 60 "$RDMAFIRST" client "$(address b)" "$port" --odd write-and-change --timeout 40
	ended client 40
	fast_way a
	has_line client '^8192 of 8192 bytes' || fail "$(grep -E 'bytes are|completed:' "$WORK/client.log" | head -1)"
}

# With a CRC that is not that of the octets which are sent, the peer ends the connection
changed_while_sent() {
	mpa set default crc required
	serve --expose
	run client a 60 "$RDMAFIRST" client "$(address b)" "$port" --odd write-while-changing --timeout 40
	mpa reset default
	has_line client '^request completed: ' && fail "$(grep -m 1 'request completed' "$WORK/client.log")"
	has_line client '^400 of 400 writes and a read are done' || fail 'not all requests have completed'
}

bad() { # CLAIM FUNCTION [ARG…]
	port=$((port + 1))
	check "$@"
}

bad 'F1: a WRITE whose empty first segment has an invalid STag gets TERM 1/1/0' peer \
	'FIRST=send fpdu write stag=0 to=0 last=0' 'SECOND=send fpdu write stag=0 to=0 pdata="data"' 'END=expect term 1/1/0'
bad 'F2: urgent TCP data after a Send causes no kernel warning' peer 'SPLIT=split urgent' 'FIRST=send fpdu send pdata="urgent"' 'SECOND=wait 300ms' 'END=shutdown'
bad 'F3: a SEND whose second segment has an unknown opcode gets TERM 0/2/6' peer \
	'FIRST=send fpdu send pdata="part" last=0' 'SECOND=send hex 0012414f0000000000000000000000020000000000000000' \
	'END=expect term 0/2/6'
bad 'F3: a SEND whose second segment has DDP version 2 gets TERM 1/2/6' peer \
	'FIRST=send fpdu send pdata="part" last=0' 'SECOND=send hex 001242430000000000000000000000020000000000000000' \
	'END=expect term 1/2/6'
bad 'ibv_query_qp() reports state RTS and the negotiated ORD and IRD' qp_is_told_right
bad 'F87: ibv_query_qp() reports sq_sig_all 0 for a queue pair created with sq_sig_all 0' qp_is_not_all_signalled
bad 'F4: a WRITE whose address range wraps around the end of the address space gets TERM 1/1/1' odd_terminated write-wrap 1/1/1
bad 'F4: a Read Request for 2 GB or more gets TERM 0/1/1' odd_terminated read-huge 0/1/1
# the header in the TERM: mpa_len, opcode 1, QN 1, MSN 1, MO 0
bad 'F8: the TERM for a Read Request beyond the end of a memory region contains the MSN of the Read Request' odd_terminated read-beyond 0/1/1 \
	'414100000000000000010000000100000000'
bad 'F9: both of two outstanding RDMA Reads complete when the Response to the first is invalid' odd_against two-reads 8 \
	'READS=expect read-request' 'MORE=expect read-request' 'THEN=send fpdu read-response stag=0xdead to=0 len=16'
bad 'F14: an RDMA Read fails when its Response in two segments carries no data' short_read
bad 'F11: an RDMA Read on a connection whose peer allows no Reads (IRD 0) gets a completion' odd_against read 0 'THEN=wait 2s'
bad 'F15: a work request posted to a QP in state ERROR gets a completion' odd_completes send-in-error
bad 'F73: a work request posted to a QP whose connection is closed completes as flushed' closed_completes
bad 'F74: a work request posted while its send queue entry is being flushed is not lost' keeps_what_is_refilled
bad 'F75: a Send completes with success although the peer closes directly after receiving it' is_sent_before_the_end
bad 'F12: a Send releases the memory of its SGE that follows an empty SGE' memory_behind_empty_sge
bad 'F18: an RDMA Read of memory whose STag a Send with Invalidate has invalidated gets TERM 0/1/0' odd_terminated invalidate 0/1/0
bad 'F18: Send with Invalidate of an STag with the wrong key gets TERM 0/2/9' odd_terminated invalidate-wrong-key 0/2/9
bad 'F18: Send with Invalidate of memory without remote access gets TERM 0/1/9' odd_terminated invalidate-local 0/1/9
# M and D are set, R is not: no RDMAP header follows
bad 'F161: the TERM for a Send with Invalidate announces no RDMAP header' odd_terminated invalidate-local 0/1/9 '0109c000'
bad 'F19: RDMA Reads are answered while the responder modifies its QP' many_reads
bad 'F142: an RDMA Read that finds the completion queue full ends the connection' full_cq_ends_connection
bad 'F20: the kernel does not dereference a kernel address in a work request of a program' odd_completes kernel-pointer
bad 'F31: an RDMA Read of memory without remote access gets TERM 0/1/2' odd_terminated read-local 0/1/2
bad 'F32: the flush of a send queue that the program constantly refills is bounded' flushed_once
bad "F40: a short RDMA Read across a page boundary returns the server's bytes" read_across
bad "F40: a short Send across a page boundary delivers the sender's bytes" send_across
bad 'F41: an invalid work request posted before connecting ends the connection' posted_too_early
bad 'F42: an RDMA Read beyond the ORD is not sent while the queue pair is modified' odd_and_content reads-and-modify 1 \
	'READS=expect read-request' 'MORE=expect nothing for 1s' 'THEN=send read-response len=16' \
	'NEXT=expect read-request' 'LAST=send read-response len=16'
bad 'F43: RDMA Reads of the peer are answered while a fenced Send waits for a local RDMA Read' odd_and_content fenced-send 8 \
	'READS=expect read-request' 'MORE=send fpdu read-request len=0' 'THEN=expect read-response len=0 within 3s' \
	'NEXT=send read-response len=16' 'LAST=expect send'
bad 'F44: the padding octets of a short message are zero' odd_and_content read-and-send 8 \
	'READS=expect read-request' 'MORE=send read-response len=16' 'THEN=expect send pdata="hello"'
bad 'F45: a message is sent only once while its queue pair is modified' odd_and_content restless-sends 8 \
	'READS=repeat 100' 'MORE=expect send len=1000' 'THEN=end'
bad 'F46: an outstanding RDMA Read completes when its connection is closed' odd_against read-and-close 8 \
	'READS=expect read-request' 'THEN=expect close drain'
bad 'F48: memory can be deregistered while a message is received into it' peer_of --forget \
	'FIRST=send fpdu send pdata="part" last=0 msn=2' 'SECOND=wait 2s' 'END=send fpdu send pdata="rest" msn=2 mo=4'
# The second FPDU is of an unknown opcode
bad 'F49: an RDMA Read whose Response is interrupted completes and releases its memory' odd_against read 8 \
	'READS=expect read-request' 'MORE=send read-response last=0 len=8' \
	'THEN=send hex 0012414f0000000000000000000000020000000000000000'
bad "F51: deregistering memory ends the peer's RDMA Read of it" taken_back
bad 'F52 F54: registering the whole address space or a too large region is rejected' all_is_registered
bad 'F53: deregistering the sink of an RDMA Read stops the placement of its Response' forgotten_sink
bad 'F33: connecting with a queue pair in state ERROR is rejected with EINVAL' connect_in_error
bad 'F58: a Read Request on queue 0 gets TERM 1/2/1' peer 'FIRST=send fpdu read-request qn=0 msn=1' 'SECOND=flush' 'END=expect term 1/2/1'
bad 'F58: a Read Request with a nonzero message offset gets TERM 1/2/4' peer 'FIRST=send fpdu read-request mo=4' 'SECOND=flush' 'END=expect term 1/2/4'
bad 'F58: a Read Request without the Last flag gets TERM 1/2/5' peer 'FIRST=send fpdu read-request last=0' 'SECOND=flush' 'END=expect term 1/2/5'
bad 'F58: a Read Request with payload gets TERM 1/2/5' peer 'FIRST=send fpdu read-request len=4' 'SECOND=flush' 'END=expect term 1/2/5'
# DDP control 11000001b: tagged, last, version 1; 01000001b is without the first
bad 'F59: a Send with the Tagged flag gets TERM 0/2/6' peer \
	'FIRST=send fpdu raw c14300000000000000000000000200000000' 'SECOND=flush' 'END=expect term 0/2/6'
bad 'F59: a Write without the Tagged flag gets TERM 0/2/6' peer \
	'FIRST=send fpdu raw 4140000000000000000000000000' 'SECOND=flush' 'END=expect term 0/2/6'
# The codes of RFC 5041 section 7.2 that no case above has. 1/0/0 is a fault of our own; for 1/1/3 memory would have to end
# where addresses do. The program's buffers have 1024 bytes; it has two, and "hello" is in one.
bad 'RFC 5041: a Write to memory of another protection domain gets TERM 1/1/2' other_pd_terminated write 1/1/2
bad 'RFC 5041: a Write of DDP version 2 gets TERM 1/1/4' peer 'FIRST=send fpdu raw c240000000000000000000000000' 'SECOND=flush' \
	'END=expect term 1/1/4'
bad 'RFC 5041: a Send on queue 1 gets TERM 1/2/1' peer 'FIRST=send fpdu send pdata="x" qn=1' 'SECOND=flush' 'END=expect term 1/2/1'
bad 'RFC 5041: a Send without a posted receive gets TERM 1/2/2' peer 'FIRST=send fpdu send pdata="x"' 'SECOND=send fpdu send pdata="x"' \
	'END=expect term 1/2/2'
bad 'RFC 5041: a Send that skips a sequence number gets TERM 1/2/3' peer 'FIRST=send fpdu send pdata="x" msn=3' 'SECOND=flush' \
	'END=expect term 1/2/3'
bad 'RFC 5041: a Send that starts at a nonzero message offset gets TERM 1/2/4' peer 'FIRST=send fpdu send pdata="x" mo=4' 'SECOND=flush' \
	'END=expect term 1/2/4'
bad 'F110: a Send longer than the receive gets TERM 1/2/5' peer 'FIRST=send fpdu send len=1025' 'SECOND=flush' 'END=expect term 1/2/5'
bad 'F110: a Send whose second segment exceeds the receive gets TERM 1/2/5' peer \
	'FIRST=send fpdu send len=1000 last=0' 'SECOND=send fpdu send len=25 mo=1000 msn=2' 'END=expect term 1/2/5'
bad 'F60: a CQ armed for solicited completions notifies only of solicited ones' solicited
bad 'F60: a CQ armed for solicited completions notifies of errors' solicited_errors
bad 'F61: a Write to a queue pair without remote write access gets TERM 1/1/0' denied write 1/1/0
bad 'F61: an RDMA Read from a queue pair without remote read access gets TERM 0/1/2' denied read 0/1/2
bad 'F62: modifying a queue pair from INIT to SQD is rejected with EINVAL' no_such_change sqd
bad 'F62: modifying a queue pair from INIT to SQE is rejected with EINVAL' no_such_change sqe
bad 'F62: modifying a queue pair from RTS to RESET is rejected with EINVAL' no_reset reset
bad 'F62: modifying a queue pair to RESET after rdma_disconnect() is rejected with EINVAL' no_reset close-and-reset
! has_memory_groups || bad "F63: queue memory is charged to the program's control group" queue_beyond_group
bad "F91: a port mapper's netlink HELLO with nlmsg_pid 0 is answered once" hello_of_nobody
bad 'F64: posting to a queue pair in state ERROR raises each asynchronous event at most once' few_events
bad 'F65: 300 failed calls of rdma_listen() log at most 100 lines' few_lines
bad "F69: memory deregistered during the peer's RDMA Read is sent unchanged or not at all" changed_while_read
bad 'F69: a program that changes sent memory after a later work request has completed does not change the data sent' changed_when_completed
[[ $VM_STOCK == 1 ]] || bad 'F115: writing to memory that is being sent with a CRC causes no CRC error at the peer' changed_while_sent
[[ $VM_KERNEL != debian ]] ||
	bad 'F6: sending from a page that the program has unmapped and never populates again blocks no other connection' replaced_page
[[ $VM_KERNEL != debian ]] ||
	bad 'F66: a program that reads a CM event into a page that is never populated blocks no other program' events_into_nothing
finish
