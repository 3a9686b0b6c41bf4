#include "fetch/child.h"

#include <poll.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "fetch/transfer.h"
#include "wire/frame_io.h"

enum { ARENA_MAX = 1 << 20, POLL_MS = 1000 };

struct child {
    const struct bh_fetch_settings *settings;
    struct bh_link *link;
    CURLM *multi;
    struct bh_transfer *transfers[BH_FETCH_TRANSFERS_MAX];
};

static struct bh_transfer **
child_slot_of(struct child *child, const struct bh_transfer *transfer)
{
    for (size_t i = 0; i < BH_COUNT(child->transfers); i++)
        if (child->transfers[i] == transfer)
            return &child->transfers[i];
    return NULL;
}

static bh_rc
child_put_answer(struct child *child, const struct bh_fetch_response *answer, struct bh_err *err)
{
    return bh_link_put(child->link, BH_FETCH_MSG_RESPONSE, bh_fetch_message_fields(BH_FETCH_MSG_RESPONSE),
                       answer, err);
}

/* ---- from the daemon ---- */

static bh_rc
child_begin(struct child *child, const struct bh_fetch_request *ask, struct bh_err *err)
{
    struct bh_fetch_response refusal = { .call = ask->call, .cause = BH_HTTPS_BUSY };
    struct bh_transfer **slot = child_slot_of(child, NULL);

    if (slot)
        *slot = bh_transfer_new(child->settings, ask, &refusal.cause);
    if (!slot || !*slot)
        return child_put_answer(child, &refusal, err);
    BH_ASSERT(curl_multi_add_handle(child->multi, bh_transfer_easy(*slot)) == CURLM_OK);
    return BH_OK;
}

static bh_rc
child_receive_frame(struct child *child, const struct bh_frame *frame, struct bh_err *err)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(ARENA_MAX);
    struct bh_fetch_request ask;
    bh_rc rc;

    if (frame->number != BH_FETCH_MSG_REQUEST)
        return bh_err_set(err, BH_INVALID, "message %u is not a request", frame->number);
    rc = bh_frame_decode(frame, bh_fetch_message_fields(frame->number), &ask, arena, err);
    return rc == BH_OK ? child_begin(child, &ask, err) : rc;
}

static bh_rc
child_receive_frames(struct child *child, struct bh_err *err)
{
    struct bh_frame frame;
    bh_rc rc = bh_link_readable(child->link, err);

    while (rc == BH_OK && (rc = bh_link_next(child->link, &frame, err)) == BH_OK)
        rc = child_receive_frame(child, &frame, err);
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* ---- from the network ---- */

static void
child_end(struct child *child, struct bh_transfer **slot)
{
    BH_ASSERT(curl_multi_remove_handle(child->multi, bh_transfer_easy(*slot)) == CURLM_OK);
    bh_transfer_free(*slot);
    *slot = NULL;
}

static bh_rc
child_collect_result(struct child *child, const CURLMsg *message, struct bh_err *err)
{
    struct bh_fetch_response answer;
    struct bh_transfer *transfer = NULL;
    CURLcode result = message->data.result;
    bh_rc rc;

    BH_ASSERT(curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer) == CURLE_OK);
    bh_transfer_finish(transfer, result, &answer);
    rc = child_put_answer(child, &answer, err);
    child_end(child, child_slot_of(child, transfer));
    return rc;
}

static bh_rc
child_collect_results(struct child *child, struct bh_err *err)
{
    const CURLMsg *message;
    bh_rc rc = BH_OK;
    int left;

    while (rc == BH_OK && (message = curl_multi_info_read(child->multi, &left)))
        rc = message->msg == CURLMSG_DONE ? child_collect_result(child, message, err) : BH_OK;
    return rc == BH_OK ? bh_link_flush(child->link, err) : rc;
}

/* ---- the loop ---- */

static bh_rc
child_poll_once(struct child *child, struct bh_err *err)
{
    short interest = bh_link_interest(child->link);
    struct curl_waitfd socket = {
        .fd = bh_link_fd(child->link),
        .events = (short)(CURL_WAIT_POLLIN | (interest & POLLOUT ? CURL_WAIT_POLLOUT : 0)),
    };
    int running;
    bh_rc rc = BH_OK;

    if (curl_multi_poll(child->multi, &socket, 1, POLL_MS, NULL) != CURLM_OK
        || curl_multi_perform(child->multi, &running) != CURLM_OK)
        return bh_err_set(err, BH_IO, "libcurl failed");
    if (socket.revents & CURL_WAIT_POLLIN)
        rc = child_receive_frames(child, err);
    return rc == BH_OK ? child_collect_results(child, err) : rc;
}

static bh_rc
child_run(struct child *child, struct bh_err *err)
{
    static const struct bh_fetch_ready ready = { "" };
    bh_rc rc = bh_link_send(child->link, BH_FETCH_MSG_READY, bh_fetch_message_fields(BH_FETCH_MSG_READY),
                            &ready, err);

    while (rc == BH_OK)
        rc = child_poll_once(child, err);
    for (size_t i = 0; i < BH_COUNT(child->transfers); i++)
        if (child->transfers[i])
            child_end(child, &child->transfers[i]);
    return rc == BH_UNAVAILABLE ? BH_OK : rc;
}

void
bh_fetch_child_report(int fd, const struct bh_err *why)
{
    struct bh_link *link = bh_link_new(fd);
    struct bh_fetch_ready ready = { "" };
    struct bh_err err;

    memcpy(ready.fault, why->msg, sizeof ready.fault);
    /* No process is left to receive the failure to report this. */
    (void)!bh_link_send(link, BH_FETCH_MSG_READY, bh_fetch_message_fields(BH_FETCH_MSG_READY), &ready, &err);
    bh_link_free(link);
}

bh_rc
bh_fetch_child_serve(int fd, const struct bh_fetch_settings *settings, struct bh_err *err)
{
    struct child child = { .settings = settings, .link = bh_link_new(fd) };
    bh_rc rc;

    child.multi = curl_multi_init();
    BH_ASSERT(child.multi);
    rc = child_run(&child, err);
    curl_multi_cleanup(child.multi);
    bh_link_free(child.link);
    return rc;
}
