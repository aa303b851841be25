-- SPDX-License-Identifier: GPL-2.0
--
-- Wireshark dissector for iWARP over SCTP (RFC 5043): session control messages with the enhanced ones
-- of RFC 6581 section 7, and DDP segments, which Wireshark's own DDP/RDMAP dissector decodes. SCTP
-- shows both as mere data without it.
--
--     tshark -X lua_script:iw_sctp.lua -r setup.pcap -Y iw_sctp

local control = Proto("iw_sctp", "iWARP over SCTP: session control (RFC 5043)")
-- A protocol of its own: a dissector is not told the PPID that it is called for
local segment = Proto("iw_sctp_ddp", "iWARP over SCTP: DDP segment (RFC 5043)")

local PPID_SEGMENT = 16
local PPID_CONTROL = 17
local SSN_SIZE = 2
local HEADER_SIZE = 4
local WORD_SIZE = 4
local MAX_PRIVATE_DATA = 512
local NOT_NEGOTIATED = 0x3fff
local MIN_SEGMENT = 14

local TERMINATE = 4
local ENHANCED_REJECT = 7
local FUNCTION = { "Initiate", "Accept", "Reject", "Terminate", "Enhanced Initiate", "Enhanced Accept",
	"Enhanced Reject" }
local ENHANCED = { [5] = true, [6] = true, [7] = true }

local fields = {
	ssn = ProtoField.uint16("iw_sctp.ssn", "DDP-SSN"),
	code = ProtoField.uint16("iw_sctp.function", "Function", base.DEC, FUNCTION),
	word = ProtoField.uint32("iw_sctp.word", "Enhanced connection data", base.HEX),
	p2p = ProtoField.bool("iw_sctp.p2p", "A: peer-to-peer", 32, nil, 0x80000000),
	send = ProtoField.bool("iw_sctp.rtr.send", "B: RTR by zero-length Send", 32, nil, 0x40000000),
	ird = ProtoField.uint32("iw_sctp.ird", "IRD", base.DEC, nil, 0x3fff0000),
	write = ProtoField.bool("iw_sctp.rtr.write", "C: RTR by zero-length RDMA Write", 32, nil, 0x8000),
	read = ProtoField.bool("iw_sctp.rtr.read", "D: RTR by zero-length RDMA Read", 32, nil, 0x4000),
	ord = ProtoField.uint32("iw_sctp.ord", "ORD", base.DEC, nil, 0x3fff),
	pdata = ProtoField.bytes("iw_sctp.pdata", "Private data of the ULP"),
	problem = ProtoField.string("iw_sctp.problem", "Malformed"),
}
control.fields = fields

local malformed = ProtoExpert.new("iw_sctp.expert.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
control.experts = { malformed }

local function rest_of(tvb, offset)
	return tvb(offset, tvb:len() - offset)
end

local function depth(value)
	return value == NOT_NEGOTIATED and "ulp" or tostring(value)
end

local function word_summary(word)
	local function has(bits) return bit.band(word, bits) ~= 0 end
	local names = {}
	if has(0x40000000) then names[#names + 1] = "send" end
	if has(0x8000) then names[#names + 1] = "write" end
	if has(0x4000) then names[#names + 1] = "read" end
	local rtr = #names > 0 and table.concat(names, ",") or "none"
	return (has(0x80000000) and " peer-to-peer RTR " .. rtr or " client-server")
		.. " IRD " .. depth(bit.band(bit.rshift(word, 16), 0x3fff)) .. " ORD " .. depth(bit.band(word, 0x3fff))
end

-- Sizes are those of a message's private data, the enhanced word included
local function problem_of(code, size)
	if not FUNCTION[code] then return "unknown function code" end
	if code == TERMINATE and size > 0 then return "private data in a Terminate" end
	if size > MAX_PRIVATE_DATA then return "private data too long" end
	-- RFC 6581 does not say whether a reject has the word: it may be absent, but not in part
	if ENHANCED[code] and size < WORD_SIZE and (code ~= ENHANCED_REJECT or size > 0) then
		return "enhanced word missing"
	end
end

local function add_problem(tree, problem)
	tree:add(fields.problem, problem):set_generated():add_proto_expert_info(malformed, problem)
	return " [" .. problem .. "]"
end

local function show_control(tree, tvb)
	tree:add(fields.ssn, tvb(0, SSN_SIZE))
	if tvb:len() < HEADER_SIZE then return "Session control" .. add_problem(tree, "no function code") end
	local code = tvb(SSN_SIZE, 2):uint()
	local size = tvb:len() - HEADER_SIZE
	local summary = FUNCTION[code] or "Function " .. code
	tree:add(fields.code, tvb(SSN_SIZE, 2))
	local at = HEADER_SIZE
	if ENHANCED[code] and size >= WORD_SIZE then
		local range = tvb(at, WORD_SIZE)
		local word = tree:add(fields.word, range)
		for _, name in ipairs({ "p2p", "send", "ird", "write", "read", "ord" }) do
			word:add(fields[name], range)
		end
		summary = summary .. word_summary(range:uint())
		at = at + WORD_SIZE
	end
	if at < tvb:len() then tree:add(fields.pdata, rest_of(tvb, at)) end
	local problem = problem_of(code, size)
	return problem and summary .. add_problem(tree, problem) or summary
end

local ddp_rdmap

local function show_segment(tree, tvb)
	tree:add(fields.ssn, tvb(0, SSN_SIZE))
	local summary = "DDP segment " .. tvb(0, SSN_SIZE):uint()
	if tvb:len() - SSN_SIZE >= MIN_SEGMENT then return summary end
	return summary .. add_problem(tree, "shorter than a DDP header")
end

local function show(proto, tvb, pinfo, tree, show_chunk)
	local item = tree:add(proto, tvb())
	local summary = tvb:len() < SSN_SIZE and "No DDP-SSN" .. add_problem(item, "no DDP-SSN") or show_chunk(item, tvb)
	item:set_text("iWARP over SCTP: " .. summary)
	pinfo.cols.protocol = "iWARP"
	pinfo.cols.info = summary
end

function control.dissector(tvb, pinfo, tree)
	show(control, tvb, pinfo, tree, show_control)
	return tvb:len()
end

function segment.dissector(tvb, pinfo, tree)
	show(segment, tvb, pinfo, tree, show_segment)
	if tvb:len() >= SSN_SIZE + MIN_SEGMENT then
		pinfo.cols.info:append("; ")
		pinfo.cols.info:fence()
		ddp_rdmap = ddp_rdmap or Dissector.get("iwarp_ddp_rdmap")
		-- it throws at a header that is cut off
		pcall(ddp_rdmap.call, ddp_rdmap, rest_of(tvb, SSN_SIZE):tvb(), pinfo, tree)
	end
	return tvb:len()
end

local ppids = DissectorTable.get("sctp.ppi")
ppids:add(PPID_SEGMENT, segment)
ppids:add(PPID_CONTROL, control)
