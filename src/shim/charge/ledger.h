/* What this process reserved, until its memory is gone: which record stands at which address. */
#ifndef BH_SHIM_CHARGE_LEDGER_H
#define BH_SHIM_CHARGE_LEDGER_H

#include "shim/driver/page.h"
#include "shim/process/abi.h"
#include "shim/process/records.h"

/* SUCCESS when reservations can be made; NOT_INITIALIZED before cuInit or when it could not
 * join, UNKNOWN after an error of our own. */
static inline CUresult
bh_ledger_ready(void)
{
    if (__builtin_expect(bh_state_is_latched(), 0))
        return CUDA_ERROR_UNKNOWN;
    return bh_page_is_joined() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/* Reserve grains on a device; at the cap, again after pools gave back what they keep without need.  SUCCESS
 * or OUT_OF_MEMORY. */
CUresult bh_ledger_reserve(unsigned device, uint64_t grains);

/* Note what an address holds.  What stood there belonged to memory that is gone, and is
 * given back.  False: no room for it; the record is not given back. */
bool bh_ledger_note(uint64_t address, struct bh_charge_record record);

/* The memory of this record is gone: give back what it was charged. */
void bh_ledger_forget(uint64_t address, struct bh_charge_record record);

/* A context is gone: forget what was allocated in it. */
void bh_ledger_drop_context(unsigned context);

#endif
