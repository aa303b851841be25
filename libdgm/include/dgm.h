/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * libdgm: datagram iWARP in user space. Read NOTICE first.
 *
 * An endpoint is a UDP socket. It sends and receives datagrams (Send), and it writes into zones of other endpoints
 * (Write-Record): the target opens memory for named sources, its library places what they send, and records what has
 * become valid. Nothing is acknowledged or sent again. dgm(7) is the manual, doc/ten-minutes.md the introduction.
 *
 * Functions return -1 or NULL and set errno, or what their comment says. All may be called from any thread, except that
 * nothing may use an endpoint or a zone while or after it is closed.
 */
#ifndef DGM_H
#define DGM_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef struct dgm_endpoint dgm_endpoint;
typedef struct dgm_zone dgm_zone;
typedef struct dgm_map dgm_map;

/* An IPv4 or IPv6 address with its port */
union dgm_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* ---- endpoints */

/* flags of an endpoint */
#define DGM_NO_THREAD 1	     /* dgm_poll() does all the work; else a thread places data while the program sleeps */
#define DGM_SOLICITED_ONLY 2 /* only Sends with Solicited Event and errors make dgm_fd() readable; needs the thread */
#define DGM_NO_SEGMENT 4     /* one system call for each datagram, no UDP_SEGMENT */
#define DGM_NO_GRO 8	     /* no UDP_GRO */
#define DGM_FRAGMENT 16	     /* datagrams longer than the path's MTU go out as IP fragments */
/*
 * A source whose Write-Record is refused gets an error message, if a rule of any zone names it (dgm_allow_any() names none):
 * at most one a second and address, and 64 a second in all. None is longer than the refused datagram, so that needs 24 octets
 * of data; none answers multicast.
 */
#define DGM_SEND_ERRORS 32
/* An error message about one of the last 256 Write-Records, from where it was sent to, is an event: once for each message */
#define DGM_RECEIVE_ERRORS 64

struct dgm_options {
	int socket;	      /* a bound UDP socket that the endpoint takes over, or -1 (-1) */
	uint32_t flags;	      /* (0) */
	uint32_t qkey;	      /* Q_Key of Sends to this endpoint; 0: random (0) */
	uint32_t records;     /* records that can wait, 1 to 1048576 (1024) */
	uint32_t receives;    /* receives that can be posted, 1 to 65536 (256) */
	uint32_t slots;	      /* messages in progress, 1 to 4096 (64) */
	uint32_t deadline_ms; /* from a message's first datagram to its end, 1 to 3600000 (1000) */
	uint32_t gap_ms;      /* from Last until a partial message ends, 0 to 3600000 (2) */
	uint32_t segment;     /* data octets in a datagram of a Write-Record, 1 to 65473; 0: the path's MTU (0) */
	uint32_t send_ms;     /* how long a send waits for the socket, 0 to 3600000 (1000) */
};

/* Fills in the defaults. */
void dgm_defaults(struct dgm_options *options);

/**
 * dgm_open - make an endpoint
 * @address: the local address; its port is the endpoint's number, 0: any. Ignored if a socket is handed over
 * @options: NULL: the defaults
 *
 * Errors: EINVAL: an option out of its range, or no bound UDP socket; those of socket(), bind() and thread creation.
 */
dgm_endpoint *dgm_open(const struct sockaddr *address, socklen_t length, const struct dgm_options *options);

/* Closes the endpoint, its zones and its socket. No memory of the program is used any more when this returns. */
void dgm_close(dgm_endpoint *endpoint);

int dgm_local(dgm_endpoint *endpoint, union dgm_address *address);
uint32_t dgm_qkey(dgm_endpoint *endpoint);

/* The UDP socket, for options of multicast, TTL and buffers. Not to be read, written or closed. */
int dgm_socket(dgm_endpoint *endpoint);

/* Join or leave a multicast group at an interface (0: the system chooses). */
int dgm_join(dgm_endpoint *endpoint, const struct sockaddr *group, socklen_t length, unsigned int interface);
int dgm_leave(dgm_endpoint *endpoint, const struct sockaddr *group, socklen_t length, unsigned int interface);

/* ---- events */

enum dgm_event_type {
	DGM_RECORD = 1,	 /* a part of a zone has become valid */
	DGM_RECEIVE = 2, /* a posted receive is done */
	DGM_ERROR = 3,	 /* the network reports that it could not deliver */
	DGM_REFUSED = 4, /* the target reports that it has refused a datagram of dgm_write(), see DGM_RECEIVE_ERRORS */
};

/* flags of an event */
#define DGM_END 1	/* the message's last record */
#define DGM_HOLES 2	/* not all of the message came */
#define DGM_SOLICITED 4 /* Send with Solicited Event; also a flag of dgm_send() */

/**
 * struct dgm_event - what happened
 * @error: RECEIVE: EMSGSIZE: the data were longer than the memory, and are lost; ERROR: the network's error; REFUSED: the
 *         reason, as layer, type (4 bits each) and code (8 bits) of RFC 5040. 0x1100: no such zone, or a wrong Q_Key;
 *         0x1101: beyond the zone; 0: no room for the record; 0x02ff: it contradicts other datagrams of its message, or
 *         these are too many
 * @peer: who sent it; ERROR: who was not reached
 * @zone: RECORD, REFUSED: number of the zone
 * @msn: number of the message
 * @offset: RECORD, REFUSED: offset in the zone
 * @length: octets at this offset, or received
 * @message: RECORD, REFUSED: where the message begins in the zone
 * @message_length: RECORD, REFUSED: its length
 * @bytes: RECORD with DGM_END: octets of it that came
 * @context: RECEIVE: what dgm_recv() was given
 */
