#include "api/api.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

/* The dispatcher and each resource, one request at a time. */

static struct fixture *f;
static struct received got;

static int
api_open_site(void **state)
{
    f = bh_fixture_open();
    bh_fixture_put_job(f, 1, 2, 1, "running");
    bh_fixture_put_job(f, 2, 4, 2, "running");
    bh_fixture_put_job(f, 3, 2, 1, "completed");
    return 0;
}

static int
api_close_site(void **state)
{
    bh_fixture_close(f);
    return 0;
}

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

static void
check_form(const char *name, const char *text)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err err;
    bh_json_value error;

    BH_CHECK_EQ(name, bh_json_parse(text, strlen(text), &json, &err), BH_OK);
    if (!json)
        return;
    error = bh_json_get(bh_json_root(json), "error");
    BH_CHECK(name, bh_json_text(bh_json_get(error, "code"), "")[0]);
    BH_CHECK(name, bh_json_text(bh_json_get(error, "message"), "")[0]);
    BH_CHECK(name, bh_json_text(bh_json_get(error, "next"), "")[0]);
    BH_CHECK(name, bh_json_text(bh_json_get(error, "reason"), "")[0]);
}

/* ---- every operation ---- */

#define JOB "{\"args\":[\"sh\"],\"sku\":\"small\"}"

