#ifndef BH_DEVICE_HOLDERS_H
#define BH_DEVICE_HOLDERS_H

#include <stdint.h>

#include "base/buf.h"

/* Who holds a GPU's device node open, as /proc tells. */

/* "1234 (python3), 99 (dcgm-exporter)": the processes, without this one, that have
 * `node` open, at most `most` of them, and ", ..." when there are more.  How many were
 * found.  Processes that may not be looked into are left out. */
uint32_t bh_holders_put(struct bh_buf *out, const char *proc_root, const char *node,
                        uint32_t most);

/* "1234 (python3)", or "1234" when the process cannot be asked its name. */
void bh_holders_put_name(struct bh_buf *out, const char *proc_root, uint32_t pid);

#endif
