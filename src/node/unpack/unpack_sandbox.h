#ifndef BH_NODE_UNPACK_UNPACK_SANDBOX_H
#define BH_NODE_UNPACK_UNPACK_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Where an image is unpacked: a mount namespace with this machine's programs, read-only, and one folder that
 * can be written, without a network.  Its children are root of a user namespace of their own, which is the
 * user nobody on this machine.  A child has the system call filter of jobs, cannot mount, cannot make a
 * device, and dies with its parent. */

#define BH_UNPACK_SANDBOX_STAGE "/stage"     /* the folder, within */
#define BH_UNPACK_SANDBOX_TOOL "/tool"       /* a program that is added */
#define BH_UNPACK_SANDBOX_FETCHER "/fetcher" /* another */
#define BH_UNPACK_SANDBOX_ETC "/etc"         /* an empty folder, to mount on */

/* Enter it: this process's root is the cell afterwards.  Paths of the machine; `fetcher` may
 * be NULL.  Root's alone. */
struct bh_unpack_sandbox {
    const char *folder, *tool, *fetcher;
};
BH_MUST_USE bh_rc bh_unpack_sandbox_enter(const struct bh_unpack_sandbox *sandbox, struct bh_err *err);

/* The user a child may be besides the 65536 ids from `base`: the submitter, to read their files, numbered
 * BH_UNPACK_SANDBOX_SUBMITTER there.  UINT32_MAX: none. */
enum { BH_UNPACK_SANDBOX_IDS = 65536, BH_UNPACK_SANDBOX_SUBMITTER = 70000 };
enum { BH_UNPACK_SANDBOX_FD = 3 }; /* the one descriptor that it inherits */
struct bh_unpack_sandbox_child {
    uint32_t base, submitter_uid, submitter_gid;
    int (*run)(void *self); /* in the child; its exit status */
    void *self;
    bool (*watch)(void *self); /* each second until its end; false: it is killed.  NULL: none */
    void *watch_self;
};

/* Run it to its end; `ret_status` as waitpid gives it.  BH_IO: it could not be started. */
BH_MUST_USE bh_rc bh_unpack_sandbox_run(const struct bh_unpack_sandbox_child *child, int *ret_status,
                                        struct bh_err *err);

#endif
