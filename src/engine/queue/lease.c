#include "engine/queue/lease.h"

#include <string.h>

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/gpu/capacity.h"
#include "engine/gpu/host.h"
#include "engine/gpu/partition.h"
#include "engine/gpu/unchecked.h"
#include "engine/queue/avoid.h"
#include "engine/queue/claim.h"
#include "engine/queue/jobs.h"
#include "engine/queue/preemptible.h"
#include "engine/state/effect.h"
#include "engine/state/gang.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

enum { CARVE_FAILURES_MAX = 3 };

typedef void lease_act(struct work *work, uint32_t lease, const struct lease_change *change);

static lease_act lease_start, lease_resume, lease_run, lease_freeze, lease_put_aside, lease_resume_timers,
    lease_stop, lease_stop_suspended;
static lease_act lease_end, lease_abandon, lease_fail_carve, lease_fail_start, lease_fail_suspend,
    lease_fail_resume, lease_ignore;
static lease_act lease_stop_again;

static const struct rule {
    lease_act *act; /* NULL: refused */
    enum lease_state next;
} rules[LEASE_STATES][LEASE_EVENTS] = {
    [LEASE_CARVING] = {
        [LEASE_READY]          = { lease_start, LEASE_STARTING },
        [LEASE_CARVE_FAILED]   = { lease_fail_carve, LEASE_NONE },
        [LEASE_STOP]           = { lease_abandon, LEASE_NONE },
    },
    [LEASE_STARTING] = {
        [LEASE_STARTED]        = { lease_run, LEASE_RUNNING },
        [LEASE_START_FAILED]   = { lease_fail_start, LEASE_DONE },
        [LEASE_STOP]           = { lease_stop, LEASE_STOPPING },
        [LEASE_ENDED]          = { lease_end, LEASE_DONE },
    },
    [LEASE_RUNNING] = {
        [LEASE_SUSPEND]        = { lease_freeze, LEASE_SUSPENDING },
        [LEASE_STOP]           = { lease_stop, LEASE_STOPPING },
        [LEASE_ENDED]          = { lease_end, LEASE_DONE },
    },
    [LEASE_SUSPENDING] = {
        [LEASE_SUSPENDED_OK]   = { lease_put_aside, LEASE_SUSPENDED },
        [LEASE_SUSPEND_FAILED] = { lease_fail_suspend, LEASE_STOPPING },
        [LEASE_STOP]           = { lease_stop, LEASE_STOPPING },
        [LEASE_ENDED]          = { lease_end, LEASE_DONE },
    },
    [LEASE_SUSPENDED] = {
        [LEASE_RESUME]         = { lease_resume_timers, LEASE_RECARVING },
        [LEASE_STOP]           = { lease_stop_suspended, LEASE_STOPPING },
        [LEASE_ENDED]          = { lease_end, LEASE_DONE },
    },
    [LEASE_RECARVING] = {
        [LEASE_READY]          = { lease_resume, LEASE_RESUMING },
        [LEASE_CARVE_FAILED]   = { lease_fail_resume, LEASE_STOPPING },
        [LEASE_STOP]           = { lease_stop, LEASE_STOPPING },
        [LEASE_ENDED]          = { lease_end, LEASE_DONE },
    },
    [LEASE_RESUMING] = {
        [LEASE_RESUMED]        = { lease_run, LEASE_RUNNING },
        [LEASE_RESUME_FAILED]  = { lease_fail_resume, LEASE_STOPPING },
        [LEASE_STOP]           = { lease_stop, LEASE_STOPPING },
        [LEASE_ENDED]          = { lease_end, LEASE_DONE },
    },
    [LEASE_STOPPING] = {
        [LEASE_READY]          = { lease_ignore, LEASE_STOPPING },
        [LEASE_CARVE_FAILED]   = { lease_ignore, LEASE_STOPPING },
        [LEASE_STARTED]        = { lease_ignore, LEASE_STOPPING },
        [LEASE_START_FAILED]   = { lease_end, LEASE_DONE },
        [LEASE_SUSPENDED_OK]   = { lease_ignore, LEASE_STOPPING },
        [LEASE_SUSPEND_FAILED] = { lease_ignore, LEASE_STOPPING },
        [LEASE_RESUMED]        = { lease_ignore, LEASE_STOPPING },
        [LEASE_RESUME_FAILED]  = { lease_ignore, LEASE_STOPPING },
        [LEASE_STOP]           = { lease_stop_again, LEASE_STOPPING },
        [LEASE_ENDED]          = { lease_end, LEASE_DONE },
    },
};

