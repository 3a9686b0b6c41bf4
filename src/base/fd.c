#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void
bh_fd_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

bh_rc
bh_fd_write_all(int fd, const void *bytes, size_t length, struct bh_err *err)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t n = write(fd, at, length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return bh_err_errno(err, "write");
        at += n;
        length -= (size_t)n;
    }
    return BH_OK;
}

static const char *
fd_kind_of(mode_t mode)
{
    return S_ISFIFO(mode)   ? "a FIFO"
           : S_ISDIR(mode)  ? "a folder"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISLNK(mode)  ? "a symbolic link"
                            : "a device";
}

static bh_rc
fd_refuse_kind(const char *path, mode_t mode, struct bh_err *err)
{
    bh_err_set(err, BH_INVALID, "%s is %s where a file is expected", path, fd_kind_of(mode));
    return bh_err_hint(err, "move it away, and put the file back from its copy if there was one");
}

/* What open() refuses itself may be for what has the name: a FIFO or a socket that is to be written
 * (ENXIO), a folder (EISDIR), a link (ELOOP). */
static bh_rc
fd_explain_open(const char *path, int flags, struct bh_err *err)
{
    int fault = errno;
    struct stat found;

    if ((flags & O_NOFOLLOW ? lstat : stat)(path, &found) == 0 && !S_ISREG(found.st_mode))
        return fd_refuse_kind(path, found.st_mode, err);
    errno = fault;
    return bh_err_errno(err, "open %s", path);
}

