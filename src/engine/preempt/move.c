#include "engine/preempt/move.h"

#include "base/assert.h"
#include "engine/account/usage.h"
#include "engine/preempt/reserve.h"
#include "engine/queue/claim.h"
#include "engine/queue/lease.h"
#include "engine/queue/queue.h"
#include "engine/state/gang.h"
#include "engine/state/lease_time.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

uint64_t
bh_move_gpu_ms(bh_part_ns amount)
{
    bh_part_ns gpu_ms = amount / BH_GPU_PARTS / NS_PER_MS;

    return gpu_ms > UINT64_MAX ? UINT64_MAX : (uint64_t)gpu_ms;
}

void
bh_move_configure(struct bh_engine *engine, const struct bh_defrag *defrag)
{
    struct bh_defrag *now = &engine->core.settings.defrag;

    /* member by member: what lies between them is part of the state */
    now->mode = defrag->mode;
    now->moves = defrag->moves ? defrag->moves : BH_DEFRAG_MOVES_DEFAULT;
    now->gain_percent = defrag->gain_percent ? defrag->gain_percent : BH_DEFRAG_GAIN_DEFAULT;
    now->lost_gpu_s = defrag->lost_gpu_s ? defrag->lost_gpu_s : BH_DEFRAG_LOST_DEFAULT_GPU_S;
    now->rest_ns = defrag->rest_ns ? defrag->rest_ns : BH_DEFRAG_REST_DEFAULT_NS;
}

/* ---- which jobs ---- */

uint64_t
bh_move_last_ns(const struct job *job)
{
    return job->moved_s * NS_PER_S;
}

static bool
move_bears_a_stop(const struct job *job)
{
    return job->contract == BH_CONTRACT_CHECKPOINT
           || (job->contract == BH_CONTRACT_REQUEUE && job->kind == BH_JOB_BATCH);
}

/* The least run time that the job was promised. */
static uint64_t
move_promised_ns(const struct bh_engine *engine, const struct job *job)
{
    uint64_t most_ns = engine->core.settings.min_runtime_ns;

    for (uint32_t at = job->tenant; at; at = tenant_at(engine, at)->parent)
        if (tenant_at(engine, at)->min_runtime_ns > most_ns)
            most_ns = tenant_at(engine, at)->min_runtime_ns;
    return most_ns;
}

bool
bh_move_allowed(const struct bh_engine *engine, uint32_t slot, uint64_t now_ns)
{
    const struct job *job = job_at(engine, slot);
    uint64_t rest_ns = engine->core.settings.defrag.rest_ns, promise_ns;
    struct bh_reason why;

    if (!job->lease || !move_bears_a_stop(job) || job->deadline_ns
        || !bh_gang_all(engine, slot, LEASE_RUNNING) || bh_gang_live(engine, slot) != job->gang
        || (job->moved_s && now_ns < bh_move_last_ns(job) + rest_ns)
        || bh_usage_exhausted(engine, job->tenant, &why))
        return false;
    promise_ns = move_promised_ns(engine, job);
    for (uint32_t at = 0; (at = bh_gang_next(engine, slot, at)) != 0;)
        if (now_ns - lease_at(engine, at)->since_ns < promise_ns)
            return false;
    return true;
}

bool
bh_move_yields(const struct bh_engine *engine, uint32_t slot, uint32_t for_job)
{
    uint32_t most = for_job ? job_at(engine, for_job)->priority : BH_PRIORITY_NORMAL;

    return job_at(engine, slot)->priority <= most;
}

bh_part_ns
bh_move_cost(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot);
    bh_part_ns cost = 0;

    for (uint32_t at = 0; (at = bh_gang_next(engine, slot, at)) != 0;) {
        uint64_t lost_ns =
            job->contract == BH_CONTRACT_CHECKPOINT ? job->grace_ns : bh_lease_ran_ns(engine, at);

        cost += (bh_part_ns)bh_quota_to_resume(engine, at).equivalent
                * ((bh_part_ns)lost_ns + BH_MOVE_RESTART_NS);
    }
    return cost;
}

bool
bh_move_underway(const struct bh_engine *engine, uint32_t slot)
{
    const struct job *job = job_at(engine, slot);
    uint32_t first = bh_gang_next(engine, slot, 0);

    if (job->lease)
        return first && lease_at(engine, first)->state == LEASE_STOPPING
               && lease_at(engine, first)->stop_cause == BH_END_MOVED;
    if (job->cause != BH_END_MOVED)
        return false;
    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++)
        if (engine->core.claims[i].job == slot && engine->core.claims[i].at_ns == 0)
            return true;
    return false;
}

