#include "node/mark.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"

enum { A = 7, B = 8 };

static const char gpu[] = "GPU-1";

static struct bh_note_piece
piece_at(uint32_t units)
{
    struct bh_note_piece piece = { .units = units };

    snprintf(piece.gpu, sizeof piece.gpu, "%s", gpu);
    return piece;
}

/* What happens to a GPU of four units, and who may have its pieces then.
 *   "+UT" tenant T is lent the units U, "&UT" has a share there, "*U" they are scrubbed, "!U" their
 *   scrub fails, "?U" is interrupted, "~U" they are scrubbed in part beside others */
static const struct {
    const char *name, *story;
    uint32_t units, tenant;
    bool allowed, failed, unknown;
} cases[] = {
    { "never scrubbed",               "",              0x1, A, false, false, true },
    { "scrubbed",                     "*1",            0x1, A, true,  false, false },
    { "scrubbed, half of it",         "*1",            0x3, A, false, false, true },
    { "its own",                      "*1 +1A",        0x1, A, true,  false, false },
    { "another's",                    "*1 +1A",        0x1, B, false, false, false },
    { "another's beside it",          "*3 +1A",        0x2, B, true,  false, false },
    { "another's in part",            "*3 +1A",        0x3, B, false, false, false },
    { "its own and clean",            "*3 +1A",        0x3, A, true,  false, false },
    { "scrubbed after another",       "*1 +1A *1",     0x1, B, true,  false, false },
    { "a scrub of more than it",      "*3 +3A *f",     0x3, B, true,  false, false },
    { "a scrub of less than it",      "*3 +3A *1",     0x3, B, false, false, false },
    { "a scrub that failed",          "*1 +1A !1",     0x1, B, false, true,  false },
    { "a scrub that failed: its own", "*1 +1A !1",     0x1, A, false, true,  false },
    { "failed, then not",             "*1 +1A !1 *1",  0x1, B, true,  false, false },
    { "failed beside it",             "*3 !2",         0x1, A, true,  false, false },
    { "nobody's, clean",              "*1",            0x1, 0, true,  false, false },
    { "nobody's, another's",          "*1 +1A",        0x1, 0, false, false, false },
    { "all units where not noted",    "*f +1A",        0x0, B, false, false, false },
    { "shared by its own",            "*f &fA &fA",    0xf, A, true,  false, false },
    { "shared with another",          "*f &fA &fB",    0xf, A, false, false, false },
    { "shared with another: the last", "*f &fA &fB",   0xf, B, false, false, false },
    { "shared, an instance of it",    "*f &fA &fB",    0x1, A, false, false, false },
    { "shared, scrubbed",             "*f &fA &fB *f", 0xf, A, true,  false, false },
    { "shared, an instance scrubbed", "*f &fA &fB *1", 0x1, A, true,  false, false },
    { "shared, the others not",       "*f &fA &fB *1", 0x2, A, false, false, false },
    { "shared, then its own whole",   "*f &fA &fB +fA", 0xf, A, true, false, false },
    { "shared on unknown memory",     "&fA",           0xf, A, false, false, false },
    { "scrubbed in part",             "*f &fA &fB ~f", 0xf, A, false, false, false },
    { "interrupted",                  "*1 +1A ?1",     0x1, A, false, true,  false },
};

static void
tell(struct bh_mark_table *table, const char *story)
{
    for (const char *at = story; *at; at += *at != '\0') {
        char *end;
        uint32_t units = (uint32_t)strtoul(at + 1, &end, 16);
        struct bh_msg_receipt receipt = { .result = *at == '!'   ? BH_SCRUB_FAILED
                                                    : *at == '?' ? BH_SCRUB_INTERRUPTED
                                                    : *at == '~' ? BH_SCRUB_PARTIAL
                                                                 : BH_SCRUB_CLEAN,
                                          .beside = *at == '~' };
        struct bh_err err;

        snprintf(receipt.gpu, sizeof receipt.gpu, "%s", gpu);
        assert_int_equal(bh_mark_make_room(table, &err), BH_OK);
        if (*at == '+' || *at == '&') {
            struct bh_mark_unit as = { .tenant = at[2] == 'A' ? A : B, .job = 1 };
            char one[] = { at[1], '\0' };

            units = (uint32_t)strtoul(one, NULL, 16);
            (*at == '+' ? bh_mark_set : bh_mark_add)(table, gpu, units, &as);
            end = (char *)(uintptr_t)&at[3];
        } else {
            bh_mark_receipt(table, units, &receipt);
        }
        at = end;
        if (!*at)
            return;
    }
}

static void
test_stories(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_mark_table table = { 0 };
        struct bh_note_piece piece = piece_at(cases[i].units);

        tell(&table, cases[i].story);
        BH_CHECK_EQ(cases[i].name, bh_mark_allows(&table, &piece, cases[i].tenant),
                    cases[i].allowed);
        BH_CHECK_EQ(cases[i].name, bh_mark_failed(&table, &piece), cases[i].failed);
        BH_CHECK_EQ(cases[i].name, bh_mark_is_unknown(&table, &piece, cases[i].tenant),
                    cases[i].unknown);
        bh_mark_free(&table);
    }
    BH_CHECK_DONE();
}

