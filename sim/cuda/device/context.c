/* Contexts: a device's primary one, others, and each thread's stack of them. */
#include "sim/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/memory/alloc.h"
#include "sim/cuda/memory/array.h"
#include "sim/cuda/work/code.h"
#include "sim/cuda/memory/host.h"
#include "sim/cuda/device/limit.h"
#include "sim/cuda/memory/pool.h"
#include "sim/cuda/work/work.h"
#include "sim/machine/usage.h"

#define CONTEXT_MAGIC 0x42484358u
#define CONTEXTS_MAX 512
#define STACK_MAX 16
#define LOOK_AGAIN_NS 20000000u
#define FLAGS_ALL 0xFFu
#define PRIORITY_GREATEST (-5)

static struct {
    pthread_mutex_t lock;                  /* taken before sim_memory_lock() */
    struct CUctx_st context[CONTEXTS_MAX]; /* the primary ones first, by device */
    unsigned primary_flags[SIM_CUDA_DEVICES_MAX];
    uint64_t ids;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread struct {
    struct CUctx_st *context[STACK_MAX];
    unsigned depth;
} stack;

/* ---- making and ending them, under the lock ---- */

static struct CUctx_st *
find_free(void)
{
    for (unsigned i = SIM_CUDA_DEVICES_MAX; i < CONTEXTS_MAX; i++)
        if (table.context[i].magic == 0)
            return &table.context[i];
    return NULL;
}

CUcontext
sim_cuda_primary_handle(CUdevice device)
{
    return &table.context[device];
}

static struct CUctx_st *
find_primary(CUdevice device)
{
    struct CUctx_st *context =
        device >= 0 && device < SIM_CUDA_DEVICES_MAX ? &table.context[device] : NULL;

    return context != NULL && context->magic != 0 ? context : NULL;
}

static bool
is_context(const struct CUctx_st *context)
{
    uintptr_t offset = (uintptr_t)context - (uintptr_t)table.context;

    if (offset < sizeof(table.context) && offset % sizeof(*context) == 0)
        return __atomic_load_n(&context->magic, __ATOMIC_ACQUIRE) == CONTEXT_MAGIC;
    return false;
}

bool
sim_cuda_is_context(const struct CUctx_st *context)
{
    return is_context(context);
}

/* What the driver itself needs lies at the top of the memory, and is no longer what
 * somebody left there. */
static CUresult
take_overhead(struct CUctx_st *context, const struct sim_cuda_device *device)
{
    size_t bytes = (size_t)device->gpu.context_mib << 20;
    CUresult rc = sim_memory_open(context->device, &context->memory);

    if (rc == CUDA_SUCCESS)
        rc = sim_memory_use(context->memory);
    if (rc != CUDA_SUCCESS || bytes == 0)
        return rc;
    rc = sim_physical_new(context->memory, bytes, SIM_TAKE_TOP, &context->overhead);
    if (rc != CUDA_SUCCESS)
        sim_memory_leave(context->memory);
    return rc;
}

static CUresult
make(CUdevice number, bool primary, struct CUctx_st **ret_context)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);
    struct CUctx_st *context;

    if (rc != CUDA_SUCCESS)
        return rc;
    context = primary ? sim_cuda_primary_handle(number) : find_free();
    if (context == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *context = (struct CUctx_st) { .primary = primary,
                                   .device = number,
                                   .references = 1,
                                   .version = 3020,
                                   .id = ++table.ids };
    sim_limits_init(context->limit);
    sim_memory_lock();
    rc = take_overhead(context, &device);
    sim_memory_unlock();
    if (rc != CUDA_SUCCESS)
        return rc;
    __atomic_store_n(&context->magic, CONTEXT_MAGIC, __ATOMIC_RELEASE);
    *ret_context = context;
    return CUDA_SUCCESS;
}

static bool
is_last(const struct CUctx_st *context)
{
    for (unsigned i = 0; i < CONTEXTS_MAX; i++)
        if (&table.context[i] != context && table.context[i].magic != 0 &&
            table.context[i].device == context->device)
            return false;
    return true;
}

static void
end(struct CUctx_st *context)
{
    sim_cuda_work_drop(context);
    __atomic_store_n(&context->magic, 0, __ATOMIC_RELEASE);
    sim_memory_lock();
    sim_array_drop(context);
    sim_code_drop(context);
    sim_alloc_drop(context);
    sim_host_drop(context);
    if (is_last(context))
        sim_pool_drop(context->device);
    for (unsigned i = 0; i < SIM_CUDA_LIMITS; i++)
        sim_physical_release(context->reserved[i]);
    sim_physical_release(context->overhead);
    sim_memory_leave(context->memory);
    sim_memory_unlock();
}

void
sim_cuda_contexts_forget(void)
{
    memset(table.context, 0, sizeof(table.context));
    stack.depth = 0;
    pthread_mutex_init(&table.lock, NULL);
}

/* ---- the calls ---- */

static CUresult
retain(CUdevice device, struct CUctx_st **ret_context)
{
    CUresult rc = CUDA_SUCCESS;
    struct CUctx_st *found;

    pthread_mutex_lock(&table.lock);
    found = find_primary(device);
    if (found != NULL)
        found->references++;
    else
        rc = make(device, true, &found);
    if (rc == CUDA_SUCCESS)
        found->flags = table.primary_flags[device];
    pthread_mutex_unlock(&table.lock);
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
    return context == NULL ? CUDA_ERROR_INVALID_VALUE : retain(device, context);
}

