#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--stock] -- tests/first.sh
#
# The purpose of the peer-to-peer model: the responder's program sends right after it has accepted,
# before the initiator's program has sent anything. With --stock it records the results of unmodified siw.
#
# Runs as first first-sctp first-streams: 120 s
# Sample first: first, server
# Sample 7.2/first: first,
# Sample 6.12/first: first,
# Sample first-sctp: first, server in namespace b
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

# Over SCTP no RTR is needed, and none is asked for by default (SCT-14, AMB-22)
BEFORE=''
[[ $LLP != tcp ]] || BEFORE='"initiator write", '

# Sets STATUS to the client's exit status; the message and the capture are in $WORK
responder_sends() { # NETNS PORT [6]
	local server=$1 port=$2 to
	to=$(address "$server" "${3:-}")
	capture wire "$server"
	start server "$server" 60 "$RDMAFIRST" server "$to" "$port" --send first
	wait_listener "$to" "$port"
	run client "$(other "$server")" 40 "$RDMAFIRST" client "$to" "$port" --expect first --timeout 30
}

responder_first() { # NETNS PORT [6]
	responder_sends "$@"
	[[ $STATUS -eq 0 ]] || fail "the client ended with status $STATUS"
	has_line client '^received 5 first$' || fail 'the client received something else'
	ended_well server 30
	has_line server '^conn 1 over: good$' || fail 'the server did not see a good connection'
	capture_end wire
	on_the_wire wire "$2" default_setup
	on_the_wire wire "$2" "order([$BEFORE\"responder send\"])"
}

# --stock: results are printed, nothing fails
record() { # NETNS PORT
	responder_sends "$@"
	note "the client's status: $STATUS"
	stop server
	capture_end wire
	describe wire "$2" | sed 's/^/# wire: /'
	note "programs: $(grep -hE 'received|failed|over:' "$WORK/client.log" "$WORK/server.log" | paste -sd';')"
}

port=7300
for netns in b a; do
	if [[ $VM_STOCK == 1 ]]; then
		check "recorded: the responder sends first, server in namespace $netns" record "$netns" $((++port))
	else
		check "the responder sends first, server in namespace $netns" responder_first "$netns" $((++port))
		check "the responder sends first over IPv6, server in namespace $netns" responder_first "$netns" $((++port)) 6
	fi
done
finish
