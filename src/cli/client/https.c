#include "cli/client/https.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/num.h"

/* The functions of libcurl that are used, with their real types. */
/* clang-format off */
#define CURL_CALLS(CALL) \
    CALL(curl_easy_init) CALL(curl_easy_setopt) CALL(curl_easy_perform) CALL(curl_easy_getinfo) \
    CALL(curl_easy_cleanup) CALL(curl_easy_strerror) CALL(curl_slist_append) \
    CALL(curl_slist_free_all) CALL(curl_easy_recv) CALL(curl_easy_send)
/* clang-format on */

#undef curl_easy_setopt
#undef curl_easy_getinfo

static struct {
#define CALL(name) __typeof__(name) *name;
    CURL_CALLS(CALL)
#undef CALL
} curl;

/* One transfer. */
struct transfer {
    const struct bh_https_options *https;
    CURL *easy;
};

static bh_rc
https_load_curl(struct bh_err *err)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        bh_err_set(err, BH_UNAVAILABLE, "HTTPS needs libcurl.so.4: %s", dlerror());
        return bh_err_hint(err, "install libcurl4, or use the unix socket");
    }
#define CALL(name)                                                                                           \
    curl.name = (__typeof__(name) *)dlsym(library, #name);                                                   \
    if (!curl.name)                                                                                          \
        return bh_err_set(err, BH_UNAVAILABLE, "libcurl.so.4 has no " #name);
    CURL_CALLS(CALL)
#undef CALL
    return BH_OK;
}

static size_t
https_receive_body(char *bytes, size_t size, size_t count, void *self)
{
    struct transfer *t = self;
    long status = 0;

    curl.curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    *t->https->ret_status = (uint32_t)status;
    if (t->https->sink(t->https->self, bytes, size * count))
        return size * count;
    *t->https->ret_stopped = true;
    return 0;
}

/* The value in a header line, if it is that header's and not too long: true. */
static bool
https_read_header(const char *bytes, size_t length, const char *name, char ret_value[BH_HTTP_CHALLENGE_MAX])
{
    size_t from = strlen(name);

    if (length < from || strncasecmp(bytes, name, from) != 0 || memchr(bytes, '\0', length))
        return false;
    while (from < length && strchr(" \t", bytes[from]))
        from++;
    while (length > from && strchr(" \t\r\n", bytes[length - 1]))
        length--;
    if (length - from >= BH_HTTP_CHALLENGE_MAX)
        return false;
    memcpy(ret_value, bytes + from, length - from);
    ret_value[length - from] = '\0';
    return true;
}

/* A header line, with its end. */
static size_t
https_receive_header(char *bytes, size_t size, size_t count, void *self)
{
    const struct bh_https_options *https = ((struct transfer *)self)->https;
    size_t length = size * count;
    char text[BH_HTTP_CHALLENGE_MAX];
    struct bh_err unused;
    uint64_t seconds;

    (void)https_read_header(bytes, length, "www-authenticate:", https->ret_challenge);
    if (https_read_header(bytes, length, "retry-after:", text)
        && bh_parse_u64(text, &seconds, &unused) == BH_OK && seconds <= UINT32_MAX)
        *https->ret_retry_after_s = (uint32_t)seconds;
    return length;
}

static int
https_ask_idle(void *self, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
    struct transfer *t = self;

    if (!t->https->idle || t->https->idle(t->https->idle_self))
        return 0;
    *t->https->ret_stopped = true;
    return 1;
}

/* A header line for the request; the list as it was when `value` is NULL. */
static struct curl_slist *
https_add_header(struct curl_slist *list, const char *name, const char *value)
{
    char line[4352];

    if (!value)
        return list;
    snprintf(line, sizeof line, "%s: %s", name, value);
    return curl.curl_slist_append(list, line);
}

static struct curl_slist *
https_make_headers(const struct bh_http_request *request)
{
    struct curl_slist *list = NULL;
    char bearer[4200];

    if (request->token) {
        snprintf(bearer, sizeof bearer, "Bearer %s", request->token);
        list = https_add_header(list, "Authorization", bearer);
    }
    list = https_add_header(list, "Accept", request->accept);
    list = https_add_header(list, "Idempotency-Key", request->idempotency_key);
    if (!request->body)
        return list;
    return https_add_header(list, "Content-Type",
                            request->content_type ? request->content_type : "application/json");
}

static void
https_set_trust(const struct transfer *t, const char *pin)
{
    /* A pinned key names the server by itself; its certificate is self-signed. */
    long by_authority = pin ? 0 : 1;

    curl.curl_easy_setopt(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3);
    curl.curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, by_authority);
    curl.curl_easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, by_authority * 2);
    if (pin)
        curl.curl_easy_setopt(t->easy, CURLOPT_PINNEDPUBLICKEY, pin);
    if (t->https->ca_file)
        curl.curl_easy_setopt(t->easy, CURLOPT_CAINFO, t->https->ca_file);
    if (t->https->cert) {
        curl.curl_easy_setopt(t->easy, CURLOPT_SSLCERT, t->https->cert);
        curl.curl_easy_setopt(t->easy, CURLOPT_SSLKEY, t->https->key);
    }
}

