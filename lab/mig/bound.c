#include "lab/mig/bound.h"

#include <float.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/splitmix.h"

enum {
    KINDS = BH_MIG_FLEET_PROFILES,
    LAYOUTS_MAX = 1024,
    PARTITIONS_MAX = 8,
    STARTS_MAX = 8,
    LABELLING_ROUNDS = 24
};

/* Partitions that fit together on one GPU, and which layouts one more or one less makes. */
struct bound_layout {
    struct bh_occupancy occupancy;
    uint32_t count;
    uint8_t kinds[PARTITIONS_MAX], starts[PARTITIONS_MAX];
    uint16_t with[KINDS][STARTS_MAX], without[PARTITIONS_MAX];
    uint32_t with_count[KINDS];
    uint64_t label; /* equal for those that are the same to every job to come */
};

/* Layouts, or one for each label. */
struct bound_layouts {
    const struct bh_profile *profiles[KINDS];
    uint32_t units, count;
    struct bound_layout at[LAYOUTS_MAX];
};

/* ---- all layouts of a GPU ---- */

static void
bound_list_layouts(struct bound_layouts *layouts, uint32_t unit, struct bound_layout *layout)
{
    if (unit == layouts->units) {
        BH_ASSERT(layouts->count < LAYOUTS_MAX);
        layouts->at[layouts->count++] = *layout;
        return;
    }
    bound_list_layouts(layouts, unit + 1, layout);
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const struct bh_profile *profile = layouts->profiles[kind];

        if (!bh_occupancy_fits(&layout->occupancy, profile, unit))
            continue;
        BH_ASSERT(layout->count < PARTITIONS_MAX);
        bh_occupancy_add(&layout->occupancy, profile, unit);
        layout->kinds[layout->count] = (uint8_t)kind;
        layout->starts[layout->count++] = (uint8_t)unit;
        bound_list_layouts(layouts, unit + 1, layout);
        layout->count--;
        bh_occupancy_remove(&layout->occupancy, profile, unit);
    }
}

static bool
bound_stands_in(const struct bound_layout *layout, uint32_t kind, uint32_t start)
{
    for (uint32_t i = 0; i < layout->count; i++)
        if (layout->kinds[i] == kind && layout->starts[i] == start)
            return true;
    return false;
}

/* The partition of `more` that `less` has not, when that is the only difference; or none. */
static uint32_t
bound_partition_more(const struct bound_layout *more, const struct bound_layout *less)
{
    uint32_t missing = PARTITIONS_MAX;

    for (uint32_t i = 0; i < more->count; i++) {
        if (bound_stands_in(less, more->kinds[i], more->starts[i]))
            continue;
        if (missing != PARTITIONS_MAX)
            return PARTITIONS_MAX;
        missing = i;
    }
    return missing;
}

static void
bound_link_layouts(struct bound_layouts *layouts)
{
    for (uint32_t i = 0; i < layouts->count; i++) {
        for (uint32_t k = 0; k < layouts->count; k++) {
            struct bound_layout *less = &layouts->at[i], *more = &layouts->at[k];
            uint32_t partition, kind;

            if (more->count != less->count + 1)
                continue;
            partition = bound_partition_more(more, less);
            if (partition == PARTITIONS_MAX)
                continue;
            kind = more->kinds[partition];
            more->without[partition] = (uint16_t)i;
            less->with[kind][less->with_count[kind]++] = (uint16_t)k;
        }
    }
}

/* ---- those that are the same to jobs ---- */

/* Whether an earlier start for the kind leads to one of the same label. */
static bool
bound_seen_before(const struct bound_layouts *layouts, const struct bound_layout *layout, uint32_t kind,
                  uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (layouts->at[layout->with[kind][i]].label == layouts->at[layout->with[kind][at]].label)
            return true;
    return false;
}

/* From what each kind can make of it, and what each end does. */
static uint64_t
bound_label_of(const struct bound_layouts *layouts, const struct bound_layout *layout)
{
    uint64_t label = layout->count + 1;

    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t i = 0; i < layout->with_count[kind]; i++)
            if (!bound_seen_before(layouts, layout, kind, i))
                label += bh_splitmix_mix(layouts->at[layout->with[kind][i]].label + kind + 1);
    for (uint32_t i = 0; i < layout->count; i++)
        label += bh_splitmix_mix(~layouts->at[layout->without[i]].label);
    return bh_splitmix_mix(label);
}

