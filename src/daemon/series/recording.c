#include "daemon/series/recording.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/owner/ticker.h"
#include "daemon/series/recorder.h"
#include "store/series.h"

enum { LOG_NAME_SIZE = 2 * 32 + 1 };

struct bh_recording {
    struct bh_series_store store;
    struct bh_recorder *recorder;
    struct bh_ticker *ticker;
};

static bool
recording_name_hash(void *self, uint64_t seq, const struct bh_digest *hash)
{
    char *name = self;

    for (size_t i = 0; i < sizeof hash->bytes; i++)
        snprintf(name + 2 * i, 3, "%02x", hash->bytes[i]);
    return false;
}

/* Numbers of jobs and tenants are those of a log, whose first record no other has. */
static bh_rc
recording_name_log(const struct bh_store *store, char ret_name[LOG_NAME_SIZE], struct bh_err *err)
{
    ret_name[0] = '\0';
    return store->ops->list_hashes(store->self, 0, recording_name_hash, ret_name, err);
}

static bh_rc
recording_open(const struct bh_core *core, struct bh_series_store *ret_store, struct bh_err *err)
{
    char path[4096], log[LOG_NAME_SIZE];
    bool emptied = false;
    bh_rc rc = recording_name_log(&core->store, log, err);

    if (rc != BH_OK)
        return rc;
    snprintf(path, sizeof path, "%s/series.db", core->config->state_dir);
    rc = bh_store_series_open(path, log, ret_store, &emptied, err);
    if (rc == BH_OK && emptied)
        bh_log(SERIES_EMPTIED, BH_STR("file", path));
    return rc;
}

static bh_rc
recording_begin(struct bh_recording *recording, const struct bh_core *core, const struct bh_owner *owner,
                struct bh_err *err)
{
    const struct bh_daemon_config *config = core->config;
    struct bh_recorder_options options = { .owner = *owner,
                                           .state_dir = config->state_dir,
                                           .reserve = config->disk_reserve,
                                           .retention_ns = config->series_retention,
                                           .jobs_max = config->series_jobs_max,
                                           .tenant_jobs_max = config->series_tenant_jobs_max };
    bh_rc rc = recording_open(core, &recording->store, err);

    if (rc != BH_OK)
        return rc;
    options.store = recording->store;
    recording->recorder = bh_recorder_new(&options);
    return bh_ticker_start(BH_RECORDER_TICK_S * BH_NS_PER_S, bh_recorder_tick, recording->recorder,
                           &recording->ticker, err);
}

struct bh_recording *
bh_recording_start(const struct bh_core *core, const struct bh_owner *owner)
{
    struct bh_recording *recording = calloc(1, sizeof *recording);
    struct bh_err err;

    BH_ASSERT(recording);
    if (core->config->series_retention > 0 && recording_begin(recording, core, owner, &err) != BH_OK)
        bh_log(SERIES_NOT_KEPT, BH_ERRLOG(&err));
    return recording;
}

struct bh_series_store
bh_recording_store(const struct bh_recording *recording)
{
    return recording->store;
}

void
bh_recording_stop(struct bh_recording *recording)
{
    bh_ticker_stop(recording->ticker);
    bh_recorder_free(recording->recorder);
    recording->ticker = NULL;
    recording->recorder = NULL;
}

void
bh_recording_free(struct bh_recording *recording)
{
    bh_recording_stop(recording);
    if (recording->store.ops)
        recording->store.ops->close(recording->store.self);
    free(recording);
}
