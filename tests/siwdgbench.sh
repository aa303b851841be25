#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --mem 3072 -- tests/siwdgbench.sh
#
# For `scripts/datagram bench-module`: measures module siw_dg between two machines beside rxe's UD queue pairs and a
# connection of siw, ROUNDS times in turn, and prints a line of JSON for each result. Read libdgm/NOTICE first.
set --
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly PRODUCTS=${TESTS%/*}/build/datagram PROVIDER=${TESTS%/*}/build/siwdg ROUNDS=${ROUNDS:-3}
readonly DGQP=$PRODUCTS/lib/dgqp

# both SERVER… -- CLIENT…: b has the server. The client starts anew until the server is there
both() {
	local -a server=()
	while [[ $1 != -- ]]; do
		server+=("$1")
		shift
	done
	if [[ $ROLE == b ]]; then
		run_well server b 120 "${server[@]}"
	else
		until_served 110 60 "${@:2}"
	fi
}

# perftest DEVICE TRANSPORT PROGRAM OCTETS OPTION…: perftest's median latency in us, or MB/s
perftest() {
	local device=$1 transport=$2 program=$3 octets=$4
	shift 4
	both "$program" -d "$device" -F -s "$octets" "$@" -- "$program" -d "$device" -F -s "$octets" "$@" "$(address b)"
	[[ $ROLE == a ]] || return 0
	awk -v transport="$transport" -v octets="$octets" -v latency="$([[ $program == *_lat ]] && echo 1)" \
		'/^ *[0-9]+ +[0-9]+ +[0-9.]+/ {
			if (latency) printf "{\"what\": \"latency\", \"transport\": \"%s\", \"octets\": %d, \"value\": %s}\n", transport, octets, $5
			else printf "{\"what\": \"throughput\", \"transport\": \"%s\", \"octets\": %d, \"value\": %s}\n", transport, octets, $4 }' \
		"$WORK/client.log"
}

# record OCTETS EVERY ROUNDS: Write-Record, from a to b and back
record() {
	local -a own=(--device d0 --provider "$PROVIDER/libsiwdg.so.1" --zone 77 --key 78 --zone-size 2000000 --size "$1" --every "$2"
		--count "$3" --records 4096 --depth 16 --data x)
	both "$DGQP" pong "${own[@]}" --timeout 60 --port 7706 "$(address a)" 7705 -- \
		"$DGQP" ping "${own[@]}" --timeout 10 --port 7705 "$(address b)" 7706
	[[ $ROLE == a ]] || return 0
	# half of a round; or MiB in the time of one
	jq -c '{octets} + if .every == 1 then {what: "latency", transport: "record", value: (.ns / 2000)}
		else {what: "throughput", transport: "record", value: (.octets * .every / 1048576 / (.ns / 1e9))} end' "$WORK/client.log"
}

measure() {
	local round octets
	for ((round = 0; round < ROUNDS; round++)); do
		for octets in 64 1024; do
			perftest d0 dg ib_send_lat $octets -c UD -e -n 300
			perftest rxe0 rxe ib_send_lat $octets -c UD -e -n 300 -x "$RXE_GID"
			perftest siw0 siw ib_send_lat $octets -R -e -n 300
			record $octets 1 300
			perftest d0 dg ib_send_bw $octets -c UD -e -n 2000
			perftest rxe0 rxe ib_send_bw $octets -c UD -e -n 2000 -x "$RXE_GID"
			perftest siw0 siw ib_send_bw $octets -R -e -n 2000
			record $octets 1000 3
		done
		for octets in 65536 1048576; do
			perftest siw0 siw-write ib_write_bw $octets -R -n $((octets > 65536 ? 20 : 100))
			record $octets $((octets > 65536 ? 20 : 100)) 3
		done
	done
}

echo "driver $PROVIDER/libsiwdg" >/etc/libibverbs.d/siwdg.driver
echo 'driver rxe' >/etc/libibverbs.d/rxe.driver
modprobe -aq libcrc32c crc32c || true
modprobe ib_uverbs
insmod "$PRODUCTS/$VM_KERNEL/siw_dg.ko"
modprobe rdma_rxe
rdma link add d0 type siw_dg netdev eth0
rdma link add rxe0 type rxe netdev eth0
# siw and siw_dg always have a CRC
"${TESTS%/*}/build/rdma" mpa set default crc required || true
# The IPv4-mapped one
RXE_GID=$(grep -l 0000:ffff: /sys/class/infiniband/rxe0/ports/1/gids/* | head -n 1)
RXE_GID=${RXE_GID##*/}
check 'siw_dg, rxe and siw are measured' measure
rmmod siw_dg
rdma link del rxe0
rmmod rdma_rxe
finish
