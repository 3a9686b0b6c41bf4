#include "node/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/health.h"
#include "node/report.h"
#include "node/reset.h"

enum { QUESTIONS_MAX = 65, SCAN_BYTES_MAX = 8 << 20 };

struct question {
    char gpu[BH_UUID_MAX];           /* "": a scan; else the health of that GPU */
};

struct bh_survey {
    struct question items[QUESTIONS_MAX]; /* the first is the one that is asked */
    uint32_t count;
    bool asked;
    uint64_t scans;                  /* of the node, when it was asked */
    struct bh_arena *arena;          /* of an answer; a scan's becomes the node's */
};

struct bh_survey *
bh_survey_new(void)
{
    struct bh_survey *survey = calloc(1, sizeof *survey);

    BH_ASSERT(survey);
    survey->arena = bh_arena_new(SCAN_BYTES_MAX);
    return survey;
}

void
bh_survey_free(struct bh_survey *survey)
{
    if (!survey)
        return;
    bh_arena_free(survey->arena);
    free(survey);
}

static void
survey_want(struct bh_survey *survey, const char *gpu)
{
    for (uint32_t i = 0; i < survey->count; i++)
        if (strcmp(survey->items[i].gpu, gpu) == 0)
            return;
    if (survey->count == QUESTIONS_MAX)
        return; /* it is wanted again */
    snprintf(survey->items[survey->count++].gpu, BH_UUID_MAX, "%s", gpu);
}

void
bh_survey_scan(struct bh_node *node)
{
    survey_want(node->survey, "");
}

void
bh_survey_health(struct bh_node *node, const char *gpu)
{
    survey_want(node->survey, gpu);
}

/* A scan that was made by an order meanwhile knows more than one that was asked for before. */
static void
receive_scan(struct bh_node *node, struct bh_gpu_found *found, bh_rc rc)
{
    struct bh_survey *survey = node->survey;
    struct bh_arena *before = node->scan_arena;

    if (rc == BH_OK && survey->scans == node->scans) {
        node->scan_arena = survey->arena;
        survey->arena = before;
        bh_reset_complete(node, node->scan_arena, &found->inventory);
        node->inventory = found->inventory;
        node->inventory_known = true;
    }
    bh_report_scanned(node, rc == BH_OK);
}

/* False: the answer has not come. */
static bool
survey_receive(struct bh_node *node)
{
    struct bh_survey *survey = node->survey;
    struct question question = survey->items[0];
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
        receive_scan(node, &found, rc);
    return true;
}

static void
survey_ask(struct bh_node *node)
{
    struct bh_survey *survey = node->survey;
    struct bh_err ignored;

    survey->scans = node->scans;
    survey->asked = bh_gpu_client_request(node->gpus, survey->items[0].gpu, &ignored) == BH_OK;
    if (!survey->asked) /* no child: wanted again when it is time */
        survey->count = 0;
}

bh_ns
bh_survey_tick(struct bh_node *node, bh_ns now)
{
    struct bh_survey *survey = node->survey;

    while (survey->count > 0) {
        if (survey->asked && !survey_receive(node))
            return bh_gpu_client_response_until(node->gpus);
        if (survey->count > 0)
            survey_ask(node);
    }
    return 0;
}