/* A request for each operation, and what comes of it. */
static const struct {
    enum bh_operation op;
    struct sent sent;
    uint32_t status;
    const char *says;
} requests[] = {
    { BH_OP_JOB_SUBMIT,
      { BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE },
      201,
      "{\"reason\":\"none\",\"state\":\"pending\"}" },
    { BH_OP_JOB_LIST, { BH_GET, "/v1/jobs", .uid = ALICE }, 200, "\"total\":2" },
    { BH_OP_JOB_GET,
      { BH_GET, "/v1/jobs/1", .uid = ALICE },
      200,
      "\"spec\":{\"args\":[\"sh\"],\"sku\":\"small\"}" },
    { BH_OP_JOB_WHY,
      { BH_GET, "/v1/jobs/3/why", .uid = ALICE },
      200,
      "it has ended: completed (exited), exit status 3" },
    { BH_OP_JOB_LOGS, { BH_GET, "/v1/jobs/3/logs", .uid = ALICE }, 200, "" },
    { BH_OP_JOB_LOG_LINES, { BH_GET, "/v1/jobs/3/log", .uid = ALICE }, 200, "\"items\":[]" },
    { BH_OP_JOB_CANCEL, { BH_POST, "/v1/jobs/1/cancel", .uid = ALICE }, 200, "\"state\"" },
    { BH_OP_JOB_RELEASE, { BH_POST, "/v1/jobs/1/release", .uid = ALICE }, 200, "\"state\"" },
    { BH_OP_JOB_WATCH, { BH_GET, "/v1/watch", .uid = ALICE }, 200, ": watching" },
    { BH_OP_JOB_EXEC,
      { BH_POST, "/v1/jobs/1/exec", .body = "{\"args\":[\"sh\"],\"tty\":true}", .uid = ALICE },
      201,
      "\"job\":1,\"record\":0,\"ticket\":\"" TICKET "\"}" },
    { BH_OP_JOB_ATTACH, { BH_POST, "/v1/jobs/1/attach", .body = "{}", .uid = ALICE }, 201, TICKET },
    { BH_OP_JOB_FORWARD, { BH_POST, "/v1/jobs/1/forward", .body = "{}", .uid = ALICE }, 201, TICKET },
    { BH_OP_STREAM_OPEN,
      { BH_GET, "/v1/streams/" TICKET, .upgrade = "bulkhead-stream", .uid = ALICE },
      101,
      "" },
    { BH_OP_GPU_LIST, { BH_GET, "/v1/gpus", .uid = ALICE }, 200, "\"temperature_c\":41" },
    { BH_OP_GPU_LIST, { BH_GET, "/v1/gpus", "node=n1", .uid = ALICE }, 200, "\"total\":1" },
    { BH_OP_GPU_LIST, { BH_GET, "/v1/gpus", "node=n2", .uid = ALICE }, 200, "\"total\":0" },
    { BH_OP_GPU_GET, { BH_GET, "/v1/gpus/GPU-a", .uid = ALICE }, 200, "\"uuid\":\"GPU-a\"}" },
    { BH_OP_GPU_GET, { BH_GET, "/v1/gpus/GPU-zz", .uid = ALICE }, 404, "no GPU GPU-zz" },
    { BH_OP_NODE_GET, { BH_GET, "/v1/nodes/n1", .uid = ALICE }, 200, "\"state\":\"up\"" },
    { BH_OP_NODE_GET, { BH_GET, "/v1/nodes/n2", .uid = ALICE }, 404, "no node n2" },
    { BH_OP_TENANT_GET,
      { BH_GET, "/v1/tenants/acme/vision", .uid = ALICE },
      200,
      "\"children\":[],\"dedicated_nodes\":false" },
    { BH_OP_TENANT_GET,
      { BH_GET, "/v1/tenants/acme/vision", .uid = CAROL },
      200,
      "\"role\":\"developer\",\"tenant\":\"acme/vision\"" },
    { BH_OP_TENANT_GET, { BH_GET, "/v1/tenants/acme/vision", .uid = CAROL }, 200, "\"parents\":[\"acme\"]" },
    { BH_OP_TENANT_GET, { BH_GET, "/v1/tenants/acme/vision", .uid = ALICE }, 200, "\"parents\":[]" },
    { BH_OP_TENANT_GET,
      { BH_GET, "/v1/tenants/acme/nothing", .uid = ALICE },
      404,
      "no tenant acme/nothing that you may see" },
    { BH_OP_LAYOUT_LIST, { BH_GET, "/v1/layouts", "gpu=GPU-zz", .uid = ALICE }, 200, "\"total\":0" },
    { BH_OP_NODE_LIST,
      { BH_GET, "/v1/nodes", .uid = ALICE },
      200,
      "\"name\":\"n1\",\"offered_cpu_milli\":0,\"offered_memory_mib\":0,\"runtime\":\"crun 1.8\","
      "\"state\":\"up\"" },
    { BH_OP_TENANT_LIST,
      { BH_GET, "/v1/tenants", .uid = ALICE },
      200,
      "\"limit\":\"1.5\",\"limit_parts\":6300" },
    { BH_OP_SKU_LIST,
      { BH_GET, "/v1/skus", .uid = ALICE },
      200,
      "\"model\":\"H100-80GB\",\"profile\":\"1g.10gb\"" },
    { BH_OP_DATASET_LIST,
      { BH_GET, "/v1/datasets", .uid = ALICE },
      200,
      "{\"items\":[{\"access\":[{\"may\":\"mount, read\",\"tenant\":\"acme/vision\",\"until_ns\":"
      "\"1893456000000000000\"}],\"declared\":{\"grants\":[{\"may\":[\"mount\",\"read\"],\"tenant\":"
      "\"acme/vision\",\"until\":\"2030-01-01T00:00:00Z\"}],\"name\":\"imagenet\",\"path\":\"/data/vision\","
      "\"tenant\":\"acme/vision\"},\"id\":1,\"kind\":\"dataset\",\"may\":\"mount, read\",\"name\":"
      "\"imagenet\",\"owner\":\"acme/vision\",\"until_ns\":\"1893456000000000000\"}]}" },
    { BH_OP_USAGE, { BH_GET, "/v1/usage", .uid = CAROL }, 200, "\"physical\"" },
    { BH_OP_FORECAST, { BH_GET, "/v1/forecast", .uid = CAROL }, 200, "\"lending\":\"all\",\"nodes\":[]" },
    { BH_OP_SITE_GET, { BH_GET, "/v1/site", .uid = CAROL }, 200, "{}" },
    { BH_OP_SITE_APPLY,
      { BH_PUT, "/v1/site", .body = "{}", .uid = CAROL },
      200,
      "\"changes\":[],\"dry_run\":false," },
    { BH_OP_SITE_REVISIONS,
      { BH_GET, "/v1/site/revisions", .uid = CAROL },
      200,
      "{\"items\":[],\"present\":0}" },
    { BH_OP_SITE_REVISION,
      { BH_GET, "/v1/site/revisions/7", .uid = CAROL },
      404,
      "no revision 7 of the site file is kept" },
    { BH_OP_SITE_DIFF,
      { BH_GET, "/v1/site/diff", "from=7", .uid = CAROL },
      404,
      "no revision 7 of the site file is kept" },
    { BH_OP_TOKEN_CREATE, { BH_POST, "/v1/tokens", .uid = ALICE }, 201, "\"id\"" },
    { BH_OP_TOKEN_LIST, { BH_GET, "/v1/tokens", .uid = ALICE }, 200, "{\"items\":[]}" },
    { BH_OP_TOKEN_REVOKE,
      { BH_DELETE, "/v1/tokens/abcdefghijkl", .uid = ALICE },
      404,
      "no token abcdefghijkl of yours" },
    { BH_OP_RECORD_LIST, { BH_GET, "/v1/records", .uid = CAROL }, 200, "\"total\":0" },
    { BH_OP_CHECKPOINT_LIST, { BH_GET, "/v1/checkpoints", .uid = CAROL }, 200, "\"items\"" },
    { BH_OP_RECORD_GET, { BH_GET, "/v1/records/0", .uid = CAROL }, 404, "no record 0 that you may see" },
    { BH_OP_RECORD_PROOF,
      { BH_GET, "/v1/records/0/proof", .uid = CAROL },
      404,
      "no record 0 that you may see whole" },
    { BH_OP_CONSISTENCY,
      { BH_GET, "/v1/consistency", .uid = CAROL },
      200,
      "{\"hashes\":[],\"new\":0,\"old\":0}" },
    { BH_OP_LOG_SHOW, { BH_GET, "/v1/log", .uid = CAROL }, 200, "\"keys\":\"site+" },
    { BH_OP_LOG_CHECKPOINT,
      { BH_GET, "/v1/log/checkpoint", .tcp = true },
      404,
      "no checkpoint was signed yet" },
    { BH_OP_LOG_MINIMUM, { BH_GET, "/v1/log/minimum", .tcp = true }, 200, "0\n" },
    { BH_OP_LOG_ENTRIES,
      { BH_GET, "/v1/log/tile/entries/000", .uid = CAROL },
      404,
      "the log does not reach to" },
    { BH_OP_LOG_ROWS, { BH_GET, "/v1/log/rows/people", .uid = CAROL }, 404, "no rows of people" },
    { BH_OP_LOG_TILE, { BH_GET, "/v1/log/tile/0/000", .tcp = true }, 404, "the log does not reach to" },
    { BH_OP_WHATIF,
      { BH_POST, "/v1/whatif", .body = "{\"submit\":" JOB "}", .uid = ALICE },
      200,
      "\"decision\":\"" },
    { BH_OP_DEFRAG_SHOW, { BH_GET, "/v1/defrag", .uid = CAROL }, 200, "\"mode\":\"off\"" },
    { BH_OP_DEFRAG_APPLY,
      { BH_POST, "/v1/defrag", .body = "{\"token\":\"0\"}", .uid = CAROL },
      200,
      "\"moved\":[0]" },
    { BH_OP_LAYOUT_LIST, { BH_GET, "/v1/layouts", .uid = ALICE }, 200, "\"is_declared\":false" },
    { BH_OP_LAYOUT_DIFF,
      { BH_POST, "/v1/layouts/diff", .uid = CAROL,
        .body = "{\"layouts\":[{\"gpu\":\"GPU-a\",\"pieces\":[\"3g.40gb\"]}]}" },
      200,
      "\"create\":[\"3g.40gb@" },
    { BH_OP_LAYOUT_APPLY,
      { BH_POST, "/v1/layouts", .uid = CAROL,
        .body = "{\"layouts\":[{\"gpu\":\"GPU-a\",\"pieces\":[\"3g.40gb\"]}]}" },
      200,
      "{\"change\":0,\"gpus\":0}" },
    { BH_OP_LAYOUT_ROLLBACK,
      { BH_POST, "/v1/layouts/rollback", .uid = CAROL },
      200,
      "{\"change\":0,\"gpus\":0}" },
    { BH_OP_CORDON,
      { BH_POST, "/v1/cordon", .body = "{\"reason\":\"r\",\"target\":\"n1\"}", .uid = CAROL },
      200,
      "{\"held\":\"no\",\"target\":\"n1\"}" },
    { BH_OP_UNCORDON,
      { BH_POST, "/v1/uncordon", .body = "{\"clear_fault\":true,\"target\":\"n1\"}", .uid = CAROL },
      200,
      "\"target\":\"n1\"" },
    { BH_OP_DRAIN,
      { BH_POST, "/v1/drain", .body = "{\"now\":true,\"target\":\"n1\"}", .uid = CAROL },
      200,
      "\"target\":\"n1\"" },
    { BH_OP_POLICY_TEST,
      { BH_POST, "/v1/policy/test", .body = "{\"jobs\":[" JOB "]}", .uid = CAROL },
      200,
      "\"denied\":1,\"tested\":1}" },
    { BH_OP_SERIES,
      { BH_GET, "/v1/series", .query = "object=job/1", .uid = ALICE },
      200,
      "\"quantity\":\"gpu_busy\"" },
    { BH_OP_RECEIPT_LIST, { BH_GET, "/v1/receipts", .uid = ALICE }, 200, "{\"items\":[]}" },
    { BH_OP_KEY_LIST, { BH_GET, "/v1/keys", .uid = CAROL }, 200, "\"kind\":\"audit\",\"month\":\"1970-01\"" },
    { BH_OP_KEY_SHRED,
      { BH_POST, "/v1/keys/shred", .uid = CAROL,
        .body = "{\"month\":\"all\",\"reason\":\"r\",\"tenant\":\"acme\"}" },
      200,
      "{\"keys\":0,\"month\":\"all\",\"state\":\"destroyed\",\"tenant\":\"acme\"}" },
    { BH_OP_JOB_VERIFY, { BH_POST, "/v1/jobs/1/verify", .uid = ALICE }, 200, "\"verdicts\":[]" },
    { BH_OP_NODE_VERIFY, { BH_POST, "/v1/verify", .uid = CAROL }, 200, "\"verdicts\":[]" },
    { BH_OP_AUDIT_PRUNE,
      { BH_POST, "/v1/log/prune", .body = "{\"checkpoint\":\"x\"}", .uid = CAROL },
      200,
      "{\"minimum\":0,\"more\":false,\"pruned\":0}" },
    { BH_OP_KEY_ROTATE, { BH_POST, "/v1/keys/rotate", .uid = CAROL }, 200, "{\"keys\":0}" },
    { BH_OP_WHOAMI,
      { BH_GET, "/v1/whoami", .uid = ALICE },
      200,
      "\"roles\":[{\"role\":\"developer\",\"tenant\":\"acme/vision\"}]" },
    { BH_OP_METRICS,
      { BH_GET, "/metrics", .uid = DAVE },
      200,
      "bulkhead_jobs{tenant=\"acme/vision\",state=\"running\"} " },
    { BH_OP_STATUS,
      { BH_GET, "/v1/status", .uid = ALICE },
      200,
      "\"managed\":2,\"mig\":0,\"shared\":0,\"total\":2," },
    { BH_OP_HEALTH, { BH_GET, "/healthz", .tcp = true }, 200, "ok" },
    { BH_OP_OPENAPI, { BH_GET, "/openapi.json", .tcp = true }, 200, "\"openapi\":\"3.1.0\"" },
};

