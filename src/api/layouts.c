#include "api/layouts.h"

#include <stdio.h>
#include <string.h>

#include "api/facts.h"
#include "api/visible.h"
#include "base/num.h"
#include "policy/authz.h"

enum { PIECES_A_GPU = 16 };

/* A GPU as it is and, where the document names it, as it shall be. */
struct row {
    const struct bh_dir_gpu *named;
    const char *node;            /* "" while no node speaks of it */
    const char *trouble;         /* why the last change on the node failed; "": it did not */
    uint64_t index;
    bool known, divides;         /* the engine knows it; it is managed and can be divided */
    struct bh_gpu_view gpu;
    struct bh_standing_view standing;
    const struct bh_layout_entry *entry; /* NULL: it is not named */
    struct bh_layout_plan plan;
};

struct layouts {
    struct bh_call *call;
    struct bh_json_writer w;
    struct bh_facts facts;
    struct bh_visible visible;
    struct row *rows;            /* beside dir->gpus */
    struct bh_piece_view *pieces;
    uint32_t row_count, piece_count, piece_max;
    uint32_t changes;
};

/* ---- what there is ---- */

/* On the owner's thread. */
static void
take(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct layouts *l = self;
    uint32_t cursor = 0;

    for (uint32_t i = 0; i < l->row_count; i++) {
        struct row *row = &l->rows[i];

        row->known = bh_view_gpu(engine, row->named->id, &row->gpu)
                     && bh_view_standing(engine, row->named->id, &row->standing);
        row->divides = row->known && row->gpu.managed && row->gpu.mig_capable;
    }
    while (l->piece_count < l->piece_max
           && bh_view_next_piece(engine, &cursor, &l->pieces[l->piece_count]))
        l->piece_count++;
}

static void
name_rows(struct layouts *l)
{
    for (uint32_t i = 0; i < l->row_count; i++) {
        const struct bh_gpu_facts_of *facts;

        l->rows[i].named = &l->call->dir->gpus[i];
        facts = bh_facts_gpu(&l->facts, l->rows[i].named->uuid);
        l->rows[i].node = facts ? facts->node->name : "";
        l->rows[i].trouble =
            facts ? bh_json_text(bh_json_get(facts->gpu, "trouble"), "") : "";
        l->rows[i].index = facts ? bh_json_number(bh_json_get(facts->gpu, "index"), 0) : 0;
    }
}

static bh_rc
load(struct layouts *l, struct bh_err *err)
{
    struct bh_call *call = l->call;
    bh_rc rc;

    l->row_count = call->dir->gpu_count;
    l->piece_max = l->row_count * PIECES_A_GPU;
    rc = bh_call_alloc(call, (l->row_count + 1) * sizeof *l->rows, &l->rows, err);
    if (rc == BH_OK)
        rc = bh_call_alloc(call, (l->piece_max + 1) * sizeof *l->pieces, &l->pieces, err);
    if (rc == BH_OK)
        rc = bh_visible_find(call, "job.view", &l->visible, err);
    if (rc != BH_OK)
        return rc;
    memset(l->rows, 0, l->row_count * sizeof *l->rows);
    bh_facts_load(&call->api->options.owner, &l->facts);
    name_rows(l);
    return bh_call_ask(call, take, l, err);
}

static void
unload_auto(struct layouts *l)
{
    bh_facts_fini(&l->facts);
}

/* ---- what shall be ---- */

static bool
is_at(const struct row *row, const char *node, size_t length, uint64_t index)
{
    return strlen(row->node) == length && strncmp(row->node, node, length) == 0
           && row->index == index;
}

/* Whether an entry's "GPU-..." or "node/0" means the row. */
static bool
is_meant(const struct row *row, const char *text)
{
    const char *slash = strrchr(text, '/');
    struct bh_err unused;
    uint64_t index;

    if (!slash)
        return strcmp(row->named->uuid, text) == 0;
    return bh_parse_u64(slash + 1, &index, &unused) == BH_OK && *row->node
           && is_at(row, text, (size_t)(slash - text), index);
}

