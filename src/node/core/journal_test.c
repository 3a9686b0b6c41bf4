#include "node/core/journal.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

struct seen {
    char text[4096];
    uint32_t count;
};

static bh_rc
journal_test_read(void *self, const char *payload, size_t length, struct bh_err *err)
{
    struct seen *seen = self;

    snprintf(seen->text + strlen(seen->text), sizeof seen->text - strlen(seen->text), "%.*s,", (int)length,
             payload);
    seen->count++;
    return BH_OK;
}

static char folder[] = "/tmp/bh-journal-XXXXXX";
static char path[64];

static bh_rc
open_journal(struct seen *seen, struct bh_order_journal **ret_journal)
{
    struct bh_err err;

    memset(seen, 0, sizeof *seen);
    return bh_order_journal_open(path, journal_test_read, seen, ret_journal, &err);
}

static void
write_bytes(const char *bytes, size_t length)
{
    struct bh_err err;

    assert_int_equal(bh_file_replace(path, bytes, length, 0600, &err), BH_OK);
}

static void
journal_test_append(struct bh_order_journal *journal, const char *text)
{
    struct bh_err err;

    assert_int_equal(bh_order_journal_append(journal, text, strlen(text), &err), BH_OK);
}

/* Three entries, whole; their bytes for the tests that damage them. */
static size_t
three_entries(char *ret_bytes, size_t size)
{
    struct bh_order_journal *journal;
    struct seen seen;
    struct bh_buf text;
    struct bh_err err;

    unlink(path);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    journal_test_append(journal, "one");
    journal_test_append(journal, "two");
    journal_test_append(journal, "three");
    assert_int_equal(bh_order_journal_sync(journal, &err), BH_OK);
    bh_order_journal_close(journal);
    bh_buf_init_fixed(&text, ret_bytes, size);
    assert_int_equal(bh_file_read(path, size, &text, &err), BH_OK);
    return text.length;
}

static void
test_checksum(void **state)
{
    BH_CHECK_EQ("RFC 3720, 32 zeros", bh_crc32c((char[32]){ 0 }, 32), 0x8a9136aa);
    BH_CHECK_EQ("123456789", bh_crc32c("123456789", 9), 0xe3069283);
    BH_CHECK_DONE();
}

static void
test_reopen(void **state)
{
    struct bh_order_journal *journal;
    struct seen seen;
    char bytes[256];

    three_entries(bytes, sizeof bytes);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    BH_CHECK_STR("all, in order", seen.text, "one,two,three,");
    journal_test_append(journal, "four");
    bh_order_journal_close(journal);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    BH_CHECK_STR("appended", seen.text, "one,two,three,four,");
    bh_order_journal_close(journal);
    BH_CHECK_DONE();
}

/* A record that no caller syncs is synced within its time, and not before; after a sync nothing is
 * planned. */
static void
test_tick(void **state)
{
    const bh_ns soon = BH_JOURNAL_SYNC_WITHIN;
    struct bh_order_journal *journal;
    struct seen seen;
    struct bh_err err;
    bh_ns next;

    unlink(path);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    assert_int_equal(bh_order_journal_tick(journal, 100, &next, &err), BH_OK);
    BH_CHECK_EQ("nothing to sync", next, 0);
    journal_test_append(journal, "one");
    for (bh_ns now = 200; now < 200 + soon; now += soon / 4) {
        assert_int_equal(bh_order_journal_tick(journal, now, &next, &err), BH_OK);
        BH_CHECK_EQ("from when it was seen", next, 200 + soon);
        journal_test_append(journal, "more");
    }
    assert_int_equal(bh_order_journal_tick(journal, 200 + soon, &next, &err), BH_OK);
    BH_CHECK_EQ("done", next, 0);
    journal_test_append(journal, "two");
    assert_int_equal(bh_order_journal_tick(journal, 3 * soon, &next, &err), BH_OK);
    BH_CHECK_EQ("planned anew", next, 4 * soon);
    assert_int_equal(bh_order_journal_sync(journal, &err), BH_OK);
    assert_int_equal(bh_order_journal_tick(journal, 3 * soon + 1, &next, &err), BH_OK);
    BH_CHECK_EQ("an order synced it", next, 0);
    bh_order_journal_close(journal);
    BH_CHECK_DONE();
}

