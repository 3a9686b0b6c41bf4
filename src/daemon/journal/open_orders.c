#include "daemon/journal/open_orders.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/search.h"
#include "base/vec.h"
#include "engine/state/event.h"

/* Each of 4096 nodes has at most 65536 orders open. */
enum { OPEN_ORDERS_MAX = 4096 << 16 };

/* Where `number` is, or would be inserted. */
static uint32_t
position_of(const struct bh_open_orders *orders, uint64_t number)
{
    return (uint32_t)bh_search(orders->items, orders->count, number, number);
}

static void
compact(struct bh_open_orders *orders)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < orders->count; i++)
        if (!orders->items[i].done)
            orders->items[kept++] = orders->items[i];
    orders->count = kept;
    orders->done = 0;
}

void
bh_open_orders_add(struct bh_open_orders *orders, uint64_t number, uint64_t since_ns)
{
    uint32_t at = position_of(orders, number);
    bool fits;

    if (at < orders->count && orders->items[at].number == number)
        return;
    if (orders->count == orders->capacity && orders->done > orders->count / 2) {
        compact(orders);
        at = position_of(orders, number);
    }
    fits = bh_vec_reserve(&orders->items, &orders->capacity, (size_t)orders->count + 1, OPEN_ORDERS_MAX);
    BH_ASSERT(fits);
    memmove(&orders->items[at + 1], &orders->items[at], (orders->count - at) * sizeof *orders->items);
    orders->items[at] = (struct bh_open_order){ .number = number, .since_ns = since_ns };
    orders->count++;
}

static void
remove_order(struct bh_open_orders *orders, uint64_t number)
{
    uint32_t at = position_of(orders, number);

    if (at == orders->count || orders->items[at].number != number || orders->items[at].done)
        return;
    orders->items[at].done = true;
    orders->done++;
}

void
bh_open_orders_read(struct bh_open_orders *orders, const struct bh_record *record)
{
    bool answers = record->phase == BH_PHASE_OUTCOME && record->order
                   && strcmp(record->verb, BH_RECORD_ORDER_UNKNOWN) != 0;

    if (answers)
        remove_order(orders, record->order);
    for (uint32_t i = 0; record->orders && record->orders[i]; i++)
        if (record->orders[i] != '-' && record->orders[i] != 't') /* a stop's answer is the end */
            bh_open_orders_add(orders, record->seq << BH_ORDER_BITS | i, record->ts_ns);
}

void
bh_open_orders_reset(struct bh_open_orders *orders)
{
    orders->count = orders->done = 0;
}

void
bh_open_orders_fini(struct bh_open_orders *orders)
{
    free(orders->items);
    *orders = (struct bh_open_orders){ 0 };
}
