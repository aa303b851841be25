#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: scripts/vm run [--stock --allow-splat | --llp sctp] -- tests/wire.sh [REGEX [ROLE/NAME…]]
#
# Checks the frames on the wire, and the events of the program: mpapeer plays each scenario of
# tests/wire against our responder or our initiator. Each scenario has its own program (rdmafirst).
# tests/wire/README.md describes the head of a scenario. Several scenarios run at a time. With
# --llp sctp they are those of tests/wire/sctp-*, which use SCTP of the kernel or of libusrsctp. wire-streams plays them
# on associations that may be shared.
#
# With --stock one runs after the other, and the first that the kernel does not survive is the last: a
# line `crash ROLE/NAME: …` or `hang ROLE/NAME: …` names it. Unmodified modules have no settings and
# options, so these are left out. Scenarios that need them are left out with modules that have only the
# first patches of the negotiator (tests/run --topics siw-mpa).
#
# Runs as wire wire-sctp wire-streams: 700 s
# Sample wire-sctp: (good|s1|s2|s3|s5|ordered|ppid-16|gone-accepted|terminate-unread): 

# shellcheck disable=SC2031 # WORK is that of the case

# Everything except mpapeer runs in b. A process costs 50 ms under emulation, so the functions below
# start few of them.
[[ -n ${IN_B:-} ]] || IN_B=1 exec ip netns exec b "$0" "$@"
# shellcheck source=tests/lib.sh
source "${0%/*}/lib.sh"

