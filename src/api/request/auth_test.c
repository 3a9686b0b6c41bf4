#include "api/request/auth.h"

#include "api/fixture_test.h"
#include "audit/claims.h"
#include "base/json.h"
#include "base/test.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

#include "api/request/token.h"

static char token_text[BH_TOKEN_LENGTH + 1];
static struct bh_token token;

static int
open_tokens(void **state)
{
    struct bh_err err;

    f = bh_fixture_open();
    bh_fixture_put_job(f, 1, 2, 1, "running");
    return bh_token_make(&bh_crypto_openssl, &token, token_text, &err) == BH_OK ? 0 : -1;
}

static int
close_tokens(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static struct bh_token_row
auth_row_of(const char *scopes)
{
    struct bh_token_row row = { .principal_id = 1,
                                .scopes = scopes,
                                .note = "n",
                                .created_ns = 1,
                                .expires_ns = UINT64_C(2000000000000000) };

    memcpy(row.id, token.id, sizeof token.id);
    memcpy(row.secret.bytes, token.secret, 32);
    return row;
}

static void
tokens_look_as_written(void **state)
{
    static const size_t spoiled[] = { 0, 3, 14, 15, 16, 40, 58, 59, 60, 67 };
    struct bh_token read;

    BH_CHECK_EQ("length", strlen(token_text), BH_TOKEN_LENGTH);
    BH_CHECK("reads", bh_token_parse(&bh_crypto_openssl, token_text, &read));
    BH_CHECK_STR("id", read.id, token.id);
    BH_CHECK("secret", bh_token_same(read.secret, token.secret));
    BH_CHECK("id valid", bh_token_id_valid(token.id));
    for (size_t i = 0; i < BH_COUNT(spoiled); i++) {
        char text[BH_TOKEN_LENGTH + 1];

        memcpy(text, token_text, sizeof text);
        text[spoiled[i]] = text[spoiled[i]] == 'b' ? 'c' : 'b';
        BH_CHECK("spoiled", !bh_token_parse(&bh_crypto_openssl, text, &read));
    }
    BH_CHECK("empty", !bh_token_parse(&bh_crypto_openssl, "", &read));
    BH_CHECK("short", !bh_token_parse(&bh_crypto_openssl, "bh_abc", &read));
    BH_CHECK("not an id", !bh_token_id_valid("abcdefghijk1"));
    BH_CHECK_DONE();
}

/* The CRC of a well-known text: other programs compute the same. */
static void
the_checksum_is_crc_32(void **state)
{
    struct bh_token read;

    /* crc32 of "bh_aaaaaaaaaaaa_" and 43 zeros, by zlib */
    BH_CHECK("zlib agrees", bh_token_parse(&bh_crypto_openssl,
                                           "bh_aaaaaaaaaaaa_0000000000000000000000000000000000000000000_"
                                           "94bdc090",
                                           &read));
    BH_CHECK_DONE();
}

static void
a_token_is_its_owner(void **state)
{
    struct bh_token_row row = auth_row_of("");

    bh_fixture_put_token(f, &row);
    for (int tcp = 0; tcp < 2; tcp++) {
        SEND(BH_GET, "/v1/whoami", .token = token_text, .uid = STRANGER, .tcp = tcp);
        BH_CHECK_EQ("status", got.status, 200);
        BH_CHECK("alice", strstr(got.text, "\"name\":\"alice\""));
        BH_CHECK("via", strstr(got.text, "\"via\":\"token\""));
        BH_CHECK("id", strstr(got.text, token.id));
    }
    /* a token of alice on root's socket is alice, not root */
    SEND(BH_PUT, "/v1/site", .body = "{}", .token = token_text, .uid = 0);
    BH_CHECK_EQ("not root", got.status, 403);
    BH_CHECK_DONE();
}

static void
scopes_cut_down(void **state)
{
    struct bh_token_row row = auth_row_of("job.view token.view");

    bh_fixture_put_token(f, &row);
    SEND(BH_GET, "/v1/jobs/1", .token = token_text, .tcp = true);
    BH_CHECK_EQ("in scope", got.status, 200);
    SEND(BH_GET, "/v1/jobs/1/logs", .token = token_text, .tcp = true);
    BH_CHECK_EQ("out of scope", got.status, 403);
    BH_CHECK("says so", strstr(got.text, "the token's scopes do not include it"));
    BH_CHECK_DONE();
}

static void
bad_tokens_are_no_user(void **state)
{
    static const struct {
        const char *name;
        uint32_t principal;
        uint64_t expires_ns;
        bool revoked, other_secret;
    } cases[] = {
        { "revoked", 1, UINT64_C(2000000000000000), true, false },
        { "expired", 1, 1, false, false },
        { "nobody's", 99, UINT64_C(2000000000000000), false, false },
        { "another secret", 1, UINT64_C(2000000000000000), false, true },
    };

    SEND(BH_GET, "/v1/whoami", .token = token_text, .tcp = true);
    BH_CHECK_EQ("unknown", got.status, 401);
    BH_CHECK_EQ("unknown is counted", f->unauthenticated, 1);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_token_row row = auth_row_of("");

        row.principal_id = cases[i].principal;
        row.expires_ns = cases[i].expires_ns;
        row.revoked = cases[i].revoked;
        row.secret.bytes[31] ^= cases[i].other_secret;
        bh_fixture_put_token(f, &row);
        SEND(BH_GET, "/v1/whoami", .token = token_text, .uid = ALICE);
        BH_CHECK_EQ(cases[i].name, got.status, 401);
        BH_CHECK(cases[i].name, strstr(got.text, "the token is not valid"));
        /* a known user is refused under its own name */
        BH_CHECK_EQ(cases[i].name, f->unauthenticated, 1 + cases[i].other_secret);
        BH_CHECK_EQ(cases[i].name, f->refusals, !cases[i].other_secret);
        BH_CHECK_EQ(cases[i].name, f->unauthenticated_token,
                    cases[i].other_secret ? bh_token_number(row.secret.bytes) : 0);
    }
    SEND(BH_GET, "/v1/whoami", .token = "bh_nonsense", .uid = ALICE);
    BH_CHECK_EQ("nonsense", got.status, 401);
    BH_CHECK_EQ("nonsense is of no token", f->unauthenticated_token, 0);
    BH_CHECK_DONE();
}

