#include "node/job/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/time.h"
#include "node/common/path.h"
#include "node/core/host.h"
#include "runtime/oci.h"
#include "wire/frame.h"
#include "wire/stream.h"

enum { REQUEST_MAX = 80 << 10, READY_MAX = 64, PENDING_MAX = 64, FIRST_FD = 3 };

/* A connection that has not said what it wants, or a program that serves one. */
struct one {
    int fd; /* -1: free; else the connection, or the program's pidfd */
    bool serving;
    uint64_t lease; /* when serving */
    char *bytes;    /* of the message, until it is whole */
    size_t length;
};

struct bh_node_streams {
    struct bh_node *node;
    int listener, epoll;
    struct one ones[BH_NODE_STREAMS_MAX];
    uint32_t pending;
};

/* ---- opening ---- */

static void
stream_watch(struct bh_node_streams *streams, int fd, void *what)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

    BH_ASSERT(epoll_ctl(streams->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

bh_rc
bh_node_streams_open(struct bh_node *node, struct bh_node_streams **ret_streams, struct bh_err *err)
{
    struct bh_node_streams *streams = calloc(1, sizeof *streams);
    char path[BH_NODE_PATH_MAX];
    bh_rc rc;

    BH_ASSERT(streams);
    streams->node = node;
    streams->listener = -1;
    for (int i = 0; i < BH_NODE_STREAMS_MAX; i++)
        streams->ones[i].fd = -1;
    streams->epoll = epoll_create1(EPOLL_CLOEXEC);
    BH_ASSERT(streams->epoll >= 0);
    bh_path_format(path, sizeof path, "%s.streams", node->conf.socket);
    rc = bh_unix_listen(path, 0600, &streams->listener, err);
    if (rc == BH_OK && chown(path, node->conf.daemon_uid, (gid_t)-1) != 0)
        rc = bh_err_errno(err, "give %s to the daemon", path);
    if (rc != BH_OK) {
        bh_node_streams_close(streams);
        return rc;
    }
    fcntl(streams->listener, F_SETFL, O_NONBLOCK);
    stream_watch(streams, streams->listener, NULL);
    *ret_streams = streams;
    return BH_OK;
}

/* The program that serves a connection has it open, too: closed here, it would still be watched. */
static void
stream_drop(struct bh_node_streams *streams, struct one *one)
{
    BH_ASSERT(one->fd >= 0 || (!one->serving && !one->bytes));
    if (one->fd >= 0)
        (void)!epoll_ctl(streams->epoll, EPOLL_CTL_DEL, one->fd, NULL);
    if (one->fd >= 0 && !one->serving)
        streams->pending--;
    bh_fd_close(one->fd);
    free(one->bytes);
    *one = (struct one){ .fd = -1 };
}

void
bh_node_streams_close(struct bh_node_streams *streams)
{
    if (!streams)
        return;
    for (int i = 0; i < BH_NODE_STREAMS_MAX; i++)
        stream_drop(streams, &streams->ones[i]);
    bh_fd_close(streams->listener);
    bh_fd_close(streams->epoll);
    free(streams);
}

int
bh_node_streams_fd(const struct bh_node_streams *streams)
{
    return streams->epoll;
}

/* ---- serving ---- */

/* Say why not, as the stream's only frame. */
static void
stream_refuse(int fd, const struct bh_err *err)
{
    char frame[BH_STREAM_FRAME_MAX];
    struct bh_stream_frame why = {
        .kind = BH_STREAM_ERROR, .number = err->rc, .bytes = err->msg, .length = strlen(err->msg)
    };

    (void)!send(fd, frame, bh_stream_put(frame, &why), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bh_rc
stream_check(const struct bh_node_streams *streams, const struct bh_msg_stream *message,
             const struct bh_job **ret_job, struct bh_err *err)
{
    const struct bh_job *job = bh_state_job(&streams->node->state, message->lease);
    uint32_t count = 0;

    if (!job || job->ended || !job->running)
        return bh_err_set(err, BH_CONFLICT, "the job is not running");
    if (job->frozen)
        return bh_err_set(err, BH_CONFLICT, "the job is suspended");
    for (int i = 0; i < BH_NODE_STREAMS_MAX; i++)
        count += streams->ones[i].serving && streams->ones[i].lease == message->lease;
    if (count >= BH_NODE_STREAMS_OF_JOB_MAX)
        return bh_err_set(err, BH_QUOTA, "the job has %d streams already", BH_NODE_STREAMS_OF_JOB_MAX);
    *ret_job = job;
    return BH_OK;
}

/* The message as it came, for the program to read. */
static int
stream_save_message(const struct one *one)
{
    int fd = memfd_create("bulkhead-stream", MFD_CLOEXEC);

    if (fd >= 0
        && (write(fd, one->bytes, one->length) != (ssize_t)one->length || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* PROGRAM FOLDER UID with the connection as descriptor 3 and the message as 4. */
static bh_rc
stream_spawn(const struct bh_node_streams *streams, const struct bh_job *job, const int fds[2],
             int *ret_pidfd, struct bh_err *err)
{
    const struct bh_node *node = streams->node;
    char program[BH_NODE_PATH_MAX + 32], folder[BH_NODE_PATH_MAX], uid[24];
    const char *const argv[] = { program, folder, uid, NULL }, *const env[] = { NULL };
    struct bh_process_options options = {
        .argv = argv,
        .envp = env,
        .fds = { { STDERR_FILENO, STDERR_FILENO }, { FIRST_FD, fds[0] }, { FIRST_FD + 1, fds[1] } },
        .fd_count = 3,
        .new_session = true,
    };
    pid_t pid;

    bh_path_format(program, sizeof program, "%s/bulkhead-stream", node->libexec);
    bh_node_job_folder(node, job->record.lease, folder);
    bh_path_format(uid, sizeof uid, "%" PRIu32,
                   node->conf.uid_base + BH_OCI_ID_RANGE * job->record.slot + BH_OCI_JOB_UID);
    return bh_process_start(&options, &pid, ret_pidfd, err);
}

static bh_rc
stream_start(struct bh_node_streams *streams, struct one *one, const struct bh_msg_stream *message,
             struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int kept = stream_save_message(one);
    const struct bh_job *job;
    int pidfd;
    bh_rc rc = stream_check(streams, message, &job, err);

    if (rc != BH_OK)
        return rc;
    if (kept < 0)
        rc = bh_err_errno(err, "pass the stream on");
    if (rc != BH_OK)
        return rc;
    rc = stream_spawn(streams, job, (int[]){ one->fd, kept }, &pidfd, err);
    if (rc != BH_OK)
        return rc;
    stream_drop(streams, one);
    *one = (struct one){ .fd = pidfd, .serving = true, .lease = message->lease };
    stream_watch(streams, pidfd, one);
    return BH_OK;
}

/* ---- connections ---- */

static void
stream_receive_message(struct bh_node_streams *streams, struct one *one)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(4 * REQUEST_MAX);
    struct bh_msg_stream message;
    struct bh_frame frame;
    struct bh_err err;
    size_t used;
    bh_rc rc = bh_frame_next(one->bytes, one->length, &frame, &used, &err);

    if (rc == BH_NOT_FOUND && one->length < REQUEST_MAX)
        return;
    if (rc == BH_OK && (frame.number != BH_MSG_STREAM || used != one->length))
        rc = bh_err_set(&err, BH_INVALID, "not a request for a stream");
    if (rc == BH_OK)
        rc = bh_frame_decode(&frame, bh_message_fields(BH_MSG_STREAM), &message, arena, &err);
    if (rc == BH_OK)
        rc = stream_start(streams, one, &message, &err);
    if (rc == BH_OK)
        return;
    stream_refuse(one->fd, &err);
    stream_drop(streams, one);
}

static void
stream_read_some(struct bh_node_streams *streams, struct one *one)
{
    ssize_t got = recv(one->fd, one->bytes + one->length, REQUEST_MAX - one->length, MSG_DONTWAIT);

    if (got > 0) {
        one->length += (size_t)got;
        stream_receive_message(streams, one);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        stream_drop(streams, one);
    }
}

static struct one *
streams_find_slot(struct bh_node_streams *streams)
{
    for (int i = 0; i < BH_NODE_STREAMS_MAX; i++)
        if (streams->ones[i].fd < 0)
            return &streams->ones[i];
    return NULL;
}

static void
stream_admit(struct bh_node_streams *streams)
{
    BH_AUTO(bh_fd_close) int fd = accept4(streams->listener, NULL, NULL, SOCK_CLOEXEC);
    struct one *one = streams_find_slot(streams);
    struct bh_err err;

    if (fd < 0 || !bh_host_allows(streams->node, fd))
        return;
    if (!one || streams->pending >= PENDING_MAX) {
        bh_err_set(&err, BH_QUOTA, "this node serves %d streams already", BH_NODE_STREAMS_MAX);
        stream_refuse(fd, &err);
        return;
    }
    *one = (struct one){ .fd = bh_fd_steal(&fd), .bytes = malloc(REQUEST_MAX) };
    BH_ASSERT(one->bytes);
    streams->pending++;
    stream_watch(streams, one->fd, one);
}

void
bh_node_streams_dispatch(struct bh_node_streams *streams)
{
    struct epoll_event ready[READY_MAX];
    int count = epoll_wait(streams->epoll, ready, READY_MAX, 0);
    siginfo_t reaped;

    for (int i = 0; i < count; i++) {
        struct one *one = ready[i].data.ptr;

        BH_ASSERT(!one || one->fd >= 0);
        if (!one) {
            stream_admit(streams);
        } else if (one->serving) {
            waitid(P_PIDFD, (id_t)one->fd, &reaped, WEXITED | WNOHANG);
            stream_drop(streams, one);
        } else {
            stream_read_some(streams, one);
        }
    }
}
