#ifndef BH_ENGINE_ACCOUNT_USAGE_H
#define BH_ENGINE_ACCOUNT_USAGE_H

#include "engine/state/state_internal.h"

/* What tenants have used: decayed, for the order of the queue, and by calendar period, for
 * budgets.  Both count GPU-equivalents in parts, in the tenant and all above it.
 *
 * Decay is exact: instead of making old usage smaller, later usage weighs more.  Within a
 * half-life the weight rises from 1 to 2 in 64 steps of 2^(1/64) (a table, 16 bits behind the
 * point); at its end all sums are halved and the weight is 1 again.  A sum of integers does
 * not depend on when it was brought up to date. */

enum { BH_USAGE_STEPS = 64 };
extern const uint32_t bh_usage_weights[BH_USAGE_STEPS]; /* 2^16 * 2^(k/64) */

/* Halve all sums for each half-life that ends up to `now_ns`; before the clock moves. */
void bh_usage_advance(struct bh_engine *engine, uint64_t now_ns);

/* Count what the tenant used up to now; before what it uses changes. */
void bh_usage_update(struct bh_engine *engine, uint32_t tenant);
void bh_usage_update_all(struct bh_engine *engine);

/* So much more is kept from others by the tenant's dedication (modulo 2^64: less of it).  It
 * counts as what is used, in the tenant and all above it; in limits it does not. */
void bh_usage_dedicate(struct bh_engine *engine, uint32_t tenant, uint64_t equivalent);

/* New settings for the decay: sums keep their meaning. */
void bh_usage_configure(struct bh_engine *engine, const struct bh_ev_settings *settings);

/* Begin the budget's period anew, when it was changed. */
void bh_usage_set_budget(struct bh_engine *engine, uint32_t tenant, const struct bh_budget *budget);

/* Which of two tenants comes first: below 0 it is a's, above 0 b's, 0 when they are the same
 * or the order is FIFO.  Among equals the lower id goes first: by anything that differs from
 * job to job the order would run in circles.  The siblings below their lowest common ancestor are compared,
 * by what each has used over its weight; what is held now counts for one step of the decay to come, so that
 * what is placed at one instant is shared too. */
int bh_usage_compare(const struct bh_engine *engine, uint32_t a, uint32_t b);

/* The tenant's decayed usage, with all below it, in GPU-equivalents times seconds. */
uint64_t bh_usage_of(const struct bh_engine *engine, uint32_t tenant);

/* What the tenant spent in its budget's period up to `now_ns`, in parts times nanoseconds,
 * and in micro-units of money. */
void bh_usage_spent(const struct bh_engine *engine, uint32_t tenant, uint64_t now_ns, bh_part_ns *ret_gpu,
                    uint64_t *ret_money);

/* Whether the tenant's budget, or one above it, is spent: nothing more of it starts.
 * `ret_why` names it and when the next period begins. */
bool bh_usage_exhausted(const struct bh_engine *engine, uint32_t tenant, struct bh_reason *ret_why);

#endif
