#include "daemon/state/tally.h"

#include <string.h>

#include "base/assert.h"

void
bh_tally_count(struct bh_tallies *book, uint32_t what)
{
    BH_ASSERT(what < BH_TALLIES);
    book->open[what]++;
}

static uint32_t
tally_bucket_of(uint64_t took_ns)
{
    uint32_t bucket = 0;

    while (bucket < BH_TALLY_COMMIT_BOUNDS && took_ns > bh_tally_commit_bounds_ns[bucket])
        bucket++;
    return bucket;
}

void
bh_tally_committed(struct bh_tallies *book, uint64_t took_ns)
{
    book->open[BH_TALLY_COMMITS + tally_bucket_of(took_ns)]++;
    for (uint32_t i = 0; i < BH_TALLIES; i++)
        if (book->open[i])
            atomic_fetch_add_explicit(&book->durable[i], book->open[i], memory_order_relaxed);
    atomic_fetch_add_explicit(&book->durable[BH_TALLY_COMMIT_NS], took_ns, memory_order_relaxed);
    bh_tally_aborted(book);
}

void
bh_tally_aborted(struct bh_tallies *book)
{
    memset(book->open, 0, sizeof book->open);
}

void
bh_tally_read(const struct bh_tallies *book, uint64_t ret_tally[BH_TALLIES])
{
    for (uint32_t i = 0; i < BH_TALLIES; i++)
        ret_tally[i] = atomic_load_explicit(&book->durable[i], memory_order_relaxed);
}
