#include "node/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "model/job.h"
#include "node/path.h"

#define SAVE_AGAIN BH_NS_PER_S

enum { COMPACT_BYTES = 4 << 20 };

/* ---- finding ---- */

struct bh_order *
bh_state_order(const struct bh_state *state, uint64_t order)
{
    for (uint32_t i = 0; i < state->order_count; i++) {
        if (state->orders[i].note.order == order)
            return &state->orders[i];
    }
    return NULL;
}

struct bh_note_piece *
bh_state_piece(const struct bh_state *state, uint64_t partition)
{
    for (uint32_t i = 0; i < state->piece_count; i++) {
        if (state->pieces[i].partition == partition)
            return &state->pieces[i];
    }
    return NULL;
}

struct bh_note_piece *
bh_state_piece_at(const struct bh_state *state, const char *gpu, uint32_t gi)
{
    for (uint32_t i = 0; i < state->piece_count; i++) {
        if (state->pieces[i].gi == gi && strcmp(state->pieces[i].gpu, gpu) == 0)
            return &state->pieces[i];
    }
    return NULL;
}

struct bh_job *
bh_state_job(const struct bh_state *state, uint64_t lease)
{
    for (uint32_t i = 0; i < state->job_count; i++) {
        if (state->jobs[i].note.lease == lease)
            return &state->jobs[i];
    }
    return NULL;
}

uint32_t
bh_state_free_slot(const struct bh_state *state, uint32_t ranges, const struct bh_slots *others)
{
    bool taken[BH_JOBS_MAX + 1] = { false };
    uint32_t slot = 0;

    for (uint32_t i = 0; i < state->job_count; i++) {
        if (state->jobs[i].note.slot < BH_JOBS_MAX)
            taken[state->jobs[i].note.slot] = true;
    }
    for (uint32_t i = 0; i < others->count; i++) {
        if (others->slot[i] < BH_JOBS_MAX)
            taken[others->slot[i]] = true;
    }
    while (slot < ranges && taken[slot])
        slot++;
    return slot;
}

/* ---- applying notes ---- */

struct table {
    void **items;
    uint32_t count, *room, max;
    size_t size; /* of an item */
};

/* Room for one more, doubling. */
static bh_rc
grow(const struct table *table, struct bh_err *err)
{
    uint32_t wanted = *table->room ? *table->room * 2 : 64;
    void *grown;

    if (table->count < *table->room)
        return BH_OK;
    if (table->count >= table->max)
        return bh_err_set(err, BH_FULL, "the node's tables hold no more than %u", table->max);
    grown = realloc(*table->items, wanted * table->size);
    if (!grown)
        return bh_err_set(err, BH_FULL, "out of memory");
    *table->items = grown;
    *table->room = wanted;
    return BH_OK;
}

static bool
makes_marks(enum bh_note_kind kind)
{
    return kind == BH_NOTE_MARK || kind == BH_NOTE_RECEIPT;
}

static bh_rc
make_room(struct bh_state *state, enum bh_note_kind kind, struct bh_err *err)
{
    const struct table tables[BH_NOTE_KINDS] = {
        [BH_NOTE_ORDER] = { (void **)&state->orders, state->order_count, &state->order_room,
                            BH_ORDERS_MAX, sizeof *state->orders },
        [BH_NOTE_PIECE] = { (void **)&state->pieces, state->piece_count, &state->piece_room,
                            BH_PIECES_MAX, sizeof *state->pieces },
        [BH_NOTE_LEASE] = { (void **)&state->jobs, state->job_count, &state->job_room,
                            BH_JOBS_MAX, sizeof *state->jobs },
        [BH_NOTE_RECEIPT] = { (void **)&state->receipts, state->receipt_count,
                              &state->receipt_room, BH_RECEIPTS_MAX,
                              sizeof *state->receipts },
    };
    bh_rc rc = makes_marks(kind) ? bh_mark_make_room(&state->marks, err) : BH_OK;

    return rc == BH_OK && tables[kind].items ? grow(&tables[kind], err) : rc;
}

static void
apply_reached(struct bh_state *state, const struct bh_note *note)
{
    /* Of another course nobody knows for whom a share's memory was scrubbed either. */
    for (uint32_t i = 0; note->course != state->course && i < state->piece_count; i++)
        state->pieces[i].cleared_for = 0;
    state->reached = note->order;
    state->course = note->course;
    state->changes = note->changes;
}

