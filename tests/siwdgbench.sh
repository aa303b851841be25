#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --icount -- tests/siwdgbench.sh speed
#        scripts/vm run -- tests/siwdgbench.sh loss
#        scripts/vm run --mem 3072 --no-poison -- tests/siwdgbench.sh memory
#        scripts/vm run --mem 6144 --packages ucx-utils,openmpi-bin,python3-mpi4py,libfabric-bin -- tests/siwdgbench.sh mpi
#
# For `scripts/datagram bench-module`: measures module siw_dg beside a connection of siw, both between namespaces a and b, and
# beside rxe's UD queue pairs, and prints a line of JSON for each result. Read libdgm/NOTICE first.
mode=$1
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

# record TRANSPORT OCTETS ROUNDS WRITES [DEPTH [OPTION of dgqp]…]: rounds of Write-Records from a to b and one back. Of one write: half
# of the median round in us, else MiB in a second
record() {
	local transport=$1
	shift
	local -a own=(--provider "$PROVIDER/libsiwdg.so.1" --zone 77 --key 78 --zone-size 2000000 --size "$1" --count "$2" --every "$3"
		--records 4096 --depth "${4:-16}" --data x --timeout 1000 "${@:5}")
	start server b 100000 "$DGQP" pong --device d1 "${own[@]}" --port 7706 "$(address a)" 7705
	wait_line server '^ready' 1000
	run_well client a 100000 "$DGQP" ping --device d0 "${own[@]}" --port 7705 "$(address b)" 7706
	stop server
	grep '^{' "$WORK/client.log" | jq -c --arg transport "$transport" '{what: "throughput", $transport, octets,
		value: (.octets * .every * 1e9 / .ns / 1048576)}, {what: "latency", $transport, octets, value: (.ns / 2000)} |
		select((.what == "latency") == ('"$3"' == 1))'
}

speed() {
	local octets transport
	for octets in 64 128 1024; do
		for transport in dg rxe siw; do
			perftest $transport ib_send_lat $octets -n 50
			((octets != 128)) || continue
			# Fewer than the server's receives: none is lost
			perftest $transport ib_send_bw $octets -n 400
		done
	done
	for octets in 2048 16384 65536; do
		perftest siw ib_send_lat $octets -n 50
	done
	for octets in 16384 65536; do
		perftest siw ib_send_bw $octets -n 100
	done
	# Over iWARP the client of perftest 4.5 posts one Send less than the server has receives (-n), until the server has written it
	# credits: the first after a third of them. With events it looks for credits only after a completion, and by default (CQ
	# moderation 100) only message 100 has one. So a client that posts 99 before the server has received 33 waits for ever: with
	# 1 MiB each time, with 64 KiB mostly, and there with unmodified siw as well. -Q 10: every tenth message has a completion
	for octets in 262144 524288 1048576; do
		perftest siw ib_send_bw $octets -n 100 -Q 10
	done
	for octets in 64 128 1024 2048 16384 65536; do
		record record $octets 50 1
	done
	for octets in 64 1024 16384 65536 262144 524288 1048576; do
		record record $octets 5 100
	done
	# Sends of what a packet holds. The receives of 100 messages are posted before
	for octets in 2048 16384 65536; do
		record split $octets 50 1 128 --split 1450
		record split $octets 5 100 8192 --split 1450
	done
}

# A second module, whose bundles have one datagram
without_bundles() {
	local octets
	rmmod siw_dg
	insmod "$PRODUCTS/$VM_KERNEL-single/siw_dg.ko"
	add_siw_dg_links
	for octets in 2048 16384 65536; do
		record single $octets 50 1
	done
	for octets in 16384 65536 262144 524288 1048576; do
		record single $octets 5 100
	done
}

# The part of 32 MB that is valid at the target. The interface of a takes single datagrams, some of which b's interface loses
loss() {
	local size=32000000 octets loss mode
	within a ip link set eth0 gso_max_segs 1
	for loss in 0 0.1 0.5 1 5; do
		for octets in 1400 65536 1048576; do
			for mode in whole partial; do
				measure_loss $loss $octets $((size / octets)) $mode
			done
		done
	done
}

