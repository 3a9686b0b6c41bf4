/* Memory that passes from one tenant to another, on the simulated libcuda.so.1.
 * docs/scrub.md. */

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "node/common/path.h"
#include "node/session/node_fixture_test.h"

enum { A = 7, B = 8, UNCLEAN = 3 };

/* Take all memory; say what its first page holds and how many samples hold something; write
 * a canary at the start of each 64th page. */
#define TOUCH(canary)                                                                                        \
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
    "  if at%(128<<20)==0: assert not l.cuMemcpyHtoD_v2(c.c_uint64(p.value+at),b\"" canary                   \
    "\",c.c_size_t(8))\n"                                                                                    \
    "print(\"found\",found)'"

static struct bh_msg_carve
carve_order(uint64_t partition, const char *profile, uint32_t start)
{
    struct bh_msg_carve carve = { .partition = partition,
                                  .start = start,
                                  .job = partition + 1000 }; /* as that of the lease of the same number */

    snprintf(carve.profile, sizeof carve.profile, "%s", profile);
    return carve;
}

static uint32_t
scrub_test_carve(uint32_t tenant, uint64_t partition, const char *profile, uint32_t start)
{
    struct bh_msg_carve message = carve_order(partition, profile, start);
    struct bh_msg_outcome outcome = bh_test_carve_for(tenant, &message, 0);

    if (outcome.outcome != 0)
        fprintf(stderr, "carve: %s\n", outcome.why);
    return outcome.outcome;
}

static struct bh_msg_outcome
scrub_test_destroy(uint64_t partition)
{
    struct bh_msg_destroy message = { .partition = partition };

    return bh_test_order(BH_MSG_DESTROY, &message);
}

/* The receipt of the last order, which came before its outcome; order 0: there is none. */
static struct bh_msg_receipt
receipt_now(void)
{
    struct test_message message = { 0 };
    struct bh_msg_ack ack = { 0 };

    if (!bh_test_receive_within(BH_MSG_RECEIPT, 0, 0, &message))
        return (struct bh_msg_receipt){ 0 };
    ack.receipt = message.receipt.order;
    bh_test_send(BH_MSG_ACK, &ack);
    return message.receipt;
}

static const char *
scrub_test_touch(uint32_t tenant, uint64_t lease, uint64_t partition, const char *script)
{
    char whole[TEST_PATH * 8];
    struct test_job job = { .lease = lease, .partition = partition, .tenant = tenant, .script = whole };
    struct bh_msg_ended ended;
    struct bh_msg_ack ack = { .lease = lease };

    snprintf(whole, sizeof whole, "%s%s", bh_test_python_prelude(), script);
    ended = bh_test_run_job(&job);
    BH_CHECK_EQ(bh_test_log(lease), ended.exit_status, 0);
    bh_test_send(BH_MSG_ACK, &ack);
    return bh_test_log(lease);
}

/* A writes; B gets the same memory, from a driver that clears nothing, and finds nothing.
 */
static void
passes_clean(const char *profile)
{
    struct bh_msg_receipt receipt;

    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 1, profile, 0), 0);
    receipt = receipt_now();
    BH_CHECK_EQ("first use: who had it is unknown", receipt.from[0].tenant, UINT32_MAX);
    BH_CHECK_EQ("and clean", receipt.result, BH_SCRUB_CLEAN);
    BH_CHECK_STR("A finds nothing", scrub_test_touch(A, 1, 1, TOUCH("SECRET-A")), "found 0\n");
    BH_CHECK_STR("the driver does not clear", scrub_test_touch(A, 2, 1, TOUCH("SECRET-A")), "found 8\n");
    BH_CHECK_EQ("A's own: no scrub", receipt_now().order, 0);
    BH_CHECK_EQ("destroyed", scrub_test_destroy(1).outcome, 0);
    BH_CHECK_EQ("carved for B", scrub_test_carve(B, 2, profile, 0), 0);
    receipt = receipt_now();
    BH_CHECK_EQ("a receipt", receipt.order, the_node.order);
    BH_CHECK_EQ("filled", receipt.method, BH_SCRUB_FILL);
    BH_CHECK_EQ("clean", receipt.result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("what A left was found", receipt.residue, 8);
    BH_CHECK_EQ("whose it was", receipt.from[0].tenant, A);
    BH_CHECK_EQ("by which job", receipt.from[0].job, 1002);
    BH_CHECK_EQ("only A's", receipt.from_count, 1);
    BH_CHECK_EQ("whose it is", receipt.tenant, B);
    BH_CHECK("nearly all of it", receipt.bytes > receipt.memory_bytes / 100 * 95);
    BH_CHECK_EQ("each page", receipt.samples, receipt.bytes >> 21);
    BH_CHECK_EQ("the driver's own", receipt.driver, BH_DRIVER_SCRUB_ON);
    BH_CHECK_STR("B finds nothing", scrub_test_touch(B, 3, 2, TOUCH("SECRET-B")), "found 0\n");
}

