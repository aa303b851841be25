#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --llp sctp -- tests/streams.sh [REGEX]
#
# Several connections on one SCTP association (RFC 5043 sections 6 and 7, setting streams): how many associations
# there are, the end of a session beside others, and hostile peers.
#
# Runs as streams: --llp sctp; 1200 s
# Sample streams: 30 connections at once|SC-07|stream reset|rmmod siw ends an (idle|association in)|Initiate of the peer
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/assoc.sh
source "${0%/*}/assoc.sh"

RDMA=${TESTS%/*}/build/rdma

# The last session leaves the association to the next connects for 5 s, the side that has not opened it for 10 s
IDLE=30

# A Send of "first": untagged, last; queue 0, message 1, offset 0
FIRST=4143000000000000000000000001000000006669727374

expect() { # NAME FOUND WANTED
	[[ $2 == "$3" ]] || fail "$1 is '$2', should be '$3'"
}

streams() { # OF-A OF-B
	"$RDMA" mpa set link siw0/1 streams "$1"
	"$RDMA" mpa set link siw1/1 streams "$2"
}

# Prints a counter of SCTP in NETNS
# shellcheck disable=SC2016 # of awk
counter() { # NETNS NAME
	within "$1" awk -v name="$2" '$1 == name { print $2 }' /proc/net/sctp/snmp
}

# Prints the number of associations that NETNS has opened since it was made
opened() { # NETNS
	counter "$1" SctpActiveEstabs
}

opened_since() { # BEFORE
	echo $(($(opened a) - $1))
}

count() { # NAME REGEX: lines of the output of the process
	grep -c "$2" "$WORK/$1.log" || true
}

start_server() { # PORT [OPTION…]
	start server b 200 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --backlog 1024 --timeout 190 "${@:2}"
	wait_listener 10.77.0.2 "$1"
}

side_by_side() { # PORT OF-A OF-B CONNECTIONS ASSOCIATIONS
	local before
	streams "$2" "$3"
	before=$(opened a)
	capture wire a
	start_server "$1"
	start client a 190 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side "$4" --timeout 180
	wait_for 120 "$4 connections" has_connections "$4"
	expect 'number of associations' "$(opened_since "$before")" "$5"
	stop server KILL
	ended_well client 60
	wait_for $IDLE 'the end of all associations' no_assocs
	capture_end wire
	on_the_wire wire "$1" default_setup "$4"
}

# More control messages are sent in a round trip than a send buffer of 32 KiB holds
many_in_a_round_trip() { # PORT
	local default before
	default=$(</proc/sys/net/core/wmem_default)
	echo 32768 >/proc/sys/net/core/wmem_default
	streams 100 100
	before=$(opened a)
	start server b 200 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --backlog 200 --timeout 190
	wait_listener 10.77.0.2 "$1"
	within a tc qdisc replace dev eth0 root netem delay 250ms
	start client a 190 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 100 --timeout 180
	wait_for 90 '100 connections' has_connections 100
	echo "$default" >/proc/sys/net/core/wmem_default
	within a tc qdisc del dev eth0 root
	expect 'number of associations' "$(opened_since "$before")" 1
	stop server KILL
	ended_well client 60
	expect 'ended connections' "$(count client RDMA_CM_EVENT_DISCONNECTED)" 100
	wait_for $IDLE 'the end of all associations' no_assocs
}

# Both sides have agreed on the number of an association's streams: a later setting is for the next one
raised_later() { # PORT
	local before
	streams 2 8
	before=$(opened a)
	start_server "$1"
	start two a 190 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 2 --timeout 180
	wait_for 60 '2 connections' has_connections 2
	streams 8 8
	start six a 190 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 6 --timeout 180
	wait_for 60 '8 connections' has_connections 8
	expect 'number of associations' "$(opened_since "$before")" 2
	stop server KILL
	ended_well two 60
	ended_well six 60
	wait_for $IDLE 'the end of all associations' no_assocs
}

one_after_the_other() { # PORT
	local before
	streams 8 8
	before=$(opened a)
	capture wire a
	start_server "$1"
	run_well client a 120 "$RDMAFIRST" client 10.77.0.2 "$1" --times 30 --expect first --timeout 110
	expect 'number of messages' "$(count client '^received 5 first$')" 30
	expect 'number of associations' "$(opened_since "$before")" 1
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
	capture_end wire
	on_the_wire wire "$1" default_setup 30
}

verifies() { # PORT
	streams 8 8
	start_server "$1"
	start first a 100 "$RDMAFIRST" client 10.77.0.2 "$1" --hold --timeout 90
	start rserver b 100 rping -s -a 10.77.0.2 -p $(($1 + 1)) -C 50 -V
	wait_listener 10.77.0.2 $(($1 + 1))
	run_well client a 60 rping -c -a 10.77.0.2 -p $(($1 + 1)) -C 50 -V
	ended_well rserver 30
	stop server
	ended first 30
	wait_for $IDLE 'the end of all associations' no_assocs
}

# Two connections between link-local addresses, to a listener on ADDRESS
link_local() { # PORT ADDRESS
	local before i
	streams 8 8
	within a ip addr replace fe80::a/64 dev eth0 nodad
	within b ip addr replace fe80::b/64 dev eth0 nodad
	before=$(opened a)
	start server b 100 rping -s -P -a "$2" -p "$1"
	wait_for 30 "a listener on port $1" socket_listens "$1"
	for i in 1 2; do
		start "client$i" a 90 rping -c -a fe80::b%eth0 -p "$1" -C 1000000
		wait_for 30 "connection $i" has_qps $((2 * i))
	done
	expect 'number of associations' "$(opened_since "$before")" 1
	stop client1
	stop client2
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
	within a ip addr del fe80::a/64 dev eth0
	within b ip addr del fe80::b/64 dev eth0
}

# A listener on all addresses keeps its settings for an address that comes later
later_address() { # PORT
	local before
	streams 4 4
	before=$(opened a)
	start server b 200 "$RDMAFIRST" server 0.0.0.0 "$1" --count 0 --backlog 1024 --timeout 190
	wait_listener 10.77.0.2 "$1"
	"$RDMA" mpa set link siw1/1 streams 1
	within b ip addr add 10.77.0.22/24 dev eth0
	wait_for 30 'a socket of the new address' has_socket "$1" 10.77.0.22
	start client a 190 "$RDMAFIRST" client 10.77.0.22 "$1" --side-by-side 3 --timeout 180
	wait_for 60 '3 connections' has_connections 3
	expect 'number of associations' "$(opened_since "$before")" 1
	stop server KILL
	ended_well client 60
	wait_for $IDLE 'the end of all associations' no_assocs
	within b ip addr del 10.77.0.22/24 dev eth0
}

# Plays a peer against our responder on streams 8, then an honest client
calls() { # PORT STEP…
	local port=$1
	shift
	streams 8 8
	start server b 150 rping -s -P -a 10.77.0.2 -p "$port"
	wait_listener 10.77.0.2 "$port"
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$port" streams=8 "$@"
	run_well client a 30 rping -c -a 10.77.0.2 -p "$port" -C 2
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# Our initiator against a peer that offers 8 streams
hears() { # PORT STEP…
	local port=$1
	shift
	streams 8 8
	start peer b 60 "$SCTPPEER" hear 10.77.0.2 "$port" streams=8 "$@"
	wait_ready peer listening
	run client a 60 "$RDMAFIRST" client 10.77.0.2 "$port" --timeout 40
	[[ $STATUS -ne 124 ]] || fail 'the client timed out'
	ended_well peer 30
	wait_for $IDLE 'the end of all associations' no_assocs
}

# The peer sends FIRST over the session
hears_and_receives() { # PORT STEP…
	hears "$@"
	has_line client '^received 5 first$' || fail "the client has not received 'first': $(tail -n 3 "$WORK/client.log")"
}

is_deaf() { # PORT
	! has_listener 10.77.0.2 "$1"
}

# A listener that is gone while its association lives
listener_is_gone() { # PORT
	"$RDMA" mpa set link siw1/1 streams 8 idle 300
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 1 --timeout 50 --silent
	wait_listener 10.77.0.2 "$1"
	start peer a 300 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 send=$INITIATE expect=0006 send=0004 expect=0004 \
		stream=2 quiet=280 send=$INITIATE expect=0004 send=0004
	ended_well server 30
	wait_for 10 'the end of the listener' is_deaf "$1"
	kill -HUP "${pid_of[peer]}"
	ended_well peer 30
	"$RDMA" mpa reset link siw1/1
	wait_for 90 'the end of all associations' no_assocs
}

goes_with_all() { # PORT
	streams 8 8
	start_server "$1"
	start client a 100 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 5 --timeout 90
	wait_for 60 '5 connections' has_connections 5
	stop server KILL
	ended_well client 60
	expect 'ended connections' "$(count client RDMA_CM_EVENT_DISCONNECTED)" 5
	wait_for $IDLE 'the end of all associations' no_assocs
}

# Much less than any deadline that could delay the end
SOON=20

# The devices and the module go and come back
unload() {
	run_well remove a $SOON rmmod siw
	wait_for 1 'the end of all associations' no_assocs
	modprobe siw
	add_device a siw0
	add_device b siw1
}

idle_for_a_minute() {
	streams 8 8
	"$RDMA" mpa set link siw0/1 idle 60
	"$RDMA" mpa set link siw1/1 idle 60
}

unloads_without_a_session() { # PORT
	idle_for_a_minute
	start_server "$1"
	client_first client "$1"
	stop server
	has_assoc "$1" || fail 'the association has ended with its session'
	unload
}

# No host has the address
unloads_during_the_handshake() { # PORT
	idle_for_a_minute
	within a ip neigh replace 10.77.0.77 lladdr 02:00:00:00:00:77 nud permanent dev eth0
	start client a 60 "$RDMAFIRST" client 10.77.0.77 "$1" --side-by-side 3 --timeout 50
	wait_line client '^all have been started' 30
	expect 'number of associations' "$(assocs a "$1" | wc -l)" 1
	unload
	ended_well client 20
	within a ip neigh del 10.77.0.77 dev eth0
}

unloads_with_sessions() { # PORT
	idle_for_a_minute
	start_server "$1"
	start client a 100 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 3 --timeout 90
	wait_for 60 '3 connections' has_connections 3
	unload
	ended_well client 20
	ended server 20
}

link_goes() { # PORT
	local before
	streams 8 8
	"$RDMA" mpa set link siw1/1 idle 60
	before=$(opened a)
	start_server "$1"
	start client a 100 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 5 --timeout 90
	wait_for 60 '5 connections' has_connections 5
	expect 'number of associations' "$(opened_since "$before")" 1
	run_well remove b $SOON rdma link del siw1
	ended_well client 30
	expect 'ended connections' "$(count client RDMA_CM_EVENT_DISCONNECTED)" 5
	ended server 30
	wait_for $IDLE 'the end of all associations' no_assocs
	add_device b siw1
	streams 8 8
	start_server $(($1 + 1))
	client_first next $(($1 + 1))
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# A program connects again and again. siw hears of the removal first, and ib_uverbs, which is slow here, takes the program's queue
# pairs away.
connects_during_removal() { # PORT
	"$RDMA" mpa set link siw0/1 streams 8 idle 300
	"$RDMA" mpa set link siw1/1 streams 8 idle 300
	start_server "$1"
	start client a 120 "$RDMAFIRST" client 10.77.0.2 "$1" --times 1000 --timeout 20
	wait_line client '^received 5 first' 30
	slow_down ib_uverbs_remove_one 200
	run_well remove a 60 rdma link del siw0
	speed_up
	stop client KILL
	stop server
	wait_for 10 'the end of all associations' no_assocs
	"$RDMA" mpa reset link siw1/1
	add_device a siw0
}

# Connects join associations that the peer aborts. Without an outcome one ends with -ETIMEDOUT after 10 s, or its client with
# status 3.
joins_what_fails() { # PORT
	local i
	streams 8 8
	start peer b 150 "$SCTPPEER" fail 10.77.0.2 "$1"
	wait_ready peer listening
	for i in 1 2 3; do
		start "client$i" a 130 "$RDMAFIRST" client 10.77.0.2 "$1" --times 20 --timeout 30
	done
	for i in 4 5 6 7 8; do
		run_well "client$i" a 60 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 8 --timeout 30
	done
	for i in 1 2 3; do
		ended "client$i" 120
		[[ $STATUS -eq 1 || $STATUS -eq 4 ]] || fail "client $i ended with status $STATUS"
	done
	! grep -h 'status -110' "$WORK"/client?.log || fail 'a connect had no outcome for 10 s'
	note "$(count peer '^aborted') associations were aborted"
	stop peer
	wait_for $IDLE 'the end of all associations' no_assocs
}

has_no_assoc_of_a() { # PORT
	[[ -z $(assocs a "$1") ]]
}

# The peer's machine starts anew, and sends an Initiate at once
restarts_with_sessions() { # PORT
	streams 8 8
	start server b 150 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 140 --silent
	wait_listener 10.77.0.2 "$1"
	start first a 60 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 from=7399 send=$INITIATE expect=0006 \
		stream=1 send=$INITIATE expect=0006 stream=6 send=$INITIATE expect=0006 quiet=60
	wait_line server '^conn 3 event RDMA_CM_EVENT_ESTABLISHED' 30
	within a tc qdisc replace dev eth0 root netem loss 100%
	stop first KILL
	wait_for 9 'the end of the first association' has_no_assoc_of_a "$1"
	within a tc qdisc del dev eth0 root
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 from=7399 send=$INITIATE gone=9
	expect 'number of sessions that ended' "$(count server RDMA_CM_EVENT_DISCONNECTED)" 3
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 from=7399 send=$INITIATE expect=0006 send=0004 expect=0004
	expect 'number of sessions' "$(count server RDMA_CM_EVENT_CONNECT_REQUEST)" 4
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# Connects wait for an answer for 10 s otherwise
a_thousand() { # PORT
	ulimit -n 16384
	"$RDMA" mpa set link siw0/1 reply-timeout 120000
	side_by_side "$1" 1024 1024 1000 1
	"$RDMA" mpa reset link siw0/1
}

# The server disconnects first, so our Terminate is the last message, and its acknowledgment comes 300 ms later
waits_for_the_acknowledgment() { # PORT
	streams 8 8
	capture wire a
	start_server "$1" --disconnect-first
	within b tc qdisc replace dev eth0 root netem delay 300ms
	run client a 120 "$RDMAFIRST" client 10.77.0.2 "$1" --times 6 --send x --hold --timeout 110
	within b tc qdisc del dev eth0 root
	expect 'number of messages' "$(count client '^received 5 first$')" 6
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
	capture_end wire
	on_the_wire wire "$1" default_setup 6
}

# A program that does not answer an Initiate: siw keeps 128 KiB for it
floods_undecided() { # PORT
	streams 8 8
	start server b 100 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 90 --silent --ignore undecided
	wait_listener 10.77.0.2 "$1"
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 send=$INITIATE expect=0006 \
		stream=1 send=${INITIATE}756e64656369646564 flood=400 expect=0004 stream=0 quiet=1 send=0004 expect=0004
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# Bulk data fills the send buffer of the association in both directions, on streams of several rpings
beside_bulk() { # PORT
	local i before
	streams 64 64
	before=$(opened a)
	start server b 250 rping -s -P -a 10.77.0.2 -p "$1" -S 65000
	wait_listener 10.77.0.2 "$1"
	for i in 1 2 3 4 5 6 7 8; do
		start "bulk$i" a 240 rping -c -a 10.77.0.2 -p "$1" -S 65000 -C 100000
		# its server takes one connect at a time
		wait_for 60 "bulk connection $i" has_qps $((2 * i))
	done
	run_well client a 200 "$RDMAFIRST" client 10.77.0.2 "$1" --times 50 --no-receive --timeout 190
	for i in 1 2 3 4 5 6 7 8; do
		stop "bulk$i" KILL
	done
	expect 'number of associations' "$(opened_since "$before")" 1
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# An association whose only session has broken the protocol does not stay for 10 s
breaks_alone() { # PORT
	streams 8 8
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 50 --silent
	wait_listener 10.77.0.2 "$1"
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 send=$INITIATE expect=0006 \
		ssn=40000 segment=0102 expect=0004 over=5
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# A caller whose segment was under way when our program rejected; it uses the stream again at once
rejects() { # PORT
	streams 8 8
	start server b 60 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 50 --reject no
	wait_listener 10.77.0.2 "$1"
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 stream=2 send=$INITIATE expect=0007 segment=0102 \
		fresh send=$INITIATE expect=0007
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

loses_all() { # PORT
	local i
	streams 8 8
	start server b 100 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 90 --silent
	wait_listener 10.77.0.2 "$1"
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 send=$INITIATE expect=0006 \
		stream=1 send=$INITIATE expect=0006 stream=6 send=$INITIATE expect=0006 abort
	for i in 1 2 3; do
		wait_line server "^conn $i event RDMA_CM_EVENT_DISCONNECTED" 20
	done
	expect 'number of events' "$(count server RDMA_CM_EVENT_DISCONNECTED)" 3
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

peer_is_gone() {
	! within b ip link show veth9 >/dev/null 2>&1
}

# A namespace with a link, which has an idle association with b
make_idle_namespace() { # PORT [SETTING…]
	streams 8 8
	ip netns add gone
	ip link add veth8 netns gone type veth peer name veth9 netns b
	ip netns exec gone ip address add 10.99.0.1/24 dev veth8
	ip netns exec gone ip link set veth8 up
	within b ip address add 10.99.0.2/24 dev veth9
	within b ip link set veth9 up
	ip netns exec gone rdma link add s8 type siw_sctp netdev veth8
	within b rdma link add s9 type siw_sctp netdev veth9
	"$RDMA" mpa set link s8/1 streams 8 "${@:2}"
	"$RDMA" mpa set link s9/1 streams 8 "${@:2}"
	start server b 100 "$RDMAFIRST" server 10.99.0.2 "$1" --count 0 --timeout 90
	wait_listener 10.99.0.2 "$1"
	run_well client gone 60 "$RDMAFIRST" client 10.99.0.2 "$1" --times 3 --expect first --timeout 50
}

# A network namespace ends while an association of it is idle
idle_namespace() { # PORT
	make_idle_namespace "$1"
	ip netns del gone
	wait_for 30 'the device of the namespace to go' test ! -e /sys/class/infiniband/s8
	wait_for $IDLE 'the end of the namespace and its interface' peer_is_gone
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# The association would stay for 300 s, and for 600 s on the other side
idle_namespace_without_link() { # PORT
	make_idle_namespace "$1" idle 300
	ip netns exec gone rdma link del s8
	wait_for 10 'the end of all associations' no_assocs
	ip netns del gone
	wait_for 10 'the end of the namespace and its interface' peer_is_gone
	stop server
}

# The passive side waits for twice the time; its default is 10 s
stays() { # PORT IDLE STEP…
	"$RDMA" mpa set link siw1/1 streams 8 idle "$2"
	start server b 100 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 90 --silent
	wait_listener 10.77.0.2 "$1"
	run_well peer a 60 "$SCTPPEER" call 10.77.0.2 "$1" streams=8 send=$INITIATE expect=0006 send=0004 expect=0004 "${@:3}"
	stop server
	"$RDMA" mpa reset link siw1/1
	wait_for 40 'the end of all associations' no_assocs
}

parts_on_a_shared_association() { # PORT
	streams 8 8
	parts_of_a_message "$1" 8
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# A host of its own: the server hears of one session and receives "hello" there
goes_out_of_range() { # PORT STREAMS-OF-PEER OFFER
	streams 8 8
	plays_raw "$1" range "$2" --silent
	has_line peer "^10.77.0.2 offers $3\$" || fail "not $3 streams, out and in: $(grep offers "$WORK/peer.log")"
	wait_line server '^conn 1 received 5 hello' 10
	expect 'number of requests' "$(count server RDMA_CM_EVENT_CONNECT_REQUEST)" 1
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# RFC 6525: SCTP answers if net.sctp.reconf_enable is set, with 2 (denied) if the socket has not allowed it
resets_a_stream() { # PORT
	streams 8 8
	within b sysctl -qw net.sctp.reconf_enable=1
	plays_raw "$1" reset 8 --expose
	within b sysctl -qw net.sctp.reconf_enable=0
	has_line peer '^reset 2$' || fail "the result of the reset is not 2: $(grep reset "$WORK/peer.log")"
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

client_first() { # NAME PORT
	run_well "$1" a 60 "$RDMAFIRST" client 10.77.0.2 "$2" --expect first --timeout 50
}

# The association of NETNS is established, or not any more
# shellcheck disable=SC2016 # of awk
is_ending() { # NETNS PORT
	within "$1" awk -v port="$2" 'NR > 1 && ($12 == port || $13 == port) && $5 != 3 { ends = 1 }
		END { exit !ends }' /proc/net/sctp/assocs
}

# An association is being shut down by NETNS, three seconds before the other side hears it
begin_ending() { # PORT NETNS IDLE-OF-A IDLE-OF-B
	"$RDMA" mpa set link siw0/1 streams 8 idle "$3"
	"$RDMA" mpa set link siw1/1 streams 8 idle "$4"
	start_server "$1"
	client_first first "$1"
	within "$2" tc qdisc replace dev eth0 root netem delay 3s
	wait_for 20 'the shutdown of the association' is_ending "$2" "$1"
}

end_ending() { # NETNS
	stop server
	"$RDMA" mpa reset link siw0/1
	"$RDMA" mpa reset link siw1/1
	within "$1" tc qdisc del dev eth0 root
	wait_for $IDLE 'the end of all associations' no_assocs
}

while_we_end_it() { # PORT
	local before
	before=$(opened a)
	begin_ending "$1" a 5 300
	client_first second "$1"
	expect 'number of associations' "$(opened_since "$before")" 2
	end_ending a
}

# The peer ends it first only if its setting is less than half of ours
while_the_peer_ends_it() { # PORT
	local before
	before=$(opened a)
	begin_ending "$1" b 300 3
	run second a 60 "$RDMAFIRST" client 10.77.0.2 "$1" --expect first --timeout 50
	[[ $STATUS -eq 0 ]] || has_line second 'REJECTED status -104' || fail "the second client ended with status $STATUS"
	client_first third "$1"
	expect 'number of associations' "$(opened_since "$before")" 2
	end_ending b
}

# Prints how often the retransmission timer of NETNS has expired
timeouts() { # NETNS
	counter "$1" SctpT3RtxExpireds
}

has_timeouts() { # COUNT
	[[ $(timeouts a) -ge $1 ]]
}

# A connect beside an association that retransmits does not wait for it
while_retransmitting() { # PORT
	local before
	streams 8 8
	before=$(opened a)
	start server b 200 rping -s -P -a 10.77.0.2 -p "$1"
	wait_listener 10.77.0.2 "$1"
	start bulk a 190 rping -c -a 10.77.0.2 -p "$1" -C 1000000
	wait_for 60 'the first connection' has_qps 2
	within a tc qdisc replace dev eth0 root netem loss 100%
	wait_for 30 'a retransmission' has_timeouts $(($(timeouts a) + 2))
	start client a 100 rping -c -a 10.77.0.2 -p "$1" -C 2
	wait_for 30 'a second association' has_assocs "$1" 2
	within a tc qdisc del dev eth0 root
	ended_well client 60
	expect 'number of associations' "$(opened_since "$before")" 2
	stop bulk KILL
	stop server
	wait_for $IDLE 'the end of all associations' no_assocs
}

# A stopped program holds up no session beside its own
beside_stopped() { # PORT
	local before
	streams 8 8
	before=$(opened a)
	start_server "$1"
	start stopped a 190 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 4 --timeout 180
	wait_for 120 '4 connections' has_connections 4
	pkill -STOP -P "${pid_of[stopped]}"
	run_well client a 120 "$RDMAFIRST" client 10.77.0.2 "$1" --times 30 --expect first --timeout 110
	expect 'number of associations' "$(opened_since "$before")" 1
	stop server KILL
	pkill -CONT -P "${pid_of[stopped]}"
	ended_well stopped 60
	wait_for $IDLE 'the end of all associations' no_assocs
}

# A ULP of the kernel sleeps while its peer sends, beside 63 sessions whose program asks their server. It asks as many sessions on
# a second association in turn, on which another one receives as much: so neither the host's load nor time matters. When the
# sleeper's session has ended, siw discards what comes for it, which costs less than the other one's receiving.
beside_a_sleeper() { # PORT
	local before i siblings others
	streams 64 64
	before=$(opened a)
	for i in 0 1; do
		start "server$i" b 250 "$RDMAFIRST" server 10.77.0.2 $(($1 + i)) --count 0 --backlog 64 --timeout 240 --silent --talk
		wait_listener 10.77.0.2 $(($1 + i))
	done
	start flooded a 240 "$RDMAFIRST" client 10.77.0.2 $(($1 + 1)) --flooded --hold --no-receive --timeout 230
	wait_line server1 ' 64 writes$' 60
	start talk a 240 "$RDMAFIRST" client 10.77.0.2 "$1" --side-by-side 63 --beside $(($1 + 1)) --timeout 230 --measured 60
	wait_line talk '^all are connected' 120
	within a insmod "${TESTS%/*}/build/sleeper/sleeper.ko" address=10.77.0.2 port="$1"
	ended_well talk 150
	expect 'number of associations' "$(opened_since "$before")" 2
	# of 64 KiB, 64 for a line
	[[ $(count server0 ' writes$') -ge 4 ]] || fail "the sleeper's peer has written less than 16 MiB, which may fit into its queue"
	read -r siblings others <<<"$(sed -n 's/^answers: \([0-9]*\) of .* \([0-9]*\) of .*/\1 \2/p' "$WORK/talk.log")"
	note "$siblings answers beside the sleeper, $others of the other association"
	((10 * siblings >= 9 * others)) || fail "$siblings answers beside the sleeper, $others of the other association: less than 90 %"
	run_well remove a 60 rmmod sleeper
	for i in 0 1; do
		stop "server$i" KILL
	done
	ended flooded 60
	wait_for $IDLE 'the end of all associations' no_assocs
}

