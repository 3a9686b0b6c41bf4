#ifndef BH_STORE_SQLITE_INTERNAL_H
#define BH_STORE_SQLITE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/lock.h"
#include "ports/store.h"
#include "store/sqlite.h"

/* ---- sqlite_connection.c: one connection and its prepared statements ---- */

/* Every statement there is; sqlite_connection.c holds their texts. */
enum bh_sql_statement {
    BH_SQL_BEGIN,
    BH_SQL_BEGIN_READ,
    BH_SQL_COMMIT,
    BH_SQL_ROLLBACK,
    BH_SQL_PUT_RECORD,
    BH_SQL_PRUNE_RECORDS,
    BH_SQL_PUT_TEXT,
    BH_SQL_PUT_JOB,
    BH_SQL_CHANGE_JOB,
    BH_SQL_END_JOB,
    BH_SQL_PUT_NAME,
    BH_SQL_PUT_TOKEN,
    BH_SQL_DROP_TOKEN,
    BH_SQL_PUT_DOCUMENT,
    BH_SQL_DROP_DOCUMENT,
    BH_SQL_DROP_TEXT,
    BH_SQL_PUT_CHECKPOINT,
    BH_SQL_PUT_REPLY,
    BH_SQL_DROP_REPLIES,
    BH_SQL_PUT_META,
    BH_SQL_GET_META,
    BH_SQL_GET_TEXT,
    BH_SQL_COUNT_TEXTS,
    BH_SQL_LIST_TEXTS,
    BH_SQL_COUNT_REASONS,
    BH_SQL_GET_JOB,
    BH_SQL_GET_REPLY,
    BH_SQL_LIST_RECORDS,
    BH_SQL_LIST_HASHES,
    BH_SQL_LAST_RECORD,
    BH_SQL_COUNT_RECORDS,
    BH_SQL_COUNT_JOBS,
    BH_SQL_LIST_NAMES,
    BH_SQL_LIST_TOKENS,
    BH_SQL_LIST_TOKENS_OF,
    BH_SQL_GET_TOKEN,
    BH_SQL_GET_DOCUMENT,
    BH_SQL_LIST_DOCUMENTS,
    BH_SQL_LIST_CHECKPOINTS,
    BH_SQL_PUT_KEY,
    BH_SQL_LIST_KEYS,
    BH_SQL_ERASE_SEALED,
    BH_SQL_ERASE_TEXTS,
    BH_SQL_ERASE_NAMES,
    BH_SQL_ERASE_REPLIES,
    BH_SQL_ERASE_TENANT,
    BH_SQL_ERASE_PRINCIPAL,
    /* sqlite_jobs.c */
    BH_SQL_NEXT_STATE,
    BH_SQL_IDS_ALL,
    BH_SQL_IDS_STATE,
    BH_SQL_IDS_TENANT,
    BH_SQL_IDS_PRINCIPAL,
    BH_SQL_LAST_ALL,
    BH_SQL_LAST_STATE,
    BH_SQL_LAST_TENANT,
    BH_SQL_LAST_PRINCIPAL,
    BH_SQL_COUNT_ALL,
    BH_SQL_COUNT_STATE,
    BH_SQL_COUNT_TENANT,
    BH_SQL_COUNT_PRINCIPAL,
    /* series.c, whose file is another */
    BH_SQL_SERIES_VERSION,
    BH_SQL_SERIES_LOG,
    BH_SQL_SERIES_PUT_LOG,
    BH_SQL_SERIES_GET_OBJECT,
    BH_SQL_SERIES_PUT_OBJECT,
    BH_SQL_SERIES_TOUCH_OBJECT,
    BH_SQL_SERIES_DROP_OBJECT,
    BH_SQL_SERIES_GET_BLOCK,
    BH_SQL_SERIES_PUT_BLOCK,
    BH_SQL_SERIES_DROP_BLOCK,
    BH_SQL_SERIES_DROP_OLD,
    BH_SQL_SERIES_LIST_OLD,
    BH_SQL_SERIES_LIST_CROWDED,
    BH_SQL_SERIES_LIST_EXCESS,
    BH_SQL_STATEMENTS
};

struct bh_sql {
    sqlite3 *db;
    sqlite3_stmt *statements[BH_SQL_STATEMENTS]; /* prepared on first use */
};

struct bh_sql_options {
    int flags;     /* SQLITE_OPEN_... */
    int cache_kib; /* page cache */
};

