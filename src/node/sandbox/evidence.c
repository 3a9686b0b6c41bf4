#include "node/sandbox/evidence.h"

#include "base/assert.h"
#include "model/boundary.h"

#define PASS                                                                                                 \
    {                                                                                                        \
        [BH_EVIDENCE_BY_JOB] = { 0 }, [BH_EVIDENCE_BY_HOST] = { 0 }                                          \
    }
#define BOTH(...)                                                                                            \
    {                                                                                                        \
        [BH_EVIDENCE_BY_JOB] = { __VA_ARGS__ }, [BH_EVIDENCE_BY_HOST] = { __VA_ARGS__ }                      \
    }

const struct bh_evidence_remedy *
bh_evidence_remedy(enum bh_evidence_of of, enum bh_check_result result, enum bh_evidence_by by)
{
    static const struct bh_evidence_remedy
        remedies[BH_EVIDENCE_OFS][BH_CHECK_RESULTS][BH_EVIDENCE_BYS] = {
        [BH_EVIDENCE_PROBE] = {
            [BH_CHECK_PASS]         = PASS,
            [BH_CHECK_INCONCLUSIVE] = BOTH(.retry = true, .closes_node = true),
            [BH_CHECK_FAIL]         = BOTH(.closes_node = true),
        },
        [BH_EVIDENCE_START] = {
            [BH_CHECK_PASS]         = PASS,
            [BH_CHECK_INCONCLUSIVE] = BOTH(.retry = true, .unverified = true),
            [BH_CHECK_FAIL] = {
                [BH_EVIDENCE_BY_JOB]  = { .ends = true, .unverified = true },
                [BH_EVIDENCE_BY_HOST] = { .ends = true, .unverified = true, .closes_gpu = true },
            },
        },
        [BH_EVIDENCE_LEASE] = {
            [BH_CHECK_PASS]         = PASS,
            [BH_CHECK_INCONCLUSIVE] = BOTH(.retry = true, .unverified = true),
            [BH_CHECK_FAIL] = {
                [BH_EVIDENCE_BY_JOB]  = { .ends = true, .unverified = true },
                [BH_EVIDENCE_BY_HOST] = { .ends = true, .unverified = true, .closes_gpu = true },
            },
        },
    };

    BH_ASSERT(of < BH_EVIDENCE_OFS);
    BH_ASSERT(result < BH_CHECK_RESULTS && by < BH_EVIDENCE_BYS);
    return &remedies[of][result][by];
}

enum bh_evidence_next
bh_evidence_next(uint32_t rechecks_made, bool boundary_needs_grade)
{
    if (rechecks_made < BH_EVIDENCE_RECHECKS)
        return BH_EVIDENCE_RECHECK;
    return boundary_needs_grade ? BH_EVIDENCE_STOP : BH_EVIDENCE_LEAVE;
}

bool
bh_evidence_is_needed(uint32_t boundary)
{
    return boundary != BH_BOUNDARY_NONE && boundary != BH_BOUNDARY_SOFT;
}
