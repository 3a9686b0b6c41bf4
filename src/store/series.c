#include "store/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "store/sqlite_internal.h"

enum { CACHE_KIB = 1024, VERSION = 1, PATH_SIZE = 4096 };

/* Blocks stand in the order of time, so that what is written together lies together, and what ages goes as
 * one range.  A series is its object's id times BH_SERIES_A_KIND_MAX and the position of its row.  Ids are
 * not given out twice: blocks of a dropped object are no other object's. */
static const char schema[] =
    "CREATE TABLE meta (log TEXT NOT NULL);"
    "CREATE TABLE objects (id INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL, name TEXT NOT NULL,"
    " tenant_id INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, UNIQUE (kind, name));"
    "CREATE INDEX objects_by_age ON objects (kind, tenant_id, last_ns);"
    "CREATE TABLE blocks (resolution INTEGER NOT NULL, block INTEGER NOT NULL, series INTEGER NOT NULL,"
    " points BLOB NOT NULL, PRIMARY KEY (resolution, block, series)) WITHOUT ROWID;"
    "PRAGMA user_version = 1";

struct series {
    struct bh_sql *writer; /* one thread */
    /* any thread, under mutex */
    struct bh_mutex mutex;
    struct bh_sql *reader;
};

/* ---- opening ---- */

static bh_rc
series_number(struct bh_sql *sql, enum bh_sql_statement which, uint64_t *ret_number, struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { .statement = NULL };
    bool row = false;
    bh_rc rc = bh_sql_use(sql, which, &use, err);

    if (rc == BH_OK)
        rc = bh_sql_step(&use, &row, err);
    if (rc == BH_OK)
        *ret_number = row ? bh_sql_u64(&use, 0) : 0;
    return rc;
}

/* Whether the file is of this version and of the log. */
static bh_rc
series_is_usable(struct bh_sql *sql, const char *log, bool *ret_usable, struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { .statement = NULL };
    uint64_t version = 0;
    bool row = false;
    bh_rc rc = series_number(sql, BH_SQL_SERIES_VERSION, &version, err);

    *ret_usable = false;
    if (rc != BH_OK || version != VERSION)
        return rc;
    rc = bh_sql_use(sql, BH_SQL_SERIES_LOG, &use, err);
    if (rc == BH_OK)
        rc = bh_sql_step(&use, &row, err);
    *ret_usable = rc == BH_OK && row && strcmp(bh_sql_text(&use, 0), log) == 0;
    return rc;
}

static bh_rc
series_make_tables(struct bh_sql *sql, const char *log, struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = bh_sql_exec(sql, "BEGIN IMMEDIATE", err);

    if (rc != BH_OK)
        return rc;
    rc = bh_sql_exec(sql, schema, err);
    if (rc == BH_OK)
        rc = bh_sql_use(sql, BH_SQL_SERIES_PUT_LOG, &use, err);
    if (rc != BH_OK)
        return rc;
    bh_sql_put_text(&use, log);
    rc = bh_sql_run(&use, err);
    return rc == BH_OK ? bh_sql_exec(sql, "COMMIT", err) : rc;
}

static bh_rc
series_remove_files(const char *path, struct bh_err *err)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    char file[PATH_SIZE + 8];

    for (size_t i = 0; i < BH_COUNT(endings); i++) {
        snprintf(file, sizeof file, "%s%s", path, endings[i]);
        if (unlink(file) != 0 && access(file, F_OK) == 0)
            return bh_err_errno(err, "remove %s", file);
    }
    return BH_OK;
}

/* SQLite waits at a FIFO. */
static bh_rc
series_check_files(const char *path, struct bh_err *err)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    char file[PATH_SIZE + 8];
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(endings) && rc == BH_OK; i++) {
        snprintf(file, sizeof file, "%s%s", path, endings[i]);
        rc = bh_file_check(file, err);
    }
    return rc;
}

static bh_rc
series_open_writer(const char *path, struct bh_sql **ret_sql, struct bh_err *err)
{
    const struct bh_sql_options options = { SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, CACHE_KIB };
    BH_AUTO(bh_sql_close) struct bh_sql *sql = NULL;
    bh_rc rc = bh_sql_open(path, &options, &sql, err);

    if (rc == BH_OK)
        rc = bh_sql_exec(sql,
                         "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                         "PRAGMA journal_size_limit = 16777216",
                         err);
    if (rc == BH_OK)
        *ret_sql = bh_steal(&sql);
    return rc;
}

