/* Every operation about accounts, tried on ada's by others: an unknown caller, dan who has no second factor
 * yet, bob, and bob's API tokens, with and without a scope (none can have one for its owner's account).
 * Nothing stored of ada changes and no answer shows anything of her.  An operation that has no row here fails
 * the test. */

#include "daemon/fixture/accounts_steps_test.h"

#include <inttypes.h>

#include "identity/passkey.h"
#include "policy/operations.h"

static const char crossing_site[] = "tenants:\n"
                                    "  - {name: acme}\n"
                                    "principals:\n"
                                    "  - {name: ada, account: true}\n"
                                    "  - {name: bob, account: true, break_glass: true}\n"
                                    "  - {name: carol, uid: 2003}\n"
                                    "  - {name: dan, account: true}\n"
                                    "bindings:\n"
                                    "  - {role: admin, principal: ada, tenant: '*'}\n"
                                    "  - {role: developer, principal: bob, tenant: acme}\n"
                                    "  - {role: admin, principal: carol, tenant: '*'}\n"
                                    "  - {role: developer, principal: dan, tenant: acme}\n"
                                    "sign_in: {address: 'https://gpu.example'}\n";

enum caller { STRANGER, DAN, BOB, TOKEN, SCOPED_TOKEN, CALLERS };
static const char *const caller_names[CALLERS] = { "a stranger", "dan", "bob", "a token",
                                                   "a token for accounts" };

enum outcome {
    UNTRIED,
    OPEN,    /* 2xx: the caller's own, or open to all */
    NOBODY,  /* 401 */
    DENIED,  /* 403 */
    HIDDEN,  /* 404: the answer does not say whether it exists */
    REFUSED, /* it is not good for that: any error */
    EITHER,  /* as other tests say */
};

#define ALL(outcome)                                                                                         \
    {                                                                                                        \
        outcome, outcome, outcome, outcome, outcome                                                          \
    }
#define JUNK "\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AAAA\""
#define ADAS_SESSION "{ada's session}" /* stands for its id in a path */

