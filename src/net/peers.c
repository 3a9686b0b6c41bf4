#include "net/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/assert.h"

struct bh_peers {
    struct bh_peers_limits limits;
    pthread_t thread;
    /* under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct bh_connection *first;
    bool stopping;
};

/* ---- who is at the other end ---- */

/* Whoever has an address of IPv6 has a block of 2^64, and is counted as one.  An address of IPv4
 * that comes to a socket of IPv6 is counted as itself. */
static void
name_block(const struct in6_addr *from, struct bh_transport *transport)
{
    struct in6_addr block = *from;
    char text[INET6_ADDRSTRLEN] = "";

    if (IN6_IS_ADDR_V4MAPPED(from)) {
        (void)inet_ntop(AF_INET, &from->s6_addr[12], transport->block, sizeof transport->block);
        return;
    }
    memset(&block.s6_addr[8], 0, 8);
    (void)inet_ntop(AF_INET6, &block, text, sizeof text);
    snprintf(transport->block, sizeof transport->block, "%s/64", text);
}

void
bh_peers_read_address(const struct sockaddr *from, struct bh_transport *transport)
{
    const struct sockaddr_in *v4 = (const void *)from;
    const struct sockaddr_in6 *v6 = (const void *)from;
    char *text = transport->address;

    transport->uid = transport->gid = UINT32_MAX;
    if (from->sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &v4->sin_addr, text, sizeof transport->address);
        memcpy(transport->block, text, sizeof transport->block);
        return;
    }
    (void)inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof transport->address);
    name_block(&v6->sin6_addr, transport);
}

/* ---- places ---- */

static bool
flag(const bool *place)
{
    return __atomic_load_n(place, __ATOMIC_RELAXED);
}

static bh_ns
waiting_since(const struct bh_connection *connection)
{
    return __atomic_load_n(&connection->waiting_since, __ATOMIC_RELAXED);
}

/* Under the mutex. */
static void
tell_to_end(struct bh_connection *connection)
{
    connection->leaving = true;
    shutdown(connection->fd, SHUT_RDWR);
}

static void
shut_late_ones(struct bh_peers *peers)
{
    bh_ns now = bh_time_monotonic();

    for (struct bh_connection *at = peers->first; at; at = at->next) {
        bool strange = !flag(&at->known) && !flag(&at->spoke);
        bh_ns most = strange ? peers->limits.head : peers->limits.request;
        bh_ns since = waiting_since(at);

        if (since && now > since && now - since > most)
            tell_to_end(at);
    }
}

static void *
look_after(void *self)
{
    struct bh_peers *peers = self;
    bh_ns pause = peers->limits.head / 8 + BH_NS_PER_MS;

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
bh_peers_new(const struct bh_peers_limits *limits)
{
    struct bh_peers *peers = calloc(1, sizeof *peers);
    pthread_condattr_t monotonic;
    int failed;

    BH_ASSERT(peers);
    peers->limits = *limits;
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
is_root(const struct bh_connection *connection)
{
    return connection->transport.unix_socket && connection->transport.uid == 0;
}

static bool
same_peer(const struct bh_transport *a, const struct bh_transport *b)
{
    if (a->unix_socket != b->unix_socket)
        return false;
    return a->unix_socket ? a->uid == b->uid : strcmp(a->block, b->block) == 0;
}

/* Those that count beside a newcomer, and who of them could make room. */
struct crowd {
    uint32_t all, strangers, of_peer;
    struct bh_connection *oldest, *oldest_of_peer; /* strangers that wait for a request */
};

static void
take_older(struct bh_connection **oldest, struct bh_connection *candidate)
{
    if (!*oldest || waiting_since(candidate) < waiting_since(*oldest))
        *oldest = candidate;
}

/* Under the mutex. */
static struct crowd
count(const struct bh_peers *peers, const struct bh_connection *newcomer)
{
    struct crowd crowd = { 0 };

    for (struct bh_connection *at = peers->first; at; at = at->next) {
        bool strange = !flag(&at->known), same = same_peer(&at->transport, &newcomer->transport);

        if (at->leaving)
            continue;
        crowd.all++;
        crowd.strangers += strange;
        crowd.of_peer += same;
        if (!strange || !waiting_since(at))
            continue;
        take_older(&crowd.oldest, at);
        if (same)
            take_older(&crowd.oldest_of_peer, at);
    }
    return crowd;
}

/* Under the mutex: whether the newcomer may stay, after somebody made room where that was needed.
 * Root always may: the library takes some more than there are places. */
static bool
make_room(const struct bh_peers *peers, const struct bh_connection *newcomer)
{
    struct crowd crowd = count(peers, newcomer);
    struct bh_connection *oldest = NULL;
    bool root = is_root(newcomer), lacking = true;

    if (!root && crowd.of_peer >= peers->limits.most_each)
        oldest = crowd.oldest_of_peer;
    else if (crowd.all >= peers->limits.most
             || (!root && crowd.strangers >= peers->limits.most_strangers))
        oldest = crowd.oldest;
    else
        lacking = false;
    if (oldest)
        tell_to_end(oldest);
    return root || oldest || !lacking;
}

void
bh_peers_enter(struct bh_peers *peers, struct bh_connection *connection)
{
    connection->peers = peers;
    connection->waiting_since = bh_time_monotonic();
    connection->known = is_root(connection);
    pthread_mutex_lock(&peers->mutex);
    if (!make_room(peers, connection))
        tell_to_end(connection);
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
bh_peers_spoke(struct bh_connection *connection)
{
    __atomic_store_n(&connection->spoke, true, __ATOMIC_RELAXED);
}

void
bh_peers_answering(struct bh_connection *connection)
{
    __atomic_store_n(&connection->waiting_since, 0, __ATOMIC_RELAXED);
}

void
bh_peers_known(struct bh_connection *connection)
{
    __atomic_store_n(&connection->known, true, __ATOMIC_RELAXED);
}

void
bh_peers_waiting(struct bh_connection *connection)
{
    __atomic_store_n(&connection->spoke, false, __ATOMIC_RELAXED);
    __atomic_store_n(&connection->waiting_since, bh_time_monotonic(), __ATOMIC_RELAXED);
}
