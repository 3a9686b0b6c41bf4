#include "node/core/disk_watch.h"

#include "base/disk_space.h"
#include "base/log.h"
#include "node/common/tenant_logs.h"
#include "node/core/node.h"
#include "node/core/scratch.h"

enum { LOGS_AT_ONCE = 256 };
#define CHECK_INTERVAL (10 * BH_NS_PER_S)
#define NOTIFY_INTERVAL (600 * BH_NS_PER_S)
#define EXPIRE_EACH (3600 * BH_NS_PER_S)
#define EXPIRE_ON (100 * BH_NS_PER_MS)
#define DAY (86400 * BH_NS_PER_S)

static void
disk_watch_check(struct bh_disk_watch *watch, size_t which, const char *what, const char *folder, bh_ns now)
{
    struct bh_disk_space space = bh_disk_space_at(folder);
    uint64_t reserved = bh_disk_space_reserved(&space);
    bool low = space.size > 0 && !bh_disk_space_is_left(&space, reserved, 1 << 20);
    bh_ns *notified_at = &watch->notified_at[which];

    if (low && (!*notified_at || *notified_at + NOTIFY_INTERVAL <= now)) {
        bh_log(JOBS_DISK_LOW, BH_STR("what", what), BH_STR("path", folder),
               BH_U64("free_mib", space.free >> 20), BH_U64("kept_mib", reserved >> 20));
        *notified_at = now;
    } else if (!low) {
        *notified_at = 0;
    }
}

/* A part of the folder at a time: the loop has other things to do. */
static void
disk_watch_expire(struct bh_node *node, bh_ns now)
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

    if (watch->check_at <= now) {
        bh_scratch_folder(node, scratch);
        disk_watch_check(watch, 0, "output", node->conf.log_dir, now);
        disk_watch_check(watch, 1, "scratch", scratch, now);
        watch->check_at = now + CHECK_INTERVAL;
    }
    if (watch->expire_at <= now)
        disk_watch_expire(node, now);
    return watch->check_at < watch->expire_at ? watch->check_at : watch->expire_at;
}
