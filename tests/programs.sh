#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/programs.sh
#
# Programs that know nothing of iw_mpa, over siw between two namespaces, the server in b and in a:
# they work, and what passes between them is as RFC 6581 wants it.
#
# Runs as programs programs-sctp programs-streams: 300 s
# Sample programs: server in namespace b|rping completes, server in namespace a|ucmatose completes, server in namespace a|at once|both ends|F3|F57|F90
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/assoc.sh
source "${0%/*}/assoc.sh"

# One connection of PROGRAM with the server in NETNS, seen on the wire
talk() { # PROGRAM NETNS PORT [6]
	local server=$2 port=$3 to connections=1
	to=$(address "$server" "${4:-}")
	local -a say hear
	case $1 in
	rping)
		hear=(rping -s -a "$to" -p "$port" -C 10 -V)
		say=(rping -c -a "$to" -p "$port" -C 10 -V)
		;;
	ucmatose)
		connections=3
		hear=(ucmatose -b "$to" -p "$port" -c 3 -C 4)
		say=(ucmatose -s "$to" -p "$port" -c 3 -C 4)
		;;
	rdma_client)
		hear=(rdma_server -s "$to" -p "$port")
		say=(rdma_client -s "$to" -p "$port")
		;;
	rstream)
		hear=(rstream -b "$to" -p "$port" -S 2048 -C 4 -I 1 -T v)
		say=(rstream -s "$to" -p "$port" -S 2048 -C 4 -I 1 -T v)
		;;
	esac
	capture wire "$server"
	start server "$server" 90 "${hear[@]}"
	wait_listener "$to" "$port"
	run_well client "$(other "$server")" 60 "${say[@]}"
	ended_well server 30
	capture_end wire
	on_the_wire wire "$port" default_setup "$connections"
}

# rping listens with a backlog of 3, and the kernel rejects what is beyond. Of two requests that come
# before it has begun with the first it forgets one: a client starts when the one before is connected.
many_rping() { # CLIENTS AT-A-TIME
	local i j to
	to=$(address b)
	capture wire b
	start server b 200 rping -s -P -a "$to" -p 7100
	wait_listener "$to" 7100
	for ((i = 0; i < $1; i += $2)); do
		for ((j = i; j < i + $2 && j < $1; j++)); do
			start "client$j" a 60 stdbuf -oL rping -c -a "$to" -p 7100 -C 10 -v -V
			wait_line "client$j" '^ping data' 40
		done
		for ((j = i; j < i + $2 && j < $1; j++)); do
			ended_well "client$j" 60
		done
	done
	stop server
	capture_end wire
	on_the_wire wire 7100 default_setup "$1"
}

# All of one program: each has a QP, each QP two queues to be mapped. Unmodified siw has 71.
of_one_program() { # CONNECTIONS
	local to
	to=$(address b)
	start server b 100 cmtime -b "$to" -p 7120 -c "$1"
	wait_listener "$to" 7120
	run_well client a 80 cmtime -b "$(address a)" -s "$to" -p 7120 -c "$1"
	grep -qE 'failure|error' "$WORK/client.log" && fail "cmtime reports: $(grep -cE 'failure|error' "$WORK/client.log") failures"
	grep -q '^connect ' "$WORK/client.log" ||
		fail "cmtime reports no time of connecting: $(tail -n 1 "$WORK/client.log")"
	stop server
}

many_at_once() { # CLIENTS
	local i to
	to=$(address b)
	capture wire b
	start server b 150 "$RDMAFIRST" server "$to" 7110 --count "$1" --backlog "$1" --timeout 90
	wait_listener "$to" 7110
	for ((i = 1; i <= $1; i++)); do
		start "client$i" a 100 "$RDMAFIRST" client "$to" 7110 --expect first --timeout 90
	done
	for ((i = 1; i <= $1; i++)); do
		ended_well "client$i" 100
	done
	ended_well server 30
	capture_end wire
	on_the_wire wire 7110 default_setup "$1"
}

