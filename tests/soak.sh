#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --mem 3072 -- tests/soak.sh MINUTES CONNECTIONS [SEED]
#
# CLIENTS clients of mixed programs between two namespaces at once, whose ends are killed at random, until either number
# is reached (0: no limit), but for four rounds at least. The kernel's counters say how many connections there were.
# A client that nobody kills must end well. After each round nothing runs, nothing of RDMA may be left, and memory is
# measured; after a third of the run it may not grow by more than LIMIT. There is a line "total CONNECTIONS SECONDS".
minutes=${1:-1} goal=${2:-0} seed=${3:-$RANDOM}
set --
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

readonly CLIENTS=32 ROUNDS=4
# KiB. Without a leak memory at rest was seen to grow by 300 between the first two rounds
readonly LIMIT=2048
# Seconds of a round, seconds that a client may take, and connections of one cmtime. A program costs as much time as 50
# connections, so few connections would test the start of programs. With checkers 32 programs take a minute to start.
ROUND=120 PATIENT=180 MANY=500
# Seconds in which a program is killed and between two looks at it, and ms of connection setup
LIFE=3 LOOK=0.2 SETUP=60000
[[ $VM_KERNEL != debug ]] || ROUND=450 PATIENT=900 MANY=200 LIFE=30 LOOK=1 SETUP=300000
readonly ROUND PATIENT MANY LIFE LOOK SETUP

# ---- a client and its server

# words PROGRAM ADDRESS PORT OTHER-ADDRESS: sets hear and say
words() {
	case $1 in
	rping)
		hear=(rping -s -a "$2" -p "$3" -C 5)
		say=(rping -c -a "$2" -p "$3" -C 5)
		;;
	ucmatose)
		hear=(ucmatose -b "$2" -p "$3" -c 20 -C 2)
		say=(ucmatose -s "$2" -p "$3" -c 20 -C 2)
		;;
	cmtime)
		hear=(cmtime -b "$2" -p "$3" -c "$MANY")
		say=(cmtime -b "$4" -s "$2" -p "$3" -c "$MANY")
		;;
	rstream)
		hear=(rstream -b "$2" -p "$3" -S 2048 -C 10 -T v)
		say=(rstream -s "$2" -p "$3" -S 2048 -C 10 -T v)
		;;
	rdma_client)
		hear=(rdma_server -s "$2" -p "$3")
		say=(rdma_client -s "$2" -p "$3")
		;;
	rdmafirst)
		hear=("$RDMAFIRST" server "$2" "$3" --timeout "$PATIENT")
		say=("$RDMAFIRST" client "$2" "$3" --expect first --timeout "$PATIENT")
		;;
	esac
}

declare -rA ADDRESS=([a]=$(address a) [b]=$(address b))
readonly PROGRAMS=(rping ucmatose cmtime cmtime cmtime rstream rdma_client rdmafirst)

# in_netns NETNS COMMAND…: in place of this shell. `ip netns exec` would mount, too, which takes longer than the program.
in_netns() {
	exec nsenter --net="/run/netns/$1" "${@:2}"
}

# Without a process: 32 clients would do little else. Listeners come first in the table of the process's namespace.
hears() { # PID PORT
	local line port
	if [[ $LLP == sctp ]]; then
		while read -r line; do
			[[ ! $line =~ \ 10\ +[0-9]+\ +$2\  ]] || return 0
		done <"/proc/$1/net/sctp/eps"
		return 1
	fi
	printf -v port ':%04X ' "$2"
	while read -r line; do
		[[ $line == *' 0A '* || $line == sl* ]] || return 1
		[[ $line != *"$port"*' 0A '* ]] || return 0
	done <"/proc/$1/net/tcp"
	return 1
}

# The monitor has a line for a connection that failed in its set-up, with the cause
last_words() { # PORT
	local end
	{
		for end in client server; do
			echo "$end: $(tail -n 2 "$WORK/$1.$end" | cut -c1-100 | paste -sd'|')"
		done
		grep ":$1 " "$WORK/failures.log" | tail -n 2
	} | paste -sd' '
}

