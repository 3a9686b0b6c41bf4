#include "cli/client/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "base/utf8.h"
#include "cli/client/https.h"

#define SOCKET_STANDARD "/run/bulkhead/bulkhead.sock"

enum {
    IDLE_MS = 200,
    SILENCE_MS = 120000,
    ERROR_BODY_MAX = 64 << 10,
    TOKEN_BYTES_MAX = 4096,
    RETRIES_MAX = 10,
    RETRY_AFTER_MAX_S = 30
};

static const char *
client_setting(const struct bh_args *args, enum bh_option_id option, const char *variable)
{
    const char *value = args->options[option].text;

    if (!value && variable)
        value = getenv(variable);
    return value && *value ? value : NULL;
}

/* A token without the blanks and the line end around it. */
static bh_rc
client_read_token(const char *path, struct bh_arena *arena, const char **ret_token, struct bh_err *err)
{
    char memory[TOKEN_BYTES_MAX];
    struct bh_buf text;
    bh_rc rc;
    size_t from, length;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read_given(path, sizeof memory - 1, &text, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "--token-file");
    bh_buf_putc(&text, '\0');
    from = strspn(memory, " \t\r\n");
    length = strcspn(memory + from, " \t\r\n");
    if (length == 0)
        return bh_err_set(err, BH_INVALID, "--token-file: %s contains no token", path);
    *ret_token = bh_arena_strndup(arena, memory + from, length);
    return *ret_token ? BH_OK : bh_err_set(err, BH_FULL, "the token is too large");
}

bh_rc
bh_client_init(struct bh_client *client, const struct bh_args *args, struct bh_arena *arena,
               struct bh_err *err)
{
    const char *file = client_setting(args, BH_OPT_TOKEN_FILE, NULL);

    *client = (struct bh_client){
        .socket = client_setting(args, BH_OPT_SOCKET, "BULKHEAD_SOCKET"),
        .server = client_setting(args, BH_OPT_SERVER, "BULKHEAD_SERVER"),
        .ca_file = client_setting(args, BH_OPT_CA_FILE, "BULKHEAD_CA_FILE"),
        .pin = client_setting(args, BH_OPT_FINGERPRINT, "BULKHEAD_FINGERPRINT"),
        .cert = client_setting(args, BH_OPT_CLIENT_CERT, "BULKHEAD_CLIENT_CERT"),
        .key = client_setting(args, BH_OPT_CLIENT_KEY, "BULKHEAD_CLIENT_KEY"),
        .token = getenv("BULKHEAD_TOKEN"),
    };
    if (args->options[BH_OPT_SOCKET].given && !args->options[BH_OPT_SERVER].given)
        client->server = NULL;
    if (!client->socket)
        client->socket = SOCKET_STANDARD;
    if (client->server && strncmp(client->server, "https://", 8) != 0) {
        bh_err_set(err, BH_INVALID, "server: \"%.80s\" does not start with https://", client->server);
        return BH_INVALID;
    }
    if (!client->cert != !client->key)
        return bh_err_set(err, BH_INVALID, "--client-cert and --client-key go together");
    if (!client->server)
        client->token = NULL; /* the socket identifies the user */
    return file ? client_read_token(file, arena, &client->token, err) : BH_OK;
}

bh_rc
bh_client_error(uint32_t status, const char *body, size_t length, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_json_value error;
    bh_rc rc;

    if (bh_json_parse(body, length, &json, err) != BH_OK) {
        rc = status == 404   ? BH_NOT_FOUND
             : status == 429 ? BH_TOO_MANY
             : status >= 500 ? BH_UNAVAILABLE
                             : BH_INVALID;
        return bh_err_set(err, rc, "the server answered with HTTP status %u", status);
    }
    error = bh_json_get(bh_json_root(json), "error");
    rc = bh_rc_find(bh_json_text(bh_json_get(error, "code"), ""));
    if (rc == BH_OK)
        rc = BH_BUG;
    bh_err_set(err, rc, "%s", bh_json_text(bh_json_get(error, "message"), "no message"));
    return bh_err_hint(err, "%s", bh_json_text(bh_json_get(error, "next"), ""));
}

