/* Contexts: a device's primary one, others, and each thread's stack of them. */
#include "simdrv/cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "simdrv/cuda_work.h"
#include "simdrv/session.h"

#define CONTEXT_MAGIC 0x42484358u
#define CONTEXTS_MAX 64
#define STACK_MAX 16

static struct {
    pthread_mutex_t lock;
    struct CUctx_st context[CONTEXTS_MAX];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread struct {
    struct CUctx_st *context[STACK_MAX];
    unsigned depth;
} stack;

/* ---- making and ending them, under the lock ---- */

static struct CUctx_st *
find_free(void)
{
    for (unsigned i = 0; i < CONTEXTS_MAX; i++)
        if (table.context[i].magic == 0)
            return &table.context[i];
    return NULL;
}

static struct CUctx_st *
find_primary(CUdevice device)
{
    for (unsigned i = 0; i < CONTEXTS_MAX; i++)
        if (table.context[i].magic != 0 && table.context[i].primary &&
            table.context[i].device == device)
            return &table.context[i];
    return NULL;
}

static bool
is_context(const struct CUctx_st *context)
{
    for (unsigned i = 0; i < CONTEXTS_MAX; i++)
        if (context == &table.context[i])
            return context->magic == CONTEXT_MAGIC;
    return false;
}

static CUresult
make(CUdevice number, bool primary, struct CUctx_st **ret_context)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);
    struct CUctx_st *context = find_free();
    char folder[SIM_PATH_MAX];

    if (rc != CUDA_SUCCESS)
        return rc;
    if (context == NULL || !sim_session_vram_path(&device.gpu, device.gi, folder))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *context = (struct CUctx_st) { .primary = primary, .device = number, .references = 1 };
    context->vram = sim_vram_open(folder, &device.gpu, sim_cuda_bytes(&device));
    context->presence =
        context->vram == NULL ? NULL : sim_cuda_map(&device, SIM_PAGE_BYTES);
    if (context->presence == NULL) {
        sim_vram_close(context->vram);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    context->magic = CONTEXT_MAGIC;
    *ret_context = context;
    return CUDA_SUCCESS;
}

static void
end(struct CUctx_st *context)
{
    sim_cuda_work_drop(context);
    sim_cuda_memory_drop(context);
    munmap(context->presence, SIM_PAGE_BYTES);
    sim_vram_close(context->vram);
    context->magic = 0;
}

/* ---- the calls ---- */

CUDA_API CUresult
cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult rc = CUDA_SUCCESS;
    struct CUctx_st *found;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&table.lock);
    found = find_primary(device);
    if (found != NULL)
        found->references++;
    else
        rc = make(device, true, &found);
    pthread_mutex_unlock(&table.lock);
    if (rc == CUDA_SUCCESS)
        *context = found;
    return rc;
}

CUDA_API CUresult
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult rc = CUDA_SUCCESS;
    struct CUctx_st *found;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&table.lock);
    found = find_primary(device);
    if (found == NULL)
        rc = CUDA_ERROR_INVALID_CONTEXT;
    else if (--found->references == 0)
        end(found);
    pthread_mutex_unlock(&table.lock);
    return rc;
}

static CUresult
push(struct CUctx_st *context)
{
    if (stack.depth == STACK_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack.context[stack.depth++] = context;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    CUresult rc;

    (void)flags;
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&table.lock);
    rc = make(device, false, context);
    pthread_mutex_unlock(&table.lock);
    return rc == CUDA_SUCCESS ? push(*context) : rc;
}

CUDA_API CUresult
cuCtxDestroy_v2(CUcontext context)
{
    CUresult rc = CUDA_ERROR_INVALID_CONTEXT;

    pthread_mutex_lock(&table.lock);
    if (is_context(context) && !context->primary) {
        end(context);
        rc = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&table.lock);
    if (rc == CUDA_SUCCESS && stack.depth > 0 && stack.context[stack.depth - 1] == context)
        stack.depth--;
    return rc;
}

CUDA_API CUresult
cuCtxPushCurrent_v2(CUcontext context)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    return is_context(context) ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUDA_API CUresult
cuCtxPopCurrent_v2(CUcontext *context)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (stack.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.depth--;
    if (context != NULL)
        *context = stack.context[stack.depth];
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxSetCurrent(CUcontext context)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context != NULL && !is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth > 0)
        stack.depth--;
    return context == NULL ? CUDA_SUCCESS : push(context);
}

CUDA_API CUresult
cuCtxGetCurrent(CUcontext *context)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = stack.depth > 0 ? stack.context[stack.depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult
sim_cuda_current(struct CUctx_st **ret_context)
{
    struct CUctx_st *context = stack.depth > 0 ? stack.context[stack.depth - 1] : NULL;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL || !is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxGetDevice(CUdevice *device)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxSynchronize(void)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    return rc == CUDA_SUCCESS ? sim_cuda_work_wait(context) : rc;
}
