#ifndef BH_IMAGE_TAR_H
#define BH_IMAGE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A checker that a layer's archive is fed through, header by header, before anything
 * unpacks it.  Files, folders, links and FIFOs may be in it; names stay below the root; ids
 * are below 65536, which is what a job's range has.  A set-user-id bit is no matter:
 * whatever mounts an image does it with nosuid. */

enum { BH_TAR_BLOCK = 512, BH_TAR_EXTENDED_MAX = 64 << 10, BH_TAR_DEPTH_MAX = 128, BH_TAR_NAME_MAX = 4095 };

/* What all layers of an image may have together.  Files are counted down here, bytes of the
 * archives by the reader that feeds them. */
struct bh_tar_budget {
    uint64_t bytes, files;
};

struct bh_tar {
    struct bh_tar_budget *budget;
    uint8_t block[BH_TAR_BLOCK];
    uint32_t filled;                        /* of `block` */
    uint64_t left;                          /* bytes of the present entry's content */
    uint64_t padding;                       /* and behind it, to a full block */
    char extended[BH_TAR_EXTENDED_MAX + 1]; /* of the entry being described, with its kind */
    uint32_t extended_length;
    char kind; /* of what is being collected: x, g, L, K, or 0 */
    char name[BH_TAR_NAME_MAX + 1], link[BH_TAR_NAME_MAX + 1]; /* said beforehand; "" not */
    uint64_t pax_bytes, pax_uid, pax_gid;
    bool has_bytes, has_uid, has_gid;
    bool ended; /* two blocks of zeros, or one */
};

void bh_tar_init(struct bh_tar *tar, struct bh_tar_budget *budget);

/* The next bytes.
 *   BH_DENIED   a device, a name that leads upward, an id that no job has
 *   BH_INVALID  it is no archive, or one that is damaged
 *   BH_FULL     more than the budget */
BH_MUST_USE bh_rc bh_tar_feed(struct bh_tar *tar, const uint8_t *bytes, size_t length, struct bh_err *err);

/* No more comes.  BH_INVALID: it was cut off. */
BH_MUST_USE bh_rc bh_tar_finish(const struct bh_tar *tar, struct bh_err *err);

#endif
