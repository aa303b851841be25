#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/exs.sh [REGEX]
#
# libexs (libexs) over siw: its own tests of the C interface and its random threads, all modes of the tools
# in both directions, the messages on the wire, depths, peers that go or misbehave. EXS-… are the
# requirements that a case shows.
#
# Runs as exs exs-sctp exs-streams: 1200 s
# Sample exs: EXS-1 to|complete once|normal, 10000.*in namespace b|persistent, 10000.*in namespace a|examples.*in namespace a|EXS-4: S|without a credit|terminates the Read|siw: a receiver
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly EXS=$BUILD/exs
readonly RDMA=${TESTS%/*}/build/rdma
readonly INPUT=$WORK/input
port=7600

head -c 3000000 /dev/urandom >"$INPUT"

# A server of a tool; it listens when this returns
serve() { # TOOL NETNS [OPTION…]
	local tool=$1 netns=$2
	port=$((port + 1))
	start server "$netns" 150 "$EXS/exs-$tool" --listen "$(address "$netns")" -p "$port" --protocol rdma "${@:3}"
	wait_ready server '^listening'
}

# The tool's client of that server; its JSON is in $WORK/client.log
client() { # TOOL NETNS [OPTION…]
	run client "$2" 100 "$EXS/exs-$1" "$(address "$(other "$2")")" -p "$port" --protocol rdma --json "${@:3}"
}

client_well() {
	client "$@"
	[[ $STATUS -eq 0 ]] || fail "the client ended with status $STATUS: $(tail -n 1 "$WORK/client.log")"
}

says() { # JQ-FILTER
	grep '^{' "$WORK/client.log" | jq -r "$1"
}

# ---- the interface

# Both ends in one process, at one address
own_tests() { # FILTER
	run tests a 600 env "EXS_TEST_ADDRESS=$(address a)" "EXS_TEST_SLOW=$SLOW_HOST" "$EXS/exs_library_tests" \
		--gtest_filter="$1"
	[[ $STATUS -eq 0 ]] || fail "tests ended with status $STATUS: $(grep -A 6 ': Failure$' "$WORK/tests.log" | cut -c1-300 | paste -sd'|')"
	note "$(grep ' ran\.' "$WORK/tests.log")"
	note "skipped:$(sed -nE '/ms\)$/s/^\[  SKIPPED \] [A-Za-z]+\.(\w+) .*/ \1/p' "$WORK/tests.log" | tr -d '\n')"
	grep -qE '^\[  PASSED  \] [1-9]' "$WORK/tests.log" || fail 'exs_library_tests has run no test'
}

storm() { # SECONDS
	run_well storm a $(($1 + 100)) "$EXS/exs_storm" --rdma --address "$(address a)" --seconds "$1"
	note "$(tail -n 1 "$WORK/storm.log")"
}

# siw has its ports from TCP: a client without RDMA is to be served all the same
any_protocol() { # ADDRESS
	local one netns to protocol expected
	port=$((port + 2))
	start server b 150 "$EXS/exs-blast" --listen "$1" -p "$port" --protocol any
	wait_ready server '^listening'
	for one in "a $(address b) any rdma" "a $(address b) tcp tcp" "b $(address b) tcp tcp" "b 127.0.0.1 any tcp"; do
		read -r netns to protocol expected <<<"$one"
		[[ $1 == 0.0.0.0 || $to != 127.0.0.1 ]] || continue
		run client "$netns" 100 "$EXS/exs-blast" "$to" -p "$port" --protocol "$protocol" --json -n 10
		[[ $STATUS -eq 0 ]] ||
			fail "exs-blast from $netns to $to by $protocol ended with status $STATUS: $(tail -n 1 "$WORK/client.log")"
		is "the protocol to $to from $netns" "$(says .in_force.protocol)" "$expected"
	done
	stop server
}

# ---- the tools

