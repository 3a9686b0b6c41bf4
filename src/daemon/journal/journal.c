#include "daemon/journal/journal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/checkpoint.h"
#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"

static const char public_key_file[] = "audit.vkey";

static bool
journal_has_line(const char *known, const char *line)
{
    for (const char *at = known; (at = strstr(at, line)); at++)
        if (at == known || at[-1] == '\n')
            return true;
    return false;
}

/* Step behind the line at *at, which is taken with its newline; false at the end, and at what is no
 * line of a key. */
static bool
journal_take_line(const char **at, char ret_line[BH_NODE_RECORD_VKEY_MAX + 2])
{
    size_t length = strcspn(*at, "\n") + 1;

    if ((*at)[0] == '\0' || (*at)[length - 1] != '\n' || length >= BH_NODE_RECORD_VKEY_MAX + 2)
        return false;
    memcpy(ret_line, *at, length);
    ret_line[length] = '\0';
    *at += length;
    return true;
}

/* Append the lines of `known` that are not there yet, as far as there is room. */
static void
journal_add_older(struct bh_buf *text, const char *known)
{
    char line[BH_NODE_RECORD_VKEY_MAX + 2];
    uint32_t count = 0;

    for (const char *at = bh_buf_text(text); (at = strchr(at, '\n')); at++)
        count++;
    while (count < BH_NODE_RECORD_KEYS_MAX && journal_take_line(&known, line)) {
        if (journal_has_line(bh_buf_text(text), line))
            continue;
        bh_buf_puts(text, line);
        count++;
    }
}

/* A key that is not known yet is vouched for by a known one, which signs beside it.  Any other is taken
 * where there is none to hold it against, and where the log is begun anew on purpose: 0 stands in
 * audit.signed.  What is taken without that would pass for the same signer's. */
static bh_rc
journal_check_vouched(const struct bh_journal *journal, const char *known, struct bh_err *err)
{
    const struct bh_checkpoints *checkpoints = &journal->checkpoints;
    const char *at = checkpoints->vkeys;
    char line[BH_NODE_RECORD_VKEY_MAX + 2];

    if (!*known || (checkpoints->has_watermark && checkpoints->watermark_size == 0))
        return BH_OK;
    while (journal_take_line(&at, line))
        if (journal_has_line(known, line))
            return BH_OK;
    bh_err_set(err, BH_CONFLICT,
               "the signer has a key that %.150s/%s does not name, and no key of that "
               "file signs beside it",
               journal->state_dir, public_key_file);
    return bh_err_hint(err, "put audit.key back from its copy; if there is none, write 0 into "
                            "audit.signed: who has the old audit.vkey sees the other key");
}

/* What audit.vkey says; "" without the file.  A person may have left out its last line end, and then
 * it is to be written again. */
static bh_rc
journal_read_known(struct bh_journal *journal, const char *path, struct bh_buf *known, struct bh_err *err)
{
    struct bh_note_key keys[BH_NODE_RECORD_KEYS_MAX];
    bh_rc rc = bh_file_read(path, BH_JOURNAL_KEYS_BYTES_MAX - 2, known, err);

    journal->unpublished = rc != BH_OK || known->length == 0 || known->bytes[known->length - 1] != '\n';
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    if (known->length > 0 && journal->unpublished)
        bh_buf_putc(known, '\n');
    if (rc == BH_OK && known->length > 0)
        rc = bh_note_keys_parse(journal->crypto, bh_buf_text(known), keys, err);
    if (rc == BH_OK)
        return rc;
    bh_err_wrap(err, "%s", path);
    return bh_err_hint(err, "put it back from its copy; without one remove it: it is made anew, of the "
                            "keys that sign now");
}

/* What outsiders verify with: the present keys and all before, since older checkpoints were signed by
 * those. */
static bh_rc
journal_take_keys(struct bh_journal *journal, struct bh_err *err)
{
    char path[4096], memory[BH_JOURNAL_KEYS_BYTES_MAX], known_memory[BH_JOURNAL_KEYS_BYTES_MAX];
    struct bh_buf text, known;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/%s", journal->state_dir, public_key_file);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_buf_init_fixed(&known, known_memory, sizeof known_memory);
    rc = journal_read_known(journal, path, &known, err);
    if (rc != BH_OK)
        return rc;
    rc = journal_check_vouched(journal, bh_buf_text(&known), err);
    if (rc != BH_OK)
        return rc;
    bh_buf_puts(&text, journal->checkpoints.vkeys);
    journal_add_older(&text, bh_buf_text(&known));
    if (!bh_buf_text(&text))
        return bh_err_set(err, BH_BUG, "the public keys are too long");
    rc = bh_note_keys_parse(journal->crypto, bh_buf_text(&text), journal->keys, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", path);
    journal->key = journal->keys[0];
    snprintf(journal->vkeys, sizeof journal->vkeys, "%s", bh_buf_text(&text));
    journal->unpublished |= strcmp(journal->vkeys, bh_buf_text(&known)) != 0;
    return BH_OK;
}

/* Readable by all.  What is there already is not written again: a start wants no room for it. */
static bh_rc
journal_publish_keys(struct bh_journal *journal, struct bh_err *err)
{
    char path[4096];
    bh_rc rc;

    if (!journal->unpublished)
        return BH_OK;
    snprintf(path, sizeof path, "%s/%s", journal->state_dir, public_key_file);
    rc = bh_file_replace(path, journal->vkeys, strlen(journal->vkeys), 0644, err);
    journal->unpublished = rc != BH_OK;
    return rc == BH_OK ? rc : bh_err_hint(err, "make room on the disk of %.120s", journal->state_dir);
}

bh_rc
bh_journal_read_keys(const char *state_dir, struct bh_buf *ret_keys, struct bh_err *err)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", state_dir, public_key_file);
    return bh_file_read(path, BH_JOURNAL_KEYS_BYTES_MAX, ret_keys, err);
}