static void
test_instance(void **state)
{
    bh_test_restart_with_cuda("");
    bh_test_simctl("inject", "gpu=0", "leak");
    passes_clean("1g.10gb");
    BH_CHECK_DONE();
}

static void
test_whole(void **state)
{
    bh_test_restart_with_cuda("");
    bh_test_simctl("inject", "gpu=0", "leak");
    passes_clean("whole");
    BH_CHECK_DONE();
}

/* The same memory under another instance, and a partition that is only in part another's. */
static void
test_other_shape(void **state)
{
    struct bh_msg_receipt receipt;

    bh_test_restart_with_cuda("");
    bh_test_simctl("inject", "gpu=0", "leak");
    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 1, "1g.10gb", 1), 0);
    BH_CHECK_EQ("unknown before", receipt_now().from_count, 1);
    BH_CHECK_STR("A", scrub_test_touch(A, 1, 1, TOUCH("SECRET-A")), "found 0\n");
    BH_CHECK_EQ("destroyed", scrub_test_destroy(1).outcome, 0);
    BH_CHECK_EQ("larger, for A", scrub_test_carve(A, 2, "2g.20gb", 0), 0);
    receipt = receipt_now();
    BH_CHECK_EQ("half of it was never scrubbed", receipt.from_count, 2);
    BH_CHECK_EQ("destroyed", scrub_test_destroy(2).outcome, 0);
    BH_CHECK_EQ("larger, for B", scrub_test_carve(B, 3, "2g.20gb", 0), 0);
    BH_CHECK_EQ("clean since: no scrub", receipt_now().order, 0);
    BH_CHECK_STR("B", scrub_test_touch(B, 3, 3, TOUCH("SECRET-B")), "found 0\n");
    BH_CHECK_EQ("the receipt of B's", receipt_now().method, BH_SCRUB_EARLIER);
    BH_CHECK_EQ("destroyed", scrub_test_destroy(3).outcome, 0);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK_EQ("a smaller one, for B", scrub_test_carve(B, 4, "1g.10gb", 1), 0);
    receipt = receipt_now();
    BH_CHECK_EQ("another geometry: filled", receipt.method, BH_SCRUB_FILL);
    BH_CHECK_EQ("B's own", receipt.from[0].tenant, B);
    BH_CHECK_EQ("once nobody's known", receipt.from[1].tenant, UINT32_MAX);
    BH_CHECK_EQ("and A's, in what the scrub of the larger one left out", receipt.from[2].tenant, A);
    BH_CHECK_EQ("no more", receipt.from_count, 3);
    BH_CHECK_STR("B", scrub_test_touch(B, 4, 4, TOUCH("SECRET-B")), "found 0\n");
    BH_CHECK_EQ("destroyed", scrub_test_destroy(4).outcome, 0);
    BH_CHECK_EQ("the same again, for B", scrub_test_carve(B, 5, "1g.10gb", 1), 0);
    BH_CHECK_EQ("as it is", receipt_now().order, 0);
    BH_CHECK_DONE();
}

static bool
is_by(const struct bh_msg_receipt *receipt, uint64_t order)
{
    return receipt->method == BH_SCRUB_EARLIER && receipt->by_count == 1 && receipt->by[0].receipt == order;
}

/* A partition is scrubbed for a job that never begins; who gets its memory next has a receipt of its own
 * that says by which scrub it is clean, also when the node died between. */
