#include "shim/charge/pool.h"

#include <stdatomic.h>

#include "shim/charge/charge.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/handles.h"
#include "shim/process/records.h"
#include "shim/work/capture.h"

#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))

enum {
    POOLS_MAX = 1024,
    GROWTH_UNITS = 16, /* 32 MiB: how pools are expected to grow */
    UNCHARGED = 0xff,  /* device of a pool that takes no memory of the lease */
};
enum { NONE = 0, CLAIMED = 1, DESTROYED = 2, GRAPHS = 3 }; /* of a row's handle */

/* charge: 24 bits units, 16 bits calls in progress, 24 bits sequence. */
struct pool_row {
    _Atomic uint64_t handle, charge;
    _Atomic uint64_t live; /* grains allocated from it, calls in progress included */
    _Atomic uint32_t freed;
    uint32_t device;
};

static BH_STATE union {
    struct {
        struct pool_row row[POOLS_MAX];                 /* the first ones are the graphs', by device */
        _Atomic uint64_t current[BH_SHARE_DEVICES_MAX]; /* number + 1 of a device's pool */
        _Atomic uint32_t rows, any_freed, era;
    };
    char whole[POOLS_MAX * sizeof(struct pool_row) + BH_STATE_ALIGN];
} state;

static struct bh_handles handles;

void
bh_pools_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
    bh_handles_init(&handles);
    for (unsigned device = 0; device < BH_SHARE_DEVICES_MAX; device++) {
        state.row[device].device = device;
        atomic_store(&state.row[device].handle, GRAPHS);
    }
    atomic_store(&state.rows, BH_SHARE_DEVICES_MAX);
    atomic_store(&state.era, 1);
}

/* ---- the charge ---- */

static uint64_t
pool_units_of(uint64_t charge)
{
    return charge >> 40;
}

static uint64_t
pool_calls_of(uint64_t charge)
{
    return charge >> 24 & 0xffff;
}

static uint64_t
pool_charge_of(uint64_t units, uint64_t calls, uint64_t before)
{
    return units << 40 | (calls & 0xffff) << 24 | ((before + 1) & 0xffffff);
}

static uint64_t
pool_units_for(uint64_t grains)
{
    return (grains + BH_GRAINS_UNIT - 1) / BH_GRAINS_UNIT;
}

/* Reserve what is missing to `need` units, in the steps in which pools grow: what is not
 * there for a whole step is not enough. */
static bool
pool_reserve_growth(unsigned device, uint64_t have, uint64_t need, uint64_t *ret_more)
{
    uint64_t step = (need + GROWTH_UNITS - 1) / GROWTH_UNITS * GROWTH_UNITS;

    *ret_more = need <= have ? 0 : step - have;
    return bh_charge_take(device, bh_charge_of_units(*ret_more));
}

/* One call more is in progress, and what it may make the pool grow to is charged: all that
 * is allocated from it; a graph's memory comes on top of what other graphs have. */
static bool
pool_enter(struct pool_row *row, uint64_t grains)
{
    bool graphs = atomic_load(&row->handle) == GRAPHS;
    uint64_t before = atomic_load(&row->charge), more;

    for (;;) {
        uint64_t need =
            graphs ? pool_units_of(before) + pool_units_for(grains) : pool_units_for(atomic_load(&row->live));

        if (!pool_reserve_growth(row->device, pool_units_of(before), need, &more))
            return false;
        if (atomic_compare_exchange_strong(
                &row->charge, &before,
                pool_charge_of(pool_units_of(before) + more, pool_calls_of(before) + 1, before)))
            return true;
        bh_charge_give(row->device, bh_charge_of_units(more));
    }
}

static uint64_t
pool_reserved_units(const struct pool_row *row, uint64_t handle)
{
    uint64_t bytes = 0;
    CUresult rc = handle == GRAPHS
                      ? REAL(cuDeviceGetGraphMemAttribute)(bh_page->ordinal[row->device],
                                                           CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes)
                      : REAL(cuMemPoolGetAttribute)((CUmemoryPool)(uintptr_t)handle,
                                                    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);

    return rc == CUDA_SUCCESS ? pool_units_for(bh_charge_grains(bytes))
                              : pool_units_for(atomic_load(&row->live));
}

/* A call less is in progress.  What is charged becomes what the driver says; less of it
 * only when no other call may be making the pool grow.  False: more is reserved than the
 * cap leaves; the call is still in progress. */
