#include "runtime/own_files.h"

#include <ftw.h>
#include <unistd.h>

#include "base/test.h"

static struct bh_masked_list list;

static const struct bh_masked *
find(const char *path)
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
    BH_CHECK_EQ("a file", find("/proc/vmstat")->kind, BH_MASKED_FILE);
    BH_CHECK_EQ("a folder", find("/sys/kernel")->kind, BH_MASKED_FOLDER);
    BH_CHECK_EQ("not here", find("/proc/timer_stats")->kind, BH_MASKED_ABSENT); /* went with Linux 4.11 */
    for (uint32_t i = 0; i < list.count; i++)
        BH_CHECK(list.items[i].path, !strchr(list.items[i].path, '*'));
    BH_CHECK_DONE();
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

/* Its place would be another than the one that is bound on /dev. */
static void
test_outside_dev(void **state)
{
    static const struct bh_sandbox_device device = { "/etc/null", 1, 3, true };
    char bundle[] = "/tmp/bulkhead-own-files-XXXXXX";
    struct bh_sandbox sandbox = { .bundle = mkdtemp(bundle), .devices = &device, .device_count = 1,
                                  .uid_base = getuid() };
    struct bh_err err;
    bh_rc rc = bh_own_files_make(&sandbox, &err);

    BH_CHECK("refused", rc == (getuid() == 0 ? BH_INVALID : rc) && rc != BH_OK);
    nftw(bundle, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_below_another),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_outside_dev),
    };

    bh_masked_look(&list);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
