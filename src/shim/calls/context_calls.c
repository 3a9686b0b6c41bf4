#include "shim/calls/context_calls.h"

#include <stdatomic.h>

#include "shim/calls/array.h"
#include "shim/calls/module.h"
#include "shim/charge/context.h"
#include "shim/charge/ledger.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/time_slice/gate.h"
#include "shim/time_slice/helper.h"

static BH_STATE union {
    struct {
        _Atomic uint32_t context, references;
    } primary[BH_SHARE_DEVICES_MAX];
    char whole[BH_STATE_ALIGN];
} state;

void
bh_context_calls_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
}

/* The first one starts the time slices. */
static unsigned
context_made(unsigned number, CUcontext context)
{
    unsigned known = bh_context_know(number, context);

    bh_gate_prepare();
    bh_helper_thread_start();
    return known;
}

/* The context is gone: everything that was charged for it and in it is given back. */
static void
context_drop(unsigned number)
{
    bh_context_forget(number);
    bh_ledger_drop_context(number);
    bh_arrays_drop(number);
    bh_modules_drop(number);
    bh_context_end(number);
}

/* ---- making one ---- */

static CUresult
context_finish(unsigned number, CUresult rc, const CUcontext *context)
{
    if (rc != CUDA_SUCCESS)
        bh_context_give_up(number);
    else
        (void)context_made(number, *context);
    return rc;
}

#define CREATE(name, parameters, arguments)                                                                  \
    CUresult name parameters                                                                                 \
    {                                                                                                        \
        unsigned number;                                                                                     \
        CUresult rc = bh_context_begin(device, &number);                                                     \
                                                                                                             \
        return rc != CUDA_SUCCESS ? rc : context_finish(number, REAL(name) arguments, context);              \
    }

CREATE(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device), (context, flags, device))
CREATE(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device), (context, flags, device))
CREATE(cuCtxCreate_v3,
       (CUcontext * context, CUexecAffinityParam *affinities, int count, unsigned int flags, CUdevice device),
       (context, affinities, count, flags, device))
CREATE(cuCtxCreate_v4,
       (CUcontext * context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device),
       (context, parameters, flags, device))

/* ---- ending one ---- */

static CUresult
context_ended(unsigned number, CUcontext context, CUresult rc)
{
    if (number == 0)
        return rc;
    if (rc == CUDA_SUCCESS)
        context_drop(number);
    else
        bh_context_put_back(number, context);
    return rc;
}

#define DESTROY(name)                                                                                        \
    CUresult name(CUcontext context)                                                                         \
    {                                                                                                        \
        unsigned number = bh_context_take(context);                                                          \
                                                                                                             \
        return context_ended(number, context, REAL(name)(context));                                          \
    }

DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)

CUresult
cuCtxAttach(CUcontext *context, unsigned int flags)
{
    CUresult rc = REAL(cuCtxAttach)(context, flags);
    unsigned number = rc == CUDA_SUCCESS ? bh_context_number(*context) : 0;

    if (number != 0)
        bh_context_retain(number);
    return rc;
}

CUresult
cuCtxDetach(CUcontext context)
{
    unsigned number = bh_context_number(context);
    CUresult rc;

    if (number == 0 || !bh_context_release(number))
        return REAL(cuCtxDetach)(context);
    (void)bh_context_take(context);
    rc = REAL(cuCtxDetach)(context);
    if (rc != CUDA_SUCCESS)
        bh_context_retain(number);
    return context_ended(number, context, rc);
}

/* ---- primary contexts ---- */

#define END_PRIMARY(name, end)                                                                               \
    CUresult name(CUdevice device)                                                                           \
    {                                                                                                        \
        return end(device, REAL(name));                                                                      \
    }

/* The first to retain a device's makes it; of two at once one has made it in vain. */
static void
calls_primary_retained(unsigned device, unsigned number, CUcontext context)
{
    uint32_t none = 0;

    atomic_fetch_add(&state.primary[device].references, 1);
    if (number == 0)
        return;
    if (atomic_compare_exchange_strong(&state.primary[device].context, &none, number))
        atomic_store(&state.primary[device].context, context_made(number, context));
    else
        bh_context_give_up(number);
}

CUresult
cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult rc = bh_ledger_ready();
    int index = bh_page_device(device);
    unsigned number = 0;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (index < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (atomic_load(&state.primary[index].context) == 0)
        rc = bh_context_begin(device, &number);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = REAL(cuDevicePrimaryCtxRetain)(context, device);
    if (rc == CUDA_SUCCESS)
        calls_primary_retained((unsigned)index, number, *context);
    else if (number != 0)
        bh_context_give_up(number);
    return rc;
}

/* The primary context that this call ends, taken out; 0: it ends none. */
static unsigned
calls_take_primary(unsigned device)
{
    unsigned number = atomic_exchange(&state.primary[device].context, 0);

    if (number != 0)
        (void)bh_context_take(bh_context_handle(number));
    return number;
}

static CUresult
calls_primary_ended(unsigned device, unsigned number, CUresult rc)
{
    uint32_t none = 0;

    if (number == 0)
        return rc;
    if (rc == CUDA_SUCCESS) {
        context_drop(number);
    } else if (BH_HOLDS(atomic_compare_exchange_strong(&state.primary[device].context, &none, number))) {
        bh_context_put_back(number, bh_context_handle(number));
    }
    return rc;
}

static CUresult
calls_primary_release(CUdevice device, CUresult (*real)(CUdevice))
{
    int index = bh_page_device(device);
    uint32_t references;
    unsigned number = 0;
    CUresult rc;

    if (index < 0)
        return real(device);
    references = atomic_load(&state.primary[index].references);
    do {
        if (references == 0)
            return real(device);
    } while (!atomic_compare_exchange_weak(&state.primary[index].references, &references, references - 1));
    if (references == 1)
        number = calls_take_primary((unsigned)index);
    rc = real(device);
    if (rc != CUDA_SUCCESS)
        atomic_fetch_add(&state.primary[index].references, 1);
    return calls_primary_ended((unsigned)index, number, rc);
}

END_PRIMARY(cuDevicePrimaryCtxRelease, calls_primary_release)
END_PRIMARY(cuDevicePrimaryCtxRelease_v2, calls_primary_release)

/* Everything in it goes; what retained it still has to release it. */
static CUresult
calls_primary_reset(CUdevice device, CUresult (*real)(CUdevice))
{
    int index = bh_page_device(device);
    unsigned number;

    if (index < 0)
        return real(device);
    number = calls_take_primary((unsigned)index);
    return calls_primary_ended((unsigned)index, number, real(device));
}

END_PRIMARY(cuDevicePrimaryCtxReset, calls_primary_reset)
END_PRIMARY(cuDevicePrimaryCtxReset_v2, calls_primary_reset)
