#include "daemon/batch/batch.h"

#include <stdlib.h>
#include <string.h>

#include "audit/claims.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/batch/access.h"
#include "daemon/batch/missing_rows.h"
#include "daemon/batch/names.h"
#include "daemon/batch/record.h"
#include "daemon/batch/replay.h"
#include "daemon/batch/snapshot.h"
#include "daemon/batch/step.h"
#include "daemon/names/directory.h"
#include "daemon/state/texts.h"

enum { CORE_ARENA_MAX = 64 << 20 };

static bh_rc
batch_begin_epoch(struct bh_core *core, struct bh_err *err)
{
    struct bh_epoch next = { .job = core->next_job, .order = core->journal.next_seq << BH_ORDER_BITS };

    bh_view_next_numbers(core->state.engine, &next.lease, &next.partition);
    return bh_epochs_open(&core->epochs, core->config->state_dir, &next, core->crypto, err);
}

/* A store whose rows contradict each other has one way back. */
static bh_rc
batch_advise_on_rows(bh_rc rc, struct bh_err *err)
{
    if (rc == BH_CONFLICT && !*err->hint)
        bh_err_hint(err, BH_MISSING_ROWS_GO_BACK);
    return rc;
}

bh_rc
bh_core_open(struct bh_core *core, struct bh_err *err)
{
    bh_rc rc;

    core->arena = bh_arena_new(CORE_ARENA_MAX);
    core->effects = calloc(BH_CORE_EFFECTS_MAX, sizeof *core->effects);
    core->scratch = calloc(BH_CORE_EFFECTS_MAX, sizeof *core->scratch);
    core->shown = calloc(BH_SHOWN_MAX, sizeof *core->shown);
    core->changes = calloc(BH_CORE_CHANGES_MAX, sizeof *core->changes);
    BH_ASSERT(core->effects && core->scratch && core->shown && core->changes);
    rc = bh_clock_open(&core->clock, core->config->state_dir, err);
    if (rc != BH_OK)
        return rc;
    core->journal.store = core->store;
    core->journal.crypto = core->crypto;
    core->catalog = bh_catalog_new(core->store, core->crypto);
    bh_access_open(core);
    bh_state_init(&core->state);
    rc = core->store.ops->check_rows(core->store.self, BH_STORE_ROWS_START, err);
    if (rc != BH_OK)
        return batch_advise_on_rows(rc, err);
    rc = bh_journal_open(&core->journal, core->config, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_keyring_open(&core->ring, core->config, core->store, core->crypto, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_replay(core, err);
    if (rc != BH_OK)
        return batch_advise_on_rows(rc, err);
    rc = bh_journal_check_signed(&core->journal, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_missing_rows_check(core, err);
    if (rc != BH_OK)
        return rc;
    rc = batch_begin_epoch(core, err);
    if (rc != BH_OK)
        return rc;
    bh_clock_raise(&core->clock, core->journal.last_ts_ns);
    core->journal.boot++;
    return BH_OK;
}

void
bh_core_close(struct bh_core *core)
{
    bh_keyring_close(&core->ring);
    bh_catalog_free(core->catalog);
    bh_access_close(core);
    bh_texts_free(core);
    bh_open_orders_fini(&core->open_orders);
    bh_state_fini(&core->state);
    bh_arena_free(core->arena);
    free(core->effects);
    free(core->scratch);
    free(core->shown);
    free(core->gpu_facts);
    free(core->changes);
}

/* Keys that were made since; the record stands beside the row. */
static bh_rc
batch_record_made_keys(struct bh_core *core, struct bh_err *err)
{
    struct bh_key_row row;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_keys_made(core->ring.keys, &row)) {
        const struct bh_key_facts facts = { row.kind, row.tenant_id, row.month, row.created_ns };
        uint8_t digest[32];
        struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .tenant = row.tenant_id, .text = digest,
                                  .verb = "key.make", .obj = { "key", row.id } };

        bh_key_facts_digest(core->crypto, &facts, digest);
        rc = bh_core_record(core, &entry, BH_OK, err);
    }
    return rc;
}

static bh_rc
batch_commit(struct bh_core *core, struct bh_err *err)
{
    bh_ns begun = bh_time_monotonic();
    bh_rc rc = core->store.ops->commit(core->store.self, err);

    if (rc != BH_OK)
        return rc;
    bh_tally_committed(&core->tally, bh_time_monotonic() - begun);
    return BH_OK;
}

/* Jobs that lost their datasets end with the batch that says so. */
static bh_rc
batch_end_refused(struct bh_core *core, struct bh_err *err)
{
    struct bh_entry entry;
    struct bh_event event;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_access_next_refused(core, &entry, &event)) {
        rc = bh_core_step(core, &entry, &event, err);
        if (rc == BH_CONFLICT || rc == BH_NOT_FOUND)
            rc = BH_OK; /* it has ended meanwhile */
    }
    return rc;
}

