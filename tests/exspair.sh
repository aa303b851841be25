#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --mem 3072 -- tests/exspair.sh [REGEX]
#
# libexs between two machines: in each mode, and over siw and rxe, what arrives is what was sent, in both
# directions at once. Runs on both. REGEX picks cases, the same on both; those with 1 GiB are run only if it has that
# (with --timeout 20000: an emulated network carries some Mbit/s).
#
# Runs as exspair exspair-sctp exspair-streams: --pair --mem 3072; 600 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly EXS=$BUILD/exs
readonly MESSAGE=262144
peer=$(other "$ROLE")
port=7500

# The same on both machines, so that each knows what it has to receive
head -c $((16 * MESSAGE)) <(seq 1 3000000) >"$WORK/input"

digest_of() { # MESSAGES
	local i
	for ((i = 0; i < $1; i += 16)); do cat "$WORK/input"; done | sha256sum
}

# Until the peer has a server
send_all() { # MODE MESSAGES
	until "$EXS/exs-blast" "$(address "$peer")" -p "$port" --protocol rdma --json --mode "$1" --input "$WORK/input" \
		-s $MESSAGE -n "$2" -k 4 --small-max $MESSAGE --credits 8; do
		sleep 1
	done
}

# MESSAGES: a multiple of 16
exchange() { # MODE MESSAGES
	local sender
	send_all "$@" >"$WORK/client.log" 2>&1 </dev/null &
	sender=$!
	pid_of[client]=$sender
	timeout $((300 + $2)) "$EXS/exs-blast" --listen "$(address "$ROLE")" -p "$port" --protocol rdma --once --small-max $MESSAGE \
		--credits 8 --output /dev/fd/3 3>&1 >"$WORK/server.log" 2>&1 | sha256sum >"$WORK/digest"
	[[ $(<"$WORK/digest") == "$(digest_of "$2")" ]] || fail "the data from $peer differs: $(tail -n 1 "$WORK/server.log")"
	ended_well client 60
	note "$(grep '^{' "$WORK/client.log" | jq -r \
		'"\(.receiver.mbit_s | floor) Mbit/s, processes: sender \(.cpu_user + .cpu_system) s, receiver \(.receiver |
			.cpu_user + .cpu_system) s"')"
}

# Each end has processors of its own, unlike in exsbench.sh: what takes the receiver's or the sender's time alone is not
# in the latency
ping_modes() {
	local mode try us count=1000
	local -A latency
	[[ $VM_KERNEL != debug ]] || count=100
	for mode in normal immediate persistent; do
		port=$((port + 1))
		if [[ $ROLE == b ]]; then
			timeout 200 "$EXS/exs-ping" --listen --once "$(address b)" -p "$port" --protocol rdma >"$WORK/server.log" 2>&1
			continue
		fi
		for ((try = 0; try < 100; try++)); do
			! timeout 100 "$EXS/exs-ping" "$(address b)" -p "$port" --protocol rdma --json -m $mode -n $count >"$WORK/client.log" 2>&1 ||
				break
			sleep 1
		done
		us=$(grep '^{' "$WORK/client.log" | jq .latency_us.p50) || fail "the client prints: $(tail -n 1 "$WORK/client.log")"
		latency[$mode]=$us
	done
	[[ $ROLE == a ]] || return 0
	note "$(jq -nr --argjson n "${latency[normal]}" --argjson i "${latency[immediate]}" --argjson p "${latency[persistent]}" \
		'def two: . * 100 | round / 100; "normal \($n | round) us; normal : immediate : persistent as 1 : \($i / $n | two) : \($p / $n | two)"')"
	jq -ne --argjson n "${latency[normal]}" --argjson p "${latency[persistent]}" '$p < $n' >/dev/null ||
		fail 'a persistent send is not quicker than a normal one'
}

# The same program over another transport
over_rxe() {
	modprobe rdma_rxe || fail 'this kernel has no rxe'
	rdma link del "siw$([[ $ROLE == a ]] && echo 0 || echo 1)"
	rdma link add rxe0 type rxe netdev eth0
	echo 'driver rxe' >/etc/libibverbs.d/rxe.driver # lib.sh leaves siw's alone
	for mode in normal immediate persistent persistent-recv; do
		port=$((port + 1))
		exchange $mode 16
	done
	run_well tests "$ROLE" 150 env "EXS_TEST_ADDRESS=$(address "$ROLE")" "$EXS/exs_library_tests" --gtest_filter='Library.*'
	note "$(grep ' ran\.' "$WORK/tests.log")"
	rdma link del rxe0
	rmmod rdma_rxe
}

[[ $only != *'1 GiB'* ]] || ip link set eth0 mtu 9000 # it takes half of the time
for mode in normal immediate persistent persistent-recv; do
	# a client that a case has left must not find the next one's server
	port=$((port + 2))
	check "EXS-13: exs-blast receives 4 MiB from machine $peer unchanged, mode $mode" exchange $mode 16
	port=$((port + 1))
	[[ $only != *'1 GiB'* ]] || check "EXS-13: exs-blast receives 1 GiB from machine $peer unchanged, mode $mode" exchange $mode 4096
done
check 'EXS-14: exs-ping between two machines completes in each mode, in mode persistent faster than in normal' ping_modes
[[ $VM_KERNEL != debian ]] || check_tcp 'EXS-13: over rxe between two machines exs-blast receives data unchanged, and the interface tests pass' over_rxe
finish