static void
cleaned_for_another(const char *profile)
{
    struct bh_msg_receipt receipt;
    uint64_t scrub;

    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 1, profile, 0), 0);
    receipt = receipt_now();
    scrub = receipt.order;
    BH_CHECK_EQ("filled", receipt.method, BH_SCRUB_FILL);
    BH_CHECK_EQ("whose job never begins", scrub_test_destroy(1).outcome, 0);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK_EQ("carved for B", scrub_test_carve(B, 2, profile, 0), 0);
    BH_CHECK_EQ("no scrub", receipt_now().order, 0);
    BH_CHECK_STR("B finds nothing", scrub_test_touch(B, 3, 2, TOUCH("SECRET-B")), "found 0\n");
    receipt = receipt_now();
    BH_CHECK("by that scrub", is_by(&receipt, scrub));
    BH_CHECK_EQ("clean", receipt.result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("B's", receipt.tenant, B);
    BH_CHECK_EQ("its job's", receipt.job, 1003);
    BH_CHECK_EQ("its piece", receipt.partition, 2);
    BH_CHECK_EQ("nothing was filled", receipt.bytes + receipt.samples + receipt.tries, 0);
    BH_CHECK_STR("its own", scrub_test_touch(B, 4, 2, "true"), "");
    BH_CHECK_EQ("no more of them", receipt_now().order, 0);
}

static void
test_cleaned_for_another(void **state)
{
    bh_test_restart_with_cuda("");
    cleaned_for_another("1g.10gb");
    BH_CHECK_DONE();
}

static void
test_whole_cleaned_for_another(void **state)
{
    bh_test_restart_with_cuda("");
    cleaned_for_another("whole");
    BH_CHECK_DONE();
}

/* The daemon says the number before its first order, whose outcome is awaited; it keeps no partition. */
static void
keep(uint64_t marks)
{
    const struct bh_msg_retain keep = { .marks = marks };

    bh_test_send(BH_MSG_RETAIN, &keep);
    (void)scrub_test_destroy(900);
}

/* The daemon heard of more than the node's folder knows: whose any memory is counts no more, once.  What it
 * heard itself, killed or not, changes nothing. */
static void
test_put_back(void **state)
{
    uint64_t logged;

    bh_test_restart_with_cuda("");
    keep(0);
    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 1, "1g.10gb", 0), 0);
    BH_CHECK_EQ("unknown", receipt_now().from[0].tenant, UINT32_MAX);
    logged = the_node.marks;
    BH_CHECK("told with the outcome", logged > 0);
    scrub_test_touch(A, 1, 1, "true");
    BH_CHECK("and of a start", the_node.marks > logged);
    logged = the_node.marks;
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    keep(logged);
    BH_CHECK_EQ("nothing is forgotten", the_node.marks, logged);
    BH_CHECK_EQ("A's own", scrub_test_carve(A, 2, "1g.10gb", 0), 0);
    BH_CHECK_EQ("no scrub", receipt_now().order, 0);
    logged = the_node.marks + 5;
    keep(logged);
    BH_CHECK("more than that", the_node.marks > logged);
    logged = the_node.marks;
    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 3, "1g.10gb", 0), 0);
    BH_CHECK_EQ("unknown", receipt_now().from[0].tenant, UINT32_MAX);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    keep(logged);
    (void)receipt_now(); /* once more: that it was heard may not have been */
    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 4, "1g.10gb", 0), 0);
    BH_CHECK_EQ("clean: no scrub", receipt_now().order, 0);
    BH_CHECK_DONE();
}

static void
test_start_refused(void **state)
{
    struct test_job other = { .lease = 9, .partition = 1, .tenant = B, .script = "true" };
    struct bh_msg_outcome outcome;

    bh_test_restart_with_cuda("");
    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 1, "1g.10gb", 0), 0);
    scrub_test_touch(A, 1, 1, "true");
    outcome = bh_test_start_job(&other);
    BH_CHECK_EQ("not B's", outcome.outcome, 1);
    BH_CHECK_EQ("not B's", outcome.rc, BH_CONFLICT);
    BH_CHECK("says why", strstr(outcome.why, "has no receipt") != NULL);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    other.lease++;
    BH_CHECK_EQ("nor after a crash", bh_test_start_job(&other).rc, BH_CONFLICT);
    BH_CHECK_DONE();
}

/* A scrub that fails: the partition stays, no job gets it, and its end waits for a scrub that does not
 * fail. */
