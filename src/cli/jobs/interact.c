#include "cli/jobs/interact.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "cli/command/terminal.h"

#define LEAVE_MAX_NS (5 * BH_NS_PER_S)

enum { CTRL_P = 16, CTRL_Q = 17, INPUT_CHUNK = 16 << 10, LEAVE_POLL_MS = 100 };

/* Where it stands. */
struct interact_session {
    struct bh_interact *interact;
    uint32_t credit;
    uint8_t flags;
    bool input_over, held; /* held: a Ctrl-P that waits for what follows */
    bool over;
};

/* ---- what comes ---- */

static bh_rc
interact_start(struct interact_session *session, const struct bh_stream_frame *frame)
{
    session->interact->ready = true;
    session->credit = frame->number;
    session->flags = frame->flags;
    if (!(frame->flags & BH_STREAM_WRITER) || !session->interact->input)
        session->input_over = true;
    else if (frame->flags & BH_STREAM_TTY)
        bh_terminal_raw();
    return BH_OK;
}

static bh_rc
interact_receive(struct interact_session *session, const struct bh_stream_frame *frame, struct bh_err *err)
{
    switch (frame->kind) {
    case BH_STREAM_READY:
        return interact_start(session, frame);
    case BH_STREAM_STDOUT:
        return bh_fd_write_all(STDOUT_FILENO, frame->bytes, frame->length, err);
    case BH_STREAM_STDERR:
        return bh_fd_write_all(STDERR_FILENO, frame->bytes, frame->length, err);
    case BH_STREAM_CREDIT_MORE:
        session->credit += frame->number;
        return BH_OK;
    case BH_STREAM_EXIT:
        session->interact->status = (int)frame->number;
        session->over = true;
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
interact_receive_all(struct interact_session *session, struct bh_err *err)
{
    for (;;) {
        struct bh_stream_frame frame;
        bh_rc rc = bh_duplex_next(session->interact->duplex, &frame, err);

        if (rc == BH_NOT_FOUND)
            return BH_OK;
        if (rc == BH_OK)
            rc = interact_receive(session, &frame, err);
        if (rc != BH_OK || session->over)
            return rc;
    }
}

/* ---- what goes ---- */

static bh_rc
interact_send_input(struct interact_session *session, const char *bytes, size_t length, struct bh_err *err)
{
    struct bh_stream_frame frame = { .kind = BH_STREAM_STDIN, .bytes = bytes, .length = length };

    if (length == 0)
        return BH_OK;
    session->credit -= (uint32_t)length;
    return bh_duplex_send(session->interact->duplex, &frame, err);
}

/* Keys typed, without the two that leave; a Ctrl-P goes out when something else follows. */
static bh_rc
interact_pass_keys(struct interact_session *session, const char *bytes, size_t length, struct bh_err *err)
{
    char out[2 * INPUT_CHUNK];
    size_t count = 0;

    for (size_t i = 0; i < length; i++) {
        if (session->held && bytes[i] == CTRL_Q) {
            session->interact->detached = session->over = true;
            break;
        }
        if (session->held)
            out[count++] = CTRL_P;
        session->held = bytes[i] == CTRL_P;
        if (!session->held)
            out[count++] = bytes[i];
    }
    return interact_send_input(session, out, count, err);
}

static bh_rc
interact_read_input(struct interact_session *session, struct bh_err *err)
{
    struct bh_stream_frame end = { .kind = BH_STREAM_STDIN };
    char bytes[INPUT_CHUNK];
    /* a held key may come on top */
    size_t available = session->credit - 1 < sizeof bytes ? session->credit - 1 : sizeof bytes;
    ssize_t got = read(STDIN_FILENO, bytes, available);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return BH_OK;
    if (got <= 0) {
        session->input_over = true;
        return bh_duplex_send(session->interact->duplex, &end, err);
    }
    if (session->interact->detach && session->flags & BH_STREAM_TTY && isatty(STDIN_FILENO))
        return interact_pass_keys(session, bytes, (size_t)got, err);
    return interact_send_input(session, bytes, (size_t)got, err);
}

static bh_rc
interact_send_size(struct interact_session *session, struct bh_err *err)
{
    struct bh_stream_frame size = { .kind = BH_STREAM_RESIZE };

    if (!(session->flags & BH_STREAM_TTY) || !bh_terminal_size(&size.rows, &size.columns))
        return BH_OK;
    return bh_duplex_send(session->interact->duplex, &size, err);
}

static bh_rc
interact_pass_signals(struct interact_session *session, struct bh_err *err)
{
    struct bh_stream_frame frame = { .kind = BH_STREAM_SIGNAL };
    bh_rc rc = BH_OK;

    for (int number; rc == BH_OK && (number = bh_terminal_next_signal()) != 0;) {
        frame.number = (uint32_t)number;
        if (number == SIGWINCH) {
            rc = interact_send_size(session, err);
        } else if (session->interact->detach || number == SIGHUP) {
            session->interact->detached = session->over = true;
            session->interact->status = 128 + number;
        } else {
            rc = bh_duplex_send(session->interact->duplex, &frame, err);
        }
    }
    return rc;
}

/* Until the job has released this client, so that the next to attach may write; whatever else ends the
 * stream will do. */
static void
interact_detach(struct interact_session *session)
{
    struct bh_stream_frame frame = { .kind = BH_STREAM_LEAVE };
    struct pollfd polled = { .fd = bh_duplex_fd(session->interact->duplex), .events = POLLIN };
    bh_ns until = bh_time_monotonic() + LEAVE_MAX_NS;
    struct bh_err ignored;
    bh_rc rc = bh_duplex_send(session->interact->duplex, &frame, &ignored);

    while (rc == BH_OK && bh_time_monotonic() < until) {
        rc = bh_duplex_next(session->interact->duplex, &frame, &ignored);
        if (rc == BH_OK && (frame.kind == BH_STREAM_EXIT || frame.kind == BH_STREAM_ERROR))
            return;
        if (rc == BH_NOT_FOUND) {
            (void)!poll(&polled, 1, LEAVE_POLL_MS);
            rc = BH_OK;
        }
    }
}

/* ---- the loop ---- */

static bh_rc
interact_poll_once(struct interact_session *session, int signals, struct bh_err *err)
{
    bool asks = session->interact->ready && !session->input_over && session->credit > 1;
    struct pollfd polls[3] = {
        { .fd = bh_duplex_fd(session->interact->duplex), .events = POLLIN },
        { .fd = asks ? STDIN_FILENO : -1, .events = POLLIN },
        { .fd = signals, .events = POLLIN },
    };
    bh_rc rc = BH_OK;

    if (poll(polls, 3, -1) < 0 && errno != EINTR)
        return bh_err_errno(err, "poll");
    if (polls[2].revents)
        rc = interact_pass_signals(session, err);
    if (rc != BH_OK)
        return rc;
    if (!session->over && polls[0].revents)
        rc = interact_receive_all(session, err);
    if (rc != BH_OK)
        return rc;
    if (!session->over && polls[1].revents && asks)
        return interact_read_input(session, err);
    return BH_OK;
}

bh_rc
bh_interact(struct bh_interact *interact, struct bh_err *err)
{
    struct interact_session session = { .interact = interact };
    int signals = bh_terminal_signals();
    bh_rc rc = interact_receive_all(&session, err); /* what came with the 101 */

    interact->detached = false;
    if (rc == BH_OK && !session.over)
        rc = interact_send_size(&session, err);
    while (rc == BH_OK && !session.over)
        rc = interact_poll_once(&session, signals, err);
    if (rc == BH_OK && interact->detached && interact->detach && interact->ready)
        interact_detach(&session);
    bh_terminal_restore();
    return rc;
}
