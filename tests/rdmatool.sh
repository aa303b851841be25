#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/rdmatool.sh [REGEX]
#
# `rdma mpa` of patches/iproute2: what it shows and sets, what it and the kernel refuse and how they
# say so, what a setting does on the wire, counters and events.
#
# Runs as rdmatool: 400 s
# Sample rdmatool: nearest|kernel rejects|siw0/1 rtr read|monitor: 
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

ORDINARY=(setpriv --reuid 65534 --regid 65534 --clear-groups)

# mpa_json ARG…: what `rdma -j mpa` prints
mpa_json() { "$RDMA" -j -d mpa "$@"; }

# setting TARGET… NAME: the value in force there, lists with commas, of a depth its mode if there is no
# limit; and where it comes from
setting() {
	mpa_json show "${@:1:$#-1}" | jq -r --arg name "${!#}" '.[0]
		| "\(.[$name] // .[$name + "-mode"] | if type == "array" then join(",") else . end) (\(.origin[$name]))"'
}

expect() { # WHAT FOUND WANTED
	[[ $2 == "$3" ]] || fail "$1 is '$2', should be '$3'"
}

expect_setting() { # TARGET… NAME VALUE ORIGIN
	expect "${*:1:$#-2}" "$(setting "${@:1:$#-2}")" "${*: -2:1} (${*: -1})"
}

# refused TEXT COMMAND…: with an exit status, the text, and nothing on the standard output
refused() {
	local text=$1 status=0
	shift
	"$@" >"$WORK/stdout" 2>"$WORK/stderr" || status=$?
	[[ $status -ne 0 ]] || fail "not refused: $*"
	[[ ! -s $WORK/stdout ]] || fail "$* prints $(<"$WORK/stdout")"
	grep -qE -- "$text" "$WORK/stderr" || fail "$* prints '$(<"$WORK/stderr")', not '$text'"
	note "${*#*rdma }: $(paste -sd' ' "$WORK/stderr")"
}

# Forgets what is set
nothing_set() {
	local layer name
	mpa show configured | while read -r _ _ layer name _; do
		[[ $layer == default ]] || layer+=" $name"
		# shellcheck disable=SC2086 # words
		mpa reset $layer
	done
	[[ -z $(mpa show configured) ]] || fail "still configured: $(mpa show configured)"
}

# fresh COMMAND: a case begins with nothing set, whatever became of the one before
fresh() {
	nothing_set
	"$@"
}

# ---- show, set, reset

BUILT_IN='{"revision":"2","model":"peer-to-peer","rtr":["write","read"],"rtr-accept":["send","write","read"],
	"ird-mode":"auto","ord-mode":"auto","crc":"if-asked","request-timeout":5000,"reply-timeout":10000,
	"rtr-timeout":10000,"decide-timeout":60000,"dialect":"rfc6581","connect-timeout":150000,"short-ird":"lower",
	"fastopen":"off","segment":"mss","streams":1,"idle":5}'

