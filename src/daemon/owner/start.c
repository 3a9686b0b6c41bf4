#include "daemon/owner/start.h"

#include <stdint.h>

#include "base/log.h"
#include "base/time.h"
#include "daemon/batch/abandoned_orders.h"
#include "daemon/batch/batch.h"
#include "daemon/batch/names.h"
#include "daemon/batch/record.h"
#include "daemon/changes/stream_record.h"
#include "daemon/nodes/inventory.h"
#include "daemon/nodes/orders.h"

static bh_rc
start_record(struct bh_core *core, struct bh_err *err)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "daemon.start", .obj = { .type = "daemon" } };
    uint32_t root;
    bh_rc rc = bh_inventory_lose_all(core, bh_clock_last_saved(&core->clock), err);
    if (rc != BH_OK)
        return rc;
    rc = bh_core_record(core, &entry, BH_OK, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_names_upgrade(core, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_abandoned_orders_record(core, UINT64_MAX, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_orders_unknown(core, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_stream_record_lost(core, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_catalog_name(core->catalog, BH_NAME_PRINCIPAL, "root", &root, err);
    if (rc != BH_OK)
        return rc;
    core->catalog_changed = true;
    return bh_core_commit(core, err);
}

bh_rc
bh_start_record(struct bh_core *core, struct bh_err *err)
{
    uint64_t held_ns = bh_quarantine_own_ns(core->quarantine, bh_time_now());
    bh_rc rc;

    if (held_ns > 0) {
        bh_log(CHANGES_HELD, BH_U64("seconds", held_ns / BH_NS_PER_S));
        core->start_due = true;
        return BH_OK;
    }
    rc = start_record(core, err);
    if (rc != BH_FULL)
        return rc;
    core->start_due = true;
    bh_log(DISK_FULL, BH_ERRLOG(err));
    return bh_core_abort(core, err);
}

bh_rc
bh_start_settle(struct bh_core *core, struct bh_err *err)
{
    bh_rc rc = core->start_due ? start_record(core, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    core->start_due = false;
    return BH_OK;
}
