#include "api/documents/job_document.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"

enum { ROW_ARENA_MAX = 16 << 10 };

static const struct bh_field carried_end_rows[] = {
    BH_F(struct bh_carried_end, carried, BH_FIELD_STRUCT, .of = &bh_carried_fields),
    BH_F(struct bh_carried_end, job, BH_FIELD_U64),
    BH_F(struct bh_carried_end, lease, BH_FIELD_U64),
    BH_F(struct bh_carried_end, tenant, BH_FIELD_U32),
};
const struct bh_fields bh_carried_end_fields =
    BH_FIELDS("carried_end", struct bh_carried_end, carried_end_rows);

static const struct bh_field carried_rows[] = {
    BH_F(struct bh_carried_row, leases, BH_FIELD_U64),
    BH_F(struct bh_carried_row, sums, BH_FIELD_STRUCT, .of = &bh_carried_fields),
};
const struct bh_fields bh_carried_row_fields = BH_FIELDS("carried_row", struct bh_carried_row, carried_rows);

static const struct bh_field failure_rows[] = {
    BH_F(struct bh_failure_row, record, BH_FIELD_U64),
    BH_F(struct bh_failure_row, text, BH_FIELD_HEX),
};
const struct bh_fields bh_failure_row_fields = BH_FIELDS("failure_row", struct bh_failure_row, failure_rows);

static const struct bh_field image_rows[] = {
    BH_F(struct bh_image_row, digest, BH_FIELD_HEX),
};
const struct bh_fields bh_image_row_fields = BH_FIELDS("image_row", struct bh_image_row, image_rows);

static const struct bh_field notice_rows[] = {
    BH_F(struct bh_job_notice_item, count, BH_FIELD_U64),
    BH_F(struct bh_job_notice_item, first_ns, BH_FIELD_NS),
    BH_F_ENUM(struct bh_job_notice_item, kind, bh_job_notice_names),
    BH_F(struct bh_job_notice_item, last_ns, BH_FIELD_NS),
};
static const struct bh_fields notice_fields = BH_FIELDS("job_notice", struct bh_job_notice_item, notice_rows);

static const struct bh_field notices_rows[] = {
    BH_F_ARRAY(struct bh_job_notices_row, items, item_count, notice_fields, BH_JOB_NOTICES),
};
const struct bh_fields bh_job_notices_fields =
    BH_FIELDS("job_notices", struct bh_job_notices_row, notices_rows);

static const struct bh_fields *const kinds[BH_DOCUMENT_KINDS] = {
    [BH_DOCUMENT_CARRIED] = &bh_carried_row_fields, [BH_DOCUMENT_CARRIED_TENANT] = &bh_carried_row_fields,
    [BH_DOCUMENT_FAILURE] = &bh_failure_row_fields, [BH_DOCUMENT_IMAGE] = &bh_image_row_fields,
    [BH_DOCUMENT_NOTICES] = &bh_job_notices_fields,
};

void
bh_job_document_key(uint64_t number, char ret_key[BH_JOB_DOCUMENT_KEY_SIZE])
{
    snprintf(ret_key, BH_JOB_DOCUMENT_KEY_SIZE, "%020" PRIu64, number);
}

bh_rc
bh_job_document_decode(enum bh_document_kind kind, const char *value, void *ret_row, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ROW_ARENA_MAX);

    BH_ASSERT(kinds[kind]); /* rows have no texts: nothing stays in the arena */
    return bh_json_decode(value, strlen(value), kinds[kind], ret_row, arena, err);
}

bh_rc
bh_job_document_get(const struct bh_store *store, enum bh_document_kind kind, uint64_t number, void *ret_row,
                    struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ROW_ARENA_MAX);
    char key[BH_JOB_DOCUMENT_KEY_SIZE];
    const struct bh_document_key wanted = { kind, key };
    struct bh_document_row document;
    bh_rc rc;

    bh_job_document_key(number, key);
    rc = store->ops->get_document(store->self, &wanted, arena, &document, err);
    if (rc == BH_OK)
        return bh_job_document_decode(kind, document.value, ret_row, err);
    return rc == BH_NOT_FOUND ? bh_job_document_decode(kind, "{}", ret_row, err) : rc;
}

bh_rc
bh_job_document_spec(struct bh_keys *keys, const struct bh_digest *digest, struct bh_arena *arena,
                     struct bh_job_spec *ret_spec, struct bh_err *err)
{
    const char *text;
    bh_rc rc = bh_keys_get_text(keys, digest, arena, &text, err);

    return rc == BH_OK ? bh_json_decode(text, strlen(text), &bh_job_spec_fields, ret_spec, arena, err) : rc;
}
