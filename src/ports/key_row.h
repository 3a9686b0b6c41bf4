#ifndef BH_PORTS_KEY_ROW_H
#define BH_PORTS_KEY_ROW_H

#include <stdint.h>

/* Keys as the store keeps them, and erasing what they sealed: parts of ports/store.h. */

enum bh_key_kind {
    BH_KEY_KIND_TENANT,   /* wraps the keys of a tenant, 0 the site */
    BH_KEY_KIND_AUDIT,    /* seals a tenant's personal texts of one month */
    BH_KEY_KIND_IDENTITY, /* seals the site's secrets of accounts */
    BH_KEY_KINDS
};

/* What stands where a text was erased. */
#define BH_ERASED "(erased)"

/* A key, wrapped by its parent; keys/keys.h. */
enum { BH_KEY_WRAPPED_BYTES = 72 };
struct bh_key_row {
    uint64_t id; /* from 1, never used again */
    enum bh_key_kind kind;
    uint32_t tenant_id; /* 0: the site */
    uint32_t month;     /* 202611; 0: of no month */
    uint64_t parent;    /* number of the key that wraps it; of the root's: its name */
    uint64_t created_ns;
    uint64_t shredded_ns;                  /* 0: not; else `wrapped` is zero */
    uint8_t wrapped[BH_KEY_WRAPPED_BYTES]; /* nonce, ciphertext, tag */
};

/* Whose personal texts go, and of which time. */
struct bh_erasure {
    uint32_t tenant_id;
    uint64_t from_ns, before_ns; /* jobs submitted from .. up to, not including */
};

#endif
