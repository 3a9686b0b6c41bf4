#include "audit/proof.h"

#include "audit/merkle.h"
#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

enum { LEAVES = 700 };

static uint8_t hashes[LEAVES][32];
static uint8_t roots[LEAVES + 1][32];
static struct bh_err err;

static bh_rc
proof_subtree(void *self, unsigned level, uint64_t index, uint8_t ret_hash[32], struct bh_err *e)
{
    assert_true((index + 1) << level <= LEAVES);
    bh_merkle_root(crypto, (const uint8_t(*)[32])hashes + (index << level), (size_t)1 << level, ret_hash);
    return BH_OK;
}

static const struct bh_merkle_source source = { proof_subtree, NULL };

static int
make_tree(void **state)
{
    struct bh_merkle_frontier frontier = { 0 };

    bh_merkle_frontier_root(&frontier, crypto, roots[0]);
    for (unsigned i = 0; i < LEAVES; i++) {
        bh_merkle_leaf(crypto, &i, sizeof i, hashes[i]);
        bh_merkle_frontier_add(&frontier, crypto, hashes[i]);
        bh_merkle_frontier_root(&frontier, crypto, roots[i + 1]);
    }
    return 0;
}

static struct bh_tree_head
head(uint64_t size)
{
    struct bh_tree_head tree = { .size = size };

    memcpy(tree.root, roots[size], sizeof tree.root);
    return tree;
}

static struct bh_proof
inclusion(uint64_t index, uint64_t size)
{
    const uint64_t where[2] = { index, size };
    struct bh_proof proof;

    assert_int_equal(bh_proof_inclusion(crypto, &source, where, &proof, &err), BH_OK);
    return proof;
}

static struct bh_proof
consistency(uint64_t old, uint64_t new)
{
    const uint64_t sizes[2] = { old, new };
    struct bh_proof proof;

    assert_int_equal(bh_proof_consistency(crypto, &source, sizes, &proof, &err), BH_OK);
    return proof;
}

static bh_rc
check_consistency(const struct bh_proof *proof, uint64_t old, uint64_t new)
{
    const struct bh_tree_head trees[2] = { head(old), head(new) };

    return bh_proof_check_consistency(crypto, proof, trees);
}

/* The tree of seven in RFC 6962, 2.1.3: its nodes are named as there. */
static void
as_the_rfc_draws_it(void **state)
{
    uint8_t g[32], h[32], i[32], k[32], l[32];
    struct bh_proof proof;

    bh_merkle_node(crypto, hashes[0], hashes[1], g);
    bh_merkle_node(crypto, hashes[2], hashes[3], h);
    bh_merkle_node(crypto, hashes[4], hashes[5], i);
    bh_merkle_node(crypto, g, h, k);
    bh_merkle_node(crypto, i, hashes[6], l);

    proof = inclusion(0, 7);
    BH_CHECK_EQ("d0", proof.count, 3);
    BH_CHECK("d0: b", memcmp(proof.hashes[0], hashes[1], 32) == 0);
    BH_CHECK("d0: h", memcmp(proof.hashes[1], h, 32) == 0);
    BH_CHECK("d0: l", memcmp(proof.hashes[2], l, 32) == 0);
    proof = inclusion(6, 7);
    BH_CHECK_EQ("d6", proof.count, 2);
    BH_CHECK("d6: i", memcmp(proof.hashes[0], i, 32) == 0);
    BH_CHECK("d6: k", memcmp(proof.hashes[1], k, 32) == 0);
    proof = consistency(3, 7);
    BH_CHECK_EQ("3 in 7", proof.count, 4);
    BH_CHECK("3 in 7: c", memcmp(proof.hashes[0], hashes[2], 32) == 0);
    BH_CHECK("3 in 7: d", memcmp(proof.hashes[1], hashes[3], 32) == 0);
    BH_CHECK("3 in 7: g", memcmp(proof.hashes[2], g, 32) == 0);
    BH_CHECK("3 in 7: l", memcmp(proof.hashes[3], l, 32) == 0);
    proof = consistency(4, 7);
    BH_CHECK_EQ("4 in 7", proof.count, 1);
    BH_CHECK("4 in 7: l", memcmp(proof.hashes[0], l, 32) == 0);
    BH_CHECK_DONE();
}

/* For every size some leaves, among them the first and the last: the proof holds, and
 * not for the leaf beside it, another place or another tree. */
