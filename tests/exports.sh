# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# For the files that source this one: the kernel's targets of NVMe-oF, whose disk is a RAM disk, and of NFS. Not all of
# them use each name.

readonly CONFIG=/sys/kernel/config DISK=/dev/ram0
readonly SUBSYSTEM=$CONFIG/nvmet/subsystems/disk PORT=$CONFIG/nvmet/ports/1
readonly EXPORT=/srv/export MOUNT=/mnt/nfs

# nvme_export TYPE ADDRESS: makes the target, which nvme_target_open opens
nvme_export() {
	mkdir -p "$SUBSYSTEM/namespaces/1" "$PORT"
	echo 1 >"$SUBSYSTEM/attr_allow_any_host"
	echo "$DISK" >"$SUBSYSTEM/namespaces/1/device_path"
	echo 1 >"$SUBSYSTEM/namespaces/1/enable"
	echo "$1" >"$PORT/addr_trtype"
	echo ipv4 >"$PORT/addr_adrfam"
	echo "$2" >"$PORT/addr_traddr"
	echo 4420 >"$PORT/addr_trsvcid"
}

nvme_target_open() {
	ln -s "$SUBSYSTEM" "$PORT/subsystems/disk"
}

nvme_target_close() {
	rm "$PORT/subsystems/disk"
}

nvme_unexport() {
	[[ ! -e $PORT/subsystems/disk ]] || nvme_target_close
	[[ ! -e $PORT ]] || rmdir "$PORT"
	[[ ! -e $SUBSYSTEM ]] || rmdir "$SUBSYSTEM/namespaces/1" "$SUBSYSTEM"
}

nvme_disk() {
	local file
	# the second is that of a kernel without CONFIG_NVME_MULTIPATH
	for file in /sys/class/nvme-subsystem/*/nvme*n1 /sys/class/nvme/*/nvme*n1; do
		[[ ! ${file##*/} =~ ^nvme[0-9]+n1$ ]] || echo "/dev/${file##*/}"
	done
}

has_nvme_disk() {
	[[ -b $(nvme_disk) ]]
}

# nfs_export [OPTION…]: exports an empty tmpfs, mounted with these options; no daemon runs yet
nfs_export() {
	mkdir -p "$EXPORT" /var/lib/nfs/{rpc_pipefs,v4recovery} /proc/fs/nfsd
	mount -t tmpfs "$@" tmpfs "$EXPORT"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	echo "$EXPORT *(rw,async,no_root_squash,no_subtree_check,insecure,fsid=0)" >/etc/exports
	touch /var/lib/nfs/{etab,rmtab}
	exportfs -r
}