static bool
lease_is_leaving(uint8_t state)
{
    return state == LEASE_SUSPENDING || state == LEASE_STOPPING;
}

/* Into the list of those that leave, or out of it. */
static void
lease_list_leaving(struct bh_engine *engine, uint32_t slot)
{
    struct lease *lease = lease_at(engine, slot);
    uint32_t *head = &engine->core.leaving;

    BH_ASSERT(lease->id != 0 && lease->next_leaving == 0 && lease->prev_leaving == 0);
    BH_ASSERT(*head == 0 || lease_at(engine, *head)->prev_leaving == 0);
    lease->next_leaving = *head;
    if (*head)
        lease_at(engine, *head)->prev_leaving = slot;
    *head = slot;
}

static void
lease_unlist_leaving(struct bh_engine *engine, uint32_t slot)
{
    struct lease *lease = lease_at(engine, slot);

    BH_ASSERT(lease->prev_leaving ? lease_at(engine, lease->prev_leaving)->next_leaving == slot
                                  : engine->core.leaving == slot);
    BH_ASSERT(lease->next_leaving == 0 || lease_at(engine, lease->next_leaving)->prev_leaving == slot);
    if (lease->next_leaving)
        lease_at(engine, lease->next_leaving)->prev_leaving = lease->prev_leaving;
    if (lease->prev_leaving)
        lease_at(engine, lease->prev_leaving)->next_leaving = lease->next_leaving;
    else
        engine->core.leaving = lease->next_leaving;
    lease->next_leaving = lease->prev_leaving = 0;
}
bool
bh_lease_allows(const struct bh_engine *engine, uint32_t slot, enum lease_event event)
{
    uint8_t state = lease_at(engine, slot)->state;

    BH_ASSERT(state < LEASE_STATES);
    BH_ASSERT((uint32_t)event < LEASE_EVENTS);
    return rules[state][event].act != NULL;
}

/* A time limit's hour has moved. */
static void
lease_move_due(struct hints *hints, uint64_t from_ns, uint64_t to_ns)
{
    if (from_ns != to_ns && from_ns == hints->due_ns)
        hints->due_known = false;
    if (to_ns < hints->due_ns)
        hints->due_ns = to_ns;
}

/* A job that never makes way helps no other by running on. */
static bool
lease_matters_to_others(const struct bh_engine *engine, const struct lease *lease, enum lease_state next)
{
    return job_at(engine, lease->job)->contract != BH_CONTRACT_NEVER
           || (next != LEASE_STARTING && next != LEASE_RUNNING);
}

void
bh_lease_step(struct work *work, uint32_t slot, const struct lease_change *change)
{
    struct lease *lease = lease_at(work->engine, slot);
    const struct rule *rule = &rules[lease->state][change->event];
    uint64_t due_ns = bh_lease_deadline_ns(work->engine, slot);

    BH_ASSERT(rule->act != NULL);
    BH_ASSERT(lease->id != 0 && job_at(work->engine, lease->job)->lease != 0);
    BH_ASSERT(node_at(work->engine, lease->node)->id != 0
              && lease->tenant == job_at(work->engine, lease->job)->tenant);
    BH_ASSERT(lease->state != LEASE_SUSPENDED || work->engine->core.suspended > 0);
    BH_ASSERT(lease->state < LEASE_STATES && (uint32_t)change->event < LEASE_EVENTS);
    if (lease->state == LEASE_SUSPENDED) {
        work->engine->core.suspended--;
        bh_claim_drop_all(work->engine, lease->job);
    }
    work->engine->core.suspended += rule->next == LEASE_SUSPENDED;
    if (lease_is_leaving(lease->state) && !lease_is_leaving(rule->next))
        lease_unlist_leaving(work->engine, slot);
    else if (!lease_is_leaving(lease->state) && lease_is_leaving(rule->next))
        lease_list_leaving(work->engine, slot);
    if (rule->next != LEASE_NONE) {
        if (rule->next == LEASE_DONE)
            lease->ran_ns = bh_lease_ran_ns(work->engine, slot);
        if (rule->next == LEASE_RUNNING)
            bh_preemptible_runs(work->engine, lease->job);
        lease->state = (uint8_t)rule->next;
        bh_gang_show(work, lease->job);
    }
    bh_node_hint(work->engine, lease->node)->end_ns = 0;
    if (lease_matters_to_others(work->engine, lease, rule->next))
        bh_wake_below(work->engine, lease->tenant);
    rule->act(work, slot, change);
    lease_move_due(&work->engine->hints, due_ns, bh_lease_deadline_ns(work->engine, slot));
}

