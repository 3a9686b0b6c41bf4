#ifndef BH_AUDIT_SEALED_H
#define BH_AUDIT_SEALED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* The form of a sealed item (facts/security.md 2.2): canonical JSON,
 *
 *   {"c":"<ciphertext>","h":"<32 bytes>","k":"<number of the key>","n":"<24 bytes>"}
 *
 * with base 64 inside, all but k.  Whether it opens is known to src/keys alone. */
struct bh_sealed {
    struct bh_slice cipher, commitment, nonce; /* base 64, without the quotes */
    uint64_t key;
};

enum {
    BH_SEALED_ITEMS_MAX = 8,         /* in one record */
    BH_SEALED_ITEM_BYTES_MAX = 8192, /* of each of them */
};

/* The parts of an item, in place.  False: the text is none; `ret` is untouched. */
bool bh_sealed_read(struct bh_slice text, struct bh_sealed *ret);

/* Whether the JSON array is what a record may hold: one to BH_SEALED_ITEMS_MAX items. */
bool bh_sealed_is_list(struct bh_slice array);

#endif
