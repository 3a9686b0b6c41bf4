#include "daemon/core.h"

#include <stdlib.h>
#include <string.h>

#include "api/codec.h"
#include "audit/job_status.h"
#include "audit/sealed.h"
#include "audit/claims.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/time.h"
#include "base/vec.h"
#include "daemon/faults.h"
#include "daemon/names.h"
#include "daemon/orders.h"
#include "daemon/replay.h"
#include "daemon/rows.h"
#include "daemon/snapshot.h"
#include "daemon/texts.h"
#include "daemon/verify.h"

enum { CORE_ARENA_MAX = 64 << 20, EVENT_JSON_MAX = 48 << 10, STATES_INLINE_MAX = 2 << 10 };

static bh_rc
begin_epoch(struct bh_core *core, struct bh_err *err)
{
    struct bh_epoch next = { .job = core->next_job,
                             .order = core->journal.next_seq << BH_ORDER_BITS };

    bh_view_next_numbers(core->state.engine, &next.lease, &next.partition);
    return bh_epochs_open(&core->epochs, core->config->state_dir, &next, core->crypto, err);
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
    bh_clock_open(&core->clock, core->config->state_dir);
    core->journal.store = core->store;
    core->journal.crypto = core->crypto;
    core->catalog = bh_catalog_new(core->store, core->crypto);
    bh_access_open(core);
    bh_state_init(&core->state);
    rc = core->store.ops->check_rows(core->store.self, BH_STORE_ROWS_START, err);
    if (rc == BH_OK)
        rc = bh_journal_open(&core->journal, core->config, err);
    if (rc == BH_OK)
        rc = bh_keyring_open(&core->ring, core->config, core->store, core->crypto, err);
    if (rc == BH_OK)
        rc = bh_replay(core, err);
    if (rc == BH_OK)
        rc = bh_journal_check_signed(&core->journal, err);
    if (rc == BH_OK)
        rc = begin_epoch(core, err);
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

uint64_t
bh_core_now(const struct bh_core *core)
{
    bh_ns now = core->as_of_ns ? core->as_of_ns : bh_clock_now(&core->clock);

    return now > core->journal.last_ts_ns ? now : core->journal.last_ts_ns;
}

struct bh_gpu_facts *
bh_core_gpu_facts(struct bh_core *core, bh_gpu_id gpu)
{
    if (gpu.v >= core->gpu_facts_count) {
        bool fits = bh_vec_reserve(&core->gpu_facts, &core->gpu_facts_count, (size_t)gpu.v + 1,
                                   UINT32_MAX);

        BH_ASSERT(fits);
    }
    return &core->gpu_facts[gpu.v];
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
    if (rc == BH_OK)
        core->open = true;
    return rc;
}

bh_rc
bh_core_seal(struct bh_core *core, bh_tenant_id tenant, struct bh_slice plain,
             struct bh_buf *out, struct bh_err *err)
{
    const struct bh_key_use use = { BH_KEY_AUDIT, tenant, bh_core_now(core) };
    bh_rc rc = bh_core_begin(core, err);

    return rc == BH_OK ? bh_keys_seal(core->ring.keys, &use, plain, out, err) : rc;
}

/* How much of a note the next item holds: all, or as many whole lines as fit; 0: not even one. */
static size_t
core_item_length(const char *note)
{
    size_t length = strnlen(note, BH_ENTRY_NOTE_ITEM_MAX + 1);

    if (length <= BH_ENTRY_NOTE_ITEM_MAX)
        return length;
    for (length = BH_ENTRY_NOTE_ITEM_MAX; length > 0 && note[length - 1] != '\n';)
        length--;
    return length;
}

/* The note as the leaf's list of sealed texts. */
static bh_rc
seal_note(struct bh_core *core, const struct bh_entry *entry, struct bh_buf *list,
          struct bh_err *err)
{
    const char *note = entry->note;
    bh_rc rc = BH_OK;

    bh_buf_putc(list, '[');
    for (uint32_t items = 0; rc == BH_OK && *note; items++) {
        const struct bh_slice item = { note, core_item_length(note) };

        if (items == BH_SEALED_ITEMS_MAX || item.length == 0)
            return bh_err_set(err, BH_RANGE, "a text of %zu bytes is too long for a record",
                              strlen(entry->note));
        bh_buf_puts(list, items ? "," : "");
        rc = bh_core_seal(core, (bh_tenant_id){ entry->tenant }, item, list, err);
        note += item.length;
    }
    bh_buf_putc(list, ']');
    return rc;
}

static bh_rc
core_append(struct bh_core *core, const struct bh_entry *entry, struct bh_record *record,
       struct bh_err *err)
{
    char memory[BH_RECORD_BYTES_MAX], names_memory[BH_NAMES_BYTES_MAX];
    struct bh_buf sealed, names;
    bh_rc rc = bh_core_begin(core, err);

    bh_buf_init_fixed(&names, names_memory, sizeof names_memory);
    if (rc == BH_OK && bh_catalog_unbound(core->catalog) > 0)
        rc = bh_names_bind(core, entry, record, &names, err);
    bh_buf_init_fixed(&sealed, memory, sizeof memory);
    if (rc == BH_OK && entry->note && entry->note[0]) {
        rc = seal_note(core, entry, &sealed, err);
        record->sealed_json = bh_buf_text(&sealed);
        BH_ASSERT(rc != BH_OK || record->sealed_json);
    }
    if (rc != BH_OK)
        return rc;
    record->actor = entry->actor;
    record->obj = entry->obj;
    record->dec = entry->dec;
    record->phase = entry->phase;
    record->tenant = entry->tenant;
    record->order = entry->order;
    record->verb = entry->verb;
    if (entry->ev_json)
        record->ev_json = entry->ev_json;
    if (entry->jobs_json)
        record->jobs_json = entry->jobs_json;
    if (entry->text)
        memcpy(record->text, entry->text, sizeof record->text);
    if (entry->req)
        memcpy(record->req, entry->req, sizeof record->req);
    rc = bh_journal_append(&core->journal, record, err);
    if (rc == BH_OK)
        bh_open_orders_read(&core->open_orders, record);
    return rc;
}

static bool
core_is_new_and_pending(const struct bh_event *event, const struct bh_effect *effect)
{
    return event->kind == BH_EV_SUBMIT && effect->state == BH_JOB_PENDING
           && bh_same(event->u.submit.job, effect->job);
}

/* An effect for the node into the batch; a start that may not have its datasets stays here. */
static bh_rc
core_accept_order(struct bh_core *core, const struct bh_effect *effect, struct bh_err *err)
{
    bool allowed = true;
    bh_rc rc = effect->kind == BH_FX_START ? bh_access_start(core, effect, &allowed, err) : BH_OK;

    if (rc == BH_OK && !allowed)
        return bh_orders_withhold(core, effect, err);
    /* beyond the room there is, the node gets them when it next says hello */
    if (rc == BH_OK && core->effect_count < BH_CORE_EFFECTS_MAX)
        core->effects[core->effect_count++] = *effect;
    return rc;
}

/* Rows of the jobs that changed, and the node's effects into the batch. */
static bh_rc
core_collect_effects(struct bh_core *core, const struct bh_entry *entry, const struct bh_event *event,
             struct bh_err *err)
{
    if (event->kind == BH_EV_SUBMIT) {
        bh_rc rc = bh_rows_add(core, event, entry->submitter, entry->job_name, err);

        if (rc != BH_OK)
            return rc;
    }
    for (uint32_t i = 0; i < core->step.effect_count; i++) {
        const struct bh_effect *effect = &core->step.effects[i];
        bh_rc rc = BH_OK;

        if (effect->kind == BH_FX_JOB && core_is_new_and_pending(event, effect))
            continue; /* its row says so already */
        if (effect->kind == BH_FX_JOB)
            rc = bh_rows_change(core, effect, core->recorded_by[i], event->now_ns, err);
        else
            rc = core_accept_order(core, effect, err);
        if (rc != BH_OK)
            return rc;
    }
    return BH_OK;
}

/* Now and then the invariants are checked in production too. */
static void
sample_invariants(struct bh_core *core)
{
    char broken[200];

    if (core->config->check_every == 0 || ++core->steps % core->config->check_every)
        return;
    if (!bh_engine_check(core->state.engine, broken, sizeof broken))
        bh_log(INVARIANT_BROKEN, BH_STR("which", broken));
}

/* What the step orders, as records have it; the engine numbers its orders by place. */
static const char *
order_letters(const struct bh_core *core, char ret_letters[BH_EFFECTS_MAX + 1])
{
    static const char letters[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = 'c',  [BH_FX_DESTROY] = 'd', [BH_FX_START] = 's', [BH_FX_SUSPEND] = 'p',
        [BH_FX_RESUME] = 'r', [BH_FX_STOP] = 't',    [BH_FX_JOB] = '-',
        [BH_FX_RESET] = 'z',  [BH_FX_TEST] = 'q',
    };
    uint32_t length = 0;

    for (uint32_t i = 0; i < core->step.effect_count; i++) {
        char letter = letters[core->step.effects[i].kind];

        BH_ASSERT(letter);
        ret_letters[i] = letter;
        if (letter != '-')
            length = i + 1;
    }
    ret_letters[length] = '\0';
    return length ? ret_letters : NULL;
}

/* What became of jobs by this step, from effect *cursor on, as far as there is room. */
static void
put_states(const struct bh_core *core, const struct bh_event *event, uint32_t *cursor,
           struct bh_buf *list)
{
    bh_buf_putc(list, '[');
    for (; *cursor < core->step.effect_count; ++*cursor) {
        const struct bh_effect *effect = &core->step.effects[*cursor];
        struct bh_job_status state;

        if (effect->kind != BH_FX_JOB || core_is_new_and_pending(event, effect))
            continue;
        if (list->length + BH_JOB_STATUS_ITEM_MAX + 2 > list->size)
            break;
        bh_rows_status(core, effect, event->now_ns, &state);
        bh_job_status_put(list, &state);
    }
    bh_buf_putc(list, ']');
}

/* The effects first .. last - 1 stand in the record that was appended last. */
static void
core_set_recorded_by(struct bh_core *core, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i < last; i++)
        core->recorded_by[i] = core->journal.next_seq - 1;
}

