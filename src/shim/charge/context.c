#include "shim/charge/context.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "shim/charge/charge.h"
#include "shim/charge/code.h"
#include "shim/charge/ledger.h"
#include "shim/charge/pool.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/handles.h"
#include "shim/work/meter.h"

#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))

enum { NONE = 0, CLAIMED = 1 }; /* of a row's handle */

struct context_row {
    _Atomic uint64_t handle;
    uint32_t device;
    uint32_t units;                                  /* charged for the context itself */
    _Atomic uint64_t code;                           /* grains of its modules */
    _Atomic uint32_t references;                     /* of one that is no primary one */
    _Atomic uint32_t limit_units[BH_CONTEXT_LIMITS]; /* by enum CUlimit: stack, FIFO, heap */
};

static BH_STATE union {
    struct context_row row[BH_RECORD_OWNERS_MAX]; /* row 0 is unused */
    char whole[BH_RECORD_OWNERS_MAX * sizeof(struct context_row) + BH_STATE_ALIGN];
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
context_claim_row(unsigned device, uint32_t units)
{
    for (unsigned i = 1; i < BH_RECORD_OWNERS_MAX; i++) {
        struct context_row *row = &state.row[i];
        uint64_t none = NONE;

        if (!atomic_compare_exchange_strong(&row->handle, &none, CLAIMED))
            continue;
        row->device = device;
        row->units = units;
        atomic_store(&row->references, 1);
        for (unsigned limit = 0; limit < BH_CONTEXT_LIMITS; limit++)
            atomic_store(&row->limit_units[limit], 0);
        return i;
    }
    return 0;
}

static void
context_free_row(unsigned number)
{
    atomic_store(&state.row[number].handle, NONE);
}

unsigned
bh_context_number(CUcontext context)
{
    uint64_t number;

    return bh_handles_find(&handles, HANDLE(context), &number) ? (unsigned)number : 0;
}

/* One that was made in a way that is not hooked is charged when it is first seen. */
static unsigned
context_adopt(CUcontext context)
{
    CUdevice device;
    unsigned number;

    if (REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS || bh_context_begin(device, &number) != CUDA_SUCCESS)
        return 0;
    atomic_store(&state.row[number].handle, HANDLE(context));
    if (!bh_handles_put(&handles, HANDLE(context), number)) {
        bh_context_give_up(number);
        return 0;
    }
    return number;
}

static CUresult
context_find_here(CUcontext context, uint32_t now)
{
    unsigned number = bh_context_number(context);

    if (number == 0)
        number = context_adopt(context);
    if (number == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    here.context = context;
    here.epoch = now;
    here.where = (struct bh_where){ state.row[number].device, number };
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
        rc = context_find_here(context, now);
    *ret_where = here.where;
    return rc;
}

unsigned
bh_context_device_of(const struct bh_where *where, CUstream stream)
{
    CUcontext context;
    CUdevice device;

    if (bh_page->visible > 1 && HANDLE(stream) > HANDLE(CU_STREAM_PER_THREAD)
        && REAL(cuStreamGetCtx)(stream, &context) == CUDA_SUCCESS
        && REAL(cuCtxGetDevice_v2)(&device, context) == CUDA_SUCCESS && bh_page_device(device) >= 0)
        return (unsigned)bh_page_device(device);
    return where->device;
}

void
bh_contexts_visit(unsigned device, bool (*visit)(CUcontext context, void *self), void *self)
{
    uint64_t at = 0, handle, number;

    while (bh_handles_next(&handles, &at, &handle, &number))
        if (state.row[number].device == device && !visit((CUcontext)(uintptr_t)handle, self))
            return;
}

/* ---- making one ---- */

static CUresult
context_reserve(unsigned device, uint32_t units)
{
    CUresult rc = bh_ledger_reserve(device, bh_charge_of_units(units));

    if (rc != CUDA_SUCCESS)
        return rc;
    rc = bh_code_enter(device);
    if (rc != CUDA_SUCCESS)
        bh_charge_give(device, bh_charge_of_units(units));
    return rc;
}

static void
context_give(unsigned device, uint32_t units)
{
    bh_code_leave(device);
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
    rc = context_reserve((unsigned)index, units);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_number = context_claim_row((unsigned)index, units);
    if (*ret_number != 0)
        return CUDA_SUCCESS;
    context_give((unsigned)index, units);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void
bh_context_give_up(unsigned number)
{
    struct context_row *row = &state.row[number];

    context_give(row->device, row->units);
    context_free_row(number);
}

unsigned
bh_context_know(unsigned number, CUcontext context)
{
    unsigned before = bh_context_number(context);

    if (before != 0) {
        bh_context_give_up(number);
        number = before;
    } else {
        atomic_store(&state.row[number].handle, HANDLE(context));
        (void)BH_HOLDS(bh_handles_put(&handles, HANDLE(context), number));
    }
    return number;
}

unsigned
bh_context_take(CUcontext context)
{
    uint64_t number;

    if (!bh_handles_take(&handles, HANDLE(context), &number))
        return 0;
    bh_meter_forget_context(context);
    return (unsigned)number;
}

void
bh_context_put_back(unsigned number, CUcontext context)
{
    (void)BH_HOLDS(bh_handles_put(&handles, HANDLE(context), number));
}

CUcontext
bh_context_handle(unsigned number)
{
    return (CUcontext)(uintptr_t)atomic_load(&state.row[number].handle);
}

void
bh_context_retain(unsigned number)
{
    atomic_fetch_add(&state.row[number].references, 1);
}

bool
bh_context_release(unsigned number)
{
    return atomic_fetch_sub(&state.row[number].references, 1) <= 1;
}

void
bh_context_forget(unsigned number)
{
    uint64_t at = 0, handle, word;

    atomic_fetch_add(&epoch, 1);
    while (bh_handles_next(&handles, &at, &handle, &word))
        if (word == number)
            (void)bh_handles_take(&handles, handle, &word);
}

void
bh_context_end(unsigned number)
{
    struct context_row *row = &state.row[number];

    bh_code_leave(row->device);
    for (unsigned limit = 0; limit < BH_CONTEXT_LIMITS; limit++)
        bh_charge_give(row->device, bh_charge_of_units(bh_context_set_limit(number, limit, 0)));
    bh_charge_give(row->device, bh_charge_of_units(row->units));
    context_free_row(number);
}

uint32_t
bh_context_set_limit(unsigned number, unsigned limit, uint32_t units)
{
    return atomic_exchange(&state.row[number].limit_units[limit], units);
}

CUresult
bh_context_alias(CUcontext green, CUcontext primary)
{
    unsigned number = bh_context_number(primary);

    return number != 0 && bh_handles_put(&handles, HANDLE(green), number) ? CUDA_SUCCESS
                                                                          : CUDA_ERROR_OUT_OF_MEMORY;
}

void
bh_context_unalias(CUcontext green)
{
    (void)bh_context_take(green);
    atomic_fetch_add(&epoch, 1);
}

/* ---- code in one ---- */

CUresult
bh_context_load(unsigned context, unsigned device, uint64_t grains)
{
    _Atomic uint64_t *code = &state.row[context].code;

    if (grains >= bh_charge_of_units(BH_SHARE_UNITS_MAX))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return bh_charge_take_summed(device, code, grains)
                   || (bh_pools_reclaim(device) && bh_charge_take_summed(device, code, grains))
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

void
bh_context_unload(unsigned context, unsigned device, uint64_t grains)
{
    bh_charge_give_summed(device, &state.row[context].code, grains);
}