struct dgm_event {
	int32_t type;
	int32_t error;
	uint32_t flags;
	union dgm_address peer;
	uint32_t zone;
	uint32_t msn;
	uint64_t offset;
	uint64_t length;
	uint64_t message;
	uint32_t message_length;
	uint32_t bytes;
	void *context;
};

/**
 * dgm_poll - take events
 * @timeout: milliseconds to wait for the first; 0: do not wait; negative: without limit
 *
 * Returns how many; 0 if none came in time. Errors: EINTR. The deadline holds for peers that flood the socket, too: behind
 * it at most 16 datagrams, or bundles that the kernel has joined, are read.
 */
int dgm_poll(dgm_endpoint *endpoint, struct dgm_event *events, int max, int timeout);

/* A descriptor for epoll and the like, readable when dgm_poll() has something to do. Not to be read or closed. */
int dgm_fd(dgm_endpoint *endpoint);

/* ---- Send and Receive */

/**
 * dgm_recv - post memory for a Send; datagrams match receives in order of arrival
 *
 * The memory is the library's until the event. Errors: ENOBUFS: too many.
 */
int dgm_recv(dgm_endpoint *endpoint, void *memory, size_t length, void *context);

/**
 * dgm_send - send a datagram
 * @flags: DGM_SOLICITED
 *
 * Done when the socket has taken it. Errors: EMSGSIZE: longer than the path's MTU takes; EAGAIN: the socket was full
 * for send_ms; those of sendmsg().
 */
int dgm_send(dgm_endpoint *endpoint, const struct sockaddr *peer, socklen_t length, uint32_t qkey, const void *data,
	     size_t size, int flags);

/* ---- Write-Record */

/* flags of a zone */
#define DGM_PARTIAL 1	/* records of messages with holes; else only of whole messages */
#define DGM_NO_RECORD 2 /* no records */

struct dgm_zone_options {
	uint32_t number; /* STag of the zone; 0: random */
	uint32_t qkey;	 /* 0: random */
	uint32_t flags;
	uint32_t block; /* octets for each bit of the validity map; 0: no map */
};

/**
 * dgm_zone_open - open memory for writing
 * @options: NULL: random numbers, whole messages, no map
 *
 * Nobody may write to it before dgm_allow() or dgm_allow_any(). Errors: EINVAL; EEXIST: the number is in use; ENOSPC:
 * the endpoint has 1024 zones.
 */
dgm_zone *dgm_zone_open(dgm_endpoint *endpoint, void *memory, size_t length, const struct dgm_zone_options *options);

/* Closes it: no octet of it is written any more when this returns. Its records that wait remain. */
void dgm_zone_close(dgm_zone *zone);

uint32_t dgm_zone_number(dgm_zone *zone);
uint32_t dgm_zone_qkey(dgm_zone *zone);

/* Lets a source write: an address, or all of its family that have its first @prefix bits (32 or 128: this address), with a mapped
 * IPv4 address at least 97; port 0: any port.
 * A zone has 65536 sources at most (ENOSPC). */
int dgm_allow(dgm_zone *zone, const struct sockaddr *source, socklen_t length, unsigned int prefix);
int dgm_allow_any(dgm_zone *zone);

/* The validity map: has this block been written whole, by one datagram, since it was cleared? No other call is needed. */
int dgm_zone_valid(dgm_zone *zone, size_t block);
void dgm_zone_clear(dgm_zone *zone, size_t first, size_t count);

/**
 * dgm_write - write to another endpoint's zone
 * @offset: where in the zone
 * @msn: set to the number of the message, unless NULL
 *
 * Done when the socket has taken the last datagram. The message has at most 1024 datagrams (EMSGSIZE). When the path's
 * MTU shrinks, it is begun anew. Errors as of dgm_send().
 */
int dgm_write(dgm_endpoint *endpoint, const struct sockaddr *peer, socklen_t length, uint32_t zone, uint32_t qkey,
	      uint64_t offset, const void *data, size_t size, uint32_t *msn);

/* ---- maps: sets of intervals, without an endpoint */

dgm_map *dgm_map_new(void);
void dgm_map_free(dgm_map *map);
int dgm_map_add(dgm_map *map, uint64_t offset, uint64_t length);
int dgm_map_has(const dgm_map *map, uint64_t offset, uint64_t length); /* 1 if all of it is in the map */
uint64_t dgm_map_bytes(const dgm_map *map);

/* Finds the first interval that ends behind *@offset and sets *@offset and *@length. Returns 0 if there is none. */
int dgm_map_next(const dgm_map *map, uint64_t *offset, uint64_t *length);

/* Takes the zone's records out of the queue and adds them to the map. Returns how many. */
int dgm_fold(dgm_endpoint *endpoint, uint32_t zone, dgm_map *map);

/* ---- counters */

/* The value of counter @number, and its name (NULL: no such counter; they are counted from 0). */
uint64_t dgm_counter(dgm_endpoint *endpoint, unsigned int number);
const char *dgm_counter_name(unsigned int number);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