/* Those that found no room. */
static bh_rc
record_states(struct bh_core *core, const struct bh_event *event, uint32_t cursor,
              struct bh_err *err)
{
    static const struct bh_entry entry = { .dec = { .allow = true }, .phase = BH_PHASE_EVENT,
                                           .verb = BH_RECORD_JOB_STATES };
    char memory[EVENT_JSON_MAX / 2];
    bh_rc rc = BH_OK;

    while (rc == BH_OK && cursor < core->step.effect_count) {
        struct bh_record record = { .ts_ns = event->now_ns, .res = bh_rc_name(BH_OK) };
        uint32_t first = cursor;
        struct bh_buf list;

        bh_buf_init_fixed(&list, memory, sizeof memory);
        put_states(core, event, &cursor, &list);
        if (list.length <= 2)
            return BH_OK;
        record.jobs_json = bh_buf_text(&list);
        rc = core_append(core, &entry, &record, err);
        core_set_recorded_by(core, first, cursor);
    }
    return rc;
}

static bh_rc
record_step(struct bh_core *core, const struct bh_entry *entry, const struct bh_event *event,
            struct bh_err *err)
{
    char event_memory[EVENT_JSON_MAX / 16], decision_memory[EVENT_JSON_MAX];
    char letters[BH_EFFECTS_MAX + 1], states_memory[STATES_INLINE_MAX];
    struct bh_record record = { .ts_ns = event->now_ns, .res = bh_rc_name(BH_OK),
                                .orders = order_letters(core, letters) };
    struct bh_buf event_json, decision_json, states;
    uint32_t cursor = 0;
    bh_rc rc;

