#ifndef BH_SHARE_CLIENT_TEST_H
#define BH_SHARE_CLIENT_TEST_H

/* Processes connected to the socket of a lease, as the shim has it, for tests of bulkhead-share. */
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "bulkhead/share_socket.h"
#include "share/server_test.h"

#define UNTIL_OF(client) atomic_load(&(client).limits->device[0].until_ns)

/* A process's side, as the shim has it. */
struct client {
    int fd, slot;
    uint32_t answer;
    const struct bh_share_limits *limits;
    struct bh_share_usage *usage;
};

static inline int
client_connect(const struct fixture *fixture, uint64_t lease)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%llu/door/share.sock", fixture->folder,
             (unsigned long long)lease);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline void
client_receive(struct client *client)
{
    struct bh_share_welcome welcome = { 0 };
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = { &welcome, sizeof(welcome) };
    struct msghdr message = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof(control.bytes) };
    int fds[2];

    assert_int_equal(recvmsg(client->fd, &message, 0), sizeof(welcome));
    client->answer = welcome.answer;
    client->slot = welcome.slot;
    if (welcome.answer != BH_SHARE_WELCOME)
        return;
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
    assert_ptr_equal(
        mmap(NULL, sizeof(struct bh_share_limits), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0),
        MAP_FAILED);
    assert_int_equal(ftruncate(fds[1], 0), -1);
    client->limits = mmap(NULL, sizeof(struct bh_share_limits), PROT_READ, MAP_SHARED, fds[0], 0);
    client->usage = mmap(NULL, sizeof(struct bh_share_usage), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
    close(fds[0]);
    close(fds[1]);
}

static inline struct client
client_join(const struct fixture *fixture, uint64_t lease, struct bh_share_hello hello)
{
    struct client client = { .fd = client_connect(fixture, lease), .slot = -1 };

    assert_int_equal(send(client.fd, &hello, sizeof(hello), 0), sizeof(hello));
    client_receive(&client);
    return client;
}

static const struct bh_share_hello new_one = { BH_SHARE_MAGIC, BH_SHARE_VERSION, -1, 0 };

static inline uint32_t
slice_of(const struct client *client)
{
    return atomic_load(&client->limits->device[0].slice);
}

static inline void
client_send(const struct client *client, enum bh_share_client_kind word)
{
    struct bh_share_client_message message = { .word = word, .slice = slice_of(client) };

    assert_int_equal(send(client->fd, &message, sizeof(message), 0), sizeof(message));
}

static inline bool
comes(const struct client *client, uint32_t flags, uint64_t within_ms)
{
    uint64_t until = bh_time_monotonic() + within_ms * BH_NS_PER_MS;

    while ((slice_of(client) & (BH_SHARE_SLICE_STEP - 1)) != flags)
        if (bh_time_monotonic() > until)
            return false;
        else
            bh_time_sleep(100000);
    return true;
}

static inline bool
falls_to(const struct client *client, uint32_t units)
{
    uint64_t until = bh_time_monotonic() + 30 * BH_NS_PER_S;

    while (bh_share_used(client->usage, 0) != units)
        if (bh_time_monotonic() > until)
            return false;
        else
            bh_time_sleep(1000000);
    return true;
}

#endif
