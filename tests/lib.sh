# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions for the suites of this directory; sourced, never run. The suites run inside the machines
# of scripts/vm. A suite is
#
#	source "${0%/*}/lib.sh"
#	check CLAIM FUNCTION [ARG…]		# as often as needed
#	finish
#
# A suite prints one line for each case, `ok CLAIM` or `not ok CLAIM: why`, and lines `# …` between
# them. The last line is `done N`, the number of cases.
#
# With --stock (of both machines) no case fails. The line is then `ok recorded: CLAIM: does not hold: why`.
#
# A case runs in its own shell with errexit: a command that fails makes the case fail, `fail WHY…`
# gives the reason. The case's processes are stopped at its end; a process that cannot be stopped
# fails the case. Every wait has a deadline in seconds, for slow emulation; a good run ends sooner.
#
# scripts/vm has made this before the suite begins; over SCTP the links are of type siw_sctp:
#
#	one machine: network namespaces a and b           --pair: machines a and b, without namespaces
#
#	 namespace a                 namespace b           machine a                     machine b
#	 10.77.0.1   veth    veth    10.77.0.2             10.77.0.1   virtio   virtio   10.77.0.2
#	 fd77::1     eth0 ── eth0    fd77::2               fd77::1     eth0 ──── eth0    fd77::2
#	 siw0 ────────┘        └──── siw1                  siw0 ────────┘          └──── siw1
set -euo pipefail

case ${1:-} in
-h | --help) sed -n '/^# Usage:/,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0" && exit 0 ;;
esac

TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
BUILD=${TESTS%/*}/build/tools
# shellcheck disable=SC2034 # for suites that source this
RDMAFIRST=$BUILD/rdmafirst/rdmafirst
MPAPEER=$BUILD/mpapeer/mpapeer

# The lower layer protocol of the links
readonly LLP=${VM_LLP:-tcp}
readonly TRACING=/sys/kernel/tracing

# seconds that a process may take to die
PATIENCE=25
# tests/run --waits: waits and limits of processes are so many times as long
readonly SLOW_HOST=${SLOW_HOST:-1}
# Streams that peers offer over SCTP: as many as we do (tests/run --default)
STREAMS=1
# shellcheck disable=SC2034 # for suites that source this
[[ ! " ${MPA_DEFAULT:-}" =~ ' streams '([0-9]+) ]] || STREAMS=${BASH_REMATCH[1]}
# The suite's argument, a regular expression: it picks cases by their claims
only=${1:-}
WORK=$(mktemp -d)
cases=0 failed=0
declare -A pid_of=()

# The peers' scenarios; on a slow host with longer limits, too
SCENARIOS=$TESTS/scenarios
if ((SLOW_HOST > 1)); then
	SCENARIOS=$WORK/scenarios
	mkdir "$SCENARIOS"
	for scenario in "$TESTS"/scenarios/*.txt; do
		# shellcheck disable=SC2016 # of awk
		awk -v times="$SLOW_HOST" '($1 == "within" || $1 == "wait") && $2 ~ /^[0-9]+s$/ { $2 = $2 * times "s" } { print }' \
			"$scenario" >"$SCENARIOS/${scenario##*/}"
	done
fi
readonly SCENARIOS

# The settings of `tests/run --default`
# shellcheck disable=SC2086 # words
set_default() {
	[[ -z ${MPA_DEFAULT:-} ]] || "${TESTS%/*}/build/rdma" mpa set default $MPA_DEFAULT
}

reset_default() {
	"${TESTS%/*}/build/rdma" mpa reset default
	set_default
}

set_default

note() {
	printf '# %s\n' "$*"
}

# Ends the case. Works only in the case's own shell, not in $( ).
fail() {
	[[ -s $WORK/why ]] || printf '%s\n' "$*" >"$WORK/why"
	exit 1
}

is() { # WHAT FOUND WANTED
	[[ $2 == "$3" ]] || fail "$1 is $2, not $3"
}

# ---- addresses

# address NETNS [6]: prints the address of the namespace or machine a or b
address() {
	case $1${2:-} in
	a) echo 10.77.0.1 ;;
	b) echo 10.77.0.2 ;;
	a6) echo fd77::1 ;;
	b6) echo fd77::2 ;;
	esac
}

other() {
	case $1 in a) echo b ;; b) echo a ;; esac
}

