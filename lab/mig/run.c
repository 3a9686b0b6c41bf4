#include "lab/mig/run.h"

#include <math.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/splitmix.h"

struct mig_job {
    double end;
    struct bh_mig_placement placement;
    uint32_t kind;
};

struct run_state {
    const struct bh_mig_run *plan;
    struct bh_mig_fleet *fleet;
    uint64_t random;
    struct mig_job *jobs; /* a heap, soonest end first */
    uint32_t job_count;
    double now, since, slice_time; /* since: of the count; slice_time: used since then */
    uint32_t used;                 /* slices */
};

static double
run_draw(struct run_state *run)
{
    return ((double)(bh_splitmix_next(&run->random) >> 11) + 0.5) * 0x1p-53;
}

static uint32_t
run_slices_of(const struct run_state *run, uint32_t kind)
{
    return bh_mig_fleet_profile(run->fleet, kind)->compute_slices;
}

/* ---- jobs by their end ---- */

static void
run_push(struct run_state *run, const struct mig_job *job)
{
    uint32_t at = run->job_count++;

    for (; at > 0 && run->jobs[(at - 1) / 2].end > job->end; at = (at - 1) / 2)
        run->jobs[at] = run->jobs[(at - 1) / 2];
    run->jobs[at] = *job;
}

static struct mig_job
run_pop(struct run_state *run)
{
    struct mig_job first = run->jobs[0], last = run->jobs[--run->job_count];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < run->job_count && run->jobs[child + 1].end < run->jobs[child].end)
            child++;
        if (child >= run->job_count || run->jobs[child].end >= last.end)
            break;
        run->jobs[at] = run->jobs[child];
        at = child;
    }
    run->jobs[at] = last;
    return first;
}

/* ---- what happens ---- */

static void
run_advance(struct run_state *run, double now)
{
    run->slice_time += run->used * (now - run->now);
    run->now = now;
}

static void
run_end_jobs(struct run_state *run, double now)
{
    while (run->job_count > 0 && run->jobs[0].end <= now) {
        struct mig_job job = run_pop(run);

        run_advance(run, job.end);
        run->used -= run_slices_of(run, job.kind);
        bh_mig_fleet_end(run->fleet, job.kind, &job.placement);
    }
    run_advance(run, now);
}

static uint32_t
run_draw_kind(struct run_state *run)
{
    const uint32_t *weights = run->plan->mix->weights;
    double sum = 0, below = 0;
    uint32_t kind = 0;

    for (uint32_t i = 0; i < BH_MIG_FLEET_PROFILES; i++)
        sum += weights[i];
    sum *= run_draw(run);
    for (; kind < BH_MIG_FLEET_PROFILES - 1; kind++) {
        below += weights[kind];
        if (below > sum)
            break;
    }
    return kind;
}

static double
run_rate_of(const struct run_state *run)
{
    const uint32_t *weights = run->plan->mix->weights;
    double slices = 0, sum = 0;

    for (uint32_t kind = 0; kind < BH_MIG_FLEET_PROFILES; kind++) {
        slices += (double)weights[kind] * run_slices_of(run, kind);
        sum += weights[kind];
    }
    return run->plan->load * run->plan->gpus * bh_model_facts(run->plan->model)->compute_slices * sum
           / slices;
}

static void
run_arrive(struct run_state *run, double rate, bool counted, struct bh_mig_outcome *outcome)
{
    double now = run->now - log(run_draw(run)) / rate;
    struct mig_job job = { .kind = run_draw_kind(run) };
    double life = -log(run_draw(run));
    bool placed;

    run_end_jobs(run, now);
    placed = bh_mig_fleet_place(run->fleet, job.kind, &job.placement);
    if (placed) {
        job.end = now + life;
        run->used += run_slices_of(run, job.kind);
        run_push(run, &job);
    }
    outcome->asked[job.kind] += counted;
    outcome->refused[job.kind] += counted && !placed;
}

static void
run_sum_up(const struct run_state *run, struct bh_mig_outcome *outcome)
{
    double asked = 0, refused = 0, span = run->now - run->since;
    double slices = bh_model_facts(run->plan->model)->compute_slices;

    for (uint32_t kind = 0; kind < BH_MIG_FLEET_PROFILES; kind++) {
        asked += (double)outcome->asked[kind] * run_slices_of(run, kind);
        refused += (double)outcome->refused[kind] * run_slices_of(run, kind);
    }
    outcome->acceptance = asked > 0 ? 1 - refused / asked : 1;
    if (span > 0)
        outcome->utilisation = run->slice_time / span / (slices * run->plan->gpus);
}

struct bh_mig_outcome
bh_mig_run_play(const struct bh_mig_run *plan)
{
    uint32_t slices = plan->gpus * bh_model_facts(plan->model)->compute_slices;
    struct run_state run = { .plan = plan, .random = plan->seed };
    struct bh_mig_outcome outcome = { .acceptance = 0 };
    double rate;

    run.jobs = calloc(slices, sizeof(*run.jobs)); /* each job takes a slice */
    BH_ASSERT(run.jobs && plan->load > 0);
    run.fleet = bh_mig_fleet_new(plan->model, plan->gpus, plan->policy, plan->mix);
    rate = run_rate_of(&run);
    for (uint32_t i = 0; i < plan->arrivals; i++) {
        run_arrive(&run, rate, i >= plan->arrivals / 4, &outcome);
        if (i + 1 == plan->arrivals / 4) {
            run.since = run.now;
            run.slice_time = 0;
        }
    }
    run_sum_up(&run, &outcome);
    bh_mig_fleet_free(run.fleet);
    free(run.jobs);
    return outcome;
}
