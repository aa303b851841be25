#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --timeout 7200 -- tests/bench.sh STOCK-DIR MODE [ROUNDS [ROWS]]
#
# MODE is setup, data, path, storage, quick, memory, llp, smp, smp-data or handovers.
# Not a test: scripts/bench runs this in its machines. Measures by turns with our modules and with the
# unmodified ones in STOCK-DIR, and prints a line of JSON for each result: connection setup and plain
# TCP, the data path, or the memory of connections. path measures the data path of ours, with both lengths
# of FPDUs, of the unmodified one and of plain TCP; storage does so for NVMe-oF and NFS. llp measures by turns siw over TCP and
# over SCTP, ours both. smp measures connection setup on all processors of the machine and counts
# hand-overs between them, smp-data the data path there; handovers shows each hand-over. All but data,
# smp, smp-data and handovers need a machine with --icount, where time is the number of
# instructions. ROWS is a regular expression: of path, only the rows are measured whose program with its
# options and fields, such as 'ib_write_bw -n 1000 -s 64 {"size": 64}', match it.
set -euo pipefail
# shellcheck source=tests/nodes.sh
source "${0%/*}/nodes.sh"
# shellcheck source=tests/storagepath.sh
source "${0%/*}/storagepath.sh"

BUILD=$(cd "${0%/*}/../build/tools" && pwd -P)
RDMABENCH=$BUILD/bench/rdmabench
# without this library, unmodified siw could make only 71 connections
CMTIME=(env "LD_PRELOAD=$BUILD/bench/libskipkey.so" cmtime)
stock_dir=$1 mode=${2:-setup}
# Parts of packets that are lost when the protocols are compared, in percent
losses=(0 0.1 1)
# The current round, variant and more fields of a result, for say()
round=0 extra='{}' variant='' work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $mode in
setup) rounds=3 counts=(1 64 256 1000) delays=(0 5 25 150) nodes=(2 4 8 16 32 64) ;;
data) rounds=5 counts=() delays=() nodes=(2) ;;
path | storage) rounds=3 counts=() delays=() nodes=(2) ;;
quick) rounds=1 counts=(1 64) delays=(0 25) nodes=(2 8) ;;
memory) rounds=3 counts=() delays=() nodes=(2) ;;
llp) rounds=3 counts=(1 64) delays=(0 25 100) nodes=(2) ;;
smp) rounds=7 counts=(1 64 200 1000) delays=(0) nodes=(16) ;;
smp-data) rounds=7 counts=() delays=() nodes=(8) ;;
handovers) rounds=1 counts=(1 64) delays=(0) nodes=(2) ;;
*) exit 2 ;;
esac
rounds=${3:-$rounds}
rows=${4:-}
last=${nodes[-1]}
# Seconds. While a machine with --icount waits for a file of the host, it runs nothing and its time
# passes quickly
patience=100000
[[ $mode != *data && $mode != smp && $mode != handovers ]] || patience=150
ulimit -n 65536

