#include "node/core/claim.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "node/common/path.h"

/* Folders that look like control groups of version 1, in `mount`; the jobs' group is /p. */

enum { NOBODY = 65534 };
#define SITE_ATTRIBUTE "trusted.bulkhead.site"

static char mount[] = "/tmp/bh-claim-XXXXXX";
static struct bh_node *node;

static const char *
claim_test_at(const char *path)
{
    static char whole[2][200];
    static int turn;

    turn = !turn;
    snprintf(whole[turn], sizeof whole[turn], "%s/%s", mount, path);
    return whole[turn];
}

static void
claim_test_put_file(const char *path, mode_t mode)
{
    int fd = open(claim_test_at(path), O_WRONLY | O_CREAT | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static int
claim_test_begin(void **state)
{
    static const char *const names[] = { "freezer", "memory", "cpu", "cpuacct", "pids", "devices" };
    char path[80];

    node = calloc(1, sizeof *node);
    assert_non_null(node);
    snprintf(mount, sizeof mount, "/tmp/bh-claim-XXXXXX");
    assert_non_null(mkdtemp(mount));
    assert_int_equal(chmod(mount, 0755), 0);
    for (size_t i = 0; i < BH_COUNT(names); i++) {
        assert_int_equal(mkdir(claim_test_at(names[i]), 0755), 0);
        snprintf(path, sizeof path, "%s/cgroup.procs", names[i]);
        claim_test_put_file(path, 0644);
    }
    assert_int_equal(mkdir(claim_test_at("memory/p"), 0755), 0);
    claim_test_put_file("memory/p/cgroup.procs", 0644);
    node->conf.cgroup_mount = mount;
    node->conf.cgroup_parent = "/p";
    node->conf.state_dir = "/var/lib/bulkhead/node";
    node->claim_fd = -1;
    return 0;
}

static int
claim_test_end(void **state)
{
    if (node->claim_fd >= 0)
        close(node->claim_fd);
    free(node);
    bh_path_remove_tree(mount);
    return 0;
}

static bool
can_set_attribute(void)
{
    return geteuid() == 0 && setxattr(claim_test_at("memory"), SITE_ATTRIBUTE, "1", 1, 0) == 0;
}

/* Another account locks the folder and all of it that it can open, and goes on to hold that. */
static pid_t
lock_as_other_user(void)
{
    int reported[2];
    char word;
    pid_t pid;

    assert_int_equal(pipe(reported), 0);
    pid = fork();
    if (pid == 0) {
        DIR *dir = opendir(claim_test_at("memory/p"));
        int folder = dirfd(dir);

        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || flock(folder, LOCK_EX | LOCK_NB) != 0)
            _exit(1);
        for (const struct dirent *entry; (entry = readdir(dir));)
            for (int how = O_RDONLY; how <= O_WRONLY; how++)
                (void)!flock(openat(folder, entry->d_name, how), LOCK_EX | LOCK_NB);
        if (write(reported[1], "1", 1) == 1)
            pause();
        _exit(1);
    }
    close(reported[1]);
    assert_int_equal(read(reported[0], &word, 1), 1);
    close(reported[0]);
    return pid;
}

/* The lock is no other account's to take, on a kernel that has a file for it, and on one that has
 * none once a node was there. */
static void
roots_alone(void **state)
{
    static const char *const locks[] = { "memory/p/cgroup.kill", "memory/p/memory.force_empty",
                                         "memory/p/cgroup.procs" };

    if (!can_set_attribute())
        skip();
    for (size_t i = 0; i < BH_COUNT(locks); i++) {
        struct bh_err err = { 0 };
        struct stat st;
        pid_t pid;

        if (i + 1 < BH_COUNT(locks))
            claim_test_put_file(locks[i], 0200);
        else
            assert_int_equal(chmod(claim_test_at(locks[i]), 0600), 0);
        pid = lock_as_other_user();
        BH_CHECK_EQ(locks[i], bh_claim_groups(node, &err), BH_OK);
        BH_CHECK_STR(locks[i], err.msg, "");
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_int_equal(stat(claim_test_at(locks[i]), &st), 0);
        BH_CHECK_EQ(locks[i], st.st_mode & 077, 0);
        bh_fd_close(node->claim_fd);
        node->claim_fd = -1;
        if (i + 1 < BH_COUNT(locks))
            assert_int_equal(unlink(claim_test_at(locks[i])), 0);
    }
    BH_CHECK_DONE();
}

static void
made_so(void **state)
{
    struct bh_err err;
    struct stat st;

    if (!can_set_attribute())
        skip();
    assert_int_equal(bh_claim_groups(node, &err), BH_OK);
    assert_int_equal(stat(claim_test_at("memory/p/cgroup.procs"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

/* It is unknown whether the other site's jobs run: the group stays that site's. */
static void
unreadable(void **state)
{
    struct bh_err err = { 0 };

    if (!can_set_attribute())
        skip();
    assert_int_equal(setxattr(claim_test_at("memory/p"), SITE_ATTRIBUTE, "9:9:9 /other", 12, 0), 0);
    assert_int_equal(mkdir(claim_test_at("memory/p/bh-1"), 0755), 0);
    assert_int_equal(mkdir(claim_test_at("freezer/p"), 0755), 0);
    assert_int_equal(mkdir(claim_test_at("freezer/p/bh-1"), 0755), 0);
    assert_int_equal(mkdir(claim_test_at("freezer/p/bh-1/cgroup.procs"), 0755), 0); /* cannot be read */
    BH_CHECK_EQ("not taken over", bh_claim_groups(node, &err), BH_CONFLICT);
    BH_CHECK(err.msg, strstr(err.msg, "the site of /other, whose jobs run there") != NULL);
    assert_int_equal(rmdir(claim_test_at("freezer/p/bh-1/cgroup.procs")), 0);
    BH_CHECK_EQ("empty, it is", bh_claim_groups(node, &err), BH_OK);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(roots_alone, claim_test_begin, claim_test_end),
    cmocka_unit_test_setup_teardown(made_so, claim_test_begin, claim_test_end),
    cmocka_unit_test_setup_teardown(unreadable, claim_test_begin, claim_test_end),
};
BH_TEST_MAIN(tests)
