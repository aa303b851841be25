#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--stock --allow-splat] -- tests/badpeer.sh [REGEX]
#
# Initiators that misbehave at our responder. Its program gets no connection, or one that ends; the
# program can always exit; the next, honest initiator is served soon. REGEX picks the cases.
#
# Unmodified siw does not survive: pick one case at a time to see its effect.
#
# Runs as badpeer: 400 s
# Sample badpeer: hold still|connect and close
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

# Seconds that an honest initiator may have to wait while others misbehave: emulation is slow
readonly PROMPT=8
# iw_mpa waits 10 s for an RTR
readonly RTR_DEADLINE=10
port=7700

serve() { # [OPTION…]
	start server b 150 "$RDMAFIRST" server "$(address b)" "$port" --count 0 --timeout 120 "$@"
	wait_ready server '^listening'
}

peer() { # NAME SCENARIO [NAME=VALUE…]
	local name=$1 scenario=$2 setting
	local -a settings=()
	shift 2
	for setting in "$@"; do
		settings+=(--set "$setting")
	done
	start "$name" a 100 "$MPAPEER" run "$SCENARIOS/$scenario.txt" --connect "$(address b):$port" "${settings[@]}"
}

peer_was_content() { # NAME
	ended "$1" 40
	[[ $STATUS -eq 0 ]] || fail "the initiator: $(grep -A2 FAIL "$WORK/$1.log" | paste -sd' ' || true)"
}

# An honest initiator is served
good() {
	run client a 40 "$RDMAFIRST" client "$(address b)" "$port" --expect first --timeout $PROMPT
	[[ $STATUS -eq 0 ]] || fail "an honest client ended with status $STATUS"
	wait_line server 'over: good' 20
}

# No connection for the program
refused() { # SCENARIO [NAME=VALUE…]
	serve
	peer peer "$@"
	peer_was_content peer
	has_line server '^conn 1' && fail 'the program got an event of the connection'
	good
}

# The program may get a request, but then also its end, and sends nothing
no_connection() { # SCENARIO [NAME=VALUE…]
	serve
	peer peer "$@"
	peer_was_content peer
	if has_line server '^conn 1 accepted'; then
		wait_line server '^conn 1 over: bad' $((RTR_DEADLINE + 10))
	fi
	has_line server '^conn 1 sent' && fail 'the program could send'
	has_line server '^conn 1 event RDMA_CM_EVENT_ESTABLISHED status 0' && fail 'the program got ESTABLISHED'
	good
}

# While the RTR is awaited, the program ends
program_ends() { # SIGNAL
	serve
	peer peer stay 'WHAT=send request p2p rtr=write ird=8 ord=8'
	wait_line server '^conn 1 posted' 30
	stop server "$1"
	serve
	good
}

# The API forbids a second answer; the kernel must survive it (I2)
second_answer() { # accept|reject
	serve --again "$1"
	peer peer stay 'WHAT=send request p2p rtr=write ird=8 ord=8'
	wait_ready server '^conn 1 second answer'
	has_line server '^conn 1 second answer .* succeeded' && fail 'the second answer succeeded'
	stop server
}

# A program that answers a peer that has gone is told so, and not killed by SIGPIPE
outlives_peer() { # accept|reject
	local -a answer=()
	[[ $1 == accept ]] || answer=(--reject no)
	serve --delay 2000 "${answer[@]}"
	peer peer gone
	peer_was_content peer
	wait_line server '^conn 1 (over|rdma_|reject)' 30
	stop server
	serve
	good
}

# Many initiators that stop at any point do not delay an honest one
still_ones() { # COUNT WHAT [SPLIT]
	local i
	serve
	for ((i = 1; i <= $1; i++)); do
		peer "peer$i" stay "WHAT=$2" ${3:+"SPLIT=$3"}
	done
	for ((i = 1; i <= $1; i++)); do
		wait_line "peer$i" sending 30
	done
	good
}