# A case that has failed may have left it
end_case() {
	[[ ! -e /sys/module/sleeper ]] || rmmod sleeper
}

# One remote address may leave 256 associations without a session
leaves_many() { # PORT
	"$RDMA" mpa set link siw1/1 streams 8 idle 300
	start server b 450 "$RDMAFIRST" server 10.77.0.2 "$1" --count 0 --timeout 440 --silent
	wait_listener 10.77.0.2 "$1"
	run_well peer a 400 "$SCTPPEER" idle 10.77.0.2 "$1" 270 256
	stop server
	"$RDMA" mpa reset link siw1/1
	wait_for $IDLE 'the end of all associations' no_assocs
}

# 1,024 associations that we have opened may stay without a session
leaves_many_of_ours() { # PORT
	ulimit -n 4096
	"$RDMA" mpa set link siw0/1 streams 8 idle 3600
	start peer b 600 "$SCTPPEER" hold 10.77.0.2 "$1" 1040 1024
	wait_ready peer listening
	run_well client a 500 "$RDMAFIRST" client 10.77.0.2 "$1" --times 1040 --port-step 1 --no-receive
	ended_well peer 60
	"$RDMA" mpa reset link siw0/1
	wait_for $IDLE 'the end of all associations' no_assocs
}

has_connections() { # COUNT
	[[ $(count server '^conn [0-9]* event RDMA_CM_EVENT_ESTABLISHED') -ge $1 ]]
}