# The driver's attributes of the connected QPs: one "ROLE NAME VALUE" a line
attributes() {
	rdma resource show qp -dd | awk '
		/drv_mpa-state RDMA/ {
			role = $0
			sub(/.*drv_mpa-role /, "", role)
			sub(/ .*/, "", role)
			for (i = 1; i < NF; i++)
				if ($i ~ /^drv_/)
					print role, substr($i, 5), $(i + 1)
		}'
}

has_both_ends() {
	local found
	found=$(attributes)
	[[ $found == *initiator\ ird* && $found == *responder\ ird* ]]
}

attribute() { # ROLE NAME
	sed -n "s/^$1 $2 //p" "$WORK/attributes"
}

expect_attribute() { # ROLE NAME VALUE
	local found
	found=$(attribute "$1" "$2")
	[[ $found == "$3" ]] || fail "rdma resource shows $2 '$found' of the $1, not '$3'"
}

# The rdma tool shows both ends of a connection
shown() {
	local role to
	to=$(address b)
	start server b 90 "$RDMAFIRST" server "$to" 7200 --ird 2 --ord 8
	wait_listener "$to" 7200
	start client a 90 "$RDMAFIRST" client "$to" 7200 --ird 4 --ord 16 --hold
	wait_line client '^received' 60
	wait_for 30 'both QPs in the rdma tool' has_both_ends
	attributes >"$WORK/attributes"
	for role in initiator responder; do
		expect_attribute $role llp "$LLP"
		if [[ $LLP == tcp ]]; then
			expect_attribute $role mpa-rev 2
			expect_attribute $role model peer-to-peer
			expect_attribute $role rtr write
		else
			expect_attribute $role mpa-rev ''
			expect_attribute $role crc ''
			expect_attribute $role model client-server
		fi
	done
	# IRD-01: nobody reads more than the other side serves
	(($(attribute initiator ord) <= $(attribute responder ird))) ||
		fail "IRD-01: the initiator's ORD exceeds the responder's IRD: $(<"$WORK/attributes")"
	(($(attribute responder ord) <= $(attribute initiator ird))) ||
		fail "IRD-01: the responder's ORD exceeds the initiator's IRD: $(<"$WORK/attributes")"
	stop client
	ended server 30
}

# lists COUNT: of so many ids of siw1, the median of the time that siw takes for one, in microseconds
lists() {
	local events=$TRACING/events/kprobes said
	start server b 200 "$RDMAFIRST" server "$(address b)" 10000 --listeners "$1" --count 0 --timeout 190
	wait_ready server '^listening'
	echo 'p:asks siw_fill_res_cm_id' >$TRACING/kprobe_events
	echo 'r:told siw_fill_res_cm_id' >>$TRACING/kprobe_events
	echo 1 >"$events/enable"
	timeout 120 rdma resource show cm_id link siw1/1 >"$WORK/cm_id"
	echo 0 >"$events/enable"
	awk '{ for (i = 2; i <= NF; i++) if ($i == "asks:") asked = $(i - 1); else if ($i == "told:") print int(1e6 * ($(i - 1) - asked)) }' \
		$TRACING/trace | sort -n >"$WORK/times"
	echo >$TRACING/kprobe_events
	said=$(grep -c ' state LISTEN ' "$WORK/cm_id")
	[[ $said == "$1" ]] || fail "rdma resource lists $said listening ids of siw1, not $1"
	stop server
	TOOK=$(sed -n "$(($(wc -l <"$WORK/times") / 2))p" "$WORK/times")
}

# The time to show one does not grow with their number
many_ids() {
	local many=20000 few
	[[ -e $TRACING/kprobe_events ]] || { note 'this kernel has no kprobes' && return; }
	[[ $VM_KERNEL != debug ]] || many=4000
	echo 8192 >$TRACING/buffer_size_kb
	lists 500
	few=$TOOK
	lists $many
	note "siw takes $few us for one of 500, $TOOK us for one of $many"
	((TOOK <= 3 * few + 10)) || fail "siw takes $few us for one of 500 ids, but $TOOK us for one of $many"
}