# The receiver gets each message as it was sent
blast() { # SERVER MODE [OPTION…]
	local output=$WORK/output
	local -a type=()
	[[ " $* " != *' --stream '* ]] || type=(--stream)
	serve blast "$1" --once --output "$output" "${type[@]}"
	client_well blast "$(other "$1")" --mode "$2" --input "$INPUT" "${@:3}"
	ended_well server 30
	is 'the protocol' "$(says .in_force.protocol)" rdma
	is 'the digest' "$(sha256sum <"$output")" "$(head -c "$(says .bytes)" "$INPUT" | sha256sum)"
	rm "$output"
}

ping_all() { # SERVER
	local mode
	serve ping "$1"
	for mode in normal immediate persistent; do
		client_well ping "$(other "$1")" --mode "$mode" -n 50
		note "$mode: $(says '.latency_us | "\(.p50) us"')"
	done
}

exchange() { # SERVER
	serve exchange "$1" --once
	client_well exchange "$(other "$1")" -n 50 -s 5000
	ended_well server 30
}

# Programs of the examples, which a user would write. Over siw each has the port behind its own for TCP as well
examples() { # SERVER
	local client
	client=$(other "$1")
	port=$((port + 10))
	mkdir "$WORK/files"
	cp "$INPUT" "$WORK/files/input"
	start echo "$1" 100 "$EXS/exs_example_echo" "$(address "$1")" "$port"
	start publisher "$1" 100 bash -c "{ echo 'colour blue'; sleep 100; } | '$EXS/exs_example_publisher' $(address "$1") $((port + 2))"
	start files "$1" 100 env -C "$WORK/files" "$EXS/exs_example_file_server" "$(address "$1")" $((port + 4))
	for one in echo publisher files; do wait_ready "$one" '^listening'; done
	run_well client "$client" 40 "$EXS/exs_example_echo" "$(address "$1")" "$port" hello
	has_line client '^hello$' || fail "the echo of 'hello' is '$(<"$WORK/client.log")'"
	# the server speaks first: its client sends nothing at all
	run_well client "$client" 40 "$EXS/exs_example_publisher" "$(address "$1")" $((port + 2)) colour
	has_line client '^blue$' || fail "the published colour is '$(<"$WORK/client.log")', not blue"
	run_well client "$client" 60 "$EXS/exs_example_file_server" "$(address "$1")" $((port + 4)) input
	cmp "$WORK/client.log" "$INPUT" || fail 'the received file differs'
	rm -r "$WORK/files"
}

# ---- on the wire

