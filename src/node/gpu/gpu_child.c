#include "node/gpu/gpu_child.h"

#include <dirent.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/capability.h"
#include "base/time.h"
#include "node/gpu/gpu_message.h"
#include "wire/frame_io.h"

/* How long the watcher waits for an event before it looks whether the node is still
 * there, and how long before it tries a driver again that failed. */
#define WATCH_INTERVAL BH_NS_PER_S

enum { ARENA_MAX = 4 << 20 };

struct gpu_child_child {
    const struct bh_device_options *options;
    struct bh_device device; /* ops NULL: not open */
};

static bh_rc
gpu_child_open_device(struct gpu_child_child *child, struct bh_err *err)
{
    return child->device.ops ? BH_OK : bh_device_nvml_open(child->options, &child->device, err);
}

static void
child_close_device(struct gpu_child_child *child)
{
    if (child->device.ops)
        child->device.ops->close(child->device.self);
    child->device = (struct bh_device){ 0 };
}

/* ---- requests: one function each, tabled by message number ---- */

typedef bh_rc (*request)(const struct bh_device *device, const struct bh_gpu_request *ask,
                         struct bh_gpu_response *answer, struct bh_arena *arena, struct bh_err *err);

/* A GPU that does not say them is left out: the scan itself was answered. */
static void
gpu_child_read_sensors(const struct bh_device *device, const struct bh_inventory *found,
                       struct bh_arena *arena, struct bh_list *ret_list)
{
    struct bh_device_sensors *sensors = bh_arena_alloc(arena, (found->gpu_count + 1) * sizeof *sensors);
    uint32_t count = 0;
    struct bh_err ignored;

    for (uint32_t i = 0; sensors && i < found->gpu_count; i++)
        if (!found->gpus[i].lost)
            count +=
                device->ops->sensors(device->self, found->gpus[i].uuid, &sensors[count], &ignored) == BH_OK;
    *ret_list = (struct bh_list){ sensors, count };
}

static bh_rc
gpu_child_scan(const struct bh_device *device, const struct bh_gpu_request *ask,
               struct bh_gpu_response *answer, struct bh_arena *arena, struct bh_err *err)
{
    struct bh_inventory found;
    bh_rc rc = device->ops->scan(device->self, arena, &found, err);

    if (rc != BH_OK)
        return rc;
    memcpy(answer->driver, found.driver, sizeof answer->driver);
    answer->gpus = (struct bh_list){ found.gpus, found.gpu_count };
    answer->instances = (struct bh_list){ found.instances, found.instance_count };
    if (ask->enabled)
        gpu_child_read_sensors(device, &found, arena, &answer->sensors);
    return BH_OK;
}

static bh_rc
child_set_mig(const struct bh_device *device, const struct bh_gpu_request *ask,
              struct bh_gpu_response *answer, struct bh_arena *arena, struct bh_err *err)
{
    return device->ops->set_mig(device->self, ask->gpu, ask->enabled, err);
}

static bh_rc
gpu_child_carve(const struct bh_device *device, const struct bh_gpu_request *ask,
                struct bh_gpu_response *answer, struct bh_arena *arena, struct bh_err *err)
{
    struct bh_device_instance *made = bh_arena_alloc(arena, sizeof *made);
    bh_rc rc;

    if (!made)
        return bh_err_set(err, BH_FULL, "no room for an instance");
    rc = device->ops->carve(device->self, ask->gpu, ask->profile, ask->start, made, err);
    if (rc != BH_OK)
        return rc;
    answer->instances = (struct bh_list){ made, 1 };
    return BH_OK;
}

static bh_rc
gpu_child_destroy(const struct bh_device *device, const struct bh_gpu_request *ask,
                  struct bh_gpu_response *answer, struct bh_arena *arena, struct bh_err *err)
{
    return device->ops->destroy(device->self, ask->gpu, ask->gi, err);
}

static bh_rc
gpu_child_processes(const struct bh_device *device, const struct bh_gpu_request *ask,
                    struct bh_gpu_response *answer, struct bh_arena *arena, struct bh_err *err)
{
    struct bh_device_process *items;
    uint32_t count;
    bh_rc rc = device->ops->processes(device->self, ask->gpu, arena, &items, &count, err);

