#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/rpcserver.sh [REGEX]
#
# The NFS server against messages of RPC-over-RDMA that are wrong, of version one (RFC 8166) and of version two
# (draft-cel-nfsv4-rpcrdma-version-two-01): rpcpeer in namespace a sends them word by word to nfsd in b. tests/rpcrdma2.sh
# has rpcpeer answer our client.
#
# Runs as rpcserver: 400 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly RPCPEER=$BUILD/rpcpeer/rpcpeer
readonly NFSD=/run/nfsd
readonly MAX_VERSION=/proc/sys/sunrpc/svc_rdma/max_version
# A call of NFSv4's procedure 0, and the server's answers to it and to bad headers
readonly NULL='7e 0 2 186a3 4 0 0 0 0 0'
readonly NULL_REPLY='52 octets: 7e 1 [0-9a-f]+ 0 0 0 0 7e 1 0 0 0'
readonly NULL_REPLY_2='56 octets: 7e 2 [0-9a-f]+ 0 1 0 0 0 7e 1 0 0'
readonly ERR_CHUNK='20 octets: 7e 1 [0-9a-f]+ 4 2'
readonly BAD_HEADER='20 octets: 7e 2 [0-9a-f]+ 4 2'
# Octets of the largest READ and WRITE: a call may have few pages
readonly BLOCK=32768

# In the network namespace b alone: the end of the mount is the end of the server
in_b() {
	nsenter --net=/run/netns/b "$@"
}

set_nfsd() { # FILE WORDS
	in_b tee "$NFSD/$1" <<<"$2" >/dev/null
}

starts() {
	modprobe nfsd
	modprobe rpcrdma
	[[ ! -e $MAX_VERSION ]] || echo 2 >"$MAX_VERSION"
	mkdir -p /var/lib/nfs/v4recovery "$NFSD"
	in_b mount -t nfsd nfsd "$NFSD"
	set_nfsd max_block_size "$BLOCK"
	# no lockd
	set_nfsd versions -3
	# a wildcard listener listens on all devices: here, two would have the same address and port
	rdma link del siw0
	set_nfsd portlist 'rdma 20049'
	set_nfsd threads 4
	# what mountd says of a: it belongs to a domain, so that its calls of COMPOUND are taken
	in_b tee /proc/net/rpc/auth.unix.ip/channel <<<"nfsd $(address a) $(($(date +%s) + 86400)) client" >/dev/null
	add_device a siw0
}

# A thread that does not return would keep this waiting
stops() {
	# shellcheck disable=SC2016 # for that shell
	run_well stop b 60 sh -c 'echo 0 >"$1/threads"' sh "$NFSD"
	umount "$NFSD"
}