# Whom it was to connect to, of a connection that is refused
refused_address() {
	start client a 60 "$RDMAFIRST" client "$(address b)" 7300 --linger 5000 --timeout 30
	wait_line client '^event RDMA_CM_EVENT_REJECTED' 30
	rdma resource show cm_id >"$WORK/cm_id.log"
	has_line cm_id "dst-addr $(address b):7300( |$)" ||
		fail "rdma resource shows no id with dst-addr $(address b):7300, only: $(grep -o 'dst-addr [^ ]*' "$WORK/cm_id.log" | paste -sd' ')"
}

# The user nobody has made it, and has not connected it
connect_others() {
	start server b 90 "$RDMAFIRST" server "$(address b)" 7340 --timeout 60
	wait_ready server '^listening'
	run client a 40 "$RDMAFIRST" client "$(address b)" 7340 --qp-of nobody:siw0 --timeout 20
	has_line client 'rdma_connect: Operation not permitted' ||
		fail "rdma_connect() is not refused with EPERM: $(tail -n 1 "$WORK/client.log")"
	stop server
}

accept_others() {
	start server b 90 "$RDMAFIRST" server "$(address b)" 7341 --qp-of nobody:siw1 --timeout 60
	wait_ready server '^listening'
	run client a 40 "$RDMAFIRST" client "$(address b)" 7341 --timeout 20
	has_line server '^conn 1 rdma_accept: Operation not permitted' ||
		fail "rdma_accept() is not refused with EPERM: $(grep rdma_accept "$WORK/server.log" || tail -n 1 "$WORK/server.log")"
	has_line client '^event RDMA_CM_EVENT_REJECTED' ||
		fail "the initiator got no RDMA_CM_EVENT_REJECTED: $(tail -n 1 "$WORK/client.log")"
	stop server
}

# A process of the same user has the file that the queue pair belongs to
connect_shared() { # PORT WHOSE
	start server b 90 "$RDMAFIRST" server "$(address b)" "$1" --count 0 --silent --timeout 60
	wait_ready server '^listening'
	run_well client a 40 "$RDMAFIRST" client "$(address b)" "$1" --qp-of "$2:siw0" --timeout 20
	has_line client '^event RDMA_CM_EVENT_ESTABLISHED' ||
		fail "the client got no RDMA_CM_EVENT_ESTABLISHED: $(tail -n 1 "$WORK/client.log")"
	stop server
	start server b 90 "$RDMAFIRST" server "$(address b)" "$1" --qp-of "$2:siw1" --timeout 60
	wait_ready server '^listening'
	run_well client a 40 "$RDMAFIRST" client "$(address b)" "$1" --no-receive --timeout 20
	wait_line server '^conn 1 event RDMA_CM_EVENT_ESTABLISHED' 20
	stop server
}

has_kernels_qp() {
	QPN=$(rdma resource show qp link siwk/1 -j | jq '[.[] | select(has("pid") | not)][0].lqpn')
	[[ $QPN != null ]]
}

# The NVMe host in the first namespace has it; its peer takes its time
connect_kernels() {
	modprobe -q nvme-rdma || { note 'this kernel has no nvme-rdma' && return; }
	ip -batch - <<-END
		link add k0 type veth peer name k1 netns b
		addr add 10.78.0.1/24 dev k0
		link set k0 up
	END
	ip -n b addr add 10.78.0.2/24 dev k1
	ip -n b link set k1 up
	rdma link add siwk type "$(link_type)" netdev k0
	[[ $VM_STOCK == 1 ]] || "${TESTS%/*}/build/rdma" mpa set link siwk/1 reply-timeout 60000
	ping -q -c 1 -W 5 10.78.0.2 >/dev/null
	printf '%s\n' 'within 40s' 'expect request' 'wait 60s' >"$WORK/peer.txt"
	if [[ $LLP == tcp ]]; then
		start peer b 150 "$MPAPEER" run "$WORK/peer.txt" --listen 10.78.0.2:7342 --accept-within 40s
	else
		start peer b 150 "$SCTPPEER" hear 10.78.0.2 7342 expect=0005 quiet=60
	fi
	wait_ready peer '^listening'
	echo 'transport=rdma,traddr=10.78.0.2,trsvcid=7342,nqn=nqn.2014-08.org.example:none' >/dev/nvme-fabrics 2>"$WORK/nvme.log" &
	pid_of[nvme]=$!
	wait_for 50 'its queue pair' has_kernels_qp
	timeout -k 5 40 "$RDMAFIRST" client 10.78.0.2 7343 --qpn "$QPN" --timeout 20 >"$WORK/client.log" 2>&1 || true
	has_line client 'rdma_connect: Operation not permitted' ||
		fail "rdma_connect() is not refused with EPERM: $(tail -n 1 "$WORK/client.log")"
	stop peer
	wait_for 30 'the NVMe host to give up' is_gone nvme
	modprobe -r nvme-rdma
	rdma link del siwk
	ip link del k0
}

