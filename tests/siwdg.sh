#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--kernel NAME] -- tests/siwdg.sh [REGEX]
#        scripts/vm run --pair --mem 3072 --packages ucx-utils -- tests/siwdg.sh [REGEX]     (tests/run calls it siwdg-pair)
#
# Module siw_dg and its provider (scripts/datagram modules, scripts/siwdg-provider): UD queue pairs between namespaces a (device
# d0) and b (d1), which have links of siw as well; zones and Write-Record, also between the module and libdgm; UCX and
# Write-Record between two machines. Read libdgm/NOTICE first.
#
# Runs as siwdg: 1800 s
# Runs as siwdg-pair: --pair --mem 3072 --packages ucx-utils; 400 s
# Sample siwdg: GIDs|bounds violation|SIWDG_FRAGMENT sends a message|pingpong|ib_send_bw runs on|DGM-(0[1-7]|09(:| DGM-10)|1[019]|2[1-4]|3[15])|any order|over IPv4 is sent and received in bundles|module unloads
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/dg.sh
source "$TESTS/dg.sh"

readonly PROVIDER=${TESTS%/*}/build/siwdg
readonly DGQP=$PRODUCTS/lib/dgqp DGMPEER=$PRODUCTS/lib/dgmpeer DGM=$PRODUCTS/lib
# How much longer a kernel with checkers takes, and others on a busy host
if [[ $VM_KERNEL == debug ]]; then SLOW=6; else SLOW=2; fi
readonly SLOW
# Of dgqp's calls that verbs do not have
readonly OWN=(--provider "$PROVIDER/libsiwdg.so.1")
# Octets of dgqp's region before and behind its zone
readonly MARGIN=100
# Of perftest, ibv_ud_pingpong and dgqp
readonly QKEY=0x11111111

gid() { # DEVICE INDEX
	cat "/sys/class/infiniband/$1/ports/1/gids/$2"
}

has_gid() { # DEVICE INDEX GID
	[[ $(gid "$1" "$2") == "$3" ]]
}

# ---- devices

gids_follow() {
	is 'GID 0' "$(gid d0 0)" 0000:0000:0000:0000:0000:ffff:0a4d:0001
	within a ip address add 10.9.9.9/24 dev eth0
	wait_for 30 'the new address' has_gid d0 1 0000:0000:0000:0000:0000:ffff:0a09:0909
	within a ip address del 10.9.9.9/24 dev eth0
	wait_for 30 'IPv6 again' has_gid d0 1 fd77:0000:0000:0000:0000:0000:0000:0001
}

# The loopback interface has none
no_speed_is_not_logged() {
	local i before_log
	before_log=$(dmesg | grep -c 'speed is unknown' || true)
	within a rdma link add d8 type siw_dg netdev lo
	for i in 1 2 3; do
		run_well port a 30 ibv_devinfo -d d8 -v
	done
	within a rdma link del d8
	has_line port 'active_width:.*1X' || fail 'the port has another width'
	has_line port 'active_speed:.*2\.5 Gbps' || fail 'the port has another speed'
	is 'log lines about the speed' "$(dmesg | grep -c 'speed is unknown')" "$before_log"
}

second_link() {
	! within a rdma link add d2 type siw_dg netdev eth0 2>"$WORK/add.log" || fail 'a second link was made'
	grep -q 'File exists' "$WORK/add.log"
}

link_is_deleted() {
	within a rdma link del d0
	[[ ! -e /sys/class/infiniband/d0 ]]
	within a rdma link add d0 type siw_dg netdev eth0
}

rping_over_siw() {
	start server b 60 rping -s -a "$(address b)" -p 7600 -C 1
	wait_listener "$(address b)" 7600
	run_well client a 60 rping -c -a "$(address b)" -p 7600 -C 1
	ended_well server 60
}

# siw makes one link on an interface
rping_over_siw_sctp() {
	local netns device
	sctp=1
	for netns in 'a siw0' 'b siw1'; do
		read -r netns device <<<"$netns"
		within "$netns" rdma link del "$device"
		within "$netns" rdma link add "$device" type siw_sctp netdev eth0
	done
	start server b 60 rping -s -a "$(address b)" -p 7601 -C 1
	wait_for 30 'a listener' has_listener "$(address b)" 7601
	wait_for 30 'its socket' socket_listens 7601 sctp
	serve --count 2
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --data before
	run_well client a 60 rping -c -a "$(address b)" -p 7601 -C 1
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --data after
	ended_well server 60
	arrives after
}

links_of_siw() {
	sctp=''
	rdma link del siw0
	rdma link del siw1
	within a rdma link add siw0 type siw netdev eth0
	within b rdma link add siw1 type siw netdev eth0
}

# ---- programs of others

ud_pingpong() { # GID-INDEX
	start server b 60 ibv_ud_pingpong -d d1 -g "$1" -n 100
	wait_for 30 'a server' socket_listens 18515 tcp
	run_well client a 60 ibv_ud_pingpong -d d0 -g "$1" -n 100 "$(address b)"
	ended_well server 60
	note "$(grep 'usec/iter' "$WORK/client.log")"
}

perftest() { # PROGRAM OPTION…
	start server b 100 "$1" -d d1 -c UD -F "${@:2}"
	wait_for 30 'a server' socket_listens 18515 tcp
	run_well client a 100 "$1" -d d0 -c UD -F "${@:2}" "$(address b)"
	ended_well server 60
	note "$(grep -A 1 '^ #bytes' "$WORK/client.log" | tail -n 1)"
}

# The server takes the name of the device from the client
ucx_perftest_runs() { # TEST OPTION…
	export UCX_IB_GID_INDEX=0
	if [[ $ROLE == b ]]; then
		run_well server b 200 ucx_perftest -d d0:1 -x ud_verbs
	else
		until_served 150 60 ucx_perftest "$(address b)" -d d0:1 -x ud_verbs -n 500 -w 10 -t "$@"
		note "$(grep Final "$WORK/client.log")"
	fi
}

# Neither waits for the other: the source writes until the target, which has its record, answers rping. Zone and keys are agreed
record_between_machines() {
	if [[ $ROLE == b ]]; then
		run_well server b 150 "$DGQP" zone --device d0 "${OWN[@]}" --port 7701 --zone 77 --key 78 --from "$(address a)" \
			--zone-size 200000 --count 1 --timeout 140 --output "$WORK/region"
		has_line server '^record 100000 at 77 of 0000004d msn 1 from ::ffff:10.77.0.1 port 7705$' || fail 'another record came'
		message 100000 text >"$WORK/message"
		region_is 200000 77 @"$WORK/message"
		run_well sync b 100 rping -s -a "$(address b)" -p 7602 -C 1
	else
		# shellcheck disable=SC2016 # for that shell
		until_served 200 60 bash -c '"${@:2}" && rping -c -a "$1" -p 7602 -C 1' - "$(address b)" "$DGQP" write --device d0 "${OWN[@]}" \
			--port 7705 "$(address b)" 7701 --zone 77 --key 78 --offset 77 --size 100000 --data text
	fi
}

# ---- our program

serve() { # OPTION of dgqp…; sets qpn
	start server b 60 "$DGQP" receive --device d1 "$@"
	wait_ready server '^ready'
	qpn=$(sed -n 's/^ready //p' "$WORK/server.log")
}

dgm_send() { # FIELD=VALUE | OPTION of dgmpeer…
	run_well peer a 10 "$DGMPEER" send "$(address b)" "$qpn" send "$@"
}

arrives() { # TEXT
	wait_line server "^received .*: $1\$" 30
}

sends_to_itself() {
	start server a 60 "$DGQP" receive --device d0
	wait_ready server '^ready'
	run_well client a 30 "$DGQP" send --device d0 "$(address a)" "$(sed -n 's/^ready //p' "$WORK/server.log")" --data own
	ended_well server 30
	has_line server '^received 3 from ::ffff:10.77.0.1 port [0-9]+: own$'
}

# DGM-02: the source's address and port; DGM-03: its port is the number of its QP
source_is_reported() { # GID-INDEX FAMILY ADDRESS
	serve --count 2
	run_well client a 30 "$DGQP" send --device d0 --gid "$1" "$(address b "$2")" "$qpn" --count 2 --data here
	ended_well server 30
	is 'completions with this source' "$(grep -cE "^received 4 from $3 port [1-9][0-9]+: here$" "$WORK/server.log")" 2
}

# DGM-06 and section 3.1: longer than the receive is an error of this request alone
too_long() {
	serve --count 2 --size 100
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --size 101
	wait_line server '^status local length error' 30
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --size 100 --data fits
	ended_well server 30
	has_line server '^received 100 .*: fits'
}

too_long_to_send() {
	serve --size 8000
	run client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --size 1500
	is 'the status of the sender' $STATUS 2
	has_line client '^status local length error'
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --data fits
	arrives fits
}

inline_data() {
	serve
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --inline --data inline
	arrives inline
}

# DGM-09: errors are counted, and the QP stays
wrong_datagram() { # COUNTER FIELD=VALUE | OPTION of dgmpeer…
	local before
	serve
	before=$(counter d1 "$1")
	dgm_send qkey=$QKEY --data wrong "${@:2}"
	wait_for 30 "$1" counter_is d1 "$1" $((before + 1))
	dgm_send qkey=$QKEY --data right
	arrives right
	ended_well server 30
	! has_line server wrong || fail 'the program received it'
}

dropped() { # DEVICE: datagrams dropped for any reason
	cat "/sys/class/infiniband/$1/ports/1/hw_counters"/dropped_* | jq -s add
}

dropped_are() { # DEVICE VALUE
	[[ $(dropped "$1") == "$2" ]]
}

counter_is() { # DEVICE NAME VALUE
	[[ $(counter "$1" "$2") == "$3" ]]
}

no_receive_posted() {
	local before
	serve --depth 1 --count 3
	before=$(counter d1 dropped_no_receive)
	stop_process server
	dgm_send qkey=$QKEY --data first
	dgm_send qkey=$QKEY --data second
	wait_for 30 'a datagram without a receive' counter_is d1 dropped_no_receive $((before + 1))
	kill -CONT "$(pgrep -P "${pid_of[server]}")"
	arrives first
	dgm_send qkey=$QKEY --data third
	arrives third
	! has_line server second || fail 'the dropped message arrived'
}

stop_process() {
	kill -STOP "$(pgrep -P "${pid_of[$1]}")"
}

# DGM-22
error_flushes() {
	run_well client a 30 "$DGQP" flush --device d0
}

# DGM-22: the QPs of both
works_again() {
	serve --recover
	run_well client a 30 "$DGQP" send --device d0 --recover "$(address b)" "$qpn" --data again
	arrives again
	ended_well server 30
}

# A zone stays open
written_again() {
	open_zone --any --recover --count 2
	dgm_write to=8 --data peer
	write_zone a --recover --offset 20 --data kernel
	is 'the status of the source' $STATUS 0
	ended_well server 30
	region_is 4096 8 peer 20 kernel
}

# By libibverbs alone, which reads the source out of the GRH
answers_by_ah() { # GID-INDEX FAMILY ADDRESS-OF-B
	start server b 60 "$DGQP" answer --device d1
	wait_ready server '^ready'
	qpn=$(sed -n 's/^ready //p' "$WORK/server.log")
	run_well client a 30 "$DGQP" ask --device d0 --gid "$1" "$(address b "$2")" "$qpn" --data question
	ended_well server 30
	has_line server '^received 8 from .*: question$' || fail 'the question is not the message that came'
	has_line client "^received 6 from $3 port $qpn: answer\$" || fail 'the answer is not the message that came'
}

solicited() {
	serve --solicited --count 2
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --data first
	pause 1
	! has_line server received || fail 'an event came for a message without the bit'
	run_well client a 30 "$DGQP" send --solicited --device d0 "$(address b)" "$qpn" --data second
	ended_well server 30
}

# DGM-19: three QPs with this port, in two hosts, get each message
multicast() { # GROUP
	start one b 60 "$DGQP" receive --device d1 --port 7701 --group "$1" "${OWN[@]}"
	wait_ready one '^ready'
	start two a 60 "$DGQP" receive --device d0 --port 7701 --group "$1" "${OWN[@]}"
	wait_ready two '^ready'
	start three b 60 "$DGQP" receive --device d1 --port 7702 "${OWN[@]}"
	wait_ready three '^ready'
	run_well client a 30 "$DGQP" send --device d0 --gid "$2" "$1" 7701 --data all
	ended_well one 30
	ended_well two 30
	! has_line three received || fail 'a QP outside of the group received it'
}

fuzzed_queues() {
	local received
	serve --count 100000000 --timeout 55
	start flood a 60 "$DGQP" send --device d0 "$(address b)" "$qpn" --count 100000000 --timeout 55
	run_well fuzz b 60 "$DGQP" fuzz --device d1 "$(address a)" --timeout 20 --count 7 --size 20000 "${OWN[@]}"
	note "$(tail -n 1 "$WORK/fuzz.log")"
	! is_gone flood || fail "the other sender ended: $(tail -n 1 "$WORK/flood.log")"
	received=$(grep -c '^received' "$WORK/server.log")
	wait_for 20 'a message of the other sender' has_more_than "$received"
	stop flood
	stop server
}

has_more_than() { # MESSAGES of the server
	(($(grep -c '^received' "$WORK/server.log") > $1))
}

# A slot of one message has less than a page: the allocator cannot turn to other memory, as it does for 64 of them.
# libibverbs turns some errors of the kernel into others, and some allocations may fail without any
no_memory() {
	local group port
	echo N | tee /sys/kernel/debug/failslab/{ignore-gfp-wait,cache-filter,task-filter} >/dev/null
	for group in 239.7.7.7 ff15::77; do
		for port in 0 7709; do
			run_well fault a 200 "$DGQP" fault --device d0 "$(address b)" "${OWN[@]}" --block 64 --flags 7 --slots 1 --group "$group" \
				--port $port
			note "$(tail -n 1 "$WORK/fault.log")"
		done
	done
	run_well client a 30 "$DGQP" flush --device d0
}

no_memory_for_link() {
	echo N | tee /sys/kernel/debug/failslab/{ignore-gfp-wait,cache-filter,task-filter} >/dev/null
	within a ip link add veth6 type veth peer name veth7
	within a ip address add 10.99.0.1/24 dev veth6
	run_well fault a 400 "$DGQP" link-fault --device d8 veth6
	note "$(tail -n 1 "$WORK/fault.log")"
	within a rdma link add d8 type siw_dg netdev veth6
	within a ip link del veth6
	wait_for 30 'the device to go' test ! -e /sys/class/infiniband/d8
}

# ---- zones

open_zone() { # OPTION of dgqp…; sets qpn, zone and key
	local zone_seconds=$((50 * SLOW))
	start server b $((zone_seconds + 10)) "$DGQP" zone --device d1 "${OWN[@]}" --timeout "$zone_seconds" --output "$WORK/region" "$@"
	wait_ready server '^ready'
	read -r qpn zone key <<<"$(sed -n 's/^ready //p' "$WORK/server.log")"
}

# write_zone NETNS [OPTION of dgqp]…: of device d0 or d1, by queue pair 7705
write_zone() {
	local device=d0
	[[ $1 == a ]] || device=d1
	run client "$1" 90 "$DGQP" write --device $device "${OWN[@]}" --port 7705 "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" "${@:2}"
}

# Fields of a good one come first
dgm_write() { # FIELD=VALUE | OPTION of dgmpeer…
	run_well peer a 10 "$DGMPEER" send "$(address b)" "$qpn" write "stag=0x$zone" "qkey=0x$key" "$@"
}

# region_is [--of FILE] SIZE [OFFSET DATA|@FILE]…: the server has ended; all other octets of zone and margins are 0
region_is() {
	local size region=$WORK/region
	if [[ $1 == --of ]]; then
		region=$2
		shift 2
	fi
	size=$(($1 + 2 * MARGIN))
	shift
	head -c $size /dev/zero >"$WORK/expected"
	while (($#)); do
		if [[ $2 == @* ]]; then
			dd if="${2#@}" of="$WORK/expected" bs=1 seek=$((MARGIN + $1)) conv=notrunc status=none
		else
			printf '%s' "$2" | dd of="$WORK/expected" bs=1 seek=$((MARGIN + $1)) conv=notrunc status=none
		fi
		shift 2
	done
	cmp "$region" "$WORK/expected" || fail 'the memory of the zone is not as expected'
}

# DGM-10, DGM-11, DGM-17: zone, Q_Key and port are all that the source knows
write_is_recorded() { # GID-INDEX FAMILY ADDRESS
	open_zone --from "$3" --count 2
	run_well client a 30 "$DGQP" write --device d0 --gid "$1" "${OWN[@]}" --port 7705 "$(address b "$2")" "$qpn" --zone "0x$zone" \
		--key "0x$key" --offset 4092 --data last
	run_well client a 30 "$DGQP" write --device d0 --gid "$1" "${OWN[@]}" --port 7705 "$(address b "$2")" "$qpn" --zone "0x$zone" \
		--key "0x$key" --inline --data first
	ended_well server 30
	has_line server "^record 4 at 4092 of $zone msn 1 from $4 port 7705\$"
	has_line server "^record 5 at 0 of $zone msn 1 from $4 port 7705\$"
	region_is 4096 0 first 4092 last
}

set_mtu() { # MTU
	within a ip link set eth0 mtu "$1"
	within b ip link set eth0 mtu "$1"
}

# Message 0 of dgqp with this length: octet i behind the data is (7 i + 1) mod 251, which differs in each page
message() { # SIZE DATA
	python3 -c 'import sys
size, data = int(sys.argv[1]), sys.argv[2].encode()
sys.stdout.buffer.write(data + bytes((7 * i + 1) % 251 for i in range(len(data), size)))' "$@"
}

# The message covers several pages of the region
write_over_pages() {
	set_mtu 9000
	open_zone --any --count 1 --zone-size 20000
	write_zone a --size 8900 --data begins --offset 5000
	set_mtu 1500
	ended_well server 30
	has_line server "^record 8900 at 5000 of $zone "
	message 8900 begins >"$WORK/message"
	region_is 20000 5000 @"$WORK/message"
}

empty_write() {
	open_zone --any --count 3
	dgm_write to=4096 msn=7
	dgm_write to=0 msn=8
	dgm_write to=4097 msn=9
	dgm_write to=5 msn=10 ml=4 --data good
	ended_well server 30
	has_line server "^record 0 at 4096 of $zone msn 7 "
	has_line server "^record 0 at 0 of $zone msn 8 "
	has_line server "^record 4 at 5 of $zone msn 10 "
	region_is 4096 5 good
}

# Earlier datagrams have written and recorded nothing
good_write_is_first() {
	dgm_write to=100 msn=3 --data right
	ended_well server 30
	has_line server "^record 5 at 100 of $zone msn 3 " || fail 'the record of the good write is missing or not the first'
	region_is 4096 100 right
}

# DGM-09: all is judged before the first octet is written. A good one is written after it.
wrong_write() { # COUNTER FIELD=VALUE | OPTION of dgmpeer…
	local before
	open_zone --any --count 1
	before=$(counter d1 "$1")
	dgm_write to=8 --data wrong "${@:2}"
	wait_for 30 "$1" counter_is d1 "$1" $((before + 1))
	good_write_is_first
}

# The allowed source has the zone's and the QP's keys as well
wrong_source() { # ALLOWED…
	local before allowed
	local -a from=()
	for allowed; do
		from+=(--from "$allowed")
	done
	open_zone "${from[@]}" --count 1
	before=$(counter d1 dropped_source)
	dgm_write to=8 --data wrong
	wait_for 30 'a datagram of another source' counter_is d1 dropped_source $((before + 1))
	run_well client b 30 "$DGQP" write --device d1 "${OWN[@]}" "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" --data right
	ended_well server 30
	region_is 4096 0 right
}

# The zone admits the source or not; its own host has another address, which is always admitted
source_rules() { # RULE of dgqp, OK | DROPPED, FAMILY [PORT]
	local rule=$1 verdict=$2 family=$3 before
	open_zone --from "$rule" --from 10.77.0.2 --count 1
	before=$(counter d1 dropped_source)
	rule_write "$family" "${4:-7705}" wrong
	if [[ $verdict == DROPPED ]]; then
		wait_for 30 'a datagram of another source' counter_is d1 dropped_source $((before + 1))
		run_well client b 30 "$DGQP" write --device d1 "${OWN[@]}" "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" --data right
	fi
	ended_well server 30
	region_is 4096 0 "$([[ $verdict == DROPPED ]] && echo right || echo wrong)"
}

rule_write() { # FAMILY PORT DATA
	run_well client a 30 "$DGQP" write --device d0 --gid "$([[ $1 == 6 ]] && echo 1 || echo 0)" "${OWN[@]}" --port "$2" \
		"$(address b "${1#4}")" "$qpn" --zone "0x$zone" --key "0x$key" --data "$3"
}

# It would evade each rule that the host has for packets of IPv4
forged_ipv4_source() { # write | send
	local before
	local -a right wrong=("qkey=$QKEY")
	open_zone --any --count 1
	right=("stag=0x$zone" "qkey=0x$key")
	[[ $1 == send ]] || wrong=("${right[@]}")
	before=$(counter d1 dropped_source)
	run_well peer a 10 "$DGMPEER" send "$(address b 6)" "$qpn" "$1" --source ::ffff:10.77.0.1 --data wrong "${wrong[@]}"
	wait_for 30 'a datagram with a forged source' counter_is d1 dropped_source $((before + 1))
	run_well peer a 10 "$DGMPEER" send "$(address b 6)" "$qpn" write --source "$(address a 6)" --data right "${right[@]}"
	ended_well server 30
	has_line server "^record 5 at 0 of $zone msn 1 from $(address a 6) port 7707\$" || fail 'the record of the good write is not the first'
	region_is 4096 0 right
}

# UDP leaves the checksum to the module if the datagram has more than 76 octets (CHECKSUM_BREAK)
wrong_checksum() {
	open_zone --any --count 1
	before dropped_checksum
	run_well peer a 10 "$DGMPEER" send "$(address b 6)" "$qpn" write --source "$(address a 6)" --bad-checksum "stag=0x$zone" \
		"qkey=0x$key" to=8 --data "$(printf 'wrong%.0s' {1..20})"
	rises dropped_checksum 1
	good_write_is_first
}

# The host of the QP admits a packet to any of its addresses from any interface
another_interface() {
	ip link add eth1 netns a type veth peer name eth1 netns b
	another=1
	within a ip address add 10.78.0.1/24 dev eth1
	within b ip address add 10.78.0.2/24 dev eth1
	within a ip link set eth1 up
	within b ip link set eth1 up
	within a ip route add 10.77.0.2/32 via 10.78.0.2 dev eth1
	open_zone --any --count 1
	before dropped_interface
	dgm_write to=8 --data wrong
	rises dropped_interface 1
	within a ip link del eth1
	another=''
	good_write_is_first
}

no_source_is_named() {
	local before
	open_zone --count 1
	before=$(counter d1 dropped_source)
	dgm_write to=8 --data wrong
	wait_for 30 'a datagram of an unnamed source' counter_is d1 dropped_source $((before + 1))
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	region_is 4096
}

# DGM-31: entries are optional. DGM-18: Sends go on beside it.
not_recorded() {
	open_zone --any --no-record --count 1
	write_zone a --data quiet --count 3
	is 'the status of the source' $STATUS 0
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	arrives end
	! has_line server '^record' || fail 'it was recorded'
	region_is 4096 0 quiet
}

# DGM-35: a record is no event that a program waits for, and uses none of two receives
raises_no_event() {
	open_zone --any --solicited --depth 2 --count 3
	write_zone a --data quiet
	pause 1
	! has_line server '^record' || fail 'the record raised a solicited event'
	write_zone a --data again
	run_well client a 30 "$DGQP" send --solicited --device d0 "$(address b)" "$qpn" --data wake
	ended_well server 30
	is records "$(grep -c "^record 5 at 0 of $zone " "$WORK/server.log")" 2
	has_line server '^received 4 .*: wake'
}

plain_poll() {
	open_zone --any --plain --count 1
	write_zone a --offset 77 --data plain
	ended_well server 30
	has_line server "^record 5 at 77 of $zone from port 7705\$"
}

# Two QPs have zones with this number; each is reached by its own port alone
zone_of_another_qp() {
	open_zone --any --zone 77 --key 78 --count 1
	start other b 60 "$DGQP" zone --device d1 "${OWN[@]}" --any --zone 77 --key 78 --output "$WORK/other" --count 1
	wait_ready other '^ready'
	write_zone a --data mine
	ended_well server 30
	region_is 4096 0 mine
	! has_line other '^record' || fail 'the zone of the other QP was written'
	qpn=$(sed -n 's/^ready \([0-9]*\) .*/\1/p' "$WORK/other.log")
	write_zone a --data your
	ended_well other 30
	region_is --of "$WORK/other" 4096 0 your
}