static void
apply_order(struct bh_state *state, const struct bh_note *note)
{
    struct bh_order *order = bh_state_order(state, note->order);

    if (!order)
        order = &state->orders[state->order_count++];
    *order = (struct bh_order){ .note = *note };
    if (note->order > state->reached)
        state->reached = note->order;
}

static void
apply_outcome(struct bh_state *state, const struct bh_note *note)
{
    struct bh_order *order = bh_state_order(state, note->order);

    if (!order)
        return;
    order->done = true;
    order->outcome = (struct bh_msg_outcome){ .order = note->order, .outcome = note->outcome,
                                              .rc = note->rc, .at_ns = note->at_ns };
    snprintf(order->outcome.why, sizeof order->outcome.why, "%s", note->why);
}

static void
apply_piece(struct bh_state *state, const struct bh_note *note)
{
    struct bh_note_piece *piece = bh_state_piece(state, note->piece.partition);

    if (!piece)
        piece = &state->pieces[state->piece_count++];
    *piece = note->piece;
}

static void
apply_gone(struct bh_state *state, const struct bh_note *note)
{
    struct bh_note_piece *piece = bh_state_piece(state, note->piece.partition);

    if (piece)
        *piece = state->pieces[--state->piece_count];
}

static void
apply_lease(struct bh_state *state, const struct bh_note *note)
{
    struct bh_job *job = bh_state_job(state, note->lease);

    if (!job)
        job = &state->jobs[state->job_count++];
    *job = (struct bh_job){ .note = *note, .pidfd = -1 };
}

/* What a share was scrubbed for does not hold any more: others have had its memory, or nobody knows who. */
static void
forget_clearances(struct bh_state *state, const char *gpu, uint32_t units)
{
    for (uint32_t i = 0; i < state->piece_count; i++) {
        if (strcmp(state->pieces[i].gpu, gpu) == 0 && (bh_mark_units(&state->pieces[i]) & units))
            state->pieces[i].cleared_for = 0;
    }
}

static void
apply_mark(struct bh_state *state, const struct bh_note *note)
{
    uint32_t units = bh_mark_units(&note->piece);
    const struct bh_mark_unit as = { .clean = note->clean, .failed = note->failed,
                                     .tenant = note->tenant, .job = note->job,
                                     .receipt = note->order, .result = note->rc };

    state->changes++;
    if (*note->gap.profile)
        bh_mark_set_gap(&state->marks, note->piece.gpu, units, &note->gap);
    if (note->beside)
        bh_mark_add(&state->marks, note->piece.gpu, units, &as);
    else
        bh_mark_set(&state->marks, note->piece.gpu, units, &as);
    if (note->beside || (!note->clean && note->tenant == BH_MARK_UNKNOWN))
        forget_clearances(state, note->piece.gpu, units);
}

/* One that a rewrite wrote has no units: marks follow it, and say what is.  Those of a version without gaps do not say
 * under which geometry the units were scrubbed. */
static void
apply_receipt(struct bh_state *state, const struct bh_note *note)
{
    state->changes++;
    bh_mark_receipt(&state->marks, bh_mark_units(&note->piece), &note->receipt);
    if (!note->piece.units)
        bh_mark_set_gap(&state->marks, note->receipt.gpu, BH_MARK_ALL, &(struct bh_note_gap){ .profile = BH_NO_SHAPE });
    state->receipts[state->receipt_count++] = note->receipt;
}

static void
apply_forget_receipt(struct bh_state *state, const struct bh_note *note)
{
    for (uint32_t i = 0; i < state->receipt_count; i++) {
        if (state->receipts[i].order != note->order)
            continue;
        memmove(&state->receipts[i], &state->receipts[i + 1],
                (--state->receipt_count - i) * sizeof *state->receipts);
        return;
    }
}

static void
apply_asked(struct bh_state *state, const struct bh_note *note)
{
    struct bh_job *job = bh_state_job(state, note->lease);

    if (!job)
        return;
    job->asked = true;
    if (!*note->why)
        return;
    snprintf(job->own_why, sizeof job->own_why, "%.199s", note->why);
    job->own_cause = note->outcome != BH_END_NONE ? note->outcome : BH_END_OVER_CAP;
}

static void
apply_suspended(struct bh_state *state, const struct bh_note *note)
{
    struct bh_job *job = bh_state_job(state, note->lease);

    if (job)
        job->suspended = note->kind == BH_NOTE_SUSPENDED;
}

