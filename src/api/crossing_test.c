/* A user of one tenant tries every operation on another tenant's objects. bob develops in other; job 1, token
 * T and all that is named "vision" are alice's, of acme/vision.  An operation that has no row here fails the
 * test. */

#include "api/fixture_test.h"

#include <string.h>

#include "api/request/token.h"
#include "base/attr.h"
#include "base/test.h"
#include "policy/operations.h"

enum outcome {
    UNTRIED,
    HIDDEN,     /* 404: the answer does not say whether it exists */
    DENIED,     /* 403: its existence is no secret */
    CUT,        /* 200, and nothing of alice's in it */
    OPEN,       /* the same for all */
    ELSEWHERE,  /* not served without people: people/crossing_test.c */
    THE_OWNERS, /* the API cannot tell; the owner decides (daemon/owner/crossing_test.c) */
};

static const struct reach {
    enum outcome outcome;
    const char *path, *query, *body;
} reaches[BH_OPERATIONS] = {
    [BH_OP_JOB_SUBMIT] = { HIDDEN, "/v1/jobs", NULL,
                           "{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"acme/vision\"}" },
    [BH_OP_JOB_LIST] = { CUT, "/v1/jobs", NULL, NULL },
    [BH_OP_JOB_GET] = { HIDDEN, "/v1/jobs/1", NULL, NULL },
    [BH_OP_JOB_WHY] = { HIDDEN, "/v1/jobs/1/why", NULL, NULL },
    [BH_OP_JOB_LOGS] = { HIDDEN, "/v1/jobs/1/logs", NULL, NULL },
    [BH_OP_JOB_LOG_LINES] = { HIDDEN, "/v1/jobs/1/log", NULL, NULL },
    [BH_OP_JOB_CANCEL] = { HIDDEN, "/v1/jobs/1/cancel", NULL, NULL },
    [BH_OP_JOB_VERIFY] = { HIDDEN, "/v1/jobs/1/verify", NULL, NULL },
    [BH_OP_NODE_VERIFY] = { DENIED, "/v1/verify", NULL, NULL },
    [BH_OP_JOB_RELEASE] = { HIDDEN, "/v1/jobs/1/release", NULL, NULL },
    [BH_OP_JOB_WATCH] = { CUT, "/v1/watch", NULL, NULL },
    [BH_OP_JOB_EXEC] = { HIDDEN, "/v1/jobs/1/exec", NULL, "{\"args\":[\"true\"]}" },
    [BH_OP_JOB_ATTACH] = { HIDDEN, "/v1/jobs/1/attach", NULL, NULL },
    [BH_OP_JOB_FORWARD] = { HIDDEN, "/v1/jobs/1/forward", NULL, NULL },
    [BH_OP_STREAM_OPEN] = { HIDDEN, "/v1/streams/" TICKET, NULL, NULL },
    [BH_OP_GPU_LIST] = { CUT, "/v1/gpus", NULL, NULL },
    [BH_OP_GPU_GET] = { CUT, "/v1/gpus/GPU-a", NULL, NULL },
    [BH_OP_NODE_LIST] = { CUT, "/v1/nodes", NULL, NULL },
    [BH_OP_NODE_GET] = { CUT, "/v1/nodes/n1", NULL, NULL },
    [BH_OP_TENANT_LIST] = { CUT, "/v1/tenants", NULL, NULL },
    [BH_OP_TENANT_GET] = { HIDDEN, "/v1/tenants/acme/vision", NULL, NULL },
    [BH_OP_SKU_LIST] = { CUT, "/v1/skus", NULL, NULL },
    [BH_OP_DATASET_LIST] = { CUT, "/v1/datasets", NULL, NULL },
    [BH_OP_RECEIPT_LIST] = { CUT, "/v1/receipts", NULL, NULL },
    [BH_OP_SERIES] = { HIDDEN, "/v1/series", "object=job/1", NULL },
    [BH_OP_USAGE] = { CUT, "/v1/usage", NULL, NULL },
    [BH_OP_FORECAST] = { CUT, "/v1/forecast", NULL, NULL },
    [BH_OP_SITE_GET] = { DENIED, "/v1/site", NULL, NULL },
    [BH_OP_SITE_APPLY] = { DENIED, "/v1/site", NULL, "{\"tenants\":[{\"name\":\"mine\"}]}" },
    [BH_OP_SITE_REVISIONS] = { DENIED, "/v1/site/revisions", NULL, NULL },
    [BH_OP_SITE_REVISION] = { DENIED, "/v1/site/revisions/1", NULL, NULL },
    [BH_OP_SITE_DIFF] = { DENIED, "/v1/site/diff", "from=1&to=2", NULL },
    [BH_OP_TOKEN_CREATE] = { THE_OWNERS, "/v1/tokens", NULL, "{\"principal\":\"alice\"}" },
    [BH_OP_TOKEN_LIST] = { CUT, "/v1/tokens", NULL, NULL },
    [BH_OP_TOKEN_REVOKE] = { HIDDEN, "/v1/tokens/aaaaaaaaaaaa", NULL, NULL },
    [BH_OP_RECORD_LIST] = { CUT, "/v1/records", NULL, NULL },
    [BH_OP_CHECKPOINT_LIST] = { CUT, "/v1/checkpoints", NULL, NULL },
    [BH_OP_RECORD_GET] = { HIDDEN, "/v1/records/0", NULL, NULL },
    [BH_OP_RECORD_PROOF] = { HIDDEN, "/v1/records/0/proof", NULL, NULL },
    [BH_OP_CONSISTENCY] = { CUT, "/v1/consistency", NULL, NULL },
    [BH_OP_LOG_SHOW] = { CUT, "/v1/log", NULL, NULL },
    [BH_OP_LOG_CHECKPOINT] = { OPEN, "/v1/log/checkpoint", NULL, NULL },
    [BH_OP_LOG_MINIMUM] = { OPEN, "/v1/log/minimum", NULL, NULL },
    [BH_OP_LOG_ENTRIES] = { DENIED, "/v1/log/tile/entries/000", NULL, NULL },
    [BH_OP_LOG_ROWS] = { DENIED, "/v1/log/rows/names", NULL, NULL },
    [BH_OP_LOG_TILE] = { OPEN, "/v1/log/tile/0/000", NULL, NULL },
    [BH_OP_WHATIF] = { HIDDEN, "/v1/whatif", NULL, "{\"cancel\":1}" },
    [BH_OP_DEFRAG_SHOW] = { DENIED, "/v1/defrag", NULL, NULL },
    [BH_OP_DEFRAG_APPLY] = { DENIED, "/v1/defrag", NULL, "{\"token\":\"1\"}" },
    [BH_OP_LAYOUT_LIST] = { CUT, "/v1/layouts", NULL, NULL },
    [BH_OP_LAYOUT_DIFF] = { DENIED, "/v1/layouts/diff", NULL, "{\"layouts\":[{\"gpu\":\"GPU-a\"}]}" },
    [BH_OP_LAYOUT_APPLY] = { DENIED, "/v1/layouts", NULL, "{\"layouts\":[{\"gpu\":\"GPU-a\"}]}" },
    [BH_OP_LAYOUT_ROLLBACK] = { DENIED, "/v1/layouts/rollback", NULL, NULL },
    [BH_OP_CORDON] = { DENIED, "/v1/cordon", NULL, "{\"target\":\"n1\"}" },
    [BH_OP_UNCORDON] = { DENIED, "/v1/uncordon", NULL, "{\"target\":\"n1\"}" },
    [BH_OP_DRAIN] = { DENIED, "/v1/drain", NULL, "{\"target\":\"n1\"}" },
    [BH_OP_POLICY_TEST] = { DENIED, "/v1/policy/test", NULL, "{}" },
    [BH_OP_KEY_LIST] = { DENIED, "/v1/keys", NULL, NULL },
    [BH_OP_KEY_SHRED] = { DENIED, "/v1/keys/shred", NULL,
                          "{\"month\":\"all\",\"reason\":\"r\",\"tenant\":\"acme/vision\"}" },
    [BH_OP_AUDIT_PRUNE] = { DENIED, "/v1/log/prune", NULL, "{\"checkpoint\":\"x\"}" },
    [BH_OP_KEY_ROTATE] = { DENIED, "/v1/keys/rotate", NULL, NULL },
    [BH_OP_WHOAMI] = { CUT, "/v1/whoami", NULL, NULL },
    [BH_OP_SIGN_IN_WAYS] = { ELSEWHERE, "/v1/sign-in", NULL, NULL },
    [BH_OP_SIGN_IN] = { ELSEWHERE, "/v1/sign-in", NULL, "{}" },
    [BH_OP_SIGN_IN_CHALLENGE] = { ELSEWHERE, "/v1/sign-in/challenge", NULL, NULL },
    [BH_OP_SIGN_IN_ISSUER] = { ELSEWHERE, "/v1/sign-in/issuer", NULL, "{}" },
    [BH_OP_SIGN_IN_RETURN] = { ELSEWHERE, "/v1/sign-in/issuer/x", NULL, "{}" },
    [BH_OP_SIGN_IN_LOGOUT] = { ELSEWHERE, "/v1/sign-in/logout/x", NULL, "{}" },
    [BH_OP_SIGN_IN_GRANT] = { ELSEWHERE, "/v1/sign-in/grant", NULL, "{}" },
    [BH_OP_SIGN_IN_DEVICE] = { ELSEWHERE, "/v1/sign-in/device", NULL, "{}" },
    [BH_OP_SIGN_IN_POLL] = { ELSEWHERE, "/v1/sign-in/device/x", NULL, NULL },
    [BH_OP_SIGN_IN_CODE] = { ELSEWHERE, "/v1/sign-in/code", NULL, "{}" },
    [BH_OP_SIGN_IN_FIRST] = { ELSEWHERE, "/v1/sign-in/first", NULL, "{}" },
    [BH_OP_SIGN_OUT] = { ELSEWHERE, "/v1/sign-out", NULL, NULL },
    [BH_OP_PROVE] = { ELSEWHERE, "/v1/prove", NULL, "{}" },
    [BH_OP_BREAK_GLASS] = { ELSEWHERE, "/v1/break-glass", NULL, "{}" },
    [BH_OP_SESSION_LIST] = { ELSEWHERE, "/v1/sessions", NULL, NULL },
    [BH_OP_SESSION_END] = { ELSEWHERE, "/v1/sessions/x", NULL, NULL },
    [BH_OP_ACCOUNT_GET] = { ELSEWHERE, "/v1/account", NULL, NULL },
    [BH_OP_ACCOUNT_PASSWORD] = { ELSEWHERE, "/v1/account/password", NULL, "{}" },
    [BH_OP_TOTP_BEGIN] = { ELSEWHERE, "/v1/account/totp", NULL, NULL },
    [BH_OP_TOTP_CONFIRM] = { ELSEWHERE, "/v1/account/totp", NULL, "{}" },
    [BH_OP_TOTP_REMOVE] = { ELSEWHERE, "/v1/account/totp", NULL, NULL },
    [BH_OP_RECOVERY_MAKE] = { ELSEWHERE, "/v1/account/recovery", NULL, NULL },
    [BH_OP_PASSKEY_BEGIN] = { ELSEWHERE, "/v1/account/passkeys/challenge", NULL, NULL },
    [BH_OP_PASSKEY_ADD] = { ELSEWHERE, "/v1/account/passkeys", NULL, "{}" },
    [BH_OP_PASSKEY_REMOVE] = { ELSEWHERE, "/v1/account/passkeys/x", NULL, NULL },
    [BH_OP_ACCOUNT_LIST] = { DENIED, "/v1/accounts", NULL, NULL },
    [BH_OP_ACCOUNT_ENROL] = { DENIED, "/v1/accounts", NULL, "{}" },
    [BH_OP_ACCOUNT_RESET] = { DENIED, "/v1/accounts/x", NULL, NULL },
    [BH_OP_STATUS] = { CUT, "/v1/status", NULL, NULL },
    [BH_OP_METRICS] = { CUT, "/metrics", NULL, NULL },
    [BH_OP_HEALTH] = { OPEN, "/healthz", NULL, NULL },
    [BH_OP_OPENAPI] = { OPEN, "/openapi.json", NULL, NULL },
};

