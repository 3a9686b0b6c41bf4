#ifndef BH_BASE_ARENA_H
#define BH_BASE_ARENA_H

#include <stddef.h>

#include "base/attr.h"

/* Memory with one lifetime: a request, an engine step, a replay tick.
 *
 * Results live in the arena and go with it; nothing is freed singly.  Over its
 * cap an arena answers NULL, which its user reports as BH_FULL for that request;
 * when malloc itself fails the process ends with one line. */
struct bh_arena;

enum { BH_ARENA_DEFAULT_MAX = 1 << 20 };

/* A new arena that will hand out at most `max_bytes`.  Owned by the caller. */
BH_MUST_USE struct bh_arena *bh_arena_new(size_t max_bytes);
void bh_arena_free(struct bh_arena *arena);
BH_AUTO_DEFINE(struct bh_arena *, bh_arena_free)

/* `bytes` of zeroed memory aligned for any type, or NULL over the cap. */
BH_MUST_USE void *bh_arena_alloc(struct bh_arena *arena, size_t bytes);

/* A NUL-terminated copy of `text` (at most `length` bytes of it), or NULL. */
BH_MUST_USE char *bh_arena_strdup(struct bh_arena *arena, const char *text);
BH_MUST_USE char *bh_arena_strndup(struct bh_arena *arena, const char *text, size_t length);

/* Formatted text, or NULL over the cap. */
BH_MUST_USE char *bh_arena_printf(struct bh_arena *arena, const char *format, ...) BH_PRINTF(2, 3);

/* Forget all that was handed out, keeping the first block for reuse. */
void bh_arena_reset(struct bh_arena *arena);

/* Bytes handed out since the last reset. */
size_t bh_arena_used(const struct bh_arena *arena);

#endif
