#ifndef BH_API_DOCUMENTS_JOB_DOCUMENT_H
#define BH_API_DOCUMENTS_JOB_DOCUMENT_H

#include "keys/keys.h"
#include "model/spec.h"
#include "ports/store.h"
#include "wire/message.h"

/* What the store has of a job beside its row: documents by the job's number, each of a kind and
 * described once, and the specification that it was submitted with, a sealed text. */

enum { BH_JOB_DOCUMENT_KEY_SIZE = 21 };
void bh_job_document_key(uint64_t number, char ret_key[BH_JOB_DOCUMENT_KEY_SIZE]);

/* BH_DOCUMENT_CARRIED: sums of what networks carried for the job's leases that ended;
 * BH_DOCUMENT_CARRIED_TENANT: for all of a tenant, by the tenant's number. */
struct bh_carried_row {
    struct bh_msg_carried sums;
    uint64_t leases; /* that they are of */
};

/* What each of them adds: the text whose digest stands in the record node.ended. */
struct bh_carried_end {
    struct bh_msg_carried carried;
    uint64_t job, lease;
    uint32_t tenant;
};
extern const struct bh_fields bh_carried_end_fields, bh_carried_row_fields;

/* BH_DOCUMENT_FAILURE: where the node says why the job could not be started, or was ended. */
struct bh_failure_row {
    uint64_t record; /* the number of the record that has it as its note */
    uint8_t
        text[32]; /* of earlier programs, instead: the digest of the sealed text, which the record names */
};
extern const struct bh_fields bh_failure_row_fields;

/* BH_DOCUMENT_IMAGE: the image that the job has; the record job.image has the digest, too. */
struct bh_image_row {
    uint8_t digest[32]; /* SHA-256 of the manifest */
};
extern const struct bh_fields bh_image_row_fields;

/* BH_DOCUMENT_NOTICES: what a job with a share of a GPU did that its people should know
 * (tables/job_notices.tbl), an item for each kind that was seen. */
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

/* The value of a document of that kind as its row.  BH_INVALID. */
BH_MUST_USE bh_rc bh_job_document_decode(enum bh_document_kind kind, const char *value, void *ret_row,
                                         struct bh_err *err);

/* What the store has; all zeros when it has none.  Any thread.  Results of
 * bh_store_ops.get_document but BH_NOT_FOUND; BH_INVALID. */
BH_MUST_USE bh_rc bh_job_document_get(const struct bh_store *store, enum bh_document_kind kind,
                                      uint64_t number, void *ret_row, struct bh_err *err);

/* The specification with this digest, in the arena.  Results of bh_keys_get_text, where
 * BH_NOT_FOUND says that it was erased; BH_INVALID. */
BH_MUST_USE bh_rc bh_job_document_spec(struct bh_keys *keys, const struct bh_digest *digest,
                                       struct bh_arena *arena, struct bh_job_spec *ret_spec,
                                       struct bh_err *err);

#endif
