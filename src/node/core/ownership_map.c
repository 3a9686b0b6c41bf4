#include "node/core/ownership_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/vec.h"

static const struct bh_ownership_unit unknown = { .tenant = BH_OWNERSHIP_UNKNOWN };
static const struct bh_ownership_gap unknown_gap = { .profile = BH_NO_SHAPE };

uint32_t
bh_ownership_map_units(const struct bh_node_partition *partition)
{
    return partition->units ? partition->units & BH_OWNERSHIP_ALL : BH_OWNERSHIP_ALL;
}

static void
ownership_assert_unit(const struct bh_ownership_gpu *ownership, uint32_t u)
{
    const struct bh_ownership_unit *unit = &ownership->unit[u];

    BH_ASSERT(!unit->clean || (!unit->failed && !unit->several));
    BH_ASSERT(unit->clean || (unit->receipt == 0 && unit->result == 0));
    BH_ASSERT(unit->result < BH_SCRUB_RESULTS);
    BH_ASSERT(!unit->several || ownership->owner_count > 0);
    BH_ASSERT(ownership->gap[u].from_count <= BH_RECEIPT_FROM_MAX);
    BH_ASSERT(!ownership->gap[u].profile[BH_PROFILE_NAME_MAX - 1]);
}

static void
ownership_assert(const struct bh_ownership_gpu *ownership)
{
    BH_ASSERT(*ownership->gpu && !ownership->gpu[BH_UUID_MAX - 1]);
    BH_ASSERT(ownership->owner_count <= BH_RECEIPT_FROM_MAX);
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++)
        ownership_assert_unit(ownership, u);
}

static struct bh_ownership_gpu *
ownership_find(const struct bh_ownership_map *table, const char *gpu)
{
    BH_ASSERT(table->count <= table->capacity && table->capacity <= BH_OWNERSHIP_GPUS_MAX);
    for (uint32_t i = 0; i < table->count; i++) {
        ownership_assert(&table->items[i]);
        if (strcmp(table->items[i].gpu, gpu) == 0)
            return &table->items[i];
    }
    return NULL;
}

static const struct bh_ownership_unit *
map_unit_at(const struct bh_ownership_map *table, const char *gpu, uint32_t unit)
{
    const struct bh_ownership_gpu *ownership = ownership_find(table, gpu);

    return ownership ? &ownership->unit[unit] : &unknown;
}

static const struct bh_ownership_gap *
map_gap_at(const struct bh_ownership_map *table, const char *gpu, uint32_t unit)
{
    const struct bh_ownership_gpu *ownership = ownership_find(table, gpu);

    return ownership ? &ownership->gap[unit] : &unknown_gap;
}

/* What of a partition says which memory it reaches, in a gap that has nothing else. */
static struct bh_ownership_gap
map_shape_of(const char *profile, uint32_t start)
{
    bool whole = strcmp(profile, "whole") == 0 || strchr(profile, ':'); /* a share has that of its GPU */
    struct bh_ownership_gap shape = { .start = whole ? 0 : start };

    snprintf(shape.profile, sizeof shape.profile, "%s", whole ? "whole" : profile);
    return shape;
}

/* Whether a gap is out of reach for partitions of that geometry. */
static bool
map_fits(const struct bh_ownership_gap *gap, const struct bh_ownership_gap *shape)
{
    return gap->start == shape->start && strcmp(gap->profile, shape->profile) == 0;
}

static bool
map_has_shape(const struct bh_ownership_gap *gap)
{
    return !map_fits(gap, &unknown_gap);
}

bh_rc
bh_ownership_map_reserve(struct bh_ownership_map *table, struct bh_err *err)
{
    if (table->count >= BH_OWNERSHIP_GPUS_MAX)
        return bh_err_set(err, BH_FULL, "the node has %u GPUs already", table->count);
    if (!bh_vec_reserve(&table->items, &table->capacity, table->count + 1, BH_OWNERSHIP_GPUS_MAX))
        return bh_err_set(err, BH_FULL, "out of memory");
    return BH_OK;
}

void
bh_ownership_map_free(struct bh_ownership_map *table)
{
    free(table->items);
    *table = (struct bh_ownership_map){ 0 };
}

