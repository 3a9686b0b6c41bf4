/* Policies of the site file at the owner: a submission that they deny changes nothing and is
 * recorded with its rule; caps count what the engine has. */

#include "daemon/fixture/fixture_test.h"

#define SITE(policy, acmes)                                                                                  \
    "policy: {" policy "}\n"                                                                                 \
    "tenants:\n"                                                                                             \
    "  - {name: acme, kind: organization, policy: {" acmes "}}\n"                                            \
    "  - {name: acme/vision, kind: department}\n"                                                            \
    "  - {name: other, kind: organization}\n"                                                                \
    "skus:\n"                                                                                                \
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"                          \
    "  - {name: large, grade: B, models: [{model: H100-80GB, profile: whole}]}\n"                            \
    "principals: [{name: alice, uid: 2001}]\n"                                                               \
    "bindings: [{role: operator, principal: alice, tenant: '*'}]\n"                                          \
    "gpus: [{uuid: all, managed: true}]\n"

static const struct submission small = { "alice", "acme/vision", "small", NULL, 0, 1 },
                               large = { "alice", "acme/vision", "large", NULL, 0, 1 },
                               others = { "alice", "other", "small", NULL, 0, 1 };

struct last {
    uint64_t seq;
    char leaf[1024];
};

static bool
policy_store_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct last *last = self;

    last->seq = seq;
    snprintf(last->leaf, sizeof last->leaf, "%.*s", (int)length, leaf);
    return true;
}

/* The newest record. */
static struct last
newest(struct fixture *f)
{
    struct last last = { 0 };
    uint64_t seq;

    assert_int_equal(f->core.store.ops->last_record(f->core.store.self, &seq, &f->err), BH_OK);
    assert_int_equal(
        f->core.store.ops->list_records(f->core.store.self, seq, seq, policy_store_leaf, &last, &f->err),
        BH_OK);
    return last;
}

static void
a_denial_changes_nothing_and_is_recorded_with_its_rule(void **state)
{
    struct last before, after;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, SITE("", "skus: [small]")), BH_OK);
    BH_CHECK_EQ("what is allowed", fixture_submit(&f, small), BH_OK);
    before = newest(&f);
    BH_CHECK_EQ("what is not", fixture_submit(&f, large), BH_DENIED);
    BH_CHECK_STR("why", f.err.msg, "policy.skus of acme: large is not allowed, only small");
    BH_CHECK("what to do", f.err.hint[0]);
    after = newest(&f);
    BH_CHECK_EQ("one record", after.seq, before.seq + 1);
    BH_CHECK("denied by this rule", strstr(after.leaf, "\"dec\":{\"allow\":false,\"rule\":2001}"));
    BH_CHECK("of this verb", strstr(after.leaf, "\"verb\":\"job.submit\""));
    BH_CHECK_EQ("no number was given out", f.core.next_job, 2);
    BH_CHECK_EQ("elsewhere it is allowed",
                fixture_submit(&f, (struct submission){ "alice", "other", "large", NULL, 0, 1 }), BH_OK);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
permission_is_asked_first(void **state)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, SITE("max_jobs: 0", "")), BH_OK);
    BH_CHECK_EQ("nobody", fixture_submit(&f, (struct submission){ "nobody", "acme", "small", NULL, 0, 1 }),
                BH_DENIED);
    BH_CHECK_STR("is told no more", f.err.msg, "nobody may not use job.submit on acme");
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
caps_count_what_the_engine_has(void **state)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, SITE("max_jobs: 4", "max_jobs: 2, max_sku_partitions: [{sku: small, "
                                                           "pieces: 5}]")),
                     BH_OK);
    BH_CHECK_EQ("four pieces",
                fixture_submit(&f, (struct submission){ "alice", "acme/vision", "small", NULL, 0, 4 }),
                BH_OK);
    BH_CHECK_EQ("six are too many",
                fixture_submit(&f, (struct submission){ "alice", "acme", "small", NULL, 0, 2 }), BH_DENIED);
    BH_CHECK_STR("counted with what is below", f.err.msg,
                 "policy.max_sku_partitions of acme: 4 small exist, 2 more would exceed 5");
    BH_CHECK_EQ("of another SKU", fixture_submit(&f, large), BH_OK);
    BH_CHECK_EQ("acme's third job", fixture_submit(&f, large), BH_DENIED);
    BH_CHECK_STR("why", f.err.msg, "policy.max_jobs of acme: 2 jobs exist, 1 more would exceed 2");
    BH_CHECK_EQ("the site's third", fixture_submit(&f, others), BH_OK);
    BH_CHECK_EQ("the site's fourth", fixture_submit(&f, others), BH_OK);
    BH_CHECK_EQ("the site's fifth", fixture_submit(&f, others), BH_DENIED);
    BH_CHECK_STR("why not", f.err.msg, "policy.max_jobs of the site: 4 jobs exist, 1 more would exceed 4");
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
policies_survive_a_restart_and_go_with_the_file(void **state)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, SITE("", "kinds: [service]")), BH_OK);
    BH_CHECK_EQ("denied", fixture_submit(&f, small), BH_DENIED);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK);
    BH_CHECK_EQ("denied after a restart", fixture_submit(&f, small), BH_DENIED);
    assert_int_equal(fixture_apply(&f, SITE("", "")), BH_OK);
    BH_CHECK_EQ("the policy is gone", fixture_submit(&f, small), BH_OK);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_denial_changes_nothing_and_is_recorded_with_its_rule),
    cmocka_unit_test(permission_is_asked_first),
    cmocka_unit_test(caps_count_what_the_engine_has),
    cmocka_unit_test(policies_survive_a_restart_and_go_with_the_file),
};
BH_TEST_MAIN(tests)
