#ifndef BH_SHARE_LEASE_H
#define BH_SHARE_LEASE_H

#include "share/message.h"
#include "share/time_slices.h"

/* A lease that shares GPUs: its pages, its socket, the processes that connected. */
struct bh_share_lease;

/* Where a lease's descriptors are watched, and where it reports. */
struct bh_share_site {
    int epoll_fd;
    struct bh_time_slices *slices;
    void (*notice)(void *self, uint64_t lease, enum bh_share_notice_kind kind, uint32_t pid);
    void *self;
};

/* What epoll_event.data.ptr of a lease's descriptors points to. */
struct bh_share_watch {
    void (*ready)(void *of, uint64_t now_ns);
    void *of;
};

/* Make the pages or find them, listen on <folder>/door/share.sock, join the time slices.  What
 * processes held that died while bulkhead-share was not running is taken back; those that live are waited for
 * as if they had never been away.  BH_INVALID, BH_FULL, BH_IO, BH_CONFLICT. */
BH_MUST_USE bh_rc bh_share_lease_open(const struct bh_share_site *site, const struct bh_share_open *open,
                                      uint64_t now_ns, struct bh_share_lease **ret_lease, struct bh_err *err);

/* Leave the time slices and close everything; its pages' files are removed. */
void bh_share_lease_close(struct bh_share_lease *lease, uint64_t now_ns);

uint64_t bh_share_lease_id(const struct bh_share_lease *lease);

/* The driver says that the lease has so many bytes on a device.  What is more than its page
 * says, twice in a row, counts against its cap from then on. */
void bh_share_lease_overhead(struct bh_share_lease *lease, uint32_t device, uint64_t bytes);

/* The driver says that a process of the lease holds GPU memory.  One that has no slot for 3 s is
 * reported: it bypassed the shim. */
void bh_share_lease_holder(struct bh_share_lease *lease, uint64_t now_ns, uint32_t pid);

/* What the node allows it from now on. */
void bh_share_lease_allow(struct bh_share_lease *lease, uint64_t now_ns, const struct bh_share_allow *allow);
struct bh_share_lease_state bh_share_lease_state(const struct bh_share_lease *lease);

/* Its time of its devices since it was measured last; then whether any other that has one of
 * them had a time slice on it meanwhile. */
struct bh_share_measured {
    uint32_t gpus;       /* a bit each, as bh_time_slices_member */
    uint64_t since_ns;   /* of the one before; 0: this is the first */
    uint64_t granted_ns; /* since then */
};
struct bh_share_measured bh_share_lease_measure(struct bh_share_lease *lease, uint64_t now_ns);
void bh_share_lease_publish(struct bh_share_lease *lease, uint64_t now_ns,
                            const struct bh_share_measured *measured, bool others);

/* Bring the time slice that its processes read in line with what bh_time_slices says: after each call of
 * bh_time_slices, for each lease.  True: that changed the time slices again. */
bool bh_share_lease_follow(struct bh_share_lease *lease, uint64_t now_ns);

#endif
