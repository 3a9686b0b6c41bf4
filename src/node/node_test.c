/* bulkhead-node as bulkheadd sees it: real sandboxes, the simulated driver. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "base/time.h"

#include "model/job.h"
#include "node/node_fixture.h"
#include "node/path.h"

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
    struct job job = { .lease = 1, .script = "echo hi; id -u; exit 7" };
    struct bh_msg_ended ended = run_job(&job);

    BH_CHECK_EQ("cause", ended.cause, BH_END_EXITED);
    BH_CHECK_EQ("status", ended.exit_status, 7);
    BH_CHECK("started before ended", ended.started_ns > 0 && ended.started_ns < ended.ended_ns);
    BH_CHECK("cpu time is counted", ended.cpu_ns > 0);
    BH_CHECK("memory is counted", ended.memory_peak_bytes > 0);
    BH_CHECK_STR("log", test_log(1), "hi\n1000\n");
    BH_CHECK_DONE();
}

/* ---- what a job sees ---- */

/* One of the two lent nodes opens as far as its missing driver (ENXIO), every other one of
 * NVIDIA's is refused by the device fence (EPERM), even where the job could make a node. */
static void
test_devices(void **state)
{
    struct job job = {
        .lease = 2, .partition = 5,
        .script = "cd /dev; for d in nvidia0 nvidiactl nvidia-caps/nvidia-cap*; do "
                  "  (cat < $d) 2>&1 | sed 's/.*: //'; done; "
                  "ls /dev | tr '\\n' ' '; ls /dev/nvidia-caps | wc -l; "
                  "mknod /tmp/other c 195 1 2>&1 | sed 's/.*: //'; "
                  "ls /run/bulkhead-sim/view | head -1 | wc -l; env | grep -c UUID",
    };

    assert_int_equal(carve(5, 0, "1g.10gb", 0).outcome, 0);
    run_job(&job);
    BH_CHECK_STR("log", test_log(2),
                 "No such device or address\nNo such device or address\n"
                 "No such device or address\nNo such device or address\n"
                 "core fd full null nvidia-caps nvidia0 nvidiactl ptmx pts random shm stderr "
                 "stdin stdout tty urandom zero 2\n"
                 "Operation not permitted\n1\n0\n");
    BH_CHECK_DONE();
}

static void
test_confinement(void **state)
{
    static const struct {
        const char *name, *script, *log;
    } cases[] = {
        { "no capabilities", "grep CapBnd /proc/self/status | cut -f2", "0000000000000000\n" },
        { "no new privileges", "grep NoNewPrivs /proc/self/status | cut -f2", "1\n" },
        { "filter", "grep Seccomp: /proc/self/status | cut -f2", "2\n" },
        { "only loopback", "ls /sys/class/net", "lo\n" },
        { "root is read-only", "touch /x 2>&1 | sed 's/.*: //'", "Read-only file system\n" },
        { "/usr is read-only", "touch /usr/x 2>&1 | sed 's/.*: //'", "Read-only file system\n" },
        { "/tmp is private", "ls /tmp; echo x > /tmp/y && cat /tmp/y", "x\n" },
        { "no homes", "ls /home /root /run 2>&1", "/home:\n\n/root:\n\n/run:\n" },
        { "own processes", "[ $(ls -d /proc/[0-9]* | wc -l) -lt 10 ] && echo few", "few\n" },
        { "no new namespaces", "unshare -U true 2>&1 | sed 's/.*: //'",
          "Operation not permitted\n" },
        { "no mounts", "mount -t tmpfs x /tmp 2>&1 | grep -c 'permission denied\\|only root\\|must be'",
          "1\n" },
        { "host name", "uname -n", "job-1300\n" },
        { "python", "python3 -c 'import ssl,socket,json,os; print(os.getuid())'", "1000\n" },
        { "socket families",
          "python3 -c '\nimport socket\nfor f in (1,2,10,16,38,40,33,17):\n"
          "  try: socket.socket(f, 3 if f==16 else 5 if f in (38,40,33) else 2).close(); print(f,0)\n"
          "  except OSError as e: print(f,e.errno)'",
          "1 0\n2 0\n10 0\n16 0\n38 97\n40 97\n33 97\n17 97\n" },
    };
    char path[TEST_PATH * 2];

    for (uint32_t i = 0; i < BH_COUNT(cases); i++) {
        struct job job = { .lease = 300, .script = cases[i].script };
        struct bh_msg_ack ack = { .lease = 300 };

        run_job(&job);
        BH_CHECK_STR(cases[i].name, test_log(300), cases[i].log);
        test_send(BH_MSG_ACK, &ack);
        bh_path_format(path, sizeof path, "%s/logs/1300.log", the_node.folder);
        unlink(path);
    }
    BH_CHECK_DONE();
}

