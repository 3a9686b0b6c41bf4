#include "api/records.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

#define LEAF(seq, tenant)                                                                \
    "{\"actor\":{\"id\":1,\"uid\":1001,\"via\":\"peer\"},\"dec\":{\"allow\":true,"       \
    "\"rule\":6},\"obj\":{\"id\":7,\"type\":\"job\"},\"phase\":\"intent\",\"res\":\"ok\","\
    "\"seq\":" #seq ",\"tenant\":" #tenant ",\"ts\":\"1000\",\"v\":1,\"verb\":\"job_submit\"}"

static int
open_records(void **state)
{
    static const char *const leaves[] = { LEAF(0, 2), LEAF(1, 4), LEAF(2, 0), LEAF(3, 2) };

    f = bh_fixture_open();
    for (uint64_t i = 0; i < BH_COUNT(leaves); i++)
        bh_fixture_put_record(f, i, leaves[i]);
    return 0;
}

static int
close_records(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static uint32_t
count_in(const char *text, const char *what)
{
    uint32_t count = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

static void
records_are_cut_down_to_what_may_be_seen(void **state)
{
    SEND(BH_GET, "/v1/records", .uid = CAROL);
    BH_CHECK_EQ("all", count_in(got.text, "\"seq\":"), 4);
    BH_CHECK("names", strstr(got.text, "\"name\":\"alice\""));
    BH_CHECK("tenants", strstr(got.text, "\"tenant\":\"other\""));
    BH_CHECK("total", strstr(got.text, "\"total\":4}"));
    SEND(BH_GET, "/v1/records", .uid = ALICE);
    BH_CHECK_EQ("alice's", count_in(got.text, "\"seq\":"), 2);
    BH_CHECK("no other", !strstr(got.text, "other"));
    BH_CHECK_DONE();
}

static void
pages_follow_each_other(void **state)
{
    SEND(BH_GET, "/v1/records", .query = "limit=3", .uid = CAROL);
    BH_CHECK("next", strstr(got.text, "\"next\":\"2\",\"total\":4}"));
    SEND(BH_GET, "/v1/records", .query = "limit=3&after=2", .uid = CAROL);
    BH_CHECK_EQ("last", count_in(got.text, "\"seq\":"), 1);
    BH_CHECK("no next", !strstr(got.text, "\"next\""));
    SEND(BH_GET, "/v1/records", .query = "after=3", .uid = CAROL);
    BH_CHECK_STR("past the end", got.text, "{\"items\":[],\"total\":4}");
    BH_CHECK_DONE();
}

/* The tree can be computed from what anybody gets: a leaf, or its hash. */
static void
raw_gives_leaves_or_their_hash(void **state)
{
    uint8_t digest[32];
    char hash[65];
    struct bh_buf hex;

    bh_crypto_openssl.sha256("", 1, LEAF(1, 4), strlen(LEAF(1, 4)), digest);
    bh_buf_init_fixed(&hex, hash, sizeof hash);
    bh_buf_put_hex(&hex, digest, 32);
    SEND(BH_GET, "/v1/records", .query = "raw=true", .uid = ALICE);
    BH_CHECK_EQ("every number", count_in(got.text, "\"seq\":"), 4);
    BH_CHECK_EQ("leaves", count_in(got.text, "\"leaf\":"), 2);
    BH_CHECK_EQ("hashes", count_in(got.text, "\"hash\":"), 2);
    BH_CHECK("that of the leaf", strstr(got.text, bh_buf_text(&hex)));
    BH_CHECK("not its text", !strstr(got.text, "\\\"tenant\\\":4"));
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_records, close_records)
    const struct CMUnitTest tests[] = { TEST(records_are_cut_down_to_what_may_be_seen),
                                        TEST(pages_follow_each_other),
                                        TEST(raw_gives_leaves_or_their_hash) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
