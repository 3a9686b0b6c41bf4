#include "audit/rows.h"

enum { TEXT_BYTES_MAX = 16 << 20, NAME_BYTES_MAX = 4096, DOCUMENT_BYTES_MAX = 64 << 10 };

static const struct bh_field name_rows[] = {
    BH_F(struct bh_row_name, erased_by, BH_FIELD_U64),
    BH_F(struct bh_row_name, id, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_name, key, BH_FIELD_HEX),
    BH_F(struct bh_row_name, kind, BH_FIELD_STR, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_name, name, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
};
const struct bh_fields bh_row_name_fields = BH_FIELDS("name", struct bh_row_name, name_rows);

static const struct bh_field job_rows[] = {
    BH_F(struct bh_row_job, checkpoint_signal, BH_FIELD_U32),
    BH_F(struct bh_row_job, contract, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, count, BH_FIELD_U32),
    BH_F(struct bh_row_job, deadline_ns, BH_FIELD_NS),
    BH_F(struct bh_row_job, ended_ns, BH_FIELD_NS),
    BH_F(struct bh_row_job, exit_status, BH_FIELD_I32),
    BH_F(struct bh_row_job, gang, BH_FIELD_U32),
    BH_F(struct bh_row_job, grade, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, job, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_job, kind, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, lease, BH_FIELD_U64),
    BH_F(struct bh_row_job, node, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F_AS(struct bh_row_job, partitions, "pieces", BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, principal, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, principal_id, BH_FIELD_U32),
    BH_F(struct bh_row_job, priority, BH_FIELD_U32),
    BH_F(struct bh_row_job, reason, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, restarts, BH_FIELD_U32),
    BH_F(struct bh_row_job, sku, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, spec, BH_FIELD_HEX),
    BH_F(struct bh_row_job, started_ns, BH_FIELD_NS),
    BH_F(struct bh_row_job, state, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, submitted_ns, BH_FIELD_NS),
    BH_F(struct bh_row_job, tenant, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, tenant_id, BH_FIELD_U32),
    BH_F(struct bh_row_job, time_limit_ns, BH_FIELD_NS),
};
const struct bh_fields bh_row_job_fields = BH_FIELDS("job row", struct bh_row_job, job_rows);

static const struct bh_field text_rows[] = {
    BH_F(struct bh_row_text, digest, BH_FIELD_HEX, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_text, number, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_text, text, BH_FIELD_TEXT, .max = TEXT_BYTES_MAX),
};
const struct bh_fields bh_row_text_fields = BH_FIELDS("text", struct bh_row_text, text_rows);

static const struct bh_field document_rows[] = {
    BH_F(struct bh_row_document, key, BH_FIELD_TEXT, .max = NAME_BYTES_MAX, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_document, kind, BH_FIELD_STR, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_document, number, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_document, value, BH_FIELD_TEXT, .max = DOCUMENT_BYTES_MAX, .flags = BH_FIELD_REQUIRED),
};
const struct bh_fields bh_row_document_fields = BH_FIELDS("document", struct bh_row_document, document_rows);

static const struct bh_field key_rows[] = {
    BH_F(struct bh_row_key, created_ns, BH_FIELD_NS),
    BH_F(struct bh_row_key, destroyed_ns, BH_FIELD_NS),
    BH_F(struct bh_row_key, id, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_key, kind, BH_FIELD_U32),
    BH_F(struct bh_row_key, month, BH_FIELD_U32),
    BH_F(struct bh_row_key, tenant_id, BH_FIELD_U32),
};
const struct bh_fields bh_row_key_fields = BH_FIELDS("key", struct bh_row_key, key_rows);
