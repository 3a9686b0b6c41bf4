#include "engine/gpu/ledger.h"

#include "base/attr.h"
#include "engine/gpu/capacity.h"
#include "engine/gpu/ledger_follow_test.h"

static struct bh_gpu_view
ledger_test_gpu(const struct bh_fixture *fixture, uint32_t id)
{
    struct bh_gpu_view view = { 0 };

    assert_true(bh_view_gpu(fixture->engine, (bh_gpu_id){ id }, &view));
    return view;
}

static void
a_lease_is_metered_from_carved_to_ended(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    struct bh_tenant_view view;

    fixture->now_ns += 500; /* carving: charged to none */
    bh_fixture_finish_effects(fixture);
    fixture->now_ns += 10000;
    bh_fixture_exit_job(fixture, job, 0);
    fixture->now_ns += 777;
    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ 21 }, fixture->now_ns, &view));
    assert_true(view.compute_ns == 600 * 10000);
    assert_true(view.memory_ns == 525 * 10000);
    bh_fixture_close(fixture);
}

static struct bh_tenant_view
ledger_test_tenant(const struct bh_fixture *fixture, uint32_t id)
{
    struct bh_tenant_view view = { 0 };

    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ id }, fixture->now_ns, &view));
    return view;
}

static struct bh_ledger_view
sums(const struct bh_fixture *fixture)
{
    struct bh_ledger_view view;

    bh_view_ledger(fixture->engine, fixture->now_ns, &view);
    assert_true(view.tenants_compute + view.idle_compute + view.unusable_compute == view.physical);
    assert_true(view.tenants_memory + view.idle_memory + view.unusable_memory == view.physical);
    return view;
}

static void
end_late(struct bh_fixture *fixture, uint64_t job, enum bh_end_cause cause, uint64_t late_ns)
{
    struct bh_event ended = { .kind = BH_EV_ENDED };

    ended.u.ended = (struct bh_ev_ended){ .lease = bh_fixture_job(fixture, job).lease,
                                          .cause = cause,
                                          .unasked = true,
                                          .at_ns = late_ns ? fixture->now_ns - late_ns : 0 };
    bh_fixture_must_send(fixture, &ended);
}

