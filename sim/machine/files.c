#include "sim/machine/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/machine/sim.h"

bool
sim_path(char *ret_path, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(ret_path, SIM_PATH_MAX, format, args);
    va_end(args);
    if (length >= 0 && length < SIM_PATH_MAX)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

static bool
make_folder(const char *path, mode_t mode)
{
    if (mkdir(path, mode) != 0)
        return errno == EEXIST;
    return chmod(path, mode) == 0;
}

bool
sim_make_folders(const char *path, mode_t mode)
{
    char part[SIM_PATH_MAX];

    if (!sim_path(part, "%s", path))
        return false;
    if (make_folder(part, mode)) /* as a rule those above it are there */
        return true;
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!make_folder(part, 0755))
            return false;
        *slash = '/';
    }
    return make_folder(part, mode);
}

static bool
write_all(int fd, const char *content, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, content, length);

        if (written < 0)
            return false;
        content += written;
        length -= (size_t)written;
    }
    return true;
}

bool
sim_put_file(const char *path, mode_t mode, const void *content, size_t length)
{
    char draft[SIM_PATH_MAX];
    bool written;
    int fd;

    /* The writer's lock is held, so one name for drafts is enough. */
    if (!sim_path(draft, "%s.new", path))
        return false;
    fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return false;
    written = fchmod(fd, mode) == 0 && write_all(fd, content, length);
    close(fd);
    if (written && rename(draft, path) == 0)
        return true;
    unlink(draft);
    return false;
}

bool
sim_put_sparse(const char *path, mode_t mode, off_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
    bool made;

    if (fd < 0)
        return false;
    made = ftruncate(fd, size) == 0 && fchmod(fd, mode) == 0;
    close(fd);
    return made;
}

static bool
remove_entry(const char *folder, const struct dirent *entry)
{
    char path[SIM_PATH_MAX];

    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return true;
    if (!sim_path(path, "%s/%s", folder, entry->d_name))
        return false;
    if (unlink(path) == 0 || errno == ENOENT)
        return true;
    return errno == EISDIR && sim_remove_tree(path);
}

/* False and ENOENT: it is not there. */
static bool
empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool removed = true;

    if (folder == NULL)
        return false;
    while ((entry = readdir(folder)) != NULL)
        removed = remove_entry(path, entry) && removed;
    closedir(folder);
    if (!removed)
        errno = ENOTEMPTY;
    return removed;
}

bool
sim_empty_folder(const char *path)
{
    return empty_folder(path) || errno == ENOENT;
}

bool
sim_remove_tree(const char *path)
{
    bool emptied = empty_folder(path);

    if (!emptied && errno == ENOENT)
        return true;
    return (rmdir(path) == 0 || errno == ENOENT) && emptied;
}
