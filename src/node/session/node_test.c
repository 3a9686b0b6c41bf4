/* bulkhead-node as bulkheadd sees it: real sandboxes, the simulated driver. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "base/time.h"

#include "model/job.h"
#include "node/common/path.h"
#include "node/session/node_fixture_test.h"

/* In a job's script, until bh_test_release() of its GPU. */
#define UNTIL_GO "until [ -e /run/bulkhead-sim/view/go ]; do sleep 0.02; done; "

enum { LONG_MS = 60000 }; /* a grace that is not used up */

static void
test_first_job(void **state)
{
    struct test_job job = { .lease = 1, .script = "echo hi; id -u; exit 7" };
    struct bh_msg_ended ended = bh_test_run_job(&job);

    BH_CHECK_EQ("cause", ended.cause, BH_END_EXITED);
    BH_CHECK_EQ("status", ended.exit_status, 7);
    BH_CHECK("started before ended", ended.started_ns > 0 && ended.started_ns < ended.ended_ns);
    BH_CHECK("cpu time is counted", ended.cpu_ns > 0);
    BH_CHECK("memory is counted", ended.memory_peak_bytes > 0);
    BH_CHECK_STR("log", bh_test_log(1), "hi\n1000\n");
    BH_CHECK_DONE();
}

/* ---- what a job sees ---- */

/* One of the two lent nodes opens as far as its missing driver (ENXIO), every other one of
 * NVIDIA's is refused by the device fence (EPERM), even where the job could make a node. */
static void
test_devices(void **state)
{
    struct test_job job = {
        .lease = 2,
        .partition = 5,
        .script = "cd /dev; for d in nvidia0 nvidiactl nvidia-caps/nvidia-cap*; do "
                  "  (cat < $d) 2>&1 | sed 's/.*: //'; done; "
                  "ls /dev | tr '\\n' ' '; ls /dev/nvidia-caps | wc -l; "
                  "mknod /tmp/other c 195 1 2>&1 | sed 's/.*: //'; "
                  "ls /run/bulkhead-sim/view | head -1 | wc -l; env | grep -c UUID",
    };

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    bh_test_run_job(&job);
    BH_CHECK_STR("log", bh_test_log(2),
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
        { "no new namespaces", "unshare -U true 2>&1 | sed 's/.*: //'", "Operation not permitted\n" },
        { "no mounts", "mount -t tmpfs x /tmp 2>&1 | grep -c 'permission denied\\|only root\\|must be'",
          "1\n" },
        { "closed descriptors", "ls /proc/self/fd | tr '\\n' ' '; ls /proc/1/fd 2>&1 | wc -l",
          "0 1 2 3 1\n" },
        { "no core files", "python3 -c 'import resource; print(max(resource.getrlimit(4)) < 2)'", "True\n" },
        { "no console", "ls /dev | tr '\\n' ' '",
          "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero " },
        { "processes of others are hidden", "grep -o 'hidepid=[a-z0-9]*' /proc/mounts | sort -u",
          "hidepid=invisible\n" },
        { "an ipc namespace of its own", "cat /proc/sysvipc/shm | wc -l", "1\n" },
        { "cgroup namespace", "grep -c bulkhead /proc/self/cgroup", "0\n" },
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
        struct test_job job = { .lease = 300, .script = cases[i].script };
        struct bh_msg_ack ack = { .lease = 300 };

        bh_test_run_job(&job);
        BH_CHECK_STR(cases[i].name, bh_test_log(300), cases[i].log);
        bh_test_send(BH_MSG_ACK, &ack);
        bh_path_format(path, sizeof path, "%s/logs/1300.log", the_node.folder);
        unlink(path);
    }
    BH_CHECK_DONE();
}

