#ifndef BH_API_STATE_SUBMISSION_H
#define BH_API_STATE_SUBMISSION_H

#include "engine/state/event.h"
#include "model/spec.h"
#include "policy/directory.h"

/* A job's specification as the engine takes it, real or supposed: but for its number, tenant,
 * principal and the digest of its text, which are the caller's.  What the job does not say of
 * cores and memory is the SKU's default, for each of a member's partitions.  `now_ns` is where a
 * deadline given as a span counts from. */
void bh_submission_fill(const struct bh_job_spec *spec, const struct bh_job_numbers *numbers,
                        const struct bh_dir_sku *sku, uint64_t now_ns, struct bh_ev_submit *ret_submit);

#endif
