# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For suites of two machines (--pair): b exports a file system in memory by NFSv4.2 over RDMA, of all versions, until a
# makes a file `done` in it. Sourced behind lib.sh.
readonly EXPORT=/srv/export MOUNT=/mnt/nfs SUNRPC=/proc/sys/sunrpc

client_is_gone() {
	[[ -z $(ls /proc/fs/nfsd/clients) ]]
}

start_threads() {
	rpc.nfsd -N 3 -G 10 -L 10 --rdma=20049 4
}

restart_if_asked() {
	[[ ! -e $EXPORT/restart ]] || { rpc.nfsd 0 && start_threads && rm "$EXPORT/restart"; }
	[[ -e $EXPORT/done ]]
}

serve() { # SECONDS
	modprobe rpcrdma
	echo 2 >$SUNRPC/svc_rdma/max_version
	echo 16384 >$SUNRPC/svc_rdma/max_req_size
	mkdir -p "$EXPORT" /var/lib/nfs/{rpc_pipefs,v4recovery} /proc/fs/nfsd
	mount -t tmpfs tmpfs "$EXPORT"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	echo "$EXPORT *(rw,async,no_root_squash,no_subtree_check,insecure,fsid=0)" >/etc/exports
	touch /var/lib/nfs/{etab,rmtab}
	exportfs -r
	rpc.mountd -N 3
	start_threads
	wait_for "$1" 'the client to be done' restart_if_asked
	wait_for 60 'the client to go' client_is_gone
	rpc.nfsd 0
	exportfs -ua
	pkill -x rpc.mountd || true
	umount "$EXPORT" /proc/fs/nfsd
}

mount_it() {
	mount -t nfs4 -o vers=4.2,rdma,port=20049 "$(address b):/" "$MOUNT"
}
