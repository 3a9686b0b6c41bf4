#ifndef BH_API_DOCUMENTS_SITE_CHANGES_H
#define BH_API_DOCUMENTS_SITE_CHANGES_H

#include "base/arena.h"
#include "base/json.h"
#include "model/site.h"
#include "ports/crypto.h"

/* How one site file differs from another (model/site_edits.h): what apply, its dry run, whatif,
 * `site diff` and the audit record call changes. */
struct bh_site_changes {
    const char *lines;      /* the first of them, each with its end; NULL: none */
    uint32_t count, listed; /* all; those in `lines` */
    uint8_t digest[32];     /* SHA-256 of all of them, each with its end */
};

enum { BH_SITE_CHANGES_BYTES_MAX = 256 << 10 };

/* `lines` is in the arena; the last ones are left out beyond BH_SITE_CHANGES_BYTES_MAX, and all
 * where the arena has no room. */
void bh_site_changes_find(const struct bh_crypto_ops *crypto, const struct bh_site *from,
                          const struct bh_site *to, struct bh_arena *arena,
                          struct bh_site_changes *ret_changes);

#endif