/* Why nothing may be declared for the GPU. */
static bh_rc
not_ours(const struct row *row, struct bh_err *err)
{
    const char *uuid = row->named->uuid;

    if (!row->known)
        return bh_err_set(err, BH_CONFLICT, "GPU %s is not there: no node speaks of it", uuid);
    if (!row->gpu.managed) {
        bh_err_set(err, BH_CONFLICT, "GPU %s is not Bulkhead's to change", uuid);
        return bh_err_hint(err, "it needs `managed: true` in the site file, gpus = %s in the "
                           "node's node.conf, and no instances that others made", uuid);
    }
    if (!row->gpu.mig_capable)
        return bh_err_set(err, BH_CONFLICT, "GPU %s cannot be divided: it has no MIG mode",
                          uuid);
    bh_err_set(err, BH_CONFLICT, "GPU %s is fenced", uuid);
    return bh_err_hint(err, "`bulkhead gpu` says why; it must answer again first");
}

static bh_rc
name_row(struct row *row, const struct bh_layout_entry *entry, struct bh_err *err)
{
    bh_rc rc;

    if (row->entry) {
        bh_err_set(err, BH_INVALID, "GPU %s is named twice", row->named->uuid);
        return bh_err_hint(err, "by \"%s\" and by \"%s\"", row->entry->gpu, entry->gpu);
    }
    if (!row->divides || row->gpu.fenced)
        return not_ours(row, err);
    if (entry->forget && entry->pieces.count)
        return bh_err_set(err, BH_INVALID, "\"%s\": forget stands alone, without pieces",
                          entry->gpu);
    rc = bh_layout_place((enum bh_gpu_model)row->gpu.model, &entry->pieces, &row->plan, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "GPU %s", row->named->uuid);
    row->entry = entry;
    return BH_OK;
}

static bh_rc
resolve_entry(struct layouts *l, const struct bh_layout_entry *entry, struct bh_err *err)
{
    bool all = strcmp(entry->gpu, "all") == 0;
    uint32_t found = 0;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < l->row_count && rc == BH_OK; i++) {
        struct row *row = &l->rows[i];

        if (all ? !row->divides : !is_meant(row, entry->gpu))
            continue;
        rc = name_row(row, entry, err);
        found++;
    }
    if (rc != BH_OK || found)
        return rc;
    bh_err_set(err, BH_INVALID, "there is no GPU \"%.80s\"", entry->gpu);
    return bh_err_hint(err, "name it by its UUID, by its node and index as gpu1/0, or say all; "
                       "`bulkhead gpu -o wide` lists them");
}

static bh_rc
resolve(struct layouts *l, const struct bh_layouts *document, struct bh_err *err)
{
    const struct bh_layout_entry *entries = document->layouts.items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < document->layouts.count && rc == BH_OK; i++)
        rc = resolve_entry(l, &entries[i], err);
    return rc;
}

static bool
plans(const struct bh_layout_plan *plan, uint32_t profile, uint32_t start)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->pieces[i].profile->id.v == profile && plan->pieces[i].start == start)
            return true;
    return false;
}

/* The piece that stands at exactly that place, or NULL. */
static const struct bh_piece_view *
standing_at(const struct layouts *l, const struct row *row, uint32_t profile, uint32_t start)
{
    for (uint32_t i = 0; i < l->piece_count; i++) {
        const struct bh_piece_view *piece = &l->pieces[i];

        if (bh_same(piece->piece.gpu, row->gpu.gpu) && piece->state != BH_PIECE_CLEARING
            && piece->piece.profile == profile && piece->piece.start == start)
            return piece;
    }
    return NULL;
}

/* ---- writing ---- */

static void
put_place(struct bh_json_writer *w, const char *key, uint32_t profile_id, uint32_t start)
{
    char text[48], name[BH_PIECE_NAME_MAX];

    bh_piece_name(BH_GPU_MODEL_NONE, profile_id, name);
    snprintf(text, sizeof text, "%s@%u", name, start);
    bh_json_str(w, key, profile_id == BH_PROFILE_WHOLE.v ? name : text);
}

static void
put_names(struct layouts *l, const struct row *row)
{
    const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)row->gpu.model);

    bh_json_str(&l->w, "gpu", row->named->uuid);
    bh_json_u64(&l->w, "index", row->index);
    bh_json_str(&l->w, "model", facts ? facts->name : "");
    bh_json_str(&l->w, "node", row->node);
}

