#include "bench/fleet_nodes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "model/job.h"
#include "wire/frame_io.h"
#include "wire/message.h"

enum { PIECES_MAX = 4 * FLEET_GPUS_MAX, ARENA_MAX = 8 << 20, SOCKET_MODE = 0666 };

struct lease {
    uint64_t lease, start_order; /* lease 0: unused */
    bool running, ended;
};

struct node {
    uint32_t number;
    int listener;
    struct bh_link *link; /* NULL: the daemon is not connected */
    uint32_t watched;
    struct bh_msg_partition partitions[PIECES_MAX]; /* partition 0: unused */
    struct lease leases[PIECES_MAX];
};

struct fleet {
    struct node *nodes;
    uint32_t node_count;
    uint64_t jobs;
    _Atomic bh_ns *started_ns;
    atomic_uint greeted, running, unnamed;
    atomic_bool stopping, ending;
    int epoll_fd, wake_fd;
    struct bh_arena *arena;
    pthread_t thread;
};

/* ---- saying ---- */

static void
send_message(struct node *node, uint32_t number, const void *message)
{
    struct bh_err err;

    BH_ASSERT(bh_link_put(node->link, number, bh_message_fields(number), message, &err) == BH_OK);
}

static void
hang_up(struct node *node)
{
    bh_link_free(node->link);
    node->link = NULL;
}

static void
write_out(struct fleet *fleet, struct node *node)
{
    struct epoll_event event = { .data.ptr = &node->link };
    struct bh_err err;

    if (!node->link)
        return;
    if (bh_link_flush(node->link, &err) != BH_OK) {
        hang_up(node);
        return;
    }
    event.events = (uint32_t)bh_link_interest(node->link);
    if (event.events == node->watched)
        return;
    BH_ASSERT(epoll_ctl(fleet->epoll_fd, node->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                        bh_link_fd(node->link), &event)
              == 0);
    node->watched = event.events;
}

static void
done(struct node *node, uint64_t order)
{
    struct bh_msg_outcome outcome = { .order = order, .at_ns = bh_time_now() };

    send_message(node, BH_MSG_OUTCOME, &outcome);
}

static void
send_ended(struct node *node, const struct lease *lease, enum bh_end_cause cause)
{
    struct bh_msg_ended ended = {
        .lease = lease->lease, .cause = cause, .ended_ns = bh_time_now(), .unasked = true
    };

    send_message(node, BH_MSG_ENDED, &ended);
}

static void
gpu_uuid(const struct node *node, uint32_t gpu, char ret_uuid[BH_UUID_MAX])
{
    snprintf(ret_uuid, BH_UUID_MAX, "GPU-%08x-0000-0000-0000-%012x", node->number, gpu);
}

/* ---- receiving ---- */

static void
receive_hello(struct fleet *fleet, struct node *node, const void *unused)
{
    struct bh_msg_gpu gpus[FLEET_GPUS_MAX] = { 0 };
    struct bh_msg_lease_state leases[PIECES_MAX];
    struct bh_msg_partition partitions[PIECES_MAX];
    struct bh_msg_inventory inventory = {
        .driver = "580.65.06", .runtime = "none", .cpus = 128, .memory_mib = 1 << 20
    };

    snprintf(inventory.node, sizeof inventory.node, "node-%04u", node->number);
    for (uint32_t i = 0; i < FLEET_GPUS_MAX; i++) {
        gpus[i] = (struct bh_msg_gpu){ .product = "NVIDIA H100 80GB HBM3",
                                       .model = "H100-80GB",
                                       .index = i,
                                       .minor = i,
                                       .memory_mib = 81559,
                                       .mig_capable = true,
                                       .allowed = true };
        gpu_uuid(node, i, gpus[i].uuid);
    }
    inventory.gpus = (struct bh_list){ gpus, FLEET_GPUS_MAX };
    inventory.leases = (struct bh_list){ leases, 0 };
    inventory.partitions = (struct bh_list){ partitions, 0 };
    for (uint32_t i = 0; i < PIECES_MAX; i++) {
        if (node->leases[i].lease)
            leases[inventory.leases.count++].lease = node->leases[i].lease;
        if (node->partitions[i].partition)
            partitions[inventory.partitions.count++] = node->partitions[i];
    }
    send_message(node, BH_MSG_INVENTORY, &inventory);
    send_message(node, BH_MSG_SYNCED, &(struct bh_msg_synced){ .ends = 0 }); /* no end is unsent: it is up */
}

static bool
is_named(const struct bh_list *list, uint64_t id)
{
    const struct bh_msg_retain_item *items = list->items;

    for (uint32_t i = 0; i < list->count; i++)
        if (items[i].id == id)
            return true;
    return false;
}

