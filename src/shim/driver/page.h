/* The lease's pages in this process: joined at cuInit, left by ending or by fork. */
#ifndef BH_SHIM_DRIVER_PAGE_H
#define BH_SHIM_DRIVER_PAGE_H

#include "bulkhead/share_page.h"
#include "bulkhead/share_socket.h"
#include "shim/process/abi.h"
#include "shim/process/state.h"

enum {
    BH_PAGE_ORDINALS_MAX = 64,
    BH_PAGE_JOIN_SECONDS = 5,
};

enum { BH_PAGE_APART, BH_PAGE_JOINING, BH_PAGE_JOINED };

/* Zero until joined, and again in a fork's child. */
struct bh_page_state {
    BH_STATE const struct bh_share_limits *limits; /* fills whole pages of memory */
    struct bh_share_usage *usage;
    _Atomic uint32_t joined; /* one of those */
    uint32_t slot;
    _Atomic int socket_next;                  /* the socket + 1; 0: none */
    uint32_t visible;                         /* devices that the driver shows */
    uint8_t index_next[BH_PAGE_ORDINALS_MAX]; /* index in `limits` + 1, by CUdevice */
    CUdevice ordinal[BH_SHARE_DEVICES_MAX];
};

extern BH_HIDDEN struct bh_page_state bh_page_state;
#define bh_page (&bh_page_state)

/* Join, once; after the driver's own cuInit went well.  `prepare` is called before, by the
 * one thread that joins.  NOT_READY after BH_PAGE_JOIN_SECONDS without a connection, when
 * bulkhead-share refused, or in a static program: then nothing is reserved and memory stays
 * refused. */
CUresult bh_page_join(void (*prepare)(void));

static inline bool
bh_page_is_joined(void)
{
    return atomic_load_explicit(&bh_page->joined, memory_order_acquire) == BH_PAGE_JOINED;
}

/* Index of a device in the pages; -1: not of this lease. */
int bh_page_device(CUdevice device);

static inline const struct bh_share_device *
bh_page_limits(unsigned index)
{
    return &bh_page->limits->device[index];
}

/* Of a process that has joined: whether its lease has no managed memory (enum bh_share_managed). */
static inline bool
bh_page_has_no_managed(void)
{
    return bh_page->limits->managed == BH_SHARE_MANAGED_NONE;
}

/* The index of the device that managed memory of a location counts against; -1: of none.  Where
 * it lies does not matter: what lies nowhere yet counts against the first. */
int bh_page_managed_device(const CUmemLocation *location);

/* Send one of enum bh_share_client_kind.  False: there is no connection. */
bool bh_page_send(uint32_t word, unsigned index, uint32_t slice);

/* Is bulkhead-share there?  When it was started anew, join again with the same slot. */
bool bh_page_keep_connection(void);

#endif
