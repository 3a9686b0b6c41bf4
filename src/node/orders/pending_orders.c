#include "node/orders/pending_orders.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "node/core/state_check.h"

static void
pending_order_assert(const struct bh_pending_order *pending)
{
    BH_ASSERT(pending->order != 0 && pending->copy.frame.length > 0);
    BH_ASSERT(!pending->start_of || pending->copy.number == BH_MSG_START);
    BH_ASSERT(!pending->pause || pending->until);
    BH_STATE_ASSERT_TEXT(pending->gpu);
}

void
bh_pending_orders_assert(const struct bh_pending_orders *list)
{
    BH_ASSERT(list->count <= BH_COUNT(list->item));
    if (list->count > 0)
        pending_order_assert(&list->item[list->count - 1]);
}

struct bh_pending_order *
bh_pending_orders_add(struct bh_pending_orders *list, uint32_t number, const void *message, const char *gpu)
{
    struct bh_pending_order *pending = &list->item[list->count];
    struct bh_err ignored;

    bh_pending_orders_assert(list);
    if (list->count == BH_PENDING_ORDERS_MAX)
        return NULL;
    *pending = (struct bh_pending_order){ .order = 0 };
    memcpy(&pending->order, message, sizeof pending->order); /* every order begins with it */
    if (number == BH_MSG_START)
        pending->start_of = ((const struct bh_msg_start *)message)->lease;
    snprintf(pending->gpu, sizeof pending->gpu, "%s", gpu);
    if (bh_order_copy_init(&pending->copy, number, message, &ignored) != BH_OK) {
        bh_order_copy_fini(&pending->copy);
        return NULL;
    }
    list->count++;
    return pending;
}

void
bh_pending_orders_remove(struct bh_pending_orders *list, uint32_t at)
{
    BH_ASSERT(at < list->count);
    pending_order_assert(&list->item[at]);
    bh_order_copy_fini(&list->item[at].copy);
    list->count--;
    memmove(&list->item[at], &list->item[at + 1], (list->count - at) * sizeof list->item[0]);
}

void
bh_pending_orders_clear(struct bh_pending_orders *list)
{
    while (list->count > 0)
        bh_pending_orders_remove(list, list->count - 1);
}

bool
bh_pending_orders_has(const struct bh_pending_orders *list, uint64_t order)
{
    for (uint32_t i = 0; i < list->count; i++) {
        pending_order_assert(&list->item[i]);
        if (list->item[i].order == order)
            return true;
    }
    return false;
}

uint32_t
bh_pending_orders_find_start(const struct bh_pending_orders *list, uint64_t lease)
{
    uint32_t at = 0;

    bh_pending_orders_assert(list);
    while (at < list->count && list->item[at].start_of != lease)
        at++;
    return at;
}

bool
bh_pending_orders_is_behind(const struct bh_pending_orders *list, uint32_t before, const char *gpu)
{
    BH_ASSERT(before <= list->count);
    for (uint32_t i = 0; i < before; i++) {
        pending_order_assert(&list->item[i]);
        if (*gpu && strcmp(list->item[i].gpu, gpu) == 0)
            return true;
    }
    return false;
}
