#include "net/peers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/assert.h"

struct bh_peers {
    uint32_t most_each;
    bh_ns deadline;
    pthread_t thread;
    /* under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct bh_connection *first;
    bool stopping;
};

static void
shut_late_ones(struct bh_peers *peers)
{
    bh_ns now = bh_time_monotonic();

    for (struct bh_connection *at = peers->first; at; at = at->next) {
        bh_ns since = __atomic_load_n(&at->waiting_since, __ATOMIC_RELAXED);

        if (since && now > since && now - since > peers->deadline)
            shutdown(at->fd, SHUT_RDWR);
    }
}

static void *
look_after(void *self)
{
    struct bh_peers *peers = self;
    bh_ns pause = peers->deadline / 8 + BH_NS_PER_MS;

    pthread_mutex_lock(&peers->mutex);
    while (!peers->stopping) {
        bh_ns until = bh_time_monotonic() + pause;
        struct timespec at = { (time_t)(until / BH_NS_PER_S), (long)(until % BH_NS_PER_S) };

        pthread_cond_timedwait(&peers->wake, &peers->mutex, &at);
        shut_late_ones(peers);
    }
    pthread_mutex_unlock(&peers->mutex);
    return NULL;
}

struct bh_peers *
bh_peers_new(uint32_t most_each, bh_ns deadline)
{
    struct bh_peers *peers = calloc(1, sizeof *peers);
    pthread_condattr_t monotonic;
    int failed;

    BH_ASSERT(peers);
    peers->most_each = most_each;
    peers->deadline = deadline;
    pthread_mutex_init(&peers->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&peers->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    failed = pthread_create(&peers->thread, NULL, look_after, peers);
    BH_ASSERT(!failed);
    return peers;
}

void
bh_peers_free(struct bh_peers *peers)
{
    if (!peers)
        return;
    pthread_mutex_lock(&peers->mutex);
    BH_ASSERT(!peers->first);
    peers->stopping = true;
    pthread_cond_signal(&peers->wake);
    pthread_mutex_unlock(&peers->mutex);
    pthread_join(peers->thread, NULL);
    pthread_cond_destroy(&peers->wake);
    pthread_mutex_destroy(&peers->mutex);
    free(peers);
}

static bool
same_peer(const struct bh_transport *a, const struct bh_transport *b)
{
    if (a->unix_socket != b->unix_socket)
        return false;
    return a->unix_socket ? a->uid == b->uid : strcmp(a->address, b->address) == 0;
}

/* Under the mutex. */
static bool
one_too_many(const struct bh_peers *peers, const struct bh_connection *connection)
{
    uint32_t count = 0;

    if (connection->transport.unix_socket && connection->transport.uid == 0)
        return false;
    for (const struct bh_connection *at = peers->first; at; at = at->next)
        count += same_peer(&at->transport, &connection->transport);
    return count >= peers->most_each;
}

void
bh_peers_enter(struct bh_peers *peers, struct bh_connection *connection)
{
    connection->peers = peers;
    connection->waiting_since = bh_time_monotonic();
    pthread_mutex_lock(&peers->mutex);
    if (one_too_many(peers, connection))
        shutdown(connection->fd, SHUT_RDWR);
    connection->next = peers->first;
    connection->place = &peers->first;
    if (peers->first)
        peers->first->place = &connection->next;
    peers->first = connection;
    pthread_mutex_unlock(&peers->mutex);
}

void
bh_peers_leave(struct bh_connection *connection)
{
    struct bh_peers *peers = connection->peers;

    pthread_mutex_lock(&peers->mutex);
    *connection->place = connection->next;
    if (connection->next)
        connection->next->place = connection->place;
    pthread_mutex_unlock(&peers->mutex);
}

void
bh_peers_answering(struct bh_connection *connection)
{
    __atomic_store_n(&connection->waiting_since, 0, __ATOMIC_RELAXED);
}

void
bh_peers_waiting(struct bh_connection *connection)
{
    __atomic_store_n(&connection->waiting_since, bh_time_monotonic(), __ATOMIC_RELAXED);
}
