#ifndef BH_DAEMON_STATE_HUB_H
#define BH_DAEMON_STATE_HUB_H

#include "api/request/owner.h"

/* The last changes of jobs' states, for watchers and log followers: a ring that the
 * owner writes after each commit and any worker reads.  A watcher that falls behind
 * the ring misses changes and sees it by a gap in the numbers. */
struct bh_hub;

BH_MUST_USE struct bh_hub *bh_hub_new(void);
void bh_hub_free(struct bh_hub *hub);

/* Owner thread. */
void bh_hub_put(struct bh_hub *hub, const struct bh_change *changes, uint32_t count);

/* Wake every waiter for good: the daemon stops. */
void bh_hub_stop(struct bh_hub *hub);

/* As bh_owner_ops.change_number and changes. */
uint64_t bh_hub_number(struct bh_hub *hub);
uint32_t bh_hub_wait(struct bh_hub *hub, uint64_t after, uint64_t wait_ns, struct bh_change *ret_changes,
                     uint32_t max);

#endif
