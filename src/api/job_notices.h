#ifndef BH_API_JOB_NOTICES_H
#define BH_API_JOB_NOTICES_H

#include "api/call.h"
#include "base/fields.h"
#include "wire/message.h"

/* What a job with a share of a GPU did that its people should know (tables/job_notices.tbl), as the
 * store has it: a document of kind BH_DOCUMENT_NOTICES, an item for each kind that was seen. */

struct bh_job_notice_item {
    enum bh_job_notice kind;
    uint64_t first_ns, last_ns;
    uint64_t count;
};

struct bh_job_notices_row {
    struct bh_job_notice_item items[BH_JOB_NOTICES]; /* in the order of their first time */
    uint32_t item_count;
};
extern const struct bh_fields bh_job_notices_fields;

enum { BH_JOB_NOTICES_KEY_SIZE = 21 };
void bh_job_notices_key(uint64_t job, char ret_key[BH_JOB_NOTICES_KEY_SIZE]);

/* Those of a job; none when there are none. */
BH_MUST_USE bh_rc bh_job_notices_get(const struct bh_call *call, uint64_t job,
                                     struct bh_job_notices_row *ret_row, struct bh_err *err);

/* The list `notices` of a job that the caller may see; nothing when there is none. */
BH_MUST_USE bh_rc bh_job_notices_put(const struct bh_call *call, struct bh_json_writer *w,
                                     uint64_t job, struct bh_err *err);

#endif
