#include "node/gpu/gpu_deadline.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/log.h"
#include "node/gpu/gpu_process.h"

bh_ns
bh_gpu_read_deadline(bh_ns change)
{
    return change / 2 > BH_GPU_READ_DEADLINE ? change / 2 : BH_GPU_READ_DEADLINE;
}

int
bh_gpu_ms_left(bh_ns deadline)
{
    bh_ns now = bh_time_monotonic();

    return now >= deadline ? 0 : (int)((deadline - now + BH_NS_PER_MS - 1) / BH_NS_PER_MS);
}

bh_rc
bh_gpu_await_frame(struct bh_link *link, bh_ns deadline, struct bh_frame *ret_frame, struct bh_err *err)
{
    for (;;) {
        struct pollfd ready = { .fd = bh_link_fd(link), .events = bh_link_interest(link) };
        bh_rc rc = bh_link_next(link, ret_frame, err);
        int left = bh_gpu_ms_left(deadline), n;

        if (rc != BH_NOT_FOUND)
            return rc;
        n = poll(&ready, 1, left);
        if (n < 0 && errno != EINTR)
            return bh_err_errno(err, "cannot wait for the gpu child");
        if (n == 0 && left == 0)
            return bh_err_set(err, BH_TIMEOUT, "no answer in time");
        rc = n > 0 && (ready.revents & POLLOUT) ? bh_link_flush(link, err) : BH_OK;
        if (rc == BH_OK && n > 0 && (ready.revents & (POLLIN | POLLHUP | POLLERR)))
            rc = bh_link_readable(link, err);
        if (rc != BH_OK)
            return rc;
    }
}

/* Wait for the answer to the call whose number `answer` already has. */
static bh_rc
gpu_await_answer(const struct bh_gpu_child *child, bh_ns deadline, struct bh_gpu_response *answer,
                 struct bh_arena *arena, struct bh_err *err)
{
    uint64_t call = answer->call;
    struct bh_frame frame;
    bh_rc rc = bh_gpu_await_frame(child->link, deadline, &frame, err);

    if (rc != BH_OK)
        return rc;
    if (frame.number != BH_GPU_MSG_RESPONSE)
        return bh_err_set(err, BH_INVALID, "message %u is not an answer", frame.number);
    rc = bh_frame_decode(&frame, bh_gpu_message_fields(frame.number), answer, arena, err);
    if (rc != BH_OK)
        return rc;
    if (answer->call != call)
        return bh_err_set(err, BH_INVALID, "an answer to a different request");
    return BH_OK;
}

static bh_rc
gpu_copy_error(const struct bh_gpu_response *answer, struct bh_err *err)
{
    err->rc = (bh_rc)answer->rc;
    err->sys_kind = (enum bh_sys)answer->sys_kind;
    err->sys = answer->sys;
    memcpy(err->msg, answer->msg, sizeof err->msg);
    memcpy(err->hint, answer->hint, sizeof err->hint);
    return err->rc;
}

/* An idle child says nothing and is alive; one that is not is replaced before it is
 * asked, because then nothing is uncertain. */
static void
gpu_check_idle(struct bh_gpu_client *client)
{
    struct pollfd ready = { .events = POLLIN };

    if (client->answering.pid == 0)
        return;
    ready.fd = bh_link_fd(client->answering.link);
    if (poll(&ready, 1, 0) != 0)
        bh_gpu_abandon(client, &client->answering);
}

static bool
gpu_only_reads(const struct bh_gpu_call *request)
{
    return request->kind == BH_GPU_MSG_SCAN || request->kind == BH_GPU_MSG_PROCESSES
           || request->kind == BH_GPU_MSG_BUSY || request->kind == BH_GPU_MSG_HEALTH;
}

/* What the error of a call says of its child: ETIMEDOUT it hangs, EAGAIN it had no CPU time, EPIPE
 * it died.  `rc` is that of waiting for the answer. */
static int
gpu_number_of(bh_rc rc, bool starved)
{
    return rc != BH_TIMEOUT ? EPIPE : starved ? EAGAIN : ETIMEDOUT;
}

/* A question that a child has, and what it had of the CPU when it got it. */
struct gpu_flight {
    struct bh_gpu_child *child;
    enum bh_gpu_message_kind kind;
    const char *gpu;
    struct bh_cpu_wait before;
    bh_ns span;
};

