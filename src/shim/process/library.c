#include "shim/process/library.h"

#include <dlfcn.h>
#include <stddef.h>

/* NULL: there is none, or what is there is this library again. */
static void *
open_library(void)
{
    void *driver = __atomic_load_n(&bh_driver.opened, __ATOMIC_ACQUIRE), *first = NULL;
    bool itself;

    if (driver != NULL)
        return driver;
    driver = dlopen(bh_driver.path, RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        return NULL;
    itself = dlsym(driver, bh_driver.known) == bh_driver.own;
    if (!itself && bh_driver.ready != NULL)
        bh_driver.ready(driver);
    if (itself
        || !__atomic_compare_exchange_n(&bh_driver.opened, &first, driver, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
        dlclose(driver);
        return first;
    }
    return driver;
}

void *
bh_driver_find(void **slot)
{
    void *driver = open_library(), *function;

    if (driver == NULL)
        return bh_driver.absent;
    function = dlsym(driver, bh_driver.names[slot - bh_driver_slots]);
    if (function == NULL)
        function = bh_driver.lacking;
    __atomic_store_n(slot, function, __ATOMIC_RELAXED);
    return function;
}

bool
bh_driver_has(void **slot)
{
    void *function = bh_driver_find(slot);

    return function != bh_driver.lacking && function != bh_driver.absent;
}
