#ifndef BH_AUDIT_ITEMS_H
#define BH_AUDIT_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

/* A list in a record, "names" or "jobs", of items of one kind.
 *
 * There is one way to write an item: what is read is written again and must be the same bytes.
 * So no two records say the same thing, and what a reader passes over cannot be there. */

enum { BH_ITEM_BYTES_MAX = 240 };

struct bh_item_kind {
    /* What the item says, into `ret`; false: it is none.  What it overlooks is found by writing. */
    bool (*read)(struct bh_slice item, void *ret);
    /* Append it: at most BH_ITEM_BYTES_MAX bytes, with the comma of bh_item_begin. */
    void (*put)(struct bh_buf *list, const void *item);
};

/* A comma before all items but the first of the list. */
void bh_item_begin(struct bh_buf *list);

/* The next item; start with *cursor = 0.  False at the end, with *cursor BH_SLICE_END, and where an
 * item is none. */
bool bh_items_next(const struct bh_item_kind *kind, struct bh_slice list, size_t *cursor, void *ret);

/* Whether it is a list of one or more; `scratch` has room for one. */
bool bh_items_are_list(const struct bh_item_kind *kind, struct bh_slice list, void *scratch);

#endif
