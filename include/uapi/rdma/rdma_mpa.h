/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * MPA connection setup (RFC 5044, RFC 6581) of iWARP devices, as user space
 * sees it: the netlink interface and the options of rdma_set_option().
 *
 * Netlink: family NETLINK_RDMA, client RDMA_NL_MPA. nlmsg_type is
 * RDMA_NL_GET_TYPE(RDMA_NL_MPA, cmd); attributes follow struct nlmsghdr at
 * once. Attributes are checked strictly: unknown ones, wrong sizes and nests
 * without NLA_F_NESTED are refused. Every refusal has a text (NETLINK_EXT_ACK).
 */
#ifndef _UAPI_RDMA_MPA_H
#define _UAPI_RDMA_MPA_H

#include <linux/types.h>

/*
 * Client and multicast group. They stand here and not in rdma_netlink.h's
 * enums, at the far ends of what the message type (6 bit) and the socket's
 * group mask (32) can hold: upstream's next entries get the next free numbers.
 */
#define RDMA_NL_MPA		63
#define RDMA_NL_GROUP_MPA	32

/**
 * enum rdma_mpa_cmd - commands and notifications
 * @RDMA_MPA_CMD_UNSPEC: none
 * @RDMA_MPA_CMD_POLICY_GET: read policies; any user. Names one layer by
 *	@RDMA_MPA_ATTR_DEV_INDEX and @RDMA_MPA_ATTR_PORT (neither: the default
 *	layer; the index alone: the device; both: the port), or with NLM_F_DUMP
 *	lists all: the default layer, then each device and its ports. A reply
 *	has DEV_INDEX, DEV_NAME and PORT as far as they apply, POLICY, EFFECTIVE,
 *	ORIGIN, and for devices and ports CAPS and LLP.
 * @RDMA_MPA_CMD_POLICY_SET: change the layer named as above: all of
 *	@RDMA_MPA_ATTR_POLICY or, on error, nothing. CAP_NET_ADMIN in the
 *	namespace that owns the device; for the default layer in the first one.
 *	Holds for connections and listeners that start afterwards.
 * @RDMA_MPA_CMD_POLICY_RESET: forget what the layer named as above has set:
 *	the settings in @RDMA_MPA_ATTR_SETTINGS, all without it. Permission as
 *	for set.
 * @RDMA_MPA_CMD_STAT_GET: read a port's counters (DEV_INDEX and PORT), or with
 *	NLM_F_DUMP those of every port; any user. A reply has DEV_INDEX,
 *	DEV_NAME, PORT, LLP and STATS.
 * @RDMA_MPA_CMD_CONN_GET: read what one connection negotiated; any user. Named
 *	by DEV_INDEX and either QPN or CM_ID. A reply is as @RDMA_MPA_CMD_CONN_NTF.
 * @RDMA_MPA_CMD_POLICY_NTF: notification: a layer's policy changed; attributes
 *	as in a reply to @RDMA_MPA_CMD_POLICY_GET
 * @RDMA_MPA_CMD_CONN_NTF: notification: a connection is established or has
 *	failed; attributes: DEV_INDEX, DEV_NAME, PORT, LLP, STATE, ROLE, STATUS,
 *	ECODE, FALLBACK, FASTOPEN, as far as known QPN, LOCAL_ADDR, REMOTE_ADDR,
 *	and as far as the exchange got REVISION, ENHANCED, MODEL, RTR, RTR_SEEN,
 *	IRD, ORD, PEER_IRD, PEER_ORD, CRC
 * @__RDMA_MPA_CMD_NUM: number of commands, for arrays
 *
 * Notifications go to the group RDMA_NL_GROUP_MPA in the namespace that owns
 * the device, those of the default layer to the first namespace. To join needs
 * CAP_NET_ADMIN there.
 */
enum rdma_mpa_cmd {
	RDMA_MPA_CMD_UNSPEC,
	RDMA_MPA_CMD_POLICY_GET,
	RDMA_MPA_CMD_POLICY_SET,
	RDMA_MPA_CMD_POLICY_RESET,
	RDMA_MPA_CMD_STAT_GET,
	RDMA_MPA_CMD_CONN_GET,
	RDMA_MPA_CMD_POLICY_NTF,
	RDMA_MPA_CMD_CONN_NTF,
	__RDMA_MPA_CMD_NUM
};