/* Open one connection; close it with bh_sql_close. */
BH_MUST_USE bh_rc bh_sql_open(const char *path, const struct bh_sql_options *options, struct bh_sql **ret_sql,
                              struct bh_err *err);
void bh_sql_close(struct bh_sql *sql);
BH_AUTO_DEFINE(struct bh_sql *, bh_sql_close)

/* Fill `err` from the connection's last error: FULL for a full disk, UNAVAILABLE for
 * a lock, else IO, with SQLite's number. */
bh_rc bh_sql_err(struct bh_sql *sql, const char *what, struct bh_err *err);

/* Run SQL text that returns nothing. */
BH_MUST_USE bh_rc bh_sql_exec(struct bh_sql *sql, const char *text, struct bh_err *err);

/* One use of a prepared statement: values are put in order, then it runs.  What is put
 * must live until bh_sql_done. */
struct bh_sql_use {
    struct bh_sql *sql;
    sqlite3_stmt *statement;
    int at; /* parameters put so far */
};

BH_MUST_USE bh_rc bh_sql_use(struct bh_sql *sql, enum bh_sql_statement which, struct bh_sql_use *ret_use,
                             struct bh_err *err);
void bh_sql_put_u64(struct bh_sql_use *use, uint64_t value);
void bh_sql_put_text(struct bh_sql_use *use, const char *text); /* NULL is "" */
void bh_sql_put_text_n(struct bh_sql_use *use, const char *text, size_t length);
void bh_sql_put_bytes(struct bh_sql_use *use, const void *bytes, size_t length);

/* The next row: `ret_row` says whether there is one. */
BH_MUST_USE bh_rc bh_sql_step(struct bh_sql_use *use, bool *ret_row, struct bh_err *err);
/* All of a statement that returns no rows, done included. */
BH_MUST_USE bh_rc bh_sql_run(struct bh_sql_use *use, struct bh_err *err);
/* Rows that the last write changed. */
int bh_sql_changed(const struct bh_sql *sql);
/* End the use; needed on every path once bh_sql_use succeeded. */
void bh_sql_done(struct bh_sql_use *use);
static inline void
bh_sql_done_auto(struct bh_sql_use *use)
{
    if (use->statement)
        bh_sql_done(use);
}

/* Columns of the present row.  Text is never NULL. */
uint64_t bh_sql_u64(const struct bh_sql_use *use, int column);
const char *bh_sql_text(const struct bh_sql_use *use, int column);
void bh_sql_digest(const struct bh_sql_use *use, int column, struct bh_digest *ret_digest);

/* ---- sqlite_schema.c ---- */

/* Bring the tables to this version.  BH_CONFLICT: they are of a newer one. */
BH_MUST_USE bh_rc bh_sqlite_migrate(struct bh_sql *sql, struct bh_err *err);
/* Commit a transaction that changes nothing. */
BH_MUST_USE bh_rc bh_sqlite_touch(struct bh_sql *sql, struct bh_err *err);
/* BH_CONFLICT unless the tables are of this version. */
BH_MUST_USE bh_rc bh_sqlite_check_version(struct bh_sql *sql, struct bh_err *err);

/* ---- the store ---- */

/* Copies the log into the database, on its own thread and connection. */
struct bh_sqlite_checkpointer {
    struct bh_sql *sql; /* the checkpointer's thread */
    pthread_t thread;
    bool started;
    int asked_at; /* owner thread: pages in the log when the thread was last woken */
    /* shared, under mutex */
    struct bh_mutex mutex;
    struct bh_condition wake;
    bool wanted, stop;
};

enum { BH_SQLITE_FILES = 2 };

struct bh_sqlite {
    uint64_t inodes[BH_SQLITE_FILES]; /* of its files; fixed when the writer is open, 0: reading only */
    bool snapshot;                    /* the one reader stays in one transaction */
    const struct bh_crypto_ops *crypto;
    char *path;
    int lock_fd; /* -1: reading only */

    struct bh_sqlite_checkpointer checkpointer;

    /* owner thread */
    struct bh_sql *writer; /* NULL: reading only */
    bool begun;            /* between begin and commit or rollback */
    bool failed;           /* a put failed since: commit will refuse */

    /* shared, under mutex */
    struct bh_mutex mutex;
    struct bh_condition freed;
    struct bh_sql *idle[BH_STORE_READERS_MAX];
    unsigned idle_count, open_count;
};

/* ---- sqlite_files.c ---- */

