/* What goes wrong around a job and is not its own doing: keepers that are killed, and reports that
 * end what runs on a GPU while an end is on disk already. */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "node/common/path.h"
#include "node/sandbox/process.h"
#include "node/session/node_fixture_test.h"

enum { LEASE = 90 };

/* Whether the process is in the control groups of the test's lease. */
static bool
is_in_lease(const char *pid)
{
    char path[TEST_PATH], text[4096], group[TEST_PATH];
    BH_AUTO(bh_fd_close) int fd = -1;
    ssize_t n;

    bh_path_format(path, sizeof path, "/proc/%.20s/cgroup", pid);
    bh_path_format(group, sizeof group, "%s/bh-%d\n", the_node.cgroup, LEASE);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, group) != NULL;
}

/* How many processes the lease has; the furthest that one of them is as process 1.  Each gets
 * the signal, where that is not 0. */
static int
fault_test_check(int number, enum bh_first_state *ret_first)
{
    DIR *processes = opendir("/proc");
    int count = 0;

    *ret_first = BH_FIRST_SETUP;
    assert_non_null(processes);
    for (const struct dirent *entry; (entry = readdir(processes));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        enum bh_first_state first;

        if (pid <= 0 || !is_in_lease(entry->d_name))
            continue;
        count++;
        first = bh_process_first_state(pid);
        if (first > *ret_first)
            *ret_first = first;
        if (number)
            kill(pid, number);
    }
    closedir(processes);
    return count;
}

static int
count_processes(void)
{
    enum bh_first_state ignored;

    return fault_test_check(0, &ignored);
}

static bool
await_none(void)
{
    return bh_test_await(count_processes() == 0);
}

/* The keeper's pid, as soon as it has written it. */
static pid_t
await_keeper(void)
{
    pid_t keeper = 0;

    for (int tries = 0; tries < bh_test_scaled(TEST_TIMEOUT_MS) && keeper == 0; tries++) {
        keeper = (pid_t)strtol(bh_test_read("state/jobs/90/keeper"), NULL, 10);
        if (keeper == 0)
            bh_time_sleep(BH_NS_PER_MS);
    }
    assert_true(keeper > 1);
    return keeper;
}

static void
send_start(const struct test_job *job)
{
    struct bh_msg_mount mounts[8];
    const char *args[4];
    struct bh_msg_start start = bh_test_start_message(job, args, mounts);

    start.order = ++the_node.order;
    bh_test_send(BH_MSG_START, &start);
}

/* The node stops while its job's sandbox is built, so that no program lets the command begin; then process 1
 * comes to the barrier.  False: the node was faster, and may have let it start. */
static bool
is_stopped_at_the_barrier(void)
{
    enum bh_first_state first;

    kill(the_node.pid, SIGSTOP);
    assert_int_equal(waitpid(the_node.pid, NULL, WUNTRACED), the_node.pid);
    fault_test_check(0, &first);
    if (first != BH_FIRST_SETUP)
        return false;
    for (int tries = 0; tries < bh_test_scaled(10000) && first == BH_FIRST_SETUP; tries++) {
        bh_time_sleep(BH_NS_PER_MS);
        fault_test_check(0, &first);
    }
    BH_CHECK_EQ("it waits", first, BH_FIRST_WAITS);
    return true;
}

/* With node and keeper killed, no program is left that would end the job: it ends itself, whether its command
 * runs or it waits at the start barrier. */
static void
test_keeper_and_node_killed(void **state)
{
    static const char *const names[] = { "running", "at the barrier" };
    int tries = 0;

    for (size_t i = 0; i < BH_COUNT(names);) {
        struct test_job job = { .lease = LEASE, .script = "echo up; sleep 60 & sleep 60" };
        pid_t keeper;

        send_start(&job);
        keeper = await_keeper();
        if (i == 0 ? bh_test_wait_for_log(LEASE, "up") : is_stopped_at_the_barrier())
            i++;
        assert_true(++tries < 20);
        bh_test_node_end(&the_node, SIGKILL);
        kill(keeper, SIGKILL);
        BH_CHECK(names[i ? i - 1 : 0], await_none());
        bh_test_node_start(&the_node);
        bh_test_hello(&the_node);
        BH_CHECK_EQ("its end", bh_test_receive(BH_MSG_ENDED, LEASE).ended.lease, LEASE);
        bh_test_acknowledge(&(struct bh_msg_ack){ .lease = LEASE });
    }
    BH_CHECK_DONE();
}

/* How many control groups of the lease there are, and mounts that name it where the node has its
 * own. */