static void
apply_aside(struct bh_state *state, const struct bh_note *note)
{
    struct bh_job *job = bh_state_job(state, note->lease);

    if (!job)
        return;
    job->aside = note->kind == BH_NOTE_ASIDE;
    job->aside_count = note->pid_count;
    memcpy(job->aside_pids, note->pids, sizeof job->aside_pids);
}

static void
apply_forget_order(struct bh_state *state, const struct bh_note *note)
{
    struct bh_order *order = bh_state_order(state, note->order);

    if (order)
        *order = state->orders[--state->order_count];
}

static void
apply_forget_lease(struct bh_state *state, const struct bh_note *note)
{
    struct bh_job *job = bh_state_job(state, note->lease);

    if (job)
        *job = state->jobs[--state->job_count];
}

static void
apply(struct bh_state *state, const struct bh_note *note)
{
    static void (*const kinds[BH_NOTE_KINDS])(struct bh_state *, const struct bh_note *) = {
        [BH_NOTE_ORDER] = apply_order,
        [BH_NOTE_OUTCOME] = apply_outcome,
        [BH_NOTE_PIECE] = apply_piece,
        [BH_NOTE_GONE] = apply_gone,
        [BH_NOTE_LEASE] = apply_lease,
        [BH_NOTE_FORGET_ORDER] = apply_forget_order,
        [BH_NOTE_FORGET_LEASE] = apply_forget_lease,
        [BH_NOTE_ASKED] = apply_asked,
        [BH_NOTE_SUSPENDED] = apply_suspended,
        [BH_NOTE_RESUMED] = apply_suspended,
        [BH_NOTE_MARK] = apply_mark,
        [BH_NOTE_RECEIPT] = apply_receipt,
        [BH_NOTE_FORGET_RECEIPT] = apply_forget_receipt,
        [BH_NOTE_ASIDE] = apply_aside,
        [BH_NOTE_BACK] = apply_aside,
        [BH_NOTE_REACHED] = apply_reached,
    };

    if (kinds[note->kind])
        kinds[note->kind](state, note);
}

bh_rc
bh_state_note(struct bh_state *state, const struct bh_note *note, struct bh_err *err)
{
    bh_rc rc = make_room(state, note->kind, err);

    if (rc == BH_OK)
        rc = bh_note_append(state->journal, note, err);
    if (rc == BH_OK)
        apply(state, note);
    return rc;
}

bh_rc
bh_state_hold(struct bh_state *state, const struct bh_note *lease, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < lease->lent_count && rc == BH_OK; i++) {
        struct bh_note mark = { .kind = BH_NOTE_MARK,
                                .tenant = lease->tenant,
                                .job = lease->job,
                                .beside = lease->lent[i].share_weight != 0 };

        memcpy(mark.piece.gpu, lease->lent[i].gpu, sizeof mark.piece.gpu);
        mark.piece.units = bh_mark_units(&lease->lent[i]);
        rc = bh_state_note(state, &mark, err);
    }
    return rc;
}

/* Units whose last scrub failed stay so. */
static bh_rc
disown_gpu(struct bh_state *state, const struct bh_marks *marks, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (int failed = 0; failed <= 1 && rc == BH_OK; failed++) {
        struct bh_note note = { .kind = BH_NOTE_MARK, .tenant = BH_MARK_UNKNOWN, .failed = failed,
                                .gap.profile = BH_NO_SHAPE };

        memcpy(note.piece.gpu, marks->gpu, sizeof note.piece.gpu);
        for (uint32_t unit = 0; unit < BH_MARK_UNITS; unit++)
            note.piece.units |= (uint32_t)(marks->unit[unit].failed == (failed != 0)) << unit;
        if (note.piece.units)
            rc = bh_state_note(state, &note, err);
    }
    return rc;
}

bh_rc
bh_state_disown(struct bh_state *state, uint64_t reached, uint64_t changes, struct bh_err *err)
{
    struct bh_note note = { .kind = BH_NOTE_REACHED, .order = reached };
    bh_rc rc = BH_OK;

    if (getrandom(&note.course, sizeof note.course, 0) != sizeof note.course)
        return bh_err_errno(err, "draw the number of a course of things");
    for (uint32_t i = 0; i < state->marks.count && rc == BH_OK; i++)
        rc = disown_gpu(state, &state->marks.items[i], err);
    note.changes = (state->changes > changes ? state->changes : changes) + 1;
    return rc == BH_OK ? bh_state_note(state, &note, err) : rc;
}

