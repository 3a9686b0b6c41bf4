#include "model/sign_in.h"

#include "model/decode_test.h"

static bh_rc
read(const char *yaml, struct bh_site_sign_in *ret_sign_in, struct bh_arena *arena, struct bh_err *err)
{
    bh_rc rc = bh_test_decode(yaml, &bh_site_sign_in_fields, ret_sign_in, arena, err);

    return rc == BH_OK ? bh_sign_in_check(ret_sign_in, err) : rc;
}

#define CORP "address: https://gpu.example\nissuers: [{name: corp, url: https://id.example, client_id: b"

static void
what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *name, *yaml;
        bh_rc rc;
        const char *says;
    } cases[] = {
        { "nothing", "{}", BH_OK, "" },
        { "an issuer", CORP "}]", BH_OK, "" },
        { "with a secret", CORP ", client_secret: corp.secret}]", BH_OK, "" },
        { "with a key", CORP ", client_secret: k, client_auth: private_key_jwt}]", BH_OK, "" },
        { "no address", "issuers: [{name: corp, url: https://id.example, client_id: b}]", BH_INVALID,
          "sign_in: address: is missing" },
        { "an address with a path", "address: https://x/y", BH_INVALID, "address" },
        { "an address without https", "address: http://x", BH_INVALID, "address" },
        { "an address with a user", "address: https://a@x", BH_INVALID, "address" },
        { "an issuer twice", CORP "}, {name: corp, url: https://b, client_id: b}]", BH_INVALID,
          "issuers[1] corp: declared twice" },
        { "an issuer in the clear",
          "address: https://x\nissuers: [{name: corp, "
          "url: http://id.example, client_id: b}]",
          BH_INVALID, "url" },
        { "on this machine",
          "address: https://x\nissuers: [{name: corp, "
          "url: http://127.0.0.1:8, client_id: b, loopback: true}]",
          BH_OK, "" },
        { "on this machine, not said",
          "address: https://x\nissuers: [{name: corp, "
          "url: http://127.0.0.1:8, client_id: b}]",
          BH_INVALID, "url" },
        { "a secret elsewhere", CORP ", client_secret: ../audit.key}]", BH_INVALID,
          "client_secret: is not a plain file name" },
        { "a hidden secret", CORP ", client_secret: .x}]", BH_INVALID, "client_secret" },
        { "a key without one", CORP ", client_auth: private_key_jwt}]", BH_INVALID, "client_auth" },
        { "a secret for nothing", CORP ", client_auth: none, client_secret: x}]", BH_INVALID,
          "client_secret" },
        { "spans", "{idle: 10m, life: 8h}", BH_OK, "" },
        { "idle too short", "idle: 59s", BH_RANGE, "idle" },
        { "idle too long", "idle: 2d", BH_RANGE, "idle" },
        { "a life too long", "life: 31d", BH_RANGE, "life" },
        { "a step-up", "step_up: [{verb: job.submit, level: passkey, within: 1m}]", BH_OK, "" },
        { "a step-up of no verb", "step_up: [{verb: job.fly, level: code}]", BH_INVALID,
          "step_up[0] job.fly: is not a verb" },
        { "a step-up twice",
          "step_up: [{verb: job.submit, level: code}, "
          "{verb: job.submit, level: none}]",
          BH_INVALID, "step_up[1] job.submit: declared twice" },
        { "a step-up at once", "step_up: [{verb: job.submit, level: code, within: 0s}]", BH_RANGE, "within" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        struct bh_site_sign_in sign_in;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].name, read(cases[i].yaml, &sign_in, arena, &err), cases[i].rc);
        BH_CHECK(cases[i].name, strstr(err.msg, cases[i].says));
        bh_arena_free(arena);
    }
    BH_CHECK_DONE();
}

static void
groups_and_people_begin_with_their_issuer(void **state)
{
    static const struct {
        const char *text;
        bool names;
        /* clang-format off */
    } cases[] = {
        { "corp/ml-admins", true }, { "corp/a/b", true },    { "corp/", false },
        { "corp", false },          { "other/x", false },    { "cor/x", false },
        { "corp2/x", false },       { "/x", false },         { "corp/a\nb", false },
        { "Corp/x", false },        { "corp/ with blanks", true },
    };
    /* clang-format on */
    struct bh_site_issuer issuer = { .name = "corp" };
    struct bh_site_sign_in sign_in = { .issuers = { &issuer, 1 } };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].text, bh_sign_in_names(&sign_in, cases[i].text), cases[i].names);
    BH_CHECK_EQ("idle", bh_sign_in_idle_ns(&sign_in), UINT64_C(1800000000000));
    BH_CHECK_EQ("life", bh_sign_in_life_ns(&sign_in), UINT64_C(43200000000000));
    sign_in.idle = "5m";
    BH_CHECK_EQ("idle said", bh_sign_in_idle_ns(&sign_in), UINT64_C(300000000000));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_wrong_is_named),
    cmocka_unit_test(groups_and_people_begin_with_their_issuer),
};
BH_TEST_MAIN(tests)
