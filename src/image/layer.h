#ifndef BH_IMAGE_LAYER_H
#define BH_IMAGE_LAYER_H

#include "image/document.h"
#include "image/tar.h"
#include "ports/crypto.h"

/* One layer, from its blob to a plain archive that was checked. */
struct bh_layer_request {
    const struct bh_crypto_ops *crypto;
    const struct bh_image_blob *blob; /* its digest and size are held against what is read */
    const char *diff_id;              /* hex of the plain archive's digest */
    struct bh_tar_budget *budget;
    int from_fd, to_fd;
    _Atomic uint64_t *read_bytes; /* what was read of it is added here; NULL: nowhere */
};

/* Read the blob once, write the archive to `to_fd`, which holds something of no use on
 * failure; the archive's size is returned. BH_DENIED, BH_FULL  of bh_tar_feed; BH_FULL also
 * when the disk is BH_INVALID          a digest or a size is another one, damaged, no gzip
 *   BH_IO */
BH_MUST_USE bh_rc bh_layer_unpack(const struct bh_layer_request *request, uint64_t *ret_bytes,
                                  struct bh_err *err);

#endif
