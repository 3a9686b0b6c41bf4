#include "engine/bound.h"

#include "base/attr.h"
#include "engine/story_test.h"

static void
nothing_yet(void **state)
{
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_yet),
};
BH_TEST_MAIN(tests)
