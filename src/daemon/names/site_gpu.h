#ifndef BH_DAEMON_NAMES_SITE_GPU_H
#define BH_DAEMON_NAMES_SITE_GPU_H

#include "model/site.h"

/* What the site says of a GPU, by its UUID and the name of its node; a later entry of the file
 * outranks an earlier one. */
struct bh_site_gpu_flags {
    uint32_t share_limit; /* as in bh_ev_gpu */
    bool managed, cordoned;
    enum bh_pool_layout layout;
};
struct bh_site_gpu_flags bh_site_gpu_flags(const struct bh_site *site, const char *uuid, const char *node);

#endif
