#ifndef BH_API_FAILURE_H
#define BH_API_FAILURE_H

#include "api/call.h"
#include "base/fields.h"

/* Why a job could not be started, as the store has it: a document of kind BH_DOCUMENT_FAILURE
 * that names a text.  The text is the node's, sealed like the job's specification, and its digest
 * stands in the record of the outcome. */

struct bh_failure_row {
    uint8_t text[32];            /* digest of the sealed item */
};
extern const struct bh_fields bh_failure_row_fields;

enum { BH_FAILURE_KEY_SIZE = 21, BH_FAILURE_WHY_MAX = 512 };
void bh_failure_key(uint64_t job, char ret_key[BH_FAILURE_KEY_SIZE]);

/* What the node said, without and with what to do ("" is nothing); false: nothing is known, or it
 * was erased. */
bool bh_failure_read(const struct bh_call *call, uint64_t job, char ret_why[BH_FAILURE_WHY_MAX],
                     char ret_hint[BH_FAILURE_WHY_MAX]);

#endif
