#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run -- tests/several.sh SUITE[:REGEX]…
#
# Several suites in one machine, one after the other.
status=0
for suite; do
	echo "## ${suite%%:*}"
	cases=''
	[[ $suite != *:* ]] || cases=${suite#*:}
	suite=${suite%%:*}
	"${0%/*}/${suite%%-*}.sh" "$cases" || status=1
done
exit $status
