#include "node/gpu/gpu_client.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/test.h"
#include "node/gpu/gpu_child.h"
#include "node/gpu/gpu_message.h"
#include "wire/fill_test.h"
#include "wire/frame_io.h"

/* This program is also the children that the client starts: called with --library it
 * plays the part that is named there in place of a library. */

enum { SOCKET = 3, ARENA = 1 << 20 };

static void
send_answer(struct bh_link *link, const struct bh_gpu_response *answer)
{
    struct bh_err err;

    if (bh_link_send(link, BH_GPU_MSG_RESPONSE, bh_gpu_message_fields(BH_GPU_MSG_RESPONSE), answer, &err)
        != BH_OK)
        exit(1);
}

static uint64_t
await_ask(struct bh_link *link)
{
    struct bh_arena *arena = bh_arena_new(ARENA);
    struct pollfd ready = { .fd = SOCKET, .events = POLLIN };
    struct bh_gpu_request ask;
    struct bh_frame frame;
    struct bh_err err;
    bh_rc rc;

    do {
        if (poll(&ready, 1, -1) < 0 || bh_link_readable(link, &err) != BH_OK)
            exit(0);
        rc = bh_link_next(link, &frame, &err);
    } while (rc == BH_NOT_FOUND);
    if (rc != BH_OK
        || bh_frame_decode(&frame, bh_gpu_message_fields(frame.number), &ask, arena, &err) != BH_OK)
        exit(1);
    bh_arena_free(arena);
    return ask.call;
}

/* A child that no signal ends, until the test's end orders it.  A process that is traced stays a zombie until
 * its tracer has asked for it. */
static void
stick(const char *record)
{
    pid_t self = getpid();
    char path[512], text[32];
    int go[2];

    if (pipe(go) != 0)
        exit(1);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (fork() == 0) {
        struct bh_err err;
        bool seized = ptrace(PTRACE_SEIZE, self, NULL, NULL) == 0;

        snprintf(path, sizeof path, "%s/%d", record, (int)self);
        snprintf(text, sizeof text, "%d", seized ? (int)getpid() : 0);
        if (bh_file_replace(path, text, strlen(text), 0600, &err) != BH_OK)
            _exit(1);
        close(SOCKET);
        if (write(go[1], "x", 1) != 1 || !seized)
            _exit(1);
        for (;;)
            pause();
    }
    if (read(go[0], text, 1) != 1)
        exit(1);
}

/* Beside a program that wants all of the only CPU that this one may use, and comes first: called
 * in an answer, so that the answer never comes. */
static _Noreturn void
starve(void)
{
    cpu_set_t first;

    CPU_ZERO(&first);
    CPU_SET(0, &first);
    if (sched_setaffinity(0, sizeof first, &first) != 0)
        exit(1);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(SOCKET);
        for (volatile unsigned spins = 0;; spins++)
            ;
    }
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
    for (volatile unsigned spins = 0;; spins++)
        ;
}

static int
gpu_test_play(const char *part, const char *record)
{
    struct bh_link *link = bh_link_new(SOCKET);
    uint64_t call;

    if (strcmp(part, "dies at once") == 0)
        return 0;
    if (strcmp(part, "sticks") == 0)
        stick(record);
    call = await_ask(link);
    if (strcmp(part, "starves") == 0)
        starve();
    if (strcmp(part, "answers") == 0) {
        for (;; call = await_ask(link))
            send_answer(link, &(struct bh_gpu_response){ .call = call, .driver = "fake" });
    }
    if (strcmp(part, "refuses") == 0) {
        send_answer(link, &(struct bh_gpu_response){ .call = call,
                                                     .rc = BH_FULL,
                                                     .sys_kind = BH_SYS_NVML,
                                                     .sys = 23,
                                                     .msg = "the place is taken",
                                                     .hint = "take another" });
        call = await_ask(link);
    }
    if (strcmp(part, "answers another") == 0)
        send_answer(link, &(struct bh_gpu_response){ .call = call + 1 });
    if (strcmp(part, "speaks HTTP") == 0 && write(SOCKET, "HTTP/1.1 200 OK\r\n", 17) != 17)
        return 1;
    if (strcmp(part, "asks") == 0) {
        struct bh_err err;

        (void)!bh_link_send(link, BH_GPU_MSG_SCAN, bh_gpu_message_fields(BH_GPU_MSG_SCAN),
                            &(struct bh_gpu_request){ .call = call }, &err);
    }
    if (strcmp(part, "dies asked") == 0)
        return 0;
    for (;;)
        pause();
}

