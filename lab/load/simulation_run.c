#include "lab/load/simulation_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/state/state.h"
#include "base/assert.h"
#include "base/time.h"
#include "lab/load/agenda.h"
#include "lab/load/record_writer.h"
#include "lab/load/simulated_forecast.h"

enum { ANSWERS_AT_ONCE_MAX = 10000000 }; /* steps without time passing: it does not rest */

/* The engine's clock is here when the run begins: 0 means "never" to it. */
static const uint64_t epoch_ns = BH_NS_PER_S;

/* What is in the agenda: answers are numbered by the effect that they answer. */
enum { DUE_DONE = BH_EFFECT_KINDS };

/* A job under way. */
struct simulation_job {
    uint64_t parts;    /* that it holds while it runs */
    uint64_t done_ns;  /* work before since_ns */
    uint64_t since_ns; /* when it last began or resumed */
    uint64_t *leases;  /* of its members, as they were ordered to start */
    uint32_t lease_count;
    uint32_t tenant; /* number in the plan */
    uint32_t epoch;  /* moves when it stops running: its end is then not due */
    bool runs;
};

struct driver {
    const struct bh_simulation_plan *plan;
    struct bh_simulation_run *run;
    struct bh_state state;
    struct bh_agenda *agenda;
    struct bh_simulated_forecast forecast;
    struct bh_record_writer *writer; /* NULL: records are not written */
    struct simulation_job *jobs;
    uint64_t *leases;      /* room for all jobs' leases */
    uint64_t *gpu_free_ns; /* by GPU id: when its last order is done */
    uint32_t *tenants;     /* numbers in the plan, by id */
    uint64_t now_ns, seq;
    uint32_t next_job; /* to be submitted */
    struct bh_step step;
    struct bh_err *err;
};

/* ---- steps ---- */

static void
simulation_count_step(struct bh_simulation_run *run, uint64_t span_ns)
{
    uint32_t bucket = 0;
    int high = span_ns > 4 ? 63 - __builtin_clzll(span_ns) : 0;

    if (high)
        bucket = (uint32_t)high * 4 + (uint32_t)(span_ns >> (high - 2) & 3);
    run->wall_steps[bucket < BH_SIMULATION_BUCKETS ? bucket : BH_SIMULATION_BUCKETS - 1]++;
    run->wall_step_ns += span_ns;
    if (span_ns > run->wall_slowest_ns)
        run->wall_slowest_ns = span_ns;
    run->steps++;
}

static bh_rc
simulation_write_record(struct driver *driver, const struct bh_event *event)
{
    uint64_t began_ns = bh_time_monotonic();
    bh_rc rc = bh_record_writer_write(driver->writer, event, &driver->step, driver->err);

    driver->run->wall_encode_ns += bh_time_monotonic() - began_ns;
    return rc;
}

static bh_rc
simulation_check(const struct driver *driver)
{
    uint32_t every = driver->plan->check_every;
    char broken[200] = "";

    if (every == 0 || driver->run->steps % every != 0)
        return BH_OK;
    if (bh_engine_check(driver->state.engine, broken, sizeof broken))
        return BH_OK;
    return bh_err_set(driver->err, BH_BUG, "invariant broken after step %" PRIu64 ": %s", driver->run->steps,
                      broken);
}

static bh_rc simulation_release_effects(struct driver *driver);

/* One event through the engine, and what follows from it: as the owner thread does. */
static bh_rc
simulation_send(struct driver *driver, struct bh_event *event)
{
    size_t bytes = driver->state.bytes;
    uint64_t began_ns;
    bh_rc rc;

    event->now_ns = epoch_ns + driver->now_ns;
    event->seq = driver->seq + 1;
    began_ns = bh_time_monotonic();
    rc = bh_state_step(&driver->state, event, &driver->step);
    simulation_count_step(driver->run, bh_time_monotonic() - began_ns);
    driver->run->grown += driver->state.bytes != bytes;
    if (rc != BH_OK)
        return bh_err_set(driver->err, rc, "%s refused: %s", bh_event_names[event->kind],
                          bh_reason_names[driver->step.verdict.code]);
    driver->seq++;
    driver->run->decisions += driver->step.decision_count;
    if (driver->writer)
        rc = simulation_write_record(driver, event);
    if (rc == BH_OK)
        rc = simulation_check(driver);
    return rc == BH_OK ? simulation_release_effects(driver) : rc;
}

