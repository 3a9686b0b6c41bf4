#ifndef BH_DAEMON_CHANGES_ROTATE_H
#define BH_DAEMON_CHANGES_ROTATE_H

#include "daemon/state/core.h"

/* KEY_ROTATE, as bh_dispatch_run: a new root key in the place of a file of the daemon.
 *   BH_CONFLICT  the root key is a credential of systemd's; hint with the way */
BH_MUST_USE bh_rc bh_rotate_run(struct bh_core *core, const struct bh_command *command,
                                struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

/* The same to the key in the file `path`, without a caller and committed: for the daemon
 * that was started to do this only.  Results of bh_root_read, bh_keyring_rotate and
 * bh_core_commit. */
BH_MUST_USE bh_rc bh_rotate_to_file(struct bh_core *core, const char *path, uint64_t *ret_count,
                                    struct bh_err *err);

#endif
