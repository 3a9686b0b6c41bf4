/* Interactive streams through a real node: commands, terminals and connections that are added to running
 * jobs, and what becomes of them when a program dies or does not read. */

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/proc.h"
#include "base/time.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/sandbox/keeper.h"
#include "node/session/node_fixture_test.h"
#include "wire/frame.h"
#include "wire/stream.h"

enum { OUTPUT_MAX = 1 << 20 };

/* The client's end of a stream, and all that came. */
struct client {
    int fd;
    char out[OUTPUT_MAX], errors[8192];
    size_t out_length, errors_length;
    bool ready, over;
    uint32_t credit;
    uint8_t flags;
    int status; /* -1: no EXIT came */
    bh_rc rc;
    char why[BH_STREAM_WHY_MAX + 1];
    char received[2 * BH_STREAM_FRAME_MAX];
    size_t received_length;
};

static struct client *
open_stream(const struct bh_msg_stream *message)
{
    struct client *client = calloc(1, sizeof *client);
    char path[TEST_PATH + 16];
    struct bh_buf frame;
    struct bh_err err;

    assert_non_null(client);
    client->status = -1;
    bh_path_format(path, sizeof path, "%s.streams", the_node.socket);
    for (int tries = 0; bh_unix_connect(path, &client->fd, &err) != BH_OK; tries++) {
        assert_true(tries < bh_test_scaled(TEST_TIMEOUT_MS / 10));
        bh_time_sleep(10 * BH_NS_PER_MS);
    }
    bh_buf_init(&frame, 128 << 10);
    bh_frame_encode(&frame, BH_MSG_STREAM, bh_message_fields(BH_MSG_STREAM), message);
    assert_int_equal(bh_fd_write_all(client->fd, frame.bytes, frame.length, &err), BH_OK);
    bh_buf_fini(&frame);
    return client;
}

static void
close_stream(struct client *client)
{
    bh_fd_close(client->fd);
    free(client);
}

static void
stream_test_append(char *text, size_t *length, size_t most, const struct bh_stream_frame *frame)
{
    size_t room = most - 1 - *length, part = frame->length < room ? frame->length : room;

    if (part > 0)
        memcpy(text + *length, frame->bytes, part);
    *length += part;
    text[*length] = '\0';
}

static void
stream_test_receive(struct client *client, const struct bh_stream_frame *frame)
{
    switch ((int)frame->kind) {
    case BH_STREAM_READY:
        client->ready = true;
        client->credit = frame->number;
        client->flags = frame->flags;
        return;
    case BH_STREAM_CREDIT_MORE:
        client->credit += frame->number;
        return;
    case BH_STREAM_STDOUT:
        stream_test_append(client->out, &client->out_length, sizeof client->out, frame);
        return;
    case BH_STREAM_STDERR:
        stream_test_append(client->errors, &client->errors_length, sizeof client->errors, frame);
        return;
    case BH_STREAM_EXIT:
        client->status = (int)frame->number;
        client->over = true;
        return;
    case BH_STREAM_ERROR:
        client->rc = (bh_rc)frame->number;
        memcpy(client->why, frame->bytes, frame->length);
        client->over = true;
        return;
    default:
        fail();
    }
}

static bool
read_frames(struct client *client)
{
    struct pollfd polled = { .fd = client->fd, .events = POLLIN };
    struct bh_stream_frame frame;
    struct bh_err err;
    ssize_t got;

    if (poll(&polled, 1, 50) <= 0)
        return true;
    got = read(client->fd, client->received + client->received_length,
               sizeof client->received - client->received_length);
    if (got <= 0)
        return false;
    client->received_length += (size_t)got;
    while (bh_stream_next(client->received, client->received_length, BH_STREAM_NODE, &frame, &err) == BH_OK) {
        stream_test_receive(client, &frame);
        memmove(client->received, client->received + frame.size, client->received_length - frame.size);
        client->received_length -= frame.size;
    }
    return true;
}

/* Until the last frame, or the end without one. */
static void
stream_test_finish(struct client *client)
{
    bh_ns until = bh_time_monotonic() + bh_test_scaled(TEST_TIMEOUT_MS) * BH_NS_PER_MS;

    while (!client->over && read_frames(client) && bh_time_monotonic() < until)
        ;
}

