/* The records of each request, whatever its result: each has one deed, and a caller without the right is
 * denied before any content is shown. alice develops in acme, viv may read there, bob develops in other; dave
 * audits and erin administers the whole site.  Job 1 is alice's and waits; job 2 was hers, has ended, and the
 * engine no longer has it; 3 is hers, to be cancelled. */

#include "daemon/fixture/accounts_fixture_test.h"

#include "api/request/token.h"
#include "daemon/authorization/objects.h"
#include "daemon/batch/batch.h"
#include "daemon/batch/record.h"
#include "daemon/changes/tokens.h"

static const char deeds_site[] =
    "tenants: [{name: acme}, {name: other}]\n"
    "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]\n"
    "principals:\n"
    "  - {name: alice, uid: 2001, account: true}\n"
    "  - {name: viv, uid: 2002}\n"
    "  - {name: bob, uid: 2003}\n"
    "  - {name: dave, uid: 2004}\n"
    "  - {name: erin, uid: 2005, account: true}\n"
    "bindings:\n"
    "  - {role: developer, principal: alice, tenant: acme}\n"
    "  - {role: viewer, principal: viv, tenant: acme}\n"
    "  - {role: developer, principal: bob, tenant: other}\n"
    "  - {role: auditor, principal: dave, tenant: '*'}\n"
    "  - {role: admin, principal: erin, tenant: '*'}\n";

enum who { ALICE = 2001, VIV, BOB, DAVE, ERIN, TOKEN /* alice's, which may look at jobs alone */ };

static struct site s;
static const char *alices_id, *alices_token, *erins_id;

/* ---- the newest record that a caller caused ---- */

struct newest {
    struct bh_record record;
    char verb[40], res[24];
    uint32_t count;
};

static bool
take_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    static char scratch[BH_RECORD_BYTES_MAX + 64];
    struct newest *newest = self;
    struct bh_record record;
    struct bh_err err;

    assert_int_equal(bh_record_decode(leaf, length, scratch, &record, &err), BH_OK);
    if (record.actor.via == BH_VIA_SYSTEM)
        return true;
    newest->record = record;
    newest->count++;
    snprintf(newest->verb, sizeof newest->verb, "%s", record.verb);
    snprintf(newest->res, sizeof newest->res, "%s", record.res);
    return true;
}

static struct newest
newest_since(uint64_t first)
{
    struct newest newest = { .count = 0 };

    assert_int_equal(s.f.core.store.ops->list_records(s.f.core.store.self, first, INT64_MAX, take_record,
                                                      &newest, &s.f.err),
                     BH_OK);
    return newest;
}

/* ---- requests ---- */

enum { ANY_RULE = 9999 };

struct want {
    const char *verb, *object; /* type of it; "": none */
    uint64_t id;
    const char *tenant; /* NULL: the site's */
    const char *res;
    uint32_t rule; /* that allowed it; 0: it was not allowed */
};

struct asked {
    enum who who;
    enum bh_method method;
    const char *path, *body;
};

static bh_rc
check_quota(void *self, bh_job_id job, bh_principal_id principal, struct bh_err *err)
{
    return BH_OK;
}

static const struct bh_streams_ops streams = { .check_quota = check_quota };

static void
verbs_ask(const struct asked *asked)
{
    struct sent sent = { asked->method, asked->path, asked->body, .uid = asked->who };

    if (asked->who == TOKEN) {
        sent.uid = 0;
        sent.bearer = alices_token;
    }
    memset(&s.f.core.refusals, 0, sizeof s.f.core.refusals); /* each is a record of its own */
    send_sent(&s, &sent);
}

static void
verbs_check(const char *name, const struct asked *asked, const struct want *want)
{
    const char *tenant = want->tenant ? want->tenant : "";
    uint64_t before = s.f.core.journal.next_seq;
    struct newest newest;
    const char *told;

    name = body_of(&s, "%s by %d", name, (int)asked->who);
    verbs_ask(asked);
    newest = newest_since(before);
    BH_CHECK_EQ(name, newest.count, 1);
    told = bh_catalog_name_of(s.f.core.catalog, BH_NAME_TENANT, newest.record.tenant);
    BH_CHECK_STR(name, newest.verb, want->verb);
    BH_CHECK_STR(name, newest.record.obj.type, want->object);
    BH_CHECK_EQ(name, newest.record.obj.id, want->id);
    BH_CHECK_STR(name, told ? told : "", tenant);
    BH_CHECK_STR(name, newest.res, want->res);
    BH_CHECK_EQ(name, newest.record.dec.allow, want->rule != 0);
    if (want->rule != ANY_RULE && newest.record.dec.allow)
        BH_CHECK_EQ(name, newest.record.dec.rule, want->rule);
}

