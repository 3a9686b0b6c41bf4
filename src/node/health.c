#include "node/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/utf8.h"
#include "node/piece.h"
#include "node/report.h"
#include "node/reset.h"
#include "node/signs.h"
#include "node/survey.h"
#include "node/verify.h"

enum { GPUS_MAX = 64, MISSED_MAX = 64 };
#define FRESH BH_NS_PER_S            /* what was read so short a time ago is read again from here */
#define HUNG_AGAIN_MOST (300 * BH_NS_PER_S)

/* A GPU as it was when somebody looked last. */
struct seen {
    char gpu[BH_UUID_MAX], pci[20];
    struct bh_device_health health;
    bh_ns looked_at;                 /* monotonic; 0: never */
    bool away;                       /* hangs, or is lost */
    char why[200];                   /* of one that is away */
    bool announce;                   /* at the next look tell how it is */
    enum { NOT_GIVEN_UP, GIVEN_UP, ASKED_SINCE } given_up; /* by an XID that wants a reboot: */
                                     /* that it answers to a look that began after it is told */
    bh_ns again_at, pause;           /* of one that is away: when to ask it again */
};

struct bh_health_watch {
    struct seen seen[GPUS_MAX];
    uint32_t count;
    bh_ns look_at;                   /* monotonic */
    struct bh_msg_health missed[MISSED_MAX];
    uint32_t missed_count;
};

struct bh_health_watch *
bh_health_watch_new(void)
{
    struct bh_health_watch *watch = calloc(1, sizeof *watch);

    BH_ASSERT(watch);
    return watch;
}

void
bh_health_watch_free(struct bh_health_watch *watch)
{
    free(watch);
}

static struct seen *
find(const struct bh_node *node, const char *gpu)
{
    struct bh_health_watch *watch = node->health;

    for (uint32_t i = 0; i < watch->count; i++)
        if (strcmp(watch->seen[i].gpu, gpu) == 0)
            return &watch->seen[i];
    return NULL;
}

/* GPUs that came since. */
static void
learn(struct bh_node *node)
{
    struct bh_health_watch *watch = node->health;

    for (uint32_t i = 0; i < node->inventory.gpu_count; i++) {
        const struct bh_device_gpu *gpu = &node->inventory.gpus[i];
        struct seen *seen = find(node, gpu->uuid);

        if (!seen && watch->count < GPUS_MAX && *gpu->uuid) {
            seen = &watch->seen[watch->count++];
            seen->announce = true;
        }
        if (!seen || !*gpu->pci)
            continue;
        snprintf(seen->gpu, sizeof seen->gpu, "%s", gpu->uuid);
        snprintf(seen->pci, sizeof seen->pci, "%s", gpu->pci);
    }
}

const char *
bh_health_pci(const struct bh_node *node, const char *gpu)
{
    const struct seen *seen = find(node, gpu);

    return seen ? seen->pci : "";
}

void
bh_health_forget(struct bh_node *node, const char *gpu)
{
    struct seen *seen = find(node, gpu);

    if (seen) {
        seen->looked_at = 0;
        seen->away = false;
    }
}

/* ---- telling ---- */

static struct bh_msg_health
message_on(const char *gpu, enum bh_fault fault)
{
    struct bh_msg_health health = { .fault = fault, .gi = BH_WHOLE_GPU,
                                    .at_ns = bh_time_now(), .recovery = UINT32_MAX };

    snprintf(health.gpu, sizeof health.gpu, "%s", gpu);
    return health;
}

/* The oldest give way: the last ones say more about how things stand. */
static void
send(struct bh_node *node, const struct bh_msg_health *health)
{
    struct bh_health_watch *watch = node->health;

    if (node->link && node->greeted) {
        bh_node_send(node, BH_MSG_HEALTH, health);
        return;
    }
    if (watch->missed_count == MISSED_MAX)
        memmove(&watch->missed[0], &watch->missed[1],
                --watch->missed_count * sizeof watch->missed[0]);
    watch->missed[watch->missed_count++] = *health;
}

