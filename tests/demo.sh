#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair -- tests/demo.sh [capture]
#
# Makes one RDMA connection between two machines and shows its negotiated values
# with the rdma tool. Runs on both; exit status 0 only if both ends agree on a
# connection, over TCP peer-to-peer of MPA revision 2. With "capture", a prints the
# packets of the connections as lines "pcap BASE64".
set -euo pipefail

# Nobody ends rping here: the other machine still needs the connection. Both machines end together.
DEADLINE=60

# Runs "$@" until it succeeds
until_ok() {
	local end=$((SECONDS + DEADLINE))
	until "$@"; do
		if ((SECONDS > end)); then
			echo "waited ${DEADLINE} s for: $*" >&2
			return 1
		fi
		sleep 0.2
	done
}

listening() { rdma resource show cm_id | grep -q 'state LISTEN'; }
answers() { timeout 15 rping -c -a 10.77.0.2 -C 3 >/dev/null 2>&1; }
connected() { rdma resource show qp -dd | grep -q 'drv_mpa-state RDMA'; }

connect() {
	timeout $((2 * DEADLINE)) rping -c -a 10.77.0.2 -C 1000000 >/tmp/rping 2>&1 &
	pid=$!
}

# On a busy host, one program can be too slow for the deadline of the other
connects() {
	if ! kill -0 "$pid" 2>/dev/null; then
		echo "rping ended: $(paste -sd';' /tmp/rping)" >&2
		connect
	fi
	connected
}

# Sets table to the driver attributes of the connected QP, one "name value" in each line. The connection that
# was there may have been that of the first rping
negotiated() {
	local shown
	shown=$(rdma resource show qp -dd)
	table=$(grep -m 1 'drv_mpa-state RDMA' <<<"$shown" | grep -o 'drv_[a-z-]* [^ ]*' | sed 's/^drv_//')
}

if [[ ${1:-} == capture && $ROLE == a ]]; then
	tcpdump -Z root -U --immediate-mode -i eth0 -w /tmp/pcap "$VM_LLP" port 7174 2>/tmp/tcpdump &
	until_ok grep -q 'listening on' /tmp/tcpdump
fi
if [[ $ROLE == b ]]; then
	timeout $((2 * DEADLINE)) rping -s -P -a 10.77.0.2 >/dev/null 2>&1 &
	pid=$!
	until_ok listening
	until_ok connected
else
	until_ok answers
	echo 'rping -c -a 10.77.0.2 -C 3: ok'
	connect
	until_ok connects
fi
until_ok negotiated
echo "$table"
[[ ! -e /tmp/pcap ]] || base64 -w 1000 /tmp/pcap | sed 's/^/pcap /'
grep -qx "llp $VM_LLP" <<<"$table"
[[ $VM_LLP == tcp ]] || exit 0
grep -qx 'mpa-rev 2' <<<"$table"
grep -qx 'model peer-to-peer' <<<"$table"
grep -qx 'rtr write' <<<"$table"
