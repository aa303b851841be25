#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --icount -- tests/dgmbench.sh speed
#        scripts/vm run --packages iperf3 -- tests/dgmbench.sh loss
#        scripts/vm run --mem 3072 -- tests/dgmbench.sh memory
#
# For `scripts/datagram bench`: measures libdgm beside plain UDP, TCP and siw, and prints a line of JSON for each result.
# Read libdgm/NOTICE first.
mode=$1
set --
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/dgmtransfer.sh
source "${0%/*}/dgmtransfer.sh"

# siw_rc PROGRAM NAME COLUMN OCTETS OPTION…: a connection of siw, by perftest
siw_rc() {
	local program=$1 name=$2 column=$3 octets=$4
	shift 4
	start server b 100000 "$program" -d siw1 -R -F -e -s "$octets" "$@"
	wait_listener 10.77.0.2 18515
	run_well client a 100000 "$program" -d siw0 -R -F -e -s "$octets" "$@" 10.77.0.2
	stop server
	awk -v column="$column" -v name="$name" -v what="$([[ $name == us ]] && echo latency || echo throughput)" -v octets="$octets" \
		'/^ *[0-9]+ +[0-9]+ +[0-9.]+/ { printf "{\"what\": \"%s\", \"transport\": \"siw\", \"octets\": %d, \"%s\": %s}\n", what, octets,
			name, $column }' "$WORK/client.log"
}

# Few messages, as the clock counts instructions and is the same each time. All that is compared has a CRC, or TCP's checksum.
speed() {
	local octets transport
	"${TESTS%/*}/build/rdma" mpa set default crc required
	for octets in 64 1024 16384 65536; do
		for transport in dgm dgm-single udp tcp; do
			"$DGM/dgm_bench" latency $transport a b $octets 50
		done
		siw_rc ib_send_lat us 5 $octets -n 50
	done
	for octets in 64 1024 16384 65536 1048576; do
		for transport in dgm dgm-single udp tcp; do
			"$DGM/dgm_bench" throughput $transport a b $octets $((octets < 4096 ? 1000 : 4194304 / octets))
		done
		siw_rc ib_send_bw mib_s 4 $octets -n $((octets < 4096 ? 1000 : 4194304 / octets < 6 ? 6 : 4194304 / octets))
	done
}

# The part of the data that is valid at the target, of single datagrams that are lost
loss() {
	local size=32000000 rate=40 message loss mode octets
	sysctl -qw net.core.rmem_max=$((16 << 20)) net.core.wmem_max=$((16 << 20))
	# Datagrams that never come whole wait for 30 s
	within b sysctl -qw net.ipv4.ipfrag_high_thresh=$((1 << 28)) net.ipv4.ipfrag_low_thresh=$((1 << 27))
	for loss in 0 0.1 0.5 1 5; do
		for message in 1400 65536 1048576; do
			for mode in partial whole; do
				impair loss "$loss%"
				# shellcheck disable=SC2046 # an option or none
				serve --size $size --output "$WORK/zone" --map "$WORK/map" $([[ $mode == partial ]] || echo --whole)
				send_pattern $size --message $message --rate $rate --no-bundle
				# status 1: no message came whole
				ended recv 60
				mend
				is 'what was sent' "$(received .sent)" $size
				is 'what the socket could not hold' "$(received '.counters.socket_overflows // 0')" 0
				received "{what: \"loss\", transport: \"$mode\", octets: $message, loss: $loss, valid: (.bytes / .sent)} | tostring"
			done
		done
		# The longest datagram has 45 IP fragments
		for octets in 1400 65507; do
			impair loss "$loss%"
			start server b 100 iperf3 -s -1
			wait_for 30 iperf3 socket_listens 5201 tcp
			run_well client a 100 iperf3 -J -u -c 10.77.0.2 -l $octets -b ${rate}M -n $size -w 8M
			ended server 30
			mend
			jq -c --argjson loss "$loss" --argjson octets $octets '{what: "loss", transport: "udp", $octets, $loss,
				valid: (1 - .end.sum.lost_percent / 100)}' "$WORK/client.log"
		done
	done
}

memory() {
	ulimit -n 65536
	local transport clients
	for transport in dgm tcp; do
		for clients in 1 1000 10000; do
			"$DGM/dgm_bench" memory $transport $clients
		done
	done
	# the backlog of rdma_cm has 1024 at most
	for clients in 1 1000 10000; do
		"${TESTS%/*}/build/tools/bench/rdmabench" connect --pattern many-to-one --per-pair $clients --at-once 500 --timeout 900 \
			b=10.77.0.2 a=10.77.0.1 |
			jq -c --argjson clients $clients '{what: "memory", transport: "siw", clients: $clients, octets: (.bytes_per_connection |
				map_values(select(. > 0)) | to_entries | map(select(.key | startswith("objects ") | not) | .value) | add / 2 * $clients)}'
	done
}

check "$mode" "$mode"
finish
