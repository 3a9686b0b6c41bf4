#include "audit/rows.h"

enum { TEXT_BYTES_MAX = 16 << 20, NAME_BYTES_MAX = 4096 };

static const struct bh_field name_rows[] = {
    BH_F(struct bh_row_name, erased_by, BH_FIELD_U64),
    BH_F(struct bh_row_name, id, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_name, key, BH_FIELD_HEX),
    BH_F(struct bh_row_name, kind, BH_FIELD_STR, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_name, name, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
};
const struct bh_fields bh_row_name_fields = BH_FIELDS("name", struct bh_row_name, name_rows);

static const struct bh_field job_rows[] = {
    BH_F(struct bh_row_job, count, BH_FIELD_U32),
    BH_F(struct bh_row_job, ended_ns, BH_FIELD_NS),
    BH_F(struct bh_row_job, exit_status, BH_FIELD_I32),
    BH_F(struct bh_row_job, job, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_job, principal, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, principal_id, BH_FIELD_U32),
    BH_F(struct bh_row_job, reason, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, sku, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, spec, BH_FIELD_HEX),
    BH_F(struct bh_row_job, started_ns, BH_FIELD_NS),
    BH_F(struct bh_row_job, state, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, submitted_ns, BH_FIELD_NS),
    BH_F(struct bh_row_job, tenant, BH_FIELD_TEXT, .max = NAME_BYTES_MAX),
    BH_F(struct bh_row_job, tenant_id, BH_FIELD_U32),
};
const struct bh_fields bh_row_job_fields = BH_FIELDS("job row", struct bh_row_job, job_rows);

static const struct bh_field text_rows[] = {
    BH_F(struct bh_row_text, digest, BH_FIELD_HEX, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_text, number, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_row_text, text, BH_FIELD_TEXT, .max = TEXT_BYTES_MAX),
};
const struct bh_fields bh_row_text_fields = BH_FIELDS("text", struct bh_row_text, text_rows);
