#include "cli/output/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/time.h"
#include "base/utf8.h"
#include "cli/output/table.h"

enum { PARTS = 4200, CELL_BYTES_MAX = 4096, DESCRIBE_DEPTH_MAX = 8 };

/* The member that a key with dots names, or NULL. */
static bh_json_value
view_find(bh_json_value object, const char *key)
{
    char name[64];

    while (object) {
        const char *dot = strchrnul(key, '.');
        size_t length = (size_t)(dot - key);

        if (bh_json_kind(object) != BH_JSON_OBJECT || length >= sizeof name)
            return NULL;
        memcpy(name, key, length);
        name[length] = '\0';
        object = bh_json_get(object, name);
        if (!*dot)
            return object;
        key = dot + 1;
    }
    return NULL;
}

void
bh_view_span(struct bh_buf *out, uint64_t span_ns)
{
    bh_time_put_span(out, span_ns);
}

/* What the server sends is not trusted with the terminal. */
static void
view_put_clean(struct bh_buf *out, const char *text)
{
    size_t begin = out->length;

    bh_buf_puts(out, text);
    if (bh_buf_text(out))
        bh_utf8_scrub(out->bytes + begin);
}

static void view_put_text(struct bh_buf *out, bh_json_value value);

static void
view_put_list(struct bh_buf *out, bh_json_value list)
{
    for (size_t i = 0; i < bh_json_count(list); i++) {
        if (i > 0)
            bh_buf_puts(out, ", ");
        view_put_text(out, bh_json_at(list, i));
    }
}

/* {"small":3,"large":1} as "small 3, large 1" */
static void
view_put_members(struct bh_buf *out, bh_json_value object)
{
    void *cursor = NULL;
    const char *key;
    bh_json_value value;
    bool first = true;

    while (bh_json_next(object, &cursor, &key, &value)) {
        if (!first)
            bh_buf_puts(out, ", ");
        view_put_clean(out, key);
        bh_buf_putc(out, ' ');
        view_put_text(out, value);
        first = false;
    }
}

static void
view_put_text(struct bh_buf *out, bh_json_value value)
{
    switch (bh_json_kind(value)) {
    case BH_JSON_STRING:
        view_put_clean(out, bh_json_text(value, ""));
        break;
    case BH_JSON_INTEGER:
        bh_buf_put_i64(out, bh_json_integer(value, 0));
        break;
    case BH_JSON_BOOL:
        bh_buf_puts(out, bh_json_truth(value) ? "yes" : "no");
        break;
    case BH_JSON_ARRAY:
        view_put_list(out, value);
        break;
    case BH_JSON_OBJECT:
        view_put_members(out, value);
        break;
    case BH_JSON_NULL:
        break;
    }
}

static void
view_put_time(struct bh_buf *out, bh_json_value value)
{
    uint64_t at = bh_json_number(value, 0);

    if (at > 0)
        bh_time_put_utc(out, at);
}

/* parts / 4200 with at most three decimals, exactly when it can be */
static void
view_put_parts(struct bh_buf *out, bh_json_value value)
{
    uint64_t parts = bh_json_number(value, UINT64_MAX), thousandths;
    char text[8];
    size_t length = 3;

    if (parts == UINT64_MAX)
        return;
    bh_buf_put_u64(out, parts / PARTS);
    thousandths = (parts % PARTS * 1000 + PARTS / 2) / PARTS;
    if (thousandths == 0 || thousandths > 999)
        return;
    snprintf(text, sizeof text, "%03u", (unsigned)thousandths);
    while (length > 0 && text[length - 1] == '0')
        length--;
    bh_buf_printf(out, ".%.*s", (int)length, text);
}

static void
view_put_mib(struct bh_buf *out, bh_json_value value)
{
    uint64_t mib = bh_json_number(value, 0);

    if (mib == 0)
        return;
    if (mib % 1024 == 0)
        bh_buf_printf(out, "%" PRIu64 "GiB", mib / 1024);
    else
        bh_buf_printf(out, "%" PRIu64 "MiB", mib);
}

