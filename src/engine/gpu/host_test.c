#include "engine/gpu/host.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* A site of one node with these cores and memory, and two GPUs. */
static struct bh_fixture *
site_with(uint32_t cpu_milli, uint32_t memory_mib)
{
    struct bh_fixture *fixture = bh_fixture_site(2);

    bh_fixture_must_send(
        fixture, &(struct bh_event){ .kind = BH_EV_NODE, .u.node = { { 1 }, true, cpu_milli, memory_mib } });
    return fixture;
}

/* A job of the tenant for one small partition and so much of its node. */
static struct bh_ev_submit
taking(uint32_t tenant, uint32_t cpu_milli, uint32_t memory_mib)
{
    struct bh_ev_submit submit = bh_fixture_submission(tenant, 1, 1);

    submit.cpu_milli = cpu_milli;
    submit.memory_mib = memory_mib;
    return submit;
}

/* One job runs with 1.5 cores and 1500 MiB: does a second one start beside it? */
static void
a_node_gives_no_more_than_it_has(void **state)
{
    static const struct {
        const char *name;
        uint32_t has_cpu, has_memory, wants_cpu, wants_memory;
        enum bh_reason_code why; /* NONE: it starts */
    } cases[] = {
        { "exactly what is left", 2000, 2000, 500, 500, BH_REASON_NONE },
        { "one thousandth of a core more", 2000, 2000, 501, 500, BH_REASON_CORES },
        { "one MiB more", 2000, 2000, 500, 501, BH_REASON_MEMORY },
        { "nothing", 1500, 1500, 0, 0, BH_REASON_NONE },
        { "cores are not limited", 0, 2000, 90000, 500, BH_REASON_NONE },
        { "memory is not limited", 2000, 0, 500, 90000, BH_REASON_NONE },
        { "cores that no node has", 2000, 2000, 2001, 500, BH_REASON_NEVER_CORES },
        { "memory that no node has", 2000, 2000, 500, 2001, BH_REASON_NEVER_MEMORY },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = site_with(cases[i].has_cpu, cases[i].has_memory);
        uint64_t second;

        bh_fixture_submit_running(fixture, taking(21, 1500, 1500));
        second = bh_fixture_submit(fixture, taking(21, cases[i].wants_cpu, cases[i].wants_memory));
        BH_CHECK_EQ(cases[i].name, bh_fixture_state(fixture, second),
                    cases[i].why ? BH_JOB_PENDING : BH_JOB_STARTING);
        if (cases[i].why)
            BH_CHECK_EQ(cases[i].name, bh_fixture_why(fixture, second).code, cases[i].why);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct node *
host_test_node(const struct bh_fixture *fixture)
{
    return node_at(fixture->engine, node_find(fixture->engine, 1));
}

/* Two nodes: the first has the most cores, the second the most memory. */
static void
the_most_is_of_a_node_that_could_hold_it(void **state)
{
    static const struct {
        const char *name;
        uint32_t cpu_milli, memory_mib, gang;
        enum bh_reason_code why; /* NONE: it could be held */
        uint32_t limit;
    } cases[] = {
        { "on the first", 8000, 1000, 1, BH_REASON_NONE, 0 },
        { "on the second", 1000, 8000, 1, BH_REASON_NONE, 0 },
        { "the memory beside the cores", 8000, 4000, 1, BH_REASON_NEVER_MEMORY, 1000 },
        { "more memory than any", 500, 9000, 1, BH_REASON_NEVER_MEMORY, 8000 },
        { "more cores than any", 9000, 500, 1, BH_REASON_NEVER_CORES, 8000 },
        { "cores for two of three", 4000, 0, 3, BH_REASON_NEVER_CORES, 8000 },
    };
    struct bh_fixture *fixture = site_with(8000, 1000);

    bh_fixture_h100s(fixture, 2, 9, 1);
    bh_fixture_must_send(fixture,
                         &(struct bh_event){ .kind = BH_EV_NODE, .u.node = { { 2 }, true, 1000, 8000 } });
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_ev_submit submit = taking(21, cases[i].cpu_milli, cases[i].memory_mib);
        struct bh_reason why = { .code = BH_REASON_NONE };

        submit.gang = cases[i].gang;
        BH_CHECK_EQ(cases[i].name, bh_host_accepts_ever(fixture->engine, &submit, &why), !cases[i].why);
        BH_CHECK_EQ(cases[i].name, why.code, cases[i].why);
        BH_CHECK_EQ(cases[i].name, why.limit, cases[i].limit);
        if (!cases[i].why)
            continue;
        why = bh_fixture_why(fixture, bh_fixture_submit(fixture, submit));
        BH_CHECK_EQ(cases[i].name, why.code, cases[i].why);
        BH_CHECK_EQ(cases[i].name, why.limit, cases[i].limit);
    }
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

/* Frozen processes use no cores, but their memory. */
static void
who_is_suspended_stays_in_memory(void **state)
{
    struct bh_fixture *fixture = site_with(4000, 4000);
    struct bh_ev_submit low = bh_fixture_submission(21, 3, 2), high = bh_fixture_submission(21, 3, 2);
    uint64_t first;

    low.priority = BH_PRIORITY_LOW;
    low.contract = BH_CONTRACT_SUSPEND;
    low.cpu_milli = high.cpu_milli = 3000;
    low.memory_mib = high.memory_mib = 1000;
    high.priority = BH_PRIORITY_HIGH;
    first = bh_fixture_submit_running(fixture, low);
    bh_fixture_submit_running(fixture, high);
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_SUSPENDED);
    assert_int_equal(host_test_node(fixture)->cpu_used, 3000);
    assert_int_equal(host_test_node(fixture)->memory_used, 2000);
    bh_fixture_close(fixture);
}

/* Those of a gang who are in memory need none of it to go on. */
static void
a_suspended_gang_goes_on(void **state)
{
    struct bh_fixture *fixture = site_with(4000, 4000);
    struct bh_ev_submit low = bh_fixture_submission(21, 3, 1), high = bh_fixture_submission(21, 3, 2);
    uint64_t first, second;

    low.gang = 2;
    low.memory_mib = 1900;
    low.cpu_milli = 2000;
    low.priority = BH_PRIORITY_LOW;
    low.contract = BH_CONTRACT_SUSPEND;
    high.priority = BH_PRIORITY_HIGH;
    first = bh_fixture_submit_running(fixture, low);
    second = bh_fixture_submit_running(fixture, high);
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_SUSPENDED);
    bh_fixture_exit_job(fixture, second, 0);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING);
    assert_int_equal(host_test_node(fixture)->memory_used, 3800);
    bh_fixture_close(fixture);
}

