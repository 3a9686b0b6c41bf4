#include "base/base64.h"

#include "base/test.h"

/* RFC 4648, section 10, and what a strict decoder must refuse. */
static const struct {
    const char *name, *bytes;
    size_t length;
    const char *text;
} pairs[] = {
    { "empty", "", 0, "" },
    { "one", "f", 1, "Zg==" },
    { "two", "fo", 2, "Zm8=" },
    { "three", "foo", 3, "Zm9v" },
    { "four", "foob", 4, "Zm9vYg==" },
    { "five", "fooba", 5, "Zm9vYmE=" },
    { "six", "foobar", 6, "Zm9vYmFy" },
    { "last letters", "\xfb\xff\xbf", 3, "+/+/" },
    { "zeros", "\0\0\0\0", 4, "AAAAAA==" },
};

static void
test_pairs(void **state)
{
    for (size_t i = 0; i < BH_COUNT(pairs); i++) {
        char text[32], bytes[32];
        struct bh_buf out, back;

        bh_buf_init_fixed(&out, text, sizeof text);
        bh_buf_init_fixed(&back, bytes, sizeof bytes);
        bh_base64_encode(&out, pairs[i].bytes, pairs[i].length);
        BH_CHECK_STR(pairs[i].name, bh_buf_text(&out), pairs[i].text);
        BH_CHECK(pairs[i].name, bh_base64_decode(&back, out.bytes, out.length));
        BH_CHECK_EQ(pairs[i].name, back.length, pairs[i].length);
        BH_CHECK_EQ(pairs[i].name, memcmp(bytes, pairs[i].bytes, pairs[i].length), 0);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text;
} refused[] = {
    { "no padding", "Zg" },
    { "half the padding", "Zg=" },
    { "only padding", "====" },
    { "three padding characters", "Z===" },
    { "three padding characters behind a zero", "A===" },
    { "padding in the middle", "Zg==Zg==" },
    { "padding before a digit", "Zg=v" },
    { "stray last bits of one byte", "Zh==" },
    { "stray last bits of two bytes", "Zm9=" },
    { "a blank", "Zm 9" },
    { "a line break", "Zm9v\n" },
    { "the URL alphabet", "-_-_" },
    { "not ASCII", "\xc3\xa9\xc3\xa9" },
};

static void
test_refused(void **state)
{
    for (size_t i = 0; i < BH_COUNT(refused); i++) {
        char bytes[32];
        struct bh_buf out;

        bh_buf_init_fixed(&out, bytes, sizeof bytes);
        bh_buf_putc(&out, '#');
        BH_CHECK(refused[i].name, !bh_base64_decode(&out, refused[i].text, strlen(refused[i].text)));
        BH_CHECK_EQ(refused[i].name, out.length, 1);
    }
    BH_CHECK_DONE();
}

static void
test_no_room(void **state)
{
    char bytes[5];
    struct bh_buf out;

    bh_buf_init_fixed(&out, bytes, sizeof bytes);
    BH_CHECK("six bytes into five", !bh_base64_decode(&out, "Zm9vYmFy", 8));
    BH_CHECK_EQ("nothing kept", out.length, 0);
    BH_CHECK("overflow", out.overflow);
    BH_CHECK_DONE();
}

/* Longer than what is written at once: there and back, and a bad digit anywhere is seen. */
static void
test_long(void **state)
{
    unsigned char bytes[400];
    char text[600], back[400];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        struct bh_buf out, in;

        bh_buf_init_fixed(&out, text, sizeof text);
        bh_base64_encode(&out, bytes, length);
        BH_CHECK_EQ("length", out.length, (length + 2) / 3 * 4);
        bh_buf_init_fixed(&in, back, length);
        BH_CHECK("decoded", bh_base64_decode(&in, text, out.length));
        BH_CHECK("same", in.length == length && memcmp(back, bytes, length) == 0);
    }
    /* by Python's base64: from the middle of all 400 bytes */
    BH_CHECK("as others write it", memcmp(text + 240, "7PP6AQgPFh0kKzI5QEdOVVxjanF4f4aNlJuiqbC3", 40) == 0);
    for (size_t at = 0; at < 534; at++) {
        struct bh_buf in;
        char kept = text[at];

        bh_buf_init_fixed(&in, back, sizeof back);
        text[at] = '*';
        BH_CHECK("refused", !bh_base64_decode(&in, text, 536) && in.length == 0);
        text[at] = kept;
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_pairs), cmocka_unit_test(test_long),
                                           cmocka_unit_test(test_refused), cmocka_unit_test(test_no_room) };

BH_TEST_MAIN(tests)
