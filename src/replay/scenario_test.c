/* The player itself: it must find what is wrong, and say where. */
#include "replay/scenario.h"

#include <stdlib.h>

#include "base/test.h"

#define SITE                                                                                                 \
    "scenario \"s\"\n"                                                                                       \
    "node n 1x H100-80GB\n"                                                                                  \
    "sku small C H100-80GB=1g.10gb\n"                                                                        \
    "sku whole B H100-80GB=whole\n"                                                                          \
    "tenant acme organization\n"

static const struct {
    const char *name, *text;
    uint32_t count, failed;
    const char *says; /* somewhere in the TAP */
} rows[] = {
    { "all as expected", SITE "submit a acme small\nexpect a running\n", 1, 0, "ok 1 - s\n" },
    { "no newline at the end", SITE "submit a acme small\nexpect a running", 1, 0, "ok 1" },
    { "wrong state", SITE "submit a acme small\n\nexpect a pending\n", 1, 1,
      "# f.bh:8: job a is running (running), expected pending" },
    { "wrong reason", SITE "submit a acme whole\nsubmit b acme whole\nexpect b pending held\n", 1, 1,
      "job b is pending (no_capacity), expected pending held" },
    { "a failed one does not stop the next", SITE "cancel a\n" SITE "submit a acme small\n", 2, 1,
      "not ok 1 - s\n# f.bh:6: there is no job a\nok 2 - s\n" },
    { "nothing of a failed one is played", SITE "cancel a\ncancel b\n", 1, 1, "f.bh:6" },
    { "unknown statement", SITE "dance\n", 1, 1, "unknown statement dance" },
    { "usage", SITE "cancel\n", 1, 1, "usage: cancel JOB" },
    { "unknown option", SITE "submit a acme small colour red\n", 1, 1, "unknown option colour" },
    { "option without its value", SITE "submit a acme small count\n", 1, 1, "count wants 1 values" },
    { "choices are listed", SITE "submit a acme small priority top\n", 1, 1,
      "priority top: expected one of low normal high urgent" },
    { "unknown model", "scenario s\nnode n 1x H1000\n", 1, 1, "unknown GPU model H1000" },
    { "unknown profile", "scenario s\nsku x C H100-80GB=9g.10gb\n", 1, 1,
      "H100-80GB has no profile 9g.10gb" },
    { "a quote left open", SITE "why a contains \"x\n", 1, 1, "a quote is not closed" },
    { "a name taken", SITE "submit a acme small\nsubmit a acme small\n", 1, 1, "there is a job a already" },
    { "refused, not expected", SITE "submit a acme small count 17\n", 1, 1, "refused: out_of_range" },
    { "refused for another reason", SITE "expect-refused never_quota\nsubmit a acme small count 17\n", 1, 1,
      "refused: out_of_range, expected never_quota" },
    { "accepted, refusal expected", SITE "expect-refused held\nsubmit a acme small\n", 1, 1,
      "accepted, expected to be refused: held" },
    { "a mistake is no refusal", SITE "expect-refused unknown_job\ncancel a\n", 1, 1, "there is no job a" },
    { "expect-refused at the end", SITE "expect-refused held\n", 1, 1, "nothing follows expect-refused" },
    { "wrong partitions", SITE "submit a acme small\nexpect-gpu n/0 whole=a\n", 1, 1,
      "GPU n/0 has: 1g.10gb@" },
    { "a partition too many", SITE "submit a..b acme small\n", 1, 0, "ok" },
    { "wrong usage", SITE "submit a acme small\nexpect-usage acme 1\n", 1, 1,
      "tenant acme uses 600 parts, expected 4200" },
    { "wrong metering", SITE "submit a acme small\nadvance 5m\nexpect-metered acme 1/7 6m\n", 1, 1,
      "was metered 300 s of that, expected 6m" },
    { "wrong why", SITE "submit a acme small\nwhy a contains \"no hope\"\n", 1, 1, "without \"no hope\"" },
    { "a why too much",
      SITE "submit a acme small\nsubmit b acme small hold\nwhy b lacks \"no hope\" \"held\"\n", 1, 1,
      "with \"held\"" },
    { "a why of neither kind", SITE "submit a acme small\nwhy a says x\n", 1, 1, "contains TEXT, or lacks" },
    { "together", SITE "submit a acme small\nsubmit b acme small\nexpect-not-same-gpu a b\n", 1, 1,
      "jobs a and b are together" },
    { "the daemon is down", SITE "daemon-down\nsubmit a acme small\n", 1, 1, "the daemon is down" },
    { "too long a delay", SITE "delay start 5h\n", 1, 1, "a delay is at most 4h" },
    { "an end of time", SITE "advance 36500d\nadvance 36500d\n", 1, 1, "146 years" },
    { "no scenario", "# nothing\n", 1, 1, "there is no scenario in it" },
    { "a statement before any scenario", "advance 1s\n" SITE, 2, 1, "a file begins with: scenario" },
    { "empty", "", 1, 1, "there is no scenario in it" },
    { "a site to use that is not there", "scenario s\nuse nowhere\n", 1, 1, "sites/nowhere.bh" },
    { "a site by a path", "scenario s\nuse ../nowhere\n", 1, 1, "../nowhere is no name of a site" },
    { "a site before any scenario", "use nowhere\n", 1, 1, "expected in a scenario: use SITE" },
};

static void
says_what_is_wrong_and_where(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char *said = NULL;
        size_t length = 0;
        struct bh_tap tap = { .out = open_memstream(&said, &length) };

        assert_non_null(tap.out);
        bh_scenario_play_text(&tap, "f.bh", rows[i].text, strlen(rows[i].text));
        fclose(tap.out);
        BH_CHECK_EQ(rows[i].name, tap.count, rows[i].count);
        BH_CHECK_EQ(rows[i].name, tap.failed, rows[i].failed);
        BH_CHECK(rows[i].name, strstr(said, rows[i].says) != NULL);
        BH_CHECK(rows[i].name, !tap.broken);
        free(said);
    }
    BH_CHECK_DONE();
}

static void
a_file_that_cannot_be_read_fails(void **state)
{
    struct bh_tap tap = { .out = NULL };

    bh_scenario_play_file(&tap, "/nowhere/at/all.bh");
    assert_int_equal(tap.failed, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(says_what_is_wrong_and_where),
    cmocka_unit_test(a_file_that_cannot_be_read_fails),
};
BH_TEST_MAIN(tests)
