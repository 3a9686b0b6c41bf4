/* Tests only. */
#include "node/session/node_fixture_test.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"
#include "bulkhead/share_page.h"
#include "bulkhead/share_socket.h"
#include "node/common/path.h"
#include "runtime/obstacle_test.h"

#ifdef __SANITIZE_ADDRESS__
void __asan_init(void);
#endif

struct test_node the_node;

/* ---- small things ---- */

void
bh_test_run(const char *const *argv)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO); /* standard output is the test's TAP */
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

void
bh_test_write(const char *path, const char *text)
{
    struct bh_err err;

    assert_int_equal(bh_file_replace(path, text, strlen(text), 0644, &err), BH_OK);
}

/* The text of a file below the test's folder, or "". */
const char *
bh_test_read(const char *name)
{
    static char memory[1 << 20];
    char path[TEST_PATH * 2];
    struct bh_buf text;
    struct bh_err err;

    bh_path_format(path, sizeof path, "%s/%s", the_node.folder, name);
    bh_buf_init_fixed(&text, memory, sizeof memory - 1);
    if (bh_file_read(path, sizeof memory - 2, &text, &err) != BH_OK)
        return "";
    return bh_buf_text(&text);
}

const char *
bh_test_log(uint64_t lease)
{
    char name[64];

    bh_path_format(name, sizeof name, "logs/%" PRIu64 ".log", lease + 1000);
    return bh_test_read(name);
}

/* ---- the program ---- */

/* The node's own deadlines, where the machine is slow and the test sets none. */
static void
append_timeouts(char *text, size_t size)
{
    static const struct {
        const char *key;
        int ms;
    } rows[] = { { "call_timeout_ms", 10000 },
                 { "scrub_timeout_ms", 20000 },
                 { "verify_timeout_ms", 20000 } };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        size_t length = strlen(text);

        if (bh_test_scaled(1) > 1 && !strstr(text, rows[i].key))
            snprintf(text + length, size - length, "%s = %d\n", rows[i].key, bh_test_scaled(rows[i].ms));
    }
}

void
bh_test_write_conf(const struct test_node *node, const char *more)
{
    char text[8192], path[TEST_PATH * 2];
    const char *f = node->folder;

    snprintf(text, sizeof text,
             "state_dir = %s/state\nrun_dir = %s/run\nsocket = %s\nlog_dir = %s/logs\n"
             "nvml_library = %s\ndriver_env = BULKHEAD_SIM_STATE=%s/sim\nproc_root = %s/sim/proc\n"
             "job_driver_mount = %s/sim/view/{minor}-{gi}:/run/bulkhead-sim/view\n"
             "cdi_dir = %s/cdi\ndestroy_wait_ms = 0\n"
             "gpus = all\ncgroup_parent = %s\nnode_name = test\nuid_base = 3000000000\n"
             "image_roots = %s/images\nmount_roots = %s/work\ntmp_mib = 64\n"
             "verify_at_start = 0\n%s%s",
             f, f, node->socket, f, node->library, f, f, f, f, node->cgroup, f, f,
             strstr(more, "verify_sample") ? "" : "verify_sample = 0\n", more);
    append_timeouts(text, sizeof text);
    bh_path_format(path, sizeof path, "%s/node.conf", f);
    bh_test_write(path, text);
}

