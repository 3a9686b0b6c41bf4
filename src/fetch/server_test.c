#include "fetch/server_test.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/assert.h"
#include "base/time.h"
#include "ports/https.h"

enum { POLL_MS = 10, REQUEST_MAX = 1 << 18, TOGETHER = 8 };

struct server {
    SSL_CTX *tls; /* NULL: http */
    int fd;
    pthread_t thread;
    atomic_uint taken, open, together;
    atomic_bool stopping;
};

struct connection {
    struct server *server;
    int fd;
    SSL *tls;
    char *request;
    size_t length;
    bool torn; /* goes without a word */
};

/* ---- certificates ---- */

static void
add_names(X509 *cert, const char *name)
{
    char text[200];
    X509_EXTENSION *extension;

    snprintf(text, sizeof text, "%s%s", name ? "DNS:" : "DNS:localhost,IP:127.0.0.1", name ? name : "");
    extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text);
    BH_ASSERT(extension && X509_add_ext(cert, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static void
copy_pem(BIO *bio, char *ret_text, size_t size)
{
    int length = BIO_read(bio, ret_text, (int)size - 1);

    BH_ASSERT(length > 0);
    ret_text[length] = '\0';
    BIO_free(bio);
}

void
bh_test_make_pem(const char *name, int from_days, int to_days, struct server_pem *ret_pem)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    BIO *cert_text = BIO_new(BIO_s_mem()), *key_text = BIO_new(BIO_s_mem());
    X509_NAME *subject = X509_get_subject_name(cert);
    const char *common = name ? name : "localhost";

    BH_ASSERT(key && cert && X509_set_version(cert, X509_VERSION_3));
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const void *)common, -1, -1, 0);
    X509_set_issuer_name(cert, subject);
    X509_time_adj_ex(X509_getm_notBefore(cert), from_days, 0, NULL);
    X509_time_adj_ex(X509_getm_notAfter(cert), to_days, 0, NULL);
    X509_set_pubkey(cert, key);
    add_names(cert, name);
    BH_ASSERT(X509_sign(cert, key, EVP_sha256()) > 0);
    BH_ASSERT(PEM_write_bio_X509(cert_text, cert) == 1);
    BH_ASSERT(PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL) == 1);
    copy_pem(cert_text, ret_pem->certificate, sizeof ret_pem->certificate);
    copy_pem(key_text, ret_pem->key, sizeof ret_pem->key);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* ---- saying and hearing ---- */

static bool
server_test_send(struct connection *connection, const void *bytes, size_t length)
{
    if (connection->tls)
        return SSL_write(connection->tls, bytes, (int)length) == (int)length;
    return send(connection->fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool
send_text(struct connection *connection, const char *text)
{
    return server_test_send(connection, text, strlen(text));
}

static bool
receive_more(struct connection *connection)
{
    size_t left = REQUEST_MAX - connection->length - 1;
    char *slot = connection->request + connection->length;
    ssize_t n =
        connection->tls ? SSL_read(connection->tls, slot, (int)left) : recv(connection->fd, slot, left, 0);

    if (n <= 0)
        return false;
    connection->length += (size_t)n;
    connection->request[connection->length] = '\0';
    return true;
}

static size_t
body_length(const char *request)
{
    const char *field = strcasestr(request, "\r\ncontent-length:");

    return field ? strtoul(field + strlen("\r\ncontent-length:"), NULL, 10) : 0;
}

static bool
server_test_receive(struct connection *connection)
{
    const char *end = NULL;

    while (!(end = strstr(connection->request, "\r\n\r\n")))
        if (!receive_more(connection) || connection->request[0] < ' ') /* TLS where there is none */
            return false;
    while (strlen(end + 4) < body_length(connection->request))
        if (!receive_more(connection))
            return false;
    return true;
}

/* Until the peer goes or the test ends. */
static void
stay(struct connection *connection)
{
    struct pollfd peer = { .fd = connection->fd, .events = POLLRDHUP };

    while (!connection->server->stopping && poll(&peer, 1, POLL_MS) == 0)
        continue;
}

/* ---- what a path does ---- */

static void
server_test_send_slowly(struct connection *connection)
{
    struct pollfd peer = { .fd = connection->fd, .events = POLLRDHUP };

    send_text(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    while (!connection->server->stopping && send_text(connection, ".") && poll(&peer, 1, POLL_MS) == 0)
        continue;
}

static void
send_filler(struct connection *connection, size_t count)
{
    static char filler[4096];

    memset(filler, 'a', sizeof filler);
    while (count > 0) {
        size_t part = count < sizeof filler ? count : sizeof filler;

        if (!server_test_send(connection, filler, part))
            return;
        count -= part;
    }
}

static void
send_sized(struct connection *connection, size_t length)
{
    char head[100];

    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);
    send_text(connection, head);
    send_filler(connection, length);
}

static void
edge(struct connection *connection)
{
    send_sized(connection, BH_HTTPS_BYTES_MAX);
}

static void
large(struct connection *connection)
{
    send_sized(connection, BH_HTTPS_BYTES_MAX + 1);
}

/* In one chunk, whose size is that of the whole. */
static void
send_chunked(struct connection *connection, size_t length)
{
    char head[100];

    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n", length);
    send_text(connection, head);
    send_filler(connection, length);
    send_text(connection, "\r\n0\r\n\r\n");
}

static void
chunked_edge(struct connection *connection)
{
    send_chunked(connection, BH_HTTPS_BYTES_MAX);
}

static void
chunked_large(struct connection *connection)
{
    send_chunked(connection, BH_HTTPS_BYTES_MAX + 1);
}

/* Without a length, so that the size is unknown beforehand. */
static void
flood(struct connection *connection)
{
    send_text(connection, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    send_filler(connection, 16 * BH_HTTPS_BYTES_MAX);
}

static void
server_test_headers(struct connection *connection)
{
    send_text(connection, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 10000; i++)
        if (!send_text(connection, "X-Filler: 0123456789012345678901234567890123456789\r\n"))
            return;
}

static void
binary(struct connection *connection)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b";

    server_test_send(connection, text, sizeof text - 1);
}

/* What was asked, as it came. */
static void
echo(struct connection *connection)
{
    char head[100];

    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", connection->length);
    send_text(connection, head);
    server_test_send(connection, connection->request, connection->length);
}

static void
server_test_certificate(struct connection *connection)
{
    X509 *cert = connection->tls ? SSL_get1_peer_certificate(connection->tls) : NULL;
    char name[64] = "nobody", text[200];

    if (cert)
        X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, sizeof name);
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(name), name);
    send_text(connection, text);
    X509_free(cert);
}