/* ---- partitions ---- */

/* Behind those of the job's members that were placed before. */
static void
lease_chain(struct work *work, uint32_t job_slot, uint32_t slot)
{
    struct bh_engine *engine = work->engine;
    uint32_t *link = &job_at(engine, job_slot)->lease;

    BH_ASSERT(lease_at(engine, slot)->job == job_slot);
    if (*link == 0) {
        bh_job_attach_lease(work, job_slot, slot);
        return;
    }
    while (*link)
        link = &lease_at(engine, *link)->next_member;
    *link = slot;
}

uint32_t
bh_lease_create(struct work *work, const struct bh_decision *decision, uint32_t job_slot, uint32_t node)
{
    struct bh_engine *engine = work->engine;
    uint32_t slot = bh_slot_add(engine, TABLE_LEASE, decision->lease.v);
    struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, job_slot);

    BH_ASSERT(job->id != 0 && node_at(engine, node)->id != 0);
    BH_ASSERT(decision->member < job->gang && engine->core.suspended <= engine->tables[TABLE_LEASE].live);
    lease->job = job_slot;
    lease->tenant = job->tenant;
    lease->node = node;
    lease->count = job->count;
    lease->member = (uint8_t)decision->member;
    lease->state = LEASE_CARVING;
    lease->since_ns = work->now_ns;
    bh_node_hint(engine, node)->end_ns = 0;
    if (engine->core.next_lease <= decision->lease.v)
        engine->core.next_lease = decision->lease.v + 1;
    *bh_lease_hint(engine, slot) = (struct hint){ 0 };
    lease_chain(work, job_slot, slot);
    bh_host_arrive(engine, slot);
    lease_move_due(&engine->hints, UINT64_MAX, bh_lease_deadline_ns(engine, slot));
    return slot;
}

void
bh_lease_add_partition(struct work *work, uint32_t slot, uint32_t at, const struct bh_partition *decided)
{
    struct bh_engine *engine = work->engine;
    struct lease *lease = lease_at(engine, slot);
    uint32_t partition;

    BH_ASSERT(at < lease->count);
    BH_ASSERT(lease->parts[at] == 0 && (lease->state == LEASE_CARVING || lease->state == LEASE_SUSPENDED));
    if (decided->carve) {
        partition = bh_partition_carve(work, decided, slot);
    } else {
        partition = partition_find(engine, decided->partition.v);
        bh_partition_assign(work, partition, slot);
    }
    lease->parts[at] = partition;
    lease->placements[at] = (struct placement){ decided->gpu.v, decided->profile, decided->start };
    lease->grade = (uint8_t)bh_capacity_grade(engine, lease->tenant, decided->profile);
}

/* Let go of all partitions, and of what they counted for. */
static void
lease_release_partitions(struct work *work, uint32_t slot)
{
    struct lease *lease = lease_at(work->engine, slot);
    struct bh_wanted held = bh_quota_of_lease(work->engine, slot);

    BH_ASSERT(lease->id != 0 && lease->count <= BH_JOB_COUNT_MAX);
    bh_quota_release(work->engine, &held);
    for (uint32_t i = 0; i < lease->count; i++)
        if (lease->parts[i]) {
            BH_ASSERT(partition_at(work->engine, lease->parts[i])->lease == slot);
            bh_partition_release(work, lease->parts[i]);
        }
    memset(lease->parts, 0, sizeof(lease->parts));
    bh_node_hint(work->engine, lease->node)->end_ns = 0; /* a partition on its way changes no ledger */
    bh_wake_queue(work->engine);
}

