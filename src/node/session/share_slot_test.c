/* Shares of GPUs on a node, over its socket, on the simulated driver.  docs/shares.md. */

#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/core/node.h"
#include "node/placement/share_slot.h"
#include "node/session/node_fixture_test.h"

enum { A = 7, B = 8, LAST_SLOT = 31 };
#define GIB (UINT64_C(1) << 30)

/* A node with the shim, the simulated driver's libraries, and `more` in its node.conf. */
static void
start_with(const char *more)
{
    char text[TEST_PATH * 2], library[TEST_PATH];

    snprintf(library, sizeof library, "%s", the_node.library);
    snprintf(text, sizeof text, "shim_dir = %s/../src/shim\n%s", dirname(library), more);
    bh_test_restart_with_cuda(text);
}

static struct bh_msg_carve
share_slot_test_share(uint64_t partition, uint32_t slot)
{
    return (struct bh_msg_carve){ .partition = partition,
                                  .start = slot,
                                  .profile = "1/4:10240Mi",
                                  .cap_bytes = 10 * GIB,
                                  .context_bytes = 600 << 20,
                                  .weight = 1050 };
}

static struct bh_msg_outcome
carve_share(uint64_t partition, uint32_t gpu, uint32_t slot, uint32_t tenant)
{
    struct bh_msg_carve wanted = share_slot_test_share(partition, slot);

    return bh_test_carve_for(tenant, &wanted, gpu);
}

static struct bh_msg_outcome
share_slot_test_destroy(uint64_t partition)
{
    struct bh_msg_destroy message = { .partition = partition };

    return bh_test_order(BH_MSG_DESTROY, &message);
}

