#include "device/holders.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

/* A made-up /proc: numbers with a comm file and links for descriptors. */
static char root[] = "/tmp/bh-holders-XXXXXX";

static void
put_process(const char *pid, const char *comm, const char *target)
{
    struct bh_err err;
    char path[128];

    snprintf(path, sizeof path, "%s/%s/fd", root, pid);
    assert_int_equal(bh_dir_make(path, 0700, &err), BH_OK);
    snprintf(path, sizeof path, "%s/%s/fd/7", root, pid);
    assert_int_equal(symlink(target, path), 0);
    snprintf(path, sizeof path, "%s/%s/comm", root, pid);
    if (comm)
        assert_int_equal(bh_file_replace(path, comm, strlen(comm), 0600, &err), BH_OK);
}

static const char *
holders(uint32_t minor, uint32_t most, uint32_t want)
{
    static char memory[512];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    BH_CHECK_EQ("how many", bh_holders_put(&out, root, minor, most), want);
    return bh_buf_text(&out);
}

static void
holders_test_put_file(const char *name, const char *text)
{
    struct bh_err err;
    char path[128];

    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(bh_file_replace(path, text, strlen(text), 0600, &err), BH_OK);
}

static void
test_holders(void **state)
{
    char self[32];

    assert_non_null(mkdtemp(root));
    snprintf(self, sizeof self, "%d", (int)getpid());
    put_process("11", "python3\n", "/dev/nvidia0");
    put_process("12", "evil\x1b[2J\n", "/dev/nvidia1");
    put_process("13", NULL, "/dev/nvidia10");
    put_process("14", "nv-hostengine\n", "/dev/nvidia-caps/nvidia-cap273");
    put_process("15", "nvidia-persiste\n", "/dev/nvidiactl");
    put_process("16", "trainer\n", "/tmp/nvidia3");
    holders_test_put_file("16/maps", "7f00-7f01 rw-s 00000000 00:06 99      /dev/nvidia3\n");
    put_process("self", "myself\n", "/dev/nvidia0");
    put_process(self, "this test\n", "/dev/nvidia0");
    BH_CHECK_STR("one", holders(0, 4, 1), "python3 11: kill 11");
    BH_CHECK_STR("scrubbed", holders(1, 4, 1), "evil?[2J 12: kill 12");
    BH_CHECK_STR("no name", holders(10, 4, 1), "13: kill 13");
    BH_CHECK_STR("a capability of an instance, and its fix", holders(2, 4, 1),
                 "nv-hostengine 14: systemctl stop nvidia-dcgm");
    BH_CHECK_STR("mapped, and not open any more", holders(3, 4, 1), "trainer 16: kill 16");
    BH_CHECK_STR("none", holders(5, 4, 0), "");
    BH_CHECK_STR("more than shown", holders(0, 0, 1), "; ...");
    holders(BH_HOLDERS_ANY, 9, 6);
    BH_CHECK("no display", !bh_holders_has_drm(root));
    holders_test_put_file("modules", "nvidia 1 0\nnvidia_drm 2 0\n");
    BH_CHECK("display", bh_holders_has_drm(root));
    BH_CHECK_DONE();
}

static int
holders_test_end(void **state)
{
    static const char *const names[] = { "11", "12", "13", "14", "15", "16", "self", NULL };
    char path[128], pid[16];

    snprintf(pid, sizeof pid, "%d", (int)getpid());
    for (size_t i = 0; i < BH_COUNT(names); i++) {
        static const char *const files[] = { "/comm", "/maps", "/fd/7" };

        for (size_t k = 0; k < BH_COUNT(files); k++) {
            snprintf(path, sizeof path, "%s/%s%s", root, names[i] ? names[i] : pid, files[k]);
            unlink(path);
        }
        snprintf(path, sizeof path, "%s/%s/fd", root, names[i] ? names[i] : pid);
        rmdir(path);
        snprintf(path, sizeof path, "%s/%s", root, names[i] ? names[i] : pid);
        rmdir(path);
    }
    snprintf(path, sizeof path, "%s/modules", root);
    unlink(path);
    return rmdir(root);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(test_holders, holders_test_end),
};

BH_TEST_MAIN(tests)
