/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * libexs: asynchronous sockets on registered memory
 *
 * A program registers memory once and names it in each send and receive. Operations return at once. Their completion
 * is an event in a queue of the program. The receiver's end reads the data straight from the sender's memory (RDMA
 * Read) where both have an RDMA device; over TCP a thread of the library copies the data. exs(7) is the manual.
 *
 * Functions return -1 and set errno, or the documented value. All may be called from any thread at any time.
 */
#ifndef EXS_H
#define EXS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define EXS_VERSION 1

/*
 * Handles are positive and never reused. A closed handle gives EBADF. They are not file descriptors.
 */
typedef int64_t exs_fd_t; /* a socket */
typedef int64_t exs_qh_t; /* a queue of events */
typedef int64_t exs_mh_t; /* registered memory */
typedef int64_t exs_op_t; /* a pending operation */

/**
 * exs_init - start the library
 * @version: EXS_VERSION
 *
 * Starts the progress thread. May be called more than once, by several libraries of a program: each call needs its own
 * exs_exit().
 *
 * A child of fork() does not inherit the library of its parent: exs_exit() does nothing in it, other calls are EBADF, and
 * exs_init() is EOPNOTSUPP, unless the parent had not called it or had called exs_exit() before. The child's copies of
 * descriptors keep connections open that the parent loses when it is killed; they are closed by exec() and exit().
 *
 * Errors: EINVAL: another version; EOPNOTSUPP: in a child; EAGAIN, EMFILE, ENOMEM: no thread or descriptors for it.
 */
int exs_init(unsigned int version);

/**
 * exs_exit - stop the library
 *
 * The call that matches the first exs_init() closes all sockets at once, without waiting for peers, and ends the progress
 * thread. Operations end without an event; their memory is not used any more when this returns. No other call may be
 * running. Earlier calls have no effect: close your sockets before.
 */
int exs_exit(void);

/* ---- queues of events */

enum exs_event_type {
	EXS_EVENT_CONNECT = 1,
	EXS_EVENT_ACCEPT = 2,  /* accepted: the new socket */
	EXS_EVENT_SEND = 3,
	EXS_EVENT_RECV = 4,
	EXS_EVENT_NOTE = 5,    /* the peer has read a persistent send (EXS_NOTIFY) count times; not the last event of it */
	EXS_EVENT_CLOSE = 6,
	EXS_EVENT_REVOKE = 7,  /* of exs_mrevoke() */
	EXS_EVENT_USER = 8,    /* of exs_qpost(); only @type and @context are set */
	EXS_EVENT_POLL = 9,    /* of exs_qpoll(); flags: EXS_POLLIN and the like */
};

/* flags of an event */
#define EXS_EOF 1       /* RECV: the peer has shut down or closed, and all has been received */
#define EXS_TRUNCATED 2 /* RECV: the message was longer */

/**
 * struct exs_event - the result of an operation
 * @type: enum exs_event_type
 * @error: 0 or an errno value
 * @flags: EXS_EOF, EXS_TRUNCATED; POLL: EXS_POLLIN and the like
 * @count: NOTE: how many times since the last one
 * @op: the value that the call returned
 * @fd: the socket of the call
 * @accepted: ACCEPT without an error: the connected socket
 * @length: octets sent or received
 * @context: the @context of the call
 */
struct exs_event {
	int32_t type;
	int32_t error;
	uint32_t flags;
	uint32_t count;
	exs_op_t op;
	exs_fd_t fd;
	exs_fd_t accepted;
	uint64_t length;
	void *context;
};

/**
 * exs_qcreate - create a queue
 *
 * Any number of sockets and threads may use it. It has room for all events of all operations that were started. Its descriptor is made
 * when it is first needed; exs_qdequeue() looks for events each millisecond if that fails.
 */
exs_qh_t exs_qcreate(void);

/**
 * exs_qdelete - delete a queue
 *
 * Events that were not dequeued are lost, and their accepted connections are closed; exs_qdequeue() of other threads ends
 * with EBADF. Errors: EBUSY: operations that report to the queue are pending.
 */
