#include "model/policies.h"

#include "model/decode_test.h"

#define SKUS "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]\n"

static struct bh_site *
site_of(struct bh_arena *arena, const char *yaml)
{
    struct bh_site *site = bh_arena_alloc(arena, sizeof *site);
    struct bh_err err;

    assert_int_equal(bh_test_decode(yaml, &bh_site_fields, site, arena, &err), BH_OK);
    return site;
}

static void
those_above_a_tenant_hold_for_it(void **state)
{
    struct bh_arena *arena = bh_arena_new(1 << 20);
    const struct bh_site *site = site_of(arena, SKUS "policy: {max_jobs: 9}\n"
                                                     "tenants:\n"
                                                     "  - {name: acme, policy: {max_jobs: 8}}\n"
                                                     "  - {name: acme/vision}\n"
                                                     "  - {name: acme/vision/train, policy: {max_jobs: 7}}\n"
                                                     "  - {name: acme2, policy: {max_jobs: 6}}\n");
    static const struct {
        const char *tenant, *owners;
    } cases[] = {
        { "acme", " ; acme ;" },
        { "acme/vision", " ; acme ;" },
        { "acme/vision/train", " ; acme ; acme/vision/train ;" },
        { "acme2", " ; acme2 ;" },
        { "other", " ;" },
        { NULL, " ; acme ; acme/vision/train ; acme2 ;" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char owners[200] = "";
        uint32_t cursor = 0;
        const char *owner;

        while (bh_policies_next(site, cases[i].tenant, &cursor, &owner))
            snprintf(owners + strlen(owners), sizeof owners - strlen(owners), "%s%s ;", *owner ? " " : "",
                     *owner ? owner : "");
        BH_CHECK_STR(cases[i].tenant ? cases[i].tenant : "all", owners, cases[i].owners);
    }
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static void
a_site_file_with_a_policy_that_widens_is_refused(void **state)
{
    static const struct {
        const char *name, *yaml;
        bh_rc rc;
        const char *says;
    } cases[] = {
        { "narrower and narrower",
          SKUS "policy: {max_jobs: 9}\ntenants: [{name: a, policy: {max_jobs: 9}}, "
               "{name: a/b}, {name: a/b/c, policy: {max_jobs: 2}}]\n",
          BH_OK, "" },
        { "beside one another",
          SKUS "tenants: [{name: a, policy: {max_jobs: 1}}, {name: b, policy: "
               "{max_jobs: 2}}]\n",
          BH_OK, "" },
        { "wider than the site's",
          SKUS "policy: {max_jobs: 9}\ntenants: [{name: a, policy: {max_jobs: 10}}]\n", BH_INVALID,
          "tenants a policy: max_jobs: 10 is more than the policy above allows" },
        { "wider than a grandparent's",
          SKUS "tenants: [{name: a, policy: {kinds: [batch]}}, {name: a/b}, "
               "{name: a/b/c, policy: {kinds: [batch, service]}}]\n",
          BH_INVALID, "tenants a/b/c policy: kinds: service is more than the policy above allows" },
        { "wrong in itself", SKUS "policy: {hours: [always]}\ntenants: [{name: a}]\n", BH_INVALID,
          "policy: hours[0]: \"always\" is not understood" },
        { "a SKU that is not there", SKUS "policy: {skus: [small, huge]}\ntenants: [{name: a}]\n", BH_INVALID,
          "policy: skus[1]: no SKU \"huge\" in this file" },
        { "nor there",
          SKUS "tenants: [{name: a, policy: {max_sku_partitions: [{sku: huge, partitions: 1}]}}]\n",
          BH_INVALID, "tenants a policy: max_sku_partitions[0]: no SKU \"huge\" in this file" },
        { "a dataset that is not there",
          "datasets: [{name: d, path: /d, tenant: a}]\ntenants: [{name: a, policy: "
          "{datasets: [d, e]}}]\n",
          BH_INVALID, "tenants a policy: datasets[1]: no dataset \"e\" in this file" },
        { "no dataset at all", "tenants: [{name: a, policy: {datasets: [none]}}]\n", BH_OK, "" },
        { "an empty list is not all", SKUS "tenants: [{name: a, policy: {skus: []}}]\n", BH_INVALID,
          "tenants a policy: skus: an empty list" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_arena *arena = bh_arena_new(1 << 20);
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].name, bh_site_check(site_of(arena, cases[i].yaml), &err), cases[i].rc);
        BH_CHECK_STR(cases[i].name, err.msg, cases[i].says);
        bh_arena_free(arena);
    }
    BH_CHECK_DONE();
}

/* Each is a list that may stand alone; a job's node takes all of them together. */
static void
denied_prefixes_of_a_branch_are_counted_together(void **state)
{
    static const struct {
        const char *name, *child;
        uint32_t above, below;
        bh_rc rc;
        const char *says;
    } cases[] = {
        { "as many as a node takes", "a/b", 40, 24, BH_OK, "" },
        { "one more", "a/b", 40, 25, BH_INVALID,
          "tenants a/b policy: egress_deny: 65 entries with those of the policies above, 64 at most" },
        { "on another branch", "c", 40, 40, BH_OK, "" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_arena *arena = bh_arena_new(1 << 20);
        struct bh_err err = { 0 };
        struct bh_buf yaml;

        bh_buf_init(&yaml, 1 << 20);
        bh_buf_puts(&yaml, "tenants: [{name: a, policy: {egress_deny: [");
        for (uint32_t n = 0; n < cases[i].above; n++)
            bh_buf_printf(&yaml, "10.1.%u.0/24, ", n);
        bh_buf_printf(&yaml, "]}}, {name: %s, policy: {egress_deny: [", cases[i].child);
        for (uint32_t n = 0; n < cases[i].below; n++)
            bh_buf_printf(&yaml, "10.2.%u.0/24, ", n);
        bh_buf_puts(&yaml, "]}}]\n");
        BH_CHECK_EQ(cases[i].name, bh_site_check(site_of(arena, bh_buf_text(&yaml)), &err), cases[i].rc);
        BH_CHECK_STR(cases[i].name, err.msg, cases[i].says);
        bh_buf_fini(&yaml);
        bh_arena_free(arena);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(those_above_a_tenant_hold_for_it),
    cmocka_unit_test(a_site_file_with_a_policy_that_widens_is_refused),
    cmocka_unit_test(denied_prefixes_of_a_branch_are_counted_together),
};
BH_TEST_MAIN(tests)
