#ifndef BH_MODEL_IMAGE_H
#define BH_MODEL_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

/* What a job's root file system is made of, as users and policies write it:
 *
 *   host                     parts of the node itself
 *   dir:/srv/roots/a         a folder of the node
 *   oci:/srv/images/a:2.4    an OCI layout on the node and a tag in it
 *   oci:/srv/images/a@sha256:HEX   ... and the digest of a manifest in it
 *   docker://nvcr.io/nvidia/a:2.4  a registry, a repository in it and a tag, or @sha256:HEX
 *
 * Entries of a policy may say less: a layout without a tag is any tag of it, a folder what
 * is below it, a registry or the beginning of a repository what is in it, `@sha256` any
 * digest but no tag, `sha256:HEX` that digest wherever it lies.
 */

enum bh_image_kind { BH_IMAGE_HOST, BH_IMAGE_DIR, BH_IMAGE_OCI, BH_IMAGE_REGISTRY };
enum { BH_IMAGE_PATH_MAX = 1023, BH_IMAGE_TAG_MAX = 128, BH_IMAGE_DIGEST_CHARS = 64 };
enum { BH_IMAGE_HOST_MAX = 120, BH_IMAGE_REPOSITORY_MAX = 255 };
#define BH_IMAGE_DOCKER "docker://"

struct bh_image {
    enum bh_image_kind kind;
    char path[BH_IMAGE_PATH_MAX + 1];       /* "" in the entry `sha256:HEX` and of host; of a
                                               registry "HOST[:PORT]/REPOSITORY" */
    char tag[BH_IMAGE_TAG_MAX + 1];         /* "": none said */
    char digest[BH_IMAGE_DIGEST_CHARS + 1]; /* hex of the manifest's SHA-256; "": none said */
    bool pinned;                            /* a digest must be said */
};

/* Read the image of a job.  Why it is none ("has no tag", "is not absolute"), or NULL. */
const char *bh_image_parse(const char *text, struct bh_image *ret_image);

/* Read an entry of a policy, as bh_image_parse does. */
const char *bh_image_parse_entry(const char *text, struct bh_image *ret_entry);

/* Whether the entry lets a job use `image`, or contains the entry `image`. */
bool bh_image_allows(const struct bh_image *entry, const struct bh_image *image);

/* Why the first `length` characters are no host of a registry ("nvcr.io", "127.0.0.1:5000"),
 * or no repository ("nvidia/pytorch"); or NULL. */
const char *bh_image_host_fault(const char *text, size_t length);
const char *bh_image_repository_fault(const char *text, size_t length);

/* Whether a job's image is one that is unpacked, with a configuration of its own: of a layout,
 * of a registry. */
bool bh_image_is_packed(const char *text);

/* Whether it is a root of its own, and not parts of the node: such a one, or a folder.  NULL is
 * none. */
bool bh_image_is_own(const char *text);

/* Whether `text` is 64 lower-case hexadecimal digits. */
bool bh_image_is_digest(const char *text);

#endif
