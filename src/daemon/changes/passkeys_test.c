/* Passkeys on a core, with an authenticator in software: kept, shown, removed. */

#include "base/base64.h"
#include "daemon/fixture/accounts_steps_test.h"
#include "identity/authenticator_test.h"

static struct site s;
static struct bh_test_response response;

static const char passkey_site[] =
    "tenants:\n"
    "  - {name: acme}\n"
    "skus:\n"
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"
    "principals:\n"
    "  - {name: ada, account: true}\n"
    "  - {name: bob, account: true}\n"
    "  - {name: carol, uid: 2003}\n"
    "bindings:\n"
    "  - {role: admin, principal: ada, tenant: '*'}\n"
    "  - {role: admin, principal: carol, tenant: '*'}\n"
    "sign_in: {address: 'https://gpu.example'}\n";

/* ---- a browser: asks for options, has the device answer, sends what it says ---- */

struct asked {
    const char *id, *challenge;
    struct bh_webauthn_user user; /* of a creation */
};

static struct asked
passkeys_ask(const char *path, const char *session)
{
    struct asked asked = { 0 };
    bh_json_value options;
    struct bh_buf handle;

    SEND(&s, BH_POST, path, .bearer = session);
    if (s.status != 200)
        return asked;
    options = bh_json_get(bh_json_root(s.json), "options");
    asked.id = accounts_fixture_text_of(&s, "challenge");
    asked.challenge = bh_arena_strdup(s.f.arena, bh_json_text(bh_json_get(options, "challenge"), ""));
    bh_buf_init_fixed(&handle, asked.user.handle, sizeof asked.user.handle);
    options = bh_json_get(bh_json_get(options, "user"), "id");
    if (options && bh_base64url_decode(&handle, bh_json_text(options, ""), strlen(bh_json_text(options, ""))))
        asked.user.handle_bytes = (uint32_t)handle.length;
    return asked;
}

/* The device's answer as the API takes it; `more` are members in front: "\"a\":1," or "". */
static const char *
answer_to(const struct asked *asked, const char *more)
{
    char memory[16384];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_buf_printf(&out, "{%s\"challenge\":\"%s\",", more, asked->id);
    bh_test_response_put_json(&response, &out);
    assert_non_null(bh_buf_text(&out));
    *strchr(memory + 1, '{') = ' ';
    return bh_arena_strdup(s.f.arena, memory);
}

static struct bh_webauthn_user
passkeys_add(const char *session, struct bh_test_authenticator *device)
{
    struct asked asked = passkeys_ask("/v1/account/passkeys/challenge", session);

    assert_int_equal(s.status, 200);
    bh_test_create(device, asked.challenge, &response);
    SEND(&s, BH_POST, "/v1/account/passkeys", .bearer = session,
         .body = answer_to(&asked, "\"name\":\"key ring\","));
    return asked.user;
}

/* Sign in with the device; the session's secret, or "". */
static const char *
passkeys_enter(struct bh_test_authenticator *device, const struct bh_webauthn_user *user)
{
    struct asked asked = passkeys_ask("/v1/sign-in/challenge", NULL);

    assert_int_equal(s.status, 200);
    bh_test_get(device, asked.challenge, user, &response);
    SEND(&s, BH_POST, "/v1/sign-in", .body = answer_to(&asked, ""));
    return s.status == 201 ? accounts_fixture_text_of(&s, "session") : "";
}

static uint32_t
count_passkeys(const char *session)
{
    SEND(&s, BH_GET, "/v1/account", .bearer = session);
    return (uint32_t)bh_json_count(bh_json_get(bh_json_root(s.json), "passkeys"));
}

/* ---- the tests ---- */

/* A site where ada has a password and a passkey; her session. */
static const char *
open_with(struct bh_test_authenticator *device, enum bh_passkey_alg alg, struct bh_webauthn_user *ret_user)
{
    const char *session;

    accounts_fixture_open_site(&s, passkey_site);
    accounts_steps_enrol(&s, "ada");
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, NULL);
    bh_test_authenticator_init(device, alg);
    *ret_user = passkeys_add(session, device);
    assert_int_equal(s.status, 201);
    return session;
}

