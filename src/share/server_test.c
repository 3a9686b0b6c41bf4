/* bulkhead-share as its two sides see it: the node on a socket, processes at the door. */
#include "share/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"
#include "bulkhead/share_door.h"
#include "share/message.h"
#include "wire/frame_io.h"

#define MIB (UINT64_C(1) << 20)
#define UNTIL_OF(guest) atomic_load(&(guest).limits->device[0].until_ns)
#define UUID "GPU-00112233-4455-6677-8899-aabbccddeeff"

struct fixture {
    char folder[64];
    pid_t server;
    struct bh_link *link;
    struct bh_share_notice notice; /* the last one */
    uint64_t round_ns;             /* of turns; 0: as usual */
};

/* A process's side, as the shim has it. */
struct guest {
    int fd, slot;
    uint32_t answer;
    const struct bh_share_limits *limits;
    struct bh_share_usage *usage;
};

/* ---- the node's side ---- */

static void
start_server(struct fixture *fixture)
{
    struct bh_err err = { 0 };
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    fixture->server = fork();
    if (fixture->server == 0) {
        close(pair[0]);
        _exit(bh_share_serve(pair[1], &(struct bh_turns_options) { .round_ns = fixture->round_ns },
                             &err) ==
                      BH_UNAVAILABLE
                  ? 0
                  : 1);
    }
    close(pair[1]);
    fixture->link = bh_link_new(pair[0]);
}

static void
stop_server(struct fixture *fixture, int signal)
{
    int status;

    if (signal != 0)
        kill(fixture->server, signal);
    bh_link_free(fixture->link);
    fixture->link = NULL;
    assert_int_equal(waitpid(fixture->server, &status, 0), fixture->server);
    if (signal == 0)
        assert_int_equal(status, 0);
}

static const uint64_t long_round_ns = 20 * BH_NS_PER_S;

static int
set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture) { .folder = "/tmp/bh-share-XXXXXX" };
    fixture.round_ns = *state != NULL ? *(const uint64_t *)*state : 0;
    *state = &fixture;
    if (geteuid() != 0 || mkdtemp(fixture.folder) == NULL)
        return -1;
    start_server(&fixture);
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *fixture = *state;
    char command[128];

    if (fixture->link != NULL)
        stop_server(fixture, 0);
    snprintf(command, sizeof(command), "%s/door", fixture->folder);
    rmdir(command);
    return rmdir(fixture->folder);
}

/* The next message of that kind; others on the way are kept or dropped. */
static void
await(struct fixture *fixture, uint32_t number, void *ret_message)
{
    uint64_t until = bh_time_monotonic() + 20 * BH_NS_PER_S;
    static struct bh_arena *arena;
    struct bh_err err = { 0 };
    struct bh_frame frame;

    bh_arena_free(arena);
    arena = bh_arena_new(1 << 18);
    while (bh_time_monotonic() < until) {
        struct pollfd poll_fd = { bh_link_fd(fixture->link), POLLIN, 0 };

        while (bh_link_next(fixture->link, &frame, &err) == BH_OK) {
            const struct bh_fields *fields = bh_share_message_fields(frame.number);

            assert_non_null(fields);
            if (frame.number == BH_SHARE_MSG_NOTICE)
                assert_int_equal(
                    bh_frame_decode(&frame, fields, &fixture->notice, arena, &err), BH_OK);
            if (frame.number != number)
                continue;
            assert_int_equal(bh_frame_decode(&frame, fields, ret_message, arena, &err), BH_OK);
            return;
        }
        poll(&poll_fd, 1, 1000);
        assert_int_equal(bh_link_readable(fixture->link, &err), BH_OK);
    }
    fail_msg("no message %u within 20 s", number);
}

static struct bh_share_open
lease_of(const struct fixture *fixture, uint64_t lease, uint64_t cap_mib)
{
    struct bh_share_open open = { .lease = lease, .weight = 2100, .gpu_count = 1 };

    snprintf(open.folder, sizeof(open.folder), "%s/%llu", fixture->folder,
             (unsigned long long)lease);
    open.gpus[0] = (struct bh_share_gpu) { .uuid = UUID, .cap_bytes = cap_mib * MIB,
                                           .context_bytes = 2 * MIB,
                                           .memory_bytes = 80 * 1024 * MIB };
    mkdir(open.folder, 0700);
    return open;
}