now_us() {
	local t=$EPOCHREALTIME
	echo $((${t%.*} * 1000000 + 10#${t#*.}))
}

# say WHAT JSON-OBJECT
say() {
	jq -c --arg what "$1" --arg variant "$variant" --argjson round "$round" --argjson extra "$extra" \
		'{round: $round, variant: $variant, what: $what} + . + $extra' <<<"$2"
}

problem() {
	printf '# %s, round %s: %s\n' "$variant" "$round" "$*"
}

# ---- modules

unload() {
	local tries=0 module
	while [[ -e /sys/module/iw_cm ]]; do
		((tries++ < 50)) || { problem "cannot unload: $(grep -E '^(ib|iw|rdma|siw)' /proc/modules)" && exit 1; }
		for module in siw iw_mpa rdma_ucm rdma_cm iw_cm; do
			[[ ! -e /sys/module/$module ]] || rmmod $module 2>/dev/null || true
		done
		[[ ! -e /sys/module/iw_cm ]] || sleep 0.1
	done
}

# load ours|stock
load() {
	local dir=$VM_MODDIR module device
	variant=$1
	[[ $1 == ours ]] || dir=$stock_dir
	for device in /sys/class/infiniband/*; do
		[[ ! -e $device ]] || rdma link del "${device##*/}"
	done
	unload
	# libcrc32c takes the best that there is when it is loaded; udev loads it on a real machine
	modprobe -aq crc32c_intel crc32c_generic configfs libcrc32c
	modprobe -a ib_cm ib_uverbs
	for module in iw_cm rdma_cm rdma_ucm iw_mpa siw; do
		[[ ! -e $dir/$module.ko ]] || insmod "$dir/$module.ko"
	done
	ip netns exec a rdma link add siw0 type siw netdev eth0
	ip netns exec b rdma link add siw1 type siw netdev eth0
	for ((i = 0; i < last; i++)); do
		ip netns exec "n$i" rdma link add "sn$i" type siw netdev eth0
	done
}

# use_llp siw|siw_sctp|streams: makes the links of a and b again, the last with connections that share an association
use_llp() {
	local type=siw_sctp
	variant=$1
	[[ $variant != siw ]] || type=siw
	for device in siw0 siw1; do
		rdma link del $device
	done
	ip netns exec a rdma link add siw0 type $type netdev eth0
	ip netns exec b rdma link add siw1 type $type netdev eth0
	if [[ $variant == streams ]]; then
		# while the machine waits for the host, its clock may advance by hundreds of seconds
		"$BUILD/../rdma" mpa set link siw0/1 streams 1024 idle 3600
		"$BUILD/../rdma" mpa set link siw1/1 streams 1024 idle 3600
	fi
}

# ---- networks

# Unmodified siw can listen on all addresses, like perftest, only if no two namespaces have an interface
# of the same index
give_indices() {
	local netns host=1
	ip -n a link del eth0
	ip link add eth0 netns a index 11 mtu 1500 type veth peer name eth0 netns b index 12 mtu 1500
	for netns in a b; do
		ip -n $netns addr add 10.77.0.$host/24 dev eth0
		ip -n $netns link set eth0 up
		host=$((host + 1))
	done
}

# places COUNT: prints the places for rdmabench
places() {
	local i
	for ((i = 0; i < $1; i++)); do
		printf 'n%d=10.78.0.%d ' "$i" $((i + 1))
	done
}

# The delay is in one direction only, so it is the delay of a round trip
set_delay() {
	tc -n a qdisc del dev eth0 root 2>/dev/null || true
	[[ $1 == 0 ]] || tc -n a qdisc add dev eth0 root netem delay "$1ms" limit 100000
	ip netns exec a ping -q -c 1 -W 5 10.77.0.2 >/dev/null
}

# rdma_cm says that it listens before its socket does
has_listener() {
	local netns table=tcp state=' 0+:0000 0A '
	rdma resource show cm_id | grep -q 'state LISTEN' || return 1
	[[ $variant != siw_sctp && $variant != streams ]] || table=sctp/eps state=' 10 '
	for netns in a b; do
		! ip netns exec "$netns" cat "/proc/net/$table" | grep -qE "$state" || return 0
	done
	return 1
}

wait_until() { # FUNCTION [ARG…]
	local tries=0
	until "$@"; do
		((tries++ < 100)) || { problem "waited in vain: $1" && return 1; }
		sleep 0.1
	done
}

# The remains of an earlier connection must not disturb a later one
forget_quickly() {
	local netns
	for netns in $(ip netns list | cut -d' ' -f1); do
		ip netns exec "$netns" sysctl -qw net.ipv4.tcp_max_tw_buckets=0
	done
}

# ---- measurements

# cmtime COUNT DELAY
run_cmtime() {
	local server result
	ip netns exec b timeout $patience "${CMTIME[@]}" -b 10.77.0.2 -c "$1" >"$work/server" 2>&1 &
	server=$!
	wait_until has_listener || return 0
	if ! ip netns exec a timeout $patience "${CMTIME[@]}" -b 10.77.0.1 -s 10.77.0.2 -c "$1" >"$work/client" 2>&1 ||
		grep -qE 'failure|error' "$work/client"; then
		problem "cmtime -c $1, $2 ms: $(grep -E 'failure|error' "$work/client" | sort | uniq -c | head -n 3 | paste -sd';')"
	fi
	kill "$server" 2>/dev/null || true
	wait "$server" || true
	result=$(awk -v count="$1" -v delay="$2" '
		/^(create qp|connect|disconnect|destroy) *:/ {
			name = $1 == "create" ? "create_qp" : $1
			sub(/.*: */, "")
			split($0, v, / +/)
			line = line sprintf(", \"%s_us\": %s, \"%s_max_us\": %s", name, v[1] * 1000, name, v[2] * 1000)
		}
		END { printf "{\"count\": %d, \"delay\": %d%s}\n", count, delay, line }' "$work/client")
	say cmtime "$result"
}

# run_rdmabench WHAT EXTRA-JSON ARG…
run_rdmabench() {
	local what=$1 extra=$2
	shift 2
	"$RDMABENCH" "$@" >"$work/out" 2>"$work/err" || problem "rdmabench $*: $(head -n 2 "$work/err" | cut -c1-200)"
	[[ ! -s $work/out ]] || say "$what" "$(jq -c --argjson extra "$extra" '. + $extra' "$work/out")"
}

# perftest PROGRAM JQ-NAME COLUMN OPTION…
run_perftest() {
	local program=$1 name=$2 column=$3 server value idle=()
	shift 3
	[[ "$program $* $extra" =~ $rows ]] || return 0
	# The server of READ and WRITE only polls for the end of the test
	[[ -z ${server_nice:-} || $program == ib_send* ]] || idle=(chrt --idle 0)
	ip netns exec b "${idle[@]}" nice -n "${server_nice:-0}" timeout $((patience + 20)) "$program" -d siw1 -R -F "$@" >"$work/server" 2>&1 &
	server=$!
	wait_until has_listener || return 0
	ip netns exec a nice -n "${client_nice:-0}" timeout "$patience" "$program" -d siw0 -R -F "$@" 10.77.0.2 >"$work/client" 2>&1 || problem "$program failed"
	kill "$server" 2>/dev/null || true
	wait "$server" || true
	value=$(awk -v column="$column" '/^ *[0-9]+ +[0-9]+ +[0-9.]+/ { value = $column } END { print value }' "$work/client")
	if [[ $value =~ ^([0.]+|inf)$ ]]; then
		# its clock has 0 MHz then
		problem "$program was disturbed when it measured its clock"
	elif [[ -n $value ]]; then
		say perftest "{\"program\": \"$program\", \"$name\": $value}"
	fi
}

# counts_at DELAY: the longest delay has only the smallest and the largest count. It compares the work
# of all connections with a round trip, as on a processor that does more in a nanosecond
counts_at() {
	if (($1 == 150)); then
		echo "${counts[0]} ${counts[-1]}"
	else
		echo "${counts[@]}"
	fi
}

# times COUNT: repetitions in a round; a single connection is quick, but easily disturbed, as are times on the host's clock
times() {
	if (($1 == 1)); then seq 5; elif [[ $mode == smp ]]; then seq 3; else echo 1; fi
}

measure_patterns() { # NODES [--transport tcp]
	# shellcheck disable=SC2046 # words
	run_rdmabench many-to-one '{}' connect "${@:2}" --pattern many-to-one --per-pair 4 $(places "$1")
	# shellcheck disable=SC2046
	run_rdmabench all-to-all '{}' connect "${@:2}" --pattern all-to-all $(places "$1")
}

measure_setup() {
	local count delay n _
	run_rdmabench listen '{}' listen --rounds 30 a=10.77.0.1
	for delay in "${delays[@]}"; do
		set_delay "$delay"
		for count in $(counts_at "$delay"); do
			for _ in $(times "$count"); do
				run_cmtime "$count" "$delay"
			done
		done
		for count in $(counts_at "$delay"); do
			for _ in $(times "$count"); do
				run_rdmabench latency "{\"count\": $count, \"delay\": $delay}" \
					connect --per-pair "$count" b=10.77.0.2 a=10.77.0.1
			done
		done
	done
	set_delay 0
	for n in "${nodes[@]}"; do
		measure_patterns "$n"
	done
}

# with_default VARIANT SETTING VALUE FUNCTION [ARG…]: measures ours with a setting, as a variant
with_default() {
	variant=$1
	# shellcheck disable=SC2086 # VALUE may be followed by another setting and its value
	"$BUILD/../rdma" mpa set default "$2" $3
	"${@:4}"
	"$BUILD/../rdma" mpa reset default
	variant=ours
}

measure_cmtime() {
	local count _
	for count in "${counts[@]}"; do
		for _ in $(times "$count"); do
			run_cmtime "$count" 0
		done
	done
}

# The client-server model of unmodified siw, without a Ready-to-Receive message
measure_client_server() {
	measure_cmtime
	measure_patterns "$last"
}

measure_half_open() { # [--transport tcp]
	run_rdmabench half-open '{}' half-open "$@" --per-pair 200 b=10.77.0.2 a=10.77.0.1
}

measure_floor() {
	local count delay n _
	variant=tcp
	for delay in "${delays[@]}"; do
		set_delay "$delay"
		for count in $(counts_at "$delay"); do
			for _ in $(times "$count"); do
				run_rdmabench latency "{\"count\": $count, \"delay\": $delay}" \
					connect --transport tcp --per-pair "$count" b=10.77.0.2 a=10.77.0.1
			done
		done
	done
	set_delay 0
	for n in "${nodes[@]}"; do
		measure_patterns "$n" --transport tcp
	done
	measure_half_open --transport tcp
}

measure_memory() {
	run_rdmabench latency '{"count": 1000, "delay": 0}' connect --per-pair 1000 b=10.77.0.2 a=10.77.0.1
	measure_half_open
}

measure_llp() {
	local count delay client_nice=10 server_nice=19 _
	for delay in "${delays[@]}"; do
		set_delay "$delay"
		for count in "${counts[@]}"; do
			for _ in $(times "$count"); do
				# the association stays for some seconds
				[[ $variant != streams ]] || run_cmtime 1 "$delay" >/dev/null
				run_cmtime "$count" "$delay"
			done
		done
	done
	set_delay 0
	run_rdmabench latency '{"count": 1000, "delay": 0}' connect --per-pair 1000 b=10.77.0.2 a=10.77.0.1
	client_nice=0 server_nice=0 run_perftest ib_send_lat typical_us 5 -e -n 200 -s 64
	lossy with_timeouts run_perftest ib_write_bw mib_s 4 -n 200 -s 65536
}

# with_timeouts FUNCTION [ARG…]: also says how often the retransmission timer of SCTP expired
with_timeouts() {
	local before
	[[ $variant != siw ]] || { "$@" && return; }
	before=$(timeouts)
	"$@"
	say timeouts "{\"t3\": $(($(timeouts) - before))}"
}

# shellcheck disable=SC2016 # of awk
timeouts() {
	ip netns exec a awk '$1 == "SctpT3RtxExpireds" { print $2 }' /proc/net/sctp/snmp
}

# lossy FUNCTION [ARG…]: with a round trip of 1 ms, and parts of the packets to b lost. The interface takes single
# segments: netem would lose 64 KiB at once, and so rarely that a run shows nothing but its luck.
lossy() {
	local loss given=$extra
	set_link gso_max_segs 1
	for loss in "${losses[@]}"; do
		tc -n a qdisc add dev eth0 root netem delay 1ms limit 100000
		tc -n b qdisc add dev eth0 clsact
		[[ $loss == 0 ]] ||
			tc -n b filter add dev eth0 ingress matchall action pass random netrand drop "$(jq -n "100 / $loss")"
		extra=$(jq -c ". + {loss: $loss}" <<<"$given")
		"$@"
		tc -n b qdisc del dev eth0 clsact
		set_delay 0
	done
	set_link gso_max_segs 65535
	extra='{}'
}

set_link() {
	ip -n a link set eth0 "$@"
	ip -n b link set eth0 "$@"
}

# on_links FUNCTION [ARG…]: over a link with large packets, and over one that takes single segments
on_links() {
	local given=$extra
	extra=$(jq -c '. + {link: "MTU 9000"}' <<<"$given")
	set_link mtu 9000
	"$@"
	extra=$(jq -c '. + {link: "no GSO"}' <<<"$given")
	set_link mtu 1500 gso_max_segs 1
	"$@"
	set_link gso_max_segs 65535
	extra=$given
}

measure_data() {
	run_perftest ib_send_lat typical_us 5 -n 1000 -s 64
	run_perftest ib_write_bw mib_s 4 -n 500 -s 65536
	run_perftest ib_read_bw mib_s 4 -n 500 -s 65536
	[[ $variant == stock ]] || with_default crc crc required run_perftest ib_write_bw mib_s 4 -n 500 -s 65536
}

# Messages for each size: some MiB and no more, and many time slices of the scheduler, of up to 28 ms
declare -A messages=([64]=10000 [4096]=1000 [65536]=640 [1048576]=80)

# Programs that poll would take half of the only processor from the thread of siw that sends: the client of a WRITE polls
# for completions, the server of READ and WRITE for the end of the test. So they wait for events, or have a low priority.
measure_path() {
	local size qps client_nice=10 server_nice=19
	for size in 64 4096 65536 1048576; do
		extra="{\"size\": $size}"
		run_perftest ib_write_bw mib_s 4 -n "${messages[$size]}" -s "$size"
		run_perftest ib_read_bw mib_s 4 -e -n "${messages[$size]}" -s "$size"
		run_perftest ib_send_bw mib_s 4 -e -n "${messages[$size]}" -s "$size"
	done
	extra='{"size": 64, "list": 32}'
	run_perftest ib_write_bw mib_s 4 -n 1024 -s 64 -l 32
	for qps in 4 16; do
		extra="{\"size\": 65536, \"qps\": $qps}"
		run_perftest ib_write_bw mib_s 4 -n $((640 / qps)) -s 65536 -q "$qps"
		run_perftest ib_read_bw mib_s 4 -e -n $((640 / qps)) -s 65536 -q "$qps"
	done
	# not ib_write_lat: both ends poll, and wait for the scheduler
	for size in 1 64 4096; do
		extra="{\"size\": $size}"
		client_nice=0 server_nice=0 run_perftest ib_send_lat typical_us 5 -e -n 200 -s "$size"
		client_nice=0 server_nice=0 run_perftest ib_read_lat typical_us 5 -e -n 200 -s "$size"
	done
	extra='{"size": 65536}'
	on_links run_perftest ib_write_bw mib_s 4 -n "${messages[65536]}" -s 65536
	on_links run_perftest ib_read_bw mib_s 4 -e -n "${messages[65536]}" -s 65536
	lossy run_perftest ib_write_bw mib_s 4 -n 200 -s 65536
}

measure_path_with_crc() {
	local client_nice=10 server_nice=19
	extra='{"size": 65536}'
	run_perftest ib_write_bw mib_s 4 -n "${messages[65536]}" -s 65536
	run_perftest ib_read_bw mib_s 4 -e -n "${messages[65536]}" -s 65536
	extra='{}'
}

# iperf PROGRAM SIZE OCTETS [OPTION…]: plain TCP in the place of PROGRAM
iperf() {
	local server
	[[ "$* $extra" =~ $rows ]] || return 0
	ip netns exec b timeout 100 iperf3 -s -1 >"$work/server" 2>&1 &
	server=$!
	wait_until has_iperf || return 0
	ip netns exec a timeout 100 iperf3 -J -c 10.77.0.2 -l "$2" -n "$3" "${@:4}" >"$work/client" || problem 'iperf3 failed'
	wait "$server" || true
	say perftest "$(jq -c --arg program "$1" '{program: $program, mib_s: (.end.sum_received.bits_per_second / 8388608)}' "$work/client")"
}

has_iperf() {
	ip netns exec b ss -Htln | grep -q ':5201 '
}

measure_tcp_path() {
	local size qps
	variant=tcp
	iperf3 --version >/dev/null # from the disk: while all wait for it the clock leaps, and deadlines are over
	for size in 64 4096 65536 1048576; do
		extra="{\"size\": $size}"
		iperf ib_write_bw "$size" $((size * messages[$size] * 40))
		iperf ib_send_bw "$size" $((size * messages[$size] * 40))
		iperf ib_read_bw "$size" $((size * messages[$size] * 40)) -R
	done
	for qps in 4 16; do
		extra="{\"size\": 65536, \"qps\": $qps}"
		iperf ib_write_bw 65536 200M -P "$qps"
		iperf ib_read_bw 65536 200M -P "$qps" -R
	done
	extra='{"size": 65536}'
	on_links iperf ib_write_bw 65536 400M
	on_links iperf ib_read_bw 65536 400M -R
	lossy iperf ib_write_bw 65536 13M
}

# ---- several processors

readonly TRACING=/sys/kernel/tracing
# Events of the kernel that are counted, as the histogram's key
declare -A counted=([workqueue/workqueue_execute_start]=function [lock/contention_begin]=flags)

# start_counting: resets all counters
start_counting() {
	local event
	sysctl -qw kernel.sched_schedstats=1
	for event in "${!counted[@]}"; do
		echo "hist:keys=${counted[$event]}" >"$TRACING/events/$event/trigger"
	done
	counters >"$work/counters"
}

stop_counting() {
	local event
	for event in "${!counted[@]}"; do
		echo "!hist:keys=${counted[$event]}" >"$TRACING/events/$event/trigger"
	done
	sysctl -qw kernel.sched_schedstats=0
}

# counters: prints NAME VALUE of each counter
counters() {
	awk '/^ctxt / { print "context_switches", $2 }' /proc/stat
	awk '/^cpu[0-9]/ { all += $6; here += $7 } END { print "wake_ups", all; print "wake_ups_elsewhere", all - here }' /proc/schedstat
	awk '$1 == "RES:" || $1 == "CAL:" { n = 0; for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i
		print $1 == "RES:" ? "reschedule_interrupts" : "call_function_interrupts", n }' /proc/interrupts
	awk '/Hits:/ { print "work_items", $2 }' "$TRACING/events/workqueue/workqueue_execute_start/hist"
	awk '/Hits:/ { print "contended_locks", $2 }' "$TRACING/events/lock/contention_begin/hist"
}

# Hand-overs of each connection from its creation to its end, both ends
count_hand_overs() { # CONNECTIONS
	start_counting
	run_rdmabench ignored '{}' connect --per-pair "$1" b=10.77.0.2 a=10.77.0.1 >"$work/ignored"
	say counters "$(counters | awk -v n="$1" 'NR == FNR { before[$1] = $2; next }
		{ line = line sprintf(", \"%s\": %.3f", $1, ($2 - before[$1]) / n) }
		END { printf "{\"count\": %d%s}", n, line }' "$work/counters" -)"
	stop_counting
}

# pairs N [--transport tcp]: N programs at once, each with connections between two nodes of its own
pairs() {
	local i connections=200
	local -a pids=()
	for ((i = 0; i < $1; i++)); do
		"$RDMABENCH" connect "${@:2}" --per-pair $connections --port $((7200 + i)) "n$((2 * i + 1))=10.78.0.$((2 * i + 2))" \
			"n$((2 * i))=10.78.0.$((2 * i + 1))" >"$work/pair$i" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}" || problem "a pair of $1 failed: $(head -qn 1 "$work"/pair*)"
	say pairs "$(for ((i = 0; i < $1; i++)); do cat "$work/pair$i"; done |
		jq -cs --argjson pairs "$1" '{count: $pairs, per_second: (map(1e6 * .established / .wall_us) | add)}')"
}

