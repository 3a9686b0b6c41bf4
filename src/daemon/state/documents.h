#ifndef BH_DAEMON_STATE_DOCUMENTS_H
#define BH_DAEMON_STATE_DOCUMENTS_H

#include "daemon/state/core.h"

/* Documents of the open batch, which readers of the store do not see yet. */

/* As the open batch has it, or the store; in core->arena.  BH_NOT_FOUND: there is none, or the batch removed
 * it; failures of the store. */
BH_MUST_USE bh_rc bh_documents_get(struct bh_core *core, const struct bh_document_key *key,
                                   struct bh_document_row *ret_row, struct bh_err *err);

/* The version of a document that is counted or added to, and its value: "{}" and 0 when there is none. */
BH_MUST_USE bh_rc bh_documents_get_or_empty(struct bh_core *core, const struct bh_document_key *key,
                                            struct bh_document_row *ret_row, struct bh_err *err);

/* Put a copy of the row into the open transaction.  BH_FULL: the batch has no room; failures of the store. */
BH_MUST_USE bh_rc bh_documents_put(struct bh_core *core, const struct bh_document_row *row,
                                   struct bh_err *err);

#endif
