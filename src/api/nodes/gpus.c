#include "api/nodes/gpus.h"

#include <string.h>

#include "api/request/facts.h"
#include "api/request/visible.h"
#include "model/unmanaged.h"
#include "policy/gpus.h"
#include "wire/message_node.h"

/* At most twelve instances stand on a GPU of today; those being cleared come on top. */
enum { PARTITIONS_A_GPU = 24, UNMANAGED_TEXT_MAX = 4096 };

struct gpu_question {
    const struct bh_directory *dir;
    struct bh_gpu_view *gpus; /* beside dir->gpus; gpu.v 0: unknown */
    struct bh_partition_view *partitions;
    uint32_t partition_count, partition_max;
};

static void
ask_gpus(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct gpu_question *q = self;
    struct bh_partition_view partition;
    uint32_t cursor = 0;

    for (uint32_t i = 0; i < q->dir->gpu_count; i++)
        if (!bh_view_gpu(engine, q->dir->gpus[i].id, &q->gpus[i]))
            q->gpus[i].gpu.v = 0;
    while (q->partition_count < q->partition_max && bh_view_next_partition(engine, &cursor, &partition))
        q->partitions[q->partition_count++] = partition;
}

/* ---- partitions ---- */

struct gpu_list {
    struct bh_call *call;
    struct bh_json_writer w;
    struct bh_visible visible;
    const struct gpu_question *q;
    struct bh_facts facts; /* of the connected nodes */
};

/* Whether others hold it, who stay unseen: of what they have the GPU's `used` tells. */
static bool
gpus_is_foreign(const struct gpu_list *list, const struct bh_partition_view *partition)
{
    return partition->state != BH_PARTITION_IDLE && partition->tenant.v
           && !bh_visible_has(&list->visible, partition->tenant.v);
}

static void
gpus_put_holder(struct gpu_list *list, const struct bh_partition_view *partition)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(list->call->dir, partition->tenant);

    if (partition->state == BH_PARTITION_IDLE || !partition->tenant.v)
        return;
    if (partition->job.v)
        bh_json_u64(&list->w, "job", partition->job.v);
    bh_json_str(&list->w, "tenant", tenant ? tenant->path : "");
}

/* What a share allows, and that it is no more than grade F. */
static void
gpus_put_share(struct bh_json_writer *w, enum bh_gpu_model model, uint32_t profile)
{
    struct bh_share share;

    if (!bh_share_get((bh_profile_id){ profile }, &share))
        return;
    bh_json_u64(w, "cap_bytes", bh_share_cap_bytes(model, &share));
    bh_json_u64(w, "compute_parts", share.compute);
    bh_json_str(w, "grade", bh_grade_names[BH_GRADE_F]);
    bh_json_u64(w, "memory_parts", share.memory);
    bh_json_str(w, "share_mode", bh_share_mode_names[share.mode]);
}

static void
gpus_put_partition(struct gpu_list *list, const struct bh_gpu_view *gpu,
                   const struct bh_partition_view *partition)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ partition->partition.profile });
    struct bh_json_writer *w = &list->w;
    char name[BH_PARTITION_NAME_MAX];

    bh_partition_name((enum bh_gpu_model)gpu->model, partition->partition.profile, name);

    bh_json_open(w, NULL, '{');
    bh_json_bool(w, "assumed",
                 profile ? profile->assumed
                         : bh_profile_is_share((bh_profile_id){ partition->partition.profile })
                               && bh_share_is_assumed((enum bh_gpu_model)gpu->model));
    gpus_put_share(w, (enum bh_gpu_model)gpu->model, partition->partition.profile);
    if (profile) {
        bh_json_u64(w, "memory_mib", profile->memory_mib);
        bh_json_u64(w, "slices", profile->compute_slices);
        bh_json_u64(w, "units", profile->memory_units);
    }
    bh_json_u64(w, "id", partition->partition.partition.v);
    bh_json_str(w, "profile", name);
    bh_json_u64(w, "start", partition->partition.start);
    bh_json_str(w, "state", bh_partition_state_names[partition->state]);
    gpus_put_holder(list, partition);
    bh_json_close(w, '}');
}

