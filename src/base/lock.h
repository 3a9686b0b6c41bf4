#ifndef BH_BASE_LOCK_H
#define BH_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/time.h"

/* Mutexes with a place in one order, tables/locks.tbl, that know who holds them, and conditions on them.
 *
 * A lock out of that order is a failed assert, also where it would have gone well: the order does not
 * depend on which thread comes first. */
enum bh_lock_id {
#define BH_LOCK(id, guards) BH_LOCK_##id,
#include "tables/locks.tbl"
#undef BH_LOCK
    BH_LOCKS
};

struct bh_mutex {
    pthread_mutex_t mutex;
    enum bh_lock_id id;
    _Atomic(const void *) holder; /* of a thread; NULL: free */
};

void bh_mutex_init(struct bh_mutex *mutex, enum bh_lock_id id);
void bh_mutex_fini(struct bh_mutex *mutex);

void bh_mutex_lock(struct bh_mutex *mutex);
void bh_mutex_unlock(struct bh_mutex *mutex);

/* False: it was not free before the monotonic clock said `until`. */
BH_MUST_USE bool bh_mutex_lock_until(struct bh_mutex *mutex, bh_ns until);

/* Whether the calling thread holds it: BH_ASSERT(bh_mutex_is_held(&x->mutex)) in functions that want it held.
 */
bool bh_mutex_is_held(const struct bh_mutex *mutex);

/* What threads wait for under a mutex, which each call of wait wants held and returns with. */
struct bh_condition {
    pthread_cond_t condition;
};

void bh_condition_init(struct bh_condition *condition);
void bh_condition_fini(struct bh_condition *condition);
void bh_condition_signal(struct bh_condition *condition);    /* one of them */
void bh_condition_broadcast(struct bh_condition *condition); /* all */
void bh_condition_wait(struct bh_condition *condition, struct bh_mutex *mutex);

/* False: the monotonic clock says `until`, or later. */
bool bh_condition_wait_until(struct bh_condition *condition, struct bh_mutex *mutex, bh_ns until);

#endif
