#include "node/placement/cdi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "node/common/path.h"
#include "node/placement/placement.h"

#define PREFIX "bulkhead-lease-"
#define SUFFIX ".json"

enum { NVIDIA_MAJOR = 195, NVIDIA_CTL = 255, SPEC_BYTES_MAX = 256 << 10 };

/* A node as the container gets it: said in full, so that the file on the host is not asked. */
struct node_of {
    char path[64];
    uint32_t major, minor;
    const char *permissions;
};

static void
cdi_put_node(struct bh_json_writer *w, const struct node_of *node)
{
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "path", node->path);
    bh_json_str(w, "type", "c");
    bh_json_u64(w, "major", node->major);
    bh_json_u64(w, "minor", node->minor);
    bh_json_str(w, "permissions", node->permissions);
    bh_json_close(w, '}');
}

/* The parent's node, and of a MIG instance the two that let it in. */
static void
cdi_put_partition_nodes(struct bh_json_writer *w, const struct bh_node *node,
                        const struct bh_node_partition *partition)
{
    struct node_of parent = { .major = NVIDIA_MAJOR, .minor = partition->minor, .permissions = "rw" };
    const uint32_t minors[] = { partition->gi_minor, partition->ci_minor };

    snprintf(parent.path, sizeof parent.path, "/dev/nvidia%" PRIu32, partition->minor);
    cdi_put_node(w, &parent);
    for (size_t i = 0; bh_placement_is_instance(partition) && node->caps_major && i < BH_COUNT(minors); i++) {
        struct node_of cap = { .major = node->caps_major, .minor = minors[i], .permissions = "r" };

        snprintf(cap.path, sizeof cap.path, "/dev/nvidia-caps/nvidia-cap%" PRIu32, minors[i]);
        cdi_put_node(w, &cap);
    }
}

/* One device: the partitions from `first` on, with the variable that names them to CUDA. */
static void
cdi_put_device(struct bh_json_writer *w, const struct bh_node *node, const struct bh_node_record *lease,
               const char *name, uint32_t first)
{
    uint32_t end = name[0] == 'l' ? lease->lent_count : first + 1;
    char memory[1024];
    struct bh_buf visible;

    bh_buf_init_fixed(&visible, memory, sizeof memory);
    bh_buf_puts(&visible, "CUDA_VISIBLE_DEVICES=");
    for (uint32_t i = first; i < end; i++)
        bh_buf_printf(&visible, "%s%s", i > first ? "," : "", lease->lent[i].uuid);
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "name", name);
    bh_json_open(w, "containerEdits", '{');
    bh_json_open(w, "deviceNodes", '[');
    for (uint32_t i = first; i < end; i++)
        cdi_put_partition_nodes(w, node, &lease->lent[i]);
    bh_json_close(w, ']');
    if (bh_buf_text(&visible)) {
        bh_json_open(w, "env", '[');
        bh_json_str(w, NULL, memory);
        bh_json_close(w, ']');
    }
    bh_json_close(w, '}');
    bh_json_close(w, '}');
}

/* What every device needs: the control node, and the driver's libraries read-only. */
static void
cdi_put_common(struct bh_json_writer *w, const struct bh_node *node)
{
    const struct node_of control = { "/dev/nvidiactl", NVIDIA_MAJOR, NVIDIA_CTL, "rw" };
    const struct node_of uvm = { "/dev/nvidia-uvm", node->uvm_major, 0, "rw" };
    static const char *const options[] = { "ro", "nosuid", "nodev", "rbind", "rprivate" };
    bool libraries = node->conf.driver_lib_dir[0] != '\0';

    bh_json_open(w, "containerEdits", '{');
    bh_json_open(w, "env", '[');
    bh_json_str(w, NULL, "NVIDIA_VISIBLE_DEVICES=void"); /* no other hook shall add GPUs */
    if (libraries)
        bh_json_str(w, NULL, "LD_LIBRARY_PATH=/usr/local/nvidia/lib");
    bh_json_close(w, ']');
    bh_json_open(w, "deviceNodes", '[');
    cdi_put_node(w, &control);
    if (node->uvm_major)
        cdi_put_node(w, &uvm);
    bh_json_close(w, ']');
    if (libraries) {
        bh_json_open(w, "mounts", '[');
        bh_json_open(w, NULL, '{');
        bh_json_str(w, "hostPath", node->conf.driver_lib_dir);
        bh_json_str(w, "containerPath", "/usr/local/nvidia/lib");
        bh_json_open(w, "options", '[');
        for (size_t i = 0; i < BH_COUNT(options); i++)
            bh_json_str(w, NULL, options[i]);
        bh_json_close(w, ']');
        bh_json_close(w, '}');
        bh_json_close(w, ']');
    }
    bh_json_close(w, '}');
}

