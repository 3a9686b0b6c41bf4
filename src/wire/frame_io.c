#include "wire/frame_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/fd.h"

struct bh_link {
    int fd;
    bool closed; /* the peer's end of file was read */
    struct bh_buf in, out;
    size_t taken, written; /* bytes of `in` and `out` that are done with */
};

struct bh_link *
bh_link_new(int fd)
{
    struct bh_link *link = calloc(1, sizeof *link);
    int flags = fcntl(fd, F_GETFL);

    BH_ASSERT(link);
    BH_ASSERT(flags >= 0);
    BH_ASSERT(fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
    link->fd = fd;
    bh_buf_init(&link->in, BH_LINK_READ_MAX);
    bh_buf_init(&link->out, BH_LINK_WRITE_MAX);
    return link;
}

void
bh_link_free(struct bh_link *link)
{
    if (!link)
        return;
    bh_fd_close(link->fd);
    bh_buf_fini(&link->in);
    bh_buf_fini(&link->out);
    free(link);
}

int
bh_link_fd(const struct bh_link *link)
{
    return link->fd;
}

short
bh_link_interest(const struct bh_link *link)
{
    return link->out.length > link->written ? POLLIN | POLLOUT : POLLIN;
}

static bh_rc
gone(struct bh_err *err)
{
    return bh_err_set(err, BH_UNAVAILABLE, "the peer closed the connection");
}

bh_rc
bh_link_readable(struct bh_link *link, struct bh_err *err)
{
    char chunk[65536];

    bh_buf_drop(&link->in, link->taken);
    link->taken = 0;
    if (link->closed)
        return gone(err);
    while (link->in.length + sizeof chunk <= BH_LINK_READ_MAX) {
        ssize_t n = recv(link->fd, chunk, sizeof chunk, MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return BH_OK;
        if (n == 0 || (n < 0 && errno == ECONNRESET)) {
            link->closed = true;
            return link->in.length ? BH_OK : gone(err);
        }
        if (n < 0)
            return bh_err_errno(err, "cannot read from the peer");
        bh_buf_put(&link->in, chunk, (size_t)n);
    }
    return BH_OK;
}

bh_rc
bh_link_next(struct bh_link *link, struct bh_frame *ret_frame, struct bh_err *err)
{
    size_t used, left = link->in.length - link->taken;
    bh_rc rc;

    if (left == 0)
        return bh_err_set(err, BH_NOT_FOUND, "no frame is waiting");
    rc = bh_frame_next(link->in.bytes + link->taken, left, ret_frame, &used, err);
    if (rc == BH_NOT_FOUND && link->closed)
        return bh_err_set(err, BH_UNAVAILABLE, "the peer closed in the middle of a frame");
    if (rc != BH_OK)
        return rc;
    link->taken += used;
    return BH_OK;
}

bh_rc
bh_link_flush(struct bh_link *link, struct bh_err *err)
{
    while (link->written < link->out.length) {
        ssize_t n = send(link->fd, link->out.bytes + link->written, link->out.length - link->written,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return BH_OK;
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return gone(err);
        if (n < 0)
            return bh_err_errno(err, "cannot write to the peer");
        link->written += (size_t)n;
    }
    bh_buf_clear(&link->out);
    link->written = 0;
    return BH_OK;
}

bh_rc
bh_link_put(struct bh_link *link, uint32_t number, const struct bh_fields *fields, const void *message,
            struct bh_err *err)
{
    bh_buf_drop(&link->out, link->written);
    link->written = 0;
    bh_frame_encode(&link->out, number, fields, message);
    if (!link->out.overflow)
        return BH_OK;
    link->out.overflow = false;
    return bh_err_set(err, BH_FULL, "message %s is too long, or too many wait", fields->name);
}

bh_rc
bh_link_send(struct bh_link *link, uint32_t number, const struct bh_fields *fields, const void *message,
             struct bh_err *err)
{
    bh_rc rc = bh_link_put(link, number, fields, message, err);

    return rc == BH_OK ? bh_link_flush(link, err) : rc;
}
