#ifndef BH_NODE_PLACEMENT_XID_WINDOW_H
#define BH_NODE_PLACEMENT_XID_WINDOW_H

#include "base/arena.h"
#include "base/fields.h"
#include "base/time.h"
#include "wire/samples.h"

/* Which XIDs the GPUs reported within the last BH_XID_WINDOW_NS: the last ones of a storm. */

enum { BH_XID_WINDOW_MAX = 1024 };

struct bh_xid_window {
    struct {
        char gpu[BH_UUID_MAX];
        uint32_t xid;
        bh_ns at; /* monotonic; 0: free */
    } items[BH_XID_WINDOW_MAX];
    uint32_t next; /* the place of the next one: the oldest */
};

void bh_xid_window_add(struct bh_xid_window *window, const char *gpu, uint32_t xid, bh_ns now);

/* struct bh_msg_xid_count of each GPU and XID that occurred, in the arena, in the order in which they did
 * first. */
void bh_xid_window_put(const struct bh_xid_window *window, bh_ns now, struct bh_arena *arena,
                       struct bh_list *ret_list);

#endif