readonly RDMA=${TESTS%/*}/build/rdma
readonly FIRST_PORT=20000
# libusrsctp's host is beside a; no kernel has its address
readonly USRSCTP_HOST=10.77.0.9
# empty if the modules have no settings
SETTINGS=$(modinfo -F alias "${VM_MODDIR:-}/iw_mpa.ko" 2>/dev/null | grep rdma-mpa || true)
[[ $VM_STOCK != 1 ]] || SETTINGS=''
WITHIN=15s
# With unmodified modules, many scenarios wait in vain
[[ $VM_STOCK != 1 ]] || WITHIN=8s PATIENCE=8
shift || true

# Sets claim, with the labels after it, and for each line "#: KEYWORD VALUE" of the scenario VALUE in says[KEYWORD]
read_scenario() { # FILE
	local line keyword
	says=([covers]='' [program]='' [rdma]='' [exit]='' [policy]='' [sysctl]='' [stack]=kernel [next]=next [streams]=$STREAMS)
	[[ $VM_LLP == tcp ]] || says[next]=next-sctp
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
			# the first request that the program gets is the honest one
			unheard) told+=('^conn 1 event RDMA_CM_EVENT_CONNECT_REQUEST .* pdata 4 6e657874$') ;;
			next) [[ $VM_STOCK == 1 ]] || says[next]=$line ;;
			*) says[$keyword]=$line ;;
			esac
		done
	} <"$1"
	claim="${claim#\# } (${says[covers]})"
}

# Like start of lib.sh, but without timeout: the programs have their own deadlines
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

# Sets FOUND to the number of the first matching line after the first SKIP lines
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

# The program prints each expected line; a line of "then" after the line before
program_is_told() {
	local regex at=0 until=$(($(now_ms) + 30000))
	for regex in "${told[@]}"; do
		[[ $regex == then\ * ]] || at=0
		regex=${regex#then }
		until tells "$regex" "$at"; do
			(($(now_ms) < until)) || fail "the program did not print '$regex'"
			pause 0.05
		done
		at=$FOUND
	done
	for regex in "${unwanted[@]}"; do
		if tells "$regex" 0; then
			fail "the program printed '$regex'"
		fi
	done
}

# Each expected notification about this scenario's connections comes
watcher_is_told() { # PORT
	local regex
	[[ -n $SETTINGS ]] || return 0
	for regex in "${notified[@]}"; do
		wait_for 30 "the notification '$regex'" is_notified "$1" "$regex"
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

# Sets OPTIONS to the program's options
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

# Records the rdma tool's output about the program's QP while the scenario waits for LOOKED
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

# Sets PEER_OPTIONS to mpapeer's options, and HOST to its own address, for the stack. On an association that may be shared, a
# session Terminate is answered by one.
choose_stack() { # STACK connect|listen
	PEER_OPTIONS=() HOST=$(address a)
	[[ $VM_LLP == sctp ]] || return 0
	PEER_OPTIONS=(--llp sctp --stack "$1" --streams "${says[streams]}" --set ANSWER=)
	((says[streams] == 1)) || PEER_OPTIONS+=(--set 'ANSWER=expect terminate')
	[[ $1 == kernel ]] || HOST=$USRSCTP_HOST
	[[ $2 == listen ]] || PEER_OPTIONS+=(--bind "$HOST")
}

has_attributes() { # LINE NAME VALUE [NAME VALUE]…
	local line=$1
	shift
	while [[ $# -ge 2 ]]; do
		[[ $line == *" drv_$1 $2 "* ]] || return 1
		shift 2
	done
}

# After the scenario an honest initiator (next.txt) must be served. It leaves without an RTR. Unmodified
# modules do not survive this; they get an initiator of revision 1.
against_responder() { # FILE PORT STACK
	program_options
	choose_stack "$3" connect
	spawn program "$RDMAFIRST" server "$(address b)" "$2" --count 0 --timeout 100 "${OPTIONS[@]}"
	spawn peer "$MPAPEER" run "$1" "$SCENARIOS/${says[next]}.txt" "${PEER_OPTIONS[@]}" --netns a --connect "$(address b):$2" --retry 40s --within "$WITHIN" \
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

against_initiator() { # FILE PORT STACK
	program_options
	choose_stack "$3" listen
	spawn peer "$MPAPEER" run "$1" "${PEER_OPTIONS[@]}" --netns a --listen "$HOST:$2" --within "$WITHIN" --set "LOOKED=$WORK/looked" \
		--set "ENDED=$WORK/ended"
	wait_ready peer '^listening on'
	spawn program "$RDMAFIRST" client "$HOST" "$2" --timeout 45 "${OPTIONS[@]}"
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
declare -a told unwanted notified OPTIONS PEER_OPTIONS

# ---- unmodified modules

kernel_complains() {
	dmesg | grep -E 'BUG:|Oops|general protection|kernel BUG at|KASAN|WARNING:|blocked for more than'
}

a_connection_works() { # PORT
	spawn program "$RDMAFIRST" server "$(address b)" "$1" --count 0 --timeout 40
	spawn peer "$MPAPEER" run "$SCENARIOS/next-rev1.txt" --netns a --connect "$(address b):$1" --retry 15s
	peer_is_content
}

# Plays one case and checks the kernel; if the kernel is broken, ends the suite and the machine at once
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

# ---- all scenarios

# Scenarios that wait for one of our deadlines come first: the others run meanwhile
scenarios() {
	local dirs='[!s]*'
	[[ $VM_LLP == tcp ]] || dirs='sctp-*'
	(
		cd "$TESTS/wire"
		# shellcheck disable=SC2086 # a pattern
		{
			grep -l 'within [12][0-9]s' ./$dirs/*.txt
			grep -L 'within [12][0-9]s' ./$dirs/*.txt | sort -r
		}
	) | sed 's|^\./||; s|\.txt$||'
}

play() { # NAME…
	local name file role stack
	for name in "$@"; do
		file=$TESTS/wire/$name.txt
		read_scenario "$file"
		role=${name%%/*} role=${role#sctp-}
		for stack in ${says[stack]}; do
			play_on "$stack"
		done
	done
}

# Plays one scenario of play() on one of its stacks
play_on() { # STACK
	local over=''
	[[ $1 == kernel ]] || over=" ($1)"
	port=$((port + 2))
	if [[ $VM_STOCK == 1 ]]; then
		play_alone "$name" $port "against_$role" "$file" $port kernel
	else
		check_beside "$name: $claim$over" "against_$role" "$file" $port "$1"
	fi
}

# Sets the policy of b's port and sysctls of b, which hold for all scenarios that play meanwhile
play_with() { # POLICY|SYSCTLS NAME…
	local policy=${1%|*} setting
	local -a settings before=()
	read -ra settings <<<"${1#*|}" || true
	shift
	# shellcheck disable=SC2086 # words
	[[ -z $policy || -z $SETTINGS ]] || "$RDMA" mpa set link siw1/1 $policy
	for setting in "${settings[@]}"; do
		# restored in reverse order, as rto_min must not be above rto_max
		before=("${setting%=*}=$(sysctl -n "${setting%=*}")" "${before[@]}")
		sysctl -qw "$setting"
	done
	play "$@"
	together
	[[ ${#before[@]} -eq 0 ]] || sysctl -qw "${before[@]}"
	[[ -z $policy || -z $SETTINGS ]] || "$RDMA" mpa reset link siw1/1
}

# The kernel sends notifications in the first namespace
watch() {
	MONITOR=$WORK/monitor
	: >"$MONITOR"
	[[ -n $SETTINGS ]] || return 0
	# not a child of this shell, because together() waits for all children
	(
		nsenter --net=/proc/1/ns/net "$RDMA" mpa monitor >>"$MONITOR" 2>&1 </dev/null &
		echo $! >"$WORK/watcher"
	)
	wait_for 20 'the monitor' monitor_is_on
	"$RDMA" mpa reset link siw1/1
}

# b knows where it is, as it does not answer ARP
add_usrsctp_host() {
	local mac
	mac=$(ip netns exec a cat /sys/class/net/eth0/address)
	ip neigh replace "$USRSCTP_HOST" lladdr "$mac" dev eth0
	modprobe sctp
}

has_no_association() {
	wait_for 40 'the end of all associations' is_without_association
}

is_without_association() {
	cp /proc/net/sctp/assocs "$WORK/assocs.log"
	[[ $(wc -l <"$WORK/assocs.log") -eq 1 ]]
}

needs_settings() {
	[[ -n ${says[policy]} || ${#notified[@]} -gt 0 || " ${says[program]}" == *' --mpa '* ]]
}

monitor_is_on() {
	[[ -s $MONITOR ]] || { "$RDMA" mpa set link siw1/1 reply-timeout 9000 && pause 0.3 && false; }
}

mapfile -t names < <(if [[ $# -gt 0 ]]; then printf '%s\n' "$@"; else scenarios; fi)
# Of the settings, policy and sysctls, that scenarios have in common
declare -A of_policy=()
policies=('|')
for name in "${names[@]}"; do
	read_scenario "$TESTS/wire/$name.txt"
	# the stack is in the name of a case as well
	[[ "$name: $claim" =~ $only || ${says[stack]} != kernel ]] || continue
	[[ -n $SETTINGS || $VM_STOCK == 1 ]] || ! needs_settings || continue
	policy="${says[policy]}|${says[sysctl]}"
	[[ $policy != '|' && -z ${of_policy[-$policy]:-} ]] && policies+=("$policy")
	of_policy[-$policy]+="$name "
done
port=$FIRST_PORT
[[ $VM_LLP == tcp ]] || add_usrsctp_host
watch
for policy in "${policies[@]}"; do
	# shellcheck disable=SC2086 # words
	play_with "$policy" ${of_policy[-$policy]:-}
done
[[ -z $SETTINGS ]] || kill "$(<"$WORK/watcher")"
[[ $VM_LLP == tcp ]] || check 'SC-07: no association remains after all scenarios' has_no_association
finish