static void
every_size_includes(void **state)
{
    for (uint64_t size = 1; size <= LEAVES; size++) {
        const struct bh_tree_head tree = head(size);
        struct bh_tree_head other = tree;

        other.root[size % 32] ^= 1;
        for (uint64_t index = 0; index < size; index += index + 1 == size ? 1 : 1 + size / 7) {
            struct bh_proof proof = inclusion(index, size);
            uint64_t beside = index + 1 < size ? index + 1 : 0;

            BH_CHECK_EQ("holds", bh_proof_check_inclusion(crypto, &proof, index, hashes[index], &tree),
                        BH_OK);
            BH_CHECK_EQ("other root", bh_proof_check_inclusion(crypto, &proof, index, hashes[index], &other),
                        BH_CONFLICT);
            if (size == 1)
                continue;
            BH_CHECK_EQ("other leaf", bh_proof_check_inclusion(crypto, &proof, index, hashes[beside], &tree),
                        BH_CONFLICT);
            BH_CHECK_EQ("other place", bh_proof_check_inclusion(crypto, &proof, beside, hashes[index], &tree),
                        BH_CONFLICT);
            proof.count--;
            BH_CHECK_EQ("one short", bh_proof_check_inclusion(crypto, &proof, index, hashes[index], &tree),
                        BH_CONFLICT);
            proof.count += 2;
            BH_CHECK_EQ("one long", bh_proof_check_inclusion(crypto, &proof, index, hashes[index], &tree),
                        BH_CONFLICT);
        }
    }
    BH_CHECK_DONE();
}

static void
every_size_begins(void **state)
{
    for (uint64_t new = 1; new <= LEAVES; new += 1 + new / 50)
        for (uint64_t old = 0; old <= new; old++) {
            struct bh_proof proof = consistency(old, new);

            BH_CHECK_EQ("holds", check_consistency(&proof, old, new), BH_OK);
            if (old == 0 || old == new)
                continue;
            BH_CHECK_EQ("another old tree", check_consistency(&proof, old - 1, new), BH_CONFLICT);
            BH_CHECK_EQ("backwards", check_consistency(&proof, new, old), BH_CONFLICT);
            proof.hashes[old % proof.count][new % 32] ^= 0x10;
            BH_CHECK_EQ("a bit flipped", check_consistency(&proof, old, new), BH_CONFLICT);
            proof.hashes[old % proof.count][new % 32] ^= 0x10;
            proof.count--;
            BH_CHECK_EQ("one short", check_consistency(&proof, old, new), BH_CONFLICT);
        }
    BH_CHECK_DONE();
}

/* Every bit of a proof counts. */
static void
proof_every_bit(void **state)
{
    struct bh_proof proof = inclusion(299, 700);
    const struct bh_tree_head tree = head(700);

    for (uint32_t bit = 0; bit < 256 * proof.count; bit++) {
        uint8_t *byte = &proof.hashes[bit / 256][bit / 8 % 32];

        *byte ^= (uint8_t)(1 << bit % 8);
        BH_CHECK_EQ("flipped", bh_proof_check_inclusion(crypto, &proof, 299, hashes[299], &tree),
                    BH_CONFLICT);
        *byte ^= (uint8_t)(1 << bit % 8);
    }
    BH_CHECK_EQ("whole again", bh_proof_check_inclusion(crypto, &proof, 299, hashes[299], &tree), BH_OK);
    BH_CHECK_DONE();
}

static void
at_the_edges(void **state)
{
    const uint64_t outside[2] = { 5, 5 }, shrunk[2] = { 6, 5 };
    struct bh_proof proof = { .count = 77 };
    struct bh_tree_head empty[2] = { head(0), head(5) };
    uint8_t root[32];

    BH_CHECK_EQ("no such record", bh_proof_inclusion(crypto, &source, outside, &proof, &err), BH_RANGE);
    BH_CHECK_EQ("shrunk", bh_proof_consistency(crypto, &source, shrunk, &proof, &err), BH_RANGE);
    BH_CHECK_EQ("untouched", proof.count, 77);
    BH_CHECK_EQ("too many", check_consistency(&proof, 3, 5), BH_CONFLICT);
    for (uint64_t size = 0; size <= 300; size++) {
        assert_int_equal(bh_proof_root(crypto, &source, size, root, &err), BH_OK);
        BH_CHECK("root", memcmp(root, roots[size], 32) == 0);
    }
    proof.count = 0;
    BH_CHECK_EQ("empty begins", bh_proof_check_consistency(crypto, &proof, empty), BH_OK);
    empty[0].root[0] ^= 1;
    BH_CHECK_EQ("no empty tree", bh_proof_check_consistency(crypto, &proof, empty), BH_CONFLICT);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_rfc_draws_it), cmocka_unit_test(every_size_includes),
        cmocka_unit_test(every_size_begins),   cmocka_unit_test(proof_every_bit),
        cmocka_unit_test(at_the_edges),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_tree, NULL);
}
