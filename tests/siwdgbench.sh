#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --icount -- tests/siwdgbench.sh
#
# For `scripts/datagram bench-module`: measures module siw_dg beside a connection of siw, both between namespaces a and b, and
# beside rxe's UD queue pairs, and prints a line of JSON for each result. Read libdgm/NOTICE first.
set --
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/dg.sh
source "$TESTS/dg.sh"

readonly PROVIDER=${TESTS%/*}/build/siwdg
readonly DGQP=$PRODUCTS/lib/dgqp
# Of each transport: namespace and device of the client, then of the server, and the server's address. On Linux 6.1 rxe is in
# the first namespace alone, so it has a veth pair whose ends are both there
readonly -A ENDS=([dg]='a d0 b d1 10.77.0.2' [siw]='a siw0 b siw1 10.77.0.2'
	[rxe]='first rxe0 first rxe1 10.79.0.2')

# perftest TRANSPORT PROGRAM OCTETS OPTION…: perftest's median latency in us, or MiB in a second
perftest() {
	local transport=$1 program=$2 octets=$3 client device server remote address
	local -a options=(-F -e -s "$octets" "${@:4}")
	read -r client device server remote address <<<"${ENDS[$transport]}"
	if [[ $transport == siw* ]]; then
		options+=(-R)
	else
		options+=(-c UD)
	fi
	start server "$server" 100000 "$program" -d "$remote" "${options[@]}" ${GID[$remote]:+-x "${GID[$remote]}"}
	if [[ $transport == siw* ]]; then
		wait_listener "$address" 18515
	else
		wait_for 1000 "$program" socket_listens 18515 tcp
	fi
	run_well client "$client" 100000 "$program" -d "$device" "${options[@]}" ${GID[$device]:+-x "${GID[$device]}"} "$address"
	ended_well server 1000
	awk -v transport="$transport" -v octets="$octets" -v latency="$([[ $program == *_lat ]] && echo 1)" \
		'/^ *[0-9]+ +[0-9]+ +[0-9.]+/ {
			if (latency) printf "{\"what\": \"latency\", \"transport\": \"%s\", \"octets\": %d, \"value\": %s}\n", transport, octets, $5
			else printf "{\"what\": \"throughput\", \"transport\": \"%s\", \"octets\": %d, \"value\": %s}\n", transport, octets, $4 }' \
		"$WORK/client.log"
}

# record OCTETS ROUNDS WRITES: rounds of Write-Records from a to b and one back. Of one write: half of the median round in us, else
# MiB in a second
record() {
	local -a own=(--provider "$PROVIDER/libsiwdg.so.1" --zone 77 --key 78 --zone-size 2000000 --size "$1" --count "$2" --every "$3"
		--records 4096 --depth 16 --data x --timeout 1000)
	start server b 100000 "$DGQP" pong --device d1 "${own[@]}" --port 7706 "$(address a)" 7705
	wait_line server '^ready' 1000
	run_well client a 100000 "$DGQP" ping --device d0 "${own[@]}" --port 7705 "$(address b)" 7706
	stop server
	grep '^{' "$WORK/client.log" | jq -c '{what: "throughput", transport: "record", octets, value: (.octets * .every * 1e9 / .ns / 1048576)},
		{what: "latency", transport: "record", octets, value: (.ns / 2000)} | select((.what == "latency") == ('"$3"' == 1))'
}

measure() {
	local octets transport
	for octets in 64 1024; do
		for transport in dg rxe siw; do
			perftest $transport ib_send_lat $octets -n 50
			# Fewer than the server's receives: none is lost
			perftest $transport ib_send_bw $octets -n 400
		done
	done
	for octets in 16384 65536; do
		perftest siw ib_send_lat $octets -n 50
	done
	for octets in 16384 65536; do
		perftest siw ib_send_bw $octets -n 100
	done
	# Over iWARP the client of perftest 4.5 posts one Send less than the server has receives (-n), until the server has written it
	# credits: the first after a third of them. With events it looks for credits only after a completion, and by default (CQ
	# moderation 100) only message 100 has one. So a client that posts 99 before the server has received 33 waits for ever: with
	# 1 MiB each time, with 64 KiB mostly, and there with unmodified siw as well. -Q 10: every tenth message has a completion
	perftest siw ib_send_bw 1048576 -n 100 -Q 10
	for octets in 64 1024 16384 65536; do
		record $octets 50 1
	done
	for octets in 64 1024 16384 65536 1048576; do
		record $octets 5 100
	done
}

# The IPv4-mapped one
gid_index() { # DEVICE
	local file
	file=$(grep -l 0000:ffff: "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null | head -n 1)
	echo "${file##*/}"
}

add_rxe() {
	local i
	ip netns attach first $$
	ip link add rx0 type veth peer name rx1
	for i in 0 1; do
		# both addresses are this host's own: what comes has one as its source
		sysctl -qw net.ipv4.conf.rx$i.accept_local=1 net.ipv4.conf.rx$i.rp_filter=0
		ip address add 10.79.0.$((i + 1))/24 dev rx$i
		ip link set rx$i up
		rdma link add rxe$i type rxe netdev rx$i
	done
	ip neigh replace 10.79.0.2 lladdr "$(cat /sys/class/net/rx1/address)" dev rx0 nud permanent
	ip neigh replace 10.79.0.1 lladdr "$(cat /sys/class/net/rx0/address)" dev rx1 nud permanent
	for i in 0 1; do
		wait_for 1000 "the address of rxe$i" has_gid rxe$i
		GID[rxe$i]=$(gid_index rxe$i)
	done
}

has_gid() { # DEVICE
	[[ $(gid_index "$1") ]]
}

declare -A GID=()
echo 'driver rxe' >/etc/libibverbs.d/rxe.driver
load_siw_dg "$PROVIDER"
modprobe rdma_rxe
add_siw_dg_links
# siw and siw_dg always have a CRC
"${TESTS%/*}/build/rdma" mpa set default crc required
add_rxe
check 'siw_dg, rxe and siw are measured' measure
rmmod siw_dg
rdma link del rxe0
rdma link del rxe1
rmmod rdma_rxe
ip netns del first
finish