measure_loss() { # PERCENT OCTETS MESSAGES whole | partial
	local -a own=(--provider "$PROVIDER/libsiwdg.so.1" --zone 77 --key 78 --timeout 300) partial=()
	[[ $4 == whole ]] || partial=(--partial)
	start server b 300 "$DGQP" zone --device d1 "${own[@]}" "${partial[@]}" --port 7706 --zone-size "$2" --any --records 60000 \
		--until-send --count 1000000000
	wait_line server '^ready' 30
	within b tc qdisc add dev eth0 clsact
	[[ $1 == 0 ]] ||
		within b tc filter add dev eth0 ingress matchall action pass random netrand drop "$(jq -n "100 / $1")"
	run_well client a 300 "$DGQP" write --device d0 "${own[@]}" --port 7705 "$(address b)" 7706 --size "$2" --count "$3" --data x
	within b tc qdisc del dev eth0 clsact
	run_well end a 30 "$DGQP" send --device d0 "$(address b)" 7706 --data end
	ended_well server 60
	awk -v sent=$(($2 * $3)) -v what="\"loss\": $1, \"transport\": \"$4\", \"octets\": $2" \
		'/^record/ { valid += $2 } END { printf "{\"what\": \"loss\", %s, \"valid\": %s}\n", what, valid / sent }' "$WORK/server.log"
}

# Address handles of one UD queue pair, and connections of siw, with their queue pairs: one end
memory() {
	local peers
	ulimit -n 65536
	for peers in 1 1000 10000; do
		run_well handles a 100 "$DGQP" handles --device d0 --count $peers
		jq -c '{what: "memory", transport: "dg", peers: .handles, kib}' "$WORK/handles.log"
		"${TESTS%/*}/build/tools/bench/rdmabench" connect --pattern many-to-one --per-pair $peers --at-once 500 --timeout 900 \
			b=10.77.0.2 a=10.77.0.1 |
			jq -c --argjson peers $peers '{what: "memory", transport: "siw", $peers, kib: (.bytes_per_connection |
				map_values(select(. > 0)) | to_entries | map(select(.key | startswith("objects ") | not) | .value) | add / 2048 * $peers)}'
	done
}

# ---- MPI: 16 namespaces with a rank each, at one bridge

used_memory() { # KiB, but for the cache of files
	awk '{ kib[$1] = $2 } END { print kib["MemTotal:"] - kib["MemFree:"] - kib["Buffers:"] - kib["Cached:"] + kib["Shmem:"] }' /proc/meminfo
}

all_to_all() { # TRANSPORT OPTION of mpirun…
	local hosts before
	hosts=$(printf '10.78.0.%d:1,' {1..16})
	before=$(used_memory)
	start mpi n0 1000 nice -n 19 "${MPIRUN[@]}" -np 16 --host "${hosts%,}" --mca oob_tcp_if_include 10.78.0.0/24 "${@:2}" alltoall
	wait_line mpi '^running' 900
	printf '{"what": "mpi", "transport": "%s", "kib": %d, %s}\n' "$1" $(($(used_memory) - before)) \
		"$(sed -nE 's/^all to all of ([0-9]+) octets: ([0-9.]+) ms$/"\1": \2/p' "$WORK/mpi.log" | paste -sd,)"
	stop mpi
	wait_for 100 'the end of the ranks' ranks_are_gone
}

ranks_are_gone() {
	! pgrep -f mpi.py >/dev/null
}

mpi() {
	local i
	# shellcheck source=tests/mpi.sh
	source "$TESTS/mpi.sh"
	# shellcheck source=tests/nodes.sh
	source "$TESTS/nodes.sh"
	# shellcheck disable=SC2016 # for the agent
	namespace_agent 'echo n$((${1##*.} - 1))'
	make_nodes 16
	for i in {0..15}; do
		add_device "n$i" "mesh$i"
		within "n$i" rdma link add "dg$i" type siw_dg netdev eth0
	done
	cat >/run/rank <<-END
		#!/bin/bash
		netns=\$(ip netns identify \$\$)
		export UCX_NET_DEVICES=dg\${netns#n}:1
		exec python3 "$TESTS/mpi.py" "\$@"
	END
	chmod +x /run/rank
	all_to_all dg --mca pml ucx --mca btl '^openib,vader,tcp' --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any \
		-x UCX_TLS=ud_verbs,self -x UCX_IB_GID_INDEX=0 -x UCX_WARN_UNUSED_ENV_VARS=n -x LD_LIBRARY_PATH /run/rank
	all_to_all siw "${MPI_OVER_SIW[@]}" /run/rank
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
load_siw_dg "$PROVIDER"
if [[ $mode != speed ]]; then
	add_siw_dg_links
	check "$mode" "$mode"
	rmmod siw_dg
	finish
	exit
fi
echo 'driver rxe' >/etc/libibverbs.d/rxe.driver
modprobe rdma_rxe
add_siw_dg_links
# siw and siw_dg always have a CRC
"${TESTS%/*}/build/rdma" mpa set default crc required
add_rxe
check 'siw_dg, rxe and siw are measured' speed
check 'siw_dg without UDP_SEGMENT is measured' without_bundles
rmmod siw_dg
rdma link del rxe0
rdma link del rxe1
rmmod rdma_rxe
ip netns del first
finish
