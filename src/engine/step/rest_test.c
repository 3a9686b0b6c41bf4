/* No livelock: whatever has happened, when nothing more comes from outside the engine comes to rest.  Random
 * sites with guarantees, all contracts and classes; then windows in which after some submissions nodes answer
 * and time passes, but nothing is changed and nothing fails.  In each window
 *   - a job claims room at most CLAIMS_MOST times, so that there are at most that many claims
 *     for each job, and 32 victims for each claim (docs/adr/0011-time-and-preemption.md);
 *   - every victim is needed: with any one of them left, the claimed room is not free;
 *   - a claim comes true: its job begins in exactly that room, none is given up;
 *   - a job is preempted for one of no higher class only by a guarantee that it does not share, that has room
 * for it, and while its own side uses more than it is guaranteed;
 *   - in the end no effect is unanswered, no decision is left, and no pending job could take back just the
 * capacity that it wants.
 *
 *   rest_test [windows [seed]] */

#include "base/attr.h"
#include "engine/account/quota.h"
#include "engine/account/tenant.h"
#include "engine/placement/placement.h"
#include "engine/preempt/reserve.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

enum { CLAIMS_MOST = 3, GPUS = 6, JOBS = 24, TICKS = 40, VICTIMS_MOST = 32, ANSWERS_MOST = 4000 };

static uint64_t windows_wanted = 300, seed_wanted = 1;

struct course {
    struct bh_fixture *fixture;
    uint64_t random;
    uint32_t claims, victims, checked, placements, most_claims;
    uint32_t reclaims, reclaims_within; /* the latter below a guarantee that is used up */
};

static uint32_t
rest_test_draw(struct course *course, uint32_t below)
{
    course->random ^= course->random << 13;
    course->random ^= course->random >> 7;
    course->random ^= course->random << 17;
    return (uint32_t)((course->random >> 33) % below);
}

/* ---- victims ---- */

static struct bh_wanted
wanted_by(const struct bh_engine *engine, const struct claim *claim)
{
    const struct job *job = job_at(engine, claim->job);

    return (struct bh_wanted){ job->tenant, job->sku, claim->count, claim->equivalent };
}

/* Whether the claimed room is free with all that leave gone, but for one (slot). */
static bool
is_free_but(const struct bh_engine *engine, const struct claim *claim, uint32_t but)
{
    struct bh_queue_entry entry;
    struct bh_search search;
    struct bh_wanted wanted = wanted_by(engine, claim);
    struct bh_reason why;
    uint32_t whose;

    bh_queue_entry_of_job(engine, claim->job, &entry);
    search = bh_reserve_search(engine, &entry, claim->job);
    for (uint32_t at = engine->core.leaving; at; at = lease_at(engine, at)->next_leaving)
        if (lease_at(engine, at)->job != but && search.gone_count < BH_VICTIMS_MAX)
            search.gone[search.gone_count++] = lease_at(engine, at)->job;
    return bh_placement_possible(&search, claim->placements, claim->count)
           && bh_quota_allows(&search, &wanted, &why, &whose);
}

static const struct claim *
claim_of(const struct bh_engine *engine, uint64_t job)
{
    for (uint32_t i = 0; i < CLAIMS_MAX; i++)
        if (engine->core.claims[i].job && !engine->core.claims[i].at_ns
            && job_at(engine, engine->core.claims[i].job)->id == job)
            return &engine->core.claims[i];
    return NULL;
}

static uint32_t
leaving_count(const struct bh_engine *engine)
{
    uint32_t count = 0;

    for (uint32_t at = engine->core.leaving; at; at = lease_at(engine, at)->next_leaving)
        count++;
    return count;
}

/* A second claim in the step, or a new reservation: why its victims were needed cannot be computed from the
 * present state. */
