#include "node/core/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/vec.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/core/state_check.h"

#define SAVE_INTERVAL BH_NS_PER_S

enum { COMPACT_BYTES = 4 << 20 };

/* ---- finding ---- */

struct bh_order *
bh_state_order(const struct bh_node_state *state, uint64_t order)
{
    bh_state_assert(state);
    for (uint32_t i = 0; i < state->order_count; i++) {
        if (state->orders[i].record.order != order)
            continue;
        bh_state_assert_order(state, &state->orders[i]);
        return &state->orders[i];
    }
    return NULL;
}

struct bh_node_partition *
bh_state_partition(const struct bh_node_state *state, uint64_t partition)
{
    bh_state_assert(state);
    for (uint32_t i = 0; i < state->partition_count; i++) {
        if (state->partitions[i].partition != partition)
            continue;
        bh_state_assert_partition(&state->partitions[i]);
        return &state->partitions[i];
    }
    return NULL;
}

struct bh_node_partition *
bh_state_partition_at(const struct bh_node_state *state, const char *gpu, uint32_t gi)
{
    bh_state_assert(state);
    for (uint32_t i = 0; i < state->partition_count; i++) {
        bh_state_assert_partition(&state->partitions[i]);
        if (state->partitions[i].gi == gi && strcmp(state->partitions[i].gpu, gpu) == 0)
            return &state->partitions[i];
    }
    return NULL;
}

struct bh_job *
bh_state_job(const struct bh_node_state *state, uint64_t lease)
{
    bh_state_assert(state);
    for (uint32_t i = 0; i < state->job_count; i++) {
        if (state->jobs[i].record.lease != lease)
            continue;
        bh_state_assert_job(state, &state->jobs[i]);
        return &state->jobs[i];
    }
    return NULL;
}

