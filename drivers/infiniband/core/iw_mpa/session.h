/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internals of a session, shared by the files of its state machine: session.c
 * contains the states, their deadlines and the end of a session; initiator.c
 * and responder.c contain the two sides, receive.c calls them.
 */
#ifndef _IW_MPA_SESSION_H
#define _IW_MPA_SESSION_H

#include <linux/build_bug.h>
#include <linux/in6.h>
#include <linux/types.h>
#include <rdma/iw_mpa.h>

#include "frame.h"
#include "negotiate.h"
#include "policy.h"

/**
 * enum iw_mpa_state - states of a session
 * @IW_MPA_IDLE: nothing has happened yet
 * @IW_MPA_CONNECTING: initiator: waits for TCP
 * @IW_MPA_REQ_SENT: initiator: waits for the Reply
 * @IW_MPA_REP_RCVD: initiator: acts on the Reply
 * @IW_MPA_REQ_WAIT: responder: waits for the Request
 * @IW_MPA_REQ_RCVD: responder: waits for its ULP
 * @IW_MPA_REP_SENT: responder: sends its Reply
 * @IW_MPA_RTR_WAIT: responder: waits for the RTR
 * @IW_MPA_RDMA: connected
 * @IW_MPA_CLOSED: the session has ended
 * @IW_MPA_STATES: number of states
 *
 * An initiator has no state between the Reply and its RTR: it sends the RTR
 * while it enters RDMA mode.
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
 * struct iw_mpa_config - device and policy of a listener or session
 * @ops: operations of the driver
 * @port: port whose sessions are counted; NULL in tests
 * @caps: the device, within the ceilings of @policy
 * @device_ird: the device's own largest IRD
 * @device_ord: the device's own largest ORD
 * @policy: the policy; settings that change later have no effect on it
 * @policy_id: number of the port's policy, see struct iw_mpa_port; 0 if options
 *	of the ULP have changed it
 *
 * A listener holds one for its future connections.
 */
struct iw_mpa_config {
	const struct iw_mpa_ops *ops;
	struct iw_mpa_port *port;
	struct iw_mpa_caps caps;
	u16 device_ird;
	u16 device_ord;
	struct iw_mpa_policy policy;
	u32 policy_id;
};

/**
 * struct iw_mpa_addr - address of an initiator's peer
 * @net: cookie of the network namespace, 0 = no peer
 * @ip: its address, IPv4 mapped
 * @port: its port
 * @policy_id: policy for which the peer's revision is cached, 0 = not cached
 */
struct iw_mpa_addr {
	u64 net;
	struct in6_addr ip;
	__be16 port;
	u32 policy_id;
};

/* One call of a driver passes through at most this many states */
#define IW_MPA_RECORD_STATES	3

/**
 * struct iw_mpa_record - everything that happened in one call of a driver
 * @left: states that were left, in order
 * @num_left: number of entries in @left
 * @received: a whole frame was received
 * @sent: a frame was passed to the LLP
 * @decided: a decision was made
 * @rtr_moved: an RTR was sent or received: @rtr
 * @terminated: a TERM was sent, for @ecode
 * @timed_out: the deadline of state @left[0] has passed
 * @fell_back: the initiator will retry once with Rev 1
 * @fast_opened: the Request was in TCP's SYN
 * @ended: the setup has ended, with @status and @ecode
 * @bad: error in the bytes received, %IW_MPA_FRAME_COMPLETE if there is none
 * @rtr: kind of the RTR, 0 if the first FPDU was not an RTR
 * @ecode: MPA error code
 * @status: 0 or a negative errno
 */
struct iw_mpa_record {
	u8 left[IW_MPA_RECORD_STATES];
	u8 num_left;
	bool received : 1;
	bool sent : 1;
	bool decided : 1;
	bool rtr_moved : 1;
	bool terminated : 1;
	bool timed_out : 1;
	bool fell_back : 1;
	bool fast_opened : 1;
	bool ended : 1;
	u8 bad;
	u8 rtr;
	u8 ecode;
	int status;
};

/**
 * struct iw_mpa_setup - part of a session that exists during setup only
 * @config: device and policy
 * @sent: initiator: the Request; responder: the Reply; without private data
 * @peer: the peer's frame, once complete
 * @decision: the decision, from the Reply on
 * @ulp_ird: inbound depth that the ULP asked for
 * @ulp_ord: outbound depth that the ULP asked for
 * @peer_addr: initiator: the peer's address, cached if it supports only Rev 1
 * @pdata: initiator: the ULP's private data, for the Request
 * @pdata_len: initiator: length of @pdata in bytes
 * @early_len: initiator: bytes of the Request that TCP accepted early
 * @rx_len: bytes of the peer's frame in @rx
 * @rtr_seen: responder: kind of the first FPDU, 0 if it was no RTR
 * @fell_back: initiator: this is the second attempt, with Rev 1
 * @fast_opened: the Request was in TCP's SYN
 * @peer_gone: the peer has ended the session or its connection is lost
 * @rx: the peer's frame as received: @hdr, or allocated if a frame is longer
 * @hdr: buffer for a frame without private data
 * @rx_need: bytes of the peer's header, later of its frame
 * @record: events to count, trace and notify
 */
