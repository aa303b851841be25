#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/fastopen.sh
#
# The MPA Request in TCP's SYN. Connecting takes one round trip if this is set and possible, otherwise
# two. A hostile peer meets the same limits as without Fast Open.
#
# Runs as fastopen: 400 s
# Sample fastopen: to a peer takes one|resets|half a Request
# shellcheck disable=SC2031 # lib.sh's WORK
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

readonly WAY_MS=25
readonly TRIP_US=$((2 * WAY_MS * 1000))
# the quickest of this many connections counts, because other load can delay one
readonly SAMPLES=10
# Allowed delay of a connection after its round trips: less than another round trip. With a kernel that
# has checkers, connecting takes much longer than its round trips
late_us=$((TRIP_US - 1))
[[ $VM_KERNEL == debian ]] || late_us=$((10 * TRIP_US))
readonly REQ=4d504120494420526571204672616d65
readonly REP=4d504120494420526570204672616d65
# Rev 2, peer-to-peer, RTR by Write, IRD and ORD 8
readonly REQUEST=${REQ}5002000480088008

# Every case begins without settings, without a cookie, and with a network without delay
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

network() { # NETNS NETEM-OPTION…: for the packets that the namespace sends
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

# All packets of a burst arrive before the receiver handles the first
in_bursts() {
	network b delay 5ms slot 80ms 80ms
}

serve() { # PORT [OPTION…]
	start server b 120 "$RDMAFIRST" server "$(address b "$family")" "$1" --count 0 --timeout 110 "${@:2}"
	wait_ready server '^listening'
}

family=''
# Sets TOOK to the time of the quickest connection, in us
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
	wait_for 30 "$1 to count $2" has_counted "$1" "$2" "$before"
}

has_counted() { # LINK 'COUNTER=MORE…' BEFORE
	local wanted more now
	now=$(counters "$1")
	for wanted in $2; do
		more=$(jq --argjson before "$3" ".mpa_${wanted%=*} - \$before.mpa_${wanted%=*}" <<<"$now")
		[[ $more == "${wanted#*=}" ]] || return 1
	done
}

# Prints a line for each SYN of an initiator: none, cookiereq or cookie; bytes of data; request, if it has a Request
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

# Prints the sockets of the server's port except the listener
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

# The monitor does not print when it is ready; a changed setting shows it
monitor_listens() {
	mpa set default decide-timeout 60000
	has_line monitor '^policy default '
}

# Of two connections, the rdma tool and a tracepoint report Fast Open for the second only
told() {
	local events=$TRACING/events/iw_mpa said
	fast
	serve 7903
	"$RDMA" mpa monitor >"$WORK/monitor.log" 2>&1 &
	pid_of[monitor]=$!
	wait_for 20 'the monitor' monitor_listens
	connect 7903
	wait_line monitor '^established link siw0/1 .*role initiator' 20
	! has_line monitor 'fastopen' || fail 'Fast Open is reported for the first connection'
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

# The sysctl turns Fast Open on for all listeners, but not every program can bear a SYN twice
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

# Two connections with Fast Open work. Then NETNS turns it off: later ones take two round trips
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

# Prints a TCP counter of a namespace since its creation
tcp_counter() { # NETNS NAME
	within "$1" nstat -asz "TcpExt$2" | awk -v name="TcpExt$2" '$1 == name { print $2 }'
}

# A path that drops SYNs with data
dropped() { # NETNS: packets that its queue has dropped so far
	tc -n "$1" -j -s qdisc show dev eth0 root | jq '.[0].drops'
}

has_dropped() { # NETNS NUMBER: more than so many
	(($(dropped "$1") > $2))
}

# TCP sends the next SYN after a second
lose_first_syn() { # PORT
	local drops
	network a loss 100%
	drops=$(dropped a)
	start client a 40 "$RDMAFIRST" client "$(address b)" "$1" --expect first
	wait_for 20 'a lost SYN' has_dropped a "$drops"
	network a delay 1ms
	ended_well client 30
}

lost_syn() {
	local fails
	fast
	capture wire a
	serve 7914
	connect 7914
	fails=$(tcp_counter a TCPFastOpenActiveFail)
	counted siw0/1 'req_sent_syn=0 established_initiator=1' lose_first_syn 7914
	stop server
	capture_end wire
	# a packet that is lost in the qdisc is not captured
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

# The Reply and the close are there before the initiator handles its new connection
rejected() {
	fast
	serve 7916 --reject busy
	run client a 30 "$RDMAFIRST" client "$(address b)" 7916
	[[ $STATUS -eq 4 ]] || fail "the first: status $STATUS"
	in_bursts
	counted siw0/1 'req_sent_syn=5 reject_rcvd=5 failed_initiator=5' \
		run client a 60 "$RDMAFIRST" client "$(address b)" 7916 --times 5
	[[ $(grep -c 'REJECTED.* pdata 4 62757379$' "$WORK/client.log") -eq 5 ]] || fail 'a reject arrived without its private data'
	stop server
}

# ... or the peer closes on the Request
falls_back() { # PORT HOW
	fast
	mpa set link siw0/1 revision fallback
	serve "$1"
	connect "$1"
	stop server
	capture wire a
	play peer b "--listen $(address b):$1 --accept-within 40s" 'expect request' "$2" 'accept' \
		'expect request rev=1' "send hex ${REP}40010000" 'wait 500ms'
	wait_ready peer '^listening on'
	in_bursts
	counted siw0/1 'req_sent_syn=1 fallbacks=1 established_initiator=1 failed_initiator=0' \
		run client a 40 "$RDMAFIRST" client "$(address b)" "$1" --no-receive --timeout 30
	ended_well peer 30
	capture_end wire
	syns_are wire "$1" 'cookie 24 request' 'none 0'
}

# Only the SYN of this peer comes, and our packets do not reach it
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
	wait_for 30 'the program to be told' nothing_in_program
	wait_for 30 'nothing to be half open' nothing_half_open
	[[ $(rdma resource show cm_id link siw1 -j | jq '[.[] | select(.state != "LISTEN")] | length') -eq 0 ]] ||
		fail 'a cm_id remains'
}

vain_syn() { # PORT COUNTER HEX VALUE
	play peer a "--connect $(address b):$1" "send hex $3" 'wait 30s'
	wait_for 10 "the deadline ($2)" is_at_least siw1/1 "$2" "$4"
	[[ -n $(sockets "$1") ]] || note 'its socket has gone before the handshake was given up'
	stop peer KILL
}

# A copy of a SYN: the host that gets our answer has not asked
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
	wait_for 30 'the SYN to come' has_socket "$1"
	stop peer KILL
}