/* ---- the budget ---- */

/* Whether the hour that is counted in is over. */
static bool
move_is_over(const struct core *core, uint64_t now_ns)
{
    return core->moves_began_ns == 0 || now_ns - core->moves_began_ns >= BH_MOVE_PERIOD_NS;
}

static uint64_t
move_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

struct bh_move_budget
bh_move_left(const struct bh_engine *engine, uint64_t now_ns)
{
    const struct core *core = &engine->core;
    const struct bh_defrag *defrag = &core->settings.defrag;
    struct bh_move_budget left = { defrag->moves, defrag->lost_gpu_s * 1000, 0 };

    if (move_is_over(core, now_ns))
        return left;
    left.moves = move_less(left.moves, core->moves);
    left.lost_gpu_ms = move_less(left.lost_gpu_ms, core->moves_lost_gpu_ms);
    left.ends_ns = core->moves_began_ns + BH_MOVE_PERIOD_NS;
    return left;
}

/* ---- whether it can be done ---- */

/* A plan on its way through the checks. */
struct checking {
    const struct bh_engine *engine;
    const struct bh_ev_move *move;
    uint32_t jobs[BH_MOVES_MAX]; /* slots of the moved */
    uint32_t for_job;            /* slot, or 0 */
    uint32_t reserved;           /* its reservation, as a set of claims */
    struct bh_taking taking[BH_MOVE_PLACEMENTS_MAX];
    uint32_t taking_count;
};

static uint32_t
move_partitions_of(const struct job *job)
{
    return (uint32_t)job->count * job->gang;
}

static bh_rc
move_stale(bh_job_id job, struct bh_reason *ret_why)
{
    *ret_why = (struct bh_reason){ .code = BH_REASON_DEFRAG_STALE, .job = job };
    return BH_CONFLICT;
}

static bh_rc
move_check_range(const struct bh_ev_move *move, struct bh_reason *ret_why)
{
    *ret_why = (struct bh_reason){ .code = BH_REASON_OUT_OF_RANGE,
                                   .wanted = move->move_count,
                                   .limit = BH_MOVES_MAX };
    if (move->move_count == 0 || move->move_count > BH_MOVES_MAX
        || move->placement_count > BH_MOVE_PLACEMENTS_MAX)
        return BH_RANGE;
    for (uint32_t i = 0; i < move->placement_count; i++)
        if (move->placements[i].start > UINT16_MAX)
            return BH_RANGE;
    return BH_OK;
}

static bh_rc
move_check_worth(const struct bh_engine *engine, const struct bh_ev_move *move, uint64_t now_ns,
                 struct bh_reason *ret_why)
{
    const struct bh_defrag *defrag = &engine->core.settings.defrag;
    struct bh_move_budget left = bh_move_left(engine, now_ns);
    uint64_t percent = defrag->gain_percent;

    *ret_why = (struct bh_reason){ .code = BH_REASON_DEFRAG_OFF };
    if (defrag->mode == BH_DEFRAG_OFF)
        return BH_CONFLICT;
    *ret_why = (struct bh_reason){ .code = BH_REASON_DEFRAG_GAIN,
                                   .used = move->gain_gpu_ms,
                                   .wanted = move->cost_gpu_ms };
    if ((bh_part_ns)move->gain_gpu_ms * 100 < (bh_part_ns)move->cost_gpu_ms * percent)
        return BH_CONFLICT;
    *ret_why = (struct bh_reason){ .code = BH_REASON_DEFRAG_BUDGET,
                                   .limit = defrag->moves,
                                   .used = move_less(defrag->moves, left.moves),
                                   .wanted = move->move_count,
                                   .frees_at_ns = left.ends_ns };
    if (move->move_count > left.moves)
        return BH_CONFLICT;
    ret_why->limit = defrag->lost_gpu_s * 1000;
    ret_why->used = move_less(ret_why->limit, left.lost_gpu_ms);
    ret_why->wanted = move->cost_gpu_ms;
    return move->cost_gpu_ms > left.lost_gpu_ms ? BH_CONFLICT : BH_OK;
}

