#ifndef BH_NODE_JOB_JOB_LOG_H
#define BH_NODE_JOB_JOB_LOG_H

#include "node/core/node.h"

/* The output of jobs: one log for each member (bh_job_log_name); a job that was queued again appends to
 * it. */

/* Open the log for appending, making it where there is none.  BH_IO and others of errno's. */
BH_MUST_USE bh_rc bh_job_log_open(const struct bh_node *node, const struct bh_msg_start *start, int *ret_fd,
                                  struct bh_err *err);

/* What may still be written to a log, in bytes (node.conf's log_cap_mib). */
uint64_t bh_job_log_free_bytes(const struct bh_node *node, int fd);

/* What the logs of one tenant may take together, in bytes (log_tenant_share); 0 where the size of
 * the disk is not known. */
uint64_t bh_job_log_bound(const struct bh_node *node, int fd);

/* A line of the node's own in the output of a job that is being started. */
void bh_job_log_write(const struct bh_node *node, const struct bh_msg_start *start, const char *format, ...)
    BH_PRINTF(3, 4);

#endif
