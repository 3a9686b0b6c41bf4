#include "daemon/state/tally.h"

#include "base/test.h"

enum { MS = 1000000 };

static uint64_t now[BH_TALLIES];

static void
what_is_committed_counts(void **state)
{
    struct bh_tallies book = { { 0 }, { 0 } };

    bh_tally_count(&book, bh_tally_scrub(1, 2));
    bh_tally_count(&book, BH_TALLY_VERDICTS + 1);
    bh_tally_aborted(&book);
    bh_tally_committed(&book, 1 * MS);
    bh_tally_read(&book, now);
    BH_CHECK_EQ("an aborted batch", now[bh_tally_scrub(1, 2)] + now[BH_TALLY_VERDICTS + 1], 0);
    bh_tally_count(&book, bh_tally_scrub(1, 2));
    bh_tally_read(&book, now);
    BH_CHECK_EQ("an open one", now[bh_tally_scrub(1, 2)], 0);
    bh_tally_committed(&book, 2 * MS);
    bh_tally_committed(&book, 3 * MS);
    bh_tally_read(&book, now);
    BH_CHECK_EQ("once", now[bh_tally_scrub(1, 2)], 1);
    BH_CHECK_EQ("their time", now[BH_TALLY_COMMIT_NS], 6 * MS);
    BH_CHECK_DONE();
}

static void
commits_go_into_their_bucket(void **state)
{
    static const struct {
        const char *name;
        uint64_t took_ns;
        uint32_t bucket;
    } cases[] = {
        { "none", 0, 0 },
        { "on a bound", MS / 4, 0 },
        { "above it", MS / 4 + 1, 1 },
        { "the last", 5000ULL * MS, 9 },
        { "beyond all", 5000ULL * MS + 1, 10 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_tallies book = { { 0 }, { 0 } };

        bh_tally_committed(&book, cases[i].took_ns);
        bh_tally_read(&book, now);
        for (uint32_t b = 0; b <= BH_TALLY_COMMIT_BOUNDS; b++)
            BH_CHECK_EQ(cases[i].name, now[BH_TALLY_COMMITS + b], b == cases[i].bucket);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_committed_counts),
                                           cmocka_unit_test(commits_go_into_their_bucket) };
BH_TEST_MAIN(tests)