void
bh_health_greet(struct bh_node *node)
{
    struct bh_health_watch *watch = node->health;

    for (uint32_t i = 0; i < watch->missed_count; i++)
        bh_node_send(node, BH_MSG_HEALTH, &watch->missed[i]);
    watch->missed_count = 0;
    for (uint32_t i = 0; i < watch->count; i++)
        watch->seen[i].announce = true;
    watch->look_at = 0;
}

/* ---- looking ---- */

/* It does not answer: the daemon should keep new work off this GPU. */
static void
is_away(struct bh_node *node, const char *gpu, enum bh_fault fault, const struct bh_err *err)
{
    struct seen *seen = find(node, gpu);
    struct bh_msg_health health = message_on(gpu, fault);

    snprintf(health.why, sizeof health.why, "%.199s", err->msg);
    bh_utf8_scrub(health.why);
    if (seen) {
        bh_ns first = node->conf.health_interval_ms * BH_NS_PER_MS;

        seen->pause = !seen->away ? first
                      : seen->pause > HUNG_AGAIN_MOST / 2 ? HUNG_AGAIN_MOST : 2 * seen->pause;
        seen->again_at = bh_time_monotonic() + seen->pause;
        if (seen->away && !seen->announce)
            return;
        seen->away = true;
        memcpy(seen->why, health.why, sizeof seen->why);
    }
    node->sample_at = 0; /* the samples tell why */
    bh_report_ends(node, gpu);
    bh_log(GPU_FENCED, BH_STR("gpu", gpu), BH_ERRLOG(err));
    send(node, &health);
}

void
bh_health_hung(struct bh_node *node, const char *gpu, const struct bh_err *err)
{
    if (!bh_gpu_child_died(err))
        is_away(node, gpu, BH_FAULT_HUNG, err);
}

bool
bh_health_is_away(const struct bh_node *node, const char *gpu)
{
    const struct seen *seen = find(node, gpu);

    return seen && seen->away;
}

const char *
bh_health_why(const struct bh_node *node, const char *gpu)
{
    const struct seen *seen = find(node, gpu);

    return seen && seen->away ? seen->why : NULL;
}

static void
take_error(struct bh_node *node, const char *gpu, const struct bh_err *err)
{
    if (err->rc == BH_UNCERTAIN)
        bh_health_hung(node, gpu, err);
    else if (err->rc == BH_NOT_FOUND)
        is_away(node, gpu, BH_FAULT_LOST, err);
}

bh_rc
bh_health_look(struct bh_node *node, const char *gpu, struct bh_device_health *ret_health,
               struct bh_err *err)
{
    bh_rc rc = node->device.ops->health(node->device.self, gpu, ret_health, err);

    if (rc != BH_OK)
        take_error(node, gpu, err);
    return rc;
}

static void
tell_signs(struct bh_node *node, struct seen *seen, const struct bh_device_health *now,
           bh_ns span)
{
    struct bh_device_health before = seen->looked_at && !seen->announce
                                         ? seen->health : bh_signs_none(now);
    enum bh_sign signs[BH_SIGNS];
    uint32_t count = bh_signs_compare(&before, now, span, signs);

    for (uint32_t i = 0; i < count; i++) {
        struct bh_msg_health health = message_on(seen->gpu, BH_FAULT_SIGN);

        health.sign = signs[i];
        health.recovery = now->recovery;
        snprintf(health.why, sizeof health.why, "%s", bh_sign_doc(signs[i]));
        bh_log(HEALTH_SIGN, BH_STR("gpu", seen->gpu), BH_STR("sign", bh_sign_names[signs[i]]));
        send(node, &health);
    }
}

