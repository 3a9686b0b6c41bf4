#include "node/keeper/keeper_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/proc.h"
#include "node/common/exit_record.h"
#include "node/common/init_message.h"

enum { PACKET_MAX = 16 << 10, SOCKET_BYTES = 256 << 10, BACKLOG = 64 };

/* An attached client. */
struct stream_reader {
    int fd; /* -1: free */
    bool writer;
    size_t taken; /* of the chunk */
    bh_ns since;  /* monotonic; last took something */
};

struct bh_keeper_streams {
    int listener, init, input, terminal;
    uint32_t stdio;
    bool called;                       /* the node, to the start barrier */
    int asking[BH_KEEPER_READERS_MAX]; /* connections that have said nothing yet; -1: free */
    uint32_t next_asking;              /* the oldest makes room */
    struct stream_reader readers[BH_KEEPER_READERS_MAX];
    size_t chunk_length, recent_length;
    char chunk[BH_KEEPER_CHUNK];
    char recent[BH_KEEPER_CHUNK]; /* the last output, for clients that attach later */
};

/* ---- descriptors ---- */

static void
stream_close_one(int *fd)
{
    bh_fd_close(*fd);
    *fd = -1;
}

/* A listening socket; the folder's path may be longer than a socket's may. */
static int
stream_listen_at(const char *folder)
{
    BH_AUTO(bh_fd_close) int place = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    BH_AUTO(bh_fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char path[BH_PROC_PATH_MAX];

    if (place < 0 || fd < 0)
        return -1;
    unlinkat(place, "control", 0);
    bh_proc_fd_path(place, path);
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/control", path);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || fchmodat(place, "control", 0600, 0) != 0
        || listen(fd, BACKLOG) != 0)
        return -1;
    return bh_fd_steal(&fd);
}

struct bh_keeper_streams *
bh_keeper_streams_open(const char *folder, uint32_t stdio, int *ret_init)
{
    struct bh_keeper_streams *streams = calloc(1, sizeof *streams);
    int pair[2];

    BH_ASSERT(streams);
    *streams =
        (struct bh_keeper_streams){ .listener = -1, .init = -1, .input = -1, .terminal = -1, .stdio = stdio };
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++)
        streams->asking[i] = streams->readers[i].fd = -1;
    *ret_init = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return streams;
    streams->init = pair[0];
    *ret_init = pair[1];
    streams->listener = stream_listen_at(folder);
    return streams;
}

void
bh_keeper_streams_input(struct bh_keeper_streams *streams, int fd)
{
    streams->input = fd;
}

int
bh_keeper_streams_terminal(const struct bh_keeper_streams *streams)
{
    return streams->terminal;
}

/* ---- showing ---- */

static void
stream_cut_off(struct stream_reader *reader)
{
    stream_close_one(&reader->fd);
}

