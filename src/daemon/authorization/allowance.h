#ifndef BH_DAEMON_AUTHORIZATION_ALLOWANCE_H
#define BH_DAEMON_AUTHORIZATION_ALLOWANCE_H

#include "daemon/state/core.h"

/* How much one principal, or one tenant, may have that costs the site memory and disk: jobs
 * that wait or are held, and tokens (jobs_waiting_max, tenant_jobs_waiting_max, tokens_max in
 * bulkheadd.conf; 0: no limit).  What the open batch adds counts, too.
 *
 * A principal that holds site.apply on the whole site has no limit. */

/* Whether the caller is such an administrator. */
bool bh_allowance_is_free(struct bh_core *core, const struct bh_caller *caller);

/* Before one more job, or token for `principal`, is made.
 *   BH_QUOTA  that many are there; says how many, and how to have fewer */
BH_MUST_USE bh_rc bh_allowance_check_job(struct bh_core *core, const struct bh_command *command,
                                         bh_tenant_id tenant, struct bh_err *err);
BH_MUST_USE bh_rc bh_allowance_check_token(struct bh_core *core, const struct bh_command *command,
                                           uint32_t principal, struct bh_err *err);

/* Before `bytes` of what people wrote, sealed, are kept for the tenant (daemon/state/texts.h; 0: nothing
 * is).
 *   BH_QUOTA  it would keep more than tenant_texts_max; says what frees some */
BH_MUST_USE bh_rc bh_allowance_check_text(struct bh_core *core, const struct bh_command *command,
                                          bh_tenant_id tenant, uint64_t bytes, struct bh_err *err);

/* Before anything is changed: with less than disk_reserve left on the disk of the state folder,
 * others than administrators change nothing.  Cancelling and releasing jobs, revoking tokens,
 * signing in, what the daemon itself does and what changes nothing still works.  The disk is looked at
 * once a second, and what is let through meanwhile counts as taken: commands of the open batch,
 * too.
 *   BH_FULL  and the batch stays whole */
BH_MUST_USE bh_rc bh_allowance_check_disk(struct bh_core *core, const struct bh_command *command,
                                          struct bh_err *err);

/* Whether a token was made for the principal in the open batch. */
bool bh_allowance_has_new_token(const struct bh_core *core, uint32_t principal);

/* One more was made in the open batch. */
void bh_allowance_add_job(struct bh_core *core, uint32_t principal);
void bh_allowance_add_token(struct bh_core *core, uint32_t principal);

#endif
