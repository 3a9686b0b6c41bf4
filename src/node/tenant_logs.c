#include "node/tenant_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/message.h"

enum { PATH_SIZE = 600, GRANTS = 64, GRANT_MOST = 64 << 20, LOGS_FIRST = 64 };

struct log {
    char name[BH_LOG_NAME_MAX];
    bh_ns written;
    uint64_t bytes;
};

struct census {
    struct log *logs;
    size_t count, room;
    uint64_t bytes;            /* all that they take */
};

static bh_ns
ns_of(const struct timespec *at)
{
    return (bh_ns)at->tv_sec * BH_NS_PER_S + (bh_ns)at->tv_nsec;
}

static int
open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* The folder of a tenant's marks, or -1. */
static int
open_marks(const struct bh_tenant_logs *logs)
{
    char path[PATH_SIZE];

    if (snprintf(path, sizeof path, "%s/tenants/%" PRIu32, logs->folder, logs->tenant) >= (int)sizeof path)
        return -1;
    return open_folder(AT_FDCWD, path);
}

/* ---- whose ---- */

bh_rc
bh_tenant_logs_add(const struct bh_tenant_logs *logs, const char *name, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int marks = -1;
    BH_AUTO(bh_fd_close) int mark = -1;
    char path[PATH_SIZE];
    bh_rc rc = BH_OK;

    if (!logs->tenant)
        return BH_OK;
    marks = open_marks(logs);
    if (marks < 0) {
        snprintf(path, sizeof path, "%s/tenants/%" PRIu32, logs->folder, logs->tenant);
        rc = bh_dir_make(path, 0700, err);
        marks = rc == BH_OK ? open_marks(logs) : -1;
    }
    if (rc != BH_OK)
        return rc;
    mark = openat(marks, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return mark < 0 ? bh_err_errno(err, "note whose log %s is", name) : BH_OK;
}

bool
bh_tenant_logs_hold(int log_fd)
{
    struct stat st;

    return flock(log_fd, LOCK_SH | LOCK_NB) == 0 && fstat(log_fd, &st) == 0 && st.st_nlink > 0;
}

/* ---- removing ---- */

/* False: a job has it. */
static bool
remove_log(int folder, const char *name)
{
    BH_AUTO(bh_fd_close) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return errno == ENOENT;
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(folder, name, 0) == 0;
}

bool
bh_tenant_logs_expire(DIR *folder, bh_ns before, uint32_t most)
{
    for (uint32_t i = 0; i < most; i++) {
        const struct dirent *entry = readdir(folder);
        const char *end = entry ? strrchr(entry->d_name, '.') : NULL;
        struct stat st;

        if (!entry)
            return false;
        if (end && strcmp(end, ".log") == 0
            && fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
            && S_ISREG(st.st_mode) && ns_of(&st.st_mtim) < before)
            (void)!remove_log(dirfd(folder), entry->d_name);
    }
    return true;
}

/* ---- how much ---- */

static void
count_log(struct census *census, const char *name, const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_size;

    if (census->count == census->room) {
        size_t room = census->room ? 2 * census->room : LOGS_FIRST;
        struct log *more = reallocarray(census->logs, room, sizeof *more);

        if (!more)
            return; /* one that is not counted is not removed, either */
        census->logs = more;
        census->room = room;
    }
    bytes = bytes < BH_TENANT_LOG_LEAST ? BH_TENANT_LOG_LEAST : bytes;
    census->logs[census->count] = (struct log){ .written = ns_of(&st->st_mtim), .bytes = bytes };
    snprintf(census->logs[census->count++].name, BH_LOG_NAME_MAX, "%s", name);
    census->bytes += bytes;
}

/* Marks of logs that went by themselves go, too. */
static void
take_census(int folder, DIR *marks, struct census *census)
{
    for (const struct dirent *entry; (entry = readdir(marks));) {
        struct stat st;

        if (*entry->d_name == '.' || strlen(entry->d_name) >= BH_LOG_NAME_MAX)
            continue;
        if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            count_log(census, entry->d_name, &st);
        else if (errno == ENOENT)
            unlinkat(dirfd(marks), entry->d_name, 0);
    }
}

static int
by_age(const void *left, const void *right)
{
    const struct log *a = left, *b = right;

    return a->written == b->written ? strcmp(a->name, b->name) : a->written < b->written ? -1 : 1;
}

static void
remove_oldest(int folder, int marks, struct census *census, uint64_t until)
{
    qsort(census->logs, census->count, sizeof *census->logs, by_age);
    for (size_t i = 0; i < census->count && census->bytes > until; i++) {
        const struct log *log = &census->logs[i];

        if (!remove_log(folder, log->name))
            continue;
        unlinkat(marks, log->name, 0);
        census->bytes -= log->bytes;
    }
}

/* Not all that is left at once: others of the tenant write, too. */
static uint64_t
grant(const struct bh_tenant_logs *logs, const struct census *census, uint64_t step)
{
    uint64_t left = census->bytes < logs->bound_bytes ? logs->bound_bytes - census->bytes : 0;
    uint64_t part = left / GRANTS < GRANT_MOST ? left / GRANTS : GRANT_MOST;

    return left < step ? 0 : part > step ? part : step;
}

uint64_t
bh_tenant_logs_room(const struct bh_tenant_logs *logs, uint64_t step)
{
    BH_AUTO(bh_fd_close) int folder = -1;
    struct census census = { 0 };
    DIR *marks = NULL;
    uint64_t room;
    int fd;

    if (!logs->tenant || !logs->bound_bytes)
        return UINT64_MAX;
    folder = open_folder(AT_FDCWD, logs->folder);
    fd = folder >= 0 ? open_marks(logs) : -1;
    marks = fd >= 0 ? fdopendir(fd) : NULL;
    if (!marks) {
        bh_fd_close(fd);
        return UINT64_MAX;
    }
    take_census(folder, marks, &census);
    if (census.bytes + step > logs->bound_bytes)
        remove_oldest(folder, dirfd(marks), &census, logs->bound_bytes > step ? logs->bound_bytes - step : 0);
    room = grant(logs, &census, step);
    closedir(marks);
    free(census.logs);
    return room;
}
