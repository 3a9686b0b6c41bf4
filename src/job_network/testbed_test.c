#include "job_network/testbed_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "job_network/filter.h"
#include "job_network/link.h"
#include "job_network/netlink.h"
#include "job_network/netns.h"

enum { SLOTS = 64, PATIENCE_MS = 400 };

const char *
bh_testbed_obstacle(void)
{
    struct bh_err err;

    if (geteuid() != 0)
        return "needs root";
    return bh_filter_check("nft", &err) == BH_OK ? NULL : "nft is not installed";
}

/* ---- making it ---- */

static void
set_up_end(int links, const char *name, const uint32_t *addresses, size_t count)
{
    uint32_t index = bh_link_find(links, name);
    struct bh_err err;

    for (size_t i = 0; i < count; i++)
        assert_int_equal(bh_link_add_address(links, index, addresses[i], &err), BH_OK);
    assert_int_equal(bh_link_set_up(links, index, true, &err), BH_OK);
    assert_int_equal(bh_link_set_up(links, 1, true, &err), BH_OK);
}

static void
make_outside(struct bh_testbed *testbed)
{
    static const uint32_t outside[] = { TESTBED_OUTSIDE, TESTBED_OTHER, TESTBED_METADATA };
    static const uint32_t here[] = { TESTBED_HERE };
    int links = -1, beyond = -1;
    struct bh_link_pair pair = { "up0", "out0", { 6, 0, 0, 0, 0, 1 }, { 6, 0, 0, 0, 0, 2 }, 0, -1 };
    struct bh_err err;

    assert_int_equal(bh_netlink_open(NETLINK_ROUTE, &links, &err), BH_OK);
    assert_int_equal(unshare(CLONE_NEWNET), 0);
    testbed->outside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    assert_int_equal(bh_netlink_open(NETLINK_ROUTE, &beyond, &err), BH_OK);
    assert_int_equal(setns(testbed->home, CLONE_NEWNET), 0);
    pair.netns_fd = testbed->outside;
    assert_int_equal(bh_link_make_pair(links, &pair, &err), BH_OK);
    set_up_end(beyond, "out0", outside, BH_COUNT(outside));
    set_up_end(links, "up0", here, BH_COUNT(here));
    assert_int_equal(
        bh_link_add_route(links, bh_link_find(links, "up0"), (struct bh_cidr){ 0, 0 }, TESTBED_OUTSIDE, &err),
        BH_OK);
    assert_int_equal(bh_link_add_route(beyond, bh_link_find(beyond, "out0"),
                                       (struct bh_cidr){ TESTBED_HERE, 32 }, 0, &err),
                     BH_OK);
    close(links);
    close(beyond);
}

void
bh_testbed_enter(struct bh_testbed *testbed)
{
    assert_int_equal(unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
    assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    snprintf(testbed->folder, sizeof testbed->folder, "/tmp/bh-network-XXXXXX");
    assert_non_null(mkdtemp(testbed->folder));
    assert_int_equal(mount("places", testbed->folder, "tmpfs", 0, NULL), 0);
    testbed->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    make_outside(testbed);
}

void
bh_testbed_leave(struct bh_testbed *testbed)
{
    umount2(testbed->folder, MNT_DETACH);
    rmdir(testbed->folder);
    close(testbed->home);
    close(testbed->outside);
}

struct bh_network_place
bh_testbed_place(const struct bh_testbed *testbed, uint32_t slot)
{
    static char texts[SLOTS][2][96];
    char(*place)[96] = texts[slot % SLOTS];

    snprintf(place[0], sizeof place[0], "%s/space-%u", testbed->folder, slot);
    snprintf(place[1], sizeof place[1], "%s/sys-%u", testbed->folder, slot);
    close(open(place[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    mkdir(place[1], 0755);
    return (struct bh_network_place){ place[0], place[1] };
}

/* ---- being in it ---- */

int
bh_testbed_netns(const struct bh_network_place *place)
{
    return open(place->space, O_RDONLY | O_CLOEXEC);
}

pid_t
bh_testbed_start(int space, int (*what)(const void *self), const void *self)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(setns(space, CLONE_NEWNET) == 0 ? what(self) : 255);
}

int
bh_testbed_wait(pid_t pid)
{
    int status = 0;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

int
bh_testbed_run(int space, int (*what)(const void *self), const void *self)
{
    return bh_testbed_wait(bh_testbed_start(space, what, self));
}

static struct sockaddr_in
testbed_address_of(uint32_t address, uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(address) };
}

static int
open_socket(const struct bh_testbed_traffic *traffic)
{
    const struct timeval patience = { .tv_usec = PATIENCE_MS * 1000 };
    int fd = socket(AF_INET, (traffic->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience); /* of connect, too */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 10 }, sizeof(struct timeval));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    return fd;
}

int
bh_testbed_send(const void *self)
{
    const struct bh_testbed_traffic *traffic = self;
    struct sockaddr_in to = testbed_address_of(traffic->to, traffic->port),
                       from = testbed_address_of(traffic->from, 0);
    static char bytes[64 << 10];
    uint64_t left = traffic->bytes;
    int fd = open_socket(traffic);

    if (traffic->from && bind(fd, (struct sockaddr *)&from, sizeof from) != 0)
        return errno;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        return errno == EINPROGRESS ? ETIMEDOUT : errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = 20 }, sizeof(struct timeval));
    while (left > 0) {
        ssize_t n = write(fd, bytes, left < sizeof bytes ? left : sizeof bytes);

        if (n < 0)
            return errno;
        left -= (uint64_t)n;
    }
    if (traffic->udp)
        return 0;
    shutdown(fd, SHUT_WR);
    return read(fd, bytes, 1) == 0 ? 0 : errno; /* the other one has read all */
}

static int
testbed_read_all(int fd, bool udp)
{
    static char bytes[64 << 10];
    ssize_t n = read(fd, bytes, sizeof bytes);

    while (!udp && n > 0)
        n = read(fd, bytes, sizeof bytes);
    return n < 0 ? errno : 0;
}

int
bh_testbed_serve(const void *self)
{
    const struct bh_testbed_traffic *traffic = self;
    struct sockaddr_in at = testbed_address_of(traffic->to, traffic->port);
    int fd = open_socket(traffic);

    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || (!traffic->udp && listen(fd, 8) != 0))
        return errno;
    if (traffic->ready >= 0)
        (void)!write(traffic->ready, "r", 1);
    if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 10000) <= 0)
        return ETIMEDOUT;
    return testbed_read_all(traffic->udp ? fd : accept(fd, NULL, NULL), traffic->udp);
}

pid_t
bh_testbed_listen(int space, struct bh_testbed_traffic traffic)
{
    int pipes[2];
    char ready;
    pid_t pid;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    traffic.ready = pipes[1];
    pid = bh_testbed_start(space, bh_testbed_serve, &traffic);
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &ready, 1), 1);
    close(pipes[0]);
    return pid;
}
