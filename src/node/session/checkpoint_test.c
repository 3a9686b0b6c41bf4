/* Jobs that hold GPU memory are suspended, and go on with the same bytes: the node, its helper and
 * the simulated driver.  docs/shares.md, ADR 0042. */

#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/session/node_fixture_test.h"

enum { A = 7, B = 8, HELD = 2 };

static uint64_t lease_now; /* of the job that holds memory */

/* Each of N processes fills MIB of device memory with bytes of its own; when there is a file `go`
 * in what the driver shows of the partition, it looks whether they are the same.  The second one
 * SHARES: it passes memory on to others. */
#define HOLDS                                                                                                \
    "cat >/tmp/hold.py <<'EOF'\n"                                                                            \
    "import ctypes as c,os,random,sys,time\n"                                                                \
    "l=c.CDLL('libcuda.so.1'); n=int(sys.argv[1])<<20; me=sys.argv[2]\n"                                     \
    "x=c.c_void_p(); p=c.c_uint64(); h=c.create_string_buffer(64)\n"                                         \
    "assert not l.cuInit(0)\n"                                                                               \
    "assert not l.cuDevicePrimaryCtxRetain(c.byref(x),0) and not l.cuCtxSetCurrent(x)\n"                     \
    "assert not l.cuMemAlloc_v2(c.byref(p),c.c_size_t(n))\n"                                                 \
    "if sys.argv[3]=='shares': assert not l.cuIpcGetMemHandle(h,p)\n"                                        \
    "random.seed(me); b=random.randbytes(1<<16)\n"                                                           \
    "for at in range(0,n,2<<20):\n"                                                                          \
    "  assert not l.cuMemcpyHtoD_v2(c.c_uint64(p.value+at),b,c.c_size_t(len(b)))\n"                          \
    "print('holds',me,flush=True)\n"                                                                         \
    "r=c.create_string_buffer(len(b)); same=True\n"                                                          \
    "while not os.path.exists('/run/bulkhead-sim/view/go'):\n"                                               \
    "  assert not l.cuMemcpyDtoH_v2(r,p,c.c_size_t(len(b))); time.sleep(0.01)\n"                             \
    "for at in range(0,n,2<<20):\n"                                                                          \
    "  assert not l.cuMemcpyDtoH_v2(r,c.c_uint64(p.value+at),c.c_size_t(len(b)))\n"                          \
    "  same=same and r.raw==b\n"                                                                             \
    "print('same' if same else 'CHANGED',me,flush=True)\n"                                                   \
    "EOF\n"                                                                                                  \
    "for i in $(seq $N); do\n"                                                                               \
    "how=alone; [ $i = 2 ] && how=$SECOND\n"                                                                 \
    "python3 /tmp/hold.py $MIB $i $how &\n"                                                                  \
    "done; wait\n"

/* And the driver is asked something, at which it takes that up. */
static void
simctl(const char *command, const char *rule, const char *word)
{
    struct bh_msg_gpu_order look = { 0 };

    bh_test_simctl(command, rule, word);
    snprintf(look.gpu, sizeof look.gpu, "%s", the_node.gpus[0]);
    if (the_node.link)
        (void)bh_test_order(BH_MSG_TEST, &look);
}

static uint32_t
checkpoint_test_carve(uint32_t tenant, uint64_t partition, uint32_t gpu, const char *profile)
{
    struct bh_msg_carve message = { .partition = partition, .job = partition };
    struct bh_msg_outcome outcome;

    snprintf(message.profile, sizeof message.profile, "%s", profile);
    outcome = bh_test_carve_for(tenant, &message, gpu);
    if (outcome.outcome != 0)
        fprintf(stderr, "carve: %s\n", outcome.why);
    return outcome.outcome;
}

static uint32_t
checkpoint_test_destroy(uint64_t partition)
{
    struct bh_msg_destroy message = { .partition = partition };

    return bh_test_order(BH_MSG_DESTROY, &message).outcome;
}

struct holder {
    uint64_t partition;
    const char *processes, *mib, *second;
    uint64_t memory_mib;
};