static void
test_environment(void **state)
{
    struct test_job job = { .lease = 3,
                            .env = { "COLOUR=red", "HOME=/nowhere" },
                            .script = "echo $BULKHEAD_JOB $BULKHEAD_TENANT $BULKHEAD_SKU $COLOUR "
                                      "$HOME $PWD" };
    struct test_job forbidden = { .lease = 4, .env = { "BULKHEAD_JOB=1" }, .script = "true" };
    struct bh_msg_outcome outcome;

    bh_test_run_job(&job);
    BH_CHECK_STR("log", bh_test_log(3), "1003 org/dep small red /nowhere /tmp\n");
    outcome = bh_test_start_job(&forbidden);
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
    struct test_job job = { .lease = 5,
                            .uid = 4321,
                            .cwd = path,
                            .script = "pwd; echo out > result; ls -ln result | cut -d' ' -f3" };
    struct stat st = { 0 };

    make_work("mine", 4321, 0700, path);
    bh_test_run_job(&job);
    bh_path_format(file, sizeof file, "%s/result", path);
    BH_CHECK_EQ("made", stat(file, &st), 0);
    BH_CHECK_EQ("belongs to the submitter", st.st_uid, 4321);
    bh_path_format(file, sizeof file, "%s\n1000\n", path);
    BH_CHECK_STR("log", bh_test_log(5), file);
    bh_test_run_job(&(struct test_job){ .lease = 60, .uid = 4321, .cwd = "/tmp", .script = "pwd" });
    BH_CHECK_STR("of its own", bh_test_log(60), "/tmp\n");
    bh_test_run_job(&(struct test_job){ .lease = 61, .uid = 4321, .cwd = "/", .script = "pwd" });
    BH_CHECK_STR("the root", bh_test_log(61), "/\n");
    BH_CHECK_DONE();
}

/* Folders of other owners are as outside the job: theirs, and writable where the mode lets the submitter's
 * group, or all users. */
static void
test_folder_of_a_group(void **state)
{
    char path[TEST_PATH], file[TEST_PATH * 2];
    struct test_job job = { .lease = 7,
                            .uid = 4321,
                            .cwd = path,
                            .script = "echo out > result; echo more >> shared; ls -ln . | grep -c 65534; "
                                      "for f in closed roots; do echo x 2>/dev/null >> $f || echo $f; done; "
                                      "chmod 777 shared 2>/dev/null || echo theirs" };
    static const struct {
        const char *name;
        uid_t uid;
        gid_t gid;
        mode_t mode;
    } files[] = { { "shared", 1234, 4321, 0660 }, { "closed", 1234, 4321, 0640 }, { "roots", 0, 0, 0644 } };
    struct stat st = { 0 };

    make_work("group", 0, 0770, path);
    assert_int_equal(chown(path, 0, 4321), 0);
    assert_int_equal(chmod(path, 0770), 0); /* whatever the umask is */
    for (size_t i = 0; i < BH_COUNT(files); i++) {
        bh_path_format(file, sizeof file, "%s/%s", path, files[i].name);
        assert_int_equal(close(open(file, O_CREAT | O_WRONLY, 0600)), 0);
        assert_int_equal(chown(file, files[i].uid, files[i].gid), 0);
        assert_int_equal(chmod(file, files[i].mode), 0);
    }
    bh_test_run_job(&job);
    BH_CHECK_STR("log", bh_test_log(7), "3\nclosed\nroots\ntheirs\n");
    bh_path_format(file, sizeof file, "%s/result", path);
    BH_CHECK_EQ("made", stat(file, &st), 0);
    BH_CHECK_EQ("belongs to the submitter", st.st_uid, 4321);
    bh_path_format(file, sizeof file, "%s/shared", path);
    BH_CHECK_EQ("the group's file", stat(file, &st), 0);
    BH_CHECK("was written, and is still its owner's", st.st_uid == 1234 && st.st_size == 5);
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
        { "closed, for root's job", theirs, 0, 1 },
        { "closed, for no user's job", theirs, UINT32_MAX, 1 },
        { "open, for no user's job", system, UINT32_MAX, 0 },
    };

    make_work("theirs", 1234, 0700, theirs);
    make_work("system", 0, 0755, system);
    bh_path_format(link, sizeof link, "%s/work/link", the_node.folder);
    assert_int_equal(symlink("/etc", link), 0);
    bh_path_format(outside, sizeof outside, "%s/state", the_node.folder);
    for (uint32_t i = 0; i < BH_COUNT(cases); i++) {
        struct test_job job = { .lease = 20 + i,
                                .uid = cases[i].uid,
                                .cwd = cases[i].cwd,
                                .script = "touch x 2>&1 | sed 's/.*: //'" };
        struct bh_msg_outcome outcome = bh_test_start_job(&job);

        BH_CHECK_EQ(cases[i].name, outcome.outcome, cases[i].outcome);
        BH_CHECK(cases[i].name, outcome.outcome == 0 || strncmp(outcome.why, "cwd: ", 5) == 0);
        if (outcome.outcome == 0)
            bh_test_receive(BH_MSG_ENDED, job.lease);
    }
    BH_CHECK("says so in the log", strstr(bh_test_log(25), "is read-only for this job\nRead-only"));
    BH_CHECK_DONE();
}

