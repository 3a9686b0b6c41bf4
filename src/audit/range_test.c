#include "audit/range.h"

#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

enum { LEAVES = 140 };

static void
range_hash_of(uint64_t leaf, uint8_t ret_hash[32])
{
    bh_merkle_leaf(crypto, &leaf, sizeof leaf, ret_hash);
}

static struct bh_merkle_frontier
tree_of(uint64_t size)
{
    struct bh_merkle_frontier tree = { 0 };
    uint8_t hash[32];

    for (uint64_t i = 0; i < size; i++) {
        range_hash_of(i, hash);
        bh_merkle_frontier_add(&tree, crypto, hash);
    }
    return tree;
}

static struct bh_range
range_of(uint64_t from, uint64_t to)
{
    struct bh_range range = { 0 };
    uint8_t hash[32];

    bh_range_begin(&range, from);
    for (uint64_t i = from; i < to; i++) {
        range_hash_of(i, hash);
        bh_range_add(&range, crypto, hash);
    }
    return range;
}

/* Every range of a tree leads from its beginning to its end, by few hashes. */
static void
every_range(void **state)
{
    for (uint64_t from = 0; from <= LEAVES; from++) {
        struct bh_range range = range_of(from, from);
        struct bh_merkle_frontier before = tree_of(from), whole = before;

        for (uint64_t to = from; to <= LEAVES; to++) {
            struct bh_merkle_frontier tree = before;
            uint8_t root[32], want[32], hash[32];

            BH_CHECK("fits", bh_merkle_frontier_extend(&tree, crypto, &range));
            BH_CHECK("few", range.count <= 16);
            bh_merkle_frontier_root(&tree, crypto, root);
            bh_merkle_frontier_root(&whole, crypto, want);
            BH_CHECK("root", tree.size == to && memcmp(root, want, 32) == 0);
            range_hash_of(to, hash);
            bh_merkle_frontier_add(&whole, crypto, hash);
            bh_range_add(&range, crypto, hash);
        }
    }
    BH_CHECK_DONE();
}

static void
what_does_not_fit(void **state)
{
    struct bh_merkle_frontier tree = tree_of(21), before = tree;
    struct bh_range range;

    range = range_of(20, 40);
    BH_CHECK("begins before", !bh_merkle_frontier_extend(&tree, crypto, &range));
    range = range_of(22, 40);
    BH_CHECK("begins behind", !bh_merkle_frontier_extend(&tree, crypto, &range));
    range = range_of(21, 40);
    range.to = 41;
    BH_CHECK("says more", !bh_merkle_frontier_extend(&tree, crypto, &range));
    range = range_of(21, 40);
    range.nodes[0].level = 1;
    BH_CHECK("not aligned", !bh_merkle_frontier_extend(&tree, crypto, &range));
    range = range_of(21, 40);
    range.nodes[0].level = 64;
    BH_CHECK("too large", !bh_merkle_frontier_extend(&tree, crypto, &range));
    range = range_of(21, 40);
    range.count = BH_RANGE_NODES_MAX + 1;
    BH_CHECK("too many", !bh_merkle_frontier_extend(&tree, crypto, &range));
    BH_CHECK("unchanged", memcmp(&tree, &before, sizeof tree) == 0);
    BH_CHECK_DONE();
}

/* Near the end of all numbers. */
static void
no_overflow(void **state)
{
    struct bh_merkle_frontier tree = { .size = UINT64_C(1) << 63 };
    struct bh_range range = { .from = tree.size, .to = 0, .count = 1, .nodes = { { .level = 63 } } };

    BH_CHECK("wraps", !bh_merkle_frontier_extend(&tree, crypto, &range));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_range),
    cmocka_unit_test(what_does_not_fit),
    cmocka_unit_test(no_overflow),
};

BH_TEST_MAIN(tests)
