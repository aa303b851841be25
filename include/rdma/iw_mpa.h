/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * MPA connection setup for iWARP drivers (RFC 5044, RFC 6581).
 *
 * A driver plugs in as follows. Documentation/infiniband/iw_mpa_driver.rst
 * shows each step with code.
 *
 *  - Before ib_register_device() it calls iw_mpa_register_device() with its
 *    capabilities and operations, and in dealloc_driver
 *    iw_mpa_unregister_device().
 *  - It embeds a struct iw_mpa_session in its connection endpoint.
 *  - Initiator: iw_mpa_session_open() and iw_mpa_connect(), then it connects
 *    TCP and calls iw_mpa_connected().
 *  - Listener: iw_mpa_config_get(). For each incoming TCP connection it calls
 *    iw_mpa_session_inherit() and iw_mpa_respond().
 *  - It reads the peer's bytes into the room that iw_mpa_rx_room() returns, and
 *    calls iw_mpa_rx_done(). Once the frame is complete it calls
 *    iw_mpa_process().
 *  - It passes the ULP's answer to iw_mpa_accept() or iw_mpa_reject(), and the
 *    peer's first FPDU to iw_mpa_first_fpdu().
 *  - It reports a lost connection with iw_mpa_peer_gone(), an expired deadline
 *    with iw_mpa_timeout(), a local abort with iw_mpa_abort().
 *  - After each of these calls it takes the step that enum iw_mpa_next names.
 *    It calls iw_mpa_session_close() before it frees the endpoint.
 *
 * Locks and context: a session takes no lock. The driver calls the functions of
 * one session one at a time, in process context; they may sleep only to
 * allocate memory. Sessions share nothing.
 *
 * A session that is visible to the ULP ends in exactly one event: an
 * initiator's in %IW_MPA_EVENT_REPLY after iw_mpa_connect() has returned 0, a
 * responder's in %IW_MPA_EVENT_ESTABLISHED after iw_mpa_accept() has returned
 * 0. The driver itself reports the end of an established connection to the ULP.
 */
#ifndef _RDMA_IW_MPA_H
#define _RDMA_IW_MPA_H

#include <linux/bits.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <uapi/rdma/rdma_mpa.h>

struct ib_device;
struct iw_cm_event;
struct iw_mpa_config;
struct iw_mpa_device;
struct iw_mpa_layer;
struct iw_mpa_port;
struct iw_mpa_session;
struct iw_mpa_setup;
struct net;
struct rdma_hw_stats;
struct sk_buff;

/* Longest Request or Reply in bytes, with header (RFC 5044 section 7.1.1) */
#define IW_MPA_FRAME_MAX	532
/* Length of a DDP Stream Terminate in bytes, without its DDP-SSN */
#define IW_MPA_SCTP_TERMINATE_LEN 2

/* RDMA Read depths on the wire have 14 bits (RFC 6581 section 9.1) */
#define IW_MPA_DEPTH_MAX	0x3ffe	/* largest count */
#define IW_MPA_DEPTH_ULP	0x3fff	/* not a count: the ULP manages it */
/* Every kind of Ready-to-Receive message */
#define IW_MPA_RTR_ALL \
	(RDMA_MPA_RTR_SEND | RDMA_MPA_RTR_WRITE | RDMA_MPA_RTR_READ)

/**
 * struct iw_mpa_caps - capabilities of a device
 * @max_ird: largest inbound RDMA Read depth, 0..%IW_MPA_DEPTH_MAX
 * @max_ord: largest outbound RDMA Read depth, 0..%IW_MPA_DEPTH_MAX
 * @rtr_send: kinds of RTR it can send, mask of enum rdma_mpa_rtr
 * @rtr_recv: kinds of RTR it recognises, mask of enum rdma_mpa_rtr, not empty
 * @llp: lower layer protocol, enum rdma_mpa_llp. SCTP separates setup from
 *	data, so nothing is fenced: a responder's ULP receives
 *	%IW_MPA_EVENT_ESTABLISHED when the Accept has been sent.
 * @pow2_depths: it rounds depths up to a power of two when it installs them;
 *	negotiation then settles on depths that rounding does not change.
 *	@max_ird and @max_ord must be powers of two.
 * @tx_markers: it can send markers
 * @rx_markers: it asks the peer to send markers
 * @rtr_recv_one: it can expect only one kind of RTR; a responder's Reply then
 *	lists only that kind
 * @rtr_offload: it handles the peer's RTR itself and does not report it. It
 *	keeps transmit fenced until the RTR has arrived. A responder's ULP
 *	receives %IW_MPA_EVENT_ESTABLISHED when the Reply has been sent. The
 *	RTR has no deadline.
 * @no_crc: it does not support CRCs
 * @no_connect_ms: its own timeout ends a TCP connect, not the policy's
 * @fastopen: it can send and receive a Request in TCP's SYN
 * @large: it can send FPDUs that are longer than a segment of TCP
 * @streams: it can use an SCTP association for several sessions
 */
