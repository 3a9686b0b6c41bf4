#ifndef BH_DAEMON_NODES_CARRIED_H
#define BH_DAEMON_NODES_CARRIED_H

#include "api/documents/carried.h"
#include "daemon/state/core.h"

/* What a lease's network carried, when the node says that it ended: kept with the record of
 * that, and added to what its job and its tenant have (api/documents/carried.h).  Owner thread only.
 */

struct bh_carried_text {
    struct bh_carried_end end;
    struct bh_digest digest; /* of `text`; for the record */
    char text[512];
    uint32_t length;
};

/* The text and its digest. */
void bh_carried_text(const struct bh_core *core, const struct bh_carried_end *end,
                     struct bh_carried_text *ret_note);

/* Put the text and both sums into the batch that has the record.  Results of the store's
 * put_text, get_document and put_document; BH_FULL: the batch has no room. */
BH_MUST_USE bh_rc bh_carried_put(struct bh_core *core, const struct bh_carried_text *note,
                                 struct bh_err *err);

#endif
