#ifndef BH_AUDIT_BINDING_H
#define BH_AUDIT_BINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* What binds a name to the log: records hold ids, and the record that gives an id to a name
 * holds a commitment to both (its member "names").
 *
 *   commitment = HMAC-SHA256(key, "bulkhead name 1\nKIND ID\n" | SHA-256(name))
 *
 * The key is random and of this name alone.  It stands beside the name in the store and goes
 * with it: without it the commitment says nothing, not even to a reader who guesses the name. */
struct bh_crypto_ops;

enum { BH_BINDING_KEY_BYTES = 32, BH_BINDING_BYTES = 32, BH_BINDING_KINDS = 7 };

/* "tenant", "sku", ...: in the order of enum bh_name_kind of ports/store.h. */
extern const char *const bh_binding_kinds[BH_BINDING_KINDS];

struct bh_binding {
    uint32_t kind; /* of bh_binding_kinds */
    uint32_t id;
    uint8_t commitment[BH_BINDING_BYTES];
};

/* The kind of that name, or BH_BINDING_KINDS. */
uint32_t bh_binding_kind(const char *text);

/* Compute binding->commitment for the name; kind and id are set. */
void bh_binding_commit(const struct bh_crypto_ops *crypto, struct bh_binding *binding,
                       const uint8_t key[BH_BINDING_KEY_BYTES], const char *name);

/* Append an item of the list in a record, with a comma before all but the first. */
void bh_binding_put(struct bh_buf *list, const struct bh_binding *binding);

/* The next item of a record's list; start with *cursor = 0.  False at the end, with *cursor
 * BH_SLICE_END, and where an item is none. */
bool bh_binding_next(struct bh_slice list, size_t *cursor, struct bh_binding *ret);

/* Whether it is a list of one or more, each written the one way. */
bool bh_binding_is_list(struct bh_slice list);

#endif
