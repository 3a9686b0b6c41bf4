#include "net/refusal.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#include "base/assert.h"
#include "net/peers.h"

enum { ANSWER_BYTES_MAX = 1024, SETTLE_MS = 1000 };

/* Their names differ between versions of the library. */
enum { STATUS_LARGE = 413, STATUS_TARGET = 414, STATUS_HEADERS = 431 };

/* The API's error shape. */
#define REFUSAL(code, message, next)                                                     \
    "{\"error\":{\"code\":\"" code "\",\"message\":\"" message "\",\"next\":\"" next     \
    "\",\"reason\":\"none\"}}"

static const struct {
    unsigned status;
    bool ends;                   /* the connection */
    const char *text;
} refusals[BH_REFUSALS] = {
    [BH_REFUSAL_HEAD] = { MHD_HTTP_BAD_REQUEST, true,
        REFUSAL("invalid", "the head of the request is not well-formed",
                "send one Host, one length of the body, names right before their colons, lines "
                "that end with CR LF") },
    [BH_REFUSAL_CHUNKS] = { MHD_HTTP_LENGTH_REQUIRED, true,
        REFUSAL("invalid", "a request's body in chunks is not taken", "send its Content-Length") },
    [BH_REFUSAL_LARGE] = { STATUS_LARGE, true,
        REFUSAL("invalid", "the request body is larger than 1 MiB", "send less at once") },
    [BH_REFUSAL_HEADERS] = { STATUS_HEADERS, true,
        REFUSAL("invalid", "the head of the request is too long", "send fewer and shorter headers") },
    [BH_REFUSAL_METHOD] = { MHD_HTTP_METHOD_NOT_ALLOWED, false,
        REFUSAL("invalid", "this method is not used here",
                "use GET, POST, PUT or DELETE; /openapi.json lists the operations") },
    [BH_REFUSAL_CERTIFICATE] = { MHD_HTTP_FORBIDDEN, false,
        REFUSAL("denied", "the client certificate is not accepted here",
                "show one of this site's authority that is valid now and meant for clients, or "
                "none") },
};

bh_mhd_result
bh_refusal_queue(struct MHD_Connection *mhd, enum bh_refusal why)
{
    const char *text = refusals[why].text;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    bh_mhd_result queued;

    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (why == BH_REFUSAL_METHOD)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, POST, PUT, DELETE");
    if (refusals[why].ends)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    queued = MHD_queue_response(mhd, refusals[why].status, response);
    MHD_destroy_response(response);
    return queued;
}

/* ---- what the library refuses by itself ---- */

static _Thread_local struct MHD_Connection *reading;
static unsigned given_up;        /* and not closed yet; read and written atomically */

void
bh_refusal_reading(struct MHD_Connection *mhd)
{
    reading = mhd;
}

/* One try: who has not read the answers before this one gets none, only the end. */
static void
send_last(struct MHD_Connection *mhd, const char *text, size_t length)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = info ? info->connect_fd : -1;

    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (info && info->tls_session) {
        gnutls_session_t session = info->tls_session;

        if (gnutls_record_send(session, text, length) == (ssize_t)length)
            (void)gnutls_bye(session, GNUTLS_SHUT_WR);
    } else {
        (void)send(fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    (void)shutdown(fd, SHUT_WR);
}

static enum bh_refusal
refusal_of(unsigned status)
{
    if (status == STATUS_LARGE)
        return BH_REFUSAL_LARGE;
    return status == STATUS_HEADERS || status == STATUS_TARGET ? BH_REFUSAL_HEADERS
                                                               : BH_REFUSAL_HEAD;
}

/* Of the messages that the library logs while it reads a head, the one with which it gives up
 * begins with its status. */
void
bh_refusal_log(void *self, const char *format, va_list args)
{
    struct MHD_Connection *mhd = reading;
    const union MHD_ConnectionInfo *socket_context;
    char text[ANSWER_BYTES_MAX];
    enum bh_refusal why;
    int length;

    if (MHD_VERSION >= 0x01000000 || !mhd || strncmp(strchrnul(format, '%'), "%u", 2) != 0)
        return;
    reading = NULL;
    socket_context = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    BH_ASSERT(socket_context && socket_context->socket_context);
    ((struct bh_connection *)socket_context->socket_context)->given_up = true;
    __atomic_add_fetch(&given_up, 1, __ATOMIC_SEQ_CST);
    why = refusal_of(va_arg(args, unsigned));
    length = snprintf(text, sizeof text,
                      "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
                      "Content-Length: %zu\r\n\r\n%s", refusals[why].status,
                      MHD_get_reason_phrase_for(refusals[why].status),
                      strlen(refusals[why].text), refusals[why].text);
    BH_ASSERT(length > 0 && (size_t)length < sizeof text);
    send_last(mhd, text, (size_t)length);
}

void
bh_refusal_closed(void)
{
    __atomic_sub_fetch(&given_up, 1, __ATOMIC_SEQ_CST);
}

void
bh_refusal_settle(void)
{
    for (int i = 0; i < SETTLE_MS && __atomic_load_n(&given_up, __ATOMIC_SEQ_CST) > 0; i++)
        (void)poll(NULL, 0, 1);
}
