/* What the record of a refusal names: the request's deed, of what-if that which was asked about, the
 * tenant as soon as the caller may know it, and the object where there is one. */
#include "api/audit/refused_request.h"

#include "api/fixture_test.h"
#include "base/test.h"
#include "policy/operations.h"

#define SUBMIT(more) "{\"args\":[\"a\"],\"sku\":\"small\",\"tenant\":\"acme/vision\"" more "}"
#define ASK_SUBMIT(more) "{\"submit\":" SUBMIT(more) "}"
#define NAMED(name) "\"mounts\":[{\"dataset\":\"" name "\"}]"

enum { VISION = 2, RULE_LACKS = 3004, RULE_UNKNOWN = 3001, RULE_NETWORKS = 2021 };

static struct received got;

static struct fixture *
open_with_a_job(void)
{
    struct fixture *f = bh_fixture_open();

    bh_fixture_submit(f, 1, VISION, 1, 1);
    bh_fixture_put_job(f, 1, VISION, 1, "running");
    return f;
}

static void
refused_request_check(const char *name, const struct bh_refused_request *is,
                      const struct bh_refused_request *wanted)
{
    BH_CHECK_STR(name, is->verb ? is->verb : bh_operation_recorded_verb(is->op), wanted->verb);
    BH_CHECK_EQ(name, is->tenant.v, wanted->tenant.v);
    BH_CHECK_EQ(name, is->job.v, wanted->job.v);
    BH_CHECK_STR(name, is->object.type, wanted->object.type);
    BH_CHECK_EQ(name, is->object.id, wanted->object.id);
    BH_CHECK_EQ(name, is->verdict.rule, wanted->verdict.rule);
}

static const struct {
    const char *name;
    struct sent sent;
    uint32_t status;
    struct bh_refused_request tried;
    const char *target;
} denials[] = {
    { "a read of a job",
      { BH_GET, "/v1/jobs/1/logs", .uid = DAVE },
      403,
      { .verb = "job.logs", .job = { 1 }, .tenant = { VISION } },
      "" },
    { "a job that is not seen",
      { BH_GET, "/v1/jobs/1", .uid = BOB },
      404,
      { .verb = "job.view", .job = { 1 } },
      "" },
    { "a folder",
      { BH_POST, "/v1/jobs", .uid = ALICE, .body = SUBMIT(",\"mounts\":[{\"source\":\"/x\"}]") },
      403,
      { .verb = "job.submit", .tenant = { VISION } },
      "" },
    { "a working directory",
      { BH_POST, "/v1/jobs", .uid = ALICE, .body = SUBMIT(",\"cwd\":\"/x\"") },
      403,
      { .verb = "job.submit", .tenant = { VISION } },
      "" },
    { "an SKU that there is not",
      { BH_POST, "/v1/jobs", .uid = ALICE,
        .body = "{\"args\":[\"a\"],\"sku\":\"no\",\"tenant\":\"acme/vision\"}" },
      404,
      { .verb = "job.submit", .tenant = { VISION } },
      "" },
    { "a tenant that is not seen",
      { BH_POST, "/v1/jobs", .uid = BOB, .body = SUBMIT("") },
      404,
      { .verb = "job.submit" },
      "" },
    { "what if quota",
      { BH_POST, "/v1/whatif", .uid = DAVE,
        .body = "{\"quota\":{\"limit\":\"1\",\"tenant\":\"acme/vision\"}}" },
      403,
      { .verb = "site.apply", .object = { "tenant", VISION } },
      "" },
    { "of no tenant",
      { BH_POST, "/v1/whatif", .uid = DAVE, .body = "{\"quota\":{\"limit\":\"1\",\"tenant\":\"none\"}}" },
      403,
      { .verb = "site.apply" },
      "" },
    { "what if drain",
      { BH_POST, "/v1/whatif", .uid = ALICE, .body = "{\"drain\":\"n1\"}" },
      403,
      { .verb = "site.view" },
      "n1" },
    { "what if apply",
      { BH_POST, "/v1/whatif", .uid = ALICE, .body = "{\"site\":{\"tenants\":[{\"name\":\"mine\"}]}}" },
      403,
      { .verb = "site.apply" },
      "" },
    { "what if cancel",
      { BH_POST, "/v1/whatif", .uid = DAVE, .body = "{\"cancel\":1}" },
      403,
      { .verb = "job.cancel", .job = { 1 }, .tenant = { VISION } },
      "" },
    { "of a job that is not seen",
      { BH_POST, "/v1/whatif", .uid = BOB, .body = "{\"cancel\":1}" },
      404,
      { .verb = "job.cancel", .job = { 1 } },
      "" },
    { "with a folder",
      { BH_POST, "/v1/whatif", .uid = ALICE, .body = ASK_SUBMIT(",\"mounts\":[{\"source\":\"/x\"}]") },
      403,
      { .verb = "job.submit", .tenant = { VISION } },
      "" },
    { "a submission beside a cancellation",
      { BH_POST, "/v1/whatif", .uid = ALICE,
        .body = "{\"cancel\":1,\"submit\":" SUBMIT(",\"cwd\":\"/x\"") "}" },
      403,
      { .verb = "job.submit", .tenant = { VISION } },
      "" },
    { "walls of a node",
      { BH_POST, "/v1/verify", .query = "node=n1", .uid = ALICE },
      403,
      { .verb = "isolation.verify" },
      "n1" },
    { "a drain",
      { BH_POST, "/v1/drain", .uid = ALICE, .body = "{\"target\":\"GPU-a\"}" },
      403,
      { .verb = "gpu.cordon" },
      "GPU-a" },
    { "a key",
      { BH_POST, "/v1/keys/shred", .uid = ALICE,
        .body = "{\"month\":\"all\",\"reason\":\"r\",\"tenant\":\"acme/vision\"}" },
      403,
      { .verb = "key.shred", .object = { "tenant", VISION } },
      "" },
    { "an account",
      { BH_DELETE, "/v1/accounts/bob", .uid = ALICE },
      403,
      { .verb = "account.reset" },
      "bob" },
};