int exs_qdelete(exs_qh_t queue);

/**
 * exs_qabandon - delete a queue that operations report to
 *
 * As exs_qdelete(), without EBUSY. The operations continue without an event; a connection is left to the next exs_accept().
 */
int exs_qabandon(exs_qh_t queue);

/**
 * exs_qfd - the eventfd of a queue, for poll(), epoll and the like
 *
 * Readable while the queue has events. Not to be read, written or closed by the program. Errors: EMFILE and the others of eventfd().
 */
int exs_qfd(exs_qh_t queue);

/**
 * exs_qdequeue - dequeue events
 * @max: the size of the array @events, at least 1
 * @timeout: milliseconds to wait for the first event; 0: do not wait; negative: no limit
 *
 * Returns the number of events: 0 if the timeout passed. Errors: EINTR: a signal handler ran before there was an event.
 */
int exs_qdequeue(exs_qh_t queue, struct exs_event *events, int max, int timeout);

/**
 * exs_qdequeue_sized - dequeue events of a program's own size
 * @size: of each element of @events: sizeof(struct exs_event) as the program was compiled
 *
 * Later versions may append members to struct exs_event. The library leaves out members that the program does not have, and
 * sets members to zero that the library does not have. exs_qdequeue() of this header is a macro that calls it; the function of that name is for programs that were
 * compiled with version 0.1.
 *
 * Returns the number of events, as exs_qdequeue(). Errors: EINVAL: @size is less than 56.
 */
int exs_qdequeue_sized(exs_qh_t queue, struct exs_event *events, size_t size, int max, int timeout);
#define exs_qdequeue(queue, events, max, timeout) \
	exs_qdequeue_sized(queue, events, sizeof(struct exs_event), max, timeout)

enum exs_queue_option {
	EXS_QUEUE_PROGRESS = 1, /* who calls exs_qdequeue() makes progress, 0 or 1 (0) */
	EXS_QUEUE_SPIN_US = 2,	/* exs_qdequeue() does not sleep for this time, 0 to 1000000 us (0) */
	EXS_QUEUE_THREAD = 3,	/* connections have a progress thread of this queue, 0 or 1 (0) */
	EXS_QUEUE_BATCH = 4,	/* over TCP sends wait for each other until exs_qdequeue(), 0 or 1 (0) */
};

/**
 * exs_qset - set an option of a queue
 * @option: enum exs_queue_option
 *
 * EXS_QUEUE_PROGRESS: a thread in exs_qdequeue() handles connections itself: with EXS_QUEUE_THREAD those of its queue, else all, without the switch
 * from the progress thread, which returns to its work 10 ms after the last such call. For programs whose threads are rarely elsewhere.
 * exs_qfd() is not sufficient to learn of events then.
 *
 * EXS_QUEUE_SPIN_US: latency for processor time. Of use with as many processors as threads that spin. With this option and with
 * EXS_QUEUE_PROGRESS handlers of signals run when exs_qdequeue() looks for events, which ends with EINTR then.
 *
 * EXS_QUEUE_THREAD: the library handles a connection in a thread of the queue that its exs_connect() or exs_accept() reports to, for
 * programs with a queue for each thread or processor. With EXS_QUEUE_PROGRESS a thread in exs_qdequeue() handles these
 * connections alone. Set it before exs_connect() and exs_accept(). The first thread of the library sets up connections over RDMA and
 * ends what is too late, for all queues.
 *
 * EXS_QUEUE_BATCH: over TCP the messages of exs_send() and exs_recv() that report to the queue leave together, before exs_qdequeue()
 * waits or finds no event: throughput of small messages, if several are started between two waits. A thread that starts an operation has to
 * call exs_qdequeue() of this queue soon, not exs_poll() alone. Messages leave at once while a thread waits in exs_qdequeue(), and after exs_qfd().
 *
 * Errors: EINVAL: unknown option, or out of its range; EAGAIN, EMFILE, ENOMEM: no thread or descriptors for it.
 */