static void
receive_retain(struct fleet *fleet, struct node *node, const void *message)
{
    const struct bh_msg_retain *keep = message;

    for (uint32_t i = 0; i < PIECES_MAX; i++)
        if (node->leases[i].running && !is_named(&keep->leases, node->leases[i].lease))
            atomic_fetch_add(&fleet->unnamed, 1);
    atomic_fetch_add(&fleet->greeted, 1);
}

static struct bh_msg_partition *
find_partition(struct node *node, uint64_t partition)
{
    for (uint32_t i = 0; i < PIECES_MAX; i++)
        if (node->partitions[i].partition == partition)
            return &node->partitions[i];
    return NULL;
}

static struct lease *
find_lease(struct node *node, uint64_t lease)
{
    for (uint32_t i = 0; i < PIECES_MAX; i++)
        if (node->leases[i].lease == lease)
            return &node->leases[i];
    return NULL;
}

static void
receive_carve(struct fleet *fleet, struct node *node, const void *message)
{
    const struct bh_msg_carve *carve = message;
    struct bh_msg_partition *held = find_partition(node, carve->partition);

    if (!held)
        held = find_partition(node, 0);
    BH_ASSERT(held);
    held->partition = carve->partition;
    memcpy(held->gpu, carve->gpu, sizeof held->gpu);
    memcpy(held->profile, carve->profile, sizeof held->profile);
    done(node, carve->order);
}

static void
receive_destroy(struct fleet *fleet, struct node *node, const void *message)
{
    const struct bh_msg_destroy *destroy = message;
    struct bh_msg_partition *held = find_partition(node, destroy->partition);

    if (held)
        *held = (struct bh_msg_partition){ 0 };
    done(node, destroy->order);
}

static void
receive_start(struct fleet *fleet, struct node *node, const void *message)
{
    const struct bh_msg_start *start = message;
    struct lease *held = find_lease(node, start->lease);

    if (!held)
        held = find_lease(node, 0);
    BH_ASSERT(held);
    *held = (struct lease){ .lease = start->lease, .start_order = start->order };
    if (start->job < fleet->jobs)
        fleet->started_ns[start->job] = bh_time_monotonic();
    done(node, start->order);
}

static void
receive_stop(struct fleet *fleet, struct node *node, const void *message)
{
    const struct bh_msg_stop *stop = message;
    struct lease *lease = find_lease(node, stop->lease);

    done(node, stop->order);
    if (lease)
        send_ended(node, lease, BH_END_SIGNALLED);
}

static void
receive_pause(struct fleet *fleet, struct node *node, const void *message)
{
    const struct bh_msg_lease *lease = message;

    done(node, lease->order);
}

static void
receive_ack(struct fleet *fleet, struct node *node, const void *message)
{
    const struct bh_msg_ack *ack = message;

    for (uint32_t i = 0; i < PIECES_MAX; i++) {
        struct lease *lease = &node->leases[i];

        if (ack->order && lease->lease && lease->start_order == ack->order && !lease->running) {
            lease->running = true;
            atomic_fetch_add(&fleet->running, 1);
        }
        if (ack->lease && lease->lease == ack->lease) {
            if (lease->running)
                atomic_fetch_sub(&fleet->running, 1);
            *lease = (struct lease){ 0 };
        }
    }
}

static void (*const receive[])(struct fleet *fleet, struct node *node, const void *message) = {
    [BH_MSG_HELLO] = receive_hello, [BH_MSG_CARVE] = receive_carve,   [BH_MSG_DESTROY] = receive_destroy,
    [BH_MSG_START] = receive_start, [BH_MSG_SUSPEND] = receive_pause, [BH_MSG_RESUME] = receive_pause,
    [BH_MSG_STOP] = receive_stop,   [BH_MSG_ACK] = receive_ack,       [BH_MSG_RETAIN] = receive_retain,
};

static void
read_node(struct fleet *fleet, struct node *node)
{
    struct bh_frame frame;
    struct bh_err err;
    bh_rc rc;

    if (bh_link_readable(node->link, &err) != BH_OK) {
        hang_up(node);
        return;
    }
    while ((rc = bh_link_next(node->link, &frame, &err)) == BH_OK) {
        const struct bh_fields *fields = bh_message_fields(frame.number);
        void *message;

        bh_arena_reset(fleet->arena);
        BH_ASSERT(frame.number < BH_COUNT(receive) && receive[frame.number]);
        message = bh_arena_alloc(fleet->arena, fields->size);
        BH_ASSERT(message);
        BH_ASSERT(bh_frame_decode(&frame, fields, message, fleet->arena, &err) == BH_OK);
        receive[frame.number](fleet, node, message);
    }
    if (rc != BH_NOT_FOUND)
        hang_up(node);
}

/* ---- the thread ---- */

