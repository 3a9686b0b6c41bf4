#include "node/gpu/gpu.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/gpu/gpu_internal.h"
#include "node/gpu/gpu_message.h"

#define LAST_TIMEOUT (500 * BH_NS_PER_MS)
#define LAST_POLL_INTERVAL (2 * BH_NS_PER_MS)

/* ---- copies of what it was given ---- */

static char *
gpu_copied(const char *text)
{
    char *copy = strdup(text);

    BH_ASSERT(copy);
    return copy;
}

static char **
gpu_copied_list(const char *const *items)
{
    size_t count = 0;
    char **copy;

    while (items && items[count])
        count++;
    copy = calloc(count + 1, sizeof *copy);
    BH_ASSERT(copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = gpu_copied(items[i]);
    return copy;
}

/* ---- requests ---- */

/* The answer to the call whose number stands in it already. */
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

/* A request on its way: what is asked, and where the answer goes. */
struct gpu_request {
    enum bh_gpu_message_kind kind;
    struct bh_gpu_request ask;
    struct bh_gpu_response answer;
    struct bh_arena *arena; /* where the answer's lists live */
};

static bool
gpu_only_reads(const struct gpu_request *request)
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
struct flight {
    struct bh_gpu_child *child;
    enum bh_gpu_message_kind kind;
    const char *gpu;
    struct bh_cpu_wait before;
    bh_ns span;
};

/* There is no answer: the child is killed, and the error says what that shows. */
static bh_rc
gpu_give_up(struct bh_gpu_client *client, const struct flight *flight, bh_rc rc, struct bh_err *err)
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
gpu_ask_child(struct bh_gpu_client *client, struct gpu_request *request, struct bh_err *err)
{
    struct bh_gpu_request *ask = &request->ask;
    struct flight flight = { .child = &client->answering,
                             .kind = request->kind,
                             .gpu = ask->gpu,
                             .span =
                                 gpu_only_reads(request) ? client->read_deadline : client->change_deadline };
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
static bh_rc
gpu_run_request(struct bh_gpu_client *client, struct gpu_request *request, struct bh_err *err)
{
    bh_rc rc = gpu_ask_child(client, request, err);

    return rc == BH_UNCERTAIN && gpu_only_reads(request) && bh_gpu_child_died(err)
               ? gpu_ask_child(client, request, err)
               : rc;
}

/* A request about one GPU; its name comes from outside and may not fit. */
static bh_rc
gpu_prepare(struct gpu_request *ret_request, enum bh_gpu_message_kind kind, const char *gpu,
            struct bh_arena *arena, struct bh_err *err)
{
    *ret_request = (struct gpu_request){ .kind = kind, .arena = arena };
    if (strlen(gpu) >= sizeof ret_request->ask.gpu)
        return bh_err_set(err, BH_NOT_FOUND, "no GPU is named %s", gpu);
    memcpy(ret_request->ask.gpu, gpu, strlen(gpu) + 1);
    return BH_OK;
}

/* ---- the port ---- */

static void
gpu_watch_all(struct bh_gpu_client *client, const struct bh_inventory *inventory)
{
    for (uint32_t i = 0; i < inventory->gpu_count; i++)
        if (*inventory->gpus[i].uuid)
            bh_gpu_client_watch(client, inventory->gpus[i].uuid, inventory->gpus[i].minor);
}

static bh_rc
gpu_client_scan(void *self, struct bh_arena *arena, struct bh_inventory *ret_inventory, struct bh_err *err)
{
    struct gpu_request request = { .kind = BH_GPU_MSG_SCAN, .arena = arena };
    bh_rc rc = gpu_run_request(self, &request, err);

    if (rc != BH_OK)
        return rc;
    *ret_inventory = (struct bh_inventory){
        .gpus = request.answer.gpus.items,
        .gpu_count = request.answer.gpus.count,
        .instances = request.answer.instances.items,
        .instance_count = request.answer.instances.count,
    };
    memcpy(ret_inventory->driver, request.answer.driver, sizeof ret_inventory->driver);
    gpu_watch_all(self, ret_inventory);
    return BH_OK;
}

static void
gpu_await_gone(struct bh_gpu_client *client)
{
    for (int turn = 0; turn < 20 && bh_gpu_client_reap(client) > 0; turn++)
        bh_time_sleep(5 * BH_NS_PER_MS);
}

/* Its event child has the GPU open, which can keep an Ampere board from changing its
 * mode: it goes first, and the loop starts it again. */
static void
gpu_stop_watching(struct bh_gpu_client *client, const char *gpu)
{
    for (uint32_t i = 0; i < client->watcher_count; i++) {
        struct bh_gpu_watcher *watcher = &client->watchers[i];

        if (strcmp(watcher->gpu, gpu) != 0)
            continue;
        bh_gpu_abandon(client, &watcher->child);
        watcher->from = 0;
    }
    bh_gpu_abandon(client, &client->surveying);
    gpu_await_gone(client);
}

static bh_rc
gpu_client_set_mig(void *self, const char *gpu, bool enabled, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_GPU_RESPONSE_MAX);
    struct gpu_request request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_SET_MIG, gpu, arena, err);

    if (rc != BH_OK)
        return rc;
    request.ask.enabled = enabled;
    gpu_stop_watching(self, gpu);
    return gpu_run_request(self, &request, err);
}

