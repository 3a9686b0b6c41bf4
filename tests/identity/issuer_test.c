/* Signing in at an issuer, whole: API, src/accounts and a core, with the mock provider in the
 * network's place.  The browser is this test. */

#include "daemon/fixture/accounts_fixture_test.h"
#include "identity/secret.h"
#include "tests/lib/mock_provider.h"

#define SITE(second_factor)                                                                                  \
    "tenants:\n"                                                                                             \
    "  - {name: acme}\n"                                                                                     \
    "skus:\n"                                                                                                \
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"                          \
    "principals:\n"                                                                                          \
    "  - {name: zoe, identity: corp/zoe-1}\n"                                                                \
    "bindings:\n"                                                                                            \
    "  - {role: admin, group: corp/ml, tenant: '*'}\n"                                                       \
    "  - {role: viewer, group: corp/other, tenant: acme}\n"                                                  \
    "sign_in:\n"                                                                                             \
    "  address: https://gpu.example\n"                                                                       \
    "  issuers:\n"                                                                                           \
    "  - {name: corp, url: 'https://op.example', client_id: bulkhead, second_factor: " second_factor "}\n"

static const char issuer_site[] = SITE("true"), weaker_site[] = SITE("false");

enum { STRANGERS = 2000 }; /* more than can be under way */

static struct site s;
static struct bh_mock mock;

static bh_rc
ask_mock(void *self, const struct bh_https_request *request, struct bh_arena *arena,
         struct bh_https_response *ret_answer, struct bh_err *err)
{
    mock.now = clock_ns;
    bh_mock_answer(&mock, request, ret_answer);
    ret_answer->body = bh_arena_strdup(arena, ret_answer->body);
    return BH_OK;
}

static const struct bh_https_ops https_ops = { ask_mock };

static void
begin(void)
{
    mock = (struct bh_mock){ .wrong = BH_MOCK_HONEST };
    open_site_with(&s, issuer_site, (struct bh_https){ &https_ops, NULL });
}

/* Go to the provider; the id of the sign-in, and what the browser brings back. */
static const char *
go(const char *bearer, const char **ret_query)
{
    static char memory[4096];
    struct bh_buf query;
    const char *id;

    SEND(&s, BH_POST, "/v1/sign-in/issuer", .bearer = bearer,
         .body = bearer ? "{\"again\":true,\"issuer\":\"corp\"}" : "{\"issuer\":\"corp\"}");
    if (s.status != 200)
        return "";
    id = accounts_fixture_text_of(&s, "id");
    bh_buf_init_fixed(&query, memory, sizeof memory);
    mock.code_used = false;
    bh_mock_browse(&mock, accounts_fixture_text_of(&s, "address"), &query);
    *ret_query = bh_buf_text(&query);
    return id;
}

static const char *
come_back(const char *id, const char *query)
{
    SEND(&s, BH_POST, body_of(&s, "/v1/sign-in/issuer/%s", id),
         .body = body_of(&s, "{\"query\":\"%s\"}", query));
    return s.status == 201 ? accounts_fixture_text_of(&s, "session") : "";
}

static const char *
sign_in(void)
{
    const char *query = "", *id = go(NULL, &query);

    return id[0] ? come_back(id, query) : "";
}

static bool
count_one(void *self, const struct bh_document_row *row)
{
    ++*(uint32_t *)self;
    return true;
}

static uint32_t
sessions(void)
{
    uint32_t count = 0;
    struct bh_store *store = &s.f.core.store;

    assert_int_equal(store->ops->list_documents(store->self,
                                                &(struct bh_document_filter){ BH_DOCUMENT_SESSION, 0 },
                                                count_one, &count, &s.f.err),
                     BH_OK);
    return count;
}

