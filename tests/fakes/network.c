#include "tests/fakes/network.h"

#include <stdlib.h>

#include "base/assert.h"

enum { SLOTS_MAX = 256 };
static const struct bh_cidr pool = { 0x0a000000, 24 };

struct fake {
    bool attached[SLOTS_MAX];
};

static bh_rc
fake_check(void *self, enum bh_network_mode mode, struct bh_err *err)
{
    return BH_OK;
}

static bh_rc
fake_attach(void *self, const struct bh_network_job *job, const struct bh_network_place *place,
            struct bh_err *err)
{
    struct fake *fake = self;

    if (!bh_network_has_address(pool, job->slot))
        return bh_err_set(err, BH_RANGE, "no address for slot %u", job->slot);
    if (fake->attached[job->slot])
        return bh_err_set(err, BH_CONFLICT, "slot %u is attached", job->slot);
    fake->attached[job->slot] = true;
    return BH_OK;
}

static bh_rc
fake_detach(void *self, uint32_t slot, struct bh_err *err)
{
    struct fake *fake = self;

    if (slot < SLOTS_MAX)
        fake->attached[slot] = false;
    return BH_OK;
}

static bh_rc
fake_restore(void *self, const struct bh_network_job *jobs, uint32_t count, struct bh_err *err)
{
    struct fake *fake = self;

    *fake = (struct fake){ { false } };
    for (uint32_t i = 0; i < count; i++)
        if (jobs[i].slot < SLOTS_MAX)
            fake->attached[jobs[i].slot] = true;
    return BH_OK;
}

static int
fake_watch(void *self)
{
    return -1;
}

static bh_rc
fake_repair(void *self, bool *ret_made, struct bh_err *err)
{
    *ret_made = false;
    return BH_OK;
}

static bh_rc
fake_counters(void *self, uint32_t slot, struct bh_network_counters *ret_counters, struct bh_err *err)
{
    struct fake *fake = self;

    if (slot >= SLOTS_MAX || !fake->attached[slot])
        return bh_err_set(err, BH_NOT_FOUND, "slot %u is not attached", slot);
    *ret_counters = (struct bh_network_counters){ 0 };
    return BH_OK;
}

static const struct bh_network_ops fake_ops = {
    .name = "fake",
    .check = fake_check,
    .attach = fake_attach,
    .detach = fake_detach,
    .restore = fake_restore,
    .watch = fake_watch,
    .repair = fake_repair,
    .counters = fake_counters,
    .close = free,
};

bh_rc
bh_fake_network_open(struct bh_network *ret_network, struct bh_err *err)
{
    struct fake *fake = calloc(1, sizeof *fake);

    BH_ASSERT(fake);
    *ret_network = (struct bh_network){ &fake_ops, fake };
    return BH_OK;
}
