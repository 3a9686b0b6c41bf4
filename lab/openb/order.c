#include "lab/openb/order.h"

#include <string.h>

#include "base/num.h"
#include "base/splitmix.h"
#include "lab/openb/text.h"

static bh_rc
order_no_memory(struct bh_err *err)
{
    return bh_err_set(err, BH_FULL, "the order takes more memory than is allowed");
}

static uint32_t
order_count_commas(const char *text)
{
    uint32_t count = 0;

    for (; *text; text++)
        count += *text == ',';
    return count;
}

/* "3,1,2": numbers below `limit`. */
static bh_rc
order_read_list(char *text, uint32_t limit, struct bh_arena *arena, struct bh_openb_list *ret_list,
                struct bh_err *err)
{
    uint32_t count = order_count_commas(text) + 1;
    uint32_t *numbers = bh_arena_alloc(arena, count * sizeof *numbers);

    if (!numbers)
        return order_no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        char *end = strchr(text, ',');
        bh_rc rc;

        if (end)
            *end = '\0';
        rc = bh_parse_u32(text, 0, limit - 1, &numbers[i], err);
        if (rc != BH_OK)
            return rc;
        text = end ? end + 1 : text;
    }
    *ret_list = (struct bh_openb_list){ count, numbers };
    return BH_OK;
}

/* Every node exactly once? */
static bh_rc
order_check_nodes(const struct bh_openb_list *nodes, uint32_t node_count, struct bh_arena *arena,
                  struct bh_err *err)
{
    uint8_t *met = bh_arena_alloc(arena, node_count);

    if (!met)
        return order_no_memory(err);
    if (nodes->count != node_count)
        return bh_err_set(err, BH_INVALID, "%u nodes, the cluster has %u", nodes->count, node_count);
    for (uint32_t i = 0; i < node_count; i++)
        if (met[nodes->at[i]]++)
            return bh_err_set(err, BH_INVALID, "node %u comes twice", nodes->at[i]);
    return BH_OK;
}

enum { SEED, NODES, PODS, FIELDS };

static bh_rc
order_read_line(char **fields, const struct bh_openb_trace *trace, struct bh_arena *arena,
                struct bh_openb_order *order, struct bh_err *err)
{
    bh_rc rc = order_read_list(fields[NODES], trace->node_count, arena, &order->nodes, err);

    if (rc != BH_OK)
        return rc;
    rc = order_check_nodes(&order->nodes, trace->node_count, arena, err);
    if (rc != BH_OK)
        return rc;
    return order_read_list(fields[PODS], trace->pod_count, arena, &order->pods, err);
}

bh_rc
bh_openb_order_read(const char *path, const struct bh_openb_trace *trace, struct bh_arena *arena,
                    struct bh_openb_order *order, struct bh_err *err)
{
    BH_AUTO(bh_openb_text_close)
    struct bh_openb_text text = { 0 };
    char *line, *fields[FIELDS];
    bh_rc rc = bh_openb_text_open(path, &text, err);

    while (rc == BH_OK && (line = bh_openb_text_next(&text))) {
        uint32_t count = bh_openb_split(line, ';', fields, FIELDS);
        uint64_t seed;

        if (count != FIELDS)
            rc = bh_err_set(err, BH_INVALID, "%u fields, not seed;nodes;pods", count);
        else
            rc = bh_parse_u64(fields[SEED], &seed, err);
        if (rc == BH_OK && seed != order->seed)
            continue;
        if (rc == BH_OK)
            rc = order_read_line(fields, trace, arena, order, err);
        return rc == BH_OK ? BH_OK : bh_openb_text_wrap(&text, err);
    }
    return rc != BH_OK ? rc
                       : bh_err_set(err, BH_NOT_FOUND, "%s: no order of seed %" PRIu64, path, order->seed);
}

static uint32_t
order_random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)((unsigned __int128)bh_splitmix_next(state) * limit >> 64);
}

static void
order_shuffle(uint32_t *numbers, uint32_t count, uint64_t *state)
{
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = order_random_below(state, i), moved = numbers[i - 1];

        numbers[i - 1] = numbers[other];
        numbers[other] = moved;
    }
}

/* Append copies up to 130 % of the cluster; returns how many arrivals there are, or would
 * be one more than there is room for. */
static uint32_t
order_draw_copies(const struct bh_openb_trace *trace, uint32_t *pods, uint32_t room, uint64_t *state)
{
    uint64_t asked = 0;
    uint32_t count = trace->pod_count;

    for (uint32_t i = 0; i < trace->pod_count; i++)
        asked += (uint64_t)trace->pods[i].shape.gpus * trace->pods[i].milli;
    for (;;) {
        uint32_t drawn = order_random_below(state, trace->pod_count);
        const struct bh_openb_pod *pod = &trace->pods[drawn];

        if ((asked + pod->milli) * 10 > trace->gpu_milli * 13)
            return count;
        if (count == room)
            return room + 1;
        pods[count++] = drawn;
        asked += (uint64_t)pod->shape.gpus * pod->milli;
    }
}

bh_rc
bh_openb_order_draw(const struct bh_openb_trace *trace, struct bh_arena *arena, struct bh_openb_order *order,
                    struct bh_err *err)
{
    uint64_t state = order->seed;
    uint32_t room = 4 * trace->pod_count + 1024;
    uint32_t *nodes = bh_arena_alloc(arena, trace->node_count * sizeof *nodes);
    uint32_t *pods = bh_arena_alloc(arena, room * sizeof *pods), count;

    if (!nodes || !pods)
        return order_no_memory(err);
    order_shuffle(pods, trace->pod_count, &state);
    count = order_draw_copies(trace, pods, room, &state);
    if (count > room)
        return bh_err_set(err, BH_FULL, "over %u arrivals: the pods ask for too few GPUs", room);
    order_shuffle(nodes, trace->node_count, &state);
    order->nodes = (struct bh_openb_list){ trace->node_count, nodes };
    order->pods = (struct bh_openb_list){ count, pods };
    return BH_OK;
}
