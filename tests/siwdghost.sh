#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --packages nftables -- tests/siwdghost.sh [REGEX]
#
# Module siw_dg and its host: does netfilter see the datagrams of a queue pair, are cgroups charged for what a program has
# the module hold, and does a zone withstand ten million guesses? As siwdg.sh, between namespaces a (device d0) and b (d1).
# Read libdgm/NOTICE first.
#
# Runs as siwdghost: --packages nftables; 900 s
# Sample siwdghost: nft|cgroup
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/dg.sh
source "$TESTS/dg.sh"

# Copies that any user can run: this checkout may be root's alone
readonly COPY=/tmp/siwdg
readonly DGQP=$COPY/dgqp DGMPEER=$PRODUCTS/lib/dgmpeer
readonly OWN=(--provider "$COPY/libsiwdg.so.1")
# Of dgqp: octets of its region before and behind the zone; its Q_Key
readonly MARGIN=100 QKEY=0x11111111
# struct siw_dg_sqe and struct siw_dg_rqe have 192 octets
readonly ENTRY=192
readonly CGROUPS=/tmp/cgroups NOBODY=65534

counter_is() { # DEVICE NAME VALUE
	[[ $(counter "$1" "$2") == "$3" ]]
}

# serve COMMAND… -- OPTION of dgqp receive…: COMMAND runs it; sets qpn
serve() {
	local -a by=()
	while [[ $1 != -- ]]; do
		by+=("$1")
		shift
	done
	start server b 100 "${by[@]}" "$DGQP" receive --device d1 --timeout 90 "${@:2}"
	wait_ready server '^ready'
	qpn=$(sed -n 's/^ready //p' "$WORK/server.log")
}

client() { # OPTION of dgqp send…
	run client a 30 "${AS[@]}" "$DGQP" send --device d0 "$(address b)" "$qpn" "$@"
}
AS=()

# ---- netfilter

rules() { # NETNS RULESET
	within "$1" nft -f - <<<"$2"
}

# nft_sees NETNS: packets that the rule has counted
nft_sees() {
	within "$1" nft -j list table inet test | jq '[.. | objects | .counter? | objects | .packets] | add'
}

nft_input() {
	serve -- --count 2
	rules b "table inet test { chain input { type filter hook input priority 0; udp dport $qpn counter drop; }; }"
	client --count 3 --data hidden
	is 'the status of the sender' $STATUS 0
	is 'the number of datagrams that the rule has counted' "$(nft_sees b)" 3
	! has_line server received || fail 'a datagram arrived that the rule had dropped'
	within b nft delete table inet test
	client --count 2 --data seen
	ended_well server 30
	is 'messages that the program received' "$(grep -c '^received 4 .*: seen$' "$WORK/server.log")" 2
}

# The socket of a QP has an owner: the user whose program made the QP
nft_owner() {
	serve -- --count 1
	rules a "table inet test { chain output { type filter hook output priority 0; udp dport $qpn meta skuid $NOBODY counter drop; }; }"
	AS=(setpriv --reuid "$NOBODY" --regid "$NOBODY" --clear-groups)
	client --data nobody
	is "the status of the user's sender" $STATUS 2
	has_line client '^status general error'
	is 'the number of datagrams that the rule has counted' "$(nft_sees a)" 1
	AS=()
	client --data root
	is "the status of root's sender" $STATUS 0
	ended_well server 30
	has_line server '^received 4 .*: root$'
	within a nft delete table inet test
}

# ---- cgroups

make_cgroup() {
	rmdir "$CGROUPS/test" 2>/dev/null || true
	mkdir "$CGROUPS/test"
}

# What runs a program in the cgroup
# shellcheck disable=SC2016 # for that shell
readonly INSIDE=(bash -c 'echo $$ >"$0/test/cgroup.procs" && exec "$@"' "$CGROUPS")

memory() { # NAME of memory.stat
	sed -n "s/^$1 //p" "$CGROUPS/test/memory.stat"
}

memory_is() { # NAME OPERATOR VALUE, as of test
	test "$(memory "$1")" "$2" "$3"
}

cgroup_is_charged_for_queues() {
	local small
	make_cgroup
	serve "${INSIDE[@]}" -- --depth 16 --size 1
	small=$(memory vmalloc)
	stop server
	wait_for 20 'the memory to be freed' memory_is vmalloc -eq 0
	serve "${INSIDE[@]}" -- --depth 16384 --size 1
	note "vmalloc of the cgroup: $small octets with queues of 16 entries, $(memory vmalloc) with 16384"
	memory_is vmalloc -ge $((small + 2 * (16384 - 16) * ENTRY)) ||
		fail "the cgroup is charged $(memory vmalloc) octets for a QP with queues of 16384 entries, $small for one of 16"
	stop server
	wait_for 20 'the memory to be freed' memory_is vmalloc -eq 0
}