static void
bound_label_layouts(struct bound_layouts *layouts)
{
    static uint64_t labels[LAYOUTS_MAX];

    for (uint32_t round = 0; round < LABELLING_ROUNDS; round++) {
        for (uint32_t i = 0; i < layouts->count; i++)
            labels[i] = bound_label_of(layouts, &layouts->at[i]);
        for (uint32_t i = 0; i < layouts->count; i++)
            layouts->at[i].label = labels[i];
    }
}

static uint16_t
bound_find_label(const struct bound_layouts *layouts, uint64_t label)
{
    uint32_t at = 0;

    while (at < layouts->count && layouts->at[at].label != label)
        at++;
    return (uint16_t)at;
}

/* Keep one of each label. */
static void
bound_merge_layouts(const struct bound_layouts *all, struct bound_layouts *ret_merged)
{
    ret_merged->count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        if (bound_find_label(ret_merged, all->at[i].label) == ret_merged->count)
            ret_merged->at[ret_merged->count++] = all->at[i];
    for (uint32_t i = 0; i < ret_merged->count; i++) {
        struct bound_layout *layout = &ret_merged->at[i];

        for (uint32_t k = 0; k < layout->count; k++)
            layout->without[k] = bound_find_label(ret_merged, all->at[layout->without[k]].label);
        for (uint32_t kind = 0; kind < KINDS; kind++)
            for (uint32_t k = 0; k < layout->with_count[kind]; k++)
                layout->with[kind][k] = bound_find_label(ret_merged, all->at[layout->with[kind][k]].label);
    }
}

static struct bound_layouts *
bound_layouts_of(enum bh_gpu_model model, const struct bh_mig_mix *mix)
{
    struct bound_layouts *all = calloc(1, sizeof(*all)), *merged = calloc(1, sizeof(*merged));
    struct bh_mig_fleet *fleet = bh_mig_fleet_new(model, 1, BH_MIG_FIRST_FIT, mix);
    struct bound_layout empty = { .count = 0 };

    BH_ASSERT(all && merged);
    for (uint32_t kind = 0; kind < KINDS; kind++)
        merged->profiles[kind] = all->profiles[kind] = bh_mig_fleet_profile(fleet, kind);
    bh_mig_fleet_free(fleet);
    all->units = bh_model_facts(model)->memory_units;
    bound_list_layouts(all, 0, &empty);
    bound_link_layouts(all);
    bound_label_layouts(all);
    bound_merge_layouts(all, merged);
    free(all);
    return merged;
}

uint32_t
bh_mig_bound_layouts(enum bh_gpu_model model, const struct bh_mig_mix *mix)
{
    struct bound_layouts *layouts = bound_layouts_of(model, mix);
    uint32_t count = layouts->count;

    free(layouts);
    return count;
}

/* ---- the stream ---- */

struct stream {
    double rates[KINDS], sizes[KINDS]; /* arrivals in a mean life; slices */
    double all, slices;                /* of all kinds; asked for in a mean life */
};

static struct stream
bound_stream_of(enum bh_gpu_model model, const struct bh_mig_mix *mix, double load, uint32_t gpus,
                const struct bh_profile *const profiles[KINDS])
{
    struct stream stream = { .slices = load * gpus * bh_model_facts(model)->compute_slices };
    double slices = 0;

    for (uint32_t kind = 0; kind < KINDS; kind++) {
        stream.sizes[kind] = profiles[kind]->compute_slices;
        slices += mix->weights[kind] * stream.sizes[kind];
    }
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        stream.rates[kind] = stream.slices * mix->weights[kind] / slices;
        stream.all += stream.rates[kind];
    }
    return stream;
}

/* ---- the best policy, by value iteration ---- */

/* What stands on each GPU, in falling order: GPUs are alike.  Unused ones are 0. */
struct fleet_state {
    uint32_t layouts[BH_MIG_OPTIMUM_GPUS_MAX];
};

struct problem {
    const struct bound_layouts *layouts;
    struct stream stream;
    uint32_t gpus, states;
    double *values, *next;
    double least, most; /* growth of a value in a mean life, over states */
};

