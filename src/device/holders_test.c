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
holders(const char *node, uint32_t most, uint32_t want)
{
    static char memory[256];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    BH_CHECK_EQ(node, bh_holders_put(&out, root, node, most), want);
    return bh_buf_text(&out);
}

static void
test_holders(void **state)
{
    char self[32];

    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(self, sizeof self, "%d", (int)getpid());
    put_process("11", "python3\n", "/dev/nvidia0");
    put_process("12", "evil\x1b[2J\n", "/dev/nvidia1");
    put_process("13", NULL, "/dev/nvidia10");
    put_process("self", "myself\n", "/dev/nvidia0");
    put_process(self, "this test\n", "/dev/nvidia0");
    BH_CHECK_STR("one", holders("/dev/nvidia0", 4, 1), "11 (python3)");
    BH_CHECK_STR("scrubbed", holders("/dev/nvidia1", 4, 1), "12 (evil?[2J)");
    BH_CHECK_STR("no name", holders("/dev/nvidia10", 4, 1), "13");
    BH_CHECK_STR("none", holders("/dev/nvidia2", 4, 0), "");
    BH_CHECK_STR("more than shown", holders("/dev/nvidia0", 0, 1), ", ...");
    BH_CHECK_DONE();
}

static int
end(void **state)
{
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        static const char *const names[] = { "11", "12", "13", "self" };
        char path[128], pid[16];

        snprintf(pid, sizeof pid, "%d", (int)getpid());
        for (size_t file = 0; file < 2; file++) {
            snprintf(path, sizeof path, "%s/%s/%s", root, i < 4 ? names[i] : pid,
                     file ? "comm" : "fd/7");
            unlink(path);
        }
        snprintf(path, sizeof path, "%s/%s/fd", root, i < 4 ? names[i] : pid);
        rmdir(path);
        snprintf(path, sizeof path, "%s/%s", root, i < 4 ? names[i] : pid);
        rmdir(path);
    }
    return rmdir(root);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(test_holders, end),
};

BH_TEST_MAIN(tests)