check '30 connections at once share one SCTP association with streams 64' side_by_side 7401 64 64 30 1
check '30 connections one after the other share one SCTP association with streams 8' one_after_the_other 7402
check 'with streams 8, 20 connections at once complete on several associations' side_by_side 7403 8 8 20 3
check 'a full association keeps its streams when the setting is raised, and another one has as many as are set' raised_later 7455
check 'each connection has an SCTP association of its own if the peer offers one stream' side_by_side 7404 8 1 6 6
check 'each connection has an SCTP association of its own with streams 1' side_by_side 7405 1 8 6 6
check 'F145: 100 connections at once over a path of 250 ms share one SCTP association with a small send buffer' \
	many_in_a_round_trip 7409
check 'rping verifies its data beside another session with streams 8' verifies 7406
check 'F163: a wildcard listener keeps its streams for an address that is added after the setting has changed' \
	later_address 7439
check 'F146: two connections between link-local addresses share an SCTP association, with a listener on ::' link_local 7407 ::
check 'F146: two connections between link-local addresses share an SCTP association, with a listener on that address' \
	link_local 7438 fe80::b%eth0
check 'a killed server with 5 sessions on one association disconnects all of them' goes_with_all 7408
check 'SC-04: a responder accepts sessions on streams 0, 3 and 7 of one association' calls 7410 \
	send=$INITIATE expect=0006 stream=3 send=$INITIATE expect=0006 stream=7 send=$INITIATE expect=0006
