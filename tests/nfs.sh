#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --pair [--stock=a|--stock=b] --packages LIST -- tests/nfs.sh [REGEX]
#
# RPC-over-RDMA version two under NFSv4.2: b is the server, a the client. Either may have unmodified modules. Runs on
# both machines, over siw and then over rxe. LIST: nfs-common,nfs-kernel-server,fio
#
# Runs as nfs nfs-sctp nfs-streams nfs-a nfs-b: --pair --packages nfs-common,nfs-kernel-server,fio; 900 s
# Sample nfs: siw: (the highest|each|data|a READ|a client|a server|an ERROR|version one)
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/nfsserver.sh
source "${0%/*}/nfsserver.sh"

readonly EVENTS=$TRACING/events/rpcrdma

count_events() { # REGEX
	grep -cE "$1" "$TRACING/trace" || true
}

# ---- the server

start_server() {
	prepare_server
	echo 12288 >"$SUNRPC/svc_rdma/max_req_size"
	cat "$SERVER_MAX_VERSION" >"$EXPORT/server" 2>/dev/null || echo 1 >"$EXPORT/server"
	echo old | tee "$EXPORT/delegated" >"$EXPORT/heldfile"
	echo >"$TRACING/trace"
	echo 1 >"$EVENTS/svcrdma_decode_rqst/enable"
	start_threads
}

# The client holds a delegation until the server has called it back
change_delegated_file() {
	echo new >"$EXPORT/delegated"
	touch "$EXPORT/changed"
}

# Sends 4 KiB at most from now on, as by default
announce_less() {
	echo 4096 >"$SUNRPC/svc_rdma/max_req_size"
	touch "$EXPORT/less"
}

count_failed_calls() {
	count_events 'rpc_task_end.*status=-5 '
}

