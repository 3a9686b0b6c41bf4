#include "keys/root.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { KEY_BYTES = 32, OTHERS = 07, GROUP_AND_OTHERS = 077 };

static const char next_ending[] = ".next", credential[] = "bulkhead.root";

/* A key that others could have read is none.  systemd may give its user a credential by an
 * access list, which shows as the group's bits. */
static bh_rc
root_check_mode(const char *path, mode_t forbidden, struct bh_err *err)
{
    struct stat status;

    if (lstat(path, &status) != 0)
        return bh_err_errno(err, "root key %s", path);
    if (!S_ISREG(status.st_mode)) {
        bh_err_set(err, BH_INVALID, "root key %s is not a plain file", path);
        return bh_err_hint(err, "move it away, and put the key back from its copy");
    }
    if (status.st_mode & forbidden) {
        bh_err_set(err, BH_DENIED, "root key %s may be used by others", path);
        return bh_err_hint(err, "chmod 600 %s", path);
    }
    return BH_OK;
}

static bh_rc
root_read_key(const char *path, mode_t forbidden, uint8_t ret_key[KEY_BYTES], struct bh_err *err)
{
    char bytes[KEY_BYTES + 1];
    struct bh_buf buf;
    bh_rc rc = root_check_mode(path, forbidden, err);

    bh_buf_init_fixed(&buf, bytes, sizeof bytes);
    if (rc == BH_OK)
        rc = bh_file_read(path, sizeof bytes, &buf, err);
    if (rc == BH_FULL || (rc == BH_OK && buf.length != KEY_BYTES))
        rc = bh_err_set(err, BH_INVALID, "root key %s does not hold %d bytes", path, KEY_BYTES);
    if (rc == BH_OK)
        memcpy(ret_key, bytes, KEY_BYTES);
    explicit_bzero(bytes, sizeof bytes);
    return rc;
}

bh_rc
bh_root_read(const char *path, uint8_t ret_key[32], struct bh_err *err)
{
    return root_read_key(path, GROUP_AND_OTHERS, ret_key, err);
}

/* Where it is by the options; true when it is systemd's. */
static bool
root_find_path(const struct bh_root_options *options, char *ret_path, size_t size)
{
    if (options->path[0]) {
        snprintf(ret_path, size, "%s", options->path);
        return false;
    }
    if (options->credentials) {
        snprintf(ret_path, size, "%s/%s", options->credentials, credential);
        if (access(ret_path, F_OK) == 0)
            return true;
    }
    snprintf(ret_path, size, "%s/root.key", options->state_dir);
    return false;
}

static bh_rc
root_make(const struct bh_root_options *options, struct bh_root *root, struct bh_err *err)
{
    bh_rc rc = options->crypto->random(root->key, sizeof root->key, err);

    if (rc == BH_OK)
        rc = bh_file_replace(root->path, root->key, sizeof root->key, 0600, err);
    root->made = rc == BH_OK;
    return rc;
}

static void
root_next_path(const struct bh_root *root, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%.4000s%s", root->path, next_ending);
}

static bh_rc
root_load_next(struct bh_root *root, struct bh_err *err)
{
    char path[4096];
    bh_rc rc;

    root_next_path(root, path, sizeof path);
    rc = root_read_key(path, GROUP_AND_OTHERS, root->next, err);
    root->staged = rc == BH_OK;
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

bh_rc
bh_root_load(const struct bh_root_options *options, struct bh_root *ret_root, struct bh_err *err)
{
    struct bh_root root = { .made = false };
    bool systemd = root_find_path(options, root.path, sizeof root.path);
    bool own = !systemd && !options->path[0];
    bh_rc rc = root_read_key(root.path, systemd ? OTHERS : GROUP_AND_OTHERS, root.key, err);

    root.replaceable = !systemd;
    if (rc == BH_NOT_FOUND && own && options->make)
        rc = root_make(options, &root, err);
    if (rc == BH_OK && root.replaceable)
        rc = root_load_next(&root, err);
    if (rc == BH_OK)
        *ret_root = root;
    else if (rc == BH_NOT_FOUND)
        bh_err_hint(err, "put the site's root key back there: without it what was sealed "
                         "cannot be read");
    bh_root_wipe(&root);
    return rc;
}

void
bh_root_wipe(struct bh_root *root)
{
    explicit_bzero(root->key, sizeof root->key);
    explicit_bzero(root->next, sizeof root->next);
}

bh_rc
bh_root_stage(struct bh_root *root, const uint8_t next[32], struct bh_err *err)
{
    char path[4096];
    bh_rc rc;

    if (!root->replaceable)
        return bh_err_set(err, BH_CONFLICT, "the root key %s is systemd's to replace", root->path);
    root_next_path(root, path, sizeof path);
    rc = bh_file_replace(path, next, KEY_BYTES, 0600, err);
    if (rc != BH_OK)
        return rc;
    memcpy(root->next, next, sizeof root->next);
    root->staged = true;
    return BH_OK;
}

/* In place, so that the old key's bytes are overwritten where the disk works that way; the
 * staged key stands beside it until that is durable. */
static bh_rc
root_overwrite(const char *path, const uint8_t key[KEY_BYTES], struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = bh_file_open(path, O_WRONLY | O_NOFOLLOW, 0, &fd, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "root key");
    rc = bh_fd_write_all(fd, key, KEY_BYTES, err);
    if (rc != BH_OK)
        return rc;
    if (fsync(fd) != 0)
        return bh_err_errno(err, "root key %s", path);
    return BH_OK;
}

bh_rc
bh_root_commit(struct bh_root *root, struct bh_err *err)
{
    bh_rc rc = root_overwrite(root->path, root->next, err);

    if (rc != BH_OK)
        return rc;
    memcpy(root->key, root->next, sizeof root->key);
    return bh_root_unstage(root, err);
}

bh_rc
bh_root_unstage(struct bh_root *root, struct bh_err *err)
{
    char path[4096];

    root_next_path(root, path, sizeof path);
    if (unlink(path) != 0)
        return bh_err_errno(err, "%s", path);
    root->staged = false;
    return BH_OK;
}
