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

enum { TURN_MS = 10, REQUEST_MAX = 1 << 18, TOGETHER = 8 };

struct server {
    SSL_CTX *tls; /* NULL: http */
    int fd;
    pthread_t thread;
    atomic_uint taken, open, together;
    atomic_bool stopping;
};

struct visit {
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

    snprintf(text, sizeof text, "%s%s", name ? "DNS:" : "DNS:localhost,IP:127.0.0.1",
             name ? name : "");
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
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const void *)common, -1, -1,
                               0);
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
say(struct visit *visit, const void *bytes, size_t length)
{
    if (visit->tls)
        return SSL_write(visit->tls, bytes, (int)length) == (int)length;
    return send(visit->fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool
say_text(struct visit *visit, const char *text)
{
    return say(visit, text, strlen(text));
}

static bool
hear_more(struct visit *visit)
{
    size_t left = REQUEST_MAX - visit->length - 1;
    char *place = visit->request + visit->length;
    ssize_t n = visit->tls ? SSL_read(visit->tls, place, (int)left)
                           : recv(visit->fd, place, left, 0);

    if (n <= 0)
        return false;
    visit->length += (size_t)n;
    visit->request[visit->length] = '\0';
    return true;
}

static size_t
body_length(const char *request)
{
    const char *field = strcasestr(request, "\r\ncontent-length:");

    return field ? strtoul(field + strlen("\r\ncontent-length:"), NULL, 10) : 0;
}

static bool
hear(struct visit *visit)
{
    const char *end = NULL;

    while (!(end = strstr(visit->request, "\r\n\r\n")))
        if (!hear_more(visit) || visit->request[0] < ' ') /* TLS where there is none */
            return false;
    while (strlen(end + 4) < body_length(visit->request))
        if (!hear_more(visit))
            return false;
    return true;
}

/* Until the peer goes or the test ends. */
static void
stay(struct visit *visit)
{
    struct pollfd peer = { .fd = visit->fd, .events = POLLRDHUP };

    while (!visit->server->stopping && poll(&peer, 1, TURN_MS) == 0)
        continue;
}

/* ---- what a path does ---- */

static void
drip(struct visit *visit)
{
    struct pollfd peer = { .fd = visit->fd, .events = POLLRDHUP };

    say_text(visit, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    while (!visit->server->stopping && say_text(visit, ".") && poll(&peer, 1, TURN_MS) == 0)
        continue;
}

static void
say_filler(struct visit *visit, size_t count)
{
    static char filler[4096];

    memset(filler, 'a', sizeof filler);
    while (count > 0) {
        size_t part = count < sizeof filler ? count : sizeof filler;

        if (!say(visit, filler, part))
            return;
        count -= part;
    }
}

static void
say_sized(struct visit *visit, size_t length)
{
    char head[100];

    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);
    say_text(visit, head);
    say_filler(visit, length);
}

static void
edge(struct visit *visit)
{
    say_sized(visit, BH_HTTPS_BYTES_MAX);
}

static void
large(struct visit *visit)
{
    say_sized(visit, BH_HTTPS_BYTES_MAX + 1);
}

/* In one chunk, whose size is that of the whole. */
static void
say_chunked(struct visit *visit, size_t length)
{
    char head[100];

    snprintf(head, sizeof head,
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n", length);
    say_text(visit, head);
    say_filler(visit, length);
    say_text(visit, "\r\n0\r\n\r\n");
}

static void
chunked_edge(struct visit *visit)
{
    say_chunked(visit, BH_HTTPS_BYTES_MAX);
}

static void
chunked_large(struct visit *visit)
{
    say_chunked(visit, BH_HTTPS_BYTES_MAX + 1);
}

/* Without a length nobody knows beforehand. */
static void
flood(struct visit *visit)
{
    say_text(visit, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    say_filler(visit, 16 * BH_HTTPS_BYTES_MAX);
}

static void
headers(struct visit *visit)
{
    say_text(visit, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 10000; i++)
        if (!say_text(visit, "X-Filler: 0123456789012345678901234567890123456789\r\n"))
            return;
}

static void
binary(struct visit *visit)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b";

    say(visit, text, sizeof text - 1);
}

/* What was asked, as it came. */
static void
echo(struct visit *visit)
{
    char head[100];

    snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
             visit->length);
    say_text(visit, head);
    say(visit, visit->request, visit->length);
}

static void
certificate(struct visit *visit)
{
    X509 *cert = visit->tls ? SSL_get1_peer_certificate(visit->tls) : NULL;
    char name[64] = "nobody", text[200];

    if (cert)
        X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name,
                                  sizeof name);
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(name), name);
    say_text(visit, text);
    X509_free(cert);
}

