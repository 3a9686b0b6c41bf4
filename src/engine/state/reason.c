#include "engine/state/reason.h"

const char *const bh_reason_names[BH_REASONS] = {
#define BH_REASON(code, name, doc) [BH_REASON_##code] = name,
#include "tables/reasons.tbl"
#undef BH_REASON
};

const char *const bh_guarantee_cause_names[BH_GUARANTEE_CAUSES] = {
    [BH_GUARANTEE_NO_CAUSE] = "untold",
    [BH_GUARANTEE_USED] = "used",
    [BH_GUARANTEE_NO_BORROWER] = "nobody_borrows",
    [BH_GUARANTEE_NEVER] = "never_preempted",
    [BH_GUARANTEE_YOUNG] = "min_runtime",
    [BH_GUARANTEE_RESET] = "gpu_reset",
    [BH_GUARANTEE_TOO_LITTLE] = "too_little",
    [BH_GUARANTEE_SPENT] = "spent",
};