# The peer holds a delegation, and answers its recall by an ERROR: the RPC fails at once (-EIO), not after 9 s
recall_from_peer() {
	local begin second info writer
	echo 1 >"$TRACING/events/sunrpc/rpc_task_end/enable"
	begin=$(date +%s)
	# shellcheck disable=SC2016 # for that shell
	timeout 100 sh -c 'echo new >"$1/heldfile"' sh "$EXPORT" &
	writer=$!
	for ((second = 0; second < 30; second++)); do
		[[ $(count_failed_calls) == 0 ]] || break
		sleep 1
	done
	echo $(($(date +%s) - begin)) >"$EXPORT/recalled"
	# it will not return the delegation for which the writer waits
	for info in /proc/fs/nfsd/clients/*/info; do
		! grep -q '"peer"' "$info" || echo expire >"${info%info}ctl"
	done
	wait "$writer"
	echo 0 >"$TRACING/events/sunrpc/rpc_task_end/enable"
}

# Does what the client asks for: a few cases ask for less than all
client_is_done() {
	[[ ! -e $EXPORT/announce || -e $EXPORT/less ]] || announce_less
	[[ ! -e $EXPORT/recall || -e $EXPORT/recalled ]] || recall_from_peer
	[[ ! -e $EXPORT/opened || -e $EXPORT/changed ]] || change_delegated_file
	[[ ! -e $EXPORT/restart || -e $EXPORT/restarted ]] || { restart_threads && touch "$EXPORT/restarted"; }
	[[ -s $EXPORT/done ]]
}

serve() {
	local v1 v2 client least=15
	start_server
	wait_for 600 'the client to be done' client_is_done
	[[ ! -e $EXPORT/restarted ]] || least=150
	client=$(<"$EXPORT/done")
	v1=$(count_events 'vers=1 ') v2=$(count_events 'vers=2 ')
	note "messages from the client: $v1 of version 1, $v2 of version 2"
	if [[ $client == 2 && -e $SERVER_MAX_VERSION ]]; then
		[[ $v2 -gt $least && $v1 -gt 0 && $v1 -lt 50 ]] ||
			fail "$v2 messages of version 2 and $v1 of version 1, expected more than $least, and 1 to 49 of the mount with the default setting"
	else
		[[ $v2 == 0 && $v1 -gt $least ]] ||
			fail "$v2 messages of version 2 and $v1 of version 1, expected 0 and more than $least"
	fi
	echo 0 >"$EVENTS/svcrdma_decode_rqst/enable"
	stop_server
}

# ---- the client

readonly RPCPEER=$BUILD/rpcpeer/rpcpeer

# A connection that ends before its first message is answered would teach the client that there is no version two
server_answers() {
	[[ $(timeout 20 "$RPCPEER" call "$(address b)" 7e 1 1 0 0 0 0 7e 0 2 186a3 4 0 0 0 0 0 2>/dev/null) == '52 octets: 7e 1 '* ]]
}

mount_soft() {
	# a file that the server makes is seen at once
	wait_for 120 'a mount' mount_with soft,lookupcache=positive
}

version_here() {
	[[ -e $MAX_VERSION ]] && echo 2 || echo 1
}

negotiates() {
	local refused=0 seen
	modprobe rpcrdma
	[[ ! -e $MAX_VERSION ]] || echo 2 >"$MAX_VERSION"
	echo >"$TRACING/trace"
	echo 1 | tee "$EVENTS"/{xprtrdma_err_vers,xprtrdma_op_connect,xprtrdma_disconnect,xprtrdma_settle_v[12]}/enable >/dev/null || true
	wait_for 200 'the server' server_answers
	mount_soft
	ls "$MOUNT" >"$WORK/list"
	[[ $(version_here) == 1 || $(<"$MOUNT/server") == 2 ]] || refused=1
	seen=$(count_events xprtrdma_err_vers)
	[[ $seen == "$refused" ]] ||
		fail "the client received $seen ERR_VERS, not $refused: $(grep -v '^#' "$TRACING/trace" | paste -sd'|')"
	[[ $(connections) == 1 ]] || fail "the mount has had $(connections) connections, not 1"
	has_version $(($(version_here) - refused))
	[[ $(version_here) == 1 || $(count_events "settle_v$((2 - refused))") == 1 ]] ||
		fail "not exactly one event settle_v$((2 - refused)) reports the version"
}

data_is_kept() {
	local i
	seq 1 450000 >"$WORK/data"
	cp "$WORK/data" "$MOUNT/data"
	for ((i = 0; i < 30; i++)); do echo "$i" >"$MOUNT/file$i"; done
	# nothing in the cache is of use after this
	umount "$MOUNT"
	mount_soft
	cmp "$WORK/data" "$MOUNT/data"
	[[ $(cat "$MOUNT"/file* | wc -l) == 30 ]] || fail 'the 30 files read back do not have 30 lines'
	rm "$MOUNT"/file*
	[[ $(connections) == 1 ]] || fail "the mount has had $(connections) connections, not 1"
}

verifies() {
	run_well fio a 150 fio --name=verify --directory="$MOUNT" --size=8m --bs=64k --rw=randwrite --direct=1 --ioengine=sync \
		--verify=crc32c --verify_fatal=1 --minimal
}

# Somebody writes all the time
survives_a_restart() {
	local before lines
	before=$(connections)
	# shellcheck disable=SC2016 # for that shell
	start writer a 200 bash -ec 'i=0
		until ((i > 20)) && [[ -e $1/restarted ]]; do
			echo $((++i)) >>"$1/lines"
			((i != 10)) || touch "$1/restart"
		done' sh "$MOUNT"
	ended_well writer 210
	lines=$(wc -l <"$MOUNT/lines")
	cmp "$MOUNT/lines" <(seq "$lines") || fail "the file does not have the lines 1 to $lines, as written"
	[[ $(connections) -gt $before ]] ||
		fail 'the client has not connected again, so the restart did not end its connection'
}

# With our dissector, over RoCE: over TCP, Wireshark does not find the messages behind a Reply of MPA revision 2
is_decoded() {
	umount "$MOUNT"
	start tcpdump-nfs a 300 tcpdump -Z root -U --immediate-mode -s 65535 -B 16384 -i eth0 -w "$WORK/nfs.pcap" udp port 4791
	wait_ready tcpdump-nfs 'listening on'
	mount_soft
	ls "$MOUNT" >"$WORK/list"
	capture_end nfs
	run_well tshark a 100 tshark -X "lua_script:${TESTS%/*}/tools/wireshark/rpcrdma2.lua" -r "$WORK/nfs.pcap" \
		-Y rpcrdma2 -T fields -e rpcrdma2.vers -e rpcrdma2.direction -e rpcrdma2.problem
	has_line tshark '^2	0	$' || fail 'tshark decodes no call of RPC-over-RDMA version two'
	has_line tshark '^2	1	$' || fail 'tshark decodes no reply of RPC-over-RDMA version two'
	! has_line tshark '^2	[01]?	.' ||
		fail "tshark reports a malformed message: $(grep -m 1 -E '^2	[01]?	.' "$WORK/tshark.log")"
}

is_called_back() {
	echo 1 >"$EVENTS/xprtrdma_cb_call/enable"
	exec {file}<"$MOUNT/delegated"
	read -r -u "$file"
	[[ $REPLY == old ]]
	touch "$MOUNT/opened"
	wait_for 60 'the server to change the file' test -e "$MOUNT/changed"
	exec {file}<&-
	[[ $(<"$MOUNT/delegated") == new ]] ||
		fail "the client reads '$(<"$MOUNT/delegated")' after the recall, not 'new'"
	[[ $(count_events xprtrdma_cb_call) -gt 0 ]] || fail 'the client received no callback'
}

# reads OCTETS REGEX [OPTION VALUE]: a COMPOUND of PUTROOTFH, LOOKUP and READ, with no chunk for the octets (hexadecimal)
reads() {
	local got call="7e 0 2 186a3 4 1 1 14 0 0 0 0 0 0 0 0 0 3 18 f 4 64617461 19 0 0 0 0 0 0 $1"
	shift
	# shellcheck disable=SC2086 # words
	got=$(timeout 30 "$RPCPEER" call "$(address b)" "${@:2}" 7e 2 1 0 0 0 0 0 $call 2>&1) ||
		fail "rpcpeer fails: $got"
	[[ $got =~ ^($1)$ ]] || fail "the server answers '$got', not '$1'"
}

announces_less() {
	touch "$MOUNT/announce"
	wait_for 30 'the server to announce less' test -e "$MOUNT/less"
	reads "$@"
}

# NFSv4.1 by hand: a session with a backchannel, a read delegation of `heldfile`, and an ERROR for its recall. sunrpc loses
# the status of an answer that overtakes the end of call_transmit(), and sends the call again: so there are more ERRORs.
error_ends_a_callback() {
	local auth='1 14 0 0 0 0 0 0 0' head='2 1 0 0 0 0 0' session='r19 r20 r21 r22' took
	local compound="2 186a3 4 1 $auth 0 1"
	# shellcheck disable=SC2086 # words
	start rpcpeer a 100 "$RPCPEER" call "$(address b)" --seconds 20 --show 30 \
		--next "7f $head 7f 0 $compound 1 2b r19 r20 r21 2 0 1000 1000 200 8 1 0 0 1000 1000 0 2 1 0 40000000 1 0" \
		--next "80 $head 80 0 $compound 2 35 $session 1 0 0 0 3a 0" \
		--next "81 $head 81 0 $compound 3 35 $session 2 0 0 0 18 12 0 1 0 0 0 4 70656572 0 0 8 68656c64 66696c65" \
		--next none --next 'xid 2 1 4 2' --next 'xid 2 1 4 2' --next 'xid 2 1 4 2' --next 'xid 2 1 4 2' \
		7e $head 7e 0 $compound 1 2a 0 1 4 70656572 0 0 0
	# shellcheck disable=SC2016 # for eval
	wait_for 60 'a delegation' eval '[[ $(grep -c " octets:" "$WORK/rpcpeer.log") -ge 4 ]]'
	touch "$MOUNT/recall"
	wait_for 60 'the recall' test -s "$MOUNT/recalled"
	took=$(<"$MOUNT/recalled")
	note "the callback ended after $took s: $(tail -n +2 "$WORK/rpcpeer.log" | paste -sd'|')"
	((took < 5)) || fail "the callback ended after $took s"
	stop rpcpeer
}

default_is_one() {
	local before
	before=$(count_events xprtrdma_err_vers)
	umount "$MOUNT"
	[[ ! -e $MAX_VERSION ]] || echo 1 >"$MAX_VERSION"
	mount_soft
	ls "$MOUNT" >"$WORK/list"
	[[ $(count_events xprtrdma_err_vers) == "$before" ]] ||
		fail 'the client received an ERR_VERS, so it has tried version two'
	has_version ''
	version_here >"$MOUNT/done"
	umount "$MOUNT"
}

# ---- both

work_over() { # LINK
	if [[ $ROLE == b ]]; then
		check "RPC-15: $1: each reply has the RPC-over-RDMA version of its call" serve
		return
	fi
	check "RPC-11, RPC-12: $1: the highest common version of RPC-over-RDMA is used on the first connection" negotiates
	check "RPC-9, RPC-14: $1: data written over NFS is read back unchanged, on a single connection" data_is_kept
	check "$1: git clones a repository over NFS" clones_a_repository "$MOUNT"
	check "$1: fio verifies its data over NFS" verifies
	check "RPC-8: $1: the server recalls an NFSv4 delegation by a callback" is_called_back
	check "RPC-10: $1: a program continues to write to its NFS mount while nfsd is restarted" survives_a_restart
	# both have version two
	if [[ $(version_here) == 2 && $(cat "$MOUNT/server" 2>/dev/null) == 2 ]]; then
		check "RPC-9: $1: a READ of 8000 octets without a Write chunk gets a bad header error" reads 1f40 '20 octets: 7e 2 [0-9a-f]+ 4 2'
		# RFC 8797: magic, version, flags, and sizes of sends and receives in KiB, less one
		check "RPC-9: $1: a client with receives of 16 KiB gets a READ of 8000 octets inline" \
			reads 1f40 '8[0-9]{3} octets: 7e 2 [0-9a-f]+ 0 1 0 0 0 7e 1 .*' --private 'f6ab0e18 0100030f'
		# F138. Linux's client makes its Receives as small as the server's Sends
		check "RPC-9: $1: a server with sends of 4 KiB sends no READ of 8000 octets inline, even to a client with receives of 16 KiB" \
			announces_less 1f40 '20 octets: 7e 2 [0-9a-f]+ 4 2' --private 'f6ab0e18 0100030f'
		check "RPC-8: $1: an ERROR message of the client ends an NFS callback within 5 s" error_ends_a_callback
		[[ $1 != rxe ]] || check 'tshark decodes RPC-over-RDMA version two over rxe' is_decoded
	fi
	check "$1: version one of RPC-over-RDMA is the default" default_is_one
}

work_over siw
# not every kernel has rxe
if modprobe -nq rdma_rxe; then
	check 'a siw link that NFS has used can be replaced by an rxe link' replace_link
	work_over rxe
	check 'an rxe link that NFS has used can be removed' remove_link
fi
finish
