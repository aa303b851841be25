/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * MPA (RFC 5044) connection setup with the enhancements of RFC 6581 ("MPA v2"):
 * the one header that an iWARP driver includes.
 *
 * Layers, each usable without those above it, dependencies pointing down:
 *
 *   device      policies of devices and ports, counters, netlink
 *   session     one connection's state machine, driven by the driver
 *   negotiate   pure decisions on control messages
 *   frame       bytes <-> struct
 *
 * IDs in comments, such as IRD-13, are names of RFC 6581's rules that tests
 * carry as well; AMB stands for a reading where the RFC is silent.
 */
#ifndef _RDMA_IW_MPA_H
#define _RDMA_IW_MPA_H

#include <linux/bits.h>
#include <linux/in6.h>
#ifdef __KERNEL__
#include <linux/socket.h>
#endif
#include <linux/types.h>
#include <uapi/rdma/rdma_mpa.h>

/* RFC 5044 section 7.1.1, RFC 6581 sections 6 and 9: sizes in bytes */
enum iw_mpa_sizes {
	IW_MPA_KEY_LEN		= 16,
	IW_MPA_HDR_LEN		= 20,	/* key, flags, Rev, PD_Length */
	IW_MPA_ENH_LEN		= 4,	/* enhanced connection data */
	IW_MPA_PDATA_MAX	= 512,	/* all Private Data of a frame */
	IW_MPA_FRAME_MAX	= IW_MPA_HDR_LEN + IW_MPA_PDATA_MAX,
};

/* IRD and ORD on the wire: 14 bit (RFC 6581 section 9.1) */
#define IW_MPA_DEPTH_MAX	0x3ffe	/* largest count */
#define IW_MPA_DEPTH_ULP	0x3fff	/* not a count: the ULP manages it */

/**
 * enum iw_mpa_rtr - kinds of Ready-to-Receive message, a bit mask
 * @IW_MPA_RTR_SEND: zero-length Send (control flag B)
 * @IW_MPA_RTR_WRITE: zero-length RDMA Write (control flag C)
 * @IW_MPA_RTR_READ: zero-length RDMA Read (control flag D)
 * @IW_MPA_RTR_ALL: every kind
 *
 * RFC 6581 section 9.2.
 */
enum iw_mpa_rtr {
	IW_MPA_RTR_SEND		= BIT(0),
	IW_MPA_RTR_WRITE	= BIT(1),
	IW_MPA_RTR_READ		= BIT(2),
	IW_MPA_RTR_ALL		= BIT(3) - 1,
};

/**
 * enum iw_mpa_ecode - MPA error codes, carried under layer 2, error type 0
 * @IW_MPA_ECODE_NONE: no error
 * @IW_MPA_ECODE_CLOSED: TCP closed, terminated or lost; never on the wire
 * @IW_MPA_ECODE_CRC: CRC of an FPDU does not match
 * @IW_MPA_ECODE_FPDU_START: marker and ULPDU_Length disagree
 * @IW_MPA_ECODE_BAD_FRAME: invalid Request or Reply; never on the wire
 * @IW_MPA_ECODE_LOCAL: local catastrophic
 * @IW_MPA_ECODE_IRD: insufficient IRD resources
 * @IW_MPA_ECODE_RTR: no matching RTR option
 *
 * RFC 5044 section 8, RFC 6581 section 8.
 */
enum iw_mpa_ecode {
	IW_MPA_ECODE_NONE	= 0,
	IW_MPA_ECODE_CLOSED	= 1,
	IW_MPA_ECODE_CRC	= 2,
	IW_MPA_ECODE_FPDU_START	= 3,
	IW_MPA_ECODE_BAD_FRAME	= 4,
	IW_MPA_ECODE_LOCAL	= 5,
	IW_MPA_ECODE_IRD	= 6,
	IW_MPA_ECODE_RTR	= 7,
};

/* ------------------------------------------------------------------ frame */

enum iw_mpa_kind {
	IW_MPA_REQUEST,
	IW_MPA_REPLY,
};

