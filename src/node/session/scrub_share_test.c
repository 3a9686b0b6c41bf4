/* What takes long runs beside the node's loop: scrubs, resets, the probe.  While it does, jobs of other GPUs
 * start within their usual time, and no job gets what it works on.  ADR 0034. */

#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "node/common/path.h"
#include "node/core/node.h"
#include "node/session/node_fixture_test.h"

enum { A = 7, UNCLEAN = 3 };

/* A helper that says that a 1g.10gb is clean. */
#define CLEAN                                                                                                \
    "echo 'bulkhead-scrub: {\"bytes\":10467934208,\"end\":\"clean\",\"samples\":4991,"                       \
    "\"uuid\":\"'$2'\"}'"
/* One that hangs on GPU 0 until there is a file `go` in what the driver shows of the partition, and
 * has failed then. */
#define HANGS_ON_GPU_0                                                                                       \
    "if [ -e /dev/nvidia0 ]; then\n"                                                                         \
    "until [ -e /run/bulkhead-sim/view/go ]; do sleep 0.02; done; exit 1\n"                                  \
    "fi\n" CLEAN

/* With that helper, and one more line of node.conf. */
static void
start_with_helper(const char *script, const char *more)
{
    char text[TEST_PATH * 4], library[TEST_PATH];

    snprintf(library, sizeof library, "%s", the_node.library);
    snprintf(text, sizeof text, "driver_lib_dir = %s\nlibexec_dir = %s/libexec\n%s", dirname(library),
             the_node.folder, more);
    bh_test_put_helper(script);
    bh_test_restart(text);
}

static struct bh_msg_carve
carve_message(uint64_t partition, uint32_t gpu, uint32_t start)
{
    struct bh_msg_carve carve = { .order = ++the_node.order,
                                  .partition = partition,
                                  .tenant = A,
                                  .job = partition,
                                  .start = start,
                                  .profile = "1g.10gb" };

    snprintf(carve.gpu, sizeof carve.gpu, "%s", the_node.gpus[gpu]);
    return carve;
}

static bool
has_outcome(uint64_t order)
{
    struct test_message message;

    return bh_test_receive_within(BH_MSG_OUTCOME, order, 0, &message);
}

static uint32_t
await_outcome(uint64_t order)
{
    return bh_test_receive(BH_MSG_OUTCOME, order).outcome.outcome;
}

/* Carve on GPU 1 and run a job there, to its end. */
static void
run_elsewhere(uint64_t lease)
{
    struct test_job job = { .lease = lease, .partition = lease, .tenant = A, .script = "echo ran" };
    struct bh_msg_carve carve = carve_message(lease, 1, (uint32_t)lease % 7);

    bh_test_send(BH_MSG_CARVE, &carve);
    BH_CHECK_EQ("carved", await_outcome(carve.order), 0);
    BH_CHECK_EQ("runs to its end", bh_test_run_job(&job).exit_status, 0);
    BH_CHECK_STR("its output", bh_test_log(lease), "ran\n");
}

static void
scrub_folder(uint64_t partition, char ret_path[TEST_PATH * 2])
{
    bh_path_format(ret_path, TEST_PATH * 2, "%s/state/jobs/%llu", the_node.folder,
                   (unsigned long long)(BH_SCRUB_LEASES + partition));
}

static bool
is_scrubbed_now(uint64_t partition)
{
    char path[TEST_PATH * 2];

    scrub_folder(partition, path);
    return access(path, F_OK) == 0;
}

