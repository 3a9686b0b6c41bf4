#ifndef BH_DAEMON_OWNER_UNAUTHENTICATED_H
#define BH_DAEMON_OWNER_UNAUTHENTICATED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Wrong credentials, counted until the owner thread records them: by the token whose id they had, where
 * there is one.  The number of rows is fixed: however many unknown callers come, they take no rows of
 * known ones. */
struct bh_core;

enum { BH_UNAUTHENTICATED_MAX = 64 };

/* Zeroed is empty.  The first place is of those without a token, and of what finds no other. */
struct bh_unauthenticated {
    struct {
        uint64_t token; /* as records number it; 0: none */
        uint64_t times;
    } items[BH_UNAUTHENTICATED_MAX];
};

/* Count one; false: there was none before, and the owner is to be woken. */
bool bh_unauthenticated_add(struct bh_unauthenticated *unauthenticated, uint64_t token);

/* Record them as refused sign-ins (daemon/state/refusals.h).  Results of bh_core_record. */
BH_MUST_USE bh_rc bh_unauthenticated_record(struct bh_core *core,
                                            const struct bh_unauthenticated *unauthenticated,
                                            struct bh_err *err);

#endif
