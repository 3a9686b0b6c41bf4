#ifndef BH_AUDIT_BOUND_H
#define BH_AUDIT_BOUND_H

#include "audit/claims.h"

/* What records that are pruned said of rows, carried on by the records rows.bind that the pruning
 * writes: "ev" of each is {"bound":{...}}, with `from`, below which earlier ones carried on already.
 * It is what the records said and nothing of the rows: who changed one before is found after. */

/* Where the next record continues; zeroed at first. */
struct bh_bound_cursor {
    uint32_t table;
    size_t slot;
    bool begun;
};

/* Append "ev" of the next record, of what `claims` took since `from`; false when all was said.  The
 * claims' arena has room for some more; check out->overflow. */
bool bh_bound_put(struct bh_claims *claims, uint64_t from, struct bh_bound_cursor *cursor,
                  struct bh_buf *out);

/* Whether a record's "ev" is such; false for NULL.  It is no event of the engine. */
bool bh_bound_is(const char *ev_json);

#endif
