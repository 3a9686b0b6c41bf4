#ifndef BH_PORTS_NETWORK_H
#define BH_PORTS_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/network.h"

/* Networks of jobs on one machine.  A job is known by its slot, a small number that no two jobs
 * have at once; its interface, its addresses and its rules follow from it.
 *
 * Nothing passes between two jobs that was not allowed to, at no moment: rules stand before the
 * interface that they are for, and go after it. */

struct bh_network_job {
    uint32_t slot;
    enum bh_network_mode mode;       /* never NONE */
    uint32_t group;                  /* TENANT: jobs with the same number reach each other */
    uint64_t bandwidth_bps;          /* in each direction; 0: no cap */
    const struct bh_net_rule *allow; /* EGRESS; the caller's as long as the job is attached */
    uint32_t allow_count;
    const struct bh_cidr *deny; /* before `allow` */
    uint32_t deny_count;
};

/* What the sandbox gets: both are files of the caller's on which things are mounted. */
struct bh_network_place {
    const char *space; /* an empty file: the network namespace */
    const char *sys;   /* an empty folder: a read-only /sys that shows it */
};

struct bh_network_counters {
    uint64_t rx_bytes, rx_packets; /* as the job sees it: what it received */
    uint64_t tx_bytes, tx_packets;
    uint64_t denied_bytes, denied_packets; /* sent by it, or to it, and not let through */
};

struct bh_network_ops {
    const char *name; /* "kernel", "fake" */

    /* Whether a job of that mode could be attached.
     *   BH_UNAVAILABLE  what is missing, and in the hint how to get it */
    bh_rc (*check)(void *self, enum bh_network_mode mode, struct bh_err *err);
    /* Make all of a job's network.  On failure nothing of it is left.
     *   BH_CONFLICT     the slot is attached
     *   BH_RANGE        the pool has no address for the slot
     *   BH_UNAVAILABLE, BH_IO */
    bh_rc (*attach)(void *self, const struct bh_network_job *job, const struct bh_network_place *place,
                    struct bh_err *err);
    /* Remove all of it but what is mounted at its place.  BH_OK when there was nothing. */
    bh_rc (*detach)(void *self, uint32_t slot, struct bh_err *err);
    /* After a start of the program: these jobs are attached, made by another process; whatever
     * else there is, is removed. */
    bh_rc (*restore)(void *self, const struct bh_network_job *jobs, uint32_t count, struct bh_err *err);
    /* A descriptor that becomes readable when another program may have changed the rules: call repair then;
     * -1: there is none. */
    int (*watch)(void *self);
    /* Make the rules again when another program removed them.  `ret_made`: that was so. */
    bh_rc (*repair)(void *self, bool *ret_made, struct bh_err *err);
    /* BH_NOT_FOUND: not attached. */
    bh_rc (*counters)(void *self, uint32_t slot, struct bh_network_counters *ret_counters,
                      struct bh_err *err);
    void (*close)(void *self);
};

struct bh_network {
    const struct bh_network_ops *ops;
    void *self;
};

/* Where the addresses of a pool are: the gateway's, and that of a slot. */
static inline uint32_t
bh_network_gateway(struct bh_cidr pool)
{
    return pool.address + 1;
}

static inline uint32_t
bh_network_address(struct bh_cidr pool, uint32_t slot)
{
    return pool.address + 2 + slot;
}

/* Whether the pool has an address for the slot; its last one is left. */
static inline bool
bh_network_has_address(struct bh_cidr pool, uint32_t slot)
{
    return pool.bits <= 30 && (uint64_t)slot + 3 < UINT64_C(1) << (32 - pool.bits);
}

#endif
