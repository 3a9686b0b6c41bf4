/* Jobs that hold GPU memory are suspended, and go on with the same bytes: the node, its helper and
 * the simulated driver.  docs/shares.md, ADR 0042. */

#include <dlfcn.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "model/job.h"
#include "node/node_fixture_test.h"
#include "node/path.h"

#ifdef __SANITIZE_ADDRESS__
void __asan_init(void);
#endif

enum { A = 7, B = 8, HELD = 2, LEASE = 1 };

/* Each of N processes fills MIB of device memory with bytes of its own; when there is a file `go`
 * in what the driver shows of the piece, it looks whether they are the same.  The second one
 * SHARES: it passes memory on to others. */
#define HOLDS                                                                              \
    "cat >/tmp/hold.py <<'EOF'\n"                                                          \
    "import ctypes as c,os,random,sys,time\n"                                              \
    "l=c.CDLL('libcuda.so.1'); n=int(sys.argv[1])<<20; me=sys.argv[2]\n"                   \
    "x=c.c_void_p(); p=c.c_uint64(); h=c.create_string_buffer(64)\n"                       \
    "assert not l.cuInit(0)\n"                                                             \
    "assert not l.cuDevicePrimaryCtxRetain(c.byref(x),0) and not l.cuCtxSetCurrent(x)\n"   \
    "assert not l.cuMemAlloc_v2(c.byref(p),c.c_size_t(n))\n"                               \
    "if sys.argv[3]=='shares': assert not l.cuIpcGetMemHandle(h,p)\n"                      \
    "random.seed(me); b=random.randbytes(1<<16)\n"                                         \
    "for at in range(0,n,2<<20):\n"                                                        \
    "  assert not l.cuMemcpyHtoD_v2(c.c_uint64(p.value+at),b,c.c_size_t(len(b)))\n"        \
    "print('holds',me,flush=True)\n"                                                       \
    "r=c.create_string_buffer(len(b)); same=True\n"                                        \
    "while not os.path.exists('/run/bulkhead-sim/view/go'):\n"                             \
    "  assert not l.cuMemcpyDtoH_v2(r,p,c.c_size_t(len(b))); time.sleep(0.01)\n"           \
    "for at in range(0,n,2<<20):\n"                                                        \
    "  assert not l.cuMemcpyDtoH_v2(r,c.c_uint64(p.value+at),c.c_size_t(len(b)))\n"        \
    "  same=same and r.raw==b\n"                                                           \
    "print('same' if same else 'CHANGED',me,flush=True)\n"                                 \
    "EOF\n"                                                                                \
    "for i in $(seq $N); do\n"                                                             \
    "how=alone; [ $i = 2 ] && how=$SECOND\n"                                               \
    "python3 /tmp/hold.py $MIB $i $how &\n"                                                \
    "done; wait\n"

/* A Python that is to load a libcuda with AddressSanitizer in it must have the sanitizer
 * from the beginning. */
static const char *
prelude(void)
{
#ifdef __SANITIZE_ADDRESS__
    static char text[TEST_PATH * 2];
    Dl_info info;

    BH_CHECK("the sanitizer's library", dladdr((void *)__asan_init, &info) != 0);
    snprintf(text, sizeof text, "export LD_PRELOAD=%s ASAN_OPTIONS=detect_leaks=0\n",
             info.dli_fname);
    return text;
#else
    return "";
#endif
}

/* A node with the simulated libcuda.so.1, and `more` in its node.conf. */
static void
write_conf(const char *more)
{
    char text[TEST_PATH * 4], library[TEST_PATH];

    snprintf(library, sizeof library, "%s", the_node.library);
    snprintf(text, sizeof text,
             "driver_lib_dir = %s\njob_driver_mount = %s/sim/vram/{minor}-{gi}:"
             "/run/bulkhead-sim/vram:rw\n%s",
             dirname(library), the_node.folder, more);
    bh_test_restart(text);
}

static void
simctl(const char *command, const char *rule, const char *word)
{
    char path[TEST_PATH * 2];

    bh_path_format(path, sizeof path, "%s/sim", the_node.folder);
    bh_test_run((const char *const[]){ the_node.simctl, "--state", path, command, rule, word,
                                       NULL });
}

