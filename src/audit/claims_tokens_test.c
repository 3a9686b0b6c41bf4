#include "audit/claims.h"

#include "base/test.h"
#include "ports/crypto.h"

enum { ARENA_BYTES = 1 << 20 };

/* Records 0 to 2: token 7 is made as `facts` says, token 8 as before it was said, and revoked. */
static void
claims_tokens_read_all(struct bh_claims *claims, const char *facts)
{
    struct bh_record records[] = {
        { .verb = "token.create", .obj = { "token", 7 }, .ev_json = facts },
        { .verb = "token.create", .obj = { "token", 8 } },
        { .verb = "token.revoke", .obj = { "token", 8 } },
    };
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(records); i++) {
        records[i].seq = i;
        records[i].version = BH_RECORD_VERSION;
        records[i].dec.allow = true;
        assert_int_equal(bh_claims_read(claims, &records[i], &err), BH_OK);
    }
}

/* A token's row is what its record says; of one of before, only that there is one. */
static void
tokens_are_as_they_were_made(void **state)
{
    static const struct bh_token_facts made = { 9, 2, "job.view" };
    static const struct {
        const char *says;
        struct bh_claimed_token row;
        uint64_t differences;
    } rows[] = {
        { "", { "a", 7, { 9, 2, "job.view" }, false }, 0 },
        { "token a: its owner,", { "a", 7, { 9, 3, "job.view" }, false }, 1 },
        { "token a: its owner,", { "a", 7, { 9, 2, "" }, false }, 1 },
        { "token a: its owner,", { "a", 7, { 8, 2, "job.view" }, false }, 1 },
        { "token a is revoked in the table", { "a", 7, { 9, 2, "job.view" }, true }, 1 },
        { "token b was revoked by record 2", { "b", 8, { 1, 1, "" }, false }, 1 },
        { "", { "b", 8, { 1, 1, "" }, true }, 0 },
        { "token c is in the table", { "c", 6, { 1, 1, "" }, false }, 1 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_arena *arena = bh_arena_new(ARENA_BYTES);
        struct bh_claims *claims = bh_claims_new(arena, &bh_crypto_openssl);
        struct bh_claims_result result;
        char memory[200];
        struct bh_buf text;

        bh_buf_init_fixed(&text, memory, sizeof memory);
        bh_token_facts_put(&text, &made);
        claims_tokens_read_all(claims, bh_buf_text(&text));
        bh_claims_token(claims, &rows[i].row);
        bh_claims_end(claims, 0, &result);
        BH_CHECK_EQ(rows[i].says, result.differences, rows[i].differences);
        BH_CHECK(rows[i].says, strstr(result.differing, rows[i].says) != NULL);
        BH_CHECK_EQ(rows[i].says, result.tokens.good, i == 0);
        bh_arena_free(arena);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tokens_are_as_they_were_made),
};
BH_TEST_MAIN(tests)
