#include "api/state/codec.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/slice.h"
#include "engine/step/engine.h"

void
bh_codec_put_event(struct bh_buf *out, const struct bh_event *event)
{
    const struct bh_fields *fields = bh_event_fields(event->kind);

    bh_buf_putc(out, '{');
    bh_json_put_str(out, bh_event_names[event->kind]);
    bh_buf_putc(out, ':');
    if (fields)
        bh_json_encode(out, fields, &event->u);
    else
        bh_buf_puts(out, "{}");
    bh_buf_putc(out, '}');
}

void
bh_codec_put_decisions(struct bh_buf *out, const struct bh_decision *decisions, uint32_t count)
{
    bh_buf_putc(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            bh_buf_putc(out, ',');
        bh_json_encode(out, &bh_decision_fields, &decisions[i]);
    }
    bh_buf_putc(out, ']');
}

static bool
find_kind(const char *name, enum bh_event_kind *ret_kind)
{
    for (uint32_t kind = 0; kind < BH_EVENT_KINDS; kind++)
        if (strcmp(bh_event_names[kind], name) == 0) {
            *ret_kind = (enum bh_event_kind)kind;
            return true;
        }
    return false;
}

bh_rc
bh_codec_get_event(const char *json, struct bh_event *ret_event, struct bh_arena *arena, struct bh_err *err)
{
    struct bh_slice whole = { json, strlen(json) }, payload;
    const struct bh_fields *fields;
    char name[32];

    *ret_event = (struct bh_event){ 0 };
    if (!bh_slice_first_key(whole, name, sizeof name, &payload) || !find_kind(name, &ret_event->kind))
        return bh_err_set(err, BH_INVALID, "unknown engine event: %.60s", json);
    fields = bh_event_fields(ret_event->kind);
    if (!fields)
        return BH_OK;
    return bh_json_decode(payload.text, payload.length, fields, &ret_event->u, arena, err);
}

bh_rc
bh_codec_get_decisions(const char *json, struct bh_decision *ret_decisions, uint32_t *ret_count,
                       struct bh_arena *arena, struct bh_err *err)
{
    struct bh_slice whole = { json, strlen(json) }, item;
    size_t cursor = 0;
    uint32_t count = 0;

    while (bh_slice_next_item(whole, &cursor, &item)) {
        bh_rc rc;

        if (count == BH_DECISIONS_MAX)
            return bh_err_set(err, BH_INVALID, "more than %d decisions", BH_DECISIONS_MAX);
        rc = bh_json_decode(item.text, item.length, &bh_decision_fields, &ret_decisions[count], arena, err);
        if (rc != BH_OK)
            return rc;
        count++;
    }
    *ret_count = count;
    return BH_OK;
}
