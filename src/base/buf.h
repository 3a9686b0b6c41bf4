#ifndef BH_BASE_BUF_H
#define BH_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* A byte buffer over memory that its owner gave it, or that it grows itself.  What
 * writes a NUL behind the bytes (bh_buf_printf, bh_buf_text) needs room for it.
 *
 * Writers never fail in the middle: what does not fit sets `overflow`, further
 * writes do nothing, and the owner asks once at the end.  The fixed form never
 * allocates, so the pure layers use it. */
struct bh_buf {
    char *bytes;
    size_t length, size;
    size_t max; /* 0: fixed memory; else grow up to this many bytes */
    bool overflow;
};

/* A buffer over `size` bytes of the caller's memory. */
void bh_buf_init_fixed(struct bh_buf *buf, void *memory, size_t size);

/* A buffer that grows by malloc up to `max` bytes; release with bh_buf_fini. */
void bh_buf_init(struct bh_buf *buf, size_t max);
void bh_buf_fini(struct bh_buf *buf);

/* For BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = ... }; */
static inline void
bh_buf_fini_auto(struct bh_buf *buf)
{
    bh_buf_fini(buf);
}

void bh_buf_put(struct bh_buf *buf, const void *bytes, size_t length);
void bh_buf_puts(struct bh_buf *buf, const char *text);
void bh_buf_putc(struct bh_buf *buf, char c);
/* The same of `count` bytes that the caller writes at once; NULL: there is no room for them. */
BH_MUST_USE char *bh_buf_extend(struct bh_buf *buf, size_t count);
void bh_buf_put_u64(struct bh_buf *buf, uint64_t value);
void bh_buf_put_i64(struct bh_buf *buf, int64_t value);
void bh_buf_put_hex(struct bh_buf *buf, const void *bytes, size_t length);
void bh_buf_printf(struct bh_buf *buf, const char *format, ...) BH_PRINTF(2, 3);

/* Forget the first `count` bytes, moving the rest to the front. */
void bh_buf_drop(struct bh_buf *buf, size_t count);

/* Empty the buffer and forget an overflow. */
void bh_buf_clear(struct bh_buf *buf);

/* The bytes as NUL-terminated text, or NULL after an overflow.  Valid until the
 * next write. */
const char *bh_buf_text(struct bh_buf *buf);

#endif
