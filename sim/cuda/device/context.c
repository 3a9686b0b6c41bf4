/* Contexts: the calls that make and end them, and those about them. */
#include "sim/cuda/device/contexts.h"

#include "sim/cuda/device/limit.h"
#include "sim/cuda/memory/alloc.h"
#include "sim/cuda/memory/array.h"
#include "sim/cuda/memory/host.h"
#include "sim/cuda/memory/physical.h"
#include "sim/cuda/memory/pool.h"
#include "sim/cuda/work/code.h"
#include "sim/cuda/work/work.h"

#define FLAGS_ALL 0xFFu
#define PRIORITY_GREATEST (-5)

static unsigned primary_flags[SIM_CUDA_DEVICES_MAX]; /* under the lock of contexts */

/* ---- ending them, under the lock ---- */

static void
context_end(struct CUctx_st *context)
{
    sim_cuda_work_drop(context);
    sim_contexts_close(context);
    sim_memory_lock();
    sim_array_drop(context);
    sim_code_drop(context);
    sim_alloc_drop(context);
    sim_host_drop(context);
    if (sim_contexts_is_last(context))
        sim_pool_drop(context->device);
    sim_contexts_release(context);
    sim_memory_unlock();
}

/* ---- the calls ---- */

static CUresult
context_retain(CUdevice device, struct CUctx_st **ret_context)
{
    CUresult rc = CUDA_SUCCESS;
    struct CUctx_st *found;

    sim_contexts_lock();
    found = sim_contexts_primary(device);
    if (found != NULL)
        found->references++;
    else
        rc = sim_contexts_new(device, true, &found);
    if (rc == CUDA_SUCCESS)
        found->flags = primary_flags[device];
    sim_contexts_unlock();
    if (rc == CUDA_SUCCESS)
        *ret_context = found;
    return rc;
}

CUDA_API CUresult
cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_wait();
    return context == NULL ? CUDA_ERROR_INVALID_VALUE : context_retain(device, context);
}

/* A primary context less: when it was the last use of it, or `all` at once. */
static CUresult
context_release(CUdevice device, bool all)
{
    struct sim_cuda_device there;
    CUresult rc = CUDA_SUCCESS;
    struct CUctx_st *found;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_wait();
    sim_contexts_lock();
    found = sim_contexts_primary(device);
    if (found == NULL && all)
        rc = sim_cuda_device(device, &there);
    else if (found == NULL)
        rc = CUDA_ERROR_INVALID_CONTEXT;
    else if (--found->references == 0 || all)
        context_end(found);
    sim_contexts_unlock();
    return rc;
}

CUDA_ROW(cuDevicePrimaryCtxRelease_v2, (CUdevice device), context_release(device, false))
CUDA_ROW(cuDevicePrimaryCtxRelease, (CUdevice device), context_release(device, false))
CUDA_ROW(cuDevicePrimaryCtxReset_v2, (CUdevice device), context_release(device, true))
CUDA_ROW(cuDevicePrimaryCtxReset, (CUdevice device), context_release(device, true))

CUDA_API CUresult
cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    struct sim_cuda_device there;
    CUresult rc = sim_cuda_device(device, &there);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags == NULL || active == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_contexts_lock();
    *flags = primary_flags[device];
    *active = sim_contexts_primary(device) != NULL;
    sim_contexts_unlock();
    return CUDA_SUCCESS;
}

static CUresult
context_set_flags(CUdevice device, unsigned flags, bool idle)
{
    struct sim_cuda_device there;
    CUresult rc = sim_cuda_device(device, &there);
    struct CUctx_st *found;

    if (rc != CUDA_SUCCESS)
        return rc;
    if ((flags & ~FLAGS_ALL) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_contexts_lock();
    found = sim_contexts_primary(device);
    if (found != NULL && idle)
        rc = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
    else
        primary_flags[device] = flags;
    if (found != NULL && rc == CUDA_SUCCESS)
        found->flags = flags;
    sim_contexts_unlock();
    return rc;
}

CUDA_ROW(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned int flags),
         context_set_flags(device, flags, false))
CUDA_ROW(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned int flags),
         context_set_flags(device, flags, true))

/* ---- contexts beside it ---- */

static CUresult
context_create(CUcontext *context, unsigned flags, CUdevice device, unsigned version)
{
    struct CUctx_st *made = NULL;
    CUresult rc;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL || (flags & ~FLAGS_ALL) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_contexts_is_full())
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_contexts_lock();
    rc = sim_contexts_new(device, false, &made);
    sim_contexts_unlock();
    if (rc != CUDA_SUCCESS)
        return rc;
    made->flags = flags;
    made->version = version;
    *context = made;
    return sim_contexts_push(made);
}

CUDA_ROW(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device),
         context_create(context, flags, device, 3010))
CUDA_ROW(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device),
         context_create(context, flags, device, 3020))

