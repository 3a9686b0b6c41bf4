#include "api/site/datasets.h"

#include <string.h>

#include "api/documents/job_document.h"
#include "api/request/reply.h"
#include "api/request/visible.h"

struct datasets_list {
    struct bh_call *call;
    struct bh_rows rows;
    struct bh_reply_dataset_access *access; /* of the tenants of `submits` */
    struct bh_visible submits, views;       /* where the caller may submit jobs, and see datasets */
    const char *principal;
};

static bool
datasets_may_see_all_of(const struct datasets_list *list, const struct bh_dataset *dataset)
{
    const struct bh_dir_tenant *owner = bh_directory_tenant_named(list->call->dir, dataset->text->tenant);

    return list->views.all || (owner && bh_visible_has(&list->views, owner->id.v));
}

/* The caller's jobs in a tenant, with any label, on any node. */
static struct bh_data_request
datasets_request_of(const struct datasets_list *list, uint32_t tenant)
{
    const struct bh_dir_tenant *row = bh_directory_tenant(list->call->dir, (bh_tenant_id){ tenant });

    return (struct bh_data_request){ .tenant = row && !row->gone ? row->path : "",
                                     .principal = list->principal,
                                     .now_ns = bh_call_now(list->call) };
}

static bool
datasets_is_named(const struct datasets_list *list, const struct bh_dataset *dataset)
{
    for (uint32_t i = 0; i < list->submits.count; i++) {
        struct bh_data_request request = datasets_request_of(list, list->submits.ids[i]);

        if (request.tenant[0] && bh_datasets_names(&list->call->dir->datasets, dataset, &request))
            return true;
    }
    return false;
}

static uint64_t
datasets_end_of(uint32_t may, uint64_t until_ns)
{
    return may && until_ns != UINT64_MAX ? until_ns : (uint64_t)BH_UNSET;
}

/* Tenant by tenant, but for callers that may submit to all of them: there may be thousands, and what is
 * declared says the same.  All of them together in the results. */
static uint32_t
datasets_fill_access(const struct datasets_list *list, const struct bh_dataset *dataset,
                     struct bh_reply_dataset_shown *ret, uint64_t *ret_until_ns)
{
    const struct bh_datasets *datasets = &list->call->dir->datasets;
    uint32_t all = 0, count = 0;

    *ret_until_ns = 0;
    for (uint32_t i = 0; i < list->submits.count; i++) {
        struct bh_data_request request = datasets_request_of(list, list->submits.ids[i]);
        uint64_t until_ns;
        uint32_t may;

        if (!request.tenant[0] || !bh_datasets_names(datasets, dataset, &request))
            continue;
        may = bh_datasets_may(datasets, dataset, &request, &until_ns);
        if (!list->submits.all)
            list->access[count++] =
                (struct bh_reply_dataset_access){ bh_data_rights_text(may), request.tenant,
                                                  datasets_end_of(may, until_ns) };
        all |= may;
        if (until_ns > *ret_until_ns)
            *ret_until_ns = until_ns;
    }
    ret->access = (struct bh_list){ list->access, count };
    return all;
}

static void
datasets_put_dataset(struct datasets_list *list, const struct bh_dataset *dataset)
{
    const struct bh_site_dataset *text = dataset->text;
    const struct bh_dir_dataset *named = bh_directory_dataset_named(list->call->dir, text->name);
    struct bh_reply_dataset_shown row = { .id = named ? named->id.v : 0,
                                          .kind = bh_dataset_kind_names[text->kind],
                                          .name = text->name };
    uint64_t until_ns;
    uint32_t may = datasets_fill_access(list, dataset, &row, &until_ns);
    struct bh_buf declared;

    bh_buf_init(&declared, BH_JSON_BYTES_MAX);
    row.may = bh_data_rights_text(may);
    row.until_ns = datasets_end_of(may, until_ns);
    if (datasets_may_see_all_of(list, dataset)) {
        bh_json_encode(&declared, &bh_site_dataset_fields, text);
        row.declared = bh_reply_slice(bh_buf_text(&declared));
        row.owner = text->tenant;
    }
    (void)bh_rows_put(&list->rows, &row);
    bh_buf_fini(&declared);
}

static const char *
datasets_principal_of(const struct bh_call *call)
{
    const struct bh_dir_principal *principal =
        bh_directory_principal(call->dir, call->caller.subject.principal);

    return principal ? principal->name : "";
}

bh_rc
bh_datasets_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_datasets *datasets = &call->dir->datasets;
    struct datasets_list list = { .call = call, .principal = datasets_principal_of(call) };
    bh_rc rc = bh_visible_find(call, "job.submit", &list.submits, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_visible_find(call, "dataset.view", &list.views, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, list.submits.count * sizeof *list.access, &list.access, err);
    if (rc != BH_OK)
        return rc;
    list.rows = bh_rows_begin(call, &bh_reply_dataset_list_fields);
    for (uint32_t i = 0; i < datasets->count; i++)
        if (datasets_may_see_all_of(&list, &datasets->items[i])
            || datasets_is_named(&list, &datasets->items[i]))
            datasets_put_dataset(&list, &datasets->items[i]);
    bh_rows_end(&list.rows, NULL);
    return BH_OK;
}

/* Whether the job may have its datasets; BH_OK, or why not in the caller's words. */
static bh_rc
datasets_judge(const struct bh_call *call, const struct bh_job_spec *spec,
               const struct bh_data_request *request, struct bh_err *err)
{
    const struct bh_dir_tenant *owner = NULL;
    struct bh_data_denial denial;
    bool hidden;

    if (bh_datasets_allow(&call->dir->datasets, spec, request, &denial))
        return BH_OK;
    if (denial.dataset)
        owner = bh_directory_tenant_named(call->dir, denial.dataset->text->tenant);
    hidden = !owner || !bh_authz_check(call->dir, &call->caller.subject, "dataset.view", owner->id).allow;
    return bh_datasets_explain(spec, request, &denial, hidden, err);
}

bool
bh_datasets_why(const struct bh_call *call, const struct bh_job_row *row, struct bh_err *ret_words)
{
    struct bh_data_request request = { .tenant = row->tenant,
                                       .principal = row->principal,
                                       .node = row->node[0] ? row->node : NULL,
                                       .now_ns = bh_call_now(call) };
    struct bh_job_spec spec;
    struct bh_err err;

    if (bh_job_document_spec(call->api->options.keys, &row->spec, call->arena, &spec, &err) != BH_OK)
        return false;
    request.labels = &spec.labels;
    if (datasets_judge(call, &spec, &request, &err) == BH_OK)
        return false;
    *ret_words = err;
    return true;
}

void
bh_datasets_hint(const struct bh_call *call, const char *tenant, const char *path, struct bh_err *err)
{
    const struct bh_data_request request = { .tenant = tenant, .principal = datasets_principal_of(call) };
    const struct bh_dataset *dataset = bh_datasets_at(&call->dir->datasets, path);

    if (dataset && bh_datasets_names(&call->dir->datasets, dataset, &request))
        (void)bh_err_hint(err, "mount it by its name: --mount dataset=%.63s", dataset->text->name);
    else
        (void)bh_err_hint(err, "an admin can add the folder under mounts in the site file");
}
