#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/rpcserver.sh [REGEX]
#
# The NFS server against messages of RPC-over-RDMA that are wrong, of version one (RFC 8166) and of version two
# (draft-cel-nfsv4-rpcrdma-version-two-01): rpcpeer in namespace a sends them word by word to nfsd in b. tests/rpcrdma2.sh
# has rpcpeer answer our client.
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly RPCPEER=$BUILD/rpcpeer/rpcpeer
readonly NFSD=/proc/fs/nfsd
readonly MAX_VERSION=/proc/sys/sunrpc/svc_rdma/max_version
# A call of NFSv4's procedure 0, and the server's answers to it and to bad headers
readonly NULL='7e 0 2 186a3 4 0 0 0 0 0'
readonly NULL_REPLY='52 octets: 7e 1 [0-9a-f]+ 0 0 0 0 7e 1 0 0 0'
readonly NULL_REPLY_2='56 octets: 7e 2 [0-9a-f]+ 0 1 0 0 0 7e 1 0 0'
readonly BAD_HEADER='20 octets: 7e 2 [0-9a-f]+ 4 2'

set_nfsd() { # FILE WORDS
	# shellcheck disable=SC2016 # for that shell
	within b bash -ec 'mount -t nfsd nfsd "$1" && echo "$3" >"$1/$2"' sh "$NFSD" "$1" "$2"
}

starts() {
	modprobe nfsd
	modprobe rpcrdma
	[[ ! -e $MAX_VERSION ]] || echo 2 >"$MAX_VERSION"
	mkdir -p /var/lib/nfs/v4recovery
	# no lockd
	set_nfsd versions -3
	set_nfsd portlist 'rdma 20049'
	set_nfsd threads 4
}

# A thread that does not return would keep this waiting
stops() {
	# shellcheck disable=SC2016 # for that shell
	run_well stop b 60 bash -ec 'mount -t nfsd nfsd "$1" && echo 0 >"$1/threads"' sh "$NFSD"
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

check 'nfsd starts' starts
check 'RPC-15: version one is answered in version one' answered "$NULL_REPLY" "7e 1 1 0 0 0 0 $NULL"
check 'RPC-12: version three gets the range' wrong '28 octets: 7e 3 [0-9a-f]+ 4 1 1 2' "7e 3 1 0 0 0 0 0 $NULL"
check 'RPC-1: proc 2' wrong "$BAD_HEADER" "7e 2 1 2 0 0 0 0 $NULL"
check 'RPC-2: a Read list without end' wrong "$BAD_HEADER" '7e 2 1 0 0 1 4 5 6 0 7 1 4 5 6 0 7'
check 'RPC-2: a segment that wraps' wrong "$BAD_HEADER" "7e 2 1 0 0 0 0 1 1 5 2 ffffffff ffffffff $NULL"
check 'RPC-3: an error is not answered' wrong 'no answer' '7e 2 1 4 2'
check 'RPC-5: an unknown option' wrong '20 octets: 7e 2 [0-9a-f]+ 4 3' '7e 2 1 5 0 63 4 1'
check 'RPC-6: a call that says it is a reply' wrong "$BAD_HEADER" "7e 2 1 0 1 0 0 0 $NULL"
check 'RPC-7: no RPC message' wrong "$BAD_HEADER" '7e 2 1 0 0 0 0 0'
check 'RPC-7: an RPC message with another xid' wrong '20 octets: 7f 2 [0-9a-f]+ 4 2' "7f 2 1 0 0 0 0 0 $NULL"
check 'RPC-10: a first call of 1025 octets' wrong "$NULL_REPLY_2" --octets 1025 "7e 2 1 0 0 0 0 0 $NULL"
check 'RPC-9: a first call of 4096 octets' wrong "$NULL_REPLY_2" --octets 4096 "7e 2 1 0 0 0 0 0 $NULL"
check 'RPC-16: 12 octets' wrong 'no answer' '7e 2 1'
check 'RPC-16: 12 octets of version one' wrong 'no answer' '7e 1 1'
check 'RPC-16: 31 octets' wrong 'no answer' --octets 31 '7e 2 1 0 0 0 0 0'
check 'nfsd stops' stops
finish
