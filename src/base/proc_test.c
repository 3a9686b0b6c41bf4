#include "base/proc.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc_internal.h"
#include "base/test.h"

#define REST "1 2 3 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 777 1000000 88 18446744073709551615 1 1\n"

static void
stat_is_read_behind_the_name(void **state)
{
    static const struct {
        const char *name, *text;
        bool good;
    } rows[] = {
        { "plain", "12 (name) S " REST, true },
        { "a name like the rest", "12 (x) R 9 9 9) S " REST, true },
        { "a name with a line", "12 (a\nb) S " REST, true },
        { "nothing", "", false },
        { "cut off", "12 (name) S 1 2 3 0 -1 4194560 1 2 3 4 50", false },
        { "no name", "12 S " REST, false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_proc_stat stat = { .flags = 7 };

        BH_CHECK_EQ(rows[i].name, bh_proc_stat_parse(rows[i].text, &stat), rows[i].good);
        BH_CHECK_EQ(rows[i].name, stat.flags, rows[i].good ? 4194560 : 7);
        if (!rows[i].good)
            continue;
        BH_CHECK_EQ(rows[i].name, stat.state, 'S');
        BH_CHECK_EQ(rows[i].name, stat.parent, 1);
        BH_CHECK_EQ(rows[i].name, stat.group, 2);
        BH_CHECK_EQ(rows[i].name, stat.session, 3);
        BH_CHECK_EQ(rows[i].name, stat.user_ticks, 50);
        BH_CHECK_EQ(rows[i].name, stat.system_ticks, 60);
        BH_CHECK_EQ(rows[i].name, stat.started_ticks, 777);
        BH_CHECK_EQ(rows[i].name, stat.resident_pages, 88);
    }
    BH_CHECK_DONE();
}

static void
this_process_and_one_that_is_gone(void **state)
{
    struct bh_proc_stat stat = { 0 };
    struct bh_err err;
    char text[64] = "x";
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    assert_int_equal(bh_proc_stat(getpid(), &stat, &err), BH_OK);
    assert_int_equal(stat.parent, getppid());
    assert_int_equal(stat.group, getpgrp());
    assert_true(stat.started_ticks > 0 && stat.resident_pages > 0);
    waitpid(child, NULL, 0);
    assert_int_equal(bh_proc_stat(child, &stat, &err), BH_NOT_FOUND);
    assert_int_equal(stat.parent, getppid());
    assert_int_equal(bh_proc_read(getpid(), "status", text, sizeof text, &err), BH_FULL);
    assert_string_equal(text, "");
}

static void
links_lists_and_paths(void **state)
{
    char text[256] = "x", small[4] = "x", path[BH_PROC_PATH_MAX], own[BH_PROC_PATH_MAX];
    struct bh_err err;
    struct stat here, there;
    int fds[2];
    DIR *dir;

    assert_int_equal(pipe(fds), 0);
    bh_proc_fd_path(fds[0], path);
    BH_CHECK("a path to an open file", stat(path, &here) == 0 && fstat(fds[0], &there) == 0);
    BH_CHECK("the same", here.st_ino == there.st_ino);
    BH_CHECK_EQ("namespace", bh_proc_link(getpid(), "ns/user", text, sizeof text, &err), BH_OK);
    BH_CHECK("by name", strncmp(text, "user:[", 6) == 0);
    BH_CHECK_EQ("its own", bh_proc_link(BH_PROC_SELF, "ns/user", own, sizeof own, &err), BH_OK);
    BH_CHECK_STR("the same", own, text);
    BH_CHECK_EQ("too long", bh_proc_link(BH_PROC_SELF, "exe", small, sizeof small, &err), BH_FULL);
    BH_CHECK_STR("and nothing of it", small, "");
    BH_CHECK_EQ("no process", bh_proc_link(0, "exe", text, sizeof text, &err), BH_NOT_FOUND);
    BH_CHECK_EQ("folder", bh_proc_own_folder(text, sizeof text, &err), BH_OK);
    BH_CHECK("a folder", text[0] == '/' && access(text, X_OK) == 0);
    BH_CHECK_EQ("boot", bh_proc_boot_id(own, &err), BH_OK);
    BH_CHECK_EQ("a UUID", strlen(own), 36);
    dir = bh_proc_list(BH_PROC_SELF, "task");
    BH_CHECK("threads", dir);
    closedir(dir);
    BH_CHECK("of no process", !bh_proc_list(0, "task"));
    close(fds[0]);
    close(fds[1]);
    BH_CHECK_DONE();
}

static void
available_memory_is_found(void **state)
{
    uint64_t bytes = 5;
    struct bh_err err;

    BH_CHECK("absent", !bh_proc_meminfo_parse("MemTotal: 5 kB\nMemFree: 3 kB\n", &bytes));
    BH_CHECK("no number", !bh_proc_meminfo_parse("MemTotal: 5 kB\nMemAvailable: much\n", &bytes));
    BH_CHECK_EQ("untouched", bytes, 5);
    BH_CHECK("there", bh_proc_meminfo_parse("MemTotal: 5 kB\nMemAvailable:   3 kB\n", &bytes));
    BH_CHECK_EQ("in bytes", bytes, 3072);
    BH_CHECK_EQ("here", bh_proc_available_bytes(&bytes, &err), BH_OK);
    BH_CHECK("more than nothing", bytes > 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stat_is_read_behind_the_name),
    cmocka_unit_test(this_process_and_one_that_is_gone),
    cmocka_unit_test(links_lists_and_paths),
    cmocka_unit_test(available_memory_is_found),
};

BH_TEST_MAIN(tests)
