#include "api/jobs/log_file.h"

#include <errno.h>
#include <unistd.h>

#include "api/jobs/jobs.h"
#include "api/jobs/members.h"

/* Nodes remove logs (node/common/tenant_logs.h). */
const char bh_log_file_gone_words[] =
    "bulkhead: this job's log was removed: logs of ended jobs are kept for log_retention_days, and of each topmost "
    "tenant as many as fit log_tenant_share of the node's disk, the oldest go first (docs/limits.md)\n";

bool
bh_log_file_is_gone(const struct bh_job_row *row, const char *path)
{
    return row->started_ns && bh_jobs_ended(row->state) && access(path, F_OK) != 0 && errno == ENOENT;
}

bh_rc
bh_log_file_find(struct bh_call *call, struct bh_job_row *ret_row, const char **ret_path, struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    uint32_t member = (uint32_t)call->query.member;
    bh_rc rc = bh_jobs_find_permitted(call, ret_row, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_members_check(ret_row->job, ret_row->gang, member, err);
    if (rc != BH_OK)
        return rc;
    *ret_path = owner->ops->log_path(owner->self, (bh_job_id){ ret_row->job }, member, call->arena);
    return *ret_path ? BH_OK : bh_err_set(err, BH_FULL, "the answer is too large");
}