int exs_qset(exs_qh_t queue, int option, unsigned int value);

/**
 * exs_qpost - queue an event of the program itself
 * @context: the one of the event
 *
 * Wakes a thread that waits in exs_qdequeue(), to pass work to it. The event is of type EXS_EVENT_USER.
 */
int exs_qpost(exs_qh_t queue, void *context);

/* ---- memory */

#define EXS_MEM_SEND 1 /* peers may read it once it has been sent from */
#define EXS_MEM_RECV 2 /* it may be received into */

/**
 * exs_mregister - register memory
 * @access: EXS_MEM_SEND, EXS_MEM_RECV or both
 *
 * It must stay mapped until it is deregistered. It is pinned (RLIMIT_MEMLOCK) when a socket uses it first, for each
 * connection (EXS_SHARED: once for persistent sends). exs(7) describes what a peer can read of it, and for how long.
 *
 * Errors: EINVAL: length 0, an end beyond the last address, no access; EFAULT: not all of it is mapped.
 */
exs_mh_t exs_mregister(void *address, size_t length, int access);

/**
 * exs_mderegister - deregister memory
 *
 * No connection can reach it any more when this returns. Errors: EBUSY: operations use it.
 */
int exs_mderegister(exs_mh_t memory);

/**
 * exs_mrevoke - cancel the operations that use memory, and deregister it
 *
 * New operations are rejected (EBADF) from now on. Pending operations complete (exs_cancel()); then the memory is
 * deregistered and EXS_EVENT_REVOKE is queued.
 *
 * Returns an operation. Errors: ENOMEM: nothing has changed.
 */
exs_op_t exs_mrevoke(exs_mh_t memory, exs_qh_t queue, void *context);

/* ---- sockets */

enum exs_protocol {
	EXS_PROTO_ANY = 0,  /* RDMA where a device has the address, else TCP */
	EXS_PROTO_RDMA = 1,
	EXS_PROTO_TCP = 2,
};

/**
 * exs_socket - create a socket
 * @domain: AF_INET or AF_INET6
 * @type: SOCK_SEQPACKET (messages) or SOCK_STREAM
 * @protocol: enum exs_protocol
 *
 * Errors: EAFNOSUPPORT, ESOCKTNOSUPPORT, EPROTONOSUPPORT.
 */
exs_fd_t exs_socket(int domain, int type, int protocol);

/**
 * exs_bind - choose the local address
 *
 * An unusable address is reported by exs_listen() or exs_connect().
 */
int exs_bind(exs_fd_t fd, const struct sockaddr *address, socklen_t length);

/**
 * exs_listen - accept connections
 * @backlog: maximum number of connections that wait for exs_accept(), 1 to 4096; further ones are refused, or with
 *	EXS_BACKLOG_WAIT wait for their EXS_CONNECT_MS (over RDMA as many again, beyond which they are refused)
 *
 * With EXS_PROTO_ANY peers can connect over RDMA, if a device has the address, and over TCP. siw takes its ports from TCP:
 * there TCP has the port that follows, which clients find automatically, and which EXS_GET EXS_TCP_PORT returns.
 *
 * A peer that does not complete the set-up within 10 s is dropped.
 *
 * Errors: EADDRINUSE: the port, or the one that follows where TCP needs that; and those of bind() and listen(), also if only one of
 * RDMA and TCP fails.
 */
int exs_listen(exs_fd_t fd, int backlog);

/**
 * exs_accept - wait for a connection
 *
 * Returns an operation; its event has the connected socket, which has the settings of @fd.
 */
exs_op_t exs_accept(exs_fd_t fd, exs_qh_t queue, void *context);

/**
 * exs_connect - connect
 *
 * Returns an operation. Errors of its event: ECONNREFUSED, ETIMEDOUT (EXS_CONNECT_MS), EHOSTUNREACH, ENETUNREACH,
 * ENODEV: no RDMA device reaches the address, EPROTOTYPE: the listener has another type, EPROTO: the listener is not of
 * libexs, or of another version.
 */
