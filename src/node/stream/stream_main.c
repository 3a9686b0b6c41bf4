/* bulkhead-stream: serves one interactive stream of one job, on a connection that
 * bulkhead-node accepted from bulkheadd.  It asks the job's keeper, as root, for what is wanted;
 * then it lays down every right and only passes bytes on.  It needs neither the node nor the
 * daemon's link, and ends with the connection or with the job.
 *
 *   bulkhead-stream FOLDER UID      descriptor 3: the connection, 4: its message */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/proc.h"
#include "base/time.h"
#include "node/common/init_message.h"
#include "node/stream/stream_pump.h"
#include "wire/frame.h"
#include "wire/message.h"

enum { CLIENT_FD = 3, MESSAGE_FD = 4, MESSAGE_MAX = 128 << 10, NOBODY = 65534, KEEPER_MS = 3000 };

static bh_rc
stream_read_message(struct bh_arena *arena, struct bh_msg_stream *ret_message, struct bh_err *err)
{
    char *bytes = bh_arena_alloc(arena, MESSAGE_MAX);
    ssize_t got = bytes ? read(MESSAGE_FD, bytes, MESSAGE_MAX) : -1;
    struct bh_frame frame;
    size_t used;
    bh_rc rc;

    if (got < 0)
        return bh_err_errno(err, "read the request");
    rc = bh_frame_next(bytes, (size_t)got, &frame, &used, err);
    if (rc != BH_OK)
        return rc;
    return bh_frame_decode(&frame, bh_message_fields(BH_MSG_STREAM), ret_message, arena, err);
}

/* ---- asking the keeper ---- */

/* A keeper that was only just started listens in a moment. */
static bool
stream_connect_in_time(int fd, const struct sockaddr_un *address)
{
    bh_ns until = bh_time_monotonic() + KEEPER_MS * BH_NS_PER_MS;

    while (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) {
        if ((errno != ENOENT && errno != ECONNREFUSED) || bh_time_monotonic() > until)
            return false;
        bh_time_sleep(10 * BH_NS_PER_MS);
    }
    return true;
}

