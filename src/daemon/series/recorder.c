#include "daemon/series/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/disk_space.h"
#include "base/log.h"
#include "base/time.h"
#include "base/vec.h"
#include "daemon/series/observer.h"

/* A batch takes at most this part of the time until the next, and comes at most so often. */
enum { REST_FOR_EACH = 100, NAMES_MAX_BYTES = 64 << 20 };
static const uint64_t batch_least_ns = 10 * BH_NS_PER_S;
static const uint64_t prune_every_ns = 60 * BH_NS_PER_S;

struct bh_recorder {
    struct bh_recorder_options options;
    struct bh_observer *observer;
    /* what is not written yet */
    struct bh_arena *arena;
    struct bh_observation pending;
    uint64_t *intervals; /* beside pending.values */
    uint32_t interval_count, interval_capacity;
    uint64_t write_at_ns, prune_at_ns; /* when next, by the monotonic clock */
    bool failing;                      /* the last batch was lost */
};

struct bh_recorder *
bh_recorder_new(const struct bh_recorder_options *options)
{
    struct bh_recorder *recorder = calloc(1, sizeof *recorder);

    BH_ASSERT(recorder);
    recorder->options = *options;
    recorder->observer = bh_observer_new();
    recorder->arena = bh_arena_new(NAMES_MAX_BYTES);
    bh_observation_init(&recorder->pending, recorder->arena);
    return recorder;
}

/* ---- a batch ---- */

/* A value with its interval; sorted, those of a series stand together in the order of time. */
struct recorder_value {
    const struct bh_observed_value *value;
    uint64_t interval;
};

static int
recorder_compare_objects(const struct bh_series_object *a, const struct bh_series_object *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->tenant_id != b->tenant_id)
        return a->tenant_id < b->tenant_id ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int
recorder_compare(const void *a, const void *b)
{
    const struct recorder_value *left = a, *right = b;
    int objects = recorder_compare_objects(&left->value->object, &right->value->object);

    if (objects != 0)
        return objects;
    if (left->value->row != right->value->row)
        return left->value->row < right->value->row ? -1 : 1;
    return (left->interval > right->interval) - (left->interval < right->interval);
}

static struct recorder_value *
recorder_sort(const struct bh_recorder *recorder)
{
    struct recorder_value *sorted = calloc((size_t)recorder->interval_count + 1, sizeof *sorted);

    BH_ASSERT(sorted);
    for (uint32_t i = 0; i < recorder->interval_count; i++)
        sorted[i] = (struct recorder_value){ &recorder->pending.values[i], recorder->intervals[i] };
    qsort(sorted, recorder->interval_count, sizeof *sorted, recorder_compare);
    return sorted;
}

/* The sorted values as samples, those of one interval as one. */
static void
recorder_fill_batch(const struct recorder_value *sorted, uint32_t count, struct bh_series_object *objects,
                    struct bh_series_sample *samples, struct bh_series_batch *batch)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct recorder_value *now = &sorted[i], *before = i > 0 ? &sorted[i - 1] : NULL;

        if (!before || recorder_compare_objects(&before->value->object, &now->value->object) != 0)
            objects[batch->object_count++] = now->value->object;
        if (!before || recorder_compare(before, now) != 0)
            samples[batch->sample_count++] = (struct bh_series_sample){ .object = batch->object_count - 1,
                                                                        .row = now->value->row,
                                                                        .interval = now->interval };
        bh_point_add(&samples[batch->sample_count - 1].point, now->value->value);
    }
    batch->objects = objects;
    batch->samples = samples;
}

static bh_rc
recorder_check_disk(const struct bh_recorder *recorder, struct bh_err *err)
{
    const struct bh_disk_space space = bh_disk_space_at(recorder->options.state_dir);

    if (recorder->options.reserve == 0 || bh_disk_space_is_left(&space, recorder->options.reserve, 0))
        return BH_OK;
    return bh_err_set(err, BH_FULL, "less than disk_reserve is left on the disk of %s",
                      recorder->options.state_dir);
}