static void
gpus_put_partitions(struct gpu_list *list, const struct bh_gpu_view *gpu)
{
    bh_json_open(&list->w, "pieces", '[');
    for (uint32_t i = 0; i < list->q->partition_count; i++)
        if (bh_same(list->q->partitions[i].partition.gpu, gpu->gpu)
            && !gpus_is_foreign(list, &list->q->partitions[i]))
            gpus_put_partition(list, gpu, &list->q->partitions[i]);
    bh_json_close(&list->w, ']');
}

static bool
gpus_has_foreign(const struct gpu_list *list, const struct bh_gpu_view *gpu)
{
    for (uint32_t i = 0; i < list->q->partition_count; i++)
        if (bh_same(list->q->partitions[i].partition.gpu, gpu->gpu)
            && gpus_is_foreign(list, &list->q->partitions[i]))
            return true;
    return false;
}

/* ---- GPUs ---- */

static bool
gpus_is_assumed(enum bh_gpu_model model)
{
    uint32_t count;
    const struct bh_profile *profile = bh_profile_first(model, &count);

    for (uint32_t i = 0; i < count; i++)
        if (profile[i].assumed)
            return true;
    return false;
}

static void
gpus_put_geometry(struct bh_json_writer *w, enum bh_gpu_model model)
{
    const struct bh_model_facts *facts = bh_model_facts(model);

    bh_json_bool(w, "assumed", gpus_is_assumed(model));
    if (model == BH_GPU_MODEL_NONE || !facts)
        return;
    bh_json_u64(w, "compute_slices", facts->compute_slices);
    bh_json_u64(w, "memory_units", facts->memory_units);
    bh_json_str(w, "model", facts->name);
}

/* "mig", "shared", "whole" or "free"; a GPU that is not managed is in nobody's mode. */
static const char *
gpus_mode_of(const struct gpu_list *list, const struct bh_gpu_view *gpu)
{
    if (!gpu->managed)
        return "unmanaged";
    if (gpu->mig)
        return "mig";
    for (uint32_t i = 0; i < list->q->partition_count; i++)
        if (bh_same(list->q->partitions[i].partition.gpu, gpu->gpu))
            return gpu->shared ? "shared" : "whole";
    return "free";
}

static void
gpus_put_parts(struct bh_json_writer *w, const char *key, struct bh_parts parts)
{
    char text[48];
    struct bh_buf amount;

    bh_buf_init_fixed(&amount, text, sizeof text);
    bh_gpus_put_amount(&amount, bh_parts_equivalent(parts));
    bh_json_open(w, key, '{');
    bh_json_u64(w, "compute", parts.compute);
    bh_json_str(w, "gpus", bh_buf_text(&amount));
    bh_json_u64(w, "memory", parts.memory);
    bh_json_close(w, '}');
}

/* What the node last said; a member that it did not send is 0 there. */
static void
gpus_put_numbers(struct bh_json_writer *w, bh_json_value facts, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bh_json_u64(w, names[i], bh_json_number(bh_json_get(facts, names[i]), 0));
}

/* What runs on the GPU at this moment, whoever it is. */
static void
gpus_put_activity(struct bh_json_writer *w, bh_json_value facts)
{
    static const char *const names[] = { "memory_used_mib", "power_mw", "temperature_c" };
    uint64_t utilisation = bh_json_number(bh_json_get(facts, "utilisation"), 0);

    gpus_put_numbers(w, facts, names, BH_COUNT(names));
    if (utilisation <= 100)
        bh_json_u64(w, "utilisation", utilisation);
}

static void
gpus_put_facts(struct bh_json_writer *w, bh_json_value facts)
{
    static const char *const names[] = { "ecc_uncorrected", "index", "memory_mib" };

    gpus_put_numbers(w, facts, names, BH_COUNT(names));
    bh_json_str(w, "pci", bh_json_text(bh_json_get(facts, "pci"), ""));
    bh_json_str(w, "product", bh_json_text(bh_json_get(facts, "product"), ""));
    if (*bh_json_text(bh_json_get(facts, "trouble"), ""))
        bh_json_str(w, "trouble", bh_json_text(bh_json_get(facts, "trouble"), ""));
}

