#include "api/nodes/layouts.h"

#include <stdio.h>
#include <string.h>

#include "api/request/facts.h"
#include "api/request/visible.h"
#include "base/num.h"
#include "policy/authz.h"

enum { PARTITIONS_A_GPU = 16 };

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
    struct bh_json_writer w;
    struct bh_facts facts;
    struct bh_visible visible;
    struct layouts_row *rows; /* beside dir->gpus */
    struct bh_partition_view *partitions;
    uint32_t row_count, partition_count, partition_max;
    uint32_t changes;
};

/* ---- what there is ---- */

/* On the owner's thread. */
static void
layouts_read_engine(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct layouts *l = self;
    uint32_t cursor = 0;

    for (uint32_t i = 0; i < l->row_count; i++) {
        struct layouts_row *row = &l->rows[i];

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
    for (uint32_t i = 0; i < l->row_count; i++) {
        const struct bh_gpu_facts_of *facts;

        l->rows[i].named = &l->call->dir->gpus[i];
        facts = bh_facts_gpu(&l->facts, l->rows[i].named->uuid);
        l->rows[i].node = facts ? facts->node->name : "";
        l->rows[i].trouble = facts ? bh_json_text(bh_json_get(facts->gpu, "trouble"), "") : "";
        l->rows[i].index = facts ? bh_json_number(bh_json_get(facts->gpu, "index"), 0) : 0;
    }
}

static bh_rc
layouts_load(struct layouts *l, struct bh_err *err)
{
    struct bh_call *call = l->call;
    bh_rc rc;

    l->row_count = call->dir->gpu_count;
    l->partition_max = l->row_count * PARTITIONS_A_GPU;
    rc = bh_call_alloc(call, (l->row_count + 1) * sizeof *l->rows, &l->rows, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, (l->partition_max + 1) * sizeof *l->partitions, &l->partitions, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_visible_find(call, "job.view", &l->visible, err);
    if (rc != BH_OK)
        return rc;
    memset(l->rows, 0, l->row_count * sizeof *l->rows);
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
        return bh_err_set(err, BH_INVALID, "\"%s\": forget stands alone, without pieces", entry->gpu);
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

    for (uint32_t i = 0; i < l->row_count && rc == BH_OK; i++) {
        struct layouts_row *row = &l->rows[i];

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

static bh_rc
layouts_resolve(struct layouts *l, const struct bh_layouts *document, struct bh_err *err)
{
    const struct bh_layout_entry *entries = document->layouts.items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < document->layouts.count && rc == BH_OK; i++)
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

static void
layouts_put_placement(struct bh_json_writer *w, const char *key, uint32_t profile_id, uint32_t start)
{
    char text[48], name[BH_PARTITION_NAME_MAX];

    bh_partition_name(BH_GPU_MODEL_NONE, profile_id, name);
    snprintf(text, sizeof text, "%s@%u", name, start);
    bh_json_str(w, key, profile_id == BH_PROFILE_WHOLE.v ? name : text);
}

static void
layouts_put_names(struct layouts *l, const struct layouts_row *row)
{
    const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)row->gpu.model);

    bh_json_str(&l->w, "gpu", row->named->uuid);
    bh_json_u64(&l->w, "index", row->index);
    bh_json_str(&l->w, "model", facts ? facts->name : "");
    bh_json_str(&l->w, "node", row->node);
}

/* What is in the way and has to end first. */
static void
layouts_put_wait(struct layouts *l, const struct bh_partition_view *partition)
{
    struct bh_json_writer *w = &l->w;

    bh_json_open(w, NULL, '{');
    if (bh_visible_has(&l->visible, partition->tenant.v))
        bh_json_u64(w, "job", partition->job.v);
    layouts_put_placement(w, "piece", partition->partition.profile, partition->partition.start);
    bh_json_close(w, '}');
}

/* Pieces of the GPU that are not planned: those in use are waited for, others go. */
static void
layouts_put_unplanned(struct layouts *l, const struct layouts_row *row, const char *key, bool leased)
{
    bh_json_open(&l->w, key, '[');
    for (uint32_t i = 0; i < l->partition_count; i++) {
        const struct bh_partition_view *partition = &l->partitions[i];
        bool used = partition->state == BH_PARTITION_LEASED
                    || (partition->state == BH_PARTITION_CARVING && partition->lease.v);

        if (!bh_same(partition->partition.gpu, row->gpu.gpu) || partition->state == BH_PARTITION_CLEARING
            || layouts_plans(&row->plan, partition->partition.profile, partition->partition.start)
            || used != leased)
            continue;
        if (leased)
            layouts_put_wait(l, partition);
        else
            layouts_put_placement(&l->w, NULL, partition->partition.profile, partition->partition.start);
        l->changes++;
    }
    bh_json_close(&l->w, ']');
}

static void
layouts_put_planned(struct layouts *l, const struct layouts_row *row, const char *key, bool stands)
{
    bh_json_open(&l->w, key, '[');
    for (uint32_t i = 0; i < row->plan.count; i++) {
        uint32_t profile = row->plan.partitions[i].profile->id.v;
        uint32_t start = row->plan.partitions[i].start;

        if ((layouts_partition_at(l, row, profile, start) != NULL) != stands)
            continue;
        layouts_put_placement(&l->w, NULL, profile, start);
        l->changes += !stands;
    }
    bh_json_close(&l->w, ']');
}

static void
layouts_put_difference(struct layouts *l, const struct layouts_row *row)
{
    bool forget = row->entry->forget;
    static const struct bh_layout_plan nothing;
    struct layouts_row shown = *row;

    if (forget)
        shown.plan = nothing;
    bh_json_open(&l->w, NULL, '{');
    layouts_put_planned(l, &shown, "create", false);
    if (!forget)
        layouts_put_unplanned(l, &shown, "destroy", false);
    bh_json_bool(&l->w, "forget", forget);
    layouts_put_names(l, row);
    layouts_put_planned(l, &shown, "keep", true);
    if (!forget)
        layouts_put_unplanned(l, &shown, "waits", true);
    bh_json_close(&l->w, '}');
}

static void
layouts_put_partitions(struct layouts *l, const char *key, const struct bh_layout_list *list)
{
    bh_json_open(&l->w, key, '[');
    for (uint32_t i = 0; i < list->count; i++)
        layouts_put_placement(&l->w, NULL, list->partitions[i].profile, list->partitions[i].start);
    bh_json_close(&l->w, ']');
}

/* Whether the partition is shown: those that others hold are not, to who may not see their jobs. */
static bool
layouts_is_shown(const struct layouts *l, const struct layouts_row *row,
                 const struct bh_partition_view *partition)
{
    return bh_same(partition->partition.gpu, row->gpu.gpu)
           && (partition->state == BH_PARTITION_IDLE || !partition->tenant.v
               || bh_visible_has(&l->visible, partition->tenant.v));
}

static void
layouts_put_current_partitions(struct layouts *l, const struct layouts_row *row)
{
    bh_json_open(&l->w, "stands", '[');
    for (uint32_t i = 0; i < l->partition_count; i++) {
        const struct bh_partition_view *partition = &l->partitions[i];

        if (!layouts_is_shown(l, row, partition))
            continue;
        bh_json_open(&l->w, NULL, '{');
        if (partition->job.v)
            bh_json_u64(&l->w, "job", partition->job.v);
        layouts_put_placement(&l->w, "piece", partition->partition.profile, partition->partition.start);
        bh_json_str(&l->w, "state", bh_partition_state_names[partition->state]);
        bh_json_close(&l->w, '}');
    }
    bh_json_close(&l->w, ']');
}

/* The same for a table. */
static void
layouts_put_partition_places(struct layouts *l, const struct layouts_row *row)
{
    bh_json_open(&l->w, "standing", '[');
    for (uint32_t i = 0; i < l->partition_count; i++)
        if (layouts_is_shown(l, row, &l->partitions[i]))
            layouts_put_placement(&l->w, NULL, l->partitions[i].partition.profile,
                                  l->partitions[i].partition.start);
    bh_json_close(&l->w, ']');
}

static void
layouts_put_row(struct layouts *l, const struct layouts_row *row)
{
    struct bh_json_writer *w = &l->w;

    bh_json_open(w, NULL, '{');
    bh_json_u64(w, "change", row->gpu_layout.apply);
    layouts_put_partitions(l, "declared", &row->gpu_layout.wanted);
    layouts_put_names(l, row);
    bh_json_bool(w, "is_declared", row->gpu_layout.wanted.mode != BH_LAYOUT_UNDECLARED);
    if (row->gpu_layout.rc)
        bh_json_str(w, "failure", bh_rc_name((bh_rc)row->gpu_layout.rc));
    layouts_put_partition_places(l, row);
    layouts_put_current_partitions(l, row);
    bh_json_str(w, "state", bh_layout_state_names[row->gpu_layout.state]);
    if (*row->trouble)
        bh_json_str(w, "trouble", row->trouble);
    bh_json_close(w, '}');
}

/* ---- the resources ---- */

bh_rc
bh_layouts_list(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(layouts_unload) struct layouts l = { .call = call, .w = bh_call_writer(call) };
    uint64_t total = 0;
    bh_rc rc = layouts_load(&l, err);

    if (rc != BH_OK)
        return rc;
    bh_json_open(&l.w, NULL, '{');
    bh_json_open(&l.w, "items", '[');
    for (uint32_t i = 0; i < l.row_count; i++) {
        if (!l.rows[i].divides)
            continue;
        layouts_put_row(&l, &l.rows[i]);
        total++;
    }
    bh_json_close(&l.w, ']');
    bh_json_u64(&l.w, "total", total);
    bh_json_close(&l.w, '}');
    return BH_OK;
}

bh_rc
bh_layouts_diff(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(layouts_unload) struct layouts l = { .call = call, .w = bh_call_writer(call) };
    struct bh_layouts document;
    bh_rc rc = bh_call_body(call, &bh_layout_fields, &document, err);
    if (rc != BH_OK)
        return rc;

    rc = layouts_load(&l, err);
    if (rc != BH_OK)
        return rc;
    rc = layouts_resolve(&l, &document, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&l.w, NULL, '{');
    bh_json_open(&l.w, "items", '[');
    for (uint32_t i = 0; i < l.row_count; i++)
        if (l.rows[i].entry)
            layouts_put_difference(&l, &l.rows[i]);
    bh_json_close(&l.w, ']');
    bh_json_u64(&l.w, "total", l.changes);
    bh_json_close(&l.w, '}');
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
    struct bh_layouts document;
    struct bh_verdict verdict =
        bh_authz_check(call->dir, &call->caller.subject, call->op->verb, (bh_tenant_id){ 0 });
    bh_rc rc;

    if (!verdict.allow) /* before the document is looked at; the owner asks again */
        return bh_call_deny(call, (struct bh_denial){ call->op->verb, verdict, BH_REACH_OBJECT },
                            (bh_tenant_id){ 0 }, err);
    rc = bh_call_body(call, &bh_layout_fields, &document, err);
    if (rc != BH_OK)
        return rc;
    rc = layouts_load(&l, err);
    if (rc != BH_OK)
        return rc;
    rc = layouts_resolve(&l, &document, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, (l.row_count + 1) * sizeof *events, &events, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < l.row_count; i++)
        if (l.rows[i].entry)
            events[command.standing_count++] = layouts_event_of(&l.rows[i]);
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
