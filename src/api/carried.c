#include "api/carried.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { ROW_ARENA_MAX = 4096 };

static const struct bh_field end_rows[] = {
    BH_F(struct bh_carried_end, carried, BH_FIELD_STRUCT, .of = &bh_carried_fields),
    BH_F(struct bh_carried_end, job, BH_FIELD_U64),
    BH_F(struct bh_carried_end, lease, BH_FIELD_U64),
    BH_F(struct bh_carried_end, tenant, BH_FIELD_U32),
};
const struct bh_fields bh_carried_end_fields =
    BH_FIELDS("carried_end", struct bh_carried_end, end_rows);

static const struct bh_field row_rows[] = {
    BH_F(struct bh_carried_row, leases, BH_FIELD_U64),
    BH_F(struct bh_carried_row, sums, BH_FIELD_STRUCT, .of = &bh_carried_fields),
};
const struct bh_fields bh_carried_row_fields =
    BH_FIELDS("carried_row", struct bh_carried_row, row_rows);

void
bh_carried_key(uint64_t number, char ret_key[BH_CARRIED_KEY_SIZE])
{
    snprintf(ret_key, BH_CARRIED_KEY_SIZE, "%020" PRIu64, number);
}

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

bh_rc
bh_carried_parse(const char *value, struct bh_carried_row *ret_row, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ROW_ARENA_MAX);

    return bh_json_decode(value, strlen(value), &bh_carried_row_fields, ret_row, arena, err);
}

bh_rc
bh_carried_get(const struct bh_store *store, enum bh_document_kind kind, uint64_t number,
               struct bh_carried_row *ret_row, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ROW_ARENA_MAX);
    char key[BH_CARRIED_KEY_SIZE];
    const struct bh_document_key wanted = { kind, key };
    struct bh_document_row row;
    bh_rc rc;

    bh_carried_key(number, key);
    *ret_row = (struct bh_carried_row){ 0 };
    rc = store->ops->get_document(store->self, &wanted, arena, &row, err);
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    return rc == BH_OK ? bh_carried_parse(row.value, ret_row, err) : rc;
}
