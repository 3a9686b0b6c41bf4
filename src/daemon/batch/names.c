#include "daemon/batch/names.h"

#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "daemon/names/catalog.h"

/* Names of one record; and the store's note that its names are bound. */
enum { AT_ONCE = 256, LIST_BYTES_MAX = 160 * AT_ONCE };
static const char bound_meta[] = "names";

/* One record of its own, of as many as it has room for. */
static bh_rc
give_some(struct bh_core *core, const struct bh_entry *like, uint64_t ts_ns, struct bh_err *err)
{
    struct bh_record record = { .ts_ns = ts_ns,
                                .actor = like->actor,
                                .dec = like->dec,
                                .obj = like->obj,
                                .phase = BH_PHASE_EVENT,
                                .res = bh_rc_name(BH_OK),
                                .verb = like->verb };
    char memory[LIST_BYTES_MAX];
    struct bh_buf list;
    bh_rc rc;

    if (like->req)
        memcpy(record.req, like->req, sizeof record.req);
    bh_buf_init_fixed(&list, memory, sizeof memory);
    bh_buf_putc(&list, '[');
    rc = bh_catalog_bind(core->catalog, AT_ONCE, core->journal.next_seq, &list, err);
    bh_buf_putc(&list, ']');
    record.names_json = bh_buf_text(&list);
    BH_ASSERT(record.names_json);
    return rc == BH_OK ? bh_journal_append(&core->journal, &record, err) : rc;
}

static bh_rc
give_all(struct bh_core *core, const struct bh_entry *like, uint64_t ts_ns, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_catalog_unbound(core->catalog) > 0)
        rc = give_some(core, like, ts_ns, err);
    return rc;
}

bh_rc
bh_names_give(struct bh_core *core, const struct bh_entry *like, uint64_t ts_ns, struct bh_err *err)
{
    struct bh_entry entry = *like;

    entry.verb = BH_RECORD_NAMES_GIVE;
    return give_all(core, &entry, ts_ns, err);
}

bh_rc
bh_names_bind(struct bh_core *core, const struct bh_entry *entry, struct bh_record *record,
              struct bh_buf *list, struct bh_err *err)
{
    bh_rc rc;

    if (bh_catalog_unbound(core->catalog) > BH_NAMES_INLINE_MAX)
        return bh_names_give(core, entry, record->ts_ns, err);
    bh_buf_putc(list, '[');
    rc = bh_catalog_bind(core->catalog, BH_NAMES_INLINE_MAX, core->journal.next_seq, list, err);
    bh_buf_putc(list, ']');
    record->names_json = bh_buf_text(list);
    BH_ASSERT(record->names_json);
    return rc;
}

/* Bind all names of the table, or again; `why` is the records' object. */
static bh_rc
bind_table(struct bh_core *core, const struct bh_record_object *why, struct bh_err *err)
{
    bool upgrade = strcmp(why->type, BH_RECORD_UPGRADE) == 0;
    const struct bh_entry like = {
        .actor = { .via = BH_VIA_SYSTEM }, .dec = { .allow = true }, .verb = BH_RECORD_NAMES_BIND, .obj = *why
    };
    uint32_t count;
    bh_rc rc = bh_catalog_rebind(core->catalog, upgrade, &count, err);

    if (rc != BH_OK)
        return rc;
    if (upgrade && count > 0)
        bh_log(NAMES_BOUND, BH_U64("names", count));
    return give_all(core, &like, bh_core_now(core), err);
}

bh_rc
bh_names_upgrade(struct bh_core *core, struct bh_err *err)
{
    const struct bh_store *store = &core->store;
    const struct bh_record_object why = { .type = BH_RECORD_UPGRADE };
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(4096);
    const char *value;
    bh_rc rc = store->ops->get_meta(store->self, bound_meta, arena, &value, err);

    if (rc != BH_NOT_FOUND)
        return rc; /* a key that is removed afterwards is not made again */
    rc = bh_core_begin(core, err);
    rc = bind_table(core, &why, err);
    if (rc != BH_OK)
        return rc;
    return store->ops->put_meta(store->self, bound_meta, "bound", err);
}

bh_rc
bh_names_keep(struct bh_core *core, uint64_t minimum, struct bh_err *err)
{
    const struct bh_record_object why = { .type = BH_RECORD_LOG, .id = minimum };

    return bind_table(core, &why, err);
}
