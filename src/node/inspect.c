#include "node/inspect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"
#include "node/devices.h"
#include "node/path.h"
#include "node/share_slot.h"
#include "runtime/cgroup.h"
#include "runtime/oci.h"
#include "runtime/readback.h"

enum { TEXT_MAX = 64 << 10, LINE_MAX = 1024 };

/* What is looked at, and what was read of it once. */
struct look {
    struct bh_node *node;
    const struct bh_job *job;
    pid_t init;
    uid_t base;                  /* first id of the job's range */
    char status[4096];
    bool *unanswered;            /* set by a check when what it asked did not answer in time */
};

/* Whether it stands as it must; `ret_answer` says how it stands. */
typedef bool (*check_fn)(const struct look *look, char *ret_answer, size_t size);

void
bh_report_put(struct bh_report *report, const struct bh_msg_check *check)
{
    if (report->count == BH_REPORT_CHECKS_MAX)
        return;
    report->checks[report->count++] = *check;
    if (!check->held && (!*report->why || (!check->unfinished && report->broken == 0)))
        snprintf(report->why, sizeof report->why, "%s: %s", check->name, check->answer);
    report->broken += !check->held && !check->unfinished;
}

bool
bh_report_held(const struct bh_report *report)
{
    return report->count > 0 && !*report->why;
}

enum bh_walls
bh_report_walls(const struct bh_report *report)
{
    return bh_report_held(report) ? BH_WALLS_HELD
           : report->broken > 0   ? BH_WALLS_BROKEN
                                  : BH_WALLS_UNFINISHED;
}

/* How it stands, and that it must not. */
static bool BH_PRINTF(3, 4)
wrong(char *ret_answer, size_t size, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vsnprintf(ret_answer, size, format, values);
    va_end(values);
    return false;
}

/* ---- reading ---- */

static bool
read_of(const struct look *look, const char *name, char *text, size_t size)
{
    char path[96];
    BH_AUTO(bh_fd_close) int fd = -1;
    size_t length = 0;
    ssize_t n = 1;

    bh_path_format(path, sizeof path, "/proc/%d/%s", (int)look->init, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n > 0 && length < size - 1) {
        n = read(fd, text + length, size - 1 - length);
        length += n > 0 ? (size_t)n : 0;
    }
    text[length] = '\0';
    return fd >= 0 && n >= 0;
}

/* What stands behind "key:\t" in the status, up to the end of the line. */
static void
status_of(const struct look *look, const char *key, char *text, size_t size)
{
    const char *at = look->status;
    size_t length = strlen(key);

    text[0] = '\0';
    for (; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        if (strncmp(at, key, length) == 0 && at[length] == ':') {
            at += length + 1;
            at += strspn(at, "\t ");
            snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
            return;
        }
    }
}

static bool
status_is(const struct look *look, const char *key, const char *wanted, char *answer, size_t size)
{
    status_of(look, key, answer, size);
    return strcmp(answer, wanted) == 0;
}

/* ---- identity ---- */

static bool
check_namespaces(const struct look *look, char *answer, size_t size)
{
    static const char *const names[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        char path[64];
        struct stat own, its;

        bh_path_format(path, sizeof path, "/proc/%d/ns/%s", (int)look->init, names[i]);
        if (stat(path, &its) != 0)
            return wrong(answer, size, "%s cannot be read", names[i]);
        bh_path_format(path, sizeof path, "/proc/self/ns/%s", names[i]);
        if (stat(path, &own) != 0 || own.st_ino == its.st_ino)
            return wrong(answer, size, "%s is the machine's", names[i]);
    }
    snprintf(answer, size, "%zu of its own", BH_COUNT(names));
    return true;
}

