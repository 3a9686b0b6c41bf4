#ifndef BH_DAEMON_PEER_FIXTURE_TEST_H
#define BH_DAEMON_PEER_FIXTURE_TEST_H

/* Nodes that a test plays: each a socket, and answers of its own. */

#include "daemon/fixture_test.h"

#include <poll.h>
#include <sys/socket.h>

#include "daemon/links.h"
#include "wire/frame_io.h"
#include "wire/message.h"

enum { NODES_MAX = 3, STEPS = 16 };

/* A node with one GPU that does what it is told at once, unless it is mute. */
struct peer {
    const char *file, *name, *gpu; /* file NULL: no such node */
    int listener;
    struct bh_link *io;
    bool mute;
    bool slow;                   /* does not say that it started a job */
    uint64_t start_order;
    uint64_t partition, lease;       /* what it has */
    const struct bh_msg_ended *untold; /* said on each connection, before SETTLED */
    uint32_t hellos, carves, starts, keeps;
    uint64_t order;              /* of the last CARVE */
    uint64_t marks, kept_marks;  /* says so after its inventory; named by the last KEEP */
    uint32_t kept_leases, kept_partitions; /* named by the last KEEP */
    char carved_on[BH_UUID_MAX];
};

struct scene {
    struct fixture f;
    char folder[64];
    struct bh_node_links *links;
    struct peer peers[NODES_MAX];
};

/* ---- a node's side ---- */

static void
peer_path_of(const struct scene *s, const struct peer *peer, char ret_path[108])
{
    snprintf(ret_path, 108, "%s/%s", s->folder, peer->file);
}

static void
peer_open(struct scene *s, struct peer *peer)
{
    char path[108];

    peer_path_of(s, peer, path);
    assert_int_equal(bh_unix_listen(path, 0600, &peer->listener, &s->f.err), BH_OK);
}

/* The program ends; what it has stays. */
static void
peer_close(struct scene *s, struct peer *peer)
{
    char path[108];

    bh_link_free(peer->io);
    peer->io = NULL;
    close(peer->listener);
    peer->listener = -1;
    peer_path_of(s, peer, path);
    unlink(path);
}

static void
peer_send(struct peer *peer, uint32_t number, const void *message)
{
    struct bh_err err;

    assert_int_equal(bh_link_send(peer->io, number, bh_message_fields(number), message, &err),
                     BH_OK);
}

static void
send_inventory(struct peer *peer)
{
    struct bh_msg_gpu gpu = { .model = "H100-80GB", .mig_capable = true, .allowed = true };
    struct bh_msg_partition partition = { .partition = peer->partition, .profile = "whole" };
    struct bh_msg_lease_state lease = { .lease = peer->lease };
    struct bh_msg_inventory inventory = { .gpus = { &gpu, 1 },
                                          .partitions = { &partition, peer->partition != 0 },
                                          .leases = { &lease, peer->lease != 0 } };

    snprintf(gpu.uuid, sizeof gpu.uuid, "%s", peer->gpu);
    snprintf(partition.gpu, sizeof partition.gpu, "%s", peer->gpu);
    snprintf(inventory.node, sizeof inventory.node, "%s", peer->name);
    peer_send(peer, BH_MSG_INVENTORY, &inventory);
    peer_send(peer, BH_MSG_MARKS, &(struct bh_msg_marks){ peer->marks });
    if (peer->untold)
        peer_send(peer, BH_MSG_ENDED, peer->untold);
    peer_send(peer, BH_MSG_SYNCED, &(struct bh_msg_synced){ .ends = 0 });
}

static void
send_done(struct peer *peer, uint64_t order)
{
    struct bh_msg_outcome outcome = { .order = order };

    if (!peer->mute)
        peer_send(peer, BH_MSG_OUTCOME, &outcome);
}

static void
peer_receive(struct peer *peer, uint32_t number, const void *message)
{
    const struct bh_msg_carve *carve = message;
    const struct bh_msg_start *start = message;
    const struct bh_msg_retain *keep = message;

    if (number == BH_MSG_HELLO) {
        peer->hellos++;
        send_inventory(peer);
    }
    if (number == BH_MSG_RETAIN) {
        peer->keeps++;
        peer->kept_marks = keep->marks;
        peer->kept_leases = keep->leases.count;
        peer->kept_partitions = keep->partitions.count;
    }
    if (number == BH_MSG_CARVE) {
        peer->carves++;
        peer->order = carve->order;
        memcpy(peer->carved_on, carve->gpu, sizeof peer->carved_on);
        peer->partition = peer->mute ? 0 : carve->partition;
        send_done(peer, carve->order);
    }
    if (number == BH_MSG_START) {
        peer->starts++;
        peer->lease = start->lease;
        peer->start_order = start->order;
        if (!peer->slow)
            send_done(peer, start->order);
    }
}

static void
peer_read(struct peer *peer, struct bh_arena *arena)
{
    struct bh_frame frame;
    struct bh_err err;
    bh_rc rc = bh_link_readable(peer->io, &err);

    while (rc == BH_OK && (rc = bh_link_next(peer->io, &frame, &err)) == BH_OK) {
        const struct bh_fields *fields = bh_message_fields(frame.number);
        void *message = bh_arena_alloc(arena, fields->size);

        assert_int_equal(bh_frame_decode(&frame, fields, message, arena, &err), BH_OK);
        peer_receive(peer, frame.number, message);
    }
    if (rc == BH_NOT_FOUND)
        return;
    bh_link_free(peer->io);
    peer->io = NULL;
}

static void
peer_step(struct scene *s, struct peer *peer)
{
    struct pollfd waiting = { .fd = peer->listener, .events = POLLIN };

    if (peer->listener < 0)
        return;
    if (!peer->io && poll(&waiting, 1, 0) == 1)
        peer->io = bh_link_new(accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC));
    if (peer->io)
        peer_read(peer, s->f.arena);
}

#endif
