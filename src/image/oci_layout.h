#ifndef BH_IMAGE_OCI_LAYOUT_H
#define BH_IMAGE_OCI_LAYOUT_H

#include <sys/types.h>

#include "image/document.h"
#include "ports/crypto.h"

/* An OCI layout in a user's folder: files opened by descriptor, with the user's rights, through no symbolic
 * link.  A file's content counts only once it has been checked against the digest in its name. */
struct bh_oci_layout {
    const struct bh_crypto_ops *crypto;
    int fd;    /* of the folder */
    uid_t uid; /* whose rights count, as this process's user namespace */
    gid_t gid; /*   numbers them */
};

/* index.json.  BH_NOT_FOUND, BH_DENIED, BH_INVALID: it is no layout, or may not be read. */
BH_MUST_USE bh_rc bh_oci_layout_index(const struct bh_oci_layout *layout, struct bh_buf *ret_text,
                                      struct bh_err *err);

/* A whole document, held against its digest and size. */
BH_MUST_USE bh_rc bh_oci_layout_document(const struct bh_oci_layout *layout, const struct bh_image_blob *blob,
                                         struct bh_buf *ret_text, struct bh_err *err);

/* A descriptor of a blob; what is read from it is still to be held against its digest. */
BH_MUST_USE bh_rc bh_oci_layout_open(const struct bh_oci_layout *layout, const struct bh_image_blob *blob,
                                     int *ret_fd, struct bh_err *err);

#endif
