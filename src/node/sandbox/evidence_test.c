/* What follows from an isolation check, read down the table. */

#include <stddef.h>

#include "base/test.h"
#include "model/boundary.h"
#include "node/sandbox/evidence.h"

/* As letters: Ends, Unverified, Again, one Gpu, whole Node. */
static const char *
letters_of(const struct bh_evidence_remedy *remedy)
{
    static char text[6];

    text[0] = remedy->ends ? 'E' : '.';
    text[1] = remedy->unverified ? 'U' : '.';
    text[2] = remedy->retry ? 'A' : '.';
    text[3] = remedy->closes_gpu ? 'G' : '.';
    text[4] = remedy->closes_node ? 'N' : '.';
    return text;
}

static void
test_remedies(void **state)
{
    static const struct {
        const char *name;
        enum bh_evidence_of of;
        enum bh_check_result result;
        const char *by_job, *by_host;
    } rows[] = {
        { "probe passes", BH_EVIDENCE_PROBE, BH_CHECK_PASS, ".....", "....." },
        { "probe is inconclusive", BH_EVIDENCE_PROBE, BH_CHECK_INCONCLUSIVE, "..A.N", "..A.N" },
        { "probe fails", BH_EVIDENCE_PROBE, BH_CHECK_FAIL, "....N", "....N" },
        { "start passes", BH_EVIDENCE_START, BH_CHECK_PASS, ".....", "....." },
        { "start is inconclusive", BH_EVIDENCE_START, BH_CHECK_INCONCLUSIVE, ".UA..", ".UA.." },
        { "start fails", BH_EVIDENCE_START, BH_CHECK_FAIL, "EU...", "EU.G." },
        { "lease passes", BH_EVIDENCE_LEASE, BH_CHECK_PASS, ".....", "....." },
        { "lease is inconclusive", BH_EVIDENCE_LEASE, BH_CHECK_INCONCLUSIVE, ".UA..", ".UA.." },
        { "lease fails", BH_EVIDENCE_LEASE, BH_CHECK_FAIL, "EU...", "EU.G." },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        BH_CHECK_STR(rows[i].name,
                     letters_of(bh_evidence_remedy(rows[i].of, rows[i].result, BH_EVIDENCE_BY_JOB)),
                     rows[i].by_job);
        BH_CHECK_STR(rows[i].name,
                     letters_of(bh_evidence_remedy(rows[i].of, rows[i].result, BH_EVIDENCE_BY_HOST)),
                     rows[i].by_host);
    }
    BH_CHECK_DONE();
}

/* Nothing of a lease's closes more than a GPU, and nothing that a job could make closes any. */
static void
test_bounds(void **state)
{
    for (int result = 0; result < BH_CHECK_RESULTS; result++)
        for (int of = BH_EVIDENCE_START; of < BH_EVIDENCE_OFS; of++) {
            const struct bh_evidence_remedy *by_job =
                bh_evidence_remedy((enum bh_evidence_of)of, (enum bh_check_result)result, BH_EVIDENCE_BY_JOB);

            BH_CHECK("no GPU by a job", !by_job->closes_gpu && !by_job->closes_node);
            BH_CHECK("no node by a lease",
                     !bh_evidence_remedy((enum bh_evidence_of)of, (enum bh_check_result)result,
                                         BH_EVIDENCE_BY_HOST)
                          ->closes_node);
        }
    BH_CHECK_DONE();
}

static void
test_rechecks(void **state)
{
    static const struct {
        const char *name;
        uint32_t made, boundary;
        enum bh_evidence_next next;
    } rows[] = {
        { "first", 0, BH_BOUNDARY_HARD, BH_EVIDENCE_RECHECK },
        { "third", 2, BH_BOUNDARY_FORTRESS, BH_EVIDENCE_RECHECK },
        { "three, hard", 3, BH_BOUNDARY_HARD, BH_EVIDENCE_STOP },
        { "three, fortress", 3, BH_BOUNDARY_FORTRESS, BH_EVIDENCE_STOP },
        { "three, soft", 3, BH_BOUNDARY_SOFT, BH_EVIDENCE_LEAVE },
        { "three, none", 3, BH_BOUNDARY_NONE, BH_EVIDENCE_LEAVE },
        { "three, not known", 3, BH_BOUNDARY_UNSET, BH_EVIDENCE_STOP },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].name, bh_evidence_next(rows[i].made, bh_evidence_is_needed(rows[i].boundary)),
                    rows[i].next);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_remedies),
    cmocka_unit_test(test_bounds),
    cmocka_unit_test(test_rechecks),
};
BH_TEST_MAIN(tests)