# DGM-19: two hosts have this zone at this port, and join the group
write_to_group() { # GROUP GID-INDEX
	local name netns
	local -A device=([one]=d1 [two]=d0)
	for name in one two; do
		netns=b
		[[ $name == one ]] || netns=a
		start $name $netns 60 "$DGQP" zone --device "${device[$name]}" "${OWN[@]}" --port 7701 --group "$1" --zone 77 --key 78 \
			--any --output "$WORK/region" --count 1
		wait_ready $name '^ready'
	done
	run_well client a 30 "$DGQP" write --device d0 --gid "$2" "${OWN[@]}" "$1" 7701 --zone 77 --key 78 --offset 9 --data all
	for name in one two; do
		ended_well $name 30
		has_line $name '^record 3 at 9 of 0000004d '
	done
	region_is 4096 9 all
}

# DGM-23: what the source may not do completes its request with an error
wrong_request() { # STATUS OPTION of dgqp…
	# If write_over_pages failed
	set_mtu 1500
	open_zone --any --count 1
	write_zone a --data no "${@:2}"
	is 'the status of the source' $STATUS 2
	has_line client "^status $1\$"
	# the longest that fits
	write_zone a --data yes --size 1438
	ended_well server 30
	has_line server "^record 1438 at 0 of $zone "
	message 1438 yes >"$WORK/message"
	region_is 4096 0 @"$WORK/message"
}

# Else the message would be a part of the program's datagram, or wait for one
corked() { # option | data
	open_zone --any --count 1
	write_zone a --cork "$1" --data corked
	is 'the status of the source' $STATUS 2
	has_line client '^status local QP operation error$'
	write_zone a --data right
	ended_well server 30
	region_is 4096 0 right
}

write_to_all() {
	open_zone --port 7701 --from "$(address a)" --count 1
	run_well client a 30 "$DGQP" write --device d0 "${OWN[@]}" --port 7705 --broadcast 10.77.0.255 7701 --zone "0x$zone" --key "0x$key" \
		--offset 9 --data all
	ended_well server 30
	has_line server "^record 3 at 9 of $zone "
	region_is 4096 9 all
}

write_to_all_fails() {
	run client a 30 "$DGQP" write --device d0 "${OWN[@]}" --port 7705 10.77.0.255 7701 --zone 5 --key 6 --data all
	is 'the status of the source' $STATUS 2
}

