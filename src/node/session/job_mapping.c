#include "node/session/job_mapping.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/core/state_check.h"
#include "node/placement/inventory.h"
#include "node/placement/placement.h"

enum { FILE_MAX = 64 << 10, NAME_SIZE = 24 };

struct job_mapping_entry {
    char name[NAME_SIZE]; /* of the file */
    uint64_t job;
};

/* The entry of what a lease has of one GPU; false: its GPU is not seen now. */
static bool
job_mapping_fill(const struct bh_node *node, const struct bh_job *job, uint32_t at,
                 struct job_mapping_entry *ret_entry)
{
    const struct bh_node_partition *partition = &job->record.lent[at];
    const struct bh_device_gpu *gpu = bh_node_inventory_gpu(node, partition->gpu);

    if (!gpu)
        return false;
    ret_entry->job = job->record.job;
    if (bh_placement_makes_instance(partition))
        snprintf(ret_entry->name, sizeof ret_entry->name, "%" PRIu32 ".%" PRIu32, gpu->index, partition->gi);
    else
        snprintf(ret_entry->name, sizeof ret_entry->name, "%" PRIu32, gpu->index);
    return true;
}

static bool
job_mapping_holds(const struct bh_job *job)
{
    return job->running && !job->ended && !bh_placement_is_suspended(job);
}

static uint64_t
job_mapping_mix(uint64_t print, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        print = (print ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return print;
}

/* Changes whenever an entry does; never 0. */
static uint64_t
job_mapping_print(const struct bh_node *node)
{
    uint64_t print = UINT64_C(0xcbf29ce484222325);
    struct job_mapping_entry entry = { .job = 0 };

    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        for (uint32_t n = 0; job_mapping_holds(job) && n < job->record.lent_count; n++) {
            if (!job_mapping_fill(node, job, n, &entry))
                continue;
            print = job_mapping_mix(print, entry.name, strlen(entry.name) + 1);
            print = job_mapping_mix(print, &entry.job, sizeof entry.job);
        }
    }
    return print ? print : 1;
}

static int
job_mapping_compare(const void *a, const void *b)
{
    const struct job_mapping_entry *left = a, *right = b;
    int names = strcmp(left->name, right->name);

    return names ? names : (left->job > right->job) - (left->job < right->job);
}

/* All entries, by file and job. */
static uint32_t
job_mapping_list(const struct bh_node *node, struct job_mapping_entry **ret_entries)
{
    size_t most = (size_t)node->state.job_count * BH_WIRE_PARTITIONS_MAX + 1;
    struct job_mapping_entry *entries = calloc(most, sizeof *entries);
    uint32_t count = 0;

    BH_ASSERT(entries);
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        for (uint32_t n = 0; job_mapping_holds(job) && n < job->record.lent_count; n++)
            count += job_mapping_fill(node, job, n, &entries[count]);
    }
    BH_ASSERT(count < most);
    qsort(entries, count, sizeof *entries, job_mapping_compare);
    *ret_entries = entries;
    return count;
}

/* Atomic for who reads it, and not durable: the files are made anew at the start, and the loop waits for no
 * disk. */
static bh_rc
job_mapping_replace(const char *folder, const char *name, struct bh_buf *text, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX], made[BH_NODE_PATH_MAX];
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(made, sizeof made, "%s/%s.new", folder, name);
    rc = bh_file_open(made, O_WRONLY | O_CREAT | O_TRUNC, 0644, &fd, err);
    if (rc == BH_OK)
        rc = bh_fd_write_all(fd, bh_buf_text(text), text->length, err);
    if (rc == BH_OK && (fchmod(fd, 0644) != 0 || rename(made, path) != 0))
        rc = bh_err_errno(err, "replace %s", path);
    return rc;
}

/* The file of the entries from `at` on that have one name; how many those are. */
static uint32_t
job_mapping_write(const struct bh_node *node, const struct job_mapping_entry *entries, uint32_t count)
{
    const char *folder = node->conf.hpc_job_mapping_dir;
    struct bh_buf text;
    struct bh_err err;
    uint32_t used = 0;

    bh_buf_init(&text, FILE_MAX);
    for (; used < count && strcmp(entries[used].name, entries[0].name) == 0; used++)
        if (used == 0 || entries[used].job != entries[used - 1].job)
            bh_buf_printf(&text, "%" PRIu64 "\n", entries[used].job);
    if (job_mapping_replace(folder, entries[0].name, &text, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "job mapping"), BH_STR("path", folder), BH_ERRLOG(&err));
    bh_buf_fini(&text);
    return used;
}

/* As the exporter does: digits, or digits, a point and digits. */
static bool
job_mapping_is_name(const char *name)
{
    size_t whole = strspn(name, "0123456789");

    if (whole == 0 || name[whole] == '\0')
        return whole > 0;
    return name[whole] == '.' && name[whole + 1]
           && strspn(name + whole + 1, "0123456789") == strlen(name + whole + 1);
}

static bool
job_mapping_has(const struct job_mapping_entry *entries, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(entries[i].name, name) == 0)
            return true;
    return false;
}

/* Files of what no job holds any more, also of before the node was started. */
static void
job_mapping_remove(const struct bh_node *node, const struct job_mapping_entry *entries, uint32_t count)
{
    DIR *folder = opendir(node->conf.hpc_job_mapping_dir);

    for (const struct dirent *file; folder && (file = readdir(folder));)
        if (job_mapping_is_name(file->d_name) && !job_mapping_has(entries, count, file->d_name))
            (void)unlinkat(dirfd(folder), file->d_name, 0);
    if (folder)
        closedir(folder);
}

void
bh_job_mapping_tick(struct bh_node *node)
{
    struct job_mapping_entry *entries;
    uint64_t print;
    uint32_t count;

    bh_node_assert(node);
    if (!*node->conf.hpc_job_mapping_dir)
        return;
    print = job_mapping_print(node);
    if (print == node->job_mapping_print)
        return;
    (void)mkdir(node->conf.hpc_job_mapping_dir, 0755); /* it is there already, or below says why not */
    count = job_mapping_list(node, &entries);
    for (uint32_t at = 0; at < count;)
        at += job_mapping_write(node, &entries[at], count - at);
    job_mapping_remove(node, entries, count);
    free(entries);
    node->job_mapping_print = print;
}
