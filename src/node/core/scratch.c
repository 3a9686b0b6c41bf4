#include "node/core/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk_space.h"
#include "base/fd.h"
#include "base/num.h"
#include "node/common/path.h"

enum { TRIES = 32 };
#define MKFS "/usr/sbin/mkfs.ext4"

void
bh_scratch_folder(const struct bh_node *node, char ret_path[BH_NODE_PATH_MAX])
{
    if (*node->conf.scratch_dir)
        bh_path_format(ret_path, BH_NODE_PATH_MAX, "%s", node->conf.scratch_dir);
    else
        bh_path_format(ret_path, BH_NODE_PATH_MAX, "%s/scratch", node->conf.state_dir);
}

void
bh_scratch_path(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX])
{
    char folder[BH_NODE_PATH_MAX];

    bh_scratch_folder(node, folder);
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%.400s/%" PRIu64 ".img", folder, lease);
}

/* Of a job that an earlier run of the node started, its file says it. */
static uint64_t
scratch_bytes_of(const struct bh_node *node, const struct bh_job *job)
{
    char path[BH_NODE_PATH_MAX];
    struct stat st;

    if (job->ended || job->scratch_bytes)
        return job->ended ? 0 : job->scratch_bytes;
    bh_scratch_path(node, job->record.lease, path);
    return lstat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* A lease of before parties were noted is its own tenant's alone. */
static bool
scratch_is_of_party(const struct bh_node_record *a, const struct bh_node_record *b)
{
    return *a->party && *b->party ? strcmp(a->party, b->party) == 0 : a->tenant == b->tenant;
}

/* No job and no tenant may have all of a node's scratch. */
static bh_rc
scratch_check_tenant(const struct bh_node *node, const struct bh_job *job, const char *folder, uint64_t bytes,
                     struct bh_err *err)
{
    struct bh_disk_space space = bh_disk_space_at(folder);
    uint64_t most = (space.size - bh_disk_space_reserved(&space)) / 100 * node->conf.scratch_tenant_share;
    uint64_t used = 0;

    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *other = &node->state.jobs[i];

        if (other != job && scratch_is_of_party(&other->record, &job->record))
            used += scratch_bytes_of(node, other);
    }
    if (space.size == 0 || (bytes <= most && used <= most - bytes))
        return BH_OK;
    /* not how much the others have: they may be behind a boundary */
    bh_err_set(err, bytes > most ? BH_RANGE : BH_QUOTA,
               "%" PRIu64 " MiB are more than %sthis tenant's part of the node's scratch, %" PRIu64
               " MiB for all tenants under %s",
               bytes >> 20, bytes > most ? "" : "is left of ", most >> 20,
               *job->record.party ? job->record.party : "it");
    return bh_err_hint(err, bytes > most ? "ask for less; scratch_tenant_share in node.conf is the limit"
                                         : "it is retried when a job on the node has ended");
}

bh_rc
bh_scratch_acquire(const struct bh_node *node, struct bh_job *job, uint64_t bytes, struct bh_err *err)
{
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc;

    if (bytes > (uint64_t)node->conf.scratch_max_mib << 20) {
        bh_err_set(err, BH_RANGE, "%" PRIu64 " MiB are more than %u", bytes >> 20,
                   node->conf.scratch_max_mib);
        return bh_err_hint(err, "the administrator can raise scratch_max_mib in node.conf");
    }
    if (access(MKFS, X_OK) != 0) {
        bh_err_set(err, BH_UNAVAILABLE, "%s is not on this node", MKFS);
        return bh_err_hint(err, "install e2fsprogs (apt install e2fsprogs)");
    }
    bh_scratch_folder(node, folder);
    rc = bh_dir_make(folder, 0700, err);
    if (rc != BH_OK)
        return rc;
    rc = scratch_check_tenant(node, job, folder, bytes, err);
    if (rc != BH_OK)
        return rc;
    job->scratch_bytes = bytes;
    return BH_OK;
}

/* ---- mounting ---- */

/* A loop device that releases the file after its last user.  Other programs take free devices at the same
 * time. */
static bh_rc
scratch_attach(int file, int *ret_device, char ret_path[32], struct bh_err *err)
{
    struct loop_config config = { .fd = (uint32_t)file,
                                  .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO };
    BH_AUTO(bh_fd_close)
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    if (control < 0) {
        bh_err_errno(err, "open /dev/loop-control");
        return err->rc = BH_UNAVAILABLE;
    }
    for (int i = 0; i < TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE), device;

        if (number < 0)
            return bh_err_errno(err, "find a free loop device");
        snprintf(ret_path, 32, "/dev/loop%d", number);
        device = open(ret_path, O_RDWR | O_CLOEXEC);
        if (device >= 0 && ioctl(device, LOOP_CONFIGURE, &config) == 0) {
            *ret_device = device;
            return BH_OK;
        }
        bh_fd_close(device);
        if (device < 0 || errno != EBUSY)
            return bh_err_errno(err, "attach %s", ret_path);
    }
    return bh_err_set(err, BH_IO, "other processes take every free loop device");
}

bh_rc
bh_scratch_mount(const struct bh_node *node, uint64_t lease, const char *place, uint32_t owner,
                 struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int file = -1;
    BH_AUTO(bh_fd_close)
    int device = -1;
    char path[BH_NODE_PATH_MAX], name[32];
    bh_rc rc;

    bh_scratch_path(node, lease, path);
    rc = bh_file_open(path, O_RDWR | O_NOFOLLOW, 0, &file, err);
    if (rc != BH_OK)
        return rc;
    rc = scratch_attach(file, &device, name, err);
    if (rc != BH_OK)
        return rc;
    if (mount(name, place, "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, "") != 0)
        return bh_err_errno(err, "mount it");
    if (lchown(place, owner, owner) != 0)
        return bh_err_errno(err, "give it to the job");
    return BH_OK;
}

/* ---- removing ---- */

void
bh_scratch_remove(const struct bh_node *node, uint64_t lease)
{
    char path[BH_NODE_PATH_MAX];

    bh_scratch_path(node, lease, path);
    unlink(path);
}

void
bh_scratch_sweep(const struct bh_node *node)
{
    char folder[BH_NODE_PATH_MAX];
    DIR *dir;

    bh_scratch_folder(node, folder);
    dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char name[32];
        struct bh_err ignored;
        uint64_t lease;
        size_t length = strcspn(entry->d_name, ".");
        const struct bh_job *job;

        if (length >= sizeof name || strcmp(entry->d_name + length, ".img") != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)length, entry->d_name);
        if (bh_parse_u64(name, &lease, &ignored) != BH_OK)
            continue;
        job = bh_state_job(&node->state, lease);
        if (!job || job->ended)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
}