/* A decimal number of any length as GPU-hours with three decimals. */
static void
view_put_gpu_time(struct bh_buf *out, bh_json_value value)
{
    const char *digits = bh_json_text(value, NULL);
    unsigned __int128 part_ns = digits ? 0 : bh_json_number(value, 0);
    const unsigned __int128 milli_hour = (unsigned __int128)PARTS * 3600 * 1000000;
    uint64_t thousandths;

    for (; digits && *digits >= '0' && *digits <= '9'; digits++)
        part_ns = part_ns * 10 + (unsigned)(*digits - '0');
    thousandths = (uint64_t)(part_ns / milli_hour);
    bh_buf_printf(out, "%" PRIu64 ".%03" PRIu64, thousandths / 1000, thousandths % 1000);
}

static void
view_put_runtime(struct bh_buf *out, bh_json_value job, uint64_t now_ns)
{
    uint64_t from = bh_json_number(bh_json_get(job, "started_ns"), 0);
    uint64_t to = bh_json_number(bh_json_get(job, "ended_ns"), 0);

    if (from == 0)
        return;
    if (to == 0)
        to = now_ns;
    bh_time_put_span(out, to > from ? to - from : 0);
}

static void
view_put_placement(struct bh_buf *out, bh_json_value job)
{
    const char *node = bh_json_text(bh_json_get(job, "node"), "");
    bh_json_value partitions = bh_json_get(job, "partitions");

    view_put_clean(out, node);
    if (*node && (bh_json_count(partitions) > 0 || *bh_json_text(partitions, "")))
        bh_buf_putc(out, '/');
    view_put_text(out, partitions);
}

/* Why it waits; for ended jobs how, with the exit status. */
static void
view_put_reason(struct bh_buf *out, bh_json_value job)
{
    const char *reason = bh_json_text(bh_json_get(job, "reason"), "");
    const char *cause = bh_json_text(bh_json_get(job, "cause"), "");
    int64_t status = bh_json_integer(bh_json_get(job, "exit_status"), -1);

    if (!*reason || strcmp(reason, "none") == 0)
        reason = cause;
    bh_buf_puts(out, strcmp(reason, "none") == 0 ? "" : reason);
    if (status > 0)
        bh_buf_printf(out, "(%" PRId64 ")", status);
}

/* "H100-80GB 1g.10gb, A30-24GB 1g.6gb" */
static void
view_put_models(struct bh_buf *out, bh_json_value models)
{
    for (size_t i = 0; i < bh_json_count(models); i++) {
        bh_json_value entry = bh_json_at(models, i);

        bh_buf_puts(out, i > 0 ? ", " : "");
        view_put_text(out, bh_json_get(entry, "model"));
        bh_buf_putc(out, ' ');
        view_put_text(out, bh_json_get(entry, "profile"));
    }
}

/* A dash means no bound. */
static void
view_put_bound(struct bh_buf *out, bh_json_value value)
{
    if (bh_json_kind(value) == BH_JSON_NULL)
        bh_buf_putc(out, '-');
    else
        view_put_text(out, value);
}

/* "small 2/4, H100-80GB 0.5/-" */
static void
view_put_quotas(struct bh_buf *out, bh_json_value quotas)
{
    for (size_t i = 0; i < bh_json_count(quotas); i++) {
        bh_json_value entry = bh_json_at(quotas, i), sku = bh_json_get(entry, "sku");

        bh_buf_puts(out, i > 0 ? ", " : "");
        view_put_text(out, bh_json_kind(sku) == BH_JSON_NULL ? bh_json_get(entry, "model") : sku);
        bh_buf_putc(out, ' ');
        view_put_text(out, bh_json_get(entry, "used"));
        bh_buf_putc(out, '/');
        view_put_bound(out, bh_json_get(entry, "limit"));
    }
}

