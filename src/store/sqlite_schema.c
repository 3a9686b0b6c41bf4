#include "store/sqlite.h"

#include <stdio.h>

#include "store/sqlite_internal.h"

/* Row N brings the tables from version N to N + 1.  Rows that were released are never
 * changed; a new version adds a row. */
static const char *const migrations[] = {
    "CREATE TABLE records ("
    "  seq INTEGER PRIMARY KEY,"
    "  leaf BLOB NOT NULL,"
    "  hash BLOB NOT NULL"
    ") STRICT;"
    "CREATE TABLE texts ("
    "  id INTEGER PRIMARY KEY,"
    "  digest BLOB NOT NULL UNIQUE,"
    "  text TEXT NOT NULL"
    ") STRICT;"
    "CREATE TABLE jobs ("
    "  job INTEGER PRIMARY KEY,"
    "  lease INTEGER NOT NULL, tenant_id INTEGER NOT NULL, principal_id INTEGER NOT NULL,"
    "  count INTEGER NOT NULL, priority INTEGER NOT NULL, restarts INTEGER NOT NULL,"
    "  name TEXT NOT NULL, tenant TEXT NOT NULL, principal TEXT NOT NULL, sku TEXT NOT "
    "NULL,"
    "  kind TEXT NOT NULL, state TEXT NOT NULL, contract TEXT NOT NULL, reason TEXT NOT "
    "NULL,"
    "  node TEXT NOT NULL, pieces TEXT NOT NULL, grade TEXT NOT NULL,"
    "  submitted_ns INTEGER NOT NULL, started_ns INTEGER NOT NULL, ended_ns INTEGER NOT "
    "NULL,"
    "  time_limit_ns INTEGER NOT NULL, exit_status INTEGER NOT NULL, spec BLOB NOT NULL,"
    "  ended INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX jobs_by_state ON jobs (ended, state, job);"
    "CREATE INDEX jobs_by_tenant ON jobs (tenant_id, ended, state, job);"
    "CREATE INDEX jobs_by_principal ON jobs (principal_id, ended, state, job, tenant_id);"
    "CREATE TABLE names ("
    "  kind INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, gone INTEGER NOT "
    "NULL,"
    "  PRIMARY KEY (kind, id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE tokens ("
    "  id TEXT PRIMARY KEY NOT NULL, secret BLOB NOT NULL, principal_id INTEGER NOT NULL,"
    "  scopes TEXT NOT NULL, note TEXT NOT NULL, created_ns INTEGER NOT NULL,"
    "  expires_ns INTEGER NOT NULL, last_used_ns INTEGER NOT NULL, revoked INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE checkpoints ("
    "  size INTEGER PRIMARY KEY,"
    "  note TEXT NOT NULL"
    ") STRICT;"
    "CREATE TABLE replies ("
    "  principal_id INTEGER NOT NULL, key TEXT NOT NULL, request BLOB NOT NULL,"
    "  status INTEGER NOT NULL, body TEXT NOT NULL, at_ns INTEGER NOT NULL,"
    "  PRIMARY KEY (principal_id, key)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX replies_by_time ON replies (at_ns);"
    "CREATE TABLE meta ("
    "  key TEXT PRIMARY KEY NOT NULL,"
    "  value TEXT NOT NULL"
    ") STRICT;",
    "ALTER TABLE jobs ADD COLUMN deadline_ns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN checkpoint_signal INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN gang INTEGER NOT NULL DEFAULT 0;",
    "CREATE TABLE documents ("
    "  kind INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,"
    "  principal_id INTEGER NOT NULL, value TEXT NOT NULL,"
    "  PRIMARY KEY (kind, key)"
    ") STRICT, WITHOUT ROWID;",
    "CREATE TABLE keys ("
    "  id INTEGER PRIMARY KEY,"
    "  kind INTEGER NOT NULL, tenant_id INTEGER NOT NULL, month INTEGER NOT NULL,"
    "  parent INTEGER NOT NULL, created_ns INTEGER NOT NULL, shredded_ns INTEGER NOT NULL,"
    "  wrapped BLOB NOT NULL"
    ") STRICT;",
    "ALTER TABLE names ADD COLUMN key BLOB NOT NULL DEFAULT x'';"
    "ALTER TABLE names ADD COLUMN record INTEGER NOT NULL DEFAULT 0;",
    "CREATE INDEX tokens_by_principal ON tokens (principal_id);",
    "ALTER TABLE jobs ADD COLUMN ended_by INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE texts ADD COLUMN tenant_id INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE texts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"
    "UPDATE texts SET tenant_id = jobs.tenant_id, bytes = length(CAST(texts.text AS BLOB)) "
    "FROM jobs WHERE texts.digest = jobs.spec;"
    "CREATE INDEX texts_by_tenant ON texts (tenant_id, bytes) WHERE tenant_id > 0;",
    /* A sealed text names the key that sealed it (audit/sealed.h), so no second column must be kept equal.  A
     * text whose key was destroyed counts against its tenant, and cannot be read. */
    "ALTER TABLE texts ADD COLUMN key INTEGER NOT NULL AS ("
    "  CASE WHEN tenant_id > 0 AND text GLOB '{\"c\":\"*\",\"k\":\"[0-9]*\",\"n\":\"*\"}'"
    "  THEN CAST(substr(text, instr(text, '\",\"k\":\"') + 7) AS INTEGER) ELSE 0 END) VIRTUAL;"
    "CREATE INDEX texts_by_key ON texts (key) WHERE key > 0;"
    "DELETE FROM texts WHERE key > 0 AND key IN (SELECT id FROM keys WHERE shredded_ns > 0);",
};

