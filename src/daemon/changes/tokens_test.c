/* The record of a token says whose it is, what it may do and until when. */
#include "daemon/fixture/keys_fixture_test.h"

static struct fixture f;

static bh_rc
tokens_make(const char *who, const struct bh_token_request *request)
{
    struct bh_command command = { .op = BH_OP_TOKEN_CREATE,
                                  .caller = caller_named(&f, who),
                                  .token = request };

    return fixture_run(&f, &command);
}

static void
the_record_says_what_it_may(void **state)
{
    static const struct bh_token_request request = {
        .principal = "alice", .lifetime = "1h", .scopes = "job.view job.submit", .note = "canary-note"
    };
    uint32_t alice;
    char wanted[160];
    struct seen seen;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    alice = bh_catalog_find(f.core.catalog, BH_NAME_PRINCIPAL, "alice");
    keys_fixture_must(&f, tokens_make("carol", &request));
    seen = leaves(&f, "token.create");
    snprintf(wanted, sizeof wanted, ",\"principal\":%u,\"scopes\":\"job.view job.submit\"}},", alice);
    BH_CHECK_EQ("one", seen.count, 1);
    BH_CHECK("whose, and what it may", strstr(seen.leaf, wanted) != NULL);
    BH_CHECK("until when", strstr(seen.leaf, "\"ev\":{\"token\":{\"expires_ns\":\"") != NULL);
    BH_CHECK("what it is for", strstr(seen.leaf, "\"sealed\":[") != NULL);
    BH_CHECK_EQ("which is sealed", seen.leaks, 0);
    reopen(&f); /* a replay skips what the engine did not receive */
    BH_CHECK_EQ("once more", leaves(&f, "token.create").count, 1);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_record_says_what_it_may),
};
BH_TEST_MAIN(tests)
