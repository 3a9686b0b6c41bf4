#include "node/sandbox/isolation_checks.h"

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

#include "base/assert.h"
#include "base/attr.h"
#include "base/fd.h"
#include "base/proc.h"
#include "node/common/path.h"
#include "node/placement/devices.h"
#include "node/placement/health_state.h"
#include "node/placement/placement.h"
#include "node/placement/trespass.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/process.h"
#include "runtime/cgroup.h"
#include "runtime/oci.h"
#include "runtime/readback.h"

/* 64 mounts of a job's, each with a source of 4,096 and a target of 1,000 bytes that the kernel
 * writes as four, are 1.3 MB. */
enum { STATUS_MAX = 16 << 10, MOUNTINFO_MAX = 2 << 20 };

/* What is looked at, and what was read of it once. */
struct inspection {
    struct bh_node *node;
    const struct bh_job *job;
    pid_t init;
    uid_t base;       /* first id of the job's range */
    bool *trespassed; /* of the report */
    char status[STATUS_MAX];
};

/* Whether it stands as it must; `ret_answer` says how it stands. */
typedef enum bh_check_result (*check_fn)(const struct inspection *inspection, char *ret_answer, size_t size);

void
bh_report_put(struct bh_report *report, const struct bh_msg_check *check, enum bh_evidence_by by)
{
    bool failed = check->result == BH_CHECK_FAIL;

    BH_ASSERT(check->result < BH_CHECK_RESULTS && report->count <= BH_REPORT_CHECKS_MAX);
    if (report->count < BH_REPORT_CHECKS_MAX) /* a list that is full hides none that failed */
        report->checks[report->count++] = *check;
    if (check->result != BH_CHECK_PASS && (!*report->why || (failed && report->failed == 0)))
        snprintf(report->why, sizeof report->why, "%s: %s", check->name, check->answer);
    report->failed += failed;
    report->inconclusive += check->result == BH_CHECK_INCONCLUSIVE;
    report->by_host = report->by_host || (failed && by == BH_EVIDENCE_BY_HOST);
}

enum bh_check_result
bh_report_result(const struct bh_report *report)
{
    if (report->failed > 0)
        return BH_CHECK_FAIL;
    return report->inconclusive > 0 || report->count == 0 ? BH_CHECK_INCONCLUSIVE : BH_CHECK_PASS;
}

bool
bh_report_is_trespass(const struct bh_report *report)
{
    return report->trespassed && report->failed == 0;
}

const struct bh_evidence_remedy *
bh_report_remedy(const struct bh_report *report, enum bh_evidence_of of)
{
    return bh_evidence_remedy(of, bh_report_result(report),
                              report->by_host ? BH_EVIDENCE_BY_HOST : BH_EVIDENCE_BY_JOB);
}

/* How it stands, with what that comes to. */
static enum bh_check_result BH_PRINTF(4, 5)
    isolation_answer_with(enum bh_check_result result, char *ret_answer, size_t size, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vsnprintf(ret_answer, size, format, values);
    va_end(values);
    return result;
}

#define wrong(answer, size, ...) isolation_answer_with(BH_CHECK_FAIL, answer, size, __VA_ARGS__)
#define unknown(answer, size, ...) isolation_answer_with(BH_CHECK_INCONCLUSIVE, answer, size, __VA_ARGS__)

static enum bh_check_result
isolation_pass_if(bool stands)
{
    return stands ? BH_CHECK_PASS : BH_CHECK_FAIL;
}

/* ---- reading ---- */

/* A file of process 1, whole, at most `max` bytes. */
static bool
isolation_read_of(const struct inspection *inspection, const char *name, size_t max, struct bh_buf *ret_text)
{
    struct bh_err ignored;
    char path[BH_PROC_PATH_MAX];

    bh_proc_path(inspection->init, name, path);
    return bh_file_read(path, max, ret_text, &ignored) == BH_OK && bh_buf_text(ret_text)
           && ret_text->length > 0;
}