bh_rc
bh_journal_open(struct bh_journal *journal, const struct bh_daemon_config *config, struct bh_err *err)
{
    struct bh_checkpoints *checkpoints = &journal->checkpoints;
    bh_rc rc;

    journal->origin = config->site_name;
    journal->state_dir = config->state_dir;
    checkpoints->crypto = journal->crypto;
    checkpoints->name = journal->origin;
    rc = bh_checkpoints_open(checkpoints, err);
    if (rc == BH_OK)
        rc = journal_take_keys(journal, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "signer");
}

/* Every record gets a salt, also one that names a request.  The request's number is random as well, but a
 * reader of one of its records knows the number, and sees only hashes of the others. */
bh_rc
bh_journal_append(struct bh_journal *journal, struct bh_record *record, struct bh_err *err)
{
    struct bh_buf leaf;
    uint8_t hash[32];
    bh_rc rc = journal->crypto->random(record->salt, sizeof record->salt, err);

    if (rc != BH_OK)
        return rc;
    BH_ASSERT(record->ts_ns >= journal->last_ts_ns);
    record->seq = journal->next_seq;
    record->boot = journal->boot;
    bh_buf_init_fixed(&leaf, journal->leaf, sizeof journal->leaf);
    bh_record_encode(&leaf, record);
    if (leaf.overflow || leaf.length > BH_RECORD_BYTES_MAX)
        return bh_err_set(err, BH_BUG, "record %" PRIu64 " is too long", record->seq);
    rc = journal->store.ops->put_record(journal->store.self, record->seq,
                                        &(struct bh_slice){ leaf.bytes, leaf.length }, hash, err);
    if (rc != BH_OK)
        return rc;
    bh_merkle_frontier_add(&journal->frontier, journal->crypto, hash);
    bh_checkpoints_add(&journal->checkpoints, hash);
    journal->next_seq++;
    journal->last_ts_ns = record->ts_ns;
    return BH_OK;
}

void
bh_journal_replayed(struct bh_journal *journal, const char *leaf, size_t length,
                    const struct bh_record *record)
{
    uint8_t hash[32];

    BH_ASSERT(record->seq == journal->next_seq);
    bh_merkle_leaf(journal->crypto, leaf, length, hash);
    bh_merkle_frontier_add(&journal->frontier, journal->crypto, hash);
    journal->next_seq++;
    journal->last_ts_ns = record->ts_ns;
    if (record->boot > journal->boot)
        journal->boot = record->boot;
}

void
bh_journal_ask(struct bh_journal *journal, uint64_t now_ns, uint64_t interval_ns)
{
    BH_ASSERT(journal->frontier.size == journal->durable.size);
    if (now_ns >= journal->asked_ns + interval_ns
        && bh_checkpoints_ask(&journal->checkpoints, &journal->durable))
        journal->asked_ns = now_ns;
}

/* The signer was started again, with another key. */
static void
journal_follow_keys(struct bh_journal *journal)
{
    struct bh_err err = { 0 };
    bh_rc rc = journal_take_keys(journal, &err);

    if (rc == BH_OK)
        rc = journal_publish_keys(journal, &err);
    journal->checkpoints.keys_changed = false;
    if (rc != BH_OK)
        bh_checkpoints_refuse_keys(&journal->checkpoints, &err);
}

bool
bh_journal_signed(struct bh_journal *journal)
{
    bh_checkpoints_poll(&journal->checkpoints, &journal->store);
    if (journal->checkpoints.keys_changed)
        journal_follow_keys(journal);
    return journal->checkpoints.note_size > journal->signed_size;
}

bh_rc
bh_journal_finish(struct bh_journal *journal, struct bh_err *err)
{
    BH_ASSERT(journal->frontier.size == journal->durable.size);
    return bh_checkpoints_finish(&journal->checkpoints, &journal->store, &journal->durable, err);
}

bh_rc
bh_journal_checkpoint(struct bh_journal *journal, struct bh_err *err)
{
    const struct bh_checkpoints *checkpoints = &journal->checkpoints;
    const struct bh_checkpoint_row row = { .size = checkpoints->note_size, .note = checkpoints->note };
    bh_rc rc = journal->store.ops->put_checkpoint(journal->store.self, &row, err);

    if (rc != BH_OK)
        return rc;
    journal->signing_size = row.size;
    return BH_OK;
}

