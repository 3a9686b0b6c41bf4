/* Whether the cap holds against processes that race, and how soon the memory of killed processes is free
 * again.
 *
 *   shim_storm NULL_DRIVER [ROUNDS [WAY]]
 *
 * For every way to get memory eight processes take all they can get and give some of it back.
 *
 * In a storm all of them are killed with SIGKILL at a random moment; so many rounds.  Printed: the most that
 * the device ever held, contexts included, what was beyond the cap, and the longest time to an empty page,
 * from the last process's exit and from the kills.
 *
 * In a relay one of them is killed at a random moment while the others continue, and a new one takes its
 * place; ten for each round.  A process's memory is free at the driver before any other process sees that it
 * has ended, as with a driver whose files the kernel closes; only then is the page reaped, so that others
 * take the memory.
 *
 * The driver answers at once and counts what the device holds at every instant; the pages are those of the
 * real bulkhead-share.  Needs root. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"
#include "base/time.h"
#include "share/message.h"
#include "share/server.h"
#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"
#include "tests/shim/ways.h"
#include "wire/frame_io.h"

enum { PROCESSES = 8, LIVE = 40, CAP = 1024, CONTEXT = 16, RELAYED = 10 };
#define LEASE_FOLDER "/run/lease"
#define UUID "GPU-01010101-0101-0101-0101-010101010101" /* the null driver's first */

static pid_t server;
static struct bh_link *link_to_server;
static struct bh_share_usage *usage;
static int holding = -1;

/* ---- bulkhead-share, and its socket where processes look ---- */

static void
must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "shim_storm: %s\n", what);
    exit(3);
}

static void
start_server(void)
{
    struct bh_err err = { 0 };
    int pair[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
    server = fork();
    if (server == 0) {
        close(pair[0]);
        _exit(bh_share_serve(pair[1], &(struct bh_time_slices_options){ 0 }, &err) != BH_OK);
    }
    close(pair[1]);
    link_to_server = bh_link_new(pair[0]);
}

static void
open_lease(void)
{
    struct bh_share_open open = { .lease = 1, .folder = LEASE_FOLDER, .weight = 2100, .gpu_count = 1 };
    struct pollfd answer = { bh_link_fd(link_to_server), POLLIN, 0 };
    struct bh_err err = { 0 };

    open.gpus[0] = (struct bh_share_gpu){ .uuid = UUID,
                                          .cap_bytes = CAP * BH_SHARE_UNIT_BYTES,
                                          .context_bytes = CONTEXT * BH_SHARE_UNIT_BYTES,
                                          .memory_bytes = CAP * BH_SHARE_UNIT_BYTES };
    must(mkdir(LEASE_FOLDER, 0700) == 0, "folder");
    must(bh_link_send(link_to_server, BH_SHARE_MSG_OPEN, bh_share_message_fields(BH_SHARE_MSG_OPEN), &open,
                      &err)
             == BH_OK,
         "open");
    for (int i = 0; i < 100 && access(LEASE_FOLDER "/door/share.sock", F_OK) != 0; i++)
        (void)poll(&answer, 1, 50);
    bh_time_sleep(50000000); /* bound, and then listened to */
    bh_sandbox_restart_server('n');
    for (int i = 0; i < 1000 && access(BH_SHARE_SOCKET, F_OK) == 0; i++)
        bh_time_sleep(1000000);
    must(symlink(LEASE_FOLDER "/door/share.sock", BH_SHARE_SOCKET) == 0, "socket");
}

/* As a reader: the usage page, to watch it. */
static void
look(void)
{
    struct bh_share_hello hello = { BH_SHARE_MAGIC, BH_SHARE_VERSION, BH_SHARE_OBSERVE, 0 };
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = BH_SHARE_SOCKET };
    struct bh_share_welcome welcome = { 0 };
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = { &welcome, sizeof(welcome) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    int fds[2];

    holding = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    must(connect(holding, (struct sockaddr *)&address, sizeof(address)) == 0
             && send(holding, &hello, sizeof(hello), 0) == (ssize_t)sizeof(hello)
             && recvmsg(holding, &message, 0) == (ssize_t)sizeof(welcome)
             && welcome.answer == BH_SHARE_WELCOME,
         "not welcome");
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
    usage = mmap(NULL, sizeof(*usage), PROT_READ, MAP_SHARED, fds[1], 0);
    must(usage != MAP_FAILED, "usage");
}

/* ---- a storm ---- */

static uint64_t seed = 88172645463325252u;

static uint64_t
draw(uint64_t below)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed % below;
}

/* Never ends by itself; a call that fails otherwise than by the cap ends it. */
static int
rage(void *self)
{
    const struct bh_way *way = self;
    uint64_t what[LIVE];
    unsigned count = 0;
    CUcontext context;
    CUresult rc;

    seed ^= (uint64_t)getpid() << 20;
    (void)!nice(5); /* the killer, and bulkhead-share, come first */
    GOOD(cuInit(0));
    while (cuDevicePrimaryCtxRetain(&context, 0) == CUDA_ERROR_OUT_OF_MEMORY)
        bh_time_sleep(100000);
    GOOD(cuCtxSetCurrent(context));
    atomic_fetch_add(&bh_sandbox.world->launches, 1);
    for (;;) {
        rc = count < LIVE ? way->get(&what[count]) : CUDA_ERROR_OUT_OF_MEMORY;
        CHECK(rc == CUDA_SUCCESS || rc == CUDA_ERROR_OUT_OF_MEMORY);
        count += rc == CUDA_SUCCESS;
        while (rc != CUDA_SUCCESS && count > 0 && draw(3) != 0)
            GOOD(way->drop(what[--count]));
    }
}