/* Start A's job; it holds so much when this returns. */
static void
checkpoint_test_hold(const struct holder *holder)
{
    char script[8192], n[32], m[32], s[32];
    struct test_job job = { .lease = ++lease_now,
                            .partition = holder->partition,
                            .tenant = A,
                            .script = script,
                            .env = { n, m, s },
                            .memory_bytes = holder->memory_mib << 20 };
    struct bh_msg_outcome outcome;

    snprintf(script, sizeof script, "%s" HOLDS, bh_test_python_prelude());
    snprintf(n, sizeof n, "N=%s", holder->processes);
    snprintf(m, sizeof m, "MIB=%s", holder->mib);
    snprintf(s, sizeof s, "SECOND=%s", holder->second);
    outcome = bh_test_start_job(&job);
    BH_CHECK_STR("A's job", outcome.why, "");
    snprintf(n, sizeof n, "holds %s", holder->processes);
    BH_CHECK("holds its memory", bh_test_wait_for_log(lease_now, "holds 1"));
    BH_CHECK("all of it", bh_test_wait_for_log(lease_now, n));
}

static struct bh_msg_outcome
checkpoint_test_suspend(void)
{
    struct bh_msg_lease lease = { .lease = lease_now };

    return bh_test_order(BH_MSG_SUSPEND, &lease);
}

static struct bh_msg_outcome
checkpoint_test_resume(void)
{
    struct bh_msg_lease lease = { .lease = lease_now };

    return bh_test_order(BH_MSG_RESUME, &lease);
}

/* It goes on, and finds what it wrote. */
static void
check_same(const char *name, uint32_t gpu, const char *last)
{
    struct bh_msg_ack ack = { .lease = lease_now };
    struct bh_msg_ended ended;

    bh_test_release(gpu);
    ended = bh_test_receive(BH_MSG_ENDED, lease_now).ended;
    BH_CHECK_EQ(name, ended.exit_status, 0);
    BH_CHECK(name, strstr(bh_test_log(lease_now), "same 1") != NULL);
    BH_CHECK(name, strstr(bh_test_log(lease_now), last) != NULL);
    BH_CHECK(bh_test_log(lease_now), strstr(bh_test_log(lease_now), "CHANGED") == NULL);
    bh_test_send(BH_MSG_ACK, &ack);
}

/* ---- what it is for ---- */

/* What another tenant's job finds on a GPU whose driver clears nothing, in its memory and in
 * the simulated driver's folder. */
#define CHECKS                                                                                               \
    "cat /run/bulkhead-sim/vram/checkpoint* 2>/dev/null | wc -c\n"                                           \
    "exec python3 -c '\n"                                                                                    \
    "import ctypes as c\n"                                                                                   \
    "l=c.CDLL(\"libcuda.so.1\"); x=c.c_void_p(); p=c.c_uint64(); n=c.c_size_t(1<<30)\n"                      \
    "assert not l.cuInit(0)\n"                                                                               \
    "assert not l.cuDevicePrimaryCtxRetain(c.byref(x),0) and not l.cuCtxSetCurrent(x)\n"                     \
    "assert not l.cuMemAlloc_v2(c.byref(p),n)\n"                                                             \
    "b=c.create_string_buffer(64); found=0\n"                                                                \
    "for at in range(0,1<<30,2<<20):\n"                                                                      \
    "  assert not l.cuMemcpyDtoH_v2(b,c.c_uint64(p.value+at),c.c_size_t(64))\n"                              \
    "  found+=any(b.raw)\n"                                                                                  \
    "print(\"found\",found)'"

static void
test_makes_way(void **state)
{
    char script[4096];
    struct test_job other = { .lease = 99, .partition = 2, .tenant = B, .script = script };
    struct bh_msg_inventory inventory;

    snprintf(script, sizeof script, "%s" CHECKS, bh_test_python_prelude());
    bh_test_restart_with_cuda("");
    bh_test_disconnect(&the_node);
    inventory = bh_test_hello(&the_node);
    BH_CHECK_STR("the driver has the calls", inventory.checkpoint, "yes");
    simctl("inject", "gpu=0", "leak");
    BH_CHECK_EQ("a whole GPU for A", checkpoint_test_carve(A, 1, 0, "whole"), 0);
    checkpoint_test_hold(&(struct holder){ 1, "2", "4", "alone", 0 });
    BH_CHECK_EQ("out", checkpoint_test_suspend().outcome, 0);
    BH_CHECK_EQ("and in", checkpoint_test_resume().outcome, 0);
    BH_CHECK_EQ("A makes way", checkpoint_test_suspend().outcome, 0);
    BH_CHECK_EQ("its piece can go", checkpoint_test_destroy(1), 0);
    BH_CHECK_EQ("the GPU for B", checkpoint_test_carve(B, 2, 0, "whole"), 0);
    BH_CHECK_EQ("B runs", bh_test_run_job(&other).exit_status, 0);
    BH_CHECK_STR("and finds nothing of A", bh_test_log(99), "0\nfound 0\n");
    BH_CHECK_EQ("not yet A's again", checkpoint_test_resume().rc, BH_CONFLICT);
    BH_CHECK_EQ("B's can go", checkpoint_test_destroy(2), 0);
    BH_CHECK_EQ("the GPU for A again", checkpoint_test_carve(A, 3, 0, "whole"), 0);
    BH_CHECK_EQ("A goes on", checkpoint_test_resume().outcome, 0);
    check_same("with the same bytes", 0, "same 2");
    BH_CHECK_DONE();
}