/* One packet; how many of the bytes went, or -1 when the reader is gone. */
static ssize_t
stream_send_packet(int fd, enum bh_attach_packet kind, const char *bytes, size_t length)
{
    unsigned char head = (unsigned char)kind;
    size_t part = length < PACKET_MAX ? length : PACKET_MAX;
    struct iovec parts[2] = { { &head, 1 }, { (void *)(uintptr_t)bytes, part } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

    if (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return (ssize_t)part;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -1;
}

static void
keeper_streams_push(struct bh_keeper_streams *streams, struct stream_reader *reader)
{
    while (reader->fd >= 0 && reader->taken < streams->chunk_length) {
        ssize_t went = stream_send_packet(reader->fd, BH_ATTACH_OUTPUT, streams->chunk + reader->taken,
                                          streams->chunk_length - reader->taken);

        if (went == 0)
            return;
        if (went < 0) {
            stream_cut_off(reader);
            return;
        }
        reader->taken += (size_t)went;
        reader->since = bh_time_monotonic();
    }
}

static bool
stream_is_behind(const struct bh_keeper_streams *streams, const struct stream_reader *reader)
{
    return reader->fd >= 0 && reader->taken < streams->chunk_length;
}

bool
bh_keeper_streams_busy(const struct bh_keeper_streams *streams)
{
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++)
        if (stream_is_behind(streams, &streams->readers[i]))
            return true;
    return false;
}

/* The last bytes of what was shown. */
static void
keeper_streams_remember(struct bh_keeper_streams *streams, const char *bytes, size_t length)
{
    size_t most = sizeof streams->recent, kept = streams->recent_length;

    if (length >= most) {
        bytes += length - most;
        length = most;
    }
    if (kept + length > most) {
        size_t drop = kept + length - most;

        memmove(streams->recent, streams->recent + drop, kept - drop);
        kept -= drop;
    }
    memcpy(streams->recent + kept, bytes, length);
    streams->recent_length = kept + length;
}

void
bh_keeper_streams_show(struct bh_keeper_streams *streams, const char *bytes, size_t length)
{
    bh_ns now = bh_time_monotonic();

    BH_ASSERT(length <= sizeof streams->chunk && !bh_keeper_streams_busy(streams));
    keeper_streams_remember(streams, bytes, length);
    memcpy(streams->chunk, bytes, length);
    streams->chunk_length = length;
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++) {
        streams->readers[i].taken = 0;
        streams->readers[i].since = now;
        keeper_streams_push(streams, &streams->readers[i]);
    }
}

/* ---- attaching ---- */

/* Answer, with a descriptor when it is not -1. */
static bool
keeper_streams_answer(int to, struct bh_init_reply reply, int fd)
{
    struct iovec part = { &reply, sizeof reply };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    struct cmsghdr *head;

    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void
keeper_streams_refuse(int to, int why)
{
    (void)!keeper_streams_answer(to, (struct bh_init_reply){ BH_INIT_FAILED, why }, -1);
}

static bool
stream_has_writer(const struct bh_keeper_streams *streams)
{
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++)
        if (streams->readers[i].fd >= 0 && streams->readers[i].writer)
            return true;
    return false;
}

static int
stream_input_of(const struct bh_keeper_streams *streams)
{
    return streams->stdio == BH_STDIO_TERMINAL ? streams->terminal : streams->input;
}

/* The recent output goes first; it fits into the socket's room. */
static void
keeper_streams_replay(struct bh_keeper_streams *streams, struct stream_reader *reader)
{
    size_t at = 0;

    while (reader->fd >= 0 && at < streams->recent_length) {
        ssize_t went = stream_send_packet(reader->fd, BH_ATTACH_OUTPUT, streams->recent + at,
                                          streams->recent_length - at);

        if (went <= 0)
            stream_cut_off(reader);
        else
            at += (size_t)went;
    }
}

static void
stream_receive_reader(struct bh_keeper_streams *streams, struct stream_reader *reader)
{
    struct bh_init_signal word;
    ssize_t got = recv(reader->fd, &word, sizeof word, MSG_DONTWAIT);

    if (got == sizeof word && reader->writer && streams->stdio == BH_STDIO_PIPE)
        stream_close_one(&streams->input);
    else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        stream_cut_off(reader);
}

/* A reader that left before the next one asked makes room, though this turn's poll had not seen it yet. */
static void
stream_receive_all(struct bh_keeper_streams *streams)
{
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++)
        if (streams->readers[i].fd >= 0)
            stream_receive_reader(streams, &streams->readers[i]);
}