static bh_rc
fd_open_plain(const char *path, int flags, mode_t mode, int *ret_fd, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    struct stat found;

    if (fd < 0)
        return fd_explain_open(path, flags, err);
    if (fstat(fd, &found) != 0)
        return bh_err_errno(err, "inspect %s", path);
    if (!S_ISREG(found.st_mode))
        return fd_refuse_kind(path, found.st_mode, err);
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

/* Without O_NONBLOCK, which plain files ignore, but programs that inherit the descriptor may not. */
bh_rc
bh_file_open(const char *path, int flags, mode_t mode, int *ret_fd, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = fd_open_plain(path, flags, mode, &fd, err);

    if (rc != BH_OK)
        return rc;
    if (fcntl(fd, F_SETFL, flags) != 0)
        return bh_err_errno(err, "open %s", path);
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

bh_rc
bh_file_check(const char *path, struct bh_err *err)
{
    struct stat found;

    if (stat(path, &found) != 0)
        return errno == ENOENT ? BH_OK : bh_err_errno(err, "inspect %s", path);
    return S_ISREG(found.st_mode) ? BH_OK : fd_refuse_kind(path, found.st_mode, err);
}

static bh_rc
fd_read_all(int fd, const char *path, size_t max, struct bh_buf *ret_text, struct bh_err *err)
{
    char chunk[16384];

    for (size_t total = 0;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return bh_err_errno(err, "read %s", path);
        if (n == 0)
            return BH_OK;
        total += (size_t)n;
        if (total > max)
            return bh_err_set(err, BH_FULL, "%s is larger than %zu bytes", path, max);
        bh_buf_put(ret_text, chunk, (size_t)n);
        if (ret_text->overflow)
            return bh_err_set(err, BH_FULL, "%s does not fit into its buffer", path);
    }
}

bh_rc
bh_file_read(const char *path, size_t max, struct bh_buf *ret_text, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = fd_open_plain(path, O_RDONLY, 0, &fd, err); /* no fcntl(): filters of system calls forbid it */

    return rc == BH_OK ? fd_read_all(fd, path, max, ret_text, err) : rc;
}

bh_rc
bh_file_read_given(const char *path, size_t max, struct bh_buf *ret_text, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd >= 0 ? fd_read_all(fd, path, max, ret_text, err) : bh_err_errno(err, "open %s", path);
}

static bh_rc
fd_sync_folder(const char *path, struct bh_err *err)
{
    char copy[4096];
    BH_AUTO(bh_fd_close) int fd = -1;

    snprintf(copy, sizeof copy, "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        return bh_err_errno(err, "sync folder of %s", path);
    return BH_OK;
}

bh_rc
bh_file_replace(const char *path, const void *bytes, size_t length, mode_t mode, struct bh_err *err)
{
    char temp[4096];
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc;

    if (snprintf(temp, sizeof temp, "%s.new", path) >= (int)sizeof temp)
        return bh_err_set(err, BH_INVALID, "path is too long: %.60s", path);
    unlink(temp); /* left by a crash; O_EXCL keeps anything else out */
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return bh_err_errno(err, "create %s", temp);
    rc = bh_fd_write_all(fd, bytes, length, err);
    if (rc != BH_OK)
        bh_err_wrap(err, "write %s", temp);
    else if (fchmod(fd, mode) != 0 || fsync(fd) != 0 || rename(temp, path) != 0)
        rc = bh_err_errno(err, "replace %s", path);
    if (rc != BH_OK) {
        unlink(temp);
        return rc;
    }
    return fd_sync_folder(path, err);
}

static bool
fd_holds(const char *path, const void *bytes, size_t length, mode_t mode)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    struct bh_err ignored;
    struct stat found;
    char piece[4096];
    size_t at = 0;
    ssize_t got = 0;

    if (fd_open_plain(path, O_RDONLY | O_NOFOLLOW, 0, &fd, &ignored) != BH_OK || fstat(fd, &found) != 0
        || (found.st_mode & 07777) != mode || found.st_uid != geteuid() || found.st_nlink != 1
        || (size_t)found.st_size != length)
        return false;
    while (at < length && (got = read(fd, piece, sizeof piece)) > 0) {
        if ((size_t)got > length - at || memcmp(piece, (const char *)bytes + at, (size_t)got) != 0)
            return false;
        at += (size_t)got;
    }
    return at == length;
}

bh_rc
bh_file_keep(const char *path, const void *bytes, size_t length, mode_t mode, struct bh_err *err)
{
    return fd_holds(path, bytes, length, mode) ? BH_OK : bh_file_replace(path, bytes, length, mode, err);
}

/* False with errno set; a folder that is there already is fine, a file is not. */
static bool
fd_make_one_folder(const char *path, mode_t mode)
{
    struct stat found;

    if (mkdir(path, mode) == 0)
        return true;
    if (errno != EEXIST || stat(path, &found) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(found.st_mode);
}

bh_rc
bh_dir_make(const char *path, mode_t mode, struct bh_err *err)
{
    char copy[4096];

    if (!*path)
        return bh_err_set(err, BH_INVALID, "the folder's path is empty");
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return bh_err_set(err, BH_INVALID, "path is too long: %.60s", path);
    if (fd_make_one_folder(copy, mode))
        return BH_OK; /* as a rule only the last is missing */
    for (char *slash = copy + 1;; slash++) {
        char kept = *slash;

        if (kept && kept != '/')
            continue;
        *slash = '\0';
        if (!fd_make_one_folder(copy, mode))
            return bh_err_errno(err, "make folder %s", copy);
        if (!kept)
            return BH_OK;
        *slash = kept;
    }
}

static bh_rc
fd_set_address(const char *path, struct sockaddr_un *ret_address, struct bh_err *err)
{
    *ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof ret_address->sun_path)
        return bh_err_set(err, BH_INVALID, "socket path is longer than %zu bytes: %.80s",
                          sizeof ret_address->sun_path - 1, path);
    memcpy(ret_address->sun_path, path, strlen(path) + 1);
    return BH_OK;
}

/* Make way for a new socket: a socket without a listener, which a dead program left, is removed; one with a
 * listener, and anything that is no socket, stays. */
static bh_rc
fd_clear_stale(const char *path, const struct sockaddr_un *address, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    struct stat found;

    if (lstat(path, &found) != 0)
        return errno == ENOENT ? BH_OK : bh_err_errno(err, "listen on %s", path);
    if (!S_ISSOCK(found.st_mode))
        return bh_err_set(err, BH_CONFLICT, "listen on %s: a file is in the way", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return bh_err_errno(err, "socket");
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN)
        return bh_err_set(err, BH_CONFLICT, "listen on %s: another program listens there", path);
    if (unlink(path) != 0 && errno != ENOENT)
        return bh_err_errno(err, "remove stale socket %s", path);
    return BH_OK;
}

bh_rc
bh_unix_listen(const char *path, mode_t mode, int *ret_fd, struct bh_err *err)
{
    struct sockaddr_un address;
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = fd_set_address(path, &address, err);

    if (rc != BH_OK)
        return rc;
    rc = fd_clear_stale(path, &address, err);
    if (rc != BH_OK)
        return rc;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return bh_err_errno(err, "socket");
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 || chmod(path, mode) != 0
        || listen(fd, SOMAXCONN) != 0)
        return bh_err_errno(err, "listen on %s", path);
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

bh_rc
bh_unix_connect(const char *path, int *ret_fd, struct bh_err *err)
{
    struct sockaddr_un address;
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = fd_set_address(path, &address, err);

    if (rc != BH_OK)
        return rc;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return bh_err_errno(err, "socket");
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        rc = bh_err_errno(err, "connect to %s", path);
        if (rc == BH_NOT_FOUND) /* no socket there means the same as no listener */
            rc = err->rc = BH_UNAVAILABLE;
        return rc;
    }
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

bh_rc
bh_unix_peer(int fd, struct bh_peer *ret_peer, struct bh_err *err)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return bh_err_errno(err, "read peer credentials");
    *ret_peer = (struct bh_peer){ peer.pid, peer.uid, peer.gid };
    return BH_OK;
}

bh_rc
bh_unix_peer_groups(int fd, gid_t *ret_groups, size_t max, size_t *ret_count, struct bh_err *err)
{
    socklen_t size = (socklen_t)(max * sizeof *ret_groups);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret_groups, &size) != 0)
        return bh_err_errno(err, "read peer groups");
    *ret_count = size / sizeof *ret_groups;
    return BH_OK;
}
