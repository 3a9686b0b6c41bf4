#ifndef BH_API_REQUEST_STREAMS_PORT_H
#define BH_API_REQUEST_STREAMS_PORT_H

#include "api/request/owner.h"
#include "base/time.h"
#include "ports/http.h"

/* The carrier of interactive streams (api/jobs/streams.h), as the API uses it; the daemon provides it. */

enum { BH_STREAM_TICKET_BYTES = 16, BH_STREAM_TICKET_TEXT = 2 * BH_STREAM_TICKET_BYTES };
#define BH_STREAM_TICKET_NS (30 * BH_NS_PER_S)

/* What was recorded and may be opened. */
struct bh_stream_opening {
    enum bh_operation op;
    bh_job_id job;
    bh_principal_id principal;
    const struct bh_stream_grant *grant;
    const struct bh_stream_request *request;
};

/* Whether the one behind an open stream still may do what it was opened by; asked every few
 * seconds.  `end` is called
 * once, when the stream is over. */
struct bh_stream_permit {
    bool (*still)(void *self, const char *verb, bh_tenant_id tenant);
    void (*end)(void *self);
    void *self;
};

/* A request to open a stream. */
struct bh_stream_claim {
    const char *ticket;
    bh_principal_id principal;
    uint32_t port; /* 0: not for a connection */
    struct bh_stream_permit permit;
};

/* The carrier of streams; any worker. */
struct bh_streams_ops {
    /* Whether one more would be too many, of that job, of that principal or of all: BH_QUOTA. */
    bh_rc (*check_quota)(void *self, bh_job_id job, bh_principal_id principal, struct bh_err *err);
    /* Take in what was recorded; from now on its end will be, too. */
    bh_rc (*admit)(void *self, const struct bh_stream_opening *opening,
                   char ret_ticket[BH_STREAM_TICKET_TEXT + 1], struct bh_err *err);
    /* Reach the job by a ticket.  The permit is taken over when this succeeds.
     *   BH_NOT_FOUND    no such ticket of this principal, or used, or too old
     *   BH_QUOTA        too many connections
     *   BH_UNAVAILABLE  its node is not there */
    bh_rc (*open)(void *self, const struct bh_stream_claim *claim, struct bh_upgrade *ret_upgrade,
                  struct bh_err *err);
};

struct bh_streams_port {
    const struct bh_streams_ops *ops;
    void *self;
};

#endif
