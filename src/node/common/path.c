#include "node/common/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/proc.h"
#include "model/path.h"

void
bh_path_format(char *ret_path, size_t size, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(ret_path, size, format, args);
    va_end(args);
    BH_ASSERT(length >= 0 && (size_t)length < size);
}

/* ---- opening ---- */

static int
path_open_below(int folder, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = { .flags = flags | O_CLOEXEC,
                            .resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

/* Whose rights count. */
struct credentials {
    uid_t uid;
    gid_t gid;
};

/* The root that `path` lies at or below, or NULL. */
static const char *
path_find_root(const struct bh_param_list *roots, const char *path)
{
    for (uint32_t i = 0; i < roots->count; i++) {
        size_t length = strlen(roots->items[i]);

        while (length > 1 && roots->items[i][length - 1] == '/')
            length--;
        if (strncmp(path, roots->items[i], length) == 0
            && (path[length] == '/' || !path[length] || length == 1))
            return roots->items[i];
    }
    return NULL;
}

bool
bh_path_is_person(uid_t uid)
{
    return uid != 0 && uid != BH_PATH_NOBODY && uid != UINT32_MAX;
}

/* A user without rights of its own sees what every user may see. */
static struct credentials
path_credentials_of(const struct bh_path_request *request)
{
    bool person = bh_path_is_person(request->uid);
    bool group = person && request->gid != 0 && request->gid != UINT32_MAX;

    return (struct credentials){ person ? request->uid : BH_PATH_NOBODY,
                                 group ? request->gid : BH_PATH_NOBODY };
}

/* setfsuid reports no failure, for example for an invalid user: so its effect is read back. */
static bool
path_use_credentials(const struct credentials *credentials)
{
    if (geteuid() != 0)
        return true;
    setfsgid(credentials->gid);
    setfsuid(credentials->uid);
    return (gid_t)setfsgid((gid_t)-1) == credentials->gid && (uid_t)setfsuid((uid_t)-1) == credentials->uid;
}

static bh_rc
path_refuse(const struct bh_path_request *request, struct bh_err *err)
{
    if (errno == ELOOP)
        return bh_err_set(err, BH_DENIED, "%s goes through a symbolic link", request->path);
    if (errno == EXDEV)
        return bh_err_set(err, BH_DENIED, "%s leaves its folder", request->path);
    return bh_err_errno(err, "open %s as user %u", request->path, path_credentials_of(request).uid);
}

/* The kernel judges for the file system user of the calling thread, which loses root's
 * override with it. */
static bh_rc
path_open_as_user(const struct bh_path_request *request, int root_fd, const char *rest, int *ret_fd,
                  struct bh_err *err)
{
    int mode = R_OK | X_OK | (request->write ? W_OK : 0), fd = -1;
    const struct credentials theirs = path_credentials_of(request), own = { geteuid(), getegid() };
    bh_rc rc = BH_OK;

    if (!path_use_credentials(&theirs)) {
        (void)path_use_credentials(&own);
        return bh_err_set(err, BH_DENIED, "cannot inspect %s as user %u", request->path, theirs.uid);
    }
    fd = *rest ? path_open_below(root_fd, rest, O_PATH | O_DIRECTORY, RESOLVE_BENEATH)
               : fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 || syscall(SYS_faccessat2, fd, "", mode, AT_EACCESS | AT_EMPTY_PATH) != 0)
        rc = path_refuse(request, err);
    (void)path_use_credentials(&own);
    if (rc != BH_OK)
        bh_fd_close(fd);
    else
        *ret_fd = fd;
    return rc;
}

bh_rc
bh_path_open(const struct bh_path_request *request, int *ret_fd, struct bh_err *err)
{
    const char *root = path_find_root(request->roots, request->path), *rest;
    BH_AUTO(bh_fd_close) int root_fd = -1;

    if (!root || request->path[0] != '/') {
        bh_err_set(err, BH_DENIED, "%s is not below any of %s", request->path, request->key);
        return bh_err_hint(err, "the administrator can add %s = FOLDER to node.conf", request->key);
    }
    root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return bh_err_errno(err, "open %s of %s", root, request->key);
    rest = request->path + strlen(root);
    while (*rest == '/')
        rest++;
    return path_open_as_user(request, root_fd, rest, ret_fd, err);
}

/* ---- places inside ---- */

bh_rc
bh_path_target_check(const char *target, struct bh_err *err)
{
    const char *fault = bh_file_path_fault(target);

    if (!fault)
        fault = bh_sandbox_path_fault(target);
    return fault ? bh_err_set(err, BH_INVALID, "%.80s %s", target, fault) : BH_OK;
}

/* As a rule it is there: most targets share their first folders. */
static int
path_make_one_below(int folder, const char *name)
{
    int fd = path_open_below(folder, name, O_PATH | O_DIRECTORY, RESOLVE_BENEATH);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat(folder, name, 0755) != 0 && errno != EEXIST)
        return -1;
    return path_open_below(folder, name, O_PATH | O_DIRECTORY, RESOLVE_BENEATH);
}