/* Nor does it help to suspend those who hold the memory that is missing. */
static void
no_job_is_suspended_for_memory_in_vain(void **state)
{
    struct bh_fixture *fixture = site_with(4000, 4000);
    struct bh_ev_submit low = taking(21, 100, 3000), high = taking(21, 100, 3000);
    uint64_t first, second;

    low.priority = BH_PRIORITY_LOW;
    low.contract = BH_CONTRACT_SUSPEND;
    high.priority = BH_PRIORITY_HIGH;
    first = bh_fixture_submit_running(fixture, low);
    second = bh_fixture_submit(fixture, high);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_job(fixture, first).suspensions, 0);
    assert_int_equal(bh_fixture_why(fixture, second).code, BH_REASON_MEMORY);
    bh_fixture_close(fixture);
}

/* GPUs are free, and the cores are on the other GPU. */
static void
who_holds_the_cores_makes_way(void **state)
{
    struct bh_fixture *fixture = site_with(4000, 0);
    struct bh_ev_submit low = bh_fixture_submission(21, 3, 1), high = bh_fixture_submission(21, 3, 1);
    uint64_t first, second;

    low.cpu_milli = high.cpu_milli = 3000;
    low.contract = BH_CONTRACT_SUSPEND;
    low.priority = BH_PRIORITY_LOW;
    high.priority = BH_PRIORITY_HIGH;
    first = bh_fixture_submit_running(fixture, low);
    second = bh_fixture_submit(fixture, high);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_SUSPENDED);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* Each member takes its own from its node. */
static void
members_of_a_gang_take_each_their_own(void **state)
{
    struct bh_fixture *fixture = site_with(4000, 0);
    struct bh_ev_submit gang = taking(21, 1500, 0);
    uint64_t two, three;

    gang.gang = 3;
    three = bh_fixture_submit(fixture, gang);
    assert_int_equal(bh_fixture_why(fixture, three).code, BH_REASON_NEVER_CORES);
    gang.gang = 2;
    two = bh_fixture_submit_running(fixture, gang);
    assert_int_equal(bh_fixture_state(fixture, two), BH_JOB_RUNNING);
    assert_int_equal(host_test_node(fixture)->cpu_used, 3000);
    bh_fixture_close(fixture);
}

/* A node may have less than before: what runs goes on, and nothing comes to it. */
static void
a_node_that_shrinks_gets_nothing_more(void **state)
{
    struct bh_fixture *fixture = site_with(4000, 0);
    uint64_t first = bh_fixture_submit_running(fixture, taking(21, 3000, 0)), second;

    bh_fixture_must_send(fixture,
                         &(struct bh_event){ .kind = BH_EV_NODE, .u.node = { { 1 }, true, 2000, 0 } });
    second = bh_fixture_submit(fixture, taking(21, 100, 0));
    assert_int_equal(bh_fixture_state(fixture, first), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_PENDING);
    assert_int_equal(host_test_node(fixture)->cpu_used, 3000);
    bh_fixture_exit_job(fixture, first, 0);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_gives_no_more_than_it_has),
    cmocka_unit_test(the_most_is_of_a_node_that_could_hold_it),
    cmocka_unit_test(who_is_suspended_stays_in_memory),
    cmocka_unit_test(a_suspended_gang_goes_on),
    cmocka_unit_test(no_job_is_suspended_for_memory_in_vain),
    cmocka_unit_test(who_holds_the_cores_makes_way),
    cmocka_unit_test(members_of_a_gang_take_each_their_own),
    cmocka_unit_test(a_node_that_shrinks_gets_nothing_more),
};
BH_TEST_MAIN(tests)
