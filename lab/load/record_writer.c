#include "lab/load/record_writer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/state/codec.h"
#include "audit/merkle.h"
#include "audit/record.h"
#include "base/assert.h"
#include "crypto/openssl.h"

struct bh_record_writer {
    char event[BH_RECORD_BYTES_MAX + 1], decisions[BH_RECORD_BYTES_MAX + 1];
    char leaf[BH_RECORD_BYTES_MAX + 1];
    struct bh_merkle_frontier frontier;
    uint64_t bytes;
};

struct bh_record_writer *
bh_record_writer_new(void)
{
    struct bh_record_writer *writer = calloc(1, sizeof *writer);

    BH_ASSERT(writer);
    return writer;
}

void
bh_record_writer_free(struct bh_record_writer *writer)
{
    free(writer);
}

static bh_rc
too_long(const struct bh_event *event, struct bh_err *err)
{
    return bh_err_set(err, BH_BUG, "record %" PRIu64 " is too long", event->seq);
}

bh_rc
bh_record_writer_write(struct bh_record_writer *writer, const struct bh_event *event,
                       const struct bh_step *step, struct bh_err *err)
{
    struct bh_record record = { .boot = 1,
                                .phase = BH_PHASE_EVENT,
                                .res = "ok",
                                .seq = event->seq,
                                .ts_ns = event->now_ns,
                                .verb = bh_event_names[event->kind] };
    struct bh_buf text, decisions, leaf;
    uint8_t hash[32];

    bh_buf_init_fixed(&text, writer->event, sizeof writer->event);
    bh_codec_put_event(&text, event);
    record.ev_json = bh_buf_text(&text);
    bh_buf_init_fixed(&decisions, writer->decisions, sizeof writer->decisions);
    bh_codec_put_decisions(&decisions, step->decisions, step->decision_count);
    if (step->decision_count > 0)
        record.do_json = bh_buf_text(&decisions);
    if (text.overflow || decisions.overflow)
        return too_long(event, err);
    bh_buf_init_fixed(&leaf, writer->leaf, sizeof writer->leaf);
    bh_record_encode(&leaf, &record);
    if (leaf.overflow)
        return too_long(event, err);
    bh_merkle_leaf(&bh_crypto_openssl, leaf.bytes, leaf.length, hash);
    bh_merkle_frontier_add(&writer->frontier, &bh_crypto_openssl, hash);
    writer->bytes += leaf.length;
    return BH_OK;
}

uint64_t
bh_record_writer_bytes(const struct bh_record_writer *writer)
{
    return writer->bytes;
}
