/* Tries of the walls that come to nothing, and those that find one broken: what is fenced, what is
 * tried again unasked, and what waits for a person.  Real sandboxes; the probe is slow, or worse,
 * until there is a file `go` in what the driver shows of its partition. */

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/session/node_fixture_test.h"

/* Copied to where the probe stands: the real one, under the name of the scrub's helper. */
#define PROBE "/usr/local/bulkhead/libexec/scrub \"$@\""
#define REAL "exec " PROBE
#define UNTIL_GO(bad) "[ -e /run/bulkhead-sim/view/go ] && " REAL "\n" bad
/* The probe's report of an attempt for which there was no time; the last report counts. */
#define HUNG(attempt) PROBE "\necho " attempt " otherwise hung"

/* A node with that probe, a partition that it is lent, and more in node.conf. */
static void
start_with_probe(const char *script, const char *more)
{
    char program[TEST_PATH], from[TEST_PATH * 2], to[TEST_PATH * 2], text[TEST_PATH * 3];

    bh_test_put_program("bulkhead-scrub", "");
    bh_path_format(to, sizeof to, "%s/libexec/bulkhead-scrub", the_node.folder);
    snprintf(program, sizeof program, "%s", the_node.program);
    bh_path_format(from, sizeof from, "%s/bulkhead-probe", dirname(program));
    assert_int_equal(unlink(to), 0);
    assert_int_equal(symlink(from, to), 0);
    bh_path_format(to, sizeof to, "%s/libexec/bulkhead-probe", the_node.folder);
    (void)unlink(to); /* else what the link leads to would be written */
    bh_test_put_program("bulkhead-probe", script);
    snprintf(text, sizeof text, "libexec_dir = %s/libexec\n%s", the_node.folder, more);
    bh_test_restart(text);
    BH_CHECK_EQ("carved", bh_test_carve(1, 0, "1g.10gb", 0).outcome, 0);
}

static struct bh_msg_verdict
verify_test_request(uint64_t request, uint64_t lease)
{
    struct bh_msg_verify message = { .request = request, .lease = lease };

    bh_test_send(BH_MSG_VERIFY, &message);
    return bh_test_receive(BH_MSG_VERDICT, 0).verdict;
}

/* No job starts, and all GPUs are reported. */
static void
check_fenced(void)
{
    struct test_job job = { .lease = 60, .script = "true" };
    struct bh_msg_outcome outcome = bh_test_start_job(&job);

    BH_CHECK_EQ("fenced", outcome.rc, BH_UNAVAILABLE);
    BH_CHECK(outcome.why, strstr(outcome.why, "isolation was not verified") != NULL);
    for (int gpu = 0; gpu < 2; gpu++)
        BH_CHECK_EQ("told", bh_test_receive(BH_MSG_HEALTH, 0).health.fault, BH_FAULT_ISOLATION);
}

static void
check_runs(uint64_t lease)
{
    struct test_job job = { .lease = lease, .script = "true" };

    BH_CHECK_EQ("runs", bh_test_run_job(&job).exit_status, 0);
}

/* A try for which there was no time fences all GPUs, and is made again until it holds. */
static void
test_tried_again(void **state)
{
    struct bh_msg_verdict verdict;

    start_with_probe(UNTIL_GO(HUNG("gpu_other")), "verify_retry_ms = 100\nverify_retries = 30\n");
    verdict = verify_test_request(5, 0);
    BH_CHECK_EQ("neither", verdict.result, BH_CHECK_INCONCLUSIVE);
    BH_CHECK("and says when again", verdict.retry_ns > verdict.at_ns);
    BH_CHECK(verdict.why, strstr(verdict.why, "gpu_other: otherwise hung") != NULL);
    check_fenced();
    bh_test_release(0);
    do { /* a try that was under way already */
        verdict = bh_test_receive(BH_MSG_VERDICT, 0).verdict;
        BH_CHECK("unasked", verdict.request == 0 && strcmp(verdict.cause, "again") == 0);
    } while (verdict.result == BH_CHECK_INCONCLUSIVE);
    BH_CHECK_STR("held", verdict.why, "");
    BH_CHECK("nothing is due", verdict.result == BH_CHECK_PASS && verdict.retry_ns == 0);
    check_runs(61);
    BH_CHECK_DONE();
}