# The request event must not show depths of 0: some programs refuse such peers
rev1_depths() {
	serve
	peer peer rev1
	peer_was_content peer
	has_line server '^conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST .* responder_resources [1-9][0-9]* initiator_depth [1-9]' ||
		fail "$(grep CONNECT_REQUEST "$WORK/server.log")"
}

failed_accept() {
	serve --spoil
	peer peer rejected
	peer_was_content peer
	has_line server '^conn 1 rdma_accept' || fail 'the accept has not failed'
	stop server
	serve
	good
}

read_completes_once() {
	serve --read
	peer peer no-rtr-reset
	peer_was_content peer
	wait_line server '^conn 1 over' 20
	has_line server 'never completed' && fail "$(grep 'never completed' "$WORK/server.log")"
	[[ $(grep -cE '^conn 1 (send|receive) failed' "$WORK/server.log") -le 3 ]] || fail 'more has completed than was posted'
}

many_reads() {
	serve
	peer peer many-reads
	peer_was_content peer
	good
}

# S6: a port scan. It uses other source ports than an honest client: rdma_cm may choose a port for the
# client that TCP still has in TIME_WAIT.
scan() { # COUNT SIDE-BY-SIDE
	local i range
	serve
	range=$(within a cat /proc/sys/net/ipv4/ip_local_port_range)
	sysctl_of a ip_local_port_range '10000 30000'
	for ((i = 1; i <= $2; i++)); do
		# shellcheck disable=SC2016 # for the other shell
		start "scan$i" a 110 bash -c 'for ((i = 0; i < $0; i++)); do exec 3<>"/dev/tcp/$1/$2" && exec 3>&-; done' \
			"$1" "$(address b)" "$port"
	done
	for ((i = 1; i <= $2; i++)); do
		ended_well "scan$i" 110
	done
	sysctl_of a ip_local_port_range "$range"
	has_line server '^conn 1' && fail 'the program got an event of the connection'
	good
}

scan_slowly() { # COUNT SIDE-BY-SIDE
	slow_down siw_cm_queue_work 30
	scan "$@"
	speed_up
}

# Prints the number of objects as large as an endpoint
endpoints() {
	drop_slabs
	awk '/^kmalloc-(rnd-[0-9]*-)?(512|1k|2k) / { n += $2 } END { print n }' /proc/slabinfo
}

has_endpoints_at_most() { # N
	[[ $(endpoints) -le $1 ]]
}

all_accepted() {
	[[ $(within b ss -Hltn "sport = :$port" | awk '{ n += $2 } END { print n }') == 0 ]]
}

# An endpoint hears of the end of a connection that it has accepted
leaves_no_endpoint() { # ROUNDS, of 25 connections each
	local round before
	serve
	before=$(endpoints)
	for ((round = 1; round <= $1; round++)); do
		# shellcheck disable=SC2016 # for the other shell
		start "holder$round" a 60 bash -c \
			'for ((i = 0; i < 25; i++)); do exec {fd}<>"/dev/tcp/$0/$1"; done; echo open; exec tail -f /dev/null' "$(address b)" "$port"
		wait_line "holder$round" '^open' 30
		wait_for 20 'siw to accept all connections' all_accepted
		stop "holder$round" TERM
	done
	note "$before objects before, $(endpoints) after"
	wait_for 20 "the endpoints of $((25 * $1)) connections to be freed" has_endpoints_at_most $((before + 10 * $1))
	good
}

slow_but_honest() {
	serve
	peer peer slow-good
	peer_was_content peer
	has_line server '^conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST .* pdata 4 736c6f77$' || fail 'the private data is not right'
	wait_line server '^conn 1 over: good' 20
}

bad() { # CLAIM FUNCTION [ARG…]
	port=$((port + 1))
	check "$@"
}

