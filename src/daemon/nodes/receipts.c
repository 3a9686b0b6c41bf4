#include "daemon/nodes/receipts.h"

#include "api/documents/receipt.h"
#include "base/json.h"
#include "base/log.h"
#include "daemon/batch/record.h"
#include "daemon/state/documents.h"

enum { JSON_MAX = 16 << 10 };

/* Whose memory it was, as far as the node knows. */
static uint32_t
receipts_tenant_of(const struct bh_msg_receipt *receipt)
{
    for (uint32_t i = 0; i < receipt->from_count; i++) {
        if (receipt->from[i].tenant && receipt->from[i].tenant != UINT32_MAX)
            return receipt->from[i].tenant;
    }
    return receipt->tenant;
}

static bool
receipts_is_known(struct bh_core *core, const char *key)
{
    const struct bh_document_key wanted = { BH_DOCUMENT_RECEIPT, key };
    struct bh_document_row row;
    struct bh_err ignored;

    return bh_documents_get(core, &wanted, &row, &ignored) == BH_OK;
}

static bh_rc
receipts_put(struct bh_core *core, const char *key, const struct bh_receipt_row *receipt, struct bh_err *err)
{
    struct bh_document_row document = { .kind = BH_DOCUMENT_RECEIPT, .version = 1, .key = key };
    char memory[JSON_MAX];
    struct bh_buf json;

    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_receipt_row_fields, receipt);
    document.value = bh_buf_text(&json);
    if (!document.value)
        return bh_err_set(err, BH_FULL, "a receipt is too long");
    return bh_documents_put(core, &document, err);
}

static bh_rc
rc_of(const struct bh_msg_receipt *receipt)
{
    if (receipt->result == BH_SCRUB_INTERRUPTED)
        return BH_UNAVAILABLE;
    return receipt->result == BH_SCRUB_FAILED ? BH_IO : BH_OK;
}

static bh_rc
receipts_record(struct bh_core *core, const struct bh_receipt_row *row, struct bh_err *err)
{
    const struct bh_msg_receipt *receipt = &row->receipt;
    const struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .tenant = receipts_tenant_of(receipt),
                                    .text = row->digest, .verb = "node.scrubbed",
                                    .obj = { "piece", receipt->partition } };

    return bh_core_record(core, &entry, rc_of(receipt), err);
}

bh_rc
bh_receipts_record(struct bh_core *core, const struct bh_msg_receipt *receipt, struct bh_err *err)
{
    struct bh_receipt_row row = { .receipt = *receipt };
    char key[BH_RECEIPT_KEY_SIZE], memory[JSON_MAX];
    struct bh_buf json;
    bh_rc rc = bh_core_begin(core, err);

    bh_receipt_key(receipt, key);
    if (rc != BH_OK || receipts_is_known(core, key))
        return rc;
    rc = core->crypto->random(row.receipt.salt, sizeof row.receipt.salt, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_receipt_fields, &row.receipt);
    if (json.overflow)
        return bh_err_set(err, BH_INVALID, "a receipt is too long");
    core->crypto->sha256("", 0, json.bytes, json.length, row.digest);
    rc = receipts_record(core, &row, err);
    if (rc != BH_OK)
        return rc;
    row.record = core->journal.next_seq - 1; /* records of new names came before it */
    rc = receipts_put(core, key, &row, err);
    if (rc != BH_OK)
        return rc;
    bh_tally_count(&core->tally, bh_tally_scrub(receipt->method, receipt->result));
    if (receipt->result == BH_SCRUB_FAILED)
        bh_log(SCRUB_FAILED, BH_STR("gpu", receipt->gpu), BH_U64("partition", receipt->partition),
               BH_STR("why", receipt->why));
    return BH_OK;
}