static void
every_operation_answers(void **state)
{
    bool seen[BH_OPERATIONS] = { false };

    for (size_t i = 0; i < BH_COUNT(requests); i++) {
        const char *name = bh_operation_get(requests[i].op)->name;

        bh_fixture_send(f, &requests[i].sent, &got);
        seen[requests[i].op] = true;
        BH_CHECK_EQ(name, got.status, requests[i].status);
        BH_CHECK(name, strstr(got.text, requests[i].says));
    }
    for (int op = 0; op < BH_OPERATIONS; op++)
        BH_CHECK(bh_operation_get((enum bh_operation)op)->name,
                 seen[op] || bh_operation_of_accounts((enum bh_operation)op));
    BH_CHECK_DONE();
}

static const char *
concrete(const char *pattern)
{
    static char path[64];
    const char *id = strstr(pattern, "{id}");

    if (!id)
        return pattern;
    snprintf(path, sizeof path, "%.*s1%s", (int)(id - pattern), pattern, id + 4);
    return path;
}

/* Every operation answers 401 to a caller without a principal, and 400 to unknown parameters of any
 * caller. */
static void
every_operation_refuses_strangers_and_odd_parameters(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        bool open = row->scope == BH_SCOPE_NOBODY;

        SEND(row->method, concrete(row->path), .uid = STRANGER);
        /* the log is empty here: what is open may say that there is nothing yet */
        BH_CHECK(row->name, !open                               ? got.status == 401
                            : bh_operation_of_accounts(row->id) ? got.status == 503
                                                                : got.status == 200 || got.status == 404);
        if (!open)
            BH_CHECK(row->name, strstr(got.text, "principals: [{name: NAME, uid: 4242}]"));
        SEND(row->method, concrete(row->path), .uid = 0, .query = "color=red");
        BH_CHECK_EQ(row->name, got.status, 400);
        BH_CHECK(row->name, strstr(got.text, "unknown query parameter \\\"color\\\""));
        check_form(row->name, got.text);
        if (row->has_body)
            continue;
        SEND(row->method, concrete(row->path), .uid = 0, .body = "{\"x\":1}");
        BH_CHECK_EQ(row->name, got.status, 400);
    }
    BH_CHECK_DONE();
}

