#include "signer/signer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/checkpoint.h"
#include "crypto/openssl.h"
#include "signer/mark.h"

bh_rc
bh_signer_open(struct bh_signer *signer, const struct bh_crypto_ops *crypto, const char *folder,
               struct bh_err *err)
{
    char path[sizeof signer->folder + 16];
    bh_rc rc;

    *signer = (struct bh_signer){ .crypto = crypto };
    if ((size_t)snprintf(signer->folder, sizeof signer->folder, "%s", folder)
        >= sizeof signer->folder)
        return bh_err_set(err, BH_INVALID, "the folder's name is too long: %.100s", folder);
    snprintf(path, sizeof path, "%s/audit.key", folder);
    rc = bh_crypto_key_load_or_make(crypto, path, signer->private_key, &signer->made, err);
    if (rc == BH_OK)
        rc = crypto->public_of(signer->private_key, signer->public_key, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "audit key");
}

void
bh_signer_close(struct bh_signer *signer)
{
    explicit_bzero(signer->private_key, sizeof signer->private_key);
}

static bh_rc
put_key(const struct bh_signer *signer, const char *name, struct bh_signer_answer *answer,
        struct bh_err *err)
{
    struct bh_note_key key;
    struct bh_buf text;
    bh_rc rc = bh_note_key_make(signer->crypto, name, signer->public_key, &key, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&text, answer->vkey, sizeof answer->vkey);
    bh_note_key_format(&text, &key);
    return bh_buf_text(&text) ? BH_OK : bh_err_set(err, BH_BUG, "the public key is too long");
}

/* `tree` is the mark, and then the tree in question when that continues it. */
static bh_rc
extend(const struct bh_signer *signer, const struct bh_signer_question *question,
       struct bh_merkle_frontier *tree, struct bh_err *err)
{
    uint64_t marked = tree->size;
    uint8_t root[BH_MERKLE_HASH_BYTES];

    if (question->range.to < marked)
        return bh_err_set(err, BH_CONFLICT,
                          "the log holds %" PRIu64 " records but %" PRIu64 " were signed",
                          question->range.to, marked);
    if (!bh_merkle_frontier_extend(tree, signer->crypto, &question->range))
        return bh_err_set(err, BH_INVALID,
                          "what is appended does not begin behind the %" PRIu64 " records that "
                          "were signed", marked);
    bh_merkle_frontier_root(tree, signer->crypto, root);
    if (memcmp(root, question->root, sizeof root) == 0)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT,
                      "the log does not begin with the %" PRIu64 " records that were signed",
                      marked);
}

/* The mark first: what was signed is never larger. */
static bh_rc
sign(const struct bh_signer *signer, const struct bh_signer_question *question,
     const struct bh_merkle_frontier *tree, struct bh_signer_answer *answer, struct bh_err *err)
{
    struct bh_checkpoint checkpoint = { .size = tree->size };
    bh_rc rc = BH_OK;
    struct bh_buf note;

    snprintf(checkpoint.origin, sizeof checkpoint.origin, "%s", question->name);
    memcpy(checkpoint.root, question->root, sizeof checkpoint.root);
    bh_buf_init_fixed(&note, answer->note, sizeof answer->note);
    if (tree->size != answer->size)
        rc = bh_mark_save(signer->folder, tree, err);
    if (rc != BH_OK)
        return rc;
    answer->size = tree->size;
    answer->marked = true;
    rc = bh_checkpoint_sign(signer->crypto, &checkpoint, signer->private_key, &note, err);
    if (rc == BH_OK && !bh_buf_text(&note))
        rc = bh_err_set(err, BH_BUG, "the checkpoint is too long");
    return rc;
}

static bh_rc
check_form(const struct bh_signer_question *question, struct bh_err *err)
{
    if (question->version != BH_SIGNER_VERSION || question->verb >= BH_SIGNER_VERBS)
        return bh_err_set(err, BH_INVALID, "the question is of another version");
    if (!memchr(question->name, '\0', sizeof question->name)
        || !bh_note_name_valid(question->name))
        return bh_err_set(err, BH_INVALID, "the log's name is malformed");
    return BH_OK;
}

static bh_rc
answer_well_formed(const struct bh_signer *signer, const struct bh_signer_question *question,
                   struct bh_signer_answer *answer, struct bh_err *err)
{
    struct bh_merkle_frontier tree;
    bool marked;
    bh_rc rc = bh_mark_load(signer->folder, &tree, &marked, err);

    if (rc != BH_OK)
        return rc;
    answer->size = tree.size;
    answer->marked = marked;
    if (question->verb == BH_SIGNER_HELLO)
        return put_key(signer, question->name, answer, err);
    rc = extend(signer, question, &tree, err);
    if (rc == BH_OK && question->verb == BH_SIGNER_SIGN)
        rc = sign(signer, question, &tree, answer, err);
    return rc;
}

void
bh_signer_answer(struct bh_signer *signer, const struct bh_signer_question *question,
                 struct bh_signer_answer *ret_answer)
{
    struct bh_err err = { 0 };
    bh_rc rc = check_form(question, &err);

    memset(ret_answer, 0, sizeof *ret_answer);
    ret_answer->version = BH_SIGNER_VERSION;
    ret_answer->number = question->number;
    if (rc == BH_OK)
        rc = answer_well_formed(signer, question, ret_answer, &err);
    ret_answer->rc = (uint32_t)rc;
    if (rc == BH_OK)
        return;
    ret_answer->note[0] = '\0';
    snprintf(ret_answer->why, sizeof ret_answer->why, "%s", err.msg);
    snprintf(ret_answer->hint, sizeof ret_answer->hint, "%s", err.hint);
}