# Sends 20 messages of $2 octets, then 40. The difference on the wire is 20 times the cost of one
costs() { # MODE OCTETS WANTED
	local count kinds=() difference
	for count in 20 40; do
		capture wire b
		serve blast b --once
		client_well blast a --mode "$1" -s "$2" -n "$count"
		ended_well server 30
		capture_end wire
		on_the_wire wire "$port" default_setup
		kinds+=("$(jq -c '[.[0].events[] | select(.type == "fpdu" and .last) | "\(.from) \(.kind)"] | group_by(.) |
			map({key: .[0], value: length}) | from_entries' "$WORK/wire.$port.json")")
	done
	difference=$(jq -nrc --argjson few "${kinds[0]}" --argjson many "${kinds[1]}" \
		'[$few + $many | keys[] | {key: ., value: (($many[.] // 0) - ($few[.] // 0))} | select(.value != 0) | "\(.key) \(.value / 20)"] | sort | join(", ")')
	is 'what a message costs' "$difference" "$3"
}

# The same by a decoder that nobody here wrote, which knows MPA of revision 1 alone
costs_by_tshark() { # MODE WANTED
	local count found=()
	"$RDMA" mpa set default revision 1 model client-server
	for count in 20 40; do
		capture wire b
		serve blast b --once
		client_well blast a --mode "$1" -s 100 -n "$count"
		ended_well server 30
		capture_end wire
		found+=("$(tshark -r "$WORK/wire.pcap" -Y "tcp.port == $port && iwarp_rdma.opcode" -T fields \
			-e iwarp_rdma.opcode 2>"$WORK/tshark.log" | tr ',' '\n' | grep -c . || true)")
	done
	is 'the messages of twenty' $((found[1] - found[0])) $((20 * $2))
}

# The server reads: no more at a time than its ORD and the client's IRD let it, and as many. siw has powers of two.
depths() { # CLIENT-IRD SERVER-ORD IN-FORCE
	# all is advertised before the first Read can be answered, however slow the machine
	tc -n a qdisc replace dev eth0 root netem delay 500ms limit 10000
	capture wire b
	serve blast b --once --ord "$2" --ird 3
	client_well blast a --ird "$1" --ord 2 -s 40000 -k 12 -n 12
	ended_well server 30
	capture_end wire
	tc -n a qdisc del dev eth0 root netem
	is 'the IRD in force' "$(says .in_force.ird)" "$3"
	is 'the ORD in force' "$(says .in_force.ord)" 2
	decode_json "$WORK/wire.pcap" "$port" >"$WORK/wire.json"
	is 'the most Reads at a time' "$(jq '[.[0].events | .[:(map(.type == "gap") | index(true)) // length][] | select(.type == "fpdu") |
		if .kind == "read-request" and .size > 0 then 1 elif .kind == "read-response" and .last then -1 else 0 end] |
		reduce .[] as $step ({now: 0, most: 0}; .now += $step | .most = ([.most, .now] | max)) | .most' "$WORK/wire.json")" "$3"
}

no_reads() {
	serve blast b --ord 0
	client_well blast a --mode immediate -s 3000 -n 20
	client blast a -s 3000 -n 20
	[[ $STATUS -eq 1 ]] ||
		fail "the client ended with status $STATUS, not 1, although the server cannot read its data with ORD 0"
	has_line client 'Operation not supported' ||
		fail "the client prints '$(tail -n 1 "$WORK/client.log")', not 'Operation not supported'"
}

# Without the peer-to-peer model a responder may not speak first on the wire
client_server() { # SETTING…
	local rev=2 codes='[5, 6]'
	"$RDMA" mpa set default "$@"
	capture wire b
	blast b normal -s 5000 -n 40 -k 4
	capture_end wire
	# over SCTP there are messages for Rev 1 and others for Rev 2
	[[ $* != *'revision 1'* ]] || rev=1 codes='[1, 2]'
	# shellcheck disable=SC2016 # jq's variable
	on_the_wire wire "$port" 'must(.events[0].p2p | not; "the Request asks for peer-to-peer"), order(["initiator send"]),
		must([.events[:2][] | .rev, .code | values] | . == [$rev, $rev] or . == $codes; "a frame of another revision")' 1 \
		--argjson rev "$rev" --argjson codes "$codes"
	exchange a
	examples b
}

# ---- lifetimes

# No Terminate, whoever closes whenever
closes() { # MODE MILLISECONDS
	local gaps
	capture wire b
	serve blast b
	client blast a --mode "$1" -s 20000 -n 100000 -k 4 --close-after-ms "$2"
	[[ $STATUS -eq 1 ]] || fail "the client ended with status $STATUS, not 1"
	wait_line server '^client: ' 30
	client_well blast a -n 10
	capture_end wire
	decode_json "$WORK/wire.pcap" "$port" >"$WORK/wire.json"
	is 'the number of Terminates' "$(jq '[.[].events[] | select(.kind == "term")] | length' "$WORK/wire.json")" 0
	gaps=$(jq '[.[].events[] | select(.type == "gap")] | length' "$WORK/wire.json")
	[[ $gaps == 0 ]] || note "not seen: what is behind $gaps gaps of the capture"
	note "the server: $(grep -m 1 '^client: ' "$WORK/server.log")"
}

