/* What is written to version 2's files, on a plain folder in their place; the real ones are
 * tried by tests/contract/runtime_contract.c, on pure version 2 by `make test-vm`. */
#include "runtime/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

static char top[] = "/tmp/bh-cgroup-XXXXXX";

static void
cgroup_test_put(const char *name, const char *text)
{
    char path[128];
    struct bh_err err;

    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_int_equal(bh_file_replace(path, text, strlen(text), 0644, &err), BH_OK);
}

static const char *
cgroup_test_get(const char *name)
{
    static char memory[128];
    char path[128];
    struct bh_buf text;
    struct bh_err err;

    snprintf(path, sizeof path, "%s/%s", top, name);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    return bh_file_read(path, sizeof memory - 1, &text, &err) == BH_OK ? bh_buf_text(&text) : "";
}

static void
cgroup_test_make_folder(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static struct bh_cgroup_host
version_2(void)
{
    struct bh_cgroup_host host = { .unified = true };

    snprintf(host.mount, sizeof host.mount, "%s", top);
    return host;
}

/* Only what is missing: a folder of systemd's that holds processes refuses any change. */
static void
test_handed_down(void **state)
{
    static const struct {
        const char *name, *held, *then; /* a write goes over what stood there */
    } cases[] = {
        { "all", "cpuset cpu io memory pids\n", "cpuset cpu io memory pids\n" },
        { "none", "io\n", "+memory +cpu +pids " },
        { "one missing", "io memory pids", "+cpu mory pids" },
        { "a longer word is another", "io cpuset memory pids", "+cpu uset memory pids" },
        { "what one limit needs", "memory cpu pids", "+ioory cpu pids" },
    };
    const struct bh_cgroup_host host = version_2();

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_sandbox sandbox = { .cgroup = "/bh-1" };
        struct bh_err err;

        cgroup_test_put("cgroup.subtree_control", cases[i].held);
        BH_CHECK(cases[i].name, bh_cgroup_make(&host, &sandbox, &err) != BH_OK); /* no filter here */
        BH_CHECK_STR(cases[i].name, cgroup_test_get("cgroup.subtree_control"), cases[i].then);
    }
    bh_cgroup_remove_empty(&host, "/bh-1");
    BH_CHECK_DONE();
}

static void
test_step_aside(void **state)
{
    const struct bh_cgroup_host host = version_2();
    struct bh_cgroup_host old = host;
    struct bh_err err;

    old.unified = false;
    BH_CHECK_EQ("version 1", bh_cgroup_step_aside(&old, "/jobs/bh-1", &err), BH_OK);
    BH_CHECK_EQ("no parent", bh_cgroup_step_aside(&host, "/jobs/bh-1", &err), BH_NOT_FOUND);
    cgroup_test_make_folder("jobs");
    cgroup_test_make_folder("jobs/keepers");
    cgroup_test_put("jobs/keepers/cgroup.procs", "");
    BH_CHECK_EQ("moved where nothing is weighed", bh_cgroup_step_aside(&host, "/jobs/bh-1", &err), BH_OK);
    BH_CHECK_STR("itself", cgroup_test_get("jobs/keepers/cgroup.procs"), "0");
    cgroup_test_put("jobs/keepers/cpu.weight", "100");
    cgroup_test_put("jobs/keepers/cgroup.procs", "");
    BH_CHECK_EQ("moved", bh_cgroup_step_aside(&host, "/jobs/bh-1", &err), BH_OK);
    BH_CHECK_STR("above the jobs beside it", cgroup_test_get("jobs/keepers/cpu.weight"), "10000");
    BH_CHECK_STR("itself, too", cgroup_test_get("jobs/keepers/cgroup.procs"), "0");
    BH_CHECK_DONE();
}

/* All jobs together weigh half of what one program beside them does. */
static void
test_weight_of_jobs(void **state)
{
    static const struct {
        const char *file, *had, *then; /* a write goes over what stood there */
    } cases[] = {
        { "all/cpu.weight", "100\n", "500\n" },
        { "all/bh-2/cpu.weight", "100\n", "100\n" },
    };
    const struct bh_cgroup_host host = version_2();
    struct bh_sandbox sandbox = { .cgroup = "/all/bh-2" };
    struct bh_err err;

    cgroup_test_put("cgroup.subtree_control", "cpu io memory pids");
    cgroup_test_make_folder("all");
    cgroup_test_make_folder("all/bh-2");
    cgroup_test_put("all/cgroup.subtree_control", "cpu io memory pids");
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        cgroup_test_put(cases[i].file, cases[i].had);
    (void)!bh_cgroup_make(&host, &sandbox, &err); /* no limits and no filter here */
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_STR(cases[i].file, cgroup_test_get(cases[i].file), cases[i].then);
    BH_CHECK_DONE();
}

static void
test_probe(void **state)
{
    struct bh_cgroup_host host;
    struct bh_err err;

    BH_CHECK_EQ("no hierarchy", bh_cgroup_probe(top, &host, &err), BH_UNAVAILABLE);
    BH_CHECK_EQ("no folder", bh_cgroup_probe("/nowhere", &host, &err), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

static int
set_up(void **state)
{
    return mkdtemp(top) ? 0 : -1;
}

static int
tear_down(void **state)
{
    static const char *const names[] = { "jobs/keepers/cgroup.procs",
                                         "jobs/keepers/cpu.weight",
                                         "jobs/keepers",
                                         "jobs",
                                         "all/bh-2/cpu.weight",
                                         "all/bh-2",
                                         "all/cpu.weight",
                                         "all/cgroup.subtree_control",
                                         "all",
                                         "cgroup.subtree_control",
                                         "" };
    char path[128];

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", top, names[i]);
        remove(path);
    }
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_down),
        cmocka_unit_test(test_step_aside),
        cmocka_unit_test(test_weight_of_jobs),
        cmocka_unit_test(test_probe),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
