# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
#
# Variables that are neither set nor used here are of bench.sh.
# For bench.sh, which sources this: NVMe-oF and NFS over siw and over TCP, by fio. Both ends are in the machine's first
# network namespace, as nvme-rdma and nvmet-rdma use no other, joined by a pair of interfaces.

# shellcheck source=tests/exports.sh
source "${BASH_SOURCE[0]%/*}/exports.sh"

readonly HOST=10.79.0.1 TARGET=10.79.0.2

# Packets between two addresses of one namespace take the loopback interface, unless the table "local" comes last
# for packets that are sent
make_pair() {
	local dev
	ip link add host0 type veth peer name target0
	ip addr add $HOST/32 dev host0
	ip addr add $TARGET/32 dev target0
	sysctl -qw net.ipv4.conf.all.rp_filter=0
	# the clock of --icount leaps while a program waits for a file of the host
	sysctl -qw kernel.hung_task_timeout_secs=0
	for dev in host0 target0; do
		sysctl -qw net.ipv4.conf.$dev.{accept_local=1,rp_filter=0}
		ip link set $dev up
		ip rule add pref 100 iif $dev lookup local
	done
	ip route add $TARGET dev host0 src $HOST
	ip route add $HOST dev target0 src $TARGET
	ip neigh add $TARGET lladdr "$(cat /sys/class/net/target0/address)" nud permanent dev host0
	ip neigh add $HOST lladdr "$(cat /sys/class/net/host0/address)" nud permanent dev target0
	ip rule add pref 200 lookup main
	ip rule add pref 300 lookup local
	ip rule del pref 0
	ping -q -c 1 -W 5 -I $HOST $TARGET >/dev/null
}

link_pair() {
	local device
	for device in /sys/class/infiniband/*; do
		rdma link del "${device##*/}"
	done
	rdma link add siw0 type siw netdev host0
	rdma link add siw1 type siw netdev target0
}

# run_fio PROGRAM FILE RW BLOCK DEPTH OCTETS
run_fio() {
	local direction=read
	[[ $3 != *write ]] || direction="write"
	extra="{\"size\": $4, \"list\": $5}"
	timeout "$patience" fio --name=job --filename="$2" --direct=1 --ioengine=libaio --rw="$3" --bs="$4" --iodepth="$5" --size=32m \
		--io_size="$6" --randseed=1 --output-format=json >"$work/fio" 2>&1 || problem "fio: $(tail -n 1 "$work/fio")"
	say perftest "$(jq -c --arg program "$1, $3" '{program: $program, mib_s: (.jobs[0].'$direction'.bw_bytes / 1048576)}' "$work/fio")"
	extra='{}'
}

run_jobs() { # NAME FILE
	# the first run has to read fio from the host's disk
	fio --name=warm --filename="$2" --direct=1 --ioengine=libaio --rw=write --bs=128k --size=32m >/dev/null
	run_fio "$1" "$2" randread 4096 1 4m
	run_fio "$1" "$2" randread 4096 16 16m
	run_fio "$1" "$2" randwrite 4096 16 16m
	run_fio "$1" "$2" read 131072 8 128m
	run_fio "$1" "$2" write 131072 8 128m
}

measure_nvme() { # rdma|tcp
	modprobe -a brd "nvmet-$1" "nvme-$1"
	mountpoint -q $CONFIG || mount -t configfs configfs $CONFIG
	nvme_export "$1" $TARGET
	nvme_target_open
	nvme connect -t "$1" -a $TARGET -w $HOST -s 4420 -n disk -q nqn.2026-01.host -i 1 >/dev/null
	wait_until has_nvme_disk
	run_jobs NVMe-oF "$(nvme_disk)"
	nvme disconnect -n disk >/dev/null
	nvme_unexport
	modprobe -r "nvme-$1" "nvmet-$1" nvme-fabrics nvmet
}

load_rpcrdma() {
	modprobe -a sunrpc ib_core
	if [[ $variant == stock && -e $stock_dir/rpcrdma.ko ]]; then
		insmod "$stock_dir/rpcrdma.ko"
	else
		modprobe rpcrdma
	fi
}

no_nfs_client() {
	[[ -z $(ls /proc/fs/nfsd/clients) ]]
}

measure_nfs() { # rdma|tcp
	local port=2049
	[[ $1 == tcp ]] || { load_rpcrdma && port=20049; }
	nfs_export -o size=128m
	mkdir -p "$MOUNT"
	rpc.mountd -N 3
	rpc.nfsd -N 3 -G 10 -L 10 -H $TARGET 4
	[[ $1 == tcp ]] || echo 'rdma 20049' >/proc/fs/nfsd/portlist
	mount -t nfs4 -o "vers=4.2,proto=$1,port=$port,clientaddr=$HOST" $TARGET:/ $MOUNT
	run_jobs NFS $MOUNT/file
	umount $MOUNT
	wait_until no_nfs_client
	rpc.nfsd 0
	exportfs -ua
	pkill -x rpc.mountd || true
	umount $EXPORT /proc/fs/nfsd
	[[ $1 == tcp ]] || modprobe -r rpcrdma
}

measure_storage() { # [tcp]
	measure_nvme "${1:-rdma}"
	measure_nfs "${1:-rdma}"
}