/* ---- what cannot be ---- */

static const struct {
    const char *name;
    uint32_t gpu;
    struct holder holder;
    const char *why, *last;
} refused[] = {
    { "the second shares memory: the first comes back",
      0,
      { 1, "2", "4", "shares", 0 },
      "cuCheckpointProcessCheckpoint of process ",
      "same 2" },
    { "the job's memory limit is too low",
      0,
      { 1, "1", "300", "alone", 256 },
      "MiB left of the job's memory limit",
      "same 1" },
    { "a MIG instance", 1, { 2, "1", "4", "alone", 0 }, "do not support MIG instances", "same 1" },
};

/* The driver fails when the memory is to come back. */
static void
lose_memory(void)
{
    struct bh_msg_outcome outcome;
    struct bh_msg_ended ended;

    checkpoint_test_hold(&(struct holder){ 1, "1", "4", "alone", 0 });
    BH_CHECK_EQ("suspended", checkpoint_test_suspend().outcome, 0);
    simctl("inject", "gpu=0", "cuda-fail");
    outcome = checkpoint_test_resume();
    BH_CHECK_EQ("refused", outcome.outcome, 1);
    BH_CHECK(outcome.why, strstr(outcome.why, "could not be restored: cuInit") != NULL);
    ended = bh_test_receive(BH_MSG_ENDED, lease_now).ended;
    BH_CHECK_EQ("the job is ended", ended.cause, BH_END_RESUME_FAILED);
    BH_CHECK(ended.why, strstr(ended.why, "could not be restored") != NULL);
}

static void
test_refused(void **state)
{
    char go[TEST_PATH * 2];

    bh_test_restart_with_cuda("");
    BH_CHECK_EQ("a whole GPU", checkpoint_test_carve(A, 1, 0, "whole"), 0);
    BH_CHECK_EQ("an instance", checkpoint_test_carve(A, 2, 1, "1g.10gb"), 0);
    bh_path_format(go, sizeof go, "%s/sim/view/0-w/go", the_node.folder);
    for (size_t i = 0; i < BH_COUNT(refused); i++) {
        struct bh_msg_outcome outcome;

        checkpoint_test_hold(&refused[i].holder);
        outcome = checkpoint_test_suspend();
        BH_CHECK_EQ(refused[i].name, outcome.outcome, HELD);
        BH_CHECK(outcome.why, strstr(outcome.why, refused[i].why) != NULL);
        check_same(refused[i].name, refused[i].gpu, refused[i].last);
        unlink(go);
    }
    lose_memory();
    BH_CHECK_DONE();
}

/* ---- what goes wrong ---- */

/* The driver's calls do not come back from now on; or do again. */
static void
hang(bool hangs)
{
    if (hangs)
        simctl("inject", "gpu=0", "cuda-hang");
    else
        simctl("clear", NULL, NULL);
}

static void
kill_node(void)
{
    bh_test_node_end(&the_node, SIGKILL);
    hang(false);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
}

/* The first line of a file of /proc. */
static void
checkpoint_test_read_line(char *line, int size, const char *path)
{
    FILE *file = fopen(path, "re");

    line[0] = '\0';
    if (file && !fgets(line, size, file))
        line[0] = '\0';
    if (file)
        fclose(file);
}

/* The node's child of that name; 0: none yet. */
static pid_t
find_helper(void)
{
    char path[64], children[512], name[32];
    int pid, used;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)the_node.pid, (int)the_node.pid);
    checkpoint_test_read_line(children, sizeof children, path);
    for (const char *at = children; sscanf(at, "%d%n", &pid, &used) == 1; at += used) {
        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        checkpoint_test_read_line(name, sizeof name, path);
        if (strncmp(name, "bulkhead-checkp", 15) == 0)
            return pid;
    }
    return 0;
}