shows_all_layers() {
	local json wrong
	json=$("$RDMA" -j mpa show)
	expect 'what is shown' "$(jq -c 'map([.layer, .ifname, .port])' <<<"$json")" \
		'[["default",null,null],["dev","siw0",null],["link","siw0",1],["dev","siw1",null],["link","siw1",1]]'
	expect 'the lower layer' "$(jq -c 'map(.llp)' <<<"$json")" '[null,"tcp","tcp","tcp","tcp"]'
	wrong=$(jq -c --argjson want "$BUILT_IN" '.[] | delpaths([["layer"], ["ifindex"], ["ifname"], ["port"], ["llp"]])
		| select(. != $want)' <<<"$json" | head -n 1)
	[[ -z $wrong ]] || fail "not as built in: $wrong"
	expect 'lines of text' "$(mpa show | sed 's/ llp tcp//; s/ revision .*//' | paste -sd'|')" \
		'default|dev siw0|link siw0/1|dev siw1|link siw1/1'
	expect 'a line' "$(mpa show link siw0/1)" 'link siw0/1 llp tcp revision 2 model peer-to-peer rtr write,read rtr-accept send,write,read ird auto ord auto crc if-asked dialect rfc6581 short-ird lower fastopen off segment mss connect-timeout 150000 request-timeout 5000 reply-timeout 10000 rtr-timeout 10000 decide-timeout 60000 streams 1 idle 5 '
	"$RDMA" -j -p mpa show | jq -e 'length == 5' >/dev/null
	"${ORDINARY[@]}" "$RDMA" mpa show link siw0/1 >/dev/null
	json=$(mpa_json show dev siw0 | jq -c '.[0].caps')
	expect 'capabilities' "$json" '{"max-ird":128,"max-ord":128,"rtr":["send","write","read"],"rtr-accept":["send","write","read"],"crc":"on","tx-markers":"off","rx-markers":"off"}'
	[[ $("$RDMA" -d mpa show dev siw0) == *' crc if-asked (built-in) '*$'\n    caps: max-ird 128 '* ]] || fail 'not in text'
}

# Values of each key that has some in objects of an array: its types, if they are more than one
types_of_keys() {
	jq -c '[.[] | del(.origin) | .. | objects | to_entries[] | {key, type: (.value | type)}]
		| group_by(.key)[] | map(.type) | unique | select(length > 1)'
}

one_type_a_key() {
	local mixed
	mpa set default ird 200 crc required
	mpa set link siw0/1 ird 4 ord ulp fastopen on
	start_monitor -j
	mpa set dev siw1 crc required
	connect
	run nobody a 20 "$RDMAFIRST" client "$(address b)" 7699
	wait_for 20 'the lines of the monitor' monitor_lines 4
	stop monitor
	mixed=$({ "$RDMA" -j mpa show; "$RDMA" -j mpa show configured; mpa_json show; "$RDMA" -j mpa stat
		jq -s . "$WORK/monitor.log"; } | jq -s add | types_of_keys)
	[[ -z $mixed ]] || fail "types of one key: $mixed"
}

layers() {
	mpa set default crc required reply-timeout 7000 rtr read,send
	expect_setting default crc required default
	expect_setting dev siw0 crc required default
	expect_setting link siw0/1 crc required default
	expect_setting link siw1/1 rtr read,send default
	mpa set dev siw0 crc off
	expect_setting default crc required default
	expect_setting dev siw0 crc off dev
	expect_setting link siw0/1 crc off dev
	expect_setting link siw1/1 crc required default
	mpa set link siw0/1 crc if-asked rtr write
	expect_setting dev siw0 crc off dev
	expect_setting link siw0/1 crc if-asked link
	expect_setting link siw0/1 rtr write link
	expect_setting link siw0/1 reply-timeout 7000 default
	expect_setting link siw0/1 model peer-to-peer built-in
	mpa reset link siw0/1 crc
	expect_setting link siw0/1 crc off dev
	expect_setting link siw0/1 rtr write link
	mpa reset link siw0/1 rtr
	expect_setting link siw0/1 rtr read,send default
	mpa reset default
	expect_setting link siw1/1 crc if-asked built-in
	mpa reset dev siw0
}

# Each setting with each of its values, and what is shown can be set again
every_value() {
	local setting value values all
	while read -r setting values; do
		for value in $values; do
			mpa set link siw0/1 "$setting" "$value"
			[[ $(mpa show link siw0/1) == *" $setting $value "* ]] || fail "$setting is not $value: $(mpa show link siw0/1)"
		done
	done <<-END
		revision 1 fallback 2
		model client-server peer-to-peer-required peer-to-peer
		rtr read write read,write write,read
		rtr-accept send write read send,write,read
		ird 0 1 16 auto ulp
		ord 0 1 16 auto ulp
		crc off required if-asked
		request-timeout 1 3600000
		reply-timeout 1 3600000
		rtr-timeout 1 3600000
		decide-timeout 1 3600000
		dialect early-draft rfc6581
		connect-timeout 1 3600000
		idle 1 3600
		short-ird reject lower
		fastopen on off
		segment large mss
	END
	all=$(mpa show link siw0/1 configured)
	mpa reset link siw0/1
	"$RDMA" -b - <<<"$all"
	expect 'what was set again' "$(mpa show link siw0/1 configured)" "$all"
	expect 'as JSON' "$("$RDMA" -j mpa show configured | jq -c 'map([.layer, .ifname, .port])')" '[["link","siw0",1]]'
}

# The output for all layers sets the same again
save_and_restore() {
	local saved
	mpa set default revision fallback rtr-order read,write
	mpa set dev siw0 crc off reply-timeout 1
	mpa set link siw0/1 rtr read,write
	mpa set link siw1/1 ird 4 ord ulp
	saved=$(mpa show configured)
	expect 'lines' "$(wc -l <<<"$saved")" 4
	nothing_set
	"$RDMA" -b - <<<"$saved"
	expect 'what was set again' "$(mpa show configured)" "$saved"
}

tool_refuses() {
	refused 'default, dev DEV or link DEV/PORT' mpa set
	refused 'Please provide a setting' mpa set default
	refused "Unknown setting 'rtt'. Settings are revision, model, rtr" mpa set default rtt read
	refused 'Please provide a value of rtr' mpa set default rtr
	refused "Unknown setting 'revis'" mpa set default revis 1
	refused "rtr: invalid value 'raed', use one of send, write, read" mpa set default rtr raed
	refused "rtr: invalid value '', use one of" mpa set default rtr read,
	refused 'rtr: duplicate kind read' mpa set default rtr read,write,read
	refused 'crc: duplicate setting' mpa set default crc off rtr read crc off
	refused 'rtr-order: duplicate setting' mpa set default rtr read rtr-order read
	refused "revision: invalid value '3', use one of 1, 2, fallback" mpa set default revision 3
	refused "model: invalid value 'peer', use one of client-server, peer-to-peer, peer-to-peer-required" mpa set default model peer
	refused "ird: '16383' is not auto, ulp or a number up to 16382" mpa set default ird 16383
	refused "ord: 'none' is not auto" mpa set default ord none
	refused "ord: '1x' is not auto" mpa set default ord 1x
	refused "rtr-timeout: '0' is not in the range 1..3600000 ms" mpa set default rtr-timeout 0
	refused "reply-timeout: '99999999999999999999' is not in the range 1..3600000 ms" mpa set default reply-timeout 99999999999999999999
	refused "streams: '0' is not in the range 1..1024" mpa set default streams 0
	refused "streams: '1025' is not in the range 1..1024" mpa set default streams 1025
	refused 'the device does not support several connections on one SCTP association' mpa set link siw0/1 streams 2
	refused 'Wrong device name - siw9$' mpa set link siw9/1 crc off
	refused "siw0: no port '2', ports are 1..1" mpa set link siw0/2 crc off
	refused "siw0: no port '0', ports are 1..1" mpa set link siw0/0 crc off
	refused "siw0: no port '', ports are 1..1" mpa set link siw0/ crc off
	refused "Wrong link \(DEV/PORT\) name - siw0$" mpa set link siw0 crc off
	refused "Wrong device name - siw0/1$" mpa set dev siw0/1 crc off
	refused "Unknown parameter 'crc'" mpa show link siw0/1 crc
	refused 'link DEV/PORT' mpa stat dev siw0
	refused "Unknown mpa command 'sett'" mpa sett default crc off
	expect 'what is set' "$(mpa show configured)" ''
}

# The kernel's sentences name what can be done
kernel_refuses() {
	local max
	max=$(mpa_json show dev siw0 | jq '.[0].caps["max-ird"]')
	refused "Error: .*$max" mpa set link siw0/1 ird $((max + 1))
	refused "Error: .*$max" mpa set dev siw0 ord $((max + 1))
	# all or nothing
	refused 'Error: ' mpa set link siw0/1 crc required ird $((max + 1))
	expect_setting link siw0/1 crc if-asked built-in
	expect 'what is set' "$(mpa show configured)" ''
	# once
	mpa set link siw0/1 ird $((max + 1)) 2>"$WORK/stderr" || true
	expect 'what it says' "$(<"$WORK/stderr")" "Error: the device's largest IRD is $max."
}

# The tool lists settings that a device lacks beside those that it has
not_taken() {
	mpa set link siw0/1 model peer-to-peer-required
	mpa set default revision 1 ird 129 crc required
	[[ $(mpa show link siw0/1) == *' revision 2 '*' crc required '*' not taken: revision,ird ' ]] || fail "$(mpa show link siw0/1)"
	[[ $(mpa show link siw1/1) == *' revision 1 '*' not taken: ird ' ]] || fail "$(mpa show link siw1/1)"
	expect 'as JSON' "$("$RDMA" -j mpa show | jq -c 'map(."not-taken")')" \
		'[null,["ird"],["revision","ird"],["ird"],["ird"]]'
	expect_setting link siw0/1 revision 2 built-in
	expect_setting link siw1/1 revision 1 default
}

ordinary_user() {
	refused 'needs CAP_NET_ADMIN' "${ORDINARY[@]}" "$RDMA" mpa set link siw0/1 rtr read
	refused 'needs CAP_NET_ADMIN' "${ORDINARY[@]}" "$RDMA" mpa set default rtr read
	refused 'needs CAP_NET_ADMIN' "${ORDINARY[@]}" "$RDMA" mpa reset link siw0/1
	"${ORDINARY[@]}" "$RDMA" mpa show >/dev/null
	"${ORDINARY[@]}" "$RDMA" mpa stat >/dev/null
	expect 'what is set' "$(mpa show configured)" ''
}

# ---- what a setting does

port=7600
# Counters of one connection from siw0 to siw1
STAT_CHANGE='[{"mpa_req_sent_rev2":1,"mpa_req_sent_enhanced":1,"mpa_rep_rcvd_rev2":1,"mpa_rep_rcvd_enhanced":1,"mpa_rtr_sent_write":1,"mpa_started_initiator":1,"mpa_established_initiator":1},{"mpa_req_rcvd_rev2":1,"mpa_req_rcvd_enhanced":1,"mpa_rep_sent_rev2":1,"mpa_rep_sent_enhanced":1,"mpa_rtr_rcvd_write":1,"mpa_started_responder":1,"mpa_established_responder":1}]'

# A connection from a (siw0) to b (siw1), held; what the rdma tool shows of its initiator in INITIATOR
connect() {
	local to
	to=$(address b)
	port=$((port + 1))
	capture wire b
	start server b 90 "$RDMAFIRST" server "$to" $port
	wait_listener "$to" $port
	start client a 90 "$RDMAFIRST" client "$to" $port --expect first --hold
	wait_line client '^received' 60
	INITIATOR=$(rdma resource show qp -dd | grep 'drv_mpa-role initiator' | grep 'drv_mpa-state RDMA')
	stop client
	ended server 30
	capture_end wire
}

wire() { # CLAIM
	on_the_wire wire $port "$1"
}

has_attribute() { # NAME VALUE
	[[ $INITIATOR == *" drv_$1 $2 "* ]] || fail "$1 is not $2: $INITIATOR"
}

rtr_by_read() {
	mpa set link siw0/1 rtr read
	connect
	wire 'must(.events[0].rtr == ["read"]; "the Request offers \(.events[0].rtr)"),
		(.events[2] | must(.kind == "read-request" and .size == 0 and .from == "initiator"; "the RTR is \(.)"))'
	has_attribute rtr read
	mpa set link siw0/1 rtr read,write
	connect
	wire 'must(.events[0].rtr == ["write", "read"]; "the Request offers \(.events[0].rtr)"),
		(.events[2] | must(.kind == "read-request"; "the RTR is \(.)"))'
	mpa reset link siw0/1
	connect
	wire peer_to_peer
	has_attribute rtr write
}

rtr_accepted() {
	mpa set link siw1/1 rtr-accept read
	connect
	wire 'must(.events[1].rtr == ["read"]; "the Reply has \(.events[1].rtr)"),
		(.events[2] | must(.kind == "read-request"; "the RTR is \(.)"))'
}

crc_required() {
	mpa set default crc required
	connect
	wire 'must(.events[0].crc; "the Request has C=0"), must(.crc_agreed; "no CRCs"),
		(fpdus[] | must(.crc == "ok"; "a CRC is \(.crc)"))'
	has_attribute crc on
}

depths() {
	mpa set link siw0/1 ird 2 ord ulp
	connect
	wire 'must(.events[0].ird <= 2; "IRD \(.events[0].ird)"), must(.events[0].ord == 16383; "ORD \(.events[0].ord)"),
		must(.events[1].ird == 16383; "IRD-20: IRD of the Reply \(.events[1].ird)")'
}

client_server() {
	mpa set link siw0/1 model client-server
	port=$((port + 1))
	capture wire b
	start server b 90 rping -s -a "$(address b)" -p $port -C 2
	wait_listener "$(address b)" $port
	run_well client a 30 rping -c -a "$(address b)" -p $port -C 2
	ended server 30
	capture_end wire
	wire client_server_interop
}

revision_1() {
	mpa set dev siw0 revision 1
	port=$((port + 1))
	capture wire b
	start server b 90 rping -s -a "$(address b)" -p $port -C 2
	wait_listener "$(address b)" $port
	run_well client a 30 rping -c -a "$(address b)" -p $port -C 2
	ended server 30
	capture_end wire
	wire '(.events[:2][] | must(.rev == 1 and (.enhanced | not); "\(.kind) of revision \(.rev)"))'
}

# ---- counters and events

stat_counts() {
	local before
	before=$("$RDMA" -j mpa stat)
	expect 'ports' "$(jq -c 'map([.ifname, .port, .llp])' <<<"$before")" '[["siw0",1,"tcp"],["siw1",1,"tcp"]]'
	connect
	expect 'the counters that have changed' "$(jq -c --argjson before "$before" '[., $before] | transpose | map(.[1] as $old
		| .[0] | with_entries(select(.value != $old[.key]) | .value -= $old[.key]))' <<<"$("$RDMA" -j mpa stat)")" \
		"$STAT_CHANGE"
	[[ $(mpa stat link siw0/1) == 'link siw0/1 llp tcp '* ]] || fail "text: $(mpa stat link siw0/1)"
	[[ $("$RDMA" -p mpa stat link siw0/1 | wc -l) -gt 5 ]] || fail 'not pretty'
	[[ $(mpa stat link siw0/1 | wc -l) == 1 ]] || fail 'not a line'
}

