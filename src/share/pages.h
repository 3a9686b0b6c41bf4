#ifndef BH_SHARE_PAGES_H
#define BH_SHARE_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "share/message.h"

/* The pages of one lease (bulkhead/share_page.h) and the processes in its slots.
 *
 * Two files in the lease's folder, which is root's: `limits`, which the lease's processes get
 * for reading alone, and `slots`, which only bulkhead-share sees: so one that was started
 * anew knows which process held what, and takes back what died meanwhile.  The usage, which they write,
 * is a memfd whose size is sealed: no process can make it smaller while it is read, or larger at the
 * node's cost.  One that was started anew finds it in a process that has it mapped.
 *
 * Pages are of one version.  Where processes still count in a page of another one, which cannot
 * be read here, they keep to it, and no process joins until they are gone: a second page beside
 * theirs would promise the cap twice. */
struct bh_share_pages;

/* What the usage is called, with its version (printf): /proc/PID/maps names it. */
#define BH_SHARE_USAGE_NAME "bulkhead-usage-%u"

/* The holder of a slot: a process by its number on the node and when it was started. */
struct bh_share_owner {
    uint32_t pid;     /* 0: none */
    uint64_t started; /* field 22 of /proc/PID/stat */
};

/* Make the pages below open->folder, or find them; slots and reservations stay.  Of another
 * version they are made anew.
 *   BH_INVALID  a cap that is no number of units, too many GPUs, a UUID that is none
 *   BH_IO, BH_FULL */
BH_MUST_USE bh_rc bh_share_pages_open(const struct bh_share_open *open, struct bh_share_pages **ret_pages,
                                      struct bh_err *err);
void bh_share_pages_free(struct bh_share_pages *pages); /* the files stay */
BH_AUTO_DEFINE(struct bh_share_pages *, bh_share_pages_free)

/* Descriptors to give away: the limits for reading alone, the usage. */
int bh_share_pages_limits_fd(const struct bh_share_pages *pages);
int bh_share_pages_usage_fd(const struct bh_share_pages *pages);

/* Whether the process has a usage page mapped, of whatever version: not after it began another program. */
bool bh_share_is_mapped(uint32_t pid);

/* When the process of that number was started.  BH_NOT_FOUND: there is none; another failure says nothing. */
BH_MUST_USE bh_rc bh_share_started(uint32_t pid, uint64_t *ret_started, struct bh_err *err);

/* Whether the owner of a slot still lives: BH_OK, BH_NOT_FOUND, or a failure when that is unknown. */
BH_MUST_USE bh_rc bh_share_check_owner(const struct bh_share_owner *owner, struct bh_err *err);

struct bh_share_owner bh_share_pages_owner(const struct bh_share_pages *pages, uint32_t slot);

/* Whether processes that have slots count in a page of another version: no other may have one. */
bool bh_share_pages_are_outdated(struct bh_share_pages *pages);

/* Give a process a free slot; -1: none is free. */
int bh_share_pages_assign(struct bh_share_pages *pages, struct bh_share_owner owner);

/* Take back what a slot's process held, and the slot: the process is gone.  False: the
 * page says what cannot be, or does not come to rest; the slot is not given again. */
bool bh_share_pages_reap(struct bh_share_pages *pages, uint32_t slot);

/* Set the flags of all devices' time slices, counting on, with that end of the time slice: a reader that sees
 * the word sees its end.  Returns the word.  Then wake the waiters. */
uint32_t bh_share_pages_set_slice(struct bh_share_pages *pages, uint32_t flags, uint64_t until_ns);
void bh_share_pages_wake(struct bh_share_pages *pages);
uint64_t bh_share_pages_until_ns(const struct bh_share_pages *pages);
uint32_t bh_share_pages_slice(const struct bh_share_pages *pages);

/* What its time slices took so far, and the word `busy` of this second. */
void bh_share_pages_busy(struct bh_share_pages *pages, uint64_t used_ns, uint64_t busy);

void bh_share_pages_overhead(struct bh_share_pages *pages, uint32_t device, uint64_t bytes);
uint64_t bh_share_pages_used_bytes(const struct bh_share_pages *pages, uint32_t device);

/* What its processes report to have asked the driver for, all together. */
uint64_t bh_share_pages_seen_bytes(const struct bh_share_pages *pages, uint32_t device);

/* How much of it that is: WHOLE when each process has all of it, ABSENT when none has any,
 * NOT when none has reported, else PARTLY. */
enum bh_share_seen_kind bh_share_pages_seen_kind(const struct bh_share_pages *pages);

#endif
