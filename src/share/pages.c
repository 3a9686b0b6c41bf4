#include "share/pages.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/proc.h"

/* Others of the lease may change the words all the time, on purpose: so often is tried. */
enum { TRIES = 10000 };
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
#define USAGE_MAPPED "/memfd:bulkhead-usage" /* of whatever version, in /proc/PID/maps */

/* The same in each version: one that was started anew must know which process held what. */
struct slots {
    struct bh_share_owner owner[BH_SHARE_SLOTS_MAX];
};
_Static_assert(sizeof(struct slots) == 512 * 16, "slots are as they were in version 1");

struct bh_share_pages {
    int limits_fd, usage_fd; /* as they are given away */
    struct bh_share_limits *limits;
    struct bh_share_usage *usage;
    struct slots *slots;
    bool outdated; /* when it was opened; until all slots of then are free */
};

/* ---- making them ---- */

/* "GPU-8f3a..." or "MIG-...": 16 bytes in hex, with lines between. */
static bool
pages_parse_uuid(const char *text, uint8_t bytes[16])
{
    const char *at = strchr(text, '-');
    size_t digits = 0;

    for (at = at == NULL ? "" : at + 1; *at != '\0' && digits < 32; at++) {
        int digit = isdigit((unsigned char)*at)    ? *at - '0'
                    : isxdigit((unsigned char)*at) ? tolower(*at) - 'a' + 10
                                                   : -1;
        if (*at == '-')
            continue;
        if (digit < 0)
            return false;
        bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
        digits++;
    }
    return digits == 32 && *at == '\0';
}

static bool
pages_is_units(uint64_t bytes)
{
    return bytes % BH_SHARE_UNIT_BYTES == 0 && bytes / BH_SHARE_UNIT_BYTES <= BH_SHARE_UNITS_MAX;
}

static bh_rc
share_pages_check(const struct bh_share_open *open, struct bh_err *err)
{
    uint8_t uuid[16];

    if (open->gpu_count == 0 || open->gpu_count > BH_SHARE_DEVICES_MAX)
        return bh_err_set(err, BH_INVALID, "a lease has shares of 1 to %d GPUs", BH_SHARE_DEVICES_MAX);
    for (uint32_t d = 0; d < open->gpu_count; d++) {
        const struct bh_share_gpu *gpu = &open->gpus[d];

        if (!pages_parse_uuid(gpu->uuid, uuid))
            return bh_err_set(err, BH_INVALID, "no UUID: %s", gpu->uuid);
        if (gpu->cap_bytes == 0 || !pages_is_units(gpu->cap_bytes) || !pages_is_units(gpu->context_bytes))
            return bh_err_set(err, BH_INVALID, "memory of a share is a number of 2 MiB, below 2 TiB");
    }
    return BH_OK;
}

static bh_rc
share_pages_map(const char *folder, const char *name, size_t bytes, void **ret_map, struct bh_err *err)
{
    char path[PATH_MAX];
    BH_AUTO(bh_fd_close) int fd = -1;
    void *found;
    bh_rc rc;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    rc = bh_file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, &fd, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "page");
    if (posix_fallocate(fd, 0, (off_t)bytes) != 0)
        return bh_err_errno(err, "page %s", path);
    found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (found == MAP_FAILED)
        return bh_err_errno(err, "page %s", path);
    *ret_map = found;
    return BH_OK;
}

/* ---- the usage ---- */

bh_rc
bh_share_started(uint32_t pid, uint64_t *ret_started, struct bh_err *err)
{
    struct bh_proc_stat stat;
    bh_rc rc = bh_proc_stat((pid_t)pid, &stat, err);

    if (rc != BH_OK)
        return rc;
    *ret_started = stat.started_ticks;
    return BH_OK;
}

bh_rc
bh_share_check_owner(const struct bh_share_owner *owner, struct bh_err *err)
{
    uint64_t started;
    bh_rc rc = bh_share_started(owner->pid, &started, err);

    return rc == BH_OK && started != owner->started
               ? bh_err_set(err, BH_NOT_FOUND, "process %u is another by now", owner->pid)
               : rc;
}

static bool
pages_is_usage(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat found;

    return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &found) == 0
           && found.st_size == sizeof(struct bh_share_usage);
}

/* Whether a line of /proc/PID/maps names a usage page of this version. */
static bool
share_pages_is_named(const char *line)
{
    static char name[64];
    const char *at = strstr(line, "/memfd:");

    snprintf(name, sizeof(name), "/memfd:" BH_SHARE_USAGE_NAME " ", BH_SHARE_VERSION);
    return at != NULL && strncmp(at, name, strlen(name)) == 0;
}

