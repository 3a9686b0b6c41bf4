#ifndef BH_ENGINE_ENGINE_H
#define BH_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/event.h"
#include "engine/reason.h"

/* The engine: a pure deterministic machine.
 *
 * bh_engine_step is the only way its state changes.  It reads no clock, draws no
 * random number, does no I/O, allocates nothing and uses no floating point.  All
 * state stands in one block of memory that the caller sized and owns; the block
 * has no pointers in it, so its bytes are the snapshot. */
struct bh_engine;

/* Of the block: one more whenever its rows or tables change, or what events make of them.
 * Digests of two layouts differ. */
enum { BH_ENGINE_LAYOUT = 16 };

/* Sizes of the slot tables, fixed when a block is made. */
struct bh_engine_caps {
    uint32_t tenants, skus, nodes, gpus, jobs, leases, partitions, classes;
    uint32_t metered; /* rows of the ledger: tenants, and removed ones that used something */
};

/* For a small site; grow by restoring into a bigger block. */
#define BH_ENGINE_CAPS_DEFAULT                                                           \
    ((struct bh_engine_caps){ .tenants = 256, .skus = 64, .nodes = 16, .gpus = 256,      \
                              .jobs = 4096, .leases = 2048, .partitions = 4096,          \
                              .classes = 1024, .metered = 512 })

/* Bytes a block of these capacities takes. */
size_t bh_engine_size(const struct bh_engine_caps *caps);

/* An empty engine in `memory` (bh_engine_size bytes, 16-byte aligned).  The memory
 * stays the caller's. */
struct bh_engine *bh_engine_init(void *memory, const struct bh_engine_caps *caps);

/* Copy an engine into a new block of larger or equal capacities. */
struct bh_engine *bh_engine_grow(const struct bh_engine *engine, void *memory,
                                 const struct bh_engine_caps *caps);

/* Check that `bytes` is a block that this build can use (magic, layout version,
 * length against the capacities in it) and return it; NULL otherwise. */
struct bh_engine *bh_engine_adopt(void *bytes, size_t length);

struct bh_engine_caps bh_engine_caps(const struct bh_engine *engine);

/* The present capacities with the table doubled that refused with BH_FULL last: what
 * to hand to bh_engine_size and bh_engine_grow. */
struct bh_engine_caps bh_engine_wanted(const struct bh_engine *engine);

/* A record has room for the largest gang: its decisions, those on all who leave for it,
 * and what it takes to clear and carve every partition; beside what the event itself causes.
 * So many partitions in all decisions can be written in a record of the journal. */
enum { BH_DECISIONS_MAX = 128, BH_EFFECTS_MAX = 2304, BH_DECIDED_PARTITIONS_MAX = 384 };

/* What one step brought; filled by the step, owned by the caller. */
struct bh_step {
    struct bh_reason verdict;  /* why the event was refused, when it was */
    bool more;                 /* decisions were cut at the maximum: send a TICK */
    uint32_t decision_count, effect_count;
    struct bh_decision decisions[BH_DECISIONS_MAX];
    struct bh_effect effects[BH_EFFECTS_MAX];
};

/* Take one event: change the state, decide, and say what must be done.
 *
 * On any result but BH_OK nothing has changed and `step->verdict` says why:
 *   BH_NOT_FOUND  a tenant, SKU, job, lease or partition that the event names
 *   BH_CONFLICT   the (state, event) pair is not in the tables
 *   BH_RANGE      a quantity outside its range
 *   BH_QUOTA      SUBMIT that no limit would ever allow
 *   BH_FULL       a slot table is full: grow and send the event again */
BH_MUST_USE bh_rc bh_engine_step(struct bh_engine *engine, const struct bh_event *event,
                                 struct bh_step *step);

/* As bh_engine_step, but apply `decisions` as recorded instead of deciding.
 * BH_CONFLICT when they do not fit the state: the journal is damaged. */
BH_MUST_USE bh_rc bh_engine_replay(struct bh_engine *engine, const struct bh_event *event,
                                   const struct bh_decision *decisions, uint32_t count,
                                   struct bh_step *step);

/* Effects ordered but not yet answered, in order: sent again to a node that came
 * back.  Of all nodes for `node` 0.  Returns how many were written (at most `max`). */
uint32_t bh_engine_outstanding(const struct bh_engine *engine, bh_node_id node,
                               struct bh_effect *ret_effects, uint32_t max);

/* Whether `effect`, as a step brought it, is still not answered: one of those that
 * bh_engine_outstanding would list. */
bool bh_engine_awaits(const struct bh_engine *engine, const struct bh_effect *effect);

/* When the engine next wants a TICK (a time limit, a grace that ends), or
 * UINT64_MAX. */
uint64_t bh_engine_next_tick_ns(const struct bh_engine *engine);

/* Every invariant of the state.  False: `ret_broken` says which, with the
 * ids involved, in at most `size` bytes. */
bool bh_engine_check(const struct bh_engine *engine, char *ret_broken, size_t size);

/* Feed every live byte of state, in a canonical order that does not depend on the
 * capacities, to `put`: what the digest is computed over. */
void bh_engine_digest(const struct bh_engine *engine,
                      void (*put)(void *self, const void *bytes, size_t length), void *self);

#endif