static void
send_message(struct fixture *fixture, uint32_t number, const void *message)
{
    struct bh_err err = { 0 };

    assert_int_equal(bh_link_send(fixture->link, number, bh_share_message_fields(number),
                                  message, &err),
                     BH_OK);
}

static uint32_t
ask(struct fixture *fixture, const struct bh_share_open *open)
{
    struct bh_share_outcome outcome;

    send_message(fixture, BH_SHARE_MSG_OPEN, open);
    await(fixture, BH_SHARE_MSG_ANSWER, &outcome);
    assert_int_equal(outcome.lease, open->lease);
    return outcome.rc;
}

static void
close_lease(struct fixture *fixture, uint64_t lease)
{
    struct bh_share_close close = { .lease = lease };
    struct bh_share_outcome outcome;
    char path[96];

    send_message(fixture, BH_SHARE_MSG_CLOSE, &close);
    await(fixture, BH_SHARE_MSG_ANSWER, &outcome);
    snprintf(path, sizeof(path), "%s/%llu/door", fixture->folder, (unsigned long long)lease);
    rmdir(path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
}

/* ---- a process's side ---- */

static int
knock(const struct fixture *fixture, uint64_t lease)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%llu/door/share.sock",
             fixture->folder, (unsigned long long)lease);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void
receive(struct guest *guest)
{
    struct bh_share_welcome welcome = { 0 };
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = { &welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof(control.bytes) };
    int fds[2];

    assert_int_equal(recvmsg(guest->fd, &message, 0), sizeof(welcome));
    guest->answer = welcome.answer;
    guest->slot = welcome.slot;
    if (welcome.answer != BH_SHARE_WELCOME)
        return;
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
    assert_ptr_equal(mmap(NULL, sizeof(struct bh_share_limits), PROT_READ | PROT_WRITE,
                          MAP_SHARED, fds[0], 0),
                     MAP_FAILED);
    assert_int_equal(ftruncate(fds[1], 0), -1);
    guest->limits =
        mmap(NULL, sizeof(struct bh_share_limits), PROT_READ, MAP_SHARED, fds[0], 0);
    guest->usage = mmap(NULL, sizeof(struct bh_share_usage), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fds[1], 0);
    close(fds[0]);
    close(fds[1]);
}

static struct guest
come_in(const struct fixture *fixture, uint64_t lease, struct bh_share_hello hello)
{
    struct guest guest = { .fd = knock(fixture, lease), .slot = -1 };

    assert_int_equal(send(guest.fd, &hello, sizeof(hello), 0), sizeof(hello));
    receive(&guest);
    return guest;
}

static const struct bh_share_hello new_one = { BH_SHARE_MAGIC, BH_SHARE_VERSION, -1, 0 };

static uint32_t
turn_of(const struct guest *guest)
{
    return atomic_load(&guest->limits->device[0].turn);
}

static void
say(const struct guest *guest, enum bh_share_word word)
{
    struct bh_share_say said = { .word = word, .turn = turn_of(guest) };

    assert_int_equal(send(guest->fd, &said, sizeof(said), 0), sizeof(said));
}

static bool
comes(const struct guest *guest, uint32_t flags, uint64_t within_ms)
{
    uint64_t until = bh_time_monotonic() + within_ms * BH_NS_PER_MS;

    while ((turn_of(guest) & (BH_SHARE_TURN_STEP - 1)) != flags)
        if (bh_time_monotonic() > until)
            return false;
        else
            bh_time_sleep(100000);
    return true;
}

static bool
falls_to(const struct guest *guest, uint32_t units)
{
    uint64_t until = bh_time_monotonic() + 5 * BH_NS_PER_S;

    while (bh_share_used(guest->usage, 0) != units)
        if (bh_time_monotonic() > until)
            return false;
        else
            bh_time_sleep(1000000);
    return true;
}

/* ---- stories ---- */

