#include "daemon/nodes/traffic.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"

static void
traffic_drop(struct bh_traffic *traffic, uint32_t at)
{
    memmove(&traffic->items[at], &traffic->items[at + 1], (--traffic->count - at) * sizeof *traffic->items);
}

/* The oldest of those that ended, else the oldest. */
static void
traffic_evict(struct bh_traffic *traffic)
{
    uint32_t at = 0;

    if (traffic->count < BH_TRAFFIC_MAX)
        return;
    while (at < traffic->count && !traffic->items[at].final)
        at++;
    traffic_drop(traffic, at < traffic->count ? at : 0);
}

static void
traffic_put(struct bh_traffic *traffic, const struct bh_msg_traffic_item *item)
{
    for (uint32_t i = 0; i < traffic->count; i++)
        if (traffic->items[i].lease == item->lease) {
            traffic->items[i] = *item;
            return;
        }
    traffic_evict(traffic);
    traffic->items[traffic->count++] = *item;
}

void
bh_traffic_update(struct bh_traffic *traffic, const struct bh_list *items)
{
    const struct bh_msg_traffic_item *item = items->items;

    if (!traffic->items)
        traffic->items = calloc(BH_TRAFFIC_MAX, sizeof *traffic->items);
    BH_ASSERT(traffic->items);
    for (uint32_t i = 0; i < items->count; i++)
        traffic_put(traffic, &item[i]);
}

bool
bh_traffic_find(const struct bh_traffic *traffic, uint64_t lease, struct bh_msg_carried *carried)
{
    for (uint32_t i = 0; i < traffic->count; i++) {
        const struct bh_msg_traffic_item *item = &traffic->items[i];

        if (item->lease != lease)
            continue;
        *carried = (struct bh_msg_carried){
            .counted = true,
            .denied_bytes = item->denied_bytes,
            .denied_packets = item->denied_packets,
            .rx_bytes = item->rx_bytes,
            .rx_packets = item->rx_packets,
            .tx_bytes = item->tx_bytes,
            .tx_packets = item->tx_packets,
        };
        return true;
    }
    return false;
}

void
bh_traffic_forget(struct bh_traffic *traffic, uint64_t lease)
{
    for (uint32_t i = 0; i < traffic->count; i++)
        if (traffic->items[i].lease == lease) {
            traffic_drop(traffic, i);
            return;
        }
}

void
bh_traffic_fini(struct bh_traffic *traffic)
{
    free(traffic->items);
    *traffic = (struct bh_traffic){ .count = 0 };
}

void
bh_traffic_put(const struct bh_traffic *traffic, struct bh_buf *out)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '[');
    for (uint32_t i = 0; i < traffic->count; i++) {
        const struct bh_msg_traffic_item *item = &traffic->items[i];

        bh_json_open(&w, NULL, '{');
        bh_json_u64(&w, "denied_bytes", item->denied_bytes);
        bh_json_u64(&w, "denied_packets", item->denied_packets);
        bh_json_u64(&w, "job", item->job);
        bh_json_u64(&w, "rx_bytes", item->rx_bytes);
        bh_json_u64(&w, "rx_packets", item->rx_packets);
        bh_json_u64(&w, "tx_bytes", item->tx_bytes);
        bh_json_u64(&w, "tx_packets", item->tx_packets);
        bh_json_close(&w, '}');
    }
    bh_json_close(&w, ']');
}
