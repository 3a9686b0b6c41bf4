/* What a lease has of its GPUs, as NVML's calls show it: from the lease's pages, which are
 * mapped for reading alone.
 *
 * The view joins nothing: it has no slot, keeps no connection and charges nothing.  No
 * lock; a fork's child keeps what is mapped. */
#ifndef BH_SHIM_NVML_VIEW_H
#define BH_SHIM_NVML_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead/share_page.h"
#include "shim/nvml/driver.h"

/* A process that has something on a device. */
struct bh_view_user {
    uint32_t pid; /* in the job's own namespace */
    uint64_t bytes;
};

/* See the pages; once is enough.  NOT_READY: no connection, or not the pages that this
 * library knows. */
nvmlReturn_t bh_view_open(void);

/* The devices of the lease; 0 while the pages are not seen. */
unsigned bh_view_count(void);

/* The device of the lease with that index.  UNINITIALIZED: the pages are not seen;
 * INVALID_ARGUMENT: there is none; or what the driver says. */
nvmlReturn_t bh_view_device(unsigned index, nvmlDevice_t *ret_device);

/* Which of the lease's devices it is.  INVALID_ARGUMENT: none; or what the driver says. */
nvmlReturn_t bh_view_index(nvmlDevice_t device, unsigned *ret_index);

/* The same, for a call that puts its answer to `answer`: INVALID_ARGUMENT also when that is NULL,
 * once the device is known to be one of them. */
static inline nvmlReturn_t
bh_view_answer(nvmlDevice_t device, const void *answer, unsigned *ret_index)
{
    nvmlReturn_t rc = bh_view_index(device, ret_index);

    return rc == NVML_SUCCESS && answer == NULL ? NVML_ERROR_INVALID_ARGUMENT : rc;
}

/* Memory in bytes: what the device reports to programs, and what is taken of it,
 * never more. */
void bh_view_memory(unsigned index, uint64_t *ret_total, uint64_t *ret_used);

/* How busy the lease kept the device in the last second, in thousandths of it.  NOT_SUPPORTED:
 * it was not measured; `ret_whole`: what the driver reports of the whole device is the lease's own. */
nvmlReturn_t bh_view_busy(unsigned index, unsigned *ret_permille, bool *ret_whole);

/* The processes that hold memory of the device, BH_SHARE_SLOTS_MAX at most; how many. */
unsigned bh_view_users(unsigned index, struct bh_view_user *ret_users);

#endif
