#include "daemon/names/site_gpu.h"

#include <string.h>

struct bh_site_gpu_flags
bh_site_gpu_flags(const struct bh_site *site, const char *uuid, const char *node)
{
    const struct bh_site_gpu *gpus = site->gpus.items;
    const struct bh_site_pool *pool = bh_site_pool_of(site, node);
    struct bh_site_gpu_flags flags = { .layout = pool ? pool->layout : BH_POOL_LAYOUT_ON_DEMAND };

    for (uint32_t i = 0; i < site->gpus.count; i++)
        if (strcmp(gpus[i].uuid, "all") == 0 || strcmp(gpus[i].uuid, uuid) == 0) {
            flags.managed = gpus[i].managed;
            flags.cordoned = gpus[i].cordoned;
            flags.share_limit = bh_site_gpu_share_limit(&gpus[i]);
        }
    return flags;
}
