#include "shim/charge/ledger.h"

#include "shim/charge/charge.h"
#include "shim/charge/object.h"
#include "shim/charge/pool.h"

CUresult
bh_ledger_reserve(unsigned device, uint64_t grains)
{
    if (bh_charge_take(device, grains) || (bh_pools_reclaim(device) && bh_charge_take(device, grains)))
        return CUDA_SUCCESS;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

bool
bh_ledger_note(uint64_t address, struct bh_charge_record record)
{
    struct bh_charge_record replaced;

    if (!bh_records_put(address, record, &replaced))
        return false;
    if (__builtin_expect(replaced.kind != BH_RECORD_NONE, 0))
        bh_ledger_forget(address, replaced);
    return true;
}

static void
forget_linear(uint64_t address, struct bh_charge_record record)
{
    if (!bh_charge_is_shared(record.amount) || bh_records_leave(address, record.device))
        bh_charge_give(record.device, record.amount);
}

void
bh_ledger_forget(uint64_t address, struct bh_charge_record record)
{
    switch (record.kind) {
    case BH_RECORD_LINEAR:
        forget_linear(address, record);
        break;
    case BH_RECORD_ASYNC:
        bh_pool_freed(record.owner, record.amount);
        break;
    case BH_RECORD_MAP:
    case BH_RECORD_LEAVING:
    case BH_RECORD_EXTERNAL:
        bh_object_unmapped((uint32_t)record.amount);
        break;
    case BH_RECORD_NONE:
    case BH_RECORD_KINDS:
    default:
        break;
    }
}

void
bh_ledger_drop_context(unsigned context)
{
    struct bh_charge_record record;
    uint64_t at = 0;

    while ((at = bh_records_next(at, BH_RECORDS_END, &record)) < BH_RECORDS_END) {
        if (record.kind == BH_RECORD_LINEAR && record.owner == context
            && bh_records_take(at, 1u << BH_RECORD_LINEAR, &record))
            bh_ledger_forget(at, record);
        at++;
    }
}