enum { VERSION = BH_COUNT(migrations) };

static bh_rc
schema_read_version(struct bh_sql *sql, uint64_t *ret_version, struct bh_err *err)
{
    sqlite3_stmt *statement = NULL;
    bool found;

    found = sqlite3_prepare_v2(sql->db, "PRAGMA user_version", -1, &statement, NULL) == SQLITE_OK
            && sqlite3_step(statement) == SQLITE_ROW;
    if (found)
        *ret_version = (uint64_t)sqlite3_column_int64(statement, 0);
    else
        bh_sql_err(sql, "read the store's version", err);
    sqlite3_finalize(statement);
    return found ? BH_OK : err->rc;
}

static bh_rc
schema_refuse_version(uint64_t version, struct bh_err *err)
{
    bh_err_set(err, BH_CONFLICT, "the store has version %u, this program knows version %d", (unsigned)version,
               VERSION);
    return bh_err_hint(err, version < VERSION ? "start bulkheadd on it once: that brings it to its version"
                                              : "use the Bulkhead that wrote it, or a newer one");
}

static bh_rc
sqlite_schema_apply(struct bh_sql *sql, unsigned version, struct bh_err *err)
{
    char mark[64];
    bh_rc rc = bh_sql_exec(sql, "BEGIN IMMEDIATE", err);

    if (rc != BH_OK)
        return rc;
    snprintf(mark, sizeof mark, "PRAGMA user_version = %u; COMMIT", version + 1);
    rc = bh_sql_exec(sql, migrations[version], err);
    if (rc == BH_OK)
        rc = bh_sql_exec(sql, mark, err);
    if (rc != BH_OK)
        sqlite3_exec(sql->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

bh_rc
bh_sqlite_migrate(struct bh_sql *sql, struct bh_err *err)
{
    uint64_t version;
    bh_rc rc = schema_read_version(sql, &version, err);

    if (rc == BH_OK && version > VERSION)
        return schema_refuse_version(version, err);
    for (; rc == BH_OK && version < VERSION; version++) {
        rc = sqlite_schema_apply(sql, (unsigned)version, err);
        if (rc != BH_OK)
            bh_err_wrap(err, "bring the store to version %u", (unsigned)version + 1);
    }
    return rc;
}

bh_rc
bh_sqlite_check_version(struct bh_sql *sql, struct bh_err *err)
{
    uint64_t version;
    bh_rc rc = schema_read_version(sql, &version, err);

    if (rc != BH_OK)
        return rc;
    if (version != VERSION)
        return schema_refuse_version(version, err);
    return BH_OK;
}

bh_rc
bh_sqlite_touch(struct bh_sql *sql, struct bh_err *err)
{
    char text[64];

    snprintf(text, sizeof text, "PRAGMA user_version = %d", VERSION);
    return bh_sql_exec(sql, text, err);
}
