#include "model/share.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/test.h"
#include "model/partition.h"

static const enum bh_gpu_model h100 = BH_GPU_H100_80GB;

/* An H100 has 81559 MiB: 408 are kept back for the driver (22 of 4200 parts) and 600 for each
 * context (31 parts). */
static void
sizes_are_exact_or_named(void **state)
{
    static const struct {
        const char *name, *share, *memory;
        enum bh_rounding rounding;
        bh_rc rc;
        uint32_t compute, memory_parts;
    } cases[] = {
        { "a quarter, even memory", "1/4", NULL, 0, BH_OK, 1050, 1013 },
        { "as percent", "25%", NULL, 0, BH_OK, 1050, 1013 },
        { "as decimal", "0.25", NULL, 0, BH_OK, 1050, 1013 },
        { "the whole of it", "1", NULL, 0, BH_OK, 4200, 4147 },
        { "memory as percent", "10%", "20%", 0, BH_OK, 420, 840 },
        { "a half of memory", "1/7", "1/2", 0, BH_OK, 600, 2100 },
        { "bytes rounded up", "1/4", "18Gi", BH_ROUNDING_UP, BH_OK, 1050, 950 },
        { "bytes rounded down", "1/4", "18Gi", BH_ROUNDING_DOWN, BH_OK, 1050, 949 },
        { "bytes that are no parts", "1/4", "18Gi", 0, BH_INVALID, 0, 0 },
        { "exact bytes", "1/4", "81559Mi", 0, BH_RANGE, 0, 0 },
        { "no whole parts of compute", "0.33333", NULL, 0, BH_INVALID, 0, 0 },
        { "not even when rounded", "0.33333", NULL, BH_ROUNDING_UP, BH_INVALID, 0, 0 },
        { "nothing", "0", NULL, 0, BH_RANGE, 0, 0 },
        { "no memory", "1/4", "0", 0, BH_RANGE, 0, 0 },
        { "rounded to nothing", "1/4", "1Mi", BH_ROUNDING_DOWN, BH_RANGE, 0, 0 },
        { "more than one", "101%", NULL, 0, BH_RANGE, 0, 0 },
        { "all memory", "1/4", "100%", 0, BH_RANGE, 0, 0 },
        { "more bytes than there are", "1/4", "90Gi", BH_ROUNDING_UP, BH_RANGE, 0, 0 },
        { "junk", "a quarter", NULL, 0, BH_INVALID, 0, 0 },
        { "junk memory", "1/4", "lots", 0, BH_INVALID, 0, 0 },
        { "a bare sign", "%", NULL, 0, BH_INVALID, 0, 0 },
        { "half a percent", "0.5%", NULL, 0, BH_INVALID, 0, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_share_words words = { cases[i].share, cases[i].memory, cases[i].rounding, 0 };
        struct bh_share share = { 0 };
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].name, bh_share_parse(h100, &words, &share, &err), cases[i].rc);
        BH_CHECK_EQ(cases[i].name, share.compute, cases[i].compute);
        BH_CHECK_EQ(cases[i].name, share.memory, cases[i].memory_parts);
    }
    BH_CHECK_DONE();
}

static void
models_without_facts_are_not_shared(void **state)
{
    struct bh_share share = { 7, 7, 0 };
    struct bh_err err = { 0 };

    BH_CHECK_EQ("refused",
                bh_share_parse(BH_GPU_MODEL_NONE, &(struct bh_share_words){ .share = "1/4" }, &share, &err),
                BH_INVALID);
    BH_CHECK_EQ("untouched", share.compute, 7);
    BH_CHECK_EQ("no context", bh_share_context_bytes(BH_GPU_MODEL_NONE), 0);
    BH_CHECK("no such piece",
             !bh_partition_exists(BH_GPU_MODEL_NONE, bh_share_profile(&(struct bh_share){ 1, 1, 0 }).v));
    for (uint32_t model = 1; model < BH_GPU_MODELS; model++) {
        const char *name = bh_model_facts((enum bh_gpu_model)model)->name;

        BH_CHECK(name, bh_share_reserve_parts((enum bh_gpu_model)model) > 0);
        BH_CHECK(name, bh_share_context_parts((enum bh_gpu_model)model) > 0);
        BH_CHECK(name, bh_share_is_assumed((enum bh_gpu_model)model));
    }
    BH_CHECK_DONE();
}