static void
test_image(void **state)
{
    char image[TEST_PATH], path[TEST_PATH * 2], name[TEST_PATH * 2];
    struct test_job job = { .lease = 6,
                            .partition = 9,
                            .image = name,
                            .script = "cat /hello; ls /usr/local/bulkhead/libexec; touch /x || echo no" };
    struct test_job bad = { .lease = 7, .image = name, .script = "true" };
    struct bh_msg_outcome outcome;

    assert_int_equal(bh_test_carve(9, 1, "whole", 0).outcome, 0);
    bh_path_format(image, sizeof image, "%s/images/box", the_node.folder);
    assert_int_equal(mkdir(image, 0755), 0);
    bh_path_format(path, sizeof path,
                   "mkdir %s/bin; for f in sh cat ls touch; do cp /bin/$f %s/bin/; "
                   "ldd /bin/$f | grep -o '/[^ ]*' | while read l; do "
                   "mkdir -p %s/$(dirname $l); cp -L $l %s/$l; done; done; echo hello > %s/hello",
                   image, image, image, image, image);
    bh_test_run((const char *const[]){ "/bin/bash", "-c", path, NULL });
    bh_path_format(name, sizeof name, "dir:%s", image);
    bh_test_run_job(&job);
    BH_CHECK("log", strncmp(bh_test_log(6), "hello\ninit\n", 11) == 0 && strstr(bh_test_log(6), "no\n"));
    bh_path_format(name, sizeof name, "dir:%s/state", the_node.folder);
    outcome = bh_test_start_job(&bad);
    BH_CHECK_EQ("outside of image_roots", outcome.rc, BH_DENIED);
    bh_path_format(path, sizeof path, "%s/images/box/dev", the_node.folder);
    assert_int_equal(symlink("/tmp", path), 0);
    bh_path_format(name, sizeof name, "dir:%s", image);
    bad.lease = 8;
    outcome = bh_test_start_job(&bad);
    BH_CHECK_EQ("/dev is a link", outcome.rc, BH_DENIED);
    BH_CHECK_DONE();
}

/* ---- limits ---- */

static void
test_out_of_memory(void **state)
{
    struct test_job job = { .lease = 30,
                            .memory_bytes = 64 << 20,
                            .script = "python3 -c 'x = bytearray(200 << 20)'" };
    struct bh_msg_ended ended = bh_test_run_job(&job);

    BH_CHECK_EQ("cause", ended.cause, BH_END_OUT_OF_MEMORY);
    BH_CHECK("peak is near the limit", ended.memory_peak_bytes > 60 << 20);
    BH_CHECK_DONE();
}

/* On a machine with less memory than a job gets that asks for none: nine tenths of it are no whole
 * number of pages, as which the kernel keeps a limit. */
static void
test_small_machine(void **state)
{
    struct test_job job = { .lease = 33, .script = "exit 5" };

    bh_test_restart("memory_default_mib = 67108864\n");
    BH_CHECK_EQ("its walls stand", bh_test_run_job(&job).exit_status, 5);
    BH_CHECK_DONE();
}

static void
test_process_limit(void **state)
{
    struct test_job job = { .lease = 31,
                            .pids = 8,
                            .script = "exec python3 -c '\nimport os,time\nn=0\ntry:\n"
                                      "  while n<50:\n    if os.fork()==0: time.sleep(9)\n    n+=1\n"
                                      "except OSError as e: print(n,e.strerror)'" };

    bh_test_run_job(&job);
    BH_CHECK_STR("beside init and itself", bh_test_log(31), "6 Resource temporarily unavailable\n");
    BH_CHECK_DONE();
}

