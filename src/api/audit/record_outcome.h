#ifndef BH_API_AUDIT_RECORD_OUTCOME_H
#define BH_API_AUDIT_RECORD_OUTCOME_H

#include "base/slice.h"

/* The outcome of a record whose event answers an order to a node, in the memory: "ok", "failed: not_found"
 * (and the code that the node gave), "start_failed", "exited, status 127".  A record's "result" says whether
 * its event was recorded; this says how the order ended.  NULL of other records. */
enum { BH_RECORD_OUTCOME_SIZE = 100 };
const char *bh_record_outcome(struct bh_slice leaf, char ret_text[BH_RECORD_OUTCOME_SIZE]);

#endif
