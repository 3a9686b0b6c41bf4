#include "cli/site/policy.h"

#include <inttypes.h>
#include <string.h>

#include "base/time.h"
#include "base/yaml.h"
#include "cli/output/output.h"

enum { STATUS_DENIED = 1 };

static const char *
policy_text(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

static uint64_t
policy_number(bh_json_value object, const char *key)
{
    return bh_json_number(bh_json_get(object, key), 0);
}

static void
policy_put_item(struct bh_buf *out, bh_json_value item)
{
    bh_buf_printf(out, "job %" PRIu64 " (%s", policy_number(item, "job"), policy_text(item, "tenant"));
    if (*policy_text(item, "user")) { /* it is recorded, and has its own moment */
        bh_buf_printf(out, ", %s, ", policy_text(item, "user"));
        bh_time_put_utc(out, policy_number(item, "submitted_ns"));
    }
    bh_buf_printf(out, "): %s\n", policy_text(item, "sentence"));
    if (*policy_text(item, "next"))
        bh_buf_printf(out, "  next: %s\n", policy_text(item, "next"));
}

/* The answer of POST /v1/policy/test as text. */
static void
policy_put(struct bh_buf *out, bh_json_value answer)
{
    bh_json_value items = bh_json_get(answer, "items");

    for (size_t i = 0; i < bh_json_count(items); i++)
        policy_put_item(out, bh_json_at(items, i));
    bh_buf_printf(out, "%" PRIu64 " of %" PRIu64 " submissions would be denied",
                  policy_number(answer, "denied"), policy_number(answer, "tested"));
    if (policy_number(answer, "denied") > bh_json_count(items))
        bh_buf_printf(out, "; the first %zu are shown", bh_json_count(items));
    if (policy_number(answer, "erased") > 0)
        bh_buf_printf(out, "; %" PRIu64 " more are erased", policy_number(answer, "erased"));
    bh_buf_putc(out, '\n');
}

/* The document as JSON, behind its key; a single job becomes a list. */
static bh_rc
policy_put_document(struct bh_buf *body, const char *key, const char *file, bool list, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf json = { .max = BH_JSON_BYTES_MAX };
    BH_AUTO(bh_document_fini) struct bh_document document = { .yaml = false };
    const struct bh_buf *from = &document.text;
    bool alone;
    bh_rc rc = bh_cli_read_document(file, &document, err);

    if (rc != BH_OK)
        return rc;
    if (document.yaml)
        rc = bh_yaml_to_json(from->bytes ? from->bytes : "", from->length, &json, err);
    else
        bh_buf_put(&json, from->bytes, from->length);
    if (rc != BH_OK)
        return rc;
    alone = list && bh_buf_text(&json) && bh_buf_text(&json)[strspn(bh_buf_text(&json), " \t\r\n")] == '{';
    bh_buf_printf(body, "%s\"%s\":%s", body->length > 1 ? "," : "", key, alone ? "[" : "");
    bh_buf_put(body, json.bytes ? json.bytes : "", json.length);
    bh_buf_puts(body, alone ? "]" : "");
    return BH_OK;
}

static bh_rc
put_request(const struct bh_cli *cli, struct bh_buf *body, struct bh_err *err)
{
    const char *site = cli->args->options[BH_OPT_FILE].text;
    const char *against = cli->args->options[BH_OPT_AGAINST].text;
    bh_rc rc = BH_OK;

    bh_buf_putc(body, '{');
    if (against && strcmp(against, "journal") != 0)
        rc = policy_put_document(body, "jobs", against, true, err);
    if (rc == BH_OK && site)
        rc = policy_put_document(body, "site", site, false, err);
    bh_buf_putc(body, '}');
    return rc;
}

static bh_rc
policy_ask(struct bh_cli *cli, struct bh_buf *body, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_http_request request = { .method = "POST",
                                       .path = "/v1/policy/test",
                                       .accept = "application/json",
                                       .body = bh_buf_text(body),
                                       .body_length = body->length };
    bh_rc rc;

    if (!request.body)
        return bh_err_set(err, BH_FULL, "the request is too large");
    rc = bh_client_json(&cli->client, &request, &json, err);
    if (rc != BH_OK)
        return rc;
    if (policy_number(bh_json_root(json), "denied") > 0)
        cli->status = STATUS_DENIED;
    if (bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        return rc;
    policy_put(&out, bh_json_root(json));
    return bh_output_write(&out, err);
}

bh_rc
bh_cli_policy_test(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf body = { .max = 2 * BH_JSON_BYTES_MAX };
    bh_rc rc;

    rc = put_request(cli, &body, err);
    return rc == BH_OK ? policy_ask(cli, &body, err) : rc;
}
