#include "node/placement/xid_window.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

void
bh_xid_window_add(struct bh_xid_window *window, const char *gpu, uint32_t xid, bh_ns now)
{
    BH_ASSERT(window->next < BH_XID_WINDOW_MAX && now > 0);
    snprintf(window->items[window->next].gpu, BH_UUID_MAX, "%s", gpu);
    window->items[window->next].xid = xid;
    window->items[window->next].at = now;
    window->next = (window->next + 1) % BH_XID_WINDOW_MAX;
}

static struct bh_msg_xid_count *
xid_window_find(struct bh_msg_xid_count *counts, uint32_t count, const char *gpu, uint32_t xid)
{
    for (uint32_t i = 0; i < count; i++)
        if (counts[i].xid == xid && strcmp(counts[i].gpu, gpu) == 0)
            return &counts[i];
    return NULL;
}

void
bh_xid_window_put(const struct bh_xid_window *window, bh_ns now, struct bh_arena *arena,
                  struct bh_list *ret_list)
{
    struct bh_msg_xid_count *counts = bh_arena_alloc(arena, BH_XID_WINDOW_MAX * sizeof *counts);
    uint32_t count = 0;

    BH_ASSERT(window->next < BH_XID_WINDOW_MAX);
    for (uint32_t i = 0; counts && i < BH_XID_WINDOW_MAX; i++) {
        uint32_t at = (window->next + i) % BH_XID_WINDOW_MAX;
        struct bh_msg_xid_count *known =
            xid_window_find(counts, count, window->items[at].gpu, window->items[at].xid);

        if (window->items[at].at == 0 || now - window->items[at].at > BH_XID_WINDOW_NS)
            continue;
        if (!known) {
            known = &counts[count++];
            *known = (struct bh_msg_xid_count){ .xid = window->items[at].xid };
            memcpy(known->gpu, window->items[at].gpu, sizeof known->gpu);
        }
        known->count++;
    }
    *ret_list = (struct bh_list){ counts, count };
}
