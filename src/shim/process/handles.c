#include "shim/process/handles.h"

#include <stddef.h>

enum { FREE = 0, BUSY = 1, KEYS = 2 }; /* a key is its handle + KEYS */
/* A position for bh_handles_next: bucket, and how many cells of its chain were seen. */
enum { POSITION_BITS = 32 };

void
bh_handles_init(struct bh_handles *handles)
{
    bh_state_wipe_on_fork(handles, sizeof(*handles));
}

static struct bh_handle_bucket *
bucket_of(struct bh_handles *handles, uint64_t handle)
{
    return &handles->bucket[handle * UINT64_C(0x9e3779b97f4a7c15) >> 55];
}

/* The n-th cell of a chain; NULL past its end. */
static struct bh_handle_bucket *
follow(struct bh_handle_bucket *bucket, uint64_t n)
{
    for (; bucket != NULL && n >= BH_HANDLE_CELLS; n -= BH_HANDLE_CELLS)
        bucket = atomic_load_explicit(&bucket->next, memory_order_acquire);
    return bucket;
}

static bool
extend(struct bh_handle_bucket *last)
{
    struct bh_handle_bucket *more = bh_state_map(BH_STATE_ALIGN), *none = NULL;

    if (more == NULL)
        return false;
    for (size_t i = 0; i + 1 < BH_STATE_ALIGN / sizeof(*more); i++)
        atomic_store_explicit(&more[i].next, &more[i + 1], memory_order_relaxed);
    if (!atomic_compare_exchange_strong(&last->next, &none, more))
        bh_state_unmap(more, BH_STATE_ALIGN);
    return true;
}

_Atomic uint64_t *
bh_handles_at(struct bh_handles *handles, uint64_t handle)
{
    struct bh_handle_bucket *bucket = bucket_of(handles, handle);

    for (; bucket != NULL; bucket = atomic_load_explicit(&bucket->next, memory_order_acquire))
        for (unsigned i = 0; i < BH_HANDLE_CELLS; i++)
            if (atomic_load_explicit(&bucket->cell[i].key, memory_order_acquire) == handle + KEYS)
                return &bucket->cell[i].word;
    return NULL;
}

bool
bh_handles_find(struct bh_handles *handles, uint64_t handle, uint64_t *ret_word)
{
    _Atomic uint64_t *word = bh_handles_at(handles, handle);

    if (word == NULL)
        return false;
    *ret_word = atomic_load_explicit(word, memory_order_acquire);
    return true;
}

static bool
use_free_cell(struct bh_handle_bucket *bucket, uint64_t handle, uint64_t word)
{
    for (unsigned i = 0; i < BH_HANDLE_CELLS; i++) {
        uint64_t key = FREE;

        if (!atomic_compare_exchange_strong(&bucket->cell[i].key, &key, BUSY))
            continue;
        atomic_store_explicit(&bucket->cell[i].word, word, memory_order_relaxed);
        atomic_store_explicit(&bucket->cell[i].key, handle + KEYS, memory_order_release);
        return true;
    }
    return false;
}

bool
bh_handles_put(struct bh_handles *handles, uint64_t handle, uint64_t word)
{
    struct bh_handle_bucket *bucket = bucket_of(handles, handle);
    _Atomic uint64_t *there = bh_handles_at(handles, handle);

    if (there != NULL) {
        atomic_store_explicit(there, word, memory_order_release);
        return true;
    }
    while (!use_free_cell(bucket, handle, word)) {
        struct bh_handle_bucket *next = atomic_load(&bucket->next);

        if (next == NULL && !extend(bucket))
            return false;
        bucket = atomic_load(&bucket->next);
    }
    return true;
}

bool
bh_handles_take(struct bh_handles *handles, uint64_t handle, uint64_t *ret_word)
{
    struct bh_handle_bucket *bucket = bucket_of(handles, handle);

    for (; bucket != NULL; bucket = atomic_load(&bucket->next))
        for (unsigned i = 0; i < BH_HANDLE_CELLS; i++) {
            uint64_t key = handle + KEYS;

            if (!atomic_compare_exchange_strong(&bucket->cell[i].key, &key, BUSY))
                continue;
            *ret_word = atomic_load_explicit(&bucket->cell[i].word, memory_order_relaxed);
            atomic_store_explicit(&bucket->cell[i].key, FREE, memory_order_release);
            return true;
        }
    return false;
}

bool
bh_handles_next(struct bh_handles *handles, uint64_t *at, uint64_t *ret_handle, uint64_t *ret_word)
{
    uint64_t chain = *at >> POSITION_BITS, seen = *at & UINT32_MAX;

    for (; chain < BH_HANDLE_BUCKETS; chain++, seen = 0) {
        struct bh_handle_bucket *bucket;

        for (; (bucket = follow(&handles->bucket[chain], seen)) != NULL; seen++) {
            uint64_t key = atomic_load(&bucket->cell[seen % BH_HANDLE_CELLS].key);

            if (key == FREE || key == BUSY)
                continue;
            *ret_handle = key - KEYS;
            *ret_word = atomic_load(&bucket->cell[seen % BH_HANDLE_CELLS].word);
            *at = chain << POSITION_BITS | (seen + 1);
            return true;
        }
    }
    *at = chain << POSITION_BITS;
    return false;
}