/* A helper that hangs costs its own GPU its time, and no other. */
static void
test_scrub_hangs(void **state)
{
    struct test_job job = { .lease = 9, .partition = 1, .tenant = A, .script = "true" };
    struct bh_msg_carve hangs, behind;
    struct bh_msg_start start;
    const char *args[3];

    start_with_helper(HANGS_ON_GPU_0, "scrub_timeout_ms = 600000\n");
    hangs = carve_message(1, 0, 0);
    behind = carve_message(2, 0, 1);
    bh_test_send(BH_MSG_CARVE, &hangs);
    bh_test_send(BH_MSG_CARVE, &behind);
    run_elsewhere(3);
    BH_CHECK("it hangs on", is_scrubbed_now(1));
    bh_test_send(BH_MSG_CARVE, &hangs);
    start = bh_test_start_message(&job, args, NULL);
    start.order = ++the_node.order;
    bh_test_send(BH_MSG_START, &start);
    bh_time_sleep(50 * BH_NS_PER_MS);
    BH_CHECK("nobody gets it", !has_outcome(start.order));
    BH_CHECK("no outcome, though it was asked again", !has_outcome(hangs.order));
    BH_CHECK("nor of the one behind it", !has_outcome(behind.order) && !is_scrubbed_now(2));
    bh_test_release(0);
    BH_CHECK_EQ("it failed", await_outcome(hangs.order), UNCLEAN);
    BH_CHECK("one outcome", !has_outcome(hangs.order));
    BH_CHECK("then the next", bh_test_await(is_scrubbed_now(2)));
    bh_test_release(0);
    BH_CHECK_EQ("which fails, too", await_outcome(behind.order), UNCLEAN);
    BH_CHECK_DONE();
}

/* Two GPUs are scrubbed at once; the node dies, and the orders are given again. */
static void
test_killed_in_two(void **state)
{
    struct bh_msg_carve carve[2];

    start_with_helper("sleep 1000", "");
    for (uint32_t i = 0; i < 2; i++) {
        carve[i] = carve_message(i + 1, i, 0);
        bh_test_send(BH_MSG_CARVE, &carve[i]);
    }
    BH_CHECK("both at once", bh_test_await(is_scrubbed_now(1) && is_scrubbed_now(2)));
    bh_test_node_end(&the_node, SIGKILL);
    start_with_helper(CLEAN, "");
    BH_CHECK("nothing was left", !is_scrubbed_now(1) && !is_scrubbed_now(2));
    for (uint32_t i = 0; i < 2; i++) {
        BH_CHECK("no outcome", !has_outcome(carve[i].order));
        bh_test_send(BH_MSG_CARVE, &carve[i]);
        BH_CHECK_EQ("ordered again", await_outcome(carve[i].order), 0);
    }
    BH_CHECK_DONE();
}

/* Stopped in the middle: nothing of the helper stays behind. */
static void
test_stopped_in_one(void **state)
{
    struct bh_msg_carve carve;
    char group[TEST_PATH * 2];

    start_with_helper("sleep 1000", "");
    carve = carve_message(1, 0, 0);
    bh_test_send(BH_MSG_CARVE, &carve);
    BH_CHECK("in the middle", bh_test_await(is_scrubbed_now(1)));
    bh_test_node_end(&the_node, SIGTERM);
    bh_path_format(group, sizeof group, "/sys/fs/cgroup/memory%s/bh-%llu", the_node.cgroup,
                   (unsigned long long)(BH_SCRUB_LEASES + 1));
    BH_CHECK("its folder is gone", !is_scrubbed_now(1));
    BH_CHECK("its group is gone", access(group, F_OK) != 0);
    BH_CHECK_DONE();
}

/* The probe and a scrub's helper side by side, the first of the one and the first partition of the
 * other: they had one number once, and either could remove the other. */
static void
test_verify_beside(void **state)
{
    struct bh_msg_verify verify = { .request = 5 };
    struct bh_msg_verdict verdict;
    struct bh_msg_carve carve;

    start_with_helper("sleep 0.2; " CLEAN, "");
    carve = carve_message(1, 0, 0);
    bh_test_send(BH_MSG_VERIFY, &verify);
    bh_test_send(BH_MSG_CARVE, &carve);
    BH_CHECK_EQ("scrubbed", await_outcome(carve.order), 0);
    verdict = bh_test_receive(BH_MSG_VERDICT, 0).verdict;
    BH_CHECK_EQ("asked for", verdict.request, 5);
    BH_CHECK_STR("all held", verdict.why, "");
    BH_CHECK("and were tried", verdict.result == BH_CHECK_PASS && verdict.tried > 50);
    BH_CHECK_DONE();
}