static void
test_not_found(void **state)
{
    const char *args[] = { "/no/such/program" };
    struct test_job job = { .lease = 32, .script = "" };
    const char *unused[3];
    struct bh_msg_start start = bh_test_start_message(&job, unused, NULL);
    struct bh_msg_ended ended;

    start.args = (struct bh_texts){ args, 1 };
    assert_int_equal(bh_test_order(BH_MSG_START, &start).outcome, 0);
    ended = bh_test_receive(BH_MSG_ENDED, 32).ended;
    BH_CHECK_EQ("status", ended.exit_status, 127);
    BH_CHECK("log", strstr(bh_test_log(32), "cannot run /no/such/program"));
    BH_CHECK_DONE();
}

/* ---- suspending and stopping ---- */

static void
test_suspend_and_resume(void **state)
{
    struct test_job job = { .lease = 40,
                            .partition = 5,
                            .script = "echo up; i=0; while [ $i -lt 40 ]; do i=$((i+1)); sleep 0.02; "
                                      "done; echo done" };
    struct bh_msg_lease lease = { .lease = 40 };
    struct test_message message;

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(40, "up"));
    BH_CHECK_EQ("suspend", bh_test_order(BH_MSG_SUSPEND, &lease).outcome, 0);
    BH_CHECK("does not run", !bh_test_receive_within(BH_MSG_ENDED, 40, 1500, &message));
    BH_CHECK_EQ("resume", bh_test_order(BH_MSG_RESUME, &lease).outcome, 0);
    BH_CHECK_EQ("ends well", bh_test_receive(BH_MSG_ENDED, 40).ended.exit_status, 0);
    BH_CHECK_STR("output is whole", bh_test_log(40), "up\ndone\n");
    BH_CHECK_DONE();
}

/* The simulated driver sees a context where the job maps its instance's memory. */
static void
test_suspend_with_context(void **state)
{
    struct test_job job = { .lease = 41,
                            .partition = 5,
                            .script = "exec python3 -c '\nimport mmap,os,time\n"
                                      "f=os.open(\"/run/bulkhead-sim/view/memory\",os.O_RDONLY)\n"
                                      "m=mmap.mmap(f,64<<20,mmap.MAP_SHARED,mmap.PROT_READ)\n"
                                      "print(\"mapped\",flush=True)\ntime.sleep(60)'" };
    struct bh_msg_lease lease = { .lease = 41 };
    struct bh_msg_stop stop = { .lease = 41 };

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(41, "mapped"));
    BH_CHECK_EQ("context held", bh_test_order(BH_MSG_SUSPEND, &lease).outcome, 2);
    BH_CHECK_EQ("stop", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    BH_CHECK_EQ("killed", bh_test_receive(BH_MSG_ENDED, 41).ended.exit_status, 137);
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
        { "dies of SIGTERM", "echo up; sleep 60", false, LONG_MS, 143, "up\n" },
        { "cleans up", "trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait", false, LONG_MS, 3,
          "up\nbye\n" },
        { "ignores SIGTERM", "trap '' TERM; echo up; while :; do sleep 1; done", false, 200, 137, "up\n" },
        { "at once", "echo up; sleep 60", false, 0, 137, "up\n" },
        { "frozen", "trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait", true, LONG_MS, 3, "up\nbye\n" },
    };

    for (uint32_t i = 0; i < BH_COUNT(cases); i++) {
        struct test_job job = { .lease = 50 + i, .script = cases[i].script };
        struct bh_msg_lease lease = { .lease = 50 + i };
        struct bh_msg_stop stop = { .lease = 50 + i, .grace_ns = cases[i].grace_ms * BH_NS_PER_MS };
        bh_ns begun;

        assert_int_equal(bh_test_start_job(&job).outcome, 0);
        assert_true(bh_test_wait_for_log(job.lease, "up"));
        if (cases[i].frozen)
            BH_CHECK_EQ(cases[i].name, bh_test_order(BH_MSG_SUSPEND, &lease).outcome, 0);
        begun = bh_time_monotonic();
        BH_CHECK_EQ(cases[i].name, bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
        BH_CHECK_EQ(cases[i].name, bh_test_receive(BH_MSG_ENDED, job.lease).ended.exit_status,
                    cases[i].status);
        BH_CHECK(cases[i].name, bh_time_monotonic() - begun < LONG_MS * BH_NS_PER_MS);
        BH_CHECK_STR(cases[i].name, bh_test_log(job.lease), cases[i].log);
    }
    BH_CHECK_DONE();
}

