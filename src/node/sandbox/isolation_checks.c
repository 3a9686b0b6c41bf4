#include "node/sandbox/isolation_checks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/proc.h"
#include "node/common/path.h"
#include "node/placement/devices.h"
#include "node/placement/health_state.h"
#include "node/placement/trespass.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/partition_users.h"
#include "runtime/cgroup.h"
#include "runtime/oci.h"
#include "runtime/readback.h"

/* A job has at most 64 mounts.  A source of 4,096 bytes and a target of 1,000, each byte of which the kernel
 * may escape as four, make 1.3 MB of mountinfo. */
enum { STATUS_MAX = 16 << 10, MOUNTINFO_MAX = 2 << 20 };

/* The sandbox under inspection. */
struct inspection {
    struct bh_node *node;
    const struct bh_job *job;
    pid_t init;
    uid_t base;              /* first id of the job's range */
    bool *trespassed;        /* of the report */
    char status[STATUS_MAX]; /* of process 1, read once; "" if it cannot be read */
};

/* Compare one property with what it must be; `check->answer` gets what was found. */
typedef enum bh_check_result (*check_fn)(const struct inspection *inspection, struct bh_msg_check *check);

static enum bh_check_result BH_PRINTF(3, 4)
    isolation_answer(struct bh_msg_check *check, enum bh_check_result result, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vsnprintf(check->answer, sizeof check->answer, format, values);
    va_end(values);
    return result;
}

static enum bh_check_result
isolation_pass_if(bool is_right)
{
    return is_right ? BH_CHECK_PASS : BH_CHECK_FAIL;
}

/* ---- reading ---- */

/* Read a whole file of process 1, of at most `max` bytes. */
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

/* The value of "key:\tvalue" in the status; "" if there is none. */
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
isolation_status_is(const struct inspection *inspection, const char *key, const char *wanted,
                    struct bh_msg_check *check)
{
    isolation_status_of(inspection, key, check->answer, sizeof check->answer);
    if (!*check->answer)
        return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%s cannot be read", key);
    return isolation_pass_if(strcmp(check->answer, wanted) == 0);
}

/* ---- identity ---- */

static enum bh_check_result
isolation_check_namespaces(const struct inspection *inspection, struct bh_msg_check *check)
{
    static const char *const names[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        char name[16], own[32], its[32];
        struct bh_err ignored;

        bh_path_format(name, sizeof name, "ns/%s", names[i]);
        if (bh_proc_link(inspection->init, name, its, sizeof its, &ignored) != BH_OK)
            return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%s cannot be read", names[i]);
        if (bh_proc_link(BH_PROC_SELF, name, own, sizeof own, &ignored) != BH_OK)
            return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%s of the machine cannot be read",
                                    names[i]);
        if (strcmp(own, its) == 0) /* "net:[4026531840]" */
            return isolation_answer(check, BH_CHECK_FAIL, "%s is the machine's", names[i]);
    }
    return isolation_answer(check, BH_CHECK_PASS, "%zu of its own", BH_COUNT(names));
}

/* Ranges of two jobs never overlap, so that a process's id alone identifies its job. */
static enum bh_check_result
isolation_check_ids(const struct inspection *inspection, struct bh_msg_check *check)
{
    char text[256], wanted[64], line[64];
    unsigned inside, outside, count;
    const char *const maps[] = { "uid_map", "gid_map" };

    snprintf(wanted, sizeof wanted, "0 %u %u", (unsigned)inspection->base, (unsigned)BH_OCI_ID_RANGE);
    for (size_t i = 0; i < BH_COUNT(maps); i++) {
        char rest[8] = "";

        if (!isolation_read_short(inspection, maps[i], text, sizeof text)
            || sscanf(text, "%u %u %u %7s", &inside, &outside, &count, rest) < 3)
            return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%s cannot be read", maps[i]);
        snprintf(line, sizeof line, "%u %u %u", inside, outside, count);
        snprintf(check->answer, sizeof check->answer, "%.40s%s", line, *rest ? " and more" : "");
        if (strcmp(check->answer, wanted) != 0)
            return BH_CHECK_FAIL;
    }
    return BH_CHECK_PASS;
}

