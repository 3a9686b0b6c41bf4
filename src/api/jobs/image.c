#include "api/jobs/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/request/facts.h"
#include "base/json.h"
#include "base/num.h"
#include "wire/message.h"

bool
bh_image_row_read(const char *hex, struct bh_image_row *ret_row)
{
    return bh_parse_hex(hex, ret_row->digest, sizeof ret_row->digest);
}

/* ---- how far it is ---- */

/* What is still to come counts: fetching is behind checking. */
static uint64_t
rank(bh_json_value item)
{
    const char *stage = bh_json_text(bh_json_get(item, "stage"), "");
    uint64_t at = strcmp(stage, bh_image_stage_names[BH_IMAGE_FETCHING]) == 0   ? 0
                  : strcmp(stage, bh_image_stage_names[BH_IMAGE_CHECKING]) == 0 ? 1
                                                                                : 2;

    return (at << 60) + (bh_json_number(bh_json_get(item, "done_bytes"), 0) >> 4);
}

/* Of several members' the one that is furthest behind. */
static void
find_slowest(bh_json_value items, uint64_t job, bh_json_value *slowest)
{
    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value item = bh_json_at(items, i);

        if (bh_json_number(bh_json_get(item, "job"), 0) == job && (!*slowest || rank(item) < rank(*slowest)))
            *slowest = item;
    }
}

void
bh_image_describe(const struct bh_call *call, uint64_t job, char ret_text[BH_IMAGE_TEXT_SIZE])
{
    BH_AUTO(bh_facts_fini) struct bh_facts facts = { 0 };
    bh_json_value item = NULL;
    uint64_t done, total;
    const char *stage;

    bh_facts_load(&call->api->options.owner, &facts);
    for (uint32_t i = 0; i < facts.node_count; i++)
        find_slowest(bh_json_get(facts.nodes[i].root, "images"), job, &item);
    *ret_text = '\0';
    if (!item)
        return;
    stage = bh_json_text(bh_json_get(item, "stage"), "");
    done = bh_json_number(bh_json_get(item, "done_bytes"), 0);
    total = bh_json_number(bh_json_get(item, "total_bytes"), 0);
    if (total > 0)
        snprintf(ret_text, BH_IMAGE_TEXT_SIZE, "%.20s %" PRIu64 " of %" PRIu64 " MiB", stage, done >> 20,
                 (total + (1 << 20) - 1) >> 20);
    else
        snprintf(ret_text, BH_IMAGE_TEXT_SIZE, "%.20s", stage);
}

/* ---- which it is ---- */

void
bh_image_fill(const struct bh_call *call, uint64_t job, bool starts, struct bh_reply_job_shown *ret)
{
    char text[BH_IMAGE_TEXT_SIZE] = "", hex[65];
    static const struct bh_image_row none;
    struct bh_image_row row;
    struct bh_err ignored;
    struct bh_buf digits;

    if (starts)
        bh_image_describe(call, job, text);
    if (*text)
        ret->image = bh_arena_strdup(call->arena, text);
    if (bh_job_document_get(&call->api->options.store, BH_DOCUMENT_IMAGE, job, &row, &ignored) != BH_OK
        || memcmp(&row, &none, sizeof row) == 0)
        return;
    bh_buf_init_fixed(&digits, hex, sizeof hex);
    bh_buf_put_hex(&digits, row.digest, sizeof row.digest);
    ret->image_digest = bh_arena_printf(call->arena, "sha256:%s", bh_buf_text(&digits));
}
