#include "node/partition/health_rules.h"

#include "base/test.h"

#define MINUTE (60 * BH_NS_PER_S)

static const struct {
    const char *name;
    struct bh_device_health before, now;
    bh_ns span;
    enum bh_health_rule first, second; /* 0: none */
    /* clang-format off */
} cases[] = {
    { "nothing", { 0 }, { 0 }, MINUTE, 0, 0 },
    { "the driver wants a reset", { 0 }, { .recovery = 1 }, MINUTE, BH_HEALTH_RULE_RECOVERY, 0 },
    { "and nothing any more", { .recovery = 1 }, { 0 }, MINUTE, BH_HEALTH_RULE_RECOVERY, 0 },
    { "nothing, as it was not known", { .recovery = UINT32_MAX }, { 0 }, MINUTE, 0, 0 },
    { "it cannot say", { .recovery = 1 }, { .recovery = UINT32_MAX }, MINUTE, 0, 0 },
    { "a word that nobody knows", { 0 }, { .recovery = 77 }, MINUTE, 0, 0 },
    { "remap", { 0 }, { .remap_pending = true }, MINUTE, BH_HEALTH_RULE_REMAP_PENDING, 0 },
    { "still", { .remap_pending = true }, { .remap_pending = true }, MINUTE, 0, 0 },
    { "failed", { .remap_pending = true }, { .remap_failed = true }, MINUTE, BH_HEALTH_RULE_REMAP_FAILED, 0 },
    { "retired", { 0 }, { .retired_pending = true }, MINUTE, BH_HEALTH_RULE_RETIRED_PENDING, 0 },
    { "one double bit", { .ecc_uncorrected = 3 }, { .ecc_uncorrected = 4 }, MINUTE,
      BH_HEALTH_RULE_ECC_UNCORRECTED, 0 },
    { "counted anew", { .ecc_uncorrected = 3 }, { .ecc_uncorrected = 1 }, MINUTE, 0, 0 },
    { "ten a minute are borne", { 0 }, { .ecc_corrected = 10 }, MINUTE, 0, 0 },
    { "eleven are not", { 0 }, { .ecc_corrected = 11 }, MINUTE, BH_HEALTH_RULE_ECC_CORRECTED, 0 },
    { "eleven in two are", { 0 }, { .ecc_corrected = 11 }, 2 * MINUTE, 0, 0 },
    { "ten at once are borne", { 0 }, { .ecc_corrected = 10 }, BH_NS_PER_S, 0, 0 },
    { "PCIe", { 0 }, { .pcie_replays = 17 }, MINUTE, BH_HEALTH_RULE_PCIE_REPLAYS, 0 },
    { "a link replays", { 0 }, { .nvlink_replays = 1 }, MINUTE, BH_HEALTH_RULE_NVLINK_REPLAYS, 0 },
    { "a link has an error", { 0 }, { .nvlink_crc = 1 }, MINUTE, BH_HEALTH_RULE_NVLINK_CRC, 0 },
    { "a link has many", { 0 }, { .nvlink_crc = 101 }, BH_NS_PER_S, BH_HEALTH_RULE_NVLINK_REPLAYS, 0 },
    { "hot and short of power", { .thermal_ns = 1, .power_ns = 1 },
      { .thermal_ns = 2, .power_ns = 2 }, MINUTE, BH_HEALTH_RULE_THERMAL, BH_HEALTH_RULE_POWER },
};
/* clang-format on */

static void
what_changed(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        enum bh_health_rule signs[BH_HEALTH_RULES] = { BH_HEALTH_RULE_NONE };
        uint32_t count = bh_health_rules_compare(&cases[i].before, &cases[i].now, cases[i].span, signs);

        BH_CHECK_EQ(cases[i].name, count, (cases[i].first != 0) + (cases[i].second != 0));
        BH_CHECK_EQ(cases[i].name, signs[0], cases[i].first);
        BH_CHECK_EQ(cases[i].name, signs[1], cases[i].second);
    }
    BH_CHECK_DONE();
}

/* A lasting sign is reported at the first reading; old counters are not. */
static void
what_stands(void **state)
{
    struct bh_device_health now = {
        .recovery = 2, .remap_failed = true, .ecc_uncorrected = 9, .thermal_ns = 9
    };
    struct bh_device_health none = bh_health_rules_none(&now);
    enum bh_health_rule signs[BH_HEALTH_RULES];

    assert_int_equal(bh_health_rules_compare(&none, &now, MINUTE, signs), 2);
    assert_int_equal(signs[0], BH_HEALTH_RULE_RECOVERY);
    assert_int_equal(signs[1], BH_HEALTH_RULE_REMAP_FAILED);
}

static void
what_a_reset_cures(void **state)
{
    static const struct {
        const char *name;
        struct bh_device_health now;
        bool cured;
    } tests[] = {
        { "all well", { 0 }, true },
        { "an old driver", { .recovery = UINT32_MAX }, true },
        { "recovery action", { .recovery = 4 }, false },
        { "reset status", { .reset_wanted = true }, false },
        { "drain status", { .drain_wanted = true }, false },
        { "remap", { .remap_pending = true }, false },
        { "retirement", { .retired_pending = true }, false },
        { "failed rows are for people to judge", { .remap_failed = true }, true },
        { "errors that were", { .ecc_uncorrected = 1 }, true },
    };

    for (size_t i = 0; i < BH_COUNT(tests); i++)
        BH_CHECK_EQ(tests[i].name, bh_health_rules_uncured(&tests[i].now) == NULL, tests[i].cured);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_changed),
    cmocka_unit_test(what_stands),
    cmocka_unit_test(what_a_reset_cures),
};
BH_TEST_MAIN(tests)