static void
close_with(struct bh_test_authenticator *device)
{
    bh_test_authenticator_fini(device);
    accounts_fixture_close_site(&s);
}

static void
a_passkey_is_two_factors_by_itself(void **state)
{
    struct bh_test_authenticator device;
    struct bh_webauthn_user user;
    const char *session;

    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS; alg++) {
        const char *name = bh_passkey_alg_name(alg);

        session = open_with(&device, alg, &user);
        BH_CHECK_EQ(name, bh_json_count(bh_json_get(bh_json_root(s.json), "recovery")), 10);
        BH_CHECK_EQ(name, count_passkeys(session), 1);
        SEND(&s, BH_GET, "/v1/site", .bearer = session);
        BH_CHECK_EQ("who made it has shown it", s.status, 200);
        session = passkeys_enter(&device, &user);
        BH_CHECK_EQ(name, s.status, 201);
        BH_CHECK_STR(name, accounts_fixture_text_of(&s, "level"), "passkey");
        BH_CHECK_STR(name, accounts_fixture_text_of(&s, "name"), "ada");
        SEND(&s, BH_GET, "/v1/site", .bearer = session);
        BH_CHECK_EQ("a passkey alone", s.status, 200);
        accounts_fixture_restart(&s);
        passkeys_enter(&device, &user);
        BH_CHECK_EQ("after a restart", s.status, 201);
        accounts_steps_sign_in(&s, "ada", PASSWORD, NULL);
        BH_CHECK_EQ("now there is a second factor to show", s.status, 401);
        close_with(&device);
    }
    BH_CHECK_DONE();
}

/* Whatever is wrong, the answer is one. */
static void
one_answer_for_every_wrong_passkey(void **state)
{
    static const struct row {
        const char *name, *site, *origin;
        uint32_t wait_s;
        uint8_t flags;
        bool other_user, back;
        uint32_t status;
    } rows[] = {
        { .name = "as it should be", .status = 201 },
        { .name = "the last moment", .wait_s = 300, .status = 201 },
        { .name = "too late", .wait_s = 301, .status = 401 },
        { .name = "another origin", .origin = "https://gpu.example.evil", .status = 401 },
        { .name = "another site", .site = "evil.example", .status = 401 },
        { .name = "not verified", .flags = BH_PASSKEY_PRESENT, .status = 401 },
        { .name = "another's handle", .other_user = true, .status = 401 },
        { .name = "a counter that stands still", .back = true, .status = 401 },
    };
    struct bh_test_authenticator device;
    struct bh_webauthn_user user, other;

    open_with(&device, BH_PASSKEY_EDDSA, &user);
    other = user;
    other.handle[0] ^= 1;
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        struct bh_test_authenticator changed = device;
        struct asked asked = passkeys_ask("/v1/sign-in/challenge", NULL);
        const char *body;

        changed.site = row->site ? row->site : device.site;
        changed.origin = row->origin ? row->origin : device.origin;
        changed.flags = row->flags ? row->flags : device.flags;
        changed.counter = row->back ? 7 : device.counter; /* as it was registered with */
        bh_test_get(&changed, asked.challenge, row->other_user ? &other : &user, &response);
        body = answer_to(&asked, "");
        clock_ns += row->wait_s * BH_NS_PER_S;
        SEND(&s, BH_POST, "/v1/sign-in", .body = body, .address = body_of(&s, "192.0.2.%zu", i));
        BH_CHECK_EQ(row->name, s.status, row->status);
        SEND(&s, BH_POST, "/v1/sign-in", .body = body, .address = body_of(&s, "198.51.100.%zu", i));
        BH_CHECK_EQ("sent again", s.status, 401);
        if (!row->back)
            device.counter = changed.counter;
    }
    SEND(&s, BH_POST, "/v1/sign-in",
         .body = "{\"credential\":\"AAAA\",\"challenge\":\"00\",\"signature\":\"AA\"}");
    BH_CHECK_EQ("nothing of ours", s.status, 401);
    close_with(&device);
    BH_CHECK_DONE();
}

