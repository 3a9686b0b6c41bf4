#include "api/site.h"

#include "base/num.h"

bh_rc
bh_site_get(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    const char *hex, *text = "{}"; /* none was applied yet */
    struct bh_digest digest;
    bh_rc rc = store->ops->get_meta(store->self, "site", call->arena, &hex, err);

    if (rc == BH_OK && !bh_parse_hex(hex, digest.bytes, sizeof digest.bytes))
        return bh_err_set(err, BH_BUG, "the store's site digest is damaged");
    if (rc == BH_OK)
        rc = store->ops->get_text(store->self, &digest, call->arena, &text, err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    bh_buf_puts(&call->reply->body, text);
    return BH_OK;
}

bh_rc
bh_site_apply(struct bh_call *call, struct bh_err *err)
{
    struct bh_site site;
    struct bh_command command = { .site = &site };
    struct bh_buf text;
    bh_rc rc = bh_call_body(call, &bh_site_fields, &site, err);

    if (rc == BH_OK)
        rc = bh_site_check(&site, err);
    if (rc == BH_INVALID && !err->hint[0])
        bh_err_hint(err, "man bulkhead-site explains every key");
    if (rc == BH_OK)
        rc = bh_call_flag(call, "dry_run", &command.dry_run, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init(&text, BH_JSON_BYTES_MAX);
    bh_json_encode(&text, &bh_site_fields, &site);
    command.text = bh_buf_text(&text);
    command.text_length = text.length;
    rc = command.text ? bh_call_send(call, &command, err)
                      : bh_err_set(err, BH_FULL, "the site file is too large");
    bh_buf_fini(&text);
    return rc;
}
