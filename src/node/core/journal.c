#include "node/core/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

enum { HEADER = 8, PATH_SIZE = 512, FILE_MAX = 256 << 20 };

struct bh_order_journal {
    char path[PATH_SIZE], next[PATH_SIZE + 8];
    int fd, old_fd; /* old_fd: while a rewrite is under way */
    uint64_t size, old_size;
    uint64_t reserved; /* of the file on the disk, as far as the node claimed it */
    bool dirty;
    bh_ns sync_at; /* when to sync what is dirty, if no earlier sync comes; 0: not planned */
};

uint32_t
bh_crc32c(const void *bytes, size_t length)
{
    static uint32_t table[256];
    const unsigned char *at = bytes;
    uint32_t crc = UINT32_MAX;

    if (!table[1]) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;

            for (int bit = 0; bit < 8; bit++)
                value = value & 1 ? value >> 1 ^ UINT32_C(0x82f63b78) : value >> 1;
            table[i] = value;
        }
    }
    while (length-- > 0)
        crc = crc >> 8 ^ table[(crc ^ *at++) & 0xff];
    return ~crc;
}

static uint32_t
journal_number_at(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;

    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void
journal_put_number(char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(value >> (8 * i));
}

/* ---- opening ---- */

/* Length of the whole, undamaged frame at `bytes`, or 0. */
static size_t
journal_frame_length(const char *bytes, size_t length)
{
    uint32_t payload;

    if (length < HEADER)
        return 0;
    payload = journal_number_at(bytes);
    if (payload == 0 || payload > BH_JOURNAL_FRAME_MAX || payload > length - HEADER)
        return 0;
    return bh_crc32c(bytes + HEADER, payload) == journal_number_at(bytes + 4) ? HEADER + payload : 0;
}

/* A crash tears only the end.  A whole frame behind a bad one means damage. */
static bool
journal_whole_frame_follows(const char *bytes, size_t length)
{
    for (size_t at = 1; at < length; at++) {
        if (journal_frame_length(bytes + at, length - at) > 0)
            return true;
    }
    return false;
}

static bh_rc
journal_replay(struct bh_order_journal *journal, const struct bh_buf *text, bh_order_journal_sink sink,
               void *sink_self, struct bh_err *err)
{
    size_t at = 0, step;
    bh_rc rc;

    while ((step = journal_frame_length(text->bytes + at, text->length - at)) > 0) {
        rc = sink(sink_self, text->bytes + at + HEADER, step - HEADER, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "%s at byte %zu", journal->path, at);
        at += step;
    }
    if (at < text->length && journal_whole_frame_follows(text->bytes + at, text->length - at)) {
        bh_err_set(err, BH_INVALID, "%s is damaged at byte %zu", journal->path, at);
        return bh_err_hint(err, "move it away; instances it knew are then foreign");
    }
    journal->size = at;
    if (at < text->length && ftruncate(journal->fd, (off_t)at) != 0)
        return bh_err_errno(err, "cut the incomplete end of %s", journal->path);
    return BH_OK;
}

static bh_rc
journal_sync_folder(const char *path, struct bh_err *err)
{
    char copy[PATH_SIZE];
    BH_AUTO(bh_fd_close) int fd = -1;

    snprintf(copy, sizeof copy, "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        return bh_err_errno(err, "sync folder of %s", path);
    return BH_OK;
}

static bh_rc
journal_open_file(struct bh_order_journal *journal, const char *path, int more_flags, struct bh_err *err)
{
    return bh_file_open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | more_flags, 0600, &journal->fd, err);
}

bh_rc
bh_order_journal_open(const char *path, bh_order_journal_sink sink, void *sink_self,
                      struct bh_order_journal **ret_journal, struct bh_err *err)
{
    BH_AUTO(bh_order_journal_close) struct bh_order_journal *journal = calloc(1, sizeof *journal);
    struct bh_buf text;
    bh_rc rc;

    if (!journal)
        return bh_err_set(err, BH_FULL, "out of memory");
    journal->fd = journal->old_fd = -1;
    if (snprintf(journal->path, sizeof journal->path, "%s", path) >= PATH_SIZE)
        return bh_err_set(err, BH_INVALID, "path is too long: %.60s", path);
    snprintf(journal->next, sizeof journal->next, "%s.next", path);
    if (unlink(journal->next) != 0 && errno != ENOENT) /* of a rewrite that a crash cut off */
        return bh_err_errno(err, "remove %s", journal->next);
    rc = journal_open_file(journal, path, 0, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init(&text, FILE_MAX);
    rc = bh_file_read(path, FILE_MAX - 1, &text, err);
    if (rc == BH_OK)
        rc = journal_replay(journal, &text, sink, sink_self, err);
    bh_buf_fini(&text);
    if (rc != BH_OK)
        return rc;
    rc = journal_sync_folder(path, err);
    if (rc != BH_OK)
        return rc;
    *ret_journal = bh_steal(&journal);
    return BH_OK;
}

void
bh_order_journal_close(struct bh_order_journal *journal)
{
    if (!journal)
        return;
    bh_fd_close(journal->fd);
    bh_fd_close(journal->old_fd);
    free(journal);
}

/* ---- writing ---- */

bh_rc
bh_order_journal_append(struct bh_order_journal *journal, const char *payload, size_t length,
                        struct bh_err *err)
{
    char frame[HEADER + BH_JOURNAL_FRAME_MAX];
    bh_rc rc;

    BH_ASSERT(length > 0);
    if (length > BH_JOURNAL_FRAME_MAX)
        return bh_err_set(err, BH_FULL, "journal entry of %zu bytes is too long", length);
    journal_put_number(frame, (uint32_t)length);
    journal_put_number(frame + 4, bh_crc32c(payload, length));
    memcpy(frame + HEADER, payload, length);
    rc = bh_fd_write_all(journal->fd, frame, HEADER + length, err);
    if (rc != BH_OK) { /* half a frame must not stand before whole ones */
        (void)!ftruncate(journal->fd, (off_t)journal->size);
        journal->reserved = 0;
        return bh_err_wrap(err, "append to %s", journal->path);
    }
    journal->size += HEADER + length;
    journal->dirty = true;
    return BH_OK;
}

bh_rc
bh_order_journal_reserve(struct bh_order_journal *journal, struct bh_err *err)
{
    uint64_t wanted = journal->size + BH_JOURNAL_SPARE;

    if (wanted <= journal->reserved)
        return BH_OK;
    wanted += BH_JOURNAL_SPARE / 4; /* not at every append */
    if (fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)wanted) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS)
            return BH_OK;
        return bh_err_errno(err, "allocate space for %s", journal->path);
    }
    journal->reserved = wanted;
    return BH_OK;
}

