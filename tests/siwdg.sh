#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--kernel NAME] -- tests/siwdg.sh [REGEX]
#        scripts/vm run --pair --mem 3072 --packages ucx-utils -- tests/siwdg.sh [REGEX]     (tests/run calls it siwdg-pair)
#
# Module siw_dg and its provider (scripts/datagram modules, scripts/siwdg-provider): UD queue pairs between namespaces a (device
# d0) and b (d1), which have links of siw as well; zones and Write-Record, also between the module and libdgm; UCX between two
# machines. Read libdgm/NOTICE first.
#
# Runs as siwdg: 800 s
# Runs as siwdg-pair: --pair --mem 3072 --packages ucx-utils; 400 s
# Sample siwdg: GIDs|pingpong|ib_send_bw runs on|DGM|module unloads
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly PRODUCTS=${TESTS%/*}/build/datagram PROVIDER=${TESTS%/*}/build/siwdg
readonly DGQP=$PRODUCTS/lib/dgqp DGMPEER=$PRODUCTS/lib/dgmpeer DGM=$PRODUCTS/lib
# Of dgqp's calls that verbs do not have
readonly OWN=(--provider "$PROVIDER/libsiwdg.so.1")
# Octets of dgqp's region before and behind its zone
readonly MARGIN=100
# Of perftest, ibv_ud_pingpong and dgqp
readonly QKEY=0x11111111

load() {
	modprobe -aq libcrc32c crc32c || true
	modprobe ib_uverbs
	insmod "$PRODUCTS/$VM_KERNEL/siw_dg.ko"
}

add_links() {
	within a rdma link add d0 type siw_dg netdev eth0
	within b rdma link add d1 type siw_dg netdev eth0
}

counter() { # DEVICE NAME
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}

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
	wait_for 10 'the new address' has_gid d0 1 0000:0000:0000:0000:0000:ffff:0a09:0909
	within a ip address del 10.9.9.9/24 dev eth0
	wait_for 10 'IPv6 again' has_gid d0 1 fd77:0000:0000:0000:0000:0000:0000:0001
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

# ---- our program

serve() { # OPTION of dgqp…; sets qpn
	start server b 60 "$DGQP" receive --device d1 "$@"
	wait_line server '^ready' 30
	qpn=$(sed -n 's/^ready //p' "$WORK/server.log")
}

dgm_send() { # FIELD=VALUE | OPTION of dgmpeer…
	run_well peer a 10 "$DGMPEER" send "$(address b)" "$qpn" send "$@"
}

arrives() { # TEXT
	wait_line server "^received .*: $1\$" 10
}

sends_to_itself() {
	start server a 60 "$DGQP" receive --device d0
	wait_line server '^ready' 30
	run_well client a 30 "$DGQP" send --device d0 "$(address a)" "$(sed -n 's/^ready //p' "$WORK/server.log")" --data own
	ended_well server 10
	has_line server '^received 3 from ::ffff:10.77.0.1 port [0-9]+: own$'
}

# DGM-02: the source's address and port; DGM-03: its port is the number of its QP
source_is_reported() { # GID-INDEX FAMILY ADDRESS
	serve --count 2
	run_well client a 30 "$DGQP" send --device d0 --gid "$1" "$(address b "$2")" "$qpn" --count 2 --data here
	ended_well server 10
	is 'completions with this source' "$(grep -cE "^received 4 from $3 port [1-9][0-9]+: here$" "$WORK/server.log")" 2
}

# DGM-06 and section 3.1: longer than the receive is an error of this request alone
too_long() {
	serve --count 2 --size 100
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --size 101
	wait_line server '^status local length error' 10
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --size 100 --data fits
	ended_well server 10
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
	wait_for 10 "$1" counter_is d1 "$1" $((before + 1))
	dgm_send qkey=$QKEY --data right
	arrives right
	ended_well server 10
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
	wait_for 10 'a datagram without a receive' counter_is d1 dropped_no_receive $((before + 1))
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

solicited() {
	serve --solicited --count 2
	run_well client a 30 "$DGQP" send --device d0 "$(address b)" "$qpn" --data first
	pause 1
	! has_line server received || fail 'an event came for a message without the bit'
	run_well client a 30 "$DGQP" send --solicited --device d0 "$(address b)" "$qpn" --data second
	ended_well server 10
}

# DGM-19: three QPs with this port, in two hosts, get each message
multicast() { # GROUP
	start one b 60 "$DGQP" receive --device d1 --port 7701 --group "$1" "${OWN[@]}"
	wait_line one '^ready' 30
	start two a 60 "$DGQP" receive --device d0 --port 7701 --group "$1" "${OWN[@]}"
	wait_line two '^ready' 30
	start three b 60 "$DGQP" receive --device d1 --port 7702 "${OWN[@]}"
	wait_line three '^ready' 30
	run_well client a 30 "$DGQP" send --device d0 --gid "$2" "$1" 7701 --data all
	ended_well one 10
	ended_well two 10
	! has_line three received || fail 'a QP outside of the group received it'
}

fuzzed_queues() {
	serve --count 1000000 --timeout 40
	start flood a 40 "$DGQP" send --device d0 "$(address b)" "$qpn" --count 1000000 --timeout 30
	run_well fuzz b 60 "$DGQP" fuzz --device d1 "$(address a)" --timeout 20 --count 7 "${OWN[@]}"
	note "$(tail -n 1 "$WORK/fuzz.log")"
	stop flood
	stop server
}

# libibverbs turns some errors of the kernel into others, and some allocations may fail without any
no_memory() {
	echo N | tee /sys/kernel/debug/failslab/{ignore-gfp-wait,cache-filter,task-filter} >/dev/null
	run_well fault a 200 "$DGQP" fault --device d0 "$(address b)" "${OWN[@]}"
	note "$(tail -n 1 "$WORK/fault.log")"
	run_well client a 30 "$DGQP" flush --device d0
}

# ---- zones

open_zone() { # OPTION of dgqp…; sets qpn, zone and key
	start server b 60 "$DGQP" zone --device d1 "${OWN[@]}" --timeout 50 --output "$WORK/region" "$@"
	wait_line server '^ready' 30
	read -r qpn zone key <<<"$(sed -n 's/^ready //p' "$WORK/server.log")"
}

# write_zone NETNS [OPTION of dgqp]…: of device d0 or d1, by queue pair 7705
write_zone() {
	local device=d0
	[[ $1 == a ]] || device=d1
	run client "$1" 30 "$DGQP" write --device $device "${OWN[@]}" --port 7705 "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" "${@:2}"
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
	ended_well server 10
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
	local i octet octets=
	for ((i = ${#2}; i < $1; i++)); do
		printf -v octet '\\x%02x' $(((7 * i + 1) % 251))
		octets+=$octet
	done
	printf '%s%b' "$2" "$octets"
}

# The message covers several pages of the region
write_over_pages() {
	set_mtu 9000
	open_zone --any --count 1 --zone-size 20000
	write_zone a --size 8900 --data begins --offset 5000
	set_mtu 1500
	ended_well server 10
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
	ended_well server 10
	has_line server "^record 0 at 4096 of $zone msn 7 "
	has_line server "^record 0 at 0 of $zone msn 8 "
	has_line server "^record 4 at 5 of $zone msn 10 "
	region_is 4096 5 good
}

# DGM-09: all is judged before the first octet is written. A good one is written after it.
wrong_write() { # COUNTER FIELD=VALUE | OPTION of dgmpeer…
	local before
	open_zone --any --count 1
	before=$(counter d1 "$1")
	dgm_write to=8 --data wrong "${@:2}"
	wait_for 10 "$1" counter_is d1 "$1" $((before + 1))
	dgm_write to=100 msn=3 --data right
	ended_well server 10
	has_line server "^record 5 at 100 of $zone msn 3 " || fail 'the record of the good write is missing or not the first'
	region_is 4096 100 right
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
	wait_for 10 'a datagram of another source' counter_is d1 dropped_source $((before + 1))
	run_well client b 30 "$DGQP" write --device d1 "${OWN[@]}" "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" --data right
	ended_well server 10
	region_is 4096 0 right
}

# The zone admits the source or not; its own host has another address, which is always admitted
source_rules() { # RULE of dgqp, OK | DROPPED, FAMILY [PORT]
	local rule=$1 verdict=$2 family=$3 before
	open_zone --from "$rule" --from 10.77.0.2 --count 1
	before=$(counter d1 dropped_source)
	rule_write "$family" "${4:-7705}" wrong
	if [[ $verdict == DROPPED ]]; then
		wait_for 10 'a datagram of another source' counter_is d1 dropped_source $((before + 1))
		run_well client b 30 "$DGQP" write --device d1 "${OWN[@]}" "$(address b)" "$qpn" --zone "0x$zone" --key "0x$key" --data right
	fi
	ended_well server 10
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
	wait_for 10 'a datagram with a forged source' counter_is d1 dropped_source $((before + 1))
	run_well peer a 10 "$DGMPEER" send "$(address b 6)" "$qpn" write --source "$(address a 6)" --data right "${right[@]}"
	ended_well server 10
	has_line server "^record 5 at 0 of $zone msn 1 from $(address a 6) port 7707\$" || fail 'the record of the good write is not the first'
	region_is 4096 0 right
}

no_source_is_named() {
	local before
	open_zone --count 1
	before=$(counter d1 dropped_source)
	dgm_write to=8 --data wrong
	wait_for 10 'a datagram of an unnamed source' counter_is d1 dropped_source $((before + 1))
	dgm_send qkey=$QKEY --data end
	ended_well server 10
	region_is 4096
}

# DGM-31: entries are optional. DGM-18: Sends go on beside it.
not_recorded() {
	open_zone --any --no-record --count 1
	write_zone a --data quiet --count 3
	is 'the status of the source' $STATUS 0
	dgm_send qkey=$QKEY --data end
	ended_well server 10
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
	ended_well server 10
	is records "$(grep -c "^record 5 at 0 of $zone " "$WORK/server.log")" 2
	has_line server '^received 4 .*: wake'
}

plain_poll() {
	open_zone --any --plain --count 1
	write_zone a --offset 77 --data plain
	ended_well server 10
	has_line server "^record 5 at 77 of $zone from port 7705\$"
}

# Two QPs have zones with this number; each is reached by its own port alone
zone_of_another_qp() {
	open_zone --any --zone 77 --key 78 --count 1
	start other b 60 "$DGQP" zone --device d1 "${OWN[@]}" --any --zone 77 --key 78 --output "$WORK/other" --count 1
	wait_line other '^ready' 30
	write_zone a --data mine
	ended_well server 10
	region_is 4096 0 mine
	! has_line other '^record' || fail 'the zone of the other QP was written'
	qpn=$(sed -n 's/^ready \([0-9]*\) .*/\1/p' "$WORK/other.log")
	write_zone a --data your
	ended_well other 10
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
		wait_line $name '^ready' 30
	done
	run_well client a 30 "$DGQP" write --device d0 --gid "$2" "${OWN[@]}" "$1" 7701 --zone 77 --key 78 --offset 9 --data all
	for name in one two; do
		ended_well $name 10
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
	ended_well server 10
	has_line server "^record 1438 at 0 of $zone "
	message 1438 yes >"$WORK/message"
	region_is 4096 0 @"$WORK/message"
}