# Where the threads of a program are in the kernel, the innermost call first
stacks() { # PID
	local task
	for task in "/proc/$1/task/"*; do
		echo "$(<"$task/comm"): $(sed 's/.* //; s/+.*//' "$task/stack" | paste -sd' ')"
	done | paste -sd'|'
}

# One client with a server of its own. Prints "killed", "ok", "late" or "failed" and the program.
talk() { # SERVER-NETNS PORT
	local program=${PROGRAMS[RANDOM % ${#PROGRAMS[@]}]} peer=a victim='' end status=0 server client stack
	local -a hear say
	[[ $1 != a ]] || peer=b
	words "$program" "${ADDRESS[$1]}" "$2" "${ADDRESS[$peer]}"
	(in_netns "$1" "${hear[@]}") >"$WORK/$2.server" 2>&1 </dev/null &
	server=$!
	end=$((SECONDS + PATIENT))
	until hears "$server" "$2" || ! kill -0 "$server" || ((SECONDS > end)); do pause $LOOK; done 2>/dev/null
	(in_netns "$peer" "${say[@]}") >"$WORK/$2.client" 2>&1 </dev/null &
	client=$!
	if ((RANDOM % 4 == 0)); then
		pause "$((RANDOM % LIFE)).$((RANDOM % 10))"
		victim=$((RANDOM % 2 ? server : client))
		! kill -KILL "$victim" 2>/dev/null || victim=killed
	fi
	while kill -0 "$client" && ((SECONDS < end)); do pause $LOOK; done 2>/dev/null
	if kill -0 "$client" 2>/dev/null; then
		stack="client: $(stacks "$client") server: $(stacks "$server")"
		! kill -KILL "$client" 2>/dev/null || status=late
	fi
	wait "$client" || status=${status/#0/$?}
	kill -KILL "$server" 2>/dev/null || true
	wait "$server" || true
	case $victim/$status in
	killed/*) echo "killed $program" ;;
	*/0) echo "ok $program" ;;
	*/late) echo "late $program port $2: $(last_words "$2") $stack" ;;
	*) echo "failed $program port $2 status $status: $(last_words "$2")" ;;
	esac
}

# client NUMBER: one after the other, until the round is over. With the usual priority of 64 programs ksoftirqd comes
# seconds late: TCP drops a request whose ACK is still in the backlog of the interface, takes the SYN that follows for a
# new one, and resets the connection when the ACK of the first comes.
client() {
	local turn=0 netns
	set +e
	trap - ERR
	renice -n 19 "$BASHPID" >/dev/null
	RANDOM=$((seed + round * CLIENTS + $1))
	until [[ -e $WORK/over ]]; do
		netns=a
		((RANDOM % 2)) || netns=b
		talk $netns $((10000 + $1 * 100 + turn++ % 100))
	done >>"$WORK/said.$1" 2>/dev/null
}

# ---- measuring

# Prints the number of connections of both devices, of one end each
made() {
	echo $(($(counter siw0/1 established_initiator) + $(counter siw1/1 established_initiator)))
}

# Prints what exists in both devices, "" if nothing does
objects() {
	local kind
	for kind in qp cm_id mr cq pd; do
		rdma resource show "$kind" | sed "/ type GSI /d; s/^/$kind /"
	done
}

no_objects() {
	[[ -z $(objects) ]] && nothing_half_open
}

# Prints KiB: slabs that cannot be reclaimed, vmalloc, per-CPU memory
memory() {
	awk '/^(SUnreclaim|VmallocUsed|Percpu):/ { printf "%s ", $2 }' /proc/meminfo
}

# Sets used to the KiB that are in use when nothing goes on
rest() {
	local before=0
	wait_for 90 "the end of $(objects | head -n 3 | paste -sd'|')" no_objects
	used=0
	# what RCU and work queues still hold goes within seconds
	for ((i = 0; i < 10; i++)); do
		echo 3 >/proc/sys/vm/drop_caches
		# KASAN keeps what is freed until then
		[[ $VM_KERNEL != debug ]] || shrink_slabs
		sleep 2
		read -r slab vmalloc percpu <<<"$(memory)"
		before=$used used=$((slab + vmalloc + percpu))
		((used >= before - 64 && i > 1)) && break
	done
	note "round $round, $(((now - begin) / 1000)) s: $(made) connections; KiB: slab $slab vmalloc $vmalloc percpu $percpu; $(tally)"
}

shrink_slabs() {
	local file
	for file in /sys/kernel/slab/*/shrink; do echo 1 >"$file"; done
}

tally() {
	cat "$WORK"/said.* | cut -d' ' -f1 | sort | uniq -c | awk '{ printf "%s%s %d", (NR > 1 ? ", " : ""), $2, $1 }'
}

is_over() {
	now=$(now_ms)
	((minutes > 0 && now - begin >= minutes * 60000)) || { ((goal > 0)) && (($(made) >= goal)); }
}

run_round() {
	local i end
	local -a clients=()
	rm -f "$WORK/over"
	for ((i = 0; i < CLIENTS; i++)); do
		client "$i" &
		clients+=($!)
	done
	end=$(($(now_ms) + ROUND * 1000))
	until is_over || ((now > end)); do pause 2; done
	: >"$WORK/over"
	wait "${clients[@]}"
}

show_counters() {
	local link netns
	for netns in a b; do
		note "$netns: $(within "$netns" nstat -as | awk '/Listen|ReqQ|OutRsts|AttemptFails|EstabResets|Abort|TCPTimeouts|Challenge|PAWS/ && $2 > 0 { printf "%s %s ", $1, $2 }')"
	done
	for link in siw0/1 siw1/1; do
		note "$link: $(counters $link | jq -r 'to_entries[] | select(.key | startswith("mpa_")) | select(.value != 0) | "\(.key[4:]) \(.value)"' | paste -sd' ')"
	done
}

# One that ends badly ends the run
judge_clients() {
	local bad
	bad=$(sed -nE '/^(failed|late)/p' "$WORK"/said.*)
	[[ -n $bad ]] || return 0
	sort <<<"$bad" | uniq -c | sort -rn | sed -n '1,10s/^/# /p'
	show_counters
	fail "$(wc -l <<<"$bad") clients did not end well"
}

soak() {
	local -a at_rest=()
	local round=0 begin now used first last program
	begin=$(now_ms)
	for netns in a b; do
		# sockets that TCP keeps for a minute would count as memory
		sysctl_of "$netns" tcp_max_tw_buckets 0
		sysctl_of "$netns" tcp_fin_timeout 2
	done
	# a host with so many clients is slow: deadlines are not what is tested here
	"$RDMA" mpa set default request-timeout $SETUP reply-timeout $SETUP rtr-timeout $SETUP
	# it takes half of the time there, and all other suites run with it
	[[ $VM_KERNEL != debug ]] || echo off >/sys/kernel/debug/kmemleak
	note "seed $seed"
	# in the first namespace: that of the devices
	# shellcheck disable=SC2016 # for the other shell
	timeout -k 5 86400 bash -c '"$0" mpa monitor | grep --line-buffered "^failed "' "$RDMA" >"$WORK/failures.log" 2>&1 </dev/null &
	pid_of[failures]=$!
	# as many rounds as it takes to judge memory
	until is_over && ((round >= ROUNDS)); do
		round=$((round + 1))
		run_round
		rest
		at_rest+=("$used")
		judge_clients
	done
	echo "total $(made) $(((now - begin) / 1000))"
	show_counters
	for program in "${PROGRAMS[@]}"; do
		grep -q "^ok $program" "$WORK"/said.* || fail "no client of $program ended well"
	done
	first=${at_rest[${#at_rest[@]} / 3]} last=${at_rest[-1]}
	note "memory at rest: ${at_rest[*]} KiB; from a third on: $((last - first))"
	((last - first <= LIMIT)) || fail "memory grows: $((last - first)) KiB after the first third"
}

check "$CLIENTS clients of mixed programs, killed at random: memory does not grow, no connection remains" soak
finish
