/* Accounts, factors and sessions on a core: what signs in, what ends it, what is asked again,
 * and what a restart remembers.  Read as the specification of docs/sign-in.md. */

#include "daemon/fixture/accounts_steps_test.h"

#include "daemon/batch/batch.h"
#include "daemon/batch/record.h"
#include "identity/secret.h"

static struct site s;

struct walk {
    char needle[64];
    bool found;
};

static bool
find_text(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct walk *walk = self;

    walk->found = memmem(leaf, length, walk->needle, strlen(walk->needle)) != NULL;
    return !walk->found;
}

static bool
records_say(const char *text)
{
    const struct bh_store *store = &s.f.core.store;
    struct walk walk = { .found = false };
    uint64_t last;

    snprintf(walk.needle, sizeof walk.needle, "%s", text);
    assert_int_equal(store->ops->last_record(store->self, &last, &s.f.err), BH_OK);
    assert_int_equal(store->ops->list_records(store->self, 0, last, find_text, &walk, &s.f.err), BH_OK);
    return walk.found;
}

static bool
records_have(const char *verb)
{
    char text[64];

    snprintf(text, sizeof text, "\"verb\":\"%s\"", verb);
    return records_say(text);
}

static void
an_account_begins_with_a_one_time_code(void **state)
{
    const char *code, *session;

    accounts_fixture_open_site(&s, accounts_site);
    SEND(&s, BH_POST, "/v1/accounts", .uid = 2003, .body = "{\"principal\":\"ada\"}");
    code = accounts_fixture_text_of(&s, "code");
    BH_CHECK_EQ("made", s.status, 200);
    SEND(&s, BH_PUT, "/v1/account/password",
         .body = body_of(&s,
                         "{\"account\":\"ada\",\"enrol\":\"%s\","
                         "\"password\":\"short\"}",
                         code));
    BH_CHECK_EQ("too short", s.status, 400);
    SEND(&s, BH_PUT, "/v1/account/password",
         .body = "{\"account\":\"ada\",\"enrol\":\"0\","
                 "\"password\":\"" PASSWORD "\"}");
    BH_CHECK_EQ("another code", s.status, 401);
    SEND(&s, BH_PUT, "/v1/account/password",
         .body = body_of(&s,
                         "{\"account\":\"ada\",\"enrol\":\"%s\","
                         "\"password\":\"" PASSWORD "\"}",
                         code));
    BH_CHECK_EQ("set", s.status, 200);
    SEND(&s, BH_PUT, "/v1/account/password",
         .body = body_of(&s,
                         "{\"account\":\"ada\",\"enrol\":\"%s\","
                         "\"password\":\"" PASSWORD "\"}",
                         code));
    BH_CHECK_EQ("once", s.status, 401);
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, NULL);
    BH_CHECK_EQ("in", s.status, 201);
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("not before there is a second factor", s.status, 403);
    BH_CHECK("says what to do", strstr(s.text, "bulkhead account totp"));
    SEND(&s, BH_GET, "/v1/account", .bearer = session);
    BH_CHECK_EQ("but one's own account", s.status, 200);
    BH_CHECK("recorded", records_have("account.enrol") && records_have("account.password")
                             && records_have("session.open") && records_have("sign_in.refused"));
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static bool
find_plain_text(void *self, const struct bh_document_row *row)
{
    struct walk *walk = self;

    walk->found = walk->found || strstr(row->value, walk->needle);
    return true;
}