/* Give the order to a driver that hangs, until a helper does it. */
static void
checkpoint_test_begin(uint32_t number, const struct bh_msg_lease *lease)
{
    hang(true);
    bh_test_send(number, lease);
    BH_CHECK("a helper", bh_test_await(find_helper() > 0));
    bh_time_sleep(200 * BH_NS_PER_MS); /* it comes to sit in the driver; wherever it is will do */
}

/* Give the order and kill the node in the middle of it, and once more in the order to resume. */
static void
kill_within(uint32_t number, uint64_t order)
{
    struct bh_msg_lease lease = { .lease = lease_now, .order = order };

    checkpoint_test_begin(number, &lease);
    kill_node();
    bh_test_send(number, &lease);
    BH_CHECK_EQ("done by the next node", bh_test_receive(BH_MSG_OUTCOME, order).outcome.outcome, 0);
}

/* What the helper itself answers when it is asked for a process that is not of the job with these
 * ids: a test's own, of the machine's namespace. */
static void
test_stranger(void **state)
{
    char program[TEST_PATH], command[TEST_PATH * 4], path[TEST_PATH * 2];

    snprintf(program, sizeof program, "%s", the_node.program);
    bh_path_format(path, sizeof path, "%s/answer", the_node.folder);
    bh_path_format(command, sizeof command,
                   "echo '{\"action\":\"take\",\"id_base\":3000000000,\"pids\":[{\"pid\":%d}]}' | "
                   "%s/bulkhead-checkpoint > %s",
                   (int)getpid(), dirname(program), path);
    bh_test_run((const char *const[]){ "/bin/sh", "-c", command, NULL });
    BH_CHECK("refused", strstr(bh_test_read("answer"), "\"end\":\"refused\"") != NULL);
    BH_CHECK(bh_test_read("answer"), strstr(bh_test_read("answer"), "is not of this job") != NULL);
    BH_CHECK_DONE();
}

/* ---- a helper that ends or hangs ---- */

/* Give the order, and kill the helper that sits in the driver then. */
static struct bh_msg_outcome
kill_helper_of(uint32_t number, uint64_t order)
{
    struct bh_msg_lease lease = { .lease = lease_now, .order = order };
    pid_t helper = 0;

    hang(true);
    bh_test_send(number, &lease);
    assert_true(bh_test_await((helper = find_helper()) > 0));
    kill(helper, SIGSTOP); /* wherever it has come to */
    hang(false);
    kill(helper, SIGKILL);
    return bh_test_receive(BH_MSG_OUTCOME, order).outcome;
}

/* Ended with that cause and sentence, and no helper is left. */
static void
check_lost(const struct bh_msg_outcome *outcome, const char *why)
{
    struct bh_msg_ack ack = { .lease = lease_now };
    struct bh_msg_ended ended;

    BH_CHECK_EQ("refused", outcome->outcome, 1);
    BH_CHECK(outcome->why, strstr(outcome->why, why) != NULL);
    ended = bh_test_receive(BH_MSG_ENDED, lease_now).ended;
    BH_CHECK_EQ("the job is ended, not suspended for ever", ended.cause, BH_END_RESUME_FAILED);
    BH_CHECK(ended.why, strstr(ended.why, why) != NULL);
    bh_test_send(BH_MSG_ACK, &ack);
}

static void
test_helpers(void **state)
{
    struct bh_msg_outcome outcome;

    bh_test_restart_with_cuda("checkpoint_timeout_ms = 5000\ncheckpoint_lock_ms = 1000\n");
    BH_CHECK_EQ("carved", checkpoint_test_carve(A, 1, 0, "whole"), 0);
    checkpoint_test_hold(&(struct holder){ 1, "1", "4", "alone", 0 });

    simctl("inject", "gpu=0", "cuda-busy");
    outcome = checkpoint_test_suspend();
    BH_CHECK_EQ("does not come to rest", outcome.outcome, HELD);
    BH_CHECK(outcome.why, strstr(outcome.why, "cuCheckpointProcessLock of process ") != NULL);
    BH_CHECK(outcome.why, strstr(outcome.why, "CUDA_ERROR_NOT_READY") != NULL);
    simctl("clear", NULL, NULL);

    outcome = kill_helper_of(BH_MSG_SUSPEND, 900);
    BH_CHECK_EQ("killed on the way out: it keeps the GPU", outcome.outcome, HELD);
    BH_CHECK(outcome.why, strstr(outcome.why, "the helper died") != NULL);
    the_node.order = 1000;
    BH_CHECK_EQ("and can be suspended", checkpoint_test_suspend().outcome, 0);
    outcome = kill_helper_of(BH_MSG_RESUME, 1900);
    check_lost(&outcome, "the helper died");

    the_node.order = 2000;
    checkpoint_test_hold(&(struct holder){ 1, "1", "4", "alone", 0 });
    BH_CHECK_EQ("suspended", checkpoint_test_suspend().outcome, 0);
    hang(true);
    outcome = checkpoint_test_resume();
    check_lost(&outcome, "did not answer within 5000 ms");
    hang(false);
    BH_CHECK_EQ("nothing is left behind: its piece can go", checkpoint_test_destroy(1), 0);
    BH_CHECK_DONE();
}

