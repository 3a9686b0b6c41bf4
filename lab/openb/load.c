#include "lab/openb/load.h"

#include <stdlib.h>
#include <string.h>

enum { EXPECTED_PERCENT = 95 };

/* Some pods, of which one shows what they ask for. */
struct heap {
    const struct bh_openb_pod *pod;
    uint32_t count;
};

static int
compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* By what the artifact distinguishes typical pods; 0 for equal. */
static int
compare_typical(const struct bh_openb_pod *a, const struct bh_openb_pod *b)
{
    int order = compare_u32(a->shape.cpu_milli, b->shape.cpu_milli);

    if (order == 0)
        order = compare_u32(a->milli, b->milli);
    if (order == 0)
        order = compare_u32(a->shape.gpus, b->shape.gpus);
    return order ? order : strcmp(a->models_text, b->models_text);
}

/* The greatest first, like beside like. */
static int
compare_pods(const void *left, const void *right)
{
    const struct bh_openb_pod *a = ((const struct heap *)left)->pod;
    const struct bh_openb_pod *b = ((const struct heap *)right)->pod;
    int order = compare_typical(b, a);

    return order ? order : compare_u32(b->shape.memory_mib, a->shape.memory_mib);
}

static int
compare_counts(const void *left, const void *right)
{
    const struct heap *a = left, *b = right;
    int order = compare_u32(b->count, a->count);

    return order ? order : compare_typical(b->pod, a->pod);
}

static void
find_kinds(const struct bh_openb_trace *trace, const struct heap *sorted, struct bh_openb_load *load)
{
    for (uint32_t i = 0; i < trace->pod_count; i++) {
        const struct bh_openb_pod *pod = sorted[i].pod;

        if (i == 0 || compare_pods(&sorted[i - 1], &sorted[i]) != 0)
            load->kinds[load->kind_count++].shape = pod->shape;
        load->kinds[load->kind_count - 1].count++;
        load->kind_of[pod - trace->pods] = load->kind_count - 1;
    }
}

/* Bring typical pods together in place; returns how many different ones there are. */
static uint32_t
heap_up(struct heap *sorted, uint32_t count)
{
    uint32_t heaps = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (heaps == 0 || compare_typical(sorted[heaps - 1].pod, sorted[i].pod) != 0)
            sorted[heaps++] = (struct heap){ .pod = sorted[i].pod };
        sorted[heaps - 1].count++;
    }
    return heaps;
}

/* Count pods as expected: with those that another text of gpu_spec says the same of. */
static void
expect(struct bh_openb_load *load, const struct bh_pack_shape *shape, uint32_t count)
{
    struct bh_openb_kind *kind = load->expected, *end = kind + load->expected_count;

    while (kind < end && memcmp(&kind->shape, shape, sizeof *shape) != 0)
        kind++;
    load->expected_count += kind == end;
    kind->shape = *shape;
    kind->count += count;
}

static void
find_expected(uint32_t pods, struct heap *sorted, struct bh_openb_load *load)
{
    uint32_t heaps = heap_up(sorted, pods);
    uint64_t covered = 0;

    qsort(sorted, heaps, sizeof *sorted, compare_counts);
    for (uint32_t i = 0; covered * 100 < (uint64_t)pods * EXPECTED_PERCENT; i++) {
        struct bh_pack_shape shape = sorted[i].pod->shape;

        shape.memory_mib = 0;
        expect(load, &shape, sorted[i].count);
        covered += sorted[i].count;
    }
    load->unexpected = pods - (uint32_t)covered;
}

bh_rc
bh_openb_load_read(const struct bh_openb_trace *trace, struct bh_arena *arena, struct bh_openb_load *ret_load,
                   struct bh_err *err)
{
    struct bh_openb_load load = { 0 };
    struct heap *sorted = bh_arena_alloc(arena, trace->pod_count * sizeof *sorted);

    load.kinds = bh_arena_alloc(arena, trace->pod_count * sizeof *load.kinds);
    load.kind_of = bh_arena_alloc(arena, trace->pod_count * sizeof *load.kind_of);
    load.expected = bh_arena_alloc(arena, trace->pod_count * sizeof *load.expected);
    if (!sorted || !load.kinds || !load.kind_of || !load.expected)
        return bh_err_set(err, BH_FULL, "the pods take more memory than is allowed");
    for (uint32_t i = 0; i < trace->pod_count; i++)
        sorted[i].pod = &trace->pods[i];
    qsort(sorted, trace->pod_count, sizeof *sorted, compare_pods);
    find_kinds(trace, sorted, &load);
    find_expected(trace->pod_count, sorted, &load);
    *ret_load = load;
    return BH_OK;
}