static void
adding_asks_who_it_is(void **state)
{
    struct bh_test_authenticator device, twin;
    struct bh_webauthn_user user;
    struct asked asked;
    const char *session = open_with(&device, BH_PASSKEY_ES256, &user), *bobs;

    passkeys_add(session, &device);
    BH_CHECK_EQ("the same again", s.status, 409);
    accounts_steps_enrol(&s, "bob");
    bobs = accounts_steps_sign_in(&s, "bob", PASSWORD, NULL);
    passkeys_add(bobs, &device);
    BH_CHECK_EQ("the same for somebody else", s.status, 409);
    bh_test_authenticator_init(&twin, BH_PASSKEY_ES256);
    twin.id[0]++;
    asked = passkeys_ask("/v1/account/passkeys/challenge", session);
    bh_test_create(&twin, asked.challenge, &response);
    SEND(&s, BH_POST, "/v1/account/passkeys", .bearer = bobs, .body = answer_to(&asked, ""));
    BH_CHECK_EQ("somebody else's challenge", s.status, 504);
    SEND(&s, BH_POST, "/v1/account/passkeys", .bearer = session, .body = answer_to(&asked, ""));
    BH_CHECK_EQ("one's own", s.status, 201);
    SEND(&s, BH_POST, "/v1/account/passkeys", .bearer = session, .body = answer_to(&asked, ""));
    BH_CHECK_EQ("once", s.status, 504);
    clock_ns += 601 * BH_NS_PER_S;
    passkeys_ask("/v1/account/passkeys/challenge", session);
    BH_CHECK_EQ("after ten minutes", s.status, 401);
    BH_CHECK("asked again", strstr(s.challenge, "insufficient_user_authentication"));
    SEND(&s, BH_POST, "/v1/account/passkeys/challenge");
    BH_CHECK_EQ("nobody", s.status, 401);
    bh_test_authenticator_fini(&twin);
    close_with(&device);
    BH_CHECK_DONE();
}

static void
the_last_factor_stays(void **state)
{
    struct bh_test_authenticator device, second;
    struct bh_webauthn_user user;
    const char *session = open_with(&device, BH_PASSKEY_EDDSA, &user), *path, *bobs;

    path = body_of(&s, "/v1/account/passkeys/%s", accounts_fixture_text_of(&s, "id"));
    SEND(&s, BH_DELETE, path, .bearer = session);
    BH_CHECK_EQ("the only one", s.status, 409);
    accounts_steps_enrol(&s, "bob");
    bobs = accounts_steps_sign_in(&s, "bob", PASSWORD, NULL);
    SEND(&s, BH_DELETE, path, .bearer = bobs);
    BH_CHECK_EQ("somebody else's", s.status, 404);
    bh_test_authenticator_init(&second, BH_PASSKEY_EDDSA);
    second.id[0]++;
    passkeys_add(session, &second);
    BH_CHECK("no new recovery codes", !bh_json_get(bh_json_root(s.json), "recovery"));
    SEND(&s, BH_DELETE, path, .bearer = session);
    BH_CHECK_EQ("one of two", s.status, 200);
    passkeys_enter(&device, &user);
    BH_CHECK_EQ("does not sign in any more", s.status, 401);
    passkeys_enter(&second, &user);
    BH_CHECK_EQ("the other does", s.status, 201);
    BH_CHECK_EQ("one is left", count_passkeys(session), 1);
    bh_test_authenticator_fini(&second);
    close_with(&device);
    BH_CHECK_DONE();
}

