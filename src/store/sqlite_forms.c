/* The form of every row: what SQLite would keep, and C or a number of 32 bits would read as
 * something else, is no row of this store. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/note.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "store/sqlite_internal.h"

enum {
    COLUMNS_MAX = 32,
    NAME_BYTES_MAX = 4096,
    SCOPES_BYTES_MAX = 4096,
    VALUE_BYTES_MAX = 1 << 20,
    SQL_BYTES_MAX = 1024,
    SHOWN_BYTES = 61
};

/* A column's type, and its least and its greatest value, or number of bytes. */
struct column {
    const char *name;
    int type; /* SQLITE_INTEGER, SQLITE_TEXT, SQLITE_BLOB */
    int64_t least, most;
};

#define NUMBER(name)                                                                                         \
    {                                                                                                        \
        name, SQLITE_INTEGER, 0, INT64_MAX                                                                   \
    }
#define ANY(name)                                                                                            \
    {                                                                                                        \
        name, SQLITE_INTEGER, INT64_MIN, INT64_MAX                                                           \
    } /* 64 bits without a sign */
#define ID(name)                                                                                             \
    {                                                                                                        \
        name, SQLITE_INTEGER, 1, INT64_MAX                                                                   \
    }
#define ID32(name)                                                                                           \
    {                                                                                                        \
        name, SQLITE_INTEGER, 1, UINT32_MAX                                                                  \
    }
#define U32(name)                                                                                            \
    {                                                                                                        \
        name, SQLITE_INTEGER, 0, UINT32_MAX                                                                  \
    }
#define I32(name)                                                                                            \
    {                                                                                                        \
        name, SQLITE_INTEGER, INT32_MIN, INT32_MAX                                                           \
    }
#define BOOL(name)                                                                                           \
    {                                                                                                        \
        name, SQLITE_INTEGER, 0, 1                                                                           \
    }
#define BELOW(name, count)                                                                                   \
    {                                                                                                        \
        name, SQLITE_INTEGER, 0, (count)-1                                                                   \
    }
#define TEXT(name, least, most)                                                                              \
    {                                                                                                        \
        name, SQLITE_TEXT, least, most                                                                       \
    }
#define BLOB(name, size)                                                                                     \
    {                                                                                                        \
        name, SQLITE_BLOB, size, size                                                                        \
    }

static const struct column record_columns[] = { NUMBER("seq"), BLOB("hash", 32) };
static const struct column text_columns[] = { ID("id"), BLOB("digest", 32), U32("tenant_id"),
                                              NUMBER("bytes") };
static const struct column job_columns[] = {
    ID("job"),
    ANY("lease"),
    U32("tenant_id"),
    U32("principal_id"),
    U32("count"),
    U32("priority"),
    U32("restarts"),
    TEXT("name", 0, NAME_BYTES_MAX),
    TEXT("tenant", 0, NAME_BYTES_MAX),
    TEXT("principal", 0, NAME_BYTES_MAX),
    TEXT("sku", 0, NAME_BYTES_MAX),
    TEXT("kind", 0, NAME_BYTES_MAX),
    TEXT("state", 1, BH_SQLITE_STATE_BYTES - 1),
    TEXT("contract", 0, NAME_BYTES_MAX),
    TEXT("reason", 0, NAME_BYTES_MAX),
    TEXT("node", 0, NAME_BYTES_MAX),
    TEXT("pieces", 0, VALUE_BYTES_MAX),
    TEXT("grade", 0, NAME_BYTES_MAX),
    ANY("submitted_ns"),
    ANY("started_ns"),
    ANY("ended_ns"),
    ANY("time_limit_ns"),
    I32("exit_status"),
    BLOB("spec", 32),
    ANY("deadline_ns"),
    U32("checkpoint_signal"),
    U32("gang"),
    NUMBER("ended_by"),
    BOOL("ended"),
};
static const struct column name_columns[] = {
    BELOW("kind", BH_NAME_KINDS), ID32("id"), TEXT("name", 0, NAME_BYTES_MAX), BOOL("gone"), NUMBER("record"),
};
static const struct column token_columns[] = {
    TEXT("id", 1, sizeof((struct bh_token_row *)NULL)->id - 1),
    BLOB("secret", 32),
    U32("principal_id"),
    TEXT("scopes", 0, SCOPES_BYTES_MAX),
    TEXT("note", 0, VALUE_BYTES_MAX),
    ANY("created_ns"),
    ANY("expires_ns"),
    ANY("last_used_ns"),
    BOOL("revoked"),
};
static const struct column document_columns[] = {
    BELOW("kind", BH_DOCUMENT_KINDS),
    TEXT("key", 1, BH_DOCUMENT_KEY_MAX),
    ID("version"),
    U32("principal_id"),
    TEXT("value", 1, BH_DOCUMENT_VALUE_MAX),
};
static const struct column key_columns[] = {
    ID("id"),      BELOW("kind", BH_KEY_KINDS), U32("tenant_id"),   U32("month"),
    ANY("parent"), ANY("created_ns"),           ANY("shredded_ns"), BLOB("wrapped", BH_KEY_WRAPPED_BYTES),
};
static const struct column checkpoint_columns[] = { NUMBER("size"),
                                                    TEXT("note", 1, BH_NODE_RECORD_BYTES_MAX) };
