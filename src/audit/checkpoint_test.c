#include "audit/checkpoint.h"

#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* Checked with Go's sumdb/note when it was made (facts/security.md 2.3). */
#define SITE_VKEY "bulkhead.example/audit/site-a+02e1a55e+AVIz9TUv/m0mO3ff/vBSuQ0D4SN/NVG8/OYHWMYxHe3+"
#define SITE_ROOT "jqh3X003bnRTTFxbz0d18+9X44I5tZxIawN8b61/FQQ="
#define SITE_LINE                                                                                            \
    "— bulkhead.example/audit/site-a "                                                                     \
    "AuGlXkS9Tm80d3/9aNg1hgbM5l5zbFP0VhjHxOjcLArGIqdrPHgKNLd4c9T2C+wtietU54NkZoRomZIUKvwF"                   \
    "2CUqYA0=\n"
#define WITNESS_LINE                                                                                         \
    "— witness.example/w1 "                                                                                \
    "lB4D5QAAAABqsT484r93eIaAgX9WvGGZ1niUwSMLgap3qDLB4+23KOO/FW+vlOBBL0Q1hcsDxMRFQQceFJrf"                   \
    "U3AkGeW5RXvE1nMjDg==\n"
#define SITE_NOTE "bulkhead.example/audit/site-a\n700\n" SITE_ROOT "\n\n" SITE_LINE WITNESS_LINE

static void
opens_the_sample(void **state)
{
    struct bh_checkpoint checkpoint;
    struct bh_note_key key;
    char body[256];
    struct bh_buf out;
    struct bh_err err;

    assert_int_equal(bh_note_key_parse(crypto, SITE_VKEY, &key, &err), BH_OK);
    assert_int_equal(bh_checkpoint_open(crypto, &key, SITE_NOTE, &checkpoint, &err), BH_OK);
    assert_string_equal(checkpoint.origin, "bulkhead.example/audit/site-a");
    assert_int_equal(checkpoint.size, 700);
    bh_buf_init_fixed(&out, body, sizeof body);
    bh_checkpoint_format(&out, &checkpoint);
    assert_string_equal(bh_buf_text(&out), "bulkhead.example/audit/site-a\n700\n" SITE_ROOT "\n");
}

#define WITNESS_VKEY "witness.example/w1+941e03e5+BAuxA1jIvE6LukWP6Vs0LSyxETVVqqjXQKIyzfqHFjQ+"

/* The sample's witness, and notes that it did not cosign as they stand. */
static void
witnesses(void **state)
{
    struct bh_note_key witness;
    char note[] = SITE_NOTE;
    uint64_t time_s = 0;
    struct bh_err err;

    BH_CHECK_EQ("no witness", bh_note_witness_parse(crypto, SITE_VKEY, &witness, &err), BH_INVALID);
    BH_CHECK_EQ("no log", bh_note_key_parse(crypto, WITNESS_VKEY, &witness, &err), BH_INVALID);
    assert_int_equal(bh_note_witness_parse(crypto, WITNESS_VKEY, &witness, &err), BH_OK);
    BH_CHECK_EQ("cosigned", bh_note_cosigned(crypto, &witness, SITE_NOTE, &time_s, &err), BH_OK);
    BH_CHECK_EQ("when", time_s, 0x6ab13e3c);
    BH_CHECK_EQ("by the log alone",
                bh_note_cosigned(crypto, &witness,
                                 "bulkhead.example/audit/site-a\n700\n" SITE_ROOT "\n\n" SITE_LINE, &time_s,
                                 &err),
                BH_NOT_FOUND);
    *strstr(note, "700") = '8';
    BH_CHECK_EQ("another size", bh_note_cosigned(crypto, &witness, note, &time_s, &err), BH_DENIED);
    memcpy(note, SITE_NOTE, sizeof note);
    *strstr(note, "AAABqs") = 'B'; /* the time */
    BH_CHECK_EQ("another time", bh_note_cosigned(crypto, &witness, note, &time_s, &err), BH_DENIED);
    witness.id[0] ^= 1;
    BH_CHECK_EQ("another key", bh_note_cosigned(crypto, &witness, SITE_NOTE, &time_s, &err), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

/* A log's own key, with checkpoints that it signed but should not have. */
static void
signs_and_refuses(void **state)
{
    static const struct {
        const char *name, *text;
        bh_rc rc;
    } rows[] = {
        { "good", "log.example/a\n12\n" SITE_ROOT "\n", BH_OK },
        { "empty log", "log.example/a\n0\n" SITE_ROOT "\n", BH_OK },
        { "another log", "log.example/b\n12\n" SITE_ROOT "\n", BH_DENIED },
        { "leading zero", "log.example/a\n012\n" SITE_ROOT "\n", BH_INVALID },
        { "no number", "log.example/a\n-1\n" SITE_ROOT "\n", BH_INVALID },
        { "size too large", "log.example/a\n18446744073709551616\n" SITE_ROOT "\n", BH_INVALID },
        { "short root", "log.example/a\n12\nAAAA\n", BH_INVALID },
        { "no root", "log.example/a\n12\n", BH_INVALID },
        { "extension line", "log.example/a\n12\n" SITE_ROOT "\nmore\n", BH_INVALID },
        { "no origin", "\n12\n" SITE_ROOT "\n", BH_DENIED },
    };
    uint8_t private_key[32] = { 7 }, public_key[32];
    struct bh_note_key key;
    struct bh_err err;

    assert_int_equal(crypto->public_of(private_key, public_key, &err), BH_OK);
    assert_int_equal(bh_note_key_make(crypto, "log.example/a", public_key, &key, &err), BH_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bh_checkpoint checkpoint = { .size = 99 };
        char note[1024];
        struct bh_buf out;

        bh_buf_init_fixed(&out, note, sizeof note);
        bh_buf_puts(&out, rows[i].text);
        assert_int_equal(bh_note_sign(crypto, "log.example/a", private_key, &out, &err), BH_OK);
        BH_CHECK_EQ(rows[i].name, bh_checkpoint_open(crypto, &key, bh_buf_text(&out), &checkpoint, &err),
                    rows[i].rc);
        BH_CHECK_EQ(rows[i].name, checkpoint.size == 99, rows[i].rc != BH_OK);
    }
    BH_CHECK_DONE();
}

static void
round_trip(void **state)
{
    struct bh_checkpoint made = { "log.example/a", UINT64_MAX, { 1, 2, 3 } }, read;
    uint8_t private_key[32] = { 9 }, public_key[32];
    struct bh_note_key key;
    char note[1024];
    struct bh_buf out;
    struct bh_err err;

    bh_buf_init_fixed(&out, note, sizeof note);
    assert_int_equal(crypto->public_of(private_key, public_key, &err), BH_OK);
    assert_int_equal(bh_note_key_make(crypto, made.origin, public_key, &key, &err), BH_OK);
    assert_int_equal(bh_checkpoint_sign(crypto, &made, private_key, &out, &err), BH_OK);
    assert_int_equal(bh_checkpoint_open(crypto, &key, bh_buf_text(&out), &read, &err), BH_OK);
    assert_true(read.size == made.size);
    assert_memory_equal(read.root, made.root, sizeof read.root);
    made.origin[0] = '+';
    bh_buf_clear(&out);
    assert_int_equal(bh_checkpoint_sign(crypto, &made, private_key, &out, &err), BH_INVALID);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(opens_the_sample),
    cmocka_unit_test(witnesses),
    cmocka_unit_test(signs_and_refuses),
    cmocka_unit_test(round_trip),
};
BH_TEST_MAIN(tests)
