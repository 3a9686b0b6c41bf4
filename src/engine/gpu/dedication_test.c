#include "engine/gpu/dedication.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

#define SECOND_NS UINT64_C(1000000000)

/* Department 3 asks for nodes of its own; node 1 has GPUs 1 and 2, node 2 has 11 and 12. */
static struct bh_fixture *
site_of_two_nodes(void)
{
    struct bh_fixture *fixture = bh_fixture_site(2);

    bh_fixture_h100s(fixture, 2, 11, 2);
    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                      .parent = { 1 },
                                                      .kind = BH_TENANT_DEPARTMENT,
                                                      .dedicated_nodes = true });
    return fixture;
}

static struct bh_tenant_view
dedication_test_tenant(const struct bh_fixture *fixture, uint32_t id)
{
    struct bh_tenant_view view;

    assert_true(bh_view_tenant(fixture->engine, (bh_tenant_id){ id }, fixture->now_ns, &view));
    return view;
}

static struct bh_gpu_view
dedication_test_gpu(const struct bh_fixture *fixture, uint32_t id)
{
    struct bh_gpu_view view;

    assert_true(bh_view_gpu(fixture->engine, (bh_gpu_id){ id }, &view));
    return view;
}

/* Seconds that a tenant has had a whole GPU, were all its time on one. */
static uint64_t
gpu_seconds(bh_part_ns time)
{
    assert_int_equal((uint64_t)(time % (BH_GPU_PARTS * SECOND_NS)), 0);
    return (uint64_t)(time / BH_GPU_PARTS / SECOND_NS);
}

/* What becomes of each GPU of a dedicated node. */
static void
what_others_cannot_use_is_dedicated(void **state)
{
    enum what { NOTHING, CORDONED, DOWN };
    static const struct {
        const char *name;
        enum what what;                          /* of GPU 2 */
        uint32_t sku, used, dedicated, unusable; /* compute of both GPUs */
    } cases[] = {
        { "a small instance", NOTHING, 1, 8400, 7800, 0 },
        { "what geometry wastes", NOTHING, 2, 8400, 6600, 0 },
        { "a whole GPU", NOTHING, 3, 8400, 4200, 0 },
        { "a GPU that is cordoned", CORDONED, 1, 4200, 3600, 4200 },
        { "a node out of reach", DOWN, 1, 0, 0, 8400 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = site_of_two_nodes();
        struct bh_gpu_view one, other;

        bh_fixture_submit_running(fixture, bh_fixture_submission(31, cases[i].sku, 1));
        if (cases[i].what == CORDONED)
            bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { 2 },
                                                        .node = { 1 },
                                                        .managed = true,
                                                        .model = BH_GPU_H100_80GB,
                                                        .mig_capable = true,
                                                        .cordoned = true });
        if (cases[i].what == DOWN)
            bh_fixture_node(fixture, 1, false);
        one = dedication_test_gpu(fixture, 1);
        other = dedication_test_gpu(fixture, 2);
        BH_CHECK_EQ(cases[i].name, one.used.compute + other.used.compute, cases[i].used);
        BH_CHECK_EQ(cases[i].name, one.dedicated.compute + other.dedicated.compute, cases[i].dedicated);
        BH_CHECK_EQ(cases[i].name, one.unusable.compute + other.unusable.compute, cases[i].unusable);
        BH_CHECK_EQ(cases[i].name, one.idle.memory + other.idle.memory, 0);
        BH_CHECK_EQ(cases[i].name, dedication_test_gpu(fixture, 11).idle.compute, BH_GPU_PARTS);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* Any job on the node keeps it, not only those on the GPU that is wanted; a job without a limit leaves at an
 * unknown time. */
static void
waiting_for_a_node_is_a_guess_without_limits(void **state)
{
    static const uint64_t limits_ns[] = { 0, 3600 * SECOND_NS };

    for (size_t i = 0; i < BH_COUNT(limits_ns); i++) {
        struct bh_fixture *fixture = site_of_two_nodes();
        struct bh_ev_submit submit = bh_fixture_submission(21, 3, 1);
        struct bh_reason why;

        submit.time_limit_ns = limits_ns[i];
        for (int gpu = 0; gpu < 4; gpu++)
            bh_fixture_submit_running(fixture, submit);
        for (int gpu = 0; gpu < 2; gpu++) {
            /* a GPU of each node is free again, and it is beside another tenant's */
            bh_fixture_exit_job(fixture, (uint64_t)(1 + 2 * gpu), 0);
            bh_fixture_finish_effects(fixture);
        }
        why = bh_fixture_why(fixture, bh_fixture_submit(fixture, bh_fixture_submission(31, 1, 1)));
        BH_CHECK_EQ("who is on the node", why.code, BH_REASON_BOUNDARY);
        BH_CHECK("expected", why.frees_at_ns > 0);
        BH_CHECK_EQ("a guess", why.assumed, limits_ns[i] == 0);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* The bill: two GPUs for as long as the tenant has a lease there, in both dimensions. */
static void
the_whole_node_is_metered_from_first_to_last(void **state)
{
    struct bh_fixture *fixture = site_of_two_nodes();
    uint64_t first = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1)), second;
    struct bh_tenant_view own, above;

    bh_fixture_tick(fixture, 10 * SECOND_NS);
    second = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 2, 1));
    bh_fixture_tick(fixture, 10 * SECOND_NS);
    bh_fixture_exit_job(fixture, first, 0);
    bh_fixture_tick(fixture, 10 * SECOND_NS);
    bh_fixture_exit_job(fixture, second, 0);
    bh_fixture_tick(fixture, 10 * SECOND_NS);
    own = dedication_test_tenant(fixture, 31);
    above = dedication_test_tenant(fixture, 3);
    assert_int_equal(gpu_seconds(own.compute_ns + above.compute_ns), 2 * 30);
    assert_int_equal(gpu_seconds(own.memory_ns + above.memory_ns), 2 * 30);
    assert_true(above.dedicated_compute_ns == above.compute_ns && above.compute_ns > 0);
    assert_true(own.dedicated_compute_ns == 0);
    assert_int_equal(above.used, 0); /* limits count what jobs use */
    assert_int_equal(dedication_test_gpu(fixture, 1).idle.compute, BH_GPU_PARTS);
    bh_fixture_close(fixture);
}

