/* What a tenant can write is no evidence against others: jobs that try to make the node's isolation
 * checks condemn what is not theirs.  Real sandboxes, the simulated driver. */

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "model/boundary.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/session/node_fixture_test.h"

enum { MOUNTS = 40, TARGET = 980, SUBMITTER = 4321, LEASE = 71, NEIGHBOR = 72 };
#define LAST_NUMBER "/proc/sys/kernel/ns_last_pid"
#define HIGH_NUMBER "30000"
#define LOW_NUMBER "300"
#define WAIT "echo ready; while :; do sleep 0.05; done"

static void
ask_verify(uint64_t lease)
{
    struct bh_msg_verify message = { .request = 5, .lease = lease };

    bh_test_send(BH_MSG_VERIFY, &message);
}

static struct bh_msg_verdict
hostile_test_verify(uint64_t lease)
{
    ask_verify(lease);
    return bh_test_receive(BH_MSG_VERDICT, 0).verdict;
}

/* A job of that boundary on its own partition, or as that job. */
static struct bh_msg_outcome
start_within(const struct test_job *job, enum bh_boundary boundary, uint64_t number)
{
    const char *args[3];
    struct bh_msg_start start = bh_test_start_message(job, args, NULL);

    start.boundary = boundary;
    start.job = number ? number : start.job;
    return bh_test_order(BH_MSG_START, &start);
}

/* Two partitions of the first GPU and one of the second, and a neighbor on the first. */
static void
start_neighbors(const char *more)
{
    struct test_job neighbor = { .lease = NEIGHBOR, .partition = 2, .script = WAIT, .tenant = 1 };

    bh_test_restart(more);
    BH_CHECK_EQ("carved", bh_test_carve(1, 0, "1g.10gb", 0).outcome, 0);
    BH_CHECK_EQ("carved", bh_test_carve(2, 0, "1g.10gb", 1).outcome, 0);
    BH_CHECK_EQ("carved", bh_test_carve(3, 1, "1g.10gb", 0).outcome, 0);
    BH_CHECK_EQ("neighbor", start_within(&neighbor, BH_BOUNDARY_HARD, 0).outcome, 0);
}

static bool
hostile_test_runs(uint64_t lease)
{
    struct test_message message;

    return !bh_test_receive_within(BH_MSG_ENDED, lease, 100, &message);
}

/* How many GPUs were closed for isolation, as far as the node has said by now. */
static uint32_t
count_closed(void)
{
    struct test_message message;
    uint32_t count = 0;

    while (bh_test_receive_within(BH_MSG_HEALTH, 0, 200, &message))
        count += message.health.fault == BH_FAULT_ISOLATION;
    return count;
}

/* Mount targets as long as they may be, so many that the list of mounts is 40 KiB and more. */
static void
test_long_targets(void **state)
{
    static char source[TEST_PATH * 2], targets[MOUNTS][TARGET + 1];
    struct test_job job = { .lease = LEASE, .partition = 1, .script = WAIT, .uid = SUBMITTER };
    struct bh_msg_mount mounts[MOUNTS];
    const char *args[3];
    struct bh_msg_start start = bh_test_start_message(&job, args, NULL);
    struct bh_msg_verdict verdict;
    struct bh_msg_outcome outcome;

    start_neighbors("verify_retry_ms = 100\n");
    bh_path_format(source, sizeof source, "%s/work/shown", the_node.folder);
    assert_int_equal(mkdir(source, 0755), 0);
    for (uint32_t i = 0; i < MOUNTS; i++) {
        memset(targets[i], 'x', TARGET);
        snprintf(targets[i], 12, "/mnt/%02u", i);
        for (uint32_t at = 7; at < TARGET; at++)
            targets[i][at] = at % 200 == 7 ? '/' : at % 3 == 0 ? ' ' : 'x'; /* written as four */
        mounts[i] = (struct bh_msg_mount){ source, targets[i], false };
    }
    start.mounts = (struct bh_list){ mounts, MOUNTS };
    start.boundary = BH_BOUNDARY_HARD;
    outcome = bh_test_order(BH_MSG_START, &start);
    BH_CHECK_STR("starts", outcome.why, "");
    verdict = hostile_test_verify(LEASE);
    BH_CHECK_STR("is verified", verdict.why, "");
    BH_CHECK_EQ("no GPU", count_closed(), 0);
    BH_CHECK("the neighbor runs", hostile_test_runs(NEIGHBOR));
    BH_CHECK_DONE();
}

/* The number that the last process had; the next ones follow on it. */
static bool
set_last_number(const char *number)
{
    int fd = open(LAST_NUMBER, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, number, strlen(number)) == (ssize_t)strlen(number);

    if (fd >= 0)
        close(fd);
    return done;
}

