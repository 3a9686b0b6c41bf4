#include "node/placement/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/core/state_check.h"
#include "node/placement/survey_internal.h"

struct bh_survey *
bh_survey_new(void)
{
    struct bh_survey *survey = calloc(1, sizeof *survey);

    BH_ASSERT(survey);
    survey->arena = bh_arena_new(BH_SURVEY_BYTES_MAX);
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

void
bh_survey_assert(const struct bh_survey *survey)
{
    BH_ASSERT(survey->arena && survey->count <= BH_COUNT(survey->items));
    BH_ASSERT(!survey->asked || survey->count > 0);
    BH_STATE_ASSERT_TEXT(survey->items[0].gpu);
}

static void
survey_want(struct bh_survey *survey, const char *gpu)
{
    bh_survey_assert(survey);
    for (uint32_t i = 0; i < survey->count; i++)
        if (strcmp(survey->items[i].gpu, gpu) == 0)
            return;
    if (survey->count == BH_SURVEY_QUESTIONS_MAX)
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
