# SPDX-License-Identifier: GPL-2.0
#
# Claims about connections in the output of `mpapeer decode --json`. Each function gives a list of
# faults as text, empty if there are none. Expected values come from RFC 6581; the names in capitals
# are rows of the project's conformance matrix.

def must(condition; $text): if condition then empty else $text end;

def frames: [.events[] | select(.type == "frame")];
def fpdus: [.events[] | select(.type == "fpdu")];

# "initiator write", "responder send", …
def steps: [.events[] | "\(.from) \(.kind // .type)"];

def is_zero_write: .type == "fpdu" and .kind == "write" and .len == 0;

# Each direction begins with its frame, and nothing comes between the two frames (INI-01, INI-02, RSP-01)
def frames_first:
	must(.events[0].from == "initiator" and .events[0].kind == "request";
	     "INI-01: the first thing is \(steps[0]), not the Request"),
	must(.events[1].from == "responder" and .events[1].kind == "reply";
	     "INI-02: behind the Request comes \(steps[1]), not the Reply"),
	must(frames | length == 2; "there are \(frames | length) MPA frames"),
	(.events[] | select(.type == "gap" or .type == "partial" or .type == "markers")
		| "\(.type) from the \(.from) (\(.bytes // 0) bytes)");

def frame_is_clean($row):
	must(.problems == []; "\($row): the \(.kind) has problems: \(.problems)"),
	must(.rev == 2; "FRM-10: the \(.kind) is of revision \(.rev)"),
	must(.enhanced; "\($row): the \(.kind) has S=0"),
	must(.res == 0; "FRM-11: the \(.kind) has reserved bits"),
	must(.markers | not; "the \(.kind) asks for markers"),
	must(.pd_length == 4 + .pdata_len and .bytes == 20 + .pd_length;
	     "FRM-02, FRM-04: PD_Length \(.pd_length) of the \(.kind) with \(.pdata_len) bytes of private data, \(.bytes) in all");

# Our initiator's default Request: peer-to-peer, RTR by Write or Read
def request_is_ours:
	frame_is_clean("FRM-08"),
	must(.reject | not; "FRM-07: the Request has R=1"),
	must(.p2p; "INI-04: the Request has A=0"),
	must(.rtr == ["write", "read"]; "INI-05: the Request offers \(.rtr), not Write and Read");

def reply_follows($request):
	frame_is_clean("RSP-03"),
	must(.p2p == $request.p2p; "RSP-06: A of the Reply is \(.p2p), that of the Request \($request.p2p)"),
	must(.p2p or .rtr == []; "RSP-07: a Reply with A=0 has RTR flags \(.rtr)");

def accept_follows($request):
	reply_follows($request),
	must(.reject | not; "the Reply rejects"),
	must($request.ird == 16383 or .ord <= $request.ird;
	     "IRD-02: the responder's ORD \(.ord) is above the initiator's IRD \($request.ird)"),
	must($request.ord == 16383 or .ird >= $request.ord;
	     "IRD-03: the responder's IRD \(.ird) is below the initiator's ORD \($request.ord)");

# Our responder takes both kinds that our initiator offers (RSP-08); it may list more (RSP-11)
def accept_is_ours:
	must((["write", "read"] - .rtr) == []; "RSP-08: the Reply has RTR flags \(.rtr), without Write and Read");

# Write is preferred (RTR-15), and costs the ULP nothing. By the RFC the STag is not checked (RTR-22),
# but some adapters refuse STag 0.
def rtr_is_write:
	(.events[2] // {}) as $rtr
	| must($rtr.from == "initiator" and ($rtr | is_zero_write);
	       "RTR-06, INI-11, RSP-14: behind the Reply comes \(steps[2]), not the initiator's RTR by Write"),
	must($rtr.bytes == 20 and $rtr.ulpdu_length == 14 and $rtr.last and $rtr.stag != 0;
	     "RTR-18: the RTR is \($rtr.hex)"),
	must([.events[] | select(.from == "initiator" and is_zero_write)] | length == 1;
	     "RTR-14: there are several RTRs"),
	(fpdus[] | select(.crc == "bad") | "FRM-06: the \(.from)'s \(.kind) has a bad CRC");

def peer_to_peer:
	frames_first,
	(.events[0] | request_is_ours),
	(.events[0] as $request | .events[1] | accept_follows($request), accept_is_ours),
	rtr_is_write;

# With the settings that our devices are made with: on TCP the peer-to-peer model
def default_setup: peer_to_peer;

# One of the two is not ours: the rules of RFC 6581 for both
def peer_to_peer_interop:
	frames_first,
	must(.events[0].p2p; "the Request has A=0"),
	(.events[0] as $request | .events[1] | accept_follows($request)),
	rtr_is_write;

# The provider sends no RTR (RTR-30): the first FPDU comes from the initiator's ULP (RSP-14)
def client_server_interop:
	frames_first,
	must(.events[0].enhanced and (.events[0].p2p | not); "the Request is not an enhanced one with A=0"),
	(.events[0] as $request | .events[1] | accept_follows($request)),
	must(fpdus[0].from == "initiator"; "RSP-14: the first FPDU is the responder's"),
	must([fpdus[] | select(is_zero_write)] == []; "RTR-30: there is an RTR");

def rejected:
	frames_first,
	(.events[0] | request_is_ours),
	(.events[0] as $request | .events[1] | reply_follows($request)),
	must(.events[1].reject; "FRM-07: the Reply has R=0"),
	must(fpdus == []; "INI-09, RTR-10: there are FPDUs after a reject");

def pd_length($request; $reply):
	must(.events[0].pd_length == $request; "PD_Length of the Request is \(.events[0].pd_length), not \($request)"),
	must(.events[1].pd_length == $reply; "PD_Length of the Reply is \(.events[1].pd_length), not \($reply)");

def pdata($request; $reply): pd_length(4 + $request; 4 + $reply);

def order($wanted):
	[fpdus[] | "\(.from) \(.kind)"][:$wanted | length] as $found
	| must($found == $wanted; "the FPDUs begin with \($found), not \($wanted)");

# claim: the name of a function above
def judge(claim; $count):
	must(length == $count; "\(length) MPA connections in the capture, not \($count)"),
	(.[] | .initiator as $who | claim | "\($who): \(.)");