/* A file that cannot be used is made anew: it holds nothing that anything depends on. */
static bh_rc
series_open_usable(const char *path, const char *log, struct bh_sql **ret_sql, bool *ret_emptied,
                   struct bh_err *err)
{
    BH_AUTO(bh_sql_close) struct bh_sql *sql = NULL;
    bool usable = false, fresh = access(path, F_OK) != 0;
    bh_rc rc = series_open_writer(path, &sql, err);

    if (rc == BH_OK && !fresh)
        rc = series_is_usable(sql, log, &usable, err);
    if (rc != BH_OK && !bh_store_sqlite_is_damage(err))
        return rc;
    if (!fresh && !usable) {
        if (sql)
            bh_sql_close(bh_steal(&sql));
        rc = series_remove_files(path, err);
        if (rc == BH_OK)
            rc = series_open_writer(path, &sql, err);
    }
    if (rc == BH_OK && !usable)
        rc = series_make_tables(sql, log, err);
    if (rc != BH_OK)
        return rc;
    *ret_emptied = !fresh && !usable;
    *ret_sql = bh_steal(&sql);
    return BH_OK;
}

static void
series_close(void *self)
{
    struct series *series = self;

    bh_sql_close(series->reader);
    bh_sql_close(series->writer);
    bh_mutex_fini(&series->mutex);
    free(series);
}

/* ---- writing ---- */

struct series_write {
    struct bh_sql *sql;
    const struct bh_series_batch *batch;
    uint64_t first_ns; /* of its samples */
    uint64_t *ids;     /* beside batch->objects */
};

/* Forget an object with its blocks, which lie between two moments. */
static bh_rc
series_drop(struct bh_sql *sql, uint64_t id, const uint64_t moments[2], struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = BH_OK;

    for (enum bh_resolution r = 0; r < BH_RESOLUTIONS; r++) {
        uint64_t last = bh_series_interval(r, moments[1]) / BH_BLOCK_POINTS;
        uint64_t block = bh_series_interval(r, moments[0]) / BH_BLOCK_POINTS;

        for (; block <= last && rc == BH_OK; block++) {
            rc = bh_sql_use(sql, BH_SQL_SERIES_DROP_BLOCK, &use, err);
            if (rc != BH_OK)
                return rc;
            bh_sql_put_u64(&use, r);
            bh_sql_put_u64(&use, block);
            bh_sql_put_u64(&use, id * BH_SERIES_A_KIND_MAX);
            bh_sql_put_u64(&use, (id + 1) * BH_SERIES_A_KIND_MAX - 1);
            rc = bh_sql_run(&use, err);
        }
    }
    if (rc == BH_OK)
        rc = bh_sql_use(sql, BH_SQL_SERIES_DROP_OBJECT, &use, err);
    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, id);
    return bh_sql_run(&use, err);
}

/* An object's row: its id, 0 where there is none, and the moments that its samples lie between. */
struct series_found {
    uint64_t id, moments[2];
    bool foreign; /* of another tenant */
};

static bh_rc
series_find_object(struct bh_sql *sql, const struct bh_series_object *object, struct series_found *ret_found,
                   struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { .statement = NULL };
    bool row = false;
    bh_rc rc = bh_sql_use(sql, BH_SQL_SERIES_GET_OBJECT, &use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, object->kind);
    bh_sql_put_text(&use, object->name);
    rc = bh_sql_step(&use, &row, err);
    *ret_found = (struct series_found){ .id = 0 };
    if (rc == BH_OK && row)
        *ret_found = (struct series_found){ .id = bh_sql_u64(&use, 0),
                                            .moments = { bh_sql_u64(&use, 2), bh_sql_u64(&use, 3) },
                                            .foreign = bh_sql_u64(&use, 1) != object->tenant_id };
    return rc;
}

static bh_rc
series_put_object(const struct series_write *write, const struct bh_series_object *object, uint64_t *ret_id,
                  struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = bh_sql_use(write->sql, BH_SQL_SERIES_PUT_OBJECT, &use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, object->kind);
    bh_sql_put_text(&use, object->name);
    bh_sql_put_u64(&use, object->tenant_id);
    bh_sql_put_u64(&use, write->first_ns);
    bh_sql_put_u64(&use, write->batch->now_ns);
    rc = bh_sql_run(&use, err);
    *ret_id = (uint64_t)sqlite3_last_insert_rowid(write->sql->db);
    return rc;
}