static void
fails(const char *rule, const char *why, uint32_t result, uint32_t tries)
{
    struct test_job job = { .lease = 9, .partition = 2, .tenant = B, .script = "true" };
    struct bh_msg_receipt receipt;

    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 1, "1g.10gb", 0), 0);
    BH_CHECK_EQ("clean at first", receipt_now().result, BH_SCRUB_CLEAN);
    scrub_test_touch(A, 1, 1, "true");
    BH_CHECK_EQ("destroyed", scrub_test_destroy(1).outcome, 0);
    bh_test_simctl("inject", "gpu=0", rule);
    BH_CHECK_EQ(rule, scrub_test_carve(B, 2, "1g.10gb", 0), UNCLEAN);
    receipt = receipt_now();
    BH_CHECK_EQ(rule, receipt.result, result);
    BH_CHECK_EQ(rule, receipt.tries, tries);
    BH_CHECK(receipt.why, strstr(receipt.why, why) != NULL);
    BH_CHECK_EQ("nobody gets it", bh_test_start_job(&job).rc, BH_CONFLICT);
    job.tenant = A;
    job.lease++;
    BH_CHECK_EQ("nor who had it", bh_test_start_job(&job).rc, BH_CONFLICT);
    BH_CHECK_EQ("it stays", scrub_test_destroy(2).outcome, UNCLEAN);
    BH_CHECK_EQ("another try", receipt_now().result, result);
    bh_test_simctl("clear", NULL, NULL);
    BH_CHECK_EQ("until it is clean", scrub_test_destroy(2).outcome, 0);
    BH_CHECK_EQ("with a receipt", receipt_now().result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("then it passes on", scrub_test_carve(B, 3, "1g.10gb", 0), 0);
}

static void
test_stuck(void **state)
{
    bh_test_restart_with_cuda("");
    fails("stuck", "do not read back", BH_SCRUB_FAILED, 2);
    BH_CHECK_DONE();
}

static void
test_driver_refuses(void **state)
{
    bh_test_restart_with_cuda("");
    fails("cuda-fail", "cuInit: CUDA_ERROR_UNKNOWN", BH_SCRUB_INTERRUPTED, 4);
    BH_CHECK_DONE();
}

static void
test_hangs(void **state)
{
    struct bh_msg_receipt receipt;

    bh_test_restart_with_cuda("");
    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 1, "1g.10gb", 0), 0);
    BH_CHECK_EQ("clean at first", receipt_now().result, BH_SCRUB_CLEAN);
    scrub_test_touch(A, 1, 1, "true");
    BH_CHECK_EQ("destroyed", scrub_test_destroy(1).outcome, 0);
    bh_test_simctl("inject", "gpu=0", "cuda-hang");
    bh_test_restart_with_cuda("scrub_timeout_ms = 2000\n");
    BH_CHECK_EQ("hangs", scrub_test_carve(B, 2, "1g.10gb", 0), UNCLEAN);
    receipt = receipt_now();
    BH_CHECK_EQ("hangs", receipt.result, BH_SCRUB_INTERRUPTED);
    BH_CHECK_EQ("once more", receipt.tries, 2);
    BH_CHECK(receipt.why, strstr(receipt.why, "did not end within 2000 ms") != NULL);
    bh_test_simctl("clear", NULL, NULL);
    bh_test_restart_with_cuda("");
    BH_CHECK_EQ("until it is clean", scrub_test_destroy(2).outcome, 0);
    BH_CHECK_EQ("with a receipt", receipt_now().result, BH_SCRUB_CLEAN);
    BH_CHECK_DONE();
}

/* Without libcuda.so.1. */
static const struct {
    const char *name, *profile, *more, *params;
    uint32_t gpu, start, outcome, method, result;
} without[] = {
    { "an instance", "1g.10gb", "", NULL, 0, 0, 0, BH_SCRUB_RECREATE, BH_SCRUB_UNSAMPLED },
    { "a whole GPU", "whole", "", NULL, 0, 0, 0, BH_SCRUB_NONE, BH_SCRUB_UNSAMPLED },
    { "required", "1g.10gb", "scrub_required = 1\n", NULL, 1, 0, UNCLEAN, BH_SCRUB_RECREATE,
      BH_SCRUB_INTERRUPTED },
    { "no clearing by the driver", "1g.10gb", "driver_scrub_off = 1\n",
      "RegistryDwords: \"RMDisableScrubOnFree=1\"\n", 1, 1, UNCLEAN, BH_SCRUB_RECREATE,
      BH_SCRUB_INTERRUPTED },
};