/* More ways to name alice's in operations that have several. */
static const struct {
    enum bh_operation op;
    struct reach reach;
} others[] = {
    { BH_OP_JOB_LIST, { HIDDEN, "/v1/jobs", "tenant=acme/vision", NULL } },
    { BH_OP_JOB_LIST, { HIDDEN, "/v1/jobs", "tenant=acme", NULL } },
    { BH_OP_SERIES, { HIDDEN, "/v1/series", "object=tenant/acme/vision", NULL } },
    { BH_OP_SERIES, { DENIED, "/v1/series", "object=site", NULL } },
    { BH_OP_JOB_WATCH, { CUT, "/v1/watch", "job=1", NULL } },
    { BH_OP_JOB_WATCH, { HIDDEN, "/v1/watch", "tenant=acme/vision", NULL } },
    { BH_OP_WHATIF,
      { HIDDEN, "/v1/whatif", NULL,
        "{\"submit\":{\"args\":[\"true\"],"
        "\"sku\":\"small\",\"tenant\":\"acme/vision\"}}" } },
    { BH_OP_WHATIF, { DENIED, "/v1/whatif", NULL, "{\"drain\":\"GPU-a\"}" } },
    { BH_OP_WHATIF, { DENIED, "/v1/whatif", NULL, "{\"quota\":{\"limit\":\"1\",\"tenant\":\"other\"}}" } },
};

