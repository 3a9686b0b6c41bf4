#include "replay/apart.h"

#include <inttypes.h>
#include <stdio.h>

enum { DEPTH_MAX = 64, PARTITIONS_MAX = 8192 };

/* A tenant and all above it, lowest first. */
struct apart_line {
    struct bh_ev_tenant up[DEPTH_MAX];
    uint32_t depth;
};

static bool
trace(const struct bh_engine *engine, bh_tenant_id tenant, struct apart_line *ret_line)
{
    struct bh_tenant_view view;

    ret_line->depth = 0;
    while (tenant.v) {
        if (ret_line->depth == DEPTH_MAX || !bh_view_tenant(engine, tenant, 0, &view))
            return false;
        ret_line->up[ret_line->depth++] = view.settings;
        tenant = view.settings.parent;
    }
    return true;
}

static bool
is_on(const struct apart_line *line, bh_tenant_id tenant)
{
    for (uint32_t i = 0; i < line->depth; i++)
        if (bh_same(line->up[i].tenant, tenant))
            return true;
    return false;
}

/* What a line says on its way up to the first tenant that both have above them. */
static void
add_line(const struct apart_line *line, const struct apart_line *other, enum bh_boundary *boundary,
         bool *dedicated)
{
    for (uint32_t i = 0; i < line->depth && !is_on(other, line->up[i].tenant); i++) {
        const struct bh_ev_tenant *tenant = &line->up[i];
        enum bh_boundary says =
            tenant->boundary == BH_BOUNDARY_UNSET ? bh_boundary_default(tenant->kind) : tenant->boundary;

        *boundary = says > *boundary ? says : *boundary;
        *dedicated = *dedicated || tenant->dedicated_nodes;
    }
}

/* Whether two partitions that different jobs hold may be where they are. */
static bool
may_stand(const struct bh_engine *engine, const struct bh_partition_view *a,
          const struct bh_partition_view *b)
{
    enum bh_boundary boundary = BH_BOUNDARY_UNSET;
    struct bh_gpu_view gpu_a, gpu_b;
    bool dedicated = false;
    struct apart_line one, other;

    if (bh_same(a->tenant, b->tenant) || !trace(engine, a->tenant, &one) || !trace(engine, b->tenant, &other))
        return true;
    add_line(&one, &other, &boundary, &dedicated);
    add_line(&other, &one, &boundary, &dedicated);
    if (bh_same(a->partition.gpu, b->partition.gpu) && boundary == BH_BOUNDARY_FORTRESS)
        return false;
    return !dedicated || !bh_view_gpu(engine, a->partition.gpu, &gpu_a)
           || !bh_view_gpu(engine, b->partition.gpu, &gpu_b) || !bh_same(gpu_a.node, gpu_b.node);
}

static uint32_t
held_partitions(const struct bh_engine *engine, struct bh_partition_view *ret_partitions)
{
    uint32_t cursor = 0, count = 0;

    while (count < PARTITIONS_MAX && bh_view_next_partition(engine, &cursor, &ret_partitions[count]))
        count += ret_partitions[count].job.v != 0;
    return count;
}

bool
bh_apart_check(const struct bh_engine *engine, char *ret_what, size_t size)
{
    static struct bh_partition_view partitions[PARTITIONS_MAX];
    uint32_t count = held_partitions(engine, partitions);

    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = a + 1; b < count; b++) {
            if (may_stand(engine, &partitions[a], &partitions[b]))
                continue;
            snprintf(ret_what, size, "jobs %" PRIu64 " and %" PRIu64 " are closer than allowed",
                     partitions[a].job.v, partitions[b].job.v);
            return false;
        }
    return true;
}
