/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma-mpa.yaml */
/* YNL-GEN uapi header */
/* To regenerate run: tools/net/ynl/ynl-regen.sh */

#ifndef _UAPI_LINUX_RDMA_MPA_H
#define _UAPI_LINUX_RDMA_MPA_H

#define RDMA_MPA_FAMILY_NAME	"rdma-mpa"
#define RDMA_MPA_FAMILY_VERSION	1

#define RDMA_MPA_DEPTH_MAX	16382
#define RDMA_MPA_DEADLINE_MAX	3600000
#define RDMA_MPA_STREAMS_MAX	1024
#define RDMA_MPA_IDLE_MAX	3600

/**
 * enum rdma_mpa_llp - Lower layer protocol of a device
 * @RDMA_MPA_LLP_TCP: TCP, with MPA (RFC 5044)
 * @RDMA_MPA_LLP_SCTP: SCTP (RFC 5043)
 */
enum rdma_mpa_llp {
	RDMA_MPA_LLP_TCP,
	RDMA_MPA_LLP_SCTP,
};

/**
 * enum rdma_mpa_revision - Which revision of MPA to use
 * @RDMA_MPA_REVISION_RFC5044: RFC 5044 alone, as initiator and as responder:
 *   no enhanced data, no peer-to-peer model. A responder closes the connection
 *   on an enhanced Request.
 * @RDMA_MPA_REVISION_RFC6581: RFC 6581. Requests of revision 1 are also
 *   accepted.
 * @RDMA_MPA_REVISION_FALLBACK: As rfc6581. An initiator whose peer closes
 *   before any byte of a Reply tries once more with revision 1.
 */
enum rdma_mpa_revision {
	RDMA_MPA_REVISION_RFC5044 = 1,
	RDMA_MPA_REVISION_RFC6581,
	RDMA_MPA_REVISION_FALLBACK,
};

/**
 * enum rdma_mpa_model - Connection model (RFC 6581, section 9.2)
 * @RDMA_MPA_MODEL_CLIENT_SERVER: The initiator sends the first message
 * @RDMA_MPA_MODEL_PEER_TO_PEER: An initiator asks for peer-to-peer; a
 *   responder follows its peer
 * @RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED: A connection without peer-to-peer is
 *   refused
 */
enum rdma_mpa_model {
	RDMA_MPA_MODEL_CLIENT_SERVER,
	RDMA_MPA_MODEL_PEER_TO_PEER,
	RDMA_MPA_MODEL_PEER_TO_PEER_REQUIRED,
};

/**
 * enum rdma_mpa_rtr - Kinds of Ready-to-Receive message (RFC 6581, section
 *   9.2)
 * @RDMA_MPA_RTR_SEND: Zero-length Send
 * @RDMA_MPA_RTR_WRITE: Zero-length RDMA Write
 * @RDMA_MPA_RTR_READ: Zero-length RDMA Read
 */
enum rdma_mpa_rtr {
	RDMA_MPA_RTR_SEND = 1,
	RDMA_MPA_RTR_WRITE = 2,
	RDMA_MPA_RTR_READ = 4,
};

/**
 * enum rdma_mpa_depth_mode - How an RDMA Read depth is negotiated
 * @RDMA_MPA_DEPTH_MODE_DEVICE: Automatically; the device is the only limit
 * @RDMA_MPA_DEPTH_MODE_LIMITED: Automatically, up to a limit
 * @RDMA_MPA_DEPTH_MODE_ULP: Not at all; the ULP manages it (0x3fff on the
 *   wire)
 */
enum rdma_mpa_depth_mode {
	RDMA_MPA_DEPTH_MODE_DEVICE,
	RDMA_MPA_DEPTH_MODE_LIMITED,
	RDMA_MPA_DEPTH_MODE_ULP,
};

/**
 * enum rdma_mpa_crc - When CRCs are used
 * @RDMA_MPA_CRC_OFF: Never. A peer that requests CRCs is refused.
 * @RDMA_MPA_CRC_IF_ASKED: If the peer requests CRCs
 * @RDMA_MPA_CRC_REQUIRED: Always
 */
enum rdma_mpa_crc {
	RDMA_MPA_CRC_OFF,
	RDMA_MPA_CRC_IF_ASKED,
	RDMA_MPA_CRC_REQUIRED,
};

/**
 * enum rdma_mpa_dialect - Layout of the flags in the enhanced data. No field
 *   of a frame identifies its layout.
 * @RDMA_MPA_DIALECT_RFC6581: RFC 6581
 * @RDMA_MPA_DIALECT_EARLY_DRAFT: Drafts before RFC 6581, for devices that
 *   implement these drafts
 */