static const struct column reply_columns[] = {
    U32("principal_id"), TEXT("key", 0, NAME_BYTES_MAX), BLOB("request", 32), U32("status"), ANY("at_ns"),
};
static const struct column meta_columns[] = { TEXT("key", 1, NAME_BYTES_MAX),
                                              TEXT("value", 0, VALUE_BYTES_MAX) };
/* A key that opens a commitment, or none: of a store of before it is empty. */
static const struct column name_key_columns[] = { BELOW("kind", BH_NAME_KINDS), ID32("id"), BLOB("key", 32) };

#define TABLE(name, keys, columns, also, large)                                                              \
    {                                                                                                        \
        name, columns, BH_COUNT(columns), keys, also, large                                                  \
    }

static const struct table {
    const char *name;
    const struct column *columns;
    size_t count, keys; /* the first columns are its key */
    const char *also;   /* which rows */
    bool large;         /* of a start: it reads them as it needs them */
} tables[] = {
    TABLE("records", 1, record_columns, "", true),
    TABLE("checkpoints", 1, checkpoint_columns, "", true),
    TABLE("names", 2, name_columns, "", false),
    TABLE("names", 2, name_key_columns, " WHERE length(key) > 0", false),
    TABLE("jobs", 1, job_columns, "", false),
    TABLE("texts", 1, text_columns, "", true),
    TABLE("documents", 2, document_columns, "", false),
    TABLE("keys", 1, key_columns, "", false),
    TABLE("tokens", 1, token_columns, "", false),
    TABLE("meta", 1, meta_columns, "", false),
    TABLE("replies", 2, reply_columns, "", false),
};

/* A start looks at each job there ever was: most texts are ASCII, which needs one look. */
static bool
sqlite_forms_is_text(const char *text, int bytes)
{
    unsigned char all = 0;

    if (!text || strlen(text) != (size_t)bytes)
        return false;
    for (int i = 0; i < bytes; i++)
        all |= (unsigned char)text[i];
    return all < 0x80 || bh_utf8_is_valid(text);
}

static bool
has_form(sqlite3_stmt *row, int at, const struct column *column)
{
    int64_t measure;

    if (sqlite3_column_type(row, at) != column->type)
        return false;
    measure = column->type == SQLITE_INTEGER ? sqlite3_column_int64(row, at) : sqlite3_column_bytes(row, at);
    if (measure < column->least || measure > column->most)
        return false;
    return column->type != SQLITE_TEXT
           || sqlite_forms_is_text((const char *)sqlite3_column_text(row, at), sqlite3_column_bytes(row, at));
}

/* "names: the row of kind 2, id 7 is malformed: name". */
static bh_rc
sqlite_forms_refuse(const struct table *table, sqlite3_stmt *row, const char *column, struct bh_err *err)
{
    char memory[200], shown[SHOWN_BYTES];
    struct bh_buf of;

    bh_buf_init_fixed(&of, memory, sizeof memory);
    for (size_t i = 0; i < table->keys; i++) {
        const char *value = (const char *)sqlite3_column_text(row, (int)i);

        snprintf(shown, sizeof shown, "%s", value ? value : "");
        bh_utf8_scrub(shown);
        bh_buf_printf(&of, "%s%s %s", i ? ", " : "", table->columns[i].name, shown);
    }
    return bh_err_set(err, BH_CONFLICT, "%s: the row of %s is malformed: %s", table->name, bh_buf_text(&of),
                      column);
}

static bh_rc
forms_check_row(const struct table *table, sqlite3_stmt *row, struct bh_err *err)
{
    for (size_t i = 0; i < table->count; i++)
        if (!has_form(row, (int)i, &table->columns[i]))
            return sqlite_forms_refuse(table, row, table->columns[i].name, err);
    return BH_OK;
}

static bh_rc
forms_walk_rows(struct bh_sql *sql, const struct table *table, sqlite3_stmt *statement, struct bh_err *err)
{
    bh_rc rc = BH_OK;
    int result;

    while ((result = sqlite3_step(statement)) == SQLITE_ROW && rc == BH_OK)
        rc = forms_check_row(table, statement, err);
    if (rc != BH_OK)
        return rc;
    if (result != SQLITE_DONE)
        return bh_sql_err(sql, "store", err);
    return BH_OK;
}

static bh_rc
forms_check_table(struct bh_sql *sql, const struct table *table, struct bh_err *err)
{
    char memory[SQL_BYTES_MAX];
    sqlite3_stmt *statement = NULL;
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_buf_puts(&text, "SELECT ");
    for (size_t i = 0; i < table->count; i++)
        bh_buf_printf(&text, "%s%s", i ? ", " : "", table->columns[i].name);
    bh_buf_printf(&text, " FROM %s%s", table->name, table->also);
    if (sqlite3_prepare_v2(sql->db, bh_buf_text(&text), -1, &statement, NULL) != SQLITE_OK)
        return bh_sql_err(sql, "store", err);
    rc = forms_walk_rows(sql, table, statement, err);
    sqlite3_finalize(statement);
    return rc;
}

bh_rc
bh_sqlite_check_rows(void *self, enum bh_store_rows which, struct bh_err *err)
{
    struct bh_sqlite *store = self;
    struct bh_sql *reader;
    bh_rc rc = bh_sqlite_acquire(store, &reader, err);

    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; rc == BH_OK && i < BH_COUNT(tables); i++)
        if (which == BH_STORE_ROWS_ALL || !tables[i].large)
            rc = forms_check_table(reader, &tables[i], err);
    bh_sqlite_release(store, reader);
    return rc;
}
