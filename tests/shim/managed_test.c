/* What managed memory is of a lease: charged like any other, main memory, or not to be had.
 *
 *   managed_test NULL_DRIVER LIBCUDA */
#include "base/test.h"

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { CAP = 128, CONTEXT = 32 };

static const struct word {
    const char *name;
    enum bh_share_managed managed;
    CUresult result; /* of what asks for managed memory within the cap */
    uint32_t units;  /* that 64 MiB of it are charged */
    CUresult beyond; /* of what asks for more than the cap */
    int supported;   /* as the device says */
} words[] = {
    { "charged", BH_SHARE_MANAGED_CHARGED, CUDA_SUCCESS, 32, CUDA_ERROR_OUT_OF_MEMORY, 1 },
    { "host", BH_SHARE_MANAGED_FREE, CUDA_SUCCESS, 0, CUDA_SUCCESS, 1 },
    { "none", BH_SHARE_MANAGED_NONE, CUDA_ERROR_NOT_SUPPORTED, 0, CUDA_ERROR_NOT_SUPPORTED, 0 },
};

static int
allocates(void *self)
{
    const struct word *word = self;
    CUdeviceptr at = 0, more = 0;
    int supported = -1;

    BEGIN();
    GOOD(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
    CHECK(supported == word->supported);
    CHECK(cuMemAllocManaged(&at, 64 * MIB, 1) == word->result);
    CHECK(bh_sandbox_used(0) == CONTEXT + word->units);
    CHECK(cuMemAllocManaged(&more, 2 * CAP * MIB, 1) == word->beyond);
    if (more != 0)
        GOOD(cuMemFree_v2(more));
    if (at != 0)
        GOOD(cuMemFree_v2(at));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    GOOD(cuMemAlloc_v2(&at, 64 * MIB)); /* other memory is as ever */
    CHECK(bh_sandbox_used(0) == CONTEXT + 32);
    return 0;
}

static int
takes_from(CUmemoryPool pool, const struct word *word)
{
    CUdeviceptr at = 0, more = 0;

    GOOD(cuMemAllocFromPoolAsync(&at, 64 * MIB, pool, NULL));
    CHECK(bh_sandbox_used(0) == CONTEXT + word->units);
    CHECK(cuMemAllocFromPoolAsync(&more, 2 * CAP * MIB, pool, NULL) == word->beyond);
    GOOD(cuMemFreeAsync(at, NULL));
    if (more != 0)
        GOOD(cuMemFreeAsync(more, NULL));
    GOOD(cuMemPoolTrimTo(pool, 0));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

/* A managed pool need not say where it is. */
static int
makes_pools(void *self)
{
    const struct word *word = self;
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED,
                             .location.type = CU_MEM_LOCATION_TYPE_NONE };
    CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
    CUmemoryPool pool = NULL;

    BEGIN();
    CHECK(cuMemPoolCreate(&pool, &props) == word->result);
    if (word->result == CUDA_SUCCESS && takes_from(pool, word) != 0)
        return 1;
    CHECK(cuMemGetMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_MANAGED) == word->result);
    if (word->result == CUDA_SUCCESS && takes_from(pool, word) != 0)
        return 1;
    GOOD(cuMemGetMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
    return 0;
}

static void
is_what_the_lease_allows(void **state)
{
    for (size_t i = 0; i < COUNT(words); i++) {
        struct word word = words[i];

        bh_sandbox_share(1, CAP, CONTEXT);
        bh_sandbox.limits->managed = word.managed;
        BH_CHECK_EQ(word.name, bh_sandbox_run(allocates, &word), 0);
        BH_CHECK_EQ(word.name, bh_sandbox_run(makes_pools, &word), 0);
        bh_sandbox_emptied();
        BH_CHECK_EQ(word.name, bh_sandbox_used(0), 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(is_what_the_lease_allows),
};

BH_SANDBOX_MAIN(tests)
