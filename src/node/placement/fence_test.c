/* Which GPUs an isolation check of a lease closes. */

#include "base/test.h"
#include "node/placement/fence.h"

static void
test_one_for_each_job(void **state)
{
    static struct bh_fences fences;

    BH_CHECK("nothing", bh_fence_find(&fences, "GPU-0") == NULL);
    BH_CHECK("first", bh_fence_add(&fences, "GPU-0", 7, "device-fence: more"));
    BH_CHECK_STR("names the job", bh_fence_find(&fences, "GPU-0"), "job 7: device-fence: more");
    BH_CHECK("no second by the same job", !bh_fence_add(&fences, "GPU-1", 7, "again"));
    BH_CHECK("not closed", bh_fence_find(&fences, "GPU-1") == NULL);
    BH_CHECK("by another", bh_fence_add(&fences, "GPU-1", 8, "ids: 0 0 1"));
    bh_fence_lift(&fences);
    BH_CHECK("lifted", bh_fence_find(&fences, "GPU-0") == NULL);
    BH_CHECK("still not by the same", !bh_fence_add(&fences, "GPU-0", 7, "again"));
    BH_CHECK_DONE();
}

static void
test_bounds(void **state)
{
    static struct bh_fences fences;
    char gpu[BH_UUID_MAX];

    for (uint64_t job = 1; job <= BH_FENCES_MAX; job++) {
        snprintf(gpu, sizeof gpu, "GPU-%u", (unsigned)job);
        BH_CHECK(gpu, bh_fence_add(&fences, gpu, job, "why"));
    }
    BH_CHECK("full", !bh_fence_add(&fences, "GPU-more", 1000, "why"));
    for (uint64_t job = 2000; job < 2000 + BH_FENCE_JOBS_MAX; job++)
        BH_CHECK("the same GPU", bh_fence_add(&fences, "GPU-1", job, "why"));
    BH_CHECK_EQ("entries", fences.count, BH_FENCES_MAX);
    BH_CHECK("the last is known", !bh_fence_add(&fences, "GPU-2", 2000 + BH_FENCE_JOBS_MAX - 1, "why"));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_for_each_job),
    cmocka_unit_test(test_bounds),
};
BH_TEST_MAIN(tests)
