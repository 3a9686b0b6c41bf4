#include "api/nodes/gpus.h"

#include <stdio.h>
#include <string.h>

#include "api/request/amounts.h"
#include "api/request/facts.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "model/unmanaged.h"
#include "wire/message_node.h"

/* At most twelve instances stand on a GPU of today; those being cleared come on top. */
enum { PARTITIONS_A_GPU = 24, SHOWN_MAX = 64, UNMANAGED_TEXT_MAX = 4096, FAULT_TEXT_MAX = 160 };

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
    struct bh_rows rows;
    struct bh_visible visible;
    const struct gpu_question *q;
    struct bh_facts facts; /* of the connected nodes */
    const char *one;       /* the UUID of the only one that is asked for; NULL: all */
    const char *node;      /* only those of that node; NULL: of all */
    bool found;
};

/* Whether a tenant that the caller does not see holds it: the GPU's `used` includes such partitions. */
static bool
gpus_is_foreign(const struct gpu_list *list, const struct bh_partition_view *partition)
{
    return partition->state != BH_PARTITION_IDLE && partition->tenant.v
           && !bh_visible_has(&list->visible, partition->tenant.v);
}

static void
gpus_fill_holder(const struct gpu_list *list, const struct bh_partition_view *partition,
                 struct bh_reply_gpu_partition *ret)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(list->call->dir, partition->tenant);

    if (partition->state == BH_PARTITION_IDLE || !partition->tenant.v)
        return;
    ret->job = partition->job.v;
    ret->tenant = tenant ? tenant->path : "";
}

/* What a share allows, and that it is no more than grade F. */
static void
gpus_fill_share(enum bh_gpu_model model, uint32_t profile, struct bh_reply_gpu_partition *ret)
{
    struct bh_share share;

    if (!bh_share_get((bh_profile_id){ profile }, &share))
        return;
    ret->assumed = bh_share_is_assumed(model);
    ret->cap_bytes = bh_share_cap_bytes(model, &share);
    ret->compute_parts = share.compute;
    ret->grade = bh_grade_names[BH_GRADE_F];
    ret->memory_parts = share.memory;
    ret->share_mode = bh_share_mode_names[share.mode];
}

/* A part of 10,000 of a report; one that is not known is not sent. */
static uint32_t
gpus_part_of(bh_json_value sample, const char *name)
{
    uint64_t part = bh_json_number(bh_json_get(sample, name), UINT64_MAX);

    return part <= 10000 ? (uint32_t)part : (uint32_t)BH_UNSET;
}

/* The MIG instance of a node's last samples; NULL: it was not sampled. */
static bh_json_value
gpus_find_instance(const struct bh_node_facts *node, uint64_t partition)
{
    bh_json_value instances = bh_json_get(bh_json_get(node->root, "samples"), "instances");

    for (size_t i = 0; i < bh_json_count(instances); i++)
        if (bh_json_number(bh_json_get(bh_json_at(instances, i), "partition"), 0) == partition)
            return bh_json_at(instances, i);
    return NULL;
}

/* What runs on it at this moment: shares have no figures of their own. */
static void
gpus_fill_use(const struct bh_gpu_facts_of *facts, const struct bh_partition *partition,
              struct bh_reply_gpu_partition *ret)
{
    bool whole = partition->profile == BH_PROFILE_WHOLE.v;
    bh_json_value sample =
        whole ? bh_facts_reading(facts) : gpus_find_instance(facts->node, partition->partition.v);
    uint64_t percent = bh_json_number(bh_json_get(sample, "utilisation"), UINT64_MAX);

    ret->busy_bp = gpus_part_of(sample, "busy_bp");
    if (ret->busy_bp == (uint32_t)BH_UNSET && percent <= 100)
        ret->busy_bp = (uint32_t)percent * 100;
    ret->memory_used_mib =
        (uint32_t)bh_json_number(bh_json_get(sample, "memory_used_mib"), (uint64_t)BH_UNSET);
    ret->sm_bp = gpus_part_of(sample, "sm_bp");
}

