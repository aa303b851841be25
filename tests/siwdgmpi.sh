#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --mem 3072 --packages qperf,libfabric-bin,openmpi-bin,python3-mpi4py -- tests/siwdgmpi.sh [REGEX]
#
# Module siw_dg: Open MPI over UCX's ud_verbs, between namespaces a (device d0) and b (d1). UD queue pairs carry all that the
# ranks exchange; UCX sends again what is lost. And programs that do not run over it, with their reason. Read libdgm/NOTICE first.
#
# Runs as siwdgmpi: --mem 3072 --packages qperf,libfabric-bin,openmpi-bin,python3-mpi4py; 600 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpi.sh
source "$TESTS/mpi.sh"
# shellcheck source=tests/dg.sh
source "$TESTS/dg.sh"

readonly PROVIDER=${TESTS%/*}/build/siwdg
# Each rank has the device of its namespace: the names of both are seen in both
readonly RANK=/run/rank

start_mpi() { # SECONDS ARG of mpi.py
	start mpi a "$1" "${MPIRUN[@]}" -np 4 --host 10.77.0.1:2,10.77.0.2:2 --mca oob_tcp_if_include 10.77.0.0/24 --mca pml ucx \
		--mca btl '^openib,vader,tcp' --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any \
		-x UCX_TLS=ud_verbs,self -x UCX_IB_GID_INDEX=0 -x UCX_WARN_UNUSED_ENV_VARS=n -x LD_LIBRARY_PATH "$RANK" "$2"
}

mpi_works() {
	local sent=0 device
	for device in d0 d1; do
		sent=$((sent - $(counter $device sent)))
	done
	start_mpi 300 all
	ended_well mpi 300
	has_line mpi '^done: 4 ranks$' || fail 'not done'
	for device in d0 d1; do
		sent=$((sent + $(counter $device sent)))
	done
	note "$(grep '^MPI_Init' "$WORK/mpi.log"); $sent datagrams"
	((sent > 1000)) || fail 'the ranks used another transport'
}

mpi_is_cut() {
	start_mpi 250 forever
	wait_line mpi '^running' 200
	pkill -KILL -f 'mpi.py forever' -n
	ended mpi 90
	[[ $STATUS != 0 && $STATUS != 124 ]] || fail "mpirun ended with status $STATUS"
}

# Its address handles have no GRH, which the device needs for the peer's address
qperf_fails() { # TEST
	start server b 90 qperf -lp 7840
	wait_for 30 'qperf' socket_listens 7840 tcp
	run client a 60 qperf -lp 7840 -li d0:1 -ri d1:1 "$(address b)" -t 3 "$1"
	note "$(head -n 2 "$WORK/client.log" | paste -sd' ')"
	[[ $STATUS != 0 && $STATUS != 124 ]] || fail "qperf ended with status $STATUS"
	# the end that comes first
	has_line client 'failed to create address handle' || has_line server 'failed to create address handle' || fail 'it failed for another reason'
	stop server
}

# It takes devices of the transport types InfiniBand and iWARP, and this one has none of both
libfabric_finds_nothing() {
	run client a 60 fi_info -p verbs -t FI_EP_DGRAM
	note "$(head -n 2 "$WORK/client.log" | paste -sd' ')"
	[[ $STATUS != 0 && $STATUS != 124 ]] || fail "fi_info ended with status $STATUS"
	has_line client 'No data available|fi_getinfo: -61$' || fail 'it failed for another reason'
}

load_siw_dg "$PROVIDER"
add_siw_dg_links
# shellcheck disable=SC2016 # for the agent
namespace_agent 'case $1 in *.1) echo a ;; *) echo b ;; esac'
cat >"$RANK" <<-END
	#!/bin/bash
	device=d0
	[[ \$(ip netns identify \$\$) == a ]] || device=d1
	export UCX_NET_DEVICES=\$device:1
	exec python3 "$TESTS/mpi.py" "\$@"
END
chmod +x "$RANK"
check 'siw_dg DGM-21: Open MPI over UCX ud_verbs: four ranks complete point to point, all to all and one-sided transfers' mpi_works
check 'siw_dg DGM-21: Open MPI over UCX ud_verbs: mpirun ends the other ranks with an error when a rank is killed' mpi_is_cut
check 'siw_dg: qperf ud_lat ends with an error, as its address handles have no GRH' qperf_fails ud_lat
check 'siw_dg: qperf ud_bw ends with an error, as its address handles have no GRH' qperf_fails ud_bw
check 'siw_dg: fi_info of libfabric finds no endpoint of type dgram' libfabric_finds_nothing
rmmod siw_dg
finish
