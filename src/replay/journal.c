#include "replay/journal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/state/codec.h"
#include "api/state/state.h"
#include "audit/bound.h"
#include "audit/record.h"
#include "audit/token_facts.h"
#include "base/assert.h"
#include "replay/suppose.h"
#include "store/sqlite.h"

struct journal_reader {
    struct bh_state state;
    struct bh_arena *arena;
    struct bh_decision *decisions;
    struct bh_step *step;
    char *scratch;
    FILE *out;
    uint64_t until;
    uint64_t records, events, snapshots, mismatches;
    bh_rc rc;
    struct bh_err *err;
};

static bh_rc
journal_apply_event(struct journal_reader *reader, const struct bh_record *record)
{
    struct bh_event event;
    uint32_t count = 0;
    bh_rc rc = bh_codec_get_event(record->ev_json, &event, reader->arena, reader->err);

    if (rc != BH_OK)
        return rc;
    if (record->do_json)
        rc = bh_codec_get_decisions(record->do_json, reader->decisions, &count, reader->arena, reader->err);
    if (rc != BH_OK)
        return rc;
    event.now_ns = record->ts_ns;
    event.seq = record->seq;
    rc = bh_state_replay(&reader->state, &event, reader->decisions, count, reader->step);
    if (rc != BH_OK)
        return bh_err_set(reader->err, BH_CONFLICT, "%s does not apply to the state (%s)", record->verb,
                          bh_reason_names[reader->step->verdict.code]);
    reader->events++;
    return BH_OK;
}

static void
journal_put_digest(FILE *out, const char *before, const uint8_t digest[32])
{
    fputs(before, out);
    for (int i = 0; i < 32; i++)
        fprintf(out, "%02x", digest[i]);
    fputc('\n', out);
}

/* A digest that differs is printed and counted; reading continues. */
static void
journal_compare_snapshot(struct journal_reader *reader, const struct bh_record *record)
{
    char type[BH_SNAPSHOT_TYPE_SIZE];
    uint8_t digest[32];

    bh_state_snapshot_type(type);
    if (strcmp(record->obj.type, type) != 0) {
        fprintf(reader->out, "snapshot %" PRIu64 " has a different layout: not compared\n", record->seq);
        return;
    }
    reader->snapshots++;
    bh_state_digest(&reader->state, &bh_crypto_openssl, digest);
    if (memcmp(digest, record->text, sizeof digest) == 0) {
        fprintf(reader->out, "snapshot %" PRIu64 " matches\n", record->seq);
        return;
    }
    reader->mismatches++;
    fprintf(reader->out, "snapshot %" PRIu64 " differs\n", record->seq);
    journal_put_digest(reader->out, "  recorded ", record->text);
    journal_put_digest(reader->out, "  replayed ", digest);
}

static bool
journal_see_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct journal_reader *reader = self;
    struct bh_record record;

    if (seq > reader->until)
        return false;
    bh_arena_reset(reader->arena);
    reader->rc = bh_record_decode(leaf, length, reader->scratch, &record, reader->err);
    if (reader->rc == BH_OK && record.seq != reader->records)
        reader->rc = bh_err_set(reader->err, BH_CONFLICT, "record %" PRIu64 " is missing%s", reader->records,
                                reader->records == 0 ? ": the log was pruned" : "");
    if (reader->rc == BH_OK && record.ev_json && !bh_token_facts_is(record.ev_json)
        && !bh_bound_is(record.ev_json))
        reader->rc = journal_apply_event(reader, &record);
    else if (reader->rc == BH_OK && strcmp(record.verb, "snapshot") == 0)
        journal_compare_snapshot(reader, &record);
    if (reader->rc != BH_OK)
        bh_err_wrap(reader->err, "record %" PRIu64, seq);
    reader->records += reader->rc == BH_OK;
    return reader->rc == BH_OK;
}

static bh_rc
journal_report(struct journal_reader *reader, struct bh_err *err)
{
    uint8_t digest[32];
    char broken[200] = "";

    bh_state_digest(&reader->state, &bh_crypto_openssl, digest);
    fprintf(reader->out, "records   %" PRIu64 "\nevents    %" PRIu64 "\n", reader->records, reader->events);
    fprintf(reader->out, "snapshots %" PRIu64 ", %" PRIu64 " matched\n", reader->snapshots,
            reader->snapshots - reader->mismatches);
    journal_put_digest(reader->out, "digest    ", digest);
    if (!bh_engine_check(reader->state.engine, broken, sizeof broken))
        return bh_err_set(err, BH_CONFLICT, "the state in the end breaks an invariant: %s", broken);
    if (reader->mismatches)
        return bh_err_set(err, BH_CONFLICT, "%" PRIu64 " snapshots have another digest", reader->mismatches);
    return BH_OK;
}

bh_rc
bh_journal_replay(const char *path, const struct bh_journal_options *options, FILE *out, struct bh_err *err)
{
    struct bh_store store;
    struct journal_reader reader = { .until = options ? options->until : UINT64_MAX, .out = out, .err = err };
    bh_rc rc = bh_store_sqlite_open(path, BH_STORE_READ, &bh_crypto_openssl, &store, err);

    if (rc != BH_OK)
        return rc;
    bh_state_init(&reader.state);
    reader.arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    reader.decisions = calloc(BH_DECISIONS_MAX, sizeof *reader.decisions);
    reader.step = calloc(1, sizeof *reader.step);
    reader.scratch = malloc(BH_RECORD_BYTES_MAX + 64);
    BH_ASSERT(reader.decisions && reader.step && reader.scratch);
    rc = store.ops->list_records(store.self, 0, INT64_MAX, journal_see_record, &reader, err);
    if (rc == BH_OK)
        rc = reader.rc;
    if (rc == BH_OK)
        rc = journal_report(&reader, err);
    if (rc == BH_OK && options && options->whatif)
        rc = bh_suppose(&store, reader.state.engine, options->whatif, out, err);
    free(reader.scratch);
    free(reader.step);
    free(reader.decisions);
    bh_arena_free(reader.arena);
    bh_state_fini(&reader.state);
    store.ops->close(store.self);
    return rc;
}
