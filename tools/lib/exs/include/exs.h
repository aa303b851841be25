/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * libexs: asynchronous sockets on registered memory
 *
 * A program registers memory once and names it in each send and receive. Operations return at once; that they are done
 * is an event in a queue of the program's. The receiver's end reads the data straight from the sender's memory (RDMA
 * Read) where both have an RDMA device; over TCP the library does the same in its own thread. exs(7) is the manual.
 *
 * Functions return -1 and set errno, or what they say. All may be called from any thread at any time.
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
 * Handles: positive, never used twice; what is closed is EBADF. They are no file descriptors.
 */
typedef int64_t exs_fd_t; /* a socket */
typedef int64_t exs_qh_t; /* a queue of events */
typedef int64_t exs_mh_t; /* registered memory */
typedef int64_t exs_op_t; /* an operation under way */

/**
 * exs_init - start the library
 * @version: EXS_VERSION
 *
 * Starts the progress thread. May be called more than once, by several libraries of a program: exs_exit() is due for each.
 *
 * A child of fork() has no part in the library of its parent: exs_exit() does nothing in it, other calls are EBADF, and
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
 * thread. Operations end without an event; their memory is not used any more when this returns. No other call may be under
 * way. Earlier calls change nothing: close your sockets before.
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
};

/* flags of an event */
#define EXS_EOF 1       /* RECV: the peer has shut down or closed, and all has been received */
#define EXS_TRUNCATED 2 /* RECV: the message was longer */

/**
 * struct exs_event - what has become of an operation
 * @type: enum exs_event_type
 * @error: 0 or an errno value
 * @flags: EXS_EOF, EXS_TRUNCATED
 * @count: NOTE: how many times since the last one
 * @op: what the call returned
 * @fd: the socket of the call
 * @accepted: ACCEPT without an error: the connected socket
 * @length: octets sent or received
 * @context: what the call was given
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
 * exs_qcreate - make a queue
 *
 * Any number of sockets and threads may use it. It has room for all events of all operations that were started.
 */
exs_qh_t exs_qcreate(void);

/**
 * exs_qdelete - delete a queue
 *
 * Events that nobody has taken are lost, accepted connections among them closed; exs_qdequeue() of other threads ends with EBADF. Errors: EBUSY: operations
 * are under way that report to it.
 */
int exs_qdelete(exs_qh_t queue);

/**
 * exs_qabandon - delete a queue that operations report to
 *
 * As exs_qdelete(), without EBUSY. The operations go on without an event; a connection is left to the next exs_accept().
 */
int exs_qabandon(exs_qh_t queue);

/**
 * exs_qfd - the eventfd of a queue, for poll(), epoll and the like
 *
 * Readable while the queue has events. Not to be read, written or closed by the program.
 */
int exs_qfd(exs_qh_t queue);

/**
 * exs_qdequeue - take events
 * @max: as many as there is room for at @events, at least 1
 * @timeout: milliseconds to wait for the first; 0: do not wait; negative: for ever
 *
 * Returns how many: 0 if there was none in time. Errors: EINTR.
 */
int exs_qdequeue(exs_qh_t queue, struct exs_event *events, int max, int timeout);

/* ---- memory */

#define EXS_MEM_SEND 1 /* peers may read it once it has been sent from */
#define EXS_MEM_RECV 2 /* it may be received into */

/**
 * exs_mregister - register memory
 * @access: EXS_MEM_SEND, EXS_MEM_RECV or both
 *
 * It must stay mapped until it is deregistered. It is pinned (RLIMIT_MEMLOCK) when a socket uses it first, for each
 * connection. exs(7) says what a peer can read of it, and for how long.
 *
 * Errors: EINVAL: length 0, an end behind the last address, no access; EFAULT: not all of it is mapped.
 */
exs_mh_t exs_mregister(void *address, size_t length, int access);

/**
 * exs_mderegister - deregister memory
 *
 * No connection can reach it any more when this returns. Errors: EBUSY: operations use it.
 */
int exs_mderegister(exs_mh_t memory);

/**
 * exs_mrevoke - cancel what uses the memory, and deregister it
 *
 * New operations are refused (EBADF) from now on. Those under way complete (exs_cancel()); then the memory is
 * deregistered and EXS_EVENT_REVOKE comes.
 *
 * Returns an operation.
 */
exs_op_t exs_mrevoke(exs_mh_t memory, exs_qh_t queue, void *context);

/* ---- sockets */

enum exs_protocol {
	EXS_PROTO_ANY = 0,  /* RDMA where a device has the address, else TCP */
	EXS_PROTO_RDMA = 1,
	EXS_PROTO_TCP = 2,
};

/**
 * exs_socket - make a socket
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
 * Whether it can be had is seen by exs_listen() or exs_connect().
 */
int exs_bind(exs_fd_t fd, const struct sockaddr *address, socklen_t length);

