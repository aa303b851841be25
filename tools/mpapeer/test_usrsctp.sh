#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: test_usrsctp.sh MPAPEER
#
# Both roles over libusrsctp, in a network namespace of its own. Needs root; exit status 77: skipped.
set -euo pipefail

if [[ ${2:-} != inside ]]; then
	unshare -n true 2>/dev/null || { echo 'skipped: needs root' && exit 77; }
	exec unshare -n "$0" "$1" inside
fi
mpapeer=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# play NAME INITIATOR RESPONDER: both scenarios pass
play() {
	local responder
	printf '%s\n' "$2" >"$work/initiator"
	printf '%s\n' "$3" >"$work/responder"
	timeout 30 "$mpapeer" run "$work/responder" --llp sctp --stack usrsctp --listen 192.0.2.2:7000 >"$work/log" &
	responder=$!
	timeout 30 "$mpapeer" run "$work/initiator" --llp sctp --stack usrsctp --bind 192.0.2.1 --connect 192.0.2.2:7000 --retry 5s
	wait $responder || { cat "$work/log" && return 1; }
	echo "ok $1"
}

ip link set lo up
# The addresses are nobody's, and packets to them come back from lo
ip route add 192.0.2.0/24 dev lo
if timeout 5 "$mpapeer" run /dev/null --within 100ms --llp sctp --stack usrsctp --bind 192.0.2.1 --connect 192.0.2.2:7000 2>&1 |
	grep 'built without'; then
	exit 77
fi

play 'both roles' 'send initiate ird=8 ord=4 pdata="ping"
expect adaptation 1
expect accept enhanced ird=4 ord=8 ssn=0
expect segment send pdata="first" ssn=1
send segment send "hello"
send terminate
expect shutdown' 'expect initiate enhanced pdata="ping"
expect adaptation 1
send accept ird=4 ord=8
send segment send "first"
expect segment send pdata="hello"
expect terminate
shutdown
expect close'

play 'an ABORT' 'send initiate
abort' 'expect initiate enhanced=0
expect abort'

play 'another adaptation indication' 'association adaptation=7
expect initiate' 'expect adaptation 7
send initiate
expect close'

play 'a window that is shut' 'association window=4096
reading off
send initiate
wait 2s
reading on
expect segment write len=1000
expect close drain' 'expect initiate
repeat 20
send segment write len=1000
end
shutdown
expect close'

play 'a host that starts anew' 'send initiate
expect accept
vanish
connect
expect shutdown' 'expect initiate
send accept
expect nothing for 1s
shutdown
expect close'