/* The reply on its way: a good one to the exchange's sink, a bad one into `error`. */
struct client_receiver {
    struct bh_http_parser parser;
    struct bh_exchange *exchange;
    struct bh_buf error;
};

static bool
client_receive(void *self, const char *bytes, size_t length)
{
    struct client_receiver *r = self;

    if (r->parser.status / 100 == 2)
        return r->exchange->sink(r->exchange->self, bytes, length);
    bh_buf_put(&r->error, bytes, length);
    return !r->error.overflow;
}

/* Wait for bytes.  True: read now; false: over, or *ret_rc says why not. */
static bool
client_await(int fd, struct bh_exchange *exchange, bh_rc *ret_rc, struct bh_err *err)
{
    bh_ns silent_since = bh_time_monotonic();

    for (;;) {
        struct pollfd watched = { .fd = fd, .events = POLLIN };
        int ready = poll(&watched, 1, exchange->idle ? IDLE_MS : 1000);

        if (ready < 0 && errno != EINTR) {
            *ret_rc = bh_err_errno(err, "waiting for the answer");
            return false;
        }
        if (exchange->idle && !exchange->idle(exchange->self)) {
            exchange->stopped = true;
            return false;
        }
        if (ready > 0)
            return true;
        if (bh_time_monotonic() - silent_since > SILENCE_MS * BH_NS_PER_MS) {
            *ret_rc = bh_err_set(err, BH_UNCERTAIN, "no answer for %d s", SILENCE_MS / 1000);
            return false;
        }
    }
}

static bh_rc
client_read_reply(int fd, struct client_receiver *r, struct bh_err *err)
{
    char bytes[16384];
    bh_rc rc = BH_OK;

    while (rc == BH_OK && r->parser.step != BH_HTTP_DONE && !r->parser.stopped) {
        ssize_t got;

        if (!client_await(fd, r->exchange, &rc, err))
            return rc;
        got = recv(fd, bytes, sizeof bytes, 0);
        if (got == 0)
            return bh_http_parser_end(&r->parser, err);
        if (got > 0)
            rc = bh_http_parser_feed(&r->parser, bytes, (size_t)got, err);
        else if (errno != EINTR && errno != EAGAIN)
            rc = errno == ECONNRESET ? bh_http_parser_end(&r->parser, err)
                                     : bh_err_errno(err, "reading the answer");
    }
    if (r->parser.stopped)
        r->exchange->stopped = true;
    return rc;
}

static bh_rc
client_send_unix(const struct bh_client *client, const struct bh_http_request *request,
                 struct client_receiver *r, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    struct bh_buf out;
    bh_rc rc;

    rc = bh_unix_connect(client->socket, &fd, err);
    if (rc != BH_OK) {
        rc = rc == BH_DENIED ? rc : BH_UNAVAILABLE;
        bh_err_set(err, rc, "bulkheadd does not answer on %s", client->socket);
        bh_err_hint(err, "bulkhead up starts it; --socket or BULKHEAD_SOCKET names another");
        return rc;
    }
    bh_buf_init(&out, request->body_length + BH_HTTP_HEADERS_MAX);
    rc = bh_http_format(&out, request, err);
    if (rc == BH_OK)
        rc = bh_fd_write_all(fd, out.bytes, out.length, err);
    bh_buf_fini(&out);
    /* A server that refuses early closes during the write: read its answer. */
    if (rc == BH_OK || rc == BH_IO)
        rc = client_read_reply(fd, r, err);
    return rc;
}

static bh_rc
client_send_https(const struct bh_client *client, const struct bh_http_request *request,
                  struct client_receiver *r, struct bh_err *err)
{
    struct bh_https_options https = {
        .server = client->server,
        .ca_file = client->ca_file,
        .pin = client->pin,
        .cert = client->cert,
        .key = client->key,
        .sink = client_receive,
        .self = r,
        .idle = r->exchange->idle,
        .idle_self = r->exchange->self,
        .ret_status = &r->parser.status,
        .ret_stopped = &r->exchange->stopped,
        .ret_challenge = r->parser.challenge,
        .ret_retry_after_s = &r->parser.retry_after_s,
    };

