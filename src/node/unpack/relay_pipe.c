#include "node/unpack/relay_pipe.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

bool
bh_relay_pipes_have_space(const struct bh_relay_pipes *pipes)
{
    return pipes->count < BH_RELAY_PIPES_MAX;
}

void
bh_relay_pipe_add(struct bh_relay_pipes *pipes, int inside, int outside)
{
    struct bh_relay_pipe *pipe = &pipes->pipe[pipes->count++];

    BH_ASSERT(pipes->count <= BH_RELAY_PIPES_MAX);
    pipe->inside = inside;
    pipe->outside = outside;
    pipe->out.from = pipe->out.to = pipe->in.from = pipe->in.to = 0;
    pipe->out.ended = pipe->out.passed = pipe->in.ended = pipe->in.passed = false;
}

static bool
is_empty(const struct bh_relay_way *way)
{
    return way->from == way->to;
}

static short
events_of(const struct bh_relay_way *read, const struct bh_relay_way *write)
{
    return (short)((!read->ended && is_empty(read) ? POLLIN : 0) | (is_empty(write) ? 0 : POLLOUT));
}

/* A socket that nothing is wanted of would wake the loop by its end, again and again. */
static struct pollfd
poll_entry(int fd, short events)
{
    return (struct pollfd){ .fd = events ? fd : -1, .events = events };
}

uint32_t
bh_relay_pipe_fds(const struct bh_relay_pipes *pipes, struct pollfd *ret_fds)
{
    for (uint32_t i = 0; i < pipes->count; i++) {
        const struct bh_relay_pipe *pipe = &pipes->pipe[i];

        ret_fds[2 * i] = poll_entry(pipe->inside, events_of(&pipe->out, &pipe->in));
        ret_fds[2 * i + 1] = poll_entry(pipe->outside, events_of(&pipe->in, &pipe->out));
    }
    return 2 * pipes->count;
}

/* How many bytes came; -1: the connection broke. */
static ssize_t
relay_pipe_fill(struct bh_relay_way *way, int fd)
{
    ssize_t n;

    if (way->ended || !is_empty(way))
        return 0;
    n = read(fd, way->bytes, sizeof way->bytes);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    way->from = 0;
    way->to = (size_t)n;
    way->ended = n == 0;
    return n;
}

static bool
relay_pipe_drain(struct bh_relay_way *way, int fd)
{
    while (!is_empty(way)) {
        ssize_t n = write(fd, way->bytes + way->from, way->to - way->from);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        way->from += (size_t)n;
    }
    if (way->ended && !way->passed) {
        way->passed = true;
        shutdown(fd, SHUT_WR);
    }
    return true;
}

/* False: it is over. */
static bool
relay_pipe_move(struct bh_relay_pipe *pipe, struct bh_relay_shared *shared)
{
    ssize_t out = relay_pipe_fill(&pipe->out, pipe->inside), in = relay_pipe_fill(&pipe->in, pipe->outside);

    if (out > 0 || in > 0)
        atomic_store(&shared->moved_at, bh_time_monotonic());
    if (in > 0
        && atomic_fetch_add(&shared->received_bytes, (uint64_t)in) + (uint64_t)in
               > atomic_load(&shared->limit_bytes))
        atomic_store(&shared->over, true);
    if (out < 0 || in < 0 || atomic_load(&shared->over) || !relay_pipe_drain(&pipe->out, pipe->outside)
        || !relay_pipe_drain(&pipe->in, pipe->inside))
        return false;
    return !(pipe->out.passed && pipe->in.passed);
}

/* From the last, so that one that is over can be replaced by it. */
void
bh_relay_pipe_move(struct bh_relay_pipes *pipes, const struct pollfd *fds, struct bh_relay_shared *shared)
{
    for (uint32_t i = pipes->count; i-- > 0;) {
        struct bh_relay_pipe *pipe = &pipes->pipe[i];

        if ((fds[2 * i].revents == 0 && fds[2 * i + 1].revents == 0) || relay_pipe_move(pipe, shared))
            continue;
        close(pipe->inside);
        close(pipe->outside);
        *pipe = pipes->pipe[--pipes->count];
    }
}
