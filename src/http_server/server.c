#include "http_server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "http_server/certificate.h"
#include "http_server/exchange.h"
#include "http_server/peers.h"

enum {
    CONNECTIONS_DEFAULT = 512,
    IDLE_DEFAULT_S = 60,
    STACK_BYTES = 256 << 10,
    ARENA_BYTES_MAX = 16 << 20,
    UID_NOBODY = 65534,
    SHARE_OF_ONE = 2,   /* none but root holds more than half of the connections */
    RESERVED = 4,       /* a quarter is for known clients */
    DEADLINE_IDLES = 3, /* a whole request takes at most this many idle times */
    HEAD_S = 15,        /* limit for the head of an unknown client */
    BEYOND = 2,
    BEYOND_LEAST = 32 /* connections that are being closed, and are not yet */
};

/* Since 1.0 the library itself refuses malformed requests when asked to.  Before, it knows little of
 * that, all of which net/head.c refuses too. */
#if MHD_VERSION >= 0x01000000
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL
enum { STRICT = 1 };
#else
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT
enum { STRICT = 0 };
#endif

struct bh_server {
    struct MHD_Daemon *daemon;
    struct bh_peers *peers;
    struct bh_exchange_owner owner;
};

/* ---- the peer ---- */

static void
server_read_unix_peer(int fd, struct bh_transport *transport)
{
    struct bh_peer peer = { .uid = UID_NOBODY, .gid = UID_NOBODY };
    gid_t groups[BH_COUNT(transport->gids) - 1];
    struct bh_err err;
    size_t count = 0;

    transport->unix_socket = true;
    if (bh_unix_peer(fd, &peer, &err) == BH_OK
        && bh_unix_peer_groups(fd, groups, BH_COUNT(groups), &count, &err) != BH_OK)
        count = 0;
    transport->uid = peer.uid;
    transport->gid = peer.gid;
    transport->gids[transport->gid_count++] = peer.gid;
    for (size_t i = 0; i < count; i++)
        if (groups[i] != peer.gid)
            transport->gids[transport->gid_count++] = groups[i];
}

/* Copied at once: since libmicrohttpd 1.0 all answers of a connection share one place, and
 * the next question writes over it. */
static int
server_descriptor_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *answer = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

    return answer ? answer->connect_fd : -1;
}

static struct bh_connection *
server_connection_new(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *from;
    struct bh_connection *connection = calloc(1, sizeof *connection);

    BH_ASSERT(connection);
    connection->arena = bh_arena_new(ARENA_BYTES_MAX);
    connection->fd = server_descriptor_of(mhd);
    connection->holders = 1;
    from = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (from && from->client_addr
        && (from->client_addr->sa_family == AF_INET || from->client_addr->sa_family == AF_INET6))
        bh_peers_read_address(from->client_addr, &connection->transport);
    else
        server_read_unix_peer(connection->fd, &connection->transport);
    return connection;
}

static void
server_on_connection(void *self, struct MHD_Connection *mhd, void **context,
                     enum MHD_ConnectionNotificationCode what)
{
    struct bh_server *server = self;
    struct bh_connection *connection = *context;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = connection = server_connection_new(mhd);
        bh_peers_add(server->peers, connection);
    } else if (connection) {
        if (!connection->streams)
            bh_peers_remove(connection);
        bh_connection_put(connection);
        *context = NULL;
    }
}

/* ---- texts in the request line ---- */

static int
server_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* %XX in place.  %00 becomes a control character, which nothing accepts, instead of
 * cutting the text short. */
static size_t
server_unescape(void *self, struct MHD_Connection *mhd, char *text)
{
    char *to = text;

    for (const char *at = text; *at; at++) {
        int high = *at == '%' ? server_hex_value(at[1]) : -1;
        int low = high >= 0 ? server_hex_value(at[2]) : -1;

        if (low < 0) {
            *to++ = *at;
            continue;
        }
        *to++ = high || low ? (char)(high * 16 + low) : '\x01';
        at += 2;
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* ---- starting and stopping ---- */

static bool
server_is_unix(int fd)
{
    struct sockaddr_storage where;
    socklen_t size = sizeof where;

    return getsockname(fd, (struct sockaddr *)&where, &size) == 0 && where.ss_family == AF_UNIX;
}

struct option_list {
    struct MHD_OptionItem items[16];
    size_t count;
};

static void
http_server_add(struct option_list *list, enum MHD_OPTION option, intptr_t value, void *pointer)
{
    BH_ASSERT(list->count + 1 < BH_COUNT(list->items));
    list->items[list->count++] = (struct MHD_OptionItem){ option, value, pointer };
}

static void
server_add_tls(struct option_list *list, const struct bh_server_options *options)
{
    static const char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3";

    http_server_add(list, MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate);
    http_server_add(list, MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key);
    if (options->client_ca)
        http_server_add(list, MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)(uintptr_t)options->client_ca);
    http_server_add(list, MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)priorities);
}