static void
bound_swap_if_less(uint32_t *a, uint32_t *b)
{
    uint32_t was = *a;

    if (*a >= *b)
        return;
    *a = *b;
    *b = was;
}

/* Where the state's value stands: states in order of their first, second, third layout. */
static uint32_t
bound_index_of(struct fleet_state state)
{
    uint32_t *at = state.layouts;

    bound_swap_if_less(&at[0], &at[1]);
    bound_swap_if_less(&at[1], &at[2]);
    bound_swap_if_less(&at[0], &at[1]);
    return at[0] * (at[0] + 1) * (at[0] + 2) / 6 + at[1] * (at[1] + 1) / 2 + at[2];
}

/* With another layout on one GPU. */
static double
bound_value_with(const struct problem *problem, struct fleet_state state, uint32_t gpu, uint32_t layout)
{
    state.layouts[gpu] = layout;
    return problem->values[bound_index_of(state)];
}

/* The best that can be made of a job; `refused` when it fits nowhere. */
static double
bound_best_with(const struct problem *problem, const struct fleet_state *state, uint32_t kind, double refused)
{
    double best = -DBL_MAX;

    for (uint32_t gpu = 0; gpu < problem->gpus; gpu++) {
        const struct bound_layout *layout = &problem->layouts->at[state->layouts[gpu]];

        for (uint32_t i = 0; i < layout->with_count[kind]; i++) {
            double value = bound_value_with(problem, *state, gpu, layout->with[kind][i]);

            best = value > best ? value : best;
        }
    }
    return best > -DBL_MAX ? best + problem->stream.sizes[kind] : refused;
}

/* What the state's value grows by in a mean life. */
static double
bound_growth_of(const struct problem *problem, const struct fleet_state *state)
{
    double value = problem->values[bound_index_of(*state)], growth = 0;

    for (uint32_t kind = 0; kind < KINDS; kind++)
        growth += problem->stream.rates[kind] * (bound_best_with(problem, state, kind, value) - value);
    for (uint32_t gpu = 0; gpu < problem->gpus; gpu++) {
        const struct bound_layout *layout = &problem->layouts->at[state->layouts[gpu]];

        for (uint32_t i = 0; i < layout->count; i++)
            growth += bound_value_with(problem, *state, gpu, layout->without[i]) - value;
    }
    return growth;
}

/* The states in which the first GPU has that layout. */
static void
bound_improve(struct problem *problem, uint32_t first, double step)
{
    uint32_t second_end = problem->gpus > 1 ? first + 1 : 1;

    for (uint32_t second = 0; second < second_end; second++) {
        for (uint32_t third = 0; third < (problem->gpus > 2 ? second + 1 : 1); third++) {
            struct fleet_state state = { { first, second, third } };
            uint32_t at = bound_index_of(state);
            double growth = bound_growth_of(problem, &state);

            problem->next[at] = problem->values[at] + step * growth;
            problem->least = growth < problem->least ? growth : problem->least;
            problem->most = growth > problem->most ? growth : problem->most;
        }
    }
}

/* Values relative to that of the empty fleet, until all grow alike: by what is accepted in
 * a mean life, which lies between the least and the most growth. */
static void
bound_iterate(struct problem *problem)
{
    uint32_t slices = bh_model_facts(problem->layouts->profiles[0]->model)->compute_slices;
    double step = 1 / (problem->stream.all + slices * problem->gpus), empty;

    do {
        double *was = problem->values;

        problem->least = DBL_MAX;
        problem->most = -DBL_MAX;
        for (uint32_t first = 0; first < problem->layouts->count; first++)
            bound_improve(problem, first, step);
        problem->values = problem->next;
        problem->next = was;
        empty = problem->values[0];
        for (uint32_t i = 0; i < problem->states; i++)
            problem->values[i] -= empty;
    } while (problem->most - problem->least > 0.0004 * problem->stream.slices);
}

