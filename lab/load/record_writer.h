#ifndef BH_LAB_LOAD_RECORD_WRITER_H
#define BH_LAB_LOAD_RECORD_WRITER_H

#include "base/attr.h"
#include "base/err.h"
#include "engine/step/engine.h"

/* Writes each step as the journal would: the record's canonical JSON with the event and the
 * decisions, its leaf hash, and the tree's frontier moved on.  Everything but the store. */
struct bh_record_writer;

/* free(NULL) is fine. */
struct bh_record_writer *bh_record_writer_new(void);
void bh_record_writer_free(struct bh_record_writer *writer);
BH_AUTO_DEFINE(struct bh_record_writer *, bh_record_writer_free)

/* BH_BUG: the record would be longer than the journal allows. */
BH_MUST_USE bh_rc bh_record_writer_write(struct bh_record_writer *writer, const struct bh_event *event,
                                         const struct bh_step *step, struct bh_err *err);

/* Bytes of all records so far. */
uint64_t bh_record_writer_bytes(const struct bh_record_writer *writer);

#endif