static bool
pool_leave(struct pool_row *row, uint64_t handle)
{
    uint64_t before = atomic_load(&row->charge);

    for (;;) {
        uint64_t have = pool_units_of(before), calls = pool_calls_of(before);
        uint64_t truth = pool_reserved_units(row, handle);
        uint64_t after = truth > have || calls == 1 ? truth : have;

        if (after > have && !bh_charge_take(row->device, bh_charge_of_units(after - have)))
            return false;
        if (atomic_compare_exchange_strong(&row->charge, &before, pool_charge_of(after, calls - 1, before))) {
            if (after < have)
                bh_charge_give(row->device, bh_charge_of_units(have - after));
            return true;
        }
        if (after > have)
            bh_charge_give(row->device, bh_charge_of_units(after - have));
    }
}

static void
pool_trim(const struct pool_row *row, uint64_t handle)
{
    if (handle != GRAPHS) {
        (void)REAL(cuMemPoolTrimTo)((CUmemoryPool)(uintptr_t)handle, 0);
        return;
    }
    (void)REAL(cuDeviceGraphMemTrim)(bh_page->ordinal[row->device]);
    atomic_fetch_add(&state.era, 1);
}

/* A call in progress ends without a word from the driver: it keeps what it is charged. */
static void
pool_leave_as_is(struct pool_row *row)
{
    uint64_t before = atomic_load(&row->charge);

    while (!atomic_compare_exchange_weak(
        &row->charge, &before, pool_charge_of(pool_units_of(before), pool_calls_of(before) - 1, before)))
        ;
}

/* ---- calls that take from a pool and give to it ---- */

static bool
pool_is_charged(const struct pool_row *row)
{
    return row->device != UNCHARGED;
}