listeners() { # NETNS PORT
	if [[ $LLP == tcp ]]; then
		within "$1" cat /proc/net/tcp | grep -cE "$(printf ' 00000000:%04X 00000000:0000 0A ' "$2")" || true
	else
		# IPv4 and IPv6 have a socket for each address
		within "$1" cat /proc/net/sctp/eps | grep -cE " 10 +[0-9]+ +$2 .* 10\.77\.0\." || true
	fi
}

talk_to() { # PORT
	run client a 40 "$RDMAFIRST" client "$(address b)" "$1" --expect first --timeout 20
	[[ $STATUS -eq 0 ]] || fail "the client of port $1 ended with status $STATUS: $(tail -n 1 "$WORK/client.log")"
}

# All devices are everybody's, all listeners are asked to listen on each, but a port is of a namespace
wildcard_listener() {
	local seen
	start server b 90 "$RDMAFIRST" server 0.0.0.0 7310 --count 0 --timeout 60
	wait_ready server '^listening'
	add_device a siwlo lo
	seen="$(listeners a 7310) $(listeners b 7310)"
	rdma link del siwlo
	[[ $seen == '0 1' ]] || fail "a and b have $seen listening sockets on port 7310, not 0 and 1"
	talk_to 7310
	stop server
}

new_device() {
	rdma link del siw1
	start wildcard b 90 "$RDMAFIRST" server 0.0.0.0 7320 --count 0 --timeout 60
	wait_ready wildcard '^listening'
	if [[ $LLP == tcp ]]; then
		start taken b 90 "$MPAPEER" run "$SCENARIOS/odd-responder.txt" --listen "$(address b):7320" \
			--set REPLY=enhanced --set THEN=flush
	else
		start taken b 90 "$SCTPPEER" hear "$(address b)" 7320
	fi
	wait_ready taken '^listening'
	add_device b siw1
	start server b 90 "$RDMAFIRST" server "$(address b)" 7321 --timeout 60
	wait_ready server '^listening'
	talk_to 7321
	stop taken
	stop wildcard
}

# A probe on whoever asks a socket, which takes its lock
no_lock_in_tracepoints() {
	[[ -d $TRACING/events/iw_mpa && -e $TRACING/kprobe_events ]] || { note 'this kernel has no tracepoints' && return; }
	echo >$TRACING/trace
	echo 'p:asks lock_sock_nested' >$TRACING/kprobe_events
	echo stacktrace >$TRACING/events/kprobes/asks/trigger
	echo 1 >$TRACING/events/iw_mpa/enable
	start server b 60 "$RDMAFIRST" server "$(address b)" 7330 --timeout 60
	wait_ready server '^listening'
	talk_to 7330
	echo 0 >$TRACING/events/iw_mpa/enable
	echo '!stacktrace' >$TRACING/events/kprobes/asks/trigger
	# before the probe goes: that empties it
	cp $TRACING/trace "$WORK/trace.log"
	echo >$TRACING/kprobe_events
	has_line trace "mpa_state: .*local=$(address a):[0-9]+ remote=$(address b):7330 .*to=RDMA" ||
		fail 'no mpa_state event has the addresses of a and of b, and to=RDMA'
	! has_line trace 'trace_event_raw_event_mpa' ||
		fail "a tracepoint of iw_mpa locks a socket: $(grep -m 1 -B 3 trace_event_raw_event_mpa "$WORK/trace.log" | paste -sd' ')"
}

