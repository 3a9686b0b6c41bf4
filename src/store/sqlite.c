#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "store/sqlite_internal.h"

enum { WRITER_CACHE_KIB = 2048 };

/* ---- opening and closing ---- */

/* One program writes a store: SQLite would let several take turns, and two daemons
 * would each believe in a truth of their own. */
static bh_rc
sqlite_lock(struct bh_sqlite *store, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    char path[4096], pid[32] = "";
    bh_rc rc;

    if (snprintf(path, sizeof path, "%s.lock", store->path) >= (int)sizeof path)
        return bh_err_set(err, BH_INVALID, "path of the store is too long");
    rc = bh_file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, &fd, err);
    if (rc != BH_OK)
        return rc;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return bh_err_errno(err, "lock %s", path);
        if (pread(fd, pid, sizeof pid - 1, 0) < 0)
            pid[0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        return bh_err_set(err, BH_UNAVAILABLE, "the store %s is in use by process %s", store->path,
                          pid[0] ? pid : "(unknown)");
    }
    snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, strlen(pid), 0) < 0)
        return bh_err_errno(err, "write %s", path);
    store->lock_fd = bh_fd_steal(&fd);
    return BH_OK;
}

/* SQLite waits at a FIFO. */
static bh_rc
sqlite_check_files(const struct bh_sqlite *store, struct bh_err *err)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    char path[4096];
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(endings) && rc == BH_OK; i++) {
        snprintf(path, sizeof path, "%s%s", store->path, endings[i]);
        rc = bh_file_check(path, err);
    }
    return rc;
}

