#include "node/common/uid_ranges.h"

#include "base/test.h"
#include "runtime/oci.h"

static void
test_no_job_has_anothers_ids(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        { "as it comes", "" },
        { "one job", "uid_ranges = 1\n" },
        { "the last base with the most jobs", "uid_base = 4000000000\nuid_ranges = 4096\n" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        struct bh_conf conf;
        struct bh_err err;
        uint64_t jobs_end, images, probe;

        assert_int_equal(bh_conf_parse("f", cases[i].text, arena, &conf, &err), BH_OK);
        jobs_end = (uint64_t)conf.uid_base + (uint64_t)BH_OCI_ID_RANGE * conf.uid_ranges;
        images = bh_uid_range_first(&conf, bh_uid_range_of_images(&conf));
        probe = bh_uid_range_first(&conf, bh_uid_range_of_probe(&conf));
        BH_CHECK(cases[i].name, images >= jobs_end);
        BH_CHECK(cases[i].name, probe >= jobs_end);
        BH_CHECK(cases[i].name, probe >= images + BH_OCI_ID_RANGE || images >= probe + BH_OCI_ID_RANGE);
        BH_CHECK(cases[i].name, probe + BH_OCI_ID_RANGE < UINT32_MAX); /* which no job has */
        BH_CHECK(cases[i].name, images + BH_OCI_ID_RANGE < UINT32_MAX);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_job_has_anothers_ids) };
BH_TEST_MAIN(tests)
