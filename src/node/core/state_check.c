#include "node/core/state_check.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "model/job.h"
#include "model/share.h"

/* ---- what a journal says ---- */

/* The number of its instance follows from what it is. */
static bool
state_has_kind(const struct bh_node_partition *partition)
{
    bool whole = strcmp(partition->profile, "whole") == 0, share = strchr(partition->profile, ':') != NULL;

    if (whole || partition->gi == BH_WHOLE_GPU)
        return whole && partition->gi == BH_WHOLE_GPU;
    if (share || partition->gi >= BH_SHARE_GI)
        return share && partition->start < BH_GPU_SHARES_MAX
               && partition->gi == BH_SHARE_GI + partition->start;
    return true;
}

static bool
state_is_partition(const struct bh_node_partition *partition)
{
    return *partition->gpu && partition->units <= BH_OWNERSHIP_ALL && state_has_kind(partition)
           && (!partition->cleared_for || strchr(partition->profile, ':'))
           && (partition->gi < BH_SHARE_GI || !*partition->uuid
               || strcmp(partition->uuid, partition->gpu) == 0);
}

static bool
state_is_lease(const struct bh_node_record *lease)
{
    for (uint32_t i = 0; i < lease->lent_count; i++)
        if (!state_is_partition(&lease->lent[i]))
            return false;
    return lease->slot < BH_JOBS_MAX || lease->slot == BH_NO_SLOT;
}

static bool
state_is_owner(const struct bh_node_record *owner)
{
    return *owner->partition.gpu && owner->partition.units <= BH_OWNERSHIP_ALL
           && owner->rc < BH_SCRUB_RESULTS;
}

static bool
state_is_written(const struct bh_node_record *record)
{
    return record->kind == BH_NODE_RECORD_ORDER       ? record->order != 0
           : record->kind == BH_NODE_RECORD_PARTITION ? state_is_partition(&record->partition)
           : record->kind == BH_NODE_RECORD_LEASE     ? state_is_lease(record)
           : record->kind == BH_NODE_RECORD_STOPPING  ? record->outcome < BH_END_CAUSES
           : record->kind == BH_NODE_RECORD_OWNER     ? state_is_owner(record)
           : record->kind == BH_NODE_RECORD_RECEIPT   ? record->receipt.order != 0 && *record->receipt.gpu
           : record->kind == BH_NODE_RECORD_REACHED   ? record->changes <= BH_CHANGES_MAX
                                                      : record->kind != BH_NODE_RECORD_NONE;
}

bh_rc
bh_state_check_record(const struct bh_node_record *record, struct bh_err *err)
{
    return state_is_written(record)
               ? BH_OK
               : bh_err_set(err, BH_INVALID,
                            "the journal has a record that no node writes: kind %u, order %" PRIu64
                            ", lease %" PRIu64 ", partition %" PRIu64,
                            (unsigned)record->kind, record->order, record->lease,
                            record->partition.partition);
}

/* ---- what is in memory ---- */

static void
state_assert_table(const void *items, uint32_t count, uint32_t capacity, uint32_t most)
{
    BH_ASSERT(count <= capacity && capacity <= most);
    BH_ASSERT((items != NULL) == (capacity > 0));
}

void
bh_state_assert(const struct bh_node_state *state)
{
    const struct bh_ownership_map *map = &state->ownership;

    state_assert_table(state->orders, state->order_count, state->order_capacity, BH_ORDERS_MAX);
    state_assert_table(state->partitions, state->partition_count, state->partition_capacity,
                       BH_NODE_PARTITIONS_MAX);
    state_assert_table(state->jobs, state->job_count, state->job_capacity, BH_JOBS_MAX);
    state_assert_table(state->receipts, state->receipt_count, state->receipt_capacity, BH_RECEIPTS_MAX);
    state_assert_table(map->items, map->count, map->capacity, BH_OWNERSHIP_GPUS_MAX);
}

