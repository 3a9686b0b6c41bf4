#include "shim/driver/driver.h"

#include "bulkhead/share_socket.h"
#include "shim/driver/rm_ledger.h"

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

struct bh_library bh_driver = {
    .path = BH_SHARE_DRIVER_DIR "/libcuda.so.1",
    .known = "cuInit",
    .own = (void *)cuInit,
    .names = names,
    .absent = (void *)no_driver,
    .lacking = (void *)driver_lacking,
    .ready = bh_rm_ledger_watch,
};
