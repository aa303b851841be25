#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --packages nfs-common,nfs-kernel-server -- tests/rpcbench.sh [ROUNDS [FILES]]
#
# For scripts/bench-rpc: the same metadata operations of NFSv4.2 with version one of RPC-over-RDMA at 1024 octets inline,
# at 4096, and with version two, by turns. b is the server, a the client, which prints a line of JSON for each:
#	{"how": …, "rpcs": N, "seconds": S, "long_calls": N, "long_replies": N, "registrations": N, "invalidations": N}
rounds=${1:-3} files=${2:-200}
set --
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly EXPORT=/srv/export MOUNT=/mnt/nfs
readonly EVENTS=$TRACING/events/rpcrdma SUNRPC=/proc/sys/sunrpc

client_is_gone() {
	[[ -z $(ls /proc/fs/nfsd/clients) ]]
}

serve() {
	modprobe rpcrdma
	echo 2 >$SUNRPC/svc_rdma/max_version
	mkdir -p "$EXPORT" /var/lib/nfs/{rpc_pipefs,v4recovery} /proc/fs/nfsd
	mount -t tmpfs tmpfs "$EXPORT"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	echo "$EXPORT *(rw,async,no_root_squash,no_subtree_check,insecure,fsid=0)" >/etc/exports
	touch /var/lib/nfs/{etab,rmtab}
	exportfs -r
	rpc.mountd -N 3
	rpc.nfsd -N 3 -G 10 -L 10 --rdma=20049 4
	wait_for 3000 'the client to be done' test -e "$EXPORT/done"
	wait_for 60 'the client to go' client_is_gone
	rpc.nfsd 0
	exportfs -ua
	pkill -x rpc.mountd || true
	umount "$EXPORT" /proc/fs/nfsd
}

# Columns of the transport's line in mountstats: sends, long calls, long replies
columns() {
	awk '$1 == "xprt:" && $2 == "rdma" { print $8, $23, $15 }' /proc/self/mountstats
}

hits() { # EVENT…
	local event
	for event; do sed -n 's/^ *Hits: //p' "$EVENTS/$event/hist"; done | paste -sd+ | bc
}

# Each name is new to the client's caches, or they are dropped
work_in() { # DIRECTORY
	local i
	mkdir "$1"
	for ((i = 0; i < files; i++)); do : >"$1/a-file-of-some-name-$i"; done
	echo 3 >/proc/sys/vm/drop_caches
	for ((i = 0; i < files; i++)); do [[ -e $1/a-file-of-some-name-$i ]]; done
	echo 3 >/proc/sys/vm/drop_caches
	# ls would ask for extended attributes, too
	find "$1" -printf '%s\n' >/dev/null
	rm -r "$1"
}

measure() { # HOW MAX-VERSION OCTETS
	local event start end
	local -a before after
	echo "$2" >$SUNRPC/rdma_max_version
	echo "$3" | tee $SUNRPC/rdma_max_inline_{read,write} >/dev/null
	wait_for 120 'a mount' mount -t nfs4 -o vers=4.2,rdma,port=20049 "$(address b):/" "$MOUNT"
	# the last column, if version two is on
	[[ $(awk '$1 == "xprt:" { print $30 }' /proc/self/mountstats) == "${2#1}" ]] || fail 'not the version'
	for event in xprtrdma_mr_{fastreg,localinv,reminv}; do
		echo 'hist:keys=common_type' >"$EVENTS/$event/trigger"
	done
	read -ra before < <(columns)
	start=$(now_ms)
	work_in "$MOUNT/work"
	end=$(now_ms)
	read -ra after < <(columns)
	jq -cn --arg how "$1" --argjson rpcs $((after[0] - before[0])) --argjson ms $((end - start)) \
		--argjson calls $((after[1] - before[1])) --argjson replies $((after[2] - before[2])) \
		--argjson registrations "$(hits xprtrdma_mr_fastreg)" \
		--argjson invalidations "$(hits xprtrdma_mr_localinv xprtrdma_mr_reminv)" \
		'{how: $how, rpcs: $rpcs, seconds: ($ms / 1000), long_calls: $calls, long_replies: $replies,
			registrations: $registrations, invalidations: $invalidations}'
	for event in xprtrdma_mr_{fastreg,localinv,reminv}; do
		echo '!hist:keys=common_type' >"$EVENTS/$event/trigger"
	done
	umount "$MOUNT"
}

measures() {
	local i
	modprobe rpcrdma
	mkdir -p "$MOUNT"
	for ((i = 0; i < rounds; i++)); do
		measure 'version 1, 1024 octets' 1 1024
		measure 'version 1, 4096 octets' 1 4096
		measure 'version 2' 2 4096
	done
	wait_for 60 'a mount' mount -t nfs4 -o vers=4.2,rdma,port=20049 "$(address b):/" "$MOUNT"
	touch "$MOUNT/done"
	umount "$MOUNT"
}

if [[ $ROLE == b ]]; then check 'serves' serve; else check 'measures' measures; fi
finish
