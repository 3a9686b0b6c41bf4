#include "daemon/batch/abandoned_orders.h"

#include "base/assert.h"
#include "base/search.h"
#include "daemon/batch/record.h"

static bh_rc
abandoned_orders_put(struct bh_core *core, struct bh_record_object about, uint64_t order, bh_rc why,
                     struct bh_err *err)
{
    const struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                    .dec = { .allow = true },
                                    .phase = BH_PHASE_OUTCOME,
                                    .obj = about,
                                    .order = order,
                                    .verb = BH_RECORD_ORDER_ABANDONED };

    return bh_core_record(core, &entry, why, err);
}

bh_rc
bh_abandoned_orders_withhold(struct bh_core *core, const struct bh_effect *effect, struct bh_err *err)
{
    const struct bh_record_object lease = { "lease", effect->lease.v };

    BH_ASSERT(effect->kind == BH_FX_START);
    return abandoned_orders_put(core, lease, effect->order, BH_DENIED, err);
}

static bool
abandoned_orders_is_awaited(const struct bh_effect *effects, uint32_t count, uint64_t order)
{
    size_t at = bh_search(effects, count, order, order);

    return at < count && effects[at].order == order;
}

/* Which of the open orders that the engine does not wait for are meant. */
struct meant {
    uint64_t before_ns, before_number;
    bool (*is_sent)(const void *self, uint64_t order); /* NULL: sent or not */
    const void *self;
};

static bool
abandoned_orders_is_meant(const struct meant *meant, const struct bh_open_order *order)
{
    return !order->done && order->since_ns < meant->before_ns && order->number < meant->before_number
           && !(meant->is_sent && meant->is_sent(meant->self, order->number));
}

static bh_rc
abandoned_orders_record(struct bh_core *core, const struct meant *meant, struct bh_err *err)
{
    struct bh_open_orders *open = &core->open_orders;
    uint32_t count =
        bh_engine_outstanding(core->state.engine, (bh_node_id){ 0 }, core->scratch, BH_CORE_EFFECTS_MAX);
    bh_rc rc = BH_OK;

    if (count == BH_CORE_EFFECTS_MAX)
        return BH_OK; /* there may be more, which are awaited all the same */
    for (uint32_t i = 0; i < open->count && rc == BH_OK; i++) {
        struct bh_open_order order = open->items[i];

        if (abandoned_orders_is_meant(meant, &order)
            && !abandoned_orders_is_awaited(core->scratch, count, order.number))
            rc = abandoned_orders_put(core, (struct bh_record_object){ .type = "order" }, order.number,
                                      BH_UNAVAILABLE, err);
    }
    return rc;
}

bh_rc
bh_abandoned_orders_record(struct bh_core *core, uint64_t before_ns, struct bh_err *err)
{
    const struct meant meant = { .before_ns = before_ns, .before_number = UINT64_MAX };

    return abandoned_orders_record(core, &meant, err);
}

bh_rc
bh_abandoned_orders_record_unsent(struct bh_core *core, uint64_t before_seq,
                                  bool (*is_sent)(const void *self, uint64_t order), const void *self,
                                  struct bh_err *err)
{
    const struct meant meant = { .before_ns = UINT64_MAX,
                                 .before_number = before_seq << BH_ORDER_BITS,
                                 .is_sent = is_sent,
                                 .self = self };

    return abandoned_orders_record(core, &meant, err);
}
