#include "model/layout.h"

#include <string.h>

#include "base/buf.h"
#include "base/num.h"

#define NO_START UINT32_MAX

static const struct bh_field entry_rows[] = {
    BH_F(struct bh_layout_entry, forget, BH_FIELD_BOOL,
         .doc = "nothing is declared; existing instances are left alone"),
    BH_F(struct bh_layout_entry, gpu, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = 160,
         .doc = "\"GPU-...\", a node with a GPU's index, \"node/0\", or \"all\""),
    BH_F(struct bh_layout_entry, partitions, BH_FIELD_TEXTS, .max = BH_LAYOUT_PARTITIONS_MAX,
         .doc = "MIG profiles: \"1g.10gb x7\", \"3g.40gb@4\"; none: no instance at all"),
    BH_F_OLD(struct bh_layout_entry, partitions, "pieces", BH_FIELD_TEXTS, .max = BH_LAYOUT_PARTITIONS_MAX,
             .doc = "now partitions"),
};
static const struct bh_fields entry_fields = BH_FIELDS("layout_entry", struct bh_layout_entry, entry_rows);

static const struct bh_field layout_rows[] = {
    BH_F(struct bh_layouts, layouts, BH_FIELD_LIST, .flags = BH_FIELD_REQUIRED, .of = &entry_fields,
         .max = BH_LAYOUT_ENTRIES_MAX,
         .doc = "what must be ready on GPUs; those that are not named are left alone"),
};
const struct bh_fields bh_layout_fields = BH_FIELDS("layout", struct bh_layouts, layout_rows);

/* ---- what is written ---- */

/* "1g.10gb x7" or "3g.40gb@4", taken apart. */
struct layout_words {
    char profile[24];
    uint32_t start, times;
};

static bh_rc
layout_not_a_partition(const char *text, struct bh_err *err)
{
    bh_err_set(err, BH_INVALID, "\"%.40s\" is not a partition of a layout", text);
    return bh_err_hint(err, "write a profile, as 3g.40gb, 3g.40gb@4 or \"1g.10gb x7\"");
}

static bh_rc
read_layout_words(const char *text, struct layout_words *ret_words, struct bh_err *err)
{
    size_t name = strcspn(text, "@ ");
    const char *rest = text + name;
    struct layout_words words = { .start = NO_START, .times = 1 };
    bh_rc rc = BH_OK;

    if (name == 0 || name >= sizeof words.profile)
        return layout_not_a_partition(text, err);
    memcpy(words.profile, text, name);
    if (*rest == '@')
        rc = bh_parse_u32(rest + 1, 0, 31, &words.start, err);
    else if (*rest == ' ')
        rc = rest[1] == 'x' ? bh_parse_u32(rest + 2, 1, BH_LAYOUT_PARTITIONS_MAX, &words.times, err)
                            : BH_INVALID;
    if (rc != BH_OK)
        return layout_not_a_partition(text, err);
    *ret_words = words;
    return BH_OK;
}

/* ---- where they stand ---- */

static bh_rc
layout_unknown_profile(enum bh_gpu_model model, const char *name, struct bh_err *err)
{
    char memory[160];
    struct bh_buf known;
    uint32_t count;
    const struct bh_profile *profile = bh_profile_first(model, &count);

    bh_buf_init_fixed(&known, memory, sizeof memory);
    for (uint32_t i = 0; i < count; i++)
        if (profile[i].plain)
            bh_buf_printf(&known, "%s%s", known.length ? ", " : "", profile[i].name);
    bh_err_set(err, BH_INVALID, "GPUs of model %s have no MIG profile %s",
               bh_model_facts(model) ? bh_model_facts(model)->name : "that is not known", name);
    return known.length ? bh_err_hint(err, "they have %s", bh_buf_text(&known)) : err->rc;
}

static bh_rc
layout_add_partitions(enum bh_gpu_model model, const char *text, struct bh_layout_plan *plan,
                      struct bh_err *err)
{
    const struct bh_profile *profile;
    struct layout_words words;
    bh_rc rc = read_layout_words(text, &words, err);