/* ---- resets ---- */

/* A program that resets when there is a file `go`, and not before; with more of node.conf. */
static void
start_with_reset(const char *more)
{
    char path[TEST_PATH * 2], text[TEST_PATH * 4];

    bh_path_format(path, sizeof path, "%s/reset", the_node.folder);
    snprintf(text, sizeof text, "#!/bin/sh\nuntil [ -e %s/go ]; do sleep 0.02; done\n", the_node.folder);
    bh_test_write(path, text);
    chmod(path, 0755);
    snprintf(text, sizeof text, "gpu_reset = %s\n%s", path, more);
    bh_test_restart(text);
}

static struct bh_msg_gpu_order
gpu_message(uint32_t gpu)
{
    struct bh_msg_gpu_order order = { .order = ++the_node.order };

    snprintf(order.gpu, sizeof order.gpu, "%s", the_node.gpus[gpu]);
    return order;
}

/* Whether a process that the node started was given that word. */
static bool
child_has(const char *word)
{
    char path[TEST_PATH], pids[512] = "", line[2048], *rest;
    FILE *file;

    bh_path_format(path, sizeof path, "/proc/%d/task/%d/children", (int)the_node.pid, (int)the_node.pid);
    file = fopen(path, "r");
    if (!file || !fgets(pids, sizeof pids, file))
        return false;
    fclose(file);
    for (char *at = strtok_r(pids, " ", &rest); at; at = strtok_r(NULL, " ", &rest)) {
        size_t length;

        bh_path_format(path, sizeof path, "/proc/%s/cmdline", at);
        file = fopen(path, "r");
        length = file ? fread(line, 1, sizeof line - 1, file) : 0;
        if (file)
            fclose(file);
        line[length] = '\0';
        for (size_t i = 0; i < length; i += strlen(line + i) + 1)
            if (strcmp(line + i, word) == 0)
                return true;
    }
    return false;
}

static void
test_reset_hangs(void **state)
{
    struct bh_msg_gpu_order reset, other, test;
    struct bh_msg_carve behind;
    char go[TEST_PATH * 2];

    start_with_reset("");
    reset = gpu_message(0);
    other = gpu_message(1);
    behind = carve_message(2, 0, 0);
    test = gpu_message(0);
    bh_test_send(BH_MSG_RESET, &reset);
    run_elsewhere(3);
    BH_CHECK("our own processes do not open it", child_has("--hide=/dev/nvidia0"));
    bh_test_send(BH_MSG_CARVE, &behind);
    bh_test_send(BH_MSG_TEST, &test);
    bh_test_send(BH_MSG_RESET, &reset);
    bh_test_disconnect(&the_node);
    BH_CHECK_EQ("both GPUs are there", bh_test_hello(&the_node).gpus.count, 2);
    BH_CHECK("no outcome yet",
             !has_outcome(reset.order) && !has_outcome(behind.order) && !has_outcome(test.order));
    bh_path_format(go, sizeof go, "%s/go", the_node.folder);
    bh_test_write(go, "");
    BH_CHECK_EQ("reset", await_outcome(reset.order), 0);
    BH_CHECK_EQ("and carved", await_outcome(behind.order), 0);
    BH_CHECK_EQ("and tested", await_outcome(test.order), 0);
    BH_CHECK("seen again", !child_has("--hide=/dev/nvidia0"));
    bh_test_send(BH_MSG_RESET, &other);
    BH_CHECK_EQ("the next", await_outcome(other.order), 0);
    BH_CHECK_DONE();
}

/* Wait until the child that waits for events of GPU 1 has registered, and has reported all events until then:
 * a GPU's XIDs are reported in their order, so the last one is the last. */
