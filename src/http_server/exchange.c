#include "http_server/exchange.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/num.h"
#include "http_server/certificate.h"
#include "http_server/head.h"
#include "http_server/server.h"
#include "http_server/socket.h"

#define REPLY_BYTES_MAX (UINT64_C(64) << 20)
enum { STREAM_BLOCK_BYTES = 128 }; /* the library reads none */

struct exchange {
    struct bh_exchange_owner *owner;
    struct MHD_Connection *mhd;
    struct bh_connection *connection;
    struct bh_request request;
    struct bh_reply reply;
    struct bh_buf body;
    uint64_t received;
    bool http_1_0, streams;
    bool upgraded;                      /* the connection belongs to the stream from now on, */
    struct bh_upgrade_pending *pending; /* once it was handed over to this one */
};

/* ---- the query ---- */

static const char *
exchange_find_query(const struct bh_request *request, const char *name)
{
    const struct exchange *x = request->server;

    return MHD_lookup_connection_value(x->mhd, MHD_GET_ARGUMENT_KIND, name);
}

struct query_walk {
    void (*sink)(void *self, const char *name, const char *value);
    void *self;
};

static bh_mhd_result
exchange_pass_query(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    const struct query_walk *walk = self;

    walk->sink(walk->self, name, value ? value : "");
    return MHD_YES;
}

static void
exchange_each_query(const struct bh_request *request,
                    void (*sink)(void *self, const char *name, const char *value), void *self)
{
    const struct exchange *x = request->server;
    struct query_walk walk = { sink, self };

    (void)MHD_get_connection_values(x->mhd, MHD_GET_ARGUMENT_KIND, exchange_pass_query, &walk);
}

/* ---- the head ---- */

static bool
exchange_find_method(const char *name, enum bh_method *ret_method)
{
    for (int method = 0; method < BH_METHODS; method++)
        if (strcmp(bh_method_names[method], name) == 0) {
            *ret_method = (enum bh_method)method;
            return true;
        }
    *ret_method = BH_GET;
    return strcmp(name, "HEAD") == 0;
}

static const char *
exchange_header(struct MHD_Connection *mhd, const char *name)
{
    return MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, name);
}

static bool
exchange_announces_too_much(struct MHD_Connection *mhd)
{
    const char *text = exchange_header(mhd, MHD_HTTP_HEADER_CONTENT_LENGTH);
    struct bh_err unused;
    uint64_t length;

    return text && (bh_parse_u64(text, &length, &unused) != BH_OK || length > BH_SERVER_BODY_MAX);
}

static struct bh_connection *
exchange_connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *context =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    BH_ASSERT(context && context->socket_context);
    return context->socket_context;
}

static struct exchange *
exchange_new(struct bh_exchange_owner *owner, struct MHD_Connection *mhd, const char *url)
{
    struct exchange *x = calloc(1, sizeof *x);

    BH_ASSERT(x);
    x->owner = owner;
    x->mhd = mhd;
    x->connection = exchange_connection_of(mhd);
    x->request = (struct bh_request){
        .path = url,
        .content_type = exchange_header(mhd, MHD_HTTP_HEADER_CONTENT_TYPE),
        .authorization = exchange_header(mhd, MHD_HTTP_HEADER_AUTHORIZATION),
        .idempotency_key = exchange_header(mhd, "Idempotency-Key"),
        .accept = exchange_header(mhd, MHD_HTTP_HEADER_ACCEPT),
        .cookie = exchange_header(mhd, MHD_HTTP_HEADER_COOKIE),
        .host = exchange_header(mhd, MHD_HTTP_HEADER_HOST),
        .origin = exchange_header(mhd, MHD_HTTP_HEADER_ORIGIN),
        .fetch_site = exchange_header(mhd, "Sec-Fetch-Site"),
        .upgrade = exchange_header(mhd, MHD_HTTP_HEADER_UPGRADE),
        .transport = &x->connection->transport,
        .arena = x->connection->arena,
        .query = exchange_find_query,
        .each_query = exchange_each_query,
        .server = x,
    };
    bh_buf_init(&x->body, BH_SERVER_BODY_MAX + 1);
    bh_buf_init(&x->reply.body, REPLY_BYTES_MAX);
    return x;
}

/* ---- the reply ---- */

