#include "replay/suppose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/state/simulation.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/time.h"
#include "engine/read/view.h"
#include "model/quantity.h"

static const uint64_t least_ns = 1000000000;

/* What is supposed, and on which copy. */
struct supposing {
    const struct bh_store *store;
    struct bh_simulation before, after;
    const char *value; /* behind the = */
    struct bh_err *err;
};

/* ---- names ---- */

struct suppose_finding {
    enum bh_name_kind kind;
    const char *name;
    size_t length;
    uint32_t id;    /* 0: not found */
    char text[160]; /* of the id that is looked for, when name is NULL */
};

static bool
suppose_see_name(void *self, const struct bh_name_row *row)
{
    struct suppose_finding *finding = self;

    if (row->kind != finding->kind)
        return true;
    if (finding->name && strlen(row->name) == finding->length
        && memcmp(row->name, finding->name, finding->length) == 0)
        finding->id = row->id;
    if (!finding->name && row->id == finding->id)
        snprintf(finding->text, sizeof finding->text, "%s", row->name);
    return true;
}

static uint32_t
suppose_id_of(const struct supposing *s, enum bh_name_kind kind, const char *name, size_t length)
{
    struct suppose_finding finding = { .kind = kind, .name = name, .length = length };
    struct bh_err unused;

    return s->store->ops->list_names(s->store->self, suppose_see_name, &finding, &unused) == BH_OK
               ? finding.id
               : 0;
}

static void
suppose_print_tenant(const struct supposing *s, bh_tenant_id tenant, FILE *out)
{
    struct suppose_finding finding = { .kind = BH_NAME_TENANT, .id = tenant.v, .text = "?" };
    struct bh_err unused;

    if (s->store->ops->list_names(s->store->self, suppose_see_name, &finding, &unused) == BH_OK)
        fputs(finding.text, out);
}

/* ---- changes ---- */

static bh_rc
suppose_send(struct supposing *s, const struct bh_event *event)
{
    bh_rc rc = bh_simulation_send(&s->after, event);

    if (rc == BH_OK)
        return rc;
    return bh_err_set(s->err, rc, "the engine refuses it: %s",
                      bh_reason_names[s->after.future->step.verdict.code]);
}

static bh_rc
suppose_drain(struct supposing *s)
{
    const struct bh_engine *engine = s->before.state.engine;
    uint32_t gpu = suppose_id_of(s, BH_NAME_GPU, s->value, strlen(s->value));
    uint32_t node = suppose_id_of(s, BH_NAME_NODE, s->value, strlen(s->value)), cursor = 0;
    struct bh_gpu_view view;
    bool any = false;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_view_next_gpu(engine, &cursor, &view)) {
        struct bh_event event;

        if (!(gpu && view.gpu.v == gpu) && !(node && view.node.v == node))
            continue;
        any = bh_whatif_drain(engine, view.gpu, &event);
        if (any)
            rc = suppose_send(s, &event);
    }
    if (rc != BH_OK)
        return rc;
    if (!any)
        return bh_err_set(s->err, BH_NOT_FOUND, "no GPU or node %.120s", s->value);
    return BH_OK;
}

static bh_rc
suppose_cancel(struct supposing *s)
{
    struct bh_event event = { .kind = BH_EV_CANCEL };
    bh_rc rc = bh_parse_u64(s->value, &event.u.job.job.v, s->err);

    return rc == BH_OK ? suppose_send(s, &event) : rc;
}

