#include "audit/orders.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

#define ORDER_BITS 12
#define ORDER_RECORD(order) ((order) >> ORDER_BITS)

enum { PLACES = 1 << ORDER_BITS };

/* What answers an order; a stop is answered by the end of its job. */
static const struct {
    char letter;
    const char *verb; /* NULL: nothing does */
    /* clang-format off */
} kinds[] = {
    { 'c', "node.carved" },    { 'd', "node.destroyed" }, { 's', "node.started" },
    { 'p', "node.suspended" }, { 'r', "node.resumed" },   { 't', NULL },
    { 'z', "node.reset" },     { 'q', "node.tested" },    { '-', NULL },
};
/* clang-format on */

static bool
orders_verb_of(char letter, const char **ret_verb)
{
    for (size_t i = 0; i < BH_COUNT(kinds); i++)
        if (kinds[i].letter == letter) {
            *ret_verb = kinds[i].verb;
            return true;
        }
    return false;
}

void
bh_audit_orders_init(struct bh_audit_orders *orders)
{
    memset(orders, 0, sizeof *orders);
    orders->oldest_open = UINT64_MAX;
}

/* ---- a set by open addressing: one that finds its slot taken takes the next ---- */

static uint32_t
orders_home_of(uint64_t number)
{
    return (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 49);
}

static uint32_t
orders_next_slot(uint32_t slot)
{
    return (slot + 1) % BH_ORDERS_SLOTS;
}

/* Where the order stands, or would stand. */
static struct bh_audit_order *
orders_slot_of(struct bh_audit_orders *orders, uint64_t number)
{
    uint32_t slot = orders_home_of(number);

    while (orders->slots[slot].number != 0 && orders->slots[slot].number != number)
        slot = orders_next_slot(slot);
    return &orders->slots[slot];
}

/* Close the gap, so that one that had stepped over it is found again. */
static void
remove_order(struct bh_audit_orders *orders, struct bh_audit_order *order)
{
    uint32_t gap = (uint32_t)(order - orders->slots), slot = gap;

    orders->open -= !order->abandoned;
    orders->abandoned -= order->abandoned;
    orders->unknown -= order->unknown;
    for (;;) {
        uint32_t home;

        slot = orders_next_slot(slot);
        if (orders->slots[slot].number == 0)
            break;
        home = orders_home_of(orders->slots[slot].number);
        if ((slot - home) % BH_ORDERS_SLOTS < (slot - gap) % BH_ORDERS_SLOTS)
            continue;
        orders->slots[gap] = orders->slots[slot];
        gap = slot;
    }
    orders->slots[gap] = (struct bh_audit_order){ 0 };
}

static uint64_t
orders_oldest_of(const struct bh_audit_orders *orders, bool abandoned)
{
    uint64_t oldest = UINT64_MAX;

    for (uint32_t i = 0; i < BH_ORDERS_SLOTS; i++) {
        const struct bh_audit_order *order = &orders->slots[i];

        if (order->number && (abandoned || !order->abandoned) && ORDER_RECORD(order->number) < oldest)
            oldest = ORDER_RECORD(order->number);
    }
    return oldest;
}

/* Orders of records before `from` are no longer checked. */
static void
orders_forget_before(struct bh_audit_orders *orders, uint64_t from)
{
    orders->exact_from = from;
    for (uint32_t i = 0; i < BH_ORDERS_SLOTS;) {
        struct bh_audit_order *order = &orders->slots[i];

        if (order->number && ORDER_RECORD(order->number) < orders->exact_from)
            remove_order(orders, order); /* another may stand here now */
        else
            i++;
    }
}

/* Too many are open: those of the older half of the records are forgotten. */
static void
orders_forget_old(struct bh_audit_orders *orders, uint64_t now)
{
    uint64_t oldest = orders_oldest_of(orders, true);

    orders_forget_before(orders, oldest + (now - oldest) / 2 + 1);
}

/* ---- taking records ---- */

/* An event may name the start that it is a condition of (a dataset that the job mounts):
 * it answers nothing. */
static bool
orders_names_start(const struct bh_record *record)
{
    return record->phase == BH_PHASE_EVENT && record->order != 0;
}

static bh_rc
orders_check_number(const struct bh_record *record, struct bh_err *err)
{
    if (record->phase == BH_PHASE_INTENT && record->order)
        return bh_err_set(err, BH_CONFLICT, "it answers an order but is an intent");
    if ((record->phase == BH_PHASE_OUTCOME || orders_names_start(record))
        && ORDER_RECORD(record->order) >= record->seq)
        return bh_err_set(err, BH_CONFLICT, "it names an order of the later record %" PRIu64,
                          ORDER_RECORD(record->order));
    return BH_OK;
}

