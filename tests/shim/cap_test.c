/* The cap holds to the byte, whichever call asks for memory, and what is freed comes back.
 *
 *   cap_test NULL_DRIVER */
#include "base/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"
#include "tests/shim/ways.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { CAP = 512, CONTEXT = 32 }; /* units: 1 GiB, of which a context takes 64 MiB */
enum { SMALL_BATCHES = 1000 };

static CUmemAllocationProp
property(void)
{
    return (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
}

static int
take_all(void *self)
{
    const struct bh_way *way = self;
    uint64_t what[CAP];
    unsigned count = 0, most = (CAP - CONTEXT) / way->units;
    size_t left, total;
    CUresult rc = CUDA_SUCCESS;

    BEGIN();
    while (count <= most && (rc = way->get(&what[count])) == CUDA_SUCCESS)
        count++;
    CHECK(rc == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(count == most);
    CHECK(bh_sandbox_used(0) == CAP);
    GOOD(cuMemGetInfo_v2(&left, &total));
    CHECK(left == 0 && total == CAP * BH_SHARE_UNIT_BYTES);
    while (count > 0)
        GOOD(way->drop(what[--count]));
    GOOD(cuCtxSynchronize());
    CHECK(bh_sandbox_used(0) == CONTEXT);
    /* Once more: nothing was lost on the way. */
    while (count < most && way->get(&what[count]) == CUDA_SUCCESS)
        count++;
    CHECK(count == most);
    return 0;
}

/* ---- the same on the simulated driver, which has memory of its own ---- */

/* Units of the whole device that are in use, as the driver says it without us. */
static uint64_t
driver_units(void)
{
    void *driver = dlopen(BH_SHARE_DRIVER_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    __typeof__(&cuMemGetInfo_v2) info =
        driver == NULL ? NULL : (__typeof__(&cuMemGetInfo_v2))dlsym(driver, "cuMemGetInfo_v2");
    size_t left = 0, total = 0;

    if (info == NULL || info(&left, &total) != CUDA_SUCCESS)
        return UINT64_MAX;
    return (total - left + BH_SHARE_UNIT_BYTES - 1) / BH_SHARE_UNIT_BYTES;
}

static int
take_all_simulated(void *self)
{
    const struct bh_way *way = self;
    uint64_t what[CAP];
    unsigned count = 0, again = 0;
    uint64_t more;
    CUresult rc = CUDA_SUCCESS;

    BEGIN();
    more = driver_units() - CONTEXT; /* what the device has in use by itself */
    CHECK(more <= 1);
    while (count < CAP && (rc = way->get(&what[count])) == CUDA_SUCCESS)
        count++;
    if (count == 0 && rc == CUDA_ERROR_NOT_SUPPORTED)
        return 0;
    if (count == 0 || rc != CUDA_ERROR_OUT_OF_MEMORY || driver_units() > CAP + more)
        fprintf(stderr, "%u, then %u, %lu units, %u charged\n", count, rc, (unsigned long)driver_units(),
                bh_sandbox_used(0));
    CHECK(rc == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(count >= (CAP - CONTEXT) / way->units - 2);
    CHECK(driver_units() <= CAP + more);
    for (unsigned i = 0; i < count; i++)
        GOOD(way->drop(what[i]));
    GOOD(cuCtxSynchronize());
    CHECK(bh_sandbox_used(0) == CONTEXT && driver_units() <= CONTEXT + more);
    while (again < count && way->get(&what[again]) == CUDA_SUCCESS)
        again++;
    CHECK(again == count);
    return 0;
}

/* Small ones, with holes and in several contexts: what is reserved is what the driver has. */
static int
take_small_simulated(void *self)
{
    const struct bh_way *way = self;
    uint64_t what[SMALL_BATCHES];
    unsigned count = 0;
    uint64_t more;

    BEGIN();
    more = driver_units() - bh_sandbox_used(0);
    CHECK(more <= 1);
    while (count < SMALL_BATCHES && way->get(&what[count]) == CUDA_SUCCESS) {
        count++;
        CHECK(driver_units() == bh_sandbox_used(0) + more && bh_sandbox_used(0) <= CAP);
    }
    CHECK(count > 1 && count < SMALL_BATCHES); /* the cap ended it */
    while (count > 0) {
        GOOD(way->drop(what[--count]));
        CHECK(driver_units() == bh_sandbox_used(0) + more);
    }
    CHECK(bh_sandbox_used(0) % CONTEXT == 0);
    return 0;
}

/* The device's UUID goes into the limits. */
static int
learn_uuid(void *self)
{
    void *driver = dlopen(BH_SHARE_DRIVER_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUuuid uuid;

    CHECK(driver != NULL);
    GOOD(((__typeof__(&cuInit))dlsym(driver, "cuInit"))(0));
    GOOD(((__typeof__(&cuDeviceGetUuid))dlsym(driver, "cuDeviceGetUuid"))(&uuid, 0));
    memcpy(bh_sandbox.limits->device[0].uuid, &uuid, sizeof(uuid));
    return 0;
}

static void
each_way_stops_on_the_simulated_driver(void **state)
{
    for (size_t i = 0; i < bh_way_count; i++) {
        struct bh_way way = bh_ways[i];

        if (way.null_only)
            continue;
        bh_sandbox_share(1, CAP, CONTEXT);
        BH_CHECK_EQ("uuid", bh_sandbox_run(learn_uuid, NULL), 0);
        BH_CHECK_EQ(way.name,
                    bh_sandbox_run(way.units != 0 ? take_all_simulated : take_small_simulated, &way), 0);
        bh_sandbox_emptied();
        BH_CHECK_EQ(way.name, bh_sandbox_used(0), 0);
    }
    BH_CHECK_DONE();
}

static void
each_way_stops_at_the_cap(void **state)
{
    for (size_t i = 0; i < bh_way_count; i++) {
        struct bh_way way = bh_ways[i];

        if (way.units == 0)
            continue;
        bh_sandbox_share(1, CAP, CONTEXT);
        BH_CHECK_EQ(way.name, bh_sandbox_run(take_all, &way), 0);
        BH_CHECK(way.name, bh_sandbox.world->most[0] <= CAP * BH_SHARE_UNIT_BYTES);
        bh_sandbox_emptied();
        BH_CHECK_EQ(way.name, bh_sandbox_used(0), 0); /* whatever it still had */
    }
    BH_CHECK_DONE();
}

/* ---- calls that the driver refuses leave nothing behind ---- */

static int
fail_calls(void *self)
{
    CUmemAllocationProp prop = property(), host = property();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at, other;
    CUcontext context;

    BEGIN();
    bh_sandbox.world->fail_alloc = 3;
    for (int i = 0; i < 3; i++)
        CHECK(cuMemAlloc_v2(&at, 64 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(bh_sandbox_used(0) == CONTEXT);
    CHECK(cuMemAlloc_v2(&at, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemAlloc_v2(&at, UINT64_MAX) == CUDA_ERROR_OUT_OF_MEMORY); /* row 14 */
    CHECK(cuMemAllocPitch_v2(&at, &(size_t){ 0 }, UINT64_MAX, 7, 4) == CUDA_ERROR_OUT_OF_MEMORY);
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    bh_sandbox.world->fail_free = 1;
    CHECK(cuMemFree_v2(at) == CUDA_ERROR_INVALID_VALUE);
    CHECK(bh_sandbox_used(0) == CONTEXT + 32); /* it is still there */
    GOOD(cuMemFree_v2(at));
    CHECK(cuMemFree_v2(at) != CUDA_SUCCESS);
    CHECK(bh_sandbox_used(0) == CONTEXT);
    CHECK(cuMemCreate(&handle, 1, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
    host.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    GOOD(cuMemCreate(&handle, 1024 * MIB, &host, 0));
    CHECK(bh_sandbox_used(0) == CONTEXT); /* the host's own */
    GOOD(cuMemRelease(handle));
    GOOD(cuMemCreate(&handle, 64 * MIB, &prop, 0));
    GOOD(cuMemAddressReserve(&at, 128 * MIB, 0, 0, 0));
    GOOD(cuMemMap(at, 64 * MIB, 0, handle, 0));
    GOOD(cuMemMap(at + 64 * MIB, 64 * MIB, 0, handle, 0));
    GOOD(cuMemRetainAllocationHandle(&other, (void *)(uintptr_t)at));
    GOOD(cuMemRelease(handle));
    bh_sandbox.world->fail_free = 1;
    CHECK(cuMemUnmap(at, 128 * MIB) != CUDA_SUCCESS);
    GOOD(cuMemUnmap(at, 128 * MIB)); /* both mappings */
    CHECK(bh_sandbox_used(0) == CONTEXT + 32);
    GOOD(cuMemRelease(other));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    GOOD(cuCtxCreate_v2(&context, 0, 0));
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    CHECK(bh_sandbox_used(0) == 2 * CONTEXT + 32);
    GOOD(cuCtxDestroy_v2(context)); /* and what was allocated in it */
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static void
refused_calls_leave_nothing(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("refused", bh_sandbox_run(fail_calls, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- primary contexts ---- */

static int
retain_and_release(void *self)
{
    CUcontext context;
    CUdeviceptr at;
    size_t left, total;

    GOOD(cuInit(0));
    CHECK(bh_sandbox_used(0) == 0);
    GOOD(cuDeviceTotalMem_v2(&total, 0));
    CHECK(total == CAP * BH_SHARE_UNIT_BYTES);
    CHECK(cuMemGetInfo_v2(&left, &total) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cuMemAlloc_v2(&at, 64 * MIB) == CUDA_ERROR_INVALID_CONTEXT);
    for (int i = 0; i < 3; i++)
        GOOD(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    GOOD(cuCtxSetCurrent(context));
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    GOOD(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 72 * MIB)); /* 64 more than usual */
    CHECK(bh_sandbox_used(0) == CONTEXT + 64);
    CHECK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4096 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(bh_sandbox_used(0) == CONTEXT + 64);
    GOOD(cuDevicePrimaryCtxRelease_v2(0));
    GOOD(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(bh_sandbox_used(0) == CONTEXT + 64);
    GOOD(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(bh_sandbox_used(0) == 0);
    GOOD(cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    GOOD(cuDevicePrimaryCtxReset_v2(0));
    CHECK(bh_sandbox_used(0) == 0);
    return 0;
}

static void
a_primary_context_counts_once(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("primary", bh_sandbox_run(retain_and_release, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- several processes ---- */

/* Take all there is, and keep it until all processes have; `launches` counts those that are through.  One
 * that comes when less than a context is left gets none, while others still take the rest: only when all are
 * through is the unit full. */
static int
race(void *self)
{
    CUdeviceptr at;
    CUcontext context;

    GOOD(cuInit(0));
    if (cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS)
        GOOD(cuCtxSetCurrent(context));
    while (cuMemAlloc_v2(&at, 64 * MIB) == CUDA_SUCCESS)
        ;
    while (cuMemAlloc_v2(&at, 2 * MIB) == CUDA_SUCCESS)
        ;
    CHECK(cuMemAlloc_v2(&at, 512) != CUDA_SUCCESS);
    atomic_fetch_add(&bh_sandbox.world->launches, 1);
    while (atomic_load(&bh_sandbox.world->closed) == 0)
        usleep(500);
    return 0;
}

static void
eight_processes_race(void **state)
{
    for (int round = 0; round < 3; round++) {
        pid_t pid[8];

        bh_sandbox_share(1, 2048, 16);
        for (int i = 0; i < 8; i++)
            pid[i] = bh_sandbox_start(race, NULL);
        for (int i = 0; i < 20000 && atomic_load(&bh_sandbox.world->launches) < 8; i++)
            usleep(500);
        BH_CHECK_EQ("all are through", atomic_load(&bh_sandbox.world->launches), 8);
        BH_CHECK_EQ("all of it is taken", bh_sandbox_used(0), 2048);
        atomic_store(&bh_sandbox.world->closed, 1);
        for (int i = 0; i < 8; i++)
            BH_CHECK_EQ("race", bh_sandbox_wait(pid[i]), 0);
        BH_CHECK("never more than the cap", bh_sandbox.world->most[0] <= 2048 * BH_SHARE_UNIT_BYTES);
        bh_sandbox_emptied();
        BH_CHECK_EQ("all of it is back", bh_sandbox_used(0), 0);
    }
    BH_CHECK_DONE();
}

static int
churn(void *self)
{
    CUdeviceptr at[16] = { 0 };

    BEGIN();
    for (unsigned i = 0;; i++) {
        CUdeviceptr *one = &at[i * 7 % COUNT(at)];

        if (*one != 0)
            (void)cuMemFree_v2(*one);
        if (cuMemAlloc_v2(one, i % 5 == 0 ? 3000 : (i % 9 + 1) * MIB) != CUDA_SUCCESS)
            *one = 0;
    }
    return 0;
}

/* Rows 10 and 11: whenever a process is killed, what it held is known to the unit. */
static void
kills_leave_nothing(void **state)
{
    uint64_t seed = 88172645463325252u;

    bh_sandbox_share(1, 256, 16);
    for (int i = 0; i < 60; i++) {
        struct timespec nap = { 0, 0 };
        pid_t pid[4];

        for (int k = 0; k < 4; k++)
            pid[k] = bh_sandbox_start(churn, NULL);
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        nap.tv_nsec = (long)(seed % 12000000);
        nanosleep(&nap, NULL);
        for (int k = 0; k < 4; k++)
            kill(pid[k], SIGKILL);
        for (int k = 0; k < 4; k++)
            BH_CHECK_EQ("was at work", bh_sandbox_wait(pid[k]), -1);
        bh_sandbox_emptied();
        BH_CHECK_EQ("after kills", bh_sandbox_used(0), 0);
        if (bh_sandbox_used(0) != 0)
            break;
    }
    BH_CHECK_DONE();
}

/* ---- several devices ---- */

static int
two_devices(void *self)
{
    CUmemAllocationProp prop = property();
    CUmemGenericAllocationHandle handle;
    CUcontext context;
    CUdeviceptr at;

    BEGIN();
    prop.location.id = 1;
    GOOD(cuMemCreate(&handle, 64 * MIB, &prop, 0)); /* not the current device's */
    CHECK(bh_sandbox_used(0) == CONTEXT && bh_sandbox_used(1) == 32);
    prop.location.id = 7;
    CHECK(cuMemCreate(&handle, 64 * MIB, &prop, 0) == CUDA_ERROR_INVALID_DEVICE);
    GOOD(cuDevicePrimaryCtxRetain(&context, 1));
    GOOD(cuCtxSetCurrent(context));
    GOOD(cuMemAlloc_v2(&at, 64 * MIB));
    CHECK(bh_sandbox_used(0) == CONTEXT && bh_sandbox_used(1) == 64 + CONTEXT);
    return 0;
}

static void
each_device_has_its_cap(void **state)
{
    bh_sandbox_share(2, CAP, CONTEXT);
    BH_CHECK_EQ("two devices", bh_sandbox_run(two_devices, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- threads ---- */

static void *
pairs(void *self)
{
    CUcontext context;

    if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return self;
    for (unsigned i = 0; i < 5000; i++) {
        CUdeviceptr at[3];
        unsigned n = 0;

        n += cuMemAlloc_v2(&at[n], 2 * MIB) == CUDA_SUCCESS;
        n += cuMemAlloc_v2(&at[n], 700) == CUDA_SUCCESS;
        n += cuMemAllocAsync(&at[n], (i % 40 + 1) * MIB, NULL) == CUDA_SUCCESS;
        while (n > 0)
            if (cuMemFree_v2(at[--n]) != CUDA_SUCCESS)
                return self;
    }
    return NULL;
}

static int
four_threads(void *self)
{
    pthread_t thread[4];
    CUmemoryPool own;

    BEGIN();
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, pairs, &bh_sandbox) == 0);
    for (int i = 0; i < 4; i++) {
        void *bad;

        pthread_join(thread[i], &bad);
        CHECK(bad == NULL);
    }
    GOOD(cuDeviceGetDefaultMemPool(&own, 0));
    GOOD(cuMemPoolTrimTo(own, 0));
    CHECK(bh_sandbox_used(0) == CONTEXT);
    return 0;
}

static void
threads_settle(void **state)
{
    bh_sandbox_share(1, CONTEXT + 40, CONTEXT);
    BH_CHECK_EQ("threads", bh_sandbox_run(four_threads, NULL), 0);
    BH_CHECK("most", bh_sandbox.world->most[0] <= 40 * BH_SHARE_UNIT_BYTES);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_stops_at_the_cap),
        cmocka_unit_test(refused_calls_leave_nothing),
        cmocka_unit_test(a_primary_context_counts_once),
        cmocka_unit_test(each_device_has_its_cap),
        cmocka_unit_test(threads_settle),
        cmocka_unit_test(eight_processes_race),
        cmocka_unit_test(kills_leave_nothing),
    };

    static const struct CMUnitTest on_simulated[] = {
        cmocka_unit_test(each_way_stops_on_the_simulated_driver),
    };

    if (argc < 2 || !bh_sandbox_enter(argv[1]))
        return argc < 2 ? 2 : 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (argc > 3 && strcmp(argv[3], "simulated") == 0)
        return bh_sandbox_simulate("node: 1x H100-80GB context=64\n")
                   ? cmocka_run_group_tests(on_simulated, NULL, NULL)
                   : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
