#ifndef BH_IMAGE_DOCUMENT_H
#define BH_IMAGE_DOCUMENT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fields.h"

/* The documents of an image.  What is read is bounded and typed; a key that is not named
 * here is passed over, whatever it says.  Failures: BH_INVALID, BH_RANGE, BH_FULL as
 * bh_json_parse, BH_NOT_FOUND where said; messages name the document and the key. */

enum { BH_IMAGE_LAYERS_MAX = 128, BH_IMAGE_DOCUMENT_MAX = 1 << 20, BH_IMAGE_HEX = 65 };

enum bh_image_media {
    BH_MEDIA_OTHER,
    BH_MEDIA_INDEX,
    BH_MEDIA_MANIFEST,
    BH_MEDIA_CONFIG,
    BH_MEDIA_TAR,
    BH_MEDIA_TAR_GZIP
};

struct bh_image_blob {
    enum bh_image_media media;
    char digest[BH_IMAGE_HEX]; /* hex of its SHA-256 */
    uint64_t bytes;
};

struct bh_image_manifest {
    struct bh_image_blob config, layers[BH_IMAGE_LAYERS_MAX];
    uint32_t layer_count;
};

/* What is taken from a configuration.  Texts live in the arena. */
struct bh_image_config {
    struct bh_texts entrypoint, cmd, env;
    const char *working_dir, *user; /* "" when absent */
    char diff_ids[BH_IMAGE_LAYERS_MAX][BH_IMAGE_HEX];
    uint32_t diff_id_count;
};

/* The manifest (or index) that an index lists under a tag (its annotation
 * org.opencontainers.image.ref.name) or a digest, whichever is not "".
 *   BH_NOT_FOUND  there is none; the hint lists the tags
 *   BH_CONFLICT   the tag is there twice */
BH_MUST_USE bh_rc bh_image_find(const struct bh_buf *index, const char *tag, const char *digest,
                                struct bh_image_blob *ret_blob, struct bh_err *err);

/* The manifest that an index lists for linux on this machine's architecture.
 *   BH_NOT_FOUND  there is none */
BH_MUST_USE bh_rc bh_image_find_platform(const struct bh_buf *index, struct bh_image_blob *ret_blob,
                                         struct bh_err *err);

/* Whether a document that a registry gave is an index, by what it holds and not by what it
 * calls itself.  BH_INVALID: neither, or both at once. */
BH_MUST_USE bh_rc bh_image_is_index(const struct bh_buf *text, bool *ret_index, struct bh_err *err);

BH_MUST_USE bh_rc bh_image_read_manifest(const struct bh_buf *text, struct bh_image_manifest *ret_manifest,
                                         struct bh_err *err);
BH_MUST_USE bh_rc bh_image_read_config(const struct bh_buf *text, struct bh_arena *arena,
                                       struct bh_image_config *ret_config, struct bh_err *err);

/* Documents for umoci: digests and sizes, and no text from the image's author. */
void bh_image_put_config(struct bh_buf *out, const struct bh_image_config *config);
void bh_image_put_manifest(struct bh_buf *out, const struct bh_image_manifest *manifest);
void bh_image_put_index(struct bh_buf *out, const struct bh_image_blob *manifest, const char *tag);

#endif
