#include "shim/driver/driver.h"

#include "bulkhead/share_socket.h"
#include "shim/driver/rm_ledger.h"
#include "shim/process/library.h"

static const char *const names[] = {
#define CUDA_NAME(name) #name,
#include "tables/cuda_names.tbl"
#undef CUDA_NAME
};

static CUresult
driver_lacking(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
no_driver(void)
{
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

static struct bh_library driver = {
    .path = BH_SHARE_DRIVER_DIR "/libcuda.so.1",
    .known = "cuInit",
    .own = (void *)cuInit,
    .names = names,
    .slots = bh_driver_slots,
    .absent = (void *)no_driver,
    .lacking = (void *)driver_lacking,
    .ready = bh_rm_ledger_watch,
};

void *
bh_driver_symbol(const char *name)
{
    return bh_library_symbol(&driver, name);
}

void *
bh_driver_find(void **slot)
{
    return bh_library_find(&driver, slot);
}

bool
bh_driver_has(void **slot)
{
    return bh_library_has(&driver, slot);
}