static bool
stream_test_wait_for(struct client *client, const char *text)
{
    bh_ns until = bh_time_monotonic() + bh_test_scaled(TEST_TIMEOUT_MS) * BH_NS_PER_MS;

    while (!strstr(client->out, text) && !client->over && bh_time_monotonic() < until)
        if (!read_frames(client))
            break;
    if (!strstr(client->out, text))
        fprintf(stderr, "no \"%s\" in \"%s\" (%s)\n", text, client->out, client->why);
    return strstr(client->out, text) != NULL;
}

static void
wait_ready(struct client *client)
{
    while (!client->ready && !client->over && read_frames(client))
        ;
    if (!client->ready)
        fprintf(stderr, "not ready: %s\n%s\n", client->why, bh_test_read("node.log"));
    assert_true(client->ready);
}

static void
send_frame(struct client *client, struct bh_stream_frame frame)
{
    char bytes[BH_STREAM_FRAME_MAX];
    struct bh_err ignored; /* the command may have ended meanwhile */

    (void)!bh_fd_write_all(client->fd, bytes, bh_stream_put(bytes, &frame), &ignored);
}

static void
type(struct client *client, const char *text)
{
    send_frame(client,
               (struct bh_stream_frame){ .kind = BH_STREAM_STDIN, .bytes = text, .length = strlen(text) });
}

static struct client *
exec_in(uint64_t lease, const char *script, bool tty)
{
    const char *args[] = { "/bin/sh", "-c", script };
    struct bh_msg_stream message = { .lease = lease,
                                     .what = BH_STREAM_EXEC,
                                     .tty = tty,
                                     .input = true,
                                     .rows = 30,
                                     .columns = 100,
                                     .args = { args, 3 } };

    return open_stream(&message);
}

static struct client *
attach_to(uint64_t lease, bool input)
{
    struct bh_msg_stream message = {
        .lease = lease, .what = BH_STREAM_ATTACH, .input = input, .rows = 40, .columns = 132
    };

    return open_stream(&message);
}

static void
start_job(uint64_t lease, enum bh_stdio stdio, const char *script)
{
    const char *args[3];
    struct test_job job = { .lease = lease, .script = script, .env = { "COLOUR=teal" } };
    struct bh_msg_start start = bh_test_start_message(&job, args, NULL);
    struct bh_msg_outcome outcome;

    start.stdio = stdio;
    outcome = bh_test_order(BH_MSG_START, &start);
    if (outcome.outcome != 0)
        fprintf(stderr, "start: %s\n", outcome.why);
    assert_int_equal(outcome.outcome, 0);
    if (stdio == BH_STDIO_NONE)
        assert_true(bh_test_wait_for_log(lease, "begun"));
}

static void
stop_job(uint64_t lease)
{
    struct bh_msg_stop stop = { .lease = lease };

    assert_int_equal(bh_test_order(BH_MSG_STOP, &stop).outcome, 0);
    bh_test_receive(BH_MSG_ENDED, lease);
}

/* ---- exec ---- */

static const struct {
    const char *name, *script, *input, *out, *errors;
    int status;
} commands[] = {
    { "output", "echo out", NULL, "out\n", "", 0 },
    { "errors apart", "echo wrong >&2; exit 3", NULL, "", "wrong\n", 3 },
    { "input to its end", "cat", "given", "given", "", 0 },
    { "the job's environment", "echo $COLOUR $BULKHEAD_JOB", NULL, "teal 1001\n", "", 0 },
    { "a signal", "kill -TERM $$", NULL, "", "", 143 },
    { "streams may be opened again", "echo again >/dev/stdout", NULL, "again\n", "", 0 },
    { "only three descriptors", "ls /proc/self/fd | wc -l", NULL, "4\n", "", 0 }, /* ls has one */
    { "sees the job's processes", "ps -e -o comm= | grep -c sleep", NULL, "1\n", "", 0 },
};

static void
test_exec(void **state)
{
    start_job(1, BH_STDIO_NONE, "echo begun; sleep 60");
    for (size_t i = 0; i < BH_COUNT(commands); i++) {
        struct client *client = exec_in(1, commands[i].script, false);

        print_message("# %s\n", commands[i].name);
        wait_ready(client);
        if (commands[i].input)
            type(client, commands[i].input);
        send_frame(client, (struct bh_stream_frame){ .kind = BH_STREAM_STDIN });
        stream_test_finish(client);
        assert_string_equal(client->out, commands[i].out);
        assert_string_equal(client->errors, commands[i].errors);
        assert_int_equal(client->status, commands[i].status);
        close_stream(client);
    }
    stop_job(1);
}

