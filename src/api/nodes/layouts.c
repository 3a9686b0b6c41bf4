#include "api/nodes/layouts.h"

#include <stdio.h>
#include <string.h>

#include "api/request/facts.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "base/assert.h"
#include "base/num.h"
#include "policy/authz.h"

enum { PARTITIONS_A_GPU = 16, SHOWN_MAX = 64, PLACEMENT_SIZE = 48 };

/* A GPU as it is and, where the document names it, as it shall be. */
struct layouts_row {
    const struct bh_dir_gpu *named;
    const char *node;    /* "" while no node speaks of it */
    const char *trouble; /* why the last change on the node failed; "": it did not */
    uint64_t index;
    bool known, divides; /* the engine knows it; it is managed and can be divided */
    struct bh_gpu_view gpu;
    struct bh_layout_view gpu_layout;
    const struct bh_layout_entry *entry; /* NULL: it is not named */
    struct bh_layout_plan plan;
};

struct layouts {
    struct bh_call *call;
    struct bh_rows rows;
    struct bh_facts facts;
    struct bh_visible visible;
    struct layouts_row *gpus; /* beside dir->gpus */
    struct bh_partition_view *partitions;
    uint32_t gpu_count, partition_count, partition_max;
    uint32_t changes;
};

/* ---- what there is ---- */

/* On the owner's thread. */
static void
layouts_read_engine(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct layouts *l = self;
    uint32_t cursor = 0;

    for (uint32_t i = 0; i < l->gpu_count; i++) {
        struct layouts_row *row = &l->gpus[i];

        row->known = bh_view_gpu(engine, row->named->id, &row->gpu)
                     && bh_view_layout(engine, row->named->id, &row->gpu_layout);
        row->divides = row->known && row->gpu.managed && row->gpu.mig_capable;
    }
    while (l->partition_count < l->partition_max
           && bh_view_next_partition(engine, &cursor, &l->partitions[l->partition_count]))
        l->partition_count++;
}

static void
layouts_name_rows(struct layouts *l)
{
    for (uint32_t i = 0; i < l->gpu_count; i++) {
        const struct bh_gpu_facts_of *facts;

        l->gpus[i].named = &l->call->dir->gpus[i];
        facts = bh_facts_gpu(&l->facts, l->gpus[i].named->uuid);
        l->gpus[i].node = facts ? facts->node->name : "";
        l->gpus[i].trouble = facts ? bh_json_text(bh_json_get(facts->gpu, "trouble"), "") : "";
        l->gpus[i].index = facts ? bh_json_number(bh_json_get(facts->gpu, "index"), 0) : 0;
    }
}