static void
test_environment(void **state)
{
    struct job job = { .lease = 3, .env = { "COLOUR=red", "HOME=/nowhere" },
                       .script = "echo $BULKHEAD_JOB $BULKHEAD_TENANT $BULKHEAD_SKU $COLOUR "
                                 "$HOME $PWD" };
    struct job forbidden = { .lease = 4, .env = { "BULKHEAD_JOB=1" }, .script = "true" };
    struct bh_msg_outcome outcome;

    run_job(&job);
    BH_CHECK_STR("log", test_log(3), "1003 org/dep small red /nowhere /tmp\n");
    outcome = start_job(&forbidden);
    BH_CHECK_EQ("outcome", outcome.outcome, 1);
    BH_CHECK_EQ("code", outcome.rc, BH_INVALID);
    BH_CHECK_STR("why", outcome.why, "env[0]: BULKHEAD_* is Bulkhead's own");
    BH_CHECK_DONE();
}

/* ---- the submitter's folder ---- */

static void
make_work(const char *name, uid_t uid, mode_t mode, char ret_path[TEST_PATH])
{
    bh_path_format(ret_path, TEST_PATH, "%s/work/%s", the_node.folder, name);
    assert_int_equal(mkdir(ret_path, mode), 0);
    assert_int_equal(chown(ret_path, uid, uid), 0);
}

static void
test_working_directory(void **state)
{
    char path[TEST_PATH], file[TEST_PATH * 2];
    struct job job = { .lease = 5, .uid = 4321, .cwd = path,
                       .script = "pwd; echo out > result; ls -ln result | cut -d' ' -f3" };
    struct stat st = { 0 };

    make_work("mine", 4321, 0700, path);
    run_job(&job);
    bh_path_format(file, sizeof file, "%s/result", path);
    BH_CHECK_EQ("made", stat(file, &st), 0);
    BH_CHECK_EQ("belongs to the submitter", st.st_uid, 4321);
    bh_path_format(file, sizeof file, "%s\n1000\n", path);
    BH_CHECK_STR("log", test_log(5), file);
    BH_CHECK_DONE();
}

static void
test_refused_folders(void **state)
{
    char theirs[TEST_PATH], link[TEST_PATH], system[TEST_PATH], outside[TEST_PATH];
    const struct {
        const char *name, *cwd;
        uid_t uid;
        uint32_t outcome;
    } cases[] = {
        { "another's folder", theirs, 4321, 1 },
        { "through a link", link, 4321, 1 },
        { "outside of mount_roots", outside, 4321, 1 },
        { "outside, with dots", "/tmp/../etc", 4321, 1 },
        { "a system folder", "/etc", 0, 1 },
        { "root's own, read-only", system, 0, 0 },
    };

    make_work("theirs", 1234, 0700, theirs);
    make_work("system", 0, 0755, system);
    bh_path_format(link, sizeof link, "%s/work/link", the_node.folder);
    assert_int_equal(symlink("/etc", link), 0);
    bh_path_format(outside, sizeof outside, "%s/state", the_node.folder);
    for (uint32_t i = 0; i < BH_COUNT(cases); i++) {
        struct job job = { .lease = 20 + i, .uid = cases[i].uid, .cwd = cases[i].cwd,
                           .script = "touch x 2>&1 | sed 's/.*: //'" };
        struct bh_msg_outcome outcome = start_job(&job);

        BH_CHECK_EQ(cases[i].name, outcome.outcome, cases[i].outcome);
        BH_CHECK(cases[i].name, outcome.outcome == 0 || strncmp(outcome.why, "cwd: ", 5) == 0);
        if (outcome.outcome == 0)
            test_take(BH_MSG_ENDED, job.lease);
    }
    BH_CHECK("says so in the log", strstr(test_log(25), "is read-only for this job\nRead-only"));
    BH_CHECK_DONE();
}