    bh_buf_init_fixed(&event_json, event_memory, sizeof event_memory);
    bh_codec_put_event(&event_json, event);
    record.ev_json = bh_buf_text(&event_json);
    bh_buf_init_fixed(&decision_json, decision_memory, sizeof decision_memory);
    if (core->step.decision_count > 0) {
        bh_codec_put_decisions(&decision_json, core->step.decisions, core->step.decision_count);
        record.do_json = bh_buf_text(&decision_json);
    }
    if (!record.ev_json || decision_json.overflow)
        return bh_err_set(err, BH_BUG, "event is too long for a record");
    bh_buf_init_fixed(&states, states_memory, sizeof states_memory);
    put_states(core, event, &cursor, &states);
    record.jobs_json = states.length > 2 ? bh_buf_text(&states) : NULL;
    rc = core_append(core, entry, &record, err);
    core_set_recorded_by(core, 0, cursor);
    return rc == BH_OK ? record_states(core, event, cursor, err) : rc;
}

bh_rc
bh_core_step(struct bh_core *core, const struct bh_entry *entry, struct bh_event *event,
             struct bh_err *err)
{
    bh_rc rc;

    event->now_ns = bh_core_now(core);
    event->seq = core->journal.next_seq;
    rc = bh_state_step(&core->state, event, &core->step);
    if (rc != BH_OK)
        return bh_err_set(err, rc, "%s", bh_reason_names[core->step.verdict.code]);
    rc = record_step(core, entry, event, err);
    if (rc == BH_OK)
        rc = core_collect_effects(core, entry, event, err);
    if (rc != BH_OK) /* the engine has gone ahead of the journal: abort the batch */
        return rc == BH_FULL || rc == BH_UNCERTAIN ? rc : bh_err_set(err, BH_IO, "journal: %.200s", err->msg);
    if (event->kind != BH_EV_SUBMIT) /* that one only adds behind */
        core->reasons_stale = true;
    bh_faults_log(core);
    sample_invariants(core);
    return BH_OK;
}