uint32_t
bh_state_free_slot(const struct bh_node_state *state, uint32_t ranges, const struct bh_slots *others)
{
    bool taken[BH_JOBS_MAX + 1] = { false };
    uint32_t slot = 0;

    bh_state_assert(state);
    BH_ASSERT(ranges <= BH_JOBS_MAX && others->count <= BH_COUNT(others->slot));
    for (uint32_t i = 0; i < state->job_count; i++) {
        uint32_t of_job = state->jobs[i].record.slot;

        BH_ASSERT(of_job == BH_NO_SLOT || (of_job < BH_JOBS_MAX && !taken[of_job]));
        if (of_job != BH_NO_SLOT)
            taken[of_job] = true;
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

struct state_table {
    void **items;
    uint32_t count, *capacity, max;
    size_t size; /* of an item */
};

/* Room for one more, doubling. */
static bh_rc
state_grow(const struct state_table *table, struct bh_err *err)
{
    size_t capacity = *table->capacity;
    void *grown;

    BH_ASSERT(table->count <= capacity && capacity <= table->max);
    if (table->count >= table->max)
        return bh_err_set(err, BH_FULL, "the node's tables are full: at most %u", table->max);
    grown = bh_vec_grow(*table->items, table->size, &capacity, table->count + 1, table->max);
    if (!grown)
        return bh_err_set(err, BH_FULL, "out of memory");
    *table->items = grown;
    *table->capacity = (uint32_t)capacity;
    return BH_OK;
}

static bool
state_makes_owners(enum bh_node_record_kind kind)
{
    return kind == BH_NODE_RECORD_OWNER || kind == BH_NODE_RECORD_RECEIPT;
}

static bh_rc
state_grow_table(struct bh_node_state *state, enum bh_node_record_kind kind, struct bh_err *err)
{
    const struct state_table tables[BH_NODE_RECORD_KINDS] = {
        [BH_NODE_RECORD_ORDER] = { (void **)&state->orders, state->order_count, &state->order_capacity,
                                   BH_ORDERS_MAX, sizeof *state->orders },
        [BH_NODE_RECORD_PARTITION] = { (void **)&state->partitions, state->partition_count,
                                       &state->partition_capacity, BH_NODE_PARTITIONS_MAX,
                                       sizeof *state->partitions },
        [BH_NODE_RECORD_LEASE] = { (void **)&state->jobs, state->job_count, &state->job_capacity, BH_JOBS_MAX,
                                   sizeof *state->jobs },
        [BH_NODE_RECORD_RECEIPT] = { (void **)&state->receipts, state->receipt_count,
                                     &state->receipt_capacity, BH_RECEIPTS_MAX, sizeof *state->receipts },
    };
    bh_rc rc = state_makes_owners(kind) ? bh_ownership_map_reserve(&state->ownership, err) : BH_OK;

    return rc == BH_OK && tables[kind].items ? state_grow(&tables[kind], err) : rc;
}

static void
state_apply_reached(struct bh_node_state *state, const struct bh_node_record *record)
{
    /* In a new epoch it is also unknown for which tenant a share's memory was scrubbed. */
    for (uint32_t i = 0; record->generation != state->generation && i < state->partition_count; i++)
        state->partitions[i].cleared_for = 0;
    state->reached = record->order;
    state->generation = record->generation;
    state->changes = record->changes;
}

static void
state_apply_order(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_order *order = bh_state_order(state, record->order);

    if (!order)
        order = &state->orders[state->order_count++];
    BH_ASSERT(record->order != 0 && state->order_count <= state->order_capacity);
    *order = (struct bh_order){ .record = *record };
    if (record->order > state->reached)
        state->reached = record->order;
}

static void
state_apply_outcome(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_order *order = bh_state_order(state, record->order);

    if (!order)
        return;
    BH_ASSERT(record->kind == BH_NODE_RECORD_OUTCOME);
    order->done = true;
    order->outcome = (struct bh_msg_outcome){
        .order = record->order, .outcome = record->outcome, .rc = record->rc, .at_ns = record->at_ns
    };
    snprintf(order->outcome.why, sizeof order->outcome.why, "%s", record->why);
}

static void
state_apply_partition(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_node_partition *partition = bh_state_partition(state, record->partition.partition);

    if (!partition)
        partition = &state->partitions[state->partition_count++];
    BH_ASSERT(state->partition_count <= state->partition_capacity);
    *partition = record->partition;
    bh_state_assert_partition(partition);
}

static void
state_apply_gone(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_node_partition *partition = bh_state_partition(state, record->partition.partition);

    if (partition)
        *partition = state->partitions[--state->partition_count];
}

static void
state_apply_lease(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_job *job = bh_state_job(state, record->lease);

    if (!job)
        job = &state->jobs[state->job_count++];
    BH_ASSERT(state->job_count <= state->job_capacity);
    *job = (struct bh_job){ .record = *record, .pidfd = -1 };
    bh_state_assert_job(state, job);
}

/* The scrubs of shares there count no longer: other leases have had the memory, or its tenants are
 * unknown. */
static void
state_forget_clearances(struct bh_node_state *state, const char *gpu, uint32_t units)
{
    for (uint32_t i = 0; i < state->partition_count; i++) {
        if (strcmp(state->partitions[i].gpu, gpu) == 0
            && (bh_ownership_map_units(&state->partitions[i]) & units))
            state->partitions[i].cleared_for = 0;
    }
}

static void
state_apply_owner(struct bh_node_state *state, const struct bh_node_record *record)
{
    uint32_t units = bh_ownership_map_units(&record->partition);
    bool clean = record->clean && !record->failed;
    const struct bh_ownership_unit as = { .clean = clean,
                                          .failed = record->failed,
                                          .tenant = record->tenant,
                                          .job = record->job,
                                          .receipt = clean ? record->order : 0,
                                          .result = clean ? record->rc : 0 };

    BH_ASSERT(state->changes < UINT64_MAX / 2 && *record->partition.gpu);
    state->changes++;
    if (*record->gap.profile)
        bh_ownership_map_set_gap(&state->ownership, record->partition.gpu, units, &record->gap);
    if (record->beside)
        bh_ownership_map_add(&state->ownership, record->partition.gpu, units, &as);
    else
        bh_ownership_map_set(&state->ownership, record->partition.gpu, units, &as);
    if (record->beside || (!record->clean && record->tenant == BH_OWNERSHIP_UNKNOWN))
        state_forget_clearances(state, record->partition.gpu, units);
}

/* One that a rewrite wrote has no units: owners follow it, and say what is.  Those of a version without gaps
 * do not say under which geometry the units were scrubbed. */
static void
state_apply_receipt(struct bh_node_state *state, const struct bh_node_record *record)
{
    state->changes++;
    bh_ownership_map_apply_receipt(&state->ownership, bh_ownership_map_units(&record->partition),
                                   &record->receipt);
    if (!record->partition.units)
        bh_ownership_map_set_gap(&state->ownership, record->receipt.gpu, BH_OWNERSHIP_ALL,
                                 &(struct bh_ownership_gap){ .profile = BH_NO_SHAPE });
    BH_ASSERT(state->receipt_count < state->receipt_capacity);
    state->receipts[state->receipt_count++] = record->receipt;
    bh_state_assert_receipt(&record->receipt);
}

static void
state_apply_forget_receipt(struct bh_node_state *state, const struct bh_node_record *record)
{
    for (uint32_t i = 0; i < state->receipt_count; i++) {
        bh_state_assert_receipt(&state->receipts[i]);
        if (state->receipts[i].order != record->order)
            continue;
        memmove(&state->receipts[i], &state->receipts[i + 1],
                (--state->receipt_count - i) * sizeof *state->receipts);
        return;
    }
}

static void
state_apply_asked(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_job *job = bh_state_job(state, record->lease);

    if (!job)
        return;
    job->asked = true;
    if (!*record->why)
        return;
    snprintf(job->stop_why, sizeof job->stop_why, "%.199s", record->why);
    job->stop_cause = record->outcome != BH_END_NONE ? record->outcome : BH_END_OVER_CAP;
}

static void
state_apply_suspended(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_job *job = bh_state_job(state, record->lease);

    if (job)
        job->suspended = record->kind == BH_NODE_RECORD_SUSPENDED;
}

static void
state_apply_checkpointed(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_job *job = bh_state_job(state, record->lease);

    if (!job)
        return;
    job->checkpointed = record->kind == BH_NODE_RECORD_CHECKPOINTED;
    job->checkpointed_count = job->checkpointed ? record->pid_count : 0;
    BH_ASSERT(job->checkpointed_count <= BH_COUNT(job->checkpointed_pids));
    memcpy(job->checkpointed_pids, record->pids, sizeof job->checkpointed_pids);
}

static void
state_apply_forget_order(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_order *order = bh_state_order(state, record->order);

    if (order)
        *order = state->orders[--state->order_count];
}

static void
state_apply_forget_lease(struct bh_node_state *state, const struct bh_node_record *record)
{
    struct bh_job *job = bh_state_job(state, record->lease);

    if (job)
        *job = state->jobs[--state->job_count];
}

static void
state_apply(struct bh_node_state *state, const struct bh_node_record *record)
{
    static void (*const kinds[BH_NODE_RECORD_KINDS])(struct bh_node_state *,
                                                     const struct bh_node_record *) = {
        [BH_NODE_RECORD_ORDER] = state_apply_order,
        [BH_NODE_RECORD_OUTCOME] = state_apply_outcome,
        [BH_NODE_RECORD_PARTITION] = state_apply_partition,
        [BH_NODE_RECORD_GONE] = state_apply_gone,
        [BH_NODE_RECORD_LEASE] = state_apply_lease,
        [BH_NODE_RECORD_FORGET_ORDER] = state_apply_forget_order,
        [BH_NODE_RECORD_FORGET_LEASE] = state_apply_forget_lease,
        [BH_NODE_RECORD_STOPPING] = state_apply_asked,
        [BH_NODE_RECORD_SUSPENDED] = state_apply_suspended,
        [BH_NODE_RECORD_RESUMED] = state_apply_suspended,
        [BH_NODE_RECORD_OWNER] = state_apply_owner,
        [BH_NODE_RECORD_RECEIPT] = state_apply_receipt,
        [BH_NODE_RECORD_FORGET_RECEIPT] = state_apply_forget_receipt,
        [BH_NODE_RECORD_CHECKPOINTED] = state_apply_checkpointed,
        [BH_NODE_RECORD_RESTORED] = state_apply_checkpointed,
        [BH_NODE_RECORD_REACHED] = state_apply_reached,
    };

    if (kinds[record->kind])
        kinds[record->kind](state, record);
}

bh_rc
bh_state_record(struct bh_node_state *state, const struct bh_node_record *record, struct bh_err *err)
{
    bh_rc rc;

    bh_state_assert(state);
    BH_ASSERT(state->journal);
    BH_ASSERT(record->kind > BH_NODE_RECORD_NONE && record->kind < BH_NODE_RECORD_KINDS);
    rc = state_grow_table(state, record->kind, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_node_record_append(state->journal, record, err);
    if (rc != BH_OK)
        return rc;
    state_apply(state, record);
    bh_state_assert(state);
    return BH_OK;
}

bh_rc
bh_state_record_owner(struct bh_node_state *state, const struct bh_node_record *lease, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    bh_state_assert_lease(lease);
    for (uint32_t i = 0; i < lease->lent_count && rc == BH_OK; i++) {
        struct bh_node_record owned = { .kind = BH_NODE_RECORD_OWNER,
                                        .tenant = lease->tenant,
                                        .job = lease->job,
                                        .beside = lease->lent[i].share_weight != 0 };

        memcpy(owned.partition.gpu, lease->lent[i].gpu, sizeof owned.partition.gpu);
        owned.partition.units = bh_ownership_map_units(&lease->lent[i]);
        rc = bh_state_record(state, &owned, err);
    }
    return rc;
}

/* Units whose last scrub failed stay so. */
static bh_rc
state_forget_owners_of_gpu(struct bh_node_state *state, const struct bh_ownership_gpu *ownership,
                           struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (int failed = 0; failed <= 1 && rc == BH_OK; failed++) {
        struct bh_node_record record = { .kind = BH_NODE_RECORD_OWNER,
                                         .tenant = BH_OWNERSHIP_UNKNOWN,
                                         .failed = failed,
                                         .gap.profile = BH_NO_SHAPE };

        memcpy(record.partition.gpu, ownership->gpu, sizeof record.partition.gpu);
        for (uint32_t unit = 0; unit < BH_OWNERSHIP_UNITS; unit++)
            record.partition.units |= (uint32_t)(ownership->unit[unit].failed == (failed != 0)) << unit;
        if (record.partition.units)
            rc = bh_state_record(state, &record, err);
    }
    return rc;
}

bh_rc
bh_state_forget_owners(struct bh_node_state *state, uint64_t reached, uint64_t changes, struct bh_err *err)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_REACHED, .order = reached };
    bh_rc rc = BH_OK;

    if (getrandom(&record.generation, sizeof record.generation, 0) != sizeof record.generation)
        return bh_err_errno(err, "draw the number of the run");
    for (uint32_t i = 0; i < state->ownership.count && rc == BH_OK; i++)
        rc = state_forget_owners_of_gpu(state, &state->ownership.items[i], err);
    record.changes = (state->changes > changes ? state->changes : changes) + 1;
    return rc == BH_OK ? bh_state_record(state, &record, err) : rc;
}

bh_rc
bh_state_reserve(struct bh_node_state *state, struct bh_err *err)
{
    return bh_order_journal_reserve(state->journal, err);
}

bh_rc
bh_state_sync(struct bh_node_state *state, struct bh_err *err)
{
    return bh_order_journal_sync(state->journal, err);
}

/* ---- opening and rewriting ---- */

/* Each lease has a range of user ids of its own. */
static bh_rc
state_check_slot(const struct bh_node_state *state, const struct bh_node_record *record, struct bh_err *err)
{
    for (uint32_t i = 0; i < state->job_count && record->kind == BH_NODE_RECORD_LEASE; i++) {
        const struct bh_node_record *lease = &state->jobs[i].record;

        if (lease->lease != record->lease && lease->slot == record->slot && lease->slot != BH_NO_SLOT)
            return bh_err_set(err, BH_INVALID,
                              "the journal gives leases %" PRIu64 " and %" PRIu64 " the same user ids",
                              lease->lease, record->lease);
    }
    return BH_OK;
}

static bh_rc
state_replay_entry(void *self, const char *payload, size_t length, struct bh_err *err)
{
    struct bh_node_state *state = self;
    struct bh_node_record record;
    bh_rc rc = bh_node_record_decode(payload, length, &record, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_state_check_record(&record, err);
    if (rc != BH_OK)
        return rc;
    rc = state_check_slot(state, &record, err);
    if (rc != BH_OK)
        return rc;
    rc = state_grow_table(state, record.kind, err);
    if (rc != BH_OK)
        return rc;
    state_apply(state, &record);
    return BH_OK;
}

static bh_rc
state_put_outcome(struct bh_node_state *state, const struct bh_order *order, struct bh_err *err)
{
    struct bh_node_record outcome = { .kind = BH_NODE_RECORD_OUTCOME,
                                      .order = order->record.order,
                                      .outcome = order->outcome.outcome,
                                      .rc = order->outcome.rc,
                                      .at_ns = order->outcome.at_ns };

    snprintf(outcome.why, sizeof outcome.why, "%s", order->outcome.why);
    return bh_node_record_append(state->journal, &outcome, err);
}

static bh_rc
state_put_order(struct bh_node_state *state, const struct bh_order *order, struct bh_err *err)
{
    bh_rc rc;

    bh_state_assert_order(state, order);
    rc = bh_node_record_append(state->journal, &order->record, err);
    return rc == BH_OK && order->done ? state_put_outcome(state, order, err) : rc;
}

void
bh_state_remember(struct bh_node_state *state, const struct bh_node_record *outcome)
{
    struct bh_order *order = bh_state_order(state, outcome->order);

    BH_ASSERT(outcome->kind == BH_NODE_RECORD_OUTCOME);
    state_apply_outcome(state, outcome);
    if (!order)
        return;
    BH_ASSERT(order->done);
    order->unsaved = state->unsaved = true;
}

static void
state_save(struct bh_node_state *state)
{
    struct bh_err ignored;
    bh_rc rc = BH_OK;

    bh_state_assert(state);
    for (uint32_t i = 0; i < state->order_count && rc == BH_OK; i++) {
        bh_state_assert_order(state, &state->orders[i]);
        if (state->orders[i].unsaved)
            rc = state_put_outcome(state, &state->orders[i], &ignored);
        if (rc == BH_OK)
            state->orders[i].unsaved = false;
    }
    state->unsaved = rc != BH_OK;
}

/* The time of the next try to save what is not, or 0. */
static bh_ns
state_tick_save(struct bh_node_state *state, bh_ns now)
{
    if (state->unsaved && state->save_at <= now) {
        state->save_at = now + SAVE_INTERVAL;
        state_save(state);
    }
    return state->unsaved ? state->save_at : 0;
}

bh_rc
bh_state_tick(struct bh_node_state *state, bh_ns now, bh_ns *ret_next, struct bh_err *err)
{
    bh_ns again = state_tick_save(state, now);
    bh_rc rc = bh_order_journal_tick(state->journal, now, ret_next, err);

    if (again && (!*ret_next || again < *ret_next))
        *ret_next = again;
    return rc;
}

static bh_rc
state_put_checkpointed(struct bh_node_state *state, const struct bh_job *job, struct bh_err *err)
{
    struct bh_node_record checkpointed = { .kind = BH_NODE_RECORD_CHECKPOINTED,
                                           .lease = job->record.lease,
                                           .pid_count = job->checkpointed_count };

    memcpy(checkpointed.pids, job->checkpointed_pids, sizeof checkpointed.pids);
    return bh_node_record_append(state->journal, &checkpointed, err);
}

static bh_rc
state_put_job(struct bh_node_state *state, const struct bh_job *job, struct bh_err *err)
{
    struct bh_node_record asked = { .kind = BH_NODE_RECORD_STOPPING, .lease = job->record.lease };
    struct bh_node_record suspended = { .kind = BH_NODE_RECORD_SUSPENDED, .lease = job->record.lease };
    bh_rc rc;

    bh_state_assert_job(state, job);
    rc = bh_node_record_append(state->journal, &job->record, err);
    snprintf(asked.why, sizeof asked.why, "%s", job->stop_why);
    asked.outcome = job->stop_cause;
    if (rc == BH_OK && job->asked)
        rc = bh_node_record_append(state->journal, &asked, err);
    if (rc == BH_OK && job->suspended)
        rc = bh_node_record_append(state->journal, &suspended, err);
    return rc == BH_OK && job->checkpointed ? state_put_checkpointed(state, job, err) : rc;
}

/* The other tenants of units that have several. */
static bh_rc
state_put_owners_of_unit(struct bh_node_state *state, const struct bh_ownership_gpu *ownership,
                         struct bh_node_record *owned, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    owned->beside = true;
    for (uint32_t i = 1; i < ownership->owner_count && rc == BH_OK; i++) {
        owned->tenant = ownership->owners[i].tenant;
        owned->job = ownership->owners[i].job;
        rc = bh_node_record_append(state->journal, owned, err);
    }
    return rc;
}

/* Behind everything that sets owners when it is read again. */
static bh_rc
state_put_owners(struct bh_node_state *state, const struct bh_ownership_gpu *ownership, struct bh_err *err)
{
    uint32_t written = 0;
    bh_rc rc = BH_OK;

    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS && rc == BH_OK; u++) {
        const struct bh_ownership_unit *unit = &ownership->unit[u];
        struct bh_node_record record = { .kind = BH_NODE_RECORD_OWNER,
                                         .clean = unit->clean,
                                         .failed = unit->failed,
                                         .tenant = unit->several ? ownership->owners[0].tenant : unit->tenant,
                                         .job = unit->several ? ownership->owners[0].job : unit->job,
                                         .order = unit->receipt,
                                         .rc = unit->result,
                                         .gap = ownership->gap[u] };

        if (written >> u & 1)
            continue;
        memcpy(record.partition.gpu, ownership->gpu, sizeof record.partition.gpu);
        record.partition.units = bh_ownership_map_alike(ownership, u);
        written |= record.partition.units;
        rc = bh_node_record_append(state->journal, &record, err);
        if (rc == BH_OK && unit->several)
            rc = state_put_owners_of_unit(state, ownership, &record, err);
    }
    return rc;
}

static bh_rc
state_put_receipts(struct bh_node_state *state, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < state->receipt_count && rc == BH_OK; i++) {
        struct bh_node_record record = { .kind = BH_NODE_RECORD_RECEIPT, .receipt = state->receipts[i] };

        bh_state_assert_receipt(&record.receipt);
        rc = bh_node_record_append(state->journal, &record, err);
    }
    for (uint32_t i = 0; i < state->ownership.count && rc == BH_OK; i++)
        rc = state_put_owners(state, &state->ownership.items[i], err);
    return rc;
}

