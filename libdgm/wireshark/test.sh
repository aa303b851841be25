#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Usage: test.sh BUILD
#
# Writes the vectors of the specification and damaged copies of them into captures, decodes them by tshark with siw_dg.lua,
# and compares; as root also a capture of what dgm-send of the directory BUILD sends. Needs tshark, text2pcap, editcap,
# dumpcap (Debian: tshark).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd -P)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export WIRESHARK_CONFIG_DIR=$dir XDG_CONFIG_HOME=$dir LC_ALL=C.UTF-8
failed=0

fail() {
	printf 'FAIL: %s\n' "$*"
	failed=1
}

# capture FILE HEX…
capture() {
	local file=$1
	shift
	printf '> %s\n' "$@" >"$dir/packets"
	text2pcap -q -F pcap -r '^(?<dir>[<>]) (?<data>[0-9a-f]+)$' -u 40001,40002 -4 10.77.0.1,10.77.0.2 "$dir/packets" "$file" \
		2>"$dir/err" || { cat "$dir/err"; exit 1; }
}

# info FILE OPTION…: the summaries of datagrams that are taken for ours
info() {
	tshark -X "lua_script:$here/siw_dg.lua" -r "$@" -Y siw_dg -T fields -e _ws.col.Info 2>"$dir/err"
	! grep -iE 'lua.*error' "$dir/err" || fail 'an error in the dissector'
}

write=e140123456010000000000001000000000070000000000000004c001d00d
vectors=(
	41431111111100000000000000010000000061626364ffc6e555
	41451111111100000000000000020000000012553c2b
	"${write}61626364cc96bd6c"
	a14012345601000000000000100000000008000000000000000cc001d00d3031323334353637a9c91dae
	e14012345601000000000000100800000008000000080000000cc001d00d38396162fba1d35c
	e140123456010000000000001000000000090000000000000000c001d00dfb534307
	"4147000000000000000200000001000000001100c0000022${write}3b257021"
)
wanted='Send MSN 1 4 octets
Send with Solicited Event MSN 2 0 octets
Write-Record zone 0x12345601 MSN 7 0+4 of 4
Write-Record zone 0x12345601 MSN 8 0+8 of 12
Write-Record zone 0x12345601 MSN 8 8+4 of 12
Write-Record zone 0x12345601 MSN 9 0+0 of 0
error message MSN 1: 1/1/0'
capture "$dir/vectors.pcap" "${vectors[@]}"
got=$(info "$dir/vectors.pcap")
[[ $got == "$wanted" ]] || fail "vectors: $(diff <(echo "$wanted") <(echo "$got"))"
fields=$(tshark -X "lua_script:$here/siw_dg.lua" -r "$dir/vectors.pcap" -Y 'siw_dg.msn == 7' -T fields -e siw_dg.zone -e siw_dg.to -e siw_dg.qkey \
	-e siw_dg.ml -e siw_dg.last -e siw_dg.crc_good -e siw_dg.data 2>/dev/null | tr '\t' ' ')
[[ $fields =~ ^0x12345601\ 0x0*1000\ 0xc001d00d\ 4\ (1|True)\ (1|True)\ 61626364$ ]] || fail "fields: $fields"

# Not ours: a bad CRC, an iWARP Write, any other datagram. Decoded as ours, each shows its problem
capture "$dir/bad.pcap" "${write}61626364cc96bd6d" "c1${write:2}61626364cc96bd6c" 6869
[[ -z $(info "$dir/bad.pcap") ]] || fail 'takes datagrams for ours that are not'
got=$(info "$dir/bad.pcap" -d udp.port==40002,siw_dg)
[[ $got == *'4 [CRC]'*'[no MSN]'* ]] || fail "problems: $got"

# Damaged captures: the dissector survives any contents
for seed in 1 2 3; do
	editcap -F pcap -o 42 -E 0.0$seed --seed "$seed" "$dir/vectors.pcap" "$dir/damaged.pcap" >/dev/null 2>&1
	info "$dir/damaged.pcap" -d udp.port==40002,siw_dg >"$dir/damaged"
	[[ $(wc -l <"$dir/damaged") == 7 ]] || fail "damaged: $(cat "$dir/damaged")"
done

# wait_line FILE REGEX
wait_line() {
	local i
	for ((i = 0; i < 300; i++)); do
		! grep -q "$2" "$1" || return 0
		sleep 0.1
	done
	fail "no '$2' in $1: $(cat "$1")"
	exit 1
}

# Three datagrams of a message, and the first notice of its end
own_traffic() {
	local recv dump target zone target_port
	: >"$dir/target" && : >"$dir/dumpcap"
	timeout 60 "$1/dgm-recv" --any --size 4096 >"$dir/target" &
	recv=$!
	wait_line "$dir/target" /
	target=$(head -n 1 "$dir/target")
	zone=${target#*/} zone=${zone%%/*} target_port=${target%%/*} target_port=${target_port##*:}
	timeout 60 dumpcap -q -i lo -f "udp dst port $target_port" -c 4 -w "$dir/own.pcap" 2>"$dir/dumpcap" &
	dump=$!
	wait_line "$dir/dumpcap" File
	head -c 3000 /dev/urandom | "$1/dgm-send" "$target" --segment 1400 --no-bundle >/dev/null
	wait $recv $dump || fail "capture: $(cat "$dir/dumpcap")"
	wanted="Write-Record zone 0x$zone MSN 1 0+1400 of 3000
Write-Record zone 0x$zone MSN 1 1400+1400 of 3000
Write-Record zone 0x$zone MSN 1 2800+200 of 3000
Send with Solicited Event MSN 1 32 octets"
	got=$(info "$dir/own.pcap")
	[[ $got == "$wanted" ]] || fail "own traffic: $(diff <(echo "$wanted") <(echo "$got"))"
}

if ((EUID == 0)); then
	own_traffic "$1"
else
	echo 'not root: no capture of own traffic'
fi
exit $failed