# within NETNS [exec] COMMAND…: runs in the namespace; with --pair, on this machine
within() {
	local netns=$1 exec=''
	shift
	[[ $1 != exec ]] || { exec='exec' && shift; }
	if [[ -n ${ROLE:-} ]]; then
		$exec "$@"
	else
		$exec ip netns exec "$netns" "$@"
	fi
}

sysctl_of() { # NETNS NAME VALUE
	within "$1" tee "/proc/sys/net/ipv4/$2" <<<"$3" >/dev/null
}

# traces_only 'EVENT…' COMMAND…: of the suite's REASONS, which are events of rpcrdma, the command raises these alone
traces_only() {
	local event
	local -a switches=("${REASONS[@]/#/$TRACING/events/rpcrdma/}")
	echo 1 | tee "${switches[@]/%//enable}" >/dev/null
	echo >"$TRACING/trace"
	"${@:2}"
	for event in "${REASONS[@]}"; do
		if [[ " $1 " == *" $event "* ]]; then
			grep -q " $event:" "$TRACING/trace" || fail "no $event after ${*:2}"
		else
			! grep -q " $event:" "$TRACING/trace" || fail "$event after ${*:2}"
		fi
	done
	echo 0 | tee "${switches[@]/%//enable}" >/dev/null
}

link_type() {
	if [[ $LLP == tcp ]]; then echo siw; else echo siw_sctp; fi
}

add_device() { # NETNS DEVICE [NETDEV]
	within "$1" rdma link add "$2" type "$(link_type)" netdev "${3:-eth0}"
}

# ---- waiting; by bash alone where possible, because a process costs much under emulation

exec {never}<> <(:)

pause() { # SECONDS
	read -rt "$1" -u "$never" || true
}

