#include "fetch/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/utf8.h"
#include "fetch/cache_control.h"

enum { HEADERS_MAX = 64 * 1024 };

struct bh_transfer {
    const struct bh_fetch_settings *settings;
    CURL *easy;
    struct curl_slist *headers;
    struct bh_buf body;
    size_t header_bytes;
    uint64_t call;
    uint32_t max_age_s;
    bool plain;                   /* http, to this machine */
    bool aged, too_long, refused; /* Cache-Control seen; a limit; a private address */
    bool headed, chunked;         /* the headers came to their end; the body has one */
};

/* ---- what may be asked ---- */

static bool
transfer_part_is(CURLU *url, CURLUPart part, const char *const *texts, size_t count)
{
    char *text = NULL;
    bool found = false;

    if (curl_url_get(url, part, &text, 0) != CURLUE_OK)
        return false;
    for (size_t i = 0; i < count; i++)
        found |= strcmp(text, texts[i]) == 0;
    curl_free(text);
    return found;
}

static bool
transfer_part_is_empty(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool empty = curl_url_get(url, part, &text, 0) != CURLUE_OK;

    curl_free(text);
    return empty;
}

/* https, or http to this machine where the settings have that. */
static bool
transfer_check_url(const struct bh_fetch_settings *settings, const char *text, bool *ret_plain)
{
    static const char *const https[] = { "https" }, *const http[] = { "http" };
    static const char *const local[] = { "127.0.0.1", "[::1]", "localhost" };
    CURLU *url = curl_url();
    bool good;

    BH_ASSERT(url);
    good = curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK
           && transfer_part_is_empty(url, CURLUPART_USER) && transfer_part_is_empty(url, CURLUPART_PASSWORD);
    *ret_plain = good && transfer_part_is(url, CURLUPART_SCHEME, http, BH_COUNT(http))
                 && transfer_part_is(url, CURLUPART_HOST, local, BH_COUNT(local));
    good = good
           && (transfer_part_is(url, CURLUPART_SCHEME, https, BH_COUNT(https))
               || (*ret_plain && settings->plain_loopback));
    curl_url_cleanup(url);
    return good;
}

/* ---- what libcurl calls ---- */

/* The address is judged at the moment of connecting: a name that resolves to another one
 * between a check and the connection gains nothing. */
static curl_socket_t
transfer_open_socket(void *self, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct bh_transfer *transfer = self;

    if (bh_fetch_settings_allow(transfer->settings, &address->addr, transfer->plain))
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    transfer->refused = true;
    return CURL_SOCKET_BAD;
}

static size_t
transfer_receive_body(char *bytes, size_t size, size_t count, void *self)
{
    struct bh_transfer *transfer = self;

    transfer->too_long |= transfer->body.length + size * count > BH_HTTPS_BYTES_MAX;
    if (!transfer->too_long)
        bh_buf_put(&transfer->body, bytes, size * count);
    return transfer->too_long ? 0 : size * count;
}

/* Where the field's value begins, 0 when it is another field. */
static size_t
transfer_value_at(const char *line, size_t length, const char *name)
{
    size_t at = strlen(name);

    return length >= at && strncasecmp(line, name, at) == 0 ? at : 0;
}

static size_t
transfer_receive_header(char *line, size_t size, size_t count, void *self)
{
    struct bh_transfer *transfer = self;
    size_t length = size * count, at = transfer_value_at(line, length, "cache-control:");

    transfer->header_bytes += length;
    transfer->too_long |= transfer->header_bytes > HEADERS_MAX;
    transfer->headed = length == 2 && line[0] == '\r';
    transfer->chunked |= transfer_value_at(line, length, "transfer-encoding:") > 0;
    if (at > 0) {
        uint32_t age = bh_cache_control_max_age(line + at, length - at);

        if (!transfer->aged || age < transfer->max_age_s)
            transfer->max_age_s = age;
        transfer->aged = true;
    }
    return transfer->too_long ? 0 : length;
}

/* ---- the transfer's options ---- */