static void
keeper_streams_attach(struct bh_keeper_streams *streams, const struct bh_init_request *request, int *fd)
{
    struct stream_reader *reader = NULL;
    int room = SOCKET_BYTES, input, is;
    bool writes;

    stream_receive_all(streams);
    input = stream_input_of(streams);
    writes = request->input && input >= 0 && !stream_has_writer(streams);
    is = (streams->stdio == BH_STDIO_TERMINAL ? BH_INIT_IS_TTY : 0) | (writes ? BH_INIT_IS_WRITER : 0);
    for (int i = 0; i < BH_KEEPER_READERS_MAX && !reader; i++)
        if (streams->readers[i].fd < 0)
            reader = &streams->readers[i];
    if (!reader) {
        keeper_streams_refuse(*fd, EAGAIN);
        return;
    }
    setsockopt(*fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (!keeper_streams_answer(*fd, (struct bh_init_reply){ BH_INIT_ATTACHED, is }, writes ? input : -1))
        return;
    /* what is in the chunk is in the recent output, too */
    *reader = (struct stream_reader){
        .fd = bh_fd_steal(fd), .writer = writes, .taken = streams->chunk_length, .since = bh_time_monotonic()
    };
    keeper_streams_replay(streams, reader);
}

/* ---- requests ---- */

/* A packet from a root program, with its descriptors. */
struct packet {
    char bytes[BH_INIT_REQUEST_MAX];
    size_t length;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(BH_INIT_FDS_MAX * sizeof(int))];
    } control;
    size_t control_length;
};

static bool
keeper_streams_receive(int fd, struct packet *packet)
{
    struct iovec part = { packet->bytes, sizeof packet->bytes };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = packet->control.bytes,
                              .msg_controllen = sizeof packet->control.bytes };
    ssize_t got;

    errno = 0; /* an end is no error, and none of before */
    got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    packet->length = got > 0 ? (size_t)got : 0;
    packet->control_length = got > 0 ? message.msg_controllen : 0;
    return packet->length > 0;
}

static void
stream_close_received(struct packet *packet)
{
    struct msghdr message = { .msg_control = packet->control.bytes,
                              .msg_controllen = packet->control_length };

    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int fds[BH_INIT_FDS_MAX];

        if (head->cmsg_type != SCM_RIGHTS || count > BH_INIT_FDS_MAX)
            continue;
        memcpy(fds, CMSG_DATA(head), count * sizeof(int));
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
}