/* An answer that no longer fits answers an older question: the daemon drops it. */
static bh_rc
simulation_send_answer(struct driver *driver, struct bh_event *event)
{
    bh_rc rc = simulation_send(driver, event);

    if (rc != BH_CONFLICT && rc != BH_NOT_FOUND)
        return rc;
    driver->run->late++;
    driver->step.more = false;
    return BH_OK;
}

/* ---- what becomes of jobs ---- */

static int64_t
simulation_parts_of(const struct simulation_job *job)
{
    return (int64_t)job->parts;
}

/* It runs no more, for now or for ever; its work stays. */
static void
simulation_pause(struct driver *driver, struct simulation_job *job)
{
    if (!job->runs)
        return;
    job->runs = false;
    job->done_ns += driver->now_ns - job->since_ns;
    job->epoch++;
    bh_meter_add(driver->run->meter, job->tenant, driver->now_ns, -simulation_parts_of(job), 0);
}

static void
simulation_lose_work(struct driver *driver, struct simulation_job *job, struct bh_simulation_end *end)
{
    simulation_pause(driver, job);
    end->lost += (bh_part_ns)job->parts * job->done_ns;
    job->done_ns = 0;
}

static void
simulation_resume(struct driver *driver, struct simulation_job *job, struct bh_simulation_end *end)
{
    uint32_t index = (uint32_t)(job - driver->jobs);
    uint64_t left_ns = driver->plan->jobs[index].work_ns - job->done_ns;

    if (job->runs)
        return;
    if (job->done_ns == 0)
        end->last_start_ns = driver->now_ns;
    if (end->first_start_ns == UINT64_MAX)
        end->first_start_ns = driver->now_ns;
    job->runs = true;
    job->since_ns = driver->now_ns;
    bh_meter_add(driver->run->meter, job->tenant, driver->now_ns, simulation_parts_of(job), 0);
    bh_agenda_add(driver->agenda,
                  &(struct bh_agenda_entry){ driver->now_ns + left_ns, index, DUE_DONE, job->epoch });
}

static void
simulation_report_progress(const struct driver *driver)
{
    uint32_t every = driver->plan->job_count / 100 + 1;

    if (driver->plan->progress && driver->run->ended % every == 0)
        driver->plan->progress(driver->plan->self, driver->run->ended);
}

static void
simulation_finish(struct driver *driver, struct simulation_job *job, struct bh_simulation_end *end,
                  enum bh_end_cause cause)
{
    if (end->end_ns != UINT64_MAX)
        return;
    if (cause == BH_END_EXITED)
        simulation_pause(driver, job);
    else
        simulation_lose_work(driver, job, end);
    bh_meter_add(driver->run->meter, job->tenant, driver->now_ns, 0, -simulation_parts_of(job));
    end->end_ns = driver->now_ns;
    end->cause = cause;
    driver->run->makespan_ns = driver->now_ns;
    driver->run->ended++;
    simulation_report_progress(driver);
}

/* A job is reported pending, or starting anew, though it was under way. */
static void
simulation_requeue(struct driver *driver, struct simulation_job *job, struct bh_simulation_end *end)
{
    job->lease_count = 0;
    if (!job->runs && job->done_ns == 0)
        return;
    simulation_lose_work(driver, job, end);
    end->preemptions++;
    driver->run->preemptions++;
}

static void
simulation_suspend(struct driver *driver, struct simulation_job *job, struct bh_simulation_end *end)
{
    if (!job->runs)
        return;
    simulation_pause(driver, job);
    end->suspensions++;
}

static void
simulation_apply_job_state(struct driver *driver, const struct bh_effect *effect)
{
    uint32_t index = (uint32_t)(effect->job.v - 1);
    struct simulation_job *job = &driver->jobs[index];
    struct bh_simulation_end *end = &driver->run->ends[index];

    switch (effect->state) {
    case BH_JOB_PENDING:
    case BH_JOB_STARTING:
        simulation_requeue(driver, job, end);
        break;
    case BH_JOB_RUNNING:
        simulation_resume(driver, job, end);
        break;
    case BH_JOB_SUSPENDED:
    case BH_JOB_RESUMING:
        simulation_suspend(driver, job, end);
        break;
    case BH_JOB_COMPLETED:
    case BH_JOB_FAILED:
    case BH_JOB_CANCELLED:
        simulation_finish(driver, job, end, effect->cause);
        break;
    case BH_JOB_SUSPENDING: /* it still runs */
    case BH_JOB_STOPPING:
    case BH_JOB_STATES:
        break;
    }
}

