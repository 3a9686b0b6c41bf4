#ifndef BH_NODE_COMMON_UID_RANGES_H
#define BH_NODE_COMMON_UID_RANGES_H

#include "node/common/conf.h"

/* Ranges of 65536 user ids, counted from uid_base: jobs have those below uid_ranges, and the node itself has
 * those behind them.  No two users share a range: the probe of `bulkhead verify` must not own the files of
 * tenants' images, and the reader of an untrusted image must not be the probe. */

static inline uint32_t
bh_uid_range_of_images(const struct bh_conf *conf)
{
    return conf->uid_ranges;
}

static inline uint32_t
bh_uid_range_of_probe(const struct bh_conf *conf)
{
    return conf->uid_ranges + 1;
}

/* The first id of a range. */
static inline uint32_t
bh_uid_range_first(const struct bh_conf *conf, uint32_t range)
{
    return conf->uid_base + 65536 * range;
}

#endif
