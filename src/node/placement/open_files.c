#include "node/placement/open_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/proc.h"
#include "base/time.h"
#include "node/common/path.h"

enum { FDINFO_MAX = 1024, LINK_MAX = 64, GLANCES = 20 };
#define POLL_INTERVAL BH_NS_PER_MS

/* Without asking the server of a network file system, which may not answer. */
enum { STAT_FLAGS = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT };

bool
bh_open_want_folder(struct bh_open_wanted *wanted, const char *path)
{
    DIR *dir = opendir(path);
    bool room = true;

    if (!dir)
        return true;
    for (const struct dirent *entry; room && (entry = readdir(dir));) {
        struct stat st;

        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        room = wanted->file_count < BH_OPEN_FILES_MAX;
        if (!room)
            break;
        wanted->files[wanted->file_count].device = st.st_dev;
        wanted->files[wanted->file_count++].inode = st.st_ino;
    }
    closedir(dir);
    return room;
}

static bool
is_wanted_file(const struct bh_open_wanted *wanted, uint64_t device, uint64_t inode)
{
    for (uint32_t i = 0; i < wanted->file_count; i++)
        if (wanted->files[i].inode == inode && wanted->files[i].device == device)
            return true;
    return false;
}

/* What a link of /proc leads to; one that has gone is nothing. */
static bool
files_leads_to_wanted(const struct bh_open_wanted *wanted, int folder, const char *name)
{
    struct statx st;

    if (statx(folder, name, STAT_FLAGS, STATX_TYPE | STATX_INO, &st) != 0)
        return false;
    for (uint32_t i = 0; S_ISCHR(st.stx_mode) && i < wanted->device_count; i++)
        if (wanted->devices[i].major == st.stx_rdev_major && wanted->devices[i].minor == st.stx_rdev_minor)
            return true;
    return S_ISREG(st.stx_mode)
           && is_wanted_file(wanted, makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino);
}

static enum bh_open_found
files_worse(enum bh_open_found a, enum bh_open_found b)
{
    return a > b ? a : b;
}

/* ---- descriptors ---- */

/* Of a socket: "scm_fds: 2", since Linux 5.11. */
static bool
files_holds_descriptors(int fdinfo)
{
    char text[FDINFO_MAX + 1];
    ssize_t length = pread(fdinfo, text, FDINFO_MAX, 0);
    const char *at;

    text[length > 0 ? length : 0] = '\0';
    at = strstr(text, "\nscm_fds:");
    return at && strtoul(at + strlen("\nscm_fds:"), NULL, 10) > 0;
}

/* A program that passes descriptors in the usual way takes them at once: its socket is seen empty. */
static bool
files_has_in_flight(const char *task, const char *name)
{
    char path[BH_PROC_PATH_MAX + 32];
    bool holds;
    int fd;

    bh_path_format(path, sizeof path, "%s/fdinfo/%.10s", task, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    holds = fd >= 0 && files_holds_descriptors(fd);
    for (int turn = 0; holds && turn < GLANCES; turn++) {
        bh_time_sleep(POLL_INTERVAL);
        holds = files_holds_descriptors(fd);
    }
    bh_fd_close(fd);
    return holds;
}

static enum bh_open_found
files_look_at_table(const char *task, const struct bh_open_wanted *wanted)
{
    enum bh_open_found found = BH_OPEN_NONE;
    char path[BH_PROC_PATH_MAX + 32], link[LINK_MAX];
    DIR *dir;

    bh_path_format(path, sizeof path, "%s/fd", task);
    dir = opendir(path);
    if (!dir)
        return found;
    for (const struct dirent *entry; found < BH_OPEN_HELD && (entry = readdir(dir));) {
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1);

        link[length > 0 ? length : 0] = '\0';
        if (strncmp(link, "socket:[", 8) == 0 && files_has_in_flight(task, entry->d_name))
            found = files_worse(found, BH_OPEN_IN_FLIGHT);
        if (link[0] == '/' && files_leads_to_wanted(wanted, dirfd(dir), entry->d_name))
            found = BH_OPEN_HELD;
    }
    closedir(dir);
    return found;
}

/* ---- mappings ---- */

/* "7f..-7f.. rw-s 00000000 00:2a 77 /path".  Of a device node the line says the inode, and only the
 * file itself which device: that is looked at where it is shared, as a driver wants it. */
static bool
files_is_wanted_line(const struct bh_open_wanted *wanted, int areas, const char *line)
{
    char area[64], access[8] = "";
    unsigned major, minor;
    uint64_t inode;

    if (sscanf(line, "%63s %7s %*s %x:%x %" SCNu64, area, access, &major, &minor, &inode) != 5 || inode == 0)
        return false;
    return is_wanted_file(wanted, makedev(major, minor), inode)
           || ((access[3] == 's' || strstr(line, "nvidia")) && files_leads_to_wanted(wanted, areas, area));
}

/* `ret_empty`: it has no memory, as one of whose threads the first has ended. */
static enum bh_open_found
files_look_at_maps(const char *task, int areas, const struct bh_open_wanted *wanted, bool *ret_empty)
{
    char path[BH_PROC_PATH_MAX + 32], *line = NULL;
    bool found = false;
    size_t room = 0;
    FILE *maps;

    *ret_empty = true;
    bh_path_format(path, sizeof path, "%s/maps", task);
    maps = fopen(path, "re");
    if (!maps)
        return BH_OPEN_NONE;
    while (!found && getline(&line, &room, maps) > 0) {
        *ret_empty = false;
        found = files_is_wanted_line(wanted, areas, line);
    }
    free(line);
    fclose(maps);
    return found ? BH_OPEN_MAPPED : BH_OPEN_NONE;
}

/* ---- all of it ---- */

static bool
files_has_table_of(pid_t pid, pid_t task)
{
    return task != pid && syscall(SYS_kcmp, pid, task, KCMP_FILES, 0, 0) == 0;
}

enum bh_open_found
bh_open_look(pid_t pid, const struct bh_open_wanted *wanted)
{
    enum bh_open_found found = BH_OPEN_NONE;
    char path[BH_PROC_PATH_MAX], task[BH_PROC_PATH_MAX], name[40];
    DIR *dir = bh_proc_list(pid, "task");
    bool empty = true;
    int areas;

    if (!dir)
        return found;
    bh_proc_path(pid, "map_files", path);
    areas = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (const struct dirent *entry; found < BH_OPEN_MAPPED && (entry = readdir(dir));) {
        pid_t id = (pid_t)strtol(entry->d_name, NULL, 10);

        if (id <= 0)
            continue;
        bh_path_format(name, sizeof name, "task/%d", (int)id);
        bh_proc_path(pid, name, task);
        if (!files_has_table_of(pid, id))
            found = files_worse(found, files_look_at_table(task, wanted));
        if (empty)
            found = files_worse(found, files_look_at_maps(task, areas, wanted, &empty));
    }
    if (areas >= 0)
        close(areas);
    closedir(dir);
    return found;
}