/**
 * enum iw_mpa_dialect - which bits of the enhanced word mean what
 * @IW_MPA_RFC6581: A = peer-to-peer, B = Send, C = Write, D = Read
 * @IW_MPA_EARLY_DRAFT: A = Send, B = Write, C = Read, D reserved; no
 *	connection-model bit, a kind being set stands for peer-to-peer
 *
 * The wire cannot tell them apart: chosen by policy, never guessed.
 */
enum iw_mpa_dialect {
	IW_MPA_RFC6581,
	IW_MPA_EARLY_DRAFT,
};

/**
 * struct iw_mpa_enh - enhanced connection data, host byte order
 * @ird: inbound RDMA Read depth, 0..0x3ffe or %IW_MPA_DEPTH_ULP
 * @ord: outbound RDMA Read depth, 0..0x3ffe or %IW_MPA_DEPTH_ULP
 * @rtr: mask of enum iw_mpa_rtr; 0 unless @p2p (RFC 6581 section 9.2)
 * @p2p: peer-to-peer connection model
 */
struct iw_mpa_enh {
	u16 ird;
	u16 ord;
	u8 rtr;
	bool p2p;
};

/**
 * struct iw_mpa_frame - an MPA Request or Reply, host byte order
 * @kind: Request or Reply
 * @rev: MPA revision, 0..2
 * @markers: M, the sender wants markers in what it receives
 * @crc: C, the sender wants CRCs
 * @reject: R; always false in a Request
 * @enhanced: S under Rev 2 and a whole block was there; @enh is valid
 * @block_missing: a Reply with R and S whose Private Data is shorter than the
 *	block. It is a plain reject (AMB-03); @enhanced is false, @pdata_len 0.
 * @enh: enhanced connection data, all zero unless @enhanced
 * @pdata_len: length of the ULP's private data: 0..508 bytes if @enhanced,
 *	else 0..512
 * @pdata: the ULP's private data; points into the parsed buffer
 */
struct iw_mpa_frame {
	enum iw_mpa_kind kind;
	u8 rev;
	bool markers;
	bool crc;
	bool reject;
	bool enhanced;
	bool block_missing;
	struct iw_mpa_enh enh;
	u16 pdata_len;
	const u8 *pdata;
};

/**
 * enum iw_mpa_parse - what iw_mpa_frame_parse() found
 * @IW_MPA_FRAME_COMPLETE: a whole valid frame and nothing else
 * @IW_MPA_FRAME_NEED_MORE: a valid prefix
 * @IW_MPA_FRAME_TRAILING: a whole valid frame with more bytes behind it
 * @IW_MPA_FRAME_BAD_KEY: not the key of the expected kind
 * @IW_MPA_FRAME_BAD_REV: a revision other than 0, 1 and 2
 * @IW_MPA_FRAME_PDATA_TOO_LONG: PD_Length above 512
 * @IW_MPA_FRAME_BLOCK_MISSING: S under Rev 2, but no room for the block
 * @IW_MPA_FRAME_RESULTS: number of results
 */
enum iw_mpa_parse {
	IW_MPA_FRAME_COMPLETE,
	IW_MPA_FRAME_NEED_MORE,
	IW_MPA_FRAME_TRAILING,
	IW_MPA_FRAME_BAD_KEY,
	IW_MPA_FRAME_BAD_REV,
	IW_MPA_FRAME_PDATA_TOO_LONG,
	IW_MPA_FRAME_BLOCK_MISSING,
	IW_MPA_FRAME_RESULTS,
};

enum iw_mpa_parse iw_mpa_frame_parse(enum iw_mpa_kind kind,
				     enum iw_mpa_dialect dialect,
				     const void *buf, size_t len,
				     struct iw_mpa_frame *frame, size_t *need);
int iw_mpa_frame_build(const struct iw_mpa_frame *frame,
		       enum iw_mpa_dialect dialect, void *buf, size_t size);
u32 iw_mpa_enh_pack(const struct iw_mpa_enh *enh, enum iw_mpa_dialect dialect);
void iw_mpa_enh_unpack(u32 word, enum iw_mpa_dialect dialect,
		       struct iw_mpa_enh *enh);
const char *iw_mpa_parse_str(enum iw_mpa_parse result);

