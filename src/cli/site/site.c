#include "cli/site/site.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

bh_rc
bh_site_send(const struct bh_cli *cli, const char *file, const char *query, struct bh_json **ret_json,
             struct bh_err *err)
{
    char what[160];
    BH_AUTO(bh_document_fini) struct bh_document site = { .yaml = false };
    bh_rc rc = bh_cli_read_document(file, &site, err);

    if (rc != BH_OK)
        return rc;
    snprintf(what, sizeof what, "PUT /v1/site%s", query);
    return bh_cli_change(cli, what, &site, ret_json, err);
}

void
bh_site_put_changes(struct bh_buf *out, bh_json_value answer)
{
    bh_json_value changes = bh_json_get(answer, "changes"), removes = bh_json_get(answer, "removes");
    bh_json_value warnings = bh_json_get(answer, "warnings");
    uint64_t count = bh_json_number(bh_json_get(answer, "change_count"), 0);

    for (size_t i = 0; i < bh_json_count(changes); i++)
        bh_buf_printf(out, "%s\n", bh_json_text(bh_json_at(changes, i), ""));
    if (count > bh_json_count(changes))
        bh_buf_printf(out, "and %" PRIu64 " more\n", count - bh_json_count(changes));
    for (size_t i = 0; i < bh_json_count(removes); i++)
        bh_buf_printf(out, "removes %s\n", bh_json_text(bh_json_at(removes, i), ""));
    for (size_t i = 0; i < bh_json_count(warnings); i++)
        bh_buf_printf(out, "warning: %s\n", bh_json_text(bh_json_at(warnings, i), ""));
}

/* How many there are, and what became of them. */
static void
site_put_applied(struct bh_buf *out, bh_json_value answer, bool pruned)
{
    uint64_t count = bh_json_number(bh_json_get(answer, "change_count"), 0);
    uint64_t revision = bh_json_number(bh_json_get(answer, "revision"), 0);
    bool dry_run = bh_json_truth(bh_json_get(answer, "dry_run"));

    bh_buf_printf(out, "%" PRIu64 " change%s", count, count == 1 ? "" : "s");
    if (dry_run)
        bh_buf_printf(out, "%s; nothing was changed\n",
                      bh_json_count(bh_json_get(answer, "removes")) && !pruned ? "; this needs --prune" : "");
    else
        bh_buf_printf(out, "; revision %" PRIu64 "\n", revision);
}

static void
site_put_query(const struct bh_cli *cli, struct bh_buf *query)
{
    static const struct {
        enum bh_option_id option;
        const char *parameter;
    } flags[] = { { BH_OPT_DRY_RUN, "dry_run" }, { BH_OPT_PRUNE, "prune" } };

    for (size_t i = 0; i < BH_COUNT(flags); i++)
        if (bh_cli_flag(cli, flags[i].option))
            bh_buf_printf(query, "%c%s=true", query->length ? '&' : '?', flags[i].parameter);
    if (cli->args->options[BH_OPT_REVISION].given)
        bh_buf_printf(query, "%crevision=%" PRIu64, query->length ? '&' : '?',
                      cli->args->options[BH_OPT_REVISION].number);
}

bh_rc
bh_cli_apply(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    struct bh_buf query;
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *file = cli->args->options[BH_OPT_FILE].text;
    char memory[128];
    bh_rc rc;

    if (!file) {
        bh_err_set(err, BH_INVALID, "apply: no site file");
        return bh_err_hint(err, "bulkhead apply -f site.yaml; - is standard input");
    }
    bh_buf_init_fixed(&query, memory, sizeof memory);
    site_put_query(cli, &query);
    rc = bh_site_send(cli, file, bh_buf_text(&query), &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err)
        || bh_cli_flag(cli, BH_OPT_QUIET))
        return rc;
    bh_site_put_changes(&out, bh_json_root(json));
    site_put_applied(&out, bh_json_root(json), bh_cli_flag(cli, BH_OPT_PRUNE));
    return bh_output_write(&out, err);
}

/* ---- revisions ---- */