struct iw_mpa_caps {
	u16 max_ird;
	u16 max_ord;
	u8 rtr_send;
	u8 rtr_recv;
	u8 llp : 4;
	bool pow2_depths : 1;
	bool tx_markers : 1;
	bool rx_markers : 1;
	bool rtr_recv_one : 1;
	bool rtr_offload : 1;
	bool no_crc : 1;
	bool no_connect_ms : 1;
	bool fastopen : 1;
	bool large : 1;
	bool streams : 1;
};

/**
 * enum iw_mpa_next - next step of the driver
 * @IW_MPA_NEXT_WAIT: nothing; the peer or the ULP has to act
 * @IW_MPA_NEXT_FRAME: the frame is complete: call iw_mpa_process()
 * @IW_MPA_NEXT_DONE: nothing; the connection is established
 * @IW_MPA_NEXT_CLOSE: flush sent data, close the connection, free the
 *	endpoint. The ULP has received its last event.
 * @IW_MPA_NEXT_RECONNECT: drop the TCP connection and make a new one between
 *	the same addresses, then call iw_mpa_connected(). Only
 *	iw_mpa_peer_gone() asks for this, at most once a session.
 */
enum iw_mpa_next {
	IW_MPA_NEXT_WAIT,
	IW_MPA_NEXT_FRAME,
	IW_MPA_NEXT_DONE,
	IW_MPA_NEXT_CLOSE,
	IW_MPA_NEXT_RECONNECT,
};

/**
 * enum iw_mpa_event_type - events for the ULP
 * @IW_MPA_EVENT_REQUEST: responder: a peer wants to connect
 * @IW_MPA_EVENT_REPLY: initiator: the outcome
 * @IW_MPA_EVENT_ESTABLISHED: responder: the outcome of accept
 */
enum iw_mpa_event_type {
	IW_MPA_EVENT_REQUEST,
	IW_MPA_EVENT_REPLY,
	IW_MPA_EVENT_ESTABLISHED,
};

/**
 * struct iw_mpa_event - an event for the ULP
 * @type: which event
 * @status: 0 or a negative errno: -ECONNREFUSED rejected by the peer's ULP,
 *	-ECONNRESET connection lost, -ETIMEDOUT deadline passed, -EPROTO the
 *	peer broke the protocol or negotiation failed, else a local error
 * @ecode: the reason in MPA's terms
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
	enum rdma_mpa_ecode ecode;
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
 * @ulp_ord: part of @ord that the ULP may use; less than @ord if only an RTR
 *	by RDMA Read needs a slot
 * @crc: generate and check CRCs
 * @tx_markers: the peer requests markers
 * @rx_markers: the peer will send markers
 * @responder: we are the responder
 * @fenced: responder: transmit stays fenced until the peer's first whole and
 *	valid FPDU has arrived (RFC 5044 section 7.1.2)
 * @rtr: initiator: the one kind of RTR to send as the very first FPDU, 0 =
 *	none; responder: mask of the kinds to expect, 0 = none
 * @large: send FPDUs that are longer than a segment of TCP
 * @rtr_unasked: responder: the kind that an old initiator may send after a
 *	Request of revision 1, which cannot negotiate one; 0 = none
 */
struct iw_mpa_rdma {
	u16 ird;
	u16 ord;
	u16 ulp_ord;
	bool crc;
	bool tx_markers;
	bool rx_markers;
	bool responder;
	bool fenced;
	bool large;
	u8 rtr;
	u8 rtr_unasked;
};

/**
 * struct iw_mpa_name - addresses and queue pair of a connection
 * @local: local address, ss_family 0 if unknown
 * @remote: the peer's address, ss_family 0 if unknown
 * @qpn: queue pair number, 0 if there is none yet
 */
struct iw_mpa_name {
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	u32 qpn;
};

/**
 * struct iw_mpa_ops - operations of a driver
 *
 * A session calls them from its own functions, in their context and under the
 * lock with which the driver serialises them. None may call a function of the
 * same session.
 */