/* -------------------------------------------------------------- negotiate */

/**
 * struct iw_mpa_msg - what a control message says, whatever carried it
 * @enhanced: enhanced connection data is present, @enh is valid
 * @reject: a Reply that rejects
 * @enh: enhanced connection data
 *
 * MPA frames and SCTP session control chunks (RFC 6581 section 7) both boil
 * down to this.
 */
struct iw_mpa_msg {
	bool enhanced;
	bool reject;
	struct iw_mpa_enh enh;
};

/**
 * struct iw_mpa_caps - what a device can do
 * @max_ird: largest inbound RDMA Read depth
 * @max_ord: largest outbound RDMA Read depth
 * @rtr_send: kinds of RTR it can send, mask of enum iw_mpa_rtr
 * @rtr_recv: kinds of RTR it recognises, mask of enum iw_mpa_rtr, not empty
 * @pow2_depths: it rounds depths up to a power of two when it installs them;
 *	negotiation then settles on values that survive this. @max_ird and
 *	@max_ord are powers of two then.
 * @tx_markers: it can put markers into what it sends
 * @rx_markers: it can take markers in what it receives
 * @rtr_recv_one: it has to be told the one kind of RTR to expect; a
 *	responder's answer then lists only that one
 * @rtr_offload: it sees the peer's RTR itself, keeps transmit fenced until
 *	then, and tells nobody; for the ULP a responder is then connected when
 *	its Reply is sent
 * @no_crc: it cannot make and check CRCs
 * @fastopen: it can send a Request with TCP's SYN, and take one there
 */
struct iw_mpa_caps {
	u16 max_ird;
	u16 max_ord;
	u8 rtr_send;
	u8 rtr_recv;
	bool pow2_depths;
	bool tx_markers;
	bool rx_markers;
	bool rtr_recv_one;
	bool rtr_offload;
	bool no_crc;
	bool fastopen;
};

/**
 * enum iw_mpa_model - connection model
 * @IW_MPA_CLIENT_SERVER: the initiator speaks first
 * @IW_MPA_PEER_TO_PEER: ask for peer-to-peer; follow the peer as responder
 * @IW_MPA_PEER_TO_PEER_REQUIRED: do without the connection rather than
 *	without peer-to-peer
 */
enum iw_mpa_model {
	IW_MPA_CLIENT_SERVER,
	IW_MPA_PEER_TO_PEER,
	IW_MPA_PEER_TO_PEER_REQUIRED,
};

/**
 * enum iw_mpa_crc - when CRCs are used
 * @IW_MPA_CRC_OFF: never; a peer that asks for them is refused
 * @IW_MPA_CRC_IF_ASKED: if the peer asks
 * @IW_MPA_CRC_REQUIRED: always; the C bit is set in what we send
 */
enum iw_mpa_crc {
	IW_MPA_CRC_OFF,
	IW_MPA_CRC_IF_ASKED,
	IW_MPA_CRC_REQUIRED,
};

/**
 * struct iw_mpa_policy - what the administrator and the ULP want
 * @rev: revision of the Request, 1 or 2
 * @enhanced: use enhanced connection data; needs @rev 2. Without it a responder
 *	answers an enhanced Request with a close, as a peer does that knows
 *	RFC 5044 alone (IOP-03).
 * @model: connection model
 * @rtr_offer: kinds of RTR to offer as initiator, mask of enum iw_mpa_rtr
 * @rtr_accept: kinds of RTR to accept as responder, mask of enum iw_mpa_rtr
 * @rtr_order: every kind once, the preferred one first
 * @max_ird: ceiling of IRD, %IW_MPA_DEPTH_MAX for that of the device
 * @max_ord: ceiling of ORD, %IW_MPA_DEPTH_MAX for that of the device
 * @ird_ulp: the ULP manages IRD, leave it alone (0x3fff on the wire)
 * @ord_ulp: the ULP manages ORD, leave it alone (0x3fff on the wire)
 * @ord_strict: as responder reject a peer whose IRD is below our ORD
 *	(RFC 6581 section 9.1: MAY) instead of lowering our ORD
 * @crc: when CRCs are used
 * @markers: ask for markers in what we receive
 * @dialect: bit map of the enhanced word
 * @fallback: initiator: answer a close or reset before the first byte of a
 *	Reply by one more attempt with Rev 1, unless @model forbids
 * @fastopen: initiator: send the Request with TCP's SYN if it can be; listener:
 *	take it there. Without meaning where the device cannot.
 * @connect_ms: initiator: how long TCP may take to connect
 * @request_ms: responder: how long a peer may take to send its Request
 * @decide_ms: responder: how long the ULP may take to accept or reject
 * @rtr_ms: responder: how long a peer may take to send its RTR
 * @reply_ms: initiator: how long a peer may take to send its Reply
 *
 * Deadlines are in milliseconds, 1..%IW_MPA_DEADLINE_MAX.
 */