static enum bh_check_result
isolation_check_user(const struct inspection *inspection, struct bh_msg_check *check)
{
    unsigned ids[4];

    isolation_status_of(inspection, "Uid", check->answer, sizeof check->answer);
    if (sscanf(check->answer, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
        return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "its user cannot be read");
    for (size_t i = 0; i < BH_COUNT(ids); i++)
        if (ids[i] != ids[0] || ids[i] < inspection->base || ids[i] - inspection->base >= BH_OCI_ID_RANGE)
            return BH_CHECK_FAIL; /* any id of the range is right: the image chooses it */
    return BH_CHECK_PASS;
}

static enum bh_check_result
isolation_check_capabilities(const struct inspection *inspection, struct bh_msg_check *check)
{
    static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };

    for (size_t i = 0; i < BH_COUNT(sets); i++) {
        enum bh_check_result result = isolation_status_is(inspection, sets[i], "0000000000000000", check);

        if (result != BH_CHECK_PASS)
            return result;
    }
    return isolation_answer(check, BH_CHECK_PASS, "none");
}

static enum bh_check_result
isolation_check_privileges(const struct inspection *inspection, struct bh_msg_check *check)
{
    return isolation_status_is(inspection, "NoNewPrivs", "1", check);
}

static enum bh_check_result
isolation_check_filter(const struct inspection *inspection, struct bh_msg_check *check)
{
    return isolation_status_is(inspection, "Seccomp", "2", check); /* SECCOMP_MODE_FILTER */
}

/* ---- files ---- */

/* Whether `wanted` is one of the options, which commas separate. */
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

/* Mounts that the runtime makes without these options: the root, which is read-only, and the empty folders
 * and null devices that hide parts of /proc and /sys. */
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

/* No mount may let programs gain rights (nosuid), only those in /dev may let devices be opened (nodev), and
 * the machine's folders must be read-only.  The tenant chooses targets, of any length. */
static enum bh_check_result
isolation_check_mount(char *line, struct bh_msg_check *check)
{
    char *field[6], *rest = NULL;

    for (size_t i = 0; i < BH_COUNT(field); i++) {
        field[i] = strtok_r(i ? NULL : line, " ", &rest);
        if (!field[i])
            return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "a mount cannot be read");
    }
    const char *target = field[4], *options = field[5];

    snprintf(check->answer, sizeof check->answer, "%.60s", target);
    if (!isolation_is_runtimes_own(target) && !isolation_has_option(options, "nosuid"))
        return BH_CHECK_FAIL;
    if (!isolation_is_runtimes_own(target) && !isolation_is_at_or_below(target, "/dev")
        && !isolation_has_option(options, "nodev"))
        return BH_CHECK_FAIL;
    return isolation_pass_if(!isolation_must_be_read_only(target) || isolation_has_option(options, "ro"));
}

static enum bh_check_result
isolation_check_mounts(const struct inspection *inspection, struct bh_msg_check *check)
{
    enum bh_check_result result = BH_CHECK_PASS;
    uint32_t count = 0;
    struct bh_buf text;
    char *rest = NULL;

    bh_buf_init(&text, MOUNTINFO_MAX + 1);
    if (!isolation_read_of(inspection, "mountinfo", MOUNTINFO_MAX, &text)) {
        bh_buf_fini(&text);
        return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "mounts cannot be read");
    }
    for (char *line = strtok_r(text.bytes, "\n", &rest); line && result == BH_CHECK_PASS;
         line = strtok_r(NULL, "\n", &rest), count++)
        result = isolation_check_mount(line, check);
    bh_buf_fini(&text);
    return result == BH_CHECK_PASS ? isolation_answer(check, result, "%u mounts", count) : result;
}