# Probes, and events of the kernel, that handovers.py reads
readonly PROBES='p:connects rdma_connect_ece
p:disconnects rdma_disconnect
r:destroys_qp ib_destroy_qp_user
p:sends tcp_sendmsg
p:closes tcp_close
p:handles cma_iw_handler
r:gets_event ucma_get_event'
readonly EVENTS='sched/sched_waking sched/sched_switch workqueue/workqueue_execute_start workqueue/workqueue_execute_end
irq_vectors/reschedule_entry irq_vectors/call_function_entry irq_vectors/call_function_single_entry lock/contention_begin kprobes'

trace_events() { # 0|1
	local event
	for event in $EVENTS; do
		echo "$1" >"$TRACING/events/$event/enable"
	done
}

measure_handovers() {
	local count
	echo "$PROBES" >$TRACING/kprobe_events
	echo 40000 >$TRACING/buffer_size_kb
	echo 4096 >$TRACING/saved_cmdlines_size # names of tasks
	# the first connections of a machine also load what they run
	run_rdmabench ignored '{}' connect --per-pair 8 b=10.77.0.2 a=10.77.0.1 >"$work/ignored"
	for count in "${counts[@]}"; do
		echo >$TRACING/trace
		trace_events 1
		run_rdmabench ignored '{}' connect --per-pair "$count" b=10.77.0.2 a=10.77.0.1 >"$work/ignored"
		trace_events 0
		cp $TRACING/trace "$work/trace"
		say handovers "$(python3 "${0%/*}/handovers.py" "$work/trace" "$count" | jq -c --argjson count "$count" '. + {count: $count}')"
		((count > 1)) || python3 "${0%/*}/handovers.py" "$work/trace" 1 --line | sed "s/^/line $variant /"
	done
	echo >$TRACING/kprobe_events
}

measure_smp_patterns() { # [--transport tcp]
	# shellcheck disable=SC2046 # words
	run_rdmabench many-to-one '{}' connect "$@" --pattern many-to-one --per-pair 60 $(places "$last")
	# shellcheck disable=SC2046
	run_rdmabench all-to-all '{}' connect "$@" --pattern all-to-all --per-pair 4 $(places "$last")
	pairs 1 "$@"
	pairs "$(nproc)" "$@"
}

measure_smp() {
	measure_cmtime
	measure_smp_patterns
	count_hand_overs 1
	count_hand_overs 200
	[[ $variant == stock ]] || with_default client-server model client-server measure_cmtime
	[[ $variant == stock ]] || with_default client-server model client-server count_hand_overs 200
}

all_listen() { # PAIRS
	local i
	for ((i = 0; i < $1; i++)); do
		ip netns exec "n$((2 * i + 1))" ss -Htln | grep -q ":$((5201 + i)) " || return 1
	done
}

# stream NAME PAIRS PROGRAM OPTION…: as many programs at once, each between two nodes of its own; says the sum of their
# values of NAME. Unmodified siw listens on all links, so that each server has a port of its own.
stream() {
	local name=$1 pairs=$2 program=$3 i column=4
	local -a servers=() clients=() server=(iperf3 -s -1) client=(iperf3 -J -c) idle=()
	shift 3
	[[ $name == mib_s ]] || column=5
	[[ $program == ib_send* ]] || idle=(chrt --idle 0)
	for ((i = 0; i < pairs; i++)); do
		[[ $variant == tcp ]] || server=("${idle[@]}" "$program" -d "sn$((2 * i + 1))" -R -F "$@")
		ip netns exec "n$((2 * i + 1))" timeout $patience "${server[@]}" -p $((5201 + i)) >"$work/server$i" 2>&1 &
		servers+=($!)
	done
	wait_until all_listen "$pairs" || return 0
	for ((i = 0; i < pairs; i++)); do
		[[ $variant == tcp ]] || client=(nice -n "${client_nice:-0}" "$program" -d "sn$((2 * i))" -R -F)
		ip netns exec "n$((2 * i))" timeout $patience "${client[@]}" "10.78.0.$((2 * i + 2))" -p $((5201 + i)) "$@" \
			>"$work/client$i" 2>&1 &
		clients+=($!)
	done
	wait "${clients[@]}" || problem "$program of $pairs failed"
	kill "${servers[@]}" 2>/dev/null || true
	wait "${servers[@]}" || true
	for ((i = 0; i < pairs; i++)); do
		if [[ $variant == tcp ]]; then
			jq '.end.sum_received.bits_per_second / 8388608' "$work/client$i"
		else
			awk -v column=$column '/^ *[0-9]+ +[0-9]+ +[0-9.]+/ { print $column }' "$work/client$i"
		fi
	done >"$work/values"
	(($(grep -cE '^[0-9.]*[1-9]' "$work/values") == pairs)) ||
		{ problem "$program of $pairs: $(paste -sd' ' "$work/values")" && return; }
	say perftest "$(jq -s --arg program "$program" --arg name "$name" --argjson pairs "$pairs" \
		'{program: $program, pairs: $pairs, ($name): add}' "$work/values")"
}

# Two processors for each pair. A program that polls has a low priority: it would take the processor from the thread that sends.
measure_smp_data() {
	local pairs size program client_nice=10
	for pairs in 1 $(($(nproc) / 2)); do
		extra="{\"cpus\": $(nproc), \"size\": 65536}"
		for program in ib_write_bw ib_read_bw; do
			if [[ $variant != tcp ]]; then
				stream mib_s "$pairs" $program -s 65536 -n 1000
			elif [[ $program == ib_write_bw ]]; then
				stream mib_s "$pairs" $program -l 65536 -n 150M
			else
				stream mib_s "$pairs" $program -l 65536 -n 150M -R
			fi
		done
		((pairs < $(nproc) / 2)) || break
	done
	[[ $variant != tcp ]] || return 0
	client_nice=0
	extra="{\"cpus\": $(nproc), \"size\": 64}"
	stream mib_s 1 ib_write_bw -s 64 -n 10000
	stream mib_s 1 ib_send_bw -s 64 -n 10000
	for size in 64 4096; do
		extra="{\"cpus\": $(nproc), \"size\": $size}"
		stream typical_us 1 ib_send_lat -s $size -n 1000
	done
}

warm_up() {
	run_cmtime 8 0 >/dev/null
	"$RDMABENCH" connect --per-pair 8 b=10.77.0.2 a=10.77.0.1 >/dev/null
}

# libibverbs would load every provider in every program
find /etc/libibverbs.d -name '*.driver' ! -name siw.driver -delete
make_nodes "$last"
[[ $mode != smp ]] || extra="{\"cpus\": $(nproc)}"
[[ $mode != data && $mode != smp-data && $mode != path ]] || give_indices
forget_quickly
[[ $mode != storage ]] || make_pair
start=$(now_us)
if [[ $mode == llp* ]]; then
	load ours
	for ((round = 1; round <= rounds; round++)); do
		order=(siw siw_sctp streams)
		((round % 2)) || order=(streams siw_sctp siw)
		for variant in "${order[@]}"; do
			use_llp "$variant"
			set_delay 0
			run_cmtime 8 0 >/dev/null
			"measure_${mode//-/_}"
			printf '# '"$mode"', round %d of %d, %s: %d s\n' "$round" "$rounds" "$variant" $((($(now_us) - start) / 1000000))
		done
	done
	exit
fi
for ((round = 1; round <= rounds; round++)); do
	# the order alternates, in case it matters
	order=(stock ours)
	((round % 2)) || order=(ours stock)
	for variant in "${order[@]}"; do
		load "$variant"
		set_delay 0
		warm_up
		case $mode in
		data | memory | smp | smp-data | handovers | path | storage)
			[[ $mode != storage ]] || link_pair
			"measure_${mode//-/_}"
			[[ $mode != storage || $variant == stock ]] || with_default large segment large measure_storage
			[[ $mode != smp-data || $variant == stock ]] || with_default large segment large measure_smp_data
			if [[ $mode == path && $variant == ours ]]; then
				with_default large segment large measure_path
				with_default crc crc required measure_path_with_crc
				with_default large-crc crc 'required segment large' measure_path_with_crc
			fi
			;;
		*)
			measure_setup
			measure_half_open
			[[ $variant == stock ]] || with_default client-server model client-server measure_client_server
			;;
		esac
		printf '# %s, round %d of %d, %s: %d s\n' "$mode" "$round" "$rounds" "$variant" $((($(now_us) - start) / 1000000))
	done
	case $mode in
	data | memory | handovers) ;;
	path) measure_tcp_path ;;
	storage) variant=tcp && measure_storage tcp ;;
	smp) variant=tcp && measure_smp_patterns --transport tcp ;;
	smp-data) variant=tcp && measure_smp_data ;;
	*) measure_floor ;;
	esac
done
# scripts/vm unloads our modules at the end
load ours
