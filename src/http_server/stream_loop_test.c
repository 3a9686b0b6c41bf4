/* One thread for all streams: what it sends, what it waits for, and when it lets go. */
#include "http_server/stream_loop.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/splitmix.h"
#include "base/test.h"
#include "base/time.h"

enum { CROWD = 1000, MIXED = 48, STEPS = 6000, TEXT_MAX = 1 << 20 };

#define PATIENCE_NS (60 * BH_NS_PER_S)
#define WITHIN_NS (20 * BH_NS_PER_S) /* of what happens at once, on the slowest machine */

/* A source that has as many bytes as it is given; byte n of a stream is n % 251. */
struct source {
    pthread_mutex_t mutex;
    struct bh_waker waker; /* under mutex */
    uint64_t given, taken; /* likewise; bytes */
    bool over;             /* likewise: none follow */
    uint64_t reads;        /* likewise */
    _Atomic int closed, ended;
    bool endless;
};

static void
source_begin(void *self, const struct bh_waker *waker)
{
    struct source *source = self;

    pthread_mutex_lock(&source->mutex);
    source->waker = *waker;
    pthread_mutex_unlock(&source->mutex);
}

static long
source_read(void *self, char *memory, size_t size, bh_ns *ret_again)
{
    struct source *source = self;
    uint64_t count;
    bool over;

    pthread_mutex_lock(&source->mutex);
    assert_int_equal(source->closed, 0);
    source->reads++;
    count = source->endless ? size : source->given - source->taken;
    count = count < size ? count : size;
    for (uint64_t i = 0; i < count; i++)
        memory[i] = (char)((source->taken + i) % 251);
    source->taken += count;
    over = source->over;
    *ret_again = UINT64_MAX;
    pthread_mutex_unlock(&source->mutex);
    return count > 0 || !over ? (long)count : BH_STREAM_OVER;
}

static void
source_close(void *self)
{
    struct source *source = self;

    pthread_mutex_lock(&source->mutex);
    source->waker.wake = NULL;
    source->closed++;
    pthread_mutex_unlock(&source->mutex);
}

static void
source_ended(void *self)
{
    struct source *source = self;

    assert_int_equal(source->closed, 1);
    source->ended++;
}

static void
source_give(struct source *source, uint64_t count, bool over)
{
    pthread_mutex_lock(&source->mutex);
    source->given += count;
    source->over = source->over || over;
    if (source->waker.wake)
        source->waker.wake(source->waker.self);
    pthread_mutex_unlock(&source->mutex);
}

static uint64_t
source_reads(struct source *source)
{
    uint64_t reads;

    pthread_mutex_lock(&source->mutex);
    reads = source->reads;
    pthread_mutex_unlock(&source->mutex);
    return reads;
}

/* A stream from a source to a client's socket. */
struct line {
    struct source source;
    int fd; /* the client's end */
    bool chunked;
};

static void
line_open(struct line *line, struct bh_stream_loop *loop)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pthread_mutex_init(&line->source.mutex, NULL);
    line->fd = ends[0];
    bh_stream_loop_add(
        loop, &(struct bh_streamed){ .source = { source_begin, source_read, source_close, &line->source },
                                     .fd = ends[1],
                                     .chunked = line->chunked,
                                     .ended = source_ended,
                                     .self = &line->source });
}

static bool
line_ended(struct line *line)
{
    for (bh_ns until = bh_time_monotonic() + WITHIN_NS; bh_time_monotonic() < until;) {
        if (line->source.ended)
            return line->source.ended == 1;
        bh_time_sleep(BH_NS_PER_MS);
    }
    return false;
}

/* Up to `count` bytes, fewer where the stream ended. */
static size_t
line_receive(const struct line *line, char *bytes, size_t count)
{
    size_t got = 0;
    ssize_t more = 1;

    while (got < count && more > 0) {
        struct pollfd at = { line->fd, POLLIN, 0 };

        more = poll(&at, 1, (int)(WITHIN_NS / BH_NS_PER_MS)) > 0 ? recv(line->fd, bytes + got, count - got, 0)
                                                                 : -1;
        got += more > 0 ? (size_t)more : 0;
    }
    return got;
}

static struct bh_stream_loop *
loop_open_for_test(bh_ns patience)
{
    struct bh_stream_loop *loop = bh_stream_loop_new(patience);

    assert_non_null(loop);
    return loop;
}

static void
loop_close_for_test(struct bh_stream_loop *loop)
{
    bh_stream_loop_stop(loop);
    bh_stream_loop_free(loop);
}

