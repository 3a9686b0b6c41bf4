#ifndef BH_POLICY_EXPLAIN_H
#define BH_POLICY_EXPLAIN_H

#include "base/buf.h"
#include "base/err.h"
#include "engine/state/reason.h"
#include "policy/directory.h"

/* A reason in words, for the person who asks.
 *
 * `sentence` says what holds the job back, with the numbers; `next` what can be done
 * or when it changes.  What belongs to tenants that `sees` (a tenant the reader may
 * view; 0 sees all) does not contain is not named: another tenant's job is "a job of
 * another tenant".  `now_ns` turns frees_at into a span. */
struct bh_explain {
    const struct bh_directory *dir;
    const uint32_t *visible; /* tenants whose jobs may be named; all when `all` */
    uint32_t visible_count;
    bool all;
    bh_tenant_id holder_tenant;    /* tenant of reason->job, 0 unknown */
    bh_tenant_id preemptor_tenant; /* of reason->preempted_for or moved_for, 0 unknown */
    uint64_t now_ns;
};

/* Append what holds the job back, and what can be done or when it changes. */
void bh_explain_sentence(struct bh_buf *out, const struct bh_explain *how, const struct bh_reason *reason);
void bh_explain_next(struct bh_buf *out, const struct bh_explain *how, const struct bh_reason *reason);

/* BH_CONFLICT: what is asked for is not for a job that has ended, and its state says how. */
bh_rc bh_explain_ended(bh_job_id job, const char *state, struct bh_err *err);

#endif
