#ifndef BH_DAEMON_OWNER_PAUSE_H
#define BH_DAEMON_OWNER_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"
#include "ports/store.h"

/* When the owner writes nothing for a while: reads are served, changes are refused.  What failed would
 * fail again, and each failure rebuilds the state. */

enum bh_pause_why {
    BH_PAUSE_FULL,   /* the disk is */
    BH_PAUSE_HELD,   /* the daemon's own work failed asserts (daemon/state/quarantine.h) */
    BH_PAUSE_FAILED, /* it could not be committed */
    BH_PAUSE_GONE    /* the store's files are: what is written would be lost */
};

/* Owner thread; zeroed, there is none. */
struct bh_pause {
    bh_ns until_ns; /* monotonic */
    enum bh_pause_why why;
    char failure[240];  /* of FAILED and GONE */
    uint32_t failures;  /* one after the other, */
    uint64_t failed_at; /* when there had been so many commits */
    bool full;          /* the disk; logged; until the next commit succeeds */
    bool gone;          /* the files; logged; until they are back */
};

bool bh_pause_is_on(const struct bh_pause *pause);

/* For so long, by an earlier daemon's failed asserts. */
void bh_pause_hold(struct bh_pause *pause, uint64_t held_ns);

/* The disk is full: for a second.  True for the first time since bh_pause_end, which is to be logged. */
bool bh_pause_on_full(struct bh_pause *pause);

/* The daemon's own work failed: for a second, and twice as long after each failure that follows without a
 * commit, at most 64 times; `commits` says how many there were since the start. */
void bh_pause_on_failure(struct bh_pause *pause, const struct bh_err *failure, uint64_t commits);

/* Look whether the store's files are at their path; true: they are not, and the pause is on for a
 * second.  Logged when they go and when they are back. */
bool bh_pause_on_gone(struct bh_pause *pause, const struct bh_store *store);

/* A batch succeeded. */
void bh_pause_end(struct bh_pause *pause);

/* What a refused change is answered: BH_UNAVAILABLE, or BH_FULL. */
bh_rc bh_pause_explain(const struct bh_pause *pause, struct bh_err *err);

#endif
