#include "node/core/gpu_error.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/utf8.h"
#include "node/core/state_check.h"

/* The GPU's entry, or a free one; NULL: all are in use. */
static struct bh_gpu_error *
entry_for(struct bh_node *node, const char *gpu)
{
    struct bh_gpu_error *free_one = NULL;

    BH_ASSERT(*gpu);
    for (size_t i = 0; i < BH_COUNT(node->gpu_errors); i++) {
        struct bh_gpu_error *at = &node->gpu_errors[i];

        BH_STATE_ASSERT_TEXT(at->gpu);
        BH_STATE_ASSERT_TEXT(at->why);
        if (strcmp(at->gpu, gpu) == 0)
            return at;
        if (!at->gpu[0] && !free_one)
            free_one = at;
    }
    return free_one;
}

void
bh_gpu_error_record(struct bh_node *node, const char *gpu, const struct bh_err *err)
{
    struct bh_gpu_error *entry = entry_for(node, gpu);

    BH_ASSERT(!err || err->rc != BH_OK);
    if (!entry)
        return;
    if (!err) {
        *entry = (struct bh_gpu_error){ .gpu = "" };
        return;
    }
    snprintf(entry->gpu, sizeof entry->gpu, "%s", gpu);
    snprintf(entry->why, sizeof entry->why, "%s%s%s", err->msg, *err->hint ? "; " : "", err->hint);
    bh_utf8_scrub(entry->why);
    node->sample_at = 0; /* it is reported at once */
}

const char *
bh_gpu_error_find(const struct bh_node *node, const char *gpu)
{
    for (size_t i = 0; i < BH_COUNT(node->gpu_errors); i++)
        if (strcmp(node->gpu_errors[i].gpu, gpu) == 0)
            return node->gpu_errors[i].why;
    return "";
}