static const struct reach {
    enum outcome outcomes[CALLERS]; /* of stranger, dan, bob, token, token for accounts */
    const char *path, *body;
} reaches[BH_OPERATIONS] = {
    [BH_OP_SIGN_IN_WAYS] = { ALL(OPEN), "/v1/sign-in", NULL },
    [BH_OP_SIGN_IN] = { ALL(NOBODY), "/v1/sign-in", "{\"account\":\"ada\",\"password\":\"a guess\"}" },
    [BH_OP_SIGN_IN_CHALLENGE] = { ALL(OPEN), "/v1/sign-in/challenge", NULL },
    [BH_OP_SIGN_IN_ISSUER] = { ALL(REFUSED), "/v1/sign-in/issuer", "{\"issuer\":\"corp\"}" },
    [BH_OP_SIGN_IN_RETURN] = { ALL(REFUSED), "/v1/sign-in/issuer/x", "{\"query\":\"code=x\"}" },
    [BH_OP_SIGN_IN_LOGOUT] = { ALL(REFUSED), "/v1/sign-in/logout/corp", "{\"logout_token\":\"x\"}" },
    [BH_OP_SIGN_IN_GRANT] = { { NOBODY, EITHER, EITHER, DENIED, DENIED },
                              "/v1/sign-in/grant",
                              "{\"challenge\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}" },
    [BH_OP_SIGN_IN_DEVICE] = { ALL(REFUSED), "/v1/sign-in/device", "{\"issuer\":\"corp\"}" },
    [BH_OP_SIGN_IN_POLL] = { ALL(REFUSED), "/v1/sign-in/device/x", NULL },
    [BH_OP_SIGN_IN_CODE] = { ALL(REFUSED), "/v1/sign-in/code", "{\"code\":\"x\",\"verifier\":\"y\"}" },
    [BH_OP_SIGN_IN_FIRST] = { ALL(NOBODY), "/v1/sign-in/first",
                              "{\"account\":\"eve\",\"code\":\"x\",\"password\":\"" PASSWORD "\"}" },
    [BH_OP_SIGN_OUT] = { { NOBODY, OPEN, OPEN, DENIED, DENIED }, "/v1/sign-out", NULL },
    [BH_OP_PROVE] = { { NOBODY, REFUSED, NOBODY, DENIED, DENIED }, "/v1/prove", "{\"code\":\"000000\"}" },
    [BH_OP_BREAK_GLASS] = { { NOBODY, DENIED, OPEN, DENIED, DENIED },
                            "/v1/break-glass",
                            "{\"reason\":\"to see what it does\"}" },
    [BH_OP_SESSION_LIST] = { { NOBODY, OPEN, OPEN, DENIED, DENIED }, "/v1/sessions", NULL },
    [BH_OP_SESSION_END] = { { NOBODY, HIDDEN, HIDDEN, DENIED, DENIED }, "/v1/sessions/" ADAS_SESSION, NULL },
    [BH_OP_ACCOUNT_GET] = { { NOBODY, OPEN, OPEN, DENIED, DENIED }, "/v1/account", NULL },
    [BH_OP_ACCOUNT_PASSWORD] = { ALL(NOBODY), "/v1/account/password",
                                 "{\"account\":\"ada\",\"old\":\"a guess\",\"password\":\"" PASSWORD "\"}" },
    [BH_OP_TOTP_BEGIN] = { { NOBODY, OPEN, OPEN, DENIED, DENIED }, "/v1/account/totp", NULL },
    [BH_OP_TOTP_CONFIRM] = { { NOBODY, REFUSED, REFUSED, DENIED, DENIED },
                             "/v1/account/totp",
                             "{\"code\":\"000000\"}" },
    [BH_OP_TOTP_REMOVE] = { { NOBODY, REFUSED, REFUSED, DENIED, DENIED }, "/v1/account/totp", NULL },
    [BH_OP_RECOVERY_MAKE] = { { NOBODY, REFUSED, OPEN, DENIED, DENIED }, "/v1/account/recovery", NULL },
    [BH_OP_PASSKEY_BEGIN] = { { NOBODY, OPEN, OPEN, DENIED, DENIED },
                              "/v1/account/passkeys/challenge",
                              NULL },
    [BH_OP_PASSKEY_ADD] = { { NOBODY, REFUSED, REFUSED, DENIED, DENIED },
                            "/v1/account/passkeys",
                            "{" JUNK ",\"challenge\":\"x\"}" },
    [BH_OP_PASSKEY_REMOVE] = { { NOBODY, HIDDEN, HIDDEN, DENIED, DENIED },
                               "/v1/account/passkeys/AAAA",
                               NULL },
    [BH_OP_ACCOUNT_LIST] = { { NOBODY, DENIED, DENIED, DENIED, DENIED }, "/v1/accounts", NULL },
    [BH_OP_ACCOUNT_ENROL] = { { NOBODY, DENIED, DENIED, DENIED, DENIED },
                              "/v1/accounts",
                              "{\"principal\":\"ada\"}" },
    [BH_OP_ACCOUNT_RESET] = { { NOBODY, DENIED, DENIED, DENIED, DENIED }, "/v1/accounts/ada", NULL },
};

/* More ways to reach for ada's in operations that have several. */
static const struct {
    enum bh_operation op;
    struct reach reach;
} others[] = {
    { BH_OP_SIGN_IN, { ALL(NOBODY), "/v1/sign-in", "{" JUNK ",\"challenge\":\"x\",\"signature\":\"AA\"}" } },
    { BH_OP_PROVE,
      { { NOBODY, REFUSED, NOBODY, DENIED, DENIED },
        "/v1/prove",
        "{" JUNK ",\"challenge\":\"x\",\"signature\":\"AA\"}" } },
    { BH_OP_ACCOUNT_PASSWORD,
      { ALL(NOBODY), "/v1/account/password",
        "{\"account\":\"ada\",\"enrol\":\"x\",\"password\":\"" PASSWORD "\"}" } },
};

static struct site s;
static const char *bearers[CALLERS], *adas_session;

static void
give_ada_a_passkey(void)
{
    const struct bh_store *store = &s.f.core.store;
    struct bh_passkey passkey = { .id = "AAAA", .name = "phone" };
    char memory[BH_PASSKEY_JSON_MAX + 1];
    struct bh_buf text;

    memset(passkey.key, 'A', 86); /* 64 bytes */
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_passkey_encode(&text, &passkey);
    assert_int_equal(store->ops->begin(store->self, &s.f.err), BH_OK);
    assert_int_equal(store->ops->put_document(store->self,
                                              &(struct bh_document_row){
                                                  BH_DOCUMENT_PASSKEY, "AAAA", 1,
                                                  bh_catalog_find(s.f.core.catalog, BH_NAME_PRINCIPAL, "ada"),
                                                  bh_buf_text(&text) },
                                              &s.f.err),
                     BH_OK);
    assert_int_equal(store->ops->commit(store->self, &s.f.err), BH_OK);
}