static struct received got, keep;

static struct fixture *
open_with_alices(void)
{
    struct fixture *f = bh_fixture_open();
    struct bh_token_row token = {
        .id = "aaaaaaaaaaaa", .principal_id = 1, .scopes = "", .note = "vision's", .created_ns = 1
    };

    f->changes[f->change_count++] = (struct bh_change){
        .number = 1, .job = 1, .tenant_id = 2, .principal_id = 1, .state = "running", .reason = "vision"
    };
    bh_fixture_submit(f, 1, 2, 1, 1);
    bh_fixture_put_job(f, 1, 2, 1, "running");
    bh_fixture_put_token(f, &token);
    bh_fixture_put_record(f, 0,
                          "{\"actor\":{\"id\":1,\"via\":\"peer\"},\"dec\":{\"allow\":true,"
                          "\"rule\":6},\"obj\":{\"id\":1,\"type\":\"job\"},\"phase\":\"intent\","
                          "\"tenant\":2,\"ts\":\"1000\",\"v\":1,\"verb\":\"job.submit\"}");
    return f;
}

static void
crossing_attempt(enum bh_operation op, const struct reach *reach, uint32_t uid)
{
    const struct bh_operation_row *row = bh_operation_get(op);
    struct fixture *f = open_with_alices();
    bool mine = uid == BOB;

    bh_fixture_send(f,
                    &(struct sent){ .method = row->method,
                                    .path = reach->path,
                                    .query = reach->query,
                                    .body = reach->body,
                                    .upgrade = "bulkhead-stream",
                                    .uid = uid },
                    &got);
    switch (reach->outcome) {
    case HIDDEN:
        BH_CHECK_EQ(row->name, got.status == 404, mine);
        break;
    case DENIED:
        BH_CHECK_EQ(row->name, got.status == 403, mine);
        break;
    case CUT:
        BH_CHECK_EQ(row->name, got.status, 200);
        BH_CHECK(row->name, !mine
                                || (!strstr(got.text, "vision") && !strstr(got.text, "alice")
                                    && !strstr(got.text, "imagenet")));
        break;
    case OPEN:
        keep = got;
        bh_fixture_send(f,
                        &(struct sent){ .method = row->method,
                                        .path = reach->path,
                                        .uid = STRANGER,
                                        .tcp = row->scope == BH_SCOPE_NOBODY },
                        &got);
        BH_CHECK(row->name, row->scope != BH_SCOPE_NOBODY || strcmp(keep.text, got.text) == 0);
        BH_CHECK(row->name, keep.status == 200 || keep.status == 404);
        break;
    case ELSEWHERE:
        BH_CHECK_EQ(row->name, got.status, 503);
        break;
    case THE_OWNERS:
        BH_CHECK(row->name, f->commanded);
        break;
    case UNTRIED:
        BH_CHECK(row->name, !"has a row in this test");
        break;
    }
    if (mine && reach->outcome != THE_OWNERS)
        BH_CHECK(row->name, !f->commanded);
    if (!mine && op == BH_OP_JOB_WATCH)
        BH_CHECK("there was something to see", strstr(got.text, "vision"));
    bh_fixture_close(f);
}