static void
the_record_names_what_was_denied(void **state)
{
    static const char *const networks[] = { "none", "tenant" };
    const struct bh_site policed = { .policy.networks = { (const char **)networks, 2 } };
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct fixture *f = open_with_a_job();
    struct bh_err err;

    assert_int_equal(bh_admission_compile(&policed, arena, &f->dir.admission, &err), BH_OK);
    for (size_t i = 0; i < BH_COUNT(denials); i++) {
        bh_fixture_send(f, &denials[i].sent, &got);
        BH_CHECK_EQ(denials[i].name, got.status, denials[i].status);
        BH_CHECK_EQ(denials[i].name, f->refusals, 1);
        BH_CHECK_EQ(denials[i].name, f->tried[0].verdict.allow, false);
        BH_CHECK_STR(denials[i].name, f->target, denials[i].target);
        refused_request_check(denials[i].name, &f->tried[0], &denials[i].tried);
    }
    bh_fixture_close(f);
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

/* For every operation: a caller without the right on the site is recorded under its deed, and one that names
 * a job hidden from it is recorded with the job, and not with the job's owner. */
static void
every_operation_has_its_deed(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        const char *id = strstr(row->path, "{id}");
        bool of_job = row->scope == BH_SCOPE_JOB;
        struct fixture *f;
        char path[80];

        if (row->scope != BH_SCOPE_SITE && !of_job)
            continue;
        f = open_with_a_job();
        snprintf(path, sizeof path, "%.*s%s%s", id ? (int)(id - row->path) : 70, row->path, id ? "1" : "",
                 id ? id + 4 : "");
        bh_fixture_send(
            f, &(struct sent){ row->method, path, .uid = BOB, .body = row->has_body ? "{}" : NULL }, &got);
        BH_CHECK_EQ(row->name, got.status, of_job ? 404 : 403);
        BH_CHECK_EQ(row->name, f->refusals, 1);
        refused_request_check(
            row->name, &f->tried[0],
            &(struct bh_refused_request){ .verb = bh_operation_recorded_verb((enum bh_operation)op),
                                          .job = { of_job } });
        bh_fixture_close(f);
    }
    BH_CHECK_DONE();
}

