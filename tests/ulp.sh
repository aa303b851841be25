#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --mem 3072 --packages LIST -- tests/ulp.sh [REGEX]
#
# Debian's own programs over siw between two namespaces: rsockets, librdmacm's and perftest's relatives, fio,
# libfabric, Open MPI. LIST: fio,qperf,libfabric-bin,openmpi-bin,python3-mpi4py,python3-pyverbs
#
# Not here, because the fault is the program's own, with unmodified modules, too: `rstream -T a` with 65536 octets ends
# with status 16; fio's verb=send has a sender that is ahead of its receiver, which ends a connection of iWARP;
# iperf3 through librspreload stops after 128 KiB; qperf's server for each test ends with SIGSEGV, since cm_close()
# (rdma.c:1940) destroys the QP of the id that listens, which has none; its rc_rdma_write_* send immediate data, which
# iWARP has not.
#
# Runs as ulp: --mem 3072 --packages fio,qperf,libfabric-bin,openmpi-bin,python3-mpi4py,python3-pyverbs; 560 s
# Sample ulp: rcopy|fio: Writes|libfabric, endpoint msg, 64
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpi.sh
source "$TESTS/mpi.sh"

nothing_left() {
	wait_for 30 'the queue pairs to go' has_no_qps
}

# ---- rsockets

copy_file() {
	head -c 20000000 /dev/urandom >"$WORK/sent"
	start server b 120 rcopy -p 7801
	wait_for 30 'a listener' has_wildcard 7801
	run_well client a 100 rcopy "$WORK/sent" "$(address b):$WORK/received" -p 7801
	stop server
	cmp "$WORK/sent" "$WORK/received"
	nothing_left
}

has_wildcard() { # PORT
	rdma resource show cm_id | grep -qE "state LISTEN .*src-addr (0\.0\.0\.0|\[?::\]?):$1 " && socket_listens "$1"
}

# stream PROGRAM PORT OPTION…
stream() {
	local program=$1 port=$2
	shift 2
	start server b 90 "$program" -b "$(address b)" -p "$port" "$@"
	wait_listener "$(address b)" "$port"
	run_well client a 60 "$program" -s "$(address b)" -p "$port" "$@"
	ended_well server 30
	nothing_left
}

# The client is told of it, and ends by itself
stream_is_cut() {
	start server b 90 rstream -b "$(address b)" -p 7812 -S 4096 -C 1000000
	wait_listener "$(address b)" 7812
	start client a 90 rstream -s "$(address b)" -p 7812 -S 4096 -C 1000000
	wait_for 30 'a connection' has_qps 2
	stop server KILL
	ended client 60
	nothing_left
}

# ---- librdmacm

many_connections() {
	start server b 150 ucmatose -b "$(address b)" -p 7820 -c 40 -C 10
	wait_listener "$(address b)" 7820
	run_well client a 120 ucmatose -s "$(address b)" -p 7820 -c 40 -C 10
	ended_well server 30
	nothing_left
}

# Shared receive queues and XRC by choice; siw has no XRC
xserver() {
	start server b 90 rdma_xserver -p 7830 -c r
	wait_for 30 'a listener' has_wildcard 7830
	run_well client a 60 rdma_xclient -s "$(address b)" -p 7830 -c r
	ended server 30
	nothing_left
}

# ---- qperf

qperf_test() { # TEST
	start server b 90 qperf -lp 7840
	wait_for 30 'qperf' socket_listens 7840 tcp
	run_well client a 60 qperf -lp 7840 "$(address b)" -cm 1 -t 3 "$1"
	has_line client '(latency|bw) +=' || fail 'no result'
	stop server
	nothing_left
}

# ---- fio

fio_server() {
	start server b 120 fio --name=s --thread --ioengine=rdma --port=7850 --bs=64k --size=32m --rw=read "$@"
	wait_for 60 'a listener' has_wildcard 7850
}

fio_client() { # VERB
	start client a 120 fio --name=c --thread --ioengine=rdma --hostname="$(address b)" --port=7850 --verb="$1" \
		--bs=64k --size="${2:-32m}" --rw=write --iodepth=4 --output-format=terse
}

fio_moves() { # VERB
	fio_server
	fio_client "$1"
	ended_well client 100
	ended_well server 60
	nothing_left
}

fio_is_cut() {
	fio_server --size=4g
	fio_client write 4g
	wait_for 60 'a connection' has_qps 2
	stop server KILL
	# it is told, and then waits for a completion that cannot come: it does not look for the end of the connection
	wait_line client 'cq completion status' 60
	stop client KILL
	nothing_left
}

# ---- libfabric

pingpong() { # ENDPOINT PROVIDER SIZE PORT
	local -a words=(fi_pingpong -c -p "$2" -e "$1" -I 100 -S "$3")
	start server b 90 "${words[@]}" -B "$4"
	wait_for 60 'fi_pingpong' socket_listens "$4" tcp
	run_well client a 60 "${words[@]}" -P "$4" "$(address b)"
	ended_well server 30
	note "$(tail -n 1 "$WORK/client.log")"
	nothing_left
}