/* ---- orders and their answers ---- */

/* A member's lease is ordered to start: it has to end when the work is done. */
static void
simulation_note_lease(struct driver *driver, const struct bh_effect *effect)
{
    uint32_t index = (uint32_t)(effect->job.v - 1);
    struct simulation_job *job = &driver->jobs[index];

    BH_ASSERT(effect->job.v > 0 && effect->job.v <= driver->plan->job_count);
    if (job->lease_count == bh_simulation_job_members(&driver->plan->jobs[index]))
        simulation_requeue(driver, job, &driver->run->ends[index]); /* and begun anew in one step */
    job->leases[job->lease_count++] = effect->lease.v;
}

/* A GPU is worked on by one order after the other: a CARVE relies on the DESTROYs before
 * it. */
static void
simulation_order(struct driver *driver, const struct bh_effect *effect)
{
    bool partition = effect->kind == BH_FX_CARVE || effect->kind == BH_FX_DESTROY;
    struct bh_agenda_entry entry = { .due_ns = driver->now_ns,
                                     .kind = effect->kind,
                                     .subject = effect->lease.v };

    if (effect->kind == BH_FX_RESET || effect->kind == BH_FX_TEST)
        entry.subject = effect->partition.gpu.v;
    if (partition) {
        uint64_t *free_ns = &driver->gpu_free_ns[effect->partition.gpu.v];

        entry.subject = effect->partition.partition.v;
        if (*free_ns > entry.due_ns)
            entry.due_ns = *free_ns;
        *free_ns = entry.due_ns + driver->plan->delays_ns[effect->kind];
    }
    entry.due_ns += driver->plan->delays_ns[effect->kind];
    bh_agenda_add(driver->agenda, &entry);
}

/* Reports on jobs come first: one that begins anew forgets its leases before it gets the
 * next. */
static bh_rc
simulation_release_effects(struct driver *driver)
{
    for (uint32_t i = 0; i < driver->step.effect_count; i++) {
        const struct bh_effect *effect = &driver->step.effects[i];

        if (effect->kind != BH_FX_JOB)
            continue;
        if (effect->job.v == 0 || effect->job.v > driver->plan->job_count)
            return bh_err_set(driver->err, BH_BUG,
                              "the engine reports job %" PRIu64 ", which was not submitted", effect->job.v);
        simulation_apply_job_state(driver, effect);
    }
    for (uint32_t i = 0; i < driver->step.effect_count; i++) {
        const struct bh_effect *effect = &driver->step.effects[i];

        if (effect->kind == BH_FX_START)
            simulation_note_lease(driver, effect);
        if (effect->kind != BH_FX_JOB)
            simulation_order(driver, effect);
    }
    return BH_OK;
}

/* Every member exits at once. */
static bh_rc
simulation_end_by_itself(struct driver *driver, const struct bh_agenda_entry *entry)
{
    struct simulation_job *job = &driver->jobs[entry->subject];
    uint32_t count = job->lease_count;
    bh_rc rc = BH_OK;

    if (!job->runs || job->epoch != entry->epoch)
        return BH_OK; /* it was interrupted meanwhile */
    for (uint32_t i = 0; i < count && rc == BH_OK; i++) {
        struct bh_event event = { .kind = BH_EV_ENDED };

        event.u.ended = (struct bh_ev_ended){ .lease = { job->leases[i] },
                                              .cause = BH_END_EXITED,
                                              .ended_ns = epoch_ns + driver->now_ns,
                                              .unasked = true };
        rc = simulation_send_answer(driver, &event);
    }
    return rc;
}