/* Once a try has held, one without an answer is no finding: nothing is fenced, jobs start, and it
 * is made again. */
static void
test_no_answer_after_held(void **state)
{
    struct bh_msg_verdict verdict;
    struct test_message message;

    start_with_probe("[ -e /run/bulkhead-sim/view/go ] || " REAL "\n" HUNG("gpu_other"),
                     "verify_retry_ms = 100\nverify_retries = 1\n");
    verdict = verify_test_request(5, 0);
    BH_CHECK_EQ(verdict.why, verdict.result, BH_CHECK_PASS);
    while (bh_test_receive_within(BH_MSG_HEALTH, 0, 0, &message))
        ;
    bh_test_release(0);
    verdict = verify_test_request(6, 0);
    BH_CHECK("no answer", verdict.result == BH_CHECK_INCONCLUSIVE && verdict.retry_ns > 0);
    check_runs(80);
    verdict = bh_test_receive(BH_MSG_VERDICT, 0).verdict;
    BH_CHECK("again", verdict.result == BH_CHECK_INCONCLUSIVE && verdict.request == 0);
    check_runs(81);
    BH_CHECK("nothing was fenced", !bh_test_receive_within(BH_MSG_HEALTH, 0, 0, &message));
    BH_CHECK_DONE();
}

/* Processor time that the node has used, in ticks of 10 ms. */
static unsigned long
used_ticks(void)
{
    char path[TEST_PATH], text[1024] = "", *rest;
    unsigned long user, system;
    FILE *file;

    bh_path_format(path, sizeof path, "/proc/%d/stat", (int)the_node.pid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    rest = strrchr(text, ')');
    assert_int_equal(sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system),
                     2);
    return user + system;
}

/* A runtime that makes no sandbox of lease 82 while there is a file `hold` in the test's folder. */
static void
put_slow_runtime(char ret_conf[TEST_PATH * 3])
{
    char path[TEST_PATH * 2], script[TEST_PATH * 4];

    bh_path_format(path, sizeof path, "%s/hold", the_node.folder);
    bh_test_write(path, "");
    snprintf(script, sizeof script,
             "#!/bin/sh\ncase \"$*\" in *bh-82*) while [ -e %s ]; do sleep 0.05; done;; esac\n"
             "PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
             "exec crun \"$@\"\n",
             path);
    bh_path_format(path, sizeof path, "%s/crun", the_node.folder);
    bh_test_write(path, script);
    assert_int_equal(chmod(path, 0755), 0);
    snprintf(ret_conf, TEST_PATH * 3, "runtime = %s\nverify_retry_ms = 300\nverify_retries = 1\n", path);
}

/* A check is requested for a lease that is behind its start barrier: checks that are due run before the
 * answer, and nothing spins until then. */
static void
test_behind_its_barrier(void **state)
{
    struct test_job job = { .lease = 82, .script = "true" };
    struct bh_msg_verify asked = { .request = 7, .lease = 82 };
    struct bh_msg_start start;
    struct test_message message;
    char path[TEST_PATH * 2], conf[TEST_PATH * 3];
    const char *args[3];
    unsigned long before;

    put_slow_runtime(conf);
    start_with_probe("[ -e /run/bulkhead-sim/view/go ] || " REAL "\n" HUNG("gpu_other"), conf);
    BH_CHECK_EQ("holds", verify_test_request(5, 0).result, BH_CHECK_PASS);
    bh_test_release(0);
    BH_CHECK("no answer", verify_test_request(6, 0).retry_ns > 0);
    start = bh_test_start_message(&job, args, NULL);
    start.order = ++the_node.order;
    bh_test_send(BH_MSG_START, &start);
    bh_test_send(BH_MSG_VERIFY, &asked);
    before = used_ticks();
    BH_CHECK("tried again", bh_test_receive_within(BH_MSG_VERDICT, 0, TEST_TIMEOUT_MS, &message)
                                && strcmp(message.verdict.cause, "again") == 0);
    BH_CHECK("behind its barrier", !bh_test_receive_within(BH_MSG_OUTCOME, start.order, 1000, &message));
    BH_CHECK("nothing spins", used_ticks() - before < 150);
    bh_path_format(path, sizeof path, "%s/hold", the_node.folder);
    assert_int_equal(unlink(path), 0);
    BH_CHECK_EQ("begins", bh_test_receive(BH_MSG_OUTCOME, start.order).outcome.outcome, 0);
    BH_CHECK_EQ("answered", bh_test_receive(BH_MSG_VERDICT, 0).verdict.request, 7);
    BH_CHECK_DONE();
}

