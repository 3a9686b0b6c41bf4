#include "identity/jwks_cache.h"

#include "base/test.h"

#define S BH_NS_PER_S
#define NOW (UINT64_C(1790000000) * S)
#define KEY(kid)                                                                                             \
    "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"" kid                                         \
    "\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}"

static struct bh_jwks_cache cache;

static enum bh_identity_fault
jwks_cache_test_receive(uint32_t status, const char *body, uint32_t max_age_s, bh_ns now)
{
    struct bh_https_response answer = { status, body, strlen(body), max_age_s };

    return bh_jwks_cache_receive(&cache, &answer, now);
}

static bool
jwks_cache_test_has(const char *kid, bh_ns now)
{
    const struct bh_jwks *keys = bh_jwks_cache_keys(&cache, now);
    const struct bh_jwk *key;

    return keys && bh_jwks_find(keys, BH_JWS_EDDSA, kid, &key) == BH_FAULT_NONE;
}

static void
rotation(void **state)
{
    memset(&cache, 0, sizeof cache);
    BH_CHECK("none yet", !bh_jwks_cache_keys(&cache, NOW));
    BH_CHECK("first question", bh_jwks_cache_due(&cache, false, NOW));
    BH_CHECK("one at a time", !bh_jwks_cache_due(&cache, true, NOW + 100 * S));
    BH_CHECK_EQ("answer", jwks_cache_test_receive(200, KEY("old"), 0, NOW), 0);
    BH_CHECK("has it", jwks_cache_test_has("old", NOW));
    BH_CHECK("fresh", !bh_jwks_cache_due(&cache, false, NOW + 3599 * S));
    BH_CHECK("too early", !bh_jwks_cache_due(&cache, true, NOW + 29 * S));
    BH_CHECK("unknown key", bh_jwks_cache_due(&cache, true, NOW + 30 * S));
    BH_CHECK_EQ("answer", jwks_cache_test_receive(200, KEY("new"), 0, NOW + 30 * S), 0);
    BH_CHECK("new", jwks_cache_test_has("new", NOW + 30 * S));
    BH_CHECK("withdrawn", !jwks_cache_test_has("old", NOW + 30 * S));
    BH_CHECK("stale", bh_jwks_cache_due(&cache, false, NOW + 3630 * S));
    BH_CHECK_DONE();
}

static void
jwks_cache_test_lives(void **state)
{
    static const struct {
        uint32_t max_age_s, life_s;
    } rows[] = { { 0, 3600 }, { 1, 300 }, { 600, 600 }, { 4000000000u, 86400 } };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        memset(&cache, 0, sizeof cache);
        BH_CHECK("due", bh_jwks_cache_due(&cache, false, NOW));
        BH_CHECK_EQ("take", jwks_cache_test_receive(200, KEY("a"), rows[i].max_age_s, NOW), 0);
        BH_CHECK("before", !bh_jwks_cache_due(&cache, false, NOW + rows[i].life_s * S - 1));
        BH_CHECK("after", bh_jwks_cache_due(&cache, false, NOW + rows[i].life_s * S));
    }
    BH_CHECK_DONE();
}

/* A provider that fails for a day, while strangers ask for keys that do not exist. */
static void
jwks_cache_test_flood(void **state)
{
    unsigned questions = 0;

    memset(&cache, 0, sizeof cache);
    BH_CHECK("first", bh_jwks_cache_due(&cache, false, NOW));
    BH_CHECK_EQ("first", jwks_cache_test_receive(200, KEY("a"), 0, NOW), 0);
    for (bh_ns at = NOW; at < NOW + 86400 * S; at += S) {
        if (!bh_jwks_cache_due(&cache, true, at))
            continue;
        questions++;
        BH_CHECK_EQ("down", jwks_cache_test_receive(questions % 2 ? 500 : 0, "", 0, at),
                    BH_FAULT_PROVIDER_DOWN);
        BH_CHECK("kept", jwks_cache_test_has("a", at));
    }
    BH_CHECK_EQ("one in 30 s", questions, 2879);
    BH_CHECK("fails closed", !bh_jwks_cache_keys(&cache, NOW + 86400 * S));
    BH_CHECK("asks on", bh_jwks_cache_due(&cache, false, NOW + 86400 * S));
    BH_CHECK_EQ("nonsense", jwks_cache_test_receive(200, "{}", 0, NOW + 86400 * S), BH_FAULT_JWKS_JSON);
    BH_CHECK("still none", !bh_jwks_cache_keys(&cache, NOW + 86400 * S));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rotation),
    cmocka_unit_test(jwks_cache_test_lives),
    cmocka_unit_test(jwks_cache_test_flood),
};

BH_TEST_MAIN(tests)
