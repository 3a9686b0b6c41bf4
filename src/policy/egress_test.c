#include "policy/egress.h"

#include "base/test.h"

static const char *site_egress[] = { "10.0.0.0/8", "203.0.113.0/24 tcp 443" };
static const char *site_deny[] = { "10.9.0.0/16" };
static const char *site_resolver[] = { "10.0.0.53" };
static const char *team_egress[] = { "10.1.0.0/16 tcp" };
static const char *team_deny[] = { "10.1.9.0/24" };

static const struct bh_site_policy texts[] = {
    { .egress = { site_egress, 2 }, .egress_deny = { site_deny, 1 }, .resolvers = { site_resolver, 1 } },
    { .require_time_limit = true },
    { .egress = { team_egress, 1 }, .egress_deny = { team_deny, 1 } },
};
static const struct bh_admission_policy policies[] = {
    { "", { .text = &texts[0] } },
    { "acme", { .text = &texts[1] } },
    { "acme/vision", { .text = &texts[2] } },
};

static void
test_deepest(void **state)
{
    static const struct {
        const char *tenant;
        uint32_t policies, allow, deny, resolvers;
        const char *first;
    } cases[] = {
        { "acme/vision/train", 3, 1, 2, 0, "10.1.0.0/16 tcp" },
        { "acme/vision", 3, 1, 2, 0, "10.1.0.0/16 tcp" },
        { "acme/visions", 3, 2, 1, 1, "10.0.0.0/8" },
        { "acme", 3, 2, 1, 1, "10.0.0.0/8" },
        { "acme", 0, 0, 0, 0, NULL }, /* no policy says: nothing */
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        struct bh_admission admission = { policies, cases[i].policies };
        struct bh_egress egress;
        struct bh_err err;

        BH_CHECK_EQ(cases[i].tenant, bh_egress_of(&admission, cases[i].tenant, arena, &egress, &err), BH_OK);
        BH_CHECK_EQ(cases[i].tenant, egress.allow.count, cases[i].allow);
        BH_CHECK_EQ(cases[i].tenant, egress.deny.count, cases[i].deny);
        BH_CHECK_EQ(cases[i].tenant, egress.resolvers.count, cases[i].resolvers);
        if (cases[i].first && egress.allow.count > 0)
            BH_CHECK_STR(cases[i].tenant, egress.allow.items[0], cases[i].first);
    }
    BH_CHECK_DONE();
}

static void
test_too_many(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    static const char *many[BH_NET_RULES_MAX];
    const struct bh_site_policy text = { .egress_deny = { many, BH_NET_RULES_MAX } };
    const struct bh_admission_policy both[] = { { "", { .text = &text } }, { "acme", { .text = &text } } };
    struct bh_egress egress;
    struct bh_err err;

    BH_CHECK_EQ("all of one", bh_egress_of(&(struct bh_admission){ both, 1 }, "acme", arena, &egress, &err),
                BH_OK);
    BH_CHECK_EQ("of two", bh_egress_of(&(struct bh_admission){ both, 2 }, "acme", arena, &egress, &err),
                BH_FULL);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_deepest), cmocka_unit_test(test_too_many) };
BH_TEST_MAIN(tests)
