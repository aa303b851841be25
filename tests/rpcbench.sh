#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --packages nfs-common,nfs-kernel-server -- tests/rpcbench.sh [ROUNDS [FILES [siw|rxe]]]
#
# For scripts/bench-rpc: the same work over NFSv4.2 with version one of RPC-over-RDMA and with version two, and several
# sizes inline, by turns whose order changes. b is the server, a the client, which prints a line of JSON for each:
#	{"link": …, "round": N, "how": …, "mount": S, "rpcs": N, "seconds": S, "long_calls": N, "long_replies": N,
#	 "registrations": N, "invalidations": N, "write": S, "read": S, "busy": S}
# rpcs to invalidations are of the metadata operations; write and read are of 16 MiB; busy is the client's processor time.
rounds=${1:-3} files=${2:-200} link=${3:-siw}
set --
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

# shellcheck source=tests/nfsserver.sh
source "${0%/*}/nfsserver.sh"

readonly EVENTS=$TRACING/events/rpcrdma

# Columns of the transport's line in mountstats: sends, long calls, long replies
columns() {
	awk '$1 == "xprt:" && $2 == "rdma" { print $8, $23, $15 }' /proc/self/mountstats
}

hits() { # EVENT
	sed -n 's/^ *Hits: //p' "$EVENTS/$1/hist"
}

declare -A hits_of

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

# How long the client's processors have worked, in ms; USER_HZ is 100
busy_ms() {
	awk '$1 == "cpu" { print ($2 + $3 + $4 + $7 + $8) * 10 }' /proc/stat
}

# timed COMMAND…: prints ms
timed() {
	local from
	from=$(now_ms)
	"$@" >/dev/null 2>&1 || fail "$*"
	echo $(($(now_ms) - from))
}

measure() { # ROUND HOW MAX-VERSION OCTETS
	local event start end busy mount write read round=$1
	local -a before after
	shift
	echo "$2" >$SUNRPC/rdma_max_version
	echo "$3" | tee $SUNRPC/rdma_max_inline_{read,write} >/dev/null
	busy=$(busy_ms)
	mount=$(timed mount_it)
	has_version "${2#1}"
	for event in xprtrdma_mr_{fastreg,localinv,reminv}; do
		echo 'hist:keys=common_type' >"$EVENTS/$event/trigger"
	done
	read -ra before < <(columns)
	start=$(now_ms)
	work_in "$MOUNT/work"
	end=$(now_ms)
	read -ra after < <(columns)
	for event in xprtrdma_mr_{fastreg,localinv,reminv}; do
		hits_of[$event]=$(hits "$event")
		echo '!hist:keys=common_type' >"$EVENTS/$event/trigger"
	done
	write=$(timed dd if=/dev/zero of="$MOUNT/data" bs=1M count=16 conv=fsync)
	echo 3 >/proc/sys/vm/drop_caches
	read=$(timed dd if="$MOUNT/data" of=/dev/null bs=1M)
	rm "$MOUNT/data"
	jq -cn --arg how "$1" --argjson rpcs $((after[0] - before[0])) --argjson ms $((end - start)) \
		--argjson calls $((after[1] - before[1])) --argjson replies $((after[2] - before[2])) \
		--argjson registrations "${hits_of[xprtrdma_mr_fastreg]}" \
		--argjson invalidations $((hits_of[xprtrdma_mr_localinv] + hits_of[xprtrdma_mr_reminv])) \
		--argjson round "$round" --arg link "$link" --argjson mount "$mount" --argjson write "$write" --argjson read "$read" \
		--argjson busy $(($(busy_ms) - busy)) \
		'{link: $link, round: $round, how: $how, mount: ($mount / 1000), rpcs: $rpcs, seconds: ($ms / 1000), long_calls: $calls,
			long_replies: $replies, registrations: $registrations, invalidations: $invalidations,
			write: ($write / 1000), read: ($read / 1000), busy: ($busy / 1000)}'
	umount "$MOUNT"
}

# Version and octets inline
readonly HOWS=('1 1024' '1 4096' '2 4096' '1 16384' '2 16384')

measures() {
	local round i number version octets
	modprobe rpcrdma
	wait_for 120 'the server' mount_it
	umount "$MOUNT"
	for ((round = 0; round < rounds; round++)); do
		for ((i = 0; i < ${#HOWS[@]}; i++)); do
			number=$(((i + round) % ${#HOWS[@]}))
			((round % 2)) || number=$((${#HOWS[@]} - 1 - number))
			read -r version octets <<<"${HOWS[number]}"
			measure "$round" "version $version, $octets octets" "$version" "$octets"
		done
	done
	mount_it
	touch "$MOUNT/done"
	umount "$MOUNT"
}

serves() {
	modprobe rpcrdma
	echo 16384 >$SUNRPC/svc_rdma/max_req_size
	serve_until_done 3000
}

[[ $link == siw ]] || replace_link
if [[ $ROLE == b ]]; then check 'the NFS server runs until the measurements end' serves; else check 'NFS over RDMA and TCP is measured' measures; fi
[[ $link == siw ]] || remove_link
finish
