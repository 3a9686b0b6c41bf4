#include "engine/state/reason.h"

#include "base/test.h"

static void
every_reason_has_a_name_of_its_own(void **state)
{
    for (uint32_t i = 0; i < BH_REASONS; i++) {
        assert_non_null(bh_reason_names[i]);
        for (uint32_t k = 0; k < i; k++)
            BH_CHECK(bh_reason_names[i], strcmp(bh_reason_names[i], bh_reason_names[k]) != 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(every_reason_has_a_name_of_its_own) };
BH_TEST_MAIN(tests)
