#include "shim/context.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "shim/charge.h"
#include "shim/driver.h"
#include "shim/gate.h"
#include "shim/handles.h"
#include "shim/helper.h"
#include "shim/ledger.h"
#include "shim/meter.h"
#include "shim/module.h"
#include "shim/page.h"
#include "shim/pool.h"

#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))

enum { NONE = 0, CLAIMED = 1 }; /* of a row's handle */
enum {
    LIMITS = 3,
    DEFAULT_STACK = 1 << 10,
    DEFAULT_FIFO = 1 << 20,
    DEFAULT_HEAP = 8 << 20
};

struct row {
    _Atomic uint64_t handle;
    uint32_t device;
    uint32_t units;                       /* charged for the context itself */
    _Atomic uint64_t code;                /* grains of its modules */
    _Atomic uint32_t references;          /* of one that is no primary one */
    _Atomic uint32_t limit_units[LIMITS]; /* by enum CUlimit: stack, FIFO, heap */
};

static BH_STATE union {
    struct {
        struct row row[BH_RECORD_OWNERS_MAX]; /* row 0 is nobody's */
        struct {
            _Atomic uint32_t context, references;
        } primary[BH_SHARE_DEVICES_MAX];
    };
    char whole[BH_RECORD_OWNERS_MAX * sizeof(struct row) + BH_STATE_ALIGN];
} state;

static struct bh_handles handles;
static _Atomic uint32_t epoch = 1; /* changes when a number comes to mean another context */
static __thread struct {
    CUcontext context;
    uint32_t epoch;
    struct bh_where where;
} here;

void
bh_contexts_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
    bh_handles_init(&handles);
    atomic_fetch_add(&epoch, 1);
}

/* ---- rows ---- */

/* 0 when all are in use. */
static unsigned
claim_row(unsigned device, uint32_t units)
{
    for (unsigned i = 1; i < BH_RECORD_OWNERS_MAX; i++) {
        struct row *row = &state.row[i];
        uint64_t none = NONE;

        if (!atomic_compare_exchange_strong(&row->handle, &none, CLAIMED))
            continue;
        row->device = device;
        row->units = units;
        atomic_store(&row->references, 1);
        for (unsigned limit = 0; limit < LIMITS; limit++)
            atomic_store(&row->limit_units[limit], 0);
        return i;
    }
    return 0;
}

static void
free_row(unsigned number)
{
    atomic_store(&state.row[number].handle, NONE);
}

static void
forget_aliases(unsigned number)
{
    uint64_t at = 0, handle, word;

    while (bh_handles_next(&handles, &at, &handle, &word))
        if (word == number)
            (void)bh_handles_take(&handles, handle, &word);
}

/* The context is gone: everything that was charged for it and in it is given back. */
static void
drop(unsigned number)
{
    struct row *row = &state.row[number];

    atomic_fetch_add(&epoch, 1);
    forget_aliases(number);
    bh_ledger_drop_context(number);
    bh_modules_drop(row->device, number);
    for (unsigned limit = 0; limit < LIMITS; limit++)
        bh_charge_give(row->device,
                       bh_charge_of_units(atomic_exchange(&row->limit_units[limit], 0)));
    bh_charge_give(row->device, bh_charge_of_units(row->units));
    free_row(number);
}

/* Number of a context that is known; 0 for others. */
static unsigned
number_of(CUcontext context)
{
    uint64_t number;

    return bh_handles_find(&handles, HANDLE(context), &number) ? (unsigned)number : 0;
}

/* One that was made in a way that is not hooked is charged when it is first seen. */
static unsigned
adopt(CUcontext context)
{
    CUdevice device;
    unsigned number;

    if (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS ||
        bh_context_begin(device, &number) != CUDA_SUCCESS)
        return 0;
    atomic_store(&state.row[number].handle, HANDLE(context));
    if (!bh_handles_put(&handles, HANDLE(context), number)) {
        bh_context_give_up(number);
        return 0;
    }
    return number;
}

