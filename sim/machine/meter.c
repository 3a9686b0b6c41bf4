#include "sim/machine/meter.h"

#include <stdlib.h>
#include <string.h>

#include "bulkhead/cuda_codes.h"
#include "sim/machine/guard.h"

struct sim_meter {
    struct sim_vram *vram;
    uint64_t bytes;
};

struct sim_meter *
sim_meter_open(const char *folder, const struct sim_gpu *gpu, uint64_t bytes)
{
    struct sim_meter *meter = calloc(1, sizeof(*meter));

    if (meter == NULL)
        return NULL;
    meter->bytes = bytes;
    meter->vram = sim_vram_open(folder, gpu, bytes);
    if (meter->vram != NULL)
        return meter;
    free(meter);
    return NULL;
}

void
sim_meter_close(struct sim_meter *meter)
{
    if (meter == NULL)
        return;
    sim_vram_close(meter->vram);
    free(meter);
}

uint64_t
sim_meter_used(struct sim_meter *meter)
{
    uint64_t used;

    sim_guard(meter->vram);
    used = sim_ledger_snapshot(meter->vram, NULL) * SIM_PAGE_BYTES;
    sim_guard(NULL);
    return used;
}

/* The process that a slot's pages count for: of a shared object its maker, while it lives.
 */
static uint32_t
payer_of(struct sim_meter *meter, uint32_t slot)
{
    const struct sim_slot *record = sim_ledger_slot(meter->vram, slot), *creator;
    uint32_t maker = SIM_READ(record->creator);

    if (SIM_READ(record->kind) != SIM_SLOT_SHARED || maker == 0 || maker >= SIM_SLOTS_MAX)
        return slot;
    creator = sim_ledger_slot(meter->vram, maker);
    return SIM_READ(creator->kind) == SIM_SLOT_PROCESS
                   && SIM_READ(creator->generation) == SIM_READ(record->creator_generation)
               ? maker
               : slot;
}

static struct sim_meter_user
user_of(struct sim_meter *meter, uint32_t slot, uint64_t pages)
{
    const struct sim_slot *record = sim_ledger_slot(meter->vram, slot);
    uint64_t bytes = pages * SIM_PAGE_BYTES;

    return (struct sim_meter_user){ .slot = slot,
                                    .pid = SIM_READ(record->kind) == SIM_SLOT_PROCESS ? SIM_READ(record->pid)
                                                                                      : 0,
                                    .bytes = bytes < meter->bytes ? bytes : meter->bytes };
}

static void
take_reading(struct sim_meter *meter, struct sim_meter_reading *ret_reading)
{
    uint32_t pages[SIM_SLOTS_MAX];
    uint64_t sums[SIM_SLOTS_MAX] = { 0 };

    ret_reading->total_bytes = meter->bytes;
    ret_reading->used_bytes = sim_ledger_snapshot(meter->vram, pages) * SIM_PAGE_BYTES;
    ret_reading->users = 0;
    for (uint32_t slot = 1; slot < SIM_SLOTS_MAX; slot++)
        if (pages[slot] > 0)
            sums[payer_of(meter, slot)] += pages[slot];
    for (uint32_t slot = 1; slot < SIM_SLOTS_MAX; slot++)
        if (sums[slot] > 0)
            ret_reading->user[ret_reading->users++] = user_of(meter, slot, sums[slot]);
}

void
sim_meter_read(struct sim_meter *meter, struct sim_meter_reading *ret_reading)
{
    sim_guard(meter->vram);
    take_reading(meter, ret_reading);
    sim_guard(NULL);
}

bool
sim_meter_is_away(struct sim_meter *meter, uint32_t slot)
{
    bool away;

    sim_guard(meter->vram);
    away = slot < SIM_SLOTS_MAX
           && SIM_READ(sim_ledger_slot(meter->vram, slot)->gate) == CU_PROCESS_STATE_CHECKPOINTED;
    sim_guard(NULL);
    return away;
}

uint64_t
sim_meter_slot(const struct sim_meter_reading *reading, uint32_t slot)
{
    for (size_t i = 0; i < reading->users; i++)
        if (reading->user[i].slot == slot)
            return reading->user[i].bytes;
    return 0;
}