/* The whole probe had no time: it is repeated a few times only; a daemon that connects then gets the
 * state. */
static void
test_given_up(void **state)
{
    struct bh_msg_inventory inventory;
    struct bh_msg_verdict verdict;

    start_with_probe("echo gpu_other held ENOENT; sleep 60",
                     "verify_timeout_ms = 1000\nverify_retry_ms = 100\nverify_retries = 1\n");
    verdict = verify_test_request(5, 0);
    BH_CHECK("again", verdict.result == BH_CHECK_INCONCLUSIVE && verdict.retry_ns > 0);
    BH_CHECK(verdict.why, strstr(verdict.why, "instance_other: no answer") != NULL);
    verdict = bh_test_receive(BH_MSG_VERDICT, 0).verdict;
    BH_CHECK("not again", verdict.result == BH_CHECK_INCONCLUSIVE && verdict.retry_ns == 0);
    bh_test_disconnect(&the_node);
    inventory = bh_test_hello(&the_node);
    BH_CHECK_EQ("unfinished", inventory.isolation.state, BH_ISOLATION_INCONCLUSIVE);
    BH_CHECK("and why", inventory.isolation.retry_ns == 0 && *inventory.isolation.why);
    for (uint32_t i = 0; i < inventory.gpus.count; i++)
        BH_CHECK_EQ("fenced", ((struct bh_msg_gpu *)inventory.gpus.items)[i].fault, BH_FAULT_ISOLATION);
    BH_CHECK_DONE();
}

/* An attempt that went through, and a probe that was brought down by one, wait for a person, also
 * where the rest had no time or another try comes to nothing. */
static void
test_broken_stays(void **state)
{
    static const struct {
        const char *name, *script, *why;
    } cases[] = {
        { "went through", UNTIL_GO(HUNG("instance_other") "; echo gpu_other breached open"),
          "gpu_other: breached open" },
        { "brought down", UNTIL_GO("echo gpu_other held ENOENT; exit 0"), "instance_other: no answer" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_msg_destroy destroy = { .partition = 1 };
        struct bh_msg_verdict verdict;
        struct test_message message;

        start_with_probe(cases[i].script, "verify_retry_ms = 100\nverify_retries = 30\n");
        verdict = verify_test_request(5, 0);
        BH_CHECK(cases[i].name, verdict.result == BH_CHECK_FAIL && !verdict.retry_ns);
        BH_CHECK_STR(cases[i].name, verdict.why, cases[i].why);
        check_fenced();
        bh_test_release(0);
        BH_CHECK("nobody asks", !bh_test_receive_within(BH_MSG_VERDICT, 0, 400, &message));
        verdict = verify_test_request(6, 0);
        BH_CHECK("asked for", verdict.result == BH_CHECK_PASS && verdict.request == 6);
        check_runs(62 + i);
        BH_CHECK_EQ("destroyed", bh_test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    }
    BH_CHECK_DONE();
}

/* A rule that was not ordered is in a lease's device fence while its sandbox is made. */
static pid_t
widen_fence(uint64_t lease)
{
    char path[TEST_PATH * 2];
    pid_t meddler = fork();

    if (meddler != 0)
        return meddler;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bh_path_format(path, sizeof path, "/sys/fs/cgroup/devices%s/bh-%u/devices.allow", the_node.cgroup,
                   (unsigned)lease);
    for (;;) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd >= 0) {
            (void)!write(fd, "c 10:200 rwm", 12);
            close(fd);
        }
    }
}

/* A wall of a lease that was seen broken keeps its GPU fenced, whatever is tried without being
 * asked for. */
