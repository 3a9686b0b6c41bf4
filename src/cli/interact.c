#include "cli/interact.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "cli/terminal.h"

#define LEAVE_MAX_NS (5 * BH_NS_PER_S)

enum { CTRL_P = 16, CTRL_Q = 17, INPUT_CHUNK = 16 << 10, LEAVE_LOOK_MS = 100 };

/* Where it stands. */
struct talk {
    struct bh_interact *interact;
    uint32_t credit;
    uint8_t flags;
    bool input_over, held;       /* held: a Ctrl-P that waits for what follows */
    bool over;
};

/* ---- what comes ---- */

static bh_rc
begin(struct talk *talk, const struct bh_stream_frame *frame)
{
    talk->interact->ready = true;
    talk->credit = frame->number;
    talk->flags = frame->flags;
    if (!(frame->flags & BH_STREAM_WRITER) || !talk->interact->input)
        talk->input_over = true;
    else if (frame->flags & BH_STREAM_TTY)
        bh_terminal_raw();
    return BH_OK;
}

static bh_rc
take(struct talk *talk, const struct bh_stream_frame *frame, struct bh_err *err)
{
    switch (frame->kind) {
    case BH_STREAM_READY:
        return begin(talk, frame);
    case BH_STREAM_STDOUT:
        return bh_fd_write_all(STDOUT_FILENO, frame->bytes, frame->length, err);
    case BH_STREAM_STDERR:
        return bh_fd_write_all(STDERR_FILENO, frame->bytes, frame->length, err);
    case BH_STREAM_CREDIT_MORE:
        talk->credit += frame->number;
        return BH_OK;
    case BH_STREAM_EXIT:
        talk->interact->status = (int)frame->number;
        talk->over = true;
        return BH_OK;
    case BH_STREAM_ERROR:
        return bh_err_set(err, (bh_rc)frame->number, "%.*s", (int)frame->length, frame->bytes);
    case BH_STREAM_STDIN:
    case BH_STREAM_RESIZE:
    case BH_STREAM_SIGNAL:
    case BH_STREAM_LEAVE:
    case BH_STREAM_KINDS:
        break;
    }
    return BH_OK;
}

static bh_rc
take_all(struct talk *talk, struct bh_err *err)
{
    for (;;) {
        struct bh_stream_frame frame;
        bh_rc rc = bh_duplex_next(talk->interact->duplex, &frame, err);

        if (rc == BH_NOT_FOUND)
            return BH_OK;
        if (rc == BH_OK)
            rc = take(talk, &frame, err);
        if (rc != BH_OK || talk->over)
            return rc;
    }
}

/* ---- what goes ---- */

static bh_rc
send_input(struct talk *talk, const char *bytes, size_t length, struct bh_err *err)
{
    struct bh_stream_frame frame = { .kind = BH_STREAM_STDIN, .bytes = bytes, .length = length };

    if (length == 0)
        return BH_OK;
    talk->credit -= (uint32_t)length;
    return bh_duplex_send(talk->interact->duplex, &frame, err);
}

/* Keys typed, without the two that leave; a Ctrl-P goes out when something else follows. */
static bh_rc
pass_keys(struct talk *talk, const char *bytes, size_t length, struct bh_err *err)
{
    char out[2 * INPUT_CHUNK];
    size_t count = 0;

    for (size_t i = 0; i < length; i++) {
        if (talk->held && bytes[i] == CTRL_Q) {
            talk->interact->detached = talk->over = true;
            break;
        }
        if (talk->held)
            out[count++] = CTRL_P;
        talk->held = bytes[i] == CTRL_P;
        if (!talk->held)
            out[count++] = bytes[i];
    }
    return send_input(talk, out, count, err);
}