/* A primary context less: when it was the last use of it, or `all` at once. */
static CUresult
release(CUdevice device, bool all)
{
    struct sim_cuda_device there;
    CUresult rc = CUDA_SUCCESS;
    struct CUctx_st *found;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_wait();
    pthread_mutex_lock(&table.lock);
    found = find_primary(device);
    if (found == NULL && all)
        rc = sim_cuda_device(device, &there);
    else if (found == NULL)
        rc = CUDA_ERROR_INVALID_CONTEXT;
    else if (--found->references == 0 || all)
        end(found);
    pthread_mutex_unlock(&table.lock);
    return rc;
}

CUDA_API CUresult
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return release(device, false);
}

CUDA_API CUresult
cuDevicePrimaryCtxRelease(CUdevice device)
{
    return release(device, false);
}

CUDA_API CUresult
cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return release(device, true);
}

CUDA_API CUresult
cuDevicePrimaryCtxReset(CUdevice device)
{
    return release(device, true);
}

CUDA_API CUresult
cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    struct sim_cuda_device there;
    CUresult rc = sim_cuda_device(device, &there);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags == NULL || active == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&table.lock);
    *flags = table.primary_flags[device];
    *active = find_primary(device) != NULL;
    pthread_mutex_unlock(&table.lock);
    return CUDA_SUCCESS;
}

static CUresult
set_flags(CUdevice device, unsigned flags, bool idle)
{
    struct sim_cuda_device there;
    CUresult rc = sim_cuda_device(device, &there);
    struct CUctx_st *found;

    if (rc != CUDA_SUCCESS)
        return rc;
    if ((flags & ~FLAGS_ALL) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&table.lock);
    found = find_primary(device);
    if (found != NULL && idle)
        rc = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
    else
        table.primary_flags[device] = flags;
    if (found != NULL && rc == CUDA_SUCCESS)
        found->flags = flags;
    pthread_mutex_unlock(&table.lock);
    return rc;
}

CUDA_API CUresult
cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    return set_flags(device, flags, false);
}

CUDA_API CUresult
cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    return set_flags(device, flags, true);
}

/* ---- contexts beside it ---- */

static CUresult
push(struct CUctx_st *context)
{
    if (stack.depth == STACK_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack.context[stack.depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult
create(CUcontext *context, unsigned flags, CUdevice device, unsigned version)
{
    struct CUctx_st *made = NULL;
    CUresult rc;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL || (flags & ~FLAGS_ALL) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (stack.depth == STACK_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&table.lock);
    rc = make(device, false, &made);
    pthread_mutex_unlock(&table.lock);
    if (rc != CUDA_SUCCESS)
        return rc;
    made->flags = flags;
    made->version = version;
    *context = made;
    return push(made);
}

CUDA_API CUresult
cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    return create(context, flags, device, 3010);
}

CUDA_API CUresult
cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    return create(context, flags, device, 3020);
}

/* Affinities to parts of the device are not simulated. */
CUDA_API CUresult
cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params_array, int num_params,
               unsigned int flags, CUdevice device)
{
    if ((params_array == NULL) != (num_params == 0))
        return CUDA_ERROR_INVALID_VALUE;
    return params_array != NULL ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
                                : create(context, flags, device, 3020);
}

CUDA_API CUresult
cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
               CUdevice device)
{
    if (params != NULL && params->execAffinityParams != NULL)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (params != NULL && params->cigParams != NULL)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(context, flags, device, 3020);
}

CUDA_API CUresult
cuCtxDestroy_v2(CUcontext context)
{
    CUresult rc = CUDA_ERROR_INVALID_CONTEXT;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_wait();
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
cuCtxDestroy(CUcontext context)
{
    return cuCtxDestroy_v2(context);
}

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
    return current->primary ? release(current->device, true) : cuCtxDestroy_v2(context);
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
cuCtxPushCurrent(CUcontext context)
{
    return cuCtxPushCurrent_v2(context);
}

CUDA_API CUresult
cuCtxPopCurrent(CUcontext *context)
{
    return cuCtxPopCurrent_v2(context);
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
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!is_context(context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    sim_memory_wait();
    *ret_context = context;
    return CUDA_SUCCESS;
}

/* Calls come in thousands: whether the device still stands is looked at now and then. */
CUresult
sim_cuda_enter(struct CUctx_st **ret_context)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_current(ret_context);
    struct sim_memory *memory;
    uint64_t now, looked;

    if (rc != CUDA_SUCCESS)
        return rc;
    memory = (*ret_context)->memory;
    now = sim_boot_ns();
    looked = __atomic_load_n(&memory->looked_ns, __ATOMIC_RELAXED);
    if (looked != 0 && now - looked < LOOK_AGAIN_NS)
        return CUDA_SUCCESS;
    rc = sim_cuda_device((*ret_context)->device, &device);
    if (rc != CUDA_SUCCESS)
        return rc;
    __atomic_store_n(&memory->faults, device.gpu.memory_faults, __ATOMIC_RELAXED);
    __atomic_store_n(&memory->looked_ns, now, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

/* ---- about them ---- */

/* `context`, or for NULL the current one. */
static CUresult
choose(CUcontext context, struct CUctx_st **ret_context)
{
    if (context == NULL)
        return sim_cuda_current(ret_context);
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    sim_memory_wait();
    *ret_context = context;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    struct CUctx_st *found;
    CUresult rc = choose(context, &found);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = found->device;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuCtxGetDevice(CUdevice *device)
{
    return cuCtxGetDevice_v2(device, NULL);
}

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
    CUresult rc = choose(context, &found);

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
    CUresult rc = choose(context, &found);

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
    CUresult rc = choose(context, &found);

    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_work_wait(found);
    if (rc == CUDA_SUCCESS)
        sim_pool_synchronized();
    return rc;
}

CUDA_API CUresult
cuCtxSynchronize(void)
{
    return cuCtxSynchronize_v2(NULL);
}

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
