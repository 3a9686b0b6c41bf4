#include "shim/calls/module.h"

#include <stdatomic.h>

#include "shim/calls/image.h"
#include "shim/charge/charge.h"
#include "shim/charge/code.h"
#include "shim/charge/context.h"
#include "shim/charge/ledger.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/handles.h"

#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))

/* A module's word: device 4 bits, context 12, grains.  A library's: grains. */
static struct bh_handles modules, libraries;

static BH_STATE union {
    struct {
        _Atomic uint32_t capability[BH_SHARE_DEVICES_MAX]; /* 0: not asked yet */
    };
    char whole[BH_STATE_ALIGN];
} state;

void
bh_modules_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
    bh_handles_init(&modules);
    bh_handles_init(&libraries);
}

/* ---- modules ---- */

static void
module_give_back(uint64_t word)
{
    bh_context_unload((unsigned)(word >> 4 & 0xfff), (unsigned)(word & 15), word >> 16);
}

void
bh_modules_drop(unsigned context)
{
    uint64_t at = 0, handle, word;

    while (bh_handles_next(&modules, &at, &handle, &word))
        if ((word >> 4 & 0xfff) == context && bh_handles_take(&modules, handle, &word))
            module_give_back(word);
}

static unsigned
module_capability_of(unsigned device)
{
    uint32_t known = atomic_load(&state.capability[device]);
    CUdevice ordinal = bh_page->ordinal[device];
    int major = 0, minor = 0;

    if (known != 0)
        return known;
    if (REAL(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal)
            != CUDA_SUCCESS
        || REAL(cuDeviceGetAttribute)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal)
               != CUDA_SUCCESS)
        return 0;
    known = (uint32_t)(major * 10 + minor);
    atomic_store(&state.capability[device], known);
    return known;
}

/* An image, or the path of one. */
struct module_image {
    const void *memory;
    const char *path;
};

static uint64_t
module_grains_of(const struct module_image *image, unsigned device)
{
    unsigned capability = module_capability_of(device);
    uint64_t bytes = image->path != NULL ? bh_image_file_bytes(image->path, capability)
                                         : bh_image_bytes(image->memory, capability);

    return bytes / BH_GRAIN_BYTES + (bytes % BH_GRAIN_BYTES != 0);
}

struct load {
    struct bh_where where;
    uint64_t grains;
};

static CUresult
module_begin_load(const struct module_image *image, struct load *ret_load)
{
    CUresult rc = bh_ledger_ready();

    if (rc == CUDA_SUCCESS)
        rc = bh_context_here(&ret_load->where);
    if (rc != CUDA_SUCCESS)
        return rc;
    ret_load->grains = module_grains_of(image, ret_load->where.device);
    return bh_context_load(ret_load->where.context, ret_load->where.device, ret_load->grains);
}

static CUresult
module_end_load(const struct load *load, CUresult rc, const CUmodule *module)
{
    uint64_t word = load->where.device | (uint64_t)load->where.context << 4 | load->grains << 16;

    if (rc == CUDA_SUCCESS && bh_handles_put(&modules, HANDLE(*module), word))
        return CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS)
        (void)REAL(cuModuleUnload)(*module);
    module_give_back(word);
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

#define LOAD(name, member, source, parameters, arguments)                                                    \
    CUresult name parameters                                                                                 \
    {                                                                                                        \
        struct module_image image = { .member = source };                                                    \
        struct load load;                                                                                    \
        CUresult rc = module_begin_load(&image, &load);                                                      \
                                                                                                             \
        return rc != CUDA_SUCCESS ? rc : module_end_load(&load, REAL(name) arguments, module);               \
    }

LOAD(cuModuleLoad, path, fname, (CUmodule * module, const char *fname), (module, fname))
LOAD(cuModuleLoadData, memory, data, (CUmodule * module, const void *data), (module, data))
LOAD(cuModuleLoadFatBinary, memory, fat_cubin, (CUmodule * module, const void *fat_cubin),
     (module, fat_cubin))
LOAD(cuModuleLoadDataEx, memory, data,
     (CUmodule * module, const void *data, unsigned int num_options, CUjit_option *options,
      void **option_values),
     (module, data, num_options, options, option_values))

/* Its handle may be another module's as soon as the driver has it back. */
CUresult
cuModuleUnload(CUmodule hmod)
{
    uint64_t word = 0;
    bool known = bh_handles_take(&modules, HANDLE(hmod), &word);
    CUresult rc = REAL(cuModuleUnload)(hmod);

    if (known && rc == CUDA_SUCCESS)
        module_give_back(word);
    else if (known)
        (void)BH_HOLDS(bh_handles_put(&modules, HANDLE(hmod), word));
    return rc;
}

/* ---- libraries ---- */

/* Of the first `count` devices. */
static void
module_give_libraries(unsigned count, uint64_t grains)
{
    for (unsigned device = 0; device < count; device++)
        bh_code_shrink(device, grains);
}

/* Devices of a lease are of one model mostly; else the largest image of them counts. */
static CUresult
module_begin_library(const struct module_image *image, uint64_t *ret_grains)
{
    CUresult rc = bh_ledger_ready();
    unsigned devices = rc == CUDA_SUCCESS ? bh_page->limits->device_count : 0;
    uint64_t most = 0;

    for (unsigned device = 0; device < devices; device++)
        if (device == 0 || module_capability_of(device) != module_capability_of(device - 1)) {
            uint64_t grains = module_grains_of(image, device);

            most = grains > most ? grains : most;
        }
    if (most >= bh_charge_of_units(BH_SHARE_UNITS_MAX))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned device = 0; rc == CUDA_SUCCESS && device < devices; device++) {
        rc = bh_code_grow(device, most);
        if (rc != CUDA_SUCCESS)
            module_give_libraries(device, most);
    }
    *ret_grains = most;
    return rc;
}

static CUresult
module_end_library(uint64_t grains, CUresult rc, const CUlibrary *library)
{
    if (rc == CUDA_SUCCESS && bh_handles_put(&libraries, HANDLE(*library), grains))
        return CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS)
        (void)REAL(cuLibraryUnload)(*library);
    module_give_libraries(bh_page->limits->device_count, grains);
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

#define LOAD_LIBRARY(name, member, type)                                                                     \
    CUresult name(CUlibrary *library, type source, CUjit_option *jit_options, void **jit_values,             \
                  unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)       \
    {                                                                                                        \
        struct module_image image = { .member = source };                                                    \
        uint64_t grains;                                                                                     \
        CUresult rc = module_begin_library(&image, &grains);                                                 \
                                                                                                             \
        if (rc != CUDA_SUCCESS)                                                                              \
            return rc;                                                                                       \
        rc = REAL(name)(library, source, jit_options, jit_values, jit_count, options, values, count);        \
        return module_end_library(grains, rc, library);                                                      \
    }

LOAD_LIBRARY(cuLibraryLoadData, memory, const void *)
LOAD_LIBRARY(cuLibraryLoadFromFile, path, const char *)

CUresult
cuLibraryUnload(CUlibrary library)
{
    uint64_t grains = 0;
    bool known = bh_handles_take(&libraries, HANDLE(library), &grains);
    CUresult rc = REAL(cuLibraryUnload)(library);

    if (known && rc == CUDA_SUCCESS)
        module_give_libraries(bh_page->limits->device_count, grains);
    else if (known)
        (void)BH_HOLDS(bh_handles_put(&libraries, HANDLE(library), grains));
    return rc;
}