void
bh_test_node_start(struct test_node *node)
{
    char config[TEST_PATH * 2], log[TEST_PATH * 2];

    bh_path_format(config, sizeof config, "%s/node.conf", node->folder);
    bh_path_format(log, sizeof log, "%s/node.log", node->folder);
    unlink(node->socket);
    node->pid = fork();
    if (node->pid == 0) {
        dup2(open(log, O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
        execl(node->program, "bulkhead-node", "--config", config, NULL);
        _exit(127);
    }
}

void
bh_test_node_end(struct test_node *node, int number)
{
    if (node->pid <= 0)
        return;
    kill(node->pid, number);
    waitpid(node->pid, NULL, 0);
    node->pid = 0;
    bh_test_disconnect(node);
}

void
bh_test_disconnect(struct test_node *node)
{
    if (node->link)
        bh_link_free(node->link);
    node->link = NULL;
    node->inbox_count = 0;
}

void
bh_test_put_program(const char *name, const char *script)
{
    static const char *const programs[] = { "bulkhead-keeper", "bulkhead-gpu",    "bulkhead-init",
                                            "bulkhead-probe",  "bulkhead-stream", "bulkhead-unpack" };
    char folder[TEST_PATH * 2], from[TEST_PATH * 3], to[TEST_PATH * 3], text[1024];

    bh_path_format(folder, sizeof folder, "%s/libexec", the_node.folder);
    mkdir(folder, 0755);
    for (size_t i = 0; i < BH_COUNT(programs); i++) {
        char program[TEST_PATH];

        snprintf(program, sizeof program, "%s", the_node.program);
        bh_path_format(from, sizeof from, "%s/%s", dirname(program), programs[i]);
        bh_path_format(to, sizeof to, "%s/%s", folder, programs[i]);
        (void)!symlink(from, to);
    }
    bh_path_format(to, sizeof to, "%s/%s", folder, name);
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    bh_test_write(to, text);
    chmod(to, 0755);
}

void
bh_test_put_helper(const char *script)
{
    bh_test_put_program("bulkhead-scrub", script);
}

/* ---- talking ---- */

void
bh_test_send(uint32_t number, const void *message)
{
    struct bh_err err;

    assert_int_equal(bh_link_send(the_node.link, number, bh_message_fields(number), message, &err), BH_OK);
}

static void
test_read_frames(struct test_node *node)
{
    struct bh_frame frame;
    struct bh_err err;

    while (node->inbox_count < TEST_INBOX_MAX && bh_link_next(node->link, &frame, &err) == BH_OK) {
        struct test_message *message = &node->inbox[node->inbox_count++];

        message->number = frame.number;
        assert_int_equal(
            bh_frame_decode(&frame, bh_message_fields(frame.number), &message->outcome, node->arena, &err),
            BH_OK);
        if (frame.number == BH_MSG_HEALTH && message->health.fault == BH_FAULT_NONE) {
            node->inbox_count--; /* that all is well is said after each greeting */
            node->well++;
        }
        if (frame.number == BH_MSG_MARKS) {
            node->inbox_count--; /* and this before many outcomes */
            node->marks = message->marks.changes;
        }
    }
}

/* Wait for what comes; false when the connection closed or nothing came in time. */
static bool
test_wait(struct test_node *node, int timeout_ms)
{
    struct pollfd polled = { .fd = bh_link_fd(node->link), .events = bh_link_interest(node->link) };
    struct bh_err err;

    if (poll(&polled, 1, timeout_ms) <= 0)
        return false;
    if (polled.revents & POLLOUT)
        (void)!bh_link_flush(node->link, &err);
    if (polled.revents & (POLLIN | POLLHUP) && bh_link_readable(node->link, &err) != BH_OK)
        return false;
    test_read_frames(node);
    return true;
}

static bool
test_is_about(const struct test_message *message, uint32_t number, uint64_t id)
{
    if (message->number != number)
        return false;
    if (number == BH_MSG_OUTCOME)
        return message->outcome.order == id;
    if (number == BH_MSG_RECEIPT)
        return id == 0 || message->receipt.order == id;
    if (number == BH_MSG_NOTICE)
        return message->notice.lease == id;
    return number != BH_MSG_ENDED || message->ended.lease == id;
}

/* Take the message of that kind (and order or lease); false when it does not come. */
bool
bh_test_receive_within(uint32_t number, uint64_t id, int timeout_ms, struct test_message *ret)
{
    struct test_node *node = &the_node;
    bh_ns deadline = bh_time_monotonic() + (bh_ns)timeout_ms * BH_NS_PER_MS;

    for (;;) {
        bh_ns now = bh_time_monotonic();

        for (uint32_t i = 0; i < node->inbox_count; i++) {
            if (!test_is_about(&node->inbox[i], number, id))
                continue;
            *ret = node->inbox[i];
            memmove(&node->inbox[i], &node->inbox[i + 1], (--node->inbox_count - i) * sizeof node->inbox[0]);
            return true;
        }
        if (now >= deadline || !test_wait(node, (int)((deadline - now) / BH_NS_PER_MS) + 1))
            return false;
    }
}

struct test_message
bh_test_receive(uint32_t number, uint64_t id)
{
    struct test_message message = { 0 };

    if (!bh_test_receive_within(number, id, bh_test_scaled(TEST_TIMEOUT_MS), &message)) {
        fprintf(stderr, "no %s %" PRIu64 "; the node says:\n%s", bh_message_name(number), id,
                bh_test_read("node.log"));
        fail();
    }
    return message;
}

struct bh_msg_inventory
bh_test_hello(struct test_node *node)
{
    struct bh_msg_hello hello = { .version = BH_WIRE_VERSION, .boot = 1, .site = "test" };
    struct bh_err err;
    int fd = -1;

    for (int tries = 0; bh_unix_connect(node->socket, &fd, &err) != BH_OK; tries++) {
        if (tries == bh_test_scaled(TEST_TIMEOUT_MS / 10)) {
            fprintf(stderr, "%s\n%s", err.msg, bh_test_read("node.log"));
            fail();
        }
        bh_time_sleep(10 * BH_NS_PER_MS);
    }
    node->link = bh_link_new(fd);
    bh_test_send(BH_MSG_HELLO, &hello);
    return bh_test_receive(BH_MSG_INVENTORY, 0).inventory;
}

const struct bh_msg_gpu *
bh_test_gpu(const struct bh_msg_inventory *inventory, uint32_t index)
{
    if (index >= inventory->gpus.count) {
        fprintf(stderr, "%u GPUs; the node says:\n%s", inventory->gpus.count, bh_test_read("node.log"));
        fail();
    }
    return (const struct bh_msg_gpu *)inventory->gpus.items + index;
}

void
bh_test_restart(const char *more)
{
    bh_test_node_end(&the_node, SIGTERM);
    bh_test_write_conf(&the_node, more);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
}

void
bh_test_restart_with_cuda(const char *more)
{
    char text[TEST_PATH * 4], library[TEST_PATH];

    snprintf(library, sizeof library, "%s", the_node.library);
    snprintf(text, sizeof text,
             "driver_lib_dir = %s\njob_driver_mount = %s/sim/vram/{minor}-{gi}:"
             "/run/bulkhead-sim/vram:rw\n%s",
             dirname(library), the_node.folder, more);
    bh_test_restart(text);
}

void
bh_test_simctl(const char *command, const char *rule, const char *word)
{
    char path[TEST_PATH * 2];

    bh_path_format(path, sizeof path, "%s/sim", the_node.folder);
    bh_test_run((const char *const[]){ the_node.simctl, "--state", path, command, rule, word, NULL });
}

void
bh_test_release(uint32_t gpu)
{
    char path[TEST_PATH * 2];
    glob_t views;

    bh_path_format(path, sizeof path, "%s/sim/view/%u-*", the_node.folder, gpu);
    assert_int_equal(glob(path, 0, NULL, &views), 0);
    for (size_t i = 0; i < views.gl_pathc; i++) {
        bh_path_format(path, sizeof path, "%s/go", views.gl_pathv[i]);
        bh_test_write(path, "");
    }
    globfree(&views);
}

const char *
bh_test_python_prelude(void)
{
#ifdef __SANITIZE_ADDRESS__
    static char text[TEST_PATH * 2];
    Dl_info info;

    BH_CHECK("the sanitizer's library", dladdr((void *)__asan_init, &info) != 0);
    snprintf(text, sizeof text, "export LD_PRELOAD=%s ASAN_OPTIONS=detect_leaks=0\n", info.dli_fname);
    return text;
#else
    return "";
#endif
}

void
bh_test_acknowledge(const struct bh_msg_ack *ack)
{
    struct bh_msg_destroy nothing = { .partition = UINT32_MAX };

    bh_test_send(BH_MSG_ACK, ack);
    assert_int_equal(bh_test_order(BH_MSG_DESTROY, &nothing).outcome, 0);
}

/* ---- jobs ---- */

struct bh_msg_outcome
bh_test_carve(uint64_t partition, uint32_t gpu, const char *profile, uint32_t start)
{
    struct bh_msg_carve message = { .partition = partition, .start = start };

    snprintf(message.gpu, sizeof message.gpu, "%s", the_node.gpus[gpu]);
    snprintf(message.profile, sizeof message.profile, "%s", profile);
    return bh_test_order(BH_MSG_CARVE, &message);
}

struct bh_msg_outcome
bh_test_carve_for(uint32_t tenant, const struct bh_msg_carve *partition, uint32_t gpu)
{
    struct bh_msg_carve message = *partition;

    message.tenant = tenant;
    snprintf(message.gpu, sizeof message.gpu, "%s", the_node.gpus[gpu]);
    return bh_test_order(BH_MSG_CARVE, &message);
}

struct bh_msg_start
bh_test_start_message(const struct test_job *job, const char **args, struct bh_msg_mount *mounts)
{
    struct bh_msg_start start = {
        .lease = job->lease,
        .job = job->lease + 1000,
        .image = job->image ? job->image : "host",
        .cwd = job->cwd ? job->cwd : "",
        .memory_bytes = job->memory_bytes,
        .pids = job->pids,
        .submitter_uid = job->uid,
        .submitter_gid = job->uid,
        .tenant_id = job->tenant,
        .tenant = "org/dep",
        .user = "ada",
        .sku = "small",
    };

    args[0] = "/bin/sh";
    args[1] = "-c";
    args[2] = job->script;
    start.args = (struct bh_texts){ args, 3 };
    start.env.items = (const char **)(uintptr_t)job->env;
    while (job->env[start.env.count])
        start.env.count++;
    if (job->partition) {
        start.partitions[0].partition = job->partition;
        start.partition_count = 1;
    }
    return start;
}

struct bh_msg_outcome
bh_test_start_job(const struct test_job *job)
{
    const char *args[3];
    struct bh_msg_start start = bh_test_start_message(job, args, NULL);

    return bh_test_order(BH_MSG_START, &start);
}

/* Run to the end; the log is bh_test_log(lease). */
struct bh_msg_ended
bh_test_run_job(const struct test_job *job)
{
    struct bh_msg_outcome outcome = bh_test_start_job(job);

    if (outcome.outcome != 0)
        fprintf(stderr, "start: %s\n", outcome.why);
    assert_int_equal(outcome.outcome, 0);
    return bh_test_receive(BH_MSG_ENDED, job->lease).ended;
}

bool
bh_test_wait_for_log(uint64_t lease, const char *text)
{
    for (int tries = 0; tries < bh_test_scaled(6000); tries++) {
        if (strstr(bh_test_log(lease), text))
            return true;
        bh_time_sleep(10 * BH_NS_PER_MS);
    }
    return false;
}

/* ---- the whole ---- */

static void
test_remove_groups(const struct test_node *node)
{
    char name[TEST_PATH];
    const char *const hierarchies[] = { "",      "/memory",  "/cpu",     "/cpuacct",
                                        "/pids", "/freezer", "/devices", "/blkio" };

    for (size_t i = 0; i < BH_COUNT(hierarchies); i++) {
        bh_path_format(name, sizeof name, "/sys/fs/cgroup%s%s", hierarchies[i], node->cgroup);
        rmdir(name);
    }
}

int
bh_test_set_up(void **state)
{
    struct test_node *node = &the_node;
    char path[TEST_PATH * 2];
    struct bh_msg_inventory inventory;
    const char *const folders[] = { "images", "work" };

    bh_path_format(node->folder, sizeof node->folder, "/tmp/bh-node-XXXXXX");
    assert_non_null(mkdtemp(node->folder));
    chmod(node->folder, 0755);
    bh_path_format(node->socket, sizeof node->socket, "%s/node.sock", node->folder);
    snprintf(node->cgroup, sizeof node->cgroup, "/bulkhead-test-%d", (int)getpid());
    for (size_t i = 0; i < BH_COUNT(folders); i++) {
        bh_path_format(path, sizeof path, "%s/%s", node->folder, folders[i]);
        mkdir(path, 0755);
    }
    bh_path_format(path, sizeof path, "%s/sim", node->folder);
    bh_test_run((const char *const[]){ node->simctl, "--state", path, "init", "2x H100-80GB", NULL });
    bh_test_run((const char *const[]){ node->simctl, "--state", path, "mount", NULL });
    node->arena = bh_arena_new(256 << 20);
    node->order = 0;
    bh_test_write_conf(node, "");
    bh_test_node_start(node);
    inventory = bh_test_hello(node);
    for (uint32_t i = 0; i < 2; i++)
        memcpy(node->gpus[i], bh_test_gpu(&inventory, i)->uuid, BH_UUID_MAX);
    return 0;
}

int
bh_test_tear_down(void **state)
{
    struct test_node *node = &the_node;
    struct bh_msg_retain nothing = { 0 };
    char path[TEST_PATH * 2];

    if (node->link && node->pid > 0) {
        bh_test_send(BH_MSG_RETAIN, &nothing);
        for (int tries = bh_test_scaled(TEST_TIMEOUT_MS / 20); tries > 0; tries--) {
            bh_path_format(path, sizeof path, "/sys/fs/cgroup/memory%s", node->cgroup);
            if (rmdir(path) == 0 || errno == ENOENT)
                break;
            bh_time_sleep(20 * BH_NS_PER_MS);
        }
    }
    bh_test_node_end(node, SIGTERM);
    assert_null(strstr(bh_test_read("node.log"), "runtime error:"));
    assert_null(strstr(bh_test_read("node.log"), "Sanitizer"));
    test_remove_groups(node);
    bh_path_format(path, sizeof path, "%s/sim/vram", node->folder);
    umount2(path, MNT_DETACH);
    bh_arena_free(node->arena);
    if (!getenv("BH_TEST_KEEP"))
        bh_path_remove_tree(node->folder);
    return 0;
}

int
bh_test_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    const char *obstacle = bh_test_sandbox_obstacle();

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (obstacle) {
        printf("1..0 # SKIP %s\n", obstacle);
        return 0;
    }
    assert(argc >= 4);
    the_node.program = realpath(argv[1], NULL); /* meson gives them from its own folder */
    the_node.simctl = realpath(argv[2], NULL);
    the_node.library = realpath(argv[3], NULL);
    if (!the_node.program || !the_node.simctl || !the_node.library) {
        puts("Bail out! programs to test are missing");
        return 1;
    }
    /* What is mounted here goes with this program, however it ends. */
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        puts("Bail out! no private mount namespace");
        return 1;
    }
    if (argc > 4)
        cmocka_set_test_filter(argv[4]);
    return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
}

