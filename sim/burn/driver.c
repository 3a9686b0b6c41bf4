#include "sim/burn/driver.h"

#include <dlfcn.h>
#include <string.h>

struct symbol {
    const char *name;
    size_t offset;
};

static const struct symbol symbols[] = {
#define CALL(name, symbol) { #symbol, __builtin_offsetof(struct burn_driver, name) },
    BURN_CALLS(CALL)
#undef CALL
};

bool
bh_burn_driver_open(const char *library, struct burn_driver *ret_driver, const char **ret_cause)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL) {
        *ret_cause = dlerror();
        return false;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *function = dlsym(handle, symbols[i].name);

        if (function == NULL) {
            *ret_cause = symbols[i].name;
            return false;
        }
        memcpy((char *)ret_driver + symbols[i].offset, &function, sizeof(function));
    }
    return true;
}

const char *
bh_burn_error_name(const struct burn_driver *driver, CUresult result)
{
    const char *name = NULL;

    if (driver->cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL)
        name = "an error without a name";
    return name;
}
