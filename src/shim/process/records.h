/* What was charged for which device address.
 *
 * A tree by address: a root of 16 GiB, nodes of 2 MiB, and below those that hold several
 * small allocations a leaf of 256 bytes, the alignment that CUDA promises.  Every step is
 * one load; nothing is ever moved or made larger, and no lock is taken, so every function
 * may run in a signal handler. Addresses that the tree has no place for are refused.
 *
 * A node counts how many small allocations of a device each block of 2 MiB has, too: the
 * driver puts them there, so that the block is what they take together. */
#ifndef BH_SHIM_PROCESS_RECORDS_H
#define BH_SHIM_PROCESS_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

enum bh_record_kind {
    BH_RECORD_NONE,
    BH_RECORD_LINEAR,   /* owner: its context */
    BH_RECORD_ASYNC,    /* owner: its pool */
    BH_RECORD_MAP,      /* amount: the object that is mapped */
    BH_RECORD_LEAVING,  /* a MAP while it is being unmapped */
    BH_RECORD_EXTERNAL, /* amount: the import that is mapped */
    BH_RECORD_KINDS
};

/* owner: 12 bits, amount: 43 bits, in grains unless said otherwise. */
struct bh_charge_record {
    enum bh_record_kind kind;
    unsigned device, owner;
    uint64_t amount;
};

enum { BH_RECORD_OWNERS_MAX = 1 << 12 };

/* At the first join. */
void bh_records_init(void);

/* Note what was charged for an address that the driver just gave.  ret_replaced, may be
 * NULL: what stood there, kind NONE if nothing.  False: no memory for it, or no such
 * address. */
bool bh_records_put(uint64_t address, struct bh_charge_record record, struct bh_charge_record *ret_replaced);

/* One small allocation of `device` more in the block of an address, before its record is put
 * there.  ret_first: the block had none.  False: no memory for the count, or no such
 * address. */
bool bh_records_enter(uint64_t address, unsigned device, bool *ret_first);

/* One less, when its memory is gone, after its record was taken out.  True: it was the last
 * one. */
bool bh_records_leave(uint64_t address, unsigned device);

/* Take the record of an address out, when its kind is one of `kinds` (bits 1 << kind); only
 * one caller gets it. */
bool bh_records_take(uint64_t address, unsigned kinds, struct bh_charge_record *ret_record);

/* Change kind `from` to `to`; false when no such record is there. */
bool bh_records_change_kind(uint64_t address, enum bh_record_kind from, enum bh_record_kind to);

/* The first address in [from, below) with a record; UINT64_MAX when there is none.  Steps
 * over what was never used. */
uint64_t bh_records_next(uint64_t from, uint64_t below, struct bh_charge_record *ret_record);

/* The record that stands nearest at or before an address, within 16 GiB. */
bool bh_records_before(uint64_t address, struct bh_charge_record *ret_record);

#define BH_RECORDS_END (UINT64_C(1) << 49)

#endif
