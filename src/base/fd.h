#ifndef BH_BASE_FD_H
#define BH_BASE_FD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Files and sockets: whole reads and writes, durable replacement, unix sockets. */

/* An owned descriptor: BH_AUTO(bh_fd_close) int fd = -1; */
void bh_fd_close(int fd);
static inline void
bh_fd_close_auto(int *fd)
{
    bh_fd_close(*fd);
}

/* Take a descriptor out of an owned variable, leaving -1. */
static inline int
bh_fd_steal(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

/* All `length` bytes or an error (BH_IO, BH_FULL). */
BH_MUST_USE bh_rc bh_fd_write_all(int fd, const void *bytes, size_t length, struct bh_err *err);

/* Open the plain file at `path`, a file of state or configuration; close-on-exec.  It never waits: what
 * else may have the name (a FIFO, a folder, a socket, a device; a symbolic link where `flags` has
 * O_NOFOLLOW) is refused with what it is.  `flags` and `mode` are those of open().
 * BH_INVALID (no plain file), BH_NOT_FOUND, BH_DENIED, BH_FULL, BH_IO. */
BH_MUST_USE bh_rc bh_file_open(const char *path, int flags, mode_t mode, int *ret_fd, struct bh_err *err);

/* The same check where a library opens `path` itself; a file that is missing passes.  BH_INVALID, BH_DENIED,
 * BH_IO. */
BH_MUST_USE bh_rc bh_file_check(const char *path, struct bh_err *err);

/* The whole plain file at `path`, at most `max` bytes, appended to `ret_text`: opened as above.
 * BH_INVALID, BH_NOT_FOUND, BH_DENIED, BH_FULL (longer than max or than the buffer), BH_IO. */
BH_MUST_USE bh_rc bh_file_read(const char *path, size_t max, struct bh_buf *ret_text, struct bh_err *err);

/* The same of what a person names on a command line: a pipe, too, to its end, as of `<(command)` and
 * /dev/stdin. */
BH_MUST_USE bh_rc bh_file_read_given(const char *path, size_t max, struct bh_buf *ret_text,
                                     struct bh_err *err);

/* Replace `path` by `length` bytes, atomically and durably: temporary file
 * "<path>.new", fsync, rename, fsync of the folder.  One writer per path at a time.
 * On failure `path` is as it was, unless only the last fsync failed. */
BH_MUST_USE bh_rc bh_file_replace(const char *path, const void *bytes, size_t length, mode_t mode,
                                  struct bh_err *err);

/* The same, but a file that holds just these bytes, with this mode and this program's owner, stays: a
 * start that changes nothing wants no room on a full disk. */
BH_MUST_USE bh_rc bh_file_keep(const char *path, const void *bytes, size_t length, mode_t mode,
                               struct bh_err *err);

/* `path` and its missing parents, each with `mode` less the umask.  BH_OK when the
 * folder exists; BH_IO when a file is in the way. */
BH_MUST_USE bh_rc bh_dir_make(const char *path, mode_t mode, struct bh_err *err);

/* A listening unix stream socket at `path` with the given mode; close-on-exec.  What
 * a dead program left there is replaced; BH_CONFLICT when someone listens on it or
 * when it is no socket.  As many as the kernel lets (4096, less where net.core.somaxconn
 * says so) may wait to be accepted: others wait in connect(). */
BH_MUST_USE bh_rc bh_unix_listen(const char *path, mode_t mode, int *ret_fd, struct bh_err *err);

/* A connected unix stream socket; BH_UNAVAILABLE when nothing listens. */
BH_MUST_USE bh_rc bh_unix_connect(const char *path, int *ret_fd, struct bh_err *err);

/* The process at the other end of a unix socket (SO_PEERCRED). */
struct bh_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};
BH_MUST_USE bh_rc bh_unix_peer(int fd, struct bh_peer *ret_peer, struct bh_err *err);

/* The peer's supplementary groups (SO_PEERGROUPS): at most `max` into ret_groups. */
BH_MUST_USE bh_rc bh_unix_peer_groups(int fd, gid_t *ret_groups, size_t max, size_t *ret_count,
                                      struct bh_err *err);

#endif
