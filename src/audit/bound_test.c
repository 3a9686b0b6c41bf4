#include "audit/bound.h"

#include "audit/record.h"
#include "base/test.h"
#include "ports/crypto.h"

/* What records said, carried on in the place of them: rows are judged as before.  The verdicts on
 * each kind of row stand in verdicts.txt, and what becomes of a store in tests/e2e/audit.py. */

enum { ARENA_BYTES = 16 << 20, TOKENS = 150 };

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

static void
bound_read(struct bh_claims *claims, struct bh_record record)
{
    struct bh_err err = { 0 };

    record.version = BH_RECORD_VERSION;
    record.ts_ns = 1000 + record.seq;
    record.dec.allow = true;
    if (bh_claims_read(claims, &record, &err) != BH_OK)
        fail_msg("record %d: %s", (int)record.seq, err.msg);
}

static const char facts[] = "{\"token\":{\"expires_ns\":\"5\",\"principal\":4}}";

static void
give_tokens(struct bh_claims *claims)
{
    for (uint64_t i = 0; i < TOKENS; i++) {
        const struct bh_claimed_token row = { "tk", i + 1, { 5, 4, "" }, false };

        bh_claims_token(claims, &row);
    }
}

static void
carried_on(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA_BYTES);
    struct bh_claims *before = bh_claims_new(arena, crypto), *after = bh_claims_new(arena, crypto);
    struct bh_bound_cursor cursor = { .table = 0 };
    struct bh_claims_result result;
    struct bh_buf text;
    uint64_t seq = TOKENS;

    for (uint64_t i = 0; i < TOKENS; i++)
        bound_read(before,
                   (struct bh_record){
                       .seq = i, .verb = "token.create", .ev_json = facts, .obj = { "token", i + 1 } });
    bh_claims_skip(after, TOKENS - 1);
    bh_buf_init(&text, BH_RECORD_BYTES_MAX);
    for (; bh_bound_put(before, 0, &cursor, &text); seq++) {
        BH_CHECK("is such", bh_bound_is(bh_buf_text(&text)));
        bound_read(after, (struct bh_record){ .seq = seq,
                                              .verb = BH_RECORD_ROWS_BIND,
                                              .ev_json = bh_buf_text(&text),
                                              .obj = { BH_RECORD_LOG, TOKENS } });
        bh_buf_clear(&text);
    }
    BH_CHECK_EQ("records", seq - TOKENS, 3);
    give_tokens(after);
    bh_claims_end(after, BH_CLAIMS_TOKENS, &result);
    BH_CHECK_EQ("as they said", result.tokens.good, TOKENS - 1); /* that of record 0 is none */
    BH_CHECK_EQ("but that one", result.differences, 1);
    bh_buf_fini(&text);
    BH_CHECK("no event", !bh_bound_is(NULL) && !bh_bound_is(facts));
    BH_CHECK_DONE();
}

/* No rows are spoken of: that is said, too. */
static void
nothing(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA_BYTES);
    struct bh_claims *claims = bh_claims_new(arena, crypto);
    struct bh_bound_cursor cursor = { .table = 0 };
    struct bh_buf text;

    bh_buf_init(&text, BH_RECORD_BYTES_MAX);
    BH_CHECK("once", bh_bound_put(claims, 256, &cursor, &text));
    BH_CHECK_STR("all of it", bh_buf_text(&text), "{\"bound\":{\"from\":256}}");
    BH_CHECK("no more", !bh_bound_put(claims, 256, &cursor, &text));
    bh_buf_fini(&text);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(carried_on), cmocka_unit_test(nothing) };
BH_TEST_MAIN(tests)
