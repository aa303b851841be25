/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Associations of SCTP as siw's lower layer protocol: siw_assoc.c reads SCTP's
 * own state, siw_sctp_rx.c receives, siw_sctp.c does the rest.
 */
#ifndef _SIW_ASSOC_H
#define _SIW_ASSOC_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <rdma/iw_mpa.h>

#include "siw_ssn.h"

struct net;
struct sctp_association;
struct siw_cep;
struct siw_qp;
struct sock;
struct socket;

/* RFC 5043 section 5 */
#define SIW_SCTP_ADAPTATION	1
#define SIW_SCTP_PPID_SEGMENT	16
#define SIW_SCTP_PPID_CONTROL	17

#define SIW_SCTP_SSN_LEN	2
/* A session control message with 512 bytes of private data always fits */
#define SIW_SCTP_SEG_MIN	(2 + SIW_SCTP_SSN_LEN + 512)

/* Delay before the next attempt to allocate memory, in jiffies */
#define SIW_SCTP_AGAIN		msecs_to_jiffies(20)

/**
 * struct siw_remote - a remote address, for all associations with it
 * @node: in remotes
 * @refs: number of associations; under remotes_lock
 * @net: cookie of their namespace
 * @ip: the address, IPv4 mapped
 * @held: memory charged to the windows of these associations
 * @n_closing: number of associations in closing_assocs; under closing_lock
 */
struct siw_remote {
	struct hlist_node node;
	unsigned int refs;
	u64 net;
	struct in6_addr ip;
	struct siw_ssn_share held;
	unsigned int n_closing;
};

/**
 * struct siw_gap - the gap in a stream
 * @open: a chunk is missing
 * @next: DDP-SSN of the missing chunk
 * @since: when the gap was detected, in jiffies
 * @explained: when SCTP last had a missing chunk, in jiffies
 */
struct siw_gap {
	bool open;
	u16 next;
	unsigned long since;
	unsigned long explained;
};

/**
 * struct siw_chan - one session: a pair of streams with the same number
 * @stream: its number
 * @tx_ssn: DDP-SSN of the next chunk to send
 * @rx: order of the received chunks
 * @gap: the gap in this order
 * @early: segments received before the ULP has answered the Initiate; charged
 *	to @rx
 * @asked: the Initiate was reported to the ULP
 * @established: segments may be sent and received
 * @over: either side has sent its Terminate
 * @sent: something has been sent
 * @partial: a message whose end has not been received, charged to @rx; or %NULL
 */
struct siw_chan {
	u16 stream;
	u16 tx_ssn;
	struct siw_ssn_window rx;
	struct siw_gap gap;
	struct sk_buff_head early;
	bool asked;
	bool established;
	bool over;
	bool sent;
	struct sk_buff *partial;
};

/**
 * struct siw_assoc - an SCTP association
 * @chan: its sessions; currently one
 * @up: it has been established
 * @peer_tag: the peer's initiate tag
 * @restarted: the peer has restarted the association
 * @err: negative errno if it is lost or the session has ended
 * @seg_max: largest chunk without its header, in bytes
 * @local: our address
 * @remote: the peer's address
 * @peer: shared by all associations with @remote; %NULL until @up
 * @qp: QP to wake when send space is freed
 * @space: entry in the socket's wait queue
 * @cep: until detach: the endpoint
 * @again: until detach: timer after an allocation failure, and for the end of a
 *	gap
 * @sock: the socket
 * @net: its namespace, with a reference: on older kernels, accepted sockets
 *	hold none
 * @drain: after close: work until the peer has completed the shutdown
 * @deadline: after close: jiffies, extended if the peer acknowledges data
 * @latest: after close: jiffies, latest @deadline
 * @poll_ms: after close: milliseconds between polls
 * @unacked: after close: memory of unacknowledged data in bytes
 * @owes_terminate: the Terminate has to be sent after close
 * @evicted: no longer counted in n_closing
 * @list: after close: in closing_assocs
 */
struct siw_assoc {
	struct siw_chan chan[1];
	bool up;
	bool restarted;
	u32 peer_tag;
	int err;
	unsigned int seg_max;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct siw_remote *peer;

	struct siw_qp *qp;
	struct wait_queue_entry space;
	struct siw_cep *cep;
	struct timer_list again;

	struct socket *sock;
	struct net *net;
	struct delayed_work drain;
	unsigned long deadline;
	unsigned long latest;
	unsigned int poll_ms;
	int unacked;
	bool owes_terminate;
	bool evicted;
	struct list_head list;
};

extern struct siw_ssn_pool siw_held_pool;
extern u32 siw_held_max;

/* siw_assoc.c */
void siw_remote_put(struct siw_remote *remote);
struct sctp_association *siw_assoc_sctp(const struct sock *sk);
unsigned int siw_assoc_frag_point(const struct sctp_association *peer);
void siw_assoc_learn_seg_max(struct siw_assoc *assoc,
			     const struct sctp_association *peer);
void siw_assoc_check_restart(struct siw_assoc *assoc,
			     const struct sctp_association *peer);
int siw_assoc_status(struct siw_assoc *assoc, struct sock *sk);
void siw_assoc_again(struct siw_assoc *assoc, unsigned long when);

/* siw_sctp_rx.c */
enum iw_mpa_next siw_sctp_rx_setup(struct siw_cep *cep);
void siw_sctp_pump(struct siw_cep *cep);
void siw_sctp_free_held(struct siw_assoc *assoc);
bool siw_sctp_discard(struct socket *s);

#endif /* _SIW_ASSOC_H */
