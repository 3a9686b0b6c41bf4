#include "tests/shim/sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PEERS_MAX = BH_SHARE_SLOTS_MAX, TRIES = 5 };

/* A generous limit for what must come, since a busy machine delays any process. */
#define PATIENCE_NS UINT64_C(30000000000)

struct shim_sandbox bh_sandbox;
static int limits_fd, usage_fd, listening = -1, restart_pipe[2];
static struct {
    int fd, slot; /* slot -1: no hello yet */
} peers[PEERS_MAX];
static unsigned peer_count;
static _Atomic uint32_t restarts_done;
static bool slot_taken[BH_SHARE_SLOTS_MAX];

static void
need(bool good, const char *what)
{
    if (good)
        return;
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

uint64_t
bh_sandbox_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the server ---- */

static void
server_listen(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = BH_SHARE_SOCKET };

    unlink(BH_SHARE_SOCKET);
    listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    need(listening >= 0 && bind(listening, (const struct sockaddr *)&name, sizeof(name)) == 0
             && listen(listening, 256) == 0,
         "socket");
}

static int
forged_page(void)
{
    int fd = memfd_create("forged", MFD_CLOEXEC);

    need(fd >= 0
             && ftruncate(fd, bh_sandbox.server == SANDBOX_SHORT ? 64 : sizeof(struct bh_share_limits)) == 0,
         "memfd");
    return fd;
}

static void
answer(int fd, int slot, bool full)
{
    enum sandbox_server server = (enum sandbox_server)bh_sandbox.server;
    struct bh_share_welcome welcome = { BH_SHARE_MAGIC, BH_SHARE_VERSION, BH_SHARE_WELCOME, slot };
    int given[2] = { limits_fd, usage_fd };
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(given))];
    struct iovec part = { &welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    bool forged = server == SANDBOX_SHORT || server == SANDBOX_FORGED;

    if (server == SANDBOX_REFUSES || full)
        welcome.answer = BH_SHARE_FULL;
    if (server == SANDBOX_FOREIGN)
        welcome.magic++;
    if (server == SANDBOX_SLOTLESS)
        welcome.slot = BH_SHARE_SLOTS_MAX;
    if (forged)
        given[0] = forged_page();
    if (server != SANDBOX_REFUSES && !full && server != SANDBOX_BARE) {
        struct cmsghdr *rights;

        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        rights = CMSG_FIRSTHDR(&message);
        *rights = (struct cmsghdr){ CMSG_LEN(sizeof(given)), SOL_SOCKET, SCM_RIGHTS };
        memcpy(CMSG_DATA(rights), given, sizeof(given));
    }
    (void)!sendmsg(fd, &message, MSG_NOSIGNAL);
    if (forged)
        close(given[0]);
}

static int
free_slot(int wanted)
{
    for (int i = 0; i < BH_SHARE_SLOTS_MAX; i++)
        if (wanted < 0 ? !slot_taken[i] : i == wanted)
            return i;
    return -1;
}

/* False: this one goes. */
static bool
listen_to(unsigned at)
{
    union {
        struct bh_share_hello hello;
        struct bh_share_client_message client;
    } message;
    ssize_t got = recv(peers[at].fd, &message, sizeof(message), 0);

    if (got <= 0 || (peers[at].slot < 0 && bh_sandbox.server == SANDBOX_HANGS_UP))
        return false;
    if (peers[at].slot < 0 && bh_sandbox.server == SANDBOX_SILENT)
        return true;
    if (peers[at].slot < 0 && message.hello.slot == BH_SHARE_STATIC) {
        bh_sandbox.statics++;
        answer(peers[at].fd, -1, true);
    } else if (peers[at].slot < 0 && message.hello.slot == BH_SHARE_OBSERVE) {
        answer(peers[at].fd, -1, false);
    } else if (peers[at].slot < 0) {
        peers[at].slot = free_slot(message.hello.slot);
        if (peers[at].slot >= 0)
            slot_taken[peers[at].slot] = true;
        answer(peers[at].fd, peers[at].slot, peers[at].slot < 0);
        atomic_fetch_add(&bh_sandbox.joins, 1); /* not before: one that leaves then is known by its slot */
    } else if (message.client.word > 0 && message.client.word < BH_SHARE_CLIENT_KINDS) {
        bh_sandbox.received_slice[message.client.word] = message.client.slice;
        bh_sandbox.received_ns[message.client.word] = bh_sandbox_now_ns();
        atomic_fetch_add(&bh_sandbox.received[message.client.word], 1);
    }
    return true;
}

static void
reap(unsigned at)
{
    int slot = peers[at].slot;

    for (uint32_t device = 0; slot >= 0 && device < BH_SHARE_DEVICES_MAX; device++) {
        uint32_t held = bh_share_held(bh_sandbox.usage, device, (uint32_t)slot);

        if (held > 0)
            (void)bh_share_change(bh_sandbox.usage, device, (uint32_t)slot, -(int32_t)held,
                                  BH_SHARE_UNITS_MAX);
    }
    if (slot >= 0)
        slot_taken[slot] = false;
    close(peers[at].fd);
    peers[at] = peers[--peer_count];
    atomic_fetch_sub(&bh_sandbox.connections, 1);
}

