/* A request for a check that is under way shares it; no requests fill a node's queue. */
#include "daemon/batch/batch.h"
#include "daemon/batch/step.h"
#include "daemon/changes/verify.h"
#include "daemon/nodes/verdicts.h"
#include "daemon/owner/dispatch.h"

#include "daemon/fixture/fixture_test.h"

static const char operators_yaml[] =
    "tenants: [{name: acme, kind: organization}]\n"
    "principals: [{name: alice, uid: 2001}, {name: bob, uid: 2002}, {name: carol, uid: 2003}]\n"
    "bindings:\n"
    "  - {role: operator, principal: alice, tenant: '*'}\n"
    "  - {role: operator, principal: bob, tenant: '*'}\n"
    "  - {role: operator, principal: carol, tenant: '*'}\n";

static struct fixture f;

static void
verify_add_node(const char *name)
{
    struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                              .dec = { .allow = true },
                              .phase = BH_PHASE_EVENT,
                              .verb = "node.up" };
    struct bh_event event = { .kind = BH_EV_NODE };
    uint32_t id;

    assert_int_equal(bh_core_begin(&f.core, &f.err), BH_OK);
    assert_int_equal(bh_catalog_name(f.core.catalog, BH_NAME_NODE, name, &id, &f.err), BH_OK);
    f.core.catalog_changed = true;
    event.u.node.node.v = id;
    event.u.node.up = true;
    assert_int_equal(bh_core_step(&f.core, &entry, &event, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
}

static int
verify_begin(void **state)
{
    static const char *const names[] = { "n1", "n2", "n3", "n4", "n5", "n6" };

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, operators_yaml), BH_OK);
    for (size_t i = 0; i < BH_COUNT(names); i++)
        verify_add_node(names[i]);
    return 0;
}

static int
verify_end(void **state)
{
    fixture_teardown(&f);
    return 0;
}

static bh_rc
verify_ask(const char *who, const char *node)
{
    struct bh_command command = { .op = BH_OP_NODE_VERIFY, .caller = caller_named(&f, who), .text = node };

    return fixture_run(&f, &command);
}

/* The node says what came of the request. */
static void
verify_answer(const char *node, uint64_t request)
{
    struct bh_msg_verdict verdict = { .request = request, .result = BH_CHECK_PASS };
    bh_node_id id = { bh_catalog_find(f.core.catalog, BH_NAME_NODE, node) };

    assert_int_equal(bh_verdicts_record(&f.core, id, &verdict, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
}

static void
one_try_answers_all_who_ask(void **state)
{
    uint64_t first;

    assert_int_equal(verify_ask("alice", "n1"), BH_OK);
    first = f.answer.verify_request;
    for (int i = 0; i < 120; i++) {
        assert_int_equal(verify_ask(i % 2 ? "alice" : "root", "n1"), BH_OK);
        assert_int_equal(f.answer.verify_request, first);
        assert_int_equal(f.answer.verify_count, 1);
    }
    assert_int_equal(f.core.verify_count, 1); /* the node is asked once */
    verify_answer("n1", first);
    assert_int_equal(verify_ask("alice", "n1"), BH_OK);
    assert_int_not_equal(f.answer.verify_request, first);
}

static void
no_user_asks_for_many_at_once(void **state)
{
    uint64_t second;

    assert_int_equal(verify_ask("alice", "n1"), BH_OK);
    assert_int_equal(verify_ask("alice", "n2"), BH_OK);
    second = f.answer.verify_request;
    assert_int_equal(verify_ask("alice", "n3"), BH_TOO_MANY);
    assert_int_equal(verify_ask("bob", "n3"), BH_OK);
    assert_int_equal(verify_ask("root", "n4"), BH_OK); /* administrators always may */
    assert_int_equal(verify_ask("root", "n5"), BH_OK);
    assert_int_equal(verify_ask("root", "n6"), BH_OK);
    verify_answer("n2", second);
    assert_int_equal(verify_ask("alice", "n2"), BH_OK);
}

static void
an_aborted_wish_is_not_under_way(void **state)
{
    struct bh_command command = { .op = BH_OP_NODE_VERIFY,
                                  .caller = caller_named(&f, "alice"),
                                  .text = "n1" };

    assert_int_equal(bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err), BH_OK);
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK);
    assert_int_equal(f.core.verify_count, 0);
    assert_int_equal(verify_ask("alice", "n1"), BH_OK);
    assert_int_equal(f.core.verify_count, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(one_try_answers_all_who_ask, verify_begin, verify_end),
    cmocka_unit_test_setup_teardown(no_user_asks_for_many_at_once, verify_begin, verify_end),
    cmocka_unit_test_setup_teardown(an_aborted_wish_is_not_under_way, verify_begin, verify_end),
};
BH_TEST_MAIN(tests)
