#ifndef BH_NODE_PLACEMENT_SURVEY_INTERNAL_H
#define BH_NODE_PLACEMENT_SURVEY_INTERNAL_H

#include "node/placement/survey.h"

/* What survey.c and survey_answer.c share. */

enum { BH_SURVEY_QUESTIONS_MAX = 65, BH_SURVEY_BYTES_MAX = 8 << 20 };

struct bh_survey_question {
    char gpu[BH_UUID_MAX]; /* "": a scan; else the health of that GPU */
};

struct bh_survey {
    struct bh_survey_question items[BH_SURVEY_QUESTIONS_MAX]; /* the first is the one that is asked */
    uint32_t count;
    bool asked;
    uint64_t scans;         /* of the node, when it was asked */
    struct bh_arena *arena; /* of an answer; a scan's becomes the node's */
};

/* Asserts what holds of it between two calls. */
void bh_survey_assert(const struct bh_survey *survey);

#endif
