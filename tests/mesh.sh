#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --mem 6144 --packages openmpi-bin,python3-mpi4py,libfabric-bin -- tests/mesh.sh [REGEX]
#
# Sixteen namespaces at one bridge, each with a link of siw and a rank of Open MPI. Each rank talks to each other one,
# so that there is a connection between every two. The same over plain TCP beside it, for the time of MPI_Init.
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly RANKS=16

make_nodes() {
	local i
	{
		echo 'link add mesh0 type bridge'
		echo 'link set mesh0 up'
		for ((i = 0; i < RANKS; i++)); do
			echo "netns add n$i"
			echo "link add eth0 netns n$i type veth peer name mesh-$i"
			echo "link set mesh-$i master mesh0 up"
		done
	} | ip -batch -
	for ((i = 0; i < RANKS; i++)); do
		ip -n "n$i" -batch - <<-END
			link set lo up
			addr add 10.78.0.$((i + 1))/24 dev eth0
			link set eth0 up
		END
		add_device "n$i" "mesh$i"
	done
	for ((i = 1; i < RANKS; i++)); do
		wait_for 30 "node $i" reaches "10.78.0.$((i + 1))"
	done
}

reaches() { # ADDRESS
	within n0 ping -q -c 1 -W 1 "$1" >/dev/null
}

# Connections that all nodes have seen established, each of which has two ends
connections() {
	local i
	for ((i = 0; i < RANKS; i++)); do
		rdma statistic show link "mesh$i/1" -j
	done | jq -s 'map(.[0] | .mpa_established_initiator // 0) | add'
}

# start_ranks OVER MODE: MODE is of mpi.py
start_ranks() {
	local hosts i
	local -a over=(--mca pml ob1 --mca btl 'tcp,self' --mca btl_tcp_if_include 10.78.0.0/24)
	[[ $1 == TCP ]] || over=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm'
		-x FI_PROVIDER='verbs;ofi_rxm' -x FI_VERBS_IFACE=eth0 -x LD_LIBRARY_PATH)
	# instead of ssh
	cat >"$WORK/agent" <<-'END'
		#!/bin/bash
		netns=n$((${1##*.} - 1))
		shift
		exec ip netns exec "$netns" bash -c "$*"
	END
	chmod +x "$WORK/agent"
	hosts=$(for ((i = 1; i <= RANKS; i++)); do echo "10.78.0.$i:1"; done | paste -sd,)
	start mpi n0 400 mpirun.openmpi --allow-run-as-root --oversubscribe -np $RANKS --host "$hosts" --map-by node \
		--mca plm_rsh_agent "$WORK/agent" --mca plm_rsh_no_tree_spawn 1 --mca orte_keep_fqdn_hostnames 1 \
		--mca oob_tcp_if_include 10.78.0.0/24 --mca osc ^ucx,rdma "${over[@]}" python3 "$TESTS/mpi.py" "$2"
}

all_with_all() { # OVER
	local before made
	before=$(connections)
	start_ranks "$1" mesh
	ended_well mpi 400
	has_line mpi "^done: $RANKS ranks\$" || fail 'not done'
	note "$1: $(grep -E '^(MPI_Init|Each)' "$WORK/mpi.log" | paste -sd,)"
	wait_for 60 'the queue pairs to go' has_no_qps
	made=$(($(connections) - before))
	note "$1: $made connections of siw"
	if [[ $1 == TCP ]]; then
		[[ $made == 0 ]] || fail 'siw was used'
	else
		((made >= RANKS * (RANKS - 1) / 2)) || fail 'not all ranks were connected'
	fi
}

# A rank is killed while all exchange data: the others end, too
one_is_killed() {
	start_ranks siw mesh-forever
	wait_line mpi '^running' 300
	pkill -KILL -f 'mpi.py mesh-forever' -n
	ended mpi 120
	[[ $STATUS != 0 ]] || fail 'the others have not been told'
	wait_for 60 'the queue pairs to go' has_no_qps
}

link_psm
make_nodes
check "siw: $RANKS ranks, each connected with each" all_with_all siw
check "TCP: $RANKS ranks, each connected with each" all_with_all TCP
check 'a rank is killed' one_is_killed
finish
