#include "node/mark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static const struct bh_mark_unit unknown = { .tenant = BH_MARK_UNKNOWN };

uint32_t
bh_mark_units(const struct bh_note_piece *piece)
{
    return piece->units ? piece->units & BH_MARK_ALL : BH_MARK_ALL;
}

static struct bh_marks *
find(const struct bh_mark_table *table, const char *gpu)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (strcmp(table->items[i].gpu, gpu) == 0)
            return &table->items[i];
    }
    return NULL;
}

static const struct bh_mark_unit *
unit_at(const struct bh_mark_table *table, const char *gpu, uint32_t unit)
{
    const struct bh_marks *marks = find(table, gpu);

    return marks ? &marks->unit[unit] : &unknown;
}

bh_rc
bh_mark_make_room(struct bh_mark_table *table, struct bh_err *err)
{
    uint32_t wanted = table->room ? table->room * 2 : 16;
    struct bh_marks *grown;

    if (table->count < table->room)
        return BH_OK;
    if (table->count >= BH_MARKS_MAX)
        return bh_err_set(err, BH_FULL, "the node knows %u GPUs already", table->count);
    grown = realloc(table->items, wanted * sizeof *grown);
    if (!grown)
        return bh_err_set(err, BH_FULL, "out of memory");
    table->items = grown;
    table->room = wanted;
    return BH_OK;
}

void
bh_mark_free(struct bh_mark_table *table)
{
    free(table->items);
    *table = (struct bh_mark_table){ 0 };
}

static struct bh_marks *
add(struct bh_mark_table *table, const char *gpu)
{
    struct bh_marks *marks = &table->items[table->count];

    BH_ASSERT(table->count < table->room);
    table->count++;
    snprintf(marks->gpu, sizeof marks->gpu, "%s", gpu);
    for (uint32_t u = 0; u < BH_MARK_UNITS; u++)
        marks->unit[u] = unknown;
    return marks;
}

void
bh_mark_set(struct bh_mark_table *table, const char *gpu, uint32_t units,
            const struct bh_mark_unit *as)
{
    struct bh_marks *marks = find(table, gpu);

    if (!marks)
        marks = add(table, gpu);
    for (uint32_t u = 0; u < BH_MARK_UNITS; u++) {
        if (units >> u & 1)
            marks->unit[u] = *as;
    }
}

void
bh_mark_receipt(struct bh_mark_table *table, uint32_t units,
                const struct bh_msg_receipt *receipt)
{
    static const struct bh_mark_unit clean = { .clean = true };
    struct bh_marks *marks = find(table, receipt->gpu);

    if (receipt->result != BH_SCRUB_FAILED) {
        bh_mark_set(table, receipt->gpu, units, &clean);
        return;
    }
    if (!marks)
        marks = add(table, receipt->gpu);
    for (uint32_t u = 0; u < BH_MARK_UNITS; u++) {
        if (units >> u & 1) {
            marks->unit[u].clean = false;
            marks->unit[u].failed = true;
        }
    }
}

bool
bh_mark_allows(const struct bh_mark_table *table, const struct bh_note_piece *piece,
               uint32_t tenant)
{
    for (uint32_t u = 0; u < BH_MARK_UNITS; u++) {
        const struct bh_mark_unit *unit = unit_at(table, piece->gpu, u);

        if ((bh_mark_units(piece) >> u & 1) == 0 || unit->clean)
            continue;
        if (unit->failed || unit->tenant != tenant)
            return false;
    }
    return true;
}

bool
bh_mark_is_unknown(const struct bh_mark_table *table, const struct bh_note_piece *piece,
                   uint32_t tenant)
{
    bool nobodys = false;

    for (uint32_t u = 0; u < BH_MARK_UNITS; u++) {
        const struct bh_mark_unit *unit = unit_at(table, piece->gpu, u);

        if ((bh_mark_units(piece) >> u & 1) == 0 || unit->clean)
            continue;
        if (unit->failed || (unit->tenant != tenant && unit->tenant != BH_MARK_UNKNOWN))
            return false;
        nobodys = nobodys || unit->tenant == BH_MARK_UNKNOWN;
    }
    return nobodys;
}

bool
bh_mark_failed(const struct bh_mark_table *table, const struct bh_note_piece *piece)
{
    for (uint32_t u = 0; u < BH_MARK_UNITS; u++) {
        if ((bh_mark_units(piece) >> u & 1) && unit_at(table, piece->gpu, u)->failed)
            return true;
    }
    return false;
}

void
bh_mark_list(const struct bh_mark_table *table, const struct bh_note_piece *piece,
             struct bh_msg_receipt *receipt)
{
    receipt->from_count = 0;
    for (uint32_t u = 0; u < BH_MARK_UNITS && receipt->from_count < BH_RECEIPT_FROM_MAX;
         u++) {
        const struct bh_mark_unit *unit = unit_at(table, piece->gpu, u);
        bool known = (bh_mark_units(piece) >> u & 1) == 0 || unit->clean;

        for (uint32_t i = 0; i < receipt->from_count && !known; i++)
            known = receipt->from[i].tenant == unit->tenant &&
                    receipt->from[i].job == unit->job;
        if (!known)
            receipt->from[receipt->from_count++] =
                (struct bh_msg_receipt_from){ unit->tenant, unit->job };
    }
}

uint32_t
bh_mark_alike(const struct bh_marks *marks, uint32_t first)
{
    const struct bh_mark_unit *as = &marks->unit[first];
    uint32_t units = 0;

    for (uint32_t u = first; u < BH_MARK_UNITS; u++) {
        const struct bh_mark_unit *unit = &marks->unit[u];

        if (unit->clean == as->clean && unit->failed == as->failed &&
            unit->tenant == as->tenant && unit->job == as->job)
            units |= 1u << u;
    }
    return units;
}
