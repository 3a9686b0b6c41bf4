#include "audit/verify.h"

#include <stdlib.h>

#include "base/test.h"
#include "ports/crypto.h"

/* A small journal with a checkpoint after every tenth record, which each test spoils
 * in its own way. */

enum { RECORDS = 40, EVERY = 10, LEAF_MAX = 200 };

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;
static const uint8_t private_key[32] = { 42 };
static struct bh_note_key key;

struct journal {
    struct bh_record records[RECORDS];
    char leaves[RECORDS][LEAF_MAX];
    size_t lengths[RECORDS];
    uint8_t hashes[RECORDS][32];
    char notes[RECORDS / EVERY][512];
    unsigned count;
};

static void
write_leaf(struct journal *journal, unsigned i)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, journal->leaves[i], LEAF_MAX);
    bh_record_encode(&out, &journal->records[i]);
    assert_false(out.overflow);
    journal->lengths[i] = out.length;
    bh_merkle_leaf(crypto, journal->leaves[i], out.length, journal->hashes[i]);
}

static void
sign_all(struct journal *journal)
{
    struct bh_merkle_frontier frontier = { 0 };
    struct bh_err err;

    for (unsigned i = 0; i < RECORDS; i++) {
        struct bh_checkpoint checkpoint = { .origin = "log.example/a", .size = i + 1 };
        struct bh_buf out;

        bh_merkle_frontier_add(&frontier, crypto, journal->hashes[i]);
        if ((i + 1) % EVERY)
            continue;
        bh_merkle_frontier_root(&frontier, crypto, checkpoint.root);
        bh_buf_init_fixed(&out, journal->notes[i / EVERY], sizeof journal->notes[0]);
        assert_int_equal(bh_checkpoint_sign(crypto, &checkpoint, private_key, &out, &err), BH_OK);
        assert_non_null(bh_buf_text(&out));
    }
}

static struct journal *
journal_new(void)
{
    struct journal *journal = calloc(1, sizeof *journal);
    uint8_t public_key[32];
    struct bh_err err;

    assert_non_null(journal);
    assert_int_equal(crypto->public_of(private_key, public_key, &err), BH_OK);
    assert_int_equal(bh_note_key_make(crypto, "log.example/a", public_key, &key, &err), BH_OK);
    journal->count = RECORDS;
    for (unsigned i = 0; i < RECORDS; i++) {
        struct bh_record *record = &journal->records[i];

        record->seq = i;
        record->ts_ns = 1000 + i / 2;
        record->boot = 1 + i / 20;
        record->verb = "test.record";
        if (i % 4 == 0)
            record->orders = "-s";
        if (i % 4 == 3) {
            record->phase = BH_PHASE_OUTCOME;
            record->verb = "node.started";
            record->order = (i - 3) << 12 | 1;
        }
        write_leaf(journal, i);
    }
    sign_all(journal);
    return journal;
}

static bh_rc
verify_walk(const struct journal *journal, struct bh_audit_verifier *verifier, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    bh_audit_verifier_init(verifier, crypto, &key);
    for (unsigned i = 0; rc == BH_OK && i < journal->count; i++) {
        rc = bh_audit_verifier_record(verifier, journal->leaves[i], journal->lengths[i], journal->hashes[i],
                                      err);
        if (rc == BH_OK && (i + 1) % EVERY == 0)
            rc = bh_audit_verifier_checkpoint(verifier, journal->notes[i / EVERY], err);
    }
    return rc == BH_OK ? bh_audit_verifier_end(verifier, RECORDS, err) : rc;
}

static void
good_journal(void **state)
{
    struct journal *journal = journal_new();
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    struct bh_err err = { 0 };

    if (verify_walk(journal, verifier, &err) != BH_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(verifier->checkpoints, RECORDS / EVERY);
    assert_int_equal(verifier->sealed, RECORDS);
    free(verifier);
    free(journal);
}

/* Records 0 to `gone` - 1 are hashes alone; record 35 says that those below `minimum` were
 * pruned. */
static bh_rc
walk_pruned(unsigned gone, uint64_t minimum, struct bh_err *err)
{
    struct journal *journal = journal_new();
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    bh_rc rc = BH_OK;

    assert_non_null(verifier);
    journal->records[34].verb = BH_RECORD_PRUNE;
    journal->records[34].dec.allow = true;
    journal->records[34].obj = (struct bh_record_object){ BH_RECORD_LOG, minimum };
    write_leaf(journal, 34);
    sign_all(journal);
    bh_audit_verifier_init(verifier, crypto, &key);
    for (unsigned i = 0; rc == BH_OK && i < RECORDS; i++) {
        rc = i < gone ? bh_audit_verifier_hash(verifier, journal->hashes[i], err)
                      : bh_audit_verifier_record(verifier, journal->leaves[i], journal->lengths[i],
                                                 journal->hashes[i], err);
        if (rc == BH_OK && (i + 1) % EVERY == 0)
            rc = bh_audit_verifier_checkpoint(verifier, journal->notes[i / EVERY], err);
    }
    if (rc == BH_OK)
        rc = bh_audit_verifier_end(verifier, RECORDS, err);
    free(verifier);
    free(journal);
    return rc;
}

static void
pruned_journal(void **state)
{
    static const struct {
        const char *name;
        unsigned gone;
        uint64_t minimum;
        bh_rc rc;
    } cases[] = {
        { "nothing is gone", 0, 0, BH_OK },
        { "as the log says", 10, 10, BH_OK },
        { "an order is gone and its outcome is there", 1, 1, BH_OK },
        { "less is gone than that", 9, 10, BH_OK },
        { "more is gone than that", 11, 10, BH_CONFLICT },
        { "gone, and nobody says so", 10, 0, BH_CONFLICT },
        { "up to the record itself", 0, 34, BH_OK },
        { "the record itself", 0, 35, BH_CONFLICT },
    };
    struct bh_err err = { 0 };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, walk_pruned(cases[i].gone, cases[i].minimum, &err), cases[i].rc);
    BH_CHECK_DONE();
}

