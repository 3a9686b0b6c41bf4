/* bulkhead-share as the node keeps it: asked, killed, found again. */
#include "node/share/share.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/num.h"
#include "base/test.h"
#include "bulkhead/share_socket.h"

#define MIB (UINT64_C(1) << 20)

static const char *program;

static void
share_host_test_receive(void *self, const struct bh_share_notice *notice)
{
    ++*(int *)self;
}

static struct bh_share_open
lease_in(const char *folder, uint64_t lease)
{
    struct bh_share_open open = { .lease = lease, .weight = 2100, .gpu_count = 1 };

    snprintf(open.folder, sizeof(open.folder), "%s/%llu", folder, (unsigned long long)lease);
    mkdir(open.folder, 0700);
    open.gpus[0] = (struct bh_share_gpu){
        .uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff",
        .cap_bytes = 64 * MIB,
        .memory_bytes = 80 * 1024 * MIB,
    };
    return open;
}

/* The children of this process, of which there is one. */
static pid_t
share_host_test_child(void)
{
    char path[64], text[32] = "";
    struct bh_err err = { 0 };
    uint32_t pid = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    file = fopen(path, "re");
    if (file == NULL || fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    if (file != NULL)
        fclose(file);
    text[strcspn(text, " \n")] = '\0';
    return bh_parse_u32(text, 1, UINT32_MAX >> 1, &pid, &err) == BH_OK ? (pid_t)pid : 0;
}

static bool
comes_back(struct bh_share_host *host, uint64_t lease)
{
    bh_ns until = bh_time_monotonic() + 10 * BH_NS_PER_S;

    do {
        struct pollfd ready = { .fd = bh_share_host_fd(host), .events = POLLIN };

        poll(&ready, 1, 100);
        bh_share_host_dispatch(host);
    } while (bh_share_host_find(host, lease) == NULL && bh_time_monotonic() < until);
    return bh_share_host_find(host, lease) != NULL;
}

static void
share_host_test_kept(void **state)
{
    char folder[] = "/tmp/bh-share-host-XXXXXX", path[128];
    int notices = 0;
    struct bh_share_host *host =
        bh_share_host_new(&(struct bh_share_host_options){ program, share_host_test_receive, &notices });
    struct bh_share_open open, other;
    struct bh_err err = { 0 };
    pid_t first;

    assert_non_null(mkdtemp(folder));
    open = lease_in(folder, 1);
    other = lease_in(folder, 2);
    BH_CHECK_EQ("nothing runs for nothing", bh_share_host_fd(host), -1);
    BH_CHECK_EQ("opens", bh_share_host_open(host, &open, &err), BH_OK);
    BH_CHECK_EQ("again", bh_share_host_open(host, &open, &err), BH_OK);
    open.gpus[0].cap_bytes = 1;
    open.lease = 3;
    BH_CHECK_EQ("says what is wrong", bh_share_host_open(host, &open, &err), BH_INVALID);
    BH_CHECK("in words", strstr(err.msg, "2 MiB") != NULL);
    first = share_host_test_child();
    assert_true(first > 0);
    kill(first, SIGKILL);
    BH_CHECK("started again, and knows the lease", comes_back(host, 1));
    BH_CHECK("another one", share_host_test_child() != first);
    assert_true(share_host_test_child() > 0);
    kill(share_host_test_child(), SIGSTOP);
    BH_CHECK_EQ("does not answer", bh_share_host_open(host, &other, &err), BH_TIMEOUT);
    BH_CHECK_EQ("and is replaced", bh_share_host_open(host, &other, &err), BH_OK);
    BH_CHECK("with both leases", comes_back(host, 1) && comes_back(host, 2));
    for (uint64_t lease = 1; lease <= 2; lease++) {
        bh_share_host_close(host, lease);
        BH_CHECK("closed", bh_share_host_find(host, lease) == NULL);
        snprintf(path, sizeof(path), "%s/%llu/door", folder, (unsigned long long)lease);
        BH_CHECK_EQ("the door is gone", rmdir(path), 0);
        *strrchr(path, '/') = '\0';
        BH_CHECK_EQ("the pages are gone", rmdir(path), 0);
    }
    bh_share_host_free(host);
    BH_CHECK_EQ("no child is left", share_host_test_child(), 0);
    BH_CHECK_EQ("no notice", notices, 0);
    rmdir(folder);
    BH_CHECK_DONE();
}

/* Join as a process does, and say that the driver's library took so much. */
static struct bh_share_usage *
join_and_say(const struct bh_share_open *open, uint32_t seen_mib)
{
    const struct bh_share_hello hello = { BH_SHARE_MAGIC, BH_SHARE_VERSION, -1, 0 };
    struct sockaddr_un socket_dir = { .sun_family = AF_UNIX };
    struct bh_share_welcome welcome;
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { &welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof(control.bytes) };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[2];
    struct bh_share_usage *usage;

    snprintf(socket_dir.sun_path, sizeof(socket_dir.sun_path), "%.80s/door/share.sock", open->folder);
    assert_int_equal(connect(fd, (struct sockaddr *)&socket_dir, sizeof(socket_dir)), 0);
    assert_int_equal(send(fd, &hello, sizeof(hello), 0), sizeof(hello));
    assert_int_equal(recvmsg(fd, &message, 0), sizeof(welcome));
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
    usage = mmap(NULL, sizeof(*usage), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
    assert_ptr_not_equal(usage, MAP_FAILED);
    atomic_store(&usage->seen[welcome.slot].grains[0], seen_mib * 16);
    atomic_store(&usage->seen_kind[welcome.slot], BH_SHARE_SEEN_WHOLE);
    close(fds[0]);
    close(fds[1]); /* the connection stays until the end of the test */
    return usage;
}

/* Memory that the driver's library took without a reservation is reported once. */
static void
uncounted(void **state)
{
    char folder[] = "/tmp/bh-share-host-XXXXXX", path[128];
    struct bh_share_overhead driver = { .lease = 1, .bytes = 100 * MIB };
    int notices = 0;
    struct bh_share_host *host =
        bh_share_host_new(&(struct bh_share_host_options){ program, share_host_test_receive, &notices });
    bh_ns until = bh_time_monotonic() + 20 * BH_NS_PER_S;
    struct bh_share_usage *usage;
    struct bh_share_open open;
    struct bh_err err = { 0 };

    assert_non_null(mkdtemp(folder));
    open = lease_in(folder, 1);
    assert_int_equal(bh_share_host_open(host, &open, &err), BH_OK);
    bh_share_host_overhead(host, &driver);
    usage = join_and_say(&open, 100);
    while (notices == 0 && bh_time_monotonic() < until) {
        struct pollfd ready = { .fd = bh_share_host_fd(host), .events = POLLIN };

        poll(&ready, 1, 1000);
        bh_share_host_dispatch(host);
    }
    BH_CHECK_EQ("told", notices, 1);
    munmap(usage, sizeof(*usage));
    bh_share_host_close(host, 1);
    bh_share_host_free(host);
    snprintf(path, sizeof(path), "%s/1/door", folder);
    rmdir(path);
    snprintf(path, sizeof(path), "%s/1", folder);
    rmdir(path);
    BH_CHECK_EQ("nothing is left", rmdir(folder), 0);
    BH_CHECK_DONE();
}

static void
no_program(void **state)
{
    int notices = 0;
    struct bh_share_host *host = bh_share_host_new(
        &(struct bh_share_host_options){ "/nowhere/bulkhead-share", share_host_test_receive, &notices });
    struct bh_share_open open = { .lease = 1 };
    struct bh_err err = { 0 };

    BH_CHECK("refused", bh_share_host_open(host, &open, &err) != BH_OK);
    bh_share_host_free(host);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(share_host_test_kept),
        cmocka_unit_test(uncounted),
        cmocka_unit_test(no_program),
    };

    if (argc != 2)
        return 2;
    program = argv[1];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