/* To bulkhead-init, as it is. */
static void
stream_pass_on(struct bh_keeper_streams *streams, const struct packet *packet, int from)
{
    struct iovec part = { (void *)(uintptr_t)packet->bytes, packet->length };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = (void *)(uintptr_t)packet->control.bytes,
                              .msg_controllen = packet->control_length };

    if (sendmsg(streams->init, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        keeper_streams_refuse(from, errno);
}

static void
keeper_streams_serve(struct bh_keeper_streams *streams, int *fd)
{
    static struct packet packet;
    struct bh_init_request request;
    struct bh_peer peer;
    struct bh_err ignored;

    if (!keeper_streams_receive(*fd, &packet) || packet.length < sizeof request
        || bh_unix_peer(*fd, &peer, &ignored) != BH_OK || peer.uid != geteuid()) {
        stream_close_received(&packet);
        stream_close_one(fd);
        return;
    }
    memcpy(&request, packet.bytes, sizeof request);
    if (request.ask == BH_INIT_ATTACH)
        keeper_streams_attach(streams, &request, fd);
    else
        stream_pass_on(streams, &packet, *fd);
    stream_close_received(&packet);
    stream_close_one(fd);
}

static void
keeper_streams_admit(struct bh_keeper_streams *streams)
{
    int fd = accept4(streams->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int *place = &streams->asking[streams->next_asking++ % BH_KEEPER_READERS_MAX];

    if (fd < 0)
        return;
    bh_fd_close(*place);
    *place = fd;
}

/* ---- words of bulkhead-init ---- */

/* Once: behind the barrier these are words of the job. */
static void
stream_call_node(struct bh_keeper_streams *streams)
{
    const uint64_t one = 1;

    if (!streams->called)
        (void)!write(BH_KEEPER_BARRIER_FD, &one, sizeof one);
    streams->called = true;
}

/* Whatever it is, it is read without waiting and only then. */
static void
stream_receive_init(struct bh_keeper_streams *streams)
{
    static struct packet packet;
    struct msghdr message = { .msg_control = packet.control.bytes };
    struct bh_init_reply reply;
    struct cmsghdr *head;

    if (!keeper_streams_receive(streams->init, &packet)) {
        if (errno != EAGAIN && errno != EINTR)
            stream_close_one(&streams->init);
        return;
    }
    message.msg_controllen = packet.control_length;
    head = CMSG_FIRSTHDR(&message);
    memcpy(&reply, packet.bytes, packet.length < sizeof reply ? packet.length : sizeof reply);
    if (packet.length == sizeof reply && reply.reply_kind == BH_INIT_WAITS)
        stream_call_node(streams);
    if (packet.length == sizeof reply && reply.reply_kind == BH_INIT_TERMINAL && head
        && head->cmsg_len == CMSG_LEN(sizeof(int)) && streams->stdio == BH_STDIO_TERMINAL
        && streams->terminal < 0) {
        memcpy(&streams->terminal, CMSG_DATA(head), sizeof(int));
        fcntl(streams->terminal, F_SETFL, O_RDWR | O_NONBLOCK);
        return;
    }
    stream_close_received(&packet);
}

/* ---- the loop's part ---- */

/* Cut off clients that took nothing for too long; returns when to call again, in ms. */
static int
stream_cut_late_ones(struct bh_keeper_streams *streams)
{
    bh_ns now = bh_time_monotonic();
    int wait = -1;

    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++) {
        struct stream_reader *reader = &streams->readers[i];

        if (!stream_is_behind(streams, reader))
            continue;
        if (now - reader->since >= BH_KEEPER_TIMEOUT)
            stream_cut_off(reader);
        else
            wait = 100;
    }
    return wait;
}

/* A job with a terminal runs before its terminal is there: a client that comes so early waits for it, or it
 * would read that there is no input. */
static bool
stream_is_early(const struct bh_keeper_streams *streams)
{
    return streams->stdio == BH_STDIO_TERMINAL && streams->terminal < 0;
}

size_t
bh_keeper_streams_poll(struct bh_keeper_streams *streams, struct pollfd *polls, int *ret_wait_ms)
{
    bool early = stream_is_early(streams);
    size_t count = 0;

    *ret_wait_ms = stream_cut_late_ones(streams);
    polls[count++] = (struct pollfd){ .fd = streams->listener, .events = POLLIN };
    polls[count++] = (struct pollfd){ .fd = streams->init, .events = POLLIN };
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++) {
        const struct stream_reader *reader = &streams->readers[i];

        polls[count++] =
            (struct pollfd){ .fd = reader->fd,
                             .events = (short)(POLLIN | (stream_is_behind(streams, reader) ? POLLOUT : 0)) };
        polls[count++] = (struct pollfd){ .fd = early ? -1 : streams->asking[i], .events = POLLIN };
    }
    return count;
}

void
bh_keeper_streams_dispatch(struct bh_keeper_streams *streams, const struct pollfd *polls)
{
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++) {
        struct stream_reader *reader = &streams->readers[i];

        if (reader->fd >= 0 && polls[2 + 2 * i].revents & (POLLIN | POLLHUP | POLLERR))
            stream_receive_reader(streams, reader);
        if (reader->fd >= 0 && polls[2 + 2 * i].revents & POLLOUT)
            keeper_streams_push(streams, reader);
    }
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++)
        if (streams->asking[i] >= 0 && polls[3 + 2 * i].revents)
            keeper_streams_serve(streams, &streams->asking[i]);
    if (polls[1].revents)
        stream_receive_init(streams);
    if (polls[0].revents)
        keeper_streams_admit(streams);
}

void
bh_keeper_streams_close(struct bh_keeper_streams *streams)
{
    for (int i = 0; i < BH_KEEPER_READERS_MAX; i++) {
        struct stream_reader *reader = &streams->readers[i];

        if (reader->fd >= 0 && reader->taken == streams->chunk_length)
            (void)!stream_send_packet(reader->fd, BH_ATTACH_ENDED, "", 0);
        bh_fd_close(reader->fd);
        bh_fd_close(streams->asking[i]);
    }
    bh_fd_close(streams->listener);
    bh_fd_close(streams->init);
    bh_fd_close(streams->input);
    bh_fd_close(streams->terminal);
    free(streams);
}