static void
other_tenants_do_not_exist(void **state)
{
    /* clang-format off */
    static const struct sent cases[] = {
        { BH_GET, "/v1/jobs/2" },          { BH_GET, "/v1/jobs/2/why" },
        { BH_GET, "/v1/jobs/2/logs" },     { BH_POST, "/v1/jobs/2/cancel" },
        { BH_POST, "/v1/jobs/2/release" }, { BH_GET, "/v1/jobs", .query = "tenant=other" },
        { BH_GET, "/v1/watch", .query = "tenant=other" },
        { BH_POST, "/v1/jobs",
          .body = "{\"args\":[\"sh\"],\"sku\":\"small\",\"tenant\":\"other\"}" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct sent sent = cases[i];

        sent.uid = ALICE;
        bh_fixture_send(f, &sent, &got);
        BH_CHECK_EQ(sent.path, got.status, 404);
        BH_CHECK(sent.path, !f->commanded);
        BH_CHECK(sent.path, !strstr(got.text, "bob"));
        BH_CHECK_EQ(sent.path, f->refusals, sent.query ? 0 : 1);
    }
    /* the same words as for a job that is not there at all */
    SEND(BH_GET, "/v1/jobs/2", .uid = ALICE);
    BH_CHECK("as if not there", strstr(got.text, "no job 2 that you may see"));
    SEND(BH_GET, "/v1/jobs/9", .uid = ALICE);
    BH_CHECK("not there", strstr(got.text, "no job 9 that you may see"));
    SEND(BH_GET, "/v1/jobs", .uid = ALICE);
    BH_CHECK("not listed", !strstr(got.text, "other") && !strstr(got.text, "bob"));
    SEND(BH_GET, "/v1/tenants", .uid = ALICE);
    BH_CHECK("no tenant of others", !strstr(got.text, "other") && !strstr(got.text, "speech"));
    SEND(BH_GET, "/v1/usage", .uid = ALICE);
    BH_CHECK("no usage of others", !strstr(got.text, "other") && !strstr(got.text, "physical"));
    BH_CHECK_DONE();
}

static void
roles_decide(void **state)
{
    static const struct {
        const char *name;
        struct sent sent;
        uint32_t status;
        const char *says;
    } cases[] = {
        { "viewer reads", { BH_GET, "/v1/jobs/1", .uid = DAVE }, 200, "\"id\":1" },
        { "viewer reads no logs",
          { BH_GET, "/v1/jobs/1/logs", .uid = DAVE },
          403,
          "dave may not use job.logs on acme/vision" },
        { "viewer makes no tokens",
          { BH_POST, "/v1/tokens", .uid = DAVE },
          403,
          "the role developer allows it, bound at any tenant" },
        { "nowhere, not on the site",
          { BH_POST, "/v1/tokens", .uid = DAVE },
          403,
          "dave may not use token.create anywhere" },
        { "developer of a tenant, on the site",
          { BH_POST, "/v1/verify", .uid = ALICE },
          403,
          "the role operator allows it, bound on the whole site" },
        { "the log, whole",
          { BH_GET, "/v1/log/tile/entries/000", .uid = ALICE },
          403,
          "the role auditor allows it, bound on the whole site" },
        { "viewer of a tenant, at it",
          { BH_GET, "/v1/jobs/1/logs", .uid = DAVE },
          403,
          "the role developer allows it, bound at that tenant or above it" },
        { "developer applies no site",
          { BH_PUT, "/v1/site", .body = "{}", .uid = ALICE },
          403,
          "the role admin allows it" },
        { "developer reads no site", { BH_GET, "/v1/site", .uid = ALICE }, 403, "site.view" },
        { "viewer reads no records", { BH_GET, "/v1/records", .uid = DAVE }, 403, "record.view" },
        { "root does all", { BH_GET, "/v1/jobs/2", .uid = 0 }, 200, "\"id\":2" },
        { "jobs' uids are nobody",
          { BH_GET, "/v1/jobs", .uid = 100001 },
          401,
          "this uid belongs to jobs or to no user" },
        { "65534 is nobody", { BH_GET, "/v1/jobs", .uid = 65534 }, 401, "uid 65534" },
        { "https without a token", { BH_GET, "/v1/jobs", .tcp = true }, 401, "no credentials were sent" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        bh_fixture_send(f, &cases[i].sent, &got);
        BH_CHECK_EQ(cases[i].name, got.status, cases[i].status);
        BH_CHECK(cases[i].name, strstr(got.text, cases[i].says));
        BH_CHECK_EQ(cases[i].name, f->refusals,
                    got.status == 403 || (got.status == 401 && !cases[i].sent.tcp));
        BH_CHECK_EQ(cases[i].name, f->commanded, false);
    }
    BH_CHECK_DONE();
}

/* ---- bad input ---- */

/* The entry's name stands between its number and the field. */
static void
a_site_files_errors_say_what_next(void **state)
{
    SEND(BH_PUT, "/v1/site", .uid = CAROL, .body = "{\"tenants\":[{\"name\":\"a\",\"limit\":\"-1\"}]}");
    BH_CHECK("negative", strstr(got.text, "limit: \\\"-1\\\" is negative\",\"next\":\"man bulkhead-site"));
    SEND(BH_PUT, "/v1/site", .uid = CAROL,
         .body = "{\"skus\":[{\"name\":\"s\",\"grade\":\"F\",\"models\":[{\"model\":\"H100-80GB\","
                 "\"share\":25}]}],\"tenants\":[{\"name\":\"a\"}]}");
    BH_CHECK("a share", strstr(got.text, "\"next\":\"share: a share of a GPU's compute"));
    BH_CHECK_DONE();
}

static void
bad_input_changes_nothing(void **state)
{
    static char deep[2000], huge[1200000];
    const struct {
        const char *name, *path, *body, *type, *says;
        enum bh_method method;
        uint32_t status;
    } cases[] = {
        { "unknown key", "/v1/jobs", "{\"args\":[\"sh\"],\"sku\":\"small\",\"gpu\":1}", NULL,
          "unknown key \\\"gpu\\\" in job", BH_POST, 400 },
        { "wrong type", "/v1/jobs", "{\"args\":\"sh\",\"sku\":\"small\"}", NULL, "args: expected a list",
          BH_POST, 400 },
        { "duplicate key", "/v1/jobs", "{\"sku\":\"small\",\"sku\":\"large\",\"args\":[\"a\"]}", NULL,
          "duplicate", BH_POST, 400 },
        { "no JSON", "/v1/jobs", "{", NULL, "not valid JSON", BH_POST, 400 },
        { "no body", "/v1/jobs", NULL, NULL, "has no body", BH_POST, 400 },
        { "deep JSON", "/v1/jobs", deep, NULL, "nested deeper", BH_POST, 400 },
        { "deep YAML", "/v1/jobs", deep, "application/yaml", "", BH_POST, 400 },
        { "huge JSON", "/v1/jobs", huge, NULL, "larger than", BH_POST, 507 },
        { "YAML alias", "/v1/jobs", "args: [&a sh, *a]\nsku: small\n", "application/yaml", "line", BH_POST,
          400 },
        { "negative", "/v1/jobs", "{\"args\":[\"a\"],\"sku\":\"small\",\"count\":-1}", NULL,
          "count: must not be negative", BH_POST, 400 },
        { "overflow", "/v1/jobs",
          "{\"args\":[\"a\"],\"sku\":\"small\",\"memory\":\"99999999999999999999Gi\"}", NULL, "memory",
          BH_POST, 400 },
        { "fraction", "/v1/site", "{\"tenants\":[{\"name\":\"a\",\"limit\":\"0.33333\"}]}", NULL,
          "tenants[0] a: limit", BH_PUT, 400 },
        { "unknown SKU", "/v1/jobs", "{\"args\":[\"a\"],\"sku\":\"huge\"}", NULL, "sku: no SKU huge", BH_POST,
          404 },
        { "removed SKU", "/v1/jobs", "{\"args\":[\"a\"],\"sku\":\"tiny\"}", NULL,
          "sku: no SKU tiny\",\"next\":\"`bulkhead get skus` lists", BH_POST, 404 },
        { "unknown tenant", "/v1/jobs", "{\"args\":[\"a\"],\"sku\":\"small\",\"tenant\":\"no/where\"}", NULL,
          "tenant: no no/where that you may see", BH_POST, 404 },
        { "control characters", "/v1/jobs", "{\"args\":[\"a\"],\"sku\":\"small\",\"name\":\"a\\u001b[2J\"}",
          NULL, "name: control character 0x1b", BH_POST, 400 },
        { "escaping path", "/v1/jobs",
          "{\"args\":[\"a\"],\"sku\":\"small\",\"mounts\":[{\"source\":\"/work/data/../..\"}]}", NULL,
          "leads upward", BH_POST, 400 },
        { "another tenant's mount", "/v1/jobs",
          "{\"args\":[\"a\"],\"sku\":\"small\",\"mounts\":[{\"source\":\"/work/other\"}]}", NULL,
          "acme/vision may not mount /work/other", BH_POST, 403 },
        { "mount for writing", "/v1/jobs",
          "{\"args\":[\"a\"],\"sku\":\"small\",\"mounts\":[{\"source\":\"/work/data\","
          "\"write\":true}]}",
          NULL, "for writing", BH_POST, 403 },
        { "content type", "/v1/jobs", "<x/>", "text/xml", "content type text/xml", BH_POST, 400 },
        { "no number", "/v1/jobs/abc/cancel", NULL, NULL, "job id", BH_POST, 400 },
        { "token scopes", "/v1/tokens", "{\"scopes\":\"job.view job.fly\"}", NULL,
          "\\\"job.fly\\\" is no verb", BH_POST, 400 },
    };

    memset(deep, '[', sizeof deep - 1);
    memset(huge, ' ', sizeof huge - 1);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        SEND(cases[i].method, cases[i].path, .body = cases[i].body, .type = cases[i].type,
             .uid = cases[i].method == BH_PUT ? CAROL : ALICE);
        BH_CHECK_EQ(cases[i].name, got.status, cases[i].status);
        BH_CHECK(cases[i].name, strstr(got.text, cases[i].says));
        BH_CHECK(cases[i].name, !f->commanded);
        BH_CHECK_EQ(cases[i].name, f->refusals, 1); /* the attempt is recorded */
        check_form(cases[i].name, got.text);
    }
    BH_CHECK_DONE();
}

static void
a_refusal_says_what_a_field_takes(void **state)
{
    static const struct {
        const char *name, *path, *body, *says;
    } cases[] = {
        { "the nearest scope", "/v1/tokens", "{\"scopes\":\"job.veiw\"}",
          "did you mean job.view? a developer has job.view job.submit" },
        { "what a number may be", "/v1/jobs", "{\"args\":[\"a\"],\"sku\":\"small\",\"count\":60}",
          "\"next\":\"count: 1 to 16; partitions of the SKU for each member" },
        { "what a field of an entry is", "/v1/jobs",
          "{\"args\":[\"a\"],\"sku\":\"small\",\"mounts\":[{\"dataset\":\"../x\"}]}",
          "\"next\":\"dataset: a dataset's or a model's name; this or source\"" },
        { "what a token's note is", "/v1/tokens", "{\"note\":\"a\u202eb\"}",
          "\"next\":\"note: what it is for, for people\"" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        SEND(BH_POST, cases[i].path, .body = cases[i].body, .uid = ALICE);
        BH_CHECK_EQ(cases[i].name, got.status, 400);
        BH_CHECK(cases[i].name, strstr(got.text, cases[i].says));
    }
    BH_CHECK_DONE();
}

static void
bad_queries_are_refused(void **state)
{
    static const struct {
        const char *query, *says;
    } cases[] = {
        { "limit=0", "limit: must be at least 1" },
        { "limit=10001", "limit: 10001 is over 10000" },
        { "limit=x", "limit" },
        { "limit=1&limit=2", "limit is given twice" },
        { "after=-1", "after" },
        { "state=asleep", "state: \\\"asleep\\\" is no state" },
        { "active=yes", "active: \\\"yes\\\" is neither true nor false" },
        { "tenant=a\x01", "tenant: has a control character" },
        { "", "" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        SEND(BH_GET, "/v1/jobs", .query = cases[i].query, .uid = ALICE);
        BH_CHECK_EQ(cases[i].query, got.status, cases[i].query[0] ? 400 : 200);
        BH_CHECK(cases[i].query, strstr(got.text, cases[i].says));
        BH_CHECK(cases[i].query, !strstr(got.text, "/openapi.json"));
    }
    SEND(BH_GET, "/v1/jobs", .query = "mine=true", .uid = 0);
    BH_CHECK_EQ("root has no jobs of its own", got.status, 400);
    BH_CHECK_DONE();
}

static void
paths_and_methods(void **state)
{
    SEND(BH_GET, "/v1/nothing", .uid = ALICE);
    BH_CHECK_EQ("unknown path", got.status, 404);
    check_form("unknown path", got.text);
    SEND(BH_PUT, "/v1/jobs", .uid = ALICE);
    BH_CHECK_EQ("wrong method", got.status, 405);
    BH_CHECK_STR("wrong method", got.header, "POST, GET");
    check_form("wrong method", got.text);
    SEND(BH_GET, "/v1/jobs/1/cancel", .uid = ALICE);
    BH_CHECK_STR("post only", got.header, "POST");
    SEND(BH_GET, "/v1/jobs/../site", .uid = ALICE);
    BH_CHECK_EQ("dots", got.status, 404);
    BH_CHECK_DONE();
}

/* ---- what the owner says ---- */

static void
every_result_has_its_status_and_shape(void **state)
{
    for (int rc = BH_INVALID; rc <= BH_BUG; rc++) {
        f->rc = (bh_rc)rc;
        f->says = "what went wrong";
        SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE);
        BH_CHECK_EQ(bh_rc_name(f->rc), got.status, (uint32_t)bh_rc_http(f->rc));
        BH_CHECK(bh_rc_name(f->rc), strstr(got.text, bh_rc_name(f->rc)));
        BH_CHECK(bh_rc_name(f->rc), strstr(got.text, "what went wrong"));
        BH_CHECK_EQ(bh_rc_name(f->rc), f->refusals, 0); /* the owner records its own */
        check_form(bh_rc_name(f->rc), got.text);
    }
    BH_CHECK_DONE();
}

static void
a_refusal_by_quota_brings_operands(void **state)
{
    f->rc = BH_QUOTA;
    f->answer.reason = (struct bh_reason){
        .code = BH_REASON_NEVER_QUOTA, .tenant = { 2 }, .sku = { 1 }, .limit = 1, .wanted = 3
    };
    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE);
    BH_CHECK_EQ("status", got.status, 422);
    BH_CHECK("operands",
             strstr(got.text, "\"operands\":{\"limit\":1,\"sku\":\"small\",\"tenant\":\"acme/vision\","
                              "\"used\":0,\"wanted\":3}"));
    BH_CHECK("reason", strstr(got.text, "\"reason\":\"never_quota\""));
    f->answer.reason.tenant = (bh_tenant_id){ 1 };
    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE);
    BH_CHECK("a tenant above is not named", !strstr(got.text, "\"tenant\""));
    BH_CHECK_DONE();
}

