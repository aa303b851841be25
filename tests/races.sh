#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --kernel debug --timeout 480 -- tests/races.sh [sample|REGEX]
#
# Each event that can end a connection happens in each state of a connection, in both roles: the peer
# resets or closes, a deadline passes, the program is killed or destroys everything in order, the device,
# the network interface, the namespace or the module goes. Nothing may crash, hang or leak (scripts/vm
# and the debug kernel check this), and good connections work afterwards: those of the next case, and one
# at the end.
#
# Our peers, in namespace a, hold one connection in each state. siw is in b, as responder and as
# initiator. Then one of these events happens to all connections. Ends by the peer come one after the
# other, in each state and after several delays. Meanwhile deadlines pass between c and d.
#
# `sample` has one delay instead of three and 5 s instead of 20 s of everything at once. It leaves out
# programs that end in order, the minute that a program has to decide, the namespace and the module.
#
# Runs as races races-sctp races-streams: 360 s
# Sample debian/races: F56|F141
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/assoc.sh
source "${0%/*}/assoc.sh"

sample=''
[[ $only != sample ]] || { sample=1 && only=''; }

# Much less than any deadline of iw_mpa that could delay something, except that of the Request, which
# is 5 s
readonly SOON=8
STATES='no Request, half a Request, undecided, no RTR, established; no TCP, no Reply, half a Reply, established'
[[ $LLP == tcp ]] ||
	STATES='no Initiate, an Initiate after a gap, undecided, established; no SCTP, no Accept, an Accept after a gap, established'
readonly STATES
# Over SCTP: steps of sctppeer.py as initiator and as responder for each of these states
readonly SCTP_INITIATORS=('' "ssn=1 send=$INITIATE" "send=${INITIATE}756e64656369646564" "send=$INITIATE expect=0006")
readonly SCTP_RESPONDERS=('expect=0005' "expect=0005 ssn=1 send=$ACCEPT" "expect=0005 send=$ACCEPT")
# No host has this address, and packets to it get no answer
readonly NOBODY=10.77.0.77
port=7800

play() { # NAME FILE OPTION…
	start "$1" a 170 "$MPAPEER" run "${@:2}"
}

# Clients of the server's program, if any, connect to the next port
serve() { # OPTION…
	port=$((port + 10))
	start server b 170 "$RDMAFIRST" server "$(address b)" "$port" --count 0 --timeout $((160 * SLOW_HOST)) --ignore undecided "$@"
	wait_ready server '^listening'
}

# Those of our programs that hold_all has started
programs=()

hold_all() {
	serve
	ip -n b neigh replace $NOBODY lladdr 02:00:00:00:00:77 nud permanent dev eth0
	start caller b 170 "$RDMAFIRST" client $NOBODY "$port" --side-by-side 1 --timeout $((160 * SLOW_HOST))
	"hold_$LLP"
	wait_ready caller 'all have been started'
}

sctp_initiator() { # NUMBER
	# shellcheck disable=SC2086 # words of steps
	start "initiator$1" a 170 "$SCTPPEER" call "$(address b)" "$port" ${SCTP_INITIATORS[$1]} over=$((160 * SLOW_HOST))
}

