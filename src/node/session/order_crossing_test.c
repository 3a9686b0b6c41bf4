/* bulkhead-node where things cross: stops and ends, orders and children or nodes that are
 * killed in the middle.  Real sandboxes, the simulated driver. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/core/state.h"
#include "node/session/node_fixture_test.h"

/* ---- stops and ends ---- */

/* A stop that crosses a start that was refused, or of a lease that never came here: its end is reported, and
 * repeated until it is acknowledged, also by a node that was restarted. */
static void
test_stop_unknown(void **state)
{
    struct test_job refused = { .lease = 59, .script = "true", .image = "dir:/nonexistent" };
    struct bh_msg_stop stops[] = { { .lease = 59, .grace_ns = BH_NS_PER_S }, { .lease = 2000 } };
    struct bh_msg_ack ack = { .lease = 59 };
    struct test_message message;
    const char *args[3];
    struct bh_msg_start start = bh_test_start_message(&refused, args, NULL);

    start.order = ++the_node.order;
    stops[0].order = ++the_node.order;
    bh_test_send(BH_MSG_START, &start);
    bh_test_send(BH_MSG_STOP, &stops[0]);
    BH_CHECK_EQ("refused", bh_test_receive(BH_MSG_OUTCOME, start.order).outcome.outcome, 1);
    BH_CHECK_EQ("stopped", bh_test_receive(BH_MSG_OUTCOME, stops[0].order).outcome.outcome, 0);
    BH_CHECK_EQ("never came", bh_test_order(BH_MSG_STOP, &stops[1]).outcome, 0);
    for (size_t i = 0; i < BH_COUNT(stops); i++) {
        struct bh_msg_ended ended = bh_test_receive(BH_MSG_ENDED, stops[i].lease).ended;

        BH_CHECK_EQ("cause", ended.cause, BH_END_START_FAILED);
        BH_CHECK("not by itself", !ended.unasked && ended.ended_ns > 0);
    }
    bh_test_acknowledge(&ack);
    bh_test_disconnect(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK("acknowledged: not told again", !bh_test_receive_within(BH_MSG_ENDED, 59, 200, &message));
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    BH_CHECK_EQ("still listed", bh_test_hello(&the_node).leases.count, 1);
    BH_CHECK_EQ("told again", bh_test_receive(BH_MSG_ENDED, 2000).ended.cause, BH_END_START_FAILED);
    start.lease = 2000;
    start.image = "host";
    BH_CHECK_EQ("too late", bh_test_order(BH_MSG_START, &start).rc, BH_CONFLICT);
    BH_CHECK_DONE();
}

/* Whether an end was the job's own; a node that was restarted still knows. */
static void
test_whose_end(void **state)
{
    struct test_job own = { .lease = 45, .script = "exit 0" };
    struct test_job asked = { .lease = 46,
                              .script = "trap 'sleep 0.5; exit 0' TERM; echo up; "
                                        "sleep 60 & wait" };
    struct bh_msg_stop stop = { .lease = 46, .grace_ns = 30 * BH_NS_PER_S };
    struct bh_msg_ack ack;

    BH_CHECK("its own", bh_test_run_job(&own).unasked);
    stop.lease = 45;
    BH_CHECK_EQ("late stop", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    bh_test_disconnect(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK("still its own", bh_test_receive(BH_MSG_ENDED, 45).ended.unasked);
    assert_int_equal(bh_test_start_job(&asked).outcome, 0);
    assert_true(bh_test_wait_for_log(46, "up"));
    stop.lease = 46;
    BH_CHECK_EQ("stop", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    ack = (struct bh_msg_ack){ .order = stop.order };
    bh_test_acknowledge(&ack); /* the order is forgotten, the job has not ended */
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK("asked for", !bh_test_receive(BH_MSG_ENDED, 46).ended.unasked);
    BH_CHECK_DONE();
}

/* Killed between the note of a START and the note of its lease: the order is as if it had never
 * come, and comes again. */
static void
test_start_without_lease(void **state)
{
    struct test_job job = { .lease = 47, .script = "echo ran" };
    struct bh_node_record record = { .kind = BH_NODE_RECORD_ORDER, .message = BH_MSG_START, .lease = 47 };
    struct bh_node_state journal = { 0 };
    char folder[TEST_PATH * 2];
    struct bh_err err;

    record.order = the_node.order + 1; /* which the test's next order has */
    bh_path_format(folder, sizeof folder, "%s/state", the_node.folder);
    bh_test_node_end(&the_node, SIGKILL);
    assert_int_equal(bh_state_open(&journal, folder, &err), BH_OK);
    assert_int_equal(bh_state_record(&journal, &record, &err), BH_OK);
    bh_state_close(&journal);
    bh_test_node_start(&the_node);
    BH_CHECK_EQ("nothing runs", bh_test_hello(&the_node).leases.count, 0);
    BH_CHECK_EQ("started", bh_test_run_job(&job).exit_status, 0);
    BH_CHECK_STR("once", bh_test_log(47), "ran\n");
    BH_CHECK_DONE();
}

/* The job's folder as a copy that was put back has it: the same file, that no keeper has open. */
static void
put_back_folder(uint64_t lease)
{
    char name[64], lock[TEST_PATH], text[64];

    bh_path_format(name, sizeof name, "state/jobs/%" PRIu64 "/keeper", lease);
    bh_path_format(lock, sizeof lock, "%.500s/%s", the_node.folder, name);
    bh_path_format(text, sizeof text, "%s", bh_test_read(name));
    assert_int_equal(unlink(lock), 0);
    bh_test_write(lock, text);
}

/* The keeper lives, but the node cannot know: it ends the job, and that is no end of the job's own. */
static void
test_folder_put_back(void **state)
{
    struct test_job job = { .lease = 91, .script = "echo up; sleep 60" };
    struct pollfd keeper = { .events = POLLIN };
    struct bh_msg_ended ended;

    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(91, "up"));
    bh_test_node_end(&the_node, SIGKILL);
    keeper.fd = (int)syscall(SYS_pidfd_open, strtol(bh_test_read("state/jobs/91/keeper"), NULL, 10), 0);
    assert_true(keeper.fd >= 0);
    put_back_folder(91);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    ended = bh_test_receive(BH_MSG_ENDED, 91).ended;
    BH_CHECK_EQ("cause", ended.cause, BH_END_KEEPER_LOST);
    BH_CHECK("when it began is known", ended.started_ns > 0);
    assert_int_equal(poll(&keeper, 1, bh_test_scaled(TEST_TIMEOUT_MS)), 1);
    close(keeper.fd);
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK_EQ("what the keeper adds does not count", bh_test_receive(BH_MSG_ENDED, 91).ended.cause,
                BH_END_KEEPER_LOST);
    BH_CHECK_DONE();
}

/* ---- changes of a GPU that are cut off ---- */

static struct bh_msg_inventory
inventory_now(void)
{
    bh_test_disconnect(&the_node);
    return bh_test_hello(&the_node);
}

static bool
read_of(pid_t pid, const char *name, char *text, size_t size)
{
    char path[TEST_PATH];
    FILE *file;
    size_t length;

    bh_path_format(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    file = fopen(path, "re");
    if (!file)
        return false;
    length = fread(text, 1, size - 1, file);
    fclose(file);
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0')
            text[i] = ' '; /* between arguments */
    text[length] = '\0';
    return length > 0;
}

/* Whether it is the gpu child that makes changes, in a call of the simulated driver that hangs:
 * that sleeps, and nothing else in this child does. */
static bool
crossing_test_hangs(pid_t pid)
{
    char text[1024];

    return read_of(pid, "comm", text, sizeof text) && strcmp(text, "bulkhead-gpu\n") == 0
           && read_of(pid, "cmdline", text, sizeof text) && !strstr(text, "--events")
           && read_of(pid, "syscall", text, sizeof text) && strtol(text, NULL, 10) == SYS_clock_nanosleep;
}

static pid_t
find_hanging_child(void)
{
    char path[64], list[4096], *at = list;

    bh_path_format(path, sizeof path, "task/%d/children", the_node.pid);
    if (!read_of(the_node.pid, path, list, sizeof list))
        return 0;
    for (pid_t pid; (pid = (pid_t)strtol(at, &at, 10)) > 0;)
        if (crossing_test_hangs(pid))
            return pid;
    return 0;
}

/* Give an order whose driver call `function` hangs once, and wait until it does: the child that
 * does.  A busy machine takes its time until then, and what is killed before is not in the
 * middle of the change. */
static pid_t
order_with_hang(const char *function, uint32_t number, void *message)
{
    char path[TEST_PATH * 2], rule[128];
    pid_t child;

    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    bh_path_format(rule, sizeof rule, "%s hang count=1\n", function);
    bh_test_write(path, rule);
    memcpy(message, &(uint64_t){ ++the_node.order }, sizeof(uint64_t)); /* it comes first */
    bh_test_send(number, message);
    for (int tries = 0; (child = find_hanging_child()) == 0; tries++) {
        assert_true(tries < bh_test_scaled(2000));
        bh_time_sleep(5 * BH_NS_PER_MS);
    }
    return child;
}

/* And kill the child in it. */
static uint32_t
order_with_kill(const char *function, uint32_t number, void *message)
{
    struct bh_msg_outcome outcome;

    kill(order_with_hang(function, number, message), SIGKILL);
    outcome = bh_test_receive(BH_MSG_OUTCOME, the_node.order).outcome;
    if (outcome.outcome != 0)
        fprintf(stderr, "%s: %s\n", function, outcome.why);
    return outcome.outcome;
}

/* A gpu child that is killed in the middle of a change is no fault of the GPU: the change
 * is made all the same, and nothing is fenced. */
static void
test_gpu_child_killed(void **state)
{
    struct bh_msg_carve whole = { .partition = 5, .profile = "1g.10gb" };
    struct bh_msg_carve halved = { .partition = 6, .profile = "1g.10gb", .start = 1 };
    struct bh_msg_destroy destroy = { .partition = 5 };
    struct test_message message;

    snprintf(whole.gpu, sizeof whole.gpu, "%s", the_node.gpus[0]);
    snprintf(halved.gpu, sizeof halved.gpu, "%s", the_node.gpus[0]);
    BH_CHECK_EQ("mode", order_with_kill("nvmlDeviceSetMigMode", BH_MSG_CARVE, &whole), 0);
    BH_CHECK_EQ("halves", order_with_kill("nvmlGpuInstanceCreateComputeInstance", BH_MSG_CARVE, &halved), 0);
    BH_CHECK_EQ("destroy", order_with_kill("nvmlGpuInstanceDestroy", BH_MSG_DESTROY, &destroy), 0);
    BH_CHECK_EQ("one piece", inventory_now().partitions.count, 1);
    BH_CHECK("no GPU is reported", !bh_test_receive_within(BH_MSG_HEALTH, 0, 100, &message));
    BH_CHECK_DONE();
}

/* A node that is killed when an instance has lost its compute instance and still stands: what is left is
 * destroyed, and does not stay as a foreign instance. */
static void
test_killed_in_destroy(void **state)
{
    struct bh_msg_destroy destroy = { .partition = 5 };
    struct bh_msg_inventory inventory;
    char path[TEST_PATH * 2];

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    (void)order_with_hang("nvmlGpuInstanceDestroy", BH_MSG_DESTROY, &destroy);
    bh_test_node_end(&the_node, SIGKILL);
    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    bh_test_write(path, "");
    bh_test_node_start(&the_node);
    inventory = bh_test_hello(&the_node);
    BH_CHECK_EQ("nothing stands", inventory.partitions.count, 0);
    for (uint32_t i = 0; i < inventory.gpus.count; i++)
        BH_CHECK("nothing foreign", !bh_test_gpu(&inventory, i)->foreign);
    bh_test_send(BH_MSG_DESTROY, &destroy);
    BH_CHECK_EQ("done", bh_test_receive(BH_MSG_OUTCOME, destroy.order).outcome.outcome, 0);
    BH_CHECK_DONE();
}

/* A GPU is never reset while in use; its partitions are gone afterwards; without a program the answer is that
 * it cannot be done here. */
static void
test_reset(void **state)
{
    struct test_job job = { .lease = 95, .partition = 5, .script = "echo up; sleep 60" };
    struct bh_msg_stop stop = { .lease = 95 };
    struct bh_msg_gpu_order order = { 0 };
    struct bh_msg_inventory inventory;
    char line[TEST_PATH * 2];

    snprintf(order.gpu, sizeof order.gpu, "%s", the_node.gpus[0]);
    BH_CHECK_EQ("no program", bh_test_order(BH_MSG_RESET, &order).rc, BH_UNAVAILABLE);
    bh_test_node_end(&the_node, SIGTERM);
    snprintf(line, sizeof line, "gpu_reset = %s\n", the_node.simctl);
    bh_test_write_conf(&the_node, line);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(95, "up"));
    BH_CHECK_EQ("held by a job", bh_test_order(BH_MSG_RESET, &order).rc, BH_CONFLICT);
    BH_CHECK_EQ("stop", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    (void)bh_test_receive(BH_MSG_ENDED, 95);
    bh_path_format(line, sizeof line, "%s/sim/control", the_node.folder);
    bh_test_write(line, "gpu=0 recovery=1\n");
    BH_CHECK_EQ("it wants a reset", bh_test_order(BH_MSG_TEST, &order).rc, BH_IO);
    BH_CHECK_EQ("reset", bh_test_order(BH_MSG_RESET, &order).outcome, 0);
    BH_CHECK_EQ("well", bh_test_order(BH_MSG_TEST, &order).outcome, 0);
    bh_test_disconnect(&the_node);
    inventory = bh_test_hello(&the_node);
    BH_CHECK_EQ("nothing stands", inventory.partitions.count, 0);
    snprintf(order.gpu, sizeof order.gpu, "GPU-nobody");
    BH_CHECK_EQ("no such GPU", bh_test_order(BH_MSG_RESET, &order).rc, BH_NOT_FOUND);
    BH_CHECK_DONE();
}

/* What stands on a GPU that the driver has lost is not known: partitions stay noted, a destroy that is
 * ordered fails, and what the daemon does not keep waits.  When it answers, what has gone goes. */
static void
test_gpu_lost(void **state)
{
    struct bh_msg_destroy destroy = { .partition = 5 };
    struct bh_msg_retain_item kept = { 5 };
    struct bh_msg_retain retain = { .partitions = { &kept, 1 } };
    struct bh_msg_outcome outcome;
    struct bh_msg_inventory inventory;

    bh_test_restart("sample_interval_ms = 100\n");
    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_carve(6, 0, "1g.10gb", 1).outcome, 0);
    bh_test_simctl("lose", "0", NULL);
    outcome = bh_test_order(BH_MSG_DESTROY, &destroy);
    BH_CHECK_EQ("not destroyed", outcome.rc, BH_UNAVAILABLE);
    BH_CHECK("why", strstr(outcome.why, "cannot be read"));
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    BH_CHECK_EQ("both are known", bh_test_hello(&the_node).partitions.count, 2);
    bh_test_send(BH_MSG_RETAIN, &retain);
    BH_CHECK_EQ("and later", inventory_now().partitions.count, 2);
    bh_test_send(BH_MSG_RETAIN, &retain);
    bh_test_simctl("clear", NULL, NULL);
    do
        inventory = bh_test_receive(BH_MSG_INVENTORY, 0).inventory;
    while (bh_test_gpu(&inventory, 0)->fault != BH_FAULT_NONE);
    BH_CHECK("nothing foreign", !bh_test_gpu(&inventory, 0)->foreign);
    BH_CHECK("what is not kept goes", bh_test_await(inventory_now().partitions.count == 1));
    bh_test_simctl("lose", "0", NULL);
    BH_CHECK_EQ("what is kept stands", inventory_now().partitions.count, 1);
    bh_test_simctl("reset", "0", NULL);
    BH_CHECK("what has gone goes", bh_test_await(inventory_now().partitions.count == 0));
    BH_CHECK_DONE();
}

/* ---- the driver ---- */

/* A node that starts before its driver, or whose driver was too slow when the daemon came: the daemon learns
 * of the GPUs when they are there, without a new connection. */
static void
test_driver_later(void **state)
{
    struct test_job job = { .lease = 48, .partition = 6, .script = "ls /dev/nvidia-caps | wc -l" };
    struct bh_msg_inventory inventory;
    char control[TEST_PATH * 2], majors[TEST_PATH * 2], kept[TEST_PATH * 2];

    bh_test_node_end(&the_node, SIGTERM);
    bh_path_format(control, sizeof control, "%s/sim/control", the_node.folder);
    bh_path_format(majors, sizeof majors, "%s/sim/proc/devices", the_node.folder);
    bh_path_format(kept, sizeof kept, "%s/sim/proc/devices.later", the_node.folder);
    bh_test_write(control, "nvmlDeviceGetCount_v2 fail=DRIVER_NOT_LOADED\n");
    assert_int_equal(rename(majors, kept), 0);
    bh_test_write_conf(&the_node, "sample_interval_ms = 100\n");
    bh_test_node_start(&the_node);
    BH_CHECK_EQ("no driver", bh_test_hello(&the_node).gpus.count, 0);
    BH_CHECK_EQ("no piece", bh_test_carve(5, 0, "1g.10gb", 0).outcome, 1);
    assert_int_equal(rename(kept, majors), 0);
    bh_test_write(control, "");
    inventory = bh_test_receive(BH_MSG_INVENTORY, 0).inventory;
    BH_CHECK_STR("told", bh_test_gpu(&inventory, 1)->uuid, the_node.gpus[1]);
    BH_CHECK_EQ("a piece", bh_test_carve(6, 0, "1g.10gb", 0).outcome, 0);
    BH_CHECK_EQ("a job", bh_test_run_job(&job).exit_status, 0);
    BH_CHECK_STR("has its capabilities", bh_test_log(48), "2\n");
    bh_test_receive(BH_MSG_SAMPLES, 0);
    BH_CHECK("told once", !bh_test_receive_within(BH_MSG_INVENTORY, 0, 200, &(struct test_message){ 0 }));
    BH_CHECK_DONE();
}

/* ---- epochs ---- */

static struct bh_msg_inventory
greet_in_epochs(const struct bh_msg_epoch *epochs, uint32_t count)
{
    struct bh_msg_hello hello = {
        .version = BH_WIRE_VERSION, .boot = 1, .site = "test", .epochs = { (void *)(uintptr_t)epochs, count }
    };
    struct bh_err err;
    int fd;

    bh_test_disconnect(&the_node);
    assert_int_equal(bh_unix_connect(the_node.socket, &fd, &err), BH_OK);
    the_node.link = bh_link_new(fd);
    bh_test_send(BH_MSG_HELLO, &hello);
    return bh_test_receive(BH_MSG_INVENTORY, 0).inventory;
}

/* The store was put back while a job waited for its scratch: it is ended like one that runs. */
static void
test_unpacking_of_another_epoch(void **state)
{
    static const struct bh_msg_epoch epochs[] = {
        { .id = 1 }, { .id = 2, .job = 1, .order = 1, .lease = 1, .partition = 1 }
    };
    struct test_job job = { .lease = 61, .script = "true" };
    struct bh_msg_start start;
    const char *args[3];
    char more[TEST_PATH * 2];
    pid_t node;

    if (access("/usr/sbin/mkfs.ext4", X_OK) != 0)
        skip();
    bh_test_put_program("bulkhead-unpack", "exec sleep 60");
    bh_path_format(more, sizeof more, "libexec_dir = %s/libexec\n", the_node.folder);
    bh_test_restart(more);
    node = the_node.pid;
    greet_in_epochs(epochs, 1);
    start = bh_test_start_message(&job, args, NULL);
    start.order = ++the_node.order;
    start.scratch_bytes = 16 << 20;
    bh_test_send(BH_MSG_START, &start);
    bh_test_acknowledge(&(struct bh_msg_ack){ 0 }); /* taken by then */
    BH_CHECK_EQ("it waits", greet_in_epochs(epochs, 1).leases.count, 1);
    BH_CHECK_EQ("nothing of it", greet_in_epochs(epochs, 2).leases.count, 0);
    BH_CHECK_EQ("the same node", waitpid(node, NULL, WNOHANG), 0);
    BH_CHECK_DONE();
}

/* A daemon that says what cannot be is not believed, and not listened to any more on that connection. */
static void
test_changes_beyond_all(void **state)
{
    struct bh_msg_retain retain = { .marks = UINT64_MAX };
    pid_t node = the_node.pid;
    uint64_t before;

    BH_CHECK_EQ("a carve", bh_test_carve(70, 0, "1g.10gb", 0).outcome, 0);
    before = the_node.marks; /* read: it is sent before the outcome */
    bh_test_send(BH_MSG_RETAIN, &retain);
    bh_test_disconnect(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK_EQ("another", bh_test_carve(71, 0, "1g.10gb", 1).outcome, 0);
    BH_CHECK("counted on", before > 0 && the_node.marks > before && the_node.marks < 1000);
    BH_CHECK_EQ("the same node", waitpid(node, NULL, WNOHANG), 0);
    BH_CHECK_DONE();
}

/* ---- the whole ---- */

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_stop_unknown),
        BH_NODE_TEST(test_whose_end),
        BH_NODE_TEST(test_start_without_lease),
        BH_NODE_TEST(test_folder_put_back),
        BH_NODE_TEST(test_gpu_child_killed),
        BH_NODE_TEST(test_killed_in_destroy),
        BH_NODE_TEST(test_reset),
        BH_NODE_TEST(test_gpu_lost),
        BH_NODE_TEST(test_driver_later),
        BH_NODE_TEST(test_unpacking_of_another_epoch),
        BH_NODE_TEST(test_changes_beyond_all),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