static void
a_submission_reaches_the_owner_whole(void **state)
{
    struct bh_dir_principal principals[8];

    assert_true(f->dir.principal_count <= BH_COUNT(principals));
    f->answer = (struct bh_answer){ .job = { 77 },
                                    .state = BH_JOB_PENDING,
                                    .reason = { .code = BH_REASON_QUOTA_SKU } };
    SEND(BH_POST, "/v1/jobs", .type = "application/yaml; charset=utf-8", .uid = ALICE,
         .body = "sku: small\nargs: [python, train.py]\ncount: 2\ncpu: \"0.5\"\n", .key = "k1",
         .query = "dry_run=true");
    BH_CHECK_EQ("dry run makes nothing", got.status, 200);
    BH_CHECK_STR("answer", got.text,
                 "{\"dry_run\":true,\"id\":77,\"reason\":\"quota_sku\","
                 "\"state\":\"pending\"}");
    BH_CHECK("commanded", f->commanded);
    BH_CHECK_EQ("operation", f->command.op, BH_OP_JOB_SUBMIT);
    BH_CHECK("dry run", f->command.dry_run);
    BH_CHECK_EQ("count", f->command.numbers.count, 2);
    BH_CHECK_EQ("cpu", f->command.numbers.cpu_milli, 500);
    BH_CHECK_STR("the only tenant", f->command_tenant, "acme/vision");
    BH_CHECK_STR("canonical", f->command_text,
                 "{\"args\":[\"python\",\"train.py\"],\"count\":2,\"cpu\":\"0.5\","
                 "\"sku\":\"small\",\"tenant\":\"acme/vision\"}");
    BH_CHECK_STR("caller", f->command_name, "alice");
    BH_CHECK_EQ("uid", f->command.caller.uid, ALICE);
    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = CAROL);
    BH_CHECK_EQ("several tenants", got.status, 400);
    BH_CHECK("several tenants", strstr(got.text, "tenant: is missing, and you may submit to 4"));
    memcpy(principals, f->dir.principals, f->dir.principal_count * sizeof *principals);
    principals[2].default_tenant = "acme/vision";
    f->dir.principals = principals;
    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = CAROL, .query = "dry_run=true");
    BH_CHECK_EQ("a default", got.status, 200);
    BH_CHECK_STR("the default tenant", f->command_tenant, "acme/vision");
    BH_CHECK_DONE();
}

