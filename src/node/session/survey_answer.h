#ifndef BH_NODE_SESSION_SURVEY_ANSWER_H
#define BH_NODE_SESSION_SURVEY_ANSWER_H

#include "node/core/node.h"

/* The answers to what node/placement/survey.h asks the GPUs. */

/* Take what has come and ask the next; the monotonic time when an answer is given up, or 0. */
bh_ns bh_survey_answer_tick(struct bh_node *node, bh_ns now);

#endif
