#ifndef BH_PORTS_HTTP_H
#define BH_PORTS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/time.h"
#include "policy/operations.h"

/* A request as the API sees it, whatever server brought it.  A thread serves one
 * request at a time, so a handler may block; one thread reads all streams, so a stream may not.
 * A request lives until its reply was sent, or its stream closed. */

/* The peer, as far as the transport proves it. */
struct bh_transport {
    bool unix_socket;
    uint32_t uid, gid; /* unix socket: SO_PEERCRED */
    uint32_t gids[64]; /* and supplementary groups, primary one included */
    uint32_t gid_count;
    char address[48];        /* HTTPS: "127.0.0.1"; never trusted for anything */
    char block[48];          /* HTTPS: what one client has at its disposal: of IPv6 the first
                                64 bits, "2001:db8:0:1::/64"; of IPv4 the address */
    uint8_t certificate[32]; /* HTTPS: SHA-256 of the client's certificate (DER), which was
                                verified; zeros: it showed none */
};

struct bh_request {
    enum bh_method method;
    const char *path; /* decoded, begins with '/', no NUL */
    const char *body; /* NUL-terminated; "" when there is none */
    size_t body_length;
    const char *content_type, *authorization, *idempotency_key, *accept; /* NULL: absent */
    const char *cookie, *host;       /* the same; `cookie` is the header's whole text */
    const char *origin, *fetch_site; /* Origin and Sec-Fetch-Site: which page sent it */
    const char *upgrade;             /* Upgrade: what the client wants to speak instead */
    const struct bh_transport *transport;
    struct bh_arena *arena; /* lives as long as the request */
    /* The query parameter of that name, or NULL; decoded.  For the handler: a stream's request has lost
     * its query. */
    const char *(*query)(const struct bh_request *request, const char *name);
    /* Calls `sink` for each query parameter. */
    void (*each_query)(const struct bh_request *request,
                       void (*sink)(void *self, const char *name, const char *value), void *self);
    void *server; /* the adapter's own */
};

/* How a stream's source says that there is something to read again.  Any thread may wake; it takes a moment,
 * and no lock but the last of tables/locks.tbl. */
struct bh_waker {
    void (*wake)(void *self);
    void *self;
};

enum { BH_STREAM_OVER = -1 };

/* The source of a streamed body.  The thread that reads it reads all others too: nothing here waits.
 *
 *   begin  once, before the first read: the source wakes `waker` whenever a read that had nothing would now
 *          have something
 *   read   fills `memory` with at most `size` bytes and returns how many; 0 when there is nothing now:
 *          it is called again when woken, and when the monotonic clock says *ret_again at the latest;
 *          BH_STREAM_OVER at the end
 *   close  once; from its return on the source wakes no more.  Also of a stream that never began
 *
 * A reader that takes nothing is not read for; one that goes has its stream closed at once. */
struct bh_stream {
    void (*begin)(void *self, const struct bh_waker *waker);
    long (*read)(void *self, char *memory, size_t size, bh_ns *ret_again);
    void (*close)(void *self);
    void *self;
};

/* What takes the connection over after a 101.  Exactly one of the two is called, once, and both
 * end what `self` holds: `run` in a thread of its own, with a connected stream socket that stays
 * the server's (it is non-blocking, and shut down when the server ends); `drop` when the
 * connection never came. */
struct bh_upgrade {
    void (*run)(void *self, int fd);
    void (*drop)(void *self);
    void *self;
    const char *protocol;
};

enum { BH_REPLY_HEADERS_MAX = 12, BH_WHO_TEXT = 64 };

struct bh_header {
    const char *name, *value; /* live as long as the request */
};

struct bh_reply {
    uint32_t status;
    const char *content_type;
    struct bh_header headers[BH_REPLY_HEADERS_MAX]; /* extra ones, or instead of
                                    Cache-Control: no-store */
    uint32_t header_count;
    bool known;                /* the caller is known: the connection is not anonymous */
    uint32_t principal;        /* the principal that asked; 0: none with a number */
    char who[BH_WHO_TEXT];     /* and by which name, for the log */
    struct bh_buf body;        /* grows up to 64 MiB; released by the server */
    struct bh_stream stream;   /* used instead of `body` when read is not NULL */
    struct bh_upgrade upgrade; /* used instead of either when run is not NULL: a 101 */
};

/* Add a header. */
static inline void
bh_reply_header(struct bh_reply *reply, const char *name, const char *value)
{
    BH_ASSERT(reply->header_count < BH_REPLY_HEADERS_MAX);
    reply->headers[reply->header_count++] = (struct bh_header){ name, value };
}

/* Where a bound on connections or streams was reached: for the log, reported at most once a second, of the
 * same one once a minute. */
struct bh_crowding {
    const char *who;              /* a principal's name, else what is known: "uid 7", an address */
    uint32_t held;                /* how many it holds */
    uint32_t taken_back, refused; /* since the last report, of it and of those that were not reported */
};

/* Called by any thread; returns soon. */
typedef void (*bh_http_crowded)(const struct bh_crowding *crowding);

/* The API: answers every request, also wrong ones. */
typedef void (*bh_http_handler)(void *self, const struct bh_request *request, struct bh_reply *reply);

#endif
