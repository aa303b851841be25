-- SPDX-License-Identifier: GPL-2.0
--
-- Wireshark dissector for RPC-over-RDMA version two (draft-cel-nfsv4-rpcrdma-version-two-01), over iWARP
-- and InfiniBand. Messages of version one are left to Wireshark's own rpcordma, which knows no other.
--
--     tshark -X lua_script:rpcrdma2.lua -r nfs.pcap -Y rpcrdma2
--
-- A later draft gives the number 2 to another header, which this dissector takes for malformed.

local rpcrdma2 = Proto("rpcrdma2", "RPC-over-RDMA version two")

local VERSION = 2
local PREFIX_SIZE = 16
local MSG, NOMSG, ERROR, OPTIONAL = 0, 1, 4, 5
local ERR_VERS = 1
-- 2 and 3 are version one's MSGP and DONE: messages that use them are shown as malformed
local MAX_PROC = 5

local PROC = { [MSG] = "MSG", [NOMSG] = "NOMSG", [ERROR] = "ERROR", [OPTIONAL] = "OPTIONAL" }
local DIRECTION = { [0] = "call", [1] = "reply" }
local ERRCODE = { [ERR_VERS] = "VERS", [2] = "BAD_HEADER", [3] = "INVALID_OPTION" }

local fields = {
	xid = ProtoField.uint32("rpcrdma2.xid", "XID", base.HEX),
	vers = ProtoField.uint32("rpcrdma2.vers", "Version"),
	credit = ProtoField.uint32("rpcrdma2.credit", "Credits"),
	proc = ProtoField.uint32("rpcrdma2.proc", "Procedure", base.DEC, PROC),
	direction = ProtoField.uint32("rpcrdma2.direction", "Direction", base.DEC, DIRECTION),
	read = ProtoField.none("rpcrdma2.read", "Read segment"),
	position = ProtoField.uint32("rpcrdma2.position", "Position"),
	write = ProtoField.none("rpcrdma2.write", "Write chunk"),
	reply = ProtoField.none("rpcrdma2.reply", "Reply chunk"),
	segment = ProtoField.none("rpcrdma2.segment", "Segment"),
	handle = ProtoField.uint32("rpcrdma2.handle", "Handle", base.HEX),
	length = ProtoField.uint32("rpcrdma2.length", "Length"),
	offset = ProtoField.uint64("rpcrdma2.offset", "Offset", base.HEX),
	err = ProtoField.uint32("rpcrdma2.err", "Error", base.DEC, ERRCODE),
	low = ProtoField.uint32("rpcrdma2.vers_low", "Lowest version"),
	high = ProtoField.uint32("rpcrdma2.vers_high", "Highest version"),
	opttype = ProtoField.uint32("rpcrdma2.opttype", "Option"),
	optinfo = ProtoField.bytes("rpcrdma2.optinfo", "Data of the option"),
	payload = ProtoField.bytes("rpcrdma2.payload", "RPC message"),
	problem = ProtoField.string("rpcrdma2.problem", "Malformed"),
}
rpcrdma2.fields = fields

