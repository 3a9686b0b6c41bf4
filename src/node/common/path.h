#ifndef BH_NODE_COMMON_PATH_H
#define BH_NODE_COMMON_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/params.h"

/* Paths that come from bulkheadd, resolved once: by descriptor, below the folders that
 * node.conf names, through no symbolic link. */

/* Write a path that the node makes.  Its parts were bounded when they were read (BH_CONF_PATH_MAX), so that
 * it fits is asserted. */
void bh_path_format(char *ret_path, size_t size, const char *format, ...) BH_PRINTF(3, 4);

/* The identity of a submitter that has none on this machine. */
#define BH_PATH_NOBODY 65534u

/* Whether `uid` can be a person's: not root, not the user nobody, not "none" (UINT32_MAX). */
bool bh_path_is_person(uid_t uid);

/* Open `path` (O_PATH) below one of `roots`, with the rights of `uid` and `gid`: what they may not reach or
 * read is BH_DENIED.  Never with root's: an id that is not a person's opens as BH_PATH_NOBODY, without
 * groups.  `key` is node.conf's, for the message. */
struct bh_path_request {
    const char *path, *key;
    const struct bh_param_list *roots;
    uid_t uid;
    gid_t gid;
    bool write; /* they must be able to write it, too */
};
BH_MUST_USE bh_rc bh_path_open(const struct bh_path_request *request, int *ret_fd, struct bh_err *err);

/* Whether `target` may be a place inside a sandbox: absolute, normal, not at or below a
 * folder that the sandbox itself fills. */
BH_MUST_USE bh_rc bh_path_target_check(const char *target, struct bh_err *err);

/* Make the folder `target` with its parents below the folder `root`, through no
 * symbolic link. */
BH_MUST_USE bh_rc bh_path_make_below(const char *root, const char *target, struct bh_err *err);

/* Put a private copy of the mount at `fd` at the folder `place`, without set-uid programs
 * and devices.  With `owner`, files of owner->from appear as, and are written as,
 * owner->to: BH_UNAVAILABLE when the file system cannot do that. */
struct bh_path_owner {
    uid_t from_uid, to_uid;
    gid_t from_gid, to_gid;
    uint32_t count;      /* so many ids from each on; 0 is 1 */
    uint32_t same_below; /* files of other ids below it stay theirs, and are written where
                            their mode lets the job: it is to be no job's id, and with one
                            id only.  Files of all others are never written */
};
BH_MUST_USE bh_rc bh_path_clone(int fd, const char *place, bool write, const struct bh_path_owner *owner,
                                struct bh_err *err);

/* Put an empty file system of memory, named `name` in the list of mounts, at the folder `place`,
 * which is made with its parents where it is not there.  Its root has `mode`; set-uid programs on it
 * get no rights, devices work.  BH_IO or what the system says; the folder may be there then. */
BH_MUST_USE bh_rc bh_path_mount_tmpfs(const char *name, const char *place, mode_t mode, struct bh_err *err);

/* Remove the folder `path` and what is in it, never entering another mount. */
void bh_path_remove_tree(const char *path);

#endif
