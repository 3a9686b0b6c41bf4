#include "shim/charge/charge.h"

#include "shim/driver/page.h"

#define GRAINS_MOST ((uint64_t)(BH_SHARE_UNITS_MAX + 1) * BH_GRAINS_UNIT)

/* What has less than 1 MiB is one that shares its unit, the last grain below it included. */
uint64_t
bh_charge_grains(uint64_t bytes)
{
    uint64_t grains = bytes / BH_GRAIN_BYTES + (bytes % BH_GRAIN_BYTES != 0);

    if (bytes < BH_GRAINS_SMALL * BH_GRAIN_BYTES)
        return grains < BH_GRAINS_SMALL ? grains : BH_GRAINS_SMALL - 1;
    return grains < GRAINS_MOST ? bh_charge_of_units(bh_charge_units(grains)) : GRAINS_MOST;
}

static uint32_t
most_units(unsigned device)
{
    const struct bh_share_device *limits = bh_page_limits(device);
    uint32_t overhead = atomic_load_explicit(&limits->overhead_units, memory_order_relaxed);

    return overhead < limits->cap_units ? limits->cap_units - overhead : 0;
}

static bool
change_units(unsigned device, int64_t units)
{
    return bh_share_change(bh_page->usage, device, bh_page->slot, (int32_t)units, most_units(device));
}

/* A unit that the sum grows into is reserved before it grows: room in the sum's last
 * unit is always paid for. */
bool
bh_charge_take_summed(unsigned device, _Atomic uint64_t *sum, uint64_t grains)
{
    uint64_t before = atomic_load_explicit(sum, memory_order_relaxed);

    for (;;) {
        int64_t more = (int64_t)(bh_charge_units(before + grains) - bh_charge_units(before));

        if (more > 0 && !change_units(device, more))
            return false;
        if (atomic_compare_exchange_weak(sum, &before, before + grains))
            return true;
        if (more > 0)
            (void)BH_HOLDS(change_units(device, -more));
    }
}

void
bh_charge_give_summed(unsigned device, _Atomic uint64_t *sum, uint64_t grains)
{
    uint64_t before = atomic_fetch_sub(sum, grains);
    int64_t less = (int64_t)(bh_charge_units(before) - bh_charge_units(before - grains));

    if (BH_HOLDS(before >= grains) && less > 0)
        (void)BH_HOLDS(change_units(device, -less));
}

bool
bh_charge_take(unsigned device, uint64_t grains)
{
    if (grains == 0)
        return true;
    if (grains >= GRAINS_MOST)
        return false;
    return change_units(device, (int64_t)bh_charge_units(grains));
}

void
bh_charge_give(unsigned device, uint64_t grains)
{
    if (grains > 0)
        (void)BH_HOLDS(change_units(device, -(int64_t)bh_charge_units(grains)));
}

uint32_t
bh_charge_free_units(unsigned device)
{
    uint32_t most = most_units(device), used = bh_share_used(bh_page->usage, device);

    return used < most ? most - used : 0;
}
