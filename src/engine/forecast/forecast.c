#include "engine/forecast/forecast.h"

#include <string.h>

#include "base/assert.h"

enum { WHOLE_BP = 10000 };
#define NO_BOUND UINT32_MAX

/* The changes over some steps that end in the newest slot and the count - 1 before it. */
struct changes {
    int64_t at[BH_FORECAST_WINDOW_MAX];
    uint32_t count;
};

void
bh_forecast_init(struct bh_forecast *forecast, bh_ns slot_ns, uint32_t window)
{
    BH_ASSERT(slot_ns > 0);
    BH_ASSERT(window > 0 && window <= BH_FORECAST_WINDOW_MAX);
    memset(forecast, 0, sizeof *forecast);
    forecast->slot_ns = slot_ns;
    forecast->window = window;
}

static void
forecast_check_question(uint32_t steps, uint32_t q_bp)
{
    BH_ASSERT(steps > 0 && steps <= BH_FORECAST_STEPS_MAX);
    BH_ASSERT(q_bp > 0 && q_bp <= WHOLE_BP);
}

uint32_t
bh_forecast_promise(struct bh_forecast *forecast, uint32_t steps, uint32_t q_bp)
{
    struct bh_forecast_promise *promise = &forecast->promises[forecast->promise_count];

    forecast_check_question(steps, q_bp);
    BH_ASSERT(forecast->promise_count < BH_FORECAST_PROMISES_MAX);
    promise->steps = steps;
    promise->q_bp = q_bp;
    for (uint32_t i = 0; i < BH_FORECAST_STEPS_MAX; i++)
        promise->bounds[i] = NO_BOUND;
    return forecast->promise_count++;
}

static uint32_t
forecast_value_at(const struct bh_forecast *forecast, uint64_t slot)
{
    return forecast->values[slot % BH_FORECAST_SLOTS];
}

static void
forecast_gather(const struct bh_forecast *forecast, uint32_t steps, struct changes *ret_changes)
{
    uint32_t count = forecast->count > steps ? forecast->count - steps : 0;

    ret_changes->count = count < forecast->window ? count : forecast->window;
    for (uint32_t i = 0; i < ret_changes->count; i++)
        ret_changes->at[i] = (int64_t)forecast_value_at(forecast, forecast->slot - i)
                             - (int64_t)forecast_value_at(forecast, forecast->slot - i - steps);
}

static uint32_t
forecast_count_up_to(const struct changes *changes, int64_t limit)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < changes->count; i++)
        count += changes->at[i] <= limit;
    return count;
}

/* By halving the range of values: nothing to sort, nothing to keep.  What never changes needs
 * no pass, what changes by a few GPUs needs half as many as there are bits. */