/* The head is sent: the library is to end its part, and bh_exchange_completed hands the stream over. */
static ssize_t
exchange_leave_library(void *self, uint64_t position, char *memory, size_t size)
{
    struct exchange *x = self;

    x->streams = true;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *
exchange_make_response(struct exchange *x)
{
    struct bh_reply *reply = &x->reply;

    if (reply->stream.read)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, exchange_leave_library,
                                                 x, NULL);
    /* The body is released when the exchange completes, after it was sent. */
    return MHD_create_response_from_buffer(reply->body.length, reply->body.bytes, MHD_RESPMEM_PERSISTENT);
}

static bool
exchange_has_header(const struct bh_reply *reply, const char *name)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        if (strcasecmp(reply->headers[i].name, name) == 0)
            return true;
    return false;
}

/* A 101, and the connection with it. */
static bh_mhd_result
exchange_hand_over(struct exchange *x)
{
    struct MHD_Response *response =
        bh_upgrade_response(x->owner->upgrades, &x->reply, x->connection, &x->pending);
    bh_mhd_result queued;

    if (!response)
        return MHD_NO;
    x->upgraded = true;
    queued = MHD_queue_response(x->mhd, MHD_HTTP_SWITCHING_PROTOCOLS, response);
    MHD_destroy_response(response);
    return queued;
}

static bh_mhd_result
exchange_send_reply(struct exchange *x)
{
    const struct bh_reply *reply = &x->reply;
    struct MHD_Response *response = exchange_make_response(x);
    bh_mhd_result queued;

    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  reply->content_type ? reply->content_type : "application/json");
    if (!exchange_has_header(reply, MHD_HTTP_HEADER_CACHE_CONTROL))
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (reply->stream.read)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    for (uint32_t i = 0; i < reply->header_count; i++)
        (void)MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    queued = MHD_queue_response(x->mhd, reply->status, response);
    MHD_destroy_response(response);
    return queued;
}

static bh_mhd_result
exchange_respond(struct exchange *x)
{
    if (!bh_peers_request_received(x->connection))
        return MHD_NO;
    x->request.body = bh_buf_text(&x->body);
    x->request.body_length = x->body.length;
    BH_ASSERT(x->request.body);
    x->owner->handler(x->owner->self, &x->request, &x->reply);
    if (x->reply.known)
        bh_peers_authenticated(x->connection, x->reply.principal, x->reply.who);
    bh_peers_answered(x->connection, x->reply.upgrade.run   ? BH_PLACE_INTERACTIVE
                                     : x->reply.stream.read ? BH_PLACE_STREAM
                                                            : BH_PLACE_SENDING);
    return x->reply.upgrade.run ? exchange_hand_over(x) : exchange_send_reply(x);
}

static bh_mhd_result
exchange_receive_body(struct exchange *x, const char *chunk, size_t *chunk_length)
{
    x->received += *chunk_length;
    if (x->received > BH_SERVER_BODY_MAX) /* more than was announced */
        return MHD_NO;
    bh_buf_put(&x->body, chunk, *chunk_length);
    *chunk_length = 0;
    return MHD_YES;
}

static bool
exchange_is_short(const char *query)
{
    uint32_t parameters = 1;

    for (; *query; query++)
        parameters += *query == '&';
    return parameters <= BH_SERVER_PARAMETERS_MAX;
}

/* The library takes the query apart next, for each parameter uses memory of the connection, and ends it
 * unanswered where there is none left.  So a query that is too long ends where it begins. */
void *
bh_exchange_target(void *self, const char *target, struct MHD_Connection *mhd)
{
    struct bh_connection *connection = exchange_connection_of(mhd);
    const char *query = strchr(target, '?');

    connection->target = target;
    connection->target_end = target + strlen(target);
    connection->target_is_plain = !strpbrk(target, " \t");
    connection->target_is_short = !query || exchange_is_short(query);
    if (!connection->target_is_short)
        *(char *)(uintptr_t)(query + 1) = '\0'; /* it lies in the connection's memory, which is written to */
    return NULL;
}

static bool
exchange_head_is_strict(struct MHD_Connection *mhd, const char *method, const char *version)
{
    const struct bh_connection *connection = exchange_connection_of(mhd);

    return connection->target_is_plain
           && bh_head_is_strict(
               mhd, &(struct bh_head_line){ method, connection->target, connection->target_end, version });
}

