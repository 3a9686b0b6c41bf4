#include "engine/read/why_holder.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

#define HOUR UINT64_C(3600000000000)

/* A tenant of two GPUs has one whole GPU for an hour, and one for `second` hours; what does a job wait for
 * that wants `wanted` more? */
static void
all_that_is_missing_must_leave(void **state)
{
    static const struct {
        const char *name;
        uint64_t wanted, second; /* 0: it has no limit */
        uint64_t frees;          /* in hours; 0: not known */
    } cases[] = {
        { "one", 1, 5, 1 },
        { "both", 2, 5, 5 },
        { "one, and the other stays", 1, 0, 1 },
        { "both, and one of them stays", 2, 0, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(4);
        struct bh_ev_submit whole = bh_fixture_submission(21, 3, 1);
        struct bh_reason why;

        bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 21 },
                                                          .parent = { 2 },
                                                          .kind = BH_TENANT_PROJECT,
                                                          .limit = UINT64_C(2) * BH_GPU_PARTS });
        whole.time_limit_ns = HOUR;
        bh_fixture_submit_running(fixture, whole);
        whole.time_limit_ns = cases[i].second * HOUR;
        bh_fixture_submit_running(fixture, whole);
        whole.count = (uint32_t)cases[i].wanted;
        why = bh_fixture_why(fixture, bh_fixture_submit(fixture, whole));
        BH_CHECK_EQ(cases[i].name, why.code, BH_REASON_QUOTA_GPU);
        BH_CHECK_EQ(cases[i].name,
                    (why.frees_at_ns - (why.frees_at_ns ? fixture->now_ns : 0) + HOUR / 2) / HOUR,
                    cases[i].frees);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_that_is_missing_must_leave),
};
BH_TEST_MAIN(tests)