static struct bh_gpu_client *
client_of(const char *part, const char *record, bh_ns deadline)
{
    return bh_gpu_client_new(&(struct bh_gpu_client_options){ .program = "/proc/self/exe",
                                                              .library = part,
                                                              .proc_root = record,
                                                              .read_deadline = deadline,
                                                              .change_deadline = deadline });
}

#define LONG (20 * BH_NS_PER_S)
#define SHORT (200 * BH_NS_PER_MS)

/* ---- messages ---- */

static const struct {
    const char *name;
    uint32_t number;
    size_t size;
} table[] = {
#define BH_GPU_MESSAGE(id, number, type, from, doc) { #id, number, sizeof(type) },
#include "tables/gpu_messages.tbl"
#undef BH_GPU_MESSAGE
};

static void
test_messages(void **state)
{
    for (size_t i = 0; i < BH_COUNT(table); i++) {
        const struct bh_fields *fields = bh_gpu_message_fields(table[i].number);
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA);
        void *message = bh_arena_alloc(arena, table[i].size);
        void *got = bh_arena_alloc(arena, table[i].size);
        struct bh_err err = { 0 };
        struct bh_frame frame;
        char memory[16384];
        struct bh_buf out;
        uint64_t seed = i;
        size_t used;

        assert_non_null(fields);
        BH_CHECK_EQ(table[i].name, fields->size, table[i].size);
        BH_CHECK(table[i].name, bh_fields_ordered(fields));
        wire_fill(fields, message, arena, &seed);
        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_frame_encode(&out, table[i].number, fields, message);
        assert_int_equal(bh_frame_next(out.bytes, out.length, &frame, &used, &err), BH_OK);
        BH_CHECK_EQ(table[i].name, bh_frame_decode(&frame, fields, got, arena, &err), BH_OK);
        BH_CHECK(table[i].name, wire_same(fields, message, got));
    }
    BH_CHECK("unknown", bh_gpu_message_fields(8) == NULL);
    BH_CHECK_DONE();
}

/* ---- children ---- */

static const struct {
    const char *part;
    bh_ns deadline;
    bh_rc rc;
    const char *why; /* how the message begins */
} parts[] = {
    { "answers", LONG, BH_OK, "" },
    { "refuses", LONG, BH_FULL, "the place is taken" },
    { "hangs", SHORT, BH_UNCERTAIN, "the gpu child was killed in scan: no answer in time" },
    { "dies at once", LONG, BH_UNCERTAIN, "the gpu child was killed in scan: " },
    { "dies asked", LONG, BH_UNCERTAIN, "the gpu child was killed in scan: the peer closed the connection" },
    { "answers another", LONG, BH_UNCERTAIN,
      "the gpu child was killed in scan: an answer to a different request" },
    { "asks", LONG, BH_UNCERTAIN, "the gpu child was killed in scan: message 1 is not an answer" },
    { "speaks HTTP", LONG, BH_UNCERTAIN, "the gpu child was killed in scan: frame of " },
};

static void
test_read_deadline(void **state)
{
    static const struct {
        const char *name;
        bh_ns change, read;
    } cases[] = {
        { "a test's", 300 * BH_NS_PER_MS, 5 * BH_NS_PER_S },
        { "the usual one", 10 * BH_NS_PER_S, 5 * BH_NS_PER_S },
        { "a slow driver", 80 * BH_NS_PER_S, 40 * BH_NS_PER_S },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, bh_gpu_read_deadline(cases[i].change), cases[i].read);
    BH_CHECK_DONE();
}