/* An object's moments reach to the first and the last of its samples, whichever way the clock went. */
static bh_rc
series_touch_object(const struct series_write *write, uint64_t id, struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = bh_sql_use(write->sql, BH_SQL_SERIES_TOUCH_OBJECT, &use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, write->first_ns);
    bh_sql_put_u64(&use, write->batch->now_ns);
    bh_sql_put_u64(&use, id);
    return bh_sql_run(&use, err);
}

/* The object's id; a new one where it has none, or another tenant's had the name. */
static bh_rc
series_claim_object(const struct series_write *write, const struct bh_series_object *object, uint64_t *ret_id,
                    struct bh_err *err)
{
    struct series_found found;
    bh_rc rc = series_find_object(write->sql, object, &found, err);

    if (rc == BH_OK && found.foreign)
        rc = series_drop(write->sql, found.id, found.moments, err);
    if (rc != BH_OK)
        return rc;
    *ret_id = found.foreign ? 0 : found.id;
    return *ret_id ? series_touch_object(write, *ret_id, err) : series_put_object(write, object, ret_id, err);
}

/* The block as it is kept, all gaps where it is not. */
static bh_rc
series_read_block(struct bh_sql *sql, const uint64_t key[3], uint8_t ret_block[BH_BLOCK_BYTES],
                  struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { .statement = NULL };
    bool row = false;
    bh_rc rc = bh_sql_use(sql, BH_SQL_SERIES_GET_BLOCK, &use, err);

    memset(ret_block, 0, BH_BLOCK_BYTES);
    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < 3; i++)
        bh_sql_put_u64(&use, key[i]);
    rc = bh_sql_step(&use, &row, err);
    if (rc == BH_OK && row && sqlite3_column_bytes(use.statement, 0) == BH_BLOCK_BYTES)
        memcpy(ret_block, sqlite3_column_blob(use.statement, 0), BH_BLOCK_BYTES);
    return rc;
}

static bh_rc
series_put_block(struct bh_sql *sql, const uint64_t key[3], const uint8_t block[BH_BLOCK_BYTES],
                 struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = bh_sql_use(sql, BH_SQL_SERIES_PUT_BLOCK, &use, err);

    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < 3; i++)
        bh_sql_put_u64(&use, key[i]);
    bh_sql_put_bytes(&use, block, BH_BLOCK_BYTES);
    return bh_sql_run(&use, err);
}

static uint64_t
series_interval_of(const struct bh_series_sample *sample, enum bh_resolution resolution)
{
    return sample->interval
           / (bh_resolutions[resolution].step_ns / bh_resolutions[BH_RESOLUTION_FINE].step_ns);
}

/* The samples from `*at` on that are of one series and one block, into it. */
static bh_rc
series_write_block(const struct series_write *write, enum bh_resolution resolution, uint32_t *at,
                   struct bh_err *err)
{
    const struct bh_series_sample *first = &write->batch->samples[*at], *sample = first;
    const struct bh_series_sample *end = write->batch->samples + write->batch->sample_count;
    uint64_t block = series_interval_of(first, resolution) / BH_BLOCK_POINTS;
    const uint64_t key[3] = {
        resolution, block, write->ids[first->object] * BH_SERIES_A_KIND_MAX + bh_series_position(first->row)
    };
    uint8_t bytes[BH_BLOCK_BYTES];
    bh_rc rc = series_read_block(write->sql, key, bytes, err);

    if (rc != BH_OK)
        return rc;
    for (; sample < end && sample->object == first->object && sample->row == first->row
           && series_interval_of(sample, resolution) / BH_BLOCK_POINTS == block;
         sample++)
        bh_block_merge(bytes, series_interval_of(sample, resolution), &sample->point);
    *at += (uint32_t)(sample - first);
    return series_put_block(write->sql, key, bytes, err);
}

static bh_rc
series_write_samples(const struct series_write *write, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (enum bh_resolution r = 0; r < BH_RESOLUTIONS && rc == BH_OK; r++)
        for (uint32_t at = 0; at < write->batch->sample_count && rc == BH_OK;)
            rc = series_write_block(write, r, &at, err);
    return rc;
}

