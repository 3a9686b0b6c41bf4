#include "node/common/tenant_logs.h"

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
#include "base/num.h"
#include "base/vec.h"
#include "wire/message.h"

enum { PATH_SIZE = 600, TENANT_SIZE = 12, GRANTS = 64, GRANT_MOST = 64 << 20, LOGS_MAX = 1 << 24 };

struct log {
    char name[BH_LOG_NAME_MAX];
    uint32_t tenant;
    bh_ns written;
    uint64_t bytes;
};

/* Of the party: its logs, by tenant and then by age once they are sorted. */
struct census {
    struct log *logs;
    size_t count, capacity;
    uint64_t bytes; /* all that they take */
};

/* A tenant's logs in it. */
struct logs_range {
    uint32_t tenant;
    size_t next, end;
    uint64_t bytes;
};

static bh_ns
logs_ns_of(const struct timespec *at)
{
    return (bh_ns)at->tv_sec * BH_NS_PER_S + (bh_ns)at->tv_nsec;
}

static int
logs_open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static bool
logs_is_nobodys(const struct bh_tenant_logs *logs)
{
    return !logs->tenant || !*logs->party;
}

/* The folder of a party's marks, or -1. */
static int
logs_open_party(const struct bh_tenant_logs *logs)
{
    char path[PATH_SIZE];

    if (snprintf(path, sizeof path, "%s/parties/%s", logs->folder, logs->party) >= (int)sizeof path)
        return -1;
    return logs_open_folder(AT_FDCWD, path);
}

static void
name_tenant(uint32_t tenant, char ret_name[TENANT_SIZE])
{
    snprintf(ret_name, TENANT_SIZE, "%" PRIu32, tenant);
}

/* The folder of a tenant's marks, or -1. */
static int
logs_open_markers(const struct bh_tenant_logs *logs)
{
    BH_AUTO(bh_fd_close) int party = logs_open_party(logs);
    char name[TENANT_SIZE];

    name_tenant(logs->tenant, name);
    return party < 0 ? -1 : logs_open_folder(party, name);
}

/* What it had before there were parties lay in `tenants/ID/`. */
static bh_rc
logs_make_marks(const struct bh_tenant_logs *logs, struct bh_err *err)
{
    char path[PATH_SIZE], old[PATH_SIZE];
    bh_rc rc;

    if (snprintf(old, sizeof old, "%s/tenants/%" PRIu32, logs->folder, logs->tenant) >= (int)sizeof old
        || snprintf(path, sizeof path, "%s/parties/%s", logs->folder, logs->party) >= (int)sizeof path)
        return bh_err_set(err, BH_RANGE, "the path of log_dir is too long");
    rc = bh_dir_make(path, 0700, err);
    if (rc != BH_OK)
        return rc;
    if (snprintf(path, sizeof path, "%s/parties/%s/%" PRIu32, logs->folder, logs->party, logs->tenant)
        >= (int)sizeof path)
        return bh_err_set(err, BH_RANGE, "the path of log_dir is too long");
    return rename(old, path) == 0 ? BH_OK : bh_dir_make(path, 0700, err);
}

/* ---- whose ---- */

bh_rc
bh_tenant_logs_add(const struct bh_tenant_logs *logs, const char *name, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int markers = -1;
    BH_AUTO(bh_fd_close) int marker = -1;
    bh_rc rc = BH_OK;

    if (logs_is_nobodys(logs))
        return BH_OK;
    markers = logs_open_markers(logs);
    if (markers < 0) {
        rc = logs_make_marks(logs, err);
        markers = rc == BH_OK ? logs_open_markers(logs) : -1;
    }
    if (rc != BH_OK)
        return rc;
    marker = openat(markers, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    return marker < 0 ? bh_err_errno(err, "record the tenant of log %s", name) : BH_OK;
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
            && fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
            && logs_ns_of(&st.st_mtim) < before)
            (void)!remove_log(dirfd(folder), entry->d_name);
    }
    return true;
}

/* ---- how much ---- */

static void
count_log(struct census *census, uint32_t tenant, const char *name, const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_size;

    if (!bh_vec_reserve(&census->logs, &census->capacity, census->count + 1, LOGS_MAX))
        return; /* one that is not counted is not removed, either */
    bytes = bytes < BH_TENANT_LOG_LEAST ? BH_TENANT_LOG_LEAST : bytes;
    census->logs[census->count] =
        (struct log){ .tenant = tenant, .written = logs_ns_of(&st->st_mtim), .bytes = bytes };
    snprintf(census->logs[census->count++].name, BH_LOG_NAME_MAX, "%s", name);
    census->bytes += bytes;
}

/* Marks of logs that went by themselves go, too. */
static void
count_tenant(int folder, DIR *markers, uint32_t tenant, struct census *census)
{
    for (const struct dirent *entry; (entry = readdir(markers));) {
        struct stat st;

        if (*entry->d_name == '.' || strlen(entry->d_name) >= BH_LOG_NAME_MAX)
            continue;
        if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            count_log(census, tenant, entry->d_name, &st);
        else if (errno == ENOENT)
            unlinkat(dirfd(markers), entry->d_name, 0);
    }
}

