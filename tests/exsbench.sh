#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --icount --timeout 3000 -- tests/exsbench.sh [quick | more | fallback]
#	tests/exsbench.sh here
#
# Not a test: what scripts/bench-exs runs. Prints a line of JSON for each measurement of exs-ping and exs-blast, in all
# modes, and of the same programs with plain TCP and with rsockets. Wants a machine with --icount. "more": only the fallback over
# TCP, Nagle, progress in the caller's thread, and rxe. "fallback": only the first two of these. "here": the first of these on this host and its clock, by turns, five times.
set -euo pipefail

EXS=$(cd "${0%/*}/../build/tools/exs" && pwd -P)
RSOCKETS=$(find /usr/lib -name librspreload.so | head -n 1)
sizes=(1 64 1024 16384 131072 1048576 16777216) flights=(1 2 4 8) count=200
here=$([[ ${1:-} != here ]] || echo 1)
[[ ${1:-} != quick ]] || { sizes=(64 16384 1048576) flights=(1 4) count=50; }
# the clock of such a machine flies while it waits for the host
patience=100000
work=$(mktemp -d)
port=7800
address=10.77.0.2
at_a=(ip netns exec a) at_b=(ip netns exec b)

# measure TRANSPORT TOOL OPTION…
measure() {
	local transport=$1 tool=$2 server
	local -a with=() options=("${@:3}")
	case $transport in
	exs | rxe | siw) options+=(--protocol rdma) ;;
	exs-caller) options+=(--protocol rdma --spin-us 0) ;;
	exs-tcp) options+=(--protocol tcp) ;;
	exs-tcp-batch) options+=(--protocol tcp --batch) ;;
	exs-tcp-caller) options+=(--protocol tcp --batch --spin-us 0) ;;
	tcp) options+=(--plain) ;;
	tcp-nagle) options+=(--plain --nagle) ;;
	rsockets) options+=(--plain) with=(env "LD_PRELOAD=$RSOCKETS") ;;
	esac
	# a clock that flies meets deadlines, too, when a program is read from the host
	for _ in 1 2 3 4; do
		measure_once && return
	done
	echo "# $transport $tool ${options[*]}: $(tail -n 1 "$work/client")"
}

# With the variables of measure()
measure_once() {
	port=$((port + 1))
	"${at_b[@]}" timeout $patience "${with[@]}" "$EXS/exs-$tool" --listen --once "$address" -p "$port" "${options[@]}" \
		>"$work/server" 2>&1 &
	server=$!
	until grep -q '^listening' "$work/server"; do
		kill -0 "$server" 2>/dev/null || { cp "$work/server" "$work/client" && return 1; }
		sleep 0.05
	done
	"${at_a[@]}" timeout $patience "${with[@]}" "$EXS/exs-$tool" "$address" -p "$port" --json "${options[@]}" >"$work/client" 2>&1 || true
	kill "$server" 2>/dev/null || true
	wait "$server" || true
	grep '^{' "$work/client" >"$work/result" || return 1
	jq -c --arg transport "$transport" '{transport: $transport} + .' "$work/result"
}

# so many messages of a size that it takes about as long for each
messages() { # SIZE
	local n=$((16777216 / $1))
	((n < count)) || n=$count
	((n > 8)) || n=8
	echo "$n"
}

# Over TCP messages need no page of their own: enough of them for the time of one
fallback() { # MESSAGES TRANSPORT…
	local size mode flight transport
	for size in 64 1024 4096 16384; do
		for mode in normal immediate persistent-recv; do
			for flight in 1 8 32; do
				for transport in "${@:2}"; do
					measure "$transport" blast -m $mode -s "$size" -n "$1" -k "$flight" --credits 64 --small-max 65536
				done
			done
		done
		measure tcp blast -s "$size" -n "$1"
		[[ -n $here ]] || measure tcp-nagle blast -s "$size" -n "$1"
	done
}

callers() {
	local mode transport
	for mode in normal immediate persistent; do
		for transport in exs exs-caller; do measure $transport ping -m $mode -s 64 -n "$count"; done
	done
}

# Both ends at one address, as rxe has no other network namespace
one_address() { # TYPE
	local size mode
	for size in 64 1024 16384; do
		for mode in normal immediate persistent; do measure "$1" ping -m $mode -s $size -n "$count"; done
	done
	for size in 64 1024 16384 131072 1048576; do
		for mode in normal immediate persistent persistent-recv; do
			measure "$1" blast -m $mode -s $size -n "$(messages $size)" -k 4 --credits 8 --small-max 1048576
		done
	done
}

rxe_and_siw() {
	local device
	rdma link del siw0
	rdma link del siw1
	ip link add one type veth peer name other
	ip address add 10.79.0.1/24 dev one
	ip link set one up
	ip link set other up
	address=10.79.0.1 at_a=() at_b=()
	modprobe -a siw rdma_rxe
	for device in siw rxe; do
		echo "driver $device" >"/etc/libibverbs.d/$device.driver"
		rdma link add one0 type $device netdev one
		one_address $device
		rdma link del one0
	done
}

if [[ -n $here ]]; then
	address=127.0.0.1 at_a=() at_b=()
	for round in 1 2 3 4 5; do
		fallback 20000 exs-tcp exs-tcp-batch exs-tcp-caller | jq -c --argjson round $round '{round: $round} + .'
	done
	rm -r "$work"
	exit
fi
find /etc/libibverbs.d -name '*.driver' ! -name siw.driver -delete
ip netns exec a ping -q -c 1 10.77.0.2 >/dev/null
if [[ ${1:-} != @(more|fallback) ]]; then
	for size in 1 64 1024 16384; do
		for mode in normal immediate persistent; do
			measure exs ping -m $mode -s $size -n "$count"
		done
		measure exs-tcp ping -s $size -n "$count"
		for transport in tcp rsockets; do measure $transport ping -s $size -n "$count"; done
	done
	for size in "${sizes[@]}"; do
		for mode in normal immediate persistent persistent-recv; do
			[[ $mode != immediate || $size -le 1048576 ]] || continue
			for flight in "${flights[@]}"; do
				credits=64
				((size < 131072)) || credits=8
				measure exs blast -m $mode -s "$size" -n "$(messages "$size")" -k "$flight" --credits $credits --small-max 1048576
			done
		done
		for transport in tcp rsockets; do measure $transport blast -s "$size" -n "$(messages "$size")"; done
		((size < 8 || size > 1048576)) || measure exs exchange -s "$size" -n "$(messages "$size")"
	done
fi
fallback 2000 exs-tcp exs-tcp-batch exs-tcp-caller
if [[ ${1:-} != fallback ]]; then
	callers
	rxe_and_siw
fi
rm -r "$work"