/* What is in the way and has to end first. */
static void
put_wait(struct layouts *l, const struct bh_piece_view *piece)
{
    struct bh_json_writer *w = &l->w;

    bh_json_open(w, NULL, '{');
    if (bh_visible_has(&l->visible, piece->tenant.v))
        bh_json_u64(w, "job", piece->job.v);
    put_place(w, "piece", piece->piece.profile, piece->piece.start);
    bh_json_close(w, '}');
}

/* Pieces of the GPU that are not planned: those in use are waited for, others go. */
static void
put_unplanned(struct layouts *l, const struct row *row, const char *key, bool leased)
{
    bh_json_open(&l->w, key, '[');
    for (uint32_t i = 0; i < l->piece_count; i++) {
        const struct bh_piece_view *piece = &l->pieces[i];
        bool used = piece->state == BH_PIECE_LEASED
                    || (piece->state == BH_PIECE_CARVING && piece->lease.v);

        if (!bh_same(piece->piece.gpu, row->gpu.gpu) || piece->state == BH_PIECE_CLEARING
            || plans(&row->plan, piece->piece.profile, piece->piece.start) || used != leased)
            continue;
        if (leased)
            put_wait(l, piece);
        else
            put_place(&l->w, NULL, piece->piece.profile, piece->piece.start);
        l->changes++;
    }
    bh_json_close(&l->w, ']');
}

static void
put_planned(struct layouts *l, const struct row *row, const char *key, bool stands)
{
    bh_json_open(&l->w, key, '[');
    for (uint32_t i = 0; i < row->plan.count; i++) {
        uint32_t profile = row->plan.pieces[i].profile->id.v;
        uint32_t start = row->plan.pieces[i].start;

        if ((standing_at(l, row, profile, start) != NULL) != stands)
            continue;
        put_place(&l->w, NULL, profile, start);
        l->changes += !stands;
    }
    bh_json_close(&l->w, ']');
}

static void
put_difference(struct layouts *l, const struct row *row)
{
    bool forget = row->entry->forget;
    static const struct bh_layout_plan nothing;
    struct row shown = *row;

    if (forget)
        shown.plan = nothing;
    bh_json_open(&l->w, NULL, '{');
    put_planned(l, &shown, "create", false);
    if (!forget)
        put_unplanned(l, &shown, "destroy", false);
    bh_json_bool(&l->w, "forget", forget);
    put_names(l, row);
    put_planned(l, &shown, "keep", true);
    if (!forget)
        put_unplanned(l, &shown, "waits", true);
    bh_json_close(&l->w, '}');
}

static void
put_pieces(struct layouts *l, const char *key, const struct bh_standing_list *list)
{
    bh_json_open(&l->w, key, '[');
    for (uint32_t i = 0; i < list->count; i++)
        put_place(&l->w, NULL, list->pieces[i].profile, list->pieces[i].start);
    bh_json_close(&l->w, ']');
}

/* Whether the piece is shown: those that others hold are not, to who may not see their jobs. */
static bool
is_shown(const struct layouts *l, const struct row *row, const struct bh_piece_view *piece)
{
    return bh_same(piece->piece.gpu, row->gpu.gpu)
           && (piece->state == BH_PIECE_IDLE || !piece->tenant.v
               || bh_visible_has(&l->visible, piece->tenant.v));
}

static void
put_stands(struct layouts *l, const struct row *row)
{
    bh_json_open(&l->w, "stands", '[');
    for (uint32_t i = 0; i < l->piece_count; i++) {
        const struct bh_piece_view *piece = &l->pieces[i];

        if (!is_shown(l, row, piece))
            continue;
        bh_json_open(&l->w, NULL, '{');
        if (piece->job.v)
            bh_json_u64(&l->w, "job", piece->job.v);
        put_place(&l->w, "piece", piece->piece.profile, piece->piece.start);
        bh_json_str(&l->w, "state", bh_piece_state_names[piece->state]);
        bh_json_close(&l->w, '}');
    }
    bh_json_close(&l->w, ']');
}

/* The same for a table. */
static void
put_standing(struct layouts *l, const struct row *row)
{
    bh_json_open(&l->w, "standing", '[');
    for (uint32_t i = 0; i < l->piece_count; i++)
        if (is_shown(l, row, &l->pieces[i]))
            put_place(&l->w, NULL, l->pieces[i].piece.profile, l->pieces[i].piece.start);
    bh_json_close(&l->w, ']');
}