static void
https_set_request(struct transfer *t, const struct bh_http_request *request, const char *url)
{
    curl.curl_easy_setopt(t->easy, CURLOPT_URL, url);
    curl.curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl.curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    curl.curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT, 20L);
    curl.curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, https_receive_body);
    curl.curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
    curl.curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, https_receive_header);
    curl.curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
    curl.curl_easy_setopt(t->easy, CURLOPT_NOPROGRESS, 0L);
    curl.curl_easy_setopt(t->easy, CURLOPT_XFERINFOFUNCTION, https_ask_idle);
    curl.curl_easy_setopt(t->easy, CURLOPT_XFERINFODATA, t);
    if (request->body) {
        curl.curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE, (long)request->body_length);
        curl.curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, request->body);
    } else if (strcmp(request->method, "POST") == 0) {
        curl.curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, "");
    }
}

static bh_rc
https_explain(const struct bh_https_options *https, CURLcode code, struct bh_err *err)
{
    static const struct {
        CURLcode code;
        bh_rc rc;
    } known[] = {
        { CURLE_COULDNT_CONNECT, BH_UNAVAILABLE },     { CURLE_COULDNT_RESOLVE_HOST, BH_UNAVAILABLE },
        { CURLE_PEER_FAILED_VERIFICATION, BH_DENIED }, { CURLE_SSL_PINNEDPUBKEYNOTMATCH, BH_DENIED },
        { CURLE_SSL_CACERT_BADFILE, BH_NOT_FOUND },    { CURLE_SSL_CERTPROBLEM, BH_INVALID },
        { CURLE_URL_MALFORMAT, BH_INVALID },           { CURLE_SSL_CONNECT_ERROR, BH_UNAVAILABLE },
    };
    bh_rc rc = BH_UNCERTAIN;

    for (size_t i = 0; i < BH_COUNT(known); i++)
        if (known[i].code == code)
            rc = known[i].rc;
    bh_err_set(err, rc, "%s: %s", https->server, curl.curl_easy_strerror(code));
    if (rc == BH_DENIED)
        bh_err_hint(err, "--ca-file names the certificate to trust, --fingerprint the server's key");
    return rc;
}

static void
https_write_pin(const struct bh_https_options *https, char *pin, size_t size)
{
    if (https->pin)
        snprintf(pin, size, "%s%s", strncmp(https->pin, "sha256//", 8) == 0 ? "" : "sha256//", https->pin);
}

