#include "base/buf.h"

#include "base/test.h"

static void
buf_test_put_texts(struct bh_buf *buf)
{
    bh_buf_puts(buf, "ab");
    bh_buf_putc(buf, 'c');
    bh_buf_put(buf, "def", 2);
    bh_buf_put(buf, NULL, 0);
}

static void
put_least(struct bh_buf *buf)
{
    bh_buf_put_i64(buf, INT64_MIN);
}

static void
put_largest(struct bh_buf *buf)
{
    bh_buf_put_u64(buf, UINT64_MAX);
}

static void
put_zeros(struct bh_buf *buf)
{
    bh_buf_put_u64(buf, 0);
    bh_buf_put_i64(buf, 0);
    bh_buf_put_i64(buf, -1);
}

static void
buf_test_put_hex(struct bh_buf *buf)
{
    bh_buf_put_hex(buf, "\x00\x0f\xf0\xff", 4);
}

static void
put_format(struct bh_buf *buf)
{
    bh_buf_printf(buf, "%s=%d", "x", 12);
    bh_buf_printf(buf, "%s", "");
}

static const struct {
    const char *name;
    void (*put)(struct bh_buf *);
    const char *text;
} writers[] = {
    { "texts", buf_test_put_texts, "abcde" },
    { "least number", put_least, "-9223372036854775808" },
    { "largest number", put_largest, "18446744073709551615" },
    { "zeros", put_zeros, "00-1" },
    { "hex", buf_test_put_hex, "000ff0ff" },
    { "format", put_format, "x=12" },
};

static void
test_writers(void **state)
{
    for (size_t i = 0; i < BH_COUNT(writers); i++) {
        char memory[64];
        struct bh_buf fixed, grown;

        bh_buf_init_fixed(&fixed, memory, sizeof memory);
        bh_buf_init(&grown, 64);
        writers[i].put(&fixed);
        writers[i].put(&grown);
        BH_CHECK_STR(writers[i].name, bh_buf_text(&fixed), writers[i].text);
        BH_CHECK_STR(writers[i].name, bh_buf_text(&grown), writers[i].text);
        bh_buf_fini(&grown);
    }
    BH_CHECK_DONE();
}

/* In memory of every size too small: overflow, nothing written behind it. */
static void
test_fixed_never_passes_its_end(void **state)
{
    for (size_t i = 0; i < BH_COUNT(writers); i++)
        for (size_t size = 0; size < strlen(writers[i].text); size++) {
            char memory[64];
            struct bh_buf buf;

            memset(memory, '#', sizeof memory);
            bh_buf_init_fixed(&buf, memory, size);
            writers[i].put(&buf);
            BH_CHECK(writers[i].name, buf.overflow);
            BH_CHECK(writers[i].name, buf.length <= size);
            BH_CHECK_EQ(writers[i].name, memory[size], '#');
            BH_CHECK(writers[i].name, bh_buf_text(&buf) == NULL);
        }
    BH_CHECK_DONE();
}

static void
test_growing(void **state)
{
    struct bh_buf buf;

    bh_buf_init(&buf, 1000);
    for (int i = 0; i < 1000; i++)
        bh_buf_putc(&buf, (char)('a' + i % 26));
    BH_CHECK_EQ("up to the maximum", buf.length, 1000);
    BH_CHECK("no overflow yet", !buf.overflow);
    BH_CHECK_EQ("first", buf.bytes[0], 'a');
    BH_CHECK_EQ("last", buf.bytes[999], 'a' + 999 % 26);
    bh_buf_putc(&buf, '!');
    BH_CHECK("overflow", buf.overflow);
    BH_CHECK_EQ("nothing was written", buf.length, 1000);
    bh_buf_clear(&buf);
    BH_CHECK_STR("usable again", bh_buf_text(&buf), "");
    bh_buf_fini(&buf);
    bh_buf_puts(&buf, "and after fini");
    BH_CHECK_STR("after fini", bh_buf_text(&buf), "and after fini");
    bh_buf_fini(&buf);
    BH_CHECK_DONE();
}

static void
test_printf_needs_room_for_its_nul(void **state)
{
    char memory[8];
    struct bh_buf buf;

    bh_buf_init_fixed(&buf, memory, 4);
    bh_buf_printf(&buf, "%s", "abc");
    BH_CHECK_STR("one byte to spare", bh_buf_text(&buf), "abc");
    bh_buf_init_fixed(&buf, memory, 3);
    bh_buf_printf(&buf, "%s", "abc");
    BH_CHECK("none to spare", buf.overflow);
    BH_CHECK_EQ("none to spare", buf.length, 0);
    BH_CHECK_DONE();
}

static void
test_lengths_that_wrap(void **state)
{
    struct bh_buf buf;

    bh_buf_init(&buf, SIZE_MAX);
    bh_buf_puts(&buf, "abc");
    bh_buf_put(&buf, "", SIZE_MAX - 2);
    BH_CHECK("overflow", buf.overflow);
    BH_CHECK_EQ("nothing was written", buf.length, 3);
    bh_buf_fini(&buf);
    BH_CHECK_DONE();
}

/* After an overflow even what would fit is dropped: no text with a hole in it. */
static void
test_overflow_is_sticky(void **state)
{
    char memory[4];
    struct bh_buf buf;

    bh_buf_init_fixed(&buf, memory, sizeof memory);
    bh_buf_puts(&buf, "ab");
    bh_buf_puts(&buf, "too long");
    bh_buf_putc(&buf, 'c');
    BH_CHECK_EQ("length", buf.length, 2);
    bh_buf_clear(&buf);
    bh_buf_puts(&buf, "abc");
    BH_CHECK_STR("cleared", bh_buf_text(&buf), "abc");
    BH_CHECK_DONE();
}

static void
test_drop(void **state)
{
    char memory[16];
    struct bh_buf buf;

    bh_buf_init_fixed(&buf, memory, sizeof memory);
    bh_buf_puts(&buf, "0123456789");
    bh_buf_drop(&buf, 0);
    bh_buf_drop(&buf, 4);
    BH_CHECK_STR("four", bh_buf_text(&buf), "456789");
    bh_buf_drop(&buf, 6);
    BH_CHECK_STR("all", bh_buf_text(&buf), "");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_writers),
    cmocka_unit_test(test_fixed_never_passes_its_end),
    cmocka_unit_test(test_growing),
    cmocka_unit_test(test_printf_needs_room_for_its_nul),
    cmocka_unit_test(test_lengths_that_wrap),
    cmocka_unit_test(test_overflow_is_sticky),
    cmocka_unit_test(test_drop),
};

BH_TEST_MAIN(tests)