static struct MHD_Daemon *
server_start_daemon(struct bh_server *server, const struct bh_server_options *options)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL
                     | MHD_USE_ITC | MHD_ALLOW_UPGRADE;
    struct option_list list = { .count = 0 };

    http_server_add(&list, MHD_OPTION_LISTEN_SOCKET, options->fd, NULL);
    http_server_add(&list, MHD_OPTION_CONNECTION_LIMIT,
                    (intptr_t)(options->connections_max + options->connections_max / BEYOND + BEYOND_LEAST),
                    NULL);
    http_server_add(&list, MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)options->idle_s, NULL);
    http_server_add(&list, MHD_OPTION_CONNECTION_MEMORY_LIMIT, BH_SERVER_HEADERS_MAX, NULL);
    http_server_add(&list, MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES, NULL);
    http_server_add(&list, MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)(void *)server_on_connection, server);
    http_server_add(&list, MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)(void *)bh_exchange_completed, NULL);
    http_server_add(&list, STRICTNESS, STRICT, NULL);
    http_server_add(&list, MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)(void *)bh_exchange_target, NULL);
    http_server_add(&list, MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)(void *)server_unescape, NULL);
    if (options->certificate) {
        flags |= MHD_USE_TLS;
        server_add_tls(&list, options);
    }
    http_server_add(&list, MHD_OPTION_END, 0, NULL);
    return MHD_start_daemon(flags, 0, NULL, NULL, bh_exchange_step, &server->owner, MHD_OPTION_ARRAY,
                            list.items, MHD_OPTION_END);
}

static bh_rc
server_check_options(const struct bh_server_options *options, struct bh_err *err)
{
    if (!options->certificate != !options->key)
        return bh_err_set(err, BH_INVALID,
                          "a certificate needs its key, and a key its "
                          "certificate");
    if (!options->certificate && !server_is_unix(options->fd)) {
        bh_err_set(err, BH_INVALID, "a TCP socket needs a certificate");
        return bh_err_hint(err, "plain HTTP is only served on the unix socket");
    }
    if (options->certificate && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return bh_err_set(err, BH_UNAVAILABLE, "this libmicrohttpd was built without TLS");
    if (options->client_ca && !bh_certificate_authorities(options->client_ca))
        return bh_err_set(err, BH_INVALID, "there is no usable authority for client certificates");
    return BH_OK;
}

static struct bh_server *
server_new(const struct bh_server_options *options)
{
    struct bh_server *server = calloc(1, sizeof *server);
    uint32_t each = options->connections_max / SHARE_OF_ONE;
    uint32_t request = DEADLINE_IDLES * options->idle_s;

    BH_ASSERT(server);
    server->owner = (struct bh_exchange_owner){ options->handler, options->self, bh_upgrades_new(),
                                                bh_stream_loop_new(options->idle_s * BH_NS_PER_S) };
    server->peers = bh_peers_new(&(struct bh_peers_limits){
        .places = { .most = options->connections_max,
                    .most_anonymous = options->connections_max - options->connections_max / RESERVED,
                    .most_each = each ? each : 1 },
        .crowded = options->crowded,
        .head = request < HEAD_S ? request * BH_NS_PER_S : HEAD_S * BH_NS_PER_S,
        .request = request * BH_NS_PER_S });
    return server;
}

static void
server_free(struct bh_server *server)
{
    bh_peers_free(server->peers);
    bh_stream_loop_free(server->owner.streams);
    bh_upgrades_free(server->owner.upgrades);
    free(server);
}

bh_rc
bh_server_start(const struct bh_server_options *given, struct bh_server **ret_server, struct bh_err *err)
{
    struct bh_server_options whole = *given, *options = &whole;
    struct bh_server *server;
    bh_rc rc = server_check_options(options, err);

    if (rc != BH_OK) {
        bh_fd_close(options->fd);
        return rc;
    }
    if (options->connections_max == 0)
        options->connections_max = CONNECTIONS_DEFAULT;
    if (options->idle_s == 0)
        options->idle_s = IDLE_DEFAULT_S;
    server = server_new(options);
    if (!server->owner.streams) {
        bh_fd_close(options->fd);
        server_free(server);
        return bh_err_errno(err, "start the thread of streams");
    }
    server->daemon = server_start_daemon(server, options);
    if (!server->daemon) { /* the library has closed the socket */
        bh_stream_loop_stop(server->owner.streams);
        server_free(server);
        if (options->certificate)
            return bh_err_set(err, BH_INVALID, "cannot serve HTTPS with this certificate and key");
        return bh_err_errno(err, "start the HTTP server");
    }
    *ret_server = server;
    return BH_OK;
}

void
bh_server_stop(struct bh_server *server)
{
    if (!server)
        return;
    bh_stream_loop_stop(server->owner.streams);
    bh_upgrades_stop(server->owner.upgrades);
    MHD_stop_daemon(server->daemon);
    server_free(server);
}

uint32_t
bh_server_connections(const struct bh_server *server)
{
    return bh_peers_count(server->peers);
}
