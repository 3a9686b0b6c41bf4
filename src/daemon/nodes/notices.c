#include "daemon/nodes/notices.h"

#include <string.h>

#include "api/jobs/job_notices.h"
#include "base/json.h"
#include "daemon/batch/record.h"
#include "daemon/batch/rows.h"
#include "daemon/state/documents.h"

enum { JSON_MAX = 4096 };

static const char *const verbs[BH_JOB_NOTICES] = {
#define BH_JOB_NOTICE(id, number, name, sentence) [number] = "share." name,
#define BH_ISOLATION_NOTICE(id, number, name, sentence) [number] = "isolation." name,
#include "tables/job_notices.tbl"
#undef BH_JOB_NOTICE
};

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
    char key[BH_JOB_DOCUMENT_KEY_SIZE], memory[JSON_MAX];
    const struct bh_document_key wanted = { BH_DOCUMENT_NOTICES, key };
    struct bh_job_notices_row row = { .item_count = 0 };
    struct bh_document_row document;
    struct bh_buf json;
    bh_rc rc;

    bh_job_document_key(job, key);
    rc = bh_documents_get_or_empty(core, &wanted, &document, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_json_decode(document.value, strlen(document.value), &bh_job_notices_fields, &row, core->arena,
                        err);
    if (rc != BH_OK)
        return rc;
    notices_add(&row, notice);
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_job_notices_fields, &row);
    if (json.overflow)
        return bh_err_set(err, BH_FULL, "the notices of a job are too long");
    document.version++;
    document.key = key;
    document.value = bh_buf_text(&json);
    return bh_documents_put(core, &document, err);
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
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .obj = { .type = "job" } };
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
