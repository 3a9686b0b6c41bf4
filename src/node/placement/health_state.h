#ifndef BH_NODE_PLACEMENT_HEALTH_STATE_H
#define BH_NODE_PLACEMENT_HEALTH_STATE_H

#include "node/core/node.h"
#include "node/placement/xid_window.h"

/* How each GPU was when its health was read last (node/partition/health.h). */

enum { BH_HEALTH_GPUS_MAX = 64, BH_HEALTH_MISSED_MAX = 64 };

/* A GPU as of the last reading. */
struct bh_health_state {
    char gpu[BH_UUID_MAX], pci[20];
    struct bh_device_health health;
    bh_ns checked_at;  /* monotonic; 0: never */
    bool unresponsive; /* hangs, or is lost */
    char why[200];     /* of one that is away */
    bool announce;     /* report its state at the next reading */
    enum {
        BH_HEALTH_NOT_GIVEN_UP,
        BH_HEALTH_GIVEN_UP,
        BH_HEALTH_ASKED_SINCE
    } given_up;            /* by an XID that wants a reboot, until a later reading succeeds */
    bh_ns retry_at, pause; /* of one that is away: when to ask it again */
};

struct bh_health_watch {
    struct bh_health_state gpu_state[BH_HEALTH_GPUS_MAX];
    uint32_t count;
    bh_ns check_at; /* monotonic */
    struct bh_msg_health missed[BH_HEALTH_MISSED_MAX];
    uint32_t missed_count;
    struct bh_xid_window xids;
};

struct bh_health_watch *bh_health_watch_new(void);
void bh_health_watch_free(struct bh_health_watch *watch);

/* Asserts what holds of it between two calls. */
void bh_health_watch_assert(const struct bh_health_watch *watch);

/* Its bus address, also while the driver does not answer; "": it was never seen. */
const char *bh_health_pci(const struct bh_node *node, const char *gpu);

/* It was reset: earlier readings do not count. */
void bh_health_forget(struct bh_node *node, const char *gpu);

/* Whether it did not answer when it was asked last. */
bool bh_health_is_unresponsive(const struct bh_node *node, const char *gpu);

/* What its driver said then; NULL: it is not away. */
const char *bh_health_why(const struct bh_node *node, const char *gpu);

/* NULL: it was never seen. */
struct bh_health_state *bh_health_state_find(const struct bh_node *node, const char *gpu);

/* Take GPUs that came since the last scan. */
void bh_health_state_learn(struct bh_node *node);

#endif
