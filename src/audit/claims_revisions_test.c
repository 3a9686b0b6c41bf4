#include <string.h>

#include "audit/claims.h"
#include "base/test.h"
#include "ports/crypto.h"

/* Texts of more revisions of the site file than the store must keep. */

enum { KEPT = BH_CLAIMS_REVISIONS_MAX };

struct row {
    const char *name;
    uint64_t revisions;
    const char *also; /* the verb of a last record that names the first one's text */
    uint64_t lost, differences;
};

static void
digest_of(uint64_t number, uint8_t ret_digest[32])
{
    memset(ret_digest, 0, 32);
    memcpy(ret_digest, &number, sizeof number);
}

/* The file of that number, applied; or another record that names its text. */
static void
claims_revisions_read(struct bh_claims *claims, uint64_t seq, const char *verb, uint64_t number)
{
    struct bh_record record = { .seq = seq,
                                .ts_ns = 1000 + seq,
                                .version = BH_RECORD_VERSION,
                                .verb = verb,
                                .obj = { "site", 0 },
                                .dec = { .allow = true } };
    struct bh_err err;

    digest_of(number, record.text);
    assert_int_equal(bh_claims_read(claims, &record, &err), BH_OK);
}

static uint64_t
differences(const struct row *row)
{
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_claims *claims = bh_claims_new(arena, &bh_crypto_openssl);
    struct bh_claims_result result;
    uint8_t digest[32];

    for (uint64_t number = 1; number <= row->revisions; number++)
        claims_revisions_read(claims, number - 1, "site.apply", number);
    if (row->also)
        claims_revisions_read(claims, row->revisions, row->also, 1);
    for (uint64_t number = 1; number <= row->revisions; number++) {
        digest_of(number, digest);
        if (number != row->lost)
            bh_claims_text(claims, &(struct bh_claimed_text){ digest, digest, 1, false });
    }
    bh_claims_end(claims, BH_CLAIMS_TEXTS, &result);
    bh_arena_free(arena);
    return result.differences;
}

/* Behind the newest ones a text may be missing, unless something else names it, too. */
static void
texts_of_revisions(void **state)
{
    static const struct row rows[] = {
        { "the oldest that is kept", KEPT, NULL, 1, 1 },
        { "one came since", KEPT + 1, NULL, 1, 0 },
        { "of a kept one", KEPT + 1, NULL, 2, 1 },
        { "two came since", KEPT + 2, NULL, 2, 0 },
        { "the one in force", KEPT + 1, NULL, KEPT + 1, 1 },
        { "the newest has it again", KEPT + 1, "site.apply", 1, 1 },
        { "it is another thing's, too", KEPT + 1, "node.ended", 1, 1 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].name, differences(&rows[i]), rows[i].differences);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(texts_of_revisions) };
BH_TEST_MAIN(tests)