static const char *
token_of(enum who who, const char *body, const char **ret_id)
{
    verbs_ask(&(struct asked){ who, BH_POST, "/v1/tokens", body });
    assert_int_equal(s.status, 201);
    *ret_id = accounts_fixture_text_of(&s, "id");
    return accounts_fixture_text_of(&s, "token");
}

static void
verbs_begin(void)
{
    static const struct submission alices = { "alice", "acme", "small", NULL, 0, 1 };
    struct bh_job_view view;

    memset(&s, 0, sizeof s);
    accounts_fixture_open_site(&s, deeds_site);
    close_accounts(&s);
    s.streams = (struct bh_streams_port){ &streams, NULL };
    open_accounts(&s);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_submit(&s.f, alices), BH_OK);
    verbs_ask(&(struct asked){ ALICE, BH_POST, "/v1/jobs/2/cancel", NULL });
    assert_int_equal(s.status, 200);
    alices_token = token_of(ALICE, "{\"scopes\":\"job.view\"}", &alices_id);
    (void)token_of(ERIN, "{}", &erins_id);
    assert_int_equal(fixture_submit(&s.f, alices), BH_OK); /* what has ended is forgotten then */
    assert_false(bh_view_job(s.f.core.state.engine, (bh_job_id){ 2 }, &view));
}

/* ---- jobs ---- */

static const struct route {
    const char *name, *body, *verb;
    uint32_t own, any; /* rules of who has the job, and of who has none */
} routes[] = {
    { "cancel", NULL, "job.cancel", 8, 33 },
    { "release", NULL, "job.release", 8, 33 },
    { "exec", "{\"args\":[\"true\"]}", "job.exec", 100, 103 },
    { "attach", "{}", "job.attach", 100, 103 },
    { "forward", "{}", "job.forward", 100, 103 },
    { "verify", NULL, "isolation.verify", 115, 117 },
};

static void
check_job(const struct route *route, enum who who, uint64_t job, const struct want *want)
{
    const struct asked asked = { who, BH_POST, body_of(&s, "/v1/jobs/%d/%s", (int)job, route->name),
                                 route->body };

    verbs_check(body_of(&s, "%s %d", route->name, (int)job), &asked, want);
}

