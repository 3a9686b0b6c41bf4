#ifndef BH_NODE_COMMON_IMAGE_RECORD_H
#define BH_NODE_COMMON_IMAGE_RECORD_H

#include "base/arena.h"
#include "base/err.h"
#include "base/fields.h"

/* image.json beside an unpacked image: what is taken from its configuration.  The process that wrote it had
 * read a tenant's files, so it is checked again when it is read. */
struct bh_image_record {
    struct bh_texts command; /* Entrypoint and Cmd; may be empty */
    struct bh_texts env;     /* "NAME=value" each */
    const char *cwd;         /* a folder of the image, or NULL */
    uint32_t uid, gid;       /* 1 to 65535 */
    uint64_t bytes;          /* about what it takes on disk */
};

extern const struct bh_fields bh_image_record_fields;

/* BH_INVALID, BH_RANGE, BH_NOT_FOUND, BH_IO */
BH_MUST_USE bh_rc bh_image_record_read(const char *path, struct bh_arena *arena,
                                       struct bh_image_record *ret_record, struct bh_err *err);

#endif