static const char *
token_of(const char *session, const char *body)
{
    SEND(&s, BH_POST, "/v1/tokens", .bearer = session, .body = body);
    assert_int_equal(s.status, 201);
    return accounts_fixture_text_of(&s, "token");
}

static void
accounts_crossing_begin(void)
{
    const char *secret;

    accounts_fixture_open_site(&s, crossing_site);
    secret = enrol_with_app(&s, "ada");
    accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    adas_session = accounts_fixture_text_of(&s, "id");
    give_ada_a_passkey();
    accounts_steps_enrol(&s, "dan");
    bearers[DAN] = accounts_steps_sign_in(&s, "dan", PASSWORD, NULL);
    secret = enrol_with_app(&s, "bob");
    bearers[BOB] = accounts_steps_sign_in(&s, "bob", PASSWORD, code_of(&s, secret, clock_ns));
    bearers[TOKEN] = token_of(bearers[BOB], "{}");
    bearers[SCOPED_TOKEN] = token_of(bearers[BOB], "{\"scopes\":\"account.any job.view\"}");
}

static bool
append_row(void *self, const struct bh_document_row *row)
{
    bh_buf_printf(self, "%s %" PRIu64 " %s\n", row->key, row->version, row->value);
    return true;
}

/* All that is kept of ada. */
static const char *
kept_of_ada(void)
{
    static const enum bh_document_kind kinds[] = { BH_DOCUMENT_ACCOUNT, BH_DOCUMENT_PASSKEY,
                                                   BH_DOCUMENT_SESSION };
    const struct bh_store *store = &s.f.core.store;
    struct bh_buf text;
    const char *copy;

    bh_buf_init(&text, 1 << 20);
    for (size_t i = 0; i < BH_COUNT(kinds); i++) {
        struct bh_document_filter filter = { kinds[i],
                                             bh_catalog_find(s.f.core.catalog, BH_NAME_PRINCIPAL, "ada") };

        assert_int_equal(store->ops->list_documents(store->self, &filter, append_row, &text, &s.f.err),
                         BH_OK);
    }
    copy = bh_arena_strdup(s.f.arena, bh_buf_text(&text));
    bh_buf_fini(&text);
    return copy;
}

static bool
is_outcome(enum outcome outcome)
{
    switch (outcome) {
    case OPEN:
        return s.status >= 200 && s.status < 300;
    case NOBODY:
        return s.status == 401;
    case DENIED:
        return s.status == 403;
    case HIDDEN:
        return s.status == 404;
    case REFUSED:
        return s.status >= 400;
    case EITHER:
        return true;
    case UNTRIED:
        break;
    }
    return false;
}

static const char *
accounts_crossing_path_of(const struct reach *reach)
{
    const char *at = strstr(reach->path, ADAS_SESSION);

    return at ? body_of(&s, "%.*s%s", (int)(at - reach->path), reach->path, adas_session) : reach->path;
}

static void
accounts_crossing_attempt(enum bh_operation op, const struct reach *reach)
{
    const struct bh_operation_row *row = bh_operation_get(op);
    const char *before;

    accounts_crossing_begin();
    before = kept_of_ada();
    for (enum caller caller = 0; caller < CALLERS; caller++) {
        const char *name = body_of(&s, "%s, %s", row->name, caller_names[caller]);

        SEND(&s, row->method, accounts_crossing_path_of(reach), .bearer = bearers[caller],
             .body = reach->body, .address = body_of(&s, "192.0.2.%d", (int)caller));
        if (!is_outcome(reach->outcomes[caller]))
            BH_CHECK_EQ(name, s.status, (uint32_t)reach->outcomes[caller]);
        BH_CHECK_STR(name, kept_of_ada(), before);
        BH_CHECK(name, !strstr(s.text, "\"ada\""));
        BH_CHECK(name, op == BH_OP_SESSION_END || !strstr(s.text, adas_session)); /* as asked */
    }
    accounts_fixture_close_site(&s);
}

static void
no_other_user_reaches_adas_account(void **state)
{
    for (int op = 0; op < BH_OPERATIONS; op++) {
        if (!bh_operation_of_accounts((enum bh_operation)op))
            continue;
        BH_CHECK(bh_operation_get((enum bh_operation)op)->name, reaches[op].path);
        if (reaches[op].path)
            accounts_crossing_attempt((enum bh_operation)op, &reaches[op]);
    }
    for (size_t i = 0; i < BH_COUNT(others); i++)
        accounts_crossing_attempt(others[i].op, &others[i].reach);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(no_other_user_reaches_adas_account) };
BH_TEST_MAIN(tests)
