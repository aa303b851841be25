#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --kernel debug -- tests/kunit.sh
#
# Loads the KUnit suites as modules, which runs them, prints what they say and
# unloads them.
set -euo pipefail

modprobe kunit
for module in "$VM_MODDIR"/*_test.ko; do
	# the kernel's log does not hold all of them
	dmesg -C
	insmod "$module"
	dmesg -t
	rmmod "$(basename "$module" .ko)"
done
