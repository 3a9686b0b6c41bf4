#include "audit/note.h"

#include "base/base64.h"
#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* The worked example of C2SP's signed-note. */
#define SPEC_VKEY "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
#define SPEC_TEXT "This is an example message.\n"
#define SPEC_LINE                                                                                            \
    "— example.com/foo "                                                                                   \
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72"                   \
    "IneyaQM=\n"
#define OTHER_LINE                                                                                           \
    "— example.com/bar "                                                                                   \
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72"                   \
    "IneyaQM=\n"

static struct bh_note_key
spec_key(void)
{
    struct bh_note_key key;
    struct bh_err err;

    assert_int_equal(bh_note_key_parse(crypto, SPEC_VKEY, &key, &err), BH_OK);
    return key;
}

static void
keys(void **state)
{
    static const char *const refused[] = {
        "",
        "+",
        "example.com/foo",
        "example.com/foo+530d903a",
        "example.com/foo+530d903a+",
        "example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/fop+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/foo+530d903a+BOkyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2",
        "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2kAAAA",
        "exam ple+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
    };
    char text[BH_NODE_RECORD_VKEY_MAX];
    struct bh_note_key key = spec_key();
    struct bh_buf out;
    struct bh_err err;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_note_key_format(&out, &key);
    BH_CHECK_STR("written back", bh_buf_text(&out), SPEC_VKEY);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        BH_CHECK_EQ(refused[i], bh_note_key_parse(crypto, refused[i], &key, &err), BH_INVALID);
    BH_CHECK_DONE();
}

static void
notes(void **state)
{
    static const struct {
        const char *name, *note;
        bh_rc rc;
    } rows[] = {
        { "the example", SPEC_TEXT "\n" SPEC_LINE, BH_OK },
        { "unknown keys before and after", SPEC_TEXT "\n" OTHER_LINE SPEC_LINE OTHER_LINE, BH_OK },
        { "signed twice", SPEC_TEXT "\n" SPEC_LINE SPEC_LINE, BH_OK },
        { "another text", "This is an example massage.\n\n" SPEC_LINE, BH_DENIED },
        { "longer text", SPEC_TEXT "more\n\n" SPEC_LINE, BH_DENIED },
        { "only unknown keys", SPEC_TEXT "\n" OTHER_LINE, BH_DENIED },
        { "no signature", SPEC_TEXT "\n", BH_INVALID },
        { "no blank line", SPEC_TEXT SPEC_LINE, BH_INVALID },
        { "no last newline", SPEC_TEXT "\n— example.com/foo Uw2QOg==", BH_INVALID },
        { "hyphen for the dash", SPEC_TEXT "\n- example.com/foo Uw2QOg==\n", BH_INVALID },
        { "no name", SPEC_TEXT "\n—  Uw2QOg==\n", BH_INVALID },
        { "short signature", SPEC_TEXT "\n— example.com/foo Uw2QOg==\n", BH_DENIED },
        { "good, then short", SPEC_TEXT "\n" SPEC_LINE "— example.com/foo Uw2QOg==\n", BH_DENIED },
        { "good, then no base 64", SPEC_TEXT "\n" SPEC_LINE "— example.com/foo Uw2Q?\n", BH_INVALID },
        { "control character", "a\tb\n\n" SPEC_LINE, BH_INVALID },
        { "not UTF-8", "a\xff\n\n" SPEC_LINE, BH_INVALID },
        { "empty", "", BH_INVALID },
        { "junk behind", SPEC_TEXT "\n" SPEC_LINE "junk\n", BH_INVALID },
    };
    struct bh_note_key key = spec_key();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bh_err err;
        size_t length = 0;

        BH_CHECK_EQ(rows[i].name, bh_note_open(crypto, &key, rows[i].note, &length, &err), rows[i].rc);
        BH_CHECK_EQ(rows[i].name, length, rows[i].rc == BH_OK ? strlen(SPEC_TEXT) : 0);
    }
    BH_CHECK_DONE();
}