# Those that siw waits for only 5 or 10 s come last
hold_sctp() {
	local i
	programs=(server caller)
	sctp_initiator 2
	sctp_initiator 3
	for i in "${!SCTP_RESPONDERS[@]}"; do
		# shellcheck disable=SC2086 # words of steps
		start "responder$i" a 170 "$SCTPPEER" hear "$(address a)" $((port + 1 + i)) ${SCTP_RESPONDERS[i]} over=$((160 * SLOW_HOST))
	done
	for i in "${!SCTP_RESPONDERS[@]}"; do
		wait_ready "responder$i" '^listening'
	done
	wait_line server 'conn 2 event RDMA_CM_EVENT_CONNECT_REQUEST' 60
	wait_line server 'event RDMA_CM_EVENT_ESTABLISHED' 30
	for i in "${!SCTP_RESPONDERS[@]}"; do
		start "client$i" b 170 "$RDMAFIRST" client "$(address a)" $((port + 1 + i)) --side-by-side 1 --timeout $((160 * SLOW_HOST))
		programs+=("client$i")
	done
	sctp_initiator 0
	sctp_initiator 1
	wait_for 60 'all initiators' has_assocs "$port" ${#SCTP_INITIATORS[@]}
	for i in "${!SCTP_RESPONDERS[@]}"; do
		wait_for 60 'all responders' has_assocs $((port + 1 + i)) 1
	done
	wait_line client2 'event RDMA_CM_EVENT_ESTABLISHED' 30
}

hold_tcp() {
	programs=(server client caller)
	play responders "$SCENARIOS/hold-responders.txt" --listen "$(address a):$((port + 1))" --accept-within $((60 * SLOW_HOST))s
	play initiators "$SCENARIOS/hold-initiators.txt" --connect "$(address b):$port" --retry $((30 * SLOW_HOST))s
	wait_ready responders '^listening on'
	start client b 170 "$RDMAFIRST" client "$(address a)" $((port + 1)) --side-by-side 3 --timeout $((160 * SLOW_HOST))
	wait_ready initiators 'all are held'
	wait_ready responders 'all are held'
	wait_line client 'conn 3 event RDMA_CM_EVENT_ESTABLISHED' 30
}

is_over_for() { # PROCESS PORT
	local hex
	printf -v hex '%04X' "$2"
	! grep -qE "(:$hex [0-9A-F]+:[0-9A-F]{4}|[0-9A-F]:$hex) 01 " "/proc/${pid_of[$1]}/net/tcp"
}

peers_saw_it() {
	local i
	if [[ $LLP == sctp ]]; then
		for ((i = 0; i <= ${#SCTP_RESPONDERS[@]}; i++)); do
			wait_for "$SOON" "the end of all associations of port $((port + i))" no_assocs $((port + i))
		done
		return
	fi
	wait_for "$SOON" "the end of our responder's connections" is_over_for initiators "$port"
	wait_for "$SOON" "the end of our initiator's connections" is_over_for responders $((port + 1))
}

# All programs end at once
programs_end() { # SIGNAL
	local name
	for name in "${programs[@]}"; do
		if [[ $1 == KILL ]]; then
			pkill -KILL -P "${pid_of[$name]}" || true
		else
			# the program may have ended because of an earlier event
			kill "-$1" "${pid_of[$name]}" 2>/dev/null || is_gone "$name"
		fi
	done
	for name in "${programs[@]}"; do
		wait_for "$SOON" "$name to end after SIG$1" is_gone "$name"
		stop "$name" KILL
	done
}

nobody_is_stuck() {
	! grep -qsE '^[0-9]+ \(.*\) D ' /proc/[0-9]*/stat
}

# The next case makes connections, and so checks that this works
in_order() {
	wait_for "$SOON" 'an end of stuck processes' nobody_is_stuck
}

good() {
	in_order
	port=$((port + 10))
	start good-server b 60 "$RDMAFIRST" server "$(address b)" "$port"
	wait_ready good-server '^listening'
	run good-client a 40 "$RDMAFIRST" client "$(address b)" "$port" --expect first
	[[ $STATUS -eq 0 ]] || fail "a good client ended with status $STATUS"
	ended_well good-server 20
}

# ---- events

program_ends() { # SIGNAL
	hold_all
	programs_end "$1"
	peers_saw_it
	in_order
}

# Two threads: one disconnects while the other destroys
destroyed_while_it_disconnects() { # TIMES
	serve
	slow_down siw_verbs_modify_qp 400
	run_well client a 120 "$RDMAFIRST" client "$(address b)" "$port" --times "$1" --torn
	speed_up
	[[ $(grep -c '^disconnected' "$WORK/client.log") -eq $1 ]] || fail 'it did not disconnect'
	in_order
}

jiffies() {
	sed -n '/^jiffies: /{s///p;q}' /proc/timer_list
}

probe_hits() { # EVENT
	awk -v "event=$1" '$1 == event { print $2 }' "$TRACING/kprobe_profile"
}

# The program holds the lock of its queue pair nearly always, for many jiffies each time. After the peer has closed,
# the connection's work item may look at the lock once per jiffy. It also runs for each modification, and 20 times at
# most for the rest of a connection.
closes_while_it_is_modified() { # TIMES
	local begin runs most
	[[ -e $TRACING/kprobe_profile ]] || { note 'this kernel has no kprobes' && return; }
	serve --restless
	slow_down siw_qp_modify 700
	echo 'p:slow_runs siw_cm_work_handler' >>"$TRACING/kprobe_events"
	echo 1 >"$TRACING/events/kprobes/slow_runs/enable"
	begin=$(jiffies)
	run_well client a 60 "$RDMAFIRST" client "$(address b)" "$port" --times "$1"
	wait_line server "conn $1 over" 30
	most=$(($(jiffies) - begin + $(probe_hits slow0) + 20 * $1))
	runs=$(probe_hits slow_runs)
	speed_up
	stop server
	note "$runs runs, at most $most"
	[[ $runs -ge $((3 * $1)) && $runs -le $most ]] || fail "the work item ran $runs times, not at most $most times"
	in_order
}

# The kernel has reported that the address is resolved, but the request is still in its list when the id is
# destroyed. One of the next ids has the memory of this one, and is destroyed while it resolves.
destroyed_while_it_resolves() { # TIMES
	slow_down rdma_cm:addr_handler%return 1000
	run_well resolver a 120 "$RDMAFIRST" resolver "$(address b)" 7800 --times "$1"
	speed_up
	in_order
}

# The program is in the system call that disconnects, which waits for the outcome of the connect
killed_while_it_disconnects() {
	port=$((port + 10))
	ip -n b neigh replace $NOBODY lladdr 02:00:00:00:00:77 nud permanent dev eth0
	start client b 170 "$RDMAFIRST" client $NOBODY "$port" --cut --timeout $((160 * SLOW_HOST))
	wait_line client '^disconnects' 30
	sleep 1
	has_line client '^disconnected' && fail 'it does not wait'
	pkill -KILL -P "${pid_of[client]}" || true
	wait_for "$SOON" 'the client to end' is_gone client
	in_order
}

# Before the programs end, or after
device_goes() { # SIGNAL
	hold_all
	start remove b 60 rdma link del siw1
	sleep 0.5
	programs_end "$1"
	ended_well remove "$SOON"
	peers_saw_it
	add_device b siw1
	in_order
}

# Twice: the second event comes before the first has been handled
interface_goes_down() { # SIGNAL
	hold_all
	ip -n b -batch - <<-END
		link set eth0 down
		link set eth0 up
		link set eth0 down
	END
	programs_end "$1"
	ip -n b link set eth0 up
	within b ping -q -c 1 -W 5 "$(address a)" >/dev/null
	in_order
}

is_without_interface() { # NETNS
	! ip -n "$1" link show eth0 >/dev/null 2>&1
}

has_no_device() {
	! rdma link show "$1/1" >/dev/null 2>&1
}

connect_namespaces() {
	local netns
	ip -batch - <<-END
		netns add b
		link add eth0 netns a mtu 1500 type veth peer name eth0 netns b mtu 1500
	END
	for netns in a b; do
		ip -n $netns -batch - <<-END
			link set lo up
			addr add $(address $netns)/24 dev eth0
			link set eth0 up
		END
	done
	add_device a siw0
	add_device b siw1
	within a ping -q -c 1 -W 5 "$(address b)" >/dev/null
}

namespace_goes() {
	hold_all
	ip netns del b
	programs_end KILL
	wait_for "$SOON" "the end of b's interface" is_without_interface a
	wait_for "$SOON" "the end of b's device" has_no_device siw1
	wait_for "$SOON" "the end of a's device" has_no_device siw0
	connect_namespaces
	in_order
}

# The module goes under programs and while peers are half way. On a kernel with lockdep their sockets hold it
module_goes() {
	hold_all
	# shellcheck disable=SC2016 # for the other shell
	start remove b 60 bash -c 'until rmmod siw 2>/dev/null; do :; done'
	programs_end KILL
	ended_well remove "$SOON"
	peers_saw_it
	modprobe siw
	add_device a siw0
	add_device b siw1
	in_order
}

# ---- ends by the peer

# initiators END… -- DELAY…: prints a scenario with each end in each state after each delay
initiators() {
	local end delay i steps more=''
	local -a ends=()
	local request='send request p2p rtr=write ird=8 ord=8'
	local -a states=('' "$request first=8" "$request pdata=\"undecided\"" "$request"
		"$request|expect reply accept" "$request|expect reply accept|send rtr write stag=1"
		"$request|expect reply accept|send rtr write stag=1|expect send pdata=\"first\"")
	while [[ $1 != -- ]]; do
		ends+=("$1")
		shift
	done
	shift
	echo 'within 60s'
	for end in "${ends[@]}"; do
		for delay; do
			for i in "${!states[@]}"; do
				steps="$more${states[i]:+${states[i]}|}wait $delay|$end"
				echo -n "${steps//|/$'\n'}"
				more='|connect|'
			done
		done
	done
	echo
}

# responders DELAY: the same for our initiator, with all ends
responders() {
	local end state steps more=''
	local reply='send reply p2p rtr=write ird=8 ord=8'
	echo 'within 60s'
	for end in reset close shutdown; do
		for state in 'flush' "$reply first=10" "$reply" "$reply|expect write-rtr"; do
			steps="${more}expect request p2p|$state|wait $1|$end"
			echo -n "${steps//|/$'\n'}"
			more='|accept|'
		done
	done
	echo
}
readonly CONNECTS=12

# Runs a peer of RFC 5043 to its end, however that comes
sctp_peer() { # NAME call|hear ADDRESS PORT STEP…
	start "$1" a 60 "$SCTPPEER" "${@:2}"
	[[ $2 == call ]] || wait_ready "$1" '^listening'
}

# The peer aborts or closes: at once, after a while, or because it is killed
# shellcheck disable=SC2086 # words of steps
sctp_peer_ends() {
	local steps end
	serve
	for steps in "${SCTP_INITIATORS[@]}"; do
		for end in abort '' 'quiet=0.2 abort' quiet=0.2 kill; do
			sctp_peer peer call "$(address b)" "$port" $steps ${end/kill/over=50}
			if [[ $end == kill ]]; then
				wait_for 20 'its association' has_assocs "$port" 1
				stop peer KILL
			else
				ended peer 40
			fi
		done
	done
	for steps in '' "${SCTP_RESPONDERS[@]}"; do
		for end in abort '' 'quiet=0.2 abort' quiet=0.2; do
			port=$((port + 1))
			sctp_peer peer hear "$(address a)" "$port" $steps $end
			run client b 40 "$RDMAFIRST" client "$(address a)" "$port" --hold --no-receive --timeout 30
			{ has_line client "connect took" && [[ $STATUS -ne 3 ]]; } ||
				fail "the client did not see the end of '$steps $end': status $STATUS"
			ended peer 40
		done
	done
	kill -0 "${pid_of[server]}" || fail 'the server has ended'
	note "$(grep -c 'CONNECT_REQUEST' "$WORK/server.log") requests, $(grep -c 'ESTABLISHED status 0' "$WORK/server.log") connections"
	stop server
	in_order
	wait_for "$SOON" 'the end of all associations' no_assocs
}

peer_ends() {
	[[ $LLP == tcp ]] || { sctp_peer_ends && return; }
	local -a delays=(100us 10ms 200ms)
	[[ -z $sample ]] || delays=(10ms)
	initiators reset close shutdown -- "${delays[@]}" >"$WORK/initiators.txt"
	responders 200ms >"$WORK/responders.txt"
	serve
	play responders "$WORK/responders.txt" --listen "$(address a):$((port + 1))" --accept-within $((60 * SLOW_HOST))s
	play initiators "$WORK/initiators.txt" --connect "$(address b):$port" --retry $((30 * SLOW_HOST))s
	wait_ready responders '^listening on'
	run client b 120 "$RDMAFIRST" client "$(address a)" $((port + 1)) --times $CONNECTS --hold --no-receive --timeout 30
	[[ $STATUS -ne 3 && $(grep -c 'connect took' "$WORK/client.log") == "$CONNECTS" ]] ||
		fail "the client did not see the end of each connection"
	ended_well responders 20
	ended_well initiators 120
	kill -0 "${pid_of[server]}" || fail 'the server has ended'
	note "$(grep -c 'CONNECT_REQUEST' "$WORK/server.log") requests, $(grep -c 'ESTABLISHED status 0' "$WORK/server.log") connections"
	stop server
	in_order
}

# Prints a script: peers of RFC 5043 that end in one state after the other, two at a time
storm_sctp() {
	local steps end
	echo 'while :; do'
	for steps in "${SCTP_INITIATORS[@]}"; do
		for end in abort ''; do
			echo "'$SCTPPEER' call $(address b) $port $steps $end $([[ $end ]] && echo '&')"
		done
	done
	echo 'done >/dev/null 2>&1'
}

# Peers come and go while the server is killed and the device is removed
all_at_once() {
	local end seconds=20 rounds=0
	[[ -z $sample ]] || seconds=5
	initiators reset shutdown close -- 100us 3ms 20ms >"$WORK/storm.txt"
	serve
	if [[ $LLP == tcp ]]; then
		# shellcheck disable=SC2016 # for the other shell
		start storm a 170 bash -c 'while :; do "$@"; done' -- "$MPAPEER" run "$WORK/storm.txt" \
			--connect "$(address b):$port" --retry 60s
	else
		storm_sctp >"$WORK/storm.sh"
		start storm a 170 bash "$WORK/storm.sh"
	fi
	end=$(($(now_ms) + 1000 * seconds))
	while (($(now_ms) < end)); do
		wait_ready server '^listening'
		sleep "0.$((RANDOM % 8))"
		case $((rounds % 3)) in
		0) stop server KILL ;;
		1)
			start remove b 60 rdma link del siw1
			stop server KILL
			ended_well remove "$SOON"
			add_device b siw1
			;;
		2)
			ip -n b link set eth0 down
			stop server KILL
			ip -n b link set eth0 up
			;;
		esac
		rounds=$((rounds + 1))
		port=$((port - 10))
		serve
	done
	stop server
	stop storm
	note "$rounds servers came and went"
	in_order
}

# ---- deadlines, meanwhile, between c and d

readonly THIRD=10.78.0
DEADLINES=$(mktemp -d)
declare -A deadline_pid=()

# meanwhile NAME NETNS COMMAND…
meanwhile() {
	ip netns exec "$2" timeout $((400 * SLOW_HOST)) "${@:3}" >"$DEADLINES/$1" 2>&1 </dev/null &
	deadline_pid[$1]=$!
}

# meanwhile_client NUMBER: our initiator, once its responder listens
meanwhile_client() {
	(
		wait_for 60 "responder$1 to listen" grep -qs '^listening' "$DEADLINES/responder$1"
		exec ip netns exec d timeout $((400 * SLOW_HOST)) "$RDMAFIRST" client $THIRD.1 "779$1" --timeout $((50 * SLOW_HOST))
	) >"$DEADLINES/client$1" 2>&1 </dev/null &
	deadline_pid[client$1]=$!
}

# No Initiate, one behind a gap, undecided; no Accept, one behind a gap
sctp_deadlines_begin() {
	local i=0 steps last='' call="'$SCTPPEER' call $THIRD.2 7790"
	[[ -n $sample ]] || last="$call send=${INITIATE}756e64656369646564 over=$((100 * SLOW_HOST))"
	meanwhile initiator c bash -ec "
		until $call over=$((15 * SLOW_HOST)); do sleep 1; done
		$call ssn=1 send=$INITIATE over=$((15 * SLOW_HOST))
		$last"
	for steps in expect=0005 "expect=0005 ssn=1 send=$ACCEPT"; do
		i=$((i + 1))
		meanwhile "responder$i" c bash -c "exec '$SCTPPEER' hear $THIRD.1 779$i $steps expect=0004 over=$((15 * SLOW_HOST))"
		meanwhile_client $i
	done
}

deadlines_begin() {
	local last="expect close within $((100 * SLOW_HOST))s" i=0
	[[ -z $sample ]] || last='note that takes too long here'
	ip -batch - <<-END
		netns add c
		netns add d
		link add eth0 netns c mtu 1500 type veth peer name eth0 netns d mtu 1500
	END
	ip -n c addr add $THIRD.1/24 dev eth0
	ip -n d addr add $THIRD.2/24 dev eth0
	ip -n c link set eth0 up
	ip -n d link set eth0 up
	add_device d siw3
	ip netns exec c ping -q -c 1 -W 5 $THIRD.2 >/dev/null
	meanwhile server d "$RDMAFIRST" server $THIRD.2 7790 --count 0 --timeout $((390 * SLOW_HOST)) --ignore undecided
	[[ $LLP == tcp ]] || { sctp_deadlines_begin && return; }
	meanwhile initiator c "$MPAPEER" run "$SCENARIOS/deadlines.txt" --connect $THIRD.2:7790 --retry $((20 * SLOW_HOST))s --set "LAST=$last"
	for reply in flush 'send reply p2p rtr=write ird=8 ord=8 first=10'; do
		i=$((i + 1))
		meanwhile "responder$i" c "$MPAPEER" run "$SCENARIOS/hold-reply.txt" --listen "$THIRD.1:779$i" \
			--accept-within $((60 * SLOW_HOST))s --set "REPLY=$reply"
		meanwhile_client $i
	done
}

# Not in a case: a case is a subshell and cannot wait for children of its parent
deadlines_end() {
	local name status
	deadlines_wrong=''
	for name in initiator responder1 responder2 client1 client2; do
		status=0
		wait "${deadline_pid[$name]}" || status=$?
		case $name in
		client*)
			grep -qE '^event RDMA_CM_EVENT_UNREACHABLE status -110$' "$DEADLINES/$name" ||
				deadlines_wrong+=" $name was not told;"
			;;
		*) [[ $status -eq 0 ]] || deadlines_wrong+=" $name ended with status $status;" ;;
		esac
	done
	kill "${deadline_pid[server]}" || true
	wait "${deadline_pid[server]}" || true
	ip netns exec d rdma link del siw3
}