struct iw_mpa_policy {
	u8 rev;
	bool enhanced;
	enum iw_mpa_model model;
	u8 rtr_offer;
	u8 rtr_accept;
	u8 rtr_order[3];
	u16 max_ird;
	u16 max_ord;
	bool ird_ulp;
	bool ord_ulp;
	bool ord_strict;
	enum iw_mpa_crc crc;
	bool markers;
	enum iw_mpa_dialect dialect;
	bool fallback;
	bool fastopen;
	unsigned int connect_ms;
	unsigned int request_ms;
	unsigned int decide_ms;
	unsigned int rtr_ms;
	unsigned int reply_ms;
};

#define IW_MPA_DEADLINE_MAX	(3600 * 1000)

extern const struct iw_mpa_policy iw_mpa_default_policy;

/**
 * struct iw_mpa_layer - settings of one layer: all devices, a device, a port or
 *	a connection
 * @set: which settings the layer has, mask of BIT(enum rdma_mpa_policy)
 * @value: their values; the others have no meaning
 */
struct iw_mpa_layer {
	u32 set;
	struct iw_mpa_policy value;
};

int iw_mpa_layer_set(struct iw_mpa_layer *layer, enum rdma_mpa_policy setting,
		     u32 value);
int iw_mpa_layer_set_order(struct iw_mpa_layer *layer, const u8 *kinds,
			   size_t count);
int iw_mpa_layer_set_option(struct iw_mpa_layer *layer, int optname,
			    const void *optval, size_t optlen);
void iw_mpa_layer_apply(const struct iw_mpa_layer *layer,
			struct iw_mpa_policy *policy);
int iw_mpa_layer_check(const struct iw_mpa_layer *layer,
		       const struct iw_mpa_caps *caps, char *why, size_t size);
int iw_mpa_policy_explain(const struct iw_mpa_policy *policy,
			  const struct iw_mpa_caps *caps, char *why,
			  size_t size);
void iw_mpa_policy_limit(const struct iw_mpa_policy *policy,
			 struct iw_mpa_caps *caps);

/**
 * struct iw_mpa_local - the local side of a negotiation
 * @caps: the device
 * @policy: the policy in force for this connection
 * @ird: inbound RDMA Read depth that the ULP asks for
 * @ord: outbound RDMA Read depth that the ULP asks for
 */
struct iw_mpa_local {
	const struct iw_mpa_caps *caps;
	const struct iw_mpa_policy *policy;
	u32 ird;
	u32 ord;
};

/**
 * enum iw_mpa_verdict - how a negotiation ended
 * @IW_MPA_GO: enter RDMA mode
 * @IW_MPA_REJECTED: as initiator: the peer rejected; as responder: answer with
 *	the reject in @reply
 * @IW_MPA_TERMINATE: send a TERM message with @ecode, then end
 * @IW_MPA_DROP: end the connection without another byte
 */
enum iw_mpa_verdict {
	IW_MPA_GO,
	IW_MPA_REJECTED,
	IW_MPA_TERMINATE,
	IW_MPA_DROP,
};