static bh_rc
series_write_all(struct series_write *write, struct bh_err *err)
{
    bh_rc rc = bh_sql_exec(write->sql, "BEGIN IMMEDIATE", err);

    for (uint32_t i = 0; i < write->batch->object_count && rc == BH_OK; i++)
        rc = series_claim_object(write, &write->batch->objects[i], &write->ids[i], err);
    if (rc == BH_OK)
        rc = series_write_samples(write, err);
    return rc == BH_OK ? bh_sql_exec(write->sql, "COMMIT", err) : rc;
}

/* After a failure nothing of the transaction stays. */
static void
series_roll_back(struct bh_sql *sql)
{
    struct bh_err ignored;

    if (!sqlite3_get_autocommit(sql->db))
        (void)!bh_sql_exec(sql, "ROLLBACK", &ignored);
}

static uint64_t
series_first_ns(const struct bh_series_batch *batch)
{
    uint64_t first_ns = batch->now_ns;

    for (uint32_t i = 0; i < batch->sample_count; i++) {
        uint64_t at_ns = batch->samples[i].interval * bh_resolutions[BH_RESOLUTION_FINE].step_ns;

        first_ns = at_ns < first_ns ? at_ns : first_ns;
    }
    return first_ns;
}

static bh_rc
series_store_write(void *self, const struct bh_series_batch *batch, struct bh_err *err)
{
    struct series *series = self;
    struct series_write write = { .sql = series->writer, .batch = batch, .first_ns = series_first_ns(batch) };
    bh_rc rc;

    write.ids = calloc((size_t)batch->object_count + 1, sizeof *write.ids);
    BH_ASSERT(write.ids);
    rc = series_write_all(&write, err);
    series_roll_back(series->writer);
    free(write.ids);
    return rc;
}

/* ---- pruning ---- */

/* At most so many go at a time: what is left goes the next time. */
enum { DROPPED_AT_ONCE = 512 };

struct series_victims {
    uint64_t ids[DROPPED_AT_ONCE], moments[DROPPED_AT_ONCE][2];
    uint32_t count;
};

static bh_rc
series_find_victims(struct bh_sql_use *use, struct series_victims *victims, struct bh_err *err)
{
    bool row = true;
    bh_rc rc = BH_OK;

    while (victims->count < DROPPED_AT_ONCE && rc == BH_OK) {
        rc = bh_sql_step(use, &row, err);
        if (rc != BH_OK || !row)
            break;
        victims->ids[victims->count] = bh_sql_u64(use, 0);
        victims->moments[victims->count][0] = bh_sql_u64(use, 1);
        victims->moments[victims->count++][1] = bh_sql_u64(use, 2);
    }
    return rc;
}

static bh_rc
series_drop_found(struct bh_sql *sql, enum bh_sql_statement which, uint64_t most, struct bh_err *err)
{
    struct series_victims victims = { .count = 0 };
    struct bh_sql_use use;
    bh_rc rc = bh_sql_use(sql, which, &use, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&use, most);
    rc = series_find_victims(&use, &victims, err);
    bh_sql_done(&use);
    for (uint32_t i = 0; i < victims.count && rc == BH_OK; i++)
        rc = series_drop(sql, victims.ids[i], victims.moments[i], err);
    return rc;
}

static bh_rc
series_drop_old_blocks(struct bh_sql *sql, const struct bh_series_limits *limits, struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = BH_OK;

    for (enum bh_resolution r = 0; r < BH_RESOLUTIONS && rc == BH_OK; r++) {
        rc = bh_sql_use(sql, BH_SQL_SERIES_DROP_OLD, &use, err);
        if (rc != BH_OK)
            return rc;
        bh_sql_put_u64(&use, r);
        bh_sql_put_u64(&use, bh_block_oldest(r, limits->now_ns, limits->retention_ns));
        rc = bh_sql_run(&use, err);
    }
    return rc;
}