struct iw_mpa_setup {
	struct iw_mpa_config config;
	struct iw_mpa_frame sent;
	struct iw_mpa_frame peer;
	struct iw_mpa_decision decision;
	u32 ulp_ird;
	u32 ulp_ord;
	struct iw_mpa_addr peer_addr;
	void *pdata;
	u16 pdata_len;
	u16 early_len;
	u16 rx_len;
	u8 rtr_seen;
	bool fell_back : 1;
	bool fast_opened : 1;
	bool peer_gone : 1;
	u8 *rx;
	u8 hdr[IW_MPA_HDR_LEN];
	u16 rx_need;
	struct iw_mpa_record record;
};

/**
 * struct iw_mpa_codec - wire format of the messages of a setup
 * @parse: see iw_mpa_frame_parse()
 * @build: see iw_mpa_frame_build()
 * @whole: the LLP delivers whole messages, not a stream of bytes
 */
struct iw_mpa_codec {
	enum iw_mpa_parse (*parse)(enum iw_mpa_kind kind,
				   enum rdma_mpa_dialect dialect,
				   const void *buf, size_t len,
				   struct iw_mpa_frame *frame, size_t *need);
	int (*build)(const struct iw_mpa_frame *frame,
		     enum rdma_mpa_dialect dialect, void *buf, size_t size);
	bool whole;
};

/* Memory used for a peer that sends nothing after TCP's handshake */
#if defined(CONFIG_64BIT) && !defined(__CHECKER__) /* sparse does not pack bool : 1 */
static_assert(sizeof(struct iw_mpa_setup) <= 256);
#endif

int iw_mpa_config_init(struct iw_mpa_config *config,
		       const struct iw_mpa_ops *ops,
		       const struct iw_mpa_caps *caps,
		       const struct iw_mpa_policy *policy);
int iw_mpa_config_apply(struct iw_mpa_config *config,
			const struct iw_mpa_layer *options);

/* session.c, for receive.c, initiator.c and responder.c */
const struct iw_mpa_codec *iw_mpa_codec_of(const struct iw_mpa_setup *setup);
void iw_mpa_free_rx(struct iw_mpa_setup *setup);
void iw_mpa_enter_state(struct iw_mpa_session *s, enum iw_mpa_state state);
struct iw_mpa_local iw_mpa_local_side(const struct iw_mpa_setup *setup);
struct iw_mpa_msg iw_mpa_frame_msg(const struct iw_mpa_frame *frame);
struct iw_mpa_rdma iw_mpa_rdma_mode(const struct iw_mpa_session *s);
bool iw_mpa_is_gated(const struct iw_mpa_setup *setup);
bool iw_mpa_llp_acceptable(const struct iw_mpa_setup *setup);
bool iw_mpa_pdata_fits(size_t len, bool enhanced);
int iw_mpa_build_frame(const struct iw_mpa_setup *setup,
		       struct iw_mpa_frame *frame,
		       const struct iw_mpa_msg *msg, const void *pdata,
		       size_t pdata_len, void *buf, size_t size);
int iw_mpa_send_frame(struct iw_mpa_session *s, struct iw_mpa_frame *frame,
		      const struct iw_mpa_msg *msg, const void *pdata,
		      size_t pdata_len);
int iw_mpa_tell_ulp(struct iw_mpa_session *s, enum iw_mpa_event_type type,
		    int status, enum rdma_mpa_ecode ecode);
void iw_mpa_set_outcome(struct iw_mpa_session *s);
void iw_mpa_establish(struct iw_mpa_session *s, enum iw_mpa_event_type type);
enum iw_mpa_next iw_mpa_end(struct iw_mpa_session *s, int status,
			    enum rdma_mpa_ecode ecode);
enum iw_mpa_next iw_mpa_leave(struct iw_mpa_session *s, enum iw_mpa_next next);

/* initiator.c */
enum iw_mpa_next iw_mpa_act_on_reply(struct iw_mpa_session *s, bool trailing);
bool iw_mpa_try_fall_back(struct iw_mpa_session *s, int err);

/* responder.c */
enum iw_mpa_next iw_mpa_act_on_request(struct iw_mpa_session *s);

#endif /* _IW_MPA_SESSION_H */