static void
keys_stand_for_method_path_and_body(void **state)
{
    struct bh_digest first, again, other;

    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE, .key = "k");
    first = f->command.caller.request;
    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE, .key = "k");
    again = f->command.caller.request;
    BH_CHECK("same", memcmp(&first, &again, sizeof first) == 0);
    SEND(BH_POST, "/v1/jobs", .body = JOB " ", .uid = ALICE, .key = "k");
    other = f->command.caller.request;
    BH_CHECK("another body", memcmp(&first, &other, sizeof first) != 0);
    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE, .key = "k", .query = "dry_run=true");
    other = f->command.caller.request;
    BH_CHECK("a dry run", memcmp(&first, &other, sizeof first) != 0);
    SEND(BH_PUT, "/v1/site", .body = "{}", .key = "k", .query = "prune=true");
    first = f->command.caller.request;
    SEND(BH_PUT, "/v1/site", .body = "{}", .key = "k", .query = "prune=false");
    other = f->command.caller.request;
    BH_CHECK("another parameter", memcmp(&first, &other, sizeof first) != 0);
    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE, .key = "");
    BH_CHECK_EQ("empty key", got.status, 400);
    f->answer.replayed = "{\"id\":5,\"reason\":\"none\",\"state\":\"pending\"}";
    f->answer.replayed_status = 201;
    SEND(BH_POST, "/v1/jobs", .body = JOB, .uid = ALICE, .key = "k");
    BH_CHECK_EQ("replayed", got.status, 201);
    BH_CHECK_STR("replayed", got.text, "{\"id\":5,\"reason\":\"none\",\"state\":\"pending\"}");
    BH_CHECK_DONE();
}