struct iw_mpa_ops {
	/**
	 * @send: Send one whole control message, or the part of a Request that
	 * iw_mpa_early_sent() has not reported as sent. The buffer is linear
	 * and valid during the call. Returns 0 or a negative errno.
	 */
	int (*send)(struct iw_mpa_session *s, const void *frame, size_t len);
	/**
	 * @enter_rdma: Install the depths and move the QP to RTS, in one step.
	 * An initiator's RTR leaves before the ULP's messages; a responder's
	 * transmit is fenced if @rdma requires it. Returns 0 or a negative
	 * errno; after an error the QP is not in RTS.
	 */
	int (*enter_rdma)(struct iw_mpa_session *s,
			  const struct iw_mpa_rdma *rdma);
	/**
	 * @terminate: Send a TERM 2/0/@ecode as the only FPDU, best effort.
	 * The QP may have to enter RDMA mode as described by @rdma, without
	 * RTR. %IW_MPA_NEXT_CLOSE follows. Returns 0, or a negative errno if
	 * the QP's state does not permit a TERM.
	 */
	int (*terminate)(struct iw_mpa_session *s,
			 const struct iw_mpa_rdma *rdma,
			 enum rdma_mpa_ecode ecode);
	/**
	 * @end: Send the session Terminate (RFC 5043 section 6.2) as the last
	 * message of this session, best effort; only over SCTP.
	 * %IW_MPA_NEXT_CLOSE follows.
	 */
	void (*end)(struct iw_mpa_session *s);
	/**
	 * @deadline: Call iw_mpa_timeout() @ms milliseconds from now. This
	 * replaces an earlier deadline. 0 cancels the deadline.
	 */
	void (*deadline)(struct iw_mpa_session *s, unsigned int ms);
	/**
	 * @event: Notify the ULP. Returns 0 or a negative errno; only
	 * %IW_MPA_EVENT_REQUEST may fail, the others must reach the ULP.
	 */
	int (*event)(struct iw_mpa_session *s, const struct iw_mpa_event *ev);
	/**
	 * @name: Fill in addresses and QP of the connection, for notifications
	 * and traces; the caller has zeroed @name. Any context: must not sleep
	 * nor take a lock. Optional.
	 */
	void (*name)(const struct iw_mpa_session *s, struct iw_mpa_name *name);
};

/**
 * struct iw_mpa_outcome - outcome of a session, from RDMA mode on
 * @ird: inbound RDMA Read depth in force
 * @ord: outbound RDMA Read depth in force for the ULP
 * @peer_ird: the peer's IRD as sent, may be %IW_MPA_DEPTH_ULP
 * @peer_ord: the peer's ORD as sent, may be %IW_MPA_DEPTH_ULP
 * @rtr: kind (initiator) or mask of kinds (responder) negotiated; 0 = none, the
 *	connection is client-server
 * @rtr_seen: responder: kind of the first FPDU, 0 if it was no RTR
 * @peer_rev: revision of the peer's frame
 * @peer_known: @peer_ird and @peer_ord were in the peer's frame
 * @crc: CRCs are in use
 * @large: we send FPDUs that are longer than a segment of TCP
 */
struct iw_mpa_outcome {
	u16 ird;
	u16 ord;
	u16 peer_ird;
	u16 peer_ord;
	u8 rtr;
	u8 rtr_seen;
	u8 peer_rev;
	bool peer_known;
	bool crc;
	bool large;
};

/**
 * struct iw_mpa_session - setup of one connection; embedded in the endpoint
 * @responder: we are the responder
 * @outcome: valid from RDMA mode on
 * @state: private, see iw_mpa_is_connecting() and iw_mpa_is_connected()
 * @port: private
 * @setup: private, freed when the connection is established or closed
 *
 * Drivers must not write to any field.
 */
struct iw_mpa_session {
	bool responder;
	struct iw_mpa_outcome outcome;
	u8 state;
	struct iw_mpa_port *port;
	struct iw_mpa_setup *setup;
};

/**
 * struct iw_mpa_ulp - parameters of a ULP's connect or accept
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

/**
 * struct iw_mpa_choice - value of a setting
 * @setting: the setting
 * @value: as in the attribute of that name; an order of RTR kinds is up to
 *	three of them, the preferred one in the lowest four bits
 */
struct iw_mpa_choice {
	enum rdma_mpa_setting setting;
	u32 value;
};

/**
 * struct iw_mpa_driver - a driver and the capabilities of its device
 * @ops: operations of its sessions; must outlive the device
 * @caps: capabilities of the device
 * @initial: settings in force until an administrator changes them, for example
 *	from module parameters; may be NULL
 * @num_initial: number of entries in @initial
 */