static bool
isolation_read_short(const struct inspection *inspection, const char *name, char *text, size_t size)
{
    struct bh_err ignored;

    return bh_proc_read(inspection->init, name, text, size, &ignored) == BH_OK && *text;
}

/* What stands behind "key:\t" in the status, up to the end of the line. */
static void
isolation_status_of(const struct inspection *inspection, const char *key, char *text, size_t size)
{
    const char *at = inspection->status;
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

static enum bh_check_result
isolation_status_is(const struct inspection *inspection, const char *key, const char *wanted, char *answer,
                    size_t size)
{
    isolation_status_of(inspection, key, answer, size);
    if (!*answer)
        return unknown(answer, size, "%s cannot be read", key);
    return isolation_pass_if(strcmp(answer, wanted) == 0);
}

/* ---- identity ---- */

static enum bh_check_result
isolation_check_namespaces(const struct inspection *inspection, char *answer, size_t size)
{
    static const char *const names[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        char name[16], own[32], its[32];
        struct bh_err ignored;

        bh_path_format(name, sizeof name, "ns/%s", names[i]);
        if (bh_proc_link(inspection->init, name, its, sizeof its, &ignored) != BH_OK)
            return unknown(answer, size, "%s cannot be read", names[i]);
        if (bh_proc_link(BH_PROC_SELF, name, own, sizeof own, &ignored) != BH_OK)
            return unknown(answer, size, "%s of the machine cannot be read", names[i]);
        if (strcmp(own, its) == 0) /* "net:[4026531840]" */
            return wrong(answer, size, "%s is the machine's", names[i]);
    }
    return isolation_answer_with(BH_CHECK_PASS, answer, size, "%zu of its own", BH_COUNT(names));
}

/* Two jobs never map to the same ids, so that the range alone tells whose a process is. */
static enum bh_check_result
isolation_check_ids(const struct inspection *inspection, char *answer, size_t size)
{
    char text[256], wanted[64], line[64];
    unsigned inside, outside, count;
    const char *const maps[] = { "uid_map", "gid_map" };

    snprintf(wanted, sizeof wanted, "0 %u %u", (unsigned)inspection->base, (unsigned)BH_OCI_ID_RANGE);
    for (size_t i = 0; i < BH_COUNT(maps); i++) {
        char rest[8] = "";

        if (!isolation_read_short(inspection, maps[i], text, sizeof text)
            || sscanf(text, "%u %u %u %7s", &inside, &outside, &count, rest) < 3)
            return unknown(answer, size, "%s cannot be read", maps[i]);
        snprintf(line, sizeof line, "%u %u %u", inside, outside, count);
        snprintf(answer, size, "%s%s", line, *rest ? " and more" : "");
        if (strcmp(answer, wanted) != 0)
            return BH_CHECK_FAIL;
    }
    return BH_CHECK_PASS;
}

static enum bh_check_result
isolation_check_user(const struct inspection *inspection, char *answer, size_t size)
{
    unsigned ids[4];

    isolation_status_of(inspection, "Uid", answer, size);
    if (sscanf(answer, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
        return unknown(answer, size, "its user cannot be read");
    for (size_t i = 0; i < BH_COUNT(ids); i++)
        if (ids[i] != ids[0] || ids[i] < inspection->base || ids[i] - inspection->base >= BH_OCI_ID_RANGE)
            return BH_CHECK_FAIL; /* which of its range is for the image to say */
    return BH_CHECK_PASS;
}

static enum bh_check_result
isolation_check_capabilities(const struct inspection *inspection, char *answer, size_t size)
{
    static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

    for (size_t i = 0; i < BH_COUNT(sets); i++) {
        enum bh_check_result result =
            isolation_status_is(inspection, sets[i], "0000000000000000", answer, size);

        if (result != BH_CHECK_PASS)
            return result;
    }
    return isolation_answer_with(BH_CHECK_PASS, answer, size, "none");
}

static enum bh_check_result
isolation_check_privileges(const struct inspection *inspection, char *answer, size_t size)
{
    return isolation_status_is(inspection, "NoNewPrivs", "1", answer, size);
}

static enum bh_check_result
isolation_check_filter(const struct inspection *inspection, char *answer, size_t size)
{
    return isolation_status_is(inspection, "Seccomp", "2", answer, size);
}

/* ---- files ---- */

/* The word `wanted` among options that commas divide. */
static bool
isolation_has_option(const char *options, const char *wanted)
{
    size_t length = strlen(wanted);

    for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, wanted, length) == 0 && (!at[length] || at[length] == ','))
            return true;
    return false;
}

static bool
isolation_must_be_read_only(const char *target)
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
isolation_is_runtimes_own(const char *target)
{
    return strcmp(target, "/") == 0 || strncmp(target, "/proc/", 6) == 0 || strncmp(target, "/sys/", 5) == 0;
}

static bool
isolation_is_at_or_below(const char *target, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(target, folder, length) == 0 && (!target[length] || target[length] == '/');
}

/* No mount lets programs gain rights, none but device nodes lets devices be opened, and what
 * is the machine's cannot be written.  Targets are the tenant's to choose, of any length. */
static enum bh_check_result
isolation_check_mount(char *line, char *answer, size_t size)
{
    char *field[6], *rest = NULL;

    for (size_t i = 0; i < BH_COUNT(field); i++) {
        field[i] = strtok_r(i ? NULL : line, " ", &rest);
        if (!field[i])
            return unknown(answer, size, "a mount cannot be read");
    }
    const char *target = field[4], *options = field[5];

    snprintf(answer, size, "%.60s", target);
    if (!isolation_is_runtimes_own(target) && !isolation_has_option(options, "nosuid"))
        return BH_CHECK_FAIL;
    if (!isolation_is_runtimes_own(target) && !isolation_is_at_or_below(target, "/dev")
        && !isolation_has_option(options, "nodev"))
        return BH_CHECK_FAIL;
    return isolation_pass_if(!isolation_must_be_read_only(target) || isolation_has_option(options, "ro"));
}

static enum bh_check_result
isolation_check_mounts(const struct inspection *inspection, char *answer, size_t size)
{
    enum bh_check_result result = BH_CHECK_PASS;
    uint32_t count = 0;
    struct bh_buf text;
    char *rest = NULL;

    bh_buf_init(&text, MOUNTINFO_MAX + 1);
    if (!isolation_read_of(inspection, "mountinfo", MOUNTINFO_MAX, &text)) {
        bh_buf_fini(&text);
        return unknown(answer, size, "mounts cannot be read");
    }
    for (char *line = strtok_r(text.bytes, "\n", &rest); line && result == BH_CHECK_PASS;
         line = strtok_r(NULL, "\n", &rest), count++)
        result = isolation_check_mount(line, answer, size);
    bh_buf_fini(&text);
    return result == BH_CHECK_PASS ? isolation_answer_with(result, answer, size, "%u mounts", count) : result;
}

/* What process 1 may hold beside its three streams: the keeper's socket, and what those who were
 * added to the job speak through (node/init/init_stream.h).  None of it names a file. */
static enum bh_check_result
isolation_check_stream(const struct inspection *inspection, const char *name)
{
    static const char *const kinds[] = { "socket:[",  "pipe:[",    "anon_inode:",
                                         "/dev/pts/", "/dev/ptmx", "/dev/pts/ptmx" };
    char link[32], target[NAME_MAX];
    struct bh_err err;
    bh_rc rc;

    bh_path_format(link, sizeof link, "fd/%.20s", name);
    rc = bh_proc_link(inspection->init, link, target, sizeof target, &err);
    if (rc == BH_NOT_FOUND)
        return BH_CHECK_PASS; /* closed meanwhile */
    if (rc != BH_OK)
        return rc == BH_FULL ? BH_CHECK_FAIL : BH_CHECK_INCONCLUSIVE; /* a stream's name is short */
    for (size_t i = 0; i < BH_COUNT(kinds); i++)
        if (strncmp(target, kinds[i], strlen(kinds[i])) == 0)
            return BH_CHECK_PASS;
    return BH_CHECK_FAIL;
}

/* Process 1 has its three streams and nothing that leads outside. */
static enum bh_check_result
isolation_check_descriptors(const struct inspection *inspection, char *answer, size_t size)
{
    uint32_t count = 0, found[BH_CHECK_RESULTS] = { 0 };
    DIR *dir = bh_proc_list(inspection->init, "fd");

    if (!dir)
        return unknown(answer, size, "descriptors cannot be read");
    for (const struct dirent *entry; (entry = readdir(dir));) {
        bool own = entry->d_name[0] >= '0' && entry->d_name[0] <= '2' && !entry->d_name[1];

        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (!own)
            found[isolation_check_stream(inspection, entry->d_name)]++;
    }
    closedir(dir);
    if (found[BH_CHECK_FAIL] == 0 && found[BH_CHECK_INCONCLUSIVE] > 0)
        return unknown(answer, size, "%u of %u descriptors cannot be read", found[BH_CHECK_INCONCLUSIVE],
                       count);
    return isolation_answer_with(isolation_pass_if(found[BH_CHECK_FAIL] == 0), answer, size,
                                 "%u descriptors, %u that lead to files", count, found[BH_CHECK_FAIL]);
}

/* ---- limits and devices ---- */

static void
isolation_group_of(const struct inspection *inspection, char *path, size_t size)
{
    char id[32];

    bh_node_job_id(inspection->job->record.lease, id);
    bh_path_format(path, size, "%s/%s", inspection->node->conf.cgroup_parent, id);
}

static enum bh_check_result
isolation_check_groups(const struct inspection *inspection, char *answer, size_t size)
{
    struct bh_err err;
    bool inside = false;
    char id[32];

    bh_node_job_id(inspection->job->record.lease, id);
    if (inspection->node->runtime.ops->has(inspection->node->runtime.self, id, inspection->init, &inside,
                                           &err)
        != BH_OK)
        return unknown(answer, size, "%.60s", err.msg);
    return isolation_answer_with(isolation_pass_if(inside), answer, size,
                                 inside ? "in its groups" : "not in its groups");
}

/* What was ordered is known to the node that started the job; another one wants limits that
 * are any. */
static enum bh_check_result
isolation_check_limit(uint64_t is, uint64_t ordered, char *answer, size_t size)
{
    return isolation_answer_with(isolation_pass_if(is != UINT64_MAX && is > 0 && (!ordered || is == ordered)),
                                 answer, size, "%" PRIu64, is);
}

static bool
isolation_read_limits(const struct inspection *inspection, struct bh_limits *ret_limits, char *answer,
                      size_t size)
{
    struct bh_cgroup_host cgroups;
    char path[200];
    struct bh_err err;

    isolation_group_of(inspection, path, sizeof path);
    if (bh_cgroup_probe(inspection->node->conf.cgroup_mount, &cgroups, &err) == BH_OK
        && bh_readback_limits(&cgroups, path, ret_limits, &err) == BH_OK)
        return true;
    snprintf(answer, size, "%.60s", err.msg);
    return false;
}

static enum bh_check_result
isolation_check_memory(const struct inspection *inspection, char *answer, size_t size)
{
    struct bh_limits limits;

    if (!isolation_read_limits(inspection, &limits, answer, size))
        return BH_CHECK_INCONCLUSIVE;
    return isolation_check_limit(limits.memory_bytes, inspection->job->ordered.memory_bytes, answer, size);
}

static enum bh_check_result
isolation_check_processes(const struct inspection *inspection, char *answer, size_t size)
{
    uint64_t ordered = inspection->job->ordered.pids ? inspection->job->ordered.pids + 1U : 0; /* and crun */
    struct bh_limits limits;

    if (!isolation_read_limits(inspection, &limits, answer, size))
        return BH_CHECK_INCONCLUSIVE;
    return isolation_check_limit(limits.pids, ordered, answer, size);
}

static enum bh_check_result
isolation_check_devices(const struct inspection *inspection, char *answer, size_t size)
{
    struct bh_sandbox_device devices[2 + 3 * BH_WIRE_PARTITIONS_MAX];
    uint32_t count = bh_devices_of(inspection->node, &inspection->job->record, devices);
    struct bh_cgroup_host cgroups;
    char path[200];
    struct bh_err err;

    isolation_group_of(inspection, path, sizeof path);
    if (bh_cgroup_probe(inspection->node->conf.cgroup_mount, &cgroups, &err) != BH_OK)
        return unknown(answer, size, "%.60s", err.msg);
    if (bh_readback_devices(&cgroups, path, devices, count, &err) != BH_OK)
        return isolation_answer_with(err.rc == BH_CONFLICT ? BH_CHECK_FAIL : BH_CHECK_INCONCLUSIVE, answer,
                                     size, "%.60s", err.msg);
    return isolation_answer_with(BH_CHECK_PASS, answer, size, "%u leased, no others", count);
}

static bh_rc
isolation_read_inside(const struct bh_node *node, uint64_t lease, uint32_t pid, bool *ret_inside)
{
    struct bh_err ignored;
    char id[32];

    bh_node_job_id(lease, id);
    return node->runtime.ops->has(node->runtime.self, id, (pid_t)pid, ret_inside, &ignored);
}

static bool
isolation_is_of_share(const struct bh_node *node, const struct bh_node_record *record, const char *gpu,
                      uint32_t pid)
{
    bool shares = false, inside = false;

    for (uint32_t k = 0; k < record->lent_count; k++)
        shares |= bh_placement_is_share(&record->lent[k]) && strcmp(record->lent[k].gpu, gpu) == 0;
    return shares && isolation_read_inside(node, record->lease, pid, &inside) == BH_OK && inside;
}

/* In another job that shares the GPU, or in a helper sandbox of the node that scrubs beside them. */
static bool
isolation_is_beside(const struct bh_node *node, const struct bh_node_partition *partition, uint32_t pid)
{
    for (uint32_t i = 0; i < node->state.job_count; i++)
        if (isolation_is_of_share(node, &node->state.jobs[i].record, partition->gpu, pid))
            return true;
    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++) {
        const struct bh_node_record *record = bh_helper_sandbox_record(node, i);

        if (record && isolation_is_of_share(node, record, partition->gpu, pid))
            return true;
    }
    return false;
}