static void
gpus_fill_partition(const struct gpu_list *list, const struct bh_gpu_view *gpu,
                    const struct bh_partition_view *partition, char name[BH_PARTITION_NAME_MAX],
                    struct bh_reply_gpu_partition *ret)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ partition->partition.profile });

    bh_partition_name((enum bh_gpu_model)gpu->model, partition->partition.profile, name);
    *ret = (struct bh_reply_gpu_partition){
        .busy_bp = (uint32_t)BH_UNSET,
        .id = partition->partition.partition.v,
        .memory_used_mib = (uint32_t)BH_UNSET,
        .profile = name,
        .sm_bp = (uint32_t)BH_UNSET,
        .start = partition->partition.start,
        .state = bh_partition_state_names[partition->state],
    };
    gpus_fill_share((enum bh_gpu_model)gpu->model, partition->partition.profile, ret);
    if (profile) {
        ret->assumed = profile->assumed;
        ret->memory_mib = profile->memory_mib;
        ret->slices = profile->compute_slices;
        ret->units = profile->memory_units;
    }
    gpus_fill_holder(list, partition, ret);
}

/* The partitions of a GPU that the caller sees, with the texts that they borrow. */
struct gpu_partitions {
    struct bh_reply_gpu_partition items[SHOWN_MAX];
    char names[SHOWN_MAX][BH_PARTITION_NAME_MAX];
};

static uint32_t
gpus_fill_partitions(const struct gpu_list *list, const struct bh_gpu_facts_of *facts,
                     const struct bh_gpu_view *gpu, struct gpu_partitions *ret)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < list->q->partition_count && count < SHOWN_MAX; i++) {
        const struct bh_partition_view *partition = &list->q->partitions[i];

        if (!bh_same(partition->partition.gpu, gpu->gpu) || gpus_is_foreign(list, partition))
            continue;
        gpus_fill_partition(list, gpu, partition, ret->names[count], &ret->items[count]);
        if (facts)
            gpus_fill_use(facts, &partition->partition, &ret->items[count]);
        count++;
    }
    return count;
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
gpus_fill_geometry(enum bh_gpu_model model, struct bh_reply_gpu_shown *ret)
{
    const struct bh_model_facts *facts = bh_model_facts(model);

    ret->assumed = gpus_is_assumed(model);
    if (model == BH_GPU_MODEL_NONE || !facts)
        return;
    ret->compute_slices = facts->compute_slices;
    ret->memory_units = facts->memory_units;
    ret->model = facts->name;
}

/* "mig", "shared", "whole" or "free"; "unmanaged" has no mode. */
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

struct bh_reply_gpu_parts
bh_gpus_parts(struct bh_parts parts, char text[BH_AMOUNT_SIZE])
{
    return (struct bh_reply_gpu_parts){ .compute = parts.compute,
                                        .gpus = bh_gpus_text(bh_parts_equivalent(parts), text),
                                        .memory = parts.memory };
}

struct bh_reply_gpu_unusable_by
bh_gpus_unusable_by(const struct bh_parts *causes, char texts[BH_UNUSABLES][BH_AMOUNT_SIZE])
{
#define CAUSE(cause) bh_gpus_parts(causes[cause], texts[cause])
    return (struct bh_reply_gpu_unusable_by){ .away = CAUSE(BH_UNUSABLE_AWAY),
                                              .carving = CAUSE(BH_UNUSABLE_CARVING),
                                              .cordoned = CAUSE(BH_UNUSABLE_CORDONED),
                                              .fault = CAUSE(BH_UNUSABLE_FAULT),
                                              .geometry = CAUSE(BH_UNUSABLE_GEOMETRY),
                                              .reserve = CAUSE(BH_UNUSABLE_RESERVE),
                                              .unheard = CAUSE(BH_UNUSABLE_UNHEARD) };
#undef CAUSE
}

