#include "node/common/conf.h"

#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

static void
test_lines(void **state)
{
    static const struct {
        const char *name, *text;
        bh_rc rc;
        const char *message; /* how it begins */
        /* clang-format off */
    } cases[] = {
        { "nothing", "", BH_OK, "" },
        { "comments and blanks", "# a\n\n   \t\n  # b\n", BH_OK, "" },
        { "a number", "pids_default = 12", BH_OK, "" },
        { "no blanks", "pids_default=12\n", BH_OK, "" },
        { "empty text", "tools_dir =\n", BH_OK, "" },
        { "value with =", "driver_env = A=b=c\n", BH_OK, "" },
        { "carriage return", "pids_default = 12\r\n", BH_OK, "" },
        { "unknown key", "\npid_default = 12\n", BH_INVALID, "f: line 2: unknown key" },
        { "no value", "tools_dir\n", BH_INVALID, "f: line 1: expected `key = value`" },
        { "twice", "tmp_mib = 1\ntmp_mib = 2\n", BH_INVALID, "f: line 2: tmp_mib is set twice" },
        { "no number", "tmp_mib = lots\n", BH_INVALID, "f: line 1: tmp_mib: " },
        { "negative", "tmp_mib = -1\n", BH_INVALID, "f: line 1: tmp_mib: " },
        { "unit", "tmp_mib = 10M\n", BH_INVALID, "f: line 1: tmp_mib: " },
        { "below", "tmp_mib = 0\n", BH_RANGE, "f: line 1: tmp_mib: " },
        { "above", "uid_ranges = 4097\n", BH_RANGE, "f: line 1: uid_ranges: " },
        { "huge", "uid_ranges = 99999999999999999999\n", BH_RANGE, "f: line 1: uid_ranges: " },
        { "relative path", "state_dir = var/lib\n", BH_INVALID,
          "f: state_dir must be an absolute path" },
        { "program by name", "runtime = crun\n", BH_OK, "" },
        { "two folders on a line", "mount_roots = /a, /b\n", BH_INVALID,
          "f: mount_roots contains a comma: \"/a, /b\"" },
        { "two GPUs on a line", "gpus = GPU-1,GPU-2\n", BH_INVALID, "f: gpus contains a comma: " },
        { "comma in a value", "driver_env = A=b,c\n", BH_OK, "" },
        { "control character", "state_dir = /a\x1b[2J\n", BH_INVALID, "f: state_dir contains a control "
                                                                      "character" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        struct bh_conf conf = { .tmp_mib = 7 };
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].name, bh_conf_parse("f", cases[i].text, arena, &conf, &err), cases[i].rc);
        BH_CHECK(cases[i].name, strncmp(err.msg, cases[i].message, strlen(cases[i].message)) == 0);
        BH_CHECK_EQ(cases[i].name, conf.tmp_mib, cases[i].rc == BH_OK ? 1024 : 7);
    }
    BH_CHECK_DONE();
}

static void
test_values(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_conf conf;
    struct bh_err err;
    const char text[] = "state_dir = /s  \ngpus = GPU-1\ngpus = GPU-2\nmount_roots = /home\n";

    assert_int_equal(bh_conf_parse("f", text, arena, &conf, &err), BH_OK);
    BH_CHECK_STR("trimmed", conf.state_dir, "/s");
    BH_CHECK_STR("default", conf.run_dir, "/run/bulkhead/node");
    BH_CHECK_EQ("repeated", conf.gpus.count, 2);
    BH_CHECK("named GPU", bh_conf_gpu_allowed(&conf, "GPU-2"));
    BH_CHECK("other GPU", !bh_conf_gpu_allowed(&conf, "GPU-3"));
    assert_int_equal(bh_conf_parse("f", "", arena, &conf, &err), BH_OK);
    BH_CHECK("none by default", !bh_conf_gpu_allowed(&conf, "GPU-1"));
    assert_int_equal(bh_conf_parse("f", "gpus = none", arena, &conf, &err), BH_OK);
    BH_CHECK("none", !bh_conf_gpu_allowed(&conf, "GPU-1"));
    assert_int_equal(bh_conf_parse("f", "gpus = all", arena, &conf, &err), BH_OK);
    BH_CHECK("all", bh_conf_gpu_allowed(&conf, "GPU-1"));
    BH_CHECK_DONE();
}

static void
test_too_much(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_conf conf;
    struct bh_err err;
    struct bh_buf text;

    bh_buf_init(&text, BH_CONF_BYTES_MAX);
    for (int i = 0; i <= BH_PARAM_LIST_MAX; i++)
        bh_buf_puts(&text, "gpus = a\n");
    BH_CHECK_EQ("lines of a key", bh_conf_parse("f", bh_buf_text(&text), arena, &conf, &err), BH_FULL);
    bh_buf_clear(&text);
    bh_buf_puts(&text, "state_dir = /");
    for (int i = 0; i < BH_CONF_PATH_MAX; i++)
        bh_buf_putc(&text, 'a');
    BH_CHECK_EQ("long path", bh_conf_parse("f", bh_buf_text(&text), arena, &conf, &err), BH_RANGE);
    bh_buf_fini(&text);
    BH_CHECK_DONE();
}

static void
test_owner(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    char folder[] = "/tmp/bh-conf-XXXXXX", path[64];
    bool root = geteuid() == 0;
    struct bh_conf conf;
    struct bh_err err;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/node.conf", folder);
    BH_CHECK_EQ("missing", bh_conf_read(path, arena, &conf, &err), BH_NOT_FOUND);
    assert_int_equal(bh_file_replace(path, "tmp_mib = 5\n", 12, 0644, &err), BH_OK);
    BH_CHECK_EQ("ours", bh_conf_read(path, arena, &conf, &err), BH_OK);
    BH_CHECK_EQ("read", conf.tmp_mib, 5);
    assert_int_equal(bh_file_replace(path, "daemon_uid = 7\ndaemon_user = daemon\n", 36, 0644, &err), BH_OK);
    BH_CHECK_EQ("a user", bh_conf_read(path, arena, &conf, &err), BH_OK);
    BH_CHECK_EQ("over the number", conf.daemon_uid, getpwnam("daemon")->pw_uid);
    BH_CHECK_EQ("its group", conf.daemon_gid, getpwnam("daemon")->pw_gid);
    assert_int_equal(bh_file_replace(path, "daemon_user = no-such-user\n", 27, 0644, &err), BH_OK);
    BH_CHECK_EQ("nobody's name", bh_conf_read(path, arena, &conf, &err), BH_NOT_FOUND);
    chmod(path, 0666);
    BH_CHECK_EQ("anybody's", bh_conf_read(path, arena, &conf, &err), root ? BH_DENIED : BH_OK);
    unlink(path);
    rmdir(folder);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lines),
    cmocka_unit_test(test_values),
    cmocka_unit_test(test_too_much),
    cmocka_unit_test(test_owner),
};
BH_TEST_MAIN(tests)