static CUresult
find_here(CUcontext context, uint32_t now)
{
    unsigned number = number_of(context);

    if (number == 0)
        number = adopt(context);
    if (number == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    here.context = context;
    here.epoch = now;
    here.where = (struct bh_where) { state.row[number].device, number };
    return CUDA_SUCCESS;
}

CUresult
bh_context_here(struct bh_where *ret_where)
{
    CUcontext context = NULL;
    uint32_t now = atomic_load_explicit(&epoch, memory_order_relaxed);
    CUresult rc = REAL(cuCtxGetCurrent)(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (__builtin_expect(here.context != context || here.epoch != now, 0))
        rc = find_here(context, now);
    *ret_where = here.where;
    return rc;
}

unsigned
bh_context_device_of(const struct bh_where *where, CUstream stream)
{
    CUcontext context;
    CUdevice device;

    if (bh_page->visible > 1 && HANDLE(stream) > HANDLE(CU_STREAM_PER_THREAD) &&
        REAL(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS &&
        REAL(cuCtxGetDevice_v2)(&device, context) == CUDA_SUCCESS &&
        bh_page_device(device) >= 0)
        return (unsigned)bh_page_device(device);
    return where->device;
}

void
bh_contexts_visit(unsigned device, bool (*visit)(CUcontext context, void *self), void *self)
{
    uint64_t at = 0, handle, number;

    while (bh_handles_next(&handles, &at, &handle, &number))
        if (state.row[number].device == device &&
            !visit((CUcontext)(uintptr_t)handle, self))
            return;
}

/* ---- making one ---- */

static CUresult
reserve(unsigned device, uint32_t units)
{
    CUresult rc = bh_ledger_reserve(device, bh_charge_of_units(units));

    if (rc != CUDA_SUCCESS)
        return rc;
    rc = bh_modules_enter(device);
    if (rc != CUDA_SUCCESS)
        bh_charge_give(device, bh_charge_of_units(units));
    return rc;
}

static void
give(unsigned device, uint32_t units)
{
    bh_modules_leave(device);
    bh_charge_give(device, bh_charge_of_units(units));
}

/* What a context takes itself, and libraries in it. */
CUresult
bh_context_begin(CUdevice device, unsigned *ret_number)
{
    CUresult rc = bh_ledger_ready();
    int index = bh_page_device(device);
    uint32_t units;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (index < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    units = bh_page_limits((unsigned)index)->context_units;
    rc = reserve((unsigned)index, units);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_number = claim_row((unsigned)index, units);
    if (*ret_number != 0)
        return CUDA_SUCCESS;
    give((unsigned)index, units);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void
bh_context_give_up(unsigned number)
{
    struct row *row = &state.row[number];

    give(row->device, row->units);
    free_row(number);
}

/* Known from now on under its handle; the number under which it is.  One that was seen before
 * it was made here keeps its number. */
static unsigned
know(unsigned number, CUcontext context)
{
    unsigned before = number_of(context);

    if (before != 0) {
        bh_context_give_up(number);
        number = before;
    } else {
        atomic_store(&state.row[number].handle, HANDLE(context));
        (void)BH_HOLDS(bh_handles_put(&handles, HANDLE(context), number));
    }
    bh_gate_prepare();
    bh_helper_start();
    return number;
}

/* Out of the table before the driver ends it: its handle may be another's at once. */
static unsigned
take_out(CUcontext context)
{
    uint64_t number;

    if (!bh_handles_take(&handles, HANDLE(context), &number))
        return 0;
    bh_meter_forget_context(context);
    return (unsigned)number;
}

CUresult
bh_context_alias(CUcontext green, CUcontext primary)
{
    unsigned number = number_of(primary);

    return number != 0 && bh_handles_put(&handles, HANDLE(green), number)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

void
bh_context_unalias(CUcontext green)
{
    (void)take_out(green);
    atomic_fetch_add(&epoch, 1);
}

/* ---- code in one ---- */

CUresult
bh_context_load(unsigned context, unsigned device, uint64_t grains)
{
    _Atomic uint64_t *code = &state.row[context].code;

    if (grains >= bh_charge_of_units(BH_SHARE_UNITS_MAX))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return bh_charge_take_summed(device, code, grains) ||
                   (bh_pools_reclaim(device) && bh_charge_take_summed(device, code, grains))
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

void
bh_context_unload(unsigned context, unsigned device, uint64_t grains)
{
    bh_charge_give_summed(device, &state.row[context].code, grains);
}

/* ---- the calls ---- */

static CUresult
finish(unsigned number, CUresult rc, const CUcontext *context)
{
    if (rc != CUDA_SUCCESS)
        bh_context_give_up(number);
    else
        (void)know(number, *context);
    return rc;
}

CUresult
cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    unsigned number;
    CUresult rc = bh_context_begin(device, &number);

    return rc != CUDA_SUCCESS
               ? rc
               : finish(number, REAL(cuCtxCreate)(context, flags, device), context);
}

CUresult
cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    unsigned number;
    CUresult rc = bh_context_begin(device, &number);

    return rc != CUDA_SUCCESS
               ? rc
               : finish(number, REAL(cuCtxCreate_v2)(context, flags, device), context);
}

CUresult
cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params_array, int num_params,
               unsigned int flags, CUdevice device)
{
    unsigned number;
    CUresult rc = bh_context_begin(device, &number);

    if (rc != CUDA_SUCCESS)
        return rc;
    rc = REAL(cuCtxCreate_v3)(context, params_array, num_params, flags, device);
    return finish(number, rc, context);
}

CUresult
cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *ctx_create_params, unsigned int flags,
               CUdevice device)
{
    unsigned number;
    CUresult rc = bh_context_begin(device, &number);

    if (rc != CUDA_SUCCESS)
        return rc;
    rc = REAL(cuCtxCreate_v4)(context, ctx_create_params, flags, device);
    return finish(number, rc, context);
}

/* ---- ending one ---- */

static CUresult
ended(unsigned number, CUcontext context, CUresult rc)
{
    if (number == 0)
        return rc;
    if (rc == CUDA_SUCCESS)
        drop(number);
    else
        (void)BH_HOLDS(bh_handles_put(&handles, HANDLE(context), number));
    return rc;
}

CUresult
cuCtxDestroy(CUcontext context)
{
    unsigned number = take_out(context);

    return ended(number, context, REAL(cuCtxDestroy)(context));
}

CUresult
cuCtxDestroy_v2(CUcontext context)
{
    unsigned number = take_out(context);

    return ended(number, context, REAL(cuCtxDestroy_v2)(context));
}

CUresult
cuCtxAttach(CUcontext *context, unsigned int flags)
{
    CUresult rc = REAL(cuCtxAttach)(context, flags);
    unsigned number = rc == CUDA_SUCCESS ? number_of(*context) : 0;

    if (number != 0)
        atomic_fetch_add(&state.row[number].references, 1);
    return rc;
}

CUresult
cuCtxDetach(CUcontext context)
{
    unsigned number = number_of(context);
    CUresult rc;

    if (number == 0 || atomic_fetch_sub(&state.row[number].references, 1) > 1)
        return REAL(cuCtxDetach)(context);
    take_out(context);
    rc = REAL(cuCtxDetach)(context);
    if (rc != CUDA_SUCCESS)
        atomic_fetch_add(&state.row[number].references, 1);
    return ended(number, context, rc);
}

/* ---- primary contexts ---- */

/* Who retains a device's first makes it; of two at once one has made it in vain. */
static void
retained(unsigned device, unsigned number, CUcontext context)
{
    uint32_t none = 0;

    atomic_fetch_add(&state.primary[device].references, 1);
    if (number == 0)
        return;
    if (atomic_compare_exchange_strong(&state.primary[device].context, &none, number))
        atomic_store(&state.primary[device].context, know(number, context));
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
        retained((unsigned)index, number, *context);
    else if (number != 0)
        bh_context_give_up(number);
    return rc;
}

/* The primary context that this call ends, taken out; 0: it ends none. */
static unsigned
take_primary(unsigned device)
{
    unsigned number = atomic_exchange(&state.primary[device].context, 0);

    if (number != 0)
        take_out((CUcontext)(uintptr_t)atomic_load(&state.row[number].handle));
    return number;
}

static CUresult
primary_ended(unsigned device, unsigned number, CUresult rc)
{
    uint32_t none = 0;

    if (number == 0)
        return rc;
    if (rc == CUDA_SUCCESS) {
        drop(number);
    } else if (BH_HOLDS(atomic_compare_exchange_strong(&state.primary[device].context,
                                                       &none, number))) {
        uint64_t handle = atomic_load(&state.row[number].handle);

        (void)BH_HOLDS(bh_handles_put(&handles, handle, number));
    }
    return rc;
}

static CUresult
release(CUdevice device, CUresult (*real)(CUdevice))
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
    } while (!atomic_compare_exchange_weak(&state.primary[index].references, &references,
                                           references - 1));
    if (references == 1)
        number = take_primary((unsigned)index);
    rc = real(device);
    if (rc != CUDA_SUCCESS)
        atomic_fetch_add(&state.primary[index].references, 1);
    return primary_ended((unsigned)index, number, rc);
}

CUresult
cuDevicePrimaryCtxRelease(CUdevice device)
{
    return release(device, REAL(cuDevicePrimaryCtxRelease));
}

CUresult
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return release(device, REAL(cuDevicePrimaryCtxRelease_v2));
}

