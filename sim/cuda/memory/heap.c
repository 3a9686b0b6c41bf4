#include "sim/cuda/memory/heap.h"

#include <stdint.h>
#include <stdlib.h>

#define BITS 64

struct sim_heap {
    size_t units, used;
    size_t lowest;   /* no word of `taken` below has a free unit */
    size_t *bytes;   /* of the part that begins at a unit; not set elsewhere */
    uint64_t *first; /* units where a part begins */
    uint64_t taken[];
};

struct sim_heap *
sim_heap_new(size_t bytes)
{
    size_t units = bytes / SIM_HEAP_UNIT, words = (units + BITS - 1) / BITS;
    struct sim_heap *heap = calloc(1, sizeof(*heap) + 2 * words * sizeof(uint64_t));

    if (heap == NULL)
        return NULL;
    heap->bytes = malloc(units * sizeof(*heap->bytes));
    if (heap->bytes == NULL) {
        free(heap);
        return NULL;
    }
    heap->units = units;
    heap->first = heap->taken + words;
    return heap;
}

void
sim_heap_free(struct sim_heap *heap)
{
    if (heap == NULL)
        return;
    free(heap->bytes);
    free(heap);
}

/* Bits [from, from + count) of one word. */
static uint64_t
heap_mask_of(size_t from, size_t count)
{
    return (count == BITS ? ~0ull : (1ull << count) - 1) << from;
}

static void
heap_mark(struct sim_heap *heap, size_t unit, size_t count, bool taken)
{
    while (count > 0) {
        size_t from = unit % BITS, part = count < BITS - from ? count : BITS - from;
        uint64_t *word = &heap->taken[unit / BITS];

        *word = taken ? *word | heap_mask_of(from, part) : *word & ~heap_mask_of(from, part);
        unit += part;
        count -= part;
    }
}

/* How many units from `unit` on are free, at most `most`. */
static size_t
heap_gap_at(const struct sim_heap *heap, size_t unit, size_t most)
{
    size_t count = 0;

    if (most > heap->units - unit)
        most = heap->units - unit;
    while (count < most) {
        uint64_t word = heap->taken[(unit + count) / BITS] >> (unit + count) % BITS;
        size_t rest = BITS - (unit + count) % BITS;
        size_t clear = word == 0 ? rest : (size_t)__builtin_ctzll(word);

        count += clear < rest ? clear : rest;
        if (clear < rest)
            break;
    }
    return count < most ? count : most;
}

/* The first free unit at or behind `unit`; all of them: there is none. */
static size_t
heap_next_free(const struct sim_heap *heap, size_t unit)
{
    while (unit < heap->units) {
        uint64_t word = ~heap->taken[unit / BITS] >> unit % BITS;

        if (word != 0)
            return unit + (size_t)__builtin_ctzll(word);
        unit = (unit / BITS + 1) * BITS;
    }
    return heap->units;
}

bool
sim_heap_take(struct sim_heap *heap, size_t bytes, size_t *ret_offset)
{
    size_t count = bytes / SIM_HEAP_UNIT + (bytes % SIM_HEAP_UNIT != 0);
    size_t unit = heap_next_free(heap, heap->lowest * BITS);

    if (count == 0 || count > heap->units - heap->used)
        return false;
    if (unit < heap->units)
        heap->lowest = unit / BITS;
    while (unit < heap->units) {
        size_t gap = heap_gap_at(heap, unit, count);

        if (gap == count) {
            heap_mark(heap, unit, count, true);
            heap->first[unit / BITS] |= 1ull << unit % BITS;
            heap->bytes[unit] = bytes;
            heap->used += count;
            *ret_offset = unit * SIM_HEAP_UNIT;
            return true;
        }
        unit = heap_next_free(heap, unit + gap);
    }
    return false;
}

bool
sim_heap_find(const struct sim_heap *heap, size_t at, size_t *ret_offset, size_t *ret_bytes)
{
    size_t unit = at / SIM_HEAP_UNIT, word = unit / BITS;
    uint64_t before;

    if (unit >= heap->units)
        return false;
    before = heap->first[word] & heap_mask_of(0, unit % BITS + 1);
    while (before == 0 && word > 0)
        before = heap->first[--word];
    if (before == 0)
        return false;
    unit = word * BITS + (BITS - 1 - (size_t)__builtin_clzll(before));
    *ret_offset = unit * SIM_HEAP_UNIT;
    *ret_bytes = heap->bytes[unit];
    return at - *ret_offset < *ret_bytes;
}

size_t
sim_heap_release(struct sim_heap *heap, size_t offset)
{
    size_t unit = offset / SIM_HEAP_UNIT, count;

    if (offset % SIM_HEAP_UNIT != 0 || unit >= heap->units
        || (heap->first[unit / BITS] >> unit % BITS & 1) == 0)
        return 0;
    count = heap->bytes[unit] / SIM_HEAP_UNIT + (heap->bytes[unit] % SIM_HEAP_UNIT != 0);
    heap->first[unit / BITS] &= ~(1ull << unit % BITS);
    heap_mark(heap, unit, count, false);
    heap->used -= count;
    if (unit / BITS < heap->lowest)
        heap->lowest = unit / BITS;
    return count * SIM_HEAP_UNIT;
}

size_t
sim_heap_used(const struct sim_heap *heap)
{
    return heap->used * SIM_HEAP_UNIT;
}