bh_rc
bh_path_make_below(const char *root, const char *target, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[256];

    for (const char *at = target; folder >= 0 && *at;) {
        size_t length;
        int next;

        at += strspn(at, "/");
        length = strcspn(at, "/");
        if (length == 0)
            return BH_OK;
        if (length >= sizeof name)
            return bh_err_set(err, BH_INVALID, "%.60s is too long", target);
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        next = path_make_one_below(folder, name);
        bh_fd_close(folder);
        folder = next;
        at += length;
        if (folder >= 0 && !*at)
            return BH_OK;
    }
    return bh_err_errno(err, "make the mount point %s", target);
}

/* ---- private copies of mounts ---- */

static bh_rc
path_write_map(pid_t pid, const char *file, const char *text, struct bh_err *err)
{
    char path[BH_PROC_PATH_MAX];
    BH_AUTO(bh_fd_close) int fd = -1;

    bh_proc_path(pid, file, path);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return bh_err_errno(err, "write %s", path);
    return BH_OK;
}

/* The ids from `first` up to `end` as they are. */
static void
path_put_same(struct bh_buf *map, uint32_t first, uint32_t end)
{
    if (first < end)
        bh_buf_printf(map, "%u %u %u\n", first, first, end - first);
}

/* One of `ids` becomes the other.  Ids below `same_below` stay: the kernel writes to no inode whose
 * owner or group a mount does not know, whatever its mode allows. */
static bh_rc
path_write_one_map(pid_t pid, const char *file, const uint32_t ids[2], const struct bh_path_owner *owner,
                   struct bh_err *err)
{
    uint32_t from = ids[0], same = owner->same_below;
    char memory[160];
    struct bh_buf map;

    bh_buf_init_fixed(&map, memory, sizeof memory);
    bh_buf_printf(&map, "%u %u %u\n", from, ids[1], owner->count ? owner->count : 1);
    path_put_same(&map, 0, from < same ? from : same);
    path_put_same(&map, from < same ? from + 1 : same, same);
    return path_write_map(pid, file, bh_buf_text(&map), err);
}

static bh_rc
path_write_maps(pid_t pid, const struct bh_path_owner *owner, int *ret_fd, struct bh_err *err)
{
    char path[BH_PROC_PATH_MAX];
    bh_rc rc = path_write_one_map(pid, "uid_map", (uint32_t[]){ owner->from_uid, owner->to_uid }, owner, err);
    if (rc != BH_OK)
        return rc;

    rc = path_write_one_map(pid, "gid_map", (uint32_t[]){ owner->from_gid, owner->to_gid }, owner, err);
    if (rc != BH_OK)
        return rc;
    bh_proc_path(pid, "ns/user", path);
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    return *ret_fd < 0 ? bh_err_errno(err, "open %s", path) : BH_OK;
}

/* A user namespace is made by a process that enters it; this one only waits for the
 * mapping to be written. */