# Until the client of the case is connected
busy() {
	wait_for 30 'two QPs' has_qps 2
	pause 1.5
}

killed_client() { # MODE
	serve blast b
	start client a 100 "$EXS/exs-blast" "$(address b)" -p "$port" --protocol rdma --mode "$1" -s 300000 -n 100000 -k 8
	busy
	stop client KILL
	wait_line server '^client: ' 30
	note "the server: $(grep -m 1 '^client: ' "$WORK/server.log")"
	client_well blast a -n 10
}

killed_server() { # MODE
	serve blast b
	start client a 100 "$EXS/exs-blast" "$(address b)" -p "$port" --protocol rdma --mode "$1" -s 300000 -n 100000 -k 8
	busy
	stop server KILL
	ended client 30
	[[ $STATUS -eq 1 ]] || fail "the client ended with status $STATUS, not 1"
	note "the client: $(tail -n 1 "$WORK/client.log")"
}

# Without FIN or RST: no packet passes any more. Before that the client's program sends nothing, its host answers.
host_dies() { # PROTOCOL
	port=$((port + 2))
	start server b 150 "$EXS/exs-blast" --listen "$(address b)" -p "$port" --protocol "$1" --keepalive-ms 1000
	wait_ready server '^listening'
	start client a 100 "$EXS/exs-blast" "$(address b)" -p "$port" --protocol "$1" -n 1000000
	pause 3
	pkill -STOP -P "${pid_of[client]}"
	pause 6
	! has_line server '^client: ' || fail "the server lost a peer that is there: $(grep -m 1 '^client: ' "$WORK/server.log")"
	tc -n a qdisc replace dev eth0 root netem loss 100%
	wait_line server '^client: .*timed out' 20
	tc -n a qdisc del dev eth0 root netem
	pkill -CONT -P "${pid_of[client]}"
}

# ib_uverbs waits until programs have closed a device of siw, which has no way to take it from them, and does so before
# rdma_cm tells them if it was loaded later
tell_first() {
	rdma link del siw0
	rdma link del siw1
	rmmod siw iw_mpa rdma_ucm rdma_cm
	modprobe -a rdma_cm rdma_ucm siw
	add_device a siw0
	add_device b siw1
}

# Both ends hear of it, and both processes go on to their end
device_goes() { # MODE
	serve blast b --once
	start client a 100 "$EXS/exs-blast" "$(address b)" -p "$port" --protocol rdma --mode "$1" -s 300000 -n 100000 -k 8
	busy
	local start
	start=$(now_ms)
	within b rdma link del siw1
	note "the device was gone after $(($(now_ms) - start)) ms"
	ended client 40
	[[ $STATUS -eq 1 ]] || fail "the client ended with status $STATUS, not 1"
	ended server 40
	[[ $STATUS -eq 1 ]] || fail "the server ended with status $STATUS, not 1"
	note "the client: $(tail -n 1 "$WORK/client.log"); the server: $(tail -n 1 "$WORK/server.log")"
}

# ---- peers that misbehave

