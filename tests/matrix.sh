#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --mem 3072 --packages LIST [--stock[=a|b]] [--llp sctp] -- tests/matrix.sh [REGEX [NUMBER]]
#
# Programs from a to b, each with several settings of ours. A case is a field of the table that scripts/matrix writes:
# "SETTINGS: PROGRAM". Programs stand in the order in which they can run on unmodified modules: after libfabric and NFS
# others cannot listen there. The first field that says no ends the run, as it may leave machines of no use; with a NUMBER
# the run begins with that field.
# LIST: fio,qperf,libfabric-bin,openmpi-bin,python3-mpi4py,nvme-cli,nfs-common,nfs-kernel-server
first=${2:-1}
set -- "${1:-}"
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"
# shellcheck source=tests/mpi.sh
source "${0%/*}/mpi.sh"
# shellcheck source=tests/ask.sh
source "${0%/*}/ask.sh"

readonly SEEN=/run/monitor STOCK_OF_B=/run/vm/ctl/b.stock
echo "$VM_STOCK" >"$CTL/$ROLE.stock"

# ---- settings

# set_side SETTINGS: of this machine, if it is ours
set_side() {
	[[ $VM_STOCK == 0 ]] || return 0
	mpa reset default
	case $1/$ROLE in
	client-server/*) mpa set default model client-server ;;
	peer-to-peer/* | SCTP/*) ;;
	# the peer knows no other revision; we fall back to it. Against unmodified modules we are that peer.
	'Rev 1/a') mpa set default revision "$([[ $(<"$STOCK_OF_B") == 0 ]] && echo fallback || echo 1)" ;;
	'Rev 1/b') mpa set default revision 1 ;;
	CRC/*) mpa set default crc required ;;
	esac
	: >"$SEEN"
}

# The words of the monitor for a connection with these settings
setup_of() { # SETTINGS
	case $1 in
	client-server) echo ' model client-server ' ;;
	peer-to-peer) echo ' model peer-to-peer rtr ' ;;
	'Rev 1') echo ' peer-revision 1 ' ;;
	CRC) echo ' crc on' ;;
	SCTP) echo ' llp sctp ' ;;
	esac
}

# On our machine, the monitor shows each connection with the expected settings. Connections from an unmodified b have its own.
is_as_set() { # SETTINGS
	[[ $VM_STOCK == 0 ]] || return 0
	local role='role' other
	[[ $(<"$STOCK_OF_B") == 0 ]] || role='role initiator'
	grep -q '^established' "$SEEN" || fail 'no connection of siw'
	other=$(grep "^established .* $role" "$SEEN" | grep -m 1 -v -- "$(setup_of "$1")" || true)
	[[ -z $other ]] || fail "a connection with other settings: $other"
}

watch() {
	[[ $VM_STOCK == 0 ]] || return 0
	: >"$SEEN"
	"$RDMA" mpa monitor >>"$SEEN" 2>&1 </dev/null &
	wait_for 20 'the monitor' is_watched
}

# The answer to a change of a setting
is_watched() {
	mpa set default reply-timeout 9000
	mpa reset default
	grep -q . "$SEEN"
}

# ---- programs

# words PROGRAM PORT: sets hear and say, the commands of the two ends
words() {
	local to=$SERVER
	case $1 in
	rping)
		hear=(rping -s -a "$to" -p "$2" -C 5 -V)
		say=(rping -c -a "$to" -p "$2" -C 5 -V)
		;;
	ucmatose)
		hear=(ucmatose -b "$to" -p "$2" -c 4 -C 4)
		say=(ucmatose -s "$to" -p "$2" -c 4 -C 4)
		;;
	cmtime)
		hear=(cmtime -b "$to" -p "$2" -c 10)
		say=(cmtime -b "$(address a)" -s "$to" -p "$2" -c 10)
		;;
	rstream | riostream)
		hear=("$1" -b "$to" -p "$2" -S 4096 -C 50 -T v)
		say=("$1" -s "$to" -p "$2" -S 4096 -C 50 -T v)
		;;
	rcopy)
		hear=(rcopy -p "$2")
		say=(rcopy "$WORK/sent" "$to:/run/received" -p "$2")
		;;
	ib_*)
		hear=("$1" -R -F -p "$2" -n 50 -s 4096)
		say=("${hear[@]}" "$to")
		;;
	rdma_xserver)
		hear=(rdma_xserver -p "$2" -c r)
		say=(rdma_xclient -s "$to" -p "$2" -c r)
		;;
	'qperf '*)
		hear=(qperf -lp "$2")
		say=(qperf -lp "$2" "$to" -cm 1 -t 2 "${1#* }")
		;;
	'fio '*)
		hear=(fio --name=s --thread --ioengine=rdma --port="$2" --bs=64k --size=2m --rw=read)
		say=(fio --name=c --thread --ioengine=rdma --hostname="$to" --port="$2" --verb="${1#* }" --bs=64k --size=2m
			--rw=write --iodepth=4 --output-format=terse)
		;;
	'fi_pingpong msg')
		hear=(fi_pingpong -c -p verbs -e msg -I 50 -S 4096)
		say=("${hear[@]}" -P "$2" "$to")
		hear+=(-B "$2")
		;;
	'fi_pingpong rxm')
		hear=(fi_pingpong -c -p 'verbs;ofi_rxm' -e rdm -I 50 -S 4096)
		say=("${hear[@]}" -P "$2" "$to")
		hear+=(-B "$2")
		;;
	esac
}

# A program may talk over TCP first
has_port() { # PORT
	socket_listens "$1" tcp || { [[ $LLP == sctp ]] && socket_listens "$1"; }
}

# serve SETTINGS PROGRAM PORT: on b, and returns when a can connect
serve() {
	local -a hear say
	set_side "$1"
	case $2 in
	NFSv4.2) nfs_server ;;
	NVMe-oF) nvme_target ;;
	'Open MPI') install -m 755 /dev/null "$AGENT" ;;
	*)
		words "$2" "$3"
		timeout -k 3 60 "${hear[@]}" >/run/server.log 2>&1 </dev/null &
		echo $! >/run/server.pid
		wait_for 20 "$2 to listen" has_port "$3"
		;;
	esac
}

# end_serving PROGRAM SETTINGS: on b, which must have been seen
end_serving() {
	case $1 in
	NFSv4.2) nfs_server_end ;;
	NVMe-oF) nvme_target_end ;;
	*) kill "$(</run/server.pid)" 2>/dev/null || true ;;
	esac
	wait_for 60 'the queue pairs to go' has_no_qps
	is_as_set "$2"
}

# Prints what TCP has for this machine and nobody has read
unread_octets() {
	ss -Htn | awk '$2 > 0 { print $2 " octets from " $5 }' | paste -sd,
}

# Prints the end of what the server has said
server_says() {
	tail -n 4 /run/server.log | tr -s ' \n' ' ' | cut -c1-200
}

# Prints the first complaint of the client
client_says() {
	sed -nE '/signal|unexpected|error|fail|refused|bad wc/I { p; q }' "$WORK/client.log" | tr -s ' ' | cut -c1-100
}

# run_client SECONDS COMMAND…: one that works is over in 25 s. Of another, the reason has what b does not read and both say.
run_client() {
	local end=$((SECONDS + 25)) unread=''
	start client a "$@"
	until is_gone client || ((SECONDS > end)); do pause 0.3; done
	is_gone client || unread=$(ask 20 unread_octets)
	ended client "$1"
	[[ $STATUS -eq 0 ]] || fail "client ended with status $STATUS${unread:+; unread by b: $unread}; a: $(client_says); b: $(ask 20 server_says)"
}

# in_background COMMAND: on b, for mpirun
in_background() {
	timeout -k 5 100 bash -c "$1" >/run/server.log 2>&1 </dev/null &
	echo $! >/run/server.pid
}

# Two ranks, one on each machine: all that tests/mpi.py has
say_mpi() {
	cat >"$AGENT" <<-END
		#!/bin/bash
		CTL=$CTL
		$(declare -f post)
		shift
		post in_background "\$*"
	END
	chmod +x "$AGENT"
	run_client 100 "${MPIRUN[@]}" -np 2 --host "$(address a):1,$SERVER:1" \
		--mca oob_tcp_if_include 10.77.0.0/24 "${MPI_OVER_SIW[@]}" python3 "$TESTS/mpi.py" all
	has_line client '^done: 2 ranks$' || fail 'not done'
}

say_nfs() {
	local sum
	nfs_mount 4
	head -c "${MIB}M" /dev/urandom >"$WORK/data"
	sum=$(file_sum "$WORK/data")
	cp "$WORK/data" "$MOUNT/data"
	[[ $(ask 60 file_sum "$EXPORT/data") == "$sum" ]] || fail 'the server has other data'
	nfs_umount
}

say_nvme() {
	nvme_connect -i 2
	data_is_kept "$(nvme_disk)"
	nvme_disconnect
}

say_it() { # PROGRAM PORT
	local -a hear say
	words "$1" "$2"
	[[ $1 != rcopy ]] || head -c 4000000 /dev/urandom >"$WORK/sent"
	run_client 40 "${say[@]}"
	case $1 in
	qperf*) has_line client '(latency|bw) +=' || fail 'no result' ;;
	cmtime)
		! has_line client 'failure|error' || fail 'cmtime reports a failure'
		has_line client '^connect ' || fail 'cmtime has connected nothing'
		;;
	rcopy) [[ $(ask 20 file_sum /run/received) == "$(file_sum "$WORK/sent")" ]] || fail 'the server has other data' ;;
	esac
}

field() { # SETTINGS PROGRAM PORT
	set_side "$1"
	ask 60 serve "$@"
	case $2 in
	'Open MPI') say_mpi ;;
	NFSv4.2) say_nfs ;;
	NVMe-oF) say_nvme ;;
	*) say_it "$2" "$3" ;;
	esac
	wait_for 60 'the queue pairs to go' has_no_qps
	ask 90 end_serving "$2" "$1"
	is_as_set "$1"
}

watch
a_asks_b
wait_for 60 'the other machine' test -e "$STOCK_OF_B"
columns=(client-server peer-to-peer 'Rev 1' CRC)
if [[ $LLP == sctp ]]; then
	columns=(SCTP)
elif [[ $VM_STOCK == 1 ]]; then
	# an unmodified initiator asks for client-server of Rev 2, and for nothing else
	columns=(client-server CRC)
	[[ $(<"$STOCK_OF_B") == 0 ]] || columns=(client-server)
fi
number=0
for program in rping ucmatose cmtime rstream riostream rcopy ib_send_bw ib_write_bw ib_read_lat rdma_xserver 'qperf rc_lat' \
	'qperf rc_bw' 'fio write' 'fio read' NVMe-oF 'fi_pingpong msg' 'fi_pingpong rxm' 'Open MPI' NFSv4.2; do
	for column in "${columns[@]}"; do
		((++number >= first)) || continue
		check "$column: $program" field "$column" "$program" $((7600 + number))
		[[ $failed -eq 0 ]] || break 2
	done
done
finish
