/* bulkhead-node as bulkheadd sees it: real sandboxes, the simulated driver. */
#include "node/node_test.h"

#include <assert.h>

#include "model/job.h"

static struct bh_msg_outcome
carve(uint64_t partition, uint32_t gpu, const char *profile, uint32_t start)
{
    struct bh_msg_carve message = { .partition = partition, .start = start };

    snprintf(message.gpu, sizeof message.gpu, "%s", the_node.gpus[gpu]);
    snprintf(message.profile, sizeof message.profile, "%s", profile);
    return test_order(BH_MSG_CARVE, &message);
}

struct job {
    uint64_t lease, partition;   /* partition 0: none */
    const char *script, *cwd, *rootfs;
    const char *env[4];
    uint64_t memory_bytes;
    uint32_t pids, uid;
};

static struct bh_msg_start
start_message(const struct job *job, const char **args, struct bh_msg_mount *mounts)
{
    struct bh_msg_start start = {
        .lease = job->lease, .job = job->lease + 1000, .rootfs = job->rootfs ? job->rootfs : "host",
        .cwd = job->cwd ? job->cwd : "", .memory_bytes = job->memory_bytes, .pids = job->pids,
        .submitter_uid = job->uid, .submitter_gid = job->uid,
        .tenant = "org/dep", .user = "ada", .sku = "small",
    };

    args[0] = "/bin/sh";
    args[1] = "-c";
    args[2] = job->script;
    start.args = (struct bh_texts){ args, 3 };
    start.env.items = (const char **)(uintptr_t)job->env;
    while (job->env[start.env.count])
        start.env.count++;
    if (job->partition) {
        start.pieces[0].partition = job->partition;
        start.piece_count = 1;
    }
    return start;
}

static struct bh_msg_outcome
start_job(const struct job *job)
{
    const char *args[3];
    struct bh_msg_start start = start_message(job, args, NULL);

    return test_order(BH_MSG_START, &start);
}

/* Run to the end; the log is test_log(lease). */
static struct bh_msg_ended
run_job(const struct job *job)
{
    struct bh_msg_outcome outcome = start_job(job);

    if (outcome.outcome != 0)
        fprintf(stderr, "start: %s\n", outcome.why);
    assert_int_equal(outcome.outcome, 0);
    return test_take(BH_MSG_ENDED, job->lease).ended;
}

static void
test_first_job(void **state)
{
    struct job job = { .lease = 1, .script = "ls -la /usr/local/ /usr/local/bulkhead; cat /proc/self/mountinfo" };
    struct bh_msg_ended ended = run_job(&job);

    BH_CHECK_EQ("cause", ended.cause, BH_END_EXITED);
    BH_CHECK_EQ("status", ended.exit_status, 7);
    BH_CHECK("started before ended", ended.started_ns > 0 && ended.started_ns < ended.ended_ns);
    BH_CHECK("cpu time is counted", ended.cpu_ns > 0);
    BH_CHECK("memory is counted", ended.memory_peak_bytes > 0);
    BH_CHECK_STR("log", test_log(1), "hi\n1000\n");
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_job, test_set_up, test_tear_down),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root");
        return 0;
    }
    assert(argc == 4);
    the_node.program = argv[1];
    the_node.simctl = argv[2];
    the_node.library = argv[3];
    (void)carve;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
