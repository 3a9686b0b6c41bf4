/* What one call reserves, from before a call of the driver until it is noted in the ledger.
 *
 * Small allocations share blocks of 2 MiB, and where the driver puts one is known only
 * afterwards.  So each reserves a unit first.  The first one in a block leaves it there; the
 * others give theirs back once they are counted in it.  What is freed is counted until the
 * driver has freed it, and the last one gives the block's unit back: at every instant each
 * block that the driver may hold is paid for. */
#ifndef BH_SHIM_CHARGE_TICKET_H
#define BH_SHIM_CHARGE_TICKET_H

#include <stdint.h>

#include "shim/process/abi.h"

/* What one call reserves before it is made. */
struct bh_ticket {
    unsigned device, context;
    uint64_t grains;
};

/* Reserve `bytes` for the current context's device.  NOT_INITIALIZED, INVALID_CONTEXT,
 * OUT_OF_MEMORY, UNKNOWN: nothing was reserved. */
CUresult bh_ticket_take(uint64_t bytes, struct bh_ticket *ret_ticket);

/* Frees an address with the driver. */
typedef CUresult (*bh_undo)(uint64_t address);

/* The call came to `rc`.  When it went well, note what it reserved for `address`, else give
 * it back.  The call's result; OUT_OF_MEMORY when it could not be noted: then `undo` freed
 * the address, and after that it was given back; it stays reserved when `undo` failed. */
CUresult bh_ticket_settle(const struct bh_ticket *ticket, CUresult rc, uint64_t address, bh_undo undo);

/* The usual one: cuMemFree. */
CUresult bh_ticket_undo(uint64_t address);

/* Make a ticket's reservation `bytes`.  OUT_OF_MEMORY: it stays what it was. */
CUresult bh_ticket_resize(struct bh_ticket *ticket, uint64_t bytes);

#endif