/* Programs that the node waits for: keepers, and those that serve streams. */
static uint32_t
count_watched(void)
{
    DIR *dir = bh_proc_list(the_node.pid, "fd");
    uint32_t count = 0;

    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char name[32], target[NAME_MAX];
        struct bh_err ignored;

        bh_path_format(name, sizeof name, "fd/%.20s", entry->d_name);
        if (bh_proc_link(the_node.pid, name, target, sizeof target, &ignored) == BH_OK)
            count += strcmp(target, "anon_inode:[pidfd]") == 0;
    }
    closedir(dir);
    return count;
}

/* Input that comes is the program's, also while its command reads none: the node takes it for no end. */
static void
test_unread_input(void **state)
{
    struct client *client, *other;
    uint32_t watched;

    start_job(7, BH_STDIO_NONE, "echo begun; sleep 60");
    client = exec_in(7, "sleep 60", false);
    wait_ready(client);
    watched = count_watched();
    for (uint32_t i = 0; i < client->credit && i < 2000; i++)
        type(client, "x");
    other = exec_in(7, "true", false); /* behind the input */
    stream_test_finish(other);
    assert_int_equal(other->status, 0);
    close_stream(other);
    assert_true(count_watched() >= watched);
    close_stream(client);
    stop_job(7);
}

/* What /proc says of a process that was added, is what it says of the job's own. */
static void
test_isolation(void **state)
{
    static const char isolation[] =
        "for n in user pid mnt ipc uts cgroup net; do readlink /proc/self/ns/$n; done;"
        "cat /proc/self/cgroup;"
        "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Seccomp_filters|CoreDumping)' "
        "/proc/self/status; ulimit -c; pwd; cat /proc/self/oom_score_adj";
    char script[1024];
    struct client *client;
    const char *own;

    snprintf(script, sizeof script, "%s; echo begun; sleep 60", isolation);
    start_job(2, BH_STDIO_NONE, script);
    client = exec_in(2, isolation, false);
    stream_test_finish(client);
    assert_int_equal(client->status, 0);
    own = bh_test_log(2);
    assert_non_null(strstr(own, "NoNewPrivs:\t1"));
    assert_non_null(strstr(own, "Seccomp:\t2"));
    assert_int_equal(strncmp(own, client->out, client->out_length), 0);
    close_stream(client);
    /* and nothing of init's or of the programs outside can be taken from inside */
    client = exec_in(2, "ls /proc/1/fd >/dev/null 2>&1 || echo shut", false);
    stream_test_finish(client);
    assert_string_equal(client->out, "shut\n");
    close_stream(client);
    stop_job(2);
}

static void
test_exec_tty(void **state)
{
    struct client *client;

    start_job(3, BH_STDIO_NONE, "echo begun; sleep 60");
    client = exec_in(3, "tty; stty size; read line; echo got:$line; stty size; exit 7", true);
    wait_ready(client);
    assert_true(client->flags & BH_STREAM_TTY);
    assert_true(stream_test_wait_for(client, "/dev/pts/"));
    assert_true(stream_test_wait_for(client, "30 100"));
    send_frame(client, (struct bh_stream_frame){ .kind = BH_STREAM_RESIZE, .rows = 50, .columns = 120 });
    type(client, "hello\r");
    stream_test_finish(client);
    assert_non_null(strstr(client->out, "got:hello"));
    assert_non_null(strstr(client->out, "50 120"));
    assert_int_equal(client->status, 7);
    close_stream(client);
    stop_job(3);
}

static void
test_signals(void **state)
{
    struct client *client;

    start_job(4, BH_STDIO_NONE, "echo begun; sleep 60");
    client = exec_in(4, "trap 'echo told; exit 5' INT; echo up; while :; do sleep 0.05; done", false);
    assert_true(stream_test_wait_for(client, "up"));
    /* input without a reader is no obstacle */
    for (int i = 0; i < 2; i++) {
        static char much[BH_STREAM_PAYLOAD_MAX];

        send_frame(client,
                   (struct bh_stream_frame){ .kind = BH_STREAM_STDIN, .bytes = much, .length = sizeof much });
    }
    send_frame(client, (struct bh_stream_frame){ .kind = BH_STREAM_SIGNAL, .number = SIGINT });
    stream_test_finish(client);
    assert_non_null(strstr(client->out, "told"));
    assert_int_equal(client->status, 5);
    close_stream(client);
    stop_job(4);
}