static bh_rc
gpu_client_carve(void *self, const char *gpu, const char *profile, uint32_t at,
                 struct bh_device_instance *ret_instance, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_GPU_RESPONSE_MAX);
    struct gpu_request request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_CARVE, gpu, arena, err);

    if (rc != BH_OK)
        return rc;
    if (strlen(profile) >= sizeof request.ask.profile)
        return bh_err_set(err, BH_INVALID, "%s has no MIG profile %s", gpu, profile);
    memcpy(request.ask.profile, profile, strlen(profile) + 1);
    request.ask.start = at;
    rc = gpu_run_request(self, &request, err);
    if (rc != BH_OK)
        return rc;
    if (request.answer.instances.count != 1)
        return bh_err_set(err, BH_UNCERTAIN, "the gpu child answered a carve with %u instances",
                          request.answer.instances.count);
    memcpy(ret_instance, request.answer.instances.items, sizeof *ret_instance);
    return BH_OK;
}

static bh_rc
gpu_client_destroy(void *self, const char *gpu, uint32_t gi, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_GPU_RESPONSE_MAX);
    struct gpu_request request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_DESTROY, gpu, arena, err);

    request.ask.gi = gi;
    return rc == BH_OK ? gpu_run_request(self, &request, err) : rc;
}

static bh_rc
gpu_client_processes(void *self, const char *gpu, struct bh_arena *arena,
                     struct bh_device_process **ret_processes, uint32_t *ret_count, struct bh_err *err)
{
    struct gpu_request request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_PROCESSES, gpu, arena, err);

    if (rc != BH_OK)
        return rc;
    rc = gpu_run_request(self, &request, err);
    if (rc != BH_OK)
        return rc;
    *ret_processes = request.answer.processes.items;
    *ret_count = request.answer.processes.count;
    return BH_OK;
}

static bh_rc
gpu_client_busy(void *self, const char *gpu, struct bh_arena *arena, struct bh_device_samples *samples,
                struct bh_err *err)
{
    struct gpu_request request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_BUSY, gpu, arena, err);

    request.ask.since_us = samples->since_us;
    if (rc != BH_OK)
        return rc;
    rc = gpu_run_request(self, &request, err);
    if (rc != BH_OK)
        return rc;
    samples->items = request.answer.busy.items;
    samples->count = request.answer.busy.count;
    return BH_OK;
}

static bh_rc
gpu_client_health(void *self, const char *gpu, struct bh_device_health *ret_health, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_GPU_RESPONSE_MAX);
    struct gpu_request request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_HEALTH, gpu, arena, err);

    if (rc != BH_OK)
        return rc;
    rc = gpu_run_request(self, &request, err);
    if (rc != BH_OK)
        return rc;
    if (request.answer.healths.count != 1)
        return bh_err_set(err, BH_IO, "the gpu child did not report the health of %s", gpu);
    *ret_health = *(const struct bh_device_health *)request.answer.healths.items;
    return BH_OK;
}

void
bh_gpu_client_hide(struct bh_gpu_client *client, const uint32_t *minors, uint32_t count)
{
    BH_ASSERT(count <= BH_GPU_HIDDEN_MAX && (count == 0 || minors));
    bh_gpu_client_assert(client);
    for (uint32_t i = 0; i < count; i++)
        client->hidden[i] = minors[i];
    client->hidden_count = count;
    bh_gpu_abandon(client, &client->answering);
    bh_gpu_abandon(client, &client->surveying);
    for (uint32_t i = 0; i < client->watcher_count; i++) {
        if (bh_gpu_is_hidden(client, client->watchers[i].minor))
            bh_gpu_abandon(client, &client->watchers[i].child);
        client->watchers[i].from = 0;
    }
    gpu_await_gone(client);
}

/* ---- questions without waiting ---- */

bh_rc
bh_gpu_client_request(struct bh_gpu_client *client, const char *gpu, struct bh_err *err)
{
    enum bh_gpu_message_kind kind = *gpu ? BH_GPU_MSG_HEALTH : BH_GPU_MSG_SCAN;
    struct gpu_request request;
    bh_rc rc = gpu_prepare(&request, kind, gpu, NULL, err);

    BH_ASSERT(!client->asked);
    bh_gpu_client_assert(client);
    if (rc != BH_OK)
        return rc;
    if (client->surveying.pid == 0)
        rc = bh_gpu_start(client, &client->surveying, NULL, err);
    if (rc != BH_OK)
        return rc;
    memcpy(client->asked_gpu, request.ask.gpu, sizeof client->asked_gpu);
    client->asked_wait = bh_cpu_wait_read(client->surveying.pid);
    client->asked_until = bh_time_monotonic() + client->read_deadline;
    client->asked_call = request.ask.call = ++client->call;
    client->asked = true; /* a child that has gone shows when the answer is taken */
    (void)!bh_link_send(client->surveying.link, kind, bh_gpu_message_fields(kind), &request.ask, err);
    return BH_OK;
}

