/* Epochs over starts and over states that were put back. */

#include "daemon/journal/epoch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "wire/message.h"

static char folder[40], path[60];
static uint32_t next_id;

static bh_rc
count_up(void *ret_bytes, size_t length, struct bh_err *err)
{
    assert_int_equal(length, sizeof next_id);
    *(uint32_t *)ret_bytes = next_id++;
    return BH_OK;
}

static struct bh_crypto_ops
epoch_begin(const char *text)
{
    struct bh_err err;

    snprintf(folder, sizeof folder, "/tmp/bh-epoch-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/epochs", folder);
    if (text)
        assert_int_equal(bh_file_replace(path, text, strlen(text), 0600, &err), BH_OK);
    next_id = 0; /* which is no id */
    return (struct bh_crypto_ops){ .random = count_up };
}

static void
epoch_end(void)
{
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

/* What a start makes of the epochs that stand in the file, by the store's next numbers. */
static void
test_open(void **state)
{
    static const struct {
        const char *name, *text;
        struct bh_epoch next;
        uint32_t count;
        bh_rc rc;
    } cases[] = {
        { "the first", NULL, { 0, 1, 0, 1, 1 }, 1, BH_OK },
        { "after jobs", "0000000a 1 0 1 1\n", { 0, 5, 900, 4, 2 }, 2, BH_OK },
        { "nothing was given out", "0000000a 1 0 1 1\n0000000b 5 900 4 2\n", { 0, 5, 900, 4, 2 }, 2, BH_OK },
        { "a store from before", "0000000a 1 0 1 1\n0000000b 5 900 4 2\n", { 0, 3, 500, 3, 2 }, 2, BH_OK },
        { "one from before all", "0000000a 2 0 1 1\n0000000b 5 900 4 2\n", { 0, 1, 0, 1, 1 }, 1, BH_OK },
        { "cut off", "0000000a 1 0 1 1\n0000000b 5", { 0, 9, 900, 4, 2 }, 0, BH_INVALID },
        { "no number", "0000000a 1 0 x 1\n", { 0, 9, 900, 4, 2 }, 0, BH_INVALID },
        { "no id", "0 1 0 1 1\n", { 0, 9, 900, 4, 2 }, 0, BH_INVALID },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_crypto_ops crypto = epoch_begin(cases[i].text);
        static struct bh_epochs epochs;
        struct bh_err err;

        BH_CHECK_EQ(cases[i].name, bh_epochs_open(&epochs, folder, &cases[i].next, &crypto, &err),
                    cases[i].rc);
        if (cases[i].rc == BH_OK) {
            BH_CHECK_EQ(cases[i].name, epochs.count, cases[i].count);
            BH_CHECK_EQ(cases[i].name, epochs.items[epochs.count - 1].id, 1);
            BH_CHECK_EQ(cases[i].name, bh_epochs_of_job(&epochs, cases[i].next.job), 1);
        }
        epoch_end();
    }
    BH_CHECK_DONE();
}

/* Jobs keep their epoch over starts; a number that is given out again has another. */
static void
test_restored(void **state)
{
    struct bh_crypto_ops crypto = epoch_begin(NULL);
    static struct bh_epochs epochs;
    static const struct bh_epoch starts[] = {
        { 0, 1, 0, 1, 1 },
        { 0, 4, 100, 4, 1 },
        { 0, 9, 300, 9, 1 },
        { 0, 4, 100, 4, 1 },
    };
    static const uint32_t of_job_5[] = { 1, 2, 2, 4 };
    struct bh_msg_epoch items[BH_WIRE_EPOCHS_MAX];
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(starts); i++) {
        assert_int_equal(bh_epochs_open(&epochs, folder, &starts[i], &crypto, &err), BH_OK);
        BH_CHECK_EQ("job 5", bh_epochs_of_job(&epochs, 5), of_job_5[i]);
        BH_CHECK_EQ("job 2", bh_epochs_of_job(&epochs, 2), 1);
    }
    BH_CHECK_EQ("job 0", bh_epochs_of_job(&epochs, 0), 0);
    BH_CHECK_EQ("told", bh_epochs_list(&epochs, items, BH_WIRE_EPOCHS_MAX), 2);
    BH_CHECK_EQ("first", items[0].id, 1);
    BH_CHECK_EQ("and last", items[1].id, 4);
    BH_CHECK_EQ("from", items[1].order, 100);
    epoch_end();
    BH_CHECK_DONE();
}

/* The file does not grow for ever. */
static void
test_bound(void **state)
{
    struct bh_crypto_ops crypto = epoch_begin(NULL);
    static struct bh_epochs epochs;
    struct bh_msg_epoch items[BH_WIRE_EPOCHS_MAX];
    struct bh_epoch next = { 0, 1, 0, 1, 1 };
    struct bh_err err;

    for (uint32_t i = 0; i < BH_EPOCHS_MAX + 10; i++, next.job++)
        assert_int_equal(bh_epochs_open(&epochs, folder, &next, &crypto, &err), BH_OK);
    BH_CHECK_EQ("the last so many", epochs.count, BH_EPOCHS_MAX);
    BH_CHECK_EQ("told of", bh_epochs_list(&epochs, items, BH_WIRE_EPOCHS_MAX), BH_WIRE_EPOCHS_MAX);
    BH_CHECK_EQ("the newest last", items[BH_WIRE_EPOCHS_MAX - 1].id, BH_EPOCHS_MAX + 10);
    epoch_end();
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_open),
    cmocka_unit_test(test_restored),
    cmocka_unit_test(test_bound),
};
BH_TEST_MAIN(tests)
