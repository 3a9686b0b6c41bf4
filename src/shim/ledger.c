#include "shim/ledger.h"

#include "shim/array.h"
#include "shim/capture.h"
#include "shim/charge.h"
#include "shim/context.h"
#include "shim/external.h"
#include "shim/gate.h"
#include "shim/graph.h"
#include "shim/green.h"
#include "shim/helper.h"
#include "shim/meter.h"
#include "shim/module.h"
#include "shim/pool.h"
#include "shim/stream.h"
#include "shim/vmm.h"

void
bh_ledger_init(void)
{
    bh_charge_init();
    bh_records_init();
    bh_contexts_init();
    bh_greens_init();
    bh_modules_init();
    bh_pools_init();
    bh_objects_init();
    bh_imports_init();
    bh_arrays_init();
    bh_graphs_init();
    bh_capture_init();
    bh_streams_init();
    bh_gate_init();
    bh_meter_init();
    bh_helper_init();
}

CUresult
bh_ledger_reserve(unsigned device, uint64_t grains)
{
    if (bh_charge_take(device, grains) ||
        (bh_pools_reclaim(device) && bh_charge_take(device, grains)))
        return CUDA_SUCCESS;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
bh_ticket_take(uint64_t bytes, struct bh_ticket *ret_ticket)
{
    CUresult rc = bh_ledger_ready();
    struct bh_where here;

    if (rc == CUDA_SUCCESS)
        rc = bh_context_here(&here);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_ticket = (struct bh_ticket) { here.device, here.context, bh_charge_grains(bytes) };
    return bh_ledger_reserve(here.device, ret_ticket->grains);
}

CUresult
bh_ticket_settle(const struct bh_ticket *ticket, CUresult rc, uint64_t address)
{
    struct bh_record record = { BH_RECORD_LINEAR, ticket->device, ticket->context,
                                ticket->grains };

    if (rc == CUDA_SUCCESS && bh_ledger_note(address, record))
        return CUDA_SUCCESS;
    bh_charge_give(ticket->device, ticket->grains);
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

CUresult
bh_ticket_resize(struct bh_ticket *ticket, uint64_t bytes)
{
    uint64_t before = ticket->grains, after = bh_charge_grains(bytes);
    bool alike = (before < BH_GRAINS_SMALL) == (after < BH_GRAINS_SMALL);

    /* Amounts of one class add up, so the difference is enough; of two classes the new one
     * comes first.  There is no moment at which too little is reserved. */
    if (after > before &&
        bh_ledger_reserve(ticket->device, alike ? after - before : after) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (after < before && !alike && !bh_charge_take(ticket->device, after))
        return CUDA_SUCCESS; /* it stays charged as more */
    if (!alike)
        bh_charge_give(ticket->device, before);
    else if (before > after)
        bh_charge_give(ticket->device, before - after);
    ticket->grains = after;
    return CUDA_SUCCESS;
}

bool
bh_ledger_note(uint64_t address, struct bh_record record)
{
    struct bh_record replaced;

    if (!bh_records_put(address, record, &replaced))
        return false;
    if (__builtin_expect(replaced.kind != BH_RECORD_NONE, 0))
        bh_ledger_forget(replaced);
    return true;
}

void
bh_ledger_forget(struct bh_record record)
{
    switch (record.kind) {
    case BH_RECORD_LINEAR:
        bh_charge_give(record.device, record.amount);
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
    struct bh_record record;
    uint64_t at = 0;

    while ((at = bh_records_next(at, BH_RECORDS_END, &record)) < BH_RECORDS_END) {
        if (record.kind == BH_RECORD_LINEAR && record.owner == context &&
            bh_records_take(at, 1u << BH_RECORD_LINEAR, &record))
            bh_ledger_forget(record);
        at++;
    }
    bh_arrays_drop(context);
}
