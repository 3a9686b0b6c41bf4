#include "store/sqlite.h"

#include "store/sqlite_internal.h"

/* Copying the log into the database takes writes and two flushes.  A separate thread does it while commits
 * continue.  The log starts over only once all of it was copied, so in the end a commit must copy what the
 * thread has not yet: little, because the thread comes more often towards the end. */
enum {
    THREAD_PAGES = 1000,  /* the thread copies each time that the log has grown by this */
    FINAL_PAGES = 4000,   /* from here on it copies */
    CATCH_UP_PAGES = 100, /* each time that the log has grown by this */
    COMMIT_PAGES = 5000,  /* from here on commits copy, too */
    CHECKPOINTER_CACHE_KIB = 64
};

static bool
wait_for_work(struct bh_sqlite_checkpointer *checkpointer)
{
    bool stop;

    bh_mutex_lock(&checkpointer->mutex);
    while (!checkpointer->wanted && !checkpointer->stop)
        bh_condition_wait(&checkpointer->wake, &checkpointer->mutex);
    checkpointer->wanted = false;
    stop = checkpointer->stop;
    bh_mutex_unlock(&checkpointer->mutex);
    return !stop;
}

/* A failed copy loses nothing: the log stays, and grows until one succeeds. */
static void *
copy_when_asked(void *self)
{
    struct bh_sqlite_checkpointer *checkpointer = self;

    while (wait_for_work(checkpointer))
        sqlite3_wal_checkpoint_v2(checkpointer->sql->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return NULL;
}

/* SQLite calls this after each commit, on the owner thread. */
static int
after_commit(void *self, sqlite3 *db, const char *name, int pages)
{
    struct bh_sqlite_checkpointer *checkpointer = self;

    if (pages < checkpointer->asked_at)
        checkpointer->asked_at = 0; /* the log has started over */
    if (pages - checkpointer->asked_at >= (pages < FINAL_PAGES ? THREAD_PAGES : CATCH_UP_PAGES)) {
        checkpointer->asked_at = pages;
        bh_mutex_lock(&checkpointer->mutex);
        checkpointer->wanted = true;
        bh_condition_signal(&checkpointer->wake);
        bh_mutex_unlock(&checkpointer->mutex);
    }
    if (pages >= COMMIT_PAGES)
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

bh_rc
bh_sqlite_checkpointer_start(struct bh_sqlite *store, struct bh_err *err)
{
    const struct bh_sql_options options = { SQLITE_OPEN_READWRITE, CHECKPOINTER_CACHE_KIB };
    struct bh_sqlite_checkpointer *checkpointer = &store->checkpointer;
    bh_rc rc = bh_sql_open(store->path, &options, &checkpointer->sql, err);

    if (rc != BH_OK)
        return rc;
    /* A connection learns that the database has a log when it first reads. */
    rc = bh_sql_exec(checkpointer->sql, "PRAGMA synchronous = FULL; SELECT 1 FROM meta LIMIT 1", err);
    if (rc != BH_OK)
        return rc;
    bh_mutex_init(&checkpointer->mutex, BH_LOCK_CHECKPOINT);
    bh_condition_init(&checkpointer->wake);
    if (pthread_create(&checkpointer->thread, NULL, copy_when_asked, checkpointer) != 0)
        return bh_err_set(err, BH_IO, "cannot start a thread for the store");
    checkpointer->started = true;
    sqlite3_wal_hook(store->writer->db, after_commit, checkpointer);
    return BH_OK;
}

void
bh_sqlite_checkpointer_stop(struct bh_sqlite *store)
{
    struct bh_sqlite_checkpointer *checkpointer = &store->checkpointer;

    if (checkpointer->started) {
        sqlite3_wal_hook(store->writer->db, NULL, NULL);
        bh_mutex_lock(&checkpointer->mutex);
        checkpointer->stop = true;
        bh_condition_signal(&checkpointer->wake);
        bh_mutex_unlock(&checkpointer->mutex);
        pthread_join(checkpointer->thread, NULL);
        bh_condition_fini(&checkpointer->wake);
        bh_mutex_fini(&checkpointer->mutex);
    }
    if (checkpointer->sql)
        bh_sql_close(checkpointer->sql);
    checkpointer->sql = NULL;
}
