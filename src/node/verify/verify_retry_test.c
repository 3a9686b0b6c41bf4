#include "node/verify/verify_retry.h"

#include "base/test.h"

/* The pauses between inconclusive checks, in seconds; 0: only on request. */
static void
test_pauses(void **state)
{
    static const struct {
        const char *name;
        uint32_t retries, first_ms;
        uint32_t pauses[9];
    } cases[] = {
        { "as it comes", 6, 5000, { 5, 10, 20, 40, 80, 160, 0, 0, 0 } },
        { "at most 5 min", 8, 60000, { 60, 120, 240, 300, 300, 300, 300, 300, 0 } },
        { "long from first", 2, 900000, { 300, 300, 0 } },
        { "once", 1, 1000, { 1, 0, 0 } },
        { "by nobody", 0, 5000, { 0, 0, 0 } },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_conf conf = { .verify_retries = cases[i].retries, .verify_retry_ms = cases[i].first_ms };
        struct bh_verify_retry retry = { 0 };
        bh_ns now = 7 * BH_NS_PER_S;

        for (size_t k = 0; k < BH_COUNT(cases[i].pauses); k++) {
            bh_ns pause = cases[i].pauses[k] * BH_NS_PER_S;

            bh_verify_retry_schedule(&retry, &conf, now);
            BH_CHECK_EQ(cases[i].name, retry.at, pause ? now + pause : 0);
            BH_CHECK(cases[i].name, !bh_verify_retry_is_due(&retry, now + pause - 1));
            BH_CHECK_EQ(cases[i].name, bh_verify_retry_is_due(&retry, now + pause), pause > 0);
            BH_CHECK(cases[i].name, !bh_verify_retry_is_due(&retry, now + pause));
            now += pause;
        }
    }
    BH_CHECK_DONE();
}

/* What showed something begins anew. */
static void
test_anew(void **state)
{
    struct bh_conf conf = { .verify_retries = 2, .verify_retry_ms = 1000 };
    struct bh_verify_retry retry = { 0 };

    bh_verify_retry_schedule(&retry, &conf, 0);
    bh_verify_retry_schedule(&retry, &conf, 0);
    BH_CHECK_EQ("twice as long", retry.at, 2 * BH_NS_PER_S);
    retry = (struct bh_verify_retry){ 0 };
    bh_verify_retry_schedule(&retry, &conf, 0);
    BH_CHECK_EQ("the first again", retry.at, BH_NS_PER_S);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pauses),
    cmocka_unit_test(test_anew),
};
BH_TEST_MAIN(tests)
