#include "replay/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/state/codec.h"
#include "base/assert.h"
#include "base/vec.h"

enum { RECORDS_MAX = 1 << 20, RECORD_BYTES_MAX = 1 << 20 };

struct history_record {
    uint64_t now_ns;
    char *event, *decisions;
    uint8_t digest[32];
};

struct bh_history {
    struct history_record *records; /* numbered from 1 */
    uint32_t count, capacity;
};

struct bh_history *
bh_history_new(void)
{
    struct bh_history *history = calloc(1, sizeof *history);

    BH_ASSERT(history);
    return history;
}

void
bh_history_free(struct bh_history *history)
{
    if (!history)
        return;
    for (uint32_t i = 0; i < history->count; i++) {
        free(history->records[i].event);
        free(history->records[i].decisions);
    }
    free(history->records);
    free(history);
}

uint32_t
bh_history_count(const struct bh_history *history)
{
    return history->count;
}

/* The buffer's text as memory of its own. */
static char *
history_keep(struct bh_buf *json)
{
    const char *text = bh_buf_text(json);
    char *copy;

    BH_ASSERT(text);
    copy = strdup(text);
    BH_ASSERT(copy);
    bh_buf_clear(json);
    return copy;
}

bh_rc
bh_history_add(struct bh_history *history, const struct bh_event *event, const struct bh_step *step,
               const struct bh_state *state, struct bh_err *err)
{
    struct history_record *record;
    struct bh_buf json;

    if (history->count == RECORDS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d records", RECORDS_MAX);
    if (!bh_vec_reserve(&history->records, &history->capacity, history->count + 1, RECORDS_MAX))
        BH_ASSERT(false);
    record = &history->records[history->count++];
    bh_buf_init(&json, RECORD_BYTES_MAX);
    record->now_ns = event->now_ns;
    bh_codec_put_event(&json, event);
    record->event = history_keep(&json);
    bh_codec_put_decisions(&json, step->decisions, step->decision_count);
    record->decisions = history_keep(&json);
    bh_buf_fini(&json);
    bh_state_digest(state, &bh_crypto_openssl, record->digest);
    return BH_OK;
}

struct history_reader {
    struct bh_arena *arena;
    struct bh_decision *decisions;
    struct bh_step *step;
};

static bh_rc
history_apply(const struct history_reader *reader, const struct history_record *record, uint32_t number,
              struct bh_state *state, struct bh_err *err)
{
    struct bh_event event;
    uint8_t digest[32];
    uint32_t count;
    bh_rc rc = bh_codec_get_event(record->event, &event, reader->arena, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_codec_get_decisions(record->decisions, reader->decisions, &count, reader->arena, err);
    if (rc != BH_OK)
        return rc;
    event.now_ns = record->now_ns;
    event.seq = number;
    rc = bh_state_replay(state, &event, reader->decisions, count, reader->step);
    if (rc != BH_OK)
        return bh_err_set(err, BH_BUG, "it does not apply (%s): %.100s %.60s", bh_rc_name(rc), record->event,
                          record->decisions);
    bh_state_digest(state, &bh_crypto_openssl, digest);
    if (memcmp(digest, record->digest, sizeof digest) != 0)
        return bh_err_set(err, BH_BUG, "it leads to a different state: %.100s %.60s", record->event,
                          record->decisions);
    return BH_OK;
}

bh_rc
bh_history_replay(const struct bh_history *history, struct bh_state *state, struct bh_err *err)
{
    struct history_reader reader = {
        .arena = bh_arena_new(BH_ARENA_DEFAULT_MAX),
        .decisions = calloc(BH_DECISIONS_MAX, sizeof *reader.decisions),
        .step = calloc(1, sizeof *reader.step),
    };
    bh_rc rc = BH_OK;

    BH_ASSERT(reader.decisions && reader.step);
    for (uint32_t i = 0; i < history->count && rc == BH_OK; i++) {
        bh_arena_reset(reader.arena);
        rc = history_apply(&reader, &history->records[i], i + 1, state, err);
        if (rc != BH_OK) {
            bh_err_wrap(err, "replay of record %" PRIu32, i + 1);
            err->rc = rc = BH_BUG;
        }
    }
    free(reader.step);
    free(reader.decisions);
    bh_arena_free(reader.arena);
    return rc;
}
