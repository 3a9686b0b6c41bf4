/* What bulkhead-fetch can still do behind its sandbox.  Each row runs in a process of its
 * own, which enters the sandbox and tries. */
#include "fetch/sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "fetch/filter.h"

/* Each gives 0, or the errno of what was refused. */

static int
sandbox_test_refused(long result)
{
    return result < 0 ? errno : 0;
}

static int
read_hosts(void)
{
    return sandbox_test_refused(open("/etc/hosts", O_RDONLY));
}

static int
read_certificates(void)
{
    return sandbox_test_refused(open("/etc/ssl/certs/ca-certificates.crt", O_RDONLY));
}

static int
read_passwd(void)
{
    return sandbox_test_refused(open("/etc/passwd", O_RDONLY));
}

static int
read_parent(void)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
    return sandbox_test_refused(open(path, O_RDONLY));
}

static int
write_null(void)
{
    return sandbox_test_refused(open("/dev/null", O_WRONLY));
}

static int
make_file(void)
{
    return sandbox_test_refused(open("/tmp/bh-sandbox-test", O_RDONLY | O_CREAT, 0600));
}

static int
remove_file(void)
{
    return sandbox_test_refused(unlink("/tmp/bh-sandbox-test"));
}

static int
internet(void)
{
    return sandbox_test_refused(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static int
unix_socket(void)
{
    return sandbox_test_refused(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int
netlink_socket(void)
{
    return sandbox_test_refused(socket(AF_NETLINK, SOCK_DGRAM, 0));
}

static int
raw_socket(void)
{
    return sandbox_test_refused(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static int
listen_somewhere(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };

    return sandbox_test_refused(bind(socket(AF_INET, SOCK_STREAM, 0), (const void *)&at, sizeof at));
}

static int
pair(void)
{
    int fds[2];

    return sandbox_test_refused(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static int
sandbox_test_resolve(void)
{
    struct addrinfo *found = NULL;

    return getaddrinfo("localhost", "443", NULL, &found) == 0 && found ? 0 : 1;
}

static void *
sandbox_test_record(void *slot)
{
    *(int *)slot = 0;
    return NULL;
}

static int
thread(void)
{
    pthread_t started;
    int result = 1;

    if (pthread_create(&started, NULL, sandbox_test_record, &result) != 0)
        return 1;
    pthread_join(started, NULL);
    return result;
}

static int
sandbox_test_child(void)
{
    return sandbox_test_refused(fork());
}

static int
signal_parent(void)
{
    return sandbox_test_refused(kill(getppid(), 0));
}

static int
type_into_terminal(void)
{
    return sandbox_test_refused(ioctl(2, TIOCSTI, "x"));
}

static int
run_from_data(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return sandbox_test_refused(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static int
map_all(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? errno : 0;
}

static int
dump(void)
{
    struct rlimit limit = { 1, 1 };

    return getrlimit(RLIMIT_CORE, &limit) == 0 ? (int)limit.rlim_max : 0;
}

static int
run_program(void)
{
    char *const argv[] = { (char *)"/bin/true", NULL };

    return sandbox_test_refused(execve(argv[0], argv, NULL));
}

static int
sandbox_test_trace(void)
{
    return sandbox_test_refused(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

static int
new_namespace(void)
{
    return sandbox_test_refused(unshare(CLONE_NEWUSER));
}

enum { KILLED = -SIGSYS };

static const struct {
    const char *name;
    int (*attempt)(void);
    int result;    /* errno, or KILLED */
    bool landlock; /* only where the kernel has it */
} rows[] = {
    { "read /etc/hosts", read_hosts, 0, false },
    { "read the trusted certificates", read_certificates, 0, false },
    { "read another file of /etc", read_passwd, EACCES, true },
    { "read about its parent", read_parent, EACCES, true },
    { "open to write", write_null, EACCES, false },
    { "make a file", make_file, EACCES, false },
    { "remove a file", remove_file, ENOSYS, false },
    { "a socket of the internet", internet, 0, false },
    { "a unix socket", unix_socket, EAFNOSUPPORT, false },
    { "a netlink socket", netlink_socket, EAFNOSUPPORT, false },
    { "a raw socket", raw_socket, EPROTONOSUPPORT, false },
    { "a port of its own", listen_somewhere, ENOSYS, false },
    { "a pair of sockets", pair, 0, false },
    { "resolve a name", sandbox_test_resolve, 0, false },
    { "a thread", thread, 0, false },
    { "a child", sandbox_test_child, EACCES, false },
    { "signal its parent", signal_parent, ENOSYS, false },
    { "type into a terminal", type_into_terminal, ENOTTY, false },
    { "run what it wrote", run_from_data, EACCES, false },
    { "map what it can write and run", map_all, EACCES, false },
    { "run a program", run_program, KILLED, false },
    { "trace its parent", sandbox_test_trace, KILLED, false },
    { "a namespace", new_namespace, KILLED, false },
};

static void
attempt(int (*action)(void))
{
    struct bh_err err;

    if (bh_fetch_sandbox_drop(&err) != BH_OK || bh_fetch_sandbox_enter(&err) != BH_OK) {
        fprintf(stderr, "%s\n", err.msg);
        _exit(250);
    }
    _exit(action());
}

static int
result_of(int (*action)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        attempt(action);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 251;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool
needs_hosts(int (*action)(void))
{
    return action == read_hosts || action == sandbox_test_resolve;
}

static void
behind_it(void **state)
{
    bool landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
    bool hosts = access("/etc/hosts", R_OK) == 0;

    if (!hosts)
        fputs("# this machine has no /etc/hosts: what reads it is left out\n", stderr);
    if (!landlock)
        fputs("# this kernel has no Landlock: files are bounded by the filter alone\n", stderr);
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        if ((landlock || !rows[i].landlock) && (hosts || !needs_hosts(rows[i].attempt)))
            BH_CHECK_EQ(rows[i].name, result_of(rows[i].attempt), rows[i].result);
    BH_CHECK_DONE();
}

/* Where the kernel has no Landlock, files are bounded by this. */
static void
by_the_filter_alone(void **state)
{
    static int (*const writes[])(void) = { write_null, make_file };

    for (size_t i = 0; i < BH_COUNT(writes); i++) {
        int status = 0;
        pid_t pid = fork();
        struct bh_err err;

        if (pid == 0)
            _exit(bh_fetch_sandbox_drop(&err) == BH_OK && bh_fetch_filter_load(&err) == BH_OK ? writes[i]()
                                                                                              : 250);
        BH_CHECK_EQ("ended", waitpid(pid, &status, 0), pid);
        BH_CHECK_EQ("no writing", WEXITSTATUS(status), EACCES);
    }
    BH_CHECK_DONE();
}

static int
who(void)
{
    return geteuid() == 0 || getgid() == 0 ? 1 : 0;
}

static int
dumpable(void)
{
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

static int
privileges(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static int
descriptors(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max <= 256 ? 0 : 1;
}

static int
dropped(int (*action)(void))
{
    struct bh_err err;
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(bh_fetch_sandbox_drop(&err) == BH_OK ? action() : 250);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 251;
}

static void
rights(void **state)
{
    BH_CHECK_EQ("not root", dropped(who), 0);
    BH_CHECK_EQ("not to be dumped or traced", dropped(dumpable), 0);
    BH_CHECK_EQ("no new rights", dropped(privileges), 0);
    BH_CHECK_EQ("few descriptors", dropped(descriptors), 0);
    BH_CHECK_EQ("no dump", dropped(dump), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rights),
    cmocka_unit_test(behind_it),
    cmocka_unit_test(by_the_filter_alone),
};

BH_TEST_MAIN(tests)