static bh_rc
layouts_load(struct layouts *l, struct bh_err *err)
{
    struct bh_call *call = l->call;
    bh_rc rc;

    l->gpu_count = call->dir->gpu_count;
    l->partition_max = l->gpu_count * PARTITIONS_A_GPU;
    rc = bh_call_alloc(call, (l->gpu_count + 1) * sizeof *l->gpus, &l->gpus, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, (l->partition_max + 1) * sizeof *l->partitions, &l->partitions, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_visible_find(call, "job.view", &l->visible, err);
    if (rc != BH_OK)
        return rc;
    memset(l->gpus, 0, l->gpu_count * sizeof *l->gpus);
    bh_facts_load(&call->api->options.owner, &l->facts);
    layouts_name_rows(l);
    return bh_call_ask(call, layouts_read_engine, l, err);
}

static void
layouts_unload_auto(struct layouts *l)
{
    bh_facts_fini(&l->facts);
}

/* ---- what shall be ---- */

static bool
layouts_is_at(const struct layouts_row *row, const char *node, size_t length, uint64_t index)
{
    return strlen(row->node) == length && strncmp(row->node, node, length) == 0 && row->index == index;
}

/* Whether an entry's "GPU-..." or "node/0" means the row. */
static bool
layouts_is_meant(const struct layouts_row *row, const char *text)
{
    const char *slash = strrchr(text, '/');
    struct bh_err unused;
    uint64_t index;

    if (!slash)
        return strcmp(row->named->uuid, text) == 0;
    return bh_parse_u64(slash + 1, &index, &unused) == BH_OK && *row->node
           && layouts_is_at(row, text, (size_t)(slash - text), index);
}

/* Why nothing may be declared for the GPU. */
static bh_rc
layouts_explain_unmanaged(const struct layouts_row *row, struct bh_err *err)
{
    const char *uuid = row->named->uuid;

    if (!row->known)
        return bh_err_set(err, BH_CONFLICT, "GPU %s is not there: no node speaks of it", uuid);
    if (!row->gpu.managed) {
        bh_err_set(err, BH_CONFLICT, "GPU %s is not Bulkhead's to change", uuid);
        return bh_err_hint(err,
                           "it needs `managed: true` in the site file, gpus = %s in the "
                           "node's node.conf, and no instances that others made",
                           uuid);
    }
    if (!row->gpu.mig_capable)
        return bh_err_set(err, BH_CONFLICT, "GPU %s cannot be divided: it has no MIG mode", uuid);
    bh_err_set(err, BH_CONFLICT, "GPU %s is fenced", uuid);
    return bh_err_hint(err, "`bulkhead gpu` says why; it must answer again first");
}

static bh_rc
layouts_name_row(struct layouts_row *row, const struct bh_layout_entry *entry, struct bh_err *err)
{
    bh_rc rc;

    if (row->entry) {
        bh_err_set(err, BH_INVALID, "GPU %s is named twice", row->named->uuid);
        return bh_err_hint(err, "by \"%s\" and by \"%s\"", row->entry->gpu, entry->gpu);
    }
    if (!row->divides || row->gpu.fenced)
        return layouts_explain_unmanaged(row, err);
    if (entry->forget && entry->partitions.count)
        return bh_err_set(err, BH_INVALID, "\"%s\": forget is used alone, without partitions", entry->gpu);
    rc = bh_layout_plan_partitions((enum bh_gpu_model)row->gpu.model, &entry->partitions, &row->plan, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "GPU %s", row->named->uuid);
    row->entry = entry;
    return BH_OK;
}

static bh_rc
layouts_resolve_entry(struct layouts *l, const struct bh_layout_entry *entry, struct bh_err *err)
{
    bool all = strcmp(entry->gpu, "all") == 0;
    uint32_t found = 0;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < l->gpu_count && rc == BH_OK; i++) {
        struct layouts_row *row = &l->gpus[i];

        if (all ? !row->divides : !layouts_is_meant(row, entry->gpu))
            continue;
        rc = layouts_name_row(row, entry, err);
        found++;
    }
    if (rc != BH_OK || found)
        return rc;
    bh_err_set(err, BH_INVALID, "there is no GPU \"%.80s\"", entry->gpu);
    return bh_err_hint(err, "name it by its UUID, by its node and index as gpu1/0, or say all; "
                            "`bulkhead gpu -o wide` lists them");
}

/* The GPUs with what the request's layout says of them. */
static bh_rc
layouts_read(struct layouts *l, struct bh_err *err)
{
    struct bh_layouts document;
    const struct bh_layout_entry *entries;
    bh_rc rc = bh_call_body(l->call, &bh_layout_fields, &document, err);

    if (rc != BH_OK)
        return rc;
    rc = layouts_load(l, err);
    entries = document.layouts.items;
    for (uint32_t i = 0; i < document.layouts.count && rc == BH_OK; i++)
        rc = layouts_resolve_entry(l, &entries[i], err);
    return rc;
}

static bool
layouts_plans(const struct bh_layout_plan *plan, uint32_t profile, uint32_t start)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->partitions[i].profile->id.v == profile && plan->partitions[i].start == start)
            return true;
    return false;
}

/* The partition that stands at exactly that place, or NULL. */
static const struct bh_partition_view *
layouts_partition_at(const struct layouts *l, const struct layouts_row *row, uint32_t profile, uint32_t start)
{
    for (uint32_t i = 0; i < l->partition_count; i++) {
        const struct bh_partition_view *partition = &l->partitions[i];

        if (bh_same(partition->partition.gpu, row->gpu.gpu) && partition->state != BH_PARTITION_CLEARING
            && partition->partition.profile == profile && partition->partition.start == start)
            return partition;
    }
    return NULL;
}

/* ---- writing ---- */

/* The lists of a GPU's row, while it is written. */
struct layout_lists {
    char texts[3 * SHOWN_MAX][PLACEMENT_SIZE];
    const char *names[3][SHOWN_MAX];
    struct bh_reply_layout_partition partitions[SHOWN_MAX];
    uint32_t texts_used;
};

static const char *
layouts_placement(struct layout_lists *lists, uint32_t profile_id, uint32_t start)
{
    char name[BH_PARTITION_NAME_MAX], *text = lists->texts[lists->texts_used++];

    BH_ASSERT(lists->texts_used <= BH_COUNT(lists->texts));
    bh_partition_name(BH_GPU_MODEL_NONE, profile_id, name);
    if (profile_id == BH_PROFILE_WHOLE.v)
        snprintf(text, PLACEMENT_SIZE, "%s", name);
    else
        snprintf(text, PLACEMENT_SIZE, "%s@%u", name, start);
    return text;
}

static const char *
layouts_model_of(const struct layouts_row *row)
{
    const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)row->gpu.model);

    return facts ? facts->name : "";
}