/* Affinities to parts of the device are not simulated. */
CUDA_API CUresult
cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params_array, int num_params, unsigned int flags,
               CUdevice device)
{
    if ((params_array == NULL) != (num_params == 0))
        return CUDA_ERROR_INVALID_VALUE;
    return params_array != NULL ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
                                : context_create(context, flags, device, 3020);
}

CUDA_API CUresult
cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
    if (params != NULL && params->execAffinityParams != NULL)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (params != NULL && params->cigParams != NULL)
        return CUDA_ERROR_NOT_SUPPORTED;
    return context_create(context, flags, device, 3020);
}

CUDA_API CUresult
cuCtxDestroy_v2(CUcontext context)
{
    CUresult rc = CUDA_ERROR_INVALID_CONTEXT;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_wait();
    sim_contexts_lock();
    if (sim_cuda_is_context(context) && !context->primary) {
        context_end(context);
        rc = CUDA_SUCCESS;
    }
    sim_contexts_unlock();
    if (rc == CUDA_SUCCESS && sim_contexts_top() == context)
        (void)sim_contexts_pop();
    return rc;
}

CUDA_ROW(cuCtxDestroy, (CUcontext context), cuCtxDestroy_v2(context))

CUDA_API CUresult
cuCtxAttach(CUcontext *context, unsigned int flags)
{
    struct CUctx_st *current;
    CUresult rc = sim_cuda_current(&current);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (context == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_fetch_add(&current->references, 1, __ATOMIC_ACQ_REL);
    *context = current;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxDetach(CUcontext context)
{
    struct CUctx_st *current;
    CUresult rc = sim_cuda_current(&current);

    if (rc != CUDA_SUCCESS || current != context)
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_CONTEXT;
    if (__atomic_sub_fetch(&current->references, 1, __ATOMIC_ACQ_REL) > 0)
        return CUDA_SUCCESS;
    return current->primary ? context_release(current->device, true) : cuCtxDestroy_v2(context);
}

CUDA_API CUresult
cuCtxPushCurrent_v2(CUcontext context)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    return sim_cuda_is_context(context) ? sim_contexts_push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUDA_API CUresult
cuCtxPopCurrent_v2(CUcontext *context)
{
    struct CUctx_st *top;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    top = sim_contexts_pop();
    if (top == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context != NULL)
        *context = top;
    return CUDA_SUCCESS;
}

CUDA_ROW(cuCtxPushCurrent, (CUcontext context), cuCtxPushCurrent_v2(context))
CUDA_ROW(cuCtxPopCurrent, (CUcontext * context), cuCtxPopCurrent_v2(context))

CUDA_API CUresult
cuCtxSetCurrent(CUcontext context)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context != NULL && !sim_cuda_is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    (void)sim_contexts_pop();
    return context == NULL ? CUDA_SUCCESS : sim_contexts_push(context);
}

CUDA_API CUresult
cuCtxGetCurrent(CUcontext *context)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = sim_contexts_top();
    return CUDA_SUCCESS;
}

/* ---- about them ---- */

/* `context`, or for NULL the current one. */
static CUresult
context_choose(CUcontext context, struct CUctx_st **ret_context)
{
    if (context == NULL)
        return sim_cuda_current(ret_context);
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!sim_cuda_is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    sim_memory_wait();
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    struct CUctx_st *found;
    CUresult rc = context_choose(context, &found);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = found->device;
    return CUDA_SUCCESS;
}

CUDA_ROW(cuCtxGetDevice, (CUdevice * device), cuCtxGetDevice_v2(device, NULL))

CUDA_API CUresult
cuCtxGetFlags(unsigned int *flags)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    struct CUctx_st *found;
    CUresult rc = context_choose(context, &found);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = found->version;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxGetId(CUcontext context, unsigned long long *ctx_id)
{
    struct CUctx_st *found;
    CUresult rc = context_choose(context, &found);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (ctx_id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *ctx_id = found->id;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxSynchronize_v2(CUcontext context)
{
    struct CUctx_st *found;
    CUresult rc = context_choose(context, &found);

    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_work_wait(found);
    if (rc == CUDA_SUCCESS)
        sim_pool_synchronized();
    return rc;
}

CUDA_ROW(cuCtxSynchronize, (void), cuCtxSynchronize_v2(NULL))

CUDA_API CUresult
cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc == CUDA_SUCCESS && least != NULL)
        *least = 0;
    if (rc == CUDA_SUCCESS && greatest != NULL)
        *greatest = PRIORITY_GREATEST;
    return rc;
}

/* ---- limits ---- */

CUDA_API CUresult
cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct sim_cuda_device device;
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);

    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_device(context->device, &device);
    return rc == CUDA_SUCCESS ? sim_limit_set(context, sim_cuda_sms(&device), limit, value) : rc;
}

CUDA_API CUresult
cuCtxGetLimit(size_t *value, CUlimit limit)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    return value == NULL ? CUDA_ERROR_INVALID_VALUE : sim_limit_get(context, limit, value);
}
