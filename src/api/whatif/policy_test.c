#include "api/whatif/policy.h"

#include "api/fixture_test.h"
#include "base/test.h"

static struct received got;

#define SITE(policy)                                                                                         \
    "\"site\":{\"policy\":{" policy "},\"skus\":[{\"grade\":\"C\",\"models\":["                              \
    "{\"model\":\"H100-80GB\",\"profile\":\"1g.10gb\"}],\"name\":\"small\"}],"                               \
    "\"tenants\":[{\"name\":\"acme\"},{\"name\":\"acme/vision\"},{\"name\":\"other\"}]}"
#define JOB(more) "{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"acme/vision\"" more "}"

static void
policy_ask(struct fixture *f, const char *body)
{
    bh_fixture_send(
        f, &(struct sent){ .method = BH_POST, .path = "/v1/policy/test", .body = body, .uid = CAROL }, &got);
}

static void
recorded_submissions_are_tested(void **state)
{
    struct fixture *f = bh_fixture_open();

    for (uint64_t job = 1; job <= 450; job++)
        bh_fixture_put_job(f, job, job % 3 ? 2 : 4, 1, "completed");
    policy_ask(f, "{" SITE("\"require_time_limit\":true") "}");
    assert_int_equal(got.status, 200);
    BH_CHECK("all are read, over several pages", strstr(got.text, "\"denied\":450,\"tested\":450}"));
    BH_CHECK("the first", strstr(got.text, "{\"items\":[{\"entry\":\"require_time_limit\",\"job\":1,"));
    BH_CHECK("by whom", strstr(got.text, "\"policy\":\"*\",\"rule\":2014,\"sentence\":\"policy."
                                         "require_time_limit of the site: a job must have a time "
                                         "limit\",\"submitted_ns\":\"1000\",\"tenant\":\"acme/vision\","
                                         "\"user\":\"alice\"}"));
    policy_ask(f, "{" SITE("\"skus\":[\"small\"]") "}");
    BH_CHECK_STR("none is denied", got.text, "{\"items\":[],\"denied\":0,\"tested\":450}");
    bh_fixture_shred(f, 2); /* acme/vision's of the month */
    policy_ask(f, "{" SITE("\"skus\":[\"small\"]") "}");
    BH_CHECK_STR("what was erased is counted", got.text,
                 "{\"items\":[],\"denied\":0,\"erased\":300,\"tested\":150}");
    bh_fixture_close(f);
    BH_CHECK_DONE();
}

static void
submissions_of_a_file_are_tested(void **state)
{
    static const struct {
        const char *name, *body, *says;
    } cases[] = {
        { "one of two",
          "{\"jobs\":[" JOB("") "," JOB(",\"labels\":[\"team=a\"]") "]," SITE("\"labels\":[\"team\"]") "}",
          "\"entry\":\"labels\",\"job\":1," },
        { "counted",
          "{\"jobs\":[" JOB("") "," JOB(",\"labels\":[\"team=a\"]") "]," SITE("\"labels\":[\"team\"]") "}",
          "\"denied\":1,\"tested\":2}" },
        { "a tenant that is not in the file",
          "{\"jobs\":[{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"nobody\"}]," SITE("") "}",
          "the site file has no tenant \\\"nobody\\\"" },
        { "a SKU that is not", "{\"jobs\":[{\"args\":[\"true\"],\"sku\":\"huge\"}]," SITE("") "}",
          "the site file has no SKU \\\"huge\\\"" },
        { "a job that is none",
          "{\"jobs\":[{\"args\":[\"true\"],\"sku\":\"small\",\"labels\":[\"x\"]}]," SITE("") "}",
          "labels[0]: \\\"x\\\" is not NAME=value" },
        { "a site file that is wrong", "{" SITE("\"kinds\":[\"party\"]") "}",
          "policy: kinds[0]: \\\"party\\\" is not known" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct fixture *f = bh_fixture_open();

        policy_ask(f, cases[i].body);
        if (!strstr(got.text, cases[i].says))
            BH_CHECK_STR(cases[i].name, got.text, cases[i].says);
        bh_fixture_close(f);
    }
    BH_CHECK_DONE();
}

static void
items_are_cut_and_counts_are_not(void **state)
{
    struct fixture *f = bh_fixture_open();

    for (uint64_t job = 1; job <= 5; job++)
        bh_fixture_put_job(f, job, 2, 1, "completed");
    bh_fixture_send(f,
                    &(struct sent){ .method = BH_POST,
                                    .path = "/v1/policy/test",
                                    .query = "limit=2",
                                    .uid = CAROL,
                                    .body = "{" SITE("\"max_jobs\":\"0\",\"kinds\":[\"service\"]") "}" },
                    &got);
    BH_CHECK("two", strstr(got.text, "\"job\":2,") && !strstr(got.text, "\"job\":3,"));
    BH_CHECK("of five", strstr(got.text, "\"denied\":5,\"tested\":5}"));
    bh_fixture_close(f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(recorded_submissions_are_tested),
    cmocka_unit_test(submissions_of_a_file_are_tested),
    cmocka_unit_test(items_are_cut_and_counts_are_not),
};
BH_TEST_MAIN(tests)