/* The next processes get low numbers, as they do when the numbers begin anew. */
static pid_t
begin_numbers_anew(void)
{
    pid_t meddler = fork();

    if (meddler != 0)
        return meddler;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (set_last_number(LOW_NUMBER))
        ;
    _exit(1);
}

/* Children that are called as process 1 is, hold files open, and stand before it in every list. */
static void
test_named_init(void **state)
{
    struct test_job job = {
        .lease = LEASE,
        .partition = 1,
        .script =
            "cp /bin/sleep /tmp/init; while [ ! -e /run/bulkhead-sim/view/go ]; do :; done; "
            "for i in 1 2 3 4 5 6 7 8 9; do (trap '' USR1; exec /tmp/init 600 5</etc/passwd) & done; " WAIT
    };
    struct bh_msg_verdict verdict;
    pid_t meddler;

    start_neighbors("verify_retry_ms = 100\n");
    BH_CHECK("numbers that are high", set_last_number(HIGH_NUMBER));
    BH_CHECK_EQ("starts", start_within(&job, BH_BOUNDARY_HARD, 0).outcome, 0);
    meddler = begin_numbers_anew();
    bh_test_release(0);
    BH_CHECK("named", bh_test_wait_for_log(LEASE, "ready"));
    kill(meddler, SIGKILL);
    waitpid(meddler, NULL, 0);
    verdict = hostile_test_verify(LEASE);
    BH_CHECK_STR("process 1 was inspected", verdict.why, "");
    bh_test_restart("verify_retry_ms = 100\n"); /* the next node finds the same process 1 */
    verdict = hostile_test_verify(LEASE);
    BH_CHECK_STR("and again", verdict.why, "");
    BH_CHECK_EQ("no GPU", count_closed(), 0);
    BH_CHECK("it runs", hostile_test_runs(LEASE));
    BH_CHECK("the neighbor runs", hostile_test_runs(NEIGHBOR));
    BH_CHECK_DONE();
}

/* One who asks about a lease while its start barrier is shut hears how it stands when that is over,
 * and not that it does not run. */
static void
test_asked_early(void **state)
{
    struct test_job job = { .lease = LEASE, .partition = 1, .script = WAIT };
    const char *args[3];
    struct bh_msg_start start = bh_test_start_message(&job, args, NULL);

    start_neighbors("");
    start.order = ++the_node.order;
    bh_test_send(BH_MSG_START, &start);
    ask_verify(LEASE);
    ask_verify(NEIGHBOR);
    BH_CHECK_EQ("starts", bh_test_receive(BH_MSG_OUTCOME, start.order).outcome.outcome, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct bh_msg_verdict verdict = bh_test_receive(BH_MSG_VERDICT, 0).verdict;

        BH_CHECK_STR(verdict.lease == LEASE ? "it" : "the neighbor", verdict.why, "");
    }
    BH_CHECK_DONE();
}

static void
fail_driver(const char *how)
{
    char path[TEST_PATH * 2], text[TEST_PATH];

    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    snprintf(text, sizeof text, "nvmlDeviceGetComputeRunningProcesses_v3 gpu=1 %s\n", how);
    bh_test_write(path, how[0] ? text : "");
}

static void
take_notice(const char *name, uint64_t lease, enum bh_job_notice kind)
{
    BH_CHECK_EQ(name, bh_test_receive(BH_MSG_NOTICE, lease).notice.kind, kind);
}

/* A check that is inconclusive takes the lease its grade; after three more that are, it alone is
 * stopped, where its boundary needs the grade. */
static void
test_inconclusive(void **state)
{
    static const struct {
        const char *name;
        enum bh_boundary boundary;
        bool passes, ends;
    } rows[] = {
        { "hard, and passes again", BH_BOUNDARY_HARD, true, false },
        { "hard", BH_BOUNDARY_HARD, false, true },
        { "soft", BH_BOUNDARY_SOFT, false, false },
    };

    start_neighbors("verify_retry_ms = 1000\n");
    for (uint32_t i = 0; i < BH_COUNT(rows); i++) {
        struct test_job job = { .lease = LEASE + 10 + i, .partition = 3, .script = WAIT };
        struct bh_msg_stop stop = { .lease = job.lease };
        struct test_message message;
        struct bh_msg_ended ended;

        BH_CHECK_EQ(rows[i].name, start_within(&job, rows[i].boundary, 0).outcome, 0);
        fail_driver("fail=UNKNOWN");
        ask_verify(job.lease);
        take_notice(rows[i].name, job.lease, BH_JOB_NOTICE_UNVERIFIED);
        if (rows[i].passes) {
            fail_driver("");
            take_notice(rows[i].name, job.lease, BH_JOB_NOTICE_VERIFIED);
        }
        if (rows[i].ends)
            take_notice(rows[i].name, job.lease, BH_JOB_NOTICE_ISOLATION);
        else if (!rows[i].passes) /* longer than three checks more */
            BH_CHECK(rows[i].name, !bh_test_receive_within(BH_MSG_NOTICE, job.lease, 5000, &message));
        BH_CHECK_EQ(rows[i].name, bh_test_receive(BH_MSG_VERDICT, 0).verdict.result, BH_CHECK_INCONCLUSIVE);
        BH_CHECK_EQ(rows[i].name, bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
        ended = bh_test_receive(BH_MSG_ENDED, job.lease).ended;
        BH_CHECK_EQ(rows[i].name, ended.cause == BH_END_ISOLATION, rows[i].ends);
        fail_driver("");
    }
    BH_CHECK_EQ("no GPU", count_closed(), 0);
    BH_CHECK("the neighbor runs", hostile_test_runs(NEIGHBOR));
    BH_CHECK_DONE();
}

static void
widen_fence(uint64_t lease)
{
    char path[TEST_PATH * 2];
    int fd;

    bh_path_format(path, sizeof path, "/sys/fs/cgroup/devices%s/bh-%u/devices.allow", the_node.cgroup,
                   (unsigned)lease);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, "c 10:200 rwm", 12) == 12);
    close(fd);
}

