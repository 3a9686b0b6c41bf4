#ifndef BH_NODE_CORE_DISK_WATCH_H
#define BH_NODE_CORE_DISK_WATCH_H

#include <dirent.h>

#include "base/time.h"

struct bh_node;

/* The file systems that jobs write to, and logs that are too old (log_retention_days). */
struct bh_disk_watch {
    bh_ns check_at, notified_at[2]; /* monotonic; notified_at: of log_dir and the scratch, 0: it has room */
    bh_ns expire_at;
    DIR *expiring; /* a part of it at a time */
};

/* Log a disk on which jobs have no more room, every ten minutes while that is so, and remove old logs, once
 * an hour.  Returns when to call again, monotonic. */
bh_ns bh_disk_watch_tick(struct bh_node *node, bh_ns now);

#endif
