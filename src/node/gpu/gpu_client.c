#include "node/gpu/gpu_client.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/gpu/gpu_deadline.h"
#include "node/gpu/gpu_process.h"
#include "node/gpu/gpu_watch.h"

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

/* A request about one GPU; its name comes from outside and may not fit. */
static bh_rc
gpu_prepare(struct bh_gpu_call *ret_request, enum bh_gpu_message_kind kind, const char *gpu,
            struct bh_arena *arena, struct bh_err *err)
{
    *ret_request = (struct bh_gpu_call){ .kind = kind, .arena = arena };
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
    struct bh_gpu_call request = { .kind = BH_GPU_MSG_SCAN, .arena = arena };
    bh_rc rc = bh_gpu_ask(self, &request, err);

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
    struct bh_gpu_call request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_SET_MIG, gpu, arena, err);

    if (rc != BH_OK)
        return rc;
    request.ask.enabled = enabled;
    gpu_stop_watching(self, gpu);
    return bh_gpu_ask(self, &request, err);
}

static bh_rc
gpu_client_carve(void *self, const char *gpu, const char *profile, uint32_t at,
                 struct bh_device_instance *ret_instance, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_GPU_RESPONSE_MAX);
    struct bh_gpu_call request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_CARVE, gpu, arena, err);

    if (rc != BH_OK)
        return rc;
    if (strlen(profile) >= sizeof request.ask.profile)
        return bh_err_set(err, BH_INVALID, "%s has no MIG profile %s", gpu, profile);
    memcpy(request.ask.profile, profile, strlen(profile) + 1);
    request.ask.start = at;
    rc = bh_gpu_ask(self, &request, err);
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
    struct bh_gpu_call request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_DESTROY, gpu, arena, err);

    request.ask.gi = gi;
    return rc == BH_OK ? bh_gpu_ask(self, &request, err) : rc;
}

static bh_rc
gpu_client_processes(void *self, const char *gpu, struct bh_arena *arena,
                     struct bh_device_process **ret_processes, uint32_t *ret_count, struct bh_err *err)
{
    struct bh_gpu_call request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_PROCESSES, gpu, arena, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_gpu_ask(self, &request, err);
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
    struct bh_gpu_call request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_BUSY, gpu, arena, err);

    request.ask.since_us = samples->since_us;
    if (rc != BH_OK)
        return rc;
    rc = bh_gpu_ask(self, &request, err);
    if (rc != BH_OK)
        return rc;
    samples->items = request.answer.busy.items;
    samples->count = request.answer.busy.count;
    return BH_OK;
}

/* They come with a scan, as a survey asks for it. */
static bh_rc
gpu_client_sensors(void *self, const char *gpu, struct bh_device_sensors *ret_sensors, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_GPU_RESPONSE_MAX);
    struct bh_gpu_call request = { .kind = BH_GPU_MSG_SCAN, .ask.enabled = true, .arena = arena };
    bh_rc rc = bh_gpu_ask(self, &request, err);
    const struct bh_device_sensors *items = request.answer.sensors.items;

    for (uint32_t i = 0; rc == BH_OK && i < request.answer.sensors.count; i++)
        if (strcmp(items[i].gpu, gpu) == 0) {
            *ret_sensors = items[i];
            return BH_OK;
        }
    return rc == BH_OK ? bh_err_set(err, BH_NOT_FOUND, "no GPU is named %s, or it is lost", gpu) : rc;
}

static bh_rc
gpu_client_health(void *self, const char *gpu, struct bh_device_health *ret_health, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_GPU_RESPONSE_MAX);
    struct bh_gpu_call request;
    bh_rc rc = gpu_prepare(&request, BH_GPU_MSG_HEALTH, gpu, arena, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_gpu_ask(self, &request, err);
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
    struct bh_gpu_call request;
    bh_rc rc = gpu_prepare(&request, kind, gpu, NULL, err);

    BH_ASSERT(!client->asked);
    bh_gpu_client_assert(client);
    if (rc != BH_OK)
        return rc;
    request.ask.enabled = kind == BH_GPU_MSG_SCAN;
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
                       .instance_count = answer->instances.count,
                       .sensors = answer->sensors.items,
                       .sensor_count = answer->sensors.count },
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
    struct bh_gpu_response answer;
    bh_rc rc;

    bh_gpu_client_assert(client);
    BH_ASSERT(client->asked);
    rc = bh_gpu_take_answer(client, arena, &answer, ret_waits, err);
    if (rc == BH_OK && !*ret_waits)
        gpu_find_answer(client, &answer, ret_found);
    return rc;
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
    .sensors = gpu_client_sensors,
    .health = gpu_client_health,
    .next_event = bh_gpu_next_event,
    .close = gpu_client_close,
};

struct bh_device
bh_gpu_client_device(struct bh_gpu_client *client)
{
    return (struct bh_device){ .ops = &client_ops, .self = client };
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

/* A child that was just killed ends at once, unless it sits in the driver.  Wait for it: otherwise it still
 * runs when systemd restarts the node. */
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
