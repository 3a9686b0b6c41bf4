#include "engine/account/quota.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

static void
the_least_way_to_keep_a_sku_counts_at_submit(void **state)
{
    BH_CHECK_EQ("1g.10gb", bh_quota_equivalent(bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v, 2), 1200);
    BH_CHECK_EQ("1g.20gb is its memory",
                bh_quota_equivalent(bh_profile_find(BH_GPU_H100_80GB, "1g.20gb")->id.v, 1), 1050);
    BH_CHECK_EQ("whole", bh_quota_equivalent(BH_PROFILE_WHOLE.v, 3), 12600);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_least_way_to_keep_a_sku_counts_at_submit),
};
BH_TEST_MAIN(tests)