static void
flip_byte(struct journal *journal)
{
    journal->leaves[17][30] ^= 1;
}

static void
flip_hash(struct journal *journal)
{
    journal->hashes[23][0] ^= 1;
}

/* Rewritten with its stored hash: only the checkpoint shows it. */
static void
verify_rewrite(struct journal *journal)
{
    journal->records[25].verb = "test.forged";
    write_leaf(journal, 25);
}

static void
verify_cut(struct journal *journal)
{
    journal->count = 35;
}

static void
remove_record(struct journal *journal)
{
    for (unsigned i = 12; i + 1 < RECORDS; i++) {
        memcpy(journal->leaves[i], journal->leaves[i + 1], LEAF_MAX);
        journal->lengths[i] = journal->lengths[i + 1];
        memcpy(journal->hashes[i], journal->hashes[i + 1], 32);
    }
    journal->count--;
}

static void
time_back(struct journal *journal)
{
    journal->records[8].ts_ns = 5;
    write_leaf(journal, 8);
}

static void
boot_back(struct journal *journal)
{
    journal->records[30].boot = 1;
    write_leaf(journal, 30);
}

static void
order_ahead(struct journal *journal)
{
    journal->records[7].order = 9 << 12;
    write_leaf(journal, 7);
}

static void
order_without_outcome(struct journal *journal)
{
    journal->records[7].phase = BH_PHASE_INTENT;
    write_leaf(journal, 7);
}

static void
order_twice(struct journal *journal)
{
    journal->records[11].order = journal->records[7].order;
    write_leaf(journal, 11);
}

static void
forge_note(struct journal *journal)
{
    *strchr(journal->notes[2], '3') = '4';
}

static void
swap_note(struct journal *journal)
{
    memcpy(journal->notes[3], journal->notes[2], sizeof journal->notes[2]);
}

static void
finds_each_fault(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(struct journal *journal);
        uint64_t first, last;
        const char *message;
    } rows[] = {
        { "byte", flip_byte, 17, 17, "record 17: " },
        { "hash", flip_hash, 23, 23, "record 23: " },
        { "rewritten", verify_rewrite, 20, 29, "records 20 to 29: " },
        { "cut", verify_cut, 35, 39, "records 35 to 39 are missing" },
        { "removed", remove_record, 12, 12, "record 12: it says it is record 13" },
        { "time", time_back, 8, 8, "record 8: its time" },
        { "boot", boot_back, 30, 30, "record 30: its boot" },
        { "order ahead", order_ahead, 7, 7, "record 7: it names an order of the later record 9" },
        { "order twice", order_twice, 11, 11, "record 11: it answers order 1 of record 4, which" },
        { "order alone", order_without_outcome, 7, 7, "record 7: it answers an order but" },
        { "forged note", forge_note, 20, 29, "checkpoint of 30 records: " },
        { "old note", swap_note, 30, 39, "checkpoint of 40 records: it covers 30 records" },
    };
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct journal *journal = journal_new();
        struct bh_err err = { 0 };

        rows[i].spoil(journal);
        BH_CHECK_EQ(rows[i].name, verify_walk(journal, verifier, &err), BH_CONFLICT);
        BH_CHECK_EQ(rows[i].name, verifier->bad_first, rows[i].first);
        BH_CHECK_EQ(rows[i].name, verifier->bad_last, rows[i].last);
        err.msg[strlen(rows[i].message)] = '\0';
        BH_CHECK_STR(rows[i].name, err.msg, rows[i].message);
        BH_CHECK_EQ("no more", bh_audit_verifier_record(verifier, "{}", 2, NULL, &err), BH_CONFLICT);
        free(journal);
    }
    free(verifier);
    BH_CHECK_DONE();
}

/* Flipped bits all over the journal are each named. */
static void
finds_every_flipped_bit(void **state)
{
    struct journal *journal = journal_new();
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    unsigned tried = 0;

    for (unsigned i = 0; i < RECORDS; i++)
        for (size_t bit = i % 3; bit < 8 * journal->lengths[i]; bit += 7) {
            struct bh_err err;

            journal->leaves[i][bit / 8] = (char)(journal->leaves[i][bit / 8] ^ (1 << bit % 8));
            if (verify_walk(journal, verifier, &err) != BH_CONFLICT || verifier->bad_first != i)
                fail_msg("record %u, bit %zu: not found", i, bit);
            journal->leaves[i][bit / 8] = (char)(journal->leaves[i][bit / 8] ^ (1 << bit % 8));
            tried++;
        }
    assert_true(tried > 1000);
    free(verifier);
    free(journal);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_journal),
    cmocka_unit_test(pruned_journal),
    cmocka_unit_test(finds_each_fault),
    cmocka_unit_test(finds_every_flipped_bit),
};
BH_TEST_MAIN(tests)
