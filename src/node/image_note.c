#include "node/image_note.h"

#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "model/path.h"

enum { TEXTS_MAX = 1024, ID_MAX = 65535 };

static const struct bh_field note_fields[] = {
    BH_F(struct bh_image_note, bytes, BH_FIELD_U64, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_image_note, command, BH_FIELD_TEXTS, .max = 2 * TEXTS_MAX),
    BH_F(struct bh_image_note, cwd, BH_FIELD_TEXT, .max = BH_FILE_PATH_MAX),
    BH_F(struct bh_image_note, env, BH_FIELD_TEXTS, .max = TEXTS_MAX),
    BH_F(struct bh_image_note, gid, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_image_note, uid, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
};
const struct bh_fields bh_image_note_fields =
    BH_FIELDS("image", struct bh_image_note, note_fields);

static bh_rc
check(const struct bh_image_note *note, struct bh_err *err)
{
    if (note->uid == 0 || note->uid > ID_MAX || note->gid == 0 || note->gid > ID_MAX)
        return bh_err_set(err, BH_RANGE, "its user %u:%u is not within a job's range",
                          note->uid, note->gid);
    for (uint32_t i = 0; i < note->env.count; i++)
        if (strcspn(note->env.items[i], "=") == 0 || !strchr(note->env.items[i], '='))
            return bh_err_set(err, BH_INVALID, "env[%u] is not NAME=value", i);
    if (note->cwd && bh_file_path_fault(note->cwd))
        return bh_err_set(err, BH_INVALID, "its working directory %s",
                          bh_file_path_fault(note->cwd));
    return BH_OK;
}

bh_rc
bh_image_note_read(const char *path, struct bh_arena *arena, struct bh_image_note *ret_note,
                   struct bh_err *err)
{
    struct bh_image_note note = { 0 };
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, BH_JSON_BYTES_MAX);
    rc = bh_file_read(path, BH_JSON_BYTES_MAX - 1, &text, err);
    if (rc == BH_OK)
        rc = bh_json_decode((const char *)text.bytes, text.length, &bh_image_note_fields,
                            &note, arena, err);
    bh_buf_fini(&text);
    if (rc == BH_OK)
        rc = check(&note, err);
    if (rc == BH_OK)
        *ret_note = note;
    return rc == BH_OK ? rc : bh_err_wrap(err, "image.json");
}
