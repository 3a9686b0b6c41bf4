#ifndef BH_LAB_LOAD_SCRIBE_H
#define BH_LAB_LOAD_SCRIBE_H

#include "base/attr.h"
#include "base/err.h"
#include "engine/step/engine.h"

/* Writes each step as the journal would: the record's canonical JSON with the event and the
 * decisions, its leaf hash, and the tree's frontier moved on.  Everything but the store. */
struct bh_scribe;

/* free(NULL) is fine. */
struct bh_scribe *bh_scribe_new(void);
void bh_scribe_free(struct bh_scribe *scribe);
BH_AUTO_DEFINE(struct bh_scribe *, bh_scribe_free)

/* BH_BUG: the record would be longer than the journal allows. */
BH_MUST_USE bh_rc bh_scribe_write(struct bh_scribe *scribe, const struct bh_event *event,
                                  const struct bh_step *step, struct bh_err *err);

/* Bytes of all records so far. */
uint64_t bh_scribe_bytes(const struct bh_scribe *scribe);

#endif
