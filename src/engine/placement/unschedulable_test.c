#include "engine/placement/unschedulable.h"

#include "engine/step/fixture_test.h"

static const struct bh_ev_gpu plain = {
    .gpu = { 1 }, .node = { 1 }, .model = BH_GPU_H100_80GB, .managed = true, .mig_capable = true
};

static void
unschedulable_test_hold(struct bh_fixture *fixture, struct bh_ev_cordon cordon)
{
    bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_CORDON, .u.cordon = cordon });
}

static void
unschedulable_test_fault(struct bh_fixture *fixture, enum bh_fault_then then)
{
    bh_fixture_must_send(
        fixture, &(struct bh_event){ .kind = BH_EV_HEALTH,
                                     .u.health = { .gpu = { 1 }, .then = then, .ends = BH_ENDS_NOBODY } });
}

static void
check_why(const char *name, struct bh_fixture *fixture, uint64_t job, enum bh_reason_code code)
{
    struct bh_reason why = bh_fixture_why(fixture, job);

    BH_CHECK_STR(name, bh_reason_names[why.code], bh_reason_names[code]);
    BH_CHECK_EQ(name, why.gpu.v, code == BH_REASON_NODE_DOWN ? 0 : 1);
}

/* One GPU, and a job that waits for it: the cause that stays longest is named. */
static void
the_cause_is_named(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_gpu gpu = plain;
    uint64_t job;

    unschedulable_test_fault(fixture, BH_THEN_RESET);
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    check_why("a reset", fixture, job, BH_REASON_IN_REPAIR);
    gpu.fenced = true;
    bh_fixture_gpu(fixture, gpu);
    check_why("a fence", fixture, job, BH_REASON_FENCED);
    unschedulable_test_fault(fixture, BH_THEN_REBOOT);
    check_why("a reboot", fixture, job, BH_REASON_NEEDS_REBOOT);
    unschedulable_test_fault(fixture, BH_THEN_RETIRE);
    check_why("quarantine", fixture, job, BH_REASON_QUARANTINED);
    unschedulable_test_hold(fixture, (struct bh_ev_cordon){ .gpu = { 1 }, .held = BH_HELD_CORDONED });
    check_why("a cordon", fixture, job, BH_REASON_CORDONED);
    unschedulable_test_hold(fixture, (struct bh_ev_cordon){ .node = { 1 }, .held = BH_HELD_DRAINING });
    check_why("its node's", fixture, job, BH_REASON_CORDONED_NODE);
    gpu.cordoned = true;
    bh_fixture_gpu(fixture, gpu);
    check_why("the site file's", fixture, job, BH_REASON_CORDONED_SITE);
    bh_fixture_node(fixture, 1, false);
    check_why("no node", fixture, job, BH_REASON_NODE_DOWN);
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

/* Beside one that is in use it is said, too. */
static void
it_is_said_beside_another(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_reason why;
    uint64_t waits;

    unschedulable_test_hold(fixture, (struct bh_ev_cordon){ .gpu = { 1 }, .held = BH_HELD_CORDONED });
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    waits = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    why = bh_fixture_why(fixture, waits);
    BH_CHECK_STR("in use", bh_reason_names[why.code], "no_capacity");
    BH_CHECK_STR("and", bh_reason_names[why.also], "cordoned");
    BH_CHECK_EQ("which", why.also_gpu.v, 1);
    unschedulable_test_hold(fixture, (struct bh_ev_cordon){ .gpu = { 1 }, .held = BH_HELD_NOT });
    BH_CHECK_EQ("let go", bh_fixture_why(fixture, waits).also, BH_REASON_NONE);
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

static void
which_ends_first(void **state)
{
    static const struct {
        enum bh_reason_code a, b, first;
    } rows[] = {
        { BH_REASON_NONE, BH_REASON_CORDONED, BH_REASON_CORDONED },
        { BH_REASON_NODE_DOWN, BH_REASON_NONE, BH_REASON_NODE_DOWN },
        { BH_REASON_NODE_DOWN, BH_REASON_FENCED, BH_REASON_FENCED },
        { BH_REASON_IN_REPAIR, BH_REASON_CORDONED, BH_REASON_IN_REPAIR },
        { BH_REASON_QUARANTINED, BH_REASON_CORDONED, BH_REASON_CORDONED },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        BH_CHECK_EQ("first", bh_unschedulable_first(rows[i].a, rows[i].b), rows[i].first);
        BH_CHECK_EQ("turned", bh_unschedulable_first(rows[i].b, rows[i].a), rows[i].first);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_cause_is_named),
    cmocka_unit_test(it_is_said_beside_another),
    cmocka_unit_test(which_ends_first),
};
BH_TEST_MAIN(tests)