CUresult
bh_pool_begin(unsigned pool, uint64_t grains)
{
    struct pool_row *row = &state.row[pool];

    if (!pool_is_charged(row))
        return CUDA_SUCCESS;
    if (pool_units_for(grains) > BH_SHARE_UNITS_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_fetch_add(&row->live, grains);
    if (pool_enter(row, grains) || (bh_pools_reclaim(row->device) && pool_enter(row, grains)))
        return CUDA_SUCCESS;
    atomic_fetch_sub(&row->live, grains);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

bool
bh_pool_end(unsigned pool, uint64_t grains, bool allocated)
{
    struct pool_row *row = &state.row[pool];
    uint64_t handle = atomic_load(&row->handle);
    struct bh_capture_pause pause;
    bool good;

    if (!pool_is_charged(row))
        return true;
    bh_capture_pause(&pause);
    good = pool_leave(row, handle);
    if (!good) {
        pool_trim(row, handle);
        good = pool_leave(row, handle);
    }
    bh_capture_resume(&pause);
    if (!good)
        pool_leave_as_is(row);
    if (!good || !allocated)
        bh_pool_freed(pool, grains);
    return good;
}

/* The last one out of a destroyed pool gives all of it back. */
static void
pool_bury(struct pool_row *row)
{
    uint64_t destroyed = DESTROYED;

    if (atomic_load(&row->live) != 0 || !atomic_compare_exchange_strong(&row->handle, &destroyed, CLAIMED))
        return;
    bh_charge_give(row->device, bh_charge_of_units(pool_units_of(atomic_exchange(&row->charge, 0))));
    atomic_store(&row->handle, NONE);
}

void
bh_pool_freed(unsigned pool, uint64_t grains)
{
    struct pool_row *row = &state.row[pool];

    if (!pool_is_charged(row))
        return;
    atomic_fetch_sub(&row->live, grains);
    atomic_store_explicit(&row->freed, 1, memory_order_relaxed);
    atomic_store_explicit(&state.any_freed, 1, memory_order_release);
    if (atomic_load(&row->handle) == DESTROYED)
        pool_bury(row);
}

/* ---- settling ---- */

/* What a pool keeps beyond what is allocated may go whenever the program waits. */
static void
pool_look_again(struct pool_row *row)
{
    if (pool_units_of(atomic_load(&row->charge)) <= pool_units_for(atomic_load(&row->live)))
        return;
    atomic_store_explicit(&row->freed, 1, memory_order_relaxed);
    atomic_store_explicit(&state.any_freed, 1, memory_order_release);
}

static bool
pool_settle(struct pool_row *row, bool with_trim)
{
    uint64_t handle = atomic_load(&row->handle), before = pool_units_of(atomic_load(&row->charge));

    if (handle == NONE || handle == CLAIMED || handle == DESTROYED || before == 0 || !pool_enter(row, 0))
        return false;
    if (with_trim)
        pool_trim(row, handle);
    if (!pool_leave(row, handle))
        pool_leave_as_is(row);
    if (handle != GRAPHS) /* whose memory stays until it is trimmed */
        pool_look_again(row);
    return pool_units_of(atomic_load(&row->charge)) < before;
}

static bool
pool_settle_all(unsigned device, bool with_trim)
{
    struct bh_capture_pause pause;
    bool came = false;

    bh_capture_pause(&pause);
    for (unsigned i = 0; i < atomic_load(&state.rows); i++) {
        struct pool_row *row = &state.row[i];
        bool mine = device == UNCHARGED ? atomic_exchange(&row->freed, 0) != 0 : row->device == device;

        if (mine && pool_is_charged(row))
            came = pool_settle(row, with_trim) || came;
    }
    bh_capture_resume(&pause);
    return came;
}

void
bh_pools_settle(void)
{
    if (__builtin_expect(atomic_load_explicit(&state.any_freed, memory_order_relaxed) != 0, 0)
        && atomic_exchange(&state.any_freed, 0) != 0)
        pool_settle_all(UNCHARGED, false);
}

void
bh_pool_shrink(unsigned pool)
{
    if (pool_is_charged(&state.row[pool]))
        pool_settle(&state.row[pool], true);
}

bool
bh_pools_reclaim(unsigned device)
{
    return pool_settle_all(device, true);
}

/* ---- which pool ---- */

static void
pool_count_row(unsigned number)
{
    uint32_t rows = atomic_load(&state.rows);

    while (rows <= number && !atomic_compare_exchange_weak(&state.rows, &rows, number + 1))
        ;
}

/* One that was just made, or imported. */
static bool
pool_know(CUmemoryPool handle, unsigned device, unsigned *ret_pool)
{
    for (unsigned i = BH_SHARE_DEVICES_MAX; i < POOLS_MAX; i++) {
        struct pool_row *row = &state.row[i];
        uint64_t none = NONE;

        if (!atomic_compare_exchange_strong(&row->handle, &none, CLAIMED))
            continue;
        pool_count_row(i);
        row->device = device;
        atomic_store(&row->charge, 0);
        atomic_store(&row->live, 0);
        atomic_store(&row->handle, HANDLE(handle));
        *ret_pool = i;
        return bh_handles_put(&handles, HANDLE(handle), i);
    }
    return false;
}

/* One that was there before: several threads may meet it at once, and all of them get the row
 * that the first one has put its handle in.  Nothing is charged in a row that is free. */
static bool
pool_learn(CUmemoryPool handle, unsigned device, unsigned *ret_pool)
{
    for (unsigned i = BH_SHARE_DEVICES_MAX; i < POOLS_MAX; i++) {
        struct pool_row *row = &state.row[i];
        uint64_t there = NONE;

        if (!atomic_compare_exchange_strong(&row->handle, &there, HANDLE(handle)) && there != HANDLE(handle))
            continue;
        row->device = device;
        pool_count_row(i);
        *ret_pool = i;
        return bh_handles_put(&handles, HANDLE(handle), i);
    }
    return false;
}

/* The device whose own pool it is: those are there without being made. */
static unsigned
pool_owner_of(CUmemoryPool handle)
{
    for (unsigned i = 0; i < bh_page->limits->device_count; i++) {
        CUmemoryPool own = NULL;

        if (REAL(cuDeviceGetDefaultMemPool)(&own, bh_page->ordinal[i]) == CUDA_SUCCESS && own == handle)
            return i;
        if (REAL(cuDeviceGetMemPool)(&own, bh_page->ordinal[i]) == CUDA_SUCCESS && own == handle)
            return i;
    }
    return UNCHARGED;
}

bool
bh_pool_of_handle(CUmemoryPool handle, unsigned *ret_pool)
{
    uint64_t number;

    if (bh_handles_find(&handles, HANDLE(handle), &number)) {
        *ret_pool = (unsigned)number;
        return true;
    }
    return handle != NULL && pool_learn(handle, pool_owner_of(handle), ret_pool);
}

bool
bh_pool_of_device(unsigned device, unsigned *ret_pool)
{
    CUmemoryPool handle = NULL;
    uint64_t known = atomic_load(&state.current[device]);

    if (known != 0) {
        *ret_pool = (unsigned)known - 1;
        return true;
    }
    if (REAL(cuDeviceGetMemPool)(&handle, bh_page->ordinal[device]) != CUDA_SUCCESS
        || !bh_pool_of_handle(handle, ret_pool))
        return false;
    atomic_store(&state.current[device], *ret_pool + 1);
    return true;
}

unsigned
bh_pool_of_graphs(unsigned device)
{
    return device;
}

uint32_t
bh_pools_era(void)
{
    return atomic_load(&state.era);
}

/* ---- the calls that make and change pools ---- */

static unsigned
pool_device_of(const CUmemLocation *location, CUmemAllocationType type)
{
    int index = -1;

    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
        index = bh_page_managed_device(location);
    else if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        index = bh_page_device(location->id);
    return index < 0 ? UNCHARGED : (unsigned)index;
}

static bool
pool_is_refused(CUmemAllocationType type)
{
    return type == CU_MEM_ALLOCATION_TYPE_MANAGED && bh_page_is_joined() && bh_page_has_no_managed();
}

CUresult
cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *pool_props)
{
    CUmemAllocationType type = pool_props == NULL ? 0 : pool_props->allocType;
    CUresult rc = pool_is_refused(type) ? CUDA_ERROR_NOT_SUPPORTED : REAL(cuMemPoolCreate)(pool, pool_props);
    unsigned number;

    if (rc != CUDA_SUCCESS || !bh_page_is_joined())
        return rc;
    if (pool_know(*pool, pool_device_of(&pool_props->location, type), &number))
        return CUDA_SUCCESS;
    (void)REAL(cuMemPoolDestroy)(*pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, CUmemAllocationHandleType handle_type,
                                   unsigned long long flags)
{
    CUresult rc = REAL(cuMemPoolImportFromShareableHandle)(pool, handle, handle_type, flags);
    unsigned number;

    if (rc == CUDA_SUCCESS && bh_page_is_joined())
        (void)pool_know(*pool, UNCHARGED, &number); /* the exporter is charged */
    return rc;
}

static void
pool_forget_current(void)
{
    for (unsigned i = 0; i < BH_SHARE_DEVICES_MAX; i++)
        atomic_store(&state.current[i], 0);
}

CUresult
cuMemPoolDestroy(CUmemoryPool pool)
{
    uint64_t number;
    bool known = bh_handles_take(&handles, HANDLE(pool), &number);
    CUresult rc;

    if (known)
        atomic_store(&state.row[number].handle, DESTROYED);
    rc = REAL(cuMemPoolDestroy)(pool);
    if (!known)
        return rc;
    if (rc == CUDA_SUCCESS) {
        pool_forget_current();
        pool_bury(&state.row[number]);
    } else {
        atomic_store(&state.row[number].handle, HANDLE(pool));
        (void)BH_HOLDS(bh_handles_put(&handles, HANDLE(pool), number));
    }
    return rc;
}

/* Keeping more than the cap would only be taken from the pool again. */
CUresult
cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    unsigned number;
    uint64_t most, wanted;

    if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || value == NULL || !bh_page_is_joined()
        || !bh_pool_of_handle(pool, &number) || !pool_is_charged(&state.row[number]))
        return REAL(cuMemPoolSetAttribute)(pool, attribute, value);
    wanted = *(const uint64_t *)value;
    most = bh_page_limits(state.row[number].device)->cap_units * BH_SHARE_UNIT_BYTES;
    wanted = wanted < most ? wanted : most;
    return REAL(cuMemPoolSetAttribute)(pool, attribute, &wanted);
}

