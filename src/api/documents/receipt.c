#include "api/documents/receipt.h"

#include <inttypes.h>
#include <stdio.h>

static const struct bh_field rows[] = {
    BH_F(struct bh_receipt_row, digest, BH_FIELD_HEX),
    BH_F(struct bh_receipt_row, receipt, BH_FIELD_STRUCT, .of = &bh_receipt_fields),
    BH_F(struct bh_receipt_row, record, BH_FIELD_U64),
};
const struct bh_fields bh_receipt_row_fields = BH_FIELDS("receipt_row", struct bh_receipt_row, rows);

void
bh_receipt_key(const struct bh_msg_receipt *receipt, char ret_key[BH_RECEIPT_KEY_SIZE])
{
    snprintf(ret_key, BH_RECEIPT_KEY_SIZE, "%020" PRIu64 "-%020" PRIu64, receipt->order, receipt->begun_ns);
}
