#ifndef BH_API_REQUEST_WHY_H
#define BH_API_REQUEST_WHY_H

#include "api/documents/replies.h"
#include "base/arena.h"
#include "policy/explain.h"

/* Why something is as it is: the engine's reason, for callers. */

/* Of a reply that has no reason of the engine. */
#define BH_NO_OPERANDS ((struct bh_reply_operands){ .limit = BH_UNSET, .used = BH_UNSET, .wanted = BH_UNSET })

/* Operands of a reason, with names instead of ids where the caller may see them. */
struct bh_reply_operands bh_why_operands(const struct bh_explain *how, const struct bh_reason *reason);

/* The reason with its words in the arena; "" where that is full. */
struct bh_reply_reason bh_why_reason(struct bh_arena *arena, const struct bh_explain *how,
                                     const struct bh_reason *reason);

#endif