/**
 * enum rdma_mpa_attr - attributes of all messages
 * @RDMA_MPA_ATTR_UNSPEC: none
 * @RDMA_MPA_ATTR_PAD: padding of 64 bit values
 * @RDMA_MPA_ATTR_DEV_INDEX: u32, the device's index as in nldev
 * @RDMA_MPA_ATTR_DEV_NAME: string, the device's name; in replies only
 * @RDMA_MPA_ATTR_PORT: u32, from 1
 * @RDMA_MPA_ATTR_LLP: string, the lower layer protocol: "tcp"
 * @RDMA_MPA_ATTR_POLICY: nest of enum rdma_mpa_policy: what the layer sets
 * @RDMA_MPA_ATTR_EFFECTIVE: nest of enum rdma_mpa_policy, complete: what holds
 *	there, all layers taken together
 * @RDMA_MPA_ATTR_ORIGIN: nest of enum rdma_mpa_policy with a u8 each, the enum
 *	rdma_mpa_layer where the effective value comes from
 * @RDMA_MPA_ATTR_SETTINGS: u32, mask of 1 << enum rdma_mpa_policy
 * @RDMA_MPA_ATTR_CAPS: nest of enum rdma_mpa_cap: what the device can do
 * @RDMA_MPA_ATTR_STATS: nest of @RDMA_MPA_ATTR_STAT
 * @RDMA_MPA_ATTR_STAT: nest of STAT_NAME and STAT_VALUE
 * @RDMA_MPA_ATTR_STAT_NAME: string
 * @RDMA_MPA_ATTR_STAT_VALUE: u64
 * @RDMA_MPA_ATTR_QPN: u32, queue pair number
 * @RDMA_MPA_ATTR_CM_ID: u32, resource id as in `rdma resource show cm_id`
 * @RDMA_MPA_ATTR_LOCAL_ADDR: struct sockaddr_in or sockaddr_in6
 * @RDMA_MPA_ATTR_REMOTE_ADDR: struct sockaddr_in or sockaddr_in6
 * @RDMA_MPA_ATTR_STATE: string: "RDMA", "REQ_SENT", …; in a notification of a
 *	failure the state that it failed in
 * @RDMA_MPA_ATTR_ROLE: u8, enum rdma_mpa_role
 * @RDMA_MPA_ATTR_STATUS: u32, 0 or the positive errno of the failure
 * @RDMA_MPA_ATTR_ECODE: u8, MPA error code (RFC 5044 and 6581 section 8), 0 none
 * @RDMA_MPA_ATTR_FALLBACK: u8, 1 if this is the attempt with Rev 1 that followed
 *	one with Rev 2
 * @RDMA_MPA_ATTR_REVISION: u8, Rev of the peer's frame
 * @RDMA_MPA_ATTR_ENHANCED: u8, 1 if the peer's frame had enhanced data
 * @RDMA_MPA_ATTR_MODEL: u8, @RDMA_MPA_MODEL_CLIENT_SERVER or
 *	@RDMA_MPA_MODEL_PEER_TO_PEER
 * @RDMA_MPA_ATTR_RTR: u8, mask of enum rdma_mpa_rtr: initiator: the one kind to
 *	send; responder: the kinds to expect; 0 none
 * @RDMA_MPA_ATTR_RTR_SEEN: u8, responder: enum rdma_mpa_rtr, kind of the first
 *	FPDU, 0 if it was no RTR
 * @RDMA_MPA_ATTR_IRD: u32, inbound RDMA Read depth in force
 * @RDMA_MPA_ATTR_ORD: u32, outbound RDMA Read depth in force
 * @RDMA_MPA_ATTR_PEER_IRD: u32, as the peer sent it, may be RDMA_MPA_DEPTH_ULP
 * @RDMA_MPA_ATTR_PEER_ORD: u32, as the peer sent it, may be RDMA_MPA_DEPTH_ULP
 * @RDMA_MPA_ATTR_CRC: u8, 1 if CRCs are in use
 * @RDMA_MPA_ATTR_FASTOPEN: u8, 1 if the Request came with TCP's SYN: initiator:
 *	the peer has acknowledged it with its SYN
 * @__RDMA_MPA_ATTR_NUM: number of attributes, for arrays
 */
