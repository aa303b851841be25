# SPDX-License-Identifier: GPL-2.0
#
# Converts the output of tshark -T json with iw_mpa.lua and of mpapeer decode --json for one capture
# to records of the same form: {port, side (">" or "<"), kind, …}. The responder's port is 7471; the
# initiator's port identifies the connection.

def number:
	if type == "number" then .
	elif startswith("0x") then
		reduce (ltrimstr("0x") | ascii_downcase | explode[]) as $digit
			(0; . * 16 + ($digit | if . >= 97 then . - 87 else . - 48 end))
	else tonumber end;
def truth: . == "1" or . == "True" or . == true;
def hex: if . == null then "" else gsub(":"; "") end;
def list: if . == null then [] elif type == "array" then . else [.] end;

# {a: 1, a_tree: {b: 2}}: {a: 1, b: 2}
def flat: with_entries(select(.value | type != "object")) + ([.[] | objects | flat] | add // {});

def wireshark_frame: {
	kind: .["iw_mpa.frame"],
	rev: .["iw_mpa.rev"] | number,
	markers: .["iw_mpa.flags.markers"] | truth,
	crc: .["iw_mpa.flags.crc"] | truth,
	reject: .["iw_mpa.flags.reject"] | truth,
	enhanced: .["iw_mpa.flags.enhanced"] | truth,
	res: .["iw_mpa.flags.res"] | number,
	pd_length: .["iw_mpa.pd_length"] | number,
	pdata_len: .["iw_mpa.pdata_len"] | number,
	pdata: .["iw_mpa.pdata"] | hex,
	problems: .["iw_mpa.problem"] | list
} + if .["iw_mpa.p2p"] then {
	p2p: .["iw_mpa.p2p"] | truth,
	rtr: [("send", "write", "read") as $kind | if .["iw_mpa.rtr.\($kind)"] | truth then $kind else empty end],
	ird: .["iw_mpa.ird"] | number,
	ord: .["iw_mpa.ord"] | number,
	word: .["iw_mpa.word"] | number
} else {} end;

def fpdu_numbers: {
	last: "ddp.last", ddp_version: "ddp.version", rdmap_version: "rdmap.version", stag: "ddp.stag", to: "ddp.to",
	inv_stag: "rdmap.inv_stag", qn: "ddp.qn", msn: "ddp.msn", mo: "ddp.mo", size: "read.size",
	sink_stag: "read.sink_stag", sink_to: "read.sink_to", src_stag: "read.src_stag", src_to: "read.src_to",
	layer: "term.layer", etype: "term.etype", code: "term.code", hdrct: "term.hdrct",
	ulpdu_length: "fpdu.ulpdu_length", len: "payload_len", crc_value: "fpdu.crc"
};

def wireshark_fpdu: . as $fields | {
	kind: .["iw_mpa.fpdu"],
	is_rtr: .["iw_mpa.fpdu.zero_length"] | truth,
	pdata: .["iw_mpa.payload"] | hex,
	crc: .["iw_mpa.fpdu.crc.status"],
	pad: (if .["iw_mpa.fpdu.pad"] // "" | tostring | test("[1-9a-f]") then "bad" else "zero" end)
} + (fpdu_numbers | with_entries(.value = $fields["iw_mpa.\(.value)"]) | map_values(select(. != null))
	| with_entries(.value |= if . == "True" then 1 elif . == "False" then 0 else number end));

def wireshark: .[]._source.layers | .tcp as $tcp | .iw_mpa | list[] | objects | flat | {
	port: [$tcp["tcp.srcport"], $tcp["tcp.dstport"]] | map(tonumber) | map(select(. != 7471))[0],
	side: (if $tcp["tcp.srcport"] == "7471" then "<" else ">" end),
	rtr_message: .["iw_mpa.fpdu.rtr"] | truth,
	term: .["iw_mpa.term"],
	rest: .["iw_mpa.rest"],
	notes: .["iw_mpa.note"] | list,
	problems: .["iw_mpa.problem"] | list,
	fields: (if .["iw_mpa.rev"] then wireshark_frame elif .["iw_mpa.fpdu"] then wireshark_fpdu else null end)
} | select(.fields or .rest or .problems != []);

def mpapeer: .[] | . as $connection | .events[] | select(.kind)
	| (if .from == "initiator" then $connection.initiator else $connection.responder end) as $from
	| {
		port: [$connection.initiator, $connection.responder] | map(split(":")[-1] | tonumber) | map(select(. != 7471))[0],
		side: (if $from | endswith(":7471") then "<" else ">" end),
		fields: (if .rev then . + {pdata: (.pdata // "")} else . + if has("last") then {last: (if .last then 1 else 0 end)} else {} end end
			| del(.seq, .time, .epoch_ns, .from, .stream_offset, .type, .flags, .key, .bytes, .hex, .reserved))
	};

# Frames in the form of the conformance matrix
def bit: if . then 1 else 0 end;
def depth: if . == 16383 then "3FFF" else . end;
def decoded: "\(if .kind == "request" then "Req" else "Rep" end) M\(.markers | bit) C\(.crc | bit) R\(.reject | bit) S\(.enhanced | bit) Rev\(.rev) PD=\(.pd_length)"
	+ (if .res > 0 then " Res=\(.res | if . == 15 then "F" else . end)" else "" end)
	+ (if has("p2p") then "; ABCD=\(.p2p | bit)\(.rtr | index("send") | bit)\(.rtr | index("write") | bit)\(.rtr | index("read") | bit) IRD=\(.ird | depth) ORD=\(.ord | depth)" else "" end)
	+ (if .pdata_len == 0 then ""
	   else "; ULP=" + (.pdata as $hex | [range(0; .pdata_len) | "0x" + $hex[2 * .:2 * . + 2] | number]
		| if length > 64 then "\(length) bytes" elif all(.[]; . >= 32 and . < 127) then "\"\(implode)\"" else $hex end)
	   end);

# PDUs in the form of exchanges.txt
def told: "\(.side) \(if .rest then "rest" else .fields.kind // "unknown" end)"
	+ (if .rtr_message then " RTR" else "" end)
	+ (if .term then " \(.term)" else "" end)
	+ ([.notes[] | " ? \(.)"] | add // "")
	+ ([.problems[] | " ! \(.)"] | add // "")
	+ (if .fields.crc == "bad" then " ! bad CRC" else "" end);