/* Whether that was all nobody can know. */
static void
torn(struct visit *visit)
{
    say_text(visit, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf");
    visit->torn = true;
}

/* Answers when so many are here at a time. */
static void
together(struct visit *visit)
{
    atomic_fetch_add(&visit->server->together, 1);
    while (!visit->server->stopping && visit->server->together < TOGETHER)
        bh_time_sleep(BH_NS_PER_MS);
    say_text(visit, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *path, *text;          /* the answer's bytes, after which it hangs up */
    void (*act)(struct visit *visit); /* or else */
} paths[] = {
    { "/ok", OK "Content-Length: 2\r\ncache-control: public, max-age=300\r\n\r\nok", NULL },
    { "/kept",
      OK "Cache-Control: max-age=9\r\nCache-Control: max-age=5\r\nContent-Length: "
         "4\r\n\r\nkept",
      NULL },
    { "/unkept",
      OK
      "Cache-Control: max-age=9\r\nCache-Control: no-store\r\nContent-Length: 1\r\n\r\nx",
      NULL },
    { "/500", "HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\nbroken", NULL },
    { "/204", "HTTP/1.1 204 No Content\r\n\r\n", NULL },
    { "/redirect", "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 5\r\n\r\nthere",
      NULL },
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
    { "/headers", NULL, headers },
    { "/slow", NULL, drip },
    { "/silent", NULL, stay },
    { "/echo", NULL, echo },
    { "/certificate", NULL, certificate },
    { "/together", NULL, together },
};

static void
answer(struct visit *visit)
{
    const char *from = strchr(visit->request, ' ');
    size_t length = from ? strcspn(from + 1, " ?") : 0;

    for (size_t i = 0; from && i < BH_COUNT(paths); i++) {
        if (strlen(paths[i].path) != length ||
            strncmp(from + 1, paths[i].path, length) != 0)
            continue;
        if (paths[i].act)
            paths[i].act(visit);
        else
            say_text(visit, paths[i].text);
        return;
    }
    say_text(visit, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

/* ---- a proxy's only verb ---- */

static bool
pass(int from, int to)
{
    char bytes[4096];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);

    return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

/* To that port of this machine, whatever host was named. */
static void
tunnel(struct visit *visit)
{
    const char *port = strchr(visit->request, ':');
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons(
                                  (uint16_t)strtoul(port ? port + 1 : "0", NULL, 10)) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd ends[2] = { { .fd = visit->fd, .events = POLLIN },
                              { .fd = fd, .events = POLLIN } };

    if (connect(fd, (const void *)&to, sizeof to) == 0 &&
        say_text(visit, "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\n\r\n")) {
        while (!visit->server->stopping && poll(ends, 2, TURN_MS) >= 0)
            if ((ends[0].revents && !pass(ends[0].fd, ends[1].fd)) ||
                (ends[1].revents && !pass(ends[1].fd, ends[0].fd)))
                break;
    }
    close(fd);
}

/* ---- connections ---- */

static void *
serve(void *self)
{
    struct visit *visit = self;
    struct server *server = visit->server;

    if (server->tls) {
        visit->tls = SSL_new(server->tls);
        SSL_set_fd(visit->tls, visit->fd);
    }
    if (!visit->tls || SSL_accept(visit->tls) == 1) {
        if (hear(visit) && strncmp(visit->request, "CONNECT ", 8) == 0)
            tunnel(visit);
        else if (visit->length > 0)
            answer(visit);
        if (visit->tls && !visit->torn)
            SSL_shutdown(visit->tls);
    }
    SSL_free(visit->tls);
    close(visit->fd);
    free(visit->request);
    free(visit);
    atomic_fetch_sub(&server->open, 1);
    return NULL;
}

static void
take(struct server *server, int fd)
{
    struct visit *visit = calloc(1, sizeof *visit);
    pthread_t thread;

    BH_ASSERT(visit);
    visit->server = server;
    visit->fd = fd;
    visit->request = calloc(1, REQUEST_MAX);
    BH_ASSERT(visit->request);
    atomic_fetch_add(&server->open, 1);
    atomic_fetch_add(&server->taken, 1);
    BH_ASSERT(pthread_create(&thread, NULL, serve, visit) == 0);
    pthread_detach(thread);
}

static void *
listen_on(void *self)
{
    struct server *server = self;
    struct pollfd ready = { .fd = server->fd, .events = POLLIN };

    while (!server->stopping) {
        int fd = poll(&ready, 1, TURN_MS) > 0
                     ? accept4(server->fd, NULL, NULL, SOCK_CLOEXEC)
                     : -1;

        if (fd >= 0)
            take(server, fd);
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
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
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
bh_test_server_taken(struct server *server)
{
    return server->taken;
}

void
bh_test_server_await(struct server *server, uint32_t count)
{
    while (server->taken < count)
        bh_time_sleep(BH_NS_PER_MS);
}