/* A caller that is no known user: the record has its uid, and none of what it sent.  Over HTTPS it has not
 * even that.  Credentials of no known user count as such, and not as a user's. */
static void
an_unknown_caller_is_its_uid(void **state)
{
    static const struct {
        const char *name;
        struct sent sent;
        uint32_t refusals, uid;
        const char *verb;
        uint32_t unauthenticated;
        /* clang-format off */
    } cases[] = {
        { "a read", { BH_GET, "/v1/jobs", .uid = STRANGER }, 1, STRANGER, "job.view" },
        { "a job", { BH_GET, "/v1/jobs/1", .uid = STRANGER }, 1, STRANGER, "job.view" },
        { "a deed", { BH_POST, "/v1/drain", .uid = STRANGER, .body = "{\"target\":\"n1\"}" }, 1, STRANGER, "gpu.cordon" },
        { "a key", { BH_POST, "/v1/keys/shred", .uid = STRANGER,
          .body = "{\"month\":\"all\",\"reason\":\"r\",\"tenant\":\"acme\"}" }, 1, STRANGER, "key.shred" },
        { "a job's user", { BH_GET, "/v1/jobs", .uid = 100001 }, 1, 100001, "job.view" },
        { "a bad token", { BH_GET, "/v1/jobs", .uid = ALICE, .token = "bh_no" }, .unauthenticated = 1 },
        { "a stranger's bad token", { BH_GET, "/v1/jobs", .uid = STRANGER, .token = "bh_no" }, .unauthenticated = 1 },
        { "from afar", { BH_GET, "/v1/jobs", .tcp = true } },
        { "with a bad token", { BH_GET, "/v1/jobs", .token = "bh_no", .tcp = true }, .unauthenticated = 1 },
        { "what is open", { BH_GET, "/healthz", .uid = STRANGER } },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct fixture *f = open_with_a_job();

        bh_fixture_send(f, &cases[i].sent, &got);
        BH_CHECK_EQ(cases[i].name, f->refusals, cases[i].refusals);
        BH_CHECK_EQ(cases[i].name, f->unauthenticated, cases[i].unauthenticated);
        if (cases[i].refusals) {
            BH_CHECK_EQ(cases[i].name, f->refused_rc, BH_UNAUTHENTICATED);
            BH_CHECK_EQ(cases[i].name, f->refused.subject.uid, cases[i].uid);
            BH_CHECK_EQ(cases[i].name, f->refused.subject.principal.v, 0);
            BH_CHECK_EQ(cases[i].name, f->refused.via, BH_VIA_PEER);
            BH_CHECK_STR(cases[i].name, f->target, "");
            refused_request_check(cases[i].name, &f->tried[0],
                                  &(struct bh_refused_request){ .verb = cases[i].verb });
        }
        bh_fixture_close(f);
    }
    BH_CHECK_DONE();
}

/* What the owner refuses before it knows better it records with what is known here. */
static void
the_owner_gets_the_tenant(void **state)
{
    struct fixture *f = open_with_a_job();

    bh_fixture_send(f, &(struct sent){ BH_POST, "/v1/jobs/1/cancel", .uid = ALICE }, &got);
    BH_CHECK_EQ("of a job", f->command.tenant.v, VISION);
    bh_fixture_send(f, &(struct sent){ BH_POST, "/v1/jobs", .uid = ALICE, .body = SUBMIT("") }, &got);
    BH_CHECK_EQ("of a submission", f->command.tenant.v, VISION);
    f->rc = BH_DENIED;
    bh_fixture_send(f,
                    &(struct sent){ BH_POST, "/v1/whatif", .uid = CAROL,
                                    .body = "{\"site\":{\"tenants\":[{\"name\":\"mine\"}]}}" },
                    &got);
    BH_CHECK_EQ("what it refused it recorded", f->refusals, 0);
    bh_fixture_close(f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_record_names_what_was_denied),
    cmocka_unit_test(every_operation_has_its_deed),
    cmocka_unit_test(an_unknown_caller_is_its_uid),
    cmocka_unit_test(the_owner_gets_the_tenant),
};
BH_TEST_MAIN(tests)