has_socket() { # PORT
	[[ -n $(sockets "$1") ]]
}

# Where all packets of one side are lost, so are its answers to ARP
within a ip neigh replace "$(address b)" lladdr "$(within b cat /sys/class/net/eth0/address)" dev eth0 nud permanent
within b ip neigh replace "$(address a)" lladdr "$(within a cat /sys/class/net/eth0/address)" dev eth0 nud permanent

check 'Fast Open: the second connection to a peer takes one round trip' one_round_trip 7900 write write
check 'Fast Open: the second connection with a Read RTR takes one round trip' one_round_trip 7901 read read-request
check 'Fast Open: the second connection over IPv6 takes one round trip' one_round_trip 7902 write write 6
check 'rdma mpa monitor and tracepoint mpa_fastopen report an MPA Request in the SYN' told
check 'fastopen off: no SYN carries the Fast Open option or data' off_is_off
check 'fastopen off on the responder: listeners issue no Fast Open cookie, although the sysctl enables Fast Open for all listeners' listener_off_is_off
check 'Fast Open: connecting to a peer that no longer accepts data in SYNs takes two round trips' goes_without 7912 b 1 'cookie 24 request'
check "Fast Open: connecting after the initiator's sysctl tcp_fastopen forbids it takes two round trips" goes_without 7913 a 2 'none 0'
check 'Fast Open: a lost SYN with a Request is retransmitted without data, and the connection is established' lost_syn
check 'Fast Open: a duplicated SYN with a Request makes one connection and one request event' doubled_syn
check 'Fast Open: the reject of a Request in the SYN delivers its private data to the initiator' rejected
check 'revision fallback: a peer that resets on the Request in the SYN is tried again with Rev 1' falls_back 7917 reset
check 'revision fallback: a peer that closes on the Request in the SYN is tried again with Rev 1' falls_back 7918 close
check 'half a Request in a SYN, then silence: the connection is closed after request-timeout, no socket or rdma_cm_id remains' silent 7919 timeout_request "$REQ"
check 'a whole Request in a SYN, then silence: the connection is closed after rtr-timeout, no socket or rdma_cm_id remains' silent 7920 timeout_rtr "$REQUEST"
check 'a replayed SYN with Request and RTR: the connection ends on the RST of the source host, which did not send the SYN' \
	nobody_knows_of_it 7921 "$REQUEST" 'established_responder=0 failed_responder=1'
check 'a replayed SYN with a Request of Rev 1: the connection ends on the RST of the source host, which did not send the SYN' \
	nobody_knows_of_it 7922 "${REQ}40010000" 'established_responder=1 failed_responder=0'
plain
finish
