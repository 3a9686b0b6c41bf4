#include "daemon/streams/stream_relay.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/time.h"
#include "wire/stream.h"

enum { BUFFER = 64 << 10, ASK_MS = 1000, LAST_MS = 5000 };

/* One direction. */
struct way {
    int from, to;
    uint64_t bytes;
    size_t length, sent;
    bool over; /* `from` has no more */
    char buffer[BUFFER];
};

/* Where the frames from the node stand. */
struct relay_reading {
    unsigned char head[BH_STREAM_HEADER];
    size_t head_length, left; /* of the payload */
    bool at_first;            /* the payload's first byte is next */
    bool ended;
    bh_rc res;
    int32_t status;
};

static void
relay_read_first(struct relay_reading *r, unsigned char first)
{
    r->at_first = false;
    if (r->head[0] == BH_STREAM_EXIT) {
        r->ended = true;
        r->status = first;
    } else if (r->head[0] == BH_STREAM_ERROR) {
        r->ended = true;
        r->res = first > BH_OK && first <= BH_BUG ? (bh_rc)first : BH_BUG;
    }
}

static void
stream_relay_follow(struct relay_reading *r, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t part;

        if (r->left == 0) {
            r->head[r->head_length++] = (unsigned char)*bytes++;
            length--;
            if (r->head_length < BH_STREAM_HEADER)
                continue;
            r->head_length = 0;
            r->left = r->head[1] | (size_t)r->head[2] << 8 | (size_t)r->head[3] << 16;
            r->at_first = true;
            continue;
        }
        if (r->at_first)
            relay_read_first(r, (unsigned char)*bytes);
        part = length < r->left ? length : r->left;
        bytes += part;
        length -= part;
        r->left -= part;
    }
}

/* False: the connection is broken. */
static bool
stream_relay_fill(struct way *way, struct relay_reading *reading)
{
    ssize_t got = recv(way->from, way->buffer, sizeof way->buffer, MSG_DONTWAIT);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        way->over = true;
    way->length = (size_t)got;
    way->sent = 0;
    way->bytes += (uint64_t)got;
    if (reading)
        stream_relay_follow(reading, way->buffer, way->length);
    return true;
}

static bool
stream_relay_empty(struct way *way)
{
    ssize_t went =
        send(way->to, way->buffer + way->sent, way->length - way->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (went < 0)
        return errno == EAGAIN || errno == EINTR;
    way->sent += (size_t)went;
    return true;
}

static bool
relay_is_full(const struct way *way)
{
    return way->sent < way->length;
}

static short
relay_wants(const struct way *in, const struct way *out)
{
    return (short)((!relay_is_full(in) && !in->over ? POLLIN : 0) | (relay_is_full(out) ? POLLOUT : 0));
}

struct relay_pair {
    struct way up, down; /* from the client, from the node */
    struct relay_reading reading;
    bh_ns moved;
};

/* One turn; false: a side is broken, or all was carried. */
static bool
stream_relay_step(struct relay_pair *pair)
{
    struct pollfd polls[2] = {
        { .fd = pair->up.from, .events = relay_wants(&pair->up, &pair->down) },
        { .fd = pair->down.from, .events = relay_wants(&pair->down, &pair->up) },
    };
    bool good = true;

    if (poll(polls, 2, ASK_MS) <= 0)
        return true;
    pair->moved = bh_time_monotonic();
    if (polls[0].revents & (POLLIN | POLLHUP | POLLERR) && !relay_is_full(&pair->up))
        good = stream_relay_fill(&pair->up, NULL);
    if (good && polls[1].revents & (POLLIN | POLLHUP | POLLERR) && !relay_is_full(&pair->down))
        good = stream_relay_fill(&pair->down, &pair->reading);
    if (good && relay_is_full(&pair->up))
        good = stream_relay_empty(&pair->up);
    if (good && relay_is_full(&pair->down))
        good = stream_relay_empty(&pair->down);
    return good && !pair->up.over && !(pair->down.over && !relay_is_full(&pair->down))
           && !(pair->reading.ended && !relay_is_full(&pair->down));
}

/* What the node said last, for a client that still reads. */
static void
relay_deliver(struct relay_pair *pair)
{
    bh_ns until = bh_time_monotonic() + LAST_MS * BH_NS_PER_MS;
    struct pollfd polled = { .fd = pair->down.to, .events = POLLOUT };

    while (relay_is_full(&pair->down) && bh_time_monotonic() < until) {
        (void)!poll(&polled, 1, 100);
        if (!stream_relay_empty(&pair->down))
            return;
    }
}

/* The relay's own last message; a frame that is half-sent before it is cut there anyway. */
static void
stream_relay_report_error(const struct relay_pair *pair, bh_rc rc, const char *why)
{
    char frame[BH_STREAM_HEADER + 1 + BH_STREAM_WHY_MAX];
    struct bh_stream_frame last = {
        .kind = BH_STREAM_ERROR, .number = rc, .bytes = why, .length = strlen(why)
    };

    if (!relay_is_full(&pair->down) && pair->reading.left == 0 && pair->reading.head_length == 0)
        (void)!send(pair->down.to, frame, bh_stream_put(frame, &last), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bh_rc
stream_relay_all(const struct bh_stream_relay *relay, struct relay_pair *pair)
{
    bh_ns asked = bh_time_monotonic();

    pair->moved = asked;
    while (stream_relay_step(pair)) {
        bh_ns now = bh_time_monotonic();

        if (now - asked > ASK_MS * BH_NS_PER_MS) {
            asked = now;
            if (!relay->may_continue(relay->self)) {
                stream_relay_report_error(pair, BH_DENIED,
                                          "the stream is over: you may no longer, or bulkheadd ends");
                return BH_DENIED;
            }
        }
        if (now - pair->moved > BH_STREAM_RELAY_IDLE_NS) {
            stream_relay_report_error(pair, BH_TIMEOUT, "nothing came for eight hours");
            return BH_TIMEOUT;
        }
    }
    relay_deliver(pair);
    return pair->reading.ended ? pair->reading.res : BH_UNAVAILABLE;
}

void
bh_stream_relay(const struct bh_stream_relay *relay, struct bh_stream_end *ret_end)
{
    struct relay_pair *pair = calloc(1, sizeof *pair);

    BH_ASSERT(pair);
    pair->up.from = pair->down.to = relay->client;
    pair->up.to = pair->down.from = relay->node;
    pair->reading.status = -1;
    ret_end->res = stream_relay_all(relay, pair);
    ret_end->status = pair->reading.status;
    ret_end->in_bytes = pair->up.bytes;
    ret_end->out_bytes = pair->down.bytes;
    free(pair);
}