static bh_rc
site_read_revision(const char *text, uint64_t *ret_number, struct bh_err *err)
{
    if (bh_parse_u64(text, ret_number, err) == BH_OK)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "\"%.40s\" is not the number of a revision", text);
    return bh_err_hint(err, "`bulkhead site history` lists them");
}

bh_rc
bh_cli_site_diff(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    uint64_t numbers[2] = { 0, 0 };
    char path[96];
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < cli->args->count && rc == BH_OK; i++)
        rc = site_read_revision(cli->args->arguments[i], &numbers[i], err);
    if (cli->args->count > 1)
        snprintf(path, sizeof path, "/v1/site/diff?from=%" PRIu64 "&to=%" PRIu64, numbers[0], numbers[1]);
    else
        snprintf(path, sizeof path, "/v1/site/diff?from=%" PRIu64, numbers[0]);
    if (rc == BH_OK)
        rc = bh_cli_fetch(cli, path, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    bh_site_put_changes(&out, bh_json_root(json));
    return bh_output_write(&out, err);
}

/* As YAML, fit for apply, unless JSON is asked for. */
bh_rc
bh_cli_site_show(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bool revision = cli->args->count > 0;
    uint64_t number = 0;
    char path[64] = "/v1/site";
    bh_json_value site;
    bh_rc rc = revision ? site_read_revision(cli->args->arguments[0], &number, err) : BH_OK;

    if (revision)
        snprintf(path, sizeof path, "/v1/site/revisions/%" PRIu64, number);
    if (rc != BH_OK)
        return rc;
    rc = bh_cli_fetch(cli, path, &json, err);
    if (rc != BH_OK)
        return rc;
    site = revision ? bh_json_get(bh_json_root(json), "site") : bh_json_root(json);
    if (bh_cli_output(cli) == BH_OUT_JSON)
        bh_output_json(&out, site);
    else
        bh_output_yaml(&out, site);
    return bh_output_write(&out, err);
}

/* ---- tokens ---- */

/* The request's members and the options they come from. */
static const struct {
    const char *key;
    enum bh_option_id option;
} token_members[] = {
    { "lifetime", BH_OPT_LIFETIME },
    { "note", BH_OPT_NOTE },
    { "principal", BH_OPT_PRINCIPAL },
    { "scopes", BH_OPT_SCOPES },
};

bh_rc
bh_cli_token_create(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    BH_AUTO(bh_document_fini) struct bh_document body = { .text.max = BH_JSON_BYTES_MAX };
    struct bh_json_writer w;
    bh_rc rc;

    w = bh_json_begin(&body.text);
    bh_json_open(&w, NULL, '{');
    for (size_t i = 0; i < BH_COUNT(token_members); i++)
        if (bh_cli_flag(cli, token_members[i].option))
            bh_json_str(&w, token_members[i].key, cli->args->options[token_members[i].option].text);
    bh_json_close(&w, '}');
    rc = bh_cli_change(cli, "POST /v1/tokens", &body, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (!bh_cli_flag(cli, BH_OPT_QUIET))
        fprintf(stderr, "token %s; the secret is not shown again:\n",
                bh_json_text(bh_json_get(bh_json_root(json), "id"), ""));
    printf("%s\n", bh_json_text(bh_json_get(bh_json_root(json), "token"), ""));
    return BH_OK;
}

bh_rc
bh_cli_token_revoke(struct bh_cli *cli, struct bh_err *err)
{
    for (uint32_t i = 0; i < cli->args->count; i++) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        char memory[512];
        struct bh_buf what;
        bh_rc rc;

        bh_buf_init_fixed(&what, memory, sizeof memory);
        bh_buf_puts(&what, "DELETE /v1/tokens/");
        bh_http_put_encoded(&what, cli->args->arguments[i]);
        if (!bh_buf_text(&what))
            return bh_err_set(err, BH_INVALID, "the token's id is too long");
        rc = bh_cli_change(cli, bh_buf_text(&what), NULL, &json, err);
        if (rc != BH_OK)
            return rc;
        if (!bh_cli_flag(cli, BH_OPT_QUIET))
            printf("token %s was revoked\n", cli->args->arguments[i]);
    }
    return BH_OK;
}