bh_mhd_result
bh_exchange_step(void *self, struct MHD_Connection *mhd, const char *url, const char *method,
                 const char *version, const char *chunk, size_t *chunk_length, void **context)
{
    struct exchange *x = *context;
    enum bh_method known;

    if (x)
        return *chunk_length > 0 ? exchange_receive_body(x, chunk, chunk_length) : exchange_respond(x);
    if (!bh_peers_head_received(exchange_connection_of(mhd)))
        return bh_refusal_queue(mhd, BH_REFUSAL_PLACES);
    if (!exchange_head_is_strict(mhd, method, version))
        return bh_refusal_queue(mhd, BH_REFUSAL_HEAD);
    if (!exchange_connection_of(mhd)->target_is_short)
        return bh_refusal_queue(mhd, BH_REFUSAL_QUERY);
    if (exchange_header(mhd, MHD_HTTP_HEADER_TRANSFER_ENCODING))
        return bh_refusal_queue(mhd, BH_REFUSAL_CHUNKS);
    if (!exchange_find_method(method, &known))
        return bh_refusal_queue(mhd, BH_REFUSAL_METHOD);
    if (exchange_announces_too_much(mhd))
        return bh_refusal_queue(mhd, BH_REFUSAL_LARGE);
    if (!bh_certificate_check(mhd, exchange_connection_of(mhd)->transport.certificate))
        return bh_refusal_queue(mhd, BH_REFUSAL_CERTIFICATE);
    x = exchange_new(self, mhd, url);
    x->request.method = known;
    x->http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    *context = x;
    return MHD_YES;
}

static void
exchange_free(struct exchange *x)
{
    if (x->reply.upgrade.run)
        x->reply.upgrade.drop(x->reply.upgrade.self);
    bh_upgrade_drop(x->pending);
    bh_buf_fini(&x->body);
    bh_buf_fini(&x->reply.body);
    free(x);
}

/* ---- a stream leaves the library ---- */

/* The texts of the request lie in memory of the library's connection. */
static bool
exchange_keep_texts(struct exchange *x)
{
    struct bh_request *request = &x->request;
    const char **const texts[] = { &request->path,   &request->content_type,    &request->authorization,
                                   &request->accept, &request->idempotency_key, &request->cookie,
                                   &request->host,   &request->origin,          &request->fetch_site,
                                   &request->upgrade };

    for (size_t i = 0; i < BH_COUNT(texts); i++) {
        const char *text = *texts[i];

        *texts[i] = text ? bh_arena_strdup(request->arena, text) : NULL;
        if (text && !*texts[i])
            return false;
    }
    return true;
}

static const char *
exchange_no_query(const struct bh_request *request, const char *name)
{
    return NULL;
}

static void
exchange_no_queries(const struct bh_request *request,
                    void (*sink)(void *self, const char *name, const char *value), void *self)
{
}

static void
exchange_stream_ended(void *self)
{
    struct exchange *x = self;
    struct bh_connection *connection = x->connection;

    exchange_free(x);
    bh_peers_remove(connection);
    bh_connection_put(connection);
}

/* False: it stays where it is. */
static bool
exchange_hand_stream_over(struct exchange *x)
{
    const union MHD_ConnectionInfo *tls = MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    struct bh_streamed streamed = { .source = x->reply.stream,
                                    .tcp = !x->connection->transport.unix_socket,
                                    .chunked = !x->http_1_0,
                                    .ended = exchange_stream_ended,
                                    .self = x };

    if (!exchange_keep_texts(x))
        return false;
    if (tls && !(streamed.seal = bh_seal_take(tls->tls_session)))
        return false;
    streamed.fd = bh_peers_take_socket(x->connection);
    if (streamed.fd < 0) {
        bh_seal_free(streamed.seal);
        return false;
    }
    if (streamed.tcp) {
        bh_socket_keep_alive(streamed.fd);
        bh_socket_keep_fresh(streamed.fd);
    }
    x->request.query = exchange_no_query;
    x->request.each_query = exchange_no_queries;
    bh_stream_loop_add(x->owner->streams, &streamed);
    return true;
}

void
bh_exchange_completed(void *self, struct MHD_Connection *mhd, void **context,
                      enum MHD_RequestTerminationCode why)
{
    struct exchange *x = *context;

    *context = NULL;
    if (!x || (x->streams && exchange_hand_stream_over(x)))
        return;
    if (x->reply.stream.read)
        x->reply.stream.close(x->reply.stream.self);
    bh_arena_reset(x->connection->arena);
    if (!x->upgraded) /* the upgraded stream watches over it */
        bh_peers_reply_sent(x->connection);
    exchange_free(x);
}