/* The writer is open: its files are the ones to be there from now on. */
void bh_sqlite_keep_files(struct bh_sqlite *store);
bh_rc bh_sqlite_check_files(void *self, struct bh_err *err);

/* sqlite_checkpoint.c: begin to copy the log as the writer commits; end it before the
 * writer closes. */
BH_MUST_USE bh_rc bh_sqlite_checkpointer_start(struct bh_sqlite *store, struct bh_err *err);
void bh_sqlite_checkpointer_stop(struct bh_sqlite *store);

/* ---- sqlite_readers.c: the pool of readers ---- */

/* Take a reader, waiting for one while all are taken; give it back. */
BH_MUST_USE bh_rc bh_sqlite_acquire(struct bh_sqlite *store, struct bh_sql **ret_reader, struct bh_err *err);
void bh_sqlite_release(struct bh_sqlite *store, struct bh_sql *reader);

/* ---- sqlite_write.c ---- */

/* The writer's statement, within a transaction that has not failed. */
BH_MUST_USE bh_rc bh_sqlite_write(struct bh_sqlite *store, enum bh_sql_statement which,
                                  struct bh_sql_use *ret_use, struct bh_err *err);
/* Run it and note a failure. */
BH_MUST_USE bh_rc bh_sqlite_written(struct bh_sqlite *store, struct bh_sql_use *use, struct bh_err *err);

/* Both, with values in the order of the statement's parameters:
 *   bh_sqlite_put(self, BH_SQL_PUT_META, err, BH_SQL_TEXT(key), BH_SQL_TEXT(value)) */
struct bh_sql_value {
    enum { BH_SQL_VALUE_U64, BH_SQL_VALUE_TEXT, BH_SQL_VALUE_BYTES } kind;
    uint64_t number; /* or the length */
    const void *bytes;
};
#define BH_SQL_TEXT_WHOLE UINT64_MAX
#define BH_SQL_U64(value) ((struct bh_sql_value){ BH_SQL_VALUE_U64, (value), NULL })
#define BH_SQL_TEXT(text)                                                                                    \
    ((struct bh_sql_value){ BH_SQL_VALUE_TEXT, BH_SQL_TEXT_WHOLE, (text) }) /* NULL is "" */
#define BH_SQL_TEXT_N(text, length) ((struct bh_sql_value){ BH_SQL_VALUE_TEXT, (length), (text) })
#define BH_SQL_BYTES(bytes, length) ((struct bh_sql_value){ BH_SQL_VALUE_BYTES, (length), (bytes) })
#define bh_sqlite_put(self, which, err, ...)                                                                 \
    bh_sqlite_put_values(self, which, (const struct bh_sql_value[]){ __VA_ARGS__ },                          \
                         BH_COUNT(((const struct bh_sql_value[]){ __VA_ARGS__ })), err)
BH_MUST_USE bh_rc bh_sqlite_put_values(struct bh_sqlite *store, enum bh_sql_statement which,
                                       const struct bh_sql_value *values, size_t count, struct bh_err *err);

/* The port's slots, here and below. */
bh_rc bh_sqlite_begin(void *self, struct bh_err *err);
bh_rc bh_sqlite_commit(void *self, struct bh_err *err);
void bh_sqlite_rollback(void *self);
bh_rc bh_sqlite_put_record(void *self, uint64_t seq, const struct bh_slice *leaf, uint8_t ret_hash[32],
                           struct bh_err *err);
bh_rc bh_sqlite_prune_records(void *self, uint64_t first, uint64_t last, struct bh_err *err);
bh_rc bh_sqlite_put_text(void *self, const struct bh_text_row *row, struct bh_err *err);
bh_rc bh_sqlite_drop_text(void *self, const struct bh_digest *digest, struct bh_err *err);
bh_rc bh_sqlite_put_name(void *self, const struct bh_name_row *row, struct bh_err *err);
bh_rc bh_sqlite_put_token(void *self, const struct bh_token_row *row, struct bh_err *err);
bh_rc bh_sqlite_drop_token(void *self, const char *id, struct bh_err *err);
bh_rc bh_sqlite_put_document(void *self, const struct bh_document_row *row, struct bh_err *err);
bh_rc bh_sqlite_put_checkpoint(void *self, const struct bh_checkpoint_row *row, struct bh_err *err);
bh_rc bh_sqlite_put_reply(void *self, const struct bh_reply_row *row, struct bh_err *err);
bh_rc bh_sqlite_put_meta(void *self, const char *key, const char *value, struct bh_err *err);

