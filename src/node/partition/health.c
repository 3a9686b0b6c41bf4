#include "node/partition/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/utf8.h"
#include "node/core/state_check.h"
#include "node/job/job.h"
#include "node/partition/health_rules.h"
#include "node/partition/partition.h"
#include "node/placement/health_state.h"
#include "node/placement/reset_hold.h"
#include "node/placement/survey.h"
#include "node/verify/verify_fence.h"

#define FRESH BH_NS_PER_S /* what was read so short a time ago is read again from here */
#define HUNG_RETRY_MAX (300 * BH_NS_PER_S)

/* ---- telling ---- */

static struct bh_msg_health
health_message_on(const char *gpu, enum bh_fault fault)
{
    struct bh_msg_health health = {
        .fault = fault, .gi = BH_WHOLE_GPU, .at_ns = bh_time_now(), .recovery = UINT32_MAX
    };

    snprintf(health.gpu, sizeof health.gpu, "%s", gpu);
    return health;
}

/* The oldest give way: the newest say more about the present state. */
static void
health_send(struct bh_node *node, const struct bh_msg_health *health)
{
    struct bh_health_watch *watch = node->health;

    bh_health_watch_assert(watch);
    if (node->link && node->hello_received) {
        bh_node_send(node, BH_MSG_HEALTH, health);
        return;
    }
    if (watch->missed_count == BH_HEALTH_MISSED_MAX)
        memmove(&watch->missed[0], &watch->missed[1], --watch->missed_count * sizeof watch->missed[0]);
    watch->missed[watch->missed_count++] = *health;
}

void
bh_health_connected(struct bh_node *node)
{
    struct bh_health_watch *watch = node->health;

    bh_health_watch_assert(watch);
    for (uint32_t i = 0; i < watch->missed_count; i++)
        bh_node_send(node, BH_MSG_HEALTH, &watch->missed[i]);
    watch->missed_count = 0;
    for (uint32_t i = 0; i < watch->count; i++)
        watch->gpu_state[i].announce = true;
    watch->check_at = 0;
}

/* ---- looking ---- */

/* It does not answer: the daemon should keep new work off this GPU. */
static void
health_is_unresponsive(struct bh_node *node, const char *gpu, enum bh_fault fault, const struct bh_err *err)
{
    struct bh_health_state *gpu_state = bh_health_state_find(node, gpu);
    struct bh_msg_health health = health_message_on(gpu, fault);

    BH_ASSERT(err->rc != BH_OK);
    snprintf(health.why, sizeof health.why, "%.199s", err->msg);
    bh_utf8_scrub(health.why);
    if (gpu_state) {
        bh_ns first = node->conf.health_interval_ms * BH_NS_PER_MS;

        gpu_state->pause = !gpu_state->unresponsive                ? first
                           : gpu_state->pause > HUNG_RETRY_MAX / 2 ? HUNG_RETRY_MAX
                                                                   : 2 * gpu_state->pause;
        gpu_state->retry_at = bh_time_monotonic() + gpu_state->pause;
        if (gpu_state->unresponsive && !gpu_state->announce)
            return;
        gpu_state->unresponsive = true;
        memcpy(gpu_state->why, health.why, sizeof gpu_state->why);
    }
    node->sample_at = 0; /* the samples have the reason */
    bh_job_check_gpu(node, gpu);
    bh_log(GPU_FENCED, BH_STR("gpu", gpu), BH_ERRLOG(err));
    health_send(node, &health);
}

void
bh_health_hung(struct bh_node *node, const char *gpu, const struct bh_err *err)
{
    if (!bh_gpu_child_died(err))
        health_is_unresponsive(node, gpu, BH_FAULT_HUNG, err);
}

static void
health_copy_error(struct bh_node *node, const char *gpu, const struct bh_err *err)
{
    if (err->rc == BH_UNCERTAIN)
        bh_health_hung(node, gpu, err);
    else if (err->rc == BH_NOT_FOUND)
        health_is_unresponsive(node, gpu, BH_FAULT_LOST, err);
}

bh_rc
bh_health_read(struct bh_node *node, const char *gpu, struct bh_device_health *ret_health, struct bh_err *err)
{
    bh_rc rc = node->device.ops->health(node->device.self, gpu, ret_health, err);

    if (rc != BH_OK)
        health_copy_error(node, gpu, err);
    return rc;
}

static void
health_report_rules(struct bh_node *node, struct bh_health_state *gpu_state,
                    const struct bh_device_health *now, bh_ns span)
{
    struct bh_device_health before =
        gpu_state->checked_at && !gpu_state->announce ? gpu_state->health : bh_health_rules_none(now);
    enum bh_health_rule rules[BH_HEALTH_RULES];
    uint32_t count = bh_health_rules_compare(&before, now, span, rules);

    BH_ASSERT(gpu_state >= node->health->gpu_state && *gpu_state->gpu);
    for (uint32_t i = 0; i < count; i++) {
        struct bh_msg_health health = health_message_on(gpu_state->gpu, BH_FAULT_HEALTH_RULE);

        health.sign = rules[i];
        health.recovery = now->recovery;
        snprintf(health.why, sizeof health.why, "%s", bh_health_rule_doc(rules[i]));
        bh_log(HEALTH_SIGN, BH_STR("gpu", gpu_state->gpu), BH_STR("sign", bh_health_rule_names[rules[i]]));
        health_send(node, &health);
    }
}

