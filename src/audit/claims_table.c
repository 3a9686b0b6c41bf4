#include <string.h>

#include "audit/claims_internal.h"
#include "base/assert.h"
#include "base/slice.h"

/* What is known, by keys: tables that only grow, in the arena of the claims. */

void
bh_claim_key(uint8_t ret_key[32], uint64_t first, uint64_t second)
{
    memset(ret_key, 0, 32);
    memcpy(ret_key, &first, sizeof first);
    memcpy(ret_key + sizeof first, &second, sizeof second);
}

/* The first slot that holds the key, or none. */
static void **
claims_slot_of(const struct claim_table *table, const uint8_t key[32])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    size_t at;

    for (size_t i = 0; i < 32; i++)
        hash = (hash ^ key[i]) * UINT64_C(0x100000001b3);
    at = (size_t)(hash ^ hash >> 32) & (table->capacity - 1);
    while (table->slots[at] && memcmp(((struct log_claim *)table->slots[at])->key, key, 32) != 0)
        at = (at + 1) & (table->capacity - 1);
    return &table->slots[at];
}

void *
bh_claim_find(const struct claim_table *table, const uint8_t key[32])
{
    return table->capacity ? *claims_slot_of(table, key) : NULL;
}

/* The old slots stay in the arena: as many again as there are. */
static bool
claims_grow(struct bh_claims *claims, struct claim_table *table)
{
    struct claim_table wider = { .capacity = table->capacity ? 2 * table->capacity : 256 };

    if (2 * (table->count + 1) <= table->capacity)
        return true;
    wider.slots = bh_arena_alloc(claims->arena, wider.capacity * sizeof *wider.slots);
    if (!wider.slots)
        return false;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i])
            *claims_slot_of(&wider, ((struct log_claim *)table->slots[i])->key) = table->slots[i];
    wider.count = table->count;
    *table = wider;
    return true;
}

void *
bh_claim_add(struct bh_claims *claims, struct claim_table *table, const uint8_t key[32], size_t size)
{
    void **slot;

    if (!claims_grow(claims, table))
        return NULL;
    slot = claims_slot_of(table, key);
    if (*slot)
        return *slot;
    *slot = bh_arena_alloc(claims->arena, size);
    if (!*slot)
        return NULL;
    memcpy(((struct log_claim *)*slot)->key, key, 32);
    table->count++;
    return *slot;
}

bh_rc
bh_claims_full(struct bh_err *err)
{
    return bh_err_set(err, BH_FULL, "the log names more than there is memory for");
}

void
bh_claim_put_word(char ret[CLAIM_WORD_BYTES], const char *word)
{
    size_t length = strlen(word);

    BH_ASSERT(length < CLAIM_WORD_BYTES);
    memcpy(ret, word, length + 1);
}

bool
bh_claim_is_zero(const uint8_t bytes[32])
{
    static const uint8_t zero[32];

    return memcmp(bytes, zero, sizeof zero) == 0;
}

uint64_t
bh_claim_number(struct bh_slice object, const char *key)
{
    struct bh_slice value;
    uint64_t number = 0;

    return bh_slice_get(object, key, &value) && bh_slice_u64(value, &number) ? number : 0;
}
