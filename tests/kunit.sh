#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --kernel debug -- tests/kunit.sh
#
# Loads the KUnit suites as modules, which runs them, and unloads them. One line a test case, as the
# suites of lib.sh print them.
#
# Runs as kunit: 150 s
set -euo pipefail

log=$(mktemp)
cases=0 failed=0

# TAP of a kernel log -> our lines. A case is indented once, a parameter twice.
tap_lines() {
	sed -nE 's/^    (not ok|ok) [0-9]+ -? ?([a-z0-9_]+).*$/\1 \2/p' "$log"
}

# judge MODULE: prints what became of its cases
judge() {
	local lines planned
	lines=$(tap_lines)
	printf '%s\n' "$lines"
	planned=$(sed -nE 's/^    1\.\.([0-9]+)$/\1/p' "$log" | paste -sd+ | bc)
	cases=$((cases + ${planned:-0}))
	if [[ $lines == *'not ok '* || -z $planned || $planned != "$(wc -l <<<"$lines")" ]]; then
		failed=$((failed + 1))
		echo "not ok $1: all of its ${planned:-} cases pass"
		sed 's/^/#     /' "$log"
	fi
}

modprobe -a kunit rpcrdma
for module in "$VM_MODDIR"/*_test.ko; do
	# the kernel's log does not hold all of them
	dmesg -C
	insmod "$module"
	dmesg -t >"$log"
	rmmod "$(basename "$module" .ko)"
	judge "$(basename "$module" .ko)"
done
rm "$log"
echo "done $cases"
[[ $failed -eq 0 ]]