/* A check that fails by what no job can make ends that lease, and closes one GPU for new ones;
 * what runs there runs on, and the same job closes no second. */
static void
test_finding(void **state)
{
    struct test_job job = { .lease = LEASE, .partition = 1, .script = WAIT };
    struct test_job again = { .lease = LEASE + 1 + NEIGHBOR, .partition = 3, .script = WAIT };
    struct test_job other = { .lease = LEASE + 2 + NEIGHBOR, .partition = 3, .script = "true" };
    struct bh_msg_outcome outcome;
    struct bh_msg_verdict verdict;
    struct bh_msg_ended ended;

    if (access("/sys/fs/cgroup/devices", F_OK) != 0)
        skip(); /* version 2: a program cannot be widened from outside */
    start_neighbors("");
    BH_CHECK_EQ("starts", start_within(&job, BH_BOUNDARY_HARD, 900).outcome, 0);
    widen_fence(job.lease);
    verdict = hostile_test_verify(job.lease);
    BH_CHECK_EQ("fails", verdict.result, BH_CHECK_FAIL);
    ended = bh_test_receive(BH_MSG_ENDED, job.lease).ended;
    BH_CHECK_EQ("stopped", ended.cause, BH_END_ISOLATION);
    BH_CHECK(ended.why, strstr(ended.why, "isolation: device-fence: not ordered") != NULL);
    BH_CHECK_EQ("one GPU", count_closed(), 1);
    job.lease = LEASE + NEIGHBOR;
    outcome = start_within(&job, BH_BOUNDARY_HARD, 901);
    BH_CHECK(outcome.why, strstr(outcome.why, "was not verified") != NULL);
    BH_CHECK_EQ("elsewhere", start_within(&again, BH_BOUNDARY_HARD, 900).outcome, 0);
    widen_fence(again.lease);
    BH_CHECK_EQ("fails", hostile_test_verify(again.lease).result, BH_CHECK_FAIL);
    BH_CHECK_EQ("stopped", bh_test_receive(BH_MSG_ENDED, again.lease).ended.cause, BH_END_ISOLATION);
    BH_CHECK_EQ("no second GPU", count_closed(), 0);
    BH_CHECK_EQ("others start there", start_within(&other, BH_BOUNDARY_HARD, 902).outcome, 0);
    BH_CHECK("the neighbor runs", hostile_test_runs(NEIGHBOR));
    BH_CHECK_DONE();
}

/* A job that ends while it is verified is no finding. */
static void
test_ends_meanwhile(void **state)
{
    char script[64];

    start_neighbors("");
    for (uint32_t i = 0; i < 12; i++) {
        struct test_job job = { .lease = LEASE + 20 + i, .partition = 1, .script = script };
        struct bh_msg_verify message = { .request = 7 + i, .lease = job.lease };

        snprintf(script, sizeof script, "sleep 0.0%u", i % 10);
        BH_CHECK_EQ("starts", start_within(&job, BH_BOUNDARY_HARD, 0).outcome, 0);
        bh_time_sleep(i % 10 * 10 * BH_NS_PER_MS);
        bh_test_send(BH_MSG_VERIFY, &message);
        BH_CHECK("not a failure", bh_test_receive(BH_MSG_VERDICT, 0).verdict.result != BH_CHECK_FAIL);
        BH_CHECK_EQ("by itself", bh_test_receive(BH_MSG_ENDED, job.lease).ended.cause, BH_END_EXITED);
    }
    BH_CHECK_EQ("no GPU", count_closed(), 0);
    BH_CHECK_DONE();
}

