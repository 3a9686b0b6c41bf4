#include "daemon/names/published.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/assert.h"

struct bh_published {
    struct bh_directory directory; /* first: bh_published_of */
    atomic_uint references;
    struct bh_arena *arena;
};

struct bh_published *
bh_published_new(struct bh_arena *arena, const struct bh_directory *directory)
{
    struct bh_published *published = calloc(1, sizeof *published);

    BH_ASSERT(published);
    published->directory = *directory;
    published->references = 1;
    published->arena = arena;
    return published;
}

const struct bh_directory *
bh_published_get(struct bh_published *published)
{
    atomic_fetch_add(&published->references, 1);
    return &published->directory;
}

void
bh_published_put(struct bh_published *published)
{
    if (!published || atomic_fetch_sub(&published->references, 1) > 1)
        return;
    bh_arena_free(published->arena);
    free(published);
}

struct bh_published *
bh_published_of(const struct bh_directory *directory)
{
    return (struct bh_published *)(uintptr_t)directory;
}