/**
 * struct iw_mpa_decision - the outcome of a negotiation
 * @verdict: what to do
 * @status: 0 or the negative errno that the ULP is told
 * @ecode: why, in MPA terms
 * @ird: IRD to install
 * @ord: ORD in force for the ULP; see @read_slots
 * @read_slots: ORD to install: @ord, or 1 where an RTR by RDMA Read needs a
 *	slot that the ULP does not have (IRD-09)
 * @rtr: initiator: the one kind to send, 0 = none; responder: mask of the
 *	kinds to expect, 0 = client-server
 * @peer_known: @peer_ird and @peer_ord were in the peer's message
 * @peer_ird: the peer's IRD as sent, may be %IW_MPA_DEPTH_ULP
 * @peer_ord: the peer's ORD as sent, may be %IW_MPA_DEPTH_ULP
 * @reply: responder: what to answer
 */
struct iw_mpa_decision {
	enum iw_mpa_verdict verdict;
	int status;
	enum iw_mpa_ecode ecode;
	u16 ird;
	u16 ord;
	u16 read_slots;
	u8 rtr;
	bool peer_known;
	u16 peer_ird;
	u16 peer_ord;
	struct iw_mpa_msg reply;
};

int iw_mpa_policy_check(const struct iw_mpa_policy *policy,
			const struct iw_mpa_caps *caps);
int iw_mpa_make_request(const struct iw_mpa_local *local,
			struct iw_mpa_msg *request);
void iw_mpa_make_reject(const struct iw_mpa_local *local,
			const struct iw_mpa_msg *request,
			struct iw_mpa_msg *reply);
void iw_mpa_negotiate_initiator(const struct iw_mpa_local *local,
				const struct iw_mpa_msg *request,
				const struct iw_mpa_msg *reply,
				struct iw_mpa_decision *decision);
void iw_mpa_negotiate_responder(const struct iw_mpa_local *local,
				const struct iw_mpa_msg *request,
				struct iw_mpa_decision *decision);

/* ---------------------------------------------------------------- session */

/**
 * enum iw_mpa_state - states of a session
 * @IW_MPA_IDLE: nothing happened yet
 * @IW_MPA_CONNECTING: initiator: waits for TCP
 * @IW_MPA_REQ_SENT: initiator: waits for the Reply
 * @IW_MPA_REP_RCVD: initiator: is acting on the Reply
 * @IW_MPA_REQ_WAIT: responder: waits for the Request
 * @IW_MPA_REQ_RCVD: responder: waits for its ULP
 * @IW_MPA_REP_SENT: responder: is sending its Reply
 * @IW_MPA_RTR_WAIT: responder: waits for the RTR
 * @IW_MPA_RDMA: connected
 * @IW_MPA_CLOSED: over
 * @IW_MPA_STATES: number of states
 *
 * An initiator's RTR leaves while it enters RDMA mode, so that there is no
 * state in which it is still to be sent.
 */
enum iw_mpa_state {
	IW_MPA_IDLE,
	IW_MPA_CONNECTING,
	IW_MPA_REQ_SENT,
	IW_MPA_REP_RCVD,
	IW_MPA_REQ_WAIT,
	IW_MPA_REQ_RCVD,
	IW_MPA_REP_SENT,
	IW_MPA_RTR_WAIT,
	IW_MPA_RDMA,
	IW_MPA_CLOSED,
	IW_MPA_STATES,
};

/**
 * enum iw_mpa_next - what the driver does after an entry point returned
 * @IW_MPA_NEXT_WAIT: nothing; something is awaited
 * @IW_MPA_NEXT_FRAME: the frame is complete: take its bytes off the stream,
 *	then call iw_mpa_process()
 * @IW_MPA_NEXT_DONE: nothing; the connection is established
 * @IW_MPA_NEXT_CLOSE: flush what was sent, close the connection, free the
 *	endpoint. The ULP has been told what it had to be told.
 * @IW_MPA_NEXT_RECONNECT: drop the TCP connection and make a new one between
 *	the same addresses, then call iw_mpa_connected(). Only
 *	iw_mpa_peer_gone() asks for this, at most once a session, and only if
 *	the policy's fallback is set.
 */
enum iw_mpa_next {
	IW_MPA_NEXT_WAIT,
	IW_MPA_NEXT_FRAME,
	IW_MPA_NEXT_DONE,
	IW_MPA_NEXT_CLOSE,
	IW_MPA_NEXT_RECONNECT,
};

