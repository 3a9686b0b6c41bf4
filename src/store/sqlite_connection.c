#include "store/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "model/series.h"
#include "store/sqlite_internal.h"

enum { BUSY_MS = 1000 };

/* `ended` stands before `state` in the indexes: what is active is then a few short
 * runs in order of job numbers, see sqlite_jobs.c. */
#define IDS(where) "SELECT job, tenant_id FROM jobs WHERE " where " AND job > ?1 ORDER BY job"
#define LAST(where) "SELECT job, tenant_id FROM jobs WHERE " where " AND job < ?1 ORDER BY job DESC"
#define COUNT(where) "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE " where " AND job > ?1 LIMIT 100000)"
#define ALL "TRUE"
#define STATE "ended = ?2 AND state = ?3"
#define TENANT "tenant_id = ?4 AND " STATE
#define ERASED "tenant_id = ?1 AND submitted_ns >= ?2 AND submitted_ns < ?3"
#define PRINCIPAL "principal_id = ?4 AND " STATE
#define TOKEN_COLUMNS "id, secret, principal_id, scopes, note, created_ns, expires_ns, last_used_ns, revoked"

/* Series are bounded for jobs alone: the other kinds are bounded by what the site has. */
_Static_assert(BH_SERIES_KIND_JOB == 2, "kind of the statements below");

