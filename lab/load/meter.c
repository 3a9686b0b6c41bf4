#include "lab/load/meter.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/vec.h"

enum { ROWS_MAX = 1 << 30 };

/* One tenant's rates, and the windows that its time has reached. */
struct account {
    uint64_t used, wanted; /* parts now */
    uint64_t since_ns;
    struct bh_meter_window total;
};

struct bh_meter {
    uint64_t window_ns, span_ns;
    uint32_t tenants, windows, capacity; /* of rows */
    struct account *accounts;
    struct bh_meter_window *rows; /* window after window, all tenants in each */
};

struct bh_meter *
bh_meter_new(uint32_t tenants, uint64_t window_ns)
{
    struct bh_meter *meter = calloc(1, sizeof *meter);

    BH_ASSERT(meter && window_ns > 0);
    meter->tenants = tenants;
    meter->window_ns = window_ns;
    meter->accounts = calloc(tenants + 1, sizeof *meter->accounts);
    BH_ASSERT(meter->accounts);
    return meter;
}

void
bh_meter_free(struct bh_meter *meter)
{
    if (!meter)
        return;
    free(meter->rows);
    free(meter->accounts);
    free(meter);
}

/* The row of a window, made when it is not there yet. */
static struct bh_meter_window *
row_of(struct bh_meter *meter, uint32_t window, uint32_t tenant)
{
    size_t at = (size_t)window * meter->tenants + tenant;
    bool fits = bh_vec_reserve(&meter->rows, &meter->capacity, at + 1, ROWS_MAX);

    BH_ASSERT(fits);
    if (window >= meter->windows)
        meter->windows = window + 1;
    return &meter->rows[at];
}

/* Fill the windows up to now with the rates as they were. */
static void
meter_settle(struct bh_meter *meter, uint32_t tenant, uint64_t now_ns)
{
    struct account *account = &meter->accounts[tenant];

    BH_ASSERT(now_ns >= account->since_ns);
    while (account->since_ns < now_ns) {
        uint64_t window = account->since_ns / meter->window_ns;
        uint64_t end_ns = (window + 1) * meter->window_ns;
        uint64_t span_ns = (end_ns < now_ns ? end_ns : now_ns) - account->since_ns;
        struct bh_meter_window *row = row_of(meter, (uint32_t)window, tenant);

        row->used += (bh_part_ns)account->used * span_ns;
        row->wanted += (bh_part_ns)account->wanted * span_ns;
        account->total.used += (bh_part_ns)account->used * span_ns;
        account->total.wanted += (bh_part_ns)account->wanted * span_ns;
        account->since_ns += span_ns;
    }
}

static uint64_t
meter_moved(uint64_t parts, int64_t by)
{
    BH_ASSERT(by >= 0 || parts >= (uint64_t)-by);
    return parts + (uint64_t)by;
}

void
bh_meter_add(struct bh_meter *meter, uint32_t tenant, uint64_t now_ns, int64_t used, int64_t wanted)
{
    struct account *account = &meter->accounts[tenant];

    BH_ASSERT(tenant < meter->tenants);
    meter_settle(meter, tenant, now_ns);
    account->used = meter_moved(account->used, used);
    account->wanted = meter_moved(account->wanted, wanted);
}

void
bh_meter_close(struct bh_meter *meter, uint64_t now_ns)
{
    for (uint32_t tenant = 0; tenant < meter->tenants; tenant++)
        meter_settle(meter, tenant, now_ns);
    meter->span_ns = now_ns;
}

uint64_t
bh_meter_span_ns(const struct bh_meter *meter)
{
    return meter->span_ns;
}

uint64_t
bh_meter_window_ns(const struct bh_meter *meter)
{
    return meter->window_ns;
}

uint32_t
bh_meter_windows(const struct bh_meter *meter)
{
    return meter->windows;
}

const struct bh_meter_window *
bh_meter_at(const struct bh_meter *meter, uint32_t tenant, uint32_t window)
{
    BH_ASSERT(tenant < meter->tenants && window < meter->windows);
    return &meter->rows[(size_t)window * meter->tenants + tenant];
}

struct bh_meter_window
bh_meter_total(const struct bh_meter *meter, uint32_t tenant)
{
    BH_ASSERT(tenant < meter->tenants);
    return meter->accounts[tenant].total;
}