/* It answers: reported when it did not before, and to a daemon that is new. */
static void
health_report_present(struct bh_node *node, struct bh_health_state *gpu_state,
                      const struct bh_device_health *now)
{
    struct bh_msg_health health = health_message_on(gpu_state->gpu, BH_FAULT_NONE);
    const char *isolation = bh_verify_why(node, gpu_state->gpu);

    BH_ASSERT(gpu_state >= node->health->gpu_state && *gpu_state->gpu);
    if (!gpu_state->unresponsive && !gpu_state->announce && gpu_state->given_up != BH_HEALTH_ASKED_SINCE)
        return;
    if (gpu_state->unresponsive)
        bh_log(GPU_ANSWERS, BH_STR("gpu", gpu_state->gpu));
    gpu_state->unresponsive = false;
    if (gpu_state->given_up == BH_HEALTH_ASKED_SINCE)
        gpu_state->given_up = BH_HEALTH_NOT_GIVEN_UP;
    health.recovery = now->recovery;
    if (isolation) {
        health.fault = BH_FAULT_ISOLATION;
        snprintf(health.why, sizeof health.why, "%s", isolation);
    }
    health_send(node, &health);
}

void
bh_health_found(struct bh_node *node, const char *gpu, const struct bh_device_health *found,
                const struct bh_err *err)
{
    struct bh_health_state *gpu_state = bh_health_state_find(node, gpu);
    bh_ns now = bh_time_monotonic();

    bh_node_assert(node);
    BH_ASSERT(found || err->rc != BH_OK);
    if (!gpu_state || bh_reset_hold_has(node, gpu))
        return;
    if (found) {
        health_report_present(node, gpu_state, found);
        health_report_rules(node, gpu_state, found,
                            gpu_state->checked_at ? now - gpu_state->checked_at : BH_NS_PER_S);
        gpu_state->health = *found;
        gpu_state->checked_at = now;
    } else {
        health_copy_error(node, gpu, err);
    }
    gpu_state->announce = gpu_state->announce && !node->hello_received;
}

bh_ns
bh_health_tick(struct bh_node *node, bh_ns now)
{
    struct bh_health_watch *watch = node->health;

    bh_node_assert(node);
    bh_health_watch_assert(watch);
    if (!node->hello_received)
        return 0;
    if (watch->check_at > now)
        return watch->check_at;
    bh_health_state_learn(node);
    for (uint32_t i = 0; i < watch->count; i++) {
        struct bh_health_state *gpu_state = &watch->gpu_state[i];

        if (bh_reset_hold_has(node, gpu_state->gpu)
            || (gpu_state->unresponsive && gpu_state->retry_at > now && !gpu_state->announce))
            continue;
        bh_survey_health(node, gpu_state->gpu);
        if (gpu_state->given_up == BH_HEALTH_GIVEN_UP)
            gpu_state->given_up = BH_HEALTH_ASKED_SINCE;
    }
    watch->check_at = now + node->conf.health_interval_ms * BH_NS_PER_MS;
    return watch->check_at;
}

/* ---- events ---- */

/* What the driver wants done now; many XIDs at once are one question. */
static uint32_t
health_recovery_of(struct bh_node *node, const char *gpu)
{
    struct bh_health_state *gpu_state = bh_health_state_find(node, gpu);
    bh_ns now = bh_time_monotonic();
    struct bh_device_health health;
    struct bh_err ignored;

    if (gpu_state && gpu_state->checked_at && now - gpu_state->checked_at < FRESH
        && gpu_state->checked_at <= now)
        return gpu_state->health.recovery;
    if (gpu_state && gpu_state->unresponsive)
        return UINT32_MAX;
    if (bh_health_read(node, gpu, &health, &ignored) != BH_OK)
        return UINT32_MAX;
    if (gpu_state && gpu_state->checked_at) /* its health rules are reported at the next reading */
        gpu_state->health.recovery = health.recovery;
    return health.recovery;
}

void
bh_health_events(struct bh_node *node)
{
    struct bh_device_event event;
    struct bh_err err;

    bh_health_state_learn(node);
    while (node->device.ops->next_event(node->device.self, 0, &event, &err) == BH_OK) {
        struct bh_msg_health health = health_message_on(event.gpu, BH_FAULT_XID);
        const struct bh_node_partition *partition = bh_state_partition_at(&node->state, event.gpu, event.gi);
        const struct bh_xid *xid = bh_xid_get(event.xid);

        health.xid = event.xid;
        health.gi = event.gi;
        health.partition = partition ? partition->partition : 0;
        if (xid->class != BH_FAULT_CLASS_APP)
            health.recovery = health_recovery_of(node, event.gpu);
        if (xid->class == BH_FAULT_CLASS_REBOOT && bh_health_state_find(node, event.gpu))
            bh_health_state_find(node, event.gpu)->given_up = BH_HEALTH_GIVEN_UP;
        snprintf(health.why, sizeof health.why, "XID %u: %s", event.xid, xid->doc);
        if (xid->class != BH_FAULT_CLASS_APP)
            bh_job_check_gpu(node, event.gpu);
        bh_xid_window_add(&node->health->xids, event.gpu, event.xid, bh_time_monotonic());
        bh_log(XID, BH_STR("gpu", event.gpu), BH_U64("xid", event.xid));
        health_send(node, &health);
    }
}