monitor_is_on() { grep -q . "$WORK/monitor.log" || { mpa set default reply-timeout 9000; sleep 0.3; false; }; }

reset_is_told() {
	! tail -n 1 "$WORK/monitor.log" | grep -q reply-timeout
}

monitor_lines() { # COUNT
	[[ $(wc -l <"$WORK/monitor.log") -ge $1 ]]
}

# In the first namespace: that of the devices, in the rdma tool's shared mode
start_monitor() { # [OPTION]
	: >"$WORK/monitor.log"
	# appended to: it is emptied below
	timeout -k 5 120 "$RDMA" "$@" mpa monitor >>"$WORK/monitor.log" 2>&1 </dev/null &
	pid_of[monitor]=$!
	wait_for 20 'the monitor' monitor_is_on
	mpa reset default
	wait_for 20 'the reset of the defaults' reset_is_told
	: >"$WORK/monitor.log"
}

monitor() {
	start_monitor
	mpa set link siw0/1 rtr read
	mpa reset link siw0/1
	connect
	run nobody a 20 "$RDMAFIRST" client "$(address b)" 7699
	wait_for 20 'the lines of the monitor' monitor_lines 4
	stop monitor
	sed 's/^/# /' "$WORK/monitor.log"
	expect 'line 1' "$(sed -n 1p "$WORK/monitor.log")" 'policy link siw0/1 llp tcp rtr read '
	expect 'line 2' "$(sed -n 2p "$WORK/monitor.log")" 'policy link siw0/1 llp tcp no settings '
	grep -qE "^established link siw0/1 llp tcp .*role initiator .*dst-addr 10.77.0.2:$port .*model peer-to-peer .*rtr write" "$WORK/monitor.log" ||
		fail 'no line of the initiator'
	grep -qE '^established link siw1/1 llp tcp .*role responder ' "$WORK/monitor.log" || fail 'no line of the responder'
}

