#include "api/jobs/reservations.h"

#include <string.h>

#include "base/assert.h"

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

static void
put_placements(const struct bh_call *call, struct bh_json_writer *w, const char *key,
               const struct reservations_placement *placement)
{
    if (placement->kept.partition_count == 0)
        return;
    bh_json_open(w, key, '[');
    for (uint32_t i = 0; i < placement->kept.partition_count; i++) {
        const struct bh_partition *partition = &placement->kept.partitions[i];
        char name[BH_PARTITION_NAME_MAX];
        const struct bh_dir_gpu *gpu = bh_directory_gpu(call->dir, partition->gpu);

        bh_partition_name(BH_GPU_MODEL_NONE, partition->profile, name);
        bh_json_open(w, NULL, '{');
        bh_json_str(w, "gpu", gpu ? gpu->uuid : "");
        bh_json_str(w, "node", placement->names[i] ? placement->names[i] : "");
        bh_json_str(w, "profile", name);
        bh_json_u64(w, "start", partition->start);
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
}

bh_rc
bh_reservations_put(struct bh_call *call, struct bh_json_writer *w, uint64_t job, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct asked *asked = bh_arena_alloc(call->arena, sizeof *asked);
    bh_rc rc;

    BH_ASSERT(asked);
    memset(asked, 0, sizeof *asked);
    asked->job = job;
    asked->arena = call->arena;
    rc = bh_call_ask(call, ask_reservations, asked, err);
    if (rc != BH_OK || asked->claim.kept.partition_count + asked->reservation.kept.partition_count == 0)
        return rc;
    rc = store->ops->list_names(store->self, reservations_read_name, asked, err);
    put_placements(call, w, "claimed_on", &asked->claim);
    put_placements(call, w, "reserved_on", &asked->reservation);
    if (asked->reservation.kept.at_ns)
        bh_json_ns(w, "reserved_ns", asked->reservation.kept.at_ns);
    return rc;
}