static const char *const texts[BH_SQL_STATEMENTS] = {
    [BH_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [BH_SQL_BEGIN_READ] = "BEGIN",
    [BH_SQL_COMMIT] = "COMMIT",
    [BH_SQL_ROLLBACK] = "ROLLBACK",
    [BH_SQL_PUT_RECORD] = "INSERT INTO records (seq, leaf, hash) VALUES (?, ?, ?)",
    [BH_SQL_PRUNE_RECORDS] = "UPDATE records SET leaf = x'' WHERE seq BETWEEN ? AND ?",
    [BH_SQL_PUT_TEXT] =
        "INSERT INTO texts (digest, tenant_id, bytes, text) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    [BH_SQL_PUT_JOB] =
        "INSERT OR REPLACE INTO jobs (" BH_SQLITE_JOB_COLUMNS ", ended) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [BH_SQL_CHANGE_JOB] =
        "UPDATE jobs SET state = ?, reason = ?, ended_ns = ?, ended_by = ?, exit_status = ?, "
        "ended = ?, lease = ?, restarts = ?, node = ?, pieces = ?, grade = ?, started_ns = ? WHERE "
        "job = ?",
    [BH_SQL_END_JOB] = "UPDATE jobs SET state = ?, reason = ?, ended_ns = ?, ended_by = ?, exit_status = ?, "
                       "ended = ? WHERE job = ?",
    [BH_SQL_PUT_NAME] =
        "INSERT OR REPLACE INTO names (kind, id, name, gone, key, record) VALUES (?, ?, ?, ?, ?, ?)",
    [BH_SQL_PUT_TOKEN] = "INSERT OR REPLACE INTO tokens (id, secret, principal_id, scopes, note, "
                         "created_ns, "
                         "expires_ns, last_used_ns, revoked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [BH_SQL_PUT_DOCUMENT] = "INSERT OR REPLACE INTO documents (kind, key, version, "
                            "principal_id, value) VALUES (?, ?, ?, ?, ?)",
    [BH_SQL_DROP_TOKEN] = "DELETE FROM tokens WHERE id = ?",
    [BH_SQL_DROP_TEXT] = "DELETE FROM texts WHERE digest = ?",
    [BH_SQL_DROP_DOCUMENT] = "DELETE FROM documents WHERE kind = ? AND key = ?",
    [BH_SQL_PUT_CHECKPOINT] = "INSERT OR REPLACE INTO checkpoints (size, note) VALUES (?, ?)",
    [BH_SQL_PUT_REPLY] = "INSERT OR REPLACE INTO replies (principal_id, key, request, status, "
                         "body, at_ns) VALUES (?, ?, ?, ?, ?, ?)",
    [BH_SQL_DROP_REPLIES] = "DELETE FROM replies WHERE at_ns < ?",
    [BH_SQL_PUT_META] = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
    [BH_SQL_GET_META] = "SELECT value FROM meta WHERE key = ?",
    [BH_SQL_GET_TEXT] = "SELECT text FROM texts WHERE digest = ?",
    [BH_SQL_COUNT_TEXTS] = "SELECT coalesce(sum(bytes), 0) FROM texts WHERE tenant_id = ? AND tenant_id > 0",
    [BH_SQL_COUNT_REASONS] = "SELECT tenant_id, reason, count(*) FROM jobs WHERE ended = 0 AND state = ? "
                             "GROUP BY tenant_id, reason ORDER BY tenant_id, reason",
    [BH_SQL_LIST_TEXTS] = "SELECT id, digest, text FROM texts WHERE id > ? ORDER BY id",
    [BH_SQL_GET_JOB] = "SELECT " BH_SQLITE_JOB_COLUMNS ", ended FROM jobs WHERE job = ?",
    [BH_SQL_GET_REPLY] = "SELECT request, status, body, at_ns FROM replies "
                         "WHERE principal_id = ? AND key = ?",
    [BH_SQL_LIST_RECORDS] = "SELECT seq, leaf FROM records WHERE seq BETWEEN ? AND ? AND length(leaf) > 0 "
                            "ORDER BY seq",
    [BH_SQL_LIST_HASHES] = "SELECT seq, hash FROM records WHERE seq >= ? ORDER BY seq",
    [BH_SQL_LAST_RECORD] = "SELECT seq FROM records ORDER BY seq DESC LIMIT 1",
    [BH_SQL_COUNT_RECORDS] = "SELECT count(*) FROM records",
    [BH_SQL_COUNT_JOBS] = "SELECT count(*) FROM jobs",
    [BH_SQL_LIST_NAMES] = "SELECT kind, id, name, gone, key, record FROM names ORDER BY kind, id",
    [BH_SQL_LIST_TOKENS] = "SELECT " TOKEN_COLUMNS " FROM tokens ORDER BY id",
    [BH_SQL_LIST_TOKENS_OF] = "SELECT " TOKEN_COLUMNS " FROM tokens WHERE principal_id = ? ORDER BY id",
    [BH_SQL_GET_TOKEN] = "SELECT " TOKEN_COLUMNS " FROM tokens WHERE id = ?",
    [BH_SQL_GET_DOCUMENT] = "SELECT kind, key, version, principal_id, value FROM documents "
                            "WHERE kind = ? AND key = ?",
    [BH_SQL_LIST_DOCUMENTS] = "SELECT kind, key, version, principal_id, value FROM documents "
                              "WHERE kind = ?1 AND (?2 = 0 OR principal_id = ?2) AND key > ?3 "
                              "ORDER BY key",
    [BH_SQL_LIST_CHECKPOINTS] = "SELECT size, note FROM checkpoints WHERE size >= ? ORDER BY size",
    [BH_SQL_PUT_KEY] = "INSERT OR REPLACE INTO keys (id, kind, tenant_id, month, parent, created_ns, "
                       "shredded_ns, wrapped) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [BH_SQL_LIST_KEYS] = "SELECT id, kind, tenant_id, month, parent, created_ns, "
                         "shredded_ns, wrapped FROM keys ORDER BY id",
    [BH_SQL_ERASE_SEALED] = "DELETE FROM texts WHERE key = ? AND key > 0",
    [BH_SQL_ERASE_TEXTS] =
        "DELETE FROM texts WHERE key = 0 AND digest IN (SELECT spec FROM jobs WHERE " ERASED ") "
        "AND digest NOT IN (SELECT spec FROM jobs WHERE NOT (" ERASED "))",
    [BH_SQL_ERASE_NAMES] = "UPDATE jobs SET name = '" BH_ERASED "' WHERE name <> '' AND " ERASED,
    [BH_SQL_ERASE_REPLIES] = "DELETE FROM replies",
    [BH_SQL_ERASE_TENANT] = "UPDATE jobs SET tenant = '" BH_ERASED "' WHERE tenant_id = ?",
    [BH_SQL_ERASE_PRINCIPAL] = "UPDATE jobs SET principal = '" BH_ERASED "' WHERE principal_id = ?",
    [BH_SQL_NEXT_STATE] = "SELECT state FROM jobs WHERE ended = ? AND state > ? "
                          "ORDER BY state LIMIT 1",
    [BH_SQL_IDS_ALL] = IDS(ALL),
    [BH_SQL_IDS_STATE] = IDS(STATE),
    [BH_SQL_IDS_TENANT] = IDS(TENANT),
    [BH_SQL_IDS_PRINCIPAL] = IDS(PRINCIPAL),
    [BH_SQL_LAST_ALL] = LAST(ALL),
    [BH_SQL_LAST_STATE] = LAST(STATE),
    [BH_SQL_LAST_TENANT] = LAST(TENANT),
    [BH_SQL_LAST_PRINCIPAL] = LAST(PRINCIPAL),
    [BH_SQL_COUNT_ALL] = COUNT(ALL),
    [BH_SQL_COUNT_STATE] = COUNT(STATE),
    [BH_SQL_COUNT_TENANT] = COUNT(TENANT),
    [BH_SQL_COUNT_PRINCIPAL] = COUNT(PRINCIPAL),
    [BH_SQL_SERIES_VERSION] = "PRAGMA user_version",
    [BH_SQL_SERIES_LOG] = "SELECT log FROM meta",
    [BH_SQL_SERIES_PUT_LOG] = "INSERT INTO meta (log) VALUES (?)",
    [BH_SQL_SERIES_GET_OBJECT] =
        "SELECT id, tenant_id, first_ns, last_ns FROM objects WHERE kind = ? AND name = ?",
    [BH_SQL_SERIES_PUT_OBJECT] =
        "INSERT INTO objects (kind, name, tenant_id, first_ns, last_ns) VALUES (?, ?, ?, ?, ?)",
    [BH_SQL_SERIES_TOUCH_OBJECT] =
        "UPDATE objects SET first_ns = min(first_ns, ?), last_ns = max(last_ns, ?) WHERE id = ?",
    [BH_SQL_SERIES_DROP_OBJECT] = "DELETE FROM objects WHERE id = ?",
    [BH_SQL_SERIES_GET_BLOCK] = "SELECT points FROM blocks WHERE resolution = ? AND block = ? AND series = ?",
    [BH_SQL_SERIES_PUT_BLOCK] =
        "INSERT OR REPLACE INTO blocks (resolution, block, series, points) VALUES (?, ?, ?, ?)",
    [BH_SQL_SERIES_DROP_BLOCK] =
        "DELETE FROM blocks WHERE resolution = ? AND block = ? AND series BETWEEN ? AND ?",
    [BH_SQL_SERIES_DROP_OLD] = "DELETE FROM blocks WHERE resolution = ? AND block < ?",
    [BH_SQL_SERIES_LIST_OLD] = "SELECT id, first_ns, last_ns FROM objects WHERE last_ns < ?",
    [BH_SQL_SERIES_LIST_CROWDED] =
        "SELECT id, first_ns, last_ns FROM (SELECT id, first_ns, last_ns,"
        " row_number() OVER (PARTITION BY tenant_id ORDER BY last_ns DESC, id DESC) AS place"
        " FROM objects WHERE kind = 2) WHERE place > ?",
    [BH_SQL_SERIES_LIST_EXCESS] =
        "SELECT id, first_ns, last_ns FROM objects WHERE kind = 2 ORDER BY last_ns DESC, id DESC LIMIT -1 OFFSET ?",
};

bh_rc
bh_sql_err(struct bh_sql *sql, const char *what, struct bh_err *err)
{
    int cause = errno, number = sqlite3_extended_errcode(sql->db);
    bh_rc rc = BH_IO;

    if ((number & 0xff) == SQLITE_BUSY || (number & 0xff) == SQLITE_LOCKED)
        rc = BH_UNAVAILABLE;
    /* A full disk, a quota and a limit on the size of files are the same to people.
     * SQLite forgets the cause of a commit's failure, so errno is cleared before. */
    if ((number & 0xff) == SQLITE_FULL
        || ((number & 0xff) == SQLITE_IOERR && (cause == ENOSPC || cause == EDQUOT || cause == EFBIG)))
        rc = BH_FULL;
    return bh_err_sys(err, rc, BH_SYS_SQL, number, "%s: %s", what, sqlite3_errmsg(sql->db));
}

static bh_rc
connection_sql_configure(struct bh_sql *sql, const struct bh_sql_options *options, struct bh_err *err)
{
    char text[160];

    sqlite3_extended_result_codes(sql->db, 1);
    sqlite3_busy_timeout(sql->db, BUSY_MS);
    snprintf(text, sizeof text, "PRAGMA cache_size = -%d; PRAGMA trusted_schema = OFF", options->cache_kib);
    return bh_sql_exec(sql, text, err);
}

bh_rc
bh_sql_open(const char *path, const struct bh_sql_options *options, struct bh_sql **ret_sql,
            struct bh_err *err)
{
    BH_AUTO(bh_sql_close) struct bh_sql *sql = calloc(1, sizeof *sql);
    bh_rc rc;

    BH_ASSERT(sql);
    errno = 0;
    if (sqlite3_open_v2(path, &sql->db, options->flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        BH_ASSERT(sql->db);
        return bh_sql_err(sql, "open the store", err);
    }
    rc = connection_sql_configure(sql, options, err);
    if (rc != BH_OK)
        return rc;
    *ret_sql = bh_steal(&sql);
    return BH_OK;
}

void
bh_sql_close(struct bh_sql *sql)
{
    for (size_t i = 0; i < BH_COUNT(sql->statements); i++)
        sqlite3_finalize(sql->statements[i]);
    sqlite3_close(sql->db);
    free(sql);
}

bh_rc
bh_sql_exec(struct bh_sql *sql, const char *text, struct bh_err *err)
{
    errno = 0;
    if (sqlite3_exec(sql->db, text, NULL, NULL, NULL) != SQLITE_OK)
        return bh_sql_err(sql, "store", err);
    return BH_OK;
}

bh_rc
bh_sql_use(struct bh_sql *sql, enum bh_sql_statement which, struct bh_sql_use *ret_use, struct bh_err *err)
{
    sqlite3_stmt **place = &sql->statements[which];

    if (!*place
        && sqlite3_prepare_v3(sql->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, place, NULL) != SQLITE_OK)
        return bh_sql_err(sql, "store", err);
    *ret_use = (struct bh_sql_use){ sql, *place, 0 };
    return BH_OK;
}

/* Binding a value that SQLite does not copy fails only for values over its limit of a
 * gigabyte, which then shows as a NULL that the tables refuse. */

void
bh_sql_put_u64(struct bh_sql_use *use, uint64_t value)
{
    sqlite3_bind_int64(use->statement, ++use->at, (sqlite3_int64)value);
}

void
bh_sql_put_text(struct bh_sql_use *use, const char *text)
{
    sqlite3_bind_text(use->statement, ++use->at, text ? text : "", -1, SQLITE_STATIC);
}

void
bh_sql_put_text_n(struct bh_sql_use *use, const char *text, size_t length)
{
    sqlite3_bind_text64(use->statement, ++use->at, text, length, SQLITE_STATIC, SQLITE_UTF8);
}

void
bh_sql_put_bytes(struct bh_sql_use *use, const void *bytes, size_t length)
{
    sqlite3_bind_blob64(use->statement, ++use->at, bytes, length, SQLITE_STATIC);
}

/* With the table that is read. */
static bh_rc
connection_step_err(const struct bh_sql_use *use, struct bh_err *err)
{
    const char *from = strstr(sqlite3_sql(use->statement), " FROM ");
    char what[80] = "store";

    if (from)
        snprintf(what, sizeof what, "store, table %.*s", (int)strcspn(from + 6, " ,()"), from + 6);
    return bh_sql_err(use->sql, what, err);
}

bh_rc
bh_sql_step(struct bh_sql_use *use, bool *ret_row, struct bh_err *err)
{
    int result;

    errno = 0;
    result = sqlite3_step(use->statement);
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        return connection_step_err(use, err);
    *ret_row = result == SQLITE_ROW;
    return BH_OK;
}

bh_rc
bh_sql_run(struct bh_sql_use *use, struct bh_err *err)
{
    bool row;
    bh_rc rc = bh_sql_step(use, &row, err);

    bh_sql_done(use);
    return rc;
}

void
bh_sql_done(struct bh_sql_use *use)
{
    sqlite3_reset(use->statement);
    use->statement = NULL;
}

uint64_t
bh_sql_u64(const struct bh_sql_use *use, int column)
{
    return (uint64_t)sqlite3_column_int64(use->statement, column);
}

const char *
bh_sql_text(const struct bh_sql_use *use, int column)
{
    const char *text = (const char *)sqlite3_column_text(use->statement, column);

    return text ? text : "";
}

void
bh_sql_digest(const struct bh_sql_use *use, int column, struct bh_digest *ret_digest)
{
    const void *bytes = sqlite3_column_blob(use->statement, column);

    memset(ret_digest, 0, sizeof *ret_digest);
    if (bytes && sqlite3_column_bytes(use->statement, column) == sizeof ret_digest->bytes)
        memcpy(ret_digest->bytes, bytes, sizeof ret_digest->bytes);
}

int
bh_sql_changed(const struct bh_sql *sql)
{
    return sqlite3_changes(sql->db);
}