/* A share has no turn while its processes are locked, and has its turn again when they are not. */
static void
test_slices(void **state)
{
    struct bh_msg_carve share = { .partition = 1,
                                  .profile = "1/4:10240Mi",
                                  .cap_bytes = UINT64_C(10) << 30,
                                  .context_bytes = 600 << 20,
                                  .weight = 1050 };
    struct bh_msg_lease lease = { .order = 900 };
    char library[TEST_PATH], conf[TEST_PATH * 2];
    int fd;

    snprintf(library, sizeof library, "%s", the_node.library);
    snprintf(conf, sizeof conf, "shim_dir = %s/../src/shim\ncheckpoint_lock_ms = 5000\n", dirname(library));
    bh_test_restart_with_cuda(conf);
    BH_CHECK_EQ("a share", bh_test_carve_for(A, &share, 0).outcome, 0);
    checkpoint_test_hold(&(struct holder){ 1, "1", "4", "alone", 0 });
    fd = bh_test_share_join(lease_now);
    BH_CHECK("has its turn", bh_test_share_slice_is(fd, lease_now, false));
    simctl("inject", "gpu=0", "cuda-busy");
    lease.lease = lease_now;
    bh_test_send(BH_MSG_SUSPEND, &lease);
    BH_CHECK("none while it is asked to rest", bh_test_share_slice_is(fd, lease_now, true));
    BH_CHECK_EQ("it does not", bh_test_receive(BH_MSG_OUTCOME, 900).outcome.outcome, HELD);
    BH_CHECK("so it has turns", bh_test_share_slice_is(fd, lease_now, false));
    simctl("clear", NULL, NULL);
    the_node.order = 1000;
    BH_CHECK_EQ("suspended", checkpoint_test_suspend().outcome, 0);
    BH_CHECK("none", bh_test_share_slice_is(fd, lease_now, true));
    BH_CHECK_EQ("resumed", checkpoint_test_resume().outcome, 0);
    BH_CHECK("again", bh_test_share_slice_is(fd, lease_now, false));
    check_same("as it was", 0, "same 1");
    close(fd);
    BH_CHECK_DONE();
}

/* One job through all of it. */
static void
test_gpu_errors(void **state)
{
    struct bh_msg_lease lease = { .order = 800 };
    struct bh_msg_outcome outcome;

    bh_test_restart_with_cuda("checkpoint = 0\n");
    BH_CHECK_EQ("carved", checkpoint_test_carve(A, 1, 0, "whole"), 0);
    checkpoint_test_hold(&(struct holder){ 1, "1", "4", "alone", 0 });
    outcome = checkpoint_test_suspend();
    BH_CHECK_EQ("switched off", outcome.outcome, HELD);
    BH_CHECK_STR("switched off", outcome.why, "checkpoint = 0 in node.conf");

    bh_test_restart_with_cuda("checkpoint_timeout_ms = 300\n");
    hang(true);
    outcome = checkpoint_test_suspend();
    BH_CHECK_EQ("hangs", outcome.outcome, HELD);
    BH_CHECK(outcome.why, strstr(outcome.why, "did not answer within 300 ms; then: ") != NULL);
    hang(false);

    bh_test_restart_with_cuda("");
    kill_within(BH_MSG_SUSPEND, 900);
    kill_node();
    kill_node(); /* the second reads a rewritten journal */
    kill_within(BH_MSG_RESUME, 901);

    the_node.order = 1000;
    BH_CHECK_EQ("suspended", checkpoint_test_suspend().outcome, 0);
    lease.lease = lease_now;
    checkpoint_test_begin(BH_MSG_RESUME, &lease);
    kill_node();
    check_same("nobody asks again: it is given back by itself", 0, "same 1");
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_makes_way), BH_NODE_TEST(test_refused), BH_NODE_TEST(test_gpu_errors),
        BH_NODE_TEST(test_stranger),  BH_NODE_TEST(test_helpers), BH_NODE_TEST(test_slices),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