# The option is for the program's own datagrams
segmented_socket() {
	open_zone --any --count 1
	write_zone a --socket-segment 100 --data whole --size 1000
	is 'the status of the source' $STATUS 0
	ended_well server 30
	has_line server "^record 1000 at 0 of $zone "
	message 1000 whole >"$WORK/message"
	region_is 4096 0 @"$WORK/message"
}

zone_errors() {
	run_well errors a $((100 * SLOW)) "$DGQP" zone-errors --device d0 "${OWN[@]}" "$(address b)"
}

qp_errors() {
	run_well errors a $((30 * SLOW)) "$DGQP" qp-errors --device d0 "${OWN[@]}" "$(address a)"
	[[ ! -s $WORK/errors.log ]] || note "$(<"$WORK/errors.log")"
}

# Three parts, and room for two records: the second part makes way for the last
end_has_room() {
	local mo
	open_zone --any --partial --depth 1 --records 2 --deadline $((4000 * SLOW)) --count 2
	before dropped_cq_full written
	stop_process server
	for mo in 0 16 32; do
		dgm_write --source-port "$piece_port" to=$((100 + mo)) msn=5 mo=$mo ml=48 last=0 --data "${TEXT:0:8}"
	done
	rises written 3
	wait_for $((10 * SLOW)) 'the part without room' counter_is d1 dropped_cq_full $((value_before[dropped_cq_full] + 1))
	kill -CONT "$(pgrep -P "${pid_of[server]}")"
	ended_well server 30
	has_line server "^record 8 at 100 of $zone msn 5 from .* of 48 at 100 more\$" || fail 'the first part has no record'
	has_line server "^record 8 at 132 of $zone msn 5 from .* of 48 at 100 came 24\$" || fail 'the last part has no record'
}

zone_limit() {
	run_well limit a 60 "$DGQP" zone-limit --device d0 "${OWN[@]}"
}

# Nothing is written that would not be recorded, and records take no entry that the completion of a request needs
records_overflow() {
	local before
	# entries for two requests and for two records
	open_zone --any --depth 1 --records 2 --count 4
	before=$(counter d1 dropped_cq_full)
	stop_process server
	dgm_write to=0 msn=1 --data one
	dgm_write to=10 msn=2 --data two
	dgm_write to=20 msn=3 --data three
	wait_for 30 'a datagram without room for a record' counter_is d1 dropped_cq_full $((before + 1))
	dgm_send qkey=$QKEY --data message
	kill -CONT "$(pgrep -P "${pid_of[server]}")"
	wait_line server '^received 7 .*: message' 30
	dgm_write to=30 msn=4 --data four
	ended_well server 30
	region_is 4096 0 one 10 two 30 four
}

# Two QPs with one completion queue, which has room for four records beside the completions of their requests; sets qpn_of
start_sharing() { # [OPTION of dgqp share]…
	zone=4d key=4e
	start server b $((100 * SLOW)) "$DGQP" share --device d1 "${OWN[@]}" --timeout $((90 * SLOW)) --depth 1 --records 4 --zone 0x$zone --key 0x$key \
		--zone-size 60000 --end end "$@"
	wait_ready server '^ready'
	read -ra qpn_of <<<"$(sed -n 's/^ready //p' "$WORK/server.log")"
}

# Records of both take no entry that the completion of a receive of either needs
records_of_two_qps() {
	local i qpn
	start_sharing
	before written dropped_cq_full received
	stop_process server
	for i in 1 2 3; do
		for qpn in "${qpn_of[@]}"; do
			dgm_write to=0 "msn=$i" --data data
		done
	done
	rises written 4
	rises dropped_cq_full 2
	for qpn in "${qpn_of[@]}"; do
		dgm_send qkey=$QKEY --data message
	done
	rises received 2
	kill -CONT "$(pgrep -P "${pid_of[server]}")"
	wait_for 30 'both messages' has_more_than 1
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	is 'messages that came beside the records' "$(grep -c '^received 7 .*: message$' "$WORK/server.log")" 2
	has_line server '^4 records$' || fail "the program took $(tail -n 1 "$WORK/server.log")"
}

# The program is slow. Both QPs find room for a record, and one of them takes it while the other computes a CRC and writes: over
# lo a datagram has 60,000 octets. Data that are written then without a record count in dropped_cq_full as well, so each datagram
# is in a record or there
race_for_an_entry() {
	local i qpn sent records lost=0 tries=0 most=20
	# A kernel with checkers has not met the race in 8,000 datagrams
	[[ $VM_KERNEL == debian ]] || most=2
	start_sharing --pace 2
	before written dropped_cq_full
	sent=$(counter d1 sent)
	until ((lost > 0 || tries++ == most)); do
		for i in 0 1; do
			start "flood$i" b 60 "$DGQP" write --device d1 "${OWN[@]}" "$(address b)" "${qpn_of[i]}" --zone 0x$zone --key 0x$key \
				--size 60000 --data x --count 200 --timeout 50
		done
		ended_well flood0 60
		ended_well flood1 60
		# without the race each datagram is in one of both
		lost=$(($(since written) + $(since dropped_cq_full) - $(counter d1 sent) + sent))
	done
	sent=$(($(counter d1 sent) - sent))
	qpn=${qpn_of[0]}
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	records=$(sed -n 's/ records$//p' "$WORK/server.log")
	note "$sent datagrams: $records records, $(since dropped_cq_full) dropped_cq_full, of which $lost were written"
	[[ $VM_KERNEL != debian ]] || ((lost > 0)) || fail "no datagram lost the race for the last entry in $tries rounds"
	is 'records and datagrams in dropped_cq_full' $((records + $(since dropped_cq_full))) "$sent"
}

# ---- messages of several datagrams

# Four datagrams at 100, of 8 octets but the last, from port 7711 of a
readonly TEXT=abcdefghijklmnopqrstuvwxyzAB
piece_port=7711

