#include "node/core/host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "node/common/path.h"
#include "node/core/state_check.h"

#define LOCK_TIMEOUT (2 * BH_NS_PER_S)
#define LOCK_POLL_INTERVAL (10 * BH_NS_PER_MS)

/* ---- paths of jobs ---- */

void
bh_node_job_id(uint64_t lease, char ret_id[32])
{
    snprintf(ret_id, 32, "bh-%" PRIu64, lease);
}

void
bh_node_job_folder(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX])
{
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%s/jobs/%" PRIu64, node->conf.state_dir, lease);
}

void
bh_node_job_bundle(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX])
{
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%s/bh-%" PRIu64, node->sandboxes, lease);
}

/* ---- what holds ---- */

void
bh_node_assert(const struct bh_node *node)
{
    const struct bh_inventory *inventory = &node->inventory;

    bh_state_assert(&node->state);
    BH_ASSERT(!node->hello_received || node->link);
    BH_ASSERT(node->reported_changes == UINT64_MAX || node->reported_changes <= node->state.changes);
    BH_ASSERT(node->orphaned_count <= BH_COUNT(node->orphaned));
    BH_ASSERT(inventory->gpu_count == 0 || inventory->gpus);
    BH_ASSERT(inventory->instance_count == 0 || inventory->instances);
    BH_ASSERT(!node->inventory_known || node->scans > 0);
    BH_STATE_ASSERT_TEXT(inventory->driver);
    BH_STATE_ASSERT_TEXT(node->boot);
}

/* ---- the daemon's connection ---- */

void
bh_node_disconnect(struct bh_node *node)
{
    bh_node_assert(node);
    if (node->link)
        bh_link_free(node->link);
    node->link = NULL;
    node->hello_received = false;
}

void
bh_node_send(struct bh_node *node, uint32_t number, const void *message)
{
    struct bh_err err;

    bh_node_assert(node);
    BH_ASSERT(message && bh_message_fields(number));
    if (node->hello_received
        && bh_link_send(node->link, number, bh_message_fields(number), message, &err) != BH_OK)
        bh_node_disconnect(node);
}

bool
bh_host_allows(const struct bh_node *node, int fd)
{
    struct bh_peer peer;
    struct bh_err ignored;

    if (bh_unix_peer(fd, &peer, &ignored) != BH_OK)
        return false;
    if (peer.uid == 0 || peer.uid == node->conf.daemon_uid || peer.uid == geteuid())
        return true;
    bh_log(PEER_REFUSED, BH_U64("uid", peer.uid), BH_U64("pid", (uint64_t)peer.pid));
    return false;
}

/* ---- the machine ---- */

/* A child of a node that was just killed may hold it until it executes its program. */
bool
bh_host_lock_file(int fd)
{
    bh_ns deadline = bh_time_monotonic() + LOCK_TIMEOUT;

    while (flock(fd, LOCK_EX | LOCK_NB) != 0 && bh_time_monotonic() < deadline)
        bh_time_sleep(LOCK_POLL_INTERVAL);
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

bh_rc
bh_host_lock(struct bh_node *node, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    int fd; /* held until the end */
    bh_rc rc;

    bh_path_format(path, sizeof path, "%s/lock", node->conf.state_dir);
    rc = bh_file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, &fd, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_host_lock_file(fd))
        return bh_err_set(err, BH_CONFLICT, "another bulkhead-node runs on %s", node->conf.state_dir);
    return BH_OK;
}

static bh_rc
host_check_component(int fd, const char *path, bool last, struct bh_err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return bh_err_errno(err, "inspect %s", path);
    if (st.st_uid != 0)
        return bh_err_set(err, BH_DENIED, "%s belongs to user %u and not to root", path, st.st_uid);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (!last && (st.st_mode & S_ISVTX)))
        return BH_OK;
    bh_err_set(err, BH_DENIED, "%s can be written by users other than root", path);
    return bh_err_hint(err, "chmod go-w %s", path);
}

bh_rc
bh_host_check_folder(const char *path, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char shown[BH_NODE_PATH_MAX], name[256];
    const char *at = path;

    for (;;) {
        size_t length;
        int next;
        bh_rc rc;

        at += strspn(at, "/");
        bh_path_format(shown, sizeof shown, "%.*s", (int)(at - path), path);
        rc = host_check_component(fd, shown, !*at, err);
        if (rc != BH_OK || !*at)
            return rc;
        length = strcspn(at, "/");
        if (length >= sizeof name)
            return bh_err_set(err, BH_INVALID, "%.60s is too long", path);
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        at += length;
        if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
            return bh_err_set(err, BH_DENIED, "%.*s is not a folder, or is a symbolic link", (int)(at - path),
                              path);
        if (next < 0)
            return bh_err_errno(err, "open %.*s", (int)(at - path), path);
        bh_fd_close(fd);
        fd = next;
    }
}

/* Paths named by a job's root are opened by the job's own user: each folder above must
 * let others pass. */
bh_rc
bh_host_isolate(struct bh_node *node, struct bh_err *err)
{
    char unified[BH_NODE_PATH_MAX];

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        bh_err_errno(err, "make a private mount namespace");
        return bh_err_hint(err, "bulkhead-node must run as root");
    }
    bh_path_format(unified, sizeof unified, "%s/unified", node->conf.cgroup_mount);
    if (umount2(unified, MNT_DETACH) != 0 && errno != EINVAL && errno != ENOENT)
        return bh_err_errno(err, "unmount %s", unified);
    return bh_path_mount_tmpfs("bulkhead-boxes", node->sandboxes, 0711, err);
}

/* "195 nvidia-caps": the number before the name, or 0. */
static uint32_t
host_major_of(const char *devices, const char *name)
{
    for (const char *line = devices; line; line = strchr(line, '\n')) {
        char found[64];
        uint32_t number;

        line += *line == '\n';
        if (strncmp(line, "Block", 5) == 0)
            return 0;
        if (sscanf(line, "%u %63s", &number, found) == 2 && strcmp(found, name) == 0)
            return number;
    }
    return 0;
}

void
bh_host_read_majors(struct bh_node *node)
{
    char path[BH_NODE_PATH_MAX];
    struct bh_buf text;
    struct bh_err ignored;

    bh_path_format(path, sizeof path, "%s/devices", node->conf.proc_root);
    bh_buf_init(&text, 1 << 20);
    if (bh_file_read(path, (1 << 20) - 1, &text, &ignored) == BH_OK && text.length > 0) {
        node->caps_major = host_major_of(bh_buf_text(&text), "nvidia-caps");
        node->uvm_major = host_major_of(bh_buf_text(&text), "nvidia-uvm");
    }
    if (node->conf.caps_major)
        node->caps_major = node->conf.caps_major;
    bh_buf_fini(&text);
}

bh_rc
bh_host_describe(struct bh_node *node, struct bh_err *err)
{
    struct bh_err ignored;
    bh_rc rc = bh_proc_own_folder(node->libexec, sizeof node->libexec, err);

    if (rc != BH_OK)
        return rc;
    if (*node->conf.libexec_dir)
        snprintf(node->libexec, sizeof node->libexec, "%s", node->conf.libexec_dir);
    if (*node->conf.node_name)
        snprintf(node->name, sizeof node->name, "%s", node->conf.node_name);
    else if (gethostname(node->name, sizeof node->name - 1) != 0)
        return bh_err_errno(err, "read the host name");
    (void)!bh_proc_boot_id(node->boot, &ignored);
    bh_host_read_majors(node);
    return BH_OK;
}