enum rdma_mpa_attr {
	RDMA_MPA_ATTR_UNSPEC,
	RDMA_MPA_ATTR_PAD,
	RDMA_MPA_ATTR_DEV_INDEX,
	RDMA_MPA_ATTR_DEV_NAME,
	RDMA_MPA_ATTR_PORT,
	RDMA_MPA_ATTR_LLP,
	RDMA_MPA_ATTR_POLICY,
	RDMA_MPA_ATTR_EFFECTIVE,
	RDMA_MPA_ATTR_ORIGIN,
	RDMA_MPA_ATTR_SETTINGS,
	RDMA_MPA_ATTR_CAPS,
	RDMA_MPA_ATTR_STATS,
	RDMA_MPA_ATTR_STAT,
	RDMA_MPA_ATTR_STAT_NAME,
	RDMA_MPA_ATTR_STAT_VALUE,
	RDMA_MPA_ATTR_QPN,
	RDMA_MPA_ATTR_CM_ID,
	RDMA_MPA_ATTR_LOCAL_ADDR,
	RDMA_MPA_ATTR_REMOTE_ADDR,
	RDMA_MPA_ATTR_STATE,
	RDMA_MPA_ATTR_ROLE,
	RDMA_MPA_ATTR_STATUS,
	RDMA_MPA_ATTR_ECODE,
	RDMA_MPA_ATTR_FALLBACK,
	RDMA_MPA_ATTR_REVISION,
	RDMA_MPA_ATTR_ENHANCED,
	RDMA_MPA_ATTR_MODEL,
	RDMA_MPA_ATTR_RTR,
	RDMA_MPA_ATTR_RTR_SEEN,
	RDMA_MPA_ATTR_IRD,
	RDMA_MPA_ATTR_ORD,
	RDMA_MPA_ATTR_PEER_IRD,
	RDMA_MPA_ATTR_PEER_ORD,
	RDMA_MPA_ATTR_CRC,
	RDMA_MPA_ATTR_FASTOPEN,
	__RDMA_MPA_ATTR_NUM
};

/**
 * enum rdma_mpa_policy - the settings, attributes of a policy nest
 * @RDMA_MPA_POLICY_UNSPEC: none
 * @RDMA_MPA_POLICY_REVISION: u8, enum rdma_mpa_revision
 * @RDMA_MPA_POLICY_MODEL: u8, enum rdma_mpa_model
 * @RDMA_MPA_POLICY_RTR_OFFER: u8, mask of enum rdma_mpa_rtr: kinds that an
 *	initiator offers
 * @RDMA_MPA_POLICY_RTR_ACCEPT: u8, mask of enum rdma_mpa_rtr: kinds that a
 *	responder accepts
 * @RDMA_MPA_POLICY_RTR_ORDER: 1 to 3 bytes, enum rdma_mpa_rtr each, none twice,
 *	the preferred kind first; kinds left out follow in the order write, read,
 *	send. Three bytes in replies.
 * @RDMA_MPA_POLICY_IRD: u16, inbound RDMA Read depth: the ceiling of automatic
 *	negotiation, RDMA_MPA_DEPTH_AUTO for none but the device's, or
 *	RDMA_MPA_DEPTH_ULP: not negotiated, the ULP manages it
 * @RDMA_MPA_POLICY_ORD: u16, outbound RDMA Read depth, likewise
 * @RDMA_MPA_POLICY_CRC: u8, enum rdma_mpa_crc
 * @RDMA_MPA_POLICY_REQUEST_MS: u32, responder: how long a peer may take to send
 *	its Request; 1 to RDMA_MPA_DEADLINE_MAX
 * @RDMA_MPA_POLICY_REPLY_MS: u32, initiator: how long a peer may take to send its
 *	Reply
 * @RDMA_MPA_POLICY_RTR_MS: u32, responder: how long a peer may take to send its
 *	RTR
 * @RDMA_MPA_POLICY_DECIDE_MS: u32, responder: how long the program may take to
 *	accept or reject
 * @RDMA_MPA_POLICY_DIALECT: u8, enum rdma_mpa_dialect
 * @RDMA_MPA_POLICY_CONNECT_MS: u32, initiator: how long TCP may take to connect
 * @RDMA_MPA_POLICY_SHORT_IRD: u8, enum rdma_mpa_short_ird
 * @RDMA_MPA_POLICY_FASTOPEN: u8, enum rdma_mpa_fastopen
 * @__RDMA_MPA_POLICY_NUM: number of settings, for arrays
 *
 * A program's option of rdma_set_option() beats the port's setting, this the
 * device's, this the default layer's, this what is built in. Ceilings alone
 * only ever get lower on the way down.
 */
