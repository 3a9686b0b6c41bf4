#include "node/placement/mig_change.h"

#include <inttypes.h>
#include <string.h>

#include "model/driver.h"
#include "node/core/state_check.h"
#include "node/placement/placement.h"

static bool
stands_on(const struct bh_job *job, const char *gpu)
{
    for (uint32_t i = 0; i < job->record.lent_count; i++)
        if (strcmp(job->record.lent[i].gpu, gpu) == 0)
            return true;
    return false;
}

bh_rc
bh_mig_change_check(const struct bh_node *node, const char *gpu, uint32_t tenant, struct bh_err *err)
{
    char memory[80];
    struct bh_buf fixed;

    if (bh_driver_is_fixed(node->inventory.driver, BH_DRIVER_REPARTITION))
        return BH_OK;
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        bh_state_assert_job(&node->state, job);
        if (!job->running || job->ended || bh_placement_is_suspended(job) || !stands_on(job, gpu)
            || (tenant && job->record.tenant == tenant))
            continue;
        bh_err_set(err, BH_CONFLICT,
                   "lease %" PRIu64 " of another tenant runs on GPU %s, and "
                   "driver %s lacks the fix for %s",
                   job->record.lease, gpu, node->inventory.driver, bh_driver_fix_cve(BH_DRIVER_REPARTITION));
        bh_buf_init_fixed(&fixed, memory, sizeof memory);
        bh_driver_put_fixed(&fixed, BH_DRIVER_REPARTITION);
        return bh_err_hint(err, "install driver %s or newer of its branch", bh_buf_text(&fixed));
    }
    return BH_OK;
}
