#ifndef BH_NODE_JOB_SCRUB_RUN_H
#define BH_NODE_JOB_SCRUB_RUN_H

#include "node/common/scrub_report.h"
#include "node/sandbox/helper_sandbox.h"

/* One run of bulkhead-scrub on a partition, in a helper sandbox (sandbox/helper_sandbox.h): a range of user
 * ids of its own, no network, the same filter of system calls, the partition's device nodes and no others. No
 * call waits for it. */
struct bh_scrub_run {
    struct bh_helper_sandbox *helper;
    enum { BH_SCRUB_RUN_BUILDS, BH_SCRUB_RUN_WORKS, BH_SCRUB_RUN_DIES } step;
    bh_ns until;       /* monotonic; the end of its step */
    struct bh_err why; /* it dies for */
};

/* Whether there is a helper and, as far as the node can see, a libcuda.so.1 for it; else
 * `ret_why`. */
bool bh_scrub_has_helper(const struct bh_node *node, char *ret_why, size_t size);

/* Begin; as bh_helper_sandbox_start.  It fills at most `most` bytes, if that is not 0. */
BH_MUST_USE bh_rc bh_scrub_run_begin(struct bh_node *node, const struct bh_node_partition *partition,
                                     uint64_t most, struct bh_scrub_run *run, struct bh_err *err);

/* Take it on as far as it goes now.  False: it is not over; `ret_next` is when to come again, if
 * it does not end before.  True: it is, nothing of it is left, and the code in `ret_err` is
 *   BH_OK           it answered: `ret_report`
 *   BH_TIMEOUT      it took longer than scrub_timeout_ms of node.conf and was killed
 *   BH_IO           it died, or said nothing that can be read
 *   BH_UNAVAILABLE  an isolation check of its sandbox failed */
bool bh_scrub_run_advance(struct bh_node *node, struct bh_scrub_run *run, bh_ns *ret_next,
                          struct bh_scrub_report *ret_report, struct bh_err *ret_err);

#endif
