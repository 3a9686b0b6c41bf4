#include "signer/signer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/checkpoint.h"
#include "base/fd.h"
#include "crypto/openssl.h"
#include "signer/watermark.h"

enum { PATH_BYTES = sizeof((struct bh_signer *)0)->folder + 16 };

static void
signer_path_of(const struct bh_signer *signer, const char *name, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%s/%s", signer->folder, name);
}

static bool
signer_same(const uint8_t one[32], const uint8_t other[32])
{
    return memcmp(one, other, 32) == 0;
}

/* Whether audit.public says that a key before signs beside this one. */
static bool
signer_expects_old(const struct bh_signer *signer)
{
    return signer->own.count == 2 && signer_same(signer->own.keys[0], signer->public_key);
}

/* Both sign until --retire: without the old key, or with another one, a verifier that trusts it would find no
 * signature. */
static bh_rc
signer_refuse_old(const char *path, const char *what, struct bh_err *err)
{
    bh_err_set(err, BH_INVALID, "%s %s, and checkpoints are signed by the key before, too", path, what);
    return bh_err_hint(err, "put it back from its copy, or let it sign no more: bulkhead-signer --dir DIR "
                            "--retire");
}

/* The key before the present one.  It may be the same after a crash in the middle of a rotation, and
 * it lies there after one in the middle of a retirement: audit.public says which of these. */
static bh_rc
signer_load_old(struct bh_signer *signer, struct bh_err *err)
{
    char path[PATH_BYTES];
    bh_rc rc;

    signer_path_of(signer, "audit.key.old", path);
    if (access(path, F_OK) != 0)
        return signer_expects_old(signer) ? signer_refuse_old(path, "is missing", err) : BH_OK;
    rc = bh_crypto_key_load_or_make(signer->crypto, path, signer->old_private_key, NULL, err);
    if (rc != BH_OK)
        return rc;
    rc = signer->crypto->public_of(signer->old_private_key, signer->old_public_key, err);
    if (rc != BH_OK)
        return rc;
    if (signer_expects_old(signer) && !signer_same(signer->old_public_key, signer->own.keys[1]))
        return signer_refuse_old(path, "is another key than it was", err);
    signer->has_old = signer_expects_old(signer)
                      || (signer->own.count == 0 && !signer_same(signer->public_key, signer->old_public_key));
    return BH_OK;
}

/* A key that audit.public does not name is not its own, whatever put it there.  The second name is that
 * of the present key after a crash in the middle of a rotation. */
static bh_rc
signer_check_own(struct bh_signer *signer, const char *path, struct bh_err *err)
{
    bh_rc rc = bh_own_load(signer->folder, &signer->own, err);

    if (rc != BH_OK || signer->own.count == 0)
        return rc;
    for (uint32_t i = 0; i < signer->own.count; i++)
        if (signer_same(signer->own.keys[i], signer->public_key))
            return BH_OK;
    bh_err_set(err, BH_INVALID, "%s is another key than the one that signed, which audit.public names", path);
    return bh_err_hint(err, "put it back from its copy; if there is none, remove it and write 0 into "
                            "audit.signed: another is made, and who has the old audit.vkey sees that");
}

/* A key is made where nothing was signed yet.  Otherwise it was lost, and another in its place would
 * vouch for a log that it never saw. */
static bh_rc
signer_check_lost(const char *folder, const char *path, struct bh_err *err)
{
    struct bh_merkle_frontier watermark;
    bool found;
    bh_rc rc;

    if (access(path, F_OK) == 0 || errno != ENOENT)
        return BH_OK;
    rc = bh_watermark_load(folder, &watermark, &found, err);
    if (rc != BH_OK || watermark.size == 0)
        return rc;
    bh_err_set(err, BH_INVALID, "%s is missing, although %" PRIu64 " records were signed with it", path,
               watermark.size);
    return bh_err_hint(err, "put it back from a backup; if it is lost, write 0 into audit.signed beside "
                            "it: another is made, and who has the old audit.vkey sees that");
}

/* A key that is made takes the place of none: what was said of the one before it goes first. */
static bh_rc
signer_load_or_make(struct bh_signer *signer, const char *path, struct bh_err *err)
{
    bh_rc rc = signer_check_lost(signer->folder, path, err);

    if (rc != BH_OK)
        return rc;
    if (access(path, F_OK) != 0)
        rc = bh_own_forget(signer->folder, err);
    if (rc != BH_OK)
        return rc;
    return bh_crypto_key_load_or_make(signer->crypto, path, signer->private_key, &signer->made, err);
}

static bh_rc
signer_open_present(struct bh_signer *signer, const struct bh_crypto_ops *crypto, const char *folder,
                    struct bh_err *err)
{
    char path[PATH_BYTES];
    bh_rc rc;