piece() { # MSN INDEX [FIELD=VALUE | OPTION of dgmpeer]…
	local mo=$((8 * $2))
	local data=${TEXT:mo:8}
	dgm_write --source-port "$piece_port" to=$((100 + mo)) "msn=$1" mo=$mo ml=28 last=$((mo + ${#data} == 28)) --data "$data" "${@:3}"
}

pieces() { # MSN INDEX…
	local index
	for index in "${@:2}"; do
		piece "$1" "$index"
	done
}

# piece_record LENGTH OFFSET MSN REST: the line for it
piece_record() {
	has_line server "^record $1 at $2 of $zone msn $3 from ::ffff:10.77.0.1 port $piece_port$4\$" ||
		fail "no record of $1 octets at $2 of message $3"
}

# before COUNTER…: remembers their values; rises COUNTER BY: since then
declare -A value_before
before() {
	local name
	for name; do
		value_before[$name]=$(counter d1 "$name")
	done
}

since() { # COUNTER: by how much it has risen since `before`
	echo $(($(counter d1 "$1") - value_before[$1]))
}

rises() {
	wait_for 20 "$1 to rise by $2" counter_is d1 "$1" $((value_before[$1] + $2))
}

# Since `before`
is_above() { # COUNTER
	(($(counter d1 "$1") > value_before[$1]))
}

in_any_order() {
	open_zone --any --deadline 30000 --count 2
	before written
	pieces 5 3 0 2
	rises written 3
	! has_line server '^record' || fail 'an incomplete message is recorded'
	piece 5 1
	pieces 6 0 1 2 3
	ended_well server 30
	piece_record 28 100 5 ''
	piece_record 28 100 6 ''
	region_is 4096 100 $TEXT
}

# A sum of octets would take three times the first datagram for the whole message
duplicates() {
	open_zone --any --deadline $((30000 * SLOW)) --count 1
	before dropped_duplicate written
	pieces 7 0 0 0 3 3 1
	dgm_write --source-port "$piece_port" to=100 msn=7 mo=0 ml=28 last=0 --data evilevil
	rises dropped_duplicate 4
	rises written 3
	! has_line server '^record' || fail 'an incomplete message is recorded'
	piece 7 2
	ended_well server 30
	piece_record 28 100 7 ''
	region_is 4096 100 $TEXT
}

# What came is written, but nothing stands for it. The head is lost, which a message without MO and ML would not show
whole_expires() {
	open_zone --any --deadline $((4000 * SLOW)) --count 1
	before messages_expired
	pieces 5 1 2 3
	wait_for $((10 * SLOW)) 'the deadline' counter_is d1 messages_expired $((value_before[messages_expired] + 1))
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	! has_line server '^record' || fail 'an incomplete message is recorded'
	region_is 4096 108 ${TEXT:8}
}

partial_expires() {
	open_zone --any --partial --deadline $((4000 * SLOW)) --count 2
	pieces 5 0 2
	ended_well server $((12 * SLOW))
	piece_record 8 100 5 ' of 28 at 100 more'
	piece_record 8 116 5 ' of 28 at 100 came 16'
	region_is 4096 100 ${TEXT:0:8} 116 ${TEXT:16:8}
}

# The deadline is far away
gap_ends() {
	open_zone --any --partial --deadline $((60000 * SLOW)) --gap 300 --count 2
	pieces 5 1 3
	ended_well server 20
	piece_record 8 108 5 ' of 28 at 100 more'
	piece_record 4 124 5 ' of 28 at 100 came 12'
	region_is 4096 108 ${TEXT:8:8} 124 ${TEXT:24}
}

within_the_gap() {
	open_zone --any --partial --deadline $((60000 * SLOW)) --gap 30000 --count 1
	pieces 5 3 0 2 1
	ended_well server 30
	piece_record 28 100 5 ''
}

no_gap() {
	open_zone --any --partial --deadline $((60000 * SLOW)) --gap 0 --count 2
	pieces 5 2 1 3
	wait_line server '^record' 30
	piece_record 20 108 5 ' of 28 at 100 came 20'
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	region_is 4096 108 ${TEXT:8}
}

newer_ends_partial() {
	open_zone --any --partial --deadline $((60000 * SLOW)) --gap 30000 --count 3
	pieces 5 0 3
	pieces 6 0 1 2 3
	ended_well server 30
	piece_record 8 100 5 ' of 28 at 100 more'
	piece_record 4 124 5 ' of 28 at 100 came 12'
	piece_record 28 100 6 ''
}

newer_discards() { # OLDER NEWER
	open_zone --any --deadline $((60000 * SLOW)) --count 1
	before messages_superseded dropped_late
	pieces "$1" 0 1
	pieces "$2" 0 3
	rises messages_superseded 1
	dgm_write --source-port 7711 to=124 "msn=$1" mo=24 ml=28 last=1 --data ZZZZ
	rises dropped_late 1
	pieces "$2" 2 1
	ended_well server 30
	piece_record 28 100 "$2" ''
	region_is 4096 100 $TEXT
}

# Each port is a source. The fifth one takes the slot of the first
slots_are_few() {
	open_zone --any --deadline $((60000 * SLOW)) --slots 4 --count 2
	before messages_evicted
	for piece_port in 7711 7712 7713 7714 7715; do
		piece 5 0
	done
	rises messages_evicted 1
	for piece_port in 7715 7712; do
		pieces 5 1 2 3
	done
	ended_well server 30
	for piece_port in 7715 7712; do
		piece_record 28 100 5 ''
	done
	rises messages_evicted 1
	piece_port=7711
}

# A datagram that is not as the message's others, or not good by itself, is dropped; the message completes without it
contradiction() { # COUNTER FIELD=VALUE | OPTION of dgmpeer…
	open_zone --any --deadline $((60000 * SLOW)) --count 1
	before "$1"
	pieces 7 0 3
	dgm_write --source-port 7711 msn=7 ml=28 last=0 "${@:2}"
	rises "$1" 1
	pieces 7 1 2
	ended_well server 30
	piece_record 28 100 7 ''
	region_is 4096 100 $TEXT
}

alone() { # COUNTER FIELD=VALUE | OPTION of dgmpeer…
	open_zone --any --count 1
	before "$1"
	dgm_write --source-port 7711 msn=7 last=0 "${@:2}"
	rises "$1" 1
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	region_is 4096
}

# Neither the deadline's records nor datagrams come behind ERROR
error_discards() {
	open_zone --any --partial --deadline $((8000 * SLOW)) --to-error --count 100
	pieces 5 0 2
	dgm_send qkey=$QKEY --data end
	wait_line server '^flushed' 30
	ended_well server $((16 * SLOW))
	! sed '/^received/,$d' "$WORK/server.log" | grep '^record' || fail 'the deadline was over before the QP was in ERROR'
	! has_line server '^record' || fail 'a message was recorded in ERROR'
}

# DGM-22
error_drops() {
	open_zone --any --deadline $((4000 * SLOW)) --to-error --count 100
	dgm_send qkey=$QKEY --data end
	wait_line server '^flushed' 30
	before dropped_qp_state
	dgm_write to=8 --data late
	rises dropped_qp_state 1
	ended_well server $((10 * SLOW))
	! has_line server '^record' || fail 'a write was recorded in ERROR'
	region_is 4096
}

# Each datagram of a bundle counts
error_drops_bundles() {
	local sent
	open_zone --any --to-error --count 100 --zone-size 60000
	dgm_send qkey=$QKEY --data end
	wait_line server '^flushed' 30
	before dropped_qp_state
	sent=$(counter d0 sent)
	write_zone a --data late --size 50000
	sent=$(($(counter d0 sent) - sent))
	((sent > 30)) || fail "$sent datagrams"
	rises dropped_qp_state $sent
	ended_well server $((10 * SLOW))
}

# Needs CONFIG_INET_DIAG_DESTROY
keeps_its_port() {
	serve --count 1
	within b ss -K -auH "sport = :$qpn" >"$WORK/ss"
	[[ $(within b ss -auH "sport = :$qpn") ]] || fail 'the socket has lost its port'
	dgm_send qkey=$QKEY --data here
	ended_well server $((10 * SLOW))
}

# Sends one write of dgqp, and checks the number of its datagrams and the memory of the zone
writes() { # DATAGRAMS SIZE [OPTION of dgqp]…
	local before
	before=$(counter d0 sent)
	write_zone a --size "$2" --data text "${@:3}"
	is 'the status of the source' $STATUS 0
	is 'datagrams of the message' $(($(counter d0 sent) - before)) "$1"
	ended_well server 20
	message "$2" text >"$WORK/message"
	region_is 200000 77 @"$WORK/message"
}

# At MTU 1500 a datagram has 1438 octets of data over IPv4, and 1418 over IPv6. 45 of them are a bundle
long_write() { # GID-INDEX FAMILY DATAGRAMS
	local packets target
	set_mtu 1500
	target=$(address b "$2")
	open_zone --any --zone-size 200000 --count 1
	packets=$(within a cat /sys/class/net/eth0/statistics/tx_packets)
	before written
	count_packets
	run_well client a 30 "$DGQP" write --device d0 --gid "$1" "${OWN[@]}" --port 7705 "$target" "$qpn" --zone "0x$zone" --key "0x$key" \
		--offset 77 --size 100000 --data text
	packets=$(($(within a cat /sys/class/net/eth0/statistics/tx_packets) - packets))
	ended_well server 30
	rises written "$3"
	has_line server "^record 100000 at 77 of $zone msn 1 from [^ ]* port 7705\$"
	message 100000 text >"$WORK/message"
	region_is 200000 77 @"$WORK/message"
	((packets < $3 / 2)) || fail "$3 datagrams took $packets packets, although the interface takes bundles"
	note "$3 datagrams, $packets packets"
	came_in_bundles "$3"
}

# Packets that the module takes from its sockets, from now on, on a kernel with kprobes. It asks a socket that has one
count_packets() {
	[[ -e $TRACING/kprobe_events ]] || return 0
	echo 'p:taken __skb_recv_udp' >$TRACING/kprobe_events
	echo 1 >$TRACING/events/kprobes/taken/enable
}

came_in_bundles() { # DATAGRAMS
	local taken
	[[ -e $TRACING/kprobe_events ]] || { note 'this kernel has no kprobes' && return; }
	taken=$(awk '$1 == "taken" { print $2 }' $TRACING/kprobe_profile)
	stop_counting
	note "$taken packets at the receiver"
	((taken > 0 && taken < $1 / 2)) || fail "$1 datagrams came in $taken packets"
}

stop_counting() {
	[[ ! -e $TRACING/events/kprobes/taken ]] || {
		echo 0 >$TRACING/events/kprobes/taken/enable
		echo >$TRACING/kprobe_events
	}
}

cut_write() { # DATAGRAMS SIZE [OPTION of dgqp]…
	open_zone --any --zone-size 200000 --count 1
	writes "$1" "$2" --offset 77 "${@:3}"
	has_line server "^record $2 at 77 of $zone msn 1 "
}

too_many_datagrams() {
	open_zone --any --zone-size 200000 --count 1
	write_zone a --segment 4 --size 4097
	is 'the status of the source' $STATUS 2
	has_line client '^status local length error$'
	writes 1024 4096 --offset 77 --segment 4
}

# 1,400 octets fit the interface, not the route: the message begins anew, with datagrams of 938
narrow_route() {
	within a ip route add 10.77.0.2/32 dev eth0 mtu 1000
	open_zone --any --zone-size 200000 --count 1
	writes 2 1400 --offset 77
	has_line server "^record 1400 at 77 of $zone msn 2 "
	open_zone --any --zone-size 200000 --count 1
	writes 6 5000 --offset 77
	has_line server "^record 5000 at 77 of $zone msn 1 "
	within a ip route del 10.77.0.2/32 dev eth0
}

# Packets wait for the address of a next hop that nobody has, and count for the socket, which takes about 200 KB
hold_packets() {
	holds=1
	within a sysctl -qw net.ipv4.neigh.eth0.unres_qlen_bytes=100000000 net.ipv4.neigh.eth0.mcast_solicit=1000
	within a ip route add 10.77.0.2/32 via 10.77.0.99 dev eth0
}

# MTU: of the route, as from now on
pass_packets() { # [MTU]
	[[ -z ${1:-} ]] || within a ip route change 10.77.0.2/32 via 10.77.0.99 dev eth0 mtu "$1"
	within a ip neigh replace 10.77.0.99 lladdr "$(within b cat /sys/class/net/eth0/address)" dev eth0 nud permanent
}

stop_holding() {
	holds=''
	within a ip route del 10.77.0.2/32 via 10.77.0.99 dev eth0
	within a ip neigh del 10.77.0.99 dev eth0
}

end_case() {
	[[ -z ${holds:-} ]] || stop_holding
	[[ -z ${another:-} ]] || within a ip link del eth1
	[[ -z ${sctp:-} ]] || links_of_siw
	stop_counting
}

# start_waiting SIZE [OPTION of dgqp]…: a write that waits for the socket in the middle of a message
start_waiting() {
	open_zone --any --zone-size 2000000 --deadline $((60000 * SLOW)) --count 1
	before_sent=$(counter d0 sent)
	hold_packets
	start client a $((50 * SLOW)) "$DGQP" write --device d0 "${OWN[@]}" --port 7705 "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" \
		--data text --size "$1" "${@:2}"
	wait_for 20 'the first bundles' sent_is_more "$before_sent"
	# Long enough for all of it, if nothing held it
	pause $((2 * SLOW))
}

sent_is_more() { # VALUE
	(($(counter d0 sent) > $1))
}

# The server has recorded message MSN of this length, and the zone holds it
waited_well() { # SIZE MSN
	ended_well server 20
	has_line server "^record $1 at 0 of $zone msn $2 " || fail "no record of message $2"
	message "$1" text >"$WORK/message"
	region_is 2000000 0 @"$WORK/message"
}

# ICMP reports the closed port: to a program that wants it, as the error of its next request
closed_port() { # before | after, GID-INDEX, FAMILY, NAME of the counter
	local before
	before=$(network_counter a "$4")
	run client a 30 "$DGQP" write --device d0 --gid "$2" "${OWN[@]}" --port 7705 --recverr "$1" "$(address b "$3")" 7999 --zone 5 --key 6 \
		--count 5 --data lost
	is 'the status of the source' $STATUS 0
	(($(network_counter a "$4") > before)) || fail 'no message of ICMP has come'
}

# 1,000,000 octets are 696 datagrams
full_socket() {
	start_waiting 1000000
	(($(counter d0 sent) - before_sent < 600)) || fail 'the message did not wait'
	pass_packets
	ended_well client 30
	stop_holding
	waited_well 1000000 1
}

# The bundles that wait have datagrams of 1,438 octets; the next one is refused as a whole, then its first datagram
bundle_is_refused() {
	start_waiting 500000
	(($(counter d0 sent) - before_sent < 300)) || fail 'the message did not wait'
	pass_packets 1000
	ended_well client 30
	stop_holding
	waited_well 500000 2
}

# interrupted STATE: the QP of a message that waits enters it; then the packets pass, and the client reports STATUS
interrupted() { # STATE STATUS
	local sent
	start_waiting 1000000 --interrupt "$1" --linger $((5000 + 3000 * SLOW))
	wait_line client '^interrupted' $((10 * SLOW))
	sent=$(counter d0 sent)
	((sent - before_sent < 600)) || fail 'the message did not wait'
	pass_packets
	if [[ $1 == sqd ]]; then
		pause 1
		is 'datagrams sent in SQD' "$(counter d0 sent)" "$sent"
	fi
	ended_well client $((20 * SLOW))
	stop_holding
	has_line client "^status $2\$"
}

# SQD holds what has not been sent, until RTS
stopped_in_sqd() {
	interrupted sqd success
	waited_well 1000000 1
}

# RESET forgets the message; the next one is complete
stopped_in_reset() {
	interrupted reset success
	waited_well 1000000 2
}

stopped_in_error() {
	interrupted error 'Work Request Flushed Error'
	stop server
}

# The doorbell of a long message does not keep a program that is killed: 66,000,000 octets are 1,009 datagrams, as lo takes 65,473
# of them in an IPv4 packet. The program ends in the middle of a message: some further bundles are sent while it ends, which
# may complete its message, but not each time
killed_in_a_doorbell() {
	local sent tries=0
	start server b $((110 * SLOW)) "$DGQP" zone --device d1 "${OWN[@]}" --timeout $((100 * SLOW)) --any --zone-size 67000000 --count 1000
	wait_ready server '^ready'
	read -r qpn zone key <<<"$(sed -n 's/^ready //p' "$WORK/server.log")"
	until ((tries == 10)); do
		tries=$((tries + 1))
		before_sent=$(counter d1 sent)
		start client b 60 "$DGQP" write --device d1 "${OWN[@]}" --depth 1 "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" \
			--size 66000000 --data text --count 1000
		wait_for 30 'the first datagrams' sent_on_d1_is_more "$before_sent"
		stop client KILL
		sent=$(($(counter d1 sent) - before_sent))
		note "$sent datagrams"
		((sent % 1009 == 0)) || break
	done
	stop server
	((sent % 1009)) || fail 'the doorbell kept the program until it had sent all of a message'
}

sent_on_d1_is_more() { # VALUE
	(($(counter d1 sent) > $1))
}

# The route of this TOS is narrower than the interface. Bit 0 chooses no route, but a lookup with it finds none with a gateway
tos_route() { # TCLASS TOS-OF-THE-ROUTE…
	local tos added=0
	within a ip neigh replace 10.77.0.99 lladdr "$(within b cat /sys/class/net/eth0/address)" dev eth0 nud permanent
	for tos in "${@:2}"; do
		! within a ip route add 10.77.0.2/32 tos "$tos" via 10.77.0.99 dev eth0 mtu 1000 2>/dev/null || added=$((added + 1))
	done
	((added > 0)) || fail 'no route was added'
	open_zone --any --zone-size 200000 --count 1
	writes 6 5000 --offset 77 --tclass "$1"
	for tos in "${@:2}"; do
		within a ip route del 10.77.0.2/32 tos "$tos" dev eth0 2>/dev/null || true
	done
	within a ip neigh del 10.77.0.99 dev eth0
	has_line server "^record 5000 at 77 of $zone msn 1 "
}

# Of the address handle, or of the socket if that has none. 1,218 octets of data in a datagram, else 1,418: no second message is necessary
tclass_route() { # OPTION of dgqp…
	within a ip -6 route add fd77::2/128 dev eth0 mtu 1300 table 77
	within a ip -6 rule add tos 0x10 table 77
	open_zone --any --zone-size 200000 --count 1
	run client a 30 "$DGQP" write --device d0 --gid 1 "${OWN[@]}" --port 7705 "$(address b 6)" "$qpn" --zone "0x$zone" --key "0x$key" \
		--size 5000 --data text --offset 77 "$@"
	within a ip -6 rule del tos 0x10 table 77
	within a ip -6 route del fd77::2/128 table 77
	is 'the status of the source' $STATUS 0
	ended_well server 20
	has_line server "^record 5000 at 77 of $zone msn 1 " || fail 'the first datagrams were too long'
}

# ---- IP fragments

# A counter of the network namespace NETNS
network_counter() { # NETNS NAME of nstat
	within "$1" nstat -az "$2" | awk -v name="$2" '$1 == name { print $2 }'
}

# 100,000 octets in two datagrams
fragments_come() {
	local cut joined
	joined=$(network_counter b IpReasmOKs)
	cut=$(network_counter a IpFragCreates)
	from_libdgm 60000 --segment 60000 --fragment
	(($(network_counter a IpFragCreates) - cut >= 60)) || fail 'the datagrams came without fragments'
	is 'datagrams that IP has put together' $(($(network_counter b IpReasmOKs) - joined)) 2
}

no_fragments() { # GID-INDEX FAMILY
	local cut name=Ip${2}FragCreates
	cut=$(network_counter a "$name")
	open_zone --any --zone-size 200000 --count 1
	run client a 30 "$DGQP" write --device d0 --gid "$1" "${OWN[@]}" --port 7705 "$(address b "$2")" "$qpn" --zone "0x$zone" --key "0x$key" \
		--segment 20000 --size 100000 --data text --offset 77
	is 'the status of the source' $STATUS 0
	ended_well server 30
	is 'fragments' $(($(network_counter a "$name") - cut)) 0
}

# Five datagrams of 20,000 octets of data
fragments_leave() { # GID-INDEX FAMILY
	local cut before name=Ip${2}FragCreates
	cut=$(network_counter a "$name")
	before=$(counter d0 sent)
	open_zone --any --zone-size 200000 --count 1
	run client a 30 "$DGQP" write --device d0 --gid "$1" "${OWN[@]}" --port 7705 "$(address b "$2")" "$qpn" --zone "0x$zone" --key "0x$key" \
		--flags 1 --segment 20000 --size 100000 --data text --offset 77
	is 'the status of the source' $STATUS 0
	is datagrams $(($(counter d0 sent) - before)) 5
	ended_well server 30
	has_line server "^record 100000 at 77 of $zone msn 1 "
	(($(network_counter a "$name") - cut >= 70)) || fail 'the datagrams left without fragments'
	message 100000 text >"$WORK/message"
	region_is 200000 77 @"$WORK/message"
}

fragmented_send() {
	serve --size 8000
	run_well client a 30 "$DGQP" send --device d0 "${OWN[@]}" --flags 1 "$(address b)" "$qpn" --size 8000 --data large
	wait_line server '^received 8000 from .*: large' 30
}

# ---- error messages

# A datagram of dgmpeer with 24 octets of data, from port 7711
refused() { # FIELD=VALUE…
	dgm_write --source-port 7711 --data "${TEXT:0:24}" "$@"
}

# Captures what leaves b as UDP or as an error of ICMP, until `stop watch INT`
watch_b() {
	start watch b $((200 * SLOW)) tcpdump -Z root -U --immediate-mode -i eth0 -w "$WORK/sent_by_b.pcap" \
		"src host $(address b) and (udp or icmp)"
	wait_ready watch 'listening on'
}

# Prints the number of packets
sent_by_b() {
	tcpdump -Z root -nr "$WORK/sent_by_b.pcap" 2>/dev/null | wc -l
}

# The target sends error messages, and names a alone. WRONG changes the number of the zone or its Q_Key
answers() { # ERROR WRONG OPTION of dgqp write…
	open_zone --from "$(address a)" --flags 2 --count 1000
	case $2 in
	zone) zone=00000005 ;;
	key) key=00000005 ;;
	esac
	before error_messages_sent
	watch_b
	write_zone a --flags 4 --linger $((1500 * SLOW)) --data refused --size 100 "${@:3}"
	is 'the status of the source' $STATUS 0
	rises error_messages_sent 1
	stop server
	stop watch INT
	is 'packets of the target' "$(sent_by_b)" 1
	is 'error messages that the source has seen' "$(grep -c '^error' "$WORK/client.log")" 1
	has_line client "^error $1 about 100 at 4000 of $zone msn 1 of 100 at 4000 from ::ffff:10.77.0.2 port $qpn\$"
}

# What each of these does is refused, and has no answer
is_silent() { # COUNTER COMMAND…
	before "$1"
	watch_b
	"${@:2}"
	rises "$1" 1
	pause 1
	stop watch INT
	is 'packets of the target' "$(sent_by_b)" 0
}

silent_by_default() {
	open_zone --from "$(address a)" --count 1000
	is_silent dropped_range refused to=4090
	stop server
}

silent_to_all() {
	open_zone --any --flags 2 --count 1000
	is_silent dropped_range refused to=4090
	stop server
}

silent_to_others() {
	open_zone --from "$(address b)" --flags 2 --count 1000
	is_silent dropped_source refused to=0
	# A named source has an error message about this one
	is_silent dropped_no_zone refused stag=5 to=0
	stop server
}

silent_to_errors() {
	open_zone --from "$(address a)" --flags 2 --count 1000
	is_silent error_messages_received run_well peer a 10 "$DGMPEER" send "$(address b)" "$qpn" error --data "$TEXT"
	is_silent dropped_crc refused --bad-crc to=0
	# With a good CRC this one has an error message
	is_silent dropped_range refused --bad-crc to=4090
	is_silent dropped_qkey dgm_send qkey=5 --data "$TEXT$TEXT"
	stop server
}

# A flood of refused writes has no error message, and has used none up: a write from a named port has it.
flood_is_silent() { # COUNTER OPTION of dgqp write…
	local i
	before "$1" error_messages_sent
	watch_b
	start flood a 60 "$DGQP" write --device d0 "${OWN[@]}" --data flood --count 10000000 --timeout 50 "${@:2}"
	wait_for 30 'the flood' is_above "$1"
	pause 1
	stop watch INT
	is 'packets of the target' "$(sent_by_b)" 0
	for ((i = 0; i < 10; i++)); do
		! is_above error_messages_sent || break
		refused to=4090
	done
	wait_for 20 'an error message' is_above error_messages_sent
	stop flood
	stop server
}

# 58 octets have an error message, 57 have none
silent_to_short() {
	open_zone --from "$(address a)" --flags 2 --count 1000
	flood_is_silent dropped_range "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" --offset 4090 --size 23
}

others_use_nothing_up() {
	open_zone --from "$(address a),7711" --flags 2 --count 1000
	flood_is_silent dropped_no_zone "$(address b)" "$qpn" --zone 5 --key 6 --size 100
}

silent_to_broadcast() {
	open_zone --port 7701 --from "$(address a)" --flags 2 --count 1000
	flood_is_silent dropped_range --port 7705 --broadcast 10.77.0.255 7701 --zone "0x$zone" --key "0x$key" --offset 4090 --size 100
}

# Nobody else has the group
silent_to_multicast() {
	open_zone --port 7701 --group 239.7.7.7 --from "$(address a)" --flags 2 --count 1000
	flood_is_silent dropped_range 239.7.7.7 7701 --zone "0x$zone" --key "0x$key" --offset 4090 --size 100
}

# However fast they come: one a second
answers_are_few() {
	local begin seconds
	open_zone --from "$(address a)" --flags 2 --count 1000
	before error_messages_sent dropped_range
	begin=$(now_ms)
	write_zone a --offset 4000 --size 100 --count $((2000 / SLOW))
	is 'the status of the source' $STATUS 0
	rises dropped_range $((2000 / SLOW))
	seconds=$((($(now_ms) - begin) / 1000 + 1))
	stop server
	note "$(($(counter d1 error_messages_sent) - value_before[error_messages_sent])) error messages in $seconds s"
	(($(counter d1 error_messages_sent) > value_before[error_messages_sent])) || fail 'no error message'
	(($(counter d1 error_messages_sent) - value_before[error_messages_sent] <= seconds)) || fail 'too many error messages'
}

# error_about MSN QKEY: an error message about 24 octets at 1,000 of zone 5
error_about() {
	python3 -c 'import struct, sys
msn, qkey = int(sys.argv[1]), int(sys.argv[2])
body = bytes.fromhex("4147") + struct.pack(">IIIIBBHH", 0, 2, 1, 0, 0x11, 0, 0xc000, 54) + \
	struct.pack(">BBIQIIII", 0xe1, 0x40, 5, 1000, msn, 0, 24, qkey)
crc = 0xffffffff
for octet in body:
	crc ^= octet
	for _ in range(8):
		crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
print((body + struct.pack("<I", crc ^ 0xffffffff)).hex())' "$@"
}

# The target is no QP: it answers as it likes. A forged error message differs in its port, the Q_Key, or the number of the message
forged_errors() {
	start target b $((30 * SLOW)) "$DGMPEER" expect --timeout $((20 * SLOW)) "$(address b)" 7720
	wait_ready target '^listening'
	start client a $((60 * SLOW)) "$DGQP" write --device d0 "${OWN[@]}" --port 7705 "$(address b)" 7720 --zone 5 --key 6 --offset 1000 \
		--data "${TEXT:0:24}" --flags 4 --linger $((50000 * SLOW))
	ended_well target $((20 * SLOW))
	before_received=$(counter d0 error_messages_received)
	forge 7721 "$(error_about 1 6)"
	forge 7720 "$(error_about 1 7)"
	forge 7720 "$(error_about 2 6)"
	wait_for 20 'the forged error messages' counter_is d0 error_messages_received $((before_received + 3))
	! has_line client '^error' || fail 'a forged error message has a completion'
	forge 7720 "$(error_about 1 6)"
	forge 7720 "$(error_about 1 6)"
	wait_for 20 'the error messages' counter_is d0 error_messages_received $((before_received + 5))
	wait_line client '^error' 30
	stop client
	is 'error messages that the source has seen' "$(grep '^error' "$WORK/client.log")" \
		'error 1100 about 24 at 1000 of 00000005 msn 1 of 24 at 1000 from ::ffff:10.77.0.2 port 7720'
}

has_errors() { # NUMBER
	[[ $(grep -c '^error' "$WORK/client.log") == "$1" ]]
}

# The client's queue has 8 entries, and keeps one for each of its two requests
full_queue_of_errors() {
	local msn before_full
	before_sent=$(counter d0 sent)
	start client a $((60 * SLOW)) "$DGQP" write --device d0 "${OWN[@]}" --port 7705 "$(address b)" 7720 --zone 5 --key 6 --offset 1000 \
		--data "${TEXT:0:24}" --flags 4 --count 7 --depth 1 --records 4 --linger $((50000 * SLOW))
	wait_for 20 'the writes' counter_is d0 sent $((before_sent + 7))
	pause 1
	pkill -STOP -P "${pid_of[client]}"
	before_full=$(counter d0 dropped_cq_full)
	for msn in {1..7}; do
		forge 7720 "$(error_about "$msn" 6)"
	done
	wait_for 20 'an error message without room' counter_is d0 dropped_cq_full $((before_full + 1))
	pkill -CONT -P "${pid_of[client]}"
	wait_for 20 'six error messages' has_errors 6
	forge 7720 "$(error_about 7 6)"
	wait_for 20 'the seventh error message' has_errors 7
	stop client
}

forge() { # SOURCE-PORT HEX
	run_well peer b 10 "$DGMPEER" raw "$(address a)" 7705 "$2" --source-port "$1"
}

# Peers of both kinds: libdgm refuses, the module reports; and the other way round
libdgm_answers() {
	start server b 60 "$DGM/dgm-recv" --bind "$(address b)" --from "$(address a)" --size 4096 --errors --idle $((5 * SLOW)) --json
	wait_line server / 30
	IFS=:/ read -r _ qpn zone key _ <"$WORK/server.log"
	write_zone a --offset 4000 --size 100 --data refused --flags 4 --linger $((1500 * SLOW))
	has_line client "^error 1101 about 100 at 4000 of $zone msn 1 of 100 at 4000 from ::ffff:10.77.0.2 port $qpn\$" || fail 'no error message'
	stop server
}

answers_libdgm() {
	open_zone --from "$(address a)" --flags 2 --count 1000
	head -c 5000 /dev/urandom >"$WORK/file"
	run_well sender a 30 "$DGM/dgm-send" --input "$WORK/file" --message 1000 --errors "$(address b):$qpn/$zone/$key/100000/${QKEY#0x}"
	stop server
	has_line sender 'the target has refused 1000 octets at 4000 \(message 5\): error 1101$' || fail 'no error message'
}

# A QP with error messages goes while peers cause them
errors_under_traffic() { # kill | link | module
	open_zone --from "$(address a)" --flags 6 --count 1000000
	before error_messages_sent
	start flood a 60 "$DGQP" write --device d0 "${OWN[@]}" "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" --offset 4000 \
		--size 100 --flags 6 --count 10000000 --timeout 50
	wait_for 20 'an error message' is_above error_messages_sent
	case $1 in
	kill) stop server KILL ;;
	link) within b rdma link del d1 ;;
	module) rmmod siw_dg ;;
	esac
	[[ $1 == kill ]] || stop server
	stop flood
	case $1 in
	link) within b rdma link add d1 type siw_dg netdev eth0 ;;
	module)
		load_siw_dg
		add_siw_dg_links
		;;
	esac
}