/* How often the node's log says it. */
static uint32_t
share_slot_test_logged(const char *text)
{
    uint32_t count = 0;

    for (const char *at = bh_test_read("node.log"); (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

static void
test_stand_together(void **state)
{
    struct test_job one = {
        .lease = 1, .partition = 11, .tenant = A, .script = "ls /dev/nvidia*; echo up; exec sleep 60"
    };
    struct test_job two = { .lease = 2, .partition = 12, .tenant = A, .script = "true" };
    struct bh_msg_stop stop = { .lease = 1 };

    start_with("");
    BH_CHECK_EQ("the first", carve_share(11, 0, 0, A).outcome, 0);
    BH_CHECK_EQ("beside it", carve_share(12, 0, 1, A).outcome, 0);
    BH_CHECK_EQ("the same slot", carve_share(13, 0, 0, A).rc, BH_CONFLICT);
    BH_CHECK_EQ("has its job", bh_test_start_job(&one).outcome, 0);
    BH_CHECK("sees the GPU", bh_test_wait_for_log(1, "/dev/nvidia0") && bh_test_wait_for_log(1, "up"));
    BH_CHECK("and no instance", !strstr(bh_test_log(1), "nvidia-caps"));
    BH_CHECK_EQ("the other runs beside it", bh_test_run_job(&two).cause, BH_END_EXITED);
    BH_CHECK_EQ("in use, it stays", share_slot_test_destroy(11).rc, BH_CONFLICT);
    BH_CHECK_EQ("idle, it goes", share_slot_test_destroy(12).outcome, 0);
    BH_CHECK_EQ("open for each", share_slot_test_logged("share of a GPU opened"), 2);
    BH_CHECK_EQ("stopped", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    bh_test_receive(BH_MSG_ENDED, 1);
    BH_CHECK_EQ("then it goes, too", share_slot_test_destroy(11).outcome, 0);
    BH_CHECK_EQ("closed for each", share_slot_test_logged("share of a GPU closed"), 2);
    BH_CHECK_DONE();
}

/* A GPU is in one mode at a time, whatever it is ordered. */
static void
test_modes(void **state)
{
    BH_CHECK_EQ("an instance", bh_test_carve(1, 0, "1g.10gb", 0).outcome, 0);
    BH_CHECK_EQ("no share beside it", carve_share(2, 0, 0, A).rc, BH_CONFLICT);
    BH_CHECK_EQ("it goes", share_slot_test_destroy(1).outcome, 0);
    BH_CHECK_EQ("now a share", carve_share(2, 0, 0, A).outcome, 0);
    BH_CHECK_EQ("no instance beside it", bh_test_carve(3, 0, "1g.10gb", 1).rc, BH_CONFLICT);
    BH_CHECK_EQ("nor the whole", bh_test_carve(4, 0, "whole", 0).rc, BH_CONFLICT);
    BH_CHECK_EQ("it goes", share_slot_test_destroy(2).outcome, 0);
    BH_CHECK_EQ("the whole", bh_test_carve(4, 0, "whole", 0).outcome, 0);
    BH_CHECK_EQ("no share of it", carve_share(5, 0, 0, A).rc, BH_CONFLICT);
    BH_CHECK_EQ("it goes", share_slot_test_destroy(4).outcome, 0);
    BH_CHECK_EQ("an instance again", bh_test_carve(6, 0, "1g.10gb", 0).outcome, 0);
    BH_CHECK_DONE();
}

static void
test_sizes(void **state)
{
    static const struct {
        const char *name;
        uint64_t cap_bytes;
        uint32_t weight, slot;
        bh_rc rc;
    } cases[] = {
        { "no cap", 0, 1050, 0, BH_INVALID },
        { "half a granule", GIB + (1 << 20), 1050, 0, BH_INVALID },
        { "no weight", GIB, 0, 0, BH_INVALID },
        { "more than a GPU", GIB, 4201, 0, BH_INVALID },
        { "no such slot", GIB, 1050, LAST_SLOT + 1, BH_RANGE },
        { "no such memory", 1000 * GIB, 1050, 0, BH_RANGE },
        { "the last slot", GIB, 1, LAST_SLOT, BH_OK },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_msg_carve wanted = share_slot_test_share(20 + i, cases[i].slot);

        wanted.cap_bytes = cases[i].cap_bytes;
        wanted.weight = cases[i].weight;
        BH_CHECK_EQ(cases[i].name, bh_test_carve_for(A, &wanted, 0).rc, cases[i].rc);
    }
    BH_CHECK_DONE();
}

/* Before that, the receipts of orders that are over. */
static struct bh_msg_receipt
receipt_of(uint64_t order)
{
    struct bh_msg_ack ack = { .receipt = order };
    struct bh_msg_receipt receipt = bh_test_receive(BH_MSG_RECEIPT, order).receipt;

    bh_test_send(BH_MSG_ACK, &ack);
    return receipt;
}

static bool
has_receipt(uint64_t order)
{
    struct test_message message;

    return bh_test_receive_within(BH_MSG_RECEIPT, order, 0, &message);
}

/* What none that run beside it was promised is filled, and the receipt says how much that was; the
 * memory is all of theirs from then on. */
static void
test_another_tenant_beside(void **state)
{
    struct test_job one = { .lease = 1, .partition = 11, .tenant = A, .script = "exec sleep 60" };
    struct test_job two = { .lease = 2, .partition = 12, .tenant = B, .script = "true" };
    struct test_job thief = { .lease = 3, .partition = 12, .tenant = A, .script = "true" };
    struct bh_msg_stop stop = { .lease = 1 };
    struct bh_msg_carve whole = { .partition = 14, .profile = "whole" };
    struct bh_msg_receipt receipt;

    start_with("");
    BH_CHECK_EQ("for A", carve_share(11, 0, 0, A).outcome, 0);
    BH_CHECK_EQ("alone: all of it", receipt_of(the_node.order).result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("A runs", bh_test_start_job(&one).outcome, 0);
    BH_CHECK_EQ("for B beside it", carve_share(12, 0, 1, B).outcome, 0);
    receipt = receipt_of(the_node.order);
    BH_CHECK_EQ("filled", receipt.method, BH_SCRUB_FILL);
    BH_CHECK_EQ("a part", receipt.result, BH_SCRUB_PARTIAL);
    BH_CHECK_EQ("beside others", receipt.beside, true);
    BH_CHECK("as much as A was not promised",
             receipt.bytes > 60 * GIB
                 && receipt.bytes + 10 * GIB + (UINT64_C(1200) << 20) < receipt.memory_bytes);
    BH_CHECK("and why", strstr(receipt.why, " leases that share the GPU used the rest") != NULL);
    BH_CHECK_EQ("how many", receipt.neighbors, 1);
    BH_CHECK_EQ("whose it was", receipt.from[0].tenant, A);
    BH_CHECK_EQ("said so", share_slot_test_logged("memory scrubbed in part"), 1);
    BH_CHECK_EQ("B runs", bh_test_run_job(&two).cause, BH_END_EXITED);
    BH_CHECK_EQ("A in B's place", bh_test_run_job(&thief).cause, BH_END_EXITED);
    receipt = receipt_of(the_node.order);
    BH_CHECK_EQ("not without a scrub", receipt.result, BH_SCRUB_PARTIAL);
    BH_CHECK_EQ("for A", receipt.tenant, A);
    BH_CHECK_EQ("of both", receipt.from_count, 2);
    BH_CHECK_EQ("A ends", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    bh_test_receive(BH_MSG_ENDED, 1);
    BH_CHECK_EQ("A's goes", share_slot_test_destroy(11).outcome, 0);
    BH_CHECK_EQ("B's goes", share_slot_test_destroy(12).outcome, 0);
    BH_CHECK_EQ("the whole for B", bh_test_carve_for(B, &whole, 0).outcome, 0);
    receipt = receipt_of(the_node.order);
    BH_CHECK_EQ("is scrubbed", receipt.result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("A's", receipt.from[0].tenant, A);
    BH_CHECK_EQ("and B's", receipt.from[1].tenant, B);
    BH_CHECK_DONE();
}

/* A receipt names those that ran beside a scrub when it was decided what it may fill, also when they have
 * ended by its end. */
static void
test_neighbor_leaves(void **state)
{
    struct test_job one = { .lease = 1, .partition = 11, .tenant = A, .script = "exec sleep 60" };
    struct bh_msg_carve second = share_slot_test_share(12, 1);
    struct bh_msg_stop stop = { .lease = 1 };
    uint64_t carved;

    start_with("");
    BH_CHECK_EQ("for A", carve_share(11, 0, 0, A).outcome, 0);
    BH_CHECK_EQ("alone", receipt_of(the_node.order).result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("A runs", bh_test_start_job(&one).outcome, 0);
    snprintf(second.gpu, sizeof second.gpu, "%s", the_node.gpus[0]);
    second.tenant = B;
    second.order = carved = ++the_node.order;
    bh_test_send(BH_MSG_CARVE, &second);
    BH_CHECK_EQ("A ends", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    BH_CHECK_EQ("for B", bh_test_receive(BH_MSG_OUTCOME, carved).outcome.outcome, 0);
    BH_CHECK("why a part", strstr(receipt_of(carved).why, " leases that share") != NULL);
    BH_CHECK_DONE();
}

/* Slots that no lease has hold back no scrub, and memory passes on in a slot that stood before, too. */
static void
test_idle_slots(void **state)
{
    struct test_job first = { .lease = 1, .partition = 11, .tenant = A, .script = "true" };
    struct test_job other = { .lease = 2, .partition = 12, .tenant = B, .script = "true" };
    struct test_job again = { .lease = 3, .partition = 11, .tenant = A, .script = "true" };
    struct bh_msg_receipt receipt;

    start_with("");
    BH_CHECK_EQ("for A", carve_share(11, 0, 0, A).outcome, 0);
    BH_CHECK_EQ("clean", receipt_of(the_node.order).result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("A runs", bh_test_run_job(&first).cause, BH_END_EXITED);
    BH_CHECK_EQ("for B, A's slot is idle", carve_share(12, 0, 1, B).outcome, 0);
    receipt = receipt_of(the_node.order);
    BH_CHECK_EQ("all of it is scrubbed", receipt.result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("beside nobody", receipt.beside, false);
    BH_CHECK_EQ("it was A's", receipt.from[0].tenant, A);
    BH_CHECK_EQ("B runs", bh_test_run_job(&other).cause, BH_END_EXITED);
    BH_CHECK_EQ("A in the slot that it had", bh_test_run_job(&again).cause, BH_END_EXITED);
    receipt = receipt_of(the_node.order);
    BH_CHECK_EQ("has its receipt", receipt.tenant, A);
    BH_CHECK_EQ("clean", receipt.result, BH_SCRUB_CLEAN);
    BH_CHECK_EQ("it was B's", receipt.from[0].tenant, B);
    again.lease++;
    BH_CHECK_EQ("A once more", bh_test_run_job(&again).cause, BH_END_EXITED);
    BH_CHECK("its own: no scrub", !has_receipt(the_node.order));
    BH_CHECK_DONE();
}

/* Carved for B, and A has memory of the GPU before B starts: it is scrubbed for B again. */
static void
test_between_carve_and_start(void **state)
{
    struct test_job first = { .lease = 1, .partition = 11, .tenant = A, .script = "true" };
    struct test_job other = { .lease = 2, .partition = 12, .tenant = B, .script = "true" };

    start_with("");
    BH_CHECK_EQ("for A", carve_share(11, 0, 0, A).outcome, 0);
    receipt_of(the_node.order);
    BH_CHECK_EQ("for B", carve_share(12, 0, 1, B).outcome, 0);
    BH_CHECK("nobody had it: no scrub", !has_receipt(the_node.order));
    BH_CHECK_EQ("A runs", bh_test_run_job(&first).cause, BH_END_EXITED);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK_EQ("B runs", bh_test_run_job(&other).cause, BH_END_EXITED);
    BH_CHECK_EQ("on memory that was A's", receipt_of(the_node.order).from[0].tenant, A);
    BH_CHECK_DONE();
}

/* What the helper of start_with_scrubs does: HANG, and then FAIL; anything else: scrubs. */
static void
scrubs(const char *how)
{
    char path[TEST_PATH * 2];

    bh_path_format(path, sizeof path, "%s/sim/view/0-w/scrubs", the_node.folder);
    bh_test_write(path, how);
}

/* A node whose helper follows the test's orders; the real one is where the probe is. */
static void
start_with_scrubs(void)
{
    char program[TEST_PATH], from[TEST_PATH * 2], to[TEST_PATH * 2], more[TEST_PATH * 2];
    const char *folder;

    snprintf(program, sizeof program, "%s", the_node.program);
    folder = dirname(program);
    bh_path_format(from, sizeof from, "%s/bulkhead-scrub", folder);
    bh_test_put_helper("how() { grep -qs $1 /run/bulkhead-sim/view/scrubs; }\n"
                       "how 'HANG\\|FAIL' || exec /usr/local/bulkhead/libexec/probe \"$@\"\n"
                       "while how HANG; do sleep 0.02; done; exit 1");
    bh_path_format(to, sizeof to, "%s/libexec/bulkhead-probe", the_node.folder);
    assert_int_equal(unlink(to), 0);
    assert_int_equal(symlink(from, to), 0);
    bh_path_format(to, sizeof to, "%s/libexec/bulkhead-share", the_node.folder);
    bh_path_format(from, sizeof from, "%s/bulkhead-share", folder);
    assert_int_equal(symlink(from, to), 0);
    bh_path_format(more, sizeof more, "libexec_dir = %s/libexec\n", the_node.folder);
    start_with(more);
}

/* Send the job's START, and stop it before it began: while its memory is scrubbed, or before. */
static void
share_slot_test_reclaim(const struct test_job *job)
{
    const char *args[3];
    struct bh_msg_start start = bh_test_start_message(job, args, NULL);
    struct bh_msg_stop stop = { .lease = job->lease };
    struct bh_msg_outcome outcome;

    start.order = ++the_node.order;
    bh_test_send(BH_MSG_START, &start);
    stop.order = ++the_node.order;
    bh_test_send(BH_MSG_STOP, &stop);
    outcome = bh_test_receive(BH_MSG_OUTCOME, start.order).outcome;
    BH_CHECK_EQ("does not begin", outcome.outcome, 1);
    BH_CHECK(outcome.why, strstr(outcome.why, "stopped before it started") != NULL);
    bh_test_receive(BH_MSG_ENDED, job->lease);
}

/* Two slots of GPU 0, and A has had its memory since the second was carved for B. */
static void
make_due_for_b(void)
{
    struct test_job first = { .lease = 1, .partition = 11, .tenant = A, .script = "true" };

    start_with_scrubs();
    BH_CHECK_EQ("for A", carve_share(11, 0, 0, A).outcome, 0);
    BH_CHECK_EQ("for B", carve_share(12, 0, 1, B).outcome, 0);
    BH_CHECK_EQ("A runs", bh_test_run_job(&first).cause, BH_END_EXITED);
}

/* Those that are stopped while memory is scrubbed for them never begin, and are no hindrance to who
 * comes after them: more of them than there is room for scrubs, each with the first's under way. */
static void
test_stopped_before_it_began(void **state)
{
    enum { TIMES = 6 };
    struct test_job other = { .lease = 20, .partition = 12, .tenant = B, .script = "true" };
    struct test_message last = { 0 };

    make_due_for_b();
    scrubs("HANG");
    for (uint32_t i = 0; i < TIMES; i++, other.lease++)
        share_slot_test_reclaim(&other);
    scrubs("");
    BH_CHECK_EQ("the next one runs", bh_test_run_job(&other).cause, BH_END_EXITED);
    while (bh_test_receive_within(BH_MSG_RECEIPT, 0, 0, &last))
        ; /* the last run of those before it may have done, too: they were B's */
    BH_CHECK("on clean memory", last.receipt.result == BH_SCRUB_CLEAN && last.receipt.tenant == B);
    BH_CHECK_DONE();
}

/* The scrub of one that was taken back ends its run, and has no other; who comes next on its slot
 * waits for that. */
static void
check_next_waits(const char *name, uint32_t number, const void *message, uint64_t order)
{
    struct test_message ignored;

    bh_test_send(number, message);
    BH_CHECK(name, !bh_test_receive_within(BH_MSG_OUTCOME, order, 500, &ignored));
    scrubs("");
    BH_CHECK_EQ(name, bh_test_receive(BH_MSG_OUTCOME, order).outcome.outcome, 0);
}

static void
test_next_waits_for_it(void **state)
{
    struct test_job other = { .lease = 20, .partition = 12, .tenant = B, .script = "true" };
    struct bh_msg_destroy end = { .partition = 12 };
    struct bh_msg_start start;
    const char *args[3];
    uint64_t taken_back;

    make_due_for_b();
    scrubs("HANG");
    taken_back = the_node.order + 1;
    share_slot_test_reclaim(&other);
    other.lease++;
    start = bh_test_start_message(&other, args, NULL);
    start.order = ++the_node.order;
    check_next_waits("the next job", BH_MSG_START, &start, start.order);
    BH_CHECK_EQ("one run", receipt_of(taken_back).tries, 1);
    bh_test_receive(BH_MSG_ENDED, other.lease);
    other.lease++;
    other.tenant = A;
    scrubs("HANG");
    share_slot_test_reclaim(&other);
    end.order = ++the_node.order;
    check_next_waits("the slot's end", BH_MSG_DESTROY, &end, end.order);
    BH_CHECK_DONE();
}

/* Without a library nothing is filled, and nothing says that it was. */
static void
test_unscrubbed(void **state)
{
    struct bh_msg_receipt receipt;

    bh_test_restart("");
    BH_CHECK_EQ("for A", carve_share(11, 0, 0, A).outcome, 0);
    receipt = receipt_of(the_node.order);
    BH_CHECK_EQ("not looked at", receipt.result, BH_SCRUB_UNSAMPLED);
    BH_CHECK_EQ("the log says so", share_slot_test_logged("memory not scrubbed before another tenant"), 1);
    BH_CHECK_EQ("and nothing else", share_slot_test_logged("memory scrubbed"), 0);
    BH_CHECK_DONE();
}

static void
test_required(void **state)
{
    struct test_job job = { .lease = 1, .partition = 11, .tenant = A, .script = "exec sleep 60" };

    start_with("scrub_required = 1\n");
    BH_CHECK_EQ("for A", carve_share(11, 0, 0, A).outcome, 0);
    BH_CHECK_EQ("A runs", bh_test_start_job(&job).outcome, 0);
    BH_CHECK_EQ("its own beside it", carve_share(12, 0, 1, A).outcome, 0);
    BH_CHECK_EQ("not for B", carve_share(13, 0, 2, B).rc, BH_UNAVAILABLE);
    BH_CHECK_DONE();
}

/* Which shares are open follows from the journal. */
static void
test_node_killed(void **state)
{
    struct test_job job = { .lease = 1, .partition = 11, .tenant = A, .script = "echo up; exec sleep 60" };
    struct bh_msg_inventory inventory;
    const struct bh_msg_partition *partition;

    start_with("");
    BH_CHECK_EQ("made", carve_share(11, 0, 3, A).outcome, 0);
    BH_CHECK_EQ("runs", bh_test_start_job(&job).outcome, 0);
    BH_CHECK("up", bh_test_wait_for_log(1, "up"));
    BH_CHECK_EQ("open", share_slot_test_logged("share of a GPU opened"), 1);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    inventory = bh_test_hello(&the_node);
    BH_CHECK_EQ("known", inventory.partitions.count, 1);
    partition = inventory.partitions.items;
    BH_CHECK_STR("as it was", partition->profile, "1/4:10240Mi");
    BH_CHECK_EQ("its slot", partition->start, 3);
    BH_CHECK_EQ("its cap", partition->memory_mib, 10240);
    BH_CHECK_EQ("in use", share_slot_test_destroy(11).rc, BH_CONFLICT);
    BH_CHECK("open again", share_slot_test_logged("share of a GPU opened") >= 1
                               && share_slot_test_logged("share of a GPU closed") == 0);
    BH_CHECK_DONE();
}

/* Its processes are frozen: it has no time slice, and no member waits for its answer; also when the node was
 * killed meanwhile.  Thawed it has time slices again. */
static void
test_suspended(void **state)
{
    struct test_job job = { .lease = 1, .partition = 11, .tenant = A, .script = "echo up; exec sleep 60" };
    struct bh_msg_lease lease = { .lease = 1 };
    struct bh_msg_gpu_order observed = { 0 };
    int fd;

    start_with("");
    BH_CHECK_EQ("made", carve_share(11, 0, 0, A).outcome, 0);
    BH_CHECK_EQ("runs", bh_test_start_job(&job).outcome, 0);
    BH_CHECK("up", bh_test_wait_for_log(1, "up"));
    fd = bh_test_share_join(1);
    BH_CHECK("has its turn", bh_test_share_slice_is(fd, 1, false));
    BH_CHECK_EQ("suspended", bh_test_order(BH_MSG_SUSPEND, &lease).outcome, 0);
    BH_CHECK("has none", bh_test_share_slice_is(fd, 1, true));
    BH_CHECK_EQ("resumed", bh_test_order(BH_MSG_RESUME, &lease).outcome, 0);
    BH_CHECK("has it again", bh_test_share_slice_is(fd, 1, false));
    BH_CHECK_EQ("suspended again", bh_test_order(BH_MSG_SUSPEND, &lease).outcome, 0);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    close(fd);
    fd = bh_test_share_join(1);
    snprintf(observed.gpu, sizeof observed.gpu, "%s", the_node.gpus[0]);
    BH_CHECK_EQ("time passes", bh_test_order(BH_MSG_TEST, &observed).outcome, 0);
    BH_CHECK("has none by the next node", bh_test_share_slice_is(fd, 1, true));
    BH_CHECK_EQ("resumed by it", bh_test_order(BH_MSG_RESUME, &lease).outcome, 0);
    BH_CHECK("has it again", bh_test_share_slice_is(fd, 1, false));
    close(fd);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_stand_together),
        BH_NODE_TEST(test_modes),
        BH_NODE_TEST(test_sizes),
        BH_NODE_TEST(test_another_tenant_beside),
        BH_NODE_TEST(test_neighbor_leaves),
        BH_NODE_TEST(test_idle_slots),
        BH_NODE_TEST(test_between_carve_and_start),
        BH_NODE_TEST(test_stopped_before_it_began),
        BH_NODE_TEST(test_next_waits_for_it),
        BH_NODE_TEST(test_unscrubbed),
        BH_NODE_TEST(test_required),
        BH_NODE_TEST(test_node_killed),
        BH_NODE_TEST(test_suspended),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