    *signer = (struct bh_signer){ .crypto = crypto };
    if ((size_t)snprintf(signer->folder, sizeof signer->folder, "%s", folder) >= sizeof signer->folder)
        return bh_err_set(err, BH_INVALID, "the folder's name is too long: %.100s", folder);
    signer_path_of(signer, "audit.key", path);
    rc = signer_load_or_make(signer, path, err);
    if (rc != BH_OK)
        return rc;
    rc = crypto->public_of(signer->private_key, signer->public_key, err);
    if (rc != BH_OK)
        return rc;
    return signer_check_own(signer, path, err);
}

bh_rc
bh_signer_open(struct bh_signer *signer, const struct bh_crypto_ops *crypto, const char *folder,
               struct bh_err *err)
{
    bh_rc rc = signer_open_present(signer, crypto, folder, err);

    if (rc == BH_OK)
        rc = signer_load_old(signer, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "audit key");
}

bh_rc
bh_signer_open_to_retire(struct bh_signer *signer, const struct bh_crypto_ops *crypto, const char *folder,
                         struct bh_err *err)
{
    bh_rc rc = signer_open_present(signer, crypto, folder, err);

    return rc == BH_OK ? rc : bh_err_wrap(err, "audit key");
}

void
bh_signer_close(struct bh_signer *signer)
{
    explicit_bzero(signer->private_key, sizeof signer->private_key);
    explicit_bzero(signer->old_private_key, sizeof signer->old_private_key);
}

/* From now on these are its own; `older` may be NULL. */
static bh_rc
signer_own(struct bh_signer *signer, const uint8_t key[32], const uint8_t *older, struct bh_err *err)
{
    struct bh_own own = { .count = older ? 2 : 1 };
    bh_rc rc;

    memcpy(own.keys[0], key, 32);
    if (older)
        memcpy(own.keys[1], older, 32);
    rc = bh_own_save(signer->folder, &own, err);
    if (rc != BH_OK)
        return rc;
    signer->own = own;
    return BH_OK;
}

/* The copy first: there is a key at every moment.  Then the names of both, of which the present key
 * is one before and after it is replaced. */
bh_rc
bh_signer_rotate(struct bh_signer *signer, struct bh_err *err)
{
    char path[PATH_BYTES];
    uint8_t private_key[32], public_key[32];
    bh_rc rc;

    if (signer->has_old)
        return bh_err_set(err, BH_CONFLICT, "the key before was not retired yet");
    signer_path_of(signer, "audit.key.old", path);
    rc = bh_file_replace(path, signer->private_key, sizeof signer->private_key, 0600, err);
    if (rc == BH_OK)
        rc = signer->crypto->make_key(private_key, public_key, err);
    if (rc == BH_OK)
        rc = signer_own(signer, public_key, signer->public_key, err);
    signer_path_of(signer, "audit.key", path);
    if (rc == BH_OK)
        rc = bh_file_replace(path, private_key, sizeof private_key, 0600, err);
    if (rc == BH_OK) {
        memcpy(signer->old_private_key, signer->private_key, sizeof signer->private_key);
        memcpy(signer->old_public_key, signer->public_key, sizeof signer->public_key);
        memcpy(signer->private_key, private_key, sizeof private_key);
        memcpy(signer->public_key, public_key, sizeof public_key);
        signer->has_old = true;
    }
    explicit_bzero(private_key, sizeof private_key);
    return rc;
}