CUresult
cuMemPoolTrimTo(CUmemoryPool pool, size_t min_bytes_to_keep)
{
    CUresult rc = REAL(cuMemPoolTrimTo)(pool, min_bytes_to_keep);
    uint64_t number;

    if (bh_handles_find(&handles, HANDLE(pool), &number) && pool_is_charged(&state.row[number]))
        pool_settle(&state.row[number], false);
    return rc;
}

CUresult
cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    CUresult rc = REAL(cuDeviceSetMemPool)(device, pool);

    pool_forget_current();
    return rc;
}

/* A device's own managed pool is not found by bh_pool_of_handle: which device it counts against
 * is known here. */
static CUresult
pool_know_managed(CUresult rc, const CUmemoryPool *pool, const CUmemLocation *location,
                  CUmemAllocationType type)
{
    uint64_t known;
    unsigned number;

    if (rc != CUDA_SUCCESS || type != CU_MEM_ALLOCATION_TYPE_MANAGED || !bh_page_is_joined()
        || bh_handles_find(&handles, HANDLE(*pool), &known)
        || pool_learn(*pool, pool_device_of(location, type), &number))
        return rc;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    if (pool_is_refused(type))
        return CUDA_ERROR_NOT_SUPPORTED;
    return pool_know_managed(REAL(cuMemGetDefaultMemPool)(pool, location, type), pool, location, type);
}

CUresult
cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    if (pool_is_refused(type))
        return CUDA_ERROR_NOT_SUPPORTED;
    return pool_know_managed(REAL(cuMemGetMemPool)(pool, location, type), pool, location, type);
}

CUresult
cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUresult rc = REAL(cuMemSetMemPool)(location, type, pool);

    pool_forget_current();
    return rc;
}

CUresult
cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult rc = REAL(cuDeviceGraphMemTrim)(device);
    int index = bh_page_device(device);

    atomic_fetch_add(&state.era, 1);
    if (index >= 0)
        pool_settle(&state.row[bh_pool_of_graphs((unsigned)index)], false);
    return rc;
}