/* The leases are no more; their job is pending and in no queue yet. */
static void
lease_disband(struct work *work, uint32_t job)
{
    struct bh_engine *engine = work->engine;
    uint32_t at = 0, next = job_at(engine, job)->lease;

    BH_ASSERT(next != 0 && lease_at(engine, next)->job == job);
    while ((at = bh_gang_next(engine, job, at)) != 0) {
        bh_host_leave(engine, at);
        lease_release_partitions(work, at);
    }
    bh_job_detach(work, job);
    for (at = next; at; at = next) {
        next = lease_at(engine, at)->next_member;
        BH_ASSERT(!lease_is_leaving(lease_at(engine, at)->state));
        lease_move_due(&engine->hints, bh_lease_deadline_ns(engine, at), UINT64_MAX);
        bh_slot_remove(engine, TABLE_LEASE, at);
    }
}

/* ---- acts ---- */

static void
lease_start(struct work *work, uint32_t slot, const struct lease_change *change)
{
    BH_ASSERT(lease_at(work->engine, slot)->state == LEASE_STARTING);
    BH_ASSERT(lease_at(work->engine, slot)->waiting == 0);
    job_at(work->engine, lease_at(work->engine, slot)->job)->carve_failures = 0;
    bh_effect_lease(work, BH_FX_START, slot);
    bh_wake_queue(work->engine); /* it may make way for a higher one from now on */
}

static void
lease_resume(struct work *work, uint32_t slot, const struct lease_change *change)
{
    BH_ASSERT(lease_at(work->engine, slot)->state == LEASE_RESUMING);
    BH_ASSERT(lease_at(work->engine, slot)->waiting == 0);
    bh_effect_lease(work, BH_FX_RESUME, slot);
}

/* When it happened by the node's word: not before `least`, and not after now. */
static uint64_t
lease_time_of(const struct work *work, const struct lease_change *change, uint64_t least)
{
    if (change->at_ns == 0 || change->at_ns > work->now_ns)
        return work->now_ns;
    return change->at_ns > least ? change->at_ns : least;
}

static void
lease_run(struct work *work, uint32_t slot, const struct lease_change *change)
{
    struct lease *lease = lease_at(work->engine, slot);
    struct job *job = job_at(work->engine, lease->job);
    uint64_t began_ns;

    BH_ASSERT(lease->state == LEASE_RUNNING && lease->since_ns <= work->now_ns);
    BH_ASSERT(lease->waiting == BH_FX_START + 1 || lease->waiting == BH_FX_RESUME + 1);
    lease->waiting = 0;
    lease->order = 0;
    began_ns = lease_time_of(work, change, lease->since_ns);
    lease->since_ns = work->now_ns; /* leases are in order of it */
    lease->ran_ns += work->now_ns - began_ns;
    bh_unchecked_forget(work->engine, lease->node);
    job->scratch = 0;
    if (job->started_ns == 0)
        job->started_ns = began_ns;
    bh_wake_queue(work->engine);
}

static void
lease_freeze(struct work *work, uint32_t slot, const struct lease_change *change)
{
    BH_ASSERT(lease_at(work->engine, slot)->waiting == 0);
    BH_ASSERT(lease_at(work->engine, slot)->state == LEASE_SUSPENDING);
    lease_at(work->engine, slot)->for_job = change->for_job;
    bh_effect_lease(work, BH_FX_SUSPEND, slot);
}

static void
lease_pause_clock(struct work *work, struct lease *lease)
{
    BH_ASSERT(lease->since_ns <= work->now_ns);
    lease->ran_ns += work->now_ns - lease->since_ns;
    lease->since_ns = work->now_ns;
}