static int64_t
forecast_smallest(const struct changes *changes, uint32_t rank)
{
    int64_t low = UINT32_MAX, high = -(int64_t)UINT32_MAX;

    BH_ASSERT(rank > 0 && rank <= changes->count);
    for (uint32_t i = 0; i < changes->count; i++) {
        low = changes->at[i] < low ? changes->at[i] : low;
        high = changes->at[i] > high ? changes->at[i] : high;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (forecast_count_up_to(changes, middle) >= rank)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint32_t
forecast_clip(int64_t value)
{
    if (value < 0)
        return 0;
    return value > BH_FORECAST_VALUE_MAX ? BH_FORECAST_VALUE_MAX : (uint32_t)value;
}

struct bh_forecast_bound
bh_forecast_bound(const struct bh_forecast *forecast, uint32_t steps, uint32_t q_bp)
{
    struct bh_forecast_bound bound = { .steps = steps, .q_bp = q_bp };
    struct changes changes;

    forecast_check_question(steps, q_bp);
    forecast_gather(forecast, steps, &changes);
    bound.changes = changes.count;
    bound.rank = ((changes.count + 1) * q_bp + WHOLE_BP - 1) / WHOLE_BP;
    bound.firm = bound.rank <= changes.count;
    bound.level = forecast->count ? forecast_value_at(forecast, forecast->slot) : 0;
    if (changes.count > 0)
        bound.change = forecast_smallest(&changes, bound.firm ? bound.rank : changes.count);
    bound.value = forecast_clip((int64_t)bound.level + bound.change);
    return bound;
}

static void
forecast_set_bit(uint64_t *words, uint32_t at, bool value)
{
    uint64_t bit = UINT64_C(1) << at % 64;

    words[at / 64] = value ? words[at / 64] | bit : words[at / 64] & ~bit;
}

/* Enter the outcome of a slot over that of one window ago. */
static void
forecast_judge(struct bh_forecast *forecast, struct bh_forecast_promise *promise, bool seen)
{
    uint32_t *bound = &promise->bounds[forecast->slot % promise->steps];
    uint32_t at = (uint32_t)(forecast->slot % forecast->window);
    bool due = seen && *bound != NO_BOUND;

    forecast_set_bit(promise->judged, at, due);
    forecast_set_bit(promise->kept, at, due && forecast_value_at(forecast, forecast->slot) <= *bound);
    *bound = NO_BOUND;
}

/* The newest slot has its final value: judge what was said of it, and speak again. */
static void
forecast_close_slot(struct bh_forecast *forecast, bool seen)
{
    for (uint32_t i = 0; i < forecast->promise_count; i++) {
        struct bh_forecast_promise *promise = &forecast->promises[i];
        struct bh_forecast_bound bound;

        forecast_judge(forecast, promise, seen);
        if (!seen)
            continue;
        bound = bh_forecast_bound(forecast, promise->steps, promise->q_bp);
        if (bound.firm)
            promise->bounds[forecast->slot % promise->steps] = bound.value;
    }
}

static void
forecast_open_slot(struct bh_forecast *forecast, uint64_t slot, uint32_t value)
{
    forecast->slot = slot;
    forecast->values[slot % BH_FORECAST_SLOTS] = value;
    if (forecast->count < BH_FORECAST_SLOTS)
        forecast->count++;
}

/* Missed slots up to `end` repeat the last value.  Of a gap longer than the ring only its
 * end matters: the ring is full of that value, and all promises are forgotten. */
static void
forecast_fill_gap(struct bh_forecast *forecast, uint64_t end)
{
    uint32_t value = forecast_value_at(forecast, forecast->slot);
    uint64_t from = forecast->slot + 1;

    if (end - from > BH_FORECAST_SLOTS)
        from = end - BH_FORECAST_SLOTS;
    for (; from < end; from++) {
        forecast_open_slot(forecast, from, value);
        forecast_close_slot(forecast, false);
    }
}

void
bh_forecast_put(struct bh_forecast *forecast, bh_ns now_ns, uint32_t value)
{
    uint64_t slot = now_ns / forecast->slot_ns;

    BH_ASSERT(forecast->slot_ns > 0);
    BH_ASSERT(forecast->count == 0 || slot >= forecast->slot);
    if (forecast->count > 0 && slot > forecast->slot) {
        forecast_close_slot(forecast, true);
        forecast_fill_gap(forecast, slot);
    }
    if (forecast->count == 0 || slot > forecast->slot)
        forecast_open_slot(forecast, slot, forecast_clip(value));
    else
        forecast->values[slot % BH_FORECAST_SLOTS] = forecast_clip(value);
}

struct bh_forecast_coverage
bh_forecast_coverage(const struct bh_forecast *forecast, uint32_t promise)
{
    struct bh_forecast_coverage coverage = { 0 };

    BH_ASSERT(promise < forecast->promise_count);
    for (uint32_t i = 0; i < BH_FORECAST_WORDS; i++) {
        coverage.judged += (uint32_t)__builtin_popcountll(forecast->promises[promise].judged[i]);
        coverage.kept += (uint32_t)__builtin_popcountll(forecast->promises[promise].kept[i]);
    }
    return coverage;
}

_Static_assert(sizeof(struct bh_forecast) == 2752, "the header says so");