/* The usage as a process that has joined has it mapped; -1.  A reader does not have it
 * for writing.  `ret_other`: it has one mapped that is none of this version. */
static int
pages_find_mapped(uint32_t pid, bool *ret_other)
{
    char path[BH_PROC_PATH_MAX], name[80], line[512], range[64], may[8];
    FILE *maps;
    int fd = -1;

    bh_proc_path((pid_t)pid, "maps", path);
    maps = fopen(path, "re");
    while (maps != NULL && fd < 0 && fgets(line, sizeof(line), maps) != NULL) {
        if (strstr(line, USAGE_MAPPED) == NULL || sscanf(line, "%63s %7s", range, may) != 2 || may[1] != 'w')
            continue;
        snprintf(name, sizeof(name), "map_files/%s", range);
        bh_proc_path((pid_t)pid, name, path);
        fd = share_pages_is_named(line) ? open(path, O_RDWR | O_CLOEXEC) : -1;
        if (fd >= 0 && !pages_is_usage(fd)) {
            close(fd);
            fd = -1;
        }
        *ret_other |= fd < 0;
    }
    if (maps != NULL)
        fclose(maps);
    return fd;
}

bool
bh_share_is_mapped(uint32_t pid)
{
    bool other = false;
    BH_AUTO(bh_fd_close) int fd = pages_find_mapped(pid, &other);

    return fd >= 0 || other;
}

static int
pages_make_usage(void)
{
    char name[32];
    int fd;

    snprintf(name, sizeof(name), BH_SHARE_USAGE_NAME, BH_SHARE_VERSION);
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, sizeof(struct bh_share_usage)) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    bh_fd_close(fd);
    return -1;
}

/* `ret_outdated`: some of its processes count in a page of another version.  While it is unknown whether such
 * a process lives, no page is made: it may count in one. */
static bh_rc
pages_find_usage(const struct slots *slots, int *ret_fd, bool *ret_outdated, struct bh_err *err)
{
    bool other = false;
    int fd = -1;

    for (uint32_t s = 0; s < BH_SHARE_SLOTS_MAX && fd < 0; s++) {
        const struct bh_share_owner *owner = &slots->owner[s];
        bh_rc rc = owner->pid != 0 ? bh_share_check_owner(owner, err) : BH_NOT_FOUND;

        if (rc == BH_OK)
            fd = pages_find_mapped(owner->pid, &other);
        else if (rc != BH_NOT_FOUND)
            return rc;
    }
    *ret_outdated = fd < 0 && other;
    *ret_fd = fd >= 0 ? fd : pages_make_usage();
    return *ret_fd < 0 ? bh_err_errno(err, "usage page") : BH_OK;
}

static bh_rc
pages_map_usage(struct bh_share_pages *pages, struct bh_err *err)
{
    void *usage;
    bh_rc rc = pages_find_usage(pages->slots, &pages->usage_fd, &pages->outdated, err);

    if (rc != BH_OK)
        return rc;
    usage = mmap(NULL, sizeof(*pages->usage), PROT_READ | PROT_WRITE, MAP_SHARED, pages->usage_fd, 0);
    if (usage == MAP_FAILED)
        return bh_err_errno(err, "usage page");
    pages->usage = usage;
    return BH_OK;
}

/* ---- all of them ---- */

static int
pages_open_limits(const char *folder)
{
    struct bh_err ignored;
    char path[PATH_MAX];
    int fd = -1;

    snprintf(path, sizeof(path), "%s/limits", folder);
    (void)!bh_file_open(path, O_RDONLY | O_NOFOLLOW, 0, &fd, &ignored);
    return fd;
}

/* Those of another version stay with the processes that have them mapped; a file of this one takes the name.
 */
static void
pages_drop_other_limits(const char *folder)
{
    BH_AUTO(bh_fd_close) int fd = pages_open_limits(folder);
    uint32_t words[2] = { 0 }; /* magic and version: first in each version */
    char path[PATH_MAX];

    if (fd < 0 || read(fd, words, sizeof(words)) != sizeof(words) || words[0] == 0
        || (words[0] == BH_SHARE_MAGIC && words[1] == BH_SHARE_VERSION))
        return;
    snprintf(path, sizeof(path), "%s/limits", folder);
    unlink(path);
}