/* It answers: told when it did not before, and to a daemon that is new. */
static void
tell_present(struct bh_node *node, struct seen *seen, const struct bh_device_health *now)
{
    struct bh_msg_health health = message_on(seen->gpu, BH_FAULT_NONE);
    const char *walls = bh_verify_why(node, seen->gpu);

    if (!seen->away && !seen->announce && seen->given_up != ASKED_SINCE)
        return;
    if (seen->away)
        bh_log(GPU_ANSWERS, BH_STR("gpu", seen->gpu));
    seen->away = false;
    if (seen->given_up == ASKED_SINCE)
        seen->given_up = NOT_GIVEN_UP;
    health.recovery = now->recovery;
    if (walls) {
        health.fault = BH_FAULT_ISOLATION;
        snprintf(health.why, sizeof health.why, "%s", walls);
    }
    send(node, &health);
}

void
bh_health_found(struct bh_node *node, const char *gpu, const struct bh_device_health *found,
                const struct bh_err *err)
{
    struct seen *seen = find(node, gpu);
    bh_ns now = bh_time_monotonic();

    if (!seen || bh_reset_holds(node, gpu))
        return;
    if (found) {
        tell_present(node, seen, found);
        tell_signs(node, seen, found, seen->looked_at ? now - seen->looked_at : BH_NS_PER_S);
        seen->health = *found;
        seen->looked_at = now;
    } else {
        take_error(node, gpu, err);
    }
    seen->announce = seen->announce && !node->greeted;
}

bh_ns
bh_health_tick(struct bh_node *node, bh_ns now)
{
    struct bh_health_watch *watch = node->health;

    if (!node->greeted)
        return 0;
    if (watch->look_at > now)
        return watch->look_at;
    learn(node);
    for (uint32_t i = 0; i < watch->count; i++) {
        struct seen *seen = &watch->seen[i];

        if (bh_reset_holds(node, seen->gpu)
            || (seen->away && seen->again_at > now && !seen->announce))
            continue;
        bh_survey_health(node, seen->gpu);
        if (seen->given_up == GIVEN_UP)
            seen->given_up = ASKED_SINCE;
    }
    watch->look_at = now + node->conf.health_interval_ms * BH_NS_PER_MS;
    return watch->look_at;
}

/* ---- events ---- */

/* What the driver wants done now; many XIDs at once are one question. */
static uint32_t
recovery_of(struct bh_node *node, const char *gpu)
{
    struct seen *seen = find(node, gpu);
    bh_ns now = bh_time_monotonic();
    struct bh_device_health health;
    struct bh_err ignored;

    if (seen && seen->looked_at && now - seen->looked_at < FRESH && seen->looked_at <= now)
        return seen->health.recovery;
    if (seen && seen->away)
        return UINT32_MAX;
    if (bh_health_look(node, gpu, &health, &ignored) != BH_OK)
        return UINT32_MAX;
    if (seen && seen->looked_at) /* its signs are told at the next look */
        seen->health.recovery = health.recovery;
    return health.recovery;
}

void
bh_health_events(struct bh_node *node)
{
    struct bh_device_event event;
    struct bh_err err;

    learn(node);
    while (node->device.ops->next_event(node->device.self, 0, &event, &err) == BH_OK) {
        struct bh_msg_health health = message_on(event.gpu, BH_FAULT_XID);
        const struct bh_note_piece *piece =
            bh_state_piece_at(&node->state, event.gpu, event.gi);
        const struct bh_xid *xid = bh_xid_get(event.xid);

        health.xid = event.xid;
        health.gi = event.gi;
        health.partition = piece ? piece->partition : 0;
        if (xid->class != BH_FAULT_CLASS_APP)
            health.recovery = recovery_of(node, event.gpu);
        if (xid->class == BH_FAULT_CLASS_REBOOT && find(node, event.gpu))
            find(node, event.gpu)->given_up = GIVEN_UP;
        snprintf(health.why, sizeof health.why, "XID %u: %s", event.xid, xid->doc);
        if (xid->class != BH_FAULT_CLASS_APP)
            bh_report_ends(node, event.gpu);
        bh_log(XID, BH_STR("gpu", event.gpu), BH_U64("xid", event.xid));
        send(node, &health);
    }
}
