/* Parts of a partition of memory, against a plain array of who has which unit. */
#include "base/test.h"

#include <stdint.h>

#include "sim/cuda/memory/heap.h"

#define UNITS 300 /* no multiple of 64: the last word is not whole */
#define ROUNDS 20000

struct part {
    size_t offset, bytes;
};

static unsigned char owner[UNITS]; /* 0: none */
static struct part parts[UNITS + 1];

static size_t
units(size_t bytes)
{
    return (bytes + SIM_HEAP_UNIT - 1) / SIM_HEAP_UNIT;
}

/* The lowest gap of so many units, by the array; UNITS: none. */
static size_t
lowest_gap(size_t wanted)
{
    size_t run = 0;

    for (size_t unit = 0; unit < UNITS; unit++) {
        run = owner[unit] == 0 ? run + 1 : 0;
        if (run == wanted)
            return unit + 1 - wanted;
    }
    return UNITS;
}

static void
take(struct sim_heap *heap, unsigned char who, size_t bytes)
{
    size_t expected = lowest_gap(units(bytes)), offset = SIZE_MAX;
    bool taken = sim_heap_take(heap, bytes, &offset);

    assert_int_equal(taken, expected < UNITS);
    if (!taken)
        return;
    assert_int_equal(offset, expected * SIM_HEAP_UNIT);
    memset(owner + expected, who, units(bytes));
    parts[who] = (struct part){ offset, bytes };
}

static void
give(struct sim_heap *heap, unsigned char who)
{
    assert_int_equal(sim_heap_release(heap, parts[who].offset + SIM_HEAP_UNIT / 2), 0);
    assert_int_equal(sim_heap_release(heap, parts[who].offset), units(parts[who].bytes) * SIM_HEAP_UNIT);
    memset(owner + parts[who].offset / SIM_HEAP_UNIT, 0, units(parts[who].bytes));
    assert_int_equal(sim_heap_release(heap, parts[who].offset), 0);
    parts[who].bytes = 0;
}

static void
look(const struct sim_heap *heap, size_t at)
{
    size_t offset = 0, bytes = 0;
    unsigned char who = owner[at / SIM_HEAP_UNIT];
    bool inside = who != 0 && at - parts[who].offset < parts[who].bytes;

    assert_int_equal(sim_heap_find(heap, at, &offset, &bytes), inside);
    if (inside) {
        assert_int_equal(offset, parts[who].offset);
        assert_int_equal(bytes, parts[who].bytes);
    }
}

static void
test_random_parts(void **state)
{
    struct sim_heap *heap = sim_heap_new(UNITS * SIM_HEAP_UNIT);
    uint32_t seed = 7;

    assert_non_null(heap);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned char who;
        size_t used = 0;

        seed = seed * 1664525u + 1013904223u;
        who = (unsigned char)(1 + (seed >> 24) % 40);
        if (parts[who].bytes > 0)
            give(heap, who);
        else
            take(heap, who, 1 + (seed >> 4) % (round % 9 == 0 ? 100000 : 9000));
        look(heap, (seed >> 3) % (UNITS * SIM_HEAP_UNIT));
        for (size_t unit = 0; unit < UNITS; unit++)
            used += owner[unit] != 0 ? SIM_HEAP_UNIT : 0;
        assert_int_equal(sim_heap_used(heap), used);
    }
    assert_false(sim_heap_take(heap, 0, &(size_t){ 0 }));
    assert_false(sim_heap_find(heap, UNITS * SIM_HEAP_UNIT, &(size_t){ 0 }, &(size_t){ 0 }));
    sim_heap_free(heap);
    sim_heap_free(NULL);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_parts) };
BH_TEST_MAIN(tests)
