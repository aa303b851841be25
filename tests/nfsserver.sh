# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# NFSv4.2 over RDMA between two machines (--pair): b exports a file system in memory, a mounts it. The two talk by files
# in the export. Sourced behind lib.sh.
# shellcheck source=tests/exports.sh
source "${BASH_SOURCE[0]%/*}/exports.sh"
readonly SUNRPC=/proc/sys/sunrpc
# unmodified modules do not have these
readonly MAX_VERSION=$SUNRPC/rdma_max_version
readonly SERVER_MAX_VERSION=$SUNRPC/svc_rdma/max_version

# ---- the server

# All but the threads, so that a suite can put files into the export first
prepare_server() {
	modprobe rpcrdma
	[[ ! -e $SERVER_MAX_VERSION ]] || echo 2 >"$SERVER_MAX_VERSION"
	nfs_export -o size=50%
	rpc.mountd -N 3
}

start_threads() {
	rpc.nfsd -N 3 -G 10 -L 10 --rdma=20049 4
}

restart_threads() {
	rpc.nfsd 0
	start_threads
}

client_is_gone() {
	[[ -z $(ls /proc/fs/nfsd/clients) ]]
}

stop_server() {
	# the client's last requests must find a server
	wait_for 60 'the client to go' client_is_gone
	rpc.nfsd 0
	exportfs -ua
	pkill -x rpc.mountd || true
	umount "$EXPORT" /proc/fs/nfsd
}

is_done_or_restarts() {
	[[ ! -e $EXPORT/restart ]] || { restart_threads && rm "$EXPORT/restart"; }
	[[ -e $EXPORT/done ]]
}

# Restarts the threads each time that the client makes a file `restart`, ends when it makes a file `done`
serve_until_done() { # SECONDS
	prepare_server
	start_threads
	wait_for "$1" 'the client to be done' is_done_or_restarts
	stop_server
}

# ---- the client

mount_with() { # OPTIONS
	mkdir -p "$MOUNT"
	mount -t nfs4 -o "vers=4.2,rdma,port=20049,$1" "$(address b):/" "$MOUNT"
}

mount_it() {
	mount_with hard
}

# A field of the transport's line in mountstats
field() { # NUMBER
	awk -v field="$1" '$1 == "xprt:" && $2 == "rdma" { print $field }' /proc/self/mountstats
}

connections() {
	field 5
}

has_version() { # VERSION, or nothing if version two is off
	# unmodified modules do not say it
	[[ ! -e $MAX_VERSION || $(field 30) == "$1" ]] || fail "mountstats has version '$(field 30)', not '$1'"
}

clones_a_repository() { # DIR
	local i
	rm -rf "$WORK/tree"
	git init -q "$WORK/tree"
	for ((i = 0; i < 20; i++)); do seq "$i" 3000 >"$WORK/tree/$i"; done
	git -C "$WORK/tree" add .
	git -C "$WORK/tree" -c user.name=a -c user.email=a@a commit -qm 'twenty files'
	run_well push a 100 git clone -q --bare "$WORK/tree" "$1/repository.git"
	run_well clone a 100 git clone -q "$1/repository.git" "$1/clone"
	diff -r -x .git "$WORK/tree" "$1/clone" || fail 'not the files that were committed'
	run_well fsck a 100 git -C "$1/clone" fsck --full --strict
}

# ---- both

replace_link() {
	modprobe rdma_rxe
	rdma link del "siw$([[ $ROLE == a ]] && echo 0 || echo 1)"
	rdma link add rxe0 type rxe netdev eth0
	echo 'driver rxe' >/etc/libibverbs.d/rxe.driver # lib.sh leaves siw's alone
}

remove_link() {
	rdma link del rxe0
	rmmod rdma_rxe
}