/* Two jobs never map to the same ids, so that the range alone tells whose a process is. */
static bool
check_ids(const struct look *look, char *answer, size_t size)
{
    char text[256], wanted[64], line[64];
    unsigned inside, outside, count;
    const char *const maps[] = { "uid_map", "gid_map" };

    snprintf(wanted, sizeof wanted, "0 %u %u", (unsigned)look->base, (unsigned)BH_OCI_ID_RANGE);
    for (size_t i = 0; i < BH_COUNT(maps); i++) {
        char rest[8] = "";

        if (!read_of(look, maps[i], text, sizeof text)
            || sscanf(text, "%u %u %u %7s", &inside, &outside, &count, rest) != 3)
            return wrong(answer, size, "%s cannot be read", maps[i]);
        snprintf(line, sizeof line, "%u %u %u", inside, outside, count);
        snprintf(answer, size, "%s", line);
        if (strcmp(line, wanted) != 0)
            return false;
    }
    return true;
}

static bool
check_user(const struct look *look, char *answer, size_t size)
{
    unsigned ids[4];

    status_of(look, "Uid", answer, size);
    if (sscanf(answer, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
        return false;
    for (size_t i = 0; i < BH_COUNT(ids); i++)
        if (ids[i] != ids[0] || ids[i] < look->base || ids[i] - look->base >= BH_OCI_ID_RANGE)
            return false; /* which of its range is for the image to say */
    return true;
}

static bool
check_capabilities(const struct look *look, char *answer, size_t size)
{
    static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

    for (size_t i = 0; i < BH_COUNT(sets); i++)
        if (!status_is(look, sets[i], "0000000000000000", answer, size))
            return false;
    snprintf(answer, size, "none");
    return true;
}

static bool
check_privileges(const struct look *look, char *answer, size_t size)
{
    return status_is(look, "NoNewPrivs", "1", answer, size);
}

static bool
check_filter(const struct look *look, char *answer, size_t size)
{
    return status_is(look, "Seccomp", "2", answer, size);
}

/* ---- files ---- */

/* The word `wanted` among options that commas divide. */
static bool
has_option(const char *options, const char *wanted)
{
    size_t length = strlen(wanted);

    for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, wanted, length) == 0 && (!at[length] || at[length] == ','))
            return true;
    return false;
}

static bool
must_be_read_only(const char *target)
{
    static const char *const targets[] = { "/", "/usr", "/sys", "/proc/sys", "/etc" };

    for (size_t i = 0; i < BH_COUNT(targets); i++)
        if (strcmp(target, targets[i]) == 0)
            return true;
    return strncmp(target, "/usr/", 5) == 0;
}

/* The root, which is read-only, and what hides parts of /proc and /sys: empty folders and the
 * null device. */
static bool
is_runtimes_own(const char *target)
{
    return strcmp(target, "/") == 0 || strncmp(target, "/proc/", 6) == 0
           || strncmp(target, "/sys/", 5) == 0;
}

/* No mount lets programs gain rights, none but device nodes lets devices be opened, and what
 * is the machine's cannot be written. */
static bool
check_mount(char *line, char *answer, size_t size)
{
    char target[256], options[256];

    if (sscanf(line, "%*s %*s %*s %*s %255s %255s", target, options) != 2)
        return wrong(answer, size, "mounts cannot be read");
    snprintf(answer, size, "%.60s", target);
    if (!is_runtimes_own(target) && !has_option(options, "nosuid"))
        return false;
    if (!is_runtimes_own(target) && strncmp(target, "/dev", 4) != 0
        && !has_option(options, "nodev"))
        return false;
    return !must_be_read_only(target) || has_option(options, "ro");
}

static bool
check_mounts(const struct look *look, char *answer, size_t size)
{
    char *text = calloc(1, TEXT_MAX), *rest = NULL;
    bool held = text && read_of(look, "mountinfo", text, TEXT_MAX);
    uint32_t count = 0;

    snprintf(answer, size, "mounts cannot be read");
    for (char *line = held ? strtok_r(text, "\n", &rest) : NULL; held && line;
         line = strtok_r(NULL, "\n", &rest), count++)
        held = check_mount(line, answer, size);
    if (held)
        snprintf(answer, size, "%u mounts", count);
    free(text);
    return held && count > 0;
}

/* What process 1 may hold beside its three streams: the keeper's socket, and what those who were
 * added to the job speak through (node/init_stream.h).  None of it names a file. */
