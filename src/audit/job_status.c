#include "audit/job_status.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"

static void
put_word(struct bh_buf *list, const char *opening, const char *word)
{
    bh_buf_puts(list, opening);
    bh_buf_puts(list, word);
    bh_buf_putc(list, '"');
}

static void
put_time(struct bh_buf *list, const char *opening, uint64_t time_ns)
{
    bh_buf_puts(list, opening);
    bh_buf_put_u64(list, time_ns);
    bh_buf_putc(list, '"');
}

void
bh_job_status_put(struct bh_buf *list, const struct bh_job_status *state)
{
    bool first = list->length == 0 || list->bytes[list->length - 1] == '[';

    BH_ASSERT(state->state[0]);
    bh_buf_puts(list, first ? "{" : ",{");
    if (state->ended_ns) {
        put_word(list, "\"cause\":\"", state->cause);
        put_time(list, ",\"ended\":\"", state->ended_ns);
        bh_buf_putc(list, ',');
    }
    bh_buf_puts(list, "\"job\":");
    bh_json_put_u64(list, state->job);
    if (state->started_ns && !state->ended_ns)
        put_time(list, ",\"started\":\"", state->started_ns);
    put_word(list, ",\"state\":\"", state->state);
    if (state->exit_status) {
        bh_buf_puts(list, ",\"status\":");
        bh_buf_put_i64(list, state->exit_status);
    }
    bh_buf_putc(list, '}');
}

static bool
read_word(struct bh_slice item, const char *key, char ret[BH_JOB_STATUS_TEXT_MAX])
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
read_item(struct bh_slice item, struct bh_job_status *ret)
{
    struct bh_slice value;

    ret->started_ns = ret->ended_ns = 0;
    if (!bh_slice_get(item, "job", &value) || !bh_slice_u64(value, &ret->job))
        return false;
    if (bh_slice_get(item, "started", &value) && !bh_slice_u64(value, &ret->started_ns))
        return false;
    if (bh_slice_get(item, "ended", &value) && !bh_slice_u64(value, &ret->ended_ns))
        return false;
    return read_word(item, "cause", ret->cause) && read_word(item, "state", ret->state)
           && ret->state[0] && read_status(item, &ret->exit_status);
}

/* There is one way to write it. */
static bool
is_written_so(struct bh_slice item, const struct bh_job_status *state)
{
    char memory[BH_JOB_STATUS_ITEM_MAX];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_job_status_put(&text, state);
    return !text.overflow && text.length == item.length
           && memcmp(text.bytes, item.text, item.length) == 0;
}

bool
bh_job_status_next(struct bh_slice list, size_t *cursor, struct bh_job_status *ret)
{
    struct bh_slice item;

    return bh_slice_next_item(list, cursor, &item) && read_item(item, ret)
           && is_written_so(item, ret);
}

bool
bh_job_status_is_list(struct bh_slice list)
{
    struct bh_job_status state;
    size_t cursor = 0;
    uint32_t count = 0;

    while (bh_job_status_next(list, &cursor, &state))
        count++;
    return count > 0 && cursor == BH_SLICE_END;
}