static bh_rc
orders_check_start(struct bh_audit_orders *orders, const struct bh_record *record, struct bh_err *err)
{
    const struct bh_audit_order *order = orders_slot_of(orders, record->order);

    if (order->number != 0 && order->letter == 's' && !order->abandoned)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT,
                      "it goes with order %" PRIu64 " of record %" PRIu64
                      ", which is no start that is under way",
                      record->order % PLACES, ORDER_RECORD(record->order));
}

static void
orders_abandon(struct bh_audit_orders *orders, struct bh_audit_order *order)
{
    orders->open--;
    orders->abandoned++;
    orders->unknown -= order->unknown;
    order->abandoned = true;
    order->unknown = false;
}

static bh_rc
orders_answer(struct bh_audit_orders *orders, const struct bh_record *record, struct bh_err *err)
{
    struct bh_audit_order *order = orders_slot_of(orders, record->order);
    const char *word = record->verb ? record->verb : "", *verb = NULL;

    if (order->number == 0 || record->order == 0)
        return bh_err_set(err, BH_CONFLICT,
                          "it answers order %" PRIu64 " of record %" PRIu64
                          ", which was not given or was answered before",
                          record->order % PLACES, ORDER_RECORD(record->order));
    if (order->abandoned
        && (strcmp(word, BH_RECORD_ORDER_UNKNOWN) == 0 || strcmp(word, BH_RECORD_ORDER_ABANDONED) == 0))
        return bh_err_set(err, BH_CONFLICT, "order %" PRIu64 " of record %" PRIu64 " was abandoned before",
                          record->order % PLACES, ORDER_RECORD(record->order));
    if (strcmp(word, BH_RECORD_ORDER_ABANDONED) == 0) {
        orders_abandon(orders, order);
        return BH_OK;
    }
    if (strcmp(word, BH_RECORD_ORDER_UNKNOWN) == 0) {
        orders->unknown += !order->unknown;
        order->unknown = true;
        return BH_OK;
    }
    if (!orders_verb_of(order->letter, &verb) || !verb || strcmp(verb, word) != 0)
        return bh_err_set(err, BH_CONFLICT, "\"%s\" does not answer what record %" PRIu64 " ordered", word,
                          ORDER_RECORD(record->order));
    remove_order(orders, order);
    return BH_OK;
}

static bh_rc
orders_add_all(struct bh_audit_orders *orders, const struct bh_record *record, struct bh_err *err)
{
    size_t count = strlen(record->orders);

    if (count > PLACES)
        return bh_err_set(err, BH_CONFLICT, "it gives more than %d orders", PLACES);
    for (size_t i = 0; i < count; i++) {
        uint64_t number = record->seq << ORDER_BITS | i;
        const char *verb;

        if (!orders_verb_of(record->orders[i], &verb))
            return bh_err_set(err, BH_CONFLICT, "its orders are malformed");
        if (!verb)
            continue;
        if (number == 0)
            return bh_err_set(err, BH_CONFLICT, "the first record gives an order");
        *orders_slot_of(orders, number) =
            (struct bh_audit_order){ .number = number, .letter = record->orders[i] };
        if (++orders->open + orders->abandoned > BH_ORDERS_OPEN_MAX)
            orders_forget_old(orders, record->seq);
    }
    return BH_OK;
}

bh_rc
bh_audit_orders_read(struct bh_audit_orders *orders, const struct bh_record *record, struct bh_err *err)
{
    bh_rc rc = orders_check_number(record, err);

    if (rc != BH_OK)
        return rc;
    if (orders->begun && record->version < 2)
        return bh_err_set(err, BH_CONFLICT, "it is of an older version than those before it");
    if (!orders->begun && record->version >= 2) {
        orders->begun = true;
        orders->exact_from = record->seq;
    }
    if (orders->begun && ORDER_RECORD(record->order) >= orders->exact_from) {
        if (record->phase == BH_PHASE_OUTCOME)
            rc = orders_answer(orders, record, err);
        else if (orders_names_start(record))
            rc = orders_check_start(orders, record, err);
    }
    return rc == BH_OK && record->orders ? orders_add_all(orders, record, err) : rc;
}

void
bh_audit_orders_skip(struct bh_audit_orders *orders, uint64_t seq)
{
    BH_ASSERT(seq < UINT64_MAX >> ORDER_BITS);
    if (orders->begun)
        orders_forget_before(orders, seq + 1);
}

void
bh_audit_orders_close(struct bh_audit_orders *orders)
{
    orders->oldest_open = orders_oldest_of(orders, false);
}
