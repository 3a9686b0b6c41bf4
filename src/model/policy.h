#ifndef BH_MODEL_POLICY_H
#define BH_MODEL_POLICY_H

#include "base/err.h"
#include "base/fields.h"

/* What may be submitted, as the site file says it: `policy` of the site, and of each tenant
 * for what it and those below it submit.  What an entry leaves out it does not restrict; a
 * tenant's can only narrow what stands above it.  docs/policy.md explains each entry. */

/* At most so many partitions of a SKU at once, running or waiting. */
struct bh_site_policy_partitions {
    const char *sku, *partitions;
};

struct bh_site_policy {
    struct bh_texts contracts, datasets, egress, egress_deny, hours, images, kinds, labels;
    const char *max_count, *max_cpu, *max_gang, *max_jobs, *max_memory, *max_pending, *max_partitions;
    struct bh_list max_sku_partitions; /* struct bh_site_policy_partitions */
    const char *max_time_limit;
    struct bh_texts models, mounts, networks, priorities;
    bool require_time_limit;
    struct bh_texts resolvers, skus;
};

extern const struct bh_fields bh_site_policy_fields;

enum { BH_POLICY_HOURS_MAX = 8, BH_POLICY_SKUS_MAX = 32 };

/* "mon-fri 08:00-18:00 +01:00" */
struct bh_policy_hours {
    uint32_t days;             /* bit 0 is Monday */
    uint32_t from_min, to_min; /* minutes of the day, `to` not included */
    int32_t ahead_min;         /* of UTC */
};

/* The same with its numbers read; lists of names stay in `text`.  Masks have a bit for each
 * value of the enum, and 0 restricts nothing, as UINT64_MAX of an amount. */
struct bh_policy_rules {
    const struct bh_site_policy *text;
    uint64_t contracts, kinds, models, networks, priorities;
    uint64_t count, cpu_milli, gang, jobs, memory_bytes, pending, partitions, time_limit_ns;
    uint64_t sku_partitions[BH_POLICY_SKUS_MAX];
    struct bh_policy_hours hours[BH_POLICY_HOURS_MAX];
    uint32_t hour_count;
};

/* Whether it says nothing at all. */
bool bh_site_policy_empty(const struct bh_site_policy *policy);

/* Check and read a policy; `ret_rules` points into it.  Names of SKUs are not looked up.
 *   BH_INVALID  a list that is empty, a word that is not known, an amount that is none
 *   BH_RANGE    too many hours or SKUs */
BH_MUST_USE bh_rc bh_site_policy_read(const struct bh_site_policy *policy, struct bh_policy_rules *ret_rules,
                                      struct bh_err *err);

/* Whether `below` allows nothing that `above` does not, entry by entry.  BH_INVALID: the
 * message names the entry and what it would widen. */
BH_MUST_USE bh_rc bh_policy_check_narrower(const struct bh_policy_rules *above,
                                           const struct bh_policy_rules *below, struct bh_err *err);

/* Whether a moment, in minutes since the epoch, is within the hours; always when there are
 * none. */
bool bh_policy_open(const struct bh_policy_rules *rules, uint64_t minute);

/* Whether an entry of `mounts` lets a job mount `path`: "/data", "rw:/scratch", "none". */
bool bh_policy_mount_allows(const char *entry, const char *path, bool write);

/* Whether an entry of `images` is for that image, or covers that entry (model/image.h). */
bool bh_policy_image_allows(const char *entry, const char *image);

/* Whether `label` ("env=prod") is what an entry of `labels` asks for: "env", "env=dev|prod". */
bool bh_policy_label_meets(const char *entry, const char *label);

/* Whether a list of texts has one. */
bool bh_policy_names(const struct bh_texts *list, const char *text);

#endif
