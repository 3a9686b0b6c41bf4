#include "accounts/use.h"

#include <stdio.h>
#include <string.h>

enum { BUCKET = 8 };

/* The few places where a use may be. */
static struct bh_use *
use_bucket_of(const struct bh_uses *uses, const char *id)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */

    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * UINT32_C(16777619);
    return (struct bh_use *)(uintptr_t)&uses->items[hash % (BH_USES_MAX / BUCKET) * BUCKET];
}

static struct bh_use *
use_find(const struct bh_uses *uses, const char *id)
{
    struct bh_use *bucket = use_bucket_of(uses, id);

    for (uint32_t i = 0; i < BUCKET; i++)
        if (strcmp(bucket[i].id, id) == 0)
            return &bucket[i];
    return NULL;
}

static struct bh_use *
use_slot(struct bh_uses *uses, const char *id)
{
    struct bh_use *bucket = use_bucket_of(uses, id), *oldest = NULL;

    for (uint32_t i = 0; i < BUCKET; i++) {
        struct bh_use *use = &bucket[i];

        if (!use->id[0])
            return use;
        if (use->written && (!oldest || use->at_ns < oldest->at_ns))
            oldest = use;
    }
    return oldest;
}

void
bh_use_record(struct bh_uses *uses, const char *id, bool session, uint64_t at_ns)
{
    struct bh_use *use = use_find(uses, id);

    if (!use)
        use = use_slot(uses, id);
    if (!use || (strcmp(use->id, id) == 0 && use->at_ns >= at_ns))
        return;
    *use = (struct bh_use){ .session = session, .at_ns = at_ns };
    snprintf(use->id, sizeof use->id, "%s", id);
}

uint64_t
bh_use_at(const struct bh_uses *uses, const char *id)
{
    const struct bh_use *use = use_find(uses, id);

    return use ? use->at_ns : 0;
}

const struct bh_use *
bh_use_next(struct bh_uses *uses, uint32_t *cursor)
{
    while (*cursor < BH_USES_MAX) {
        struct bh_use *use = &uses->items[(*cursor)++];

        if (use->id[0] && !use->written) {
            use->written = true;
            return use;
        }
    }
    return NULL;
}
