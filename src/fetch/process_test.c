/* The daemon's side against processes that are not bulkhead-fetch.  This program is those
 * processes, too: its --ca then names the part to play. */
#include "fetch/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "fetch/message.h"

enum { SOCKET = 3, ARENA_MAX = 1 << 20 };

static const char *self;

/* ---- the parts ---- */

static void
process_test_send(struct bh_link *link, enum bh_fetch_message_kind kind, const void *message)
{
    struct bh_err err;

    if (bh_link_send(link, kind, bh_fetch_message_fields(kind), message, &err) != BH_OK)
        _exit(1);
}

static uint64_t
await_ask(struct bh_link *link)
{
    struct bh_arena *arena = bh_arena_new(ARENA_MAX);
    struct pollfd ready = { .fd = SOCKET, .events = POLLIN };
    struct bh_fetch_request ask;
    struct bh_frame frame;
    struct bh_err err;
    bh_rc rc;

    do {
        if (poll(&ready, 1, -1) < 0 || bh_link_readable(link, &err) != BH_OK)
            _exit(0);
        rc = bh_link_next(link, &frame, &err);
    } while (rc == BH_NOT_FOUND);
    if (rc != BH_OK || frame.number != BH_FETCH_MSG_REQUEST
        || bh_frame_decode(&frame, bh_fetch_message_fields(frame.number), &ask, arena, &err) != BH_OK)
        _exit(1);
    bh_arena_free(arena);
    return ask.call;
}

static void
process_test_respond(struct bh_link *link, uint64_t call)
{
    process_test_send(link, BH_FETCH_MSG_RESPONSE,
                      &(struct bh_fetch_response){ .call = call, .status = 200, .body = "part" });
}

static void
process_test_answers(struct bh_link *link, uint64_t call)
{
    process_test_respond(link, call);
}

static void
dies(struct bh_link *link, uint64_t call)
{
    _exit(0);
}

static void
speaks_http(struct bh_link *link, uint64_t call)
{
    if (write(SOCKET, "HTTP/1.1 200 OK\r\n\r\n", 19) != 19)
        _exit(1);
}

static void
answers_other_call(struct bh_link *link, uint64_t call)
{
    process_test_respond(link, call + 1);
}

static void
answers_twice(struct bh_link *link, uint64_t call)
{
    process_test_respond(link, call);
    process_test_respond(link, call);
}

static void
sends_request(struct bh_link *link, uint64_t call)
{
    process_test_send(link, BH_FETCH_MSG_REQUEST, &(struct bh_fetch_request){ .call = call, .url = "" });
}

static void
says_nothing(struct bh_link *link, uint64_t call)
{
}

static const struct part {
    const char *name;
    void (*play)(struct bh_link *link, uint64_t call);
    bool answered;
} parts[] = {
    { "answers", process_test_answers, true }, { "dies", dies, false },
    { "speaks HTTP", speaks_http, false },     { "answers another", answers_other_call, false },
    { "answers twice", answers_twice, true },  { "asks back", sends_request, false },
    { "says nothing", says_nothing, false },
};

static void
leave_a_byte(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    if (fd < 0 || write(fd, "x", 1) != 1)
        _exit(1);
    close(fd);
}

static void
process_test_act(const char *name, const char *path)
{
    static const struct bh_fetch_ready ready = { "" };
    struct bh_link *link = bh_link_new(SOCKET);

    if (strcmp(name, "never ready") == 0)
        await_ask(link);
    if (strcmp(name, "counts") == 0) {
        leave_a_byte(path);
        name = "dies";
    }
    process_test_send(link, BH_FETCH_MSG_READY, &ready);
    for (size_t i = 0; i < BH_COUNT(parts); i++)
        while (strcmp(parts[i].name, name) == 0)
            parts[i].play(link, await_ask(link));
    _exit(2);
}

/* ---- tests ---- */

static struct bh_fetch *
process_test_start(const char *part)
{
    const struct bh_fetch_options options = { .program = self, .ca = part, .timeout_ms = 1 };
    struct bh_fetch *fetch = NULL;
    struct bh_err err = { 0 };

    if (bh_fetch_start(&options, &fetch, &err) != BH_OK)
        fail_msg("%s", err.msg);
    return fetch;
}

static struct bh_https_response
process_test_request(struct bh_fetch *fetch)
{
    struct bh_https port = bh_fetch_port(fetch);
    struct bh_arena *arena = bh_arena_new(ARENA_MAX);
    struct bh_https_response got;
    struct bh_err err;

    assert_int_equal(bh_https_ask(&port, &(struct bh_https_request){ .url = "https://a" }, arena, &got, &err),
                     BH_OK);
    got.body = NULL;
    bh_arena_free(arena);
    return got;
}

