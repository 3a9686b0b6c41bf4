#ifndef BH_POLICY_EXPLAIN_INTERNAL_H
#define BH_POLICY_EXPLAIN_INTERNAL_H

#include "policy/explain.h"

/* What every phrase needs. */
struct phrase {
    struct bh_buf *out;
    const struct bh_explain *how;
    const struct bh_reason *reason;
};

/* explain_driver.c: what a fault of the driver forbids, and what helps. */
void bh_explain_driver(const struct phrase *p);
void bh_explain_next_driver(const struct phrase *p);

/* explain_share.c: why there is no share of a GPU, and what helps. */
void bh_explain_unshared(const struct phrase *p);
void bh_explain_next_unshared(const struct phrase *p);
void bh_explain_share_mode(const struct phrase *p);
void bh_explain_share_memory(const struct phrase *p);

#endif