struct found {
    uint64_t most_bytes, from_exit_ns, from_kill_ns;
    uint64_t relay_bytes, killed; /* the most in relays; processes in them */
};

static uint64_t
most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void
start(const struct bh_way *way, pid_t pid[PROCESSES])
{
    bh_sandbox_world(1);
    bh_sandbox.world->context_bytes = CONTEXT * BH_SHARE_UNIT_BYTES;
    for (int i = 0; i < PROCESSES; i++)
        pid[i] = bh_sandbox_start(rage, (void *)(uintptr_t)way);
    for (int i = 0; i < 5000 && atomic_load(&bh_sandbox.world->launches) < PROCESSES; i++)
        bh_time_sleep(200000);
    must(atomic_load(&bh_sandbox.world->launches) > 0, "none began");
}

static void
storm(const struct bh_way *way, struct found *found)
{
    pid_t pid[PROCESSES];
    uint64_t killed, ended, empty;

    start(way, pid);
    bh_time_sleep(2000000 + draw(20000000));
    must(bh_sandbox_alive(pid, PROCESSES), "a process ended by itself");
    /* From the first death on the driver's count is too high: it does not free here what a dead
     * process had, which bulkhead-share gives to those that still live. */
    found->most_bytes = most(found->most_bytes, bh_sandbox.world->most[0]);
    for (int i = 0; i < PROCESSES; i++)
        kill(pid[i], SIGKILL);
    killed = bh_time_monotonic();
    for (int i = 0; i < PROCESSES; i++)
        must(bh_sandbox_wait(pid[i]) == -1, "a process ended by itself");
    ended = bh_time_monotonic();
    while (bh_share_used(usage, 0) != 0)
        must(bh_time_monotonic() - ended < 10 * BH_NS_PER_S, "never empty");
    empty = bh_time_monotonic();
    found->from_exit_ns = most(found->from_exit_ns, empty - ended);
    found->from_kill_ns = most(found->from_kill_ns, empty - killed);
}

/* Of one process, as the kernel orders it: it closes the driver's files before it says that the
 * process is gone.  bulkhead-share stands still until the driver has done its part. */
static void
end_one(pid_t pid)
{
    int status;

    must(kill(server, SIGSTOP) == 0 && waitpid(server, &status, WUNTRACED) == server && WIFSTOPPED(status),
         "bulkhead-share does not stop");
    kill(pid, SIGKILL);
    must(bh_sandbox_wait(pid) == -1, "a process ended by itself");
    bh_sandbox_driver_frees(pid);
    kill(server, SIGCONT);
}

static void
relay(const struct bh_way *way, uint64_t kills, struct found *found)
{
    pid_t pid[PROCESSES];
    uint64_t ended;

    start(way, pid);
    for (uint64_t i = 0; i < kills; i++) {
        pid_t *one = &pid[draw(PROCESSES)];

        bh_time_sleep(draw(4000000));
        must(bh_sandbox_alive(pid, PROCESSES), "a process ended by itself");
        end_one(*one);
        *one = bh_sandbox_start(rage, (void *)(uintptr_t)way);
    }
    must(bh_sandbox_alive(pid, PROCESSES), "a process ended by itself");
    for (int i = 0; i < PROCESSES; i++)
        end_one(pid[i]);
    ended = bh_time_monotonic();
    while (bh_share_used(usage, 0) != 0)
        must(bh_time_monotonic() - ended < 10 * BH_NS_PER_S, "never empty");
    must(bh_sandbox.world->used[0] == 0, "the driver has memory of no process");
    found->relay_bytes = most(found->relay_bytes, bh_sandbox.world->most[0]);
    found->killed += kills + PROCESSES;
}

static uint64_t
beyond(uint64_t bytes)
{
    uint64_t cap = CAP * BH_SHARE_UNIT_BYTES;

    return bytes > cap ? bytes - cap : 0;
}

static void
show(const struct bh_way *way, uint64_t rounds, const struct found *found)
{
    printf("%-36s %d processes killed %lu times: most %lu MiB, %lu B beyond the cap; empty "
           "%.1f ms after the last exit, %.1f after the kills; %lu killed one by one: most %lu "
           "MiB, %lu B beyond the cap\n",
           way->name, PROCESSES, (unsigned long)rounds, (unsigned long)(found->most_bytes >> 20),
           (unsigned long)beyond(found->most_bytes), (double)found->from_exit_ns / 1e6,
           (double)found->from_kill_ns / 1e6, (unsigned long)found->killed,
           (unsigned long)(found->relay_bytes >> 20), (unsigned long)beyond(found->relay_bytes));
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    uint64_t rounds = 10, longest = 0;
    struct bh_err err;
    bool held = true;

    if (argc < 2 || (argc > 2 && bh_parse_u64(argv[2], &rounds, &err) != BH_OK)) {
        fprintf(stderr, "usage: shim_storm NULL_DRIVER [ROUNDS [WAY]]\n");
        return 2;
    }
    if (!bh_sandbox_enter(argv[1]))
        return 77;
    start_server();
    open_lease();
    look();
    for (size_t i = 0; i < bh_way_count; i++) {
        struct found found = { 0 };

        if (argc > 3 && strstr(bh_ways[i].name, argv[3]) == NULL)
            continue;
        for (uint64_t round = 0; round < rounds; round++)
            storm(&bh_ways[i], &found);
        relay(&bh_ways[i], rounds * RELAYED, &found);
        show(&bh_ways[i], rounds, &found);
        held &= beyond(most(found.most_bytes, found.relay_bytes)) == 0;
        longest = most(longest, found.from_exit_ns);
    }
    kill(server, SIGKILL);
    (void)bh_sandbox_wait(server);
    printf("longest: %.1f ms after an exit (asked: 100)\n", (double)longest / 1e6);
    return held ? 0 : 1;
}
