#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --mem 3072 --packages LIST -- tests/storage.sh [REGEX]
#
# The kernel's ULPs over siw between two machines: NVMe-oF, iSER, SRP, and NFS with RPC-over-RDMA version one. a is
# the client and has the cases, b does what a asks for. Data is compared at both ends.
# LIST: nvme-cli,fio,open-iscsi,nfs-common,nfs-kernel-server
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly HERE=$ROLE CTL=/run/vm/ctl CONFIG=/sys/kernel/config
SERVER=$(address b)
# The target's disk: a ram disk
readonly DISK=/dev/ram0 MIB=4

# ---- a asks, b does it

# ask SECONDS FUNCTION ARG…: calls the function on b. Prints its output. Fails if it fails there.
ask() {
	local seconds=$1 number
	shift
	number=$(($(cat "$CTL/asked" 2>/dev/null || echo 0) + 1))
	echo "$number" >"$CTL/asked"
	printf '%q ' "$@" >"$CTL/ask.new"
	mv "$CTL/ask.new" "$CTL/ask.$number"
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

# ---- shared by the cases

put() { # VALUE FILE
	echo "$1" >"$2"
}

connections() {
	rdma resource show qp | grep -cE ' type RC state RTS' || true
}

has_connections() { # NUMBER
	[[ $(connections) -ge $1 ]]
}

# Neither machine has a queue pair
nothing_left() {
	wait_for 60 'the queue pairs to go' has_no_qps
	ask 70 wait_for 60 'the queue pairs to go' has_no_qps
}

# The device of this machine goes, as if it were pulled out
pull_device() {
	rdma link del "$1"
}

put_device_back() { # DEVICE
	local link=siw
	[[ ${VM_LLP:-tcp} == tcp ]] || link=siw_sctp
	rdma link add "$1" type "$link" netdev eth0
}

link_down() {
	ip link set eth0 down
}

link_up() {
	ip link set eth0 up
	# IPv6 has lost its address
	ip addr add "$(address "$HERE" 6)/64" dev eth0 nodad
}

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
	[[ $(disk_sum "$1") == "$sum" ]] || fail 'other data comes back'
}

# start_load FILE [SECONDS]: writes blocks of all sizes and soon reads each again, with checksums, until end_load
start_load() {
	start load a "${2:-300}" fio --name=load --filename="$1" --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite \
		--bsrange=4k-32k --size="${MIB}m" --loops=1000000 --verify=crc32c --verify_backlog=16 --verify_fatal=1 \
		--verify_state_save=0 --output-format=terse
	goes_on
}

# Ends the load, which must not have seen an error
end_load() {
	stop load INT
	has_line load '^3;fio-[0-9.]+;load;0;0;' || fail 'the load has seen an error'
	! has_line load 'verify: ' || fail 'the load has read other data'
}

# The load ends by itself, because it sees an error
load_breaks() { # SECONDS
	ended load "$1"
	! has_line load 'verify: ' || fail 'the load has read other data'
	has_line load 'Input/output error' || fail 'the load has seen no error'
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

readonly SUBSYSTEM=$CONFIG/nvmet/subsystems/disk PORT=$CONFIG/nvmet/ports/1

nvme_target() {
	make_disk
	modprobe -a nvmet-rdma
	mkdir -p "$SUBSYSTEM/namespaces/1" "$PORT"
	put 1 "$SUBSYSTEM/attr_allow_any_host"
	put "$DISK" "$SUBSYSTEM/namespaces/1/device_path"
	put 1 "$SUBSYSTEM/namespaces/1/enable"
	put rdma "$PORT/addr_trtype"
	put ipv4 "$PORT/addr_adrfam"
	put "$(address b)" "$PORT/addr_traddr"
	put 4420 "$PORT/addr_trsvcid"
	nvme_target_open
	wait_listener "$(address b)" 4420
}

nvme_target_open() {
	ln -s "$SUBSYSTEM" "$PORT/subsystems/disk"
}

nvme_target_close() {
	rm "$PORT/subsystems/disk"
}

nvme_target_end() {
	[[ ! -e $PORT/subsystems/disk ]] || nvme_target_close
	[[ ! -e $PORT ]] || rmdir "$PORT"
	[[ ! -e $SUBSYSTEM ]] || rmdir "$SUBSYSTEM/namespaces/1" "$SUBSYSTEM"
	modprobe -r nvmet-rdma nvmet
}

nvme_disk() {
	local file
	for file in /sys/class/nvme-subsystem/*/nvme*n1; do
		[[ ! ${file##*/} =~ ^nvme[0-9]+n1$ ]] || echo "/dev/${file##*/}"
	done
}

