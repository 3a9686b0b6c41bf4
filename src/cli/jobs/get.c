#include "cli/jobs/get.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "cli/command/pick.h"
#include "cli/jobs/jobs.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

enum { PATH_BYTES_MAX = 4096 };

/* What `get` can show: its path, its table and the members that name an object. */
static const struct kind {
    const char *name, *one, *path;
    const struct bh_view *view;
    const char *id, *also; /* NULL: jobs are fetched singly */
    bool paged;
} kinds[] = {
    { "tenants", "tenant", "/v1/tenants", &bh_view_tenants, "name", "name", true },
    { "skus", "sku", "/v1/skus", &bh_view_skus, "name", "name", false },
    { "datasets", "dataset", "/v1/datasets", &bh_view_datasets, "name", "id", false },
    { "gpus", "gpu", "/v1/gpus", &bh_view_gpus, "uuid", "index", false },
    { "nodes", "node", "/v1/nodes", &bh_view_nodes, "name", "name", false },
    { "jobs", "job", "/v1/jobs", &bh_view_jobs, NULL, NULL, true },
    { "tokens", "token", "/v1/tokens", &bh_view_tokens, "id", "id", false },
    { "records", "record", "/v1/records", &bh_view_records, "seq", "seq", true },
    { "checkpoints", "checkpoint", "/v1/checkpoints", &bh_view_checkpoints, "size", "size", false },
};

static const struct kind *
get_find_kind(const char *name)
{
    for (size_t i = 0; i < BH_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0 || strcmp(kinds[i].one, name) == 0)
            return &kinds[i];
    return NULL;
}

static bh_rc
get_print_description(const struct bh_cli *cli, bh_json_value value, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    bh_rc rc;

    if (bh_cli_print_document(cli, value, &rc, err))
        return rc;
    bh_view_describe(&out, value, bh_time_now());
    return bh_output_write(&out, err);
}

/* One object of a list, by its name. */
static bh_rc
get_one(const struct bh_cli *cli, const struct kind *kind, const char *name, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, kind->path, &json, err);
    const struct bh_pick_by by = { kind->one, kind->id, kind->also };
    bh_json_value object = NULL;

    if (rc != BH_OK)
        return rc;
    rc = kind->view == &bh_view_gpus
             ? bh_pick_gpu(bh_json_root(json), name, &object, err)
             : bh_pick_named(bh_json_get(bh_json_root(json), "items"), &by, name, &object, err);
    if (rc == BH_NOT_FOUND && !*err->hint)
        return bh_err_hint(err, "bulkhead get %s lists them", kind->name);
    return rc == BH_OK ? get_print_description(cli, object, err) : rc;
}

/* The site file in force: YAML unless JSON is asked for. */
static bh_rc
get_site(const struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/site", &json, err);

    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    bh_output_yaml(&out, bh_json_root(json));
    return bh_output_write(&out, err);
}

