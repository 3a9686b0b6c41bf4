#include "api/whatif/whatif.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"
#include "engine/step/engine.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)
#define SITE                                                                                                 \
    "{\"tenants\":[{\"kind\":\"organization\",\"name\":\"acme\"},"                                           \
    "{\"kind\":\"department\",\"name\":\"acme/vision\"}]}"
#define ASK(who, text) SEND(BH_POST, "/v1/whatif", .body = text, .uid = who)

/* Two GPUs: a small job of alice's runs, a second one waits for the limit of one; bob has a
 * large one. */
static int
whatif_open_site(void **state)
{
    f = bh_fixture_open();
    bh_fixture_submit(f, 301, 2, 1, 1);
    bh_fixture_submit(f, 302, 2, 1, 1);
    bh_fixture_submit(f, 303, 4, 2, 2);
    bh_fixture_put_job(f, 301, 2, 1, "running");
    bh_fixture_put_job(f, 302, 2, 1, "pending");
    bh_fixture_put_job(f, 303, 4, 2, "running");
    bh_fixture_put_job(f, 304, 2, 1, "completed");
    return 0;
}

static int
whatif_close_site(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static void
whatif_sum(void *self, const void *bytes, size_t length)
{
    uint64_t *hash = self;

    for (size_t i = 0; i < length; i++)
        *hash = (*hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static uint64_t
digest(void)
{
    uint64_t hash = 1;

    bh_engine_digest(f->engine, whatif_sum, &hash);
    return hash;
}

static void
questions_are_answered(void **state)
{
    static const struct {
        const char *name;
        uint32_t uid;
        const char *body;
        uint32_t status;
        const char *says, *not ;
    } cases[] = {
        { "a job that waits for its limit", ALICE,
          "{\"submit\":{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"acme/vision\"}}", 200,
          "\"decision\":\"waits\",\"estimated_start_ns\":\"", "\"id\":" },
        { "and why", ALICE, "{\"submit\":{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"acme/vision\"}}",
          200, "\"reason\":\"quota_sku\"", NULL },
        { "a job that starts at once", CAROL,
          "{\"submit\":{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"acme/speech\"}}", 200,
          "\"decision\":\"starts\"", "\"decision\":\"waits\"" },
        { "cancel: the next one starts earlier", ALICE, "{\"cancel\":301}", 200,
          "\"job\":302,\"kind\":\"earlier\",\"tenant\":\"acme/vision\"", NULL },
        { "cancel: itself", ALICE, "{\"cancel\":301}", 200, "\"job\":301,\"kind\":\"cancelled\"", NULL },
        { "cancel: whose job is not seen", BOB, "{\"cancel\":301}", 404, "no job 301", NULL },
        { "cancel: what has ended", ALICE, "{\"cancel\":304}", 409, "job 304 has ended already: completed",
          NULL },
        { "a guarantee over the parent's", CAROL,
          "{\"quota\":{\"tenant\":\"acme/vision\",\"guarantee\":\"1\"},\"site\":" SITE "}", 400,
          "tenants[0] acme: guarantees below it sum to 1 GPUs, its own is 0", NULL },
        { "a guarantee that is none", CAROL,
          "{\"quota\":{\"tenant\":\"acme/vision\",\"guarantee\":\"none\"}}", 400,
          "\"next\":\"say 0 for no guarantee\"", NULL },
        { "drain a GPU", CAROL, "{\"drain\":\"GPU-a\"}", 200, "\"changes\":[", NULL },
        { "drain a node", CAROL, "{\"drain\":\"n1\"}", 200, "\"changes\":[", NULL },
        { "drain a GPU now", CAROL, "{\"drain\":\"GPU-a\",\"now\":true}", 200,
          "\"job\":301,\"kind\":\"requeued\"", NULL },
        { "drain a node now", CAROL, "{\"drain\":\"n1\",\"now\":true}", 200, "\"job\":303", NULL },
        { "what goes on", CAROL, "{\"drain\":\"n1\"}", 200, "\"changes\":[", "\"job\":303" },
        { "now what?", CAROL, "{\"cancel\":301,\"now\":true}", 400, "now: only with drain", NULL },
        { "drain nothing", CAROL, "{\"drain\":\"n2\"}", 404, "no GPU or node n2", NULL },
        { "drain is not for developers", ALICE, "{\"drain\":\"GPU-a\"}", 403, "site.view", NULL },
        { "nor quotas", ALICE, "{\"quota\":{\"tenant\":\"acme/vision\",\"limit\":2}}", 403, "site.apply",
          NULL },
        { "over the limit for ever", ALICE,
          "{\"submit\":{\"args\":[\"true\"],\"count\":2,\"sku\":\"small\","
          "\"tenant\":\"acme/vision\"}}",
          422, "\"reason\":\"never_quota\"", NULL },
        { "a site file is not for developers", ALICE,
          "{\"site\":{\"tenants\":[{\"kind\":\"organization\",\"name\":\"acme\"}]}}", 403, "site.apply",
          NULL },
        { "nothing asked", ALICE, "{}", 400, "nothing is asked", NULL },
        { "an amount that is none", CAROL,
          "{\"quota\":{\"tenant\":\"acme/vision\",\"limit\":\"many\"},\"site\":" SITE "}", 400,
          "\"next\":\"limit: GPUs, or", NULL },
        { "no such tenant", CAROL, "{\"quota\":{\"tenant\":\"nobody\",\"limit\":1}}", 404, "nobody", NULL },
        { "neither", CAROL, "{\"quota\":{\"tenant\":\"acme/vision\"}}", 400, "neither", NULL },
    };
    uint64_t before = digest();

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        ASK(cases[i].uid, cases[i].body);
        BH_CHECK_EQ(cases[i].name, got.status, cases[i].status);
        BH_CHECK(cases[i].name, strstr(got.text, cases[i].says));
        if (cases[i].not )
            BH_CHECK(cases[i].name, !strstr(got.text, cases[i].not ));
        if (got.status != cases[i].status || !strstr(got.text, cases[i].says))
            print_message("# %s: %u %s\n", cases[i].name, got.status, got.text);
        BH_CHECK(cases[i].name, !f->commanded || f->command.dry_run);
        BH_CHECK_EQ(cases[i].name, digest(), before);
    }
    BH_CHECK_DONE();
}

/* A job is admitted as in earnest, and only what is admitted has a future. */
static void
the_owner_admits_the_job(void **state)
{
    static const char body[] =
        "{\"submit\":{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"acme/vision\"}}";

    ASK(ALICE, body);
    BH_CHECK_EQ("admitted", got.status, 200);
    BH_CHECK_EQ("as a submission", f->command.op, BH_OP_JOB_SUBMIT);
    BH_CHECK("of which nothing is kept", f->command.dry_run && f->command.admission_only);
    f->rc = BH_RANGE;
    f->says = "grace: too long";
    ASK(ALICE, body);
    BH_CHECK_EQ("refused", got.status, 400);
    BH_CHECK("in the same words", strstr(got.text, "grace: too long"));
    BH_CHECK_EQ("recorded by the owner", f->refusals, 0);
    f->rc = BH_OK;
    ASK(ALICE, "{\"submit\":{\"args\":[\"true\"],\"network\":\"egress\",\"sku\":\"small\",\"tenant\":"
               "\"acme/vision\"}}");
    BH_CHECK_EQ("what no node gives", got.status, 400);
    BH_CHECK(got.text, strstr(got.text, "no node can run it: n1 has no network egress"));
    BH_CHECK_DONE();
}

/* Jobs of tenants that the caller may not see are counted and not named. */
static void
strangers_are_not_counted(void **state)
{
    bh_fixture_close(f);
    f = bh_fixture_open();
    bh_fixture_submit(f, 301, 2, 1, 1);
    bh_fixture_submit(f, 303, 4, 2, 2);
    bh_fixture_submit(f, 304, 4, 2, 2);
    bh_fixture_put_job(f, 301, 2, 1, "running");
    bh_fixture_put_job(f, 304, 4, 2, "pending");
    ASK(CAROL, "{\"cancel\":301}");
    BH_CHECK("an admin sees whose", strstr(got.text, "\"job\":304,\"kind\":\"earlier\","
                                                     "\"tenant\":\"other\""));
    BH_CHECK("and nothing is hidden", strstr(got.text, "\"changes_of_other_tenants\":{}"));
    ASK(ALICE, "{\"cancel\":301}");
    BH_CHECK("alice does not", !strstr(got.text, "304") && !strstr(got.text, "other\""));
    BH_CHECK("she sees that there are", strstr(got.text, "\"changes_of_other_tenants\":"
                                                         "{\"earlier\":true}"));
    BH_CHECK_DONE();
}

/* The estimate is in `why`, in the job, and in lists that ask for it. */
static void
starts_are_estimated(void **state)
{
    SEND(BH_GET, "/v1/jobs/302/why", .uid = ALICE);
    BH_CHECK("why", strstr(got.text, "\"estimated_start_ns\":\"1086400000000000\""));
    BH_CHECK("what it rests on", strstr(got.text, "\"assumption\":\"if jobs run to"));
    SEND(BH_GET, "/v1/jobs/302", .uid = ALICE);
    BH_CHECK("the job", strstr(got.text, "\"estimated_start_ns\":\""));
    SEND(BH_GET, "/v1/jobs", .query = "start=true", .uid = ALICE);
    BH_CHECK("the list", strstr(got.text, "\"estimated_start_ns\":\""));
    SEND(BH_GET, "/v1/jobs", .uid = ALICE);
    BH_CHECK("only when asked for", !strstr(got.text, "estimated"));
    SEND(BH_GET, "/v1/jobs/301/why", .uid = ALICE);
    BH_CHECK("not of one that runs", !strstr(got.text, "estimated"));
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, whatif_open_site, whatif_close_site)
    const struct CMUnitTest tests[] = { TEST(questions_are_answered), TEST(the_owner_admits_the_job),
                                        TEST(strangers_are_not_counted), TEST(starts_are_estimated) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
