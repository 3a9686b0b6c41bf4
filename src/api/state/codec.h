#ifndef BH_API_STATE_CODEC_H
#define BH_API_STATE_CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/state/event.h"

/* Engine events and decisions as the journal holds them: {"submit":{...}} and
 * [{...},...], canonical JSON from the engine's own descriptions. */

/* Append to `out`; check its overflow in the end. */
void bh_codec_put_event(struct bh_buf *out, const struct bh_event *event);
void bh_codec_put_decisions(struct bh_buf *out, const struct bh_decision *decisions, uint32_t count);

/* Read them back.  `now_ns` and `seq` of the event are the record's and are left to
 * the caller.  BH_INVALID: not what these functions write. */
BH_MUST_USE bh_rc bh_codec_get_event(const char *json, struct bh_event *ret_event, struct bh_arena *arena,
                                     struct bh_err *err);
BH_MUST_USE bh_rc bh_codec_get_decisions(const char *json, struct bh_decision *ret_decisions,
                                         uint32_t *ret_count, struct bh_arena *arena, struct bh_err *err);

#endif
