# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For suites of two machines that source this file after lib.sh: a has the cases, b does what a asks for. The kernel's
# servers and clients of NVMe-oF and NFS, b being the server.

# shellcheck source=tests/exports.sh
source "${BASH_SOURCE[0]%/*}/exports.sh"

readonly CTL=/run/vm/ctl MIB=4
SERVER=$(address b)

# ---- a asks, b does it

# post FUNCTION ARG…: hands b the next call. Prints its number.
post() {
	local number=$(($(cat "$CTL/asked" 2>/dev/null || echo 0) + 1))
	echo "$number" >"$CTL/asked"
	printf '%q ' "$@" >"$CTL/ask.new"
	mv "$CTL/ask.new" "$CTL/ask.$number"
	echo "$number"
}

# ask SECONDS FUNCTION ARG…: calls the function on b. Prints its output. Fails if it fails there.
ask() {
	local seconds=$1 number
	shift
	number=$(post "$@")
	wait_for "$seconds" "b: $*" test -e "$CTL/status.$number"
	[[ $(<"$CTL/status.$number") == 0 ]] || fail "b: $*: $(tail -n 3 "$CTL/said.$number" | paste -sd' ')"
	cat "$CTL/said.$number"
}

serve_asks() {
	local number=1 status
	while wait_for 900 'a to ask' test -e "$CTL/ask.$number"; do
		[[ $(<"$CTL/ask.$number") != 'end ' ]] || return 0
		remove_if_there "$WORK/why"
		set +e
		(
			set -eE
			trap '[[ ! -s $WORK/why ]] || cat "$WORK/why"' EXIT
			trap 'echo "line $LINENO: $BASH_COMMAND: status $?"' ERR
			eval "$(<"$CTL/ask.$number")"
		) >"$CTL/said.$number" 2>&1 </dev/null
		status=$?
		set -e
		echo "$status" >"$CTL/status.new"
		mv "$CTL/status.new" "$CTL/status.$number"
		number=$((number + 1))
	done
}

# b serves and does not come back; a goes on to its cases
a_asks_b() {
	if [[ $ROLE == b ]]; then
		mountpoint -q "$CONFIG" || mount -t configfs configfs "$CONFIG"
		serve_asks
		finish
		exit
	fi
	trap 'post end >/dev/null' EXIT
}

put() { # VALUE FILE
	echo "$1" >"$2"
}

# Neither machine has a queue pair
nothing_left() {
	wait_for 60 'the queue pairs to go' has_no_qps
	ask 70 wait_for 60 'the queue pairs to go' has_no_qps
}

# ---- data

disk_sum() { # DEVICE
	dd if="$1" bs=1M count="$MIB" iflag=direct 2>/dev/null | sha256sum
}

make_disk() {
	modprobe brd rd_nr=1 rd_size=$((MIB * 1024))
}

# Data written to the disk here is on the disk there, and comes back
data_is_kept() { # DEVICE
	local sum
	head -c "${MIB}M" /dev/urandom >"$WORK/data"
	sum=$(sha256sum <"$WORK/data")
	dd if="$WORK/data" of="$1" bs=1M oflag=direct 2>/dev/null
	[[ $(ask 60 disk_sum "$DISK") == "$sum" ]] || fail 'the target has other data'
	[[ $(disk_sum "$1") == "$sum" ]] || fail 'the data read back differs'
}

# start_load FILE [SECONDS]: writes blocks of all sizes and soon reads each again, with checksums, until end_load
start_load() {
	start load a "${2:-300}" fio --name=load --filename="$1" --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite \
		--bsrange=4k-32k --size="${MIB}m" --loops=1000000 --verify=crc32c --verify_backlog=16 --verify_fatal=1 \
		--verify_state_save=0 --output-format=terse "${@:3}"
	goes_on
}

# Ends the load, which must not have seen an error
end_load() {
	stop load INT
	# the signal may interrupt fio's select(), which fio says without an end of line
	has_line load '(^|: Interrupted system call)3;fio-[0-9.]+;load;0;0;' || fail 'the load has seen an error'
	! has_line load 'verify: ' || fail 'the load has read other data'
}

# The MiB that this machine has sent. A disk with several paths counts nothing on 6.1.
sent_mib() {
	echo $(($(</sys/class/net/eth0/statistics/tx_bytes) / 1048576))
}

has_sent() { # MIB
	[[ $(sent_mib) -ge $1 ]]
}

# The load goes on: some more MiB are on their way
goes_on() {
	wait_for 90 'the load to go on' has_sent $(($(sent_mib) + 2))
}

# ---- NVMe over Fabrics

nvme_target() {
	make_disk
	modprobe -a nvmet-rdma
	nvme_export rdma "$(address b)"
	nvme_target_open
	wait_listener "$(address b)" 4420
}

nvme_target_end() {
	nvme_unexport
	modprobe -r nvmet-rdma nvmet
}

nvme_controller() {
	local file
	for file in /sys/class/nvme/nvme*; do
		[[ ! -e $file ]] || echo "$file"
	done
}

nvme_connect() { # OPTION…
	modprobe nvme-rdma
	run_well connect a 60 nvme connect -t rdma -a "$SERVER" -s 4420 -n disk -q nqn.2026-01.host \
		--reconnect-delay=1 --keep-alive-tmo=5 "$@"
	wait_for 30 'a disk' has_nvme_disk
}

has_no_controller() {
	[[ -z $(nvme_controller) ]]
}

nvme_disconnect() {
	run_well disconnect a 90 nvme disconnect -n disk
	wait_for 30 'the controller to go' has_no_controller
	modprobe -r nvme-rdma
}

# ---- NFS

start_nfsd() {
	rpc.nfsd -G 10 -L 10 4
	put 'rdma 20049' /proc/fs/nfsd/portlist
	wait_listener "$(address b)" 20049
}

has_no_rpcbind() {
	! pgrep -x rpcbind
}

no_client() {
	[[ -z $(ls /proc/fs/nfsd/clients) ]]
}

nfs_server() {
	modprobe rpcrdma
	nfs_export -o size=256m
	mkdir -p /run/rpcbind
	# the installation of the package makes this user
	grep -q '^_rpc:' /etc/passwd || echo '_rpc:x:105:65534::/run/rpcbind:/usr/sbin/nologin' >>/etc/passwd
	rpcbind
	rpc.mountd -p 20048
	start_nfsd
}

nfs_server_end() {
	# the last requests of the client must find a server
	wait_for 60 'the client to go' no_client
	rpc.nfsd 0
	exportfs -ua
	pkill -x rpc.mountd
	pkill -x rpcbind
	wait_for 20 'the end of rpcbind' has_no_rpcbind
	umount "$EXPORT" /proc/fs/nfsd
	modprobe -r rpcrdma
}

nfs_mount() { # VERSION
	local path=/ options=vers=4.2
	if [[ $1 == 3 ]]; then
		path=$EXPORT options=vers=3,nolock,mountproto=tcp,mountport=20048
	fi
	modprobe rpcrdma
	mkdir -p "$MOUNT"
	run_well mount a 60 mount -t nfs -o "rdma,port=20049,$options" "$SERVER:$path" "$MOUNT"
	has_qps 1 || fail 'NFS does not use RDMA'
}

nfs_umount() {
	run_well umount a 60 umount "$MOUNT"
	modprobe -r rpcrdma
}

file_sum() { # FILE
	sha256sum <"$1"
}