/* "12.50/100.00 GPU-h, 3.10/- a month" */
static void
view_put_budget(struct bh_buf *out, bh_json_value budget)
{
    if (bh_json_kind(budget) == BH_JSON_NULL) {
        bh_buf_putc(out, '-');
        return;
    }
    view_put_text(out, bh_json_get(budget, "spent_gpu_hours"));
    bh_buf_putc(out, '/');
    view_put_bound(out, bh_json_get(budget, "gpu_hours"));
    bh_buf_puts(out, " GPU-h, ");
    view_put_text(out, bh_json_get(budget, "spent_money"));
    bh_buf_putc(out, '/');
    view_put_bound(out, bh_json_get(budget, "money"));
    bh_buf_puts(out, " a ");
    view_put_text(out, bh_json_get(budget, "period"));
}

static void
view_put_count(struct bh_buf *out, bh_json_value list)
{
    bh_buf_put_u64(out, bh_json_count(list));
}

/* "1g.10gb@0 leased acme/vision job 12, 1g.10gb@1 idle" */
static void
view_put_partitions(struct bh_buf *out, bh_json_value partitions)
{
    for (size_t i = 0; i < bh_json_count(partitions); i++) {
        bh_json_value partition = bh_json_at(partitions, i);

        bh_buf_puts(out, i > 0 ? ", " : "");
        view_put_text(out, bh_json_get(partition, "profile"));
        bh_buf_printf(out, "@%" PRIu64 " ", bh_json_number(bh_json_get(partition, "start"), 0));
        if (bh_json_get(partition, "grade"))
            bh_buf_printf(out, "grade %s ", bh_json_text(bh_json_get(partition, "grade"), ""));
        view_put_text(out, bh_json_get(partition, "state"));
        if (bh_json_get(partition, "tenant"))
            bh_buf_putc(out, ' ');
        view_put_text(out, bh_json_get(partition, "tenant"));
        if (bh_json_get(partition, "job"))
            bh_buf_printf(out, " job %" PRIu64, bh_json_number(bh_json_get(partition, "job"), 0));
    }
}

static bool
view_is_cordoned(bh_json_value gpu, const char *by)
{
    return strcmp(bh_json_text(bh_json_get(gpu, by), "no"), "no") != 0;
}

static bool
view_is_drained_by(bh_json_value gpu, const char *by)
{
    return strncmp(bh_json_text(bh_json_get(gpu, by), "no"), "drain", 5) == 0;
}

/* "cordoned"; where it was drained, "draining" while a job has a partition of it. */
static const char *
view_cordon_word(bh_json_value gpu)
{
    bh_json_value partitions = bh_json_get(gpu, "partitions");

    if (!view_is_drained_by(gpu, "cordon") && !view_is_drained_by(gpu, "node_cordon"))
        return "cordoned";
    for (size_t i = 0; i < bh_json_count(partitions); i++)
        if (strcmp(bh_json_text(bh_json_get(bh_json_at(partitions, i), "state"), ""), "leased") == 0)
            return "draining";
    return "drained";
}

static void
view_put_node_state(struct bh_buf *out, bh_json_value node)
{
    const char *isolation = bh_json_text(bh_json_get(node, "isolation"), "");

    view_put_text(out, bh_json_get(node, "state"));
    if (view_is_cordoned(node, "cordon"))
        bh_buf_puts(out, view_is_drained_by(node, "cordon") ? ", drained" : ", cordoned");
    if (bh_json_truth(bh_json_get(node, "unchecked")))
        bh_buf_puts(out, ", unchecked: jobs failed to start");
    if (bh_json_truth(bh_json_get(node, "needs_reboot")))
        bh_buf_puts(out, ", needs a reboot");
    if (strcmp(isolation, "broken") == 0 || strcmp(isolation, "unfinished") == 0)
        bh_buf_printf(out, ", isolation %s%s", isolation,
                      bh_json_get(node, "isolation_again_ns") ? " (being repeated)" : "");
    if (strcmp(isolation, "partly") == 0)
        bh_buf_printf(out, ", isolation partly (fenced GPUs: %" PRIu64 ")",
                      bh_json_number(bh_json_get(node, "isolation_gpus_fenced"), 0));
}