static void
tokens_are_made_listed_and_revoked(void **state)
{
    struct bh_token_row row = auth_row_of("job.view");
    char path[64];

    f->answer.secret = token_text;
    f->answer.token_id = token.id;
    SEND(BH_POST, "/v1/tokens", .body = "{\"note\":\"ci\",\"lifetime\":\"30d\"}", .uid = ALICE);
    BH_CHECK_EQ("made", got.status, 201);
    BH_CHECK("shown once", strstr(got.text, token_text));
    SEND(BH_POST, "/v1/tokens", .body = "{\"note\":\"ci\xe2\x80\xae\"}", .uid = ALICE);
    BH_CHECK_EQ("a note that turns", got.status, 400);
    bh_fixture_put_token(f, &row);
    SEND(BH_GET, "/v1/tokens", .uid = ALICE);
    BH_CHECK("listed", strstr(got.text, token.id) && strstr(got.text, "\"state\":\"valid\""));
    BH_CHECK("no secret", !strstr(got.text, token_text));
    SEND(BH_GET, "/v1/tokens", .uid = BOB);
    BH_CHECK("not bob's", !strstr(got.text, token.id));
    SEND(BH_GET, "/v1/tokens", .uid = CAROL);
    BH_CHECK("an admin sees all", strstr(got.text, token.id));
    snprintf(path, sizeof path, "/v1/tokens/%s", token.id);
    SEND(BH_DELETE, path, .uid = BOB);
    BH_CHECK_EQ("bob cannot", got.status, 404);
    SEND(BH_DELETE, path, .uid = ALICE);
    BH_CHECK_EQ("alice can", got.status, 200);
    BH_CHECK_STR("by id", f->command.token_id ? "given" : "", "given");
    SEND(BH_DELETE, path, .uid = CAROL);
    BH_CHECK_EQ("an admin can", got.status, 200);
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_tokens, close_tokens)
    const struct CMUnitTest tests[] = {
        TEST(tokens_look_as_written), TEST(the_checksum_is_crc_32), TEST(a_token_is_its_owner),
        TEST(scopes_cut_down),        TEST(bad_tokens_are_no_user), TEST(tokens_are_made_listed_and_revoked),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
