/* What the null driver shares with the test that watches it: a file beside it, mapped by
 * both. Without the file the driver counts for itself alone. */
#ifndef BH_SIM_NULL_WORLD_H
#define BH_SIM_NULL_WORLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define NULL_WORLD_FILE "/run/bulkhead/driver/world"
#define NULL_UNIT (UINT64_C(2) << 20)

enum { NULL_DEVICES_MAX = 4, NULL_PROCESSES_MAX = 64 };

struct null_world {
    uint32_t devices;
    _Atomic uint32_t fail_alloc, fail_free;                          /* so many calls fail, then none */
    _Atomic uint64_t used[NULL_DEVICES_MAX], most[NULL_DEVICES_MAX]; /* bytes of all processes */
    _Atomic uint64_t busy_until_ns[NULL_DEVICES_MAX];                /* when the last kernel is done */
    _Atomic uint64_t contexts;                                       /* that live */
    _Atomic uint64_t launches, launched_late;                        /* late: after `closed` was set */
    _Atomic uint32_t closed;
    uint32_t newer;         /* the driver is of a version that is not known yet */
    uint64_t context_bytes; /* that a context takes */
    pthread_mutex_t lock;   /* robust: of `used`, `most` and `had` */
    struct {
        _Atomic uint32_t pid; /* 0: none */
        uint64_t had[NULL_DEVICES_MAX];
    } process[NULL_PROCESSES_MAX];
};

/* Under the lock: `used` is what all processes have. */
static inline void
null_world_add_up(struct null_world *world)
{
    for (int device = 0; device < NULL_DEVICES_MAX; device++) {
        uint64_t sum = 0;

        for (int i = 0; i < NULL_PROCESSES_MAX; i++)
            sum += world->process[i].had[device];
        atomic_store(&world->used[device], sum);
    }
}

/* Bytes of memory that every device has; its UUID is sixteen times its ordinal + 1. */
#define NULL_DEVICE_BYTES (UINT64_C(80) << 30)

#endif