static void
a_deed_at_a_job_is_decided_before_its_state_is_shown(void **state)
{
    static const uint64_t ids[] = { 1, 2 };

    verbs_begin();
    for (size_t i = 0; i < BH_COUNT(routes); i++) {
        const struct route *route = &routes[i];
        const bool verify = strcmp(route->name, "verify") == 0;

        for (size_t at = 0; at < BH_COUNT(ids); at++) {
            const struct want denied = { route->verb, "job", ids[at], "acme", "denied", 0 };
            const struct want hidden = { route->verb, "job", ids[at], NULL, "not_found", 0 };
            const struct want own = { route->verb, "job", ids[at], "acme", "conflict", route->own };
            const struct want any = { route->verb, "job", ids[at], "acme", "conflict", route->any };

            check_job(route, VIV, ids[at], &denied);
            if (verify)
                check_job(route, DAVE, ids[at],
                          &(struct want){ route->verb, "job", ids[at], "acme", "conflict", 118 });
            else
                check_job(route, DAVE, ids[at], &denied);
            check_job(route, BOB, ids[at], &hidden);
            check_job(route, TOKEN, ids[at], &denied);
            if (i > 0 || ids[at] == 2) { /* 1 is waited with, not cancelled */
                check_job(route, ALICE, ids[at], &own);
                check_job(route, ERIN, ids[at], &any);
            }
        }
        check_job(route, ALICE, 99, &(struct want){ route->verb, "", 0, NULL, "not_found", 0 });
    }
    check_job(&routes[0], ALICE, 3, &(struct want){ "job.cancel", "job", 3, "acme", "ok", 8 });
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* ---- the others ---- */

#define JOB(priority)                                                                                        \
    "{\"args\":[\"true\"],\"priority\":\"" priority "\",\"sku\":\"small\",\"tenant\":\"acme\"}"
#define TOKEN_ID "{token}" /* stands for the id of erin's token in a path */
#define SITE_BODY "{\"tenants\":[{\"name\":\"acme\"}]}"
#define DENIED(verb)                                                                                         \
    {                                                                                                        \
        verb, "", 0, NULL, "denied", 0                                                                       \
    }

static const struct other {
    enum bh_operation op;
    enum who who;
    const char *path, *body;
    struct want want;
    /* clang-format off */
} others[] = {
    { BH_OP_JOB_SUBMIT, VIV, "/v1/jobs", JOB("normal"), { "job.submit", "", 0, "acme", "denied", 0 } },
    { BH_OP_JOB_SUBMIT, ALICE, "/v1/jobs", JOB("high"), { "job.submit", "", 0, "acme", "denied", 0 } },
    { BH_OP_JOB_SUBMIT, ALICE, "/v1/jobs", JOB("normal"), { "job.submit", "job", 5, "acme", "ok", 6 } },
    { BH_OP_SITE_APPLY, DAVE, "/v1/site", SITE_BODY, DENIED("site.apply") },
    { BH_OP_TOKEN_CREATE, VIV, "/v1/tokens", "{}", DENIED("token.create") },
    { BH_OP_TOKEN_CREATE, ALICE, "/v1/tokens", "{\"principal\":\"erin\"}", DENIED("token.create") },
    { BH_OP_TOKEN_CREATE, ERIN, "/v1/tokens", "{\"principal\":\"nobody\"}",
      { "token.create", "", 0, NULL, "not_found", 41 } },
    { BH_OP_TOKEN_REVOKE, VIV, "/v1/tokens/" TOKEN_ID, NULL, { "token.revoke", "token", 1, NULL, "denied", 0 } },
    { BH_OP_TOKEN_REVOKE, BOB, "/v1/tokens/" TOKEN_ID, NULL, { "token.revoke", "token", 1, NULL, "not_found", 0 } },
    { BH_OP_TOKEN_REVOKE, ERIN, "/v1/tokens/AAAAAAAAAAAA", NULL, { "token.revoke", "", 0, NULL, "not_found", 0 } },
    { BH_OP_TOKEN_REVOKE, ERIN, "/v1/tokens/" TOKEN_ID, NULL, { "token.revoke", "token", 1, NULL, "ok", 43 } },
    { BH_OP_AUDIT_PRUNE, DAVE, "/v1/log/prune", "{\"checkpoint\":\"x\"}", DENIED("audit.prune") },
    { BH_OP_DEFRAG_APPLY, DAVE, "/v1/defrag", "{\"token\":\"x\"}", DENIED("job.move") },
    { BH_OP_LAYOUT_APPLY, DAVE, "/v1/layouts", "{}", DENIED("layout.apply") },
    { BH_OP_LAYOUT_ROLLBACK, DAVE, "/v1/layouts/rollback", NULL, DENIED("layout.apply") },
    { BH_OP_CORDON, DAVE, "/v1/cordon", "{\"target\":\"n9\"}", DENIED("gpu.cordon") },
    { BH_OP_CORDON, ERIN, "/v1/cordon", "{\"target\":\"n9\"}", { "gpu.cordon", "", 0, NULL, "not_found", 91 } },
    { BH_OP_UNCORDON, DAVE, "/v1/uncordon", "{\"target\":\"n9\"}", DENIED("gpu.cordon") },
    { BH_OP_DRAIN, DAVE, "/v1/drain", "{\"target\":\"n9\"}", DENIED("gpu.cordon") },
    { BH_OP_KEY_SHRED, DAVE, "/v1/keys/shred", "{\"month\":\"all\",\"reason\":\"r\",\"tenant\":\"acme\"}", { "key.shred", "tenant", 1, NULL, "denied", 0 } },
    { BH_OP_KEY_ROTATE, DAVE, "/v1/keys/rotate", NULL, DENIED("key.rotate") },
    { BH_OP_NODE_VERIFY, VIV, "/v1/verify", NULL, DENIED("isolation.verify") },
    { BH_OP_SIGN_IN_GRANT, TOKEN, "/v1/sign-in/grant", "{\"challenge\":\"x\"}", DENIED("session.open") },
    { BH_OP_SIGN_OUT, TOKEN, "/v1/sign-out", NULL, DENIED("session.end") },
    { BH_OP_PROVE, TOKEN, "/v1/prove", "{}", DENIED("session.prove") },
    { BH_OP_BREAK_GLASS, TOKEN, "/v1/break-glass", "{\"reason\":\"r\"}", DENIED("glass.break") },
    { BH_OP_SESSION_END, TOKEN, "/v1/sessions/AAAAAAAAAAAA", NULL, DENIED("session.end") },
    { BH_OP_SESSION_END, ALICE, "/v1/sessions/AAAAAAAAAAAA", NULL, { "session.end", "", 0, NULL, "not_found", 0 } },
    { BH_OP_TOTP_BEGIN, TOKEN, "/v1/account/totp", NULL, DENIED("account.totp") },
    { BH_OP_TOTP_CONFIRM, TOKEN, "/v1/account/totp", "{\"code\":\"1\"}", DENIED("account.totp") },
    { BH_OP_TOTP_REMOVE, TOKEN, "/v1/account/totp", NULL, DENIED("account.totp_removed") },
    { BH_OP_RECOVERY_MAKE, TOKEN, "/v1/account/recovery", NULL, DENIED("account.recovery") },
    { BH_OP_PASSKEY_BEGIN, TOKEN, "/v1/account/passkeys/challenge", NULL, DENIED("account.passkey") },
    { BH_OP_PASSKEY_ADD, TOKEN, "/v1/account/passkeys", "{}", DENIED("account.passkey") },
    { BH_OP_PASSKEY_REMOVE, TOKEN, "/v1/account/passkeys/AAAA", NULL, DENIED("account.passkey_removed") },
    { BH_OP_ACCOUNT_ENROL, DAVE, "/v1/accounts", "{\"principal\":\"erin\"}", { "account.enrol", "account", 5, NULL, "denied", 0 } },
    { BH_OP_ACCOUNT_ENROL, DAVE, "/v1/accounts", "{\"principal\":\"nobody\"}", DENIED("account.enrol") },
    { BH_OP_ACCOUNT_ENROL, ERIN, "/v1/accounts", "{\"principal\":\"nobody\"}", { "account.enrol", "", 0, NULL, "not_found", 60 } },
    { BH_OP_ACCOUNT_ENROL, ERIN, "/v1/accounts", "{\"principal\":\"alice\"}", { "account.enrol", "account", 1, NULL, "ok", 60 } },
    { BH_OP_ACCOUNT_RESET, DAVE, "/v1/accounts/alice", NULL, { "account.reset", "account", 1, NULL, "denied", 0 } },
    { BH_OP_ACCOUNT_RESET, ERIN, "/v1/accounts/viv", NULL, { "account.reset", "account", 2, NULL, "not_found", 60 } },
    { BH_OP_ACCOUNT_RESET, ERIN, "/v1/accounts/alice", NULL, { "account.reset", "account", 1, NULL, "ok", 60 } },
};
/* clang-format on */

static const char *
verbs_path_of(const char *path)
{
    const char *at = strstr(path, TOKEN_ID);

    return at ? body_of(&s, "%.*s%s", (int)(at - path), path, erins_id) : path;
}

/* Numbers in the table are those of people in the order of the site file, 1 is erin's token, or acme. */
static uint64_t
verbs_number_of(const struct want *want)
{
    static const char *const accounts[] = { "", "alice", "viv", "bob", "dave", "erin" };

    if (strcmp(want->object, "token") == 0)
        return bh_objects_of_token(&s.f.core, erins_id).id;
    if (strcmp(want->object, "account") == 0)
        return bh_catalog_find(s.f.core.catalog, BH_NAME_PRINCIPAL, accounts[want->id]);
    if (strcmp(want->object, "tenant") == 0)
        return bh_catalog_find(s.f.core.catalog, BH_NAME_TENANT, "acme");
    return want->id;
}

static void
every_change_has_one_deed(void **state)
{
    bool tried[BH_OPERATIONS] = { false };

    verbs_begin();
    for (size_t i = 0; i < BH_COUNT(others); i++) {
        const struct other *other = &others[i];
        const struct bh_operation_row *row = bh_operation_get(other->op);
        const struct asked asked = { other->who, row->method, verbs_path_of(other->path), other->body };
        struct want want = other->want;

        want.id = verbs_number_of(&other->want);
        verbs_check(row->name, &asked, &want);
        tried[other->op] = true;
    }
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);

        if (row->kind == BH_OPERATION_MUTATE && row->scope != BH_SCOPE_NOBODY && row->scope != BH_SCOPE_JOB)
            BH_CHECK(row->name, tried[op]);
    }
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* ---- unknown callers ---- */

