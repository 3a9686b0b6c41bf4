#ifndef BH_NODE_CORE_OWNERSHIP_MAP_H
#define BH_NODE_CORE_OWNERSHIP_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/node_record.h"

/* The ownership map: whose bytes lie in which memory of which GPU.  For each memory unit it has the tenant
 * that was last lent it, or that a scrub left it clean.  All shares of a GPU get their memory from the same
 * units, so these may hold bytes of several tenants.  Memory that was never scrubbed is unknown, and counts
 * as another tenant's for every tenant.
 *
 * A scrub does not reach all bytes of a partition.  The bytes that it left out cannot be reached from the
 * next partition of the same geometry (a profile at a start), and are ordinary memory for another geometry.
 * So each unit also has the geometry that it was last scrubbed under, and its tenant until then.  Shares have
 * the geometry of the whole GPU.
 *
 * The map is kept in the node's journal, so that a crash does not make memory clean;
 * node/orders/order_watermark.h says when the journal is not believed.  A table without a clock or I/O. */

enum { BH_OWNERSHIP_UNITS = 16, BH_OWNERSHIP_GPUS_MAX = 256 };

#define BH_OWNERSHIP_UNKNOWN UINT32_MAX /* the tenant is not known */
#define BH_OWNERSHIP_ALL ((1u << BH_OWNERSHIP_UNITS) - 1)

struct bh_ownership_unit {
    bool clean, failed; /* failed: the last scrub of it did not come out well */
    uint32_t tenant;    /* or BH_OWNERSHIP_UNKNOWN; of a clean one: that it was scrubbed for */
    uint64_t job;
    uint64_t receipt; /* of a clean one: that of its scrub; 0: not known */
    uint32_t result;  /* which that had: enum bh_scrub_result */
    bool several;     /* the tenants are those of bh_ownership_gpu.owners */
};

struct bh_ownership_gpu {
    char gpu[BH_UUID_MAX];
    struct bh_ownership_unit unit[BH_OWNERSHIP_UNITS];
    struct bh_ownership_gap gap[BH_OWNERSHIP_UNITS]; /* of each unit: what its last scrub left out */
    /* Each tenant once, with its last job; when there are too many, the last one is unknown. */
    struct bh_msg_receipt_from owners[BH_RECEIPT_FROM_MAX];
    uint32_t owner_count; /* 0: no unit has several */
};

struct bh_ownership_map {
    struct bh_ownership_gpu *items;
    uint32_t count, capacity;
};

/* Units of a partition: bit u for unit u.  A partition noted without them has all. */
uint32_t bh_ownership_map_units(const struct bh_node_partition *partition);

/* Room for one more GPU.  BH_FULL. */
BH_MUST_USE bh_rc bh_ownership_map_reserve(struct bh_ownership_map *table, struct bh_err *err);
void bh_ownership_map_free(struct bh_ownership_map *table);

/* From now on the units are as `as` says, but for their gaps.  There is room (bh_ownership_map_reserve). */
void bh_ownership_map_set(struct bh_ownership_map *table, const char *gpu, uint32_t units,
                          const struct bh_ownership_unit *as);

/* From now on the units may hold bytes of that tenant, too.  There is room likewise. */
void bh_ownership_map_add(struct bh_ownership_map *table, const char *gpu, uint32_t units,
                          const struct bh_ownership_unit *as);

/* From now on the gaps of the units are as `gap` says.  There is room likewise. */
void bh_ownership_map_set_gap(struct bh_ownership_map *table, const char *gpu, uint32_t units,
                              const struct bh_ownership_gap *gap);

/* Take a receipt into account: its partition is clean now but for its gap, or its scrub failed.  Of a part of
 * the memory: nothing changes, unless it failed; nor of an earlier scrub. */
void bh_ownership_map_apply_receipt(struct bh_ownership_map *table, uint32_t units,
                                    const struct bh_msg_receipt *receipt);

/* Whether `tenant` may have the partition as it is: each unit clean, or its own, and scrubbed last under the
 * partition's own geometry. */
bool bh_ownership_map_allows(const struct bh_ownership_map *table, const struct bh_node_partition *partition,
                             uint32_t tenant);

/* Whether the only obstacle to that is that the tenant of some units is unknown, or the geometry under
 * which they were scrubbed.  Such partitions were carved by a node without an ownership map, or with
 * another one. */
bool bh_ownership_map_is_unknown(const struct bh_ownership_map *table,
                                 const struct bh_node_partition *partition, uint32_t tenant);

/* Whether the last scrub of any of its units failed. */
bool bh_ownership_map_has_failed(const struct bh_ownership_map *table,
                                 const struct bh_node_partition *partition);

/* Write into a receipt for `receipt->job` which scrubs left its units clean that were done for
 * another job, and what came of them.  False: there are none. */
bool bh_ownership_map_prove(const struct bh_ownership_map *table, const struct bh_node_partition *partition,
                            struct bh_msg_receipt *receipt);

/* Write into the receipt the tenants that had the partition's memory since it was last clean, each once, and
 * those whose bytes may be in gaps that the partition reaches.  When there are too many, each tenant once,
 * and the last one is unknown. */
void bh_ownership_map_list_owners(const struct bh_ownership_map *table,
                                  const struct bh_node_partition *partition, struct bh_msg_receipt *receipt);

/* That GPU's entry, or NULL. */
const struct bh_ownership_gpu *bh_ownership_map_find(const struct bh_ownership_map *table, const char *gpu);

/* Units of the GPU `at` that are as its unit `first`, from that on: for writing a table
 * down. */
uint32_t bh_ownership_map_alike(const struct bh_ownership_gpu *ownership, uint32_t first);

#endif