static void
a_passkey_shows_again_who_it_is(void **state)
{
    struct bh_test_authenticator device, other;
    struct bh_webauthn_user user, bobs_user;
    const char *session = open_with(&device, BH_PASSKEY_EDDSA, &user), *bobs;
    struct asked asked;

    accounts_steps_enrol(&s, "bob");
    bobs = accounts_steps_sign_in(&s, "bob", PASSWORD, NULL);
    bh_test_authenticator_init(&other, BH_PASSKEY_EDDSA);
    other.id[0]++;
    bobs_user = passkeys_add(bobs, &other);
    session = passkeys_enter(&device, &user);
    clock_ns += 700 * BH_NS_PER_S;
    passkeys_ask("/v1/account/passkeys/challenge", session);
    BH_CHECK_EQ("long ago", s.status, 401);
    asked = passkeys_ask("/v1/sign-in/challenge", NULL);
    bh_test_get(&other, asked.challenge, &bobs_user, &response);
    SEND(&s, BH_POST, "/v1/prove", .bearer = session, .body = answer_to(&asked, ""));
    BH_CHECK_EQ("somebody else's", s.status, 401);
    asked = passkeys_ask("/v1/sign-in/challenge", NULL);
    bh_test_get(&device, asked.challenge, &user, &response);
    SEND(&s, BH_POST, "/v1/prove", .bearer = session, .body = answer_to(&asked, ""));
    BH_CHECK_EQ("one's own", s.status, 200);
    BH_CHECK_STR("level", accounts_fixture_text_of(&s, "level"), "passkey");
    passkeys_ask("/v1/account/passkeys/challenge", session);
    BH_CHECK_EQ("shown", s.status, 200);
    bh_test_authenticator_fini(&other);
    close_with(&device);
    BH_CHECK_DONE();
}

/* A user without an account here signs in only through the provider. */
static void
a_passkey_alone_is_for_local_accounts(void **state)
{
    struct bh_test_authenticator device;
    struct bh_webauthn_user user;
    struct asked asked = { 0 };
    bh_json_value options;

    accounts_fixture_open_site(&s, passkey_site);
    bh_test_authenticator_init(&device, BH_PASSKEY_EDDSA);
    SEND(&s, BH_POST, "/v1/account/passkeys/challenge", .uid = 2003);
    assert_int_equal(s.status, 200);
    options = bh_json_get(bh_json_root(s.json), "options");
    asked.id = accounts_fixture_text_of(&s, "challenge");
    asked.challenge = bh_arena_strdup(s.f.arena, bh_json_text(bh_json_get(options, "challenge"), ""));
    bh_test_create(&device, asked.challenge, &response);
    SEND(&s, BH_POST, "/v1/account/passkeys", .uid = 2003, .body = answer_to(&asked, ""));
    BH_CHECK_EQ("kept", s.status, 201);
    user = (struct bh_webauthn_user){ .handle_bytes = 0 };
    passkeys_enter(&device, &user);
    BH_CHECK_EQ("but no way in", s.status, 401);
    close_with(&device);
    BH_CHECK_DONE();
}

/* A signature cannot be guessed: wrong passkeys lock out no user, not even one from the same place. */
static void
failed_attempts_lock_no_other_user_out(void **state)
{
    struct bh_test_authenticator device, thief;
    struct bh_webauthn_user user;

    open_with(&device, BH_PASSKEY_EDDSA, &user);
    bh_test_authenticator_init(&thief, BH_PASSKEY_EDDSA); /* has the id, but not the key */
    for (int i = 0; i < 40; i++) {
        struct asked asked = passkeys_ask("/v1/sign-in/challenge", NULL);

        bh_test_get(&thief, asked.challenge, &user, &response);
        SEND(&s, BH_POST, "/v1/sign-in", .body = answer_to(&asked, ""));
        BH_CHECK_EQ("refused", s.status, 401);
        BH_CHECK("not locked", !strstr(s.text, "too many"));
    }
    device.counter = 100;
    passkeys_enter(&device, &user);
    BH_CHECK_EQ("its owner", s.status, 201);
    bh_test_authenticator_fini(&thief);
    close_with(&device);
    BH_CHECK_DONE();
}