/* ---- ends ---- */

static void
test_job_ends(void **state)
{
    struct client *command, *watch;
    struct bh_msg_stream message = { .lease = 5, .what = BH_STREAM_WATCH };

    start_job(5, BH_STDIO_NONE, "echo begun; sleep 60");
    command = exec_in(5, "echo up; sleep 60", false);
    watch = open_stream(&message);
    assert_true(stream_test_wait_for(command, "up"));
    wait_ready(watch);
    stop_job(5);
    stream_test_finish(command);
    stream_test_finish(watch);
    assert_int_equal(command->rc, BH_CONFLICT);
    assert_int_equal(watch->status, 0);
    close_stream(command);
    close_stream(watch);
    /* and none begins in one that has ended, or never was */
    for (uint64_t lease = 5; lease < 7; lease++) {
        command = exec_in(lease, "echo no", false);
        stream_test_finish(command);
        assert_int_equal(command->rc, BH_CONFLICT);
        assert_string_equal(command->out, "");
        close_stream(command);
    }
}

/* A client that goes takes its command with it; the job goes on. */
static void
test_client_goes(void **state)
{
    struct client *client;

    start_job(7, BH_STDIO_NONE, "echo begun; sleep 60");
    client = exec_in(7,
                     "exec 2>/dev/null; trap 'echo hung up >/tmp/said; exit' HUP; echo up;"
                     " while :; do sleep 0.05; done",
                     false);
    assert_true(stream_test_wait_for(client, "up"));
    close_stream(client);
    client = exec_in(7,
                     "for i in 1 2 3 4 5 6 7 8 9 10; do cat /tmp/said 2>/dev/null && exit;"
                     " sleep 0.1; done",
                     false);
    stream_test_finish(client);
    assert_string_equal(client->out, "hung up\n");
    close_stream(client);
    stop_job(7);
}

/* The node is no part of a stream that runs: it may die. */
static void
test_node_dies(void **state)
{
    struct client *client, *later;

    start_job(8, BH_STDIO_PIPE, "echo begun; cat");
    client = attach_to(8, true);
    wait_ready(client);
    assert_true(client->flags & BH_STREAM_WRITER);
    bh_test_node_end(&the_node, SIGKILL);
    type(client, "while nobody looks\n");
    assert_true(stream_test_wait_for(client, "while nobody looks"));
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    later = exec_in(8, "echo found again", false);
    stream_test_finish(later);
    assert_string_equal(later->out, "found again\n");
    close_stream(later);
    send_frame(client, (struct bh_stream_frame){ .kind = BH_STREAM_STDIN });
    stream_test_finish(client);
    assert_int_equal(client->status, 0);
    assert_int_equal(bh_test_receive(BH_MSG_ENDED, 8).ended.exit_status, 0);
    close_stream(client);
}

static void
test_keeper_dies(void **state)
{
    char folder[TEST_PATH + 32];
    struct client *client;
    pid_t keeper = 0;

    start_job(9, BH_STDIO_NONE, "echo begun; sleep 60");
    client = exec_in(9, "echo up; sleep 60", false);
    assert_true(stream_test_wait_for(client, "up"));
    bh_path_format(folder, sizeof folder, "%s/state/jobs/9", the_node.folder);
    assert_true(bh_keeper_alive(folder, &keeper));
    kill(keeper, SIGKILL);
    assert_int_equal(bh_test_receive(BH_MSG_ENDED, 9).ended.cause, BH_END_KEEPER_LOST);
    stream_test_finish(client);
    assert_int_equal(client->rc, BH_CONFLICT);
    close_stream(client);
}

/* ---- attach ---- */

