#include "node/job/job_log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk_space.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "node/common/path.h"
#include "node/common/tenant_logs.h"

uint64_t
bh_job_log_free_bytes(const struct bh_node *node, int fd)
{
    uint64_t cap = (uint64_t)node->conf.log_cap_mib << 20;
    struct stat st;

    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size >= cap)
        return 0;
    return cap - (uint64_t)st.st_size;
}

/* In parts of the disk, so that it holds on a small one. */
uint64_t
bh_job_log_bound(const struct bh_node *node, int fd)
{
    return bh_disk_space_of(fd).size / 100 * node->conf.log_tenant_share;
}

bh_rc
bh_job_log_open(const struct bh_node *node, const struct bh_msg_start *start, int *ret_fd, struct bh_err *err)
{
    char name[BH_LOG_NAME_MAX], path[BH_NODE_PATH_MAX], party[BH_PARTY_SIZE];
    const struct bh_tenant_logs logs = { .folder = node->conf.log_dir,
                                         .party = party,
                                         .tenant = start->tenant_id };
    bh_rc rc;

    bh_party_of(start->tenant, party);
    bh_job_log_name(start->job, start->member, start->epoch, name);
    bh_path_format(path, sizeof path, "%s/%s", node->conf.log_dir, name);
    rc = bh_file_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0640, ret_fd, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "create log");
    if (fchown(*ret_fd, 0, node->conf.daemon_gid) != 0 || fchmod(*ret_fd, 0640) != 0)
        return bh_err_errno(err, "give log %s to the daemon's group", path);
    return bh_tenant_logs_add(&logs, name, err);
}

void
bh_job_log_write(const struct bh_node *node, const struct bh_msg_start *start, const char *format, ...)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    char line[600];
    struct bh_err ignored;
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bh_utf8_scrub(line);
    if (bh_job_log_open(node, start, &fd, &ignored) == BH_OK && bh_job_log_free_bytes(node, fd) > sizeof line)
        dprintf(fd, "bulkhead: %s\n", line);
}
