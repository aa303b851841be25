#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --mem 3072 --packages LIST -- tests/storage.sh [REGEX]
#
# The kernel's ULPs over siw between two machines: NVMe-oF, iSER, SRP, and NFS with RPC-over-RDMA version one. a is
# the client and has the cases, b does what a asks for. Data is compared at both ends.
# LIST: nvme-cli,fio,open-iscsi,nfs-common,nfs-kernel-server
#
# Runs as storage storage-sctp storage-streams: --pair --mem 3072 --packages nvme-cli,fio,open-iscsi,nfs-common,nfs-kernel-server; 900 s
# Sample storage: five queues
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/ask.sh
source "${0%/*}/ask.sh"

modprobe -q configfs || { echo "not ok storage: this kernel has no storage targets, Debian's has" && exit 1; }

# ---- shared by the cases

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
	ip addr add "$(address "$ROLE" 6)/64" dev eth0 nodad
}

# The load ends by itself, because it sees an error
load_breaks() { # SECONDS
	ended load "$1"
	! has_line load 'verify: ' ||
		fail "fio has read other data than written: $(grep -m 1 'verify: ' "$WORK/load.log")"
	has_line load 'Input/output error' || fail 'fio got no Input/output error'
}

# ---- NVMe over Fabrics

nvme_state_is() {
	[[ $(cat "$(nvme_controller)/state") == "$1" ]]
}

