#include "daemon/batch/batch.h"
#include "daemon/nodes/faults.h"

#include "daemon/changes/cordon.h"
#include "daemon/fixture/fixture_test.h"
#include "daemon/nodes/inventory.h"

#define S 1000000000ull
static const char first[] = "GPU-aaaaaaaa-0000", second[] = "GPU-bbbbbbbb-0000";

/* A node with two GPUs, taken in as its inventory. */
static void
faults_add_node(struct fixture *f)
{
    struct bh_msg_gpu gpus[2] = { { .model = "H100-80GB", .mig_capable = true, .allowed = true },
                                  { .model = "H100-80GB", .mig_capable = true, .allowed = true } };
    struct bh_msg_inventory inventory = { .node = "n1", .gpus = { gpus, 2 } };
    bh_node_id node;

    snprintf(gpus[0].uuid, sizeof gpus[0].uuid, "%s", first);
    snprintf(gpus[1].uuid, sizeof gpus[1].uuid, "%s", second);
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_catalog_name(f->core.catalog, BH_NAME_NODE, "n1", &node.v, &f->err), BH_OK);
    assert_int_equal(bh_inventory_node(&f->core, node, NULL, &f->err), BH_OK);
    assert_int_equal(bh_inventory_apply(&f->core, node, &inventory, &f->err), BH_OK);
    assert_int_equal(bh_inventory_node(&f->core, node, &(struct bh_node_offer){ 0, 0 }, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

static void
faults_open_site(struct fixture *f)
{
    fixture_setup(f);
    assert_int_equal(fixture_apply(f, site_yaml), BH_OK);
    faults_add_node(f);
}

/* One report of the node; how many records it made. */
static uint64_t
faults_report(struct fixture *f, struct bh_msg_health health)
{
    uint64_t before = f->core.journal.next_seq;
    bh_node_id node = { bh_catalog_find(f->core.catalog, BH_NAME_NODE, "n1") };

    if (!health.gpu[0])
        snprintf(health.gpu, sizeof health.gpu, "%s", first);
    if (health.gi == 0)
        health.gi = UINT32_MAX;
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_faults_receive(&f->core, node, &health, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
    return f->core.journal.next_seq - before;
}

static struct bh_gpu_view
faults_check(const struct fixture *f, const char *uuid)
{
    struct bh_gpu_view view = { 0 };
    bh_gpu_id gpu = { bh_catalog_find(f->core.catalog, BH_NAME_GPU, uuid) };

    assert_true(bh_view_gpu(f->core.state.engine, gpu, &view));
    return view;
}

/* What a report does to a GPU that was well. */
static void
reports_are_judged(void **state)
{
    static const struct {
        const char *name;
        struct bh_msg_health report;
        enum bh_gpu_health health;
        bool fenced;
    } cases[] = {
        { "an XID that needs a reset",
          { .fault = BH_FAULT_XID, .xid = 95, .recovery = UINT32_MAX },
          BH_HEALTH_RESETTING,
          false },
        { "the driver says that a drain will do",
          { .fault = BH_FAULT_XID, .xid = 95, .recovery = 4 },
          BH_HEALTH_RESETTING,
          false },
        { "an application's",
          { .fault = BH_FAULT_XID, .xid = 31, .recovery = UINT32_MAX },
          BH_HEALTH_OK,
          false },
        { "off the bus",
          { .fault = BH_FAULT_XID, .xid = 79, .recovery = UINT32_MAX },
          BH_HEALTH_NEEDS_REBOOT,
          false },
        { "not remapped",
          { .fault = BH_FAULT_HEALTH_RULE, .sign = BH_HEALTH_RULE_REMAP_FAILED },
          BH_HEALTH_QUARANTINED,
          false },
        { "hot",
          { .fault = BH_FAULT_HEALTH_RULE, .sign = BH_HEALTH_RULE_THERMAL },
          BH_HEALTH_WATCHED,
          false },
        { "a sign of a newer node",
          { .fault = BH_FAULT_HEALTH_RULE, .sign = BH_HEALTH_RULES },
          BH_HEALTH_OK,
          false },
        { "it hangs", { .fault = BH_FAULT_HUNG }, BH_HEALTH_OK, true },
        { "another's GPU", { .gpu = "GPU-nobody", .fault = BH_FAULT_XID, .xid = 95 }, BH_HEALTH_OK, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct fixture f;

        faults_open_site(&f);
        (void)faults_report(&f, cases[i].report);
        BH_CHECK_EQ(cases[i].name, faults_check(&f, first).health, cases[i].health);
        BH_CHECK_EQ(cases[i].name, faults_check(&f, first).fenced, cases[i].fenced);
        BH_CHECK_EQ(cases[i].name, faults_check(&f, second).health, BH_HEALTH_OK);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

static void
what_answers_again_is_back(void **state)
{
    struct fixture f;

    faults_open_site(&f);
    (void)faults_report(&f, (struct bh_msg_health){ .fault = BH_FAULT_HUNG });
    assert_true(faults_check(&f, first).fenced);
    (void)faults_report(&f, (struct bh_msg_health){ .fault = BH_FAULT_NONE, .recovery = UINT32_MAX });
    assert_false(faults_check(&f, first).fenced);
    assert_int_equal(faults_report(&f, (struct bh_msg_health){ .fault = BH_FAULT_NONE }), 0);
    (void)faults_report(&f,
                        (struct bh_msg_health){ .fault = BH_FAULT_XID, .xid = 79, .recovery = UINT32_MAX });
    (void)faults_report(&f, (struct bh_msg_health){ .fault = BH_FAULT_NONE, .recovery = BH_RECOVERY_REBOOT });
    assert_int_equal(faults_check(&f, first).health, BH_HEALTH_NEEDS_REBOOT);
    (void)faults_report(&f, (struct bh_msg_health){ .fault = BH_FAULT_NONE });
    assert_int_equal(faults_check(&f, first).health, BH_HEALTH_TESTING);
    fixture_teardown(&f);
}

/* What follows a cause is no fault of its own: no record against the tenant, no reset more. */
static void
consequences_are_not_counted(void **state)
{
    struct fixture f;

    faults_open_site(&f);
    (void)faults_report(&f, (struct bh_msg_health){ .fault = BH_FAULT_XID,
                                                    .xid = 63,
                                                    .at_ns = 100 * S,
                                                    .recovery = UINT32_MAX,
                                                    .gpu = "GPU-aaaaaaaa-0000" });
    (void)faults_report(&f, (struct bh_msg_health){ .fault = BH_FAULT_HEALTH_RULE,
                                                    .at_ns = 105 * S,
                                                    .sign = BH_HEALTH_RULE_ECC_UNCORRECTED,
                                                    .recovery = UINT32_MAX });
    assert_true(faults_check(&f, first).resets == 0);
    assert_int_equal(faults_check(&f, first).sign, BH_HEALTH_RULE_NONE);
    fixture_teardown(&f);
}

/* Who makes a GPU say XID 31 all day long fills neither the log nor the disk. */
static void
an_abusive_tenant_is_recorded_so_often(void **state)
{
    struct bh_msg_health fault = { .fault = BH_FAULT_XID, .xid = 31, .recovery = UINT32_MAX };
    struct bh_partition_view partition;
    uint32_t cursor = 0;
    uint64_t records = 0;
    struct fixture f;

    faults_open_site(&f);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    assert_true(bh_view_next_partition(f.core.state.engine, &cursor, &partition));
    fault.partition = partition.partition.partition.v;
    fault.gi = 1;
    snprintf(fault.gpu, sizeof fault.gpu, "%s",
             bh_catalog_name_of(f.core.catalog, BH_NAME_GPU, partition.partition.gpu.v));
    for (int i = 0; i < 500; i++)
        records += faults_report(&f, fault);
    assert_int_equal(records, BH_FAULTS_TENANT_HOUR);
    assert_int_equal(faults_check(&f, fault.gpu).health, BH_HEALTH_OK);
    fault.xid = 95; /* what is serious is never drowned by it */
    (void)faults_report(&f, fault);
    assert_int_equal(faults_check(&f, fault.gpu).health, BH_HEALTH_FENCED);
    fixture_teardown(&f);
}

static bh_rc
faults_send(struct fixture *f, const char *who, enum bh_operation op, struct bh_cordon_request request)
{
    struct bh_command command = { .op = op, .caller = caller_named(f, who), .cordon = &request };

    return fixture_run(f, &command);
}

static void
operators_name_a_gpu_or_a_node(void **state)
{
    static const struct {
        const char *name, *who, *target;
        bh_rc rc;
    } cases[] = {
        { "a node", "root", "n1", BH_OK },
        { "a GPU", "root", "GPU-aaaaaaaa-0000", BH_OK },
        { "its beginning", "root", "GPU-aaaa", BH_OK },
        { "too short a beginning", "root", "GPU-", BH_NOT_FOUND },
        { "nothing of ours", "root", "GPU-cccccccc", BH_NOT_FOUND },
        { "a developer", "alice", "n1", BH_DENIED },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_cordon_request request = { .target = cases[i].target, .reason = "r" };
        uint64_t before;
        struct fixture f;

        faults_open_site(&f);
        before = f.core.journal.next_seq;
        BH_CHECK_EQ(cases[i].name, faults_send(&f, cases[i].who, BH_OP_DRAIN, request), cases[i].rc);
        BH_CHECK(cases[i].name, f.core.journal.next_seq > before);
        if (cases[i].rc == BH_OK) {
            BH_CHECK_EQ(cases[i].name, f.answer.held, BH_HELD_DRAINING);
            BH_CHECK(cases[i].name, faults_check(&f, first).held == BH_HELD_DRAINING
                                        || faults_check(&f, first).node_held == BH_HELD_DRAINING);
        }
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* What was said holds when the daemon starts anew, beside what the site file says. */
static void
a_cordon_outlives_the_daemon(void **state)
{
    struct fixture f;

    faults_open_site(&f);
    assert_int_equal(faults_send(&f, "root", BH_OP_CORDON, (struct bh_cordon_request){ .target = first }),
                     BH_OK);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK);
    assert_int_equal(faults_check(&f, first).held, BH_HELD_CORDONED);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(faults_check(&f, first).held, BH_HELD_CORDONED);
    assert_false(faults_check(&f, first).cordoned);
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(reports_are_judged),
    cmocka_unit_test(what_answers_again_is_back),
    cmocka_unit_test(consequences_are_not_counted),
    cmocka_unit_test(an_abusive_tenant_is_recorded_so_often),
    cmocka_unit_test(operators_name_a_gpu_or_a_node),
    cmocka_unit_test(a_cordon_outlives_the_daemon),
};
BH_TEST_MAIN(tests)
