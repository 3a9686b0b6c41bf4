#include "audit/tlog_proof.h"

#include "audit/merkle.h"
#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;
static const uint8_t private_key[32] = { 9 };
static const char origin[] = "bulkhead.example/audit/site-a";

enum { LEAVES = 13 };

static uint8_t hashes[LEAVES][32];
static struct bh_note_key key;
static struct bh_err err;

static bh_rc
tlog_proof_subtree(void *self, unsigned level, uint64_t index, uint8_t ret_hash[32], struct bh_err *e)
{
    bh_merkle_root(crypto, (const uint8_t(*)[32])hashes + (index << level), (size_t)1 << level, ret_hash);
    return BH_OK;
}

/* The proof that leaf 6 is in the log of 13, as text. */
static const char *
make_proof(void)
{
    static char text[BH_TLOG_PROOF_BYTES_MAX], note[1024];
    const struct bh_merkle_source source = { tlog_proof_subtree, NULL };
    const uint64_t where[2] = { 6, LEAVES };
    struct bh_checkpoint checkpoint = { .size = LEAVES };
    struct bh_tlog_proof proof = { .extra = "aGk=", .extra_length = 4, .index = 6, .note = note };
    uint8_t public_key[32];
    struct bh_buf out;

    for (uint32_t i = 0; i < LEAVES; i++)
        bh_merkle_leaf(crypto, &i, sizeof i, hashes[i]);
    assert_int_equal(crypto->public_of(private_key, public_key, &err), BH_OK);
    assert_int_equal(bh_note_key_make(crypto, origin, public_key, &key, &err), BH_OK);
    memcpy(checkpoint.origin, origin, sizeof origin);
    assert_int_equal(bh_proof_root(crypto, &source, LEAVES, checkpoint.root, &err), BH_OK);
    bh_buf_init_fixed(&out, note, sizeof note);
    assert_int_equal(bh_checkpoint_sign(crypto, &checkpoint, private_key, &out, &err), BH_OK);
    assert_non_null(bh_buf_text(&out));
    assert_int_equal(bh_proof_inclusion(crypto, &source, where, &proof.path, &err), BH_OK);
    bh_buf_init_fixed(&out, text, sizeof text);
    bh_tlog_proof_format(&out, &proof);
    assert_non_null(bh_buf_text(&out));
    return text;
}

static bh_rc
tlog_proof_check(const char *text, uint32_t leaf)
{
    struct bh_tlog_proof proof;
    bh_rc rc = bh_tlog_proof_parse(text, &proof, &err);

    return rc == BH_OK ? bh_tlog_proof_check(crypto, &key, &proof, hashes[leaf], &err) : rc;
}

static void
written_and_read(void **state)
{
    const char *text = make_proof();
    struct bh_tlog_proof proof;

    assert_memory_equal(text, "c2sp.org/tlog-proof@v1\nextra aGk=\nindex 6\n", 42);
    assert_int_equal(bh_tlog_proof_parse(text, &proof, &err), BH_OK);
    BH_CHECK_EQ("index", proof.index, 6);
    BH_CHECK_EQ("hashes", proof.path.count, 4);
    BH_CHECK_EQ("holds", bh_tlog_proof_check(crypto, &key, &proof, hashes[6], &err), BH_OK);
    BH_CHECK_EQ("size", proof.tree.size, LEAVES);
    BH_CHECK_EQ("extra", proof.extra_length, 4);
    BH_CHECK_EQ("another record", tlog_proof_check(text, 7), BH_CONFLICT);
    key.public_key[0] ^= 1;
    BH_CHECK_EQ("another key", tlog_proof_check(text, 6), BH_DENIED);
    BH_CHECK_DONE();
}

static void
tlog_proof_forms(void **state)
{
    static const char hash[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    static const struct {
        const char *name, *head, *body;
        bh_rc rc;
    } rows[] = {
        { "no hashes", "c2sp.org/tlog-proof@v1\nindex 0\n\n", "", BH_OK },
        { "extra", "c2sp.org/tlog-proof@v1\nextra aGk=\nindex 0\n\n", "", BH_OK },
        { "bad extra", "c2sp.org/tlog-proof@v1\nextra a\nindex 0\n\n", "", BH_INVALID },
        { "extra of padding", "c2sp.org/tlog-proof@v1\nextra aGk=aGk=\nindex 0\n\n", "", BH_INVALID },
        { "extra without end", "c2sp.org/tlog-proof@v1\nextra aGk=", "", BH_INVALID },
        { "extra behind", "c2sp.org/tlog-proof@v1\nindex 0\nextra aGk=\n\n", "", BH_INVALID },
        { "a hash", "c2sp.org/tlog-proof@v1\nindex 0\n", hash, BH_INVALID },
        { "version 2", "c2sp.org/tlog-proof@v2\nindex 0\n\n", "", BH_INVALID },
        { "leading zero", "c2sp.org/tlog-proof@v1\nindex 00\n\n", "", BH_INVALID },
        { "no index", "c2sp.org/tlog-proof@v1\n\n", "", BH_INVALID },
        { "no number", "c2sp.org/tlog-proof@v1\nindex \n\n", "", BH_INVALID },
        { "short hash", "c2sp.org/tlog-proof@v1\nindex 0\nAAAA\n\n", "", BH_INVALID },
        { "no hash", "c2sp.org/tlog-proof@v1\nindex 0\nx\n\n", "", BH_INVALID },
        { "empty", "", "", BH_INVALID },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bh_tlog_proof proof;
        char text[512];

        snprintf(text, sizeof text, "%s%s", rows[i].head, rows[i].body);
        BH_CHECK_EQ(rows[i].name, bh_tlog_proof_parse(text, &proof, &err), rows[i].rc);
    }
    BH_CHECK_DONE();
}

/* More hashes than any tree has levels. */
static void
too_many_hashes(void **state)
{
    static char text[BH_TLOG_PROOF_BYTES_MAX];
    struct bh_tlog_proof proof;
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_buf_puts(&out, "c2sp.org/tlog-proof@v1\nindex 0\n");
    for (unsigned i = 0; i < BH_PROOF_HASHES_MAX + 1; i++)
        bh_buf_puts(&out, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    bh_buf_puts(&out, "\n");
    assert_int_equal(bh_tlog_proof_parse(bh_buf_text(&out), &proof, &err), BH_INVALID);
}

static void
tlog_proof_every_bit(void **state)
{
    static char text[BH_TLOG_PROOF_BYTES_MAX];
    const char *good = make_proof();
    size_t length = strlen(good);

    for (size_t bit = 0; bit < 8 * length; bit++) {
        if (bit / 8 >= 29 && bit / 8 < 33)
            continue; /* `extra` is not signed: its user hashes it */
        memcpy(text, good, length + 1);
        text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
        if (tlog_proof_check(text, 6) == BH_OK)
            fail_msg("bit %zu flipped and still good", bit);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(written_and_read),
    cmocka_unit_test(tlog_proof_forms),
    cmocka_unit_test(too_many_hashes),
    cmocka_unit_test(tlog_proof_every_bit),
};
BH_TEST_MAIN(tests)