/* What the log has of refused sign-ins about an object. */
struct strange {
    const char *type;
    uint64_t id, records, times;
    bool told; /* it names a principal, or says that it was allowed */
};

static bool
add_strange(void *self, uint64_t seq, const char *leaf, size_t length)
{
    static char scratch[BH_RECORD_BYTES_MAX + 64];
    struct strange *sum = self;
    struct bh_record record;
    struct bh_err err;

    assert_int_equal(bh_record_decode(leaf, length, scratch, &record, &err), BH_OK);
    if (strcmp(record.verb, "sign_in.refused") != 0 || strcmp(record.obj.type, sum->type) != 0
        || record.obj.id != sum->id)
        return true;
    sum->records++;
    sum->times += record.count ? record.count : 1;
    sum->told = sum->told || record.actor.id || record.actor.via || record.actor.token[0] || record.dec.allow
                || record.dec.rule != BH_RULE_NOT_SHOWN || strcmp(record.res, "unauthenticated") != 0;
    return true;
}

static void
check_strange(const char *type, uint64_t id, uint64_t records, uint64_t times)
{
    struct strange sum = { .type = type, .id = id };

    assert_int_equal(
        s.f.core.store.ops->list_records(s.f.core.store.self, 0, INT64_MAX, add_strange, &sum, &s.f.err),
        BH_OK);
    BH_CHECK_EQ(type, sum.records, records);
    BH_CHECK_EQ(type, sum.times, times);
    BH_CHECK(type, !sum.told);
}