static void
test_list(void **state)
{
    struct bh_mark_table table = { 0 };
    struct bh_note_piece piece = piece_at(0xf);
    struct bh_msg_receipt receipt = { 0 };

    tell(&table, "*f +3A +4B");
    bh_mark_list(&table, &piece, &receipt);
    BH_CHECK_EQ("each once, the clean one not", receipt.from_count, 2);
    BH_CHECK_EQ("first", receipt.from[0].tenant, A);
    BH_CHECK_EQ("second", receipt.from[1].tenant, B);
    tell(&table, "*f &fA &fB");
    bh_mark_list(&table, &piece, &receipt);
    BH_CHECK_EQ("all that share it", receipt.from_count, 2);
    BH_CHECK_EQ("the last", receipt.from[1].tenant, B);
    tell(&table, "+3A +cB");
    BH_CHECK_EQ("units alike", bh_mark_alike(&table.items[0], 0), 0x3);
    snprintf(piece.gpu, sizeof piece.gpu, "GPU-2");
    bh_mark_list(&table, &piece, &receipt);
    BH_CHECK_EQ("a GPU that nobody knows", receipt.from_count, 1);
    BH_CHECK_EQ("its tenant", receipt.from[0].tenant, BH_MARK_UNKNOWN);
    bh_mark_free(&table);
    BH_CHECK_DONE();
}

/* Which scrubs left memory clean that was for another job. */
static void
test_prove(void **state)
{
    static const struct bh_msg_receipt scrubs[] = {
        { .order = 40, .job = 1, .tenant = A, .method = BH_SCRUB_FILL, .gpu = "GPU-1" },
        { .order = 41, .job = 2, .tenant = A, .method = BH_SCRUB_RECREATE,
          .result = BH_SCRUB_UNSAMPLED, .gpu = "GPU-1" },
        { .order = 42, .job = 3, .tenant = B, .method = BH_SCRUB_EARLIER, .gpu = "GPU-1" },
    };
    static const struct {
        const char *name;
        uint32_t units;
        uint64_t job;
        bool found;
        uint32_t count, result;
        uint64_t first;
    } proofs[] = {
        { "of another job",       0x3, 9, true, 1, BH_SCRUB_CLEAN, 40 },
        { "its own",              0x3, 1, false, 0, BH_SCRUB_CLEAN, 0 },
        { "its own, and another", 0x7, 1, true, 1, BH_SCRUB_UNSAMPLED, 41 },
        { "of two, one unsampled", 0xf, 9, true, 2, BH_SCRUB_UNSAMPLED, 40 },
        { "what somebody had",    0x10, 9, false, 0, BH_SCRUB_CLEAN, 0 },
    };
    struct bh_mark_table table = { 0 };

    tell(&table, "*f +cB");
    bh_mark_receipt(&table, 0x3, &scrubs[0]);
    bh_mark_receipt(&table, 0xc, &scrubs[1]);
    bh_mark_receipt(&table, 0xf, &scrubs[2]); /* which changes nothing */
    bh_mark_set(&table, gpu, 0x10, &(struct bh_mark_unit){ .tenant = A, .job = 7 });
    for (size_t i = 0; i < BH_COUNT(proofs); i++) {
        struct bh_note_piece piece = piece_at(proofs[i].units);
        struct bh_msg_receipt receipt = { .job = proofs[i].job };

        BH_CHECK_EQ(proofs[i].name, bh_mark_prove(&table, &piece, &receipt), proofs[i].found);
        BH_CHECK_EQ(proofs[i].name, receipt.by_count, proofs[i].count);
        BH_CHECK_EQ(proofs[i].name, receipt.result, proofs[i].result);
        BH_CHECK_EQ(proofs[i].name, receipt.by[0].receipt, proofs[i].first);
    }
    BH_CHECK_EQ("units of one scrub", bh_mark_alike(&table.items[0], 0), 0x3);
    bh_mark_free(&table);
    BH_CHECK_DONE();
}

/* More tenants than there is room for: the last one stands for those that nobody knows any more. */
static void
test_too_many(void **state)
{
    struct bh_mark_table table = { 0 };
    struct bh_note_piece piece = piece_at(0x1);
    struct bh_msg_receipt receipt = { 0 };
    struct bh_err err;

    assert_int_equal(bh_mark_make_room(&table, &err), BH_OK);
    bh_mark_set(&table, gpu, 0x1, &(struct bh_mark_unit){ .clean = true });
    for (uint32_t i = 1; i <= BH_RECEIPT_FROM_MAX + 2; i++)
        bh_mark_add(&table, gpu, 0x1, &(struct bh_mark_unit){ .tenant = i, .job = i });
    bh_mark_list(&table, &piece, &receipt);
    BH_CHECK_EQ("as many as fit", receipt.from_count, BH_RECEIPT_FROM_MAX);
    BH_CHECK_EQ("the first", receipt.from[0].tenant, 1);
    BH_CHECK_EQ("the rest", receipt.from[BH_RECEIPT_FROM_MAX - 1].tenant, BH_MARK_UNKNOWN);
    BH_CHECK("nobody's", !bh_mark_allows(&table, &piece, 1));
    bh_mark_free(&table);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_list), cmocka_unit_test(test_prove),
        cmocka_unit_test(test_too_many),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
