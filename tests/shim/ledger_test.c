/* What is reserved while the driver is at work: its calls are the test's own here, which look
 * at the page from within, and do meanwhile what another thread could. */
#include "base/test.h"

#include <pthread.h>
#include <string.h>

#include "shim/calls/entry.h"
#include "shim/charge/charge.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/records.h"

#define UNIT (UINT64_C(2) << 20)
#define BLOCK(n) ((UINT64_C(1) << 40) + (n)*UNIT)
#define CONTEXT(device) ((CUcontext)(uintptr_t)(0x1000 * ((device) + 1)))

enum { CAP = 8, DEVICES = 2, BLOCKS = 4 };

static struct bh_share_limits limits;
static struct bh_share_usage usage;

/* ---- the driver ---- */

static struct {
    CUdevice device;      /* of the current context */
    CUdeviceptr next;     /* what the next allocation gets */
    void (*during)(void); /* runs once, when the driver is done and we do not know it yet */
    CUresult rc;          /* of the next frees */
    unsigned calls, parts[DEVICES][BLOCKS];
    uint32_t seen; /* reserved while it was at work */
    bool short_of; /* something that it held was not reserved */
} driver;

static uint32_t
blocks_of(int device)
{
    uint32_t sum = 0;

    for (int i = 0; i < BLOCKS; i++)
        sum += driver.parts[device][i] != 0;
    return sum;
}

static void
look(void)
{
    for (int device = 0; device < DEVICES; device++)
        driver.short_of |= blocks_of(device) > bh_share_used(&usage, (uint32_t)device);
}

static void
done(void)
{
    void (*during)(void) = driver.during;
    CUdevice device = driver.device;

    driver.during = NULL;
    look();
    if (during != NULL)
        during();
    look();
    driver.device = device;
}

/* Of a block that the test does not draw nothing is known. */
static unsigned *
part_of(CUdeviceptr address)
{
    return address < BLOCK(0) || address >= BLOCK(BLOCKS)
               ? NULL
               : &driver.parts[driver.device][(address - BLOCK(0)) / UNIT];
}

static CUresult
take(CUdeviceptr *address, size_t bytes)
{
    unsigned *part = part_of(driver.next);

    driver.calls++;
    driver.seen = bh_share_used(&usage, (uint32_t)driver.device);
    *address = driver.next;
    if (part != NULL)
        *part += 1;
    done();
    return CUDA_SUCCESS;
}

static CUresult
give(CUdeviceptr address)
{
    unsigned *part = part_of(address);

    driver.calls++;
    driver.seen = bh_share_used(&usage, (uint32_t)driver.device);
    if (driver.rc == CUDA_SUCCESS && part != NULL)
        *part -= 1;
    done();
    return driver.rc;
}

static CUresult
current(CUcontext *context)
{
    *context = CONTEXT(driver.device);
    return CUDA_SUCCESS;
}

static CUresult
device_of(CUdevice *device)
{
    *device = driver.device;
    return CUDA_SUCCESS;
}

static CUresult
end(CUcontext context)
{
    memset(driver.parts[driver.device], 0, sizeof(driver.parts[0]));
    done();
    return CUDA_SUCCESS;
}

static int
begin(void **state)
{
    bh_real_cuMemAlloc_v2 = (void *)take;
    bh_real_cuMemFree_v2 = (void *)give;
    bh_real_cuCtxGetCurrent = (void *)current;
    bh_real_cuCtxGetDevice = (void *)device_of;
    bh_real_cuCtxDestroy_v2 = (void *)end;
    limits.device_count = DEVICES;
    for (int i = 0; i < DEVICES; i++) {
        limits.device[i].cap_units = CAP;
        bh_page->index_next[i] = (uint8_t)(i + 1);
        bh_page->ordinal[i] = i;
    }
    bh_page->limits = &limits;
    bh_page->usage = &usage;
    bh_entry_init();
    atomic_store(&bh_page->joined, BH_PAGE_JOINED);
    return 0;
}

/* ---- steps ---- */

static CUresult
allocate(CUdeviceptr at, size_t bytes)
{
    CUdeviceptr address;

    driver.next = at;
    return cuMemAlloc_v2(&address, bytes);
}

static uint32_t
used(void)
{
    return bh_share_used(&usage, 0);
}

/* Nothing is left of what a test did, and at no moment was too little reserved. */
static void
check_clean(void)
{
    BH_CHECK_EQ("on the first", used(), 0);
    BH_CHECK_EQ("on the second", bh_share_used(&usage, 1), 0);
    BH_CHECK("it was never short", !driver.short_of);
    BH_CHECK("nothing of ours is wrong", !bh_state_is_latched());
}

