/* Managed memory, which the driver moves between a device and main memory: what it is of a
 * lease is the site's word (docs/shares.md). */
#ifndef BH_SHIM_MANAGED_H
#define BH_SHIM_MANAGED_H

#include "shim/abi.h"
#include "shim/page.h"

/* Of a process that has joined: what enum bh_share_managed says of its lease. */
static inline bool
bh_managed_is_none(void)
{
    return bh_page->limits->managed == BH_SHARE_MANAGED_NONE;
}

/* The index of the device that managed memory of a location counts against; -1: of none.  Where
 * it lies does not matter: what lies nowhere yet counts against the first. */
int bh_managed_device(const CUmemLocation *location);

#endif
