#include "daemon/owner/forecaster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/vec.h"
#include "daemon/batch/step.h"

enum { FILE_BYTES_MAX = 64 << 20, ROWS_MAX = 1 << 30 };

struct bh_forecaster {
    struct bh_core *core;
    struct bh_forecast_series series;
    uint64_t next_ns;
    uint64_t saved_slot;
};

/* The file: this head, its rows, then the digest of both. */
#define MAGIC 0x31656573726f4642ull /* "BForsee1" */
struct forecaster_head {
    uint64_t magic, slot_ns;
    uint32_t count, row_bytes;
};
enum { DIGEST_BYTES = 32 };

static void
forecaster_path_of(const struct bh_forecaster *forecaster, char ret_path[4096])
{
    snprintf(ret_path, 4096, "%s/forecast.bin", forecaster->core->config->state_dir);
}

static void
forecaster_reserve(struct bh_forecast_series *series, uint32_t rows)
{
    bool fits = rows == 0 || bh_vec_reserve(&series->rows, &series->max, rows, ROWS_MAX);

    BH_ASSERT(fits);
}

/* ---- the file ---- */

static bool
forecaster_is_whole(const struct bh_forecaster *forecaster, const struct bh_buf *file,
                    struct forecaster_head *ret_head)
{
    uint8_t digest[DIGEST_BYTES];
    size_t length;

    if (file->length < sizeof *ret_head + DIGEST_BYTES)
        return false;
    length = file->length - DIGEST_BYTES;
    memcpy(ret_head, file->bytes, sizeof *ret_head);
    forecaster->core->crypto->sha256(file->bytes, length, "", 0, digest);
    return memcmp(digest, (const char *)file->bytes + length, DIGEST_BYTES) == 0 && ret_head->magic == MAGIC
           && ret_head->row_bytes == sizeof(struct bh_forecast_row)
           && (length - sizeof *ret_head) / sizeof(struct bh_forecast_row) == ret_head->count
           && (length - sizeof *ret_head) % sizeof(struct bh_forecast_row) == 0;
}

static bool
forecaster_in_order(const struct bh_forecast_row *a, const struct bh_forecast_row *b)
{
    return a->of < b->of || (a->of == b->of && a->id < b->id);
}

/* Series of another slot length are left: they count something else. */
static bh_rc
forecaster_adopt(struct bh_forecaster *forecaster, const struct bh_buf *file, struct bh_err *err)
{
    struct bh_forecast_series *series = &forecaster->series;
    struct forecaster_head head;

    if (!forecaster_is_whole(forecaster, file, &head))
        return bh_err_set(err, BH_INVALID, "forecast.bin is damaged or of another version");
    if (head.slot_ns != series->slot_ns)
        return bh_err_set(err, BH_INVALID, "forecast.bin has slots of another length");
    forecaster_reserve(series, head.count);
    memcpy(series->rows, (const char *)file->bytes + sizeof head, head.count * sizeof *series->rows);
    for (uint32_t i = 0; i < head.count; i++) {
        const struct bh_forecast_row *row = &series->rows[i];

        if (!bh_forecast_row_is_valid(row, series->slot_ns) || (i > 0 && !forecaster_in_order(row - 1, row)))
            return bh_err_set(err, BH_INVALID, "forecast.bin: row %u is no series", i);
        if (row->series.slot > series->slot)
            series->slot = row->series.slot;
    }
    series->count = head.count;
    return BH_OK;
}

