#include "node/stream/stream_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/time.h"
#include "node/common/init_message.h"

enum { TIMEOUT_MS = 30000, LAST_WORD_MS = 5000 };

void
bh_pump_init(struct bh_pump *pump, int client)
{
    memset(pump, 0, sizeof *pump);
    pump->client = client;
    pump->answers = pump->keeper = pump->input = pump->sources[0] = pump->sources[1] = -1;
    fcntl(client, F_SETFL, O_RDWR | O_NONBLOCK);
}

static void
pump_close_one(int *fd)
{
    bh_fd_close(*fd);
    *fd = -1;
}

/* ---- to the client ---- */

static void
pump_put_frame(struct bh_pump *pump, const struct bh_stream_frame *frame)
{
    BH_ASSERT(sizeof pump->pending - pump->pending_length >= BH_STREAM_FRAME_MAX);
    pump->pending_length += bh_stream_put(pump->pending + pump->pending_length, frame);
}

static void
pump_write_pending(struct bh_pump *pump)
{
    ssize_t went;

    if (pump->pending_length == pump->pending_sent)
        return;
    went = send(pump->client, pump->pending + pump->pending_sent, pump->pending_length - pump->pending_sent,
                MSG_NOSIGNAL);
    if (went > 0)
        pump->pending_sent += (size_t)went;
    else if (went < 0 && errno != EAGAIN && errno != EINTR)
        pump->disconnected = true;
    if (pump->pending_sent == pump->pending_length)
        pump->pending_sent = pump->pending_length = 0;
}

/* Whether there is room for a frame of output and for a small one behind it. */
static bool
pump_has_space(const struct bh_pump *pump)
{
    return sizeof pump->pending - pump->pending_length >= BH_STREAM_FRAME_MAX + 64;
}

/* Wait until all is written, a while. */
static void
pump_write_last_words(struct bh_pump *pump)
{
    bh_ns until = bh_time_monotonic() + LAST_WORD_MS * BH_NS_PER_MS;

    while (!pump->disconnected && pump->pending_length > 0 && bh_time_monotonic() < until) {
        struct pollfd polled = { .fd = pump->client, .events = POLLOUT };

        (void)!poll(&polled, 1, 100);
        pump_write_pending(pump);
    }
}

void
bh_pump_refuse(struct bh_pump *pump, const struct bh_err *err)
{
    struct bh_stream_frame frame = {
        .kind = BH_STREAM_ERROR, .number = err->rc, .bytes = err->msg, .length = strlen(err->msg)
    };

    pump_write_last_words(pump);
    if (pump->disconnected || !pump_has_space(pump))
        return;
    pump_put_frame(pump, &frame);
    pump_write_last_words(pump);
}

/* ---- beginning ---- */

/* One answer, with the descriptor that came with it or -1.  False: it has ended. */
static bool
pump_receive_answer(int from, struct bh_init_reply *ret_reply, int *ret_fd)
{
    struct iovec part = { ret_reply, sizeof *ret_reply };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t got = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    *ret_fd = -1;
    if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(ret_fd, CMSG_DATA(head), sizeof(int));
    return got == sizeof *ret_reply;
}

static bh_rc
pump_refused_because(const struct bh_pump *pump, int why, struct bh_err *err)
{
    if (pump->what == BH_STREAM_FORWARD && why == ECONNREFUSED)
        return bh_err_set(err, BH_CONFLICT, "nothing in the job listens on that port");
    if (why == EAGAIN)
        return bh_err_set(err, BH_QUOTA, "the job has too many streams or processes");
    return bh_err_set(err, BH_CONFLICT, "the job refuses: %s", strerror(why));
}

static bh_rc
pump_await_answer(struct bh_pump *pump, struct bh_init_reply *ret_reply, int *ret_fd, struct bh_err *err)
{
    struct pollfd polled[2] = { { .fd = pump->answers, .events = POLLIN },
                                { .fd = pump->client, .events = POLLRDHUP } };
    bh_ns until = bh_time_monotonic() + TIMEOUT_MS * BH_NS_PER_MS;

    while (bh_time_monotonic() < until) {
        if (poll(polled, 2, 200) <= 0)
            continue;
        if (polled[1].revents)
            return bh_err_set(err, BH_UNAVAILABLE, "the client has disconnected");
        if (polled[0].revents && pump_receive_answer(pump->answers, ret_reply, ret_fd))
            return BH_OK;
        if (polled[0].revents && pump->keeper >= 0 && pump_receive_answer(pump->keeper, ret_reply, ret_fd))
            return BH_OK;
        if (polled[0].revents)
            return bh_err_set(err, BH_CONFLICT, "the job has ended");
    }
    return bh_err_set(err, BH_TIMEOUT, "the job does not answer");
}

