#include "engine/forecast/defrag_shift.h"

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/state/slots.h"

void
bh_shift_init(struct bh_shift *shift, const struct bh_engine *engine)
{
    struct bh_move_budget left = bh_move_left(engine, engine->core.now_ns);

    *shift = (struct bh_shift){ .engine = engine, .lost_gpu_ms = left.lost_gpu_ms };
    shift->most_jobs = left.moves < BH_MOVES_MAX ? (uint32_t)left.moves : BH_MOVES_MAX;
}

static uint32_t
defrag_shift_partitions_of(const struct bh_shift *shift, uint32_t job)
{
    return (uint32_t)job_at(shift->engine, job)->count * job_at(shift->engine, job)->gang;
}

bool
bh_shift_add(struct bh_shift *shift, uint32_t job)
{
    bh_part_ns cost;

    for (uint32_t i = 0; i < shift->job_count; i++)
        if (shift->jobs[i] == job)
            return true;
    if (shift->job_count == shift->most_jobs
        || shift->partitions + defrag_shift_partitions_of(shift, job) > BH_MOVE_PLACEMENTS_MAX
        || !bh_move_yields(shift->engine, job, shift->for_job)
        || !bh_move_allowed(shift->engine, job, shift->engine->core.now_ns))
        return false;
    cost = shift->cost + bh_move_cost(shift->engine, job);
    if (bh_move_gpu_ms(cost) >= shift->lost_gpu_ms)
        return false;
    shift->jobs[shift->job_count++] = job;
    shift->partitions += defrag_shift_partitions_of(shift, job);
    shift->cost = cost;
    return true;
}

bool
bh_shift_empty(struct bh_shift *shift, uint32_t gpu)
{
    const struct bh_engine *engine = shift->engine;

    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->lease
            && !bh_shift_add(shift, lease_at(engine, partition_at(engine, at)->lease)->job))
            return false;
    return true;
}

void
bh_shift_drop(struct bh_shift *shift, uint32_t at)
{
    BH_ASSERT(at < shift->job_count);
    shift->partitions -= defrag_shift_partitions_of(shift, shift->jobs[at]);
    shift->cost -= bh_move_cost(shift->engine, shift->jobs[at]);
    shift->jobs[at] = shift->jobs[--shift->job_count];
}

void
bh_shift_imagine(const struct bh_shift *shift, struct bh_search *search)
{
    search->gone_count = shift->job_count;
    for (uint32_t i = 0; i < shift->job_count; i++)
        search->gone[i] = shift->jobs[i];
    search->taking = shift->taking;
    search->taking_count = shift->taking_count;
}

void
bh_shift_take(struct bh_shift *shift, uint32_t job, const struct placement *placement)
{
    BH_ASSERT(shift->taking_count < BH_MOVE_PLACEMENTS_MAX);
    shift->taking[shift->taking_count++] = (struct bh_taking){ job, *placement };
}

/* ---- where to ---- */

/* Its size decides its turn: the largest goes first. */
static uint64_t
shift_size_of(const struct bh_engine *engine, uint32_t job)
{
    return bh_quota_to_resume_all(engine, job).equivalent;
}

/* The largest first, of equals the lowest id. */
static void
shift_sort_jobs(struct bh_shift *shift)
{
    const struct bh_engine *engine = shift->engine;

    for (uint32_t i = 1; i < shift->job_count; i++) {
        uint32_t job = shift->jobs[i], at = i;
        uint64_t size = shift_size_of(engine, job);

        for (; at > 0; at--) {
            uint32_t before = shift->jobs[at - 1];
            uint64_t other = shift_size_of(engine, before);

            if (other > size || (other == size && job_at(engine, before)->id < job_at(engine, job)->id))
                break;
            shift->jobs[at] = before;
        }
        shift->jobs[at] = job;
    }
}

/* The row of its SKU by which the job has what it has; false when the SKU was changed. */
static bool
defrag_shift_row_of(const struct bh_engine *engine, uint32_t slot, uint32_t *ret_row)
{
    const struct job *job = job_at(engine, slot);
    const struct sku *sku = sku_at(engine, job->sku);
    const struct placement *placement = &lease_at(engine, job->lease)->placements[0];
    uint32_t model = gpu_at(engine, gpu_find(engine, placement->gpu))->model;

    for (*ret_row = 0; *ret_row < sku->model_count; ++*ret_row)
        if (sku->models[*ret_row] == model && sku->profiles[*ret_row] == placement->profile)
            return true;
    return false;
}

static bool
shift_place_job(struct bh_shift *shift, uint32_t slot)
{
    const struct bh_engine *engine = shift->engine;
    const struct job *job = job_at(engine, slot);
    struct bh_need need = { .tenant = job->tenant,
                            .sku = job->sku,
                            .job = slot,
                            .count = job->count,
                            .gang = job->gang,
                            .avoid_gpu = shift->avoid_gpu };
    struct bh_search search = { .engine = engine,
                                .tenant = job->tenant,
                                .job = slot,
                                .past = shift->past,
                                .excluded_node = shift->excluded_node };
    struct placement placements[BH_JOB_PARTITIONS_MAX];
    struct bh_plan plan;
    uint32_t row;

    bh_shift_imagine(shift, &search);
    if (!defrag_shift_row_of(engine, slot, &row) || !bh_placement_on(&search, &need, row, 0, &plan))
        return false;
    bh_placement_list(engine, &plan, placements);
    for (uint32_t i = 0; i < plan.count; i++)
        bh_shift_take(shift, slot, &placements[i]);
    return true;
}

bool
bh_shift_place(struct bh_shift *shift)
{
    shift_sort_jobs(shift);
    for (uint32_t i = 0; i < shift->job_count; i++)
        if (!shift_place_job(shift, shift->jobs[i]))
            return false;
    return true;
}

/* ---- as an event ---- */

static void
shift_write_places(const struct bh_shift *shift, bool for_job, struct bh_ev_move *move)
{
    for (uint32_t i = 0; i < shift->taking_count; i++) {
        const struct bh_taking *taking = &shift->taking[i];

        if ((taking->job == shift->for_job) == for_job)
            move->placements[move->placement_count++] = (struct bh_move_placement){ { taking->placement.gpu },
                                                                                    taking->placement.profile,
                                                                                    taking->placement.start };
    }
}

bool
bh_shift_write(const struct bh_shift *shift, bh_part_ns gain, struct bh_ev_move *ret_move)
{
    const struct bh_engine *engine = shift->engine;
    struct bh_reason why;

    *ret_move = (struct bh_ev_move){ .for_job = { job_at(engine, shift->for_job)->id },
                                     .gain_gpu_ms = bh_move_gpu_ms(gain),
                                     .cost_gpu_ms = bh_move_gpu_ms(shift->cost) + 1 };
    for (uint32_t i = 0; i < shift->job_count; i++) {
        const struct job *job = job_at(engine, shift->jobs[i]);

        ret_move->moves[ret_move->move_count++] =
            (struct bh_moved){ { job->id }, { lease_at(engine, job->lease)->id } };
    }
    shift_write_places(shift, false, ret_move);
    shift_write_places(shift, true, ret_move);
    return bh_move_check(engine, ret_move, engine->core.now_ns, &why) == BH_OK;
}