# Nothing loads it here. One line says so
without_the_module() {
	local modprobe
	modprobe=$(</proc/sys/kernel/modprobe)
	echo /bin/false >/proc/sys/kernel/modprobe
	refused 'Cannot find the netlink family rdma-mpa: is iw_mpa loaded' mpa show
	expect 'the number of lines' "$(wc -l <"$WORK/stderr")" 1
	echo "$modprobe" >/proc/sys/kernel/modprobe
}

# It is the last to have it, and goes on when it is back
monitor_outlives_the_module() {
	rdma link del siw0
	rdma link del siw1
	mpa monitor >"$WORK/monitor.log" 2>&1 &
	pid_of[monitor]=$!
	wait_for 20 'the monitor' monitor_is_on
	wait_for 20 'siw to be unloaded' unload siw
	wait_for 20 'iw_mpa to be unloaded' unload iw_mpa
	without_the_module
	: >"$WORK/monitor.log"
	wait_for 20 'the monitor' monitor_is_on
	stop monitor
	modprobe siw
	ip netns exec a rdma link add siw0 type siw netdev eth0
	ip netns exec b rdma link add siw1 type siw netdev eth0
}

unload() {
	[[ ! -e /sys/module/$1 ]] || rmmod "$1"
}

# It is stopped, and more happens than the queue of its socket takes
monitor_says_what_is_lost() {
	local i
	start_monitor
	kill -STOP "$(pgrep -P "${pid_of[monitor]}")"
	for ((i = 1; i <= 2000; i++)); do
		echo "mpa set default reply-timeout $i"
	done | "$RDMA" -b -
	kill -CONT "$(pgrep -P "${pid_of[monitor]}")"
	wait_line monitor 'No buffer space available' 20
	mpa set default reply-timeout 7001
	wait_line monitor '^policy default reply-timeout 7001' 20
	stop monitor
}