/* Besides its three streams, process 1 may hold the keeper's socket, and the sockets, pipes, terminals and
 * kernel objects of added streams (node/init/init_stream.h).  None of these names a file. */
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
        return rc == BH_FULL ? BH_CHECK_FAIL : BH_CHECK_INCONCLUSIVE; /* too long for a stream's name */
    for (size_t i = 0; i < BH_COUNT(kinds); i++)
        if (strncmp(target, kinds[i], strlen(kinds[i])) == 0)
            return BH_CHECK_PASS;
    return BH_CHECK_FAIL;
}

/* A descriptor of a file or folder outside would lead out of the sandbox. */
static enum bh_check_result
isolation_check_descriptors(const struct inspection *inspection, struct bh_msg_check *check)
{
    uint32_t count = 0, found[BH_CHECK_RESULTS] = { 0 };
    DIR *dir = bh_proc_list(inspection->init, "fd");

    if (!dir)
        return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "descriptors cannot be read");
    for (const struct dirent *entry; (entry = readdir(dir));) {
        bool standard = entry->d_name[0] >= '0' && entry->d_name[0] <= '2' && !entry->d_name[1];

        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (!standard)
            found[isolation_check_stream(inspection, entry->d_name)]++;
    }
    closedir(dir);
    if (found[BH_CHECK_FAIL] == 0 && found[BH_CHECK_INCONCLUSIVE] > 0)
        return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%u of %u descriptors cannot be read",
                                found[BH_CHECK_INCONCLUSIVE], count);
    return isolation_answer(check, isolation_pass_if(found[BH_CHECK_FAIL] == 0),
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
isolation_check_groups(const struct inspection *inspection, struct bh_msg_check *check)
{
    struct bh_err err;
    bool inside = false;
    char id[32];

    bh_node_job_id(inspection->job->record.lease, id);
    if (inspection->node->runtime.ops->has(inspection->node->runtime.self, id, inspection->init, &inside,
                                           &err)
        != BH_OK)
        return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%.60s", err.msg);
    return isolation_answer(check, isolation_pass_if(inside), inside ? "in its groups" : "not in its groups");
}

/* `ordered` is 0 after a restart of the node, which forgets it: then any limit passes. */
static enum bh_check_result
isolation_check_limit(uint64_t is, uint64_t ordered, struct bh_msg_check *check)
{
    return isolation_answer(
        check, isolation_pass_if(is != UINT64_MAX && is > 0 && (!ordered || is == ordered)), "%" PRIu64, is);
}

static bool
isolation_read_limits(const struct inspection *inspection, struct bh_limits *ret_limits,
                      struct bh_msg_check *check)
{
    struct bh_cgroup_host cgroups;
    char path[200];
    struct bh_err err;

    isolation_group_of(inspection, path, sizeof path);
    if (bh_cgroup_probe(inspection->node->conf.cgroup_mount, &cgroups, &err) == BH_OK
        && bh_readback_limits(&cgroups, path, ret_limits, &err) == BH_OK)
        return true;
    snprintf(check->answer, sizeof check->answer, "%.60s", err.msg);
    return false;
}

static enum bh_check_result
isolation_check_memory(const struct inspection *inspection, struct bh_msg_check *check)
{
    struct bh_limits limits;

    if (!isolation_read_limits(inspection, &limits, check))
        return BH_CHECK_INCONCLUSIVE;
    return isolation_check_limit(limits.memory_bytes, inspection->job->ordered.memory_bytes, check);
}

static enum bh_check_result
isolation_check_processes(const struct inspection *inspection, struct bh_msg_check *check)
{
    uint64_t ordered =
        inspection->job->ordered.pids ? inspection->job->ordered.pids + 1U : 0; /* crun counts, too */
    struct bh_limits limits;

    if (!isolation_read_limits(inspection, &limits, check))
        return BH_CHECK_INCONCLUSIVE;
    return isolation_check_limit(limits.pids, ordered, check);
}

static enum bh_check_result
isolation_check_devices(const struct inspection *inspection, struct bh_msg_check *check)
{
    struct bh_sandbox_device devices[2 + 3 * BH_WIRE_PARTITIONS_MAX];
    uint32_t count = bh_devices_of(inspection->node, &inspection->job->record, devices);
    struct bh_cgroup_host cgroups;
    char path[200];
    struct bh_err err;

    isolation_group_of(inspection, path, sizeof path);
    if (bh_cgroup_probe(inspection->node->conf.cgroup_mount, &cgroups, &err) != BH_OK)
        return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%.60s", err.msg);
    if (bh_readback_devices(&cgroups, path, devices, count, &err) != BH_OK)
        return isolation_answer(check, err.rc == BH_CONFLICT ? BH_CHECK_FAIL : BH_CHECK_INCONCLUSIVE, "%.60s",
                                err.msg);
    return isolation_answer(check, BH_CHECK_PASS, "%u leased, no others", count);
}

/* A job can pass its open device files to another.  So a foreign process that belongs to another lease is
 * evidence against that lease, and none against this one: the check is repeated once that lease has ended. */
static enum bh_check_result
isolation_check_process(const struct inspection *inspection, const struct bh_node_partition *partition,
                        const struct bh_device_process *process, struct bh_msg_check *check)
{
    if (!bh_partition_user_is_foreign(inspection->node, inspection->job, partition, process))
        return BH_CHECK_PASS;
    if (!bh_trespass_charge(inspection->node, partition, process->pid, inspection->job->record.lease))
        return isolation_answer(check, BH_CHECK_FAIL, "process %u uses it", process->pid);
    *inspection->trespassed = true;
    return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "process %u of another job uses it, which is ended",
                            process->pid);
}

