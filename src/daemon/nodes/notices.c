#include "daemon/nodes/notices.h"

#include <string.h>

#include "api/jobs/job_notices.h"
#include "base/json.h"
#include "daemon/batch/record.h"
#include "daemon/batch/rows.h"

enum { JSON_MAX = 4096 };

static const char *const verbs[BH_JOB_NOTICES] = {
#define BH_JOB_NOTICE(id, number, name, sentence) [number] = "share." name,
#define BH_ISOLATION_NOTICE(id, number, name, sentence) [number] = "isolation." name,
#include "tables/job_notices.tbl"
#undef BH_JOB_NOTICE
};

/* As the open batch has it, or the store: readers of that do not see the batch. */
static bh_rc
notices_find(struct bh_core *core, const char *key, struct bh_document_row *ret_row, struct bh_err *err)
{
    const struct bh_document_key wanted = { BH_DOCUMENT_NOTICES, key };
    bh_rc rc;

    for (const struct bh_batch_document *kept = core->documents; kept; kept = kept->next)
        if (kept->row.kind == BH_DOCUMENT_NOTICES && strcmp(kept->row.key, key) == 0) {
            *ret_row = kept->row;
            return BH_OK;
        }
    rc = core->store.ops->get_document(core->store.self, &wanted, core->arena, ret_row, err);
    if (rc != BH_NOT_FOUND)
        return rc;
    *ret_row = (struct bh_document_row){ .kind = BH_DOCUMENT_NOTICES, .value = "{}" };
    return BH_OK;
}

static void
notices_add(struct bh_job_notices_row *row, const struct bh_msg_notice *notice)
{
    struct bh_job_notice_item *item = row->items;

    while (item < row->items + row->item_count && item->kind != notice->kind)
        item++;
    if (item == row->items + row->item_count) {
        row->item_count++;
        *item = (struct bh_job_notice_item){ .kind = (enum bh_job_notice)notice->kind,
                                             .first_ns = notice->at_ns };
    }
    item->last_ns = notice->at_ns;
    item->count += notice->count;
}

static bh_rc
notices_put(struct bh_core *core, uint64_t job, const struct bh_msg_notice *notice, struct bh_err *err)
{
    struct bh_batch_document *kept = bh_arena_alloc(core->arena, sizeof *kept);
    char key[BH_JOB_DOCUMENT_KEY_SIZE], memory[JSON_MAX];
    struct bh_job_notices_row row = { .item_count = 0 };
    struct bh_document_row old;
    struct bh_buf json;
    bh_rc rc = kept ? BH_OK : bh_err_set(err, BH_FULL, "the batch is full");

    bh_job_document_key(job, key);
    if (rc != BH_OK)
        return rc;
    rc = notices_find(core, key, &old, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_json_decode(old.value, strlen(old.value), &bh_job_notices_fields, &row, core->arena, err);
    if (rc != BH_OK)
        return rc;
    notices_add(&row, notice);
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_job_notices_fields, &row);
    *kept = (struct bh_batch_document){
        .next = core->documents,
        .row = { .kind = BH_DOCUMENT_NOTICES,
                 .version = old.version + 1,
                 .key = bh_arena_strdup(core->arena, key),
                 .value = json.overflow ? NULL : bh_arena_strdup(core->arena, bh_buf_text(&json)) },
    };
    if (!kept->row.key || !kept->row.value)
        return bh_err_set(err, BH_FULL, "the batch is full");
    core->documents = kept;
    return core->store.ops->put_document(core->store.self, &kept->row, err);
}

/* What it says of the job's grade: the record binds the row that is written with it. */
static bh_rc
record_grade(struct bh_core *core, struct bh_entry *entry, const struct bh_job_view *view, bool verified,
             struct bh_err *err)
{
    char memory[BH_JOB_STATUS_ITEM_MAX + 3];
    struct bh_job_status state;
    struct bh_buf list;
    bh_rc rc;

    bh_rows_regraded(core, view, verified, &state);
    bh_buf_init_fixed(&list, memory, sizeof memory);
    bh_buf_putc(&list, '[');
    bh_job_status_put(&list, &state);
    bh_buf_putc(&list, ']');
    entry->jobs_json = bh_buf_text(&list);
    rc = bh_core_record(core, entry, BH_OK, err);
    return rc == BH_OK ? bh_rows_regrade(core, view, verified, err) : rc;
}

bh_rc
bh_notices_record(struct bh_core *core, bh_node_id node, const struct bh_msg_notice *notice,
                  struct bh_err *err)
{
    struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                              .dec = { .allow = true },
                              .phase = BH_PHASE_EVENT,
                              .obj = { .type = "job" } };
    struct bh_job_view view;
    bh_rc rc = bh_core_begin(core, err);

    if (rc != BH_OK || notice->kind >= BH_JOB_NOTICES
        || !bh_view_lease(core->state.engine, (bh_lease_id){ notice->lease }, &view) || view.node.v != node.v)
        return rc;
    entry.verb = verbs[notice->kind];
    entry.tenant = view.tenant.v;
    entry.obj.id = view.job.v;
    if (notice->kind == BH_JOB_NOTICE_UNVERIFIED || notice->kind == BH_JOB_NOTICE_VERIFIED)
        rc = record_grade(core, &entry, &view, notice->kind == BH_JOB_NOTICE_VERIFIED, err);
    else
        rc = bh_core_record(core, &entry, BH_OK, err);
    return rc == BH_OK ? notices_put(core, view.job.v, notice, err) : rc;
}
