#include "node/sandbox/isolation_report.h"

#include <stdio.h>

#include "base/assert.h"

void
bh_report_put(struct bh_report *report, const struct bh_msg_check *check, enum bh_evidence_by by)
{
    bool failed = check->result == BH_CHECK_FAIL;

    BH_ASSERT(check->result < BH_CHECK_RESULTS && report->count <= BH_REPORT_CHECKS_MAX);
    if (report->count < BH_REPORT_CHECKS_MAX)
        report->checks[report->count++] = *check;
    if (check->result != BH_CHECK_PASS && (!*report->why || (failed && report->failed == 0)))
        snprintf(report->why, sizeof report->why, "%s: %s", check->name, check->answer);
    report->failed += failed;
    report->inconclusive += check->result == BH_CHECK_INCONCLUSIVE;
    report->by_host = report->by_host || (failed && by == BH_EVIDENCE_BY_HOST);
}

enum bh_check_result
bh_report_result(const struct bh_report *report)
{
    if (report->failed > 0)
        return BH_CHECK_FAIL;
    return report->inconclusive > 0 || report->count == 0 ? BH_CHECK_INCONCLUSIVE : BH_CHECK_PASS;
}

bool
bh_report_is_trespass(const struct bh_report *report)
{
    return report->trespassed && report->failed == 0;
}

const struct bh_evidence_remedy *
bh_report_remedy(const struct bh_report *report, enum bh_evidence_of of)
{
    return bh_evidence_remedy(of, bh_report_result(report),
                              report->by_host ? BH_EVIDENCE_BY_HOST : BH_EVIDENCE_BY_JOB);
}
