#include "node/trouble.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* The GPU's entry, or a free one; NULL: all are in use. */
static struct bh_trouble *
entry_for(struct bh_node *node, const char *gpu)
{
    struct bh_trouble *free_one = NULL;

    for (size_t i = 0; i < BH_COUNT(node->troubles); i++) {
        struct bh_trouble *at = &node->troubles[i];

        if (strcmp(at->gpu, gpu) == 0)
            return at;
        if (!at->gpu[0] && !free_one)
            free_one = at;
    }
    return free_one;
}

void
bh_trouble_note(struct bh_node *node, const char *gpu, const struct bh_err *err)
{
    struct bh_trouble *entry = entry_for(node, gpu);

    if (!entry)
        return;
    if (!err) {
        *entry = (struct bh_trouble){ .gpu = "" };
        return;
    }
    snprintf(entry->gpu, sizeof entry->gpu, "%s", gpu);
    snprintf(entry->why, sizeof entry->why, "%s%s%s", err->msg, *err->hint ? "; " : "", err->hint);
    bh_utf8_scrub(entry->why);
    node->sample_at = 0; /* it is told at once */
}

const char *
bh_trouble_of(const struct bh_node *node, const char *gpu)
{
    for (size_t i = 0; i < BH_COUNT(node->troubles); i++)
        if (strcmp(node->troubles[i].gpu, gpu) == 0)
            return node->troubles[i].why;
    return "";
}
