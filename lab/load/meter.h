#ifndef BH_LAB_LOAD_METER_H
#define BH_LAB_LOAD_METER_H

#include <stdint.h>

#include "base/attr.h"
#include "model/quantity.h"

/* What tenants use and want over simulated time, summed exactly over windows of equal
 * length: parts times nanoseconds, in integers.  Want is what runs and what waits. */
struct bh_meter;

struct bh_meter_window {
    bh_part_ns used, wanted;
};

/* For `tenants` tenants, numbered from 0, from time 0 on; `window_ns` is over 0.
 * free(NULL) is fine. */
struct bh_meter *bh_meter_new(uint32_t tenants, uint64_t window_ns);
void bh_meter_free(struct bh_meter *meter);
BH_AUTO_DEFINE(struct bh_meter *, bh_meter_free)

/* From `now_ns` on the tenant uses and wants so many parts more (or less); the result is
 * never below 0.  Times do not go back. */
void bh_meter_add(struct bh_meter *meter, uint32_t tenant, uint64_t now_ns, int64_t used, int64_t wanted);

/* Bring every tenant up to `now_ns`; the last window may be a part of one. */
void bh_meter_close(struct bh_meter *meter, uint64_t now_ns);

/* Read after bh_meter_close: how long it was and how many windows that touched. */
uint64_t bh_meter_span_ns(const struct bh_meter *meter);
uint64_t bh_meter_window_ns(const struct bh_meter *meter);
uint32_t bh_meter_windows(const struct bh_meter *meter);
const struct bh_meter_window *bh_meter_at(const struct bh_meter *meter, uint32_t tenant, uint32_t window);

/* Used and wanted over the whole time. */
struct bh_meter_window bh_meter_total(const struct bh_meter *meter, uint32_t tenant);

#endif
