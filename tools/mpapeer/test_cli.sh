#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests the command line: help, exit statuses, messages. Usage: test_cli.sh MPAPEER
set -euo pipefail

mpapeer=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# check STATUS TEXT COMMAND…: runs it, compares its exit status, looks for TEXT in its output
check() {
	local want=$1 text=$2 status=0
	shift 2
	"$@" >"$dir/out" 2>&1 || status=$?
	if [ "$status" -ne "$want" ] || ! grep -qF -- "$text" "$dir/out"; then
		echo "FAIL: $* gave $status, wanted $want and '$text':"
		cat "$dir/out"
		failed=1
	fi
}

# unhex FILE HEX…
unhex() {
	local file=$1
	shift
	printf '%b' "$(printf '%s' "$@" | sed 's/../\\x&/g')" >"$file"
}

for command in "" run decode; do
	# shellcheck disable=SC2086
	check 0 Usage: "$mpapeer" $command --help
done
check 2 subcommand "$mpapeer"
check 2 subcommand "$mpapeer" dance

echo 'expect nothing for 1ms' >"$dir/quiet.txt"
printf 'expect no-connection for 1ms\nexpect no-connection for 1ms\n' >"$dir/nobody.txt"
echo 'send request' >"$dir/typing.txt"
echo 'wait 300ms' >"$dir/hold.txt"
echo 'expect request' >"$dir/await.txt"
echo 'send reqest' >"$dir/typo.txt"
echo "send request \${WORDS}" >"$dir/words.txt"
check 2 "--connect or --listen" "$mpapeer" run "$dir/quiet.txt"
check 2 "excludes" "$mpapeer" run "$dir/quiet.txt" --connect h:1 --listen 1
check 2 "HOST:PORT" "$mpapeer" run "$dir/quiet.txt" --connect 1
check 2 "typo.txt:1: 'reqest'" "$mpapeer" run "$dir/typo.txt" --listen 0
check 2 "No such file" "$mpapeer" run "$dir/none.txt" --listen 0
check 2 "WORDS} is not set" "$mpapeer" run "$dir/words.txt" --check
check 0 "words.txt: 1 statements" "$mpapeer" run "$dir/words.txt" --check \
	--set WORDS="crc p2p" --set UNUSED=1
check 2 "NAME=VALUE" "$mpapeer" run "$dir/words.txt" --check --set WORDS
check 1 "none was established within 10ms" "$mpapeer" run "$dir/quiet.txt" --listen 127.0.0.1:0 \
	--accept-within 10ms
check 1 "none was established within 10ms" "$mpapeer" run "$dir/quiet.txt" "$dir/typing.txt" --listen 127.0.0.1:0 \
	--accept-within 10ms
check 0 "nobody.txt: 2 expectations met" "$mpapeer" run "$dir/nobody.txt" "$dir/nobody.txt" --listen 127.0.0.1:0
check 2 "typo.txt:1: 'reqest'" "$mpapeer" run "$dir/nobody.txt" "$dir/typo.txt" --listen 0
check 2 "/run/netns/no-such: No such file" "$mpapeer" run "$dir/nobody.txt" --listen 0 --netns no-such
# shellcheck disable=SC2016 # the inner shell's
check 1 "nothing was received within 30ms" bash -c '"$0" run "$2" --listen 127.0.0.1:0 --within 30ms > "$3" &
	for ((i = 0; i < 100; i++)); do read -r _ _ to <"$3" && break; sleep 0.05; done
	"$0" run "$1" --connect "$to" >/dev/null; cat "$3"; wait $!' \
	"$mpapeer" "$dir/hold.txt" "$dir/await.txt" "$dir/await.out"
check 1 "Connection refused" "$mpapeer" run "$dir/quiet.txt" --connect 127.0.0.1:1

# A run of two processes.
printf 'expect request\nsend reply\nexpect close\n' >"$dir/responder.txt"
printf 'send request\nexpect reply\n' >"$dir/initiator.txt"
touch "$dir/responder.out"
"$mpapeer" run "$dir/responder.txt" --listen 127.0.0.1:0 >"$dir/responder.out" &
for _ in $(seq 100); do
	address=$(sed -n 's/^listening on //p' "$dir/responder.out")
	[ -z "$address" ] || break
	sleep 0.1
done
check 0 "PASS" "$mpapeer" run "$dir/initiator.txt" --connect "$address" --bind 127.0.0.2 -v
if ! wait $! || ! grep -q "127.0.0.2" "$dir/responder.out"; then
	echo "FAIL: the responder"
	cat "$dir/responder.out"
	failed=1
fi

if [ "$("$mpapeer" run "$dir/nobody.txt" "$dir/nobody.txt" --listen 127.0.0.1:0 | grep -c PASS)" -ne 2 ]; then
	echo "FAIL: two scenarios"
	failed=1
fi

# One raw IPv4 packet: a Rev 1 request.
header=d4c3b2a1020004000000000000000000ffff000065000000
record=00000000000000003c0000003c000000
ip=4500003c00004000400600000a4d00010a4d0002
tcp=9c401b5800000001000000005018ffff00000000
request=4d504120494420526571204672616d6540010000
unhex "$dir/good.pcap" $header $record $ip $tcp $request
check 0 "initiator request rev=1" "$mpapeer" decode "$dir/good.pcap"
check 0 '"kind": "request"' "$mpapeer" decode --json "$dir/good.pcap"
check 0 "initiator request rev=1" "$mpapeer" decode - <"$dir/good.pcap"
check 0 "[]" "$mpapeer" decode --json --port 1 "$dir/good.pcap"
unhex "$dir/damaged.pcap" $header $record $ip $tcp $request $record
check 1 "initiator request rev=1" "$mpapeer" decode "$dir/damaged.pcap"
check 1 "truncated dump file" "$mpapeer" decode "$dir/damaged.pcap"
check 2 "not a capture" "$mpapeer" decode "$dir/quiet.txt"
check 2 "No such file" "$mpapeer" decode "$dir/none.pcap"
check 2 "FILE is required" "$mpapeer" decode

check 2 "connect to 127.0.0.1:1: Connection refused: is conformance-target running on the target" "$mpapeer" conformance --target 127.0.0.1:1
check 2 "target needs HOST:PORT" "$mpapeer" conformance --target 127.0.0.1

exit $failed