exs_op_t exs_connect(exs_fd_t fd, const struct sockaddr *address, socklen_t length, exs_qh_t queue, void *context);

/**
 * exs_close - close a socket
 * @queue: 0, or the queue for EXS_EVENT_CLOSE
 *
 * The handle is invalid at once. Pending operations complete with ECANCELED, or as they end meanwhile, and the event
 * of the close follows theirs. The peer gets EXS_EOF (ECONNRESET if it has not received all that was sent: wait
 * for the events of sends before closing). Waits for a peer for EXS_CLOSE_MS at most. If that has been set to 0 before,
 * the connection ends at once, and the peer gets ECONNRESET.
 *
 * Returns an operation. Errors: ENOMEM: the socket is as before, and its handle valid.
 */
exs_op_t exs_close(exs_fd_t fd, exs_qh_t queue, void *context);

/**
 * exs_shutdown - end sending
 *
 * The peer gets EXS_EOF after all data sent before.
 */
int exs_shutdown(exs_fd_t fd);

/**
 * exs_getsockname - get the local address
 * @length: in: the size of @address; out: the length of the whole address
 *
 * For a bound socket the address of exs_bind(), for a listener or a connection the address in use.
 */
int exs_getsockname(exs_fd_t fd, struct sockaddr *address, socklen_t *length);

/**
 * exs_getpeername - get the address of the peer
 * @length: in: the size of @address; out: the length of the whole address
 *
 * Errors: ENOTCONN.
 */
int exs_getpeername(exs_fd_t fd, struct sockaddr *address, socklen_t *length);

/* ---- settings */

#define EXS_GET 1
#define EXS_SET 2

enum exs_option {
	EXS_SEND_CREDITS = 1,  /* own advertisements that the peer holds at a time, 1 to 4096 (16) */
	EXS_RECV_CREDITS = 2,  /* advertisements of the peer held here at a time, 1 to 4096 (16) */
	EXS_SMALL_MAX = 3,     /* data up to this size is sent with the advertisement, 0 to 1048576 octets (1024) */
	EXS_IRD = 4,	       /* RDMA Reads of the peer in flight, 0 to 255 (16) */
	EXS_ORD = 5,	       /* own RDMA Reads in flight, 0 to 255 (16) */
	EXS_CONNECT_MS = 6,    /* time limit of a connect, 1 to 3600000 (30000) */
	EXS_CLOSE_MS = 7,      /* time limit for a peer to answer a close or a cancel, 0 to 3600000 (5000) */
	EXS_TCP_PORT = 8,      /* the port of EXS_PROTO_ANY over TCP; 0: the RDMA port, or the next one (0) */
	EXS_PROTOCOL = 9,      /* get only: EXS_PROTO_RDMA or EXS_PROTO_TCP once connected */
	EXS_EXACT = 10,	       /* over RDMA a send exposes only its range, by a separate registration, 0 or 1 (0) */
	EXS_KEEPALIVE_MS = 11, /* a peer from which nothing has come for as long is probed, 0 (never) to 3600000 (0) */
	EXS_IDLE_MS = 12,      /* a connection on which nothing has come for as long is ended, 0 (never) to 3600000 (0) */
	EXS_SHARED = 13,       /* over RDMA a persistent send is registered once for all such sockets, 0 or 1 (0) */
	EXS_V6ONLY = 14,       /* a listener at :: accepts no IPv4 clients, as with IPV6_V6ONLY, 0 or 1 (0) */
	EXS_BACKLOG_WAIT = 15, /* connections beyond the backlog wait, 0 or 1 (0) */
	EXS_RESERVE = 16,      /* over RDMA a connection can pin as much for sends and for receives, 0 to 16777216 octets (0) */
};

