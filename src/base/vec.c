#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { ITEMS_FIRST = 16 };

void *
bh_vec_grow(void *items, size_t item_bytes, size_t *capacity, size_t wanted, size_t most)
{
    size_t room = *capacity ? *capacity : ITEMS_FIRST;
    char *grown;

    BH_ASSERT(wanted > 0 && item_bytes > 0);
    if (wanted > most)
        return NULL;
    if (wanted <= *capacity)
        return items;
    while (room < wanted)
        room = room > most / 2 ? most : 2 * room;
    if (room > most)
        room = most;
    grown = reallocarray(items, room, item_bytes);
    if (!grown)
        return NULL;
    memset(grown + *capacity * item_bytes, 0, (room - *capacity) * item_bytes);
    *capacity = room;
    return grown;
}
