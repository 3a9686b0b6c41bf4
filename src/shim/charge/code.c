#include "shim/charge/code.h"

#include <stdatomic.h>

#include "shim/charge/charge.h"
#include "shim/charge/ledger.h"
#include "shim/process/state.h"

/* Of libraries, on each device: contexts 16 bits, grains of all libraries 48. */
#define ONE_CONTEXT (UINT64_C(1) << 48)

static BH_STATE union {
    _Atomic uint64_t libraries[BH_SHARE_DEVICES_MAX];
    char whole[BH_STATE_ALIGN];
} state;

void
bh_code_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
}

static uint64_t
code_units(uint64_t word)
{
    uint64_t grains = word & (ONE_CONTEXT - 1);

    return (word / ONE_CONTEXT) * ((grains + BH_GRAINS_UNIT - 1) / BH_GRAINS_UNIT);
}

/* Units are reserved before the word grows, and given back after it shrank. */
static CUresult
code_change(unsigned device, uint64_t more, uint64_t less)
{
    _Atomic uint64_t *at = &state.libraries[device];
    uint64_t before = atomic_load(at), after, from, to;

    for (;;) {
        after = before + more - less;
        from = bh_charge_of_units(code_units(before));
        to = bh_charge_of_units(code_units(after));
        if (to > from && bh_ledger_reserve(device, to - from) != CUDA_SUCCESS)
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (atomic_compare_exchange_strong(at, &before, after))
            break;
        if (to > from)
            bh_charge_give(device, to - from);
    }
    if (from > to)
        bh_charge_give(device, from - to);
    return CUDA_SUCCESS;
}

CUresult
bh_code_enter(unsigned device)
{
    return code_change(device, ONE_CONTEXT, 0);
}

void
bh_code_leave(unsigned device)
{
    (void)code_change(device, 0, ONE_CONTEXT);
}

CUresult
bh_code_grow(unsigned device, uint64_t grains)
{
    return code_change(device, grains, 0);
}

void
bh_code_shrink(unsigned device, uint64_t grains)
{
    (void)code_change(device, 0, grains);
}