static bh_rc
state_put_all(struct bh_node_state *state, struct bh_err *err)
{
    const struct bh_node_record reached = { .kind = BH_NODE_RECORD_REACHED,
                                            .order = state->reached,
                                            .generation = state->generation,
                                            .changes = state->changes };
    bh_rc rc = bh_node_record_append(state->journal, &reached, err);

    for (uint32_t i = 0; i < state->order_count && rc == BH_OK; i++)
        rc = state_put_order(state, &state->orders[i], err);
    if (rc == BH_OK)
        rc = state_put_receipts(state, err);
    for (uint32_t i = 0; i < state->partition_count && rc == BH_OK;
         i++) { /* behind the owners, which take clearances away */
        struct bh_node_record record = { .kind = BH_NODE_RECORD_PARTITION,
                                         .partition = state->partitions[i] };

        bh_state_assert_partition(&record.partition);
        rc = bh_node_record_append(state->journal, &record, err);
    }
    for (uint32_t i = 0; i < state->job_count && rc == BH_OK; i++)
        rc = state_put_job(state, &state->jobs[i], err);
    return rc == BH_OK ? bh_node_record_append(state->journal, &reached, err)
                       : rc; /* none of these is one more change */
}

static bh_rc
state_rewrite(struct bh_node_state *state, struct bh_err *err)
{
    bh_rc rc;

    bh_state_assert(state);
    rc = bh_order_journal_rewrite_begin(state->journal, err);
    if (rc != BH_OK)
        return rc;
    rc = state_put_all(state, err);
    if (rc != BH_OK) {
        bh_order_journal_rewrite_cancel(state->journal);
        return rc;
    }
    return bh_order_journal_rewrite_commit(state->journal, err);
}

