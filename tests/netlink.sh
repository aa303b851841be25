#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/netlink.sh
#
# Settings of an administrator and options of a program take effect, on the wire and in the kernel's
# answers. The kernel refuses a user without the right to set, and says why it refuses a setting.
# Devices, namespaces and the module can be removed while others watch. The kernel's YNL client makes
# and reads the settings; it knows nothing but the specification of the family.
#
# Runs as netlink: 400 s
# Sample netlink: settings can be|port setting overrides|contradictory settings|malformed|own settings|root of|apply to its|unnegotiated|rejects invalid|negotiated values|with fallback|each counter rises|dump is marked|notified|devices are removed|random
# shellcheck disable=SC2031 # lib.sh's WORK
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

NLFUZZ=$BUILD/nlfuzz/nlfuzz
FUZZ_SECONDS=${FUZZ_SECONDS:-5}

# Every case begins with nothing set
plain() {
	local place
	for place in default siw0 siw0/1 siw1 siw1/1; do
		ynl reset "$place"
	done
}

# get PLACE JQ-EXPRESSION: of the record, as compact JSON
get() {
	ynl show "$1" | jq -c "$2"
}

is() { # WANTED PLACE JQ-EXPRESSION
	local got
	got=$(get "$2" "$3")
	[[ $got == "$1" ]] || fail "$3 of $2 is $got, not $1"
}

# refused ERRNO TEXT COMMAND…: it is, and says why
refused() {
	local errno=$1 why=$2 out rc=0
	shift 2
	out=$("$@" 2>&1) || rc=$?
	[[ $rc -eq 1 ]] || fail "$* is not refused: status $rc: $out"
	[[ $out == "refused: errno $errno: "*"$why"* ]] || fail "$* is refused with: $out"
}

serve() { # PORT [OPTION…]
	start server b 240 "$RDMAFIRST" server "$(address b)" "$1" --count 0 --timeout 80 "${@:2}"
	wait_ready server '^listening'
}

connect() { # PORT [OPTION…]
	run_well client a 40 "$RDMAFIRST" client "$(address b)" "$1" --expect first "${@:2}"
}

# Of the one connection to the port: what `rdma resource` says of the device's QP
qp_says() { # LINK KEY
	rdma resource show qp link "$1" -dd -j | jq -r "[.[] | .[\"drv_$2\"]? // empty] | last"
}

one_connection() { # PORT SERVER-OPTIONS CLIENT-OPTIONS
	capture wire b
	# shellcheck disable=SC2086 # words
	serve "$1" $2
	# shellcheck disable=SC2086
	connect "$1" $3
	look "$1"
}

# one_connection leaves it to be looked at
look() { # PORT
	stop server
	capture_end wire
	"$MPAPEER" decode --json --port "$1" "$WORK/wire.pcap" >"$WORK/wire.json"
}

# The RTR is what the first FPDU of the initiator is: send, write or read-request
rtr_is() { # KIND
	local kind
	kind=$(jq -r '[.[0].events[] | select(.type == "fpdu" and .from == "initiator")][0].kind' "$WORK/wire.json")
	[[ $kind == "$1" ]] || fail "the RTR is $kind, not $1"
}

frame() { # REQUEST|REPLY JQ-EXPRESSION
	jq -c "[.[0].events[] | select(.kind == \"$1\")][0] | $2" "$WORK/wire.json"
}

frame_is() { # WANTED REQUEST|REPLY JQ-EXPRESSION
	local got
	got=$(frame "$2" "$3")
	[[ $got == "$1" ]] || fail "$3 of the $2 is $got, not $1"
}

# ---- policies

set_and_reset() {
	local all='{"model":"client-server","rtr-order":{"kind":[["read"],["write"],["send"]]},"ird-mode":"limited","ird":16'
	plain
	is '{}' siw0/1 .policy
	ynl set siw0/1 model=client-server rtr-ms=1234 rtr-order=read ird=16
	is "$all,\"rtr-ms\":1234}" siw0/1 .policy
	is '["client-server",[["read"],["write"],["send"]],16,1234,5000]' siw0/1 \
		'.effective | [.model, ."rtr-order".kind, .ird, ."rtr-ms", ."request-ms"]'
	# neither the device nor another port
	is '{}' siw0 .policy
	is 10000 siw1/1 '.effective["rtr-ms"]'
	ynl reset siw0/1 rtr-ms
	is "$all}" siw0/1 .policy
	ynl reset siw0/1 ird model
	is '{"rtr-order":{"kind":[["read"],["write"],["send"]]}}' siw0/1 .policy
	ynl reset siw0/1
	is '{}' siw0/1 .policy
}

# The command line of the kernel's client, and nothing of ours but the specification
by_the_specification_alone() {
	local said
	plain
	ynl set siw1 fastopen=on
	said=$(python3 "${TESTS%/*}/build/pyynl/cli.py" --spec "${TESTS%/*}/Documentation/netlink/specs/rdma-mpa.yaml" \
		--no-schema --dump policy-get --output-json)
	said=$(jq -c '[.[] | [."dev-name", .port, .policy]]' <<<"$said")
	[[ $said == '[[null,null,{}],["siw0",null,{}],["siw0",1,{}],["siw1",null,{"fastopen":"on"}],["siw1",1,{}]]' ]] ||
		fail "the policies are $said"
}

layers() {
	local origin='.origin | map({(.setting): .layer}) | add | [."reply-ms", ."rtr-ms", ."decide-ms", .ird, .crc]'
	plain
	ynl set default reply-ms=100 rtr-ms=100 decide-ms=100 ird=64
	ynl set siw0 rtr-ms=200 decide-ms=200 ird=32
	ynl set siw0/1 decide-ms=300 ird=50
	is '[100,200,300,32]' siw0/1 '.effective | [."reply-ms", ."rtr-ms", ."decide-ms", .ird]'
	is '["default","device","port","port","built-in"]' siw0/1 "$origin"
	is '[100,100,100,64]' siw1/1 '.effective | [."reply-ms", ."rtr-ms", ."decide-ms", .ird]'
	ynl reset default
	ynl reset siw0
	is '[10000,10000,300,50]' siw0/1 '.effective | [."reply-ms", ."rtr-ms", ."decide-ms", .ird]'
}

all_or_nothing() {
	plain
	refused 22 'largest IRD is 128' ynl set siw0/1 rtr-ms=77 ird=129
	refused 34 'out of range' ynl set siw0/1 rtr-ms=77 model=3
	is '{}' siw0/1 .policy
}

