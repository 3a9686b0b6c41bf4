#include "api/jobs/job_filter.h"

#include <stdio.h>
#include <string.h>

#include "api/request/visible.h"
#include "model/job.h"

enum { PAGE_DEFAULT = 100, UUID_SHOWN = 12 /* of a GPU's UUID in a row's `partitions` */ };

static bool
job_filter_is_state(const char *state)
{
    for (int i = 0; i < BH_JOB_STATES; i++)
        if (strcmp(bh_job_state_names[i], state) == 0)
            return true;
    return false;
}

static bh_rc
job_filter_read_state(const char *state, struct bh_job_filter *filter, struct bh_err *err)
{
    filter->state = state;
    if (!state || job_filter_is_state(state))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "state: \"%.40s\" is no state of a job", state);
    return bh_err_hint(err, "states: pending starting running suspending suspended resuming "
                            "stopping completed failed cancelled");
}

static bh_rc
job_filter_read_mine(const struct bh_call *call, struct bh_job_filter *filter, struct bh_err *err)
{
    filter->principal_id = call->query.mine ? call->caller.subject.principal.v : 0;
    if (!call->query.mine || filter->principal_id)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "mine: root is no principal and has no jobs of its own");
    return bh_err_hint(err, "leave mine out, or call as a principal of the site file");
}

/* A cursor of the other order would begin somewhere else than the caller thinks. */
static bh_rc
job_filter_read_order(const struct bh_query *query, struct bh_job_filter *filter, struct bh_err *err)
{
    bh_rc rc = bh_query_read_order(query, &filter->newest, err);

    if (rc != BH_OK)
        return rc;
    filter->after = query->after;
    filter->before = query->given.before ? query->before : INT64_MAX;
    if (filter->newest && query->given.after)
        return bh_err_set(err, BH_INVALID, "after: with order=newest the page before gives `before`");
    if (!filter->newest && query->given.before)
        return bh_err_set(err, BH_INVALID,
                          "before: only with order=newest; else the page before gives `after`");
    return BH_OK;
}

static bh_rc
job_filter_limit_tenants(struct bh_call *call, struct bh_job_filter *filter, struct bh_err *err)
{
    struct bh_visible visible;
    bh_rc rc = bh_visible_read(call, "job.view", &visible, err);

    if (rc != BH_OK)
        return rc;
    filter->tenants = visible.all ? NULL : visible.ids;
    filter->tenant_count = visible.all ? 0 : visible.count;
    return BH_OK;
}

bh_rc
bh_job_filter_read(struct bh_call *call, struct bh_job_filter *ret_filter, struct bh_err *err)
{
    const struct bh_query *query = &call->query;
    struct bh_job_filter filter = { .active_only = query->active,
                                    .ended_only = query->ended,
                                    .limit = query->given.limit ? (uint32_t)query->limit : PAGE_DEFAULT };
    bh_rc rc;

    if (filter.limit == 0)
        return bh_err_set(err, BH_RANGE, "limit: must be at least 1");
    if (filter.active_only && filter.ended_only)
        return bh_err_set(err, BH_INVALID, "active and ended: no job is both");
    rc = job_filter_read_order(query, &filter, err);
    if (rc == BH_OK)
        rc = job_filter_read_state(query->state, &filter, err);
    if (rc == BH_OK)
        rc = job_filter_read_mine(call, &filter, err);
    if (rc == BH_OK)
        rc = job_filter_limit_tenants(call, &filter, err);
    if (rc == BH_OK)
        *ret_filter = filter;
    return rc;
}

bh_rc
bh_job_filter_read_gpu(const struct bh_call *call, char ret_gpu[BH_JOB_FILTER_GPU_SIZE], struct bh_err *err)
{
    const char *uuid = call->query.gpu;

    ret_gpu[0] = '\0';
    if (!uuid)
        return BH_OK;
    if (!bh_directory_gpu_uuid(call->dir, uuid)) {
        bh_err_set(err, BH_NOT_FOUND, "gpu: no GPU %.80s", uuid);
        return bh_err_hint(err, "`bulkhead gpu -o wide` lists them by their UUIDs");
    }
    snprintf(ret_gpu, BH_JOB_FILTER_GPU_SIZE, "%.*s ", UUID_SHOWN, uuid);
    return BH_OK;
}