/* A process that lives and is on the partition, but neither in the job nor, of a share, in one that
 * has another share of the GPU. */
static bool
isolation_is_foreign(const struct bh_node *node, const struct bh_job *job,
                     const struct bh_node_partition *partition, const struct bh_device_process *process)
{
    bool inside = false;

    if (bh_placement_is_instance(partition) && partition->gi != process->gi)
        return false;
    if (bh_placement_is_share(partition) && isolation_is_beside(node, partition, process->pid))
        return false;
    return isolation_read_inside(node, job->record.lease, process->pid, &inside) == BH_OK && !inside
           && !bh_process_is_ending((pid_t)process->pid);
}

/* A stranger that is of another lease got there by what it was passed, which a job can do: it is
 * evidence against that lease, and none against this one. */
static enum bh_check_result
isolation_check_process(const struct inspection *inspection, const struct bh_node_partition *partition,
                        const struct bh_device_process *process, char *answer, size_t size)
{
    if (!isolation_is_foreign(inspection->node, inspection->job, partition, process))
        return BH_CHECK_PASS;
    if (!bh_trespass_charge(inspection->node, partition, process->pid, inspection->job->record.lease))
        return wrong(answer, size, "process %u uses it", process->pid);
    *inspection->trespassed = true;
    return unknown(answer, size, "process %u of another job uses it, which is ended", process->pid);
}