static void
test_terminal_job(void **state)
{
    struct client *first, *second;

    start_job(10, BH_STDIO_TERMINAL,
              "echo before; tty; while read line; do echo got:$line; stty size;"
              " [ $line = end ] && exit 4; done");
    assert_true(bh_test_wait_for_log(10, "/dev/pts/"));
    first = attach_to(10, true);
    assert_true(stream_test_wait_for(first, "before")); /* what it said is said again */
    assert_int_equal(first->flags, BH_STREAM_TTY | BH_STREAM_WRITER);
    second = attach_to(10, true);
    wait_ready(second);
    assert_int_equal(second->flags, BH_STREAM_TTY); /* one writes */
    type(second, "stranger\r");
    type(first, "one\r");
    assert_true(stream_test_wait_for(first, "40 132"));
    assert_true(stream_test_wait_for(second, "got:one"));
    close_stream(second);
    for (int i = 0; i < 20; i++) { /* a client that has left is gone once that is reported */
        send_frame(first, (struct bh_stream_frame){ .kind = BH_STREAM_LEAVE });
        stream_test_finish(first);
        assert_int_equal(first->status, 0);
        second = attach_to(10, true);
        wait_ready(second);
        assert_int_equal(second->flags, BH_STREAM_TTY | BH_STREAM_WRITER);
        close_stream(first);
        first = second;
    }
    type(first, "last words\r");
    send_frame(first, (struct bh_stream_frame){ .kind = BH_STREAM_LEAVE });
    close_stream(first);
    second = attach_to(10, true);
    assert_true(stream_test_wait_for(second, "got:last words"));
    do { /* of who hung up the place is free as soon as the keeper knows */
        close_stream(second);
        second = attach_to(10, true);
        wait_ready(second);
    } while (!(second->flags & BH_STREAM_WRITER));
    type(second, "end\r");
    stream_test_finish(second);
    assert_int_equal(second->status, 0);
    assert_null(strstr(second->out, "stranger"));
    close_stream(second);
    assert_int_equal(bh_test_receive(BH_MSG_ENDED, 10).ended.exit_status, 4);
    assert_non_null(strstr(bh_test_log(10), "got:end"));
}

/* A job with a terminal runs before it has it: who attaches at once may write all the same. */
static void
test_early_attach(void **state)
{
    struct client *client;

    start_job(17, BH_STDIO_TERMINAL, "read line; echo got:$line");
    client = attach_to(17, true);
    wait_ready(client);
    assert_int_equal(client->flags, BH_STREAM_TTY | BH_STREAM_WRITER);
    type(client, "at once\r");
    stream_test_finish(client);
    assert_non_null(strstr(client->out, "got:at once"));
    close_stream(client);
    bh_test_receive(BH_MSG_ENDED, 17);
}

/* A job without input can be looked at, not written to. */
static void
test_attach_without_input(void **state)
{
    struct client *client;

    start_job(11, BH_STDIO_NONE, "echo begun; cat; echo no input; sleep 0.3; echo last");
    client = attach_to(11, true);
    wait_ready(client);
    assert_int_equal(client->flags, 0);
    stream_test_finish(client);
    assert_int_equal(client->status, 0);
    assert_non_null(strstr(client->out, "no input\nlast\n"));
    close_stream(client);
    bh_test_receive(BH_MSG_ENDED, 11);
}

static uint64_t
resident_kib(pid_t pid)
{
    char path[64], text[4096] = "";
    const char *line;
    int fd;

    bh_path_format(path, sizeof path, "/proc/%d/status", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)!read(fd, text, sizeof text - 1);
    close(fd);
    line = strstr(text, "VmRSS:");
    return line ? strtoull(line + 6, NULL, 10) : 0;
}

/* Output without end and a reader that stops: no program's memory grows, the reader is cut off, the job
 * continues. */
static void
test_reader_stops(void **state)
{
    char folder[TEST_PATH + 32];
    struct client *reader = NULL, *looker;
    uint64_t before;
    pid_t keeper = 0;
    bool cut = false;

    start_job(12, BH_STDIO_NONE, "echo begun; sleep 0.3; yes & while :; do sleep 0.1; done");
    bh_path_format(folder, sizeof folder, "%s/state/jobs/12", the_node.folder);
    assert_true(bh_keeper_alive(folder, &keeper));
    before = resident_kib(keeper);
    for (int ms = 2500; ms <= 20000 && !cut; ms *= 2) { /* who is kept waiting itself cuts off later */
        reader = attach_to(12, false);
        wait_ready(reader);
        bh_time_sleep(ms * BH_NS_PER_MS);
        assert_true(resident_kib(keeper) < before + 1024);
        stream_test_finish(reader); /* what was on its way, and why there is no more */
        cut = reader->rc == BH_TIMEOUT;
        close_stream(reader);
    }
    assert_true(cut);
    looker = exec_in(12, "echo alive", false);
    stream_test_finish(looker);
    assert_string_equal(looker->out, "alive\n");
    close_stream(looker);
    stop_job(12);
}