static bh_rc
read_input(struct talk *talk, struct bh_err *err)
{
    struct bh_stream_frame end = { .kind = BH_STREAM_STDIN };
    char bytes[INPUT_CHUNK];
    /* a held key may come on top */
    size_t room = talk->credit - 1 < sizeof bytes ? talk->credit - 1 : sizeof bytes;
    ssize_t got = read(STDIN_FILENO, bytes, room);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return BH_OK;
    if (got <= 0) {
        talk->input_over = true;
        return bh_duplex_send(talk->interact->duplex, &end, err);
    }
    if (talk->interact->detach && talk->flags & BH_STREAM_TTY && isatty(STDIN_FILENO))
        return pass_keys(talk, bytes, (size_t)got, err);
    return send_input(talk, bytes, (size_t)got, err);
}

static bh_rc
send_size(struct talk *talk, struct bh_err *err)
{
    struct bh_stream_frame size = { .kind = BH_STREAM_RESIZE };

    if (!(talk->flags & BH_STREAM_TTY) || !bh_terminal_size(&size.rows, &size.columns))
        return BH_OK;
    return bh_duplex_send(talk->interact->duplex, &size, err);
}

static bh_rc
pass_signals(struct talk *talk, struct bh_err *err)
{
    struct bh_stream_frame frame = { .kind = BH_STREAM_SIGNAL };
    bh_rc rc = BH_OK;

    for (int number; rc == BH_OK && (number = bh_terminal_next_signal()) != 0;) {
        frame.number = (uint32_t)number;
        if (number == SIGWINCH) {
            rc = send_size(talk, err);
        } else if (talk->interact->detach || number == SIGHUP) {
            talk->interact->detached = talk->over = true;
            talk->interact->status = 128 + number;
        } else {
            rc = bh_duplex_send(talk->interact->duplex, &frame, err);
        }
    }
    return rc;
}

/* Until the job has let go of us, so that who attaches next may write; whatever else ends the
 * stream will do. */
static void
leave(struct talk *talk)
{
    struct bh_stream_frame frame = { .kind = BH_STREAM_LEAVE };
    struct pollfd polled = { .fd = bh_duplex_fd(talk->interact->duplex), .events = POLLIN };
    bh_ns until = bh_time_monotonic() + LEAVE_MAX_NS;
    struct bh_err ignored;
    bh_rc rc = bh_duplex_send(talk->interact->duplex, &frame, &ignored);

    while (rc == BH_OK && bh_time_monotonic() < until) {
        rc = bh_duplex_next(talk->interact->duplex, &frame, &ignored);
        if (rc == BH_OK && (frame.kind == BH_STREAM_EXIT || frame.kind == BH_STREAM_ERROR))
            return;
        if (rc == BH_NOT_FOUND) {
            (void)!poll(&polled, 1, LEAVE_LOOK_MS);
            rc = BH_OK;
        }
    }
}

/* ---- the loop ---- */

static bh_rc
turn(struct talk *talk, int signals, struct bh_err *err)
{
    bool asks = talk->interact->ready && !talk->input_over && talk->credit > 1;
    struct pollfd polls[3] = {
        { .fd = bh_duplex_fd(talk->interact->duplex), .events = POLLIN },
        { .fd = asks ? STDIN_FILENO : -1, .events = POLLIN },
        { .fd = signals, .events = POLLIN },
    };
    bh_rc rc = BH_OK;

    if (poll(polls, 3, -1) < 0 && errno != EINTR)
        return bh_err_errno(err, "poll");
    if (polls[2].revents)
        rc = pass_signals(talk, err);
    if (rc == BH_OK && !talk->over && polls[0].revents)
        rc = take_all(talk, err);
    if (rc == BH_OK && !talk->over && polls[1].revents && asks)
        rc = read_input(talk, err);
    return rc;
}

bh_rc
bh_interact(struct bh_interact *interact, struct bh_err *err)
{
    struct talk talk = { .interact = interact };
    int signals = bh_terminal_signals();
    bh_rc rc = take_all(&talk, err); /* what came with the 101 */

    interact->detached = false;
    if (rc == BH_OK && !talk.over)
        rc = send_size(&talk, err);
    while (rc == BH_OK && !talk.over)
        rc = turn(&talk, signals, err);
    if (rc == BH_OK && interact->detached && interact->detach && interact->ready)
        leave(&talk);
    bh_terminal_restore();
    return rc;
}
