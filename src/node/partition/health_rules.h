#ifndef BH_NODE_PARTITION_HEALTH_RULES_H
#define BH_NODE_PARTITION_HEALTH_RULES_H

#include "base/time.h"
#include "model/health.h"
#include "ports/device.h"

/* What changed for the worse between two readings of a GPU: the rules of DCGM's health watch,
 * as signs (tables/health_rules.tbl).  Pure. */

/* The signs of `now` that `before` had not, `span` later; returns how many.  Counters that are
 * lower than before began anew.  RECOVERY is a sign also when the driver wants nothing any
 * more. */
uint32_t bh_health_rules_compare(const struct bh_device_health *before, const struct bh_device_health *now,
                                 bh_ns span, enum bh_health_rule ret_rules[BH_HEALTH_RULES]);

/* A reading without any of the signs that last, with the counters of `now`: the base for the first comparison
 * of a GPU. */
struct bh_device_health bh_health_rules_none(const struct bh_device_health *now);

/* Whether what a reset is to cure is gone: fields 226, 227 and 230 clear, nothing pending.
 * NULL, or what is not. */
const char *bh_health_rules_uncured(const struct bh_device_health *now);

#endif