static void
count_all_logs(int folder, DIR *party, struct census *census)
{
    for (const struct dirent *entry; (entry = readdir(party));) {
        uint64_t tenant;
        struct bh_err ignored;
        DIR *markers;
        int fd;

        if (bh_parse_u64(entry->d_name, &tenant, &ignored) != BH_OK || tenant > UINT32_MAX)
            continue;
        fd = logs_open_folder(dirfd(party), entry->d_name);
        markers = fd < 0 ? NULL : fdopendir(fd);
        if (markers) {
            count_tenant(folder, markers, (uint32_t)tenant, census);
            closedir(markers);
        } else {
            bh_fd_close(fd);
        }
    }
}

static int
by_tenant_and_age(const void *left, const void *right)
{
    const struct log *a = left, *b = right;

    if (a->tenant != b->tenant)
        return a->tenant < b->tenant ? -1 : 1;
    return a->written == b->written ? strcmp(a->name, b->name) : a->written < b->written ? -1 : 1;
}

/* One for each tenant; sorts the logs. */
static size_t
logs_split(struct census *census, struct logs_range *ranges)
{
    size_t count = 0;

    qsort(census->logs, census->count, sizeof *census->logs, by_tenant_and_age);
    for (size_t i = 0; i < census->count; i++) {
        if (i == 0 || census->logs[i].tenant != census->logs[i - 1].tenant)
            ranges[count++] = (struct logs_range){ .tenant = census->logs[i].tenant, .next = i };
        ranges[count - 1].end = i + 1;
        ranges[count - 1].bytes += census->logs[i].bytes;
    }
    return count;
}

static uint64_t
logs_bytes_of(const struct logs_range *ranges, size_t count, uint32_t tenant)
{
    for (const struct logs_range *range = ranges; range < ranges + count; range++)
        if (range->tenant == tenant)
            return range->bytes;
    return 0;
}

/* The one that has the most, of those that have something left to remove; or NULL.  No tenant takes
 * what is left to one that has less. */
static struct logs_range *
logs_largest(struct logs_range *ranges, size_t count, uint32_t writer)
{
    uint64_t own = logs_bytes_of(ranges, count, writer);
    struct logs_range *most = NULL;

    for (struct logs_range *range = ranges; range < ranges + count; range++)
        if (range->next < range->end && (range->tenant == writer || range->bytes > own)
            && (!most || range->bytes > most->bytes))
            most = range;
    return most;
}

static bool
logs_remove_marked(int folder, int party, const struct log *log)
{
    char name[TENANT_SIZE], marker[TENANT_SIZE + 1 + BH_LOG_NAME_MAX];

    if (!remove_log(folder, log->name))
        return false;
    name_tenant(log->tenant, name);
    snprintf(marker, sizeof marker, "%s/%s", name, log->name);
    unlinkat(party, marker, 0);
    return true;
}

/* Take from the tenant that has the most, so that a tenant that fills the party's part displaces its own
 * logs. */
static void
logs_remove_oldest(int folder, int party, struct census *census, uint32_t writer, uint64_t until)
{
    struct logs_range *ranges = calloc(census->count ? census->count : 1, sizeof *ranges);
    size_t count = ranges ? logs_split(census, ranges) : 0;

    for (struct logs_range *range; census->bytes > until && (range = logs_largest(ranges, count, writer));) {
        const struct log *log = &census->logs[range->next++];

        if (!logs_remove_marked(folder, party, log))
            continue;
        range->bytes -= log->bytes;
        census->bytes -= log->bytes;
    }
    free(ranges);
}

/* Not all that is left at once: others of the party write, too. */
static uint64_t
tenant_logs_grant(const struct bh_tenant_logs *logs, const struct census *census, uint64_t step)
{
    uint64_t left = census->bytes < logs->bound_bytes ? logs->bound_bytes - census->bytes : 0;
    uint64_t part = left / GRANTS < GRANT_MOST ? left / GRANTS : GRANT_MOST;

    return left < step ? 0 : part > step ? part : step;
}

uint64_t
bh_tenant_logs_free_bytes(const struct bh_tenant_logs *logs, uint64_t step)
{
    BH_AUTO(bh_fd_close) int folder = -1;
    struct census census = { 0 };
    DIR *party = NULL;
    uint64_t capacity;
    int fd;

    if (logs_is_nobodys(logs) || !logs->bound_bytes)
        return UINT64_MAX;
    folder = logs_open_folder(AT_FDCWD, logs->folder);
    fd = folder >= 0 ? logs_open_party(logs) : -1;
    party = fd >= 0 ? fdopendir(fd) : NULL;
    if (!party) {
        bh_fd_close(fd);
        return UINT64_MAX;
    }
    count_all_logs(folder, party, &census);
    if (census.bytes + step > logs->bound_bytes)
        logs_remove_oldest(folder, dirfd(party), &census, logs->tenant,
                           logs->bound_bytes > step ? logs->bound_bytes - step : 0);
    capacity = tenant_logs_grant(logs, &census, step);
    closedir(party);
    free(census.logs);
    return capacity;
}
