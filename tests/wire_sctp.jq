# SPDX-License-Identifier: GPL-2.0
#
# Claims about sessions in the output of sctpwire.py, under the names that wire.jq has for
# connections of TCP. Each function gives a list of faults as text, empty if there are none. Expected
# values come from RFC 5043 and RFC 6581 section 7; the names in capitals are rows of the project's
# conformance matrix.

def must(condition; $text): if condition then empty else $text end;

def frames: [.events[] | select(.type == "frame")];
def fpdus: [.events[] | select(.type == "fpdu")];

# "initiator write", "responder send", …
def steps: [.events[] | "\(.from) \(.kind // .type)"];

def terminates: [frames[] | select(.kind == "terminate")];

# Each direction begins with its message, and no segment comes between the two (SCT-03, SC-06)
def messages_first:
	must(.events[0].from == "initiator" and .events[0].kind == "request";
	     "SC-06: the first thing is \(steps[0]), not the Initiate"),
	must(.events[1].from == "responder" and .events[1].kind == "reply";
	     "SC-06: behind the Initiate comes \(steps[1]), not the answer"),
	must(frames - terminates | length == 2; "there are \(frames | length) session control messages");

# AMB-22: over SCTP the client-server model is the default. INI-06: its flags are 0
def initiate_is_ours:
	must(.code == 5; "SCT-01: the Initiate has code \(.code)"),
	must(.p2p | not; "AMB-22: the Initiate has A=1"),
	must(.rtr == []; "INI-06: the Initiate has RTR flags \(.rtr)");

def accept_follows($request):
	must(.code == 6; "SCT-18: code \(.code) answers 5"),
	must(.p2p | not; "RSP-06: A of the Accept is 1"),
	must($request.ird == 16383 or .ord <= $request.ird;
	     "SCT-20: the responder's ORD \(.ord) is above the initiator's IRD \($request.ird)"),
	must($request.ord == 16383 or .ird >= $request.ord;
	     "SCT-20: the responder's IRD \(.ird) is below the initiator's ORD \($request.ord)");

def ends_with_terminate:
	must(terminates | length >= 1; "SC-07: nobody sends a Terminate");

def default_setup:
	messages_first,
	(.events[0] | initiate_is_ours),
	(.events[0] as $request | .events[1] | accept_follows($request)),
	must([fpdus[] | select(.kind == "write" and .len == 0)] == []; "RTR-30: there is an RTR"),
	ends_with_terminate;

def rejected:
	messages_first,
	(.events[0] | initiate_is_ours),
	must(.events[1].code == 7; "SCT-08: code \(.events[1].code) answers 5"),
	must(fpdus == []; "SCT-16: there are segments after a reject");

def pdata($request; $reply):
	must(.events[0].pdata_len == $request; "the Initiate has \(.events[0].pdata_len) bytes of private data, not \($request)"),
	must(.events[1].pdata_len == $reply; "the answer has \(.events[1].pdata_len) bytes of private data, not \($reply)");

def order($wanted):
	[fpdus[] | "\(.from) \(.kind)"][:$wanted | length] as $found
	| must($found == $wanted; "the segments begin with \($found), not \($wanted)");

# claim: the name of a function above
def judge(claim; $count):
	must(length == $count; "\(length) sessions in the capture, not \($count)"),
	(.[] | .initiator as $who | (.faults[], claim) | "\($who): \(.)");