static void
forecaster_load(struct bh_forecaster *forecaster)
{
    BH_AUTO(bh_buf_fini) struct bh_buf file = { .max = FILE_BYTES_MAX };
    struct bh_err err;
    char path[4096];
    bh_rc rc;

    forecaster_path_of(forecaster, path);
    rc = bh_file_read(path, FILE_BYTES_MAX, &file, &err);
    if (rc == BH_OK)
        rc = forecaster_adopt(forecaster, &file, &err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        bh_log(FORECAST_REFUSED, BH_ERRLOG(&err));
    if (rc != BH_OK)
        forecaster->series.slot = 0;
}

static void
forecaster_save(struct bh_forecaster *forecaster)
{
    const struct bh_forecast_series *series = &forecaster->series;
    struct forecaster_head head = { MAGIC, series->slot_ns, series->count, sizeof *series->rows };
    size_t rows_bytes = series->count * sizeof *series->rows;
    uint8_t digest[DIGEST_BYTES];
    BH_AUTO(bh_buf_fini) struct bh_buf file = { .max = FILE_BYTES_MAX };
    struct bh_err err;
    char path[4096];

    forecaster->saved_slot = series->slot;
    forecaster_path_of(forecaster, path);
    bh_buf_put(&file, &head, sizeof head);
    bh_buf_put(&file, series->rows, rows_bytes);
    forecaster->core->crypto->sha256(file.bytes, file.length, "", 0, digest);
    bh_buf_put(&file, digest, sizeof digest);
    if (file.overflow)
        bh_err_set(&err, BH_FULL, "more than %d bytes of series", FILE_BYTES_MAX);
    if (file.overflow || bh_file_replace(path, file.bytes, file.length, 0600, &err) != BH_OK)
        bh_log(FORECAST_NOT_KEPT, BH_ERRLOG(&err));
}

/* ---- looking ---- */

struct bh_forecaster *
bh_forecaster_open(struct bh_core *core)
{
    struct bh_forecaster *forecaster = calloc(1, sizeof *forecaster);

    BH_ASSERT(forecaster);
    forecaster->core = core;
    forecaster->series.slot_ns = core->config->forecast_slot;
    forecaster_reserve(&forecaster->series, 1);
    forecaster_load(forecaster);
    forecaster->saved_slot = forecaster->series.slot;
    return forecaster;
}

void
bh_forecaster_close(struct bh_forecaster *forecaster)
{
    if (!forecaster)
        return;
    if (forecaster->series.count > 0)
        forecaster_save(forecaster);
    free(forecaster->series.rows);
    free(forecaster);
}

uint64_t
bh_forecaster_next_ns(const struct bh_forecaster *forecaster)
{
    return forecaster->next_ns;
}

const struct bh_forecast_series *
bh_forecaster_series(const struct bh_forecaster *forecaster)
{
    return &forecaster->series;
}

static bh_rc
forecaster_notify(struct bh_forecaster *forecaster, struct bh_err *err)
{
    static const char *const nouns[BH_ADVICE_OFS] = { "tenant", "node", "pieces" };
    struct bh_core *core = forecaster->core;
    struct bh_event event;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_forecast_series_next(&forecaster->series, core->state.engine, &cursor, &event)) {
        const struct bh_ev_advice *advice = &event.u.advice;
        uint32_t ids[BH_ADVICE_OFS] = { advice->tenant.v, advice->node.v, advice->profile };
        struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "outlook", .tenant = advice->tenant.v };

        snprintf(entry.obj.type, sizeof entry.obj.type, "%s", nouns[advice->of]);
        entry.obj.id = ids[advice->of];
        rc = bh_core_step(core, &entry, &event, err);
    }
    return rc;
}

bh_rc
bh_forecaster_update(struct bh_forecaster *forecaster, struct bh_err *err)
{
    struct bh_forecast_series *series = &forecaster->series;
    const struct bh_engine *engine = forecaster->core->state.engine;
    uint64_t now_ns = bh_core_now(forecaster->core);

    if (now_ns < forecaster->next_ns && !forecaster->core->catalog_changed)
        return BH_OK;
    forecaster->next_ns = now_ns + series->slot_ns / BH_FORECAST_SAMPLES;
    forecaster_reserve(series, series->count + bh_forecast_series_needed(engine));
    bh_forecast_series_observe(series, engine, now_ns);
    if (series->slot != forecaster->saved_slot)
        forecaster_save(forecaster);
    return forecaster_notify(forecaster, err);
}