/* A crash may leave any prefix: what is whole stays, and writing goes on behind it. */
static void
test_cut_anywhere(void **state)
{
    char bytes[256], name[32];
    size_t length = three_entries(bytes, sizeof bytes);

    for (size_t cut = 0; cut <= length; cut++) {
        uint32_t whole = cut >= length ? 3 : cut >= 22 ? 2 : cut >= 11 ? 1 : 0;
        struct bh_order_journal *journal;
        struct seen seen;

        snprintf(name, sizeof name, "cut at %zu", cut);
        write_bytes(bytes, cut);
        BH_CHECK_EQ(name, open_journal(&seen, &journal), BH_OK);
        BH_CHECK_EQ(name, seen.count, whole);
        journal_test_append(journal, "next");
        bh_order_journal_close(journal);
        BH_CHECK_EQ(name, open_journal(&seen, &journal), BH_OK);
        BH_CHECK_EQ(name, seen.count, whole + 1);
        bh_order_journal_close(journal);
    }
    BH_CHECK_DONE();
}

/* A flipped bit in the last entry looks like a torn write; before it, it is damage. */
static void
test_flip_anywhere(void **state)
{
    char bytes[256], flipped[256], name[32];
    size_t length = three_entries(bytes, sizeof bytes);

    for (size_t at = 0; at < length; at++) {
        struct bh_order_journal *journal = NULL;
        struct seen seen;
        bh_rc rc;

        memcpy(flipped, bytes, length);
        flipped[at] ^= 0x10;
        snprintf(name, sizeof name, "flip at %zu", at);
        write_bytes(flipped, length);
        rc = open_journal(&seen, &journal);
        BH_CHECK_EQ(name, rc, at < 22 ? BH_INVALID : BH_OK);
        BH_CHECK(name, seen.count <= 2);
        bh_order_journal_close(journal);
    }
    BH_CHECK_DONE();
}

static void
test_rewrite(void **state)
{
    struct bh_order_journal *journal;
    struct seen seen;
    struct bh_err err;
    char bytes[256];

    three_entries(bytes, sizeof bytes);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    assert_int_equal(bh_order_journal_rewrite_begin(journal, &err), BH_OK);
    journal_test_append(journal, "dropped");
    bh_order_journal_rewrite_cancel(journal);
    journal_test_append(journal, "four");
    assert_int_equal(bh_order_journal_rewrite_begin(journal, &err), BH_OK);
    journal_test_append(journal, "all");
    assert_int_equal(bh_order_journal_rewrite_commit(journal, &err), BH_OK);
    journal_test_append(journal, "more");
    BH_CHECK_EQ("size", bh_order_journal_size(journal), 8 + 3 + 8 + 4);
    bh_order_journal_close(journal);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    BH_CHECK_STR("replaced", seen.text, "all,more,");
    bh_order_journal_close(journal);
    BH_CHECK_DONE();
}

/* A node killed in between leaves its half of a new file: on a full disk it takes the room of the old one. */
static void
test_rewrite_cut_off(void **state)
{
    struct bh_order_journal *journal;
    struct seen seen;
    struct bh_err err;
    char bytes[256], next[sizeof path + 8];

    snprintf(next, sizeof next, "%s.next", path);
    three_entries(bytes, sizeof bytes);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    assert_int_equal(bh_order_journal_rewrite_begin(journal, &err), BH_OK);
    journal_test_append(journal, "half");
    bh_order_journal_close(journal);
    BH_CHECK_EQ("left by the crash", access(next, F_OK), 0);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    BH_CHECK_EQ("removed at the start", access(next, F_OK), -1);
    BH_CHECK_EQ("entries", seen.count, 3);
    bh_order_journal_close(journal);
    BH_CHECK_DONE();
}

static void
test_too_long(void **state)
{
    static char long_text[BH_JOURNAL_FRAME_MAX + 1];
    struct bh_order_journal *journal;
    struct seen seen;
    struct bh_err err;

    unlink(path);
    assert_int_equal(open_journal(&seen, &journal), BH_OK);
    BH_CHECK_EQ("one too long", bh_order_journal_append(journal, long_text, sizeof long_text, &err), BH_FULL);
    BH_CHECK_EQ("nothing kept", bh_order_journal_size(journal), 0);
    BH_CHECK_EQ("longest", bh_order_journal_append(journal, long_text, sizeof long_text - 1, &err), BH_OK);
    bh_order_journal_close(journal);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_reopen),
        cmocka_unit_test(test_tick),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_flip_anywhere),
        cmocka_unit_test(test_rewrite),
        cmocka_unit_test(test_rewrite_cut_off),
        cmocka_unit_test(test_too_long),
    };
    int failed;

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/journal", folder);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(folder);
    return failed;
}
