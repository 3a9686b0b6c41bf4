#include "http_server/stream_loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/lock.h"

enum {
    STACK_BYTES = 256 << 10,
    CHUNK_HEAD_ROOM = 8, /* "3ff0\r\n" */
    CHUNK_TAIL = 2,
    BLOCK_BYTES = BH_SEAL_TEXT_MAX - CHUNK_HEAD_ROOM - CHUNK_TAIL, /* a chunk fits a record */
    TEXT_LEAST = 512, /* the smallest records that a client may ask for */
    RECORDS_BYTES = BH_SEAL_TEXT_MAX + (BH_SEAL_TEXT_MAX / TEXT_LEAST + 2) * BH_SEAL_OVERHEAD,
    BLOCKS_AT_ONCE = 4, /* of one stream, before others have their turn */
    EVENTS_MAX = 64,
    UNREAD_MAX = 16, /* blocks */
    REST = 4         /* times as long as a round took */
};

#define REST_MAX_NS (500 * BH_NS_PER_MS)
#define GRID_NS (10 * BH_NS_PER_MS) /* moments to read again are rounded up to it: one round for many */
#define NEVER UINT64_MAX

struct loop_stream {
    struct bh_streamed is;
    struct bh_stream_loop *loop;
    _Atomic bool woken;
    /* loop thread */
    bh_ns due;     /* to be read again; while something waits: to be given up */
    char *waiting; /* what the socket had no room for */
    size_t waiting_length, waiting_sent;
    bool over; /* nothing more follows what waits */
    struct loop_stream *next, **link;
};

struct bh_stream_loop {
    int epoll, bell; /* an eventfd in the epoll set */
    bh_ns patience;
    pthread_t thread;
    _Atomic bool woken; /* streams are, and the bell was rung for it */
    struct bh_mutex mutex;
    struct loop_stream *added; /* under mutex */
    bool stopping;             /* likewise */
    /* loop thread */
    struct loop_stream *first;
    bh_ns rested; /* when the next round may begin */
    char block[CHUNK_HEAD_ROOM + BLOCK_BYTES + CHUNK_TAIL + 1], records[RECORDS_BYTES];
};

enum loop_outcome { LOOP_SENT, LOOP_WAITS, LOOP_BROKEN };

/* ---- waking ---- */

static void
loop_ring(struct bh_stream_loop *loop)
{
    const uint64_t one = 1;

    (void)!write(loop->bell, &one, sizeof one);
}

static void
loop_wake_stream(void *self)
{
    struct loop_stream *stream = self;

    atomic_store(&stream->woken, true);
    if (!atomic_exchange(&stream->loop->woken, true))
        loop_ring(stream->loop);
}

/* ---- sending ---- */

static void
loop_watch_socket(struct loop_stream *stream, int operation)
{
    struct epoll_event event = { .events =
                                     (stream->is.tcp ? EPOLLRDHUP : 0u) | (stream->waiting ? EPOLLOUT : 0u),
                                 .data.ptr = stream };
    int failed = epoll_ctl(stream->loop->epoll, operation, stream->is.fd, &event);

    BH_ASSERT(!failed);
}

static bool
loop_is_transient(int error)
{
    return error == EAGAIN || error == EINTR;
}

static enum loop_outcome
loop_send(struct loop_stream *stream, const char *bytes, size_t length)
{
    ssize_t sent = send(stream->is.fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent < 0 && !loop_is_transient(errno))
        return LOOP_BROKEN;
    if (sent == (ssize_t)length)
        return LOOP_SENT;
    stream->waiting_length = length - (sent > 0 ? (size_t)sent : 0);
    stream->waiting_sent = 0;
    stream->waiting = malloc(stream->waiting_length);
    BH_ASSERT(stream->waiting);
    memcpy(stream->waiting, bytes + length - stream->waiting_length, stream->waiting_length);
    stream->due = bh_time_monotonic() + stream->loop->patience;
    loop_watch_socket(stream, EPOLL_CTL_MOD);
    return LOOP_WAITS;
}

static enum loop_outcome
loop_send_waiting(struct loop_stream *stream)
{
    ssize_t sent = send(stream->is.fd, stream->waiting + stream->waiting_sent,
                        stream->waiting_length - stream->waiting_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent < 0)
        return loop_is_transient(errno) ? LOOP_WAITS : LOOP_BROKEN;
    stream->due = bh_time_monotonic() + stream->loop->patience;
    stream->waiting_sent += (size_t)sent;
    if (stream->waiting_sent < stream->waiting_length)
        return LOOP_WAITS;
    free(stream->waiting);
    stream->waiting = NULL;
    loop_watch_socket(stream, EPOLL_CTL_MOD);
    return LOOP_SENT;
}

