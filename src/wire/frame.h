#ifndef BH_WIRE_FRAME_H
#define BH_WIRE_FRAME_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fields.h"

/* Frames on a stream socket.
 *
 *   u32 length of what follows, u16 message number, u16 version, payload
 *
 * all little-endian.  The payload is the message's fields in the order of its
 * description: bool 1 byte, u32/i32/enum 4, u64/ns 8, text and str u32 length and
 * bytes without NUL, hex its bytes, lists and arrays u32 count and items.  Nothing
 * may follow the last field. */

enum { BH_FRAME_HEADER = 8, BH_FRAME_MAX = 4 << 20 };

struct bh_frame {
    uint32_t number, version;
    const char *payload;
    size_t length;
};

/* Append one frame.  Check out->overflow. */
void bh_frame_encode(struct bh_buf *out, uint32_t number, const struct bh_fields *fields,
                     const void *message);

/* The first whole frame in `bytes`.  BH_OK with `ret_used` bytes to drop;
 * BH_NOT_FOUND when more bytes are needed; BH_INVALID when the header is no frame
 * of this side (too long, other version): close the connection. */
BH_MUST_USE bh_rc bh_frame_next(const char *bytes, size_t length, struct bh_frame *ret_frame,
                                size_t *ret_used, struct bh_err *err);

/* The payload as the struct that `fields` describes; texts and lists in `arena`.
 * BH_INVALID names the field: short, too long, bad bool or enum, not UTF-8 clean
 * of NUL, bytes left over. */
BH_MUST_USE bh_rc bh_frame_decode(const struct bh_frame *frame, const struct bh_fields *fields,
                                  void *ret_message, struct bh_arena *arena, struct bh_err *err);

#endif
