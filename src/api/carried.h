#ifndef BH_API_CARRIED_H
#define BH_API_CARRIED_H

#include "ports/store.h"
#include "wire/message.h"

/* What networks of jobs carried, as the store has it.  The record of a lease's end,
 * node.ended, has the digest of a text: struct bh_carried_end as canonical JSON.  Beside it
 * stand sums of these: a document of kind BH_DOCUMENT_CARRIED by the job's number, and one
 * of BH_DOCUMENT_CARRIED_TENANT by that of the tenant that the job was submitted to. */

struct bh_carried_end {
    struct bh_msg_carried carried;
    uint64_t job, lease;
    uint32_t tenant;
};

struct bh_carried_row {
    struct bh_msg_carried sums;
    uint64_t leases; /* that they are of */
};

extern const struct bh_fields bh_carried_end_fields, bh_carried_row_fields;

enum { BH_CARRIED_KEY_SIZE = 21 };
void bh_carried_key(uint64_t number, char ret_key[BH_CARRIED_KEY_SIZE]);

/* Numbers that would be too large stay the largest. */
void bh_carried_add(struct bh_msg_carried *to, const struct bh_msg_carried *from);

/* What is written of one, with no room for more than it needs.  BH_INVALID. */
BH_MUST_USE bh_rc bh_carried_parse(const char *value, struct bh_carried_row *ret_row,
                                   struct bh_err *err);

/* What the store has; zeros when it has none.  Results of bh_store_ops.get_document. */
BH_MUST_USE bh_rc bh_carried_get(const struct bh_store *store, enum bh_document_kind kind,
                                 uint64_t number, struct bh_carried_row *ret_row,
                                 struct bh_err *err);

#endif