/* A stop right behind the start is not lost on a job that is just being made. */
static void
test_stop_at_once(void **state)
{
    struct test_job job = { .lease = 58, .script = "sleep 60" };
    struct bh_msg_stop stop = { .lease = 58, .grace_ns = 30 * BH_NS_PER_S };

    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    BH_CHECK_EQ("stop", bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    BH_CHECK_EQ("by SIGTERM", bh_test_receive(BH_MSG_ENDED, 58).ended.exit_status, 143);
    BH_CHECK_DONE();
}

/* ---- orders ---- */

static void
test_repeated_order(void **state)
{
    struct test_job job = { .lease = 60, .script = "echo once" };
    const char *args[3];
    struct bh_msg_start start = bh_test_start_message(&job, args, NULL);
    struct bh_msg_outcome first = bh_test_order(BH_MSG_START, &start), again;
    struct bh_msg_ack ack = { .order = start.order, .lease = 60 };

    bh_test_receive(BH_MSG_ENDED, 60);
    bh_test_send(BH_MSG_START, &start);
    again = bh_test_receive(BH_MSG_OUTCOME, start.order).outcome;
    BH_CHECK_EQ("same answer", again.at_ns, first.at_ns);
    BH_CHECK_STR("ran once", bh_test_log(60), "once\n");
    bh_test_send(BH_MSG_ACK, &ack);
    BH_CHECK_DONE();
}

static void
test_denied_gpu(void **state)
{
    struct bh_msg_outcome outcome;

    bh_test_node_end(&the_node, SIGTERM);
    bh_test_write_conf(&the_node, "");
    {
        char path[TEST_PATH * 2];
        static char text[8192];

        snprintf(text, sizeof text, "%s", bh_test_read("node.conf"));
        memcpy(strstr(text, "gpus = all"), "gpus = no ", 10);
        bh_path_format(path, sizeof path, "%s/node.conf", the_node.folder);
        bh_test_write(path, text);
    }
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    outcome = bh_test_carve(5, 0, "1g.10gb", 0);
    BH_CHECK_EQ("outcome", outcome.outcome, 1);
    BH_CHECK_EQ("code", outcome.rc, BH_DENIED);
    BH_CHECK_DONE();
}

static uint32_t
partitions_now(void)
{
    bh_test_disconnect(&the_node);
    return bh_test_hello(&the_node).partitions.count;
}

static void
test_partitions(void **state)
{
    struct bh_msg_destroy destroy = { .partition = 5 };
    struct test_job job = { .lease = 70, .partition = 6, .script = "sleep 60" };
    struct bh_msg_stop stop = { .lease = 70 };

    BH_CHECK_EQ("carve", bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    BH_CHECK_EQ("taken place", bh_test_carve(7, 0, "1g.10gb", 0).rc, BH_FULL);
    BH_CHECK_EQ("second", bh_test_carve(6, 0, "3g.40gb", 4).outcome, 0);
    BH_CHECK_EQ("no such GPU profile", bh_test_carve(8, 0, "9g.90gb", 1).outcome, 1);
    BH_CHECK_EQ("whole GPU", bh_test_carve(9, 1, "whole", 0).outcome, 0);
    BH_CHECK_EQ("no MIG on a whole one", bh_test_carve(10, 1, "1g.10gb", 0).rc, BH_CONFLICT);
    BH_CHECK_EQ("three pieces", partitions_now(), 3);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    destroy.partition = 6;
    BH_CHECK_EQ("held", bh_test_order(BH_MSG_DESTROY, &destroy).rc, BH_CONFLICT);
    destroy.partition = 5;
    BH_CHECK_EQ("destroy", bh_test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    BH_CHECK_EQ("again", bh_test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    bh_test_order(BH_MSG_STOP, &stop);
    bh_test_receive(BH_MSG_ENDED, 70);
    BH_CHECK_EQ("two pieces", partitions_now(), 2);
    BH_CHECK_DONE();
}

/* ---- crashes ---- */

static void
test_node_killed(void **state)
{
    struct test_job longer = { .lease = 80, .partition = 5, .script = "echo up; sleep 1; echo done" };
    struct test_job shorter = { .lease = 81, .script = "echo up; sleep 0.3; exit 5" };
    struct bh_msg_inventory inventory;
    struct bh_msg_ack ack = { .lease = 81 };
    struct test_message message;

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_start_job(&longer).outcome, 0);
    assert_int_equal(bh_test_start_job(&shorter).outcome, 0);
    assert_true(bh_test_wait_for_log(80, "up") && bh_test_wait_for_log(81, "up"));
    bh_test_node_end(&the_node, SIGKILL);
    bh_time_sleep(bh_test_scaled(600) * BH_NS_PER_MS); /* the short one ends while no node is there */
    bh_test_node_start(&the_node);
    inventory = bh_test_hello(&the_node);
    BH_CHECK_EQ("the piece is known", inventory.partitions.count, 1);
    BH_CHECK_EQ("no lease is lost, ended or not", inventory.leases.count, 2);
    BH_CHECK_EQ("ended meanwhile", bh_test_receive(BH_MSG_ENDED, 81).ended.exit_status, 5);
    BH_CHECK_EQ("ends later", bh_test_receive(BH_MSG_ENDED, 80).ended.exit_status, 0);
    BH_CHECK_STR("output is whole", bh_test_log(80), "up\ndone\n");
    bh_test_acknowledge(&ack);
    partitions_now();
    BH_CHECK_EQ("told again until acknowledged", bh_test_receive(BH_MSG_ENDED, 80).ended.exit_status, 0);
    BH_CHECK("acknowledged: not told again", !bh_test_receive_within(BH_MSG_ENDED, 81, 200, &message));
    BH_CHECK_DONE();
}

/* Kill the node a little later each time while orders are under way, repeat all orders, and expect that each
 * job ran once and that its end is reported. */
static void
test_killed_anywhere(void **state)
{
    enum { ROUNDS = 24, JOBS = 3 };

    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct bh_msg_carve cut = {
            .order = ++the_node.order, .partition = 500 + round, .profile = "1g.10gb", .start = round % 7
        };
        struct bh_msg_destroy destroy = { .partition = 500 + round };
        struct bh_msg_start starts[JOBS];
        const char *args[JOBS][3];
        struct bh_msg_ended ended;

        snprintf(cut.gpu, sizeof cut.gpu, "%s", the_node.gpus[0]);
        for (uint32_t i = 0; i < JOBS; i++) {
            struct test_job job = { .lease = 1000 + round * JOBS + i, .script = "echo ran" };

            starts[i] = bh_test_start_message(&job, args[i], NULL);
            starts[i].order = ++the_node.order;
        }
        for (int again = 0; again < 2; again++) {
            bh_test_send(BH_MSG_CARVE, &cut);
            for (uint32_t i = 0; i < JOBS; i++)
                bh_test_send(BH_MSG_START, &starts[i]);
            if (again)
                break;
            bh_time_sleep(round * 500 * UINT64_C(1000));
            bh_test_node_end(&the_node, SIGKILL);
            bh_test_node_start(&the_node);
            bh_test_hello(&the_node);
        }
        BH_CHECK_EQ("carved", bh_test_receive(BH_MSG_OUTCOME, cut.order).outcome.outcome, 0);
        for (uint32_t i = 0; i < JOBS; i++) {
            struct bh_msg_ack ack = { starts[i].order, starts[i].lease };

            BH_CHECK_EQ("started", bh_test_receive(BH_MSG_OUTCOME, ack.order).outcome.outcome, 0);
            ended = bh_test_receive(BH_MSG_ENDED, ack.lease).ended;
            BH_CHECK_EQ("ended well", ended.exit_status, 0);
            BH_CHECK_STR("ran once", bh_test_log(ack.lease), "ran\n");
            bh_test_send(BH_MSG_ACK, &ack);
        }
        BH_CHECK_EQ("destroyed", bh_test_order(BH_MSG_DESTROY, &destroy).outcome, 0);
    }
    BH_CHECK_EQ("nothing is left", partitions_now(), 0);
    BH_CHECK_DONE();
}

/* A lost journal leaves jobs that no record names. */
static void
test_orphans(void **state)
{
    struct test_job job = { .lease = 95, .script = "echo up; sleep 60" };
    char path[TEST_PATH * 2];
    pid_t keeper;

    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(95, "up"));
    keeper = (pid_t)strtol(bh_test_read("state/jobs/95/keeper"), NULL, 10);
    bh_test_node_end(&the_node, SIGKILL);
    bh_path_format(path, sizeof path, "%s/state/journal", the_node.folder);
    assert_int_equal(unlink(path), 0);
    bh_test_node_start(&the_node);
    BH_CHECK_EQ("not reported", bh_test_hello(&the_node).leases.count, 0);
    BH_CHECK("its keeper is gone", bh_test_await(kill(keeper, 0) != 0));
    BH_CHECK_STR("its folder is gone", bh_test_read("state/jobs/95/keeper"), "");
    BH_CHECK_DONE();
}

static void
test_journal_damaged(void **state)
{
    char path[TEST_PATH * 2];
    int fd;

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    bh_test_node_end(&the_node, SIGKILL);
    bh_path_format(path, sizeof path, "%s/state/journal", the_node.folder);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "X", 1, 20), 1);
    close(fd);
    bh_test_node_start(&the_node);
    BH_CHECK("refuses and says where",
             bh_test_await(strstr(bh_test_read("node.log"), "journal is damaged at byte")));
    bh_test_node_end(&the_node, SIGKILL);
    assert_int_equal(unlink(path), 0);
    bh_test_node_start(&the_node);
    {
        struct bh_msg_inventory inventory = bh_test_hello(&the_node);

        BH_CHECK("its instance is foreign now", bh_test_gpu(&inventory, 0)->foreign);
        BH_CHECK_EQ("and left alone", inventory.partitions.count, 1);
    }
    BH_CHECK_EQ("not destroyed for a carve", bh_test_carve(6, 0, "1g.10gb", 0).rc, BH_FULL);
    BH_CHECK_DONE();
}