    if (rc != BH_OK)
        return rc;
    answer->processes = (struct bh_list){ items, count };
    return BH_OK;
}

static bh_rc
gpu_child_busy(const struct bh_device *device, const struct bh_gpu_request *ask,
               struct bh_gpu_response *answer, struct bh_arena *arena, struct bh_err *err)
{
    struct bh_device_samples samples = { .since_us = ask->since_us };
    bh_rc rc = device->ops->busy(device->self, ask->gpu, arena, &samples, err);

    if (rc != BH_OK)
        return rc;
    answer->busy = (struct bh_list){ samples.items, samples.count };
    return BH_OK;
}

static bh_rc
gpu_child_health(const struct bh_device *device, const struct bh_gpu_request *ask,
                 struct bh_gpu_response *answer, struct bh_arena *arena, struct bh_err *err)
{
    struct bh_device_health *found = bh_arena_alloc(arena, sizeof *found);
    bh_rc rc;

    if (!found)
        return bh_err_set(err, BH_FULL, "no room for the health of a GPU");
    rc = device->ops->health(device->self, ask->gpu, found, err);
    if (rc != BH_OK)
        return rc;
    answer->healths = (struct bh_list){ found, 1 };
    return BH_OK;
}

static const request requests[] = {
    [BH_GPU_MSG_SCAN] = gpu_child_scan,           [BH_GPU_MSG_SET_MIG] = child_set_mig,
    [BH_GPU_MSG_CARVE] = gpu_child_carve,         [BH_GPU_MSG_DESTROY] = gpu_child_destroy,
    [BH_GPU_MSG_PROCESSES] = gpu_child_processes, [BH_GPU_MSG_BUSY] = gpu_child_busy,
    [BH_GPU_MSG_HEALTH] = gpu_child_health,
};

static void
child_put_error(struct bh_gpu_response *answer, const struct bh_err *err)
{
    answer->rc = err->rc;
    answer->sys_kind = err->sys_kind;
    answer->sys = err->sys;
    memcpy(answer->msg, err->msg, sizeof answer->msg);
    memcpy(answer->hint, err->hint, sizeof answer->hint);
}

static bh_rc
child_answer_frame(struct gpu_child_child *child, struct bh_link *link, const struct bh_frame *frame,
                   struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA_MAX);
    struct bh_gpu_response answer = { 0 };
    struct bh_err why = { 0 };
    struct bh_gpu_request ask;
    bh_rc rc;

    if (frame->number >= BH_COUNT(requests) || !requests[frame->number])
        return bh_err_set(err, BH_INVALID, "message %u is not a request", frame->number);
    rc = bh_frame_decode(frame, bh_gpu_message_fields(frame->number), &ask, arena, err);
    if (rc != BH_OK)
        return rc;
    answer.call = ask.call;
    rc = gpu_child_open_device(child, &why);
    if (rc == BH_OK)
        rc = requests[frame->number](&child->device, &ask, &answer, arena, &why);
    if (rc != BH_OK)
        child_put_error(&answer, &why);
    return bh_link_send(link, BH_GPU_MSG_RESPONSE, bh_gpu_message_fields(BH_GPU_MSG_RESPONSE), &answer, err);
}

/* ---- loops ---- */

/* Whether the socket has something to do within `wait`; flushes what can be. */
static bh_rc
gpu_child_dispatch(struct bh_link *link, int wait_ms, struct bh_err *err)
{
    struct pollfd ready = { .fd = bh_link_fd(link), .events = bh_link_interest(link) };

    if (poll(&ready, 1, wait_ms) <= 0)
        return BH_OK;
    if (ready.revents & POLLOUT) {
        bh_rc rc = bh_link_flush(link, err);

        if (rc != BH_OK)
            return rc;
    }
    if (ready.revents & (POLLIN | POLLHUP | POLLERR))
        return bh_link_readable(link, err);
    return BH_OK;
}

/* The node's going is the regular end. */
static bh_rc
gpu_child_ended(bh_rc rc)
{
    return rc == BH_UNAVAILABLE ? BH_OK : rc;
}