/* What can change of an open lease: nothing but what bulkhead-share itself writes. */
static void
share_pages_fill(struct bh_share_limits *limits, const struct bh_share_open *open)
{
    if (limits->magic == BH_SHARE_MAGIC)
        return;
    limits->version = BH_SHARE_VERSION;
    limits->lease = open->lease;
    limits->device_count = open->gpu_count;
    limits->managed = open->managed;
    for (uint32_t d = 0; d < open->gpu_count; d++) {
        const struct bh_share_gpu *gpu = &open->gpus[d];
        struct bh_share_device *device = &limits->device[d];

        pages_parse_uuid(gpu->uuid, device->uuid);
        device->cap_units = (uint32_t)(gpu->cap_bytes / BH_SHARE_UNIT_BYTES);
        device->context_units = (uint32_t)(gpu->context_bytes / BH_SHARE_UNIT_BYTES);
        device->memory_bytes = gpu->memory_bytes;
        atomic_store(&device->slice, BH_SHARE_SHUT);
    }
    limits->magic = BH_SHARE_MAGIC;
}

bh_rc
bh_share_pages_open(const struct bh_share_open *open, struct bh_share_pages **ret_pages, struct bh_err *err)
{
    BH_AUTO(bh_share_pages_free) struct bh_share_pages *pages = calloc(1, sizeof(*pages));
    void *limits = NULL, *slots = NULL;
    bh_rc rc = share_pages_check(open, err);

    BH_ASSERT(pages != NULL);
    pages->limits_fd = pages->usage_fd = -1;
    if (rc == BH_OK) {
        pages_drop_other_limits(open->folder);
        rc = share_pages_map(open->folder, "limits", sizeof(*pages->limits), &limits, err);
    }
    pages->limits = limits;
    if (rc == BH_OK)
        rc = share_pages_map(open->folder, "slots", sizeof(*pages->slots), &slots, err);
    pages->slots = slots;
    if (rc != BH_OK)
        return rc;
    rc = pages_map_usage(pages, err);
    if (rc != BH_OK)
        return rc;
    pages->limits_fd = pages_open_limits(open->folder);
    if (pages->limits_fd < 0)
        return bh_err_errno(err, "pages of lease %llu", (unsigned long long)open->lease);
    share_pages_fill(pages->limits, open);
    *ret_pages = bh_steal(&pages);
    return BH_OK;
}

void
bh_share_pages_free(struct bh_share_pages *pages)
{
    if (pages == NULL)
        return;
    if (pages->limits != NULL)
        munmap(pages->limits, sizeof(*pages->limits));
    if (pages->usage != NULL)
        munmap(pages->usage, sizeof(*pages->usage));
    if (pages->slots != NULL)
        munmap(pages->slots, sizeof(*pages->slots));
    bh_fd_close(pages->limits_fd);
    bh_fd_close(pages->usage_fd);
    free(pages);
}

int
bh_share_pages_limits_fd(const struct bh_share_pages *pages)
{
    return pages->limits_fd;
}

int
bh_share_pages_usage_fd(const struct bh_share_pages *pages)
{
    return pages->usage_fd;
}

/* ---- slots ---- */

struct bh_share_owner
bh_share_pages_owner(const struct bh_share_pages *pages, uint32_t slot)
{
    BH_ASSERT(slot < BH_SHARE_SLOTS_MAX);
    return pages->slots->owner[slot];
}

bool
bh_share_pages_are_outdated(struct bh_share_pages *pages)
{
    for (uint32_t s = 0; s < BH_SHARE_SLOTS_MAX && pages->outdated; s++)
        if (pages->slots->owner[s].pid != 0)
            return true;
    pages->outdated = false;
    return false;
}

int
bh_share_pages_assign(struct bh_share_pages *pages, struct bh_share_owner owner)
{
    BH_ASSERT(owner.pid != 0);
    for (uint32_t s = 0; s < BH_SHARE_SLOTS_MAX; s++)
        if (pages->slots->owner[s].pid == 0) {
            pages->slots->owner[s] = owner;
            return (int)s;
        }
    return -1;
}

static bool
share_pages_reclaim(struct bh_share_pages *pages, uint32_t device, uint32_t slot)
{
    for (int i = 0; i < TRIES; i++) {
        uint32_t held = bh_share_held(pages->usage, device, slot);

        /* The result is checked: a forged page may claim that the slot has some still. */
        if (held == 0)
            return true;
        if (bh_share_try(pages->usage, device, slot, -(int32_t)held, BH_SHARE_UNITS_MAX) == BH_SHARE_REFUSED)
            return false;
    }
    return false;
}