/* A command whose reader stops waits; nothing is lost when it reads on. */
static void
test_exec_backpressure(void **state)
{
    struct client *client;

    start_job(13, BH_STDIO_NONE, "echo begun; sleep 60");
    client = exec_in(13, "head -c 900000 /dev/zero | tr '\\0' x; echo done >&2", false);
    wait_ready(client);
    bh_time_sleep(200 * BH_NS_PER_MS);
    assert_int_equal(client->errors_length, 0);
    stream_test_finish(client);
    assert_int_equal(client->out_length, 900000);
    assert_string_equal(client->errors, "done\n");
    assert_int_equal(client->status, 0);
    close_stream(client);
    stop_job(13);
}

/* ---- what is refused ---- */

static void
test_too_much_input(void **state)
{
    static char much[BH_STREAM_PAYLOAD_MAX];
    struct client *client;

    start_job(14, BH_STDIO_NONE, "echo begun; sleep 60");
    client = exec_in(14, "sleep 60", false);
    wait_ready(client);
    for (int i = 0; i < 6; i++) /* 64 KiB of credit, and the pipe takes 64 KiB */
        send_frame(client,
                   (struct bh_stream_frame){ .kind = BH_STREAM_STDIN, .bytes = much, .length = sizeof much });
    stream_test_finish(client);
    assert_int_equal(client->rc, BH_INVALID);
    close_stream(client);
    client = exec_in(14, "echo fine", false);
    stream_test_finish(client);
    assert_int_equal(client->status, 0);
    close_stream(client);
    stop_job(14);
}

static void
test_suspended(void **state)
{
    struct bh_msg_lease lease = { .lease = 15 };
    struct client *client;

    start_job(15, BH_STDIO_NONE, "echo begun; sleep 60");
    assert_int_equal(bh_test_order(BH_MSG_SUSPEND, &lease).outcome, 0);
    client = exec_in(15, "echo no", false);
    stream_test_finish(client);
    assert_int_equal(client->rc, BH_CONFLICT);
    assert_non_null(strstr(client->why, "suspended"));
    close_stream(client);
    assert_int_equal(bh_test_order(BH_MSG_RESUME, &lease).outcome, 0);
    stop_job(15);
}

/* ---- forward ---- */

static void
test_forward(void **state)
{
    static const char server[] =
        "exec perl -MIO::Socket::INET -e '$|=1; $s=IO::Socket::INET->new(Listen=>5,"
        "LocalAddr=>\"127.0.0.1\",LocalPort=>8080,ReuseAddr=>1) or die; print \"begun\\n\";"
        "while($c=$s->accept){$t=\"\"; $t.=$_ while <$c>; print $c \"said:$t\"; close $c}'";
    struct bh_msg_stream message = { .lease = 16, .what = BH_STREAM_FORWARD, .port = 8080 };
    struct client *client;

    start_job(16, BH_STDIO_NONE, server);
    for (int i = 0; i < 3; i++) { /* it answers when our half is closed */
        client = open_stream(&message);
        wait_ready(client);
        type(client, "half\n");
        send_frame(client, (struct bh_stream_frame){ .kind = BH_STREAM_STDIN });
        stream_test_finish(client);
        assert_string_equal(client->out, "said:half\n");
        assert_int_equal(client->status, 0);
        close_stream(client);
    }
    message.port = 8081;
    client = open_stream(&message);
    stream_test_finish(client);
    assert_int_equal(client->rc, BH_CONFLICT);
    assert_non_null(strstr(client->why, "listens"));
    close_stream(client);
    stop_job(16);
}

static const struct CMUnitTest tests[] = {
    BH_NODE_TEST(test_exec),           BH_NODE_TEST(test_unread_input),
    BH_NODE_TEST(test_isolation),      BH_NODE_TEST(test_exec_tty),
    BH_NODE_TEST(test_signals),        BH_NODE_TEST(test_job_ends),
    BH_NODE_TEST(test_client_goes),    BH_NODE_TEST(test_node_dies),
    BH_NODE_TEST(test_keeper_dies),    BH_NODE_TEST(test_terminal_job),
    BH_NODE_TEST(test_early_attach),   BH_NODE_TEST(test_attach_without_input),
    BH_NODE_TEST(test_reader_stops),   BH_NODE_TEST(test_exec_backpressure),
    BH_NODE_TEST(test_too_much_input), BH_NODE_TEST(test_suspended),
    BH_NODE_TEST(test_forward),
};

int
main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    return bh_test_main(argc, argv, tests, BH_COUNT(tests));
}