static unsigned
count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    unsigned count = 0;

    assert_non_null(tasks);
    while ((entry = readdir(tasks)))
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* ---- the tests ---- */

static void
a_stream_is_sent_as_it_comes_with_its_end(void **state)
{
    struct bh_stream_loop *loop = loop_open_for_test(PATIENCE_NS);
    struct line chunked = { .chunked = true }, whole = { 0 };
    char bytes[64];

    line_open(&chunked, loop);
    line_open(&whole, loop);
    source_give(&chunked.source, 3, false);
    BH_CHECK_EQ("a chunk", line_receive(&chunked, bytes, 8), 8);
    BH_CHECK("is one", memcmp(bytes, "3\r\n\x00\x01\x02\r\n", 8) == 0);
    source_give(&chunked.source, 2, true);
    BH_CHECK_EQ("the last", line_receive(&chunked, bytes, sizeof bytes), 12);
    BH_CHECK("and the end", memcmp(bytes, "2\r\n\x03\x04\r\n0\r\n\r\n", 12) == 0);
    source_give(&whole.source, 3, true);
    BH_CHECK_EQ("without chunks", line_receive(&whole, bytes, sizeof bytes), 3);
    BH_CHECK("both ended", line_ended(&chunked) && line_ended(&whole));
    bh_fd_close(chunked.fd);
    bh_fd_close(whole.fd);
    loop_close_for_test(loop);
    BH_CHECK_DONE();
}

static void
a_thousand_streams_have_one_thread(void **state)
{
    static struct line lines[CROWD];
    struct bh_stream_loop *loop;
    unsigned threads = count_threads();
    char bytes[4];
    size_t good = 0, ended = 0;

    loop = loop_open_for_test(PATIENCE_NS);
    for (size_t i = 0; i < CROWD; i++)
        line_open(&lines[i], loop);
    for (int round = 0; round < 3; round++) {
        good = 0;
        for (size_t i = 0; i < CROWD; i++)
            source_give(&lines[i].source, 4, false);
        for (size_t i = 0; i < CROWD; i++)
            good +=
                line_receive(&lines[i], bytes, 4) == 4 && bytes[0] == round * 4 && bytes[3] == round * 4 + 3;
        BH_CHECK_EQ("all are served", good, CROWD);
    }
    BH_CHECK_EQ("by one thread", count_threads(), threads + 1);
    bh_stream_loop_stop(loop);
    for (size_t i = 0; i < CROWD; i++) {
        ended += lines[i].source.ended == 1 && recv(lines[i].fd, bytes, 1, 0) == 0;
        bh_fd_close(lines[i].fd);
    }
    BH_CHECK_EQ("a stop ends all", ended, CROWD);
    bh_stream_loop_free(loop);
    BH_CHECK_DONE();
}

