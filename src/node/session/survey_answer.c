#include "node/session/survey_answer.h"

#include <string.h>

#include "base/assert.h"
#include "node/partition/health.h"
#include "node/placement/reset_hold.h"
#include "node/placement/survey_internal.h"
#include "node/session/report.h"

/* A scan that was made by an order meanwhile knows more than one that was asked for before. */
static void
survey_answer_receive_scan(struct bh_node *node, struct bh_gpu_found *found, bh_rc rc)
{
    struct bh_survey *survey = node->survey;
    struct bh_arena *before = node->scan_arena;

    BH_ASSERT(node->scan_arena && before && survey->scans <= node->scans);
    if (rc == BH_OK && survey->scans == node->scans) {
        node->scan_arena = survey->arena;
        survey->arena = before;
        bh_reset_hold_complete(node, node->scan_arena, &found->inventory);
        node->inventory = found->inventory;
        node->inventory_known = true;
    }
    bh_report_scanned(node, rc == BH_OK);
}

/* False: the answer has not come. */
static bool
survey_answer_receive(struct bh_node *node)
{
    struct bh_survey *survey = node->survey;
    struct bh_survey_question question = survey->items[0];
    struct bh_gpu_found found;
    struct bh_err err;
    bool waits;
    bh_rc rc;

    bh_arena_reset(survey->arena);
    rc = bh_gpu_client_receive(node->gpus, survey->arena, &found, &waits, &err);
    if (waits)
        return false;
    survey->asked = false;
    memmove(survey->items, survey->items + 1, --survey->count * sizeof survey->items[0]);
    if (*question.gpu)
        bh_health_found(node, question.gpu, rc == BH_OK ? &found.health : NULL, &err);
    else
        survey_answer_receive_scan(node, &found, rc);
    return true;
}

static void
survey_answer_ask(struct bh_node *node)
{
    struct bh_survey *survey = node->survey;
    struct bh_err ignored;

    survey->scans = node->scans;
    survey->asked = bh_gpu_client_request(node->gpus, survey->items[0].gpu, &ignored) == BH_OK;
    if (!survey->asked) /* no child: wanted again when it is time */
        survey->count = 0;
}

bh_ns
bh_survey_answer_tick(struct bh_node *node, bh_ns now)
{
    struct bh_survey *survey = node->survey;

    bh_survey_assert(survey);
    while (survey->count > 0) {
        if (survey->asked && !survey_answer_receive(node))
            return bh_gpu_client_response_until(node->gpus);
        if (survey->count > 0)
            survey_answer_ask(node);
    }
    return 0;
}
