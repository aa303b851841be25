-- SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
--
-- Wireshark dissector for datagram iWARP: Send, Write-Record and error messages in UDP. There is no registered port: it
-- takes datagrams that have a right CRC and form (heuristic), and those of a port that the user chooses ("Decode as").
--
--     tshark -X lua_script:siw_dg.lua -r capture.pcap -Y siw_dg
--
-- Read ../NOTICE first. Runs with Lua 5.2 to 5.4.

local dg = Proto("siw_dg", "Datagram iWARP")

local SEND_HEADER, WRITE_HEADER, ERROR_HEADER, CRC_SIZE = 18, 30, 24, 4
local WRITE, SEND, SEND_SE, TERMINATE = 0, 3, 5, 7
local OPCODE = { [WRITE] = "Write-Record", [SEND] = "Send", [SEND_SE] = "Send with Solicited Event",
	[TERMINATE] = "error message" }
local LAYER = { [0] = "RDMAP", [1] = "DDP", [2] = "LLP" }

local fields = {
	control = ProtoField.uint8("siw_dg.ddp", "DDP control", base.HEX),
	tagged = ProtoField.bool("siw_dg.tagged", "Tagged", 8, nil, 0x80),
	last = ProtoField.bool("siw_dg.last", "Last", 8, nil, 0x40),
	m = ProtoField.bool("siw_dg.m", "M: MSN present", 8, nil, 0x20),
	ddp_version = ProtoField.uint8("siw_dg.ddp_version", "DDP version", base.DEC, nil, 0x03),
	rdmap = ProtoField.uint8("siw_dg.rdmap", "RDMAP control", base.HEX),
	rdmap_version = ProtoField.uint8("siw_dg.rdmap_version", "RDMAP version", base.DEC, nil, 0xc0),
	opcode = ProtoField.uint8("siw_dg.opcode", "Opcode", base.DEC, OPCODE, 0x0f),
	qkey = ProtoField.uint32("siw_dg.qkey", "Q_Key", base.HEX),
	qn = ProtoField.uint32("siw_dg.qn", "QN"),
	stag = ProtoField.uint32("siw_dg.zone", "Zone (STag)", base.HEX),
	to = ProtoField.uint64("siw_dg.to", "Tagged offset", base.HEX),
	msn = ProtoField.uint32("siw_dg.msn", "MSN"),
	mo = ProtoField.uint32("siw_dg.mo", "MO: offset in the message"),
	ml = ProtoField.uint32("siw_dg.ml", "ML: length of the message"),
	data = ProtoField.bytes("siw_dg.data", "Data"),
	length = ProtoField.uint32("siw_dg.data_len", "Length of the data"),
	layer = ProtoField.uint8("siw_dg.layer", "Layer", base.DEC, LAYER, 0xf0),
	etype = ProtoField.uint8("siw_dg.etype", "Error type", base.DEC, nil, 0x0f),
	code = ProtoField.uint8("siw_dg.code", "Error code"),
	cause_length = ProtoField.uint16("siw_dg.cause_len", "Length of the bad datagram, without CRC"),
	cause = ProtoField.bytes("siw_dg.cause", "DDP header of the bad datagram"),
	crc = ProtoField.uint32("siw_dg.crc", "CRC32c", base.HEX),
	good = ProtoField.bool("siw_dg.crc_good", "CRC good"),
	problem = ProtoField.string("siw_dg.problem", "Malformed"),
}
dg.fields = fields

