#ifndef BH_ENGINE_PLACEMENT_WARM_H
#define BH_ENGINE_PLACEMENT_WARM_H

#include "engine/state/work_internal.h"

/* Partitions carved before a job asks for them, so that a job need not wait for the carving:
 * as many of each profile as the outlook wants ready, where the jobs to come lose least by
 * it (engine/state/mig.h).
 *
 * Such a partition is of no tenant until the first job takes it, of any tenant: nothing ran
 * on it since it was carved.  Nothing is kept free for it: it goes like any idle partition when
 * something else is to stand there, and it takes the place of idle partitions only where their
 * tenant has no job at all. */

/* How many partitions of a profile should stand ready. */
void bh_warm_set(struct bh_engine *engine, uint32_t profile, uint32_t ready);

/* The next partition to carve, when the settings say so and some are missing. */
bool bh_warm_decide(const struct work *work, struct bh_decision *ret_decision);

/* BH_CONFLICT: it is not such a partition, or something stands there. */
BH_MUST_USE bh_rc bh_warm_apply(struct work *work, const struct bh_decision *decision);

/* A partition for no tenant could not be carved: none is tried before the first tick at or after
 * that time (UINT64_MAX: nothing waits for it). */
void bh_warm_failed(struct bh_engine *engine);
uint64_t bh_warm_retry_ns(const struct bh_engine *engine);

/* A tick has come. */
void bh_warm_tick(struct bh_engine *engine);

#endif