# A doorbell sends at most 4 MiB and leaves the rest to a work item. lo has an MTU of 65,536
# Again if a datagram gets lost: on a busy host the socket's receive buffer can be full
huge_write() {
	local tries=0
	start server b 100 "$DGQP" zone --device d1 "${OWN[@]}" --timeout 90 --output "$WORK/region" --any --deadline 60000 --zone-size 10000000 \
		--count 1
	wait_ready server '^ready'
	read -r qpn zone key <<<"$(sed -n 's/^ready //p' "$WORK/server.log")"
	until ((tries == 3)) || has_line server '^record'; do
		run_well client b 60 "$DGQP" write --device d1 "${OWN[@]}" --depth 1 "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" \
			--size 10000000 --data text
		tries=$((tries + 1))
		pause 1
	done
	ended_well server 20
	has_line server "^record 10000000 at 0 of $zone "
	message 10000000 text >"$WORK/message"
	cmp "$WORK/message" <(tail -c +$((MARGIN + 1)) "$WORK/region" | head -c 10000000) || fail 'the message changed on its way'
	rm "$WORK/message" "$WORK/region"
}

# A block is valid if one datagram has written all of it: not block 4, of which each of two datagrams wrote a half
validity_map() {
	open_zone --any --no-record --block 100 --zone-size 1050 --count 1
	write_zone a --offset 100 --size 250 --data one
	write_zone a --offset 1000 --size 50 --data two
	write_zone a --offset 300 --size 300 --segment 150 --data three
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	is 'valid blocks' "$(sed -n 's/^blocks *//p' "$WORK/server.log" | head -n 1)" '1 2 3 5 10'
	is 'valid blocks after the program has cleared them' "$(sed -n 's/^blocks *//p' "$WORK/server.log" | tail -n 1)" ''
}

# DGM-30: the records around a Send leave the queue, the Send stays in it
records_are_folded() {
	open_zone --any --fold --deadline $((60000 * SLOW)) --count 3
	before written received
	stop_process server
	dgm_write to=10 msn=1 --data one
	dgm_send qkey=$QKEY --data middle
	dgm_write to=200 msn=2 --data three
	piece 3 3
	pieces 3 0 1 2
	rises written 6
	rises received 1
	kill -CONT "$(pgrep -P "${pid_of[server]}")"
	ended_well server 20
	is 'the folded records' "$(grep '^folded' "$WORK/server.log")" $'folded 3 at 10\nfolded 5 at 200\nfolded 28 at 100'
	has_line server '^received 6 .*: middle$'
	! has_line server '^record' || fail 'a record is still in the queue'
}

