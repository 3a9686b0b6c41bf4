/* Reserving memory of the lease, and giving it back.
 *
 * Amounts are in grains of 512 bytes.  What has 1 MiB and more is charged in whole units of
 * 2 MiB.  Smaller ones share units, as the driver puts them into the same 2 MiB: their sum
 * is kept in this process, and the shared page learns when it crosses a unit.  No locks. */
#ifndef BH_SHIM_CHARGE_H
#define BH_SHIM_CHARGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH_GRAIN_BYTES = 512,
    BH_GRAINS_UNIT = 4096,                /* 2 MiB */
    BH_GRAINS_SMALL = BH_GRAINS_UNIT / 2, /* from here on whole units */
};

/* Grains that `bytes` are charged as.  More than any device has, for what nobody can have.
 */
uint64_t bh_charge_grains(uint64_t bytes);

/* Grains of `units` of 2 MiB. */
static inline uint64_t
bh_charge_of_units(uint64_t units)
{
    return units * BH_GRAINS_UNIT;
}

/* Reserve.  False: the lease's cap would be passed; nothing is reserved. */
bool bh_charge_take(unsigned device, uint64_t grains);

/* Give back what was taken by one bh_charge_take. */
void bh_charge_give(unsigned device, uint64_t grains);

/* The same for amounts that share units with others of a sum, however large they are: the
 * sum's units are reserved.  Of bh_charge_take's small ones that sum is the process's. */
bool bh_charge_take_summed(unsigned device, _Atomic uint64_t *sum, uint64_t grains);
void bh_charge_give_summed(unsigned device, _Atomic uint64_t *sum, uint64_t grains);

/* Units that the lease can still reserve on a device. */
uint32_t bh_charge_free_units(unsigned device);

/* At the first join. */
void bh_charge_init(void);

#endif