static void
view_put_fence(struct bh_buf *out, bh_json_value gpu)
{
    const char *why = bh_json_text(bh_json_get(gpu, "fenced_why"), "");

    bh_buf_puts(out, "fenced");
    if (!*why)
        return;
    bh_buf_puts(out, " (");
    view_put_clean(out, why);
    bh_buf_putc(out, ')');
}

static bool
view_is_well(const char *health)
{
    return strcmp(health, "ok") == 0 || strcmp(health, "watched") == 0;
}

bool
bh_view_gpu_is_open(bh_json_value gpu)
{
    return bh_json_truth(bh_json_get(gpu, "managed")) && !bh_json_truth(bh_json_get(gpu, "fenced"))
           && view_is_well(bh_json_text(bh_json_get(gpu, "health"), "ok")) && !view_is_cordoned(gpu, "cordon")
           && !view_is_cordoned(gpu, "node_cordon") && !bh_json_truth(bh_json_get(gpu, "cordoned"));
}

static void
view_put_gpu_state(struct bh_buf *out, bh_json_value gpu)
{
    const char *health = bh_json_text(bh_json_get(gpu, "health"), "ok");

    if (bh_json_truth(bh_json_get(gpu, "fenced")))
        view_put_fence(out, gpu);
    else if (!bh_json_truth(bh_json_get(gpu, "managed")))
        bh_buf_puts(out,
                    bh_json_get(gpu, "foreign_instances") ? "unmanaged (foreign instances)" : "unmanaged");
    else if (!view_is_well(health))
        view_put_clean(out, health);
    else if (view_is_cordoned(gpu, "cordon") || view_is_cordoned(gpu, "node_cordon"))
        bh_buf_puts(out, view_cordon_word(gpu));
    else
        view_put_clean(out, bh_json_truth(bh_json_get(gpu, "cordoned")) ? "cordoned" : health);
    if (bh_json_get(gpu, "fault")) {
        bh_buf_puts(out, " (");
        view_put_text(out, bh_json_get(gpu, "fault"));
        bh_buf_putc(out, ')');
    }
}

static void
view_put_forecast(struct bh_buf *out, bh_json_value bound)
{
    bh_json_value gpus = bh_json_get(bound, "gpus");

    view_put_text(out, gpus ? gpus : bh_json_get(bound, "partitions"));
    if (bound && !bh_json_truth(bh_json_get(bound, "firm")))
        bh_buf_putc(out, '?');
}

static void
view_put_hits(struct bh_buf *out, bh_json_value bound)
{
    uint64_t judged = bh_json_number(bh_json_get(bound, "judged"), 0);

    if (judged)
        bh_buf_printf(out, "%" PRIu64 "/%" PRIu64, bh_json_number(bh_json_get(bound, "kept"), 0), judged);
    else
        bh_buf_putc(out, '-');
}

static void
view_put_permille(struct bh_buf *out, bh_json_value value)
{
    uint64_t permille = bh_json_number(value, 0);

    bh_buf_printf(out, "%" PRIu64 ".%" PRIu64 "%%", permille / 10, permille % 10);
}

static void
view_put_proposal(struct bh_buf *out, bh_json_value proposal)
{
    view_put_clean(out, bh_json_text(bh_json_get(proposal, "move"), ""));
    if (bh_json_number(bh_json_get(proposal, "gpus"), 0))
        bh_buf_printf(out, " by %" PRIu64, bh_json_number(bh_json_get(proposal, "gpus"), 0));
}

static void
view_put_unverified(struct bh_buf *out, bh_json_value gpu)
{
    bh_buf_puts(out, bh_json_truth(bh_json_get(gpu, "assumed")) ? "assumed" : "confirmed");
}

