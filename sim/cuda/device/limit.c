#include "sim/cuda/device/limit.h"

#include <string.h>

#include "sim/cuda/memory/physical.h"

#define THREADS_PER_SM 2048u

/* Zeros: the limit is one that a context has, and it begins with 0. */
static const struct {
    size_t usual, most;
    bool supported, memory;
} limits[SIM_CUDA_LIMITS] = {
    [CU_LIMIT_STACK_SIZE] = { 1024, (size_t)512 << 10, true, true },
    [CU_LIMIT_PRINTF_FIFO_SIZE] = { (size_t)1 << 20, SIZE_MAX, true, true },
    [CU_LIMIT_MALLOC_HEAP_SIZE] = { (size_t)8 << 20, SIZE_MAX, true, true },
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = { 2048, SIZE_MAX, true, false },
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = { 64, 128, true, false },
    [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = { 0, SIZE_MAX, true, false },
};

void
sim_limits_init(size_t limit[SIM_CUDA_LIMITS])
{
    for (unsigned i = 0; i < SIM_CUDA_LIMITS; i++)
        limit[i] = limits[i].usual;
}

/* Bytes on the device for what a limit has above the usual. */
static size_t
limit_needs(CUlimit limit, size_t value, uint32_t sms)
{
    size_t above = value > limits[limit].usual ? value - limits[limit].usual : 0;

    return limit == CU_LIMIT_STACK_SIZE ? above * THREADS_PER_SM * sms : above;
}

static CUresult
limit_reserve(struct CUctx_st *context, CUlimit limit, size_t bytes)
{
    struct sim_physical *old = context->reserved[limit];
    CUresult rc = CUDA_SUCCESS;

    context->reserved[limit] = NULL;
    sim_physical_release(old);
    if (bytes > 0)
        rc = sim_physical_new(context->memory, bytes, SIM_TAKE_TOP, &context->reserved[limit]);
    return rc;
}

void
sim_limits_drop(struct CUctx_st *context)
{
    for (unsigned i = 0; i < SIM_CUDA_LIMITS; i++)
        sim_physical_release(context->reserved[i]);
}

static bool
limit_is(CUlimit limit)
{
    return (unsigned)limit < SIM_CUDA_LIMITS && limits[limit].supported;
}

CUresult
sim_limit_set(struct CUctx_st *context, uint32_t sms, CUlimit limit, size_t value)
{
    CUresult rc = CUDA_SUCCESS;
    size_t before;

    if (!limit_is(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (value > limits[limit].most)
        return CUDA_ERROR_INVALID_VALUE;
    if (limits[limit].memory) {
        sim_memory_lock();
        before = limit_needs(limit, context->limit[limit], sms);
        rc = limit_reserve(context, limit, limit_needs(limit, value, sms));
        if (rc != CUDA_SUCCESS) /* what was there a moment ago is mostly still free */
            (void)limit_reserve(context, limit, before);
        sim_memory_unlock();
    }
    if (rc == CUDA_SUCCESS)
        context->limit[limit] = value;
    return rc;
}

CUresult
sim_limit_get(const struct CUctx_st *context, CUlimit limit, size_t *ret_value)
{
    if (!limit_is(limit))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *ret_value = context->limit[limit];
    return CUDA_SUCCESS;
}