/* The share of a name; BH_INVALID: a name is written in one way alone. */
static bh_rc
share_of_name(enum bh_gpu_model model, const char *name, struct bh_share *ret_share)
{
    static const char *const suffixes[BH_SHARE_MODES] = {
        [BH_SHARE_WORK_CONSERVING] = "",
        [BH_SHARE_HARD] = "+hard",
        [BH_SHARE_LATENCY] = "+lat",
        [BH_SHARE_MULTIPLEXED] = "+mux",
    };
    char text[BH_SHARE_NAME_MAX], again[BH_SHARE_NAME_MAX];
    const char *colon = strchr(name, ':'), *plus = strchr(name, '+');
    struct bh_share_words words = { .share = text, .rounding = BH_ROUNDING_UP };
    struct bh_err err;

    if (!colon || strlen(name) >= sizeof text)
        return BH_INVALID;
    memcpy(text, name, strlen(name) + 1);
    text[colon - name] = '\0';
    words.memory = &text[colon - name + 1];
    if (plus)
        text[plus - name] = '\0';
    while (plus && words.mode < BH_SHARE_MODES && strcmp(suffixes[words.mode], plus) != 0)
        words.mode++;
    if (words.mode == BH_SHARE_MODES || bh_share_parse(model, &words, ret_share, &err) != BH_OK)
        return BH_INVALID;
    bh_share_format(model, ret_share, again);
    return strcmp(again, name) == 0 ? BH_OK : BH_INVALID;
}

static void
numbers_and_names_say_all_of_a_share(void **state)
{
    for (uint32_t model = 1; model < BH_GPU_MODELS; model++)
        for (uint32_t step = 1; step <= BH_GPU_PARTS; step += 13) {
            struct bh_share share = { step, BH_GPU_PARTS + 1 - step,
                                      (enum bh_share_mode)(step % BH_SHARE_MODES) },
                            back = { 0 };
            uint32_t kept = bh_share_reserve_parts((enum bh_gpu_model)model)
                            + bh_share_context_parts((enum bh_gpu_model)model);
            char name[BH_SHARE_NAME_MAX];

            BH_CHECK("number", bh_share_get(bh_share_profile(&share), &back)
                                   && memcmp(&share, &back, sizeof share) == 0);
            bh_share_format((enum bh_gpu_model)model, &share, name);
            if (share.memory + kept > BH_GPU_PARTS)
                continue;
            BH_CHECK_EQ(name, share_of_name((enum bh_gpu_model)model, name, &back), BH_OK);
            BH_CHECK(name, memcmp(&share, &back, sizeof share) == 0);
        }
    BH_CHECK_DONE();
}

static void
a_name_without_a_model_says_parts(void **state)
{
    char name[BH_SHARE_NAME_MAX];

    bh_share_format(BH_GPU_MODEL_NONE, &(struct bh_share){ 1050, 950, BH_SHARE_HARD }, name);
    BH_CHECK("parts", strcmp(name, "1/4:950p+hard") == 0);
    BH_CHECK_DONE();
}

