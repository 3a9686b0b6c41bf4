/* bulkhead-node against jobs, crashes and disks that work against it: what may not happen
 * then.  Real sandboxes, the simulated driver. */
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "base/time.h"

#include "model/job.h"
#include "node/common/path.h"
#include "node/session/node_fixture_test.h"

#define MAP_THE_GPU                                                                                          \
    "exec python3 -c '\nimport mmap,os,time\n"                                                               \
    "f=os.open(\"/run/bulkhead-sim/view/memory\",os.O_RDONLY)\n"                                             \
    "m=mmap.mmap(f,64<<20,mmap.MAP_SHARED,mmap.PROT_READ)\n"                                                 \
    "print(\"mapped\",flush=True)\ntime.sleep(60)'"

/* ---- small things ---- */

/* The state of the version 1 freezer of a group below the test's, or of that itself. */
static void
freezer_path(const char *group, char ret_path[TEST_PATH])
{
    bh_path_format(ret_path, TEST_PATH, "/sys/fs/cgroup/freezer%s%s/freezer.state", the_node.cgroup, group);
}

static void
write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void
control_driver(const char *text)
{
    char path[TEST_PATH * 2];

    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    bh_test_write(path, text);
}

/* Long enough for a node to be killed in the middle of a suspend. */
static void
delay_list_of_processes(void)
{
    char rule[96];

    bh_path_format(rule, sizeof rule, "nvmlDeviceGetComputeRunningProcesses_v3 delay-ms=%d count=1000\n",
                   bh_test_scaled(TEST_TIMEOUT_MS));
    control_driver(rule);
}

/* Until the node's child is in that call. */
static void
await_list_of_processes(void)
{
    bh_test_simctl("await", "1", NULL);
}

static pid_t
keeper_of(uint64_t lease)
{
    char name[64];

    bh_path_format(name, sizeof name, "state/jobs/%" PRIu64 "/keeper", lease);
    return (pid_t)strtol(bh_test_read(name), NULL, 10);
}

/* ---- the end of a job ---- */