static void
welcome_new(void)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    peers[peer_count].fd = fd;
    peers[peer_count++].slot = -1;
    atomic_fetch_add(&bh_sandbox.connections, 1);
}

static void
server_close(void)
{
    while (peer_count > 0) {
        close(peers[--peer_count].fd);
        atomic_fetch_sub(&bh_sandbox.connections, 1);
        atomic_fetch_add(&bh_sandbox.hang_ups, 1);
    }
    close(listening);
    listening = -1;
    unlink(BH_SHARE_SOCKET);
}

static void
look_around(void)
{
    static struct pollfd look[PEERS_MAX + 2];
    unsigned count = peer_count;
    char byte;

    look[0] = (struct pollfd){ .fd = listening, .events = POLLIN };
    look[1] = (struct pollfd){ .fd = restart_pipe[0], .events = POLLIN };
    for (unsigned i = 0; i < count; i++)
        look[i + 2] = (struct pollfd){ .fd = peers[i].fd, .events = POLLIN };
    if (poll(look, count + 2, -1) <= 0)
        return;
    for (unsigned i = count; i-- > 0;)
        if (look[i + 2].revents != 0 && !listen_to(i))
            reap(i);
    if (look[1].revents != 0 && read(restart_pipe[0], &byte, 1) == 1) {
        if (byte != 'o')
            server_close();
        if (byte != 'n' && listening < 0)
            server_listen();
        atomic_fetch_add(&restarts_done, 1);
    }
    if (look[0].revents != 0 && listening >= 0)
        welcome_new();
}

static void *
server_run(void *self)
{
    for (;;)
        look_around();
    return self;
}

/* ---- the room ---- */

static void *
map_new(const char *path, size_t bytes, int *ret_fd)
{
    int fd =
        path == NULL ? memfd_create("share", MFD_CLOEXEC) : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    void *memory;

    need(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0, "file");
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(memory != MAP_FAILED, "mmap");
    *ret_fd = fd;
    return memory;
}

void
bh_sandbox_copy(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    char part[1 << 16];
    ssize_t got;

    need(in >= 0 && out >= 0, from);
    while ((got = read(in, part, sizeof(part))) > 0)
        need(write(out, part, (size_t)got) == got, to);
    close(in);
    close(out);
}

bool
bh_sandbox_enter(const char *path)
{
    pthread_t thread;
    int world_fd;

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || mount("tmpfs", "/run", "tmpfs", 0, "mode=755") != 0) {
        printf("1..0 # SKIP needs root for a mount namespace\n");
        return false;
    }
    mkdir("/run/bulkhead", 0755);
    mkdir(BH_SHARE_DRIVER_DIR, 0755);
    bh_sandbox_copy(path, BH_SHARE_DRIVER_DIR "/libcuda.so.1");
    bh_sandbox.world = map_new(NULL_WORLD_FILE, SANDBOX_WORLD_BYTES, &world_fd);
    bh_sandbox_world(1);
    bh_sandbox.limits = map_new(NULL, sizeof(*bh_sandbox.limits), &limits_fd);
    bh_sandbox.usage = map_new(NULL, sizeof(*bh_sandbox.usage), &usage_fd);
    need(pipe2(restart_pipe, O_CLOEXEC) == 0, "pipe");
    server_listen();
    need(pthread_create(&thread, NULL, server_run, NULL) == 0, "thread");
    return true;
}

void
bh_sandbox_bring(const char *path, const char *name)
{
    char place[128];

    snprintf(place, sizeof(place), "%s/%s", BH_SHARE_DRIVER_DIR, name);
    bh_sandbox_copy(path, place);
}

bool
bh_sandbox_simulate(const char *topology)
{
    static char folder[] = "/run/sim-XXXXXX";
    char path[64];
    FILE *file;

    if (mkdtemp(folder) == NULL)
        return false;
    snprintf(path, sizeof(path), "%s/topology", folder);
    file = fopen(path, "w");
    if (file == NULL || fputs(topology, file) < 0 || fclose(file) != 0)
        return false;
    return setenv("BULKHEAD_SIM_STATE", folder, 1) == 0;
}

void
bh_sandbox_occupy(unsigned slots)
{
    for (unsigned i = 0; i < BH_SHARE_SLOTS_MAX; i++)
        slot_taken[i] = i < slots;
}

void *
bh_sandbox_driver(const char *name)
{
    void *driver = dlopen(BH_SHARE_DRIVER_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    return driver == NULL ? NULL : dlsym(driver, name);
}

void
bh_sandbox_world(unsigned devices)
{
    pthread_mutexattr_t shared;

    memset(bh_sandbox.world, 0, sizeof(*bh_sandbox.world));
    bh_sandbox.world->devices = devices;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&bh_sandbox.world->lock, &shared);
    pthread_mutexattr_destroy(&shared);
}