static void
test_without_library(void **state)
{
    char path[TEST_PATH * 2];

    bh_path_format(path, sizeof path, "%s/sim/proc/driver/nvidia/params", the_node.folder);
    for (size_t i = 0; i < BH_COUNT(without); i++) {
        struct bh_msg_carve cut = carve_order(i + 1, without[i].profile, without[i].start);
        struct bh_msg_receipt receipt;

        if (without[i].params)
            bh_test_write(path, without[i].params);
        bh_test_restart(without[i].more);
        BH_CHECK_EQ(without[i].name, bh_test_carve_for(A, &cut, without[i].gpu).outcome, without[i].outcome);
        receipt = receipt_now();
        BH_CHECK_EQ(without[i].name, receipt.method, without[i].method);
        BH_CHECK_EQ(without[i].name, receipt.result, without[i].result);
        BH_CHECK_EQ(without[i].name, receipt.samples, 0);
        BH_CHECK(without[i].name, strstr(receipt.why, "no libcuda.so.1") != NULL);
        if (without[i].outcome == 0)
            BH_CHECK_EQ("given back", scrub_test_destroy(i + 1).outcome, 0);
    }
    BH_CHECK_DONE();
}

/* The driver's own clearing is switched off: its GPUs are not offered, nor carved. */
static void
test_driver_off(void **state)
{
    static const struct {
        const char *params;
        uint32_t driver;
        bool allowed;
    } rows[] = {
        { "RegistryDwords: \"\"\n", BH_DRIVER_SCRUB_ON, true },
        { "RegistryDwords: \"RMDisableScrubOnFree=0\"\n", BH_DRIVER_SCRUB_ON, true },
        { "RegistryDwords: \"X=1;RMDisableScrubOnFree=1\"\n", BH_DRIVER_SCRUB_OFF, false },
        { "RegistryDwordsPerDevice: \"pci=0:1;RMDisableFastScrubber=0x1\"\n", BH_DRIVER_SCRUB_OFF, false },
        { "RegistryDwords: \"RMDisableAsyncSysmemScrub=1\"\n", BH_DRIVER_SCRUB_OFF, false },
    };
    char path[TEST_PATH * 2];

    bh_path_format(path, sizeof path, "%s/sim/proc/driver/nvidia/params", the_node.folder);
    bh_test_restart_with_cuda("");
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_msg_inventory inventory;
        struct bh_msg_carve message = carve_order(50 + i, "1g.10gb", (uint32_t)i);
        struct bh_msg_outcome outcome;

        bh_test_write(path, rows[i].params);
        bh_test_disconnect(&the_node);
        inventory = bh_test_hello(&the_node);
        outcome = bh_test_carve_for(A, &message, 0);
        BH_CHECK_EQ(rows[i].params, inventory.driver_scrub, rows[i].driver);
        BH_CHECK_EQ(rows[i].params, bh_test_gpu(&inventory, 0)->allowed, rows[i].allowed);
        BH_CHECK_EQ(rows[i].params, outcome.rc, rows[i].allowed ? BH_OK : BH_DENIED);
    }
    BH_CHECK_DONE();
}

/* Kill the node a little later each time while it scrubs, and order it again: whenever the
 * carve was done, a receipt had come, and B found nothing. */
static void
test_killed_anywhere(void **state)
{
    enum { ROUNDS = 6 };

    bh_test_restart_with_cuda("");
    bh_test_simctl("inject", "gpu=0", "leak");
    BH_CHECK_EQ("first", scrub_test_carve(A, 99, "1g.10gb", 0), 0);
    BH_CHECK_EQ("first", receipt_now().result, BH_SCRUB_CLEAN);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t tenant = round % 2 ? A : B;
        struct bh_msg_receipt receipt;
        struct bh_msg_carve cut = carve_order(100 + round, "1g.10gb", 0);

        scrub_test_touch(tenant == A ? B : A, 99 + round, 99 + round, "true");
        BH_CHECK_EQ("destroyed", scrub_test_destroy(99 + round).outcome, 0);
        cut.order = ++the_node.order;
        cut.tenant = tenant;
        snprintf(cut.gpu, sizeof cut.gpu, "%s", the_node.gpus[0]);
        bh_test_send(BH_MSG_CARVE, &cut);
        bh_time_sleep((10 + round * 18) * BH_NS_PER_MS);
        bh_test_node_end(&the_node, SIGKILL);
        bh_test_node_start(&the_node);
        bh_test_hello(&the_node);
        bh_test_send(BH_MSG_CARVE, &cut);
        BH_CHECK_EQ("carved", bh_test_receive(BH_MSG_OUTCOME, cut.order).outcome.outcome, 0);
        receipt = receipt_now();
        BH_CHECK_EQ("with its receipt", receipt.order, cut.order);
        BH_CHECK_EQ("that is clean", receipt.result, BH_SCRUB_CLEAN);
    }
    BH_CHECK_DONE();
}