/* Frozen from above is as a process that sits in the driver is: SIGKILL does not end it. */
static void
test_unkillable(void **state)
{
    struct test_job job = { .lease = 1, .partition = 5, .script = "echo up; while :; do sleep 0.1; done" };
    struct bh_msg_destroy destroy = { .partition = 5 };
    struct test_message message;
    char path[TEST_PATH];

    freezer_path("", path);
    if (access("/sys/fs/cgroup/freezer", F_OK) != 0) {
        print_message("# not tried: version 2 kills what is frozen\n");
        return;
    }
    assert_int_equal(bh_test_carve(5, 0, "whole", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(1, "up"));
    write_text(path, "FROZEN");
    kill(keeper_of(1), SIGKILL);
    BH_CHECK("no end is told", !bh_test_receive_within(BH_MSG_ENDED, 1, 2500, &message));
    BH_CHECK_EQ("its piece stays", bh_test_order(BH_MSG_DESTROY, &destroy).rc, BH_CONFLICT);
    BH_CHECK_STR("no end is written", bh_test_read("state/jobs/1/exit"), "");
    write_text(path, "THAWED");
    BH_CHECK_EQ("then it ends", bh_test_receive(BH_MSG_ENDED, 1).ended.cause, BH_END_KEEPER_LOST);
    BH_CHECK_EQ("and frees it", bh_test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    BH_CHECK_DONE();
}

/* ---- contexts ---- */

static void
test_killed_while_suspending(void **state)
{
    struct test_job job = { .lease = 2, .partition = 5, .script = MAP_THE_GPU };
    struct bh_msg_lease suspend = { .lease = 2, .order = 900 };
    struct bh_msg_destroy destroy = { .partition = 5 };
    struct bh_msg_inventory inventory;

    assert_int_equal(bh_test_carve(5, 0, "whole", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(2, "mapped"));
    delay_list_of_processes();
    bh_test_send(BH_MSG_SUSPEND, &suspend);
    await_list_of_processes();
    bh_test_node_end(&the_node, SIGKILL);
    control_driver("");
    bh_test_node_start(&the_node);
    inventory = bh_test_hello(&the_node);
    BH_CHECK_EQ("the lease is known", inventory.leases.count, 1);
    BH_CHECK("not as suspended", !((struct bh_msg_lease_state *)inventory.leases.items)->frozen);
    BH_CHECK_EQ("it has its piece", bh_test_order(BH_MSG_DESTROY, &destroy).rc, BH_CONFLICT);
    bh_test_send(BH_MSG_SUSPEND, &suspend);
    BH_CHECK_EQ("held", bh_test_receive(BH_MSG_OUTCOME, 900).outcome.outcome, 2);
    BH_CHECK_DONE();
}

/* A suspend that was done is done after a crash, too. */
static void
test_suspended_stays(void **state)
{
    struct test_job job = { .lease = 3, .partition = 5, .script = "echo up; sleep 60" };
    struct bh_msg_lease lease = { .lease = 3 };
    struct bh_msg_destroy destroy = { .partition = 5 };
    struct bh_msg_inventory inventory;

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(3, "up"));
    BH_CHECK_EQ("suspend", bh_test_order(BH_MSG_SUSPEND, &lease).outcome, 0);
    for (int again = 0; again < 2; again++) { /* the second reads a rewritten journal */
        bh_test_node_end(&the_node, SIGKILL);
        bh_test_node_start(&the_node);
        inventory = bh_test_hello(&the_node);
        BH_CHECK("suspended", ((struct bh_msg_lease_state *)inventory.leases.items)->frozen);
    }
    BH_CHECK_EQ("its piece can go", bh_test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    BH_CHECK_EQ("it cannot come back", bh_test_order(BH_MSG_RESUME, &lease).rc, BH_CONFLICT);
    BH_CHECK_DONE();
}

static void
test_many_processes(void **state)
{
    char own_path[PATH_MAX];
    char folder[TEST_PATH], command[PATH_MAX + TEST_PATH + 20];
    struct test_job job = {
        .lease = 4, .partition = 5, .uid = 4321, .cwd = folder, .pids = 6000, .script = "exec ./many"
    };
    struct bh_msg_lease lease = { .lease = 4 };
    struct bh_msg_stop stop = { .lease = 4, .grace_ns = (bh_ns)bh_test_scaled(8000) * BH_NS_PER_MS };
    struct bh_msg_outcome suspended;

    assert_non_null(realpath("/proc/self/exe", own_path));
    bh_path_format(folder, sizeof folder, "%s/work/many", the_node.folder);
    assert_int_equal(mkdir(folder, 0755), 0);
    bh_path_format(command, sizeof command, "cp %s/node_many %s/many", dirname(own_path), folder);
    bh_test_run((const char *const[]){ "/bin/sh", "-c", command, NULL });
    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(4, "mapped"));
    suspended = bh_test_order(BH_MSG_SUSPEND, &lease);
    BH_CHECK_EQ("context held", suspended.outcome, 2);
    BH_CHECK("its memory stays, and all of it froze", strstr(suspended.why, "libcuda.so.1"));
    BH_CHECK_EQ("stop", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    BH_CHECK_EQ("SIGTERM reaches all", bh_test_receive(BH_MSG_ENDED, 4).ended.exit_status, 143);
    BH_CHECK_DONE();
}

/* ---- who has which partition ---- */

static void
test_lent_once(void **state)
{
    struct test_job first = { .lease = 5,
                              .partition = 5,
                              .script = "trap 'echo bye' TERM; echo up; while :; do sleep 1; done" };
    struct test_job second = { .lease = 6, .partition = 5, .script = "echo up; sleep 60" };
    struct bh_msg_lease one = { .lease = 5 }, two = { .lease = 6 };
    struct bh_msg_stop stop = { .lease = 5, .grace_ns = 60 * BH_NS_PER_S };

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&first).outcome, 0);
    assert_true(bh_test_wait_for_log(5, "up"));
    BH_CHECK_EQ("lent", bh_test_start_job(&second).rc, BH_CONFLICT);
    BH_CHECK_EQ("suspend", bh_test_order(BH_MSG_SUSPEND, &one).outcome, 0);
    BH_CHECK_EQ("free then", bh_test_start_job(&second).outcome, 0);
    BH_CHECK_EQ("no way back", bh_test_order(BH_MSG_RESUME, &one).rc, BH_CONFLICT);
    BH_CHECK_EQ("stop", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    BH_CHECK_EQ("it does not run again", bh_test_receive(BH_MSG_ENDED, 5).ended.exit_status, 137);
    BH_CHECK_STR("not even to say bye", bh_test_log(5), "up\n");
    assert_true(bh_test_wait_for_log(6, "up")); /* a half-built sandbox is not suspended */
    BH_CHECK_EQ("the other runs on", bh_test_order(BH_MSG_SUSPEND, &two).outcome, 0);
    BH_CHECK_DONE();
}

/* An unknown process has a context on a GPU that is to be lent as a whole. */
static void
test_used_whole(void **state)
{
    struct bh_msg_destroy destroy = { .partition = 5 };
    char path[TEST_PATH * 2];
    void *memory;
    int fd;

    assert_int_equal(bh_test_carve(5, 0, "whole", 0).outcome, 0);
    bh_path_format(path, sizeof path, "%s/sim/view/0-w/memory", the_node.folder);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    memory = mmap(NULL, 64 << 20, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    BH_CHECK_EQ("not given back", bh_test_order(BH_MSG_DESTROY, &destroy).rc, BH_CONFLICT);
    munmap(memory, 64 << 20);
    BH_CHECK_EQ("given back", bh_test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    memory = mmap(NULL, 64 << 20, PROT_READ, MAP_SHARED, fd, 0);
    BH_CHECK_EQ("not lent", bh_test_carve(6, 0, "whole", 0).rc, BH_CONFLICT);
    munmap(memory, 64 << 20);
    close(fd);
    BH_CHECK_DONE();
}

static struct bh_msg_outcome
carve_for(uint64_t partition, uint32_t start, uint32_t tenant)
{
    struct bh_msg_carve carve = {
        .partition = partition, .start = start, .profile = "1g.10gb", .tenant = tenant
    };

    snprintf(carve.gpu, sizeof carve.gpu, "%s", the_node.gpus[0]);
    return bh_test_order(BH_MSG_CARVE, &carve);
}

static struct bh_msg_outcome
destroy_for(uint64_t partition, uint32_t tenant)
{
    struct bh_msg_destroy destroy = { .partition = partition, .tenant = tenant };

    return bh_test_order(BH_MSG_DESTROY, &destroy);
}

/* The daemon orders what the driver's fault forbids (CVE-2026-24197): the node does not do it. */
static void
test_lone_carve(void **state)
{
    enum { OURS = 3, OTHERS };
    struct test_job job = { .lease = 1, .partition = 5, .tenant = OURS, .script = "echo up; sleep 60" };
    struct bh_msg_inventory inventory;
    struct bh_msg_outcome refused;
    char sim[TEST_PATH * 2];

    bh_test_node_end(&the_node, SIGTERM);
    bh_path_format(sim, sizeof sim, "%s/sim", the_node.folder);
    bh_test_run((const char *const[]){ the_node.simctl, "--state", sim, "init",
                                       "1x H100-80GB driver=580.65.06", NULL });
    bh_test_node_start(&the_node);
    inventory = bh_test_hello(&the_node);
    memcpy(the_node.gpus[0], bh_test_gpu(&inventory, 0)->uuid, BH_UUID_MAX);
    assert_int_equal(carve_for(5, 0, OURS).outcome, 0);
    assert_int_equal(carve_for(6, 1, 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0); /* it is the sandbox's OURS */
    assert_true(bh_test_wait_for_log(1, "up"));
    refused = carve_for(7, 2, OTHERS);
    BH_CHECK_EQ("beside another tenant", refused.rc, BH_CONFLICT);
    BH_CHECK("the reason", strstr(refused.why, "CVE-2026-24197") != NULL);
    BH_CHECK_EQ("for nobody yet", carve_for(7, 2, 0).rc, BH_CONFLICT);
    BH_CHECK_EQ("a destroy", destroy_for(6, OTHERS).rc, BH_CONFLICT);
    BH_CHECK_EQ("a destroy for nobody", destroy_for(6, 0).rc, BH_CONFLICT);
    BH_CHECK_EQ("beside its own", carve_for(7, 2, OURS).outcome, 0);
    BH_CHECK_EQ("destroyed for it", destroy_for(6, OURS).outcome, 0);
    BH_CHECK_DONE();
}

/* An order that was noted and not begun: another program made the instance that is there. */
static void
test_foreign_stays(void **state)
{
    struct test_job job = { .lease = 7, .partition = 6, .script = "echo up; sleep 60" };
    struct bh_msg_lease suspend = { .lease = 7, .order = 900 };
    struct bh_msg_carve cut = { .order = 901, .partition = 51, .profile = "1g.10gb" };
    struct bh_msg_inventory inventory;
    char path[TEST_PATH * 2];

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    bh_test_node_end(&the_node, SIGTERM);
    bh_path_format(path, sizeof path, "%s/state/journal", the_node.folder);
    assert_int_equal(unlink(path), 0);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    assert_int_equal(bh_test_carve(6, 1, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(7, "up"));
    snprintf(cut.gpu, sizeof cut.gpu, "%s", the_node.gpus[0]);
    delay_list_of_processes();
    kill(the_node.pid, SIGSTOP); /* so that both are noted together */
    bh_test_send(BH_MSG_SUSPEND, &suspend);
    bh_test_send(BH_MSG_CARVE, &cut);
    kill(the_node.pid, SIGCONT);
    await_list_of_processes();
    bh_test_node_end(&the_node, SIGKILL);
    control_driver("");
    bh_test_node_start(&the_node);
    inventory = bh_test_hello(&the_node);
    BH_CHECK("it is foreign still", bh_test_gpu(&inventory, 0)->foreign);
    bh_test_send(BH_MSG_CARVE, &cut);
    BH_CHECK_EQ("its place is taken", bh_test_receive(BH_MSG_OUTCOME, 901).outcome.rc, BH_FULL);
    BH_CHECK_DONE();
}

/* ---- folders of the node ---- */

/* Whether the node ends by itself, after it has said `text`. */
static bool
refuses_to_start(const char *text)
{
    bool ended;

    bh_test_node_start(&the_node);
    ended = bh_test_await(waitpid(the_node.pid, NULL, WNOHANG) == the_node.pid);
    if (ended)
        the_node.pid = 0;
    else
        bh_test_node_end(&the_node, SIGKILL);
    return ended && strstr(bh_test_read("node.log"), text);
}

static void
test_folders(void **state)
{
    char path[TEST_PATH], shown[TEST_PATH * 2];
    static const struct {
        const char *name, *change, *back, *says;
    } cases[] = {
        { "state", "chmod 775 state", "chmod 755 state", "state can be written by users other" },
        { "run", "chmod 1777 run", "chmod 755 run", "run can be written by users other" },
        { "above", "chmod 777 .", "chmod 755 .", " can be written by users other" },
        { "boxes", "mv run/boxes x; ln -s ../work run/boxes", "rm run/boxes; mv x run/boxes",
          "run/boxes is not a folder, or is a symbolic link" },
        { "jobs", "chown 4321 state/jobs", "chown 0 state/jobs", "state/jobs belongs to user 4321" },
    };

    bh_test_node_end(&the_node, SIGTERM);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        bh_path_format(path, sizeof path, "cd %s; %s", the_node.folder, cases[i].change);
        bh_test_run((const char *const[]){ "/bin/sh", "-c", path, NULL });
        BH_CHECK(cases[i].name, refuses_to_start(cases[i].says));
        bh_path_format(path, sizeof path, "cd %s; %s", the_node.folder, cases[i].back);
        bh_test_run((const char *const[]){ "/bin/sh", "-c", path, NULL });
        bh_path_format(shown, sizeof shown, "%s/node.log", the_node.folder);
        unlink(shown);
    }
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK_DONE();
}

/* ---- full disks ---- */

static void
test_log_cap(void **state)
{
    struct test_job job = { .lease = 8, .script = "head -c 700000 /dev/zero" };
    const char *args[3];
    struct bh_msg_start start = bh_test_start_message(&job, args, NULL);
    char path[TEST_PATH * 2];
    struct stat st = { 0 };

    bh_test_node_end(&the_node, SIGTERM);
    bh_test_write_conf(&the_node, "log_cap_mib = 1\n");
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    for (uint32_t i = 0; i < 3; i++) {
        start.lease = 8 + i; /* the same job again */
        assert_int_equal(bh_test_order(BH_MSG_START, &start).outcome, 0);
        bh_test_receive(BH_MSG_ENDED, start.lease);
    }
    bh_path_format(path, sizeof path, "%s/logs/1008.log", the_node.folder);
    BH_CHECK_EQ("it is there", stat(path, &st), 0);
    BH_CHECK("one cap for all runs", st.st_size > 1 << 20 && st.st_size < (1 << 20) + 1000);
    BH_CHECK_DONE();
}

static void
fill_disk(const char *name, size_t chunk)
{
    char path[TEST_PATH * 2], bytes[4096] = { 0 };
    int fd;

    bh_path_format(path, sizeof path, "%s/state/%s", the_node.folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, bytes, chunk) > 0)
        ;
    close(fd);
}

/* With a disk that is full nothing new begins, and what runs can be stopped. */
static void
test_full_disk(void **state)
{
    struct test_job job = { .lease = 9, .script = "echo up; sleep 60" };
    struct test_job another = { .lease = 10, .script = "true" };
    struct bh_msg_stop stop = { .lease = 9, .grace_ns = BH_NS_PER_S };
    struct bh_msg_lease resume = { .lease = 9 };
    struct bh_msg_ack ack = { 0 };
    enum { LAST = 3000 };
    struct test_message message;
    char path[TEST_PATH];

    bh_test_node_end(&the_node, SIGTERM);
    bh_path_format(path, sizeof path, "%s/state", the_node.folder);
    assert_int_equal(mount("test", path, "tmpfs", 0, "size=1m,mode=700"), 0);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(9, "up"));
    fill_disk("fill", 4096);
    BH_CHECK_EQ("no new job", bh_test_start_job(&another).outcome, 1);
    for (resume.order = 800; resume.order < LAST; resume.order++) {
        bh_test_send(BH_MSG_RESUME, &resume);
        if (!bh_test_receive_within(BH_MSG_OUTCOME, resume.order, bh_test_scaled(1000), &message))
            break; /* what is left is for what must be noted */
        ack.order = resume.order;
        bh_test_send(BH_MSG_ACK, &ack);
    }
    BH_CHECK("no new orders", resume.order < LAST);
    bh_test_disconnect(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK_EQ("a stop is done", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    BH_CHECK_EQ("and its end is told", bh_test_receive(BH_MSG_ENDED, 9).ended.exit_status, 143);
    bh_path_format(path, sizeof path, "%s/state/fill", the_node.folder);
    unlink(path);
    BH_CHECK_EQ("it works again", bh_test_run_job(&another).exit_status, 0);
    bh_test_node_end(&the_node, SIGTERM);
    bh_path_format(path, sizeof path, "%s/state", the_node.folder);
    umount2(path, MNT_DETACH);
    BH_CHECK_DONE();
}

/* ---- what may be asked for ---- */

static void
test_asked_too_much(void **state)
{
    static const struct {
        const char *field;
        uint32_t pids, cpu_milli;
        uint64_t memory_bytes;
    } cases[] = {
        { "pids", 20000, 0, 0 },
        { "pids", UINT32_MAX, 0, 0 },
        { "memory_bytes", 0, 0, UINT64_C(1) << 60 },
        { "cpu_milli", 0, 9, 0 },
        { "cpu_milli", 0, UINT32_MAX, 0 },
    };

    for (uint32_t i = 0; i < BH_COUNT(cases); i++) {
        struct test_job job = {
            .lease = 20 + i, .script = "true", .pids = cases[i].pids, .memory_bytes = cases[i].memory_bytes
        };
        const char *args[3];
        struct bh_msg_start start = bh_test_start_message(&job, args, NULL);
        struct bh_msg_outcome outcome;

        start.cpu_milli = cases[i].cpu_milli;
        outcome = bh_test_order(BH_MSG_START, &start);
        BH_CHECK_EQ(cases[i].field, outcome.rc, BH_RANGE);
        BH_CHECK(outcome.why, strncmp(outcome.why, cases[i].field, strlen(cases[i].field)) == 0);
    }
    BH_CHECK_DONE();
}

static void
attack_test_make_folder(const char *name, char ret_path[TEST_PATH])
{
    bh_path_format(ret_path, TEST_PATH, "%s/work/%s", the_node.folder, name);
    assert_int_equal(mkdir(ret_path, 0755), 0);
    assert_int_equal(chown(ret_path, 4321, 4321), 0);
}

static void
test_mounts_apart(void **state)
{
    char a[TEST_PATH], b[TEST_PATH], inner[TEST_PATH];
    struct {
        const char *name, *cwd;
        struct bh_msg_mount mounts[2];
        uint32_t count;
        bh_rc rc;
        /* clang-format off */
    } cases[] = {
        { "inside another", "", { { a, "/data", true }, { b, "/data/x", true } }, 2, BH_DENIED },
        { "around another", "", { { a, "/data/x", true }, { b, "/data", true } }, 2, BH_DENIED },
        { "the same place", "", { { a, "/data", true }, { b, "/data", true } }, 2, BH_DENIED },
        { "around the cwd", inner, { { b, a, true } }, 1, BH_DENIED },
        { "inside the cwd", a, { { b, inner, true } }, 1, BH_DENIED },
        { "beside", "", { { a, "/data", true }, { b, "/data2", true } }, 2, BH_OK },
        { "the cwd is shown", inner, { { a, a, true } }, 1, BH_OK },
    };
    /* clang-format on */

    attack_test_make_folder("a", a);
    attack_test_make_folder("b", b);
    attack_test_make_folder("a/in", inner);
    for (uint32_t i = 0; i < BH_COUNT(cases); i++) {
        struct test_job job = { .lease = 30 + i, .script = "pwd", .uid = 4321, .cwd = cases[i].cwd };
        const char *args[3];
        struct bh_msg_start start = bh_test_start_message(&job, args, NULL);

        start.mounts = (struct bh_list){ cases[i].mounts, cases[i].count };
        BH_CHECK_EQ(cases[i].name, bh_test_order(BH_MSG_START, &start).rc, cases[i].rc);
    }
    bh_test_receive(BH_MSG_ENDED, 36);
    BH_CHECK("in its folder", strstr(bh_test_log(36), "/work/a/in\n"));
    BH_CHECK_DONE();
}

/* ---- the whole ---- */

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_unkillable),      BH_NODE_TEST(test_killed_while_suspending),
        BH_NODE_TEST(test_suspended_stays), BH_NODE_TEST(test_many_processes),
        BH_NODE_TEST(test_lent_once),       BH_NODE_TEST(test_lone_carve),
        BH_NODE_TEST(test_used_whole),      BH_NODE_TEST(test_foreign_stays),
        BH_NODE_TEST(test_folders),         BH_NODE_TEST(test_log_cap),
        BH_NODE_TEST(test_full_disk),       BH_NODE_TEST(test_asked_too_much),
        BH_NODE_TEST(test_mounts_apart),
    };

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