enum rdma_mpa_policy {
	RDMA_MPA_POLICY_UNSPEC,
	RDMA_MPA_POLICY_REVISION,
	RDMA_MPA_POLICY_MODEL,
	RDMA_MPA_POLICY_RTR_OFFER,
	RDMA_MPA_POLICY_RTR_ACCEPT,
	RDMA_MPA_POLICY_RTR_ORDER,
	RDMA_MPA_POLICY_IRD,
	RDMA_MPA_POLICY_ORD,
	RDMA_MPA_POLICY_CRC,
	RDMA_MPA_POLICY_REQUEST_MS,
	RDMA_MPA_POLICY_REPLY_MS,
	RDMA_MPA_POLICY_RTR_MS,
	RDMA_MPA_POLICY_DECIDE_MS,
	RDMA_MPA_POLICY_DIALECT,
	RDMA_MPA_POLICY_CONNECT_MS,
	RDMA_MPA_POLICY_SHORT_IRD,
	RDMA_MPA_POLICY_FASTOPEN,
	__RDMA_MPA_POLICY_NUM
};

/**
 * enum rdma_mpa_cap - what a device can do, attributes of RDMA_MPA_ATTR_CAPS
 * @RDMA_MPA_CAP_UNSPEC: none
 * @RDMA_MPA_CAP_MAX_IRD: u32, largest inbound RDMA Read depth
 * @RDMA_MPA_CAP_MAX_ORD: u32, largest outbound RDMA Read depth
 * @RDMA_MPA_CAP_RTR_SEND: u8, mask of enum rdma_mpa_rtr: kinds it can send
 * @RDMA_MPA_CAP_RTR_RECV: u8, mask of enum rdma_mpa_rtr: kinds it recognises
 * @RDMA_MPA_CAP_CRC: u8, 1 if it can make and check CRCs
 * @RDMA_MPA_CAP_TX_MARKERS: u8, 1 if it can put markers into what it sends
 * @RDMA_MPA_CAP_RX_MARKERS: u8, 1 if it wants markers in what it receives
 * @RDMA_MPA_CAP_FASTOPEN: u8, 1 if a Request can go and come with TCP's SYN
 * @__RDMA_MPA_CAP_NUM: number of capabilities, for arrays
 */
enum rdma_mpa_cap {
	RDMA_MPA_CAP_UNSPEC,
	RDMA_MPA_CAP_MAX_IRD,
	RDMA_MPA_CAP_MAX_ORD,
	RDMA_MPA_CAP_RTR_SEND,
	RDMA_MPA_CAP_RTR_RECV,
	RDMA_MPA_CAP_CRC,
	RDMA_MPA_CAP_TX_MARKERS,
	RDMA_MPA_CAP_RX_MARKERS,
	RDMA_MPA_CAP_FASTOPEN,
	__RDMA_MPA_CAP_NUM
};