enum rdma_mpa_dialect {
	RDMA_MPA_DIALECT_RFC6581,
	RDMA_MPA_DIALECT_EARLY_DRAFT,
};

/**
 * enum rdma_mpa_short_ird - How a responder answers a Request whose IRD is
 *   below the ORD that its ULP accepts with
 * @RDMA_MPA_SHORT_IRD_LOWER: The responder lowers its ORD
 * @RDMA_MPA_SHORT_IRD_REJECT: The responder rejects the Request; the reject
 *   contains the required ORD
 */
enum rdma_mpa_short_ird {
	RDMA_MPA_SHORT_IRD_LOWER,
	RDMA_MPA_SHORT_IRD_REJECT,
};

/**
 * enum rdma_mpa_fastopen - The Request in TCP's SYN (TCP Fast Open, RFC 7413).
 *   The sysctl net.ipv4.tcp_fastopen of the ULP's network namespace must also
 *   allow Fast Open. The network may duplicate a SYN, which then delivers its
 *   Request twice.
 * @RDMA_MPA_FASTOPEN_OFF: An initiator sends the Request after TCP has
 *   connected. A listener accepts no Request in a SYN.
 * @RDMA_MPA_FASTOPEN_ON: An initiator sends the Request in the SYN if TCP has
 *   a cookie of the peer. A listener issues cookies and accepts Requests in
 *   SYNs.
 */
enum rdma_mpa_fastopen {
	RDMA_MPA_FASTOPEN_OFF,
	RDMA_MPA_FASTOPEN_ON,
};

/**
 * enum rdma_mpa_segment - Length of the FPDUs that a device sends. Receivers
 *   accept both lengths (RFC 5044, section 5).
 * @RDMA_MPA_SEGMENT_MSS: One FPDU for each segment of TCP, as adapters expect
 * @RDMA_MPA_SEGMENT_LARGE: As large as one packet of TCP's segmentation
 *   offload, for peers implemented in software
 */
enum rdma_mpa_segment {
	RDMA_MPA_SEGMENT_MSS,
	RDMA_MPA_SEGMENT_LARGE,
};

/*
 * Names of settings, each with the number of the attribute that has its value.
 * ird-mode and ord-mode are no settings, but attributes of ird and ord.
 */
enum rdma_mpa_setting {
	RDMA_MPA_SETTING_REVISION = 1,
	RDMA_MPA_SETTING_MODEL,
	RDMA_MPA_SETTING_RTR_OFFER,
	RDMA_MPA_SETTING_RTR_ACCEPT,
	RDMA_MPA_SETTING_RTR_ORDER,
	RDMA_MPA_SETTING_IRD,
	RDMA_MPA_SETTING_ORD,
	RDMA_MPA_SETTING_CRC,
	RDMA_MPA_SETTING_DIALECT,
	RDMA_MPA_SETTING_SHORT_IRD,
	RDMA_MPA_SETTING_FASTOPEN,
	RDMA_MPA_SETTING_SEGMENT,
	RDMA_MPA_SETTING_CONNECT_MS,
	RDMA_MPA_SETTING_REQUEST_MS,
	RDMA_MPA_SETTING_REPLY_MS,
	RDMA_MPA_SETTING_RTR_MS,
	RDMA_MPA_SETTING_DECIDE_MS,
	RDMA_MPA_SETTING_IRD_MODE,
	RDMA_MPA_SETTING_ORD_MODE,
	RDMA_MPA_SETTING_STREAMS,
	RDMA_MPA_SETTING_IDLE,
};

/**
 * enum rdma_mpa_layer - Source of a setting's value. A later layer overrides
 *   an earlier layer, but can only lower a limit.
 * @RDMA_MPA_LAYER_BUILT_IN: Not set. The value comes from the driver, for
 *   example from a module parameter, or from iw_mpa.
 * @RDMA_MPA_LAYER_DEFAULT: Set for all devices
 * @RDMA_MPA_LAYER_DEVICE: Set for the device
 * @RDMA_MPA_LAYER_PORT: Set for the port
 */
enum rdma_mpa_layer {
	RDMA_MPA_LAYER_BUILT_IN,
	RDMA_MPA_LAYER_DEFAULT,
	RDMA_MPA_LAYER_DEVICE,
	RDMA_MPA_LAYER_PORT,
};

/**
 * enum rdma_mpa_role - Side of a connection
 * @RDMA_MPA_ROLE_INITIATOR: Sent the Request
 * @RDMA_MPA_ROLE_RESPONDER: Sent the Reply
 */
enum rdma_mpa_role {
	RDMA_MPA_ROLE_INITIATOR,
	RDMA_MPA_ROLE_RESPONDER,
};