static bh_rc
simulation_answer(struct driver *driver, const struct bh_agenda_entry *entry)
{
    static const uint8_t kinds[BH_FX_JOB] = {
        [BH_FX_CARVE] = BH_EV_CARVED,      [BH_FX_DESTROY] = BH_EV_DESTROYED, [BH_FX_START] = BH_EV_STARTED,
        [BH_FX_SUSPEND] = BH_EV_SUSPENDED, [BH_FX_RESUME] = BH_EV_RESUMED,    [BH_FX_STOP] = BH_EV_ENDED,
        [BH_FX_RESET] = BH_EV_SERVICED,    [BH_FX_TEST] = BH_EV_SERVICED,
    };
    struct bh_event event = { .kind = (enum bh_event_kind)kinds[entry->kind] };

    if (entry->kind == BH_FX_STOP)
        event.u.ended = (struct bh_ev_ended){ .lease = { entry->subject },
                                              .cause = BH_END_SIGNALLED,
                                              .exit_status = 143,
                                              .ended_ns = epoch_ns + driver->now_ns };
    else if (entry->kind == BH_FX_CARVE || entry->kind == BH_FX_DESTROY)
        event.u.partition.partition.v = entry->subject;
    else if (entry->kind == BH_FX_RESET || entry->kind == BH_FX_TEST)
        event.u.serviced.gpu.v = (uint32_t)entry->subject;
    else
        event.u.lease.lease.v = entry->subject;
    return simulation_send_answer(driver, &event);
}

/* ---- submissions ---- */

static bh_rc
simulation_submit_next(struct driver *driver)
{
    uint32_t index = driver->next_job++;
    const struct bh_simulation_job *job = &driver->plan->jobs[index];
    struct bh_event event = { .kind = BH_EV_SUBMIT };
    bh_rc rc;

    event.u.submit = (struct bh_ev_submit){
        .job = { index + 1 },
        .tenant = job->tenant,
        .principal = { 1 },
        .sku = job->sku,
        .count = job->count,
        .gang = job->gang,
        .priority = job->priority,
        .contract = job->contract,
        .time_limit_ns = job->time_limit_ns,
        .grace_ns = 10 * BH_NS_PER_S,
    };
    driver->jobs[index].parts = bh_simulation_job_parts(&driver->plan->site, job);
    driver->jobs[index].tenant = driver->tenants[job->tenant.v];
    bh_meter_add(driver->run->meter, driver->jobs[index].tenant, driver->now_ns, 0,
                 simulation_parts_of(&driver->jobs[index]));
    rc = simulation_send(driver, &event);
    if (rc != BH_QUOTA && rc != BH_RANGE)
        return rc;
    bh_meter_add(driver->run->meter, driver->jobs[index].tenant, driver->now_ns, 0,
                 -simulation_parts_of(&driver->jobs[index]));
    driver->run->refused++;
    return BH_OK;
}

static uint64_t
simulation_submission_due_ns(const struct driver *driver)
{
    const struct bh_simulation_plan *plan = driver->plan;

    return driver->next_job < plan->job_count ? plan->jobs[driver->next_job].submit_ns : UINT64_MAX;
}

/* ---- time ---- */

/* When the engine wants a tick; asked only when time is about to pass. */
static uint64_t
simulation_tick_due_ns(const struct driver *driver)
{
    uint64_t tick_ns;

    if (driver->step.more)
        return driver->now_ns;
    tick_ns = bh_engine_next_tick_ns(driver->state.engine);
    if (tick_ns == UINT64_MAX)
        return UINT64_MAX;
    return tick_ns > epoch_ns + driver->now_ns ? tick_ns - epoch_ns : driver->now_ns;
}

static bh_rc
simulation_happen(struct driver *driver)
{
    struct bh_agenda_entry entry;

    if (bh_agenda_due_ns(driver->agenda) > driver->now_ns)
        return simulation_submit_next(driver);
    if (!bh_agenda_take(driver->agenda, &entry))
        return BH_OK;
    return entry.kind == DUE_DONE ? simulation_end_by_itself(driver, &entry)
                                  : simulation_answer(driver, &entry);
}

/* Send the engine what forecasts say now. */
static bh_rc
simulation_update_forecasts(struct driver *driver)
{
    struct bh_simulated_forecast *forecast = &driver->forecast;
    struct bh_event event;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    bh_simulated_forecast_update(forecast, driver->state.engine, epoch_ns + driver->now_ns);
    while (rc == BH_OK && bh_forecast_series_next(&forecast->series, driver->state.engine, &cursor, &event))
        rc = simulation_send(driver, &event);
    return rc;
}

/* The forecasts' time comes before whatever is due then. */
static bool
simulation_forecasts_are_due(struct driver *driver, uint64_t due_ns)
{
    uint64_t look_ns = bh_simulated_forecast_due_ns(&driver->forecast);

    if (look_ns == UINT64_MAX || look_ns > epoch_ns + due_ns)
        return false;
    if (look_ns > epoch_ns + driver->now_ns)
        driver->now_ns = look_ns - epoch_ns;
    return true;
}

