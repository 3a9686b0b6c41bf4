#ifndef BH_NET_REFUSAL_H
#define BH_NET_REFUSAL_H

#include <stdarg.h>

#include <microhttpd.h>

/* Answers to requests that never reach the API, in its error shape. */

#if MHD_VERSION >= 0x00097002
typedef enum MHD_Result bh_mhd_result;
#else
typedef int bh_mhd_result;
#endif

enum bh_refusal {
    BH_REFUSAL_HEAD,             /* not written as everybody reads it, 400 */
    BH_REFUSAL_CHUNKS,           /* a body in chunks, 411 */
    BH_REFUSAL_LARGE,            /* 413 */
    BH_REFUSAL_HEADERS,          /* too long a head, 431 */
    BH_REFUSAL_METHOD,           /* 405 */
    BH_REFUSAL_CERTIFICATE,      /* 403 */
    BH_REFUSALS
};

/* Queues it; the connection ends with it but for the last two. */
bh_mhd_result bh_refusal_queue(struct MHD_Connection *mhd, enum bh_refusal why);

/* The library reads this connection's head from now on; NULL: it has read it.  Of the calling
 * thread, of which each connection has its own. */
void bh_refusal_reading(struct MHD_Connection *mhd);

/* For MHD_OPTION_EXTERNAL_LOGGER.  Before 1.0 the library, refusing what it cannot read of a head
 * (a Content-Length that is no number, more cookies than memory), builds the head of its answer
 * twice, the second one where the first one's body belongs.  It logs before that: here the
 * answer is sent whole and the connection's sending side is closed, so the library has nothing
 * more to send to. */
void bh_refusal_log(void *self, const char *format, va_list args);

/* A connection that was answered so is closed. */
void bh_refusal_closed(void);

/* Waits, a second at most, until the library is done with all of those: before 1.0 it reads from
 * NULL where a daemon is stopped while it queues an answer of its own. */
void bh_refusal_settle(void);

#endif