/* What the node last said; a number that it did not send is 0. */
static uint64_t
gpus_number_of(bh_json_value facts, const char *name)
{
    return bh_json_number(bh_json_get(facts, name), 0);
}

/* What the driver reads; one that it does not give was not sent. */
static uint64_t
gpus_reading_of(bh_json_value facts, const char *name)
{
    return bh_json_number(bh_json_get(facts, name), (uint64_t)BH_UNSET);
}

/* What runs on the GPU at this moment, of whatever tenant. */
static void
gpus_fill_activity(bh_json_value facts, struct bh_reply_gpu_shown *ret)
{
    uint64_t utilisation = gpus_reading_of(facts, "utilisation");

    ret->memory_used_mib = gpus_reading_of(facts, "memory_used_mib");
    ret->power_mw = gpus_reading_of(facts, "power_mw");
    ret->temperature_c = gpus_reading_of(facts, "temperature_c");
    if (utilisation <= 100)
        ret->utilisation = utilisation;
}

static void
gpus_fill_facts(bh_json_value facts, struct bh_reply_gpu_shown *ret)
{
    const char *trouble = bh_json_text(bh_json_get(facts, "trouble"), "");

    ret->index = gpus_number_of(facts, "index");
    if (gpus_number_of(facts, "memory_mib") > 0) /* 0: its driver did not answer */
        ret->memory_mib = gpus_number_of(facts, "memory_mib");
    ret->pci = bh_json_text(bh_json_get(facts, "pci"), "");
    ret->product = bh_json_text(bh_json_get(facts, "product"), "");
    ret->trouble = *trouble ? trouble : NULL;
}

