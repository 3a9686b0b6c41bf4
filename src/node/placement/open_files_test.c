/* What a process has open or mapped, in each way in which it can have it. */

#include "node/placement/open_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

static char folder[] = "/tmp/bh-open-files-XXXXXX";
static char path[64];

static int
open_it(void)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void
has_nothing(void)
{
}

static void
has_open(void)
{
    (void)open_it();
}

static void
has_mapped_with(int flags)
{
    int fd = open_it();

    assert_true(mmap(NULL, 4096, PROT_READ, flags, fd, 0) != MAP_FAILED);
    close(fd);
}

static void
has_mapped(void)
{
    has_mapped_with(MAP_SHARED);
}

static void
has_mapped_privately(void)
{
    has_mapped_with(MAP_PRIVATE);
}

static int ready[2];

static void *
hide(void *unused)
{
    if (unshare(CLONE_FILES) == 0)
        (void)open_it();
    (void)!write(ready[1], "", 1);
    pause();
    return NULL;
}

/* In a table of one thread alone. */
static void
has_in_thread(void)
{
    pthread_t thread;
    char byte;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pthread_create(&thread, NULL, hide, NULL), 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
}

static void
send_fd(int to, int fd)
{
    char byte = 0, room[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec bytes = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    assert_int_equal(sendmsg(to, &message, 0), 1);
}

static void
has_in_flight(void)
{
    int ends[2], fd = open_it();

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    send_fd(ends[0], fd);
    close(fd);
}

/* Not accepted yet: it lies in no socket that has a descriptor of its own. */
static void
has_unaccepted(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    socklen_t length = sizeof name;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    int fd = open_it();

    assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof name.sun_family), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&name, length), 0);
    send_fd(client, fd);
    close(fd);
    close(client);
}

static enum bh_open_found
check_at(void (*have)(void), const struct bh_open_wanted *wanted)
{
    enum bh_open_found found;
    int ends[2];
    pid_t child;
    char byte;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        have();
        (void)!write(ends[1], "", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    found = bh_open_look(child, wanted);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return found;
}

static void
make_file(void)
{
    int fd;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/memory", folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    close(fd);
}

static void
each_way_is_found(void **state)
{
    static const struct {
        const char *name;
        void (*have)(void);
        enum bh_open_found found;
    } cases[] = {
        { "nothing", has_nothing, BH_OPEN_NONE },
        { "a descriptor", has_open, BH_OPEN_HELD },
        { "a mapping alone", has_mapped, BH_OPEN_MAPPED },
        { "a private mapping", has_mapped_privately, BH_OPEN_MAPPED },
        { "in a thread's table", has_in_thread, BH_OPEN_HELD },
        { "in flight", has_in_flight, BH_OPEN_IN_FLIGHT },
        { "in flight, not accepted", has_unaccepted, BH_OPEN_IN_FLIGHT },
    };
    struct bh_open_wanted wanted = { .device_count = 0 }, full = { .file_count = BH_OPEN_FILES_MAX };

    if (geteuid() != 0)
        skip(); /* another's files are not looked at */
    make_file();
    assert_true(bh_open_want_folder(&wanted, folder));
    BH_CHECK_EQ("files", wanted.file_count, 1);
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, check_at(cases[i].have, &wanted), cases[i].found);
    BH_CHECK("no room", !bh_open_want_folder(&full, folder));
    BH_CHECK("no folder", bh_open_want_folder(&full, "/nowhere"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    BH_CHECK_DONE();
}

static void
has_zero(void)
{
    assert_true(open("/dev/zero", O_RDONLY | O_CLOEXEC) >= 0);
}

static void
devices_are_known_by_their_numbers(void **state)
{
    struct bh_open_wanted wanted = { .devices = { { 1, 5 } }, .device_count = 1 };
    struct bh_open_wanted other = { .devices = { { 1, 6 } }, .device_count = 1 };

    BH_CHECK_EQ("zero", check_at(has_zero, &wanted), BH_OPEN_HELD);
    BH_CHECK_EQ("another", check_at(has_zero, &other), BH_OPEN_NONE);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_way_is_found),
    cmocka_unit_test(devices_are_known_by_their_numbers),
};
BH_TEST_MAIN(tests)