struct iw_mpa_driver {
	const struct iw_mpa_ops *ops;
	struct iw_mpa_caps caps;
	const struct iw_mpa_choice *initial;
	unsigned int num_initial;
};

/* Devices */
struct iw_mpa_device *iw_mpa_register_device(struct ib_device *ibdev,
					     const struct iw_mpa_driver *driver);
void iw_mpa_unregister_device(struct iw_mpa_device *dev);
struct rdma_hw_stats *iw_mpa_alloc_port_stats(void);
int iw_mpa_get_port_stats(struct iw_mpa_device *dev, u32 port_num,
			  struct rdma_hw_stats *stats);

/* Listeners */
struct iw_mpa_config *iw_mpa_config_get(struct iw_mpa_device *dev, u32 port_num,
					const struct iw_mpa_layer *options);
struct iw_mpa_config *iw_mpa_config_dup(const struct iw_mpa_config *config);
void iw_mpa_config_put(struct iw_mpa_config *config);
bool iw_mpa_config_fast_open(const struct iw_mpa_config *config);
unsigned int iw_mpa_config_streams(const struct iw_mpa_config *config);
unsigned int iw_mpa_config_idle(const struct iw_mpa_config *config);
unsigned int iw_mpa_session_streams(const struct iw_mpa_session *s);
unsigned int iw_mpa_session_idle(const struct iw_mpa_session *s);

/* Sessions */
int iw_mpa_session_open(struct iw_mpa_session *s, struct iw_mpa_device *dev,
			u32 port_num, const struct iw_mpa_layer *options);
int iw_mpa_session_inherit(struct iw_mpa_session *s,
			   const struct iw_mpa_config *config);
void iw_mpa_session_close(struct iw_mpa_session *s);
bool iw_mpa_is_connecting(const struct iw_mpa_session *s);
bool iw_mpa_is_connected(const struct iw_mpa_session *s);
bool iw_mpa_prefers_peer_to_peer(const struct iw_mpa_session *s);
int iw_mpa_fill_res(struct sk_buff *msg, const struct iw_mpa_device *dev,
		    const struct iw_mpa_session *s);

/* Initiator */
void iw_mpa_set_peer(struct iw_mpa_session *s, const struct net *net,
		     const struct sockaddr *addr);
int iw_mpa_connect(struct iw_mpa_session *s, const struct iw_mpa_ulp *ulp);
size_t iw_mpa_early_request(const struct iw_mpa_session *s, void *buf,
			    size_t size);
void iw_mpa_early_sent(struct iw_mpa_session *s, size_t len);
bool iw_mpa_early_pending(const struct iw_mpa_session *s);
enum iw_mpa_next iw_mpa_connected(struct iw_mpa_session *s);

/* Responder */
void iw_mpa_respond(struct iw_mpa_session *s);
int iw_mpa_accept(struct iw_mpa_session *s, const struct iw_mpa_layer *options,
		  const struct iw_mpa_ulp *ulp);
int iw_mpa_reject(struct iw_mpa_session *s, const void *pdata,
		  size_t pdata_len);
enum iw_mpa_next iw_mpa_first_fpdu(struct iw_mpa_session *s, u8 rtr);

/* Either */
void iw_mpa_fast_opened(struct iw_mpa_session *s);
void *iw_mpa_rx_room(struct iw_mpa_session *s, size_t *len);
enum iw_mpa_next iw_mpa_rx_done(struct iw_mpa_session *s, size_t len);
enum iw_mpa_next iw_mpa_rx_message(struct iw_mpa_session *s, const void *buf,
				   size_t len);
enum iw_mpa_next iw_mpa_process(struct iw_mpa_session *s, bool more);
enum iw_mpa_next iw_mpa_out_of_turn(struct iw_mpa_session *s);
void iw_mpa_sctp_build_terminate(void *buf);
bool iw_mpa_sctp_is_terminate(const void *buf, size_t len);
bool iw_mpa_sctp_is_initiate(const void *buf, size_t len);
bool iw_mpa_sctp_is_reject(const void *buf, size_t len);
enum iw_mpa_next iw_mpa_peer_gone(struct iw_mpa_session *s, int err);
enum iw_mpa_next iw_mpa_timeout(struct iw_mpa_session *s);
enum iw_mpa_next iw_mpa_abort(struct iw_mpa_session *s, int err);
void iw_mpa_term_received(const struct iw_mpa_session *s, u8 layer, u8 etype,
			  u8 ecode);
void iw_mpa_fill_cm_event(struct iw_cm_event *cm,
			  const struct iw_mpa_event *ev);

#endif /* _RDMA_IW_MPA_H */