static void
lease_put_aside(struct work *work, uint32_t slot, const struct lease_change *change)
{
    struct lease *lease = lease_at(work->engine, slot);

    BH_ASSERT(lease->waiting == BH_FX_SUSPEND + 1 && lease->state == LEASE_SUSPENDED);
    BH_ASSERT(lease->parts[0] != 0);
    lease->waiting = 0;
    lease->order = 0;
    lease_pause_clock(work, lease);
    bh_host_rest(work->engine, slot);
    lease_release_partitions(work, slot);
    *bh_lease_hint(work->engine, slot) = (struct hint){ 0 };
}

/* The partitions were added before; what they count for is taken here. */
static void
lease_resume_timers(struct work *work, uint32_t slot, const struct lease_change *change)
{
    struct bh_wanted held = bh_quota_of_lease(work->engine, slot);

    BH_ASSERT(held.count > 0);
    BH_ASSERT(lease_at(work->engine, slot)->state == LEASE_RECARVING);
    lease_at(work->engine, slot)->for_job = 0;
    lease_at(work->engine, slot)->since_ns = work->now_ns;
    bh_host_return(work->engine, slot);
    bh_quota_charge(work->engine, &held);
    bh_wake_after_taking(work->engine, held.tenant);
}

static void
lease_order_stop(struct work *work, uint32_t slot)
{
    struct lease *lease = lease_at(work->engine, slot);
    uint64_t grace_ns = job_at(work->engine, lease->job)->grace_ns;

    BH_ASSERT(lease->state == LEASE_STOPPING);
    BH_ASSERT(job_at(work->engine, lease->job)->lease != 0);
    lease->kill_ns = grace_ns > UINT64_MAX - work->now_ns ? UINT64_MAX : work->now_ns + grace_ns;
    bh_effect_lease(work, BH_FX_STOP, slot);
}

static void
lease_stop(struct work *work, uint32_t slot, const struct lease_change *change)
{
    struct lease *lease = lease_at(work->engine, slot);

    BH_ASSERT((uint32_t)change->cause < BH_END_CAUSES);
    BH_ASSERT(lease->state == LEASE_STOPPING);
    lease->stop_cause = (uint8_t)change->cause;
    if (change->for_job)
        lease->for_job = change->for_job;
    lease_order_stop(work, slot);
    bh_wake_queue(work->engine);
}

static void
lease_stop_suspended(struct work *work, uint32_t slot, const struct lease_change *change)
{
    lease_at(work->engine, slot)->for_job = 0;
    lease_stop(work, slot, change);
}

static void
lease_ignore(struct work *work, uint32_t slot, const struct lease_change *change)
{
}

/* Causes that end the job outrank those that would queue it again. */
static void
lease_stop_again(struct work *work, uint32_t slot, const struct lease_change *change)
{
    struct lease *lease = lease_at(work->engine, slot);

    BH_ASSERT(lease->stop_cause < BH_END_CAUSES && lease->waiting == BH_FX_STOP + 1);
    if (change->cause == BH_END_CANCELLED || change->cause == BH_END_TENANT_REMOVED
        || (change->cause == BH_END_DATASET && lease->stop_cause != BH_END_CANCELLED
            && lease->stop_cause != BH_END_TENANT_REMOVED))
        lease->stop_cause = (uint8_t)change->cause;
    if (change->at_once && lease->kill_ns > work->now_ns)
        lease_order_stop(work, slot);
}

/* The lease stops, and with it all others of its gang. */
static void
lease_stop_all(struct work *work, uint32_t slot, enum bh_end_cause cause)
{
    struct lease_change change = { .event = LEASE_STOP, .cause = cause };

    lease_stop(work, slot, &change);
    bh_lease_step_all(work, lease_at(work->engine, slot)->job, &change);
}

static void
lease_fail_suspend(struct work *work, uint32_t slot, const struct lease_change *change)
{
    bh_wake_window(work->engine);
    lease_stop_all(work, slot, BH_END_PREEMPTED);
}

static void
lease_fail_resume(struct work *work, uint32_t slot, const struct lease_change *change)
{
    lease_stop_all(work, slot, BH_END_RESUME_FAILED);
}