static void
groups_of_the_issuer_bring_roles(void **state)
{
    const char *session;

    begin();
    session = sign_in();
    BH_CHECK_EQ("in", s.status, 201);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_STR("by a name of the issuer's", accounts_fixture_text_of(&s, "name"), "corp:me");
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("an admin by a group", s.status, 200);
    mock.groups = "[\"other\",\"none\"]";
    mock.subject = "you";
    session = sign_in();
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("a viewer by another", s.status, 403);
    mock.groups = "[]";
    mock.subject = "zoe-1";
    session = sign_in();
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_STR("whom the site file names", accounts_fixture_text_of(&s, "name"), "zoe");
    mock.subject = "a b\\u00e9";
    sign_in();
    BH_CHECK("a subject that is no name", strncmp(accounts_fixture_text_of(&s, "name"), "corp:~", 6) == 0);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* Each lie of the provider: the browser gets one sentence, nothing is changed. */
static void
no_lie_signs_anybody_in(void **state)
{
    const char *first = NULL;

    for (int wrong = BH_MOCK_DISCOVERY_ISSUER; wrong < BH_MOCK_REFRESH_ISS; wrong++) {
        char name[32];

        begin();
        snprintf(name, sizeof name, "lie %d", wrong);
        mock.wrong = (enum bh_mock_wrong)wrong;
        sign_in();
        if (wrong == BH_MOCK_KID_ABSENT_SINGLE) {
            BH_CHECK_EQ(name, s.status, 201); /* no lie */
        } else {
            BH_CHECK_EQ(name, s.status, 401);
            BH_CHECK_EQ(name, sessions(), 0);
            if (!first)
                first = strdup(s.text);
            BH_CHECK_STR(name, s.text, first);
        }
        accounts_fixture_close_site(&s);
    }
    free((char *)(uintptr_t)first);
    BH_CHECK_DONE();
}

static void
an_answer_counts_once_and_for_its_browser(void **state)
{
    const char *query, *other, *id, *second;

    begin();
    id = go(NULL, &query);
    query = body_of(&s, "%s", query);
    second = go(NULL, &other);
    come_back(second, query);
    BH_CHECK_EQ("another browser's answer", s.status, 401);
    come_back("00000000000000000000000000000000", query);
    BH_CHECK_EQ("of no sign-in", s.status, 404);
    mock = (struct bh_mock){ .wrong = BH_MOCK_HONEST };
    id = go(NULL, &query);
    query = body_of(&s, "%s", query);
    come_back(id, body_of(&s, "%s&state=x", query));
    BH_CHECK_EQ("a parameter twice", s.status, 401);
    come_back(id, query);
    BH_CHECK_EQ("and then it is over", s.status, 404);
    id = go(NULL, &query);
    clock_ns += 601 * BH_NS_PER_S;
    come_back(id, query);
    BH_CHECK_EQ("too late", s.status, 404);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* A provider that is down is asked again, but not by all callers at once. */
static void
a_provider_may_be_down(void **state)
{
    begin();
    mock.down = true;
    sign_in();
    BH_CHECK_EQ("down", s.status, 503);
    mock.down = false;
    sign_in();
    BH_CHECK_EQ("left alone for a moment", s.status, 503);
    clock_ns += 11 * BH_NS_PER_S;
    sign_in();
    BH_CHECK_EQ("back", s.status, 201);
    mock.rotated = true;
    clock_ns += 31 * BH_NS_PER_S;
    sign_in();
    BH_CHECK_EQ("with other keys", s.status, 201);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
who_loses_a_group_is_out(void **state)
{
    const char *session, *other;

    begin();
    mock.groups = "[\"ml\",\"other\"]";
    session = sign_in();
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    clock_ns += 601 * BH_NS_PER_S;
    mock.down = true;
    bh_accounts_maintain(s.accounts);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_EQ("a provider that is down ends nothing", s.status, 200);
    clock_ns += 61 * BH_NS_PER_S;
    mock.down = false;
    bh_accounts_maintain(s.accounts);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_EQ("nothing was lost", s.status, 200);
    clock_ns += 601 * BH_NS_PER_S;
    mock.groups = "[\"other\"]";
    bh_accounts_maintain(s.accounts);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_EQ("a group was", s.status, 401);
    other = sign_in();
    BH_CHECK_EQ("he may come in again", s.status, 201);
    mock.revoked = true;
    clock_ns += 601 * BH_NS_PER_S;
    bh_accounts_maintain(s.accounts);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = other);
    BH_CHECK_EQ("the provider refuses him", s.status, 401);
    BH_CHECK_EQ("none is left", sessions(), 0);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* Less than the site asks for opens nothing but the account. */
static void
no_second_factor_opens_nothing(void **state)
{
    const char *session;

    begin();
    assert_int_equal(fixture_apply(&s.f, weaker_site), BH_OK);
    session = sign_in();
    BH_CHECK_STR("a password alone", accounts_fixture_text_of(&s, "level"), "none");
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("nothing", s.status, 403);
    SEND(&s, BH_GET, "/v1/account", .bearer = session);
    BH_CHECK_EQ("but the account", s.status, 200);
    mock.amr = "[\"pwd\",\"otp\"]";
    session = sign_in();
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("with a code", s.status, 200);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* What was shown at the provider counts as it says. */
static void
the_provider_says_what_was_shown(void **state)
{
    const char *session;

    begin();
    mock.amr = "[\"pwd\",\"hwk\"]";
    session = sign_in();
    BH_CHECK_STR("a key", accounts_fixture_text_of(&s, "level"), "code");
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("just now", s.status, 200);
    clock_ns += 301 * BH_NS_PER_S;
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("again", s.status, 401);
    {
        const char *query = "", *id = go(session, &query);

        come_back(id, query);
        BH_CHECK_EQ("shown", s.status, 200);
    }
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("and in", s.status, 200);
    clock_ns += 301 * BH_NS_PER_S;
    mock.subject = "you";
    {
        const char *query = "", *id = go(session, &query);

        come_back(id, query);
        BH_CHECK_EQ("by somebody else", s.status, 401);
    }
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* A signature cannot be guessed: wrong passwords for the issuer's users, from their addresses, delay none of
 * them. */
static void
guesses_delay_no_user_of_the_issuer(void **state)
{
    static const char *const names[] = { "corp:me", "me", "corp", "zoe" };
    const char *session, *query = "", *id;

    begin();
    for (size_t i = 0; i < 40; i++)
        SEND(&s, BH_POST, "/v1/sign-in",
             .body = body_of(&s, "{\"account\":\"%s\",\"password\":\"guess %zu\"}",
                             names[i % BH_COUNT(names)], i));
    BH_CHECK_EQ("wrong", s.status, 401);
    BH_CHECK("the names and the address are locked", strstr(s.text, "too many attempts"));
    session = sign_in();
    BH_CHECK_EQ("in", s.status, 201);
    id = go(session, &query);
    come_back(id, query);
    BH_CHECK_EQ("shown again", s.status, 200);
    mock.subject = "zoe-1";
    sign_in();
    BH_CHECK_EQ("whom the site file names", s.status, 201);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
the_provider_signs_people_out(void **state)
{
    static const char header[] = "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"typ\":\"logout+jwt\"}";
    const char *session, *token;

    begin();
    session = sign_in();
    token =
        bh_test_sign(BH_TEST_RSA, BH_JWS_RS256, header,
                     body_of(&s,
                             "{\"iss\":\"" BH_MOCK_ISSUER "\",\"aud\":\"bulkhead\",\"iat\":%llu,\"exp\":%llu,"
                             "\"jti\":\"j1\",\"sub\":\"me\",\"sid\":\"s1\",\"events\":{"
                             "\"http://schemas.openid.net/event/backchannel-logout\":{}}}",
                             (unsigned long long)(clock_ns / BH_NS_PER_S),
                             (unsigned long long)(clock_ns / BH_NS_PER_S) + 120));
    token = bh_arena_strdup(s.f.arena, token);
    SEND(&s, BH_POST, "/v1/sign-in/logout/corp", .body = "{\"logout_token\":\"x.y.z\"}");
    BH_CHECK_EQ("no token", s.status, 400);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_EQ("nothing changed", s.status, 200);
    SEND(&s, BH_POST, "/v1/sign-in/logout/corp", .body = body_of(&s, "logout_token=%s", token),
         .type = "application/x-www-form-urlencoded");
    BH_CHECK_EQ("taken", s.status, 200);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_EQ("out", s.status, 401);
    SEND(&s, BH_POST, "/v1/sign-in/logout/corp", .body = body_of(&s, "{\"logout_token\":\"%s\"}", token));
    BH_CHECK_EQ("once", s.status, 400);
    SEND(&s, BH_POST, "/v1/sign-in/logout/other", .body = "{\"logout_token\":\"x\"}");
    BH_CHECK_EQ("of no issuer", s.status, 404);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* The command line gets a session of its own through a browser's. */
static void
a_command_line_comes_in_through_a_browser(void **state)
{
    static const char verifier[] = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv";
    char challenge[BH_SECRET_TEXT];
    const char *session, *code;

    begin();
    session = sign_in();
    bh_secret_challenge(verifier, challenge);
    SEND(&s, BH_POST, "/v1/sign-in/grant", .bearer = session,
         .body = body_of(&s, "{\"challenge\":\"%s\",\"host\":\"laptop\"}", challenge));
    BH_CHECK_EQ("granted", s.status, 200);
    code = accounts_fixture_text_of(&s, "code");
    SEND(&s, BH_POST, "/v1/sign-in/code",
         .body = body_of(
             &s, "{\"code\":\"%s\",\"verifier\":\"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\"}", code));
    BH_CHECK_EQ("another's verifier", s.status, 401);
    SEND(&s, BH_POST, "/v1/sign-in/code",
         .body = body_of(&s, "{\"code\":\"%s\",\"verifier\":\"%s\"}", code, verifier));
    BH_CHECK_EQ("which used it up", s.status, 401);
    SEND(&s, BH_POST, "/v1/sign-in/grant", .bearer = session,
         .body = body_of(&s, "{\"challenge\":\"%s\",\"host\":\"laptop\"}", challenge));
    code = accounts_fixture_text_of(&s, "code");
    for (int i = 0; i < STRANGERS; i++) {
        SEND(&s, BH_POST, "/v1/sign-in/issuer", .body = "{\"issuer\":\"corp\"}");
    }
    SEND(&s, BH_POST, "/v1/sign-in/code",
         .body = body_of(&s, "{\"code\":\"%s\",\"verifier\":\"%s\"}", code, verifier));
    BH_CHECK_EQ("in, whatever strangers begin", s.status, 201);
    SEND(&s, BH_GET, "/v1/site", .bearer = accounts_fixture_text_of(&s, "session"));
    BH_CHECK_EQ("with the same groups", s.status, 200);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_the_issuer_bring_roles),
        cmocka_unit_test(no_lie_signs_anybody_in),
        cmocka_unit_test(an_answer_counts_once_and_for_its_browser),
        cmocka_unit_test(a_provider_may_be_down),
        cmocka_unit_test(who_loses_a_group_is_out),
        cmocka_unit_test(no_second_factor_opens_nothing),
        cmocka_unit_test(the_provider_says_what_was_shown),
        cmocka_unit_test(guesses_delay_no_user_of_the_issuer),
        cmocka_unit_test(the_provider_signs_people_out),
        cmocka_unit_test(a_command_line_comes_in_through_a_browser),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, bh_test_keys_init, bh_test_keys_fini);
}
