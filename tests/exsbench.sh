#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --icount --timeout 3000 -- tests/exsbench.sh [quick]
#
# Not a test: what scripts/bench-exs runs. Prints a line of JSON for each measurement of exs-ping and exs-blast, in all
# modes, and of the same programs with plain TCP and with rsockets. Wants a machine with --icount.
set -euo pipefail

EXS=$(cd "${0%/*}/../build/tools/exs" && pwd -P)
RSOCKETS=$(find /usr/lib -name librspreload.so | head -n 1)
sizes=(1 64 1024 16384 131072 1048576 16777216) flights=(1 2 4 8) count=200
[[ ${1:-} != quick ]] || { sizes=(64 16384 1048576) flights=(1 4) count=50; }
# the clock of such a machine flies while it waits for the host
patience=100000
work=$(mktemp -d)
port=7800

# measure TRANSPORT TOOL OPTION…
measure() {
	local transport=$1 tool=$2 server
	local -a with=() options=("${@:3}")
	case $transport in
	exs) options+=(--protocol rdma) ;;
	exs-tcp) options+=(--protocol tcp) ;;
	tcp) options+=(--plain) ;;
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
	ip netns exec b timeout $patience "${with[@]}" "$EXS/exs-$tool" --listen --once 10.77.0.2 -p "$port" "${options[@]}" \
		>"$work/server" 2>&1 &
	server=$!
	until grep -q '^listening' "$work/server"; do
		kill -0 "$server" 2>/dev/null || { cp "$work/server" "$work/client" && return 1; }
		sleep 0.05
	done
	ip netns exec a timeout $patience "${with[@]}" "$EXS/exs-$tool" 10.77.0.2 -p "$port" --json "${options[@]}" >"$work/client" 2>&1 || true
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

find /etc/libibverbs.d -name '*.driver' ! -name siw.driver -delete
ip netns exec a ping -q -c 1 10.77.0.2 >/dev/null
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
rm -r "$work"