/* A driver call that does not return costs a child and not the node. */
static void
test_driver_hangs(void **state)
{
    struct test_job job = { .lease = 96, .script = "echo fine" };
    char path[TEST_PATH * 2], conf[64];

    bh_test_node_end(&the_node, SIGTERM);
    bh_path_format(conf, sizeof conf, "call_timeout_ms = %d\n", bh_test_scaled(3000));
    bh_test_write_conf(&the_node, conf);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    bh_path_format(path, sizeof path, "%s/sim/control", the_node.folder);
    bh_test_write(path, "nvmlDeviceCreateGpuInstanceWithPlacement hang count=1\n");
    BH_CHECK_EQ("given up", bh_test_carve(5, 0, "1g.10gb", 0).outcome, 1);
    BH_CHECK_EQ("the GPU is reported", bh_test_receive(BH_MSG_HEALTH, 0).health.fault, BH_FAULT_HUNG);
    BH_CHECK_EQ("jobs run", bh_test_run_job(&job).exit_status, 0);
    bh_test_write(path, "");
    BH_CHECK_EQ("and it works again", bh_test_carve(6, 0, "1g.10gb", 0).outcome, 0);
    BH_CHECK_DONE();
}

static void
test_keeper_killed(void **state)
{
    struct test_job job = { .lease = 90, .script = "echo up; sleep 60" };
    struct bh_msg_ended ended;
    pid_t keeper;

    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(90, "up"));
    keeper = (pid_t)strtol(bh_test_read("state/jobs/90/keeper"), NULL, 10);
    assert_true(keeper > 1);
    kill(keeper, SIGKILL);
    ended = bh_test_receive(BH_MSG_ENDED, 90).ended;
    BH_CHECK_EQ("cause", ended.cause, BH_END_KEEPER_LOST);
    BH_CHECK("when it began is known", ended.started_ns > 0);
    BH_CHECK_DONE();
}

