#include "node/common/path.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

static char folder[] = "/tmp/bh-path-XXXXXX";

static const char *
in(const char *name)
{
    static char paths[64][128];
    static unsigned at;
    char *path = paths[at++ % 64];

    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static void
test_open(void **state)
{
    static const struct {
        const char *name, *path;
        uid_t uid;
        bool write;
        bh_rc rc;
    } cases[] = {
        { "the root itself", "root", 0, false, BH_OK },
        { "a folder", "root/open", 4000, false, BH_OK },
        { "a folder to write", "root/mine", 4000, true, BH_OK },
        { "somebody's, to read", "root/closed", 4000, false, BH_DENIED },
        { "somebody's, to write", "root/open", 4000, true, BH_DENIED },
        { "below somebody's", "root/closed/in", 4000, false, BH_DENIED },
        { "a link", "root/link", 0, false, BH_DENIED },
        { "below a link", "root/link/in", 0, false, BH_DENIED },
        { "dots", "root/open/../../outside", 0, false, BH_DENIED },
        { "a name that begins alike", "rootless", 0, false, BH_DENIED },
        { "outside", "outside", 0, false, BH_DENIED },
        { "missing", "root/missing", 0, false, BH_NOT_FOUND },
        { "closed to root's jobs", "root/closed", 0, false, BH_DENIED },
        { "closed to no user", "root/closed", UINT32_MAX, false, BH_DENIED },
        { "open to no user", "root/open", UINT32_MAX, false, BH_OK },
        { "nobody's to write", "root/mine", UINT32_MAX, true, BH_DENIED },
        { "a file", "root/file", 0, false, BH_IO },
    };
    struct bh_param_list list = { { in("root") }, 1 };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_path_request request = { in(cases[i].path), "mount_roots", &list,
                                           cases[i].uid,      cases[i].uid,  cases[i].write };
        BH_AUTO(bh_fd_close) int fd = -1;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].name, bh_path_open(&request, &fd, &err), cases[i].rc);
        BH_CHECK_EQ(cases[i].name, fd >= 0, cases[i].rc == BH_OK);
    }
    BH_CHECK_EQ("root is itself again", access(in("root/closed/in"), W_OK), 0);
    BH_CHECK_DONE();
}

static void
test_targets(void **state)
{
    static const struct {
        const char *name, *target;
        bh_rc rc;
    } cases[] = {
        { "plain", "/home/ada/work", BH_OK },
        { "below /tmp", "/tmp/x", BH_OK },
        { "dots in a name", "/a..b/.c", BH_OK },
        { "relative", "work", BH_INVALID },
        { "empty", "", BH_INVALID },
        { "the root", "/", BH_INVALID },
        { "two slashes", "/a//b", BH_INVALID },
        { "slash at the end", "/a/", BH_INVALID },
        { "dot", "/a/./b", BH_INVALID },
        { "up", "/a/../etc", BH_INVALID },
        { "up at the end", "/a/..", BH_INVALID },
        { "a folder of the sandbox", "/usr/x", BH_INVALID },
        { "devices", "/dev", BH_INVALID },
        { "begins alike", "/device", BH_OK },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err;

        BH_CHECK_EQ(cases[i].name, bh_path_target_check(cases[i].target, &err), cases[i].rc);
    }
    BH_CHECK_DONE();
}

static void
test_make_below(void **state)
{
    struct bh_err err;
    struct stat st;

    BH_CHECK_EQ("deep", bh_path_make_below(in("root"), "/a/b/c", &err), BH_OK);
    BH_CHECK_EQ("is there", stat(in("root/a/b/c"), &st), 0);
    BH_CHECK_EQ("again", bh_path_make_below(in("root"), "/a/b/c", &err), BH_OK);
    BH_CHECK("through a link", bh_path_make_below(in("root"), "/link/new", &err) != BH_OK);
    BH_CHECK("nothing behind the link", stat(in("outside/new"), &st) != 0);
    BH_CHECK_DONE();
}

/* Cleaning up must stop at mounts: behind them are a user's files. */
static void
test_remove_tree(void **state)
{
    const char *place = in("bundle/m0");
    struct stat st;
    bool mounted;

    assert_int_equal(mkdir(in("bundle"), 0755), 0);
    assert_int_equal(mkdir(place, 0755), 0);
    assert_int_equal(mkdir(in("bundle/dir"), 0755), 0);
    assert_int_equal(symlink(in("outside"), in("bundle/dir/link")), 0);
    mounted = mount(in("outside"), place, NULL, MS_BIND, NULL) == 0;
    bh_path_remove_tree(in("bundle"));
    BH_CHECK_EQ("the user's file stays", stat(in("outside/in"), &st), 0);
    BH_CHECK("the rest goes", stat(in("bundle/dir"), &st) != 0);
    if (mounted)
        umount2(place, MNT_DETACH);
    bh_path_remove_tree(in("bundle"));
    BH_CHECK("all goes", stat(in("bundle"), &st) != 0);
    BH_CHECK_DONE();
}

/* What it says in the header, whatever the umask, over a folder that is there and one that is not. */
static void
test_mount_tmpfs(void **state)
{
    static const struct {
        const char *name, *place;
        mode_t mode;
    } cases[] = {
        { "where nothing is", "memory/below", 0711 },
        { "over what is there", "root/open", 0755 },
    };
    mode_t umask_before = umask(077);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const char *place = in(cases[i].place);
        struct bh_err err = { 0 };
        struct statvfs disk;
        struct stat st;

        BH_CHECK_EQ(cases[i].name, bh_path_mount_tmpfs("test", place, cases[i].mode, &err), BH_OK);
        assert_int_equal(statvfs(place, &disk), 0);
        assert_int_equal(stat(place, &st), 0);
        BH_CHECK_EQ(cases[i].name, st.st_mode & 07777, cases[i].mode);
        BH_CHECK_EQ("a file system of its own", st.st_nlink, 2);
        BH_CHECK("no set-uid programs", disk.f_flag & ST_NOSUID);
        BH_CHECK("devices", !(disk.f_flag & ST_NODEV));
        assert_int_equal(umount2(place, MNT_DETACH), 0);
    }
    umask(umask_before);
    BH_CHECK_EQ("where a file is", bh_path_mount_tmpfs("test", in("root/file"), 0755, &(struct bh_err){ 0 }),
                BH_IO);
    BH_CHECK_DONE();
}

static void
make_tree(void)
{
    const struct {
        const char *name;
        uid_t uid;
        mode_t mode;
        /* clang-format off */
    } folders[] = {
        { "root", 0, 0755 },      { "root/open", 0, 0755 },  { "root/mine", 4000, 0700 },
        { "root/closed", 0, 0700 }, { "root/closed/in", 0, 0777 }, { "rootless", 0, 0755 },
        { "outside", 0, 0755 },   { "outside/in", 0, 0755 },
    };
    /* clang-format on */

    chmod(folder, 0755);
    for (size_t i = 0; i < BH_COUNT(folders); i++) {
        mkdir(in(folders[i].name), 0755);
        chmod(in(folders[i].name), folders[i].mode);
        (void)!chown(in(folders[i].name), folders[i].uid, folders[i].uid);
    }
    (void)!symlink("../outside", in("root/link"));
    close(open(in("root/file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_make_below),  cmocka_unit_test(test_remove_tree),
        cmocka_unit_test(test_mount_tmpfs),
    };
    int failed;

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root: it looks with other users' eyes");
        return 0;
    }
    if (!mkdtemp(folder))
        return 1;
    make_tree();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    bh_path_remove_tree(folder);
    return failed;
}
