#include "http_server/upgrade.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/lock.h"
#include "http_server/socket.h"
#include "http_server/upgrade_tls.h"

enum { STACK_BYTES = 256 << 10 };

struct bh_upgrades {
    struct bh_mutex mutex;
    struct bh_condition ended;
    struct bh_upgrade_pending *first; /* under mutex */
    bool stopping;
};

/* A connection that is to be handed over, or was. */
struct bh_upgrade_pending {
    struct bh_upgrades *upgrades;
    struct bh_upgrade upgrade;
    struct MHD_UpgradeResponseHandle *handle;
    struct bh_upgrade_pending **holder; /* the owner, which frees it when the connection never comes */
    int fd;
    int tcp, plain; /* over TLS the client's socket, and the other end of `fd` */
    struct bh_upgrade_pending *next, **place;
};

struct bh_upgrades *
bh_upgrades_new(void)
{
    struct bh_upgrades *upgrades = calloc(1, sizeof *upgrades);

    BH_ASSERT(upgrades);
    bh_mutex_init(&upgrades->mutex, BH_LOCK_UPGRADES);
    bh_condition_init(&upgrades->ended);
    return upgrades;
}

void
bh_upgrades_stop(struct bh_upgrades *upgrades)
{
    bh_mutex_lock(&upgrades->mutex);
    upgrades->stopping = true;
    for (struct bh_upgrade_pending *at = upgrades->first; at; at = at->next)
        shutdown(at->fd, SHUT_RDWR);
    while (upgrades->first)
        bh_condition_wait(&upgrades->ended, &upgrades->mutex);
    bh_mutex_unlock(&upgrades->mutex);
}

void
bh_upgrades_free(struct bh_upgrades *upgrades)
{
    bh_condition_fini(&upgrades->ended);
    bh_mutex_fini(&upgrades->mutex);
    free(upgrades);
}

/* False when the server is ending. */
static bool
upgrade_add(struct bh_upgrade_pending *one)
{
    struct bh_upgrades *upgrades = one->upgrades;
    bool welcome;

    bh_mutex_lock(&upgrades->mutex);
    welcome = !upgrades->stopping;
    if (welcome) {
        one->next = upgrades->first;
        one->place = &upgrades->first;
        if (one->next)
            one->next->place = &one->next;
        upgrades->first = one;
    }
    bh_mutex_unlock(&upgrades->mutex);
    return welcome;
}

/* The connection is the library's again before it leaves the list: bh_upgrades_stop must not
 * return before that. */
static void
upgrade_remove(struct bh_upgrade_pending *one)
{
    struct bh_upgrades *upgrades = one->upgrades;

    bh_mutex_lock(&upgrades->mutex);
    (void)MHD_upgrade_action(one->handle, MHD_UPGRADE_ACTION_CLOSE);
    *one->place = one->next;
    if (one->next)
        one->next->place = one->place;
    bh_condition_broadcast(&upgrades->ended);
    bh_mutex_unlock(&upgrades->mutex);
    free(one);
}

void
bh_upgrade_drop(struct bh_upgrade_pending *pending)
{
    if (!pending)
        return;
    pending->upgrade.drop(pending->upgrade.self);
    free(pending);
}

static void *
upgrade_run(void *self)
{
    struct bh_upgrade_pending *one = self;

    one->upgrade.run(one->upgrade.self, one->fd);
    if (one->plain >= 0)
        shutdown(one->fd, SHUT_RDWR); /* the connection's thread lets it go */
    else
        upgrade_remove(one);
    return NULL;
}

/* A thread for what takes the connection over; false: it was dropped. */
static bool
upgrade_start(struct bh_upgrade_pending *one, pthread_t *ret_thread)
{
    pthread_attr_t attr;
    int failed;

    fcntl(one->fd, F_SETFL, O_RDWR | O_NONBLOCK);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, one->plain >= 0 ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    failed = pthread_create(ret_thread, &attr, upgrade_run, one);
    pthread_attr_destroy(&attr);
    if (!failed)
        return true;
    one->upgrade.drop(one->upgrade.self);
    upgrade_remove(one);
    return false;
}

/* Over TLS this thread, the connection's, carries the bytes. */
static void
upgrade_carry_tls(struct bh_upgrade_pending *one, struct MHD_Connection *mhd)
{
    pthread_t thread;
    int plain = one->plain, fd = one->fd;

    if (upgrade_start(one, &thread)) {
        bh_upgrade_tls_carry(mhd, one->tcp, plain);
        pthread_join(thread, NULL);
        upgrade_remove(one);
    }
    close(plain);
    close(fd);
}

/* Called in the connection's thread.  Clients say nothing before the 101. */
static void
upgrade_hand_connection_over(void *self, struct MHD_Connection *mhd, void *context, const char *extra,
                             size_t extra_size, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct bh_upgrade_pending *one = self;
    int pair[2] = { -1, -1 };
    pthread_t thread;

    *one->holder = NULL;
    one->handle = handle;
    one->fd = fd;
    if (one->tcp >= 0) {
        bh_socket_keep_alive(one->tcp);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
            extra_size = 1;
        one->plain = pair[0];
        one->fd = pair[1];
    }
    if (extra_size > 0 || !upgrade_add(one)) {
        bh_upgrade_drop(one);
        (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        bh_fd_close(pair[0]);
        bh_fd_close(pair[1]);
    } else if (one->tcp >= 0) {
        upgrade_carry_tls(one, mhd);
    } else {
        (void)upgrade_start(one, &thread);
    }
}

struct MHD_Response *
bh_upgrade_response(struct bh_upgrades *upgrades, struct bh_reply *reply, struct bh_connection *connection,
                    struct bh_upgrade_pending **ret_pending)
{
    struct bh_upgrade_pending *one = calloc(1, sizeof *one);
    struct MHD_Response *response;

    BH_ASSERT(one);
    *one = (struct bh_upgrade_pending){ .upgrades = upgrades,
                                        .upgrade = reply->upgrade,
                                        .holder = ret_pending,
                                        .fd = -1,
                                        .plain = -1,
                                        .tcp = connection->transport.unix_socket ? -1 : connection->fd };
    response = MHD_create_response_for_upgrade(upgrade_hand_connection_over, one);
    if (!response) {
        free(one);
        return NULL;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, reply->upgrade.protocol);
    reply->upgrade.run = NULL;
    *ret_pending = one;
    return response;
}
