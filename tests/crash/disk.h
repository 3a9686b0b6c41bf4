#ifndef BH_CRASH_DISK_H
#define BH_CRASH_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The disk below a program under test.  The C library's calls that change files (open,
 * write, pwrite, ftruncate, fdatasync, fsync, rename, unlink) go through here: to the
 * linker these are the C library's, also for SQLite.
 *
 * What happens in one folder can be written down, and then be played up to any point as a
 * crash there may have left it: what was not flushed is there, or not, or in part (sectors
 * of 512 bytes, in any order), and names that the folder was not flushed for are old or
 * new.  Or the Nth call can be made to fail.  Tests only; one folder at a time. */

/* ---- writing down ---- */

/* From now on, for the files directly in `folder`. */
void bh_disk_record(const char *folder);
/* No longer; what was written down stays until bh_disk_forget. */
void bh_disk_pause(void);
void bh_disk_forget(void);

/* A remark of the program under test between its calls, to be found again by
 * bh_disk_marks. */
void bh_disk_mark(uint32_t kind, uint64_t number);

/* How many calls and remarks were written down: crash points are 0 .. that, inclusive. */
size_t bh_disk_length(void);

/* Called for each remark before `point`, in order. */
typedef void (*bh_disk_mark_sink)(void *self, size_t at, uint32_t kind, uint64_t number);
void bh_disk_marks(size_t point, bh_disk_mark_sink sink, void *self);

/* ---- faults of the disk itself, to see that a check finds them ---- */

/* Flushes of files whose name begins with `prefix` did nothing. */
void bh_disk_drop_flushes(const char *prefix);

/* ---- crashing ---- */

/* Make `folder`, which is empty, what a crash before call `point` may have left behind.
 * `seed` chooses among all that is possible.  Files whose names end in "-shm" and ".lock"
 * live in memory and are not there.  Points must not go back between two calls of
 * bh_disk_rewind. */
void bh_disk_crash(size_t point, uint64_t seed, const char *folder);
void bh_disk_rewind(void);

/* ---- calls that fail ---- */

/* What fails: any of the calls above that change something. */
struct bh_disk_fault {
    uint32_t number; /* the Nth call of this thread from now on, from 1 */
    bool sticky;     /* and all that come after it */
    int error;       /* errno; a write that fails with ENOSPC wrote half before */
};
void bh_disk_fail(const struct bh_disk_fault *fault);
/* Nothing fails any more; how many did. */
uint32_t bh_disk_heal(void);

#endif
