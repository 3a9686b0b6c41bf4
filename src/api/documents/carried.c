#include "api/documents/carried.h"

static uint64_t
carried_sum(uint64_t a, uint64_t b)
{
    uint64_t both;

    return __builtin_add_overflow(a, b, &both) ? UINT64_MAX : both;
}

void
bh_carried_add(struct bh_msg_carried *to, const struct bh_msg_carried *from)
{
    *to = (struct bh_msg_carried){
        .counted = to->counted || from->counted,
        .denied_bytes = carried_sum(to->denied_bytes, from->denied_bytes),
        .denied_packets = carried_sum(to->denied_packets, from->denied_packets),
        .rx_bytes = carried_sum(to->rx_bytes, from->rx_bytes),
        .rx_packets = carried_sum(to->rx_packets, from->rx_packets),
        .tx_bytes = carried_sum(to->tx_bytes, from->tx_bytes),
        .tx_packets = carried_sum(to->tx_packets, from->tx_packets),
    };
}