static void
pages_forget_seen(struct bh_share_pages *pages, uint32_t slot)
{
    atomic_store(&pages->usage->seen_kind[slot], BH_SHARE_SEEN_NOT);
    for (uint32_t d = 0; d < BH_SHARE_DEVICES_MAX; d++)
        atomic_store(&pages->usage->seen[slot].grains[d], 0);
}

bool
bh_share_pages_reap(struct bh_share_pages *pages, uint32_t slot)
{
    bool back = true;

    BH_ASSERT(slot < BH_SHARE_SLOTS_MAX);
    for (uint32_t d = 0; d < pages->limits->device_count; d++)
        back &= share_pages_reclaim(pages, d, slot);
    if (back) {
        pages_forget_seen(pages, slot);
        atomic_store(&pages->usage->pid[slot], 0);
        pages->slots->owner[slot] = (struct bh_share_owner){ 0 };
    }
    return back;
}

/* ---- what it says ---- */

uint32_t
bh_share_pages_slice(const struct bh_share_pages *pages)
{
    return atomic_load(&pages->limits->device[0].slice);
}

uint64_t
bh_share_pages_until_ns(const struct bh_share_pages *pages)
{
    return atomic_load(&pages->limits->device[0].until_ns);
}

uint32_t
bh_share_pages_set_slice(struct bh_share_pages *pages, uint32_t flags, uint64_t until_ns)
{
    uint32_t slice = (bh_share_pages_slice(pages) & ~(BH_SHARE_SLICE_STEP - 1)) + BH_SHARE_SLICE_STEP + flags;

    BH_ASSERT(flags < BH_SHARE_SLICE_STEP);
    for (uint32_t d = 0; d < pages->limits->device_count; d++) {
        atomic_store(&pages->limits->device[d].until_ns, until_ns);
        atomic_store(&pages->limits->device[d].slice, slice);
    }
    return slice;
}

void
bh_share_pages_wake(struct bh_share_pages *pages)
{
    for (uint32_t d = 0; d < pages->limits->device_count; d++)
        syscall(SYS_futex, &pages->limits->device[d].slice, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void
bh_share_pages_busy(struct bh_share_pages *pages, uint64_t used_ns, uint64_t busy)
{
    for (uint32_t d = 0; d < pages->limits->device_count; d++) {
        atomic_store(&pages->limits->device[d].used_ns, used_ns);
        atomic_store(&pages->limits->device[d].busy, busy);
    }
}

void
bh_share_pages_overhead(struct bh_share_pages *pages, uint32_t device, uint64_t bytes)
{
    uint64_t units = (bytes + BH_SHARE_UNIT_BYTES - 1) / BH_SHARE_UNIT_BYTES;

    if (device < pages->limits->device_count)
        atomic_store(&pages->limits->device[device].overhead_units,
                     units < BH_SHARE_UNITS_MAX ? (uint32_t)units : BH_SHARE_UNITS_MAX);
}

uint64_t
bh_share_pages_used_bytes(const struct bh_share_pages *pages, uint32_t device)
{
    return device < pages->limits->device_count ? bh_share_used(pages->usage, device) * BH_SHARE_UNIT_BYTES
                                                : 0;
}

uint64_t
bh_share_pages_seen_bytes(const struct bh_share_pages *pages, uint32_t device)
{
    uint64_t grains = 0;

    for (uint32_t s = 0; s < BH_SHARE_SLOTS_MAX && device < BH_SHARE_DEVICES_MAX; s++)
        if (pages->slots->owner[s].pid != 0)
            grains += atomic_load(&pages->usage->seen[s].grains[device]);
    return grains * BH_SHARE_SEEN_BYTES;
}

enum bh_share_seen_kind
bh_share_pages_seen_kind(const struct bh_share_pages *pages)
{
    bool whole = false, absent = false;

    for (uint32_t s = 0; s < BH_SHARE_SLOTS_MAX; s++) {
        uint32_t kind =
            pages->slots->owner[s].pid == 0 ? BH_SHARE_SEEN_NOT : atomic_load(&pages->usage->seen_kind[s]);

        if (kind == BH_SHARE_SEEN_PARTLY)
            return BH_SHARE_SEEN_PARTLY;
        whole |= kind == BH_SHARE_SEEN_WHOLE;
        absent |= kind == BH_SHARE_SEEN_ABSENT;
    }
    if (whole)
        return absent ? BH_SHARE_SEEN_PARTLY : BH_SHARE_SEEN_WHOLE;
    return absent ? BH_SHARE_SEEN_ABSENT : BH_SHARE_SEEN_NOT;
}