static bool
went_on(const struct bh_step *step)
{
    uint32_t claims = 0;

    for (uint32_t i = 0; i < step->decision_count; i++) {
        claims += step->decisions[i].kind == BH_DO_CLAIM;
        if (step->decisions[i].kind == BH_DO_RESERVE || step->decisions[i].kind == BH_DO_UNRESERVE)
            return true;
    }
    return claims > 1;
}

/* ---- guarantees, worked out anew ---- */

/* What room is being made for, within the tenant. */
static uint64_t
claimed_within(const struct bh_engine *engine, uint32_t tenant)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];

        if (claim->job && !claim->at_ns
            && bh_tenant_within(engine, tenant, job_at(engine, claim->job)->tenant))
            sum += claim->equivalent;
    }
    return sum;
}

/* Whether guarantees on the tenant's side, below what it has in common with the other, have
 * room for so much more; one of them at least. */
static bool
is_promised(const struct bh_engine *engine, uint32_t tenant, uint32_t other, uint64_t more)
{
    bool promised = false;

    for (uint32_t at = tenant; at && !bh_tenant_within(engine, at, other);
         at = tenant_at(engine, at)->parent) {
        uint64_t guarantee = tenant_at(engine, at)->guarantee;

        if (guarantee && tenant_at(engine, at)->used + claimed_within(engine, at) + more > guarantee)
            return false;
        promised = promised || guarantee;
    }
    return promised;
}

/* Whether all guarantees of the tenant's side are exceeded. */
static bool
borrows(const struct bh_engine *engine, uint32_t tenant, uint32_t other)
{
    for (uint32_t at = tenant; at && !bh_tenant_within(engine, at, other); at = tenant_at(engine, at)->parent)
        if (tenant_at(engine, at)->guarantee
            && tenant_at(engine, at)->used <= tenant_at(engine, at)->guarantee)
            return false;
    return true;
}

/* Whether a guarantee is used up that the two share. */
static bool
used_up_above(const struct bh_engine *engine, uint32_t tenant, uint32_t other)
{
    for (uint32_t at = tenant; at; at = tenant_at(engine, at)->parent) {
        const struct tenant *above = tenant_at(engine, at);

        if (above->guarantee && bh_tenant_within(engine, at, other) && above->used >= above->guarantee)
            return true;
    }
    return false;
}

static void
check_reclaim(struct course *course, uint32_t victim, uint32_t preemptor)
{
    const struct bh_engine *engine = course->fixture->engine;
    uint32_t tenant = job_at(engine, preemptor)->tenant, other = job_at(engine, victim)->tenant;

    if (job_at(engine, victim)->priority < job_at(engine, preemptor)->priority)
        return;
    assert_true(is_promised(engine, tenant, other, 0));
    assert_true(borrows(engine, other, tenant));
    course->reclaims++;
    course->reclaims_within += used_up_above(engine, tenant, other);
}

/* Whether the job, which waits, could have just the room of the other. */
static bool
could_take_back(const struct bh_engine *engine, uint32_t preemptor, uint32_t victim)
{
    const struct job *wants = job_at(engine, preemptor), *has = job_at(engine, victim);
    uint64_t more = (uint64_t)sku_at(engine, wants->sku)->equivalents[0] * wants->count;

    return wants->state == BH_JOB_PENDING && has->state == BH_JOB_RUNNING && wants->sku == has->sku
           && wants->count == has->count && has->contract != BH_CONTRACT_NEVER
           && (wants->claims_window != engine->core.window || wants->claims < CLAIMS_MOST)
           && is_promised(engine, wants->tenant, has->tenant, more)
           && borrows(engine, has->tenant, wants->tenant);
}

static void
check_no_job_waits(const struct bh_engine *engine)
{
    for (uint32_t preemptor = 0; bh_slot_next(engine, TABLE_JOB, &preemptor);)
        for (uint32_t victim = 0; bh_slot_next(engine, TABLE_JOB, &victim);)
            assert_false(could_take_back(engine, preemptor, victim));
}

