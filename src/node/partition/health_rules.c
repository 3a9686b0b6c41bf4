#include "node/partition/health_rules.h"

#include "base/attr.h"

/* Limits, as DCGM has them.  PCIe: 0.96 replays a minute and lane at generation 4, 16 lanes:
 * generation and lanes are not asked for. */
enum {
    CORRECTED_A_MINUTE = 10,
    PCIE_REPLAYS_A_MINUTE = 16,
    CRC_A_SECOND = 100,
};

static uint64_t
health_rules_grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* Whether so many in so short a time are more than the limit. */
static bool
exceeds(uint64_t count, uint64_t limit, bh_ns per, bh_ns span)
{
    return count > limit && count > (uint64_t)((unsigned __int128)limit * span / per);
}

static bool
wants_other(uint32_t before, uint32_t now)
{
    return now < BH_RECOVERIES && now != before && (now != BH_RECOVERY_NONE || before < BH_RECOVERIES);
}

uint32_t
bh_health_rules_compare(const struct bh_device_health *before, const struct bh_device_health *now, bh_ns span,
                        enum bh_health_rule ret_rules[BH_HEALTH_RULES])
{
    uint64_t crc = health_rules_grown(before->nvlink_crc, now->nvlink_crc);
    bool links = health_rules_grown(before->nvlink_replays, now->nvlink_replays) > 0
                 || exceeds(crc, CRC_A_SECOND, BH_NS_PER_S, span);
    const struct {
        enum bh_health_rule rule;
        bool shown;
        /* clang-format off */
    } rules[] = {
        { BH_HEALTH_RULE_RECOVERY, wants_other(before->recovery, now->recovery) },
        { BH_HEALTH_RULE_REMAP_PENDING, now->remap_pending && !before->remap_pending },
        { BH_HEALTH_RULE_REMAP_FAILED, now->remap_failed && !before->remap_failed },
        { BH_HEALTH_RULE_RETIRED_PENDING, now->retired_pending && !before->retired_pending },
        { BH_HEALTH_RULE_ECC_UNCORRECTED, health_rules_grown(before->ecc_uncorrected, now->ecc_uncorrected) > 0 },
        { BH_HEALTH_RULE_ECC_CORRECTED, exceeds(health_rules_grown(before->ecc_corrected, now->ecc_corrected),
                                         CORRECTED_A_MINUTE, 60 * BH_NS_PER_S, span) },
        { BH_HEALTH_RULE_PCIE_REPLAYS, exceeds(health_rules_grown(before->pcie_replays, now->pcie_replays),
                                        PCIE_REPLAYS_A_MINUTE, 60 * BH_NS_PER_S, span) },
        { BH_HEALTH_RULE_NVLINK_REPLAYS, links },
        { BH_HEALTH_RULE_NVLINK_CRC, crc > 0 && !links },
        { BH_HEALTH_RULE_THERMAL, health_rules_grown(before->thermal_ns, now->thermal_ns) > 0 },
        { BH_HEALTH_RULE_POWER, health_rules_grown(before->power_ns, now->power_ns) > 0 },
    };
    /* clang-format on */
    uint32_t count = 0;

    for (size_t i = 0; i < BH_COUNT(rules); i++)
        if (rules[i].shown)
            ret_rules[count++] = rules[i].rule;
    return count;
}

struct bh_device_health
bh_health_rules_none(const struct bh_device_health *now)
{
    struct bh_device_health none = *now;

    none.recovery = UINT32_MAX;
    none.remap_pending = none.remap_failed = none.retired_pending = false;
    return none;
}

const char *
bh_health_rules_uncured(const struct bh_device_health *now)
{
    if (now->recovery < BH_RECOVERIES && now->recovery != BH_RECOVERY_NONE)
        return bh_recovery_names[now->recovery];
    if (now->reset_wanted)
        return "reset required";
    if (now->drain_wanted)
        return "drain and reset recommended";
    return now->remap_pending ? "remap pending" : now->retired_pending ? "retirement pending" : NULL;
}