static void
say_go(const char *view)
{
    char path[TEST_PATH * 2];

    bh_path_format(path, sizeof path, "%s/sim/view/%s/go", the_node.folder, view);
    bh_test_write(path, "");
}

static uint32_t
carve(uint32_t tenant, uint64_t partition, const char *profile)
{
    struct bh_msg_carve message = { .partition = partition, .job = partition };
    struct bh_msg_outcome outcome;

    snprintf(message.profile, sizeof message.profile, "%s", profile);
    outcome = bh_test_carve_for(tenant, &message, 0);
    if (outcome.outcome != 0)
        fprintf(stderr, "carve: %s\n", outcome.why);
    return outcome.outcome;
}

static uint32_t
destroy(uint64_t partition)
{
    struct bh_msg_destroy message = { .partition = partition };

    return bh_test_order(BH_MSG_DESTROY, &message).outcome;
}

/* Start A's job on piece 1; it holds so much when this returns. */
static void
hold(const char *processes, const char *mib, const char *second, uint64_t memory_bytes)
{
    char script[8192], n[32], m[32], s[32];
    struct test_job job = { .lease = LEASE, .partition = 1, .tenant = A, .script = script,
                            .env = { n, m, s }, .memory_bytes = memory_bytes };
    struct bh_msg_outcome outcome;

    snprintf(script, sizeof script, "%s" HOLDS, prelude());
    snprintf(n, sizeof n, "N=%s", processes);
    snprintf(m, sizeof m, "MIB=%s", mib);
    snprintf(s, sizeof s, "SECOND=%s", second);
    outcome = bh_test_start_job(&job);
    BH_CHECK_STR("A's job", outcome.why, "");
    snprintf(n, sizeof n, "holds %s", processes);
    BH_CHECK("holds its memory", bh_test_wait_for_log(LEASE, "holds 1"));
    BH_CHECK("all of it", bh_test_wait_for_log(LEASE, n));
}

static struct bh_msg_outcome
suspend(void)
{
    struct bh_msg_lease lease = { .lease = LEASE };

    return bh_test_order(BH_MSG_SUSPEND, &lease);
}

static struct bh_msg_outcome
resume(void)
{
    struct bh_msg_lease lease = { .lease = LEASE };

    return bh_test_order(BH_MSG_RESUME, &lease);
}

/* It goes on, and finds what it wrote. */
static void
check_same(const char *name, const char *view, const char *last)
{
    struct bh_msg_ended ended;

    say_go(view);
    ended = bh_test_take(BH_MSG_ENDED, LEASE).ended;
    BH_CHECK_EQ(name, ended.exit_status, 0);
    BH_CHECK(name, strstr(bh_test_log(LEASE), "same 1") != NULL);
    BH_CHECK(name, strstr(bh_test_log(LEASE), last) != NULL);
    BH_CHECK(bh_test_log(LEASE), strstr(bh_test_log(LEASE), "CHANGED") == NULL);
}

/* ---- what it is for ---- */

/* What another tenant's job finds on a GPU whose driver clears nothing, in its memory and in
 * the simulated driver's folder. */
#define LOOKS                                                                              \
    "cat /run/bulkhead-sim/vram/checkpoint* 2>/dev/null | wc -c\n"                         \
    "exec python3 -c '\n"                                                                  \
    "import ctypes as c\n"                                                                 \
    "l=c.CDLL(\"libcuda.so.1\"); x=c.c_void_p(); p=c.c_uint64(); n=c.c_size_t(1<<30)\n"    \
    "assert not l.cuInit(0)\n"                                                             \
    "assert not l.cuDevicePrimaryCtxRetain(c.byref(x),0) and not l.cuCtxSetCurrent(x)\n"   \
    "assert not l.cuMemAlloc_v2(c.byref(p),n)\n"                                           \
    "b=c.create_string_buffer(64); found=0\n"                                              \
    "for at in range(0,1<<30,2<<20):\n"                                                    \
    "  assert not l.cuMemcpyDtoH_v2(b,c.c_uint64(p.value+at),c.c_size_t(64))\n"            \
    "  found+=any(b.raw)\n"                                                                \
    "print(\"found\",found)'"