bh_rc
bh_https_send(const struct bh_https_options *https, const struct bh_http_request *request, struct bh_err *err)
{
    struct transfer t = { .https = https };
    struct curl_slist *headers;
    char url[8192], pin[128] = "";
    bh_rc rc = bh_http_check(request, err);
    CURLcode code;
    long status = 0;
    if (rc != BH_OK)
        return rc;

    rc = https_load_curl(err);
    if (rc != BH_OK)
        return rc;
    if ((size_t)snprintf(url, sizeof url, "%s%s", https->server, request->path) >= sizeof url)
        return bh_err_set(err, BH_INVALID, "the request's path is too long");
    https_write_pin(https, pin, sizeof pin);
    t.easy = curl.curl_easy_init();
    if (!t.easy)
        return bh_err_set(err, BH_UNAVAILABLE, "libcurl does not start");
    https_set_request(&t, request, url);
    https_set_trust(&t, https->pin ? pin : NULL);
    headers = https_make_headers(request);
    curl.curl_easy_setopt(t.easy, CURLOPT_HTTPHEADER, headers);
    code = curl.curl_easy_perform(t.easy);
    curl.curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &status);
    *https->ret_status = (uint32_t)status;
    if (code != CURLE_OK && !*https->ret_stopped)
        rc = https_explain(https, code, err);
    curl.curl_slist_free_all(headers);
    curl.curl_easy_cleanup(t.easy);
    return rc;
}

/* ---- connections that carry bytes ---- */

struct bh_https_connection {
    CURL *easy;
};

bh_rc
bh_https_connect(const struct bh_https_options *https, struct bh_https_connection **ret_connection,
                 int *ret_fd, struct bh_err *err)
{
    struct transfer t = { .https = https };
    struct bh_https_connection *connection;
    curl_socket_t fd = -1;
    char pin[128] = "";
    bh_rc rc = https_load_curl(err);
    CURLcode code;

    if (rc != BH_OK)
        return rc;
    https_write_pin(https, pin, sizeof pin);
    t.easy = curl.curl_easy_init();
    connection = malloc(sizeof *connection);
    if (!t.easy || !connection)
        return bh_err_set(err, BH_UNAVAILABLE, "libcurl does not start");
    connection->easy = t.easy;
    curl.curl_easy_setopt(t.easy, CURLOPT_URL, https->server);
    curl.curl_easy_setopt(t.easy, CURLOPT_CONNECT_ONLY, 1L);
    curl.curl_easy_setopt(t.easy, CURLOPT_NOSIGNAL, 1L);
    curl.curl_easy_setopt(t.easy, CURLOPT_CONNECTTIMEOUT, 20L);
    curl.curl_easy_setopt(t.easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    https_set_trust(&t, https->pin ? pin : NULL);
    code = curl.curl_easy_perform(t.easy);
    if (code == CURLE_OK)
        code = curl.curl_easy_getinfo(t.easy, CURLINFO_ACTIVESOCKET, &fd);
    if (code != CURLE_OK || fd < 0) {
        rc = https_explain(https, code, err);
        bh_https_disconnect(connection);
        return rc;
    }
    *ret_connection = connection;
    *ret_fd = fd;
    return BH_OK;
}

void
bh_https_disconnect(struct bh_https_connection *connection)
{
    curl.curl_easy_cleanup(connection->easy);
    free(connection);
}

ssize_t
bh_https_receive(struct bh_https_connection *connection, char *bytes, size_t size)
{
    size_t moved = 0;
    CURLcode code = curl.curl_easy_recv(connection->easy, bytes, size, &moved);

    return code == CURLE_OK ? (ssize_t)moved : code == CURLE_AGAIN ? -1 : 0;
}

ssize_t
bh_https_transmit(struct bh_https_connection *connection, const char *bytes, size_t size)
{
    size_t moved = 0;
    CURLcode code = curl.curl_easy_send(connection->easy, bytes, size, &moved);

    return code == CURLE_OK ? (ssize_t)moved : code == CURLE_AGAIN ? -1 : 0;
}