/* Whatever a child does costs the node one call, and the next one has a fresh child. */
static void
test_parts(void **state)
{
    for (size_t i = 0; i < BH_COUNT(parts); i++) {
        BH_AUTO(bh_gpu_client_free)
        struct bh_gpu_client *client = client_of(parts[i].part, NULL, parts[i].deadline);
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA);
        struct bh_device device = bh_gpu_client_device(client);

        for (int turn = 0; turn < 6; turn++) {
            struct bh_inventory inventory = { 0 };
            struct bh_err err = { 0 };
            bh_rc rc = device.ops->scan(device.self, arena, &inventory, &err);

            BH_CHECK_EQ(parts[i].part, rc, parts[i].rc);
            BH_CHECK_STR(parts[i].part, inventory.driver, rc == BH_OK ? "fake" : "");
            if (strncmp(err.msg, parts[i].why, strlen(parts[i].why)) != 0)
                BH_CHECK_STR(parts[i].part, err.msg, parts[i].why);
            if (parts[i].rc == BH_FULL) {
                BH_CHECK_STR("the hint", err.hint, "take another");
                BH_CHECK_EQ("the number", err.sys, 23);
                break; /* it answers once */
            }
        }
    }
    BH_CHECK_DONE();
}

/* Of calls that got no answer in time, which are evidence that the GPU hangs. */
static void
test_findings(void **state)
{
    static const struct {
        const char *part;
        bool died;
    } cases[] = { { "hangs", false }, { "starves", true }, { "dies at once", true } };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_gpu_client_free) struct bh_gpu_client *client = client_of(cases[i].part, NULL, SHORT);
        struct bh_device device = bh_gpu_client_device(client);
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].part, device.ops->destroy(device.self, "GPU-1", 1, &err), BH_UNCERTAIN);
        BH_CHECK_EQ(cases[i].part, bh_gpu_child_died(&err), cases[i].died);
    }
    BH_CHECK_DONE();
}

static void
test_no_program(void **state)
{
    struct bh_gpu_client_options options = { .program = "/nonexistent/gpu", .library = "x" };
    BH_AUTO(bh_gpu_client_free) struct bh_gpu_client *client = bh_gpu_client_new(&options);
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA);
    struct bh_device device = bh_gpu_client_device(client);
    int fds[BH_GPU_WATCHED_MAX];
    struct bh_inventory inventory;
    struct bh_err err = { 0 };

    BH_CHECK_EQ("scan", device.ops->scan(device.self, arena, &inventory, &err), BH_UNAVAILABLE);
    BH_CHECK_STR("scan", err.msg, "cannot start /nonexistent/gpu: No such file or directory");
    bh_gpu_client_watch(client, "GPU-1", 0);
    BH_CHECK_EQ("events", bh_gpu_client_event_fds(client, fds), 0);
    BH_CHECK_DONE();
}

/* Names that cannot be any GPU's or profile's are refused without a child. */
static void
test_long_names(void **state)
{
    BH_AUTO(bh_gpu_client_free) struct bh_gpu_client *client = client_of("hangs", NULL, SHORT);
    struct bh_device device = bh_gpu_client_device(client);
    struct bh_device_instance made;
    struct bh_err err = { 0 };
    char name[200];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    BH_CHECK_EQ("gpu", device.ops->destroy(device.self, name, 1, &err), BH_NOT_FOUND);
    BH_CHECK_EQ("profile", device.ops->carve(device.self, "GPU-1", name, 0, &made, &err), BH_INVALID);
    BH_CHECK_DONE();
}

/* ---- the inside of a child ---- */

struct said {
    int node, child;
};

