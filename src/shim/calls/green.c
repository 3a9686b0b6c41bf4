#include "shim/calls/green.h"

#include "shim/charge/context.h"
#include "shim/charge/ledger.h"
#include "shim/driver/driver.h"
#include "shim/process/handles.h"

#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))

/* A word: 16 bits device, number of its context. */
static struct bh_handles greens;

void
bh_greens_init(void)
{
    bh_handles_init(&greens);
}

/* The context that stands for it; NULL: the driver has none. */
static CUcontext
context_of(CUgreenCtx green)
{
    CUcontext context = NULL;

    return HAS(cuCtxFromGreenCtx) && REAL(cuCtxFromGreenCtx)(&context, green) == CUDA_SUCCESS ? context
                                                                                              : NULL;
}

static CUresult
green_know(CUgreenCtx green, CUcontext primary, uint64_t word)
{
    CUcontext context = context_of(green);
    CUresult rc = context == NULL ? CUDA_SUCCESS : bh_context_alias(context, primary);

    if (rc == CUDA_SUCCESS && !bh_handles_put(&greens, HANDLE(green), word))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc != CUDA_SUCCESS && context != NULL)
        bh_context_unalias(context);
    return rc;
}

static CUresult
green_make(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device, unsigned int flags, CUcontext primary)
{
    unsigned number;
    CUresult rc = bh_context_begin(device, &number);

    if (rc != CUDA_SUCCESS)
        return rc;
    rc = REAL(cuGreenCtxCreate)(green, desc, device, flags);
    if (rc == CUDA_SUCCESS) {
        rc = green_know(*green, primary, (uint64_t)(uint32_t)device << 16 | number);
        if (rc != CUDA_SUCCESS)
            (void)REAL(cuGreenCtxDestroy)(*green);
    }
    if (rc != CUDA_SUCCESS)
        bh_context_give_up(number);
    return rc;
}

/* As the driver does, the primary context is kept for as long. */
CUresult
cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device, unsigned int flags)
{
    CUresult rc = bh_ledger_ready();
    CUcontext primary;

    if (rc == CUDA_SUCCESS)
        rc = cuDevicePrimaryCtxRetain(&primary, device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = green_make(green, desc, device, flags, primary);
    if (rc != CUDA_SUCCESS)
        (void)cuDevicePrimaryCtxRelease_v2(device);
    return rc;
}

CUresult
cuGreenCtxDestroy(CUgreenCtx green)
{
    uint64_t word = 0;
    bool known = bh_handles_take(&greens, HANDLE(green), &word);
    CUcontext context = known ? context_of(green) : NULL;
    CUresult rc = REAL(cuGreenCtxDestroy)(green);

    if (known && rc != CUDA_SUCCESS)
        (void)BH_HOLDS(bh_handles_put(&greens, HANDLE(green), word));
    if (!known || rc != CUDA_SUCCESS)
        return rc;
    if (context != NULL)
        bh_context_unalias(context);
    bh_context_give_up((unsigned)(word & 0xffff));
    (void)cuDevicePrimaryCtxRelease_v2((CUdevice)(word >> 16));
    return CUDA_SUCCESS;
}