/* Nobody else has a context on a partition that is about to be used. */
static enum bh_check_result
isolation_check_partition(const struct inspection *inspection, char *answer, size_t size)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    const struct bh_device *device = &inspection->node->device;

    for (uint32_t i = 0; i < inspection->job->record.lent_count; i++) {
        const struct bh_node_partition *partition = &inspection->job->record.lent[i];
        struct bh_device_process *processes;
        uint32_t count = 0;
        struct bh_err err;

        if (bh_health_is_unresponsive(inspection->node,
                                      partition->gpu)) /* asking would hold the node up once more */
            return unknown(answer, size, "%.40s does not answer", partition->gpu);
        if (device->ops->processes(device->self, partition->gpu, arena, &processes, &count, &err) != BH_OK)
            return unknown(answer, size, "%.60s", err.msg);
        for (uint32_t p = 0; p < count; p++) {
            enum bh_check_result result =
                isolation_check_process(inspection, partition, &processes[p], answer, size);

            if (result != BH_CHECK_PASS)
                return result;
        }
    }
    return isolation_answer_with(BH_CHECK_PASS, answer, size, "%u partitions, no other process on them",
                                 inspection->job->record.lent_count);
}

/* ---- all of it ---- */

static const struct {
    const char *name;
    check_fn check;
    enum bh_evidence_by by;
} checks[] = {
    { "namespaces", isolation_check_namespaces, BH_EVIDENCE_BY_HOST },
    { "ids", isolation_check_ids, BH_EVIDENCE_BY_HOST },
    { "user", isolation_check_user, BH_EVIDENCE_BY_JOB }, /* its image says which */
    { "capabilities", isolation_check_capabilities, BH_EVIDENCE_BY_HOST },
    { "privileges", isolation_check_privileges, BH_EVIDENCE_BY_HOST },
    { "call-filter", isolation_check_filter, BH_EVIDENCE_BY_HOST },
    { "mounts", isolation_check_mounts, BH_EVIDENCE_BY_JOB },           /* it chooses places */
    { "descriptors", isolation_check_descriptors, BH_EVIDENCE_BY_JOB }, /* it asks for streams */
    { "groups", isolation_check_groups, BH_EVIDENCE_BY_HOST },
    { "memory-limit", isolation_check_memory, BH_EVIDENCE_BY_HOST },
    { "process-limit", isolation_check_processes, BH_EVIDENCE_BY_HOST },
    { "device-fence", isolation_check_devices, BH_EVIDENCE_BY_HOST },
    { "partition", isolation_check_partition, BH_EVIDENCE_BY_HOST },
};

void
bh_isolation_checks_of_job(struct bh_node *node, const struct bh_job *job, pid_t init,
                           struct bh_report *ret_report)
{
    struct inspection inspection = { .node = node,
                                     .job = job,
                                     .init = init,
                                     .base = node->conf.uid_base + BH_OCI_ID_RANGE * job->record.slot,
                                     .trespassed = &ret_report->trespassed };

    memset(ret_report, 0, sizeof *ret_report);
    (void)isolation_read_short(&inspection, "status", inspection.status, sizeof inspection.status);
    for (size_t i = 0; i < BH_COUNT(checks); i++) {
        struct bh_msg_check check = { .outside = true };

        snprintf(check.name, sizeof check.name, "%s", checks[i].name);
        check.result = checks[i].check(&inspection, check.answer, sizeof check.answer);
        bh_report_put(ret_report, &check, checks[i].by);
    }
}

bool
bh_isolation_checks_of_helper(struct bh_node *node, struct bh_helper_sandbox *helper,
                              struct bh_report *ret_report)
{
    pid_t init = 0;
    const struct bh_job *job = bh_helper_sandbox_await(node, helper, &init);

    if (job)
        bh_isolation_checks_of_job(node, job, init, ret_report);
    return job != NULL;
}
