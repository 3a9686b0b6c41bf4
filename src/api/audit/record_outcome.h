#ifndef BH_API_AUDIT_RECORD_OUTCOME_H
#define BH_API_AUDIT_RECORD_OUTCOME_H

#include "base/json.h"
#include "base/slice.h"

/* Write the member "outcome" of a record whose event answers what a node was told to do: "ok",
 * "failed: not_found" (and the code that the node gave), "start_failed", "exited, status 127".  A
 * record's "result" says whether what it tells was taken down, this what became of it.  Nothing for
 * other records. */
void bh_record_outcome_put(struct bh_json_writer *w, struct bh_slice leaf);

#endif
