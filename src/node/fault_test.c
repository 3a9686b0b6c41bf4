/* What goes wrong around a job and is not its own doing: keepers that are killed, and reports that
 * end what runs on a GPU while an end is on disk already. */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "node/node_fixture_test.h"
#include "node/path.h"

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

static int
count_processes(void)
{
    DIR *processes = opendir("/proc");
    int count = 0;

    assert_non_null(processes);
    for (const struct dirent *entry; (entry = readdir(processes));)
        count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_in_lease(entry->d_name);
    closedir(processes);
    return count;
}

/* The keeper's pid, as soon as it has written it. */
static pid_t
await_keeper(void)
{
    pid_t keeper = 0;

    for (int tries = 0; tries < bh_test_patience(5000) && keeper == 0; tries++) {
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

/* With node and keeper killed, nobody is left who would end the job: it ends itself, whether its
 * command runs or it waits at the start barrier. */
static void
test_keeper_and_node_killed(void **state)
{
    for (int begun = 0; begun < 2; begun++) {
        struct test_job job = { .lease = LEASE, .script = "echo up; sleep 60 & sleep 60" };
        pid_t keeper;

        send_start(&job);
        keeper = await_keeper();
        if (begun)
            assert_true(bh_test_wait_for_log(LEASE, "up"));
        else
            kill(the_node.pid, SIGSTOP); /* nobody looks at the sandbox, and lets it begin */
        for (int tries = 0; tries < bh_test_patience(5000) && count_processes() < 1; tries++)
            bh_time_sleep(BH_NS_PER_MS);
        if (!begun)
            bh_time_sleep(200 * BH_NS_PER_MS); /* most likely at the barrier by then */
        bh_test_node_end(&the_node, SIGKILL);
        kill(keeper, SIGKILL);
        for (int tries = 0; tries < bh_test_patience(500) && count_processes() > 0; tries++)
            bh_time_sleep(10 * BH_NS_PER_MS);
        BH_CHECK_EQ(begun ? "running" : "at the barrier", count_processes(), 0);
        bh_test_node_start(&the_node);
        bh_test_greet(&the_node);
        BH_CHECK_EQ("its end", bh_test_take(BH_MSG_ENDED, LEASE).ended.lease, LEASE);
        bh_test_acknowledge(&(struct bh_msg_ack){ .lease = LEASE });
    }
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

/* A job ends while a call about its GPU hangs.  When that is given up and the GPU fenced, the end
 * has been reported. */
static void
test_end_before_the_fence(void **state)
{
    struct test_job job = {
        .lease = LEASE, .partition = 5,
        .script = "until [ -e /run/bulkhead-sim/view/go ]; do sleep 0.02; done; exit 3"
    };
    struct test_message message;
    char path[TEST_PATH * 2];

    bh_test_restart("health_interval_ms = 200\ncall_timeout_ms = 100\n");
    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    bh_test_write(path, "nvmlDeviceGetFieldValues gpu=0 hang\n");
    bh_time_sleep(500 * BH_NS_PER_MS); /* a look at the GPUs has begun */
    bh_test_let_go(0);
    do
        message = bh_test_take(BH_MSG_HEALTH, 0);
    while (message.health.fault != BH_FAULT_HUNG);
    BH_CHECK_EQ("the end came first", count_inbox(BH_MSG_ENDED), 1);
    BH_CHECK_EQ("its own", bh_test_take(BH_MSG_ENDED, LEASE).ended.exit_status, 3);
    BH_CHECK_DONE();
}

/* While a look at a GPU hangs, an order is answered: the look is not the loop's. */
static void
test_orders_beside_a_hang(void **state)
{
    struct test_job job = { .lease = LEASE, .script = "exit 0" };
    struct test_message message;
    char path[TEST_PATH * 2];

    bh_test_restart("health_interval_ms = 200\ncall_timeout_ms = 100\n");
    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    bh_test_write(path, "nvmlDeviceGetFieldValues gpu=0 hang\n");
    bh_time_sleep(500 * BH_NS_PER_MS); /* a look at the GPUs has begun */
    BH_CHECK_EQ("runs", bh_test_run_job(&job).exit_status, 0);
    for (uint32_t i = 0; i < the_node.inbox_count; i++)
        BH_CHECK("before the look is given up",
                 the_node.inbox[i].number != BH_MSG_HEALTH
                     || the_node.inbox[i].health.fault != BH_FAULT_HUNG);
    do
        message = bh_test_take(BH_MSG_HEALTH, 0);
    while (message.health.fault != BH_FAULT_HUNG);
    BH_CHECK_STR("and then", message.health.gpu, the_node.gpus[0]);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_keeper_and_node_killed),
        BH_NODE_TEST(test_end_before_the_fence),
        BH_NODE_TEST(test_orders_beside_a_hang),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