check 'SC-07: a Terminate is answered by one, and the session beside goes on' calls 7411 \
	send=$INITIATE expect=0006 stream=2 send=$INITIATE expect=0006 send=0004 expect=0004 quiet=1 \
	stream=0 send=0004 expect=0004
check 'SC-04: a stream is used again after both Terminates' calls 7412 \
	send=$INITIATE expect=0006 stream=4 send=$INITIATE expect=0006 send=0004 expect=0004 \
	fresh send=$INITIATE expect=0006 send=0004 expect=0004 fresh send=$INITIATE expect=0006
check 'a second Initiate on a stream in use ends its session, and not the one beside' calls 7413 \
	send=$INITIATE expect=0006 stream=1 send=$INITIATE expect=0006 send=$INITIATE expect=0004 \
	stream=0 quiet=1 send=0004 expect=0004
check 'a Terminate on a stream without a session has no effect' calls 7415 \
	send=$INITIATE expect=0006 stream=5 send=0004 quiet=1 stream=0 send=0004 expect=0004
check 'segments on a stream without a session have no effect' calls 7416 \
	send=$INITIATE expect=0006 stream=5 segment=0102 ssn=9 segment=0304 quiet=1 stream=0 send=0004 expect=0004
check 'segments of a session that has ended have no effect' calls 7417 \
	send=$INITIATE expect=0006 stream=1 send=$INITIATE expect=0006 send=0004 expect=0004 ssn=1 segment=0102 ssn=7 \
	segment=0304 quiet=1 fresh send=$INITIATE expect=0006 stream=0 send=0004 expect=0004