now_ms() {
	local t=$EPOCHREALTIME
	echo $((${t%.*} * 1000 + 10#${t#*.} / 1000))
}

# wait_for SECONDS WHAT COMMAND…: waits until COMMAND succeeds; WHAT is for the message
wait_for() {
	local end=$(($(now_ms) + $1 * 1000 * SLOW_HOST)) what=$2
	shift 2
	until "$@"; do
		(($(now_ms) < end)) || fail "timed out waiting for $what"
		pause 0.1
	done
}

has_line() { # NAME REGEX
	local line
	local -a lines
	mapfile -t lines <"$WORK/$1.log"
	for line in "${lines[@]}"; do
		if [[ $line =~ $2 ]]; then
			return 0
		fi
	done
	return 1
}

# wait_line NAME REGEX SECONDS: waits for such a line in the output of the process. Fails if the process
# ends before.
wait_line() {
	local end=$(($(now_ms) + $3 * 1000 * SLOW_HOST))
	until has_line "$1" "$2"; do
		if ! kill -0 "${pid_of[$1]}" 2>/dev/null && ! has_line "$1" "$2"; then
			fail "$1 ended without printing '$2'"
		fi
		(($(now_ms) < end)) || fail "timed out after $(($3 * SLOW_HOST)) s waiting for $1 to print '$2'"
		pause 0.1
	done
}

# wait_ready NAME REGEX: waits until a program says that it is ready. No case is about this time, and a host that does
# other work needs long to start a program.
wait_ready() {
	wait_line "$1" "$2" 150
}

has_listener() { # ADDRESS PORT
	rdma resource show cm_id | grep 'state LISTEN' | grep -qE "src-addr (\[?$1\]?|0\.0\.0\.0|\[?::\]?):$2 "
}

# In this namespace or in that of a process. rdma_cm reports LISTEN before the socket listens (the first SCTP listener loads
# modules).
socket_listens() { # PORT [LLP]
	local pid pattern
	local -a tables=()
	for pid in self "${pid_of[@]}"; do
		if [[ ${2:-$LLP} == tcp ]]; then
			printf -v pattern ':%04X 0+:0000 0A ' "$1"
			tables+=("/proc/$pid/net/tcp" "/proc/$pid/net/tcp6")
		else
			pattern=" 10 +[0-9]+ +$1 "
			tables+=("/proc/$pid/net/sctp/eps")
		fi
	done
	grep -qsE "$pattern" "${tables[@]}"
}

hears_port() { # ADDRESS PORT
	has_listener "$1" "$2" && socket_listens "$2"
}

wait_listener() { # ADDRESS PORT
	wait_for 30 "a listener on $1 port $2" hears_port "$1" "$2"
}

# ---- processes; NAME is a process of the case, its output is in $WORK/NAME.log

# start NAME NETNS SECONDS COMMAND…: runs in the background, for at most SECONDS
start() {
	local name=$1 netns=$2 seconds=$3
	shift 3
	: >"$WORK/$name.log"
	# exec: $! must name the process that a signal is for
	(within "$netns" exec timeout -k 20 $((seconds * SLOW_HOST)) "$@") >"$WORK/$name.log" 2>&1 </dev/null &
	pid_of[$name]=$!
}

is_gone() {
	! kill -0 "${pid_of[$1]}" 2>/dev/null
}

# Waits for the end of a process. Sets STATUS. Fails if the process does not end by itself.
ended() { # NAME SECONDS
	wait_for "$2" "the end of $1" is_gone "$1"
	STATUS=0
	wait "${pid_of[$1]}" || STATUS=$?
	unset "pid_of[$1]"
}

ended_well() { # NAME SECONDS
	ended "$1" "$2"
	[[ $STATUS -eq 0 ]] || fail "$1 ended with status $STATUS"
}

# run NAME NETNS SECONDS COMMAND…: runs in the foreground. Sets STATUS.
run() {
	start "$@"
	ended "$1" $(($3 + 10))
}

run_well() {
	run "$@"
	[[ $STATUS -eq 0 ]] || fail "$1 ended with status $STATUS"
}

# stop NAME [SIGNAL]: sends a signal; fails if the process is not gone soon
stop() {
	local pid=${pid_of[$1]:-} signal=${2:-TERM}
	[[ -n $pid ]] || return 0
	# timeout forwards signals that it can catch, and ends with its child
	if [[ $signal == KILL ]]; then
		pkill -KILL -P "$pid" || true
	else
		kill "-$signal" "$pid" 2>/dev/null || true
	fi
	wait_for "$PATIENCE" "$1 to die of SIG$signal" is_gone "$1"
	wait "$pid" 2>/dev/null || true
	unset "pid_of[$1]"
}

stop_all() {
	local name
	for name in "${!pid_of[@]}"; do
		stop "$name" || true
	done
}

# ---- captures

# capture NAME NETNS: starts to record packets on the namespace's network interface
capture() {
	start "tcpdump-$1" "$2" 300 tcpdump -Z root -U --immediate-mode -s 65535 -B 32768 -i eth0 -w "$WORK/$1.pcap" "$LLP"
	wait_ready "tcpdump-$1" 'listening on'
}

is_settled() { # NAME
	local size
	size=$(stat -c %s "$WORK/$1.pcap")
	sleep 0.3
	[[ $size -gt 24 && $size == "$(stat -c %s "$WORK/$1.pcap")" ]]
}

capture_end() { # NAME
	wait_for 20 'the end of the traffic' is_settled "$1"
	stop "tcpdump-$1" INT
}

# How many QPs are established between a and b
established() {
	# unmodified siw does not report the state
	local state=' state RTS'
	[[ $VM_STOCK == 0 ]] || state=''
	rdma resource show qp | grep -cE "^link siw[01]/1 .* type RC$state" || true
}

has_qps() { # NUMBER
	[[ $(established) -ge $1 ]]
}

has_no_qps() {
	! grep -q ' type RC ' <(rdma resource show qp)
}

# Prints the connections to PORT in a capture as JSON
decode_json() { # FILE PORT
	if [[ $LLP == tcp ]]; then
		"$MPAPEER" decode --json --port "$2" "$1"
	else
		"$TESTS/sctpwire.py" --port "$2" "$1"
	fi
}

# on_the_wire NAME PORT CLAIM [COUNT [JQ-OPTION…]]: CLAIM of wire.jq, over SCTP of wire_sctp.jq, holds for
# all the connections
on_the_wire() {
	local wrong claims=wire
	[[ $LLP == tcp ]] || claims=wire_sctp
	[[ -s $WORK/$1.$2.json ]] || decode_json "$WORK/$1.pcap" "$2" >"$WORK/$1.$2.json"
	wrong=$(jq -r -L "$TESTS" --argjson count "${4:-1}" "${@:5}" \
		"include \"$claims\"; judge($3; \$count)" "$WORK/$1.$2.json" | head -n 5 | paste -sd'|')
	[[ -z $wrong ]] || fail "on the wire: $wrong"
}

# ---- for two machines, which do not wait for each other

# Restarts a server until the machine ends, so that the peer finds one, however late it comes
serve_forever() {
	while :; do
		"$@" || sleep 0.5
	done </dev/null >/dev/null 2>&1 &
}

# Prints the current number of connections of rdmafirst's server, from its log
in_program() {
	awk '/^conn [0-9]+ accepted/ { has[$2] } /^conn [0-9]+ over/ { delete has[$2] } END { print length(has) }' \
		"$WORK/server.log"
}

# perftest_well PROGRAM PORT OPTION…: from a to b. The client of perftest connects twice. If the server does not listen yet
# when the client comes again, both begin anew.
perftest_well() {
	local program=$1 port=$2 try
	shift 2
	for try in 1 2 3; do
		start server b 150 "$program" -d siw1 -R -F -p "$port" "$@"
		wait_listener "$(address b)" "$port"
		run client a 150 "$program" -d siw0 -R -F -p "$port" "$@" "$(address b)"
		[[ $STATUS -ne 0 ]] || break
		has_line client 'REJECTED; error: -111' && ((try < 3)) || fail "client ended with status $STATUS"
		note 'the client came again before the server listened'
		stop server
	done
	ended_well server 60
}

# until_served SECONDS EACH COMMAND…: repeats COMMAND, for EACH seconds at most, until the peer's server answers
# and COMMAND succeeds
until_served() {
	local end=$(($(now_ms) + $1 * 1000)) each=$2
	shift 2
	local said='' says
	until run client "$ROLE" "$each" "$@" && [[ $STATUS -eq 0 ]]; do
		(($(now_ms) < end)) || fail "the client's last status was $STATUS"
		says="not yet (status $STATUS): $(tail -n 4 "$WORK/client.log" | cut -c1-100 | paste -sd' ')"
		[[ $says == "$said" ]] || note "$says"
		said=$says
		sleep 0.3
	done
}

# Waits for the listeners of both machines, here on PORT
both_listen() {
	wait_listener "$(address "$ROLE")" "$1"
	: >"/run/vm/ctl/$ROLE.serves"
	wait_for 90 'the other machine' test -e "/run/vm/ctl/$(other "$ROLE").serves"
}

# Starts the capture "wire" for all cases
keep_capture() {
	tcpdump -Z root -U --immediate-mode -s 65535 -B 32768 -i eth0 -w "$WORK/wire.keep" "$LLP" >"$WORK/tcpdump.keep" 2>&1 &
	wait_for 30 'tcpdump' grep -q 'listening on' "$WORK/tcpdump.keep"
}

# is_seen PORT COUNT: the kept capture has COUNT connections to the port, with their ends
is_seen() {
	cp "$WORK/wire.keep" "$WORK/wire.pcap"
	local seen
	seen=$(decode_json "$WORK/wire.pcap" "$1" |
		jq '[.[] | select(any(.events[]; .type | IN("fin", "rst", "shutdown", "abort")))] | length') || return 1
	[[ $seen -ge $2 ]]
}

# Prints the captured connections in readable form
decode() { # FILE [PORT]
	if [[ $LLP == tcp ]]; then
		"$MPAPEER" decode ${2:+--port "$2"} "$1"
	else
		"$TESTS/sctpwire.py" ${2:+--port "$2"} "$1" | jq -c '.[] | (del(.events)), (.events[])'
	fi
}

describe() { # NAME PORT
	decode "$WORK/$1.pcap" "$2"
}

# ---- cases

show_logs() {
	local file
	for file in "$WORK"/*.log; do
		[[ -s $file ]] || continue
		note "${file##*/}:"
		# a message at the head may explain the many at the end
		awk -v count="$(wc -l <"$file")" 'NR <= 4 || NR > count - 12' "$file" | cut -c1-300 | sed 's/^/#     /'
	done
}

show_captures() {
	local file
	for file in "$WORK"/*.pcap; do
		[[ -s $file ]] || continue
		note "${file##*/}:"
		{ decode "$file" 2>&1 || true; } | head -n 30 | cut -c1-300 | sed 's/^/#     /'
	done
}

