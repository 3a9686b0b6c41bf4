#ifndef BH_API_REQUEST_WHY_H
#define BH_API_REQUEST_WHY_H

#include "base/json.h"
#include "policy/explain.h"

/* Why something is as it is: the engine's reason, for callers. */

/* Operands of a reason as a JSON object, with names instead of ids where the caller may
 * see them. */
void bh_why_put_operands(struct bh_json_writer *w, const char *key, const struct bh_explain *how,
                         const struct bh_reason *reason);

/* The members "next", "operands", "reason" and "sentence"; `more` is said behind the sentence, ""
 * nothing. */
void bh_why_put(struct bh_json_writer *w, const struct bh_explain *how, const struct bh_reason *reason,
                const char *more);

#endif