/* A convenience, not the truth: the store has the checkpoint already.  So nothing waits for
 * the disk, and a failure is only logged. */
static bh_rc
journal_publish_checkpoint(const struct bh_journal *journal, struct bh_err *err)
{
    char path[4096], fresh[4096];
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/audit.checkpoint", journal->state_dir);
    snprintf(fresh, sizeof fresh, "%s/audit.checkpoint.new", journal->state_dir);
    rc = bh_file_open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0644, &fd, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_fd_write_all(fd, journal->checkpoints.note, strlen(journal->checkpoints.note), err);
    if (rc != BH_OK)
        return rc;
    if (rename(fresh, path) != 0)
        return bh_err_errno(err, "%s", path);
    return BH_OK;
}

void
bh_journal_committed(struct bh_journal *journal)
{
    struct bh_err err;

    journal->durable = journal->frontier;
    bh_checkpoints_committed(&journal->checkpoints);
    if (journal->signed_size == journal->signing_size)
        return;
    journal->signed_size = journal->signing_size;
    if (journal_publish_checkpoint(journal, &err) != BH_OK)
        bh_log(CHECKPOINT_NOT_PUBLISHED, BH_ERRLOG(&err));
}

void
bh_journal_aborted(struct bh_journal *journal)
{
    journal->durable = journal->frontier;
    journal->signing_size = journal->signed_size;
    bh_checkpoints_aborted(&journal->checkpoints);
}

struct last_signed {
    struct bh_journal *journal;
    uint64_t size;
    bh_rc rc;
    struct bh_err *err;
};

static bool
journal_check_last_checkpoint(void *self, const struct bh_checkpoint_row *row)
{
    struct last_signed *last = self;
    struct bh_journal *journal = last->journal;
    struct bh_checkpoint checkpoint;
    uint8_t root[32];

    last->rc = bh_checkpoint_open(journal->crypto, &journal->key, row->note, &checkpoint, last->err);
    if (last->rc != BH_OK)
        return false;
    last->size = checkpoint.size;
    if (checkpoint.size != journal->frontier.size)
        return true;
    bh_merkle_frontier_root(&journal->frontier, journal->crypto, root);
    if (memcmp(root, checkpoint.root, sizeof root) != 0)
        last->rc =
            bh_err_set(last->err, BH_CONFLICT,
                       "the log of %" PRIu64 " records is not the one that was signed", checkpoint.size);
    return last->rc == BH_OK;
}

/* A snapshot stands for the records before it; they must be there all the same. */
static bh_rc
journal_check_end(const struct bh_journal *journal, struct bh_err *err)
{
    uint64_t last = 0;
    bh_rc rc = journal->store.ops->last_record(journal->store.self, &last, err);
    uint64_t size = rc == BH_OK ? last + 1 : 0;

    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    if (size == journal->next_seq)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT, "the log holds %" PRIu64 " records but %" PRIu64 " were written",
                      size, journal->next_seq);
}

/* The largest tree that was ever signed, as the signer knows it. */
static bh_rc
journal_check_watermark(struct bh_journal *journal, uint64_t signed_size, struct bh_err *err)
{
    if (journal->checkpoints.has_watermark || signed_size == 0)
        return bh_checkpoints_check(&journal->checkpoints, &journal->store, &journal->frontier, err);
    bh_err_set(err, BH_CONFLICT,
               "the signer's file audit.signed is missing although checkpoints were signed");
    return bh_err_hint(err, BH_SIGNER_GO_BACK);
}

static bool
journal_read_size(void *self, const struct bh_checkpoint_row *row)
{
    *(uint64_t *)self = row->size;
    return true;
}

bh_rc
bh_journal_check_signed(struct bh_journal *journal, struct bh_err *err)
{
    struct last_signed last = { .journal = journal, .err = err };
    uint64_t newest = 0;
    bh_rc rc = journal_check_end(journal, err);

    if (rc != BH_OK)
        return rc;
    rc = journal->store.ops->list_checkpoints(journal->store.self, journal->frontier.size,
                                              journal_check_last_checkpoint, &last, err);
    if (rc != BH_OK)
        return rc;
    rc = journal->store.ops->list_checkpoints(journal->store.self, 0, journal_read_size, &newest, err);
    if (rc != BH_OK)
        return rc;
    if (last.rc != BH_OK)
        return bh_err_wrap(err, "checkpoint");
    if (last.size > journal->frontier.size)
        return bh_err_set(err, BH_CONFLICT, "the log holds %" PRIu64 " records but %" PRIu64 " were signed",
                          journal->frontier.size, last.size);
    rc = journal_check_watermark(journal, newest, err);
    if (rc != BH_OK)
        return rc;
    journal->durable = journal->frontier;
    journal->signing_size = journal->signed_size = newest;
    rc = journal_publish_keys(journal, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "signer");
}