static bh_rc
get_job(const struct bh_cli *cli, const char *job, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char path[64];
    bh_rc rc = bh_cli_job_path(job, "", path, sizeof path, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_cli_fetch(cli, path, &json, err);
    if (rc != BH_OK)
        return rc;
    return get_print_description(cli, bh_json_root(json), err);
}

/* In full, with its members and what applies to it. */
static bh_rc
get_tenant(const struct bh_cli *cli, const char *name, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char memory[PATH_BYTES_MAX];
    struct bh_buf path;
    bh_rc rc;

    bh_buf_init_fixed(&path, memory, sizeof memory);
    bh_buf_puts(&path, "/v1/tenants/");
    bh_http_put_encoded(&path, name);
    if (!bh_buf_text(&path))
        return bh_err_set(err, BH_INVALID, "tenant: the name is too long");
    rc = bh_cli_fetch(cli, bh_buf_text(&path), &json, err);
    return rc == BH_OK ? get_print_description(cli, bh_json_root(json), err) : rc;
}

static bh_rc
get_list(const struct bh_cli *cli, const struct kind *kind, struct bh_err *err)
{
    char memory[PATH_BYTES_MAX];
    struct bh_buf path;

    bh_buf_init_fixed(&path, memory, sizeof memory);
    bh_buf_puts(&path, kind->path);
    bh_jobs_put_filter(cli, &path);
    if (!bh_buf_text(&path))
        return bh_err_set(err, BH_INVALID, "get: an option is too long");
    return bh_cli_list(cli, bh_buf_text(&path), kind->paged, kind->view, err);
}

bh_rc
bh_cli_get(struct bh_cli *cli, struct bh_err *err)
{
    const char *what = cli->args->arguments[0];
    const char *name = cli->args->count > 1 ? cli->args->arguments[1] : NULL;
    const struct kind *kind = get_find_kind(what);

    if (strcmp(what, "site") == 0 && !name)
        return get_site(cli, err);
    if (!kind) {
        bh_err_set(err, BH_INVALID, "%s: unknown kind of object \"%.60s\"",
                   bh_cli_commands[cli->args->command].name, what);
        return bh_err_hint(err, "site, tenants, skus, datasets, gpus, nodes, jobs, tokens, "
                                "records, checkpoints");
    }
    if (!name)
        return get_list(cli, kind, err);
    if (kind->view == &bh_view_tenants)
        return get_tenant(cli, name, err);
    if (kind->id)
        return get_one(cli, kind, name, err);
    return get_job(cli, name, err);
}

bh_rc
bh_cli_describe(struct bh_cli *cli, struct bh_err *err)
{
    const struct kind *kind = get_find_kind(cli->args->arguments[0]);
    bh_rc rc;

    if (cli->args->count > 1)
        return bh_cli_get(cli, err);
    if (kind) {
        bh_err_set(err, BH_INVALID, "describe %s: the name is missing", cli->args->arguments[0]);
        return bh_err_hint(err, "bulkhead get %s lists them", kind->name);
    }
    rc = get_job(cli, cli->args->arguments[0], err);
    if (rc == BH_INVALID)
        return bh_err_hint(err,
                           "name the kind of the object: bulkhead describe gpu gpu0, node NAME, tenant PATH");
    return rc;
}

/* One tenant in full, or the list. */
static bh_rc
get_tenants(const struct bh_cli *cli, const struct bh_view *view, struct bh_err *err)
{
    const struct kind tenants = { "tenants", "tenant", "/v1/tenants", view, NULL, NULL, true };

    return cli->args->count > 0 ? get_tenant(cli, cli->args->arguments[0], err)
                                : get_list(cli, &tenants, err);
}

bh_rc
bh_cli_tenants(struct bh_cli *cli, struct bh_err *err)
{
    return get_tenants(cli, &bh_view_tenants, err);
}

bh_rc
bh_cli_quota(struct bh_cli *cli, struct bh_err *err)
{
    return get_tenants(cli, &bh_view_quota, err);
}

/* ---- usage ---- */

static void
get_put_sum(struct bh_buf *out, bh_json_value sum)
{
    static const struct bh_column columns[] = {
        { "", "compute_part_ns", BH_CELL_GPU_TIME, false },
        { "", "memory_part_ns", BH_CELL_GPU_TIME, false },
    };

    bh_buf_puts(out, " compute ");
    bh_view_cell(out, &columns[0], sum, 0);
    bh_buf_puts(out, "  memory ");
    bh_view_cell(out, &columns[1], sum, 0);
    bh_buf_puts(out, " GPU-hours\n");
}

/* The sums under the table, which add up to physical time, and what made parts unusable. */
static void
get_put_sums(struct bh_buf *out, bh_json_value sums)
{
    static const char *const rows[] = { "tenants", "idle", "unusable", "unheard", "physical" };
    static const char *const causes[] = {
        "away", "carving", "cordoned", "fault", "geometry", "driver_reserve"
    };
    bh_json_value by = bh_json_get(sums, "unusable_by");

    for (size_t i = 0; sums && i < BH_COUNT(rows); i++) {
        bh_buf_printf(out, "%s%-9s", i ? "" : "\n", rows[i]);
        get_put_sum(out, bh_json_get(sums, rows[i]));
    }
    for (size_t i = 0; by && i < BH_COUNT(causes); i++) {
        bh_buf_printf(out, "unusable for %-14s", causes[i]);
        get_put_sum(out, bh_json_get(by, causes[i]));
    }
}

bh_rc
bh_cli_usage(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_view_style style = { .wide = bh_cli_output(cli) == BH_OUT_WIDE,
                                   .headers = !bh_cli_flag(cli, BH_OPT_NO_HEADERS) };
    char memory[PATH_BYTES_MAX];
    struct bh_buf path;
    bh_rc rc;

    bh_buf_init_fixed(&path, memory, sizeof memory);
    bh_buf_puts(&path, "/v1/usage");
    bh_jobs_put_filter(cli, &path);
    if (!bh_buf_text(&path))
        return bh_err_set(err, BH_INVALID, "usage: an option is too long");
    rc = bh_cli_fetch(cli, bh_buf_text(&path), &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    bh_view_table(&out, &bh_view_usage, &style, bh_json_get(bh_json_root(json), "items"));
    get_put_sums(&out, bh_json_get(bh_json_root(json), "sums"));
    return bh_output_write(&out, err);
}

/* ---- the caller and the service ---- */

/* Who the caller is, in a line, and the roles it holds. */
static void
get_put_caller(struct bh_buf *out, bh_json_value caller)
{
    bh_json_value roles = bh_json_get(caller, "roles");
    struct bh_view_style style = { .headers = true };
    static const struct bh_column columns[] = {
        { "", "name", BH_CELL_TEXT, false },
        { "", "via", BH_CELL_TEXT, false },
        { "", "scopes", BH_CELL_TEXT, false },
    };

    bh_view_cell(out, &columns[0], caller, 0);
    bh_buf_puts(out, ", known by ");
    bh_view_cell(out, &columns[1], caller, 0);
    if (bh_json_get(caller, "uid"))
        bh_buf_printf(out, ", uid %" PRIu64, bh_json_number(bh_json_get(caller, "uid"), 0));
    if (bh_json_get(caller, "scopes")) {
        bh_buf_puts(out, ", limited to ");
        bh_view_cell(out, &columns[2], caller, 0);
    }
    bh_buf_puts(out, bh_json_truth(bh_json_get(caller, "root")) ? ", may do everything\n" : "\n");
    if (bh_json_count(roles) > 0)
        bh_view_table(out, &bh_view_roles, &style, roles);
}

bh_rc
bh_cli_whoami(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/whoami", &json, err);

    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    get_put_caller(&out, bh_json_root(json));
    return bh_output_write(&out, err);
}

bh_rc
bh_cli_status(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/status", &json, err);

    return rc == BH_OK ? get_print_description(cli, bh_json_root(json), err) : rc;
}