zone_errors() {
	run_well errors a 180 "$DGQP" zone-errors --device d0 "${OWN[@]}" "$(address b)"
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
	wait_for 10 'a datagram without room for a record' counter_is d1 dropped_cq_full $((before + 1))
	dgm_send qkey=$QKEY --data message
	kill -CONT "$(pgrep -P "${pid_of[server]}")"
	wait_line server '^received 7 .*: message' 10
	dgm_write to=30 msn=4 --data four
	ended_well server 10
	region_is 4096 0 one 10 two 30 four
}

# ---- with libdgm

# dgm-send's file arrives in a zone of the module, and its notices in receives
from_libdgm() { # MESSAGE
	local records=$(((100000 + $1 - 1) / $1))
	head -c 100000 /dev/urandom >"$WORK/file"
	open_zone --from "$(address a)" --records 1024 --zone-size 100000 --count $((records + 8))
	run_well sender a 30 "$DGM/dgm-send" --input "$WORK/file" --message "$1" "$(address b):$qpn/$zone/$key/100000/${QKEY#0x}"
	ended_well server 20
	is records "$(grep -c '^record' "$WORK/server.log")" $records
	cmp "$WORK/file" <(tail -c +$((MARGIN + 1)) "$WORK/region" | head -c 100000) || fail 'the file changed on its way'
}