/* A foreign process with a context on a partition could read or disturb the job that uses it. */
static enum bh_check_result
isolation_check_partition(const struct inspection *inspection, struct bh_msg_check *check)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    const struct bh_device *device = &inspection->node->device;

    for (uint32_t i = 0; i < inspection->job->record.lent_count; i++) {
        const struct bh_node_partition *partition = &inspection->job->record.lent[i];
        struct bh_device_process *processes;
        uint32_t count = 0;
        struct bh_err err;

        /* A call to its driver would block the node until the deadline again. */
        if (bh_health_is_unresponsive(inspection->node, partition->gpu))
            return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%.40s does not answer", partition->gpu);
        if (device->ops->processes(device->self, partition->gpu, arena, &processes, &count, &err) != BH_OK)
            return isolation_answer(check, BH_CHECK_INCONCLUSIVE, "%.60s", err.msg);
        for (uint32_t p = 0; p < count; p++) {
            enum bh_check_result result =
                isolation_check_process(inspection, partition, &processes[p], check);

            if (result != BH_CHECK_PASS)
                return result;
        }
    }
    return isolation_answer(check, BH_CHECK_PASS, "%u partitions, no other process on them",
                            inspection->job->record.lent_count);
}

/* ---- the table ---- */

static const struct {
    const char *name;
    check_fn check;
    enum bh_evidence_by by;
} checks[] = {
    { "namespaces", isolation_check_namespaces, BH_EVIDENCE_BY_HOST },
    { "ids", isolation_check_ids, BH_EVIDENCE_BY_HOST },
    { "user", isolation_check_user, BH_EVIDENCE_BY_JOB }, /* the image chooses it */
    { "capabilities", isolation_check_capabilities, BH_EVIDENCE_BY_HOST },
    { "privileges", isolation_check_privileges, BH_EVIDENCE_BY_HOST },
    { "call-filter", isolation_check_filter, BH_EVIDENCE_BY_HOST },
    { "mounts", isolation_check_mounts, BH_EVIDENCE_BY_JOB },           /* the job chooses targets */
    { "descriptors", isolation_check_descriptors, BH_EVIDENCE_BY_JOB }, /* streams are added on request */
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
        check.result = checks[i].check(&inspection, &check);
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
