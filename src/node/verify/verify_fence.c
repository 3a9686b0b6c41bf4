#include "node/verify/verify_fence.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "node/core/state_check.h"
#include "node/job/job.h"
#include "node/placement/health_state.h"
#include "node/verify/verify_internal.h"

void
bh_verify_assert(const struct bh_verify *verify)
{
    BH_ASSERT(verify->asked_count <= BH_COUNT(verify->asked) && verify->canary >= -1);
    BH_ASSERT(!verify->probe || (verify->asked_count > 0 && verify->until));
    BH_ASSERT(verify->isolation < BH_ISOLATION_PARTLY_FAILED);
    BH_ASSERT(!verify->failed_node || (!verify->retry.at && verify->isolation == BH_ISOLATION_FAILED));
    BH_ASSERT(verify->fences.count <= BH_COUNT(verify->fences.entries));
    BH_ASSERT(verify->own.count <= BH_COUNT(verify->own.checks));
    BH_ASSERT(verify->report.count <= BH_COUNT(verify->report.checks));
    BH_STATE_ASSERT_TEXT(verify->why);
    BH_STATE_ASSERT_TEXT(verify->driver);
}

static bool
verify_fence_closes_all(const struct bh_verify *verify)
{
    return verify->isolation == BH_ISOLATION_INCONCLUSIVE || verify->isolation == BH_ISOLATION_FAILED;
}

const char *
bh_verify_why(const struct bh_node *node, const char *gpu)
{
    if (!node->verify)
        return NULL;
    bh_verify_assert(node->verify);
    return verify_fence_closes_all(node->verify) ? node->verify->why
                                                 : bh_fence_find(&node->verify->fences, gpu);
}

uint64_t
bh_verify_fence_retry_ns(const struct bh_verify *verify)
{
    bh_ns now = bh_time_monotonic(), at = verify->retry.at;

    return at ? bh_time_now() + (at > now ? at - now : 0) : 0;
}

void
bh_verify_isolation(const struct bh_node *node, struct bh_msg_isolation *ret_isolation)
{
    const struct bh_verify *verify = node->verify;

    bh_verify_assert(verify);
    *ret_isolation =
        (struct bh_msg_isolation){ .state = verify->isolation,
                                   .tries = verify->retry.made,
                                   .retry_ns = bh_verify_fence_retry_ns(verify),
                                   .gpus = verify_fence_closes_all(verify) ? node->inventory.gpu_count
                                                                           : verify->fences.count };
    memcpy(ret_isolation->why, verify->why, sizeof ret_isolation->why);
    if (verify_fence_closes_all(verify) || verify->fences.count == 0)
        return;
    ret_isolation->state = BH_ISOLATION_PARTLY_FAILED;
    snprintf(ret_isolation->why, sizeof ret_isolation->why, "%s", verify->fences.entries[0].why);
}

static void
verify_fence_send(struct bh_node *node, const char *gpu, uint32_t fault, const char *why)
{
    struct bh_msg_health health = { .fault = fault, .gi = BH_WHOLE_GPU, .recovery = UINT32_MAX };

    snprintf(health.gpu, sizeof health.gpu, "%s", gpu);
    snprintf(health.why, sizeof health.why, "%s", why);
    bh_node_send(node, BH_MSG_HEALTH, &health);
    node->sample_at = 0; /* the samples have the reason */
}

/* Those that do not answer are reported when they do again (node/partition/health.h). */
static bool
verify_fence_answers(const struct bh_node *node, const struct bh_device_gpu *gpu)
{
    return !gpu->lost && !bh_health_is_unresponsive(node, gpu->uuid);
}

