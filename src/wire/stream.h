#ifndef BH_WIRE_STREAM_H
#define BH_WIRE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Frames of an interactive stream: between `bulkhead` and the program that serves the stream on the node.
 * bulkheadd stands between them and passes bytes on.
 *
 *   u8 kind, u24 length of the payload, payload
 *
 * all little-endian.  It is what follows the 101 of `Upgrade: bulkhead-stream`, docs/interactive.md has the
 * sequence.  Output is held back by the connection itself: a client that does not read is not written to.
 * Input has a credit, so that a signal is never stuck behind input that the job does not take: the client
 * sends no more STDIN bytes than READY and CREDIT granted it. */

enum {
    BH_STREAM_HEADER = 4,
    BH_STREAM_PAYLOAD_MAX = 32 << 10,
    BH_STREAM_FRAME_MAX = BH_STREAM_HEADER + BH_STREAM_PAYLOAD_MAX,
    BH_STREAM_CREDIT = 64 << 10,
    BH_STREAM_WHY_MAX = 240
};

#define BH_STREAM_PROTOCOL "bulkhead-stream"

enum bh_stream_kind {
    /* from the client */
    BH_STREAM_STDIN = 1,  /* bytes; none: the end of input */
    BH_STREAM_RESIZE = 2, /* u16 rows, u16 columns, neither 0 */
    BH_STREAM_SIGNAL = 3, /* u8, 1 to 64: to the command's process group */
    BH_STREAM_LEAVE = 4,  /* nothing: go away from a job that runs on; EXIT answers it, and
                           * then the next to come may write */
    /* from the node */
    BH_STREAM_STDOUT = 16,      /* bytes; none: no more will come */
    BH_STREAM_STDERR = 17,      /* the same */
    BH_STREAM_READY = 18,       /* it runs: u32 credit, u8 enum bh_stream_flag bits */
    BH_STREAM_CREDIT_MORE = 19, /* u32, not 0: so many bytes more of STDIN */
    BH_STREAM_EXIT = 20,        /* the command's exit status, u8; the last frame */
    BH_STREAM_ERROR = 21,       /* u8 enum bh_rc (not BH_OK), text; the last frame */
    BH_STREAM_KINDS
};

enum bh_stream_flag {
    BH_STREAM_TTY = 1,    /* the other end is a terminal: RESIZE means something */
    BH_STREAM_WRITER = 2, /* STDIN is taken */
};

enum bh_stream_from { BH_STREAM_CLIENT, BH_STREAM_NODE };

struct bh_stream_frame {
    enum bh_stream_kind kind;
    const char *bytes; /* STDIN, STDOUT, STDERR, ERROR's text */
    size_t length;
    uint32_t number;        /* SIGNAL, READY and CREDIT_MORE, EXIT, ERROR's rc */
    uint16_t rows, columns; /* RESIZE */
    uint8_t flags;          /* READY */
    size_t size;            /* of the whole frame, as bh_stream_next found it */
};

/* Write one frame to `out`, which holds BH_STREAM_FRAME_MAX bytes; returns its size.  The
 * frame is one that bh_stream_next would take: anything else is our bug. */
size_t bh_stream_put(char *out, const struct bh_stream_frame *frame);

/* The first whole frame in `bytes`; its bytes point there.  BH_OK with its size, to be
 * dropped; BH_NOT_FOUND when more are needed; BH_INVALID: no frame that this end sends: unknown
 * or the other end's kind, a payload of the wrong length, a number out of its range, a text
 * that is not UTF-8.  Nothing is taken from a peer after that. */
BH_MUST_USE bh_rc bh_stream_next(const char *bytes, size_t length, enum bh_stream_from from,
                                 struct bh_stream_frame *ret_frame, struct bh_err *err);

#endif
