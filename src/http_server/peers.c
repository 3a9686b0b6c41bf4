#include "http_server/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/lock.h"
#include "base/vec.h"
#include "http_server/socket.h"
#include "ports/crowd_news.h"

enum { REFUSED_MOST = 16, ROOM_MAX = 1 << 20 };

struct bh_peers {
    struct bh_peers_limits limits;
    pthread_t thread;
    /* under mutex */
    struct bh_mutex mutex;
    struct bh_condition wake;
    struct bh_connection *first;
    uint32_t count;
    uint32_t refused; /* connections that get a refusal */
    struct bh_crowd_news news;
    uint32_t unreported_taken, unreported_refused;
    /* room for choosing */
    struct bh_place *places;
    struct bh_connection **taken;
    uint64_t *scratch;
    size_t room;
    bool stopping;
};

/* ---- the peer ---- */

/* A client with an address of IPv6 has a block of 2^64 addresses, and counts as one.  An address of IPv4 that
 * comes to a socket of IPv6 counts as itself. */
static void
peers_name_block(const struct in6_addr *from, struct bh_transport *transport)
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
    peers_name_block(&v6->sin6_addr, transport);
}

/* ---- places ---- */

/* FNV-1a; the first bits tell blocks and principals from users. */
static uint64_t
peers_number_of_block(const char *block)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *block; block++)
        hash = (hash ^ (uint8_t)*block) * UINT64_C(0x100000001b3);
    return (hash & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 62;
}

static uint64_t
peers_number_of_principal(uint32_t principal)
{
    return principal | UINT64_C(1) << 63;
}

/* Under the mutex. */
static void
peers_shut_down(struct bh_connection *connection)
{
    connection->leaving = true;
    shutdown(connection->fd, SHUT_RDWR);
}

static void
peers_shut_late_ones(struct bh_peers *peers)
{
    bh_ns now = bh_time_monotonic();

    BH_ASSERT(bh_mutex_is_held(&peers->mutex));
    for (struct bh_connection *at = peers->first; at; at = at->next) {
        bool waits = at->place.state == BH_PLACE_WAITING, strange = waits && !at->place.known;
        bh_ns most = strange ? peers->limits.head : peers->limits.request;
        bh_ns since = at->place.since;

        if ((waits || at->place.state == BH_PLACE_RECEIVING) && now > since && now - since > most)
            peers_shut_down(at);
    }
}

static void *
peers_watch_connections(void *self)
{
    struct bh_peers *peers = self;
    bh_ns pause = peers->limits.head / 8 + BH_NS_PER_MS;

    bh_mutex_lock(&peers->mutex);
    while (!peers->stopping) {
        bh_condition_wait_until(&peers->wake, &peers->mutex, bh_time_monotonic() + pause);
        peers_shut_late_ones(peers);
    }
    bh_mutex_unlock(&peers->mutex);
    return NULL;
}

struct bh_peers *
bh_peers_new(const struct bh_peers_limits *limits)
{
    struct bh_peers *peers = calloc(1, sizeof *peers);
    int failed;

    BH_ASSERT(peers);
    peers->limits = *limits;
    bh_mutex_init(&peers->mutex, BH_LOCK_PEERS);
    bh_condition_init(&peers->wake);
    failed = pthread_create(&peers->thread, NULL, peers_watch_connections, peers);
    BH_ASSERT(!failed);
    return peers;
}

void
bh_peers_free(struct bh_peers *peers)
{
    if (!peers)
        return;
    bh_mutex_lock(&peers->mutex);
    BH_ASSERT(!peers->first);
    peers->stopping = true;
    bh_condition_signal(&peers->wake);
    bh_mutex_unlock(&peers->mutex);
    pthread_join(peers->thread, NULL);
    bh_condition_fini(&peers->wake);
    bh_mutex_fini(&peers->mutex);
    free(peers->places);
    free(peers->taken);
    free(peers->scratch);
    free(peers);
}

static bool
peers_is_root(const struct bh_connection *connection)
{
    return connection->transport.unix_socket && connection->transport.uid == 0;
}

/* ---- a newcomer ---- */

/* The same room in all three. */
static void
peers_reserve(struct bh_peers *peers, size_t wanted)
{
    size_t taken = peers->room, scratch = peers->room;

    if (!bh_vec_reserve(&peers->taken, &taken, wanted, ROOM_MAX)
        || !bh_vec_reserve(&peers->scratch, &scratch, wanted, ROOM_MAX)
        || !bh_vec_reserve(&peers->places, &peers->room, wanted, ROOM_MAX))
        BH_ASSERT(false);
}

