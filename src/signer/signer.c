#include "signer/signer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/checkpoint.h"
#include "base/fd.h"
#include "crypto/openssl.h"
#include "signer/mark.h"

enum { PATH_BYTES = sizeof ((struct bh_signer *)0)->folder + 16 };

static void
path_of(const struct bh_signer *signer, const char *name, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%s/%s", signer->folder, name);
}

/* The key before the present one, which may be the same after a crash in the middle. */
static bh_rc
load_old(struct bh_signer *signer, struct bh_err *err)
{
    char path[PATH_BYTES];
    bh_rc rc;

    path_of(signer, "audit.key.old", path);
    if (access(path, F_OK) != 0)
        return BH_OK;
    rc = bh_crypto_key_load_or_make(signer->crypto, path, signer->old_private_key, NULL, err);
    if (rc == BH_OK)
        rc = signer->crypto->public_of(signer->old_private_key, signer->old_public_key, err);
    signer->has_old = rc == BH_OK && memcmp(signer->public_key, signer->old_public_key, 32) != 0;
    return rc;
}

/* A key is made where nothing was signed yet.  Otherwise it was lost, and another in its place would
 * vouch for a log that it never saw. */
static bh_rc
check_lost(const char *folder, const char *path, struct bh_err *err)
{
    struct bh_merkle_frontier mark;
    bool found;
    bh_rc rc;

    if (access(path, F_OK) == 0 || errno != ENOENT)
        return BH_OK;
    rc = bh_mark_load(folder, &mark, &found, err);
    if (rc != BH_OK || mark.size == 0)
        return rc;
    bh_err_set(err, BH_INVALID, "%s is missing, although %" PRIu64 " records were signed with it",
               path, mark.size);
    return bh_err_hint(err, "put it back from a backup; if it is lost, write 0 into audit.signed beside "
                            "it: another is made, and who has the old audit.vkey sees that");
}

bh_rc
bh_signer_open(struct bh_signer *signer, const struct bh_crypto_ops *crypto, const char *folder,
               struct bh_err *err)
{
    char path[PATH_BYTES];
    bh_rc rc;

    *signer = (struct bh_signer){ .crypto = crypto };
    if ((size_t)snprintf(signer->folder, sizeof signer->folder, "%s", folder)
        >= sizeof signer->folder)
        return bh_err_set(err, BH_INVALID, "the folder's name is too long: %.100s", folder);
    path_of(signer, "audit.key", path);
    rc = check_lost(folder, path, err);
    if (rc == BH_OK)
        rc = bh_crypto_key_load_or_make(crypto, path, signer->private_key, &signer->made, err);
    if (rc == BH_OK)
        rc = crypto->public_of(signer->private_key, signer->public_key, err);
    if (rc == BH_OK)
        rc = load_old(signer, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "audit key");
}

void
bh_signer_close(struct bh_signer *signer)
{
    explicit_bzero(signer->private_key, sizeof signer->private_key);
    explicit_bzero(signer->old_private_key, sizeof signer->old_private_key);
}

/* The copy first: there is a key at every moment. */
bh_rc
bh_signer_rotate(struct bh_signer *signer, struct bh_err *err)
{
    char path[PATH_BYTES];
    bh_rc rc;

    if (signer->has_old)
        return bh_err_set(err, BH_CONFLICT, "the key before was not retired yet");
    path_of(signer, "audit.key.old", path);
    rc = bh_file_replace(path, signer->private_key, sizeof signer->private_key, 0600, err);
    if (rc != BH_OK)
        return rc;
    memcpy(signer->old_private_key, signer->private_key, sizeof signer->private_key);
    memcpy(signer->old_public_key, signer->public_key, sizeof signer->public_key);
    rc = signer->crypto->make_key(signer->private_key, signer->public_key, err);
    path_of(signer, "audit.key", path);
    if (rc == BH_OK)
        rc = bh_file_replace(path, signer->private_key, sizeof signer->private_key, 0600, err);
    signer->has_old = rc == BH_OK;
    return rc;
}

bh_rc
bh_signer_retire(struct bh_signer *signer, struct bh_err *err)
{
    char path[PATH_BYTES];

    path_of(signer, "audit.key.old", path);
    if (unlink(path) != 0)
        return bh_err_errno(err, "%s", path);
    explicit_bzero(signer->old_private_key, sizeof signer->old_private_key);
    signer->has_old = false;
    return BH_OK;
}

static bh_rc
put_key(const struct bh_signer *signer, const char *name, const uint8_t public_key[32],
        struct bh_buf *text, struct bh_err *err)
{
    struct bh_note_key key;
    bh_rc rc = bh_note_key_make(signer->crypto, name, public_key, &key, err);

    if (rc != BH_OK)
        return rc;
    bh_note_key_format(text, &key);
    bh_buf_putc(text, '\n');
    return BH_OK;
}

static bh_rc
put_keys(const struct bh_signer *signer, const char *name, struct bh_signer_answer *answer,
         struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, answer->vkeys, sizeof answer->vkeys);
    rc = put_key(signer, name, signer->public_key, &text, err);
    if (rc == BH_OK && signer->has_old)
        rc = put_key(signer, name, signer->old_public_key, &text, err);
    if (rc != BH_OK)
        return rc;
    return bh_buf_text(&text) ? BH_OK : bh_err_set(err, BH_BUG, "the public key is too long");
}

/* Nothing was signed, as the mark says: then the daemon's count and its records are at odds. */
static bh_rc
refuse_root(uint64_t marked, struct bh_err *err)
{
    if (marked == 0) {
        bh_err_set(err, BH_CONFLICT, "the log's records are not those that bulkheadd counted");
        return bh_err_hint(err, "`bulkhead audit verify --store` tells what is wrong; restore a "
                                "backup of the whole state folder");
    }
    bh_err_set(err, BH_CONFLICT,
               "the log does not begin with the %" PRIu64 " records that were signed", marked);
    return bh_err_hint(err, BH_SIGNER_GO_BACK);
}

/* `tree` is the mark, and then the tree in question when that continues it. */
static bh_rc
extend(const struct bh_signer *signer, const struct bh_signer_question *question,
       struct bh_merkle_frontier *tree, struct bh_err *err)
{
    uint64_t marked = tree->size;
    uint8_t root[BH_MERKLE_HASH_BYTES];

    if (question->range.to < marked) {
        bh_err_set(err, BH_CONFLICT,
                   "the log holds %" PRIu64 " records but %" PRIu64 " were signed",
                   question->range.to, marked);
        return bh_err_hint(err, BH_SIGNER_GO_BACK);
    }
    if (!bh_merkle_frontier_extend(tree, signer->crypto, &question->range))
        return bh_err_set(err, BH_INVALID,
                          "what is appended does not begin behind the %" PRIu64 " records that "
                          "were signed", marked);
    bh_merkle_frontier_root(tree, signer->crypto, root);
    if (memcmp(root, question->root, sizeof root) == 0)
        return BH_OK;
    return refuse_root(marked, err);
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
    if (rc == BH_OK && signer->has_old)
        rc = bh_note_sign_too(signer->crypto, question->name, signer->old_private_key, &note, err);
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
        return put_keys(signer, question->name, answer, err);
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
