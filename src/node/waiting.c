#include "node/waiting.h"

#include <stdio.h>
#include <string.h>

struct bh_waiting *
bh_waiting_add(struct bh_waiting_list *list, uint32_t number, const void *message,
               const char *gpu)
{
    struct bh_waiting *waiting = &list->item[list->count];
    struct bh_err ignored;

    if (list->count == BH_WAITING_MAX)
        return NULL;
    *waiting = (struct bh_waiting){ .order = 0 };
    memcpy(&waiting->order, message, sizeof waiting->order); /* every order begins with it */
    if (number == BH_MSG_START)
        waiting->start_of = ((const struct bh_msg_start *)message)->lease;
    snprintf(waiting->gpu, sizeof waiting->gpu, "%s", gpu);
    if (bh_kept_init(&waiting->kept, number, message, &ignored) != BH_OK) {
        bh_kept_fini(&waiting->kept);
        return NULL;
    }
    list->count++;
    return waiting;
}

void
bh_waiting_remove(struct bh_waiting_list *list, uint32_t at)
{
    bh_kept_fini(&list->item[at].kept);
    list->count--;
    memmove(&list->item[at], &list->item[at + 1], (list->count - at) * sizeof list->item[0]);
}

void
bh_waiting_clear(struct bh_waiting_list *list)
{
    while (list->count > 0)
        bh_waiting_remove(list, list->count - 1);
}

bool
bh_waiting_has(const struct bh_waiting_list *list, uint64_t order)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->item[i].order == order)
            return true;
    return false;
}

uint32_t
bh_waiting_find_start(const struct bh_waiting_list *list, uint64_t lease)
{
    uint32_t at = 0;

    while (at < list->count && list->item[at].start_of != lease)
        at++;
    return at;
}

bool
bh_waiting_is_behind(const struct bh_waiting_list *list, uint32_t before, const char *gpu)
{
    for (uint32_t i = 0; i < before; i++)
        if (*gpu && strcmp(list->item[i].gpu, gpu) == 0)
            return true;
    return false;
}
