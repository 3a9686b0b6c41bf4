#ifndef BH_SHARE_SERVER_TEST_H
#define BH_SHARE_SERVER_TEST_H

/* bulkhead-share in a process of its own with the node's side of its socket, for its tests. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "base/time.h"
#include "share/message.h"
#include "share/server.h"
#include "wire/frame_io.h"

#define MIB (UINT64_C(1) << 20)
#define UUID "GPU-00112233-4455-6677-8899-aabbccddeeff"

struct fixture {
    char folder[64];
    pid_t server;
    struct bh_link *link;
    struct bh_share_notice notice; /* the last one */
    uint64_t round_ns;             /* of time slices; 0: as usual */
};

static inline void
start_server(struct fixture *fixture)
{
    struct bh_err err = { 0 };
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    fixture->server = fork();
    if (fixture->server == 0) {
        close(pair[0]);
        _exit(bh_share_serve(pair[1], &(struct bh_time_slices_options){ .round_ns = fixture->round_ns }, &err)
                      == BH_UNAVAILABLE
                  ? 0
                  : 1);
    }
    close(pair[1]);
    fixture->link = bh_link_new(pair[0]);
}

static inline void
stop_server(struct fixture *fixture, int signal)
{
    int status;

    if (signal != 0)
        kill(fixture->server, signal);
    bh_link_free(fixture->link);
    fixture->link = NULL;
    assert_int_equal(waitpid(fixture->server, &status, 0), fixture->server);
    if (signal == 0)
        assert_int_equal(status, 0);
}

static const uint64_t long_round_ns = 20 * BH_NS_PER_S;

static inline int
set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .folder = "/tmp/bh-share-XXXXXX" };
    fixture.round_ns = *state != NULL ? *(const uint64_t *)*state : 0;
    *state = &fixture;
    if (geteuid() != 0 || mkdtemp(fixture.folder) == NULL)
        return -1;
    start_server(&fixture);
    return 0;
}

static inline int
tear_down(void **state)
{
    struct fixture *fixture = *state;
    char command[128];

    if (fixture->link != NULL)
        stop_server(fixture, 0);
    snprintf(command, sizeof(command), "%s/door", fixture->folder);
    rmdir(command);
    return rmdir(fixture->folder);
}

/* The next message of that kind; others on the way are kept or dropped. */
static inline void
server_await(struct fixture *fixture, uint32_t number, void *ret_message)
{
    uint64_t until = bh_time_monotonic() + 20 * BH_NS_PER_S;
    static struct bh_arena *arena;
    struct bh_err err = { 0 };
    struct bh_frame frame;

    bh_arena_free(arena);
    arena = bh_arena_new(1 << 18);
    while (bh_time_monotonic() < until) {
        struct pollfd poll_fd = { bh_link_fd(fixture->link), POLLIN, 0 };

        while (bh_link_next(fixture->link, &frame, &err) == BH_OK) {
            const struct bh_fields *fields = bh_share_message_fields(frame.number);

            assert_non_null(fields);
            if (frame.number == BH_SHARE_MSG_NOTICE)
                assert_int_equal(bh_frame_decode(&frame, fields, &fixture->notice, arena, &err), BH_OK);
            if (frame.number != number)
                continue;
            assert_int_equal(bh_frame_decode(&frame, fields, ret_message, arena, &err), BH_OK);
            return;
        }
        poll(&poll_fd, 1, 1000);
        assert_int_equal(bh_link_readable(fixture->link, &err), BH_OK);
    }
    fail_msg("no message %u within 20 s", number);
}

static inline struct bh_share_open
lease_of(const struct fixture *fixture, uint64_t lease, uint64_t cap_mib)
{
    struct bh_share_open open = { .lease = lease, .weight = 2100, .gpu_count = 1 };

    snprintf(open.folder, sizeof(open.folder), "%s/%llu", fixture->folder, (unsigned long long)lease);
    open.gpus[0] = (struct bh_share_gpu){
        .uuid = UUID, .cap_bytes = cap_mib * MIB, .context_bytes = 2 * MIB, .memory_bytes = 80 * 1024 * MIB
    };
    mkdir(open.folder, 0700);
    return open;
}

static inline void
send_message(struct fixture *fixture, uint32_t number, const void *message)
{
    struct bh_err err = { 0 };

    assert_int_equal(bh_link_send(fixture->link, number, bh_share_message_fields(number), message, &err),
                     BH_OK);
}

static inline uint32_t
server_ask(struct fixture *fixture, const struct bh_share_open *open)
{
    struct bh_share_outcome outcome;

    send_message(fixture, BH_SHARE_MSG_OPEN, open);
    server_await(fixture, BH_SHARE_MSG_OUTCOME, &outcome);
    assert_int_equal(outcome.lease, open->lease);
    return outcome.rc;
}

static inline void
close_lease(struct fixture *fixture, uint64_t lease)
{
    struct bh_share_close close = { .lease = lease };
    struct bh_share_outcome outcome;
    char path[96];

    send_message(fixture, BH_SHARE_MSG_CLOSE, &close);
    server_await(fixture, BH_SHARE_MSG_OUTCOME, &outcome);
    snprintf(path, sizeof(path), "%s/%llu/door", fixture->folder, (unsigned long long)lease);
    rmdir(path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0);
}

#endif
