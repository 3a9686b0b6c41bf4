#include "cli/audit/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/jobs/get.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

static const char *
key_text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

static uint64_t
key_number(bh_json_value object, const char *key)
{
    return bh_json_number(bh_json_get(object, key), 0);
}

/* "KEYS keys of TENANT (MONTH)", or "the name NAME". */
static const char *
what_of(const struct bh_cli *cli, bh_json_value answer)
{
    const char *name = key_text(answer, "name");

    return *name ? bh_arena_printf(cli->arena, "the name %s", name)
                 : bh_arena_printf(cli->arena, "%" PRIu64 " keys of %s (%s)", key_number(answer, "keys"),
                                   key_text(answer, "tenant"), key_text(answer, "month"));
}

/* What came of it; the token is for a second person, so it is alone on its line. */
static void
key_print(const struct bh_cli *cli, bh_json_value answer)
{
    const char *token = key_text(answer, "token");

    if (!*token) {
        if (*key_text(answer, "name"))
            printf("the name %s was erased; its id stays\n", key_text(answer, "name"));
        else
            printf("%s were destroyed; the texts that they sealed are erased\n", what_of(cli, answer));
        return;
    }
    if (!bh_cli_flag(cli, BH_OPT_QUIET))
        fprintf(
            stderr,
            "requested: %s; nothing is destroyed yet\na second administrator must confirm within 24 hours, "
            "with a reason:\n  bulkhead key shred %s%s%s%s --confirm TOKEN --reason TEXT\n",
            what_of(cli, answer), key_text(answer, "name"), key_text(answer, "tenant"),
            *key_text(answer, "month") ? " --month " : "", key_text(answer, "month"));
    printf("%s\n", token);
}

static const struct {
    enum bh_option_id option;
    const char *key;
} members[] = {
    { BH_OPT_MONTH, "month" },
    { BH_OPT_REASON, "reason" },
    { BH_OPT_CONFIRM, "token" },
};

bh_rc
bh_cli_key_shred(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    BH_AUTO(bh_document_fini) struct bh_document body = { .text.max = BH_JSON_BYTES_MAX };
    struct bh_json_writer w;
    bool of_name = strchr(cli->args->arguments[0], ':');
    bh_rc rc;

    if (of_name == bh_cli_flag(cli, BH_OPT_MONTH) || !bh_cli_flag(cli, BH_OPT_REASON))
        return bh_err_set(err, BH_INVALID,
                          of_name ? "key shred: a name needs --reason, without --month"
                                  : "key shred: --month (a month or all) and --reason are required");
    w = bh_json_begin(&body.text);
    bh_json_open(&w, NULL, '{');
    for (size_t i = 0; i < BH_COUNT(members); i++)
        if (bh_cli_flag(cli, members[i].option))
            bh_json_str(&w, members[i].key, cli->args->options[members[i].option].text);
    bh_json_str(&w, of_name ? "name" : "tenant", cli->args->arguments[0]);
    bh_json_close(&w, '}');
    rc = bh_cli_change(cli, "POST /v1/keys/shred", &body, &json, err);
    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    key_print(cli, bh_json_root(json));
    return BH_OK;
}

bh_rc
bh_cli_key_rotate(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_change(cli, "POST /v1/keys/rotate", NULL, &json, err);

    if (rc != BH_OK || bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    if (!bh_cli_flag(cli, BH_OPT_QUIET))
        printf("there is a new root key; it wraps the keys of %" PRIu64 " tenants\n",
               key_number(bh_json_root(json), "keys"));
    return BH_OK;
}
