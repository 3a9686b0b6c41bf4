#include "node/core/rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "node/common/path.h"

enum { PATH_SIZE = 512, FILE_BYTES_MAX = 8 << 20, LINKS_MAX = 8 };
#define MACHINE ".machine" /* in the sandbox's /usr/local: the machine's own */

struct bh_rootfs {
    char folder[PATH_SIZE]; /* <boxes>/host */
    struct bh_sandbox_mount mounts[BH_ROOTFS_MOUNTS_MAX];
    char texts[BH_ROOTFS_MOUNTS_MAX][2][PATH_SIZE];
    uint32_t mount_count;
    struct {
        char path[32], target[PATH_SIZE];
    } links[LINKS_MAX];
    uint32_t link_count;
};

static const char *const top_folders[] = { "proc", "sys",  "dev", "tmp", "run",
                                           "home", "root", "var", "mnt", "opt" };
static const char *const lib_folders[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };

/* ---- parts ---- */

static bh_rc
rootfs_add_mount(struct bh_rootfs *rootfs, const char *source, const char *target, struct bh_err *err)
{
    uint32_t at = rootfs->mount_count;

    if (at == BH_ROOTFS_MOUNTS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d parts in the host root file system",
                          BH_ROOTFS_MOUNTS_MAX);
    snprintf(rootfs->texts[at][0], PATH_SIZE, "%s", source);
    snprintf(rootfs->texts[at][1], PATH_SIZE, "%s", target);
    rootfs->mounts[at] = (struct bh_sandbox_mount){ rootfs->texts[at][0], rootfs->texts[at][1], false };
    rootfs->mount_count++;
    return BH_OK;
}

static bh_rc
rootfs_copy_file(const char *source, const char *target, mode_t mode, struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, FILE_BYTES_MAX + 1);
    rc = bh_file_read(source, FILE_BYTES_MAX, &text, err);
    if (rc == BH_OK)
        rc = bh_file_replace(target, text.bytes, text.length, mode, err);
    bh_buf_fini(&text);
    return rc;
}

static bh_rc
rootfs_copy_link(const char *source, const char *target, struct bh_err *err)
{
    char text[PATH_SIZE];
    ssize_t n = readlink(source, text, sizeof text - 1);

    if (n < 0)
        return bh_err_errno(err, "read link %s", source);
    text[n] = '\0';
    if (symlink(text, target) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make link %s", target);
    return BH_OK;
}

/* ---- /usr ---- */

/* A link in the sandbox's /usr/local for each entry of the machine's, which is mounted beside it. */
static bh_rc
rootfs_link_entries(const char *local, struct bh_err *err)
{
    DIR *dir = opendir("/usr/local");
    char target[PATH_SIZE * 2], link[PATH_SIZE];
    bh_rc rc = BH_OK;

    if (!dir)
        return BH_OK;
    for (const struct dirent *entry; rc == BH_OK && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "nvidia") == 0
            || strcmp(entry->d_name, "bulkhead") == 0)
            continue;
        snprintf(link, sizeof link, MACHINE "/%s", entry->d_name);
        bh_path_format(target, sizeof target, "%s/%s", local, entry->d_name);
        if (symlink(link, target) != 0 && errno != EEXIST)
            rc = bh_err_errno(err, "make link %s", target);
    }
    closedir(dir);
    return rc;
}

/* The folders of the sandbox's own /usr/local, which the node fills, because the machine's may lack them. */
static bh_rc
rootfs_make_local(const char *local, const char *libexec, struct bh_err *err)
{
    static const char *const folders[] = { BH_ROOTFS_DRIVER, BH_ROOTFS_TOOLS, BH_ROOTFS_LIBEXEC,
                                           ("/usr/local/" MACHINE) };
    static const char *const programs[] = { "init", "probe" };
    char path[PATH_SIZE * 2], source[PATH_SIZE];
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(folders) && rc == BH_OK; i++) {
        bh_path_format(path, sizeof path, "%s%s", local, &folders[i][strlen("/usr/local")]);
        rc = bh_dir_make(path, 0755, err);
    }
    for (size_t i = 0; i < BH_COUNT(programs) && rc == BH_OK; i++) {
        bh_path_format(path, sizeof path, "%s%s/%s", local, &BH_ROOTFS_LIBEXEC[strlen("/usr/local")],
                       programs[i]);
        bh_path_format(source, sizeof source, "%.480s/bulkhead-%s", libexec, programs[i]);
        rc = rootfs_copy_file(source, path, 0755, err);
    }
    bh_path_format(path, sizeof path, "%s%s/scrub", local, &BH_ROOTFS_LIBEXEC[strlen("/usr/local")]);
    bh_path_format(source, sizeof source, "%.480s/bulkhead-scrub", libexec);
    if (rc == BH_OK && access(source, X_OK) == 0) /* without it nothing is sampled */
        rc = rootfs_copy_file(source, path, 0755, err);
    return rc == BH_OK ? rootfs_link_entries(local, err) : rc;
}