static void
a_process_comes_and_dies(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 7, 1024);
    struct guest me;
    pid_t other;
    int pipe_fds[2], tries = 5000;
    char byte;

    assert_int_equal(ask(fixture, &open), BH_OK);
    assert_int_equal(ask(fixture, &open), BH_OK); /* again: as before */
    me = come_in(fixture, 7, new_one);
    BH_CHECK_EQ("welcome", me.answer, BH_SHARE_WELCOME);
    BH_CHECK_EQ("cap", me.limits->device[0].cap_units, 512);
    BH_CHECK_EQ("uuid", me.limits->device[0].uuid[15], 0xff);
    BH_CHECK_EQ("shut", turn_of(&me) & BH_SHARE_SHUT, BH_SHARE_SHUT);
    BH_CHECK("mine", bh_share_change(me.usage, 0, (uint32_t)me.slot, 10, 512));
    assert_int_equal(pipe(pipe_fds), 0);
    other = fork();
    if (other == 0) {
        struct guest it = come_in(fixture, 7, new_one);

        atomic_store(&it.usage->pid[it.slot], (uint32_t)getpid());
        if (it.slot != me.slot && bh_share_change(it.usage, 0, (uint32_t)it.slot, 500, 512))
            (void)!write(pipe_fds[1], "k", 1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    BH_CHECK_EQ("both", bh_share_used(me.usage, 0), 510);
    BH_CHECK("not over the cap", !bh_share_change(me.usage, 0, (uint32_t)me.slot, 3, 512));
    kill(other, SIGKILL);
    BH_CHECK("given back by dying", falls_to(&me, 10));
    for (uint64_t i = 0; i < 2; i++) {
        struct bh_share_overhead more = { .lease = 7, .bytes = (10 + 4 * i) * 2 * MIB + MIB };

        send_message(fixture, BH_SHARE_MSG_OVERHEAD, &more);
    }
    BH_CHECK_EQ("again", ask(fixture, &open), BH_OK); /* and so they were heard */
    BH_CHECK_EQ("the less of two, rounded up",
                atomic_load(&me.limits->device[0].overhead_units), 1);
    waitpid(other, NULL, 0);
    while (me.usage->pid[me.slot + 1] != 0 && tries-- > 0)
        bh_time_sleep(1000000);
    BH_CHECK_EQ("nobody's", me.usage->pid[me.slot + 1], 0);
    close(me.fd);
    close_lease(fixture, 7);
    BH_CHECK_DONE();
}

/* What it reserved, what its driver's library asked for, what the driver says. */
static void
three_counts_are_told(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 7, 1024);
    struct bh_share_overhead driver = { .lease = 7, .bytes = 77 * MIB };
    struct bh_share_state said = { 0 };
    const struct bh_share_lease_state *lease;
    struct guest me;

    assert_int_equal(ask(fixture, &open), BH_OK);
    me = come_in(fixture, 7, new_one);
    send_message(fixture, BH_SHARE_MSG_OVERHEAD, &driver);
    BH_CHECK("reserved", bh_share_change(me.usage, 0, (uint32_t)me.slot, 10, 512));
    atomic_store(&me.usage->seen[me.slot].grains[0], 160);
    atomic_store(&me.usage->seen_kind[me.slot], BH_SHARE_SEEN_WHOLE);
    do { /* one may have been on its way */
        await(fixture, BH_SHARE_MSG_STATE, &said);
        lease = said.leases.items;
    } while (said.leases.count == 0 || lease->seen_kind == BH_SHARE_SEEN_NOT);
    BH_CHECK_EQ("charged", lease->used_bytes[0], 20 * MIB);
    BH_CHECK_EQ("asked for", lease->seen_mib[0], 10);
    BH_CHECK_EQ("whole", lease->seen_kind, BH_SHARE_SEEN_WHOLE);
    BH_CHECK_EQ("the driver", lease->driver_mib[0], 77);
    close(me.fd);
    close_lease(fixture, 7);
    BH_CHECK_DONE();
}