/* The site file in force, as the owner keeps it: a text by its digest. */
static void
put_site(const char *text)
{
    struct bh_digest digest;
    struct bh_buf hex;
    struct bh_err err;
    char memory[72];
    bh_rc rc = f->store.ops->begin(f->store.self, &err);

    memset(digest.bytes, 0xab, sizeof digest.bytes);
    bh_buf_init_fixed(&hex, memory, sizeof memory);
    bh_buf_put_hex(&hex, digest.bytes, sizeof digest.bytes);
    if (rc == BH_OK)
        rc = f->store.ops->put_text(f->store.self, &(struct bh_text_row){ digest, 0, { text, strlen(text) } },
                                    &err);
    if (rc == BH_OK)
        rc = f->store.ops->commit(f->store.self, &err);
    assert_int_equal(rc, BH_OK);
    bh_fixture_put_meta(f, "site", bh_buf_text(&hex));
}

static void
a_site_is_applied_from_yaml(void **state)
{
    f->answer.changes = (struct bh_site_changes){ "tenants[a]: added\n", 1, 1, { 0 } };
    SEND(BH_PUT, "/v1/site", .uid = CAROL, .type = "application/yaml",
         .body = "tenants: [{name: a, limit: \"4\"}]\n");
    BH_CHECK_EQ("status", got.status, 200);
    BH_CHECK_STR("changes", got.text,
                 "{\"change_count\":1,\"changes\":[\"tenants[a]: added\"],"
                 "\"dry_run\":false,\"removes\":[],\"revision\":0,"
                 "\"warnings\":[]}");
    BH_CHECK_STR("canonical", f->command_text, "{\"tenants\":[{\"limit\":\"4\",\"name\":\"a\"}]}");
    put_site(f->command_text);
    SEND(BH_GET, "/v1/site", .uid = CAROL);
    BH_CHECK_STR("read back", got.text, f->command_text);
    BH_CHECK_DONE();
}

