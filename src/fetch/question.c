#include "fetch/question.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/utf8.h"
#include "fetch/cache_control.h"

enum { HEADERS_MAX = 64 * 1024 };

struct bh_question {
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
part_is(CURLU *url, CURLUPart part, const char *const *texts, size_t count)
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
part_is_empty(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool empty = curl_url_get(url, part, &text, 0) != CURLUE_OK;

    curl_free(text);
    return empty;
}

/* https, or http to this machine where the settings have that. */
static bool
check_url(const struct bh_fetch_settings *settings, const char *text, bool *ret_plain)
{
    static const char *const https[] = { "https" }, *const http[] = { "http" };
    static const char *const local[] = { "127.0.0.1", "[::1]", "localhost" };
    CURLU *url = curl_url();
    bool good;

    BH_ASSERT(url);
    good = curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
           part_is_empty(url, CURLUPART_USER) && part_is_empty(url, CURLUPART_PASSWORD);
    *ret_plain = good && part_is(url, CURLUPART_SCHEME, http, BH_COUNT(http)) &&
                 part_is(url, CURLUPART_HOST, local, BH_COUNT(local));
    good = good && (part_is(url, CURLUPART_SCHEME, https, BH_COUNT(https)) ||
                    (*ret_plain && settings->plain_loopback));
    curl_url_cleanup(url);
    return good;
}

/* ---- what libcurl calls ---- */

/* The address is judged at the moment of connecting: a name that resolves to another one
 * between a check and the connection gains nothing. */
static curl_socket_t
open_socket(void *self, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct bh_question *question = self;

    (void)purpose;
    if (bh_fetch_settings_allow(question->settings, &address->addr, question->plain))
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    question->refused = true;
    return CURL_SOCKET_BAD;
}

static size_t
take_body(char *bytes, size_t size, size_t count, void *self)
{
    struct bh_question *question = self;

    question->too_long |= question->body.length + size * count > BH_HTTPS_BYTES_MAX;
    if (!question->too_long)
        bh_buf_put(&question->body, bytes, size * count);
    return question->too_long ? 0 : size * count;
}

/* Where the field's value begins, 0 when it is another field. */
static size_t
value_at(const char *line, size_t length, const char *name)
{
    size_t at = strlen(name);

    return length >= at && strncasecmp(line, name, at) == 0 ? at : 0;
}

static size_t
take_header(char *line, size_t size, size_t count, void *self)
{
    struct bh_question *question = self;
    size_t length = size * count, at = value_at(line, length, "cache-control:");

    question->header_bytes += length;
    question->too_long |= question->header_bytes > HEADERS_MAX;
    question->headed = length == 2 && line[0] == '\r';
    question->chunked |= value_at(line, length, "transfer-encoding:") > 0;
    if (at > 0) {
        uint32_t age = bh_cache_control_max_age(line + at, length - at);

        if (!question->aged || age < question->max_age_s)
            question->max_age_s = age;
        question->aged = true;
    }
    return question->too_long ? 0 : length;
}

/* ---- the transfer's options ---- */

#define SET(option, value)                                                                 \
    BH_ASSERT(curl_easy_setopt(question->easy, option, value) == CURLE_OK)

static void
add_header(struct bh_question *question, const char *text)
{
    struct curl_slist *longer = curl_slist_append(question->headers, text);

    BH_ASSERT(longer);
    question->headers = longer;
}

static void
set_request(struct bh_question *question, const struct bh_fetch_ask *ask)
{
    char line[BH_HTTPS_HEADER_MAX + 32];
    struct bh_buf text;

    add_header(question, "Accept: application/json");
    add_header(question, "Expect:");
    if (ask->authorization[0]) {
        bh_buf_init_fixed(&text, line, sizeof line);
        bh_buf_puts(&text, "Authorization: ");
        bh_buf_puts(&text, ask->authorization);
        BH_ASSERT(bh_buf_text(&text));
        add_header(question, line);
        explicit_bzero(line, sizeof line);
    }
    SET(CURLOPT_HTTPHEADER, question->headers);
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
set_limits(struct bh_question *question)
{
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)question->settings->timeout_ms);
    SET(CURLOPT_QUICK_EXIT, 1L); /* do not wait for the resolver's thread */
    SET(CURLOPT_MAXFILESIZE, (long)BH_HTTPS_BYTES_MAX);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_PROTOCOLS_STR, question->plain ? "http" : "https");
    /* "": none, whatever the environment says */
    SET(CURLOPT_PROXY,
        question->settings->proxy && !question->plain ? question->settings->proxy : "");
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_OPENSOCKETDATA, question);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, question);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, question);
    SET(CURLOPT_PRIVATE, question);
}