static enum loop_outcome
loop_send_text(struct loop_stream *stream, const char *bytes, size_t length, bool last)
{
    struct bh_buf records;

    if (!stream->is.seal)
        return loop_send(stream, bytes, length);
    bh_buf_init_fixed(&records, stream->loop->records, RECORDS_BYTES);
    if (!bh_seal_put(stream->is.seal, bytes, length, &records)
        || (last && !bh_seal_put_end(stream->is.seal, &records)))
        return LOOP_BROKEN;
    return loop_send(stream, records.bytes, records.length);
}

/* What was read lies at block + CHUNK_HEAD_ROOM. */
static enum loop_outcome
loop_send_block(struct loop_stream *stream, size_t length)
{
    char *text = stream->loop->block + CHUNK_HEAD_ROOM, head[CHUNK_HEAD_ROOM + 1];
    int head_length;

    if (!stream->is.chunked)
        return loop_send_text(stream, text, length, false);
    head_length = snprintf(head, sizeof head, "%zx\r\n", length);
    BH_ASSERT(head_length > 0 && head_length <= CHUNK_HEAD_ROOM);
    memcpy(text - head_length, head, (size_t)head_length);
    memcpy(text + length, "\r\n", CHUNK_TAIL);
    return loop_send_text(stream, text - head_length, (size_t)head_length + length + CHUNK_TAIL, false);
}

static enum loop_outcome
loop_send_end(struct loop_stream *stream)
{
    static const char last_chunk[] = "0\r\n\r\n";

    stream->over = true;
    return loop_send_text(stream, last_chunk, stream->is.chunked ? sizeof last_chunk - 1 : 0, true);
}

/* ---- reading ---- */

static bh_ns
loop_on_grid(bh_ns moment)
{
    return moment < NEVER - GRID_NS ? (moment + GRID_NS - 1) / GRID_NS * GRID_NS : NEVER;
}

/* False: it has ended. */
static bool
loop_read_stream(struct loop_stream *stream)
{
    struct bh_stream *source = &stream->is.source;

    for (int i = 0; i < BLOCKS_AT_ONCE; i++) {
        bh_ns again = NEVER;
        long got = source->read(source->self, stream->loop->block + CHUNK_HEAD_ROOM, BLOCK_BYTES, &again);
        enum loop_outcome outcome;

        if (got == 0) {
            stream->due = loop_on_grid(again);
            return true;
        }
        BH_ASSERT(got <= BLOCK_BYTES);
        outcome = got > 0 ? loop_send_block(stream, (size_t)got) : loop_send_end(stream);
        if (outcome != LOOP_SENT)
            return outcome == LOOP_WAITS;
        if (stream->over)
            return false;
    }
    stream->due = 0;
    return true;
}

/* False: it has ended. */
static bool
loop_continue_stream(struct loop_stream *stream)
{
    enum loop_outcome outcome = stream->waiting ? loop_send_waiting(stream) : LOOP_SENT;

    if (outcome != LOOP_SENT)
        return outcome == LOOP_WAITS;
    return !stream->over && loop_read_stream(stream);
}

/* ---- the beginning and the end of a stream ---- */

/* What the client sent and was not read would have the kernel throw away what it has yet to receive. */
static void
loop_read_unread(int fd)
{
    char unread[512];

    for (int i = 0; i < UNREAD_MAX && recv(fd, unread, sizeof unread, MSG_DONTWAIT) > 0; i++)
        ;
}

static void
loop_close_streamed(struct bh_streamed *is)
{
    is->source.close(is->source.self);
    is->ended(is->self);
    bh_seal_free(is->seal);
    loop_read_unread(is->fd);
    bh_fd_close(is->fd);
}

/* The socket leaves the epoll set by name: while a program is being started a copy of its descriptor is open,
 * and closing the loop's would not take it out. */
static void
loop_end_stream(struct loop_stream *stream)
{
    int failed = epoll_ctl(stream->loop->epoll, EPOLL_CTL_DEL, stream->is.fd, NULL);

    BH_ASSERT(!failed);
    *stream->link = stream->next;
    if (stream->next)
        stream->next->link = stream->link;
    loop_close_streamed(&stream->is);
    free(stream->waiting);
    free(stream);
}

static void
loop_begin_stream(struct bh_stream_loop *loop, struct loop_stream *stream)
{
    const struct bh_waker waker = { loop_wake_stream, stream };

    stream->next = loop->first;
    stream->link = &loop->first;
    if (loop->first)
        loop->first->link = &stream->next;
    loop->first = stream;
    loop_watch_socket(stream, EPOLL_CTL_ADD);
    stream->is.source.begin(stream->is.source.self, &waker);
}