static void
nothing_of_anothers_is_reached(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++)
        crossing_attempt((enum bh_operation)op, &reaches[op], BOB);
    for (size_t i = 0; i < BH_COUNT(others); i++)
        crossing_attempt(others[i].op, &others[i].reach, BOB);
    BH_CHECK_DONE();
}

/* The same requests of the site's administrator go through: it was bob who was refused, not
 * the request. */
static void
an_administrator_reaches_the_same(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++)
        if (op != BH_OP_TOKEN_CREATE)
            crossing_attempt((enum bh_operation)op, &reaches[op], CAROL);
    for (size_t i = 0; i < BH_COUNT(others); i++)
        crossing_attempt(others[i].op, &others[i].reach, CAROL);
    BH_CHECK_DONE();
}

/* A stranger's answer to what is not open is the same for what there is and is not. */
static void
a_stranger_gets_nothing(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        struct fixture *f = open_with_alices();

        bh_fixture_send(f,
                        &(struct sent){ .method = row->method,
                                        .path = reaches[op].path,
                                        .query = reaches[op].query,
                                        .body = reaches[op].body,
                                        .uid = STRANGER },
                        &got);
        BH_CHECK_EQ(row->name, got.status == 401, row->scope != BH_SCOPE_NOBODY);
        BH_CHECK(row->name, !f->commanded);
        bh_fixture_close(f);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_of_anothers_is_reached),
    cmocka_unit_test(an_administrator_reaches_the_same),
    cmocka_unit_test(a_stranger_gets_nothing),
};
BH_TEST_MAIN(tests)