/* Challenges are free for any caller: however many are asked for, none of another caller's is lost. */
static void
a_flood_of_challenges_ends_nothing(void **state)
{
    struct bh_test_authenticator device;
    const char *session, *secret;
    struct bh_webauthn_user user;
    struct asked asked;

    session = open_with(&device, BH_PASSKEY_ES256, &user);
    SEND(&s, BH_POST, "/v1/account/totp", .bearer = session);
    secret = accounts_fixture_text_of(&s, "secret");
    asked = passkeys_ask("/v1/sign-in/challenge", NULL);
    for (int i = 0; i < 2000; i++)
        passkeys_ask("/v1/sign-in/challenge", NULL);
    BH_CHECK_EQ("still answered", s.status, 200);
    bh_test_get(&device, asked.challenge, &user, &response);
    SEND(&s, BH_POST, "/v1/sign-in", .body = answer_to(&asked, ""));
    BH_CHECK_EQ("in", s.status, 201);
    SEND(&s, BH_PUT, "/v1/account/totp", .bearer = session,
         .body = body_of(&s, "{\"code\":\"%s\"}", code_of(&s, secret, clock_ns)));
    BH_CHECK_EQ("the app", s.status, 200);
    close_with(&device);
    BH_CHECK_DONE();
}

static void
five_minutes_later(void)
{
    clock_ns += 302 * BH_NS_PER_S;
}

static void
after_a_restart(void)
{
    accounts_fixture_restart(&s);
}

static void
at_once(void)
{
}

