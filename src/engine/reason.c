#include "engine/reason.h"

const char *const bh_reason_names[BH_REASONS] = {
#define BH_REASON(code, name, doc) [BH_REASON_##code] = name,
#include "tables/reasons.tbl"
#undef BH_REASON
};
