#ifndef BH_AUDIT_FOLDER_H
#define BH_AUDIT_FOLDER_H

#include "audit/tile.h"
#include "audit/verify.h"

/* The auditor over an exported log: a folder with the newest checkpoint, bundles of
 * records and tiles of hashes, as C2SP's tlog-tiles has them.  Everything that the
 * checkpoint speaks of must be there and must be the same thing said twice; files that
 * it does not speak of do not count.  Of bundles below the minimum index that a
 * record of the log names (BH_RECORD_PRUNE) the hashes are enough. */

enum { BH_FOLDER_FILE_MAX = 256 * (2 + 65535) }; /* the longest bundle */

struct bh_folder {
    /* The whole file at `path`, appended to `out`.  BH_NOT_FOUND; BH_IO. */
    bh_rc (*read)(void *self, const char *path, struct bh_buf *out, struct bh_err *err);
    void *self;
    struct bh_buf *bundle, *tile; /* work space for a bundle (up to BH_FOLDER_FILE_MAX)
                                     and for any other file; the caller's */
};

struct bh_folder_verifier {
    struct bh_audit_verifier records; /* from bh_audit_verifier_init, with what was kept */
    struct bh_tiler tiler;            /* zero */
};

/* Verify the folder.  verifier->records says afterwards how far it is good.
 *   BH_CONFLICT   something is not what was signed; the message names it
 *   BH_NOT_FOUND  a file is missing; the message names it
 *   failures of reading */
BH_MUST_USE bh_rc bh_folder_verify(const struct bh_folder *folder, struct bh_folder_verifier *verifier,
                                   struct bh_err *err);

#endif
