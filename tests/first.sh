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

# Of the local port range, as rdma_cm's are
own_source_port() { # PORT
	local own=41000
	local -a client=("$RDMAFIRST" client "$(address b)" "$1" --source "$(address a)" --source-port "$own" --expect first --timeout 30)
	start holder a 100 perl -MSocket -e "socket S, PF_INET, SOCK_STREAM, 0;
		bind S, sockaddr_in($own, inet_aton('$(address a)')) or die; syswrite STDOUT, qq(bound\n); sleep"
	wait_line holder '^bound' 30
	start server b 100 "$RDMAFIRST" server "$(address b)" "$1" --send first
	wait_listener "$(address b)" "$1"
	run client a 40 "${client[@]}"
	[[ $STATUS -ne 0 ]] || fail 'the client has connected with another port'
	has_line client 'Address already in use' || fail 'it is not EADDRINUSE'
	stop holder
	capture wire b
	run_well client a 40 "${client[@]}"
	capture_end wire
	tshark -r "$WORK/wire.pcap" -Y "tcp.flags.syn == 1 && tcp.srcport == $own && tcp.dstport == $1" 2>/dev/null | grep -q . ||
		fail "the SYN does not come from port $own"
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
[[ $VM_STOCK == 1 ]] || check_tcp 'F167: a client whose own source port a socket has gets EADDRINUSE, and uses the port when it is free' own_source_port $((++port))
finish