/* Who has the store's file has not what signs in. */
static void
accounts_and_sessions_are_sealed_in_the_store(void **state)
{
    static const char *const words[] = { "argon2", "totp", "secret", "level" };

    const char *app;

    accounts_fixture_open_site(&s, accounts_site);
    app = enrol_with_app(&s, "ada");
    accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, app, clock_ns));
    BH_CHECK_EQ("in", s.status, 201);
    for (size_t i = 0; i < BH_COUNT(words); i++)
        for (int kind = BH_DOCUMENT_ACCOUNT; kind <= BH_DOCUMENT_SESSION; kind++) {
            const struct bh_store *store = &s.f.core.store;
            struct walk walk = { .found = false };

            snprintf(walk.needle, sizeof walk.needle, "%s", words[i]);
            assert_int_equal(store->ops->list_documents(
                                 store->self, &(struct bh_document_filter){ (enum bh_document_kind)kind, 0 },
                                 find_plain_text, &walk, &s.f.err),
                             BH_OK);
            BH_CHECK(words[i], !walk.found);
        }
    accounts_fixture_restart(&s);
    SEND(&s, BH_GET, "/v1/sign-in");
    BH_CHECK_EQ("opens again", s.status, 200);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
a_second_factor_opens_what_the_role_allows(void **state)
{
    const char *secret, *session;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    accounts_steps_sign_in(&s, "ada", PASSWORD, NULL);
    BH_CHECK_EQ("no code", s.status, 401);
    accounts_steps_sign_in(&s, "ada", PASSWORD, "000000");
    BH_CHECK_EQ("wrong code", s.status, 401);
    accounts_steps_sign_in(&s, "ada", "another password", code_of(&s, secret, clock_ns));
    BH_CHECK_EQ("wrong password", s.status, 401);
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    BH_CHECK_EQ("in", s.status, 201);
    BH_CHECK_STR("by a code", accounts_fixture_text_of(&s, "level"), "code");
    accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    BH_CHECK_EQ("no code twice", s.status, 401);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_STR("who", accounts_fixture_text_of(&s, "name"), "ada");
    BH_CHECK_STR("how", accounts_fixture_text_of(&s, "via"), "session");
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("reads what admins read", s.status, 200);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* A failed sign-in has one answer, whether the name, the password or the code is wrong, or there is no such
 * account. */
static void
one_answer_for_every_way_to_fail(void **state)
{
    static const char *const bodies[] = {
        "{\"account\":\"ada\",\"password\":\"wrong wrong wrong\"}",
        "{\"account\":\"nobody\",\"password\":\"wrong wrong wrong\"}",
        "{\"account\":\"carol\",\"password\":\"wrong wrong wrong\"}", /* has no account */
        "{\"account\":\"ADA \",\"password\":\"" PASSWORD "\"}",       /* no code */
        "{\"account\":\"\\u0000\"}",
        "{\"password\":\"x\"}",
        "{}",
    };
    const char *first = NULL;

    accounts_fixture_open_site(&s, accounts_site);
    enrol_with_app(&s, "ada");
    for (size_t i = 0; i < BH_COUNT(bodies); i++) {
        SEND(&s, BH_POST, "/v1/sign-in", .body = bodies[i], .address = body_of(&s, "192.0.2.%zu", i));
        if (s.status == 400) /* no JSON of the API's */
            continue;
        BH_CHECK_EQ(bodies[i], s.status, 401);
        if (!first)
            first = bh_arena_strdup(s.f.arena, s.text);
        BH_CHECK_STR(bodies[i], s.text, first);
    }
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

struct refused_sum {
    uint64_t records, attempts;
    bool allowed;
};

static bool
add_refused(void *self, uint64_t seq, const char *leaf, size_t length)
{
    static char scratch[BH_RECORD_BYTES_MAX + 64];
    struct refused_sum *sum = self;
    struct bh_record record;

    assert_int_equal(bh_record_decode(leaf, length, scratch, &record, &s.f.err), BH_OK);
    if (strcmp(record.verb, "sign_in.refused") != 0)
        return true;
    sum->records++;
    sum->attempts += record.count ? record.count : 1;
    sum->allowed = sum->allowed || record.dec.allow;
    return true;
}

/* 13 failures left 6 records, which read "allow yes". */
static void
each_failure_is_in_the_log_alone_or_counted(void **state)
{
    const struct bh_store *store = &s.f.core.store;
    struct refused_sum sum = { 0 };

    accounts_fixture_open_site(&s, accounts_site);
    accounts_steps_enrol(&s, "ada");
    for (int i = 0; i < 13; i++) { /* the sixth and later have to wait */
        accounts_steps_sign_in(&s, "ada", "wrong wrong wrong", NULL);
        BH_CHECK_EQ("refused", s.status, 401);
    }
    assert_int_equal(bh_core_record_refusals(&s.f.core, true, &s.f.err), BH_OK);
    assert_int_equal(bh_core_commit(&s.f.core, &s.f.err), BH_OK);
    assert_int_equal(store->ops->list_records(store->self, 0, INT64_MAX, add_refused, &sum, &s.f.err), BH_OK);
    BH_CHECK_EQ("all of them", sum.attempts, 13);
    BH_CHECK_EQ("the first, and one for the others", sum.records, 2);
    BH_CHECK("none is allowed", !sum.allowed);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
attempts_are_counted_over_restarts_and_names(void **state)
{
    static const char *const names[] = { "ada", "Ada", " ada", "ADA", "ada " };
    const char *secret, *device;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    device = accounts_fixture_text_of(&s, "device");
    clock_ns += 60 * BH_NS_PER_S;
    for (size_t i = 0; i < BH_COUNT(names); i++) {
        if (i == 3)
            accounts_fixture_restart(&s);
        accounts_steps_sign_in(&s, names[i], "wrong wrong wrong", NULL);
        BH_CHECK_EQ(names[i], s.status, 401);
        BH_CHECK(names[i], strstr(s.text, "is wrong"));
    }
    accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    BH_CHECK_EQ("locked", s.status, 401);
    BH_CHECK("says so", strstr(s.text, "too many attempts"));
    accounts_fixture_restart(&s);
    accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    BH_CHECK("after a restart, too", strstr(s.text, "too many attempts"));
    SEND(&s, BH_POST, "/v1/sign-in", .address = "198.51.100.7",
         .body = body_of(
             &s, "{\"account\":\"ada\",\"code\":\"%s\",\"device\":\"%s\",\"password\":\"" PASSWORD "\"}",
             code_of(&s, secret, clock_ns), device));
    BH_CHECK_EQ("the way back: a device that signed in before", s.status, 201);
    SEND(&s, BH_POST, "/v1/sign-in",
         .body = body_of(&s, "{\"account\":\"bob\",\"device\":\"%s\",\"password\":\"x\"}", device));
    BH_CHECK("and of that account alone", s.status == 401);
    clock_ns += 901 * BH_NS_PER_S;
    accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    BH_CHECK_EQ("a quarter of an hour later", s.status, 201);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
sessions_end(void **state)
{
    const char *secret, *one, *two, *id;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    one = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    id = accounts_fixture_text_of(&s, "id");
    clock_ns += 30 * BH_NS_PER_S;
    two = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_GET, "/v1/sessions", .bearer = two);
    BH_CHECK("both are listed", strstr(s.text, id));
    SEND(&s, BH_DELETE, body_of(&s, "/v1/sessions/%s", id), .bearer = two);
    BH_CHECK_EQ("ended", s.status, 200);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = one);
    BH_CHECK_EQ("at once", s.status, 401);
    accounts_fixture_restart(&s);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = two);
    BH_CHECK_EQ("a restart ends none", s.status, 200);
    clock_ns += 1790 * BH_NS_PER_S;
    SEND(&s, BH_GET, "/v1/whoami", .bearer = two);
    BH_CHECK_EQ("used within half an hour", s.status, 200);
    clock_ns += 1790 * BH_NS_PER_S;
    bh_accounts_maintain(s.accounts);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = two);
    BH_CHECK_EQ("and again", s.status, 200);
    clock_ns += 1801 * BH_NS_PER_S;
    SEND(&s, BH_GET, "/v1/whoami", .bearer = two);
    BH_CHECK_EQ("idle", s.status, 401);
    bh_accounts_maintain(s.accounts);
    BH_CHECK("swept", records_have("session.over"));
    two = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    for (int i = 0; i < 25; i++) {
        clock_ns += 1740 * BH_NS_PER_S;
        SEND(&s, BH_GET, "/v1/whoami", .bearer = two);
    }
    BH_CHECK_EQ("twelve hours are over", s.status, 401);
    two = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_POST, "/v1/sign-out", .bearer = two);
    BH_CHECK_EQ("out", s.status, 200);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = two);
    BH_CHECK_EQ("out", s.status, 401);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* A verb of tables/step_up.tbl needs a factor that was shown in the last five minutes: RFC 9470's answer says
 * what and how lately. */
