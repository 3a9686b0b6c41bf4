#include "api/jobs/reservations.h"

#include "api/documents/replies.h"

/* ---- when ---- */

static void
list_reservations(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct bh_reservations *all = self;
    struct bh_reservation_view kept;

    for (uint32_t cursor = 0; bh_view_next_reservation(engine, &cursor, &kept);) {
        if (kept.at_ns == 0)
            continue;
        all->rows[all->count].job = kept.job.v;
        all->rows[all->count].from_ns = kept.at_ns;
        all->count++;
    }
}

void
bh_reservations_find(const struct bh_call *call, struct bh_reservations *ret_all)
{
    struct bh_err unused;

    *ret_all = (struct bh_reservations){ 0 };
    if (bh_call_ask(call, list_reservations, ret_all, &unused) != BH_OK)
        ret_all->count = 0;
}

uint64_t
bh_reservations_of(const struct bh_reservations *all, uint64_t job)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->rows[i].job == job)
            return all->rows[i].from_ns;
    return 0;
}

/* ---- where ---- */

/* A claim or a reservation with the nodes that its places stand on. */
struct reservations_placement {
    struct bh_reservation_view kept; /* without partitions: there is none */
    bh_node_id nodes[BH_JOB_PARTITIONS_MAX];
    const char *names[BH_JOB_PARTITIONS_MAX];
};

struct asked {
    uint64_t job;
    struct reservations_placement claim, reservation;
    struct bh_arena *arena;
};

static void
ask_reservations(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct asked *asked = self;
    struct bh_reservation_view kept;
    struct bh_gpu_view gpu;

    for (uint32_t cursor = 0; bh_view_next_reservation(engine, &cursor, &kept);) {
        struct reservations_placement *placement = kept.at_ns ? &asked->reservation : &asked->claim;

        if (kept.job.v != asked->job)
            continue;
        placement->kept = kept;
        for (uint32_t i = 0; i < kept.partition_count; i++)
            if (bh_view_gpu(engine, kept.partitions[i].gpu, &gpu))
                placement->nodes[i] = gpu.node;
    }
}

static void
name_nodes(struct reservations_placement *placement, const struct bh_name_row *row, struct bh_arena *arena)
{
    const char *name = NULL;

    for (uint32_t i = 0; i < placement->kept.partition_count; i++) {
        if (placement->nodes[i].v != row->id)
            continue;
        name = name ? name : bh_arena_strdup(arena, row->name);
        placement->names[i] = name;
    }
}

/* Nodes have no place in the directory: their names come from the store. */
static bool
reservations_read_name(void *self, const struct bh_name_row *row)
{
    struct asked *asked = self;

    if (row->kind == BH_NAME_NODE) {
        name_nodes(&asked->claim, row, asked->arena);
        name_nodes(&asked->reservation, row, asked->arena);
    }
    return true;
}

static bh_rc
reservations_list(const struct bh_call *call, const struct reservations_placement *placement,
                  struct bh_list *ret, struct bh_err *err)
{
    uint32_t count = placement->kept.partition_count;
    struct bh_reply_placement *rows;
    char(*names)[BH_PARTITION_NAME_MAX];
    bh_rc rc = bh_call_alloc(call, count * sizeof *rows, &rows, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, count * sizeof *names, &names, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        const struct bh_partition *partition = &placement->kept.partitions[i];
        const struct bh_dir_gpu *gpu = bh_directory_gpu(call->dir, partition->gpu);

        bh_partition_name(BH_GPU_MODEL_NONE, partition->profile, names[i]);
        rows[i] = (struct bh_reply_placement){ .gpu = gpu ? gpu->uuid : "",
                                               .node = placement->names[i],
                                               .profile = names[i],
                                               .start = partition->start };
    }
    *ret = (struct bh_list){ rows, count };
    return BH_OK;
}

bh_rc
bh_reservations_read(struct bh_call *call, uint64_t job, struct bh_reserved *ret, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct asked *asked;
    bh_rc rc = bh_call_alloc(call, sizeof *asked, &asked, err);

    if (rc != BH_OK)
        return rc;
    *asked = (struct asked){ .job = job, .arena = call->arena };
    rc = bh_call_ask(call, ask_reservations, asked, err);
    if (rc != BH_OK || asked->claim.kept.partition_count + asked->reservation.kept.partition_count == 0)
        return rc;
    rc = store->ops->list_names(store->self, reservations_read_name, asked, err);
    if (rc != BH_OK)
        return rc;
    ret->from_ns = asked->reservation.kept.at_ns;
    rc = reservations_list(call, &asked->claim, &ret->claimed_on, err);
    if (rc != BH_OK)
        return rc;
    return reservations_list(call, &asked->reservation, &ret->reserved_on, err);
}