/* Who looks sees the pages, has no slot, and what its process joined as stays. */
static void
one_looks(void **state)
{
    static const struct bh_share_hello look = { BH_SHARE_MAGIC, BH_SHARE_VERSION,
                                                BH_SHARE_LOOK, 0 };
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 6, 1024);
    struct guest me, view, next;

    assert_int_equal(ask(fixture, &open), BH_OK);
    me = come_in(fixture, 6, new_one);
    BH_CHECK("mine", bh_share_change(me.usage, 0, (uint32_t)me.slot, 10, 512));
    view = come_in(fixture, 6, look);
    BH_CHECK_EQ("welcome", view.answer, BH_SHARE_WELCOME);
    BH_CHECK_EQ("no slot", view.slot, -1);
    BH_CHECK_EQ("what there is", bh_share_used(view.usage, 0), 10);
    close(view.fd);
    next = come_in(fixture, 6, look); /* the end of the first is known by now */
    BH_CHECK_EQ("again", next.answer, BH_SHARE_WELCOME);
    BH_CHECK_EQ("still mine", bh_share_used(me.usage, 0), 10);
    say(&me, BH_SHARE_WANT);
    BH_CHECK("and heard", comes(&me, 0, 5000));
    close(next.fd);
    close(me.fd);
    close_lease(fixture, 6);
    BH_CHECK_DONE();
}

/* Two copies of the library in one process (dlmopen) have a seat each; what it began as before
 * another program has none. */
static int
two_copies(const struct fixture *fixture)
{
    struct guest first = come_in(fixture, 5, new_one), second, third;

    if (!bh_share_change(first.usage, 0, (uint32_t)first.slot, 10, 512))
        return 1;
    second = come_in(fixture, 5, new_one);
    if (second.answer != BH_SHARE_WELCOME || second.slot == first.slot ||
        !bh_share_change(second.usage, 0, (uint32_t)second.slot, 20, 512))
        return 2;
    say(&first, BH_SHARE_WANT);
    if (!comes(&first, 0, 5000) || bh_share_used(first.usage, 0) != 30)
        return 3;
    /* As exec does it: mappings and connections go, the process stays. */
    close(first.fd);
    close(second.fd);
    munmap(first.usage, sizeof(*first.usage));
    munmap(second.usage, sizeof(*second.usage));
    third = come_in(fixture, 5, new_one);
    return bh_share_used(third.usage, 0) == 0 ? 0 : 4;
}

static void
each_copy_has_a_seat(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 5, 1024);
    pid_t child;
    int status;

    assert_int_equal(ask(fixture, &open), BH_OK);
    child = fork();
    if (child == 0)
        _exit(two_copies(fixture));
    assert_int_equal(waitpid(child, &status, 0), child);
    BH_CHECK_EQ("both work", status, 0);
    close_lease(fixture, 5);
    BH_CHECK_DONE();
}

/* As many as there is room for; the next is refused at once, and nobody loses anything. */
static void
the_last_seat(void **state)
{
    static struct guest guest[BH_SHARE_SLOTS_MAX];
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 4, 1024);
    struct guest late;

    assert_int_equal(ask(fixture, &open), BH_OK);
    for (int i = 0; i < BH_SHARE_SLOTS_MAX; i++) {
        guest[i] = come_in(fixture, 4, new_one);
        if (guest[i].answer != BH_SHARE_WELCOME)
            fail_msg("guest %d", i);
        if (i > 0) /* one mapping is enough to look */
            munmap(guest[i].usage, sizeof(*guest[i].usage));
        munmap((void *)(uintptr_t)guest[i].limits, sizeof(*guest[i].limits));
    }
    BH_CHECK("mine", bh_share_change(guest[0].usage, 0, (uint32_t)guest[0].slot, 10, 512));
    late = come_in(fixture, 4, new_one);
    BH_CHECK_EQ("one too many", late.answer, BH_SHARE_FULL);
    for (int i = 0; i < 100 && fixture->notice.kind != BH_SHARE_NOTICE_FULL; i++)
        BH_CHECK_EQ("again", ask(fixture, &open), BH_OK); /* and what comes before is heard */
    BH_CHECK_EQ("the node is told", fixture->notice.kind, BH_SHARE_NOTICE_FULL);
    BH_CHECK_EQ("of this lease", fixture->notice.lease, 4);
    BH_CHECK_EQ("nothing lost", bh_share_used(guest[0].usage, 0), 10);
    for (int i = 0; i < BH_SHARE_SLOTS_MAX; i++)
        close(guest[i].fd);
    close(late.fd);
    close_lease(fixture, 4);
    BH_CHECK_DONE();
}

