#ifndef BH_SIGNER_MESSAGE_H
#define BH_SIGNER_MESSAGE_H

#include <stdint.h>

#include "audit/note.h"
#include "audit/range.h"

/* What bulkheadd and bulkhead-signer say to each other over a unix stream socket: questions
 * and answers of fixed length, one answer for each question, in order.  Both ends are of
 * one machine and one build; the version says so. */

enum {
    BH_SIGNER_VERSION = 1,
    BH_SIGNER_NOTE_MAX = 1024, /* bytes of a checkpoint, with its NUL */
    BH_SIGNER_VKEYS_MAX = 512,
};

/* The way on after a refusal: root alone writes that file (docs/audit.md). */
#define BH_SIGNER_GO_BACK                                                                                    \
    "compare the log with a checkpoint kept elsewhere; if it is to be the "                                  \
    "log from now on, write 0 into audit.signed and start again"

enum bh_signer_verb {
    BH_SIGNER_HELLO, /* your identity, and how far did you sign? */
    BH_SIGNER_CHECK, /* does this tree continue what you signed?  BH_CONFLICT: it does not */
    BH_SIGNER_SIGN,  /* as CHECK, and sign it */
    BH_SIGNER_VERBS
};

struct bh_signer_request {
    uint32_t version;
    uint32_t verb;                          /* enum bh_signer_verb */
    uint64_t number;                        /* returned with the answer */
    char name[BH_NODE_RECORD_NAME_MAX + 1]; /* the log's origin, which also names the key */
    uint8_t root[BH_MERKLE_HASH_BYTES];     /* of the first `range.to` leaves */
    struct bh_range range;                  /* from what was signed last to the tree in question */
};

struct bh_signer_reply {
    uint32_t version;
    uint32_t rc; /* bh_rc */
    uint64_t number;
    uint64_t size;                   /* leaves of the largest tree that was signed */
    uint32_t has_watermark;          /* 0: there is no file that would say so */
    char vkeys[BH_SIGNER_VKEYS_MAX]; /* HELLO: the public keys, one a line, the newest first */
    char note[BH_SIGNER_NOTE_MAX];   /* SIGN: the checkpoint */
    char why[240], hint[160];        /* in words, when rc is not BH_OK */
};

#endif