bh_rc
bh_order_journal_sync(struct bh_order_journal *journal, struct bh_err *err)
{
    if (!journal->dirty)
        return BH_OK;
    if (fdatasync(journal->fd) != 0)
        return bh_err_errno(err, "sync %s", journal->path);
    journal->dirty = false;
    return BH_OK;
}

bh_rc
bh_order_journal_tick(struct bh_order_journal *journal, bh_ns now, bh_ns *ret_next, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    if (!journal->dirty)
        journal->sync_at = 0;
    else if (!journal->sync_at)
        journal->sync_at = now + BH_JOURNAL_SYNC_WITHIN;
    if (journal->sync_at && journal->sync_at <= now) {
        rc = bh_order_journal_sync(journal, err);
        journal->sync_at = rc == BH_OK ? 0 : now + BH_JOURNAL_SYNC_WITHIN;
    }
    *ret_next = journal->sync_at;
    return rc;
}

uint64_t
bh_order_journal_size(const struct bh_order_journal *journal)
{
    return journal->size;
}

/* ---- rewriting ---- */

bh_rc
bh_order_journal_rewrite_begin(struct bh_order_journal *journal, struct bh_err *err)
{
    int old_fd = journal->fd;
    bh_rc rc;

    BH_ASSERT(journal->old_fd < 0);
    rc = journal_open_file(journal, journal->next, O_TRUNC, err);
    if (rc != BH_OK) {
        journal->fd = old_fd;
        return rc;
    }
    journal->old_fd = old_fd;
    journal->old_size = journal->size;
    journal->size = 0;
    return BH_OK;
}

bh_rc
bh_order_journal_rewrite_commit(struct bh_order_journal *journal, struct bh_err *err)
{
    BH_ASSERT(journal->old_fd >= 0);
    if (fsync(journal->fd) == 0 && rename(journal->next, journal->path) == 0) {
        close(journal->old_fd);
        journal->old_fd = -1;
        journal->dirty = false;
        journal->reserved = 0;
        return journal_sync_folder(journal->path, err);
    }
    bh_err_errno(err, "replace %s", journal->path);
    bh_order_journal_rewrite_cancel(journal);
    return err->rc;
}

void
bh_order_journal_rewrite_cancel(struct bh_order_journal *journal)
{
    BH_ASSERT(journal->old_fd >= 0);
    close(journal->fd);
    unlink(journal->next);
    journal->fd = journal->old_fd;
    journal->size = journal->old_size;
    journal->old_fd = -1;
}