local malformed = ProtoExpert.new("rpcrdma2.expert.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
rpcrdma2.experts = { malformed }

-- Ends the header at whatever makes the rest unreadable; a table, so that it is no error of ours
local function give_up(problem)
	error({ problem = problem })
end

-- The next bytes of a header
local function take(header, size, what)
	if header.tvb:len() - header.at < size then give_up(what .. " cut off") end
	header.at = header.at + size
	return header.tvb(header.at - size, size)
end

local function take_word(header, tree, field, what)
	local range = take(header, 4, what)
	tree:add(field, range)
	return range:uint()
end

local function take_boolean(header, what)
	local value = take(header, 4, what):uint()
	if value > 1 then give_up(what .. ": a value that is no boolean") end
	return value == 1
end

local function take_direction(header, tree)
	local direction = take_word(header, tree, fields.direction, "direction")
	if not DIRECTION[direction] then give_up("unknown direction") end
	header.direction = direction
	header.summary = header.summary .. " " .. DIRECTION[direction]
end

local function take_segment(header, tree, what)
	local range = take(header, 16, what)
	local segment = tree:add(fields.segment, range)
	segment:add(fields.handle, range(0, 4))
	segment:add(fields.length, range(4, 4))
	segment:add(fields.offset, range(8, 8))
end

-- A Write or Reply chunk: counted segments
local function take_chunk(header, tree, field, what)
	local start = header.at
	local count = take(header, 4, what):uint()
	if count > (header.tvb:len() - header.at) / 16 then give_up(what .. " cut off") end
	local chunk = tree:add(field, header.tvb(start, 4 + 16 * count))
	chunk:append_text(": " .. count .. " segments")
	for _ = 1, count do take_segment(header, chunk, what) end
end

local function count_entries(header, what, take_entry)
	local count = 0
	while take_boolean(header, what) do
		take_entry()
		count = count + 1
	end
	if count > 0 then header.summary = header.summary .. ", " .. what .. " " .. count end
end

local function take_chunks(header, tree)
	take_direction(header, tree)
	count_entries(header, "Read list", function()
		local read = tree:add(fields.read, header.tvb(header.at))
		take_word(header, read, fields.position, "Read list")
		take_segment(header, read, "Read list")
		read:set_len(20)
	end)
	count_entries(header, "Write list", function()
		take_chunk(header, tree, fields.write, "Write list")
	end)
	if take_boolean(header, "Reply chunk") then
		take_chunk(header, tree, fields.reply, "Reply chunk")
		header.summary = header.summary .. ", Reply chunk"
	end
end

local function take_error(header, tree)
	local code = take_word(header, tree, fields.err, "error")
	if not ERRCODE[code] then give_up("unknown error") end
	header.summary = header.summary .. " " .. ERRCODE[code]
	if code ~= ERR_VERS then return end
	local low = take_word(header, tree, fields.low, "range")
	local high = take_word(header, tree, fields.high, "range")
	header.summary = header.summary .. " " .. low .. "-" .. high
	if low > high then give_up("an empty range") end
end

local function take_option(header, tree)
	take_direction(header, tree)
	header.summary = header.summary .. " option " .. take_word(header, tree, fields.opttype, "option")
	local size = take(header, 4, "option"):uint()
	local range = take(header, math.floor((size + 3) / 4) * 4, "option")
	if size > 0 then tree:add(fields.optinfo, range(0, size)) end
end

local BODY = { [MSG] = take_chunks, [NOMSG] = take_chunks, [ERROR] = take_error, [OPTIONAL] = take_option }

-- Whether what follows the header is as its procedure wants it (section 4.2.1 and 4.2.2)
local function check_payload(header, proc, xid)
	local rest = header.tvb:len() - header.at
	if proc == ERROR and rest > 0 then give_up("an RPC message behind an ERROR") end
	if proc ~= MSG then return end
	if rest < 8 then give_up("no RPC message") end
	if header.tvb(header.at, 4):uint() ~= xid then give_up("another XID than the RPC message's") end
	if header.tvb(header.at + 4, 4):uint() ~= header.direction then
		give_up("another direction than the RPC message's")
	end
end

local function take_header(header, tree)
	local xid = take_word(header, tree, fields.xid, "header")
	take_word(header, tree, fields.vers, "header")
	take_word(header, tree, fields.credit, "header")
	local proc = take_word(header, tree, fields.proc, "header")
	if not PROC[proc] then
		header.summary = "procedure " .. proc
		give_up("unknown procedure")
	end
	header.summary = PROC[proc]
	BODY[proc](header, tree)
	header.whole = true
	check_payload(header, proc, xid)
end

local rpc

function rpcrdma2.dissector(tvb, pinfo, tree)
	local item = tree:add(rpcrdma2, tvb())
	local header = { tvb = tvb, at = 0, summary = "" }
	local good, problem = pcall(take_header, header, item)
	local summary = "RPC-over-RDMA v2 " .. header.summary
	if not good then
		if type(problem) ~= "table" then error(problem, 0) end
		summary = summary .. " [" .. problem.problem .. "]"
		item:add(fields.problem, problem.problem):set_generated():add_proto_expert_info(malformed, problem.problem)
	end
	item:set_text(summary)
	pinfo.cols.protocol = "RPC-RDMA2"
	pinfo.cols.info = summary
	if header.whole and header.at < tvb:len() then
		item:add(fields.payload, tvb(header.at))
		rpc = rpc or Dissector.get("rpc")
		pinfo.cols.info:append("; ")
		pinfo.cols.info:fence()
		-- it throws where chunks have taken parts of the message away
		if good then pcall(rpc.call, rpc, tvb(header.at):tvb(), pinfo, tree) end
	end
	return tvb:len()
end

local function heuristic(tvb, pinfo, tree)
	if tvb:len() < PREFIX_SIZE or tvb(4, 4):uint() ~= VERSION or tvb(12, 4):uint() > MAX_PROC then return false end
	rpcrdma2.dissector(tvb, pinfo, tree)
	return true
end

rpcrdma2:register_heuristic("iwarp_ddp_rdmap", heuristic)
rpcrdma2:register_heuristic("infiniband.payload", heuristic)