static void
gpu_find_answer(struct bh_gpu_client *client, const struct bh_gpu_response *answer,
                struct bh_gpu_found *ret_found)
{
    *ret_found = (struct bh_gpu_found){
        .inventory = { .gpus = answer->gpus.items,
                       .gpu_count = answer->gpus.count,
                       .instances = answer->instances.items,
                       .instance_count = answer->instances.count },
    };
    memcpy(ret_found->inventory.driver, answer->driver, sizeof ret_found->inventory.driver);
    if (answer->healths.count == 1)
        memcpy(&ret_found->health, answer->healths.items, sizeof ret_found->health);
    gpu_watch_all(client, &ret_found->inventory);
}

bh_rc
bh_gpu_client_receive(struct bh_gpu_client *client, struct bh_arena *arena, struct bh_gpu_found *ret_found,
                      bool *ret_waits, struct bh_err *err)
{
    struct flight flight = { .child = &client->surveying,
                             .gpu = client->asked_gpu,
                             .kind = *client->asked_gpu ? BH_GPU_MSG_HEALTH : BH_GPU_MSG_SCAN,
                             .before = client->asked_wait,
                             .span = client->read_deadline };
    struct bh_gpu_response answer = { .call = client->asked_call };
    bh_rc rc = client->surveying.pid
                   ? gpu_await_answer(&client->surveying, bh_time_monotonic(), &answer, arena, err)
                   : bh_err_set(err, BH_UNAVAILABLE, "the gpu child was ended");

    bh_gpu_client_assert(client);
    BH_ASSERT(client->asked);
    *ret_waits = rc == BH_TIMEOUT && bh_time_monotonic() < client->asked_until;
    if (*ret_waits)
        return BH_OK;
    client->asked = false;
    if (rc != BH_OK)
        return gpu_give_up(client, &flight, rc, err);
    if (answer.rc != BH_OK)
        return gpu_copy_error(&answer, err);
    gpu_find_answer(client, &answer, ret_found);
    return BH_OK;
}

int
bh_gpu_client_response_fd(const struct bh_gpu_client *client)
{
    bh_gpu_client_assert(client);
    return client->asked && client->surveying.pid ? bh_link_fd(client->surveying.link) : -1;
}

bh_ns
bh_gpu_client_response_until(const struct bh_gpu_client *client)
{
    bh_gpu_client_assert(client);
    return client->asked && client->surveying.pid ? client->asked_until : bh_time_monotonic();
}

static void
gpu_client_close(void *self)
{
}

static const struct bh_device_ops client_ops = {
    .name = "gpu-child",
    .scan = gpu_client_scan,
    .set_mig = gpu_client_set_mig,
    .carve = gpu_client_carve,
    .destroy = gpu_client_destroy,
    .processes = gpu_client_processes,
    .busy = gpu_client_busy,
    .health = gpu_client_health,
    .next_event = bh_gpu_next_event,
    .close = gpu_client_close,
};

struct bh_device
bh_gpu_client_device(struct bh_gpu_client *client)
{
    return (struct bh_device){ .ops = &client_ops, .self = client };
}

bh_ns
bh_gpu_read_deadline(bh_ns change)
{
    return change / 2 > BH_GPU_READ_DEADLINE ? change / 2 : BH_GPU_READ_DEADLINE;
}

struct bh_gpu_client *
bh_gpu_client_new(const struct bh_gpu_client_options *options)
{
    struct bh_gpu_client *client = calloc(1, sizeof *client);

    BH_ASSERT(client);
    client->program = gpu_copied(options->program);
    client->library = gpu_copied(options->library);
    client->proc_root = gpu_copied(options->proc_root ? options->proc_root : "/proc");
    client->env = gpu_copied_list(options->env);
    client->change_deadline = options->change_deadline ? options->change_deadline : BH_GPU_CHANGE_DEADLINE;
    client->read_deadline =
        options->read_deadline ? options->read_deadline : bh_gpu_read_deadline(client->change_deadline);
    return client;
}

/* What was just killed goes at once, unless it sits in the driver: systemd would find it
 * beside the program that it starts in our place. */
static void
gpu_await_abandoned(struct bh_gpu_client *client)
{
    bh_ns deadline = bh_time_monotonic() + LAST_TIMEOUT;

    bh_gpu_client_reap(client);
    while (client->abandoned_count > 0 && bh_time_monotonic() < deadline) {
        bh_time_sleep(LAST_POLL_INTERVAL);
        bh_gpu_client_reap(client);
    }
}

void
bh_gpu_client_free(struct bh_gpu_client *client)
{
    bh_gpu_abandon(client, &client->answering);
    bh_gpu_abandon(client, &client->surveying);
    for (uint32_t i = 0; i < client->watcher_count; i++)
        bh_gpu_abandon(client, &client->watchers[i].child);
    gpu_await_abandoned(client);
    free(client->program);
    free(client->library);
    free(client->proc_root);
    for (char **item = client->env; *item; item++)
        free(*item);
    free(client->env);
    free(client);
}