/* Everything in it goes; who retained it still has to release it. */
static CUresult
reset(CUdevice device, CUresult (*real)(CUdevice))
{
    int index = bh_page_device(device);
    unsigned number;

    if (index < 0)
        return real(device);
    number = take_primary((unsigned)index);
    return primary_ended((unsigned)index, number, real(device));
}

CUresult
cuDevicePrimaryCtxReset(CUdevice device)
{
    return reset(device, REAL(cuDevicePrimaryCtxReset));
}

CUresult
cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return reset(device, REAL(cuDevicePrimaryCtxReset_v2));
}

/* ---- limits ---- */

static uint64_t
threads_of(CUdevice device)
{
    int processors = 0, threads = 0;

    if (REAL(cuDeviceGetAttribute)(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                   device) != CUDA_SUCCESS ||
        REAL(cuDeviceGetAttribute)(&threads,
                                   CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                   device) != CUDA_SUCCESS)
        return 0;
    return (uint64_t)processors * (uint64_t)threads;
}

/* Bytes of the device that a limit takes beyond what a new context has. */
static uint64_t
bytes_of_limit(CUlimit limit, uint64_t value, CUdevice device)
{
    static const uint64_t usual[LIMITS] = { DEFAULT_STACK, DEFAULT_FIFO, DEFAULT_HEAP };
    uint64_t more, each = limit == CU_LIMIT_STACK_SIZE ? threads_of(device) : 1, bytes;

    more = value > usual[limit] ? value - usual[limit] : 0;
    return __builtin_mul_overflow(more, each, &bytes) ? UINT64_MAX : bytes;
}

CUresult
cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUresult rc = bh_ledger_ready();
    struct bh_where where;
    _Atomic uint32_t *units;
    uint64_t before, after;

    if (rc != CUDA_SUCCESS || (unsigned)limit >= LIMITS ||
        bh_context_here(&where) != CUDA_SUCCESS)
        return REAL(cuCtxSetLimit)(limit, value);
    units = &state.row[where.context].limit_units[limit];
    after = bh_charge_grains(bytes_of_limit(limit, value, bh_page->ordinal[where.device]));
    after = (after + BH_GRAINS_UNIT - 1) / BH_GRAINS_UNIT;
    rc = bh_ledger_reserve(where.device, bh_charge_of_units(after));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = REAL(cuCtxSetLimit)(limit, value);
    before = rc == CUDA_SUCCESS ? atomic_exchange(units, (uint32_t)after) : after;
    bh_charge_give(where.device, bh_charge_of_units(before));
    return rc;
}