/**
 * enum rdma_mpa_ecode - MPA error codes (RFC 5044, section 8; RFC 6581,
 *   section 8)
 * @RDMA_MPA_ECODE_NONE: No error
 * @RDMA_MPA_ECODE_CLOSED: TCP closed, terminated or lost; never on the wire
 * @RDMA_MPA_ECODE_CRC: The CRC of an FPDU does not match
 * @RDMA_MPA_ECODE_FPDU_START: Marker and ULPDU_Length disagree
 * @RDMA_MPA_ECODE_BAD_FRAME: Invalid Request or Reply; never on the wire
 * @RDMA_MPA_ECODE_LOCAL: Local catastrophic error
 * @RDMA_MPA_ECODE_IRD: Insufficient IRD resources
 * @RDMA_MPA_ECODE_RTR: No matching RTR option
 */
enum rdma_mpa_ecode {
	RDMA_MPA_ECODE_NONE,
	RDMA_MPA_ECODE_CLOSED,
	RDMA_MPA_ECODE_CRC,
	RDMA_MPA_ECODE_FPDU_START,
	RDMA_MPA_ECODE_BAD_FRAME,
	RDMA_MPA_ECODE_LOCAL,
	RDMA_MPA_ECODE_IRD,
	RDMA_MPA_ECODE_RTR,
};

/*
 * Options of a connection, for rdma_set_option() at the level
 * RDMA_OPTION_IWARP of rdma/rdma_user_cm.h. Each value is a __u32 as in the
 * attribute of this name in the set policy. The value of rtr is one to three
 * of enum rdma_mpa_rtr, no kind twice, each in four bits, the preferred one in
 * the lowest: the kinds to offer and to accept. Options are set before
 * rdma_connect(), rdma_listen() or rdma_accept(); later EINVAL, and for a
 * connection that was accepted no effect. Connections inherit the options of
 * their listener. An option overrides the setting of the port. An unknown
 * option, value or length is rejected with EINVAL, a device that is not iWARP
 * with EOPNOTSUPP; then nothing has changed. A device applies the part of an
 * option that it supports; if no valid part is left, rdma_connect(),
 * rdma_listen() or rdma_accept() fails with EINVAL.
 */
enum rdma_mpa_option {
	RDMA_MPA_OPTION_REVISION = 1,
	RDMA_MPA_OPTION_MODEL,
	RDMA_MPA_OPTION_RTR,
	RDMA_MPA_OPTION_IRD,
	RDMA_MPA_OPTION_ORD,
	RDMA_MPA_OPTION_CONNECT_MS,
	RDMA_MPA_OPTION_REQUEST_MS,
	RDMA_MPA_OPTION_REPLY_MS,
	RDMA_MPA_OPTION_RTR_MS,
	RDMA_MPA_OPTION_DECIDE_MS,
	RDMA_MPA_OPTION_SHORT_IRD,
	RDMA_MPA_OPTION_IRD_MODE,
	RDMA_MPA_OPTION_ORD_MODE,
	RDMA_MPA_OPTION_SEGMENT,
};

enum {
	RDMA_MPA_A_POLICY_REVISION = 1,
	RDMA_MPA_A_POLICY_MODEL,
	RDMA_MPA_A_POLICY_RTR_OFFER,
	RDMA_MPA_A_POLICY_RTR_ACCEPT,
	RDMA_MPA_A_POLICY_RTR_ORDER,
	RDMA_MPA_A_POLICY_IRD,
	RDMA_MPA_A_POLICY_ORD,
	RDMA_MPA_A_POLICY_CRC,
	RDMA_MPA_A_POLICY_DIALECT,
	RDMA_MPA_A_POLICY_SHORT_IRD,
	RDMA_MPA_A_POLICY_FASTOPEN,
	RDMA_MPA_A_POLICY_SEGMENT,
	RDMA_MPA_A_POLICY_CONNECT_MS,
	RDMA_MPA_A_POLICY_REQUEST_MS,
	RDMA_MPA_A_POLICY_REPLY_MS,
	RDMA_MPA_A_POLICY_RTR_MS,
	RDMA_MPA_A_POLICY_DECIDE_MS,
	RDMA_MPA_A_POLICY_IRD_MODE,
	RDMA_MPA_A_POLICY_ORD_MODE,
	RDMA_MPA_A_POLICY_STREAMS,
	RDMA_MPA_A_POLICY_IDLE,

	__RDMA_MPA_A_POLICY_MAX,
	RDMA_MPA_A_POLICY_MAX = (__RDMA_MPA_A_POLICY_MAX - 1)
};

enum {
	RDMA_MPA_A_RTR_ORDER_KIND = 1,

