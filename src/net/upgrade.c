#include "net/upgrade.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/assert.h"

enum { STACK_BYTES = 256 << 10, KEEPALIVE_S = 60 };

struct bh_upgrades {
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    struct bh_upgrade_waiting *first;           /* under mutex */
    bool stopping;
};

/* A connection that is to be handed over, or was. */
struct bh_upgrade_waiting {
    struct bh_upgrades *upgrades;
    struct bh_upgrade upgrade;
    struct MHD_UpgradeResponseHandle *handle;
    struct bh_upgrade_waiting **holder; /* whoever drops it when the connection never comes */
    int fd;
    struct bh_upgrade_waiting *next, **place;
};

struct bh_upgrades *
bh_upgrades_new(void)
{
    struct bh_upgrades *upgrades = calloc(1, sizeof *upgrades);

    BH_ASSERT(upgrades);
    pthread_mutex_init(&upgrades->mutex, NULL);
    pthread_cond_init(&upgrades->ended, NULL);
    return upgrades;
}

void
bh_upgrades_stop(struct bh_upgrades *upgrades)
{
    pthread_mutex_lock(&upgrades->mutex);
    upgrades->stopping = true;
    for (struct bh_upgrade_waiting *at = upgrades->first; at; at = at->next)
        shutdown(at->fd, SHUT_RDWR);
    while (upgrades->first)
        pthread_cond_wait(&upgrades->ended, &upgrades->mutex);
    pthread_mutex_unlock(&upgrades->mutex);
}

void
bh_upgrades_free(struct bh_upgrades *upgrades)
{
    pthread_cond_destroy(&upgrades->ended);
    pthread_mutex_destroy(&upgrades->mutex);
    free(upgrades);
}

/* False when the server is ending. */
static bool
enter(struct bh_upgrade_waiting *one)
{
    struct bh_upgrades *upgrades = one->upgrades;
    bool welcome;

    pthread_mutex_lock(&upgrades->mutex);
    welcome = !upgrades->stopping;
    if (welcome) {
        one->next = upgrades->first;
        one->place = &upgrades->first;
        if (one->next)
            one->next->place = &one->next;
        upgrades->first = one;
    }
    pthread_mutex_unlock(&upgrades->mutex);
    return welcome;
}

/* The connection is the library's again before it leaves the list: bh_upgrades_stop must not
 * return before that. */
static void
leave(struct bh_upgrade_waiting *one)
{
    struct bh_upgrades *upgrades = one->upgrades;

    pthread_mutex_lock(&upgrades->mutex);
    (void)MHD_upgrade_action(one->handle, MHD_UPGRADE_ACTION_CLOSE);
    *one->place = one->next;
    if (one->next)
        one->next->place = one->place;
    pthread_cond_broadcast(&upgrades->ended);
    pthread_mutex_unlock(&upgrades->mutex);
    free(one);
}

void
bh_upgrade_drop(struct bh_upgrade_waiting *waiting)
{
    if (!waiting)
        return;
    waiting->upgrade.drop(waiting->upgrade.self);
    free(waiting);
}

static void *
run(void *self)
{
    struct bh_upgrade_waiting *one = self;

    one->upgrade.run(one->upgrade.self, one->fd);
    leave(one);
    return NULL;
}

/* Called in the connection's thread, which over TLS then carries the bytes: so what takes the
 * connection over has a thread of its own.  Clients say nothing before the 101. */
static void
take_over(void *self, struct MHD_Connection *mhd, void *context, const char *extra,
          size_t extra_size, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct bh_upgrade_waiting *one = self;
    pthread_attr_t attr;
    pthread_t thread;
    int failed;

    *one->holder = NULL;
    one->handle = handle;
    one->fd = fd;
    if (extra_size > 0 || !enter(one)) {
        bh_upgrade_drop(one);
        (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        return;
    }
    fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    failed = pthread_create(&thread, &attr, run, one);
    pthread_attr_destroy(&attr);
    if (failed) {
        one->upgrade.drop(one->upgrade.self);
        leave(one);
    }
}

/* A client whose machine is gone is found out, however silent its stream. */
static void
keep_alive(int fd)
{
    int on = 1, wait = KEEPALIVE_S;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &wait, sizeof wait);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

struct MHD_Response *
bh_upgrade_response(struct bh_upgrades *upgrades, struct bh_reply *reply,
                    struct bh_connection *connection, struct bh_upgrade_waiting **ret_waiting)
{
    struct bh_upgrade_waiting *one = calloc(1, sizeof *one);
    struct MHD_Response *response;

    BH_ASSERT(one);
    *one = (struct bh_upgrade_waiting){ .upgrades = upgrades, .upgrade = reply->upgrade,
                                         .holder = ret_waiting, .fd = -1 };
    response = MHD_create_response_for_upgrade(take_over, one);
    if (!response) {
        free(one);
        return NULL;
    }
    if (!connection->transport.unix_socket)
        keep_alive(connection->fd);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, reply->upgrade.protocol);
    reply->upgrade.run = NULL;
    *ret_waiting = one;
    return response;
}