static bh_rc
series_prune_all(struct bh_sql *sql, const struct bh_series_limits *limits, struct bh_err *err)
{
    uint64_t oldest = limits->now_ns > limits->retention_ns ? limits->now_ns - limits->retention_ns : 0;
    bh_rc rc = bh_sql_exec(sql, "BEGIN IMMEDIATE", err);

    if (rc == BH_OK)
        rc = series_drop_old_blocks(sql, limits, err);
    if (rc == BH_OK)
        rc = series_drop_found(sql, BH_SQL_SERIES_LIST_OLD, oldest, err);
    if (rc == BH_OK)
        rc = series_drop_found(sql, BH_SQL_SERIES_LIST_CROWDED, limits->tenant_jobs_max, err);
    if (rc == BH_OK)
        rc = series_drop_found(sql, BH_SQL_SERIES_LIST_EXCESS, limits->jobs_max, err);
    return rc == BH_OK ? bh_sql_exec(sql, "COMMIT", err) : rc;
}

static bh_rc
series_prune(void *self, const struct bh_series_limits *limits, struct bh_err *err)
{
    struct series *series = self;
    bh_rc rc = series_prune_all(series->writer, limits, err);

    series_roll_back(series->writer);
    return rc;
}

/* ---- reading ---- */

/* Who asks, for what. */
struct series_reading {
    const struct bh_series_query *query;
    bh_series_sink sink;
    void *self;
};

/* False: the sink has enough. */
static bool
series_give_block(const struct series_reading *reading, uint64_t block, const uint8_t bytes[BH_BLOCK_BYTES])
{
    const struct bh_series_query *query = reading->query;

    for (uint64_t interval = block * BH_BLOCK_POINTS; interval < (block + 1) * BH_BLOCK_POINTS; interval++) {
        struct bh_point point;

        bh_block_get(bytes, interval, &point);
        if (point.count > 0 && interval >= query->first && interval <= query->last
            && !reading->sink(reading->self, interval, &point))
            return false;
    }
    return true;
}

static bh_rc
series_read_blocks(struct bh_sql *sql, const struct series_reading *reading, const struct series_found *found,
                   struct bh_err *err)
{
    const struct bh_series_query *query = reading->query;
    uint64_t series = found->id * BH_SERIES_A_KIND_MAX + bh_series_position(query->row);
    uint64_t block = bh_series_interval(query->resolution, found->moments[0]) / BH_BLOCK_POINTS;
    bh_rc rc = BH_OK;

    /* Nothing is older than the object, whatever is asked for. */
    if (block < query->first / BH_BLOCK_POINTS)
        block = query->first / BH_BLOCK_POINTS;
    for (; block <= query->last / BH_BLOCK_POINTS; block++) {
        const uint64_t key[3] = { query->resolution, block, series };
        uint8_t bytes[BH_BLOCK_BYTES];

        rc = series_read_block(sql, key, bytes, err);
        if (rc != BH_OK || !series_give_block(reading, block, bytes))
            return rc;
    }
    return rc;
}

static bh_rc
series_read(void *self, const struct bh_series_query *query, bh_series_sink sink, void *sink_self,
            struct bh_err *err)
{
    struct series *series = self;
    struct series_found found;
    bh_rc rc;

    BH_ASSERT(bh_series_rows[query->row].kind == query->object.kind);
    bh_mutex_lock(&series->mutex);
    rc = series_find_object(series->reader, &query->object, &found, err);
    if (rc == BH_OK && found.id && !found.foreign)
        rc = series_read_blocks(series->reader, &(struct series_reading){ query, sink, sink_self }, &found,
                                err);
    bh_mutex_unlock(&series->mutex);
    return rc;
}

/* ---- opening ---- */

bh_rc
bh_store_series_open(const char *path, const char *log, struct bh_series_store *ret_store, bool *ret_emptied,
                     struct bh_err *err)
{
    static const struct bh_series_store_ops ops = { series_store_write, series_prune, series_read,
                                                    series_close };
    const struct bh_sql_options reading = { SQLITE_OPEN_READONLY, CACHE_KIB };
    BH_AUTO(bh_sql_close) struct bh_sql *writer = NULL;
    struct series *series;
    struct bh_sql *reader;
    bh_rc rc = series_check_files(path, err);

    if (rc == BH_OK)
        rc = series_open_usable(path, log, &writer, ret_emptied, err);
    if (rc == BH_OK)
        rc = bh_sql_open(path, &reading, &reader, err);
    if (rc != BH_OK)
        return rc;
    series = calloc(1, sizeof *series);
    BH_ASSERT(series);
    series->writer = bh_steal(&writer);
    series->reader = reader;
    bh_mutex_init(&series->mutex, BH_LOCK_SERIES);
    *ret_store = (struct bh_series_store){ &ops, series };
    return BH_OK;
}