void
bh_sandbox_driver_frees(pid_t pid)
{
    struct null_world *world = bh_sandbox.world;

    if (pthread_mutex_lock(&world->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&world->lock);
    for (unsigned i = 0; i < NULL_PROCESSES_MAX; i++)
        if (atomic_load(&world->process[i].pid) == (uint32_t)pid) {
            memset(world->process[i].had, 0, sizeof(world->process[i].had));
            atomic_store(&world->process[i].pid, 0);
        }
    null_world_add_up(world);
    pthread_mutex_unlock(&world->lock);
}

void
bh_sandbox_share(unsigned devices, uint32_t cap, uint32_t context)
{
    bh_sandbox_emptied();
    bh_sandbox_world(devices);
    memset(bh_sandbox.usage, 0, sizeof(*bh_sandbox.usage));
    memset(bh_sandbox.limits, 0, sizeof(*bh_sandbox.limits));
    bh_sandbox.limits->magic = BH_SHARE_MAGIC;
    bh_sandbox.limits->version = BH_SHARE_VERSION;
    bh_sandbox.limits->device_count = devices;
    for (unsigned i = 0; i < devices; i++) {
        memset(bh_sandbox.limits->device[i].uuid, (int)i + 1, 16);
        bh_sandbox.limits->device[i].cap_units = cap;
        bh_sandbox.limits->device[i].context_units = context;
        bh_sandbox.limits->device[i].memory_bytes = cap * BH_SHARE_UNIT_BYTES;
    }
    bh_sandbox.server = SANDBOX_GOOD;
    for (unsigned i = 0; i < BH_SHARE_CLIENT_KINDS; i++)
        bh_sandbox.received[i] = bh_sandbox.received_slice[i] = 0;
}

pid_t
bh_sandbox_start(int (*body)(void *self), void *self)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0)
        _exit(body(self));
    return pid;
}

int
bh_sandbox_wait(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        need(errno == EINTR, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool
bh_sandbox_alive(const pid_t *pids, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        siginfo_t about = { 0 };

        if (waitid(P_PID, (id_t)pids[i], &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid != 0)
            return false;
    }
    return true;
}

int
bh_sandbox_run(int (*body)(void *self), void *self)
{
    return bh_sandbox_wait(bh_sandbox_start(body, self));
}

int
bh_sandbox_run_within(int (*body)(void *self), void *self, uint64_t most_ns)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t from = bh_sandbox_now_ns();
        int status = bh_sandbox_run(body, self);

        if (status != 0 || bh_sandbox_now_ns() - from < most_ns)
            return status;
    }
    return -1;
}

static void
nap(void)
{
    struct timespec little = { 0, 200000 };

    nanosleep(&little, NULL);
}

void
bh_sandbox_emptied(void)
{
    uint64_t until = bh_sandbox_now_ns() + PATIENCE_NS;

    while (atomic_load(&bh_sandbox.connections) > 0) {
        need(bh_sandbox_now_ns() < until, "somebody stays");
        nap();
    }
}

uint32_t
bh_sandbox_used(unsigned device)
{
    return bh_share_used(bh_sandbox.usage, device);
}

bool
bh_sandbox_comes_to(unsigned device, uint32_t units)
{
    uint64_t until = bh_sandbox_now_ns() + PATIENCE_NS;

    while (bh_sandbox_used(device) != units && bh_sandbox_now_ns() < until)
        nap();
    return bh_sandbox_used(device) == units;
}

bool
bh_sandbox_passes(const _Atomic uint64_t *count, uint64_t more)
{
    uint64_t until = bh_sandbox_now_ns() + PATIENCE_NS;

    while (atomic_load(count) <= more && bh_sandbox_now_ns() < until)
        nap();
    return atomic_load(count) > more;
}

void
bh_sandbox_set_slice(unsigned device, uint32_t slice)
{
    bh_sandbox_set_slice_until(device, slice, 0);
}

void
bh_sandbox_set_slice_until(unsigned device, uint32_t slice, uint64_t until_ns)
{
    atomic_store(&bh_sandbox.limits->device[device].until_ns, until_ns);
    atomic_store(&bh_sandbox.limits->device[device].slice, slice);
    syscall(SYS_futex, &bh_sandbox.limits->device[device].slice, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

bool
bh_sandbox_received(enum bh_share_client_kind word, uint32_t more)
{
    uint64_t until = bh_sandbox_now_ns() + PATIENCE_NS;

    while (atomic_load(&bh_sandbox.received[word]) <= more) {
        if (bh_sandbox_now_ns() > until)
            return false;
        nap();
    }
    return true;
}

void
bh_sandbox_restart_server(char what)
{
    uint32_t done = atomic_load(&restarts_done);

    need(write(restart_pipe[1], &what, 1) == 1, "pipe");
    while (atomic_load(&restarts_done) == done)
        nap();
}
