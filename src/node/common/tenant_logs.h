#ifndef BH_NODE_COMMON_TENANT_LOGS_H
#define BH_NODE_COMMON_TENANT_LOGS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

/* Which tenant and party own each log, and how much of the disk they may keep.  Each log has a mark: an empty
 * file of its name in `parties/PARTY/ID/` (party.h).  It survives a crash and needs no feature of the file
 * system, and an operator who removes logs by hand frees their room.  Keepers and the node use it at the same
 * time without waiting: two that remove logs at once remove the same ones.
 *
 * A log that is open for a job is locked (bh_tenant_logs_hold) and never removed. */
struct bh_tenant_logs {
    const char *folder;   /* log_dir */
    const char *party;    /* of the tenant (party.h); "": none */
    uint32_t tenant;      /* 0: none */
    uint64_t bound_bytes; /* 0: as many as there are */
};

/* What a log counts at least: a tenant's small logs do not use up the inodes. */
enum { BH_TENANT_LOG_LEAST = 32 << 10 };

/* The log `name` is this tenant's, and its party's, from now on. */
BH_MUST_USE bh_rc bh_tenant_logs_add(const struct bh_tenant_logs *logs, const char *name, struct bh_err *err);

/* The log is being written as long as this descriptor is open anywhere.  False: it was just removed,
 * and is to be opened anew. */
bool bh_tenant_logs_hold(int log_fd);

/* How many more bytes may be written before this is asked again, at least `step` of them.  What the
 * party has beyond its bound then is removed but for what is held: of the tenant that has the most
 * of it, oldest first; of none that has less than this one.  0: that is not enough.  A folder that cannot be
 * read is no bound. */
uint64_t bh_tenant_logs_free_bytes(const struct bh_tenant_logs *logs, uint64_t step);

/* Remove logs that were last written before `before` (of the wall clock), the next `most` entries of
 * an open log_dir, but for what is held.  True: there may be more. */
bool bh_tenant_logs_expire(DIR *folder, bh_ns before, uint32_t most);

#endif