void
bh_verify_fence_close_all(struct bh_node *node, enum bh_isolation isolation, const char *why)
{
    struct bh_verify *verify = node->verify;

    bh_verify_assert(verify);
    BH_ASSERT(isolation == BH_ISOLATION_INCONCLUSIVE || isolation == BH_ISOLATION_FAILED);
    if (isolation >= verify->isolation) {
        verify->isolation = isolation;
        snprintf(verify->why, sizeof verify->why, "%s", why);
    }
    for (uint32_t i = 0; i < node->inventory.gpu_count; i++) {
        if (!verify_fence_answers(node, &node->inventory.gpus[i]))
            continue;
        bh_job_check_gpu(node, node->inventory.gpus[i].uuid);
        verify_fence_send(node, node->inventory.gpus[i].uuid, BH_FAULT_ISOLATION, why);
    }
    for (uint32_t i = 0; isolation == BH_ISOLATION_FAILED && i < node->state.job_count; i++)
        bh_job_recheck_soon(&node->state.jobs[i]);
}

/* One GPU, the first that the lease was lent. */
void
bh_verify_close_gpu(struct bh_node *node, const struct bh_job *job, const char *why)
{
    struct bh_fences *fences = &node->verify->fences;
    const char *gpu = job->record.lent[0].gpu;

    bh_state_assert_job(&node->state, job);
    bh_verify_assert(node->verify);
    bh_log(CHECK_FAILED, BH_U64("lease", job->record.lease), BH_U64("job", job->record.job),
           BH_STR("why", why));
    if (job->record.lent_count > 0 && bh_fence_add(fences, gpu, job->record.job, why))
        verify_fence_send(node, gpu, BH_FAULT_ISOLATION, bh_fence_find(fences, gpu));
}

void
bh_verify_fence_plan(struct bh_node *node, bool failed, const char *why)
{
    struct bh_verify *verify = node->verify;
    bh_ns now = bh_time_monotonic();

    bh_verify_assert(verify);
    BH_ASSERT(verify->retry.made <= node->conf.verify_retries);
    verify->failed_node = verify->failed_node || failed;
    if (verify->failed_node)
        verify->retry = (struct bh_verify_retry){ 0 };
    else
        bh_verify_retry_schedule(&verify->retry, &node->conf, now);
    if (!failed)
        bh_log(CHECKS_INCONCLUSIVE, BH_STR("node", node->name), BH_STR("why", why),
               BH_U64("tries", verify->retry.made),
               BH_U64("again_ms", verify->retry.at ? (verify->retry.at - now) / BH_NS_PER_MS : 0));
}

void
bh_verify_fence_lift(struct bh_node *node, bool asked)
{
    struct bh_verify *verify = node->verify;
    bool all = verify_fence_closes_all(verify);

    bh_verify_assert(verify);
    for (uint32_t i = 0; i < node->inventory.gpu_count; i++) {
        const struct bh_device_gpu *gpu = &node->inventory.gpus[i];
        bool listed = bh_fence_find(&verify->fences, gpu->uuid) != NULL;

        if ((asked ? all || listed : all && !listed) && verify_fence_answers(node, gpu))
            verify_fence_send(node, gpu->uuid, BH_FAULT_NONE, "the isolation checks passed");
    }
    verify->isolation = BH_ISOLATION_PASSED;
    memcpy(verify->passed_driver, verify->driver, sizeof verify->passed_driver);
    verify->why[0] = '\0';
    verify->retry = (struct bh_verify_retry){ 0 };
    if (!asked)
        return;
    bh_fence_lift(&verify->fences);
    verify->failed_node = false;
}

bh_rc
bh_verify_check_start(const struct bh_node *node, const struct bh_msg_start *start, struct bh_err *err)
{
    const struct bh_verify *verify = node->verify;

    bh_verify_assert(verify);
    if (verify_fence_closes_all(verify)) {
        bh_err_set(err, BH_UNAVAILABLE, "isolation was not verified: %.150s", verify->why);
        return bh_err_hint(err, "bulkhead verify %.60s", node->name);
    }
    for (uint32_t i = 0; i < start->partition_count; i++) {
        const struct bh_node_partition *partition =
            bh_state_partition(&node->state, start->partitions[i].partition);

        if (partition && bh_verify_why(node, partition->gpu))
            return bh_err_set(err, BH_UNAVAILABLE, "isolation on %s was not verified", partition->gpu);
    }
    return BH_OK;
}