static bh_rc
suppose_quota(struct supposing *s, bool limit)
{
    const char *colon = strrchr(s->value, ':');
    struct bh_event event = { .kind = BH_EV_TENANT };
    struct bh_tenant_view view;
    uint64_t parts = BH_UNLIMITED;
    uint32_t tenant = colon ? suppose_id_of(s, BH_NAME_TENANT, s->value, (size_t)(colon - s->value)) : 0;
    bh_rc rc = BH_OK;

    if (!colon)
        return bh_err_set(s->err, BH_INVALID, "expected TENANT:GPUS");
    if (!bh_view_tenant(s->before.state.engine, (bh_tenant_id){ tenant }, s->before.future->begin_ns, &view))
        return bh_err_set(s->err, BH_NOT_FOUND, "no tenant %.*s", (int)(colon - s->value), s->value);
    if (!limit || strcmp(colon + 1, "none") != 0)
        rc = bh_parse_parts(colon + 1, BH_GPU_PARTS, &parts, s->err);
    if (rc != BH_OK)
        return rc;
    event.u.tenant = view.settings;
    *(limit ? &event.u.tenant.limit : &event.u.tenant.guarantee) = parts;
    return suppose_send(s, &event);
}

static bh_rc
suppose_limit(struct supposing *s)
{
    return suppose_quota(s, true);
}

static bh_rc
suppose_guarantee(struct supposing *s)
{
    return suppose_quota(s, false);
}

static bh_rc
suppose_apply(struct supposing *s, const char *change)
{
    static const struct {
        const char *word;
        bh_rc (*suppose)(struct supposing *s);
    } rows[] = {
        { "drain=", suppose_drain },
        { "cancel=", suppose_cancel },
        { "limit=", suppose_limit },
        { "guarantee=", suppose_guarantee },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        size_t length = strlen(rows[i].word);

        if (strncmp(change, rows[i].word, length) != 0)
            continue;
        s->value = change + length;
        return rows[i].suppose(s);
    }
    return bh_err_set(s->err, BH_INVALID,
                      "what if %.80s? Known are drain=, cancel=, limit= and guarantee=", change);
}

/* ---- what is different ---- */

static void
suppose_print_span(const struct supposing *s, const char *before, uint64_t at_ns, FILE *out)
{
    char memory[40];
    struct bh_buf text;

    if (!at_ns)
        return;
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_time_put_span(&text, at_ns - s->before.future->begin_ns);
    fprintf(out, " %s %s", before, bh_buf_text(&text));
}

static void
suppose_print_differences(const struct supposing *s, FILE *out)
{
    uint32_t max = s->before.forecasts.count, count;
    struct bh_difference *rows = calloc((size_t)max + 1, sizeof *rows);

    BH_ASSERT(rows);
    count = bh_whatif_compare(&s->before.forecasts, &s->after.forecasts, least_ns, rows, max);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(out, "job %" PRIu64 " ", rows[i].job.v);
        suppose_print_tenant(s, rows[i].tenant, out);
        fprintf(out, " %s", bh_difference_names[rows[i].kind]);
        suppose_print_span(s, "before: in", rows[i].before_ns, out);
        suppose_print_span(s, "after: in", rows[i].after_ns, out);
        if (rows[i].for_job.v)
            fprintf(out, " for job %" PRIu64, rows[i].for_job.v);
        fputc('\n', out);
    }
    fprintf(out, "changes   %" PRIu32 " (%s)\n", count, bh_simulation_assumption);
    free(rows);
}

bh_rc
bh_suppose(const struct bh_store *store, const struct bh_engine *engine, const char *change, FILE *out,
           struct bh_err *err)
{
    struct supposing s = { .store = store, .err = err };
    bh_rc rc;

    bh_simulation_copy(engine, &s.before);
    bh_simulation_clone(&s.before, &s.after);
    bh_simulation_begin(&s.before, 0); /* when the last record was written */
    bh_simulation_begin(&s.after, 0);
    rc = suppose_apply(&s, change);
    if (rc == BH_OK) {
        bh_simulation_run(&s.before);
        bh_simulation_run(&s.after);
        fprintf(out, "what if   %s\n", change);
        suppose_print_differences(&s, out);
    }
    bh_simulation_free(&s.before);
    bh_simulation_free(&s.after);
    return rc;
}