/* What it was: "XID 48, double-bit ECC error". */
static void
gpus_put_fault(struct bh_json_writer *w, const struct bh_gpu_view *gpu)
{
    char text[160];
    struct bh_buf fault;

    bh_buf_init_fixed(&fault, text, sizeof text);
    if (gpu->xid)
        bh_buf_printf(&fault, "XID %u, %s", gpu->xid, bh_xid_get(gpu->xid)->doc);
    else
        bh_buf_puts(&fault, bh_health_rule_doc((enum bh_health_rule)gpu->sign));
    bh_json_str(w, "fault", bh_buf_text(&fault));
}

const char *
bh_gpus_health(const struct bh_gpu_view *gpu)
{
    bool works = gpu->health == BH_HEALTH_OK || gpu->health == BH_HEALTH_WATCHED;

    if (!gpu->fenced || !works)
        return bh_gpu_health_names[gpu->health];
    return gpu->keeps ? "unverified" : "lost";
}

static struct bh_unmanaged
gpus_unmanaged_of(const struct bh_dir_gpu *named, const struct bh_gpu_facts_of *facts)
{
    bh_json_value partitions = bh_json_get(facts->node->root, "pieces");
    struct bh_unmanaged unmanaged = {
        .gpu = named->uuid,
        .node = facts->node->name,
        .in_site = named->managed,
        .allowed = bh_json_truth(bh_json_get(facts->gpu, "allowed")),
        .scrub_off = strcmp(bh_json_text(bh_json_get(facts->node->root, "driver_scrub"), ""),
                            bh_driver_scrub_names[BH_DRIVER_SCRUB_OFF])
                     == 0,
    };

    for (size_t i = 0; i < bh_json_count(partitions); i++) {
        bh_json_value partition = bh_json_at(partitions, i);

        if (bh_json_number(bh_json_get(partition, "partition"), 0) == 0
            && strcmp(bh_json_text(bh_json_get(partition, "gpu"), ""), named->uuid) == 0)
            bh_unmanaged_add(&unmanaged, &(struct bh_unmanaged_instance){
                                             bh_json_text(bh_json_get(partition, "profile"), "?"),
                                             (uint32_t)bh_json_number(bh_json_get(partition, "start"), 0),
                                             (uint32_t)bh_json_number(bh_json_get(partition, "gi"), 0) });
    }
    return unmanaged;
}

/* Why Bulkhead changes nothing on it, by what its node said last. */
static void
gpus_put_unmanaged(struct bh_json_writer *w, const struct bh_dir_gpu *named,
                   const struct bh_gpu_facts_of *facts)
{
    struct bh_unmanaged unmanaged = gpus_unmanaged_of(named, facts);
    struct bh_buf why, fix;

    if (unmanaged.in_site && unmanaged.count)
        bh_json_u64(w, "foreign_instances", unmanaged.count);
    bh_buf_init(&why, UNMANAGED_TEXT_MAX);
    bh_buf_init(&fix, UNMANAGED_TEXT_MAX);
    if (bh_unmanaged_put(&unmanaged, &why, &fix)) {
        bh_json_str(w, "unmanaged_fix", bh_buf_text(&fix));
        bh_json_str(w, "unmanaged_why", bh_buf_text(&why));
    }
    bh_buf_fini(&why);
    bh_buf_fini(&fix);
}

