/* The null driver's small allocations: parts of chunks of 2 MiB, each of one context, found
 * by first fit.  A chunk is taken when none of the context's has room, and given back with
 * its last part.  Without a watcher nothing is counted, and a part costs next to nothing. */
#include "sim/null/small.h"

#define GRAIN UINT64_C(512)
#define SMALL_BASE (UINT64_C(1) << 46)
#define BITS 64

enum { CHUNKS = 2048, GRAINS = (int)(NULL_UNIT / 512), QUICK = 1 << 22 };

/* ---- without a watcher ---- */

bool bh_null_small_anew;
static uint32_t quick_grains[QUICK];
static _Atomic uint32_t next_grain;
/* A part that was freed is the next one of its size, as with any allocator. */
static __thread uint32_t free_grains, free_at;

static CUdeviceptr
small_take_quickly(uint32_t grains)
{
    uint32_t at = free_at;

    if (grains == free_grains)
        free_grains = 0;
    else
        at = atomic_fetch_add(&next_grain, grains) % (QUICK - GRAINS);
    quick_grains[at] = grains;
    return SMALL_BASE + at * GRAIN;
}

static bool
small_free_quickly(uint32_t at)
{
    uint32_t grains = at < QUICK ? quick_grains[at] : 0;

    if (grains == 0)
        return false;
    if (!bh_null_small_anew) {
        free_grains = grains;
        free_at = at;
    }
    quick_grains[at] = 0;
    return true;
}

void
bh_null_small_begin_anew(void)
{
    atomic_store(&next_grain, 0);
    free_grains = 0;
}

/* ---- chunks, under the lock ---- */

static struct chunk {
    const struct CUctx_st *context; /* NULL: there is no chunk */
    int device;
    uint32_t used;
    uint64_t taken[GRAINS / BITS];
    uint16_t grains[GRAINS]; /* of the part that begins there; else 0 */
} chunks[CHUNKS];
static uint32_t chunks_used; /* none behind */

/* The first grain from `at` on that is taken, or is not. */
static uint32_t
small_next(const struct chunk *chunk, uint32_t at, bool taken)
{
    while (at < GRAINS) {
        uint64_t word = chunk->taken[at / BITS];

        word = (taken ? word : ~word) >> at % BITS;
        if (word != 0)
            return at + (uint32_t)__builtin_ctzll(word);
        at = (at / BITS + 1) * BITS;
    }
    return GRAINS;
}

static void
small_mark(struct chunk *chunk, uint32_t at, uint32_t grains, bool taken)
{
    for (uint32_t end = at + grains; at < end; at++)
        if (taken)
            chunk->taken[at / BITS] |= UINT64_C(1) << at % BITS;
        else
            chunk->taken[at / BITS] &= ~(UINT64_C(1) << at % BITS);
}

static bool
small_take_part(struct chunk *chunk, uint32_t grains, uint32_t *ret_at)
{
    uint32_t at = small_next(chunk, 0, false);

    if (grains > GRAINS - chunk->used)
        return false;
    while (at < GRAINS) {
        uint32_t end = small_next(chunk, at, true);

        if (end - at >= grains) {
            small_mark(chunk, at, grains, true);
            chunk->grains[at] = (uint16_t)grains;
            chunk->used += grains;
            *ret_at = at;
            return true;
        }
        at = small_next(chunk, end, false);
    }
    return false;
}

/* The lowest that there is room for: addresses come again as soon as they can, also in
 * another context. */
static struct chunk *
small_new_chunk(struct CUctx_st *context)
{
    for (uint32_t i = 0; i < CHUNKS; i++)
        if (chunks[i].context == NULL) {
            chunks[i].context = context;
            chunks[i].device = context->device;
            chunks_used = i >= chunks_used ? i + 1 : chunks_used;
            bh_null_take(context->device, NULL_UNIT);
            return &chunks[i];
        }
    return NULL;
}

static void
small_free_chunk(struct chunk *chunk)
{
    bh_null_give(chunk->device, NULL_UNIT);
    *chunk = (struct chunk){ 0 };
}

static CUdeviceptr
small_take_in_chunks(struct CUctx_st *context, uint32_t grains)
{
    struct chunk *chunk;
    uint32_t at;

    for (uint32_t i = 0; i < chunks_used; i++)
        if (chunks[i].context == context && small_take_part(&chunks[i], grains, &at))
            return SMALL_BASE + i * NULL_UNIT + at * GRAIN;
    chunk = small_new_chunk(context);
    if (chunk == NULL || !small_take_part(chunk, grains, &at))
        return 0;
    return SMALL_BASE + (uint64_t)(chunk - chunks) * NULL_UNIT + at * GRAIN;
}

static bool
small_free_in_chunks(uint64_t offset)
{
    struct chunk *chunk = &chunks[offset / NULL_UNIT];
    uint32_t at = (uint32_t)(offset % NULL_UNIT / GRAIN), grains;

    if (offset / NULL_UNIT >= CHUNKS || chunk->grains[at] == 0)
        return false;
    grains = chunk->grains[at];
    chunk->grains[at] = 0;
    small_mark(chunk, at, grains, false);
    chunk->used -= grains;
    if (chunk->used == 0)
        small_free_chunk(chunk);
    return true;
}

/* ---- either ---- */

CUdeviceptr
bh_null_small_take(struct CUctx_st *context, uint64_t bytes)
{
    uint32_t grains = (uint32_t)(bh_null_up(bytes, GRAIN) / GRAIN);
    CUdeviceptr at;
    sigset_t before;

    if (!bh_null_shared)
        return small_take_quickly(grains);
    bh_null_lock_quietly(&bh_null_lock, &before);
    at = small_take_in_chunks(context, grains);
    bh_null_unlock(&bh_null_lock, &before);
    return at;
}

bool
bh_null_small_has(CUdeviceptr address)
{
    return address >= SMALL_BASE;
}

bool
bh_null_small_free(CUdeviceptr address)
{
    uint64_t offset = address - SMALL_BASE;
    sigset_t before;
    bool freed;

    if (offset % GRAIN != 0)
        return false;
    if (!bh_null_shared)
        return small_free_quickly((uint32_t)(offset / GRAIN));
    bh_null_lock_quietly(&bh_null_lock, &before);
    freed = small_free_in_chunks(offset);
    bh_null_unlock(&bh_null_lock, &before);
    return freed;
}

void
bh_null_small_drop(const struct CUctx_st *context)
{
    for (uint32_t i = 0; i < chunks_used; i++)
        if (chunks[i].context == context)
            small_free_chunk(&chunks[i]);
}