bh_rc
bh_core_commit(struct bh_core *core, struct bh_err *err)
{
    bh_rc rc = batch_end_refused(core, err);

    if (rc != BH_OK)
        return rc;
    if (!core->open) {
        bh_keyring_rest(&core->ring);
        return BH_OK;
    }
    rc = batch_record_made_keys(core, err);
    if (rc != BH_OK)
        return rc;
    if (bh_catalog_unbound(core->catalog) > 0)
        rc = bh_names_give(core, &(struct bh_entry){ .dec = { .allow = true } }, bh_core_now(core), err);
    if (rc != BH_OK)
        return rc;
    if (bh_journal_signed(&core->journal))
        rc = bh_journal_checkpoint(&core->journal, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_snapshot_if_due(core, err);
    if (rc != BH_OK)
        return rc;
    rc = batch_commit(core, err);
    if (rc != BH_OK)
        return rc;
    core->open = false;
    core->commits++;
    if (core->journal.signing_size != core->journal.signed_size) {
        core->signed_records = core->journal.signing_size;
        core->signed_ns = bh_core_now(core);
    }
    bh_journal_committed(&core->journal);
    bh_snapshot_committed(core);
    bh_keyring_committed(&core->ring);
    bh_refusals_committed(&core->refusals);
    if (core->catalog_changed)
        bh_directory_publish(core->catalog);
    bh_access_committed(core);
    core->catalog_changed = false;
    if (core->text_counts.dropped)
        bh_texts_forget(core);
    bh_hub_put(core->hub, core->changes, core->change_count);
    core->change_count = 0;
    bh_arena_reset(core->arena);
    core->replies = NULL;
    core->documents = NULL;
    core->taken = NULL;
    core->tokens_changed = false;
    return BH_OK;
}

/* What was asked for in the batch is not under way. */
static void
batch_forget_verifies(struct bh_core *core)
{
    core->verify_count = 0;
    for (uint32_t i = 0; i < BH_CORE_VERIFIES_MAX; i++)
        if (core->verifies_asked[i].request >= core->journal.next_seq)
            core->verifies_asked[i] = (struct bh_verify_order){ 0 };
}

bh_rc
bh_core_abort(struct bh_core *core, struct bh_err *err)
{
    uint32_t boot = core->journal.boot;
    bh_rc rc;

    if (core->open)
        core->store.ops->rollback(core->store.self);
    core->open = core->catalog_changed = false;
    core->effect_count = core->change_count = 0;
    bh_arena_reset(core->arena);
    core->replies = NULL;
    core->documents = NULL;
    core->taken = NULL;
    core->tokens_changed = false;
    bh_access_aborted(core);
    bh_refusals_aborted(&core->refusals);
    bh_same_specs_forget(&core->same_specs);
    bh_texts_forget(core);
    bh_tally_aborted(&core->tally);
    bh_state_fini(&core->state);
    bh_state_init(&core->state);
    rc = bh_keyring_aborted(&core->ring, err);
    if (rc == BH_OK)
        rc = bh_replay(core, err);
    if (rc != BH_OK)
        return batch_advise_on_rows(rc, err);
    core->journal.boot = boot;
    batch_forget_verifies(core);
    bh_journal_aborted(&core->journal);
    return BH_OK;
}

const struct bh_effect *
bh_core_effects(const struct bh_core *core, uint32_t *ret_count)
{
    *ret_count = core->effect_count;
    return core->effects;
}

void
bh_core_released(struct bh_core *core)
{
    core->effect_count = 0;
    core->verify_count = 0;
}
