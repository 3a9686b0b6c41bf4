#include "lab/common/figures.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/vec.h"

enum { FIGURES_MAX = 1 << 28 };

void
bh_figures_add(struct bh_figures *figures, uint64_t value)
{
    bool fits = bh_vec_reserve(&figures->values, &figures->capacity, figures->count + 1u, FIGURES_MAX);

    BH_ASSERT(fits);
    figures->values[figures->count++] = value;
}

void
bh_figures_fini(struct bh_figures *figures)
{
    free(figures->values);
    *figures = (struct bh_figures){ 0 };
}

uint64_t
bh_figures_mean(const struct bh_figures *figures)
{
    unsigned __int128 sum = 0;

    for (uint32_t i = 0; i < figures->count; i++)
        sum += figures->values[i];
    return figures->count ? (uint64_t)(sum / figures->count) : 0;
}

static int
figures_compare(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return one < other ? -1 : one > other;
}

uint64_t
bh_figures_quantile(struct bh_figures *figures, uint32_t permille)
{
    uint64_t rank = ((uint64_t)figures->count * permille + 999) / 1000;

    if (figures->count == 0)
        return 0;
    qsort(figures->values, figures->count, sizeof figures->values[0], figures_compare);
    return figures->values[rank ? rank - 1 : 0];
}
