/* The table of contexts, and each thread's stack of them. */
#include "sim/cuda/device/contexts.h"

#include <pthread.h>
#include <string.h>

#include "sim/cuda/device/limit.h"
#include "sim/cuda/memory/physical.h"
#include "sim/machine/session.h"
#include "sim/machine/usage.h"

#define CONTEXT_MAGIC 0x42484358u
#define CONTEXTS_MAX 512
#define STACK_MAX 16
#define LOOK_AGAIN_NS 20000000u

static struct {
    pthread_mutex_t lock;                  /* taken before sim_memory_lock() */
    struct CUctx_st context[CONTEXTS_MAX]; /* the primary ones first, by device */
    uint64_t ids;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread struct {
    struct CUctx_st *context[STACK_MAX];
    unsigned depth;
} stack;

void
sim_contexts_lock(void)
{
    pthread_mutex_lock(&table.lock);
}

void
sim_contexts_unlock(void)
{
    pthread_mutex_unlock(&table.lock);
}

/* ---- under the lock ---- */

static struct CUctx_st *
contexts_find_free(void)
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

struct CUctx_st *
sim_contexts_primary(CUdevice device)
{
    struct CUctx_st *context = device >= 0 && device < SIM_CUDA_DEVICES_MAX ? &table.context[device] : NULL;

    return context != NULL && context->magic != 0 ? context : NULL;
}

bool
sim_cuda_is_context(const struct CUctx_st *context)
{
    uintptr_t offset = (uintptr_t)context - (uintptr_t)table.context;

    if (offset < sizeof(table.context) && offset % sizeof(*context) == 0)
        return __atomic_load_n(&context->magic, __ATOMIC_ACQUIRE) == CONTEXT_MAGIC;
    return false;
}

/* What the driver itself needs lies at the top of the memory, which is cleared of what
 * was there. */
static CUresult
contexts_take_overhead(struct CUctx_st *context, const struct sim_cuda_device *device)
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

CUresult
sim_contexts_new(CUdevice number, bool primary, struct CUctx_st **ret_context)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);
    struct CUctx_st *context;

    if (rc != CUDA_SUCCESS)
        return rc;
    context = primary ? sim_cuda_primary_handle(number) : contexts_find_free();
    if (context == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *context = (struct CUctx_st){
        .primary = primary, .device = number, .references = 1, .version = 3020, .id = ++table.ids
    };
    sim_limits_init(context->limit);
    sim_memory_lock();
    rc = contexts_take_overhead(context, &device);
    sim_memory_unlock();
    if (rc != CUDA_SUCCESS)
        return rc;
    __atomic_store_n(&context->magic, CONTEXT_MAGIC, __ATOMIC_RELEASE);
    *ret_context = context;
    return CUDA_SUCCESS;
}

bool
sim_contexts_is_last(const struct CUctx_st *context)
{
    for (unsigned i = 0; i < CONTEXTS_MAX; i++)
        if (&table.context[i] != context && table.context[i].magic != 0
            && table.context[i].device == context->device)
            return false;
    return true;
}

void
sim_contexts_close(struct CUctx_st *context)
{
    __atomic_store_n(&context->magic, 0, __ATOMIC_RELEASE);
}

void
sim_contexts_release(struct CUctx_st *context)
{
    sim_limits_drop(context);
    sim_physical_release(context->overhead);
    sim_memory_leave(context->memory);
}

void
sim_cuda_contexts_forget(void)
{
    memset(table.context, 0, sizeof(table.context));
    stack.depth = 0;
    pthread_mutex_init(&table.lock, NULL);
}

/* ---- the thread's stack ---- */

bool
sim_contexts_is_full(void)
{
    return stack.depth == STACK_MAX;
}

CUresult
sim_contexts_push(struct CUctx_st *context)
{
    if (sim_contexts_is_full())
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack.context[stack.depth++] = context;
    return CUDA_SUCCESS;
}

struct CUctx_st *
sim_contexts_pop(void)
{
    return stack.depth > 0 ? stack.context[--stack.depth] : NULL;
}

struct CUctx_st *
sim_contexts_top(void)
{
    return stack.depth > 0 ? stack.context[stack.depth - 1] : NULL;
}

CUresult
sim_cuda_current(struct CUctx_st **ret_context)
{
    struct CUctx_st *context = sim_contexts_top();

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!sim_cuda_is_context(context))
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