bool
bh_lease_queues_again(const struct job *job, enum bh_end_cause cause)
{
    static const bool again[BH_END_CAUSES] = {
        [BH_END_PREEMPTED] = true, [BH_END_NODE_LOST] = true,     [BH_END_GPU_LOST] = true,
        [BH_END_MOVED] = true,     [BH_END_RESUME_FAILED] = true, [BH_END_GPU_FAULT] = true,
        [BH_END_DRAINED] = true,
    };

    BH_ASSERT((uint32_t)cause < BH_END_CAUSES);
    if (cause == BH_END_START_FAILED || cause == BH_END_KEEPER_LOST)
        return job->again;
    return again[cause];
}

/* What becomes of the job when its lease ended for that cause. */
enum fate { FATE_FAILED, FATE_COMPLETED, FATE_CANCELLED, FATE_REQUEUED };

static enum fate
lease_fate_of(const struct job *job, enum bh_end_cause cause, int32_t exit_status)
{
    bool begun = cause != BH_END_START_FAILED; /* else its command never was: that is no second time */

    if (cause == BH_END_CANCELLED || cause == BH_END_TENANT_REMOVED)
        return FATE_CANCELLED;
    if (cause == BH_END_EXITED && exit_status == 0)
        return FATE_COMPLETED;
    return bh_lease_queues_again(job, cause) && !(begun && job->contract == BH_CONTRACT_NEVER) ? FATE_REQUEUED
                                                                                               : FATE_FAILED;
}

/* No lease is left: the job ends or is queued again. */
static void
lease_conclude(struct work *work, uint32_t slot, enum bh_end_cause cause, int32_t exit_status)
{
    static const uint8_t states[] = { [FATE_FAILED] = BH_JOB_FAILED,
                                      [FATE_COMPLETED] = BH_JOB_COMPLETED,
                                      [FATE_CANCELLED] = BH_JOB_CANCELLED };
    struct job *job = job_at(work->engine, slot);
    enum fate fate = lease_fate_of(job, cause, exit_status);
    bool waits = job->scratch && cause == BH_END_START_FAILED;

    BH_ASSERT(job->lease != 0 && job->state < BH_JOB_COMPLETED);
    if (cause != BH_END_PREEMPTED && cause != BH_END_MOVED)
        bh_wake_window(work->engine);
    lease_disband(work, slot);
    if (fate != FATE_REQUEUED) {
        bh_job_end(work, slot, (enum bh_job_state)states[fate], cause, exit_status);
        return;
    }
    job->restarts += !waits;
    job->retried = job->retried || (job->again && cause == BH_END_START_FAILED && !waits);
    job->again = 0;
    bh_job_requeue(work, slot, cause);
    if (waits) /* a gang: of all its nodes.  A caller that knows the node says so after this */
        bh_avoid_for_scratch(work, slot, 0, true);
}

/* The member is done and gives back what it held.  The first that did not end well says
 * what becomes of the job, and the others are stopped; the last to be done ends it. */
static void
lease_retire(struct work *work, uint32_t slot, enum bh_end_cause cause, int32_t exit_status)
{
    struct bh_engine *engine = work->engine;
    struct lease *lease = lease_at(engine, slot);
    uint32_t job_slot = lease->job;
    struct job *job = job_at(engine, job_slot);
    struct lease_change others = { .event = LEASE_STOP, .cause = cause };

    BH_ASSERT(lease->state == LEASE_DONE);
    BH_ASSERT(job->id != 0 && job->lease != 0);
    BH_ASSERT((uint32_t)cause < BH_END_CAUSES);
    lease->waiting = 0;
    lease->order = 0;
    bh_host_leave(engine, slot);
    bh_avoid_left(work, lease->node);
    lease_release_partitions(work, slot);
    if (cause == BH_END_EXITED && exit_status == 0)
        cause = BH_END_NONE;
    if (cause != BH_END_NONE && job->verdict == BH_END_NONE) {
        job->verdict = (uint8_t)cause;
        job->verdict_status = exit_status;
        bh_lease_step_all(work, job_slot, &others);
    }
    if (bh_gang_live(engine, job_slot) > 0)
        return;
    cause = job->verdict ? (enum bh_end_cause)job->verdict : BH_END_EXITED;
    lease_conclude(work, job_slot, cause, job->verdict_status);
}