static bool
is_refused(bh_rc res)
{
    return res == BH_DENIED || res == BH_UNAUTHENTICATED;
}

bh_rc
bh_core_record_counted(struct bh_core *core, const struct bh_entry *entry, bh_rc res,
                     uint64_t count, struct bh_err *err)
{
    struct bh_record record = { .ts_ns = bh_core_now(core), .res = bh_rc_name(res),
                                .count = count > 1 ? count : 0 };

    BH_ASSERT(!is_refused(res) || !entry->dec.allow);
    return core_append(core, entry, &record, err);
}

bh_rc
bh_core_record_times(struct bh_core *core, const struct bh_entry *entry, bh_rc res, uint64_t times,
                   struct bh_err *err)
{
    struct bh_entry recorded = *entry;
    uint64_t left;

    /* A rule that allowed it did not refuse it: who came with the right verb, and is refused all the
     * same, is refused by no rule. */
    if (is_refused(res) && recorded.dec.allow)
        recorded.dec = (struct bh_record_decision){ .allow = false };
    left = bh_refusals_count(core, &recorded, res, times);
    return left ? bh_core_record_counted(core, &recorded, res, left, err) : BH_OK;
}

bh_rc
bh_core_record(struct bh_core *core, const struct bh_entry *entry, bh_rc res, struct bh_err *err)
{
    return bh_core_record_times(core, entry, res, 1, err);
}

/* Keys that were made since; the record stands beside the row. */
static bh_rc
record_made_keys(struct bh_core *core, struct bh_err *err)
{
    struct bh_key_row row;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_keys_made(core->ring.keys, &row)) {
        const struct bh_key_facts facts = { row.kind, row.tenant_id, row.month, row.created_ns };
        uint8_t digest[32];
        struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                  .dec = { .allow = true },
                                  .phase = BH_PHASE_EVENT,
                                  .tenant = row.tenant_id,
                                  .text = digest,
                                  .verb = "key.make",
                                  .obj = { "key", row.id } };

        bh_key_facts_digest(core->crypto, &facts, digest);
        rc = bh_core_record(core, &entry, BH_OK, err);
    }
    return rc;
}

static bh_rc
core_commit(struct bh_core *core, struct bh_err *err)
{
    bh_ns begun = bh_time_monotonic();
    bh_rc rc = core->store.ops->commit(core->store.self, err);

    if (rc == BH_OK)
        bh_tally_committed(&core->tally, bh_time_monotonic() - begun);
    return rc;
}

bh_rc
bh_core_commit(struct bh_core *core, struct bh_err *err)
{
    bh_rc rc = bh_access_end_refused(core, err);

    if (rc != BH_OK)
        return rc;
    if (!core->open) {
        bh_keyring_rest(&core->ring);
        return BH_OK;
    }
    rc = record_made_keys(core, err);
    if (rc == BH_OK && bh_catalog_unbound(core->catalog) > 0)
        rc = bh_names_give(core, &(struct bh_entry){ .dec = { .allow = true } },
                           bh_core_now(core), err);
    if (rc == BH_OK && bh_journal_signed(&core->journal))
        rc = bh_journal_checkpoint(&core->journal, err);
    if (rc == BH_OK)
        rc = bh_snapshot_if_due(core, err);
    if (rc == BH_OK)
        rc = core_commit(core, err);
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
        bh_catalog_publish(core->catalog);
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

bool
bh_core_abort(struct bh_core *core)
{
    struct bh_err err;
    uint32_t boot = core->journal.boot;

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
    if (bh_keyring_aborted(&core->ring, &err) != BH_OK || bh_replay(core, &err) != BH_OK) {
        bh_log(FAILED, BH_ERRLOG(&err));
        return false;
    }
    core->journal.boot = boot;
    bh_verify_aborted(core);
    bh_journal_aborted(&core->journal);
    return true;
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
