#include "lab/load/agenda.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/vec.h"

enum { ENTRIES_MAX = 1 << 28 };

struct item {
    struct bh_agenda_entry entry;
    uint64_t number; /* order of arrival */
};

struct bh_agenda {
    struct item *items; /* items[i] comes before items[2i + 1] and items[2i + 2] */
    uint32_t count, capacity;
    uint64_t added;
};

struct bh_agenda *
bh_agenda_new(void)
{
    struct bh_agenda *agenda = calloc(1, sizeof *agenda);

    BH_ASSERT(agenda);
    return agenda;
}

void
bh_agenda_free(struct bh_agenda *agenda)
{
    if (!agenda)
        return;
    free(agenda->items);
    free(agenda);
}

static bool
before(const struct item *a, const struct item *b)
{
    if (a->entry.due_ns != b->entry.due_ns)
        return a->entry.due_ns < b->entry.due_ns;
    return a->number < b->number;
}

void
bh_agenda_add(struct bh_agenda *agenda, const struct bh_agenda_entry *entry)
{
    struct item item = { *entry, agenda->added++ };
    bool fits = bh_vec_reserve(&agenda->items, &agenda->capacity, agenda->count + 1u, ENTRIES_MAX);
    uint32_t at;

    BH_ASSERT(fits);
    for (at = agenda->count++; at > 0; at = (at - 1) / 2) {
        if (!before(&item, &agenda->items[(at - 1) / 2]))
            break;
        agenda->items[at] = agenda->items[(at - 1) / 2];
    }
    agenda->items[at] = item;
}

uint64_t
bh_agenda_due_ns(const struct bh_agenda *agenda)
{
    return agenda->count ? agenda->items[0].entry.due_ns : UINT64_MAX;
}

/* The child of `at` that comes first, or 0. */
static uint32_t
first_child(const struct bh_agenda *agenda, uint32_t at)
{
    uint32_t left = 2 * at + 1;

    if (left >= agenda->count)
        return 0;
    if (left + 1 < agenda->count && before(&agenda->items[left + 1], &agenda->items[left]))
        return left + 1;
    return left;
}

bool
bh_agenda_take(struct bh_agenda *agenda, struct bh_agenda_entry *ret_entry)
{
    struct item last;
    uint32_t at = 0, child;

    if (agenda->count == 0)
        return false;
    *ret_entry = agenda->items[0].entry;
    last = agenda->items[--agenda->count];
    while ((child = first_child(agenda, at)) && before(&agenda->items[child], &last)) {
        agenda->items[at] = agenda->items[child];
        at = child;
    }
    agenda->items[at] = last;
    return true;
}
