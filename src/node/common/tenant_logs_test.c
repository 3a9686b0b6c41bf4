#include "node/common/tenant_logs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "node/common/path.h"

#define KIB UINT64_C(1024)

static char folder[] = "/tmp/bh-tenant-logs-XXXXXX";

static const char *
tenant_logs_test_path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A log of `kib` that was last written at the second `at`. */
static void
put_of(const char *party, uint32_t tenant, const char *name, uint64_t kib, time_t at)
{
    const struct bh_tenant_logs logs = { .folder = folder, .party = party, .tenant = tenant };
    const struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };
    BH_AUTO(bh_fd_close) int fd = open(tenant_logs_test_path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct bh_err err = { 0 };

    assert_int_equal(ftruncate(fd, (off_t)(kib * KIB)), 0);
    assert_int_equal(futimens(fd, times), 0);
    assert_int_equal(bh_tenant_logs_add(&logs, name, &err), BH_OK);
}

static void
tenant_logs_test_put(uint32_t tenant, const char *name, uint64_t kib, time_t at)
{
    char party[20];

    snprintf(party, sizeof party, "t%u", tenant);
    put_of(party, tenant, name, kib, at);
}

static bool
tenant_logs_test_is_there(const char *name)
{
    return access(tenant_logs_test_path_of(name), F_OK) == 0;
}

/* The names that are there, of these, in one text. */
static const char *
left(const char *const *names)
{
    static char text[200];
    size_t length = 0;

    for (*text = '\0'; *names; names++)
        if (tenant_logs_test_is_there(*names))
            length += (size_t)snprintf(text + length, sizeof text - length, "%s ", *names);
    return text;
}

static void
test_oldest_of_its_own(void **state)
{
    static const char *const all[] = { "1.log", "2.log", "3.log", "9.log", NULL };
    const struct bh_tenant_logs logs = {
        .folder = folder, .party = "t1", .tenant = 1, .bound_bytes = 1000 * KIB
    };

    tenant_logs_test_put(1, "3.log", 400, 30);
    tenant_logs_test_put(1, "1.log", 400, 10);
    tenant_logs_test_put(1, "2.log", 100, 20);
    tenant_logs_test_put(2, "9.log", 5000, 5);
    BH_CHECK_EQ("it fits", bh_tenant_logs_free_bytes(&logs, 50 * KIB), 50 * KIB);
    BH_CHECK_STR("nothing is removed", left(all), "1.log 2.log 3.log 9.log ");
    BH_CHECK_EQ("room is made", bh_tenant_logs_free_bytes(&logs, 200 * KIB), 200 * KIB);
    BH_CHECK_STR("the oldest went, and no more", left(all), "2.log 3.log 9.log ");
    BH_CHECK("with its mark", !tenant_logs_test_is_there("parties/t1/1/1.log")
                                  && tenant_logs_test_is_there("parties/t1/1/2.log"));
    BH_CHECK_EQ("room for all", bh_tenant_logs_free_bytes(&logs, 1000 * KIB), 1000 * KIB);
    BH_CHECK_STR("the other tenant's stays", left(all), "9.log ");
    BH_CHECK_DONE();
}

