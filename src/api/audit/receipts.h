#ifndef BH_API_AUDIT_RECEIPTS_H
#define BH_API_AUDIT_RECEIPTS_H

#include "api/request/call.h"

/* GET /v1/receipts: receipts of scrubs (docs/scrub.md).  A caller sees one
 * where it may see jobs of the tenant whose memory it was, or of the one that got it, and beside its
 * own where a receipt of a job that it may see refers to it; names and jobs that it may not see are
 * left out.  A bh_resource. */
bh_rc bh_receipts_list(struct bh_call *call, struct bh_err *err);

/* The receipts of a job that the caller may see, in its arena, struct bh_reply_receipt_shown: of its
 * partitions before it began, and of what it left. */
BH_MUST_USE bh_rc bh_receipts_of(const struct bh_call *call, uint64_t job, struct bh_list *ret,
                                 struct bh_err *err);

#endif
