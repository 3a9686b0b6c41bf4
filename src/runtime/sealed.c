#include "runtime/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/fd.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

/* The very seals that crun looks for. */
enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* Memory that may be executed, or -1. */
static int
memory(void)
{
    int fd = memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    return fd < 0 && errno == EINVAL ? memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static bh_rc
sealed_copy(int from, int to, off_t bytes, const char *path, struct bh_err *err)
{
    for (off_t left = bytes; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);

        if (n < 0 && (errno == ENOSPC || errno == ENOMEM))
            return bh_err_sys(err, BH_FULL, BH_SYS_ERRNO, errno, "no memory for %s", path);
        if (n <= 0)
            return bh_err_errno(err, "read %s", path);
        left -= n;
    }
    return fcntl(to, F_ADD_SEALS, SEALS) == 0 ? BH_OK : bh_err_errno(err, "seal %s", path);
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size
           && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec
           && a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bh_rc
bh_sealed_open(struct bh_sealed_program *sealed, const char *path, int *ret_fd, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int file = -1, made = -1;
    struct stat of;
    bh_rc rc;

    if (stat(path, &of) != 0)
        return bh_err_errno(err, "look at %s", path);
    if (sealed->made && is_same(&of, &sealed->of)) {
        *ret_fd = sealed->fd;
        return BH_OK;
    }
    bh_sealed_close(sealed);
    rc = bh_file_open(path, O_RDONLY, 0, &file, err);
    if (rc != BH_OK)
        return rc;
    if (fstat(file, &of) != 0)
        return bh_err_errno(err, "inspect %s", path);
    made = memory();
    rc = made < 0 ? BH_OK : sealed_copy(file, made, of.st_size, path, err);
    if (rc != BH_OK)
        return rc;
    *sealed = (struct bh_sealed_program){ true, bh_fd_steal(made < 0 ? &file : &made), of };
    *ret_fd = sealed->fd;
    return BH_OK;
}

void
bh_sealed_close(struct bh_sealed_program *sealed)
{
    if (sealed->made)
        close(sealed->fd);
    sealed->made = false;
}