/* The named jobs exist, each once, may be moved, and have placements. */
static bh_rc
move_check_jobs(struct checking *c, uint64_t now_ns, struct bh_reason *ret_why)
{
    const struct bh_engine *engine = c->engine;
    const struct bh_ev_move *move = c->move;
    uint32_t placements = 0;

    c->for_job = job_find(engine, move->for_job.v);
    for (uint32_t i = 0; i < move->move_count; i++) {
        uint32_t slot = job_find(engine, move->moves[i].job.v);
        bool again = false;

        for (uint32_t k = 0; k < i; k++)
            again = again || c->jobs[k] == slot;
        if (!slot || again || !bh_move_allowed(engine, slot, now_ns)
            || !bh_move_yields(engine, slot, c->for_job)
            || lease_at(engine, job_at(engine, slot)->lease)->id != move->moves[i].lease.v)
            return move_stale(move->moves[i].job, ret_why);
        c->jobs[i] = slot;
        placements += move_partitions_of(job_at(engine, slot));
    }
    if (move->for_job.v
        && (!c->for_job || !job_at(engine, c->for_job)->class || job_at(engine, c->for_job)->hold))
        return move_stale(move->for_job, ret_why);
    placements += c->for_job ? move_partitions_of(job_at(engine, c->for_job)) : 0;
    return placements == move->placement_count ? BH_OK : move_stale(move->for_job, ret_why);
}

/* Whether the SKU can be kept there, all partitions of a member on one node. */
static bool
move_meets_sku(const struct bh_engine *engine, uint32_t slot, const struct bh_move_placement *placements)
{
    const struct job *job = job_at(engine, slot);
    const struct sku *sku = sku_at(engine, job->sku);

    for (uint32_t i = 0; i < move_partitions_of(job); i++) {
        uint32_t gpu = gpu_find(engine, placements[i].gpu.v);
        uint32_t lead = gpu_find(engine, placements[i - i % job->count].gpu.v);
        bool kept = false;

        for (uint32_t row = 0; gpu && row < sku->model_count; row++)
            kept = kept
                   || (sku->profiles[row] == placements[i].profile
                       && bh_placement_serves(engine, gpu_at(engine, gpu), job->tenant, sku, row));
        if (!kept || gpu_at(engine, gpu)->node != gpu_at(engine, lead)->node
            || gpu_at(engine, gpu)->model != gpu_at(engine, gpu_find(engine, placements[0].gpu.v))->model)
            return false;
    }
    return true;
}

/* What the job would use on those places. */
static struct bh_wanted
move_wanted_there(const struct bh_engine *engine, uint32_t slot, const struct bh_move_placement *placements)
{
    const struct job *job = job_at(engine, slot);
    struct bh_wanted wanted = {
        .tenant = job->tenant,
        .sku = job->sku,
        .count = move_partitions_of(job),
        .principal = job->principal,
        .model = gpu_at(engine, gpu_find(engine, placements[0].gpu.v))->model,
    };

    for (uint32_t i = 0; i < wanted.count; i++)
        wanted.equivalent += bh_quota_equivalent(placements[i].profile, 1);
    return wanted;
}

/* Whether the placements are free for the job with all moving jobs gone, beside what the jobs checked before
 * take; they count as taken from then on. */
