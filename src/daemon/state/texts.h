#ifndef BH_DAEMON_STATE_TEXTS_H
#define BH_DAEMON_STATE_TEXTS_H

#include "daemon/state/core.h"

/* Sealed texts that the store keeps for tenants: specifications of jobs, and commands that were
 * added to them.  How many bytes each tenant's are is counted: the store
 * says so when it is first asked after a start, and what the open batch puts is added. */

/* Put a text of the tenant, sealed, under its digest.  Results of put_text and count_texts. */
BH_MUST_USE bh_rc bh_texts_put(struct bh_core *core, const struct bh_text_row *row, struct bh_err *err);

/* How many bytes of the tenant's are kept, the open batch's included. */
BH_MUST_USE bh_rc bh_texts_bytes(struct bh_core *core, uint32_t tenant, uint64_t *ret_bytes,
                                 struct bh_err *err);

/* The store is to be asked again: it dropped some, or the batch was aborted. */
void bh_texts_forget(struct bh_core *core);
void bh_texts_free(struct bh_core *core);

#endif
