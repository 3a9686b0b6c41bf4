#include "audit/merkle.h"

#include <string.h>

#include "base/num.h"
#include "ports/crypto.h"

void
bh_merkle_leaf(const struct bh_crypto_ops *crypto, const void *record, size_t length, uint8_t ret_hash[32])
{
    crypto->sha256("\0", 1, record, length, ret_hash);
}

void
bh_merkle_node(const struct bh_crypto_ops *crypto, const uint8_t left[32], const uint8_t right[32],
               uint8_t ret_hash[32])
{
    uint8_t pair[1 + 2 * BH_MERKLE_HASH_BYTES];

    pair[0] = 1;
    memcpy(pair + 1, left, BH_MERKLE_HASH_BYTES);
    memcpy(pair + 1 + BH_MERKLE_HASH_BYTES, right, BH_MERKLE_HASH_BYTES);
    crypto->sha256(pair, sizeof pair, NULL, 0, ret_hash);
}

void
bh_merkle_frontier_add(struct bh_merkle_frontier *frontier, const struct bh_crypto_ops *crypto,
                       const uint8_t leaf_hash[32])
{
    uint8_t hash[BH_MERKLE_HASH_BYTES];
    unsigned level = 0;

    /* A carry in binary: full subtrees of equal size join. */
    memcpy(hash, leaf_hash, sizeof hash);
    for (; frontier->size >> level & 1; level++)
        bh_merkle_node(crypto, frontier->peaks[level], hash, hash);
    memcpy(frontier->peaks[level], hash, sizeof hash);
    frontier->size++;
}

void
bh_merkle_frontier_root(const struct bh_merkle_frontier *frontier, const struct bh_crypto_ops *crypto,
                        uint8_t ret_root[32])
{
    bool begun = false;

    if (frontier->size == 0)
        crypto->sha256("", 0, NULL, 0, ret_root);
    for (unsigned level = 0; level < BH_MERKLE_PEAKS_MAX; level++) {
        if (!(frontier->size >> level & 1))
            continue;
        if (begun)
            bh_merkle_node(crypto, frontier->peaks[level], ret_root, ret_root);
        else
            memcpy(ret_root, frontier->peaks[level], BH_MERKLE_HASH_BYTES);
        begun = true;
    }
}

void
bh_merkle_frontier_format(struct bh_buf *out, const struct bh_merkle_frontier *frontier)
{
    bh_buf_put_u64(out, frontier->size);
    for (unsigned level = BH_MERKLE_PEAKS_MAX; level-- > 0;) {
        if (!(frontier->size >> level & 1))
            continue;
        bh_buf_putc(out, ' ');
        bh_buf_put_hex(out, frontier->peaks[level], BH_MERKLE_HASH_BYTES);
    }
}

static bool
parse_peak(const char **at, uint8_t ret_peak[32])
{
    char digits[2 * BH_MERKLE_HASH_BYTES + 1] = "";

    if (**at != ' ')
        return false;
    memcpy(digits, *at + 1, strnlen(*at + 1, sizeof digits - 1));
    *at += 1 + strlen(digits);
    return bh_parse_hex(digits, ret_peak, BH_MERKLE_HASH_BYTES);
}

bh_rc
bh_merkle_frontier_parse(const char *text, struct bh_merkle_frontier *ret_frontier, struct bh_err *err)
{
    struct bh_merkle_frontier frontier = { 0 };
    const char *blank = strchr(text, ' '), *at = text + (blank ? (size_t)(blank - text) : strlen(text));
    char digits[24] = "";
    bh_rc rc;

    memcpy(digits, text, (size_t)(at - text) < sizeof digits ? (size_t)(at - text) : sizeof digits - 1);
    rc = bh_parse_u64(digits, &frontier.size, err);
    if (rc != BH_OK)
        return bh_err_set(err, BH_INVALID, "tree frontier is malformed: no size");
    for (unsigned level = BH_MERKLE_PEAKS_MAX; level-- > 0;)
        if (frontier.size >> level & 1 && !parse_peak(&at, frontier.peaks[level]))
            return bh_err_set(err, BH_INVALID, "tree frontier is malformed: bad hash of 2^%u records", level);
    if (*at)
        return bh_err_set(err, BH_INVALID, "tree frontier is malformed: more than its size needs");
    *ret_frontier = frontier;
    return BH_OK;
}

void
bh_merkle_root(const struct bh_crypto_ops *crypto, const uint8_t (*leaf_hashes)[32], size_t count,
               uint8_t ret_root[32])
{
    uint8_t right[BH_MERKLE_HASH_BYTES];
    size_t split = 1;

    if (count == 0) {
        crypto->sha256("", 0, NULL, 0, ret_root);
        return;
    }
    if (count == 1) {
        memcpy(ret_root, leaf_hashes[0], BH_MERKLE_HASH_BYTES);
        return;
    }
    while (split * 2 < count)
        split *= 2;
    bh_merkle_root(crypto, leaf_hashes, split, ret_root);
    bh_merkle_root(crypto, leaf_hashes + split, count - split, right);
    bh_merkle_node(crypto, ret_root, right, ret_root);
}
