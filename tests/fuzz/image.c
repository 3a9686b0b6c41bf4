/* What a stranger's image is made of: documents, and a layer's archive fed in partitions.  The
 * first byte says which. */
#include <string.h>

#include "base/assert.h"
#include "image/document.h"
#include "image/tar.h"
#include "tests/fuzz/fuzz.h"

static void
read_documents(char kind, struct bh_buf *text)
{
    static struct bh_image_manifest manifest;
    static struct bh_image_config config;
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_image_blob blob;
    struct bh_err err;
    bool index;

    (void)!bh_image_is_index(text, &index, &err);
    if (kind == 'i' && bh_image_find(text, "x", "", &blob, &err) == BH_OK)
        BH_ASSERT(blob.media == BH_MEDIA_INDEX || blob.media == BH_MEDIA_MANIFEST);
    if (kind == 'p')
        (void)!bh_image_find_platform(text, &blob, &err);
    if (kind == 'm' && bh_image_read_manifest(text, &manifest, &err) == BH_OK)
        BH_ASSERT(manifest.layer_count > 0 && manifest.layer_count <= BH_IMAGE_LAYERS_MAX);
    if (kind == 'c' && bh_image_read_config(text, arena, &config, &err) == BH_OK)
        BH_ASSERT(config.diff_id_count > 0 && config.working_dir && config.user);
    bh_arena_free(arena);
}

/* However it is cut, the verdict is the same. */
static bh_rc
check_archive(const uint8_t *bytes, size_t length, size_t partition)
{
    static struct bh_tar tar;
    struct bh_tar_budget budget = { 1 << 20, 100 };
    struct bh_err err;
    bh_rc rc = BH_OK;

    bh_tar_init(&tar, &budget);
    for (size_t at = 0; at < length && rc == BH_OK; at += partition)
        rc = bh_tar_feed(&tar, bytes + at, length - at < partition ? length - at : partition, &err);
    return rc == BH_OK ? bh_tar_finish(&tar, &err) : rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct bh_buf text;

    if (length == 0)
        return 0;
    if (bytes[0] == 't') {
        bh_rc whole = check_archive(bytes + 1, length - 1, length);

        BH_ASSERT(check_archive(bytes + 1, length - 1, 7) == whole);
        return 0;
    }
    bh_buf_init(&text, BH_IMAGE_DOCUMENT_MAX);
    bh_buf_put(&text, bytes + 1, length - 1);
    if (!text.overflow && text.length > 0)
        read_documents((char)bytes[0], &text);
    bh_buf_fini(&text);
    return 0;
}