/**
 * exs_fcntl - get or set an option
 * @command: EXS_GET; EXS_SET, with an unsigned int after @option
 *
 * Options can be set until exs_connect() or exs_listen(), EXS_CLOSE_MS always. When connected, EXS_GET returns the value
 * in force with this peer.
 *
 * EXS_KEEPALIVE_MS: a peer's host answers probes without its program. If nothing comes for three times this time at most, operations
 * complete with ETIMEDOUT. Over RDMA a probe is a Read of no octets, over TCP it is that of the kernel, which counts in seconds.
 * 0 is in force if no Reads are possible (EXS_ORD). EXS_IDLE_MS: operations complete with ETIMEDOUT if the peer has not sent,
 * acknowledged or answered for this time. Over RDMA it does none of these while it uses persistent memory.
 *
 * EXS_SHARED: all sockets with it that use the same device register persistent sends of the same memory once, in place of once for each
 * connection. The memory behind it must not be replaced (mmap(), madvise()) until the last of these sends has ended. Keys are then valid
 * on all of these connections: a peer can read the memory until then, a peer that learns or guesses a key can read and write what
 * other connections with this option expose, and over siw a peer can end the registration for all by a Send with Invalidate. For
 * peers that trust each other.
 *
 * EXS_RESERVE: a connection over RDMA is set up only if RLIMIT_MEMLOCK has room for memory of this length to send from, and for as much to
 * receive into. The first memory of each kind that it uses gets this room. Without room connecting fails with ENOMEM at this
 * end and with ECONNREFUSED at the peer's; EXS_PROTO_ANY takes TCP then. So no connection waits for memory that others hold.
 *
 * EXS_V6ONLY: a listener at :: has IPv4 clients as well, whose addresses are mapped ones (::ffff:192.0.2.1). With this option it leaves
 * the port to a listener at 0.0.0.0.
 *
 * Returns the value, or 0. Errors: EINVAL: unknown option, or out of its range; EISCONN: already connected or listening.
 */
int exs_fcntl(exs_fd_t fd, int command, int option, ...);

/* ---- data */

/* flags of sends and receives */
#define EXS_PERSISTENT 1 /* not consumed: each receive of the peer reads it, or each send of the peer writes it */
#define EXS_NOTIFY 2     /* with EXS_PERSISTENT, of sends: EXS_EVENT_NOTE when the peer has read it */
#define EXS_WAITALL 4    /* receive, SOCK_STREAM: wait until the memory is full */

/**
 * exs_send - send
 * @memory: handle of the memory that has @length octets at @address
 * @flags: EXS_PERSISTENT, EXS_NOTIFY
 *
 * The event is queued when the peer has received the data; until then they must not be changed. A persistent send ends by
 * exs_cancel() or with the connection.
 *
 * Returns an operation. Errors: EINVAL, EFAULT: not within the memory; EACCES: not registered for this; ENOTCONN;
 * EPIPE: shut down, or the peer has closed; EBUSY: a persistent send is pending; ENOMEM: cannot be pinned;
 * EOPNOTSUPP: not with this type of socket. Of the event also: ECANCELED, ECONNRESET, ETIMEDOUT, ENODEV; EPROTO: the
 * peer broke the protocol; EINVAL: persistent at both ends; EMSGSIZE: longer than the peer's persistent memory;
 * EOPNOTSUPP: no RDMA Reads are possible.
 */
exs_op_t exs_send(exs_fd_t fd, exs_mh_t memory, const void *address, size_t length, int flags, exs_qh_t queue,
		  void *context);

/**
 * exs_recv - receive
 * @flags: EXS_PERSISTENT, EXS_WAITALL
 *
 * SOCK_SEQPACKET: one message (EXS_TRUNCATED if it is longer), or from the start of the peer's persistent memory.
 * SOCK_STREAM: at least one octet. A persistent receive ends with EXS_EOF when the peer shuts down: all data is in place then.
 *
 * Returns an operation. Errors as of exs_send().
 */
exs_op_t exs_recv(exs_fd_t fd, exs_mh_t memory, void *address, size_t length, int flags, exs_qh_t queue, void *context);

#define EXS_PARTS_MAX 1024

/**
 * struct exs_part - a piece of registered memory
 * @memory: its handle
 * @address: within that memory
 * @length: octets; may be 0
 */