# One network device has one device of siw
sctp_on_demand() {
	[[ ! -e /sys/module/sctp ]] || fail 'the module sctp is loaded before a link of type siw_sctp is added'
	! within a rdma link add more type siw_sctp netdev eth0 2>"$WORK/add.log" ||
		fail 'a second RDMA device can be added to eth0'
	has_line add 'File exists' ||
		fail "a second RDMA device of eth0 is not refused with EEXIST: $(<"$WORK/add.log")"
	within a rdma link add siwlo type siw_sctp netdev lo
	rdma link del siwlo
	[[ -e /sys/module/sctp ]] || fail 'the module sctp is not loaded after a link of type siw_sctp was added'
}

# A listener on :: also takes clients of IPv4. It does not on unmodified siw.
of_both_families() {
	start server b 60 rping -s -P -a :: -p 7350
	wait_listener :: 7350
	run_well client a 30 rping -c -a "$(address b 6)" -p 7350 -C 3
	run_well client a 30 rping -c -a "$(address b)" -p 7350 -C 3
}

# Both programs call rdma_disconnect(), the second one after its DISCONNECTED event
both_disconnect() { # PORT OPTION-OF-SERVER…
	local end
	start server b 60 "$RDMAFIRST" server "$(address b)" "$1" --timeout 40 --disconnect-again "${@:2}"
	wait_ready server '^listening'
	run client a 40 "$RDMAFIRST" client "$(address b)" "$1" --expect first --send bye --disconnect-again --timeout 20 \
		${2:+--hold}
	ended server 30
	for end in client server; do
		grep -q '^rdma_disconnect: ' "$WORK/$end.log" || fail "the $end has not called rdma_disconnect()"
		! has_line "$end" '^rdma_disconnect: [^d]' ||
			fail "rdma_disconnect() fails in the $end: $(grep ^rdma_disconnect "$WORK/$end.log" | paste -sd' ')"
	done
}

# The TERM of the peer leaves the queue pair in another state than a FIN
disconnect_after_term() { # PORT
	start server b 60 "$RDMAFIRST" server "$(address b)" "$1" --timeout 40 --disconnect-again --read
	wait_ready server '^listening'
	run client a 40 "$RDMAFIRST" client "$(address b)" "$1" --hold --disconnect-again --timeout 20
	ended server 30
	has_line server '^rdma_disconnect: done$' ||
		fail "rdma_disconnect() does not succeed in the server: $(grep ^rdma_disconnect "$WORK/server.log" || echo 'not called')"
}

# rdma_disconnect() waits for the outcome of rdma_connect()
disconnect_early() { # PORT
	start server b 60 "$RDMAFIRST" server "$(address b)" "$1" --timeout 40 --delay 1000
	wait_ready server '^listening'
	run client a 40 "$RDMAFIRST" client "$(address b)" "$1" --hold --disconnect-early --timeout 20
	has_line client '^rdma_disconnect: done$' ||
		fail "rdma_disconnect() does not succeed in the client: $(grep ^rdma_disconnect "$WORK/client.log" || echo 'not called')"
	ended server 30
}

# perftest's server listens when it has agreed with the client, which connects at once: TCP refuses a fast client. Then the
# client tries again, and crashes. If the peer had rejected, a Reply would have the R bit.
refused_by_tcp() {
	has_line client 'REJECTED; error: -111' && ! grep -q 'kind=reply .* r=1 ' "$TRACING/trace"
}

# Unmodified modules have no such events
trace_sessions() { # 0|1
	[[ ! -d $TRACING/events/iw_mpa ]] || echo "$1" >"$TRACING/events/iw_mpa/enable"
}

