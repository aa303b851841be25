#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run --kernel debug -- tests/kunit.sh
#
# Loads the KUnit suites as modules, which runs them, prints what they say and
# unloads them.
set -euo pipefail

dmesg -C
modprobe kunit
for module in "$VM_MODDIR"/*_test.ko; do
	insmod "$module"
	rmmod "$(basename "$module" .ko)"
done
dmesg -t