/* The process that waits for a lease's process 1: in its groups, but not in its namespaces. */
static pid_t
find_runtime(uint64_t lease)
{
    bool own = access("/sys/fs/cgroup/freezer", F_OK) == 0;
    char path[TEST_PATH * 2], line[32], name[64], mine[64];
    ssize_t length = readlink("/proc/self/ns/pid", mine, sizeof mine);
    pid_t found = 0;
    FILE *members;

    bh_path_format(path, sizeof path, "/sys/fs/cgroup%s%s/bh-%u/cgroup.procs", own ? "/freezer" : "",
                   the_node.cgroup, (unsigned)lease);
    members = fopen(path, "re");
    assert_non_null(members);
    while (fgets(line, sizeof line, members)) {
        pid_t pid = (pid_t)strtol(line, NULL, 10);

        bh_path_format(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
        if (readlink(path, name, sizeof name) == length && memcmp(name, mine, (size_t)length) == 0)
            found = pid;
    }
    fclose(members);
    assert_true(found > 0);
    return found;
}

/* Stop it for good, as a tracer does: of all signals SIGKILL alone takes it on. */
static pid_t
hold_stopped(pid_t runtime)
{
    int ends[2], status;
    pid_t tracer;
    char held;

    assert_int_equal(pipe(ends), 0);
    tracer = fork();
    if (tracer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (ptrace(PTRACE_ATTACH, runtime, NULL, NULL) != 0 || waitpid(runtime, &status, __WALL) != runtime
            || write(ends[1], "h", 1) != 1)
            _exit(1);
        while (WIFSTOPPED(status) && waitpid(runtime, &status, __WALL) == runtime)
            ; /* its end is reported to its parent when it is reported here */
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &held, 1), 1);
    close(ends[0]);
    return tracer;
}

/* A runtime that is stopped passes on no end of the job: a stop of the job continues it, and then
 * it says how the job ended; one that does not go on is killed. */
static void
test_runtime_stopped(void **state)
{
    static const struct {
        const char *name;
        bool held;
        bh_ns grace;
        int status;
    } rows[] = {
        { "asked", false, 30 * BH_NS_PER_S, 3 },
        { "killed", false, 0, 128 + SIGKILL },
        { "asked, and held", true, BH_NS_PER_S, 128 + SIGKILL },
        { "killed, and held", true, 0, 128 + SIGKILL },
    };

    start_neighbors("");
    for (uint32_t i = 0; i < BH_COUNT(rows); i++) {
        struct test_job job = { .lease = LEASE + 40 + i,
                                .partition = 1,
                                .script = "trap 'exit 3' TERM; " WAIT };
        struct bh_msg_stop stop = { .lease = job.lease, .grace_ns = rows[i].grace };
        pid_t runtime, tracer = 0;
        struct test_message ended = { 0 };

        BH_CHECK_EQ(rows[i].name, start_within(&job, BH_BOUNDARY_HARD, 0).outcome, 0);
        BH_CHECK(rows[i].name, bh_test_wait_for_log(job.lease, "ready"));
        runtime = find_runtime(job.lease);
        if (rows[i].held)
            tracer = hold_stopped(runtime);
        else
            assert_int_equal(kill(runtime, SIGSTOP), 0);
        BH_CHECK_EQ(rows[i].name, bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
        BH_CHECK(rows[i].name, bh_test_receive_within(BH_MSG_ENDED, job.lease, 20000, &ended));
        BH_CHECK_EQ(rows[i].name, ended.ended.exit_status, rows[i].status);
        if (tracer > 0) {
            kill(tracer, SIGKILL);
            waitpid(tracer, NULL, 0);
        }
    }
    BH_CHECK("the neighbor runs", hostile_test_runs(NEIGHBOR));
    BH_CHECK_DONE();
}

/* Process 1 of the test's numbers takes in orphans; it ends with the test, and with it all others. */
static int
wait_as_first(pid_t test)
{
    int status = 0;
    pid_t ended;

    do {
        ended = waitpid(-1, &status, 0);
    } while (ended > 0 && ended != test);
    return ended == test && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Continue in a process number namespace of the test's own: programs outside it would not survive that the
 * numbers begin anew.  Where there is none to be had, bh_test_main skips all. */
static void
enter_own_numbers(void)
{
    pid_t child;

    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
        return;
    child = fork();
    if (child != 0)
        _exit(wait_as_first(child));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
        puts("Bail out! no process numbers of its own");
        exit(1);
    }
    child = fork();
    if (child != 0)
        _exit(wait_as_first(child));
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_long_targets),    BH_NODE_TEST(test_named_init), BH_NODE_TEST(test_asked_early),
        BH_NODE_TEST(test_inconclusive),    BH_NODE_TEST(test_finding),    BH_NODE_TEST(test_ends_meanwhile),
        BH_NODE_TEST(test_runtime_stopped),
    };

    enter_own_numbers();
    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