/* The victims that the last step named. */
static void
check_victims(struct course *course)
{
    const struct bh_engine *engine = course->fixture->engine;
    const struct bh_step *step = &course->fixture->step;

    for (uint32_t i = 0; i < step->decision_count; i++) {
        const struct bh_decision *decision = &step->decisions[i];
        const struct claim *claim = claim_of(engine, decision->for_job.v);
        uint32_t lease = lease_find(engine, decision->lease.v);

        if (decision->for_job.v == 0)
            continue;
        course->victims++;
        if (!claim || went_on(step) || !bh_capacity_is_leaving(engine, lease)
            || leaving_count(engine) > BH_VICTIMS_MAX)
            continue;
        course->checked++;
        check_reclaim(course, lease_at(engine, lease)->job, claim->job);
        assert_true(is_free_but(engine, claim, 0));
        assert_false(is_free_but(engine, claim, lease_at(engine, lease)->job));
    }
}

/* ---- a window ---- */

struct window {
    uint32_t claims[4096]; /* by job */
    struct bh_decision capacities_left[4096];
};

static void
check_place(struct window *window, const struct bh_decision *decision)
{
    const struct bh_decision *capacity = &window->capacities_left[decision->job.v];

    for (uint32_t i = 0; i < capacity->partition_count; i++) {
        assert_int_equal(decision->partitions[i].gpu.v, capacity->partitions[i].gpu.v);
        assert_int_equal(decision->partitions[i].profile, capacity->partitions[i].profile);
        assert_int_equal(decision->partitions[i].start, capacity->partitions[i].start);
    }
    window->capacities_left[decision->job.v].partition_count = 0;
}

static void
rest_test_watch(struct course *course, struct window *window)
{
    const struct bh_step *step = &course->fixture->step;

    for (uint32_t i = 0; i < step->decision_count; i++) {
        const struct bh_decision *decision = &step->decisions[i];
        uint64_t job = decision->job.v;

        assert_true(job < BH_COUNT(window->claims));
        assert_int_not_equal(decision->kind, BH_DO_UNCLAIM);
        if (decision->kind == BH_DO_CLAIM) {
            window->capacities_left[job] = *decision;
            course->claims++;
            assert_true(++window->claims[job] <= CLAIMS_MOST);
            if (window->claims[job] > course->most_claims)
                course->most_claims = window->claims[job];
        }
        if (decision->kind == BH_DO_PLACE || decision->kind == BH_DO_RESUME) {
            course->placements++;
            check_place(window, decision);
        }
    }
    check_victims(course);
}

static void
answer_all(struct course *course, struct window *window)
{
    struct bh_fixture *fixture = course->fixture;
    uint32_t answers = 0;

    while (fixture->effect_count) {
        uint32_t at = rest_test_draw(course, fixture->effect_count);
        struct bh_event event = bh_fixture_answer(&fixture->effects[at], BH_OUTCOME_OK);
        bh_rc rc;

        fixture->effect_count--;
        memmove(&fixture->effects[at], &fixture->effects[at + 1],
                (fixture->effect_count - at) * sizeof(fixture->effects[0]));
        rc = bh_fixture_send(fixture, &event);
        assert_true(++answers < ANSWERS_MOST);
        if (rc == BH_OK)
            rest_test_watch(course, window);
    }
}

/* ---- what comes from outside ---- */

/* Nothing from outside any more: it comes to rest, and stays so while time passes. */
static void
rest_test_rest(struct course *course, struct window *window)
{
    for (uint32_t i = 0; i < TICKS; i++) {
        struct bh_event tick = { .kind = BH_EV_TICK };

        answer_all(course, window);
        course->fixture->now_ns += 15000000000;
        assert_int_equal(bh_fixture_send(course->fixture, &tick), BH_OK);
        rest_test_watch(course, window);
    }
    answer_all(course, window);
    for (uint64_t job = 0; job < BH_COUNT(window->capacities_left); job++)
        assert_int_equal(window->capacities_left[job].partition_count, 0);
    check_no_job_waits(course->fixture->engine);
}

