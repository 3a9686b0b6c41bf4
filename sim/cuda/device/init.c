/* cuInit, once in a process. */
#include "sim/cuda/cuda.h"

#include <pthread.h>

#include "sim/cuda/memory/physical.h"

static struct {
    pthread_mutex_t lock;
    bool forked; /* this is a child of a process that was ready */
} init = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A child of fork has nothing of what its parent has on devices, and cannot begin anew. */
static void
init_forget_parent(void)
{
    if (!sim_cuda_ready())
        return;
    init.forked = true;
    sim_cuda_devices_forget();
    sim_cuda_contexts_forget();
    sim_memory_forget();
}

static void
init_watch_forks(void)
{
    static bool watched;

    if (!watched)
        watched = pthread_atfork(NULL, NULL, init_forget_parent) == 0;
}

CUDA_API CUresult
cuInit(unsigned int flags)
{
    CUresult rc = CUDA_SUCCESS;

    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (init.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&init.lock);
    if (!sim_cuda_ready()) {
        init_watch_forks();
        rc = sim_cuda_devices_open();
    }
    pthread_mutex_unlock(&init.lock);
    return rc;
}
