#include "daemon/state/core.h"

uint64_t
bh_core_now(const struct bh_core *core)
{
    bh_ns now = core->as_of_ns ? core->as_of_ns : bh_clock_now(&core->clock);

    return now > core->journal.last_ts_ns ? now : core->journal.last_ts_ns;
}

bh_rc
bh_core_begin(struct bh_core *core, struct bh_err *err)
{
    bh_rc rc;

    if (core->open)
        return BH_OK;
    rc = bh_epochs_keep(&core->epochs, err);
    if (rc != BH_OK)
        return rc;
    bh_journal_ask(&core->journal, bh_core_now(core), core->config->checkpoint_interval);
    rc = core->store.ops->begin(core->store.self, err);
    if (rc != BH_OK)
        return rc;
    core->open = true;
    return BH_OK;
}

bh_rc
bh_core_seal(struct bh_core *core, bh_tenant_id tenant, struct bh_slice plain, struct bh_buf *out,
             struct bh_err *err)
{
    const struct bh_key_use use = { BH_KEY_AUDIT, tenant, bh_core_now(core) };
    bh_rc rc = bh_core_begin(core, err);

    return rc == BH_OK ? bh_keys_seal(core->ring.keys, &use, plain, out, err) : rc;
}

bool
bh_core_is_fatal(bh_rc rc)
{
    return rc == BH_IO || rc == BH_FULL || rc == BH_UNCERTAIN || rc == BH_BUG;
}