cgroup_limits_queues() {
	make_cgroup
	# SQ and RQ have 3 MiB each, the CQ 65536 entries of 64 octets
	echo 10M >"$CGROUPS/test/memory.max"
	serve "${INSIDE[@]}" -- --depth 16 --size 1
	stop server
	run server b 60 "${INSIDE[@]}" "$DGQP" receive --device d1 --timeout 5 --depth 16384 --size 1
	note "a program with 10 MiB of memory and queues of 10 MiB ended with status $STATUS: $(<"$WORK/server.log")"
	[[ $STATUS -ne 0 ]] || fail 'the program ended with status 0'
	! has_line server '^ready' || fail 'the program got its QP'
	serve -- --count 1
	client --data others
	ended_well server 30
}

cgroup_is_charged_for_datagrams() {
	make_cgroup
	serve "${INSIDE[@]}" -- --count 1000
	is 'memory of sockets before the first datagram' "$(memory sock)" 0
	client --count 20 --data charged
	wait_for 30 'memory of sockets' memory_is sock -gt 0
	note "sock of the cgroup: $(memory sock) octets after 20 datagrams"
	stop server
	wait_for 20 'the memory to be freed' memory_is sock -eq 0
}

# PD, CQ, MR and QP are objects
cgroup_limits_objects() {
	make_cgroup
	echo 'd1 hca_object=3' >"$CGROUPS/test/rdma.max"
	run server b 60 "${INSIDE[@]}" "$DGQP" receive --device d1 --timeout 5
	[[ $STATUS -ne 0 ]] || fail 'the program ended with status 0'
	! has_line server '^ready' || fail 'the program got its QP'
	echo 'd1 hca_object=max' >"$CGROUPS/test/rdma.max"
	serve "${INSIDE[@]}" --
	grep -qE '^d1 hca_handle=1 hca_object=[4-9]' "$CGROUPS/test/rdma.current" || fail "rdma.current is $(<"$CGROUPS/test/rdma.current")"
	stop server
	wait_for 20 'the objects to be freed' objects_are_freed
}

objects_are_freed() {
	! grep -E '^d1 .*[1-9]' "$CGROUPS/test/rdma.current"
}

# ---- guesses

# Each has a correct CRC and comes from an admitted source; a third each have the right zone, the right Q_Key, or neither
guesses() { # NUMBER
	local qpn zone key before judged=0 round=1000000 size=$((1 << 20)) begin
	start server b 800 "$DGQP" zone --device d1 "${OWN[@]}" --timeout 790 --output "$WORK/region" --any --count 1 --zone-size $size
	wait_ready server '^ready'
	read -r qpn zone key <<<"$(sed -n 's/^ready //p' "$WORK/server.log")"
	before=$(counter d1 dropped_no_zone)
	begin=$(now_ms)
	while ((judged < $1)); do
		(($(now_ms) - begin < 700000)) || fail "only $judged guesses were judged within 700 s"
		run_well peer a 300 "$DGMPEER" guess "$(address b):$qpn/$zone/$key/$size/${QKEY#0x}" --count $round
		judged=$(($(counter d1 dropped_no_zone) - before))
		! has_line server '^record' || fail 'a guess was recorded'
	done
	note "$judged guesses were judged in $((($(now_ms) - begin) / 1000)) s"
	run_well peer a 10 "$DGMPEER" send "$(address b)" "$qpn" write "stag=0x$zone" "qkey=0x$key" to=1000 msn=3 --data right
	ended_well server 20
	has_line server "^record 5 at 1000 of $zone msn 3 " || fail 'the record of the good write is missing or not the first'
	{
		head -c $((MARGIN + 1000)) /dev/zero
		printf right
		head -c $((size - 1005 + MARGIN)) /dev/zero
	} >"$WORK/expected"
	cmp "$WORK/region" "$WORK/expected" || fail 'a guess has written'
}

mkdir -m 755 "$COPY"
cp -L "$PRODUCTS/lib/dgqp" "${TESTS%/*}"/build/siwdg/*.so* "$COPY/"
load_siw_dg "$COPY"
add_siw_dg_links
mkdir "$CGROUPS"
mount -t cgroup2 none "$CGROUPS"

check 'siw_dg: an nft rule at input counts and drops the datagrams to the port of a QP' nft_input
check 'siw_dg: an nft rule at output drops the datagrams of the user whose program has the QP, and the Send completes with an error' nft_owner
echo '+memory +rdma' >"$CGROUPS/cgroup.subtree_control"
check 'siw_dg: the memory cgroup of a program is charged for the queues of its QP' cgroup_is_charged_for_queues
check 'siw_dg: a program whose memory cgroup has no room for its queues gets no QP, and other programs do' cgroup_limits_queues
check 'siw_dg: the memory cgroup of a program is charged for the datagrams that its QP receives' cgroup_is_charged_for_datagrams
check 'siw_dg: a program gets no more objects than rdma.max of its cgroup' cgroup_limits_objects
check 'siw_dg DGM-09 DGM-10: ten million guessed zones and Q_Keys write nothing' guesses 10000000
umount "$CGROUPS"
rmmod siw_dg
finish
