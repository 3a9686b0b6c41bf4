#include "api/audit/keys.h"

#include <stdio.h>
#include <string.h>

#include "api/request/reply.h"
#include "model/path.h"

enum { REASON_MAX = 1000, TOKEN_MAX = 16, MONTH_MAX = 7, NAME_MAX_BYTES = 300 };

static const struct bh_field request_fields[] = {
    BH_F(struct bh_shred_request, month, BH_FIELD_TEXT, .max = MONTH_MAX,
         .doc = "\"2026-11\", in UTC, or \"all\""),
    BH_F(struct bh_shred_request, name, BH_FIELD_TEXT, .max = NAME_MAX_BYTES,
         .doc = "instead of tenant and month: the name of a tenant, principal, group or dataset that "
                "was removed, as \"principal:bob\"; its id stays"),
    BH_F(struct bh_shred_request, reason, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = REASON_MAX,
         .doc = "why; it is sealed in the record, under the site's key"),
    BH_F(struct bh_shred_request, tenant, BH_FIELD_TEXT, .max = BH_TENANT_PATH_MAX,
         .doc = "path, also of a tenant that was removed; \"*\" for the site's own"),
    BH_F(struct bh_shred_request, token, BH_FIELD_TEXT, .max = TOKEN_MAX,
         .doc = "to confirm what another administrator asked for"),
};
const struct bh_fields bh_shred_request_fields =
    BH_FIELDS("shred_request", struct bh_shred_request, request_fields);

/* ---- listing ---- */

struct key_list {
    const struct bh_call *call;
    struct bh_rows rows;
};

static const char *const kind_names[BH_KEY_KINDS] = {
    [BH_KEY_KIND_TENANT] = "tenant",
    [BH_KEY_KIND_AUDIT] = "audit",
    [BH_KEY_KIND_IDENTITY] = "identity",
};

static bool
keys_put_key(void *self, const struct bh_key_row *row)
{
    struct key_list *list = self;
    const struct bh_dir_tenant *tenant =
        bh_directory_tenant(list->call->dir, (bh_tenant_id){ row->tenant_id });
    char month[16] = "";
    const struct bh_reply_key_shown key = {
        .created_ns = row->created_ns,
        .id = row->id,
        .kind = kind_names[row->kind],
        .month = month,
        .shredded_ns = row->shredded_ns,
        .state = row->shredded_ns ? "destroyed" : "in force",
        .tenant = row->tenant_id == 0 ? "*"
                  : tenant            ? tenant->path
                                      : "",
    };

    if (row->month)
        snprintf(month, sizeof month, "%04u-%02u", (unsigned)(row->month / 100),
                 (unsigned)(row->month % 100));
    return bh_rows_put(&list->rows, &key);
}

bh_rc
bh_key_list(struct bh_call *call, struct bh_err *err)
{
    struct key_list list = { call, bh_rows_begin(call, &bh_reply_key_list_fields) };

    bh_keys_each(call->api->options.keys, keys_put_key, &list);
    bh_rows_end(&list.rows, NULL);
    return BH_OK;
}

/* ---- changing ---- */

bh_rc
bh_key_shred(struct bh_call *call, struct bh_err *err)
{
    struct bh_shred_request request = { 0 };
    struct bh_command command = { .shred = &request };
    bh_rc rc = bh_call_body(call, &bh_shred_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    if (request.name ? request.tenant || request.month : !request.tenant || !request.month)
        return bh_err_set(err, BH_INVALID, "say a tenant and a month, or a name");
    if (!request.reason[0])
        return bh_err_set(err, BH_INVALID, "reason: say why");
    return bh_call_send(call, &command, err);
}

bh_rc
bh_key_rotate(struct bh_call *call, struct bh_err *err)
{
    struct bh_command command = { 0 };

    return bh_call_send(call, &command, err);
}