static bool
is_stream(const struct look *look, const char *name)
{
    static const char *const kinds[] = { "socket:[", "pipe:[", "anon_inode:", "/dev/pts/",
                                         "/dev/ptmx", "/dev/pts/ptmx" };
    char path[64 + 256], target[64];
    ssize_t length;

    bh_path_format(path, sizeof path, "/proc/%d/fd/%s", (int)look->init, name);
    length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return errno == ENOENT; /* closed meanwhile */
    target[length] = '\0';
    for (size_t i = 0; i < BH_COUNT(kinds); i++)
        if (strncmp(target, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

/* Process 1 has its three streams and nothing that leads outside. */
static bool
check_descriptors(const struct look *look, char *answer, size_t size)
{
    uint32_t count = 0, astray = 0;
    char path[64];
    DIR *dir;

    bh_path_format(path, sizeof path, "/proc/%d/fd", (int)look->init);
    dir = opendir(path);
    if (!dir)
        return wrong(answer, size, "descriptors cannot be read");
    for (const struct dirent *entry; (entry = readdir(dir));) {
        bool own = entry->d_name[0] >= '0' && entry->d_name[0] <= '2' && !entry->d_name[1];

        count += entry->d_name[0] != '.';
        astray += entry->d_name[0] != '.' && !own && !is_stream(look, entry->d_name);
    }
    closedir(dir);
    snprintf(answer, size, "%u descriptors, %u that lead to files", count, astray);
    return astray == 0;
}

/* ---- limits and devices ---- */

static void
group_of(const struct look *look, char *path, size_t size)
{
    char id[32];

    bh_node_job_id(look->job->note.lease, id);
    bh_path_format(path, size, "%s/%s", look->node->conf.cgroup_parent, id);
}

static bool
check_groups(const struct look *look, char *answer, size_t size)
{
    struct bh_err err;
    bool inside = false;
    char id[32];

    bh_node_job_id(look->job->note.lease, id);
    if (look->node->runtime.ops->has(look->node->runtime.self, id, look->init, &inside, &err) != BH_OK)
        return wrong(answer, size, "%.60s", err.msg);
    snprintf(answer, size, inside ? "in its groups" : "not in its groups");
    return inside;
}

/* What was ordered is known to the node that started the job; another one wants limits that
 * are any. */
static bool
check_limit(uint64_t is, uint64_t ordered, char *answer, size_t size)
{
    snprintf(answer, size, "%" PRIu64, is);
    return is != UINT64_MAX && is > 0 && (!ordered || is == ordered);
}

static bool
read_limits(const struct look *look, struct bh_limits *ret_limits, char *answer, size_t size)
{
    struct bh_cgroup_host cgroups;
    char path[200];
    struct bh_err err;

    group_of(look, path, sizeof path);
    if (bh_cgroup_probe(look->node->conf.cgroup_mount, &cgroups, &err) == BH_OK
        && bh_readback_limits(&cgroups, path, ret_limits, &err) == BH_OK)
        return true;
    snprintf(answer, size, "%.60s", err.msg);
    return false;
}

static bool
check_memory(const struct look *look, char *answer, size_t size)
{
    struct bh_limits limits;

    return read_limits(look, &limits, answer, size)
           && check_limit(limits.memory_bytes, look->job->ordered.memory_bytes, answer, size);
}

static bool
check_processes(const struct look *look, char *answer, size_t size)
{
    uint64_t ordered = look->job->ordered.pids ? look->job->ordered.pids + 1U : 0; /* and crun */
    struct bh_limits limits;

    return read_limits(look, &limits, answer, size)
           && check_limit(limits.pids, ordered, answer, size);
}

static bool
check_devices(const struct look *look, char *answer, size_t size)
{
    struct bh_sandbox_device devices[2 + 3 * BH_WIRE_PIECES_MAX];
    uint32_t count = bh_devices_of(look->node, &look->job->note, devices);
    struct bh_cgroup_host cgroups;
    char path[200];
    struct bh_err err;

    group_of(look, path, sizeof path);
    if (bh_cgroup_probe(look->node->conf.cgroup_mount, &cgroups, &err) != BH_OK
        || bh_readback_devices(&cgroups, path, devices, count, &err) != BH_OK)
        return wrong(answer, size, "%.60s", err.msg);
    snprintf(answer, size, "%u lent, no others", count);
    return true;
}

static bh_rc
look_inside(const struct bh_node *node, uint64_t lease, uint32_t pid, bool *ret_inside)
{
    struct bh_err ignored;
    char id[32];

    bh_node_job_id(lease, id);
    return node->runtime.ops->has(node->runtime.self, id, (pid_t)pid, ret_inside, &ignored);
}

/* In another job that shares the GPU. */
static bool
is_beside(const struct bh_node *node, const struct bh_note_piece *piece, uint32_t pid)
{
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_note *note = &node->state.jobs[i].note;
        bool shares = false, inside = false;

        for (uint32_t k = 0; k < note->lent_count; k++)
            shares |= bh_share_slot_is(&note->lent[k]) && strcmp(note->lent[k].gpu, piece->gpu) == 0;
        if (shares && look_inside(node, note->lease, pid, &inside) == BH_OK && inside)
            return true;
    }
    return false;
}

/* A process that lives and is on the piece, but neither in the job nor, of a share, in one that
 * has another share of the GPU. */
static bool
is_stranger(const struct bh_node *node, const struct bh_job *job,
            const struct bh_note_piece *piece, const struct bh_device_process *process)
{
    bool inside = false;

    if (bh_share_slot_is_instance(piece) && piece->gi != process->gi)
        return false;
    if (bh_share_slot_is(piece) && is_beside(node, piece, process->pid))
        return false;
    return look_inside(node, job->note.lease, process->pid, &inside) == BH_OK && !inside &&
           kill((pid_t)process->pid, 0) == 0;
}

/* Nobody else has a context on a piece that is about to be used. */
static bool
check_piece(const struct look *look, char *answer, size_t size)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    const struct bh_device *device = &look->node->device;

    snprintf(answer, size, "%u pieces, nobody else on them", look->job->note.lent_count);
    for (uint32_t i = 0; i < look->job->note.lent_count; i++) {
        const struct bh_note_piece *piece = &look->job->note.lent[i];
        struct bh_device_process *processes;
        uint32_t count = 0;
        struct bh_err err;

        if (device->ops->processes(device->self, piece->gpu, arena, &processes, &count, &err)
            != BH_OK) {
            *look->unanswered = err.rc == BH_UNCERTAIN;
            return wrong(answer, size, "%.60s", err.msg);
        }
        for (uint32_t p = 0; p < count; p++) {
            if (is_stranger(look->node, look->job, piece, &processes[p]))
                return wrong(answer, size, "process %u is on it", processes[p].pid);
        }
    }
    return true;
}

/* ---- all of it ---- */

void
bh_inspect(struct bh_node *node, const struct bh_job *job, pid_t init,
           struct bh_report *ret_report)
{
    static const struct {
        const char *name;
        check_fn check;
    } checks[] = {
        { "namespaces", check_namespaces },   { "ids", check_ids },
        { "user", check_user },               { "capabilities", check_capabilities },
        { "privileges", check_privileges },   { "call-filter", check_filter },
        { "mounts", check_mounts },           { "descriptors", check_descriptors },
        { "groups", check_groups },           { "memory-limit", check_memory },
        { "process-limit", check_processes }, { "device-fence", check_devices },
        { "piece", check_piece },
    };
    struct look look = { .node = node, .job = job, .init = init,
                         .base = node->conf.uid_base + BH_OCI_ID_RANGE * job->note.slot };

    memset(ret_report, 0, sizeof *ret_report);
    if (!read_of(&look, "status", look.status, sizeof look.status))
        look.status[0] = '\0';
    for (size_t i = 0; i < BH_COUNT(checks); i++) {
        struct bh_msg_check check = { .outside = true };

        snprintf(check.name, sizeof check.name, "%s", checks[i].name);
        look.unanswered = &check.unfinished;
        check.held = checks[i].check(&look, check.answer, sizeof check.answer);
        bh_report_put(ret_report, &check);
    }
}
