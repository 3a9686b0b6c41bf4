#ifndef BH_REPLAY_NAMES_H
#define BH_REPLAY_NAMES_H

#include "base/err.h"
#include "policy/directory.h"

/* What the objects of a scenario are called.  Ids are given in order from 1, for each
 * kind, and never used again. */

enum bh_named { BH_NAMED_TENANT, BH_NAMED_SKU, BH_NAMED_NODE, BH_NAMED_GPU, BH_NAMED_JOB, BH_NAMED_KINDS };

struct bh_names;

/* No names yet; free(NULL) is fine. */
struct bh_names *bh_names_new(void);
void bh_names_free(struct bh_names *names);
BH_AUTO_DEFINE(struct bh_names *, bh_names_free)

/* BH_CONFLICT: the name is taken; BH_FULL: too many names; BH_INVALID: too long. */
BH_MUST_USE bh_rc bh_names_add(struct bh_names *names, enum bh_named kind, const char *text, uint32_t *ret_id,
                               struct bh_err *err);

/* BH_NOT_FOUND: there is no such name. */
BH_MUST_USE bh_rc bh_names_find(const struct bh_names *names, enum bh_named kind, const char *text,
                                uint32_t *ret_id, struct bh_err *err);

/* The name of an id, also after it was dropped; "?" when there is none. */
const char *bh_names_text(const struct bh_names *names, enum bh_named kind, uint32_t id);

/* Call it something else; BH_CONFLICT, BH_INVALID as bh_names_add. */
BH_MUST_USE bh_rc bh_names_change(struct bh_names *names, enum bh_named kind, uint32_t id, const char *text,
                                  struct bh_err *err);

/* The object is gone: its name is free again. */
void bh_names_drop(struct bh_names *names, enum bh_named kind, uint32_t id);

/* Tenants, SKUs and GPUs as a directory, for explanations: valid until the next
 * change. */
const struct bh_directory *bh_names_directory(struct bh_names *names);

#endif
