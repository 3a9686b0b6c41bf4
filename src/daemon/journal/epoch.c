#include "daemon/journal/epoch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "wire/message.h"

enum { LINE_MAX_BYTES = 96, FILE_BYTES_MAX = BH_EPOCHS_MAX * LINE_MAX_BYTES + 1 };

/* ---- the file: a line "ID JOB ORDER LEASE PARTITION" for each ---- */

static bh_rc
epoch_parse(struct bh_epochs *epochs, const char *text, struct bh_err *err)
{
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        struct bh_epoch *epoch = &epochs->items[epochs->count];

        if (epochs->count == BH_EPOCHS_MAX || !strchr(line, '\n')
            || sscanf(line, "%" SCNx32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &epoch->id,
                      &epoch->job, &epoch->order, &epoch->lease, &epoch->partition)
                   != 5
            || epoch->id == 0) {
            bh_err_set(err, BH_INVALID, "line %u of epochs is damaged", epochs->count + 1);
            return bh_err_hint(err, "put back the file epochs of the state folder; moved away, "
                                    "it is made anew, and every job that runs is ended and queued again");
        }
        epochs->count++;
    }
    return BH_OK;
}

static bh_rc
epoch_load(struct bh_epochs *epochs, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = FILE_BYTES_MAX };
    bh_rc rc = bh_file_read(epochs->path, FILE_BYTES_MAX - 1, &text, err);

    if (rc != BH_OK)
        return rc == BH_NOT_FOUND ? BH_OK : rc;
    return text.length > 0 ? epoch_parse(epochs, bh_buf_text(&text), err) : BH_OK;
}

static bh_rc
epoch_save(const struct bh_epochs *epochs, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = FILE_BYTES_MAX };

    for (uint32_t i = 0; i < epochs->count; i++) {
        const struct bh_epoch *epoch = &epochs->items[i];

        bh_buf_printf(&text, "%08" PRIx32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", epoch->id,
                      epoch->job, epoch->order, epoch->lease, epoch->partition);
    }
    return text.overflow ? bh_err_set(err, BH_BUG, "epochs is too long")
                         : bh_file_replace(epochs->path, text.bytes, text.length, 0600, err);
}

/* ---- epochs ---- */

static bool
begins_at(const struct bh_epoch *epoch, const struct bh_epoch *next)
{
    return epoch->job == next->job && epoch->order == next->order && epoch->lease == next->lease
           && epoch->partition == next->partition;
}

static bool
begins_behind(const struct bh_epoch *epoch, const struct bh_epoch *next)
{
    return epoch->job > next->job || epoch->order > next->order || epoch->lease > next->lease
           || epoch->partition > next->partition;
}

bh_rc
bh_epochs_open(struct bh_epochs *epochs, const char *folder, const struct bh_epoch *next,
               const struct bh_crypto_ops *crypto, struct bh_err *err)
{
    struct bh_epoch *last;
    bh_rc rc;

    snprintf(epochs->path, sizeof epochs->path, "%s/epochs", folder);
    epochs->count = 0;
    epochs->unkept = false;
    rc = epoch_load(epochs, err);
    if (rc != BH_OK)
        return rc;
    if (epochs->count == 0 && (next->job > 1 || next->lease > 1))
        bh_log(EPOCHS_GONE, BH_STR("path", epochs->path),
               BH_STR("next", "put the file back before the next start, if it still exists"));
    while (epochs->count > 0
           && (begins_behind(&epochs->items[epochs->count - 1], next)
               || begins_at(&epochs->items[epochs->count - 1], next)))
        epochs->count--;
    if (epochs->count == BH_EPOCHS_MAX)
        memmove(epochs->items, epochs->items + 1, --epochs->count * sizeof epochs->items[0]);
    last = &epochs->items[epochs->count++];
    *last = *next;
    do
        rc = crypto->random(&last->id, sizeof last->id, err);
    while (rc == BH_OK && last->id == 0);
    if (rc != BH_OK)
        return rc;
    epochs->unkept = true;
    rc = bh_epochs_keep(epochs, err);
    return rc == BH_FULL ? BH_OK : rc;
}

bh_rc
bh_epochs_keep(struct bh_epochs *epochs, struct bh_err *err)
{
    bh_rc rc = epochs->unkept ? epoch_save(epochs, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    epochs->unkept = false;
    return BH_OK;
}

uint32_t
bh_epochs_of_job(const struct bh_epochs *epochs, uint64_t job)
{
    uint32_t at = epochs->count;

    while (at > 0 && epochs->items[at - 1].job > job)
        at--;
    return at > 0 ? epochs->items[at - 1].id : 0;
}

uint32_t
bh_epochs_list(const struct bh_epochs *epochs, struct bh_msg_epoch *ret_items, uint32_t max)
{
    uint32_t count = epochs->count < max ? epochs->count : max;
    const struct bh_epoch *from = epochs->items + epochs->count - count;

    for (uint32_t i = 0; i < count; i++)
        ret_items[i] =
            (struct bh_msg_epoch){ from[i].id, from[i].job, from[i].order, from[i].lease, from[i].partition };
    return count;
}