# Each octet that is recorded is right; what is written and not recorded is of messages whose Last was lost
lossy_from_libdgm() {
	local valid
	modprobe -q sch_netem || true
	open_zone --any --partial --zone-size 4000000 --records 8192 --until-send --count 100000
	before messages_superseded
	within a tc qdisc replace dev eth0 root netem limit 100000 delay 300us loss 2% duplicate 5% reorder 25%
	within a bash -c "'$DGM/dgm_pattern' write 4000000 | '$DGM/dgm-send' --message 65536 --rate 40 --no-bundle \
		'$(address b):$qpn/$zone/$key/4000000/${QKEY#0x}'" >"$WORK/send.log"
	within a tc qdisc del dev eth0 root
	ended_well server 30
	sed -nE 's/^record ([0-9]+) at ([0-9]+) .*/\2 \1/p' "$WORK/server.log" | sort -n >"$WORK/map"
	tail -c +$((MARGIN + 1)) "$WORK/region" | head -c 4000000 >"$WORK/zone"
	"$DGM/dgm_pattern" check "$WORK/zone" "$WORK/map" $((($(counter d1 messages_superseded) - value_before[messages_superseded]) * 65536)) \
		>"$WORK/check.log" || fail "$(<"$WORK/check.log")"
	note "$(<"$WORK/check.log")"
	valid=$(sed -n 's/ octets valid.*//p' "$WORK/check.log")
	((valid > 2000000 && valid < 4000000)) || fail 'more was lost than the network loses, or nothing'
}

# Messages are in progress, and their timer runs, while their QP goes
pending_goes() { # kill | link
	open_zone --any --partial --deadline $((4000 * SLOW)) --count 1000
	before written
	pieces 5 0 2
	rises written 2
	if [[ $1 == kill ]]; then
		stop server KILL
	else
		within b rdma link del d1
		stop server
	fi
	pause $((5 * SLOW))
	[[ $1 == kill ]] || within b rdma link add d1 type siw_dg netdev eth0
}

# ---- with libdgm

# dgm-send's file arrives in a zone of the module, and its notices in receives
from_libdgm() { # MESSAGE [OPTION of dgm-send]…
	local records=$(((100000 + $1 - 1) / $1))
	head -c 100000 /dev/urandom >"$WORK/file"
	open_zone --from "$(address a)" --records 1024 --zone-size 100000 --count $((records + 8))
	run_well sender a 30 "$DGM/dgm-send" --input "$WORK/file" --message "$1" "${@:2}" \
		"$(address b):$qpn/$zone/$key/100000/${QKEY#0x}"
	ended_well server 20
	is records "$(grep -c '^record' "$WORK/server.log")" $records
	cmp "$WORK/file" <(tail -c +$((MARGIN + 1)) "$WORK/region" | head -c 100000) || fail 'the file changed on its way'
}

to_libdgm() {
	start server b 60 "$DGM/dgm-recv" --bind "$(address b)" --from "$(address a)" --size 4096 --output "$WORK/zone" \
		--map "$WORK/map" --idle $((5 * SLOW)) --json
	wait_line server / 30
	IFS=:/ read -r _ qpn zone key _ <"$WORK/server.log"
	write_zone a --offset 1000 --data kernel
	is 'the status of the source' $STATUS 0
	write_zone a --offset 4090 --data behind
	write_zone a --offset 4091 --data beyond
	ended_well server 70
	is 'the map' "$(<"$WORK/map")" $'1000 6\n4090 6'
	is 'its memory' "$(tr -d '\0' <"$WORK/zone")" kernelbehind
	is 'messages out of bounds' "$(tail -n 1 "$WORK/server.log" | jq .counters.out_of_bounds)" 1
}

long_to_libdgm() {
	start server b 60 "$DGM/dgm-recv" --bind "$(address b)" --from "$(address a)" --size 200000 --output "$WORK/zone" \
		--map "$WORK/map" --idle 2 --json
	wait_line server / 30
	IFS=:/ read -r _ qpn zone key _ <"$WORK/server.log"
	write_zone a --offset 1000 --size 150000 --data kernel
	is 'the status of the source' $STATUS 0
	ended_well server 70
	is 'the map' "$(<"$WORK/map")" '1000 150000'
	message 150000 kernel >"$WORK/message"
	cmp "$WORK/message" <(tail -c +1001 "$WORK/zone" | head -c 150000) || fail 'the message changed on its way'
	is 'datagrams' "$(tail -n 1 "$WORK/server.log" | jq .counters.segments_placed)" 105
}

# Each field wrong once, and cut at each length
hostile() { # [OPTION of dgmpeer]
	local before
	open_zone --any --count 2
	before=$(dropped d1)
	run_well hostile a $((30 * SLOW)) "$DGMPEER" hostile "$(address b):$qpn/$zone/$key/4096/${QKEY#0x}" "$@"
	note "$(tail -n 1 "$WORK/hostile.log")"
	wait_for $((10 * SLOW)) 'each of them in a counter' dropped_are d1 $((before + $(jq add "$WORK/hostile.log")))
	dgm_send qkey=$QKEY --data end
	good_write_is_first
}

# Those of an honest sender that are lost beside a flood of bad ones, in a thousandth of a percent
honest_loss() { # [BAD-DATAGRAMS]
	local sent written bad
	open_zone --any --no-record --end end --count 100000000
	before written
	sent=$(counter d0 sent) bad=$(dropped d1)
	start honest a $((100 * SLOW)) "$DGQP" write --device d0 "${OWN[@]}" "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" \
		--offset 2000 --size 1438 --data honest --count 100000000 --timeout $((100 * SLOW))
	wait_for 30 'the honest sender' is_above written
	if [[ -n ${1:-} ]]; then
		run_well flood a $((60 * SLOW)) "$DGMPEER" hostile "$(address b):$qpn/$zone/$key/4096/${QKEY#0x}" --count "$1"
	else
		wait_for 30 'some honest datagrams' sent_is_more $((sent + 5000))
	fi
	stop honest
	sent=$(($(counter d0 sent) - sent)) bad=$(($(dropped d1) - bad))
	dgm_send qkey=$QKEY --data end
	ended_well server 30
	written=$(($(counter d1 written) - value_before[written]))
	note "$written of $sent honest datagrams came, and $bad of ${1:-0} bad ones"
	((bad >= ${1:-0} * 9 / 10)) || fail "only $bad bad datagrams came beside the honest sender"
	lost=$(((sent - written) * 100000 / sent))
}

# Section 7 of the design
flooded() { # BAD-DATAGRAMS
	local lost alone
	honest_loss
	alone=$lost
	honest_loss "$1"
	note "lost $alone thousandths of a percent without the flood, $lost beside it"
	((lost - alone <= 1000)) || fail "the flood costs the honest sender $((lost - alone)) thousandths of a percent"
}

judged_are() { # NUMBER of datagrams since `before`, each in one counter
	(($(judged) - judged_before == $1))
}

judged() {
	echo $(($(dropped d1) + $(counter d1 written) + $(counter d1 received) + $(counter d1 receive_errors) +
		$(counter d1 error_messages_received)))
}

# A random number of a datagram, whose CRC is right, leads to nothing but its zone or its receive
mutated() { # NUMBER [OPTION of dgmpeer]
	local judged_before
	open_zone --any --partial --depth 1024 --records 16384 --end end --count 100000000
	judged_before=$(judged)
	run_well mutate a $((60 * SLOW)) "$DGMPEER" mutate "$(address b):$qpn/$zone/$key/4096/${QKEY#0x}" --count "$@"
	note "$(<"$WORK/mutate.log")"
	wait_for 30 "each of $1 datagrams in a counter" judged_are "$1"
	dgm_send qkey=$QKEY --data end
	ended_well server $((30 * SLOW))
	note "$(grep -c '^record' "$WORK/server.log") records, $(grep -c '^received' "$WORK/server.log") messages"
	cmp <(head -c $MARGIN "$WORK/region"; tail -c $MARGIN "$WORK/region") <(head -c $((2 * MARGIN)) /dev/zero) ||
		fail "memory beside the zone was written: $(<"$WORK/mutate.log")"
}

# Repeats them for those that find the receiver's socket full
guesses() { # NUMBER
	local before judged=0 round
	open_zone --any --count 1
	before=$(counter d1 dropped_no_zone)
	for ((round = 0; judged < $1 && round < 10; round++)); do
		write_zone a --guess --count "$1" --data guess
		is 'the status of the source' $STATUS 0
		judged=$(($(counter d1 dropped_no_zone) - before))
	done
	((judged >= $1)) || fail "only $judged guesses in $round rounds were dropped for zone and Q_Key"
	note "$judged guesses in $round rounds were dropped for zone and Q_Key"
	# Guesses are for the begin of the zone
	write_zone a --offset 1000 --data right
	ended_well server 30
	region_is 4096 1000 right
}

# ---- ends of zones

flood_zone() { # [NAME NETNS DEVICE SIZE]
	start "${1:-flood}" "${2:-a}" $((10 + 100 * SLOW)) "$DGQP" write --device "${3:-d0}" "${OWN[@]}" "$(address b)" "$qpn" --zone "0x$zone" \
		--key "0x$key" --size "${4:-1400}" --data flood --count 10000000 --timeout $((100 * SLOW))
}

# Before the first QP and between two the port is closed; the senders go on
renews_under_senders() {
	local i
	qpn=7790 zone=4d key=4e
	for i in {1..16}; do
		flood_zone "flood$i"
	done
	start renewer b $((10 + 50 * SLOW)) "$DGQP" renew --device d1 "${OWN[@]}" --port $qpn --zone 0x$zone --key 0x$key --count 10 \
		--timeout $((50 * SLOW))
	ended_well renewer $((10 + 50 * SLOW))
	for i in {1..16}; do
		! is_gone "flood$i" || fail "flood$i: $(tail -n 1 "$WORK/flood$i.log")"
		stop "flood$i"
	done
}

# Writes of 60,000 octets, over lo, take long: one of them is often under way when the zone is closed
closes_under_traffic() {
	zone=4d key=4e
	start churn b 60 "$DGQP" churn --device d1 "${OWN[@]}" --zone 0x$zone --key 0x$key --zone-size 60000 \
		--timeout $((5 + 5 * SLOW))
	wait_ready churn '^ready'
	qpn=$(sed -n 's/^ready //p' "$WORK/churn.log")
	flood_zone flood
	flood_zone long b d1 60000
	ended_well churn $((10 + 10 * SLOW))
	note "$(tail -n 1 "$WORK/churn.log")"
	stop flood
	stop long
}

# The message would be behind the end of the second zone, which has half the length
closes_with_message() {
	open_zone --any --partial --zone-size 200 --deadline $((8000 * SLOW)) --reopen --count 1000
	before written
	pieces 5 0 2
	rises written 2
	dgm_send qkey=$QKEY --data end
	wait_line server '^reopened' 30
	ended_well server $((16 * SLOW))
	! sed '/^reopened/,$d' "$WORK/server.log" | grep '^record' || fail 'the deadline was over before the second zone was open'
	! has_line server '^record' || fail 'the second zone has a record of the first one'
}

zone_is_killed() {
	open_zone --any --count 1000000
	flood_zone
	wait_line server '^record' 20
	stop server KILL
	stop flood
}

device_of_a_zone_goes() {
	open_zone --any --count 1000000
	flood_zone
	wait_line server '^record' 20
	within b rdma link del d1
	stop flood
	stop server
	within b rdma link add d1 type siw_dg netdev eth0
}

# ---- ends

device_goes() {
	serve
	within b rdma link del d1
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn"
	stop server
	within b rdma link add d1 type siw_dg netdev eth0
}

# Its QP is in a group, which the end of the device does not leave
device_goes_with_a_stalled_socket() { # COMMAND…
	start stall b $((90 * SLOW)) "$DGQP" stall --device d1 "${OWN[@]}" --group 239.7.7.7 --timeout $((80 * SLOW))
	wait_ready stall '^stalled'
	run_well remove b 30 "$@"
	! is_gone stall || fail 'the program ended before the device'
	[[ ! -e /sys/class/infiniband/d1 ]] || fail 'the device is still there'
	stop stall KILL
	[[ -e /sys/module/siw_dg ]] || load_siw_dg
	[[ -e /sys/class/infiniband/d0 ]] || within a rdma link add d0 type siw_dg netdev eth0
	within b rdma link add d1 type siw_dg netdev eth0
}

# The process that holds the socket has nothing else of the program
ends_with_a_socket_held_elsewhere() {
	local holder
	start stall b $((90 * SLOW)) "$DGQP" stall --device d1 "${OWN[@]}" --group 239.7.7.7 --timeout $((80 * SLOW)) --elsewhere
	wait_ready stall '^stalled'
	holder=$(sed -n 's/^stalled //p' "$WORK/stall.log")
	stop stall KILL
	run_well remove b 30 rdma link del d1
	[[ -e /proc/$holder ]] || fail 'the socket was not held'
	kill -KILL "$holder"
	within b rdma link add d1 type siw_dg netdev eth0
}

# A QP whose group could not be left would stay, with its device
ends_with_a_group_that_its_socket_left() {
	run_well leave b 30 "$DGQP" leave --device d1 "${OWN[@]}" --group 239.7.7.7
	[[ ! $(rdma resource show qp link d1) ]] || fail "a QP is left: $(rdma resource show qp link d1)"
	run_well remove b 30 rdma link del d1
	run_well unload b 30 rmmod siw_dg
	load_siw_dg
	add_siw_dg_links
}

interface_goes() {
	within a ip link add veth8 type veth peer name veth9
	within a ip address add 10.99.0.1/24 dev veth8
	within a ip link set veth8 up
	within a ip link set veth9 up
	within a rdma link add d8 type siw_dg netdev veth8
	start server a 60 "$DGQP" receive --device d8
	wait_ready server '^ready'
	within a ip link del veth8
	wait_for 20 'the device to go' test ! -e /sys/class/infiniband/d8
	stop server
}

# Namespace gone, with the device d8
add_namespace() {
	ip netns add gone
	ip link add veth8 type veth peer name veth9
	ip link set veth8 netns gone
	ip netns exec gone ip address add 10.99.0.1/24 dev veth8
	ip netns exec gone ip link set veth8 up
	ip netns exec gone rdma link add d8 type siw_dg netdev veth8
}