static void
accept_daemon(struct node *node)
{
    int fd = accept4(node->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (node->link)
        hang_up(node);
    node->link = bh_link_new(fd);
    node->watched = 0;
}

static void
end_leases(struct fleet *fleet, struct node *node)
{
    for (uint32_t i = 0; i < PIECES_MAX && node->link; i++)
        if (node->leases[i].running && !node->leases[i].ended) {
            node->leases[i].ended = true;
            send_ended(node, &node->leases[i], BH_END_EXITED);
        }
    write_out(fleet, node);
}

static struct node *
node_of(struct fleet *fleet, const void *place)
{
    size_t offset = (size_t)((const char *)place - (const char *)fleet->nodes);

    return &fleet->nodes[offset / sizeof(struct node)];
}

static void
serve(struct fleet *fleet, void *place)
{
    struct node *node = place ? node_of(fleet, place) : NULL;
    uint64_t count;

    if (!node) {
        BH_ASSERT(read(fleet->wake_fd, &count, sizeof count) == sizeof count);
        return;
    }
    if (place == node)
        accept_daemon(node);
    else if (node->link)
        read_node(fleet, node);
    write_out(fleet, node);
}

static void *
run_fleet(void *self)
{
    struct fleet *fleet = self;
    struct epoll_event ready[256];

    while (!atomic_load(&fleet->stopping)) {
        int n = epoll_wait(fleet->epoll_fd, ready, (int)BH_COUNT(ready), -1);

        for (int i = 0; i < n; i++)
            serve(fleet, ready[i].data.ptr);
        if (!atomic_exchange(&fleet->ending, false))
            continue;
        for (uint32_t i = 0; i < fleet->node_count; i++)
            end_leases(fleet, &fleet->nodes[i]);
    }
    return NULL;
}

static void
wake(struct fleet *fleet)
{
    uint64_t one = 1;

    BH_ASSERT(write(fleet->wake_fd, &one, sizeof one) == sizeof one);
}

static void
listen_node(struct fleet *fleet, struct node *node, const char *folder)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = node };
    char path[108];
    struct bh_err err;

    snprintf(path, sizeof path, "%s/node-%04u.sock", folder, node->number);
    if (bh_unix_listen(path, SOCKET_MODE, &node->listener, &err) != BH_OK) {
        fprintf(stderr, "fleet: %s\n", err.msg);
        exit(1);
    }
    BH_ASSERT(epoll_ctl(fleet->epoll_fd, EPOLL_CTL_ADD, node->listener, &event) == 0);
}

struct fleet *
bh_fleet_start(const char *folder, uint32_t nodes, uint32_t jobs)
{
    struct epoll_event event = { .events = EPOLLIN };
    struct fleet *fleet = calloc(1, sizeof *fleet);

    BH_ASSERT(fleet && nodes <= FLEET_NODES_MAX);
    fleet->nodes = calloc(nodes, sizeof *fleet->nodes);
    fleet->started_ns = calloc(jobs, sizeof *fleet->started_ns);
    BH_ASSERT(fleet->nodes && fleet->started_ns);
    fleet->node_count = nodes;
    fleet->jobs = jobs;
    fleet->arena = bh_arena_new(ARENA_MAX);
    fleet->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    fleet->wake_fd = eventfd(0, EFD_CLOEXEC);
    BH_ASSERT(epoll_ctl(fleet->epoll_fd, EPOLL_CTL_ADD, fleet->wake_fd, &event) == 0);
    for (uint32_t i = 0; i < nodes; i++) {
        fleet->nodes[i].number = i;
        listen_node(fleet, &fleet->nodes[i], folder);
    }
    BH_ASSERT(pthread_create(&fleet->thread, NULL, run_fleet, fleet) == 0);
    return fleet;
}

void
bh_fleet_stop(struct fleet *fleet)
{
    atomic_store(&fleet->stopping, true);
    wake(fleet);
    pthread_join(fleet->thread, NULL);
    for (uint32_t i = 0; i < fleet->node_count; i++) {
        bh_link_free(fleet->nodes[i].link);
        close(fleet->nodes[i].listener);
    }
    close(fleet->epoll_fd);
    close(fleet->wake_fd);
    bh_arena_free(fleet->arena);
    free((void *)fleet->started_ns);
    free(fleet->nodes);
    free(fleet);
}

uint32_t
bh_fleet_greeted(const struct fleet *fleet)
{
    return atomic_load(&fleet->greeted);
}

uint32_t
bh_fleet_running(const struct fleet *fleet)
{
    return atomic_load(&fleet->running);
}

uint32_t
bh_fleet_unnamed(const struct fleet *fleet)
{
    return atomic_load(&fleet->unnamed);
}

bh_ns
bh_fleet_started_ns(const struct fleet *fleet, uint64_t job)
{
    return job < fleet->jobs ? fleet->started_ns[job] : 0;
}

void
bh_fleet_end_all(struct fleet *fleet)
{
    atomic_store(&fleet->ending, true);
    wake(fleet);
}