check 'a DDP-SSN beyond the window ends its session, and not the one beside' calls 7418 \
	send=$INITIATE expect=0006 stream=1 send=$INITIATE expect=0006 ssn=40000 segment=0102 expect=0004 \
	stream=0 quiet=1 send=0004 expect=0004
check 'SC-04: a stream is used again after an ordered segment and both Terminates' calls 7423 \
	send=$INITIATE expect=0006 stream=1 send=$INITIATE expect=0006 ordered segment=0102 expect=0004 send=0004 \
	fresh send=$INITIATE expect=0006 stream=0 quiet=1 send=0004 expect=0004
check 'an ordered Terminate ends its session, whose stream is used again after a proper one' calls 7424 \
	send=$INITIATE expect=0006 stream=1 send=$INITIATE expect=0006 ordered send=0004 expect=0004 send=0004 \
	fresh send=$INITIATE expect=0006 stream=0 quiet=1 send=0004 expect=0004
check 'an association ends at once if its only session has broken the protocol' breaks_alone 7425
check 'an Initiate on the stream of a rejected session is answered despite a late segment' rejects 7427
check '50 connections complete while 8 others fill the association with data' beside_bulk 7426
check 'a flooded session whose program has not accepted ends, and not the one beside' floods_undecided 7421
check 'F121: a segment that SCTP delivers in parts is received on a shared association' parts_on_a_shared_association 7437
check 'an ABORT ends each of three sessions on an association once' loses_all 7422
check 'an Initiate for a listener that is gone is answered by a Terminate' listener_is_gone 7419
check 'an initiator answers a Terminate beside its Accept on the first stream' hears 7420 \
	expect=0005 send=$ACCEPT send=0004 expect=0004 over=20