static void
a_reader_that_stops_is_not_read_for(void **state)
{
    struct bh_stream_loop *loop = loop_open_for_test(PATIENCE_NS);
    struct line stopped = { .source.endless = true }, other = { 0 };
    static char bytes[TEXT_MAX];
    uint64_t reads = 0, last;
    size_t wrong = 0;

    line_open(&stopped, loop);
    line_open(&other, loop);
    do { /* until its socket is full: it has its turn between any nine reads of the other's */
        last = reads;
        for (int i = 0; i < 9; i++) {
            source_give(&other.source, 1, false);
            BH_CHECK_EQ("others are served", line_receive(&other, bytes, 1), 1);
        }
        reads = source_reads(&stopped.source);
    } while (reads != last && reads < 10000);
    BH_CHECK("it is full", reads < 10000);
    for (int i = 0; i < 100; i++) {
        source_give(&stopped.source, 0, false);
        source_give(&other.source, 1, false);
        BH_CHECK_EQ("others are served", line_receive(&other, bytes, 1), 1);
    }
    BH_CHECK_EQ("it is read no more, however often it is woken", source_reads(&stopped.source), reads);
    BH_CHECK_EQ("it reads on", line_receive(&stopped, bytes, sizeof bytes), sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        wrong += (uint8_t)bytes[i] != i % 251;
    BH_CHECK_EQ("and has missed nothing", wrong, 0);
    bh_fd_close(stopped.fd);
    bh_fd_close(other.fd);
    BH_CHECK("both ended", line_ended(&stopped) && line_ended(&other));
    loop_close_for_test(loop);
    BH_CHECK_DONE();
}

static void
a_reader_that_takes_nothing_for_long_is_given_up(void **state)
{
    struct bh_stream_loop *loop = loop_open_for_test(50 * BH_NS_PER_MS);
    struct line line = { .source.endless = true }, idle = { 0 };
    char byte;

    line_open(&idle, loop);
    line_open(&line, loop);
    BH_CHECK("ended", line_ended(&line));
    source_give(&idle.source, 1, false);
    BH_CHECK_EQ("one that has nothing to take is not", line_receive(&idle, &byte, 1), 1);
    bh_fd_close(line.fd);
    bh_fd_close(idle.fd);
    loop_close_for_test(loop);
    BH_CHECK_DONE();
}

static void
a_reader_that_goes_is_let_go_at_once(void **state)
{
    struct bh_stream_loop *loop = loop_open_for_test(PATIENCE_NS);
    struct line idle = { 0 }, full = { .source.endless = true }, half = { 0 };
    char byte = 1;

    line_open(&idle, loop);
    bh_fd_close(idle.fd);
    BH_CHECK("that has nothing to read", line_ended(&idle));
    line_open(&full, loop);
    assert_int_equal(line_receive(&full, &byte, 1), 1);
    bh_fd_close(full.fd);
    BH_CHECK("that left much unread", line_ended(&full));
    line_open(&half, loop);
    shutdown(half.fd, SHUT_WR);
    source_give(&half.source, 1, true);
    BH_CHECK_EQ("on a unix socket one that only sends no more stays", line_receive(&half, &byte, 1), 1);
    BH_CHECK("until the end", line_ended(&half));
    bh_fd_close(half.fd);
    loop_close_for_test(loop);
    BH_CHECK_DONE();
}

static void
connect_tcp(int ret_ends[2])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof at;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(listening, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&at, &size), 0);
    ret_ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(ret_ends[0], (struct sockaddr *)&at, size), 0);
    ret_ends[1] = accept(listening, NULL, NULL);
    assert_true(ret_ends[1] >= 0);
    bh_fd_close(listening);
}

/* Also where it sent bytes that were not asked for. */
static void
a_half_closed_tcp_connection_is_over(void **state)
{
    struct bh_stream_loop *loop = loop_open_for_test(PATIENCE_NS);
    struct line line = { 0 };
    char bytes[8];
    int ends[2];

    connect_tcp(ends);
    pthread_mutex_init(&line.source.mutex, NULL);
    line.fd = ends[0];
    bh_stream_loop_add(
        loop, &(struct bh_streamed){ .source = { source_begin, source_read, source_close, &line.source },
                                     .fd = ends[1],
                                     .tcp = true,
                                     .ended = source_ended,
                                     .self = &line.source });
    assert_int_equal(send(line.fd, "unasked", 7, MSG_NOSIGNAL), 7);
    source_give(&line.source, 2, false);
    BH_CHECK_EQ("served", line_receive(&line, bytes, 2), 2);
    BH_CHECK_EQ("not ended", line.source.ended, 0);
    shutdown(line.fd, SHUT_WR);
    BH_CHECK("ended", line_ended(&line));
    BH_CHECK_EQ("by an end, not a reset", recv(line.fd, bytes, 1, 0), 0);
    bh_fd_close(line.fd);
    loop_close_for_test(loop);
    BH_CHECK_DONE();
}

/* As a program that the daemon starts holds a copy of each descriptor for a moment: closing the loop's own is
 * then no end of the socket, whose events would name a stream that is freed. */
static void
a_copied_descriptor_outlives_its_stream(void **state)
{
    struct bh_stream_loop *loop = loop_open_for_test(PATIENCE_NS);
    struct line line = { 0 }, other = { 0 };
    int ends[2], copy;
    char byte;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    copy = dup(ends[1]);
    pthread_mutex_init(&line.source.mutex, NULL);
    line.fd = ends[0];
    bh_stream_loop_add(
        loop, &(struct bh_streamed){ .source = { source_begin, source_read, source_close, &line.source },
                                     .fd = ends[1],
                                     .ended = source_ended,
                                     .self = &line.source });
    source_give(&line.source, 1, true);
    BH_CHECK("ended", line_ended(&line));
    bh_fd_close(line.fd); /* an event of the copied socket */
    line_open(&other, loop);
    for (int i = 0; i < 100; i++) {
        source_give(&other.source, 1, false);
        BH_CHECK_EQ("others are served", line_receive(&other, &byte, 1), 1);
    }
    BH_CHECK_EQ("ended once", line.source.ended, 1);
    bh_fd_close(copy);
    bh_fd_close(other.fd);
    loop_close_for_test(loop);
    BH_CHECK_DONE();
}