namespace_goes() {
	add_namespace
	ip netns del gone
	wait_for 20 'the device to go' test ! -e /sys/class/infiniband/d8
}

# With the program of a zone ends its namespace, and at any time from then on the module
unloads_with_a_namespace() {
	local delay
	for delay in 0 0.01 0.03 0.1; do
		add_namespace
		start server gone 60 "$DGQP" zone --device d8 "${OWN[@]}" --timeout 50 --any
		wait_ready server '^ready'
		ip netns del gone
		stop server KILL
		# The namespace goes in a work item
		pause $delay
		run_well remove b 30 rmmod siw_dg
		wait_for 30 'the interface of the namespace to go' test ! -e /sys/class/net/veth9
		load_siw_dg
		add_siw_dg_links
	done
}

# The program of a zone keeps its network namespace; with the program goes the device, and with the interface that of the sender
namespace_goes_under_flood() {
	add_namespace
	ip link set veth9 netns a
	within a ip address add 10.99.0.2/24 dev veth9
	within a ip link set veth9 up
	within a rdma link add d9 type siw_dg netdev veth9
	start server gone $((60 * SLOW)) "$DGQP" zone --device d8 "${OWN[@]}" --timeout $((50 * SLOW)) --any --count 100000000
	wait_ready server '^ready'
	read -r qpn zone key <<<"$(sed -n 's/^ready //p' "$WORK/server.log")"
	start flood a $((60 * SLOW)) "$DGQP" write --device d9 "${OWN[@]}" 10.99.0.1 "$qpn" --zone "0x$zone" --key "0x$key" --size 1400 \
		--data flood --count 100000000 --timeout $((50 * SLOW))
	wait_line server '^record' 30
	ip netns del gone
	before_written=$(counter d8 written)
	wait_for 30 'writes in the deleted namespace' written_is_more d8 "$before_written"
	stop server KILL
	wait_for 30 'the device of the namespace to go' test ! -e /sys/class/infiniband/d8
	wait_for 30 'the device of its peer to go' test ! -e /sys/class/infiniband/d9
	stop flood
}

written_is_more() { # DEVICE VALUE
	(($(counter "$1" written) > $2))
}

killed() {
	serve --count 100000
	start flood a 40 "$DGQP" send --device d0 "$(address b)" "$qpn" --count 1000000 --timeout 30
	pause 2
	stop server KILL
	stop flood KILL
}

unloads_under_traffic() {
	open_zone --any --partial --deadline $((60000 * SLOW)) --count 1000000
	pieces 5 0 2
	# shellcheck disable=SC2016 # for that shell
	start flood a 60 bash -c 'while :; do "$0" send "$1" "$2" write "stag=0x$3" "qkey=0x$4"; done' \
		"$DGMPEER" "$(address b)" "$qpn" "$zone" "$key"
	wait_line server '^record' 20
	rmmod siw_dg
	stop flood
	stop server
	load_siw_dg
	add_siw_dg_links
}

load_siw_dg "$PROVIDER"
if [[ -n ${ROLE:-} ]]; then
	rdma link add d0 type siw_dg netdev eth0
	check 'siw_dg DGM-21: UCX ud_verbs passes short messages between two machines' ucx_perftest_runs am_lat
	check 'siw_dg DGM-21: UCX ud_verbs passes 1,000 octets from user memory between two machines' ucx_perftest_runs am_bw -D zcopy -s 1000
	check 'siw_dg DGM-38 DGM-10 DGM-13: a write of 100,000 octets arrives unchanged on another machine and has one record' record_between_machines
	rmmod siw_dg
	finish
	exit
fi
add_siw_dg_links
check 'siw_dg: GIDs follow the addresses of the interface' gids_follow
check 'siw_dg: rdma link add of a second link on an interface fails with EEXIST' second_link
check 'siw_dg: queries of the port of an interface without a speed report 2.5 Gbps and log nothing' no_speed_is_not_logged
check 'siw_dg: rdma link del removes a device' link_is_deleted
check 'siw_dg: rping runs over the siw link of an interface with a siw_dg link' rping_over_siw
check 'siw_dg: rping runs over the siw_sctp link of an interface with a siw_dg link, and messages of both QPs arrive' rping_over_siw_sctp
check 'siw_dg: ibv_ud_pingpong runs over IPv4' ud_pingpong 0
check 'siw_dg: ibv_ud_pingpong runs over IPv6' ud_pingpong 1
check 'siw_dg: ib_send_lat runs on UD queue pairs' perftest ib_send_lat -n 200
check 'siw_dg: ib_send_bw runs on UD queue pairs' perftest ib_send_bw -n 1000 -s 1024
check 'siw_dg: ib_send_bw runs with events on UD queue pairs' perftest ib_send_bw -n 1000 -s 1024 -e
check 'siw_dg DGM-02 DGM-03: a receive reports the IPv4 address and the port of the source' source_is_reported 0 '' ::ffff:10.77.0.1
check 'siw_dg DGM-02 DGM-03: a receive reports the IPv6 address and the port of the source' source_is_reported 1 6 fd77::1
check 'siw_dg: two QPs of one device exchange a message' sends_to_itself
check 'siw_dg DGM-06: a message longer than the receive completes that receive with an error' too_long
check 'siw_dg: a message longer than the path MTU completes its Send with an error' too_long_to_send
check 'siw_dg: a message sent as inline data arrives unchanged' inline_data
check 'siw_dg: only a message with Solicited Event raises a solicited event' solicited
check 'siw_dg DGM-06: a message without a posted receive is dropped and counted' no_receive_posted
check 'siw_dg DGM-22: the receive queue is flushed when a QP enters ERROR, and a receive that is posted then' error_flushes
check 'siw_dg DGM-22: a QP that goes from ERROR by RESET to RTS sends and receives again' works_again
check 'siw_dg DGM-22 DGM-10: a zone stays open while its QP goes from ERROR by RESET to RTS, and is written again' written_again
check 'siw_dg DGM-02: an answer by the address handle of ibv_create_ah_from_wc() reaches an IPv4 source' answers_by_ah 0 '' ::ffff:10.77.0.2
check 'siw_dg DGM-02: an answer by the address handle of ibv_create_ah_from_wc() reaches an IPv6 source' answers_by_ah 1 6 fd77::2
check 'siw_dg DGM-09: a message with a wrong Q_Key is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_qkey qkey=5
check 'siw_dg DGM-09 DGM-24: a message with a wrong CRC is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_crc --bad-crc
check 'siw_dg DGM-09: a message with a wrong DDP version is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header ddp-version=2
check 'siw_dg DGM-09: a message with a wrong RDMAP version is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header rdmap-version=2
check 'siw_dg DGM-09: a message with a wrong opcode is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header opcode=4
check 'siw_dg DGM-09: a message with a wrong queue number is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header qn=1
check 'siw_dg DGM-09: a message with a wrong message offset is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header mo=4
check 'siw_dg DGM-09: a truncated datagram is dropped and counted, and the QP keeps receiving' wrong_datagram dropped_header --cut 10
check 'siw_dg DGM-19: a message to an IPv4 group reaches each QP that joined' multicast 239.7.7.7 0
check 'siw_dg DGM-19: a message to an IPv6 group reaches each QP that joined' multicast ff15::77 1
check 'siw_dg: random numbers that a program writes to the queues it shares with the kernel affect no other program' fuzzed_queues
check 'siw_dg DGM-10 DGM-11 DGM-17: a write from an IPv4 address arrives in the zone alone and is recorded with source, offset and length' write_is_recorded 0 '' 10.77.0.1 ::ffff:10.77.0.1
check 'siw_dg DGM-10 DGM-11 DGM-17: a write from an IPv6 address arrives in the zone alone and is recorded with source, offset and length' write_is_recorded 1 6 fd77::1 fd77::1
check 'siw_dg DGM-10: a write of 8,900 octets crosses the pages of a region unchanged' write_over_pages
check 'siw_dg DGM-11: a write without data is recorded up to the end of the zone' empty_write
check 'siw_dg DGM-11: ibv_poll_cq() returns a record with zone, offset, length and port' plain_poll
check 'siw_dg DGM-31 DGM-18: a write to a zone without records is not recorded, and a Send arrives after it' not_recorded
check 'siw_dg DGM-35: a write raises no solicited event and uses no receive' raises_no_event
check 'siw_dg DGM-10: a write to one of two zones with equal numbers and keys arrives in the zone of the addressed QP' zone_of_another_qp
check 'siw_dg DGM-19: a write to an IPv4 group arrives in the zone of each QP that joined' write_to_group 239.7.7.7 0
check 'siw_dg DGM-19: a write to an IPv6 group arrives in the zone of each QP that joined' write_to_group ff15::77 1
check 'siw_dg DGM-19: a write to the IPv4 broadcast address arrives if the QP has a socket with SO_BROADCAST' write_to_all
check 'siw_dg DGM-19: a write to the IPv4 broadcast address completes with an error without SO_BROADCAST' write_to_all_fails
check 'siw_dg DGM-09 DGM-10: a write to an unknown zone is counted and writes nothing' wrong_write dropped_no_zone stag=1
check 'siw_dg DGM-09 DGM-10: a write with a wrong Q_Key is counted as one to an unknown zone and writes nothing' wrong_write dropped_no_zone qkey=$QKEY
check 'siw_dg DGM-09 DGM-10: a write from an address that the zone does not name is counted and writes nothing' wrong_source 10.77.0.2 fd77::1
check 'siw_dg DGM-09 DGM-10: a write from an address outside of the named prefixes is counted and writes nothing' wrong_source 10.77.0.2/31 10.77.0.8/29
check 'siw_dg DGM-10: a write from the port that the zone names is written' source_rules 10.77.0.1,7720 OK 4 7720
check 'siw_dg DGM-09 DGM-10: a write from another port than the zone names is counted and writes nothing' source_rules 10.77.0.1,7720 DROPPED 4 7721
check 'siw_dg DGM-10: a write from an IPv6 address in a named prefix is written' source_rules fd77::8/124 OK 6
check 'siw_dg DGM-09 DGM-10: a write from an IPv6 address outside of the named prefix is counted and writes nothing' source_rules fd77::2/127 DROPPED 6
check 'siw_dg DGM-10: a write from an IPv6 address and the port that the zone names is written' source_rules fd77::1,7720 OK 6 7720
check 'siw_dg DGM-09 DGM-10: a write from another port than the zone names for an IPv6 address is counted and writes nothing' source_rules fd77::1,7720 DROPPED 6 7721
check 'siw_dg DGM-09 DGM-10: a write from an IPv4 address to a zone that names the IPv6 prefix ::/1 is counted and writes nothing' source_rules ::/1 DROPPED 4
check 'siw_dg DGM-09 DGM-10: a write from an IPv4 address in a named IPv4 prefix is written' source_rules 10.77.0.8/28 OK 4
check 'siw_dg DGM-09: an IPv6 packet with an IPv4 source is counted and writes nothing to a zone that admits all sources' forged_ipv4_source write
check 'siw_dg DGM-09: a Send in an IPv6 packet with an IPv4 source is counted and not received' forged_ipv4_source send
check 'siw_dg DGM-09 DGM-10: a write to a zone that names no source is counted and writes nothing' no_source_is_named
check 'siw_dg DGM-09 DGM-10: a write with a wrong UDP checksum is counted and writes nothing' wrong_checksum
check 'siw_dg DGM-09 DGM-10: a write that arrives on another interface is counted and writes nothing' another_interface
check 'siw_dg DGM-09 DGM-10: a write that ends one octet beyond the zone is counted and writes nothing' wrong_write dropped_range to=4092
check 'siw_dg DGM-09 DGM-10: a write behind the zone is counted and writes nothing' wrong_write dropped_range to=4097
check 'siw_dg DGM-09 DGM-10: a write to 16 octets before 2^64 is counted and writes nothing' wrong_write dropped_range to=0xfffffffffffffff0
check 'siw_dg DGM-09 DGM-10: a write whose offset and length wrap around is counted and writes nothing' wrong_write dropped_header to=0xffffffffffffffff
check 'siw_dg DGM-09 DGM-24: a write with a wrong CRC is counted and writes nothing' wrong_write dropped_crc --bad-crc
check 'siw_dg DGM-09 DGM-10: an RDMA Write of iWARP is counted and writes nothing' wrong_write dropped_header m=0
check 'siw_dg DGM-10: a write that finds no room for its record is counted and writes nothing, and a Send still has room' records_overflow
check 'siw_dg DGM-10: records of two QPs that share a completion queue leave room for the completions of both' records_of_two_qps
check 'siw_dg DGM-10: two QPs that fill a completion queue: each write is recorded or counted in dropped_cq_full' race_for_an_entry
check 'siw_dg DGM-23: a write that wraps around completes with an error at its source' wrong_request 'local QP operation error' --offset 18446744073709551615
check 'siw_dg DGM-23: a write of a QP whose socket is corked completes with an error' corked option
check 'siw_dg DGM-23: a write of a QP whose socket has a datagram that MSG_MORE began completes with an error' corked data
check 'siw_dg DGM-25: a write of a QP whose socket has UDP_SEGMENT 100 arrives as one datagram of 1,000 octets' segmented_socket
for when in before after; do
	check "siw_dg DGM-04 DGM-09: IP_RECVERR set $when the socket is handed over: a write does not complete with an ICMP error of an earlier one" \
		closed_port $when 0 '' IcmpInDestUnreachs
	check "siw_dg DGM-09: IPV6_RECVERR set $when the socket is handed over: a write does not complete with an ICMPv6 error of an earlier one" \
		closed_port $when 1 6 Icmp6InDestUnreachs