static void
verbs_ask_again(void **state)
{
    const char *secret, *session;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("just shown", s.status, 200);
    clock_ns += 301 * BH_NS_PER_S;
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("too long ago", s.status, 401);
    BH_CHECK("RFC 9470", strstr(s.challenge, "error=\"insufficient_user_authentication\", "
                                             "acr_values=\"code\", max_age=\"300\""));
    SEND(&s, BH_POST, "/v1/prove", .bearer = session, .body = "{\"code\":\"123456\"}");
    BH_CHECK_EQ("a wrong code", s.status, 401);
    SEND(&s, BH_POST, "/v1/prove", .bearer = session,
         .body = body_of(&s, "{\"code\":\"%s\"}", code_of(&s, secret, clock_ns)));
    BH_CHECK_EQ("shown again", s.status, 200);
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("and now", s.status, 200);
    clock_ns -= 3600 * BH_NS_PER_S;
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("a clock set back shows nothing", s.status, 401);
    clock_ns += 3600 * BH_NS_PER_S;
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static const char verifier[] = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv";

/* The command line's session by the browser's. */
static const char *
accounts_grant(const char *browsers)
{
    char challenge[BH_SECRET_TEXT];

    bh_secret_challenge(verifier, challenge);
    SEND(&s, BH_POST, "/v1/sign-in/grant", .bearer = browsers,
         .body = body_of(&s, "{\"challenge\":\"%s\",\"host\":\"laptop\"}", challenge));
    assert_int_equal(s.status, 200);
    SEND(&s, BH_POST, "/v1/sign-in/code",
         .body = body_of(&s, "{\"code\":\"%s\",\"verifier\":\"%s\"}", accounts_fixture_text_of(&s, "code"),
                         verifier));
    assert_int_equal(s.status, 201);
    return accounts_fixture_text_of(&s, "session");
}

/* A session that lets a command line in gives it no more time or rights than it has itself: else its holder
 * could step up, and stay, for ever. */
static void
a_granted_session_is_no_more_than_its_browsers(void **state)
{
    const char *secret, *session, *ends;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    ends = accounts_fixture_text_of(&s, "expires_ns");
    clock_ns += 301 * BH_NS_PER_S;
    session = accounts_grant(session);
    BH_CHECK_STR("ends with it", accounts_fixture_text_of(&s, "expires_ns"), ends);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_STR("the same person", accounts_fixture_text_of(&s, "name"), "ada");
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("who showed a code as long ago", s.status, 401);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* The same, with the certificate (0: none) of who comes with the code. */
static uint32_t
exchange_as(const char *browsers, uint8_t browser_shows, uint8_t shows)
{
    char challenge[BH_SECRET_TEXT];

    bh_secret_challenge(verifier, challenge);
    SEND(&s, BH_POST, "/v1/sign-in/grant", .bearer = browsers, .certificate = browser_shows,
         .body = body_of(&s, "{\"challenge\":\"%s\",\"host\":\"laptop\"}", challenge));
    assert_int_equal(s.status, 200);
    SEND(&s, BH_POST, "/v1/sign-in/code", .certificate = shows,
         .body = body_of(&s, "{\"code\":\"%s\",\"verifier\":\"%s\"}", accounts_fixture_text_of(&s, "code"),
                         verifier));
    return s.status;
}

static uint32_t
accounts_use(const char *session, uint8_t shows)
{
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session, .certificate = shows);
    return s.status;
}

static void
a_bound_session_wants_its_certificate(void **state)
{
    static const char print[] = "0707070707070707070707070707070707070707070707070707070707070707";
    const char *secret, *session, *plain;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    plain = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    clock_ns += 30 * BH_NS_PER_S;
    SEND(&s, BH_POST, "/v1/sign-in", .certificate = 7,
         .body = body_of(&s, "{\"account\":\"ada\",\"code\":\"%s\",\"password\":\"" PASSWORD "\"}",
                         code_of(&s, secret, clock_ns)));
    session = accounts_fixture_text_of(&s, "session");
    BH_CHECK_EQ("with it", accounts_use(session, 7), 200);
    BH_CHECK_EQ("with another", accounts_use(session, 8), 401);
    BH_CHECK("as one that is over", strstr(s.text, "the session has ended"));
    BH_CHECK_EQ("without", accounts_use(session, 0), 401);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session, .uid = 2003);
    BH_CHECK_EQ("on the socket", s.status, 401);
    SEND(&s, BH_GET, "/v1/sessions", .bearer = session, .certificate = 7);
    BH_CHECK("listed with it", strstr(s.text, print) && strstr(s.text, "\"certificate\":\"\""));
    BH_CHECK_EQ("shown beside one that is not bound", accounts_use(plain, 7), 200);
    BH_CHECK_EQ("which does not bind it", accounts_use(plain, 0), 200);
    accounts_fixture_restart(&s);
    BH_CHECK_EQ("bound after a restart", accounts_use(session, 0), 401);
    BH_CHECK_EQ("and known", accounts_use(session, 7), 200);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
a_granted_session_has_the_certificate_it_came_with(void **state)
{
    const char *secret, *bound, *granted;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    SEND(&s, BH_POST, "/v1/sign-in", .certificate = 7,
         .body = body_of(&s, "{\"account\":\"ada\",\"code\":\"%s\",\"password\":\"" PASSWORD "\"}",
                         code_of(&s, secret, clock_ns)));
    bound = accounts_fixture_text_of(&s, "session");
    BH_CHECK_EQ("bound lets in none that is not", exchange_as(bound, 7, 0), 401);
    BH_CHECK_EQ("with another", exchange_as(bound, 7, 8), 201);
    granted = accounts_fixture_text_of(&s, "session");
    BH_CHECK_EQ("good with the other", accounts_use(granted, 8), 200);
    BH_CHECK_EQ("not with the browser's", accounts_use(granted, 7), 401);
    BH_CHECK_EQ("from a bound one again", exchange_as(granted, 8, 8), 201);
    clock_ns += 30 * BH_NS_PER_S;
    bound = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    BH_CHECK_EQ("from one that is not", exchange_as(bound, 0, 8), 201);
    granted = accounts_fixture_text_of(&s, "session");
    BH_CHECK_EQ("is bound", accounts_use(granted, 0), 401);
    BH_CHECK_EQ("to what it came with", accounts_use(granted, 8), 200);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
tokens_name_what_asks_for_a_person(void **state)
{
    static const char all[] = "{\"note\":\"ci\"}", one[] = "{\"scopes\":\"account.any\"}";
    const char *secret, *session, *token;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_POST, "/v1/tokens", .bearer = session, .body = all);
    token = accounts_fixture_text_of(&s, "token");
    SEND(&s, BH_GET, "/v1/accounts", .bearer = token);
    BH_CHECK_EQ("a token of all", s.status, 401);
    SEND(&s, BH_POST, "/v1/tokens", .bearer = session, .body = one);
    BH_CHECK_EQ("made by somebody who is there", s.status, 201);
    token = accounts_fixture_text_of(&s, "token");
    SEND(&s, BH_GET, "/v1/accounts", .bearer = token);
    BH_CHECK_EQ("it names the verb", s.status, 200);
    clock_ns += 301 * BH_NS_PER_S;
    SEND(&s, BH_POST, "/v1/tokens", .bearer = session, .body = one);
    BH_CHECK_EQ("some time after", s.status, 401);
    SEND(&s, BH_POST, "/v1/tokens", .bearer = session, .body = all);
    BH_CHECK_EQ("but others", s.status, 201);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* Written down now and then, and never over a token that was revoked meanwhile. */
static void
tokens_say_when_they_were_used(void **state)
{
    const char *token, *other;

    accounts_fixture_open_site(&s, accounts_site);
    SEND(&s, BH_POST, "/v1/tokens", .uid = 2003);
    token = accounts_fixture_text_of(&s, "token");
    SEND(&s, BH_POST, "/v1/tokens", .uid = 2003);
    other = accounts_fixture_text_of(&s, "token");
    SEND(&s, BH_GET, "/v1/tokens", .uid = 2003);
    BH_CHECK("not yet", !strstr(s.text, "\"last_used_ns\":\"1"));
    SEND(&s, BH_GET, "/v1/whoami", .bearer = token);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = other);
    SEND(&s, BH_DELETE, body_of(&s, "/v1/tokens/%.12s", other + 3), .uid = 2003);
    bh_accounts_maintain(s.accounts);
    SEND(&s, BH_GET, "/v1/tokens", .uid = 2003);
    BH_CHECK("when", strstr(s.text, body_of(&s, "\"last_used_ns\":\"%llu\"", (unsigned long long)clock_ns)));
    SEND(&s, BH_GET, "/v1/whoami", .bearer = other);
    BH_CHECK_EQ("revoked stays revoked", s.status, 401);
    BH_CHECK("recorded", records_have("use.note"));
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
recovery_codes_are_good_once(void **state)
{
    const char *session, *secret, *code;
    bh_json_value codes;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_POST, "/v1/account/recovery", .bearer = session);
    codes = bh_json_get(bh_json_root(s.json), "recovery");
    BH_CHECK_EQ("ten", bh_json_count(codes), 10);
    code = bh_arena_strdup(s.f.arena, bh_json_text(bh_json_at(codes, 3), ""));
    accounts_steps_sign_in(&s, "ada", PASSWORD, code);
    BH_CHECK_EQ("instead of the app's", s.status, 201);
    accounts_steps_sign_in(&s, "ada", PASSWORD, code);
    BH_CHECK_EQ("once", s.status, 401);
    SEND(&s, BH_GET, "/v1/account", .bearer = session);
    BH_CHECK("nine are left", strstr(s.text, "\"recovery_left\":9"));
    SEND(&s, BH_DELETE, "/v1/account/totp", .bearer = session);
    BH_CHECK_EQ("the only factor stays", s.status, 409);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
a_password_alone_sets_no_other(void **state)
{
    static const char change[] = "{\"account\":\"ada\",\"old\":\"" PASSWORD "\","
                                 "\"password\":\"quite another one\"}";
    const char *secret, *session;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    SEND(&s, BH_PUT, "/v1/account/password", .body = change);
    BH_CHECK_EQ("without the second factor", s.status, 401);
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_PUT, "/v1/account/password", .bearer = session, .body = change);
    BH_CHECK_EQ("signed in with it", s.status, 200);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_EQ("which ends all sessions", s.status, 401);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
an_admin_resets_and_others_do_not(void **state)
{
    const char *secret, *bobs, *adas;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "bob");
    bobs = accounts_steps_sign_in(&s, "bob", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_DELETE, "/v1/accounts/ada", .bearer = bobs);
    BH_CHECK_EQ("not bob", s.status, 403);
    secret = enrol_with_app(&s, "ada");
    adas = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_DELETE, body_of(&s, "/v1/sessions/%s", accounts_fixture_text_of(&s, "id")), .bearer = bobs);
    BH_CHECK_EQ("nor another's session", s.status, 404);
    SEND(&s, BH_DELETE, "/v1/accounts/bob", .bearer = adas);
    BH_CHECK_EQ("an admin", s.status, 200);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = bobs);
    BH_CHECK_EQ("his sessions are over", s.status, 401);
    accounts_steps_sign_in(&s, "bob", PASSWORD, NULL);
    BH_CHECK_EQ("and his password is gone", s.status, 401);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