deadlines_passed() {
	local file
	[[ -n $deadlines_wrong ]] || return 0
	for file in "$DEADLINES"/*; do
		cp "$file" "$WORK/${file##*/}.log"
	done
	fail "$deadlines_wrong"
}

[[ -n $only ]] || deadlines_begin
check "connections end when the peer resets, closes or half-closes, in each state: $STATES" peer_ends
check "connections end when the program is killed, in each state: $STATES" program_ends KILL
check "connections end when the program destroys its objects, in each state: $STATES" program_ends TERM
check 'when the program is killed while it disconnects during rdma_connect(), the program ends within 8 s' killed_while_it_disconnects
check "connections end on rdma link del, then the program is killed, in each state: $STATES" device_goes KILL
check "no process hangs when the network interface goes down and the program is killed, in each state: $STATES" interface_goes_down KILL
if [[ -z $sample ]]; then
	check "connections end when the program destroys its objects, in each state: $STATES" program_ends TERM
	check "connections end on rdma link del, then the program exits, in each state: $STATES" device_goes TERM
	check "no process hangs when the network interface goes down and the program exits, in each state: $STATES" interface_goes_down TERM
	check "namespace and devices are gone within 8 s when the namespace is deleted, in each state: $STATES" namespace_goes
fi
check 'F141: no event reaches an id after it is destroyed while its address is resolved' destroyed_while_it_resolves 4
check 'F56: no process hangs when the program destroys its queue pair while it disconnects' destroyed_while_it_disconnects 10
check "siw's work item runs at most once per jiffy after the peer has closed while the program keeps modifying its queue pair" closes_while_it_is_modified 3
check 'all at once: no process hangs while peers connect and end, servers are killed and their device is removed' all_at_once
if [[ -z $only ]]; then
	deadlines_end
	check "connections end when their deadline passes, in each state: $STATES" deadlines_passed
fi
[[ -n $sample ]] || check "rmmod siw succeeds within 8 s of the end of the programs that use siw, in each state: $STATES" module_goes
check 'a connection succeeds after all races of programs, peers and devices' good
finish
