#ifndef BH_NODE_SCRUB_RUN_H
#define BH_NODE_SCRUB_RUN_H

#include "node/node.h"
#include "node/scrub_report.h"

/* Running bulkhead-scrub on a piece, in a sandbox made as a job's is: a range of user ids
 * of its own, no network, the same filter of system calls, the piece's device nodes and no
 * others.  A call waits for it, at most scrub_timeout_ms of node.conf. */

/* Whether there is a helper and, as far as the node can see, a libcuda.so.1 for it; else
 * `ret_why`. */
bool bh_scrub_has_helper(const struct bh_node *node, char *ret_why, size_t size);

/* BH_TIMEOUT: it was killed; BH_IO: it died or said nothing that can be read; what building
 * the sandbox answers.  Nothing of it is left. */
BH_MUST_USE bh_rc bh_scrub_run(struct bh_node *node, const struct bh_note_piece *piece,
                               struct bh_scrub_report *ret_report, struct bh_err *err);

#endif