static bh_rc
stream_reach_keeper(const char *folder, int *ret_fd, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int place = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    BH_AUTO(bh_fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char path[BH_PROC_PATH_MAX];

    if (place < 0 || fd < 0)
        return bh_err_set(err, BH_CONFLICT, "the job has ended");
    bh_proc_fd_path(place, path);
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/control", path);
    if (!stream_connect_in_time(fd, &address))
        return bh_err_set(err, BH_CONFLICT,
                          errno == ENOENT ? "the job was started by a version without streams"
                                          : "the job's keeper takes no streams");
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

/* The request's bytes: head and texts. */
static bh_rc
stream_write_request(const struct bh_msg_stream *message, struct bh_buf *out, struct bh_err *err)
{
    static const uint8_t asks[BH_STREAM_WHATS] = {
        [BH_STREAM_EXEC] = BH_INIT_EXEC,
        [BH_STREAM_ATTACH] = BH_INIT_ATTACH,
        [BH_STREAM_FORWARD] = BH_INIT_CONNECT,
        [BH_STREAM_WATCH] = BH_INIT_WATCH,
    };
    struct bh_init_request head = {
        .ask = asks[message->what],
        .tty = message->tty,
        .input = message->input,
        .rows = (uint16_t)message->rows,
        .columns = (uint16_t)message->columns,
        .port = (uint16_t)message->port,
        .count = (uint16_t)message->args.count,
    };

    if (message->port > UINT16_MAX || message->args.count > 1024)
        return bh_err_set(err, BH_INVALID, "the request is malformed");
    bh_buf_put(out, (const char *)&head, sizeof head);
    for (uint32_t i = 0; i < message->args.count; i++)
        bh_buf_put(out, message->args.items[i], strlen(message->args.items[i]) + 1);
    return out->overflow ? bh_err_set(err, BH_RANGE, "the command is too long") : BH_OK;
}

static bh_rc
stream_send_request(int keeper, const struct bh_buf *request, const int *fds, uint32_t count,
                    struct bh_err *err)
{
    struct iovec part = { request->bytes, request->length };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(BH_INIT_FDS_MAX * sizeof(int))];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    if (count > 0) {
        struct cmsghdr *head;

        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    }
    if (sendmsg(keeper, &message, MSG_NOSIGNAL) < 0)
        return bh_err_errno(err, "ask the job's keeper");
    return BH_OK;
}

/* Pipes for a command's standard streams, which the job's user owns, so that it may open them
 * again by /dev/stdout. */
static bh_rc
stream_make_pipes(struct bh_pump *pump, int fds[3], uid_t uid, struct bh_err *err)
{
    int *ours[] = { &pump->input, &pump->sources[0], &pump->sources[1] };

    for (int i = 0; i < 3; i++) {
        int pair[2];

        if (pipe2(pair, O_CLOEXEC) != 0 || fchown(pair[0], uid, uid) != 0)
            return bh_err_errno(err, "make a pipe");
        fds[i] = i == 0 ? pair[0] : pair[1];
        *ours[i] = i == 0 ? pair[1] : pair[0];
        fcntl(*ours[i], F_SETFL, O_NONBLOCK);
    }
    return BH_OK;
}

static bh_rc
stream_ask(struct bh_pump *pump, const struct bh_msg_stream *message, int keeper, uid_t uid,
           struct bh_err *err)
{
    int pair[2], fds[BH_INIT_FDS_MAX] = { -1, -1, -1, -1 };
    uint32_t count = 1;
    struct bh_buf request;
    bh_rc rc = BH_OK;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return bh_err_errno(err, "make a socket");
    pump->answers = pair[0];
    fds[0] = pair[1];
    if (message->what == BH_STREAM_EXEC && !message->tty) {
        rc = stream_make_pipes(pump, fds + 1, uid, err);
        count = 4;
    }
    bh_buf_init(&request, BH_INIT_REQUEST_MAX);
    if (rc == BH_OK)
        rc = stream_write_request(message, &request, err);
    if (rc == BH_OK)
        rc = stream_send_request(keeper, &request, fds, count, err);
    bh_buf_fini(&request);
    for (uint32_t i = 0; i < count; i++)
        bh_fd_close(fds[i]);
    return rc;
}

/* ATTACH is answered on the very connection. */
static bh_rc
stream_ask_to_attach(struct bh_pump *pump, const struct bh_msg_stream *message, int *keeper,
                     struct bh_err *err)
{
    struct bh_buf request;
    bh_rc rc;

    bh_buf_init(&request, BH_INIT_REQUEST_MAX);
    rc = stream_write_request(message, &request, err);
    if (rc == BH_OK)
        rc = stream_send_request(*keeper, &request, NULL, 0, err);
    bh_buf_fini(&request);
    pump->answers = bh_fd_steal(keeper);
    return rc;
}

/* ---- rights ---- */

/* From here on the program is the user nobody: it can gain no rights, and no other process can trace it. */
static bh_rc
stream_lay_down_rights(struct bh_err *err)
{
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0
        || setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || chdir("/") != 0)
        return bh_err_errno(err, "drop privileges");
    return BH_OK;
}

static bh_rc
stream_prepare(struct bh_pump *pump, const struct bh_msg_stream *message, char **argv, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int keeper = -1;
    uint64_t uid;
    bh_rc rc = bh_parse_u64(argv[2], &uid, err);

    if (rc == BH_OK)
        rc = stream_reach_keeper(argv[1], &keeper, err);
    if (rc == BH_OK && message->what == BH_STREAM_ATTACH)
        rc = stream_ask_to_attach(pump, message, &keeper, err);
    else if (rc == BH_OK)
        rc = stream_ask(pump, message, keeper, (uid_t)uid, err);
    pump->keeper = bh_fd_steal(&keeper); /* it refuses there */
    return rc == BH_OK ? stream_lay_down_rights(err) : rc;
}

int
main(int argc, char **argv)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(8 * MESSAGE_MAX);
    static struct bh_pump pump;
    struct bh_msg_stream message;
    struct bh_err err = { 0 };
    bh_rc rc;

    if (argc != 3)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    fcntl(CLIENT_FD, F_SETFD, FD_CLOEXEC);
    bh_pump_init(&pump, CLIENT_FD);
    rc = stream_read_message(arena, &message, &err);
    close(MESSAGE_FD);
    if (rc == BH_OK)
        rc = stream_prepare(&pump, &message, argv, &err);
    if (rc == BH_OK)
        rc = bh_pump_begin(&pump, &message, &err);
    if (rc == BH_OK)
        rc = bh_pump_run(&pump, &err);
    if (rc != BH_OK)
        bh_pump_refuse(&pump, &err);
    return bh_rc_exit(rc);
}