static void
await_events(uint32_t well_before)
{
    struct test_message message;

    while (the_node.well < well_before + 2) /* of both GPUs, after the greeting */
        BH_CHECK("only that", !bh_test_receive_within(BH_MSG_HEALTH, 0, 10, &message));
    do
        bh_test_simctl("xid", "1", "31");
    while (!bh_test_receive_within(BH_MSG_HEALTH, 0, 100, &message) || message.health.fault != BH_FAULT_XID);
    bh_test_simctl("xid", "1", "32");
    while (message.health.xid != 32)
        message = bh_test_receive(BH_MSG_HEALTH, 0);
}

/* XIDs of another GPU, before, while and after this one is reset: each is reported once. */
static void
test_reset_loses_no_event(void **state)
{
    enum { XIDS = 24, RESET_AT = 6, GO_AT = 16 };
    struct bh_msg_gpu_order reset;
    struct test_message message;
    char go[TEST_PATH * 2];
    uint32_t before;
    int reported = 0;

    before = the_node.well;
    start_with_reset("health_interval_ms = 60000\n");
    await_events(before);
    bh_path_format(go, sizeof go, "%s/go", the_node.folder);
    reset = gpu_message(0);
    for (int i = 0; i < XIDS; i++) {
        if (i == RESET_AT)
            bh_test_send(BH_MSG_RESET, &reset);
        if (i == GO_AT)
            bh_test_write(go, "");
        bh_test_simctl("xid", "1", "43");
        while (bh_test_receive_within(BH_MSG_HEALTH, 0, 10, &message))
            reported += message.health.xid == 43;
    }
    BH_CHECK_EQ("reset", await_outcome(reset.order), 0);
    while (reported < XIDS
           && bh_test_receive_within(BH_MSG_HEALTH, 0, bh_test_scaled(TEST_TIMEOUT_MS), &message))
        reported += message.health.xid == 43;
    BH_CHECK_EQ("each was told", reported, XIDS);
    BH_CHECK("once", !bh_test_receive_within(BH_MSG_HEALTH, 0, 200, &message));
    BH_CHECK_DONE();
}

/* An XID 79 of a GPU that answers again before the next reading: that it answers is reported, else its node
 * would get no new work for ever. */
static void
test_back_before_it_was_missed(void **state)
{
    struct test_message message;
    uint32_t before;

    before = the_node.well;
    start_with_reset("health_interval_ms = 200\n");
    await_events(before);
    before = the_node.well;
    bh_test_simctl("xid", "1", "79");
    BH_CHECK_EQ("the XID", bh_test_receive(BH_MSG_HEALTH, 0).health.xid, 79);
    BH_CHECK("and that it answers",
             bh_test_await(bh_test_receive_within(BH_MSG_HEALTH, 0, 1, &message) || the_node.well > before));
    BH_CHECK("no more", !bh_test_receive_within(BH_MSG_HEALTH, 0, 1000, &message));
    BH_CHECK_EQ("once", the_node.well - before, 1);
    BH_CHECK_DONE();
}

static void
test_reset_takes_too_long(void **state)
{
    struct bh_msg_gpu_order reset;
    struct bh_msg_outcome outcome;

    start_with_reset("gpu_reset_timeout_ms = 300\n");
    reset = gpu_message(0);
    bh_test_send(BH_MSG_RESET, &reset);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK("a crash forgets it", !has_outcome(reset.order));
    bh_test_send(BH_MSG_RESET, &reset);
    outcome = bh_test_receive(BH_MSG_OUTCOME, reset.order).outcome;
    BH_CHECK_EQ("killed", outcome.rc, BH_TIMEOUT);
    BH_CHECK(outcome.why, strstr(outcome.why, "did not end within 300 ms") != NULL);
    BH_CHECK_EQ("and its GPU is used again", bh_test_carve(1, 0, "1g.10gb", 0).outcome, 0);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_scrub_hangs),          BH_NODE_TEST(test_killed_in_two),
        BH_NODE_TEST(test_stopped_in_one),       BH_NODE_TEST(test_verify_beside),
        BH_NODE_TEST(test_reset_hangs),          BH_NODE_TEST(test_reset_loses_no_event),
        BH_NODE_TEST(test_reset_takes_too_long), BH_NODE_TEST(test_back_before_it_was_missed),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
