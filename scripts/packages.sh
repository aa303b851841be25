# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0

# missing_packages PACKAGE…: prints the packages that are not installed
missing_packages() {
	comm -23 <(printf '%s\n' "$@" | sort -u) \
		<(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
			sed -n 's/^installed //p' | sort -u)
}

# install_packages PACKAGE…: updates apt's lists if they are missing or too old
install_packages() {
	local -a install=(apt-get -qq -y -o DPkg::Lock::Timeout=300 --no-install-recommends install "$@")
	export DEBIAN_FRONTEND=noninteractive
	# the first failure says no more than that
	"${install[@]}" >/dev/null 2>&1 || { apt-get update -qq >&2 && "${install[@]}" >&2; }
}

# require_packages PACKAGE…: installs the missing packages if we are root, else
# prints them in one line.
require_packages() {
	local -a missing
	mapfile -t missing < <(missing_packages "$@")
	[[ ${#missing[@]} -gt 0 ]] || return 0
	if [[ $(id -u) -ne 0 ]]; then
		echo "install these packages first: ${missing[*]}" >&2
		return 1
	fi
	install_packages "${missing[@]}"
}

# use_ccache: lets cmake's compilers use ccache, which takes the objects of any checkout
use_ccache() {
	export CCACHE_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/iw_mpa/ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
	export CCACHE_MAXSIZE=2G CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
}