#define SET(option, value) BH_ASSERT(curl_easy_setopt(transfer->easy, option, value) == CURLE_OK)

static void
transfer_add_header(struct bh_transfer *transfer, const char *text)
{
    struct curl_slist *longer = curl_slist_append(transfer->headers, text);

    BH_ASSERT(longer);
    transfer->headers = longer;
}

static void
transfer_set_request(struct bh_transfer *transfer, const struct bh_fetch_request *ask)
{
    char line[BH_HTTPS_HEADER_MAX + 32];
    struct bh_buf text;

    transfer_add_header(transfer, "Accept: application/json");
    transfer_add_header(transfer, "Expect:");
    if (ask->authorization[0]) {
        bh_buf_init_fixed(&text, line, sizeof line);
        bh_buf_puts(&text, "Authorization: ");
        bh_buf_puts(&text, ask->authorization);
        BH_ASSERT(bh_buf_text(&text));
        transfer_add_header(transfer, line);
        explicit_bzero(line, sizeof line);
    }
    SET(CURLOPT_HTTPHEADER, transfer->headers);
    SET(CURLOPT_URL, ask->url);
    SET(CURLOPT_USERAGENT, "bulkhead");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (ask->post) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE, (long)strlen(ask->body));
        SET(CURLOPT_COPYPOSTFIELDS, ask->body);
    }
}

static void
transfer_set_limits(struct bh_transfer *transfer)
{
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)transfer->settings->timeout_ms);
    SET(CURLOPT_QUICK_EXIT, 1L); /* do not wait for the resolver's thread */
    SET(CURLOPT_MAXFILESIZE, (long)BH_HTTPS_BYTES_MAX);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_PROTOCOLS_STR, transfer->plain ? "http" : "https");
    /* "": none, whatever the environment says */
    SET(CURLOPT_PROXY, transfer->settings->proxy && !transfer->plain ? transfer->settings->proxy : "");
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_OPENSOCKETFUNCTION, transfer_open_socket);
    SET(CURLOPT_OPENSOCKETDATA, transfer);
    SET(CURLOPT_WRITEFUNCTION, transfer_receive_body);
    SET(CURLOPT_WRITEDATA, transfer);
    SET(CURLOPT_HEADERFUNCTION, transfer_receive_header);
    SET(CURLOPT_HEADERDATA, transfer);
    SET(CURLOPT_PRIVATE, transfer);
}

static struct curl_blob
transfer_blob(const struct bh_buf *text)
{
    return (struct curl_blob){ text->bytes, text->length, CURL_BLOB_NOCOPY };
}

static void
transfer_set_trust(struct bh_transfer *transfer, const struct bh_fetch_identity *identity)
{
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (transfer->settings->ca.length > 0) {
        struct curl_blob ca = transfer_blob(&transfer->settings->ca);

        SET(CURLOPT_CAINFO_BLOB, &ca);
        SET(CURLOPT_CAPATH, NULL); /* the system's would count as well */
    }
    if (identity) {
        struct curl_blob certificate = transfer_blob(&identity->certificate);
        struct curl_blob key = transfer_blob(&identity->key);

        SET(CURLOPT_SSLCERT_BLOB, &certificate);
        SET(CURLOPT_SSLKEY_BLOB, &key);
    }
}

/* ---- the life of a question ---- */

struct bh_transfer *
bh_transfer_new(const struct bh_fetch_settings *settings, const struct bh_fetch_request *ask,
                enum bh_https_cause *ret_cause)
{
    const struct bh_fetch_identity *identity = NULL;
    struct bh_transfer *transfer;
    bool plain;

    if (!transfer_check_url(settings, ask->url, &plain)) {
        *ret_cause = BH_HTTPS_URL;
        return NULL;
    }
    if (ask->certificate[0] && !(identity = bh_fetch_settings_find(settings, ask->certificate))) {
        *ret_cause = BH_HTTPS_CERTIFICATE;
        return NULL;
    }
    transfer = calloc(1, sizeof *transfer);
    BH_ASSERT(transfer);
    transfer->settings = settings;
    transfer->call = ask->call;
    transfer->plain = plain;
    transfer->easy = curl_easy_init();
    BH_ASSERT(transfer->easy);
    bh_buf_init(&transfer->body, BH_HTTPS_BYTES_MAX + 1); /* and a NUL */
    transfer_set_request(transfer, ask);
    transfer_set_limits(transfer);
    transfer_set_trust(transfer, identity);
    return transfer;
}

