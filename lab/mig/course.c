#include "lab/mig/course.h"

#include <math.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/splitmix.h"

struct course_job {
    double end;
    struct bh_mig_spot spot;
    uint32_t kind;
};

struct course {
    const struct bh_mig_course *plan;
    struct bh_mig_fleet *fleet;
    uint64_t random;
    struct course_job *jobs; /* a heap, soonest end first */
    uint32_t job_count;
    double now, since, slice_time; /* since: of the count; slice_time: used since then */
    uint32_t used;                 /* slices */
};

static double
course_draw(struct course *course)
{
    return ((double)(bh_splitmix_next(&course->random) >> 11) + 0.5) * 0x1p-53;
}

static uint32_t
course_slices_of(const struct course *course, uint32_t kind)
{
    return bh_mig_fleet_profile(course->fleet, kind)->compute_slices;
}

/* ---- jobs by their end ---- */

static void
course_push(struct course *course, const struct course_job *job)
{
    uint32_t at = course->job_count++;

    for (; at > 0 && course->jobs[(at - 1) / 2].end > job->end; at = (at - 1) / 2)
        course->jobs[at] = course->jobs[(at - 1) / 2];
    course->jobs[at] = *job;
}

static struct course_job
course_pop(struct course *course)
{
    struct course_job first = course->jobs[0], last = course->jobs[--course->job_count];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < course->job_count && course->jobs[child + 1].end < course->jobs[child].end)
            child++;
        if (child >= course->job_count || course->jobs[child].end >= last.end)
            break;
        course->jobs[at] = course->jobs[child];
        at = child;
    }
    course->jobs[at] = last;
    return first;
}

/* ---- the course of things ---- */

static void
course_advance(struct course *course, double now)
{
    course->slice_time += course->used * (now - course->now);
    course->now = now;
}

static void
course_end_jobs(struct course *course, double now)
{
    while (course->job_count > 0 && course->jobs[0].end <= now) {
        struct course_job job = course_pop(course);

        course_advance(course, job.end);
        course->used -= course_slices_of(course, job.kind);
        bh_mig_fleet_end(course->fleet, job.kind, &job.spot);
    }
    course_advance(course, now);
}

static uint32_t
course_draw_kind(struct course *course)
{
    const uint32_t *weights = course->plan->mix->weights;
    double sum = 0, below = 0;
    uint32_t kind = 0;

    for (uint32_t i = 0; i < BH_MIG_FLEET_PROFILES; i++)
        sum += weights[i];
    sum *= course_draw(course);
    for (; kind < BH_MIG_FLEET_PROFILES - 1; kind++) {
        below += weights[kind];
        if (below > sum)
            break;
    }
    return kind;
}

static double
course_rate_of(const struct course *course)
{
    const uint32_t *weights = course->plan->mix->weights;
    double slices = 0, sum = 0;

    for (uint32_t kind = 0; kind < BH_MIG_FLEET_PROFILES; kind++) {
        slices += (double)weights[kind] * course_slices_of(course, kind);
        sum += weights[kind];
    }
    return course->plan->load * course->plan->gpus * bh_model_facts(course->plan->model)->compute_slices * sum
           / slices;
}

static void
course_arrive(struct course *course, double rate, bool counted, struct bh_mig_outcome *outcome)
{
    double now = course->now - log(course_draw(course)) / rate;
    struct course_job job = { .kind = course_draw_kind(course) };
    double life = -log(course_draw(course));
    bool placed;

    course_end_jobs(course, now);
    placed = bh_mig_fleet_place(course->fleet, job.kind, &job.spot);
    if (placed) {
        job.end = now + life;
        course->used += course_slices_of(course, job.kind);
        course_push(course, &job);
    }
    outcome->asked[job.kind] += counted;
    outcome->refused[job.kind] += counted && !placed;
}

static void
course_sum_up(const struct course *course, struct bh_mig_outcome *outcome)
{
    double asked = 0, refused = 0, span = course->now - course->since;
    double slices = bh_model_facts(course->plan->model)->compute_slices;

    for (uint32_t kind = 0; kind < BH_MIG_FLEET_PROFILES; kind++) {
        asked += (double)outcome->asked[kind] * course_slices_of(course, kind);
        refused += (double)outcome->refused[kind] * course_slices_of(course, kind);
    }
    outcome->acceptance = asked > 0 ? 1 - refused / asked : 1;
    if (span > 0)
        outcome->utilisation = course->slice_time / span / (slices * course->plan->gpus);
}

struct bh_mig_outcome
bh_mig_course_run(const struct bh_mig_course *plan)
{
    uint32_t slices = plan->gpus * bh_model_facts(plan->model)->compute_slices;
    struct course course = { .plan = plan, .random = plan->seed };
    struct bh_mig_outcome outcome = { .acceptance = 0 };
    double rate;

    course.jobs = calloc(slices, sizeof(*course.jobs)); /* each job takes a slice */
    BH_ASSERT(course.jobs && plan->load > 0);
    course.fleet = bh_mig_fleet_new(plan->model, plan->gpus, plan->policy, plan->mix);
    rate = course_rate_of(&course);
    for (uint32_t i = 0; i < plan->arrivals; i++) {
        course_arrive(&course, rate, i >= plan->arrivals / 4, &outcome);
        if (i + 1 == plan->arrivals / 4) {
            course.since = course.now;
            course.slice_time = 0;
        }
    }
    course_sum_up(&course, &outcome);
    bh_mig_fleet_free(course.fleet);
    free(course.jobs);
    return outcome;
}