local malformed = ProtoExpert.new("siw_dg.expert.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
dg.experts = { malformed }

local crc_table = {}
for octet = 0, 255 do
	local crc = octet
	for _ = 1, 8 do
		local odd = bit.band(crc, 1) ~= 0
		crc = bit.rshift(crc, 1)
		if odd then crc = bit.bxor(crc, 0x82f63b78) end
	end
	crc_table[octet] = crc
end

local function crc_good(tvb)
	local size = tvb:len() - CRC_SIZE
	if size < 0 then return false end
	local bytes, crc = tvb:bytes(0, size), 0xffffffff
	for i = 0, size - 1 do
		crc = bit.bxor(bit.rshift(crc, 8), crc_table[bit.band(bit.bxor(crc, bytes:get_index(i)), 0xff)])
	end
	local wanted = bit.bnot(crc)
	return bit.band(bit.bxor(wanted, tvb(size, 4):le_uint()), 0xffffffff) == 0
end

-- Says what is wrong with the form, or nil
local function problem_of(tvb)
	if tvb:len() < SEND_HEADER + CRC_SIZE then return "too short" end
	local ddp, rdmap = tvb(0, 1):uint(), tvb(1, 1):uint()
	local opcode, tagged = bit.band(rdmap, 0x0f), bit.band(ddp, 0x80) ~= 0
	if bit.band(ddp, 0x1f) ~= 1 then return "DDP version or reserved bits" end
	if bit.band(rdmap, 0xf0) ~= 0x40 then return "RDMAP version or reserved bits" end
	if tagged then
		if opcode ~= WRITE then return "opcode" end
		if bit.band(ddp, 0x20) == 0 then return "no MSN" end
		if tvb:len() < WRITE_HEADER + CRC_SIZE then return "too short" end
		local mo, ml, size = tvb(18, 4):uint(), tvb(22, 4):uint(), tvb:len() - WRITE_HEADER - CRC_SIZE
		if mo + size > ml then return "beyond the message" end
		if (mo + size == ml) ~= (bit.band(ddp, 0x40) ~= 0) then return "Last" end
		if size == 0 and ml > 0 or mo + size < ml and mo % size ~= 0 then return "MO" end
		return nil
	end
	if bit.band(ddp, 0x60) ~= 0x40 then return "Last or M of an untagged datagram" end
	if opcode ~= SEND and opcode ~= SEND_SE and opcode ~= TERMINATE then return "opcode" end
	if tvb(6, 4):uint() ~= (opcode == TERMINATE and 2 or 0) then return "QN" end
	if tvb(14, 4):uint() ~= 0 then return "MO" end
	if opcode == TERMINATE then
		if tvb:len() < ERROR_HEADER + SEND_HEADER + CRC_SIZE then return "too short" end
		local cause = bit.band(tvb(24, 1):uint(), 0x80) ~= 0 and WRITE_HEADER or SEND_HEADER
		if tvb:len() ~= ERROR_HEADER + cause + CRC_SIZE then return "length" end
	end
	return nil
end

local function add_all(tree, tvb, list)
	for _, entry in ipairs(list) do
		if entry[2] + entry[3] <= tvb:len() - CRC_SIZE then tree:add(fields[entry[1]], tvb(entry[2], entry[3])) end
	end
end

local function show_write(tree, tvb)
	add_all(tree, tvb, { { "stag", 2, 4 }, { "to", 6, 8 }, { "msn", 14, 4 }, { "mo", 18, 4 }, { "ml", 22, 4 }, { "qkey", 26, 4 } })
	if tvb:len() < WRITE_HEADER + CRC_SIZE then return "" end
	return string.format(" zone 0x%08x MSN %d %d+%d of %d", tvb(2, 4):uint(), tvb(14, 4):uint(), tvb(18, 4):uint(),
		tvb:len() - WRITE_HEADER - CRC_SIZE, tvb(22, 4):uint())
end

local function show_untagged(tree, tvb, opcode)
	add_all(tree, tvb, { { "qkey", 2, 4 }, { "qn", 6, 4 }, { "msn", 10, 4 }, { "mo", 14, 4 } })
	if tvb:len() < SEND_HEADER + CRC_SIZE then return "" end
	if opcode == TERMINATE and tvb:len() >= ERROR_HEADER + CRC_SIZE then
		add_all(tree, tvb, { { "layer", 18, 1 }, { "etype", 18, 1 }, { "code", 19, 1 }, { "cause_length", 22, 2 },
			{ "cause", 24, tvb:len() - ERROR_HEADER - CRC_SIZE } })
		return string.format(" MSN %d: %d/%d/%d", tvb(10, 4):uint(), bit.rshift(tvb(18, 1):uint(), 4),
			bit.band(tvb(18, 1):uint(), 0x0f), tvb(19, 1):uint())
	end
	return string.format(" MSN %d %d octets", tvb(10, 4):uint(), tvb:len() - SEND_HEADER - CRC_SIZE)
end

function dg.dissector(tvb, pinfo, tree)
	local item = tree:add(dg, tvb())
	local size = tvb:len()
	if size < 2 + CRC_SIZE then return 0 end
	local opcode = bit.band(tvb(1, 1):uint(), 0x0f)
	local tagged = bit.band(tvb(0, 1):uint(), 0x80) ~= 0
	local control = item:add(fields.control, tvb(0, 1))
	for _, name in ipairs({ "tagged", "last", "m", "ddp_version" }) do control:add(fields[name], tvb(0, 1)) end
	local rdmap = item:add(fields.rdmap, tvb(1, 1))
	for _, name in ipairs({ "rdmap_version", "opcode" }) do rdmap:add(fields[name], tvb(1, 1)) end
	local summary = OPCODE[opcode] or "opcode " .. opcode
	summary = summary .. (tagged and show_write(item, tvb) or show_untagged(item, tvb, opcode))
	local header = tagged and WRITE_HEADER or SEND_HEADER
	if opcode ~= TERMINATE and size >= header + CRC_SIZE then
		item:add(fields.length, size - header - CRC_SIZE):set_generated()
		if size > header + CRC_SIZE then item:add(fields.data, tvb(header, size - header - CRC_SIZE)) end
	end
	item:add_le(fields.crc, tvb(size - CRC_SIZE, CRC_SIZE))
	local good = crc_good(tvb)
	item:add(fields.good, good):set_generated()
	local problem = problem_of(tvb) or (not good and "CRC" or nil)
	if problem then
		item:add(fields.problem, problem):set_generated():add_proto_expert_info(malformed, problem)
		summary = summary .. " [" .. problem .. "]"
	end
	item:set_text("Datagram iWARP: " .. summary)
	pinfo.cols.protocol = "DG-iWARP"
	pinfo.cols.info = summary
	return size
end

dg:register_heuristic("udp", function(tvb, pinfo, tree)
	if problem_of(tvb) or not crc_good(tvb) then return false end
	dg.dissector(tvb, pinfo, tree)
	return true
end)
DissectorTable.get("udp.port"):add_for_decode_as(dg)
