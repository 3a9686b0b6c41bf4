/* Mapping a lease's pages, as bulkhead-share sends them. */
#ifndef BH_SHIM_DRIVER_PAGES_H
#define BH_SHIM_DRIVER_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "bulkhead/share_page.h"

/* Map `bytes` of a page, over what is at `at` when that is not NULL.  NULL: it is too
 * short, or there is no room. */
void *bh_pages_map(int fd, size_t bytes, int protection, void *at);

/* Are they of the kind that this library knows? */
bool bh_pages_are_good(const struct bh_share_limits *limits);

#endif