/* A job that came to its end by itself while the stop was still on its way is not queued
 * again, nor cancelled.  One whose GPU was lost may have failed because of that, but what is
 * done is done: it is not run twice. */
static bool
lease_ended_first(const struct lease *lease, const struct lease_change *change)
{
    static const bool its_own[BH_END_CAUSES] = {
        [BH_END_EXITED] = true,
        [BH_END_SIGNALLED] = true,
        [BH_END_OUT_OF_MEMORY] = true,
    };
    static const bool outranked[BH_END_CAUSES] = {
        [BH_END_PREEMPTED] = true, [BH_END_RESUME_FAILED] = true, [BH_END_TIME_LIMIT] = true,
        [BH_END_CANCELLED] = true, [BH_END_DEADLINE] = true,      [BH_END_MOVED] = true,
        [BH_END_DATASET] = true,   [BH_END_DRAINED] = true,
    };

    return change->completed || (change->unasked && its_own[change->cause] && outranked[lease->stop_cause]);
}

/* Remember the job that this one, which is queued again, was stopped for. */
static void
lease_blame(const struct work *work, uint32_t slot, enum bh_end_cause cause, uint64_t for_job)
{
    struct job *job = job_at(work->engine, slot);

    job->moved = cause == BH_END_MOVED;
    job->preempted_for = job->moved || cause == BH_END_PREEMPTED ? for_job : 0;
}

/* Whether another node is up, with GPUs. */
static bool
lease_has_another(const struct bh_engine *engine, uint32_t node)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);)
        if (slot != node && node_at(engine, slot)->up && node_at(engine, slot)->gpu_count > 0)
            return true;
    return false;
}

/* The lease's job did not begin. */
static void
lease_miss_start(struct work *work, uint32_t slot, const struct lease_change *change)
{
    struct bh_engine *engine = work->engine;
    uint32_t at = lease_at(engine, slot)->job, node = lease_at(engine, slot)->node;
    struct job *job = job_at(engine, at);

    BH_ASSERT(job->lease != 0 && node_at(engine, node)->id != 0);
    bool waited = job->scratch;

    if (change->elsewhere && !change->refused && !change->scratch)
        bh_unchecked_count_failure(work, node, at);
    job->scratch = change->scratch;
    job->again =
        change->scratch
        || (change->elsewhere && !job->retried && (!change->refused || lease_has_another(engine, node)));
    lease_retire(work, slot, BH_END_START_FAILED, change->exit_status);
    node_at(engine, node)->scratch_short |= change->scratch;
    if (!change->elsewhere || job->state != BH_JOB_PENDING)
        return;
    if (change->scratch)
        bh_avoid_for_scratch(work, at, node, waited);
    else
        bh_avoid(work, at, 0, (uint32_t)node_at(engine, node)->id);
    bh_wake_window(engine); /* what it avoided before may do now */
}

/* When the node says that the lease ended: not before it began, or, where it did not, was placed. */
static uint64_t
lease_end_of(const struct work *work, const struct lease *lease, const struct lease_change *change)
{
    uint64_t began_ns = job_at(work->engine, lease->job)->started_ns;
    bool has_run = began_ns && lease->since_ns >= began_ns;

    return lease_time_of(work, change, has_run ? began_ns : lease->since_ns);
}

static void
lease_end(struct work *work, uint32_t slot, const struct lease_change *change)
{
    const struct lease *lease = lease_at(work->engine, slot);
    enum bh_end_cause cause = change->cause;

    BH_ASSERT(lease->stop_cause < BH_END_CAUSES && (uint32_t)cause < BH_END_CAUSES);
    BH_ASSERT(lease->state == LEASE_DONE);
    work->ended_ns = lease_end_of(work, lease, change);
    work->lost = change->cause == BH_END_NODE_LOST && change->at_ns == 0;
    if (lease->stop_cause != BH_END_NONE && !lease_ended_first(lease, change))
        cause = (enum bh_end_cause)lease->stop_cause;
    lease_blame(work, lease->job, cause, lease->for_job);
    if (cause == BH_END_KEEPER_LOST && !job_at(work->engine, lease->job)->verdict)
        job_at(work->engine, lease->job)->again = change->elsewhere;
    if (cause == BH_END_START_FAILED)
        lease_miss_start(work, slot, change);
    else
        lease_retire(work, slot, cause, change->exit_status);
    work->ended_ns = 0;
    work->lost = false;
}