static void
turns_go_round(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open one = lease_of(fixture, 1, 2), two = lease_of(fixture, 2, 2);
    struct guest a, b;

    assert_int_equal(ask(fixture, &one), BH_OK);
    assert_int_equal(ask(fixture, &two), BH_OK);
    a = come_in(fixture, 1, new_one);
    b = come_in(fixture, 2, new_one);
    say(&a, BH_SHARE_WANT);
    BH_CHECK("alone", comes(&a, 0, 5000));
    say(&b, BH_SHARE_WANT);
    BH_CHECK("over", comes(&a, BH_SHARE_SHUT, 5000));
    BH_CHECK("not before it is drained", (turn_of(&b) & BH_SHARE_SHUT) != 0);
    say(&a, BH_SHARE_DRAINED);
    BH_CHECK("then", comes(&b, BH_SHARE_CONTENDED, 5000));
    say(&b, BH_SHARE_IDLE);
    BH_CHECK("shut", comes(&b, BH_SHARE_SHUT, 5000));
    say(&b, BH_SHARE_DRAINED);
    BH_CHECK("passed on", comes(&a, 0, 5000));
    close(a.fd);
    close(b.fd);
    close_lease(fixture, 1);
    close_lease(fixture, 2);
    BH_CHECK_DONE();
}

/* Who has a turn while others wait is told when it ends.  When nothing more of his fits in, the
 * next one has it, or he goes on; beside one that may come at any time there is no end. */
static void
a_turn_has_an_end(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open[] = { lease_of(fixture, 1, 2), lease_of(fixture, 2, 2),
                                    lease_of(fixture, 3, 2) };
    struct guest a, b, beside;
    uint64_t until_ns;
    uint32_t turn;

    open[0].weight = 420;
    open[1].weight = 3780;
    open[2].latency = true;
    assert_int_equal(ask(fixture, &open[0]), BH_OK);
    assert_int_equal(ask(fixture, &open[1]), BH_OK);
    a = come_in(fixture, 1, new_one);
    b = come_in(fixture, 2, new_one);
    beside = come_in(fixture, 2, new_one);
    say(&a, BH_SHARE_WANT);
    BH_CHECK("alone", comes(&a, 0, 5000));
    BH_CHECK_EQ("no end", UNTIL_OF(a), 0);
    say(&b, BH_SHARE_WANT);
    say(&beside, BH_SHARE_WANT);
    BH_CHECK("others wait", comes(&a, BH_SHARE_CONTENDED, 5000));
    until_ns = UNTIL_OF(a);
    BH_CHECK("it ends", until_ns > 0 && until_ns < bh_time_monotonic() + long_round_ns);
    bh_time_sleep(20 * BH_NS_PER_MS); /* the other has nine times as much before it is ahead */
    say(&a, BH_SHARE_DRAINED);
    BH_CHECK("nothing more fits: handed over", comes(&b, BH_SHARE_CONTENDED, 5000));
    BH_CHECK("before it ended", bh_time_monotonic() < until_ns);
    BH_CHECK("shut, without an end", (turn_of(&a) & BH_SHARE_SHUT) != 0 && UNTIL_OF(a) == 0);
    turn = turn_of(&b);
    until_ns = UNTIL_OF(b);
    say(&b, BH_SHARE_DRAINED);
    BH_CHECK("heard", ask(fixture, &open[0]) == BH_OK && ask(fixture, &open[0]) == BH_OK);
    BH_CHECK_EQ("one of two is not enough", turn_of(&b), turn);
    say(&beside, BH_SHARE_IDLE);
    for (int i = 0; i < 50000 && turn_of(&b) == turn; i++)
        bh_time_sleep(100000);
    BH_CHECK("it had less than the other: it goes on", comes(&b, BH_SHARE_CONTENDED, 0));
    BH_CHECK("to another end", UNTIL_OF(b) != until_ns);
    BH_CHECK("a latency share", ask(fixture, &open[2]) == BH_OK && ask(fixture, &open[2]) == BH_OK);
    BH_CHECK_EQ("no end", UNTIL_OF(b), 0);
    for (uint64_t lease = 3; lease > 0; close_lease(fixture, lease--))
        ;
    BH_CHECK_DONE();
}

