#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/wire.sh
#
# What a peer sees on the wire: mpapeer plays each scenario of tests/wire against our responder
# (an rping server) or our initiator (an rping client). A scenario's first line names the
# requirements and what is claimed. After each the other side must still be in order: the server
# takes a good client, the client has ended by itself.
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

port=7174

claim() { # FILE
	local name
	name=$(basename "$1" .txt)
	printf '%s %s: %s' "$2" "$name" "$(sed -n '1s/^# *//p' "$1")"
}

play() { # NETNS FILE [ARG…]
	local netns=$1 file=$2
	shift 2
	run peer "$netns" 60 "$MPAPEER" run "$file" "$@"
	if [[ $STATUS -ne 0 ]]; then
		sed 's/^/# /' "$WORK/peer.log"
		fail "$(grep -m 1 -iE 'expected|wanted|mpapeer:' "$WORK/peer.log" || echo "mpapeer ended with status $STATUS")"
	fi
}

against_responder() { # FILE
	wait_listener "$(address b)" "$port"
	play a "$1" --connect "$(address b):$port"
	run_well client a 30 rping -c -a "$(address b)" -p "$port" -C 1
	kill -0 "$server" 2>/dev/null || fail 'the server has ended'
}

against_initiator() { # FILE
	start peer b 60 "$MPAPEER" run "$1" --listen "$(address b):$port"
	wait_line peer '^listening on' 20
	run client a 40 rping -c -a "$(address b)" -p "$port" -C 1
	ended peer 20
	if [[ $STATUS -ne 0 ]]; then
		sed 's/^/# /' "$WORK/peer.log"
		fail "mpapeer ended with status $STATUS"
	fi
}

# One server for all: what one peer does must not matter to the next
within b exec timeout 500 rping -s -a "$(address b)" -p "$port" -P >/dev/null 2>&1 &
server=$!
for file in "$TESTS"/wire/responder/${1:-*}.txt; do
	[[ ! -e $file ]] || check "$(claim "$file" responder)" against_responder "$file"
done
kill "$server"
wait "$server" || true

port=7175
for file in "$TESTS"/wire/initiator/${1:-*}.txt; do
	[[ ! -e $file ]] || check "$(claim "$file" initiator)" against_initiator "$file"
done
finish