/* The next thing that happens; `ret_any` is false when nothing is to come.  What is due now
 * comes before time passes, answers before submissions. */
static bh_rc
simulation_advance(struct driver *driver, bool *ret_any)
{
    uint64_t due_ns = bh_agenda_due_ns(driver->agenda), tick_ns;
    uint64_t submit_ns = simulation_submission_due_ns(driver);

    due_ns = submit_ns < due_ns ? submit_ns : due_ns;
    *ret_any = true;
    if (due_ns > driver->now_ns || driver->step.more) {
        tick_ns = simulation_tick_due_ns(driver);
        if ((due_ns != UINT64_MAX || tick_ns != UINT64_MAX) && !driver->step.more
            && simulation_forecasts_are_due(driver, tick_ns < due_ns ? tick_ns : due_ns))
            return simulation_update_forecasts(driver);
        if (tick_ns <= due_ns && tick_ns != UINT64_MAX) {
            driver->now_ns = tick_ns;
            return simulation_send(driver, &(struct bh_event){ .kind = BH_EV_TICK });
        }
        if (due_ns == UINT64_MAX) {
            *ret_any = false;
            return BH_OK;
        }
        driver->now_ns = due_ns;
    }
    return simulation_happen(driver);
}

static bh_rc
simulation_drive(struct driver *driver)
{
    uint64_t still_since = 0, before_ns;
    bool any = true;
    bh_rc rc = BH_OK;

    while (any && rc == BH_OK) {
        before_ns = driver->now_ns;
        rc = simulation_advance(driver, &any);
        if (driver->now_ns != before_ns)
            still_since = driver->run->steps;
        if (rc == BH_OK && driver->run->steps - still_since > ANSWERS_AT_ONCE_MAX)
            return bh_err_set(driver->err, BH_BUG, "it does not come to rest at %" PRIu64 " ns",
                              driver->now_ns);
    }
    return rc;
}

/* ---- the site ---- */

static bh_rc
simulation_set_order(struct driver *driver)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS, .u.settings = driver->plan->settings };

    if (event.u.settings.half_life_ns == 0)
        event.u.settings.half_life_ns = BH_HALF_LIFE_DEFAULT_NS;
    return simulation_send(driver, &event);
}

static bh_rc
simulation_build_site(struct driver *driver)
{
    struct bh_simulation_cursor cursor = { 0 };
    struct bh_event event;
    bh_rc rc = simulation_set_order(driver);

    while (rc == BH_OK && bh_simulation_site_next(&driver->plan->site, &cursor, &event))
        rc = simulation_send(driver, &event);
    if (rc == BH_OK)
        return BH_OK;
    bh_err_wrap(driver->err, "the site");
    return driver->err->rc = rc == BH_BUG ? BH_BUG : BH_INVALID;
}

/* ---- a run ---- */

static void
simulation_make_state(struct bh_state *state, const struct bh_engine_caps *caps)
{
    bh_state_init(state);
    if (!caps)
        return;
    bh_state_fini(state);
    state->bytes = bh_engine_size(caps);
    state->block = aligned_alloc(64, (state->bytes + 63) & ~(size_t)63);
    BH_ASSERT(state->block);
    state->engine = bh_engine_init(state->block, caps);
}

/* Room for the leases of each job's members. */
static void
simulation_lay_out_leases(struct driver *driver)
{
    const struct bh_simulation_plan *plan = driver->plan;
    size_t members = 0;

    for (uint32_t i = 0; i < plan->job_count; i++)
        members += bh_simulation_job_members(&plan->jobs[i]);
    driver->leases = calloc(members + 1, sizeof *driver->leases);
    BH_ASSERT(driver->leases);
    members = 0;
    for (uint32_t i = 0; i < plan->job_count; i++) {
        driver->jobs[i].leases = &driver->leases[members];
        members += bh_simulation_job_members(&plan->jobs[i]);
    }
}

