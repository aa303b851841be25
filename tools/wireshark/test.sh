#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Usage: test.sh MPAPEER
#
# Writes the frames of vectors.txt and the connections of exchanges.txt into a capture, lets tshark
# with iw_mpa.lua decode it, and compares: each frame with the decoded column of the conformance
# matrix, each connection with the summaries in exchanges.txt, each field with `mpapeer decode`.
# Needs tshark, text2pcap, mergecap (Debian: tshark) and jq.
set -euo pipefail

for program in tshark text2pcap mergecap editcap jq; do
	command -v "$program" >/dev/null || { echo "$program is missing: apt-get install tshark jq" && exit 1; }
done

here=$(cd "$(dirname "$0")" && pwd -P)
mpapeer=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# without the user's settings
export WIRESHARK_CONFIG_DIR=$dir XDG_CONFIG_HOME=$dir LC_ALL=C.UTF-8

declare -A hex_of decoded_of
failed=0

fail() {
	printf 'FAIL: %s\n' "$*"
	failed=1
}

# unfold HEX+COUNT
unfold() {
	local hex=${1%+*} count=${1#"${1%+*}"} i
	for ((i = 0; i < ${count:-0}; i++)); do
		hex+=$(printf '%02x' $((i % 256)))
	done
	echo "$hex"
}

read_vectors() {
	local name bytes decoded
	while read -r name bytes decoded; do
		[[ $name != '#' && -n $name ]] || continue
		hex_of[$name]=$(unfold "$bytes")
		decoded_of[$name]=$decoded
	done <"$here/vectors.txt"
}

# The bytes of a packet's words: vectors and hex; "/1" is left alone
bytes_of() {
	local word hex=''
	for word in "$@"; do
		hex+=${hex_of[$word]:-$word}
	done
	echo "$hex"
}

port=40000
captures=()
# write_capture PACKETS: writes a connection with its own port; PACKETS has lines "> HEX"
write_capture() {
	port=$((port + 1))
	captures+=("$dir/$port.pcap")
	# text2pcap calls "<" inbound: from the second address to the first
	text2pcap -q -F pcap -r '^(?<dir>[<>]) (?<data>[0-9a-f]+)$' -T "7471,$port" -4 10.77.0.2,10.77.0.1 \
		"$1" "$dir/$port.pcap" 2>"$dir/text2pcap.err" || { cat "$dir/text2pcap.err"; exit 1; }
}

write_vectors() {
	local name side
	for name in "${!decoded_of[@]}"; do
		[[ $name == V* ]] || continue
		side='>'
		[[ ${decoded_of[$name]} != Rep* ]] || side='<'
		echo "$side ${hex_of[$name]}" >"$dir/packets"
		write_capture "$dir/packets"
		echo "$port $side ${decoded_of[$name]}" >>"$dir/decoded.want"
	done
}

end_exchange() {
	[[ ! -s $dir/packets ]] || write_capture "$dir/packets"
	: >"$dir/packets"
}

write_exchanges() {
	local line name='' compared=1 side words told want
	: >"$dir/packets"
	while IFS= read -r line; do
		case $line in
		'' | '#'*) ;;
		'exchange '*)
			end_exchange
			name=${line#exchange }
			compared=1
			[[ $name != *'; unlike mpapeer' ]] || compared=0
			echo "$((port + 1)) $compared $name" >>"$dir/names"
			;;
		*)
			side=${line:0:1}
			words=${line:2}
			told=''
			[[ $words != *' = '* ]] || { told=${words#* = } && words=${words%% = *}; }
			# shellcheck disable=SC2086 # words
			if [[ $words == *' /1' ]]; then
				bytes_of ${words% /1} | sed 's/../&\n/g' | sed "/./!d; s/^/$side /"
			else
				echo "$side $(bytes_of $words)"
			fi >>"$dir/packets"
			while [[ -n $told ]]; do
				want=${told%% | *}
				echo "$((port + 1)) $side $want" >>"$dir/told.want"
				[[ $told == *' | '* ]] || break
				told=${told#* | }
			done
			;;
		esac
	done <"$here/exchanges.txt"
	end_exchange
}

no_lua_error() { # NAME
	! grep -m 3 -ihE 'lua.*error' "$dir/$1.json" "$dir/$1.err" || fail "$1: an error in the dissector"
}

# dissect NAME OPTION…
dissect() {
	local name=$1
	shift
	tshark -X "lua_script:$here/iw_mpa.lua" -r "$dir/all.pcap" -T json --no-duplicate-keys -J 'tcp iw_mpa' "$@" \
		>"$dir/$name.json" 2>"$dir/$name.err"
	no_lua_error "$name"
}

query() { # FILE FILTER
	jq -r -L "$here" "include \"records\"; $2" "$dir/$1.json"
}

name_of() { # PORT
	awk -v port="$1" '$1 == port { $1 = $2 = ""; print; found = 1 } END { if (!found) print " a frame of vectors.txt" }' "$dir/names"
}

# same WHAT: compares $dir/WHAT.want with $dir/WHAT.got; lines begin with a port
same() {
	local line
	sort -s -n -k 1,1 -o "$dir/$1.want" "$dir/$1.want"
	sort -s -n -k 1,1 -o "$dir/$1.got" "$dir/$1.got"
	[[ -s $dir/$1.want ]] || fail "$1: nothing to compare"
	while IFS= read -r line; do
		fail "$1:$(name_of "$(cut -d' ' -f2 <<<"$line")"): $line"
	done < <(diff --unchanged-line-format= --old-line-format='wanted %L' --new-line-format='got %L' \
		"$dir/$1.want" "$dir/$1.got" | head -n 20)
	echo "$1: $(wc -l <"$dir/$1.want") compared"
}

read_vectors
write_vectors
last_vector=$port
write_exchanges
mergecap -a -F pcap -w "$dir/all.pcap" "${captures[@]}"
dissect once
query once 'wireshark | select(.port <= '"$last_vector"') | "\(.port) \(.side) \(.fields | decoded)"' >"$dir/decoded.got"
same decoded

query once 'wireshark | select(.port > '"$last_vector"') | "\(.port) \(told)"' >"$dir/told.got"
same told

# a later pass over a packet shows the same as the first
dissect twice -2
query once wireshark >"$dir/once"
query twice wireshark >"$dir/twice"
cmp -s "$dir/once" "$dir/twice" || fail "the second pass differs: $(diff "$dir/once" "$dir/twice" | head -n 20)"

# after a PD_Length that is too long, mpapeer still waits for the whole frame
"$mpapeer" decode --json "$dir/all.pcap" >"$dir/mpapeer.json"
unlike=$(awk '!$2 { print $1 }' "$dir/names" | paste -sd,)
selected='select(.fields and (.port | IN('"$unlike"') | not)) | "\(.port) \(.side) \(.fields | to_entries | sort_by(.key) | from_entries)"'
query mpapeer "mpapeer | $selected" >"$dir/fields.want"
query once "wireshark | $selected" >"$dir/fields.got"
same fields

# damaged captures: the dissector must survive any contents
for seed in 1 2 3; do
	editcap -F pcap -o 54 -E 0.0$seed --seed "$seed" "$dir/all.pcap" "$dir/damaged.pcap" >"$dir/editcap" 2>&1
	tshark -X "lua_script:$here/iw_mpa.lua" -r "$dir/damaged.pcap" -V >"$dir/damaged.json" 2>"$dir/damaged.err"
	grep -q '^MPA' "$dir/damaged.json" || fail "damaged: nothing seen"
	no_lua_error damaged
done

# the early draft's layout is used only if a preference asks for it
early() { # DIALECT
	tshark -X "lua_script:$here/iw_mpa.lua" -o "iw_mpa.dialect:$1" -r "$dir/early.pcap" \
		-T fields -e _ws.col.Info 2>>"$dir/early.err" | paste -sd'|'
}
for name in O1 O2 O3 O4; do
	echo "> ${hex_of[$name]}" >"$dir/packets"
	write_capture "$dir/packets"
done
mergecap -a -F pcap -w "$dir/early.pcap" "${captures[@]: -4}"
[[ $(early early-draft) == *'RTR write IRD 8 ORD 8|'*'RTR send,write,read IRD 8 ORD 8|'*'RTR read IRD 8 ORD 8|'*'RTR send IRD 8 ORD 8' ]] ||
	fail "early draft: $(early early-draft)"
[[ $(early rfc6581) == *'client-server IRD 8 ORD 8|'*'peer-to-peer RTR send,write IRD 8'*'|'*'client-server IRD'*'|'*'peer-to-peer RTR none'* ]] ||
	fail "RFC 6581: $(early rfc6581)"
exit $failed
