#include "base/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/proc_internal.h"

enum { STAT_MAX = 1024, MEMINFO_MAX = 8192 };

static bh_rc
proc_read(const char *path, char *text, size_t size, struct bh_err *err)
{
    struct bh_buf buf;
    bh_rc rc;

    bh_buf_init_fixed(&buf, text, size);
    rc = bh_file_read(path, size - 1, &buf, err);
    if (rc == BH_OK) {
        text[buf.length] = '\0';
        return BH_OK;
    }
    text[0] = '\0';
    /* one that ends between open and read */
    return err->sys_kind == BH_SYS_ERRNO && err->sys == ESRCH ? (err->rc = BH_NOT_FOUND) : rc;
}

void
bh_proc_path(pid_t pid, const char *name, char ret_path[BH_PROC_PATH_MAX])
{
    int length = pid == BH_PROC_SELF ? snprintf(ret_path, BH_PROC_PATH_MAX, "/proc/self/%s", name)
                                     : snprintf(ret_path, BH_PROC_PATH_MAX, "/proc/%d/%s", (int)pid, name);

    BH_ASSERT(length > 0 && length < BH_PROC_PATH_MAX);
}

void
bh_proc_fd_path(int fd, char ret_path[BH_PROC_PATH_MAX])
{
    char name[24];

    snprintf(name, sizeof name, "fd/%d", fd);
    bh_proc_path(BH_PROC_SELF, name, ret_path);
}

bh_rc
bh_proc_read(pid_t pid, const char *name, char *text, size_t size, struct bh_err *err)
{
    char path[BH_PROC_PATH_MAX];

    bh_proc_path(pid, name, path);
    return proc_read(path, text, size, err);
}

bh_rc
bh_proc_link(pid_t pid, const char *name, char *text, size_t size, struct bh_err *err)
{
    char path[BH_PROC_PATH_MAX];
    ssize_t length;

    bh_proc_path(pid, name, path);
    length = readlink(path, text, size);
    if (length >= 0 && (size_t)length < size) {
        text[length] = '\0';
        return BH_OK;
    }
    text[0] = '\0';
    if (length >= 0)
        return bh_err_set(err, BH_FULL, "%s leads to a name of more than %zu bytes", path, size - 1);
    if (errno == ENOENT || errno == ESRCH)
        return bh_err_set(err, BH_NOT_FOUND, "%s is not there", path);
    return bh_err_errno(err, "read %s", path);
}

DIR *
bh_proc_list(pid_t pid, const char *name)
{
    char path[BH_PROC_PATH_MAX];

    bh_proc_path(pid, name, path);
    return opendir(path);
}

bh_rc
bh_proc_own_folder(char *ret_path, size_t size, struct bh_err *err)
{
    bh_rc rc = bh_proc_link(BH_PROC_SELF, "exe", ret_path, size, err);

    if (rc == BH_OK)
        *strrchr(ret_path, '/') = '\0';
    return rc;
}

bool
bh_proc_stat_parse(const char *text, struct bh_proc_stat *ret_stat)
{
    const char *name_end = strrchr(text, ')');
    struct bh_proc_stat stat;
    int parent, group, session;

    if (!name_end
        || sscanf(name_end,
                  ") %c %d %d %d %*d %*d %u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                  " %*d %*d %*d %*d %*d %*d %" SCNu64 " %*u %" SCNu64,
                  &stat.state, &parent, &group, &session, &stat.flags, &stat.user_ticks, &stat.system_ticks,
                  &stat.started_ticks, &stat.resident_pages)
               != 9)
        return false;
    stat.parent = parent;
    stat.group = group;
    stat.session = session;
    *ret_stat = stat;
    return true;
}

bh_rc
bh_proc_stat(pid_t pid, struct bh_proc_stat *ret_stat, struct bh_err *err)
{
    char text[STAT_MAX];
    bh_rc rc = bh_proc_read(pid, "stat", text, sizeof text, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_proc_stat_parse(text, ret_stat))
        return bh_err_set(err, BH_IO, "/proc/%d/stat is not as expected", (int)pid);
    return BH_OK;
}

bh_rc
bh_proc_boot_id(char ret_id[BH_PROC_BOOT_ID_MAX], struct bh_err *err)
{
    char text[BH_PROC_BOOT_ID_MAX];
    bh_rc rc = proc_read("/proc/sys/kernel/random/boot_id", text, sizeof text, err);

    if (rc != BH_OK)
        return rc;
    text[strcspn(text, "\n")] = '\0';
    memcpy(ret_id, text, sizeof text);
    return BH_OK;
}

bool
bh_proc_meminfo_parse(const char *text, uint64_t *ret_bytes)
{
    const char *line = strstr(text, "\nMemAvailable:");
    uint64_t kib;

    if (!line || sscanf(line, "\nMemAvailable: %" SCNu64 " kB", &kib) != 1)
        return false;
    *ret_bytes = kib << 10;
    return true;
}

bh_rc
bh_proc_available_bytes(uint64_t *ret_bytes, struct bh_err *err)
{
    char text[MEMINFO_MAX];
    bh_rc rc = proc_read("/proc/meminfo", text, sizeof text, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_proc_meminfo_parse(text, ret_bytes))
        return bh_err_set(err, BH_IO, "/proc/meminfo does not say what is available");
    return BH_OK;
}
