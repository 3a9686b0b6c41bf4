#include "node/core/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/fd.h"
#include "base/log.h"
#include "node/common/path.h"
#include "node/core/host.h"
#include "runtime/cgroup.h"

/* Root's alone to read and write, on either version of control groups. */
#define SITE_ATTRIBUTE "trusted.bulkhead.site"

enum { SITE_MAX = BH_NODE_PATH_MAX + 64 };

/* "254:1:2 /var/lib/bulkhead/node": the same path below another root is another site. */
static bh_rc
claim_own_site(const struct bh_node *node, char ret_site[SITE_MAX], struct bh_err *err)
{
    struct stat root;

    if (stat("/", &root) != 0)
        return bh_err_errno(err, "inspect /");
    bh_path_format(ret_site, SITE_MAX, "%u:%u:%llu %s", major(root.st_dev), minor(root.st_dev),
                   (unsigned long long)root.st_ino, node->conf.state_dir);
    return BH_OK;
}

/* "": the group is new, or of a version that did not mark it. */
static void
claim_read_site(int fd, char ret_site[SITE_MAX])
{
    ssize_t n = fgetxattr(fd, SITE_ATTRIBUTE, ret_site, SITE_MAX - 1);

    ret_site[n > 0 ? n : 0] = '\0';
}

/* What cannot be read may be a job of the other site, and to take the group over would end it. */
static bool
claim_has_jobs(const struct bh_node *node, const struct bh_cgroup_host *cgroups)
{
    static struct bh_cgroup_names found;
    static struct bh_cgroup_members members;
    char path[BH_NODE_PATH_MAX];
    struct bh_err ignored;

    if (bh_cgroup_list(cgroups, node->conf.cgroup_parent, &found, &ignored) != BH_OK)
        return true;
    for (uint32_t i = 0; i < found.count; i++) {
        bh_path_format(path, sizeof path, "%s/%s", node->conf.cgroup_parent, found.names[i]);
        if (bh_cgroup_processes(cgroups, path, &members, &ignored) != BH_OK || members.count)
            return true;
    }
    return false;
}

static bh_rc
claim_is_claimed(const struct bh_node *node, const char *site, const char *by, struct bh_err *err)
{
    const char *blank = strchr(site, ' ');

    bh_err_set(err, BH_CONFLICT, "control group %.80s belongs to the site of %.160s, whose %s",
               node->conf.cgroup_parent, blank ? blank + 1 : "another bulkhead-node", by);
    return bh_err_hint(
        err,
        "give this site a separate one: cgroup_parent = %.80s-2 in its node.conf; or end the other site "
        "and its jobs",
        node->conf.cgroup_parent);
}

/* A file of the group that root alone can open, for the lock: one that others may open they may
 * lock, too.  The kernel makes the first two so (version 2 since Linux 5.14, version 1), and neither
 * is written to; where there is none the list of processes is made so. */
static bh_rc
claim_open_lock(int folder, int *ret_fd, struct bh_err *err)
{
    static const char *const names[] = { "cgroup.kill", "memory.force_empty", "cgroup.procs" };
    BH_AUTO(bh_fd_close) int fd = -1;
    struct stat st;

    for (size_t i = 0; i < BH_COUNT(names) && fd < 0; i++)
        fd = openat(folder, names[i], O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || ((st.st_mode & 077) && fchmod(fd, st.st_mode & 0700) != 0))
        return bh_err_errno(err, "open a file to lock");
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

struct group {
    int folder, lock;
};

static bh_rc
claim_open_group(const struct bh_node *node, const struct bh_cgroup_host *cgroups, struct group *group,
                 struct bh_err *err)
{
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc = bh_cgroup_make_parent(cgroups, node->conf.cgroup_parent, folder, sizeof folder, err);

    if (rc != BH_OK)
        return rc;
    group->folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (group->folder < 0)
        return bh_err_errno(err, "open %s", folder);
    rc = claim_open_lock(group->folder, &group->lock, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", folder);
}

/* Lock first: only the holder of the lock may read the mark and change it. */
static bh_rc
claim_group(struct bh_node *node, const struct bh_cgroup_host *cgroups, const struct group *group,
            struct bh_err *err)
{
    char own[SITE_MAX], site[SITE_MAX];
    bool locked = bh_host_lock_file(group->lock);
    bh_rc rc = claim_own_site(node, own, err);

    if (rc != BH_OK)
        return rc;
    claim_read_site(group->folder, site);
    if (!locked)
        return claim_is_claimed(node, site, "node runs", err);
    if (*site && strcmp(site, own) != 0 && claim_has_jobs(node, cgroups))
        return claim_is_claimed(node, site, "jobs run there", err);
    if (fsetxattr(group->folder, SITE_ATTRIBUTE, own, strlen(own), 0) != 0)
        return bh_err_errno(err, "mark control group %s", node->conf.cgroup_parent);
    return BH_OK;
}

bh_rc
bh_claim_groups(struct bh_node *node, struct bh_err *err)
{
    struct group group = { .folder = -1, .lock = -1 };
    struct bh_cgroup_host cgroups;
    bh_rc rc = bh_cgroup_probe(node->conf.cgroup_mount, &cgroups, err);

    if (rc == BH_OK)
        rc = claim_open_group(node, &cgroups, &group, err);
    if (rc == BH_OK)
        rc = claim_group(node, &cgroups, &group, err);
    bh_fd_close(group.folder);
    if (rc == BH_OK)
        node->claim_fd = group.lock;
    else
        bh_fd_close(group.lock);
    return rc;
}

void
bh_claim_leave(struct bh_node *node)
{
    struct bh_cgroup_host cgroups;
    struct bh_err ignored;

    if (node->claim_fd < 0)
        return;
    if (bh_cgroup_probe(node->conf.cgroup_mount, &cgroups, &ignored) == BH_OK)
        bh_cgroup_remove_empty(&cgroups, node->conf.cgroup_parent);
    bh_fd_close(node->claim_fd);
    node->claim_fd = -1;
}