static bh_rc
rootfs_build_usr(struct bh_rootfs *rootfs, const struct bh_conf *conf, const char *libexec,
                 struct bh_err *err)
{
    char local[PATH_SIZE];
    const struct {
        const char *source, *target;
    } rows[] = {
        { "/usr", "/usr" },
        { local, "/usr/local" },
        { "/usr/local", "/usr/local/" MACHINE },
        { conf->driver_lib_dir, BH_ROOTFS_DRIVER },
        { conf->tools_dir, BH_ROOTFS_TOOLS },
    };
    bh_rc rc;

    bh_path_format(local, sizeof local, "%.480s/local", rootfs->folder);
    rc = rootfs_make_local(local, libexec, err);
    for (size_t i = 0; i < BH_COUNT(rows) && rc == BH_OK; i++) {
        if (*rows[i].source)
            rc = rootfs_add_mount(rootfs, rows[i].source, rows[i].target, err);
    }
    return rc;
}

/* ---- /etc ---- */

static const struct {
    const char *name, *text;
} made_files[] = {
    { "passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                "job:x:1000:1000:job:/tmp:/bin/sh\n"
                "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
    { "group", "root:x:0:\njob:x:1000:\nnogroup:x:65534:\n" },
    { "hosts", "127.0.0.1 localhost\n::1 localhost\n" },
    { "resolv.conf", "" },
    { "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n" },
};
static const char *const copied[] = {
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d",   "localtime",    "protocols", "services",
    "mime.types",  "os-release", "debian_version", "alternatives", "ssl/certs", "python3",
    "python3.11",  "python3.12", "python3.13",     "fonts",        "OpenCL",    "vulkan",
};

static bh_rc rootfs_copy_entry(const char *source, const char *target, struct bh_err *err);

static bh_rc
rootfs_copy_folder(const char *source, const char *target, struct bh_err *err)
{
    DIR *dir = opendir(source);
    char from[PATH_SIZE * 2], to[PATH_SIZE * 2];
    bh_rc rc;

    if (!dir)
        return bh_err_errno(err, "open %s", source);
    rc = bh_dir_make(target, 0755, err);
    for (const struct dirent *entry; rc == BH_OK && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (snprintf(from, sizeof from, "%s/%s", source, entry->d_name) >= PATH_SIZE
            || snprintf(to, sizeof to, "%s/%s", target, entry->d_name) >= PATH_SIZE)
            continue;
        rc = rootfs_copy_entry(from, to, err);
    }
    closedir(dir);
    return rc;
}

/* Files that not every user may read are left out. */
static bh_rc
rootfs_copy_entry(const char *source, const char *target, struct bh_err *err)
{
    struct stat st;

    if (lstat(source, &st) != 0)
        return BH_OK;
    if (S_ISDIR(st.st_mode))
        return rootfs_copy_folder(source, target, err);
    if (S_ISLNK(st.st_mode))
        return rootfs_copy_link(source, target, err);
    if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) || st.st_size > FILE_BYTES_MAX)
        return BH_OK;
    return rootfs_copy_file(source, target, 0644, err);
}

static bh_rc
rootfs_build_etc(struct bh_rootfs *rootfs, struct bh_err *err)
{
    char etc[PATH_SIZE], path[PATH_SIZE * 2], source[PATH_SIZE];
    bh_rc rc;

    bh_path_format(etc, sizeof etc, "%.480s/etc", rootfs->folder);
    bh_path_format(path, sizeof path, "%s/ssl", etc);
    rc = bh_dir_make(path, 0755, err);
    for (size_t i = 0; i < BH_COUNT(made_files) && rc == BH_OK; i++) {
        bh_path_format(path, sizeof path, "%s/%s", etc, made_files[i].name);
        rc = bh_file_replace(path, made_files[i].text, strlen(made_files[i].text), 0644, err);
    }
    for (size_t i = 0; i < BH_COUNT(copied) && rc == BH_OK; i++) {
        bh_path_format(source, sizeof source, "/etc/%s", copied[i]);
        bh_path_format(path, sizeof path, "%s/%s", etc, copied[i]);
        rc = rootfs_copy_entry(source, path, err);
    }
    return rc == BH_OK ? rootfs_add_mount(rootfs, etc, "/etc", err) : rc;
}