static struct bh_ownership_gpu *
ownership_add(struct bh_ownership_map *table, const char *gpu)
{
    struct bh_ownership_gpu *ownership = &table->items[table->count];

    BH_ASSERT(table->count < table->capacity);
    table->count++;
    *ownership = (struct bh_ownership_gpu){ .owner_count = 0 };
    snprintf(ownership->gpu, sizeof ownership->gpu, "%s", gpu);
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        ownership->unit[u] = unknown;
        ownership->gap[u] = unknown_gap;
    }
    return ownership;
}

const struct bh_ownership_gpu *
bh_ownership_map_find(const struct bh_ownership_map *table, const char *gpu)
{
    return ownership_find(table, gpu);
}

static struct bh_ownership_gpu *
map_find_or_add(struct bh_ownership_map *table, const char *gpu)
{
    struct bh_ownership_gpu *ownership = ownership_find(table, gpu);

    return ownership ? ownership : ownership_add(table, gpu);
}

static void
map_forget_owners(struct bh_ownership_gpu *ownership)
{
    BH_ASSERT(ownership->owner_count <= BH_RECEIPT_FROM_MAX);
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        if (ownership->unit[u].several)
            return;
    }
    ownership->owner_count = 0;
}

/* Each tenant once, with its last job, in a list of BH_RECEIPT_FROM_MAX. */
static void
map_add_owner(struct bh_msg_receipt_from *owners, uint32_t *count, uint32_t tenant, uint64_t job)
{
    struct bh_msg_receipt_from *owner = owners;

    BH_ASSERT(*count <= BH_RECEIPT_FROM_MAX);
    while (owner < owners + *count && owner->tenant != tenant)
        owner++;
    if (owner == owners + BH_RECEIPT_FROM_MAX) {
        owners[BH_RECEIPT_FROM_MAX - 1] = (struct bh_msg_receipt_from){ .tenant = BH_OWNERSHIP_UNKNOWN };
        return;
    }
    if (owner == owners + *count)
        ++*count;
    *owner = (struct bh_msg_receipt_from){ tenant, job };
}

static void
map_add_to_sharers(struct bh_ownership_gpu *ownership, uint32_t tenant, uint64_t job)
{
    map_add_owner(ownership->owners, &ownership->owner_count, tenant, job);
}

void
bh_ownership_map_set(struct bh_ownership_map *table, const char *gpu, uint32_t units,
                     const struct bh_ownership_unit *as)
{
    struct bh_ownership_gpu *ownership = map_find_or_add(table, gpu);

    BH_ASSERT(units <= BH_OWNERSHIP_ALL && !as->several);
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        if (units >> u & 1)
            ownership->unit[u] = *as;
    }
    map_forget_owners(ownership);
    ownership_assert(ownership);
}

void
bh_ownership_map_add(struct bh_ownership_map *table, const char *gpu, uint32_t units,
                     const struct bh_ownership_unit *as)
{
    struct bh_ownership_gpu *ownership = map_find_or_add(table, gpu);

    BH_ASSERT(units <= BH_OWNERSHIP_ALL && !as->several);
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        struct bh_ownership_unit *unit = &ownership->unit[u];

        if ((units >> u & 1) == 0)
            continue;
        if (unit->clean || (!unit->several && unit->tenant == as->tenant)) {
            *unit = *as;
            continue;
        }
        if (!unit->several)
            map_add_to_sharers(ownership, unit->tenant, unit->job);
        map_add_to_sharers(ownership, as->tenant, as->job);
        unit->several = true;
    }
    ownership_assert(ownership);
}

void
bh_ownership_map_set_gap(struct bh_ownership_map *table, const char *gpu, uint32_t units,
                         const struct bh_ownership_gap *gap)
{
    struct bh_ownership_gpu *ownership = map_find_or_add(table, gpu);

    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        if (units >> u & 1)
            ownership->gap[u] = *gap;
    }
    ownership_assert(ownership);
}

/* A unit was filled under that geometry.  The bytes that the fill left out may be of any tenant that ever had
 * the unit: earlier gaps may lie in the one that is left now. */
static void
map_leave_gap(struct bh_ownership_gpu *ownership, uint32_t u, const struct bh_ownership_gap *shape)
{
    const struct bh_ownership_unit *unit = &ownership->unit[u];
    struct bh_ownership_gap *gap = &ownership->gap[u];

    if (!map_has_shape(gap))
        map_add_owner(gap->from, &gap->from_count, BH_OWNERSHIP_UNKNOWN, 0);
    for (uint32_t i = 0; unit->several && i < ownership->owner_count; i++)
        map_add_owner(gap->from, &gap->from_count, ownership->owners[i].tenant, ownership->owners[i].job);
    if (!unit->several && !unit->clean && unit->tenant)
        map_add_owner(gap->from, &gap->from_count, unit->tenant, unit->job);
    memcpy(gap->profile, shape->profile, sizeof gap->profile);
    gap->start = shape->start;
}

