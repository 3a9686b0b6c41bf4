#include "runtime/sandbox_files.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "runtime/cgroup.h"

enum { PATH_SIZE = 512, DEV_PREFIX = 5 }; /* "/dev/" */

struct dev {
    int fd;
    uid_t owner; /* root of the sandbox, which mounts there */
};

/* What exists is of an earlier try of the same start. */
static bh_rc
sandbox_files_make_folder(const struct dev *dev, const char *name, struct bh_err *err)
{
    if ((mkdirat(dev->fd, name, 0755) != 0 && errno != EEXIST)
        || fchownat(dev->fd, name, dev->owner, dev->owner, AT_SYMLINK_NOFOLLOW) != 0)
        return bh_err_errno(err, "make folder dev/%s", name);
    return BH_OK;
}

static bh_rc
files_make_link(const struct dev *dev, const char *name, const char *text, struct bh_err *err)
{
    if (symlinkat(text, dev->fd, name) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make link dev/%s", name);
    return BH_OK;
}

static bh_rc
files_make_parent(const struct dev *dev, const char *name, struct bh_err *err)
{
    const char *slash = strchr(name, '/');
    char folder[64];

    if (!slash)
        return BH_OK;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - name), name);
    return sandbox_files_make_folder(dev, folder, err);
}

static bh_rc
files_make_node(const struct dev *dev, const struct bh_sandbox_device *device, struct bh_err *err)
{
    const char *name = device->path + DEV_PREFIX;
    bh_rc rc;

    if (strncmp(device->path, "/dev/", DEV_PREFIX) != 0)
        return bh_err_set(err, BH_INVALID, "device %s is not below /dev", device->path);
    rc = files_make_parent(dev, name, err);
    if (rc != BH_OK)
        return rc;
    unlinkat(dev->fd, name, 0);
    if (mknodat(dev->fd, name, S_IFCHR, makedev(device->major, device->minor)) != 0
        || fchmodat(dev->fd, name, device->write ? 0666 : 0444, 0) != 0
        || fchownat(dev->fd, name, dev->owner, dev->owner, AT_SYMLINK_NOFOLLOW) != 0)
        return bh_err_errno(err, "make device node %s", device->path);
    return BH_OK;
}

/* Terminals are a file system of the sandbox's own, and ptmx is a link into it. */
static bool
files_is_of_terminals(const struct bh_sandbox_device *device)
{
    return strcmp(device->path, "/dev/pts") == 0 || strcmp(device->path, "/dev/ptmx") == 0;
}

static bh_rc
files_make_standard_nodes(const struct dev *dev, struct bh_err *err)
{
    uint32_t count;
    const struct bh_sandbox_device *devices = bh_cgroup_standard_devices(&count);
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        if (!files_is_of_terminals(&devices[i]))
            rc = files_make_node(dev, &devices[i], err);
    return rc;
}

static bh_rc
files_make_links(const struct dev *dev, struct bh_err *err)
{
    /* clang-format off */
    static const char *const links[][2] = {
        { "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
        { "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
        { "core", "/proc/kcore" },       { "ptmx", "pts/ptmx" },
    };
    /* clang-format on */
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(links) && rc == BH_OK; i++)
        rc = files_make_link(dev, links[i][0], links[i][1], err);
    return rc;
}

static bh_rc
files_make_dev(const struct bh_sandbox *sandbox, const char *path, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const struct dev dev = { fd, sandbox->uid_base };
    bh_rc rc;

    if (fd < 0 || fchown(fd, dev.owner, dev.owner) != 0)
        return bh_err_errno(err, "open folder %s", path);
    rc = files_make_standard_nodes(&dev, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < sandbox->device_count; i++) {
        rc = files_make_node(&dev, &sandbox->devices[i], err);
        if (rc != BH_OK)
            return rc;
    }
    rc = files_make_links(&dev, err);
    if (rc != BH_OK)
        return rc;
    rc = sandbox_files_make_folder(&dev, "pts", err);
    if (rc != BH_OK)
        return rc;
    return sandbox_files_make_folder(&dev, "shm", err);
}

/* Owned by an id that is not mapped in the sandbox, so that no process there writes it. */
static bh_rc
files_make_nothing(const char *path, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = bh_file_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0444, &fd, err);

    if (rc != BH_OK)
        return rc;
    return fchmod(fd, 0444) == 0 ? BH_OK : bh_err_errno(err, "make %s", path);
}