bh_rc
bh_state_reserve(struct bh_state *state, struct bh_err *err)
{
    return bh_journal_reserve(state->journal, err);
}

bh_rc
bh_state_sync(struct bh_state *state, struct bh_err *err)
{
    return bh_journal_sync(state->journal, err);
}

/* ---- opening and rewriting ---- */

static bh_rc
replay_entry(void *self, const char *payload, size_t length, struct bh_err *err)
{
    struct bh_state *state = self;
    struct bh_note note;
    bh_rc rc = bh_note_decode(payload, length, &note, err);

    if (rc == BH_OK)
        rc = make_room(state, note.kind, err);
    if (rc == BH_OK)
        apply(state, &note);
    return rc;
}

static bh_rc
put_outcome(struct bh_state *state, const struct bh_order *order, struct bh_err *err)
{
    struct bh_note outcome = { .kind = BH_NOTE_OUTCOME, .order = order->note.order,
                               .outcome = order->outcome.outcome, .rc = order->outcome.rc,
                               .at_ns = order->outcome.at_ns };

    snprintf(outcome.why, sizeof outcome.why, "%s", order->outcome.why);
    return bh_note_append(state->journal, &outcome, err);
}

static bh_rc
put_order(struct bh_state *state, const struct bh_order *order, struct bh_err *err)
{
    bh_rc rc = bh_note_append(state->journal, &order->note, err);

    return rc == BH_OK && order->done ? put_outcome(state, order, err) : rc;
}

void
bh_state_remember(struct bh_state *state, const struct bh_note *outcome)
{
    struct bh_order *order = bh_state_order(state, outcome->order);

    apply_outcome(state, outcome);
    if (order)
        order->unsaved = state->unsaved = true;
}

static void
save(struct bh_state *state)
{
    struct bh_err ignored;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < state->order_count && rc == BH_OK; i++) {
        if (state->orders[i].unsaved)
            rc = put_outcome(state, &state->orders[i], &ignored);
        if (rc == BH_OK)
            state->orders[i].unsaved = false;
    }
    state->unsaved = rc != BH_OK;
}

/* The time of the next try to save what is not, or 0. */
static bh_ns
tick_save(struct bh_state *state, bh_ns now)
{
    if (state->unsaved && state->save_at <= now) {
        state->save_at = now + SAVE_AGAIN;
        save(state);
    }
    return state->unsaved ? state->save_at : 0;
}

bh_rc
bh_state_tick(struct bh_state *state, bh_ns now, bh_ns *ret_next, struct bh_err *err)
{
    bh_ns again = tick_save(state, now);
    bh_rc rc = bh_journal_tick(state->journal, now, ret_next, err);

    if (again && (!*ret_next || again < *ret_next))
        *ret_next = again;
    return rc;
}

static bh_rc
put_aside(struct bh_state *state, const struct bh_job *job, struct bh_err *err)
{
    struct bh_note aside = { .kind = BH_NOTE_ASIDE, .lease = job->note.lease,
                             .pid_count = job->aside_count };

    memcpy(aside.pids, job->aside_pids, sizeof aside.pids);
    return bh_note_append(state->journal, &aside, err);
}

static bh_rc
put_job(struct bh_state *state, const struct bh_job *job, struct bh_err *err)
{
    struct bh_note asked = { .kind = BH_NOTE_ASKED, .lease = job->note.lease };
    struct bh_note suspended = { .kind = BH_NOTE_SUSPENDED, .lease = job->note.lease };
    bh_rc rc = bh_note_append(state->journal, &job->note, err);

    snprintf(asked.why, sizeof asked.why, "%s", job->own_why);
    asked.outcome = job->own_cause;
    if (rc == BH_OK && job->asked)
        rc = bh_note_append(state->journal, &asked, err);
    if (rc == BH_OK && job->suspended)
        rc = bh_note_append(state->journal, &suspended, err);
    return rc == BH_OK && job->aside ? put_aside(state, job, err) : rc;
}

/* The other tenants of units that have several. */
static bh_rc
put_sharers(struct bh_state *state, const struct bh_marks *marks, struct bh_note *mark,
            struct bh_err *err)
{
    bh_rc rc = BH_OK;

    mark->beside = true;
    for (uint32_t i = 1; i < marks->sharer_count && rc == BH_OK; i++) {
        mark->tenant = marks->sharers[i].tenant;
        mark->job = marks->sharers[i].job;
        rc = bh_note_append(state->journal, mark, err);
    }
    return rc;
}

