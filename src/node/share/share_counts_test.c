/* Three counts of a lease's memory: when they are worth a line. */
#include "node/share/share_counts.h"

#include "base/test.h"

/* Rows: the counts of device 0 in MiB, state after state; in which states it is reported. */
static const struct {
    const char *name;
    uint32_t kind;
    struct {
        uint32_t charged, seen, driver;
    } state[8];
    const char *notified; /* a letter for each state: t, or - */
} cases[] = {
    { "as one", BH_SHARE_SEEN_WHOLE, { { 100, 100, 100 }, { 100, 100, 100 }, { 100, 100, 100 } }, "---" },
    { "64 MiB are no difference",
      BH_SHARE_SEEN_WHOLE,
      { { 100, 164, 120 }, { 100, 164, 120 }, { 100, 164, 120 } },
      "---" },
    { "more was asked for than was charged",
      BH_SHARE_SEEN_WHOLE,
      { { 100, 165, 150 }, { 100, 165, 150 }, { 100, 165, 150 }, { 100, 165, 150 } },
      "--t-" },
    { "the driver has more",
      BH_SHARE_SEEN_WHOLE,
      { { 100, 100, 165 }, { 100, 100, 165 }, { 100, 100, 165 } },
      "--t" },
    { "less was asked for than was charged",
      BH_SHARE_SEEN_WHOLE,
      { { 165, 100, 120 }, { 165, 100, 120 }, { 165, 100, 120 } },
      "--t" },
    { "not for long enough",
      BH_SHARE_SEEN_WHOLE,
      { { 100, 200, 100 }, { 100, 200, 100 }, { 100, 100, 100 }, { 100, 200, 100 } },
      "----" },
    { "again when it agreed",
      BH_SHARE_SEEN_WHOLE,
      { { 0, 99, 0 }, { 0, 99, 0 }, { 0, 99, 0 }, { 0, 0, 0 }, { 0, 99, 0 }, { 0, 99, 0 }, { 0, 99, 0 } },
      "--t---t" },
    { "no count of the library's",
      BH_SHARE_SEEN_ABSENT,
      { { 500, 0, 900 }, { 500, 0, 900 }, { 500, 0, 900 } },
      "---" },
    { "nobody has said", BH_SHARE_SEEN_NOT, { { 500, 0, 900 }, { 500, 0, 900 }, { 500, 0, 900 } }, "---" },
    { "no such kind", 77, { { 500, 0, 900 }, { 500, 0, 900 }, { 500, 0, 900 } }, "---" },
    { "a part that is less",
      BH_SHARE_SEEN_PARTLY,
      { { 500, 100, 900 }, { 500, 100, 900 }, { 500, 100, 900 } },
      "---" },
    { "a part that is more",
      BH_SHARE_SEEN_PARTLY,
      { { 500, 600, 0 }, { 500, 600, 0 }, { 500, 600, 0 } },
      "--t" },
    { "nonsense",
      BH_SHARE_SEEN_WHOLE,
      { { 0, UINT32_MAX, 0 }, { 0, UINT32_MAX, 0 }, { 0, UINT32_MAX, 0 } },
      "--t" },
};

static void
differences_are_reported_once(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bh_share_counts counts = { 0 };

        for (size_t s = 0; cases[i].notified[s] != '\0'; s++) {
            struct bh_share_lease_state said = { .seen_kind = cases[i].kind };

            said.used_bytes[5] = (uint64_t)cases[i].state[s].charged << 20;
            said.seen_mib[5] = cases[i].state[s].seen;
            said.driver_mib[5] = cases[i].state[s].driver;
            BH_CHECK_EQ(cases[i].name, bh_share_counts_check(&counts, &said),
                        cases[i].notified[s] == 't' ? 1 << 5 : 0);
        }
    }
    BH_CHECK_DONE();
}

static void
notices_report_what_no_hook_knows(void **state)
{
    static const struct {
        const char *name;
        uint32_t kind, charged, seen, driver;
        bool notified;
    } rows[] = {
        { "the library took more", BH_SHARE_SEEN_WHOLE, 100, 165, 165, true },
        { "a little more", BH_SHARE_SEEN_WHOLE, 100, 164, 165, false },
        { "it took less, as for managed memory", BH_SHARE_SEEN_WHOLE, 900, 100, 100, false },
        { "the driver alone has more: that is told otherwise", BH_SHARE_SEEN_WHOLE, 100, 100, 900, false },
        { "the driver has not said", BH_SHARE_SEEN_WHOLE, 100, 900, 0, false },
        { "a part", BH_SHARE_SEEN_PARTLY, 100, 900, 900, false },
        { "none", BH_SHARE_SEEN_ABSENT, 100, 900, 900, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bh_share_lease_state said = { .seen_kind = rows[i].kind };

        said.used_bytes[3] = (uint64_t)rows[i].charged << 20;
        said.seen_mib[3] = rows[i].seen;
        said.driver_mib[3] = rows[i].driver;
        BH_CHECK_EQ(rows[i].name, bh_share_counts_must_notify(&said, 3), rows[i].notified);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(differences_are_reported_once),
                                           cmocka_unit_test(notices_report_what_no_hook_knows) };

BH_TEST_MAIN(tests)
