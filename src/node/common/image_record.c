#include "node/common/image_record.h"

#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "model/path.h"

enum { TEXTS_MAX = 1024, ID_MAX = 65535 };

static const struct bh_field record_fields[] = {
    BH_F(struct bh_image_record, bytes, BH_FIELD_U64, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_image_record, command, BH_FIELD_TEXTS, .max = 2 * TEXTS_MAX),
    BH_F(struct bh_image_record, cwd, BH_FIELD_TEXT, .max = BH_FILE_PATH_MAX),
    BH_F(struct bh_image_record, env, BH_FIELD_TEXTS, .max = TEXTS_MAX),
    BH_F(struct bh_image_record, gid, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_image_record, uid, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
};
const struct bh_fields bh_image_record_fields = BH_FIELDS("image", struct bh_image_record, record_fields);

static bh_rc
image_record_check(const struct bh_image_record *record, struct bh_err *err)
{
    if (record->uid == 0 || record->uid > ID_MAX || record->gid == 0 || record->gid > ID_MAX)
        return bh_err_set(err, BH_RANGE, "its user %u:%u is not within a job's range", record->uid,
                          record->gid);
    for (uint32_t i = 0; i < record->env.count; i++)
        if (strcspn(record->env.items[i], "=") == 0 || !strchr(record->env.items[i], '='))
            return bh_err_set(err, BH_INVALID, "env[%u] is not NAME=value", i);
    if (record->cwd && bh_file_path_fault(record->cwd))
        return bh_err_set(err, BH_INVALID, "its working directory %s", bh_file_path_fault(record->cwd));
    return BH_OK;
}

bh_rc
bh_image_record_read(const char *path, struct bh_arena *arena, struct bh_image_record *ret_record,
                     struct bh_err *err)
{
    struct bh_image_record record = { 0 };
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, BH_JSON_BYTES_MAX);
    rc = bh_file_read(path, BH_JSON_BYTES_MAX - 1, &text, err);
    if (rc == BH_OK)
        rc = bh_json_decode((const char *)text.bytes, text.length, &bh_image_record_fields, &record, arena,
                            err);
    bh_buf_fini(&text);
    if (rc == BH_OK)
        rc = image_record_check(&record, err);
    if (rc == BH_OK)
        *ret_record = record;
    return rc == BH_OK ? rc : bh_err_wrap(err, "image.json");
}