static void
verbs_show(const char *bearer, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        SEND(&s, BH_GET, "/v1/jobs", .bearer = bearer);
        BH_CHECK(bearer, s.status == 401 || s.status == 429);
    }
}

/* A token's text whose id is that of a token with another secret. */
static const char *
another_of(uint64_t *ret_number)
{
    struct bh_token token = { .kind = BH_TOKEN_API };
    char text[BH_TOKEN_LENGTH + 1];
    struct bh_token_row row = { .principal_id = 1, .scopes = "", .note = "" };

    assert_int_equal(bh_token_make(s.f.core.crypto, &token, text, &s.f.err), BH_OK);
    memcpy(row.id, token.id, sizeof token.id);
    memset(row.secret.bytes, 'x', sizeof row.secret.bytes);
    assert_int_equal(s.f.core.store.ops->begin(s.f.core.store.self, &s.f.err), BH_OK);
    assert_int_equal(s.f.core.store.ops->put_token(s.f.core.store.self, &row, &s.f.err), BH_OK);
    assert_int_equal(s.f.core.store.ops->commit(s.f.core.store.self, &s.f.err), BH_OK);
    *ret_number = bh_objects_of_token(&s.f.core, row.id).id;
    return bh_arena_strdup(s.f.arena, text);
}

static void
wrong_credentials_are_counted(void **state)
{
    uint64_t number;
    char *mistyped;

    verbs_begin();
    mistyped = bh_arena_strdup(s.f.arena, alices_token);
    mistyped[strlen(mistyped) - 12] ^= 1; /* of its secret: nor does the checksum fit */
    verbs_show(another_of(&number), 500);
    verbs_show(mistyped, 2);
    verbs_show("nonsense", 3);
    verbs_show("", 1);
    verbs_show("bh_AAAAAAAAAAAA_of_no_token", 1);
    verbs_show("bs_nonsense", 1);
    SEND(&s, BH_GET, "/v1/jobs", .bearer = NULL); /* nothing was shown */
    assert_int_equal(bh_core_record_refusals(&s.f.core, true, &s.f.err), BH_OK);
    assert_int_equal(bh_core_commit(&s.f.core, &s.f.err), BH_OK);
    check_strange("token", number, 2, 500);
    check_strange("token", bh_objects_of_token(&s.f.core, alices_id).id, 2, 2);
    check_strange("", 0, 2, 6);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(wrong_credentials_are_counted),
    cmocka_unit_test(a_deed_at_a_job_is_decided_before_its_state_is_shown),
    cmocka_unit_test(every_change_has_one_deed),
};

BH_TEST_MAIN(tests)