pingpong_is_cut() {
	start server b 90 fi_pingpong -p verbs -e msg -I 10000000 -S 4096 -B 7868
	wait_for 60 'fi_pingpong' socket_listens 7868 tcp
	start client a 90 fi_pingpong -p verbs -e msg -I 10000000 -S 4096 -P 7868 "$(address b)"
	wait_for 60 'a connection' has_qps 2
	stop server KILL
	ended client 60
	nothing_left
}

# ---- rdma-core's own tests, as Debian's python3-pyverbs has them. They skip those with traffic, since they take siw's
# ---- GID, whose last octets are 0, for none. Some make queue pairs with flags at random, and skip those that siw
# ---- has not.

rdma_cores_tests() {
	local tests=$WORK/pyverbs/tests
	mkdir "${tests%/*}"
	cp -r /usr/share/doc/rdma-core/tests "$tests"
	gunzip "$tests"/*.gz
	rm "$tests"/test_{mlx5,efa,cuda}*
	run tests a 200 /usr/bin/python3 "$tests/run_tests.py" -v --dev siw0
	note "$(grep -E '^(Ran|OK|FAILED)' "$WORK/tests.log" | paste -sd' '), $(grep -c '[.][.][.] ok$' "$WORK/tests.log") ok"
	[[ $STATUS == 0 ]] || fail "$(grep -E '^(FAIL|ERROR): ' "$WORK/tests.log" | paste -sd' ')"
	[[ $(grep -c '[.][.][.] ok$' "$WORK/tests.log") -ge 20 ]] || fail 'nearly all have been skipped'
}

# A kernel ULP has more; a program writes its queue itself, which has room for six
told_six_sges() {
	run_well info a 30 ibv_devinfo -v -d siw0
	has_line info '^[[:space:]]*max_sge:[[:space:]]+6$'
}

# ---- Open MPI

# mpi SECONDS SCRIPT-ARG…: four ranks, two in each namespace
start_mpi() {
	local seconds=$1
	shift
	start mpi a "$seconds" "${MPIRUN[@]}" -np 4 --host 10.77.0.1:2,10.77.0.2:2 \
		--mca oob_tcp_if_include 10.77.0.0/24 "${MPI_OVER_SIW[@]}" python3 "$TESTS/mpi.py" "$@"
}

mpi_works() {
	start_mpi 250 all
	wait_for 200 'queue pairs' has_qps 4
	ended_well mpi 200
	has_line mpi '^done: 4 ranks$' || fail 'not done'
	note "$(grep '^MPI_Init' "$WORK/mpi.log")"
	nothing_left
}

mpi_is_cut() {
	start_mpi 250 forever
	wait_line mpi '^running' 200
	pkill -KILL -f 'mpi.py forever' -n
	ended mpi 90
	[[ $STATUS != 0 ]] || fail 'the other ranks got no error'
	nothing_left
}

# shellcheck disable=SC2016 # for the agent
namespace_agent 'case $1 in 10.77.0.1) echo a ;; 10.77.0.2) echo b ;; esac'

check 'rcopy: a file of 20 MB is received unchanged' copy_file
check 'rstream verifies the data of messages of 2048 octets' stream rstream 7810 -S 2048 -C 200 -T v
check 'rstream runs non-blocking with messages of 65536 octets' stream rstream 7811 -S 65536 -C 50 -T n
check 'riostream verifies its data' stream riostream 7813 -S 16384 -C 50 -T v
check 'rstream: the client ends when the server is killed' stream_is_cut
check 'ucmatose establishes 40 connections' many_connections
check 'rdma_xserver and rdma_xclient exchange data' xserver
for test in rc_lat rc_bi_bw rc_bw rc_rdma_read_bw; do
	check "qperf $test completes" qperf_test "$test"
done
check 'fio: Writes complete' fio_moves write
check 'fio: Reads complete' fio_moves read
check 'fio: the client gets an error completion when the server is killed' fio_is_cut
check 'libfabric, endpoint msg, 64 octets: fi_pingpong completes' pingpong msg verbs 64 7861
check 'libfabric, endpoint msg, 4096 octets: fi_pingpong completes' pingpong msg verbs 4096 7862
check 'libfabric, endpoint rdm over rxm, 4096 octets: fi_pingpong completes' pingpong rdm 'verbs;ofi_rxm' 4096 7863
check 'libfabric: fi_pingpong ends when its server is killed' pingpong_is_cut
check 'ibv_devinfo says that a work request of a program has six SGEs' told_six_sges
check "the pyverbs tests of rdma-core pass on siw" rdma_cores_tests
check 'Open MPI: four ranks complete point to point, all to all and one-sided transfers' mpi_works
check 'Open MPI: mpirun ends the other ranks with an error when a rank is killed' mpi_is_cut
finish