break_glass_lasts_an_hour(void **state)
{
    static const char reason[] = "{\"reason\":\"the cluster is on fire\"}";
    const char *secret, *session;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_POST, "/v1/break-glass", .bearer = session, .body = reason);
    BH_CHECK_EQ("not for everybody", s.status, 403);
    secret = enrol_with_app(&s, "bob");
    session = accounts_steps_sign_in(&s, "bob", PASSWORD, code_of(&s, secret, clock_ns));
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("a developer", s.status, 403);
    SEND(&s, BH_POST, "/v1/break-glass", .bearer = session, .body = "{\"reason\":\"\"}");
    BH_CHECK_EQ("with a reason", s.status, 400);
    SEND(&s, BH_POST, "/v1/break-glass", .bearer = session, .body = reason);
    BH_CHECK_EQ("broken", s.status, 200);
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("an admin", s.status, 200);
    clock_ns += 1700 * BH_NS_PER_S;
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    clock_ns += 1700 * BH_NS_PER_S;
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("within the hour", s.status, 200);
    clock_ns += 201 * BH_NS_PER_S;
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("after it", s.status, 403);
    BH_CHECK("recorded", records_have("glass.break"));
    BH_CHECK("with the reason, sealed", !records_say("on fire") && records_say("\"sealed\":["));
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* Wrong passwords for the account and from its address do not delay a break-glass sign-in. */
static void
guesses_delay_no_break_glass(void **state)
{
    const char *secret, *session;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "bob");
    session = accounts_steps_sign_in(&s, "bob", PASSWORD, code_of(&s, secret, clock_ns));
    for (size_t i = 0; i < 40; i++)
        accounts_steps_sign_in(&s, i % 2 ? "bob" : body_of(&s, "user%zu", i), "wrong wrong wrong", NULL);
    BH_CHECK("the name and the address are locked", strstr(s.text, "too many attempts"));
    SEND(&s, BH_POST, "/v1/break-glass", .bearer = session,
         .body = "{\"reason\":\"the cluster is on fire\"}");
    BH_CHECK_EQ("broken", s.status, 200);
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("an admin", s.status, 200);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static void
the_first_admin_comes_with_a_code_from_a_file(void **state)
{
    char path[128], code[64] = "";
    const char *session;
    struct bh_buf text;

    accounts_fixture_open_site(&s, NULL);
    snprintf(path, sizeof path, "%s/first-admin.code", s.f.folder);
    bh_buf_init_fixed(&text, code, sizeof code);
    assert_int_equal(bh_file_read(path, 60, &text, &s.f.err), BH_OK);
    code[32] = '\0';
    accounts_fixture_restart(&s); /* which wants no room on a full disk */
    SEND(&s, BH_POST, "/v1/sign-in/first",
         .body = "{\"account\":\"eve\",\"code\":\"0\","
                 "\"password\":\"" PASSWORD "\"}");
    BH_CHECK_EQ("a guess", s.status, 401);
    SEND(&s, BH_POST, "/v1/sign-in/first",
         .body = body_of(&s,
                         "{\"account\":\"ada\",\"code\":\"%s\","
                         "\"password\":\"short\"}",
                         code));
    BH_CHECK_EQ("a bad password", s.status, 400);
    SEND(&s, BH_POST, "/v1/sign-in/first",
         .body = body_of(&s,
                         "{\"account\":\"ada\",\"code\":\"%s\","
                         "\"password\":\"" PASSWORD "\"}",
                         code));
    BH_CHECK_EQ("in", s.status, 201);
    session = accounts_fixture_text_of(&s, "session");
    SEND(&s, BH_POST, "/v1/account/totp", .bearer = session);
    BH_CHECK_EQ("goes on to a second factor", s.status, 200);
    BH_CHECK("the file is gone", access(path, F_OK) != 0);
    SEND(&s, BH_POST, "/v1/sign-in/first",
         .body = body_of(&s,
                         "{\"account\":\"eve\",\"code\":\"%s\","
                         "\"password\":\"" PASSWORD "\"}",
                         code));
    BH_CHECK_EQ("once", s.status, 401);
    accounts_fixture_restart(&s);
    BH_CHECK("and no other after a restart", access(path, F_OK) != 0);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

/* When the site file no longer names a user, all that the user has ends. */
static void
a_removed_user_loses_the_account(void **state)
{
    static const char without_ada[] = "principals: [{name: carol, uid: 2003}]\n"
                                      "bindings: [{role: admin, principal: carol, tenant: '*'}]\n";
    const char *secret, *session;

    accounts_fixture_open_site(&s, accounts_site);
    secret = enrol_with_app(&s, "ada");
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns));
    BH_CHECK_EQ("not by mistake", fixture_apply(&s.f, without_ada), BH_CONFLICT);
    BH_CHECK_STR("he has an account", s.f.err.msg,
                 "1 name would be removed that has "
                 "something: principals[ada]: 1 account, 2 sessions");
    s.f.prune = true;
    assert_int_equal(fixture_apply(&s.f, without_ada), BH_OK);
    SEND(&s, BH_GET, "/v1/whoami", .bearer = session);
    BH_CHECK_EQ("out at once", s.status, 401);
    assert_int_equal(fixture_apply(&s.f, accounts_site), BH_OK);
    accounts_steps_sign_in(&s, "ada", PASSWORD, code_of(&s, secret, clock_ns + 30 * BH_NS_PER_S));
    BH_CHECK_EQ("and does not find it again", s.status, 401);
    BH_CHECK("recorded", records_have("account.forget"));
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_account_begins_with_a_one_time_code),
    cmocka_unit_test(accounts_and_sessions_are_sealed_in_the_store),
    cmocka_unit_test(a_second_factor_opens_what_the_role_allows),
    cmocka_unit_test(one_answer_for_every_way_to_fail),
    cmocka_unit_test(each_failure_is_in_the_log_alone_or_counted),
    cmocka_unit_test(attempts_are_counted_over_restarts_and_names),
    cmocka_unit_test(sessions_end),
    cmocka_unit_test(verbs_ask_again),
    cmocka_unit_test(a_granted_session_is_no_more_than_its_browsers),
    cmocka_unit_test(tokens_name_what_asks_for_a_person),
    cmocka_unit_test(tokens_say_when_they_were_used),
    cmocka_unit_test(a_bound_session_wants_its_certificate),
    cmocka_unit_test(a_granted_session_has_the_certificate_it_came_with),
    cmocka_unit_test(recovery_codes_are_good_once),
    cmocka_unit_test(a_password_alone_sets_no_other),
    cmocka_unit_test(an_admin_resets_and_others_do_not),
    cmocka_unit_test(break_glass_lasts_an_hour),
    cmocka_unit_test(guesses_delay_no_break_glass),
    cmocka_unit_test(the_first_admin_comes_with_a_code_from_a_file),
    cmocka_unit_test(a_removed_user_loses_the_account),
};
BH_TEST_MAIN(tests)
