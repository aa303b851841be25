# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Associations and peers of RFC 5043, for suites that source this file after lib.sh.

# shellcheck disable=SC2034 # for suites that source this
SCTPPEER=$TESTS/sctppeer.py

# Messages: a client-server Enhanced Initiate and Accept with depths of 8 (S1 and S2 with A=0)
# shellcheck disable=SC2034 # for suites that source this
INITIATE=000500080008
# shellcheck disable=SC2034
ACCEPT=000600080008

# assocs NETNS [PORT]: the lines of SCTP's table, of one port if so asked
# shellcheck disable=SC2016 # of awk
assocs() {
	within "$1" awk -v port="${2:-}" 'NR > 1 && (port == "" || $12 == port || $13 == port)' /proc/net/sctp/assocs
}

no_assocs() { # [PORT]
	[[ -z $(assocs a "${1:-}")$(assocs b "${1:-}") ]]
}

has_assoc() { # [PORT]
	[[ -n $(assocs a "${1:-}") ]]
}

# The peer's association has been made
has_assocs() { # PORT COUNT
	[[ $(assocs a "$1" | wc -l) -ge $2 ]]
}