/* A suspended job keeps others off its node: so it pays for it. */
static void
a_suspended_lease_still_dedicates(void **state)
{
    struct bh_fixture *fixture = site_of_two_nodes();
    struct bh_ev_submit low = bh_fixture_submission(31, 3, 2), high = bh_fixture_submission(31, 3, 2);
    uint64_t job;

    low.priority = BH_PRIORITY_LOW;
    low.contract = BH_CONTRACT_SUSPEND;
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 2)); /* on node 1 */
    bh_fixture_submit_running(fixture, low);
    high.priority = BH_PRIORITY_HIGH;
    job = bh_fixture_submit_running(fixture, high);
    bh_fixture_tick(fixture, SECOND_NS);
    assert_int_equal(dedication_test_gpu(fixture, 11).used.compute, BH_GPU_PARTS);
    assert_int_equal(dedication_test_gpu(fixture, 11).dedicated.compute, 0); /* it is leased */
    bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { 11 },
                                                .node = { 2 },
                                                .managed = true,
                                                .model = BH_GPU_H100_80GB,
                                                .mig_capable = true,
                                                .cordoned = true }); /* none resumes there */
    bh_fixture_exit_job(fixture, job, 0);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(dedication_test_gpu(fixture, 12).dedicated.compute, BH_GPU_PARTS);
    assert_int_equal(dedication_test_gpu(fixture, 11).dedicated.compute, 0);
    assert_int_equal(dedication_test_gpu(fixture, 11).unusable.compute, BH_GPU_PARTS);
    bh_fixture_close(fixture);
}

/* A node that becomes dedicated while it is in use, and ceases to be. */
static void
the_tree_may_change_under_it(void **state)
{
    struct bh_fixture *fixture = site_of_two_nodes();
    struct bh_ev_tenant department = {
        .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT, .dedicated_nodes = true
    };

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(dedication_test_gpu(fixture, 1).used.compute, 600);
    bh_fixture_tenant(fixture, department);
    assert_int_equal(dedication_test_gpu(fixture, 1).used.compute, BH_GPU_PARTS);
    bh_fixture_tick(fixture, 10 * SECOND_NS);
    department.dedicated_nodes = false;
    bh_fixture_tenant(fixture, department);
    assert_int_equal(dedication_test_gpu(fixture, 1).used.compute, 600);
    bh_fixture_tick(fixture, 10 * SECOND_NS);
    assert_int_equal((uint64_t)(dedication_test_tenant(fixture, 2).compute_ns / SECOND_NS), 10 * 7800);
    assert_int_equal((uint64_t)(dedication_test_tenant(fixture, 21).compute_ns / SECOND_NS), 20 * 600);
    bh_fixture_close(fixture);
}

/* Budgets and turns count what is kept from others as what is used. */
static void
a_budget_counts_what_is_dedicated(void **state)
{
    struct bh_fixture *fixture = site_of_two_nodes();
    struct bh_ev_tenant department = { .tenant = { 3 },
                                       .parent = { 1 },
                                       .kind = BH_TENANT_DEPARTMENT,
                                       .dedicated_nodes = true,
                                       .budget = { BH_PERIOD_DAY, 15, BH_UNLIMITED } };
    uint64_t job;

    bh_fixture_tenant(fixture, department);
    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1));
    bh_fixture_tick(fixture, 10 * SECOND_NS); /* 20 GPU-seconds, of which its job used 1.4 */
    job = bh_fixture_submit(fixture, bh_fixture_submission(31, 1, 1));
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_BUDGET);
    assert_int_equal(bh_fixture_why(fixture, job).used, 20);
    assert_int_equal(dedication_test_tenant(fixture, 3).fair, 20);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_others_cannot_use_is_dedicated),
    cmocka_unit_test(waiting_for_a_node_is_a_guess_without_limits),
    cmocka_unit_test(the_whole_node_is_metered_from_first_to_last),
    cmocka_unit_test(a_suspended_lease_still_dedicates),
    cmocka_unit_test(the_tree_may_change_under_it),
    cmocka_unit_test(a_budget_counts_what_is_dedicated),
};
BH_TEST_MAIN(tests)