/* The machine goes down: however the job takes it, the end is not its own. */
static void
test_machine_stops(void **state)
{
    static const struct {
        const char *name, *script;
        uint32_t status;
    } cases[] = { { "saves and goes", "echo up; " UNTIL_GO "exit 0", 0 },
                  { "dies of it", "echo up; " UNTIL_GO "kill -TERM $$", 143 } };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct test_job job = { .lease = 92 + i, .partition = 5 + i, .script = cases[i].script };
        struct bh_msg_ended ended;
        char name[40];

        assert_int_equal(bh_test_carve(job.partition, (uint32_t)i, "1g.10gb", 0).outcome, 0);
        assert_int_equal(bh_test_start_job(&job).outcome, 0);
        assert_true(bh_test_wait_for_log(job.lease, "up"));
        bh_path_format(name, sizeof name, "state/jobs/%d/keeper", (int)job.lease);
        assert_int_equal(kill((pid_t)strtol(bh_test_read(name), NULL, 10), SIGPWR), 0);
        bh_test_release((uint32_t)i);
        ended = bh_test_receive(BH_MSG_ENDED, job.lease).ended;
        BH_CHECK_EQ(cases[i].name, ended.cause, BH_END_NODE_LOST);
        BH_CHECK_EQ(cases[i].name, ended.exit_status, cases[i].status);
    }
    BH_CHECK_DONE();
}

