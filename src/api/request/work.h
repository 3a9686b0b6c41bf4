#ifndef BH_API_REQUEST_WORK_H
#define BH_API_REQUEST_WORK_H

#include "ports/crypto.h"
#include "ports/http.h"

/* What a thread works on: when an assert fails there, the daemon refuses that work at its next start
 * (docs/adr/0079-a-failed-assert-is-not-repeated.md).  Each thread has its own; all zeros is none. */
enum bh_work_kind {
    BH_WORK_OWN,     /* time, the disk, forecasts: work without a request */
    BH_WORK_REQUEST, /* of a client, in its worker or in the owner thread */
    BH_WORK_NODE,    /* a message of a node, or an order to it */
    BH_WORK_REPLAY,  /* a record of the journal */
    BH_WORK_KINDS
};
extern const char *const bh_work_kind_names[BH_WORK_KINDS];

/* Digests by which one request is known again, from narrow to wide: of caller and content, of caller and
 * operation, of tenant and operation.  Before the caller is known, `caller` is of method and path alone.
 * `tenant` is zeros where there is none. */
enum { BH_WORK_KEY_BYTES = 16 };
struct bh_work_keys {
    uint8_t command[BH_WORK_KEY_BYTES], caller[BH_WORK_KEY_BYTES], tenant[BH_WORK_KEY_BYTES];
};

struct bh_work {
    enum bh_work_kind kind;
    bool owner;                       /* the owner thread does it */
    const struct bh_request *request; /* REQUEST: lives until its worker continues; or NULL, and its keys: */
    const struct bh_work_keys *keys;
    const char *operation;   /* REQUEST: its name, once the caller is known; else NULL */
    uint32_t principal, uid; /* the caller then; the uid of a peer without a principal */
    uint32_t tenant;         /* whose business it is, once that is known; else 0 */
    const char *socket;      /* NODE */
    uint32_t message;        /* NODE: its number in wire/message.h; 0: an order */
    uint64_t record;         /* REPLAY */
};

/* What the calling thread works on, to read and to change. */
struct bh_work *bh_work_get(void);

/* Work on something else from now on; returns what it was, to be set again. */
struct bh_work bh_work_set(struct bh_work work);

/* The keys of a REQUEST.  Allocates nothing and takes no lock, so that a failed assert may call it. */
struct bh_work_keys bh_work_keys_of(const struct bh_work *work, const struct bh_crypto_ops *crypto);

#endif
