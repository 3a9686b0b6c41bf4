/* 429 with Retry-After: a caller that asks too often waits, and delays no other. */
#include "api/request/rate.h"

#include <string.h>

#include "api/fixture_test.h"
#include "base/test.h"

static struct received got;
static struct fixture *f;

/* Reads 2 a second and so 20 at once; changes 1 and 10; of what is expensive as few. */
static int
rate_begin(void **state)
{
    static const uint32_t rates[BH_RATE_CLASSES] = { 2, 1, 1 };

    f = bh_fixture_open();
    bh_fixture_limit(f, rates);
    return 0;
}

static int
rate_end(void **state)
{
    bh_fixture_close(f);
    return 0;
}

/* How many of 100 requests are not refused for their number.  A slow machine lets some more
 * through, one for each second or half that passes. */
static uint32_t
rate_ask(const struct sent *sent)
{
    uint32_t count = 0;

    for (int i = 0; i < 100; i++) {
        bh_fixture_send(f, sent, &got);
        count += got.status != 429;
    }
    return count;
}

static void
who_asks_too_often_waits(void **state)
{
    static const struct {
        const char *name;
        struct sent sent;
        uint32_t least, most;
    } steps[] = {
        { "reads", { .path = "/v1/skus", .uid = ALICE }, 20, 40 },
        { "changes", { .method = BH_POST, .path = "/v1/tokens", .uid = ALICE }, 10, 30 },
        { "somebody else", { .path = "/v1/skus", .uid = BOB }, 20, 40 },
        { "an administrator", { .path = "/v1/skus", .uid = CAROL }, 100, 100 },
        { "root", { .method = BH_POST, .path = "/v1/tokens", .uid = 0 }, 100, 100 },
        { "a stranger on the socket", { .path = "/v1/skus", .uid = STRANGER }, 20, 40 },
        { "strangers far away", { .path = "/healthz", .uid = UINT32_MAX, .tcp = true }, 20, 40 },
        { "expensive",
          { .method = BH_POST, .path = "/v1/whatif", .uid = BOB, .body = "{\"cancel\":1}" },
          10,
          30 },
    };

    for (size_t i = 0; i < BH_COUNT(steps); i++) {
        uint32_t served = rate_ask(&steps[i].sent);

        BH_CHECK(steps[i].name, served >= steps[i].least && served <= steps[i].most);
    }
    BH_CHECK_DONE();
}

static void
it_is_said_when_to_come_again(void **state)
{
    rate_ask(&(struct sent){ .path = "/v1/skus", .uid = ALICE });
    BH_CHECK_EQ("status", got.status, 429);
    BH_CHECK_STR("Retry-After", got.header, "1");
    BH_CHECK("code", strstr(got.text, "\"code\":\"too_many\""));
    BH_CHECK("what to do", strstr(got.text, "try again after 1 s"));
    BH_CHECK_DONE();
}

/* Guessed tokens count as an unknown caller's, whichever name they carry. */
static void
bad_credentials_are_a_strangers(void **state)
{
    struct sent guess = { .path = "/v1/skus", .tcp = true, .uid = UINT32_MAX, .token = "bh_aaaaaaaaaaaa_x" };
    uint32_t served = rate_ask(&guess);

    BH_CHECK("few", served >= 20 && served <= 40);
    BH_CHECK_EQ("then none", got.status, 429);
    bh_fixture_send(f, &(struct sent){ .path = "/v1/skus", .uid = ALICE }, &got);
    BH_CHECK_EQ("alice", got.status, 200);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(who_asks_too_often_waits, rate_begin, rate_end),
    cmocka_unit_test_setup_teardown(it_is_said_when_to_come_again, rate_begin, rate_end),
    cmocka_unit_test_setup_teardown(bad_credentials_are_a_strangers, rate_begin, rate_end),
};
BH_TEST_MAIN(tests)