nvme_controller() {
	local file
	for file in /sys/class/nvme/nvme*; do
		[[ ! -e $file ]] || echo "$file"
	done
}

has_nvme_disk() {
	[[ -b $(nvme_disk) ]]
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

nvme_state_is() {
	[[ $(cat "$(nvme_controller)/state") == "$1" ]]
}

nvme_keeps_data() {
	ask 60 nvme_target
	nvme_connect -i 2 -W 2 -P 1
	# the queues for reads, writes and polling, and the one of the administrator
	[[ $(connections) == 6 ]] || fail "$(connections) queues"
	data_is_kept "$(nvme_disk)"
	start_load "$(nvme_disk)"
	end_load
	nvme_disconnect
	ask 60 nvme_target_end
	nothing_left
}

nvme_is_reset() {
	local disk i
	ask 60 nvme_target
	nvme_connect
	disk=$(nvme_disk)
	start_load "$disk"
	for i in 1 2 3; do
		put 1 "$(nvme_controller)/reset_controller"
		wait_for 60 'the controller to be back' nvme_state_is live
		goes_on
	done
	end_load
	data_is_kept "$disk"
	nvme_disconnect
	ask 60 nvme_target_end
	nothing_left
}

# The link is down for as long as the host needs to see it
nvme_link_fails() { # a|b
	local disk
	ask 60 nvme_target
	nvme_connect
	disk=$(nvme_disk)
	start_load "$disk"
	if [[ $1 == a ]]; then link_down; else ask 20 link_down; fi
	wait_for 60 'the host to reconnect' nvme_state_is connecting
	if [[ $1 == a ]]; then link_up; else ask 20 link_up; fi
	wait_for 60 'the controller to be back' nvme_state_is live
	goes_on
	end_load
	data_is_kept "$disk"
	nvme_disconnect
	ask 60 nvme_target_end
	nothing_left
}

# The load is told, and the host gives up. The target is there again later, with the data.
nvme_target_goes() {
	local disk sum
	ask 60 nvme_target
	nvme_connect --ctrl-loss-tmo=4
	disk=$(nvme_disk)
	start_load "$disk"
	ask 60 nvme_target_close
	load_breaks 90
	sum=$(ask 20 disk_sum "$DISK")
	wait_for 60 'the controller to go' has_no_controller
	ask 60 nvme_target_open
	nvme_connect
	[[ $(disk_sum "$(nvme_disk)") == "$sum" ]] || fail 'other data comes back'
	nvme_disconnect
	ask 60 nvme_target_end
	nothing_left
}

# A device of RDMA goes while its queue pairs are in use
nvme_device_goes() { # a|b
	local disk
	ask 60 nvme_target
	nvme_connect
	disk=$(nvme_disk)
	start_load "$disk"
	if [[ $1 == a ]]; then
		pull_device siw0
		wait_for 60 'the controller to go' has_no_controller
		load_breaks 60
		put_device_back siw0
		nvme_connect
	else
		ask 60 pull_device siw1
		wait_for 60 'the host to reconnect' nvme_state_is connecting
		ask 20 put_device_back siw1
		# nvmet-rdma has given its listener up and makes no other (nvmet_rdma_device_removal() in
		# drivers/nvme/target/rdma.c)
		ask 20 nvme_target_close
		ask 20 nvme_target_open
		wait_for 90 'the controller to be back' nvme_state_is live
		goes_on
		end_load
	fi
	data_is_kept "$(nvme_disk)"
	nvme_disconnect
	ask 60 nvme_target_end
	nothing_left
}

# ---- iSER. LIO makes a socket of TCP for each portal, and only then isert can listen on the portal's address. siw
# ---- listens on the same port of TCP. So the portal is made in a network namespace of its own: its socket stays
# ---- there, and isert always listens in the first namespace.

readonly IQN=iqn.2026-01.target:disk
readonly TPG=$CONFIG/target/iscsi/$IQN/tpgt_1 BACKEND=$CONFIG/target/core/iblock_0/disk

lio_backend() {
	make_disk
	modprobe -a target_core_mod target_core_iblock
	mkdir -p "$BACKEND"
	put "udev_path=$DISK" "$BACKEND/control"
	put 1 "$BACKEND/enable"
}

lio_end() {
	rmdir "$BACKEND" "${BACKEND%/*}"
	# LIO has loaded all kinds of backends
	modprobe -r target_core_iblock target_core_file target_core_pscsi target_core_user target_core_mod
}

iser_target() {
	lio_backend
	modprobe -a iscsi_target_mod ib_isert
	mkdir -p "$TPG/lun/lun_0"
	ln -s "$BACKEND" "$TPG/lun/lun_0/disk"
	put 0 "$TPG/attrib/authentication"
	put 1 "$TPG/attrib/generate_node_acls"
	put 0 "$TPG/attrib/demo_mode_write_protect"
	iser_portal
	put 1 "$TPG/enable"
}

iser_portal() {
	local portal
	portal=$TPG/np/$(address b):3260
	[[ -e /run/netns/portal ]] || ip netns add portal
	nsenter --net=/run/netns/portal mkdir -p "$portal"
	put 1 "$portal/iser"
	wait_listener "$(address b)" 3260
}

# The listener and all sessions go
iser_portal_closes() {
	put 0 "$TPG/enable"
	rmdir "$TPG/np/$(address b):3260"
}

iser_portal_opens() {
	iser_portal
	put 1 "$TPG/enable"
}

iser_target_end() {
	iser_portal_closes
	ip netns del portal
	rm "$TPG/lun/lun_0/disk"
	rmdir "$TPG/lun/lun_0" "$TPG" "${TPG%/*}" "$CONFIG/target/iscsi"
	modprobe -r ib_isert iscsi_target_mod
	lio_end
}

iscsi() {
	iscsiadm -m node -T "$IQN" -p "$SERVER:3260,1" -I iser "$@"
}

iser_login() {
	modprobe -a ib_iser sd_mod
	mkdir -p /etc/iscsi /run/lock/iscsi
	put InitiatorName=iqn.2026-01.host:a /etc/iscsi/initiatorname.iscsi
	start iscsid a 400 iscsid -f
	# else iscsiadm starts one by systemd
	wait_for 30 iscsid grep -q ISCSIADM_ABSTRACT /proc/net/unix
	iscsi -o new >"$WORK/iscsi.log"
	iscsi -o update -n node.session.timeo.replacement_timeout -v 60
	run_well login a 60 iscsiadm -m node -T "$IQN" -p "$SERVER:3260,1" -I iser --login
	wait_for 30 'a disk' has_scsi_disk
}

iser_logout() {
	run_well logout a 60 iscsiadm -m node -T "$IQN" -p "$SERVER:3260,1" -I iser --logout
	stop iscsid
	modprobe -r ib_iser
}

scsi_disk() {
	local file
	for file in /sys/class/scsi_disk/*/device/block/*; do
		[[ ! -e $file ]] || echo "/dev/${file##*/}"
	done
}