struct exs_part {
	exs_mh_t memory;
	void *address;
	size_t length;
};

/**
 * exs_sendv - send several pieces of memory as one
 * @parts: their octets follow each other
 * @count: up to EXS_PARTS_MAX
 * @flags: 0
 *
 * As exs_send() of all of them in one message. The library copies them if more than one has a length, so exs_send() takes less
 * time where they are in one piece.
 *
 * Returns an operation. Errors as of exs_send().
 */
exs_op_t exs_sendv(exs_fd_t fd, const struct exs_part *parts, int count, int flags, exs_qh_t queue, void *context);

/**
 * exs_recvv - receive into several pieces of memory
 * @parts: each is filled before the next one
 * @count: up to EXS_PARTS_MAX
 * @flags: EXS_WAITALL
 *
 * As exs_recv() into all of them. Data are not copied: each piece is read by itself from the memory of the peer.
 *
 * Returns an operation. Errors as of exs_recv().
 */
exs_op_t exs_recvv(exs_fd_t fd, const struct exs_part *parts, int count, int flags, exs_qh_t queue, void *context);

/**
 * exs_send_offset - send into the peer's persistent memory, from @offset of it
 *
 * Waits for such memory. Errors of the event: ERANGE: not all of it is within that memory.
 */
exs_op_t exs_send_offset(exs_fd_t fd, exs_mh_t memory, const void *address, size_t length, int flags, exs_qh_t queue,
			 void *context, uint64_t offset);

/**
 * exs_recv_offset - receive from the peer's persistent memory, from @offset of it
 *
 * Errors of the event: ERANGE: not all of it is within that memory; EINVAL: the next message is an ordinary one.
 */
exs_op_t exs_recv_offset(exs_fd_t fd, exs_mh_t memory, void *address, size_t length, int flags, exs_qh_t queue,
			 void *context, uint64_t offset);

/**
 * exs_sendfile - send a part of a file
 * @file: open for reading, of a file that can be mapped; may be closed at once
 * @length: at least 1
 *
 * Errors as of exs_send(), and those of mmap(); EINVAL: not all of it is within the file.
 */
exs_op_t exs_sendfile(exs_fd_t fd, int file, uint64_t offset, size_t length, exs_qh_t queue, void *context);

/**
 * exs_cancel - cancel an operation
 *
 * Its event is queued in any case: ECANCELED, or its outcome if it was done before. The peer cannot reach its memory then:
 * a peer that does not answer within EXS_CLOSE_MS is disconnected.
 *
 * Errors: ENOENT: no such pending operation.
 */
int exs_cancel(exs_fd_t fd, exs_op_t operation);

/* events of exs_poll() */
#define EXS_POLLIN 1  /* exs_recv() or exs_accept() would not wait */
#define EXS_POLLOUT 4 /* exs_send() would not wait for a credit */
#define EXS_POLLERR 8 /* connecting or the connection failed */
#define EXS_POLLHUP 16
#define EXS_POLLNVAL 32

struct exs_pollfd {
	exs_fd_t fd; /* negative: ignored */
	int16_t events;
	int16_t revents;
};

/**
 * exs_poll - wait until an operation would not block
 * @timeout: milliseconds; negative: no limit
 *
 * Returns the number of entries with revents. Errors: EINTR: a signal handler ran before there was one.
 */
int exs_poll(struct exs_pollfd *fds, size_t count, int timeout);

/**
 * exs_qpoll - queue an event when an operation would not block
 * @events: EXS_POLLIN, EXS_POLLOUT, both or 0
 *
 * As exs_poll() of one socket, without a thread that waits. The event comes once, with the state of the socket in @flags;
 * EXS_POLLERR and EXS_POLLHUP are reported in any case. exs_cancel() ends it, and exs_close(), with ECANCELED.
 *
 * Returns an operation. Errors: EINVAL: unknown @events.
 */
exs_op_t exs_qpoll(exs_fd_t fd, int events, exs_qh_t queue, void *context);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