static void
allow(struct fixture *fixture, uint64_t lease, bool paused)
{
    struct bh_share_allow allow = { .lease = lease, .paused = paused };

    send_message(fixture, BH_SHARE_MSG_ALLOW, &allow);
}

/* One that is frozen in the middle of its turn keeps nobody out, and finds its own again. */
static void
one_is_paused(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open one = lease_of(fixture, 1, 2), two = lease_of(fixture, 2, 2);
    struct guest a, b;

    assert_int_equal(ask(fixture, &one), BH_OK);
    assert_int_equal(ask(fixture, &two), BH_OK);
    a = come_in(fixture, 1, new_one);
    b = come_in(fixture, 2, new_one);
    say(&a, BH_SHARE_WANT);
    BH_CHECK("alone", comes(&a, 0, 5000));
    allow(fixture, 1, true);
    BH_CHECK("shut", comes(&a, BH_SHARE_SHUT, 5000));
    say(&b, BH_SHARE_WANT);
    BH_CHECK("not waited for", comes(&b, 0, 5000));
    allow(fixture, 1, false);
    BH_CHECK("it waits again", comes(&b, BH_SHARE_SHUT, 5000));
    say(&b, BH_SHARE_DRAINED);
    BH_CHECK("and has its turn", comes(&a, BH_SHARE_CONTENDED, 5000));
    allow(fixture, 9, true); /* no such lease: nothing */
    stop_server(fixture, SIGKILL);
    start_server(fixture);
    one.paused = true;
    assert_int_equal(ask(fixture, &one), BH_OK);
    assert_int_equal(ask(fixture, &two), BH_OK);
    BH_CHECK("paused as it was", comes(&b, 0, 5000));
    BH_CHECK("the other is shut", comes(&a, BH_SHARE_SHUT, 5000));
    close(a.fd);
    close(b.fd);
    close_lease(fixture, 1);
    close_lease(fixture, 2);
    BH_CHECK_DONE();
}

/* Killed and started anew: what was reserved stays, who died meanwhile is found. */
static void
started_anew(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 3, 1024);
    struct guest me, again;
    int pipe_fds[2];
    pid_t other;
    char byte;

    assert_int_equal(ask(fixture, &open), BH_OK);
    me = come_in(fixture, 3, new_one);
    BH_CHECK("mine", bh_share_change(me.usage, 0, (uint32_t)me.slot, 5, 512));
    assert_int_equal(pipe(pipe_fds), 0);
    other = fork();
    if (other == 0) {
        struct guest it = come_in(fixture, 3, new_one);

        bh_share_change(it.usage, 0, (uint32_t)it.slot, 100, 512);
        (void)!write(pipe_fds[1], "k", 1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    stop_server(fixture, SIGKILL);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    BH_CHECK_EQ("nobody reaps", bh_share_used(me.usage, 0), 105);
    start_server(fixture);
    assert_int_equal(ask(fixture, &open), BH_OK);
    BH_CHECK("found and reaped", falls_to(&me, 5));
    again = come_in(fixture, 3,
                    (struct bh_share_hello) { BH_SHARE_MAGIC, BH_SHARE_VERSION, me.slot, 0 });
    BH_CHECK_EQ("its slot", again.slot, me.slot);
    BH_CHECK_EQ("the same page", bh_share_used(again.usage, 0), 5);
    say(&again, BH_SHARE_WANT);
    BH_CHECK("and turns", comes(&me, 0, 5000));
    close(me.fd);
    close(again.fd);
    close_lease(fixture, 3);
    BH_CHECK_DONE();
}

static void
refused(void **state)
{
    enum { STRANGER = BH_SHARE_NOTICE_STRANGER };
    static const struct {
        const char *name;
        struct bh_share_hello hello;
        uint32_t answer, told;
    } cases[] = {
        { "another version", { BH_SHARE_MAGIC, 9, -1, 0 }, BH_SHARE_BAD_VERSION, STRANGER },
        { "another thing", { 1, BH_SHARE_VERSION, -1, 0 }, BH_SHARE_BAD_VERSION, STRANGER },
        { "another's slot", { BH_SHARE_MAGIC, BH_SHARE_VERSION, 5, 0 }, BH_SHARE_STRANGER,
          STRANGER },
        { "a static program", { BH_SHARE_MAGIC, BH_SHARE_VERSION, BH_SHARE_STATIC, 0 },
          BH_SHARE_STRANGER, BH_SHARE_NOTICE_STATIC },
        { "no slot", { BH_SHARE_MAGIC, BH_SHARE_VERSION, 1 << 20, 0 }, BH_SHARE_STRANGER,
          STRANGER },
    };
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 4, 2), bad = open;
    struct bh_share_notice notice;

    assert_int_equal(ask(fixture, &open), BH_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct guest it = come_in(fixture, 4, cases[i].hello);

        BH_CHECK_EQ(cases[i].name, it.answer, cases[i].answer);
        await(fixture, BH_SHARE_MSG_NOTICE, &notice);
        BH_CHECK_EQ(cases[i].name, notice.kind, cases[i].told);
        BH_CHECK_EQ(cases[i].name, notice.pid, getpid());
        close(it.fd);
    }
    close_lease(fixture, 4);
    bad.gpus[0].cap_bytes++;
    BH_CHECK_EQ("no units", ask(fixture, &bad), BH_INVALID);
    bad = open;
    snprintf(bad.gpus[0].uuid, sizeof(bad.gpus[0].uuid), "GPU-xyz");
    BH_CHECK_EQ("no UUID", ask(fixture, &bad), BH_INVALID);
    BH_CHECK_DONE();
}