/* Partitions of the GPU that are not planned: those in use are waited for, others go. */
static bool
layouts_is_unplanned(const struct layouts_row *row, const struct bh_layout_plan *plan,
                     const struct bh_partition_view *partition, bool leased)
{
    bool used = partition->state == BH_PARTITION_LEASED
                || (partition->state == BH_PARTITION_CARVING && partition->lease.v);

    return bh_same(partition->partition.gpu, row->gpu.gpu) && partition->state != BH_PARTITION_CLEARING
           && !layouts_plans(plan, partition->partition.profile, partition->partition.start)
           && used == leased;
}

static struct bh_texts
layouts_list_unplanned(struct layouts *l, const struct layouts_row *row, const struct bh_layout_plan *plan,
                       struct layout_lists *lists)
{
    struct bh_texts list = { lists->names[0], 0 };

    for (uint32_t i = 0; i < l->partition_count && list.count < SHOWN_MAX; i++)
        if (layouts_is_unplanned(row, plan, &l->partitions[i], false))
            list.items[list.count++] = layouts_placement(lists, l->partitions[i].partition.profile,
                                                         l->partitions[i].partition.start);
    l->changes += list.count;
    return list;
}

/* What is in the way and has to end first. */
static struct bh_list
layouts_list_waits(struct layouts *l, const struct layouts_row *row, const struct bh_layout_plan *plan,
                   struct layout_lists *lists)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < l->partition_count && count < SHOWN_MAX; i++) {
        const struct bh_partition_view *partition = &l->partitions[i];
        bool visible = bh_visible_has(&l->visible, partition->tenant.v);

        if (!layouts_is_unplanned(row, plan, partition, true))
            continue;
        lists->partitions[count++] = (struct bh_reply_layout_partition){
            .job = visible ? partition->job.v : (uint64_t)BH_UNSET,
            .partition = layouts_placement(lists, partition->partition.profile, partition->partition.start),
        };
    }
    l->changes += count;
    return (struct bh_list){ lists->partitions, count };
}

static struct bh_texts
layouts_list_planned(struct layouts *l, const struct layouts_row *row, const struct bh_layout_plan *plan,
                     struct layout_lists *lists, bool there)
{
    struct bh_texts list = { lists->names[there ? 1 : 2], 0 };

    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t profile = plan->partitions[i].profile->id.v, start = plan->partitions[i].start;

        if ((layouts_partition_at(l, row, profile, start) != NULL) == there)
            list.items[list.count++] = layouts_placement(lists, profile, start);
    }
    if (!there)
        l->changes += list.count;
    return list;
}

static void
layouts_put_difference(struct layouts *l, const struct layouts_row *row)
{
    static const struct bh_layout_plan nothing;
    const struct bh_layout_plan *plan = row->entry->forget ? &nothing : &row->plan;
    struct layout_lists lists = { .texts_used = 0 };
    struct bh_reply_layout_difference reply = {
        .create = layouts_list_planned(l, row, plan, &lists, false),
        .forget = row->entry->forget,
        .gpu = row->named->uuid,
        .index = row->index,
        .keep = layouts_list_planned(l, row, plan, &lists, true),
        .model = layouts_model_of(row),
        .node = row->node,
    };

    if (!row->entry->forget) {
        reply.destroy = layouts_list_unplanned(l, row, plan, &lists);
        reply.waits = layouts_list_waits(l, row, plan, &lists);
    }
    (void)bh_rows_put(&l->rows, &reply);
}

/* Whether the partition is shown: one that another tenant holds is hidden from a caller that may not see that
 * tenant's jobs. */
static bool
layouts_is_shown(const struct layouts *l, const struct layouts_row *row,
                 const struct bh_partition_view *partition)
{
    return bh_same(partition->partition.gpu, row->gpu.gpu)
           && (partition->state == BH_PARTITION_IDLE || !partition->tenant.v
               || bh_visible_has(&l->visible, partition->tenant.v));
}

static bool
layouts_is_withheld(const struct layouts *l, const struct layouts_row *row)
{
    for (uint32_t i = 0; i < l->partition_count; i++)
        if (bh_same(l->partitions[i].partition.gpu, row->gpu.gpu)
            && !layouts_is_shown(l, row, &l->partitions[i]))
            return true;
    return false;
}

/* The partitions that it has, with jobs and states, and for a table. */
static uint32_t
layouts_fill_partitions(const struct layouts *l, const struct layouts_row *row, struct layout_lists *lists)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < l->partition_count && count < SHOWN_MAX; i++) {
        const struct bh_partition_view *partition = &l->partitions[i];

        if (!layouts_is_shown(l, row, partition))
            continue;
        lists->names[0][count] =
            layouts_placement(lists, partition->partition.profile, partition->partition.start);
        lists->partitions[count] = (struct bh_reply_layout_partition){
            .job = partition->job.v ? partition->job.v : (uint64_t)BH_UNSET,
            .partition = lists->names[0][count],
            .state = bh_partition_state_names[partition->state],
        };
        count++;
    }
    return count;
}

