#include "sim/smi/nvml.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define SONAME "libnvidia-ml.so.1"

static nvmlReturn_t
not_found(void)
{
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static const char *
no_text(nvmlReturn_t code)
{
    return "NVML error";
}

/* Object and function pointers have one size; a cast between them is not C. */
static void
look_up(void *library, const char *name, void *ret_call, size_t size)
{
    nvmlReturn_t (*missing)(void) = not_found;
    void *symbol = dlsym(library, name);

    if (symbol != NULL)
        memcpy(ret_call, &symbol, size);
    else
        memcpy(ret_call, &missing, size);
}

static void
find_path(struct bh_smi_nvml *nvml)
{
    struct link_map *map = NULL;

    snprintf(nvml->path, sizeof(nvml->path), "%s", SONAME);
    if (dlinfo(nvml->library, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && map->l_name[0] != '\0')
        snprintf(nvml->path, sizeof(nvml->path), "%s", map->l_name);
}

bool
bh_smi_nvml_open(const char *path, struct bh_smi_nvml *ret_nvml, char *ret_reason, size_t size)
{
    nvmlReturn_t rc;

    memset(ret_nvml, 0, sizeof(*ret_nvml));
    ret_nvml->library = dlopen(path != NULL ? path : SONAME, RTLD_NOW | RTLD_LOCAL);
    if (ret_nvml->library == NULL) {
        snprintf(ret_reason, size, "cannot load the NVML library: %s", dlerror());
        return false;
    }
#define NVML_CALL(name, params) look_up(ret_nvml->library, #name, &ret_nvml->name, sizeof(ret_nvml->name));
#include "tables/nvml.tbl"
    ret_nvml->nvmlErrorString = no_text;
    if (dlsym(ret_nvml->library, "nvmlErrorString") != NULL)
        look_up(ret_nvml->library, "nvmlErrorString", &ret_nvml->nvmlErrorString,
                sizeof(ret_nvml->nvmlErrorString));
    find_path(ret_nvml);
    rc = ret_nvml->nvmlInit_v2();
    if (rc == NVML_SUCCESS)
        return true;
    snprintf(ret_reason, size, "cannot initialise %s: %s", ret_nvml->path, ret_nvml->nvmlErrorString(rc));
    dlclose(ret_nvml->library);
    return false;
}

void
bh_smi_nvml_close(struct bh_smi_nvml *nvml)
{
    nvml->nvmlShutdown();
    dlclose(nvml->library);
}

bool
bh_smi_nvml_is_simulated(const struct bh_smi_nvml *nvml)
{
    nvmlSystemDriverBranchInfo_t branch = { .version = nvmlSystemDriverBranchInfo_v1_t_WORD };

    return nvml->nvmlSystemGetDriverBranch(&branch, sizeof(branch.branch)) == NVML_SUCCESS
           && strcmp(branch.branch, "bulkhead-sim") == 0;
}