static void
set_tenants(struct course *course)
{
    static const uint64_t guarantees[] = { 0, 2100, 4200, 8400 };
    static const struct bh_ev_tenant tenants[] = {
        { .tenant = { 1 }, .kind = BH_TENANT_ORGANIZATION },
        { .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT },
        { .tenant = { 3 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT },
        { .tenant = { 21 }, .parent = { 2 }, .kind = BH_TENANT_PROJECT },
        { .tenant = { 22 }, .parent = { 2 }, .kind = BH_TENANT_PROJECT },
        { .tenant = { 31 }, .parent = { 3 }, .kind = BH_TENANT_PROJECT },
    };

    for (size_t i = 0; i < BH_COUNT(tenants); i++) {
        struct bh_ev_tenant tenant = tenants[i];

        tenant.boundary = BH_BOUNDARY_NONE;
        tenant.guarantee = i ? guarantees[rest_test_draw(course, BH_COUNT(guarantees))] : 0;
        tenant.min_runtime_ns = rest_test_draw(course, 4) ? 0 : 20000000000;
        bh_fixture_tenant(course->fixture, tenant);
    }
}

static void
submit_some(struct course *course, struct window *window)
{
    static const uint32_t tenants[] = { 2, 3, 21, 22, 31 };

    for (uint32_t i = rest_test_draw(course, 8); i > 0; i--) {
        struct bh_ev_submit job =
            bh_fixture_submission(tenants[rest_test_draw(course, BH_COUNT(tenants))],
                                  1 + rest_test_draw(course, 3), 1 + rest_test_draw(course, 2));

        job.priority = (enum bh_priority)(1 + rest_test_draw(course, 4));
        job.contract = (enum bh_contract)rest_test_draw(course, BH_CONTRACTS);
        job.grace_ns = rest_test_draw(course, 2000000000);
        bh_fixture_submit(course->fixture, job);
        rest_test_watch(course, window);
        course->fixture->now_ns += rest_test_draw(course, 1000000000);
    }
}

static void
end_some(struct course *course)
{
    struct bh_job_view view;
    uint32_t cursor = 0, live = 0;
    uint64_t jobs[512];

    while (bh_view_next_job(course->fixture->engine, &cursor, &view) && live < BH_COUNT(jobs))
        if (view.state < BH_JOB_COMPLETED)
            jobs[live++] = view.job.v;
    for (uint32_t i = 0; i < live; i++)
        if (live > JOBS ? rest_test_draw(course, 2) : rest_test_draw(course, 6) == 0)
            assert_int_equal(bh_fixture_cancel(course->fixture, jobs[i]), BH_OK);
}

static void
every_window_comes_to_rest(void **state)
{
    struct course course = { .fixture = bh_fixture_site(GPUS),
                             .random = seed_wanted * 0x9e3779b97f4a7c15ull + 1 };

    for (uint64_t i = 0; i < windows_wanted; i++) {
        struct window *window = calloc(1, sizeof(*window));

        assert_non_null(window);
        if (i % 10 == 0)
            set_tenants(&course);
        end_some(&course);
        while (course.fixture->effect_count) /* what changes and cancelled jobs began */
            bh_fixture_answer_next(course.fixture, BH_OUTCOME_OK);
        submit_some(&course, window);
        rest_test_rest(&course, window);
        free(window);
    }
    fprintf(stderr,
            "# %u claims, %u victims (%u checked), %u placements; most claims of a job: "
            "%u; %u reclaims, %u of them below a guarantee that is used up\n",
            course.claims, course.victims, course.checked, course.placements, course.most_claims,
            course.reclaims, course.reclaims_within);
    assert_true(course.claims > 0);
    assert_true(course.reclaims_within > 0);
    bh_fixture_close(course.fixture);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_window_comes_to_rest),
    };

    if (argc > 1)
        windows_wanted = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed_wanted = strtoull(argv[2], NULL, 10);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