static const struct step {
    const char *name;
    size_t bytes; /* 0: freed */
    CUdeviceptr at;
    uint32_t during, after; /* reserved while the driver is at work, and then */
} steps[] = {
    { "the first of a block", 700, BLOCK(0), 1, 1 },
    { "another in it", 300000, BLOCK(0) + 1024, 2, 1 },
    { "all but a byte of 1 MiB", (1 << 20) - 1, BLOCK(0) + UNIT / 2, 2, 1 },
    { "of another block", 512, BLOCK(1) + 256, 2, 2 },
    { "1 MiB", 1 << 20, BLOCK(2), 3, 3 },
    { "beside the first", 512, BLOCK(0) + 512, 4, 3 },
    { "one goes", 0, BLOCK(0) + 1024, 3, 3 },
    { "the large one goes", 0, BLOCK(2), 3, 2 },
    { "the only one of a block", 0, BLOCK(1) + 256, 2, 1 },
    { "the first one", 0, BLOCK(0), 1, 1 },
    { "one that is not there", 0, BLOCK(0) + 4096, 1, 1 },
    { "the last but one", 0, BLOCK(0) + 512, 1, 1 },
    { "the last one", 0, BLOCK(0) + UNIT / 2, 1, 0 },
    { "and again", 1, BLOCK(0), 1, 1 },
    { "gone", 0, BLOCK(0), 1, 0 },
};

static void
a_unit_is_there_before_and_until_after(void **state)
{
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct step *step = &steps[i];
        CUresult rc = step->bytes != 0 ? allocate(step->at, step->bytes) : cuMemFree_v2(step->at);

        BH_CHECK_EQ(step->name, rc, CUDA_SUCCESS);
        BH_CHECK_EQ(step->name, driver.seen, step->during);
        BH_CHECK_EQ(step->name, used(), step->after);
        memset(driver.parts, 0, sizeof(driver.parts)); /* drawn in the other tests */
    }
    check_clean();
    BH_CHECK_DONE();
}

/* ---- two at once ---- */

static CUresult other_rc;

static void
other_takes(void)
{
    other_rc = allocate(BLOCK(0) + 512, 700);
}

static void
other_takes_elsewhere(void)
{
    driver.device = 1;
    other_rc = allocate(BLOCK(0) + 512, 700);
}

static void
other_gives(void)
{
    other_rc = cuMemFree_v2(BLOCK(0) + 512);
}

static void
the_last_goes_as_another_comes(void **state)
{
    assert_int_equal(allocate(BLOCK(0), 700), CUDA_SUCCESS);
    driver.during = other_takes;
    BH_CHECK_EQ("freed", cuMemFree_v2(BLOCK(0)), CUDA_SUCCESS);
    BH_CHECK_EQ("taken", other_rc, CUDA_SUCCESS);
    BH_CHECK_EQ("the other's", used(), 1);
    driver.during = other_gives;
    BH_CHECK_EQ("comes again", allocate(BLOCK(0), 700), CUDA_SUCCESS);
    BH_CHECK_EQ("given", other_rc, CUDA_SUCCESS);
    BH_CHECK_EQ("its own", used(), 1);
    BH_CHECK_EQ("freed", cuMemFree_v2(BLOCK(0)), CUDA_SUCCESS);
    check_clean();
    BH_CHECK_DONE();
}

/* The former owner of the block still counts it on the first device, when the second has it. */
static void
a_block_goes_to_another_device(void **state)
{
    assert_int_equal(allocate(BLOCK(0), 700), CUDA_SUCCESS);
    driver.during = other_takes_elsewhere;
    BH_CHECK_EQ("freed", cuMemFree_v2(BLOCK(0)), CUDA_SUCCESS);
    BH_CHECK_EQ("taken", other_rc, CUDA_SUCCESS);
    BH_CHECK_EQ("no more there", used(), 0);
    BH_CHECK_EQ("but here", bh_share_used(&usage, 1), 1);
    driver.device = 1;
    BH_CHECK_EQ("freed", cuMemFree_v2(BLOCK(0) + 512), CUDA_SUCCESS);
    driver.device = 0;
    check_clean();
    BH_CHECK_DONE();
}

/* ---- calls that fail ---- */