static void
map_leave_gaps(struct bh_ownership_map *table, uint32_t units, const struct bh_msg_receipt *receipt)
{
    const struct bh_ownership_gap shape = map_shape_of(receipt->profile, receipt->start);
    struct bh_ownership_gpu *ownership = map_find_or_add(table, receipt->gpu);

    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        if (units >> u & 1)
            map_leave_gap(ownership, u, &shape);
    }
}

void
bh_ownership_map_apply_receipt(struct bh_ownership_map *table, uint32_t units,
                               const struct bh_msg_receipt *receipt)
{
    const struct bh_ownership_unit clean = { .clean = true,
                                             .tenant = receipt->tenant,
                                             .job = receipt->job,
                                             .receipt = receipt->order,
                                             .result = receipt->result };
    bool bad =
        receipt->result == BH_SCRUB_FAILED || (receipt->result == BH_SCRUB_INTERRUPTED && !receipt->beside);
    struct bh_ownership_gpu *ownership;

    if (receipt->method == BH_SCRUB_EARLIER)
        return;
    if (!bad && !receipt->beside && receipt->result != BH_SCRUB_PARTIAL) {
        map_leave_gaps(table, units, receipt);
        bh_ownership_map_set(table, receipt->gpu, units, &clean);
    }
    if (!bad)
        return;
    ownership = map_find_or_add(table, receipt->gpu);
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        if ((units >> u & 1) == 0)
            continue;
        if (ownership->unit[u].clean) /* not lent since */
            ownership->unit[u] = (struct bh_ownership_unit){ 0 };
        ownership->unit[u].failed = true;
    }
}

bool
bh_ownership_map_allows(const struct bh_ownership_map *table, const struct bh_node_partition *partition,
                        uint32_t tenant)
{
    const struct bh_ownership_gap shape = map_shape_of(partition->profile, partition->start);

    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        const struct bh_ownership_unit *unit = map_unit_at(table, partition->gpu, u);

        if ((bh_ownership_map_units(partition) >> u & 1) == 0)
            continue;
        if (!map_fits(map_gap_at(table, partition->gpu, u), &shape))
            return false;
        if (!unit->clean && (unit->failed || unit->several || unit->tenant != tenant))
            return false;
    }
    return true;
}

bool
bh_ownership_map_is_unknown(const struct bh_ownership_map *table, const struct bh_node_partition *partition,
                            uint32_t tenant)
{
    const struct bh_ownership_gap shape = map_shape_of(partition->profile, partition->start);
    bool unowned = false;

    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        const struct bh_ownership_unit *unit = map_unit_at(table, partition->gpu, u);

        if ((bh_ownership_map_units(partition) >> u & 1) == 0)
            continue;
        unowned = unowned || !map_fits(map_gap_at(table, partition->gpu, u), &shape);
        if (unit->clean)
            continue;
        if (unit->failed || unit->several || (unit->tenant != tenant && unit->tenant != BH_OWNERSHIP_UNKNOWN))
            return false;
        unowned = unowned || unit->tenant == BH_OWNERSHIP_UNKNOWN;
    }
    return unowned;
}

bool
bh_ownership_map_has_failed(const struct bh_ownership_map *table, const struct bh_node_partition *partition)
{
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        if ((bh_ownership_map_units(partition) >> u & 1) && map_unit_at(table, partition->gpu, u)->failed)
            return true;
    }
    return false;
}

/* The first `count` name that tenant. */
static bool
map_names(const struct bh_msg_receipt *receipt, uint32_t count, uint32_t tenant)
{
    for (uint32_t i = 0; i < count; i++) {
        if (receipt->from[i].tenant == tenant)
            return true;
    }
    return false;
}

/* There is no room: a tenant takes the place of the last one that is named before, too. */
static void
map_list_instead(struct bh_msg_receipt *receipt, uint32_t tenant, uint64_t job)
{
    uint32_t at = receipt->from_count - 1;

    while (at > 0 && !map_names(receipt, at, receipt->from[at].tenant))
        at--;
    if (at > 0)
        receipt->from[at] = (struct bh_msg_receipt_from){ tenant, job };
    else
        receipt->from[receipt->from_count - 1] =
            (struct bh_msg_receipt_from){ .tenant = BH_OWNERSHIP_UNKNOWN };
}

