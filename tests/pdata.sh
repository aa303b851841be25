#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/pdata.sh
#
# Private data of connect, accept and reject arrives whole and without the enhanced data, up to the
# 255 bytes that rdma_cm supports (MPA itself has room for 508).
#
# Runs as pdata pdata-sctp pdata-streams: 200 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

# hex_of LENGTH: prints the private data of rdmafirst, where byte i is i
hex_of() {
	local i
	for ((i = 0; i < $1; i++)); do
		printf '%02x' "$i"
	done
}

expect_pdata() { # PROCESS EVENT LENGTH
	has_line "$1" "event $2 .* pdata $3 $(hex_of "$3")\$" || fail "$1's $2 is not with $3 bytes of private data"
}

accepted() { # REQUEST-LENGTH REPLY-LENGTH PORT
	local to
	to=$(address b)
	capture wire b
	start server b 60 "$RDMAFIRST" server "$to" "$3" --pdata-len "$2"
	wait_listener "$to" "$3"
	run_well client a 40 "$RDMAFIRST" client "$to" "$3" --pdata-len "$1" --expect first
	ended_well server 30
	capture_end wire
	expect_pdata server RDMA_CM_EVENT_CONNECT_REQUEST "$1"
	expect_pdata client RDMA_CM_EVENT_ESTABLISHED "$2"
	on_the_wire wire "$3" default_setup
	on_the_wire wire "$3" "pdata($1; $2)"
}

rejected() { # REQUEST-LENGTH REPLY-LENGTH PORT
	local to
	to=$(address b)
	capture wire b
	start server b 60 "$RDMAFIRST" server "$to" "$3" --reject-len "$2"
	wait_listener "$to" "$3"
	run client a 40 "$RDMAFIRST" client "$to" "$3" --pdata-len "$1"
	[[ $STATUS -eq 4 ]] || fail "the client ended with status $STATUS, not 4 (rejected)"
	ended_well server 30
	capture_end wire
	expect_pdata server RDMA_CM_EVENT_CONNECT_REQUEST "$1"
	expect_pdata client RDMA_CM_EVENT_REJECTED "$2"
	on_the_wire wire "$3" rejected
	on_the_wire wire "$3" "pdata($1; $2)"
}

port=7400
for length in 0 56 196 252 255; do
	check "$length bytes of private data with connect and accept each arrive complete at the peer" accepted $length $length $((++port))
	check "$length bytes of private data with connect and reject each arrive complete at the peer" rejected $length $length $((++port))
done
check 'the server receives all 255 bytes of private data of connect, and the client none of accept' accepted 255 0 $((++port))
check 'the client receives all 255 bytes of private data of accept, and the server none of connect' accepted 0 255 $((++port))
check 'the client receives all 255 bytes of private data of reject, and the server none of connect' rejected 0 255 $((++port))
finish