/* What came with the answer, and what is done with it. */
static void
pump_receive_descriptor(struct bh_pump *pump, int fd)
{
    if (fd < 0)
        return;
    fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    pump->input = fd;
    if (!pump->attached)
        pump->sources[0] = fd;
}

static void
pump_send_ready(struct bh_pump *pump)
{
    uint8_t flags = (uint8_t)((pump->tty ? BH_STREAM_TTY : 0) | (pump->writer ? BH_STREAM_WRITER : 0));
    struct bh_stream_frame ready = { .kind = BH_STREAM_READY, .number = BH_STREAM_CREDIT, .flags = flags };

    pump_put_frame(pump, &ready);
}

static void
pump_resize(const struct bh_pump *pump, uint32_t rows, uint32_t columns)
{
    struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns };

    if (pump->tty && pump->input >= 0 && rows && columns)
        (void)!ioctl(pump->input, TIOCSWINSZ, &size);
}

bh_rc
bh_pump_begin(struct bh_pump *pump, const struct bh_msg_stream *message, struct bh_err *err)
{
    struct bh_init_reply reply;
    int fd = -1;
    bh_rc rc;

    pump->what = (enum bh_stream_what)message->what;
    pump->attached = message->what == BH_STREAM_ATTACH;
    rc = pump_await_answer(pump, &reply, &fd, err);
    if (rc != BH_OK)
        return rc;
    pump_close_one(&pump->keeper);
    if (reply.reply_kind == BH_INIT_FAILED) {
        bh_fd_close(fd);
        return pump_refused_because(pump, reply.value, err);
    }
    pump->tty = pump->attached ? reply.value & BH_INIT_IS_TTY : message->tty;
    pump_receive_descriptor(pump, fd);
    if (pump->what == BH_STREAM_EXEC && !message->input && !pump->tty)
        pump_close_one(&pump->input); /* its input is at its end */
    pump->writer = pump->input >= 0 && (message->input || pump->what == BH_STREAM_FORWARD);
    pump_resize(pump, message->rows, message->columns);
    pump_send_ready(pump);
    return BH_OK;
}

/* ---- from the client ---- */

/* No more input: a connection is shut one way, a pipe closed, a job's own input closed by its
 * keeper; a terminal has no end. */
static void
pump_end_input(struct bh_pump *pump)
{
    struct bh_init_signal end = { 0 };

    pump->no_more_input = true;
    if (pump->taken_length > 0 || pump->input < 0 || pump->tty)
        return;
    if (pump->what == BH_STREAM_FORWARD) {
        (void)!shutdown(pump->input, SHUT_WR);
        pump->input = -1; /* it is sources[0], too, and open as that */
        return;
    }
    if (pump->attached)
        (void)!send(pump->answers, &end, sizeof end, MSG_DONTWAIT | MSG_NOSIGNAL);
    pump_close_one(&pump->input);
}

static bh_rc
pump_read_input(struct bh_pump *pump, const struct bh_stream_frame *frame, struct bh_err *err)
{
    if (!pump->writer || pump->no_more_input)
        return BH_OK; /* no process reads it */
    if (frame->length > sizeof pump->taken - pump->taken_length)
        return bh_err_set(err, BH_INVALID, "more input came than requested");
    if (frame->length == 0) {
        pump_end_input(pump);
        return BH_OK;
    }
    memcpy(pump->taken + pump->taken_length, frame->bytes, frame->length);
    pump->taken_length += frame->length;
    return BH_OK;
}

