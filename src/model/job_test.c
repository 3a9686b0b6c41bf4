#include "model/job.h"

#include "base/attr.h"
#include "base/test.h"

/* Every value from `first` on has a name, and no two the same. */
static void
check_names(const char *table, const char *const *names, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < count; i++) {
        BH_CHECK(table, names[i] != NULL && names[i][0] != '\0');
        for (uint32_t k = first; k < i; k++)
            BH_CHECK(table, strcmp(names[i], names[k]) != 0);
    }
}

static void
every_value_has_a_name_of_its_own(void **state)
{
    check_names("kinds", bh_job_kind_names, 0, BH_JOB_KINDS);
    check_names("states", bh_job_state_names, 0, BH_JOB_STATES);
    check_names("priorities", bh_priority_names, BH_PRIORITY_LOW, BH_PRIORITIES);
    check_names("contracts", bh_contract_names, 0, BH_CONTRACTS);
    check_names("defragmentation", bh_defrag_mode_names, 0, BH_DEFRAG_MODES);
    check_names("causes", bh_end_cause_names, 0, BH_END_CAUSES);
    BH_CHECK_DONE();
}

static void
zero_is_no_priority(void **state)
{
    BH_CHECK("unset", bh_priority_names[0] == NULL);
    BH_CHECK_DONE();
}

static void
signals_are_found_by_either_name(void **state)
{
    static const struct {
        const char *name, *shown;
        uint32_t number;
        /* clang-format off */
    } cases[] = {
        { "USR1", "USR1", BH_CHECKPOINT_SIGNAL }, { "SIGUSR2", "USR2", 12 },
        { "TERM", "TERM", 15 },                   { "KILL", NULL, 0 },
        { "SIG", NULL, 0 },                       { "", NULL, 0 },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_CHECK_EQ(cases[i].name, bh_signal_find(cases[i].name), cases[i].number);
        if (cases[i].shown)
            BH_CHECK_STR(cases[i].name, bh_signal_name(cases[i].number), cases[i].shown);
        else
            BH_CHECK(cases[i].name, bh_signal_name(cases[i].number) == NULL);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_value_has_a_name_of_its_own),
    cmocka_unit_test(zero_is_no_priority),
    cmocka_unit_test(signals_are_found_by_either_name),
};
BH_TEST_MAIN(tests)
