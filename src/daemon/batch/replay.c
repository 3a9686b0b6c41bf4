#include "daemon/batch/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/documents/minimum.h"
#include "api/state/codec.h"
#include "audit/bound.h"
#include "audit/token_facts.h"
#include "base/assert.h"
#include "base/log.h"
#include "daemon/batch/snapshot.h"
#include "daemon/names/directory.h"

struct replay {
    struct bh_core *core;
    struct bh_arena *arena;
    struct bh_decision *decisions;
    char *scratch;
    uint64_t count;
    bh_rc rc;
    struct bh_err *err;
};

static bh_rc
replay_apply_event(struct replay *replay, const struct bh_record *record)
{
    struct bh_event event;
    uint32_t count = 0;
    bh_rc rc = bh_codec_get_event(record->ev_json, &event, replay->arena, replay->err);

    if (rc != BH_OK)
        return rc;
    if (record->do_json)
        rc = bh_codec_get_decisions(record->do_json, replay->decisions, &count, replay->arena, replay->err);
    if (rc != BH_OK)
        return rc;
    event.now_ns = record->ts_ns;
    event.seq = record->seq;
    rc = bh_state_replay(&replay->core->state, &event, replay->decisions, count, &replay->core->step);
    if (rc != BH_OK)
        return bh_err_set(replay->err, BH_CONFLICT, "%s does not apply to the state (%s)", record->verb,
                          bh_reason_names[replay->core->step.verdict.code]);
    if (event.kind == BH_EV_SUBMIT && event.u.submit.job.v >= replay->core->next_job)
        replay->core->next_job = event.u.submit.job.v + 1;
    return BH_OK;
}

/* Of a snapshot that this build could have written: what another layout's digest stands for
 * is not known here, and the events before it are replayed as they are. */
static bh_rc
replay_check_digest(struct replay *replay, const struct bh_record *record)
{
    char type[BH_SNAPSHOT_TYPE_SIZE];
    uint8_t digest[32];

    bh_state_snapshot_type(type);
    if (strcmp(record->obj.type, type) != 0)
        return BH_OK;
    bh_state_digest(&replay->core->state, replay->core->crypto, digest);
    if (memcmp(digest, record->text, sizeof digest) != 0)
        return bh_err_set(replay->err, BH_CONFLICT,
                          "the replayed state does not have the digest that was recorded");
    return BH_OK;
}

static bool
replay_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct replay *replay = self;
    struct bh_record record;

    bh_work_get()->record = seq;
    bh_arena_reset(replay->arena);
    replay->rc = bh_record_decode(leaf, length, replay->scratch, &record, replay->err);
    if (replay->rc == BH_OK && record.seq != replay->core->journal.next_seq)
        replay->rc = bh_err_set(replay->err, BH_CONFLICT, "record %" PRIu64 " is missing",
                                replay->core->journal.next_seq);
    if (replay->rc == BH_OK && record.ev_json && !bh_token_facts_is(record.ev_json)
        && !bh_bound_is(record.ev_json))
        replay->rc = replay_apply_event(replay, &record);
    else if (replay->rc == BH_OK && strcmp(record.verb, "snapshot") == 0)
        replay->rc = replay_check_digest(replay, &record);
    if (replay->rc != BH_OK) {
        bh_err_wrap(replay->err, "record %" PRIu64, seq);
        return false;
    }
    bh_journal_replayed(&replay->core->journal, leaf, length, &record);
    bh_open_orders_read(&replay->core->open_orders, &record);
    replay->count++;
    return true;
}

/* What was pruned is in the snapshot, or lost. */
static bh_rc
replay_check_minimum(const struct bh_core *core, struct bh_err *err)
{
    uint64_t minimum;
    bh_rc rc = bh_minimum_read(&core->store, &minimum, err);

    if (rc != BH_OK || core->journal.next_seq >= minimum)
        return rc;
    bh_err_set(err, BH_CONFLICT,
               "records below %" PRIu64 " were pruned, and the snapshot that stands for them "
               "cannot be used",
               minimum);
    return bh_err_hint(err, "put the state folder's snapshot back from a backup");
}

static bh_rc
replay_records(struct bh_core *core, struct bh_err *err)
{
    struct replay replay = {
        .core = core,
        .arena = bh_arena_new(BH_ARENA_DEFAULT_MAX),
        .decisions = calloc(BH_DECISIONS_MAX, sizeof *replay.decisions),
        .scratch = malloc(BH_RECORD_BYTES_MAX + 64),
        .err = err,
    };
    bh_rc rc;

    BH_ASSERT(replay.decisions && replay.scratch);
    rc = core->store.ops->list_records(core->store.self, core->journal.next_seq, INT64_MAX, replay_record,
                                       &replay, err);
    free(replay.decisions);
    free(replay.scratch);
    bh_arena_free(replay.arena);
    if (rc != BH_OK)
        return rc;
    rc = replay.rc;
    if (rc != BH_OK)
        return rc;
    bh_log(REPLAYED, BH_U64("records", replay.count), BH_U64("from", core->snapshot_seq));
    return BH_OK;
}

/* A snapshot is written when all that is open is what the engine waits for. */
static void
replay_open_as_snapshot(struct bh_core *core)
{
    uint32_t count =
        bh_engine_outstanding(core->state.engine, (bh_node_id){ 0 }, core->scratch, BH_CORE_EFFECTS_MAX);

    bh_open_orders_reset(&core->open_orders);
    for (uint32_t i = 0; i < count; i++)
        if (core->scratch[i].kind != BH_FX_STOP)
            bh_open_orders_add(&core->open_orders, core->scratch[i].order, core->journal.last_ts_ns);
}

static bh_rc
replay_all(struct bh_core *core, struct bh_err *err)
{
    bh_rc rc = bh_snapshot_load(core, err);

    if (rc != BH_OK)
        return rc;
    replay_open_as_snapshot(core);
    rc = replay_check_minimum(core, err);
    if (rc != BH_OK)
        return rc;
    rc = replay_records(core, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_catalog_load(core->catalog, err);
    if (rc != BH_OK)
        return rc;
    bh_directory_publish(core->catalog);
    return BH_OK;
}

bh_rc
bh_replay(struct bh_core *core, struct bh_err *err)
{
    const struct bh_work before = bh_work_set((struct bh_work){ .kind = BH_WORK_REPLAY, .owner = true });
    bh_rc rc = replay_all(core, err);

    bh_work_set(before);
    return rc;
}
