#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/fastopen.sh
#
# The MPA Request in TCP's SYN: one round trip instead of two where it is asked for and possible, two
# where it is not; whoever makes use of it to be a nuisance meets the same limits.
# shellcheck disable=SC2031 # lib.sh's WORK
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

readonly WAY_MS=25
readonly TRIP_US=$((2 * WAY_MS * 1000))
# of so many connections the quickest counts: others want the processors, too
readonly SAMPLES=10
# So much later than after its round trips it may be there: before one more could have been made; with a
# kernel that has checkers it is not a matter of round trips
late_us=$((TRIP_US - 1))
[[ $VM_KERNEL == debian ]] || late_us=$((10 * TRIP_US))
readonly REQ=4d504120494420526571204672616d65
readonly REP=4d504120494420526570204672616d65
# Rev 2, peer-to-peer, RTR by Write, IRD and ORD 8
readonly REQUEST=${REQ}5002000480088008

# Every case begins with nothing set, no cookie, and a network that takes no time
plain() {
	local netns
	nothing_set
	for netns in a b; do
		sysctl_of $netns tcp_fastopen 3
		sysctl_of $netns tcp_synack_retries 5
		ip -n $netns tcp_metrics flush >/dev/null
		tc -n $netns qdisc del dev eth0 root 2>/dev/null || true
	done
}

network() { # NETNS NETEM-OPTION…: of what it sends
	tc -n "$1" qdisc replace dev eth0 root netem limit 10000 "${@:2}"
}

fast() {
	plain
	mpa set link siw0/1 fastopen on
	mpa set link siw1/1 fastopen on
}

far() {
	network a delay ${WAY_MS}ms
	network b delay ${WAY_MS}ms
}

# What a burst of packets brings is there before anybody has looked at the first
in_bursts() {
	network b delay 5ms slot 80ms 80ms
}

serve() { # PORT [OPTION…]
	start server b 120 "$RDMAFIRST" server "$(address b "$family")" "$1" --count 0 --timeout 110 "${@:2}"
	wait_line server '^listening' 30
}

family=''
# Sets TOOK, in us: what the quickest one took
connect() { # PORT [TIMES]
	run_well client a 60 "$RDMAFIRST" client "$(address b "$family")" "$1" --expect first --times "${2:-1}"
	TOOK=$(sed -n 's/^rdma_connect to outcome: \([0-9]*\) us$/\1/p' "$WORK/client.log" | sort -n)
	note "connected after (us): $(paste -sd' ' <<<"$TOOK")"
	TOOK=${TOOK%%$'\n'*}
}

took_round_trips() { # COUNT
	local least=$(($1 * TRIP_US))
	local most=$((least + late_us))
	[[ $TOOK -ge $least && $TOOK -le $most ]] || fail "connecting took $TOOK us, not $least to $most"
}

# counted LINK 'COUNTER=MORE…' COMMAND…
counted() {
	local before
	before=$(counters "$1")
	"${@:3}"
	wait_for 5 "$1 to count $2" has_counted "$1" "$2" "$before"
}

has_counted() { # LINK 'COUNTER=MORE…' BEFORE
	local wanted more now
	now=$(counters "$1")
	for wanted in $2; do
		more=$(jq --argjson before "$3" ".mpa_${wanted%=*} - \$before.mpa_${wanted%=*}" <<<"$now")
		[[ $more == "${wanted#*=}" ]] || return 1
	done
}

