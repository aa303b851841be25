# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For deb.sh and libdgm/tests/deb.sh, which run where lib.sh has no modules to load

fail() {
	echo "deb.sh: $*" >&2
	exit 1
}

until_ok() { # SECONDS COMMAND…
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || fail "timed out waiting for: $*"
		sleep 0.2
	done
}