/* ---- /bin, /lib and what node.conf adds ---- */

static bh_rc
rootfs_build_libs(struct bh_rootfs *rootfs, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(lib_folders) && rc == BH_OK; i++) {
        struct stat st;
        ssize_t n;

        if (lstat(lib_folders[i], &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode)) {
            rc = rootfs_add_mount(rootfs, lib_folders[i], lib_folders[i], err);
            continue;
        }
        n = readlink(lib_folders[i], rootfs->links[rootfs->link_count].target, PATH_SIZE - 1);
        if (n < 0)
            continue;
        rootfs->links[rootfs->link_count].target[n] = '\0';
        snprintf(rootfs->links[rootfs->link_count++].path, 32, "%s", lib_folders[i]);
    }
    return rc;
}

static bh_rc
rootfs_build_extra(struct bh_rootfs *rootfs, const struct bh_conf *conf, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < conf->host_paths.count && rc == BH_OK; i++) {
        const char *path = conf->host_paths.items[i];
        struct stat st;

        rc = bh_path_target_check(path, err);
        if (rc == BH_OK && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
            rc = bh_err_set(err, BH_INVALID, "host_paths: %s is not a folder", path);
        if (rc == BH_OK)
            rc = rootfs_add_mount(rootfs, path, path, err);
    }
    return rc;
}

bh_rc
bh_rootfs_open(const struct bh_conf *conf, const char *sandboxes, const char *libexec,
               struct bh_rootfs **ret_rootfs, struct bh_err *err)
{
    BH_AUTO(bh_rootfs_close) struct bh_rootfs *rootfs = calloc(1, sizeof *rootfs);
    bh_rc rc;

    if (!rootfs)
        return bh_err_set(err, BH_FULL, "out of memory");
    snprintf(rootfs->folder, sizeof rootfs->folder, "%.480s/host", sandboxes);
    rc = bh_path_mount_tmpfs("bulkhead-host", rootfs->folder, 0755,
                             err); /* what jobs see of it never changes */
    if (rc == BH_OK)
        rc = rootfs_build_usr(rootfs, conf, libexec, err);
    if (rc != BH_OK)
        return rc;
    rc = rootfs_build_etc(rootfs, err);
    if (rc != BH_OK)
        return rc;
    rc = rootfs_build_libs(rootfs, err);
    if (rc != BH_OK)
        return rc;
    rc = rootfs_build_extra(rootfs, conf, err);
    if (rc != BH_OK)
        return rc;
    *ret_rootfs = bh_steal(&rootfs);
    return BH_OK;
}

void
bh_rootfs_close(struct bh_rootfs *rootfs)
{
    free(rootfs);
}

bh_rc
bh_rootfs_make_root(const struct bh_rootfs *rootfs, const char *root, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int folder = -1;
    bh_rc rc = BH_OK;

    if (mkdir(root, 0755) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make folder %s", root);
    folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < BH_COUNT(top_folders); i++) {
        if (mkdirat(folder, top_folders[i], 0755) != 0 && errno != EEXIST)
            return bh_err_errno(err, "make folder %s/%s", root, top_folders[i]);
    }
    for (uint32_t i = 0; i < rootfs->link_count; i++) {
        if (symlinkat(rootfs->links[i].target, folder, rootfs->links[i].path + 1) != 0 && errno != EEXIST)
            return bh_err_errno(err, "make link %s%s", root, rootfs->links[i].path);
    }
    for (uint32_t i = 0; i < rootfs->mount_count && rc == BH_OK; i++)
        rc = bh_path_make_below(root, rootfs->mounts[i].target, err);
    return rc;
}

const struct bh_sandbox_mount *
bh_rootfs_mounts(const struct bh_rootfs *rootfs, uint32_t *ret_count)
{
    *ret_count = rootfs->mount_count;
    return rootfs->mounts;
}