/**
 * exs_listen - take connections
 * @backlog: how many connections wait for exs_accept(), 1 to 4096; further ones are refused
 *
 * With EXS_PROTO_ANY peers can connect over RDMA, if a device has the address, and over TCP. siw takes its ports from TCP:
 * there TCP has the port that follows, which clients find by themselves, and EXS_GET EXS_TCP_PORT returns.
 *
 * A peer that does not complete the set-up within 10 s is dropped.
 *
 * Errors: EADDRINUSE: the port, or the one that follows where TCP needs that; and those of bind() and listen().
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
 * ENODEV: no RDMA device reaches the address, EPROTOTYPE: the listener's type is another, EPROTO: it is no listener of
 * libexs or of another version.
 */
exs_op_t exs_connect(exs_fd_t fd, const struct sockaddr *address, socklen_t length, exs_qh_t queue, void *context);

/**
 * exs_close - close a socket
 * @queue: 0, or where EXS_EVENT_CLOSE is to go
 *
 * The handle is gone at once. Operations under way complete with ECANCELED, or as they end meanwhile, and the event
 * of the close comes behind theirs. The peer gets EXS_EOF (ECONNRESET if it has not received all that was sent: wait
 * for the events of sends before closing). Waits for a peer for EXS_CLOSE_MS at most.
 *
 * Returns an operation.
 */
exs_op_t exs_close(exs_fd_t fd, exs_qh_t queue, void *context);

/**
 * exs_shutdown - send nothing more
 *
 * The peer gets EXS_EOF behind all that was sent before.
 */
int exs_shutdown(exs_fd_t fd);

/**
 * exs_getsockname - get the local address
 * @length: in: the room at @address; out: the length of the whole address
 *
 * Of a bound socket the address of exs_bind(), of a listener or a connection the one in use.
 */
int exs_getsockname(exs_fd_t fd, struct sockaddr *address, socklen_t *length);

/**
 * exs_getpeername - get the address of the peer
 * @length: in: the room at @address; out: the length of the whole address
 *
 * Errors: ENOTCONN.
 */
int exs_getpeername(exs_fd_t fd, struct sockaddr *address, socklen_t *length);

/* ---- settings */

#define EXS_GET 1
#define EXS_SET 2

enum exs_option {
	EXS_SEND_CREDITS = 1,  /* advertisements of ours that the peer holds at a time, 1 to 4096 (16) */
	EXS_RECV_CREDITS = 2,  /* advertisements of the peer's that we hold, 1 to 4096 (16) */
	EXS_SMALL_MAX = 3,     /* data up to so many octets travel with the advertisement, 0 to 1048576 (1024) */
	EXS_IRD = 4,	       /* RDMA Reads of the peer's at a time, 0 to 255 (16) */
	EXS_ORD = 5,	       /* RDMA Reads of ours at a time, 0 to 255 (16) */
	EXS_CONNECT_MS = 6,    /* how long a connect may take, 1 to 3600000 (30000) */
	EXS_CLOSE_MS = 7,      /* how long a peer may take to answer a close or a cancel, 1 to 3600000 (5000) */
	EXS_TCP_PORT = 8,      /* the port of EXS_PROTO_ANY over TCP; 0: the same, or the next one (0) */
	EXS_PROTOCOL = 9,      /* get only: EXS_PROTO_RDMA or EXS_PROTO_TCP once connected */
	EXS_EXACT = 10,	       /* over RDMA, too, a send opens its range alone, by a registration of its own, 0 or 1 (0) */
};

/**
 * exs_fcntl - get or set an option
 * @command: EXS_GET; EXS_SET, with an unsigned int behind @option
 *
 * Options can be set until exs_connect() or exs_listen(), EXS_CLOSE_MS always. Once connected EXS_GET returns what is
 * in force with this peer.
 *
 * Returns the value, or 0. Errors: EINVAL: no such option, or out of its range; EISCONN: too late.
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
 * The event comes when the peer has received it; until then the data must not be changed. A persistent send ends by
 * exs_cancel() or with the connection.
 *
 * Returns an operation. Errors: EINVAL, EFAULT: not within the memory; EACCES: not registered for this; ENOTCONN;
 * EPIPE: shut down, or the peer has closed; EBUSY: a persistent send is under way; ENOMEM: cannot be pinned;
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
 * SOCK_STREAM: at least one octet. A persistent receive ends with EXS_EOF when the peer shuts down: all is in place then.
 *
 * Returns an operation. Errors as of exs_send().
 */
exs_op_t exs_recv(exs_fd_t fd, exs_mh_t memory, void *address, size_t length, int flags, exs_qh_t queue, void *context);

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
 * Errors of the event: ERANGE: not all of it is within that memory; EINVAL: what is there is an ordinary message.
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
 * exs_cancel - give up an operation
 *
 * Its event comes in any case: ECANCELED, or its outcome if it was done before. The peer cannot reach its memory then:
 * one that does not answer within EXS_CLOSE_MS loses the connection.
 *
 * Errors: ENOENT: no such operation under way.
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
 * exs_poll - wait until operations would not
 * @timeout: milliseconds; negative: for ever
 *
 * Returns how many have revents.
 */
int exs_poll(struct exs_pollfd *fds, size_t count, int timeout);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
