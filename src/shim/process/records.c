#include "shim/process/records.h"

#include <stdatomic.h>
#include <stddef.h>

#include "bulkhead/share_page.h"
#include "shim/process/state.h"

/* A word is 0, a record, or the address of a leaf.
 *   bits 0-1 tag   2-4 kind   5-8 device   9-20 owner   21-63 amount */
enum { EMPTY = 0, RECORD = 1, LEAF = 2, TAGS = 3 };
enum { ROOT_SHIFT = 34, NODE_SHIFT = 21, LEAF_SHIFT = 8 };
enum { ROOTS = 1 << 15, NODES = 1 << (ROOT_SHIFT - NODE_SHIFT), LEAVES = 1 << (NODE_SHIFT - LEAF_SHIFT) };

#define UNIT (UINT64_C(1) << NODE_SHIFT)

typedef _Atomic uint64_t word_t;

/* Pages of it that are not used take no memory: a device's counts are beside each other. */
struct records_node {
    word_t word[NODES];
    _Atomic uint32_t small[BH_SHARE_DEVICES_MAX][NODES];
};

struct leaf {
    word_t word[LEAVES];
};

static BH_STATE struct {
    struct records_node *_Atomic node[ROOTS];
} root;

void
bh_records_init(void)
{
    bh_state_wipe_on_fork(&root, sizeof(root));
}

/* ---- words ---- */

static uint64_t
records_pack(struct bh_charge_record record)
{
    return RECORD | (uint64_t)record.kind << 2 | (uint64_t)record.device << 5 | (uint64_t)record.owner << 9
           | record.amount << 21;
}

static struct bh_charge_record
records_unpack(uint64_t word)
{
    if ((word & TAGS) != RECORD)
        return (struct bh_charge_record){ 0 };
    return (struct bh_charge_record){ .kind = (enum bh_record_kind)(word >> 2 & 7),
                                      .device = (unsigned)(word >> 5 & 15),
                                      .owner = (unsigned)(word >> 9 & 0xfff),
                                      .amount = word >> 21 };
}

static struct leaf *
records_leaf_of(uint64_t word)
{
    return (struct leaf *)(uintptr_t)(word & ~(uint64_t)TAGS);
}

/* ---- the way to a word ---- */

static struct records_node *
records_find_node(uint64_t address)
{
    return address >= BH_RECORDS_END
               ? NULL
               : atomic_load_explicit(&root.node[address >> ROOT_SHIFT], memory_order_acquire);
}

static struct records_node *
records_make_node(uint64_t address)
{
    struct records_node *node = records_find_node(address), *none = NULL;

    if (node != NULL || address >= BH_RECORDS_END)
        return node;
    node = bh_state_map(sizeof(*node));
    if (node != NULL && !atomic_compare_exchange_strong(&root.node[address >> ROOT_SHIFT], &none, node)) {
        bh_state_unmap(node, sizeof(*node));
        node = none;
    }
    return node;
}

static word_t *
records_entry_of(struct records_node *node, uint64_t address)
{
    return &node->word[address >> NODE_SHIFT & (NODES - 1)];
}

/* Where an address has its record: the entry, or a word of its leaf; NULL when it could
 * only stand in a leaf that is not there. */
static word_t *
records_find_word(uint64_t address)
{
    struct records_node *node = records_find_node(address);
    uint64_t word;

    if (node == NULL)
        return NULL;
    word = atomic_load_explicit(records_entry_of(node, address), memory_order_acquire);
    if ((word & TAGS) == LEAF)
        return &records_leaf_of(word)->word[address >> LEAF_SHIFT & (LEAVES - 1)];
    return address % UNIT == 0 ? records_entry_of(node, address) : NULL;
}

/* Put a leaf below an entry; the record that stands there moves into it. */
static bool
records_split(word_t *entry)
{
    uint64_t word = atomic_load(entry);
    struct leaf *leaf = bh_state_map(sizeof(*leaf));

    if (leaf == NULL)
        return false;
    do {
        if ((word & TAGS) == LEAF) {
            bh_state_unmap(leaf, sizeof(*leaf));
            return true;
        }
        atomic_store_explicit(&leaf->word[0], word, memory_order_relaxed);
    } while (!atomic_compare_exchange_strong(entry, &word, (uintptr_t)leaf | LEAF));
    return true;
}

static word_t *
records_make_word(uint64_t address)
{
    struct records_node *node = records_make_node(address);
    word_t *word;

    if (node == NULL || address % (1 << LEAF_SHIFT) != 0)
        return NULL;
    word = records_find_word(address);
    if (word == NULL && records_split(records_entry_of(node, address)))
        word = records_find_word(address);
    return word;
}

/* ---- records ---- */

bool
bh_records_put(uint64_t address, struct bh_charge_record record, struct bh_charge_record *ret_replaced)
{
    for (;;) {
        word_t *word = records_make_word(address);
        uint64_t before;

        if (word == NULL)
            return false;
        before = atomic_load(word);
        if ((before & TAGS) != LEAF && atomic_compare_exchange_strong(word, &before, records_pack(record))) {
            if (ret_replaced != NULL)
                *ret_replaced = records_unpack(before);
            return true;
        }
    }
}