static void
test_held(void **state)
{
    static const char *const all[] = { "1.log", "2.log", NULL };
    const struct bh_tenant_logs logs = {
        .folder = folder, .party = "t3", .tenant = 3, .bound_bytes = 500 * KIB
    };
    int fd;

    tenant_logs_test_put(3, "1.log", 450, 10);
    tenant_logs_test_put(3, "2.log", 450, 20);
    fd = open(tenant_logs_test_path_of("1.log"), O_WRONLY | O_APPEND | O_CLOEXEC);
    BH_CHECK("it is held", bh_tenant_logs_hold(fd));
    BH_CHECK_EQ("that of a running job counts", bh_tenant_logs_free_bytes(&logs, 100 * KIB), 0);
    BH_CHECK_STR("and stays", left(all), "1.log ");
    bh_fd_close(fd);
    BH_CHECK_EQ("until it has ended", bh_tenant_logs_free_bytes(&logs, 100 * KIB), 100 * KIB);
    BH_CHECK_STR("then it goes", left(all), "");
    fd = open(tenant_logs_test_path_of("2.log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    unlink(tenant_logs_test_path_of("2.log"));
    BH_CHECK("what was removed cannot be held", !bh_tenant_logs_hold(fd));
    bh_fd_close(fd);
    BH_CHECK_DONE();
}

/* A party with many tenants has one part.  Of its tenants the one that has most gives way. */
static void
test_party(void **state)
{
    static const char *const all[] = { "1.log", "2.log", "3.log", "4.log", "9.log", NULL };
    const struct bh_tenant_logs logs = {
        .folder = folder, .party = "evil", .tenant = 71, .bound_bytes = 1000 * KIB
    };
    int fd;

    put_of("evil", 71, "2.log", 300, 20);
    put_of("evil", 72, "1.log", 200, 10);
    put_of("evil", 71, "3.log", 300, 30);
    put_of("evil", 73, "4.log", 190, 40);
    put_of("honest", 74, "9.log", 5000, 5);
    BH_CHECK_EQ("they count together", bh_tenant_logs_free_bytes(&logs, 100 * KIB), 100 * KIB);
    BH_CHECK_STR("the oldest of the one with most went", left(all), "1.log 3.log 4.log 9.log ");
    BH_CHECK_EQ("and again", bh_tenant_logs_free_bytes(&logs, 500 * KIB), 500 * KIB);
    BH_CHECK_STR("not the oldest of all", left(all), "1.log 4.log 9.log ");
    put_of("evil", 71, "5.log", 400, 50);
    fd = open(tenant_logs_test_path_of("5.log"), O_WRONLY | O_APPEND | O_CLOEXEC);
    BH_CHECK("a job of his runs", bh_tenant_logs_hold(fd));
    BH_CHECK_EQ("it takes nothing", bh_tenant_logs_free_bytes(&logs, 500 * KIB), 0);
    BH_CHECK_STR("of those that have less", left(all), "1.log 4.log 9.log ");
    bh_fd_close(fd);
    BH_CHECK_EQ("his own", bh_tenant_logs_free_bytes(&logs, 500 * KIB), 500 * KIB);
    BH_CHECK("go once it has ended", !tenant_logs_test_is_there("5.log") && tenant_logs_test_is_there("1.log")
                                         && tenant_logs_test_is_there("4.log"));
    for (const char *const *name = all; *name; name++)
        unlink(tenant_logs_test_path_of(*name));
    BH_CHECK_DONE();
}

/* Marks of before there were parties. */
static void
test_marks_of_before(void **state)
{
    BH_CHECK("made", mkdir(tenant_logs_test_path_of("tenants"), 0700) == 0
                         && mkdir(tenant_logs_test_path_of("tenants/8"), 0700) == 0);
    bh_fd_close(open(tenant_logs_test_path_of("tenants/8/1.log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    put_of("acme", 8, "2.log", 1, 10);
    BH_CHECK("they are its party's", tenant_logs_test_is_there("parties/acme/8/1.log")
                                         && tenant_logs_test_is_there("parties/acme/8/2.log"));
    unlink(tenant_logs_test_path_of("2.log"));
    BH_CHECK_DONE();
}

/* Small logs take inodes; logs that an operator removed by hand take nothing. */
static void
test_small_and_gone(void **state)
{
    const struct bh_tenant_logs logs = {
        .folder = folder, .party = "t4", .tenant = 4, .bound_bytes = 100 * KIB
    };

    tenant_logs_test_put(4, "1.log", 0, 10);
    tenant_logs_test_put(4, "2.log", 0, 20);
    tenant_logs_test_put(4, "3.log", 90, 30);
    unlink(tenant_logs_test_path_of("3.log"));
    BH_CHECK_EQ("two empty ones count", bh_tenant_logs_free_bytes(&logs, 40 * KIB), 40 * KIB);
    BH_CHECK("the first had to go",
             !tenant_logs_test_is_there("1.log") && tenant_logs_test_is_there("2.log"));
    BH_CHECK("the mark of what is gone, too", !tenant_logs_test_is_there("parties/t4/4/3.log"));
    BH_CHECK_EQ("no bound",
                bh_tenant_logs_free_bytes(
                    &(struct bh_tenant_logs){ .folder = folder, .party = "t4", .tenant = 4 }, 1),
                UINT64_MAX);
    BH_CHECK_EQ("nobody's",
                bh_tenant_logs_free_bytes(
                    &(struct bh_tenant_logs){ .folder = folder, .party = "", .bound_bytes = 1 }, 1),
                UINT64_MAX);
    unlink(tenant_logs_test_path_of("2.log"));
    BH_CHECK_DONE();
}

/* Much room is given in parts, so that it is not counted for each MiB. */
static void
test_grants(void **state)
{
    struct bh_tenant_logs logs = { .folder = folder, .party = "t5", .tenant = 5 };

    tenant_logs_test_put(5, "1.log", 1024, 10);
    logs.bound_bytes = (65 << 10) * KIB;
    BH_CHECK_EQ("a 64th of what is left", bh_tenant_logs_free_bytes(&logs, 64 * KIB), 1024 * KIB);
    logs.bound_bytes = UINT64_C(1) << 40;
    BH_CHECK_EQ("64 MiB at most", bh_tenant_logs_free_bytes(&logs, 64 * KIB), 64 << 20);
    unlink(tenant_logs_test_path_of("1.log"));
    BH_CHECK_DONE();
}

static void
test_expire(void **state)
{
    static const char *const all[] = { "1.log", "2.log", "3.log", "other", NULL };
    int held;
    DIR *dir;

    tenant_logs_test_put(6, "1.log", 1, 10);
    tenant_logs_test_put(6, "2.log", 1, 10);
    tenant_logs_test_put(6, "3.log", 1, 30);
    tenant_logs_test_put(6, "other", 1, 10);
    held = open(tenant_logs_test_path_of("2.log"), O_WRONLY | O_CLOEXEC);
    BH_CHECK("it is held", bh_tenant_logs_hold(held));
    dir = opendir(folder);
    while (bh_tenant_logs_expire(dir, 20 * BH_NS_PER_S, 2))
        ;
    closedir(dir);
    BH_CHECK_STR("only old logs that nobody writes go", left(all), "2.log 3.log other ");
    bh_fd_close(held);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oldest_of_its_own),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_small_and_gone),
        cmocka_unit_test(test_grants),
        cmocka_unit_test(test_expire),
        cmocka_unit_test(test_party),
        cmocka_unit_test(test_marks_of_before),
    };
    int failed;

    cmocka_set_message_output(CM_OUTPUT_TAP);
    assert_non_null(mkdtemp(folder));
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    bh_path_remove_tree(folder);
    return failed;
}
