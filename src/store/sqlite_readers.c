#include "store/sqlite_internal.h"

enum { READER_CACHE_KIB = 256 };

/* Of what the writer writes: not of what was put in its place. */
static bh_rc
open_reader(struct bh_sqlite *store, struct bh_sql **ret_reader, struct bh_err *err)
{
    const struct bh_sql_options options = { SQLITE_OPEN_READONLY, READER_CACHE_KIB };
    bh_rc rc = bh_sqlite_check_files(store, err);

    if (rc != BH_OK)
        return err->rc = BH_UNAVAILABLE;
    return bh_sql_open(store->path, &options, ret_reader, err);
}

bh_rc
bh_sqlite_acquire(struct bh_sqlite *store, struct bh_sql **ret_reader, struct bh_err *err)
{
    struct bh_sql *reader = NULL;
    bh_rc rc = BH_OK;

    bh_mutex_lock(&store->mutex);
    while (store->idle_count == 0 && store->open_count == BH_STORE_READERS_MAX)
        bh_condition_wait(&store->freed, &store->mutex);
    if (store->idle_count > 0)
        reader = store->idle[--store->idle_count];
    else
        store->open_count++;
    bh_mutex_unlock(&store->mutex);

    if (!reader)
        rc = open_reader(store, &reader, err);
    if (rc == BH_OK) {
        *ret_reader = reader;
        return BH_OK;
    }
    bh_mutex_lock(&store->mutex);
    store->open_count--;
    bh_condition_signal(&store->freed);
    bh_mutex_unlock(&store->mutex);
    return rc;
}

void
bh_sqlite_release(struct bh_sqlite *store, struct bh_sql *reader)
{
    bh_mutex_lock(&store->mutex);
    store->idle[store->idle_count++] = reader;
    bh_condition_signal(&store->freed);
    bh_mutex_unlock(&store->mutex);
}
