#ifndef BH_ENGINE_GPU_LEDGER_H
#define BH_ENGINE_GPU_LEDGER_H

#include "engine/state/state_internal.h"

/* Part-nanoseconds: rates that change with events, and sums that grow by rate times
 * the time between.  Integers of 128 bits, so nothing is lost or rounded. */

/* Bring the fleet's sums up to `now_ns`. */
void bh_ledger_advance(struct bh_engine *engine, uint64_t now_ns);

/* The parts that a partition of this profile is charged with on the GPU: of a share on one that is
 * oversubscribed, the compute that it has left when all want theirs, rounded down. */
struct bh_parts bh_ledger_charge(const struct gpu *gpu, uint32_t profile);

/* The tenant begins (or ceases) to hold these parts. */
void bh_ledger_acquire(struct bh_engine *engine, uint32_t tenant, struct bh_parts parts);
void bh_ledger_release(struct bh_engine *engine, uint32_t tenant, struct bh_parts parts);

/* What became of these parts in the last `span_ns`, in which nothing was heard of them, is known
 * now: the tenant had them for the first `had_ns`, then no tenant had them. */
void bh_ledger_debit(struct bh_engine *engine, uint32_t tenant, struct bh_parts parts, uint64_t span_ns,
                     uint64_t had_ns);

/* Give a tenant that is declared its row: the one that it had before, else a new one, for
 * which there must be room. */
void bh_ledger_open(struct bh_engine *engine, uint32_t tenant);

/* The tenant goes, and holds nothing. Its row stays, unless it never used anything. */
void bh_ledger_leave(struct bh_engine *engine, uint32_t tenant);

/* What is on a row (a slot of TABLE_METERED) up to `now_ns`. */
void bh_ledger_usage(const struct bh_engine *engine, uint32_t row, uint64_t now_ns, bh_part_ns *ret_compute,
                     bh_part_ns *ret_memory);

/* What is wrong with the ledger: its rows, also of tenants that are gone, are what the GPUs
 * were leased for or dedicated to. NULL: nothing. */
const char *bh_ledger_broken(const struct bh_engine *engine);

/* What becomes of a GPU's parts just now; the four sum to BH_GPU_PARTS each.  On a node that is
 * dedicated (engine/gpu/dedication.h) nothing is idle: what is not leased and could be, but for
 * that, is dedicated.  What is unusable for a cause of its own stays so. */
struct bh_split {
    struct bh_parts leased, dedicated, idle, unusable;
    struct bh_parts causes[BH_UNUSABLES]; /* they sum to unusable */
};
void bh_ledger_split(const struct bh_engine *engine, uint32_t gpu, struct bh_split *ret_split);

/* Of what is on a row up to `now_ns`, what the tenant's dedicated nodes kept from others. */
void bh_ledger_dedicated(const struct bh_engine *engine, uint32_t row, uint64_t now_ns,
                         bh_part_ns *ret_compute, bh_part_ns *ret_memory);

/* A partition on the GPU, the GPU or its node changed: adjust the fleet's rates, and those of the
 * tenant that the node is dedicated to. */
void bh_ledger_refresh(struct bh_engine *engine, uint32_t gpu);

#endif
