#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --mem 6144 --packages openmpi-bin,python3-mpi4py,libfabric-bin -- tests/mesh.sh [REGEX]
#
# Sixteen namespaces at one bridge, each with a link of siw and a rank of Open MPI. Each rank talks to each other one,
# so that there is a connection between every two. The same over plain TCP beside it, for the time of MPI_Init.
#
# Runs as mesh: --mem 6144 --packages openmpi-bin,python3-mpi4py,libfabric-bin; 900 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpi.sh
source "$TESTS/mpi.sh"
# shellcheck source=tests/nodes.sh
source "$TESTS/nodes.sh"

readonly RANKS=16

# Connections that all nodes have seen established, each of which has two ends
connections() {
	local i
	for ((i = 0; i < RANKS; i++)); do
		rdma statistic show link "mesh$i/1" -j
	done | jq -s 'map(.[0] | .mpa_established_initiator // 0) | add'
}

# start_ranks OVER MODE: MODE is of mpi.py
start_ranks() {
	local hosts
	local -a over=("${MPI_OVER_SIW[@]}")
	[[ $1 == siw ]] || over=("${MPI_OVER_TCP[@]}" --mca btl_tcp_if_include 10.78.0.0/24)
	hosts=$(printf '10.78.0.%d:1,' $(seq $RANKS))
	# ranks that look for messages all the time would keep the processors from softirqs (tests/soak.sh)
	start mpi n0 400 nice -n 19 "${MPIRUN[@]}" -np $RANKS --host "${hosts%,}" --mca oob_tcp_if_include 10.78.0.0/24 "${over[@]}" \
		python3 "$TESTS/mpi.py" "$2"
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

# A rank is killed while all exchange data: mpirun ends the others, and nothing is left
one_is_killed() {
	start_ranks siw forever
	wait_line mpi '^running' 300
	pkill -KILL -f 'mpi.py forever' -n
	ended mpi 120
	[[ $STATUS != 0 && $STATUS != 124 ]] || fail "mpirun ended with status $STATUS"
	wait_for 60 'the queue pairs to go' has_no_qps
}

make_nodes $RANKS
for ((i = 0; i < RANKS; i++)); do
	add_device "n$i" "mesh$i"
done
# shellcheck disable=SC2016 # for the agent
namespace_agent 'echo n$((${1##*.} - 1))'
check "Open MPI over siw: $RANKS ranks, each connected with each other one, exchange data" all_with_all siw
check "Open MPI over TCP: $RANKS ranks, each connected with each other one, exchange data" all_with_all TCP
check 'Open MPI over siw: mpirun ends the other ranks when a rank is killed' one_is_killed
finish