static void
what_is_not_freed_stays(void **state)
{
    assert_int_equal(allocate(BLOCK(0), 700), CUDA_SUCCESS);
    driver.rc = CUDA_ERROR_INVALID_VALUE;
    BH_CHECK_EQ("refused", cuMemFree_v2(BLOCK(0)), CUDA_ERROR_INVALID_VALUE);
    BH_CHECK_EQ("still there", used(), 1);
    driver.rc = CUDA_SUCCESS;
    BH_CHECK_EQ("freed", cuMemFree_v2(BLOCK(0)), CUDA_SUCCESS);
    check_clean();
    BH_CHECK_DONE();
}

static void
what_cannot_be_noted_is_freed_first(void **state)
{
    static const CUdeviceptr nowhere[] = { BLOCK(0) + 100, BH_RECORDS_END };

    for (int i = 0; i < 2; i++) {
        BH_CHECK_EQ("no address", allocate(nowhere[i], 700), CUDA_ERROR_OUT_OF_MEMORY);
        BH_CHECK_EQ("freed before it is given back", driver.seen, 1);
        BH_CHECK_EQ("given back", used(), 0);
    }
    check_clean();
    driver.rc = CUDA_ERROR_INVALID_VALUE;
    BH_CHECK_EQ("no address", allocate(BH_RECORDS_END, 700), CUDA_ERROR_OUT_OF_MEMORY);
    BH_CHECK_EQ("it could not be freed", used(), 1);
    driver.rc = CUDA_SUCCESS;
    bh_charge_give(0, 1);
    check_clean();
    BH_CHECK_DONE();
}

static void
at_the_cap_the_driver_is_not_asked(void **state)
{
    unsigned calls;

    for (uint64_t i = 0; i < CAP; i++)
        assert_int_equal(allocate(BLOCK(BLOCKS + i), 700), CUDA_SUCCESS);
    calls = driver.calls;
    /* There may be room in a block, but it cannot be known where the driver will look. */
    BH_CHECK_EQ("refused", allocate(BLOCK(BLOCKS) + 1024, 700), CUDA_ERROR_OUT_OF_MEMORY);
    BH_CHECK_EQ("not asked", driver.calls, calls);
    for (uint64_t i = 0; i < CAP; i++)
        BH_CHECK_EQ("freed", cuMemFree_v2(BLOCK(BLOCKS + i)), CUDA_SUCCESS);
    check_clean();
    BH_CHECK_DONE();
}

/* ---- contexts ---- */

static void
a_context_takes_its_blocks_along(void **state)
{
    assert_int_equal(allocate(BLOCK(0), 700), CUDA_SUCCESS);
    assert_int_equal(allocate(BLOCK(0) + 4096, 700), CUDA_SUCCESS);
    assert_int_equal(allocate(BLOCK(3), 700), CUDA_SUCCESS);
    BH_CHECK_EQ("two blocks", used(), 2);
    BH_CHECK_EQ("ended", cuCtxDestroy_v2(CONTEXT(0)), CUDA_SUCCESS);
    check_clean();
    BH_CHECK_DONE();
}

/* ---- a device's own pool, which was not made here ---- */

enum { POOL_CAP = 64, STEP = 16 }; /* units; a pool grows by so many */
#define POOL ((CUmemoryPool)(uintptr_t)0x7000)

static uint64_t pool_used, pool_reserved;

static uint64_t
in_steps(uint64_t bytes)
{
    return (bytes + STEP * UNIT - 1) / (STEP * UNIT) * (STEP * UNIT);
}

static CUresult
pool_of_device(CUmemoryPool *pool, CUdevice device)
{
    *pool = device == 0 ? POOL : NULL;
    return CUDA_SUCCESS;
}

/* It is asked when the handle turned out to be a new one. */
static CUresult
own_pool_of_device(CUmemoryPool *pool, CUdevice device)
{
    done();
    return pool_of_device(pool, device);
}

