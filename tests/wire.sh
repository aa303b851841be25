#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--stock --allow-splat] -- tests/wire.sh [REGEX [ROLE/NAME…]]
#
# What a peer sees on the wire, and what the program is told meanwhile: mpapeer plays each scenario
# of tests/wire against our responder or our initiator, a program of its own (rdmafirst) for each.
# tests/wire/README.md says what stands in a scenario's first lines. Several run at a time.
#
# With --stock one runs after the other, and the first that the kernel does not survive is the last:
# `crash ROLE/NAME: …` or `hang ROLE/NAME: …` says so. There are neither settings nor options then:
# they are left out.

# shellcheck disable=SC2031 # WORK is that of the case

# The program is in b, and so is everything here but mpapeer. A process costs 50 ms in emulation, so
# there are few of them below.
[[ -n ${IN_B:-} ]] || IN_B=1 exec ip netns exec b "$0" "$@"
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly SCENARIOS=$TESTS/scenarios
readonly RDMA=${TESTS%/*}/build/rdma
readonly FIRST_PORT=20000
WITHIN=15s
# Many scenarios of unmodified modules wait in vain
[[ $VM_STOCK != 1 ]] || WITHIN=8s PATIENCE=8
shift || true

# Sets claim, and for each line "#: KEYWORD VALUE" of the scenario VALUE in says[KEYWORD]
read_scenario() { # FILE
	local line keyword
	says=([program]='' [rdma]='' [exit]='' [policy]='' [next]=next)
	[[ $VM_STOCK != 1 ]] || says[next]=next-rev1
	told=()
	unwanted=()
	notified=()
	{
		read -r claim
		while read -r line && [[ $line == '#'* ]]; do
			[[ $line == '#: '* ]] || continue
			read -r _ keyword line <<<"$line"
			case $keyword in
			told) told+=("$line") ;;
			then) told+=("then $line") ;;
			never) unwanted+=("$line") ;;
			notified) notified+=("$line") ;;
			# the first that the program hears of is the honest one
			unheard) told+=('^conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST .* pdata 4 6e657874$') ;;
			next) [[ $VM_STOCK == 1 ]] || says[next]=$line ;;
			*) says[$keyword]=$line ;;
			esac
		done
	} <"$1"
	claim=${claim#\# }
}

# As start of lib.sh, but the process is the program itself, which has deadlines of its own
spawn() { # NAME COMMAND…
	local name=$1
	shift
	: >"$WORK/$name.log"
	"$@" >"$WORK/$name.log" 2>&1 </dev/null &
	pid_of[$name]=$!
}

peer_is_content() {
	ended peer 60
	[[ $STATUS -eq 0 ]] || fail "$(grep -A2 FAIL "$WORK/peer.log" | paste -sd' ' || echo "mpapeer: status $STATUS")"
}

# Sets FOUND to the number of the first line like this behind the first SKIP
tells() { # REGEX SKIP
	local -a lines
	mapfile -t lines <"$WORK/program.log"
	for ((FOUND = $2 + 1; FOUND <= ${#lines[@]}; FOUND++)); do
		if [[ ${lines[FOUND - 1]} =~ $1 ]]; then
			return 0
		fi
	done
	return 1
}

# Each line that is to come comes; "then …": behind the one before
program_is_told() {
	local regex at=0 until=$(($(now_ms) + 10000))
	for regex in "${told[@]}"; do
		[[ $regex == then\ * ]] || at=0
		regex=${regex#then }
		until tells "$regex" "$at"; do
			(($(now_ms) < until)) || fail "the program was not told '$regex'"
			pause 0.05
		done
		at=$FOUND
	done
	for regex in "${unwanted[@]}"; do
		if tells "$regex" 0; then
			fail "the program was told '$regex'"
		fi
	done
}

# Each notification comes that is to come of this scenario's connections
watcher_is_told() { # PORT
	local regex
	[[ $VM_STOCK != 1 ]] || return 0
	for regex in "${notified[@]}"; do
		wait_for 10 "the notification '$regex'" is_notified "$1" "$regex"
	done
}

is_notified() { # PORT REGEX
	local line
	while read -r line; do
		if [[ $line == *:"$1 "* && $line =~ $2 ]]; then
			return 0
		fi
	done <"$MONITOR"
	return 1
}

# Sets OPTIONS to those of the program
program_options() {
	local -a all
	OPTIONS=()
	read -ra all <<<"${says[program]}" || true
	set -- "${all[@]}"
	while [[ $# -gt 0 ]]; do
		if [[ $1 == --mpa* && $VM_STOCK == 1 ]]; then
			shift
		else
			OPTIONS+=("$1")
		fi
		shift
	done
}

# What the rdma tool shows of the program's QP while the scenario waits for LOOKED
look() {
	[[ -n ${says[rdma]} ]] || return 0
	wait_line peer 'waiting for' 40
	wait_for 30 "the rdma tool to show '${says[rdma]}'" shows
	: >"$WORK/looked"
}

shows() {
	local line
	local -a words
	read -ra words <<<"${says[rdma]}"
	rdma resource show qp -dd >"$WORK/rdma.log" 2>&1 || {
		echo "rdma ended with status $?" >>"$WORK/rdma.log"
		return 1
	}
	while read -r line; do
		[[ $line == *" pid ${pid_of[program]} "* ]] && has_attributes "$line " "${words[@]}" && return 0
	done <"$WORK/rdma.log"
	return 1
}

has_attributes() { # LINE NAME VALUE [NAME VALUE]…
	local line=$1
	shift
	while [[ $# -ge 2 ]]; do
		[[ $line == *" drv_$1 $2 "* ]] || return 1
		shift 2
	done
}

# Behind the scenario comes an honest initiator (next.txt), which must be served. It leaves without an
# RTR, which unmodified modules do not survive: they get one of revision 1.
against_responder() { # FILE PORT
	program_options
	spawn program "$RDMAFIRST" server "$(address b)" "$2" --count 0 --timeout 100 "${OPTIONS[@]}"
	spawn peer "$MPAPEER" run "$1" "$SCENARIOS/${says[next]}.txt" --netns a --connect "$(address b):$2" --retry 40s --within "$WITHIN" \
		--set "LOOKED=$WORK/looked"
	look
	peer_is_content
	program_is_told
	watcher_is_told "$2"
	if is_gone program; then
		fail 'the program has ended'
	fi
	stop program
}

against_initiator() { # FILE PORT
	program_options
	spawn peer "$MPAPEER" run "$1" --netns a --listen "$(address a):$2" --within "$WITHIN" --set "LOOKED=$WORK/looked" \
		--set "ENDED=$WORK/ended"
	wait_line peer '^listening on' 40
	spawn program "$RDMAFIRST" client "$(address a)" "$2" --timeout 45 "${OPTIONS[@]}"
	look
	if [[ $(<"$1") == *'{ENDED}'* ]]; then
		wait_for 60 'the end of the program' is_gone program
		: >"$WORK/ended"
	fi
	peer_is_content
	program_is_told
	watcher_is_told "$2"
	ended program 20
	[[ -z ${says[exit]} || $STATUS -eq ${says[exit]} ]] || fail "the program ended with status $STATUS"
}

declare -A says
declare -a told unwanted notified OPTIONS

# ---- unmodified modules

kernel_complains() {
	dmesg | grep -E 'BUG:|Oops|general protection|kernel BUG at|KASAN|WARNING:|blocked for more than'
}

a_connection_works() { # PORT
	spawn program "$RDMAFIRST" server "$(address b)" "$1" --count 0 --timeout 40
	spawn peer "$MPAPEER" run "$SCENARIOS/next-rev1.txt" --netns a --connect "$(address b):$1" --retry 15s
	peer_is_content
}

# One case and what becomes of the kernel; ends the suite, and the machine at once, if it is not well
play_alone() { # ROLE/NAME PORT COMMAND…
	local name=$1 port=$2 why
	echo "# begin $name"
	check "$name: $claim" "${@:3}" >"$WORK/case"
	cat "$WORK/case"
	why=$(kernel_complains) || true
	if [[ -n $why ]]; then
		echo "crash $name: ${why%%$'\n'*}"
	elif grep -q 'to die of SIG' "$WORK/case"; then
		echo "hang $name: a program cannot be killed"
	elif grep -q '^ok recorded' "$WORK/case" && ! (
		trap 'stop_all || true' EXIT
		: >"$WORK/why"
		a_connection_works $((port + 1))
	) >"$WORK/afterwards" 2>&1; then
		echo "hang $name: no connection can be made any more: $(cat "$WORK/why" "$WORK/afterwards" | paste -sd' ' | cut -c1-200)"
	else
		return 0
	fi
	pause 2
	echo b >/proc/sysrq-trigger
	exit 3
}

# ---- all of them

# Those that wait for a deadline of ours first: the others run meanwhile
scenarios() {
	(
		cd "$TESTS/wire"
		grep -l 'within [12][0-9]s' ./*/*.txt
		grep -L 'within [12][0-9]s' ./*/*.txt | sort -r
	) | sed 's|^\./||; s|\.txt$||'
}

play() { # NAME…
	local name file
	for name in "$@"; do
		port=$((port + 2))
		file=$TESTS/wire/$name.txt
		read_scenario "$file"
		if [[ $VM_STOCK == 1 ]]; then
			play_alone "$name" $port "against_${name%%/*}" "$file" $port
		else
			check_beside "$name: $claim" "against_${name%%/*}" "$file" $port
		fi
	done
}

# Settings are those of b's port, and hold for those that play meanwhile
play_with() { # POLICY NAME…
	local policy=$1
	shift
	# shellcheck disable=SC2086 # words
	[[ -z $policy || $VM_STOCK == 1 ]] || "$RDMA" mpa set link siw1/1 $policy
	play "$@"
	together
	[[ -z $policy || $VM_STOCK == 1 ]] || "$RDMA" mpa reset link siw1/1
}

# The kernel notifies those who listen in the first namespace
watch() {
	MONITOR=$WORK/monitor
	: >"$MONITOR"
	[[ $VM_STOCK != 1 ]] || return 0
	# not a child: together() waits for all of them
	(
		nsenter --net=/proc/1/ns/net "$RDMA" mpa monitor >>"$MONITOR" 2>&1 </dev/null &
		echo $! >"$WORK/watcher"
	)
	wait_for 20 'the monitor' monitor_is_on
	"$RDMA" mpa reset link siw1/1
}

monitor_is_on() {
	[[ -s $MONITOR ]] || { "$RDMA" mpa set link siw1/1 reply-timeout 9000 && pause 0.3 && false; }
}

mapfile -t names < <(if [[ $# -gt 0 ]]; then printf '%s\n' "$@"; else scenarios; fi)
declare -A of_policy=()
policies=('')
for name in "${names[@]}"; do
	read_scenario "$TESTS/wire/$name.txt"
	[[ "$name: $claim" =~ $only ]] || continue
	policy=${says[policy]}
	[[ -n $policy && -z ${of_policy[-$policy]:-} ]] && policies+=("$policy")
	of_policy[-$policy]+="$name "
done
port=$FIRST_PORT
watch
for policy in "${policies[@]}"; do
	# shellcheck disable=SC2086 # words
	play_with "$policy" ${of_policy[-$policy]:-}
done
[[ $VM_STOCK == 1 ]] || kill "$(<"$WORK/watcher")"
finish
