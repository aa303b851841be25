-- SPDX-License-Identifier: GPL-2.0
--
-- Wireshark dissector for iWARP connection setup: MPA frames of revision 1 (RFC 5044) and 2 (RFC
-- 6581) and the FPDUs behind them. Wireshark's own iwarp_mpa knows only revision 1 and shows revision
-- 2 as an error. This dissector takes connections that begin with an MPA key before it.
--
--     wireshark -X lua_script:iw_mpa.lua setup.pcap
--     tshark -X lua_script:iw_mpa.lua -r setup.pcap -Y iw_mpa
--
-- or copy it into the personal plugin directory (Help, About, Folders). Runs with Lua 5.2 to 5.4.
--
-- The meaning of a field also depends on earlier packets: an FPDU's CRC is checked if one of the
-- frames asked for CRCs, and an RTR is the initiator's first FPDU. The dissector finds this in the
-- first pass over a capture, when packets come in order, and keeps it in `seen` for later passes.

local mpa = Proto("iw_mpa", "MPA connection setup (RFC 6581)")

local REQUEST_KEY = "MPA ID Req Frame"
local REPLY_KEY = "MPA ID Rep Frame"
local KEY_SIZE = 16
local HEADER_SIZE = 20
local WORD_SIZE = 4
local MAX_PRIVATE_DATA = 512
local NOT_NEGOTIATED = 0x3fff

local DIALECT_RFC6581 = 1
local DIALECT_EARLY = 2

mpa.prefs.dialect = Pref.enum("Layout of the enhanced word", DIALECT_RFC6581,
	"The wire cannot tell the layout of RFC 6581 from that of its early draft",
	{ { 1, "rfc6581", DIALECT_RFC6581 }, { 2, "early-draft", DIALECT_EARLY } }, false)
mpa.prefs.crc = Pref.bool("Check the CRCs of FPDUs", true, "Where they are in use")
mpa.prefs.rdmap = Pref.bool("Pass FPDUs on to Wireshark's DDP/RDMAP dissector", true,
	"It knows what is above: NFS over RDMA, iSER, SMB Direct…")

-- ---- fields

local LAYER = { [0] = "RDMAP", [1] = "DDP", [2] = "MPA" }

-- [layer][error type]
local ETYPE = {
	[0] = { [0] = "local catastrophic error", [1] = "remote protection error", [2] = "remote operation error" },
	[1] = { [0] = "local catastrophic error", [1] = "tagged buffer error", [2] = "untagged buffer error",
		[3] = "of the LLP" },
	[2] = { [0] = "MPA error" },
}

-- [layer][error type][code] (RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 5044 section 8, RFC 6581 section 8)
local CODE = {
	[0] = {
		[0] = {},
		[1] = { [0] = "invalid STag", [1] = "base or bounds violation", [2] = "access rights violation",
			[3] = "STag not associated with the stream", [4] = "TO wrap",
			[9] = "STag cannot be invalidated", [0xff] = "unspecified" },
		[2] = { [5] = "invalid RDMAP version", [6] = "unexpected opcode",
			[7] = "catastrophic error, localized to the stream", [8] = "catastrophic error, global",
			[9] = "STag cannot be invalidated", [0xff] = "unspecified" },
	},
	[1] = {
		[0] = {},
		[1] = { [0] = "invalid STag", [1] = "base or bounds violation",
			[2] = "STag not associated with the stream", [3] = "TO wrap", [4] = "invalid DDP version" },
		[2] = { [1] = "invalid QN", [2] = "no buffer for this MSN", [3] = "MSN out of range",
			[4] = "invalid MO", [5] = "message too long for the buffer", [6] = "invalid DDP version" },
	},
	[2] = {
		[0] = { [1] = "TCP connection closed, terminated or lost", [2] = "CRC error",
			[3] = "marker and ULPDU length do not match", [4] = "invalid MPA Request or Reply",
			[5] = "local catastrophic error", [6] = "insufficient IRD resources",
			[7] = "no matching RTR option" },
	},
}

local OPCODE = { [0] = "write", [1] = "read-request", [2] = "read-response", [3] = "send",
	[4] = "send-inv", [5] = "send-se", [6] = "send-se-inv", [7] = "term" }
local TAGGED = { [0] = true, [2] = true }
local HEADERS = { [0] = 14, [1] = 46, [2] = 14, [3] = 18, [4] = 18, [5] = 18, [6] = 18, [7] = 22 }

