#include "node/gpu/gpu_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "node/gpu/gpu_deadline.h"
#include "node/gpu/gpu_process.h"

void
bh_gpu_client_watch(struct bh_gpu_client *client, const char *gpu, uint32_t minor)
{
    struct bh_gpu_watcher *watcher = client->watchers;
    struct bh_gpu_watcher *end = client->watchers + client->watcher_count;

    bh_gpu_client_assert(client);
    BH_ASSERT(*gpu);
    while (watcher < end && strcmp(watcher->gpu, gpu) != 0)
        watcher++;
    if (watcher == end && client->watcher_count == BH_GPU_WATCHED_MAX)
        return;
    if (watcher == end)
        client->watcher_count++;
    else if (watcher->minor != minor) /* after the driver was loaded anew */
        bh_gpu_abandon(client, &watcher->child);
    watcher->minor = minor;
    snprintf(watcher->gpu, sizeof watcher->gpu, "%s", gpu);
}

uint32_t
bh_gpu_client_event_fds(struct bh_gpu_client *client, int ret_fds[BH_GPU_WATCHED_MAX])
{
    bh_ns now = bh_time_monotonic();
    uint32_t count = 0;
    struct bh_err ignored;

    bh_gpu_client_assert(client);
    for (uint32_t i = 0; i < client->watcher_count; i++) {
        struct bh_gpu_watcher *watcher = &client->watchers[i];

        BH_ASSERT(*watcher->gpu && (watcher->child.pid > 0) == (watcher->child.link != NULL));
        if (watcher->child.pid == 0 && now >= watcher->from && !bh_gpu_is_hidden(client, watcher->minor)) {
            watcher->from = now + BH_GPU_EVENTS_RESTART;
            (void)!bh_gpu_start(client, &watcher->child, watcher, &ignored);
        }
        if (watcher->child.pid)
            ret_fds[count++] = bh_link_fd(watcher->child.link);
    }
    return count;
}

/* An event that has come from that child.  BH_TIMEOUT: none; BH_UNAVAILABLE: it was ended. */
static bh_rc
gpu_watch_receive_event(struct bh_gpu_client *client, struct bh_gpu_watcher *watcher,
                        struct bh_device_event *ret_event, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_GPU_RESPONSE_MAX);
    struct bh_device_event event;
    struct bh_frame frame;
    bh_rc rc = bh_gpu_await_frame(watcher->child.link, bh_time_monotonic(), &frame, err);

    BH_ASSERT(watcher->child.pid > 0 && watcher->child.link);
    if (rc == BH_TIMEOUT)
        return rc;
    if (rc == BH_OK && frame.number != BH_GPU_MSG_EVENT)
        rc = bh_err_set(err, BH_INVALID, "message %u is not an event", frame.number);
    if (rc == BH_OK)
        rc = bh_frame_decode(&frame, bh_gpu_message_fields(frame.number), &event, arena, err);
    if (rc == BH_OK) {
        *ret_event = event;
        return BH_OK;
    }
    bh_gpu_abandon(client, &watcher->child);
    bh_err_wrap(err, "the gpu child that waits for events of %s was killed", watcher->gpu);
    err->rc = BH_UNAVAILABLE;
    return err->rc;
}

static bh_rc
receive_any_event(struct bh_gpu_client *client, struct bh_device_event *ret_event, struct bh_err *err)
{
    bh_rc rc = bh_err_set(err, BH_UNAVAILABLE, "no gpu child waits for events");

    for (uint32_t i = 0; i < client->watcher_count; i++) {
        bh_rc granted = rc;

        if (client->watchers[i].child.pid)
            rc = gpu_watch_receive_event(client, &client->watchers[i], ret_event, err);
        if (rc == BH_OK)
            return BH_OK;
        if (granted == BH_TIMEOUT)
            rc = granted; /* another child waits */
    }
    return rc;
}

bh_rc
bh_gpu_next_event(void *self, bh_ns wait, struct bh_device_event *ret_event, struct bh_err *err)
{
    struct bh_gpu_client *client = self;
    bh_ns deadline = bh_time_monotonic() + wait;

    for (;;) {
        struct pollfd ready[BH_GPU_WATCHED_MAX];
        int fds[BH_GPU_WATCHED_MAX], left = bh_gpu_ms_left(deadline);
        uint32_t count = bh_gpu_client_event_fds(client, fds);
        bh_rc rc = receive_any_event(client, ret_event, err);

        if (rc != BH_TIMEOUT || left == 0)
            return rc;
        for (uint32_t i = 0; i < count; i++)
            ready[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
        if (poll(ready, count, left) < 0 && errno != EINTR)
            return bh_err_errno(err, "wait for events");
    }
}
