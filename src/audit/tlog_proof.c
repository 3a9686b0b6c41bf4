#include "audit/tlog_proof.h"

#include <string.h>

#include "base/base64.h"
#include "base/num.h"

static const char first_line[] = "c2sp.org/tlog-proof@v1";

enum { LINE_MAX = 128 };

void
bh_tlog_proof_format(struct bh_buf *out, const struct bh_tlog_proof *proof)
{
    bh_buf_puts(out, first_line);
    if (proof->extra_length) {
        bh_buf_puts(out, "\nextra ");
        bh_buf_put(out, proof->extra, proof->extra_length);
    }
    bh_buf_puts(out, "\nindex ");
    bh_buf_put_u64(out, proof->index);
    bh_buf_putc(out, '\n');
    for (uint32_t i = 0; i < proof->path.count; i++) {
        bh_base64_encode(out, proof->path.hashes[i], 32);
        bh_buf_putc(out, '\n');
    }
    bh_buf_putc(out, '\n');
    bh_buf_puts(out, proof->note);
}

/* The next line, without its newline, into LINE_MAX bytes. */
static bool
tlog_proof_parse_line(const char **at, char ret_line[LINE_MAX])
{
    const char *end = strchr(*at, '\n');
    size_t length = end ? (size_t)(end - *at) : 0;

    if (!end || length >= LINE_MAX)
        return false;
    memcpy(ret_line, *at, length);
    ret_line[length] = '\0';
    *at = end + 1;
    return true;
}

/* Whether it is base 64, of whatever length. */
static bool
proof_is_base64(const char *text, size_t length)
{
    if (length % 4)
        return false;
    for (size_t i = 0; i < length; i += 4) {
        char bytes[3];
        struct bh_buf out;

        bh_buf_init_fixed(&out, bytes, sizeof bytes);
        if (!bh_base64_decode(&out, text + i, 4) || (out.length < 3 && i + 4 < length))
            return false;
    }
    return true;
}

/* The `extra` line, where there is one. */
static bool
tlog_proof_parse_extra(const char **at, struct bh_tlog_proof *ret)
{
    static const char word[] = "extra ";
    const char *end;

    if (strncmp(*at, word, sizeof word - 1) != 0)
        return true;
    ret->extra = *at + sizeof word - 1;
    end = strchr(ret->extra, '\n');
    if (!end)
        return false;
    ret->extra_length = (size_t)(end - ret->extra);
    *at = end + 1;
    return proof_is_base64(ret->extra, ret->extra_length);
}

static bool
proof_parse_head(const char **at, struct bh_tlog_proof *ret)
{
    char line[LINE_MAX];
    struct bh_err err;

    return tlog_proof_parse_line(at, line) && strcmp(line, first_line) == 0 && tlog_proof_parse_extra(at, ret)
           && tlog_proof_parse_line(at, line) && strncmp(line, "index ", 6) == 0
           && bh_parse_u64(line + 6, &ret->index, &err) == BH_OK;
}

static bool
proof_parse_hash(const char *line, uint8_t ret_hash[32])
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, ret_hash, 32);
    return bh_base64_decode(&out, line, strlen(line)) && out.length == 32;
}

/* Hashes up to the empty line. */
static bool
proof_parse_path(const char **at, struct bh_proof *ret)
{
    char line[LINE_MAX];

    for (;;) {
        if (!tlog_proof_parse_line(at, line))
            return false;
        if (line[0] == '\0')
            return true;
        if (ret->count == BH_PROOF_HASHES_MAX || !proof_parse_hash(line, ret->hashes[ret->count]))
            return false;
        ret->count++;
    }
}

bh_rc
bh_tlog_proof_parse(const char *text, struct bh_tlog_proof *ret_proof, struct bh_err *err)
{
    struct bh_tlog_proof proof = { 0 };
    const char *at = text;

    if (!proof_parse_head(&at, &proof))
        return bh_err_set(err, BH_INVALID, "not a proof: it does not begin with \"%s\" and an index",
                          first_line);
    if (!proof_parse_path(&at, &proof.path))
        return bh_err_set(err, BH_INVALID, "not a proof: its hashes are not lines of 32 bytes in base 64");
    proof.note = at;
    *ret_proof = proof;
    return BH_OK;
}

bh_rc
bh_tlog_proof_check(const struct bh_crypto_ops *crypto, const struct bh_note_key *key,
                    struct bh_tlog_proof *proof, const uint8_t leaf_hash[32], struct bh_err *err)
{
    struct bh_checkpoint checkpoint;
    struct bh_tree_head tree;
    bh_rc rc = bh_checkpoint_open(crypto, key, proof->note, &checkpoint, err);

    if (rc != BH_OK)
        return rc;
    tree.size = checkpoint.size;
    memcpy(tree.root, checkpoint.root, sizeof tree.root);
    if (bh_proof_check_inclusion(crypto, &proof->path, proof->index, leaf_hash, &tree) != BH_OK)
        return bh_err_set(err, BH_CONFLICT,
                          "this is not record %" PRIu64 " of the log of %" PRIu64 " records that %s signed",
                          proof->index, tree.size, key->name);
    proof->tree = checkpoint;
    return BH_OK;
}
