#include "base/lock.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "base/assert.h"

static const char *const lock_names[BH_LOCKS] = {
#define BH_LOCK(id, guards) [BH_LOCK_##id] = #id,
#include "tables/locks.tbl"
#undef BH_LOCK
};

/* Of the calling thread: bit n is set while it holds a lock of row n.  Its address is the thread's name. */
static _Thread_local uint64_t lock_rows_held;
_Static_assert(BH_LOCKS <= 64, "a bit for each row");

#ifdef __SANITIZE_THREAD__ /* it does not know pthread_mutex_clocklock */
#define LOCK_CLOCK CLOCK_REALTIME
#define pthread_mutex_clocklock(mutex, clock, until) pthread_mutex_timedlock(mutex, until)
#else
#define LOCK_CLOCK CLOCK_MONOTONIC
#endif

static void
lock_check_order(const struct bh_mutex *mutex)
{
    bool in_order = lock_rows_held >> mutex->id == 0;

    if (!in_order)
        fprintf(stderr, "bulkhead: lock %s taken while the thread holds %s\n", lock_names[mutex->id],
                lock_names[63 - __builtin_clzll(lock_rows_held)]);
    BH_ASSERT(in_order);
}

static void
lock_set_holder(struct bh_mutex *mutex)
{
    lock_rows_held |= UINT64_C(1) << mutex->id;
    atomic_store_explicit(&mutex->holder, &lock_rows_held, memory_order_relaxed);
}

static void
lock_clear_holder(struct bh_mutex *mutex)
{
    BH_ASSERT(bh_mutex_is_held(mutex));
    atomic_store_explicit(&mutex->holder, NULL, memory_order_relaxed);
    lock_rows_held &= ~(UINT64_C(1) << mutex->id);
}

static struct timespec
lock_time(bh_ns at)
{
    return (struct timespec){ (time_t)(at / BH_NS_PER_S), (long)(at % BH_NS_PER_S) };
}

void
bh_mutex_init(struct bh_mutex *mutex, enum bh_lock_id id)
{
    BH_ASSERT(pthread_mutex_init(&mutex->mutex, NULL) == 0);
    mutex->id = id;
    mutex->holder = NULL;
}

void
bh_mutex_fini(struct bh_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->mutex);
}

void
bh_mutex_lock(struct bh_mutex *mutex)
{
    lock_check_order(mutex);
    BH_ASSERT(pthread_mutex_lock(&mutex->mutex) == 0);
    lock_set_holder(mutex);
}

bool
bh_mutex_lock_until(struct bh_mutex *mutex, bh_ns until)
{
    bh_ns now = bh_time_monotonic();
    struct timespec at;

    lock_check_order(mutex);
    clock_gettime(LOCK_CLOCK, &at);
    if (until > now)
        at = lock_time((bh_ns)at.tv_sec * BH_NS_PER_S + (bh_ns)at.tv_nsec + (until - now));
    if (pthread_mutex_clocklock(&mutex->mutex, LOCK_CLOCK, &at) != 0)
        return false;
    lock_set_holder(mutex);
    return true;
}

void
bh_mutex_unlock(struct bh_mutex *mutex)
{
    lock_clear_holder(mutex);
    pthread_mutex_unlock(&mutex->mutex);
}

bool
bh_mutex_is_held(const struct bh_mutex *mutex)
{
    return atomic_load_explicit(&mutex->holder, memory_order_relaxed) == &lock_rows_held;
}

void
bh_condition_init(struct bh_condition *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    BH_ASSERT(pthread_cond_init(&condition->condition, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
}

void
bh_condition_fini(struct bh_condition *condition)
{
    pthread_cond_destroy(&condition->condition);
}

void
bh_condition_signal(struct bh_condition *condition)
{
    pthread_cond_signal(&condition->condition);
}

void
bh_condition_broadcast(struct bh_condition *condition)
{
    pthread_cond_broadcast(&condition->condition);
}

void
bh_condition_wait(struct bh_condition *condition, struct bh_mutex *mutex)
{
    lock_clear_holder(mutex);
    pthread_cond_wait(&condition->condition, &mutex->mutex);
    lock_set_holder(mutex);
}

bool
bh_condition_wait_until(struct bh_condition *condition, struct bh_mutex *mutex, bh_ns until)
{
    const struct timespec at = lock_time(until);
    int rc;

    lock_clear_holder(mutex);
    rc = pthread_cond_timedwait(&condition->condition, &mutex->mutex, &at);
    lock_set_holder(mutex);
    return rc != ETIMEDOUT;
}
