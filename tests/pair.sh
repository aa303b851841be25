#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair -- tests/pair.sh [REGEX]
#
# Two machines, each with a server for the other: rping, and perftest. perftest's servers listen on the
# wildcard address, which the two namespaces of one machine cannot both do. Runs on both machines.
#
# Runs as pair pair-sctp pair-streams: --pair; 200 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

peer=$(other "$ROLE")
declare -A port=([a]=7801 [b]=7802)

rping_works() {
	until_served 90 30 rping -c -a "$(address "$peer")" -p "${port[$peer]}" -C 10 -V
}

perftest_works() { # PROGRAM PORT SIZE
	until_served 90 30 "$1" -R -F -p "$2" -n 50 -s "$3" "$(address "$peer")"
}

seen_on_the_wire() {
	wait_for 90 'both connections' is_seen "${port[a]}" 1
	wait_for 90 'both connections' is_seen "${port[b]}" 1
	on_the_wire wire "${port[a]}" default_setup
	rm -f "$WORK"/wire.*.json
	on_the_wire wire "${port[b]}" default_setup
}

keep_capture
serve_forever rping -s -P -a "$(address "$ROLE")" -p "${port[$ROLE]}"
# An INIT that is refused would be an association in the capture
both_listen "${port[$ROLE]}"
# perftest's servers serve once, even if that fails. -F: perftest accepts processors whose clocks
# differ, like those of emulated machines.
serve_forever ib_send_lat -R -F -p $((port[$ROLE] + 10)) -n 50 -s 64
serve_forever ib_read_bw -R -F -p $((port[$ROLE] + 20)) -n 50 -s 4096

check "rping to machine $peer completes" rping_works
check 'rping in both directions between two machines: the MPA frames are those of the default settings' seen_on_the_wire
check "ib_send_lat -R to machine $peer completes" perftest_works ib_send_lat $((port[$peer] + 10)) 64
check "ib_read_bw -R to machine $peer completes" perftest_works ib_read_bw $((port[$peer] + 20)) 4096
finish
