#include "shim/process/library.h"

#include <dlfcn.h>
#include <stddef.h>

/* NULL: there is none, or what is there is this library again. */
static void *
open_library(struct bh_library *library)
{
    void *driver = __atomic_load_n(&library->opened, __ATOMIC_ACQUIRE), *first = NULL;
    bool itself;

    if (driver != NULL)
        return driver;
    driver = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        return NULL;
    itself = dlsym(driver, library->known) == library->own;
    if (!itself && library->ready != NULL)
        library->ready(driver);
    if (itself
        || !__atomic_compare_exchange_n(&library->opened, &first, driver, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
        dlclose(driver);
        return first;
    }
    return driver;
}

void *
bh_library_symbol(struct bh_library *library, const char *name)
{
    void *driver = open_library(library);

    return driver == NULL ? NULL : dlsym(driver, name);
}

void *
bh_library_find(struct bh_library *library, void **slot)
{
    void *driver = open_library(library), *function;

    if (driver == NULL)
        return library->absent;
    function = dlsym(driver, library->names[slot - library->slots]);
    if (function == NULL)
        function = library->lacking;
    __atomic_store_n(slot, function, __ATOMIC_RELAXED);
    return function;
}

bool
bh_library_has(struct bh_library *library, void **slot)
{
    void *function = bh_library_find(library, slot);

    return function != library->lacking && function != library->absent;
}
