#ifndef BH_DAEMON_JOURNAL_CLOCK_H
#define BH_DAEMON_JOURNAL_CLOCK_H

#include "base/err.h"
#include "base/time.h"

/* Engine time: what records, limits and bills are dated by.  ADR 0059.
 *
 * It advances as CLOCK_BOOTTIME does, so that a step of the wall clock neither ends a job nor
 * bills for hours, and it approaches the wall clock by 1/BH_CLOCK_SLEW of the time that passes.
 * It never goes back, not over a restart either: on the same boot of the machine it continues by
 * the time that the daemon was away, which the file `clock` in the state folder is for; after a
 * boot it begins with the wall clock, or with the last record where that is later.
 *
 * Owner thread only. */

enum { BH_CLOCK_SLEW = 100, BH_CLOCK_BOOT_MAX = 40 };
#define BH_CLOCK_SAVE_INTERVAL (1000 * BH_NS_PER_MS) /* turns are noted no closer than that */
#define BH_CLOCK_STEP (500 * BH_NS_PER_MS)           /* less between two turns is no step */

struct bh_clock_source {
    bh_ns (*boot)(void); /* CLOCK_BOOTTIME; NULL: the machine's */
    bh_ns (*wall)(void);
    char boot_id[BH_CLOCK_BOOT_MAX]; /* "": the machine's */
};

struct bh_clock {
    struct bh_clock_source source; /* set before open, by tests */
    const char *folder;
    int64_t base_ns;   /* engine time - CLOCK_BOOTTIME */
    int64_t stored_ns; /* as the file has it */
    int64_t offset_ns; /* the wall clock's lead, at the last turn */
    bh_ns ticked_at;   /* CLOCK_BOOTTIME at the last turn */
    bh_ns log_from;    /* no step is logged before */
    bh_ns saved_ns;    /* engine time of the last turn noted before it opened */
    bh_ns save_from;   /* CLOCK_BOOTTIME: no turn is noted before */
};

/* Begin, with the files in that folder, which stays the caller's.  Without a file that fits, and
 * with one that cannot be read, by the wall clock.
 *   BH_INVALID  what has the name of one is no file */
BH_MUST_USE bh_rc bh_clock_open(struct bh_clock *clock, const char *folder, struct bh_err *err);

/* Engine time is at least that from now on: the last record's. */
void bh_clock_raise(struct bh_clock *clock, bh_ns at);

bh_ns bh_clock_now(const struct bh_clock *clock);

/* Until when the daemon that had this folder before can have reported what its nodes do, by
 * engine time: BH_CLOCK_SAVE_INTERVAL after the turn that it noted last, in the file `heard`. */
bh_ns bh_clock_last_saved(const struct bh_clock *clock);

/* Approach the wall clock, log a step of it (one in 10 s), keep the files.  Call it about once a
 * second. */
void bh_clock_tick(struct bh_clock *clock);

#endif