nvme_keeps_data() {
	ask 60 nvme_target
	nvme_connect -i 2 -W 2 -P 1
	# the queues for reads, writes and polling, and the one of the administrator
	[[ $(established) == 6 ]] || fail "$(established) connections, not 6 (five I/O queues and the admin queue)"
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
	[[ $(disk_sum "$(nvme_disk)") == "$sum" ]] ||
		fail 'the data read after the second connect differs from the data of the disk'
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
# ---- A fault of isert's own can end these cases (iw_mpa_ulp.rst, iSER). Seen twice, on a busy host; at least the second
# ---- time siw said so of a Logout Response that was sent (F75).

readonly IQN=iqn.2026-01.target:disk
readonly TPG=$CONFIG/target/iscsi/$IQN/tpgt_1 BACKEND=$CONFIG/target/core/iblock_0/disk

# A disk that answers after 10 ms
readonly SLOW_DISK=/dev/nullb0
make_slow_disk() {
	modprobe null_blk nr_devices=1 gb=1 memory_backed=1 irqmode=2 completion_nsec=10000000
}

lio_backend() { # [DISK]
	make_disk
	modprobe -a target_core_mod target_core_iblock
	mkdir -p "$BACKEND"
	put "udev_path=${1:-$DISK}" "$BACKEND/control"
	put 1 "$BACKEND/enable"
}

lio_end() {
	local module
	rmdir "$BACKEND" "${BACKEND%/*}"
	# LIO has loaded all kinds of backends that the kernel has
	for module in target_core_{iblock,file,pscsi,user,mod}; do
		[[ ! -e /sys/module/$module ]] || modprobe -r "$module"
	done
}

iser_target() { # [DISK]
	lio_backend "$@"
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

iser_login() { # [FIRST_BURST_LENGTH]
	modprobe -a ib_iser sd_mod
	mkdir -p /etc/iscsi /run/lock/iscsi
	put InitiatorName=iqn.2026-01.host:a /etc/iscsi/initiatorname.iscsi
	start iscsid a 400 iscsid -f
	# else iscsiadm starts one by systemd
	wait_for 30 iscsid grep -q ISCSIADM_ABSTRACT /proc/net/unix
	iscsi -o new >"$WORK/iscsi.log"
	iscsi -o update -n node.session.timeo.replacement_timeout -v 60
	iscsi -o update -n node.session.iscsi.FirstBurstLength -v "${1:-262144}"
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

# The rest of a write is read into the pages from an offset of 1024 on
iser_keeps_data_after_immediate_data() {
	ask 60 iser_target
	iser_login 5120
	data_is_kept "$(scsi_disk)"
	iser_logout
	ask 60 iser_target_end
	nothing_left
}

# The target goes while the load runs, and comes back
iser_portal_restarts() {
	ask 60 iser_portal_closes
	wait_for 60 'the session to fail' session_state_is FAILED
	ask 60 iser_portal_opens
	wait_for 90 'the session to be back' session_state_is LOGGED_IN
	goes_on
}

# Over SCTP this shows F73 of FAULTS.md
iser_target_restarts() {
	ask 60 iser_target
	iser_login
	start_load "$(scsi_disk)"
	iser_portal_restarts
	end_load
	data_is_kept "$(scsi_disk)"
	iser_logout
	ask 60 iser_target_end
	nothing_left
}

# The disk has answers for a connection that is being closed, which takes long
iser_slow_target_restarts() {
	ask 60 make_slow_disk
	ask 60 iser_target "$SLOW_DISK"
	iser_login
	start_load "$(scsi_disk)" 300 --iodepth=32
	ask 60 slow_down siw_rq_flush 600
	iser_portal_restarts
	ask 90 speed_up
	end_load
	iser_logout
	ask 60 iser_target_end
	nothing_left
}

# A command that the initiator builds between the end of the connection and that of the session is not tried again, but
# fails: iser_initialize_task_headers() says ENODEV (iscsi_iser.c:204), and libiscsi makes an abort of it.
iser_device_goes() {
	ask 60 iser_target
	iser_login
	start_load "$(scsi_disk)" 300 --continue_on_error=io
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

readonly CALLBACK=$TRACING/events/rpcrdma/xprtrdma_cb_call

nfs_server_restarts() {
	rpc.nfsd 0
	start_nfsd
}

nfs_keeps_data() { # VERSION
	local sum
	ask 60 nfs_server
	nfs_mount "$1"
	head -c "${MIB}M" /dev/urandom >"$WORK/data"
	sum=$(file_sum "$WORK/data")
	cp "$WORK/data" "$MOUNT/data"
	[[ $(ask 60 file_sum "$EXPORT/data") == "$sum" ]] || fail "the server's file differs from the data written"
	# nothing in the cache is of use after this
	nfs_umount
	nfs_mount "$1"
	[[ $(file_sum "$MOUNT/data") == "$sum" ]] || fail 'the data read back over NFS differs from the data written'
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
	grep -q xprtrdma_cb_call "$TRACING/trace" || fail 'the client received no callback'
	put 0 "$CALLBACK/enable"
	exec {file}<&-
	[[ $(<"$MOUNT/delegated") == new ]] ||
		fail "the client reads '$(<"$MOUNT/delegated")' after the recall, not 'new'"
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

a_asks_b
check 'NVMe-oF: five queues: data written is read back unchanged' nvme_keeps_data
check 'NVMe-oF: I/O resumes and data is unchanged after the controller is reset under load' nvme_is_reset
check "NVMe-oF: I/O resumes and data is unchanged after the host's network interface was down" nvme_link_fails a
check "NVMe-oF: I/O resumes and data is unchanged after the target's network interface was down" nvme_link_fails b
check 'NVMe-oF: I/O ends with an error when the target is removed, data is unchanged at the next connect' nvme_target_goes
check "NVMe-oF: I/O ends with an error when the host's RDMA device is removed, the host can connect again" nvme_device_goes a
check "NVMe-oF: I/O resumes and data is unchanged after the target's RDMA device is removed and added again" nvme_device_goes b
check 'iSER: data written is read back unchanged' iser_keeps_data
check 'F154: iSER: data is unchanged if 5120 octets of each write are immediate data' iser_keeps_data_after_immediate_data
check 'iSER: the target is restarted under load: I/O resumes and data is unchanged' iser_target_restarts
check 'iSER F76: the target of a slow disk is restarted under load: I/O resumes' iser_slow_target_restarts
check "iSER: I/O resumes and data is unchanged after the initiator's RDMA device is removed and added again" iser_device_goes
check 'SRP: data written is read back unchanged' srp_keeps_data
for version in 4.2 3; do
	check "NFSv$version: data written is read back unchanged" nfs_keeps_data "$version"
	check "NFSv$version: git clones, commits and pushes in a repository on the server" nfs_has_git "$version"
	check "NFSv$version: I/O continues when nfsd is restarted under load" nfs_restarts "$version"
done
check 'NFSv4.2: the server recalls a delegation by a callback over RDMA' nfs_recalls
check "NFSv4.2: I/O continues after the client's RDMA device is removed and added again" nfs_device_goes a
check "NFSv4.2: I/O continues after the server's RDMA device is removed and added again" nfs_device_goes b
finish