static void
lease_abandon(struct work *work, uint32_t slot, const struct lease_change *change)
{
    BH_ASSERT(lease_at(work->engine, slot)->state == LEASE_CARVING);
    lease_blame(work, lease_at(work->engine, slot)->job, change->cause, change->for_job);
    lease_conclude(work, lease_at(work->engine, slot)->job, change->cause, 0);
}

/* One that failed where an isolation check has closed the GPU is not the job's fault: it is
 * queued again. */
static void
lease_fail_start(struct work *work, uint32_t slot, const struct lease_change *change)
{
    const struct lease *lease = lease_at(work->engine, slot);
    bool closed = false;

    for (uint32_t i = 0; i < lease->count; i++)
        closed |=
            gpu_at(work->engine, gpu_find(work->engine, lease->placements[i].gpu))->fenced == FENCE_KEEPS;
    work->ended_ns = lease_end_of(work, lease, change);
    if (closed)
        lease_retire(work, slot, BH_END_GPU_LOST, 0);
    else
        lease_miss_start(work, slot, change);
    work->ended_ns = 0;
}

static void
lease_fail_carve(struct work *work, uint32_t slot, const struct lease_change *change)
{
    struct bh_engine *engine = work->engine;
    uint32_t job_slot = lease_at(engine, slot)->job;
    struct job *job = job_at(engine, job_slot);

    BH_ASSERT(job->lease != 0 && lease_at(engine, slot)->state == LEASE_CARVING);
    lease_disband(work, job_slot);
    job->carve_failures++;
    if (job->carve_failures > CARVE_FAILURES_MAX) {
        bh_job_end(work, job_slot, BH_JOB_FAILED, BH_END_CARVE_FAILED, 0);
        return;
    }
    bh_wake_window(engine);
    bh_job_requeue(work, job_slot, BH_END_CARVE_FAILED);
    bh_avoid(work, job_slot, change->gpu, 0);
}

/* ---- all of a gang ---- */

bool
bh_lease_all_allow(const struct bh_engine *engine, uint32_t job, enum lease_event event)
{
    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        if (!bh_lease_allows(engine, at, event))
            return false;
    return true;
}

/* A cancel outranks what would queue the job again, and a time that was over, also when some
 * members have ended. */
static void
lease_outrank(struct job *job, const struct lease_change *change)
{
    if (!bh_lease_queues_again(job, (enum bh_end_cause)job->verdict) && job->verdict != BH_END_TIME_LIMIT
        && job->verdict != BH_END_DEADLINE)
        return;
    if (change->event == LEASE_STOP
        && (change->cause == BH_END_CANCELLED || change->cause == BH_END_TENANT_REMOVED
            || change->cause == BH_END_DATASET))
        job->verdict = (uint8_t)change->cause;
}

void
bh_lease_step_all(struct work *work, uint32_t job_slot, const struct lease_change *change)
{
    const struct job *job = job_at(work->engine, job_slot);
    uint32_t at = 0;

    BH_ASSERT(change->event == LEASE_STOP || change->event == LEASE_SUSPEND);
    lease_outrank(job_at(work->engine, job_slot), change);
    while (job->lease && (at = bh_gang_next(work->engine, job_slot, at)) != 0)
        bh_lease_step(work, at, change); /* one that is being carved for ends them all */
}

static bool
lease_is_carving(const struct bh_engine *engine, const struct lease *lease)
{
    for (uint32_t i = 0; i < lease->count; i++)
        if (partition_at(engine, lease->parts[i])->state == BH_PARTITION_CARVING && lease->parts[i])
            return true;
    return false;
}

void
bh_lease_proceed(struct work *work, uint32_t job)
{
    const struct bh_engine *engine = work->engine;

    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        if (lease_is_carving(engine, lease_at(engine, at)))
            return;
    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        if (bh_lease_allows(engine, at, LEASE_READY))
            bh_lease_step(work, at, &(struct lease_change){ .event = LEASE_READY });
}