local fields = {
	key = ProtoField.string("iw_mpa.key", "Key"),
	frame = ProtoField.string("iw_mpa.frame", "Frame"),
	flags = ProtoField.uint8("iw_mpa.flags", "Flags", base.HEX),
	m = ProtoField.bool("iw_mpa.flags.markers", "M: markers wanted", 8, nil, 0x80),
	c = ProtoField.bool("iw_mpa.flags.crc", "C: CRCs wanted", 8, nil, 0x40),
	r = ProtoField.bool("iw_mpa.flags.reject", "R: rejected", 8, nil, 0x20),
	s = ProtoField.bool("iw_mpa.flags.enhanced", "S: enhanced", 8, nil, 0x10),
	res = ProtoField.uint8("iw_mpa.flags.res", "Reserved", base.HEX, nil, 0x0f),
	rev = ProtoField.uint8("iw_mpa.rev", "Revision"),
	pd_length = ProtoField.uint16("iw_mpa.pd_length", "PD_Length"),
	word = ProtoField.uint32("iw_mpa.word", "Enhanced connection data", base.HEX),
	p2p = ProtoField.bool("iw_mpa.p2p", "A: peer-to-peer", 32, nil, 0x80000000),
	send = ProtoField.bool("iw_mpa.rtr.send", "B: RTR by zero-length Send", 32, nil, 0x40000000),
	ird = ProtoField.uint32("iw_mpa.ird", "IRD", base.DEC, nil, 0x3fff0000),
	write = ProtoField.bool("iw_mpa.rtr.write", "C: RTR by zero-length RDMA Write", 32, nil, 0x8000),
	read = ProtoField.bool("iw_mpa.rtr.read", "D: RTR by zero-length RDMA Read", 32, nil, 0x4000),
	ord = ProtoField.uint32("iw_mpa.ord", "ORD", base.DEC, nil, 0x3fff),
	early_send = ProtoField.bool("iw_mpa.early.send", "A: RTR by zero-length ULPDU", 32, nil, 0x80000000),
	early_write = ProtoField.bool("iw_mpa.early.write", "B: RTR by zero-length RDMA Write", 32, nil, 0x40000000),
	early_read = ProtoField.bool("iw_mpa.early.read", "C: RTR by zero-length RDMA Read", 32, nil, 0x8000),
	pdata = ProtoField.bytes("iw_mpa.pdata", "Private data of the ULP"),
	pdata_len = ProtoField.uint16("iw_mpa.pdata_len", "Length of the ULP's private data"),
	problem = ProtoField.string("iw_mpa.problem", "Malformed"),
	note = ProtoField.string("iw_mpa.note", "Note"),
	partial = ProtoField.string("iw_mpa.partial", "Unfinished"),
	rest = ProtoField.bytes("iw_mpa.rest", "Not decoded"),

	fpdu = ProtoField.string("iw_mpa.fpdu", "FPDU"),
	ulpdu_length = ProtoField.uint16("iw_mpa.fpdu.ulpdu_length", "ULPDU length"),
	rtr = ProtoField.bool("iw_mpa.fpdu.rtr", "Ready-to-Receive message"),
	is_rtr = ProtoField.bool("iw_mpa.fpdu.zero_length", "Zero length: fit for an RTR"),
	ddp = ProtoField.uint8("iw_mpa.ddp.control", "DDP control", base.HEX),
	tagged = ProtoField.bool("iw_mpa.ddp.tagged", "Tagged", 8, nil, 0x80),
	last = ProtoField.bool("iw_mpa.ddp.last", "Last", 8, nil, 0x40),
	ddp_version = ProtoField.uint8("iw_mpa.ddp.version", "DDP version", base.DEC, nil, 0x03),
	rdmap = ProtoField.uint8("iw_mpa.rdmap.control", "RDMAP control", base.HEX),
	rdmap_version = ProtoField.uint8("iw_mpa.rdmap.version", "RDMAP version", base.DEC, nil, 0xc0),
	opcode = ProtoField.uint8("iw_mpa.rdmap.opcode", "Opcode", base.DEC, OPCODE, 0x0f),
	stag = ProtoField.uint32("iw_mpa.ddp.stag", "STag", base.HEX),
	to = ProtoField.uint64("iw_mpa.ddp.to", "Tagged offset", base.HEX),
	inv_stag = ProtoField.uint32("iw_mpa.rdmap.inv_stag", "Invalidate STag", base.HEX),
	qn = ProtoField.uint32("iw_mpa.ddp.qn", "Queue number"),
	msn = ProtoField.uint32("iw_mpa.ddp.msn", "Message sequence number"),
	mo = ProtoField.uint32("iw_mpa.ddp.mo", "Message offset"),
	sink_stag = ProtoField.uint32("iw_mpa.read.sink_stag", "Sink STag", base.HEX),
	sink_to = ProtoField.uint64("iw_mpa.read.sink_to", "Sink tagged offset", base.HEX),
	size = ProtoField.uint32("iw_mpa.read.size", "Read size"),
	src_stag = ProtoField.uint32("iw_mpa.read.src_stag", "Source STag", base.HEX),
	src_to = ProtoField.uint64("iw_mpa.read.src_to", "Source tagged offset", base.HEX),
	layer = ProtoField.uint32("iw_mpa.term.layer", "Layer", base.DEC, LAYER, 0xf0000000),
	etype = ProtoField.uint32("iw_mpa.term.etype", "Error type", base.DEC, nil, 0x0f000000),
	code = ProtoField.uint32("iw_mpa.term.code", "Error code", base.DEC, nil, 0x00ff0000),
	hdrct = ProtoField.uint32("iw_mpa.term.hdrct", "Header control (M, D, R)", base.HEX, nil, 0xe000),
	term = ProtoField.string("iw_mpa.term", "Terminate"),
	payload = ProtoField.bytes("iw_mpa.payload", "Payload"),
	payload_len = ProtoField.uint16("iw_mpa.payload_len", "Length of the payload"),
	pad = ProtoField.bytes("iw_mpa.fpdu.pad", "Pad"),
	crc = ProtoField.uint32("iw_mpa.fpdu.crc", "CRC", base.HEX),
	crc_status = ProtoField.string("iw_mpa.fpdu.crc.status", "CRC status"),
}
mpa.fields = fields

