#include "http_server/refusal.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* their names differ between versions of the library */
enum { STATUS_LARGE = 413, STATUS_LONG = 414, STATUS_MANY = 429 };

/* The API's error shape. */
#define REFUSAL(code, message, next)                                                                         \
    "{\"error\":{\"code\":\"" code "\",\"message\":\"" message "\",\"next\":\"" next                         \
    "\",\"reason\":\"none\"}}"

static const struct {
    unsigned status;
    bool ends; /* the connection */
    const char *text;
} refusals[BH_REFUSALS] = {
    [BH_REFUSAL_HEAD] = { MHD_HTTP_BAD_REQUEST, true,
                          REFUSAL(
                              "invalid", "the head of the request is not well-formed",
                              "send one Host, one length of the body, each other field that is read once, "
                              "names right before their colons, lines that end with CR LF") },
    [BH_REFUSAL_QUERY] = { STATUS_LONG, true,
                           REFUSAL("invalid", "the query has more than 64 parameters",
                                   "give each once; /openapi.json lists those of the operation") },
    [BH_REFUSAL_CHUNKS] = { MHD_HTTP_LENGTH_REQUIRED, true,
                            REFUSAL("invalid", "a request body in chunks is not accepted",
                                    "send a Content-Length") },
    [BH_REFUSAL_LARGE] = { STATUS_LARGE, true,
                           REFUSAL("invalid", "the request body is larger than 1 MiB", "send less at once") },
    [BH_REFUSAL_METHOD] = { MHD_HTTP_METHOD_NOT_ALLOWED, false,
                            REFUSAL("invalid", "this method is not supported",
                                    "use GET, POST, PUT or DELETE; /openapi.json lists the operations") },
    [BH_REFUSAL_CERTIFICATE] = { MHD_HTTP_FORBIDDEN, false,
                                 REFUSAL("denied", "the client certificate is not accepted",
                                         "use one that this site's authority signed, valid now and for "
                                         "clients, or none") },
    [BH_REFUSAL_PLACES] = { STATUS_MANY, true,
                            REFUSAL(
                                "too_many",
                                "you have the most connections that one client may have, and none is idle",
                                "close some, or try again in a moment") },
};

bh_mhd_result
bh_refusal_queue(struct MHD_Connection *mhd, enum bh_http_refusal why)
{
    const char *text = refusals[why].text;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    bh_mhd_result queued;

    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (why == BH_REFUSAL_METHOD)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, POST, PUT, DELETE");
    if (why == BH_REFUSAL_PLACES)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (refusals[why].ends)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    queued = MHD_queue_response(mhd, refusals[why].status, response);
    MHD_destroy_response(response);
    return queued;
}