# In half of the runs one of the programs failed
several_queue_pairs() { # PROGRAM PORT
	local i good=0
	# a failure says how each session ended
	end_case() {
		grep -h mpa_end "$TRACING/trace" >"$WORK/sessions.log"
		trace_sessions 0
	}
	trace_sessions 1
	for ((i = 1; good < 6 && i < 10; i++)); do
		echo >"$TRACING/trace"
		start server b 60 "$1" -R -F -q 4 -n 50 -s 8192 -p $(($2 + i))
		wait_for 30 "$1" socket_listens $(($2 + i))
		run client a 40 "$1" -R -F -q 4 -n 50 -s 8192 -p $(($2 + i)) "$(address b)"
		if [[ $STATUS != 0 ]] && refused_by_tcp; then
			note "round $i: the client came before the server listened"
			stop server
			continue
		fi
		is "round $i: the status of the client" "$STATUS" 0
		ended_well server 30
		! has_line client 'Failed to disconnect' ||
			fail "round $i: the client of $1 reports 'Failed to disconnect'"
		! has_line server 'Failed to disconnect' ||
			fail "round $i: the server of $1 reports 'Failed to disconnect'"
		good=$((good + 1))
	done
	is 'the number of rounds' $good 6
}

# The number of the packet with the RTR: SYN, SYN with ACK, Request, Reply, RTR. On a busy machine a
# message may come later than TCP's acknowledgement, so one connection of twenty will do.
few_packets() {
	local rtr=none to i
	to=$(address b)
	start server b 200 rping -s -P -a "$to" -p 7360
	wait_listener "$to" 7360
	for ((i = 1; i <= 20; i++)); do
		capture wire b
		run_well client a 30 rping -c -a "$to" -p 7360 -C 1
		capture_end wire
		rtr=$(tcpdump -n -q -r "$WORK/wire.pcap" 2>/dev/null | awk '/ tcp / && $NF > 0 && ++n == 3 { print NR }')
		[[ $rtr != 5 ]] || break
	done
	stop server
	[[ $rtr == 5 ]] || fail "in none of 20 connections the RTR is packet 5; in the last one it is packet $rtr"
}

port=7000
for netns in b a; do
	for program in rping ucmatose rdma_client rstream; do
		check "$program completes, server in namespace $netns" talk "$program" "$netns" $((++port))
	done
	check "rping over IPv6 completes, server in namespace $netns" talk rping "$netns" $((++port)) 6
done
check 'rping: 16 clients, 3 at a time, complete with one server' many_rping 16 3
check '16 rdmafirst clients (test programs) connect to one server at once' many_at_once 16
check '100 connections of one cmtime process are established at once' of_one_program 100
check_tcp 'connection setup takes five TCP packets, the last with the RTR' few_packets
check_tcp 'only a link of type siw_sctp loads the module sctp' sctp_on_demand
check 'rdma resource shows the negotiated values of both ends of a connection' shown
check 'rdma resource lists thousands of rdma_cm_ids in a constant time for each' many_ids
check 'F36: rdma resource shows the destination address of a rejected connection' refused_address
check 'F90: rdma_disconnect() succeeds in both programs, the client calls it first' both_disconnect 7370
check 'F90: rdma_disconnect() succeeds in both programs, the server calls it first' both_disconnect 7371 --disconnect-first
check 'F90: rdma_disconnect() succeeds after a TERM of the peer' disconnect_after_term 7372
check 'F90: rdma_disconnect() succeeds during rdma_connect()' disconnect_early 7373
# ib_send_bw -q 4 hangs in a few runs of a hundred, with unmodified modules as well
port=7400
for program in ib_write_bw ib_read_bw; do
	check "F90: $program with four queue pairs disconnects without an error" several_queue_pairs "$program" $((port += 10))
done
check 'F71: a listener on :: accepts clients of IPv4 and IPv6' of_both_families
check 'F34: a listener on all addresses occupies no port of another namespace' wildcard_listener
check 'F37: tracepoints of connection setup take no socket lock' no_lock_in_tracepoints
check 'F57: a program cannot connect a queue pair of another user' connect_others
check 'F57: a program cannot accept with a queue pair of another user' accept_others
check 'F57: a program cannot connect a queue pair of the kernel' connect_kernels
check 'F57: a child can connect a queue pair of its parent' connect_shared 7344 parent
check 'F57: a process that received the file descriptor of a queue pair can connect it' connect_shared 7345 sender
check 'F35: a wildcard listener that fails on a new device blocks no other listener on that device' new_device
finish