enum iw_mpa_event_type {
	IW_MPA_EVENT_REQUEST,		/* responder: a peer wants to connect */
	IW_MPA_EVENT_REPLY,		/* initiator: the outcome */
	IW_MPA_EVENT_ESTABLISHED,	/* responder: the outcome of accept */
};

/**
 * struct iw_mpa_event - what the ULP is told
 * @type: which event
 * @status: 0 or a negative errno: -ECONNREFUSED rejected by the peer's ULP,
 *	-ECONNRESET connection lost, -ETIMEDOUT deadline passed, -EPROTO the
 *	peer broke the protocol or no common ground, else a local error
 * @ecode: why, in MPA terms
 * @ird: request: the IRD that would suit the peer, else the one in force
 * @ord: request: the ORD that would suit the peer, else the one in force
 * @rtr: kind (initiator) or mask of kinds (responder) negotiated, 0 = none
 * @peer_known: @peer_ird and @peer_ord were in the peer's message
 * @peer_ird: the peer's IRD as sent, may be %IW_MPA_DEPTH_ULP
 * @peer_ord: the peer's ORD as sent, may be %IW_MPA_DEPTH_ULP
 * @pdata_len: length of @pdata in bytes, 0..512
 * @pdata: the peer's private data, valid during the call
 */
struct iw_mpa_event {
	enum iw_mpa_event_type type;
	int status;
	enum iw_mpa_ecode ecode;
	u16 ird;
	u16 ord;
	u8 rtr;
	bool peer_known;
	u16 peer_ird;
	u16 peer_ord;
	u16 pdata_len;
	const u8 *pdata;
};

/**
 * struct iw_mpa_rdma - how to enter RDMA mode
 * @ird: inbound RDMA Read depth to install
 * @ord: outbound RDMA Read depth to install
 * @ulp_ord: how much of @ord the ULP may use; less where an RTR by RDMA Read
 *	needs a slot that the ULP does not have (IRD-09)
 * @crc: make and check CRCs
 * @tx_markers: the peer wants markers
 * @rx_markers: the peer will send markers
 * @responder: transmit stays fenced until the peer's first whole and valid
 *	FPDU has arrived (RFC 5044 section 7.1.2)
 * @rtr: initiator: the one kind of RTR to send as the very first FPDU, 0 =
 *	none; responder: mask of the kinds to expect, 0 = none
 */
struct iw_mpa_rdma {
	u16 ird;
	u16 ord;
	u16 ulp_ord;
	bool crc;
	bool tx_markers;
	bool rx_markers;
	bool responder;
	u8 rtr;
};

struct iw_mpa_port;
struct iw_mpa_session;
struct net;
struct sk_buff;
struct sockaddr;

#ifdef __KERNEL__
/**
 * struct iw_mpa_name - which connection a session is
 * @local: local address, ss_family 0 if unknown
 * @remote: the peer's address, ss_family 0 if unknown
 * @qpn: queue pair number, 0 if there is none yet
 */
struct iw_mpa_name {
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	u32 qpn;
};
#else
struct iw_mpa_name;
#endif

/**
 * struct iw_mpa_ops - what a driver does for its sessions
 *
 * Every op is called from one of the session's entry points, in their context
 * and under the lock with which the driver serialises them. None may call an
 * entry point of the same session.
 */