# RDMA_NL_IWCM is 2; HELLO, what iwpmd says first, is 7, with its version (1: u16)
no_port_mapper() {
	local answer
	answer=$(setpriv --reuid 65534 --regid 65534 --clear-groups python3 -c '
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
s.bind((0, 0))
s.settimeout(10)
attr = struct.pack("=HHHxx", 6, 1, 4)
s.send(struct.pack("=IHHII", 16 + len(attr), 2 << 10 | 7, 5, 1, 0) + attr)
reply = s.recv(4096)
print(*struct.unpack_from("=HxxIIi", reply, 4)[0::3])')
	# NLMSG_ERROR with -EPERM
	[[ $answer == '2 -1' ]] || fail "the answer is $answer"
}

impossible() {
	plain
	refused 22 "largest ORD is 128" ynl set siw0 ord=16381
	refused 22 'siw0: revision 1 does not support the peer-to-peer model' \
		ynl set siw0 revision=rfc5044 model=peer-to-peer-required
	refused 22 'revision 1 does not support the peer-to-peer model' ynl set default revision=rfc5044 model=peer-to-peer-required
	ynl set siw0/1 model=peer-to-peer-required
	# the device would take it from its port
	refused 22 'siw0/1: revision 1 does not support the peer-to-peer model' ynl set siw0 revision=rfc5044
	refused 22 'Read RTR needs an ORD' ynl set siw0/1 rtr-offer=read ord=0
	refused 22 'no such port, ports are 1 to 1' ynl set siw0/2 model=client-server
	refused 34 'out of range' ynl show siw0/0
	refused 19 'no iWARP device with this index' ynl show 4711
	refused 19 'no iWARP device with this index' ynl caps 4711
	refused 22 'order of RTR kinds: invalid value' ynl set siw0 rtr-order=read,read
	is '{"model":"peer-to-peer-required"}' siw0/1 .policy
	is '{}' default .policy
}

# attr TYPE HEX: an attribute in hexadecimal (all machines of these tests are little-endian)
attr() {
	local len=$((4 + ${#2} / 2)) padding=000000
	printf '%02x00%02x%02x%s%s' $len $(($1 & 255)) $(($1 >> 8)) "$2" "${padding:0:$(((4 - len % 4) % 4 * 2))}"
}

# Every refusal has a text of its own: "Invalid argument" is what nlfuzz makes of none
refused_with_text() { # COMMAND…
	local out rc=0
	out=$("$NLFUZZ" raw "$@" 2>&1) || rc=$?
	[[ $rc -eq 1 && $out == 'refused: errno '* ]] || fail "$* is not refused: status $rc: $out"
	[[ $out != *': Invalid argument' && $out != *': Numerical result'* ]] || fail "$* is refused without a reason"
}

# Commands: 1 get, 2 set, 3 reset, 4 and 6 notifications, 5 capabilities; attributes: 1 index, 2 name,
# 3 port, 5 policy, 9 setting; settings: 2 model, 3 kinds to offer, 5 order of kinds, 6 IRD, 13 a
# deadline, 18 mode of the IRD, 20 streams, 21 idle; nested is 0x8000
odd_requests() {
	plain
	local index command settings='' nest=$((0x8005)) order=$((0x8005)) one=01000000 two=02000000
	index=$(printf '%02x000000' "$(get siw0 '."dev-index"')")
	for command in 0 4 6 7 63; do
		refused 95 'not supported' "$NLFUZZ" raw $command
		refused 95 'not supported' "$NLFUZZ" raw $command --dump
	done
	for command in 2 3; do
		refused 95 'not supported' "$NLFUZZ" raw $command --dump
	done
	for command in 1 5; do
		refused 22 'a dump does not support attributes' "$NLFUZZ" raw $command --dump "$(attr 1 "$index")"
		refused_with_text $command --dump "$(attr 99 00000000)"
	done
	for command in 1 2 3 5; do
		# no such attribute, one that is another command's, sizes, none, cut short
		refused_with_text $command "$(attr 99 00000000)"
		refused_with_text $command "$(attr 2 00000000)"
		refused_with_text $command "$(attr 1 0000)"
		refused_with_text $command "$(attr 1 "${index}00")"
		refused_with_text $command "$(attr 1 "$index")ff"
		# settings are parsed before the device is looked up
		[[ $command != 2 ]] || settings=$(attr $nest "$(attr 2 $one)")
		refused 19 'no iWARP device' "$NLFUZZ" raw $command "$(attr 1 ffffff7f)$settings"
		settings=''
	done
	refused_with_text 5
	refused_with_text 5 "$(attr 1 "$index")$(attr 3 $one)"
	refused 22 'a port requires a device index' "$NLFUZZ" raw 1 "$(attr 3 $one)"
	refused_with_text 1 "$(attr 1 "$index")$(attr 3 $two)"
	refused_with_text 2 "$(attr 1 "$index")"
	# a nest that does not say so, one with what is none of the settings, values and sizes
	refused_with_text 2 "$(attr 5 "$(attr 2 $one)")"
	refused_with_text 2 "$(attr $nest "$(attr 60 $one)")"
	refused_with_text 2 "$(attr $nest "$(attr 0 $one)")"
	refused_with_text 2 "$(attr $nest "$(attr 2 01)")"
	refused_with_text 2 "$(attr $nest "$(attr 2 03000000)")"
	refused_with_text 2 "$(attr $nest "$(attr 3 00000000)")"
	refused_with_text 2 "$(attr $nest "$(attr 3 08000000)")"
	refused_with_text 2 "$(attr $nest "$(attr 13 00000000)")"
	refused_with_text 2 "$(attr $nest "$(attr 13 81ee3600)")"
	refused_with_text 2 "$(attr $nest "$(attr 20 00000000)")"
	refused_with_text 2 "$(attr $nest "$(attr 20 01040000)")"
	refused_with_text 2 "$(attr $nest "$(attr 21 00000000)")"
	refused_with_text 2 "$(attr $nest "$(attr 21 110e0000)")"
	# an order: flat, of none, of a kind that is two, of none behind one, of one that is there twice, of four
	refused_with_text 2 "$(attr $nest "$(attr 5 $one)")"
	refused_with_text 2 "$(attr $nest "$(attr $order '')")"
	refused_with_text 2 "$(attr $nest "$(attr $order "$(attr 1 03000000)")")"
	refused_with_text 2 "$(attr $nest "$(attr $order "$(attr 1 $one)$(attr 1 00000000)")")"
	refused_with_text 2 "$(attr $nest "$(attr $order "$(attr 1 $one)$(attr 1 $one)")")"
	refused_with_text 2 "$(attr $nest "$(attr $order "$(attr 1 $one)$(attr 1 $two)$(attr 1 04000000)$(attr 1 $one)")")"
	# a limit with another mode, none with its mode, one that MPA cannot say
	refused_with_text 2 "$(attr $nest "$(attr 6 $one)$(attr 18 $two)")"
	refused_with_text 2 "$(attr $nest "$(attr 18 $one)")"
	refused_with_text 2 "$(attr $nest "$(attr 6 ff3f0000)")"
	refused_with_text 3 "$(attr 9 00000000)"
	refused_with_text 3 "$(attr 9 12000000)"
	refused_with_text 3 "$(attr 9 13000000)"
	refused_with_text 3 "$(attr 9 16000000)"
	is '{}' default .policy
	is '{}' siw0 .policy
}

as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

others_may_look() {
	plain
	local place command nothing
	nothing=$(attr $((0x8005)) "$(attr 2 00000000)")
	place=$(attr 1 "$(printf '%02x000000' "$(get siw0 '."dev-index"')")")
	for place in '' "$place" "$place$(attr 3 01000000)"; do
		refused 1 'needs CAP_NET_ADMIN' as_nobody "$NLFUZZ" raw 2 "$place$nothing"
		refused 1 'needs CAP_NET_ADMIN' as_nobody "$NLFUZZ" raw 3 "$place"
		as_nobody "$NLFUZZ" raw 1 "$place" >/dev/null
	done
	for command in 1 5; do
		as_nobody "$NLFUZZ" raw $command --dump >/dev/null
	done
	is '{}' default .policy
}

# He sees settings change, and not who connects to whom
others_may_watch_changes() {
	plain
	as_nobody "$RDMA" mpa monitor >"$WORK/monitor.log" 2>&1 &
	pid_of[monitor]=$!
	wait_line monitor '^Cannot subscribe to connections without CAP_NET_ADMIN: Operation not permitted' 20
	serve 7616
	connect 7616
	stop server
	ynl set siw0/1 rtr-ms=4711
	wait_line monitor '^policy link siw0/1 .*rtr-timeout 4711' 20
	! has_line monitor '^established' || fail 'he sees connections'
	stop monitor
}

# root of a user namespace of its own is an ordinary user to the device's namespace
root_elsewhere() {
	plain
	local index nothing unshare=(unshare --user --map-root-user --net)
	nothing=$(attr $((0x8005)) "$(attr 2 00000000)")
	index=$(printf '%02x000000' "$(get siw0 '."dev-index"')")
	refused 1 'needs CAP_NET_ADMIN' as_nobody "${unshare[@]}" "$NLFUZZ" raw 2 "$(attr 1 "$index")$nothing"
	refused 1 'needs CAP_NET_ADMIN' as_nobody "${unshare[@]}" "$NLFUZZ" raw 2 "$nothing"
	is '{}' siw0 .policy
}

# ---- what a device does not take of the default

without_devices() {
	rdma link del siw0
	rdma link del siw1
	wait_for 20 'siw to be unloaded' unload siw
}

with_devices() {
	modprobe siw
	ip netns exec a rdma link add siw0 type siw netdev eth0
	ip netns exec b rdma link add siw1 type siw netdev eth0
}

# It is set when no device is there that could refuse it. siw's largest depth is 128.
default_beyond_the_device() {
	local device said
	plain
	without_devices
	ynl set default ird=129 rtr-ms=5000
	dmesg --clear
	with_devices
	# on all devices, and siw0 connects
	start server b 90 "$RDMAFIRST" server 0.0.0.0 7660 --count 0 --timeout 80
	wait_ready server '^listening'
	connect 7660
	connect 7660
	stop server
	for device in siw0 siw1; do
		is '[["ird"],"device",null,5000]' $device/1 '[."not-taken", (.effective | ."ird-mode", .ird, ."rtr-ms")]'
		said=$(mpa show link $device/1)
		[[ $said == *' ird auto '*' rtr-timeout 5000 '*'not taken: ird ' ]] || fail "rdma mpa show: $said"
		said=$("$RDMA" -j mpa show dev $device | jq -c '.[0]."not-taken"')
		[[ $said == '["ird"]' ]] || fail "rdma -j mpa show: $said"
		said=$(dmesg | grep -c "$device: iw_mpa: defaults not applied, the device or its own settings exclude them: IRD" || true)
		[[ $said == 1 ]] || fail "the log has $said messages about $device"
	done
	# one that it can do, and it is no longer without
	ynl set default ird=100
	is '[null,"limited",100]' siw0/1 '[."not-taken", (.effective | ."ird-mode", .ird)]'
}

# The owner of a device can be another than that of the default. (No iWARP driver of today lets a device
# be moved to another namespace: that they are two is not to be seen here.)
devices_cannot_veto() {
	plain
	ynl set siw0/1 model=peer-to-peer-required
	ynl set default revision=rfc5044 reply-ms=7000
	is '[["revision"],"rfc6581",7000]' siw0/1 '[."not-taken", (.effective | .revision, ."reply-ms")]'
	is '[null,"rfc5044",7000]' siw1/1 '[."not-taken", (.effective | .revision, ."reply-ms")]'
	serve 7661 --silent
	run client a 20 "$RDMAFIRST" client "$(address b)" 7661 --timeout 15
	has_line client 'EVENT_REJECTED status -104 ' || fail 'siw0 does not ask for peer-to-peer, or siw1 supports it'
	stop server
	ynl reset siw0/1
	is '[null,"rfc5044"]' siw0/1 '[."not-taken", .effective.revision]'
}

# ---- what comes of them

port_rtr_read() {
	plain
	ynl set siw0/1 rtr-offer=read rtr-accept=read rtr-order=read
	capture wire b
	serve 7600
	start held a 40 "$RDMAFIRST" client "$(address b)" 7600 --expect first --hold --timeout 30
	wait_line held '^received' 30
	wait_line server '^conn 1 event RDMA_CM_EVENT_ESTABLISHED' 20
	[[ $(qp_says siw0/1 rtr) == read ]] || fail "siw0's QP says RTR $(qp_says siw0/1 rtr)"
	[[ $(qp_says siw1/1 rtr) == read ]] || fail "siw1's QP says RTR $(qp_says siw1/1 rtr)"
	rdma resource show cm_id link siw0/1 -dd -j | jq -e 'any(.[]; .drv_rtr == "read")' >/dev/null ||
		fail 'no cm_id of siw0 shows RTR read'
	look 7600
	ended held 20
	rtr_is read-request
	frame_is '["read"]' request .rtr
}

option_beats_port() {
	plain
	ynl set siw0/1 rtr-offer=write
	# 4: read, 1: send
	one_connection 7601 '' '--mpa rtr=0x14'
	rtr_is read-request
	frame_is '["send","read"]' request '.rtr | sort_by({send: 0, write: 1, read: 2}[.])'
}

option_model() {
	plain
	# the client's program speaks first, as there is no RTR
	capture wire b
	serve 7602 --silent
	run_well client a 40 "$RDMAFIRST" client "$(address b)" 7602 --send hello --no-receive --mpa model=0
	look 7602
	rtr_is send
	frame_is false request .p2p
}

listener_option_inherited() {
	plain
	ynl set siw0/1 rtr-offer=write,read,send
	one_connection 7603 '--mpa rtr=4' ''
	frame_is '["read"]' reply .rtr
	rtr_is read-request
}

accept_option() {
	plain
	one_connection 7604 '--mpa rtr=2 --mpa-accept rtr=4' ''
	frame_is '["read"]' reply .rtr
	rtr_is read-request
}

option_depths() {
	plain
	one_connection 7605 '' '--ird 4 --ord 4 --mpa ird-mode=2 --mpa ord=2'
	rtr_is write
	frame_is '[16383,2]' request '[.ird, .ord]'
	frame_is '[2,16383]' reply '[([.ird, 2] | min), .ord]'
}

# The outcome, by the QP and by the cm_id
outcome_can_be_asked_for() {
	plain
	serve 7614 --ird 16 --ord 8
	start held a 40 "$RDMAFIRST" client "$(address b)" 7614 --expect first --hold --timeout 30 --ird 8 --ord 16
	wait_line held '^received' 30
	wait_line server '^conn 1 event RDMA_CM_EVENT_ESTABLISHED' 20
	told_of siw0 initiator '["RDMA",2,"peer-to-peer","write",8,16,16,8]'
	told_of siw1 responder '["RDMA",2,"peer-to-peer","write",16,8,8,16]'
	stop server
	ended held 20
}

told_of() { # DEVICE ROLE WANTED
	local what got
	for what in qp cm_id; do
		got=$(rdma resource show $what link "$1/1" -dd -j |
			jq -c "[.[] | select(.\"drv_mpa-role\" == \"$2\")] | last | [.\"drv_mpa-state\", .\"drv_mpa-rev\",
				.drv_model, .drv_rtr, .drv_ird, .drv_ord, .\"drv_peer-ird\", .\"drv_peer-ord\"]")
		[[ $got == "$3" ]] || fail "of $1's $what it says $got, not $3"
	done
}

# A bad option changes nothing of what has been set before
bad_option_changes_nothing() {
	plain
	one_connection 7615 '' '--mpa rtr=0x14 --mpa ird=2
		--mpa-bad rtr=0x22 --mpa-bad rtr=0x1421 --mpa-bad rtr=8 --mpa-bad rtr=0
		--mpa-bad ird=0x3fff --mpa-bad ird-mode=1 --mpa-bad ird-mode=3 --mpa-bad ird=bytes:0100 --mpa-bad model=3 --mpa-bad 99=1'
	rtr_is read-request
	frame_is '["send","read"]' request '.rtr | sort_by({send: 0, write: 1, read: 2}[.])'
	frame_is '[2,true]' request '[.ird, .p2p]'
}

late_option_is_refused() {
	plain
	ynl set siw0/1 rtr-offer=write,read,send
	one_connection 7690 '--mpa rtr=4 --mpa-late rtr=2' '--mpa-late ird=2'
	rtr_is read-request
}

option_refused() {
	local option
	for option in 0=1 99=1 model=3 model=bytes:00 model=bytes:0000000000 rtr=0 rtr=0x44 \
		rtr=8 rtr=0x1421 reply-ms=0 request-ms=3600001 ird=0x3fff ord=0x4000 ird-mode=1 ord-mode=3; do
		run client a 20 "$RDMAFIRST" client "$(address b)" 7606 --mpa "$option"
		[[ $STATUS -eq 2 ]] || fail "$option is not refused"
		has_line client 'rdma_set_option .*: Invalid argument' || fail "$option: $(tail -n 1 "$WORK/client.log")"
	done
}

impossible_option() {
	plain
	serve 7607
	run client a 20 "$RDMAFIRST" client "$(address b)" 7607 --mpa revision=1 --mpa model=2
	[[ $STATUS -eq 2 ]] || fail 'connect does not refuse'
	has_line client 'rdma_connect: Invalid argument' || fail "the client prints: $(tail -n 1 "$WORK/client.log")"
	stop server
}

snapshot_at_listen() {
	plain
	capture wire b
	serve 7608
	ynl set siw1/1 rtr-accept=read
	connect 7608
	look 7608
	rtr_is write
	# and the next listener has it
	one_connection 7609 '' ''
	rtr_is read-request
}

revision_1() {
	plain
	ynl set siw1 revision=rfc5044
	serve 7610
	run client a 20 "$RDMAFIRST" client "$(address b)" 7610 --timeout 15
	# ECONNRESET
	has_line client 'EVENT_REJECTED status -104 ' || fail "the client prints: $(tail -n 1 "$WORK/client.log")"
	stop server
	# with the fallback it connects
	ynl set siw0 revision=fallback
	local before
	before=$(counter siw0/1 mpa_fallbacks)
	capture wire b
	serve 7611 --silent
	run_well client a 40 "$RDMAFIRST" client "$(address b)" 7611 --send hello --no-receive
	look 7611
	[[ $(counter siw0/1 mpa_fallbacks) -eq $((before + 1)) ]] || fail 'no fallback is counted'
	[[ $(jq -c '[.[].events[] | select(.kind == "request") | .rev]' "$WORK/wire.json") == '[2,1]' ]] ||
		fail "the Requests are of revision $(jq -c '[.[].events[] | select(.kind == "request") | .rev]' "$WORK/wire.json")"
}

ceiling() {
	plain
	ynl set siw0/1 ird=2 ord=1
	one_connection 7612 '' '--ird 16 --ord 16'
	rtr_is write
	frame_is '[2,1]' request '[.ird, .ord]'
}

deadline() {
	plain
	ynl set siw1/1 request-ms=300
	local before start
	before=$(counter siw1/1 mpa_timeout_request)
	serve 7613
	start=$(now_ms)
	# shellcheck disable=SC2016 # for the other shell
	run peer a 20 bash -c 'exec 3<>"/dev/tcp/$0/7613" && cat <&3' "$(address b)"
	[[ $(($(now_ms) - start)) -lt 4000 ]] || fail "the silent peer was closed on after $(($(now_ms) - start)) ms"
	[[ $(counter siw1/1 mpa_timeout_request) -eq $((before + 1)) ]] || fail 'no timeout is counted'
	stop server
}

# Set between the request and the accept: the Request is one that it does not understand any more
revision_1_before_accept() {
	plain
	capture wire b
	serve 7617 --mpa-accept revision=1
	run client a 20 "$RDMAFIRST" client "$(address b)" 7617 --timeout 15
	has_line client 'EVENT_REJECTED status -104 ' || fail "the client prints: $(tail -n 1 "$WORK/client.log")"
	has_line server '^conn 1 rdma_accept: Protocol error' || fail "the server prints: $(tail -n 1 "$WORK/server.log")"
	look 7617
	frame_is null reply .rev
	serve 7618 --mpa-accept revision=1 --silent
	run_well client a 40 "$RDMAFIRST" client "$(address b)" 7618 --mpa revision=1 --send hello --no-receive
	stop server
}

# rxe0 in the first namespace, with a neighbour that does not answer
make_rxe() {
	# see the end of lib.sh
	echo 'driver rxe' >/etc/libibverbs.d/rxe.driver
	ip -batch - <<-END
		link add vr0 type veth peer name vr1
		addr add 10.78.0.1/24 dev vr0
		link set vr1 up
		link set vr0 up
		neigh replace 10.78.0.2 lladdr 02:00:00:00:00:02 dev vr0 nud permanent
	END
	rdma link add rxe0 type rxe netdev vr0
}

over_rxe() { # [OPTION…]
	STATUS=0
	timeout -k 5 40 "$RDMAFIRST" client 10.78.0.2 7619 --timeout 4 "$@" >"$WORK/client.log" 2>&1 || STATUS=$?
	has_line client 'EVENT_ROUTE_RESOLVED' || fail "rxe does not resolve: $(tail -n 1 "$WORK/client.log")"
}

options_of_rxe() {
	modprobe -q rdma_rxe || { note 'this kernel has no rdma_rxe' && return; }
	make_rxe
	over_rxe --mpa model=0
	has_line client 'rdma_set_option .*: Operation not supported' || fail "bound: $(tail -n 1 "$WORK/client.log")"
	over_rxe --mpa-early model=0
	has_line client 'rdma_connect: Operation not supported' || fail "not yet bound: $(tail -n 1 "$WORK/client.log")"
	# one without options it is asked to connect
	over_rxe
	! has_line client 'not supported' || fail "without: $(tail -n 1 "$WORK/client.log")"
	rdma link del rxe0
	ip link del vr0
	rm /etc/libibverbs.d/rxe.driver
}

# ---- counters

counters_add_up() {
	plain
	local before after name
	before=$(counters siw1/1)
	serve 7620
	connect 7620
	connect 7620 --mpa revision=1 --no-receive --send x || true
	# shellcheck disable=SC2016 # for the other shell
	run peer a 20 bash -c 'exec 3<>"/dev/tcp/$0/7620"; printf "MPA ID Rex" >&3; cat <&3' "$(address b)"
	# V05 of the requirements and a byte behind it
	# shellcheck disable=SC2016
	run peer a 20 bash -c 'exec 3<>"/dev/tcp/$0/7620"
		printf "MPA ID Req Frame\x10\x02\x00\x04\x00\x08\x00\x04x" >&3; cat <&3' "$(address b)"
	stop server
	wait_for 30 'nothing to be half open' nothing_half_open
	after=$(counters siw1/1)
	# how much more is counted of each
	local -A more=([req_rcvd_rev1]=1 [req_rcvd_rev2]=2 [req_rcvd_enhanced]=2 [rep_sent_rev1]=1 [rep_sent_rev2]=1
		[rep_sent_enhanced]=1 [rtr_rcvd_write]=1 [bad_key]=1 [bad_trailing]=1 [started_responder]=4
		[established_responder]=2 [failed_responder]=2)
	local got
	for name in "${!more[@]}"; do
		got=$(jq -n --argjson a "$before" --argjson b "$after" "\$b.mpa_$name - \$a.mpa_$name")
		[[ $got == "${more[$name]}" ]] || fail "$name counts $got more, not ${more[$name]}"
	done
	# the tool says the same, and how many are half open
	got=$("$RDMA" -j mpa stat link siw1/1 | jq -c --argjson b "$after" '.[0] | with_entries(select(.value != $b[.key])) | keys')
	[[ $got == '["ifindex","layer","llp","mpa_half_open"]' ]] || fail "rdma mpa stat shows other values of $got"
}

# ---- each counter

REQ=4d504120494420526571204672616d65
REP=4d504120494420526570204672616d65
REQ_V08=send\ hex\ ${REQ}5002000480088008
REP_V47=send\ hex\ ${REP}5002000400080008

# counts LINK 'COUNTER…' COMMAND…: each of them counts one more, and none of the others of its kind
counts() {
	local before after wanted got
	before=$(counters "$1")
	"${@:3}"
	wait_for 30 'nothing to be half open' nothing_half_open
	after=$(counters "$1")
	# shellcheck disable=SC2086 # words
	wanted=$(printf 'mpa_%s\n' $2 | sort | paste -sd' ')
	got=$(jq -rn --argjson a "$before" --argjson b "$after" \
		'$b | to_entries[] | select(.value | type == "number") | . as $e | range(.value - $a[.key]) | $e.key' |
		sort | paste -sd' ')
	[[ $got == "$wanted" ]] || fail "${*:3}: counted $got, not $wanted"
}

play() { # NAME NETNS OPTIONS STATEMENT…
	local name=$1 netns=$2 options=$3
	printf '%s\n' 'within 20s' "${@:4}" >"$WORK/$name.txt"
	# shellcheck disable=SC2086 # words
	start "$name" "$netns" 60 "$MPAPEER" run "$WORK/$name.txt" $options
}

# A peer of our responder's, which listens on $port
from_peer() { # STATEMENT…
	play peer a "--connect $(address b):$port" "$@"
	ended_well peer 40
}

# A peer of our initiator's
initiator_meets() { # PORT STATEMENT…
	play peer b "--listen $(address b):$1 --accept-within 40s" 'expect request' "${@:2}"
	wait_ready peer '^listening on'
	# shellcheck disable=SC2086 # words
	run client a 40 "$RDMAFIRST" client "$(address b)" "$1" --no-receive --timeout 30 $client_options
	ended_well peer 30
}

client_options=''
port=7640
# Counters of every enhanced Request and its Reply
ENHANCED_RESPONDER='started_responder req_rcvd_rev2 req_rcvd_enhanced rep_sent_rev2 rep_sent_enhanced'
ENHANCED_INITIATOR='started_initiator req_sent_rev2 req_sent_enhanced rep_rcvd_rev2 rep_rcvd_enhanced'

responder_counters() {
	plain
	local terminated="$ENHANCED_RESPONDER failed_responder" over="$ENHANCED_RESPONDER established_responder"
	port=7640
	serve $port
	counts siw1/1 'started_responder req_rcvd_rev1 rep_sent_rev1 established_responder' from_peer "send hex ${REQ}40010000" 'expect reply rev=1'
	counts siw1/1 'started_responder req_rcvd_rev2 rep_sent_rev2 established_responder' from_peer "send hex ${REQ}40020000" 'expect reply rev=2'
	counts siw1/1 "$over rtr_rcvd_write" from_peer "$REQ_V08" 'expect reply accept' 'send rtr write' 'expect send'
	counts siw1/1 "$over rtr_rcvd_read" from_peer "send hex ${REQ}5002000480084008" 'expect reply accept' \
		'send rtr read' 'expect send or read-response'
	counts siw1/1 "$over rtr_rcvd_send" from_peer "send hex ${REQ}50020004c0080008" 'expect reply accept' \
		'send rtr send' 'expect send'
	counts siw1/1 "$over rtr_rcvd_other" from_peer "$REQ_V08" 'expect reply accept' 'send fpdu send "hello"' 'expect send'
	# F6 to F8, and one of layer 0
	counts siw1/1 "$terminated term_rcvd_local" from_peer "$REQ_V08" 'expect reply' \
		'send hex 0016414700000000000000020000000100000000200500001680d5f1' 'expect close'
	counts siw1/1 "$terminated term_rcvd_ird" from_peer "$REQ_V08" 'expect reply' \
		'send hex 0016414700000000000000020000000100000000200600006540fb1b' 'expect close'
	counts siw1/1 "$terminated term_rcvd_rtr" from_peer "$REQ_V08" 'expect reply' \
		'send hex 0016414700000000000000020000000100000000200700001bd2babe' 'expect close'
	counts siw1/1 "$terminated term_rcvd_other" from_peer "$REQ_V08" 'expect reply' \
		'send term 0/0/0' 'expect close'
	# frames that are none
	counts siw1/1 'started_responder bad_key failed_responder' from_peer "send hex ${REP}40010000" 'expect close'
	counts siw1/1 'started_responder bad_rev failed_responder' from_peer "send hex ${REQ}5003000400080004" 'expect close'
	counts siw1/1 'started_responder bad_pdata_len failed_responder' from_peer "send hex ${REQ}50020201" 'expect close'
	counts siw1/1 'started_responder bad_block failed_responder' from_peer "send hex ${REQ}500200028008" 'expect close'
	counts siw1/1 'started_responder req_rcvd_rev2 req_rcvd_enhanced bad_trailing failed_responder' \
		from_peer "send hex ${REQ}500200040008000478" 'expect close'
	stop server
	# deadlines
	ynl set siw1/1 request-ms=300 rtr-ms=300
	port=7641
	serve $port
	counts siw1/1 'started_responder timeout_request failed_responder' from_peer 'expect close'
	counts siw1/1 "$terminated timeout_rtr" from_peer "$REQ_V08" 'expect reply' 'expect close'
	stop server
	plain
	ynl set siw1/1 decide-ms=300
	port=7642
	serve $port --ignore nobody
	counts siw1/1 'started_responder req_rcvd_rev2 req_rcvd_enhanced timeout_decide failed_responder' \
		from_peer "send hex ${REQ}5002000a800880086e6f626f6479" 'expect close'
	stop server
	port=7643
	serve $port --reject busy
	counts siw1/1 "$terminated reject_sent" from_peer "$REQ_V08" 'expect reply reject' 'expect close'
	stop server
}

# Nobody answers at an address that ARP need not look for
connects_to_nobody() {
	ip netns exec a ip neigh replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev eth0 nud permanent
	run client a 40 "$RDMAFIRST" client 10.77.0.9 7655 --timeout 30
	ip netns exec a ip neigh del 10.77.0.9 dev eth0
}

initiator_counters() {
	plain
	local term="$ENHANCED_INITIATOR failed_initiator" goes="$ENHANCED_INITIATOR established_initiator"
	client_options='--mpa revision=1'
	counts siw0/1 'started_initiator req_sent_rev1 rep_rcvd_rev1 established_initiator' \
		initiator_meets 7650 "send hex ${REP}40010000" 'wait 300ms'
	client_options=''
	counts siw0/1 "$goes rtr_sent_write" initiator_meets 7650 "send hex ${REP}5002000480088008" 'expect write-rtr'
	counts siw0/1 "$goes rtr_sent_read" initiator_meets 7650 "send hex ${REP}5002000480084008" 'expect read-rtr'
	counts siw0/1 "$goes rtr_sent_send" initiator_meets 7650 "send hex ${REP}50020004c0080008" 'expect send'
	counts siw0/1 "$term term_sent_rtr" initiator_meets 7650 "$REP_V47" 'expect term 2/0/7'
	# ORD 1000 of a device of 128
	counts siw0/1 "$term term_sent_ird" initiator_meets 7650 "send hex ${REP}50020004800883e8" 'expect term 2/0/6'
	counts siw0/1 "$term reject_rcvd" initiator_meets 7650 "send hex ${REP}7002000480088008" 'expect close'
	counts siw0/1 'started_initiator req_sent_rev2 req_sent_enhanced bad_key failed_initiator' \
		initiator_meets 7650 "send hex ${REQ}5002000480088008" 'expect close'
	ynl set siw0/1 reply-ms=300 connect-ms=300
	counts siw0/1 'started_initiator req_sent_rev2 req_sent_enhanced timeout_reply failed_initiator' initiator_meets 7650 'expect close'
	counts siw0/1 'started_initiator timeout_connect failed_initiator' connects_to_nobody
	ynl set siw0/1 revision=fallback reply-ms=5000
	counts siw0/1 'started_initiator req_sent_rev2 req_sent_enhanced fallbacks req_sent_rev1 rep_rcvd_rev1 established_initiator' \
		initiator_meets 7651 'reset' 'accept' 'expect request rev=1' "send hex ${REP}40010000" 'wait 300ms'
}

# A list of many devices is longer than a datagram: who changes something meanwhile is noticed
dumps_are_of_one_piece() {
	plain
	local said i
	for i in 2 3 4 5; do
		ip -n a link add "d$i" type veth peer name "p$i"
		ip netns exec a rdma link add "siw$i" type siw netdev "d$i"
	done
	said="$("$NLFUZZ" interrupt); $("$NLFUZZ" interrupt 3)"
	for i in 2 3 4 5; do
		rdma link del "siw$i"
		ip -n a link del "d$i"
	done
	[[ $said =~ ^'13 records, '[2-9]' datagrams, whole; 13 records, '[2-9]' datagrams, interrupted'$ ]] || fail "$said"
}

half_open_is_counted() {
	plain
	serve 7621
	# shellcheck disable=SC2016
	start peer a 20 bash -c 'exec 3<>"/dev/tcp/$0/7621"; echo sent; sleep 15' "$(address b)"
	wait_ready peer '^sent'
	wait_for 30 'the connection to be counted' is_half_open
	stop peer
	wait_for 30 'nothing to be half open' nothing_half_open
	stop server
}

is_half_open() {
	[[ $(half_open siw1/1) == 1 && $("$RDMA" -j mpa stat link siw1/1 | jq '.[0].mpa_half_open') == 1 ]]
}

# ---- notifications

notifications() {
	plain
	# in the namespace that owns the device, which is the first one
	"$YNL" monitor policies connections >"$WORK/monitor.log" 2>&1 &
	pid_of[monitor]=$!
	start elsewhere a 60 "$RDMA" mpa monitor
	wait_ready monitor '^listening'
	ynl set siw0/1 rtr-ms=4321
	wait_line monitor '"name":"policy-ntf".*"dev-name":"siw0","llp":"tcp","port":1.*"policy":\{"rtr-ms":4321\}' 30
	ynl reset siw0/1
	wait_line monitor '"name":"policy-ntf".*"port":1,"policy":\{\}' 30
	serve 7630
	connect 7630
	wait_line monitor '"name":"conn-ntf".*"dev-name":"siw0".*"state":"RDMA","role":"initiator".*"model":"peer-to-peer","rtr":\["write"\]' 30
	wait_line monitor '"name":"conn-ntf".*"dev-name":"siw1".*"state":"RDMA","role":"responder".*"local":\{"ip4":"10.77.0.2","port":7630\}.*"rtr-seen":\["write"\]' 30
	stop server
	run client a 20 "$RDMAFIRST" client "$(address b)" 7630 --timeout 15
	wait_line monitor '"name":"conn-ntf".*"dev-name":"siw0".*"role":"initiator".*"remote":\{"ip4":"10.77.0.2","port":7630\}.*"error":111' 30
	initiator_meets 7631 "$REP_V47" 'expect term 2/0/7'
	wait_line monitor '"name":"conn-ntf".*"dev-name":"siw0".*"state":"REP_RCVD".*"remote":\{"ip4":"10.77.0.2","port":7631\}.*"error":71,"ecode":"rtr"' 30
	stop monitor
	stop elsewhere
	[[ ! -s $WORK/elsewhere.log ]] || fail 'the monitor in the other namespace prints events'
}

# ---- tracepoints

tracing() {
	plain
	local events=$TRACING/events/iw_mpa
	[[ -d $events ]] || { note 'this kernel has no tracepoints' && return; }
	echo >$TRACING/trace
	echo 1 >$events/enable
	serve 7640
	connect 7640
	stop server
	echo 0 >$events/enable
	cp $TRACING/trace "$WORK/trace.log"
	local who='dev=siw0 llp=tcp role=initiator qpn=[0-9]+ local=10.77.0.1:[0-9]+ remote=10.77.0.2:7640'
	has_line trace "mpa_frame_sent: $who kind=request rev=2 m=0 c=0 r=0 s=1 p2p=1 rtr=write.read ird=4 ord=4 pdata_len=0" ||
		fail 'the Request was not traced'
	has_line trace "mpa_frame_received: $who kind=reply rev=2 .* s=1 p2p=1 rtr=write.read" || fail 'the Reply was not traced'
	has_line trace "mpa_decision: $who verdict=go status=0 ecode=0 ird=4 ord=4 read_slots=4 rtr=write peer_known=1" ||
		fail 'the decision was not traced'
	has_line trace "mpa_rtr: $who dir=sent rtr=write" || fail 'the RTR was not traced'
	has_line trace "mpa_rtr: dev=siw1 .* dir=received rtr=write" || fail 'the RTR was not traced as received'
	has_line trace "mpa_state: $who from=REQ_SENT to=REP_RCVD" || fail 'the states were not traced'
	has_line trace "mpa_end: $who established in=REP_RCVD status=0 ecode=0" || fail 'the end was not traced'
}

# ---- those who take things away

# The trap makes a shell wait for its last command: it ends with nothing of its own left
busy() { # starts watchers and changers
	local i
	for i in 0 1 2; do
		"$RDMA" mpa monitor >"$WORK/monitor$i.log" 2>&1 &
		pid_of[monitor$i]=$!
	done
	# shellcheck disable=SC2016
	for i in 1 2; do
		bash -c 'trap exit TERM; while :; do "$0" -d mpa show; "$0" mpa stat; done' "$RDMA" >"$WORK/dump$i.log" 2>&1 &
		pid_of[dump$i]=$!
	done
	# shellcheck disable=SC2016
	bash -c 'trap exit TERM
		while :; do "$0" mpa set link siw0/1 rtr-timeout $((RANDOM + 1)); "$0" mpa set dev siw1 model client-server
		"$0" mpa reset dev siw1; done' "$RDMA" >"$WORK/set.log" 2>&1 &
	pid_of[set]=$!
	sleep 1
}

device_goes_while_watched() {
	plain
	local i
	busy
	for i in 1 2 3 4 5; do
		rdma link del siw0
		rdma link del siw1
		ip netns exec a rdma link add siw0 type siw netdev eth0
		ip netns exec b rdma link add siw1 type siw netdev eth0
	done
	stop_all
	plain
	is '{}' siw0/1 .policy
}

policies_go_with_their_device() {
	plain
	ynl set siw0/1 rtr-ms=1
	rdma link del siw0
	ip netns exec a rdma link add siw0 type siw netdev eth0
	is '{}' siw0/1 .policy
}

namespace_goes_while_watched() {
	plain
	local i
	busy
	ip netns add c
	ip netns exec c "$RDMA" mpa monitor >"$WORK/monitorc.log" 2>&1 &
	pid_of[monitorc]=$!
	# shellcheck disable=SC2016
	ip netns exec c bash -c 'trap exit TERM; while :; do "$0" mpa show; done' "$RDMA" >"$WORK/dumpc.log" 2>&1 &
	pid_of[dumpc]=$!
	sleep 1
	ip netns del c
	stop dumpc
	stop monitorc
	stop_all
	for i in 1 2 3; do
		ip netns add c
		ip netns exec c "$RDMA" mpa show >/dev/null
		ip netns del c
	done
}

# The kernel knows by the family's name which module has it
first_request_loads() {
	local request
	plain
	without_devices
	for request in 'show default' 'set default crc if-asked' monitor; do
		wait_for 20 'iw_mpa to be unloaded' unload iw_mpa
		# shellcheck disable=SC2086 # words
		"$RDMA" mpa $request >"$WORK/request.log" 2>&1 &
		pid_of[request]=$!
		wait_for 20 "rdma mpa $request to load iw_mpa" test -e /sys/module/iw_mpa
		if [[ $request == monitor ]]; then
			stop request
		else
			ended_well request 20
		fi
	done
	with_devices
}

# siw and iw_mpa go and come back, with those who watch asking all the while, which loads them
module_goes_while_watched() {
	plain
	local i
	busy
	rdma link del siw0
	rdma link del siw1
	for i in 1 2 3; do
		wait_for 20 'siw to be unloaded' unload siw
		wait_for 20 'iw_mpa to be unloaded' unload iw_mpa
		mpa show default >/dev/null || fail 'the module is not loaded automatically'
	done
	stop_all
	with_devices
	plain
}

unload() {
	[[ ! -e /sys/module/$1 ]] || rmmod "$1" 2>/dev/null
}

fuzzed() {
	plain
	timeout $((FUZZ_SECONDS + 60)) "$NLFUZZ" fuzz --seconds "$FUZZ_SECONDS" --seed "${RANDOM}" >"$WORK/fuzz.log" 2>&1 ||
		fail "the fuzzer ends with status $?: $(tail -n 1 "$WORK/fuzz.log")"
	note "$(tail -n 1 "$WORK/fuzz.log")"
	plain
	serve 7650
	connect 7650
	stop server
}

ynl_start
check 'MPA settings can be set, shown and reset by netlink' set_and_reset
check "the kernel's YNL client dumps MPA policies by means of the YAML specification alone" by_the_specification_alone
check 'a port setting overrides the device setting and the default; an IRD limit is only lowered' layers
check 'a netlink request with several settings, of which one is invalid, changes none' all_or_nothing
check 'contradictory settings are rejected with the reason' impossible
check 'malformed netlink requests are rejected, each with a reason' odd_requests
check 'an ordinary user can read settings but not change them' others_may_look
check 'an ordinary user can monitor settings but not connections' others_may_watch_changes
check "root of another user namespace cannot change a device's settings" root_elsewhere
check 'F47: an ordinary user cannot register as the port mapper' no_port_mapper
check 'a default that a device does not support is logged, and the device connects and listens without this setting' \
	default_beyond_the_device
check "a device's own settings do not block a conflicting default and stay in force" devices_cannot_veto
check "port setting rtr read: the RTR on the wire and in rdma resource is a Read" port_rtr_read
check "a program's RTR option overrides the port's setting" option_beats_port
check "a program's model option overrides the port's setting" option_model
check "MPA options of a listener apply to its connections" listener_option_inherited
check "MPA options set before rdma_accept() override the listener's options" accept_option
check 'Rev 1 set between the Request and rdma_accept(): the connection of an enhanced Request is closed, a plain Request is accepted' revision_1_before_accept
check 'MPA options of a connection over RoCE are rejected with EOPNOTSUPP' options_of_rxe
check 'MPA options of a program can leave the IRD unnegotiated and limit the ORD' option_depths
check 'rdma_set_option() rejects invalid MPA options with EINVAL' option_refused
check 'a rejected MPA option changes no option that was set before' bad_option_changes_nothing
check 'an MPA option after rdma_listen() or rdma_connect() fails with EINVAL' late_option_is_refused
check 'rdma resource reports the negotiated values of a QP and of a cm_id' outcome_can_be_asked_for
check 'rdma_connect() rejects contradictory MPA options with EINVAL' impossible_option
check 'a listener keeps the settings of its creation, a changed setting applies to the next listener' snapshot_at_listen
check 'a responder of revision 1 closes on a Rev 2 Request, and an initiator with fallback connects by Rev 1' revision_1
check "a program's larger IRD and ORD are lowered to the port's limits" ceiling
check "a connection without a Request is closed after the port's request-timeout" deadline
check 'each counter rises with connections of its kind, as rdma mpa stat shows' counters_add_up
check 'each counter of a responder rises with its event, without a change of other counters' responder_counters
check 'each counter of an initiator rises with its event, without a change of other counters' initiator_counters
check 'a netlink dump is marked as interrupted when the policies change during the dump' dumps_are_of_one_piece
check 'mpa_half_open counts a connection without a Request until it ends' half_open_is_counted
check 'setting changes and connections are notified by netlink, only in the namespace of the device' notifications
check 'tracepoints record frames, decisions, states and the end of connection setup' tracing
check 'the first netlink request loads the module iw_mpa' first_request_loads
check 'the settings of a device are deleted with the device' policies_go_with_their_device
check 'devices are removed and added during dumps and monitors of settings, without a failure' device_goes_while_watched
check 'namespaces are deleted during dumps and monitors of their settings, without a failure' namespace_goes_while_watched
check 'siw and iw_mpa can be unloaded during dumps and monitors of settings, the next request loads iw_mpa' module_goes_while_watched
check 'random netlink messages cause no failure of the kernel' fuzzed
finish