/* There is no answer: the child is killed, and the error says what that shows. */
static bh_rc
gpu_give_up(struct bh_gpu_client *client, const struct gpu_flight *flight, bh_rc rc, struct bh_err *err)
{
    struct bh_cpu_wait after = bh_cpu_wait_read(flight->child->pid);
    bool starved = rc == BH_TIMEOUT && bh_cpu_wait_starved(&flight->before, &after, flight->span);

    bh_gpu_abandon(client, flight->child);
    bh_err_wrap(err, "the gpu child %s killed in %s%s%s", starved ? "had no CPU time and was" : "was",
                bh_gpu_message_fields(flight->kind)->name, flight->gpu[0] ? " on " : "", flight->gpu);
    if (starved)
        bh_log(GPU_NO_ANSWER, BH_ERRLOG(err));
    err->rc = BH_UNCERTAIN;
    err->sys_kind = BH_SYS_ERRNO;
    err->sys = gpu_number_of(rc, starved);
    return BH_UNCERTAIN;
}

/* Ask the child and wait for its answer. */
static bh_rc
gpu_ask_child(struct bh_gpu_client *client, struct bh_gpu_call *request, struct bh_err *err)
{
    struct bh_gpu_request *ask = &request->ask;
    struct gpu_flight flight = { .child = &client->answering,
                                 .kind = request->kind,
                                 .gpu = ask->gpu,
                                 .span = gpu_only_reads(request) ? client->read_deadline
                                                                 : client->change_deadline };
    bh_rc rc = BH_OK;

    bh_gpu_client_assert(client);
    gpu_check_idle(client);
    if (client->answering.pid == 0)
        rc = bh_gpu_start(client, &client->answering, NULL, err);
    if (rc != BH_OK)
        return rc;
    flight.before = bh_cpu_wait_read(client->answering.pid);
    ask->call = request->answer.call = ++client->call;
    rc = bh_link_send(client->answering.link, request->kind, bh_gpu_message_fields(request->kind), ask, err);
    if (rc == BH_OK)
        rc = gpu_await_answer(&client->answering, bh_time_monotonic() + flight.span, &request->answer,
                              request->arena, err);
    if (rc == BH_OK)
        return request->answer.rc == BH_OK ? BH_OK : gpu_copy_error(&request->answer, err);
    return gpu_give_up(client, &flight, rc, err);
}

bool
bh_gpu_child_died(const struct bh_err *err)
{
    return err->rc == BH_UNCERTAIN && err->sys_kind == BH_SYS_ERRNO
           && (err->sys == EPIPE || err->sys == EAGAIN);
}

/* To look again does no harm. */
bh_rc
bh_gpu_ask(struct bh_gpu_client *client, struct bh_gpu_call *request, struct bh_err *err)
{
    bh_rc rc = gpu_ask_child(client, request, err);

    return rc == BH_UNCERTAIN && gpu_only_reads(request) && bh_gpu_child_died(err)
               ? gpu_ask_child(client, request, err)
               : rc;
}

bh_rc
bh_gpu_take_answer(struct bh_gpu_client *client, struct bh_arena *arena, struct bh_gpu_response *ret_answer,
                   bool *ret_waits, struct bh_err *err)
{
    struct gpu_flight flight = { .child = &client->surveying,
                                 .gpu = client->asked_gpu,
                                 .kind = *client->asked_gpu ? BH_GPU_MSG_HEALTH : BH_GPU_MSG_SCAN,
                                 .before = client->asked_wait,
                                 .span = client->read_deadline };
    bh_rc rc;

    *ret_answer = (struct bh_gpu_response){ .call = client->asked_call };
    rc = client->surveying.pid
             ? gpu_await_answer(&client->surveying, bh_time_monotonic(), ret_answer, arena, err)
             : bh_err_set(err, BH_UNAVAILABLE, "the gpu child was ended");
    *ret_waits = rc == BH_TIMEOUT && bh_time_monotonic() < client->asked_until;
    if (*ret_waits)
        return BH_OK;
    client->asked = false;
    if (rc != BH_OK)
        return gpu_give_up(client, &flight, rc, err);
    return ret_answer->rc == BH_OK ? BH_OK : gpu_copy_error(ret_answer, err);
}