done
check 'siw_dg DGM-10: wrong arguments of the calls for zones return their documented errors' zone_errors
check 'siw_dg DGM-01 DGM-23: wrong sockets, types of QPs, regions and requests have their documented errors' qp_errors
check 'siw_dg DGM-10: a QP that joins groups opens 1,024 zones, and number 1,025 fails with ENOSPC' zone_limit
check 'siw_dg DGM-13 DGM-14: a message whose datagrams come in any order has one record, after the last of them' in_any_order
check 'siw_dg DGM-13 DGM-34: datagrams that come twice are counted, are not written again and do not fill a hole in their message' duplicates
check 'siw_dg DGM-14: a message whose first datagram is lost is counted at its deadline and not recorded' whole_expires
check 'siw_dg DGM-14 DGM-29: a partial zone records each part of an incomplete message at its deadline' partial_expires
check 'siw_dg DGM-14 DGM-29: a message of three parts that finds room for two records has that of its end' end_has_room
check 'siw_dg DGM-14 DGM-29: a partial zone records each part of a message when the gap time after its last datagram ends' gap_ends
check 'siw_dg DGM-14: datagrams that come within the gap time after the last one complete their message' within_the_gap
check 'siw_dg DGM-14: with a gap time of 0 the last datagram ends a message with a hole' no_gap
check 'siw_dg DGM-15: a newer message of a source discards the older one, whose datagrams are then not written' newer_discards 5 6
check 'siw_dg DGM-15: message 0 is newer than message 4294967295' newer_discards 4294967295 0
check 'siw_dg DGM-15 DGM-29: a newer message ends an older one of a partial zone whose last datagram has come' newer_ends_partial
check 'siw_dg DGM-33: with 4 slots the fifth source in progress discards the oldest message' slots_are_few
check 'siw_dg DGM-09 DGM-13: a datagram with another message length is counted and not written' contradiction dropped_mismatch to=132 mo=32 ml=36 last=1 --data evil
check 'siw_dg DGM-09 DGM-13: a datagram with another begin of its message is counted and not written' contradiction dropped_mismatch to=200 mo=8 --data evilevil
check 'siw_dg DGM-09 DGM-13: a datagram with another length is counted and not written' contradiction dropped_mismatch to=104 mo=4 --data evil
check 'siw_dg DGM-09 DGM-13: a second last datagram at another offset is counted and not written' contradiction dropped_mismatch to=120 mo=20 last=1 --data evilevil
check 'siw_dg DGM-09 DGM-13: a datagram behind the end of its message is counted and not written' contradiction dropped_header to=132 mo=32 --data evilevil
check 'siw_dg DGM-09 DGM-13: a datagram that overlaps its neighbours is counted and not written' contradiction dropped_header to=104 mo=4 --data evilevil
check 'siw_dg DGM-09 DGM-13: an empty datagram of a message is counted' contradiction dropped_header to=108 mo=8
check 'siw_dg DGM-09 DGM-24: a datagram with a wrong CRC does not count for its message' contradiction dropped_crc to=108 mo=8 --data evilevil --bad-crc
check 'siw_dg DGM-09 DGM-13: a datagram of a message of 1,025 datagrams is counted and not written' alone dropped_too_many to=8 ml=1025 --data e
check 'siw_dg DGM-09 DGM-10: the first datagram of a message that ends beyond the zone is counted and not written' alone dropped_range to=4080 ml=28 --data evilevil
check 'siw_dg DGM-22 DGM-14: a QP that enters ERROR discards its messages in progress' error_discards
check 'siw_dg DGM-22 DGM-09: a write to a QP in ERROR is counted and writes nothing' error_drops
check 'siw_dg DGM-22 DGM-26: a bundle to a QP in ERROR counts as its number of datagrams' error_drops_bundles
check 'siw_dg: a QP keeps its port when ss -K aborts its socket' keeps_its_port
check 'siw_dg DGM-13 DGM-26: a write of 100,000 octets over IPv4 is sent and received in bundles of datagrams of the path MTU and has one record' long_write 0 '' 70
check 'siw_dg DGM-13 DGM-26: a write of 100,000 octets over IPv6 is sent and received in bundles of datagrams of the path MTU and has one record' long_write 1 6 71
check 'siw_dg DGM-25: a write of 1,438 octets is one datagram' cut_write 1 1438
check 'siw_dg DGM-16: a write of 1,439 octets is two datagrams' cut_write 2 1439
check 'siw_dg DGM-16: a QP with a segment size of 100 sends 1,000 octets in ten datagrams' cut_write 10 1000 --segment 100
check 'siw_dg DGM-16: a QP with a segment size of 10 sends 60 octets of inline data in six datagrams' cut_write 6 60 --segment 10 --inline
check 'siw_dg DGM-16: a write of 1,024 datagrams is sent, a longer one completes with an error' too_many_datagrams
check 'siw_dg DGM-16: a write longer than a narrow route takes begins anew with smaller datagrams' narrow_route
check 'siw_dg DGM-08: a write that finds the socket full goes on when it has room' full_socket
check 'siw_dg DGM-16: a path that gets narrower in the middle of a message makes it begin anew with smaller datagrams' bundle_is_refused
check 'siw_dg DGM-22: a message that waits for its socket stops in SQD and goes on in RTS' stopped_in_sqd
check 'siw_dg DGM-22: a message that waits for its socket is forgotten in RESET, and the next one is complete' stopped_in_reset
check 'siw_dg DGM-22: a message that waits for its socket is flushed in ERROR' stopped_in_error
check 'siw_dg DGM-16: a write with traffic class 0x10 has datagrams of the size that the IPv4 route of this TOS takes' tos_route 16 0x10
check 'siw_dg DGM-16: a write with traffic class 0x11 has datagrams of the size that the IPv4 route of TOS 0x10 takes' tos_route 17 0x10
check 'siw_dg DGM-16: a write with traffic class 0xb8 has datagrams of the size that the IPv4 route of sendmsg() takes' tos_route 184 0x18 0xb8
# Not each kernel has routes by traffic class
if within a ip -6 rule add tos 0x10 table 77 2>/dev/null; then
	within a ip -6 rule del tos 0x10 table 77
	check 'siw_dg DGM-16: a write with traffic class 0x10 has datagrams of the size that the IPv6 route of this class takes' tclass_route --tclass 16
	check 'siw_dg DGM-16: a write through a socket with IPV6_TCLASS 0x10 has datagrams of the size that the IPv6 route of this class takes' tclass_route --socket-tclass 16
fi
check 'siw_dg DGM-16: datagrams of 60,000 octets of libdgm in IP fragments are written and recorded' fragments_come
check 'siw_dg DGM-16 DGM-25: a write over IPv4 with a segment size above the path MTU is sent without IP fragments' no_fragments 0 ''
check 'siw_dg DGM-16 DGM-25: a write over IPv6 with a segment size above the path MTU is sent without IP fragments' no_fragments 1 6
check 'siw_dg DGM-16: a QP with SIWDG_FRAGMENT sends datagrams of 20,000 octets over IPv4 as IP fragments' fragments_leave 0 ''
check 'siw_dg DGM-16: a QP with SIWDG_FRAGMENT sends datagrams of 20,000 octets over IPv6 as IP fragments' fragments_leave 1 6
check 'siw_dg DGM-16: a QP with SIWDG_FRAGMENT sends a message of 8,000 octets' fragmented_send
check 'siw_dg DGM-27: a write to an unknown zone has the error message invalid STag' answers 1100 zone --offset 4000
check 'siw_dg DGM-27: a write with a wrong Q_Key has the error message of an unknown zone' answers 1100 key --offset 4000
check 'siw_dg DGM-27: a write beyond the zone has the error message bounds violation' answers 1101 none --offset 4000
check 'siw_dg DGM-27: a QP without SIWDG_SEND_ERRORS sends no error message' silent_by_default
check 'siw_dg DGM-27: a source that is admitted with all others gets no error message' silent_to_all
check 'siw_dg DGM-27: a source that no zone names gets no error message' silent_to_others
check 'siw_dg DGM-27: writes that are shorter than their error message get none and use up none' silent_to_short
check 'siw_dg DGM-27: an error message, a wrong CRC and a Send get no error message' silent_to_errors
check 'siw_dg DGM-27: multicast writes beyond the zone get no error message and use up none' silent_to_multicast
check 'siw_dg DGM-27: broadcast writes beyond the zone get no error message and use up none' silent_to_broadcast
check 'siw_dg DGM-27: refused writes from a port that no zone names use up no error message of a named one' others_use_nothing_up
check 'siw_dg DGM-27: many refused writes get one error message a second at most' answers_are_few
check 'siw_dg DGM-27: error messages from another port, with another Q_Key, about another message or a second time are counted and have no completion' forged_errors
check 'siw_dg DGM-27: an error message that finds the completion queue full has its completion when it comes again' full_queue_of_errors
check 'siw_dg DGM-27: dgm-recv of libdgm sends an error message, which the QP of the source completes' libdgm_answers
check 'siw_dg DGM-27: dgm-send of libdgm prints the error message of a QP' answers_libdgm
check 'siw_dg DGM-16: a write of 10,000,000 octets over lo arrives unchanged' huge_write
check 'siw_dg DGM-30: siwdg_fold() takes the records of a zone out of the completion queue and leaves a receive there' records_are_folded
check 'siw_dg DGM-12 DGM-31: the validity map of a zone shows each block that one datagram has written whole' validity_map
check 'siw_dg DGM-05 DGM-11 DGM-25 DGM-39: dgm-send of libdgm writes a file into a zone of the module, which records each message' from_libdgm 1000
check 'siw_dg DGM-25: dgm-send of libdgm writes a file into a zone of the module in datagrams of the path MTU' from_libdgm 1438
check 'siw_dg DGM-13: dgm-send of libdgm writes a file into a zone of the module in two messages of 46 datagrams' from_libdgm 65536
check 'siw_dg DGM-13 DGM-29: with loss, duplicates and reordering the records of a partial zone name only octets that came from libdgm' lossy_from_libdgm
check 'siw_dg DGM-10 DGM-11: dgm-recv of libdgm records the writes of the module' to_libdgm
check 'siw_dg DGM-13: dgm-recv of libdgm records a write of 150,000 octets of the module' long_to_libdgm
check 'siw_dg DGM-09 DGM-10: datagrams of dgmpeer with each field wrong write nothing to a zone' hostile
check 'siw_dg DGM-09 DGM-26: bundles of datagrams with each field wrong count each, and write nothing to a zone' hostile --bundles
check 'siw_dg: a flood of bad datagrams costs an honest sender 1 % at most' flooded 20000
check 'siw_dg DGM-09 DGM-10: datagrams of dgmpeer with random bits and a good CRC write nothing beside the zone' mutated 4000
check 'siw_dg DGM-09 DGM-26: bundles of datagrams with random bits and a good CRC write nothing beside the zone' mutated 4000 --bundles
check 'siw_dg DGM-09 DGM-10: 5,000 guessed zones and Q_Keys write nothing' guesses 5000
check 'siw_dg DGM-10: a zone that is closed under traffic is not written any more' closes_under_traffic
check 'siw_dg DGM-14: a zone with the number of one that was closed with a message in progress gets no record of it at its deadline' closes_with_message
# Debian's kernel has no fault injection
if [[ -e /sys/kernel/debug/failslab ]]; then
	check 'siw_dg: after each memory allocation in the kernel has failed once, a new QP works' no_memory
	check 'siw_dg: after each memory allocation of rdma link add has failed once, the link can be added' no_memory_for_link
fi
check 'siw_dg: a receiver and a sender that are killed under traffic end' killed
check 'siw_dg: a program with a zone that is killed under traffic ends' zone_is_killed
check 'siw_dg DGM-14: a program that is killed while a message is in progress ends, and its timer with it' pending_goes kill
check 'siw_dg DGM-14: rdma link del removes a device while a message is in progress, and its timer with it' pending_goes link
check 'siw_dg: a program that is killed in the doorbell of a long message ends' killed_in_a_doorbell
check 'siw_dg DGM-27: a program that is killed while its QP sends error messages ends' errors_under_traffic kill
check 'siw_dg DGM-27: rdma link del removes a device whose QP sends error messages' errors_under_traffic link
check 'siw_dg: rdma link del removes a device with a zone under traffic, and the program can be ended' device_of_a_zone_goes
check 'siw_dg: rdma link del removes a device that a program uses, and the program can be ended' device_goes
check 'siw_dg DGM-22: a QP whose socket has left the group ends with its program' ends_with_a_group_that_its_socket_left
if [[ -e /proc/sys/vm/unprivileged_userfaultfd ]]; then
	check 'siw_dg: rdma link del removes a device while a thread holds the socket of a QP in a group' \
		device_goes_with_a_stalled_socket rdma link del d1
	check 'siw_dg: a program is killed and its device removed while another process holds the socket of its QP in a group' \
		ends_with_a_socket_held_elsewhere
	check 'siw_dg: the module unloads while a thread holds the socket of a QP in a group' device_goes_with_a_stalled_socket rmmod siw_dg
fi
check 'siw_dg: deleting an interface removes the device that a program uses, and the program can be ended' interface_goes
check 'siw_dg: deleting a network namespace removes the device in the namespace' namespace_goes
check 'siw_dg: the module unloads while a network namespace with a device goes' unloads_with_a_namespace
check 'siw_dg: a deleted network namespace goes, with the device, when its program ends under a flood of writes' namespace_goes_under_flood
check 'siw_dg: the module unloads while a program uses a device and a peer sends' unloads_under_traffic
check 'siw_dg: ten QPs with a zone are destroyed in turn while 16 programs send to their port' renews_under_senders
check 'siw_dg DGM-27: the module unloads while a QP sends error messages' errors_under_traffic module
rmmod siw_dg
finish
