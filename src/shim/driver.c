#include "shim/driver.h"

#include <dlfcn.h>

#include "bulkhead/share_door.h"

#define DRIVER BH_SHARE_DRIVER_DIR "/libcuda.so.1"

static const char *const names[] = {
#define CUDA_NAME(name) #name,
#include "tables/cuda_names.tbl"
#undef CUDA_NAME
};

static CUresult
lacking(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
no_driver(void)
{
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

/* NULL: there is none, or what is there is this library again. */
static void *
open_driver(void)
{
    static void *opened;
    void *driver = __atomic_load_n(&opened, __ATOMIC_ACQUIRE), *first = NULL;

    if (driver != NULL)
        return driver;
    driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        return NULL;
    if (dlsym(driver, "cuInit") == (void *)cuInit ||
        !__atomic_compare_exchange_n(&opened, &first, driver, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        dlclose(driver);
        return first;
    }
    return driver;
}

void *
bh_driver_symbol(const char *name)
{
    void *driver = open_driver();

    return driver == NULL ? NULL : dlsym(driver, name);
}

void *
bh_driver_find(void **slot)
{
    void *driver = open_driver(), *function;

    if (driver == NULL)
        return (void *)no_driver;
    function = dlsym(driver, names[slot - bh_driver_slots]);
    if (function == NULL)
        function = (void *)lacking;
    __atomic_store_n(slot, function, __ATOMIC_RELAXED);
    return function;
}

bool
bh_driver_has(void **slot)
{
    void *function = bh_driver_find(slot);

    return function != (void *)lacking && function != (void *)no_driver;
}