static void
gpus_put_gpu(struct gpu_list *list, const struct bh_dir_gpu *named, const struct bh_gpu_view *gpu)
{
    const struct bh_gpu_facts_of *facts = bh_facts_gpu(&list->facts, named->uuid);
    const char *fence_why = facts ? bh_facts_fence_why(facts, list->visible.all) : "";
    bh_json_value sample = facts ? bh_facts_sample(facts) : NULL;
    struct bh_json_writer *w = &list->w;

    bh_json_open(w, NULL, '{');
    bh_json_bool(w, "cordoned", gpu->cordoned);
    gpus_put_parts(w, "dedicated", gpu->dedicated);
    if (gpu->xid || gpu->sign)
        gpus_put_fault(w, gpu);
    bh_json_bool(w, "fenced", gpu->fenced);
    if (gpu->fenced && *fence_why)
        bh_json_str(w, "fenced_why", fence_why);
    bh_json_str(w, "health", bh_gpus_health(gpu));
    if (gpu->health != BH_HEALTH_OK)
        bh_json_ns(w, "health_since_ns", gpu->since_ns);
    if (gpu->until_ns)
        bh_json_ns(w, "health_until_ns", gpu->until_ns);
    bh_json_str(w, "held", bh_held_names[gpu->held]);
    bh_json_u64(w, "id", gpu->gpu.v);
    gpus_put_parts(w, "idle", gpu->idle);
    bh_json_str(w, "layout", bh_pool_layout_names[gpu->layout]);
    bh_json_bool(w, "lone_carve", gpu->lone_carve);
    bh_json_bool(w, "managed", gpu->managed);
    bh_json_str(w, "mode", gpus_mode_of(list, gpu));
    bh_json_str(w, "node", facts ? facts->node->name : "");
    bh_json_str(w, "node_held", bh_held_names[gpu->node_held]);
    gpus_put_partitions(list, gpu);
    bh_json_bool(w, "reset_due", gpu->reset_due);
    bh_json_u64(w, "resets", gpu->resets);
    bh_json_u64(w, "share_percent", gpu->share_limit / (BH_GPU_PARTS / 100));
    gpus_put_parts(w, "unusable", gpu->unusable);
    gpus_put_parts(w, "used", gpu->used);
    bh_json_str(w, "uuid", named->uuid);
    if (facts && gpu->gpu.v && !gpu->managed)
        gpus_put_unmanaged(w, named, facts);
    gpus_put_geometry(w, (enum bh_gpu_model)gpu->model);
    if (sample)
        gpus_put_facts(w, sample);
    if (sample && !gpus_has_foreign(list, gpu))
        gpus_put_activity(w, sample);
    bh_json_close(w, '}');
}

static bool
gpus_is_known(const struct gpu_list *list, const char *uuid)
{
    const struct bh_directory *dir = list->call->dir;
    const struct bh_dir_gpu *named = bh_directory_gpu_uuid(dir, uuid);

    return named && list->q->gpus[named - dir->gpus].gpu.v;
}

/* GPUs that their nodes could not read yet: the engine takes them in when they can. */
static uint64_t
gpus_put_unread(struct gpu_list *list)
{
    const struct bh_gpu_view lost = { .fenced = true };
    uint64_t count = 0;

    for (uint32_t i = 0; i < list->facts.gpu_count; i++) {
        const struct bh_gpu_facts_of *facts = &list->facts.gpus[i];

        if (!*bh_facts_fence_why(facts, true) || gpus_is_known(list, facts->uuid))
            continue;
        gpus_put_gpu(list, &(struct bh_dir_gpu){ .uuid = facts->uuid }, &lost);
        count++;
    }
    return count;
}

static void
gpus_put_list(struct gpu_list *list)
{
    const struct bh_directory *dir = list->call->dir;
    uint64_t total = 0;

    bh_json_open(&list->w, NULL, '{');
    bh_json_open(&list->w, "items", '[');
    for (uint32_t i = 0; i < dir->gpu_count; i++) {
        if (!list->q->gpus[i].gpu.v)
            continue;
        gpus_put_gpu(list, &dir->gpus[i], &list->q->gpus[i]);
        total++;
    }
    total += gpus_put_unread(list);
    bh_json_close(&list->w, ']');
    bh_json_u64(&list->w, "total", total);
    bh_json_close(&list->w, '}');
}

static bh_rc
gpus_ask_all(struct bh_call *call, struct gpu_question *q, struct bh_err *err)
{
    bh_rc rc;

    q->dir = call->dir;
    q->partition_max = call->dir->gpu_count * PARTITIONS_A_GPU;
    rc = bh_call_alloc(call, call->dir->gpu_count * sizeof *q->gpus, &q->gpus, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, q->partition_max * sizeof *q->partitions, &q->partitions, err);
    if (rc != BH_OK)
        return rc;
    return bh_call_ask(call, ask_gpus, q, err);
}

bh_rc
bh_gpus_list(struct bh_call *call, struct bh_err *err)
{
    struct gpu_question q = { 0 };
    struct gpu_list list = { .call = call, .w = bh_call_writer(call), .q = &q };
    bh_rc rc = gpus_ask_all(call, &q, err);
    if (rc != BH_OK)
        return rc;

    rc = bh_visible_find(call, "job.view", &list.visible, err);
    if (rc != BH_OK)
        return rc;
    bh_facts_load(&call->api->options.owner, &list.facts);
    gpus_put_list(&list);
    bh_facts_fini(&list.facts);
    return BH_OK;
}
