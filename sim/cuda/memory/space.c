#include "sim/cuda/memory/space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define UNIT SIM_PAGE_BYTES
#define RANGES_MAX 16
#define RANGE_BYTES (1ull << 40)
#define RANGE_LEAST (1ull << 32)
#define LOW_BYTES (1ull << 28)
#define LOW_FIRST 0x10000000ull
#define LOW_LAST 0x70000000ull

struct space_range {
    uint64_t base;
    size_t units, hint; /* no unit below `hint` is free */
    bool low;
    struct sim_region **region; /* of each unit */
};

static struct {
    unsigned count;
    struct space_range range[RANGES_MAX];
    struct sim_region *first;
    uint64_t ids;
} space;

/* ---- ranges ---- */

static bool
space_add_range(void *base, size_t bytes, bool low)
{
    struct space_range *range = &space.range[space.count];
    uint64_t start = ((uint64_t)(uintptr_t)base + UNIT - 1) / UNIT * UNIT;

    *range = (struct space_range){ .base = start, .low = low };
    range->units = ((uint64_t)(uintptr_t)base + bytes - start) / UNIT;
    range->region = calloc(range->units, sizeof(struct sim_region *));
    if (range->region == NULL) {
        munmap(base, bytes);
        return false;
    }
    space.count++;
    return true;
}

static void *
space_reserve(uint64_t address, size_t bytes)
{
    int fixed = address != 0 ? MAP_FIXED_NOREPLACE : 0;
    void *base = mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);

    if (base == MAP_FAILED)
        return NULL;
    madvise(base, bytes, MADV_DONTDUMP);
    return base;
}

static bool
space_grow(size_t least, bool low)
{
    void *base = NULL;

    if (space.count == RANGES_MAX)
        return false;
    for (uint64_t at = LOW_FIRST; low && base == NULL && at <= LOW_LAST; at += LOW_BYTES)
        base = space_reserve(at, LOW_BYTES);
    if (low)
        return base != NULL && space_add_range(base, LOW_BYTES, true);
    for (uint64_t bytes = least > RANGE_BYTES ? least : RANGE_BYTES; bytes >= least && bytes >= RANGE_LEAST;
         bytes /= 2) {
        base = space_reserve(0, bytes + UNIT);
        if (base != NULL)
            return space_add_range(base, bytes + UNIT, false);
    }
    return false;
}

static struct space_range *
space_range_of(uint64_t address)
{
    for (unsigned i = 0; i < space.count; i++)
        if (address - space.range[i].base < space.range[i].units * UNIT)
            return &space.range[i];
    return NULL;
}

bool
sim_space_has(uint64_t address)
{
    return space_range_of(address) != NULL;
}

struct sim_region *
sim_region_find(uint64_t address)
{
    struct space_range *range = space_range_of(address);

    return range == NULL ? NULL : range->region[(address - range->base) / UNIT];
}

/* ---- addresses ---- */

static bool
space_is_free(const struct space_range *range, size_t unit, size_t count)
{
    if (unit + count > range->units)
        return false;
    for (size_t i = 0; i < count; i++)
        if (range->region[unit + i] != NULL)
            return false;
    return true;
}

/* The lowest unit from which so many are free; all of them: there is none. */
static size_t
space_find_units(struct space_range *range, size_t count, size_t step)
{
    size_t free_units = 0;

    while (range->hint < range->units && range->region[range->hint] != NULL)
        range->hint++;
    for (size_t unit = range->hint; unit < range->units; unit++) {
        uint64_t start = range->base / UNIT + unit - free_units;

        if (range->region[unit] != NULL)
            free_units = 0;
        else if (free_units > 0 || start % step == 0)
            free_units++;
        if (free_units == count)
            return unit + 1 - count;
    }
    return range->units;
}

static void
space_put_units(struct space_range *range, size_t unit, struct sim_region *region)
{
    region->address = range->base + unit * UNIT;
    for (size_t i = 0; i < region->span / UNIT; i++)
        range->region[unit + i] = region;
}

/* Exactly there, if nothing is. */
static bool
space_take_here(struct sim_region *region, uint64_t address)
{
    struct space_range *range = address % UNIT == 0 ? space_range_of(address) : NULL;
    size_t unit = range == NULL ? 0 : (address - range->base) / UNIT;

    if (range == NULL || range->low != region->low || !space_is_free(range, unit, region->span / UNIT))
        return false;
    space_put_units(range, unit, region);
    return true;
}

static bool
space_take_anywhere(struct sim_region *region, size_t alignment)
{
    size_t count = region->span / UNIT, step = alignment / UNIT > 0 ? alignment / UNIT : 1;

    for (unsigned i = 0;; i++) {
        struct space_range *range = &space.range[i];
        size_t unit;

        if (i == space.count && !space_grow(region->span, region->low))
            return false;
        if (range->low != region->low || range->units < count)
            continue;
        unit = space_find_units(range, count, step);
        if (unit == range->units)
            continue;
        space_put_units(range, unit, region);
        return true;
    }
}

static void
space_give_back(const struct sim_region *region)
{
    struct space_range *range = space_range_of(region->address);
    size_t unit = (region->address - range->base) / UNIT;

    memset(&range->region[unit], 0, region->span / UNIT * sizeof(struct sim_region *));
    if (unit < range->hint)
        range->hint = unit;
}

/* ---- regions ---- */

struct sim_region *
sim_region_new(enum sim_region_kind kind, const struct sim_region_request *request)
{
    struct sim_region *region = request->bytes > SIZE_MAX - UNIT ? NULL : malloc(sizeof(*region));

    if (region == NULL)
        return NULL;
    *region = (struct sim_region){ .kind = kind,
                                   .low = request->low,
                                   .id = ++space.ids,
                                   .bytes = request->bytes,
                                   .span = (request->bytes + UNIT - 1) / UNIT * UNIT,
                                   .next = space.first };
    if (!(request->address != 0 && space_take_here(region, request->address))
        && !space_take_anywhere(region, request->alignment)) {
        free(region);
        return NULL;
    }
    if (space.first != NULL)
        space.first->previous = region;
    space.first = region;
    return region;
}

static void
space_drop_mapped(struct sim_region *region)
{
    for (size_t i = 0; region->mapped != NULL && i < region->span / UNIT; i++)
        sim_physical_release(region->mapped[i].physical);
    free(region->mapped);
}

void
sim_region_free(struct sim_region *region)
{
    if (region->readable)
        sim_space_hide(region->address, region->span);
    space_drop_mapped(region);
    sim_physical_release(region->physical);
    sim_heap_free(region->heap);
    space_give_back(region);
    if (region->previous != NULL)
        region->previous->next = region->next;
    else
        space.first = region->next;
    if (region->next != NULL)
        region->next->previous = region->previous;
    free(region);
}

struct sim_region *
sim_region_search(bool (*match)(const struct sim_region *region, const void *self), const void *self)
{
    struct sim_region *region = space.first;

    while (region != NULL && !match(region, self))
        region = region->next;
    return region;
}

void
sim_region_drop(bool (*match)(const struct sim_region *region, const void *self), const void *self)
{
    for (struct sim_region *region = space.first, *next; region != NULL; region = next) {
        next = region->next;
        if (match(region, self))
            sim_region_free(region);
    }
}

/* ---- what the host may touch ---- */

bool
sim_space_show(uint64_t address, size_t bytes, int fd, size_t offset)
{
    int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

    return mmap((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE, kind | MAP_FIXED | MAP_NORESERVE,
                fd, (off_t)offset)
           != MAP_FAILED;
}

void
sim_space_hide(uint64_t address, size_t bytes)
{
    (void)!mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