/* Those that count. */
static size_t
peers_gather(struct bh_peers *peers)
{
    size_t peers_count = 0;

    BH_ASSERT(bh_mutex_is_held(&peers->mutex));
    for (struct bh_connection *at = peers->first; at; at = at->next) {
        if (at->leaving)
            continue;
        peers_reserve(peers, peers_count + 1);
        peers->places[peers_count] = at->place;
        peers->taken[peers_count++] = at;
    }
    return peers_count;
}

/* Over TCP a client that goes says so only in its own direction; on a unix socket both ends do. */
static bool
peers_is_gone(const struct bh_connection *connection)
{
    struct pollfd at = { connection->fd, 0, 0 };

    if (!connection->transport.unix_socket)
        at.events = POLLRDHUP;
    return poll(&at, 1, 0) > 0;
}

/* Streams whose clients have gone count no more, though the stream loop has not seen it yet. */
static bool
peers_drop_gone_streams(const struct bh_peers *peers, size_t peers_count)
{
    bool found = false;

    BH_ASSERT(bh_mutex_is_held(&peers->mutex));
    for (size_t i = 0; i < peers_count; i++)
        if (peers->places[i].state == BH_PLACE_STREAM && peers_is_gone(peers->taken[i])) {
            peers_shut_down(peers->taken[i]);
            found = true;
        }
    return found;
}

static struct bh_places_choice
peers_choose(struct bh_peers *peers, const struct bh_connection *joining)
{
    struct bh_places_choice choice;
    size_t peers_count;

    do {
        peers_count = peers_gather(peers);
        choice = bh_places_choose(&(struct bh_places){ peers->places, peers_count, peers->scratch,
                                                       peers->limits.places, bh_time_monotonic() },
                                  &joining->place, peers_is_root(joining));
    } while (choice.lacking && peers_drop_gone_streams(peers, peers_count));
    return choice;
}

/* A refused connection gets an answer, unless so many get one that they would keep others out. */
static void
peers_refuse(struct bh_peers *peers, struct bh_connection *joining)
{
    joining->refused = peers->refused < REFUSED_MOST;
    peers->refused += joining->refused;
    joining->leaving = true;
    if (!joining->refused)
        peers_shut_down(joining);
}

/* ---- telling of it ---- */

static void
peers_write_name(const struct bh_connection *connection, char text[BH_WHO_TEXT])
{
    const struct bh_transport *transport = &connection->transport;

    if (connection->who[0])
        memcpy(text, connection->who, BH_WHO_TEXT);
    else if (transport->unix_socket)
        snprintf(text, BH_WHO_TEXT, "uid %u", transport->uid);
    else
        snprintf(text, BH_WHO_TEXT, "%s", transport->block);
}

/* One of the same holder that says by which name it is known, and how many it holds. */
static const struct bh_connection *
peers_find_named(const struct bh_peers *peers, const struct bh_connection *one, uint32_t *ret_held)
{
    const struct bh_connection *named = one;

    *ret_held = 0;
    for (const struct bh_connection *at = peers->first; at; at = at->next)
        if (!at->leaving && at->place.holder == one->place.holder) {
            ++*ret_held;
            named = at->who[0] ? at : named;
        }
    return named;
}

/* Whether it is to be reported now; the name is in `text`. */
static bool
peers_note(struct bh_peers *peers, const struct bh_connection *whose, char text[BH_WHO_TEXT],
           struct bh_crowding *ret_crowding)
{
    uint32_t held;

    if (!bh_crowd_news_due(&peers->news, whose->place.holder, bh_time_monotonic()))
        return false;
    peers_write_name(peers_find_named(peers, whose, &held), text);
    *ret_crowding = (struct bh_crowding){ text, held, peers->unreported_taken, peers->unreported_refused };
    peers->unreported_taken = peers->unreported_refused = 0;
    return true;
}

/* Evict a connection for a newcomer; true: report it.  Root may always stay: the library takes some more than
 * there are places.  Evictions of unknown clients are not reported. */
static bool
peers_evict(struct bh_peers *peers, struct bh_connection *joining, char text[BH_WHO_TEXT],
            struct bh_crowding *ret_crowding)
{
    struct bh_places_choice choice = peers_choose(peers, joining);
    struct bh_connection *giver;