local experts = {
	problem = ProtoExpert.new("iw_mpa.expert.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
	warn = ProtoExpert.new("iw_mpa.expert.protocol", "Against the protocol", expert.group.PROTOCOL, expert.severity.WARN),
	note = ProtoExpert.new("iw_mpa.expert.note", "Worth a look", expert.group.PROTOCOL, expert.severity.NOTE),
	term = ProtoExpert.new("iw_mpa.expert.term", "Terminate", expert.group.RESPONSE_CODE, expert.severity.WARN),
	crc = ProtoExpert.new("iw_mpa.expert.crc", "Bad CRC", expert.group.CHECKSUM, expert.severity.ERROR),
}
mpa.experts = experts

local tcp_stream = Field.new("tcp.stream")

-- ---- CRC-32C (RFC 5044 section 4.4), stored low byte first

local crc_table = {}
for i = 0, 255 do
	local crc = i
	for _ = 1, 8 do
		if crc % 2 == 1 then
			crc = bit.bxor(bit.rshift(crc, 1), 0x82f63b78)
		else
			crc = bit.rshift(crc, 1)
		end
	end
	crc_table[i] = crc
end

local function crc32c(bytes)
	local crc = -1
	for i = 1, #bytes do
		crc = bit.bxor(bit.rshift(crc, 8), crc_table[bit.band(bit.bxor(crc, bytes:byte(i)), 0xff)])
	end
	return bit.bnot(crc) % 0x100000000
end

-- ---- state of connections, and PDUs seen

local connections, seen = {}, {}

function mpa.init()
	connections, seen = {}, {}
end

local function new_connection()
	return { direction = {}, initiator = nil, request = nil, reply = nil, crc = false, fpdus = {} }
end

-- Fields are there only if the packet has a tree
local function connection_of(pinfo)
	local stream = tcp_stream()
	local from = tostring(pinfo.src) .. " " .. pinfo.src_port
	local to = tostring(pinfo.dst) .. " " .. pinfo.dst_port
	local id = stream and stream.value or (from < to and from .. " " .. to or to .. " " .. from)
	connections[id] = connections[id] or new_connection()
	local connection = connections[id]
	connection.direction[from] = connection.direction[from] or { id = from }
	return connection, connection.direction[from]
end

local function key_of(tvb, pinfo, offset)
	return pinfo.number .. ":" .. (tvb:offset() + offset)
end

-- ---- frames

-- The names are those of `mpapeer decode`
local function frame_problems(frame)
	if not frame.kind then return { "unknown key" } end
	local problems = {}
	if frame.rev ~= 1 and frame.rev ~= 2 then problems[#problems + 1] = "unknown revision" end
	if frame.pd_length > MAX_PRIVATE_DATA then problems[#problems + 1] = "private data too long" end
	if frame.enhanced and frame.pd_length < WORD_SIZE then problems[#problems + 1] = "enhanced word missing" end
	return problems
end

local function rtr_list(frame)
	local names = {}
	for _, name in ipairs({ "send", "write", "read" }) do
		if frame.rtr[name] then names[#names + 1] = name end
	end
	return #names > 0 and table.concat(names, ",") or "none"
end

local function parse_word(frame, word)
	local function has(bits) return bit.band(word, bits) ~= 0 end
	frame.has_word = true
	if mpa.prefs.dialect == DIALECT_EARLY then
		frame.early = true
		frame.rtr = { send = has(0x80000000), write = has(0x40000000), read = has(0x8000) }
	else
		frame.p2p = has(0x80000000)
		frame.rtr = { send = has(0x40000000), write = has(0x8000), read = has(0x4000) }
	end
	frame.ird = bit.band(bit.rshift(word, 16), 0x3fff)
	frame.ord = bit.band(word, 0x3fff)
end

-- The frame's header, and the part of its private data that is there
local function parse_frame(tvb, offset)
	local key = tvb:raw(offset, KEY_SIZE)
	local flags = tvb(offset + 16, 1):uint()
	local frame = {
		kind = key == REQUEST_KEY and "request" or key == REPLY_KEY and "reply" or nil,
		m = bit.band(flags, 0x80) ~= 0,
		c = bit.band(flags, 0x40) ~= 0,
		reject = bit.band(flags, 0x20) ~= 0,
		s = bit.band(flags, 0x10) ~= 0,
		res = bit.band(flags, 0x0f),
		rev = tvb(offset + 17, 1):uint(),
		pd_length = tvb(offset + 18, 2):uint(),
	}
	-- to revision 1 the S position is a reserved bit
	frame.enhanced = frame.s and frame.rev >= 2
	local there = tvb:len() - offset - HEADER_SIZE
	if frame.enhanced and frame.pd_length >= WORD_SIZE and there >= WORD_SIZE then
		parse_word(frame, tvb(offset + HEADER_SIZE, WORD_SIZE):uint())
	end
	frame.problems = frame_problems(frame)
	return frame
end

local function depth(value)
	return value == NOT_NEGOTIATED and "ulp" or tostring(value)
end

local function frame_summary(frame)
	local text = (frame.kind == "request" and "MPA Request" or frame.kind == "reply" and "MPA Reply" or "MPA frame?")
		.. " Rev " .. frame.rev
	if frame.kind == "reply" and frame.reject then text = text .. " rejected" end
	if frame.has_word then
		if frame.early then
			text = text .. " early draft RTR " .. rtr_list(frame)
		elseif frame.p2p then
			text = text .. " peer-to-peer RTR " .. rtr_list(frame)
		else
			text = text .. " client-server"
		end
		text = text .. " IRD " .. depth(frame.ird) .. " ORD " .. depth(frame.ord)
	end
	if #frame.problems > 0 then text = text .. " [" .. table.concat(frame.problems, ", ") .. "]" end
	return text
end

-- Remarks about a frame alone: a list of {severity, text}
local function frame_notes(frame)
	local notes = {}
	local function say(severity, text) notes[#notes + 1] = { severity, text } end
	if frame.res ~= 0 then say("note", "reserved bits are set: no effect") end
	if frame.kind == "request" and frame.reject then say("note", "R in a Request: no effect") end
	if frame.s and not frame.enhanced then say("note", "S position set under revision 1: a reserved bit, no enhanced data") end
	if frame.m then say("note", "markers wanted: the FPDUs of the other direction are not decoded here") end
	if not frame.has_word or frame.early then return notes end
	local flags = frame.rtr.send or frame.rtr.write or frame.rtr.read
	if not frame.p2p and flags then
		say("note", "RTR flags without A: no effect (does the peer speak the early draft?)")
	end
	if frame.p2p and not flags then
		if frame.kind == "request" then
			say("note", "peer-to-peer without an RTR option")
		elseif not frame.reject then
			say("warn", "no RTR option: the initiator has to end this with TERM 2/0/7")
		end
	end
	return notes
end

local function compare_depths(notes, request, reply)
	if reply.ord ~= NOT_NEGOTIATED and request.ird ~= NOT_NEGOTIATED and reply.ord > request.ird then
		notes[#notes + 1] = { "warn", "ORD " .. reply.ord .. " is above the initiator's IRD " .. request.ird }
	end
	if reply.ird ~= NOT_NEGOTIATED and request.ord ~= NOT_NEGOTIATED and reply.ird < request.ord then
		notes[#notes + 1] = { "note", "IRD " .. reply.ird .. " is below the initiator's ORD " .. request.ord ..
			": the initiator has to lower it" }
	end
end

-- Remarks about an accepting Reply that does not fit its Request (RFC 6581 sections 9 and 10)
local function reply_notes(notes, request, reply)
	local function say(severity, text) notes[#notes + 1] = { severity, text } end
	if #request.problems > 0 or #reply.problems > 0 then return end
	if request.enhanced and not reply.enhanced and not reply.reject then
		say("warn", "unenhanced Reply to an enhanced Request")
	elseif reply.enhanced and not request.enhanced then
		say("warn", "enhanced Reply to an unenhanced Request")
	end
	if reply.reject or not request.has_word or not reply.has_word or request.early then return end
	compare_depths(notes, request, reply)
	if request.p2p ~= reply.p2p then
		say("warn", "the models differ: Request " .. (request.p2p and "peer-to-peer" or "client-server") ..
			", Reply " .. (reply.p2p and "peer-to-peer" or "client-server"))
	elseif reply.p2p and reply.rtr.read and reply.ird == 0 and not reply.rtr.send and not reply.rtr.write then
		say("warn", "an RTR by Read alone, but IRD 0")
	end
end

-- Runs once for each frame, in order
local function note_frame(connection, direction, frame)
	local notes = frame_notes(frame)
	direction.started = true
	if #frame.problems > 0 and frame.pd_length > MAX_PRIVATE_DATA or not frame.kind then direction.dead = true end
	if frame.kind == "request" and not connection.request then
		connection.request = frame
		connection.initiator = connection.initiator or direction.id
	elseif frame.kind == "reply" and not connection.reply then
		connection.reply = frame
		if connection.request and connection.initiator == direction.id then
			notes[#notes + 1] = { "warn", "a Reply from the side that sent the Request" }
		elseif connection.request then
			reply_notes(notes, connection.request, frame)
		end
	elseif frame.kind then
		notes[#notes + 1] = { "warn", "a second " .. frame.kind }
	end
	connection.crc = connection.crc or frame.c
	if frame.m then
		connection.markers_for = connection.markers_for or {}
		connection.markers_for[direction.id] = true
	end
	return notes
end

local WORD_FIELDS = {
	{ fields.p2p }, { fields.send }, { fields.ird, "ird" }, { fields.write }, { fields.read }, { fields.ord, "ord" },
}
local EARLY_WORD_FIELDS = {
	{ fields.early_send }, { fields.early_write }, { fields.ird, "ird" }, { fields.early_read }, { fields.ord, "ord" },
}

local function add_word(tree, tvb, offset, frame)
	local range = tvb(offset, WORD_SIZE)
	local word = tree:add(fields.word, range)
	for _, field in ipairs(frame.early and EARLY_WORD_FIELDS or WORD_FIELDS) do
		local item = word:add(field[1], range)
		if field[2] and frame[field[2]] == NOT_NEGOTIATED then
			item:append_text(" (0x3fff: not negotiated, left to the ULP)")
		end
	end
end

local function add_notes(tree, notes)
	for _, note in ipairs(notes) do
		tree:add(fields.note, note[2]):set_generated():add_proto_expert_info(experts[note[1]], note[2])
	end
end

local function show_frame(tree, tvb, offset, size, frame, notes)
	local item = tree:add(mpa, tvb(offset, size), frame_summary(frame))
	item:add(fields.frame, tvb(offset, KEY_SIZE), frame.kind or "unknown")
	item:add(fields.key, tvb(offset, KEY_SIZE))
	local flags = item:add(fields.flags, tvb(offset + 16, 1))
	for _, field in ipairs({ fields.m, fields.c, fields.r, fields.s, fields.res }) do
		flags:add(field, tvb(offset + 16, 1))
	end
	item:add(fields.rev, tvb(offset + 17, 1))
	item:add(fields.pd_length, tvb(offset + 18, 2))
	local data = offset + HEADER_SIZE
	if frame.has_word then
		add_word(item, tvb, data, frame)
		data = data + WORD_SIZE
	end
	local length = offset + size - data
	item:add(fields.pdata_len, length):set_generated()
	if length > 0 then item:add(fields.pdata, tvb(data, length)) end
	for _, problem in ipairs(frame.problems) do
		item:add(fields.problem, problem):set_generated():add_proto_expert_info(experts.problem, problem)
	end
	add_notes(item, notes)
end

-- ---- FPDUs

local function padded(length)
	return math.floor((length + 3) / 4) * 4
end

local function parse_ulpdu(tvb, offset, length)
	if length == 0 then return { kind = "null", payload = 0 } end
	local unknown = { kind = "unknown", payload = length }
	if length < 2 then return unknown end
	local tagged = bit.band(tvb(offset, 1):uint(), 0x80) ~= 0
	local opcode = bit.band(tvb(offset + 1, 1):uint(), 0x0f)
	if not OPCODE[opcode] or tagged ~= (TAGGED[opcode] or false) or length < HEADERS[opcode] then return unknown end
	return { kind = OPCODE[opcode], opcode = opcode, tagged = tagged, payload = length - HEADERS[opcode] }
end

-- The kind of RTR that a message can be (RFC 6581 section 9.2)
local function is_rtr(ulpdu, tvb, offset)
	if ulpdu.kind == "null" then return true end
	if ulpdu.kind == "read-request" then return tvb(offset + 30, 4):uint() == 0 end
	return (ulpdu.kind == "write" or ulpdu.kind == "send") and ulpdu.payload == 0
end

local RTR_NAME = { null = "send", send = "send", write = "write", ["read-request"] = "read" }

local function term_text(layer, etype, code)
	local text = string.format("%d/%d/%d", layer, etype, code)
	-- some adapters send RFC 6581's codes with another type
	local lenient = layer == 2 and code >= 5 and code <= 7
	local names = (CODE[layer] or {})[lenient and 0 or etype]
	local name = names and names[code]
	return string.format("%s (%s: %s)", text, LAYER[layer] or "unknown layer",
		name or (ETYPE[layer] or {})[etype] or "unknown error type")
end

-- Runs once for each FPDU, in order
local function note_fpdu(connection, direction, ulpdu)
	local notes, rtr = {}, false
	local function say(severity, text) notes[#notes + 1] = { severity, text } end
	local reply, from_initiator = connection.reply, connection.initiator == direction.id
	local first = not connection.fpdus[direction.id]
	connection.fpdus[direction.id] = true
	if ulpdu.kind == "unknown" then say("warn", "no DDP segment with an RDMAP opcode") end
	if connection.request and not reply then say("warn", "an FPDU before the Reply") end
	if not reply or not connection.initiator then return notes, rtr end
	if reply.reject and first then say("warn", "an FPDU after a reject") end
	if not from_initiator and first and not connection.fpdus[connection.initiator] then
		say("warn", "the responder sends before the initiator's first FPDU")
	end
	local offered = reply.has_word and (reply.p2p or reply.early) and not reply.reject
	if from_initiator and first and offered and ulpdu.kind ~= "term" then
		rtr = ulpdu.is_rtr
		if not rtr then
			say("note", "the initiator's first FPDU is no RTR")
		elseif not reply.rtr[RTR_NAME[ulpdu.kind]] then
			say("warn", "an RTR of a kind that the Reply does not offer")
		end
	end
	return notes, rtr
end

local function add_ulpdu(tree, tvb, at, ulpdu)
	local ddp = tree:add(fields.ddp, tvb(at, 1))
	ddp:add(fields.tagged, tvb(at, 1))
	ddp:add(fields.last, tvb(at, 1))
	ddp:add(fields.ddp_version, tvb(at, 1))
	local rdmap = tree:add(fields.rdmap, tvb(at + 1, 1))
	rdmap:add(fields.rdmap_version, tvb(at + 1, 1))
	rdmap:add(fields.opcode, tvb(at + 1, 1))
	if ulpdu.tagged then
		tree:add(fields.stag, tvb(at + 2, 4))
		tree:add(fields.to, tvb(at + 6, 8))
		return
	end
	tree:add(fields.inv_stag, tvb(at + 2, 4))
	tree:add(fields.qn, tvb(at + 6, 4))
	tree:add(fields.msn, tvb(at + 10, 4))
	tree:add(fields.mo, tvb(at + 14, 4))
	if ulpdu.kind == "read-request" then
		tree:add(fields.sink_stag, tvb(at + 18, 4))
		tree:add(fields.sink_to, tvb(at + 22, 8))
		tree:add(fields.size, tvb(at + 30, 4))
		tree:add(fields.src_stag, tvb(at + 34, 4))
		tree:add(fields.src_to, tvb(at + 38, 8))
	end
end

local function add_term(tree, tvb, at)
	local range = tvb(at + 18, 4)
	local word = range:uint()
	local layer = bit.band(bit.rshift(word, 28), 0xf)
	local etype = bit.band(bit.rshift(word, 24), 0xf)
	local code = bit.band(bit.rshift(word, 16), 0xff)
	local text = term_text(layer, etype, code)
	tree:add(fields.layer, range)
	local item = tree:add(fields.etype, range)
	item:append_text(" (" .. ((ETYPE[layer] or {})[etype] or "unknown") .. ")")
	item = tree:add(fields.code, range)
	local lenient = layer == 2 and code >= 5 and code <= 7
	item:append_text(" (" .. (((CODE[layer] or {})[lenient and 0 or etype] or {})[code] or "unknown") .. ")")
	tree:add(fields.hdrct, range)
	tree:add(fields.term, range, text):set_generated():add_proto_expert_info(experts.term, "Terminate " .. text)
	return text
end

local function crc_status(tvb, offset, covered, in_use)
	if not mpa.prefs.crc then return "unchecked" end
	if tvb(offset + covered, 4):le_uint() == crc32c(tvb:raw(offset, covered)) then return "ok" end
	return in_use and "bad" or "unused"
end

local rdmap_dissector

-- Returns a summary
local function show_fpdu(tree, pinfo, tvb, offset, record)
	local length = tvb(offset, 2):uint()
	local covered = padded(2 + length)
	local at = offset + 2
	local ulpdu = record.ulpdu
	local item = tree:add(mpa, tvb(offset, covered + 4))
	local summary = ulpdu.kind
	item:add(fields.fpdu, tvb(offset, covered + 4), ulpdu.kind)
	item:add(fields.ulpdu_length, tvb(offset, 2))
	item:add(fields.is_rtr, ulpdu.is_rtr):set_generated()
	if record.rtr then
		item:add(fields.rtr, true):set_generated()
		summary = "RTR: " .. ulpdu.kind
	end
	if ulpdu.opcode then add_ulpdu(item, tvb, at, ulpdu) end
	if ulpdu.kind == "term" then summary = "TERM " .. add_term(item, tvb, at) end
	item:add(fields.payload_len, ulpdu.payload):set_generated()
	if ulpdu.payload > 0 then item:add(fields.payload, tvb(at + length - ulpdu.payload, ulpdu.payload)) end
	if covered > 2 + length then item:add(fields.pad, tvb(at + length, covered - 2 - length)) end
	item:add_le(fields.crc, tvb(offset + covered, 4))
	local status = item:add(fields.crc_status, tvb(offset + covered, 4), record.crc)
	status:set_generated()
	if record.crc == "bad" then
		status:add_proto_expert_info(experts.crc, "the CRC does not match")
		summary = summary .. " [bad CRC]"
	end
	add_notes(item, record.notes)
	item:set_text("MPA FPDU: " .. summary)
	if mpa.prefs.rdmap and ulpdu.payload > 0 and ulpdu.opcode and ulpdu.kind ~= "term" then
		rdmap_dissector = rdmap_dissector or Dissector.get("iwarp_ddp_rdmap")
		pcall(rdmap_dissector.call, rdmap_dissector, tvb(at, length):tvb(), pinfo, tree)
	end
	return summary
end

-- ---- PDU by PDU

-- If TCP does not reassemble segments, it ignores the request for more bytes
local function ask_for(pinfo, offset, missing)
	pinfo.desegment_offset = offset
	pinfo.desegment_len = missing
end

local function show_partial(tree, tvb, offset, text)
	local range = tvb(offset, tvb:len() - offset)
	tree:add(mpa, range, "MPA: " .. text):add(fields.partial, range, text):set_generated()
end

-- A side whose first bytes are not a key is not decoded
local function is_key_prefix(tvb, offset)
	local head = tvb:raw(offset, math.min(tvb:len() - offset, KEY_SIZE))
	return head == REQUEST_KEY:sub(1, #head) or head == REPLY_KEY:sub(1, #head)
end

local function record_of(tvb, pinfo, offset)
	local key = key_of(tvb, pinfo, offset)
	local connection, direction = connection_of(pinfo)
	if seen[key] then return seen[key], connection, direction end
	local record = { what = "frame" }
	if pinfo.visited then
		-- the first pass saw this packet before the key was whole
		return record, connection, direction
	end
	if direction.dead then
		record.what = "rest"
	elseif direction.started then
		record.what = "fpdu"
		for id, _ in pairs(connection.markers_for or {}) do
			if id ~= direction.id then record.what = "rest" end
		end
	end
	seen[key] = record
	return record, connection, direction
end

-- Each of these functions returns the number of bytes taken and a summary; or nil and the number of
-- missing bytes; or nil and a text if the capture does not have the bytes
local take = {}

function take.frame(tree, pinfo, tvb, offset, record, connection, direction)
	local there = tvb:len() - offset
	if not is_key_prefix(tvb, offset) and there < HEADER_SIZE then
		tree:add(mpa, tvb(offset, there), "MPA: no key"):add(fields.problem, "unknown key"):set_generated()
			:add_proto_expert_info(experts.problem, "unknown key")
		direction.started, direction.dead = true, true
		return there, "MPA frame? [unknown key]"
	end
	if there < HEADER_SIZE then return nil, DESEGMENT_ONE_MORE_SEGMENT end
	local frame = record.frame or parse_frame(tvb, offset)
	local size = HEADER_SIZE + frame.pd_length
	if frame.pd_length > MAX_PRIVATE_DATA or not frame.kind then
		-- a receiver closes the connection after the header alone
		size = math.min(size, there)
	elseif size > there then
		return nil, size - there, frame_summary(frame)
	end
	if not record.notes then
		record.frame = frame
		record.notes = note_frame(connection, direction, frame)
	end
	show_frame(tree, tvb, offset, size, frame, record.notes)
	return size, frame_summary(frame)
end

function take.fpdu(tree, pinfo, tvb, offset, record, connection, direction)
	local there = tvb:len() - offset
	if there < 2 then return nil, DESEGMENT_ONE_MORE_SEGMENT end
	local length = tvb(offset, 2):uint()
	local covered = padded(2 + length)
	if covered + 4 > there then return nil, covered + 4 - there end
	if not record.ulpdu then
		record.ulpdu = parse_ulpdu(tvb, offset + 2, length)
		record.ulpdu.is_rtr = is_rtr(record.ulpdu, tvb, offset + 2)
		record.crc = crc_status(tvb, offset, covered, connection.crc)
		record.notes, record.rtr = note_fpdu(connection, direction, record.ulpdu)
	end
	return covered + 4, show_fpdu(tree, pinfo, tvb, offset, record)
end

function take.rest(tree, _, tvb, offset)
	local range = tvb(offset, tvb:len() - offset)
	tree:add(mpa, range, "MPA: not decoded"):add(fields.rest, range)
	return range:len(), "not decoded"
end

function mpa.dissector(tvb, pinfo, tree)
	local offset, summaries = 0, {}
	while offset < tvb:len() do
		local record, connection, direction = record_of(tvb, pinfo, offset)
		local size, more, partial = take[record.what](tree, pinfo, tvb, offset, record, connection, direction)
		if not size then
			if record.what == "frame" then
				show_partial(tree, tvb, offset, "part of " .. (partial or "a frame's header"))
			end
			ask_for(pinfo, offset, more)
			break
		end
		offset = offset + size
		summaries[#summaries + 1] = more
	end
	pinfo.cols.protocol = "MPA"
	if #summaries > 0 then pinfo.cols.info = table.concat(summaries, "; ") end
	return tvb:len()
end

-- Do these bytes, fewer than a key, begin a direction?
local function begins_a_key(tvb, pinfo)
	local key = "begin " .. key_of(tvb, pinfo, 0)
	if not pinfo.visited then
		local _, direction = connection_of(pinfo)
		seen[key] = not direction.begun and is_key_prefix(tvb, 0)
		direction.begun = not seen[key]
	end
	return seen[key]
end

-- A connection is ours if either direction begins with a key
local function heuristic(tvb, pinfo, tree)
	if tvb:len() == 0 then return false end
	if tvb:len() < KEY_SIZE then
		if not begins_a_key(tvb, pinfo) then return false end
		ask_for(pinfo, 0, DESEGMENT_ONE_MORE_SEGMENT)
		return true
	end
	if not is_key_prefix(tvb, 0) then return false end
	pinfo.conversation = mpa
	mpa.dissector(tvb, pinfo, tree)
	return true
end

mpa:register_heuristic("tcp", heuristic)
DissectorTable.get("tcp.port"):add_for_decode_as(mpa)