/* More in a slot than was ever reserved: told, and not made good by others' memory. */
static void
forged(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 5, 2);
    struct bh_share_notice notice;
    struct guest me;
    pid_t other;

    assert_int_equal(ask(fixture, &open), BH_OK);
    other = fork();
    if (other == 0) {
        struct guest it = come_in(fixture, 5, new_one);

        memset(it.usage->slot, 0x5a, sizeof(it.usage->slot));
        _exit(0);
    }
    waitpid(other, NULL, 0);
    await(fixture, BH_SHARE_MSG_NOTICE, &notice);
    BH_CHECK_EQ("told", notice.kind, BH_SHARE_NOTICE_FORGED);
    BH_CHECK_EQ("of whom", notice.pid, other);
    me = come_in(fixture, 5, new_one);
    BH_CHECK("its slot is not given again", me.answer == BH_SHARE_WELCOME && me.slot > 0);
    close(me.fd);
    close_lease(fixture, 5);
    BH_CHECK_DONE();
}

/* One that joined before an update goes on counting in its own page: nobody joins beside it. */
static void
outdated(void **state)
{
    static const int32_t slots[] = { 0, BH_SHARE_LOOK, -1 };
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 11, 1024);
    struct bh_share_overhead driver = { .lease = 11, .bytes = 900 * MIB };
    struct guest it;
    int pipe_fds[2], tries = 5000;
    pid_t old;
    char byte;

    assert_int_equal(ask(fixture, &open), BH_OK);
    assert_int_equal(pipe(pipe_fds), 0);
    old = fork();
    if (old == 0) {
        it = come_in(fixture, 11, new_one);
        munmap(it.usage, sizeof(*it.usage));
        if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
                 memfd_create("bulkhead-usage", 0), 0) != MAP_FAILED)
            (void)!write(pipe_fds[1], "k", 1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    stop_server(fixture, SIGKILL);
    start_server(fixture);
    assert_int_equal(ask(fixture, &open), BH_OK);
    BH_CHECK_EQ("told at once", fixture->notice.kind, BH_SHARE_NOTICE_OUTDATED);
    for (int k = 0; k < 5; k++) /* of memory that is not in its page nothing is told */
        send_message(fixture, BH_SHARE_MSG_OVERHEAD, &driver);
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
        it = come_in(fixture, 11, (struct bh_share_hello) { BH_SHARE_MAGIC, 2, slots[i], 0 });
        BH_CHECK_EQ("kept out", it.answer, BH_SHARE_BAD_VERSION);
        close(it.fd);
    }
    while (fixture->notice.pid != (uint32_t)getpid())
        assert_int_equal(ask(fixture, &open), BH_OK);
    BH_CHECK_EQ("why", fixture->notice.kind, BH_SHARE_NOTICE_OUTDATED);
    kill(old, SIGKILL);
    waitpid(old, NULL, 0);
    do {
        it = come_in(fixture, 11, new_one);
        close(it.fd);
    } while (it.answer != BH_SHARE_WELCOME && tries-- > 0);
    BH_CHECK("until it is gone", tries > 0);
    close_lease(fixture, 11);
    BH_CHECK_DONE();
}