    return bh_https_send(&https, request, err);
}

/* What a refusal asks for. */
struct client_wanted {
    char challenge[BH_HTTP_CHALLENGE_MAX];
    uint32_t retry_after_s;
};

static bh_rc
client_send_once(const struct bh_client *client, const struct bh_http_request *request,
                 struct bh_exchange *exchange, struct client_wanted *ret_wanted, struct bh_err *err)
{
    struct bh_http_request with_token = *request;
    struct client_receiver r = { .exchange = exchange };
    bh_rc rc;

    with_token.token = client->token;
    bh_http_parser_init(&r.parser, client_receive, &r);
    bh_buf_init(&r.error, ERROR_BODY_MAX);
    rc = client->server ? client_send_https(client, &with_token, &r, err)
                        : client_send_unix(client, &with_token, &r, err);
    if (rc == BH_OK && !exchange->stopped && r.parser.status / 100 != 2)
        rc = bh_client_error(r.parser.status, r.error.bytes ? r.error.bytes : "", r.error.length, err);
    memcpy(ret_wanted->challenge, r.parser.challenge, sizeof ret_wanted->challenge);
    ret_wanted->retry_after_s = r.parser.retry_after_s;
    bh_buf_fini(&r.error);
    return rc;
}

/* False: the exchange ended it. */
static bool
client_wait_for(uint32_t seconds, struct bh_exchange *exchange)
{
    bh_ns until = bh_time_monotonic() + seconds * BH_NS_PER_S;

    while (bh_time_monotonic() < until) {
        if (exchange->idle && !exchange->idle(exchange->self)) {
            exchange->stopped = true;
            return false;
        }
        bh_time_sleep(IDLE_MS * BH_NS_PER_MS);
    }
    return true;
}

/* A server that names a time to retry has done nothing: so retry then. */
static bh_rc
client_send_patiently(const struct bh_client *client, const struct bh_http_request *request,
                      struct bh_exchange *exchange, struct client_wanted *ret_wanted, struct bh_err *err)
{
    bh_rc rc = client_send_once(client, request, exchange, ret_wanted, err);

    for (int i = 0; i < RETRIES_MAX && rc == BH_TOO_MANY && ret_wanted->retry_after_s
                    && ret_wanted->retry_after_s <= RETRY_AFTER_MAX_S;
         i++) {
        if (!client_wait_for(ret_wanted->retry_after_s, exchange))
            return BH_OK;
        rc = client_send_once(client, request, exchange, ret_wanted, err);
    }
    return rc;
}

bh_rc
bh_client_send(const struct bh_client *client, const struct bh_http_request *request,
               struct bh_exchange *exchange, struct bh_err *err)
{
    struct client_wanted wanted;
    bh_rc rc = client_send_patiently(client, request, exchange, &wanted, err);

    if (rc != BH_UNAUTHENTICATED || !client->refused)
        return rc;
    rc = client->refused(client->refused_self, wanted.challenge, err);
    return rc == BH_OK ? client_send_patiently(client, request, exchange, &wanted, err) : rc;
}

static bool
client_collect(void *self, const char *bytes, size_t length)
{
    struct bh_buf *body = self;

    bh_buf_put(body, bytes, length);
    return !body->overflow;
}

bh_rc
bh_client_json(const struct bh_client *client, const struct bh_http_request *request,
               struct bh_json **ret_json, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf body = { .max = BH_HTTP_BODY_MAX };
    struct bh_exchange exchange = { .sink = client_collect, .self = &body };
    bh_rc rc;

    *ret_json = NULL;
    rc = bh_client_send(client, request, &exchange, err);
    if (rc == BH_OK && exchange.stopped)
        rc = bh_err_set(err, BH_FULL, "the answer is too large");
    if (rc == BH_OK && body.length > 0)
        rc = bh_json_parse(body.bytes, body.length, ret_json, err);
    return rc;
}