/* ---- shares ---- */

int
bh_test_share_join(uint64_t lease)
{
    const struct bh_share_hello hello = { BH_SHARE_MAGIC, BH_SHARE_VERSION, -1, 0 };
    const struct bh_share_client_message want = { .word = BH_SHARE_WANT };
    struct sockaddr_un socket_dir = { .sun_family = AF_UNIX };
    struct bh_share_welcome welcome = { 0 };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(socket_dir.sun_path, sizeof socket_dir.sun_path, "%.70s/run/shares/%d/door/share.sock",
             the_node.folder, (int)lease);
    assert_int_equal(connect(fd, (struct sockaddr *)&socket_dir, sizeof socket_dir), 0);
    assert_int_equal(send(fd, &hello, sizeof hello, 0), sizeof hello);
    assert_int_equal(recv(fd, &welcome, sizeof welcome, 0), sizeof welcome);
    assert_int_equal(welcome.answer, BH_SHARE_WELCOME);
    assert_int_equal(send(fd, &want, sizeof want, 0), sizeof want);
    return fd;
}

bool
bh_test_share_slice_is(int connection, uint64_t lease, bool shut)
{
    char path[TEST_PATH * 2];
    BH_AUTO(bh_fd_close) int fd = -1;
    struct bh_share_client_message drained = { .word = BH_SHARE_DRAINED };
    const off_t at = offsetof(struct bh_share_limits, device[0].slice);
    bool is = false;

    snprintf(path, sizeof path, "%s/run/shares/%d/limits", the_node.folder, (int)lease);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int tries = bh_test_scaled(TEST_TIMEOUT_MS); tries > 0 && !is; tries--) {
        bh_time_sleep(BH_NS_PER_MS);
        is = pread(fd, &drained.slice, sizeof drained.slice, at) == sizeof drained.slice
             && ((drained.slice & BH_SHARE_SHUT) != 0) == shut;
    }
    if (is && shut)
        (void)!send(connection, &drained, sizeof drained, MSG_NOSIGNAL);
    return is;
}
