#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/halfopen.sh
#
# 999 initiators stop in the middle of connection setup, at one listener, for some time: a third each
# sends nothing, half a Request, or a Request and no RTR. An initiator that is closed comes back at once.
# Their use of memory is bounded and ends with them, and an honest client does not wait for them.
#
# Runs as halfopen halfopen-sctp halfopen-streams: 200 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/assoc.sh
source "${0%/*}/assoc.sh"

peers=999
readonly PORT=7950
# For each listener, siw keeps at most BACKLOG connections without a Request. About a hundred more may
# be there that siw has just dropped
readonly BACKLOG=256
readonly NO_REQUEST_MAX=$((BACKLOG + 128))
# The flood has its own source address: rdma_cm may give an honest client a source port that TCP has
# given to another connection
readonly FLOOD_FROM=10.77.0.3
prompt_ms=2000 siege_s=40
# Limits on a kernel with KASAN, or with lockdep and kmemleak. With KASAN a program that makes and
# destroys a QP for each of 333 Requests is slower than any deadline
case $VM_KERNEL in
debug) peers=299 prompt_ms=8000 siege_s=100 ;;
6.12 | 7.2) prompt_ms=4000 ;;
esac
# An association takes more time than a connection of TCP
if [[ $LLP == sctp ]]; then
	peers=$((peers / 2)) prompt_ms=$((2 * prompt_ms)) siege_s=$((siege_s + 20))
fi
HALFOPEN=("$BUILD/halfopen/halfopen")
[[ $LLP == tcp ]] || HALFOPEN+=(--sctp --streams "$STREAMS")

# Prints slab memory in KiB, without kmemleak's own objects
slab() {
	awk '/^Slab:/ { kib = $2 } $1 ~ /^kmemleak_/ { kib -= $15 * $6 * 4 } END { print kib }' /proc/meminfo /proc/slabinfo
}

# The responder's side of established connections
sockets() {
	[[ $LLP == tcp ]] || { assocs b $PORT | wc -l && return; }
	awk -v port="$(printf ':%04X' $PORT)" '$4 == "01" && substr($2, 9) == port' \
		"/proc/${pid_of[server]}/net/tcp" | wc -l
}

# Prints ADDRESS:PORT of the peer of each established connection of b
peers_of_b() {
	if [[ $LLP == tcp ]]; then
		within b ss -Htn state established "sport = :$PORT" | awk '{ print $4 }'
	else
		# "LADDRS <-> *RADDRS", each with one address
		assocs b $PORT | awk '{ for (i = 14; i < NF; i++) if ($i == "<->") { sub(/^\*/, "", $(i + 1)); print $(i + 1) ":" $13 } }'
	fi
}

# Prints the number of established connections without a Request: rdma_cm does not know these. It knows
# the others even before the program has read their events
without_request() {
	comm -23 <(peers_of_b | sort) \
		<(rdma resource show cm_id | sed -n "s/.*src-addr $(address b):$PORT .*dst-addr \([^ ]*\).*/\1/p" | sort) | wc -l
}

is_quiet() {
	[[ $(sockets) -eq 0 && $(in_program) -eq 0 ]]
}

# is_back KIB: slab memory is at most a little above its former value
is_back() {
	drop_slabs
	[[ $(slab) -le $(($1 + 4096)) ]]
}

serve() {
	# shellcheck disable=SC2016 # for the other shell
	start server b 250 bash -c 'ulimit -n 8192; exec "$@"' -- \
		"$RDMAFIRST" server "$(address b)" $PORT --count 0 --timeout $((200 * SLOW_HOST)) --backlog $BACKLOG
	wait_ready server '^listening'
}

honest() {
	run client a 60 "$RDMAFIRST" client "$(address b)" $PORT --expect first --timeout 40
	if [[ $STATUS -ne 0 ]]; then
		note "the server: $(grep -vE ' (event|accepted|posted|sent|qp|over:|receive)' "$WORK/server.log" | sed 's/^conn [0-9]* //' |
			sort | uniq -c | sort -rn | head -n 5 | paste -sd';')" >&2
		fail "an honest client ended with status $STATUS"
	fi
	sed -n 's/^connect took \([0-9]*\) ms$/\1/p' "$WORK/client.log"
}

under_siege() {
	local ms worst=0 before with=0 n most=0 measured=0
	serve
	honest >/dev/null
	drop_slabs
	before=$(slab)
	start flood a 150 "${HALFOPEN[@]}" "$(address b)" $PORT --source $FLOOD_FROM --peers $peers --seconds $siege_s
	wait_line flood 'have connected' 100
	while :; do
		honest >"$WORK/ms"
		ms=$(<"$WORK/ms")
		n=$(without_request)
		# a measurement after the flood has ended does not count
		is_gone flood && break
		measured=$((measured + 1))
		with=$(slab)
		note "an honest client was connected after $ms ms; of $(sockets) connections $n have not sent their Request"
		[[ $ms -le $worst ]] || worst=$ms
		[[ $n -le $most ]] || most=$n
	done
	[[ $measured -ge 1 ]] || fail 'the other initiators ended before an honest client connected'
	ended_well flood 60
	note "$(tail -n 1 "$WORK/flood.log")"
	wait_for 30 'the end of all connections' is_quiet
	drop_slabs
	note "slab: $before KiB before, $with KiB with $peers peers, both ends of their connections included, $(slab) KiB after"
	[[ $most -le $NO_REQUEST_MAX ]] || fail "siw keeps $most connections without a Request"
	wait_for 20 "the memory to come back to $before KiB of slab" is_back "$before"
	[[ $worst -le $prompt_ms ]] || fail "an honest client waited for $worst ms"
	honest >/dev/null
}

peers_are_closed() {
	local n
	[[ $LLP == tcp ]] || { no_assocs $PORT && return; }
	n=$(awk -v port="$(printf ':%04X' $PORT)" '$4 == "01" && substr($3, 9) == port' "/proc/${pid_of[flood]}/net/tcp" | wc -l)
	[[ $n -eq 0 ]]
}

# The program is killed while most requests have not reached it yet
killed_under_requests() {
	serve
	start flood a 100 "${HALFOPEN[@]}" "$(address b)" $PORT --source $FLOOD_FROM --peers 300 --request --seconds 30
	wait_line flood 'have connected' 30
	stop server KILL
	wait_for 15 'every request to be answered' peers_are_closed
	is_gone flood && fail 'the peers gave up'
	serve
	honest >/dev/null
}

ip -n a address add $FLOOD_FROM/24 dev eth0
check "$peers stalled initiators: an honest client connects within $prompt_ms ms, memory stays bounded and is freed" under_siege
check 'I4: connection requests pending when the server is killed are answered within 15 s' killed_under_requests
finish