static void
test_makes_way(void **state)
{
    char script[4096];
    struct test_job other = { .lease = 9, .partition = 2, .tenant = B, .script = script };

    snprintf(script, sizeof script, "%s" LOOKS, prelude());
    write_conf("");
    simctl("inject", "gpu=0", "leak");
    BH_CHECK_EQ("a whole GPU for A", carve(A, 1, "whole"), 0);
    hold("2", "64", "alone", 0);
    BH_CHECK_EQ("A makes way", suspend().outcome, 0);
    BH_CHECK_EQ("its piece can go", destroy(1), 0);
    BH_CHECK_EQ("the GPU for B", carve(B, 2, "whole"), 0);
    BH_CHECK_EQ("B runs", bh_test_run_job(&other).exit_status, 0);
    BH_CHECK_STR("and finds nothing of A", bh_test_log(9), "0\nfound 0\n");
    BH_CHECK_EQ("not yet A's again", resume().rc, BH_CONFLICT);
    BH_CHECK_EQ("B's can go", destroy(2), 0);
    BH_CHECK_EQ("the GPU for A again", carve(A, 3, "whole"), 0);
    BH_CHECK_EQ("A goes on", resume().outcome, 0);
    check_same("with the same bytes", "0-w", "same 2");
    BH_CHECK_DONE();
}

/* Twice, and once more after its bytes came back. */
static void
test_again(void **state)
{
    write_conf("");
    BH_CHECK_EQ("carved", carve(A, 1, "whole"), 0);
    hold("1", "32", "alone", 0);
    for (int i = 0; i < 3; i++) {
        BH_CHECK_EQ("out", suspend().outcome, 0);
        BH_CHECK_EQ("and in", resume().outcome, 0);
    }
    check_same("with the same bytes", "0-w", "same 1");
    BH_CHECK_DONE();
}

/* ---- what cannot be ---- */

static const struct {
    const char *name, *more, *profile, *view, *processes, *mib, *second, *why, *last;
    uint64_t memory_mib;
} refused[] = {
    { "the second shares memory: the first comes back", "", "whole", "0-w", "2", "16", "shares",
      "cuCheckpointProcessCheckpoint of process ", "same 2", 0 },
    { "the job's memory limit is too low", "", "whole", "0-w", "1", "300", "alone",
      "MiB that are left of the job's memory limit", "same 1", 256 },
    { "a MIG instance", "", "1g.10gb", "0-1", "1", "16", "alone", "do not know MIG instances",
      "same 1", 0 },
    { "switched off", "checkpoint = 0\n", "whole", "0-w", "1", "16", "alone",
      "checkpoint = 0 in node.conf", "same 1", 0 },
};

static void
refuse(size_t i)
{
    struct bh_msg_outcome outcome;

    write_conf(refused[i].more);
    BH_CHECK_EQ(refused[i].name, carve(A, 1, refused[i].profile), 0);
    hold(refused[i].processes, refused[i].mib, refused[i].second, refused[i].memory_mib << 20);
    outcome = suspend();
    BH_CHECK_EQ(refused[i].name, outcome.outcome, HELD);
    BH_CHECK(outcome.why, strstr(outcome.why, refused[i].why) != NULL);
    check_same(refused[i].name, refused[i].view, refused[i].last);
    BH_CHECK_DONE();
}

static void
test_shares_memory(void **state)
{
    refuse(0);
}

static void
test_memory_short(void **state)
{
    refuse(1);
}

static void
test_instance(void **state)
{
    refuse(2);
}

static void
test_switched_off(void **state)
{
    refuse(3);
}

static void
test_shown(void **state)
{
    struct bh_msg_inventory inventory;

    write_conf("");
    bh_test_hang_up(&the_node);
    inventory = bh_test_greet(&the_node);
    BH_CHECK_STR("the driver has the calls", inventory.checkpoint, "yes");
    bh_test_restart(""); /* without driver_lib_dir */
    bh_test_hang_up(&the_node);
    inventory = bh_test_greet(&the_node);
    BH_CHECK(inventory.checkpoint, strstr(inventory.checkpoint, "no: no libcuda.so.1") != NULL);
    BH_CHECK_DONE();
}

/* ---- what goes wrong ---- */

