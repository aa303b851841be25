#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --stock=a|b -- tests/interop.sh [REGEX]
#
# Our siw and an unmodified one, each as initiator and as responder. The unmodified initiator asks
# for the client-server model with enhanced data; ours asks for peer-to-peer and sends its RTR.
# Runs on both machines; ours checks the wire.
#
# Runs as interop-a interop-b: --pair; 400 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

peer=$(other "$ROLE")
declare -A port=([a]=7851 [b]=7852)

# Unmodified rping waits for ever if an unmodified responder does not see the RTR
rping_works() {
	until_served 240 12 rping -c -a "$(address "$peer")" -p "${port[$peer]}" -C 10 -V
}

# An unmodified responder may not see our RTR (S2), and rping tries again: the last connection counts
last_is_over() { # PORT
	cp "$WORK/wire.keep" "$WORK/wire.pcap"
	"$MPAPEER" decode --json --port "$1" "$WORK/wire.pcap" | jq '.[-1:]' >"$WORK/wire.$1.json" || return 1
	jq -e 'any(.[].events[]; .type == "fin" or .type == "rst")' "$WORK/wire.$1.json" >"$WORK/over"
}

we_connected() {
	wait_for 250 'our connection' last_is_over "${port[$peer]}"
	on_the_wire wire "${port[$peer]}" peer_to_peer_interop
	on_the_wire wire "${port[$peer]}" '(.events[0] | request_is_ours)'
}

they_connected() {
	wait_for 250 "the peer's connection" is_seen "${port[$ROLE]}" 1
	on_the_wire wire "${port[$ROLE]}" client_server_interop
}

keep_capture
serve_forever rping -s -P -a "$(address "$ROLE")" -p "${port[$ROLE]}"
both_listen "${port[$ROLE]}"
side=ours
[[ $VM_STOCK == 0 ]] || side=unmodified
check "rping completes from machine $ROLE ($side) to machine $peer" rping_works
if [[ $VM_STOCK == 0 ]]; then
	check 'our initiator and an unmodified siw as responder connect peer-to-peer' we_connected
	check 'an unmodified siw as initiator and our responder connect client-server' they_connected
fi
finish