static bh_rc
sqlite_open_writer(struct bh_sqlite *store, struct bh_err *err)
{
    const struct bh_sql_options options = { SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, WRITER_CACHE_KIB };
    bh_rc rc = sqlite_lock(store, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_sql_open(store->path, &options, &store->writer, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sql_exec(store->writer,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA journal_size_limit = 67108864; PRAGMA secure_delete = ON",
                     err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sqlite_migrate(store->writer, err);
    if (rc != BH_OK)
        return rc;
    bh_sqlite_keep_files(store);
    return bh_sqlite_checkpointer_start(store, err);
}

static bh_rc
sqlite_open_for_reading(struct bh_sqlite *store, enum bh_store_mode mode, struct bh_err *err)
{
    struct bh_sql *reader;
    bh_rc rc;

    if (access(store->path, R_OK) != 0)
        return bh_err_errno(err, "the store %s", store->path);
    rc = bh_sqlite_acquire(store, &reader, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sqlite_check_version(reader, err);
    store->snapshot = mode == BH_STORE_SNAPSHOT;
    if (rc == BH_OK && store->snapshot) /* given back first, it is taken again first */
        rc = bh_sql_exec(reader, "BEGIN", err);
    bh_sqlite_release(store, reader);
    return rc;
}

static void
sqlite_store_close(void *self)
{
    struct bh_sqlite *store = self;

    BH_ASSERT(store->idle_count == store->open_count);
    while (store->idle_count > 0)
        bh_sql_close(store->idle[--store->idle_count]);
    if (store->writer) {
        bh_sqlite_rollback(store);
        bh_sqlite_checkpointer_stop(store);
        sqlite3_wal_checkpoint_v2(store->writer->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        bh_sql_close(store->writer);
    }
    bh_fd_close(store->lock_fd);
    bh_condition_fini(&store->freed);
    bh_mutex_fini(&store->mutex);
    free(store->path);
    free(store);
}

bool
bh_store_sqlite_is_damage(const struct bh_err *err)
{
    static const int passing[] = { SQLITE_BUSY, SQLITE_LOCKED,    SQLITE_CANTOPEN, SQLITE_IOERR,
                                   SQLITE_PERM, SQLITE_NOMEM,     SQLITE_FULL,     SQLITE_READONLY,
                                   SQLITE_AUTH, SQLITE_INTERRUPT, SQLITE_PROTOCOL };

    if (err->sys_kind != BH_SYS_SQL)
        return false;
    for (size_t i = 0; i < BH_COUNT(passing); i++)
        if ((err->sys & 0xff) == passing[i])
            return false;
    return true;
}

static bh_rc
sqlite_quick_check(struct bh_sql *reader, struct bh_err *err)
{
    sqlite3_stmt *statement = NULL;
    const char *found, *last;
    bh_rc rc = BH_OK;

    errno = 0;
    if (sqlite3_prepare_v2(reader->db, "PRAGMA quick_check(1)", -1, &statement, NULL) != SQLITE_OK
        || sqlite3_step(statement) != SQLITE_ROW)
        rc = bh_sql_err(reader, "store", err);
    found = rc == BH_OK ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (found && strcmp(found, "ok") != 0) {
        last = strrchr(found, '\n'); /* behind a line with the name of the database */
        rc = bh_err_set(err, BH_CONFLICT, "the file is damaged: %.150s", last ? last + 1 : found);
    }
    sqlite3_finalize(statement);
    return rc;
}

bh_rc
bh_store_sqlite_check(const struct bh_store *store, struct bh_err *err)
{
    struct bh_sql *reader;
    bh_rc rc = bh_sqlite_acquire(store->self, &reader, err);

    if (rc != BH_OK)
        return rc;
    rc = sqlite_quick_check(reader, err);
    bh_sqlite_release(store->self, reader);
    return rc;
}

static const struct bh_store_ops sqlite_ops = {
    .name = "sqlite",
    .begin = bh_sqlite_begin,
    .commit = bh_sqlite_commit,
    .rollback = bh_sqlite_rollback,
    .put_record = bh_sqlite_put_record,
    .prune_records = bh_sqlite_prune_records,
    .put_text = bh_sqlite_put_text,
    .drop_text = bh_sqlite_drop_text,
    .put_job = bh_sqlite_put_job,
    .change_job = bh_sqlite_change_job,
    .put_name = bh_sqlite_put_name,
    .put_token = bh_sqlite_put_token,
    .drop_token = bh_sqlite_drop_token,
    .put_document = bh_sqlite_put_document,
    .put_checkpoint = bh_sqlite_put_checkpoint,
    .put_reply = bh_sqlite_put_reply,
    .put_meta = bh_sqlite_put_meta,
    .put_key = bh_sqlite_put_key,
    .erase_sealed = bh_sqlite_erase_sealed,
    .erase_jobs = bh_sqlite_erase_jobs,
    .erase_name = bh_sqlite_erase_name,
    .scrub = bh_sqlite_scrub,
    .check_files = bh_sqlite_check_files,
    .check_rows = bh_sqlite_check_rows,
    .count_rows = bh_sqlite_count_rows,
    .get_meta = bh_sqlite_get_meta,
    .get_text = bh_sqlite_get_text,
    .get_job = bh_sqlite_get_job,
    .list_jobs = bh_sqlite_list_jobs,
    .count_jobs = bh_sqlite_count_jobs,
    .list_records = bh_sqlite_list_records,
    .list_hashes = bh_sqlite_list_hashes,
    .last_record = bh_sqlite_last_record,
    .count_reasons = bh_sqlite_count_reasons,
    .count_texts = bh_sqlite_count_texts,
    .list_texts = bh_sqlite_list_texts,
    .list_names = bh_sqlite_list_names,
    .list_tokens = bh_sqlite_list_tokens,
    .get_document = bh_sqlite_get_document,
    .list_documents = bh_sqlite_list_documents,
    .list_keys = bh_sqlite_list_keys,
    .list_checkpoints = bh_sqlite_list_checkpoints,
    .get_reply = bh_sqlite_get_reply,
    .close = sqlite_store_close,
};

bh_rc
bh_store_sqlite_open(const char *path, enum bh_store_mode mode, const struct bh_crypto_ops *crypto,
                     struct bh_store *ret_store, struct bh_err *err)
{
    struct bh_sqlite *store = calloc(1, sizeof *store);
    bh_rc rc;

    BH_ASSERT(store);
    *store = (struct bh_sqlite){ .crypto = crypto, .path = strdup(path), .lock_fd = -1 };
    BH_ASSERT(store->path);
    bh_mutex_init(&store->mutex, BH_LOCK_READERS);
    bh_condition_init(&store->freed);
    rc = sqlite_check_files(store, err);
    if (rc == BH_OK)
        rc = mode == BH_STORE_WRITE ? sqlite_open_writer(store, err)
                                    : sqlite_open_for_reading(store, mode, err);
    if (rc != BH_OK) {
        sqlite_store_close(store);
        return rc;
    }
    *ret_store = (struct bh_store){ &sqlite_ops, store };
    return BH_OK;
}
