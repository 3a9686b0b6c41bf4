#include "audit/items.h"

#include <string.h>

void
bh_item_begin(struct bh_buf *list)
{
    if (list->length > 0 && list->bytes[list->length - 1] != '[')
        bh_buf_putc(list, ',');
}

static bool
is_written_so(const struct bh_item_kind *kind, struct bh_slice item, const void *read)
{
    char memory[BH_ITEM_BYTES_MAX];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    kind->put(&text, read);
    return !text.overflow && text.length == item.length && memcmp(text.bytes, item.text, item.length) == 0;
}

bool
bh_items_next(const struct bh_item_kind *kind, struct bh_slice list, size_t *cursor, void *ret)
{
    struct bh_slice item;

    return bh_slice_next_item(list, cursor, &item) && kind->read(item, ret) && is_written_so(kind, item, ret);
}

bool
bh_items_are_list(const struct bh_item_kind *kind, struct bh_slice list, void *scratch)
{
    size_t cursor = 0, count = 0;

    while (bh_items_next(kind, list, &cursor, scratch))
        count++;
    return count > 0 && cursor == BH_SLICE_END;
}
