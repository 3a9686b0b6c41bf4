#include "node/common/scrub_report.h"

static const char *const end_names[BH_SCRUB_ENDS] = {
    [BH_SCRUB_END_CLEAN] = "clean",
    [BH_SCRUB_END_UNFILLED] = "unfilled",
    [BH_SCRUB_END_NO_LIBRARY] = "no-library",
    [BH_SCRUB_END_REFUSED] = "refused",
};

static const struct bh_field rows[] = {
    BH_F(struct bh_scrub_report, bytes, BH_FIELD_U64),
    BH_F_ENUM(struct bh_scrub_report, end, end_names, .flags = BH_FIELD_REQUIRED | BH_FIELD_ALWAYS),
    BH_F(struct bh_scrub_report, memory_bytes, BH_FIELD_U64),
    BH_F(struct bh_scrub_report, peak_mib_s, BH_FIELD_U64),
    BH_F(struct bh_scrub_report, residue, BH_FIELD_U64),
    BH_F(struct bh_scrub_report, samples, BH_FIELD_U64),
    BH_F(struct bh_scrub_report, unfilled, BH_FIELD_U64),
    BH_F(struct bh_scrub_report, uuid, BH_FIELD_STR),
    BH_F(struct bh_scrub_report, why, BH_FIELD_STR),
    BH_F(struct bh_scrub_report, work_ns, BH_FIELD_U64),
};
const struct bh_fields bh_scrub_report_fields = BH_FIELDS("scrub_report", struct bh_scrub_report, rows);