static void
put_row(struct layouts *l, const struct row *row)
{
    struct bh_json_writer *w = &l->w;

    bh_json_open(w, NULL, '{');
    bh_json_u64(w, "change", row->standing.apply);
    put_pieces(l, "declared", &row->standing.wanted);
    put_names(l, row);
    bh_json_bool(w, "is_declared", row->standing.wanted.mode != BH_STANDING_NOT_SAID);
    if (row->standing.rc)
        bh_json_str(w, "failure", bh_rc_name((bh_rc)row->standing.rc));
    put_standing(l, row);
    put_stands(l, row);
    bh_json_str(w, "state", bh_standing_state_names[row->standing.state]);
    if (*row->trouble)
        bh_json_str(w, "trouble", row->trouble);
    bh_json_close(w, '}');
}

/* ---- the resources ---- */

bh_rc
bh_layouts_list(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(unload) struct layouts l = { .call = call, .w = bh_call_writer(call) };
    uint64_t total = 0;
    bh_rc rc = load(&l, err);

    if (rc != BH_OK)
        return rc;
    bh_json_open(&l.w, NULL, '{');
    bh_json_open(&l.w, "items", '[');
    for (uint32_t i = 0; i < l.row_count; i++) {
        if (!l.rows[i].divides)
            continue;
        put_row(&l, &l.rows[i]);
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
    BH_AUTO(unload) struct layouts l = { .call = call, .w = bh_call_writer(call) };
    struct bh_layouts document;
    bh_rc rc = bh_call_body(call, &bh_layout_fields, &document, err);

    if (rc == BH_OK)
        rc = load(&l, err);
    if (rc == BH_OK)
        rc = resolve(&l, &document, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&l.w, NULL, '{');
    bh_json_open(&l.w, "items", '[');
    for (uint32_t i = 0; i < l.row_count; i++)
        if (l.rows[i].entry)
            put_difference(&l, &l.rows[i]);
    bh_json_close(&l.w, ']');
    bh_json_u64(&l.w, "total", l.changes);
    bh_json_close(&l.w, '}');
    return BH_OK;
}

static struct bh_ev_standing
event_of(const struct row *row)
{
    struct bh_ev_standing event = { .gpu = row->gpu.gpu, .mode = BH_STANDING_DECLARED };

    if (row->entry->forget) {
        event.mode = BH_STANDING_NOT_SAID;
        return event;
    }
    event.piece_count = row->plan.count;
    for (uint32_t i = 0; i < row->plan.count; i++)
        event.pieces[i] = (struct bh_standing_piece){ row->plan.pieces[i].profile->id.v,
                                                      row->plan.pieces[i].start };
    return event;
}

bh_rc
bh_layouts_apply(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(unload) struct layouts l = { .call = call };
    struct bh_command command = { .standing_count = 0 };
    struct bh_ev_standing *events;
    struct bh_layouts document;
    struct bh_verdict verdict =
        bh_authz_check(call->dir, &call->caller.subject, call->op->verb, (bh_tenant_id){ 0 });
    bh_rc rc;

    if (!verdict.allow) /* before the document is looked at; the owner asks again */
        return bh_call_deny(call, (struct bh_denial){ call->op->verb, verdict, BH_REACH_OBJECT },
                            (bh_tenant_id){ 0 }, err);
    rc = bh_call_body(call, &bh_layout_fields, &document, err);
    if (rc == BH_OK)
        rc = load(&l, err);
    if (rc == BH_OK)
        rc = resolve(&l, &document, err);
    if (rc == BH_OK)
        rc = bh_call_alloc(call, (l.row_count + 1) * sizeof *events, &events, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < l.row_count; i++)
        if (l.rows[i].entry)
            events[command.standing_count++] = event_of(&l.rows[i]);
    if (command.standing_count == 0)
        return bh_err_set(err, BH_INVALID, "the layout names no GPU");
    command.standing = events;
    return bh_call_send(call, &command, err);
}

bh_rc
bh_layouts_rollback(struct bh_call *call, struct bh_err *err)
{
    struct bh_command command = { .standing_count = 0 };

    return bh_call_send(call, &command, err);
}