# SEC-03, SEC-04, SEC-07, AMB-07: no Request at all
bad 'a Request with S=1 and PD_Length 2 closes the connection without a Reply (V24)' refused request 'REQUEST=enhanced no-word pdata=8008'
bad 'a Request header with PD_Length 513 closes the connection before any private data arrives' refused request 'REQUEST=p2p rtr=write pd-length=513 first=20'
bad 'a Request with PD_Length 65535 closes the connection without a Reply' refused request 'REQUEST=p2p rtr=write pd-length=65535'
bad 'a Request with the key of a Reply closes the connection without a Reply' refused request 'REQUEST=p2p rtr=write key=reply'
bad 'a Request of Rev 3 closes the connection without a Reply' refused request 'REQUEST=p2p rtr=write rev=3'
bad 'half the header of a Request, then FIN, closes the connection without a Reply' refused request 'REQUEST=p2p rtr=write first=8' MORE=shutdown
bad 'half the private data of a Request, then FIN, closes the connection without a Reply' refused request 'REQUEST=p2p rtr=write pdata-len=100 first=60' MORE=shutdown
bad 'half the header of a Request, then nothing: the connection is closed without a Reply' refused request 'REQUEST=p2p rtr=write first=8'
bad 'S2: an RTR directly after the Request, before the Reply, does not establish a connection' no_connection glued-rtr

# S1, S2: accepted, but no RTR
bad 'S2: no RTR: silence after the Reply does not establish a connection' no_connection no-rtr THEN=flush
bad 'S3: no RTR: FIN after the Reply does not establish a connection' no_connection no-rtr THEN=shutdown
bad 'S1, I1: no RTR: RST after the Reply does not establish a connection' no_connection no-rtr-reset
bad 'S1: no RTR: garbage after the Reply does not establish a connection' no_connection no-rtr 'THEN=send hex 0012ffff000000000000000000000000000000000000000000000000'
bad 'an RTR with a bad CRC does not establish a connection at the responder' no_connection no-rtr 'THEN=send rtr write stag=1 crc=bad' CRC=crc=1
bad 'no RTR: half an RTR, then FIN, does not establish a connection' no_connection no-rtr-half
bad 'no RTR: a TERM after the Reply does not establish a connection (RTR-28)' no_connection no-rtr 'THEN=send term 2/0/7'
bad 'no RTR: a second Request does not establish a connection (SEC-15)' no_connection no-rtr 'THEN=send request p2p rtr=write'
bad 'S1, I3: an initiator sends no RTR, and the program is killed: a new server accepts connections' program_ends KILL
bad 'an initiator sends no RTR, and the program exits: a new server accepts connections' program_ends TERM
bad 'I2: an initiator sends no RTR, and the program accepts again: the second rdma_accept() fails' second_answer accept
bad 'I2: an initiator sends no RTR, and the program rejects after all: its rdma_reject() after rdma_accept() fails' second_answer reject
bad 'FIN and RST after the Request, then the program accepts: a new server accepts connections' outlives_peer accept
bad 'FIN and RST after the Request, then the program rejects: a new server accepts connections' outlives_peer reject

# S5, S6: an honest initiator does not wait for the others
bad 'S5: 10 initiators send half a header and hold still: an honest initiator connects' still_ones 10 'send request p2p rtr=write first=8' 'split every 1'
bad '10 initiators send nothing and hold still: an honest initiator connects' still_ones 10 flush
bad '10 initiators send no RTR and hold still: an honest initiator connects' still_ones 10 'send request p2p rtr=write ird=8 ord=8'
bad 'S6: 60 TCP clients connect and close without a Request: an honest initiator connects' scan 60 1
bad 'F55: 1600 TCP clients connect and close while siw is slow to accept: an honest initiator connects' scan_slowly 400 4
bad 'F168: 150 TCP clients connect and close without a Request: no endpoint is left' leaves_no_endpoint 6
bad 'S5, S14: an initiator that sends byte by byte connects' slow_but_honest
bad 'an RDMA Read that waits for the RTR completes only once when the peer resets the connection' read_completes_once
bad 'I6: a Request of Rev 1, which carries no depths, raises a request event with nonzero IRD and ORD' rev1_depths
bad 'I7: an accept that fails sends a reject' failed_accept
bad "S21: a Request with an ORD above the device's limit gets a Reply with the device's IRD limit (IRD-04)" many_reads
finish