void
bh_transfer_free(struct bh_transfer *transfer)
{
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    bh_buf_fini(&transfer->body);
    free(transfer);
}

CURL *
bh_transfer_easy(struct bh_transfer *transfer)
{
    return transfer->easy;
}

/* ---- what came of it ---- */

static const struct {
    CURLcode result;
    enum bh_https_cause cause;
} causes[] = {
    { CURLE_OK, BH_HTTPS_ANSWERED },
    { CURLE_URL_MALFORMAT, BH_HTTPS_URL },
    { CURLE_COULDNT_RESOLVE_HOST, BH_HTTPS_RESOLVE },
    { CURLE_COULDNT_RESOLVE_PROXY, BH_HTTPS_RESOLVE },
    { CURLE_COULDNT_CONNECT, BH_HTTPS_CONNECT },
    { CURLE_OPERATION_TIMEDOUT, BH_HTTPS_TIMEOUT },
    { CURLE_SSL_CONNECT_ERROR, BH_HTTPS_TLS },
    { CURLE_SSL_CIPHER, BH_HTTPS_TLS },
    { CURLE_PEER_FAILED_VERIFICATION, BH_HTTPS_UNTRUSTED },
    { CURLE_SSL_CACERT_BADFILE, BH_HTTPS_UNTRUSTED },
    { CURLE_SSL_CERTPROBLEM, BH_HTTPS_CERTIFICATE },
    { CURLE_FILESIZE_EXCEEDED, BH_HTTPS_TOO_LONG },
};

static enum bh_https_cause
transfer_cause_of(const struct bh_transfer *transfer, CURLcode result)
{
    if (transfer->too_long)
        return BH_HTTPS_TOO_LONG;
    if (transfer->refused && result == CURLE_COULDNT_CONNECT)
        return BH_HTTPS_PRIVATE;
    for (size_t i = 0; i < BH_COUNT(causes); i++)
        if (causes[i].result == result)
            return causes[i].cause;
    return BH_HTTPS_CUT;
}

/* A body that ends where the connection does may have been cut on the way. */
static bool
transfer_is_whole(const struct bh_transfer *transfer)
{
    curl_off_t length = -1;

    if (!transfer->headed)
        return false;
    BH_ASSERT(curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK);
    return length >= 0 || transfer->chunked || transfer->body.length == 0;
}

static bool
transfer_is_text(const struct bh_buf *body)
{
    for (size_t at = 0, step; at < body->length; at += step) {
        step = bh_utf8_step(body->bytes + at, body->length - at);
        if (step == 0 || body->bytes[at] == '\0')
            return false;
    }
    return true;
}

void
bh_transfer_finish(struct bh_transfer *transfer, CURLcode result, struct bh_fetch_response *ret_answer)
{
    enum bh_https_cause cause = transfer_cause_of(transfer, result);
    long status = 0;

    if (cause == BH_HTTPS_ANSWERED && !transfer_is_whole(transfer))
        cause = BH_HTTPS_CUT;
    if (cause == BH_HTTPS_ANSWERED && !transfer_is_text(&transfer->body))
        cause = BH_HTTPS_NO_TEXT;
    *ret_answer = (struct bh_fetch_response){ .call = transfer->call, .cause = cause };
    if (cause != BH_HTTPS_ANSWERED)
        return;
    BH_ASSERT(curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK);
    if (status < 100 || status > 999) {
        ret_answer->cause = BH_HTTPS_CUT;
        return;
    }
    ret_answer->status = (uint32_t)status;
    ret_answer->max_age_s = transfer->max_age_s;
    ret_answer->body = bh_buf_text(&transfer->body);
}