bh_rc
bh_sandbox_files_make(const struct bh_sandbox *sandbox, struct bh_err *err)
{
    char path[PATH_SIZE];
    bh_rc rc;

    snprintf(path, sizeof path, "%s/" BH_SANDBOX_FILES_NO_FOLDER, sandbox->bundle);
    rc = bh_dir_make(path, 0555, err);
    snprintf(path, sizeof path, "%s/" BH_SANDBOX_FILES_NO_FILE, sandbox->bundle);
    if (rc != BH_OK)
        return rc;
    rc = files_make_nothing(path, err);
    if (rc != BH_OK)
        return rc;
    snprintf(path, sizeof path, "%s/" BH_SANDBOX_FILES_DEV, sandbox->bundle);
    rc = bh_dir_make(path, 0755, err);
    if (rc != BH_OK)
        return rc;
    return files_make_dev(sandbox, path, err);
}

/* ---- what is masked ---- */

static enum bh_masked_kind
sandbox_files_kind_of(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return BH_MASKED_ABSENT;
    return S_ISDIR(st.st_mode) ? BH_MASKED_FOLDER : BH_MASKED_FILE;
}

static bool
files_is_covered(const struct bh_masked_list *list, const char *path)
{
    for (uint32_t i = 0; i < list->count; i++) {
        size_t length = strlen(list->items[i].path);

        if (strncmp(path, list->items[i].path, length) == 0 && (!path[length] || path[length] == '/'))
            return true;
    }
    return false;
}

static bh_rc
files_add_masked(struct bh_masked_list *list, const char *path, struct bh_err *err)
{
    struct bh_masked *row = &list->items[list->count];

    if (list->count == BH_MASKED_MAX)
        return bh_err_set(err, BH_FULL,
                          "this machine has more than the %d disks, sensors and files "
                          "that can be kept from a job's sight",
                          BH_MASKED_MAX);
    if (strlen(path) >= sizeof row->path)
        return bh_err_set(err, BH_FULL, "a path is too long to be kept from a job's sight: %.150s", path);
    snprintf(row->path, sizeof row->path, "%s", path);
    row->kind = sandbox_files_kind_of(path);
    list->count++;
    return BH_OK;
}

/* Entries of these folders are links: what is masked is the folder that they lead to. */
static bh_rc
files_add_each(struct bh_masked_list *list, const char *pattern, struct bh_err *err)
{
    glob_t found;
    bh_rc rc = BH_OK;
    int failed = glob(pattern, GLOB_NOSORT, NULL, &found);

    if (failed)
        return failed == GLOB_NOMATCH ? BH_OK : bh_err_set(err, BH_IO, "cannot list %s", pattern);
    for (size_t i = 0; i < found.gl_pathc && rc == BH_OK; i++) {
        char *path = realpath(found.gl_pathv[i], NULL);

        if (path && !files_is_covered(list, path))
            rc = files_add_masked(list, path, err);
        free(path);
    }
    globfree(&found);
    return rc;
}

bh_rc
bh_masked_add(struct bh_masked_list *list, const char *row, struct bh_err *err)
{
    return strchr(row, '*') ? files_add_each(list, row, err) : files_add_masked(list, row, err);
}

bh_rc
bh_masked_read(struct bh_masked_list *ret_masked, struct bh_err *err)
{
    static const char *const rows[] = {
#define BH_MASKED(path) path,
#include "tables/masked.tbl"
#undef BH_MASKED
    };
    bh_rc rc = BH_OK;

    ret_masked->count = 0;
    for (size_t i = 0; i < BH_COUNT(rows) && rc == BH_OK; i++)
        rc = bh_masked_add(ret_masked, rows[i], err);
    return rc;
}