session_state_is() { # STATE
	[[ $(cat /sys/class/iscsi_session/session*/state) == "$1" ]]
}

has_scsi_disk() {
	[[ -b $(scsi_disk) ]]
}

iser_keeps_data() {
	ask 60 iser_target
	iser_login
	data_is_kept "$(scsi_disk)"
	start_load "$(scsi_disk)"
	end_load
	iser_logout
	ask 60 iser_target_end
	nothing_left
}

# The target goes while the load runs, and comes back
iser_target_restarts() {
	ask 60 iser_target
	iser_login
	start_load "$(scsi_disk)"
	ask 60 iser_portal_closes
	wait_for 60 'the session to fail' session_state_is FAILED
	ask 60 iser_portal_opens
	wait_for 90 'the session to be back' session_state_is LOGGED_IN
	goes_on
	end_load
	data_is_kept "$(scsi_disk)"
	iser_logout
	ask 60 iser_target_end
	nothing_left
}

iser_device_goes() {
	ask 60 iser_target
	iser_login
	start_load "$(scsi_disk)"
	pull_device siw0
	wait_for 60 'the session to fail' session_state_is FAILED
	put_device_back siw0
	wait_for 90 'the session to be back' session_state_is LOGGED_IN
	goes_on
	end_load
	data_is_kept "$(scsi_disk)"
	iser_logout
	ask 60 iser_target_end
	nothing_left
}

# ---- SRP

readonly SRP_PORT=5555
# The initiator's port identifier: its extension, and the last octets of its GID, which are 0 on siw
readonly SRP_INITIATOR=0x00000000000000010000000000000000

