#include "runtime/sandbox_files.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"

static struct bh_masked_list list;

static const struct bh_masked *
sandbox_files_test_find(const char *path)
{
    for (uint32_t i = 0; i < list.count; i++)
        if (strcmp(list.items[i].path, path) == 0)
            return &list.items[i];
    return NULL;
}

/* None lies below a folder that is covered: there is no place to put it. */
static void
test_none_below_another(void **state)
{
    for (uint32_t i = 0; i < list.count; i++) {
        for (uint32_t k = 0; k < list.count; k++) {
            size_t length = strlen(list.items[k].path);

            if (i != k && strncmp(list.items[i].path, list.items[k].path, length) == 0)
                BH_CHECK(list.items[i].path, list.items[i].path[length] != '/' && list.items[i].path[length]);
        }
    }
    BH_CHECK_DONE();
}

static void
test_kinds(void **state)
{
    BH_CHECK_EQ("a file", sandbox_files_test_find("/proc/vmstat")->kind, BH_MASKED_FILE);
    BH_CHECK_EQ("a folder", sandbox_files_test_find("/sys/kernel")->kind, BH_MASKED_FOLDER);
    BH_CHECK_EQ("not here", sandbox_files_test_find("/proc/timer_stats")->kind,
                BH_MASKED_ABSENT); /* went with Linux 4.11 */
    for (uint32_t i = 0; i < list.count; i++)
        BH_CHECK(list.items[i].path, !strchr(list.items[i].path, '*'));
    BH_CHECK_DONE();
}

/* The machine's disks come last: they are what there may be too many of. */
static void
test_many_last(void **state)
{
    static const char *const rows[] = {
#define BH_MASKED(path) path,
#include "tables/masked.tbl"
#undef BH_MASKED
    };

    for (size_t i = 1; i < BH_COUNT(rows); i++)
        BH_CHECK(rows[i], strchr(rows[i], '*') || !strchr(rows[i - 1], '*'));
    BH_CHECK_DONE();
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

/* A list that is not whole is none. */
static void
test_too_many(void **state)
{
    static struct bh_masked_list many;
    char folder[] = "/tmp/bulkhead-own-files-XXXXXX", path[80];
    struct bh_err err;

    assert_non_null(mkdtemp(folder));
    for (int i = 0; i <= BH_MASKED_MAX; i++) {
        if (i == BH_MASKED_MAX) {
            snprintf(path, sizeof path, "%s/*", folder);
            BH_CHECK_EQ("as many as there is room for", bh_masked_add(&many, path, &err), BH_OK);
            BH_CHECK_EQ("all", many.count, BH_MASKED_MAX);
        }
        snprintf(path, sizeof path, "%s/%d", folder, i);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    many.count = 0;
    snprintf(path, sizeof path, "%s/*", folder);
    BH_CHECK_EQ("one more", bh_masked_add(&many, path, &err), BH_FULL);
    BH_CHECK(err.msg, strstr(err.msg, "more than the 2000 disks") != NULL);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    BH_CHECK_DONE();
}

/* Its place would be another than the one that is bound on /dev. */
static void
test_outside_dev(void **state)
{
    static const struct bh_sandbox_device device = { "/etc/null", 1, 3, true };
    char bundle[] = "/tmp/bulkhead-own-files-XXXXXX";
    struct bh_sandbox sandbox = {
        .bundle = mkdtemp(bundle), .devices = &device, .device_count = 1, .uid_base = getuid()
    };
    struct bh_err err;
    bh_rc rc = bh_sandbox_files_make(&sandbox, &err);

    BH_CHECK("refused", rc == (getuid() == 0 ? BH_INVALID : rc) && rc != BH_OK);
    nftw(bundle, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_below_another), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_many_last),          cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_outside_dev),
    };
    struct bh_err err;

    if (bh_masked_read(&list, &err) != BH_OK)
        return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