static bool
move_acquire_placements(struct checking *c, struct bh_search *search,
                        const struct bh_move_placement *placements)
{
    uint32_t count = move_partitions_of(job_at(c->engine, search->job));
    struct placement at[BH_MOVE_PLACEMENTS_MAX];

    search->taking = c->taking;
    search->taking_count = c->taking_count;
    search->gone_count = c->move->move_count;
    for (uint32_t i = 0; i < search->gone_count; i++)
        search->gone[i] = c->jobs[i];
    for (uint32_t i = 0; i < count; i++)
        at[i] = (struct placement){ placements[i].gpu.v, placements[i].profile, placements[i].start };
    if (!bh_placement_possible(search, at, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        c->taking[c->taking_count++] = (struct bh_taking){ search->job, at[i] };
    return true;
}

/* Capacity for the job that the moves are for: beside all jobs that are there, as far as limits allow. */
static bool
move_check_for_job(struct checking *c, const struct bh_move_placement *placements)
{
    const struct bh_engine *engine = c->engine;
    struct bh_queue_entry entry;
    struct bh_search search;
    struct bh_wanted wanted;

    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        if (engine->core.claims[i].job != c->for_job)
            continue;
        if (engine->core.claims[i].at_ns == 0)
            return false; /* others make room for it already */
        c->reserved = 1u << i;
    }
    if (!move_meets_sku(engine, c->for_job, placements))
        return false;
    bh_queue_entry_of_job(engine, c->for_job, &entry);
    search = bh_reserve_search(engine, &entry, c->for_job);
    search.closed = 0;
    wanted = move_wanted_there(engine, c->for_job, placements);
    return bh_quota_permits(&search, &wanted) && move_acquire_placements(c, &search, placements);
}

static bool
move_check_moved(struct checking *c, uint32_t slot, const struct bh_move_placement *placements)
{
    const struct bh_engine *engine = c->engine;
    struct bh_search search = { .engine = engine,
                                .tenant = job_at(engine, slot)->tenant,
                                .job = slot,
                                .past = c->reserved,
                                .gone_count = 1,
                                .gone = { slot } };
    struct bh_wanted wanted;

    if (!move_meets_sku(engine, slot, placements))
        return false;
    wanted = move_wanted_there(engine, slot, placements);
    return bh_quota_permits(&search, &wanted) && move_acquire_placements(c, &search, placements);
}

static uint32_t
move_claims_needed(const struct checking *c)
{
    return c->move->move_count + (c->for_job != 0 && c->reserved == 0);
}

bh_rc
bh_move_check(const struct bh_engine *engine, const struct bh_ev_move *move, uint64_t now_ns,
              struct bh_reason *ret_why)
{
    struct checking c = { .engine = engine, .move = move };
    const struct bh_move_placement *placements = move->placements;
    bh_rc rc = move_check_range(move, ret_why);

    if (rc != BH_OK)
        return rc;
    rc = move_check_worth(engine, move, now_ns, ret_why);
    if (rc != BH_OK)
        return rc;
    rc = move_check_jobs(&c, now_ns, ret_why);
    if (rc != BH_OK)
        return rc;
    if (c.for_job
        && !move_check_for_job(
            &c, &placements[move->placement_count - move_partitions_of(job_at(engine, c.for_job))]))
        return move_stale(move->for_job, ret_why);
    for (uint32_t i = 0; i < move->move_count; i++) {
        if (!move_check_moved(&c, c.jobs[i], placements))
            return move_stale(move->moves[i].job, ret_why);
        placements += move_partitions_of(job_at(engine, c.jobs[i]));
    }
    if (engine->core.claim_count + move_claims_needed(&c) > CLAIMS_MAX)
        return move_stale(move->for_job, ret_why);
    *ret_why = (struct bh_reason){ 0 };
    return BH_OK;
}

/* ---- doing it ---- */

/* Keep the places for the job. */
static void
move_claim_places(struct bh_engine *engine, uint32_t slot, const struct bh_move_placement *placements)
{
    uint32_t at = 0, count = move_partitions_of(job_at(engine, slot));
    struct claim *claim;

    bh_claim_drop_all(engine, slot); /* what was reserved for it */
    while (engine->core.claims[at].job != 0)
        at++;
    BH_ASSERT(at < CLAIMS_MAX);
    claim = &engine->core.claims[at];
    claim->job = slot;
    for (uint32_t i = 0; i < count; i++) {
        claim->placements[claim->count++] =
            (struct placement){ placements[i].gpu.v, placements[i].profile, placements[i].start };
        claim->equivalent += bh_quota_equivalent(placements[i].profile, 1);
        gpu_at(engine, gpu_find(engine, placements[i].gpu.v))->claimed++;
    }
    engine->core.claim_count++;
}

static void
count_moves(struct core *core, const struct bh_ev_move *move)
{
    if (move_is_over(core, core->now_ns)) {
        core->moves_began_ns = core->now_ns;
        core->moves = 0;
        core->moves_lost_gpu_ms = 0;
    }
    core->moves += move->move_count;
    core->moves_lost_gpu_ms += move->cost_gpu_ms;
}

void
bh_move_run(struct work *work, const struct bh_ev_move *move)
{
    struct bh_engine *engine = work->engine;
    const struct bh_move_placement *placements = move->placements;
    struct lease_change change = { .event = LEASE_STOP, .cause = BH_END_MOVED, .for_job = move->for_job.v };
    uint32_t for_job = job_find(engine, move->for_job.v);

    BH_ASSERT(move->move_count > 0);
    for (uint32_t i = 0; i < move->move_count; i++) {
        uint32_t slot = job_find(engine, move->moves[i].job.v);

        move_claim_places(engine, slot, placements);
        placements += move_partitions_of(job_at(engine, slot));
        job_at(engine, slot)->moved_s = (uint32_t)((work->now_ns + NS_PER_S - 1) / NS_PER_S);
        bh_lease_step_all(work, slot, &change);
    }
    if (for_job)
        move_claim_places(engine, for_job, placements);
    count_moves(&engine->core, move);
    bh_wake_below(engine, 0); /* capacity is kept, and will come free, for any job */
    bh_wake_queue(engine);
}