static void
test_keep_collects(void **state)
{
    struct test_job job = { .lease = 91, .partition = 5, .script = "echo up; sleep 60" };
    struct bh_msg_retain_item kept = { 6 };
    struct bh_msg_retain retain = { .partitions = { &kept, 1 } };

    assert_int_equal(bh_test_carve(5, 0, "1g.10gb", 0).outcome, 0);
    assert_int_equal(bh_test_carve(6, 0, "1g.10gb", 1).outcome, 0);
    assert_int_equal(bh_test_start_job(&job).outcome, 0);
    assert_true(bh_test_wait_for_log(91, "up"));
    bh_test_send(BH_MSG_RETAIN, &retain);
    bh_test_receive(BH_MSG_ENDED, 91);
    BH_CHECK("one piece is left", bh_test_await(partitions_now() == 1));
    BH_CHECK_DONE();
}

/* ---- bad input ---- */

static void
test_out_of_place(void **state)
{
    struct bh_msg_hello hello = { .version = BH_WIRE_VERSION };
    struct test_message message;

    bh_test_send(BH_MSG_HELLO, &hello);
    BH_CHECK("closed", !bh_test_receive_within(BH_MSG_INVENTORY, 0, 1000, &message));
    partitions_now(); /* and serves the next one */
    BH_CHECK_DONE();
}

/* Bytes that are no frame, a number that is no message, one that only a node says, half a
 * frame: the connection ends, the node does not. */
static void
test_garbage(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
    } cases[] = {
        { "no frame", "\xff\xff\xff\xff\xff\xff\xff\xff", 8 },
        { "unknown message", "\x04\0\0\0\xe7\x03\x01\0", 8 },
        { "a node's message", "\x04\0\0\0\x21\0\x01\0", 8 },
        { "an empty order", "\x04\0\0\0\x03\0\x01\0", 8 },
        { "half a frame", "\x40\0\0\0\x03\0", 6 },
    };
    struct test_message message;

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        int fd = bh_link_fd(the_node.link);

        BH_CHECK_EQ(cases[i].name, send(fd, cases[i].bytes, cases[i].length, 0), cases[i].length);
        shutdown(fd, SHUT_WR);
        BH_CHECK(cases[i].name, !bh_test_receive_within(BH_MSG_INVENTORY, 0, 2000, &message));
        BH_CHECK_EQ(cases[i].name, partitions_now(), 0);
    }
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_first_job), BH_NODE_TEST(test_devices),
        BH_NODE_TEST(test_confinement), BH_NODE_TEST(test_environment),
        BH_NODE_TEST(test_working_directory), BH_NODE_TEST(test_folder_of_a_group),
        BH_NODE_TEST(test_refused_folders), BH_NODE_TEST(test_image),
        BH_NODE_TEST(test_out_of_memory), BH_NODE_TEST(test_small_machine),
        BH_NODE_TEST(test_process_limit), BH_NODE_TEST(test_not_found),
        BH_NODE_TEST(test_suspend_and_resume), BH_NODE_TEST(test_suspend_with_context),
        BH_NODE_TEST(test_stop), BH_NODE_TEST(test_stop_at_once),
        BH_NODE_TEST(test_repeated_order), BH_NODE_TEST(test_denied_gpu),
        BH_NODE_TEST(test_partitions), BH_NODE_TEST(test_node_killed),
        BH_NODE_TEST(test_killed_anywhere), BH_NODE_TEST(test_orphans),
        BH_NODE_TEST(test_journal_damaged), BH_NODE_TEST(test_driver_hangs),
        BH_NODE_TEST(test_keeper_killed), BH_NODE_TEST(test_machine_stops),
        BH_NODE_TEST(test_keep_collects), BH_NODE_TEST(test_out_of_place),
        BH_NODE_TEST(test_garbage),
    };
    /* clang-format on */

    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
