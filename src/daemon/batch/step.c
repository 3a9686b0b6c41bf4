#include "daemon/batch/step.h"

#include "api/state/codec.h"
#include "audit/job_status.h"
#include "base/assert.h"
#include "base/log.h"
#include "daemon/batch/abandoned_orders.h"
#include "daemon/batch/access.h"
#include "daemon/batch/append.h"
#include "daemon/batch/health_log.h"
#include "daemon/batch/rows.h"

enum { EVENT_JSON_MAX = 48 << 10, STATES_INLINE_MAX = 2 << 10 };

static bool
step_is_new_and_pending(const struct bh_event *event, const struct bh_effect *effect)
{
    return event->kind == BH_EV_SUBMIT && effect->state == BH_JOB_PENDING
           && bh_same(event->u.submit.job, effect->job);
}

/* An effect for the node into the batch; a start that may not have its datasets stays here. */
static bh_rc
step_accept_order(struct bh_core *core, const struct bh_effect *effect, struct bh_err *err)
{
    bool allowed = true;
    bh_rc rc = effect->kind == BH_FX_START ? bh_access_start(core, effect, &allowed, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    if (!allowed)
        return bh_abandoned_orders_withhold(core, effect, err);
    /* beyond the room there is, the node gets them when it next says hello */
    if (core->effect_count < BH_CORE_EFFECTS_MAX)
        core->effects[core->effect_count++] = *effect;
    return BH_OK;
}

/* Rows of the jobs that changed, and the node's effects into the batch. */
static bh_rc
step_collect_effects(struct bh_core *core, const struct bh_entry *entry, const struct bh_event *event,
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

        if (effect->kind == BH_FX_JOB && step_is_new_and_pending(event, effect))
            continue; /* its row says so already */
        if (effect->kind == BH_FX_JOB)
            rc = bh_rows_change(core, effect, core->recorded_by[i], event->now_ns, err);
        else
            rc = step_accept_order(core, effect, err);
        if (rc != BH_OK)
            return rc;
    }
    return BH_OK;
}

/* Now and then the invariants are checked in production too. */
static void
step_sample_invariants(struct bh_core *core)
{
    char broken[200];

    if (core->config->check_every == 0 || ++core->steps % core->config->check_every)
        return;
    if (!bh_engine_check(core->state.engine, broken, sizeof broken))
        bh_log(INVARIANT_BROKEN, BH_STR("which", broken));
}

/* What the step orders, as records have it; the engine numbers its orders by place. */
static const char *
step_order_letters(const struct bh_core *core, char ret_letters[BH_EFFECTS_MAX + 1])
{
    static const char letters[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = 'c',   [BH_FX_DESTROY] = 'd', [BH_FX_START] = 's',
        [BH_FX_SUSPEND] = 'p', [BH_FX_RESUME] = 'r',  [BH_FX_STOP] = 't',
        [BH_FX_JOB] = '-',     [BH_FX_RESET] = 'z',   [BH_FX_TEST] = 'q',
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
step_put_states(const struct bh_core *core, const struct bh_event *event, uint32_t *cursor,
                struct bh_buf *list)
{
    bh_buf_putc(list, '[');
    for (; *cursor < core->step.effect_count; ++*cursor) {
        const struct bh_effect *effect = &core->step.effects[*cursor];
        struct bh_job_status state;

        if (effect->kind != BH_FX_JOB || step_is_new_and_pending(event, effect))
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
step_set_recorded_by(struct bh_core *core, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i < last; i++)
        core->recorded_by[i] = core->journal.next_seq - 1;
}

/* Those that found no room. */
static bh_rc
step_record_states(struct bh_core *core, const struct bh_event *event, uint32_t cursor, struct bh_err *err)
{
    static const struct bh_entry entry = { .dec = { .allow = true },
                                           .phase = BH_PHASE_EVENT,
                                           .verb = BH_RECORD_JOB_STATES };
    char memory[EVENT_JSON_MAX / 2];
    bh_rc rc = BH_OK;

    while (rc == BH_OK && cursor < core->step.effect_count) {
        struct bh_record record = { .ts_ns = event->now_ns, .res = bh_rc_name(BH_OK) };
        uint32_t first = cursor;
        struct bh_buf list;

        bh_buf_init_fixed(&list, memory, sizeof memory);
        step_put_states(core, event, &cursor, &list);
        if (list.length <= 2)
            return BH_OK;
        record.jobs_json = bh_buf_text(&list);
        rc = bh_core_append(core, &entry, &record, err);
        step_set_recorded_by(core, first, cursor);
    }
    return rc;
}

static bh_rc
step_record(struct bh_core *core, const struct bh_entry *entry, const struct bh_event *event,
            struct bh_err *err)
{
    char event_memory[EVENT_JSON_MAX / 16], decision_memory[EVENT_JSON_MAX];
    char letters[BH_EFFECTS_MAX + 1], states_memory[STATES_INLINE_MAX];
    struct bh_record record = { .ts_ns = event->now_ns,
                                .res = bh_rc_name(BH_OK),
                                .orders = step_order_letters(core, letters) };
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
    step_put_states(core, event, &cursor, &states);
    record.jobs_json = states.length > 2 ? bh_buf_text(&states) : NULL;
    rc = bh_core_append(core, entry, &record, err);
    core->recorded = record.seq;
    step_set_recorded_by(core, 0, cursor);
    return rc == BH_OK ? step_record_states(core, event, cursor, err) : rc;
}

static bh_rc
step_run(struct bh_core *core, const struct bh_entry *entry, struct bh_event *event, struct bh_err *err)
{
    bh_rc rc;

    event->now_ns = bh_core_now(core);
    event->seq = core->journal.next_seq;
    rc = bh_state_step(&core->state, event, &core->step);
    if (rc != BH_OK)
        return bh_err_set(err, rc, "%s", bh_reason_names[core->step.verdict.code]);
    rc = step_record(core, entry, event, err);
    if (rc == BH_OK)
        rc = step_collect_effects(core, entry, event, err);
    if (rc != BH_OK) /* the engine has gone ahead of the journal: abort the batch */
        return rc == BH_FULL || rc == BH_UNCERTAIN ? rc : bh_err_set(err, BH_IO, "journal: %.200s", err->msg);
    if (event->kind != BH_EV_SUBMIT) /* that one only adds behind */
        core->reasons_stale = true;
    bh_health_log(core);
    step_sample_invariants(core);
    return BH_OK;
}

bh_rc
bh_core_step(struct bh_core *core, const struct bh_entry *entry, struct bh_event *event, struct bh_err *err)
{
    bh_rc rc;

    core->stepping = event;
    rc = step_run(core, entry, event, err);
    core->stepping = NULL;
    return rc;
}
