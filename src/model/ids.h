#ifndef BH_MODEL_IDS_H
#define BH_MODEL_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Identities are one-member structs, so that mixing them does not compile.  Zero
 * is none: no object ever has the id 0.  Ids are given out by the owner thread
 * and never used again. */
typedef struct bh_tenant_id {
    uint32_t v;
} bh_tenant_id;
typedef struct bh_principal_id {
    uint32_t v;
} bh_principal_id;
typedef struct bh_sku_id {
    uint32_t v;
} bh_sku_id;
typedef struct bh_node_id {
    uint32_t v;
} bh_node_id;
typedef struct bh_gpu_id {
    uint32_t v;
} bh_gpu_id;
typedef struct bh_dataset_id {
    uint32_t v;
} bh_dataset_id;
typedef struct bh_job_id {
    uint64_t v;
} bh_job_id;
typedef struct bh_lease_id {
    uint64_t v;
} bh_lease_id;
typedef struct bh_partition_id {
    uint64_t v;
} bh_partition_id;

/* Same for every id type: bh_same(a, b). */
#define bh_same(a, b) ((a).v == (b).v)

enum { BH_NAME_MAX = 63 };

/* Whether `name` may name a tenant, SKU or principal: 1 to 63 of a-z 0-9 - _ .
 * beginning and ending with a letter or digit. */
bool bh_name_valid(const char *name);

/* The same; BH_INVALID, and the hint has the rule. */
BH_MUST_USE bh_rc bh_name_check(const char *name, struct bh_err *err);

#endif
