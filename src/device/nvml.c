#include "device/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "device/nvml_internal.h"

static void
nvml_close(void *self)
{
    struct bh_nvml *nvml = self;

    if (nvml->events)
        (void)nvml_call(nvml, free_event_set, nvml->events);
    for (uint32_t minor = 0; minor < BH_NVML_GPUS_MAX; minor++)
        bh_nvml_activity_forget_gpu(nvml, &(struct bh_nvml_gpu){ .minor = minor });
    (void)nvml_call(nvml, shutdown);
    dlclose(nvml->library);
    free(nvml->proc_root);
    free(nvml);
}

static const struct bh_device_ops nvml_ops = {
    .name = "nvml",
    .scan = bh_nvml_scan,
    .set_mig = bh_nvml_set_mig,
    .carve = bh_nvml_carve,
    .destroy = bh_nvml_destroy,
    .processes = bh_nvml_processes,
    .busy = bh_nvml_busy,
    .sensors = bh_nvml_sensors,
    .health = bh_nvml_health,
    .next_event = bh_nvml_next_event,
    .close = nvml_close,
};

static void *
find_symbol(void *library, const char *newest, const char *older)
{
    void *symbol = dlsym(library, newest);

    return symbol ? symbol : dlsym(library, older);
}

bh_rc
bh_device_nvml_open(const struct bh_device_options *options, struct bh_device *ret_device, struct bh_err *err)
{
    void *library = dlopen(options->library, RTLD_NOW | RTLD_LOCAL);
    struct bh_nvml *nvml;
    nvmlReturn_t result;

    if (!library)
        return bh_err_set(err, BH_UNAVAILABLE, "cannot load the driver's library: %s", dlerror());
    nvml = calloc(1, sizeof *nvml);
    BH_ASSERT(nvml);
    nvml->library = library;
    nvml->proc_root = strdup(options->proc_root ? options->proc_root : "/proc");
    BH_ASSERT(nvml->proc_root);
#define BH_NVML(member, symbol, older)                                                                       \
    nvml->member = (__typeof__(&symbol))find_symbol(library, #symbol, #older);
#include "tables/nvml_used.tbl"
#undef BH_NVML
    result = nvml_call(nvml, init);
    if (result == NVML_SUCCESS) {
        *ret_device = (struct bh_device){ .ops = &nvml_ops, .self = nvml };
        return BH_OK;
    }
    bh_nvml_fail(err, result, "cannot open the driver by %s", options->library);
    dlclose(library);
    free(nvml->proc_root);
    free(nvml);
    return err->rc;
}