/* Cells made of one member. */
static void (*const put_member[BH_CELLS])(struct bh_buf *out, bh_json_value value) = {
    [BH_CELL_TEXT] = view_put_text,         [BH_CELL_TIME] = view_put_time,
    [BH_CELL_PARTS] = view_put_parts,       [BH_CELL_MIB] = view_put_mib,
    [BH_CELL_GPU_TIME] = view_put_gpu_time, [BH_CELL_COUNT] = view_put_count,
    [BH_CELL_MODELS] = view_put_models,     [BH_CELL_QUOTAS] = view_put_quotas,
    [BH_CELL_BUDGET] = view_put_budget,     [BH_CELL_PARTITIONS] = view_put_partitions,
    [BH_CELL_BOUND] = view_put_forecast,    [BH_CELL_HITS] = view_put_hits,
    [BH_CELL_PERMILLE] = view_put_permille, [BH_CELL_PROPOSAL] = view_put_proposal,
};

/* Cells made of several members of the object. */
static void (*const put_whole[BH_CELLS])(struct bh_buf *out, bh_json_value object) = {
    [BH_CELL_PLACEMENT] = view_put_placement,   [BH_CELL_REASON] = view_put_reason,
    [BH_CELL_NODE_STATE] = view_put_node_state, [BH_CELL_GPU_STATE] = view_put_gpu_state,
    [BH_CELL_UNVERIFIED] = view_put_unverified,
};

void
bh_view_cell(struct bh_buf *out, const struct bh_column *column, bh_json_value object, uint64_t now_ns)
{
    if (column->cell == BH_CELL_RUNTIME)
        view_put_runtime(out, object, now_ns);
    else if (put_whole[column->cell])
        put_whole[column->cell](out, object);
    else
        put_member[column->cell](out, view_find(object, column->key));
}

/* The columns that are shown, in order; how many. */
static uint32_t
view_choose(const struct bh_view *view, bool wide, const struct bh_column *ret_chosen[])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < view->count && count < BH_TABLE_COLUMNS_MAX; i++)
        if (wide || !view->columns[i].wide)
            ret_chosen[count++] = &view->columns[i];
    return count;
}

struct bh_table *
bh_view_begin(const struct bh_view *view, const struct bh_view_style *style)
{
    const struct bh_column *chosen[BH_TABLE_COLUMNS_MAX];
    uint32_t columns = view_choose(view, style->wide, chosen);
    struct bh_table *table = bh_table_new(columns);

    for (uint32_t c = 0; style->headers && c < columns; c++)
        bh_table_put(table, chosen[c]->header);
    return table;
}

void
bh_view_add(struct bh_table *table, const struct bh_view *view, const struct bh_view_style *style,
            bh_json_value items)
{
    const struct bh_column *chosen[BH_TABLE_COLUMNS_MAX];
    uint32_t columns = view_choose(view, style->wide, chosen);
    char memory[CELL_BYTES_MAX];

    for (size_t i = 0; i < bh_json_count(items); i++)
        for (uint32_t c = 0; c < columns; c++) {
            struct bh_buf cell;

            bh_buf_init_fixed(&cell, memory, sizeof memory);
            bh_view_cell(&cell, chosen[c], bh_json_at(items, i), style->now_ns);
            bh_table_put(table, bh_buf_text(&cell) ? bh_buf_text(&cell) : "(too long)");
        }
}

void
bh_view_table(struct bh_buf *out, const struct bh_view *view, const struct bh_view_style *style,
              bh_json_value items)
{
    BH_AUTO(bh_table_free) struct bh_table *table = bh_view_begin(view, style);

    bh_view_add(table, view, style, items);
    bh_table_render(table, out);
}

/* "submitted_ns" as "Submitted", padded */
static void
view_put_label(struct bh_buf *out, const char *key, uint32_t depth)
{
    size_t length = strlen(key);
    bool is_time = length > 3 && strcmp(key + length - 3, "_ns") == 0;
    size_t begin = out->length;

    length -= is_time ? 3 : 0;
    for (uint32_t i = 0; i < depth * 2; i++)
        bh_buf_putc(out, ' ');
    for (size_t i = 0; i < length; i++) {
        char c = key[i] == '_' ? ' ' : key[i];

        bh_buf_putc(out, i == 0 && c >= 'a' && c <= 'z' ? (char)(c - 32) : c);
    }
    if (bh_buf_text(out))
        bh_utf8_scrub(out->bytes + begin);
    bh_buf_putc(out, ':');
    for (size_t i = length + depth * 2; i < 16; i++)
        bh_buf_putc(out, ' ');
    bh_buf_putc(out, ' ');
}

