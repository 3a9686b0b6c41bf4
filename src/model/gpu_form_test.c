#include "model/gpu_form.h"

#include "base/attr.h"
#include "base/test.h"
#include "model/share.h"

/* Each boundary, and which forms are strong enough for it. */
static void
boundaries_call_for_forms(void **state)
{
    static const struct {
        const char *name;
        enum bh_boundary boundary;
        bool multiplexed, share, mig, whole;
    } cases[] = {
        { "none", BH_BOUNDARY_NONE, true, true, true, true },
        { "soft", BH_BOUNDARY_SOFT, false, true, true, true },
        { "hard", BH_BOUNDARY_HARD, false, false, true, true },
        { "fortress", BH_BOUNDARY_FORTRESS, false, false, false, true },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        enum bh_gpu_form called = bh_boundary_form(cases[i].boundary);

        BH_CHECK_EQ(cases[i].name, BH_GPU_FORM_MULTIPLEXED >= called, cases[i].multiplexed);
        BH_CHECK_EQ(cases[i].name, BH_GPU_FORM_SHARE >= called, cases[i].share);
        BH_CHECK_EQ(cases[i].name, BH_GPU_FORM_MIG >= called, cases[i].mig);
        BH_CHECK_EQ(cases[i].name, BH_GPU_FORM_WHOLE >= called, cases[i].whole);
    }
    BH_CHECK_DONE();
}

static void
profiles_have_forms(void **state)
{
    static const struct bh_share quarter = { 1050, 1050, BH_SHARE_HARD };
    static const struct bh_share turns = { 1050, 1050, BH_SHARE_MULTIPLEXED };

    assert_int_equal(bh_gpu_form_of(bh_share_profile(&quarter)), BH_GPU_FORM_SHARE);
    assert_int_equal(bh_gpu_form_of(bh_share_profile(&turns)), BH_GPU_FORM_MULTIPLEXED);
    assert_int_equal(bh_gpu_form_of(bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id), BH_GPU_FORM_MIG);
    assert_int_equal(bh_gpu_form_of(BH_PROFILE_WHOLE), BH_GPU_FORM_WHOLE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(boundaries_call_for_forms),
    cmocka_unit_test(profiles_have_forms),
};
BH_TEST_MAIN(tests)