static void
simulation_open_driver(struct driver *driver, const struct bh_simulation_plan *plan,
                       struct bh_simulation_run *run)
{
    *run = (struct bh_simulation_run){ .ends = calloc(plan->job_count + 1u, sizeof *run->ends) };
    BH_ASSERT(run->ends);
    for (uint32_t i = 0; i < plan->job_count; i++) {
        run->ends[i].first_start_ns = run->ends[i].last_start_ns = UINT64_MAX;
        run->ends[i].end_ns = UINT64_MAX;
    }
    run->meter =
        bh_meter_new(plan->site.tenant_count, plan->window_ns ? plan->window_ns : 3600 * BH_NS_PER_S);
    driver->plan = plan;
    driver->run = run;
    driver->agenda = bh_agenda_new();
    driver->jobs = calloc(plan->job_count + 1u, sizeof *driver->jobs);
    driver->gpu_free_ns = calloc(bh_simulation_site_gpus(&plan->site) + 1u, sizeof *driver->gpu_free_ns);
    driver->tenants = calloc(bh_simulation_site_last_tenant(&plan->site) + 1u, sizeof *driver->tenants);
    BH_ASSERT(driver->jobs && driver->gpu_free_ns && driver->tenants);
    for (uint32_t i = 0; i < plan->site.tenant_count; i++)
        driver->tenants[plan->site.tenants[i].tenant.v] = i;
    simulation_lay_out_leases(driver);
    bh_simulated_forecast_init(&driver->forecast, plan->slot_ns);
    simulation_make_state(&driver->state, plan->caps);
}

static void
simulation_close_driver(struct driver *driver)
{
    bh_agenda_free(driver->agenda);
    bh_record_writer_free(driver->writer);
    bh_simulated_forecast_fini(&driver->forecast);
    bh_state_fini(&driver->state);
    free(driver->jobs);
    free(driver->leases);
    free(driver->gpu_free_ns);
    free(driver->tenants);
    free(driver);
}

/* What building the site took is not the load's. */
static void
simulation_forget_steps(struct bh_simulation_run *run)
{
    run->steps = run->decisions = 0;
    run->wall_step_ns = run->wall_slowest_ns = 0;
    memset(run->wall_steps, 0, sizeof run->wall_steps);
}

static uint64_t
simulation_cpu_ns(void)
{
    struct timespec spent;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (uint64_t)spent.tv_sec * BH_NS_PER_S + (uint64_t)spent.tv_nsec;
}

static bh_rc
simulation_run_all(struct driver *driver)
{
    struct bh_simulation_run *run = driver->run;
    bh_rc rc = simulation_build_site(driver);
    uint64_t began_ns, spent_ns;

    if (rc != BH_OK)
        return rc;
    simulation_forget_steps(run);
    if (driver->plan->encode)
        driver->writer = bh_record_writer_new();
    began_ns = bh_time_monotonic();
    spent_ns = simulation_cpu_ns();
    rc = simulation_drive(driver);
    run->wall_cpu_ns = simulation_cpu_ns() - spent_ns;
    run->wall_total_ns = bh_time_monotonic() - began_ns;
    bh_meter_close(run->meter, driver->now_ns);
    run->block_bytes = driver->state.bytes;
    run->record_bytes = driver->writer ? bh_record_writer_bytes(driver->writer) : 0;
    return rc;
}

bh_rc
bh_simulation_run_play(const struct bh_simulation_plan *plan, struct bh_simulation_run *ret_run,
                       struct bh_err *err)
{
    struct driver *driver;
    bh_rc rc;

    *ret_run = (struct bh_simulation_run){ 0 };
    rc = bh_simulation_plan_check(plan, err);
    if (rc != BH_OK)
        return rc;
    driver = calloc(1, sizeof *driver);
    BH_ASSERT(driver);
    driver->err = err;
    simulation_open_driver(driver, plan, ret_run);
    rc = simulation_run_all(driver);
    simulation_close_driver(driver);
    return rc;
}

void
bh_simulation_run_fini(struct bh_simulation_run *run)
{
    bh_meter_free(run->meter);
    free(run->ends);
    *run = (struct bh_simulation_run){ 0 };
}

uint64_t
bh_simulation_run_step_quantile_ns(const struct bh_simulation_run *run, uint32_t permille)
{
    uint64_t seen = 0, wanted = (run->steps * permille + 999) / 1000;

    for (uint32_t b = 0; b < BH_SIMULATION_BUCKETS; b++) {
        seen += run->wall_steps[b];
        if (seen >= wanted && seen > 0)
            return (UINT64_C(1) << (b / 4)) * (5 + b % 4) / 4; /* the bucket's end */
    }
    return 0;
}
