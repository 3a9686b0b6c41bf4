#ifndef BH_DAEMON_NODES_RECEIPTS_H
#define BH_DAEMON_NODES_RECEIPTS_H

#include "daemon/state/core.h"
#include "wire/message.h"

/* Receipts of scrubs (docs/scrub.md): a record with the receipt's digest, and the receipt. */

/* Put both into the batch; one that is known already is ignored.  The record is the tenant's
 * whose memory it was, or without one the next tenant's. */
BH_MUST_USE bh_rc bh_receipts_record(struct bh_core *core, const struct bh_msg_receipt *receipt,
                                     struct bh_err *err);

#endif
