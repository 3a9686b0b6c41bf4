#ifndef BH_POLICY_EXPLAIN_INTERNAL_H
#define BH_POLICY_EXPLAIN_INTERNAL_H

#include "policy/explain.h"

/* What every phrase needs. */
struct phrase {
    struct bh_buf *out;
    const struct bh_explain *how;
    const struct bh_reason *reason;
};

/* ---- explain_words.c: who, what, where, how long ---- */

/* Whether the reader may see that tenant, and with it what is the tenant's. */
bool bh_explain_may_name(const struct bh_explain *how, bh_tenant_id tenant);

/* Whether the job in the way may be named; false, too, where there is none. */
bool bh_explain_may_name_job(const struct phrase *p);

/* The tenant by its path, where it may be named. */
void bh_explain_tenant(const struct phrase *p, bh_tenant_id id);

/* The job in the way, as far as it may be named; `unknown`: there is none. */
void bh_explain_job(const struct phrase *p, const char *unknown);

/* The GPU by its UUID. */
void bh_explain_gpu(const struct phrase *p);

/* The reason's SKU by its name; "3 small": so many of it. */
void bh_explain_sku(const struct phrase *p);
void bh_explain_partitions(const struct phrase *p, uint64_t count);

/* How long it is until the reason's frees_at: "4m10s", or "a moment" when it is due already. */
void bh_explain_wait(const struct phrase *p);

/* ---- sentences and next steps for some codes, each file of its kind ---- */

/* explain_away.c: why a GPU gets no new work (engine/away.h), and which role can change that. */
void bh_explain_away(const struct phrase *p);
void bh_explain_next_away(const struct phrase *p);

/* explain_start.c: what a start that failed is kept off, and until when. */
void bh_explain_start_failed(const struct phrase *p);
void bh_explain_next_start_failed(const struct phrase *p);
void bh_explain_scratch(const struct phrase *p);
void bh_explain_next_scratch(const struct phrase *p);

/* explain_host.c: what nodes hold, and can never hold: GPUs, cores and memory beside them. */
void bh_explain_never_fits(const struct phrase *p);
void bh_explain_next_never_fits(const struct phrase *p);
void bh_explain_unhosted(const struct phrase *p);
void bh_explain_never_hosted(const struct phrase *p);
void bh_explain_next_never_host(const struct phrase *p);

/* explain_driver.c: what a fault of the driver forbids, and what helps. */
void bh_explain_driver(const struct phrase *p);
void bh_explain_next_driver(const struct phrase *p);

/* explain_share.c: why there is no share of a GPU, and what helps. */
void bh_explain_unshared(const struct phrase *p);
void bh_explain_next_unshared(const struct phrase *p);
void bh_explain_share_mode(const struct phrase *p);
void bh_explain_share_memory(const struct phrase *p);

/* explain_form.c: which form of a GPU it has or must not have, where the reason says that. */
void bh_explain_form(const struct phrase *p);
void bh_explain_never_form(const struct phrase *p);
void bh_explain_next_never_form(const struct phrase *p);

/* explain_guarantee.c: what a guarantee keeps, and why one takes nothing back, where the reason
 * says that. */
void bh_explain_not_lent(const struct phrase *p);
void bh_explain_next_not_lent(const struct phrase *p);
void bh_explain_guarantee(const struct phrase *p);
void bh_explain_next_guarantee(const struct phrase *p);

#endif
