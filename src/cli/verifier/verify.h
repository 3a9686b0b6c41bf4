#ifndef BH_CLI_VERIFIER_VERIFY_H
#define BH_CLI_VERIFIER_VERIFY_H

#include <stdbool.h>

#include "audit/orders.h"
#include "base/buf.h"
#include "base/err.h"

/* bulkhead-audit, the program that verifies audit logs: what it is asked, and what it answers. */

enum { BH_VERIFY_SAVED_MAX = 64 };

/* Its command line. */
struct bh_verify_args {
    const char *key, *store, *folder, *proof, *record; /* files; NULL: not given */
    const char *witness;                               /* file of witnesses' keys */
    const char *quorum_text;                           /* NULL: all of them */
    const char *old, *new;                             /* checkpoints */
    const char *kept[BH_VERIFY_SAVED_MAX];
    uint32_t kept_count;
    bool json;
};

/* What came out, as members of a JSON object and as a sentence. */
struct bh_verdict_text {
    struct bh_buf sentence, members; /* members: ",\"records\":12" */
    bool differs;                    /* the log is whole, and rows of the tables are others */
};

/* Which orders are open at the end of a walk. */
void bh_verify_put_orders(struct bh_verdict_text *verdict, const struct bh_audit_orders *orders);

/* That the log continues so many. */
void bh_verify_put_saved(struct bh_verdict_text *verdict, uint32_t count);

/* A whole file as NUL-terminated text in `out`; a NUL inside is BH_CONFLICT. */
BH_MUST_USE bh_rc bh_verify_read(const char *path, size_t max, struct bh_buf *out, struct bh_err *err);

#endif
