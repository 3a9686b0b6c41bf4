#include "audit/job_status.h"

#include <string.h>

#include "audit/items.h"
#include "base/assert.h"
#include "base/json.h"
#include "base/num.h"
#include "ports/crypto.h"

enum { PLACEMENT_TEXT_MAX = 4096 };

static const struct bh_field placement_rows[] = {
    BH_F(struct bh_job_placement, grade, BH_FIELD_TEXT),
    BH_F(struct bh_job_placement, lease, BH_FIELD_U64),
    BH_F(struct bh_job_placement, node, BH_FIELD_TEXT),
    BH_F_AS(struct bh_job_placement, partitions, "pieces", BH_FIELD_TEXT),
    BH_F(struct bh_job_placement, restarts, BH_FIELD_U32),
};
static const struct bh_fields placement_fields =
    BH_FIELDS("place of a job", struct bh_job_placement, placement_rows);

/* What is empty is left out. */
static const char *
status_or_none(const char *text)
{
    return text && *text ? text : NULL;
}

void
bh_job_placement_digest(const struct bh_crypto_ops *crypto, const struct bh_job_placement *place,
                        uint8_t ret_digest[32])
{
    const struct bh_job_placement written = { place->lease, place->restarts, status_or_none(place->node),
                                              status_or_none(place->partitions),
                                              status_or_none(place->grade) };
    char memory[PLACEMENT_TEXT_MAX];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_json_encode(&text, &placement_fields, &written);
    if (text.overflow)
        memset(ret_digest, 0, 32); /* a row written by hand: no record says that */
    else
        crypto->sha256(text.bytes, text.length, "", 0, ret_digest);
}

static void
status_put_word(struct bh_buf *list, const char *opening, const char *word)
{
    bh_buf_puts(list, opening);
    bh_buf_puts(list, word);
    bh_buf_putc(list, '"');
}

static void
job_status_put_time(struct bh_buf *list, const char *opening, uint64_t time_ns)
{
    bh_buf_puts(list, opening);
    bh_buf_put_u64(list, time_ns);
    bh_buf_putc(list, '"');
}

static bool
status_has_row(const struct bh_job_status *state)
{
    static const uint8_t none[sizeof state->row];

    return memcmp(state->row, none, sizeof none) != 0;
}

void
bh_job_status_put(struct bh_buf *list, const struct bh_job_status *state)
{
    BH_ASSERT(state->state[0]);
    bh_item_begin(list);
    bh_buf_putc(list, '{');
    if (state->ended_ns) {
        status_put_word(list, "\"cause\":\"", state->cause);
        job_status_put_time(list, ",\"ended\":\"", state->ended_ns);
        bh_buf_putc(list, ',');
    }
    bh_buf_puts(list, "\"job\":");
    bh_json_put_u64(list, state->job);
    if (status_has_row(state)) {
        bh_buf_puts(list, ",\"row\":\"");
        bh_buf_put_hex(list, state->row, sizeof state->row);
        bh_buf_putc(list, '"');
    }
    if (state->started_ns && !state->ended_ns)
        job_status_put_time(list, ",\"started\":\"", state->started_ns);
    status_put_word(list, ",\"state\":\"", state->state);
    if (state->exit_status) {
        bh_buf_puts(list, ",\"status\":");
        bh_buf_put_i64(list, state->exit_status);
    }
    bh_buf_putc(list, '}');
}

static bool
status_read_word(struct bh_slice item, const char *key, char ret[BH_JOB_STATUS_TEXT_MAX])
{
    struct bh_slice value;

    ret[0] = '\0';
    return !bh_slice_get(item, key, &value)
           || (bh_slice_str(value, ret, BH_JOB_STATUS_TEXT_MAX)
               && strspn(ret, "abcdefghijklmnopqrstuvwxyz_") == strlen(ret));
}

static bool
read_status(struct bh_slice item, int32_t *ret)
{
    struct bh_slice value;
    uint64_t size;
    bool below;

    *ret = 0;
    if (!bh_slice_get(item, "status", &value))
        return true;
    below = value.length > 0 && value.text[0] == '-';
    value.text += below;
    value.length -= below;
    if (!bh_slice_u64(value, &size) || size > INT32_MAX)
        return false;
    *ret = below ? -(int32_t)size : (int32_t)size;
    return true;
}

static bool
status_read_row(struct bh_slice item, uint8_t ret[32])
{
    struct bh_slice value;
    char digits[2 * 32 + 1];

    memset(ret, 0, 32);
    return !bh_slice_get(item, "row", &value)
           || (bh_slice_str(value, digits, sizeof digits) && bh_parse_hex(digits, ret, 32));
}

static bool
status_read_item(struct bh_slice item, void *self)
{
    struct bh_job_status *ret = self;
    struct bh_slice value;

    ret->started_ns = ret->ended_ns = 0;
    if (!bh_slice_get(item, "job", &value) || !bh_slice_u64(value, &ret->job))
        return false;
    if (bh_slice_get(item, "started", &value) && !bh_slice_u64(value, &ret->started_ns))
        return false;
    if (bh_slice_get(item, "ended", &value) && !bh_slice_u64(value, &ret->ended_ns))
        return false;
    return status_read_word(item, "cause", ret->cause) && status_read_word(item, "state", ret->state)
           && ret->state[0] && (ret->cause[0] || !ret->ended_ns) && status_read_row(item, ret->row)
           && read_status(item, &ret->exit_status);
}

static void
job_status_put_item(struct bh_buf *list, const void *item)
{
    bh_job_status_put(list, item);
}

static const struct bh_item_kind status_items = { status_read_item, job_status_put_item };

bool
bh_job_status_next(struct bh_slice list, size_t *cursor, struct bh_job_status *ret)
{
    return bh_items_next(&status_items, list, cursor, ret);
}

bool
bh_job_status_is_list(struct bh_slice list)
{
    struct bh_job_status state;

    return bh_items_are_list(&status_items, list, &state);
}

bool
bh_job_status_has_row(struct bh_slice list)
{
    struct bh_job_status state;
    size_t cursor = 0;

    while (bh_job_status_next(list, &cursor, &state))
        if (status_has_row(&state))
            return true;
    return false;
}
