#include "image/tar.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"

struct header {
    const char *name, *uid, *size;
    char type;
};

/* One header, and its content of zeros; how many bytes. */
static size_t
write_entry(uint8_t *out, const struct header *header, size_t content)
{
    uint32_t sum = 0;

    memset(out, 0, BH_TAR_BLOCK + content);
    snprintf((char *)out, 100, "%s", header->name);
    snprintf((char *)out + 108, 8, "%s", header->uid);
    snprintf((char *)out + 116, 8, "0");
    snprintf((char *)out + 124, 12, "%s", header->size);
    out[156] = (uint8_t)header->type;
    memcpy(out + 257, "ustar\00000", 8);
    memset(out + 148, ' ', 8);
    for (size_t i = 0; i < BH_TAR_BLOCK; i++)
        sum += out[i];
    snprintf((char *)out + 148, 8, "%06o", sum);
    return BH_TAR_BLOCK + content;
}

static bh_rc
feed(const uint8_t *bytes, size_t length, struct bh_tar_budget budget, struct bh_err *err)
{
    static struct bh_tar tar;
    bh_rc rc;

    bh_tar_init(&tar, &budget);
    rc = bh_tar_feed(&tar, bytes, length, err);
    return rc == BH_OK ? bh_tar_finish(&tar, err) : rc;
}

static void
test_headers(void **state)
{
    static const struct {
        const char *what;
        struct header header;
        size_t content;
        bh_rc rc;
    } cases[] = {
        { "a file", { "a", "1000", "1000", '0' }, 512, BH_OK },
        { "a folder", { "a/", "0", "0", '5' }, 0, BH_OK },
        { "a link", { "a", "0", "0", '2' }, 0, BH_OK },
        { "a character device", { "a", "0", "0", '3' }, 0, BH_DENIED },
        { "a block device", { "a", "0", "0", '4' }, 0, BH_DENIED },
        { "a sparse file", { "a", "0", "0", 'S' }, 0, BH_DENIED },
        { "upward", { "../a", "0", "0", '0' }, 0, BH_DENIED },
        { "upward at the end", { "a/..", "0", "0", '5' }, 0, BH_DENIED },
        { "two dots in a name", { "a..b/..c", "0", "0", '0' }, 0, BH_OK },
        { "the last id", { "a", "177777", "0", '0' }, 0, BH_OK },
        { "one more", { "a", "200000", "0", '0' }, 0, BH_DENIED },
        { "no name", { "", "0", "0", '0' }, 0, BH_INVALID },
        { "a folder with a content", { "a", "0", "10", '5' }, 512, BH_INVALID },
        { "no number", { "a", "x", "0", '0' }, 0, BH_INVALID },
        { "cut off", { "a", "0", "2000", '0' }, 512, BH_INVALID },
        { "absurd", { "a", "0", "77777777777", '0' }, 512, BH_FULL },
    };
    static uint8_t bytes[4096];

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        size_t length = write_entry(bytes, &cases[i].header, cases[i].content);
        struct bh_err err;

        BH_CHECK_EQ(cases[i].what, feed(bytes, length, (struct bh_tar_budget){ 1 << 20, 10 }, &err),
                    cases[i].rc);
    }
    BH_CHECK_DONE();
}

static void
test_damaged(void **state)
{
    uint8_t bytes[BH_TAR_BLOCK];
    struct bh_err err;
    size_t length = write_entry(bytes, &(struct header){ "a", "0", "0", '0' }, 0);

    bytes[0] = 'b';
    assert_int_equal(feed(bytes, length, (struct bh_tar_budget){ 1, 1 }, &err), BH_INVALID);
    bytes[0] = 'a';
    assert_int_equal(feed(bytes, length, (struct bh_tar_budget){ 1, 1 }, &err), BH_OK);
    assert_int_equal(feed(bytes, length, (struct bh_tar_budget){ 1, 0 }, &err), BH_FULL);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_headers), cmocka_unit_test(test_damaged) };
BH_TEST_MAIN(tests)