/* A child's socket in which `number` was already asked, and the node has gone. */
static struct said
socket_with(uint32_t number, const void *bytes, size_t length)
{
    static const struct bh_gpu_request ask = { .call = 7, .gpu = "GPU-1" };
    struct bh_buf out;
    struct said said;
    int pair[2];

    bh_buf_init(&out, BH_FRAME_MAX);
    if (number)
        bh_frame_encode(&out, number, bh_gpu_message_fields(BH_GPU_MSG_SCAN), &ask);
    bh_buf_put(&out, bytes, length);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    said = (struct said){ .node = pair[0], .child = pair[1] };
    assert_int_equal(write(said.node, out.bytes, out.length), out.length);
    assert_int_equal(shutdown(said.node, SHUT_WR), 0);
    bh_buf_fini(&out);
    return said;
}

static const struct {
    const char *name;
    uint32_t number;
    const char *bytes;
    bh_rc rc;
} sayings[] = {
    { "nothing", 0, "", BH_OK },
    { "a request", BH_GPU_MSG_SCAN, "", BH_OK },
    { "a cut request", BH_GPU_MSG_DESTROY, "\x40\1", BH_OK },
    { "an answer", BH_GPU_MSG_RESPONSE, "", BH_INVALID },
    { "unknown", 99, "", BH_INVALID },
    { "garbage", 0, "GET / HTTP/1.1\r", BH_INVALID },
};

/* Without a driver a child answers every request all the same: BH_UNAVAILABLE. */
static void
test_child(void **state)
{
    const struct bh_device_options options = { .library = "/nonexistent/nvml" };

    for (size_t i = 0; i < BH_COUNT(sayings); i++) {
        struct said said = socket_with(sayings[i].number, sayings[i].bytes, strlen(sayings[i].bytes));
        struct bh_link *link = bh_link_new(said.node);
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA);
        struct bh_gpu_response answer = { 0 };
        struct bh_err err = { 0 };
        struct bh_frame frame;

        BH_CHECK_EQ(sayings[i].name, bh_gpu_child_respond(said.child, &options, &err), sayings[i].rc);
        if (sayings[i].rc == BH_OK && sayings[i].number) {
            assert_int_equal(bh_link_readable(link, &err), BH_OK);
            assert_int_equal(bh_link_next(link, &frame, &err), BH_OK);
            assert_int_equal(
                bh_frame_decode(&frame, bh_gpu_message_fields(frame.number), &answer, arena, &err), BH_OK);
            BH_CHECK_EQ(sayings[i].name, answer.call, 7);
            BH_CHECK_EQ(sayings[i].name, answer.rc, BH_UNAVAILABLE);
        }
        bh_link_free(link);
    }
    BH_CHECK_DONE();
}

/* ---- children that no signal ends ---- */

struct stuck {
    char folder[64];
    pid_t tracers[16];
    uint32_t count;
};

/* The tracers that left a note in the folder; the notes go. */
static void
gpu_test_collect(struct stuck *stuck)
{
    const struct dirent *entry;
    DIR *dir = opendir(stuck->folder);

    while (dir && (entry = readdir(dir))) {
        char path[400], text[32];
        struct bh_buf out;
        struct bh_err err;
        uint32_t pid;

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", stuck->folder, entry->d_name);
        bh_buf_init_fixed(&out, text, sizeof text);
        if (bh_file_read(path, sizeof text - 1, &out, &err) == BH_OK && bh_buf_text(&out)
            && bh_parse_u32(text, 1, INT32_MAX, &pid, &err) == BH_OK
            && stuck->count < BH_COUNT(stuck->tracers))
            stuck->tracers[stuck->count++] = (pid_t)pid;
        unlink(path);
    }
    if (dir)
        closedir(dir);
}