/* The helper never comes back from the driver, nor the one that is to undo what it did. */
static void
test_hangs(void **state)
{
    struct bh_msg_outcome outcome;

    write_conf("checkpoint_timeout_ms = 300\n");
    BH_CHECK_EQ("carved", carve(A, 1, "whole"), 0);
    hold("1", "16", "alone", 0);
    simctl("inject", "gpu=0", "cuda-hang");
    outcome = suspend();
    BH_CHECK_EQ("held", outcome.outcome, HELD);
    BH_CHECK(outcome.why, strstr(outcome.why, "did not answer within 300 ms; then: ") != NULL);
    simctl("clear", NULL, NULL);
    check_same("nothing was done to it", "0-w", "same 1");
    BH_CHECK_DONE();
}

static void
kill_node(void)
{
    bh_test_node_end(&the_node, SIGKILL);
    simctl("clear", NULL, NULL);
    bh_test_node_start(&the_node);
    bh_test_greet(&the_node);
}

/* In the middle of each way, and between. */
static void
test_node_killed(void **state)
{
    struct bh_msg_lease lease = { .lease = LEASE, .order = 900 };

    write_conf("");
    BH_CHECK_EQ("carved", carve(A, 1, "whole"), 0);
    hold("1", "16", "alone", 0);
    simctl("inject", "gpu=0", "cuda-hang");
    bh_test_send(BH_MSG_SUSPEND, &lease);
    bh_time_sleep(bh_test_patience(200) * BH_NS_PER_MS);
    kill_node();
    bh_test_send(BH_MSG_SUSPEND, &lease);
    BH_CHECK_EQ("suspended", bh_test_take(BH_MSG_OUTCOME, 900).outcome.outcome, 0);
    kill_node();
    kill_node(); /* the second reads a rewritten journal */
    simctl("inject", "gpu=0", "cuda-hang");
    lease.order++;
    bh_test_send(BH_MSG_RESUME, &lease);
    bh_time_sleep(bh_test_patience(200) * BH_NS_PER_MS);
    kill_node();
    bh_test_send(BH_MSG_RESUME, &lease);
    BH_CHECK_EQ("resumed", bh_test_take(BH_MSG_OUTCOME, 901).outcome.outcome, 0);
    check_same("nothing is lost", "0-w", "same 1");
    BH_CHECK_DONE();
}

/* Killed while its memory is away and nobody asks again: it is given back by itself. */
static void
test_given_back(void **state)
{
    struct bh_msg_lease lease = { .lease = LEASE, .order = 900 };

    write_conf("");
    BH_CHECK_EQ("carved", carve(A, 1, "whole"), 0);
    hold("1", "16", "alone", 0);
    BH_CHECK_EQ("suspended", suspend().outcome, 0);
    simctl("inject", "gpu=0", "cuda-hang");
    bh_test_send(BH_MSG_RESUME, &lease);
    bh_time_sleep(bh_test_patience(200) * BH_NS_PER_MS);
    kill_node();
    check_same("it goes on", "0-w", "same 1");
    BH_CHECK_DONE();
}

static void
test_not_restored(void **state)
{
    struct bh_msg_outcome outcome;
    struct bh_msg_ended ended;

    write_conf("");
    BH_CHECK_EQ("carved", carve(A, 1, "whole"), 0);
    hold("1", "16", "alone", 0);
    BH_CHECK_EQ("suspended", suspend().outcome, 0);
    simctl("inject", "gpu=0", "cuda-fail");
    outcome = resume();
    BH_CHECK_EQ("refused", outcome.outcome, 1);
    BH_CHECK(outcome.why, strstr(outcome.why, "could not be given back: cuInit") != NULL);
    ended = bh_test_take(BH_MSG_ENDED, LEASE).ended;
    BH_CHECK_EQ("the job is ended", ended.cause, BH_END_RESUME_FAILED);
    BH_CHECK(ended.why, strstr(ended.why, "could not be given back") != NULL);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_makes_way),    BH_NODE_TEST(test_again),
        BH_NODE_TEST(test_shares_memory), BH_NODE_TEST(test_memory_short),
        BH_NODE_TEST(test_instance),     BH_NODE_TEST(test_switched_off),
        BH_NODE_TEST(test_shown),        BH_NODE_TEST(test_hangs),
        BH_NODE_TEST(test_node_killed),  BH_NODE_TEST(test_given_back),
        BH_NODE_TEST(test_not_restored),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