/* Input to the job; what it took may be sent again. */
static void
pump_write_input(struct bh_pump *pump)
{
    ssize_t went = write(pump->input, pump->taken, pump->taken_length);

    if (went < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (went <= 0) { /* the reader has gone: discard the input */
        went = (ssize_t)pump->taken_length;
        pump->writer = false;
    }
    memmove(pump->taken, pump->taken + went, pump->taken_length - (size_t)went);
    pump->taken_length -= (size_t)went;
    pump->owed += (size_t)went;
    if (pump->no_more_input)
        pump_end_input(pump);
}

/* The keeper knows before the client does, so that the next client to attach finds the slot free. */
static void
pump_leave(struct bh_pump *pump)
{
    if (pump->input >= 0 && pump->taken_length > 0)
        pump_write_input(pump); /* what was typed just before */
    pump_close_one(&pump->answers);
    pump->exited = true;
}

static bh_rc
pump_receive_frame(struct bh_pump *pump, const struct bh_stream_frame *frame, struct bh_err *err)
{
    struct bh_init_signal word = { frame->number };

    if (frame->kind == BH_STREAM_STDIN)
        return pump_read_input(pump, frame, err);
    if (frame->kind == BH_STREAM_LEAVE && pump->attached)
        pump_leave(pump);
    else if (frame->kind == BH_STREAM_RESIZE && (pump->writer || !pump->attached))
        pump_resize(pump, frame->rows, frame->columns);
    else if (frame->kind == BH_STREAM_SIGNAL && pump->what == BH_STREAM_EXEC)
        (void)!send(pump->answers, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
    return BH_OK;
}

static bh_rc
pump_receive_frames(struct bh_pump *pump, struct bh_err *err)
{
    size_t at = 0;

    for (;;) {
        struct bh_stream_frame frame;
        bh_rc rc =
            bh_stream_next(pump->received + at, pump->received_length - at, BH_STREAM_CLIENT, &frame, err);

        if (rc == BH_OK)
            rc = pump_receive_frame(pump, &frame, err);
        if (rc == BH_NOT_FOUND)
            break;
        if (rc != BH_OK)
            return rc;
        at += frame.size;
    }
    memmove(pump->received, pump->received + at, pump->received_length - at);
    pump->received_length -= at;
    return BH_OK;
}

static bh_rc
pump_read_client(struct bh_pump *pump, struct bh_err *err)
{
    ssize_t got = recv(pump->client, pump->received + pump->received_length,
                       sizeof pump->received - pump->received_length, 0);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        pump->disconnected = true;
    if (got <= 0)
        return BH_OK;
    pump->received_length += (size_t)got;
    return pump_receive_frames(pump, err);
}

static void
pump_pay_credit(struct bh_pump *pump)
{
    struct bh_stream_frame more = { .kind = BH_STREAM_CREDIT_MORE, .number = (uint32_t)pump->owed };

    if (pump->owed < BH_STREAM_CREDIT / 4 || !pump_has_space(pump))
        return;
    pump_put_frame(pump, &more);
    pump->owed = 0;
}

/* ---- from the job ---- */

static void
pump_put_output(struct bh_pump *pump, int which, const char *bytes, size_t length)
{
    struct bh_stream_frame frame = { .kind = which == 0 ? BH_STREAM_STDOUT : BH_STREAM_STDERR,
                                     .bytes = bytes,
                                     .length = length };

    pump_put_frame(pump, &frame);
}

/* Read a source once; false when it has nothing now or is at its end. */
static bool
pump_read_source(struct bh_pump *pump, int which)
{
    static char bytes[BH_STREAM_PAYLOAD_MAX];
    ssize_t got = read(pump->sources[which], bytes, sizeof bytes);

    if (got > 0) {
        pump_put_output(pump, which, bytes, (size_t)got);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    pump_put_output(pump, which, NULL, 0);
    if (pump->input == pump->sources[which])
        pump->input = -1;
    pump_close_one(&pump->sources[which]);
    return false;
}

static bh_rc
pump_receive_init(struct bh_pump *pump, struct bh_err *err)
{
    struct bh_init_reply reply;
    int fd;

    errno = 0;
    if (!pump_receive_answer(pump->answers, &reply, &fd)) {
        if (errno == EAGAIN || errno == EINTR)
            return BH_OK;
        pump_close_one(&pump->answers);
        if (pump->what == BH_STREAM_EXEC)
            return bh_err_set(err, BH_CONFLICT, "the job ended, and the command with it");
        pump->exited = true;
        return BH_OK;
    }
    bh_fd_close(fd);
    if (reply.reply_kind != BH_INIT_EXITED)
        return BH_OK;
    pump->exited = true;
    pump->status = (uint8_t)reply.value;
    return BH_OK;
}

/* A packet of the job's own output. */
static bh_rc
pump_receive_keeper(struct bh_pump *pump, struct bh_err *err)
{
    static char bytes[1 + BH_STREAM_PAYLOAD_MAX];
    ssize_t got = recv(pump->answers, bytes, sizeof bytes, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return BH_OK;
    if (got <= 0)
        return bh_err_set(err, BH_TIMEOUT, "cut off: the output was not read for too long");
    if (bytes[0] == BH_ATTACH_ENDED)
        pump->exited = true;
    else if (got > 1)
        pump_put_output(pump, 0, bytes + 1, (size_t)got - 1);
    return BH_OK;
}

/* ---- the loop ---- */

enum { CLIENT, ANSWERS, INPUT, OUTPUT, ERRORS, POLLS };

static void
pump_list_polls(const struct bh_pump *pump, struct pollfd *polls)
{
    bool space = pump_has_space(pump);
    bool writing = pump->input >= 0 && pump->taken_length > 0;

    polls[CLIENT] = (struct pollfd){ .fd = pump->client,
                                     .events = (short)(POLLIN | (pump->pending_length ? POLLOUT : 0)) };
    polls[ANSWERS] = (struct pollfd){ .fd = pump->attached && !space ? -1 : pump->answers, .events = POLLIN };
    polls[INPUT] = (struct pollfd){ .fd = writing ? pump->input : -1, .events = POLLOUT };
    for (int i = 0; i < 2; i++)
        polls[OUTPUT + i] = (struct pollfd){ .fd = space ? pump->sources[i] : -1, .events = POLLIN };
}

static bh_rc
pump_dispatch(struct bh_pump *pump, struct bh_err *err)
{
    struct pollfd polls[POLLS];
    bh_rc rc = BH_OK;

    pump_list_polls(pump, polls);
    if (poll(polls, POLLS, -1) < 0)
        return errno == EINTR ? BH_OK : bh_err_errno(err, "poll");
    if (polls[CLIENT].revents & (POLLIN | POLLHUP | POLLERR))
        rc = pump_read_client(pump, err);
    if (rc == BH_OK && polls[INPUT].revents)
        pump_write_input(pump);
    for (int i = 0; i < 2; i++)
        if (rc == BH_OK && polls[OUTPUT + i].revents && pump->sources[i] >= 0 && pump_has_space(pump))
            pump_read_source(pump, i);
    if (rc == BH_OK && polls[ANSWERS].revents && pump->answers >= 0)
        rc = pump->attached ? pump_receive_keeper(pump, err) : pump_receive_init(pump, err);
    pump_write_pending(pump);
    pump_pay_credit(pump); /* behind it: a credit that found no room has nothing else to wake it */
    pump_write_pending(pump);
    return rc;
}

/* A forwarded connection is over when both directions are. */
static bool
pump_is_over(const struct bh_pump *pump)
{
    if (pump->disconnected || pump->exited)
        return true;
    return pump->what == BH_STREAM_FORWARD && pump->sources[0] < 0;
}

/* What the command wrote before it ended; what it left running is not waited for. */
static void
pump_receive_rest(struct bh_pump *pump)
{
    bh_ns progress = bh_time_monotonic();
    int which = 0;

    while (which < 2 && !pump->disconnected && bh_time_monotonic() - progress < TIMEOUT_MS * BH_NS_PER_MS) {
        struct pollfd polled = { .fd = pump->client, .events = POLLOUT };

        if (!pump_has_space(pump)) {
            if (poll(&polled, 1, 100) > 0)
                progress = bh_time_monotonic();
            pump_write_pending(pump);
        } else if (pump->sources[which] < 0 || !pump_read_source(pump, which)) {
            which++;
        }
    }
}

bh_rc
bh_pump_run(struct bh_pump *pump, struct bh_err *err)
{
    struct bh_stream_frame last = { .kind = BH_STREAM_EXIT };
    bh_rc rc = BH_OK;

    while (rc == BH_OK && !pump_is_over(pump))
        rc = pump_dispatch(pump, err);
    if (rc != BH_OK || pump->disconnected)
        return rc;
    pump_receive_rest(pump);
    pump_write_last_words(pump);
    last.number = pump->status;
    pump_put_frame(pump, &last);
    pump_write_last_words(pump);
    return BH_OK;
}