static void
test_image(void **state)
{
    char image[TEST_PATH], path[TEST_PATH * 2], name[TEST_PATH * 2];
    struct job job = { .lease = 6, .partition = 9, .rootfs = name,
                       .script = "cat /hello; ls /usr/local/bulkhead/libexec; touch /x || echo no" };
    struct job bad = { .lease = 7, .rootfs = name, .script = "true" };
    struct bh_msg_outcome outcome;

    assert_int_equal(carve(9, 1, "whole", 0).outcome, 0);
    bh_path_format(image, sizeof image, "%s/images/box", the_node.folder);
    assert_int_equal(mkdir(image, 0755), 0);
    bh_path_format(path, sizeof path,
                   "mkdir %s/bin; for f in sh cat ls touch; do cp /bin/$f %s/bin/; "
                   "ldd /bin/$f | grep -o '/[^ ]*' | while read l; do "
                   "mkdir -p %s/$(dirname $l); cp -L $l %s/$l; done; done; echo hello > %s/hello",
                   image, image, image, image, image);
    test_run((const char *const[]){ "/bin/bash", "-c", path, NULL });
    bh_path_format(name, sizeof name, "dir:%s", image);
    run_job(&job);
    BH_CHECK("log", strncmp(test_log(6), "hello\ninit\n", 11) == 0 && strstr(test_log(6), "no\n"));
    bh_path_format(name, sizeof name, "dir:%s/state", the_node.folder);
    outcome = start_job(&bad);
    BH_CHECK_EQ("outside of image_roots", outcome.rc, BH_DENIED);
    bh_path_format(path, sizeof path, "%s/images/box/dev", the_node.folder);
    assert_int_equal(symlink("/tmp", path), 0);
    bh_path_format(name, sizeof name, "dir:%s", image);
    bad.lease = 8;
    outcome = start_job(&bad);
    BH_CHECK_EQ("/dev is a link", outcome.rc, BH_DENIED);
    BH_CHECK_DONE();
}

/* ---- limits ---- */

static void
test_out_of_memory(void **state)
{
    struct job job = { .lease = 30, .memory_bytes = 64 << 20,
                       .script = "python3 -c 'x = bytearray(200 << 20)'" };
    struct bh_msg_ended ended = run_job(&job);

    BH_CHECK_EQ("cause", ended.cause, BH_END_OUT_OF_MEMORY);
    BH_CHECK("peak is near the limit", ended.memory_peak_bytes > 60 << 20);
    BH_CHECK_DONE();
}

static void
test_process_limit(void **state)
{
    struct job job = { .lease = 31, .pids = 8,
                       .script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done 2>&1 "
                                 "| grep -c 'fork'; wait" };

    run_job(&job);
    BH_CHECK("forks fail", test_log(31)[0] >= '1');
    BH_CHECK_DONE();
}

static void
test_not_found(void **state)
{
    const char *args[] = { "/no/such/program" };
    struct job job = { .lease = 32, .script = "" };
    const char *unused[3];
    struct bh_msg_start start = start_message(&job, unused, NULL);
    struct bh_msg_ended ended;

    start.args = (struct bh_texts){ args, 1 };
    assert_int_equal(test_order(BH_MSG_START, &start).outcome, 0);
    ended = test_take(BH_MSG_ENDED, 32).ended;
    BH_CHECK_EQ("status", ended.exit_status, 127);
    BH_CHECK("log", strstr(test_log(32), "cannot run /no/such/program"));
    BH_CHECK_DONE();
}

/* ---- suspending and stopping ---- */

static bool
wait_for_log(uint64_t lease, const char *text)
{
    for (int tries = 0; tries < 500; tries++) {
        if (strstr(test_log(lease), text))
            return true;
        bh_time_sleep(10 * BH_NS_PER_MS);
    }
    return false;
}

