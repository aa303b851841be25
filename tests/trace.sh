#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/trace.sh [REGEX]
#
# The tracepoints show every event of connection setup, and the command lines in the documentation that
# use them work.
#
# Runs as trace: 300 s
# shellcheck disable=SC2031 # lib.sh's WORK
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"
# shellcheck source=tests/mpa.sh
source "${0%/*}/mpa.sh"

EVENTS=$TRACING/events/iw_mpa
DOCUMENT=${TESTS%/*}/Documentation/infiniband/iw_mpa.rst

# run_documented NAME PROGRAM SECONDS: runs the one command line of the document that begins with PROGRAM,
# in the first namespace, which has tracefs
run_documented() {
	local line
	line=$(sed -n "s/^   # \($2 .*\)/\1/p" "$DOCUMENT")
	[[ -n $line && $line != *$'\n'* ]] || fail "the document has not one line of $2: '$line'"
	note "$line"
	timeout -k 5 "$3" bash -c "exec $line" >"$WORK/$1.log" 2>&1 </dev/null &
	pid_of[$1]=$!
}

has_tracepoints() {
	[[ -d $EVENTS ]] || ! note 'this kernel has no tracepoints'
}

serve() { # PORT [OPTION…]
	start server b 90 "$RDMAFIRST" server "$(address b)" "$1" --count 0 --timeout 80 "${@:2}"
	wait_ready server '^listening'
}

client() { # PORT [OPTION…]
	run client a 40 "$RDMAFIRST" client "$(address b)" "$@"
}

# One connection that is established and one without a listener
two_connections() { # PORT
	serve "$1"
	client "$1" --expect first
	[[ $STATUS -eq 0 ]] || fail "the client ended with status $STATUS"
	stop server
	client "$1" --timeout 30
}

# An old responder: the initiator falls back to Rev 1
fallback() { # PORT
	mpa set dev siw1 revision 1
	mpa set dev siw0 revision fallback
	serve "$1" --silent
	client "$1" --send hello --no-receive
	[[ $STATUS -eq 0 ]] || fail "no fallback: status $STATUS"
	stop server
	mpa reset dev siw1
	mpa reset dev siw0
}

# A responder with an unacceptable Reply: the initiator sends a TERM
term_sent() { # PORT
	start peer b 60 "$MPAPEER" run "$TESTS/wire/initiator/v47-model.txt" --listen "$(address b):$1" --accept-within 40s
	wait_ready peer '^listening on'
	client "$1" --timeout 30
	ended_well peer 30
}

# Three initiators: a TERM instead of the RTR, no Request, bytes that are no Request
bad_initiators() { # PORT
	mpa set link siw1/1 request-timeout 500
	serve "$1"
	run peer a 40 "$MPAPEER" run "$TESTS/wire/responder/term-first.txt" --connect "$(address b):$1"
	# shellcheck disable=SC2016 # for the other shell
	run silent a 20 bash -c 'exec 3<>"/dev/tcp/$0/'"$1"'" && cat <&3' "$(address b)"
	# shellcheck disable=SC2016
	run noise a 20 bash -c 'exec 3<>"/dev/tcp/$0/'"$1"'"; printf "MPA ID Rex" >&3; cat <&3' "$(address b)"
	stop server
	mpa reset link siw1/1
}

# said EVENT REGEX: the report has a line of EVENT that matches
said() {
	has_line report " $1: +$2" ||
		fail "not traced: $1: $2 ($(grep -c " $1:" "$WORK/report.log") of $(wc -l <"$WORK/report.log") lines are of it; $(paste -sd' ' "$WORK/report-errors.log" | cut -c1-300))"
}

# The program's message is buffered, so it cannot show that recording has begun
is_recording() {
	[[ -e trace.dat.cpu0 && $(<$EVENTS/enable) == 1 && $(<$TRACING/tracing_on) == 1 ]]
}

with_trace_cmd() {
	has_tracepoints || return 0
	cd "$WORK"
	run_documented record trace-cmd 300
	wait_for 60 'trace-cmd to record' is_recording
	two_connections 7700
	fallback 7701
	term_sent 7702
	bad_initiators 7703
	stop record INT
	trace-cmd report trace.dat >"$WORK/report.log" 2>"$WORK/report-errors.log"
	local a b
	a='dev=siw0 llp=tcp role=initiator qpn=[0-9]+ local=10.77.0.1:[0-9]+ remote=10.77.0.2'
	b='dev=siw1 llp=tcp role=responder qpn=[0-9]+ local=10.77.0.2'
	said mpa_frame_sent "$a:7700 kind=request rev=2 m=0 c=0 r=0 s=1 p2p=1 rtr=write.read ird=4 ord=4 pdata_len=0"
	said mpa_frame_received "$b:7700 .* kind=request rev=2 m=0 c=0 r=0 s=1 p2p=1 rtr=write.read ird=4 ord=4 pdata_len=0"
	said mpa_frame_sent "$b:7700 .* kind=reply rev=2 m=0 c=0 r=0 s=1 p2p=1 rtr=write.read ird=4 ord=4 pdata_len=0"
	said mpa_frame_received "$a:7700 kind=reply rev=2 m=0 c=0 r=0 s=1 p2p=1 rtr=write.read ird=4 ord=4 pdata_len=0"
	said mpa_frame_bad "$b:7703 .* error=bad-key rx_len=[0-9]+"
	said mpa_decision "$b:7700 .* verdict=go status=0 ecode=0 ird=4 ord=4 read_slots=4 rtr=write.read peer_known=1 peer_ird=4 peer_ord=4"
	said mpa_decision "$a:7702 verdict=terminate status=-71 ecode=7 .* rtr= peer_known=1 peer_ird=8 peer_ord=8"
	said mpa_state "$a:7700 from=CONNECTING to=REQ_SENT"
	said mpa_state "$b:7700 .* from=REP_SENT to=RTR_WAIT"
	said mpa_rtr "$a:7700 dir=sent rtr=write"
	said mpa_rtr "$b:7700 .* dir=received rtr=write"
	said mpa_term 'dev=siw0 llp=tcp role=initiator dir=sent term=2/0/7'
	said mpa_term 'dev=siw1 llp=tcp role=responder dir=received term=2/0/7'
	said mpa_timeout "$b:7703 .* state=REQ_WAIT"
	said mpa_fallback "$a:7701 state=REQ_SENT"
	said mpa_end "$a:7700 established in=REP_RCVD status=0 ecode=0"
	said mpa_end "$a:7700 failed in=CONNECTING status=-111 ecode=1"
	said mpa_end "$b:7703 .* failed in=REQ_WAIT status=-110"
}

with_bpftrace() {
	has_tracepoints || return 0
	if [[ $VM_KERNEL != debian && ! -e /sys/kernel/btf/vmlinux ]]; then
		note 'this kernel has no BTF, without which bpftrace does not know the types of a tracepoint'
		return 0
	fi
	run_documented bpf bpftrace 300
	wait_line bpf '^Attaching' 200
	sleep 3
	two_connections 7710
	stop bpf INT
	has_line bpf '^@\[siw0, 0\]: 1$' || fail 'it counts no connection of siw0'
	has_line bpf '^@\[siw1, 0\]: 1$' || fail 'it counts no connection of siw1'
	has_line bpf '^@\[siw0, -111\]: 1$' || fail 'it counts no failure'
}

# In the first namespace's file systems, as run_documented
watch() { # NAME
	timeout -k 5 300 bpftrace "${TESTS%/*}/tools/watch/mpa-$1.bt" >"$WORK/$1.log" 2>&1 </dev/null &
	pid_of[$1]=$!
}

with_scripts() {
	has_tracepoints || return 0
	[[ $VM_KERNEL == debian || -e /sys/kernel/btf/vmlinux ]] || return 0
	watch states
	watch why
	wait_line states '^Watching' 200
	wait_line why '^TIME ' 200
	sleep 3
	two_connections 7720
	bad_initiators 7721
	stop states INT
	stop why INT
	has_line states '^@us\[initiator, REQ_SENT\]:' || fail 'no time of REQ_SENT'
	has_line states '^@us\[responder, RTR_WAIT\]:' || fail 'no time of RTR_WAIT'
	has_line why 'siw0 +initiator +10\.77\.0\.2:7720 CONNECTING status -111 ' || fail 'the refused connection is not reported'
	has_line why 'siw1 +responder +10\.77\.0\.1:[0-9]+ REQ_WAIT status -110 .*a deadline passed' || fail 'the deadline is not reported'
	has_line why 'siw1 +responder .* malformed' || fail 'the malformed frame is not reported'
}

exports() {
	local exporter=${TESTS%/*}/tools/watch/mpa-exporter file=$WORK/iw_mpa.prom
	printf '#!/bin/sh\nexec %s mpa "$@"\n' "$RDMA" >"$WORK/rdma-mpa"
	chmod +x "$WORK/rdma-mpa"
	RDMA_MPA=$WORK/rdma-mpa "$exporter" "$file"
	grep -qx '# TYPE iw_mpa_established_initiator_total counter' "$file" || fail 'no type'
	grep -qE '^iw_mpa_established_initiator_total\{device="siw0",port="1",llp="tcp"\} [0-9]+$' "$file" || fail 'no counter of siw0'
	grep -qE '^iw_mpa_half_open\{device="siw1",port="1",llp="tcp"\} 0$' "$file" || fail 'no gauge'
	# the format of each line, and each type once
	! grep -vE '^(# TYPE [a-z0-9_]+ (counter|gauge)|[a-z0-9_]+\{[a-z0-9_="/,]+\} [0-9]+)$' "$file" || fail 'other lines'
	[[ -z $(grep '^# TYPE' "$file" | sort | uniq -d) ]] || fail 'a type is there twice'
}

check 'the documented trace-cmd command records frames, decisions and states of connection setup' with_trace_cmd
check 'the documented bpftrace command counts the results of connections' with_bpftrace
check 'mpa-states.bt prints durations of connection setup, mpa-why.bt prints reasons of failures' with_scripts
check 'mpa-exporter writes the counters for Prometheus' exports
finish