	__RDMA_MPA_A_RTR_ORDER_MAX,
	RDMA_MPA_A_RTR_ORDER_MAX = (__RDMA_MPA_A_RTR_ORDER_MAX - 1)
};

enum {
	RDMA_MPA_A_ORIGIN_SETTING = 1,
	RDMA_MPA_A_ORIGIN_LAYER,

	__RDMA_MPA_A_ORIGIN_MAX,
	RDMA_MPA_A_ORIGIN_MAX = (__RDMA_MPA_A_ORIGIN_MAX - 1)
};

enum {
	RDMA_MPA_A_CAPS_MAX_IRD = 1,
	RDMA_MPA_A_CAPS_MAX_ORD,
	RDMA_MPA_A_CAPS_RTR_SEND,
	RDMA_MPA_A_CAPS_RTR_RECV,
	RDMA_MPA_A_CAPS_CRC,
	RDMA_MPA_A_CAPS_TX_MARKERS,
	RDMA_MPA_A_CAPS_RX_MARKERS,

	__RDMA_MPA_A_CAPS_MAX,
	RDMA_MPA_A_CAPS_MAX = (__RDMA_MPA_A_CAPS_MAX - 1)
};

enum {
	RDMA_MPA_A_ADDR_IP4 = 1,
	RDMA_MPA_A_ADDR_IP6,
	RDMA_MPA_A_ADDR_PORT,
	RDMA_MPA_A_ADDR_IFINDEX,

	__RDMA_MPA_A_ADDR_MAX,
	RDMA_MPA_A_ADDR_MAX = (__RDMA_MPA_A_ADDR_MAX - 1)
};

enum {
	RDMA_MPA_A_CONN_STATE = 1,
	RDMA_MPA_A_CONN_ROLE,
	RDMA_MPA_A_CONN_ERROR,
	RDMA_MPA_A_CONN_ECODE,
	RDMA_MPA_A_CONN_QPN,
	RDMA_MPA_A_CONN_LOCAL,
	RDMA_MPA_A_CONN_REMOTE,
	RDMA_MPA_A_CONN_FALLBACK,
	RDMA_MPA_A_CONN_FASTOPEN,
	RDMA_MPA_A_CONN_PEER_REVISION,
	RDMA_MPA_A_CONN_PEER_ENHANCED,
	RDMA_MPA_A_CONN_PEER_IRD,
	RDMA_MPA_A_CONN_PEER_ORD,
	RDMA_MPA_A_CONN_PEER_IRD_ULP,
	RDMA_MPA_A_CONN_PEER_ORD_ULP,
	RDMA_MPA_A_CONN_REQUESTED_MODEL,
	RDMA_MPA_A_CONN_REQUESTED_RTR,
	RDMA_MPA_A_CONN_MODEL,
	RDMA_MPA_A_CONN_RTR,
	RDMA_MPA_A_CONN_RTR_SEEN,
	RDMA_MPA_A_CONN_IRD,
	RDMA_MPA_A_CONN_ORD,
	RDMA_MPA_A_CONN_CRC,
	RDMA_MPA_A_CONN_SEGMENT,

	__RDMA_MPA_A_CONN_MAX,
	RDMA_MPA_A_CONN_MAX = (__RDMA_MPA_A_CONN_MAX - 1)
};

enum {
	RDMA_MPA_A_DEV_INDEX = 1,
	RDMA_MPA_A_DEV_NAME,
	RDMA_MPA_A_PORT,
	RDMA_MPA_A_LLP,
	RDMA_MPA_A_POLICY,
	RDMA_MPA_A_EFFECTIVE,
	RDMA_MPA_A_ORIGIN,
	RDMA_MPA_A_NOT_TAKEN,
	RDMA_MPA_A_SETTING,
	RDMA_MPA_A_CAPS,
	RDMA_MPA_A_CONN,

	__RDMA_MPA_A_MAX,
	RDMA_MPA_A_MAX = (__RDMA_MPA_A_MAX - 1)
};

enum {
	RDMA_MPA_CMD_POLICY_GET = 1,
	RDMA_MPA_CMD_POLICY_SET,
	RDMA_MPA_CMD_POLICY_RESET,
	RDMA_MPA_CMD_POLICY_NTF,
	RDMA_MPA_CMD_DEV_GET,
	RDMA_MPA_CMD_CONN_NTF,

	__RDMA_MPA_CMD_MAX,
	RDMA_MPA_CMD_MAX = (__RDMA_MPA_CMD_MAX - 1)
};

#define RDMA_MPA_MCGRP_POLICIES		"policies"
#define RDMA_MPA_MCGRP_CONNECTIONS	"connections"

#endif /* _UAPI_LINUX_RDMA_MPA_H */