static CUresult
take_async(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    *address = BLOCK(BLOCKS) + pool_used;
    pool_used += bytes;
    if (pool_used > pool_reserved)
        pool_reserved = in_steps(pool_used);
    return stream == NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult
give_async(CUdeviceptr address, CUstream stream)
{
    pool_used -= UNIT;
    return stream == NULL && address != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult
ask_pool(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    *(uint64_t *)value =
        pool == POOL && attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? pool_reserved : 0;
    return CUDA_SUCCESS;
}

static CUresult
trim_pool(CUmemoryPool pool, size_t keep)
{
    pool_reserved = in_steps(pool_used > keep ? pool_used : keep);
    return pool == POOL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUdeviceptr others;

static void
other_learns(void)
{
    other_rc = cuMemAllocAsync(&others, UNIT, NULL);
}

/* Two that use it for the first time at once charge one pool, not two. */
static void
two_learn_of_a_pool_at_once(void **state)
{
    CUdeviceptr mine;

    bh_real_cuDeviceGetMemPool = (void *)pool_of_device;
    bh_real_cuDeviceGetDefaultMemPool = (void *)own_pool_of_device;
    bh_real_cuMemAllocAsync = (void *)take_async;
    bh_real_cuMemFreeAsync = (void *)give_async;
    bh_real_cuMemPoolGetAttribute = (void *)ask_pool;
    bh_real_cuMemPoolTrimTo = (void *)trim_pool;
    limits.device[0].cap_units = POOL_CAP;
    driver.during = other_learns;
    BH_CHECK_EQ("one", cuMemAllocAsync(&mine, UNIT, NULL), CUDA_SUCCESS);
    BH_CHECK_EQ("the other", other_rc, CUDA_SUCCESS);
    BH_CHECK_EQ("one step", used(), STEP);
    BH_CHECK_EQ("one", cuMemFreeAsync(mine, NULL), CUDA_SUCCESS);
    BH_CHECK_EQ("the other", cuMemFreeAsync(others, NULL), CUDA_SUCCESS);
    BH_CHECK_EQ("trimmed", cuMemPoolTrimTo(POOL, 0), CUDA_SUCCESS);
    limits.device[0].cap_units = CAP;
    check_clean();
    BH_CHECK_DONE();
}

/* ---- four threads, and a driver that takes the first part that is free ---- */

enum { THREADS = 4, ROUNDS = 20000, LIVE = 3, PARTS = 4, PART_BYTES = 1 << 19 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool taken[BLOCKS][PARTS];

/* Under the lock. */
static void
look_at_places(void)
{
    uint32_t held = 0;

    for (int i = 0; i < BLOCKS; i++)
        held += taken[i][0] || taken[i][1] || taken[i][2] || taken[i][3];
    driver.short_of |= held > used();
}

static CUresult
alloc_part(CUdeviceptr *address, size_t bytes)
{
    CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < BLOCKS * PARTS && rc != CUDA_SUCCESS; i++)
        if (!taken[i / PARTS][i % PARTS]) {
            taken[i / PARTS][i % PARTS] = true;
            *address = BLOCK(0) + (uint64_t)i * PART_BYTES;
            rc = CUDA_SUCCESS;
        }
    look_at_places();
    pthread_mutex_unlock(&lock);
    return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : rc;
}

static CUresult
free_part(CUdeviceptr address)
{
    uint64_t i = (address - BLOCK(0)) / PART_BYTES;

    pthread_mutex_lock(&lock);
    look_at_places();
    taken[i / PARTS][i % PARTS] = false;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static void *
churn(void *self)
{
    CUdeviceptr live[LIVE] = { 0 };

    for (unsigned i = 0; i < ROUNDS; i++) {
        CUdeviceptr *one = &live[(i + (uintptr_t)self) % LIVE];

        if (*one != 0 && cuMemFree_v2(*one) != CUDA_SUCCESS)
            return &lock;
        *one = 0;
        if (i % 5 != 0 && cuMemAlloc_v2(one, 700) != CUDA_SUCCESS)
            *one = 0; /* the cap is near */
    }
    for (unsigned i = 0; i < LIVE; i++)
        if (live[i] != 0 && cuMemFree_v2(live[i]) != CUDA_SUCCESS)
            return &lock;
    return NULL;
}

static void
threads_leave_no_block_unpaid(void **state)
{
    pthread_t thread[THREADS];

    bh_real_cuMemAlloc_v2 = (void *)alloc_part;
    bh_real_cuMemFree_v2 = (void *)free_part;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, churn, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *bad;

        pthread_join(thread[i], &bad);
        BH_CHECK("a thread", bad == NULL);
    }
    check_clean();
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_is_there_before_and_until_after),
        cmocka_unit_test(the_last_goes_as_another_comes),
        cmocka_unit_test(a_block_goes_to_another_device),
        cmocka_unit_test(what_is_not_freed_stays),
        cmocka_unit_test(what_cannot_be_noted_is_freed_first),
        cmocka_unit_test(at_the_cap_the_driver_is_not_asked),
        cmocka_unit_test(a_context_takes_its_blocks_along),
        cmocka_unit_test(two_learn_of_a_pool_at_once),
        cmocka_unit_test(threads_leave_no_block_unpaid),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, begin, NULL);
}