static struct curl_blob
blob(const struct bh_buf *text)
{
    return (struct curl_blob) { text->bytes, text->length, CURL_BLOB_NOCOPY };
}

static void
set_trust(struct bh_question *question, const struct bh_fetch_identity *identity)
{
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (question->settings->ca.length > 0) {
        struct curl_blob ca = blob(&question->settings->ca);

        SET(CURLOPT_CAINFO_BLOB, &ca);
        SET(CURLOPT_CAPATH, NULL); /* the system's would count as well */
    }
    if (identity) {
        struct curl_blob certificate = blob(&identity->certificate);
        struct curl_blob key = blob(&identity->key);

        SET(CURLOPT_SSLCERT_BLOB, &certificate);
        SET(CURLOPT_SSLKEY_BLOB, &key);
    }
}

/* ---- the life of a question ---- */

struct bh_question *
bh_question_new(const struct bh_fetch_settings *settings, const struct bh_fetch_ask *ask,
                enum bh_https_cause *ret_cause)
{
    const struct bh_fetch_identity *identity = NULL;
    struct bh_question *question;
    bool plain;

    if (!check_url(settings, ask->url, &plain)) {
        *ret_cause = BH_HTTPS_URL;
        return NULL;
    }
    if (ask->certificate[0] &&
        !(identity = bh_fetch_settings_find(settings, ask->certificate))) {
        *ret_cause = BH_HTTPS_CERTIFICATE;
        return NULL;
    }
    question = calloc(1, sizeof *question);
    BH_ASSERT(question);
    question->settings = settings;
    question->call = ask->call;
    question->plain = plain;
    question->easy = curl_easy_init();
    BH_ASSERT(question->easy);
    bh_buf_init(&question->body, BH_HTTPS_BYTES_MAX + 1); /* and a NUL */
    set_request(question, ask);
    set_limits(question);
    set_trust(question, identity);
    return question;
}

void
bh_question_free(struct bh_question *question)
{
    curl_easy_cleanup(question->easy);
    curl_slist_free_all(question->headers);
    bh_buf_fini(&question->body);
    free(question);
}

CURL *
bh_question_easy(struct bh_question *question)
{
    return question->easy;
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
cause_of(const struct bh_question *question, CURLcode result)
{
    if (question->too_long)
        return BH_HTTPS_TOO_LONG;
    if (question->refused && result == CURLE_COULDNT_CONNECT)
        return BH_HTTPS_PRIVATE;
    for (size_t i = 0; i < BH_COUNT(causes); i++)
        if (causes[i].result == result)
            return causes[i].cause;
    return BH_HTTPS_CUT;
}

/* A body that ends where the connection does may have been cut by anybody on the way. */
static bool
is_whole(const struct bh_question *question)
{
    curl_off_t length = -1;

    if (!question->headed)
        return false;
    BH_ASSERT(curl_easy_getinfo(question->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
                                &length) == CURLE_OK);
    return length >= 0 || question->chunked || question->body.length == 0;
}

static bool
is_text(const struct bh_buf *body)
{
    for (size_t at = 0, step; at < body->length; at += step) {
        step = bh_utf8_step(body->bytes + at, body->length - at);
        if (step == 0 || body->bytes[at] == '\0')
            return false;
    }
    return true;
}

void
bh_question_finish(struct bh_question *question, CURLcode result,
                   struct bh_fetch_answer *ret_answer)
{
    enum bh_https_cause cause = cause_of(question, result);
    long status = 0;

    if (cause == BH_HTTPS_ANSWERED && !is_whole(question))
        cause = BH_HTTPS_CUT;
    if (cause == BH_HTTPS_ANSWERED && !is_text(&question->body))
        cause = BH_HTTPS_NO_TEXT;
    *ret_answer = (struct bh_fetch_answer) { .call = question->call, .cause = cause };
    if (cause != BH_HTTPS_ANSWERED)
        return;
    BH_ASSERT(curl_easy_getinfo(question->easy, CURLINFO_RESPONSE_CODE, &status) ==
              CURLE_OK);
    if (status < 100 || status > 999) {
        ret_answer->cause = BH_HTTPS_CUT;
        return;
    }
    ret_answer->status = (uint32_t)status;
    ret_answer->max_age_s = question->max_age_s;
    ret_answer->body = bh_buf_text(&question->body);
}