    if (rc != BH_OK)
        return rc;
    profile = bh_profile_find(model, words.profile);
    if (!profile)
        return layout_unknown_profile(model, words.profile, err);
    if (words.start != NO_START && !(profile->starts >> words.start & 1))
        return bh_err_set(err, BH_INVALID, "a %s cannot start at %u", profile->name, words.start);
    if (plan->count + words.times > BH_LAYOUT_PARTITIONS_MAX)
        return bh_err_set(err, BH_INVALID, "a GPU holds at most %d instances", BH_LAYOUT_PARTITIONS_MAX);
    for (uint32_t i = 0; i < words.times; i++)
        plan->partitions[plan->count++] = (struct bh_layout_partition){ profile, words.start };
    return BH_OK;
}

/* Largest first, those with a start of their own before all others. */
static bool
layout_comes_first(const struct bh_layout_partition *a, const struct bh_layout_partition *b)
{
    if ((a->start == NO_START) != (b->start == NO_START))
        return a->start != NO_START;
    if (a->profile->memory_units != b->profile->memory_units)
        return a->profile->memory_units > b->profile->memory_units;
    return a->profile->compute_slices > b->profile->compute_slices;
}

static void
layout_sort(struct bh_layout_plan *plan,
            bool (*before)(const struct bh_layout_partition *, const struct bh_layout_partition *))
{
    for (uint32_t i = 1; i < plan->count; i++)
        for (uint32_t k = i; k > 0 && before(&plan->partitions[k], &plan->partitions[k - 1]); k--) {
            struct bh_layout_partition partition = plan->partitions[k];

            plan->partitions[k] = plan->partitions[k - 1];
            plan->partitions[k - 1] = partition;
        }
}

static bool
layout_starts_first(const struct bh_layout_partition *a, const struct bh_layout_partition *b)
{
    return a->start < b->start;
}

/* The partitions from `at` on, beside what stands already: every way is tried, and at most seven
 * partitions have at most eight starts. */
static bool
layout_fit(struct bh_layout_plan *plan, uint32_t at, const struct bh_occupancy *occupancy)
{
    struct bh_layout_partition *partition = &plan->partitions[at];
    uint32_t said = at < plan->count ? partition->start : 0;

    if (at == plan->count)
        return true;
    for (uint32_t start = 0; start < 32; start++) {
        struct bh_occupancy next = *occupancy;

        if ((said != NO_START && start != said) || !bh_occupancy_fits(&next, partition->profile, start))
            continue;
        bh_occupancy_add(&next, partition->profile, start);
        partition->start = start;
        if (layout_fit(plan, at + 1, &next))
            return true;
        partition->start = said;
    }
    return false;
}

/* Names the first partition that has no room beside those before it. */
static bh_rc
layout_no_fit(enum bh_gpu_model model, struct bh_layout_plan *plan, struct bh_err *err)
{
    static const struct bh_occupancy empty;
    uint32_t count = plan->count;

    for (plan->count = 1; plan->count < count; plan->count++) {
        struct bh_layout_plan some = *plan;

        if (!layout_fit(&some, 0, &empty))
            break;
    }
    bh_err_set(err, BH_INVALID, "%s does not fit on a GPU of model %s with the %u others",
               plan->partitions[plan->count - 1].profile->name, bh_model_facts(model)->name, plan->count - 1);
    return bh_err_hint(err, "the model has %u memory units and %u compute slices",
                       bh_model_facts(model)->memory_units, bh_model_facts(model)->compute_slices);
}

bh_rc
bh_layout_plan_partitions(enum bh_gpu_model model, const struct bh_texts *partitions,
                          struct bh_layout_plan *ret_plan, struct bh_err *err)
{
    static const struct bh_occupancy empty;
    struct bh_layout_plan plan = { .count = 0 };

    for (uint32_t i = 0; i < partitions->count; i++) {
        bh_rc rc = layout_add_partitions(model, partitions->items[i], &plan, err);

        if (rc != BH_OK)
            return rc;
    }
    layout_sort(&plan, layout_comes_first);
    if (!layout_fit(&plan, 0, &empty))
        return layout_no_fit(model, &plan, err);
    layout_sort(&plan, layout_starts_first);
    *ret_plan = plan;
    return BH_OK;
}