static void
a_challenge_is_good_once_and_for_five_minutes(void **state)
{
    static const struct {
        const char *name;
        void (*wait)(void);
        uint32_t status;
    } cases[] = {
        { "at once", at_once, 201 },
        { "too late", five_minutes_later, 401 },
        { "a restart between", after_a_restart, 401 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_test_authenticator device;
        struct bh_webauthn_user user;
        struct asked asked, other;
        const char *body;

        open_with(&device, BH_PASSKEY_ES256, &user);
        other = passkeys_ask("/v1/sign-in/challenge", NULL);
        asked = passkeys_ask("/v1/sign-in/challenge", NULL);
        bh_test_get(&device, asked.challenge, &user, &response);
        SEND(&s, BH_POST, "/v1/sign-in", .body = answer_to(&other, ""));
        BH_CHECK_EQ("another's id", s.status, 401);
        body = answer_to(&asked, "");
        cases[i].wait();
        SEND(&s, BH_POST, "/v1/sign-in", .body = body);
        BH_CHECK_EQ(cases[i].name, s.status, cases[i].status);
        SEND(&s, BH_POST, "/v1/sign-in", .body = body);
        BH_CHECK_EQ("again", s.status, 401);
        close_with(&device);
    }
    BH_CHECK_DONE();
}

/* Adding the first factor completes the session, which continues without a new sign-in. */
static void
the_first_passkey_opens_its_session(void **state)
{
    struct bh_test_authenticator device;
    struct bh_webauthn_user user;
    const char *session;

    session = open_with(&device, BH_PASSKEY_ES256, &user);
    SEND(&s, BH_GET, "/v1/site", .bearer = session);
    BH_CHECK_EQ("an admin", s.status, 200);
    SEND(&s, BH_GET, "/v1/accounts", .bearer = session);
    BH_CHECK_EQ("who has just shown a factor", s.status, 200);
    SEND(&s, BH_GET, "/v1/sessions", .bearer = session);
    BH_CHECK("of that level", strstr(s.text, "\"level\":\"passkey\""));
    close_with(&device);
    BH_CHECK_DONE();
}

/* A session of before there was a factor knows the password alone: it adds none beside it. */
static void
a_password_alone_adds_to_no_finished_account(void **state)
{
    struct bh_test_authenticator device;
    const char *early, *session;

    accounts_fixture_open_site(&s, passkey_site);
    accounts_steps_enrol(&s, "ada");
    early = accounts_steps_sign_in(&s, "ada", PASSWORD, NULL);
    session = accounts_steps_sign_in(&s, "ada", PASSWORD, NULL);
    bh_test_authenticator_init(&device, BH_PASSKEY_ES256);
    passkeys_add(session, &device);
    BH_CHECK_EQ("the first", s.status, 201);
    passkeys_ask("/v1/account/passkeys/challenge", early);
    BH_CHECK_EQ("asked again", s.status, 401);
    BH_CHECK("for a factor", strstr(s.challenge, "insufficient_user_authentication"));
    passkeys_ask("/v1/account/passkeys/challenge", session);
    BH_CHECK_EQ("who has shown it goes on", s.status, 200);
    close_with(&device);
    BH_CHECK_DONE();
}

static void
a_signed_in_user_gets_their_own_passkeys(void **state)
{
    struct bh_test_authenticator device;
    struct bh_webauthn_user user;
    const char *session;

    session = open_with(&device, BH_PASSKEY_ES256, &user);
    passkeys_ask("/v1/sign-in/challenge", session);
    BH_CHECK("one's own", strstr(s.text, "\"allowCredentials\":[{"));
    passkeys_ask("/v1/sign-in/challenge", NULL);
    BH_CHECK("a stranger is told of none", strstr(s.text, "\"allowCredentials\":[]"));
    passkeys_ask("/v1/sign-in/challenge", "bs_aaaaaaaaaaaa");
    BH_CHECK("nor is one without a session", strstr(s.text, "\"allowCredentials\":[]"));
    close_with(&device);
    BH_CHECK_DONE();
}

static void
passkeys_need_a_host_with_a_name(void **state)
{
    static const struct {
        const char *address, *rp;
        bool offered;
    } cases[] = {
        { "https://gpu.example", "\"rpId\":\"gpu.example\"", true },
        { "https://gpu.example:443", "\"rpId\":\"gpu.example\"", true },
        { "https://gpu.example:8443", "\"rpId\":\"gpu.example\"", true },
        { "https://192.0.2.1", "", false },
        { "https://[2001:db8::1]:8443", "", false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char site[2048];

        snprintf(site, sizeof site, "%ssign_in: {address: '%s'}\n", accounts_site, cases[i].address);
        accounts_fixture_open_site(&s, site);
        SEND(&s, BH_GET, "/v1/sign-in");
        BH_CHECK_EQ(cases[i].address, strstr(s.text, "\"passkeys\":true") != NULL, cases[i].offered);
        SEND(&s, BH_POST, "/v1/sign-in/challenge");
        BH_CHECK_EQ(cases[i].address, s.status, cases[i].offered ? 200 : 503);
        BH_CHECK(cases[i].address, strstr(s.text, cases[i].rp));
        accounts_fixture_close_site(&s);
    }
    BH_CHECK_DONE();
}

static void
passkeys_need_an_address(void **state)
{
    accounts_fixture_open_site(&s, accounts_site);
    passkeys_ask("/v1/sign-in/challenge", NULL);
    BH_CHECK_EQ("none", s.status, 503);
    accounts_fixture_close_site(&s);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_passkey_is_two_factors_by_itself),
    cmocka_unit_test(one_answer_for_every_wrong_passkey),
    cmocka_unit_test(adding_asks_who_it_is),
    cmocka_unit_test(the_last_factor_stays),
    cmocka_unit_test(a_passkey_shows_again_who_it_is),
    cmocka_unit_test(a_passkey_alone_is_for_local_accounts),
    cmocka_unit_test(failed_attempts_lock_no_other_user_out),
    cmocka_unit_test(a_flood_of_challenges_ends_nothing),
    cmocka_unit_test(a_challenge_is_good_once_and_for_five_minutes),
    cmocka_unit_test(the_first_passkey_opens_its_session),
    cmocka_unit_test(a_password_alone_adds_to_no_finished_account),
    cmocka_unit_test(a_signed_in_user_gets_their_own_passkeys),
    cmocka_unit_test(passkeys_need_a_host_with_a_name),
    cmocka_unit_test(passkeys_need_an_address),
};
BH_TEST_MAIN(tests)