/* ---- sqlite_read.c ---- */
bh_rc bh_sqlite_get_meta(void *self, const char *key, struct bh_arena *arena, const char **ret_value,
                         struct bh_err *err);
bh_rc bh_sqlite_get_text(void *self, const struct bh_digest *digest, struct bh_arena *arena,
                         const char **ret_text, struct bh_err *err);
bh_rc bh_sqlite_list_records(void *self, uint64_t first, uint64_t last, bh_record_sink sink, void *sink_self,
                             struct bh_err *err);
bh_rc bh_sqlite_list_hashes(void *self, uint64_t first, bh_hash_sink sink, void *sink_self,
                            struct bh_err *err);
bh_rc bh_sqlite_count_rows(void *self, enum bh_store_numbered table, uint64_t *ret_count, struct bh_err *err);
bh_rc bh_sqlite_last_record(void *self, uint64_t *ret_seq, struct bh_err *err);
bh_rc bh_sqlite_count_reasons(void *self, const char *state, bh_reason_sink sink, void *sink_self,
                              struct bh_err *err);
bh_rc bh_sqlite_count_texts(void *self, uint32_t tenant_id, uint64_t *ret_bytes, struct bh_err *err);
bh_rc bh_sqlite_list_texts(void *self, uint64_t after, bh_text_sink sink, void *sink_self,
                           struct bh_err *err);
bh_rc bh_sqlite_list_names(void *self, bh_name_sink sink, void *sink_self, struct bh_err *err);
bh_rc bh_sqlite_list_tokens(void *self, const struct bh_token_filter *filter, bh_token_sink sink,
                            void *sink_self, struct bh_err *err);
bh_rc bh_sqlite_get_document(void *self, const struct bh_document_key *key, struct bh_arena *arena,
                             struct bh_document_row *ret_row, struct bh_err *err);
bh_rc bh_sqlite_list_documents(void *self, const struct bh_document_filter *filter, bh_document_sink sink,
                               void *sink_self, struct bh_err *err);
bh_rc bh_sqlite_list_checkpoints(void *self, uint64_t min_size, bh_checkpoint_sink sink, void *sink_self,
                                 struct bh_err *err);
bh_rc bh_sqlite_get_reply(void *self, uint32_t principal_id, const char *key, struct bh_arena *arena,
                          struct bh_reply_row *ret_row, struct bh_err *err);
/* ---- sqlite_keys.c ---- */
bh_rc bh_sqlite_put_key(void *self, const struct bh_key_row *row, struct bh_err *err);
bh_rc bh_sqlite_list_keys(void *self, bh_key_sink sink, void *sink_self, struct bh_err *err);
bh_rc bh_sqlite_erase_name(void *self, enum bh_name_kind kind, uint32_t id, struct bh_err *err);
bh_rc bh_sqlite_erase_sealed(void *self, uint64_t key, struct bh_err *err);
bh_rc bh_sqlite_erase_jobs(void *self, const struct bh_erasure *which, struct bh_err *err);
bh_rc bh_sqlite_scrub(void *self, struct bh_err *err);

/* ---- sqlite_forms.c ---- */
bh_rc bh_sqlite_check_rows(void *self, enum bh_store_rows which, struct bh_err *err);

/* ---- sqlite_jobs.c ---- */

enum { BH_SQLITE_STATE_BYTES = 32 }; /* a state's name, with its end */

/* SQL names of the columns of a job, in the order that put_job and get_job use. */
#define BH_SQLITE_JOB_COLUMNS                                                                                \
    "job, lease, tenant_id, principal_id, count, priority, restarts, name, tenant, "                         \
    "principal, sku, kind, state, contract, reason, node, pieces, grade, submitted_ns, "                     \
    "started_ns, ended_ns, time_limit_ns, exit_status, spec, deadline_ns, "                                  \
    "checkpoint_signal, gang, ended_by"

bh_rc bh_sqlite_put_job(void *self, const struct bh_job_row *row, struct bh_err *err);
bh_rc bh_sqlite_change_job(void *self, const struct bh_job_change *change, struct bh_err *err);
bh_rc bh_sqlite_get_job(void *self, uint64_t job, bh_job_sink sink, void *sink_self, struct bh_err *err);
bh_rc bh_sqlite_list_jobs(void *self, const struct bh_job_filter *filter, bh_job_sink sink, void *sink_self,
                          struct bh_err *err);
bh_rc bh_sqlite_count_jobs(void *self, const struct bh_job_filter *filter, uint64_t *ret_count,
                           struct bh_err *err);

#endif