static bh_rc
recorder_write_batch(struct bh_recorder *recorder, struct bh_err *err)
{
    const struct bh_series_store *store = &recorder->options.store;
    uint32_t count = recorder->interval_count;
    struct bh_series_batch batch = { .now_ns = recorder->pending.now_ns };
    struct recorder_value *sorted = recorder_sort(recorder);
    struct bh_series_object *objects = calloc((size_t)count + 1, sizeof *objects);
    struct bh_series_sample *samples = calloc((size_t)count + 1, sizeof *samples);
    bh_rc rc = recorder_check_disk(recorder, err);

    BH_ASSERT(objects && samples);
    if (rc == BH_OK) {
        recorder_fill_batch(sorted, count, objects, samples, &batch);
        rc = store->ops->write(store->self, &batch, err);
    }
    free(samples);
    free(objects);
    free(sorted);
    return rc;
}

/* One line when it begins, one when it is over. */
static void
recorder_log(struct bh_recorder *recorder, bh_rc rc, const struct bh_err *err)
{
    if (rc != BH_OK && !recorder->failing)
        bh_log(SERIES_NOT_KEPT, BH_ERRLOG(err));
    if (rc == BH_OK && recorder->failing)
        bh_log(SERIES_KEPT_AGAIN);
    recorder->failing = rc != BH_OK;
}

static void
recorder_write(struct bh_recorder *recorder)
{
    struct bh_err err;

    if (recorder->interval_count == 0)
        return;
    recorder_log(recorder, recorder_write_batch(recorder, &err), &err);
    recorder->interval_count = recorder->pending.count = 0;
    bh_arena_reset(recorder->arena);
}

static void
recorder_prune(struct bh_recorder *recorder)
{
    const struct bh_recorder_options *options = &recorder->options;
    const struct bh_series_limits limits = { recorder->pending.now_ns, options->retention_ns,
                                             options->jobs_max, options->tenant_jobs_max };
    struct bh_err ignored; /* what is too much waits for the next time */

    (void)!options->store.ops->prune(options->store.self, &limits, &ignored);
}

/* ---- looking ---- */

static void
recorder_observe(struct bh_recorder *recorder, uint64_t monotonic_ns)
{
    struct bh_observation *pending = &recorder->pending;
    struct bh_err ignored; /* the owner is stopping */
    uint64_t interval;

    if (bh_observer_observe(recorder->observer, &recorder->options.owner, monotonic_ns, pending, &ignored)
        != BH_OK)
        pending->count = recorder->interval_count;
    interval = bh_series_interval(BH_RESOLUTION_FINE, pending->now_ns);
    if (!bh_vec_reserve(&recorder->intervals, &recorder->interval_capacity, (size_t)pending->count + 1,
                        BH_OBSERVED_MAX + 1))
        pending->count = recorder->interval_count;
    while (recorder->interval_count < pending->count)
        recorder->intervals[recorder->interval_count++] = interval;
}

void
bh_recorder_tick_at(struct bh_recorder *recorder, uint64_t monotonic_ns)
{
    uint64_t begun_ns = bh_time_monotonic(), took_ns;

    recorder_observe(recorder, monotonic_ns);
    if (monotonic_ns < recorder->write_at_ns && recorder->pending.count < BH_OBSERVED_MAX / 2)
        return;
    recorder_write(recorder);
    if (monotonic_ns >= recorder->prune_at_ns) {
        recorder_prune(recorder);
        recorder->prune_at_ns = monotonic_ns + prune_every_ns;
    }
    took_ns = bh_time_monotonic() - begun_ns;
    recorder->write_at_ns =
        monotonic_ns + (REST_FOR_EACH * took_ns > batch_least_ns ? REST_FOR_EACH * took_ns : batch_least_ns);
}

void
bh_recorder_tick(void *self)
{
    bh_recorder_tick_at(self, bh_time_monotonic());
}

void
bh_recorder_free(struct bh_recorder *recorder)
{
    if (!recorder)
        return;
    recorder_write(recorder);
    bh_observation_fini(&recorder->pending);
    bh_observer_free(recorder->observer);
    bh_arena_free(recorder->arena);
    free(recorder->intervals);
    free(recorder);
}