struct iw_mpa_ops {
	/**
	 * @send: Send one whole control message, or what is left of a Request
	 * after iw_mpa_early_sent(); linear and valid during the call only.
	 * Returns 0 or a negative errno.
	 */
	int (*send)(struct iw_mpa_session *s, const void *frame, size_t len);
	/**
	 * @enter_rdma: Install the depths and move the QP to RTS, in one step.
	 * An initiator's RTR leaves before anything of the ULP; a responder's
	 * transmit is fenced. Returns 0 or a negative errno, then with the QP
	 * not in RTS.
	 */
	int (*enter_rdma)(struct iw_mpa_session *s,
			  const struct iw_mpa_rdma *rdma);
	/**
	 * @terminate: Send a TERM 2/0/@ecode as the only FPDU, best effort.
	 * The QP may have to enter RDMA mode for it as @rdma says, without
	 * RTR. %IW_MPA_NEXT_CLOSE follows. Returns 0, or a negative errno if
	 * the QP is in no state to send one.
	 */
	int (*terminate)(struct iw_mpa_session *s,
			 const struct iw_mpa_rdma *rdma,
			 enum iw_mpa_ecode ecode);
	/**
	 * @deadline: Call iw_mpa_timeout() @ms milliseconds from now; replaces
	 * an earlier deadline. 0 cancels it.
	 */
	void (*deadline)(struct iw_mpa_session *s, unsigned int ms);
	/**
	 * @event: Tell the ULP. Returns 0 or a negative errno; only
	 * %IW_MPA_EVENT_REQUEST may fail, the others must reach the ULP.
	 */
	int (*event)(struct iw_mpa_session *s, const struct iw_mpa_event *ev);
	/**
	 * @name: Say which connection this is, for notifications and traces;
	 * @name is zeroed. Any context: tracepoints call it, so it must not
	 * sleep nor take a lock. Optional.
	 */
	void (*name)(const struct iw_mpa_session *s, struct iw_mpa_name *name);
};

/**
 * struct iw_mpa_addr - a peer to remember
 * @net: cookie of the network namespace, 0 = nobody
 * @ip: its address, IPv4 mapped
 * @port: its port
 */
struct iw_mpa_addr {
	u64 net;
	struct in6_addr ip;
	__be16 port;
};

/**
 * struct iw_mpa_session - one connection's setup; embedded in the endpoint
 * @ops: the driver
 * @caps: the device, within the ceilings of @policy
 * @device_ird: the device's own largest IRD
 * @device_ord: the device's own largest ORD
 * @policy: snapshot, taken by iw_mpa_session_init()
 * @port: whose session it is, for those who count and watch; may be NULL
 * @state: where it is; read only for drivers
 * @responder: we are the responder
 * @sent: initiator: the Request; responder: the Reply
 * @sent_crc: C bit of what was sent
 * @outcome: the decision, from the Reply on
 * @rtr_seen: responder: kind of the first FPDU, 0 if it was no RTR
 * @ulp_ird: inbound depth the ULP asked for
 * @ulp_ord: outbound depth the ULP asked for
 * @fell_back: initiator: this is the second attempt, with Rev 1
 * @fast_opened: the Request was in TCP's SYN
 * @early_len: initiator: bytes of the Request that TCP was given to connect with
 * @peer_addr: initiator: whom to remember as one that knows Rev 1 only
 * @peer: the peer's frame, once complete
 * @rx_len: bytes of the peer's frame in @rx
 * @pdata_len: initiator: bytes of private data in @rx while @rx_len is 0
 * @rx: the peer's frame as received; an initiator's private data before that
 */
struct iw_mpa_session {
	const struct iw_mpa_ops *ops;
	struct iw_mpa_caps caps;
	u16 device_ird;
	u16 device_ord;
	struct iw_mpa_policy policy;
	struct iw_mpa_port *port;
	enum iw_mpa_state state;
	bool responder;
	struct iw_mpa_msg sent;
	bool sent_crc;
	struct iw_mpa_decision outcome;
	u8 rtr_seen;
	u32 ulp_ird;
	u32 ulp_ord;
	bool fell_back;
	bool fast_opened;
	u16 early_len;
	struct iw_mpa_addr peer_addr;
	struct iw_mpa_frame peer;
	u16 rx_len;
	u16 pdata_len;
	u8 rx[IW_MPA_FRAME_MAX];
};

/**
 * struct iw_mpa_ulp - what a ULP passes to connect or accept
 * @ird: inbound RDMA Read depth
 * @ord: outbound RDMA Read depth
 * @pdata: private data
 * @pdata_len: length of @pdata in bytes
 */
struct iw_mpa_ulp {
	u32 ird;
	u32 ord;
	const void *pdata;
	size_t pdata_len;
};

int iw_mpa_session_init(struct iw_mpa_session *s, const struct iw_mpa_ops *ops,
			const struct iw_mpa_caps *caps,
			const struct iw_mpa_policy *policy);