/* What it was: "XID 48, double-bit ECC error". */
static const char *
gpus_fault_of(const struct bh_gpu_view *gpu, char text[FAULT_TEXT_MAX])
{
    if (gpu->xid)
        snprintf(text, FAULT_TEXT_MAX, "XID %u, %s", gpu->xid, bh_xid_get(gpu->xid)->doc);
    else
        snprintf(text, FAULT_TEXT_MAX, "%s", bh_health_rule_doc((enum bh_health_rule)gpu->sign));
    return text;
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

/* Why Bulkhead changes nothing on it, by what its node said last; the texts are in the buffers. */
static void
gpus_fill_unmanaged(const struct bh_dir_gpu *named, const struct bh_gpu_facts_of *facts,
                    struct bh_buf buffers[2], struct bh_reply_gpu_shown *ret)
{
    struct bh_unmanaged unmanaged = gpus_unmanaged_of(named, facts);

    if (unmanaged.in_site)
        ret->foreign_instances = unmanaged.count;
    if (!bh_unmanaged_put(&unmanaged, &buffers[0], &buffers[1]))
        return;
    ret->unmanaged_why = bh_buf_text(&buffers[0]);
    ret->unmanaged_fix = bh_buf_text(&buffers[1]);
}

static void
gpus_fill_state(const struct bh_gpu_view *gpu, struct bh_reply_gpu_shown *ret)
{
    ret->cordon = bh_held_names[gpu->held];
    ret->cordoned = gpu->cordoned;
    ret->fenced = gpu->fenced;
    ret->health = bh_gpus_health(gpu);
    if (gpu->health != BH_HEALTH_OK)
        ret->health_since_ns = gpu->since_ns;
    ret->health_until_ns = gpu->until_ns;
    ret->id = gpu->gpu.v;
    ret->layout = bh_pool_layout_names[gpu->layout];
    ret->link = gpu->link;
    ret->lone_carve = gpu->lone_carve;
    ret->managed = gpu->managed;
    ret->node_cordon = bh_held_names[gpu->node_held];
    if (gpu->numa)
        ret->numa = gpu->numa - 1;
    ret->reset_due = gpu->reset_due;
    ret->resets = gpu->resets;
    ret->share_percent = gpu->share_limit / (BH_GPU_PARTS / 100);
}

/* What its driver said the last time that it was asked; old figures are not shown. */
static void
gpus_fill_sensors(const struct gpu_list *list, const struct bh_gpu_facts_of *facts,
                  const struct bh_gpu_view *gpu, struct bh_reply_gpu_shown *ret)
{
    bh_json_value reading = bh_facts_reading(facts);

    ret->sensors_withheld = gpus_has_foreign(list, gpu);
    if (!reading)
        return;
    ret->ecc_uncorrected = gpus_reading_of(reading, "ecc_uncorrected");
    ret->sampled_ns = bh_facts_reported_ns(facts->node);
    if (!ret->sensors_withheld)
        gpus_fill_activity(reading, ret);
}

/* What its node says of it. */
static void
gpus_fill_report(const struct gpu_list *list, const struct bh_gpu_facts_of *facts,
                 const struct bh_gpu_view *gpu, struct bh_reply_gpu_shown *ret)
{
    const char *fence_why = bh_facts_fence_why(facts, list->visible.all);

    ret->node = facts->node->name;
    if (gpu->fenced && *fence_why)
        ret->fenced_why = fence_why;
    gpus_fill_facts(bh_facts_sample(facts), ret);
    gpus_fill_sensors(list, facts, gpu, ret);
}

/* Why parts are unusable tells how others' partitions lie, and that some are being made. */
static bool
gpus_tells_causes(const struct gpu_list *list, const struct bh_gpu_view *gpu)
{
    return list->visible.all && bh_parts_equivalent(gpu->unusable) > 0;
}

/* As a row of the list, or as the reply where one GPU is asked for. */
static void
gpus_put_gpu(struct gpu_list *list, const struct bh_dir_gpu *named, const struct bh_gpu_view *gpu)
{
    const struct bh_gpu_facts_of *facts = bh_facts_gpu(&list->facts, named->uuid);
    char causes[BH_UNUSABLES][BH_AMOUNT_SIZE];
    const struct bh_reply_gpu_unusable_by unusable_by = bh_gpus_unusable_by(gpu->causes, causes);
    struct gpu_partitions partitions;
    struct bh_buf words[2];
    char fault[FAULT_TEXT_MAX];
    struct bh_reply_gpu_shown row = {
        .dedicated = bh_gpus_parts(gpu->dedicated, BH_AMOUNT_TEXT),
        .idle = bh_gpus_parts(gpu->idle, BH_AMOUNT_TEXT),
        .unusable = bh_gpus_parts(gpu->unusable, BH_AMOUNT_TEXT),
        .used = bh_gpus_parts(gpu->used, BH_AMOUNT_TEXT),
        .fault = gpu->xid || gpu->sign ? gpus_fault_of(gpu, fault) : NULL,
        .mode = gpus_mode_of(list, gpu),
        .node = "",
        .partitions = { partitions.items, gpus_fill_partitions(list, facts, gpu, &partitions) },
        .uuid = named->uuid,
        .ecc_uncorrected = BH_UNSET,
        .health_since_ns = BH_UNSET,
        .index = BH_UNSET,
        .memory_mib = BH_UNSET,
        .memory_used_mib = BH_UNSET,
        .numa = BH_UNSET,
        .power_mw = BH_UNSET,
        .temperature_c = BH_UNSET,
        .unusable_by = gpus_tells_causes(list, gpu) ? &unusable_by : NULL,
        .utilisation = BH_UNSET,
    };

    bh_buf_init(&words[0], UNMANAGED_TEXT_MAX);
    bh_buf_init(&words[1], UNMANAGED_TEXT_MAX);
    gpus_fill_state(gpu, &row);
    gpus_fill_geometry((enum bh_gpu_model)gpu->model, &row);
    if (facts)
        gpus_fill_report(list, facts, gpu, &row);
    if (facts && gpu->gpu.v && !gpu->managed)
        gpus_fill_unmanaged(named, facts, words, &row);
    list->found = true;
    if (list->one)
        bh_reply_put(list->call, &bh_reply_gpu_shown_fields, &row);
    else
        (void)bh_rows_put(&list->rows, &row);
    bh_buf_fini(&words[0]);
    bh_buf_fini(&words[1]);
}

static bool
gpus_is_known(const struct gpu_list *list, const char *uuid)
{
    const struct bh_directory *dir = list->call->dir;
    const struct bh_dir_gpu *named = bh_directory_gpu_uuid(dir, uuid);

    return named && list->q->gpus[named - dir->gpus].gpu.v;
}

static bool
gpus_is_asked_for(const struct gpu_list *list, const char *uuid)
{
    const struct bh_gpu_facts_of *facts = list->node ? bh_facts_gpu(&list->facts, uuid) : NULL;

    if (list->one)
        return strcmp(list->one, uuid) == 0;
    return !list->node || (facts && strcmp(facts->node->name, list->node) == 0);
}

/* GPUs that their nodes could not read yet: the engine takes them in when they can. */
static void
gpus_put_unread(struct gpu_list *list)
{
    const struct bh_gpu_view lost = { .fenced = true };

    for (uint32_t i = 0; i < list->facts.gpu_count; i++) {
        const struct bh_gpu_facts_of *facts = &list->facts.gpus[i];

        if (*bh_facts_fence_why(facts, true) && !gpus_is_known(list, facts->uuid)
            && gpus_is_asked_for(list, facts->uuid))
            gpus_put_gpu(list, &(struct bh_dir_gpu){ .uuid = facts->uuid }, &lost);
    }
}

static void
gpus_put_all(struct gpu_list *list)
{
    const struct bh_directory *dir = list->call->dir;

    for (uint32_t i = 0; i < dir->gpu_count; i++)
        if (list->q->gpus[i].gpu.v && gpus_is_asked_for(list, dir->gpus[i].uuid))
            gpus_put_gpu(list, &dir->gpus[i], &list->q->gpus[i]);
    gpus_put_unread(list);
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

static bh_rc
gpus_load(struct gpu_list *list, struct gpu_question *q, struct bh_err *err)
{
    bh_rc rc = gpus_ask_all(list->call, q, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_visible_find(list->call, "job.view", &list->visible, err);
    if (rc != BH_OK)
        return rc;
    list->q = q;
    bh_facts_load(&list->call->api->options.owner, &list->facts);
    return BH_OK;
}

bh_rc
bh_gpus_list(struct bh_call *call, struct bh_err *err)
{
    struct gpu_question q = { 0 };
    struct gpu_list list = { .call = call, .node = call->query.node };
    bh_rc rc = gpus_load(&list, &q, err);

    if (rc != BH_OK)
        return rc;
    list.rows = bh_rows_begin(call, &bh_reply_gpu_list_fields);
    gpus_put_all(&list);
    bh_rows_end(&list.rows, &(struct bh_reply_gpu_list){ .total = list.rows.count });
    bh_facts_fini(&list.facts);
    return BH_OK;
}

bh_rc
bh_gpus_get(struct bh_call *call, struct bh_err *err)
{
    struct gpu_question q = { 0 };
    struct gpu_list list = { .call = call, .one = call->id };
    bh_rc rc = gpus_load(&list, &q, err);

    if (rc != BH_OK)
        return rc;
    gpus_put_all(&list);
    bh_facts_fini(&list.facts);
    if (list.found)
        return BH_OK;
    bh_err_set(err, BH_NOT_FOUND, "no GPU %.80s", call->id);
    return bh_err_hint(err, "`bulkhead gpu -o wide` lists them by their UUIDs");
}
