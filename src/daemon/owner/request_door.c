#include "daemon/owner/request_door.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/time.h"

/* A stream is read after the handler has returned; in the request's arena. */
struct door_stream {
    struct bh_work work;
    struct bh_stream stream;
};

/* An upgraded connection outlives its request. */
struct door_upgrade {
    struct bh_work work;
    struct bh_work_keys keys;
    struct bh_upgrade upgrade;
};

static void
door_begin_stream(void *self, const struct bh_waker *waker)
{
    const struct door_stream *door = self;

    door->stream.begin(door->stream.self, waker);
}

static long
door_read_stream(void *self, char *memory, size_t size, bh_ns *ret_again)
{
    const struct door_stream *door = self;
    const struct bh_work before = bh_work_set(door->work);
    long length = door->stream.read(door->stream.self, memory, size, ret_again);

    bh_work_set(before);
    return length;
}

static void
door_close_stream(void *self)
{
    const struct door_stream *door = self;

    door->stream.close(door->stream.self);
}

static void
door_run_upgrade(void *self, int fd)
{
    struct door_upgrade *door = self;
    const struct bh_work before = bh_work_set(door->work);

    door->upgrade.run(door->upgrade.self, fd);
    bh_work_set(before);
    free(door);
}

static void
door_drop_upgrade(void *self)
{
    struct door_upgrade *door = self;

    door->upgrade.drop(door->upgrade.self);
    free(door);
}

static void
door_watch_upgrade(const struct bh_crypto_ops *crypto, struct bh_upgrade *upgrade)
{
    struct door_upgrade *door = calloc(1, sizeof *door);

    BH_ASSERT(door);
    door->keys = bh_work_keys_of(bh_work_get(), crypto);
    door->work = *bh_work_get();
    door->work.request = NULL;
    door->work.keys = &door->keys;
    door->upgrade = *upgrade;
    *upgrade = (struct bh_upgrade){ door_run_upgrade, door_drop_upgrade, door, upgrade->protocol };
}

/* Where the arena has no room the stream is read as the daemon's own work. */
static void
door_watch_stream(struct bh_arena *arena, struct bh_stream *stream)
{
    struct door_stream *door = bh_arena_alloc(arena, sizeof *door);

    if (!door)
        return;
    *door = (struct door_stream){ *bh_work_get(), *stream };
    *stream = (struct bh_stream){ door_begin_stream, door_read_stream, door_close_stream, door };
}

void
bh_request_door_handle(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    const struct bh_request_door *door = self;
    const struct bh_work before =
        bh_work_set((struct bh_work){ .kind = BH_WORK_REQUEST, .request = request });
    struct bh_err err;

    if (bh_quarantine_check(door->core->quarantine, bh_work_get(), bh_time_now(), &err) == BH_OK) {
        door->handler(door->self, request, reply);
        if (reply->upgrade.run)
            door_watch_upgrade(door->core->crypto, &reply->upgrade);
        else if (reply->stream.read)
            door_watch_stream(request->arena, &reply->stream);
    } else {
        reply->status = (uint32_t)bh_rc_http(err.rc);
        reply->content_type = "text/plain; charset=utf-8";
        bh_buf_printf(&reply->body, "%s\n%s\n", err.msg, err.hint);
    }
    bh_work_set(before);
}
