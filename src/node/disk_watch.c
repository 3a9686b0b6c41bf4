#include "node/disk_watch.h"

#include "base/disk_room.h"
#include "base/log.h"
#include "node/node.h"
#include "node/scratch.h"
#include "node/tenant_logs.h"

enum { LOGS_AT_ONCE = 256 };
#define LOOK_EACH (10 * BH_NS_PER_S)
#define TELL_EACH (600 * BH_NS_PER_S)
#define EXPIRE_EACH (3600 * BH_NS_PER_S)
#define EXPIRE_ON (100 * BH_NS_PER_MS)
#define DAY (86400 * BH_NS_PER_S)

static void
look(struct bh_disk_watch *watch, size_t which, const char *what, const char *folder, bh_ns now)
{
    struct bh_disk_room room = bh_disk_room_at(folder);
    uint64_t kept = bh_disk_room_kept(&room);
    bool low = room.size > 0 && !bh_disk_room_is_left(&room, kept, 1 << 20);
    bh_ns *told_at = &watch->told_at[which];

    if (low && (!*told_at || *told_at + TELL_EACH <= now)) {
        bh_log(JOBS_DISK_LOW, BH_STR("what", what), BH_STR("path", folder), BH_U64("free_mib", room.free >> 20),
               BH_U64("kept_mib", kept >> 20));
        *told_at = now;
    } else if (!low) {
        *told_at = 0;
    }
}

/* A part of the folder at a time: the loop has other things to do. */
static void
expire(struct bh_node *node, bh_ns now)
{
    struct bh_disk_watch *watch = &node->disk_watch;
    bh_ns age = node->conf.log_retention_days * DAY, wall = bh_time_now();

    if (!watch->expiring && age && age < wall)
        watch->expiring = opendir(node->conf.log_dir);
    if (watch->expiring && bh_tenant_logs_expire(watch->expiring, wall - age, LOGS_AT_ONCE)) {
        watch->expire_at = now + EXPIRE_ON;
        return;
    }
    if (watch->expiring)
        closedir(watch->expiring);
    watch->expiring = NULL;
    watch->expire_at = now + EXPIRE_EACH;
}

bh_ns
bh_disk_watch_tick(struct bh_node *node, bh_ns now)
{
    struct bh_disk_watch *watch = &node->disk_watch;
    char scratch[BH_NODE_PATH_MAX];

    if (watch->look_at <= now) {
        bh_scratch_folder(node, scratch);
        look(watch, 0, "output", node->conf.log_dir, now);
        look(watch, 1, "scratch", scratch, now);
        watch->look_at = now + LOOK_EACH;
    }
    if (watch->expire_at <= now)
        expire(node, now);
    return watch->look_at < watch->expire_at ? watch->look_at : watch->expire_at;
}
