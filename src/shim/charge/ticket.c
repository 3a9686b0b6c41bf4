#include "shim/charge/ticket.h"

#include "shim/charge/charge.h"
#include "shim/charge/context.h"
#include "shim/charge/ledger.h"
#include "shim/driver/driver.h"

CUresult
bh_ticket_take(uint64_t bytes, struct bh_ticket *ret_ticket)
{
    CUresult rc = bh_ledger_ready();
    struct bh_where here;

    if (rc == CUDA_SUCCESS)
        rc = bh_context_here(&here);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_ticket = (struct bh_ticket){ here.device, here.context, bh_charge_grains(bytes) };
    return bh_ledger_reserve(here.device, ret_ticket->grains);
}

/* Count a small one in its block.  Its unit stays for the first one there; of the others the
 * block was paid for. */
static bool
ticket_enter_block(const struct bh_ticket *ticket, uint64_t address)
{
    bool first;

    if (!bh_charge_is_shared(ticket->grains))
        return true;
    if (!bh_records_enter(address, ticket->device, &first))
        return false;
    if (!first)
        bh_charge_give(ticket->device, ticket->grains);
    return true;
}

/* Before it is noted, as from then on it may be forgotten. */
CUresult
bh_ticket_settle(const struct bh_ticket *ticket, CUresult rc, uint64_t address, bh_undo undo)
{
    struct bh_charge_record record = { BH_RECORD_LINEAR, ticket->device, ticket->context, ticket->grains };
    bool counted = rc == CUDA_SUCCESS && ticket_enter_block(ticket, address);

    if (counted && bh_ledger_note(address, record))
        return CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS && undo(address) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (counted)
        bh_ledger_forget(address, record);
    else
        bh_charge_give(ticket->device, ticket->grains);
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

CUresult
bh_ticket_undo(uint64_t address)
{
    return REAL(cuMemFree_v2)(address);
}

/* There is no moment at which too little is reserved. */
CUresult
bh_ticket_resize(struct bh_ticket *ticket, uint64_t bytes)
{
    uint64_t grains = bh_charge_grains(bytes);
    uint64_t before = bh_charge_units(ticket->grains), after = bh_charge_units(grains);

    if (after > before
        && bh_ledger_reserve(ticket->device, bh_charge_of_units(after - before)) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (after < before)
        bh_charge_give(ticket->device, bh_charge_of_units(before - after));
    ticket->grains = grains;
    return CUDA_SUCCESS;
}
