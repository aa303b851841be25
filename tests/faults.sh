#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --kernel debug --timeout 400 -- tests/faults.sh [REGEX]
#
# Every allocation while memory is registered and while a connection is set up fails once, one after
# the other: allocations in the program's system calls, and allocations in the kernel's workers for both
# roles. The program gets an error (but for one event, for which rdma_ucm has no memory), nothing breaks or
# leaks (scripts/vm and the debug kernel check this), and a good connection works afterwards.
#
# Needs CONFIG_FAILSLAB, which Debian's kernel does not have: without it there are no cases.
#
# Runs as faults faults-sctp faults-streams: 300 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly FAILSLAB=/sys/kernel/debug/failslab
RDMAFAULT=$BUILD/rdmafirst/rdmafault
port=8000

good() {
	port=$((port + 1))
	start good-server b 60 "$RDMAFIRST" server "$(address b)" "$port"
	wait_ready good-server '^listening'
	run_well good-client a 40 "$RDMAFIRST" client "$(address b)" "$port" --expect first
	ended_well good-server 20
}

# kmemleak turns itself off after an error and would then find nothing
kmemleak_is_on() {
	echo scan >/sys/kernel/debug/kmemleak
}

fails() { # STAGE SECONDS
	port=$((port + 1))
	run faults a $(($2 + 60)) "$RDMAFAULT" "$1" "$(address b)" "$port" --seconds "$2"
	sed 's/^/# /' "$WORK/faults.log"
	[[ $STATUS -eq 0 ]] || fail "rdmafault ended with status $STATUS"
	good
	kmemleak_is_on || fail 'kmemleak has given up'
}

# Over SCTP, RFC 5043 section 6.3 reserves a Reject for the ULP. FUNCTION of the kernel is among those that get no memory.
fails_without_reject() { # STAGE SECONDS FUNCTION
	local rejects
	capture wire b
	start log b 600 dmesg --follow-new
	# with the stack of each failure
	echo 2 >$FAILSLAB/verbose
	# the order of the workers' allocations varies
	for _ in 1 2 3; do
		fails "$1" "$2"
		! has_line log "$3\+" || break
	done
	echo 1 >$FAILSLAB/verbose
	capture_end wire
	has_line log "$3\+" || fail "$3() has got memory each time"
	"$TESTS/sctpwire.py" "$WORK/wire.pcap" >"$WORK/wire.json"
	note "$(jq '[.[].events[] | select(.kind == "terminate" and .from == "responder")] | length' "$WORK/wire.json") Terminates of the server"
	rejects=$(jq '[.[].events[] | select(.code == 3 or .code == 7)] | length' "$WORK/wire.json")
	is 'the number of Rejects' "$rejects" 0
}

# With 1, iw_cm gets entries for connection requests only from its reserve. scripts/vm has marked their
# cache for failslab.
requests_fail() { # 0|1
	if [[ $1 -eq 0 ]]; then
		echo 0 >$FAILSLAB/probability
		echo N >$FAILSLAB/cache-filter
		return
	fi
	echo Y >$FAILSLAB/cache-filter
	echo N >$FAILSLAB/task-filter
	echo -1 >$FAILSLAB/times
	echo 100 >$FAILSLAB/probability
}

