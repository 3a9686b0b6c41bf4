#include "node/rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "node/path.h"

enum { PATH_SIZE = 512, ETC_FILE_MAX = 8 << 20, LINKS_MAX = 8 };

struct bh_rootfs {
    char folder[PATH_SIZE];                     /* <boxes>/host */
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
static const char *const lib_folders[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64",
                                           "/libx32" };

/* ---- mounting ---- */

/* `source` at the existing folder or file `target`, read-only. */
static bh_rc
bind_read_only(const char *source, const char *target, struct bh_err *err)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID
                                           | MOUNT_ATTR_NODEV,
                               .propagation = MS_PRIVATE };
    BH_AUTO(bh_fd_close) int tree
        = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0
        || move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return bh_err_errno(err, "show %s at %s", source, target);
    return BH_OK;
}

static bh_rc
bind_folder(const char *source, const char *target, struct bh_err *err)
{
    bh_rc rc = bh_dir_make(target, 0755, err);

    return rc == BH_OK ? bind_read_only(source, target, err) : rc;
}

static bh_rc
add_mount(struct bh_rootfs *rootfs, const char *source, const char *target, struct bh_err *err)
{
    uint32_t at = rootfs->mount_count;

    if (at == BH_ROOTFS_MOUNTS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d parts in the host root file system",
                          BH_ROOTFS_MOUNTS_MAX);
    snprintf(rootfs->texts[at][0], PATH_SIZE, "%s", source);
    snprintf(rootfs->texts[at][1], PATH_SIZE, "%s", target);
    rootfs->mounts[at] = (struct bh_sandbox_mount){ rootfs->texts[at][0], rootfs->texts[at][1],
                                                    false };
    rootfs->mount_count++;
    return BH_OK;
}

/* ---- /usr ---- */

/* One entry of /usr/local: folders are shown, links remade, files left out. */
static bh_rc
remake_entry(const char *name, const char *place, struct bh_err *err)
{
    char source[PATH_SIZE], target[PATH_SIZE + 64], link[PATH_SIZE];
    struct stat st;
    ssize_t n;

    snprintf(source, sizeof source, "/usr/local/%.200s", name);
    snprintf(target, sizeof target, "%s/%.200s", place, name);
    if (lstat(source, &st) != 0)
        return BH_OK;
    if (S_ISDIR(st.st_mode))
        return bind_folder(source, target, err);
    if (!S_ISLNK(st.st_mode) || (n = readlink(source, link, sizeof link - 1)) < 0)
        return BH_OK;
    link[n] = '\0';
    return symlink(link, target) == 0 ? BH_OK : bh_err_errno(err, "make link %s", target);
}

static bh_rc
remake_entries(const char *place, struct bh_err *err)
{
    DIR *dir = opendir("/usr/local");
    bh_rc rc = BH_OK;

    if (!dir)
        return BH_OK;
    for (const struct dirent *entry; rc == BH_OK && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0
            && strcmp(entry->d_name, "nvidia") != 0 && strcmp(entry->d_name, "bulkhead") != 0)
            rc = remake_entry(entry->d_name, place, err);
    }
    closedir(dir);
    return rc;
}

/* Bulkhead's own places in /usr/local; a folder that is not set stays out. */
static bh_rc
show_own(const struct bh_conf *conf, const char *libexec, const char *place, struct bh_err *err)
{
    const struct {
        const char *source, *target;
    } rows[] = {
        { conf->driver_lib_dir, BH_ROOTFS_DRIVER },
        { conf->tools_dir, BH_ROOTFS_TOOLS },
    };
    char target[PATH_SIZE], source[PATH_SIZE];
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(rows) && rc == BH_OK; i++) {
        if (!*rows[i].source)
            continue;
        snprintf(target, sizeof target, "%s%s", place, rows[i].target + strlen("/usr/local"));
        rc = bind_folder(rows[i].source, target, err);
    }
    if (rc != BH_OK)
        return rc;
    snprintf(target, sizeof target, "%s%s", place, BH_ROOTFS_LIBEXEC + strlen("/usr/local"));
    rc = bh_dir_make(target, 0755, err);
    if (rc != BH_OK)
        return rc;
    snprintf(target + strlen(target), sizeof target - strlen(target), "/init");
    snprintf(source, sizeof source, "%s/bulkhead-init", libexec);
    close(open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    return bind_read_only(source, target, err);
}

/* A tmpfs over /usr/local of the copy: the machine's own may lack the places. */
static bh_rc
build_usr(struct bh_rootfs *rootfs, const struct bh_conf *conf, const char *libexec,
          struct bh_err *err)
{
    char usr[PATH_SIZE + 8], local[PATH_SIZE + 16];
    bh_rc rc;

