#include "runtime/readback.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "runtime/device_filter.h"

enum { PATH_SIZE = 300 };

static const struct bh_sandbox_device lent[] = { { "/dev/nvidia0", 195, 0, true },
                                                 { "/dev/nvidia-caps/nvidia-cap3", 239, 3, false } };
#define STANDARD "c 1:3 rw\nc 1:5 rw\nc 1:7 rw\nc 1:8 rw\nc 1:9 rw\nc 5:0 rw\nc 5:2 rw\nc 136:* rw\n"

static void
readback_test_put_file(const char *folder, const char *name, const char *text)
{
    char path[PATH_SIZE];
    struct bh_err err;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(bh_dir_make(folder, 0700, &err), BH_OK);
    assert_int_equal(bh_file_replace(path, text, strlen(text), 0600, &err), BH_OK);
}

/* What readback_test_put_file made in a group of its own below `root`. */
static void
remove_all(const char *root, const char *group)
{
    static const char *const names[] = { "memory.max", "pids.max", "devices.list" };
    char path[PATH_SIZE];

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s%s/%s", root, group, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s%s", root, group);
    rmdir(path);
    snprintf(path, sizeof path, "%s/devices", root);
    rmdir(path);
    rmdir(root);
}

static void
limits_are_what_the_kernel_has(void **state)
{
    static const struct {
        const char *name, *memory, *pids;
        uint64_t bytes, processes;
    } cases[] = {
        { "limited", "67108864\n", "65\n", 67108864, 65 },
        { "version 2 without", "max\n", "max\n", UINT64_MAX, UINT64_MAX },
        { "version 1 without", "9223372036854771712\n", "max\n", UINT64_MAX, UINT64_MAX },
    };
    char root[] = "/tmp/bh-readback-XXXXXX", folder[PATH_SIZE];
    struct bh_cgroup_host host = { .unified = true };
    struct bh_limits limits;
    struct bh_err err;

    assert_non_null(mkdtemp(root));
    snprintf(host.mount, sizeof host.mount, "%s", root);
    snprintf(folder, sizeof folder, "%s/bh-1", root);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        readback_test_put_file(folder, "memory.max", cases[i].memory);
        readback_test_put_file(folder, "pids.max", cases[i].pids);
        BH_CHECK_EQ(cases[i].name, bh_readback_limits(&host, "/bh-1", &limits, &err), BH_OK);
        BH_CHECK_EQ(cases[i].name, limits.memory_bytes, cases[i].bytes);
        BH_CHECK_EQ(cases[i].name, limits.pids, cases[i].processes);
    }
    remove_all(root, "/bh-1");
    BH_CHECK("no groups", bh_readback_limits(&host, "/none", &limits, &err) != BH_OK);
    BH_CHECK_DONE();
}

static void
a_list_of_devices_is_exactly_what_was_ordered(void **state)
{
    static const struct {
        const char *name, *list;
        bh_rc rc;
    } cases[] = {
        { "as ordered", STANDARD "c 195:0 rw\nc 239:3 r\n", BH_OK },
        { "one too many", STANDARD "c 195:0 rw\nc 239:3 r\nc 10:200 rwm\n", BH_CONFLICT },
        { "another GPU", STANDARD "c 195:1 rw\nc 239:3 r\n", BH_CONFLICT },
        { "writable", STANDARD "c 195:0 rw\nc 239:3 rw\n", BH_CONFLICT },
        { "may be made", STANDARD "c 195:0 rwm\nc 239:3 r\n", BH_CONFLICT },
        { "one is missing", STANDARD "c 195:0 rw\n", BH_CONFLICT },
        { "no fence", "a *:* rwm\n", BH_CONFLICT },
    };
    char root[] = "/tmp/bh-readback-XXXXXX", folder[PATH_SIZE];
    struct bh_cgroup_host host = { .unified = false };
    struct bh_err err;

    assert_non_null(mkdtemp(root));
    snprintf(host.mount, sizeof host.mount, "%s", root);
    snprintf(folder, sizeof folder, "%s/devices/bh-1", root);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        readback_test_put_file(folder, "devices.list", cases[i].list);
        BH_CHECK_EQ(cases[i].name, bh_readback_devices(&host, "/bh-1", lent, BH_COUNT(lent), &err),
                    cases[i].rc);
    }
    remove_all(root, "/devices/bh-1");
    BH_CHECK_DONE();
}

/* On a machine that lets us have a group of version 2, which hybrid ones do, too. */
static void
an_attached_program_is_the_ordered_one(void **state)
{
    struct bh_cgroup_host host = { .mount = "/sys/fs/cgroup/unified", .unified = true };
    char name[64], folder[PATH_SIZE];
    struct bh_sandbox_device all[16];
    const struct bh_sandbox_device *standard;
    uint32_t count;
    struct bh_err err;

    if (access("/sys/fs/cgroup/unified", F_OK) != 0)
        snprintf(host.mount, sizeof host.mount, "/sys/fs/cgroup");
    snprintf(name, sizeof name, "/bh-readback-%d", (int)getpid());
    snprintf(folder, sizeof folder, "%s%s", host.mount, name);
    standard = bh_cgroup_standard_devices(&count);
    memcpy(all, standard, count * sizeof *standard);
    memcpy(all + count, lent, sizeof lent);
    if (mkdir(folder, 0700) != 0)
        skip();
    if (bh_device_filter_attach(folder, all, count + BH_COUNT(lent), &err) != BH_OK) {
        rmdir(folder);
        skip();
    }
    BH_CHECK_EQ("as ordered", bh_readback_devices(&host, name, lent, BH_COUNT(lent), &err), BH_OK);
    BH_CHECK_EQ("fewer", bh_readback_devices(&host, name, lent, 1, &err), BH_CONFLICT);
    BH_CHECK_EQ("others", bh_readback_devices(&host, name, lent + 1, 1, &err), BH_CONFLICT);
    rmdir(folder);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(limits_are_what_the_kernel_has),
    cmocka_unit_test(a_list_of_devices_is_exactly_what_was_ordered),
    cmocka_unit_test(an_attached_program_is_the_ordered_one),
};
BH_TEST_MAIN(tests)