/* The reader cannot know whether that was all. */
static void
torn(struct connection *connection)
{
    send_text(connection, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf");
    connection->torn = true;
}

/* Answers when so many are here at a time. */
static void
together(struct connection *connection)
{
    atomic_fetch_add(&connection->server->together, 1);
    while (!connection->server->stopping && connection->server->together < TOGETHER)
        bh_time_sleep(BH_NS_PER_MS);
    send_text(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *path, *text;                    /* the answer's bytes, after which it hangs up */
    void (*act)(struct connection *connection); /* or else */
} paths[] = {
    { "/ok", OK "Content-Length: 2\r\ncache-control: public, max-age=300\r\n\r\nok", NULL },
    { "/kept",
      OK "Cache-Control: max-age=9\r\nCache-Control: max-age=5\r\nContent-Length: "
         "4\r\n\r\nkept",
      NULL },
    { "/unkept", OK "Cache-Control: max-age=9\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\nx",
      NULL },
    { "/500", "HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\nbroken", NULL },
    { "/204", "HTTP/1.1 204 No Content\r\n\r\n", NULL },
    { "/redirect", "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 5\r\n\r\nthere", NULL },
    { "/continue", "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\nok", NULL },
    { "/lying", OK "Content-Length: 100\r\n\r\nok", NULL },
    { "/understated", OK "Content-Length: 2\r\n\r\nok and more", NULL },
    { "/length", OK "Content-Length: -1\r\n\r\nok", NULL },
    { "/chunks", OK "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", NULL },
    { "/chunk", OK "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nok", NULL },
    { "/cut", "HTTP/1.1 200 OK\r\nContent-Le", NULL },
    { "/nothing", "", NULL },
    { "/ancient", "hello", NULL },
    { "/latin", OK "Content-Length: 1\r\n\r\n\xe9", NULL },
    { "/binary", NULL, binary },
    { "/edge", NULL, edge },
    { "/large", NULL, large },
    { "/chunked-edge", NULL, chunked_edge },
    { "/chunked-large", NULL, chunked_large },
    { "/torn", NULL, torn },
    { "/flood", NULL, flood },
    { "/headers", NULL, server_test_headers },
    { "/slow", NULL, server_test_send_slowly },
    { "/silent", NULL, stay },
    { "/echo", NULL, echo },
    { "/certificate", NULL, server_test_certificate },
    { "/together", NULL, together },
};

static void
server_test_respond(struct connection *connection)
{
    const char *from = strchr(connection->request, ' ');
    size_t length = from ? strcspn(from + 1, " ?") : 0;

    for (size_t i = 0; from && i < BH_COUNT(paths); i++) {
        if (strlen(paths[i].path) != length || strncmp(from + 1, paths[i].path, length) != 0)
            continue;
        if (paths[i].act)
            paths[i].act(connection);
        else
            send_text(connection, paths[i].text);
        return;
    }
    send_text(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

/* ---- a proxy's only verb ---- */

static bool
server_test_pass(int from, int to)
{
    char bytes[4096];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);

    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

/* To that port of this machine, whatever host was named. */
static void
tunnel(struct connection *connection)
{
    const char *port = strchr(connection->request, ':');
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)strtoul(port ? port + 1 : "0", NULL, 10)) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd ends[2] = { { .fd = connection->fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

    if (connect(fd, (const void *)&to, sizeof to) == 0
        && send_text(connection, "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\n\r\n")) {
        while (!connection->server->stopping && poll(ends, 2, POLL_MS) >= 0)
            if ((ends[0].revents && !server_test_pass(ends[0].fd, ends[1].fd))
                || (ends[1].revents && !server_test_pass(ends[1].fd, ends[0].fd)))
                break;
    }
    close(fd);
}

/* ---- connections ---- */

static void *
server_test_serve(void *self)
{
    struct connection *connection = self;
    struct server *server = connection->server;

    if (server->tls) {
        connection->tls = SSL_new(server->tls);
        SSL_set_fd(connection->tls, connection->fd);
    }
    if (!connection->tls || SSL_accept(connection->tls) == 1) {
        if (server_test_receive(connection) && strncmp(connection->request, "CONNECT ", 8) == 0)
            tunnel(connection);
        else if (connection->length > 0)
            server_test_respond(connection);
        if (connection->tls && !connection->torn)
            SSL_shutdown(connection->tls);
    }
    SSL_free(connection->tls);
    close(connection->fd);
    free(connection->request);
    free(connection);
    atomic_fetch_sub(&server->open, 1);
    return NULL;
}

static void
server_test_accept(struct server *server, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);
    pthread_t thread;

    BH_ASSERT(connection);
    connection->server = server;
    connection->fd = fd;
    connection->request = calloc(1, REQUEST_MAX);
    BH_ASSERT(connection->request);
    atomic_fetch_add(&server->open, 1);
    atomic_fetch_add(&server->taken, 1);
    BH_ASSERT(pthread_create(&thread, NULL, server_test_serve, connection) == 0);
    pthread_detach(thread);
}

static void *
listen_on(void *self)
{
    struct server *server = self;
    struct pollfd ready = { .fd = server->fd, .events = POLLIN };

    while (!server->stopping) {
        int fd = poll(&ready, 1, POLL_MS) > 0 ? accept4(server->fd, NULL, NULL, SOCK_CLOEXEC) : -1;

        if (fd >= 0)
            server_test_accept(server, fd);
    }
    return NULL;
}

static int
any_certificate(int good, X509_STORE_CTX *context)
{
    (void)good, (void)context;
    return 1;
}

static SSL_CTX *
make_tls(const struct server_options *options)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    BIO *cert = BIO_new_mem_buf(options->pem->certificate, -1);
    BIO *key = BIO_new_mem_buf(options->pem->key, -1);
    X509 *x509 = PEM_read_bio_X509(cert, NULL, NULL, NULL);
    EVP_PKEY *private = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);

    BH_ASSERT(tls && SSL_CTX_use_certificate(tls, x509) == 1);
    BH_ASSERT(SSL_CTX_use_PrivateKey(tls, private) == 1);
    if (options->old) {
        SSL_CTX_set_security_level(tls, 0);
        SSL_CTX_set_min_proto_version(tls, TLS1_1_VERSION);
        SSL_CTX_set_max_proto_version(tls, TLS1_1_VERSION);
    }
    if (options->ask)
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, any_certificate);
    X509_free(x509);
    EVP_PKEY_free(private);
    BIO_free(cert);
    BIO_free(key);
    return tls;
}

struct server *
bh_test_server_start(const struct server_options *options)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct server *server = calloc(1, sizeof *server);

    BH_ASSERT(server);
    server->tls = options->pem ? make_tls(options) : NULL;
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BH_ASSERT(bind(server->fd, (const void *)&at, sizeof at) == 0);
    BH_ASSERT(listen(server->fd, 128) == 0);
    BH_ASSERT(pthread_create(&server->thread, NULL, listen_on, server) == 0);
    return server;
}

void
bh_test_server_stop(struct server *server)
{
    server->stopping = true;
    pthread_join(server->thread, NULL);
    while (server->open > 0)
        bh_time_sleep(BH_NS_PER_MS);
    SSL_CTX_free(server->tls);
    close(server->fd);
    free(server);
}

uint16_t
bh_test_server_port(const struct server *server)
{
    struct sockaddr_in at;
    socklen_t length = sizeof at;

    BH_ASSERT(getsockname(server->fd, (void *)&at, &length) == 0);
    return ntohs(at.sin_port);
}

uint32_t
bh_test_server_accepted(struct server *server)
{
    return server->taken;
}

void
bh_test_server_await(struct server *server, uint32_t count)
{
    while (server->taken < count)
        bh_time_sleep(BH_NS_PER_MS);
}
