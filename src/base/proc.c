#include "base/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

bh_rc
bh_proc_read(pid_t pid, const char *name, char *text, size_t size, struct bh_err *err)
{
    char path[96];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return proc_read(path, text, size, err);
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
