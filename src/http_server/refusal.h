#ifndef BH_HTTP_SERVER_REFUSAL_H
#define BH_HTTP_SERVER_REFUSAL_H

#include <microhttpd.h>

/* Answers to requests that never reach the API, in its error shape. */

#if MHD_VERSION >= 0x00097002
typedef enum MHD_Result bh_mhd_result;
#else
typedef int bh_mhd_result;
#endif

enum bh_http_refusal {
    BH_REFUSAL_HEAD,        /* ambiguous, 400 */
    BH_REFUSAL_QUERY,       /* too many parameters, 414 */
    BH_REFUSAL_CHUNKS,      /* a body in chunks, 411 */
    BH_REFUSAL_LARGE,       /* 413 */
    BH_REFUSAL_METHOD,      /* 405 */
    BH_REFUSAL_CERTIFICATE, /* 403 */
    BH_REFUSAL_PLACES,      /* there is no place for it, 429 */
    BH_REFUSALS
};

/* Queues it; the connection ends with it but for METHOD and CERTIFICATE. */
bh_mhd_result bh_refusal_queue(struct MHD_Connection *mhd, enum bh_http_refusal why);

#endif