static uint32_t
count_places(void)
{
    static const char *const hierarchies[] = { "", "/memory", "/cpu", "/pids", "/freezer", "/devices" };
    char path[TEST_PATH * 2], text[64 << 10] = "", name[32];
    BH_AUTO(bh_fd_close) int fd = -1;
    size_t length = 0;
    ssize_t n;
    uint32_t count = 0;

    for (size_t i = 0; i < BH_COUNT(hierarchies); i++) {
        bh_path_format(path, sizeof path, "/sys/fs/cgroup%s%s/bh-%d", hierarchies[i], the_node.cgroup, LEASE);
        count += access(path, F_OK) == 0;
    }
    bh_path_format(path, sizeof path, "/proc/%d/mountinfo", (int)the_node.pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    while ((n = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)n;
    snprintf(name, sizeof name, "/bh-%d/", LEASE);
    for (const char *at = text; (at = strstr(at, name)); at++)
        count++;
    return count;
}

/* A stopped job does not see its keeper end.  When journal and folder are gone, too, only the names of its
 * control groups show the next node that it exists. */
static void
test_left_alone(void **state)
{
    struct test_job job = { .lease = LEASE, .script = "echo up; sleep 60 & sleep 60" };
    enum bh_first_state first;
    char path[TEST_PATH * 2];
    pid_t keeper;

    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(LEASE, "up"));
    keeper = await_keeper();
    BH_CHECK("it has places", count_places() > 0);
    fault_test_check(SIGSTOP, &first);
    BH_CHECK_EQ("process 1 is one of them", first, BH_FIRST_BEGAN);
    bh_test_node_end(&the_node, SIGKILL);
    kill(keeper, SIGKILL);
    while (kill(keeper, 0) == 0)
        bh_time_sleep(BH_NS_PER_MS);
    BH_CHECK("it is left", count_processes() > 0);
    bh_path_format(path, sizeof path, "%s/state/journal", the_node.folder);
    assert_int_equal(unlink(path), 0);
    bh_path_format(path, sizeof path, "%s/state/jobs", the_node.folder);
    bh_path_remove_tree(path);
    BH_CHECK_STR("its folder is gone", bh_test_read("state/jobs/90/keeper"), "");
    bh_test_node_start(&the_node);
    BH_CHECK_EQ("not reported", bh_test_hello(&the_node).leases.count, 0);
    BH_CHECK("its processes are gone", await_none());
    BH_CHECK_EQ("and all its places", count_places(), 0);
    BH_CHECK("the log tells", strstr(bh_test_read("node.log"), "bh-90"));
    job.script = "exit 4";
    BH_CHECK_EQ("its number is free", bh_test_run_job(&job).exit_status, 4);
    BH_CHECK_DONE();
}

/* How many messages of that kind have come and were not taken. */
static uint32_t
count_inbox(uint32_t number)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < the_node.inbox_count; i++)
        count += the_node.inbox[i].number == number;
    return count;
}

/* A look at the first GPU hangs from now on, and one has begun. */
static void
let_a_look_hang(void)
{
    char path[TEST_PATH * 2];

    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    bh_test_write(path, "nvmlDeviceGetFieldValues gpu=0 hang count=1000\n");
    bh_test_simctl("await", "1", NULL);
}

/* A job ends while a call about its GPU hangs.  When that is given up and the GPU fenced, the end
 * has been reported. */
static void
test_end_before_the_fence(void **state)
{
    struct test_job job = { .lease = LEASE,
                            .partition = 5,
                            .script = "until [ -e /run/bulkhead-sim/view/go ]; do sleep 0.02; done; exit 3" };
    struct test_message message;

    bh_test_restart("health_interval_ms = 200\n");
    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    let_a_look_hang();
    bh_test_release(0);
    do
        message = bh_test_receive(BH_MSG_HEALTH, 0);
    while (message.health.fault != BH_FAULT_HUNG);
    BH_CHECK_EQ("the end came first", count_inbox(BH_MSG_ENDED), 1);
    BH_CHECK_EQ("its own", bh_test_receive(BH_MSG_ENDED, LEASE).ended.exit_status, 3);
    BH_CHECK_DONE();
}

/* While a look at a GPU hangs, an order is answered: the look is not the loop's. */
static void
test_orders_beside_a_hang(void **state)
{
    struct test_job job = { .lease = LEASE, .script = "exit 0" };
    struct test_message message;

    bh_test_restart("health_interval_ms = 200\n");
    let_a_look_hang();
    BH_CHECK_EQ("runs", bh_test_run_job(&job).exit_status, 0);
    for (uint32_t i = 0; i < the_node.inbox_count; i++)
        BH_CHECK("before the look is given up", the_node.inbox[i].number != BH_MSG_HEALTH
                                                    || the_node.inbox[i].health.fault != BH_FAULT_HUNG);
    do
        message = bh_test_receive(BH_MSG_HEALTH, 0);
    while (message.health.fault != BH_FAULT_HUNG);
    BH_CHECK_STR("and then", message.health.gpu, the_node.gpus[0]);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_keeper_and_node_killed),
        BH_NODE_TEST(test_left_alone),
        BH_NODE_TEST(test_end_before_the_fence),
        BH_NODE_TEST(test_orders_beside_a_hang),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