/* The name first: a key that is not named signs nothing, so a crash behind it retired the key, too. */
bh_rc
bh_signer_retire(struct bh_signer *signer, struct bh_err *err)
{
    char path[PATH_BYTES];
    bool named = signer->own.count == 2;
    bh_rc rc = named ? signer_own(signer, signer->public_key, NULL, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    signer_path_of(signer, "audit.key.old", path);
    if (unlink(path) != 0 && !(named && errno == ENOENT))
        return bh_err_errno(err, "%s", path);
    explicit_bzero(signer->old_private_key, sizeof signer->old_private_key);
    signer->has_old = false;
    return BH_OK;
}

static bh_rc
signer_put_key(const struct bh_signer *signer, const char *name, const uint8_t public_key[32],
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
signer_put_keys(const struct bh_signer *signer, const char *name, struct bh_signer_reply *answer,
                struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, answer->vkeys, sizeof answer->vkeys);
    rc = signer_put_key(signer, name, signer->public_key, &text, err);
    if (rc != BH_OK)
        return rc;
    if (signer->has_old)
        rc = signer_put_key(signer, name, signer->old_public_key, &text, err);
    if (rc != BH_OK)
        return rc;
    return bh_buf_text(&text) ? BH_OK : bh_err_set(err, BH_BUG, "the public key is too long");
}

/* Nothing was signed, as the mark says: then the daemon's count and its records are at odds. */
static bh_rc
signer_refuse_root(uint64_t has_watermark, struct bh_err *err)
{
    if (has_watermark == 0) {
        bh_err_set(err, BH_CONFLICT, "the log's records are not those that bulkheadd counted");
        return bh_err_hint(err, "`bulkhead audit verify --store` tells what is wrong; restore a "
                                "backup of the whole state folder");
    }
    bh_err_set(err, BH_CONFLICT, "the log does not begin with the %" PRIu64 " records that were signed",
               has_watermark);
    return bh_err_hint(err, BH_SIGNER_GO_BACK);
}

/* `tree` is the mark, and then the tree in question when that continues it. */
static bh_rc
signer_extend(const struct bh_signer *signer, const struct bh_signer_request *question,
              struct bh_merkle_frontier *tree, struct bh_err *err)
{
    uint64_t has_watermark = tree->size;
    uint8_t root[BH_MERKLE_HASH_BYTES];

    if (question->range.to < has_watermark) {
        bh_err_set(err, BH_CONFLICT, "the log holds %" PRIu64 " records but %" PRIu64 " were signed",
                   question->range.to, has_watermark);
        return bh_err_hint(err, BH_SIGNER_GO_BACK);
    }
    if (!bh_merkle_frontier_extend(tree, signer->crypto, &question->range))
        return bh_err_set(err, BH_INVALID,
                          "what is appended does not begin behind the %" PRIu64 " records that "
                          "were signed",
                          has_watermark);
    bh_merkle_frontier_root(tree, signer->crypto, root);
    if (memcmp(root, question->root, sizeof root) == 0)
        return BH_OK;
    return signer_refuse_root(has_watermark, err);
}

/* With the first signature, not at the start: the daemon asks for one after it has found the key to be the
 * right one (it compares it with audit.vkey), also in an older folder. */
static bh_rc
signer_bind_key(struct bh_signer *signer, struct bh_err *err)
{
    if (signer->own.count > 0)
        return BH_OK;
    return signer_own(signer, signer->public_key, signer->has_old ? signer->old_public_key : NULL, err);
}

/* The mark first: what was signed is never larger. */
static bh_rc
signer_sign(struct bh_signer *signer, const struct bh_signer_request *question,
            const struct bh_merkle_frontier *tree, struct bh_signer_reply *answer, struct bh_err *err)
{
    struct bh_checkpoint checkpoint = { .size = tree->size };
    bh_rc rc = signer_bind_key(signer, err);
    struct bh_buf note;

    snprintf(checkpoint.origin, sizeof checkpoint.origin, "%s", question->name);
    memcpy(checkpoint.root, question->root, sizeof checkpoint.root);
    bh_buf_init_fixed(&note, answer->note, sizeof answer->note);
    if (rc != BH_OK)
        return rc;
    if (tree->size != answer->size)
        rc = bh_watermark_save(signer->folder, tree, err);
    if (rc != BH_OK)
        return rc;
    answer->size = tree->size;
    answer->has_watermark = true;
    rc = bh_checkpoint_sign(signer->crypto, &checkpoint, signer->private_key, &note, err);
    if (rc != BH_OK)
        return rc;
    if (signer->has_old)
        rc = bh_note_sign_too(signer->crypto, question->name, signer->old_private_key, &note, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_buf_text(&note))
        return bh_err_set(err, BH_BUG, "the checkpoint is too long");
    return BH_OK;
}

static bh_rc
signer_check_form(const struct bh_signer_request *question, struct bh_err *err)
{
    if (question->version != BH_SIGNER_VERSION || question->verb >= BH_SIGNER_VERBS)
        return bh_err_set(err, BH_INVALID, "the question is of another version");
    if (!memchr(question->name, '\0', sizeof question->name) || !bh_note_name_valid(question->name))
        return bh_err_set(err, BH_INVALID, "the log's name is malformed");
    return BH_OK;
}

static bh_rc
signer_answer_well_formed(struct bh_signer *signer, const struct bh_signer_request *question,
                          struct bh_signer_reply *answer, struct bh_err *err)
{
    struct bh_merkle_frontier tree;
    bool has_watermark;
    bh_rc rc = bh_watermark_load(signer->folder, &tree, &has_watermark, err);

    if (rc != BH_OK)
        return rc;
    answer->size = tree.size;
    answer->has_watermark = has_watermark;
    if (question->verb == BH_SIGNER_HELLO)
        return signer_put_keys(signer, question->name, answer, err);
    rc = signer_extend(signer, question, &tree, err);
    if (rc != BH_OK)
        return rc;
    if (question->verb == BH_SIGNER_SIGN)
        return signer_sign(signer, question, &tree, answer, err);
    return BH_OK;
}

void
bh_signer_reply(struct bh_signer *signer, const struct bh_signer_request *question,
                struct bh_signer_reply *ret_answer)
{
    struct bh_err err = { 0 };
    bh_rc rc = signer_check_form(question, &err);

    memset(ret_answer, 0, sizeof *ret_answer);
    ret_answer->version = BH_SIGNER_VERSION;
    ret_answer->number = question->number;
    if (rc == BH_OK)
        rc = signer_answer_well_formed(signer, question, ret_answer, &err);
    ret_answer->rc = (uint32_t)rc;
    if (rc == BH_OK)
        return;
    ret_answer->note[0] = '\0';
    snprintf(ret_answer->why, sizeof ret_answer->why, "%s", err.msg);
    snprintf(ret_answer->hint, sizeof ret_answer->hint, "%s", err.hint);
}
