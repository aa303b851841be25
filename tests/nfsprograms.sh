#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair --packages LIST -- tests/nfsprograms.sh [REGEX]
#
# Programs of others over NFSv4.2, with RPC-over-RDMA version one and with version two: the same has to work in both. b is
# the server, a the client. LIST: nfs-common,nfs-kernel-server,dbench,fio
#
# Runs as nfsprograms: --pair --mem 3072 --packages nfs-common,nfs-kernel-server,fio,dbench; 5700 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/nfsserver.sh
source "${0%/*}/nfsserver.sh"

begin() { # VERSION
	modprobe rpcrdma
	echo "$1" >"$MAX_VERSION"
	wait_for 120 'a mount' mount_it
	has_version "${1#1}"
	mkdir "$MOUNT/work"
}

end() {
	rm -r "$MOUNT/work"
	umount "$MOUNT"
}

dbench_runs() {
	run_well dbench a 200 dbench -c /usr/share/dbench/client.txt -D "$MOUNT/work" -t 15 4
	note "$(grep Throughput "$WORK/dbench.log")"
}

# All of the kernel's source that its program objtool is built from. A whole source takes hours in emulation. In user-mode
# Linux, the 78,579 files of Linux 6.1 were unpacked once with each version at the same time, in 103 s both, and a
# kernel was made from them (tinyconfig, 489 objects): vmlinux.o was the same with both.
unpack_kernel() {
	local source=linux-source-6.1
	mkdir /tmp/linux
	run_well xz a 1000 tar -xJf /usr/src/$source.tar.xz -C /tmp/linux --strip-components=1 \
		$source/tools/{arch,build,include,lib,objtool,scripts}
	tar -C /tmp/linux -cf /tmp/linux.tar .
	note "$(find /tmp/linux -type f | wc -l) files"
}

compiles_objtool() {
	local source=$MOUNT/work/linux
	mkdir "$source"
	run_well unpack a 900 tar -xf /tmp/linux.tar -C "$source"
	umount "$MOUNT"
	mount_it
	run_well compare a 600 diff -r --no-dereference /tmp/linux "$source"
	run_well make a 1200 make -sC "$source/tools/objtool" -j 4
	note "$(find "$source" -name '*.o' | wc -l) objects"
	{ "$source/tools/objtool/objtool" --help 2>&1 || true; } | grep -qi 'usage: objtool'
}

# Ten programs append to one file under a lock, and each writes a file of its own
ten_writers() {
	local writer
	for writer in {0..9}; do
		# shellcheck disable=SC2016 # for that shell
		start "writer$writer" a 200 bash -ec 'for ((i = 0; i < 10; i++)); do
			flock "$1/lock" -c "echo $2 $i >>$1/lines"
			seq "$2$i" 2000 >>"$1/own$2"
		done' sh "$MOUNT/work" "$writer"
	done
	for writer in {0..9}; do ended_well "writer$writer" 210; done
	[[ $(sort "$MOUNT/work/lines" | uniq | wc -l) == 100 ]] || fail 'lines are missing'
	for writer in {0..9}; do
		cmp "$MOUNT/work/own$writer" <(for i in {0..9}; do seq "$writer$i" 2000; done) || fail 'the written data differs'
	done
}

# An idle client would not connect again
is_connected_again() { # CONNECTIONS
	touch "$MOUNT/work/data"
	(($(connections) > $1))
}

survives_a_restart() {
	local before
	before=$(connections)
	start dd a 200 dd if=/dev/urandom of="$MOUNT/work/data" bs=64k count=100 oflag=sync
	wait_for 60 'it to write' test -s "$MOUNT/work/data"
	touch "$MOUNT/restart"
	ended_well dd 210
	wait_for 60 'a new connection' is_connected_again "$before"
	[[ $(stat -c %s "$MOUNT/work/data") == $((100 * 65536)) ]] || fail 'not all has been written'
}

client_is_killed() {
	start victim a 200 dd if=/dev/zero of="$MOUNT/work/victim" bs=64k count=100000 oflag=sync
	wait_for 60 'it to write' test -s "$MOUNT/work/victim"
	stop victim KILL
	echo alive >"$MOUNT/work/alive"
	umount "$MOUNT"
	mount_it
	[[ $(<"$MOUNT/work/alive") == alive ]]
}

fio_verifies() {
	run_well fio a 200 fio --name=verify --directory="$MOUNT/work" --size=4m --bs=4k --rw=randrw --numjobs=4 --ioengine=sync \
		--verify=crc32c --verify_fatal=1 --minimal
}

declare -A seconds=()

program() { # VERSION NAME CLAIM FUNCTION [ARG…]
	local begin=$SECONDS
	check "RPC-over-RDMA version $1: $3" "${@:4}"
	seconds[$1 $2]=$((SECONDS - begin))
}

works_with() { # VERSION
	check "RPC-over-RDMA version $1: an NFSv4.2 mount succeeds" begin "$1"
	program "$1" dbench 'dbench completes over NFS' dbench_runs
	program "$1" objtool 'objtool of a kernel source is unpacked to NFS, read back and compiled' compiles_objtool
	program "$1" git 'git clones a repository over NFS' clones_a_repository "$MOUNT/work"
	program "$1" writers 'data of ten concurrent writers is read back unchanged over NFS' ten_writers
	program "$1" fio 'fio verifies the data of four jobs over NFS' fio_verifies
	program "$1" restart 'dd continues to write while nfsd is restarted' survives_a_restart
	program "$1" kill 'after a writing program is killed, its NFS mount can be written to and unmounted' client_is_killed
	check "RPC-over-RDMA version $1: the NFS mount can be unmounted after all programs" end
}

# Of the cases that ran
show_seconds() {
	local name
	note '| program | version one, s | version two, s |'
	note '| :-- | --: | --: |'
	for name in dbench objtool git writers fio restart kill; do
		note "| $name | ${seconds[1 $name]} | ${seconds[2 $name]} |"
	done
}

is_done() {
	mount_it
	touch "$MOUNT/done"
	umount "$MOUNT"
}

if [[ $ROLE == b ]]; then
	check 'the NFS server runs without a failure until all tests of the client machine have ended' serve_until_done 5400
else
	check 'objtool of a kernel source is unpacked to a local file system, for comparison with NFS' unpack_kernel
	works_with 1
	works_with 2
	show_seconds
	check 'all tests of the client machine have ended, and the NFS server stops' is_done
fi
finish