/* A slot that somebody has is nobody else's, and what was reserved in it stays his. */
static void
anothers_slot(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 8, 1024);
    struct guest me, thief;
    int pipe_fds[2];
    pid_t other;
    char slot;

    assert_int_equal(ask(fixture, &open), BH_OK);
    assert_int_equal(pipe(pipe_fds), 0);
    other = fork();
    if (other == 0) {
        struct guest it = come_in(fixture, 8, new_one);

        bh_share_change(it.usage, 0, (uint32_t)it.slot, 100, 512);
        slot = (char)it.slot;
        (void)!write(pipe_fds[1], &slot, 1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], &slot, 1), 1);
    thief = come_in(fixture, 8,
                    (struct bh_share_hello) { BH_SHARE_MAGIC, BH_SHARE_VERSION, slot, 0 });
    BH_CHECK_EQ("refused", thief.answer, BH_SHARE_STRANGER);
    close(thief.fd);
    me = come_in(fixture, 8, new_one);
    BH_CHECK("another", me.slot >= 0 && me.slot != slot);
    BH_CHECK_EQ("his", bh_share_used(me.usage, 0), 100);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    BH_CHECK("until he dies", falls_to(&me, 0));
    close(me.fd);
    close_lease(fixture, 8);
    BH_CHECK_DONE();
}

/* That a turn was drained is said of that turn: who says it of an earlier one is late. */
static void
late_words(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open one = lease_of(fixture, 9, 2), two = lease_of(fixture, 10, 2);
    struct bh_share_say late = { .word = BH_SHARE_DRAINED };
    struct guest a, b;

    assert_int_equal(ask(fixture, &one), BH_OK);
    assert_int_equal(ask(fixture, &two), BH_OK);
    a = come_in(fixture, 9, new_one);
    b = come_in(fixture, 10, new_one);
    say(&a, BH_SHARE_WANT);
    BH_CHECK("alone", comes(&a, 0, 5000));
    late.turn = turn_of(&a);
    say(&b, BH_SHARE_WANT);
    BH_CHECK("over", comes(&a, BH_SHARE_SHUT, 5000));
    assert_int_equal(send(a.fd, &late, sizeof(late), 0), sizeof(late));
    BH_CHECK_EQ("heard", ask(fixture, &one), BH_OK); /* after it, and twice to be sure */
    BH_CHECK_EQ("heard", ask(fixture, &one), BH_OK);
    BH_CHECK("it is not drained", (turn_of(&b) & BH_SHARE_SHUT) != 0);
    say(&a, BH_SHARE_DRAINED);
    BH_CHECK("now", comes(&b, BH_SHARE_CONTENDED, 5000));
    close(a.fd);
    close(b.fd);
    close_lease(fixture, 9);
    close_lease(fixture, 10);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_copy_has_a_seat, set_up, tear_down), /* others leave mappings */
        cmocka_unit_test_setup_teardown(outdated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_comes_and_dies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(three_counts_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_looks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_seat, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turns_go_round, set_up, tear_down),
        cmocka_unit_test_prestate_setup_teardown(a_turn_has_an_end, set_up, tear_down,
                                                 (void *)(uintptr_t)&long_round_ns),
        cmocka_unit_test_setup_teardown(one_is_paused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(started_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(forged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(anothers_slot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(late_words, set_up, tear_down),
    };

    if (geteuid() != 0)
        return 77; /* looks into other processes' memory maps */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
