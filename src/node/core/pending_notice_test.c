/* When the submitter is notified of what a job's share did. */
#include "node/core/pending_notice.h"

#include "base/test.h"

#define S BH_NS_PER_S

/* Rows: how often it was seen at that time, whether a daemon listens, and what comes of it. */
struct row {
    const char *name;
    uint32_t seen;
    uint64_t at;
    bool listens;
    uint32_t reported;
    bool logged;
};

static const struct row told_again[] = {
    { "nothing was", 0, 1 * S, true, 0, false },
    { "the first time", 1, 2 * S, true, 1, true },
    { "once more, soon", 1, 3 * S, true, 0, false },
    { "and often", 5, 601 * S, true, 0, false },
    { "ten minutes after it was told", 0, 602 * S, true, 6, true },
    { "not again", 0, 603 * S, true, 0, false },
    { "long after, at once", 1, 9000 * S, true, 1, true },
};

static const struct row nobody_listens[] = {
    { "the log has it", 1, 1 * S, false, 1, true },
    { "once", 0, 2 * S, false, 1, false },
    { "also when it is seen again", 2, 3 * S, false, 3, false },
    { "all of it when somebody does", 0, 4 * S, true, 3, false },
    { "then ten minutes", 1, 603 * S, true, 0, false },
    { "are over", 0, 604 * S, false, 1, true },
    { "and told", 0, 605 * S, true, 1, false },
};

static void
pending_notice_test_run(const struct row *rows, size_t count)
{
    struct bh_pending_notice notice = { 0 };

    for (size_t i = 0; i < count; i++) {
        bool logged = true;

        for (uint32_t n = 0; n < rows[i].seen; n++)
            bh_pending_notice_add(&notice);
        BH_CHECK_EQ(rows[i].name, bh_pending_notice_due(&notice, rows[i].at, rows[i].listens, &logged),
                    rows[i].reported);
        BH_CHECK_EQ(rows[i].name, logged, rows[i].logged);
    }
}

static void
in_ten_minutes_once(void **state)
{
    struct bh_pending_notice notice = { .count = UINT32_MAX };

    pending_notice_test_run(told_again, sizeof told_again / sizeof told_again[0]);
    pending_notice_test_run(nobody_listens, sizeof nobody_listens / sizeof nobody_listens[0]);
    bh_pending_notice_add(&notice);
    BH_CHECK_EQ("as often as can be said", notice.count, UINT32_MAX);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(in_ten_minutes_once) };

BH_TEST_MAIN(tests)