/* Also a read: only the record shows that refusal. */
static void
what_failed_an_assert_is_refused_and_recorded(void **state)
{
    f->quarantined = true;
    SEND(BH_GET, "/v1/skus", .uid = CAROL);
    BH_CHECK_EQ("status", got.status, 500);
    BH_CHECK("code", strstr(got.text, "\"code\":\"bug\"") != NULL);
    BH_CHECK_EQ("recorded", f->refusals, 1);
    BH_CHECK_EQ("as", f->refused_rc, BH_BUG);
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, api_open_site, api_close_site)
    const struct CMUnitTest tests[] = {
        TEST(every_operation_answers),
        TEST(every_operation_refuses_strangers_and_odd_parameters),
        TEST(other_tenants_do_not_exist),
        TEST(roles_decide),
        TEST(bad_input_changes_nothing),
        TEST(a_site_files_errors_say_what_next),
        TEST(a_refusal_says_what_a_field_takes),
        TEST(bad_queries_are_refused),
        TEST(paths_and_methods),
        TEST(every_result_has_its_status_and_shape),
        TEST(a_refusal_by_quota_brings_operands),
        TEST(a_submission_reaches_the_owner_whole),
        TEST(keys_stand_for_method_path_and_body),
        TEST(a_site_is_applied_from_yaml),
        TEST(what_failed_an_assert_is_refused_and_recorded),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
