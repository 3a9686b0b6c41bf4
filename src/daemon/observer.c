#include "daemon/observer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"

enum { FILE_BYTES_MAX = 64 << 20, ROOM_SPARE = 64 };

struct bh_observer {
    struct bh_core *core;
    struct bh_foresight foresight;
    uint64_t next_ns;
    uint64_t saved_slot;
};

/* The file: this head, its rows, then the digest of both. */
#define MAGIC 0x31656573726f4642ull /* "BForsee1" */
struct head {
    uint64_t magic, slot_ns;
    uint32_t count, row_bytes;
};
enum { DIGEST_BYTES = 32 };

static void
path_of(const struct bh_observer *observer, char ret_path[4096])
{
    snprintf(ret_path, 4096, "%s/forecast.bin", observer->core->config->state_dir);
}

static void
make_room(struct bh_foresight *foresight, uint32_t rows)
{
    if (rows <= foresight->max)
        return;
    foresight->max = rows + ROOM_SPARE;
    foresight->rows = realloc(foresight->rows, foresight->max * sizeof *foresight->rows);
    BH_ASSERT(foresight->rows);
}

/* ---- the file ---- */

static bool
is_whole(const struct bh_observer *observer, const struct bh_buf *file, struct head *ret_head)
{
    uint8_t digest[DIGEST_BYTES];
    size_t length;

    if (file->length < sizeof *ret_head + DIGEST_BYTES)
        return false;
    length = file->length - DIGEST_BYTES;
    memcpy(ret_head, file->bytes, sizeof *ret_head);
    observer->core->crypto->sha256(file->bytes, length, "", 0, digest);
    return memcmp(digest, (const char *)file->bytes + length, DIGEST_BYTES) == 0
           && ret_head->magic == MAGIC && ret_head->row_bytes == sizeof(struct bh_sight)
           && (length - sizeof *ret_head) / sizeof(struct bh_sight) == ret_head->count
           && (length - sizeof *ret_head) % sizeof(struct bh_sight) == 0;
}

static bool
in_order(const struct bh_sight *a, const struct bh_sight *b)
{
    return a->of < b->of || (a->of == b->of && a->id < b->id);
}

/* Series of another slot length are left: they count something else. */
static bh_rc
adopt(struct bh_observer *observer, const struct bh_buf *file, struct bh_err *err)
{
    struct bh_foresight *foresight = &observer->foresight;
    struct head head;

    if (!is_whole(observer, file, &head))
        return bh_err_set(err, BH_INVALID, "forecast.bin is damaged or of another version");
    if (head.slot_ns != foresight->slot_ns)
        return bh_err_set(err, BH_INVALID, "forecast.bin has slots of another length");
    make_room(foresight, head.count);
    memcpy(foresight->rows, (const char *)file->bytes + sizeof head,
           head.count * sizeof *foresight->rows);
    for (uint32_t i = 0; i < head.count; i++) {
        const struct bh_sight *row = &foresight->rows[i];

        if (!bh_sight_is_valid(row, foresight->slot_ns) || (i > 0 && !in_order(row - 1, row)))
            return bh_err_set(err, BH_INVALID, "forecast.bin: row %u is no series", i);
        if (row->series.slot > foresight->slot)
            foresight->slot = row->series.slot;
    }
    foresight->count = head.count;
    return BH_OK;
}

static void
load(struct bh_observer *observer)
{
    struct bh_buf file;
    struct bh_err err;
    char path[4096];
    bh_rc rc;

    path_of(observer, path);
    bh_buf_init(&file, FILE_BYTES_MAX);
    rc = bh_file_read(path, FILE_BYTES_MAX, &file, &err);
    if (rc == BH_OK)
        rc = adopt(observer, &file, &err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        bh_log(FORECAST_REFUSED, BH_ERRLOG(&err));
    if (rc != BH_OK)
        observer->foresight.slot = 0;
    bh_buf_fini(&file);
}

static void
save(struct bh_observer *observer)
{
    const struct bh_foresight *foresight = &observer->foresight;
    struct head head = { MAGIC, foresight->slot_ns, foresight->count, sizeof *foresight->rows };
    size_t rows_bytes = foresight->count * sizeof *foresight->rows;
    uint8_t digest[DIGEST_BYTES];
    struct bh_buf file;
    struct bh_err err;
    char path[4096];

    observer->saved_slot = foresight->slot;
    path_of(observer, path);
    bh_buf_init(&file, FILE_BYTES_MAX);
    bh_buf_put(&file, &head, sizeof head);
    bh_buf_put(&file, foresight->rows, rows_bytes);
    observer->core->crypto->sha256(file.bytes, file.length, "", 0, digest);
    bh_buf_put(&file, digest, sizeof digest);
    if (file.overflow)
        bh_err_set(&err, BH_FULL, "more than %d bytes of series", FILE_BYTES_MAX);
    if (file.overflow || bh_file_replace(path, file.bytes, file.length, 0600, &err) != BH_OK)
        bh_log(FORECAST_NOT_KEPT, BH_ERRLOG(&err));
    bh_buf_fini(&file);
}

/* ---- looking ---- */

struct bh_observer *
bh_observer_open(struct bh_core *core)
{
    struct bh_observer *observer = calloc(1, sizeof *observer);

    BH_ASSERT(observer);
    observer->core = core;
    observer->foresight.slot_ns = core->config->forecast_slot;
    make_room(&observer->foresight, 1);
    load(observer);
    observer->saved_slot = observer->foresight.slot;
    return observer;
}

void
bh_observer_close(struct bh_observer *observer)
{
    if (!observer)
        return;
    if (observer->foresight.count > 0)
        save(observer);
    free(observer->foresight.rows);
    free(observer);
}

uint64_t
bh_observer_next_ns(const struct bh_observer *observer)
{
    return observer->next_ns;
}

const struct bh_foresight *
bh_observer_foresight(const struct bh_observer *observer)
{
    return &observer->foresight;
}

static bh_rc
tell(struct bh_observer *observer, struct bh_err *err)
{
    static const char *const nouns[BH_OUTLOOKS] = { "tenant", "node", "pieces" };
    struct bh_core *core = observer->core;
    struct bh_event event;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK
           && bh_foresight_next(&observer->foresight, core->state.engine, &cursor, &event)) {
        const struct bh_ev_outlook *outlook = &event.u.outlook;
        uint32_t ids[BH_OUTLOOKS] = { outlook->tenant.v, outlook->node.v, outlook->profile };
        struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                  .dec = { .allow = true },
                                  .phase = BH_PHASE_EVENT,
                                  .verb = "outlook",
                                  .tenant = outlook->tenant.v };

        snprintf(entry.obj.type, sizeof entry.obj.type, "%s", nouns[outlook->of]);
        entry.obj.id = ids[outlook->of];
        rc = bh_core_step(core, &entry, &event, err);
    }
    return rc;
}

bh_rc
bh_observer_look(struct bh_observer *observer, struct bh_err *err)
{
    struct bh_foresight *foresight = &observer->foresight;
    const struct bh_engine *engine = observer->core->state.engine;
    uint64_t now_ns = bh_core_now(observer->core);

    if (now_ns < observer->next_ns && !observer->core->catalog_changed)
        return BH_OK;
    observer->next_ns = now_ns + foresight->slot_ns / BH_FORESIGHT_SAMPLES;
    make_room(foresight, foresight->count + bh_foresight_needed(engine));
    bh_foresight_observe(foresight, engine, now_ns);
    if (foresight->slot != observer->saved_slot)
        save(observer);
    return tell(observer, err);
}
