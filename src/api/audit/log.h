#ifndef BH_API_AUDIT_LOG_H
#define BH_API_AUDIT_LOG_H

#include "api/request/call.h"

/* The audit log for verifiers: proofs, and the files of C2SP's tlog-tiles below /v1/log, derived from
 * committed records. bh_resources.
 *
 * Checkpoints and hashes are open to all; records are not. */

/* GET /v1/records/{id}/proof.  BH_NOT_FOUND: no such record, or not visible to the caller;
 * BH_UNAVAILABLE: no checkpoint covers it yet. */
bh_rc bh_log_prove(struct bh_call *call, struct bh_err *err);

/* GET /v1/consistency.  BH_RANGE: there are not so many records. */
bh_rc bh_log_prove_consistency(struct bh_call *call, struct bh_err *err);

/* GET /v1/log: how far it goes, its newest checkpoint and the keys that sign it. */
bh_rc bh_log_show(struct bh_call *call, struct bh_err *err);

/* GET /v1/log/checkpoint, /v1/log/minimum and /v1/log/tile/...  BH_NOT_FOUND: not there (yet),
 * or pruned. */
bh_rc bh_log_checkpoint(struct bh_call *call, struct bh_err *err);
bh_rc bh_log_minimum(struct bh_call *call, struct bh_err *err);
bh_rc bh_log_entries(struct bh_call *call, struct bh_err *err);
bh_rc bh_log_tile(struct bh_call *call, struct bh_err *err);

/* POST /v1/log/prune (daemon/changes/retention.h). */
struct bh_prune_request {
    const char *checkpoint;
};
extern const struct bh_fields bh_prune_request_fields;
bh_rc bh_log_prune(struct bh_call *call, struct bh_err *err);

#endif