static void
map_list_one(struct bh_msg_receipt *receipt, uint32_t tenant, uint64_t job)
{
    for (uint32_t i = 0; i < receipt->from_count; i++) {
        if (receipt->from[i].tenant == tenant && receipt->from[i].job == job)
            return;
    }
    if (receipt->from_count < BH_RECEIPT_FROM_MAX)
        receipt->from[receipt->from_count++] = (struct bh_msg_receipt_from){ tenant, job };
    else if (!map_names(receipt, receipt->from_count, tenant))
        map_list_instead(receipt, tenant, job);
}

/* List the tenants of the gap that are not named yet. */
static void
map_list_gap(const struct bh_ownership_gap *gap, struct bh_msg_receipt *receipt)
{
    for (uint32_t i = 0; i < gap->from_count; i++) {
        if (!map_names(receipt, receipt->from_count, gap->from[i].tenant))
            map_list_one(receipt, gap->from[i].tenant, gap->from[i].job);
    }
    if (!map_has_shape(gap) && !map_names(receipt, receipt->from_count, BH_OWNERSHIP_UNKNOWN))
        map_list_one(receipt, BH_OWNERSHIP_UNKNOWN, 0);
}

static void
map_add_proof(struct bh_msg_receipt *receipt, uint64_t by)
{
    for (uint32_t i = 0; i < receipt->by_count; i++) {
        if (receipt->by[i].receipt == by)
            return;
    }
    if (by && receipt->by_count < BH_RECEIPT_BY_MAX)
        receipt->by[receipt->by_count++].receipt = by;
}

bool
bh_ownership_map_prove(const struct bh_ownership_map *table, const struct bh_node_partition *partition,
                       struct bh_msg_receipt *receipt)
{
    bool found = false;

    receipt->by_count = 0;
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        const struct bh_ownership_unit *unit = map_unit_at(table, partition->gpu, u);

        if ((bh_ownership_map_units(partition) >> u & 1) == 0 || !unit->clean || unit->job == receipt->job)
            continue;
        if (!found || unit->result != BH_SCRUB_CLEAN)
            receipt->result = unit->result;
        found = true;
        map_add_proof(receipt, unit->receipt);
    }
    return found;
}

void
bh_ownership_map_list_owners(const struct bh_ownership_map *table, const struct bh_node_partition *partition,
                             struct bh_msg_receipt *receipt)
{
    const struct bh_ownership_gap shape = map_shape_of(partition->profile, partition->start);
    const struct bh_ownership_gpu *ownership = ownership_find(table, partition->gpu);

    receipt->from_count = 0;
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        const struct bh_ownership_unit *unit = map_unit_at(table, partition->gpu, u);

        if ((bh_ownership_map_units(partition) >> u & 1) == 0 || unit->clean)
            continue;
        for (uint32_t i = 0; unit->several && i < ownership->owner_count; i++)
            map_list_one(receipt, ownership->owners[i].tenant, ownership->owners[i].job);
        if (!unit->several)
            map_list_one(receipt, unit->tenant, unit->job);
    }
    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++) {
        const struct bh_ownership_gap *gap = map_gap_at(table, partition->gpu, u);

        if ((bh_ownership_map_units(partition) >> u & 1) && !map_fits(gap, &shape))
            map_list_gap(gap, receipt);
    }
}

static bool
map_same_gap(const struct bh_ownership_gap *gap, const struct bh_ownership_gap *other)
{
    bool same = map_fits(gap, other) && gap->from_count == other->from_count;

    for (uint32_t i = 0; same && i < gap->from_count; i++)
        same = gap->from[i].tenant == other->from[i].tenant && gap->from[i].job == other->from[i].job;
    return same;
}

uint32_t
bh_ownership_map_alike(const struct bh_ownership_gpu *ownership, uint32_t first)
{
    const struct bh_ownership_unit *as = &ownership->unit[first];
    uint32_t units = 0;

    for (uint32_t u = first; u < BH_OWNERSHIP_UNITS; u++) {
        const struct bh_ownership_unit *unit = &ownership->unit[u];

        if (unit->clean == as->clean && unit->failed == as->failed && unit->tenant == as->tenant
            && unit->job == as->job && unit->several == as->several && unit->receipt == as->receipt
            && unit->result == as->result && map_same_gap(&ownership->gap[u], &ownership->gap[first]))
            units |= 1u << u;
    }
    return units;
}
