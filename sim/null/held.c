#include "sim/null/held.h"

#include <errno.h>
#include <time.h>

static struct null_world own = { .devices = 1 };
struct null_world *bh_null_world = &own;
bool bh_null_shared;
pthread_mutex_t bh_null_lock = PTHREAD_MUTEX_INITIALIZER;
unsigned bh_null_number;

/* A handler that runs in between may call us, too. */
void
bh_null_lock_quietly(pthread_mutex_t *lock, sigset_t *ret_before)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, ret_before);
    if (pthread_mutex_lock(lock) != EOWNERDEAD)
        return;
    /* One that was killed has it in both sums, or in its own alone. */
    null_world_add_up(bh_null_world);
    pthread_mutex_consistent(lock);
}

void
bh_null_unlock(pthread_mutex_t *lock, const sigset_t *before)
{
    pthread_mutex_unlock(lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void
bh_null_take(int device, uint64_t bytes)
{
    sigset_t before;
    uint64_t now;

    if (!bh_null_shared || bytes == 0)
        return;
    bh_null_lock_quietly(&bh_null_world->lock, &before);
    bh_null_world->process[bh_null_number].had[device] += bytes;
    now = atomic_load(&bh_null_world->used[device]) + bytes;
    atomic_store(&bh_null_world->used[device], now);
    if (now > atomic_load(&bh_null_world->most[device]))
        atomic_store(&bh_null_world->most[device], now);
    bh_null_unlock(&bh_null_world->lock, &before);
}

void
bh_null_give(int device, uint64_t bytes)
{
    sigset_t before;

    if (!bh_null_shared || bytes == 0)
        return;
    bh_null_lock_quietly(&bh_null_world->lock, &before);
    bh_null_world->process[bh_null_number].had[device] -= bytes;
    atomic_fetch_sub(&bh_null_world->used[device], bytes);
    bh_null_unlock(&bh_null_world->lock, &before);
}

uint64_t
bh_null_up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

bool
bh_null_fails(_Atomic uint32_t *left)
{
    uint32_t n = bh_null_shared ? atomic_load(left) : 0;

    while (n > 0)
        if (atomic_compare_exchange_weak(left, &n, n - 1))
            return true;
    return false;
}

uint64_t
bh_null_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