bh_rc
bh_gpu_child_respond(int fd, const struct bh_device_options *options, struct bh_err *err)
{
    BH_AUTO(bh_link_free) struct bh_link *link = bh_link_new(fd);
    struct gpu_child_child child = { .options = options };
    struct bh_frame frame;
    bh_rc rc = BH_OK;

    while (rc == BH_OK) {
        rc = gpu_child_dispatch(link, -1, err);
        while (rc == BH_OK && (rc = bh_link_next(link, &frame, err)) == BH_OK)
            rc = child_answer_frame(&child, link, &frame, err);
        if (rc == BH_NOT_FOUND)
            rc = BH_OK;
    }
    child_close_device(&child);
    return gpu_child_ended(rc);
}

bh_rc
bh_gpu_child_watch(int fd, const char *gpu, const struct bh_device_options *options, struct bh_err *err)
{
    BH_AUTO(bh_link_free) struct bh_link *link = bh_link_new(fd);
    struct gpu_child_child child = { .options = options };
    bh_rc rc = BH_OK;

    while (rc == BH_OK) {
        struct bh_device_event event;
        struct bh_err why;
        bh_rc found = gpu_child_open_device(&child, &why);

        if (found == BH_OK)
            found = child.device.ops->next_event(child.device.self, WATCH_INTERVAL, &event, &why);
        if (found == BH_OK && strcmp(event.gpu, gpu) == 0) /* without nodes it sees all GPUs */
            rc = bh_link_send(link, BH_GPU_MSG_EVENT, bh_gpu_message_fields(BH_GPU_MSG_EVENT), &event, err);
        else if (found != BH_OK && found != BH_TIMEOUT)
            child_close_device(&child); /* a driver that was reset wants to be opened anew */
        if (rc == BH_OK)
            rc = gpu_child_dispatch(
                link, found == BH_OK || found == BH_TIMEOUT ? 0 : (int)(WATCH_INTERVAL / BH_NS_PER_MS), err);
    }
    child_close_device(&child);
    return gpu_child_ended(rc);
}

/* ---- GPUs that a child must not open ---- */

/* Mounts of its own, once. */
static bh_rc
child_stand_apart(struct bh_err *err)
{
    static bool apart;

    if (apart)
        return BH_OK;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return bh_err_errno(err, "make a mount namespace");
    apart = true;
    return BH_OK;
}

bh_rc
bh_gpu_child_hide(const char *path, struct bh_err *err)
{
    bh_rc rc;

    if (access(path, F_OK) != 0)
        return BH_OK;
    rc = child_stand_apart(err);
    if (rc != BH_OK)
        return rc;
    if (mount(path, path, NULL, MS_BIND, NULL) != 0
        || mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_NODEV | MS_NOSUID | MS_NOEXEC, NULL) != 0)
        return bh_err_errno(err, "hide %s", path);
    return BH_OK;
}

/* The driver lets CAP_SYS_ADMIN change MIG and read what others hold; device nodes that are missing
 * are made (nvidia-modprobe), and /dev and /proc/driver are read whatever user owns what is there. */
bh_rc
bh_gpu_child_confine(struct bh_err *err)
{
    static const int kept[] = { CAP_SYS_ADMIN, CAP_DAC_OVERRIDE, CAP_MKNOD };
    bh_rc rc;

    if (unshare(CLONE_NEWNET) != 0)
        return bh_err_errno(err, "leave the network");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return bh_err_errno(err, "no new privileges");
    rc = bh_capability_bound(kept, BH_COUNT(kept), err);
    return rc == BH_OK ? bh_capability_keep(kept, BH_COUNT(kept), err) : rc;
}

static bool
is_gpu(const char *name)
{
    static const char prefix[] = "nvidia";

    return strncmp(name, prefix, sizeof prefix - 1) == 0 && name[sizeof prefix - 1]
           && strspn(name + sizeof prefix - 1, "0123456789") == strlen(name + sizeof prefix - 1);
}

bh_rc
bh_gpu_child_only(const char *path, struct bh_err *err)
{
    DIR *folder = opendir("/dev");
    bh_rc rc = BH_OK;

    for (const struct dirent *entry; folder && rc == BH_OK && (entry = readdir(folder));) {
        char other[300];

        snprintf(other, sizeof other, "/dev/%s", entry->d_name);
        if (is_gpu(entry->d_name) && strcmp(other, path) != 0)
            rc = bh_gpu_child_hide(other, err);
    }
    if (folder)
        closedir(folder);
    return rc;
}
