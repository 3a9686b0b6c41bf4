#include "daemon/nodes/images.h"

#include <stdlib.h>
#include <string.h>

#include "api/jobs/image.h"
#include "base/assert.h"
#include "base/json.h"
#include "daemon/batch/record.h"
#include "daemon/state/documents.h"
#include "engine/read/view.h"
#include "model/image.h"

enum { ROW_BYTES_MAX = 256 };

/* ---- how far they are ---- */

void
bh_images_update(struct bh_images *images, const struct bh_msg_image *image)
{
    uint32_t at = 0;

    while (at < images->count && images->items[at].lease != image->lease)
        at++;
    if (image->stage == BH_IMAGE_READY || image->stage >= BH_IMAGE_STAGES) {
        if (at < images->count)
            images->items[at] = images->items[--images->count];
        return;
    }
    if (at == BH_IMAGES_MAX)
        return;
    if (!images->items)
        images->items = calloc(BH_IMAGES_MAX, sizeof *images->items);
    BH_ASSERT(images->items);
    images->items[at] = *image;
    images->count += at == images->count;
}

void
bh_images_clear(struct bh_images *images)
{
    images->count = 0;
}

void
bh_images_fini(struct bh_images *images)
{
    free(images->items);
    *images = (struct bh_images){ .count = 0 };
}

void
bh_images_put(const struct bh_images *images, struct bh_buf *out)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '[');
    for (uint32_t i = 0; i < images->count; i++) {
        const struct bh_msg_image *image = &images->items[i];

        bh_json_open(&w, NULL, '{');
        bh_json_u64(&w, "done_bytes", image->done_bytes);
        bh_json_u64(&w, "job", image->job);
        bh_json_str(&w, "stage", bh_image_stage_names[image->stage]);
        bh_json_u64(&w, "total_bytes", image->total_bytes);
        bh_json_close(&w, '}');
    }
    bh_json_close(&w, ']');
}

/* ---- which they are ---- */

/* Whether the job is known to have that image. */
static bool
images_is_known(struct bh_core *core, const char *key, const char *value)
{
    const struct bh_document_key wanted = { BH_DOCUMENT_IMAGE, key };
    struct bh_document_row row;
    struct bh_err ignored;

    return bh_documents_get(core, &wanted, &row, &ignored) == BH_OK && strcmp(row.value, value) == 0;
}

bh_rc
bh_images_record(struct bh_core *core, bh_node_id node, const struct bh_msg_image *image, struct bh_err *err)
{
    char key[BH_JOB_DOCUMENT_KEY_SIZE], memory[ROW_BYTES_MAX];
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "job.image" };
    struct bh_image_row row;
    struct bh_job_view view;
    struct bh_buf json;
    bh_rc rc = bh_core_begin(core, err);

    if (rc != BH_OK || !bh_image_row_read(image->digest, &row)
        || !bh_view_lease(core->state.engine, (bh_lease_id){ image->lease }, &view) || view.node.v != node.v)
        return rc;
    bh_job_document_key(view.job.v, key);
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_image_row_fields, &row);
    BH_ASSERT(!json.overflow);
    if (images_is_known(core, key, bh_buf_text(&json)))
        return BH_OK;
    entry.tenant = view.tenant.v;
    entry.obj = (struct bh_record_object){ .type = "job", .id = view.job.v };
    entry.text = row.digest;
    rc = bh_core_record(core, &entry, BH_OK, err);
    if (rc != BH_OK)
        return rc;
    return bh_documents_put(
        core,
        &(struct bh_document_row){
            .kind = BH_DOCUMENT_IMAGE, .version = 1, .key = key, .value = bh_buf_text(&json) },
        err);
}
