#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/rpcrdma2.sh [REGEX]
#
# RPC-over-RDMA version two against a server that does one thing wrong: rpcpeer in namespace b answers the NFS client in a.
# The words are those of draft-cel-nfsv4-rpcrdma-version-two-01, section 4.2. tests/rpcserver.sh has rpcpeer call our server.
#
# Runs as rpcrdma2: 400 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly RPCPEER=$BUILD/rpcpeer/rpcpeer
readonly MAX_VERSION=/proc/sys/sunrpc/rdma_max_version
readonly MOUNT=/mnt/nfs
# The reply to a call of NFSv4's procedure 0
readonly NULL_REPLY='xid 1 0 0 0 0'
# An answer of the client to a call of xid 63, and that call, of NFSv4's callback procedure 0
readonly BAD_HEADER='20 octets: 63 2 [0-9a-f]+ 4 2$'
readonly CALLBACK='63 0 2 40000000 1 0 0 0 0 0'

# ---- the client

# mounts [version=N] [timeo=TENTHS] ANSWER…: a mount from a server that gives these answers
mounts() {
	local -a answers=()
	local words patience='' version=2
	[[ $1 != version=* ]] || { version=${1#*=} && shift; }
	[[ $1 != timeo=* ]] || { patience=,$1 && shift; }
	for words in "$@"; do answers+=(--answer "$words"); done
	# unmodified modules have version one alone
	[[ ! -e $MAX_VERSION ]] || echo "$version" >"$MAX_VERSION"
	start peer b 100 "$RPCPEER" serve "$(address b)" --seconds 1 "${answers[@]}"
	wait_ready peer '^listening'
	mkdir -p "$MOUNT"
	start mount a 100 mount -i -t nfs4 -o "vers=4.2,proto=rdma,port=20049,soft$patience,addr=$(address b),clientaddr=$(address a)" \
		"$(address b):/" "$MOUNT"
}

# The n-th line that the peer has printed
peer_said() { # N REGEX
	wait_for 40 "line $1 of the peer" eval "((\$(wc -l <'$WORK/peer.log') >= $1))"
	[[ $(sed -n "$1p" "$WORK/peer.log") =~ $2 ]] ||
		fail "line $1 of the peer is '$(sed -n "$1p" "$WORK/peer.log")', not '$2'"
}

stop_both() {
	stop mount KILL
	stop peer KILL
}

mount_has_ended_or_connects_again() {
	is_gone mount || (($(grep -c '^connection' "$WORK/peer.log") > 1))
}

# mount's text for EIO is "can't read superblock". sunrpc loses the status of a reply that overtakes the end of its own
# call_transmit(), as may happen on a slow host; then it connects again and sends the call once more.
fails_with() { # TEXT [version=N] ANSWER
	local try
	for try in 1 2 3 4; do
		mounts "${@:2}"
		wait_for 60 'the end of mount' mount_has_ended_or_connects_again
		! is_gone mount || break
		note "try $try: the status was lost"
		stop_both
	done
	ended mount 1
	has_line mount "$1" ||
		fail "mount ended with status $STATUS, and without '$1': $(paste -sd' ' "$WORK/mount.log"); the server: $(paste -sd'|' "$WORK/peer.log")"
	stop peer KILL
}

goes_on_with_one() { # ANSWER
	mounts "$1" "xid 1 40 0 0 0 0 $NULL_REPLY" none
	peer_said 2 connection
	peer_said 3 'octets: [0-9a-f]+ 2 '
	peer_said 4 'octets: [0-9a-f]+ 1 '
	# the first call of NFS, on the same connection
	peer_said 5 'octets: [0-9a-f]+ 1 '
	stop_both
}

next_begins_with_one() { # [timeo=TENTHS] ANSWER
	mounts "$@" "xid 1 40 0 0 0 0 $NULL_REPLY" none
	peer_said 3 'octets: [0-9a-f]+ 2 '
	peer_said 4 connection
	peer_said 5 'octets: [0-9a-f]+ 1 '
	stop_both
}

# A server that has used version two may lose one first message, not two
loses_first_messages() {
	local line=4 version
	mounts "xid 2 40 0 1 0 0 0 $NULL_REPLY" 'none close'
	peer_said 3 'octets: [0-9a-f]+ 2 '
	peer_said 4 'octets: [0-9a-f]+ 2 '
	for version in 2 2 1; do
		peer_said $((++line)) connection
		peer_said $((++line)) "octets: [0-9a-f]+ $version "
	done
	stop_both
}

settles_nothing() { # ANSWER
	mounts "$1" none
	peer_said 3 'octets: [0-9a-f]+ 2 '
	sleep 3
	[[ $(wc -l <"$WORK/peer.log") == 3 ]] ||
		fail "the client has sent more messages: $(tail -n +4 "$WORK/peer.log" | paste -sd'|')"
	is_gone mount && fail "mount has ended, it should still wait for the reply: $(paste -sd' ' "$WORK/mount.log")"
	stop_both
}

# The answer to the second message
is_dropped_later() { # ANSWER
	mounts "xid 2 40 0 1 0 0 0 $NULL_REPLY" "$1" none
	peer_said 4 'octets: [0-9a-f]+ 2 '
	sleep 3
	is_gone mount && fail "mount has ended, it should still wait for the reply: $(paste -sd' ' "$WORK/mount.log")"
	stop_both
}

# How many messages the client may have on its way when it sends one (a window of 256 for each)
windows() {
	sed -nE 's/.* xprt_get_cong: .* cwnd=([0-9]+).*/\1/p' "$TRACING/trace" | paste -sd' '
}

# After the NULL call, which a good server of version two answers, and with NFS's first call
answers_with() { # REGEX ANSWER…
	mounts "xid 2 40 0 1 0 0 0 $NULL_REPLY" "${@:2}" none
	peer_said 3 'octets: [0-9a-f]+ 2 '
	peer_said 4 'octets: [0-9a-f]+ 2 '
	peer_said 5 "$1"
	stop_both
}

readonly REASONS=(xprtrdma_reply_{drop,refuse,option}_err)

reasons_are_traced() {
	traces_only xprtrdma_reply_refuse_err answers_with "$BAD_HEADER" "63 2 1 2 0 0 0 0 $CALLBACK"
	traces_only xprtrdma_reply_option_err answers_with '20 octets: 63 2 [0-9a-f]+ 4 3$' '63 2 1 5 0 99 4 1'
	traces_only xprtrdma_reply_drop_err settles_nothing 'xid 2 40 4 2 xid 1 0 0 0 0'
}

# The server says 64 credits in a message that is no good reply
limit_stays() { # REGEX ANSWER
	echo >"$TRACING/trace"
	echo 1 >"$TRACING/events/sunrpc/xprt_get_cong/enable"
	mounts "$2" none
	peer_said 4 "$1"
	echo 0 >"$TRACING/events/sunrpc/xprt_get_cong/enable"
	stop_both
	[[ $(windows) =~ ^256( 256)*$ ]] || fail "the client's windows are $(windows), not 256 each"
}

# The RPC goes on to wait for its reply
is_taken_for_a_call() { # ANSWER
	local xid
	mounts "$1" none
	peer_said 3 'octets: [0-9a-f]+ 2 '
	xid=$(sed -nE '3s/.*octets: ([0-9a-f]+) .*/\1/p' "$WORK/peer.log")
	peer_said 4 "^20 octets: $xid 2 1 4 2$"
	is_gone mount && fail "mount has ended, it should still wait for the reply: $(paste -sd' ' "$WORK/mount.log")"
	stop_both
}

# RFC 1813 3.3: a server with a root directory and one file of 8192 octets. Its READ writes 4096 octets 'w' to the Write
# chunk, and answers with WORDS behind the header of the RPC.
reads_file() { # VERSION WORDS
	local head="xid $1 40 0 0" handle=7
	[[ $1 == 1 ]] || head="xid $1 40 0 1 0" handle=8
	local none="$head 0 0 $NULL_REPLY"
	local directory='2 1ed 2 0 0 0 1000 0 1000 0 0 0 1 0 1 0 0 0 0 0 0'
	local file='1 1a4 1 0 0 0 2000 0 2000 0 0 0 1 0 2 0 0 0 0 0 0'
	[[ ! -e $MAX_VERSION ]] || echo "$1" >"$MAX_VERSION"
	start mountd b 100 "${0%/*}/mountd.py" "$(address b)" 20048
	wait_ready mountd '^listening'
	start peer b 100 "$RPCPEER" serve "$(address b)" --seconds 1 --answer "$none" --procedure "1 $none 0 $directory" \
		--procedure "3 $none 0 4 66696c65 1 $file 0" --procedure "4 $none 0 0 3f" \
		--procedure "6 write $handle 1000 $head 1 1 7 1000 0 0 0 0 $NULL_REPLY $2" \
		--procedure "13 $none 0 0 2000 2000 1000 2000 2000 1000 1000 0 10000 0 1 1b" --procedure "14 $none 0 0 1 ff 0 0 0 1"
	wait_ready peer '^listening'
	mkdir -p "$MOUNT"
	# one shell, as `ip netns exec` has a mount table of its own
	# shellcheck disable=SC2016 # that shell's
	start read a 100 bash -c 'mount -i -t nfs -o "$1" "$2" "$3" && echo mounted && cat "$3/file" >"$4"' - \
		"vers=3,proto=rdma,port=20049,nolock,soft,addr=$(address b),mountproto=tcp,mountport=20048" "$(address b):/" "$MOUNT" \
		"$WORK/data"
	ended read 60
	has_line read '^mounted' || fail "not mounted: $(paste -sd' ' "$WORK/read.log")"
	stop peer KILL
	stop mountd KILL
}

# Neither attributes nor the end of the file: the head is 84 octets shorter than with attributes
short_head_is_right() { # VERSION
	reads_file "$1" '0 0 1000 0 1000'
	[[ $STATUS -eq 0 ]] || fail "reading failed: $(paste -sd' ' "$WORK/read.log"); the server: $(paste -sd'|' "$WORK/peer.log")"
	[[ $(<"$WORK/data") == $(printf 'w%.0s' {1..8192}) ]] ||
		fail "read $(wc -c <"$WORK/data") octets: $(head -c 100 "$WORK/data" | od -An -tx1 | head -n 7)"
}

# Without a status, 'wwww' follows the header
truncated_head_is_an_error() { # VERSION
	reads_file "$1" ''
	[[ $STATUS -ne 0 ]] || fail "read $(wc -c <"$WORK/data") octets"
}

modprobe rpcrdma
check 'RPC-12: a server of versions 1 to 3 answers ERR_VERS: the client continues with version one' goes_on_with_one 'xid 2 40 4 1 1 3'
check 'RPC-12: mount fails when a server answers ERR_VERS with versions 3 to 4' fails_with 'Protocol not supported' 'xid 2 40 4 1 3 4'
check 'RPC-13: a server answers ERR_VERS and closes: the next connection uses version one' next_begins_with_one 'xid 2 40 4 1 1 1 close'
check 'RPC-13: a server closes on a message of version two: the next connection uses version one' next_begins_with_one 'none close'
check 'RPC-13: a server does not answer version two: the next connection uses version one' next_begins_with_one timeo=30 none
check 'RPC-13: a server of version two closes on the first message of two connections: the third connection uses version one' loses_first_messages
check 'RPC-12: a server answers the first message with a bad header error: the client continues with version one' goes_on_with_one 'xid 2 40 4 2'
check 'RPC-16: mount fails when the server answers the second message with a bad header error' fails_with "can't read superblock" \
	"xid 2 40 0 1 0 0 0 $NULL_REPLY" 'xid 2 40 4 2'
check 'RPC-3: the client drops an error message with a payload and continues to wait' settles_nothing 'xid 2 40 4 2 xid 1 0 0 0 0'
check 'RPC-3: the client drops an error message of version one after a reply of version two and continues to wait' is_dropped_later 'xid 1 40 4 2'
check 'RPC-2: mount fails on a reply with an unterminated Write list' fails_with "can't read superblock" 'xid 2 40 0 1 0 1 1 5 6 0 7 1 1 5 6 0 7'
check 'RPC-6: the client answers a reply marked as a call with a bad header error, and continues to wait' is_taken_for_a_call "xid 2 40 0 0 0 0 0 $NULL_REPLY"
check 'RPC-10: the client drops a reply to an unknown xid and continues to wait' settles_nothing 'deadbeef 2 40 0 1 0 0 0 deadbeef 1 0 0 0 0'
check 'RPC-2: mount fails on a reply whose Reply chunk wraps the address space' fails_with "can't read superblock" \
	'xid 2 40 1 1 0 0 1 1 7 1001 ffffffff fffff000'
for version in 1 2; do
	words="xid $version 40 1$([[ $version == 1 ]] || echo ' 1') 0"
	check "F81: RPC-over-RDMA $version: mount fails on a reply with 4 GiB in its Reply chunk" fails_with "can't read superblock" \
		version=$version "$words 0 1 1 7 ffff0000 0 1000"
	check "F81: RPC-over-RDMA $version: mount fails on a reply with 64 KiB in a Reply chunk the call did not offer" \
		fails_with "can't read superblock" version=$version "$words 0 1 1 7 10000 0 1000"
	words="${words/ 40 1/ 40 0}"
	check "F81: RPC-over-RDMA $version: mount fails on a reply with 4 GiB in a Write chunk the call did not offer" \
		fails_with "can't read superblock" version=$version "$words 1 1 7 ffff0000 0 1000 0 0 $NULL_REPLY"
	check "F81: RPC-over-RDMA $version: mount fails on a reply with 4 octets in a Write chunk the call did not offer" \
		fails_with "can't read superblock" version=$version "$words 1 1 7 4 0 1000 0 0 $NULL_REPLY"
	check "F133: RPC-over-RDMA $version: the client reads a Write chunk behind a reply without attributes" short_head_is_right "$version"
	check "F133: RPC-over-RDMA $version: reading fails on a reply that ends before its status" truncated_head_is_an_error "$version"
done
check 'RPC-5: the client answers a message with an unknown option with an invalid option error' answers_with '20 octets: 63 2 [0-9a-f]+ 4 3$' '63 2 1 5 0 99 4 1'
check 'RPC-5: the trace events of the client distinguish a bad header, an unknown option and a dropped message' reasons_are_traced
check 'RPC-16: a callback with rdma_proc 2, which version two has removed, gets a bad header error' answers_with "$BAD_HEADER" "63 2 1 2 0 0 0 0 $CALLBACK"
check 'RPC-6: a callback marked as a reply gets a bad header error' answers_with "$BAD_HEADER" "63 2 1 0 1 0 0 0 $CALLBACK"
check 'RPC-8: a callback with a Read chunk gets a bad header error' answers_with "$BAD_HEADER" "63 2 1 0 0 1 4 7 4 0 0 0 0 0 $CALLBACK"
check 'RPC-16: a callback with an unterminated Write list gets a bad header error' answers_with "$BAD_HEADER" '63 2 1 0 0 0 1 1 5 6 0 7 1 1 5 6 0 7'
check 'RPC-10: the client ignores the credits in an error message' limit_stays 'octets: [0-9a-f]+ 1 ' 'xid 2 40 4 1 1 1'
finish