monitor_json() {
	start_monitor -j -t
	mpa set dev siw1 crc required
	mpa reset dev siw1
	connect
	wait_for 20 'the lines of the monitor' monitor_lines 4
	stop monitor
	jq -es 'map(.event) as $events | ($events[:2] == ["policy", "policy"]) and ([.[] | select(.event == "established") | .role] | sort == ["initiator", "responder"])' \
		"$WORK/monitor.log" >/dev/null || fail "the events are $(<"$WORK/monitor.log")"
	jq -es --argjson now "$EPOCHSECONDS" 'all(.[]; .timestamp | sub("\\.[0-9]{6}$"; "Z") | fromdate | . <= $now and . > $now - 120)' \
		"$WORK/monitor.log" >/dev/null || fail "the times are $(jq -c .timestamp "$WORK/monitor.log" | paste -sd' ')"
	expect 'objects a line' "$(jq -c . "$WORK/monitor.log" | wc -l)" "$(wc -l <"$WORK/monitor.log")"
}

check 'rdma mpa show lists default, devices and ports with the built-in settings' fresh shows_all_layers
check 'rdma mpa show: the nearest setting of port, device and default is in force, and its origin is shown' fresh layers
check 'rdma mpa set: every setting accepts its values, and the output of rdma mpa show configured can be set again' fresh every_value
check 'rdma mpa show configured: rdma -b restores the settings of all layers from the output' fresh save_and_restore
check 'the rdma tool rejects invalid MPA settings with the reason' fresh tool_refuses
check "the kernel rejects an IRD or ORD above the device's limit and names the limit" fresh kernel_refuses
check 'rdma mpa show lists the defaults that a device ignores' fresh not_taken
check 'an ordinary user can show MPA settings but not set them' fresh ordinary_user
check 'rdma mpa set link siw0/1 rtr read: the RTR is a Read on the wire and in the rdma tool' fresh rtr_by_read
check 'rdma mpa set link siw1/1 rtr-accept read: the responder accepts a Read RTR' fresh rtr_accepted
check 'rdma mpa set default crc required: the Request contains C=1, and FPDUs carry CRCs' fresh crc_required
check 'rdma mpa set link siw0/1 ird 2 ord ulp: the Request contains IRD 2 at most and ORD 0x3fff' fresh depths
check 'rdma mpa set link siw0/1 model client-server: the connection is client-server, without an RTR' fresh client_server
check 'rdma mpa set dev siw0 revision 1: Request and Reply are of revision 1' fresh revision_1
check 'rdma mpa stat: the counters of a port rise with a connection' fresh stat_counts
check 'rdma mpa monitor: prints a line for each event' fresh monitor
check 'rdma mpa monitor: continues after the module iw_mpa has been unloaded and loaded' fresh monitor_outlives_the_module
check 'rdma mpa monitor: reports lost events' fresh monitor_says_what_is_lost
check 'rdma -j mpa: all values of a JSON key have one type' fresh one_type_a_key
check 'rdma mpa monitor -j: prints a JSON object for each event' fresh monitor_json
finish