static void
test_suspend_and_resume(void **state)
{
    struct job job = { .lease = 40, .partition = 5,
                       .script = "echo up; i=0; while [ $i -lt 40 ]; do i=$((i+1)); sleep 0.02; "
                                 "done; echo done" };
    struct bh_msg_lease lease = { .lease = 40 };
    struct test_message message;

    assert_int_equal(carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(start_job(&job).outcome, 0);
    assert_true(wait_for_log(40, "up"));
    BH_CHECK_EQ("suspend", test_order(BH_MSG_SUSPEND, &lease).outcome, 0);
    BH_CHECK("does not run", !test_take_within(BH_MSG_ENDED, 40, 1500, &message));
    BH_CHECK_EQ("resume", test_order(BH_MSG_RESUME, &lease).outcome, 0);
    BH_CHECK_EQ("ends well", test_take(BH_MSG_ENDED, 40).ended.exit_status, 0);
    BH_CHECK_STR("output is whole", test_log(40), "up\ndone\n");
    BH_CHECK_DONE();
}

/* The simulated driver sees a context where the job maps its instance's memory. */
static void
test_suspend_with_context(void **state)
{
    struct job job = { .lease = 41, .partition = 5,
                       .script = "exec python3 -c '\nimport mmap,os,time\n"
                                 "f=os.open(\"/run/bulkhead-sim/view/memory\",os.O_RDONLY)\n"
                                 "m=mmap.mmap(f,64<<20,mmap.MAP_SHARED,mmap.PROT_READ)\n"
                                 "print(\"mapped\",flush=True)\ntime.sleep(60)'" };
    struct bh_msg_lease lease = { .lease = 41 };
    struct bh_msg_stop stop = { .lease = 41 };

    assert_int_equal(carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(start_job(&job).outcome, 0);
    assert_true(wait_for_log(41, "mapped"));
    bh_time_sleep(60 * BH_NS_PER_MS); /* the simulated driver may answer from 50 ms ago */
    BH_CHECK_EQ("context held", test_order(BH_MSG_SUSPEND, &lease).outcome, 2);
    BH_CHECK_EQ("stop", test_order(BH_MSG_STOP, &stop).outcome, 0);
    BH_CHECK_EQ("killed", test_take(BH_MSG_ENDED, 41).ended.exit_status, 137);
    BH_CHECK_DONE();
}

static void
test_stop(void **state)
{
    static const struct {
        const char *name, *script;
        bool frozen;
        uint64_t grace_ms;
        int32_t status;
        const char *log;
    } cases[] = {
        { "dies of SIGTERM", "echo up; sleep 60", false, 5000, 143, "up\n" },
        { "cleans up", "trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait", false, 5000, 3,
          "up\nbye\n" },
        { "ignores SIGTERM", "trap '' TERM; echo up; while :; do sleep 1; done", false, 200, 137,
          "up\n" },
        { "at once", "echo up; sleep 60", false, 0, 137, "up\n" },
        { "frozen", "trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait", true, 5000, 3,
          "up\nbye\n" },
    };

    for (uint32_t i = 0; i < BH_COUNT(cases); i++) {
        struct job job = { .lease = 50 + i, .script = cases[i].script };
        struct bh_msg_lease lease = { .lease = 50 + i };
        struct bh_msg_stop stop = { .lease = 50 + i,
                                    .grace_ns = cases[i].grace_ms * BH_NS_PER_MS };
        bh_ns begun;

        assert_int_equal(start_job(&job).outcome, 0);
        assert_true(wait_for_log(job.lease, "up"));
        if (cases[i].frozen)
            BH_CHECK_EQ(cases[i].name, test_order(BH_MSG_SUSPEND, &lease).outcome, 0);
        begun = bh_time_monotonic();
        BH_CHECK_EQ(cases[i].name, test_order(BH_MSG_STOP, &stop).outcome, 0);
        BH_CHECK_EQ(cases[i].name, test_take(BH_MSG_ENDED, job.lease).ended.exit_status,
                    cases[i].status);
        BH_CHECK(cases[i].name, bh_time_monotonic() - begun < 3 * BH_NS_PER_S);
        BH_CHECK_STR(cases[i].name, test_log(job.lease), cases[i].log);
    }
    BH_CHECK_DONE();
}

/* ---- orders ---- */

static void
test_repeated_order(void **state)
{
    struct job job = { .lease = 60, .script = "echo once" };
    const char *args[3];
    struct bh_msg_start start = start_message(&job, args, NULL);
    struct bh_msg_outcome first = test_order(BH_MSG_START, &start), again;
    struct bh_msg_ack ack = { .order = start.order, .lease = 60 };

    test_take(BH_MSG_ENDED, 60);
    test_send(BH_MSG_START, &start);
    again = test_take(BH_MSG_OUTCOME, start.order).outcome;
    BH_CHECK_EQ("same answer", again.at_ns, first.at_ns);
    BH_CHECK_STR("ran once", test_log(60), "once\n");
    test_send(BH_MSG_ACK, &ack);
    BH_CHECK_DONE();
}

static void
test_denied_gpu(void **state)
{
    struct bh_msg_outcome outcome;

    test_node_end(&the_node, SIGTERM);
    test_write_conf(&the_node, "");
    {
        char path[TEST_PATH * 2];
        static char text[8192];

        snprintf(text, sizeof text, "%s", test_read("node.conf"));
        memcpy(strstr(text, "gpus = all"), "gpus = no ", 10);
        bh_path_format(path, sizeof path, "%s/node.conf", the_node.folder);
        test_write(path, text);
    }
    test_node_start(&the_node);
    test_greet(&the_node);
    outcome = carve(5, 0, "1g.10gb", 0);
    BH_CHECK_EQ("outcome", outcome.outcome, 1);
    BH_CHECK_EQ("code", outcome.rc, BH_DENIED);
    BH_CHECK_DONE();
}

static uint32_t
pieces_now(void)
{
    test_hang_up(&the_node);
    return test_greet(&the_node).pieces.count;
}

static void
test_pieces(void **state)
{
    struct bh_msg_destroy destroy = { .partition = 5 };
    struct job job = { .lease = 70, .partition = 6, .script = "sleep 60" };
    struct bh_msg_stop stop = { .lease = 70 };

    BH_CHECK_EQ("carve", carve(5, 0, "1g.10gb", 0).outcome, 0);
    BH_CHECK_EQ("taken place", carve(7, 0, "1g.10gb", 0).rc, BH_FULL);
    BH_CHECK_EQ("second", carve(6, 0, "3g.40gb", 4).outcome, 0);
    BH_CHECK_EQ("no such GPU profile", carve(8, 0, "9g.90gb", 1).outcome, 1);
    BH_CHECK_EQ("whole GPU", carve(9, 1, "whole", 0).outcome, 0);
    BH_CHECK_EQ("no MIG on a whole one", carve(10, 1, "1g.10gb", 0).rc, BH_CONFLICT);
    BH_CHECK_EQ("three pieces", pieces_now(), 3);
    assert_int_equal(start_job(&job).outcome, 0);
    destroy.partition = 6;
    BH_CHECK_EQ("held", test_order(BH_MSG_DESTROY, &destroy).rc, BH_CONFLICT);
    destroy.partition = 5;
    BH_CHECK_EQ("destroy", test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    BH_CHECK_EQ("again", test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    test_order(BH_MSG_STOP, &stop);
    test_take(BH_MSG_ENDED, 70);
    BH_CHECK_EQ("two pieces", pieces_now(), 2);
    BH_CHECK_DONE();
}

/* ---- crashes ---- */

static void
test_node_killed(void **state)
{
    struct job longer = { .lease = 80, .partition = 5, .script = "echo up; sleep 1; echo done" };
    struct job shorter = { .lease = 81, .script = "echo up; sleep 0.3; exit 5" };
    struct bh_msg_inventory inventory;
    struct bh_msg_ack ack = { .lease = 81 };
    struct test_message message;

    assert_int_equal(carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(start_job(&longer).outcome, 0);
    assert_int_equal(start_job(&shorter).outcome, 0);
    assert_true(wait_for_log(80, "up") && wait_for_log(81, "up"));
    test_node_end(&the_node, SIGKILL);
    bh_time_sleep(600 * BH_NS_PER_MS); /* the short one ends while no node is there */
    test_node_start(&the_node);
    inventory = test_greet(&the_node);
    BH_CHECK_EQ("the piece is known", inventory.pieces.count, 1);
    BH_CHECK_EQ("ended meanwhile", test_take(BH_MSG_ENDED, 81).ended.exit_status, 5);
    BH_CHECK_EQ("ends later", test_take(BH_MSG_ENDED, 80).ended.exit_status, 0);
    BH_CHECK_STR("output is whole", test_log(80), "up\ndone\n");
    test_send(BH_MSG_ACK, &ack);
    pieces_now();
    BH_CHECK_EQ("told again until acknowledged", test_take(BH_MSG_ENDED, 80).ended.exit_status, 0);
    BH_CHECK("acknowledged: not told again", !test_take_within(BH_MSG_ENDED, 81, 200, &message));
    BH_CHECK_DONE();
}

static void
test_keeper_killed(void **state)
{
    struct job job = { .lease = 90, .script = "echo up; sleep 60" };
    struct bh_msg_ended ended;
    pid_t keeper;

    assert_int_equal(start_job(&job).outcome, 0);
    assert_true(wait_for_log(90, "up"));
    keeper = (pid_t)strtol(test_read("state/jobs/90/keeper"), NULL, 10);
    assert_true(keeper > 1);
    kill(keeper, SIGKILL);
    ended = test_take(BH_MSG_ENDED, 90).ended;
    BH_CHECK_EQ("cause", ended.cause, BH_END_KEEPER_LOST);
    BH_CHECK("when it began is known", ended.started_ns > 0);
    BH_CHECK_DONE();
}

static void
test_keep_collects(void **state)
{
    struct job job = { .lease = 91, .partition = 5, .script = "echo up; sleep 60" };
    struct bh_msg_keep_item kept = { 6 };
    struct bh_msg_keep keep = { .pieces = { &kept, 1 } };

    assert_int_equal(carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(carve(6, 0, "1g.10gb", 1).outcome, 0);
    assert_int_equal(start_job(&job).outcome, 0);
    assert_true(wait_for_log(91, "up"));
    test_send(BH_MSG_KEEP, &keep);
    test_take(BH_MSG_ENDED, 91);
    for (int tries = 0; tries < 100 && pieces_now() != 1; tries++)
        bh_time_sleep(50 * BH_NS_PER_MS);
    BH_CHECK_EQ("one piece is left", pieces_now(), 1);
    BH_CHECK_DONE();
}

/* ---- bad input ---- */

static void
test_out_of_place(void **state)
{
    struct bh_msg_hello hello = { .version = BH_WIRE_VERSION };
    struct test_message message;

    test_send(BH_MSG_HELLO, &hello);
    BH_CHECK("closed", !test_take_within(BH_MSG_INVENTORY, 0, 1000, &message));
    pieces_now(); /* and serves the next one */
    BH_CHECK_DONE();
}

#define NODE_TEST(name) cmocka_unit_test_setup_teardown(name, test_set_up, test_tear_down)

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        NODE_TEST(test_first_job),
        NODE_TEST(test_devices),
        NODE_TEST(test_confinement),
        NODE_TEST(test_environment),
        NODE_TEST(test_working_directory),
        NODE_TEST(test_refused_folders),
        NODE_TEST(test_image),
        NODE_TEST(test_out_of_memory),
        NODE_TEST(test_process_limit),
        NODE_TEST(test_not_found),
        NODE_TEST(test_suspend_and_resume),
        NODE_TEST(test_suspend_with_context),
        NODE_TEST(test_stop),
        NODE_TEST(test_repeated_order),
        NODE_TEST(test_denied_gpu),
        NODE_TEST(test_pieces),
        NODE_TEST(test_node_killed),
        NODE_TEST(test_keeper_killed),
        NODE_TEST(test_keep_collects),
        NODE_TEST(test_out_of_place),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root");
        return 0;
    }
    assert(argc >= 4);
    the_node.program = argv[1];
    the_node.simctl = argv[2];
    the_node.library = argv[3];
    if (argc > 4)
        cmocka_set_test_filter(argv[4]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
