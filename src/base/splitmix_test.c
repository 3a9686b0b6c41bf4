#include "base/splitmix.h"

#include "base/test.h"

/* From the reference implementation. */
static void
numbers_are_the_references(void **state)
{
    static const uint64_t wanted[] = { UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                       UINT64_C(9817491932198370423) };
    uint64_t at = 1234567;

    for (uint64_t i = 0; i < BH_COUNT(wanted); i++) {
        BH_CHECK("at", bh_splitmix_at(1234567, i) == wanted[i]);
        BH_CHECK("next", bh_splitmix_next(&at) == wanted[i]);
    }
    BH_CHECK("mix", bh_splitmix_mix(0) == 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_are_the_references),
};

BH_TEST_MAIN(tests)