    if (choice.giver != BH_PLACES_NONE) {
        giver = peers->taken[choice.giver];
        peers_shut_down(giver);
        peers->unreported_taken += giver->place.known;
        return giver->place.known && peers_note(peers, giver, text, ret_crowding);
    }
    if (!choice.lacking || peers_is_root(joining))
        return false;
    peers_refuse(peers, joining);
    peers->unreported_refused++;
    return peers_note(peers, joining, text, ret_crowding);
}

/* ---- its life ---- */

static void
peers_begin(struct bh_connection *connection)
{
    const struct bh_transport *from = &connection->transport;
    uint64_t peer = from->unix_socket ? from->uid : peers_number_of_block(from->block);

    connection->place =
        (struct bh_place){ peer, peer, bh_time_monotonic(), BH_PLACE_WAITING, peers_is_root(connection) };
}

void
bh_peers_add(struct bh_peers *peers, struct bh_connection *connection)
{
    char text[BH_WHO_TEXT];
    struct bh_crowding crowding;
    bool report;

    connection->peers = peers;
    peers_begin(connection);
    bh_mutex_lock(&peers->mutex);
    report = peers_evict(peers, connection, text, &crowding);
    connection->next = peers->first;
    connection->link = &peers->first;
    if (peers->first)
        peers->first->link = &connection->next;
    peers->first = connection;
    peers->count++;
    bh_mutex_unlock(&peers->mutex);
    if (report && peers->limits.crowded)
        peers->limits.crowded(&crowding);
}

void
bh_peers_remove(struct bh_connection *connection)
{
    struct bh_peers *peers = connection->peers;

    bh_mutex_lock(&peers->mutex);
    peers->refused -= connection->refused;
    peers->count--;
    *connection->link = connection->next;
    if (connection->next)
        connection->next->link = connection->link;
    bh_mutex_unlock(&peers->mutex);
}

/* `since` stays: a slow request counts from when it could begin. */
bool
bh_peers_head_received(struct bh_connection *connection)
{
    bool welcome;

    bh_mutex_lock(&connection->peers->mutex);
    connection->place.state = BH_PLACE_RECEIVING;
    welcome = !connection->refused;
    bh_mutex_unlock(&connection->peers->mutex);
    return welcome;
}

/* Whether it was not being closed before. */
static bool
peers_enter_state(struct bh_connection *connection, enum bh_place_state state)
{
    bool stays;

    bh_mutex_lock(&connection->peers->mutex);
    connection->place.state = state;
    connection->place.since = bh_time_monotonic();
    stays = !connection->leaving;
    bh_mutex_unlock(&connection->peers->mutex);
    return stays;
}

bool
bh_peers_request_received(struct bh_connection *connection)
{
    return peers_enter_state(connection, BH_PLACE_CARRIED_OUT);
}

void
bh_peers_authenticated(struct bh_connection *connection, uint32_t principal, const char *who)
{
    bh_mutex_lock(&connection->peers->mutex);
    connection->place.known = true;
    snprintf(connection->who, sizeof connection->who, "%s", who);
    if (!connection->transport.unix_socket && principal)
        connection->place.holder = peers_number_of_principal(principal);
    bh_mutex_unlock(&connection->peers->mutex);
}

void
bh_peers_answered(struct bh_connection *connection, enum bh_place_state state)
{
    (void)peers_enter_state(connection, state);
}

void
bh_peers_reply_sent(struct bh_connection *connection)
{
    (void)peers_enter_state(connection, BH_PLACE_WAITING);
}

int
bh_peers_take_socket(struct bh_connection *connection)
{
    int fd;

    bh_mutex_lock(&connection->peers->mutex);
    fd = bh_socket_take(connection->fd);
    if (fd >= 0) {
        connection->fd = fd;
        connection->streams = true;
        connection->holders++;
    }
    bh_mutex_unlock(&connection->peers->mutex);
    return fd;
}

uint32_t
bh_peers_count(struct bh_peers *peers)
{
    uint32_t count;

    bh_mutex_lock(&peers->mutex);
    count = peers->count;
    bh_mutex_unlock(&peers->mutex);
    return count;
}

void
bh_connection_put(struct bh_connection *connection)
{
    if (--connection->holders > 0)
        return;
    bh_arena_free(connection->arena);
    free(connection);
}