    snprintf(usr, sizeof usr, "%s/usr", rootfs->folder);
    snprintf(local, sizeof local, "%s/usr/local", rootfs->folder);
    rc = bind_folder("/usr", usr, err);
    if (rc != BH_OK)
        return rc;
    if (mount("bulkhead-local", local, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") != 0)
        return bh_err_errno(err, "mount a tmpfs on %s", local);
    rc = remake_entries(local, err);
    if (rc == BH_OK)
        rc = show_own(conf, libexec, local, err);
    if (rc == BH_OK
        && mount(NULL, local, NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) != 0)
        rc = bh_err_errno(err, "make %s read-only", local);
    return rc == BH_OK ? add_mount(rootfs, usr, "/usr", err) : rc;
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
static const char *const shown_files[] = { "ld.so.cache", "ld.so.conf", "protocols", "services",
                                           "mime.types", "os-release", "debian_version" };
static const char *const shown_folders[] = { "alternatives", "ld.so.conf.d", "ssl/certs",
                                             "python3", "python3.11", "python3.12",
                                             "python3.13", "fonts", "OpenCL", "vulkan" };

static bh_rc
copy_file(const char *folder, const char *name, struct bh_err *err)
{
    char source[PATH_SIZE], target[PATH_SIZE];
    struct bh_buf text;
    bh_rc rc;

    snprintf(source, sizeof source, "/etc/%s", name);
    snprintf(target, sizeof target, "%s/%s", folder, name);
    if (access(source, R_OK) != 0)
        return BH_OK;
    bh_buf_init(&text, ETC_FILE_MAX);
    rc = bh_file_read(source, ETC_FILE_MAX - 1, &text, err);
    if (rc == BH_OK)
        rc = bh_file_replace(target, text.bytes, text.length, 0644, err);
    bh_buf_fini(&text);
    return rc;
}

static void
copy_timezone(const char *folder)
{
    char target[PATH_SIZE], link[PATH_SIZE];
    ssize_t n = readlink("/etc/localtime", link, sizeof link - 1);

    if (n < 0)
        return;
    link[n] = '\0';
    snprintf(target, sizeof target, "%s/localtime", folder);
    (void)!symlink(link, target);
}

static bh_rc
build_etc(struct bh_rootfs *rootfs, struct bh_err *err)
{
    char etc[PATH_SIZE + 8], path[PATH_SIZE + 64], source[64];
    bh_rc rc;

    snprintf(etc, sizeof etc, "%s/etc", rootfs->folder);
    rc = bh_dir_make(etc, 0755, err);
    for (size_t i = 0; i < BH_COUNT(made_files) && rc == BH_OK; i++) {
        snprintf(path, sizeof path, "%s/%s", etc, made_files[i].name);
        rc = bh_file_replace(path, made_files[i].text, strlen(made_files[i].text), 0644, err);
    }
    for (size_t i = 0; i < BH_COUNT(shown_files) && rc == BH_OK; i++)
        rc = copy_file(etc, shown_files[i], err);
    for (size_t i = 0; i < BH_COUNT(shown_folders) && rc == BH_OK; i++) {
        snprintf(source, sizeof source, "/etc/%s", shown_folders[i]);
        snprintf(path, sizeof path, "%s/%s", etc, shown_folders[i]);
        if (access(source, F_OK) == 0)
            rc = bind_folder(source, path, err);
    }
    copy_timezone(etc);
    return rc == BH_OK ? add_mount(rootfs, etc, "/etc", err) : rc;
}

/* ---- /bin, /lib and what node.conf adds ---- */

static bh_rc
build_libs(struct bh_rootfs *rootfs, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(lib_folders) && rc == BH_OK; i++) {
        struct stat st;
        ssize_t n;

        if (lstat(lib_folders[i], &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode)) {
            rc = add_mount(rootfs, lib_folders[i], lib_folders[i], err);
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
build_extra(struct bh_rootfs *rootfs, const struct bh_conf *conf, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < conf->host_paths.count && rc == BH_OK; i++) {
        const char *path = conf->host_paths.items[i];
        struct stat st;

        rc = bh_path_target_check(path, err);
        if (rc == BH_OK && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
            rc = bh_err_set(err, BH_INVALID, "host_paths: %s is no folder", path);
        if (rc == BH_OK)
            rc = add_mount(rootfs, path, path, err);
    }
    return rc;
}

bh_rc
bh_rootfs_open(const struct bh_conf *conf, const char *boxes, const char *libexec,
               struct bh_rootfs **ret_rootfs, struct bh_err *err)
{
    BH_AUTO(bh_rootfs_close) struct bh_rootfs *rootfs = calloc(1, sizeof *rootfs);
    bh_rc rc;

    if (!rootfs)
        return bh_err_set(err, BH_FULL, "out of memory");
    snprintf(rootfs->folder, sizeof rootfs->folder, "%.480s/host", boxes);
    rc = build_usr(rootfs, conf, libexec, err);
    if (rc == BH_OK)
        rc = build_etc(rootfs, err);
    if (rc == BH_OK)
        rc = build_libs(rootfs, err);
    if (rc == BH_OK)
        rc = build_extra(rootfs, conf, err);
    if (rc == BH_OK)
        *ret_rootfs = bh_steal(&rootfs);
    return rc;
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
        if (symlinkat(rootfs->links[i].target, folder, rootfs->links[i].path + 1) != 0
            && errno != EEXIST)
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