static void
layouts_put_row(struct layouts *l, const struct layouts_row *row)
{
    const struct bh_layout_list *wanted = &row->gpu_layout.wanted;
    struct layout_lists lists = { .texts_used = 0 };
    uint32_t count = layouts_fill_partitions(l, row, &lists);
    struct bh_reply_layout_shown reply = {
        .change = row->gpu_layout.apply,
        .declared = { lists.names[1], wanted->count },
        .failure = row->gpu_layout.rc ? bh_rc_name((bh_rc)row->gpu_layout.rc) : NULL,
        .gpu = row->named->uuid,
        .index = row->index,
        .is_declared = wanted->mode != BH_LAYOUT_UNDECLARED,
        .layout = { lists.names[0], count },
        .model = layouts_model_of(row),
        .node = row->node,
        .partitions = { lists.partitions, count },
        .state = bh_layout_state_names[row->gpu_layout.state],
        .trouble = *row->trouble ? row->trouble : NULL,
        .withheld = layouts_is_withheld(l, row),
    };

    for (uint32_t i = 0; i < wanted->count; i++)
        lists.names[1][i] =
            layouts_placement(&lists, wanted->partitions[i].profile, wanted->partitions[i].start);
    (void)bh_rows_put(&l->rows, &reply);
}

/* ---- the resources ---- */

bh_rc
bh_layouts_list(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(layouts_unload) struct layouts l = { .call = call };
    const char *only = call->query.gpu;
    bh_rc rc = layouts_load(&l, err);

    if (rc != BH_OK)
        return rc;
    l.rows = bh_rows_begin(call, &bh_reply_layout_list_fields);
    for (uint32_t i = 0; i < l.gpu_count; i++)
        if (l.gpus[i].divides && (!only || strcmp(only, l.gpus[i].named->uuid) == 0))
            layouts_put_row(&l, &l.gpus[i]);
    bh_rows_end(&l.rows, &(struct bh_reply_layout_list){ .total = l.rows.count });
    return BH_OK;
}

bh_rc
bh_layouts_diff(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(layouts_unload) struct layouts l = { .call = call };
    bh_rc rc = layouts_read(&l, err);

    if (rc != BH_OK)
        return rc;
    l.rows = bh_rows_begin(call, &bh_reply_layout_difference_list_fields);
    for (uint32_t i = 0; i < l.gpu_count; i++)
        if (l.gpus[i].entry)
            layouts_put_difference(&l, &l.gpus[i]);
    bh_rows_end(&l.rows, &(struct bh_reply_layout_difference_list){ .total = l.changes });
    return BH_OK;
}

static struct bh_ev_layout
layouts_event_of(const struct layouts_row *row)
{
    struct bh_ev_layout event = { .gpu = row->gpu.gpu, .mode = BH_LAYOUT_DECLARED };

    if (row->entry->forget) {
        event.mode = BH_LAYOUT_UNDECLARED;
        return event;
    }
    event.partition_count = row->plan.count;
    for (uint32_t i = 0; i < row->plan.count; i++)
        event.partitions[i] = (struct bh_ev_layout_partition){ row->plan.partitions[i].profile->id.v,
                                                               row->plan.partitions[i].start };
    return event;
}

bh_rc
bh_layouts_apply(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(layouts_unload) struct layouts l = { .call = call };
    struct bh_command command = { .standing_count = 0 };
    struct bh_ev_layout *events;
    struct bh_verdict verdict =
        bh_authz_check(call->dir, &call->caller.subject, call->op->verb, (bh_tenant_id){ 0 });
    bh_rc rc;

    if (!verdict.allow) /* before the document is looked at; the owner asks again */
        return bh_call_deny(call, (struct bh_denial){ call->op->verb, verdict, BH_REACH_OBJECT },
                            (bh_tenant_id){ 0 }, err);
    rc = layouts_read(&l, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, (l.gpu_count + 1) * sizeof *events, &events, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < l.gpu_count; i++)
        if (l.gpus[i].entry)
            events[command.standing_count++] = layouts_event_of(&l.gpus[i]);
    if (command.standing_count == 0)
        return bh_err_set(err, BH_INVALID, "the layout names no GPU");
    command.gpu_layout = events;
    return bh_call_send(call, &command, err);
}

bh_rc
bh_layouts_rollback(struct bh_call *call, struct bh_err *err)
{
    struct bh_command command = { .standing_count = 0 };

    return bh_call_send(call, &command, err);
}
