/* Reserving memory of the lease, and giving it back.
 *
 * Amounts are in grains of 512 bytes; what is charged are whole units of 2 MiB.  What has less
 * than 1 MiB shares its unit with others, as the driver puts them into the same 2 MiB: a unit
 * is reserved for each before the driver is asked, and given back when its address proves
 * to lie in a block that was paid for (ledger.h).  No locks. */
#ifndef BH_SHIM_CHARGE_CHARGE_H
#define BH_SHIM_CHARGE_CHARGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH_GRAIN_BYTES = 512,
    BH_GRAINS_UNIT = 4096,                /* 2 MiB */
    BH_GRAINS_SMALL = BH_GRAINS_UNIT / 2, /* from here on units that are not shared */
};

/* Grains that `bytes` are charged as.  More than any device has, for what no process can have.
 */
uint64_t bh_charge_grains(uint64_t bytes);

/* Grains of `units` of 2 MiB. */
static inline uint64_t
bh_charge_of_units(uint64_t units)
{
    return units * BH_GRAINS_UNIT;
}

/* The units that so many grains take. */
static inline uint64_t
bh_charge_units(uint64_t grains)
{
    return (grains + BH_GRAINS_UNIT - 1) / BH_GRAINS_UNIT;
}

/* Does an allocation of so many grains share its unit? */
static inline bool
bh_charge_is_shared(uint64_t grains)
{
    return grains > 0 && grains < BH_GRAINS_SMALL;
}

/* Reserve, in whole units.  False: the lease's cap would be passed; nothing is reserved. */
bool bh_charge_take(unsigned device, uint64_t grains);

/* Give back what was taken by one bh_charge_take. */
void bh_charge_give(unsigned device, uint64_t grains);

/* The same for amounts that share units with others of a sum, however large they are: the
 * sum's units are reserved. */
bool bh_charge_take_summed(unsigned device, _Atomic uint64_t *sum, uint64_t grains);
void bh_charge_give_summed(unsigned device, _Atomic uint64_t *sum, uint64_t grains);

/* Units that the lease can still reserve on a device. */
uint32_t bh_charge_free_units(unsigned device);

#endif