/* Whether that process is the helper of a scrub of the partition. */
static bool
is_helper(const char *pid, uint64_t partition)
{
    char path[64], group[TEST_PATH * 2], text[4096] = "", name[32] = "";
    size_t length;
    FILE *file;

    snprintf(group, sizeof group, "%s/bh-%llu", the_node.cgroup,
             (unsigned long long)((UINT64_C(1) << 62) + partition));
    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    file = fopen(path, "r");
    if (file && !fgets(name, sizeof name, file))
        name[0] = '\0';
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "/proc/%.20s/cgroup", pid);
    file = fopen(path, "r");
    length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    return strcmp(name, "scrub\n") == 0 && strstr(text, group);
}

static void
wait_for_helper(uint64_t partition)
{
    for (int i = 0; i < 2000; i++) {
        DIR *dir = opendir("/proc");
        bool found = false;

        for (const struct dirent *entry; dir && (entry = readdir(dir)) && !found;)
            found = is_helper(entry->d_name, partition);
        if (dir)
            closedir(dir);
        if (found)
            return;
        bh_time_sleep(5 * BH_NS_PER_MS);
    }
    fail_msg("no helper came up");
}

/* A node is killed while its helper holds the memory and does not end by itself: the next node ends it and
 * scrubs again.  The memory is not called bad. */
