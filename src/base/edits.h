#ifndef BH_BASE_EDITS_H
#define BH_BASE_EDITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"

/* The difference of two values of one description, key by key, as lines for users:
 *
 *   skus[small].memory: 10Gi -> 20Gi
 *   tenants[acme].limit: (absent) -> 4
 *   bindings[role=admin,principal=bob,tenant=*]: added
 *   skus[large]: removed {"grade":"B","models":[{"model":"H100-80GB"}],"name":"large"}
 *   pools[left].nodes[gpu3]: added
 *   gpus: reordered
 *
 * An item of a list is known by its key, wherever it stands in the list. There is no line if
 * and only if the canonical JSON of both values is the same. */

/* The members that make the key of the items that a description describes. */
struct bh_edit_key {
    const char *of;      /* bh_fields.name of the items */
    const char *members; /* TEXT, U32 or ENUM, separated by blanks */
};

struct bh_edits {
    const struct bh_edit_key *keys; /* of lists whose items are not known by `name` */
    uint32_t key_count;
    /* A line without its end; at most BH_EDIT_LINE_MAX bytes, valid during the call. */
    void (*line)(void *self, const char *text, size_t length);
    void *self;
};

enum {
    BH_EDIT_VALUE_MAX = 512,  /* bytes of a value; longer ones are cut and say how long they are */
    BH_EDIT_LINE_MAX = 4096,  /* a longer one is cut */
    BH_EDIT_ITEMS_MAX = 4096, /* of a list */
};

/* Give `edits->line` each difference, in the order of the description's fields. */
void bh_edits_find(const struct bh_edits *edits, const struct bh_fields *fields, const void *from,
                   const void *to);

/* Whether every list below `fields` has a key: its items have `name`, or the table names
 * members that they have.  For tests. */
bool bh_edits_known(const struct bh_edits *edits, const struct bh_fields *fields);

#endif