check 'an Initiate of the peer on our association is answered by a Terminate, and the session beside goes on' hears_and_receives 7428 \
	expect=0005 send=$ACCEPT stream=1 send=$INITIATE expect=0004 send=0004 stream=0 quiet=1 segment=$FIRST \
	expect=0004 send=0004 over=20
check 'an idle association ends after twice the time of setting idle on the side that has not opened it' stays 7430 1 over=6
check 'an idle association stays for 14 s with idle 10' stays 7431 10 quiet=14 over=20
check 'a connect succeeds while its side shuts the idle association down' while_we_end_it 7432
check 'a connect while the peer shuts the idle association down fails with ECONNRESET at most, and the next succeeds' while_the_peer_ends_it 7433
check 'a connect beside an association that retransmits makes another one' while_retransmitting 7434
check '30 connections complete beside 4 of a stopped program on one association' beside_stopped 7435
check 'of the 65,535 streams of a peer 8 are used, and Initiates on others are discarded' goes_out_of_range 7440 65535 '8 8'
check 'an Initiate on a stream that only the peer has is discarded' goes_out_of_range 7441 8,4 '4 8'
check 'a stream reset in the middle of an RDMA Write is denied, and the Write completes' resets_a_stream 7442
check 'a restarted peer ends each of three sessions once, and the next Initiate is accepted' restarts_with_sessions 7443
check 'SC-04: a stream is used again only after the acknowledgment of our Terminate' waits_for_the_acknowledgment 7444
check 'connects that join an association while the peer aborts it get an outcome' joins_what_fails 7445
check 'a siw device with five sessions on one association can be removed' link_goes 7446
# kernels with checkers are too slow for the first, and on those with lockdep siw's sockets hold the module
if [[ $VM_KERNEL == debian ]]; then
	check '1000 connections at once share one SCTP association with streams 1024' a_thousand 7448
	check 'rmmod siw ends an idle association' unloads_without_a_session 7449
	check 'rmmod siw ends an association in the handshake' unloads_during_the_handshake 7450
	check 'rmmod siw ends an association with three sessions' unloads_with_sessions 7451
	check 'F152: a connection that begins while its link is deleted leaves no idle association' connects_during_removal 7454
	check 'F151: 63 sessions keep 90 % of their throughput beside a ULP of the kernel that sleeps while its peer sends' beside_a_sleeper 7452
	check 'F148: of 1,040 associations that one host has opened and left without a session, 1,024 stay' leaves_many_of_ours 8000
else
	note 'the cases of 1000 connections, of 1,040 idle associations and of rmmod are for Debian'"'"'s kernel'
fi
check 'of 270 associations that one address leaves without a session, 256 stay' leaves_many 7436
check 'a network namespace with an idle association ends' idle_namespace 7429
check 'F149: rdma link del ends an idle association of the link, and its network namespace can end' \
	idle_namespace_without_link 7439

finish