static void
what_comes_after_a_stop_ends_at_once(void **state)
{
    struct bh_stream_loop *loop = loop_open_for_test(PATIENCE_NS);
    struct line line = { 0 };
    char byte;

    bh_stream_loop_stop(loop);
    line_open(&line, loop);
    BH_CHECK_EQ("ended", line.source.ended, 1);
    BH_CHECK_EQ("for the client, too", recv(line.fd, &byte, 1, 0), 0);
    bh_fd_close(line.fd);
    bh_stream_loop_free(loop);
    BH_CHECK_DONE();
}

/* ---- all at once, in any order ---- */

struct mixed {
    struct line line;
    uint64_t received;
    bool gone, over;
};

static void
mixed_receive(struct mixed *one, size_t most)
{
    static char bytes[1 << 16];
    ssize_t got =
        one->gone ? 0 : recv(one->line.fd, bytes, most < sizeof bytes ? most : sizeof bytes, MSG_DONTWAIT);

    for (ssize_t i = 0; i < got; i++)
        if ((uint8_t)bytes[i] != (one->received + (uint64_t)i) % 251)
            fail_msg("byte %llu is wrong", (unsigned long long)one->received + (unsigned long long)i);
    one->received += got > 0 ? (uint64_t)got : 0;
}

static void
mixed_step(struct mixed *one, uint64_t draw)
{
    switch (draw % 16) {
    case 0:
        if (!one->gone && draw >> 8 & 1)
            bh_fd_close(one->line.fd);
        one->gone = one->gone || draw >> 8 & 1;
        break;
    case 1:
        source_give(&one->line.source, 0, true);
        one->over = true;
        break;
    case 2:
    case 3:
    case 4:
        if (!one->over)
            source_give(&one->line.source, (draw >> 8) % (1 << (draw >> 40) % 19), false);
        break;
    case 5:
        source_give(&one->line.source, 0, false);
        break;
    default:
        mixed_receive(one, 1 + (draw >> 8) % (1 << 16));
    }
}

/* To the end, where nothing may be missing. */
static bool
mixed_finish(struct mixed *one)
{
    bool whole;

    source_give(&one->line.source, 0, true);
    while (!one->gone && one->received < one->line.source.given) {
        struct pollfd at = { one->line.fd, POLLIN, 0 };

        if (poll(&at, 1, (int)(WITHIN_NS / BH_NS_PER_MS)) <= 0)
            return false;
        mixed_receive(one, 1 << 16);
    }
    whole = line_ended(&one->line);
    if (!one->gone)
        bh_fd_close(one->line.fd);
    return whole;
}

static void
any_order_keeps_every_stream_whole(void **state)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct bh_stream_loop *loop = loop_open_for_test(PATIENCE_NS);
        static struct mixed mixed[MIXED];
        uint64_t random = seed;
        char name[32];

        memset(mixed, 0, sizeof mixed);
        snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
        for (size_t i = 0; i < MIXED; i++)
            line_open(&mixed[i].line, loop);
        for (int i = 0; i < STEPS; i++) {
            uint64_t draw = bh_splitmix_next(&random);

            mixed_step(&mixed[draw >> 56 & (uint64_t)(MIXED - 1)], draw);
        }
        for (size_t i = 0; i < MIXED; i++)
            BH_CHECK(name, mixed_finish(&mixed[i]));
        loop_close_for_test(loop);
    }
    BH_CHECK_DONE();
}

static int
allow_many_sockets(void **state)
{
    struct rlimit limit;

    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -1;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_sent_as_it_comes_with_its_end),
        cmocka_unit_test(a_thousand_streams_have_one_thread),
        cmocka_unit_test(a_reader_that_stops_is_not_read_for),
        cmocka_unit_test(a_reader_that_takes_nothing_for_long_is_given_up),
        cmocka_unit_test(a_reader_that_goes_is_let_go_at_once),
        cmocka_unit_test(a_half_closed_tcp_connection_is_over),
        cmocka_unit_test(a_copied_descriptor_outlives_its_stream),
        cmocka_unit_test(what_comes_after_a_stop_ends_at_once),
        cmocka_unit_test(any_order_keeps_every_stream_whole),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, allow_many_sockets, NULL);
}