srp_target() {
	local name tpg
	lio_backend
	modprobe ib_srpt
	mkdir -p "$CONFIG/target/srpt"
	put "$SRP_PORT" "$CONFIG/target/srpt/discovery_auth/rdma_cm_port"
	name=$(</sys/class/infiniband/siw1/ports/1/gids/0)
	name=0x${name//:/}
	tpg=$CONFIG/target/srpt/$name/$name
	mkdir -p "$tpg/lun/lun_0" "$tpg/acls/$SRP_INITIATOR"
	ln -s "$BACKEND" "$tpg/lun/lun_0/disk"
	mkdir "$tpg/acls/$SRP_INITIATOR/lun_0"
	ln -s "$tpg/lun/lun_0" "$tpg/acls/$SRP_INITIATOR/lun_0/disk"
	put 1 "$tpg/enable"
}

srp_target_end() {
	local tpg
	tpg=$(echo "$CONFIG"/target/srpt/0x*/0x*)
	put 0 "$tpg/enable"
	put 0 "$CONFIG/target/srpt/discovery_auth/rdma_cm_port"
	rm "$tpg/acls/$SRP_INITIATOR/lun_0/disk" "$tpg/lun/lun_0/disk"
	rmdir "$tpg/acls/$SRP_INITIATOR/lun_0" "$tpg/acls/$SRP_INITIATOR" "$tpg/lun/lun_0" "$tpg" "${tpg%/*}" \
		"$CONFIG/target/srpt"
	modprobe -r ib_srpt
	lio_end
}

node_guid() {
	local guid
	guid=$(</sys/class/infiniband/siw1/node_guid)
	echo "${guid//:/}"
}

srp_login() {
	local guid
	guid=$(ask 20 node_guid)
	modprobe -a ib_srp sd_mod
	put "initiator_ext=1,id_ext=$guid,ioc_guid=$guid,dest=$SERVER:$SRP_PORT" \
		/sys/class/infiniband_srp/srp-siw0-1/add_target
	wait_for 30 'a disk' has_scsi_disk
}

srp_logout() {
	local port
	for port in /sys/class/srp_remote_ports/*; do
		put 1 "$port/delete"
	done
	modprobe -r ib_srp
}

srp_keeps_data() {
	ask 60 srp_target
	srp_login
	data_is_kept "$(scsi_disk)"
	start_load "$(scsi_disk)"
	end_load
	srp_logout
	ask 60 srp_target_end
	nothing_left
}

# ---- NFS

readonly EXPORT=/srv/export MOUNT=/mnt/nfs CALLBACK=$TRACING/events/rpcrdma/xprtrdma_cb_call

start_nfsd() {
	rpc.nfsd -G 10 -L 10 4
	put 'rdma 20049' /proc/fs/nfsd/portlist
	wait_listener "$(address b)" 20049
}

nfs_server() {
	modprobe rpcrdma
	mkdir -p "$EXPORT" /var/lib/nfs/{rpc_pipefs,v4recovery} /proc/fs/nfsd /run/rpcbind
	mount -t tmpfs -o size=256m tmpfs "$EXPORT"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	put "$EXPORT *(rw,async,no_root_squash,no_subtree_check,insecure,fsid=0)" /etc/exports
	touch /var/lib/nfs/{etab,rmtab}
	exportfs -r
	# the installation of the package makes this user
	grep -q '^_rpc:' /etc/passwd || echo '_rpc:x:105:65534::/run/rpcbind:/usr/sbin/nologin' >>/etc/passwd
	rpcbind
	rpc.mountd -p 20048
	start_nfsd
}

nfs_server_restarts() {
	rpc.nfsd 0
	start_nfsd
}

has_no_rpcbind() {
	! pgrep -x rpcbind
}

no_client() {
	[[ -z $(ls /proc/fs/nfsd/clients) ]]
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
	has_connections 1 || fail 'NFS does not use RDMA'
}

nfs_umount() {
	run_well umount a 60 umount "$MOUNT"
	modprobe -r rpcrdma
}

file_sum() { # FILE
	sha256sum <"$1"
}

nfs_keeps_data() { # VERSION
	local sum
	ask 60 nfs_server
	nfs_mount "$1"
	head -c "${MIB}M" /dev/urandom >"$WORK/data"
	sum=$(file_sum "$WORK/data")
	cp "$WORK/data" "$MOUNT/data"
	[[ $(ask 60 file_sum "$EXPORT/data") == "$sum" ]] || fail 'the server has other data'
	# nothing in the cache is of use after this
	nfs_umount
	nfs_mount "$1"
	[[ $(file_sum "$MOUNT/data") == "$sum" ]] || fail 'other data comes back'
	start_load "$MOUNT/load"
	end_load
	nfs_umount
	ask 90 nfs_server_end
	nothing_left
}

make_repository() {
	export GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@b GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@b
	git init -q "$EXPORT/tree"
	cp -r "$TESTS/scenarios" "$EXPORT/tree/tests"
	git -C "$EXPORT/tree" add tests
	git -C "$EXPORT/tree" commit -q -m tests
	git clone -q --bare "$EXPORT/tree" "$EXPORT/bare.git"
}

repository_has() { # COMMIT
	git -C "$EXPORT/bare.git" fsck --strict
	[[ $(git -C "$EXPORT/bare.git" rev-parse HEAD) == "$1" ]]
}

# A repository of the server is cloned to a directory of the server, changed there and pushed
nfs_has_git() { # VERSION
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a
	ask 60 nfs_server
	ask 90 make_repository
	nfs_mount "$1"
	git clone -q --no-hardlinks "$MOUNT/bare.git" "$MOUNT/clone"
	diff -r "$TESTS/scenarios" "$MOUNT/clone/tests"
	seq 1 10000 >"$MOUNT/clone/numbers"
	git -C "$MOUNT/clone" add numbers
	git -C "$MOUNT/clone" commit -q -m numbers
	git -C "$MOUNT/clone" push -q origin HEAD
	ask 60 repository_has "$(git -C "$MOUNT/clone" rev-parse HEAD)"
	nfs_umount
	ask 90 nfs_server_end
	nothing_left
}

delegations() {
	cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg' || true
}

# Without a delegation at first: the server has not yet tried to call the client
opens_with_delegation() {
	exec {file}<"$MOUNT/delegated"
	read -r -u "$file"
	if [[ $(ask 20 delegations) == 0 ]]; then
		exec {file}<&-
		return 1
	fi
}

nfs_recalls() {
	ask 60 nfs_server
	ask 20 put old "$EXPORT/delegated"
	nfs_mount 4
	wait_for 60 'a delegation' opens_with_delegation
	[[ $REPLY == old ]]
	put 1 "$CALLBACK/enable"
	# the server waits with it until the client has given its delegation back
	ask 60 put new "$EXPORT/delegated"
	grep -q xprtrdma_cb_call "$TRACING/trace" || fail 'no callback'
	put 0 "$CALLBACK/enable"
	exec {file}<&-
	[[ $(<"$MOUNT/delegated") == new ]] || fail 'the client still has the old contents'
	nfs_umount
	ask 90 nfs_server_end
	nothing_left
}

nfs_restarts() { # VERSION
	ask 60 nfs_server
	nfs_mount "$1"
	start_load "$MOUNT/load"
	ask 60 nfs_server_restarts
	goes_on
	end_load
	nfs_umount
	ask 90 nfs_server_end
	nothing_left
}

# The load waits while a device is away, and goes on with a new connection. nfsd listens on all devices, on those that
# come later, too.
nfs_device_goes() { # a|b
	ask 60 nfs_server
	nfs_mount 4
	start_load "$MOUNT/load"
	if [[ $1 == a ]]; then
		pull_device siw0
		put_device_back siw0
	else
		ask 60 pull_device siw1
		ask 20 put_device_back siw1
	fi
	goes_on
	end_load
	nfs_umount
	ask 90 nfs_server_end
	nothing_left
}

# ---- the cases

if [[ $ROLE == b ]]; then
	mountpoint -q "$CONFIG" || mount -t configfs configfs "$CONFIG"
	serve_asks
	finish
	exit
fi
trap 'echo "end " >"$CTL/ask.$(($(cat "$CTL/asked" 2>/dev/null || echo 0) + 1))"' EXIT
check 'NVMe-oF: five queues, data is kept' nvme_keeps_data
check 'NVMe-oF: the controller is reset under load' nvme_is_reset
check 'NVMe-oF: the link of the host is down for a while' nvme_link_fails a
check 'NVMe-oF: the link of the target is down for a while' nvme_link_fails b
check 'NVMe-oF: the target is removed' nvme_target_goes
check 'NVMe-oF: the device of the host is removed' nvme_device_goes a
check 'NVMe-oF: the device of the target is removed' nvme_device_goes b
check 'iSER: data is kept' iser_keeps_data
check 'iSER: the target is restarted under load' iser_target_restarts
check 'iSER: the device of the initiator is removed' iser_device_goes
check 'SRP: data is kept' srp_keeps_data
for version in 4.2 3; do
	check "NFSv$version: data is kept" nfs_keeps_data "$version"
	check "NFSv$version: git clones, commits and pushes" nfs_has_git "$version"
	check "NFSv$version: the server is restarted under load" nfs_restarts "$version"
done
check 'NFSv4.2: a delegation is recalled' nfs_recalls
check 'NFSv4.2: the device of the client is removed' nfs_device_goes a
check 'NFSv4.2: the device of the server is removed' nfs_device_goes b
finish