static void
test_helper_left(void **state)
{
    struct bh_msg_carve cut = carve_order(2, "1g.10gb", 0);
    struct bh_msg_receipt receipt;

    bh_test_restart_with_cuda("");
    BH_CHECK_EQ("carved for A", scrub_test_carve(A, 1, "1g.10gb", 0), 0);
    BH_CHECK_EQ("clean at first", receipt_now().result, BH_SCRUB_CLEAN);
    scrub_test_touch(A, 1, 1, "true");
    BH_CHECK_EQ("destroyed", scrub_test_destroy(1).outcome, 0);
    bh_test_simctl("inject", "gpu=0", "cuda-hang");
    cut.order = ++the_node.order;
    cut.tenant = B;
    snprintf(cut.gpu, sizeof cut.gpu, "%s", the_node.gpus[0]);
    bh_test_send(BH_MSG_CARVE, &cut);
    wait_for_helper(2);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_simctl("clear", NULL, NULL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    bh_test_send(BH_MSG_CARVE, &cut);
    BH_CHECK_EQ("carved", bh_test_receive(BH_MSG_OUTCOME, cut.order).outcome.outcome, 0);
    receipt = receipt_now();
    BH_CHECK_EQ("scrubbed again", receipt.result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("that was A's", receipt.from[0].tenant, A);
    BH_CHECK_DONE();
}

/* Helpers that say something else than what is, or die. */
static const struct {
    const char *name, *script, *why;
    uint32_t result;
} liars[] = {
    { "silent", "true", "the helper died without a message", BH_SCRUB_INTERRUPTED },
    { "killed", "kill -9 $$", "the helper died without a message", BH_SCRUB_INTERRUPTED },
    { "cut short", "printf 'bulkhead-scrub: {\"end\":\"clean\"}'", "the helper died", BH_SCRUB_INTERRUPTED },
    { "no JSON", "echo 'bulkhead-scrub: clean'", "the helper's answer", BH_SCRUB_INTERRUPTED },
    { "more than is known", "echo 'bulkhead-scrub: {\"end\":\"clean\",\"x\":1}'", "the helper's answer",
      BH_SCRUB_INTERRUPTED },
    { "a different partition",
      "echo 'bulkhead-scrub: {\"bytes\":10467934208,\"end\":\"clean\",\"samples\":4991,"
      "\"uuid\":\"MIG-1\"}'",
      "the helper filled MIG-1", BH_SCRUB_INTERRUPTED },
    { "a part of it",
      "echo 'bulkhead-scrub: {\"bytes\":4096,\"end\":\"clean\",\"samples\":1,"
      "\"uuid\":\"'$2'\"}'",
      "filled only 4096 bytes", BH_SCRUB_INTERRUPTED },
    { "no sample", "echo 'bulkhead-scrub: {\"bytes\":10467934208,\"end\":\"clean\",\"uuid\":\"'$2'\"}'",
      "filled only", BH_SCRUB_INTERRUPTED },
    { "clean and not",
      "echo 'bulkhead-scrub: {\"bytes\":10467934208,\"end\":\"clean\",\"samples\":4991,"
      "\"unfilled\":1,\"uuid\":\"'$2'\"}'",
      "do not read back", BH_SCRUB_FAILED },
};

static void
test_liars(void **state)
{
    char more[TEST_PATH * 2];

    bh_path_format(more, sizeof more, "libexec_dir = %s/libexec\n", the_node.folder);
    for (size_t i = 0; i < BH_COUNT(liars); i++) {
        struct bh_msg_carve cut = carve_order(i + 1, "1g.10gb", (uint32_t)i % 7);
        struct bh_msg_receipt receipt;

        bh_test_put_helper(liars[i].script);
        bh_test_restart_with_cuda(more);
        BH_CHECK_EQ(liars[i].name, bh_test_carve_for(A, &cut, (uint32_t)i / 7).outcome, UNCLEAN);
        receipt = receipt_now();
        BH_CHECK_EQ(liars[i].name, receipt.result, liars[i].result);
        BH_CHECK(receipt.why, strstr(receipt.why, liars[i].why) != NULL);
    }
    BH_CHECK_DONE();
}

/* Of a scrub nothing stays behind. */
static void
test_nothing_left(void **state)
{
    char path[TEST_PATH * 2];

    bh_test_restart_with_cuda("");
    BH_CHECK_EQ("carved", scrub_test_carve(A, 1, "1g.10gb", 0), 0);
    BH_CHECK_EQ("a receipt", receipt_now().result, BH_SCRUB_CLEAN);
    bh_path_format(path, sizeof path, "%s/state/jobs/%llu", the_node.folder,
                   (unsigned long long)((UINT64_C(1) << 62) + 1));
    BH_CHECK("its folder is gone", access(path, F_OK) != 0);
    bh_path_format(path, sizeof path, "/sys/fs/cgroup/memory%s/bh-%llu", the_node.cgroup,
                   (unsigned long long)((UINT64_C(1) << 62) + 1));
    BH_CHECK("its group is gone", access(path, F_OK) != 0);
    bh_test_disconnect(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK_EQ("acknowledged: not repeated", receipt_now().order, 0);
    BH_CHECK_DONE();
}

/* One that was not acknowledged is repeated, also by the next node. */
static void
test_repeated(void **state)
{
    struct test_message message;

    bh_test_restart_with_cuda("");
    BH_CHECK_EQ("carved", scrub_test_carve(A, 1, "1g.10gb", 0), 0);
    BH_CHECK("told", bh_test_receive_within(BH_MSG_RECEIPT, the_node.order, 0, &message));
    bh_test_disconnect(&the_node);
    bh_test_hello(&the_node);
    bh_test_receive(BH_MSG_RECEIPT, the_node.order); /* again */
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    message = bh_test_receive(BH_MSG_RECEIPT, the_node.order); /* by the next */
    BH_CHECK_EQ("the same", message.receipt.partition, 1);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_instance),
        BH_NODE_TEST(test_whole),
        BH_NODE_TEST(test_other_shape),
        BH_NODE_TEST(test_start_refused),
        BH_NODE_TEST(test_put_back),
        BH_NODE_TEST(test_stuck),
        BH_NODE_TEST(test_driver_refuses),
        BH_NODE_TEST(test_hangs),
        BH_NODE_TEST(test_without_library),
        BH_NODE_TEST(test_driver_off),
        BH_NODE_TEST(test_killed_anywhere),
        BH_NODE_TEST(test_helper_left),
        BH_NODE_TEST(test_liars),
        BH_NODE_TEST(test_nothing_left),
        BH_NODE_TEST(test_repeated),
        BH_NODE_TEST(test_cleaned_for_another),
        BH_NODE_TEST(test_whole_cleaned_for_another),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