# make_fail 0|1: the kernel's workers, which receive and send, get memory or do not in 5 % of cases
make_fail() {
	local comm name
	for comm in /proc/[0-9]*/comm; do
		{ read -r name <"$comm"; } 2>/dev/null || continue
		[[ $name != kworker/* && $name != siw_tx/* ]] || echo "$1" >"${comm%/comm}/make-it-fail" 2>/dev/null || true
	done
	echo $((5 * $1)) >$FAILSLAB/probability
	echo Y >$FAILSLAB/task-filter
	echo $((1000 * $1)) >$FAILSLAB/times
}

# If SCTP has no memory for a packet, the packet counts as lost: let it be sent again soon
resend_soon() {
	local netns name
	[[ $LLP == sctp ]] || return 0
	for netns in a b; do
		for name in rto_min rto_initial rto_max; do
			within $netns tee /proc/sys/net/sctp/$name <<<500 >/dev/null
		done
	done
}

# A connection outlives a lack of memory, which TCP passes over as well. The programs poll: without memory,
# ib_uverbs loses the event of a completion
data_fails() {
	local left
	port=$((port + 1))
	resend_soon
	start server b 150 ib_write_bw -R -F -d siw1 -p "$port" -s 65536 -D 30
	wait_listener 0.0.0.0 "$port"
	start client a 150 stdbuf -oL ib_write_bw -R -F -d siw0 -p "$port" -s 65536 -D 30 "$(address b)"
	wait_line client '#bytes' 60
	pause 2
	make_fail 1
	pause 10
	left=$(<$FAILSLAB/times)
	make_fail 0
	note "$((1000 - left)) allocations failed"
	ended_well client 100
	ended_well server 30
	((left < 990)) || fail 'hardly any allocation failed'
	good
}

# If there was no memory for a FIN, TCP keeps the socket in LAST-ACK for ever, without a timer. Since 7.2,
# under lockdep, a socket of siw holds the module. Our kernels with lockdep have CONFIG_INET_DIAG_DESTROY, so that
# `ss -K` can end such a socket.
end_sockets_without_fin() {
	local netns
	for netns in a b; do
		ip netns exec "$netns" ss -Ktan state last-ack 2>&1 | sed -n '2,$s/^/# /p'
	done
}

outcomes() { # REGEX
	grep -cE "event RDMA_CM_EVENT_($1)" "$WORK/many.log" || true
}

all_have_an_outcome() {
	[[ $(outcomes 'ESTABLISHED|REJECTED') -eq 40 ]]
}

# Each client is soon connected or refused: siw waits only 10 s for a Reply
reserve() {
	local connected
	port=$((port + 1))
	start server b 90 "$RDMAFIRST" server "$(address b)" "$port" --count 0 --timeout $((80 * SLOW_HOST))
	wait_ready server '^listening'
	[[ $(</sys/kernel/slab/iwcm_work/failslab) == 1 ]] || fail 'the cache iwcm_work is not marked for failslab'
	requests_fail 1
	run_well alone a 40 "$RDMAFIRST" client "$(address b)" "$port" --expect first
	start many a 60 "$RDMAFIRST" client "$(address b)" "$port" --side-by-side 40 --timeout $((50 * SLOW_HOST))
	wait_ready many 'all have been started'
	wait_for 8 'an outcome of each of 40 connections' all_have_an_outcome
	connected=$(outcomes ESTABLISHED)
	note "$connected of 40 connected, $((40 - connected)) refused"
	requests_fail 0
	[[ $connected -ge 8 ]] || fail "only $connected were connected: the reserve is for 8"
	stop many KILL
	stop server KILL
	good
}

if [[ -d $FAILSLAB ]]; then
	echo N >$FAILSLAB/ignore-gfp-wait
	# the kernel log shows which allocation failed
	echo 1 >$FAILSLAB/verbose
	check 'F50: each allocation of ibv_reg_mr() fails in turn: the program gets an outcome, and later connections succeed' fails memory 60
	check 'each allocation of rdma_listen() fails in turn: the program gets an outcome, and later connections succeed' fails listen 60
	check 'each allocation of rdma_connect() fails in turn: the program gets an outcome, and later connections succeed' fails connect 80
	if [[ $LLP == sctp ]]; then
		check 'F105: each allocation of rdma_accept() fails in turn: no Initiate gets a Reject, and later connections succeed' fails_without_reject accept 80 siw_accept
		check "F105: each allocation of the kernel's workers fails in turn, in both roles: no Initiate gets a Reject, and later connections succeed" fails_without_reject workers 110 iw_create_cm_id
	else
		check 'each allocation of rdma_accept() fails in turn: the program gets an outcome, and later connections succeed' fails accept 80
		check "each allocation of the kernel's workers fails in turn, in both roles: later connections succeed" fails workers 110
	fi
	check 'ib_write_bw completes although up to 1000 allocations fail during its transfer' data_fails
	echo 0 >$FAILSLAB/verbose
	check 'without memory for connection requests, each of 40 connections is established or rejected within 8 s' reserve
	end_sockets_without_fin
else
	note 'this kernel cannot let allocations fail'
fi
finish
