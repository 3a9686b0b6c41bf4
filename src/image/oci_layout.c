#include "image/oci_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* The file system identity decides what may be opened; in a user namespace where this
 * process is root it may take any that is mapped there. */
static int
open_as(const struct bh_oci_layout *layout, const char *path)
{
    struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    int fd = -1, failed = EPERM;

    setfsgid(layout->gid);
    setfsuid(layout->uid);
    if ((uid_t)setfsuid((uid_t)-1) == layout->uid && (gid_t)setfsgid((gid_t)-1) == layout->gid) {
        fd = (int)syscall(SYS_openat2, layout->fd, path, &how, sizeof how);
        failed = errno;
    }
    setfsuid(geteuid());
    setfsgid(getegid());
    errno = failed;
    return fd;
}

static bh_rc
oci_layout_open_file(const struct bh_oci_layout *layout, const char *path, uint64_t *ret_bytes, int *ret_fd,
                     struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int fd = open_as(layout, path);
    struct stat st;

    if (fd < 0 && (errno == ELOOP || errno == EXDEV))
        return bh_err_set(err, BH_DENIED, "%s is a symbolic link", path);
    if (fd < 0)
        return bh_err_errno(err, "open %s", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return bh_err_set(err, BH_DENIED, "%s is no file", path);
    *ret_bytes = (uint64_t)st.st_size;
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

static bh_rc
oci_layout_read_all(int fd, const char *path, struct bh_buf *ret_text, struct bh_err *err)
{
    char chunk[16384];

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);

        if (n < 0)
            return bh_err_errno(err, "read %s", path);
        if (n == 0)
            return BH_OK;
        bh_buf_put(ret_text, chunk, (size_t)n);
        if (ret_text->overflow)
            return bh_err_set(err, BH_FULL, "%s is longer than %d bytes", path, BH_IMAGE_DOCUMENT_MAX);
    }
}

bh_rc
bh_oci_layout_index(const struct bh_oci_layout *layout, struct bh_buf *ret_text, struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int fd = -1;
    uint64_t bytes;
    bh_rc rc = oci_layout_open_file(layout, "index.json", &bytes, &fd, err);

    if (rc == BH_NOT_FOUND) {
        bh_err_set(err, BH_NOT_FOUND, "it is no OCI layout: it has no index.json");
        return bh_err_hint(err, "make one: skopeo copy docker://NAME:TAG oci:PATH:TAG");
    }
    return rc == BH_OK ? oci_layout_read_all(fd, "index.json", ret_text, err) : rc;
}

bh_rc
bh_oci_layout_open(const struct bh_oci_layout *layout, const struct bh_image_blob *blob, int *ret_fd,
                   struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int fd = -1;
    char path[100];
    uint64_t bytes;
    bh_rc rc;

    snprintf(path, sizeof path, "blobs/sha256/%s", blob->digest);
    rc = oci_layout_open_file(layout, path, &bytes, &fd, err);
    if (rc == BH_NOT_FOUND) {
        bh_err_set(err, BH_NOT_FOUND, "blob sha256:%.19s... is not in the layout", blob->digest);
        return bh_err_hint(err, "copy the whole image again: skopeo copy SOURCE oci:PATH:TAG");
    }
    if (rc != BH_OK)
        return rc;
    if (bytes != blob->bytes)
        return bh_err_set(err, BH_INVALID, "blob sha256:%.19s... has %" PRIu64 " bytes and not %" PRIu64,
                          blob->digest, bytes, blob->bytes);
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

bh_rc
bh_oci_layout_document(const struct bh_oci_layout *layout, const struct bh_image_blob *blob,
                       struct bh_buf *ret_text, struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int fd = -1;
    uint8_t digest[32];
    char hex[BH_IMAGE_HEX];
    bh_rc rc = bh_oci_layout_open(layout, blob, &fd, err);

    if (rc != BH_OK)
        return rc;
    rc = oci_layout_read_all(fd, blob->digest, ret_text, err);
    if (rc != BH_OK)
        return rc;
    layout->crypto->sha256(ret_text->bytes, ret_text->length, NULL, 0, digest);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    if (strcmp(hex, blob->digest) != 0)
        return bh_err_set(err, BH_INVALID, "blob sha256:%.19s... has another digest", blob->digest);
    return BH_OK;
}