/**
 * enum rdma_mpa_layer - where a setting comes from
 * @RDMA_MPA_LAYER_BUILT_IN: nobody set it: the device's driver, which may have
 *	module parameters for it, or iw_mpa
 * @RDMA_MPA_LAYER_DEFAULT: set for all devices
 * @RDMA_MPA_LAYER_DEVICE: set for the device
 * @RDMA_MPA_LAYER_PORT: set for the port
 * @RDMA_MPA_LAYER_CONNECTION: asked for by the program
 */
enum rdma_mpa_layer {
	RDMA_MPA_LAYER_BUILT_IN,
	RDMA_MPA_LAYER_DEFAULT,
	RDMA_MPA_LAYER_DEVICE,
	RDMA_MPA_LAYER_PORT,
	RDMA_MPA_LAYER_CONNECTION,
};

/**
 * enum rdma_mpa_revision - revision of MPA
 * @RDMA_MPA_REVISION_1: RFC 5044 alone, as initiator and as responder: no
 *	enhanced data, no peer-to-peer; an enhanced Request is answered by a close
 * @RDMA_MPA_REVISION_2: RFC 6581; Rev 1 Requests are accepted, too
 * @RDMA_MPA_REVISION_2_OR_1: likewise, and as initiator one more attempt with Rev
 *	1 if the peer closes before any byte of a Reply
 */
enum rdma_mpa_revision {
	RDMA_MPA_REVISION_1 = 1,
	RDMA_MPA_REVISION_2,
	RDMA_MPA_REVISION_2_OR_1,
};

/**
 * enum rdma_mpa_model - connection model
 * @RDMA_MPA_MODEL_CLIENT_SERVER: the initiator speaks first
 * @RDMA_MPA_MODEL_PEER_TO_PEER: ask for peer-to-peer; follow the peer as
 *	responder
 * @RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED: do without the connection rather than
 *	without peer-to-peer
 */
enum rdma_mpa_model {
	RDMA_MPA_MODEL_CLIENT_SERVER,
	RDMA_MPA_MODEL_PEER_TO_PEER,
	RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED,
};

/**
 * enum rdma_mpa_rtr - kinds of Ready-to-Receive message
 * @RDMA_MPA_RTR_SEND: zero-length Send
 * @RDMA_MPA_RTR_WRITE: zero-length RDMA Write
 * @RDMA_MPA_RTR_READ: zero-length RDMA Read
 */
enum rdma_mpa_rtr {
	RDMA_MPA_RTR_SEND	= 1,
	RDMA_MPA_RTR_WRITE	= 2,
	RDMA_MPA_RTR_READ	= 4,
};

/**
 * enum rdma_mpa_crc - when CRCs are used
 * @RDMA_MPA_CRC_OFF: never; a peer that asks for them is refused
 * @RDMA_MPA_CRC_IF_ASKED: if the peer asks
 * @RDMA_MPA_CRC_REQUIRED: always
 */
enum rdma_mpa_crc {
	RDMA_MPA_CRC_OFF,
	RDMA_MPA_CRC_IF_ASKED,
	RDMA_MPA_CRC_REQUIRED,
};

/**
 * enum rdma_mpa_short_ird - what a responder does about a Request whose IRD is
 *	below the ORD that its program accepts with
 * @RDMA_MPA_SHORT_IRD_LOWER: lower the ORD
 * @RDMA_MPA_SHORT_IRD_REJECT: reject, saying the ORD that is needed
 */
enum rdma_mpa_short_ird {
	RDMA_MPA_SHORT_IRD_LOWER,
	RDMA_MPA_SHORT_IRD_REJECT,
};

/**
 * enum rdma_mpa_fastopen - the Request in TCP's SYN (TCP Fast Open, RFC 7413)
 * @RDMA_MPA_FASTOPEN_OFF: initiators send it when TCP is up; listeners take
 *	none in a SYN
 * @RDMA_MPA_FASTOPEN_ON: initiators send it with the SYN where TCP has the
 *	peer's cookie, else as before; listeners give cookies away and take
 *	Requests in SYNs. A SYN may come twice, and the Request with it.
 *
 * The sysctl net.ipv4.tcp_fastopen of the program's network namespace has to allow
 * it, too: 1 for initiators, 2 for listeners, 3 for both.
 */
