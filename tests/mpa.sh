# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Settings and counters, for suites that source this file after lib.sh. `rdma mpa` of patches/iproute2
# makes settings or, in a suite that begins with ynl_start, the kernel's YNL client.

RDMA=${TESTS%/*}/build/rdma
YNL=$TESTS/ynl.py

# mpa ARG…: runs `rdma mpa`
mpa() {
	"$RDMA" mpa "$@"
}

# Resets all settings of both devices to their built-in values
nothing_set() {
	"$RDMA" -b - <<-END
		mpa reset default
		mpa reset dev siw0
		mpa reset link siw0/1
		mpa reset dev siw1
		mpa reset link siw1/1
	END
}

# One case at a time can use the session
ynl_start() {
	mkfifo "$WORK/ynl.ask" "$WORK/ynl.answer"
	"$YNL" <"$WORK/ynl.ask" >"$WORK/ynl.answer" &
	exec {ynl_ask}>"$WORK/ynl.ask" {ynl_answer}<"$WORK/ynl.answer"
}

# ynl REQUEST…: sends a request of tests/ynl.py through the session; fails if the request is refused
ynl() {
	local answer
	echo "$*" >&"$ynl_ask"
	read -rt 60 -u "$ynl_answer" answer || { echo 'YNL does not answer' >&2 && return 2; }
	if [[ $answer != 'ok '* ]]; then
		echo "$answer" >&2
		return 1
	fi
	answer=${answer#ok }
	[[ $answer == null ]] || echo "$answer"
}

# Prints the counters of a port, which anyone can read, as a JSON object
counters() { # LINK
	rdma statistic show link "$1" -j | jq -c '.[0]'
}

counter() { # LINK NAME, with or without mpa_
	counters "$1" | jq ".mpa_${2#mpa_}"
}

# Prints the number of connections of a port that are being set up
half_open() { # LINK
	counters "$1" | jq '.mpa_started_initiator + .mpa_started_responder - .mpa_established_initiator
		- .mpa_established_responder - .mpa_failed_initiator - .mpa_failed_responder'
}

nothing_half_open() {
	[[ $(half_open siw0/1) == 0 && $(half_open siw1/1) == 0 ]]
}
