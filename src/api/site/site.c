#include "api/site/site.h"

#include <string.h>

#include "api/documents/revision.h"
#include "api/request/reply.h"
#include "base/num.h"

bh_rc
bh_site_get(struct bh_call *call, struct bh_err *err)
{
    const char *text;
    bh_rc rc = bh_revision_present_text(&call->api->options.store, call->arena, &text, err);

    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    bh_buf_puts(&call->reply->body, text ? text : "{}");
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
    if (rc != BH_OK)
        return rc;
    command.dry_run = call->query.dry_run;
    command.prune = call->query.prune;
    command.revision = call->query.revision;
    command.guarded = call->query.given.revision;
    bh_buf_init(&text, BH_JSON_BYTES_MAX);
    bh_json_encode(&text, &bh_site_fields, &site);
    command.text = bh_buf_text(&text);
    command.text_length = text.length;
    rc = command.text ? bh_call_send(call, &command, err)
                      : bh_err_set(err, BH_FULL, "the site file is too large");
    bh_buf_fini(&text);
    return rc;
}

/* ---- revisions ---- */

struct revisions {
    struct bh_call *call;
    struct bh_revision rows[BH_REVISIONS_MAX]; /* the newest: before one goes there may be more */
    uint32_t count;                            /* of all; one stands at its number's remainder */
};

static bool
site_take_revision(void *self, const struct bh_document_row *row)
{
    struct revisions *all = self;

    if (bh_revision_decode(row, all->call->arena, &all->rows[all->count % BH_REVISIONS_MAX]))
        all->count++;
    return true;
}

static struct bh_reply_site_revision
site_reply_of(const struct bh_call *call, const struct bh_revision *revision)
{
    const struct bh_dir_principal *by =
        bh_directory_principal(call->dir, (bh_principal_id){ revision->principal });
    struct bh_reply_site_revision reply = { .at_ns = revision->at_ns,
                                            .by = by ? by->name : "",
                                            .changes = revision->changes,
                                            .revision = revision->number };

    memcpy(reply.digest, revision->digest, sizeof reply.digest);
    return reply;
}

/* The newest first. */
bh_rc
bh_site_revisions(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    const struct bh_document_filter filter = { BH_DOCUMENT_REVISION, 0 };
    struct bh_reply_site_revision_list end = { .present = 0 };
    struct revisions *all;
    struct bh_rows rows;
    uint32_t oldest;
    bh_rc rc = bh_call_alloc(call, sizeof *all, &all, err);

    if (rc != BH_OK)
        return rc;
    all->call = call;
    all->count = 0;
    rc = store->ops->list_documents(store->self, &filter, site_take_revision, all, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_revision_present(store, call->arena, &end.present, err);
    if (rc != BH_OK)
        return rc;
    rows = bh_rows_begin(call, &bh_reply_site_revision_list_fields);
    oldest = all->count > BH_REVISIONS_MAX ? all->count - BH_REVISIONS_MAX : 0;
    for (uint32_t i = all->count; i-- > oldest;) {
        const struct bh_reply_site_revision row = site_reply_of(call, &all->rows[i % BH_REVISIONS_MAX]);

        (void)bh_rows_put(&rows, &row);
    }
    bh_rows_end(&rows, &end);
    return BH_OK;
}

bh_rc
bh_site_revision(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct bh_reply_site_revision reply;
    struct bh_revision revision;
    const char *text;
    uint64_t number;
    bh_rc rc = bh_parse_u64(call->id, &number, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_revision_read(store, number, call->arena, &revision, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_revision_text(store, &revision, call->arena, &text, err);
    if (rc != BH_OK)
        return rc;
    reply = site_reply_of(call, &revision);
    reply.site = bh_reply_slice(text);
    bh_reply_put(call, &bh_reply_site_revision_fields, &reply);
    return BH_OK;
}

static bh_rc
site_read_revision(struct bh_call *call, uint64_t number, struct bh_site *ret_site, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct bh_revision revision;
    const char *text;
    bh_rc rc = bh_revision_read(store, number, call->arena, &revision, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_revision_text(store, &revision, call->arena, &text, err);
    if (rc != BH_OK)
        return rc;
    return bh_json_decode(text, strlen(text), &bh_site_fields, ret_site, call->arena, err);
}

/* `to` is the present one when it is not given. */
bh_rc
bh_site_diff(struct bh_call *call, struct bh_err *err)
{
    struct bh_reply_site_difference reply = { .from = 0 };
    struct bh_site_changes changes;
    struct bh_site from, to;
    uint64_t second = 0;
    bh_rc rc = bh_revision_present(&call->api->options.store, call->arena, &second, err);

    if (rc != BH_OK)
        return rc;
    if (!call->query.given.from)
        return bh_err_set(err, BH_INVALID, "from: a revision is needed");
    if (call->query.given.to)
        second = call->query.to;
    rc = site_read_revision(call, call->query.from, &from, err);
    if (rc != BH_OK)
        return rc;
    rc = site_read_revision(call, second, &to, err);
    if (rc != BH_OK)
        return rc;
    bh_site_changes_find(call->api->options.crypto, &from, &to, call->arena, &changes);
    reply.change_count = changes.count;
    reply.changes = changes.lines;
    if (changes.listed != changes.count)
        memcpy(reply.changes_sha256, changes.digest, sizeof reply.changes_sha256);
    reply.from = call->query.from;
    reply.to = second;
    bh_reply_put(call, &bh_reply_site_difference_fields, &reply);
    return BH_OK;
}