to_libdgm() {
	start server b 60 "$DGM/dgm-recv" --bind "$(address b)" --from "$(address a)" --size 4096 --output "$WORK/zone" \
		--map "$WORK/map" --idle 2 --json
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

# Each field wrong once, and cut at each length
hostile() {
	local before
	open_zone --any --count 2
	before=$(dropped d1)
	run_well hostile a 30 "$DGMPEER" hostile "$(address b):$qpn/$zone/$key/4096/${QKEY#0x}"
	note "$(tail -n 1 "$WORK/hostile.log")"
	wait_for 10 'each of them in a counter' dropped_are d1 $((before + $(jq add "$WORK/hostile.log")))
	dgm_send qkey=$QKEY --data end
	dgm_write to=100 msn=3 --data right
	ended_well server 10
	has_line server "^record 5 at 100 of $zone msn 3 " || fail 'the record of the good write is missing or not the first'
	region_is 4096 100 right
}

guesses() { # NUMBER
	local before
	open_zone --any --count 1
	before=$(counter d1 dropped_no_zone)
	write_zone a --guess --count "$1" --data guess
	is 'the status of the source' $STATUS 0
	note "$(($(counter d1 dropped_no_zone) - before)) of $1 were dropped for zone and Q_Key"
	(($(counter d1 dropped_no_zone) - before >= $1 * 9 / 10)) || fail 'most guesses did not come'
	write_zone a --data right
	ended_well server 10
	region_is 4096 0 right
}

# ---- ends of zones

flood_zone() { # [NAME NETNS DEVICE SIZE]
	start "${1:-flood}" "${2:-a}" 60 "$DGQP" write --device "${3:-d0}" "${OWN[@]}" "$(address b)" "$qpn" --zone "0x$zone" \
		--key "0x$key" --size "${4:-1400}" --data flood --count 10000000 --timeout 50
}

# Writes of 60,000 octets, over lo, take long: one of them is often under way when the zone is closed
closes_under_traffic() {
	zone=4d key=4e
	start churn b 60 "$DGQP" churn --device d1 "${OWN[@]}" --zone 0x$zone --key 0x$key --zone-size 60000 --timeout 10
	wait_line churn '^ready' 30
	qpn=$(sed -n 's/^ready //p' "$WORK/churn.log")
	flood_zone flood
	flood_zone long b d1 60000
	ended_well churn 40
	note "$(tail -n 1 "$WORK/churn.log")"
	stop flood
	stop long
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

interface_goes() {
	within a ip link add veth8 type veth peer name veth9
	within a ip address add 10.99.0.1/24 dev veth8
	within a ip link set veth8 up
	within a ip link set veth9 up
	within a rdma link add d8 type siw_dg netdev veth8
	start server a 60 "$DGQP" receive --device d8
	wait_line server '^ready' 30
	within a ip link del veth8
	wait_for 20 'the device to go' test ! -e /sys/class/infiniband/d8
	stop server
}

namespace_goes() {
	ip netns add gone
	ip link add veth8 type veth peer name veth9
	ip link set veth8 netns gone
	ip netns exec gone ip address add 10.99.0.1/24 dev veth8
	ip netns exec gone ip link set veth8 up
	ip netns exec gone rdma link add d8 type siw_dg netdev veth8
	ip netns del gone
	wait_for 20 'the device to go' test ! -e /sys/class/infiniband/d8
}

killed() {
	serve --count 100000
	start flood a 40 "$DGQP" send --device d0 "$(address b)" "$qpn" --count 1000000 --timeout 30
	pause 2
	stop server KILL
	stop flood KILL
}

unloads_under_traffic() {
	open_zone --any --count 1000000
	# shellcheck disable=SC2016 # for that shell
	start flood a 60 bash -c 'while :; do "$0" send "$1" "$2" write "stag=0x$3" "qkey=0x$4"; done' \
		"$DGMPEER" "$(address b)" "$qpn" "$zone" "$key"
	wait_line server '^record' 20
	rmmod siw_dg
	stop flood
	stop server
	load
	add_links
}

echo "driver $PROVIDER/libsiwdg" >/etc/libibverbs.d/siwdg.driver
load
if [[ -n ${ROLE:-} ]]; then
	rdma link add d0 type siw_dg netdev eth0
	check 'siw_dg DGM-21: UCX ud_verbs passes short messages between two machines' ucx_perftest_runs am_lat
	check 'siw_dg DGM-21: UCX ud_verbs passes 1,000 octets from user memory between two machines' ucx_perftest_runs am_bw -D zcopy -s 1000
	rmmod siw_dg
	finish
	exit
fi
add_links
check 'siw_dg: GIDs follow the addresses of the interface' gids_follow
check 'siw_dg: rdma link add of a second link on an interface fails with EEXIST' second_link
check 'siw_dg: rdma link del removes a device' link_is_deleted
check 'siw_dg: rping runs over the siw link of an interface with a siw_dg link' rping_over_siw
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
check 'siw_dg DGM-22: both queues are flushed when a QP enters ERROR' error_flushes
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
check 'siw_dg DGM-09 DGM-10: a write that ends one octet beyond the zone is counted and writes nothing' wrong_write dropped_range to=4092
check 'siw_dg DGM-09 DGM-10: a write behind the zone is counted and writes nothing' wrong_write dropped_range to=4097
check 'siw_dg DGM-09 DGM-10: a write to 16 octets before 2^64 is counted and writes nothing' wrong_write dropped_range to=0xfffffffffffffff0
check 'siw_dg DGM-09 DGM-10: a write whose offset and length wrap around is counted and writes nothing' wrong_write dropped_header to=0xffffffffffffffff
check 'siw_dg DGM-09 DGM-24: a write with a wrong CRC is counted and writes nothing' wrong_write dropped_crc --bad-crc
check 'siw_dg DGM-09 DGM-10: a datagram of a message of several datagrams is counted and writes nothing' wrong_write dropped_unsupported ml=10 last=0
check 'siw_dg DGM-09 DGM-10: an RDMA Write of iWARP is counted and writes nothing' wrong_write dropped_header m=0
check 'siw_dg DGM-10: a write that finds no room for its record is counted and writes nothing, and a Send still has room' records_overflow
check 'siw_dg DGM-23: a write longer than the path MTU completes with an error at its source' wrong_request 'local length error' --size 1439
check 'siw_dg DGM-23: a write that wraps around completes with an error at its source' wrong_request 'local QP operation error' --offset 18446744073709551615
check 'siw_dg DGM-10: wrong arguments of the calls for zones return their documented errors' zone_errors
check 'siw_dg DGM-11 DGM-25: dgm-send of libdgm writes a file into a zone of the module, which records each message' from_libdgm 1000
check 'siw_dg DGM-25: dgm-send of libdgm writes a file into a zone of the module in datagrams of the path MTU' from_libdgm 1438
check 'siw_dg DGM-10 DGM-11: dgm-recv of libdgm records the writes of the module' to_libdgm
check 'siw_dg DGM-09 DGM-10: datagrams of dgmpeer with each field wrong write nothing to a zone' hostile
check 'siw_dg DGM-09 DGM-10: 5,000 guessed zones and Q_Keys write nothing' guesses 5000
check 'siw_dg DGM-10: a zone that is closed under traffic is not written any more' closes_under_traffic
# Debian's kernel has no fault injection
if [[ -e /sys/kernel/debug/failslab ]]; then
	check 'siw_dg: after each memory allocation in the kernel has failed once, a new QP works' no_memory
fi
check 'siw_dg: a receiver and a sender that are killed under traffic end' killed
check 'siw_dg: a program with a zone that is killed under traffic ends' zone_is_killed
check 'siw_dg: rdma link del removes a device with a zone under traffic, and the program can be ended' device_of_a_zone_goes
check 'siw_dg: rdma link del removes a device that a program uses, and the program can be ended' device_goes
check 'siw_dg: deleting an interface removes the device that a program uses, and the program can be ended' interface_goes
check 'siw_dg: deleting a network namespace removes the device in the namespace' namespace_goes
check 'siw_dg: the module unloads while a program uses a device and a peer sends' unloads_under_traffic
rmmod siw_dg
finish
