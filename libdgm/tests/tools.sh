#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Usage: tools.sh BUILD
#
# dgm-send, dgm-recv, dgmpeer and the examples over loopback. BUILD is the directory of the programs.
set -euo pipefail

build=$1
dir=$(mktemp -d)
pids=()
# shellcheck disable=SC2317 # by the trap
cleanup() {
	[[ ${#pids[@]} -eq 0 ]] || kill "${pids[@]}" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT

fail() {
	printf 'FAIL: %s\n' "$*"
	tail -n 5 "$dir"/*.log 2>/dev/null || true
	exit 1
}

# start_recv OPTION…: sets target
start_recv() {
	: >"$dir/recv.log"
	timeout 60 "$build/dgm-recv" --json "$@" >"$dir/recv.log" 2>"$dir/recv.err" &
	pids+=($!)
	wait_line recv
	target=$(head -n 1 "$dir/recv.log")
}

wait_line() { # NAME: until its log has a line
	local i
	for ((i = 0; i < 300; i++)); do
		[[ ! -s $dir/$1.log ]] || return 0
		sleep 0.1
	done
	fail "$1 prints nothing"
}

end_recv() {
	wait "${pids[-1]}" || fail 'dgm-recv fails'
}

result() { # JQ-FILTER of the JSON of dgm-recv, after its end
	tail -n 1 "$dir/recv.log" | jq -r "$1"
}

head -c 3000000 /dev/urandom >"$dir/input"

# A file arrives; the receiver may be slower than the sender, so the rate is limited
start_recv --from 127.0.0.1 --size 4M --output "$dir/copy" --map "$dir/map"
"$build/dgm-send" "$target" --input "$dir/input" --rate 200 --json >"$dir/send.log" || fail 'dgm-send'
end_recv
[[ $(result '[.bytes, .sent, .with_holes] | @csv') == 3000000,3000000,0 ]] || fail "a file: $(tail -n 1 "$dir/recv.log")"
cmp "$dir/input" "$dir/copy" || fail 'the copy differs'
[[ $(<"$dir/map") == '0 3000000' ]] || fail "the map: $(<"$dir/map")"
[[ $(jq '[.bytes, .messages, .failed] | @csv' -r "$dir/send.log") == 3000000,46,0 ]] || fail "sender: $(<"$dir/send.log")"

# Through pipes, in messages of one datagram, datagram by datagram
timeout 60 "$build/dgm-recv" --any --whole --size 1M --output - >"$dir/piped" 2>"$dir/pipe.log" &
pids+=($!)
wait_line pipe
head -c 100000 "$dir/input" | "$build/dgm-send" "$(head -n 1 "$dir/pipe.log")" --message 1000 --rate 50 --no-bundle >"$dir/send.log" || fail 'dgm-send from a pipe'
wait "${pids[-1]}" || fail 'dgm-recv to a pipe'
cmp "$dir/piped" <(head -c 100000 "$dir/input") || fail 'what came through pipes differs'

# Input that is longer than the zone is an error; a target that is none, too
start_recv --any --size 1000 --idle 1
! "$build/dgm-send" "$target" --input "$dir/input" >"$dir/send.log" 2>&1 || fail 'too long an input is sent'
! "$build/dgm-send" 127.0.0.1 >"$dir/send.log" 2>&1 || fail 'a bad target is taken'
! "$build/dgm-recv" >"$dir/send.log" 2>&1 || fail 'dgm-recv lets anybody write'
kill "${pids[-1]}"

# dgmpeer: each hostile datagram is counted for its reason
start_recv --any --size 65536 --idle 2
"$build/dgmpeer" hostile "$target" --rate 5000 >"$dir/hostile.log"
port=${target#*:} port=${port%%/*}
IFS=/ read -r _ zone qkey _ <<<"$target"
"$build/dgmpeer" send 127.0.0.1 "$port" write "stag=0x$zone" "qkey=0x$qkey" to=5 --data hello
end_recv
[[ $(result '.counters | del(.segments_placed)' | jq -Sc .) == "$(jq -Sc . "$dir/hostile.log")" ]] ||
	fail "hostile: $(tail -n 1 "$dir/recv.log") is not $(<"$dir/hostile.log")"
[[ $(tail -n 1 "$dir/recv.log" | jq .bytes) == 5 ]] || fail 'the honest datagram'

# An IPv6 packet with an IPv4 source is not taken for an IPv4 packet
start_recv --bind :: --from 127.0.0.1 --size 64 --idle 2
port=${target%%/*} port=${port##*:}
IFS=/ read -r _ zone qkey _ <<<"$target"
"$build/dgmpeer" send ::1 "$port" write --source ::ffff:127.0.0.1 "stag=0x$zone" "qkey=0x$qkey" --data forged
"$build/dgmpeer" send 127.0.0.1 "$port" write "stag=0x$zone" "qkey=0x$qkey" to=5 --data hello
end_recv
[[ $(result '[.counters.bad_source, .bytes] | @csv') == 1,5 ]] || fail "forged source: $(tail -n 1 "$dir/recv.log")"

# dgmpeer reads what it writes
[[ $("$build/dgmpeer" decode e140123456010000000000001000000000070000000000000004c001d00d61626364cc96bd6c |
	jq -r '[.stag, .to, .msn, .ml, .qkey, .crc] | @csv') == 305419777,4096,7,4,3221344269,true ]] || fail 'decode V3'
"$build/dgmpeer" expect 127.0.0.1 0 --timeout 0.2 >"$dir/expect.log" && fail 'expect succeeds without a datagram'

# Examples
for i in 1 2 3; do
	timeout 20 "$build/dgm_example_table" read 239.255.77.9 47019 127.0.0.1 3 >"$dir/table$i.log" &
	pids+=($!)
	wait_line "table$i"
done
timeout 20 "$build/dgm_example_table" publish 239.255.77.9 47019 127.0.0.1 2
for i in 1 2 3; do
	wait "${pids[-$((4 - i))]}" || fail 'a reader of the table fails'
	grep -qx '16 rows' "$dir/table$i.log" || fail "reader $i: $(tail -n 1 "$dir/table$i.log")"
done
timeout 20 "$build/dgm_example_frames" show 127.0.0.1 47020 5 >"$dir/frames.log" &
pids+=($!)
wait_line frames
timeout 20 "$build/dgm_example_frames" play 127.0.0.1 47020 5
wait "${pids[-1]}"
grep -qx '5 frames' "$dir/frames.log" || fail 'frames'
echo "ok"
