#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--kernel NAME] -- tests/datagram.sh [REGEX]
#        scripts/vm run --pair --mem 3072 -- tests/datagram.sh [REGEX]     (tests/run calls it datagram-pair)
#
# Datagram iWARP: KUnit where the kernel has it (scripts/datagram modules), libdgm between two namespaces or machines over
# a network with loss, duplicates and reordering, a path whose MTU shrinks, a flood of bad datagrams. The cases with a
# million datagrams and with 1 GiB, of some minutes, run only if REGEX has these words. Read libdgm/NOTICE first.
#
# Runs as datagram: 1200 s
# Runs as datagram-pair: --pair --mem 3072; 1800 s
# Sample debug/datagram: KUnit
# Sample debian/datagram: own tests|1 % loss|MTU|flood
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly KUNIT=${TESTS%/*}/build/datagram/$VM_KERNEL

# ---- KUnit

# A case is indented once, a parameter twice
kunit_suite() { # MODULE
	local log=$WORK/kunit.log planned
	# the modules are insmod's, so nobody loads what they need
	modprobe -aq kunit libcrc32c crc32c || true
	dmesg -C
	insmod "$KUNIT/$1.ko" || fail "$1 does not load"
	dmesg -t >"$log"
	rmmod "$1"
	planned=$(sed -nE 's/^    1\.\.([0-9]+)$/\1/p' "$log")
	! grep -E '^ *not ok' "$log" >"$WORK/bad" || fail "$(head -n 3 "$WORK/bad")"
	[[ -n $planned && $(grep -cE '^    ok [0-9]+' "$log") == "$planned" ]] || fail "not all of ${planned:-no} cases pass"
	note "$1: $planned cases"
}

# shellcheck source=tests/dgmtransfer.sh
source "${0%/*}/dgmtransfer.sh"

# All that came is recorded, all that is recorded is right, and no other octet of the zone was written
exact_map() { # SIZE RATE [OPTION of dgm-send]
	serve --size "$1" --output "$WORK/zone" --map "$WORK/map"
	send_pattern "$1" --message $MESSAGE --rate "$2" "${@:3}"
	ended_well recv 60
	map_is_exact
	note "$(<"$WORK/check.log"); $(received '.counters | del(.segments_placed) | tostring')"
}

# One datagram at a time, as netem drops what UDP_SEGMENT sends as a whole
lossy() { # SIZE RATE PERCENT
	impair loss "$3%"
	exact_map "$1" "$2" --no-bundle
	mend
	# binomial: 1 % of some thousand datagrams, and what the socket could not hold
	is 'the notice of the end' "$(received .notice)" true
	[[ $(received "(.sent - .bytes) / .sent * 100 | . > $3 * 0.5") == true ]] || fail 'nothing was lost'
}

# The network loses nothing. All messages but the last are two datagrams, of 60000 octets and of the rest
fragmented() { # SIZE RATE
	exact_map "$1" "$2" --segment 60000 --fragment
	is 'datagrams' "$(received '.counters | .segments_placed + (.socket_overflows // 0)')" $((2 * ($1 / MESSAGE) + 1))
}

worst() { # SIZE RATE
	impair delay 2ms loss 1% duplicate 5% reorder 75% corrupt 1%
	exact_map "$1" "$2"
	mend
	[[ $(received '.counters.duplicate > 0') == true ]] || fail 'no duplicate came'
}

# The message's last datagram is the only one of its length: 124 octets of data, 34 of Write-Record, 28 of UDP and IP
last_is_lost() {
	modprobe -a sch_ingress cls_u32 act_gact
	within a tc qdisc add dev eth0 clsact
	within a tc filter add dev eth0 egress protocol ip u32 match u16 186 0xffff at 2 action drop
	serve --size 1M --output "$WORK/zone" --map "$WORK/map"
	send_pattern 3000 --message 3000 --no-bundle
	ended_well recv 60
	within a tc qdisc del dev eth0 clsact
	map_is_exact
	is 'octets that came' "$(received .bytes)" 2876
}

first_half_has_come() {
	cmp -s -n 300000 "$WORK/zone" <("$DGM/dgm_pattern" write 300000)
}

# The route's MTU becomes smaller than what the sender has used: it begins the message anew
shrinking_path() {
	serve --size 1M --idle 30 --output "$WORK/zone" --map "$WORK/map"
	# the second half waits for somebody who opens it
	mkfifo "$WORK/shrunk"
	start send a 60 bash -c "('$DGM/dgm_pattern' write 300000; cat '$WORK/shrunk'; '$DGM/dgm_pattern' write 600000 | tail -c 300000) |
		'$DGM/dgm-send' '$target' --message 60000 --rate 40 --json"
	wait_for 30 'the first half' first_half_has_come
	within a ip link set eth0 mtu 1000
	timeout 30 bash -c ": >'$WORK/shrunk'"
	ended_well send 60
	within a ip link set eth0 mtu 1500
	ended_well recv 60
	map_is_exact
	is 'octets that came' "$(received .bytes)" 600000
	is 'messages that failed' "$(jq .failed "$WORK/send.log")" 0
}

# The network loses nothing here: what is missing is lost by the library, or by its socket while a busy host gives this
# machine no time. The kernel counts what the socket drops. An honest sender that hands over one datagram at a time loses
# at most a message for each of these; the rest is the library's loss and does not depend on the host. Such drops are
# rare with a large socket, so that they do not excuse much.
flooded() { # DATAGRAMS RATE [LEAST]
	local lost came
	serve --size 20000000 --output "$WORK/zone" --map "$WORK/map" --any
	start flood a 400 "$DGM/dgmpeer" hostile "$target" --count "$1" --rate "$2"
	# 20 MB take somewhat longer than the flood
	send_pattern 20000000 --message $MESSAGE --rate "$(jq -n "150 * $2 / $1")" --no-bundle
	ended_well recv 60
	ended_well flood 60
	lost=$(received "(.sent - .bytes - (.counters.socket_overflows // 0) * $MESSAGE) / .sent * 100 | . * 1000 | round / 1000")
	came=$(received "[.counters[($(<"$WORK/flood.log") | keys[]), \"socket_overflows\"]] | add")
	note "lost $lost %; $(received '.counters | del(.segments_placed) | tostring')"
	((came >= ${3:-14000})) || fail "of $1 bad datagrams $came came beside the honest sender"
	jq -ne "$lost < 1" >/dev/null || fail "lost $lost %"
	map_is_exact
}

own_tests() {
	run_well tests a 300 "$DGM/dgm_tests" --gtest_brief=1 --gtest_filter="$1"
	note "$(grep ' ran\.' "$WORK/tests.log")"
}

# ---- two machines: each runs its own part

tell_target() {
	timeout 5 ncat --send-only 10.77.0.1 7798 <<<"$target"
}

pair_transfer() { # SIZE RATE PERCENT
	local target
	if [[ $ROLE == b ]]; then
		start recv b 3000 "$DGM/dgm-recv" --bind "$(address b)" --port 7799 --from "$(address a)" --size "$1" --json \
			--output "$WORK/zone" --map "$WORK/map" --idle 60
		wait_line recv / 30
		# The other machine learns the target by TCP
		target=$(head -n 1 "$WORK/recv.log")
		wait_for 300 'the other machine' tell_target
		ended_well recv 2900
		map_is_exact
		note "$(<"$WORK/check.log"); $(received '"\(.records) records, \(.counters | tostring), \(.seconds) s"')"
		rm "$WORK/zone"
		[[ $(received "(.sent - .bytes) / .sent * 100 | . > $3 * 0.9") == true ]] || fail 'less was lost than the network loses'
		return
	fi
	target=$(timeout 300 ncat --recv-only -l 10.77.0.1 7798) || fail 'no target'
	impair loss "$3%"
	send_pattern "$1" --message $MESSAGE --no-bundle --rate "$2"
	mend
	note "$(jq -c . "$WORK/send.log")"
}

# Sockets get the memory that the library asks for, so that a busy host makes them drop little
sysctl -qw net.core.rmem_max=$((16 << 20))

if [[ -n ${ROLE:-} ]]; then
	check 'DGM-38: Write-Record between two machines, 64 MiB with 1 % loss: the validity map has exactly the octets placed' pair_transfer $((64 << 20)) 100 1
	[[ $only != *'1 GiB'* ]] || check 'DGM-38: Write-Record between two machines, 1 GiB with 1 % loss: the validity map has exactly the octets placed' pair_transfer $((1 << 30)) 200 1
	finish
	exit
fi

for suite in wire track error; do
	[[ ! -e $KUNIT/dg_${suite}_test.ko ]] || check "DGM: the KUnit suite dg_${suite}_test passes" kunit_suite "dg_${suite}_test"
done
if [[ -x $DGM/dgm_tests ]]; then
	check "DGM: the libdgm library's own tests pass" own_tests '-*BadDatagramsDoNotCost*'
	check 'DGM-24: Write-Record without packet loss: every message is recorded' exact_map 8000000 50
	check 'DGM-16: Write-Record with 1 % loss: the validity map has exactly the octets placed' lossy 8000000 50 1
	check 'DGM-16: Write-Record with 5 % loss: the validity map has exactly the octets placed' lossy 8000000 50 5
	family=6
	check 'DGM-16: Write-Record with 1 % loss over IPv6: the validity map has exactly the octets placed' lossy 8000000 50 1
	family=''
	check 'DGM-16: datagrams of 60000 octets in IP fragments all arrive' fragmented 8000000 20
	check 'DGM: Write-Record with loss, duplicates, reordering and corruption: the validity map has exactly the octets placed' worst 4000000 20
	# not every kernel has filters
	! modprobe -anq sch_ingress cls_u32 act_gact ||
		check 'DGM-14: the last Write-Record message ends at its deadline if its last datagram is lost' last_is_lost
	check 'DGM: all messages arrive although the path MTU is lowered during the transfer' shrinking_path
	# with a kernel with checkers, the flood is slower than its rate: as many bad datagrams as good ones
	check 'DGM: a flood of bad datagrams costs an honest sender less than 1 %' flooded 40000 5000 "$([[ $VM_KERNEL == debug ]] || echo 36000)"
	[[ $only != *million* ]] || check 'DGM: a flood of a million bad datagrams costs an honest sender less than 1 %' flooded 1000000 5000 900000
fi
finish