static void
test_lease_broken(void **state)
{
    struct test_job failing = { .lease = 67, .partition = 1, .script = "true" };
    struct test_job other = { .lease = 68, .partition = 2, .script = "true" };
    struct bh_msg_outcome outcome;
    struct bh_msg_verdict verdict;
    pid_t meddler;

    if (access("/sys/fs/cgroup/devices", F_OK) != 0)
        skip(); /* version 2: a program cannot be widened from outside */
    start_with_probe(REAL, "verify_sample = 1\nverify_retry_ms = 100\n");
    BH_CHECK_EQ("carved", bh_test_carve(2, 1, "1g.10gb", 0).outcome, 0);
    meddler = widen_fence(failing.lease);
    outcome = bh_test_start_job(&failing);
    kill(meddler, SIGKILL);
    waitpid(meddler, NULL, 0);
    BH_CHECK(outcome.why, strstr(outcome.why, "isolation: device-fence") != NULL);
    BH_CHECK_EQ("elsewhere", bh_test_run_job(&other).exit_status, 0);
    verdict = bh_test_receive(BH_MSG_VERDICT, 0).verdict;
    BH_CHECK("sampled, and held", verdict.result == BH_CHECK_PASS && strcmp(verdict.cause, "sample") == 0);
    failing.lease = 80;
    outcome = bh_test_start_job(&failing);
    BH_CHECK(outcome.why, strstr(outcome.why, "was not verified") != NULL);
    verdict = verify_test_request(7, 0);
    BH_CHECK_EQ("asked for", verdict.result, BH_CHECK_PASS);
    failing.lease = 81;
    BH_CHECK_EQ("runs", bh_test_run_job(&failing).exit_status, 0);
    BH_CHECK_DONE();
}

/* A lease that ended before it could be looked at says nothing of the walls. */
static void
test_lease_gone(void **state)
{
    struct bh_msg_verdict verdict;

    start_with_probe(REAL, "verify_retry_ms = 100\n");
    verdict = verify_test_request(5, 999);
    BH_CHECK("not verified", verdict.result == BH_CHECK_INCONCLUSIVE && verdict.lease == 999);
    BH_CHECK_STR("why", verdict.why, "lease: does not run here");
    check_runs(64);
    BH_CHECK_DONE();
}

/* A driver that cannot list the processes on a job's partition delays the job's begin; then the job does not
 * begin, and no other job is affected. */
static void
test_driver_fails(void **state)
{
    struct test_job job = { .lease = 65, .partition = 1, .script = "true" };
    struct bh_msg_outcome outcome;
    struct test_message message;
    char path[TEST_PATH * 2];

    start_with_probe(REAL, "");
    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    bh_test_write(path, "nvmlDeviceGetComputeRunningProcesses_v3 fail=UNKNOWN count=2\n");
    BH_CHECK_EQ("begins after another inspection", bh_test_run_job(&job).exit_status, 0);
    bh_test_write(path, "nvmlDeviceGetComputeRunningProcesses_v3 fail=UNKNOWN\n");
    job.lease = 66;
    outcome = bh_test_start_job(&job);
    BH_CHECK_EQ("refused", outcome.outcome, 1);
    BH_CHECK(outcome.why, strstr(outcome.why, "isolation: partition:") != NULL);
    BH_CHECK_EQ("ended", bh_test_receive(BH_MSG_ENDED, 66).ended.cause, BH_END_START_FAILED);
    BH_CHECK("no isolation fault of a GPU", !bh_test_receive_within(BH_MSG_HEALTH, 0, 100, &message)
                                                || message.health.fault != BH_FAULT_ISOLATION);
    bh_test_write(path, "");
    job.lease = 67;
    BH_CHECK_EQ("runs", bh_test_run_job(&job).exit_status, 0);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_tried_again),        BH_NODE_TEST(test_no_answer_after_held),
        BH_NODE_TEST(test_behind_its_barrier), BH_NODE_TEST(test_given_up),
        BH_NODE_TEST(test_broken_stays),       BH_NODE_TEST(test_lease_broken),
        BH_NODE_TEST(test_lease_gone),         BH_NODE_TEST(test_driver_fails),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
