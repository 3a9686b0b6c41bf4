#ifndef BH_POLICY_RATE_H
#define BH_POLICY_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

/* How often a caller may ask: a token bucket for each principal, and for callers without one a bucket for
 * each Unix user or address block.  Pure: the moment is an argument, the caller holds a lock.
 *
 * A bucket fills by `per_second` and holds BH_RATE_BURST seconds' worth.  The table is bounded, and a bucket
 * is forgotten only when it is full again, so that a caller gets no fresh bucket for using many names: where
 * a row is wanted and no bucket is full, the newcomer draws from one that all such newcomers share.
 * Principals and unknown callers have separate tables, so that unknown callers cannot displace known ones.
 *
 * Stored requests draw by their size: a change counts once for each started BH_RATE_BYTES of it.  One that is
 * larger than a full bucket waits for a full one, and the bucket is in debt afterwards. */

enum bh_rate_class { BH_RATE_READ, BH_RATE_CHANGE, BH_RATE_EXPENSIVE, BH_RATE_CLASSES };

enum {
    BH_RATE_BURST = 10,   /* seconds */
    BH_RATE_ADMIN = 10,   /* administrators of the site may so many times as much */
    BH_RATE_BYTES = 4096, /* of a change that count as one: most jobs' are fewer */
    BH_RATE_WAYS = 8,     /* places that a key may be at */
    BH_RATE_SLOTS = 4096
};

/* The caller. */
struct bh_rate_key {
    bool known;     /* a principal, by its id; else an unknown caller: */
    uint64_t id;    /* a Unix user's id, or a hash of an address block */
    uint32_t times; /* of the configured rate: 1, or BH_RATE_ADMIN */
};

struct bh_rate_bucket {
    uint64_t id;
    bh_ns empty_ns[BH_RATE_CLASSES]; /* when it would have been empty: the later, the less it
                                    holds.  All before a burst ago: full */
    bool used;
};

struct bh_rate_table {
    struct bh_rate_bucket slots[BH_RATE_SLOTS], shared;
};

/* Zeroed but for `per_second` is new. */
struct bh_rates {
    uint32_t per_second[BH_RATE_CLASSES]; /* 0: no limit */
    struct bh_rate_table known, unknown;
};

/* What is asked for. */
struct bh_rate_request {
    enum bh_rate_class class;
    uint32_t count; /* how often it counts, at least 1 */
};

/* A change whose request is so long, in bytes. */
struct bh_rate_request bh_rate_change(size_t bytes);

/* Draw as many as the draft counts.  False: the bucket holds fewer; *ret_wait_ns says when it holds
 * them, and nothing was drawn. */
bool bh_rate_draw(struct bh_rates *rates, const struct bh_rate_key *key, struct bh_rate_request request,
                  bh_ns now, bh_ns *ret_wait_ns);

#endif
