#include "daemon/batch/append.h"

#include <string.h>

#include "audit/sealed.h"
#include "base/assert.h"
#include "daemon/batch/names.h"

/* How much of a note the next item holds: all, or as many whole lines as fit; 0: not even one. */
static size_t
append_item_length(const char *note)
{
    size_t length = strnlen(note, BH_ENTRY_NOTE_ITEM_MAX + 1);

    if (length <= BH_ENTRY_NOTE_ITEM_MAX)
        return length;
    for (length = BH_ENTRY_NOTE_ITEM_MAX; length > 0 && note[length - 1] != '\n';)
        length--;
    return length;
}

/* The note as the leaf's list of sealed texts. */
static bh_rc
append_seal_note(struct bh_core *core, const struct bh_entry *entry, struct bh_buf *list, struct bh_err *err)
{
    const char *note = entry->note;
    bh_rc rc = BH_OK;

    bh_buf_putc(list, '[');
    for (uint32_t items = 0; rc == BH_OK && *note; items++) {
        const struct bh_slice item = { note, append_item_length(note) };

        if (items == BH_SEALED_ITEMS_MAX || item.length == 0)
            return bh_err_set(err, BH_RANGE, "a text of %zu bytes is too long for a record",
                              strlen(entry->note));
        bh_buf_puts(list, items ? "," : "");
        rc = bh_core_seal(core, (bh_tenant_id){ entry->tenant }, item, list, err);
        note += item.length;
    }
    bh_buf_putc(list, ']');
    return rc;
}

bh_rc
bh_core_append(struct bh_core *core, const struct bh_entry *entry, struct bh_record *record,
               struct bh_err *err)
{
    char memory[BH_RECORD_BYTES_MAX], names_memory[BH_NAMES_BYTES_MAX];
    struct bh_buf sealed, names;
    bh_rc rc = bh_core_begin(core, err);

    bh_buf_init_fixed(&names, names_memory, sizeof names_memory);
    if (rc == BH_OK && bh_catalog_unbound(core->catalog) > 0)
        rc = bh_names_bind(core, entry, record, &names, err);
    bh_buf_init_fixed(&sealed, memory, sizeof memory);
    if (rc != BH_OK)
        return rc;
    if (entry->note && entry->note[0]) {
        rc = append_seal_note(core, entry, &sealed, err);
        record->sealed_json = bh_buf_text(&sealed);
        BH_ASSERT(rc != BH_OK || record->sealed_json);
    }
    if (rc != BH_OK)
        return rc;
    record->actor = entry->actor;
    record->obj = entry->obj;
    record->dec = entry->dec;
    record->phase = entry->phase;
    record->tenant = entry->tenant;
    record->order = entry->order;
    record->verb = entry->verb;
    if (entry->ev_json)
        record->ev_json = entry->ev_json;
    if (entry->jobs_json)
        record->jobs_json = entry->jobs_json;
    if (entry->text)
        memcpy(record->text, entry->text, sizeof record->text);
    if (entry->req)
        memcpy(record->req, entry->req, sizeof record->req);
    rc = bh_journal_append(&core->journal, record, err);
    if (rc != BH_OK)
        return rc;
    bh_open_orders_read(&core->open_orders, record);
    return BH_OK;
}
