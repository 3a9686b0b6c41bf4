#include "cli/site.h"

#include <stdio.h>
#include <string.h>

#include "cli/output.h"

bh_rc
bh_site_send(const struct bh_cli *cli, const char *file, bool dry_run, struct bh_json **ret_json,
             struct bh_err *err)
{
    struct bh_document site;
    bh_rc rc = bh_cli_read_document(file, &site, err);

    if (rc == BH_OK)
        rc = bh_cli_change(cli, dry_run ? "PUT /v1/site?dry_run=true" : "PUT /v1/site", &site,
                           ret_json, err);
    bh_buf_fini(&site.text);
    return rc;
}

bh_rc
bh_cli_apply(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *file = cli->args->options[BH_OPT_FILE].text;
    bool dry_run = bh_cli_flag(cli, BH_OPT_DRY_RUN);
    bh_json_value changes;
    bh_rc rc;

    if (!file) {
        bh_err_set(err, BH_INVALID, "apply: no site file");
        return bh_err_hint(err, "bulkhead apply -f site.yaml; - is standard input");
    }
    rc = bh_site_send(cli, file, dry_run, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    changes = bh_json_get(bh_json_root(json), "changes");
    for (size_t i = 0; !bh_cli_flag(cli, BH_OPT_QUIET) && i < bh_json_count(changes); i++)
        printf("%s\n", bh_json_text(bh_json_at(changes, i), ""));
    if (!bh_cli_flag(cli, BH_OPT_QUIET))
        printf("%zu changes%s\n", bh_json_count(changes), dry_run ? "; nothing was changed" : "");
    return BH_OK;
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
    struct bh_document body = { .yaml = false };
    struct bh_json_writer w;
    bh_rc rc;

    bh_buf_init(&body.text, BH_JSON_BYTES_MAX);
    w = bh_json_begin(&body.text);
    bh_json_open(&w, NULL, '{');
    for (size_t i = 0; i < BH_COUNT(token_members); i++)
        if (bh_cli_flag(cli, token_members[i].option))
            bh_json_str(&w, token_members[i].key,
                        cli->args->options[token_members[i].option].text);
    bh_json_close(&w, '}');
    rc = bh_cli_change(cli, "POST /v1/tokens", &body, &json, err);
    bh_buf_fini(&body.text);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (!bh_cli_flag(cli, BH_OPT_QUIET))
        fprintf(stderr, "token %s; the secret is shown this once:\n",
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
            printf("token %s is revoked\n", cli->args->arguments[i]);
    }
    return BH_OK;
}
