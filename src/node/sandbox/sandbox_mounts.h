#ifndef BH_NODE_SANDBOX_SANDBOX_MOUNTS_H
#define BH_NODE_SANDBOX_SANDBOX_MOUNTS_H

#include "node/sandbox/sandbox_spec_internal.h"

/* Mounts of a sandbox; those that a job asks for are resolved as its submitter, and refused here.
 * BH_FULL: the order is too long. */

BH_MUST_USE bh_rc bh_sandbox_mounts_add(struct sandbox_spec *spec, const char *source, const char *target,
                                        bool write, struct bh_err *err);

/* A new folder of the bundle that a mount can be put on. */
BH_MUST_USE bh_rc bh_sandbox_mounts_make_place(struct sandbox_spec *spec, char **ret_place,
                                               struct bh_err *err);

/* A shared folder, read-only: across a boundary that is hard or stronger through an overlay of the job's own,
 * so that its inodes belong to this job alone, and watches and locks there do not reach other jobs
 * (docs/adr/0058).  A file system that cannot be the lower layer of an overlay is refused: the boundary would
 * not hold. */
BH_MUST_USE bh_rc bh_sandbox_mounts_add_shared(struct sandbox_spec *spec, const char *source,
                                               const char *target, struct bh_err *err);

/* BH_DENIED, BH_INVALID: the message names the mount, the hint the fix. */
BH_MUST_USE bh_rc bh_sandbox_mounts_put_asked(struct sandbox_spec *spec, struct bh_err *err);

/* The working directory, mounted where the sandbox does not have it. */
BH_MUST_USE bh_rc bh_sandbox_mounts_put_cwd(struct sandbox_spec *spec, struct bh_err *err);

#endif