/* The example in the documentation of Go's sumdb/note, private key and all. */
static void
signs_as_go_does(void **state)
{
    static const char text[] = "If you think cryptography is the answer to your problem,\n"
                               "then you don't know what your problem is.\n";
    static const char want[] = "If you think cryptography is the answer to your problem,\n"
                               "then you don't know what your problem is.\n\n"
                               "— PeterNeumann "
                               "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqd"
                               "ngotpRZb6KE6RyyBwJnAM=\n";
    static const char secret[] = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
    uint8_t bytes[33];
    char note[512];
    struct bh_buf out;
    struct bh_err err;

    bh_buf_init_fixed(&out, bytes, sizeof bytes);
    assert_true(bh_base64_decode(&out, secret, strlen(secret)));
    bh_buf_init_fixed(&out, note, sizeof note);
    bh_buf_puts(&out, text);
    assert_int_equal(bh_note_sign(crypto, "PeterNeumann", bytes + 1, &out, &err), BH_OK);
    assert_string_equal(bh_buf_text(&out), want);
    bh_buf_init_fixed(&out, note, sizeof note);
    bh_buf_puts(&out, "no newline");
    assert_int_equal(bh_note_sign(crypto, "PeterNeumann", bytes + 1, &out, &err), BH_INVALID);
}

/* Whatever single bit of a note is flipped, it is not opened, or it is the note of
 * another signer. */
static void
note_every_bit(void **state)
{
    static const char good[] = SPEC_TEXT "\n" SPEC_LINE;
    struct bh_note_key key = spec_key();
    char note[sizeof good];

    for (size_t bit = 0; bit < 8 * (sizeof good - 1); bit++) {
        struct bh_err err;
        size_t length;

        memcpy(note, good, sizeof good);
        note[bit / 8] = (char)(note[bit / 8] ^ (1 << bit % 8));
        if (bh_note_open(crypto, &key, note, &length, &err) == BH_OK)
            fail_msg("bit %zu flipped and still good", bit);
    }
}

static void
note_make_key(uint8_t seed, uint8_t ret_private[32], struct bh_note_key *ret_key)
{
    uint8_t public_key[32];
    struct bh_err err;

    memset(ret_private, seed, 32);
    assert_int_equal(crypto->public_of(ret_private, public_key, &err), BH_OK);
    assert_int_equal(bh_note_key_make(crypto, "log.example/a", public_key, ret_key, &err), BH_OK);
}

/* A key follows another: notes of either are good to who knows both, one by both to all. */
static void
keys_that_follow_each_other(void **state)
{
    uint8_t secrets[3][32];
    struct bh_note_key alone[3], chain[BH_NODE_RECORD_KEYS_MAX];
    char vkeys[3 * BH_NODE_RECORD_VKEY_MAX], note[1024];
    struct bh_buf out;
    struct bh_err err;
    size_t length;

    bh_buf_init_fixed(&out, vkeys, sizeof vkeys);
    for (uint8_t i = 0; i < 3; i++) {
        note_make_key(i + 1, secrets[i], &alone[i]);
        if (i == 2) /* chain knows the first two */
            break;
        bh_note_key_format(&out, &alone[i]);
        bh_buf_puts(&out, "\n");
    }
    assert_int_equal(bh_note_keys_parse(crypto, bh_buf_text(&out), chain, &err), BH_OK);
    BH_CHECK("linked", chain[0].older == &chain[1] && !chain[1].older);
    bh_buf_init_fixed(&out, note, sizeof note);
    for (int i = 0; i < 3; i++) {
        bh_buf_clear(&out);
        bh_buf_puts(&out, "text\n");
        assert_int_equal(bh_note_sign(crypto, "log.example/a", secrets[i], &out, &err), BH_OK);
        BH_CHECK_EQ("by one of them", bh_note_open(crypto, chain, bh_buf_text(&out), &length, &err),
                    i < 2 ? BH_OK : BH_DENIED);
    }
    BH_CHECK_EQ("two", bh_note_sign_too(crypto, "log.example/a", secrets[1], &out, &err), BH_OK);
    for (int i = 0; i < 3; i++)
        BH_CHECK_EQ("by the others", bh_note_open(crypto, &alone[i], bh_buf_text(&out), &length, &err),
                    i > 0 ? BH_OK : BH_DENIED);
    BH_CHECK_EQ("length", length, 5);
    note[0] = 'T';
    BH_CHECK_EQ("changed", bh_note_open(crypto, chain, note, &length, &err), BH_DENIED);
    bh_buf_clear(&out);
    bh_buf_puts(&out, "text\n");
    BH_CHECK_EQ("no first one", bh_note_sign_too(crypto, "log.example/a", secrets[1], &out, &err),
                BH_INVALID);
    BH_CHECK_EQ("none", bh_note_keys_parse(crypto, "", chain, &err), BH_INVALID);
    BH_CHECK_EQ("junk", bh_note_keys_parse(crypto, "a\nb\n", chain, &err), BH_INVALID);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys),
    cmocka_unit_test(notes),
    cmocka_unit_test(signs_as_go_does),
    cmocka_unit_test(keys_that_follow_each_other),
    cmocka_unit_test(note_every_bit),
};
BH_TEST_MAIN(tests)
