#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/netlink.sh
#
# What an administrator sets and what a program asks for is what happens, on the wire and in what
# the kernel tells; who may not set is refused, and what cannot be is refused with a reason; whoever
# takes devices, namespaces or the module away while others watch gets that far.
# shellcheck disable=SC2031 # lib.sh's WORK
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

MPANL=$BUILD/mpanl/mpanl
RDMA=${TESTS%/*}/build/rdma
FUZZ_SECONDS=${FUZZ_SECONDS:-5}

# Every case begins with nothing set
plain() {
	local place
	for place in default siw0 siw0/1 siw1 siw1/1; do
		"$MPANL" reset "$place"
	done
}

# get PLACE JQ-EXPRESSION: of the record, as compact JSON
get() {
	"$MPANL" show "$1" | jq -c "$2"
}

is() { # WANTED PLACE JQ-EXPRESSION
	local got
	got=$(get "$2" "$3")
	[[ $got == "$1" ]] || fail "$3 of $2 is $got, not $1"
}

# refused ERRNO TEXT COMMAND…: it is, and says why
refused() {
	local errno=$1 why=$2 out rc=0
	shift 2
	out=$("$@" 2>&1) || rc=$?
	[[ $rc -eq 1 ]] || fail "$* is not refused: status $rc: $out"
	[[ $out == "refused: errno $errno: "*"$why"* ]] || fail "$* is refused with: $out"
}

counter() { # LINK NAME
	"$MPANL" stat "$1" | jq ".stats.$2"
}

serve() { # PORT [OPTION…]
	start server b 90 "$RDMAFIRST" server "$(address b)" "$1" --count 0 --timeout 80 "${@:2}"
	wait_line server '^listening' 30
}

connect() { # PORT [OPTION…]
	run_well client a 40 "$RDMAFIRST" client "$(address b)" "$1" --expect first "${@:2}"
}

# Of the one connection to the port: what `rdma resource` says of the device's QP
qp_says() { # LINK KEY
	rdma resource show qp link "$1" -dd -j | jq -r "[.[] | .[\"drv_$2\"]? // empty] | last"
}

one_connection() { # PORT SERVER-OPTIONS CLIENT-OPTIONS
	capture wire b
	# shellcheck disable=SC2086 # words
	serve "$1" $2
	# shellcheck disable=SC2086
	connect "$1" $3
	look "$1"
}

# one_connection leaves it to be looked at
look() { # PORT
	stop server
	capture_end wire
	"$MPAPEER" decode --json --port "$1" "$WORK/wire.pcap" >"$WORK/wire.json"
}

# The RTR is what the first FPDU of the initiator is: send, write or read-request
rtr_is() { # KIND
	local kind
	kind=$(jq -r '[.[0].events[] | select(.type == "fpdu" and .from == "initiator")][0].kind' "$WORK/wire.json")
	[[ $kind == "$1" ]] || fail "the RTR is $kind, not $1"
}

frame() { # REQUEST|REPLY JQ-EXPRESSION
	jq -c "[.[0].events[] | select(.kind == \"$1\")][0] | $2" "$WORK/wire.json"
}

frame_is() { # WANTED REQUEST|REPLY JQ-EXPRESSION
	local got
	got=$(frame "$2" "$3")
	[[ $got == "$1" ]] || fail "$3 of the $2 is $got, not $1"
}

# ---- policies

set_and_reset() {
	plain
	is '{}' siw0/1 .policy
	"$MPANL" set siw0/1 model=0 rtr-ms=1234 rtr-order=read ird=16
	is '{"model":0,"rtr-order":["read","write","send"],"ird":16,"rtr-ms":1234}' siw0/1 .policy
	is '[0,["read","write","send"],16,1234,5000]' siw0/1 \
		'.effective | [.model, ."rtr-order", .ird, ."rtr-ms", ."request-ms"]'
	# neither the device nor another port
	is '{}' siw0 .policy
	is 10000 siw1/1 '.effective["rtr-ms"]'
	"$MPANL" reset siw0/1 rtr-ms
	is '{"model":0,"rtr-order":["read","write","send"],"ird":16}' siw0/1 .policy
	"$MPANL" reset siw0/1
	is '{}' siw0/1 .policy
}

layers() {
	plain
	"$MPANL" set default reply-ms=100 rtr-ms=100 decide-ms=100 ird=64
	"$MPANL" set siw0 rtr-ms=200 decide-ms=200 ird=32
	"$MPANL" set siw0/1 decide-ms=300 ird=50
	is '[100,200,300,32]' siw0/1 '.effective | [."reply-ms", ."rtr-ms", ."decide-ms", .ird]'
	is '[1,2,3,3,0]' siw0/1 '.origin | [."reply-ms", ."rtr-ms", ."decide-ms", .ird, .crc]'
	is '[100,100,100,64]' siw1/1 '.effective | [."reply-ms", ."rtr-ms", ."decide-ms", .ird]'
	"$MPANL" reset default
	"$MPANL" reset siw0
	is '[10000,10000,300,50]' siw0/1 '.effective | [."reply-ms", ."rtr-ms", ."decide-ms", .ird]'
}

all_or_nothing() {
	plain
	refused 22 'largest IRD is 128' "$MPANL" set siw0/1 rtr-ms=77 ird=129
	refused 34 'model: there is no such value' "$MPANL" set siw0/1 rtr-ms=77 model=3
	is '{}' siw0/1 .policy
}

# RDMA_NL_IWCM is 2; HELLO, what iwpmd says first, is 7, with its version (1: u16)
no_port_mapper() {
	local answer
	answer=$(setpriv --reuid 65534 --regid 65534 --clear-groups python3 -c '
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
s.bind((0, 0))
s.settimeout(10)
attr = struct.pack("=HHHxx", 6, 1, 4)
s.send(struct.pack("=IHHII", 16 + len(attr), 2 << 10 | 7, 5, 1, 0) + attr)
reply = s.recv(4096)
print(*struct.unpack_from("=HxxIIi", reply, 4)[0::3])')
	# NLMSG_ERROR with -EPERM
	[[ $answer == '2 -1' ]] || fail "the answer is $answer"
}

impossible() {
	plain
	refused 22 "largest ORD is 128" "$MPANL" set siw0 ord=16381
	refused 22 'siw0: revision 1 has no peer-to-peer model' "$MPANL" set siw0 revision=1 model=2
	"$MPANL" set siw0/1 model=2
	# a layer below would take it from one above
	refused 22 'siw0/1: revision 1 has no peer-to-peer model' "$MPANL" set default revision=1
	refused 22 'RTR by read needs an ORD' "$MPANL" set siw0/1 rtr-offer=read ord=0
	refused 22 'the ports 1 to 1' "$MPANL" set siw0/2 model=0
	refused 22 'the ports 1 to 1' "$MPANL" show siw0/0
	refused 19 'no iWARP device of that index' "$MPANL" show 4711
	refused 22 'device and port are needed' "$MPANL" stat siw0
	refused 22 'order of RTR kinds: there is no such value' "$MPANL" set siw0 rtr-order=read,read
	refused 2 'no such QP or cm_id' "$MPANL" conn siw0 --qpn 9999
	is '{"model":2}' siw0/1 .policy
}

# attr TYPE HEX: an attribute in hexadecimal (all machines of these tests are little-endian)
attr() {
	local len=$((4 + ${#2} / 2)) padding=000000
	printf '%02x00%02x%02x%s%s' $len $(($1 & 255)) $(($1 >> 8)) "$2" "${padding:0:$(((4 - len % 4) % 4 * 2))}"
}

# Every refusal has a text of its own: "Invalid argument" is what mpanl makes of none
refused_with_text() { # COMMAND…
	local out rc=0
	out=$("$MPANL" raw "$@" 2>&1) || rc=$?
	[[ $rc -eq 1 && $out == 'refused: errno '* ]] || fail "$* is not refused: status $rc: $out"
	[[ $out != *': Invalid argument' && $out != *': Numerical result'* ]] || fail "$* is refused without a reason"
}

# Commands: 1 get, 2 set, 3 reset, 4 stat, 5 conn, 6 and 7 notifications; attributes: 2 index, 4 port,
# 6 policy, 9 settings, 15 QPN; nested is 0x8000
odd_requests() {
	plain
	local index command
	index=$(printf '%02x000000' "$(get siw0 '."dev-index"')")
	for command in 0 6 7 8 63; do
		refused_with_text $command
		refused_with_text $command --dump
	done
	for command in 2 3 5; do
		refused_with_text $command --dump
	done
	refused_with_text 1 --dump "$(attr 2 "$index")"
	for command in 1 2 3 4 5; do
		# no such attribute, one that is another command's, sizes, none, cut short
		refused_with_text $command "$(attr 99 00000000)"
		refused_with_text $command "$(attr 3 00000000)"
		refused_with_text $command "$(attr 2 0000)"
		refused_with_text $command "$(attr 2 "${index}00")"
		refused_with_text $command "$(attr 2 "$index")ff"
		refused_with_text $command "$(attr 2 ffffff7f)$(attr 15 01000000)"
	done
	refused_with_text 1 "$(attr 4 01000000)"
	refused_with_text 1 "$(attr 2 "$index")$(attr 4 02000000)"
	refused_with_text 2 "$(attr 2 "$index")"
	# a nest that does not say so, one with what is none of the settings, values and sizes
	refused_with_text 2 "$(attr 6 "$(attr 2 00)")"
	refused_with_text 2 "$(attr $((0x8006)) "$(attr 60 00)")"
	refused_with_text 2 "$(attr $((0x8006)) "$(attr 2 07)")"
	refused_with_text 2 "$(attr $((0x8006)) "$(attr 2 00000000)")"
	refused_with_text 2 "$(attr $((0x8006)) "$(attr 5 01020304)")"
	refused_with_text 2 "$(attr $((0x8006)) "$(attr 5 "")")"
	refused_with_text 2 "$(attr $((0x8006)) "$(attr 9 00000000)")"
	refused_with_text 3 "$(attr 9 00000001)"
	refused_with_text 5 "$(attr 2 "$index")"
	refused_with_text 5 "$(attr 2 "$index")$(attr 15 01000000)$(attr 16 01000000)"
	is '{}' default .policy
	is '{}' siw0 .policy
}

as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

others_may_look() {
	plain
	local place
	for place in default siw0 siw0/1; do
		refused 1 'needs CAP_NET_ADMIN' as_nobody "$MPANL" set "$place" model=0
		refused 1 'needs CAP_NET_ADMIN' as_nobody "$MPANL" reset "$place"
		as_nobody "$MPANL" show "$place" >/dev/null
	done
	as_nobody "$MPANL" stat siw0/1 >/dev/null
	[[ $(as_nobody "$MPANL" show | wc -l) -eq 5 ]] || fail 'the list has not five records'
	! as_nobody "$MPANL" monitor --seconds 1 2>/dev/null || fail 'nobody may listen'
	is '{}' default .policy
}

# root of a user namespace of its own is an ordinary user to the device's namespace
root_elsewhere() {
	plain
	local unshare=(unshare --user --map-root-user --net)
	refused 1 'needs CAP_NET_ADMIN' as_nobody "${unshare[@]}" "$MPANL" set siw0/1 model=0
	refused 1 'needs CAP_NET_ADMIN' as_nobody "${unshare[@]}" "$MPANL" set default model=0
	is '{}' siw0/1 .policy
}

# ---- what comes of them

port_rtr_read() {
	plain
	"$MPANL" set siw0/1 rtr-offer=read rtr-accept=read rtr-order=read
	capture wire b
	serve 7600
	start held a 40 "$RDMAFIRST" client "$(address b)" 7600 --expect first --hold --timeout 30
	wait_line held '^received' 30
	wait_line server '^conn 1 event RDMA_CM_EVENT_ESTABLISHED' 20
	[[ $(qp_says siw0/1 rtr) == read ]] || fail "siw0's QP says RTR $(qp_says siw0/1 rtr)"
	[[ $(qp_says siw1/1 rtr) == read ]] || fail "siw1's QP says RTR $(qp_says siw1/1 rtr)"
	rdma resource show cm_id link siw0/1 -dd -j | jq -e 'any(.[]; .drv_rtr == "read")' >/dev/null ||
		fail 'no cm_id of siw0 says RTR read'
	look 7600
	ended held 20
	rtr_is read-request
	frame_is '["read"]' request .rtr
}

option_beats_port() {
	plain
	"$MPANL" set siw0/1 rtr-offer=write
	# 4: read, 1: send
	one_connection 7601 '' '--mpa rtr=bytes:0401'
	rtr_is read-request
	frame_is '["send","read"]' request '.rtr | sort_by({send: 0, write: 1, read: 2}[.])'
}

option_model() {
	plain
	# the client's program speaks first, as there is no RTR
	capture wire b
	serve 7602 --silent
	run_well client a 40 "$RDMAFIRST" client "$(address b)" 7602 --send hello --no-receive --mpa model=0
	look 7602
	rtr_is send
	frame_is false request .p2p
}

listener_option_inherited() {
	plain
	"$MPANL" set siw0/1 rtr-offer=write,read,send
	one_connection 7603 '--mpa rtr=bytes:04' ''
	frame_is '["read"]' reply .rtr
	rtr_is read-request
}

accept_option() {
	plain
	one_connection 7604 '--mpa rtr=bytes:02 --mpa-accept rtr=bytes:04' ''
	frame_is '["read"]' reply .rtr
	rtr_is read-request
}

option_depths() {
	plain
	one_connection 7605 '' '--ird 4 --ord 4 --mpa ird=0x3fff --mpa ord=2'
	rtr_is write
	frame_is '[16383,2]' request '[.ird, .ord]'
	frame_is '[2,16383]' reply '[([.ird, 2] | min), .ord]'
}

# The outcome, whole, by the number of the QP and by that of the cm_id
outcome_can_be_asked_for() {
	plain
	serve 7614 --ird 16 --ord 8
	start held a 40 "$RDMAFIRST" client "$(address b)" 7614 --expect first --hold --timeout 30 --ird 8 --ord 16
	wait_line held '^received' 30
	wait_line server '^conn 1 event RDMA_CM_EVENT_ESTABLISHED' 20
	told_of siw0 initiator '["RDMA",2,1,"peer-to-peer",["write"],8,16,16,8]'
	told_of siw1 responder '["RDMA",2,1,"peer-to-peer",["write","read"],16,8,8,16]'
	refused 2 'no such QP or cm_id' "$MPANL" conn siw0 --cm-id 4711
	stop server
	ended held 20
}

told_of() { # DEVICE ROLE WANTED
	local qpn id by_qpn by_id
	qpn=$(rdma resource show qp link "$1/1" -dd -j | jq "[.[] | select(.\"drv_mpa-role\" == \"$2\")][0].lqpn")
	id=$(rdma resource show cm_id link "$1/1" -dd -j | jq "[.[] | select(.lqpn == $qpn)][0].\"cm-idn\"")
	by_qpn=$("$MPANL" conn "$1" --qpn "$qpn")
	by_id=$("$MPANL" conn "$1" --cm-id "$id")
	[[ $by_qpn == "$by_id" ]] || fail "by cm_id it is $by_id, by QP $by_qpn"
	[[ $(jq -r .role <<<"$by_qpn") == "$2" ]] || fail "$1 says $by_qpn"
	note "$by_qpn"
	local got
	got=$(jq -c '[.state, .revision, .enhanced, .model, .rtr // ["none"], .ird, .ord, ."peer-ird", ."peer-ord"]' <<<"$by_qpn")
	[[ $got == "$3" ]] || fail "of $1 it says $got, not $3"
}

# A bad option changes nothing of what has been set before
bad_option_changes_nothing() {
	plain
	one_connection 7615 '' '--mpa rtr=bytes:0401 --mpa ird=2
		--mpa-bad rtr=bytes:0202 --mpa-bad rtr=bytes:01020401 --mpa-bad rtr=bytes:08 --mpa-bad rtr=bytes:
		--mpa-bad ird=0x4000 --mpa-bad ird=bytes:0100 --mpa-bad model=3 --mpa-bad 99=1'
	rtr_is read-request
	frame_is '["send","read"]' request '.rtr | sort_by({send: 0, write: 1, read: 2}[.])'
	frame_is '[2,true]' request '[.ird, .p2p]'
}

option_refused() {
	local option
	for option in 0=1 99=1 model=3 model=bytes:00 model=bytes:0000000000 rtr=bytes: rtr=bytes:0404 \
		rtr=bytes:08 rtr=bytes:01020401 reply-ms=0 request-ms=3600001 ird=0x4000; do
		run client a 20 "$RDMAFIRST" client "$(address b)" 7606 --mpa "$option"
		[[ $STATUS -eq 2 ]] || fail "$option is not refused"
		has_line client 'rdma_set_option .*: Invalid argument' || fail "$option: $(tail -n 1 "$WORK/client.log")"
	done
}

impossible_option() {
	plain
	serve 7607
	run client a 20 "$RDMAFIRST" client "$(address b)" 7607 --mpa revision=1 --mpa model=2
	[[ $STATUS -eq 2 ]] || fail 'connect does not refuse'
	has_line client 'rdma_connect: Invalid argument' || fail "connect says: $(tail -n 1 "$WORK/client.log")"
	stop server
}

snapshot_at_listen() {
	plain
	capture wire b
	serve 7608
	"$MPANL" set siw1/1 rtr-accept=read
	connect 7608
	look 7608
	rtr_is write
	# and the next listener has it
	one_connection 7609 '' ''
	rtr_is read-request
}

revision_1() {
	plain
	"$MPANL" set siw1 revision=1
	serve 7610
	run client a 20 "$RDMAFIRST" client "$(address b)" 7610 --timeout 15
	# ECONNRESET
	has_line client 'EVENT_REJECTED status -104 ' || fail "the client says: $(tail -n 1 "$WORK/client.log")"
	stop server
	# with the fallback it connects
	"$MPANL" set siw0 revision=3
	local before
	before=$(counter siw0/1 mpa_fallbacks)
	capture wire b
	serve 7611 --silent
	run_well client a 40 "$RDMAFIRST" client "$(address b)" 7611 --send hello --no-receive
	look 7611
	[[ $(counter siw0/1 mpa_fallbacks) -eq $((before + 1)) ]] || fail 'no fallback is counted'
	[[ $(jq -c '[.[].events[] | select(.kind == "request") | .rev]' "$WORK/wire.json") == '[2,1]' ]] ||
		fail "the Requests are of revision $(jq -c '[.[].events[] | select(.kind == "request") | .rev]' "$WORK/wire.json")"
}

ceiling() {
	plain
	"$MPANL" set siw0/1 ird=2 ord=1
	one_connection 7612 '' '--ird 16 --ord 16'
	rtr_is write
	frame_is '[2,1]' request '[.ird, .ord]'
}

deadline() {
	plain
	"$MPANL" set siw1/1 request-ms=300
	local before start
	before=$(counter siw1/1 mpa_timeout_request)
	serve 7613
	start=$(now_ms)
	# shellcheck disable=SC2016 # for the other shell
	run peer a 20 bash -c 'exec 3<>"/dev/tcp/$0/7613" && cat <&3' "$(address b)"
	[[ $(($(now_ms) - start)) -lt 4000 ]] || fail "the silent peer was closed on after $(($(now_ms) - start)) ms"
	[[ $(counter siw1/1 mpa_timeout_request) -eq $((before + 1)) ]] || fail 'no timeout is counted'
	stop server
}

# ---- counters

counters_add_up() {
	plain
	local before after name
	before=$("$MPANL" stat siw1/1)
	serve 7620
	connect 7620
	connect 7620 --mpa revision=1 --no-receive --send x || true
	# shellcheck disable=SC2016 # for the other shell
	run peer a 20 bash -c 'exec 3<>"/dev/tcp/$0/7620"; printf "MPA ID Rex" >&3; cat <&3' "$(address b)"
	# V05 of the requirements and a byte behind it
	# shellcheck disable=SC2016
	run peer a 20 bash -c 'exec 3<>"/dev/tcp/$0/7620"
		printf "MPA ID Req Frame\x10\x02\x00\x04\x00\x08\x00\x04x" >&3; cat <&3' "$(address b)"
	stop server
	after=$("$MPANL" stat siw1/1)
	# how much more is counted of each
	local -A more=([req_rcvd_rev1]=1 [req_rcvd_rev2]=2 [req_rcvd_enhanced]=2 [rep_sent_rev1]=1 [rep_sent_rev2]=1
		[rep_sent_enhanced]=1 [rtr_rcvd_write]=1 [bad_key]=1 [bad_trailing]=1 [established_responder]=2
		[failed_responder]=2)
	local got
	for name in "${!more[@]}"; do
		got=$(jq -n --argjson a "$before" --argjson b "$after" "\$b.stats.mpa_$name - \$a.stats.mpa_$name")
		[[ $got == "${more[$name]}" ]] || fail "$name counts $got more, not ${more[$name]}"
	done
	# the same by the means of everybody
	[[ $(rdma statistic show link siw1/1 -j | jq '.[0].mpa_bad_key') == "$(jq .stats.mpa_bad_key <<<"$after")" ]] ||
		fail 'rdma statistic says something else'
	wait_for 10 'nothing to be half open' nothing_half_open
}

nothing_half_open() {
	[[ $(counter siw0/1 mpa_half_open) == 0 && $(counter siw1/1 mpa_half_open) == 0 ]]
}

# ---- each counter

REQ=4d504120494420526571204672616d65
REP=4d504120494420526570204672616d65
REQ_V08=send\ hex\ ${REQ}5002000480088008
REP_V47=send\ hex\ ${REP}5002000400080008

# counts LINK 'COUNTER…' COMMAND…: each of them counts one more, and none of the others of its kind
counts() {
	local before after wanted got
	before=$("$MPANL" stat "$1")
	"${@:3}"
	wait_for 10 'nothing to be half open' nothing_half_open
	after=$("$MPANL" stat "$1")
	# shellcheck disable=SC2086 # words
	wanted=$(printf 'mpa_%s\n' $2 | sort | paste -sd' ')
	got=$(jq -rn --argjson a "$before" --argjson b "$after" \
		'$b.stats | to_entries[] | . as $e | range(.value - $a.stats[.key]) | $e.key' | sort | paste -sd' ')
	[[ $got == "$wanted" ]] || fail "${*:3}: counted $got, not $wanted"
}

play() { # NAME NETNS OPTIONS STATEMENT…
	local name=$1 netns=$2 options=$3
	printf '%s\n' 'within 20s' "${@:4}" >"$WORK/$name.txt"
	# shellcheck disable=SC2086 # words
	start "$name" "$netns" 60 "$MPAPEER" run "$WORK/$name.txt" $options
}

# A peer of our responder's, which listens on $port
from_peer() { # STATEMENT…
	play peer a "--connect $(address b):$port" "$@"
	ended_well peer 40
}

# A peer of our initiator's
initiator_meets() { # PORT STATEMENT…
	play peer b "--listen $(address b):$1 --accept-within 40s" 'expect request' "${@:2}"
	wait_line peer '^listening on' 20
	# shellcheck disable=SC2086 # words
	run client a 40 "$RDMAFIRST" client "$(address b)" "$1" --no-receive --timeout 30 $client_options
	ended_well peer 30
}

client_options=''
port=7640
# What every enhanced Request and its Reply count
ENHANCED_RESPONDER='req_rcvd_rev2 req_rcvd_enhanced rep_sent_rev2 rep_sent_enhanced'
ENHANCED_INITIATOR='req_sent_rev2 req_sent_enhanced rep_rcvd_rev2 rep_rcvd_enhanced'

responder_counters() {
	plain
	local terminated="$ENHANCED_RESPONDER failed_responder" over="$ENHANCED_RESPONDER established_responder"
	port=7640
	serve $port
	counts siw1/1 'req_rcvd_rev1 rep_sent_rev1 established_responder' from_peer "send hex ${REQ}40010000" 'expect reply rev=1'
	counts siw1/1 'req_rcvd_rev2 rep_sent_rev2 established_responder' from_peer "send hex ${REQ}40020000" 'expect reply rev=2'
	counts siw1/1 "$over rtr_rcvd_write" from_peer "$REQ_V08" 'expect reply accept' 'send rtr write' 'expect send'
	counts siw1/1 "$over rtr_rcvd_read" from_peer "send hex ${REQ}5002000480084008" 'expect reply accept' \
		'send rtr read' 'expect send or read-response'
	counts siw1/1 "$over rtr_rcvd_send" from_peer "send hex ${REQ}50020004c0080008" 'expect reply accept' \
		'send rtr send' 'expect send'
	counts siw1/1 "$over rtr_rcvd_other" from_peer "$REQ_V08" 'expect reply accept' 'send fpdu send "hello"' 'expect send'
	# F6 to F8, and one of layer 0
	counts siw1/1 "$terminated term_rcvd_local" from_peer "$REQ_V08" 'expect reply' \
		'send hex 0016414700000000000000020000000100000000200500001680d5f1' 'expect close'
	counts siw1/1 "$terminated term_rcvd_ird" from_peer "$REQ_V08" 'expect reply' \
		'send hex 0016414700000000000000020000000100000000200600006540fb1b' 'expect close'
	counts siw1/1 "$terminated term_rcvd_rtr" from_peer "$REQ_V08" 'expect reply' \
		'send hex 0016414700000000000000020000000100000000200700001bd2babe' 'expect close'
	counts siw1/1 "$terminated term_rcvd_other" from_peer "$REQ_V08" 'expect reply' \
		'send term 0/0/0' 'expect close'
	# frames that are none
	counts siw1/1 'bad_key failed_responder' from_peer "send hex ${REP}40010000" 'expect close'
	counts siw1/1 'bad_rev failed_responder' from_peer "send hex ${REQ}5003000400080004" 'expect close'
	counts siw1/1 'bad_pdata_len failed_responder' from_peer "send hex ${REQ}50020201" 'expect close'
	counts siw1/1 'bad_block failed_responder' from_peer "send hex ${REQ}500200028008" 'expect close'
	counts siw1/1 'req_rcvd_rev2 req_rcvd_enhanced bad_trailing failed_responder' \
		from_peer "send hex ${REQ}500200040008000478" 'expect close'
	stop server
	# deadlines
	"$MPANL" set siw1/1 request-ms=300 rtr-ms=300
	port=7641
	serve $port
	counts siw1/1 'timeout_request failed_responder' from_peer 'expect close'
	counts siw1/1 "$terminated timeout_rtr" from_peer "$REQ_V08" 'expect reply' 'expect close'
	stop server
	plain
	"$MPANL" set siw1/1 decide-ms=300
	port=7642
	serve $port --ignore nobody
	counts siw1/1 'req_rcvd_rev2 req_rcvd_enhanced timeout_decide failed_responder' \
		from_peer "send hex ${REQ}5002000a800880086e6f626f6479" 'expect close'
	stop server
	port=7643
	serve $port --reject busy
	counts siw1/1 "$terminated reject_sent" from_peer "$REQ_V08" 'expect reply reject' 'expect close'
	stop server
}

# Nobody answers at an address that ARP need not look for
connects_to_nobody() {
	ip netns exec a ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev eth0 nud permanent
	run client a 40 "$RDMAFIRST" client 10.77.0.9 7655 --timeout 30
	ip netns exec a ip neigh del 10.77.0.9 dev eth0
}

initiator_counters() {
	plain
	local term="$ENHANCED_INITIATOR failed_initiator" goes="$ENHANCED_INITIATOR established_initiator"
	client_options='--mpa revision=1'
	counts siw0/1 'req_sent_rev1 rep_rcvd_rev1 established_initiator' \
		initiator_meets 7650 "send hex ${REP}40010000" 'wait 300ms'
	client_options=''
	counts siw0/1 "$goes rtr_sent_write" initiator_meets 7650 "send hex ${REP}5002000480088008" 'expect write-rtr'
	counts siw0/1 "$goes rtr_sent_read" initiator_meets 7650 "send hex ${REP}5002000480084008" 'expect read-rtr'
	counts siw0/1 "$goes rtr_sent_send" initiator_meets 7650 "send hex ${REP}50020004c0080008" 'expect send'
	counts siw0/1 "$term term_sent_rtr" initiator_meets 7650 "$REP_V47" 'expect term 2/0/7'
	# ORD 1000 of a device of 128
	counts siw0/1 "$term term_sent_ird" initiator_meets 7650 "send hex ${REP}50020004800883e8" 'expect term 2/0/6'
	counts siw0/1 "$term reject_rcvd" initiator_meets 7650 "send hex ${REP}7002000480088008" 'expect close'
	counts siw0/1 'req_sent_rev2 req_sent_enhanced bad_key failed_initiator' \
		initiator_meets 7650 "send hex ${REQ}5002000480088008" 'expect close'
	"$MPANL" set siw0/1 reply-ms=300 connect-ms=300
	counts siw0/1 'req_sent_rev2 req_sent_enhanced timeout_reply failed_initiator' initiator_meets 7650 'expect close'
	counts siw0/1 'timeout_connect failed_initiator' connects_to_nobody
	"$MPANL" set siw0/1 revision=3 reply-ms=5000
	counts siw0/1 'req_sent_rev2 req_sent_enhanced fallbacks req_sent_rev1 rep_rcvd_rev1 established_initiator' \
		initiator_meets 7651 'reset' 'accept' 'expect request rev=1' "send hex ${REP}40010000" 'wait 300ms'
}

# The list of counters is longer than a datagram: who changes something meanwhile is noticed
dumps_are_of_one_piece() {
	plain
	local said
	said=$("$MPANL" interrupt)
	[[ $said == '{"records":2,"datagrams":'[23]',"interrupted":false}' ]] || fail "undisturbed: $said"
	said=$("$MPANL" interrupt siw0/1 rtr-ms=1)
	[[ $said == *'"interrupted":true}' ]] || fail "nobody is told: $said"
}

half_open_is_counted() {
	plain
	serve 7621
	# shellcheck disable=SC2016
	start peer a 20 bash -c 'exec 3<>"/dev/tcp/$0/7621"; echo sent; sleep 15' "$(address b)"
	wait_line peer '^sent' 20
	wait_for 5 'the connection to be counted' is_half_open
	stop peer
	wait_for 5 'nothing to be half open' nothing_half_open
	stop server
}

is_half_open() {
	[[ $(counter siw1/1 mpa_half_open) == 1 ]]
}

# ---- notifications

notifications() {
	plain
	start monitor a 60 "$MPANL" monitor --seconds 50
	stop monitor
	# in the namespace that owns the device, which is the first one
	"$MPANL" monitor --seconds 50 >"$WORK/monitor.log" 2>&1 &
	pid_of[monitor]=$!
	wait_line monitor '^listening' 20
	"$MPANL" set siw0/1 rtr-ms=4321
	wait_line monitor '"event":"policy".*"dev":"siw0".*"port":1.*"policy":\{"rtr-ms":4321\}' 10
	"$MPANL" reset siw0/1
	wait_line monitor '"event":"policy".*"port":1,"policy":\{\}' 10
	serve 7630
	connect 7630
	wait_line monitor '"event":"connection".*"dev":"siw0".*"state":"RDMA","role":"initiator","status":0.*"model":"peer-to-peer","rtr":\["write"\]' 10
	wait_line monitor '"event":"connection".*"dev":"siw1".*"state":"RDMA","role":"responder","status":0.*"local":"10.77.0.2:7630".*"rtr-seen":\["write"\]' 10
	stop server
	run client a 20 "$RDMAFIRST" client "$(address b)" 7630 --timeout 15
	wait_line monitor '"event":"connection".*"dev":"siw0".*"role":"initiator","status":111.*"remote":"10.77.0.2:7630"' 10
	initiator_meets 7631 "$REP_V47" 'expect term 2/0/7'
	wait_line monitor '"event":"connection".*"dev":"siw0".*"state":"REP_RCVD".*"status":71,"ecode":7.*"remote":"10.77.0.2:7631"' 10
	stop monitor
}

# ---- tracepoints

tracing() {
	plain
	local events=$TRACING/events/iw_mpa
	[[ -d $events ]] || { note 'this kernel has no tracepoints' && return; }
	echo >$TRACING/trace
	echo 1 >$events/enable
	serve 7640
	connect 7640
	stop server
	echo 0 >$events/enable
	cp $TRACING/trace "$WORK/trace.log"
	local who='dev=siw0 llp=tcp role=initiator qpn=[0-9]+ local=10.77.0.1:[0-9]+ remote=10.77.0.2:7640'
	has_line trace "mpa_frame_sent: $who kind=request rev=2 m=0 c=0 r=0 s=1 p2p=1 rtr=write.read ird=4 ord=4 pdata_len=0" ||
		fail 'the Request was not traced'
	has_line trace "mpa_frame_received: $who kind=reply rev=2 .* s=1 p2p=1 rtr=write.read" || fail 'the Reply was not traced'
	has_line trace "mpa_decision: $who verdict=go status=0 ecode=0 ird=4 ord=4 read_slots=4 rtr=write peer_known=1" ||
		fail 'the decision was not traced'
	has_line trace "mpa_rtr: $who dir=sent rtr=write" || fail 'the RTR was not traced'
	has_line trace "mpa_rtr: dev=siw1 .* dir=received rtr=write" || fail 'the RTR was not traced as received'
	has_line trace "mpa_state: $who from=REQ_SENT to=REP_RCVD" || fail 'the states were not traced'
	has_line trace "mpa_end: $who established in=REP_RCVD status=0 ecode=0" || fail 'the end was not traced'
}

# ---- those who take things away

busy() { # starts watchers and changers
	local i
	"$RDMA" mpa monitor >"$WORK/monitor0.log" 2>&1 &
	pid_of[monitor0]=$!
	for i in 1 2; do
		"$MPANL" monitor --seconds 60 >"$WORK/monitor$i.log" 2>&1 &
		pid_of[monitor$i]=$!
	done
	# shellcheck disable=SC2016
	for i in 1 2; do
		bash -c 'while :; do "$0" show; "$0" stat; done' "$MPANL" >"$WORK/dump$i.log" 2>&1 &
		pid_of[dump$i]=$!
	done
	# shellcheck disable=SC2016
	bash -c 'while :; do "$0" set siw0/1 rtr-ms=$RANDOM; "$0" set siw1 model=0; "$0" reset siw1; done' "$MPANL" \
		>"$WORK/set.log" 2>&1 &
	pid_of[set]=$!
	sleep 1
}

device_goes_while_watched() {
	plain
	local i
	busy
	for i in 1 2 3 4 5; do
		rdma link del siw0
		rdma link del siw1
		ip netns exec a rdma link add siw0 type siw netdev eth0
		ip netns exec b rdma link add siw1 type siw netdev eth0
	done
	stop_all
	plain
	is '{}' siw0/1 .policy
}

policies_go_with_their_device() {
	plain
	"$MPANL" set siw0/1 rtr-ms=1
	rdma link del siw0
	ip netns exec a rdma link add siw0 type siw netdev eth0
	is '{}' siw0/1 .policy
}

namespace_goes_while_watched() {
	plain
	local i
	busy
	ip netns add c
	ip netns exec c "$MPANL" monitor --seconds 60 >"$WORK/monitorc.log" 2>&1 &
	pid_of[monitorc]=$!
	ip netns exec c "$RDMA" mpa monitor >"$WORK/monitorc0.log" 2>&1 &
	pid_of[monitorc0]=$!
	# shellcheck disable=SC2016
	ip netns exec c bash -c 'while :; do "$0" show; done' "$MPANL" >"$WORK/dumpc.log" 2>&1 &
	pid_of[dumpc]=$!
	sleep 1
	ip netns del c
	stop dumpc
	stop monitorc
	stop monitorc0
	stop_all
	for i in 1 2 3; do
		ip netns add c
		ip netns exec c "$MPANL" show >/dev/null
		ip netns del c
	done
}

# siw and iw_mpa go and come back, with those who watch asking all the while, which loads them
module_goes_while_watched() {
	plain
	local i
	busy
	rdma link del siw0
	rdma link del siw1
	for i in 1 2 3; do
		wait_for 20 'siw to be unloaded' unload siw
		wait_for 20 'iw_mpa to be unloaded' unload iw_mpa
		"$MPANL" show default >/dev/null || fail 'the module does not come back by itself'
	done
	stop_all
	modprobe siw
	ip netns exec a rdma link add siw0 type siw netdev eth0
	ip netns exec b rdma link add siw1 type siw netdev eth0
	plain
}

unload() {
	[[ ! -e /sys/module/$1 ]] || rmmod "$1" 2>/dev/null
}

fuzzed() {
	plain
	timeout $((FUZZ_SECONDS + 60)) "$MPANL" fuzz --seconds "$FUZZ_SECONDS" --seed "${RANDOM}" >"$WORK/fuzz.log" 2>&1 ||
		fail "the fuzzer ends with status $?: $(tail -n 1 "$WORK/fuzz.log")"
	note "$(tail -n 1 "$WORK/fuzz.log")"
	plain
	serve 7650
	connect 7650
	stop server
}

check 'settings can be made, seen and taken back' set_and_reset
check 'layers lie on each other, ceilings only get lower' layers
check 'of several settings in a request all are taken or none' all_or_nothing
check 'what cannot be is refused with a reason' impossible
check 'odd requests are refused with a reason' odd_requests
check 'an ordinary user may look and not touch' others_may_look
check 'root of another user namespace may not touch either' root_elsewhere
check 'F47: an ordinary user cannot be the port mapper' no_port_mapper
check "the port's RTR read is on the wire and in rdma resource" port_rtr_read
check "a program's RTR beats the port's" option_beats_port
check "a program's model beats the port's" option_model
check "a listener's options are those of its connections" listener_option_inherited
check "options before accept beat the listener's" accept_option
check 'depths can be left to the program, or limited by it' option_depths
check 'bad options are refused by rdma_set_option()' option_refused
check 'bad options change nothing' bad_option_changes_nothing
check 'what was negotiated can be asked for' outcome_can_be_asked_for
check 'impossible options are refused by rdma_connect()' impossible_option
check 'a listener keeps the policy it began with' snapshot_at_listen
check 'Rev 1 alone closes on Rev 2, and the other falls back' revision_1
check 'a ceiling holds for those who ask for more' ceiling
check 'a deadline is as it is set' deadline
check 'counters count' counters_add_up
check 'each counter of a responder counts what it says' responder_counters
check 'each counter of an initiator counts what it says' initiator_counters
check 'a list that changes while it is read says so' dumps_are_of_one_piece
check 'half-open connections are counted' half_open_is_counted
check 'changes and connections are notified' notifications
check 'tracepoints tell the story' tracing
check 'policies go with their device' policies_go_with_their_device
check 'devices go while others watch' device_goes_while_watched
check 'namespaces go while others watch' namespace_goes_while_watched
check 'modules go while others watch' module_goes_while_watched
check 'random messages do no harm' fuzzed
finish