static bh_rc
path_make_mapping(const struct bh_path_owner *owner, int *ret_fd, struct bh_err *err)
{
    int barrier[2], status;
    pid_t pid;
    bh_rc rc;

    if (pipe2(barrier, O_CLOEXEC) != 0)
        return bh_err_errno(err, "pipe");
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        char byte;

        close(barrier[1]);
        _exit(read(barrier[0], &byte, 1) < 0);
    }
    rc = pid < 0 ? bh_err_errno(err, "make a user namespace") : path_write_maps(pid, owner, ret_fd, err);
    close(barrier[0]);
    close(barrier[1]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return rc;
}

bh_rc
bh_path_clone(int fd, const char *place, bool write, const struct bh_path_owner *owner, struct bh_err *err)
{
    struct mount_attr attr = { .attr_set =
                                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (write ? 0 : MOUNT_ATTR_RDONLY),
                               .propagation = MS_PRIVATE };
    BH_AUTO(bh_fd_close) int mapping = -1;
    BH_AUTO(bh_fd_close) int tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

    if (tree < 0)
        return bh_err_errno(err, "copy the mount for %s", place);
    if (owner) {
        bh_rc rc = path_make_mapping(owner, &mapping, err);

        if (rc != BH_OK)
            return rc;
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (uint64_t)mapping;
    }
    if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) {
        bh_err_errno(err, "prepare the mount for %s", place);
        return err->rc = owner ? BH_UNAVAILABLE : err->rc;
    }
    if (move_mount(tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return bh_err_errno(err, "place the mount %s", place);
    return BH_OK;
}

bh_rc
bh_path_mount_tmpfs(const char *name, const char *place, mode_t mode, struct bh_err *err)
{
    char options[32];
    bh_rc rc = bh_dir_make(place, mode, err);

    bh_path_format(options, sizeof options, "mode=%o", (unsigned)mode);
    if (rc != BH_OK)
        return rc;
    if (mount(name, place, "tmpfs", MS_NOSUID, options) != 0)
        return bh_err_errno(err, "mount a tmpfs on %s", place);
    return BH_OK;
}

/* ---- removing ---- */

/* A tenant may nest folders without limit.  A folder below DEPTH_MAX is moved to the top of the tree, where a
 * later pass removes it. */
enum { DEPTH_MAX = 200 };

struct removal {
    int top;
    dev_t device;
    uint64_t moved;
};

static void
path_raise_folder(struct removal *removal, int folder, const char *name)
{
    char above[32];

    bh_path_format(above, sizeof above, ".deep-%llu", (unsigned long long)removal->moved++);
    (void)!renameat(folder, name, removal->top, above);
}

static void
path_remove_entries(struct removal *removal, int folder, uint32_t depth)
{
    DIR *dir = fdopendir(folder);

    if (!dir) {
        close(folder);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        int inner;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
            || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0
            || st.st_dev != removal->device)
            continue;
        if (!S_ISDIR(st.st_mode)) {
            unlinkat(dirfd(dir), entry->d_name, 0);
            continue;
        }
        if (unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) == 0)
            continue; /* empty, as most of a job's root are */
        if (depth == DEPTH_MAX) {
            path_raise_folder(removal, dirfd(dir), entry->d_name);
            continue;
        }
        inner = path_open_below(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY, RESOLVE_NO_XDEV);
        if (inner >= 0)
            path_remove_entries(removal, inner, depth + 1);
        unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

void
bh_path_remove_tree(const char *path)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct removal removal = { .top = fd };
    struct stat st;
    uint64_t moved;

    if (fd < 0 || fstat(fd, &st) != 0)
        return;
    removal.device = st.st_dev;
    do {
        int again = path_open_below(fd, ".", O_RDONLY | O_DIRECTORY, 0);

        moved = removal.moved;
        if (again >= 0)
            path_remove_entries(&removal, again, 0);
    } while (removal.moved != moved);
    rmdir(path);
}