enum rdma_mpa_fastopen {
	RDMA_MPA_FASTOPEN_OFF,
	RDMA_MPA_FASTOPEN_ON,
};

/**
 * enum rdma_mpa_dialect - layout of the enhanced word's flags
 * @RDMA_MPA_DIALECT_RFC6581: RFC 6581
 * @RDMA_MPA_DIALECT_EARLY_DRAFT: that of the early drafts, for devices built
 *	after them; the wire cannot tell the two apart
 */
enum rdma_mpa_dialect {
	RDMA_MPA_DIALECT_RFC6581,
	RDMA_MPA_DIALECT_EARLY_DRAFT,
};

/**
 * enum rdma_mpa_role - which side of a connection
 * @RDMA_MPA_ROLE_INITIATOR: sent the Request
 * @RDMA_MPA_ROLE_RESPONDER: sent the Reply
 */
enum rdma_mpa_role {
	RDMA_MPA_ROLE_INITIATOR,
	RDMA_MPA_ROLE_RESPONDER,
};

#define RDMA_MPA_DEPTH_AUTO	0x3ffe		/* no ceiling but the device's */
#define RDMA_MPA_DEPTH_ULP	0x3fff		/* the ULP manages it */
#define RDMA_MPA_DEADLINE_MAX	3600000		/* ms */

/*
 * rdma_set_option(id, RDMA_OPTION_MPA, name, value, length) before
 * rdma_connect(), rdma_listen() or rdma_accept(). What a listener has set is
 * inherited by the connections it accepts. A value that makes no sense or a
 * wrong length is refused with EINVAL and changes nothing; a value that the
 * device cannot do is refused with EINVAL by rdma_connect(), rdma_listen() or
 * rdma_accept().
 */
#define RDMA_OPTION_MPA		0x4d50

/**
 * enum rdma_mpa_option - names of options at level RDMA_OPTION_MPA
 * @RDMA_OPTION_MPA_UNSPEC: none
 * @RDMA_OPTION_MPA_REVISION: __u32, enum rdma_mpa_revision
 * @RDMA_OPTION_MPA_MODEL: __u32, enum rdma_mpa_model
 * @RDMA_OPTION_MPA_RTR: 1 to 3 bytes, enum rdma_mpa_rtr each, none twice: the
 *	kinds to offer and to accept, the preferred one first
 * @RDMA_OPTION_MPA_IRD: __u32, as RDMA_MPA_POLICY_IRD
 * @RDMA_OPTION_MPA_ORD: __u32, as RDMA_MPA_POLICY_ORD
 * @RDMA_OPTION_MPA_REQUEST_MS: __u32, milliseconds, for listeners
 * @RDMA_OPTION_MPA_REPLY_MS: __u32, milliseconds
 * @RDMA_OPTION_MPA_RTR_MS: __u32, milliseconds
 * @RDMA_OPTION_MPA_DECIDE_MS: __u32, milliseconds, for listeners
 * @RDMA_OPTION_MPA_CONNECT_MS: __u32, milliseconds
 * @RDMA_OPTION_MPA_SHORT_IRD: __u32, enum rdma_mpa_short_ird
 * @__RDMA_OPTION_MPA_NUM: number of options, for arrays
 */
enum rdma_mpa_option {
	RDMA_OPTION_MPA_UNSPEC,
	RDMA_OPTION_MPA_REVISION,
	RDMA_OPTION_MPA_MODEL,
	RDMA_OPTION_MPA_RTR,
	RDMA_OPTION_MPA_IRD,
	RDMA_OPTION_MPA_ORD,
	RDMA_OPTION_MPA_REQUEST_MS,
	RDMA_OPTION_MPA_REPLY_MS,
	RDMA_OPTION_MPA_RTR_MS,
	RDMA_OPTION_MPA_DECIDE_MS,
	RDMA_OPTION_MPA_CONNECT_MS,
	RDMA_OPTION_MPA_SHORT_IRD,
	__RDMA_OPTION_MPA_NUM
};

#endif /* _UAPI_RDMA_MPA_H */