static void
test_abandoned(void **state)
{
    struct stuck stuck = { .folder = "/tmp/bh-gpu-test-XXXXXX" };
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ARENA);
    struct bh_gpu_client *client;
    struct bh_inventory inventory;
    int fds[BH_GPU_WATCHED_MAX];
    struct bh_device device;
    struct bh_err err = { 0 };

    assert_non_null(mkdtemp(stuck.folder));
    client = client_of("sticks", stuck.folder, SHORT);
    device = bh_gpu_client_device(client);
    for (uint32_t i = 0; i < BH_GPU_ABANDONED_MAX; i++)
        BH_CHECK_EQ("it hangs", device.ops->scan(device.self, arena, &inventory, &err), BH_UNCERTAIN);
    gpu_test_collect(&stuck);
    if (stuck.count == BH_GPU_ABANDONED_MAX) {
        bh_ns before = bh_time_monotonic();

        BH_CHECK_EQ("no more", device.ops->scan(device.self, arena, &inventory, &err), BH_UNAVAILABLE);
        BH_CHECK_STR("no more", err.msg, "4 gpu children hang in the driver");
        BH_CHECK("soon", bh_time_monotonic() - before < BH_NS_PER_S);
        bh_gpu_client_watch(client, "GPU-1", 0);
        BH_CHECK_EQ("nor events", bh_gpu_client_event_fds(client, fds), 0);
        BH_CHECK_EQ("four wait", bh_gpu_client_reap(client), BH_GPU_ABANDONED_MAX);
    } else {
        printf("# tracing is not allowed here: %u of 4 children stuck\n", stuck.count);
    }
    for (uint32_t i = 0; i < stuck.count; i++)
        kill(stuck.tracers[i], SIGKILL);
    for (int turn = 0; turn < 400 && bh_gpu_client_reap(client) > 0; turn++)
        bh_time_sleep(5 * BH_NS_PER_MS);
    BH_CHECK_EQ("all went", bh_gpu_client_reap(client), 0);
    BH_CHECK_EQ("a fresh one", device.ops->scan(device.self, arena, &inventory, &err), BH_UNCERTAIN);
    bh_gpu_client_free(client);
    gpu_test_collect(&stuck);
    if (stuck.count > BH_GPU_ABANDONED_MAX)
        kill(stuck.tracers[BH_GPU_ABANDONED_MAX], SIGKILL);
    BH_CHECK_EQ("nothing is left", rmdir(stuck.folder), 0);
    BH_CHECK_DONE();
}

/* ---- events ---- */

static void
test_events(void **state)
{
    BH_AUTO(bh_gpu_client_free) struct bh_gpu_client *client = client_of("dies at once", NULL, LONG);
    struct bh_device device = bh_gpu_client_device(client);
    struct bh_device_event event;
    struct bh_err err = { 0 };
    struct pollfd ready = { .events = POLLIN };
    int fds[BH_GPU_WATCHED_MAX];

    BH_CHECK_EQ("none is known", bh_gpu_client_event_fds(client, fds), 0);
    bh_gpu_client_watch(client, "GPU-1", 0);
    bh_gpu_client_watch(client, "GPU-1", 0);
    BH_CHECK_EQ("started", bh_gpu_client_event_fds(client, fds), 1);
    ready.fd = fds[0];
    BH_CHECK_EQ("the child's end wakes the loop", poll(&ready, 1, 10000), 1);
    BH_CHECK_EQ("gone", device.ops->next_event(device.self, 0, &event, &err), BH_UNAVAILABLE);
    BH_CHECK_EQ("not again at once", bh_gpu_client_event_fds(client, fds), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_messages), cmocka_unit_test(test_read_deadline), cmocka_unit_test(test_parts),
    cmocka_unit_test(test_findings), cmocka_unit_test(test_no_program),    cmocka_unit_test(test_long_names),
    cmocka_unit_test(test_child),    cmocka_unit_test(test_abandoned),     cmocka_unit_test(test_events),
};

int
main(int argc, char **argv)
{
    if (argc >= 5 && strcmp(argv[1], "--library") == 0)
        return gpu_test_play(argv[2], argv[4]);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