# answered REGEX [OPTION VALUE]… WORDS
answered() {
	local got
	# shellcheck disable=SC2068 # words
	got=$(within a timeout 30 "$RPCPEER" call "$(address b)" "${@:2:$#-2}" ${@:$#} 2>&1) || fail "rpcpeer: $got"
	[[ $got =~ ^($1)$ ]] || fail "$got"
}

# The server must be well after a wrong message
wrong() { # REGEX [OPTION VALUE]… WORDS
	answered "$@"
	answered "$NULL_REPLY" "7e 1 1 0 0 0 0 $NULL"
}

# ---- chunks; the words behind the version are those of version one, and PROC is the first

# in_both [OPTION VALUE]… PROC LISTS-AND-PAYLOAD: a header that is bad in version one and in version two
bad_in_both() {
	local -a options=("${@:1:$#-2}")
	wrong "$ERR_CHUNK" "${options[@]}" "7e 1 1 ${*: -2:1} ${*: -1}"
	# unmodified modules have version one alone
	[[ -e $MAX_VERSION ]] || return 0
	wrong "$BAD_HEADER" "${options[@]}" "7e 2 1 ${*: -2:1} 0 ${*: -1}"
}

good_in_both() {
	local -a options=("${@:1:$#-2}")
	answered "$NULL_REPLY" "${options[@]}" "7e 1 1 ${*: -2:1} ${*: -1}"
	[[ -e $MAX_VERSION ]] || return 0
	answered "$NULL_REPLY_2" "${options[@]}" "7e 2 1 ${*: -2:1} 0 ${*: -1}"
}

# read_segment POSITION LENGTH [OFFSET]: hexadecimal
read_segment() {
	printf '1 %x key %x high low+%x ' "$1" "$2" "${3:-0}"
}

# Lengths about the limit: the server takes the call or refuses it, and goes on
takes_or_refuses() { # LISTS-AND-PAYLOAD
	wrong "$NULL_REPLY|$ERR_CHUNK" --size 131072 "7e 1 1 0 $1"
}

one_chunk_of_pages() {
	local pages
	good_in_both --size 131072 0 "$(read_segment 40 "$BLOCK") 0 0 0 $NULL"
	for ((pages = BLOCK / 4096; pages < BLOCK / 4096 + 6; pages++)); do
		takes_or_refuses "$(read_segment 40 $((4096 * pages))) 0 0 0 $NULL"
		takes_or_refuses "$(read_segment 40 $((4096 * pages - 1))) 0 0 0 $NULL"
	done
}

# The first chunk ends where a page ends
two_chunks_of_pages() {
	local pages
	for ((pages = BLOCK / 4096; pages < BLOCK / 4096 + 6; pages++)); do
		takes_or_refuses "$(read_segment 40 $((4096 * pages - 40)))$(read_segment $((4096 * pages)) 40) 0 0 0 $NULL"
	done
}

# write_chunk SEGMENTS OCTETS: all segments but the first have one octet
write_chunk() {
	local segment
	printf '%x key %x high low ' "$1" $(($2 - $1 + 1))
	for ((segment = 1; segment < $1; segment++)); do printf 'key 1 high low '; done
}

# The reply to a COMPOUND that has a tag of 200 octets, 236 octets, needs a Write for each segment of the Reply chunk. With
# max_requests = 16, the Send Queue has about 170 entries.
reply_fills_send_queue() {
	local segments call
	call="7e 0 2 186a3 4 1 0 0 0 0 c8 $(printf '61616161 %.0s' {1..50})1 0"
	echo 16 >/proc/sys/sunrpc/svc_rdma/max_requests
	for ((segments = 164; segments <= 174; segments++)); do
		answered '[0-9]+ octets: 7e 1 [0-9a-f]+ (1 0 0 1 .*|4 2)' --seconds 10 --size 4096 "7e 1 1 0 0 0 1 $(write_chunk "$segments" 236) $call"
	done
	echo 64 >/proc/sys/sunrpc/svc_rdma/max_requests
}

# A COMPOUND without operations; its tag is in two chunks and inline, and comes back in the reply
has_parts_in_order() {
	local memory='61616161 61616161 63636363 63636363'
	local tag='18 61616161 61616161 62626262 62626262 63636363 63636363'
	local chunks call='7e 0 2 186a3 4 1 0 0 0 0 18 62626262 62626262 1 0'
	chunks="$(read_segment 44 8)$(read_segment 60 8 8)0 0 0"
	answered "88 octets: 7e 1 [0-9a-f]+ 0 0 0 0 7e 1 0 0 0 0 0 $tag 0" --show 22 --memory "$memory" "7e 1 1 0 $chunks $call"
	[[ ! -e $MAX_VERSION ]] ||
		answered "92 octets: 7e 2 [0-9a-f]+ 0 1 0 0 0 7e 1 0 0 0 0 0 $tag 0" --show 23 --memory "$memory" "7e 2 1 0 0 $chunks $call"
}

# Callbacks have no chunks
reply_posts_no_read() {
	local event=$TRACING/events/rpcrdma/svcrdma_post_read_chunk
	echo >"$TRACING/trace"
	echo 1 >"$event/enable"
	wrong 'no answer' "7e 2 1 0 1 $(read_segment 24 4)0 0 0 7e 1 0 0 0 0"
	echo 0 >"$event/enable"
	! grep -q svcrdma_post_read_chunk "$TRACING/trace" || fail 'the server has read the chunk'
}

readonly REASONS=(svcrdma_{decode_parse_err,decode_option_err,err_chunk,err_option})

# An answer of any kind
sends() { # WORDS
	# shellcheck disable=SC2086 # words
	within a timeout 30 "$RPCPEER" call "$(address b)" $1 >"$WORK/sends.log"
}

reasons_are_traced() {
	traces_only 'svcrdma_decode_parse_err svcrdma_err_chunk' sends '7e 2 1 0 0 1 4 5 6 0 7 1 4 5 6 0 7'
	traces_only 'svcrdma_decode_option_err svcrdma_err_option' sends '7e 2 1 5 0 63 4 1'
}

is_answered() {
	# shellcheck disable=SC2086 # words
	within a timeout 30 "$RPCPEER" call "$(address b)" 7e 1 1 0 0 0 0 $NULL 2>&1 | grep -qE "^$NULL_REPLY"
}

# Peers without an RDMA stack that never answer the Read of their call, as many as the server has threads; and one that
# closes before a thread can accept its connection
silent_peers_hold_no_thread() {
	local peer word call=''
	for word in 7e 1 1 0 1 28 5 4 0 0 0 0 0 $NULL; do call+=$(printf '%08x' "0x$word"); done
	printf '%s\n' 'send request crc p2p rtr=write ird=4 ord=4' 'expect reply accept' 'send rtr write' "send fpdu send $call" \
		'expect read-request within 30s' 'note waits' 'wait 150s' >"$WORK/silent.txt"
	printf '%s\n' 'send request crc p2p rtr=write ird=4 ord=4' 'wait 2s' close >"$WORK/early.txt"
	for peer in 1 2 3 4; do start "silent$peer" a 200 "$MPAPEER" run "$WORK/silent.txt" --connect "$(address b):20049"; done
	for peer in 1 2 3 4; do wait_line "silent$peer" waits 40; done
	run_well early a 30 "$MPAPEER" run "$WORK/early.txt" --connect "$(address b):20049"
	wait_for 90 'an answer' is_answered
}

leaves_nothing() {
	stops
	! rdma resource show pd | grep rpcrdma || fail 'a protection domain is left'
}

is_requested() {
	rdma resource show cm_id | grep -q 'link siw1/.* state CONNECT'
}

# A listener without threads: a link with an rdma_cm_id that nobody frees can never be deleted
unaccepted_goes_with_its_listener() {
	in_b mount -t nfsd nfsd "$NFSD"
	set_nfsd versions -3
	rdma link del siw0
	set_nfsd portlist 'rdma 20049'
	add_device a siw0
	start peer a 60 "$RPCPEER" call "$(address b)" "7e 1 1 0 0 0 0 $NULL"
	wait_for 30 'a request' is_requested
	stops
	wait_for 30 'the end of the request' eval '! is_requested'
	stop peer
	start del b 30 rdma link del siw1
	wait_for 20 'the link to be deleted' is_gone del
	add_device b siw1
}

random_headers() { # VERSION COUNT
	local seed=$RANDOM
	note "seed $seed"
	run_well fuzz a 300 "$RPCPEER" fuzz "$(address b)" --rpc-version "$1" --count "$2" --seed "$seed" --seconds 0.2
	note "$(tail -n 1 "$WORK/fuzz.log")"
}

check 'nfsd starts and listens for RPC-over-RDMA' starts
check 'RPC-15: a call of RPC-over-RDMA version one is answered in version one' answered "$NULL_REPLY" "7e 1 1 0 0 0 0 $NULL"
check 'RPC-12: a call of RPC-over-RDMA version three gets ERR_VERS with versions 1 to 2' wrong '28 octets: 7e 3 [0-9a-f]+ 4 1 1 2' "7e 3 1 0 0 0 0 0 $NULL"
check 'RPC-1: a message of version two with rdma_proc 2, which version two has removed, gets a bad header error' wrong "$BAD_HEADER" "7e 2 1 2 0 0 0 0 $NULL"
check 'RPC-2: an unterminated Read list gets a bad header error' wrong "$BAD_HEADER" '7e 2 1 0 0 1 4 5 6 0 7 1 4 5 6 0 7'
check 'RPC-3: the server does not answer an error message' wrong 'no answer' '7e 2 1 4 2'
check 'RPC-5: the server answers a message with an unknown option with an invalid option error' wrong '20 octets: 7e 2 [0-9a-f]+ 4 3' '7e 2 1 5 0 63 4 1'
check 'RPC-6: a call marked as a reply gets a bad header error' wrong "$BAD_HEADER" "7e 2 1 0 1 0 0 0 $NULL"
check 'RPC-7: a header without an RPC message gets a bad header error' wrong "$BAD_HEADER" '7e 2 1 0 0 0 0 0'
check 'RPC-7: a message of version two whose RPC message has a different xid than its header gets a bad header error' wrong '20 octets: 7f 2 [0-9a-f]+ 4 2' "7f 2 1 0 0 0 0 0 $NULL"
check 'RPC-7: a long call without a chunk gets a bad header error' wrong "$BAD_HEADER" "7e 2 1 1 0 0 0 0 $NULL"
check 'RPC-7: a long call whose Read chunk contains no RPC message gets a bad header error' wrong "$BAD_HEADER" --memory '7e' "7e 2 1 1 0 $(read_segment 0 4)0 0 0"
check 'RPC-7: a long call whose Read chunk contains a message with a different xid than the header gets a bad header error' wrong '20 octets: 7f 2 [0-9a-f]+ 4 2' --memory "$NULL" \
	"7f 2 1 1 0 $(read_segment 0 40)0 0 0"
check 'RPC-6: a long call whose Read chunk contains a reply gets a bad header error' wrong "$BAD_HEADER" --memory '7e 1 0 0 0 0' "7e 2 1 1 0 $(read_segment 0 24)0 0 0"
check 'RPC-5: trace events of the server distinguish a bad header from an unknown option' reasons_are_traced
check 'RPC-10: a first call of 1025 inline octets is answered' wrong "$NULL_REPLY_2" --octets 1025 "7e 2 1 0 0 0 0 0 $NULL"
check 'RPC-9: a first call of 4096 inline octets is answered' wrong "$NULL_REPLY_2" --octets 4096 "7e 2 1 0 0 0 0 0 $NULL"
check 'RPC-16: a message of 12 octets of version two is not answered' wrong 'no answer' '7e 2 1'
check 'RPC-16: a message of 12 octets of version one is not answered' wrong 'no answer' '7e 1 1'
check 'RPC-16: a message of 31 octets of version two is not answered' wrong 'no answer' --octets 31 '7e 2 1 0 0 0 0 0'
check 'RPC-16: a message of 20 octets of version one is not answered' wrong 'no answer' --octets 20 '7e 1 1 0 0'
check 'RPC-16: a message of 27 octets of version one is not answered' wrong 'no answer' --octets 27 '7e 1 1 0 0 0 0'
check 'RPC-8: the server does not read the Read chunk of a reply' reply_posts_no_read
check 'F77: a call with a Read segment of length 0 inside its message gets ERR_CHUNK (version one), a bad header error (two)' bad_in_both 0 "$(read_segment 40 0)0 0 0 $NULL"
check 'F77: a call that consists of a Read segment of length 0 gets ERR_CHUNK (version one), a bad header error (two)' bad_in_both 1 "$(read_segment 0 0)0 0 0"
check 'F77: a long call with a Read segment of length 0 after one of 40 octets gets ERR_CHUNK (version one), a bad header error (two)' bad_in_both --memory "$NULL" 1 \
	"$(read_segment 0 40)$(read_segment 0 0 40)0 0 0"
check 'a long call with one Read segment for each of its words is answered' good_in_both --memory "$NULL" 1 \
	"$(for ((word = 0; word < 10; word++)); do read_segment 0 4 $((4 * word)); done)0 0 0"
check 'F78: calls whose Reply chunk needs 164 to 174 Writes, the size of the Send Queue, are answered' reply_fills_send_queue
check 'F79: nfsd still answers after calls whose Read chunk reaches or exceeds the page limit of a call' one_chunk_of_pages
check 'F79: nfsd still answers after calls whose two Read chunks and inline content reach or exceed the page limit of a call' two_chunks_of_pages
check 'F80: inline content of a call between two Read chunks is placed between the data of these chunks' has_parts_in_order
check 'F134: nfsd answers within 90 s although peers, as many as it has threads, never answer its Reads' silent_peers_hold_no_thread
check 'nfsd still answers after 60 random RPC-over-RDMA headers of version one' random_headers 1 60
check 'nfsd still answers after 60 random RPC-over-RDMA headers of version two' random_headers 2 60
check 'F135: stopping nfsd frees the protection domains of its connections' leaves_nothing
check 'F137: a connection that no nfsd thread has accepted is freed with its listener' unaccepted_goes_with_its_listener
finish
