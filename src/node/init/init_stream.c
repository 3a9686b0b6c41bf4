#include "node/init/init_stream.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/common/init_message.h"

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_EXECUTABLE = 126, ARGS_MAX = 4096, GRACE_S = 5, CONNECT_S = 10 };

/* A command, or a held connection (pid 0). */
struct stream_session {
    bool used;
    int answers;    /* -1: the asker has gone */
    pid_t pid;      /* also the number of its session, in the kernel's sense */
    bool reaped;    /* it has ended; others of its session may not have */
    time_t kill_at; /* monotonic seconds; 0: it got no signal to end */
};

static struct stream_session sessions[BH_INIT_SESSIONS_MAX];
static int keeper = -1;
static sigset_t usual; /* the signal mask that commands get */

static void
stream_record_child(int number)
{
}

static time_t
init_streams_now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec;
}

void
bh_init_streams_open(void)
{
    const struct sigaction action = { .sa_handler = stream_record_child, .sa_flags = SA_NOCLDSTOP };
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &usual);
    sigaction(SIGCHLD, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no pidfd_getfd, no /proc/1/fd */
    if (fcntl(BH_INIT_FD, F_SETFD, FD_CLOEXEC) == 0)
        keeper = BH_INIT_FD;
}

void
bh_init_streams_orphaned(void)
{
    _exit(128 + SIGKILL);
}

int
bh_init_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- words ---- */

static void
init_streams_send(int to, uint32_t reply_kind, int32_t value, int fd)
{
    struct bh_init_reply reply = { reply_kind, value };
    struct iovec part = { &reply, sizeof reply };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    if (to < 0)
        return;
    if (fd >= 0) {
        struct cmsghdr *head;

        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    (void)!sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
bh_init_streams_send_waits(void)
{
    init_streams_send(BH_INIT_FD, BH_INIT_WAITS, 0, -1);
}

void
bh_init_streams_give(int master)
{
    init_streams_send(keeper, BH_INIT_TERMINAL, 0, master);
}

/* ---- terminals and commands ---- */

bool
bh_init_terminal(int *ret_master, int *ret_slave)
{
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), unlocked = 0, slave = -1;

    if (master >= 0 && ioctl(master, TIOCSPTLCK, &unlocked) == 0)
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) {
        if (master >= 0)
            close(master);
        return false;
    }
    *ret_master = master;
    *ret_slave = slave;
    return true;
}

void
bh_init_terminal_enter(int slave)
{
    const char *term = getenv("TERM");

    if (!term || strcmp(term, "dumb") == 0) /* the node's choice for jobs without a terminal */
        setenv("TERM", "xterm", 1);
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(slave, fd);
}