static void view_describe(struct bh_buf *out, bh_json_value value, uint64_t now_ns, uint32_t depth);

static bool
view_holds_objects(bh_json_value list)
{
    return bh_json_kind(list) == BH_JSON_ARRAY && bh_json_kind(bh_json_at(list, 0)) == BH_JSON_OBJECT;
}

/* What a site file changed: sentences with commas in them, so each has its line. */
static bool
view_holds_lines(const char *key, bh_json_value value)
{
    return bh_json_kind(value) == BH_JSON_ARRAY && strcmp(key, "changes") == 0;
}

static void
view_put_lines(struct bh_buf *out, bh_json_value list, uint32_t depth)
{
    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_buf_printf(out, "\n%*s", (int)(depth + 1) * 2, "");
        view_put_text(out, bh_json_at(list, i));
    }
}

static bool
view_is_empty(bh_json_value value)
{
    const char *text = bh_json_text(value, NULL);

    return bh_json_kind(value) == BH_JSON_NULL || (text && !*text)
           || (bh_json_kind(value) == BH_JSON_ARRAY && bh_json_count(value) == 0);
}

static void
view_describe_member(struct bh_buf *out, const char *key, bh_json_value value, uint64_t now_ns,
                     uint32_t depth)
{
    size_t length = strlen(key);
    bool is_time = length > 3 && strcmp(key + length - 3, "_ns") == 0;

    if (view_is_empty(value) || (is_time && bh_json_number(value, 1) == 0))
        return;
    view_put_label(out, key, depth);
    if (bh_json_kind(value) == BH_JSON_OBJECT && depth < DESCRIBE_DEPTH_MAX) {
        bh_buf_putc(out, '\n');
        view_describe(out, value, now_ns, depth + 1);
        return;
    }
    if (is_time && bh_json_number(value, 0) > 1000000 * BH_NS_PER_S)
        bh_time_put_utc(out, bh_json_number(value, 0));
    else if (is_time)
        bh_time_put_span(out, bh_json_number(value, 0));
    else if (view_holds_lines(key, value))
        view_put_lines(out, value, depth);
    else if (!view_holds_objects(value))
        view_put_text(out, value);
    bh_buf_putc(out, '\n');
    for (size_t i = 0; view_holds_objects(value) && i < bh_json_count(value); i++) {
        bh_buf_printf(out, "%*s- %zu\n", (int)depth * 2, "", i + 1);
        view_describe(out, bh_json_at(value, i), now_ns, depth + 1);
    }
}

/* Whether the key is the deprecated name of another member of the object. */
static bool
view_is_deprecated(bh_json_value object, const char *key)
{
    static const struct {
        const char *old, *now;
    } keys[] = {
#define BH_RENAMED_KEY(old, now) { old, now },
#include "tables/renamed_keys.tbl"
#undef BH_RENAMED_KEY
    };

    for (size_t i = 0; i < BH_COUNT(keys); i++)
        if (strcmp(keys[i].old, key) == 0 && bh_json_get(object, keys[i].now))
            return true;
    return false;
}

static void
view_describe(struct bh_buf *out, bh_json_value value, uint64_t now_ns, uint32_t depth)
{
    void *cursor = NULL;
    const char *key;
    bh_json_value member;

    while (bh_json_next(value, &cursor, &key, &member))
        if (!view_is_deprecated(value, key))
            view_describe_member(out, key, member, now_ns, depth);
}

void
bh_view_describe(struct bh_buf *out, bh_json_value value, uint64_t now_ns)
{
    view_describe(out, value, now_ns, 0);
}