bh_rc
bh_state_compact(struct bh_node_state *state, struct bh_err *err)
{
    uint64_t above = state->compact_above ? state->compact_above : COMPACT_BYTES;
    bh_rc rc;

    if (bh_order_journal_size(state->journal) < above)
        return BH_OK;
    rc = state_rewrite(state, err);
    state->compact_above = rc == BH_OK ? 0 : bh_order_journal_size(state->journal) + COMPACT_BYTES;
    return rc;
}

bh_rc
bh_state_open(struct bh_node_state *state, const char *dir, struct bh_err *err)
{
    char path[512];
    bh_rc rc;

    memset(state, 0, sizeof *state);
    bh_path_format(path, sizeof path, "%s/journal", dir);
    rc = bh_order_journal_open(path, state_replay_entry, state, &state->journal, err);
    if (rc != BH_OK)
        return rc;
    if (state_rewrite(state, err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "rewrite of the journal"), BH_ERRLOG(err));
    if (bh_order_journal_reserve(state->journal, err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "room for the journal"), BH_ERRLOG(err));
    return BH_OK;
}

void
bh_state_close(struct bh_node_state *state)
{
    bh_order_journal_close(state->journal);
    free(state->orders);
    free(state->partitions);
    free(state->jobs);
    free(state->receipts);
    bh_ownership_map_free(&state->ownership);
    memset(state, 0, sizeof *state);
}