# The kernel keeps free objects in caches, later kernels more than earlier ones
drop_slabs() {
	local cache
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >"$cache"
	done
}

# slow_down FUNCTION COUNT: on a kernel with kprobes, makes each call longer by COUNT stack traces,
# some milliseconds, so that races with other events become likely
slow_down() {
	local i
	[[ -e $TRACING/kprobe_events ]] || { note 'this kernel has no kprobes' && return; }
	speed_up # an earlier case may have failed before its own speed_up
	for ((i = 0; i < $2; i++)); do
		echo "p:slow$i $1" >>"$TRACING/kprobe_events"
		echo stacktrace >"$TRACING/events/kprobes/slow$i/trigger"
		echo 1 >"$TRACING/events/kprobes/slow$i/enable"
	done
}

speed_up() {
	local event
	[[ -e $TRACING/kprobe_events ]] || return 0
	for event in "$TRACING"/events/kprobes/slow*; do
		[[ -e $event ]] || continue
		echo 0 >"$event/enable"
		echo '!stacktrace' >"$event/trigger"
	done
	echo >"$TRACING/kprobe_events"
}

remove_if_there() { # FILE…
	local file
	local -a there=()
	for file in "$@"; do
		[[ ! -e $file ]] || there+=("$file")
	done
	[[ ${#there[@]} -eq 0 ]] || rm "${there[@]}"
}

# Suites that change what later cases use define it: called at the end of each case, also of one that fails
end_case() { :; }

check() {
	local claim=$1 status start why code=0
	shift
	[[ $claim =~ $only ]] || return 0
	start=$(now_ms)
	remove_if_there "$WORK"/*.log "$WORK"/*.pcap "$WORK"/*.json "$WORK/why"
	cases=$((cases + 1))
	set +e
	(
		set -eE
		trap 'status=$?; set +eE; trap - ERR; end_case; (stop_all) || exit 1; exit $status' EXIT
		trap 'code=$?; [[ -s $WORK/why ]] || echo "line $LINENO: $BASH_COMMAND: status $code" >"$WORK/why"' ERR
		"$@"
	)
	status=$?
	set -e
	start=$(($(now_ms) - start))
	if [[ $status -eq 0 ]]; then
		printf 'ok %s (%d.%d s)\n' "$claim" $((start / 1000)) $((start % 1000 / 100))
		return
	fi
	why=$(cat "$WORK/why" 2>/dev/null || echo "status $status")
	if [[ $VM_STOCK == 1 && -z ${ROLE:-} ]]; then
		printf 'ok recorded: %s: does not hold: %s\n' "$claim" "$why"
		return
	fi
	failed=$((failed + 1))
	printf 'not ok %s: %s\n' "$claim" "$why"
	show_logs
	show_captures
}

# check_tcp CLAIM FUNCTION [ARG…]: like check, for a claim that means TCP alone
check_tcp() {
	if [[ $LLP == tcp ]]; then
		check "$@"
	elif [[ $1 =~ $only ]]; then
		note "left out over $LLP: $1"
	fi
}

# Whether iw_mpa sets up the connections: not with unmodified modules, and not with those of some topics
has_negotiator() {
	modinfo iw_mpa >/dev/null 2>&1
}

# check_beside CLAIM FUNCTION [ARG…]: like check, but returns at once; at most 4 run at a time. The
# case cannot change variables of the suite.
beside=0
check_beside() {
	[[ $1 =~ $only ]] || return 0
	beside=$((beside + 1))
	if ((beside > 4)); then
		wait -n || true
	fi
	mkdir "$WORK/beside.$beside"
	(
		WORK=$WORK/beside.$beside
		check "$@" >"$WORK.out" 2>&1
		printf '%s\n' "$(<"$WORK.out")"
	) &
}

# Waits for the cases that check_beside started
together() {
	((beside > 0)) || return 0
	wait
	cases=$((cases + $(cat "$WORK"/beside.*.out | grep -cE '^(not )?ok ' || true)))
	failed=$((failed + $(cat "$WORK"/beside.*.out | grep -c '^not ok ' || true)))
	rm -rf "$WORK"/beside.*
	beside=0
}

finish() {
	rm -rf "$WORK"
	if [[ $VM_STOCK == 1 && -z ${ROLE:-} ]]; then
		{ dmesg | grep -E 'BUG|Oops:|RIP: 0010|INFO: task' || echo 'nothing of note'; } |
			head -n 6 | sed 's/^/# kernel log: /'
	fi
	printf 'done %d\n' "$cases"
	[[ $failed -eq 0 ]]
}

# The first packets between two namespaces cause an ARP exchange. If it is quick, ib_core fails (see
# tools/rdmafirst/client.cpp), so this makes the exchange in advance.
warm_up() {
	local netns
	for netns in a b; do
		[[ ${ROLE:-$netns} == "$netns" ]] || continue
		within "$netns" ping -q -c 1 -W 5 "$(address "$(other "$netns")")" >/dev/null || true
		within "$netns" ping -q -c 1 -W 5 "$(address "$(other "$netns")" 6)" >/dev/null || true
	done
}

# libibverbs would load every provider in every program, which takes longer than the program itself
[[ -z ${VM_MODDIR:-} ]] || find /etc/libibverbs.d -name '*.driver' ! -name siw.driver -delete

warm_up