void
bh_state_assert_order(const struct bh_node_state *state, const struct bh_order *order)
{
    BH_ASSERT(order >= state->orders && order < state->orders + state->order_count);
    BH_ASSERT(order->record.kind == BH_NODE_RECORD_ORDER && order->record.order != 0);
    BH_ASSERT(order->record.lent_count <= BH_COUNT(order->record.lent));
    BH_ASSERT(order->outcome.order == (order->done ? order->record.order : 0));
    BH_ASSERT(!order->unsaved || (order->done && state->unsaved));
    BH_STATE_ASSERT_TEXT(order->outcome.why);
}

void
bh_state_assert_partition(const struct bh_node_partition *partition)
{
    BH_STATE_ASSERT_TEXT(partition->gpu);
    BH_STATE_ASSERT_TEXT(partition->uuid);
    BH_STATE_ASSERT_TEXT(partition->profile);
    BH_ASSERT(*partition->gpu && state_has_kind(partition));
    BH_ASSERT(state_is_partition(partition));
}

void
bh_state_assert_lease(const struct bh_node_record *lease)
{
    BH_ASSERT(lease->kind == BH_NODE_RECORD_LEASE && lease->lent_count <= BH_COUNT(lease->lent));
    BH_STATE_ASSERT_TEXT(lease->boot);
    BH_STATE_ASSERT_TEXT(lease->party);
    for (uint32_t i = 0; i < lease->lent_count; i++)
        bh_state_assert_partition(&lease->lent[i]);
}

/* A job that has ended has nothing under way. */
static void
state_assert_end(const struct bh_job *job)
{
    BH_ASSERT(!job->ended || (!job->running && !job->frozen && job->pidfd < 0 && !job->unpack));
    BH_ASSERT(!job->ended || (!job->kill_at && !job->term_at && !job->check_at && !job->barrier_at));
    BH_ASSERT(!job->ended || (job->end.lease == job->record.lease && job->end.cause < BH_END_CAUSES));
    BH_ASSERT(job->ended || job->end.lease == 0);
}

/* What a job waits for has its time. */
static void
state_assert_times(const struct bh_job *job)
{
    BH_ASSERT(!job->term_at || (job->kill_at && job->term_signal > 0));
    BH_ASSERT(job->term_signal >= 0 && job->term_signal <= BH_SIGNAL_MAX);
    BH_ASSERT(!job->barrier_at || (job->barrier_until && !job->unpack));
    BH_ASSERT(!job->unpack || (job->check_at && !job->running && !job->frozen && !job->suspended));
    BH_ASSERT(!job->unbuilt || job->ended || job->start_order);
}

void
bh_state_assert_job(const struct bh_node_state *state, const struct bh_job *job)
{
    BH_ASSERT(job >= state->jobs && job < state->jobs + state->job_count);
    BH_ASSERT(job->record.slot < BH_JOBS_MAX || job->record.slot == BH_NO_SLOT);
    BH_ASSERT(job->pidfd >= -1);
    BH_ASSERT(job->checkpointed_count <= BH_COUNT(job->checkpointed_pids));
    BH_ASSERT(job->checkpointed || job->checkpointed_count == 0);
    BH_ASSERT(job->stop_cause < BH_END_CAUSES);
    BH_ASSERT((*job->stop_why != '\0') == (job->stop_cause != BH_END_NONE)
              && (!*job->stop_why || job->asked));
    BH_STATE_ASSERT_TEXT(job->stop_why);
    BH_STATE_ASSERT_TEXT(job->failed_check);
    BH_STATE_ASSERT_TEXT(job->unrestored);
    BH_STATE_ASSERT_TEXT(job->isolation.charge);
    bh_state_assert_lease(&job->record);
    state_assert_end(job);
    state_assert_times(job);
}

void
bh_state_assert_receipt(const struct bh_msg_receipt *receipt)
{
    BH_ASSERT(receipt->order != 0 && *receipt->gpu);
    BH_ASSERT(receipt->from_count <= BH_COUNT(receipt->from) && receipt->by_count <= BH_COUNT(receipt->by));
    BH_ASSERT(receipt->result < BH_SCRUB_RESULTS && receipt->method < BH_SCRUB_METHODS
              && receipt->driver < BH_DRIVER_SCRUBS);
    BH_STATE_ASSERT_TEXT(receipt->gpu);
    BH_STATE_ASSERT_TEXT(receipt->why);
}
