#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: chunks.sh
#
# Writes the SCTP chunks of sctp.txt and rpcrdma2.txt into a capture, lets tshark with iw_sctp.lua and
# rpcrdma2.lua decode it, and compares the summaries and fields with those of the files. Needs tshark,
# text2pcap, editcap (Debian: tshark).
set -euo pipefail

for program in tshark text2pcap editcap; do
	command -v "$program" >/dev/null || { echo "$program is missing: apt-get install tshark" && exit 1; }
done

here=$(cd "$(dirname "$0")" && pwd -P)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# without the user's settings
export WIRESHARK_CONFIG_DIR=$dir XDG_CONFIG_HOME=$dir LC_ALL=C.UTF-8
# DDP-SSN and header of a Send in one segment (RFC 5040, 5041)
readonly SEND=0001414300000000000000000000000100000000
failed=0
number=0 # of the packet

fail() {
	printf 'FAIL: %s\n' "$*"
	failed=1
}

# The bytes of words; "+N" is N zeros
hex_of() {
	local word hex=''
	for word in "$@"; do
		[[ $word != +* ]] || word=$(printf '%0*d' $((2 * ${word#+})) 0)
		hex+=$word
	done
	echo "$hex"
}

# write_chunk PPID HEX: an SCTP packet with a DATA chunk, unordered and whole (RFC 4960 section 3.3.1)
write_chunk() {
	local size=$((${#2} / 2)) pad=000000
	number=$((number + 1))
	printf '> 1d2f9c400000000100000000'
	printf '0007%04x%08x00010000%08x%s%s\n' $((16 + size)) "$number" "$1" "$2" "${pad:0:(4 - size % 4) % 4 * 2}"
}

# A chunk with each of its beginnings, since a peer can end it anywhere
write_cut_chunks() {
	local words at
	while read -r words; do
		# shellcheck disable=SC2086 # words
		set -- $words
		local ppid=$1 hex
		shift
		hex=$(hex_of "$@")
		for ((at = 2; at < ${#hex} && at < 600; at += 2)); do
			write_chunk "$ppid" "${hex:0:at}"
		done
	done <"$dir/chunks"
}

capture() { # NAME: of a list of packets
	text2pcap -q -F pcap -r '^(?<dir>[<>]) (?<data>[0-9a-f]+)$' -i 132 -4 10.77.0.2,10.77.0.1 \
		"$dir/$1" "$dir/$1.pcap" 2>"$dir/text2pcap.err" || { cat "$dir/text2pcap.err"; exit 1; }
}

dissect() { # NAME [OPTION…]
	local name=$1
	shift
	tshark -X "lua_script:$here/iw_sctp.lua" -X "lua_script:$here/rpcrdma2.lua" -r "$dir/$name.pcap" "$@" >"$dir/$name.out" 2>"$dir/$name.err"
	! grep -m 3 -ihE 'lua.*error' "$dir/$name.out" "$dir/$name.err" || fail "$name: an error in the dissector"
}

read_file() { # FILE
	local line words
	while IFS= read -r line; do
		case $line in
		'' | '#'*) ;;
		'+ '*)
			# shellcheck disable=SC2086 # words
			set -- ${line#+ }
			echo "$number $1 ${2:-}" >>"$dir/fields.want"
			;;
		*)
			words=${line%% = *}
			[[ $words != rpc* ]] || words="16 $SEND ${words#rpc }"
			echo "$words" >>"$dir/chunks"
			# shellcheck disable=SC2086 # words
			write_chunk "${words%% *}" "$(hex_of ${words#* })" >>"$dir/whole"
			echo "$number ${line#* = }" >>"$dir/summary.want"
			;;
		esac
	done <"$1"
}

# same WHAT: compares $dir/WHAT.want with $dir/WHAT.got
same() {
	local line
	[[ -s $dir/$1.want ]] || fail "$1: nothing to compare"
	while IFS= read -r line; do
		fail "$1: $line ($(sed -n "$(cut -d' ' -f2 <<<"$line")p" "$dir/chunks"))"
	done < <(diff --unchanged-line-format= --old-line-format='wanted %L' --new-line-format='got %L' \
		"$dir/$1.want" "$dir/$1.got" | head -n 20)
	echo "$1: $(wc -l <"$dir/$1.want") compared"
}

read_file "$here/sctp.txt"
read_file "$here/rpcrdma2.txt"
capture whole
dissect whole -T fields -E separator=' ' -e frame.number -e _ws.col.Info
# Behind ";" comes what Wireshark's dissectors say of the segment or the RPC message
sed 's/DDP segment 1; RPC/RPC/; s/;.*//' "$dir/whole.out" >"$dir/summary.got"
same summary

: >"$dir/fields.got"
cut -d' ' -f2 "$dir/fields.want" | sort -u >"$dir/names"
while read -r field; do
	dissect whole -T fields -E separator=' ' -e frame.number -e "$field"
	# Later versions of tshark say True and False
	awk -v field="$field" 'NR == FNR { if ($2 == field) wanted[$1]; next } $1 in wanted {
		sub("True", "1", $2); sub("False", "0", $2); print $1, field, $2 }' "$dir/fields.want" "$dir/whole.out" >>"$dir/fields.got"
done <"$dir/names"
for list in want got; do
	sort -n -k 1,1 -k 2 -o "$dir/fields.$list" "$dir/fields.$list"
done
same fields

# The dissectors must survive whatever a peer sends
write_cut_chunks >"$dir/cut"
capture cut
dissect cut -V
shown=$(grep -c '^iWARP over SCTP' "$dir/cut.out" || true)
((shown == $(wc -l <"$dir/cut"))) || fail "cut off: $shown of $(wc -l <"$dir/cut") seen"
for seed in 1 2 3; do
	editcap -F pcap -o 62 -E 0.0$seed --seed "$seed" "$dir/whole.pcap" "$dir/damaged.pcap" >"$dir/editcap" 2>&1
	dissect damaged -V
	grep -q '^iWARP over SCTP' "$dir/damaged.out" || fail 'damaged: nothing seen'
done
exit $failed