double
bh_mig_optimum(enum bh_gpu_model model, const struct bh_mig_mix *mix, double load, uint32_t gpus)
{
    struct bound_layouts *layouts = bound_layouts_of(model, mix);
    uint32_t count = layouts->count;
    struct problem problem = { .layouts = layouts,
                               .gpus = gpus,
                               .stream = bound_stream_of(model, mix, load, gpus, layouts->profiles),
                               .states = count * (count + 1) * (count + 2) / 6 };

    BH_ASSERT(gpus > 0 && gpus <= BH_MIG_OPTIMUM_GPUS_MAX);
    problem.values = calloc(problem.states, sizeof(double));
    problem.next = calloc(problem.states, sizeof(double));
    BH_ASSERT(problem.values && problem.next);
    bound_iterate(&problem);
    free(problem.values);
    free(problem.next);
    free(layouts);
    return (problem.least + problem.most) / 2 / problem.stream.slices;
}

/* ---- sizes that only have to add up ---- */

/* How likely so many slices and units are taken, by the recursion of Kaufman and Roberts in
 * two dimensions: s q(s, u) = sum over kinds of rate x slices x q(s - slices, u - units).
 */
struct room {
    uint32_t slices, units;
    double *likely; /* by slices, then units; sums to `all` */
    double all;
};

static double
bound_likely_at(const struct room *room, uint32_t slices, uint32_t units)
{
    return room->likely[(size_t)slices * (room->units + 1) + units];
}

static void
bound_weigh_row(struct room *room, const struct stream *stream,
                const struct bh_profile *const profiles[KINDS], uint32_t slices)
{
    for (uint32_t units = 0; units <= room->units; units++) {
        double sum = 0;

        for (uint32_t kind = 0; kind < KINDS; kind++) {
            const struct bh_profile *profile = profiles[kind];

            if (profile->compute_slices <= slices && profile->memory_units <= units)
                sum +=
                    stream->rates[kind] * profile->compute_slices
                    * bound_likely_at(room, slices - profile->compute_slices, units - profile->memory_units);
        }
        room->likely[(size_t)slices * (room->units + 1) + units] = sum / slices;
        room->all += sum / slices;
    }
}

/* Rows follow from rows, so all may be made smaller by one factor. */
static void
bound_keep_in_range(struct room *room)
{
    size_t count = (size_t)(room->slices + 1) * (room->units + 1);

    if (room->all < 1e250)
        return;
    for (size_t i = 0; i < count; i++)
        room->likely[i] *= 1e-250;
    room->all *= 1e-250;
}

/* Slices of the kind that are accepted in a mean life, times `all`. */
static double
bound_accepted(const struct room *room, const struct stream *stream, uint32_t kind,
               const struct bh_profile *profile)
{
    double fits = 0;

    for (uint32_t slices = 0; slices + profile->compute_slices <= room->slices; slices++)
        for (uint32_t units = 0; units + profile->memory_units <= room->units; units++)
            fits += bound_likely_at(room, slices, units);
    return fits * stream->rates[kind] * stream->sizes[kind];
}

double
bh_mig_moving(enum bh_gpu_model model, const struct bh_mig_mix *mix, double load, uint32_t gpus)
{
    struct bh_mig_fleet *fleet = bh_mig_fleet_new(model, 1, BH_MIG_FIRST_FIT, mix);
    const struct bh_profile *profiles[KINDS];
    struct room room = { .slices = gpus * bh_model_facts(model)->compute_slices,
                         .units = gpus * bh_model_facts(model)->memory_units,
                         .all = 1 };
    struct stream stream;
    double sum = 0;

    BH_ASSERT(gpus > 0 && gpus <= BH_MIG_MOVING_GPUS_MAX);
    for (uint32_t kind = 0; kind < KINDS; kind++)
        profiles[kind] = bh_mig_fleet_profile(fleet, kind);
    bh_mig_fleet_free(fleet);
    stream = bound_stream_of(model, mix, load, gpus, profiles);
    room.likely = calloc((size_t)(room.slices + 1) * (room.units + 1), sizeof(double));
    BH_ASSERT(room.likely);
    room.likely[0] = room.all;
    for (uint32_t slices = 1; slices <= room.slices; slices++) {
        bound_weigh_row(&room, &stream, profiles, slices);
        bound_keep_in_range(&room);
    }
    for (uint32_t kind = 0; kind < KINDS; kind++)
        sum += bound_accepted(&room, &stream, kind, profiles[kind]) / room.all;
    free(room.likely);
    return sum / stream.slices;
}
