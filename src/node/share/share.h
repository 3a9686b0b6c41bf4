#ifndef BH_NODE_SHARE_SHARE_H
#define BH_NODE_SHARE_SHARE_H

#include <stdint.h>

#include "base/err.h"
#include "base/time.h"
#include "share/message.h"

/* bulkhead-share as bulkhead-node runs it: started when the first lease with a share comes,
 * started again when it ends, with the open leases. */
struct bh_share_host;

struct bh_share_host_options {
    const char *program; /* path of bulkhead-share */
    /* Called for a notice while the host is called. */
    void (*notice)(void *self, const struct bh_share_notice *notice);
    void *self;
};

enum { BH_SHARE_LEASES_MAX = 128 };

BH_MUST_USE struct bh_share_host *bh_share_host_new(const struct bh_share_host_options *options);

/* End bulkhead-share; pages and doors stay, and it finds them again. */
void bh_share_host_free(struct bh_share_host *host);
BH_AUTO_DEFINE(struct bh_share_host *, bh_share_host_free)

/* Make the pages and the door of a lease below open->folder, which is there.  Repeatable.
 * Waits for the answer, 2 s at most.
 *   BH_INVALID, BH_FULL, BH_IO  as bulkhead-share says
 *   BH_TIMEOUT, BH_UNAVAILABLE  it does not answer, or cannot be started */
BH_MUST_USE bh_rc bh_share_host_open(struct bh_share_host *host, const struct bh_share_open *open,
                                     struct bh_err *err);

/* The lease's processes are gone.  Nothing when it is not open. */
void bh_share_host_close(struct bh_share_host *host, uint64_t lease);

/* What the driver says that a lease has on a device. */
void bh_share_host_overhead(struct bh_share_host *host, const struct bh_share_overhead *overhead);

/* That a process holds GPU memory, as the driver says. */
void bh_share_host_holder(struct bh_share_host *host, const struct bh_share_holder *holder);

/* What a lease is allowed from now on, also by a bulkhead-share that is started later.  Nothing
 * when it is not open. */
void bh_share_host_allow(struct bh_share_host *host, const struct bh_share_allow *allow);

/* To poll for reading; -1: nothing runs.  Ready, or a second passed: bh_share_host_dispatch,
 * which takes what was said and starts a bulkhead-share that ended again. */
int bh_share_host_fd(const struct bh_share_host *host);
void bh_share_host_dispatch(struct bh_share_host *host);

/* How a lease stood within the last second or so; NULL: not open, or not reported yet. */
const struct bh_share_lease_state *bh_share_host_find(const struct bh_share_host *host, uint64_t lease);

#endif