/* What was shown as used while its node was there is used, whatever the node says later. */
static void
an_end_reported_late_takes_nothing_back(void **state)
{
    static const uint64_t late_ns[] = { 0, 4000, 20000 };

    for (size_t i = 0; i < BH_COUNT(late_ns); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        uint64_t job;

        fixture->now_ns += 1000000;
        job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
        fixture->now_ns += 14000;
        end_late(fixture, job, BH_END_EXITED, late_ns[i]);
        BH_CHECK_EQ("compute", ledger_test_tenant(fixture, 21).compute_ns, 600 * 14000);
        BH_CHECK_EQ("memory", ledger_test_tenant(fixture, 21).memory_ns, 525 * 14000);
        sums(fixture);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* While its node is away a lease is charged to none; its tenant had it until the end that the node then
 * reports, or still has it.  It ran for 10 us before and the node was away for 4 us. */
static void
a_lease_that_nothing_is_heard_of_is_metered_when_its_node_says(void **state)
{
    static const struct {
        const char *name;
        enum bh_end_cause cause; /* NONE: it runs on */
        uint64_t late, metered, excluded_node;
        bool goes_on; /* or begins again */
    } cases[] = {
        { "ended as the node went", BH_END_EXITED, 4000, 10000, 4000 },
        { "ended in between", BH_END_EXITED, 1000, 13000, 1000 },
        { "ended before, which was shown as used", BH_END_EXITED, 9000, 10000, 4000 },
        { "ended just now", BH_END_EXITED, 0, 14000, 0 },
        { "its node does not know it", BH_END_NODE_LOST, 0, 10000, 4000, true },
        { "runs on", BH_END_NONE, 0, 14000, 0, true },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_ledger_view before, after;
        uint64_t job;

        fixture->now_ns += 1000000;
        job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
        fixture->now_ns += 10000;
        bh_fixture_node(fixture, 1, false);
        before = sums(fixture);
        fixture->now_ns += 4000;
        after = sums(fixture);
        BH_CHECK_EQ(cases[i].name, ledger_test_tenant(fixture, 21).compute_ns, 600 * 10000);
        BH_CHECK_EQ(cases[i].name, after.causes_compute[BH_UNUSABLE_UNHEARD], 600 * 4000);
        BH_CHECK_EQ(cases[i].name, after.causes_memory[BH_UNUSABLE_UNHEARD], 525 * 4000);
        BH_CHECK_EQ(cases[i].name, ledger_test_gpu(fixture, 1).causes[BH_UNUSABLE_UNHEARD].compute, 600);
        bh_fixture_node(fixture, 1, false); /* said again is said once */
        if (cases[i].cause != BH_END_NONE)
            end_late(fixture, job, cases[i].cause, cases[i].late);
        bh_fixture_node(fixture, 1, true);
        after = sums(fixture);
        BH_CHECK_EQ(cases[i].name, ledger_test_tenant(fixture, 21).compute_ns, 600 * cases[i].metered);
        BH_CHECK_EQ(cases[i].name, ledger_test_tenant(fixture, 21).memory_ns, 525 * cases[i].metered);
        BH_CHECK_EQ(cases[i].name, after.causes_compute[BH_UNUSABLE_UNHEARD], 0);
        BH_CHECK_EQ(cases[i].name,
                    after.causes_compute[BH_UNUSABLE_AWAY] - before.causes_compute[BH_UNUSABLE_AWAY],
                    (BH_GPU_PARTS - 600) * 4000 + 600 * cases[i].excluded_node);
        fixture->now_ns += 1000;
        BH_CHECK_EQ(cases[i].name, ledger_test_tenant(fixture, 21).compute_ns,
                    600 * (cases[i].metered + (cases[i].goes_on ? 1000 : 0)));
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* A START was ordered, and the node went away for 4 us: the start failed, or the job ended before its start
 * was reported.  Carved, and charged, 10 us before the node went away. */
static void
what_never_began_is_metered_as_long_as_the_node_says(void **state)
{
    static const struct {
        const char *name;
        bool ended; /* else its start failed */
        enum bh_end_cause cause;
        uint64_t late, metered;
    } cases[] = {
        { "could not be started", false, BH_END_NONE, 3000, 11000 },
        { "could not be started, as the node went", false, BH_END_NONE, 9000, 10000 },
        { "could not be started, just now", false, BH_END_NONE, 0, 14000 },
        { "ended before its start was told", true, BH_END_EXITED, 1000, 13000 },
        { "failed to start, by its end", true, BH_END_START_FAILED, 3000, 11000 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_event failed = { .kind = BH_EV_STARTED };
        uint64_t job;

        fixture->now_ns += 1000000;
        job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
        bh_fixture_answer_next(fixture, BH_OUTCOME_OK); /* carved */
        fixture->now_ns += 10000;
        bh_fixture_node(fixture, 1, false);
        fixture->now_ns += 4000;
        failed.u.lease = (struct bh_ev_lease){ .lease = bh_fixture_job(fixture, job).lease,
                                               .outcome = BH_OUTCOME_FAILED,
                                               .at_ns = cases[i].late ? fixture->now_ns - cases[i].late : 0 };
        if (cases[i].ended)
            end_late(fixture, job, cases[i].cause, cases[i].late);
        else
            bh_fixture_must_send(fixture, &failed);
        BH_CHECK_EQ(cases[i].name, bh_fixture_job(fixture, job).ended_ns, fixture->now_ns - cases[i].late);
        bh_fixture_node(fixture, 1, true);
        BH_CHECK_EQ(cases[i].name, ledger_test_tenant(fixture, 21).compute_ns, 600 * cases[i].metered);
        BH_CHECK_EQ(cases[i].name, ledger_test_tenant(fixture, 21).memory_ns, 525 * cases[i].metered);
        sums(fixture);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* And its times are the node's. */
static void
times_reported_late_are_the_nodes(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    struct bh_event started = { .kind = BH_EV_STARTED }, ended = { .kind = BH_EV_ENDED };

    bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    fixture->now_ns += 5000;
    started.u.lease = (struct bh_ev_lease){ .lease = bh_fixture_job(fixture, job).lease,
                                            .outcome = BH_OUTCOME_OK,
                                            .at_ns = fixture->now_ns - 3000 };
    bh_fixture_must_send(fixture, &started);
    BH_CHECK_EQ("began", bh_fixture_job(fixture, job).started_ns, fixture->now_ns - 3000);
    fixture->now_ns += 9000;
    ended.u.ended = (struct bh_ev_ended){ .lease = bh_fixture_job(fixture, job).lease,
                                          .cause = BH_END_EXITED,
                                          .unasked = true,
                                          .at_ns = fixture->now_ns - 8000 };
    bh_fixture_must_send(fixture, &ended);
    BH_CHECK_EQ("ended", bh_fixture_job(fixture, job).ended_ns, fixture->now_ns - 8000);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static void
all_time_is_accounted_for(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ledger_view view;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    fixture->now_ns += 1000;
    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1));
    fixture->now_ns += 5000;
    bh_view_ledger(fixture->engine, fixture->now_ns, &view);
    assert_true(view.physical == (bh_part_ns)2 * BH_GPU_PARTS * 6000);
    assert_true(view.tenants_compute + view.idle_compute + view.unusable_compute == view.physical);
    assert_true(view.tenants_memory + view.idle_memory + view.unusable_memory == view.physical);
    assert_true(view.tenants_compute == (bh_part_ns)600 * 6000 + BH_GPU_PARTS * 5000);
    bh_fixture_close(fixture);
}

/* Parts of a GPU after jobs of these SKUs (1: 1g, 2: 3g, 3: whole). */
static void
layouts_leave_idle_and_unusable_parts(void **state)
{
    static const struct {
        const char *name;
        uint32_t small, medium;
        uint32_t used_compute, idle_compute, used_memory, idle_memory;
    } cases[] = {
        { "empty", 0, 0, 0, 4200, 0, 4200 },
        { "two 3g waste a slice", 0, 2, 3600, 0, 4200, 0 },
        { "seven 1g waste a memory unit", 7, 0, 4200, 0, 3675, 0 },
        { "one 3g wastes nothing", 0, 1, 1800, 2400, 2100, 2100 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_gpu_view view;

        for (uint32_t k = 0; k < cases[i].small; k++)
            bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
        for (uint32_t k = 0; k < cases[i].medium; k++)
            bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
        view = ledger_test_gpu(fixture, 1);
        BH_CHECK_EQ(cases[i].name, view.used.compute, cases[i].used_compute);
        BH_CHECK_EQ(cases[i].name, view.idle.compute, cases[i].idle_compute);
        BH_CHECK_EQ(cases[i].name, view.used.memory, cases[i].used_memory);
        BH_CHECK_EQ(cases[i].name, view.idle.memory, cases[i].idle_memory);
        BH_CHECK_EQ(cases[i].name, view.used.memory + view.idle.memory + view.unusable.memory, BH_GPU_PARTS);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
gpus_that_get_no_work_are_unusable(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_gpu report = {
        .gpu = { 1 }, .node = { 1 }, .model = BH_GPU_H100_80GB, .managed = true, .mig_capable = true
    };

    bh_fixture_node(fixture, 1, false);
    assert_int_equal(ledger_test_gpu(fixture, 1).unusable.compute, BH_GPU_PARTS);
    bh_fixture_node(fixture, 1, true);
    assert_int_equal(ledger_test_gpu(fixture, 1).idle.compute, BH_GPU_PARTS);
    report.cordoned = true;
    bh_fixture_gpu(fixture, report);
    assert_int_equal(ledger_test_gpu(fixture, 1).unusable.memory, BH_GPU_PARTS);
    bh_fixture_close(fixture);
}

static bh_rc
remove_tenant(struct bh_fixture *fixture, uint32_t tenant)
{
    return bh_fixture_send(fixture,
                           &(struct bh_event){ .kind = BH_EV_TENANT_REMOVE, .u.tenant.tenant = { tenant } });
}

static void
declare_project(struct bh_fixture *fixture, uint32_t tenant)
{
    bh_fixture_tenant(
        fixture, (struct bh_ev_tenant){ .tenant = { tenant }, .parent = { 2 }, .kind = BH_TENANT_PROJECT });
}

/* Its parts in both dimensions of 10 us of a 1g.10gb. */
static void
use_some(struct bh_fixture *fixture, uint32_t tenant)
{
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(tenant, 1, 1));

    fixture->now_ns += 10000;
    bh_fixture_exit_job(fixture, job, 0);
    bh_fixture_tick(fixture, 0); /* lets go of what ended */
}

static bh_part_ns
compute_of(const struct bh_fixture *fixture, uint32_t tenant)
{
    struct bh_metered_view row = { .compute_ns = 0 };

    return bh_view_metered(fixture->engine, (bh_tenant_id){ tenant }, fixture->now_ns, &row) ? row.compute_ns
                                                                                             : 0;
}

static void
a_row_outlives_its_tenant(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_tenant_view view;

    use_some(fixture, 21);
    assert_int_equal(remove_tenant(fixture, 21), BH_OK);
    assert_false(bh_view_tenant(fixture->engine, (bh_tenant_id){ 21 }, fixture->now_ns, &view));
    assert_true(compute_of(fixture, 21) == 600 * 10000);
    fixture->now_ns += 5000; /* it does not grow meanwhile */
    declare_project(fixture, 21);
    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ 21 }, fixture->now_ns, &view));
    assert_true(view.compute_ns == 600 * 10000 && view.memory_ns == 525 * 10000);
    use_some(fixture, 21);
    assert_true(compute_of(fixture, 21) == 2 * 600 * 10000);
    bh_fixture_close(fixture);
}

/* Who declares and removes names all day does not fill the ledger. */
static void
a_tenant_that_used_nothing_leaves_no_row(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint32_t rows = fixture->engine->tables[TABLE_METERED].live;

    for (uint32_t i = 0; i < 5000; i++) {
        declare_project(fixture, 100 + i);
        assert_int_equal(remove_tenant(fixture, 100 + i), BH_OK);
    }
    assert_int_equal(fixture->engine->tables[TABLE_METERED].live, rows);
    bh_fixture_close(fixture);
}

/* Projects come, use something, go and come again, in random order. */
static void
rows_never_go_down(void **state)
{
    enum { PROJECTS = 6, ROUNDS = 400 };
    struct bh_ledger_follow *follow = calloc(1, sizeof *follow);
    uint64_t seed = 88172645463325252;
    bool there[PROJECTS] = { false };

    assert_non_null(follow);
    for (uint32_t history = 0; history < 5; history++) {
        struct bh_fixture *fixture = bh_fixture_site(1);

        memset(follow, 0, sizeof *follow);
        memset(there, 0, sizeof there);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint32_t at = (seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17) % PROJECTS;

            if (!there[at])
                declare_project(fixture, 40 + at);
            else if (seed >> 40 & 1)
                use_some(fixture, 40 + at);
            if (there[at] && !(seed >> 41 & 1))
                assert_int_equal(remove_tenant(fixture, 40 + at), BH_OK);
            there[at] = !there[at] || (seed >> 41 & 1);
            bh_ledger_follow(follow, fixture);
        }
        bh_fixture_close(fixture);
    }
    free(follow);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_lease_is_metered_from_carved_to_ended),
    cmocka_unit_test(an_end_reported_late_takes_nothing_back),
    cmocka_unit_test(a_lease_that_nothing_is_heard_of_is_metered_when_its_node_says),
    cmocka_unit_test(what_never_began_is_metered_as_long_as_the_node_says),
    cmocka_unit_test(times_reported_late_are_the_nodes),
    cmocka_unit_test(all_time_is_accounted_for),
    cmocka_unit_test(layouts_leave_idle_and_unusable_parts),
    cmocka_unit_test(gpus_that_get_no_work_are_unusable),
    cmocka_unit_test(a_row_outlives_its_tenant),
    cmocka_unit_test(a_tenant_that_used_nothing_leaves_no_row),
    cmocka_unit_test(rows_never_go_down),
};
BH_TEST_MAIN(tests)