# A line for each SYN of an initiator: none, cookiereq or cookie; bytes of data; request, if one begins there
syns() { # NAME PORT
	tcpdump -nA -r "$WORK/$1.pcap" "dst port $2" 2>/dev/null | awk '
		/ Flags \[/ {
			if (line) print line
			line = ""
			if (!/ Flags \[S\],/) next
			line = /tfo *cookiereq/ ? "cookiereq" : /tfo *cookie/ ? "cookie" : "none"
			line = line " " $NF
		}
		line && /MPA ID Req Frame/ { line = line " request" }
		END { if (line) print line }'
}

times() { # COUNT LINE
	local i
	for ((i = 0; i < $1; i++)); do
		echo "$2"
	done
}

syns_are() { # NAME PORT LINE…
	local got wanted
	got=$(syns "$1" "$2" | paste -sd'|')
	wanted=$(printf '%s\n' "${@:3}" | paste -sd'|')
	[[ $got == "$wanted" ]] || fail "the SYNs are $got, not $wanted"
}

play() { # NAME NETNS OPTIONS STATEMENT…
	local name=$1 netns=$2 options=$3
	printf '%s\n' 'within 20s' "${@:4}" >"$WORK/$name.txt"
	# shellcheck disable=SC2086 # words
	start "$name" "$netns" 60 "$MPAPEER" run "$WORK/$name.txt" --fast-open $options
}

# Other sockets of the server's port than the listener
sockets() { # PORT
	cat "/proc/${pid_of[server]}/net/tcp" "/proc/${pid_of[server]}/net/tcp6" |
		awk -v port="$(printf ':%04X$' "$1")" '$2 ~ port && $4 != "0A"'
}

no_sockets() { # PORT
	[[ -z $(sockets "$1") ]]
}

nothing_in_program() {
	[[ $(in_program) -eq 0 ]]
}

is_at_least() { # LINK COUNTER VALUE
	[[ $(counter "$1" "$2") -ge $3 ]]
}

# ---- cases

one_round_trip() { # PORT RTR-KIND FIRST-FPDU [6]
	family=${4:-}
	fast
	mpa set link siw0/1 rtr "$2"
	capture wire a
	serve "$1"
	far
	counted siw0/1 'req_sent_syn=0 established_initiator=1' connect "$1"
	[[ $TOOK -ge $((2 * TRIP_US)) ]] || fail 'the first has not taken two round trips'
	counted siw0/1 'req_sent_syn=2 req_sent_rev2=2 established_initiator=2' connect "$1" 2
	counted siw1/1 "req_rcvd_syn=$SAMPLES req_rcvd_rev2=$SAMPLES established_responder=$SAMPLES" connect "$1" $SAMPLES
	took_round_trips 1
	stop server
	capture_end wire
	syns_are wire "$1" 'cookiereq 0' 'cookie 24 request'{,} "$(times $SAMPLES 'cookie 24 request')"
	on_the_wire wire "$1" "frames_first, order([\"initiator $3\"])" $((3 + SAMPLES))
}

# It does not say so; who listens is told of a setting
monitor_listens() {
	mpa set default decide-timeout 60000
	has_line monitor '^policy default '
}

# Of two connections the second is said to be one, by the rdma tool and by a tracepoint
told() {
	local events=$TRACING/events/iw_mpa said
	fast
	serve 7903
	"$RDMA" mpa monitor >"$WORK/monitor.log" 2>&1 &
	pid_of[monitor]=$!
	wait_for 20 'the monitor' monitor_listens
	connect 7903
	wait_line monitor '^established link siw0/1 .*role initiator' 20
	! has_line monitor 'fastopen' || fail 'the first is said to be one'
	[[ ! -d $events ]] || echo 1 >$events/mpa_fastopen/enable
	connect 7903
	wait_line monitor '^established link siw0/1 .*role initiator .*fastopen on' 20
	wait_line monitor '^established link siw1/1 .*role responder .*fastopen on' 20
	stop server
	[[ -d $events ]] || { note 'this kernel has no tracepoints' && return; }
	echo 0 >$events/mpa_fastopen/enable
	cp $TRACING/trace "$WORK/trace.log"
	said='mpa_fastopen: dev=siw0 llp=tcp role=initiator .* remote=10.77.0.2:7903 state=CONNECTING'
	has_line trace "$said" || fail 'the Request in the SYN was not traced'
	said='mpa_fastopen: dev=siw1 llp=tcp role=responder .* local=10.77.0.2:7903 .*state=REQ_WAIT'
	has_line trace "$said" || fail 'the Request in the SYN was not traced by the responder'
}

off_is_off() {
	plain
	capture wire a
	serve 7910
	far
	counted siw0/1 'req_sent_syn=0' connect 7910 $SAMPLES
	took_round_trips 2
	stop server
	capture_end wire
	syns_are wire 7910 "$(times $SAMPLES 'none 0')"
}

# The sysctl asks for it for all listeners, which does not stand for what their programs can bear
listener_off_is_off() {
	plain
	sysctl_of b tcp_fastopen $((0x403))
	mpa set link siw0/1 fastopen on
	capture wire a
	serve 7911
	counted siw1/1 'req_rcvd_syn=0' connect 7911
	counted siw1/1 'req_rcvd_syn=0' connect 7911
	stop server
	capture_end wire
	syns_are wire 7911 'cookiereq 0' 'cookiereq 0'
}

# What the first connection finds out the second makes use of, and others cannot
goes_without() { # PORT NETNS SYSCTL OTHER-SYNS
	fast
	capture wire a
	serve "$1"
	connect "$1"
	counted siw0/1 'req_sent_syn=1' connect "$1"
	sysctl_of "$2" tcp_fastopen "$3"
	far
	counted siw0/1 "req_sent_syn=0 established_initiator=$SAMPLES" connect "$1" $SAMPLES
	took_round_trips 2
	stop server
	capture_end wire
	syns_are wire "$1" 'cookiereq 0' 'cookie 24 request' "$(times $SAMPLES "$4")"
}

# nstat of a namespace: since it began
tcp_counter() { # NETNS NAME
	within "$1" nstat -asz "TcpExt$2" | awk -v name="TcpExt$2" '$1 == name { print $2 }'
}

# A path that does not like data in SYNs: as if the one with data were lost
lost_syn() {
	local fails
	fast
	capture wire a
	serve 7914
	connect 7914
	fails=$(tcp_counter a TCPFastOpenActiveFail)
	network a loss 100%
	start client a 40 "$RDMAFIRST" client "$(address b)" 7914 --expect first
	wait_line client 'ROUTE_RESOLVED' 20
	pause 0.4
	network a delay 1ms
	counted siw0/1 'req_sent_syn=0 established_initiator=1' ended_well client 30
	stop server
	capture_end wire
	# what is lost in the qdisc is not captured
	syns_are wire 7914 'cookiereq 0' 'none 0'
	[[ $(tcp_counter a TCPFastOpenActiveFail) -eq $((fails + 1)) ]] || fail 'no SYN with data was lost'
}

# Each packet comes twice
doubled_syn() {
	fast
	serve 7915
	connect 7915
	network a duplicate 100%
	counted siw1/1 'req_rcvd_syn=1 req_rcvd_rev2=1 established_responder=1' connect 7915
	[[ $(grep -c 'CONNECT_REQUEST' "$WORK/server.log") -eq 2 ]] || fail 'the program is asked twice'
	stop server
}

# Answered and closed by the time the initiator looks at its new connection
rejected() {
	fast
	serve 7916 --reject busy
	run client a 30 "$RDMAFIRST" client "$(address b)" 7916
	[[ $STATUS -eq 4 ]] || fail "the first: status $STATUS"
	in_bursts
	counted siw0/1 'req_sent_syn=5 reject_rcvd=5 failed_initiator=5' \
		run client a 60 "$RDMAFIRST" client "$(address b)" 7916 --times 5
	[[ $(grep -c 'REJECTED.* pdata 4 62757379$' "$WORK/client.log") -eq 5 ]] || fail 'not every reject has come with its private data'
	stop server
}

# ... or did not like what it saw
falls_back() { # PORT HOW
	fast
	mpa set link siw0/1 revision fallback
	serve "$1"
	connect "$1"
	stop server
	capture wire a
	play peer b "--listen $(address b):$1 --accept-within 40s" 'expect request' "$2" 'accept' \
		'expect request rev=1' "send hex ${REP}40010000" 'wait 500ms'
	wait_line peer '^listening on' 20
	in_bursts
	counted siw0/1 'req_sent_syn=1 fallbacks=1 established_initiator=1 failed_initiator=0' \
		run client a 40 "$RDMAFIRST" client "$(address b)" "$1" --no-receive --timeout 30
	ended_well peer 30
	capture_end wire
	syns_are wire "$1" 'cookie 24 request' 'none 0'
}

# Its SYN comes, and nothing else; nor does it hear of us
silent() { # PORT COUNTER HEX
	local timeouts
	fast
	sysctl_of b tcp_synack_retries 1
	mpa set link siw1/1 request-timeout 1000 rtr-timeout 1000
	serve "$1"
	connect "$1"
	wait_for 20 'the first connection to be over' no_sockets "$1"
	network b loss 100%
	timeouts=$(counter siw1/1 "$2")
	counted siw1/1 'req_rcvd_syn=1 established_responder=0 failed_responder=1' vain_syn "$@" $((timeouts + 1))
	all_is_over "$1"
	network b delay 1ms
	counted siw1/1 'req_rcvd_syn=1' connect "$1"
	stop server
}

all_is_over() { # PORT
	# TCP has to give up its handshake, too
	wait_for 30 'the end of all sockets' no_sockets "$1"
	wait_for 5 'the program to be told' nothing_in_program
	wait_for 5 'nothing to be half open' nothing_half_open
	[[ $(rdma resource show cm_id link siw1 -j | jq '[.[] | select(.state != "LISTEN")] | length') -eq 0 ]] ||
		fail 'there is a cm_id left'
}

vain_syn() { # PORT COUNTER HEX VALUE
	play peer a "--connect $(address b):$1" "send hex $3" 'wait 30s'
	wait_for 10 "the deadline ($2)" is_at_least siw1/1 "$2" "$4"
	[[ -n $(sockets "$1") ]] || note 'its socket has gone before the handshake was given up'
	stop peer KILL
}

# What a copy of a SYN looks like: when the answer comes, nobody has asked
nobody_knows_of_it() { # PORT HEX COUNTERS
	fast
	serve "$1"
	connect "$1"
	wait_for 20 'the first connection to be over' no_sockets "$1"
	network b delay 1s
	counted siw1/1 "req_rcvd_syn=1 $3" forgotten_syn "$@"
	all_is_over "$1"
	[[ $(grep -c 'CONNECT_REQUEST' "$WORK/server.log") -eq 2 ]] || fail 'the program is not asked, or more than once'
	network b delay 1ms
	counted siw1/1 'req_rcvd_syn=1' connect "$1"
	stop server
}

forgotten_syn() { # PORT HEX
	play peer a "--connect $(address b):$1" "send hex $2" 'wait 30s'
	wait_for 10 'the SYN to come' has_socket "$1"
	stop peer KILL
}

has_socket() { # PORT
	[[ -n $(sockets "$1") ]]
}

check 'the second connection to a peer takes one round trip' one_round_trip 7900 write write
check 'the same with an RTR by Read' one_round_trip 7901 read read-request
check 'the same with IPv6' one_round_trip 7902 write write 6
check 'who watches is told' told
check 'off: no option and no data in any SYN' off_is_off
check 'off for a listener: no cookie, whatever the sysctl says' listener_off_is_off
check 'a peer that has stopped to take data in SYNs: two round trips' goes_without 7912 b 1 'cookie 24 request'
check 'an initiator that may not: two round trips' goes_without 7913 a 2 'none 0'
check 'a SYN with data that is lost is sent again without' lost_syn
check 'a SYN that comes twice is one connection' doubled_syn
check 'a reject comes with its private data' rejected
check 'a peer that resets on the Request in the SYN is asked with Rev 1' falls_back 7917 reset
check 'a peer that closes on the Request in the SYN is asked with Rev 1' falls_back 7918 close
check 'half a Request in a SYN, then silence: closed, nothing is left' silent 7919 timeout_request "$REQ"
check 'a Request in a SYN, then silence: closed, nothing is left' silent 7920 timeout_rtr "$REQUEST"
check 'a Request in a SYN that nobody knows of: ended by its RST' \
	nobody_knows_of_it 7921 "$REQUEST" 'established_responder=0 failed_responder=1'
check 'the same without an RTR to wait for' \
	nobody_knows_of_it 7922 "${REQ}40010000" 'established_responder=1 failed_responder=0'
plain
finish