/* Behind everything that sets marks when it is read again. */
static bh_rc
put_marks(struct bh_state *state, const struct bh_marks *marks, struct bh_err *err)
{
    uint32_t written = 0;
    bh_rc rc = BH_OK;

    for (uint32_t u = 0; u < BH_MARK_UNITS && rc == BH_OK; u++) {
        const struct bh_mark_unit *unit = &marks->unit[u];
        struct bh_note note = { .kind = BH_NOTE_MARK,
                                .clean = unit->clean,
                                .failed = unit->failed,
                                .tenant = unit->several ? marks->sharers[0].tenant : unit->tenant,
                                .job = unit->several ? marks->sharers[0].job : unit->job,
                                .order = unit->receipt,
                                .rc = unit->result,
                                .gap = marks->gap[u] };

        if (written >> u & 1)
            continue;
        memcpy(note.piece.gpu, marks->gpu, sizeof note.piece.gpu);
        note.piece.units = bh_mark_alike(marks, u);
        written |= note.piece.units;
        rc = bh_note_append(state->journal, &note, err);
        if (rc == BH_OK && unit->several)
            rc = put_sharers(state, marks, &note, err);
    }
    return rc;
}

static bh_rc
put_receipts(struct bh_state *state, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < state->receipt_count && rc == BH_OK; i++) {
        struct bh_note note = { .kind = BH_NOTE_RECEIPT, .receipt = state->receipts[i] };

        rc = bh_note_append(state->journal, &note, err);
    }
    for (uint32_t i = 0; i < state->marks.count && rc == BH_OK; i++)
        rc = put_marks(state, &state->marks.items[i], err);
    return rc;
}

static bh_rc
put_all(struct bh_state *state, struct bh_err *err)
{
    const struct bh_note reached = { .kind = BH_NOTE_REACHED, .order = state->reached, .course = state->course,
                                     .changes = state->changes };
    bh_rc rc = bh_note_append(state->journal, &reached, err);

    for (uint32_t i = 0; i < state->order_count && rc == BH_OK; i++)
        rc = put_order(state, &state->orders[i], err);
    if (rc == BH_OK)
        rc = put_receipts(state, err);
    for (uint32_t i = 0; i < state->piece_count && rc == BH_OK; i++) { /* behind the marks, which take clearances away */
        struct bh_note note = { .kind = BH_NOTE_PIECE, .piece = state->pieces[i] };

        rc = bh_note_append(state->journal, &note, err);
    }
    for (uint32_t i = 0; i < state->job_count && rc == BH_OK; i++)
        rc = put_job(state, &state->jobs[i], err);
    return rc == BH_OK ? bh_note_append(state->journal, &reached, err) : rc; /* none of these is one more change */
}

static bh_rc
rewrite(struct bh_state *state, struct bh_err *err)
{
    bh_rc rc = bh_journal_rewrite_begin(state->journal, err);

    if (rc != BH_OK)
        return rc;
    rc = put_all(state, err);
    if (rc != BH_OK) {
        bh_journal_rewrite_cancel(state->journal);
        return rc;
    }
    return bh_journal_rewrite_commit(state->journal, err);
}

bh_rc
bh_state_compact(struct bh_state *state, struct bh_err *err)
{
    uint64_t above = state->compact_above ? state->compact_above : COMPACT_BYTES;
    bh_rc rc;

    if (bh_journal_size(state->journal) < above)
        return BH_OK;
    rc = rewrite(state, err);
    state->compact_above = rc == BH_OK ? 0 : bh_journal_size(state->journal) + COMPACT_BYTES;
    return rc;
}

bh_rc
bh_state_open(struct bh_state *state, const char *dir, struct bh_err *err)
{
    char path[512];
    bh_rc rc;

    memset(state, 0, sizeof *state);
    bh_path_format(path, sizeof path, "%s/journal", dir);
    rc = bh_journal_open(path, replay_entry, state, &state->journal, err);
    if (rc == BH_OK && rewrite(state, err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "rewrite of the journal"), BH_ERRLOG(err));
    if (rc == BH_OK && bh_journal_reserve(state->journal, err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "room for the journal"), BH_ERRLOG(err));
    return rc;
}

void
bh_state_close(struct bh_state *state)
{
    bh_journal_close(state->journal);
    free(state->orders);
    free(state->pieces);
    free(state->jobs);
    free(state->receipts);
    bh_mark_free(&state->marks);
    memset(state, 0, sizeof *state);
}
