#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--stock --allow-splat] -- tests/conform.sh
#
# `mpapeer conformance` in a, against the target program in b, as against an adapter of which nothing is
# known. With --stock it records how far unmodified modules get.
#
# Runs as conform: 500 s
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly TARGET=${TESTS%/*}/tools/rdmafirst/conformance-target PORT=21000

start_target() {
	start target b 400 env RDMAFIRST="$RDMAFIRST" PROGRAMS="$TESTS/wire/programs" "$TARGET" "$(address b)" $PORT
	wait_listener "$(address b)" $((PORT + $(grep -cv '^#' "$TESTS/wire/programs") - 1))
}

against() { # OPTION…
	run conformance a 380 "$MPAPEER" conformance --target "$(address b):$PORT" --scenarios "$TESTS/wire" "$@"
}

all_pass() {
	local cases
	start_target
	against --keep-going --ktap --junit "$WORK/junit.xml"
	note "$(tail -n 1 "$WORK/conformance.log")"
	if [[ $STATUS -ne 0 ]]; then
		grep -B4 '^not ok' "$WORK/conformance.log" | cut -c1-200 | head -n 60 | sed 's/^/#   /'
		fail "status $STATUS: $(grep -m 1 '^not ok' "$WORK/conformance.log")"
	fi
	# most can be played, the others say why not
	cases=$(grep -cE '^ok [0-9]+ ' "$WORK/conformance.log")
	[[ $(sed -n 2p "$WORK/conformance.log") == "1..$cases" ]] || fail 'the plan is another number'
	(($(grep -c ' # SKIP needs ' "$WORK/conformance.log") < cases / 2)) || fail 'too many are skipped'
	[[ $(grep -c '<testcase ' "$WORK/junit.xml") == "$cases" ]] || fail 'the report has another number'
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$WORK/junit.xml"
}

# A target whose program is wrong: the first failure ends the run, with --keep-going it does not
failures_count() {
	start target b 200 "$RDMAFIRST" server "$(address b)" $PORT --count 0 --timeout 180 --reject no
	wait_listener "$(address b)" $PORT
	against v07-send-bytewise v07-null
	[[ $STATUS -eq 1 ]] || fail "status $STATUS"
	has_line conformance '^FAIL v07-send-bytewise' || fail 'no failure'
	has_line conformance '^0 passed, 1 failed, 0 skipped, 1 not played$' || fail 'the run continues after the failure'
	against --keep-going v07-send-bytewise v07-null
	has_line conformance '^0 passed, 2 failed, 0 skipped, 0 not played$' || fail 'the run ends at the failure despite --keep-going'
}

check 'mpapeer conformance passes every scenario that runs without changing settings on the target host' all_pass
[[ $VM_STOCK == 1 ]] || check 'mpapeer conformance reports a failed scenario, stops there or continues (--keep-going), and counts failures' failures_count
finish