static void
stream_write_text(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

_Noreturn void
bh_init_become(char **command)
{
    int failed;

    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &usual, NULL);
    close_range(BH_INIT_FD, ~0U, 0);
    execvp(command[0], command);
    failed = errno;
    stream_write_text("bulkhead: cannot run ");
    stream_write_text(command[0]);
    stream_write_text(": ");
    stream_write_text(strerror(failed));
    stream_write_text("\n");
    _exit(failed == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* ---- requests ---- */

struct stream_request {
    struct bh_init_request head;
    char *args[ARGS_MAX + 1];
    int fds[BH_INIT_FDS_MAX];
    uint32_t fd_count;
};

/* The texts behind the head; false when they are not `count` whole ones. */
static bool
stream_read_args(struct stream_request *request, char *bytes, size_t length)
{
    for (uint32_t i = 0; i < request->head.count; i++) {
        size_t size = strnlen(bytes, length);

        if (i == ARGS_MAX || size == length)
            return false;
        request->args[i] = bytes;
        bytes += size + 1;
        length -= size + 1;
    }
    request->args[request->head.count] = NULL;
    return length == 0;
}

static void
stream_close_fds(struct stream_request *request)
{
    for (uint32_t i = 0; i < request->fd_count; i++)
        if (request->fds[i] >= 0)
            close(request->fds[i]);
    request->fd_count = 0;
}

static struct stream_session *
stream_free_session(void)
{
    for (int i = 0; i < BH_INIT_SESSIONS_MAX; i++)
        if (!sessions[i].used)
            return &sessions[i];
    return NULL;
}

/* The answers' socket is the session's from now on. */
static void
stream_begin_session(struct stream_session *session, struct stream_request *request, pid_t pid)
{
    *session = (struct stream_session){ .used = true, .answers = request->fds[0], .pid = pid };
    request->fds[0] = -1;
}

static void
stream_run_command(struct stream_session *session, struct stream_request *request)
{
    int master = -1, slave = -1;
    struct winsize size = { .ws_row = request->head.rows, .ws_col = request->head.columns };
    bool tty = request->head.tty;
    pid_t pid = -1;

    if (request->head.count > 0 && request->fd_count == (tty ? 1 : 4)
        && (!tty || bh_init_terminal(&master, &slave))) {
        if (tty && size.ws_row && size.ws_col)
            ioctl(master, TIOCSWINSZ, &size);
        pid = fork();
    }
    if (pid == 0) {
        if (tty)
            bh_init_terminal_enter(slave);
        for (int fd = 0; fd <= STDERR_FILENO && !tty; fd++)
            dup2(request->fds[1 + fd], fd);
        if (!tty)
            setsid();
        bh_init_become(request->args);
    }
    if (pid < 0) {
        init_streams_send(request->fds[0], BH_INIT_FAILED, errno, -1);
    } else {
        stream_begin_session(session, request, pid);
        init_streams_send(session->answers, BH_INIT_STARTED, 0, master);
    }
    if (master >= 0)
        close(master);
    if (slave >= 0)
        close(slave);
}

static int
stream_connect_to(const struct sockaddr *address, socklen_t size)
{
    struct timeval most = { .tv_sec = CONNECT_S };
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    if (connect(fd, address, size) == 0)
        return fd;
    close(fd);
    return -1;
}

/* In a child, because a connection may take its time. */
static _Noreturn void
stream_make_connection(int answers, uint16_t port)
{
    struct sockaddr_in four = { .sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                                .sin6_port = htons(port),
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd, failed;

    fd = stream_connect_to((struct sockaddr *)&four, sizeof four);
    failed = errno;
    if (fd < 0 && failed == ECONNREFUSED)
        fd = stream_connect_to((struct sockaddr *)&six, sizeof six);
    if (fd >= 0)
        init_streams_send(answers, BH_INIT_CONNECTED, 0, fd);
    else
        init_streams_send(answers, BH_INIT_FAILED, failed, -1);
    _exit(0);
}

static void
stream_connect_port(struct stream_session *session, struct stream_request *request)
{
    pid_t pid = fork();

    if (pid == 0)
        stream_make_connection(request->fds[0], request->head.port);
    if (pid < 0)
        init_streams_send(request->fds[0], BH_INIT_FAILED, errno, -1);
    else
        stream_begin_session(session, request, 0);
}

static void
stream_watch_end(struct stream_session *session, struct stream_request *request)
{
    stream_begin_session(session, request, 0);
    init_streams_send(session->answers, BH_INIT_STARTED, 0, -1);
}

static void
init_streams_serve(struct stream_request *request)
{
    struct stream_session *session = stream_free_session();

    if (!session)
        init_streams_send(request->fds[0], BH_INIT_FAILED, EAGAIN, -1);
    else if (request->head.ask == BH_INIT_EXEC)
        stream_run_command(session, request);
    else if (request->head.ask == BH_INIT_CONNECT)
        stream_connect_port(session, request);
    else if (request->head.ask == BH_INIT_WATCH)
        stream_watch_end(session, request);
}

static void
stream_receive_fds(struct stream_request *request, struct msghdr *message)
{
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        size_t bytes = head->cmsg_len - CMSG_LEN(0);

        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        request->fd_count = (uint32_t)(bytes / sizeof(int));
        memcpy(request->fds, CMSG_DATA(head), request->fd_count * sizeof(int));
    }
}

static void
stream_receive_request(void)
{
    static char bytes[BH_INIT_REQUEST_MAX];
    static struct stream_request request;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(BH_INIT_FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = { bytes, sizeof bytes };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t got = recvmsg(keeper, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (got == 0)
        bh_init_streams_orphaned();
    if (got < (ssize_t)sizeof request.head)
        return;
    stream_receive_fds(&request, &message);
    memcpy(&request.head, bytes, sizeof request.head);
    if (request.fd_count > 0
        && stream_read_args(&request, bytes + sizeof request.head, (size_t)got - sizeof request.head))
        init_streams_serve(&request);
    stream_close_fds(&request);
}

/* ---- sessions ---- */

/* The session that a process belongs to, or 0. */
static pid_t
stream_session_of(const char *pid)
{
    char path[64], text[512], *name_end;
    int fd, session = 0;
    ssize_t got;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    name_end = strrchr(text, ')'); /* state, parent, group and session follow */
    return name_end && sscanf(name_end + 1, " %*c %*d %*d %d", &session) == 1 ? session : 0;
}

/* All of them: an interactive shell gives each of its commands a group of its own. */
static void
stream_signal_session(pid_t session, int number)
{
    DIR *processes = opendir("/proc");

    for (const struct dirent *entry; processes && (entry = readdir(processes));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && stream_session_of(entry->d_name) == session)
            kill((pid_t)strtol(entry->d_name, NULL, 10), number);
    if (processes)
        closedir(processes);
}

static void
stream_end_session(struct stream_session *session)
{
    if (session->answers >= 0)
        close(session->answers);
    session->used = false;
}

/* The client has gone: its command gets SIGHUP, as when a terminal hangs up. */
static void
stream_disconnect(struct stream_session *session)
{
    close(session->answers);
    session->answers = -1;
    if (session->pid == 0) {
        session->used = false;
        return;
    }
    stream_signal_session(session->pid, SIGHUP);
    stream_signal_session(session->pid, SIGCONT);
    session->kill_at = init_streams_now() + GRACE_S;
}

static void
init_streams_receive(struct stream_session *session)
{
    struct bh_init_signal word;
    ssize_t got = recv(session->answers, &word, sizeof word, MSG_DONTWAIT);

    if (got == sizeof word && session->pid > 0 && word.signal >= 1 && word.signal <= 64)
        kill(-session->pid, (int)word.signal);
    else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        stream_disconnect(session);
}

void
bh_init_streams_reaped(pid_t pid, int status)
{
    for (int i = 0; i < BH_INIT_SESSIONS_MAX; i++) {
        if (!sessions[i].used || sessions[i].pid != pid || pid == 0)
            continue;
        sessions[i].reaped = true;
        if (sessions[i].kill_at) /* others of its session have their time yet */
            return;
        init_streams_send(sessions[i].answers, BH_INIT_EXITED, bh_init_status(status), -1);
        stream_end_session(&sessions[i]);
        return;
    }
}

/* SIGKILL for those that got a signal to end and had their time; whether others wait for it. */
static bool
stream_kill_late_ones(void)
{
    bool more = false;

    for (int i = 0; i < BH_INIT_SESSIONS_MAX; i++) {
        if (!sessions[i].used || !sessions[i].kill_at)
            continue;
        if (sessions[i].kill_at <= init_streams_now())
            stream_signal_session(sessions[i].pid, SIGKILL);
        if (sessions[i].kill_at <= init_streams_now() && sessions[i].reaped)
            stream_end_session(&sessions[i]);
        else
            more = true;
    }
    return more;
}

void
bh_init_streams_wait(void)
{
    static struct pollfd polls[1 + BH_INIT_SESSIONS_MAX];
    struct timespec second = { .tv_sec = 1 };
    bool late = stream_kill_late_ones();

    polls[0] = (struct pollfd){ .fd = keeper, .events = POLLIN };
    for (int i = 0; i < BH_INIT_SESSIONS_MAX; i++)
        polls[1 + i] = (struct pollfd){ .fd = sessions[i].used ? sessions[i].answers : -1, .events = POLLIN };
    if (ppoll(polls, 1 + BH_INIT_SESSIONS_MAX, late ? &second : NULL, &usual) <= 0)
        return;
    for (int i = 0; i < BH_INIT_SESSIONS_MAX; i++)
        if (polls[1 + i].revents)
            init_streams_receive(&sessions[i]);
    if (polls[0].revents)
        stream_receive_request();
}
