#include "api/jobs/job_rights.h"

#include <string.h>

#include "base/attr.h"

enum job_stage { STAGE_ANY, STAGE_HELD, STAGE_RUNNING, STAGE_NOT_ENDED };

static const struct job_right {
    const char *name;
    const char *verb, *verb_any; /* of the caller's own jobs, and of others' */
    enum job_stage stage;
} rights[] = {
    { "cancel", "job.cancel", "job.cancel.any", STAGE_NOT_ENDED },
    { "exec", "job.exec", "job.exec.any", STAGE_RUNNING },
    { "logs", "job.logs", "job.logs", STAGE_ANY },
    { "records", "record.view", "record.view", STAGE_ANY },
    { "release", "job.cancel", "job.cancel.any", STAGE_HELD },
    { "submit", "job.submit", "job.submit", STAGE_ANY },
    { "verify", "isolation.verify", "isolation.verify", STAGE_RUNNING },
};

static bool
job_rights_is_at(const struct bh_job_row *row, enum job_stage stage)
{
    switch (stage) {
    case STAGE_ANY:
        return true;
    case STAGE_HELD:
        return strcmp(row->state, "pending") == 0 && strcmp(row->reason, "held") == 0;
    case STAGE_RUNNING:
        return strcmp(row->state, "running") == 0;
    case STAGE_NOT_ENDED:
        return row->ended_ns == 0;
    }
    return false;
}

static bool
job_rights_has(const struct bh_call *call, const struct bh_job_row *row, const struct job_right *right)
{
    const struct bh_subject *subject = &call->caller.subject;
    bool own = subject->principal.v && row->principal_id == subject->principal.v;
    struct bh_verdict verdict = bh_authz_check(call->dir, subject, own ? right->verb : right->verb_any,
                                               (bh_tenant_id){ row->tenant_id });

    return job_rights_is_at(row, right->stage) && (verdict.allow || verdict.rule == BH_RULE_STEP_UP);
}

bh_rc
bh_job_rights_list(const struct bh_call *call, const struct bh_job_row *row, struct bh_texts *ret_may,
                   struct bh_err *err)
{
    const char **names;
    uint32_t count = 0;
    bh_rc rc = bh_call_alloc(call, BH_COUNT(rights) * sizeof *names, &names, err);

    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < BH_COUNT(rights); i++)
        if (job_rights_has(call, row, &rights[i]))
            names[count++] = rights[i].name;
    *ret_may = (struct bh_texts){ names, count };
    return BH_OK;
}
