#ifndef BH_API_DOCUMENTS_RECEIPT_H
#define BH_API_DOCUMENTS_RECEIPT_H

#include "wire/message.h"

/* A scrub's receipt as the store has it: a document of kind BH_DOCUMENT_RECEIPT. */

struct bh_receipt_row {
    uint64_t record;    /* the record that has its digest */
    uint8_t digest[32]; /* SHA-256 of `receipt` as canonical JSON */
    struct bh_msg_receipt receipt;
};
extern const struct bh_fields bh_receipt_row_fields;

/* Its key: the order that it was made for, and when the scrub began.  One order may have several:
 * the node died after a scrub, or its lease has several partitions. */
enum { BH_RECEIPT_KEY_SIZE = 42 };
void bh_receipt_key(const struct bh_msg_receipt *receipt, char ret_key[BH_RECEIPT_KEY_SIZE]);

#endif