/* Put `after`, or a turned record, in the place of a record of one of `kinds`. */
static bool
records_replace(uint64_t address, unsigned kinds, enum bh_record_kind to, struct bh_charge_record *ret_before)
{
    for (;;) {
        word_t *word = address % (1 << LEAF_SHIFT) == 0 ? records_find_word(address) : NULL;
        uint64_t before = word == NULL ? 0 : atomic_load(word);
        struct bh_charge_record record = records_unpack(before), after = record;

        if ((before & TAGS) == LEAF)
            continue; /* split since: it is in the leaf now */
        if (record.kind == BH_RECORD_NONE || (kinds & 1u << record.kind) == 0)
            return false;
        after.kind = to;
        if (atomic_compare_exchange_strong(word, &before, to == BH_RECORD_NONE ? 0 : records_pack(after))) {
            *ret_before = record;
            return true;
        }
    }
}

bool
bh_records_take(uint64_t address, unsigned kinds, struct bh_charge_record *ret_record)
{
    return records_replace(address, kinds, BH_RECORD_NONE, ret_record);
}

bool
bh_records_change_kind(uint64_t address, enum bh_record_kind from, enum bh_record_kind to)
{
    struct bh_charge_record before;

    return records_replace(address, 1u << from, to, &before);
}

/* ---- blocks that several share ---- */

static _Atomic uint32_t *
records_count_of(struct records_node *node, uint64_t address, unsigned device)
{
    return &node->small[device][address >> NODE_SHIFT & (NODES - 1)];
}

bool
bh_records_enter(uint64_t address, unsigned device, bool *ret_first)
{
    struct records_node *node = records_make_node(address);

    if (node == NULL)
        return false;
    *ret_first = atomic_fetch_add(records_count_of(node, address, device), 1) == 0;
    return true;
}

bool
bh_records_leave(uint64_t address, unsigned device)
{
    struct records_node *node = records_find_node(address);
    uint32_t before = node == NULL ? 0 : atomic_fetch_sub(records_count_of(node, address, device), 1);

    return BH_HOLDS(before > 0) && before == 1;
}

/* ---- walking ---- */

static uint64_t
records_next_in_leaf(struct leaf *leaf, uint64_t from, uint64_t below, struct bh_charge_record *ret_record)
{
    uint64_t end = (from | (UNIT - 1)) + 1;

    for (; from < end && from < below; from += 1 << LEAF_SHIFT) {
        *ret_record = records_unpack(atomic_load(&leaf->word[from >> LEAF_SHIFT & (LEAVES - 1)]));
        if (ret_record->kind != BH_RECORD_NONE)
            return from;
    }
    return UINT64_MAX;
}

static uint64_t
records_next_in_node(struct records_node *node, uint64_t from, uint64_t below,
                     struct bh_charge_record *ret_record)
{
    uint64_t end = ((from >> ROOT_SHIFT) + 1) << ROOT_SHIFT, found;

    for (; from < end && from < below; from = (from | (UNIT - 1)) + 1) {
        uint64_t word = atomic_load(records_entry_of(node, from));

        *ret_record = records_unpack(word);
        if (ret_record->kind != BH_RECORD_NONE && from % UNIT == 0)
            return from;
        found = (word & TAGS) == LEAF ? records_next_in_leaf(records_leaf_of(word), from, below, ret_record)
                                      : UINT64_MAX;
        if (found != UINT64_MAX)
            return found;
    }
    return UINT64_MAX;
}

uint64_t
bh_records_next(uint64_t from, uint64_t below, struct bh_charge_record *ret_record)
{
    from = (from + (1 << LEAF_SHIFT) - 1) & ~(uint64_t)((1 << LEAF_SHIFT) - 1);
    if (below > BH_RECORDS_END)
        below = BH_RECORDS_END;
    for (; from < below; from = ((from >> ROOT_SHIFT) + 1) << ROOT_SHIFT) {
        struct records_node *node = records_find_node(from);
        uint64_t found = node == NULL ? UINT64_MAX : records_next_in_node(node, from, below, ret_record);

        if (found != UINT64_MAX)
            return found;
    }
    return UINT64_MAX;
}

bool
bh_records_before(uint64_t address, struct bh_charge_record *ret_record)
{
    uint64_t at = address & ~(UNIT - 1);

    for (unsigned steps = 0; steps <= NODES; steps++, at -= UNIT) {
        struct records_node *node = records_find_node(at);

        *ret_record = (struct bh_charge_record){ 0 };
        if (node != NULL)
            *ret_record = records_unpack(atomic_load(records_entry_of(node, at)));
        if (ret_record->kind != BH_RECORD_NONE)
            return true;
        if (at < UNIT)
            break;
    }
    return false;
}