/* False: the loop is to end. */
static bool
loop_begin_added(struct bh_stream_loop *loop)
{
    struct loop_stream *added;
    bool stopping;

    bh_mutex_lock(&loop->mutex);
    added = loop->added;
    loop->added = NULL;
    stopping = loop->stopping;
    bh_mutex_unlock(&loop->mutex);
    while (added) {
        struct loop_stream *next = added->next;

        loop_begin_stream(loop, added);
        added = next;
    }
    return !stopping;
}

/* ---- the thread ---- */

/* Read what is due, and what was woken; returns when something is due next. */
static bh_ns
loop_serve_due(struct bh_stream_loop *loop)
{
    bh_ns begun = bh_time_monotonic(), next = NEVER;
    bool round = begun >= loop->rested && atomic_exchange(&loop->woken, false), woke = false;

    for (struct loop_stream *stream = loop->first, *after; stream; stream = after) {
        bool woken = round && atomic_exchange(&stream->woken, false) && !stream->waiting;

        after = stream->next;
        woke = woke || woken;
        if ((woken || stream->due <= begun) && (stream->waiting || !loop_read_stream(stream)))
            loop_end_stream(stream);
        else if (stream->due < next)
            next = stream->due;
    }
    if (woke) {
        bh_ns now = bh_time_monotonic(), rest = REST * (now - begun);

        loop->rested = now + (rest < REST_MAX_NS ? rest : REST_MAX_NS);
    }
    return atomic_load(&loop->woken) && loop->rested < next ? loop->rested : next;
}

/* Rounded up, so that the moment has come. */
static int
loop_wait_ms(bh_ns until)
{
    bh_ns now = bh_time_monotonic();

    if (until == NEVER)
        return -1;
    return until <= now ? 0 : (int)((until - now) / BH_NS_PER_MS + 1);
}

static void
loop_serve_event(struct bh_stream_loop *loop, const struct epoll_event *event)
{
    struct loop_stream *stream = event->data.ptr;
    uint64_t rings;

    if (!stream)
        (void)!read(loop->bell, &rings, sizeof rings);
    else if (event->events & ~(uint32_t)EPOLLOUT || !loop_continue_stream(stream))
        loop_end_stream(stream);
}

static void *
loop_run(void *self)
{
    struct bh_stream_loop *loop = self;
    struct epoll_event events[EVENTS_MAX];

    while (loop_begin_added(loop)) {
        int count = epoll_wait(loop->epoll, events, EVENTS_MAX, loop_wait_ms(loop_serve_due(loop)));

        for (int i = 0; i < count; i++)
            loop_serve_event(loop, &events[i]);
    }
    while (loop->first) {
        if (!loop->first->waiting)
            (void)loop_send_end(loop->first);
        loop_end_stream(loop->first);
    }
    return NULL;
}

/* ---- the loop's own life ---- */

static bool
loop_open(struct bh_stream_loop *loop)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
    pthread_attr_t attr;
    int failed;

    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll < 0 || loop->bell < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->bell, &event) != 0)
        return false;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    failed = pthread_create(&loop->thread, &attr, loop_run, loop);
    pthread_attr_destroy(&attr);
    return !failed;
}

struct bh_stream_loop *
bh_stream_loop_new(bh_ns patience)
{
    struct bh_stream_loop *loop = calloc(1, sizeof *loop);

    BH_ASSERT(loop);
    loop->patience = patience;
    bh_mutex_init(&loop->mutex, BH_LOCK_STREAM_LOOP);
    if (loop_open(loop))
        return loop;
    bh_stream_loop_free(loop);
    return NULL;
}

void
bh_stream_loop_add(struct bh_stream_loop *loop, const struct bh_streamed *streamed)
{
    struct loop_stream *stream = calloc(1, sizeof *stream);
    bool stopping;

    BH_ASSERT(stream);
    stream->is = *streamed;
    stream->loop = loop;
    bh_mutex_lock(&loop->mutex);
    stopping = loop->stopping;
    if (!stopping) {
        stream->next = loop->added;
        loop->added = stream;
    }
    bh_mutex_unlock(&loop->mutex);
    if (!stopping) {
        loop_ring(loop);
        return;
    }
    loop_close_streamed(&stream->is);
    free(stream);
}

void
bh_stream_loop_stop(struct bh_stream_loop *loop)
{
    bh_mutex_lock(&loop->mutex);
    loop->stopping = true;
    bh_mutex_unlock(&loop->mutex);
    loop_ring(loop);
    pthread_join(loop->thread, NULL);
}

void
bh_stream_loop_free(struct bh_stream_loop *loop)
{
    if (!loop)
        return;
    BH_ASSERT(!loop->first && !loop->added);
    bh_fd_close(loop->epoll);
    bh_fd_close(loop->bell);
    bh_mutex_fini(&loop->mutex);
    free(loop);
}
