#include "sim/machine/handle.h"

#include <pthread.h>
#include <stddef.h>

#define HANDLES_MAX 8192
#define HANDLE_MAGIC 0x42484844u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_handle table[HANDLES_MAX];
static uint32_t used;
static uint32_t oldest; /* next entry to reuse once the table is full */
static uint64_t epoch = 1;

static struct sim_handle *
handle_find(const struct sim_handle *wanted)
{
    for (uint32_t i = 0; i < used; i++) {
        struct sim_handle *handle = &table[i];

        if (handle->epoch == wanted->epoch && handle->kind == wanted->kind && handle->gpu == wanted->gpu
            && handle->gi == wanted->gi && handle->ci == wanted->ci)
            return handle;
    }
    return NULL;
}

/* An entry for a new handle.  A full table gives up its oldest entry that is
 * no GPU's: by then thousands of instances have come and gone since. */
static struct sim_handle *
handle_entry(void)
{
    if (used < HANDLES_MAX)
        return &table[used++];
    for (uint32_t tries = 0; tries < HANDLES_MAX; tries++) {
        struct sim_handle *handle = &table[oldest];

        oldest = (oldest + 1) % HANDLES_MAX;
        if (handle->kind != SIM_HANDLE_GPU || handle->epoch != epoch)
            return handle;
    }
    return NULL;
}

const struct sim_handle *
sim_handle_get(enum sim_handle_kind kind, uint32_t gpu, uint64_t gi, uint64_t ci)
{
    struct sim_handle *handle;

    pthread_mutex_lock(&lock);
    struct sim_handle wanted = { HANDLE_MAGIC, gpu, kind, epoch, gi, ci };
    handle = handle_find(&wanted);
    if (handle == NULL) {
        handle = handle_entry();
        if (handle != NULL)
            *handle = wanted;
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

bool
sim_handle_find(const void *pointer, struct sim_handle *ret_handle)
{
    uintptr_t start = (uintptr_t)table, at = (uintptr_t)pointer;
    const struct sim_handle *handle = pointer;
    bool valid;

    if (at < start || at >= start + sizeof(table) || (at - start) % sizeof(table[0]) != 0)
        return false;
    pthread_mutex_lock(&lock);
    valid = handle->magic == HANDLE_MAGIC && handle->epoch == epoch;
    if (valid)
        *ret_handle = *handle;
    pthread_mutex_unlock(&lock);
    return valid;
}

void
sim_handle_retire(void)
{
    pthread_mutex_lock(&lock);
    epoch++;
    used = 0;
    oldest = 0;
    pthread_mutex_unlock(&lock);
}
