#ifndef BH_CLI_LOGIN_STORED_SESSION_H
#define BH_CLI_LOGIN_STORED_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* Sessions that `bulkhead login` keeps for the commands after it: one file of the caller's own, an entry for
 * each server.  A user who can read it is signed in as its owner, so it is used only while the file and its
 * folder are the caller's alone. */

enum { BH_STORED_SESSIONS_MAX = 64, BH_STORED_SESSION_PATH_MAX = 4096 };

struct bh_stored_session {
    const char *address; /* "https://gpu1:8443", "unix:/run/bulkhead/bulkhead.sock" */
    uint64_t expires_ns;
    const char *id, *name;
    const char *session; /* the secret, "bs_..." */
};

/* The text that shows a server that an account signed in from this machine before, so that failed attempts
 * from elsewhere do not lock its owner out.  It outlives sessions. */
struct bh_stored_device {
    const char *address, *device, *name;
};

/* $XDG_STATE_HOME/bulkhead/sessions, else ~/.local/state/bulkhead/sessions.
 * BH_NOT_FOUND: neither variable names a folder; BH_RANGE. */
BH_MUST_USE bh_rc bh_stored_session_path(char ret_path[BH_STORED_SESSION_PATH_MAX], struct bh_err *err);

/* The session kept for `address`; its texts live in `arena`.
 *   BH_NOT_FOUND  none, or no file
 *   BH_DENIED     the file or its folder is a link, another's, or open to others
 *   BH_INVALID    the file is damaged
 *   BH_IO */
BH_MUST_USE bh_rc bh_stored_session_find(const char *path, const char *address, struct bh_arena *arena,
                                         struct bh_stored_session *ret_stored, struct bh_err *err);

/* Keep a session, instead of an earlier one of that address; sessions that are over at
 * `now_ns` are dropped.  Makes the folder (0700) and the file (0600).  Failures of
 * bh_stored_session_find, and BH_FULL; the file is then as it was. */
BH_MUST_USE bh_rc bh_stored_session_put(const char *path, const struct bh_stored_session *stored,
                                        uint64_t now_ns, struct bh_arena *arena, struct bh_err *err);

/* Keep the device of an account, instead of an earlier one.  As bh_stored_session_put. */
BH_MUST_USE bh_rc bh_stored_device_put(const char *path, const struct bh_stored_device *device,
                                       struct bh_arena *arena, struct bh_err *err);

/* The device of the account at `address`, in `arena`; NULL where none is kept or the file is
 * of no use. */
const char *bh_stored_device(const char *path, const char *address, const char *name, struct bh_arena *arena);

/* Forget the session of that address and id; BH_OK when there is none.  Failures of
 * bh_stored_session_find. */
BH_MUST_USE bh_rc bh_stored_session_drop(const char *path, const char *address, const char *id,
                                         struct bh_arena *arena, struct bh_err *err);

#endif
