#include "base/proc.h"

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
    cmocka_unit_test(available_memory_is_found),
};

BH_TEST_MAIN(tests)