static void
other_numbers_are_no_shares(void **state)
{
    static const uint32_t none[] = { 0,
                                     1,
                                     2,
                                     57,
                                     1u << 30,
                                     1u << 30 | 1050,
                                     1u << 30 | 1050u << 13,
                                     1u << 30 | 4201u << 13 | 1,
                                     1u << 30 | 1u << 13 | 4201,
                                     1u << 31 | 1u << 30 | 1u << 13 | 1,
                                     1u << 30 | 1u << 28 | 1u << 13 | 1,
                                     UINT32_MAX };
    static const char *const texts[] = { "1g.10gb",
                                         "whole",
                                         "1/4",
                                         "1/4:",
                                         ":18448Mi",
                                         "2/8:18448Mi",
                                         "1/4:18449Mi",
                                         "1/4:18Gi",
                                         "1/4:18448Mi+soft",
                                         "1/4:18448Mi+",
                                         "1111111111/4:18448Mi+hard" };
    struct bh_share share = { 0 };

    for (size_t i = 0; i < BH_COUNT(none); i++)
        BH_CHECK_EQ("no number", bh_share_get((bh_profile_id){ none[i] }, &share), false);
    for (size_t i = 0; i < BH_COUNT(texts); i++)
        BH_CHECK(texts[i], share_of_name(h100, texts[i], &share) != BH_OK);
    BH_CHECK_DONE();
}

static void
caps_are_whole_granules_that_hold_what_was_asked(void **state)
{
    struct bh_share share = { 1050, 950, 0 };

    BH_CHECK_EQ("18Gi rounded up", bh_share_cap_bytes(h100, &share), UINT64_C(18446) << 20);
    for (uint32_t parts = 1; parts <= BH_GPU_PARTS; parts++) {
        share.memory = parts;
        BH_CHECK_EQ("granule", bh_share_cap_bytes(h100, &share) % BH_SHARE_GRANULE_BYTES, 0);
    }
    BH_CHECK("all of them are no more than there is", bh_share_cap_bytes(h100, &share) <= UINT64_C(81559)
                                                                                              << 20);
    BH_CHECK_DONE();
}

/* So many of them fit as both dimensions and the slots allow, each with its context. */
static void
as_many_fit_as_there_is_for(void **state)
{
    static const struct {
        const char *name;
        struct bh_share share;
        uint32_t limit, capacity;
    } cases[] = {
        { "four even quarters", { 1050, 1013, 0 }, BH_GPU_PARTS, 4 },
        { "a part more of memory", { 1050, 1014, 0 }, BH_GPU_PARTS, 3 },
        { "a part more of compute", { 1051, 1013, 0 }, BH_GPU_PARTS, 3 },
        { "contexts take room, too", { 1, 100, 0 }, BH_GPU_PARTS, 31 },
        { "no more than slots", { 1, 1, 0 }, BH_GPU_PARTS, BH_GPU_SHARES_MAX },
        { "not to be shared", { 1, 1, 0 }, 0, 0 },
        { "oversubscribed", { 2100, 500, 0 }, 2 * BH_GPU_PARTS, 4 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_occupancy occupancy = { .share_limit = cases[i].limit }, empty = occupancy;
        uint32_t profile = bh_share_profile(&cases[i].share).v, slot = 0;

        BH_CHECK_EQ(cases[i].name, bh_partition_capacity(&occupancy, h100, profile), cases[i].capacity);
        for (; bh_partition_fits(&occupancy, h100, profile, slot); slot++) {
            bh_partition_add(&occupancy, h100, profile, slot);
            BH_CHECK_EQ(cases[i].name, bh_partition_capacity(&occupancy, h100, profile),
                        cases[i].capacity - slot - 1);
        }
        BH_CHECK_EQ(cases[i].name, slot, cases[i].capacity);
        for (; slot > 0; slot--)
            bh_partition_remove(&occupancy, h100, profile, slot - 1);
        BH_CHECK(cases[i].name, memcmp(&occupancy, &empty, sizeof empty) == 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_are_exact_or_named),
    cmocka_unit_test(models_without_facts_are_not_shared),
    cmocka_unit_test(numbers_and_names_say_all_of_a_share),
    cmocka_unit_test(a_name_without_a_model_says_parts),
    cmocka_unit_test(other_numbers_are_no_shares),
    cmocka_unit_test(caps_are_whole_granules_that_hold_what_was_asked),
    cmocka_unit_test(as_many_fit_as_there_is_for),
};
BH_TEST_MAIN(tests)