# hostile SCENARIO NAME=VALUE…: the peer gets what it expects, nothing is left of it, and an honest client is served
hostile() {
	local setting name=$1
	local -a settings=()
	shift
	for setting in "$@"; do settings+=(--set "$setting"); done
	serve blast b
	[[ $name == /* ]] || name=$SCENARIOS/$name.txt
	run peer a 60 "$MPAPEER" run "$name" --connect "$(address b):$port" "${settings[@]}"
	[[ $STATUS -eq 0 ]] ||
		fail "the peer did not get what it expects: $(grep -A2 FAIL "$WORK/peer.log" | paste -sd' ' || true)"
	client_well blast a -n 10
	stop server
}

# message TYPE [FLAGS STATUS ID LENGTH ADDRESS KEY COUNT]: its 32 octets
message() {
	printf '%02x%02x%04x%08x%016x%016x%08x%08x' "$1" "${2:-0}" "${3:-0}" "${4:-0}" "${5:-0}" "${6:-0}" "${7:-0}" "${8:-0}"
}

# The peer's device answers no Read, as it has none
unanswered() {
	run_well tests a 150 env "EXS_TEST_ADDRESS=$(address a)" \
		"EXS_TEST_PEER=ip netns exec b $MPAPEER run $TESTS/scenarios/exs-client.txt" \
		"$EXS/exs_library_tests" --gtest_filter='RdmaPeer.*'
	grep -qE '^\[  PASSED  \] [1-9]' "$WORK/tests.log" || fail 'exs_library_tests has run no test'
	! grep -q '^\[  SKIPPED' "$WORK/tests.log" || fail 'exs_library_tests has skipped a test'
}

# The server waits for the peer's answer to its "go", and receives nothing meanwhile: 64 messages it can hold
floods() {
	local i plan='{"tool":"blast","mode":"normal","size":10,"in_flight":1,"count":10,"places":1}'
	{
		grep -vE '^(\$|expect close)' "$SCENARIOS/exs-client.txt"
		echo "send fpdu send $(message 1)"
		printf 'send fpdu send %s%s%0*x\n' "$(message 3 0 0 1 1024)" "$(printf %s "$plan" | od -An -tx1 -v | tr -d ' \n')" \
			$((2 * (1024 - ${#plan}))) 0
		# its acknowledgement of the plan, which gives the credit back, and its "go"
		printf 'expect send\nexpect send\n'
		for ((i = 2; i <= 65; i++)); do echo "send fpdu send $(message 3 0 0 $i 0)"; done
		# not the end
		echo 'expect nothing for 2s'
		echo "send fpdu send $(message 3 0 0 66 0)"
		echo 'expect close drain'
	} >"$WORK/flood.txt"
	hostile "$WORK/flood.txt"
}

says_bad() { # CLAIM MESSAGE
	check_tcp "$1, and serves the next client" hostile exs-client "MESSAGE=send fpdu send $2"
}

hostile_server() { # NAME=VALUE WANTED
	port=$((port + 1))
	start peer b 60 "$MPAPEER" run "$SCENARIOS/exs-server.txt" --listen "$port" --set "$1"
	wait_ready peer '^listening'
	run client a 60 "$EXS/exs-blast" "$(address b)" -p "$port" --protocol rdma -n 10
	[[ $STATUS -eq 1 ]] || fail "the client ended with status $STATUS, not 1"
	has_line client "$2" || fail "the client prints '$(tail -n 1 "$WORK/client.log")', not '$2'"
	ended_well peer 30
}

hello() { # VERSION KIND CREDITS IRD ORD IMMEDIATE
	printf '4c455853%02x%02x0000%04x%04x%04x0000%08x%024x' "$1" "$2" "$3" "$4" "$5" "$6" 0
}

refused() { # REASON
	printf '4c45585301%02x%02x00%048x' 0 "$1" 0
}

hostile_cases() {
	local ready=1 adv=2 adv_imm=3 ack=5 note=6 note_ack=7 revoke=8 revoked=9 fin=10 close=11
	says_bad 'libexs disconnects a peer that sends a message of an unknown type' "$(message 12)"
	says_bad 'libexs disconnects a peer that sends half a control message' "$(message $adv 0 0 1 100 4096 1 | cut -c1-32)"
	says_bad 'libexs disconnects a peer that sends an advertisement whose address range wraps' "$(message $adv 0 0 1 4096 0xfffffffffffff800 1)"
	says_bad 'libexs disconnects a peer that sends an acknowledgement of data that was not advertised' "$(message $ack 0 0 7 100)"
	says_bad 'libexs disconnects a peer that sends a second READY message' "$(message $ready)"
	says_bad 'libexs disconnects a peer that sends an advertisement with an unknown flag' "$(message $adv 0x80 0 1 100 4096 1)"
	says_bad 'libexs disconnects a peer that sends immediate data whose length differs from the announced length' "$(message $adv_imm 0 0 1 100)$(printf '%020x' 1)"
	says_bad 'libexs disconnects a peer that sends more immediate data than negotiated' "$(message $adv_imm 0 0 1 70000)"
	says_bad 'libexs disconnects a peer that sends a write note about memory that was not granted' "$(message $note 0 0 1 0 0 0 1)"
	says_bad 'libexs disconnects a peer that sends the acknowledgement of a write note that was not sent' "$(message $note_ack 0 0 1)"
	says_bad 'libexs disconnects a peer that sends a revocation of memory that was not advertised' "$(message $revoke 0 0 9)"
	says_bad 'libexs disconnects a peer that sends an answer to a revocation that was not sent' "$(message $revoked 0 0 9)"
	check_tcp 'EXS-6: libexs disconnects a peer that advertises without a credit' floods
	check_tcp 'libexs disconnects a peer that sends a message after its CLOSE message' hostile exs-client \
		"MESSAGE=send fpdu send $(message $close)" "MORE=send fpdu send $(message $fin)"
	local read
	read="MESSAGE=send fpdu send $(message $adv 0 0 1 1024 0x1000 0x1234)"
	check_tcp 'libexs disconnects a peer that terminates the Read of the memory it advertised by a TERM' hostile exs-client "$read" \
		'MORE=expect read-request src-stag=0x1234 src-to=0x1000 size=1024' 'ANSWER=send term 0/1/0'
	check_tcp 'libexs over siw: cancel, revocation and close end a receive whose Read the peer leaves unanswered after EXS_CLOSE_MS' unanswered
	check_tcp 'libexs disconnects a peer whose Read Response is longer than requested' hostile exs-client "$read" 'MORE=expect read-request' \
		'ANSWER=send read-response len=1300'
	check_tcp 'libexs disconnects a peer whose Read Response is shorter than requested' hostile exs-client "$read" 'MORE=expect read-request' \
		'ANSWER=send read-response len=100'
	check_tcp 'exs-blast disconnects a client whose first message contains no valid test parameters' hostile exs-client "$read" 'MORE=auto read-response'
	check_tcp 'libexs disconnects a peer that writes to an STag that was not granted to it' hostile exs-client 'MESSAGE=send fpdu write 00 stag=0x100 to=0'
	check_tcp 'libexs disconnects a peer that never sends its READY message' hostile exs-client READY=flush
	check_tcp 'libexs rejects a hello (private data of the MPA Request) of version 2 with reason 1 (other version)' hostile exs-refused \
		"HELLO=$(hello 2 1 16 16 16 1024)" "ANSWER=$(refused 1)"
	check_tcp 'libexs: connecting fails with EPROTO on an MPA Reply without a hello' hostile_server HELLO=00 'Protocol error'
	check_tcp 'libexs: connecting fails with EPROTO on an MPA Reply with a hello of version 2' hostile_server "HELLO=$(hello 2 1 16 16 16 1024)" 'Protocol error'
	check_tcp 'libexs: connecting fails with EPROTO on an MPA Reply with a hello of zero credits' hostile_server "HELLO=$(hello 1 1 0 16 16 1024)" 'Protocol error'
	check_tcp 'libexs: a client gets EPROTO when the server acknowledges a message that was not sent' hostile_server "MESSAGE=send fpdu send $(message $ack 0 0 7 100)" \
		'Protocol error'
	check_tcp 'EXS-13: a libexs listener of type SOCK_SEQPACKET rejects a hello of a stream socket with reason 2 (other type)' hostile exs-refused \
		"HELLO=$(hello 1 2 16 16 16 1024)" "ANSWER=$(refused 2)"
}

# ---- what stands here is the whole list

# A program is not told of the port of a shared association, which its peer reports (iw_mpa_sctp.rst)
names=''
[[ $STREAMS == 1 ]] || names=:-Library.EXS1_PeerNameEqualsTheSocketNameOfThePeer
check 'EXS-1 to EXS-13: the libexs interface tests pass over siw' own_tests "Library.*$names"
check 'libexs operations complete once under random calls from several threads' storm 20
check 'exs-blast --protocol any: a wildcard listener serves RDMA and TCP clients' any_protocol 0.0.0.0
check 'exs-blast --protocol any: a listener at an RDMA address serves RDMA and TCP clients' any_protocol "$(address b)"
for netns in b a; do
	for mode in normal immediate persistent persistent-recv; do
		check "EXS-4, EXS-7, EXS-8, EXS-10: exs-blast receives the sent data, mode $mode, 10000 octets each, server in namespace $netns" \
			blast $netns $mode -s 10000 -n 300 -k 4
	done
	check "EXS-13: exs-blast --stream receives the sent data, server in namespace $netns" blast $netns normal --stream -s 70001 -n 40 -k 8
	check "EXS-14: exs-ping completes in modes normal, immediate and persistent, server in namespace $netns" ping_all $netns
	check "EXS-9, EXS-14: exs-exchange completes 50 request-response exchanges of 5000 octets, server in namespace $netns" exchange $netns
	check "the libexs examples (echo, publisher, file server) transfer data, also if the server sends first, server in namespace $netns" examples $netns
done
check 'EXS-4: Send, Read Request, Read Response and Send make up a normal libexs transfer' costs normal 100 \
	'initiator read-response 1, initiator send 1, responder read-request 1, responder send 1'
check 'EXS-7: two Sends make up an immediate libexs transfer' costs immediate 100 'initiator send 1, responder send 1'
check 'EXS-8: Read Request and Read Response make up a persistent libexs transfer' costs persistent 100 'initiator read-response 1, responder read-request 1'
check 'EXS-10: one RDMA Write makes up a persistent-recv libexs transfer' costs persistent-recv 100 'initiator write 1'
check_tcp 'EXS-4: tshark counts four RDMAP messages for a normal libexs transfer' costs_by_tshark normal 4
check_tcp 'EXS-7: tshark counts two RDMAP messages for an immediate libexs transfer' costs_by_tshark immediate 2
check_tcp 'EXS-8: tshark counts two RDMAP messages for a persistent libexs transfer' costs_by_tshark persistent 2
reset_default
check 'libexs: a client with IRD 2 limits a server with ORD 8 to 2 outstanding Reads' depths 2 8 2
check 'libexs: a server with ORD 4 has at most 4 outstanding Reads to a client with IRD 8' depths 8 4 4
check 'libexs: a server with ORD 0 receives immediate transfers and rejects normal ones (by Read) with EOPNOTSUPP' no_reads
check 'libexs transfers data over client-server connections, where the initiator sends first' client_server model client-server
check 'libexs transfers data over MPA revision 1, where the initiator sends first' client_server revision 1 model client-server
reset_default
hostile_cases
check 'libexs over siw: a receiver with EXS_KEEPALIVE_MS 1000 gets ETIMEDOUT within 20 s if the host of its peer is cut off' host_dies rdma
check 'libexs over TCP: a receiver with EXS_KEEPALIVE_MS 1000 gets ETIMEDOUT within 20 s if the host of its peer is cut off' host_dies tcp
tell_first
for mode in normal immediate persistent persistent-recv; do
	check "libexs: a client that closes during $mode transfers causes no RDMAP Terminate" closes $mode 300
	check "libexs: after a client is killed during $mode transfers, the server serves the next client" killed_client $mode
	check "libexs: a client gets an error when its server is killed during $mode transfers" killed_server $mode
	check "libexs: removing the server's RDMA device during $mode transfers ends both programs with an error" device_goes $mode
	[[ -e /sys/class/infiniband/siw1 ]] || add_device b siw1
done
finish