void iw_mpa_session_inherit(struct iw_mpa_session *s,
			    const struct iw_mpa_session *listener);
int iw_mpa_session_options(struct iw_mpa_session *s,
			   const struct iw_mpa_layer *options);
int iw_mpa_ulp_check(const struct iw_mpa_session *s,
		     const struct iw_mpa_ulp *ulp);
void iw_mpa_set_peer(struct iw_mpa_session *s, const struct net *net,
		     const struct sockaddr *addr);
int iw_mpa_connect(struct iw_mpa_session *s, const struct iw_mpa_ulp *ulp);
bool iw_mpa_may_fast_open(const struct iw_mpa_session *s);
size_t iw_mpa_early_request(const struct iw_mpa_session *s, void *buf,
			    size_t size);
void iw_mpa_early_sent(struct iw_mpa_session *s, size_t len);
void iw_mpa_fast_opened(struct iw_mpa_session *s);
enum iw_mpa_next iw_mpa_connected(struct iw_mpa_session *s);
void iw_mpa_respond(struct iw_mpa_session *s);
size_t iw_mpa_rx_want(const struct iw_mpa_session *s);
enum iw_mpa_next iw_mpa_rx(struct iw_mpa_session *s, const void *buf,
			   size_t len, size_t *used);
enum iw_mpa_next iw_mpa_process(struct iw_mpa_session *s, bool more);
int iw_mpa_accept(struct iw_mpa_session *s, const struct iw_mpa_ulp *ulp);
int iw_mpa_reject(struct iw_mpa_session *s, const void *pdata,
		  size_t pdata_len);
u8 iw_mpa_event_reads_out(const struct iw_mpa_event *ev);
u8 iw_mpa_event_reads_in(const struct iw_mpa_event *ev);
enum iw_mpa_next iw_mpa_first_fpdu(struct iw_mpa_session *s, u8 rtr);
enum iw_mpa_next iw_mpa_peer_gone(struct iw_mpa_session *s, int err);
enum iw_mpa_next iw_mpa_timeout(struct iw_mpa_session *s);
enum iw_mpa_next iw_mpa_abort(struct iw_mpa_session *s, int err);
const char *iw_mpa_state_str(enum iw_mpa_state state);
int iw_mpa_fill_res(struct sk_buff *msg, const struct iw_mpa_session *s,
		    const char *llp);

/* ----------------------------------------------------------------- device */

struct ib_device;
struct iw_mpa_device;
struct rdma_hw_stats;
struct rdma_restrack_entry;

/**
 * struct iw_mpa_device_ops - what a driver does for its devices
 * @llp: name of the lower layer protocol, "tcp"
 * @fill_conn: Call iw_mpa_fill_conn() with @msg for the session of a QP or of an
 *	rdma_cm_id (@res->type), not changing meanwhile. Returns what that
 *	returns, -ENOTCONN if there is no session, -EBUSY if it cannot be had.
 *	May sleep.
 */
struct iw_mpa_device_ops {
	const char *llp;
	int (*fill_conn)(struct sk_buff *msg, struct rdma_restrack_entry *res);
};

struct iw_mpa_device *iw_mpa_register_device(struct ib_device *ibdev,
					     const struct iw_mpa_caps *caps,
					     const struct iw_mpa_policy *initial,
					     const struct iw_mpa_device_ops *ops);
void iw_mpa_unregister_device(struct iw_mpa_device *dev);
int iw_mpa_session_open(struct iw_mpa_session *s, const struct iw_mpa_ops *ops,
			struct iw_mpa_device *dev, u32 port_num,
			const struct iw_mpa_layer *options);
int iw_mpa_fill_conn(struct sk_buff *msg, const struct iw_mpa_session *s);
void iw_mpa_term_received(const struct iw_mpa_session *s, u8 layer, u8 etype,
			  u8 ecode);
struct rdma_hw_stats *iw_mpa_alloc_port_stats(void);
int iw_mpa_get_port_stats(struct iw_mpa_device *dev, u32 port_num,
			  struct rdma_hw_stats *stats);

#endif /* _RDMA_IW_MPA_H */