void
bh_cdi_put(struct bh_buf *out, const struct bh_node *node, const struct bh_node_record *lease)
{
    struct bh_json_writer w = bh_json_begin(out);
    char all[40];

    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "cdiVersion", "0.3.0");
    bh_json_str(&w, "kind", "bulkhead.dev/gpu");
    bh_json_open(&w, "devices", '[');
    for (uint32_t i = 0; i < lease->lent_count; i++)
        cdi_put_device(&w, node, lease, lease->lent[i].uuid, i);
    snprintf(all, sizeof all, "lease-%" PRIu64, lease->lease);
    cdi_put_device(&w, node, lease, all, 0);
    bh_json_close(&w, ']');
    cdi_put_common(&w, node);
    bh_json_close(&w, '}');
}

static void
cdi_path_of(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX])
{
    snprintf(ret_path, BH_NODE_PATH_MAX, "%s/" PREFIX "%" PRIu64 SUFFIX, node->conf.cdi_dir, lease);
}

static bool
cdi_is_on(const struct bh_node *node)
{
    return node->conf.cdi_dir[0] == '/';
}

/* Readable by root alone: which tenant's partitions lie where is secret from other users, and the runtimes
 * that read the file run as root.  A reader sees a complete file or none.  It is not synced: when it starts,
 * the node writes the files of the partitions it holds anew and removes the others. */
static bh_rc
cdi_replace(const char *path, const struct bh_buf *text, struct bh_err *err)
{
    char temp[BH_NODE_PATH_MAX + 8];
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc;

    bh_path_format(temp, sizeof temp, "%s.new", path);
    unlink(temp); /* left by a crash */
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return bh_err_errno(err, "create %s", temp);
    rc = bh_fd_write_all(fd, text->bytes, text->length, err);
    if (rc == BH_OK && (fchmod(fd, 0600) != 0 || rename(temp, path) != 0))
        rc = bh_err_errno(err, "replace %s", path);
    if (rc != BH_OK)
        unlink(temp);
    return rc;
}

bh_rc
bh_cdi_write(const struct bh_node *node, const struct bh_node_record *lease, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    struct bh_buf text;
    bh_rc rc = BH_OK;

    if (!cdi_is_on(node) || lease->lent_count == 0)
        return BH_OK;
    cdi_path_of(node, lease->lease, path);
    bh_buf_init(&text, SPEC_BYTES_MAX);
    bh_cdi_put(&text, node, lease);
    if (mkdir(node->conf.cdi_dir, 0700) != 0 && errno != EEXIST)
        rc = bh_err_errno(err, "make folder %s", node->conf.cdi_dir);
    if (rc == BH_OK)
        rc = bh_buf_text(&text) ? cdi_replace(path, &text, err) : bh_err_set(err, BH_FULL, "too long");
    if (rc != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "cdi"), BH_U64("lease", lease->lease), BH_ERRLOG(err));
    bh_buf_fini(&text);
    return rc;
}

/* A file that stays gives another tenant's nodes to a program that asks for the lease's: so that is reported.
 * In a folder that is mounted read-only the kernel refuses before it checks whether the file exists. */
static void
cdi_remove_nodes(int folder, const char *name, uint64_t lease)
{
    struct stat found;
    struct bh_err err;

    if (unlinkat(folder, name, 0) == 0)
        return;
    bh_err_errno(&err, "remove %s", name);
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0)
        bh_log(EFFECT_FAILED, BH_STR("what", "cdi"), BH_U64("lease", lease), BH_ERRLOG(&err));
}

void
bh_cdi_remove(const struct bh_node *node, uint64_t lease)
{
    char path[BH_NODE_PATH_MAX];

    if (!cdi_is_on(node))
        return;
    cdi_path_of(node, lease, path);
    cdi_remove_nodes(AT_FDCWD, path, lease);
}

/* The lease in "bulkhead-lease-12.json", or 0. */
static uint64_t
cdi_lease_in(const char *name)
{
    size_t length = strlen(name), prefix = sizeof PREFIX - 1, suffix = sizeof SUFFIX - 1;
    char number[24];
    struct bh_err unused;
    uint64_t lease = 0;

    if (length <= prefix + suffix || length - prefix - suffix >= sizeof number
        || strncmp(name, PREFIX, prefix) != 0 || strcmp(name + length - suffix, SUFFIX) != 0)
        return 0;
    snprintf(number, sizeof number, "%.*s", (int)(length - prefix - suffix), name + prefix);
    return bh_parse_u64(number, &lease, &unused) == BH_OK ? lease : 0;
}

static bool
cdi_is_lent(const struct bh_node *node, uint64_t lease)
{
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        if (job->record.lease == lease)
            return !job->ended && !bh_placement_is_suspended(job);
    }
    return false;
}

void
bh_cdi_reconcile(const struct bh_node *node)
{
    DIR *dir = cdi_is_on(node) ? opendir(node->conf.cdi_dir) : NULL;
    const struct dirent *entry;
    struct bh_err logged;

    while (dir && (entry = readdir(dir))) {
        uint64_t lease = cdi_lease_in(entry->d_name);

        if (lease && !cdi_is_lent(node, lease))
            cdi_remove_nodes(dirfd(dir), entry->d_name, lease);
    }
    if (dir)
        closedir(dir);
    for (uint32_t i = 0; i < node->state.job_count; i++)
        if (cdi_is_lent(node, node->state.jobs[i].record.lease))
            (void)bh_cdi_write(node, &node->state.jobs[i].record, &logged);
}