static void
each_part(void **state)
{
    for (size_t i = 0; i < BH_COUNT(parts); i++) {
        struct bh_fetch *fetch = process_test_start(parts[i].name);
        struct bh_https_response got = process_test_request(fetch);

        BH_CHECK_EQ(parts[i].name, got.status, parts[i].answered ? 200 : 0);
        BH_CHECK_EQ(parts[i].name, got.cause, parts[i].answered ? 0 : BH_HTTPS_PROCESS);
        bh_fetch_stop(fetch);
    }
    BH_CHECK_DONE();
}

/* After an answer a fresh process is there at once. */
static void
lost_after_an_answer(void **state)
{
    struct bh_fetch *fetch = process_test_start("answers twice");
    pid_t first = bh_fetch_process(fetch);

    BH_CHECK_EQ("first", process_test_request(fetch).status, 200);
    while (bh_fetch_process(fetch) == first)
        bh_time_sleep(BH_NS_PER_MS);
    BH_CHECK_EQ("second", process_test_request(fetch).status, 200);
    bh_fetch_stop(fetch);
    BH_CHECK_DONE();
}

static off_t
size_of(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 ? found.st_size : 0;
}

/* Of processes that never answer each leaves a byte; 100, 200 and 400 ms lie between four.
 */
static void
pauses_double(void **state)
{
    char path[] = "/tmp/bh-process-XXXXXX";
    const struct bh_fetch_options options = { .program = self, .ca = "counts", .proxy = path };
    bh_ns began = bh_time_monotonic();
    struct bh_fetch *fetch = NULL;
    struct bh_err err;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(bh_fetch_start(&options, &fetch, &err), BH_OK);
    for (; size_of(path) < 4; bh_time_sleep(BH_NS_PER_MS))
        BH_CHECK_EQ("dies", process_test_request(fetch).cause, BH_HTTPS_PROCESS);
    BH_CHECK("paused", bh_time_monotonic() - began >= 700 * BH_NS_PER_MS);
    bh_fetch_stop(fetch);
    close(fd);
    unlink(path);
    BH_CHECK_DONE();
}

static void
never_ready(void **state)
{
    const struct bh_fetch_options options = { .program = self, .ca = "never ready" };
    struct bh_fetch *fetch = NULL;
    struct bh_err err = { 0 };

    BH_CHECK_EQ("start", bh_fetch_start(&options, &fetch, &err), BH_UNAVAILABLE);
    BH_CHECK(err.msg, strstr(err.msg, "does not answer"));
    BH_CHECK_DONE();
}

static void
commands(void **state)
{
    static const char *blocks[] = { "10.0.0.0/8", "fd00::/8" };
    static const struct bh_fetch_certificate mine = { "mine", "/c.pem", "/k.pem" };
    const struct bh_fetch_options options = {
        .program = "/p",
        .ca = "/ca",
        .proxy = "http://proxy:3128",
        .allow = { blocks, 2 },
        .plain_loopback = true,
        .certificates = &mine,
        .certificate_count = 1,
        .timeout_ms = 7,
    };
    static const char *const want[] = {
        "/p",
        "--ca",
        "/ca",
        "--proxy",
        "http://proxy:3128",
        "--allow",
        "10.0.0.0/8",
        "--allow",
        "fd00::/8",
        "--plain-loopback",
        "--timeout-ms=7",
        "--certificate=mine:/c.pem:/k.pem",
    };
    struct bh_fetch_command command;
    struct bh_err err;

    assert_int_equal(bh_fetch_command_make(&options, &command, &err), BH_OK);
    for (size_t i = 0; i < BH_COUNT(want); i++)
        BH_CHECK_STR(want[i], command.argv[i], want[i]);
    BH_CHECK("the end", !command.argv[BH_COUNT(want)]);
    bh_fetch_command_free(&command);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(commands),      cmocka_unit_test(each_part),   cmocka_unit_test(lost_after_an_answer),
    cmocka_unit_test(pauses_double), cmocka_unit_test(never_ready),
};

int
main(int argc, char **argv)
{
    self = argv[0];
    signal(SIGPIPE, SIG_IGN);
    if (argc > 2 && strcmp(argv[1], "--ca") == 0)
        process_test_act(argv[2], argc > 4 ? argv[4] : "");
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
