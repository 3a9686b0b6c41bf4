#ifndef BH_NODE_SANDBOX_NETWORK_H
#define BH_NODE_SANDBOX_NETWORK_H

#include "node/core/node.h"

/* Networks of the jobs on this node.  A job's network is described in its folder before it is made, so
 * that the next node program knows it after a crash; networks that no folder describes are removed at the
 * start. */

/* Read node.conf and open the back end where it names a pool.  BH_INVALID, BH_RANGE, BH_IO. */
BH_MUST_USE bh_rc bh_networks_open(struct bh_node *node, struct bh_err *err);
void bh_networks_close(struct bh_networks *networks);

/* After the jobs were adopted: the networks of those that live are as they were, all others
 * are removed. */
void bh_networks_restore(struct bh_node *node);

/* The network that the order asks for; NULL: none. */
static inline const struct bh_msg_network *
bh_networks_wanted(const struct bh_msg_start *start)
{
    return start->network.mode == BH_NETWORK_NONE ? NULL : &start->network;
}

struct bh_networks_request {
    const struct bh_msg_start *start;
    const struct bh_msg_network *network;
    const struct bh_job *job;
    const char *bundle; /* "space" and "sys" are made there */
};

/* Files of the bundle that are the job's in /etc. */
struct bh_networks_files {
    const char *names[3];
    uint32_t count;
};

/* Make the job's network.  BH_DENIED, BH_INVALID: node.conf does not allow it; BH_UNAVAILABLE:
 * the hint says what is missing; BH_IO.  bh_networks_detach and bh_networks_unmount undo it. */
BH_MUST_USE bh_rc bh_networks_attach(struct bh_node *node, const struct bh_networks_request *request,
                                     struct bh_networks_files *ret_files, struct bh_err *err);

/* Note in the end of a job that has ended what its network carried, and write that record, so that it is
 * reported although the node may crash before the daemon acknowledges it.  Call before bh_networks_detach.
 * It does nothing without a network, nor when the job ended while no node ran, because its interface was
 * removed with it. */
void bh_networks_record(const struct bh_node *node, struct bh_job *job);

/* Remove it, report what it carried to the daemon, and inform its peers.  Safe without one. */
void bh_networks_detach(struct bh_node *node, uint64_t lease);

/* What is mounted in a bundle because of its network. */
void bh_networks_unmount(const char *bundle);

/* Empty files in the folder `root` where those of bh_networks_files go. */
BH_MUST_USE bh_rc bh_networks_make_places(const char *root, struct bh_err *err);

/* With the samples: report what all jobs sent and received. */
void bh_networks_report(struct bh_node *node);

/* Readable when another program may have changed the packet filter (-1: never): then the filter is made again
 * if it is missing. */
int bh_networks_watch(const struct bh_node *node);
void bh_networks_repair(struct bh_node *node);

#endif
